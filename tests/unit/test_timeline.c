/* The timeline, by hand: each test says when every operation must run and why. Times are
 * microseconds; a submission takes 2 to arrive, a stream pauses 1 between operations, and 2
 * between engines and where it waited for another stream. */
#include "test_analysis_fake.h"

#include "analysis/timeline_internal.h"

#define KERNEL_CONSTANT 2700 /* ns, what a pair adds */
#define COPY_CONSTANT   2000
/* ns: CUPTI counts 600 more than the kernel that the constant is measured with sees of itself, and
 * a pair around a program's kernel waits 150 for what it wrote */
#define KERNEL_ADDS (KERNEL_CONSTANT - 600 + 150)

enum { S_C = 20, K_COMM = 20, K_LONG, K_WIDE, K_OTHER };

static struct gwt_trace *timed(void)
{
    static const unsigned classes[] = {GWT_SAMPLE_KERNEL, GWT_SAMPLE_GRAPH, GWT_SAMPLE_H2D,
                                       GWT_SAMPLE_D2H,    GWT_SAMPLE_D2D,   GWT_SAMPLE_MEMSET};
    struct gwt_trace *t = fake_new();
    t->devices[0].cc_major = 9;
    t->streams[S_C] =
        (struct gwt_def_stream){.type = GWT_STREAM_USER, .handle = 0xcc, .nonblocking = 1};
    t->strings[K_COMM] = "_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorage";
    t->signatures[K_COMM] = (struct gwt_signature_info){.name_id = K_COMM, .grid = {24, 1, 1}};
    for (size_t i = 0; i < 6; i++) {
        struct gwt_event *e = fake_add(t, 9, 0, 0, GWT_CONSTANT);
        e->flags = (uint16_t)classes[i];
        e->arg = 20;
        e->value = (i < 2 ? KERNEL_CONSTANT : COPY_CONSTANT) * 1000u;
    }
    return t;
}

static struct gwt_event *sample_at(struct gwt_trace *t, int64_t t0, unsigned class, unsigned stream,
                                   unsigned arg, uint64_t bytes, double us)
{
    struct gwt_event *e = fake_add(t, 9, t0, t0, GWT_SAMPLE);
    e->flags = (uint16_t)(class | GWT_SAMPLE_SPACER);
    e->stream = (uint16_t)stream;
    e->arg = arg;
    e->value = bytes;
    e->raw = class <= GWT_SAMPLE_GRAPH ? (uint32_t)(us * US) + KERNEL_ADDS
                                       : (uint32_t)(us * US) + COPY_CONSTANT;
    return e;
}

/* That signature, graph or copy lasts so long, whenever it was that it was timed. */
static void lasts(struct gwt_trace *t, unsigned class, unsigned arg, double us)
{
    sample_at(t, -1000, class, S_A, arg, 0, us);
}

static void copies_last(struct gwt_trace *t, unsigned class, uint64_t bytes, double us)
{
    sample_at(t, -1000, class, S_A, 0, bytes, us);
    sample_at(t, -1001, class, S_A, 0, bytes, us);
}

struct run {
    struct gwt_trace *trace;
    struct gwa_durations *durations;
    struct gwa_timeline *timeline;
    const struct gwa_timeline_device *device;
    struct gwa_sums sums;
};

static struct gwa_model usual_model(bool fixed)
{
    return (struct gwa_model){
        .start_ns = 2 * US, .ns = {[GWA_GAP] = 1 * US, [GWA_HANDOVER] = 2 * US}, .fixed = fixed};
}

static struct run run_model(struct gwt_trace *t, struct gwa_ranges *ranges, struct gwa_model model)
{
    struct run r = {.trace = t, .durations = gwa_durations_new(t)};
    struct gwt_event e;
    assert_non_null(r.durations);
    gwt_rewind(t);
    while (gwt_next(t, &e))
        assert_int_equal(gwa_durations_event(r.durations, &e), 0);
    assert_int_equal(gwa_durations_fit(r.durations), 0);
    r.timeline = gwa_timeline_new(t, ranges, r.durations, &model);
    assert_non_null(r.timeline);
    gwt_rewind(t);
    while (gwt_next(t, &e)) {
        double ns;
        assert_int_equal(gwa_timeline_event(r.timeline, &e, NULL, &ns), 0);
    }
    assert_int_equal(gwa_timeline_finish(r.timeline), 0);
    r.device = gwa_timeline_of(r.timeline, 0);
    if (r.device)
        r.sums = r.device->sweep.sums;
    return r;
}

static struct run run_in(struct gwt_trace *t, struct gwa_ranges *ranges)
{
    return run_model(t, ranges, usual_model(true));
}

static struct gwa_ranges all = {.all = true};

static struct run run(struct gwt_trace *t)
{
    return run_model(t, &all, usual_model(true));
}

/* The run tells what the gap is and how long waking up takes. */
static struct run run_learning(struct gwt_trace *t)
{
    return run_model(t, &all, usual_model(false));
}

static void end(struct run *r)
{
    gwa_timeline_free(r->timeline);
    gwa_durations_free(r->durations);
    free(r->trace);
}

static double us(double ns)
{
    return ns / US;
}

/* The parts add up, and so do the gaps. */
static void assert_sums(const struct run *r, double wall, double compute, double comm,
                        double copies)
{
    const struct gwa_sums *s = &r->sums;
    assert_near(us(s->wall), wall, 1e-3);
    assert_near(us(s->time[GWA_COMPUTE]), compute, 1e-3);
    assert_near(us(s->time[GWA_COMM]), comm, 1e-3);
    assert_near(us(s->time[GWA_COPY]), copies, 1e-3);
    assert_near(us(s->idle), wall - compute - comm - copies, 1e-3);
    assert_near(us(s->band[0] + s->band[1] + s->band[2]), us(s->idle), 1e-3);
}

/* ---- one stream --------------------------------------------------------------------- */

static void each_starts_when_it_may(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    launch(t, 0, S_A, K_ADD);   /* returns at 1: 3..13 */
    launch(t, 2, S_A, K_ADD);   /* could start at 5, but waits: 14..24 */
    launch(t, 100, S_A, K_ADD); /* 103..113 */
    struct run r = run(t);
    assert_sums(&r, 110, 30, 0, 0);
    assert_near(us(r.sums.band[GWA_UNDER_10US]), 1, 1e-3);
    assert_near(us(r.sums.band[GWA_10_TO_100US]), 79, 1e-3);
    assert_int_equal(r.sums.gaps_count, 2);
    assert_int_equal(r.sums.gaps[0].start, 24 * US);
    assert_int_equal(r.sums.gaps[0].ns, 79 * US);
    assert_int_equal(r.sums.gaps[1].ns, 1 * US);
    assert_int_equal(r.device->launches, 3);
    assert_int_equal(r.device->met_idle, 2);
    assert_near(gwa_hist_mean(&r.device->queue), (2 + 11 + 2) * US / 3.0, 1);
    assert_int_equal(r.device->signatures[K_ADD].count, 3);
    assert_near(us(r.device->signatures[K_ADD].ns), 30, 1e-3);
    end(&r);
}

static void a_gap_of_exactly_100_or_10_us_is_of_the_middle(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    launch(t, 0, S_A, K_ADD);   /* 3..13 */
    launch(t, 110, S_A, K_ADD); /* 113..123: 100 */
    launch(t, 130, S_A, K_ADD); /* 133..143: 10 */
    launch(t, 241, S_A, K_ADD); /* 244: 101 */
    struct run r = run(t);
    assert_near(us(r.sums.band[GWA_OVER_100US]), 101, 1e-3);
    assert_near(us(r.sums.band[GWA_10_TO_100US]), 110, 1e-3);
    assert_near(us(r.sums.band[GWA_UNDER_10US]), 0, 1e-3);
    end(&r);
}

static void a_host_that_is_ahead_saturates_the_device(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    for (int i = 0; i < 20; i++)
        launch(t, 2 * i, S_A, K_ADD); /* 3..13, 14..24, ... 212..222 */
    struct run r = run(t);
    assert_sums(&r, 219, 200, 0, 0);
    assert_near(us(r.sums.band[GWA_UNDER_10US]), 19, 1e-3);
    assert_int_equal(r.device->met_idle, 1);
    end(&r);
}

static void dependent_launches_leave_no_gap(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    launch(t, 0, S_A, K_ADD);                     /* 3..13 */
    launch(t, 2, S_A, K_ADD)->flags = GWT_F_PDL;  /* 13..23 */
    launch(t, 4, S_A, K_ADD)->flags = GWT_F_COOP; /* 24..34 */
    launch(t, 60, S_A, K_ADD)->flags = GWT_F_PDL; /* 63..73: nobody to depend on */
    struct run r = run(t);
    assert_sums(&r, 70, 40, 0, 0);
    end(&r);
}

