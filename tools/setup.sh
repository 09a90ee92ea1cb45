#!/bin/sh
# Installs what building and testing gpuwait needs, on Debian, Ubuntu and their kin.
# Does nothing when it is all there. Usage: sh tools/setup.sh [MORE-PACKAGES...]
set -eu

packages='gcc libc6-dev make binutils libzstd-dev uthash-dev libjansson-dev libsmartcols-dev
          libiberty-dev libcmocka-dev musl-tools python3'

say() { echo "setup: $*" >&2; }

# shellcheck disable=SC2086  # words
set -- $packages "$@"
if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-query >/dev/null 2>&1; then
    say "no apt-get here; install what your system calls these, then run make:"
    say "$*"
    exit 1
fi

missing=
for p; do
    case $(dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null) in
    ?i*) ;;
    *) missing="$missing $p" ;;
    esac
done
[ -n "$missing" ] || exit 0

sudo=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        say "not root and no sudo; as root run: apt-get install --no-install-recommends$missing"
        exit 1
    fi
    sudo='sudo env DEBIAN_FRONTEND=noninteractive'
fi
DEBIAN_FRONTEND=noninteractive
export DEBIAN_FRONTEND

say "installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    # shellcheck disable=SC2086
    $sudo apt-get -q -y -o DPkg::Lock::Timeout=120 "$@" </dev/null >"$log" 2>&1
}
# shellcheck disable=SC2086
{ apt update && apt install --no-install-recommends $missing; } || {
    cat "$log" >&2
    say "apt-get failed (above); missing:$missing"
    exit 1
}
