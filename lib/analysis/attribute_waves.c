/* Whether what a section takes has a rhythm over steps: workers that finish together are late every
 * so many steps. Told by how the series goes with itself some steps before (autocorrelation), for
 * their number is found also where the long waits come in pairs, or change place slowly. */
#include "attribute_internal.h"

#include <math.h>

static void next_step(struct waves *w)
{
    double x = w->ns;
    w->sum += x;
    w->squares += x * x;
    for (uint32_t k = 1; k <= WAVES && k <= w->steps; k++)
        w->products[k] += x * w->before[(w->step - k) % WAVES];
    w->before[w->step % WAVES] = x;
    w->steps++;
    w->step++;
    w->ns = 0;
}

void gwa_waves_add(struct waves *w, uint32_t step, double ns)
{
    if (!w->steps && w->ns == 0)
        w->step = step;
    if (step < w->step) /* of a step that is over */
        return;
    /* so many without are a pause in the loop */
    for (uint32_t k = 0; w->step < step && k <= WAVES; k++)
        next_step(w);
    w->step = step;
    w->ns += ns;
}

#define ROUNDS_LEAST 8u  /* periods */
#define ALIKE        0.5 /* correlation with a period before ... */
#define UNLIKE       0.3 /* ... and, by so much less, with the step before */
#define DEVIATION    0.7 /* of the mean: some steps wait and others hardly do */

static double correlation(const struct waves *w, double mean, double variance, uint32_t lag)
{
    double n = (double)w->steps;
    return (w->products[lag] / (n - lag) - mean * mean) / variance;
}

unsigned gwa_waves_period(const struct waves *w)
{
    double n = (double)w->steps, mean = w->sum / n, variance = w->squares / n - mean * mean;
    double most = 0;
    if (w->steps < 2 * ROUNDS_LEAST || !(sqrt(variance) >= DEVIATION * mean))
        return 0;
    uint32_t longest = w->steps / ROUNDS_LEAST < WAVES ? (uint32_t)w->steps / ROUNDS_LEAST : WAVES;
    for (uint32_t k = 2; k <= longest; k++)
        most = fmax(most, correlation(w, mean, variance, k));
    if (most < ALIKE || correlation(w, mean, variance, 1) > most - UNLIKE)
        return 0;
    for (uint32_t k = 2; k <= longest; k++) /* its multiples do as well */
        if (correlation(w, mean, variance, k) >= 0.9 * most)
            return k;
    return 0;
}
