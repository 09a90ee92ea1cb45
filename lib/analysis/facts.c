/* Who was recorded, and how whole the recording is. */
#include "tally.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- who ------------------------------------------------------------------------ */

static int rank_of(const struct gwt_trace *trace)
{
    static const char *const keys[] = {"env.RANK", "env.OMPI_COMM_WORLD_RANK", "env.PMI_RANK",
                                       "env.SLURM_PROCID"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        const char *text = gwt_fact(trace, keys[i]);
        char *end;
        if (!text || !*text)
            continue;
        long rank = strtol(text, &end, 10);
        if (!*end && rank >= 0 && rank < INT32_MAX)
            return (int)rank;
    }
    return -1;
}

void gwa_identify(const struct gwt_trace *trace, struct gwa_identity *out)
{
    const struct gwt_file_header *header = gwt_header(trace);
    *out = (struct gwa_identity){
        .pid = header->pid,
        .host = gwt_fact(trace, "host"),
        .command = gwt_fact(trace, "command"),
        .rank = rank_of(trace),
        .clock = header->clock == GWT_CLOCK_TSC ? "tsc" : "monotonic",
    };
}

bool gwa_version_at(const struct gwt_trace *trace, size_t index, const char **what,
                    const char **version)
{
    static const char *const prefixes[] = {"version.", "library."};
    const char *key, *value;
    for (size_t i = 0; gwt_fact_at(trace, i, &key, &value); i++) {
        size_t skip = 0;
        for (size_t p = 0; p < sizeof(prefixes) / sizeof(*prefixes) && !skip; p++)
            if (!strncmp(key, prefixes[p], strlen(prefixes[p])))
                skip = strlen(prefixes[p]);
        if ((skip || !strcmp(key, "gpuwait")) && !index--) {
            *what = key + skip;
            *version = value;
            return true;
        }
    }
    return false;
}

/* ---- how whole --------------------------------------------------------------------- */

static void flaw(struct gwa_flaw *list, size_t *n, unsigned id, uint64_t amount, bool present)
{
    if (present)
        list[(*n)++] = (struct gwa_flaw){.id = (uint8_t)id, .amount = amount};
}

size_t gwa_flaws(const struct gwt_trace *trace, struct gwa_flaw list[GWA_FLAW_COUNT])
{
    const struct gwt_coverage *c = gwt_coverage(trace);
    uint64_t no_ring = gwt_counter(trace, GWT_C_NO_RING);
    size_t n = 0;
#define COUNTED(id, number) flaw(list, &n, GWA_FLAW_##id, (number), (number) != 0)
#define SEEN(id, present)   flaw(list, &n, GWA_FLAW_##id, 0, (present))
    COUNTED(DROPPED, c->dropped > no_ring ? c->dropped - no_ring : 0);
    COUNTED(MISSING, c->missing);
    COUNTED(BAD_FRAMES, c->bad_frames);
    SEEN(TORN, c->torn);
    SEEN(RING_MISSING, c->ring_missing);
    COUNTED(AGGREGATED, c->aggregated);
    COUNTED(STOPPED, gwt_counter(trace, GWT_C_WRITE_ERRNO));
    COUNTED(NO_RING, no_ring);
    COUNTED(DEFINITIONS, gwt_counter(trace, GWT_C_DEFINITIONS_LOST));
    COUNTED(HOLES, gwt_counter(trace, GWT_C_HOLES));
    COUNTED(UNDECODED, gwt_counter(trace, GWT_C_UNDECODED));
#undef COUNTED
#undef SEEN
    return n;
}

double gwa_own_host_ms(const struct gwt_trace *trace)
{
    uint64_t cost = gwt_counter(trace, GWT_C_CALL_NS_X1000);
    if (!cost)
        return NAN;
    double calls = (double)gwt_coverage(trace)->events + (double)gwt_counter(trace, GWT_C_POLLS);
    return (calls * (double)cost / 1e3 + (double)gwt_counter(trace, GWT_C_SETUP_NS) +
            (double)gwt_counter(trace, GWT_C_SAMPLER_HOST_NS) +
            (double)gwt_counter(trace, GWT_C_DRAIN_CPU_NS)) /
           1e6;
}

void gwa_finish_quality(struct gwa_tally *t, struct gwa_process *p)
{
    struct gwa_quality *q = &p->quality;
    q->recorded = p->coverage->events;
    q->dropped = p->coverage->dropped;
    q->flaws_count = gwa_flaws(t->trace, q->flaws);
    flaw(q->flaws, &q->flaws_count, GWA_FLAW_GRAPHS, t->approximate, t->approximate != 0);
    q->complete = !q->flaws_count;
    q->own_host_ms = gwa_own_host_ms(t->trace);
    q->own_overhead_pct = q->own_host_ms / (gwa_counted_s(p) * 1e3) * 100;
    /* of the whole recording, which a range's window says nothing about */
    if (!t->ranges.all)
        q->own_overhead_pct = NAN;
}

/* ---- calls that did not return ---------------------------------------------------------- */

static int by_age(const void *a, const void *b)
{
    double x = ((const struct gwa_stuck *)a)->seconds, y = ((const struct gwa_stuck *)b)->seconds;
    return x > y ? -1 : x < y;
}

/* A live job is nearly always inside some call: only a long one is worth a word. */
#define LIVE_CALL_S 0.1

int gwa_finish_stuck(struct gwa_tally *t, struct gwa_process *p)
{
    struct gwa_quality *q = &p->quality;
    struct gwt_thread_info info;
    size_t n = 0;
    int64_t now = t->end > p->coverage->seen_ns ? t->end : p->coverage->seen_ns;
    if (p->coverage->ended)
        return 0;
    if (p->coverage->alive) {
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        now = ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
    }
    for (size_t i = 0; gwt_thread_at(t->trace, i, &info); i++)
        n += info.open_api != NULL;
    q->stuck = calloc(n ? n : 1, sizeof(*q->stuck));
    if (!q->stuck)
        return -ENOMEM;
    for (size_t i = 0; q->stuck_count < n && gwt_thread_at(t->trace, i, &info); i++) {
        double seconds = ((double)now - (double)info.open_since_ns) / 1e9;
        if (!info.open_api || (p->coverage->alive && seconds < LIVE_CALL_S))
            continue;
        q->stuck[q->stuck_count++] = (struct gwa_stuck){.api = info.open_api,
                                                        .thread_name = info.name,
                                                        .tid = info.tid,
                                                        .seconds = seconds < 0 ? 0 : seconds};
    }
    qsort(q->stuck, q->stuck_count, sizeof(*q->stuck), by_age);
    return 0;
}