static void what_did_not_run_is_not_there(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    launch(t, 0, S_A, K_ADD);                          /* 3..13 */
    launch(t, 20, S_A, K_ADD)->flags = GWT_F_CAPTURED; /* into a graph */
    launch(t, 30, S_A, K_ADD)->status = 700;
    launch(t, 40, S_A, K_ADD)->flags = GWT_F_UNWOUND;
    copy(t, 50, 51, S_A, GWT_H2D, 4096, GWT_F_CAPTURED);
    copy(t, 52, 53, S_A, GWT_H2D, 0, 0); /* of nothing */
    record_event(t, 54, S_A, 5)->flags = GWT_F_CAPTURED;
    wait_event(t, 56, S_B, 5);
    launch(t, 60, S_B, K_ADD); /* 63..73 */
    struct run r = run(t);
    assert_sums(&r, 70, 20, 0, 0);
    assert_int_equal(r.device->launches, 2);
    end(&r);
}

static void with_launches_that_block_each_ends_at_its_return(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    t->facts[1][0] = "env.CUDA_LAUNCH_BLOCKING", t->facts[1][1] = "1";
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    fake_call(t, 1, 0, 30, API_LAUNCH, S_A)->arg = K_ADD;  /* 20..30 */
    fake_call(t, 1, 40, 44, API_LAUNCH, S_A)->arg = K_ADD; /* never before its entry: 40..44 */
    fake_call(t, 1, 50, 62, API_LAUNCH, S_A)->arg = K_ADD; /* 52..62 */
    struct run r = run(t);
    assert_sums(&r, 42, 24, 0, 0);
    assert_near(gwa_hist_mean(&r.device->queue), 0, 0);
    end(&r);
}

/* ---- several streams ---------------------------------------------------------------- */

static void streams_run_side_by_side(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 50);
    lasts(t, GWT_SAMPLE_KERNEL, K_GEMM, 30);
    launch(t, 0, S_A, K_ADD);   /* 3..53 */
    launch(t, 10, S_B, K_GEMM); /* 13..43, inside */
    launch(t, 40, S_B, K_GEMM); /* 44..74, beyond */
    struct run r = run(t);
    assert_sums(&r, 71, 71, 0, 0); /* busy is a union, never a sum */
    assert_near(us(r.device->ns), 110, 1e-3);
    assert_int_equal(r.device->met_idle, 1);
    end(&r);
}

static void a_stream_waits_for_the_record_of_before(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 50);
    lasts(t, GWT_SAMPLE_KERNEL, K_GEMM, 10);
    launch(t, 0, S_A, K_ADD);    /* A: 3..53 */
    record_event(t, 2, S_A, 77); /* at 53 */
    wait_event(t, 4, S_B, 77);
    launch(t, 6, S_A, K_ADD);    /* A: 54..104 */
    record_event(t, 8, S_A, 77); /* anew: not what B waits for */
    launch(t, 10, S_B, K_GEMM);  /* B: 55..65 */
    launch(t, 12, S_B, K_GEMM);  /* B: 66..76 */
    wait_event(t, 14, S_C, 99);  /* never recorded: nothing to wait for */
    launch(t, 16, S_C, K_GEMM);  /* C: 19..29 */
    wait_event(t, 18, S_C, 77);
    launch(t, 20, S_C, K_GEMM); /* C: 106..116 */
    struct run r = run(t);
    assert_sums(&r, 113, 50 + 50 + 10, 0, 0);
    end(&r);
}

/* A pair adds 2.25 to a kernel and, in a stream that is busy, 0.6 more: so long it takes from the
 * one kernel to the other with an event between them; less a gap, until that event is over. */
static void an_event_with_a_time_stamp_holds_up_what_is_behind_it(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 50);
    lasts(t, GWT_SAMPLE_KERNEL, K_GEMM, 10);
    launch(t, 0, S_A, K_ADD);                                          /* A: 3..53 */
    record_event(t, 2, S_A, 77)->flags = GWT_STAMP << GWT_F_SUB_SHIFT; /* until 54.25 */
    launch(t, 4, S_A, K_GEMM);                                         /* A: 55.85..65.85 */
    wait_event(t, 6, S_B, 77);
    launch(t, 8, S_B, K_GEMM);    /* B: 56.25..66.25 */
    launch(t, 10, S_A, K_GEMM);   /* A: 66.85..76.85 */
    record_event(t, 12, S_A, 78); /* without one */
    launch(t, 14, S_A, K_GEMM);   /* A: 77.85..87.85 */
    struct run r = run(t);
    assert_sums(&r, 84.85, 50 + 10.4 + 10 + 10, 0, 0);
    end(&r);
}

static void the_legacy_stream_and_blocking_streams_take_turns(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 50);
    lasts(t, GWT_SAMPLE_KERNEL, K_GEMM, 20);
    launch(t, 0, S_A, K_ADD);            /* 3..53 */
    launch(t, 2, S_LEGACY, K_GEMM);      /* after A: 55..75 */
    launch(t, 4, S_B, K_GEMM);           /* after the legacy stream: 77..97 */
    launch(t, 6, S_PER_THREAD, K_GEMM);  /* likewise, beside B */
    launch(t, 8, S_NONBLOCKING, K_GEMM); /* 11..31, whatever they do */
    launch(t, 10, S_LEGACY, K_ADD);      /* after B: 99..149 */
    struct run r = run(t);
    assert_sums(&r, 146, 140, 0, 0);
    assert_near(gwa_hist_quantile(&r.device->queue, 1), 88 * US, US); /* the last */
    end(&r);
}

static void a_host_function_holds_its_stream(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    launch(t, 0, S_A, K_ADD);                                     /* 3..13 */
    fake_call(t, 1, 2, 3, API_MODULE, S_A)->kind = GWT_HOST_FUNC; /* from 13, taken to last 5 */
    launch(t, 4, S_A, K_ADD);                                     /* 18..28 */
    struct run r = run(t);
    assert_sums(&r, 25, 20, 0, 0);
    end(&r);
}

/* ---- copies ------------------------------------------------------------------------- */

static void communication_and_copies_count_where_nothing_better_runs(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 50);
    copies_last(t, GWT_SAMPLE_H2D, 1 << 20, 100);
    copies_last(t, GWT_SAMPLE_MEMSET, 4096, 5);
    launch(t, 0, S_A, K_ADD);                            /* 3..53 */
    copy(t, 20, 21, S_NONBLOCKING, GWT_H2D, 1 << 20, 0); /* 23..123: 53..123 exposed */
    launch(t, 80, S_C, K_COMM); /* 83..103: a collective is taken for 20 us */
    fake_call(t, 1, 147, 148, API_MEMSET, S_A)->value = 4096; /* 150..155 */
    struct run r = run(t);
    assert_sums(&r, 152, 50, 20, 30 + 20 + 5);
    const struct gwa_moved *m = gwa_timeline_moved(r.timeline, S_NONBLOCKING, GWT_H2D, 1);
    assert_non_null(m);
    assert_near(us(m->busy_ns), 100, 1e-3);
    assert_near(us(m->exposed_ns), 50, 1e-3); /* a kernel of NCCL hides it too */
    assert_null(gwa_timeline_moved(r.timeline, S_A, GWT_H2D, 1));
    end(&r);
}

static void a_blocking_copy_ends_at_its_return(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 50);
    copies_last(t, GWT_SAMPLE_D2H, 1 << 20, 20);
    launch(t, 0, S_A, K_ADD);                                 /* 3..53 */
    copy(t, 2, 90, S_A, GWT_D2H, 1 << 20, GWT_F_BLOCKING);    /* 70..90 */
    launch(t, 100, S_A, K_ADD);                               /* 103..153 by the samples ... */
    copy(t, 102, 160, S_A, GWT_D2H, 1 << 20, GWT_F_BLOCKING); /* 140..160: it had ended at 140 */
    copy(t, 170, 171, S_A, GWT_D2D, 1 << 20, 0);
    struct run r = run(t);
    assert_near(us(r.sums.time[GWA_COMPUTE]), 50 + 37, 1e-3);
    assert_int_equal(r.sums.gaps[0].start, 53 * US);
    assert_int_equal(r.sums.gaps[0].ns, 17 * US);
    const struct gwa_moved *m = gwa_timeline_moved(r.timeline, S_A, GWT_D2H, 1);
    assert_near(us(m->busy_ns), 40, 1e-3);
    assert_near(us(m->exposed_ns), 40, 1e-3);
    end(&r);
}

static void a_pageable_copy_lasts_as_long_as_its_call_lets_it(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    copies_last(t, GWT_SAMPLE_H2D, 1 << 20, 20);
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 300);
    /* 6 us are the call's own, and the host alone moves the first piece: 85 % of 80, up to the
     * return, though pinned memory takes 20 */
    copy(t, 74, 160, S_A, GWT_H2D, 1 << 20, GWT_F_PAGEABLE);
    struct run r = run(t);
    assert_sums(&r, 68, 0, 0, 68);
    assert_near(us(gwa_timeline_moved(r.timeline, S_A, GWT_H2D, 2)->busy_ns), 68, 1e-3);
    end(&r);

    t = timed();
    copies_last(t, GWT_SAMPLE_H2D, 64, 2);
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 300);
    launch(t, 0, S_A, K_ADD); /* 3..303 */
    /* few bytes are staged at once, and the call returns though the copy has to queue */
    copy(t, 10, 30, S_A, GWT_H2D, 64, GWT_F_PAGEABLE); /* 305..307 */
    r = run(t);
    assert_sums(&r, 304, 300, 0, 2);
    end(&r);
}

