#include "memory.h"
#include "grow.h"
#include "kinds.h"
#include "memory_internal.h"

#include <math.h>

#define DEVICES   256u
#define ROOM      (42u << 20) /* all steps, of what PyTorch reports and of calls */
#define UNKNOWN   0xffu       /* calls that name no stream, as cudaMalloc, name no device either */
#define NO_STEP   UINT32_MAX
#define WAITING   16u /* threads with an allocation that failed and was not tried again yet */
#define NO_MEMORY 2u  /* CUDA_ERROR_OUT_OF_MEMORY, cudaErrorMemoryAllocation */

/* What nobody reports: a context, its kernels' code and libraries' handles. Half a GiB is usual
 * on data centre cards; batch_multiplier leaves a tenth of the headroom besides. */
#define CONTEXT_BYTES (INT64_C(512) << 20)

struct step_use {
    int64_t low, high; /* bytes held; `high` not counting the optimizer's own ... */
    int64_t top;       /* ... and this counting them */
    uint32_t allocs, frees;
    uint32_t host_allocs : 31, held : 1; /* held: the bytes above are set */
    float alloc_ms;
};

struct device_use {
    size_t *room;     /* of all devices */
    bool reported;    /* by PyTorch */
    int64_t level;    /* bytes held now */
    int64_t reserved; /* the last that was reported */
    int64_t peak, peak_reserved;
    int64_t asked;          /* bytes that were free when last asked; -1: accounted for */
    int64_t capacity;       /* least that was free or in the pool; -1: not known */
    struct step_use *steps; /* by index */
    size_t steps_count;
    uint64_t retries;
    double retry_ms;
};

struct waiting { /* an allocation that failed */
    uint32_t thread;
    uint64_t bytes; /* 0: none */
    int64_t t0;
};

struct gwa_memory_use {
    struct device_use *devices[DEVICES];
    size_t room; /* bytes that their steps may still take */
    struct gwa_live live;
    bool untracked; /* memory that no address stands for: live bytes are too low */
    bool graphs;    /* what graphs hold is in no report: activations are too low */
    struct waiting waiting[WAITING];
    uint32_t waiting_next;
};

struct gwa_memory_use *gwa_memory_new(const struct gwt_trace *trace)
{
    struct gwa_memory_use *m = calloc(1, sizeof(*m));
    (void)trace;
    if (m)
        m->room = ROOM;
    return m;
}

void gwa_memory_free(struct gwa_memory_use *m)
{
    if (!m)
        return;
    for (unsigned i = 0; i < DEVICES; i++) {
        if (m->devices[i])
            free(m->devices[i]->steps);
        free(m->devices[i]);
    }
    gwa_live_free(&m->live);
    free(m);
}

static struct device_use *device_of(struct gwa_memory_use *m, unsigned index)
{
    struct device_use *u = m->devices[index];
    if (u)
        return u;
    u = m->devices[index] = calloc(1, sizeof(*u));
    if (!u)
        return NULL;
    u->room = &m->room;
    u->peak = u->peak_reserved = u->asked = u->capacity = -1;
    return u;
}

/* post: *out is NULL where the event is in no step that is listed. */
static inline int step_of(struct device_use *u, const struct gwa_place *place,
                          struct step_use **out)
{
    *out = NULL;
    if (place->step < u->steps_count) {
        *out = &u->steps[place->step];
        return 0;
    }
    if (place->step >= GWA_STEPS_MAX)
        return 0;
    int rc = gwa_grow_within(u->room, (void **)&u->steps, &u->steps_count, place->step,
                             sizeof(*u->steps));
    if (!rc)
        *out = &u->steps[place->step];
    return rc == -ERANGE ? 0 : rc;
}

/* From now on `level` bytes are held. */
static inline int hold(struct device_use *u, const struct gwa_place *place, int64_t level)
{
    struct step_use *s;
    int rc = step_of(u, place, &s);
    if (rc)
        return rc;
    if (s && !s->held) { /* the step began with what was held before */
        s->held = true;
        s->low = s->high = s->top = u->peak < 0 ? level : u->level;
    }
    if (s && level < s->low)
        s->low = level;
    if (s && level > s->high && place->phase != GWA_PHASE_OPTIMIZER)
        s->high = level;
    if (s && level > s->top)
        s->top = level;
    u->level = level;
    if (level > u->peak)
        u->peak = level;
    return 0;
}

