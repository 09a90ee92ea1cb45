#include "run_preload.h"
#include "tool.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "libgpuwait.so"

char *preload_find(void)
{
    static const char *const places[] = {
        "",
        "../lib/gpuwait/",
        "../lib64/gpuwait/",
        "../lib/",
        "../lib64/",
#ifdef GPUWAIT_LIBDIR
        GPUWAIT_LIBDIR "/",
#endif
    };
    char self[PATH_MAX], real[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0) {
        say("cannot tell where this program is (/proc/self/exe): %s", strerror(errno));
        return NULL;
    }
    self[n] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        char *path = places[i][0] == '/' ? xprintf("%s" LIBRARY, places[i])
                                         : xprintf("%s/%s" LIBRARY, self, places[i]);
        bool found = realpath(path, real) != NULL;
        free(path);
        if (found)
            return xstrdup(real);
    }
    say(LIBRARY " is neither beside the gpuwait program (%s) nor in ../lib/gpuwait; build it with "
                "make, or install both",
        self);
    return NULL;
}

static bool usable(const char *path)
{
    return !path[strcspn(path, " \t\n:;$")];
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool listed(const char *list, const char *library)
{
    char *copy = xstrdup(list), *state = NULL;
    bool found = false;
    for (char *w = strtok_r(copy, " :", &state); w && !found; w = strtok_r(NULL, " :", &state))
        found = same_file(w, library);
    free(copy);
    return found;
}

static char *link_to(struct preload *p, const char *library)
{
    const char *tmp = getenv("TMPDIR");
    p->directory =
        xprintf("%s/gpuwait-run-XXXXXX", tmp && *tmp == '/' && usable(tmp) ? tmp : "/tmp");
    if (!mkdtemp(p->directory)) {
        say("cannot make %s: %s; %s cannot be preloaded from a path with spaces or colons",
            p->directory, strerror(errno), library);
        free(p->directory);
        p->directory = NULL;
        return NULL;
    }
    char *path = xprintf("%s/" LIBRARY, p->directory);
    if (symlink(library, path) == 0)
        return path;
    say("cannot link %s: %s", path, strerror(errno));
    free(path);
    return NULL;
}

bool preload_make(struct preload *out, const char *library)
{
    const char *had = getenv("LD_PRELOAD");
    *out = (struct preload){0};
    if (had && listed(had, library)) { /* gpuwait run inside gpuwait run */
        out->value = xstrdup(had);
        return true;
    }
    char *path = usable(library) ? xstrdup(library) : link_to(out, library);
    if (!path)
        return false;
    /* Ours comes last: what is there may have to be first (sanitizers say so), and a preload
     * that wraps dlsym expects to find the loader's own behind it. */
    out->value = had && *had ? xprintf("%s:%s", had, path) : xstrdup(path);
    free(path);
    return true;
}

void preload_done(struct preload *p)
{
    if (p->directory) {
        char *path = xprintf("%s/" LIBRARY, p->directory);
        unlink(path);
        rmdir(p->directory);
        free(path);
    }
    free(p->directory);
    free(p->value);
}
