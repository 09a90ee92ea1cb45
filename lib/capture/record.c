/* From a finished call to a record in the ring. */
#include "call.h"
#include "sampler.h"

#include <errno.h>
#include <unistd.h>

__thread struct gw_local gw_local __attribute__((tls_model("initial-exec")));
uint32_t gw_odd;
struct gw_epochs gw_epochs = {1, 1};

/* ---- the ring's producer side ------------------------------------------------- */

static inline struct gwt_record *next(const struct gw_thread *t)
{
    return &t->ring[t->head & t->mask];
}

static inline void publish(struct gw_thread *t)
{
    gw_prefetch_record(next(t));
    t->head++;
    /* Partner: the acquire load of head in drain.c and in readers. */
    gw_store_release(&t->slot->head, t->head);
    /* Who reads a live ring takes the next record alone to be in the making. */
    gw_fence_release();
}

static void put(struct gw_thread *t, const struct gwt_record *r)
{
    *next(t) = *r;
    publish(t);
}

static bool has_room(struct gw_thread *t, uint64_t slots)
{
    if (gw_likely(t->head + slots <= t->room))
        return true;
    /* Partner: the drain's release store of tail, made after it copied the records. */
    t->room = gw_load_acquire(&t->slot->tail) + t->mask + 1;
    return t->head + slots <= t->room;
}

static bool wait_for_room(struct gw_thread *t)
{
    const struct timespec nap = {.tv_nsec = 50000};
    uint64_t deadline = gw_clock_ns(CLOCK_MONOTONIC) + 1000000000u;
    do {
        gw_drain_kick();
        nanosleep(&nap, NULL);
        if (has_room(t, 1))
            return true;
    } while (gw_clock_ns(CLOCK_MONOTONIC) < deadline);
    return false;
}

/* Drop the newest and remember what span went missing. */
static void lose(struct gw_thread *t, uint64_t t0)
{
    if (!t->lost)
        t->lost_first = t0;
    t->lost++;
    t->lost_last = t0;
    gw_store_relaxed(&t->slot->lost, t->slot->lost + 1);
    gw_count(GWT_C_DROPPED, 1);
}

static void tell_lost(struct gw_thread *t)
{
    struct gwt_record r = {.t0 = t->lost_first, .api = GWT_API_PSEUDO + GWT_LOST, .value = t->lost};
    gw_set_duration(&r, t->lost_last - t->lost_first);
    t->lost = 0;
    put(t, &r);
}

/* pre:  the caller is busy. */
void gw_push(struct gw_thread *t, const struct gwt_record *r)
{
    if (gw_unlikely(!has_room(t, t->lost ? 2 : 1))) {
        int saved = errno;
        bool room = gw_options.block_when_full && has_room(t, 1);
        if (!room && gw_options.block_when_full)
            room = wait_for_room(t);
        errno = saved;
        if (!room || (t->lost && !has_room(t, 2))) {
            lose(t, r->t0);
            return;
        }
    }
    if (gw_unlikely(t->lost))
        tell_lost(t);
    put(t, r);
}

/* The same of what is no call of the program's: left out where the ring is full, and not among
 * the calls that were dropped. */
void gw_push_spare(struct gw_thread *t, const struct gwt_record *r)
{
    if (has_room(t, t->lost ? 2 : 1))
        gw_push(t, r);
}

void gw_push_mark(enum gwt_kind kind, uint32_t arg, uint64_t value)
{
    struct gw_thread *t = gw_self ? gw_self : gw_thread_get();
    if (!t || gw_is_busy(t))
        return;
    struct gwt_record r = {
        .t0 = gw_ticks(), .api = (uint16_t)(GWT_API_PSEUDO + kind), .arg = arg, .value = value};
    gw_busy_begin();
    gw_push(t, &r);
    gw_busy_end(t);
}

/* ---- entry, the uncommon cases --------------------------------------------------- */

/* A frame at or below ours belongs to a call that an exception or a cancellation left
 * without passing through its return: the stack grows down, so a caller's frame lies
 * higher. So does one that lies higher but no longer holds what was written there. Its
 * memory is another's by now, so only the open slot is told. */
