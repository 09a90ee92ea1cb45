/* Between attribute.c (what the host did), attribute_gaps.c (gaps, divided), attribute_parts.c
 * (their pieces), attribute_sites.c (folding), attribute_waves.c and attribute_finish.c
 * (figures). */
#ifndef GWA_ATTRIBUTE_INTERNAL_H
#define GWA_ATTRIBUTE_INTERNAL_H

#include "attribute.h"

#define NEVER        INT64_MIN
#define SECTION_NS   1000000 /* outside CUDA for so long: a section, with clocks of its own */
#define NO_CLASS     GWA_IDLE_CLASS_COUNT
#define SECTION_SITE GWA_IDLE_CLASS_COUNT /* class of a site before it is divided */
#define DEVICES      256u

/* ---- what the host did ----------------------------------------------------------------- */

enum span_what { SPAN_CALL, SPAN_SECTION };

enum span_flag {
    SPAN_WAITS = 1,   /* a blocking call: it can drain the queue */
    SPAN_TO_HOST = 2, /* COPY: D2H */
    SPAN_TO_DEVICE = 4 /* COPY: H2D */,
    SPAN_PAGEABLE = 8, /* of the copy that it is, or waits for */
    SPAN_SUBMITS = 16,
};

/* A call of a thread, or the clocks of the section before one. Spans of a thread are disjoint and
 * in order; between two calls the thread was outside CUDA. A call inside which others were made
 * is in pieces, one before, between and after each. */
struct span {
    int64_t t0, t1;
    uint32_t step;
    uint16_t api;
    uint8_t class; /* enum gwa_idle_class */
    uint8_t what;
    uint8_t phase;
    uint8_t flags;
    uint32_t kernel; /* SPAN_WAITS: signature launched last before */
    union {
        uint64_t bytes; /* copies; other blocking calls: of the copy to the host before */
        struct {
            uint32_t cpu_us, process_us, measured_us;
            uint32_t involuntary;
        } section;
    };
};

#define STACKS 64u /* newest Python stacks of a thread */

struct stack_at {
    int64_t at;
    uint32_t stack;
};

/* Time from a thread's last call to another's first is only known when it calls again. */
struct hand_over {
    struct site *site; /* NULL: none */
    int64_t from, ns;
    double other_share; /* of it, that the other thread was on the CPU */
};

struct thread {
    struct span *ring;
    size_t first, count, room; /* room: a power of two */
    size_t cursor;             /* index from `first`, where the last look-up ended */
    struct span before;        /* the newest call that was dropped; t1 NEVER: none */
    uint64_t read_bytes;       /* of the copy to the host since the last submission */
    bool read_pageable;
    bool capturing;
    struct hand_over handed;
    struct stack_at *stacks; /* STACKS of them; NULL: none was taken */
    unsigned stacks_next;
};

static inline struct span *span_at(const struct thread *th, size_t i)
{
    return &th->ring[(th->first + i) & (th->room - 1)];
}

/* ---- folding ----------------------------------------------------------------------------- */

#define SITES 4096u /* that are told apart; of drains as many */

struct site_key {
    uint16_t api, after, before;
    uint8_t device, class, origin, phase, position;
    uint8_t to_device : 1, unusual : 1;
};

#define LINES 4u

struct lines { /* Python lines by how often they were met */
    struct {
        uint32_t stack; /* one that shows it */
        uint32_t file, line;
        uint32_t votes;
    } list[LINES];
};

#define WAVES 64u /* the longest period, in steps */

struct waves {     /* how long the host took in each step, and how that goes with steps before */
    uint32_t step; /* the newest, and ... */
    double ns;     /* ... its sum so far */
    double before[WAVES]; /* by step modulo WAVES */
    double sum, squares, products[WAVES + 1];
    uint64_t steps; /* that are in these sums */
};

