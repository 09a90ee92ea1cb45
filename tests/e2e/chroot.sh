#!/bin/sh
# make fresh-check: README's two commands on a Debian 12 that has nothing but its base
# system, nothing else typed. Needs root, debootstrap and git. Not part of make test.
# WORKTREE=1 takes the working tree instead of the last commit; KEEP=1 leaves the chroot.
set -eu
cd "$(dirname "$0")/../.."
say() { echo "fresh-check: $*"; }

if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
    say "needs root and debootstrap"
    exit 77
fi
# A mount namespace of its own: whatever happens, no mount outlives this script.
if [ "${FRESH_CHECK_INSIDE-}" != 1 ]; then
    FRESH_CHECK_INSIDE=1
    FRESH_CHECK_ROOT=$(mktemp -d "${TMPDIR:-/tmp}/gpuwait-fresh.XXXXXX")
    export FRESH_CHECK_INSIDE FRESH_CHECK_ROOT
    rc=0
    unshare --mount --propagation private sh "$0" || rc=$?
    [ "${KEEP-}" = 1 ] || rm -rf --one-file-system "$FRESH_CHECK_ROOT"
    exit $rc
fi

root=$FRESH_CHECK_ROOT
chmod 755 "$root" # it becomes the / of every user
# shellcheck disable=SC2016  # apt's own placeholder
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' \
    2>/dev/null | head -n 1)
say "debootstrap (some minutes)"
# shellcheck disable=SC2086  # empty: debootstrap's own default
debootstrap --variant=minbase bookworm "$root" $mirror >"$root.log" 2>&1 || {
    tail -n 5 "$root.log"
    rm -f "$root.log"
    say "debootstrap failed"
    exit 77
}
rm -f "$root.log"

mkdir -p "$root/opt/gpuwait"
if [ "${WORKTREE-}" = 1 ]; then
    git ls-files -co --exclude-standard | while read -r f; do [ -e "$f" ] && echo "$f"; done |
        tar -cf - -T - | tar -xf - -C "$root/opt/gpuwait"
    say "sources: the working tree"
else
    git clone -q . "$root/opt/gpuwait"
    say "sources: $(git log -1 --format='%h %s')"
fi
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for d in null zero full random urandom tty; do
    : >"$root/dev/$d"
    mount --bind "/dev/$d" "$root/dev/$d"
done
mkdir "$root/dev/pts" && mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mkdir "$root/dev/shm" && mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"

typed() { # in a bare environment, as a first login has it
    say "\$ $1"
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
        ${http_proxy:+http_proxy="$http_proxy"} \
        chroot "$root" /bin/sh -c "cd /opt/gpuwait && $1" </dev/null >"$root/tmp/out" 2>&1 || {
        tail -n 80 "$root/tmp/out"
        say "FAILED: $1"
        exit 1
    }
    cat "$root/tmp/out"
}
begin=$(date +%s)
typed 'sh tools/setup.sh && make demo'
for word in 'kernels executed' '^Kernels' '^Copies' '^Waits'; do
    grep -q "$word" "$root/tmp/out" || { say "FAILED: the report lacks $word" && exit 1; }
done
typed 'sh tools/setup.sh && make test'
grep -Eq '^[1-9][0-9]* passed, 0 failed(, [0-9]+ skipped)?$' "$root/tmp/out" || {
    say "FAILED: no clean closing line"
    exit 1
}
say "both commands succeeded in $(($(date +%s) - begin)) s"
