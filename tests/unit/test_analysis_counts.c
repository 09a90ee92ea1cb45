/* Counts of the first report: what is an execution, and where it is filed. */
#include "test_analysis_fake.h"

static void launches_by_level_and_name(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    launch(t, 10, S_A, K_ADD);
    launch(t, 20, S_B, K_GEMM);
    /* cuBLAS: seen by the driver's wrapper only */
    struct gwt_event *e = fake_call(t, 1, 30, 34, API_CULAUNCH, S_A);
    e->arg = K_GEMM;
    /* other shape of the same function, other thread */
    e = fake_call(t, 2, 40, 41, API_LAUNCH, S_A);
    e->arg = K_TINY;
    struct gwa_process *p = analyse(t, NULL);

    assert_int_equal(p->launches.calls, 5);
    assert_int_equal(p->launches.kernels, 5);
    assert_int_equal(p->launches.driver_only, 1);
    assert_near(p->launches.driver_only_pct, 20, 1e-9);
    assert_int_equal(find_api(p, "cudaLaunchKernel")->calls, 4);
    assert_int_equal(find_api(p, "cuLaunchKernelEx")->calls, 1);
    assert_near(find_api(p, "cuLaunchKernelEx")->us.p50, 4, 0.04);
    assert_near(p->launches.api_us.mean, (4 * 1 + 4) / 5.0, 1e-9);
    assert_near(p->launches.api_us.p50, 1, 0.01);
    assert_near(p->launches.api_us.p99, 4, 0.04);

    assert_int_equal(p->devices_count, 1);
    const struct gwa_device *d = &p->devices[0];
    assert_int_equal(d->kernels_count, 2);
    assert_int_equal(d->kernels_executed, 5);
    /* two signatures of one function are one kernel; names are demangled whole */
    const struct gwa_kernel *add = find_kernel(d, "ours::add(float*, int)");
    assert_non_null(add);
    assert_int_equal(add->calls, 3);
    /* of 200, 200 and 1 blocks on 132 SMs, one launch is below */
    assert_near(add->below_sms_pct, 100.0 / 3, 1e-9);
    assert_int_equal(find_kernel(d, "gemm_128x128")->calls, 2);
    assert_near(find_kernel(d, "gemm_128x128")->below_sms_pct, 0, 0);
    assert_true(isnan(add->mean_us)); /* not measured, not 0 */

    assert_int_equal(p->threads_count, 2);
    assert_int_equal(p->threads[0].launches, 4);
    assert_string_equal(p->threads[1].name, "pt_autograd_0");
    assert_int_equal(p->streams_count, 2);
    assert_int_equal(p->streams[0].launches, 4);
    assert_int_equal(p->identity.pid, 42);
    assert_string_equal(p->identity.host, "node7");
    assert_int_equal(p->identity.rank, -1);
    assert_true(p->quality.complete);
    gwa_free(p);
    free(t);
}

static void failed_captured_and_unwound_are_no_executions(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    launch(t, 10, S_A, K_ADD)->status = 1;
    launch(t, 20, S_A, K_ADD)->flags = GWT_F_CAPTURED;
    launch(t, 30, S_A, K_ADD)->flags = GWT_F_CAPTURED;
    launch(t, 40, S_A, K_ADD)->flags = GWT_F_UNWOUND;
    copy(t, 50, 51, S_A, GWT_H2D, 100, GWT_F_CAPTURED);
    copy(t, 60, 61, S_A, GWT_H2D, 100, 0)->status = 1;
    struct gwt_event *e = fake_call(t, 1, 70, 71, API_MEMSET, S_A);
    e->value = 64, e->flags = GWT_F_CAPTURED;
    e = fake_call(t, 1, 80, 81, API_ALL_REDUCE, S_A);
    e->value = 4096, e->flags = GWT_F_CAPTURED;
    sync_device(t, 90, 95)->status = 700; /* an illegal address: it waited for nothing known */
    struct gwa_process *p = analyse(t, NULL);

    assert_int_equal(p->launches.calls, 1);
    assert_int_equal(p->launches.kernels, 1);
    assert_int_equal(p->launches.captured, 2);
    assert_int_equal(p->launches.failed, 2);
    assert_int_equal(p->devices[0].copies[GWT_H2D].calls, 0);
    assert_int_equal(p->devices[0].memsets.calls, 0);
    assert_int_equal(p->collectives_count, 0);
    assert_int_equal(p->syncs.calls, 0);
    assert_int_equal(find_api(p, "cudaMemcpyAsync")->captured, 1);
    assert_int_equal(find_api(p, "cudaMemcpyAsync")->failed, 1);
    gwa_free(p);
    free(t);
}

