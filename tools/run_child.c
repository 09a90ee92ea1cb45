#include "run_child.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Passed on to the command. Slurm and others use the last two to announce the end. */
static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
#define PASSED_ON (sizeof(passed_on) / sizeof(*passed_on))

/* The command and we are in one process group, so what a terminal sends reached it already:
 * sent twice, an interrupt would cut short the command's own handling of the first. */
static void pass_on(pid_t pid, const siginfo_t *info)
{
    if (info->si_code == SI_KERNEL && getpgid(pid) == getpgrp())
        return;
    kill(pid, info->si_signo);
}

/* The command was stopped from a terminal: the shell must see us stop as well. Not for
 * SIGSTOP, which a debugger or a person sent to it alone. */
static void stop_with(pid_t pid, int signal)
{
    if (signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU)
        return;
    raise(SIGSTOP);
    kill(pid, SIGCONT); /* somebody continued us */
}

static int wait_for(pid_t pid, const sigset_t *signals)
{
    siginfo_t info;
    int status;
    for (;;) {
        if (sigwaitinfo(signals, &info) < 0)
            continue;
        if (info.si_signo != SIGCHLD) {
            pass_on(pid, &info);
            continue;
        }
        /* One SIGCHLD may stand for several changes. */
        while (waitpid(pid, &status, WNOHANG | WUNTRACED) == pid) {
            if (!WIFSTOPPED(status))
                return status;
            stop_with(pid, WSTOPSIG(status));
        }
    }
}

/* Like execvp(), but for a program of another machine, which is no shell script. */
static void execute(const char *path, char **argv)
{
    char magic[4] = "";
    if (!path) {
        execvp(argv[0], argv);
        return;
    }
    execv(path, argv);
    if (errno != ENOEXEC)
        return;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool elf = fd >= 0 && read(fd, magic, 4) == 4 && !memcmp(magic, ELFMAG, SELFMAG);
    if (fd >= 0)
        close(fd);
    errno = ENOEXEC;
    if (!elf) {
        size_t n = 0;
        while (argv[n])
            n++;
        char *shell[n + 2];
        memcpy(shell + 2, argv + 1, n * sizeof(*argv)); /* with the NULL */
        shell[0] = (char *)"sh";
        shell[1] = (char *)path;
        execv("/bin/sh", shell);
    }
}

int child_run(const char *path, char **argv, struct child *out)
{
    sigset_t signals, before;
    struct sigaction chld_before, chld = {.sa_handler = SIG_DFL};
    int report[2];
    *out = (struct child){0};
    if (pipe2(report, O_CLOEXEC))
        return -errno;

    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTSTP);
    for (size_t i = 0; i < PASSED_ON; i++)
        sigaddset(&signals, passed_on[i]);
    /* Blocked before there is a child, so that none is lost. A parent may have left SIGCHLD
     * ignored, and then there is nothing to wait for. */
    sigprocmask(SIG_BLOCK, &signals, &before);
    sigaction(SIGCHLD, &chld, &chld_before);
    fflush(NULL);

    out->pid = fork();
    if (out->pid == 0) {
        sigaction(SIGCHLD, &chld_before, NULL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        execute(path, argv);
        int error = errno;
        if (write(report[1], &error, sizeof(error)) < 0)
            _exit(126);
        _exit(127);
    }
    int failed = out->pid < 0 ? -errno : 0;
    close(report[1]);
    if (!failed) {
        ssize_t n;
        while ((n = read(report[0], &out->error, sizeof(out->error))) < 0 && errno == EINTR)
            ;
        if (n != (ssize_t)sizeof(out->error))
            out->error = 0;
        out->status = wait_for(out->pid, &signals);
    }
    close(report[0]);
    sigaction(SIGCHLD, &chld_before, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return failed;
}

int child_end_like(const struct child *c)
{
    if (!WIFSIGNALED(c->status))
        return WEXITSTATUS(c->status);
    int number = WTERMSIG(c->status);
    struct rlimit none = {0, 0};
    sigset_t set;
    setrlimit(RLIMIT_CORE, &none); /* one core file, the command's, is enough */
    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    kill(getpid(), number);
    return 128 + number; /* it was one that does not end us */
}
