/* A baseline into its text, and what a new run changes in it. */
#include "baseline.h"

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what changes ------------------------------------------------------------------------ */

void gwa_process_name(const struct gwa_run_process *p, char out[GWA_PROCESS_NAME])
{
    snprintf(out, GWA_PROCESS_NAME, "rank %d", p->rank);
}

/* A third of the margin: a baseline that drifts is renewed before its edge flickers. */
#define PART 3.0

static bool renew(const struct gwa_margins *m, double *old, double now)
{
    if (*old == now || (isnan(*old) && isnan(now)))
        return false;
    if (!isnan(*old) && !isnan(now) && gwa_moved(m, *old, now, PART) == GWA_MOVE_NONE)
        return false;
    *old = now;
    return true;
}

static int renew_key(char **old, const char *now)
{
    char *copy;
    if ((!*old && !now) || (*old && now && !strcmp(*old, now)))
        return 0;
    copy = now ? strdup(now) : NULL;
    if (now && !copy)
        return -ENOMEM;
    free(*old);
    *old = copy;
    return 1;
}

/* Counts per step that are the same to the figures that are written stay; what is done in fewer
 * than one of ten steps is no step's work. */
#define NAMES_LEAST 0.1
#define NAMES_ABS   0.05
#define NAMES_REL   0.005

static int renew_names(struct gwa_names *old, const struct gwa_names *now)
{
    static const struct gwa_margins margins = {NAMES_ABS, NAMES_REL, NAMES_ABS, NAMES_REL};
    struct gwa_names made = {0};
    int changed = 0;
    for (size_t i = 0; i < now->count; i++) {
        if (now->list[i].calls < NAMES_LEAST)
            continue;
        const struct gwa_named *before = gwa_names_find(old, now->list[i].name);
        double calls = before ? before->calls : NAN;
        changed += renew(&margins, &calls, now->list[i].calls);
        if (gwa_names_add(&made, now->list[i].name, calls, NAN, NULL)) {
            gwa_names_free(&made);
            return -ENOMEM;
        }
    }
    for (size_t i = 0; i < old->count; i++)
        changed += !gwa_names_find(&made, old->list[i].name);
    gwa_names_free(old);
    *old = made;
    return changed;
}

static bool gated(unsigned m, bool times)
{
    return gwa_metrics[m].gated == GWA_GATED_YES ||
           (times && gwa_metrics[m].gated == GWA_GATED_TIMES);
}

static int renew_processes(struct gwa_baseline *b, const struct gwa_run *run, bool times)
{
    size_t count = run->count > 1 && !run->rankless ? run->count : 0;
    struct gwa_baseline_process *made = calloc(count ? count : 1, sizeof(*made));
    int changed = count != b->processes_count;
    if (!made)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        char name[GWA_PROCESS_NAME];
        const struct gwa_baseline_process *before = NULL;
        gwa_process_name(&run->processes[i], name);
        for (size_t j = 0; j < b->processes_count; j++)
            if (!strcmp(b->processes[j].name, name))
                before = &b->processes[j];
        made[i].name = strdup(name);
        for (unsigned m = 0; m < GWA_METRIC_COUNT; m++) {
            made[i].values[m] = before ? before->values[m] : NAN;
            if (gated(m, times))
                changed +=
                    renew(&b->margins[m], &made[i].values[m], run->processes[i].values[m].median);
        }
    }
    for (size_t i = 0; i < b->processes_count; i++)
        free(b->processes[i].name);
    free(b->processes);
    b->processes = made;
    b->processes_count = count;
    for (size_t i = 0; i < count; i++)
        if (!made[i].name)
            return -ENOMEM;
    return changed;
}

int gwa_baseline_update(struct gwa_baseline *b, const struct gwa_run *run, bool times)
{
    int changed = 0, rc = 0;
    for (unsigned k = 0; k < GWA_KEY_COUNT && rc >= 0; k++) {
        rc = renew_key(&b->keys[k], run->keys[k]);
        changed += rc;
    }
    if (rc < 0)
        return rc;
    for (unsigned m = 0; m < GWA_METRIC_COUNT; m++) {
        if (!gated(m, times))
            continue;
        changed += renew(&b->margins[m], &b->values[m], run->values[m].median) || !b->has[m];
        b->has[m] = true;
    }
    if ((rc = renew_names(&b->kernels, &run->kernels)) < 0)
        return rc;
    changed += rc;
    if ((rc = renew_names(&b->calls, &run->calls)) < 0)
        return rc;
    changed += rc;
    if ((rc = renew_processes(b, run, times)) < 0)
        return rc;
    return changed + rc;
}

/* ---- text ---------------------------------------------------------------------------------------
 */

/* As few digits as say it: 4312, 0.5, 25.31; what is read from it is written the same. */
static void put_number(FILE *out, double v)
{
    if (isnan(v))
        fputs("null", out);
    else if ((v == floor(v) || v >= 1e5) && v < 1e15)
        fprintf(out, "%.0f", v);
    else
        fprintf(out, "%.6g", v);
}