struct site {
    struct site_key key;
    struct site *base;   /* of an unusual one */
    struct waves *waves; /* of what leads to a copy to the device; NULL: none */
    uint64_t count;
    int64_t last_t0;
    double idle_ns; /* but of sections, of which it is in the next three */
    double cpu_ns, blocked_ns, unmeasured_ns;
    double host_ns;
    double measured, on_cpu, process; /* ns of host time */
    double involuntary, judged;       /* switches; occurrences with clocks */
    uint64_t seen;                    /* sections, those that are unusual too */
    int64_t seen_t0;                  /* the newest */
    bool seen_unusual;
    double usual_ns; /* about their median length */
    double d2h, h2d; /* bytes */
    uint64_t in_steps;
    uint32_t last_step, period, period_hits, period_misses;
    struct lines lines;
};

struct drain_key {
    uint64_t bytes;
    uint32_t kernel; /* string id of its name */
    uint16_t api;
    uint8_t device;
    uint8_t phase : 7, pageable : 1;
};
/* Keys are compared byte by byte. */
_Static_assert(sizeof(struct site_key) == 12 && sizeof(struct drain_key) == 16, "no padding");

struct drain {
    struct drain_key key;
    uint64_t count, in_steps;
    double idle_ns, waited_ns;
    int64_t last_t0;
    struct lines lines;
};

/* Rows found by a hash of their keys, at places that do not change. */
struct fold {
    void *rows;
    uint16_t *index; /* row + 1 */
    size_t count, size, key_size;
};

/* ---- gaps --------------------------------------------------------------------------------- */

#define TOP        (GWA_GAPS + 6u) /* as many equally long ones are told apart */
#define UNMEASURED 4u              /* sections of one gap that are judged at the end */

struct parts { /* of a gap */
    double ns[GWA_IDLE_CLASS_COUNT];
    struct {
        struct site *site;
        double ns;
    } open[UNMEASURED];
    double longest;
    struct site *longest_site;
    uint32_t longest_stack;     /* 0: none was taken in it */
    const struct span *drained; /* while the gap is at hand */
};

struct top_gap {
    int64_t start, ns;
    struct parts parts;
    uint16_t drained_by; /* api; 0: nothing */
};

enum quick { QUICK_DISPATCH, QUICK_LAUNCH, QUICK = QUICK_LAUNCH + GWA_LAUNCH_ORIGINS };

struct device {
    double ns[GWA_IDLE_CLASS_COUNT]; /* but of sections, which sites hold */
    double drained_ns;
    struct top_gap top[TOP];
    size_t top_count;
    struct site other[GWA_IDLE_CLASS_COUNT + 1]; /* beyond SITES */
    struct drain other_drains;
    struct site *quick[GWA_PHASE_COUNT][QUICK];
    uint32_t owner; /* thread that submitted last */
    int64_t passed;
    uint32_t last_step;
    uint64_t steps; /* in which it was idle at all */
    /* The gap under way: [from, to) divided before the spans were forgotten. */
    int64_t early_from, early_to;
    double early[GWA_IDLE_CLASS_COUNT];
};

struct gwa_attribution {
    const struct gwt_trace *trace;
    struct thread **threads;
    size_t threads_count;
    struct device *devices[DEVICES];
    unsigned devices_count; /* beyond, there are none */
    struct fold sites, drains;
    size_t spans;        /* held */
    int64_t trimmed;     /* nothing is known of before */
    uint32_t kernel;     /* signature launched last */
    struct span *nested; /* room for those inside a call, while it takes what they leave; or NULL */
    bool out_of_memory;
};

/* attribute.c. NULL: no such thread was seen */
struct thread *gwa_thread_of(const struct gwa_attribution *a, uint32_t id);
#define AFTER_NS 1000000 /* a stack taken so shortly after a blocking call shows its caller */
/* A Python stack of the thread taken in [from, to); 0: none. */
uint32_t gwa_stack_in(const struct thread *th, int64_t from, int64_t to);
/* post: NULL without memory */
struct device *gwa_attribution_device(struct gwa_attribution *a, unsigned index);