static void drop_unwound(struct gw_frame *f)
{
    struct gw_thread *t = gw_self;
    if (!gw_top || ((uintptr_t)gw_top > (uintptr_t)f && gw_top->t0 == gw_top_t0))
        return;
    gw_top = NULL;
    if (!t || gw_is_busy(t) || !gw_slot_inside(t->slot))
        return;
    struct gwt_record r = {
        .t0 = t->slot->open_t0, .api = t->slot->open_api, .flags = GWT_F_UNWOUND};
    gw_busy_begin();
    gw_push(t, &r);
    gw_store_relaxed(&t->slot->returned, 0); /* nobody knows when */
    gw_busy_end(t);
}

struct gw_frame *gw_enter(struct gw_frame *f, uint64_t word)
{
    gw_frame_init(f, word);
    struct gw_thread *t = gw_self;
    struct gw_frame *o = gw_top;
    if (gw_unlikely(!gw_is_alive() || !t || f->kind == GWT_NAME))
        return gw_enter_slow(f);
    if (gw_unlikely(gw_is_busy(t)))
        return gw_enter_nested(f);
    if (o) {
        /* The common nesting: a runtime call's own driver call. */
        if (f->level == GWT_LEVEL_DRIVER && o->level == GWT_LEVEL_RUNTIME && o->kind == f->kind &&
            !o->taken && (uintptr_t)o > (uintptr_t)f && o->t0 == gw_top_t0 &&
            !gw_share_sampled(o)) {
            o->word |= GW_FRAME_TAKEN;
            o->value = 0;
            f->merged = 1;
            return o;
        }
        return gw_enter_nested(f);
    }
    gw_local.idle = NULL;
    gw_top = f;
    f->t0 = gw_top_t0 = gw_ticks();
    if (gw_unlikely(f->t0 - gw_load_relaxed(&t->slot->returned) >= GW_SECTION_LEAST))
        gw_section_ends(t, f);
    /* What a killed job was inside. Not ordered against anything: a reader takes it as a hint. */
    t->slot->open_api = (uint16_t)word;
    gw_store_relaxed(&t->slot->open_t0, f->t0);
    return f;
}

struct gw_frame *gw_enter_nested(struct gw_frame *f)
{
    struct gw_thread *t = gw_self;
    if (gw_local.busy || (t && gw_is_busy(t))) {
        /* A signal handler inside a record, or a call of the driver's into its own exports while
         * we ask it something. */
        gw_count(GWT_C_NESTED_SIGNAL, 1);
        return NULL;
    }
    drop_unwound(f);
    struct gw_frame *o = gw_top;
    if (o && o->kind == f->kind) {
        if (o->level == f->level)
            return NULL; /* one call implemented by another: one record */
        if (!o->taken) {
            o->word |= GW_FRAME_TAKEN;
            o->value = 0;
            f->merged = 1;
            if (f->kind == GWT_LAUNCH && gw_share_sampled(o))
                f->t0 = gw_ticks();
            return o;
        }
    }
    f->outer = o;
    if (o)
        f->flags |= GWT_F_NESTED;
    gw_local.idle = NULL;
    gw_top = f;
    f->t0 = gw_top_t0 = gw_ticks();
    if (t && !o) {
        if (f->t0 - t->slot->returned >= GW_SECTION_LEAST)
            gw_section_ends(t, f);
        t->slot->open_api = f->api;
        gw_store_relaxed(&t->slot->open_t0, f->t0);
    }
    return f;
}

