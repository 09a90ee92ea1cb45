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

static char directory[] = "/tmp/gpuwait-fuzz-cli.XXXXXX";
static int home, scratch, own[3], tools[3];

static void finish(void)
{
    unlinkat(scratch, "t.gwt", 0);
    unlinkat(scratch, "out", 0);
    unlinkat(scratch, "err", 0);
    unlinkat(scratch, "../in", AT_REMOVEDIR);
    rmdir(directory);
}

static void start(void)
{
    const char *recording = getenv("FUZZ_RECORDING");
    char bytes[65536];
    ssize_t n = 0;
    int fd = open(recording ? recording : "tests/fixtures/graph.gwt", O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        n = read(fd, bytes, sizeof bytes);
    MUST(n > 0);
    close(fd);
    home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* in one of its own, since the tool is asked to read ".." as well */
    MUST(home >= 0 && mkdtemp(directory) && chdir(directory) == 0);
    MUST(mkdir("in", 0700) == 0 && chdir("in") == 0);
    MUST((fd = open("t.gwt", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) >= 0);
    MUST(write(fd, bytes, (size_t)n) == n);
    close(fd);
    scratch = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 1; i <= 2; i++) {
        own[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        tools[i] = open(i == 1 ? "out" : "err", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        MUST(own[i] >= 0 && tools[i] >= 0);
    }
    __sanitizer_set_report_fd((void *)(intptr_t)own[2]);
    MUST(fchdir(home) == 0);
    atexit(finish);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool started;
    char text[1024], *argv[ARGUMENTS + 2] = {(char *)"gpuwait"};
    int argc = 1;
    size_t used = 0, begun = 0;

    if (!started)
        start();
    started = true;
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
    struct stat said;
    int code = call(argc, argv);
    MUST(code >= TOOL_FINE && code <= TOOL_NOTHING);
    MUST(fstat(tools[2], &said) == 0 && (code != TOOL_USAGE || said.st_size > 0));
    return 0;
}
