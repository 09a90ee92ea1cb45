#include "job_internal.h"
#include "durations.h"
#include "grow.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gwa_job *gwa_job_new(size_t ranks)
{
    struct gwa_job *job = calloc(1, sizeof(*job));
    if (!job)
        return NULL;
    job->count = ranks;
    job->ranks = calloc(ranks ? ranks : 1, sizeof(*job->ranks));
    if (!job->ranks || pthread_mutex_init(&job->lock, NULL)) {
        free(job->ranks);
        free(job);
        return NULL;
    }
    return job;
}

static void free_look(struct job_look *l)
{
    for (unsigned i = 0; i < GWA_IDLE_CLASS_COUNT; i++) {
        free(l->site[i].python);
        free(l->site[i].api);
        free(l->site[i].after);
        free(l->site[i].before);
    }
}

static void free_rank(struct job_rank *r)
{
    gwa_job_rows_free(&r->rows);
    gwa_job_findings_free(&r->findings);
    for (size_t i = 0; i < r->kernels_count; i++)
        free((char *)r->kernels[i].name);
    free(r->kernels);
    free(r->starts);
    free(r->latest);
    free(r->out.host);
}

void gwa_job_free(struct gwa_job *job)
{
    if (!job)
        return;
    gwa_job_result_free(job);
    for (size_t i = 0; i < job->count; i++)
        free_rank(&job->ranks[i]);
    for (size_t i = 0; i < job->hosts_count; i++)
        free(job->hosts[i].name);
    for (size_t i = 0; i < job->looks_count; i++)
        free_look(&job->looks[i]);
    pthread_mutex_destroy(&job->lock);
    free(job->hosts);
    free(job->comms);
    free(job->collectives);
    free(job->posts);
    free(job->ranks);
    free(job);
}

/* ---- scan ----------------------------------------------------------------------------- */

/* Of one boot, and of one name where that is not known, there is one monotonic clock. */
static bool same_host(const struct job_host *h, const uint8_t *boot_id, const char *name)
{
    static const uint8_t none[sizeof(h->boot_id)];
    if (memcmp(h->boot_id, boot_id, sizeof(h->boot_id)))
        return false;
    return memcmp(boot_id, none, sizeof(none)) || (h->name && name && !strcmp(h->name, name)) ||
           (!h->name && !name);
}

static int host_of(struct gwa_job *job, const uint8_t *boot_id, const char *name, uint32_t *out)
{
    size_t i = 0;
    while (i < job->hosts_count && !same_host(&job->hosts[i], boot_id, name))
        i++;
    *out = (uint32_t)i;
    if (i == job->hosts_count) {
        if (gwa_reserve((void **)&job->hosts, &job->hosts_room, i, sizeof(*job->hosts)))
            return -ENOMEM;
        struct job_host *h = &job->hosts[job->hosts_count++];
        *h = (struct job_host){.jitter_ns = NAN, .uncertainty_ns = NAN};
        memcpy(h->boot_id, boot_id, sizeof(h->boot_id));
        if (name && !(h->name = strdup(name)))
            return -ENOMEM;
    }
    job->hosts[i].ranks++;
    return 0;
}

static int introduce(struct gwa_job *job, struct job_rank *r, const struct gwt_trace *trace)
{
    struct gwa_identity who;
    gwa_identify(trace, &who);
    r->out = (struct gwa_job_rank){.rank = who.rank, .pid = who.pid};
    if (who.host && !(r->out.host = strdup(who.host)))
        return -ENOMEM;
    r->link_ns = r->copy_gb_per_s = NAN;
    r->from = INT64_MIN;
    r->to = INT64_MAX;
    pthread_mutex_lock(&job->lock);
    int rc = host_of(job, gwt_header(trace)->boot_id, who.host, &r->host);
    pthread_mutex_unlock(&job->lock);
    r->known = r->out.recorded = !rc;
    return rc;
}

int gwa_job_scan(struct gwa_job *job, size_t index, struct gwt_trace *trace,
                 const struct gwa_options *options, struct gwt_error *error)
{
    struct job_rank *r = &job->ranks[index];
    int rc = gwa_job_rows(trace, options, GWA_JOB_ROWS / job->count, &r->rows);
    if (!rc)
        rc = introduce(job, r, trace);
    if (rc == -ENOMEM)
        snprintf(error->text, sizeof(error->text), "out of memory");
    else if (rc == -ENODATA)
        snprintf(error->text, sizeof(error->text), "no event was recorded");
    return rc;
}

