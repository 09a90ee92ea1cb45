#!/bin/sh
# The report as text: word for word at 80 columns, and what widths and --all change.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
mkdir t
python3 -c '
from mkdump import training
d = training()
d.graph(1, [("LAUNCH", 0, 3, d.signature("_Z3addPfi", (200, 1, 1)), 0), ("COPY", 3, 1, 0, 4096),
            ("MEMSET", 0, 2, 0, 128)])
s = d.stream("legacy")
for t in (7000, 7100):
    d.call("cudaGraphLaunch", "GRAPH_LAUNCH", t, 12, s, arg=1)
d.sync(7200, 50, d.stream("none"))
d.launch(7300, 4, s, flags=2)                   # captured
d.launch(7310, 4, s, status=1)                  # failed
d.call("cudaMalloc", "ALLOC", 7320, 300, d.stream("none"), value=1 << 20)
d.call("cudaMalloc", "ALLOC", 7630, 20, d.stream("none"), value=1 << 40, status=2)
d.call("cudaFree", "FREE", 7660, 200, d.stream("none"))
d.call("ncclAllReduce", "NCCL", 7900, 9, d.stream("user", 0xabc, 0, 1), value=1 << 20, level=3)
d.write("t/node7-42.gwt")
'
runs "report" 0 "$gpuwait" report t
is "nothing on stderr" "" "$(cat "$err")"
same "word for word" "$here/report.expected" "$out"
is "fits 80 columns" "" "$(awk 'length > 80' "$out")"
hasnt "no escape sequence" "$out" "$(printf '\033')"

cp "$out" narrow
runs "a wider terminal" 0 env COLUMNS=132 "$gpuwait" report t
has "shows the whole name" "$out" "void at::native::elementwise_kernel<128>(float\*, int)"
is "fits 132 columns" "" "$(awk 'length > 132' "$out")"
runs "--all" 0 "$gpuwait" report --all t
has "--all shows the whole name" "$out" "void at::native::elementwise_kernel<128>(float\*, int)"
runs "one file" 0 "$gpuwait" report t/node7-42.gwt
same "one file is as its directory" narrow "$out"
ln -s t gpuwait.trace
runs "the default directory" 0 "$gpuwait" report
same "the default directory is gpuwait.trace" narrow "$out"

# what is left of long names at 80 columns: first parameters and return type go, then the
# usual namespaces, then the end
cat >names <<'END'
_ZN2at6native29vectorized_elementwise_kernelILi8ENS0_15CUDAFunctor_addIN3c108BFloat16EEESt5arrayIPcLm3EEEEviT0_T1_
_ZN7cutlass7Kernel2I41cutlass_80_simt_sgemm_64x64_8x5_tn_align1EEvNT_6ParamsE
_ZN8cublasLt19splitKreduce_kernelILi32ELi16EifffLb1EfffLb1ELb0ELb0EEEvNS_18cublasSplitKParamsIT4_EEPKT2_PKT3_PT5_PKT3_SB_PKT6_SC_Pv
_ZN12_GLOBAL__N_17longestIiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiEEvPfPKfS2_S2_S2_S2_S2_S2_
_ZN2ns1XclEifffffffffffffffffffffffffffffffffffffffffffffffff
nvjet_sm90_tst_176x64_64x7_1x2_h_bz_TNN
END
cat >wanted <<'END'
vectorized_elementwise_kernel<8, CUDAFunctor_add<BFlo...
Kernel2<cutlass_80_simt_sgemm_64x64_8x5_tn_align1>
cublasLt::splitKreduce_kernel<32, 16, int, float, flo...
longest<int, int, int, int, int, int, int, int, int, ...
ns::X::operator()
nvjet_sm90_tst_176x64_64x7_1x2_h_bz_TNN
END
mkdir names.d
python3 -c '
from mkdump import Dump
d = Dump()
d.device()
s = d.stream("legacy")
for i, name in enumerate(open("names").read().split()):
    for j in range(20 - i):
        d.launch(i * 1000 + j * 10, 5, s, name)
d.write("names.d/a.gwt")
'
runs "long names" 0 "$gpuwait" report names.d
sed -n '/^Kernels/,/^  SHARE/s/^ *[0-9]* *[0-9.]* % *[0-9]* %  //p' "$out" >got
same "long names are shortened by what they say" wanted got

# very many kernels and long names: the table stays short, --all has all of it
mkdir many
python3 -c '
from mkdump import Dump
d = Dump()
d.device()
s = d.stream("legacy")
for i in range(40):
    name = "kernel_with_a_name_that_is_rather_long_%03d_" % i + "x" * 100
    d.launch(i * 10, 5, s, name)
d.write("many/a.gwt")
'
runs "many kernels" 0 "$gpuwait" report many
has "says that there are more" "$out" "and 25 more kernels (--all)"
is "fits 80 columns" "" "$(awk 'length > 80' "$out")"
runs "many kernels --all" 0 "$gpuwait" report --all many
is "--all has each in full" 40 "$(grep -c 'kernel_with_a_name_that_is_rather_long_[0-9]*_x\{100\}$' "$out")"
hasnt "--all leaves nothing out" "$out" "more kernels"
finish
