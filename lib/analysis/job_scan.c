/* From one rank's recording to the rows of its NCCL kernels: the timeline's model (timeline.h),
 * but with the ends of collectives left open. */
#include "durations.h"
#include "grow.h"
#include "job_moment.h"
#include "kinds.h"
#include "timeline.h"

#include <math.h>
#include <string.h>

#define STREAMS    65536u
#define EVENTS     65536u
#define WAKE_NS    4000  /* from the end of the work to the return of the call that waits for it */
#define WAITED     15000 /* a call that lasts no longer may have found the work done */
#define LONGEST_NS ((int64_t)100000 * 1000000000) /* no operation is believed to last longer */
#define TICK       0x100000u

/* A call showed that what is up to an ordinal of a stream, but not all there was, ended then. */
struct led {
    struct job_moment from, known; /* its end by the model before it was shown: as it was when it */
    uint32_t frame; /* was recorded, in the frame of then, and as known at the call */
    int64_t at;
    uint64_t ordinal; /* 0: none */
};

struct stream {
    struct job_moment end, wait;
    uint64_t wait_ordinal; /* whose end wait.host is: in the stream `wait_of` */
    uint16_t wait_of;
    struct gwa_context context;
    uint64_t ordinal, done_ordinal; /* of what it was given; up to there a call showed ... */
    struct job_moment done;         /* ... that it was over by then */
    struct led led;                 /* what is behind that comes later too */
    uint32_t frame;                 /* so often its end was led on */
    uint32_t row;                   /* its last operation was this row's kernel; 0: another */
    uint8_t type, device;
    bool blocking; /* ordered against the legacy default stream */
};

struct recorded {
    uint64_t handle;
    struct job_moment end;
    uint64_t ordinal; /* in its stream */
    uint32_t frame;   /* of its stream then */
    uint16_t stream;  /* 0: none */
};

struct scan {
    struct gwt_trace *trace;
    struct gwa_durations *durations;
    struct job_rows *rows;
    struct stream **streams; /* by id */
    uint16_t *known;         /* ids of those there are */
    size_t known_count, known_room;
    struct recorded *events;
    struct job_calls calls;
    struct job_supposed supposed;
    double compute, copies; /* ns submitted so far */
    uint64_t kernels;
    int64_t gap, handover;
};

/* ---- streams -------------------------------------------------------------------------- */

static int stream_of(struct scan *s, const struct gwt_event *e, struct stream **out)
{
    *out = s->streams[e->stream];
    if (*out || !e->stream || e->device == 0xff)
        return 0;
    const struct gwt_def_stream *def = gwt_stream(s->trace, e->stream);
    if (!def)
        return 0;
    struct stream *made = calloc(1, sizeof(*made));
    if (!made ||
        gwa_reserve((void **)&s->known, &s->known_room, s->known_count, sizeof(*s->known))) {
        free(made);
        return -ENOMEM;
    }
    made->end = made->wait = job_moment_at(NEVER);
    made->type = def->type;
    made->device = e->device;
    made->blocking = (def->type == GWT_STREAM_USER && def->nonblocking == 0) ||
                     def->type == GWT_STREAM_PER_THREAD;
    s->known[s->known_count++] = e->stream;
    *out = s->streams[e->stream] = made;
    return 0;
}

/* Its next operation waits for `m`, when all up to the ordinal in the stream `of` is over. */
static void wait_until(struct scan *s, struct stream *stream, const struct job_moment *m,
                       uint16_t of, uint64_t ordinal)
{
    if (m->host > stream->wait.host) {
        stream->wait_of = of;
        stream->wait_ordinal = ordinal;
    }
    gwa_job_moment_join(&s->supposed, &stream->wait, m);
}

/* What the legacy default stream and those that it orders wait for in each other. */
static void order(struct scan *s, struct stream *stream)
{
    bool legacy = stream->type == GWT_STREAM_LEGACY;
    if (!legacy && !stream->blocking)
        return;
    for (size_t i = 0; i < s->known_count; i++) {
        const struct stream *other = s->streams[s->known[i]];
        if (other != stream && other->device == stream->device &&
            (legacy ? other->blocking : other->type == GWT_STREAM_LEGACY))
            wait_until(s, stream, &other->end, s->known[i], other->ordinal);
    }
}

