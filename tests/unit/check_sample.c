/* Prints made-up comparisons through check's and diff's own code, for check.sh.
 * Usage: check_sample pass|fail|unsure|hostile text|all|json|junit|github|summary|diff|diff-json */
#include "compare_help.h"

#include "../../tools/render_check.h"
#include "../../tools/render_diff.h"

/* ---- what each case is -------------------------------------------------------------------- */

#define LONG_KERNEL                                                                                \
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "       \
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"

static struct gwa_per_step new_kernels[] = {
    {"gemm", 2}, {LONG_KERNEL, 40}, {"void relu<float>(float*)", 1}};
static struct gwa_per_step new_calls[] = {{"cudaMalloc", 0.5}, {"cudaStreamSynchronize", 2}};

#define EVIL "\033[2J]]><&\"'|`*\r\n::error ::%0A, \xff\xe2\x80\xae"
static struct gwa_per_step evil_kernels[] = {{EVIL, 40}, {"gemm", 2}};
static struct gwa_per_step evil_calls[] = {{"cuda" EVIL, 3}};

static struct gwa_finding old_findings[] = {
    {.id = "input-cpu",
     .what = (char[]){"The GPU waits 41.2 % of the time while a batch is prepared."},
     .where = (char[]){"train.py:87 encode"},
     .share_pct = 41.2},
    {.id = "launch-bound", .share_pct = 18.3}};
static struct gwa_finding new_findings[] = {
    {.id = "launch-bound", .share_pct = 25},
    {.id = "sync-per-step",
     .what = (char[]){"Two reads wait for the GPU in every step."},
     .share_pct = 2}};

static struct gwa_drain drains[] = {
    {.api = "cudaStreamSynchronize", .python = "jobs/train.py:101 train", .count = 50}};

static void worsen(struct gwa_process *p, struct gwa_device *d)
{
    *d = h200;
    d->drains = drains;
    d->drains_count = 1;
    d->time.idle_pct = 55;
    d->memory.peak_allocated_bytes = 3 << 29;
    p->devices = d;
    p->steps.kernels = p->steps.launches = always(43);
    p->steps.syncs = always(2);
    p->steps.graph_launches = always(0);
    p->steps.pageable_bytes = always(65536);
    p->steps.d2h_bytes = (struct gwa_spread){0, 0, 4};
    p->steps.ms = (struct gwa_spread){12, 13.1, 20};
    p->launches.host_us_per_launch = 14.2;
    p->step_kernels = new_kernels;
    p->step_kernels_count = 3;
    p->step_calls = new_calls;
    p->step_calls_count = 2;
    p->findings = new_findings;
}

static void poison(struct gwa_process *p)
{
    p->step_kernels = evil_kernels;
    p->step_calls = evil_calls;
    p->step_calls_count = 1;
    p->identity.command = "python3 " EVIL;
    p->steps.syncs = always(3);
}

struct sample {
    struct gwa_run base, now;
    struct gwa_baseline baseline;
    struct gwa_gate gate;
};

static int make(struct sample *s, const char *name)
{
    static struct gwa_device worse;
    struct gwa_process a = usual_process(), b = usual_process();
    struct gwa_process first[2], second[2];
    struct gwa_gate_options options = {.times = true};
    struct gwt_error error;
    size_t count = 1;
    a.findings = b.findings = old_findings;
    a.findings_count = b.findings_count = 2;
    first[0] = first[1] = a;
    if (!strcmp(name, "fail")) {
        worsen(&b, &worse);
        count = 2; /* rank 1 alone is worse */
    } else if (!strcmp(name, "hostile")) {
        poison(&b);
        options.allowed[GWA_KEY_SCRIPT] = true;
    } else if (!strcmp(name, "unsure")) {
        b.steps.steady = 4;
        b.launches.host_us_per_launch = NAN;
    } else if (strcmp(name, "pass")) {
        return 2;
    }
    second[0] = count == 2 ? a : b;
    second[1] = b;
    for (size_t i = 0; i < count && count == 2; i++)
        first[i].identity.rank = second[i].identity.rank = (int)i;
    s->base = run_of(first, count);
    s->now = run_of(second, count);
    gwa_baseline_begin(&s->baseline);
    gwa_baseline_update(&s->baseline, &s->base, true);
    gwa_baseline_pattern(&s->baseline.require, &s->baseline.require_count, "gemm");
    gwa_baseline_pattern(&s->baseline.forbid, &s->baseline.forbid_count, "re*float");
    /* through its text, for the lines */
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    gwa_baseline_write(&s->baseline, memory);
    fclose(memory);
    gwa_baseline_free(&s->baseline);
    if (gwa_baseline_parse(text, size, "x", &s->baseline, &error))
        return 2;
    free(text);
    return gwa_gate(&s->now, &s->baseline, &options, &s->gate) ? 2 : 0;
}

/* ---- printing ---------------------------------------------------------------------------------
 */

static int print_diff(const struct sample *s, bool json)
{
    struct gwa_diff diff;
    struct page page = page_stdout(false);
    int code = 0;
    if (gwa_diff(&s->base, &s->now, GWA_SORT_EFFECT, &diff))
        return 2;
    struct diff_report r = {&diff, "before", "after", 0};
    if (json)
        code = render_json_print(render_diff_json(&r));
    else
        render_diff(&page, &r);
    gwa_diff_free(&diff);
    return code;
}

static int print(const struct sample *s, const char *as)
{
    struct check_report r = {&s->now, &s->baseline, &s->gate, "runs/now", "ci/a:b,c.json"};
    struct page page = page_stdout(!strcmp(as, "all"));
    if (!strncmp(as, "diff", 4))
        return print_diff(s, as[4]);
    if (!strcmp(as, "json"))
        return render_json_print(render_check_json(&r));
    if (!strcmp(as, "junit"))
        render_check_junit(stdout, &r, 1764460800); /* 2025-11-30 */
    else if (!strcmp(as, "github"))
        render_check_github(stdout, &r);
    else if (!strcmp(as, "summary"))
        render_check_summary(stdout, &r);
    else
        render_check(&page, &r);
    return 0;
}

int main(int argc, char **argv)
{
    struct sample s = {0};
    if (argc != 3 || make(&s, argv[1]))
        return 2;
    int code = print(&s, argv[2]);
    gwa_gate_free(&s.gate);
    gwa_baseline_free(&s.baseline);
    gwa_run_free(&s.base);
    gwa_run_free(&s.now);
    return code;
}