static void a_call_that_returns_late_is_put_where_it_belongs(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    copies_last(t, GWT_SAMPLE_D2H, 1 << 30, 20000);
    for (int i = 0; i < 200; i++)
        launch(t, 100 * i, S_A, K_ADD); /* one in 100 us, until 19913 */
    /* entered first, returns last: 1000..21000, beside all of that */
    struct gwt_event *e = copy(t, 0, 21000, S_C, GWT_D2H, 1 << 30, GWT_F_BLOCKING);
    e->thread = 2;
    struct run r = run(t);
    assert_sums(&r, 20997, 2000, 0, 20000 - 1900); /* the last 190 launches run meanwhile */
    assert_int_equal(r.device->sweep.late, 0);
    end(&r);
}

/* ---- graphs ------------------------------------------------------------------------- */

static void graph(struct gwt_trace *t, unsigned id, const struct gwt_graph_item *items, uint32_t n)
{
    t->graph_defs[id] = (struct gwt_def_graph){.items = n, .exact = 1};
    t->graphs[id] = (struct gwt_graph_info){.graph = &t->graph_defs[id], .items = items};
}

static void launch_graph(struct gwt_trace *t, int64_t t0, unsigned id)
{
    fake_call(t, 1, t0, t0 + 1, API_GRAPH, S_A)->arg = id;
}

static void a_graph_takes_what_was_sampled_less_its_gaps(void **state)
{
    static const struct gwt_graph_item items[] = {
        {.kind = GWT_LAUNCH, .count = 3, .signature = K_ADD},
        {.kind = GWT_LAUNCH, .count = 1, .signature = K_GEMM}};
    struct gwt_trace *t = timed();
    (void)state;
    graph(t, 7, items, 2);
    lasts(t, GWT_SAMPLE_GRAPH, 7, 41.5);
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    lasts(t, GWT_SAMPLE_KERNEL, K_GEMM, 8);
    launch_graph(t, 0, 7);  /* 3..44.5, of which nodes 38: 3 gaps of 3.5 in all */
    launch_graph(t, 10, 7); /* 45.5..87 */
    struct run r = run(t);
    assert_sums(&r, 84, 76, 0, 0);
    assert_near(us(r.sums.band[GWA_UNDER_10US]), 3.5 + 1 + 3.5, 1e-3);
    assert_near(us(r.device->signatures[K_ADD].graph_ns), 60, 1e-3);
    assert_near(us(r.device->signatures[K_GEMM].graph_ns), 16, 1e-3);
    assert_int_equal(r.device->graphs[7].count, 2);
    end(&r);
}

/* post: what K_ADD and K_GEMM, timed elsewhere with 50 us each, take of a graph of both */
static void nodes_of_a_graph_of(double us_, double *add, double *gemm)
{
    static const struct gwt_graph_item items[] = {
        {.kind = GWT_LAUNCH, .count = 1, .signature = K_ADD},
        {.kind = GWT_LAUNCH, .count = 1, .signature = K_GEMM}};
    struct gwt_trace *t = timed();
    graph(t, 7, items, 2);
    lasts(t, GWT_SAMPLE_GRAPH, 7, us_);
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 50);
    lasts(t, GWT_SAMPLE_KERNEL, K_GEMM, 50);
    launch_graph(t, 0, 7);
    struct run r = run(t);
    *add = us(r.device->signatures[K_ADD].graph_ns);
    *gemm = us(r.device->signatures[K_GEMM].graph_ns);
    end(&r);
}

/* Side by side each lasts as it does elsewhere; one after another they share what the whole takes.
 */
static void nodes_side_by_side_do_not_share(void **state)
{
    double add, gemm;
    (void)state;
    nodes_of_a_graph_of(56, &add, &gemm);
    assert_near(add, 50, 1e-3);
    assert_near(gemm, 50, 1e-3);
    nodes_of_a_graph_of(92, &add, &gemm);
    assert_near(add, 46, 0.5); /* less a gap */
    assert_near(gemm, 46, 0.5);
}

static void a_graph_without_samples_is_the_sum_of_its_nodes(void **state)
{
    static const struct gwt_graph_item items[] = {
        {.kind = GWT_LAUNCH, .count = 11, .signature = K_ADD}};
    struct gwt_trace *t = timed();
    (void)state;
    graph(t, 7, items, 1);
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    launch_graph(t, 0, 7); /* 110 and 10 gaps of 0.9 */
    struct run r = run(t);
    assert_sums(&r, 119, 110, 0, 0);
    assert_near(us(r.device->own_ns), 0, 0);
    end(&r);
}

/* ---- blocking calls ----------------------------------------------------------------- */

static void what_was_waited_for_had_ended(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 100);
    launch(t, 0, S_A, K_ADD); /* 3..103, 104..204 by the samples */
    launch(t, 2, S_A, K_ADD);
    sync_stream(t, 4, 150.0, S_A); /* so it ended at 149.5 */
    launch(t, 160, S_A, K_ADD);    /* 163.. */
    launch(t, 162, S_B, K_ADD);    /* 165.. */
    sync_device(t, 164, 200);      /* both by 199.5 */
    launch(t, 300, S_A, K_ADD);    /* 303..403 */
    struct run r = run(t);
    assert_sums(&r, 400, 100 + 45.5 + 36.5 + 100, 0, 0);
    assert_near(r.device->anchors, 2, 0);
    end(&r);
}

static void a_wait_for_an_event_bounds_what_came_before_it(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 100);
    launch(t, 0, S_A, K_ADD); /* 3..103 by the samples */
    record_event(t, 2, S_A, 5);
    launch(t, 4, S_A, K_ADD);   /* behind it: 104..204 */
    sync_event(t, 6, 51, 5);    /* the first had ended at 50.5, so the second ran 51.5..151.5 */
    wait_event(t, 60, S_B, 5);  /* long past */
    launch(t, 400, S_B, K_ADD); /* 403..503 */
    struct run r = run(t);
    assert_sums(&r, 500, 47.5 + 100 + 100, 0, 0);
    assert_int_equal(r.sums.gaps[0].start, 151500);
    end(&r);
}

static void another_threads_launch_meanwhile_is_not_bounded(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 100);
    launch(t, 0, S_A, K_ADD);              /* 3..103 */
    launch(t, 50, S_A, K_ADD)->thread = 2; /* 104..204, after the wait began */
    sync_stream(t, 4, 120, S_A);           /* waited for the first alone */
    struct run r = run(t);
    assert_sums(&r, 201, 200, 0, 0);
    end(&r);
}

static void a_wait_that_is_over_at_once_says_nothing(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    launch(t, 0, S_A, K_ADD); /* 3..13 */
    sync_stream(t, 50, 52, S_A);
    launch(t, 60, S_A, K_ADD);     /* 63..73 */
    sync_stream(t, 300, 400, S_A); /* long, but the work was done long before: the host was slow */
    struct run r = run(t);
    assert_sums(&r, 70, 20, 0, 0);
    assert_near(r.device->anchors, 0, 0);
    end(&r);
}

/* Expected durations are uncertain; as far as that goes, the work lasted until the call that
 * waited for it returned. */
static void uncertain_work_may_have_lasted_until_the_wait_ended(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    for (int i = -1; i < 2; i++) /* 100 on the average, give or take 50 */
        lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 100 + 50 * i);
    launch(t, 0, S_A, K_ADD);        /* 3..103 */
    sync_stream(t, 2, 190, S_A);     /* waking up takes some 4: until 186 or so */
    launch(t, 1000, S_A, K_ADD);     /* 1003..1103 */
    sync_stream(t, 1002, 2000, S_A); /* no such luck: beyond three deviations it is the host's */
    launch(t, 3000, S_A, K_ADD);     /* 3003..3103 */
    struct run r = run_learning(t);
    struct gwa_duration d = gwa_durations_signature(r.durations, K_ADD);
    double most = 3 * sqrt(d.error * d.error + d.spread * d.spread) / US;
    assert_near(us(r.sums.time[GWA_COMPUTE]), 183 + (100 + most) + 100, 3);
    assert_near(us((double)r.sums.gaps[1].start), 186, 3);
    assert_true(r.device->excess_ns > 500 * US);
    end(&r);
}

/* A stream that only waits for another: who waits for it waits for the other's work, which lasted
 * so long, and not for the stream's own, which was over. */
static void a_wait_for_a_stream_that_waits_shows_the_work_that_it_waits_for(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    for (int i = -1; i < 2; i++) /* 100 on the average, give or take 50 */
        lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 100 + 50 * i);
    lasts(t, GWT_SAMPLE_KERNEL, K_GEMM, 10);
    launch(t, 0, S_A, K_ADD);  /* A: 3..103 */
    launch(t, 2, S_B, K_GEMM); /* B: 5..15 */
    record_event(t, 4, S_A, 5);
    wait_event(t, 6, S_B, 5);
    sync_stream(t, 8, 190, S_B); /* waking up takes some 4: until 186 or so */
    launch(t, 1000, S_A, K_GEMM);
    struct run r = run_learning(t);
    assert_near(us(r.sums.time[GWA_COMPUTE]), 183 + 10, 3);
    assert_near(us((double)r.sums.gaps[0].start), 186, 3);
    end(&r);
}

