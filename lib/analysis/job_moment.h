/* Times that depend on when collectives end, which one rank's recording does not tell: a maximum
 * of sums. Two collectives are kept; of three, the one that is least likely to matter goes. */
#ifndef GWA_JOB_MOMENT_H
#define GWA_JOB_MOMENT_H

#include "job_internal.h"

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

/* ends: what is supposed of each row so far, by number. */
static inline int64_t job_moment_value(const struct job_moment *m, const int64_t *ends)
{
    int64_t t = m->host;
    for (int i = 0; i < 2; i++)
        if (m->on[i].row && ends[m->on[i].row] + m->on[i].after > t)
            t = ends[m->on[i].row] + m->on[i].after;
    return t;
}

static inline void job_moment_add(struct job_moment *m, uint32_t row, int64_t after,
                                  const int64_t *ends)
{
    if (!row)
        return;
    for (int i = 0; i < 2; i++)
        if (m->on[i].row == row) {
            if (m->on[i].after < after)
                m->on[i].after = after;
            return;
        }
    int to = !m->on[0].row ? 0 : !m->on[1].row ? 1 : -1;
    if (to < 0) {
        to = ends[m->on[0].row] + m->on[0].after <= ends[m->on[1].row] + m->on[1].after ? 0 : 1;
        if (ends[row] + after < ends[m->on[to].row] + m->on[to].after)
            return;
    }
    m->on[to].row = row;
    m->on[to].after = after;
    if (m->on[1].row && m->on[0].row > m->on[1].row) {
        __typeof__(m->on[0]) newer = m->on[0];
        m->on[0] = m->on[1];
        m->on[1] = newer;
    }
}

/* *m becomes the later of the two. */
static inline void job_moment_join(struct job_moment *m, const struct job_moment *other,
                                   const int64_t *ends)
{
    if (m->host < other->host) {
        m->host = other->host;
        m->since = other->since;
    }
    job_moment_add(m, other->on[0].row, other->on[0].after, ends);
    job_moment_add(m, other->on[1].row, other->on[1].after, ends);
    if (other->base > m->base)
        m->base = other->base;
}

#endif