/* pre:  not active in this thread yet, or a row without a record. */
struct gw_frame *gw_enter_slow(struct gw_frame *f)
{
    if (f->kind == GWT_NAME) {
        f->merged = 1;
        return gw_state == GW_OFF ? NULL : f;
    }
    if (gw_load_acquire(&gw_state) == GW_OFF)
        return NULL;
    if (gw_local.busy) /* with first-time work that a signal handler interrupted */
        return gw_enter_nested(f);
    int saved = errno;
    if (gw_load_acquire(&gw_state) == GW_ACTIVE && !gw_is_alive() && getpid() != gw_pid)
        gw_after_fork(); /* a raw clone: no atfork handler ran */
    /* Asking for events, or which device is current, creates no context and starts nothing. */
    bool passive = f->kind == GWT_POLL || f->kind == GWT_CONTEXT;
    if (gw_load_acquire(&gw_state) != GW_ACTIVE && !passive && gw_driver_ready())
        gw_start();
    if (gw_load_acquire(&gw_state) == GW_ACTIVE && !gw_self)
        gw_thread_get();
    errno = saved;
    /* Still inert in the first runtime call, which is what maps libcuda: the frame waits on
     * this stack, and the driver call nested in it starts us. */
    return gw_enter_nested(f);
}

/* ---- return ------------------------------------------------------------------------- */

/* Forgets what was learnt before an epoch of names or streams ended. */
static void __attribute__((noinline)) forget(struct gw_thread *t, struct gw_epochs now)
{
    if (t->epochs.names != now.names)
        memset(t->signatures, 0, sizeof t->signatures);
    t->stream.which = UINT16_MAX;
    for (unsigned i = 0; i < GW_STREAM_CACHE; i++)
        t->streams[i].which = UINT16_MAX;
    t->epochs = now;
}

static inline void follow_epochs(struct gw_thread *t)
{
    struct gw_epochs now = {gw_load_relaxed(&gw_names_epoch), gw_load_relaxed(&gw_streams_epoch)};
    if (gw_unlikely(t->epochs.names != now.names || t->epochs.streams != now.streams))
        forget(t, now);
}

/* Signatures that take turns in one place would each miss at every launch, hence the ways. */
uint32_t gw_signature_cached(struct gw_thread *t, const struct gw_shape *shape)
{
    follow_epochs(t);
    uint32_t place = gw_place(shape), first = place & ~(GW_SIGNATURE_WAYS - 1);
    uint32_t id = gw_signature_hit(t, shape);
    for (uint32_t i = first; !id && i < first + GW_SIGNATURE_WAYS; i++)
        if (gw_same_shape(&t->signatures[i].shape, shape))
            id = t->signatures[i].id;
    return id;
}

static uint32_t __attribute__((noinline)) first_met(struct gw_thread *t, const struct gw_frame *f)
{
    uint32_t id = gw_signature_slow(t, f);
    uint32_t place = gw_place(&f->shape), first = place & ~(GW_SIGNATURE_WAYS - 1), to = place;
    for (uint32_t i = first; t->signatures[to].id && i < first + GW_SIGNATURE_WAYS; i++)
        if (!t->signatures[i].id)
            to = i;
    if (t->signatures[to].id)
        to = first + ((uint32_t)(f->t0 >> 6) & (GW_SIGNATURE_WAYS - 1));
    if (id)
        t->signatures[to] = (struct gw_signature_entry){.shape = f->shape, .id = id};
    return id;
}

/* The handle of a launch that failed may be no handle at all: the driver is not asked about it. */
static inline uint32_t signature(struct gw_thread *t, const struct gw_frame *f, int status)
{
    uint32_t id = gw_signature_cached(t, &f->shape);
    return id || status != 0 ? id : first_met(t, f);
}

static inline uint16_t stream(struct gw_thread *t, const struct gw_frame *f)
{
    follow_epochs(t);
    if (gw_likely(t->stream.handle == f->stream && t->stream.which == f->which))
        return t->stream.id;
    uintptr_t h = (uintptr_t)f->stream;
    struct gw_stream_entry *e =
        &t->streams[(h >> 4 ^ h >> 9 ^ h >> 14 ^ f->no_stream) & (GW_STREAM_CACHE - 1)];
    if (gw_unlikely(e->handle != f->stream || e->which != f->which || e->device != gw_device)) {
        uint16_t id = gw_stream_slow(t, f);
        *e = (struct gw_stream_entry){
            .handle = f->stream, .which = f->which, .device = gw_device, .id = id};
    }
    if (!f->no_stream)
        t->stream = *e;
    return e->id;
}