/* By the samples a turn takes 70 us longer than it did, and the host waits for what came behind the
 * legacy stream: what that had waited for is over then, and nothing waits for it again. */
static void what_was_waited_for_is_over(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 560);
    lasts(t, GWT_SAMPLE_KERNEL, K_GEMM, 10);
    for (int i = 0; i < 500; i++) {
        int64_t t0 = 530 * i;
        launch(t, t0, S_A, K_ADD);           /* 3..493 in truth */
        launch(t, t0 + 2, S_LEGACY, K_GEMM); /* 495..505 */
        launch(t, t0 + 4, S_B, K_GEMM);      /* 507..517 */
        sync_stream(t, t0 + 8, t0 + 521, S_B);
    }
    struct run r = run(t);
    assert_true(us(r.sums.time[GWA_COMPUTE]) > 0.94 * 530 * 500);
    assert_true(gwa_hist_quantile(&r.device->queue, 1) < 620 * US);
    end(&r);
}

/* By the samples each turn of the two takes 30 us longer than it did, and nobody waits for the
 * legacy stream: what the other had waited for there had ended, too, when that had. */
static void who_takes_turns_with_the_legacy_stream_had_waited_for_it(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 520);
    lasts(t, GWT_SAMPLE_KERNEL, K_GEMM, 10);
    for (int i = 0; i < 500; i++) {
        int64_t t0 = 510 * i;
        launch(t, t0, S_LEGACY, K_ADD); /* 3..493 in truth */
        launch(t, t0 + 2, S_A, K_GEMM); /* 495..505 */
        record_event(t, t0 + 4, S_A, 5);
        wait_event(t, t0 + 6, S_NONBLOCKING, 5);
        launch(t, t0 + 8, S_NONBLOCKING, K_GEMM);
        /* by turns through the stream itself, and one that waits for it */
        sync_stream(t, t0 + 10, t0 + 508, i % 2 ? S_A : S_NONBLOCKING);
    }
    struct run r = run(t);
    double wall = 510 * 500;
    assert_true(us(r.sums.time[GWA_COMPUTE]) > 0.97 * wall);
    assert_true(gwa_hist_quantile(&r.device->queue, 1) < 600 * US);
    end(&r);
}

/* The same of a copy whose call returns once the data is staged, which it is behind the work before
 * it only. */
static void a_pageable_copy_shows_when_the_work_before_it_ended(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    for (int i = -1; i < 2; i++) /* 100 on the average, give or take 50 */
        lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 100 + 50 * i);
    copies_last(t, GWT_SAMPLE_H2D, 1 << 20, 20);
    copy(t, 0, 86, S_A, GWT_H2D, 1 << 20, GWT_F_PAGEABLE); /* 85 % of 80, the call's part off: 68 */
    launch(t, 200, S_A, K_ADD);                            /* 203..303 */
    /* a little slower: 381..450; it may have begun a fifth sooner, and a hand-over: 365 */
    copy(t, 202, 450, S_A, GWT_H2D, 1 << 20, GWT_F_PAGEABLE);
    struct run r = run_learning(t);
    assert_near(us(r.sums.time[GWA_COMPUTE]), 163, 3);
    assert_near(us(r.sums.time[GWA_COPY]), 68 + 69, 0.5);
    end(&r);
}

/* It waits as any other operation does, and the call with it: here for a blocking stream's work. */
static void a_pageable_copy_in_the_legacy_stream_waits_for_blocking_streams(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 100);
    copies_last(t, GWT_SAMPLE_H2D, 1 << 20, 20);
    launch(t, 0, S_A, K_ADD); /* 3..103; the copy from 105 on, 85 % of the rest of its call */
    copy(t, 2, 135, S_LEGACY, GWT_H2D, 1 << 20, GWT_F_PAGEABLE);
    struct run r = run(t);
    assert_near(us(r.sums.time[GWA_COMPUTE]), 100, 0.01);
    assert_near(us(r.sums.time[GWA_COPY]), 0.85 * 30, 0.5);
    end(&r);
}

static void copies_of_one_direction_take_turns(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    copies_last(t, GWT_SAMPLE_H2D, 1 << 20, 20);
    copies_last(t, GWT_SAMPLE_D2H, 1 << 20, 20);
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 50);
    copy(t, 0, 1, S_A, GWT_H2D, 1 << 20, 0);   /* A: 3..23 */
    copy(t, 2, 3, S_B, GWT_H2D, 1 << 20, 0);   /* B: 23..43 */
    copy(t, 4, 5, S_C, GWT_D2H, 1 << 20, 0);   /* C: 7..27, the other way */
    launch(t, 6, S_C, K_ADD);                  /* C: 29..79 */
    copy(t, 8, 9, S_C, GWT_H2D, 1 << 20, 0);   /* C: 81..101 ... */
    copy(t, 60, 61, S_B, GWT_H2D, 1 << 20, 0); /* ... and for that B does not wait: 63..83 */
    struct run r = run(t);
    assert_sums(&r, 98, 50, 0, 26 + 22);
    end(&r);
}

/* What is behind work that ended later ends later by as much: a wait for that shows nothing new. */
static void what_is_behind_later_work_is_later_too(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    for (int i = -1; i < 2; i++) /* 100 on the average, give or take 50 */
        lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 100 + 50 * i);
    launch(t, 0, S_A, K_ADD); /* 3..103 */
    record_event(t, 2, S_A, 5);
    launch(t, 4, S_A, K_ADD); /* behind it */
    record_event(t, 6, S_A, 6);
    sync_event(t, 8, 190, 5);   /* waking up takes some 4: until 186 or so */
    sync_event(t, 191, 291, 6); /* the second ran until 287 */
    launch(t, 1000, S_A, K_ADD);
    struct run r = run_learning(t);
    assert_near(us(r.sums.time[GWA_COMPUTE]), 183 + 100 + 100, 3);
    end(&r);
}

static void a_copy_that_blocks_says_when_the_work_before_it_ended(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    for (int i = -1; i < 2; i++) /* 100 on the average, give or take 50 */
        lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 100 + 50 * i);
    copies_last(t, GWT_SAMPLE_D2H, 1 << 20, 20);
    launch(t, 0, S_A, K_ADD);                               /* 3..103 */
    copy(t, 2, 192, S_A, GWT_D2H, 1 << 20, GWT_F_BLOCKING); /* waking up: 4; so 168..188 */
    struct run r = run_learning(t);
    assert_near(us(r.sums.time[GWA_COMPUTE]), 163, 2); /* until a hand-over before the copy */
    assert_near(us(r.sums.time[GWA_COPY]), 20, 1e-3);
    end(&r);
}

static void copies_that_waited_for_their_engine_count_for_little(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    for (int i = 0; i < 5; i++) /* two of five waited for another's copy */
        sample_at(t, -1000 - i, GWT_SAMPLE_H2D, S_A, 0, 1 << 10, i % 2 ? 90 : 2);
    copies_last(t, GWT_SAMPLE_H2D, 1 << 14, 200); /* all did, as one of more bytes shows, which goes
                                                     as fast as a link does: 1.3 and 20 GB/s */
    copies_last(t, GWT_SAMPLE_H2D, 1 << 18, 10);
    copy(t, 0, 1, S_A, GWT_H2D, 1 << 10, 0);
    struct run r = run(t);
    assert_near(gwa_durations_copy(r.durations, GWT_H2D, 1 << 10, 1, false).ns, 2 * US, 1);
    assert_near(gwa_durations_copy(r.durations, GWT_H2D, 1 << 14, 1, false).ns, 2119, 1);
    assert_near(gwa_durations_copy(r.durations, GWT_H2D, 1 << 18, 1, false).ns, 10 * US, 1);
    end(&r);
}

static void a_link_that_no_copy_shows_to_be_fast_is_slow(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    copies_last(t, GWT_SAMPLE_H2D, 1 << 18, 60); /* 20 GB/s would take 14.4 */
    copies_last(t, GWT_SAMPLE_H2D, 1 << 20, 240);
    copy(t, 0, 1, S_A, GWT_H2D, 1 << 18, 0);
    struct run r = run(t);
    assert_near(gwa_durations_copy(r.durations, GWT_H2D, 1 << 18, 1, false).ns, 60 * US, 1);
    end(&r);
}

static void copies_of_fewer_bytes_than_any_sampled_last_in_proportion(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    copies_last(t, GWT_SAMPLE_H2D, 8 << 20, 161.3); /* 1.3, of few bytes, and 160 */
    copy(t, 0, 1, S_A, GWT_H2D, 4 << 20, 0);
    struct run r = run(t);
    assert_near(gwa_durations_copy(r.durations, GWT_H2D, 4 << 20, 1, false).ns, 81300, 2);
    assert_near(gwa_durations_copy(r.durations, GWT_H2D, 1 << 10, 1, false).ns, 1300 + 19.5, 2);
    end(&r);
}