/* ---- join ----------------------------------------------------------------------------- */

int gwa_job_join(struct gwa_job *job)
{
    int rc;
    for (size_t i = 0; i < job->count; i++) {
        struct job_rank *r = &job->ranks[i];
        r->starts = calloc(r->rows.count ? r->rows.count : 1, sizeof(*r->starts));
        r->latest = calloc(r->rows.latest_count + 1, sizeof(*r->latest));
        if (!r->starts || !r->latest)
            return -ENOMEM;
    }
    if ((rc = gwa_job_match(job)) || (rc = gwa_job_align(job)))
        return rc;
    return gwa_job_settle(job);
}

const char *gwa_job_why_not(const struct gwa_job *job, bool *told)
{
    size_t known = 0, aligned = 0, rows = 0, vague = 0, met = 0, missing = 0;
    size_t mixed = 0, gaps = 0;
    bool sampled = true;
    for (size_t i = 0; i < job->count; i++) {
        const struct job_rows *r = &job->ranks[i].rows;
        known += job->ranks[i].known;
        rows += r->count;
        sampled &= !r->count || r->sampled;
        gaps += r->gaps;
        vague += (double)r->guessed > GWA_GUESSED_MOST * (double)r->kernels;
    }
    for (size_t i = 0; i < job->hosts_count; i++)
        aligned += job->hosts[i].aligned;
    for (size_t i = 0; i < job->collectives_count; i++)
        met += job->collectives[i].count > 1;
    for (size_t i = 0; i < job->comms_count; i++)
        missing += job->comms[i].ranks > (int)job->comms[i].members;
    for (size_t i = 0; i < job->comms_count; i++)
        mixed += job->comms[i].mixed && !job->comms[i].pair;
    *told = sampled && !vague && !gaps;
    return known < 2                    ? "there is only one rank"
           : !rows                      ? "no kernel of NCCL ran"
           : !met                       ? "no collective has a partner in another recording"
           : aligned < job->hosts_count ? "no collectives align the clocks of all hosts"
           : !sampled                   ? "some ranks were not timed on the device"
           : vague                      ? "too many kernels were never timed"
           : gaps || mixed              ? "events of some ranks are missing"
           : missing                    ? "some of its ranks were not recorded"
                                        : NULL;
}

/* ---- analyse -------------------------------------------------------------------------- */

/* From the rank's coming to a collective to its end. Where a call showed that end, the model may be
 * off by the time it comes there, start and all; what is beyond that, the collective took. */
static int64_t lasted(const struct gwa_job *job, const struct job_collective *c, int64_t start)
{
    int64_t wait = c->last > start ? c->last - start : 0;
    double ns = gwa_job_transfer_ns(&job->kinds[c->kind], 1, (double)c->bytes);
    if (c->shown != NEVER && c->anchored) {
        double off = (double)(c->end - c->last) - ns;
        double beyond = fabs(off) - gwa_job_doubt_ns(job, c);
        ns += beyond > 0 ? copysign(beyond, off) : 0;
    }
    return wait + (int64_t)fmax(ns, -(double)wait);
}

/* What the join knows of a rank's kernels of NCCL: from their start on, which the rank's own model
 * places as well as the join does. */
static int times_of(const struct gwa_job *job, size_t index, struct gwa_comm_time **out)
{
    const struct job_rank *r = &job->ranks[index];
    bool told;
    gwa_job_why_not(job, &told);
    struct gwa_comm_time *list = calloc(r->rows.count ? r->rows.count : 1, sizeof(*list));
    *out = list;
    if (!list)
        return -ENOMEM;
    for (size_t i = 0; i < r->rows.count; i++) {
        const struct job_row *row = &r->rows.list[i];
        const struct job_collective *c =
            row->comm == JOB_NO_COMM ? NULL : &job->collectives[row->number];
        list[i] = (struct gwa_comm_time){.wait = -1, .ns = -1, .op = row->op};
        if (!told || !c || c->end == NEVER || !job->comms[c->comm].usable)
            continue;
        list[i].wait = c->last > r->starts[i] ? c->last - r->starts[i] : 0;
        list[i].ns = lasted(job, c, r->starts[i]);
    }
    return 0;
}

