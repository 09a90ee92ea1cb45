/* What the device has been given and when it will be done with it, as far as the durations seen so
 * far tell: by stream, by copy engine, by executable graph. Idle and busy are predicted, not asked.
 */
#include "sampler.h"

#define SLOW_LINK    8       /* bytes per ns */
#define OVERTAKEN_NS 20000   /* after the predicted start */
#define GRAPH_NS     1000000 /* longer than most graphs last */
#define LARGE        262144  /* bytes of a copy that takes longer than most waits for another */
#define SHARED_NS    1000000000ull /* an engine that two streams used stays shared so long */

/* ---- streams ------------------------------------------------------------------------ */

#define BEGINS_NS  2000u
#define UNKNOWN_NS 4000u
struct gw_ahead gw_ahead = {.begins = BEGINS_NS, .unknown = UNKNOWN_NS};

/* Predictions are in ticks of the record clock, whose rate is known to a percent: enough. */
static double ticks_per_ns = 1;

uint64_t gw_ticks_of(uint64_t ns)
{
    return (uint64_t)((double)ns * ticks_per_ns);
}

void gw_sampler_clock(uint64_t ticks, uint64_t ns)
{
    if (gw_clock == GWT_CLOCK_TSC && ns)
        ticks_per_ns = (double)ticks / (double)ns;
    gw_ahead.begins = (uint32_t)gw_ticks_of(BEGINS_NS);
    gw_ahead.unknown = (uint32_t)gw_ticks_of(UNKNOWN_NS);
}

void gw_kernel_lasts(uint32_t signature, uint64_t ns)
{
    uint64_t ticks = gw_ticks_of(ns);
    if (signature < GW_KERNELS)
        gw_store_relaxed(&gw_ahead.kernels[signature],
                         ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX);
}

static void raise_to(uint64_t *word, uint64_t v)
{
    if (gw_load_relaxed(word) < v)
        gw_store_relaxed(word, v); /* races lose a few us of a prediction */
}

/* What a stream may have to share with others: a copy engine. */
static struct engine {
    uint64_t until, shared; /* `shared`: when it last went from one stream to another */
    uint32_t stream;
} engines[GWT_SAMPLE_CLASS_COUNT];

/* The newest sample of each class, while its operation waits behind the spacer or its stream: what
 * another stream is given meanwhile may go first. */
static struct ahead {
    struct gw_pair *pair;
    const struct gw_seen *graph; /* where only the same one would */
    uint64_t until;
} waiting[GWT_SAMPLE_CLASS_COUNT];

/* One that is harvested already, or another's by now, is void for nothing: no harm. */
static void overtake(unsigned class, const struct gw_seen *s, uint16_t stream, uint64_t t1)
{
    struct ahead *w = &waiting[class];
    if (t1 > gw_load_relaxed(&w->until))
        return;
    struct gw_pair *p = gw_load_relaxed(&w->pair);
    if (p && p->stream != stream && (class != GWT_SAMPLE_GRAPH || w->graph == s))
        gw_store_relaxed(&p->reason, GWT_VOID_FOREIGN);
}

static void engine_given(unsigned class, uint16_t stream, uint64_t t1, uint64_t end)
{
    struct engine *e = &engines[class];
    if (gw_load_relaxed(&e->stream) != stream) {
        if (gw_load_relaxed(&e->stream))
            gw_store_relaxed(&e->shared, t1);
        gw_store_relaxed(&e->stream, stream);
    }
    raise_to(&e->until, end);
}

/* How long it lasts, as far as samples say; a copy that has none, at least as long as it will:
 * while its engine is believed free, others that wait for it are timed. */
static uint64_t lasts(const struct gw_seen *s, unsigned class, uint64_t bytes)
{
    if (s && gw_load_acquire(&s->n)) /* partner: learn_of() */
        return (uint64_t)gw_load_float(&s->mean_ns);
    if (class == GWT_SAMPLE_H2D || class == GWT_SAMPLE_D2H)
        return UNKNOWN_NS + bytes / SLOW_LINK;
    return UNKNOWN_NS;
}

/* pre: no launch of a kernel. */
void gw_stream_given(uint16_t stream, const struct gw_frame *f, uint32_t arg, uint64_t t1)
{
    unsigned class = f->kind == GWT_GRAPH_LAUNCH      ? GWT_SAMPLE_GRAPH
                     : f->kind == GWT_MEMSET          ? GWT_SAMPLE_MEMSET
                     : GWT_F_SUB(f->flags) == GWT_D2H ? GWT_SAMPLE_D2H
                     : GWT_F_SUB(f->flags) == GWT_H2D ? GWT_SAMPLE_H2D
                                                      : GWT_SAMPLE_D2D;
    struct gw_seen *s = gw_seen_of(class, arg, f->value);
    uint64_t end = gw_ahead_by(stream, t1, gw_ticks_of(lasts(s, class, f->value)));
    if (class == GWT_SAMPLE_H2D || class == GWT_SAMPLE_D2H)
        engine_given(class, stream, t1, end);
    overtake(class, s, stream, t1);
    if (class == GWT_SAMPLE_GRAPH && !gw_load_relaxed(&gw_graphs_ran))
        gw_store_relaxed(&gw_graphs_ran, 1);
    if (class == GWT_SAMPLE_GRAPH && s) {
        gw_store_relaxed(&s->stream, stream);
        gw_store_relaxed(&s->given, t1);
        gw_store_relaxed(&s->until, end);
    }
}