/* Pairs around the recorder's own kernel add 2.7 us, but beside copies 9. */
static struct gwt_trace *without_constants_of_copies(void)
{
    struct gwt_trace *t = timed();
    for (size_t i = 0; i < t->count; i++)
        if (t->events[i].kind == GWT_CONSTANT && t->events[i].flags > GWT_SAMPLE_GRAPH)
            t->events[i].value = 0;
    for (int i = 0; i < 2; i++) {
        struct gwt_event *e = fake_add(t, 9, 0, 0, GWT_CONSTANT);
        e->flags = GWT_SAMPLE_KERNEL;
        e->arg = 20;
        e->value = 9000000;
    }
    t->devices[0].pcie_gen = 5;
    t->devices[0].pcie_width = 16;
    return t;
}

static void copies_in_a_row_are_timed_by_their_own_engine(void **state)
{
    struct gwt_trace *t = without_constants_of_copies();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    for (int i = 0; i < 4; i++) {
        copy(t, 100 + 100 * i, 101 + 100 * i, S_A, GWT_H2D, 1 << 20, 0);
        struct gwt_event *e = sample_at(t, 100 + 100 * i, GWT_SAMPLE_H2D, S_A, 0, 1 << 20, 0);
        /* as around a kernel, of which CUPTI counts 0.6 more; the first comes from elsewhere */
        e->raw = 22 * US + 2700 - 600 + (i ? 0 : 6000);
        e->flags = GWT_SAMPLE_H2D;
    }
    struct run r = run(t);
    assert_near(gwa_durations_copy(r.durations, GWT_H2D, 1 << 20, 1, true).ns, 22 * US, 1);
    assert_near(gwa_durations_copy(r.durations, GWT_H2D, 1 << 20, 1, false).ns, 22 * US, 1);
    end(&r);
}

/* What a pair adds to them is not known well: 3.45 GB/s on each of 16 lanes, and a tenth more. */
static void no_copy_is_faster_than_its_link(void **state)
{
    struct gwt_trace *t = without_constants_of_copies();
    (void)state;
    copies_last(t, GWT_SAMPLE_H2D, 1 << 20, 19);
    copy(t, 0, 1, S_A, GWT_H2D, 1 << 20, 0);
    struct run r = run(t);
    assert_near(gwa_durations_copy(r.durations, GWT_H2D, 1 << 20, 1, false).ns, 17269, 1);
    end(&r);

    t = without_constants_of_copies(); /* by its pair it is: what sysfs tells is not its link */
    copies_last(t, GWT_SAMPLE_H2D, 1 << 20, 11);
    copy(t, 0, 1, S_A, GWT_H2D, 1 << 20, 0);
    r = run(t);
    assert_true(gwa_durations_copy(r.durations, GWT_H2D, 1 << 20, 1, false).ns < 11 * US);
    end(&r);
}

/* On the device what is in the caches decides, and that is the operation before. */
static void copies_on_the_device_differ_by_what_was_before(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    for (int i = 0; i < 8; i++) {
        if (i % 4 == 0)
            launch(t, 1000 * i, S_A, K_ADD);
        copy(t, 1000 * i + 100, 1000 * i + 101, S_A, GWT_D2D, 16 << 20, 0);
        sample_at(t, 1000 * i + 100, GWT_SAMPLE_D2D, S_A, 0, 16 << 20, i % 4 ? 5.5 : 9.3);
    }
    struct run r = run(t);
    assert_near(gwa_durations_copy(r.durations, GWT_D2D, 16 << 20, 1, true).ns, 5500, 1);
    assert_near(gwa_durations_copy(r.durations, GWT_D2D, 16 << 20, 1, false).ns, 9300, 1);
    end(&r);
}

static void the_run_tells_how_long_its_gaps_are(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    for (int i = 0; i < 50; i++)
        lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    /* 100 times 10, 20, 30 or 40 kernels of 10, 1.6 apart, from 3 after the first launch on; 5
     * after the end of the last the call that waits for it returns */
    for (int i = 0; i < 100; i++) {
        int n = 10 + i % 4 * 10;
        for (int k = 0; k < n; k++)
            launch(t, 1000 * i + 2 * k, S_A, K_ADD);
        sync_stream(t, 1000 * i + 90, 1, S_A)->t1_ns =
            1000 * i * US + (int64_t)((3 + n * 10 + (n - 1) * 1.6 + 5) * US);
    }
    struct run r = run_learning(t);
    struct gwa_model m = gwa_timeline_model(r.timeline);
    assert_near(us(m.ns[GWA_GAP]), 1.6, 0.1);
    assert_near(us(m.ns[GWA_WAKE]), 5, 1.5);
    end(&r);
}

/* What the run learnt of a gap of 700 ns, and what is left of it: the rest is the kernels'. */
static void what_gaps_are_a_little_longer_is_the_kernels(void **state)
{
    static const struct {
        double learnt, gap, kernel;
    } cases[] = {{760, 700, 60},  {800, 700, 100},  {850, 775, 75},       {900, 900, 0},
                 {1700, 1700, 0}, {600, 700, -100}, {475, 587.5, -112.5}, {350, 350, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gwa_model m = {.ns = {[GWA_GAP] = cases[i].learnt}, .gap_ns = 700};
        gwa_model_share(&m);
        assert_near(m.ns[GWA_GAP], cases[i].gap, 1e-6);
        assert_near(m.kernel_ns, cases[i].kernel, 1e-6);
        gwa_model_share(&m); /* once, whatever is learnt behind it */
        assert_near(m.kernel_ns, cases[i].kernel, 1e-6);
    }
    struct gwa_model told = {.ns = {[GWA_GAP] = 760}};
    gwa_model_share(&told);
    assert_near(told.ns[GWA_GAP], 760, 1e-6);
    assert_near(told.kernel_ns, 0, 1e-6);
}

static void kernels_last_as_much_longer_as_the_model_says(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    launch(t, 0, S_A, K_ADD);   /* 3..14 */
    launch(t, 100, S_A, K_ADD); /* 103..114 */
    struct gwa_model model = usual_model(true);
    model.kernel_ns = 1 * US;
    struct run r = run_model(t, &all, model);
    assert_sums(&r, 111, 22, 0, 0);
    assert_near(us(r.device->signatures[K_ADD].ns), 22, 1e-3);
    end(&r);
}

static void a_graph_runs_once_at_a_time(void **state)
{
    static const struct gwt_graph_item items[] = {
        {.kind = GWT_LAUNCH, .count = 1, .signature = K_ADD}};
    struct gwt_trace *t = timed();
    (void)state;
    graph(t, 7, items, 1);
    graph(t, 8, items, 1);
    lasts(t, GWT_SAMPLE_GRAPH, 7, 50);
    lasts(t, GWT_SAMPLE_GRAPH, 8, 50);
    launch_graph(t, 0, 7);                            /* 3..53 */
    fake_call(t, 1, 10, 11, API_GRAPH, S_C)->arg = 7; /* another stream: 53..103 */
    fake_call(t, 1, 20, 21, API_GRAPH, S_B)->arg = 8; /* another graph: 23..73 */
    struct run r = run(t);
    assert_sums(&r, 100, 100, 0, 0);
    assert_near(gwa_hist_quantile(&r.device->queue, 1), 42 * US, US);
    end(&r);
}

/* In one stream it waits for itself nowhere: what lasts longer that often is how it runs. */
static void a_graph_may_last_longer_now_and_then(void **state)
{
    static const struct gwt_graph_item items[] = {
        {.kind = GWT_LAUNCH, .count = 5, .signature = K_ADD}};
    static const double samples[] = {54, 54, 160, 54, 160, 54};
    for (int streams = 1; streams <= 2; streams++) {
        struct gwt_trace *t = timed();
        lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
        graph(t, 7, items, 1);
        for (size_t i = 0; i < 6; i++)
            sample_at(t, -1000 - (int)i, GWT_SAMPLE_GRAPH, S_A, 7, 0, samples[i]);
        launch_graph(t, 0, 7);
        fake_call(t, 1, 1000, 1001, API_GRAPH, streams == 2 ? S_B : S_A)->arg = 7;
        struct run r = run(t);
        assert_near(us(gwa_durations_graph(r.durations, 7).ns), streams == 2 ? 54 : 536.0 / 6,
                    0.01);
        end(&r);
    }
    (void)state;
}

/* It waited for itself in another stream, say: those samples count for nothing. */
static void samples_of_a_graph_that_waited_count_for_nothing(void **state)
{
    static const struct gwt_graph_item items[] = {
        {.kind = GWT_LAUNCH, .count = 5, .signature = K_ADD}};
    static const double samples[] = {54, 54, 100, 54, 160};
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    graph(t, 7, items, 1);
    graph(t, 8, items, 1);
    for (size_t i = 0; i < 5; i++) /* limit: 1.3 x (54 + 2.25, what the pair adds) + 20 */
        sample_at(t, -1000 - (int)i, GWT_SAMPLE_GRAPH, S_A, 7, 0, samples[i]);
    lasts(t, GWT_SAMPLE_GRAPH, 8, 6000); /* the only one, and its five kernels last 54 */
    launch_graph(t, 0, 7);
    launch_graph(t, 1000, 8);
    fake_call(t, 1, 2000, 2001, API_GRAPH, S_B)->arg = 7;
    struct run r = run(t);
    assert_near(us(gwa_durations_graph(r.durations, 7).ns), 54, 0.01);
    assert_true(gwa_durations_graph(r.durations, 7).own);
    double gap, unused;
    gwa_durations_gap(r.durations, true, &gap, &unused);
    assert_near(us(gwa_durations_graph(r.durations, 8).ns), 50 + 4 * us(gap), 0.01);
    assert_false(gwa_durations_graph(r.durations, 8).own);
    end(&r);
}

/* ---- durations ---------------------------------------------------------------------- */

/* One or nought, in no order that returns. */
static int coin(int i)
{
    uint64_t h = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 31) * 0xbf58476d1ce4e5b9u;
    return h >> 40 & 1;
}

