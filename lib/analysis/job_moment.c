#include "job_moment.h"
#include "grow.h"

/* So far what a row or one of the latest goes on from is looked through. */
#define DEEP 4

static uint32_t newest_of(const struct job_rows *rows, uint32_t of)
{
    const struct job_latest *l = job_latest_of(rows, of);
    return l ? l->newest : of;
}

/* Whether `of` plus `after` cannot be later than `in` plus `by`, whenever what ends. */
static bool covered(const struct job_rows *rows, uint32_t of, int64_t after, uint32_t in,
                    int64_t by, unsigned deep)
{
    if (of == in)
        return after <= by;
    if (!in || !deep || newest_of(rows, of) > newest_of(rows, in))
        return false;
    const struct job_latest *l = job_latest_of(rows, in);
    if (l)
        return covered(rows, of, after, l->on[0].of, job_later(l->on[0].after, by), deep - 1) ||
               covered(rows, of, after, l->on[1].of, job_later(l->on[1].after, by), deep - 1);
    const struct job_row *r = &rows->list[in - 1];
    for (int i = 0; i < 2; i++)
        if (covered(rows, of, after, r->on[i], job_later((int64_t)r->after[i], by), deep - 1))
            return true;
    return covered(rows, of, after, r->before, by, deep - 1);
}

/* post: false: no more of them are kept, or there is no memory. */
static bool fold(struct job_supposed *s, struct job_moment *m)
{
    struct job_rows *r = s->rows;
    if (r->latest_count >= r->most ||
        gwa_reserve((void **)&r->latest, &r->latest_room, r->latest_count, sizeof(*r->latest)) ||
        gwa_reserve((void **)&s->latest, &s->latest_room, r->latest_count + 1, sizeof(*s->latest)))
        return false;
    struct job_latest *l = &r->latest[r->latest_count++];
    *l = (struct job_latest){.host = m->host,
                             .since = m->since,
                             .on = {m->on[0], m->on[1]},
                             .newest = newest_of(r, m->on[1].of)};
    s->latest[r->latest_count] = job_moment_value(m, s);
    m->host = m->since = NEVER;
    m->on[0].of = JOB_LATEST | (uint32_t)r->latest_count;
    m->on[0].after = 0;
    m->on[1].of = 0;
    return true;
}

/* The one that is least likely to matter goes, by what is supposed. post: whether the new one
 * stays. */
static bool drop(struct job_supposed *s, struct job_moment *m, const struct job_moment *one)
{
    struct job_moment first = {.host = NEVER, .on = {m->on[0]}};
    struct job_moment second = {.host = NEVER, .on = {m->on[1]}};
    bool is_first = job_moment_value(&first, s) <= job_moment_value(&second, s);
    if (job_moment_value(one, s) < job_moment_value(is_first ? &first : &second, s))
        return false;
    if (is_first)
        m->on[0] = m->on[1];
    m->on[1].of = 0;
    return true;
}

static void add(struct job_supposed *s, struct job_moment *m, uint32_t of, int64_t after)
{
    const struct job_rows *r = s->rows;
    struct job_moment one = {.host = NEVER, .on = {{of, after}}};
    if (!of)
        return;
    for (int i = 0; i < 2; i++) {
        if (m->on[i].of == of) {
            m->on[i].after = after > m->on[i].after ? after : m->on[i].after;
            return;
        }
        if (m->on[i].of && covered(r, of, after, m->on[i].of, m->on[i].after, DEEP))
            return;
    }
    for (int i = 1; i >= 0; i--)
        if (m->on[i].of && covered(r, m->on[i].of, m->on[i].after, of, after, DEEP)) {
            m->on[i] = m->on[1];
            m->on[1].of = 0;
        }
    if (m->on[1].of && !fold(s, m) && !drop(s, m, &one))
        return;
    if (!m->on[0].of) {
        m->on[0] = one.on[0];
        return;
    }
    m->on[1] = one.on[0];
    if (newest_of(r, m->on[0].of) > newest_of(r, of)) {
        m->on[1] = m->on[0];
        m->on[0] = one.on[0];
    }
}

void gwa_job_moment_join(struct job_supposed *s, struct job_moment *m,
                         const struct job_moment *other)
{
    if (m->host < other->host) {
        m->host = other->host;
        m->since = other->since;
    }
    add(s, m, other->on[0].of, other->on[0].after);
    add(s, m, other->on[1].of, other->on[1].after);
    if (other->base > m->base)
        m->base = other->base;
}

/* ---- led on ------------------------------------------------------------------------------ */

static bool goes_on_from(const struct job_rows *rows, uint32_t of, const struct job_moment *from,
                         unsigned deep)
{
    const struct job_latest *l = job_latest_of(rows, of);
    if (of && (of == from->on[0].of || of == from->on[1].of))
        return true;
    return l && deep &&
           (goes_on_from(rows, l->on[0].of, from, deep - 1) ||
            goes_on_from(rows, l->on[1].of, from, deep - 1));
}

/* A time of the host that came before `from` is led too. */
static int64_t led_host(int64_t host, int64_t since, const struct job_moment *from, int64_t at)
{
    return host != NEVER && from->host != NEVER && since < from->host
               ? job_later(host, at - from->host)
               : NEVER;
}

/* post: what does not go on from it is in *out, what does is a time of the host, returned. */
static int64_t lead(struct job_supposed *s, struct job_moment *out, uint32_t of, int64_t after,
                    const struct job_moment *from, int64_t at, unsigned deep)
{
    int64_t host = NEVER;
    if (!goes_on_from(s->rows, of, from, deep)) {
        add(s, out, of, after);
        return NEVER;
    }
    for (int k = 0; k < 2; k++)
        if (of == from->on[k].of)
            return job_later(at, after - from->on[k].after);
    struct job_latest l = *job_latest_of(s->rows, of); /* there may be more of them soon */
    if (l.host != NEVER) {
        int64_t led = led_host(l.host, l.since, from, at);
        host = job_later(led != NEVER ? led : l.host, after);
    }
    for (int k = 0; k < 2; k++) {
        int64_t by = lead(s, out, l.on[k].of, job_later(l.on[k].after, after), from, at, deep - 1);
        host = by > host ? by : host;
    }
    return host;
}

void gwa_job_moment_lead(struct job_supposed *s, struct job_moment *m,
                         const struct job_moment *from, int64_t at)
{
    int64_t host = at, led = led_host(m->host, m->since, from, at);
    struct job_moment out = {
        .host = led != NEVER ? NEVER : m->host, .since = m->since, .base = m->base};
    host = led > host ? led : host;
    for (int i = 0; i < 2; i++) {
        int64_t by = lead(s, &out, m->on[i].of, m->on[i].after, from, at, DEEP);
        host = by > host ? by : host;
    }
    if (out.host < host) {
        out.host = host;
        out.since = at;
    }
    *m = out;
}

uint32_t gwa_job_moment_newest(const struct job_rows *rows, const struct job_moment *m,
                               int64_t *after, int64_t *host)
{
    int newer = m->on[1].of ? 1 : 0;
    uint32_t of = m->on[newer].of;
    const struct job_latest *l;
    *after = m->on[newer].after;
    while ((l = job_latest_of(rows, of))) {
        if (l->host != NEVER && job_later(l->host, *after) > *host)
            *host = job_later(l->host, *after);
        newer = l->on[1].of ? 1 : 0;
        of = l->on[newer].of;
        *after = job_later(*after, l->on[newer].after);
    }
    return of;
}
