#!/bin/sh
# run: LD_PRELOAD and the environment that the command gets.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
lib=$B/libgpuwait.so
[ -f "$lib" ] || { echo "libgpuwait.so is not built"; exit 77; }
show='printf "%s\n" "$LD_PRELOAD"'

runs "LD_PRELOAD" 0 "$gpuwait" run --no-report -- sh -c "$show"
is "is our library" "$lib" "$(cat "$out")"
other=$(ldconfig -p 2>/dev/null | awk '/libzstd\.so|libz\.so\.1 / { print $NF; exit }')
if [ -n "$other" ]; then
    runs "another preload" 0 env LD_PRELOAD="$other" "$gpuwait" run --no-report -- sh -c "$show"
    is "stays, and stays first" "$other:$lib" "$(cat "$out")"
fi
runs "run inside run" 0 "$gpuwait" run --no-report -- "$gpuwait" run --no-report -- sh -c "$show"
is "is there once" "$lib" "$(cat "$out")"
runs "it is mapped" 0 "$gpuwait" run --no-report -- grep -c libgpuwait.so /proc/self/maps
runs "children inherit it" 0 "$gpuwait" run --no-report -- sh -c 'sh -c "grep -c libgpuwait.so /proc/self/maps"'

# options are environment variables of the recorder
runs "options" 0 "$gpuwait" run --no-report --max 10M --min-free=7 --full block --cmdline off \
    --ring shm -o "$work/o" -- sh -c 'set | grep ^GPUWAIT'
sed "s/['\"]//g" "$out" | sort >got
cat >wanted <<END
GPUWAIT_CMDLINE=off
GPUWAIT_FULL=block
GPUWAIT_MAX=10M
GPUWAIT_MIN_FREE=7
GPUWAIT_OUT=$(pwd -P)/o
GPUWAIT_RING=shm
END
same "set in the command" wanted got
runs "GPUWAIT_OUT is the default" 0 env GPUWAIT_OUT=fromenv "$gpuwait" run --no-report -- \
    sh -c 'echo "$GPUWAIT_OUT"'
is "used" "$(pwd -P)/fromenv" "$(cat "$out")"
runs "-o goes before it" 0 env GPUWAIT_OUT=fromenv "$gpuwait" run --no-report -o given -- \
    sh -c 'echo "$GPUWAIT_OUT"'
is "used" "$(pwd -P)/given" "$(cat "$out")"
runs "nothing else changes" 0 "$gpuwait" run --no-report -- env
# the preload sets NVTX's by itself
grep -v -e '^LD_PRELOAD=' -e '^GPUWAIT_OUT=' -e '^NVTX_INJECTION64_PATH=' -e '^_=' "$out" | sort >got
env | grep -v -e '^NVTX_INJECTION64_PATH=' -e '^_=' | sort >wanted
same "in the environment" wanted got

# installed: bin/gpuwait and lib/gpuwait/libgpuwait.so; reached through a link
mkdir -p inst/bin inst/lib/gpuwait links
cp "$gpuwait" inst/bin/ && cp "$lib" inst/lib/gpuwait/
ln -s ../inst/bin/gpuwait links/gpuwait
runs "installed" 0 links/gpuwait run --no-report -- sh -c "$show"
is "finds the library" "$(pwd -P)/inst/lib/gpuwait/libgpuwait.so" "$(cat "$out")"
rm inst/lib/gpuwait/libgpuwait.so
runs "without the library" 125 inst/bin/gpuwait run -- true
has "said" "$err" "^gpuwait: libgpuwait.so is neither beside"

# a path that LD_PRELOAD cannot hold
for odd in 'with space' 'with:colon' 'with$dollar'; do
    mkdir "$odd"
    cp "$gpuwait" "$lib" "$odd/"
    runs "$odd" 0 "$odd/gpuwait" run --no-report -- sh -c "$show; grep -c libgpuwait.so /proc/self/maps"
    value=$(head -n 1 "$out")
    case $value in
    *[\ :\$]*) not_ok "$odd: goes through a link: $value" ;;
    *) ok "$odd: goes through a link" ;;
    esac
    is "$odd: the link is gone afterwards" "" "$(ls -d "$(dirname "$value")" 2>/dev/null)"
    hasnt "$odd: the loader says nothing" "$err" "ld.so"
done
finish