static void a_place_in_the_sequence_has_its_own_duration(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    /* K_GEMM after K_ADD takes 20, after K_TINY 60, whichever comes first; both are sampled now
     * and then */
    for (int i = 0; i < 200; i++) {
        int add = 1000 * i + 4 * coin(i), tiny = 1000 * i + 4 * !coin(i);
        for (int k = 1000 * i; k <= 1000 * i + 4; k += 4) {
            launch(t, k, S_A, k == add ? K_ADD : K_TINY);
            launch(t, k + 2, S_A, K_GEMM);
        }
        if (i % 20 == 0) {
            sample_at(t, add + 2, GWT_SAMPLE_KERNEL, S_A, K_GEMM, 0, 20);
            sample_at(t, tiny + 2, GWT_SAMPLE_KERNEL, S_A, K_GEMM, 0, 60);
            sample_at(t, add, GWT_SAMPLE_KERNEL, S_A, K_ADD, 0, 10);
            sample_at(t, tiny, GWT_SAMPLE_KERNEL, S_A, K_TINY, 0, 5);
        }
    }
    /* two more of the first kind, none of the second: their mean would be off by 4 */
    launch(t, 300000, S_A, K_ADD);
    launch(t, 300002, S_A, K_GEMM);
    struct run r = run(t);
    assert_near(us(r.device->signatures[K_GEMM].ns), 200 * 80 + 20, 20);
    /* the last two: 10, and 20 behind a pause of 1 */
    struct gwa_context c = {0};
    struct gwt_event e = *launch(t, 400000, S_A, K_ADD);
    struct gwa_duration d;
    gwa_durations_of(r.durations, &e, &c, &d);
    e.arg = K_GEMM;
    gwa_durations_of(r.durations, &e, &c, &d);
    assert_near(d.ns, 20 * US, 100);
    assert_true(d.own);
    assert_true(d.spread < 1000); /* not the 20 us between the two places */
    assert_near(gwa_durations_signature(r.durations, K_GEMM).ns, 40 * US, 1);
    end(&r);
}

static void places_that_are_alike_are_not_told_apart(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    for (int i = 0; i < 100; i++) { /* 20 or 60 by the data, not by the place */
        launch(t, 1000 * i, S_A, i % 2 ? K_ADD : K_TINY);
        launch(t, 1000 * i + 2, S_A, K_GEMM);
        sample_at(t, 1000 * i + 2, GWT_SAMPLE_KERNEL, S_A, K_GEMM, 0,
                  (i / 2 + coin(i / 4)) % 2 ? 20 : 60);
    }
    struct run r = run(t);
    struct gwa_context c = {0};
    struct gwt_event e = *launch(t, 400000, S_A, K_ADD);
    struct gwa_duration d;
    gwa_durations_of(r.durations, &e, &c, &d);
    e.arg = K_GEMM;
    gwa_durations_of(r.durations, &e, &c, &d);
    assert_true(fabs(d.ns - 20 * US) < 3 * US || fabs(d.ns - 60 * US) < 9 * US);
    assert_near(d.spread, 20 * US, 1 * US);
    assert_near(d.error, 2 * US, 0.1 * US); /* of 100 samples */
    assert_near(gwa_durations_signature(r.durations, K_GEMM).ns, 40 * US, 1);
    end(&r);
}

/* Every fifth launch of a function lasts 60, the others 20, whatever the shape and whatever came
 * before: samples that met it too often do not make the others longer. */
static void launches_that_take_turns_are_told_apart(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    t->signatures[30] = t->signatures[K_GEMM];
    t->signatures[30].grid[0]++;
    for (int i = 0; i < 1000; i++) {
        uint32_t id = coin(i) ? 30 : K_GEMM;
        launch(t, 100 * i, S_A, id);
        if (coin(i + 5000) && (i % 5 == 0 || coin(i + 9000)))
            sample_at(t, 100 * i, GWT_SAMPLE_KERNEL, S_A, id, 0,
                      (i % 5 ? 20 : 60) + 0.5 * coin(i + 7000));
    }
    struct run r = run(t);
    assert_near(us(gwa_durations_signature(r.durations, K_GEMM).ns), 28.25, 0.1);
    assert_near(us(gwa_durations_signature(r.durations, 30).ns), 28.25, 0.1);
    assert_near(us(r.sums.wall - r.sums.idle), 28250, 100);
    struct gwa_context c = {0};
    struct gwa_duration d;
    struct gwt_event e = *launch(t, 0, S_A, K_GEMM);
    gwa_durations_restart(r.durations);
    for (int i = 0; i < 10; i++) {
        gwa_durations_of(r.durations, &e, &c, &d);
        assert_near(us(d.ns), i % 5 ? 20.25 : 60.25, 1);
    }
    end(&r);
}

/* In a busy stream pairs are 0.6 us longer. Two signatures that were busy where they happened to
 * last long say nothing against it. */
static void what_a_busy_stream_adds_is_not_moved_by_outliers(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    for (uint32_t id = 30; id < 40; id++) {
        t->signatures[id] = t->signatures[id < 32 ? K_GEMM : K_ADD];
        t->signatures[id].grid[0] = id;
        launch(t, 100 * (int)id, S_A, id);
        for (int i = 0; i < 4; i++) {
            double us = 10 + 0.02 * i;
            struct gwt_event *e = sample_at(t, -1000, GWT_SAMPLE_KERNEL, S_A, id, 0, us);
            if (i % 2)
                continue;
            e->flags = GWT_SAMPLE_KERNEL;
            e->raw += 600 + (id < 32 ? 20000 : 0);
        }
    }
    struct run r = run(t);
    assert_near(us(gwa_durations_signature(r.durations, 35).ns), 10, 0.1);
    end(&r);
}

/* Each lasts as some sample did; together they last as long as expected, also every third. */
static void durations_are_drawn_by_turns(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    for (int i = 0; i < 16; i++)
        lasts(t, GWT_SAMPLE_KERNEL, K_ADD, i % 4 ? 10 : 50);
    launch(t, 0, S_A, K_ADD);
    struct run r = run(t);
    struct gwa_context c = {0};
    struct gwt_event add = *launch(t, 0, S_A, K_ADD), gemm = *launch(t, 0, S_A, K_GEMM);
    struct gwa_duration d;
    double sum = 0;
    for (int i = 0; i < 300; i++) {
        gwa_durations_of(r.durations, &add, &c, &d);
        assert_true(fabs(d.ns - 10 * US) < 1 || fabs(d.ns - 50 * US) < 1);
        sum += d.ns / 300;
        gwa_durations_of(r.durations, &gemm, &c, &d);
        gwa_durations_of(r.durations, &gemm, &c, &d);
    }
    assert_near(sum, 20 * US, 0.5 * US);
    end(&r);
}

/* As long as the grid fits the device its size does not matter: 10 us up to 1,000 threads, then
 * 5 more for each 1,000. Those without samples, too, lie on that, and a sample that goes astray
 * is drawn towards it. */
static void launches_of_one_function_lie_on_two_lines(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    for (unsigned i = 0; i < 16; i++) {
        uint32_t id = 30 + i, threads = 250 * (i + 1);
        t->signatures[id] = t->signatures[K_ADD];
        t->signatures[id].grid[0] = threads;
        t->signatures[id].block[0] = 1;
        launch(t, 100 * (int)i, S_A, id);
        if (i != 1 && i != 13)
            lasts(t, GWT_SAMPLE_KERNEL, id,
                  10 + (threads > 1000 ? 5 * (threads - 1000) / 1000.0 : 0) + (i % 2 ? 0.1 : -0.1));
    }
    struct run r = run(t);
    assert_near(us(gwa_durations_signature(r.durations, 31).ns), 10, 0.2);
    assert_near(us(gwa_durations_signature(r.durations, 43).ns), 22.5, 0.4);
    assert_false(gwa_durations_signature(r.durations, 43).own);
    end(&r);
}

static void calibrated(struct gwt_trace *t, double us)
{
    struct gwt_event *e = fake_add(t, 9, 0, 0, GWT_CONSTANT);
    e->flags = GWT_SAMPLE_KERNEL;
    e->arg = 20;
    e->value = (uint64_t)(us * 1e6);
}

/* Half of the calibrations took many times as long as the least: their kernels had to wait for the
 * job's. The rest says what it says without them. */
static void calibrations_that_waited_say_nothing(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    calibrated(t, 14.5);
    calibrated(t, 20);
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    struct run r = run(t);
    assert_near(us(gwa_durations_signature(r.durations, K_ADD).ns), 10, 0);
    end(&r);
}

