/* A program that starts itself once for each rank, with the variables that launchers set. The first
 * rank's unique id reaches the others through the file RANKS_STORE. */
#ifndef CLIENT_LAUNCHER_H
#define CLIENT_LAUNCHER_H

#include "client.h"

#include <sys/wait.h>
#include <unistd.h>

#define NC(ret, name, params, args, kind, before, after) ret name params;
#include "capture/calls.def"

static ncclUniqueId unique_id(long rank)
{
    const char *path = getenv("RANKS_STORE");
    ncclUniqueId id;
    char unfinished[4096];
    FILE *f;
    if (!path)
        exit(2);
    if (rank == 0) {
        CHECK(ncclGetUniqueId(&id));
        snprintf(unfinished, sizeof unfinished, "%s.new", path);
        f = fopen(unfinished, "w");
        CHECK(!f || fwrite(&id, sizeof id, 1, f) != 1 || fclose(f));
        CHECK(rename(unfinished, path));
        return id;
    }
    for (int i = 0; !(f = fopen(path, "r")); i++) {
        CHECK(i > 60000); /* a minute */
        usleep(1000);
    }
    CHECK(fread(&id, sizeof id, 1, f) != 1);
    fclose(f);
    return id;
}

__attribute__((format(printf, 2, 3))) static void set_variable(const char *name, const char *format,
                                                               ...)
{
    char value[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    setenv(name, value, 1);
}

/* post: 0 if all of them ended well, else 1 */
static int launch_ranks(const char *name, char **argv, long ranks, void (*prepare)(long rank))
{
    const char *folder = getenv("TMPDIR");
    char store[2048], path[sizeof store + 8];
    int failed = 0;
    snprintf(store, sizeof store, "%s/gpuwait-ranks.XXXXXX", folder ? folder : "/tmp");
    CHECK(!mkdtemp(store));
    snprintf(path, sizeof path, "%s/id", store);
    for (long r = 0; r < ranks; r++) {
        pid_t pid = fork();
        CHECK(pid < 0);
        if (pid)
            continue;
        set_variable("RANK", "%ld", r);
        set_variable("WORLD_SIZE", "%ld", ranks);
        set_variable("RANKS_STORE", "%s", path);
        prepare(r);
        if (freopen("/dev/null", "w", stdout))
            execv("/proc/self/exe", argv);
        _exit(127);
    }
    for (int status; wait(&status) > 0;)
        failed += status != 0;
    remove(path);
    rmdir(store);
    printf("%s: %s\n", name, failed ? "FAILED" : "ok");
    return failed != 0;
}

#endif
