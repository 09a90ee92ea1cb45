/* Idle by what the host did, by hand: each test says what every gap must be and why. Times are
 * microseconds. */
#include "test_analysis_fake.h"

#include "analysis/attribute.h"

#define MS 1000 /* us */

struct world {
    struct gwt_trace *t;
    struct gwa_attribution *a;
    struct gwa_sums sums[2];
    struct gwa_device d[2];
    struct gwa_place place; /* of what is fed from here on */
    size_t fed;
    uint32_t last_thread;
    int64_t last_returned;
};

static struct world begin(void)
{
    struct world w = {.t = fake_new(), .place = {.step = UINT32_MAX}};
    w.a = gwa_attribution_new(w.t);
    assert_non_null(w.a);
    return w;
}

/* What was added to the recording since the last time. */
static void feed(struct world *w)
{
    qsort(w->t->events + w->fed, w->t->count - w->fed, sizeof(*w->t->events), fake_order);
    for (; w->fed < w->t->count; w->fed++)
        assert_int_equal(gwa_attribution_event(w->a, &w->t->events[w->fed], &w->place), 0);
}

/* `e` submitted what started at `start`; it is the newest operation from now on. */
static struct gwa_piece piece_of(const struct world *w, const struct gwt_event *e, int64_t start)
{
    return (struct gwa_piece){.start = start * US,
                              .lower = start * US,
                              .entry = e->t0_ns,
                              .call_ns = gwa_call_ns(e->t0_ns, e->t1_ns),
                              .thread = e->thread,
                              .step = w->place.step,
                              .phase = w->place.phase};
}

static void ran(struct world *w, struct gwt_event e)
{
    w->last_thread = e.thread;
    w->last_returned = e.t1_ns;
}

/* In order of time. */
static void keep_longest(struct gwa_sums *s, int64_t start, int64_t ns)
{
    size_t shortest = 0;
    if (s->gaps_count < GWA_GAPS) {
        s->gaps[s->gaps_count++] = (struct gwa_gap){.start = start, .ns = ns};
        return;
    }
    for (size_t i = 1; i < GWA_GAPS; i++)
        if (s->gaps[i].ns < s->gaps[shortest].ns)
            shortest = i;
    if (s->gaps[shortest].ns < ns)
        s->gaps[shortest] = (struct gwa_gap){.start = start, .ns = ns};
}

/* Nothing ran in [start, end), which the operation of `next` ended. */
static void idle_on(struct world *w, unsigned device, int64_t start, int64_t end,
                    struct gwt_event next)
{
    struct gwa_piece piece = piece_of(w, &next, end);
    struct gwa_idle_time idle = {.start = start * US,
                                 .end = end * US,
                                 .ended = true,
                                 .next = gwa_next_of(&piece),
                                 .thread = w->last_thread,
                                 .returned = w->last_returned};
    gwa_attribution_gap(w->a, device, &idle);
    w->sums[device].idle += (double)(end - start) * US;
    w->sums[device].idle_in[piece.phase] += (double)(end - start) * US;
    keep_longest(&w->sums[device], start * US, (end - start) * US);
    ran(w, next);
}

static void idle(struct world *w, int64_t start, int64_t end, struct gwt_event next)
{
    feed(w);
    idle_on(w, 0, start, end, next);
}

/* Percent of a wall time of 100 ms are ms. */
static struct gwa_device *finish_device(struct world *w, unsigned i)
{
    struct gwa_device *d = &w->d[i];
    double sum = 0, sites = 0;
    w->sums[i].wall = 100.0 * MS * US;
    d->gaps_count = w->sums[i].gaps_count;
    d->gaps = calloc(GWA_GAPS, sizeof(*d->gaps));
    feed(w);
    assert_int_equal(gwa_attribution_finish(w->a, d, i, &w->sums[i]), 0);
    for (unsigned c = 0; c < GWA_IDLE_CLASS_COUNT; c++)
        sum += d->time.idle[c];
    for (size_t k = 0; k < d->sites_count; k++)
        sites += d->sites[k].idle_ms;
    assert_near(sum, w->sums[i].idle / 1e6, 1e-9);
    assert_near(sites, w->sums[i].idle / 1e6, 1e-9);
    for (size_t k = 0; k < d->gaps_count; k++) {
        double parts = 0;
        for (unsigned c = 0; c < GWA_IDLE_CLASS_COUNT; c++)
            parts += d->gaps[k].parts_ms[c];
        assert_near(parts, (double)w->sums[i].gaps[k].ns / 1e6, 1e-9);
    }
    return d;
}

static struct gwa_device *finish(struct world *w)
{
    return finish_device(w, 0);
}

static void end(struct world *w)
{
    for (unsigned i = 0; i < 2; i++) {
        gwa_attribution_release(&w->d[i]);
        free(w->d[i].gaps);
    }
    gwa_attribution_free(w->a);
    free(w->t);
}

