/* Between durations.c (gathering and answering), durations_constants.c and durations_busy.c (what
 * pairs of events add), durations_fit.c (kernels), durations_names.c (kernels of one function) and
 * durations_copies.c (copies, memsets, graphs). */
#ifndef GWA_DURATIONS_INTERNAL_H
#define GWA_DURATIONS_INTERNAL_H

#include "durations.h"

#include <math.h>

#define BUCKETS 64 /* of copies: by the binary logarithm of their bytes */

struct stat { /* of pairs, in ns */
    uint64_t n;
    double mean, m2;
};

static inline void stat_add(struct stat *s, double v)
{
    double delta = v - s->mean;
    s->n++;
    s->mean += delta / (double)s->n;
    s->m2 += delta * (v - s->mean);
}

/* Groups of samples: of a signature in one place of the sequence, or copies of one size. */
struct group {
    uint64_t key; /* 0: empty */
    uint64_t parent;
    uint32_t owner; /* signature; copies: class and place, class * COPY_PLACES + place */
    uint8_t
        level; /* 1: by the operation before; 2: by the newest GWA_CONTEXT; 0: copies of a size */
    struct stat pairs;
    uint64_t busy; /* of these, taken in a stream that was busy, without a spacer */
    double ns;     /* expected */
    /* while fitting: its mean, how far it is believed, and the same summed over its children */
    double mean, trust, inner, inner_trust;
};

/* After the fit: what is asked for, close together. */
struct found {
    uint64_t key; /* 0: empty */
    double ns;
};

struct groups { /* open addressing */
    struct group *slots;
    size_t count, room; /* room: a power of two */
};

/* A few of many samples, each as likely as any other; then, how long each was relative to the
 * mean of all. One operation lasts as one of them did. */
#define DRAWS       16
#define DRAWS_LEAST 4 /* samples that it takes */
struct draws {
    bool ratios;
    union {
        uint32_t pair;
        float ratio;
    } of[DRAWS];
};

struct signature {
    struct stat pairs;
    struct stat spaced;  /* of these, behind a spacer */
    struct draws *draws; /* NULL: no samples, or too few */
    uint64_t launches;
    struct gwa_duration estimate;
    double elsewhere;  /* ns, in a place of which there is no sample ... */
    double apart;      /* ... and how far places are apart */
    double busy_ns;    /* by how much more a pair adds around it in a busy stream */
    uint32_t function; /* index + 1; 0: not known yet */
    uint8_t level;     /* of the groups that tell its operations apart; 0: none do */
    bool comm;
    bool node; /* in a graph */
};

struct graph {
    struct stat pairs;
    struct draws *draws;
    uint64_t launches;
    struct gwa_duration estimate;
    double gap, gap_doubt; /* between its nodes, as far as its own samples say; doubt 0: nothing */
    uint16_t stream;       /* of its first launch ... */
    bool elsewhere;        /* ... and others were in others */
};

/* Where a copy was that was timed. Behind one of the same direction a pair of events adds what it
 * adds around a kernel. Behind a spacer, or anything else, it also holds the way from one engine to
 * the other; and what a copy finds in the caches is what the operation before has left. */
enum copy_place {
    COPY_ELSEWHERE,
    COPY_SPACED, /* behind one of its direction but for the spacer */
    COPY_IN_ROW,
    COPY_PLACES
};

/* Copies of about one size. Some pairs hold a wait for the copy engine, so that the mean says
 * little: a few of them, each as likely as any other, have a median. */
#define KEPT 32
struct bucket {
    struct stat pairs;
    double bytes; /* mean */
    struct {
        uint32_t pair;
        float bytes;
    } kept[KEPT];
    double middle, spread; /* after the fit: of a pair around `bytes` */
};

struct point { /* of a class of copies: size and duration */
    double bytes, ns, error, spread;
    double pair; /* ns; 0: none was measured */
};

struct curve {
    struct point points[BUCKETS];
    size_t count;
    double fastest; /* ns per byte; 0: not known */
};

/* Launches of one function whose durations return after so many: layers that differ in a size
 * which the launch does not show, say. */
#define PERIODS 16
struct function {
    uint32_t turn;         /* launches so far */
    uint32_t period;       /* 0: they do not return */
    float factor[PERIODS]; /* of each turn, over their mean */
};

