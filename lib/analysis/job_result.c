/* From what the join and the analyses left to the job's figures. */
#include "job_internal.h"
#include "order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LATE_MOST JOB_LOOKS
/* Copies this much slower than the middle rank's are so for their link. */
#define SLOW_LINK 0.8
/* A class that is so much of the time by which a host was late, the rest being unknown. */
#define TELLING 0.2

#define X(id, key, text) [GWA_LATE_##id] = text,
const char *gwa_late_cause_text(unsigned cause)
{
    static const char *const texts[] = {GWA_LATE_CAUSES(X)};
    return cause < GWA_LATE_CAUSE_COUNT ? texts[cause] : "unknown";
}
#undef X

#define X(id, key, text) [GWA_LATE_##id] = #key,
const char *gwa_late_cause_key(unsigned cause)
{
    static const char *const keys[] = {GWA_LATE_CAUSES(X)};
    return cause < GWA_LATE_CAUSE_COUNT ? keys[cause] : "unknown";
}
#undef X

void gwa_job_result_free(struct gwa_job *job)
{
    struct gwa_job_result *r = &job->result;
    struct job_findings all = {r->findings, r->findings_count};
    gwa_job_findings_free(&all);
    for (size_t i = 0; i < r->late_count; i++)
        free(r->late[i].kernel);
    free(r->ranks);
    free(r->hosts);
    free(r->ops);
    free(r->late);
    *r = (struct gwa_job_result){0};
}

/* ---- ranks and hosts ------------------------------------------------------------------- */

static int sum_ranks(struct gwa_job *job)
{
    struct gwa_job_result *out = &job->result;
    double wall = gwa_job_wall_ns(job), waited = 0, exposed = 0, n = 0;
    out->ranks = calloc(job->count ? job->count : 1, sizeof(*out->ranks));
    if (!out->ranks)
        return -ENOMEM;
    for (size_t i = 0; i < job->count; i++) {
        struct job_rank *r = &job->ranks[i];
        r->out.caused_pct = r->out.matched && out->comparable ? 100 * r->caused / wall : NAN;
        out->ranks[i] = r->out;
        out->cut |= r->rows.cut;
        if (!r->analysed || !isfinite(r->out.exposed_comm_pct))
            continue;
        exposed += r->out.exposed_comm_pct;
        waited += isfinite(r->out.comm_wait_pct) ? r->out.comm_wait_pct : 0;
        n++;
    }
    out->ranks_count = job->count;
    out->exposed_comm_pct = n > 0 ? exposed / n : NAN;
    out->wait_pct = n > 0 && out->collectives ? waited / n : NAN;
    return 0;
}

static int sum_hosts(struct gwa_job *job)
{
    struct gwa_job_result *out = &job->result;
    out->hosts = calloc(job->hosts_count ? job->hosts_count : 1, sizeof(*out->hosts));
    if (!out->hosts)
        return -ENOMEM;
    for (size_t i = 0; i < job->hosts_count; i++) {
        const struct job_host *h = &job->hosts[i];
        out->hosts[i] = (struct gwa_job_host){
            .host = h->name,
            .ranks = h->ranks,
            .aligned = h->aligned,
            .offset_s = h->aligned ? (double)h->clock.offset / 1e9 : NAN,
            .uncertainty_us = h->uncertainty_ns / 1e3,
            .jitter_us = h->jitter_ns / 1e3,
            .drift_ppm = h->aligned ? h->clock.drift * 1e6 : NAN,
            .matches = h->matches,
        };
    }
    out->hosts_count = job->hosts_count;
    return 0;
}

/* ---- whether waiting can be told --------------------------------------------------------- */