/* post: when the stream is ready for what the call submits, its own last operation left out. */
static struct job_moment ready(struct scan *s, struct stream *stream, const struct gwt_event *e)
{
    const struct stream *of = s->streams[stream->wait_of];
    order(s, stream);
    struct job_moment m = stream->wait;
    if (of && stream->wait_ordinal <= of->done_ordinal && m.host > of->done.host)
        m.host = m.since = of->done.host;
    job_moment_from(&m, e->t1_ns + GWA_START_NS);
    return m;
}

/* pre: m is when it is ready. */
static void occupy(struct scan *s, struct stream *stream, const struct job_moment *m, double ns)
{
    struct job_moment *end = &stream->end;
    job_moment_later(end, s->gap);
    gwa_job_moment_join(&s->supposed, end, m);
    job_moment_later(end, ns < 1 ? 1 : ns > LONGEST_NS ? LONGEST_NS : (int64_t)ns);
    stream->wait = job_moment_at(NEVER); /* what is behind it waits for its end */
    stream->row = 0;
    stream->ordinal++;
}

/* ---- NCCL's kernels ------------------------------------------------------------------- */

#define UNITS(ns) ((uint32_t)(uint64_t)fmod((ns) / 100, 4294967296.0))

static float modelled(const struct job_moment *m)
{
    return m->host == NEVER ? 0 : (float)(m->host - m->since);
}

static int add_row(struct scan *s, const struct job_moment *m, uint32_t before, int64_t entry)
{
    struct job_rows *r = s->rows;
    if (gwa_reserve((void **)&r->list, &r->room, r->count, sizeof(*r->list)) ||
        gwa_reserve((void **)&s->supposed.ends, &s->supposed.ends_room, r->count + 1,
                    sizeof(*s->supposed.ends)))
        return -ENOMEM;
    r->list[r->count++] = (struct job_row){.submitted = entry,
                                           .host = m->host,
                                           .after = {(float)m->on[0].after, (float)m->on[1].after},
                                           .on = {m->on[0].of, m->on[1].of},
                                           .modelled = modelled(m),
                                           .base = m->base,
                                           .before = before,
                                           .comm = JOB_NO_COMM,
                                           .op = JOB_OTHER,
                                           .compute = UNITS(s->compute),
                                           .copies = UNITS(s->copies),
                                           .kernels = (uint32_t)s->kernels};
    return 0;
}

static int nccl_kernel(struct scan *s, const struct gwt_event *e, struct stream *stream)
{
    struct job_rows *r = s->rows;
    struct job_moment m = ready(s, stream, e);
    uint32_t before = stream->row;
    int rc;
    if (r->count >= r->most) {
        r->cut = true;
        occupy(s, stream, &m, JOB_GUESS_NS);
        return 0;
    }
    if (!before) { /* other work of its stream is part of what makes it ready */
        struct job_moment behind = stream->end;
        job_moment_later(&behind, s->gap);
        gwa_job_moment_join(&s->supposed, &m, &behind);
    }
    if ((rc = add_row(s, &m, before, e->t0_ns)))
        return rc;
    struct job_row *row = &r->list[r->count - 1];
    if ((rc = gwa_job_calls_kernel(&s->calls, e)))
        return rc;
    int64_t start = job_moment_value(&m, &s->supposed);
    if (before && s->supposed.ends[before] + s->gap > start)
        start = s->supposed.ends[before] + s->gap;
    s->supposed.ends[r->count] =
        job_later(start, JOB_GUESS_NS + (int64_t)(JOB_GUESS_PER_BYTE * (double)row->bytes));
    stream->ordinal++;
    stream->wait = job_moment_at(NEVER);
    stream->end = (struct job_moment){.host = NEVER, .base = (uint32_t)r->count};
    stream->end.on[0].of = (uint32_t)r->count;
    stream->row = (uint32_t)r->count;
    return 0;
}

/* ---- events and waits ------------------------------------------------------------------- */

static struct recorded *recorded_of(struct scan *s, uint64_t handle)
{
    return &s->events[(handle * 0x9e3779b97f4a7c15u) >> 48];
}