static const struct gwt_graph_item items[] = {
    {.kind = GWT_LAUNCH, .count = 3, .signature = K_ADD},
    {.kind = GWT_LAUNCH, .count = 1, .signature = K_TINY},
    {.kind = GWT_COPY, .direction = GWT_D2D, .count = 2, .bytes = 512},
    {.kind = GWT_MEMSET, .count = 1, .bytes = 64},
    {.kind = GWT_HOST_FUNC, .count = 1},
};

static void add_graph(struct gwt_trace *t, unsigned id, bool exact)
{
    t->graph_defs[id] = (struct gwt_def_graph){.items = 5, .exact = exact};
    t->graphs[id] = (struct gwt_graph_info){.graph = &t->graph_defs[id], .items = items};
}

static struct gwt_event *graph_launch(struct gwt_trace *t, int64_t t0, unsigned id)
{
    struct gwt_event *e = fake_call(t, 1, t0, t0 + 5, API_GRAPH, S_A);
    e->arg = id;
    return e;
}

static void graphs_are_expanded_at_each_launch(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    add_graph(t, 7, true);
    launch(t, 0, S_A, K_ADD);
    for (int i = 0; i < 10; i++)
        graph_launch(t, 100 + i * 10, 7);
    graph_launch(t, 300, 7)->flags = GWT_F_CAPTURED; /* into another graph */
    copy(t, 400, 401, S_A, GWT_D2D, 1000, 0);
    struct gwa_process *p = analyse(t, NULL);

    assert_int_equal(p->launches.calls, 1);
    assert_int_equal(p->launches.graph_launches, 10);
    assert_int_equal(p->launches.kernels, 1 + 10 * (3 + 1));
    assert_int_equal(p->launches.approximate, 0);
    const struct gwa_device *d = &p->devices[0];
    const struct gwa_kernel *add = find_kernel(d, "ours::add(float*, int)");
    assert_int_equal(add->calls, 41);
    assert_int_equal(add->in_graphs, 40);
    assert_near(add->below_sms_pct, 100.0 * 10 / 41, 1e-9);
    assert_int_equal(d->copies[GWT_D2D].calls, 1 + 10 * 2);
    assert_int_equal(d->copies[GWT_D2D].bytes, 1000 + 10 * 512);
    assert_int_equal(d->memsets.calls, 10);
    assert_int_equal(d->memsets.bytes, 640);
    assert_int_equal(d->transfers_count, 2); /* from the call, from graphs */
    assert_int_equal(d->transfers[1].memory, GWA_MEM_GRAPH);
    gwa_free(p);
    free(t);
}

static void graphs_not_exactly_known_are_said_to_be(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    add_graph(t, 1, true);
    add_graph(t, 2, false); /* conditional nodes */
    graph_launch(t, 0, 1);
    graph_launch(t, 10, 1)->flags = GWT_F_APPROX; /* edited after instantiation */
    graph_launch(t, 20, 2);
    graph_launch(t, 30, 3); /* its nodes are not in the recording */
    struct gwa_process *p = analyse(t, NULL);
    assert_int_equal(p->launches.graph_launches, 4);
    assert_int_equal(p->launches.kernels, 3 * 4);
    assert_int_equal(p->launches.approximate, 3);
    assert_false(p->quality.complete);
    assert_int_equal(p->quality.flaws_count, 1);
    assert_int_equal(p->quality.flaws[0].id, GWA_FLAW_GRAPHS);
    assert_int_equal(p->quality.flaws[0].amount, 3);
    gwa_free(p);
    free(t);
}

static void unknown_kernels_are_counted_without_a_name(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, 0)->flags = GWT_F_HOLE; /* the driver's call was not in sight */
    launch(t, 10, S_A, 60);                   /* defined nowhere */
    launch(t, 20, S_A, 4000000000u);          /* not believed */
    launch(t, 30, S_A, K_FALLBACK);           /* named, shape unknown */
    t->counters[GWT_C_HOLES] = 1;
    struct gwa_process *p = analyse(t, NULL);
    assert_int_equal(p->launches.kernels, 4);
    assert_int_equal(p->launches.holes, 1);
    assert_int_equal(p->devices[0].kernels_count, 2);
    assert_null(p->devices[0].kernels[0].name);
    assert_int_equal(p->devices[0].kernels[0].calls, 3);
    assert_true(isnan(find_kernel(&p->devices[0], "tiny()")->below_sms_pct));
    assert_int_equal(p->quality.flaws[0].id, GWA_FLAW_HOLES);
    gwa_free(p);
    free(t);
}