static void put_text(FILE *out, const char *text)
{
    json_t *j = json_string(text);
    char *quoted = j ? json_dumps(j, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    fputs(quoted ? quoted : "\"?\"", out);
    free(quoted);
    json_decref(j);
}

/* `,` and a new line before each but the first. */
static void next(FILE *out, bool *any, const char *indent)
{
    fprintf(out, "%s\n%s", *any ? "," : "", indent);
    *any = true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void put_patterns(FILE *out, const char *name, char **list, size_t count)
{
    if (!count)
        return;
    qsort(list, count, sizeof(*list), by_text);
    bool any = false;
    fprintf(out, " \"%s\": [", name);
    for (size_t i = 0; i < count; i++) {
        next(out, &any, "  ");
        put_text(out, list[i]);
    }
    fputs("\n ],\n", out);
}

static void put_names(FILE *out, const char *name, const struct gwa_names *n)
{
    bool any = false;
    fprintf(out, " \"%s\": {", name);
    for (size_t i = 0; i < n->count; i++) {
        next(out, &any, "  ");
        put_text(out, n->list[i].name);
        fputs(": ", out);
        put_number(out, n->list[i].calls);
    }
    fputs("\n },\n", out);
}

/* Ids in the order of their names. */
static size_t sorted(unsigned *ids, unsigned count, const char *(*name)(unsigned))
{
    for (unsigned i = 0; i < count; i++) {
        unsigned at = i;
        for (; at && strcmp(name(i), name(ids[at - 1])) < 0; at--)
            ids[at] = ids[at - 1];
        ids[at] = i;
    }
    return count;
}

static const char *metric_name(unsigned m)
{
    return gwa_metrics[m].key;
}

static const char *key_name(unsigned k)
{
    return gwa_keys[k].key;
}

static void put_keys(FILE *out, const struct gwa_baseline *b)
{
    unsigned ids[GWA_KEY_COUNT];
    bool any = false;
    size_t n = sorted(ids, GWA_KEY_COUNT, key_name);
    fputs(" \"keys\": {", out);
    for (size_t i = 0; i < n; i++) {
        const char *value = b->keys[ids[i]];
        next(out, &any, "  ");
        fprintf(out, "\"%s\": ", gwa_keys[ids[i]].key);
        if (value)
            put_text(out, value);
        else
            fputs("null", out);
    }
    fputs("\n },\n", out);
}

static void put_metric(FILE *out, const struct gwa_baseline *b, unsigned m)
{
    const struct gwa_margins *g = &b->margins[m];
    fprintf(out, "\"%s\": {\"value\": ", gwa_metrics[m].key);
    put_number(out, b->values[m]);
    fputs(", \"abs\": ", out);
    put_number(out, g->abs);
    fputs(", \"rel\": ", out);
    put_number(out, g->rel);
    if (g->below_abs != g->abs) {
        fputs(", \"below_abs\": ", out);
        put_number(out, g->below_abs);
    }
    if (g->below_rel != g->rel) {
        fputs(", \"below_rel\": ", out);
        put_number(out, g->below_rel);
    }
    fputs("}", out);
}

/* An empty line between two: changes of neighbours merge. */
static void put_metrics(FILE *out, const struct gwa_baseline *b)
{
    unsigned ids[GWA_METRIC_COUNT];
    bool any = false;
    size_t n = sorted(ids, GWA_METRIC_COUNT, metric_name);
    fputs(" \"metrics\": {", out);
    for (size_t i = 0; i < n; i++) {
        if (!b->has[ids[i]])
            continue;
        next(out, &any, any ? "\n  " : "  ");
        put_metric(out, b, ids[i]);
    }
    fputs("\n },\n", out);
}

static void put_process(FILE *out, const struct gwa_baseline_process *p)
{
    unsigned ids[GWA_METRIC_COUNT];
    bool any = false;
    size_t n = sorted(ids, GWA_METRIC_COUNT, metric_name);
    put_text(out, p->name);
    fputs(": {", out);
    for (size_t i = 0; i < n; i++) {
        if (isnan(p->values[ids[i]]))
            continue;
        next(out, &any, "   ");
        fprintf(out, "\"%s\": ", gwa_metrics[ids[i]].key);
        put_number(out, p->values[ids[i]]);
    }
    fputs("\n  }", out);
}

int gwa_baseline_write(const struct gwa_baseline *b, FILE *out)
{
    bool any = false;
    fputs("{\n", out);
    put_names(out, "calls", &b->calls);
    put_patterns(out, "forbid", b->forbid, b->forbid_count);
    put_names(out, "kernels", &b->kernels);
    put_keys(out, b);
    put_metrics(out, b);
    if (b->processes_count) {
        fputs(" \"processes\": {", out);
        for (size_t i = 0; i < b->processes_count; i++) {
            next(out, &any, "  ");
            put_process(out, &b->processes[i]);
        }
        fputs("\n },\n", out);
    }
    put_patterns(out, "require", b->require, b->require_count);
    fprintf(out, " \"schema\": %d\n}\n", GWA_BASELINE_SCHEMA);
    return fflush(out) || ferror(out) ? -EIO : 0;
}

int gwa_baseline_save(const struct gwa_baseline *b, const char *path, struct gwt_error *error)
{
    char *real = realpath(path, NULL), *temporary = NULL; /* what a link points to is replaced */
    const char *to = real ? real : path;
    struct stat st;
    mode_t mask = umask(0), mode = stat(to, &st) ? 0666 & ~mask : st.st_mode & 0777;
    FILE *out = NULL;
    int rc = -ENOMEM, fd = -1;
    umask(mask);
    if (asprintf(&temporary, "%s.XXXXXX", to) < 0)
        temporary = NULL;
    if (temporary) {
        fd = mkstemp(temporary);
        out = fd < 0 ? NULL : fdopen(fd, "w");
        rc = out ? 0 : -errno;
    }
    if (!rc && (rc = gwa_baseline_write(b, out)) == 0 &&
        (fchmod(fd, mode) || fsync(fd) || rename(temporary, to)))
        rc = -errno;
    if (out)
        fclose(out);
    else if (fd >= 0)
        close(fd);
    if (rc) {
        snprintf(error->text, sizeof(error->text), "%.200s: cannot write it: %s", path,
                 strerror(-rc));
        if (fd >= 0)
            unlink(temporary);
    }
    free(temporary);
    free(real);
    return rc;
}
