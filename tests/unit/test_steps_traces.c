/* Steps of real jobs on an H200: as many as the loop in tests/gpu/NAME.py made inside the part
 * of the recording that is kept, and what the script says of each. */
#include "timeline_replay.h"

#include "analysis/analysis.h"

#include <math.h>

static const struct job {
    const char *name;
    unsigned loop;   /* iterations; 0: the script has no loop */
    double launches; /* of each, as CUPTI counted them (NAME.truth.json); NAN: they differ */
    double micro, segments;
    const char *varies;
} jobs[] = {
    {"eager_mlp", 4, 78, 1, 0, NULL},
    /* two steps in fp32, two under autocast */
    {"conv", 4, NAN, 1, 0, "number of launches"},
    {"compile", 4, 29, 1, 0, NULL},
    {"dataloader", 12, 18, 1, 0, NULL},
    /* checkpointed layer by layer: two, and eight */
    {"llama_lora", 3, 749, 1, 2, NULL},
    {"llama_b16", 8, 1985, 1, 8, NULL},
    {"lora_mlp", 60, 178, 1, 0, NULL},
    {"compiled", 60, 64, 1, 0, NULL},
    {"generate", 12, NAN, NAN, NAN, "number of launches"},
    {"graph", 5, 0, NAN, NAN, NULL},
    {"prefetch", 150, 6, NAN, NAN, NULL},
    {"starved", 60, 9, NAN, NAN, NULL},
    {"fft_linalg", 0, NAN, NAN, NAN, NULL},
    {"nccl", 0, NAN, NAN, NAN, NULL},
};

static void same(const char *job, const char *what, double is, double should)
{
    if (!(is == should || (isnan(is) && isnan(should))))
        fail_msg("%s: %s: %g, not %g", job, what, is, should);
}

static void steps_of(const struct job *job)
{
    char path[256];
    struct gwt_trace *trace;
    struct gwa_process *p;
    struct gwt_error error = {""};
    struct gwa_options options = {0};
    snprintf(path, sizeof(path), "%s/%s.gwt", fixtures_directory(), job->name);
    assert_int_equal(gwt_open(path, &trace, &error), 0);
    assert_int_equal(gwa_analyse(trace, &options, &p, &error), 0);
    const struct gwa_step_summary *s = &p->steps;
    if (!job->loop) {
        if (s->count && s->confidence >= 0.5)
            fail_msg("%s: %zu steps, and there are none", job->name, s->count);
    } else {
        if (s->all + 1 < job->loop || s->all > job->loop + 1)
            fail_msg("%s: %zu steps, not %u", job->name, s->all, job->loop);
        assert_true(s->confidence >= 0.5);
        if (!isnan(job->launches))
            same(job->name, "launches", s->launches.median, job->launches);
        same(job->name, "micro-batches", s->micro_batches, job->micro);
        same(job->name, "recomputed segments", s->recompute_segments, job->segments);
        same(job->name, "identical", s->identical, job->varies == NULL);
        if (job->varies)
            assert_string_equal(s->varies, job->varies);
    }
    gwa_free(p);
    gwt_close(trace);
}

static void steps_are_the_loops(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++)
        steps_of(&jobs[i]);
}

/* Of one job, what a step is made of: the phases are shares of all, and recompute is a part of
 * backward about as large as forward. */
static void phases_add_up(void **state)
{
    (void)state;
    char path[256];
    struct gwt_trace *trace;
    struct gwa_process *p;
    struct gwt_error error = {""};
    struct gwa_options options = {0};
    snprintf(path, sizeof(path), "%s/llama_b16.gwt", fixtures_directory());
    assert_int_equal(gwt_open(path, &trace, &error), 0);
    assert_int_equal(gwa_analyse(trace, &options, &p, &error), 0);
    const struct gwa_step_summary *s = &p->steps;
    double sum = s->forward_pct + s->backward_pct + s->optimizer_pct;
    assert_true(fabs(sum - 100) < 0.1);
    assert_true(s->recompute_pct < s->forward_pct && s->recompute_pct > 0.7 * s->forward_pct);
    gwa_free(p);
    gwt_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_the_loops),
        cmocka_unit_test(phases_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