static const struct gwa_transfer *find_transfer(const struct gwa_device *d, unsigned direction,
                                                unsigned memory, unsigned stream)
{
    for (size_t i = 0; i < d->transfers_count; i++)
        if (d->transfers[i].direction == direction && d->transfers[i].memory == memory &&
            d->transfers[i].stream == stream)
            return &d->transfers[i];
    fail_msg("no such transfer");
    return NULL;
}

static void copies_by_direction_memory_and_stream(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    copy(t, 0, 1, S_A, GWT_H2D, 1000, 0);                    /* pinned, does not wait */
    copy(t, 10, 110, S_A, GWT_H2D, 1000000, GWT_F_PAGEABLE); /* waits by itself */
    copy(t, 200, 400, S_A, GWT_H2D, 2000000, GWT_F_PAGEABLE);
    copy(t, 500, 510, S_B, GWT_D2H, 4, GWT_F_BLOCKING);
    copy(t, 600, 601, S_A, GWT_D2D, 10, GWT_F_BLOCKING); /* the host does not wait for these */
    copy(t, 610, 611, S_A, GWT_H2D, 5000, 0)->arg = 5;   /* a batch */
    copy(t, 620, 621, S_A, GWT_H2D, 0, 0);               /* nothing moves, nothing runs */
    struct gwt_event *e = fake_call(t, 1, 700, 701, API_MEMSET, S_A);
    e->value = 256, e->arg = 1;
    fake_call(t, 1, 710, 711, API_MEMSET, S_A); /* of no byte */
    struct gwa_process *p = analyse(t, NULL);

    const struct gwa_device *d = &p->devices[0];
    assert_int_equal(d->copies[GWT_H2D].calls, 1 + 2 + 5);
    assert_int_equal(d->copies[GWT_H2D].bytes, 1000 + 3000000 + 5000);
    assert_int_equal(d->copies[GWT_D2H].calls, 1);
    assert_int_equal(d->copies[GWT_D2D].calls, 1);
    assert_int_equal(d->memsets.calls, 1);
    assert_int_equal(d->memsets.bytes, 256);
    assert_int_equal(d->transfers_count, 4);
    const struct gwa_transfer *pageable = find_transfer(d, GWT_H2D, GWA_MEM_PAGEABLE, S_A);
    assert_int_equal(pageable->calls, 2);
    assert_int_equal(pageable->blocking, 2);
    assert_near(pageable->gb_per_s, 3e6 / 300e3, 1e-9); /* 3 MB in 300 us of call time */
    const struct gwa_transfer *pinned = find_transfer(d, GWT_H2D, GWA_MEM_PINNED, S_A);
    assert_int_equal(pinned->calls, 6);
    assert_true(isnan(pinned->gb_per_s));
    find_transfer(d, GWT_D2H, GWA_MEM_PINNED, S_B);
    find_transfer(d, GWT_D2D, GWA_MEM_DEVICE, S_A);
    assert_int_equal(p->blocking_copies.calls, 3);
    assert_near(p->blocking_copies.waited_ms, 0.310, 1e-9);
    assert_int_equal(p->syncs.calls, 0); /* their own item */
    /* the calls happened even where nothing was copied */
    assert_int_equal(find_api(p, "cudaMemcpyAsync")->calls, 5);
    gwa_free(p);
    free(t);
}

static void waits_allocations_collectives_and_the_rest(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    sync_stream(t, 10, 60, S_A);
    sync_device(t, 70, 80);
    sync_event(t, 90, 91, 5);
    fake_call(t, 1, 100, 150, API_MALLOC, S_NONE)->value = 1 << 20;
    fake_call(t, 1, 160, 170, API_MALLOC, S_NONE)->status = 2; /* out of memory */
    fake_call(t, 1, 200, 230, API_HOST_ALLOC, S_NONE)->value = 4096;
    fake_call(t, 1, 240, 260, API_FREE, S_NONE);
    for (int i = 0; i < 3; i++)
        fake_call(t, 1, 300 + 10 * i, 301 + 10 * i, API_ALL_REDUCE, S_B)->value = 1000;
    fake_call(t, 1, 400, 401, API_CAPTURE_BEGIN, S_A);
    fake_call(t, 1, 410, 411, API_CAPTURE_END, S_A)->flags = GWT_F_CLOSING;
    fake_call(t, 1, 420, 440, API_MODULE, S_NONE);
    record_event(t, 450, S_A, 5);
    wait_event(t, 460, S_B, 5);
    t->counters[GWT_C_POLLS] = 99;
    struct gwa_process *p = analyse(t, NULL);

    assert_int_equal(p->syncs.calls, 3);
    assert_near(p->syncs.waited_ms, 0.061, 1e-9);
    assert_near(p->threads[0].waited_ms, 0.061, 1e-9);
    assert_int_equal(p->allocations.calls, 2);
    assert_int_equal(p->allocations.device_calls, 1);
    assert_int_equal(p->allocations.host_calls, 1);
    assert_int_equal(p->allocations.failed, 1);
    assert_near(p->allocations.ms, 0.080, 1e-9); /* of those that succeeded */
    assert_int_equal(p->allocations.frees, 1);
    assert_near(p->allocations.free_ms, 0.020, 1e-9);
    assert_int_equal(p->collectives_count, 1);
    assert_string_equal(p->collectives[0].op, "AllReduce");
    assert_int_equal(p->collectives[0].calls, 3);
    assert_int_equal(p->collectives[0].bytes, 3000);
    assert_int_equal(p->other.captures, 1);
    assert_int_equal(p->other.module_loads, 1);
    assert_int_equal(p->other.event_records, 1);
    assert_int_equal(p->other.stream_waits, 1);
    assert_int_equal(p->polls, 99);
    gwa_free(p);
    free(t);
}

