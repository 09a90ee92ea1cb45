/* What a run was: its processes' metrics, what it ran on, and whether anything can be concluded. */
#include "compare.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int gwa_run_problem(struct gwa_run *r, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0)
        return -ENOMEM;
    for (size_t i = 0; i < r->problems_count; i++)
        if (!strcmp(r->problems[i], text)) {
            free(text);
            return 0;
        }
    char **grown = realloc(r->problems, (r->problems_count + 1) * sizeof(*grown));
    if (!grown) {
        free(text);
        return -ENOMEM;
    }
    r->problems = grown;
    grown[r->problems_count++] = text;
    return 0;
}

/* ---- keys -------------------------------------------------------------------------------------
 */

/* Options of interpreters and launchers that take a value of their own. */
static bool takes_value(const char *option)
{
    return !strcmp(option, "-W") || !strcmp(option, "-X");
}

char *gwa_script_label(const char *command)
{
    bool known = command && *command != '('; /* "(left out)" */
    char *copy = known ? strdup(command) : NULL, *save = NULL, *label = NULL;
    if (!copy)
        return NULL;
    char *word = strtok_r(copy, " ", &save);
    const char *base = word ? strrchr(word, '/') : NULL;
    base = base ? base + 1 : word;
    bool python = base && !strncmp(base, "python", 6);
    while (python && (word = strtok_r(NULL, " ", &save))) {
        if (!strcmp(word, "-c")) {
            base = "-c";
            break;
        }
        if (!strcmp(word, "-m")) {
            base = strtok_r(NULL, " ", &save);
            break;
        }
        if (takes_value(word)) {
            strtok_r(NULL, " ", &save);
            continue;
        }
        if (*word == '-')
            continue;
        const char *slash = strrchr(word, '/');
        base = slash ? slash + 1 : word;
        break;
    }
    if (base && *base)
        label = strdup(base);
    free(copy);
    return label;
}

/* Values that differ between processes or devices stand beside each other. */
static int add_key(struct gwa_run *r, unsigned key, const char *value)
{
    char *old = r->keys[key], *joined, clean[160];
    size_t n = 0;
    if (!value || !*value)
        return 0;
    for (; value[n] && n < sizeof(clean) - 1; n++)
        clean[n] = value[n] >= 0x20 && value[n] < 0x7f ? value[n] : '?';
    clean[n] = 0;
    if (!old)
        return (r->keys[key] = strdup(clean)) ? 0 : -ENOMEM;
    size_t length = strlen(clean);
    for (const char *at = old; (at = strstr(at, clean)); at++)
        if ((at == old || at[-1] == ' ') && (!at[length] || at[length] == ','))
            return 0;
    if (strlen(old) > 1000)
        return 0;
    if (asprintf(&joined, "%s, %s", old, clean) < 0)
        return -ENOMEM;
    free(old);
    r->keys[key] = joined;
    return 0;
}

static int add_keys(struct gwa_run *r, const struct gwt_trace *trace, const struct gwa_process *p)
{
    int rc = 0;
    for (unsigned k = 0; k < GWA_KEY_COUNT && !rc && trace; k++)
        if (gwa_keys[k].fact)
            rc = add_key(r, k, gwt_fact(trace, gwa_keys[k].fact));
    char *label = gwa_script_label(p->identity.command);
    if (!rc)
        rc = add_key(r, GWA_KEY_SCRIPT, label);
    free(label);
    for (size_t i = 0; i < p->devices_count && !rc; i++) {
        char sms[16] = "";
        if (p->devices[i].sms)
            snprintf(sms, sizeof(sms), "%u", p->devices[i].sms);
        rc = add_key(r, GWA_KEY_SMS, sms);
        if (!rc)
            rc = add_key(r, GWA_KEY_GPU, p->devices[i].name);
    }
    return rc;
}

/* ---- is it enough ------------------------------------------------------------------------------
 */

static int judge_recording(struct gwa_run *r, const struct gwa_process *p)
{
    unsigned pid = p->identity.pid;
    int rc = 0;
    for (size_t i = 0; i < p->quality.flaws_count && !rc; i++) {
        const struct gwa_flaw *f = &p->quality.flaws[i];
        if (f->amount && f->id != GWA_FLAW_STOPPED)
            rc = gwa_run_problem(r, "process %u: the recording is incomplete: %llu %s", pid,
                                 (unsigned long long)f->amount, gwa_flaw_text(f->id));
        else
            rc = gwa_run_problem(r, "process %u: the recording is incomplete: %s", pid,
                                 gwa_flaw_text(f->id));
    }
    if (!rc && p->coverage && p->coverage->alive)
        rc = gwa_run_problem(r, "process %u is still running", pid);
    else if (!rc && p->coverage && !p->coverage->ended)
        rc = gwa_run_problem(r, "process %u did not end by itself: it was killed", pid);
    return rc;
}