/* A gap while it is being divided. */
struct cut {
    struct gwa_attribution *a;
    struct device *d;
    unsigned device;
    uint8_t phase;
    int64_t start; /* of the gap */
    struct parts parts;
};

/* A thread's time outside CUDA, from its call `after` to the entry of `before`. */
struct hole {
    const struct thread *th; /* whose `before` is */
    int64_t t0, t1;
    const struct span *after, *before; /* NULL: not known */
    size_t before_index;
    double measured, cpu, process, involuntary; /* ns */
};

/* attribute_parts.c: [from, to) of a gap; t0, ns: all of what it was part of. */
void gwa_part_class(struct cut *c, unsigned class, double ns);
void gwa_part_quick(struct cut *c, unsigned class, unsigned origin, uint32_t step, int64_t from,
                    int64_t to, int64_t t0, int64_t ns);
void gwa_part_unknown(struct cut *c, int64_t from, int64_t to);
void gwa_part_call(struct cut *c, const struct thread *th, const struct span *s, int64_t from,
                   int64_t to);
void gwa_part_hole(struct cut *c, const struct hole *h, int64_t from, int64_t to);
/* Of the hole, on the CPU; NaN: less than half of it was measured. */
double gwa_hole_share(const struct hole *h);
void gwa_hole_clocks(struct hole *h, const struct span *s);
/* A copy to the device that the section leads to; NULL: none. */
const struct span *gwa_hole_copy(const struct hole *h);
struct site *gwa_hole_site(struct cut *c, const struct hole *h, const struct span *copy);

/* attribute_gaps.c */
/* [from, to) of a thread's time that nothing ended yet, into d->early. */
void gwa_attribution_early(struct gwa_attribution *a, struct device *d, int64_t from, int64_t to);

/* attribute_sites.c */
int gwa_fold_new(struct fold *f, size_t size, size_t key_size);
void gwa_fold_free(struct fold *f);
/* post: NULL where there is no place for one more */
void *gwa_fold_find(struct fold *f, const void *key);
struct site *gwa_site_of(struct gwa_attribution *a, const struct site_key *key);
void gwa_site_in_step(struct site *s, uint32_t step);

/* One occurrence, from t0 for ns, in that step; again for another part of the same: false. */
static inline bool gwa_site_met(struct site *s, int64_t t0, int64_t ns, uint32_t step)
{
    if (s->count && s->last_t0 == t0)
        return false;
    s->last_t0 = t0;
    s->count++;
    s->host_ns += (double)ns;
    if (step != UINT32_MAX)
        gwa_site_in_step(s, step);
    return true;
}

/* Clocks of a section: over `measured` ns so much on the CPU. */
void gwa_site_judge(struct site *s, double measured, double cpu, double process,
                    double involuntary);
/* Share on the CPU; NaN: less than 1 ms was measured in all. */
double gwa_site_share(const struct site *s);
/* Each stack of the thread's in [from, to) is a vote: they are as many as its time is long. */
void gwa_lines_vote_in(const struct gwt_trace *trace, struct lines *lines, const struct thread *th,
                       int64_t from, int64_t to);
/* One of the stacks that show the most frequent line; 0: none. */
uint32_t gwa_lines_best(const struct gwt_trace *trace, const struct lines *lines);

/* attribute_waves.c */
void gwa_waves_add(struct waves *w, uint32_t step, double ns);
/* Every how many steps the host takes long, or longest; 0: at no such rhythm. */
unsigned gwa_waves_period(const struct waves *w);

/* attribute_python.c. Whether the line called, directly or not, what the stack shows. */
bool gwa_calls(const struct gwt_trace *trace, uint32_t stack, uint32_t file, uint32_t line);
/* The innermost frame that is the program's own.
 * post: false where the stack is not known */
bool gwa_own_frame(const struct gwt_trace *trace, uint32_t stack, struct gwt_stack_frame *out);
/* post: malloc'ed "train.py:87 fetch"; NULL where not known, or without memory */
char *gwa_python_line(const struct gwt_trace *trace, uint32_t stack);

#endif
