/* Times that depend on when collectives end, which one rank's recording does not tell: a maximum
 * of sums. Two are kept; where a third comes, which of them matters is not known before the ends
 * are, so that they become one of struct job_rows' `latest`, and the third goes on beside it. */
#ifndef GWA_JOB_MOMENT_H
#define GWA_JOB_MOMENT_H

#include "job_internal.h"

/* What is supposed of each row and each of rows->latest so far, by number. */
struct job_supposed {
    struct job_rows *rows;
    int64_t *ends, *latest;
    size_t ends_room, latest_room;
};

static inline struct job_moment job_moment_at(int64_t host)
{
    return (struct job_moment){.host = host, .since = host};
}

/* Sums that a file's nonsense has made stay below. */
#define JOB_FARTHEST ((int64_t)1 << 60)

static inline int64_t job_later(int64_t t, int64_t ns)
{
    t += ns;
    return t > JOB_FARTHEST ? JOB_FARTHEST : t;
}

/* pre: ns is below JOB_FARTHEST and above its negative. */
static inline void job_moment_later(struct job_moment *m, int64_t ns)
{
    if (m->host != NEVER)
        m->host = job_later(m->host, ns);
    m->on[0].after = job_later(m->on[0].after, ns);
    m->on[1].after = job_later(m->on[1].after, ns);
}

static inline void job_moment_from(struct job_moment *m, int64_t host)
{
    if (m->host < host)
        m->host = m->since = host;
}

static inline int64_t job_moment_value(const struct job_moment *m, const struct job_supposed *s)
{
    int64_t t = m->host;
    for (int i = 0; i < 2; i++) {
        uint32_t on = m->on[i].of;
        if (!on)
            continue;
        int64_t end =
            job_later(on & JOB_LATEST ? s->latest[on & ~JOB_LATEST] : s->ends[on], m->on[i].after);
        t = end > t ? end : t;
    }
    return t;
}

/* *m becomes the later of the two. */
void gwa_job_moment_join(struct job_supposed *s, struct job_moment *m,
                         const struct job_moment *other);
/* A call showed that `from` was at `at`, and what led there leads on to *m. */
void gwa_job_moment_lead(struct job_supposed *s, struct job_moment *m,
                         const struct job_moment *from, int64_t at);
/* The newest row that it waits for, and how long after that; 0: none. *host: raised to the times of
 * the host that are passed on the way. */
uint32_t gwa_job_moment_newest(const struct job_rows *rows, const struct job_moment *m,
                               int64_t *after, int64_t *host);

#endif
