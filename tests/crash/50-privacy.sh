#!/bin/sh
# What is written is its owner's alone, goes where it was meant to, and holds no secrets.
# shellcheck disable=SC1091,SC2154  # from lib.sh
. "$(dirname "$0")/lib.sh"

record() { # COMMAND...: under the preload, into t, the ring beside it
    env GPUWAIT_OUT="$work/t" GPUWAIT_RING=dump LD_PRELOAD="$lib" "$@" >"$out" 2>"$err"
}

# Modes, whatever the umask says.
umask 0
record "$program" exec # leaves a ring, since exec() closes nothing
is "modes" 600 "$(stat -c %a t/*.gwt t/*.ring | sort -u)"
is "a ring was there" 1 "$(find t -name '*.ring' | wc -l)"
umask 022
rm -rf t

# Somebody who can write into the directory sees the dump's name, and puts links where its later
# files will be: they are not written through.
echo precious >target
GPUWAIT_OUT=$work/t GPUWAIT_MAX=1M LD_PRELOAD=$lib "$B/noop/victim" counts 2 600000 >"$out" 2>"$err" &
victim=$!
for _ in $(seq 500); do
    dump=$(find t -name '*.gwt' 2>/dev/null)
    [ -z "$dump" ] || break
    sleep 0.01
done
ln -s "$work/target" "$dump.tail0"
ln -s "$work/target" "$dump.tail1"
wait $victim
is "links in the way: exit code" 0 $?
is "links in the way: what they point to" precious "$(cat target)"
is "links in the way: said" "gpuwait: cannot write $work/$dump: File exists; the job goes on, recording stops" "$(cat "$err")"
is "links in the way: every call is accounted for" yes "$("$B/crash/count" "$dump" | python3 -c '
words = input().split()
at = words.index("launches")
says = dict(zip(words[:at:2], map(int, words[1:at:2])))
n = sum(map(int, words[at + 1:])) + says["missing"] + says["dropped"]
print("yes" if n >= 1200000 else (n, words))')"
rm -rf t

# Secrets in the command line and in the environment.
record env SECRET_KEY=env-secret AWS_SESSION_TOKEN=env-secret WANDB_API_KEY=env-secret \
    "$program" plain 10 --api-key=arg-secret --password arg-secret --hf hf_argsecretargsecretargsecret \
    https://user:arg-secret@host/path MY_TOKEN=arg-secret
is "secrets: recorded" "made" "$(cut -d ' ' -f 1 "$out")"
"$gpuwait" info t >"$out"
has "secrets: the command is there" "$out" "command .*processes plain 10"
hasnt "secrets: not in what is shown" "$out" 'secret'
is "secrets: not in the files" "" "$(grep -l -e 'arg-secret' -e 'env-secret' -e hf_argsecret t/*)"
rm -rf t
record env GPUWAIT_CMDLINE=off "$program" plain 10 --name private-name
"$gpuwait" info t >"$out"
has "no command line: said" "$out" "command .*left out"
hasnt "no command line" "$out" "private-name"
rm -rf t

# A directory that is another's: nothing is written, the program goes on.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    mkdir -m 755 t
    runs "another's directory" 0 setpriv --reuid 65534 --clear-groups env GPUWAIT_OUT="$work/t" \
        LD_PRELOAD="$lib" "$program" plain 10
    chmod 755 "$work"
    runs "another's directory" 0 setpriv --reuid 65534 --clear-groups env GPUWAIT_OUT="$work/t" \
        LD_PRELOAD="$lib" "$program" plain 10
    has "another's directory: said" "$err" "^gpuwait: cannot .*Permission denied; nothing is recorded$"
    is "another's directory: files" "" "$(ls t)"
else # not root, or no setpriv
    mkdir -m 555 t
    runs "a directory that may not be written" 0 env GPUWAIT_OUT="$work/t" LD_PRELOAD="$lib" "$program" plain 10
    [ "$(id -u)" -eq 0 ] ||
        has "a directory that may not be written: said" "$err" "^gpuwait: cannot .*Permission denied; nothing is recorded$"
fi
finish