/* Calibrated at 6 us beside a busy device: less 0.6 and 0.15 more, a pair would add 5.55, and the
 * kernel whose pairs take 5.2 would last no time. It lasts 0.75 at the least, so that a pair adds
 * 4.45, and the other's of 104.45 is 100 us. At 5.2 a pair would add 4.75 and the kernel last 0.45:
 * that may be. */
static void no_kernel_is_shorter_than_the_shortest(void **state)
{
    static const double said[] = {6, 5.2}, shortest[] = {0.75, 0.45}, longest[] = {100, 99.7};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct gwt_trace *t = fake_new();
        t->devices[0].cc_major = 9;
        calibrated(t, said[k]);
        for (int i = 0; i < 6; i++) {
            lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 5.2 - KERNEL_ADDS / 1e3);
            lasts(t, GWT_SAMPLE_KERNEL, K_LONG, 104.45 - KERNEL_ADDS / 1e3);
        }
        struct run r = run(t);
        assert_near(us(gwa_durations_signature(r.durations, K_ADD).ns), shortest[k], 0.01);
        assert_near(us(gwa_durations_signature(r.durations, K_LONG).ns), longest[k], 0.01);
        end(&r);
    }
}

/* What pairs around the recorder's own kernel add in a stream of the program's, 20 of them. */
static void calibrated_among(struct gwt_trace *t, bool spaced, double us)
{
    for (int i = 0; i < 20; i++) {
        calibrated(t, us);
        struct gwt_event *e = &t->events[t->count - 1];
        e->flags |= (uint16_t)(GWT_CONSTANT_AMONG | (spaced ? GWT_SAMPLE_SPACER : 0));
        e->arg = 1;
    }
}

/* In its own stream a pair adds 2.7 us, among the program's work 3.1 behind a spacer and 3.5 in a
 * busy stream: of a kernel's pairs of 13.1 and 13.5, 0.6 more than those the kernel takes itself,
 * 10.6 us are left in both. Without calibration there, its own stream's has to do. */
static void pairs_add_what_they_add_in_the_program_s_streams(void **state)
{
    (void)state;
    for (int spacers = 0; spacers < 2; spacers++) {
        struct gwt_trace *t = timed();
        calibrated_among(t, true, 3.1);
        calibrated_among(t, false, 3.5);
        for (int i = 0; i < 40; i++) {
            lasts(t, GWT_SAMPLE_KERNEL, K_ADD, (spacers ? 13.1 : 13.5) - KERNEL_ADDS / 1e3);
            if (!spacers)
                t->events[t->count - 1].flags &= (uint16_t)~GWT_SAMPLE_SPACER;
        }
        struct run r = run(t);
        assert_near(us(gwa_durations_signature(r.durations, K_ADD).ns), 10.6, 0.02);
        end(&r);
    }
}

/* A pair around a graph of four such kernels adds 1.6 us more than around one, in the same stream:
 * so much less the program's graphs last. */
static void a_graph_s_pair_is_calibrated_by_a_graph(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    for (size_t i = 0; i < t->count; i++)
        if (t->events[i].kind == GWT_CONSTANT && t->events[i].flags == GWT_SAMPLE_GRAPH)
            t->events[i].value += 1600000;
    lasts(t, GWT_SAMPLE_GRAPH, 1, 50);
    struct run r = run(t);
    assert_near(us(gwa_durations_graph(r.durations, 1).ns), 48.4, 0.01);
    end(&r);
}

/* post: how much longer K_ADD lasts at the one time than at the other */
static double pace(const struct run *r, int64_t early_us, int64_t late_us)
{
    const int64_t at[] = {early_us, late_us};
    double ns[2];
    for (int i = 0; i < 2; i++) {
        struct gwa_context c = {0};
        struct gwa_duration d;
        struct gwt_event e = {.kind = GWT_LAUNCH, .arg = K_ADD, .stream = S_A, .t0_ns = at[i] * US};
        gwa_durations_of(r->durations, &e, &c, &d);
        ns[i] = d.ns;
    }
    return ns[1] / ns[0];
}

/* In the first half of the run kernels take 98 us, in the second 102: each of either lasts as those
 * of its time. */
static void durations_drift_with_the_clock(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    for (int i = 0; i < 200; i++) {
        launch(t, i * 1000, S_A, K_ADD);
        sample_at(t, i * 1000, GWT_SAMPLE_KERNEL, S_A, K_ADD, 0,
                  (i < 100 ? 98 : 102) + (i % 2 ? 0.1 : -0.1));
    }
    struct run r = run(t);
    assert_near(pace(&r, 20000, 180000), 102.0 / 98.0, 0.004);
    assert_near(pace(&r, 95000, 104000), 102.0 / 98.0, 0.004);
    end(&r);
}

/* Twelve samples in a slow tenth of a second, among a thousand: they scatter by 0.3 %, once what is
 * slow is known to be. Between the last sample before and the first of it, nothing tells. */
static void a_short_drift_is_seen(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    for (int i = 0; i < 1000; i++) {
        bool slow = i >= 700 && i < 712;
        launch(t, i * 9000, S_A, K_ADD);
        sample_at(t, i * 9000, GWT_SAMPLE_KERNEL, S_A, K_ADD, 0,
                  (slow      ? 108
                   : i < 300 ? 104
                             : 100) +
                      0.3 * (i % 3 - 1));
    }
    struct run r = run(t);
    assert_near(pace(&r, 500 * 9000, 200 * 9000), 1.04, 0.004);
    assert_near(pace(&r, 500 * 9000, 705 * 9000), 1.08, 0.01);
    assert_near(pace(&r, 500 * 9000, 720 * 9000), 1.00, 0.004);
    end(&r);
}

/* Kernels of 100 us that scatter by 2 %, most of them sampled in the first quarter: what chance
 * makes of them is no change of pace, but for one run in twenty. */
static void chance_is_no_drift(void **state)
{
    unsigned changed = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct gwt_trace *t = timed();
        uint64_t word = seed;
        for (int i = 0; i < 400; i++) {
            int at = (i < 300 ? i : 300 + 9 * (i - 300)) * 1000;
            double off = 0;
            for (int k = 0; k < 12; k++) {
                word = word * 6364136223846793005u + 1442695040888963407u;
                off += (double)(word >> 32) / 4294967296.0 - 0.5;
            }
            launch(t, at, S_A, K_ADD);
            sample_at(t, at, GWT_SAMPLE_KERNEL, S_A, K_ADD, 0, 100 + 2 * off);
        }
        struct run r = run(t);
        changed += fabs(pace(&r, 0, 1200000) - 1) > 0.001;
        end(&r);
    }
    assert_in_range(changed, 0, 2);
}

static void a_pair_less_its_constant_is_the_duration(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    sample_at(t, -1000, GWT_SAMPLE_KERNEL, S_A, K_ADD, 0, 0)->flags |= GWT_VOID_LATE << 8;
    sample_at(t, -1000, GWT_SAMPLE_KERNEL, S_A, K_ADD, 0, 0)->raw = 0;
    copies_last(t, GWT_SAMPLE_H2D, 1 << 20, 30);
    copies_last(t, GWT_SAMPLE_H2D, 16 << 20, 330); /* 20 + bytes at 54 GB/s */
    launch(t, 0, S_A, K_ADD);
    struct run r = run(t);
    assert_int_equal(gwa_durations_samples(r.durations), 5);
    struct gwa_duration d = gwa_durations_signature(r.durations, K_ADD);
    /* the pair was 12.42, a pair adds 2.7 and waits 0.32 for what was written, CUPTI counts 0.6
     * more than the kernel that says so */
    assert_near(d.ns, 10 * US, 0);
    assert_true(d.own);
    assert_near(gwa_durations_copy(r.durations, GWT_H2D, 1 << 20, 1, false).ns, 30 * US, 1);
    /* half way between the two sizes; beyond, at the rate of the largest */
    assert_near(gwa_durations_copy(r.durations, GWT_H2D, 17 << 19, 1, false).ns, 180 * US, 1);
    assert_near(gwa_durations_copy(r.durations, GWT_H2D, 64 << 20, 1, false).ns, 1320 * US, 1);
    assert_near(gwa_durations_copy(r.durations, GWT_H2D, 2 << 20, 2, false).ns, 60 * US, 1);
    double below, above;
    gwa_durations_doubt(r.durations, &below, &above);
    assert_near(below, 200, 0);
    assert_near(above, 200, 0);
    end(&r);

    t = timed(); /* another architecture: the same offset, in more doubt */
    t->devices[0].cc_major = 8;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    launch(t, 0, S_A, K_ADD);
    r = run(t);
    assert_near(gwa_durations_signature(r.durations, K_ADD).ns, 10 * US, 0);
    gwa_durations_doubt(r.durations, &below, &above);
    assert_near(below, 200 + 500, 0);
    end(&r);
}

