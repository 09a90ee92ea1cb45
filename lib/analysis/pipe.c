#include "pipe.h"
#include "grow.h"

#include <pthread.h>
#include <sched.h>

#define RING 8u /* batches under way */

/* Stage 0 reads; stage i takes what i - 1 is through with. */
struct pipe {
    struct gwt_trace *trace;
    gwa_stage *const *stages;
    size_t last; /* stage */
    void *arg;
    struct gwa_batch *ring[RING];
    size_t ring_count;
    pthread_mutex_t lock;
    /* below, under the lock */
    pthread_cond_t more[GWA_STAGES_MOST + 1]; /* for each stage */
    uint64_t done[GWA_STAGES_MOST + 1];       /* batches that it is through with */
    bool waits[GWA_STAGES_MOST + 1];
    bool read_all;
    int rc;
};

struct worker { /* for a batch, stages one after the other */
    struct pipe *pipe;
    size_t from, to;
    pthread_t thread;
};

struct gwa_note *gwa_note_room(struct gwa_batch *b)
{
    if (gwa_reserve((void **)&b->notes, &b->notes_room, b->notes_count, sizeof(*b->notes)))
        return NULL;
    return &b->notes[b->notes_count++];
}

/* ---- one worker ----------------------------------------------------------------------- */

static bool there_is_one(const struct pipe *p, size_t stage)
{
    if (!stage)
        return !p->read_all && p->done[0] < p->done[p->last] + p->ring_count;
    return p->done[stage - 1] > p->done[stage];
}

/* post: the next batch, or NULL: no more comes. */
static struct gwa_batch *take(struct pipe *p, size_t stage)
{
    struct gwa_batch *b = NULL;
    pthread_mutex_lock(&p->lock);
    while (!p->rc && !there_is_one(p, stage) && !(p->read_all && p->done[stage] == p->done[0])) {
        p->waits[stage] = true;
        pthread_cond_wait(&p->more[stage], &p->lock);
        p->waits[stage] = false;
    }
    if (!p->rc && there_is_one(p, stage))
        b = p->ring[p->done[stage] % p->ring_count];
    pthread_mutex_unlock(&p->lock);
    return b;
}

static void wake(struct pipe *p, size_t stage)
{
    if (p->waits[stage])
        pthread_cond_signal(&p->more[stage]);
}

/* Whoever reads goes on when half of the ring is free: fewer turns. */
static void pass_on(struct worker *w, bool end, int rc)
{
    struct pipe *p = w->pipe;
    pthread_mutex_lock(&p->lock);
    if (rc && !p->rc)
        p->rc = rc;
    p->read_all |= end;
    for (size_t i = w->from; i <= w->to && !end; i++)
        p->done[i]++;
    if (p->rc || end) {
        for (size_t i = 0; i <= p->last; i++)
            wake(p, i);
    } else if (w->to < p->last) {
        wake(p, w->to + 1);
    } else if (p->done[0] - p->done[p->last] <= p->ring_count / 2) {
        wake(p, 0);
    }
    pthread_mutex_unlock(&p->lock);
}

/* post: 0, or negative; b->count 0: all was read. */
static int stages_of(const struct worker *w, struct gwa_batch *b)
{
    struct pipe *p = w->pipe;
    int rc = 0;
    for (size_t i = w->from; i <= w->to && !rc; i++) {
        if (i) {
            rc = p->stages[i - 1](p->arg, b);
        } else {
            b->notes_count = 0;
            b->count = gwt_read(p->trace, b->events, GWA_BATCH);
            if (!b->count)
                break;
        }
    }
    return rc;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct gwa_batch *b;
    while ((b = take(w->pipe, w->from))) {
        int rc = stages_of(w, b);
        pass_on(w, !b->count, rc);
    }
    return NULL;
}

/* ---- all of them ----------------------------------------------------------------------- */

static bool one_cpu(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) == 1;
}

/* A thread for each stage but the last, as far as there may be some; the rest is done here. */
static void start(struct pipe *p, bool alone)
{
    struct worker workers[GWA_STAGES_MOST + 1];
    size_t n = 0;
    for (; n < p->last && !alone; n++) {
        workers[n] = (struct worker){.pipe = p, .from = n, .to = n};
        if (pthread_create(&workers[n].thread, NULL, work, &workers[n]))
            break;
    }
    struct worker here = {.pipe = p, .from = n, .to = p->last};
    work(&here);
    for (size_t i = 0; i < n; i++)
        pthread_join(workers[i].thread, NULL);
}

int gwa_pipe(struct gwt_trace *trace, gwa_stage *const *stages, size_t count, void *arg)
{
    struct pipe p = {.trace = trace, .stages = stages, .last = count, .arg = arg};
    bool alone = gwt_coverage(trace)->events <= 2 * GWA_BATCH || one_cpu();
    size_t wanted = alone ? 1 : RING;
    while (p.ring_count < wanted) {
        struct gwa_batch *b = calloc(1, sizeof(*b));
        if (!b) {
            p.rc = -ENOMEM;
            break;
        }
        p.ring[p.ring_count++] = b;
    }
    pthread_mutex_init(&p.lock, NULL);
    for (size_t i = 0; i <= p.last; i++)
        pthread_cond_init(&p.more[i], NULL);
    gwt_rewind(trace);
    if (!p.rc)
        start(&p, alone);
    for (size_t i = 0; i <= p.last; i++)
        pthread_cond_destroy(&p.more[i]);
    pthread_mutex_destroy(&p.lock);
    for (size_t i = 0; i < p.ring_count; i++) {
        free(p.ring[i]->notes);
        free(p.ring[i]);
    }
    return p.rc;
}