static int judge_steps(struct gwa_run *r, const struct gwa_process *p, size_t min_steps)
{
    const struct gwa_step_summary *s = &p->steps;
    size_t steady = r->processes[r->count - 1].steady;
    unsigned pid = p->identity.pid;
    if (!s->count)
        return gwa_run_problem(r,
                               "process %u: no steps were found; --step-range or --step-kernel "
                               "says what a step is",
                               pid);
    if (steady < min_steps)
        return gwa_run_problem(r, "process %u: %zu steady steps, and %zu are the least that count",
                               pid, steady, min_steps);
    if (!(s->confidence >= GWA_CONFIDENCE_LEAST))
        return gwa_run_problem(r,
                               "process %u: the steps found are doubtful (confidence %.2f); "
                               "--step-range or --step-kernel says what a step is",
                               pid, s->confidence);
    return 0;
}

/* ---- one process --------------------------------------------------------------------------------
 */

static void values_of(const struct gwa_process *p, struct gwa_spread *out)
{
    bool steps = p->steps.count > 0;
#define X(id, key, group, unit, join, gated, worse, abs, rel, text, value)                         \
    out[GWA_METRIC_##id] = (value);
    GWA_METRICS(X)
#undef X
#define X(id, key, text) out[GWA_METRIC_IDLE_##id] = GWA_OF_DEVICES(p, time.idle[GWA_IDLE_##id]);
    GWA_IDLE_CLASSES(X)
#undef X
    for (unsigned m = 0; m < GWA_METRIC_COUNT && !steps; m++)
        if (gwa_metrics[m].group == GWA_GROUP_STEP || m == GWA_METRIC_STEP_MS ||
            m == GWA_METRIC_RECOMPUTE)
            out[m] = gwa_spread_one(NAN);
}

static double mean_us_of(const struct gwa_process *p, const char *name)
{
    double ms = 0, calls = 0;
    for (size_t d = 0; d < p->devices_count; d++)
        for (size_t i = 0; i < p->devices[d].kernels_count; i++) {
            const struct gwa_kernel *k = &p->devices[d].kernels[i];
            if (!name != !k->name || (name && strcmp(name, k->name)) || isnan(k->total_ms))
                continue;
            ms += k->total_ms;
            calls += (double)k->calls;
        }
    return calls > 0 ? ms * 1e3 / calls : NAN;
}

/* The line of a call, or of a blocking call right behind a kernel, where one is known. */
static const char *line_of(const struct gwa_process *p, const char *name, bool kernel)
{
    for (size_t d = 0; d < p->devices_count && name; d++) {
        const struct gwa_device *device = &p->devices[d];
        for (size_t i = 0; i < device->drains_count; i++) {
            const struct gwa_drain *drain = &device->drains[i];
            const char *at = kernel ? drain->kernel : drain->api;
            if (drain->python && at && !strcmp(at, name))
                return drain->python;
        }
        for (size_t i = 0; i < device->sites_count && !kernel; i++) {
            const struct gwa_site *site = &device->sites[i];
            if (site->python && site->api && !strcmp(site->api, name))
                return site->python;
        }
    }
    return NULL;
}

static int add_names(struct gwa_run *r, const struct gwa_process *p)
{
    int rc = 0;
    for (size_t i = 0; i < p->step_kernels_count && !rc; i++) {
        const struct gwa_per_step *k = &p->step_kernels[i];
        rc = gwa_names_add(&r->kernels, k->name, k->calls, mean_us_of(p, k->name),
                           line_of(p, k->name, true));
    }
    for (size_t i = 0; i < p->step_calls_count && !rc; i++) {
        const struct gwa_per_step *c = &p->step_calls[i];
        rc = gwa_names_add(&r->calls, c->name, c->calls, NAN, line_of(p, c->name, false));
    }
    return rc;
}

static char *copy_of(const char *text, int *rc)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        *rc = -ENOMEM;
    return copy;
}

static void drop_findings(struct gwa_run *r)
{
    for (size_t i = 0; i < r->findings_count; i++) {
        free(r->findings[i].id);
        free(r->findings[i].what);
        free(r->findings[i].where);
    }
    free(r->findings);
    r->findings = NULL;
    r->findings_count = 0;
}

