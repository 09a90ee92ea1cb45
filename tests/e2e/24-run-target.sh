#!/bin/sh
# run: says beforehand where a preload cannot work, and runs the command all the same.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

cat >hello.c <<'END'
#include <stdio.h>
int main(void) { puts("hello"); return 5; }
END
said() { # NAME CODE PATTERN COMMAND...: one line before, one after
    _what=$1 _rc=$2 _pattern=$3
    shift 3
    runs "$_what" "$_rc" "$gpuwait" run -- "$@"
    has "$_what: said beforehand" "$err" "^gpuwait: .*$_pattern.*; running it without a recording$"
    runs "$_what, doctor" 1 "$gpuwait" doctor "$@"
    has "$_what: doctor says it" "$out" "^FAIL  command .*$_pattern"
}
if cc -static -o static hello.c 2>/dev/null; then
    said "static" 5 "static is statically linked" ./static
    is "static: its output" hello "$("$gpuwait" run ./static 2>/dev/null)"
    "$gpuwait" run ./static >"$out" 2>"$err"
    has "static: why nothing was recorded" "$err" "^gpuwait: nothing was recorded: ./static is statically"
    printf '#!%s/static\n' "$work" >by-static && chmod +x by-static
    said "a script of a static interpreter" 5 "static is statically linked" ./by-static
else
    echo "# no static libc here"
fi
cc -o dynamic hello.c || exit 1
runs "dynamic" 5 "$gpuwait" run ./dynamic
hasnt "dynamic: nothing beforehand" "$err" "without a recording"
runs "dynamic, doctor" 0 sh -c '"$0" doctor ./dynamic | grep command' "$gpuwait"
has "dynamic: doctor is content" "$out" "^ok .*dynamic: dynamically linked"

# other loaders and machines, by changing bytes of a real program
python3 - <<'END'
raw = open("dynamic", "rb").read()
at = raw.index(b"/lib64/ld-linux-x86-64.so.2\0") if b"/lib64/ld-linux" in raw else raw.index(b"/lib/ld-linux")
musl = bytearray(raw)
musl[at:at + 21] = b"/lib/ld-musl-x.so.1\0\0"
open("musl", "wb").write(musl)
other = bytearray(raw)
other[18:20] = b"\xf3\x00"  # RISC-V
open("riscv", "wb").write(other)
narrow = bytearray(raw)
narrow[4] = 1  # ELFCLASS32
open("narrow", "wb").write(narrow)
END
chmod +x musl riscv narrow
said "musl, which is not here" 127 "uses musl" ./musl
said "another processor" 126 "built for another processor" ./riscv
"$gpuwait" run ./narrow >"$out" 2>"$err" # the kernel may take it all the same
has "32-bit: said beforehand" "$err" "32-bit program"

# musl's own loader maps the preload all the same: the program is what it is without it, and so is one
# that is started by another.
cat >own.c <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *in_thread(void *p) { return p; }
int puts(const char *text) /* the next one is the library's */
{
    int (*next)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "puts");
    return next ? next(text) : -1;
}
int main(void)
{
    pthread_t t;
    void *got = 0;
    int status = 0;
    if (dlsym(RTLD_DEFAULT, "cuInit") || dlsym(RTLD_DEFAULT, "getpid") != (void *)getpid ||
        dlsym(dlopen(0, RTLD_NOW), "getenv") != (void *)getenv)
        return 1;
    if (pthread_create(&t, 0, in_thread, &t) || pthread_join(t, &got) || got != &t)
        return 2;
    pid_t pid = fork();
    if (pid == 0)
        exit(puts("own") < 0);
    return waitpid(pid, &status, 0) == pid && status == 0 ? 5 : 3;
}
END
if command -v musl-gcc >/dev/null && musl-gcc -rdynamic -o own own.c && musl-gcc -static -o own-static hello.c; then
    has "musl's loader" own 'ld-musl'
    said "musl" 5 "own uses musl" ./own
    is "musl: its output" own "$("$gpuwait" run ./own 2>"$err")"
    has "musl: why nothing was recorded" "$err" "^gpuwait: nothing was recorded: ./own uses musl"
    runs "musl, started by a shell" 5 "$gpuwait" run --no-report -- sh -c './own; exit $?'
    is "musl, started by a shell: output, nothing said" own "$(cat "$out" "$err")"
    said "musl, linked statically" 5 "own-static is statically linked" ./own-static
else
    echo "# no musl here"
fi

if [ "$(id -u)" -eq 0 ]; then
    cp dynamic setuid && chown 1:1 setuid && chmod 4755 setuid
    said "setuid" 5 "set-user-ID" ./setuid
    chown 0:0 setuid && chmod 4755 setuid # of the one who runs it: gains nothing
    runs "setuid to oneself" 5 "$gpuwait" run ./setuid
    hasnt "setuid to oneself: nothing beforehand" "$err" "set-user-ID"
elif [ -u /bin/su ]; then
    said "setuid" 0 "set-user-ID" /bin/su --version
else
    echo "# no set-user-ID program here"
fi

# why nothing was recorded, where nothing speaks against it beforehand
runs "GPUWAIT=0" 0 env GPUWAIT=0 "$gpuwait" run true
has "GPUWAIT=0: said" "$err" "nothing was recorded: GPUWAIT=0 is set"
mkdir bin
printf '#!/bin/sh\nexit 0\n' >bin/docker && chmod +x bin/docker
runs "docker" 0 env PATH="$work/bin:$PATH" "$gpuwait" run docker run image python train.py
has "docker: said" "$err" "docker starts its program in a container; start gpuwait there"
finish