void gw_stream_awaited(uint16_t stream, unsigned scope, uint64_t t1)
{
    if (scope == GWT_SCOPE_DEVICE) {
        gw_store_relaxed(&gw_ahead.all, t1); /* every stream's `until` is no later than this */
        gw_store_relaxed(&gw_ahead.all_awaited, t1);
    }
    gw_store_relaxed(&gw_ahead.streams[stream].until, t1);
    if (scope != GWT_SCOPE_EVENT) /* which may have been recorded long ago */
        gw_store_relaxed(&gw_ahead.streams[stream].awaited, t1);
}

void gw_stream_carries_collectives(uint16_t stream)
{
    gw_store_relaxed(&gw_ahead.streams[stream].collectives, 1);
}

/* ---- durations seen ----------------------------------------------------------------------- */

#define GRAPHS 1024u
#define SIZES  64u
static struct gw_seen signatures[GW_KERNELS], graphs[GRAPHS];
static struct gw_seen sizes[GWT_SAMPLE_CLASS_COUNT][SIZES];
#define FUNCTIONS 4096u /* by a hash of the handle */
static struct gw_seen functions[FUNCTIONS];

struct gw_seen *gw_seen_of(unsigned class, uint32_t arg, uint64_t value)
{
    if (class == GWT_SAMPLE_KERNEL)
        return arg && arg < GW_KERNELS ? &signatures[arg] : NULL;
    if (class == GWT_SAMPLE_GRAPH)
        return arg && arg < GRAPHS ? &graphs[arg] : NULL;
    return &sizes[class][value ? 63 - __builtin_clzll(value) : 0];
}

struct gw_seen *gw_seen_of_function(const void *func)
{
    return &functions[((uint64_t)(uintptr_t)func * 0x9e3779b97f4a7c15u) >> 52];
}

/* ---- waiting ---- */

/* An executable graph runs once at a time. Its newest launch has ended if the program waited for
 * that, or where a prediction leaves ample room. */
static bool graph_runs(const struct gw_seen *s, uint64_t now)
{
    uint64_t given = gw_load_relaxed(&s->given), until = gw_load_relaxed(&s->until);
    if (gw_load_relaxed(&gw_ahead.streams[s->stream].awaited) >= given ||
        gw_load_relaxed(&gw_ahead.all_awaited) >= given)
        return false;
    return now <
           (gw_load_relaxed(&s->n) ? until + (until - given) / 2 : given + gw_ticks_of(GRAPH_NS));
}

bool gw_would_wait(const struct gw_seen *s, unsigned class, uint16_t stream, uint64_t bytes,
                   bool busy, uint64_t now)
{
    if (class == GWT_SAMPLE_GRAPH)
        return s->given && s->stream != stream && (busy || graph_runs(s, now));
    if (class != GWT_SAMPLE_H2D && class != GWT_SAMPLE_D2H)
        return false;
    const struct engine *e = &engines[class];
    if (busy && e->shared && now - e->shared < gw_ticks_of(SHARED_NS))
        return bytes < LARGE;
    uint64_t free = e->until + (bytes < LARGE ? gw_ticks_of(GW_SPACER_LEAST_NS) : 0);
    return free > now + (bytes < LARGE ? 0 : gw_ticks_of(GW_SPACER_LEAST_NS)) &&
           (e->stream != stream || e->shared);
}

void gw_sample_waits(unsigned class, struct gw_pair *p, const struct gw_seen *s, uint64_t begins)
{
    waiting[class] =
        (struct ahead){.pair = p, .graph = s, .until = begins + gw_ticks_of(OVERTAKEN_NS)};
}

void gw_ahead_reset(void)
{
    memset(&gw_ahead, 0, offsetof(struct gw_ahead, begins));
    memset(gw_ahead.kernels, 0, sizeof gw_ahead.kernels);
    memset(signatures, 0, sizeof signatures);
    memset(graphs, 0, sizeof graphs);
    memset(sizes, 0, sizeof sizes);
    memset(functions, 0, sizeof functions);
    memset(engines, 0, sizeof engines);
    memset(waiting, 0, sizeof waiting);
}