uint16_t gw_stream_of(struct gw_thread *t, const struct gw_frame *f)
{
    return stream(t, f);
}

/* Context switches are recorded only where they cost something. */
static bool negligible(const struct gw_frame *f, uint64_t t1)
{
    return f->kind == GWT_CONTEXT && t1 - f->t0 < 200000; /* ticks: some 100 us */
}

/* Where the record of a call is made: where it will lie, if nothing is to be told or asked
 * first. Made apart and copied, it would cost a wait for its parts. */
static inline struct gwt_record *begin(struct gw_thread *t, struct gwt_record *apart)
{
    gw_busy_begin();
    return gw_likely(t->head < t->room && !t->lost) ? next(t) : apart;
}

static inline void end(struct gw_thread *t, const struct gwt_record *r,
                       const struct gwt_record *apart)
{
    if (gw_unlikely(r == apart))
        gw_push(t, r);
    else
        publish(t);
    gw_busy_end(t);
}

static inline void leave_frame(const struct gw_frame *f)
{
    gw_top = f->outer;
    if (gw_unlikely(f->outer != NULL))
        gw_top_t0 = f->outer->t0;
    else
        gw_local.idle = gw_self;
}

/* A call without a record: the section around it goes on. */
static void leave_unseen(struct gw_frame *f)
{
    leave_frame(f);
    if (gw_self && !f->outer && gw_is_alive())
        gw_store_relaxed(&gw_self->slot->open_t0, 0);
}

/* post: the thread to record into, or NULL: this call leaves no record. */
static inline struct gw_thread *may_record(struct gw_frame *f, uint64_t t1)
{
    struct gw_thread *t = gw_self;
    leave_frame(f);
    if (gw_unlikely(!gw_is_alive())) {
        /* Never started, or finished meanwhile; or another thread is so slow at starting that
         * this one has not waited for it. */
        if (gw_load_relaxed(&gw_state) == GW_STARTING)
            gw_count(GWT_C_NO_RING, 1);
        return NULL;
    }
    if (gw_unlikely(!t) && !(t = gw_thread_get())) {
        gw_count(GWT_C_NO_RING, 1);
        return NULL;
    }
    if (!f->outer)
        gw_store_relaxed(&t->slot->returned, t1);
    return gw_likely(gw_load_relaxed(&gw_recording)) ? t : NULL;
}

int gw_finish_launch(struct gw_frame *f, uint64_t t1, int status)
{
    struct gw_thread *t = may_record(f, t1);
    if (gw_unlikely(!t))
        return status;
    struct gwt_record apart, *r = begin(t, &apart);
    uint16_t flags = f->flags;
    uint32_t arg = f->arg;
    if (!arg && (f->level == GWT_LEVEL_DRIVER || f->taken)) {
        arg = signature(t, f, status);
    } else if (!arg && status == 0) {
        /* Its handle is the runtime's, of which the driver knows no name. */
        flags |= GWT_F_HOLE;
        gw_count(GWT_C_HOLES, 1);
    }
    r->t0 = f->t0;
    r->api = f->api;
    r->flags = flags;
    gw_set_duration(r, t1 - f->t0);
    r->stream = f->arg ? f->stream_id : stream(t, f);
    r->status = (uint16_t)status;
    r->arg = arg;
    r->value = f->value;
    if (gw_unlikely(gw_load_relaxed(&gw_timing)) && !(flags & GWT_F_CAPTURED))
        gw_kernel_given(r->stream, arg, t1);
    end(t, r, &apart);
    return status;
}