/* Those of the process that launched most speak for the run. */
static int take_findings(struct gwa_run *r, const struct gwa_process *p)
{
    int rc = 0;
    drop_findings(r);
    r->findings = calloc(p->findings_count ? p->findings_count : 1, sizeof(*r->findings));
    if (!r->findings)
        return -ENOMEM;
    for (size_t i = 0; i < p->findings_count; i++) {
        const struct gwa_finding *f = &p->findings[i];
        r->findings[r->findings_count++] = (struct gwa_run_finding){
            copy_of(f->id, &rc), copy_of(f->what, &rc), copy_of(f->where, &rc), f->share_pct};
    }
    return rc;
}

int gwa_run_add(struct gwa_run *r, const struct gwt_trace *trace, const struct gwa_process *p,
                size_t min_steps)
{
    bool most = true;
    int rc = judge_recording(r, p);
    if (rc || !(p->launches.calls + p->launches.graph_launches))
        return rc; /* it has no part in the work */
    struct gwa_run_process *grown = realloc(r->processes, (r->count + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    r->processes = grown;
    for (size_t i = 0; i < r->count; i++)
        most &= (double)p->launches.kernels > grown[i].kernels;
    struct gwa_run_process *out = &grown[r->count++];
    *out = (struct gwa_run_process){.pid = p->identity.pid,
                                    .rank = p->identity.rank,
                                    .kernels = (double)p->launches.kernels,
                                    .steady = p->steps.steady};
    values_of(p, out->values);
    r->stacks += trace ? gwt_counter(trace, GWT_C_STACKS) : 0;
    if (p->steps.count && !(p->steps.spread_pct <= r->spread_pct))
        r->spread_pct = p->steps.spread_pct;
    rc = judge_steps(r, p, min_steps ? min_steps : GWA_STEPS_LEAST);
    if (!rc)
        rc = add_keys(r, trace, p);
    if (!rc)
        rc = add_names(r, p);
    if (!rc && most)
        rc = take_findings(r, p);
    return rc;
}

/* ---- all of them
 * ----------------------------------------------------------------------------------- */

static void join(const struct gwa_run *r, unsigned m, struct gwa_spread *out)
{
    struct gwa_spread sum = {0, 0, 0}, mean = {0, 0, 0}, most = {NAN, NAN, NAN};
    double weights = 0;
    for (size_t i = 0; i < r->count; i++) {
        const struct gwa_spread *v = &r->processes[i].values[m];
        double weight = r->processes[i].kernels;
        sum = gwa_spread_sum(sum, *v);
        if (isnan(v->median))
            continue;
        if (!(v->median <= most.median))
            most = *v;
        mean.least += weight * v->least;
        mean.median += weight * v->median;
        mean.most += weight * v->most;
        weights += weight;
    }
    if (gwa_metrics[m].join == GWA_JOIN_MEAN)
        *out = weights > 0 ? (struct gwa_spread){mean.least / weights, mean.median / weights,
                                                 mean.most / weights}
                           : gwa_spread_one(NAN);
    else
        *out = gwa_metrics[m].join == GWA_JOIN_SUM ? sum : most;
}

static void look_at_ranks(struct gwa_run *r)
{
    for (size_t i = 0; i < r->count; i++)
        for (size_t j = 0; j < i; j++)
            r->rankless |= r->processes[i].rank < 0 || r->processes[i].rank == r->processes[j].rank;
}

int gwa_run_finish(struct gwa_run *r, const char *label)
{
    char number[24];
    if (!r->count)
        return gwa_run_problem(r, "no kernel was launched");
    for (unsigned m = 0; m < GWA_METRIC_COUNT; m++)
        join(r, m, &r->values[m]);
    look_at_ranks(r);
    gwa_names_sort(&r->kernels);
    gwa_names_sort(&r->calls);
    snprintf(number, sizeof(number), "%zu", r->count);
    int rc = add_key(r, GWA_KEY_PROCESSES, number);
    if (!rc && label) {
        free(r->keys[GWA_KEY_SCRIPT]);
        r->keys[GWA_KEY_SCRIPT] = NULL;
        rc = add_key(r, GWA_KEY_SCRIPT, label);
    }
    return rc;
}

void gwa_run_free(struct gwa_run *r)
{
    for (unsigned k = 0; k < GWA_KEY_COUNT; k++)
        free(r->keys[k]);
    for (size_t i = 0; i < r->problems_count; i++)
        free(r->problems[i]);
    free(r->problems);
    free(r->processes);
    gwa_names_free(&r->kernels);
    gwa_names_free(&r->calls);
    drop_findings(r);
    *r = (struct gwa_run){0};
}