static void judge(struct gwa_job *job)
{
    struct gwa_job_result *out = &job->result;
    for (size_t i = 0; i < job->count; i++)
        for (size_t k = 0; k < job->ranks[i].rows.count; k++)
            out->unmatched += job->ranks[i].rows.list[k].comm == JOB_NO_COMM;
    for (size_t i = 0; i < job->collectives_count; i++)
        out->collectives += job->collectives[i].count > 1;
    bool told;
    out->why_not = gwa_job_why_not(job, &told);
    out->comparable = !out->why_not;
}

/* ---- operations -------------------------------------------------------------------------- */

static int by_exposed(const void *a, const void *b)
{
    const struct gwa_job_op *x = a, *y = b;
    double left = isfinite(x->exposed_ms) ? x->exposed_ms : 0,
           right = isfinite(y->exposed_ms) ? y->exposed_ms : 0;
    return (left < right) - (left > right);
}

struct op_sums {
    double posts, bytes, transfer_ns, wait_ns, link_bytes, link_ns, latency_ns, collectives;
    uint32_t ranks;
    uint64_t measured, shown;
};

static void add_collective(const struct gwa_job *job, const struct job_collective *c,
                           struct op_sums *s)
{
    const struct job_kind *t = &job->kinds[c->kind];
    /* By what all of its kind show: of one, the model may be off by more than it takes. */
    double transfer = gwa_job_transfer_ns(t, 1, (double)c->bytes);
    s->posts += c->count;
    s->bytes += (double)c->bytes * c->count;
    s->ranks = c->count > s->ranks ? c->count : s->ranks;
    s->transfer_ns += transfer * c->count;
    for (uint32_t i = 0; i < c->count; i++) {
        const struct job_post *p = &job->posts[c->posts + i];
        s->wait_ns += (double)(c->last - job->ranks[p->rank].starts[p->row]);
    }
    s->shown += c->shown != NEVER;
    if (!t->measured)
        return;
    s->measured++;
    s->link_bytes += gwa_job_op_factor(c->op, c->count) * (double)c->bytes;
    s->link_ns += transfer;
    s->latency_ns += t->ns;
}

static int sum_ops(struct gwa_job *job)
{
    struct gwa_job_result *out = &job->result;
    struct op_sums sums[JOB_OP_COUNT] = {0};
    out->ops = calloc(JOB_OP_COUNT, sizeof(*out->ops));
    if (!out->ops)
        return -ENOMEM;
    for (size_t i = 0; i < job->collectives_count; i++)
        if (job_inside(job, &job->collectives[i]))
            add_collective(job, &job->collectives[i], &sums[job->collectives[i].op]);
    for (unsigned op = 0; op < JOB_OP_COUNT; op++) {
        const struct op_sums *s = &sums[op];
        double ranks = 0;
        struct gwa_comm_use use = {0};
        if (!(s->posts > 0))
            continue;
        for (size_t i = 0; i < job->count; i++) {
            ranks += job->ranks[i].comm[op].busy_ms > 0;
            use.busy_ms += job->ranks[i].comm[op].busy_ms;
            use.exposed_ms += job->ranks[i].comm[op].exposed_ms;
            use.exposed_wait_ms += job->ranks[i].comm[op].exposed_wait_ms;
        }
        bool told = out->comparable;
        out->ops[out->ops_count++] = (struct gwa_job_op){
            .op = gwa_job_op_name(op),
            .ranks = s->ranks,
            .calls = (uint64_t)llround(s->posts / (ranks > 0 ? ranks : 1)),
            .bytes = s->bytes / (ranks > 0 ? ranks : 1),
            .transfer_ms = told && s->measured ? s->transfer_ns / ranks / 1e6 : NAN,
            .wait_ms = told ? s->wait_ns / ranks / 1e6 : NAN,
            .busy_ms = told ? use.busy_ms / ranks : NAN,
            .exposed_ms = told ? use.exposed_ms / ranks : NAN,
            .exposed_wait_ms = told ? use.exposed_wait_ms / ranks : NAN,
            .hidden_pct = told ? 100 - 100 * use.exposed_ms / use.busy_ms : NAN,
            .bus_gb_per_s = told && s->measured ? s->link_bytes / s->link_ns : NAN,
            .latency_us = told && s->measured ? s->latency_ns / (double)s->measured / 1e3 : NAN,
            .measured = s->shown,
        };
    }
    qsort(out->ops, out->ops_count, sizeof(*out->ops), by_exposed);
    return 0;
}