/* Of a signature's samples, so that its function's turns can be told from them, and how the
 * device's pace drifts. */
struct kept {
    int64_t at; /* its launch */
    uint64_t key[2];
    uint32_t signature, turn, pair_ns;
    bool busy;
};
#define KEPT_SAMPLES 32768u

/* A launch, so that its sample finds its place; or a sample that came before its launch. */
struct place {
    int64_t t0;
    uint64_t hash; /* what came before: of struct gwa_context */
    uint32_t last;
    uint32_t op;
    uint32_t turn; /* of its function */
    uint16_t stream;
    bool used;
};

struct early {
    int64_t t0;
    uint64_t bytes; /* of a copy */
    uint32_t signature, pair_ns;
    uint16_t stream;
    uint8_t class;
    bool busy;
};

#define PLACES 16384u /* direct mapped: the newest launches */
#define EARLY  4096u

/* What was measured now and then: the newest. Other kernels in between lengthen some of them, and
 * the mean of the middle half leaves those out. */
#define MEASURED 256u
struct measured {
    uint32_t count; /* ever */
    struct {
        float ns, weight;
    } value[MEASURED];
};

/* By what factor kernels last longer than usual, by when they were launched. */
#define DRIFT_POINTS 1024
struct drift {
    int64_t from;
    double points_per_ns;
    float factor[DRIFT_POINTS];
};

struct gwa_durations {
    const struct gwt_trace *trace;
    struct signature *signatures;
    size_t signatures_count;
    struct graph *graphs;
    size_t graphs_count;
    size_t room; /* bytes that these may still take */
    struct bucket copies[GWT_SAMPLE_CLASS_COUNT][COPY_PLACES][BUCKETS];
    struct measured constants[GWT_SAMPLE_CLASS_COUNT];
    struct measured among[2]; /* pairs around the recorder's kernel in the program's streams; 1:
                                 behind a spacer */
    struct measured gaps[2];  /* of a stream, of a graph */
    struct stat spacers;      /* ns that they last */
    struct groups groups;
    struct found *found; /* open addressing, found_room a power of two */
    size_t found_room;
    struct function *functions; /* by the name's id; the turns go on while durations are told */
    size_t functions_count;
    bool turning; /* some function has a period: else nobody asks for turns any more */
    struct kept *kept;
    uint64_t kept_count;         /* ever */
    struct gwa_context *streams; /* by id */
    size_t streams_count;
    struct place *places;
    struct early *early;
    bool early_used[EARLY]; /* apart: few are, and each launch asks */
    uint64_t samples;
    /* after the fit */
    double constant[GWT_SAMPLE_CLASS_COUNT]; /* to be taken off a pair, ns ... */
    double doubt[GWT_SAMPLE_CLASS_COUNT];    /* ... and of that, beyond the kernels' */
    double excess;  /* ns that kernels' pairs add less in the program's streams than was measured */
    double row;     /* the constant of copies between host and device in a row */
    double busy_ns; /* by how much more a pair adds around a kernel in a busy stream */
    double below, above; /* doubt of each kernel */
    bool link_known;
    double rate[GWT_SAMPLE_CLASS_COUNT]; /* bytes per ns of copies beyond those sampled */
    double variation;                    /* typical variance of a signature over mean^2 */
    struct curve curves[GWT_SAMPLE_CLASS_COUNT][2]; /* 1: in a row */
    double gap, gap_doubt;                          /* the same by all graphs */
    struct drift *drift;                            /* NULL: no more than chance */
    struct gwa_duration unknown;                    /* kernels whose signature says nothing */
};

/* durations_turns.c. The turn of one more launch; post: NULL or its function. */
struct function *gwa_durations_turn(const struct gwa_durations *d, const struct signature *s);
void gwa_durations_turn_graph(const struct gwa_durations *d, uint32_t graph);
int gwa_durations_find_function(struct gwa_durations *d, struct signature *s, uint32_t signature);
int gwa_durations_keep(struct gwa_durations *d, const struct kept *k);
/* Finds the functions whose turns differ; their samples count as those of a mean turn from then
 * on. After the constants, before all else. post: 0 or -ENOMEM. */