static void host_time_per_launch_is_the_undisturbed_one(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    int64_t at = 0;
    for (int step = 0; step < 20; step++) {
        for (int i = 0; i < 10; i++, at += 8)
            launch(t, at, S_A, K_ADD);
        sync_stream(t, at, at + 5000, S_A);
        at += 20000; /* waiting for data: not what a launch costs */
    }
    /* a launch that NCCL makes inside its own call has no cadence of its own */
    fake_call(t, 1, at, at + 1, API_CULAUNCH, S_B)->flags = GWT_F_NESTED;
    struct gwa_process *p = analyse(t, NULL);
    assert_near(p->launches.host_us_per_launch, 8, 0.08);
    /* 201 launches from the first entry to the last return */
    assert_near(p->window.wall_s, (double)(at + 1) / 1e6, 1e-9);
    assert_near(p->launches.per_second, 201 / ((double)(at + 1) / 1e6), 1e-6);
    gwa_free(p);
    free(t);
}

static void the_window_ends_with_the_wait_for_the_work(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    fake_call(t, 1, 0, 40, API_MALLOC, S_NONE); /* no operation of the device */
    launch(t, 100, S_A, K_ADD);
    sync_device(t, 110, 1100);  /* the launch returned at once, its work did not */
    sync_device(t, 5000, 5001); /* nothing was left to wait for */
    struct gwa_process *p = analyse(t, NULL);
    assert_near(p->devices[0].window.wall_s, 1000e-6, 1e-12);
    gwa_free(p);
    free(t);
}

static void several_devices(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    launch(t, 10, S_OTHER_DEVICE, K_ADD);
    launch(t, 20, S_OTHER_DEVICE, K_GEMM);
    launch(t, 30, 0, K_GEMM); /* a stream that is not known */
    struct gwa_process *p = analyse(t, NULL);
    assert_int_equal(p->devices_count, 3);
    assert_int_equal(p->devices[0].kernels_executed, 1);
    assert_int_equal(p->devices[1].index, 1);
    assert_int_equal(p->devices[1].kernels_executed, 2);
    assert_null(p->devices[1].name);
    assert_true(isnan(p->devices[1].kernels[0].below_sms_pct)); /* its SMs are not known */
    assert_int_equal(p->devices[2].index, -1);
    assert_true(isnan(p->devices[2].time.provable_idle_pct));
    assert_int_equal(p->launches.kernels, 4);
    gwa_free(p);
    free(t);
}

static void flaws_are_told_apart(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    t->coverage.dropped = 5;
    t->coverage.torn = true;
    t->coverage.aggregated = 7;
    t->counters[GWT_C_WRITE_ERRNO] = ENOSPC;
    struct gwa_process *p = analyse(t, NULL);
    assert_false(p->quality.complete);
    assert_int_equal(p->quality.flaws_count, 4);
    assert_int_equal(p->quality.flaws[0].id, GWA_FLAW_DROPPED);
    assert_int_equal(p->quality.flaws[0].amount, 5);
    assert_int_equal(p->quality.flaws[1].id, GWA_FLAW_TORN);
    assert_int_equal(p->quality.flaws[3].id, GWA_FLAW_STOPPED);
    assert_int_equal(p->quality.dropped, 5);
    gwa_free(p);
    free(t);
}