/* ---- what others leave ------------------------------------------------------------------ */

#define BYTES_MAX (INT64_C(1) << 60) /* believed */

/* What was free when asked, and the pool's bytes by the reports around that: of an allocation
 * under way the driver may have known before it was reported. */
static void account(struct device_use *u, int64_t before, int64_t after)
{
    int64_t pool = before > after ? before : after;
    if (u->asked < 0 || pool > BYTES_MAX)
        return;
    if (u->capacity < 0 || u->asked + pool < u->capacity)
        u->capacity = u->asked + pool;
    u->asked = -1;
}

/* For the pool of the device, and for allocations that name no device. */
static int free_memory(struct gwa_memory_use *m, const struct gwt_event *e)
{
    struct device_use *u = e->arg < UNKNOWN ? device_of(m, e->arg) : NULL;
    struct device_use *calls = device_of(m, UNKNOWN);
    if (e->arg >= UNKNOWN || e->value > BYTES_MAX)
        return 0;
    if (!u || !calls)
        return -ENOMEM;
    account(u, u->reserved, u->reserved);
    account(calls, calls->level, calls->level);
    u->asked = calls->asked = (int64_t)e->value;
    return 0;
}

/* ---- PyTorch's allocator ------------------------------------------------------------------ */

static int allocator(struct gwa_memory_use *m, const struct gwt_event *e,
                     const struct gwa_place *place)
{
    struct device_use *u = device_of(m, e->device);
    if (!u)
        return -ENOMEM;
    if (e->allocated > INT64_MAX || e->reserved > INT64_MAX)
        return 0;
    u->reported = true;
    account(u, u->reserved, (int64_t)e->reserved);
    u->reserved = (int64_t)e->reserved;
    if (u->reserved > u->peak_reserved)
        u->peak_reserved = u->reserved;
    return hold(u, place, (int64_t)e->allocated);
}

/* ---- allocations that failed and succeeded when tried again -------------------------- */

static struct waiting *waiting_of(struct gwa_memory_use *m, uint32_t thread)
{
    for (unsigned i = 0; i < WAITING; i++)
        if (m->waiting[i].bytes && m->waiting[i].thread == thread)
            return &m->waiting[i];
    return NULL;
}

static void failed(struct gwa_memory_use *m, const struct gwt_event *e)
{
    struct waiting *w = waiting_of(m, e->thread);
    if (w && w->bytes == e->value)
        return; /* once more in vain */
    if (!w)
        w = &m->waiting[m->waiting_next++ % WAITING];
    *w = (struct waiting){.thread = e->thread, .bytes = e->value, .t0 = e->t0_ns};
}

/* The caching allocator tries again, for the same size, as soon as it has freed what it kept. */
static void succeeded(struct gwa_memory_use *m, struct device_use *u, const struct gwt_event *e)
{
    struct waiting *w = waiting_of(m, e->thread);
    if (!w)
        return;
    if (e->value >= w->bytes) {
        u->retries++;
        u->retry_ms += (double)(e->t1_ns - w->t0) / 1e6;
    }
    w->bytes = 0;
}

/* ---- calls ----------------------------------------------------------------------------- */

static int count(struct device_use *u, const struct gwt_event *e, const struct gwa_place *place)
{
    struct step_use *s;
    int rc = step_of(u, place, &s);
    if (rc || !s)
        return rc;
    /* what reserves or maps addresses allocates nothing */
    s->allocs += e->kind == GWT_ALLOC && e->value;
    s->frees += e->kind == GWT_FREE && e->arg;
    s->host_allocs += e->kind == GWT_HOST_ALLOC;
    s->alloc_ms += (float)((double)(e->t1_ns - e->t0_ns) / 1e6);
    return 0;
}