static void record_event(struct scan *s, const struct gwt_event *e, struct stream *stream)
{
    struct recorded *r = recorded_of(s, e->value);
    order(s, stream);
    *r = (struct recorded){.handle = e->value,
                           .end = stream->end,
                           .ordinal = ++stream->ordinal,
                           .frame = stream->frame,
                           .stream = e->stream};
    gwa_job_moment_join(&s->supposed, &r->end, &stream->wait);
}

/* As known by now: a call that came after it may have shown that it was over by then, or that what
 * it is behind of was not before. */
static struct job_moment end_of(struct scan *s, const struct recorded *r)
{
    const struct stream *stream = s->streams[r->stream];
    struct job_moment end = r->end;
    if (stream && r->ordinal <= stream->done_ordinal)
        end = stream->done;
    else if (stream && stream->led.ordinal)
        gwa_job_moment_lead(&s->supposed, &end,
                            r->frame == stream->led.frame ? &stream->led.from : &stream->led.known,
                            stream->led.at);
    return end;
}

static void wait_for_event(struct scan *s, const struct gwt_event *e, struct stream *stream)
{
    const struct recorded *r = recorded_of(s, e->value);
    if (!r->stream || r->handle != e->value || r->stream == e->stream)
        return;
    struct job_moment m = end_of(s, r);
    job_moment_later(&m, s->handover);
    wait_until(s, stream, &m, r->stream, r->ordinal);
    stream->ordinal++;
}

/* A call returned that waited for `m`. post: 0 or -ENOMEM. */
static int see(struct scan *s, const struct job_moment *m, const struct gwt_event *e)
{
    struct job_rows *r = s->rows;
    int64_t at = e->t1_ns - WAKE_NS, host = m->host;
    struct job_term newest;
    if (!m->on[0].of || e->t1_ns - e->t0_ns < WAITED)
        return 0;
    if (gwa_reserve((void **)&r->seen, &r->seen_room, r->seen_count, sizeof(*r->seen)))
        return -ENOMEM;
    newest.of = gwa_job_moment_newest(r, m, &newest.after, &host);
    r->seen[r->seen_count++] = (struct job_seen){.at = at,
                                                 .host = host,
                                                 .on = {m->on[0], m->on[1]},
                                                 .newest = newest,
                                                 .modelled = modelled(m),
                                                 .lasted_ns = (float)(e->t1_ns - e->t0_ns)};
    /* Later than all else explains: then the newest collective took so long. */
    int64_t late = at - job_moment_value(m, &s->supposed);
    if (late > 0 && late / JOB_CAUGHT < e->t1_ns - e->t0_ns)
        s->supposed.ends[newest.of] = at - newest.after;
    return 0;
}

/* Its waits are over as well as its operations: the model may have meant either to be later. */
static void ended(const struct scan *s, struct stream *stream, const struct job_moment *m,
                  int64_t at)
{
    struct job_moment end = job_moment_at(at);
    int64_t after, host = NEVER;
    uint32_t newest = gwa_job_moment_newest(s->rows, m, &after, &host);
    end.base = newest > m->base ? newest : m->base;
    stream->end = stream->wait = stream->done = end;
    stream->done_ordinal = stream->ordinal;
    stream->row = 0;
}

static int wait_for_stream(struct scan *s, const struct gwt_event *e, struct stream *stream)
{
    struct job_moment m = stream->end;
    gwa_job_moment_join(&s->supposed, &m, &stream->wait);
    int rc = see(s, &m, e);
    ended(s, stream, &m, e->t1_ns - WAKE_NS);
    return rc;
}

static int wait_for_device(struct scan *s, const struct gwt_event *e)
{
    struct job_moment m = job_moment_at(NEVER);
    for (size_t i = 0; i < s->known_count; i++)
        if (s->streams[s->known[i]]->device == e->device)
            gwa_job_moment_join(&s->supposed, &m, &s->streams[s->known[i]]->end);
    int rc = see(s, &m, e);
    for (size_t i = 0; i < s->known_count; i++)
        if (s->streams[s->known[i]]->device == e->device)
            ended(s, s->streams[s->known[i]], &m, e->t1_ns - WAKE_NS);
    return rc;
}

