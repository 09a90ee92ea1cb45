#!/bin/sh
# make demo: record a small training job, then report it. With a GPU and PyTorch a real
# one, else the simulated one. DEMO=sim|gpu decides by hand.
set -eu
cd "$(dirname "$0")/.."
: "${B:=build}" "${DEMO:=auto}"
out=$(mktemp -d "${TMPDIR:-/tmp}/gpuwait-demo.XXXXXX")
trap 'rm -rf "$out"' EXIT

python=
if [ "$DEMO" != sim ]; then
    for p in python3 python; do
        if "$p" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
            python=$p
            break
        fi
    done
fi

show() { # the command as a person would type it
    echo "\$ $*"
}
if [ -n "$python" ]; then
    show "gpuwait run -- $python tests/gpu/demo_train.py"
    "$B/gpuwait" run -o "$out/trace" -- "$python" tests/gpu/demo_train.py
elif [ "$DEMO" = gpu ]; then
    echo "demo: no GPU that PyTorch can use" >&2
    exit 1
else
    echo "No GPU with PyTorch here: a simulated one runs a QLoRA-like training loop."
    show "gpuwait run -- demo_qlora"
    PATH="$B/sim/clients:$PATH" LD_LIBRARY_PATH="$B/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        "$B/gpuwait" run -o "$out/trace" -- demo_qlora
fi
echo
show "gpuwait report"
"$B/gpuwait" report "$out/trace"
