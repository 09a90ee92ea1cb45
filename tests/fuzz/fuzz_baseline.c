/* The baseline of check: any text is refused with one line, or is one that, written, reads the same
 * and can be held against a run. */
#include "replay.h"

#include "analysis/gate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *written(const struct gwa_baseline *b)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    MUST(out);
    MUST(gwa_baseline_write(b, out) == 0);
    fclose(out);
    return text;
}

static void use(const struct gwa_baseline *b)
{
    struct gwa_device device = {.sms = 132, .name = "GPU"};
    struct gwt_coverage coverage = {.ended = true};
    struct gwa_per_step kernels[] = {{"a", 1}, {"gemm", 2}};
    struct gwa_process p = {
        .identity = {.pid = 1, .rank = 0, .command = "python train.py"},
        .coverage = &coverage,
        .launches = {.calls = 1, .kernels = 1, .host_us_per_launch = NAN},
        .devices = &device,
        .devices_count = 1,
        .steps = {.count = 20, .steady = 20, .confidence = 1, .syncs = {1, 1, 1}},
        .step_kernels = kernels,
        .step_kernels_count = 2,
    };
    struct gwa_gate_options options = {.times = true, .accept_wins = true};
    struct gwa_run run = {0};
    struct gwa_gate gate;
    MUST(gwa_run_add(&run, NULL, &p, 0) == 0);
    MUST(gwa_run_finish(&run, NULL) == 0);
    MUST(gwa_gate(&run, b, &options, &gate) == 0);
    gwa_gate_free(&gate);
    gwa_run_free(&run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gwa_baseline b, again;
    struct gwt_error error = {""};
    int rc = gwa_baseline_parse((const char *)data, size, "b.json", &b, &error);
    if (rc) {
        MUST(!strncmp(error.text, "b.json", 6));
        return 0;
    }
    char *text = written(&b);
    rc = gwa_baseline_parse(text, strlen(text), "again", &again, &error);
    if (rc) {
        fprintf(stderr, "%s\n%s\n", error.text, text);
        abort();
    }
    char *second = written(&again);
    MUST(!strcmp(text, second));
    use(&b);
    free(text);
    free(second);
    gwa_baseline_free(&b);
    gwa_baseline_free(&again);
    return 0;
}