static int device_memory(struct gwa_memory_use *m, struct device_use *u, const struct gwt_event *e,
                         const struct gwa_place *place)
{
    int rc = 0;
    if (e->kind == GWT_FREE) {
        gwa_live_remove(&m->live, e->arg);
    } else if (e->value && e->arg) {
        rc = gwa_live_add(&m->live, e->arg, e->value);
        m->untracked |= rc == -ERANGE;
    } else if (e->value) {
        m->untracked = true;
    }
    if (rc == -ENOMEM)
        return rc;
    account(u, u->level, (int64_t)m->live.bytes);
    return hold(u, place, (int64_t)m->live.bytes);
}

static int call(struct gwa_memory_use *m, const struct gwt_event *e, const struct gwa_place *place)
{
    struct device_use *u = device_of(m, UNKNOWN);
    int rc = 0;
    if (!u)
        return -ENOMEM;
    if (e->kind == GWT_ALLOC && e->status == NO_MEMORY && e->value)
        failed(m, e);
    if (!gwa_executed(e))
        return 0;
    if (e->kind == GWT_ALLOC && e->value)
        succeeded(m, u, e);
    if (e->kind == GWT_ALLOC || e->kind == GWT_FREE)
        rc = device_memory(m, u, e, place);
    return rc ? rc : count(u, e, place);
}

int gwa_memory_event(struct gwa_memory_use *m, const struct gwt_event *e,
                     const struct gwa_place *place)
{
    switch (e->kind) {
    case GWT_ALLOCATOR:
        return allocator(m, e, place);
    case GWT_FREE_MEMORY:
        return free_memory(m, e);
    case GWT_ALLOC:
    case GWT_FREE:
    case GWT_HOST_ALLOC:
    case GWT_HOST_FREE:
        return call(m, e, place);
    case GWT_GRAPH_LAUNCH:
        m->graphs |= gwa_executed(e) && place->step < GWA_STEPS_MAX;
        break;
    }
    if (gwa_submits(e->kind) && e->device != UNKNOWN && !device_of(m, e->device))
        return -ENOMEM;
    return 0;
}

/* ---- the result -------------------------------------------------------------------------- */

static bool is_steady(const struct gwa_steps *steps, size_t i)
{
    return i < gwa_steps_count(steps) && gwa_steps_list(steps)[i].kind == GWA_STEP_STEADY;
}

static int finish_levels(const struct device_use *u, const struct gwa_steps *steps,
                         struct gwa_device_memory *out)
{
    size_t n = 0;
    struct gwa_trend_point *points = calloc(u->steps_count ? u->steps_count : 1, sizeof(*points));
    if (!points)
        return -ENOMEM;
    for (size_t i = 0; i < u->steps_count; i++) {
        const struct step_use *s = &u->steps[i];
        if (!s->held || !is_steady(steps, i))
            continue;
        points[n++] = (struct gwa_trend_point){.x = (double)i, .y = (double)s->low};
        if (s->high - s->low > out->activation_bytes)
            out->activation_bytes = s->high - s->low;
    }
    struct gwa_trend trend;
    int rc = gwa_trend(points, n, &trend);
    if (!rc && n) {
        out->baseline_bytes = trend.median < 0x1p63 ? (int64_t)trend.median : INT64_MAX;
        out->growth_bytes_per_step = trend.slope;
    }
    free(points);
    return rc;
}

static void finish_calls(const struct device_use *u, const struct gwa_steps *steps,
                         struct gwa_device_memory *out)
{
    double allocs = 0, frees = 0, host = 0, ms = 0, n = 0;
    for (size_t i = 0; i < gwa_steps_count(steps); i++)
        n += is_steady(steps, i);
    for (size_t i = 0; u && i < u->steps_count; i++) {
        const struct step_use *s = &u->steps[i];
        if (!is_steady(steps, i))
            continue;
        allocs += s->allocs;
        frees += s->frees;
        host += s->host_allocs;
        ms += (double)s->alloc_ms;
    }
    if (!(n > 0))
        return;
    out->allocs_per_step = allocs / n;
    out->frees_per_step = frees / n;
    out->host_allocs_per_step = host / n;
    out->alloc_ms_per_step = ms / n;
}