static int wait_for_recorded(struct scan *s, const struct gwt_event *e)
{
    const struct recorded *r = recorded_of(s, e->value);
    struct stream *stream = s->streams[r->stream];
    if (!stream || r->handle != e->value)
        return 0;
    struct job_moment m = end_of(s, r);
    bool over =
        job_moment_value(&m, &s->supposed) < e->t0_ns; /* by the model: that is not at odds */
    int rc = see(s, &m, e);
    if (r->ordinal == stream->ordinal) {
        ended(s, stream, &m, e->t1_ns - WAKE_NS);
    } else if (r->ordinal > stream->done_ordinal) {
        struct stream past = {.ordinal = r->ordinal};
        ended(s, &past, &m, e->t1_ns - WAKE_NS);
        if (!over) {
            stream->led = (struct led){.from = r->end,
                                       .known = m,
                                       .frame = r->frame,
                                       .at = past.end.host,
                                       .ordinal = r->ordinal};
            gwa_job_moment_lead(&s->supposed, &stream->end, &m, past.end.host);
            stream->frame++;
        }
        stream->done = past.done;
        stream->done_ordinal = r->ordinal;
    }
    return rc;
}

static int sync_call(struct scan *s, const struct gwt_event *e)
{
    switch (GWT_F_SUB(e->flags)) {
    case GWT_SCOPE_DEVICE:
        return wait_for_device(s, e);
    case GWT_SCOPE_STREAM:
        return s->streams[e->stream] ? wait_for_stream(s, e, s->streams[e->stream]) : 0;
    case GWT_SCOPE_EVENT:
        return wait_for_recorded(s, e);
    default:
        return 0;
    }
}

/* ---- other operations --------------------------------------------------------------------- */

static int launch(struct scan *s, const struct gwt_event *e, struct stream *stream)
{
    struct gwa_duration d;
    gwa_durations_of(s->durations, e, &stream->context, &d);
    if (e->kind == GWT_LAUNCH && gwa_durations_is_comm(s->durations, e->arg))
        return nccl_kernel(s, e, stream);
    s->compute += d.ns;
    s->kernels++;
    s->rows->kernels++;
    s->rows->guessed += d.guessed;
    struct job_moment m = ready(s, stream, e);
    occupy(s, stream, &m, d.ns);
    return 0;
}

static int copy(struct scan *s, const struct gwt_event *e, struct stream *stream)
{
    struct gwa_duration d;
    bool blocks = e->kind == GWT_COPY && (gwa_waits_for_copy(e) || e->flags & GWT_F_BLOCKING);
    if (!e->value || (e->kind == GWT_COPY && GWT_F_SUB(e->flags) == GWT_H2H))
        return 0;
    gwa_durations_of(s->durations, e, &stream->context, &d);
    if (blocks && d.ns > (double)(e->t1_ns - e->t0_ns))
        d.ns = (double)(e->t1_ns - e->t0_ns);
    s->copies += d.ns;
    s->rows->copy_ns += d.ns;
    s->rows->timed_copy_ns += d.own || blocks ? d.ns : 0;
    if (!blocks) {
        struct job_moment m = ready(s, stream, e);
        occupy(s, stream, &m, d.ns);
        return 0;
    }
    order(s, stream);
    struct job_moment m = stream->end;
    gwa_job_moment_join(&s->supposed, &m, &stream->wait);
    job_moment_later(&m, s->handover + (int64_t)d.ns);
    int rc = see(s, &m, e);
    ended(s, stream, &m, e->t1_ns);
    return rc;
}

static int operation(struct scan *s, const struct gwt_event *e)
{
    struct stream *stream;
    int rc = stream_of(s, e, &stream);
    if (!stream)
        return rc;
    switch (e->kind) {
    case GWT_LAUNCH:
    case GWT_GRAPH_LAUNCH:
        return launch(s, e, stream);
    case GWT_COPY:
    case GWT_MEMSET:
        return copy(s, e, stream);
    case GWT_EVENT_RECORD:
        record_event(s, e, stream);
        return 0;
    default:
        wait_for_event(s, e, stream);
        return 0;
    }
}