/* ---- the worst ---------------------------------------------------------------------------- */

static void find_worst(struct gwa_job *job)
{
    struct gwa_job_result *out = &job->result;
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < job->count; i++)
        if (job->ranks[i].known && job->ranks[i].rows.first != NEVER) {
            int64_t t = job_common(job_clock_of(job, i), job->ranks[i].rows.first);
            first = t < first ? t : first;
        }
    for (size_t i = 0; i < job->collectives_count; i++) {
        const struct job_collective *c = &job->collectives[i];
        double wait = 0;
        if (!job_inside(job, c))
            continue;
        for (uint32_t k = 0; k < c->count; k++) {
            const struct job_post *p = &job->posts[c->posts + k];
            wait += (double)(c->last - job->ranks[p->rank].starts[p->row]);
        }
        wait /= 1e6 * (double)(c->count - 1);
        size_t at = out->worst_count;
        if (at == GWA_JOB_WORST && wait <= out->worst[at - 1].wait_ms)
            continue;
        if (at == GWA_JOB_WORST)
            at--;
        else
            out->worst_count++;
        for (; at && out->worst[at - 1].wait_ms < wait; at--)
            out->worst[at] = out->worst[at - 1];
        out->worst[at] = (struct gwa_job_worst){
            .op = gwa_job_op_name(c->op),
            .communicator = job->comms[c->comm].identity,
            .index = c->number,
            .bytes = (double)c->bytes,
            .start_s = (double)(c->last - first) / 1e9,
            .wait_ms = wait,
            .transfer_ms = c->end > c->last ? (double)(c->end - c->last) / 1e6 : 0,
            .late = c->late,
        };
    }
}

/* ---- who is late ----------------------------------------------------------------------------- */

/* How much longer its kernels last than the middle rank's of the same names, over all its time. */
static int compare_kernels(const struct gwa_job *job, struct gwa_job_late *l)
{
    const struct job_rank *r = &job->ranks[l->rank];
    double *means = calloc(job->count, sizeof(*means));
    double own = 0, usual = 0, most = 0;
    if (!means)
        return -ENOMEM;
    l->slower = NAN;
    for (size_t k = 0; k < r->kernels_count; k++) {
        size_t n = 0;
        for (size_t i = 0; i < job->count; i++)
            for (size_t m = 0; i != l->rank && m < job->ranks[i].kernels_count; m++)
                if (!strcmp(job->ranks[i].kernels[m].name, r->kernels[k].name)) {
                    means[n++] = job->ranks[i].kernels[m].mean_us;
                    break;
                }
        if (!n)
            continue;
        qsort(means, n, sizeof(*means), gwa_by_value);
        double calls = (double)r->kernels[k].calls, middle = means[n / 2];
        own += calls * r->kernels[k].mean_us;
        usual += calls * middle;
        if (calls * (r->kernels[k].mean_us - middle) > most) {
            most = calls * (r->kernels[k].mean_us - middle);
            free(l->kernel);
            l->kernel = strdup(r->kernels[k].name);
        }
    }
    free(means);
    if (usual > 0)
        l->slower = own / usual;
    return 0;
}

static int compare_copies(const struct gwa_job *job, struct gwa_job_late *l)
{
    double *list = calloc(job->count, sizeof(*list));
    size_t n = 0;
    if (!list)
        return -ENOMEM;
    for (size_t i = 0; i < job->count; i++)
        if (i != l->rank && isfinite(job->ranks[i].copy_gb_per_s))
            list[n++] = job->ranks[i].copy_gb_per_s;
    qsort(list, n, sizeof(*list), gwa_by_value);
    l->copy_gb_per_s = job->ranks[l->rank].copy_gb_per_s;
    l->usual_gb_per_s = n ? list[n / 2] : NAN;
    free(list);
    return 0;
}

