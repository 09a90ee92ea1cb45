/* The device code of the sampler, as PTX, so that one binary serves every GPU since
 * Maxwell; the driver compiles it once per context. Kernels of 1 x 1 threads without shared
 * or local memory: they fit beside anything and grow no pool of the context's.
 *
 * gpuwait_spacer    spins for `ns`, then stores `value` to `word` in host memory
 * gpuwait_selftime  spins for `ns` and stores its own first and last time stamp to `out`
 * gpuwait_tell      copies these two from device to host memory: as a kernel, so that no copy
 *                   of ours is among the program's; selftime itself would be slowed by it
 */
#ifndef GW_PTX_H
#define GW_PTX_H

static const char gw_ptx[] =
    ".version 6.3\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".visible .entry gpuwait_spacer(.param .u64 ns, .param .u64 word, .param .u32 value)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %v;\n"
    "    .reg .b64 %n, %w, %t, %u, %d;\n"
    "    ld.param.u64 %n, [ns];\n"
    "    ld.param.u64 %w, [word];\n"
    "    ld.param.u32 %v, [value];\n"
    "    cvta.to.global.u64 %w, %w;\n"
    "    mov.u64 %t, %globaltimer;\n"
    "again:\n"
    "    mov.u64 %u, %globaltimer;\n"
    "    sub.u64 %d, %u, %t;\n"
    "    setp.lt.u64 %p, %d, %n;\n"
    "    @%p bra again;\n"
    "    st.volatile.global.u32 [%w], %v;\n"
    "    ret;\n"
    "}\n"
    ".visible .entry gpuwait_selftime(.param .u64 ns, .param .u64 out)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b64 %n, %o, %t, %u, %d;\n"
    "    ld.param.u64 %n, [ns];\n"
    "    ld.param.u64 %o, [out];\n"
    "    cvta.to.global.u64 %o, %o;\n"
    "    mov.u64 %t, %globaltimer;\n"
    "again:\n"
    "    mov.u64 %u, %globaltimer;\n"
    "    sub.u64 %d, %u, %t;\n"
    "    setp.lt.u64 %p, %d, %n;\n"
    "    @%p bra again;\n"
    "    st.global.u64 [%o], %t;\n"
    "    st.global.u64 [%o+8], %u;\n"
    "    ret;\n"
    "}\n"
    ".visible .entry gpuwait_tell(.param .u64 from, .param .u64 to)\n"
    "{\n"
    "    .reg .b64 %f, %o, %t, %u;\n"
    "    ld.param.u64 %f, [from];\n"
    "    ld.param.u64 %o, [to];\n"
    "    cvta.to.global.u64 %f, %f;\n"
    "    cvta.to.global.u64 %o, %o;\n"
    "    ld.volatile.global.u64 %t, [%f];\n"
    "    ld.volatile.global.u64 %u, [%f+8];\n"
    "    st.volatile.global.u64 [%o], %t;\n"
    "    st.volatile.global.u64 [%o+8], %u;\n"
    "    ret;\n"
    "}\n";

#endif
