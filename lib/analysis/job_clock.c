/* Clocks of several hosts, from collectives: all ranks of one see it end at the same moment, as
 * nearly as its transfers do. Within a host, and one boot of it, the monotonic clock is one. */
#include "job_internal.h"
#include "order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define MATCHES   5     /* fewer align nothing */
#define POINTS    401   /* that a line is drawn through */
#define DRIFT_S   5e8   /* ns: over less than that, drift is not looked for */
#define DRIFT_MAX 2e-4  /* no clock of a running host drifts further */
#define LATE_NS   20000 /* the host's own submissions do not explain an end so much later */

struct showing { /* an end as one rank saw it */
    uint32_t collective, host;
    int64_t end; /* of its own clock */
};

static int by_collective(const void *a, const void *b)
{
    const struct showing *x = a, *y = b;
    if (x->collective != y->collective)
        return x->collective < y->collective ? -1 : 1;
    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

struct point {
    double at, delta;
};

static double median(double *list, size_t count)
{
    qsort(list, count, sizeof(*list), gwa_by_value);
    return list[count / 2];
}

/* The median of the slopes between points, and of what is left (Theil and Sen). */
static int line(struct point *p, size_t n, double *offset, double *drift, double *jitter)
{
    double *list = calloc(n > 2 ? n * n / 2 : 2, sizeof(*list));
    size_t slopes = 0;
    if (!list)
        return -ENOMEM;
    *drift = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (p[k].at - p[i].at > DRIFT_S)
                list[slopes++] = (p[k].delta - p[i].delta) / (p[k].at - p[i].at);
    if (slopes >= MATCHES)
        *drift = median(list, slopes);
    if (fabs(*drift) > DRIFT_MAX)
        *drift = 0;
    for (size_t i = 0; i < n; i++)
        list[i] = p[i].delta - *drift * p[i].at;
    *offset = median(list, n);
    for (size_t i = 0; i < n; i++)
        list[i] = fabs(p[i].delta - *drift * p[i].at - *offset);
    *jitter = 1.4826 * median(list, n);
    free(list);
    return 0;
}

/* ---- one host ------------------------------------------------------------------------- */

/* post: the end on the common clock, by those of the hosts that are aligned; NEVER. */
static int64_t aligned_end(const struct gwa_job *job, const struct showing *list, size_t n)
{
    int64_t ends[64];
    size_t count = 0;
    for (size_t i = 0; i < n && count < 64; i++)
        if (job->hosts[list[i].host].aligned)
            ends[count++] = job_common(&job->hosts[list[i].host].clock, list[i].end);
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k && ends[k] < ends[k - 1]; k--) {
            int64_t other = ends[k];
            ends[k] = ends[k - 1];
            ends[k - 1] = other;
        }
    return count ? ends[(count - 1) / 2] : NEVER;
}

static int64_t own_end(const struct showing *list, size_t n, uint32_t host)
{
    size_t first = n, last = 0;
    for (size_t i = 0; i < n; i++)
        if (list[i].host == host) {
            first = first == n ? i : first;
            last = i;
        }
    return first == n ? NEVER : list[(first + last) / 2].end;
}

/* post: how many matches; some of them, spread over all, are in `points`. */
static size_t gather(const struct gwa_job *job, const struct showing *list, size_t count,
                     uint32_t host, size_t every, struct point *points, int64_t *since)
{
    size_t matches = 0;
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && list[i + n].collective == list[i].collective;)
            n++;
        int64_t own = own_end(&list[i], n, host);
        int64_t common = own == NEVER ? NEVER : aligned_end(job, &list[i], n);
        if (common == NEVER)
            continue;
        if (!matches)
            *since = own;
        if (points && matches % every == 0 && matches / every < POINTS)
            points[matches / every] =
                (struct point){.at = (double)(own - *since), .delta = (double)(own - common)};
        matches++;
    }
    return matches;
}

static int align_host(struct gwa_job *job, const struct showing *list, size_t count, uint32_t host,
                      size_t matches)
{
    struct job_host *h = &job->hosts[host];
    struct point points[POINTS];
    size_t every = (matches + POINTS - 1) / POINTS, n = (matches + every - 1) / every;
    double offset, drift, jitter;
    int64_t since = 0;
    gather(job, list, count, host, every, points, &since);
    /* differences of large offsets: relative to the first, so that none of the ns is lost */
    double first = points[0].delta;
    for (size_t i = 0; i < n; i++)
        points[i].delta -= first;
    int rc = line(points, n, &offset, &drift, &jitter);
    if (rc)
        return rc;
    h->clock =
        (struct job_clock){.offset = (int64_t)(first + offset), .since = since, .drift = drift};
    h->aligned = true;
    h->matches = matches;
    h->jitter_ns = jitter;
    h->uncertainty_ns = 1.2533 * jitter / sqrt((double)n);
    return 0;
}

static int align_hosts(struct gwa_job *job, const struct showing *list, size_t count)
{
    for (;;) {
        size_t most = 0, best = 0;
        int64_t since;
        for (size_t h = 0; h < job->hosts_count; h++) {
            if (job->hosts[h].aligned)
                continue;
            size_t matches = gather(job, list, count, (uint32_t)h, 1, NULL, &since);
            if (matches > most) {
                most = matches;
                best = h;
            }
        }
        if (most < MATCHES)
            return 0;
        int rc = align_host(job, list, count, (uint32_t)best, most);
        if (rc)
            return rc;
    }
}

/* ---- all --------------------------------------------------------------------------------- */

static size_t show(const struct gwa_job *job, struct showing *list)
{
    size_t used = 0;
    for (size_t i = 0; i < job->count; i++) {
        const struct job_rows *r = &job->ranks[i].rows;
        for (size_t k = 0; k < r->seen_count; k++) {
            const struct job_seen *s = &r->seen[k];
            const struct job_row *row = &r->list[s->newest.of - 1];
            if (row->comm == JOB_NO_COMM || (s->host != NEVER && s->at < s->host + LATE_NS))
                continue;
            list[used++] = (struct showing){.collective = row->number,
                                            .host = job->ranks[i].host,
                                            .end = s->at - s->newest.after};
        }
    }
    qsort(list, used, sizeof(*list), by_collective);
    return used;
}

static void find_usable(struct gwa_job *job)
{
    for (size_t i = 0; i < job->comms_count; i++)
        job->comms[i].usable = !job->comms[i].mixed;
    for (size_t i = 0; i < job->count; i++)
        for (size_t c = 0; c < job->ranks[i].rows.comms_count; c++) {
            uint32_t shared = job->ranks[i].rows.comms[c].shared;
            if (shared != UINT32_MAX && !job->hosts[job->ranks[i].host].aligned)
                job->comms[shared].usable = false;
        }
}

int gwa_job_align(struct gwa_job *job)
{
    size_t seen = 0, first = job->count;
    for (size_t i = 0; i < job->count; i++) {
        seen += job->ranks[i].rows.seen_count;
        if (job->ranks[i].known && first == job->count)
            first = i;
    }
    if (first == job->count)
        return 0;
    job->hosts[job->ranks[first].host].aligned = true;
    int rc = 0;
    if (job->hosts_count > 1) {
        struct showing *list = calloc(seen ? seen : 1, sizeof(*list));
        rc = list ? align_hosts(job, list, show(job, list)) : -ENOMEM;
        free(list);
    }
    find_usable(job);
    return rc;
}