static int event(struct scan *s, const struct gwt_event *e)
{
    if (e->t0_ns < -JOB_FARTHEST / 2 || e->t1_ns > JOB_FARTHEST / 2)
        return 0;
    if (e->t1_ns > s->rows->last)
        s->rows->last = e->t1_ns;
    switch (e->kind) {
    case GWT_NCCL:
        return gwa_job_calls_nccl(&s->calls, e);
    case GWT_NCCL_GROUP:
        return gwa_job_calls_group(&s->calls, e);
    case GWT_SYNC:
        return gwa_executed(e) ? sync_call(s, e) : 0;
    case GWT_LAUNCH:
    case GWT_GRAPH_LAUNCH:
        if (s->rows->first == NEVER)
            s->rows->first = e->t0_ns;
        return gwa_executed(e) ? operation(s, e) : 0;
    case GWT_COPY:
    case GWT_MEMSET:
    case GWT_EVENT_RECORD:
    case GWT_STREAM_WAIT:
        return gwa_executed(e) ? operation(s, e) : 0;
    default:
        return 0;
    }
}

/* ---- the passes ---------------------------------------------------------------------------- */

struct ticks {
    const struct gwa_options *options;
    uint64_t done, total;
};

static inline int tick(struct ticks *t)
{
    if (++t->done & (TICK - 1) || !t->options->progress)
        return 0;
    return t->options->progress(t->options->progress_arg, t->done, t->total) ? -ECANCELED : 0;
}

static int learn(struct scan *s, struct ticks *ticks)
{
    struct job_rows *r = s->rows;
    struct gwt_event e;
    int rc = 0;
    gwt_rewind(s->trace);
    while (!rc && gwt_next(s->trace, &e) > 0) {
        rc = gwa_durations_event(s->durations, &e);
        if (r->timed == NEVER && e.kind == GWT_SAMPLE && e.raw && !(e.flags >> 8) &&
            GWT_SAMPLE_CLASS(e.flags) == GWT_SAMPLE_KERNEL)
            r->timed = e.t0_ns;
        if (!rc)
            rc = tick(ticks);
    }
    if (!rc && !ticks->done)
        return -ENODATA;
    return rc ? rc : gwa_durations_fit(s->durations);
}

static int follow(struct scan *s, struct ticks *ticks)
{
    struct gwt_event e;
    double gap, error;
    int rc = 0;
    gwa_durations_gap(s->durations, false, &gap, &error);
    s->gap = (int64_t)gap;
    s->handover = (int64_t)(GWA_HANDOVER_NS * gwa_durations_pace(s->durations));
    gwt_rewind(s->trace);
    while (!rc && gwt_next(s->trace, &e) > 0) {
        rc = event(s, &e);
        if (!rc)
            rc = tick(ticks);
    }
    return rc;
}

static void release(struct scan *s)
{
    for (size_t i = 0; i < s->known_count; i++)
        free(s->streams[s->known[i]]);
    gwa_durations_free(s->durations);
    free(s->streams);
    free(s->known);
    free(s->events);
    gwa_job_calls_free(&s->calls);
    free(s->supposed.ends);
    free(s->supposed.latest);
}

int gwa_job_rows(struct gwt_trace *trace, const struct gwa_options *options, size_t most,
                 struct job_rows *out)
{
    struct ticks ticks = {.options = options, .total = 2 * gwt_coverage(trace)->events};
    struct scan s = {.trace = trace, .rows = out, .supposed.rows = out};
    int rc = -ENOMEM;
    *out = (struct job_rows){.most = most, .first = NEVER, .last = NEVER, .timed = NEVER};
    s.durations = gwa_durations_new(trace);
    s.streams = calloc(STREAMS, sizeof(*s.streams));
    s.events = calloc(EVENTS, sizeof(*s.events));
    int rc_calls = gwa_job_calls_init(&s.calls, trace, out);
    if (s.durations && s.streams && s.events && !rc_calls)
        rc = learn(&s, &ticks);
    if (!rc) {
        out->sampled = gwa_durations_samples(s.durations);
        rc = follow(&s, &ticks);
        const struct gwt_coverage *c = gwt_coverage(trace);
        out->gaps = c->dropped || c->missing || c->aggregated;
    }
    release(&s);
    if (rc)
        gwa_job_rows_free(out);
    return rc;
}

void gwa_job_rows_free(struct job_rows *rows)
{
    free(rows->list);
    free(rows->latest);
    free(rows->seen);
    free(rows->comms);
    *rows = (struct job_rows){0};
}
