/* What the calls that wait for the device tell of a run.
 *
 * How late such a call returns after the model's end of the work holds three unknowns: the time
 * that waking up takes, and, times their numbers, the gaps and hand-overs on the way. Each call
 * is one equation for them, as good as the durations on the way are known: a Kalman filter. */
#include "timeline_internal.h"

#include <math.h>

/* Before the run says more: the mean, how far off it may be, and within what it is believed. No
 * mean stays the same for ever: it is never known better than to its drift. */
static const struct {
    double usual, off, least, most, drift;
} unknowns[GWA_UNKNOWNS] = {
    [GWA_WAKE] = {4000, 3000, 1000, 20000, 20},
    [GWA_GAP] = {GWA_GAP_NS, 350, 50, 6000, 20},
    [GWA_HANDOVER] = {GWA_HANDOVER_NS, 700, 300, 6000, 20},
};

#define WAKE_SPREAD_NS 3000.0
#define SPREAD_LEAST   500.0
/* Kernels that run together slow each other: per gap, each time and on the average. */
#define BESIDE_EACH_NS 3000.0
#define BESIDE_NS      200.0
#define START_LEAST_NS 500.0

void gwa_model_start(struct gwa_model *m)
{
    if (!(m->start_ns > 0))
        m->start_ns = GWA_START_NS;
    if (!(m->wake_spread_ns > 0)) {
        m->wake_spread_ns = WAKE_SPREAD_NS;
        /* as if ten calls had said so */
        m->wake_weight = 10 / pow(WAKE_SPREAD_NS, 4);
        m->wake_sum = 10 / pow(WAKE_SPREAD_NS, 2);
    }
    for (unsigned i = 0; i < GWA_UNKNOWNS; i++) {
        if (!(m->ns[i] > 0))
            m->ns[i] = unknowns[i].usual;
        if (!(m->variance[i][i] > 0))
            m->variance[i][i] = unknowns[i].off * unknowns[i].off;
    }
}

double gwa_model_uncertainty(struct moment m)
{
    return sqrt((double)m.error * (double)m.error + (double)m.variance);
}

/* Two that each fill the device take twice as long side by side; most fill less. */
#define SLOWED_SHARE 0.5
double gwa_model_uncertainty_above(struct moment m)
{
    return hypot(gwa_model_uncertainty(m), SLOWED_SHARE * (double)m.beside);
}

struct equation {
    double factor[GWA_UNKNOWNS];
    double gain[GWA_UNKNOWNS]; /* variance times factor */
    double means;              /* variance of the sum, from the means ... */
    double noise;              /* ... and from the durations and the scatter of waking up */
};

static struct equation equation_of(const struct gwa_model *m, struct moment end)
{
    double u = gwa_model_uncertainty(end);
    struct equation e = {.factor = {1, (double)end.gaps, (double)end.handovers},
                         .noise = u * u + m->wake_spread_ns * m->wake_spread_ns};
    for (unsigned i = 0; i < GWA_UNKNOWNS; i++) {
        for (unsigned k = 0; k < GWA_UNKNOWNS; k++)
            e.gain[i] += m->variance[i][k] * e.factor[k];
        e.means += e.factor[i] * e.gain[i];
    }
    return e;
}

/* What lateness scatters more than the durations and the means explain, each call weighted by
 * how much it can tell. */
static void learn_spread(struct gwa_model *m, const struct equation *e, double u, double off)
{
    double known = e->means + u * u, all = e->means + e->noise;
    off = fmin(fabs(off), 5 * sqrt(all));
    m->wake_weight += 1 / (all * all);
    m->wake_sum += (off * off - known) / (all * all);
    m->wake_spread_ns = sqrt(fmax(m->wake_sum / m->wake_weight, SPREAD_LEAST * SPREAD_LEAST));
}

/* gaps: false leaves them as they are, though their uncertainty counts. */
static void update(struct gwa_model *m, const struct equation *e, bool gaps, double off)
{
    double all = e->means + e->noise;
    off = fmin(fmax(off, -3 * sqrt(all)), 3 * sqrt(all));
    for (unsigned i = 0; i < GWA_UNKNOWNS; i++) {
        if (i == GWA_WAKE || gaps)
            m->ns[i] = fmin(m->ns[i] + e->gain[i] / all * off, unknowns[i].most);
        for (unsigned k = 0; k < GWA_UNKNOWNS; k++)
            if (i == GWA_WAKE || k == GWA_WAKE || gaps)
                m->variance[i][k] -= e->gain[i] * e->gain[k] / all;
    }
    /* no call wakes up so fast: work starts sooner than assumed */
    if (m->ns[GWA_WAKE] < unknowns[GWA_WAKE].least)
        m->start_ns =
            fmax(m->start_ns - (unknowns[GWA_WAKE].least - m->ns[GWA_WAKE]), START_LEAST_NS);
    for (unsigned i = 0; i < GWA_UNKNOWNS; i++) {
        m->ns[i] = fmax(m->ns[i], unknowns[i].least);
        m->variance[i][i] = fmax(m->variance[i][i], unknowns[i].drift * unknowns[i].drift);
    }
}

/* Errors that calls have in common do not average out: beyond them nothing is learnt of gaps. */
static bool tells_of_gaps(const struct gwa_model *m, struct moment end, bool alone)
{
    double count = (double)(end.gaps + end.handovers);
    double common = count > 0 ? (double)end.error / count : 0;
    if (!alone)
        common += BESIDE_NS;
    return common * common < m->variance[GWA_GAP][GWA_GAP];
}

void gwa_model_learn(struct gwa_model *m, struct moment end, bool alone, double late_ns)
{
    struct equation e = equation_of(m, end);
    double off = late_ns - m->ns[GWA_WAKE];
    double beside = alone ? 0 : BESIDE_EACH_NS * (double)(end.gaps + end.handovers);
    learn_spread(m, &e, gwa_model_uncertainty(end), off);
    e.noise += beside * beside;
    update(m, &e, tells_of_gaps(m, end, alone), off);
}

/* From one kernel's start to the next one's is all that calls show: the kernel and a gap. Gaps as
 * measured are right where kernels are as small as those that measured them, and pairs of events
 * add to kernels what differs from program to program: up to so much too long or too short are
 * the kernels. Gaps between kernels that fill the device are longer by much more than that, and
 * shorter ones there are not. */
#define TOO_LONG_NS  100.0
#define TOO_SHORT_NS 150.0
void gwa_model_share(struct gwa_model *m)
{
    double off = m->gap_ns > 0 ? m->ns[GWA_GAP] - m->gap_ns : 0;
    double most = off > 0 ? TOO_LONG_NS : TOO_SHORT_NS;
    double share = fmin(fmax(2 - fabs(off) / most, 0), 1);
    m->kernel_ns += share * off;
    m->ns[GWA_GAP] -= share * off;
    m->gap_ns = 0;
}

double gwa_model_explained(const struct gwa_model *m, struct moment end, double late_ns)
{
    struct equation e = equation_of(m, end);
    double known = gwa_model_uncertainty(end), off = late_ns - m->ns[GWA_WAKE];
    double u = off > 0 ? gwa_model_uncertainty_above(end) : known;
    double by = off * u * u / (e.means + e.noise + u * u - known * known);
    return fmin(fmax(by, -3 * u), 3 * u);
}
