#!/bin/sh
# doctor: a line for each check, and an exit code that a script can use.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
line() { # NAME PATTERN, in what the last doctor said
    has "$1" "$out" "$2"
}
"$gpuwait" doctor >"$out" 2>"$err"
is "nothing on stderr" "" "$(cat "$err")"
is "every line has a grade" "" "$(grep -v -e '^ok  ' -e '^warn' -e '^FAIL' "$out")"
for check in library glibc driver preloads options clock /dev/shm output; do
    line "$check" "^[a-zA-Z]* *$check "
done
line "the library loads" "^ok    library     $B/libgpuwait.so$"
line "glibc" "^ok    glibc"
line "output" "^ok    output      gpuwait.trace: writable"
is "nothing is left behind" "" "$(left_over)"

# a stand-in for the driver makes it pass; without one it fails
printf 'int cuInit(unsigned f){(void)f;return 0;}\n' >cuda.c
if cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o libcuda.so.1 cuda.c; then
    runs "with a driver" 0 env LD_LIBRARY_PATH="$work" "$gpuwait" doctor
    line "driver" "^\(ok\|warn\)  *driver"
fi
case $(ldconfig -p 2>/dev/null) in
*libcuda.so.1*) ;;
*)
    runs "without a driver" 1 "$gpuwait" doctor
    line "driver" "^FAIL  driver .*install the NVIDIA driver"
    ;;
esac
runs "an output that is a file" 1 "$gpuwait" doctor -o cuda.c
line "said" "^FAIL  output  *cuda.c is not a directory"
runs "a variable that nobody reads" 1 sh -c 'GPUWAIT_MAXX=1 "$0" doctor -o cuda.c' "$gpuwait"
line "said" "^warn  options  *GPUWAIT_MAXX is set, which nothing reads"
runs "switched off" 1 env GPUWAIT=0 "$gpuwait" doctor
line "said" "^FAIL  options  *GPUWAIT=0"
runs "a command that is not there" 1 "$gpuwait" doctor nosuchcommand
line "said" "^FAIL  command  *nosuchcommand: not found"
"$gpuwait" doctor sh >"$out"
line "a shell is fine" "^ok    command  .*dynamically linked"
# a broken library
mkdir broken
cp "$gpuwait" broken/ && echo "not a library" >broken/libgpuwait.so
runs "a broken library" 1 broken/gpuwait doctor
line "the loader's own words" "^FAIL  library .*libgpuwait.so.*cannot be preloaded"
rm broken/libgpuwait.so
runs "no library" 1 broken/gpuwait doctor
line "said" "^FAIL  library"
finish