int gwa_durations_fit_turns(struct gwa_durations *d);

struct keys {
    uint64_t key[2];
};
struct keys gwa_durations_keys(uint32_t op, const struct gwa_context *c);
uint64_t gwa_durations_size_key(unsigned class, enum copy_place place, uint64_t bytes);
/* There are no more events. post: 0 or -ENOMEM. */
int gwa_durations_no_more(struct gwa_durations *d);
int gwa_durations_file(struct gwa_durations *d, uint32_t signature, const uint64_t key[2],
                       double pair_ns, bool busy);
/* pre: n samples have been added to its mean, this one among them. */
int gwa_durations_add_draw(struct draws **draws, uint64_t n, uint32_t pair);
struct group *gwa_durations_group(const struct groups *g, uint64_t key);
const struct found *gwa_durations_found(const struct gwa_durations *d, uint64_t key);
unsigned gwa_durations_bucket(uint64_t bytes);
/* post: ratios; or freed, where the samples are too few. */
void gwa_durations_fit_draws(const struct gwa_durations *d, struct draws **draws, uint64_t n,
                             unsigned class);

/* durations_constants.c */
void gwa_durations_constant(struct gwa_durations *d, const struct gwt_event *e);
/* post: the usual, how far off it may be; false where nothing was measured. */
bool gwa_durations_measured(const struct measured *m, double *ns, double *error);
/* The same where nothing else was at work. */
bool gwa_durations_undisturbed(const struct measured *m, double *ns);

/* What a pair adds around a kernel in a stream of the program's. */
struct adds {
    double ns, error;           /* behind a spacer */
    double busy_ns, busy_error; /* by how much more in a busy stream */
    bool
        own; /* as far as the recorder's own stream says: none of its kernels was in one of these */
};
/* own_ns, own_error: in a stream of the recorder's own. */
struct adds gwa_durations_adds(const struct gwa_durations *d, double own_ns, double own_error);

/* By how much the constant of kernels is more than the program's shortest leave room for: it is
 * measured in a stream of the recorder's own, which has to get its turn on a busy device, and at
 * each of its events; those of the program's own stream do not. pre: busy_ns is fitted. */
double gwa_durations_excess(const struct gwa_durations *d);

/* ---- fitting ---- */

#define FLOOR_NS 32 /* the device's timer moves in such steps */

/* Samples that a variance is supposed to rest on before its own count. */
#define PRIOR 2

/* What lies between a pair's events, given how long the pair took. */
double gwa_durations_ns(const struct gwa_durations *d, unsigned class, double pair_ns);
/* durations_busy.c. Fits busy_ns, expected as in `adds`; doubt: how far off it may be.
 * post: 0 or -ENOMEM. */
int gwa_durations_fit_busy(struct gwa_durations *d, const struct adds *adds, double *doubt);
/* durations_names.c */
int gwa_durations_fit_names(struct gwa_durations *d);
/* durations_drift.c. After all else of kernels. post: 0 or -ENOMEM. */
int gwa_durations_fit_drift(struct gwa_durations *d);
static inline double gwa_durations_drift(const struct gwa_durations *d, int64_t at)
{
    if (!d->drift)
        return 1;
    double i = (double)(at - d->drift->from) * d->drift->points_per_ns, last = DRIFT_POINTS - 1;
    return (double)d->drift->factor[i < 0 ? 0 : (unsigned)fmin(i, last)];
}

/* durations_copies.c */
/* kernel: what a pair adds around the kernel that takes its own time, with nothing beside it */
void gwa_durations_fit_hand_over(struct gwa_durations *d, double kernel);
/* What lies between the events of a pair around a copy. */
double gwa_durations_copied_ns(const struct gwa_durations *d, unsigned class, enum copy_place place,
                               double pair_ns);
void gwa_durations_fit_copies(struct gwa_durations *d);
int gwa_durations_mark_nodes(struct gwa_durations *d);
void gwa_durations_fit_graphs(struct gwa_durations *d);

/* Of a mean over n samples; the fewer, the less their variance says. */
static inline double standard_error(double variance, double n)
{
    return __builtin_sqrt(variance / n * (1 + 2 / n));
}

#endif
