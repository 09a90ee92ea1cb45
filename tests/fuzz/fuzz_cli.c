/* The commands' arguments: whatever they are, the tool ends with one of its own exit codes, and
 * where that is a usage error something was said.
 *
 * Arguments are separated by bytes below 32, which choose whole words (below) or nothing. Paths
 * stay inside a scratch directory with one recording; `run`, which would run what it is given, is
 * left out.
 */
#include "replay.h"

#include "tools/commands.h"
#include "tools/tool.h"

#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <sanitizer/common_interface_defs.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct command cmd_run = {.name = "run", .text = "", .usage_code = TOOL_RUN_FAILED};

#define main tool_main
#include "tools/main.c"
#undef main

#define ARGUMENTS 16

static const char *const words[] = {
    "report", "info",         "check",         "diff",       "doctor",   "help",      "--help",
    "t.gwt",  "b.json",       "--json",        "--steps",    "--range",  "--process", "--all",
    "--",     "--step-range", "--step-kernel", "--baseline", "--events", "all",       "1:3",
};

/* What each call finds, whatever the one before it left. */
static struct file {
    const char *name;
    uint8_t bytes[65536];
    size_t size;
    struct stat is;
} files[] = {{.name = "t.gwt"}, {.name = "b.json"}, {.name = "o.json"}};
#define FILES (sizeof files / sizeof *files)

static char directory[] = "/tmp/gpuwait-fuzz-cli.XXXXXX";
static int home, scratch, own[3], tools[3];

static void finish(void)
{
    for (size_t i = 0; i < FILES; i++)
        unlinkat(scratch, files[i].name, 0);
    unlinkat(scratch, "out", 0);
    unlinkat(scratch, "err", 0);
    unlinkat(scratch, "../in", AT_REMOVEDIR);
    rmdir(directory);
}

static void put(struct file *f)
{
    int fd = openat(scratch, f->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    MUST(fd >= 0 && write(fd, f->bytes, f->size) == (ssize_t)f->size && fstat(fd, &f->is) == 0);
    close(fd);
}

static void get(struct file *f, int from, const char *path)
{
    int fd = openat(from, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, f->bytes, sizeof f->bytes);
    MUST(n > 0);
    f->size = (size_t)n;
    close(fd);
}

static bool same(const struct file *f)
{
    struct stat is;
    return fstatat(scratch, f->name, &is, AT_SYMLINK_NOFOLLOW) == 0 && is.st_ino == f->is.st_ino &&
           is.st_size == f->is.st_size && is.st_mtim.tv_sec == f->is.st_mtim.tv_sec &&
           is.st_mtim.tv_nsec == f->is.st_mtim.tv_nsec;
}

/* An input says the same alone as behind others. */
static void reset(void)
{
    DIR *dir = fdopendir(openat(scratch, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    MUST(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        bool ours = e->d_name[0] == '.' || !strcmp(e->d_name, "out") || !strcmp(e->d_name, "err");
        for (size_t i = 0; i < FILES; i++)
            ours |= !strcmp(e->d_name, files[i].name);
        if (!ours && unlinkat(scratch, e->d_name, 0))
            unlinkat(scratch, e->d_name, AT_REMOVEDIR);
    }
    closedir(dir);
    for (size_t i = 0; i < FILES; i++)
        if (!same(&files[i])) {
            unlinkat(scratch, files[i].name, 0);
            put(&files[i]);
        }
}

/* In its directory, with its output in files: libFuzzer has both for itself otherwise. */
static int call(int argc, char **argv)
{
    MUST(ftruncate(tools[1], 0) == 0 && ftruncate(tools[2], 0) == 0);
    MUST(fchdir(scratch) == 0 && dup2(tools[1], 1) == 1 && dup2(tools[2], 2) == 2);
    optind = 0; /* getopt's word for: from the start */
    int code = tool_main(argc, argv);
    fflush(NULL);
    MUST(fchdir(home) == 0 && dup2(own[1], 1) == 1 && dup2(own[2], 2) == 2);
    return code;
}

/* Of its recording, where steps are what the tool finds or begin with a kernel. */
static void baseline(struct file *f, const char *kernel)
{
    const char *argv[] = {"gpuwait", "check",         "-b",   f->name, "-u", "--min-steps", "2",
                          "t.gwt",   "--step-kernel", kernel, NULL};
    MUST(call(kernel ? 10 : 8, (char **)argv) == TOOL_FINE);
    get(f, scratch, f->name);
    MUST(fstatat(scratch, f->name, &f->is, 0) == 0);
}

static void start(void)
{
    const char *recording = getenv("FUZZ_RECORDING");
    get(&files[0], AT_FDCWD, recording ? recording : "tests/fixtures/graph.gwt");
    home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* in one of its own, since the tool is asked to read ".." as well */
    MUST(home >= 0 && mkdtemp(directory) && chdir(directory) == 0);
    MUST(mkdir("in", 0700) == 0 && chdir("in") == 0);
    scratch = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(&files[0]);
    for (int i = 1; i <= 2; i++) {
        own[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        tools[i] = open(i == 1 ? "out" : "err", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        MUST(own[i] >= 0 && tools[i] >= 0);
    }
    __sanitizer_set_report_fd((void *)(intptr_t)own[2]);
    MUST(fchdir(home) == 0);
    atexit(finish);
    baseline(&files[1], NULL);
    baseline(&files[2], "a");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool started;
    char text[1024], *argv[ARGUMENTS + 2] = {(char *)"gpuwait"};
    int argc = 1;
    size_t used = 0, begun = 0;

    if (!started)
        start();
    started = true;
    reset();
    for (size_t i = 0; i <= size && argc <= ARGUMENTS && used < sizeof text - 1; i++) {
        if (i < size && data[i] >= 32) {
            text[used++] = data[i] == '/' ? '_' : (char)data[i];
            continue;
        }
        if (used > begun) {
            text[used++] = 0;
            argv[argc++] = text + begun;
            begun = used;
        }
        if (i < size && data[i] < sizeof words / sizeof *words && argc <= ARGUMENTS)
            argv[argc++] = (char *)words[data[i]];
    }
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "run"))
            return 0;
    struct stat printed, said;
    int code = call(argc, argv);
    MUST(code >= TOOL_FINE && code <= TOOL_NOTHING);
    MUST(fstat(tools[1], &printed) == 0 && fstat(tools[2], &said) == 0);
    /* of a baseline without a metric the results tell */
    MUST(code != TOOL_USAGE || said.st_size > 0 || printed.st_size > 0);
    return 0;
}