/* Return of a launch that gw_launch_opens() opened. */
int gw_finish_short(struct gw_frame *own, uint64_t t1, int status)
{
    struct gw_thread *t = gw_self;
    const uint64_t dur = t1 - own->t0;
    const uint32_t arg = own->arg;
    uint64_t head;
    if (gw_unlikely(!t || !arg || dur != (uint32_t)dur || (head = t->head) >= t->room)) {
        own->outer = NULL;
        if (arg || !own->taken) /* else the driver's call wrote it, if anything */
            own->value = 0;
        return gw_finish_launch(own, t1, status);
    }
    struct gwt_record *r = &t->ring[head & t->mask];
    struct gwt_slot *slot = t->slot;
    const uint32_t api_flags = (uint32_t)own->word;
    gw_top = (struct gw_frame *)t; /* busy */
    gw_fence_signal();
    r->t0 = own->t0;
    r->dur = (uint32_t)dur;
    memcpy((char *)r + offsetof(struct gwt_record, api), &api_flags, sizeof api_flags);
    r->stream = own->stream_id;
    r->status = (uint16_t)status;
    r->arg = arg;
    r->value = 0;
    if (gw_load_relaxed(&gw_timing)) /* nor captured: that takes the long path */
        gw_kernel_given(own->stream_id, arg, t1);
    gw_prefetch_record(r);
    t->head = head + 1;
    gw_store_relaxed(&slot->returned, t1);
    /* Partner: the acquire load of head in drain.c and in readers. */
    gw_store_release(&slot->head, head + 1);
    gw_fence_release(); /* as in publish() */
    gw_fence_signal();
    gw_top = NULL;
    gw_local.idle = t;
    return status;
}

/* What the sampler must know of calls other than launches. */
static void tell_sampler(const struct gw_frame *f, struct gwt_record *r, uint64_t t1)
{
    switch (f->kind) {
    case GWT_GRAPH_LAUNCH:
    case GWT_COPY:
    case GWT_MEMSET:
        if (!(r->flags & GWT_F_CAPTURED))
            gw_stream_given(r->stream, f, r->arg, t1);
        if (r->flags & GWT_F_BLOCKING)
            gw_stream_awaited(r->stream, GWT_SCOPE_STREAM, t1);
        break;
    case GWT_SYNC:
        gw_stream_awaited(r->stream, GWT_F_SUB(r->flags), t1);
        break;
    case GWT_EVENT_RECORD:
        if (gw_event_recorded((const void *)(uintptr_t)f->value, r->stream, t1))
            r->flags |= GWT_STAMP << GWT_F_SUB_SHIFT;
        break;
    case GWT_NCCL:
        gw_stream_carries_collectives(r->stream);
        break;
    }
}

/* A host section is likely to follow, and a look at the clocks is little beside what passed. */
static inline bool blocks(const struct gw_frame *f, unsigned flags, uint64_t t1)
{
    return f->kind == GWT_SYNC || (flags & GWT_F_BLOCKING) || t1 - f->t0 >= GW_SECTION_LEAST;
}

void gw_finish(struct gw_frame *f, uint64_t t1, int status)
{
    if (f->kind == GWT_POLL || negligible(f, t1)) {
        leave_unseen(f);
        if (f->kind == GWT_POLL)
            gw_count(GWT_C_POLLS, 1);
        return;
    }
    if (f->kind == GWT_CONTEXT && !f->outer && gw_self && gw_is_alive())
        gw_section_ended(gw_self, f->t0);
    struct gw_thread *t = may_record(f, t1);
    if (gw_unlikely(!t))
        return;
    struct gwt_record apart, *r = begin(t, &apart);
    r->t0 = f->t0;
    r->api = f->api;
    r->flags = f->flags;
    r->status = (uint16_t)status;
    r->arg = f->arg;
    r->value = f->value;
    gw_set_duration(r, t1 - f->t0);
    if (f->kind == GWT_GRAPH_LAUNCH)
        r->arg = gw_graph_id(f->shape.func, &r->flags);
    r->stream = stream(t, f);
    if (f->kind == GWT_SYNC)
        gw_store_relaxed(&gw_awaited, gw_load_relaxed(&gw_awaited) + 1);
    if (gw_unlikely(gw_load_relaxed(&gw_timing)))
        tell_sampler(f, r, t1);
    bool waited = !f->outer && blocks(f, r->flags, t1);
    end(t, r, &apart);
    if (gw_unlikely(waited))
        gw_section_begins(t, t1);
}
