#include "pipe.h"
#include "grow.h"

#include <pthread.h>
#include <sched.h>

#define RING 8u /* batches under way */

/* Stage 0 reads; stage i takes what i - 1 is through with. Whoever is through with a batch at one
 * stage goes on with it at the next, while its caches hold it. */
struct pipe {
    struct gwt_trace *trace;
    uint64_t left; /* events to be read; at stage 0 */
    gwa_stage *const *stages;
    size_t last; /* stage */
    void *arg;
    struct gwa_batch *ring[RING];
    size_t ring_count;
    pthread_mutex_t lock;
    /* below, under the lock */
    pthread_cond_t more;
    unsigned waiting;                   /* workers */
    bool taken[GWA_STAGES_MOST + 1];    /* of each stage: a worker is at it */
    uint64_t done[GWA_STAGES_MOST + 1]; /* batches that it is through with */
    bool read_all;
    int rc;
};

struct gwa_note *gwa_note_room(struct gwa_batch *b)
{
    if (gwa_reserve((void **)&b->notes, &b->notes_room, b->notes_count, sizeof(*b->notes)))
        return NULL;
    return &b->notes[b->notes_count++];
}

/* ---- one worker ----------------------------------------------------------------------- */

static bool is_ready(const struct pipe *p, size_t stage)
{
    if (p->taken[stage])
        return false;
    if (!stage)
        return !p->read_all && p->done[0] < p->done[p->last] + p->ring_count;
    return p->done[stage - 1] > p->done[stage];
}

#define NONE SIZE_MAX

/* The one behind `before`, else the last that is ready: what was read is out of the way soon. */
static size_t ready_stage(const struct pipe *p, size_t before)
{
    if (before < p->last && is_ready(p, before + 1))
        return before + 1;
    for (size_t stage = p->last + 1; stage-- > 0;)
        if (is_ready(p, stage))
            return stage;
    return NONE;
}

static bool is_over(const struct pipe *p)
{
    return p->rc || (p->read_all && p->done[p->last] == p->done[0]);
}

/* post: a stage of this worker's own, or NONE: there is no more to do. */
static size_t take(struct pipe *p, size_t before)
{
    size_t stage = NONE;
    while (!is_over(p) && (stage = ready_stage(p, before)) == NONE) {
        p->waiting++;
        pthread_cond_wait(&p->more, &p->lock);
        p->waiting--;
    }
    if (is_over(p)) {
        pthread_cond_broadcast(&p->more);
        return NONE;
    }
    p->taken[stage] = true;
    if (p->waiting && ready_stage(p, stage) != NONE)
        pthread_cond_signal(&p->more);
    return stage;
}

/* post: 0, or negative; *end: there was no batch any more. */
static int act(struct pipe *p, size_t stage, struct gwa_batch *b, bool *end)
{
    if (stage)
        return p->stages[stage - 1](p->arg, b);
    b->notes_count = 0;
    b->count = gwt_read(p->trace, b->events, p->left < GWA_BATCH ? p->left : GWA_BATCH);
    p->left -= b->count;
    *end = !b->count;
    return 0;
}

static void *work(void *arg)
{
    struct pipe *p = arg;
    pthread_mutex_lock(&p->lock);
    for (size_t stage = NONE; (stage = take(p, stage)) != NONE;) {
        struct gwa_batch *b = p->ring[p->done[stage] % p->ring_count];
        bool end = false;
        pthread_mutex_unlock(&p->lock);
        int rc = act(p, stage, b, &end);
        pthread_mutex_lock(&p->lock);
        p->taken[stage] = false;
        p->done[stage] += !end && !rc;
        p->read_all |= end;
        if (rc && !p->rc)
            p->rc = rc;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- all of them ----------------------------------------------------------------------- */

unsigned gwa_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) ? 2 : (unsigned)CPU_COUNT(&set);
}

/* This thread is one of the workers. */
static void start(struct pipe *p, size_t workers)
{
    pthread_t threads[GWA_STAGES_MOST + 1];
    size_t n = 0;
    while (n + 1 < workers && !pthread_create(&threads[n], NULL, work, p))
        n++;
    work(p);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

int gwa_pipe(struct gwt_trace *trace, uint64_t most, unsigned threads, gwa_stage *const *stages,
             size_t count, void *arg)
{
    struct pipe p = {.trace = trace, .left = most, .stages = stages, .last = count, .arg = arg};
    size_t workers = threads ? threads : gwa_cpus();
    if (gwt_coverage(trace)->events <= 2 * GWA_BATCH)
        workers = 1;
    if (workers > count + 1)
        workers = count + 1;
    while (p.ring_count < (workers > 1 ? RING : 1)) {
        struct gwa_batch *b = calloc(1, sizeof(*b));
        if (!b) {
            p.rc = -ENOMEM;
            break;
        }
        p.ring[p.ring_count++] = b;
    }
    pthread_mutex_init(&p.lock, NULL);
    pthread_cond_init(&p.more, NULL);
    gwt_rewind(trace);
    if (!p.rc)
        start(&p, workers);
    pthread_cond_destroy(&p.more);
    pthread_mutex_destroy(&p.lock);
    for (size_t i = 0; i < p.ring_count; i++) {
        free(p.ring[i]->notes);
        free(p.ring[i]);
    }
    return p.rc;
}