static void use_looks(const struct gwa_job *job, struct gwa_job_late *l)
{
    const struct job_look *own = NULL, *other = NULL;
    for (size_t i = 0; i + 1 < job->looks_count; i += 2)
        if (job->looks[i].late == l->rank && job->looks[i].done && job->looks[i + 1].done) {
            own = &job->looks[i];
            other = &job->looks[i + 1];
        }
    if (!own)
        return;
    double most = 0, all = 0;
    for (unsigned c = 0; c < GWA_IDLE_CLASS_COUNT; c++) {
        double more = own->idle_ms[c] - other->idle_ms[c];
        if (!(more > 0))
            continue;
        all += more;
        if (more > most && c != GWA_IDLE_UNKNOWN) {
            most = more;
            l->class = (uint8_t)c;
        }
    }
    if (!(all > 0))
        return;
    /* Of what recurs, some occurrences tell what all are. */
    if (most < TELLING * all) {
        most = own->idle_ms[GWA_IDLE_UNKNOWN] - other->idle_ms[GWA_IDLE_UNKNOWN];
        l->class = GWA_IDLE_UNKNOWN;
    }
    l->looked = true;
    l->class_pct = 100 * most / all;
    l->python = own->site[l->class].python;
    l->api = own->site[l->class].api;
    l->after = own->site[l->class].after;
    l->before = own->site[l->class].before;
}

static int describe(struct gwa_job *job, size_t rank, double all, struct gwa_job_late *l)
{
    const struct job_rank *r = &job->ranks[rank];
    *l = (struct gwa_job_late){.rank = rank,
                               .caused_pct = 100 * r->caused / gwa_job_wall_ns(job),
                               .times = r->times,
                               .share_pct = 100 * r->caused / all,
                               .link_us = r->link_ns / 1e3};
    for (unsigned i = 0; i < GWA_LATE_CAUSE_COUNT; i++) {
        l->by_cause[i] = l->caused_pct * r->by_cause[i] / r->caused;
        if (l->by_cause[i] > l->by_cause[l->cause])
            l->cause = (uint8_t)i;
    }
    job->result.ranks[rank].outlier = true;
    use_looks(job, l);
    int rc = compare_kernels(job, l);
    if (rc || (rc = compare_copies(job, l)))
        return rc;
    if (l->copy_gb_per_s < SLOW_LINK * l->usual_gb_per_s) {
        l->by_cause[GWA_LATE_LINK] = l->by_cause[GWA_LATE_COPIES];
        l->by_cause[GWA_LATE_COPIES] = 0;
        if (l->cause == GWA_LATE_COPIES)
            l->cause = GWA_LATE_LINK;
    }
    return 0;
}

static int find_late(struct gwa_job *job)
{
    struct gwa_job_result *out = &job->result;
    size_t list[LATE_MOST];
    double all = 0;
    out->late = calloc(LATE_MOST, sizeof(*out->late));
    if (!out->late)
        return -ENOMEM;
    if (!out->comparable)
        return 0;
    for (size_t i = 0; i < job->count; i++)
        all += job->ranks[i].caused;
    size_t n = gwa_job_outliers(job, list, LATE_MOST);
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++)
        rc = describe(job, list[i], all, &out->late[out->late_count++]);
    return rc;
}

int gwa_job_sum_up(struct gwa_job *job)
{
    int rc;
    gwa_job_result_free(job);
    judge(job);
    if ((rc = sum_ranks(job)) || (rc = sum_hosts(job)) || (rc = sum_ops(job)) ||
        (rc = find_late(job)))
        return rc;
    if (job->result.comparable)
        find_worst(job);
    return 0;
}
