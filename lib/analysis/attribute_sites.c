/* What recurs, folded into rows. */
#include "attribute_internal.h"
#include "grow.h"

#include <math.h>
#include <string.h>

/* ---- rows by key ------------------------------------------------------------------------------
 */

#define INDEX (2 * SITES) /* a power of two */

int gwa_fold_new(struct fold *f, size_t size, size_t key_size)
{
    f->size = size;
    f->key_size = key_size;
    f->rows = calloc(SITES, size);
    f->index = calloc(INDEX, sizeof(*f->index));
    return f->rows && f->index ? 0 : -ENOMEM;
}

void gwa_fold_free(struct fold *f)
{
    free(f->rows);
    free(f->index);
}

static size_t hash(const void *key, size_t size)
{
    const unsigned char *p = key;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return (size_t)(h >> 20);
}

/* A row begins with its key, which has no padding that could differ. */
void *gwa_fold_find(struct fold *f, const void *key)
{
    size_t i = hash(key, f->key_size) & (INDEX - 1);
    for (; f->index[i]; i = (i + 1) & (INDEX - 1)) {
        void *row = (char *)f->rows + (f->index[i] - 1u) * f->size;
        if (!memcmp(row, key, f->key_size))
            return row;
    }
    if (f->count == SITES)
        return NULL;
    void *row = (char *)f->rows + f->count * f->size;
    memcpy(row, key, f->key_size);
    f->index[i] = (uint16_t)++f->count;
    return row;
}

/* ---- sites ------------------------------------------------------------------------------------
 */

struct site *gwa_site_of(struct gwa_attribution *a, const struct site_key *key)
{
    struct site *s = gwa_fold_find(&a->sites, key);
    if (s)
        return s;
    /* gwa_attribution_gap() has made the device */
    s = &a->devices[key->device]->other[key->class];
    s->key.device = key->device;
    s->key.class = key->class;
    return s;
}

void gwa_site_in_step(struct site *s, uint32_t step)
{
    uint32_t distance = step - s->last_step;
    if (!s->in_steps++) {
        s->last_step = step;
        return;
    }
    if (!distance) /* several in one step */
        return;
    if (distance == s->period) {
        s->period_hits++;
    } else if (++s->period_misses > s->period_hits) {
        s->period = distance;
        s->period_hits = 1;
        s->period_misses = 0;
    }
    s->last_step = step;
}

void gwa_site_judge(struct site *s, double measured, double cpu, double process, double involuntary)
{
    s->measured += measured;
    s->on_cpu += fmin(cpu, measured);
    s->process += process;
    s->involuntary += involuntary;
    s->judged++;
}

double gwa_site_share(const struct site *s)
{
    return s->measured >= SECTION_NS ? s->on_cpu / s->measured : NAN;
}

/* ---- Python lines -------------------------------------------------------------------------------
 */

static void vote(const struct gwt_trace *trace, struct lines *lines, uint32_t stack)
{
    struct gwt_stack_frame frame;
    unsigned i, least = 0;
    if (!gwa_own_frame(trace, stack, &frame))
        return;
    for (i = 0; i < LINES && lines->list[i].votes; i++) {
        if (lines->list[i].file == frame.file && lines->list[i].line == frame.line) {
            lines->list[i].votes++;
            return;
        }
        if (lines->list[i].votes < lines->list[least].votes)
            least = i;
    }
    if (i == LINES && --lines->list[i = least].votes)
        return;
    lines->list[i].stack = stack;
    lines->list[i].file = frame.file;
    lines->list[i].line = frame.line;
    lines->list[i].votes = 1;
}

void gwa_lines_vote_in(const struct gwt_trace *trace, struct lines *lines, const struct thread *th,
                       int64_t from, int64_t to)
{
    for (unsigned i = 1; th->stacks && i <= STACKS; i++) {
        const struct stack_at *s = &th->stacks[(th->stacks_next - i) % STACKS];
        if (s->at < from) /* none, or older still */
            break;
        if (s->at < to)
            vote(trace, lines, s->stack);
    }
}

/* Where the program's own code was met about as often below a line as at it, in what that called
 * of libraries, the lower line says more. */
uint32_t gwa_lines_best(const struct gwt_trace *trace, const struct lines *lines)
{
    unsigned best = 0, below = LINES;
    for (unsigned i = 1; i < LINES; i++)
        if (lines->list[i].votes > lines->list[best].votes)
            best = i;
    for (unsigned i = 0; i < LINES; i++)
        if (i != best && lines->list[i].votes * 2 >= lines->list[best].votes &&
            (below == LINES || lines->list[i].votes > lines->list[below].votes) &&
            gwa_calls(trace, lines->list[i].stack, lines->list[best].file, lines->list[best].line))
            below = i;
    if (below < LINES)
        best = below;
    return lines->list[best].votes ? lines->list[best].stack : 0;
}
