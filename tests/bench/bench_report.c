/* From a recording to its figures: events per second and peak memory of the reader alone and of
 * whole commands, at 1, 10 and 100 M events of a real PyTorch job (BENCH_RECORDING, else the
 * fixture of a QLoRA training). Each in a process of its own; the best of some turns, since other
 * work on the machine only adds. */
#include "bench.h"
#include "stretch.h"

#include <gpuwait/trace.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

struct cost {
    double wall_s, cpu_s, mib;
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void read_it(const char *path)
{
    static struct gwt_event events[2048];
    struct gwt_trace *trace;
    size_t n;
    int64_t sum = 0;

    if (gwt_open(path, &trace, NULL))
        _exit(1);
    while ((n = gwt_read(trace, events, sizeof(events) / sizeof(*events))))
        for (size_t i = 0; i < n; i++)
            sum ^= events[i].t1_ns;
    if (gwt_coverage(trace)->bad_frames || sum == 1)
        _exit(1);
    gwt_close(trace);
    _exit(0);
}

/* post: what a child cost that ran the command, or without one the reader. */
static struct cost once(char *const *command, const char *path)
{
    double from = now_s();
    struct rusage used;
    int status;
    pid_t pid = fork();

    if (!pid && !command)
        read_it(path);
    if (!pid) {
        int null = open("/dev/null", O_WRONLY);

        dup2(null, 1);
        execv(command[0], command);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &used) != pid || status) {
        fprintf(stderr, "bench_report: %s failed\n", command ? command[1] : "the reader");
        exit(1);
    }
    return (struct cost){.wall_s = now_s() - from,
                         .cpu_s = seconds(used.ru_utime) + seconds(used.ru_stime),
                         .mib = (double)used.ru_maxrss / 1024};
}

static struct cost best(unsigned turns, char *const *command, const char *path)
{
    struct cost least = once(command, path);

    while (--turns) {
        struct cost c = once(command, path);

        least.wall_s = c.wall_s < least.wall_s ? c.wall_s : least.wall_s;
        least.cpu_s = c.cpu_s < least.cpu_s ? c.cpu_s : least.cpu_s;
        least.mib = c.mib > least.mib ? c.mib : least.mib;
    }
    return least;
}

/* of[2]: per event, of the smallest recording. */
static void rows(const char *what, unsigned millions, struct cost c, double of[2])
{
    double events = millions * 1e6;
    char name[64];

    if (!of[0]) {
        of[0] = events / c.wall_s;
        of[1] = c.cpu_s / events;
    }
    snprintf(name, sizeof(name), "%s, %u M events", what, millions);
    bench_row(name, events / c.wall_s / 1e6, "M events/s", events / c.wall_s / of[0], "at 1 M");
    snprintf(name, sizeof(name), "%s, %u M events, CPU", what, millions);
    bench_row(name, c.cpu_s / events * 1e9, "ns/event", c.cpu_s / events / of[1], "at 1 M");
    snprintf(name, sizeof(name), "%s, %u M events, peak memory", what, millions);
    bench_row(name, c.mib, "MiB", 0, NULL);
}

static void gates(const char *tool, char *path)
{
    char baseline[512];
    char *update[] = {(char *)tool, "check", path,       "--baseline", baseline,
                      "--label",    "bench", "--update", NULL};
    char *check[] = {(char *)tool, "check", path, "--baseline", baseline, "--label", "bench", NULL};
    char *diff[] = {(char *)tool, "diff", path, path, NULL};

    snprintf(baseline, sizeof(baseline), "%s.json", path);
    once(update, path);
    bench_row("check, 10 M events", best(3, check, path).wall_s, "s", 0, NULL);
    bench_row("diff, 10 M events twice", best(3, diff, path).wall_s, "s", 0, NULL);
    unlink(baseline);
}

int main(void)
{
    static const unsigned millions[] = {1, 10, 100};
    const char *from = getenv("BENCH_RECORDING"), *tool = getenv("GPUWAIT"),
               *dir = getenv("TMPDIR");
    double read[2] = {0}, report[2] = {0};
    struct stretched s;
    char path[256];

    if (stretch_load(&s, from ? from : "tests/fixtures/scenarios/qlora.gwt")) {
        fprintf(stderr, "bench_report: cannot read the recording\n");
        return 1;
    }
    for (unsigned i = 0; i < sizeof(millions) / sizeof(*millions); i++) {
        char *command[] = {(char *)(tool ? tool : "build/gpuwait"), "report", path, NULL};
        struct stat st;

        snprintf(path, sizeof(path), "%s/gpuwait-bench-%d.gwt", dir ? dir : "/tmp", (int)getpid());
        /* each from the same start */
        stretch_free(&s);
        if (stretch_load(&s, from ? from : "tests/fixtures/scenarios/qlora.gwt") ||
            stretch_write(&s, path, millions[i] * 1000000ull) || stat(path, &st)) {
            fprintf(stderr, "bench_report: cannot write %s\n", path);
            return 1;
        }
        rows("reader", millions[i], best(millions[i] < 100 ? 5 : 2, NULL, path), read);
        rows("report", millions[i], best(millions[i] < 100 ? 5 : 2, command, path), report);
        if (millions[i] == 10)
            gates(command[0], path);
        unlink(path);
    }
    stretch_free(&s);
    return 0;
}