static void calls_that_never_returned(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    sync_device(t, 10, 50000000);
    t->threads[1].open_api = "cudaStreamSynchronize";
    t->threads[1].open_since_ns = 9000000 * (int64_t)US;
    struct gwa_process *p = analyse(t, NULL);
    assert_int_equal(p->quality.stuck_count, 0); /* it ended cleanly: a stale slot says nothing */
    gwa_free(p);
    t->coverage.ended = false;
    p = analyse(t, NULL);
    assert_int_equal(p->quality.stuck_count, 1);
    assert_string_equal(p->quality.stuck[0].api, "cudaStreamSynchronize");
    assert_int_equal(p->quality.stuck[0].tid, 102);
    assert_near(p->quality.stuck[0].seconds, 41, 1e-6); /* up to the recording's last event */
    gwa_free(p);
    free(t);
}

static void own_cost(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    for (int i = 0; i < 1000; i++)
        launch(t, i * 10, S_A, K_ADD);
    struct gwa_process *p = analyse(t, NULL);
    assert_true(isnan(p->quality.own_host_ms)); /* the recorder did not measure itself */
    gwa_free(p);
    t->counters[GWT_C_CALL_NS_X1000] = 50000; /* 50 ns */
    t->counters[GWT_C_SETUP_NS] = 100000;
    t->counters[GWT_C_DRAIN_CPU_NS] = 850000;
    p = analyse(t, NULL);
    assert_near(p->quality.own_host_ms, 1.0, 1e-9); /* 0.05 + 0.1 + 0.85 */
    assert_near(p->quality.own_overhead_pct, 100 * 1.0 / 9.991, 1e-6);
    gwa_free(p);
    free(t);
}

static void nothing_recorded(void **state)
{
    struct gwt_trace *t = fake_new();
    struct gwa_options options = {0};
    struct gwa_process *p;
    struct gwt_error error;
    (void)state;
    assert_int_equal(gwa_analyse(t, &options, &p, &error), -ENODATA);
    assert_null(p);
    free(t);
}

static int stop(void *arg, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    ++*(int *)arg;
    return 1;
}

static void progress_is_not_called_for_little(void **state)
{
    struct gwt_trace *t = fake_new();
    struct gwa_process *p;
    struct gwt_error error;
    int called = 0;
    struct gwa_options options = {.progress = stop, .progress_arg = &called};
    (void)state;
    launch(t, 0, S_A, K_ADD);
    assert_int_equal(gwa_analyse(t, &options, &p, &error), 0);
    assert_int_equal(called, 0);
    gwa_free(p);
    free(t);
}

static void names_are_demangled_whole(void **state)
{
    (void)state;
    char *name = gwa_demangle("not_mangled");
    assert_string_equal(name, "not_mangled");
    free(name);
    name = gwa_demangle("i"); /* a type's code, not a name */
    assert_string_equal(name, "i");
    free(name);
    name = gwa_demangle("_ZSt4moveIiEvT_"); /* std::string and the like stay short */
    assert_string_equal(name, "void std::move<int>(int)");
    free(name);
    name = gwa_demangle("_Z1fI1AEvv");
    assert_string_equal(name, "void f<A>()");
    free(name);
    /* a nest of templates, mangled longer than the demangler takes by itself (1024) */
    char long_name[4096];
    strcpy(long_name, "_Z1fI");
    for (int i = 0; i < 500; i++)
        strcat(long_name, "1BI");
    strcat(long_name, "i");
    for (int i = 0; i < 501; i++)
        strcat(long_name, "E");
    strcat(long_name, "vv");
    name = gwa_demangle(long_name);
    assert_true(strlen(long_name) > 1024);
    assert_int_equal(strncmp(name, "void f<B<B<", 11), 0);
    free(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_by_level_and_name),
        cmocka_unit_test(failed_captured_and_unwound_are_no_executions),
        cmocka_unit_test(graphs_are_expanded_at_each_launch),
        cmocka_unit_test(graphs_not_exactly_known_are_said_to_be),
        cmocka_unit_test(unknown_kernels_are_counted_without_a_name),
        cmocka_unit_test(copies_by_direction_memory_and_stream),
        cmocka_unit_test(waits_allocations_collectives_and_the_rest),
        cmocka_unit_test(host_time_per_launch_is_the_undisturbed_one),
        cmocka_unit_test(the_window_ends_with_the_wait_for_the_work),
        cmocka_unit_test(several_devices),
        cmocka_unit_test(flaws_are_told_apart),
        cmocka_unit_test(calls_that_never_returned),
        cmocka_unit_test(own_cost),
        cmocka_unit_test(nothing_recorded),
        cmocka_unit_test(progress_is_not_called_for_little),
        cmocka_unit_test(names_are_demangled_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
