/* Runs a program without one system call, as a container's seccomp filter might:
 *
 *     sandbox CALL ERRNO PROGRAM [ARGUMENT ...]
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    int number;
} calls[] = {
#define CALL(name)                                                                                 \
    {                                                                                              \
#name, SYS_##name                                                                          \
    }
    CALL(access),   CALL(clock_gettime), CALL(clone3),    CALL(fallocate), CALL(fcntl),
    CALL(fstatfs),  CALL(ftruncate),     CALL(getcwd),    CALL(getrandom), CALL(getrusage),
    CALL(madvise),  CALL(mkdir),         CALL(nanosleep), CALL(prctl),     CALL(prlimit64),
    CALL(pwrite64), CALL(readlink),      CALL(rseq),      CALL(statfs),    CALL(sched_yield),
    CALL(sysinfo),  CALL(uname),         CALL(unlink),    CALL(unlinkat),  CALL(clock_nanosleep),
#undef CALL
};

int main(int argc, char **argv)
{
    int number = -1;
    for (size_t i = 0; argc > 3 && i < sizeof calls / sizeof calls[0]; i++)
        if (strcmp(argv[1], calls[i].name) == 0)
            number = calls[i].number;
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
            puts(calls[i].name);
        return 0;
    }
    if (number < 0)
        return 2;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)atoi(argv[2])),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 77;
    execv(argv[3], argv + 3);
    return 126;
}
