/* Timing operations on the device without CUPTI: an event before and an event after a few
 * of them, behind a short spacer kernel where the stream is idle.
 *
 * sampler.c decides and submits, on the program's own threads; ahead.c predicts what streams are
 * at; timer.c owns the thread that prepares, calibrates and harvests. Off (gw_timing = 0) it costs
 * one load per launch. */
#ifndef GW_SAMPLER_H
#define GW_SAMPLER_H

#include "gw.h"

#pragma GCC visibility push(hidden)

extern uint32_t gw_timing;   /* 1: ready, samples may be taken */
extern uint64_t gw_spending; /* ns of device time that may be spent per second */
/* As many ranks wait for each other: each waits for what the others spend. */
void gw_sampler_ranks(int ranks);
void gw_sampler_budget(void); /* post: gw_spending, by the options and the ranks */

#define GW_PAIRS 256u /* a full queue holds a pair for long */

enum gw_pair_state {
    GW_PAIR_FREE,
    GW_PAIR_TAKEN,     /* by the thread that submits */
    GW_PAIR_SUBMITTED, /* both events are in the stream */
    GW_PAIR_VOID,      /* likewise, but the time means nothing: `reason` */
};

struct gw_pair {
    uint32_t state;  /* enum gw_pair_state */
    uint32_t reason; /* enum gwt_sample_void */
    CUevent before, after;
    uint64_t t0;    /* of the timed call's record */
    uint16_t flags; /* class and variant */
    uint16_t stream;
    uint32_t arg;
    uint64_t value;
    uint32_t spacer_ns;
    const void *func; /* of a kernel, else NULL */
    bool calibrates;  /* around a kernel of ours, before the program's */
};

/* What a context needs for it. One context: programs that train have one per device, and the
 * first is where the work is. */
struct gw_pool {
    CUcontext ctx;
    unsigned device;
    CUfunction spacer, selftime, tell;
    struct gw_pair pairs[GW_PAIRS];
    volatile uint32_t *word; /* host memory that the spacer writes when it ends */
    CUdeviceptr word_device;
    CUdeviceptr stamps; /* device memory, two words for each pair: what selftime stores */
};
#define GW_SPACER_LEAST_NS 10000u
#define GW_SELFTIME_NS     3000u /* that selftime spins for */
#define GW_STAMP_BYTES     16u
extern struct gw_pool gw_pool;

static inline uint64_t gw_stamps_of(const struct gw_pair *p)
{
    return (uint64_t)gw_pool.stamps + (uint64_t)(p - gw_pool.pairs) * GW_STAMP_BYTES;
}

/* A context in which a kernel has just been launched: the first one offered is taken. */
void gw_pool_offer(void);

/* Durations seen so far, by signature id, graph id or size of copy. */
struct gw_seen {
    uint32_t n;
    float mean_ns;
    float m2;
    /* Of a function: how far samples lie from the mean of their shape, over that, squared, summed
     * up over all but each shape's first. */
    float within;
    uint32_t freedom;  /* so many */
    uint32_t taken;    /* samples begun */
    uint32_t launches; /* of a graph, as candidates saw them: its first is never timed */
    uint16_t stream;   /* of its newest launch ... */
    uint64_t given;    /* ... when that was ... */
    uint64_t until;    /* ... and when it will have ended, as far as predicted */
};
/* ahead.c */
struct gw_seen *gw_seen_of(unsigned class, uint32_t arg, uint64_t value);
/* All shapes of one function; of functions that share a place, together. */
struct gw_seen *gw_seen_of_function(const void *func);

/* pre:  driver level, before the real call. post: index of a pair, or -1: not this one. */
int gw_sample_begin(struct gw_frame *f);
/* pre:  index from gw_sample_begin(), after the real call returned `status`. */
void gw_sample_end(int index, int status);

/* When the work that streams were given will have ended, as far as predicted, in ticks: idle and
 * busy are predicted, not asked. */
#define GW_KERNELS 65536u
struct gw_ahead {
    struct {
        uint64_t until;
        uint64_t awaited;     /* when the program last waited for all of it */
        uint32_t collectives; /* some were given to it */
    } streams[UINT16_MAX + 1];
    uint64_t all; /* the latest of them; earlier once the program waited for the whole device */
    uint64_t all_awaited;
    /* Ticks from a call's return until the device begins, and that an operation lasts of which
     * nothing is known. */
    uint32_t begins, unknown;
    uint32_t kernels[GW_KERNELS]; /* ticks that one lasts, by signature; 0: not known */
};
extern struct gw_ahead gw_ahead;