/* Of all devices together, each as far as its window goes. */
static void sum_devices(struct job_rank *r, const struct gwa_process *p)
{
    struct gwa_job_rank *out = &r->out;
    double wall = 0, moved = 0, busy_ms = 0, waited_ms = 0;
    for (size_t i = 0; i < p->devices_count; i++) {
        const struct gwa_device *d = &p->devices[i];
        double w = d->window.wall_s;
        if (!(w > 0) || !isfinite(d->time.idle_pct))
            continue;
        wall += w;
        out->compute_pct += w * d->time.compute_pct;
        out->exposed_comm_pct += w * d->time.exposed_comm_pct;
        out->exposed_copy_pct += w * d->time.exposed_copy_pct;
        out->idle_pct += w * d->time.idle_pct;
        /* Else nothing was shown; of a job that was cut, most of it is of the time after. */
        if (isfinite(d->time.anchor_residual_pct) && !r->rows.cut)
            r->off_pct += w * d->time.anchor_residual_pct;
        for (unsigned c = 0; c < GWA_IDLE_CLASS_COUNT; c++)
            out->idle[c] += w * d->time.idle[c];
        for (unsigned c = 0; c < GWA_COMM_OPS; c++) {
            r->comm[c].busy_ms += d->comm[c].busy_ms;
            r->comm[c].exposed_ms += d->comm[c].exposed_ms;
            r->comm[c].exposed_wait_ms += d->comm[c].exposed_wait_ms;
            waited_ms += d->comm[c].exposed_wait_ms;
        }
        for (size_t k = 0; k < d->transfers_count; k++)
            if ((d->transfers[k].direction == GWT_H2D || d->transfers[k].direction == GWT_D2H) &&
                d->transfers[k].busy_ms > 0 && isfinite(d->transfers[k].gb_per_s)) {
                moved += d->transfers[k].gb_per_s * d->transfers[k].busy_ms;
                busy_ms += d->transfers[k].busy_ms;
            }
    }
    double scale = wall > 0 ? 1 / wall : NAN;
    out->wall_s = wall > 0 ? p->window.wall_s : NAN;
    out->compute_pct *= scale;
    out->exposed_comm_pct *= scale;
    out->exposed_copy_pct *= scale;
    out->idle_pct *= scale;
    r->off_pct *= scale;
    for (unsigned c = 0; c < GWA_IDLE_CLASS_COUNT; c++)
        out->idle[c] *= scale;
    out->comm_wait_pct = out->matched ? waited_ms / 10 * scale : NAN;
    r->copy_gb_per_s = busy_ms > 0 ? moved / busy_ms : NAN;
}

static int keep_kernels(struct job_rank *r, const struct gwa_process *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->devices_count; i++)
        n += p->devices[i].kernels_count;
    r->kernels = calloc(n ? n : 1, sizeof(*r->kernels));
    if (!r->kernels)
        return -ENOMEM;
    for (size_t i = 0; i < p->devices_count; i++)
        for (size_t k = 0; k < p->devices[i].kernels_count; k++) {
            const struct gwa_kernel *from = &p->devices[i].kernels[k];
            if (!from->name || !(from->mean_us > 0) || strstr(from->name, "nccl"))
                continue;
            struct gwa_kernel *to = &r->kernels[r->kernels_count];
            *to = *from;
            if (!(to->name = strdup(from->name)))
                return -ENOMEM;
            r->kernels_count++;
        }
    return 0;
}

static int keep(struct gwa_job *job, size_t index, const struct gwa_process *p)
{
    struct job_rank *r = &job->ranks[index];
    struct gwa_job_rank *out = &r->out;
    r->from = p->from;
    r->to = p->to;
    out->steps = p->steps.count;
    out->step_ms = p->steps.count ? p->steps.ms.median : NAN;
    out->launches = p->launches.calls;
    out->kernels = p->launches.kernels;
    out->collectives = r->rows.count;
    for (size_t i = 0; i < r->rows.count; i++)
        out->matched += r->rows.list[i].comm != JOB_NO_COMM;
    out->verdict = p->findings_count ? p->findings[0].id : NULL;
    sum_devices(r, p);
    r->analysed = true;
    int rc = keep_kernels(r, p);
    return rc ? rc : gwa_job_keep_findings(p, &r->findings);
}

