/* dlsym for the whole process.
 *
 * For RTLD_NEXT and RTLD_DEFAULT glibc decides by the return address who is asking, so
 * the real function must see the caller's: a jump, never a call. Any other handle goes
 * to gw_dlsym_handle(), which may answer with a wrapper.
 */
#if defined(__x86_64__)
    .text
    .globl  dlsym
    .type   dlsym, @function
    .p2align 4
dlsym:
    .cfi_startproc
    endbr64
    cmpq    $-1, %rdi                   /* RTLD_NEXT */
    je      1f
    testq   %rdi, %rdi                  /* RTLD_DEFAULT */
    jne     gw_dlsym_handle
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    subq    $8, %rsp                    /* the call below wants 16-byte alignment */
    .cfi_adjust_cfa_offset 8
    movq    %rsi, %rdi
    movq    24(%rsp), %rsi              /* the caller's return address */
    call    gw_dlsym_default_hidden
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    testl   %eax, %eax
    je      1f
    xorl    %eax, %eax
    ret
1:  movq    gw_real_dlsym(%rip), %rax
    testq   %rax, %rax
    je      2f
    jmp     *%rax
2:  pushq   %rdi                        /* asked before our constructor ran */
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    gw_real_dlsym_find
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    movq    gw_real_dlsym(%rip), %rax
    testq   %rax, %rax
    je      3f
    jmp     *%rax
3:  xorl    %eax, %eax
    ret
    .cfi_endproc
    .size   dlsym, . - dlsym
    .hidden gw_real_dlsym
    .hidden gw_dlsym_handle
    .hidden gw_dlsym_default_hidden
    .hidden gw_real_dlsym_find
    .section .note.GNU-stack, "", @progbits
#endif