void gw_kernel_lasts(uint32_t signature, uint64_t ns);
uint64_t gw_ticks_of(uint64_t ns);
/* It would wait between its events: for the same executable graph, or the same copy engine, at work
 * for another stream. Behind a spacer it starts now, on a busy stream later, when whoever else uses
 * the engine may use it again; large copies would never be timed in some programs, and lose least
 * by it. */
bool gw_would_wait(const struct gw_seen *s, unsigned class, uint16_t stream, uint64_t bytes,
                   bool busy, uint64_t now);
/* A sample of that class, whose operation is predicted to begin then. */
void gw_sample_waits(unsigned class, struct gw_pair *p, const struct gw_seen *s, uint64_t begins);
void gw_ahead_reset(void);

/* A stream gets an operation that lasts so many ticks. post: its predicted end. Races between
 * threads lose a few us of a prediction. */
static inline __attribute__((always_inline)) uint64_t gw_ahead_by(uint16_t stream, uint64_t t1,
                                                                  uint64_t lasts)
{
    uint64_t *until = &gw_ahead.streams[stream].until;
    uint64_t all = gw_load_relaxed(&gw_ahead.all), end = gw_load_relaxed(until);
    uint64_t begin = t1 + gw_load_relaxed(&gw_ahead.begins);
    if (end > all)
        end = all;
    if (end < begin)
        end = begin;
    end += lasts;
    gw_store_relaxed(until, end);
    if (all < end)
        gw_store_relaxed(&gw_ahead.all, end);
    return end;
}

/* Called once a kernel's record is made. */
static inline __attribute__((always_inline)) void gw_kernel_given(uint16_t stream,
                                                                  uint32_t signature, uint64_t t1)
{
    uint32_t lasts = signature < GW_KERNELS ? gw_load_relaxed(&gw_ahead.kernels[signature]) : 0;
    gw_ahead_by(stream, t1, lasts ? lasts : gw_load_relaxed(&gw_ahead.unknown));
}

/* The same of other operations. */
void gw_stream_given(uint16_t stream, const struct gw_frame *f, uint32_t arg, uint64_t t1);
void gw_stream_awaited(uint16_t stream, unsigned scope, uint64_t t1);
void gw_stream_carries_collectives(uint16_t stream);

/* user_timing.c: events by which the program measures. Times are ticks of the record clock. */
void gw_event_created(const void *event, unsigned flags);
/* post: whether it was created to take time stamps */
bool gw_event_recorded(const void *event, uint16_t stream, uint64_t now);
void gw_events_read(const void *start, const void *end); /* the time between them */
/* Is the stream between two of them, or may it be? Where it is not known for so many ticks: no. */
bool gw_user_times(uint16_t stream, uint64_t now, uint64_t hold);
void gw_user_timing_reset(void);

/* A submission while a sample is being submitted: is it to the same stream? */
extern const void *gw_busy_stream;
void gw_sample_foreign(const void *stream);
void gw_sampler_clock(uint64_t ticks, uint64_t ns);
extern uint32_t gw_sample_every;
/* The budget pays for this too, from any thread: time of the device, or of the program's own. */
void gw_sampler_spent(uint64_t ns);
/* Every now and then, from one thread: follows what is left of the budget. */
void gw_sampler_price(uint64_t now_ns);
extern uint32_t gw_graphs_ran; /* the program launches graphs */

/* Before the real BeginCapture, the gate being up: waits for a sample in flight. */
void gw_sample_wait(void);

/* free_memory.c, on the timer's thread: how much of the device is free. Seldom does anything. */
void gw_free_memory_ask(void);

/* Waits for the device that have returned, any thread: the device was idle a moment ago. */
extern uint64_t gw_awaited;

void gw_timer_start(void);
/* A context is about to go; NULL: perhaps the pool's. If it is, timing ends for good. */
void gw_timer_context_gone(const void *ctx);
void gw_timer_forget(void); /* in a forked child */
void gw_timer_stop(void);   /* at exit: no CUDA call of ours after it returns */
void gw_sampler_reset(void);
void gw_timer_switch(bool on); /* NVTX mark gpuwait.timing */

/* Whether this call, at the driver level, should be looked at: one load when off. */
static inline bool gw_sample_due(void)
{
    if (gw_likely(!gw_load_relaxed(&gw_timing)))
        return false;
    struct gw_thread *t = gw_self;
    return t && --t->countdown < 0;
}

#pragma GCC visibility pop
#endif