/* Most that was held since the warm-up, in forward and backward or (`all`) at any time; loading
 * a model may have taken more, once. */
static int64_t most_held(const struct device_use *u, const struct gwa_steps *steps, bool all)
{
    int64_t most = -1;
    for (size_t i = 0; i < u->steps_count && i < gwa_steps_count(steps); i++) {
        const struct step_use *s = &u->steps[i];
        int64_t level = all ? s->top : s->high;
        if (s->held && level > most && gwa_steps_list(steps)[i].kind != GWA_STEP_WARMUP)
            most = level;
    }
    return most < 0 ? u->peak : most;
}

/* What the pool takes from the device for a byte of tensors: blocks that fit none grow with the
 * batch, while of a small pool most is rounding. */
#define POOL_TELLS (INT64_C(1) << 30)

static double pool_per_byte(const struct device_use *u)
{
    if (!u->reported || u->peak < POOL_TELLS || u->peak_reserved <= u->peak)
        return 1;
    return (double)u->peak_reserved / (double)u->peak;
}

static void finish_room(const struct gwa_memory_use *m, const struct device_use *u,
                        const struct device_use *calls, const struct gwa_steps *steps,
                        uint64_t memory_bytes, struct gwa_device_memory *out)
{
    int64_t pool = u->reported ? u->peak_reserved : u->peak;
    out->used_bytes = pool;
    if (calls && !m->untracked && calls->peak > out->used_bytes)
        out->used_bytes = calls->peak;
    if (!memory_bytes || memory_bytes > INT64_MAX || out->used_bytes < 0)
        return;
    int64_t forward = most_held(u, steps, false), top = most_held(u, steps, true);
    int64_t room = (int64_t)memory_bytes - CONTEXT_BYTES - out->used_bytes;
    out->from_reserved = u->capacity < 0;
    out->capacity_bytes = out->from_reserved ? pool + (room > 0 ? room : 0) : u->capacity;
    /* with what the pool holds and tensors do not, when the forward pass needs most */
    out->headroom_bytes = out->capacity_bytes > forward ? out->capacity_bytes - forward : 0;
    double usable = (double)out->capacity_bytes / pool_per_byte(u) - (double)forward;
    if (out->activation_bytes > 0 && !m->graphs)
        out->batch_multiplier = 1 + 0.9 * fmax(usable, 0) / (double)out->activation_bytes;
    if (out->growth_bytes_per_step > 0)
        out->steps_to_full = (double)(out->capacity_bytes > top ? out->capacity_bytes - top : 0) /
                             out->growth_bytes_per_step;
}

int gwa_memory_finish(struct gwa_memory_use *m, const struct gwa_steps *steps, struct gwa_device *d)
{
    struct gwa_device_memory *out = &d->memory;
    unsigned index = d->index < 0 ? UNKNOWN : (unsigned)d->index, devices = 0, first = UNKNOWN;
    gwa_memory_unknown(out);
    if (index >= DEVICES)
        return 0;
    for (unsigned i = UNKNOWN; i-- > 0;)
        if (m->devices[i])
            devices++, first = i;

    /* Calls do not say which device they are for: with several they belong to none of them, but
     * that they failed must not go unsaid. */
    struct device_use *calls = m->devices[UNKNOWN], *u = m->devices[index];
    if (calls && (index == first || devices == 0)) {
        out->retries = calls->retries;
        out->retry_ms = calls->retry_ms;
    }
    if (devices > 1)
        calls = NULL;
    else
        finish_calls(calls, steps, out);
    if (!u || !u->reported)
        u = m->untracked ? NULL : calls;
    if (!u || u->peak < 0)
        return 0;
    out->pytorch = u->reported;
    int64_t pool = u->reported ? u->reserved : u->level;
    account(u, pool, pool);
    int rc = finish_levels(u, steps, out);
    if (!rc)
        finish_room(m, u, calls, steps, d->memory_bytes, out);
    return rc;
}