static void what_was_never_sampled_is_guessed_by_its_name(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    t->signatures[K_LONG] = t->signatures[K_WIDE] = t->signatures[K_ADD];
    t->signatures[K_LONG].grid[0] = 400;
    t->signatures[K_WIDE].grid[0] = 800;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);  /* 200 blocks */
    lasts(t, GWT_SAMPLE_KERNEL, K_LONG, 18); /* 400: hence 2 + 4 per 100 */
    launch(t, 0, S_A, K_ADD);
    launch(t, 100, S_A, K_LONG);
    launch(t, 200, S_A, K_WIDE);
    launch(t, 300, S_A, K_GEMM); /* whose name has no sample either: the mean of those that have */
    struct run r = run(t);
    assert_near(us(gwa_durations_signature(r.durations, K_WIDE).ns), 34, 1e-3);
    assert_false(gwa_durations_signature(r.durations, K_WIDE).own);
    assert_near(us(gwa_durations_signature(r.durations, K_GEMM).ns), 14, 1e-3);
    assert_near(us(r.device->ns), 10 + 18 + 34 + 14, 1e-3);
    assert_near(us(r.device->own_ns), 10 + 18, 1e-3);
    end(&r);
}

static void without_samples_nothing_is_said(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    struct run r = run(t);
    assert_int_equal(gwa_durations_samples(r.durations), 0);
    end(&r);
}

/* ---- windows ------------------------------------------------------------------------ */

static void a_range_counts_from_its_first_start_to_its_last_end(void **state)
{
    struct gwt_trace *t = timed();
    struct gwa_interval list[] = {{.from = 100 * US, .to = 200 * US},
                                  {.from = 300 * US, .to = 400 * US}};
    struct gwa_ranges ranges = {.list = list, .count = 2};
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    launch(t, 0, S_A, K_ADD);
    launch(t, 110, S_A, K_ADD); /* 113..123 */
    launch(t, 150, S_A, K_ADD); /* 153..163: the window is 50, of which 30 idle */
    launch(t, 250, S_A, K_ADD); /* between the ranges */
    launch(t, 310, S_A, K_ADD); /* 313..323 */
    launch(t, 390, S_A, K_ADD); /* 393..403: the window is 90, of which 70 idle */
    launch(t, 500, S_A, K_ADD);
    struct run r = run_in(t, &ranges);
    assert_sums(&r, 140, 40, 0, 0);
    assert_int_equal(r.sums.gaps_count, 2);
    assert_int_equal(r.sums.gaps[0].ns, 70 * US);
    assert_int_equal(r.device->launches, 4);
    assert_int_equal(r.device->signatures[K_ADD].count, 4);
    end(&r);
}

static void work_of_before_a_range_that_runs_inside_is_busy_time(void **state)
{
    struct gwt_trace *t = timed();
    struct gwa_interval list[] = {{.from = 100 * US, .to = 400 * US}};
    struct gwa_ranges ranges = {.list = list, .count = 1};
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    lasts(t, GWT_SAMPLE_KERNEL, K_GEMM, 147);
    launch(t, 90, S_B, K_GEMM); /* 93..240 */
    launch(t, 110, S_A, K_ADD); /* 113..123: the window begins */
    launch(t, 300, S_A, K_ADD); /* 303..313: it ends */
    struct run r = run_in(t, &ranges);
    assert_sums(&r, 200, 127 + 10, 0, 0);
    end(&r);
}

static void nvidia_smi_sees_any_kernel_in_a_sixth_of_a_second(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    for (int i = 0; i < 4; i++)
        launch(t, 510000 * i, S_A, K_ADD); /* 1.53 s: sixths 0, 3, 6, 9 */
    struct run r = run(t);
    assert_int_equal(r.device->sweep.cells.count, 10);
    assert_int_equal(r.device->sweep.kernel_cells.count, 4);
    end(&r);
}

static void more_than_is_held_is_swept_on_the_way(void **state)
{
    struct gwt_trace *t = timed();
    (void)state;
    lasts(t, GWT_SAMPLE_KERNEL, K_ADD, 10);
    for (int i = 0; i < 30000; i++)
        launch(t, 20 * i, i % 2 ? S_A : S_B, K_ADD);
    struct run r = run(t);
    assert_sums(&r, 20 * 29999 + 10, 300000, 0, 0);
    assert_int_equal(r.device->sweep.late, 0);
    assert_int_equal(r.sums.gaps_count, GWA_GAPS);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_starts_when_it_may),
        cmocka_unit_test(a_gap_of_exactly_100_or_10_us_is_of_the_middle),
        cmocka_unit_test(a_host_that_is_ahead_saturates_the_device),
        cmocka_unit_test(dependent_launches_leave_no_gap),
        cmocka_unit_test(what_did_not_run_is_not_there),
        cmocka_unit_test(with_launches_that_block_each_ends_at_its_return),
        cmocka_unit_test(streams_run_side_by_side),
        cmocka_unit_test(a_stream_waits_for_the_record_of_before),
        cmocka_unit_test(an_event_with_a_time_stamp_holds_up_what_is_behind_it),
        cmocka_unit_test(the_legacy_stream_and_blocking_streams_take_turns),
        cmocka_unit_test(a_host_function_holds_its_stream),
        cmocka_unit_test(communication_and_copies_count_where_nothing_better_runs),
        cmocka_unit_test(a_blocking_copy_ends_at_its_return),
        cmocka_unit_test(a_pageable_copy_lasts_as_long_as_its_call_lets_it),
        cmocka_unit_test(a_call_that_returns_late_is_put_where_it_belongs),
        cmocka_unit_test(a_graph_takes_what_was_sampled_less_its_gaps),
        cmocka_unit_test(nodes_side_by_side_do_not_share),
        cmocka_unit_test(a_graph_without_samples_is_the_sum_of_its_nodes),
        cmocka_unit_test(what_was_waited_for_had_ended),
        cmocka_unit_test(a_wait_for_an_event_bounds_what_came_before_it),
        cmocka_unit_test(another_threads_launch_meanwhile_is_not_bounded),
        cmocka_unit_test(a_wait_that_is_over_at_once_says_nothing),
        cmocka_unit_test(uncertain_work_may_have_lasted_until_the_wait_ended),
        cmocka_unit_test(a_wait_for_a_stream_that_waits_shows_the_work_that_it_waits_for),
        cmocka_unit_test(who_takes_turns_with_the_legacy_stream_had_waited_for_it),
        cmocka_unit_test(what_was_waited_for_is_over),
        cmocka_unit_test(a_pageable_copy_shows_when_the_work_before_it_ended),
        cmocka_unit_test(a_pageable_copy_in_the_legacy_stream_waits_for_blocking_streams),
        cmocka_unit_test(copies_of_one_direction_take_turns),
        cmocka_unit_test(what_is_behind_later_work_is_later_too),
        cmocka_unit_test(a_copy_that_blocks_says_when_the_work_before_it_ended),
        cmocka_unit_test(copies_that_waited_for_their_engine_count_for_little),
        cmocka_unit_test(a_link_that_no_copy_shows_to_be_fast_is_slow),
        cmocka_unit_test(copies_of_fewer_bytes_than_any_sampled_last_in_proportion),
        cmocka_unit_test(copies_in_a_row_are_timed_by_their_own_engine),
        cmocka_unit_test(no_copy_is_faster_than_its_link),
        cmocka_unit_test(copies_on_the_device_differ_by_what_was_before),
        cmocka_unit_test(the_run_tells_how_long_its_gaps_are),
        cmocka_unit_test(what_gaps_are_a_little_longer_is_the_kernels),
        cmocka_unit_test(kernels_last_as_much_longer_as_the_model_says),
        cmocka_unit_test(a_graph_runs_once_at_a_time),
        cmocka_unit_test(a_graph_may_last_longer_now_and_then),
        cmocka_unit_test(samples_of_a_graph_that_waited_count_for_nothing),
        cmocka_unit_test(a_place_in_the_sequence_has_its_own_duration),
        cmocka_unit_test(places_that_are_alike_are_not_told_apart),
        cmocka_unit_test(launches_that_take_turns_are_told_apart),
        cmocka_unit_test(what_a_busy_stream_adds_is_not_moved_by_outliers),
        cmocka_unit_test(durations_are_drawn_by_turns),
        cmocka_unit_test(launches_of_one_function_lie_on_two_lines),
        cmocka_unit_test(a_pair_less_its_constant_is_the_duration),
        cmocka_unit_test(calibrations_that_waited_say_nothing),
        cmocka_unit_test(pairs_add_what_they_add_in_the_program_s_streams),
        cmocka_unit_test(a_graph_s_pair_is_calibrated_by_a_graph),
        cmocka_unit_test(no_kernel_is_shorter_than_the_shortest),
        cmocka_unit_test(durations_drift_with_the_clock),
        cmocka_unit_test(a_short_drift_is_seen),
        cmocka_unit_test(chance_is_no_drift),
        cmocka_unit_test(what_was_never_sampled_is_guessed_by_its_name),
        cmocka_unit_test(without_samples_nothing_is_said),
        cmocka_unit_test(a_range_counts_from_its_first_start_to_its_last_end),
        cmocka_unit_test(work_of_before_a_range_that_runs_inside_is_busy_time),
        cmocka_unit_test(nvidia_smi_sees_any_kernel_in_a_sixth_of_a_second),
        cmocka_unit_test(more_than_is_held_is_swept_on_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