int gwa_job_analyse(struct gwa_job *job, size_t index, struct gwt_trace *trace,
                    const struct gwa_options *options, struct gwa_process **out,
                    struct gwt_error *error)
{
    struct gwa_options o = *options;
    struct gwa_comm_time *times;
    int rc = times_of(job, index, &times);
    *out = NULL;
    if (!rc) {
        o.comm = times;
        o.comm_count = job->ranks[index].rows.count;
        rc = gwa_analyse(trace, &o, out, error);
    }
    free(times);
    if (!rc && (rc = keep(job, index, *out))) {
        gwa_free(*out);
        *out = NULL;
    }
    return rc;
}

/* ---- look ----------------------------------------------------------------------------- */

/* Another rank that was there too, and late least of all. */
static size_t reference(const struct gwa_job *job, size_t late)
{
    size_t best = late;
    for (size_t i = 0; i < job->count; i++)
        if (i != late && job->ranks[i].analysed && job->ranks[i].out.matched &&
            (best == late || job->ranks[i].caused < job->ranks[best].caused))
            best = i;
    return best;
}

size_t gwa_job_looks(struct gwa_job *job)
{
    size_t list[JOB_LOOKS / 2];
    if (gwa_job_blame(job))
        return 0;
    size_t n = gwa_job_outliers(job, list, JOB_LOOKS / 2);
    for (size_t i = 0; i < n; i++) {
        const struct job_rank *r = &job->ranks[list[i]];
        size_t other = reference(job, list[i]);
        if (r->by_cause[GWA_LATE_HOST] < r->caused / 4 || other == list[i])
            continue;
        job->looks[job->looks_count++] = (struct job_look){.late = list[i], .rank = list[i]};
        job->looks[job->looks_count++] = (struct job_look){.late = list[i], .rank = other};
    }
    return job->looks_count;
}

size_t gwa_job_look_at(const struct gwa_job *job, size_t look)
{
    return job->looks[look].rank;
}

static char *copy(const char *text, bool *failed)
{
    char *made = text ? strdup(text) : NULL;
    *failed |= text && !made;
    return made;
}

static int keep_look(struct job_look *l, const struct gwa_process *p)
{
    bool failed = false;
    for (size_t i = 0; i < p->devices_count; i++) {
        const struct gwa_device *d = &p->devices[i];
        for (unsigned c = 0; c < GWA_IDLE_CLASS_COUNT; c++)
            if (d->time.idle[c] > 0)
                l->idle_ms[c] += d->time.idle[c] / 100 * d->window.wall_s * 1e3;
        for (size_t k = 0; k < d->sites_count; k++) {
            const struct gwa_site *s = &d->sites[k];
            if (s->class >= GWA_IDLE_CLASS_COUNT || s->idle_ms <= l->site[s->class].ms)
                continue;
            __typeof__(l->site[0]) *to = &l->site[s->class];
            free(to->python);
            free(to->api);
            free(to->after);
            free(to->before);
            to->ms = s->idle_ms;
            to->python = copy(s->python, &failed);
            to->api = copy(s->api, &failed);
            to->after = copy(s->after, &failed);
            to->before = copy(s->before, &failed);
        }
    }
    l->done = true;
    return failed ? -ENOMEM : 0;
}

int gwa_job_look(struct gwa_job *job, size_t look, struct gwt_trace *trace,
                 const struct gwa_options *options, struct gwt_error *error)
{
    struct job_look *l = &job->looks[look];
    struct gwa_options o = *options;
    struct gwa_comm_time *times = NULL;
    struct gwa_interval *windows = NULL;
    struct gwa_process *p = NULL;
    int rc = gwa_job_look_windows(job, l, &windows, &o.within_count);
    if (!rc && o.within_count && !(rc = times_of(job, l->rank, &times))) {
        o.within = windows;
        o.comm = times;
        o.comm_count = job->ranks[l->rank].rows.count;
        rc = gwa_analyse(trace, &o, &p, error);
        if (!rc)
            rc = keep_look(l, p);
    }
    gwa_free(p);
    free(times);
    free(windows);
    return rc;
}

int gwa_job_finish(struct gwa_job *job, const struct gwa_job_result **out)
{
    int rc = gwa_job_blame(job);
    if (!rc)
        rc = gwa_job_sum_up(job);
    if (!rc)
        rc = gwa_job_find(job);
    *out = rc ? NULL : &job->result;
    return rc;
}