#define assert_class(d, class, us)                                                                 \
    assert_near((d)->time.idle[GWA_IDLE_##class], (double)(us) / MS, 1e-9)

static const struct gwa_site *find_site(const struct gwa_device *d, unsigned class)
{
    for (size_t i = 0; i < d->sites_count; i++)
        if (d->sites[i].class == class)
            return &d->sites[i];
    fail_msg("no site of class %u", class);
    return NULL;
}

static struct gwt_event section(struct gwt_trace *t, unsigned thread, int64_t t0, int64_t t1,
                                int64_t measured, int64_t cpu)
{
    struct gwt_event *e = fake_add(t, thread, t0, t1, GWT_SECTION);
    e->allocated = (uint64_t)measured * US;
    e->value = (uint64_t)cpu * US;
    e->size = cpu * US;
    return *e;
}

static struct gwt_event launch_by(struct gwt_trace *t, unsigned thread, int64_t t0, int64_t t1)
{
    struct gwt_event *e = fake_call(t, thread, t0, t1, API_LAUNCH, S_A);
    e->arg = K_GEMM;
    return *e;
}

/* ---- one class each ---------------------------------------------------------------------------
 */

/* The first kernel ends at 20. Till the next launch is entered the host is outside CUDA for less
 * than 1 ms; then it is inside the call and the submission on its way. */
static void short_sections_are_dispatch(void **state)
{
    struct world w = begin();
    ran(&w, launch_by(w.t, 1, 0, 5));
    idle(&w, 20, 57, launch_by(w.t, 1, 50, 55));
    struct gwa_device *d = finish(&w);
    assert_class(d, DISPATCH, 30);
    assert_class(d, LAUNCH, 7);
    assert_near(find_site(d, GWA_IDLE_DISPATCH)->host_ms, 0.045, 1e-9);
    assert_int_equal(find_site(d, GWA_IDLE_LAUNCH)->origin, GWA_LAUNCH_CALL);
    assert_near(d->time.drained_pct, 0, 0);
    end(&w);
    (void)state;
}

/* 60 % of the section was computed: of its 9000 us idle, so much is host_cpu. */
static void sections_are_divided_by_cpu_time(void **state)
{
    struct world w = begin();
    ran(&w, launch_by(w.t, 1, 0, 5));
    struct gwt_event *e = fake_add(w.t, 1, 5, 10005, GWT_SECTION);
    e->allocated = 10000 * US;
    e->value = 6000 * US;
    e->size = 26000 * US; /* two other cores busy */
    e->arg = 3u << 16 | 7;
    idle(&w, 1005, 10012, launch_by(w.t, 1, 10005, 10010));
    struct gwa_device *d = finish(&w);
    assert_class(d, HOST_CPU, 5400);
    assert_class(d, HOST_BLOCKED, 3600);
    assert_class(d, LAUNCH, 7);
    const struct gwa_site *s = find_site(d, GWA_IDLE_HOST_BLOCKED);
    assert_near(s->cpu_share, 0.6, 1e-9);
    assert_near(s->other_cores, 2, 1e-9);
    assert_near(s->involuntary, 3, 0);
    assert_near(s->host_ms, 10, 1e-9);
    assert_string_equal(s->after, "cudaLaunchKernel");
    assert_string_equal(s->before, "cudaLaunchKernel");
    assert_null(s->api);
    end(&w);
    (void)state;
}

/* Only the last 5 ms of 10 were measured, all on the CPU: so was the rest, most likely. */
static void a_part_measured_stands_for_all(void **state)
{
    struct world w = begin();
    ran(&w, launch_by(w.t, 1, 0, 5));
    section(w.t, 1, 5, 10005, 5000, 5000);
    idle(&w, 105, 10010, launch_by(w.t, 1, 10005, 10010));
    struct gwa_device *d = finish(&w);
    assert_class(d, HOST_CPU, 9900);
    assert_class(d, LAUNCH, 5);
    end(&w);
    (void)state;
}

/* Of the last 8 us 7 on the CPU: that says nothing of the 6 ms before. */
static void a_trifle_measured_says_nothing(void **state)
{
    struct world w = begin();
    ran(&w, launch_by(w.t, 1, 0, 5));
    section(w.t, 1, 5, 6005, 8, 7);
    idle(&w, 10, 6010, launch_by(w.t, 1, 6005, 6010));
    struct gwa_device *d = finish(&w);
    assert_class(d, UNKNOWN, 5995);
    assert_true(isnan(find_site(d, GWA_IDLE_UNKNOWN)->cpu_share));
    end(&w);
    (void)state;
}

/* The clocks of one of three like sections say 25 % on the CPU; of the other two, one lies
 * before. A section elsewhere, with nothing like it, stays unknown. */
static void sections_without_clocks_go_by_their_siblings(void **state)
{
    struct world w = begin();
    ran(&w, launch_by(w.t, 1, 0, 5));
    section(w.t, 1, 5, 2005, 0, 0);
    idle(&w, 10, 2010, launch_by(w.t, 1, 2005, 2010));
    section(w.t, 1, 2010, 6010, 4000, 1000);
    idle(&w, 2020, 6015, launch_by(w.t, 1, 6010, 6015));
    idle(&w, 6020, 8020, launch_by(w.t, 1, 8015, 8020)); /* no record of it at all */
    struct gwt_event h2d = *copy(w.t, 10020, 10025, S_A, GWT_H2D, 4096, 0);
    idle(&w, 8025, 10025, h2d);
    struct gwa_device *d = finish(&w);
    double like = 1995 + 3990 + 1995;
    assert_class(d, HOST_CPU, like / 4);
    assert_class(d, HOST_BLOCKED, like * 3 / 4);
    assert_class(d, UNKNOWN, 1995);
    assert_class(d, LAUNCH, 4 * 5);
    assert_int_equal(find_site(d, GWA_IDLE_HOST_CPU)->count, 3);
    const struct gwa_site *s = find_site(d, GWA_IDLE_UNKNOWN);
    assert_non_null(s->reason);
    assert_true(s->before_h2d);
    assert_int_equal(s->h2d_bytes, 4096);
    end(&w);
    (void)state;
}

/* The call was entered while the device worked and returned 10 after it had finished: what it
 * cost is the 50 until the next kernel starts, of which 10 lie inside. */
static void a_blocking_call_drains(void **state)
{
    struct world w = begin();
    launch_by(w.t, 1, 0, 5);
    struct gwt_event *read = copy(w.t, 6, 9, S_A, GWT_D2H, 4, 0);
    ran(&w, *read);
    sync_stream(w.t, 10, 60, S_A);
    idle(&w, 50, 100, launch_by(w.t, 1, 90, 95));
    struct gwa_device *d = finish(&w);
    assert_class(d, SYNC, 10);
    assert_class(d, DISPATCH, 30);
    assert_class(d, LAUNCH, 10);
    assert_near(d->time.drained_pct, 0.05, 1e-9);
    assert_string_equal(d->gaps[0].drained_by, "cudaStreamSynchronize");
    assert_int_equal(d->drains_count, 1);
    assert_string_equal(d->drains[0].api, "cudaStreamSynchronize");
    assert_string_equal(d->drains[0].kernel, "gemm_128x128");
    assert_int_equal(d->drains[0].bytes, 4);
    assert_false(d->drains[0].pageable);
    assert_near(d->drains[0].idle_ms, 0.05, 1e-9);
    assert_near(d->drains[0].waited_ms, 0.05, 1e-9);
    assert_int_equal(d->drains[0].count, 1);
    end(&w);
    (void)state;
}

/* It was entered when the device had long finished: it emptied nothing. */
static void a_call_that_finds_the_device_idle_drains_nothing(void **state)
{
    struct world w = begin();
    ran(&w, launch_by(w.t, 1, 0, 5));
    sync_stream(w.t, 60, 70, S_A);
    idle(&w, 20, 100, launch_by(w.t, 1, 90, 95));
    struct gwa_device *d = finish(&w);
    assert_class(d, SYNC, 10);
    assert_class(d, DISPATCH, 60);
    assert_class(d, LAUNCH, 10);
    assert_near(d->time.drained_pct, 0, 0);
    assert_null(d->gaps[0].drained_by);
    assert_int_equal(d->drains_count, 0);
    end(&w);
    (void)state;
}

static void allocations_and_copies_that_block(void **state)
{
    struct world w = begin();
    ran(&w, launch_by(w.t, 1, 0, 5));
    fake_call(w.t, 1, 20, 50, API_MALLOC, 0);
    fake_call(w.t, 1, 50, 150, API_HOST_ALLOC, 0);
    /* a pageable copy: 1000 inside the call before it begins on the device at 1250 */
    struct gwt_event h2d = *copy(w.t, 250, 1600, S_A, GWT_H2D, 1 << 20, GWT_F_PAGEABLE);
    idle(&w, 10, 1250, h2d);
    struct gwa_device *d = finish(&w);
    assert_class(d, ALLOC, 130);
    assert_class(d, DISPATCH, 110);
    assert_class(d, COPY, 1000);
    const struct gwa_site *s = find_site(d, GWA_IDLE_COPY);
    assert_string_equal(s->api, "cudaMemcpyAsync");
    assert_true(s->before_h2d);
    assert_int_equal(s->h2d_bytes, 1 << 20);
    assert_string_equal(find_site(d, GWA_IDLE_ALLOC)->api, "cudaHostAlloc");
    end(&w);
    (void)state;
}

/* A launch of 100 loads a module for 80 of it; what is left is launch. */
static void a_call_inside_another_takes_its_part(void **state)
{
    struct world w = begin();
    ran(&w, launch_by(w.t, 1, 0, 5));
    fake_call(w.t, 1, 40, 120, API_MODULE, 0)->flags = GWT_F_NESTED;
    idle(&w, 10, 132, launch_by(w.t, 1, 30, 130));
    struct gwa_device *d = finish(&w);
    assert_class(d, DISPATCH, 20);
    assert_class(d, LAUNCH, 10 + 10 + 2);
    assert_class(d, LOAD, 80);
    end(&w);
    (void)state;
}

/* The collective's kernel is launched inside: 30 before and the launch's own 5. */
static void nccl_host_calls_are_comm(void **state)
{
    struct world w = begin();
    ran(&w, launch_by(w.t, 1, 0, 5));
    struct gwt_event kernel = launch_by(w.t, 1, 70, 75);
    fake_call(w.t, 1, 40, 90, API_ALL_REDUCE, S_A);
    idle(&w, 10, 78, kernel);
    struct gwa_device *d = finish(&w);
    assert_class(d, DISPATCH, 30);
    assert_class(d, COMM, 30);
    assert_class(d, LAUNCH, 8);
    end(&w);
    (void)state;
}

/* From begin to end of a capture all of the thread's time is capturing, short sections and
 * long ones; the instantiation is too. */
static void capturing_is_load(void **state)
{
    struct world w = begin();
    ran(&w, launch_by(w.t, 1, 0, 5));
    fake_call(w.t, 1, 20, 30, API_CAPTURE_BEGIN, S_A);
    for (int64_t t0 = 100; t0 < 600; t0 += 100)
        launch(w.t, t0, S_A, K_GEMM)->flags = GWT_F_CAPTURED;
    section(w.t, 1, 501, 4500, 3999, 3999);
    fake_call(w.t, 1, 4500, 4600, API_CAPTURE_END, S_A)->flags = GWT_F_CLOSING;
    idle(&w, 10, 4657, launch_by(w.t, 1, 4650, 4655));
    struct gwa_device *d = finish(&w);
    assert_class(d, LOAD, 4580);
    assert_class(d, DISPATCH, 10 + 50);
    assert_class(d, LAUNCH, 7);
    end(&w);
    (void)state;
}

static void lost_events_are_unknown(void **state)
{
    struct world w = begin();
    ran(&w, launch_by(w.t, 1, 0, 5));
    fake_add(w.t, 1, 100, 600, GWT_LOST)->value = 1000;
    w.t->events[w.t->count - 1].api = API_GROUP_END; /* any id */
    idle(&w, 10, 707, launch_by(w.t, 1, 700, 705));
    struct gwa_device *d = finish(&w);
    assert_class(d, UNKNOWN, 500);
    assert_class(d, DISPATCH, 190);
    assert_string_equal(find_site(d, GWA_IDLE_UNKNOWN)->reason, "events were lost");
    end(&w);
    (void)state;
}

/* The host is far ahead: what ends the gap had been on the device before it began. */
static void between_queued_operations_the_host_is_not_the_cause(void **state)
{
    struct world w = begin();
    ran(&w, launch_by(w.t, 1, 0, 5));
    struct gwt_event next = launch_by(w.t, 1, 10, 15);
    sync_device(w.t, 20, 5000);
    feed(&w);
    struct gwa_piece piece = piece_of(&w, &next, 1001);
    piece.lower = 17 * US;
    struct gwa_idle_time gap = {.start = 1000 * US,
                                .end = 1001 * US,
                                .returned = 5 * US,
                                .thread = 1,
                                .ended = true,
                                .next = gwa_next_of(&piece)};
    gwa_attribution_gap(w.a, 0, &gap);
    w.sums[0].idle = 1 * US;
    /* and 3 us between the nodes of a graph */
    w.sums[0].hollow = 3 * US;
    w.sums[0].hollow_in[GWA_PHASE_FORWARD] = 3 * US;
    w.sums[0].idle += 3 * US;
    struct gwa_device *d = finish(&w);
    assert_class(d, LAUNCH, 4);
    assert_int_equal(d->sites_count, 2);
    assert_int_equal(d->sites[0].origin, GWA_LAUNCH_GRAPH);
    assert_int_equal(d->sites[0].phase, GWA_PHASE_FORWARD);
    assert_int_equal(d->sites[1].origin, GWA_LAUNCH_QUEUED);
    assert_near(d->time.drained_pct, 0, 0);
    end(&w);
    (void)state;
}

/* ---- whose time counts --------------------------------------------------------------------- */

/* The main thread launches, then hands over to autograd's, which was parked for 50 ms: neither its
 * own long section nor the main thread's, but the 200 between them. */
static void the_thread_that_hands_over_counts(void **state)
{
    struct world w = begin();
    launch_by(w.t, 2, 0, 5);
    ran(&w, launch_by(w.t, 1, 50000, 50005));
    section(w.t, 2, 5, 50205, 50200, 100);
    idle(&w, 50030, 50212, launch_by(w.t, 2, 50205, 50210));
    /* and back: the main thread's first call is an allocation */
    section(w.t, 1, 50005, 50500, 50495, 0);
    fake_call(w.t, 1, 50500, 50600, API_MALLOC, 0);
    idle(&w, 50300, 50657, launch_by(w.t, 1, 50650, 50655));
    struct gwa_device *d = finish(&w);
    assert_class(d, DISPATCH, 175 + 200 + 50);
    assert_class(d, ALLOC, 100);
    assert_class(d, LAUNCH, 14);
    end(&w);
    (void)state;
}

/* The main thread waits in a call all the while; autograd's thread launches. */
static void a_parked_thread_is_not_the_cause(void **state)
{
    struct world w = begin();
    launch_by(w.t, 1, 0, 5);
    ran(&w, launch_by(w.t, 2, 100, 105));
    struct gwt_event next = launch_by(w.t, 2, 150, 155), last = launch_by(w.t, 1, 1050, 1055);
    sync_device(w.t, 10, 1000);
    idle(&w, 120, 157, next);
    /* then it is the one that the device waits for: the call returns 800 after the end */
    idle(&w, 200, 1057, last);
    struct gwa_device *d = finish(&w);
    assert_class(d, DISPATCH, 30 + 50);
    assert_class(d, SYNC, 800);
    assert_class(d, LAUNCH, 7 + 7);
    assert_string_equal(d->gaps[1].drained_by, "cudaDeviceSynchronize");
    assert_null(d->gaps[0].drained_by);
    end(&w);
    (void)state;
}

/* 10 ms from one thread's last call to the other's first. The first computes for 8 of them and
 * then waits for the other; that is known when it calls again, 50 ms later. */
static void a_long_hand_over_is_judged_when_the_thread_calls_again(void **state)
{
    struct world w = begin();
    launch_by(w.t, 2, 0, 5);
    ran(&w, launch_by(w.t, 1, 1000, 1005));
    section(w.t, 2, 5, 11005, 11000, 0);
    idle(&w, 1105, 11012, launch_by(w.t, 2, 11005, 11010));
    section(w.t, 1, 1005, 61005, 60000, 8000);
    launch_by(w.t, 1, 61005, 61010);
    struct gwa_device *d = finish(&w);
    assert_class(d, HOST_CPU, 9900 * 0.8);
    assert_class(d, HOST_BLOCKED, 9900 * 0.2);
    assert_class(d, LAUNCH, 7);
    assert_near(d->gaps[0].parts_ms[GWA_IDLE_HOST_CPU], 7.92, 1e-9);
    end(&w);
    (void)state;
}

/* A second device that the same thread feeds later: its gap is the same thread's time. */
static void devices_share_what_the_host_did(void **state)
{
    struct world w = begin();
    ran(&w, launch_by(w.t, 1, 0, 5));
    struct gwt_event first = launch_by(w.t, 1, 100, 105);
    struct gwt_event *second = fake_call(w.t, 1, 205, 210, API_LAUNCH, S_OTHER_DEVICE);
    struct gwt_event other = *second;
    feed(&w);
    idle_on(&w, 0, 50, 107, first);
    idle_on(&w, 1, 50, 212, other);
    struct gwa_device *d = finish_device(&w, 0);
    assert_class(d, DISPATCH, 50);
    assert_class(d, LAUNCH, 7);
    d = finish_device(&w, 1);
    assert_class(d, DISPATCH, 50 + 100);
    assert_class(d, LAUNCH, 5 + 7);
    end(&w);
    (void)state;
}

/* ---- folding ------------------------------------------------------------------------------- */

static void stack_at(struct gwt_trace *t, unsigned thread, int64_t at, unsigned id, unsigned why)
{
    struct gwt_event *e = fake_add(t, 7, at, at, GWT_STACK);
    e->value = thread;
    e->arg = id;
    e->flags = (uint16_t)why;
}

static void python_lines(struct gwt_trace *t)
{
    t->strings[20] = "/usr/lib/python3.11/site-packages/torch/_tensor.py";
    t->strings[21] = "/usr/lib/python3.11/queue.py";
    t->strings[22] = "/nowhere/job/train.py";
    t->strings[23] = "fetch";
    t->strings[24] = "<frozen runpy>";
    t->stacks[1][0] = (struct gwt_stack_frame){.file = 21, .function = 23, .line = 10};
    t->stacks[1][1] = (struct gwt_stack_frame){.file = 22, .function = 23, .line = 87};
    t->stacks[2][0] = (struct gwt_stack_frame){.file = 20, .function = 23, .line = 5};
    t->stacks[2][1] = (struct gwt_stack_frame){.file = 24, .function = 23, .line = 1};
    t->stacks[3][0] = (struct gwt_stack_frame){.file = 22, .function = 23, .line = 90};
    /* line 30, called from a library that line 87 called */
    t->stacks[4][0] = (struct gwt_stack_frame){.file = 22, .function = 23, .line = 30};
    t->stacks[4][1] = (struct gwt_stack_frame){.file = 21, .function = 23, .line = 12};
    t->stacks[4][2] = (struct gwt_stack_frame){.file = 22, .function = 23, .line = 87};
}

/* Of all that were taken in a section; lower code of the program's own that was met half as often
 * says more than its caller does, where that was in a library. */
static void lower_lines_count(void **state)
{
    static const struct {
        unsigned at[6]; /* stacks, in order */
        const char *line;
    } cases[] = {
        {{3, 3, 1}, "train.py:90 fetch"},
        {{1, 1, 4}, "train.py:30 fetch"},
        {{1, 1, 1, 4}, "train.py:87 fetch"},
        {{1, 1, 1, 4, 3, 3}, "train.py:87 fetch"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct world w = begin();
        python_lines(w.t);
        launch_by(w.t, 1, 0, 5);
        ran(&w, w.t->events[0]);
        for (unsigned k = 0; k < 6 && cases[i].at[k]; k++)
            stack_at(w.t, 1, 1000 + 1000 * (int64_t)k, cases[i].at[k], GWT_STACK_OUTSIDE);
        section(w.t, 1, 5, 10005, 10000, 0);
        idle(&w, 50, 10012, launch_by(w.t, 1, 10005, 10010));
        struct gwa_device *d = finish(&w);
        assert_string_equal(find_site(d, GWA_IDLE_HOST_BLOCKED)->python, cases[i].line);
        end(&w);
    }
    (void)state;
}

/* The innermost frame that is no library's; where all are, the innermost. */
static void stacks_name_the_line(void **state)
{
    struct world w = begin();
    python_lines(w.t);
    launch_by(w.t, 1, 0, 5);
    sync_stream(w.t, 10, 60, S_A);
    ran(&w, w.t->events[0]);
    stack_at(w.t, 1, 62, 2, GWT_STACK_RANDOM);
    stack_at(w.t, 1, 6000, 1, GWT_STACK_OUTSIDE);
    stack_at(w.t, 2, 7000, 3, GWT_STACK_OUTSIDE); /* another thread's */
    section(w.t, 1, 60, 10060, 10000, 0);
    idle(&w, 50, 10067, launch_by(w.t, 1, 10060, 10065));
    struct gwa_device *d = finish(&w);
    assert_string_equal(d->gaps[0].python, "train.py:87 fetch");
    assert_string_equal(find_site(d, GWA_IDLE_HOST_BLOCKED)->python, "train.py:87 fetch");
    assert_string_equal(d->drains[0].python, "_tensor.py:5 fetch");
    end(&w);
    (void)state;
}

/* Twelve steps: a section of 2 ms between each and the next, in every third 20 ms instead. */
static void sites_recur_by_step(void **state)
{
    struct world w = begin();
    int64_t now = 0;
    double usual = 0, unusual = 0;
    w.place = (struct gwa_place){.step = 0, .phase = GWA_PHASE_FORWARD};
    for (unsigned step = 0; step < 12; step++) {
        int64_t ns = step % 3 == 2 && step > 3 ? 20000 : 2000;
        struct gwt_event e = launch_by(w.t, 1, now, now + 5);
        if (step)
            idle(&w, now - 1000, now + 7, e);
        else
            ran(&w, e);
        feed(&w);
        if (step < 11)
            section(w.t, 1, now + 5, now + 5 + ns, ns, ns);
        now += 5 + ns;
        if (step < 11)
            *(ns == 2000 ? &usual : &unusual) += 1;
        feed(&w);
        w.place.step++;
    }
    struct gwa_device *d = finish(&w);
    assert_int_equal(d->sites_count, 3);
    const struct gwa_site *s = find_site(d, GWA_IDLE_HOST_CPU);
    const struct gwa_site *other = s;
    while (++other < d->sites + d->sites_count && other->class != GWA_IDLE_HOST_CPU)
        ;
    assert_false(s->unusual);
    assert_int_equal(s->position, GWA_SITE_STEP_EDGE);
    assert_int_equal(s->phase, GWA_PHASE_FORWARD);
    assert_near((double)s->count, usual, 0);
    assert_near(s->per_step, usual / 11, 1e-9); /* eleven steps begin with idle */
    assert_true(other < d->sites + d->sites_count && other->unusual);
    assert_near((double)other->count, unusual, 0);
    assert_near(other->host_ms, unusual * 20, 1e-9);
    end(&w);
    (void)state;
}

/* A section between the same calls in every second step. */
static void periods_are_counted_in_steps(void **state)
{
    struct world w = begin();
    int64_t now = 0;
    ran(&w, launch_by(w.t, 1, 0, 5));
    for (w.place.step = 0; w.place.step < 20; w.place.step++) {
        struct gwt_event e = launch_by(w.t, 1, now + 10, now + 15);
        idle(&w, now + 7, now + 17, e);
        now += 15;
        if (w.place.step % 2) {
            section(w.t, 1, now, now + 3000, 3000, 0);
            now += 3000;
            fake_call(w.t, 1, now, now + 5, API_MALLOC, 0);
            e = launch_by(w.t, 1, now + 10, now + 15);
            idle(&w, now - 3000, now + 17, e);
            now += 15;
        }
    }
    struct gwa_device *d = finish(&w);
    const struct gwa_site *s = find_site(d, GWA_IDLE_HOST_BLOCKED);
    assert_int_equal(s->count, 10);
    assert_int_equal(s->period, 2);
    assert_near(s->per_step, 0.5, 1e-9);
    assert_int_equal(s->position, GWA_SITE_INSIDE);
    end(&w);
    (void)state;
}

/* More places and drains than are told apart: the sums hold (finish() looks). */
static void places_are_capped(void **state)
{
    struct world w = begin();
    int64_t now = 0;
    ran(&w, launch_by(w.t, 1, 0, 5));
    for (unsigned i = 0; i < 6000; i++) {
        struct gwt_event *read = copy(w.t, now + 5, now + 6, S_A, GWT_D2H, i + 1, 0);
        read->api = (uint16_t)(100 + i); /* which nobody defined */
        sync_stream(w.t, now + 6, now + 60, S_A)->api = (uint16_t)(100 + i);
        section(w.t, 1, now + 60, now + 2060, i % 3 ? 2000 : 0, 1000);
        struct gwt_event e = launch_by(w.t, 1, now + 2060, now + 2065);
        e.api = w.t->events[w.t->count - 1].api = (uint16_t)(100 + i);
        idle(&w, now + 50, now + 2067, e);
        now += 2070;
    }
    struct gwa_device *d = finish(&w);
    uint64_t drains = 0;
    for (size_t i = 0; i < d->drains_count; i++)
        drains += d->drains[i].count;
    assert_int_equal(drains, 6000);
    assert_int_equal(d->drains_count, 4097);
    assert_class(d, SYNC, 6000 * 10);
    assert_class(d, LAUNCH, 6000 * 7);
    end(&w);
    (void)state;
}

/* The second device is idle while the first is fed for longer than can be held: each launch is 5
 * of 10. The thread that counts is the one that submitted to it last. */
static void what_is_held_is_bounded(void **state)
{
    struct world w = begin();
    struct gwt_event *e = fake_call(w.t, 1, 0, 5, API_LAUNCH, S_OTHER_DEVICE);
    ran(&w, *e);
    feed(&w);
    idle_on(&w, 1, -10, 7, *e); /* entered at 0: 10 before its first known call */
    unsigned trims = 0;
    int64_t now = 10;
    struct gwt_event call = *e;
    for (unsigned i = 0; i < 200000; i++, now += 10) {
        call.t0_ns = now * US;
        call.t1_ns = (now + 5) * US;
        call.device = 0;
        assert_int_equal(gwa_attribution_event(w.a, &call, &w.place), 0);
        if (!gwa_attribution_full(w.a))
            continue;
        trims++;
        gwa_attribution_passed(w.a, 0, now * US, now * US - 2000 * US);
        gwa_attribution_passed(w.a, 1, 20 * US, now * US - 2000 * US);
        gwa_attribution_trim(w.a);
        assert_false(gwa_attribution_full(w.a));
    }
    assert_in_range(trims, 2, 4);
    call.t0_ns = now * US;
    call.t1_ns = (now + 5) * US;
    call.device = 1;
    assert_int_equal(gwa_attribution_event(w.a, &call, &w.place), 0);
    idle_on(&w, 1, 20, now + 7, call);
    struct gwa_device *d = finish_device(&w, 1);
    /* from 20 on half of the time, and 7 at the end; 7 at the begin */
    assert_class(d, LAUNCH, (now - 20) / 2 + 7 + 7);
    assert_class(d, DISPATCH, (now - 20) / 2 + 10);
    end(&w);
    (void)state;
}

/* Six sections in one gap, between other calls each, none measured: four are kept apart. */
static void many_unmeasured_sections_in_one_gap(void **state)
{
    struct world w = begin();
    ran(&w, launch_by(w.t, 1, 0, 5));
    for (int64_t i = 0; i < 6; i++)
        fake_call(w.t, 1, 2005 + 2010 * i, 2015 + 2010 * i, API_MALLOC, 0)->api =
            (uint16_t)(API_RECORD + i);
    idle(&w, 10, 12107, launch_by(w.t, 1, 12100, 12105));
    struct gwa_device *d = finish(&w);
    assert_class(d, UNKNOWN, 1995 + 5 * 2000);
    assert_class(d, ALLOC, 60);
    assert_class(d, DISPATCH, 12100 - 12065);
    end(&w);
    (void)state;
}

/* A call whose clock was wrong, and 2000 calls inside one: those after are where they belong. */
static void bad_clocks_and_deep_nests_do_no_harm(void **state)
{
    struct world w = begin();
    struct gwt_event first = launch_by(w.t, 1, 0, 5);
    ran(&w, first);
    feed(&w);
    fake_call(w.t, 1, 6, (int64_t)1 << 40, API_MALLOC, 0);
    feed(&w);
    fake_call(w.t, 1, INT64_MIN / US, INT64_MAX / US, API_MALLOC, 0);
    feed(&w);
    idle(&w, 20, 57, launch_by(w.t, 1, 50, 55));
    for (int64_t i = 0; i < 2000; i++)
        fake_call(w.t, 1, 200 + 2 * i, 201 + 2 * i, API_MALLOC, 0);
    fake_call(w.t, 1, 100, 10000, API_GROUP_END, 0);
    idle(&w, 60, 10107, launch_by(w.t, 1, 10100, 10105));
    struct gwa_device *d = finish(&w);
    assert_class(d, DISPATCH, 30 + 40 + 100);
    assert_class(d, COMM, 9900); /* so many inside are not told apart */
    assert_class(d, LAUNCH, 14);
    end(&w);
    (void)state;
}

/* Whatever the events, every gap is in classes, and nothing is touched that is not there. */
static void nonsense_adds_up(void **state)
{
    uint64_t random = 88172645463325252u;
    for (unsigned run = 0; run < 200; run++) {
        struct world w = begin();
        int64_t now = 0, idle_from = 0;
        struct gwt_event e = {0};
        python_lines(w.t);
        for (unsigned i = 0; i < 3000; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            uint64_t r = random >> 8;
            now += (int64_t)(r % 7 ? r % 40 : r % 4000);
            e = (struct gwt_event){.kind = (uint8_t)(r >> 16) % GWT_KIND_COUNT,
                                   .flags = (uint16_t)(r >> 24),
                                   .thread = 1 + (r >> 40) % 3,
                                   .api = (r >> 44) % 20,
                                   .device = 0,
                                   .arg = (uint32_t)(r >> 48) % 4,
                                   .value = (r >> 12) % 5000000,
                                   .allocated = (r >> 20) % 9000000,
                                   .t1_ns = now * US,
                                   .t0_ns = (now - (int64_t)((r >> 50) % 300)) * US};
            if (r % 11 == 0)
                e.t1_ns += 5 * MS * US;
            if (r % 13 == 0)
                e.kind = GWT_LAUNCH;
            w.place.step = r % 5 ? i / 20 : UINT32_MAX;
            w.place.phase = (r >> 33) % GWA_PHASE_COUNT;
            assert_int_equal(gwa_attribution_event(w.a, &e, &w.place), 0);
            if (e.kind != GWT_LAUNCH)
                continue;
            int64_t until = idle_from + (int64_t)((r >> 30) % 3000);
            if (until > idle_from)
                idle_on(&w, 0, idle_from, until, e);
            idle_from = until + (int64_t)(r >> 35) % 200;
            if (idle_from < now - 500)
                idle_from = now - 500;
            if (i % 500 == 499) {
                gwa_attribution_passed(w.a, 0, idle_from * US, now * US);
                gwa_attribution_trim(w.a);
            }
        }
        finish(&w);
        end(&w);
    }
    (void)state;
}

/* ---- the sweep tells of all idle that it counts
 * --------------------------------------------------- */

static void add_up(void *arg, unsigned device, const struct gwa_idle_time *idle)
{
    double *sum = arg;
    assert_true(idle->end > idle->start);
    assert_int_equal(device, 3);
    *sum += (double)(idle->end - idle->start);
}

/* Two streams at random, some of whose operations belong to one of several ranges. */
static void the_sweep_tells_of_all_idle(void **state)
{
    uint64_t random = 88172645463325252u;
    for (unsigned run = 0; run < 300; run++) {
        struct gwa_queue queues[2] = {{0}}, *list[2] = {&queues[0], &queues[1]};
        uint32_t scratch[2];
        struct gwa_sweep s = {0};
        double told = 0, in_phases = 0;
        assert_int_equal(gwa_sweep_listen(&s, add_up, &told, 3), 0);
        for (unsigned q = 0; q < 2; q++) {
            int64_t now = 0;
            for (unsigned i = 0; i < 400; i++) {
                random ^= random << 13, random ^= random >> 7, random ^= random << 17;
                struct gwa_piece *p = gwa_queue_add(list[q]);
                assert_non_null(p);
                now += (int64_t)(random % 50);
                *p = (struct gwa_piece){.start = now,
                                        .end = now + (int64_t)((random >> 8) % 40),
                                        .inside = run % 3 == 0   ? 1
                                                  : run % 3 == 1 ? (random >> 16) % 3 != 0
                                                                 : i % 190 == 0,
                                        .interval = run % 3 == 1 ? i / 100 : 0,
                                        .phase = (random >> 20) % GWA_PHASE_COUNT,
                                        .activity = (random >> 24) % GWA_ACTIVITIES,
                                        .hollow = (random >> 28) % 8 ? 0 : 0.25f};
                now = p->end;
            }
        }
        gwa_sweep(&s, list, 2, scratch, 5000);
        gwa_sweep(&s, list, 2, scratch, INT64_MAX);
        gwa_sweep_finish(&s);
        assert_true(s.sums.idle > 0);
        assert_near(told, s.sums.idle - s.sums.hollow, 1e-3);
        for (unsigned i = 0; i < GWA_PHASE_COUNT; i++)
            in_phases += s.sums.idle_in[i] + s.sums.busy_in[i];
        assert_near(in_phases, s.sums.wall, 1e-3);
        gwa_sweep_free(&s);
        free(queues[0].ring);
        free(queues[1].ring);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_sections_are_dispatch),
        cmocka_unit_test(sections_are_divided_by_cpu_time),
        cmocka_unit_test(a_part_measured_stands_for_all),
        cmocka_unit_test(a_trifle_measured_says_nothing),
        cmocka_unit_test(sections_without_clocks_go_by_their_siblings),
        cmocka_unit_test(a_blocking_call_drains),
        cmocka_unit_test(a_call_that_finds_the_device_idle_drains_nothing),
        cmocka_unit_test(allocations_and_copies_that_block),
        cmocka_unit_test(a_call_inside_another_takes_its_part),
        cmocka_unit_test(nccl_host_calls_are_comm),
        cmocka_unit_test(capturing_is_load),
        cmocka_unit_test(lost_events_are_unknown),
        cmocka_unit_test(between_queued_operations_the_host_is_not_the_cause),
        cmocka_unit_test(the_thread_that_hands_over_counts),
        cmocka_unit_test(a_parked_thread_is_not_the_cause),
        cmocka_unit_test(a_long_hand_over_is_judged_when_the_thread_calls_again),
        cmocka_unit_test(devices_share_what_the_host_did),
        cmocka_unit_test(stacks_name_the_line),
        cmocka_unit_test(lower_lines_count),
        cmocka_unit_test(sites_recur_by_step),
        cmocka_unit_test(periods_are_counted_in_steps),
        cmocka_unit_test(places_are_capped),
        cmocka_unit_test(what_is_held_is_bounded),
        cmocka_unit_test(many_unmeasured_sections_in_one_gap),
        cmocka_unit_test(bad_clocks_and_deep_nests_do_no_harm),
        cmocka_unit_test(nonsense_adds_up),
        cmocka_unit_test(the_sweep_tells_of_all_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
