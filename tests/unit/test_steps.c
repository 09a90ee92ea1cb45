/* Steps, by hand: each test makes a program's calls and says which steps they are, which event
 * belongs where, and why. What PyTorch and the simulator do is in test_steps_traces.c and
 * tests/e2e/31-steps.sh. */
#include "test_analysis_fake.h"

#include "analysis/steps_internal.h"

enum { MAIN = 1, AUTOGRAD = 2, OTHER = 3 };
/* signatures; each has a name of its own */
enum { K_F = 20, K_LAYERS = 30, K_B = 40, K_ADAM = 50, K_SMALL = 51, K_BIG = 52 };
#define LAYERS 5

static struct gwt_trace *program(void)
{
    struct gwt_trace *t = fake_new();
    static char names[FAKE_NAMES][16];
    for (unsigned id = 20; id < FAKE_NAMES; id++) {
        snprintf(names[id], sizeof(names[id]), "kernel_%u", id);
        t->strings[id] = names[id];
        t->signatures[id] = (struct gwt_signature_info){.name_id = id, .grid = {1, 1, 1}};
    }
    t->strings[K_ADAM] = "multi_tensor_apply_kernel";
    t->strings[K_BIG] = NULL; /* the same kernel as K_SMALL, with another grid */
    t->signatures[K_SMALL].name_id = t->signatures[K_BIG].name_id = K_SMALL;
    t->signatures[K_BIG].grid[0] = 2;
    t->threads[2] = (struct gwt_thread_info){.id = OTHER, .tid = 103, .name = "other"};
    t->threads_count = 3;
    return t;
}

/* Calls follow one another every 10 us. */
static int64_t now;

static struct gwt_event *run(struct gwt_trace *t, unsigned thread, unsigned signature)
{
    struct gwt_event *e = launch(t, now += 10, S_A, signature);
    e->thread = thread;
    return e;
}

static void fetch(struct gwt_trace *t)
{
    now += 10;
    copy(t, now, now + 1, S_A, GWT_H2D, 1 << 20, 0);
}

static void item(struct gwt_trace *t)
{
    now += 10;
    copy(t, now, now + 2, S_A, GWT_D2H, 4, 0);
    now += 10;
    sync_stream(t, now, now + 5, S_A);
}

static void forward(struct gwt_trace *t)
{
    for (unsigned i = 0; i < LAYERS; i++)
        run(t, MAIN, K_LAYERS + i);
}

static void backward(struct gwt_trace *t)
{
    for (unsigned i = 0; i < 3; i++)
        run(t, AUTOGRAD, K_B + i);
}

static void train_step(struct gwt_trace *t)
{
    fetch(t);
    forward(t);
    backward(t);
    run(t, MAIN, K_ADAM);
    run(t, MAIN, K_ADAM);
    item(t);
}

static struct gwa_steps *find(struct gwt_trace *t)
{
    struct gwa_steps *s = gwa_steps_new(t, NULL, NULL);
    struct gwt_event e;
    assert_non_null(s);
    gwt_rewind(t);
    while (gwt_next(t, &e))
        assert_int_equal(gwa_steps_event(s, &e), 0);
    assert_int_equal(gwa_steps_find(s, SIZE_MAX), 0);
    return s;
}

static struct gwa_step_summary place(struct gwt_trace *t, struct gwa_steps *s, double gpu_ns)
{
    struct gwa_step_summary out;
    struct gwa_place where;
    struct gwt_event e;
    gwt_rewind(t);
    while (gwt_next(t, &e))
        assert_int_equal(gwa_steps_place(s, &e, &where), 0);
    if (where.step != UINT32_MAX)
        gwa_steps_took(s, &e, &where, gpu_ns);
    assert_int_equal(gwa_steps_summary(s, &out), 0);
    return out;
}

static void done(struct gwt_trace *t, struct gwa_steps *s)
{
    gwa_steps_free(s);
    free(t);
    now = 0;
}

/* ---- where steps begin and end ------------------------------------------------------------- */

static void a_step_begins_with_its_first_submission(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    int64_t begins[10];
    run(t, MAIN, K_F); /* weights */
    for (unsigned i = 0; i < 10; i++) {
        now += 500; /* data loading: the earlier step's */
        begins[i] = now + 10;
        train_step(t);
    }
    struct gwa_steps *s = find(t);
    const struct gwa_step *list = gwa_steps_list(s);
    assert_int_equal(gwa_steps_count(s), 10);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(list[i].from, begins[i] * US);
        if (i < 9)
            assert_int_equal(list[i].to, begins[i + 1] * US);
    }
    /* the last ends with what the loop did last: the wait of item() */
    assert_int_equal(list[9].to, (now + 5) * US);
    done(t, s);
}

static void without_a_loop_there_are_no_steps(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    struct gwa_step_summary out;
    struct gwa_place where;
    int64_t from, to;
    struct gwa_steps *s = find(t);
    assert_int_equal(gwa_steps_count(s), 0);
    assert_false(gwa_steps_steady(s, &from, &to));
    done(t, s);

    t = program();
    uint32_t x = 1;
    for (unsigned i = 0; i < 3000; i++) {
        x = x * 1664525 + 1013904223;
        run(t, MAIN, 20 + (x >> 16) % 40);
    }
    s = find(t);
    assert_int_equal(gwa_steps_count(s), 0);
    assert_int_equal(gwa_steps_place(s, &t->events[5], &where), 0);
    assert_int_equal(where.step, UINT32_MAX);
    assert_int_equal(gwa_steps_summary(s, &out), 0);
    assert_int_equal(out.count, 0);
    assert_true(isnan(out.confidence));
    done(t, s);
}

/* One kernel over and over: a step of it cannot be told. */
static void a_single_kernel_is_no_step(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 1000; i++)
        run(t, MAIN, K_F);
    struct gwa_steps *s = find(t);
    assert_int_equal(gwa_steps_count(s), 0);
    done(t, s);
}

static void micro_batches_belong_to_one_step(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 12; i++) {
        for (unsigned k = 0; k < 3; k++) {
            fetch(t);
            forward(t);
            backward(t);
        }
        run(t, MAIN, K_ADAM);
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_int_equal(out.all, 12);
    assert_near(out.micro_batches, 3, 0);
    assert_near(out.launches.median, 3 * (LAYERS + 3) + 1, 0);
    assert_near(out.launches.least, out.launches.most, 0);
    assert_true(out.identical);
    done(t, s);
}

/* Once a step, or in each micro-batch; what is copied meanwhile on another thread is no matter. */
static void collectives_of_micro_batches(void **state)
{
    (void)state;
    for (unsigned every = 1; every <= 3; every += 2) {
        struct gwt_trace *t = program();
        for (unsigned i = 0; i < 36; i++) {
            fetch(t);
            forward(t);
            backward(t);
            run(t, OTHER, K_F);
            for (unsigned k = 0; k < 2 && i % every == every - 1; k++) {
                now += 10;
                fake_call(t, AUTOGRAD, now, now + 2, API_ALL_REDUCE, S_A)->value = 1 << 20;
            }
            if (i % 3 == 2)
                run(t, MAIN, K_ADAM);
        }
        struct gwa_steps *s = find(t);
        struct gwa_step_summary out = place(t, s, NAN);
        assert_int_equal(out.all, 12);
        assert_near(out.micro_batches, 3, 0);
        assert_near(out.collective_batches, every == 1 ? 3 : 1, 0);
        done(t, s);
    }
}

/* Layers recur within a forward pass; the host takes part once in each. */
static void layers_are_no_steps(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 20; i++) {
        fetch(t);
        run(t, MAIN, K_F);
        for (unsigned k = 0; k < 8; k++)
            forward(t);
        run(t, MAIN, K_F + 1);
        item(t);
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_int_equal(out.all, 20);
    assert_near(out.launches.median, 8 * LAYERS + 2, 0);
    assert_true(isnan(out.micro_batches));
    assert_true(isnan(out.forward_pct));
    done(t, s);
}

static void what_failed_or_was_captured_is_not_there(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 20; i++) {
        fetch(t);
        forward(t);
        for (unsigned k = 0; k < i; k++) { /* would make each step another */
            run(t, MAIN, K_F)->status = 2;
            run(t, MAIN, K_F + 1)->flags = GWT_F_CAPTURED;
        }
        item(t);
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_int_equal(out.all, 20);
    assert_true(out.identical);
    assert_near(out.launches.most, LAYERS, 0);
    done(t, s);
}

/* A thread with its own loop does not disturb the one that submits most. */
static void another_thread_does_not_disturb(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 30; i++) {
        fetch(t);
        forward(t);
        if (i % 3 != 1)
            run(t, OTHER, K_F);
        item(t);
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_int_equal(out.all, 30);
    assert_near(out.launches.least, LAYERS, 0); /* the others' work counts where it falls */
    assert_near(out.launches.most, LAYERS + 1, 0);
    assert_string_equal(out.varies, "number of launches");
    done(t, s);
}

/* ---- phases --------------------------------------------------------------------------------- */

static void phases_and_recompute(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    struct gwa_place where;
    struct gwt_event e;
    for (unsigned i = 0; i < 10; i++) {
        fetch(t);
        forward(t);
        run(t, AUTOGRAD, K_B);
        for (unsigned k = 0; k < LAYERS; k++)
            run(t, AUTOGRAD, K_LAYERS + k); /* the forward pass again */
        backward(t);
        run(t, MAIN, K_ADAM);
    }
    struct gwa_steps *s = find(t);
    unsigned phases[GWA_PHASE_COUNT] = {0}, again = 0, counted = 0;
    gwt_rewind(t);
    while (gwt_next(t, &e)) {
        assert_int_equal(gwa_steps_place(s, &e, &where), 0);
        if (where.step != UINT32_MAX)
            gwa_steps_took(s, &e, &where, e.kind == GWT_LAUNCH ? 1000 : 0);
        if (e.kind != GWT_LAUNCH)
            continue;
        phases[where.phase]++;
        again += where.recompute > 0;
        counted += where.recompute;
        if (where.recompute)
            assert_in_range(e.arg, K_LAYERS, K_LAYERS + LAYERS - 1);
    }
    assert_int_equal(phases[GWA_PHASE_FORWARD], 10 * LAYERS);
    assert_int_equal(phases[GWA_PHASE_BACKWARD], 10 * (LAYERS + 4));
    assert_int_equal(phases[GWA_PHASE_OPTIMIZER], 10);
    /* known as such from the fourth of a kind on; counted from the first */
    assert_int_equal(again, 10 * (LAYERS - 3));
    assert_int_equal(counted, 10 * LAYERS);
    struct gwa_step_summary out;
    assert_int_equal(gwa_steps_summary(s, &out), 0);
    double launches = 2 * LAYERS + 5;
    assert_near(out.forward_pct, 100 * LAYERS / launches, 1e-3);
    assert_near(out.backward_pct, 100 * (LAYERS + 4) / launches, 1e-3);
    assert_near(out.optimizer_pct, 100 / launches, 1e-3);
    assert_near(out.recompute_pct, 100 * LAYERS / launches, 1e-3);
    assert_near(out.recompute_segments, 1, 0);
    done(t, s);
}

/* Alike by name only, or too few in a row: not the forward pass again. */
static void what_is_alike_by_chance_is_no_recompute(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 10; i++) {
        fetch(t);
        forward(t);
        for (unsigned k = 0; k < 6; k++)
            run(t, MAIN, K_SMALL);
        for (unsigned k = 0; k < 3; k++)
            run(t, AUTOGRAD, K_LAYERS + k);
        run(t, AUTOGRAD, K_B);
        for (unsigned k = 0; k < 6; k++)
            run(t, AUTOGRAD, K_BIG);
        run(t, MAIN, K_ADAM);
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, 1000);
    assert_int_equal(out.all, 10);
    assert_near(out.recompute_pct, 0, 0);
    assert_near(out.recompute_segments, 0, 0);
    done(t, s);
}

/* ---- kinds --------------------------------------------------------------------------------------
 */

static void slow_first_steps_are_warm_up(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 30; i++) {
        train_step(t);
        if (i < 3)
            now += 5000; /* compiling */
    }
    struct gwa_steps *s = find(t);
    int64_t from, to;
    assert_true(gwa_steps_steady(s, &from, &to));
    assert_int_equal(from, gwa_steps_list(s)[3].from);
    assert_int_equal(to, gwa_steps_list(s)[29].to);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_int_equal(out.all, 30);
    assert_int_equal(out.count, 27);
    assert_near(out.warmup_s, (double)(from - gwa_steps_list(s)[0].from) / 1e9, 1e-12);
    done(t, s);
}

/* Every fourth step needs a kernel of its own (a new length) until the tenth: three even ones in a
 * row do not end the warm-up, the last of those does. A quick load does not count, nor a late one.
 */
static void first_uses_are_warm_up(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 40; i++) {
        train_step(t);
        if (i % 4 == 1 && (i < 10 || i == 13 || i == 33)) {
            now += i == 13 ? 5 : 2000;
            fake_call(t, MAIN, now, now + 1, API_MODULE, 0);
        }
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_int_equal(out.all, 40);
    assert_int_equal(out.count, 30);
    done(t, s);
}

static void saving_now_and_then_is_unusual(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 40; i++) {
        train_step(t);
        if (i % 8 == 7) {
            for (unsigned k = 0; k < 4; k++) {
                now += 10;
                copy(t, now, now + 9, S_A, GWT_D2H, 1 << 20, GWT_F_BLOCKING);
            }
            now += 1000;
        }
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_int_equal(out.count, 40);
    assert_near(out.unusual, 5, 0);
    assert_int_equal(out.unusual_period, 8);
    assert_near(out.unusual_ms, 1.04, 1e-9);
    assert_true(out.identical); /* the steady ones are */
    assert_near(out.d2h_bytes.most, 4, 0);
    done(t, s);
}

/* Longer without more work is what the times are to tell. */
static void a_slow_step_stays_steady(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 40; i++) {
        train_step(t);
        now += i % 4 == 3 ? 3000 : 0;
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_int_equal(out.count, 40);
    assert_near(out.unusual, 0, 0);
    assert_true(out.ms.most > out.ms.median + 2.9);
    done(t, s);
}

static void an_evaluation_is_no_step(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 30; i++) {
        train_step(t);
        for (unsigned k = 0; k < 5 && i % 10 == 9; k++) {
            fetch(t);
            forward(t);
            item(t);
        }
    }
    struct gwa_steps *s = find(t);
    unsigned others = 0;
    for (size_t i = 0; i < gwa_steps_count(s); i++)
        others += gwa_steps_list(s)[i].kind == GWA_STEP_OTHER;
    struct gwa_step_summary out = place(t, s, NAN);
    assert_int_equal(out.count, 30);
    assert_int_equal(others, 3);
    assert_near(out.launches.most, LAYERS + 3 + 2, 0);
    /* a step takes 130 us, an evaluation 5 x 80; the third comes after the last step */
    assert_near(out.other_pct, 100.0 * 2 * 400 / (30 * 130 + 2 * 400), 1e-9);
    done(t, s);
}

/* Three eager steps, a capture, and the replays that are the program. */
static void replays_after_a_warm_up_are_the_steps(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    struct gwt_graph_item item_of = {.kind = GWT_LAUNCH, .count = 12, .signature = K_F};
    t->graph_defs[7] = (struct gwt_def_graph){.items = 1, .exact = 1};
    t->graphs[7] = (struct gwt_graph_info){.graph = &t->graph_defs[7], .items = &item_of};
    for (unsigned i = 0; i < 3; i++)
        train_step(t);
    for (unsigned i = 0; i < 50; i++) {
        fetch(t);
        fake_call(t, MAIN, now + 10, now + 12, API_GRAPH, S_A)->arg = 7;
        now += 20;
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_int_equal(out.all, 50);
    assert_near(out.graph_launches.median, 1, 0);
    assert_near(out.launches.median, 0, 0);
    assert_near(out.kernels.median, 12, 0);
    assert_string_equal(out.found_by, "graph launches");
    done(t, s);
}

static void replay_graph(struct gwt_trace *t, unsigned graph)
{
    static struct gwt_graph_item item_of = {.kind = GWT_LAUNCH, .count = 12, .signature = K_F};
    t->graph_defs[graph] = (struct gwt_def_graph){.items = 1, .exact = 1};
    t->graphs[graph] = (struct gwt_graph_info){.graph = &t->graph_defs[graph], .items = &item_of};
    now += 10;
    fake_call(t, MAIN, now, now + 2, API_GRAPH, S_A)->arg = graph;
}

/* A replay is as much work as the kernels in it: few calls outweigh what comes between. */
static void replays_weigh_what_they_hold(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 60; i++) {
        for (unsigned k = 0; k < 4 && i % 10 == 0; k++)
            forward(t);
        replay_graph(t, 7);
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_int_equal(out.all, 60);
    assert_near(out.kernels.median, 12, 0);
    assert_true(out.confidence >= 0.5);
    assert_near(out.unusual, 5, 0); /* those that a prompt follows, the first prompt aside */
    done(t, s);
}

/* Layers that are a graph each: the step is what launches the same one again. */
static void graphs_of_layers_are_no_steps(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 40; i++)
        for (unsigned k = 0; k < 4; k++) {
            run(t, MAIN, K_F);
            replay_graph(t, 7 + k);
        }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_int_equal(out.all, 40);
    assert_near(out.graph_launches.median, 4, 0);
    done(t, s);
}

/* ---- what hides a step ------------------------------------------------------------------- */

/* More than all other calls of a step, and evenly, but between two backward passes. */
static void reads_between_backward_passes_are_no_steps(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 12; i++) {
        fetch(t);
        forward(t);
        backward(t);
        for (unsigned k = 0; k < 700; k++) { /* few steps in what is learnt from at first */
            run(t, MAIN, K_F);
            run(t, MAIN, K_SMALL);
            item(t);
        }
        run(t, MAIN, K_ADAM);
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_int_equal(out.all, 12);
    assert_near(out.launches.median, LAYERS + 3 + 1400 + 1, 0);
    assert_true(out.confidence >= 0.5);
    done(t, s);
}

/* The host takes part nowhere: the largest that recurs, not what the first tokens show. */
static void a_long_step_is_waited_for(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 8; i++) {
        for (unsigned k = 0; k < 4; k++)
            run(t, MAIN, K_BIG);
        for (unsigned k = 0; k < 600; k++)
            forward(t);
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_int_equal(out.all, 8);
    assert_near(out.launches.median, 4 + 600 * LAYERS, 0);
    assert_true(out.confidence < 0.5); /* nothing tells it from several */
    done(t, s);
}

/* A layer fetches its weights in three places; the embedding and the head fetch theirs. */
static void offloaded_layer(struct gwt_trace *t)
{
    for (unsigned k = 0; k < 3; k++) {
        fetch(t);
        run(t, MAIN, K_LAYERS + k);
        run(t, MAIN, K_B + k);
    }
}

/* Weights that come from the host, layer by layer: the host takes part in each of them, but a
 * step is what brings all. */
static void layers_that_fetch_are_no_steps(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 20; i++) {
        fetch(t);
        run(t, MAIN, K_F);
        for (unsigned k = 0; k < 12; k++)
            offloaded_layer(t);
        fetch(t);
        run(t, MAIN, K_BIG);
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_in_range(out.all, 19, 20);
    assert_near(out.launches.median, 2 + 12 * 6, 0);
    assert_true(out.confidence >= 0.5);
    done(t, s);
}

/* Each step fetches as often as such a layer, and every twelfth is looked at. */
static void looking_now_and_then_makes_no_step(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 240; i++) {
        offloaded_layer(t);
        if (i % 12 == 11) {
            run(t, MAIN, K_F);
            item(t);
        }
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_in_range(out.all, 239, 240);
    assert_near(out.launches.median, 6, 0);
    done(t, s);
}

/* No copy and no wait, but each turn repeats a part and no two turns differ, many times. */
static void turns_that_hold_a_loop_are_believed(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 60; i++) {
        run(t, MAIN, K_F);
        for (unsigned k = 0; k < 8; k++) {
            run(t, MAIN, K_LAYERS);
            run(t, MAIN, K_B);
        }
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_in_range(out.all, 59, 60);
    assert_near(out.launches.median, 17, 0);
    assert_true(out.confidence >= 0.5);
    done(t, s);
}

/* Other work in the midst of a loop: the loop goes on after it. */
static void an_interrupted_loop_goes_on(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned part = 0; part < 2; part++) {
        for (unsigned i = 0; i < 1500; i++) {
            fetch(t);
            forward(t);
            item(t);
        }
        for (unsigned i = 0; i < 3000 && part == 0; i++)
            run(t, MAIN, K_B + i % 2 + (i / 7) % 3);
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_in_range(out.all, 2999, 3000);
    assert_near(out.launches.median, LAYERS, 0);
    done(t, s);
}

/* Steps that do the same, but not as often. */
static void repeats_do_not_make_another_step(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 60; i++) {
        now += 50;
        for (unsigned k = 0; k < 2 + i % 2; k++)
            run(t, MAIN, K_F);
        for (unsigned k = 0; k < 2 + i % 2; k++)
            run(t, MAIN, K_B);
        run(t, MAIN, K_SMALL);
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_in_range(out.all, 59, 60);
    assert_near(out.launches.least, 5, 0);
    assert_near(out.launches.most, 7, 0);
    done(t, s);
}

/* ---- what varies -------------------------------------------------------------------------------
 */

static void what_varies_is_said(void **state)
{
    (void)state;
    for (unsigned which = 0; which < 3; which++) {
        struct gwt_trace *t = program();
        for (unsigned i = 0; i < 40; i++) {
            now += 10;
            copy(t, now, now + 1, S_A, GWT_H2D, 1 << 20 | (which == 1 ? i << 9 : 0), 0);
            forward(t);
            run(t, MAIN, which == 0 && i % 2 ? K_BIG : K_SMALL);
            run(t, MAIN, which == 2 && i % 2 ? K_F : K_F + 1);
            item(t);
        }
        static const char *const said[] = {"grid sizes", "copy sizes",
                                           "which kernels and calls run"};
        struct gwa_steps *s = find(t);
        struct gwa_step_summary out = place(t, s, NAN);
        assert_int_equal(out.all, 40);
        assert_false(out.identical);
        assert_string_equal(out.varies, said[which]);
        done(t, s);
    }
}

/* ---- asked for by name --------------------------------------------------------------------------
 */

static void steps_are_the_ranges_asked_for(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    struct gwt_event e;
    int64_t begins[5];
    for (unsigned i = 0; i < 5; i++) {
        begins[i] = now += 10;
        range_push(t, MAIN, now, R_STEP);
        for (unsigned k = 0; k <= i; k++)
            forward(t);
        range_push(t, MAIN, now += 1, R_OTHER);
        range_pop(t, MAIN, now += 1);
        range_pop(t, MAIN, now += 1);
    }
    struct gwa_steps *s = gwa_steps_new(t, "step", NULL);
    gwt_rewind(t);
    while (gwt_next(t, &e))
        assert_int_equal(gwa_steps_event(s, &e), 0);
    assert_int_equal(gwa_steps_find(s, SIZE_MAX), 0);
    assert_int_equal(gwa_steps_count(s), 5);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(gwa_steps_list(s)[i].from, begins[i] * US);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_string_equal(out.found_by, "range");
    assert_near(out.confidence, 1, 0);
    done(t, s);
}

/* ---- the window -------------------------------------------------------------------------------
 */

static struct gwt_trace *slow_start(void)
{
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 20; i++) {
        train_step(t);
        now += i < 2 ? 8000 : 0;
    }
    return t;
}

static void times_are_of_the_steady_steps(void **state)
{
    (void)state;
    struct gwt_trace *t = slow_start();
    struct gwa_process *p = analyse(t, NULL);
    const struct gwa_device *d = &p->devices[0];
    assert_int_equal(p->steps.all, 20);
    assert_int_equal(p->steps.count, 18);
    /* counts are of everything */
    assert_int_equal(p->launches.calls, 20 * (LAYERS + 3 + 2));
    /* the two slow ones last 8 ms and their own 0.13 ms more, from their first submission on */
    assert_near(d->window.excluded_s, 0.01626, 1e-9);
    double whole = d->window.wall_s + d->window.excluded_s;
    gwa_free(p);

    struct gwa_options options = {.whole = true};
    struct gwt_error error = {""};
    assert_int_equal(gwa_analyse(t, &options, &p, &error), 0);
    assert_near(p->devices[0].window.wall_s, whole, 1e-9);
    assert_true(isnan(p->devices[0].window.excluded_s));
    gwa_free(p);

    options = (struct gwa_options){.step_from = 1, .step_to = 3};
    assert_int_equal(gwa_analyse(t, &options, &p, &error), 0);
    assert_near(p->devices[0].window.wall_s, 0.00813 + 0.00013, 1e-9);
    gwa_free(p);

    options = (struct gwa_options){.step_from = 20, .step_to = 30};
    assert_int_equal(gwa_analyse(t, &options, &p, &error), -ENOENT);
    assert_null(p);
    free(t);
    now = 0;
}

/* Without a blocking call that empties the device, nothing is proven to be idle outside. */
static void provable_idle_is_of_the_window(void **state)
{
    (void)state;
    struct gwt_trace *t = slow_start();
    struct gwa_options options = {.whole = true};
    struct gwt_error error = {""};
    struct gwa_process *p = analyse(t, NULL), *all;
    assert_int_equal(gwa_analyse(t, &options, &all, &error), 0);
    double part = p->devices[0].time.provable_idle_s, whole = all->devices[0].time.provable_idle_s;
    /* after item(), 8 ms and the 5 us to the next call, twice */
    assert_near(whole - part, 2 * 0.008005, 1e-9);
    gwa_free(p);
    gwa_free(all);
    free(t);
    now = 0;
}

/* ---- hostile recordings -------------------------------------------------------------------------
 */

static void ids_and_times_are_not_believed(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    static const uint32_t ids[] = {0, 0xffffffff, 1u << 24, (1u << 29) + 1, FAKE_NAMES + 5};
    for (unsigned i = 0; i < 2000; i++) {
        struct gwt_event *e = fake_call(t, 1, i * 3, i * 3 + 1, 1 + i % 19, i % 8);
        e->arg = ids[i % 5];
        e->thread = ids[i / 7 % 5];
        e->flags = (uint16_t)(i * 2654435761u >> 7 & 0xf0f8);
        e->value = i % 11 ? UINT64_MAX - i : 0;
        if (i % 17 == 0)
            e->t0_ns = INT64_MIN + i;
        if (i % 19 == 0)
            e->t1_ns = INT64_MAX - i;
        if (i % 5 == 0) { /* and a loop among them */
            struct gwt_event *l = fake_call(t, 1, i * 3 + 1, i * 3 + 2, API_COPY_ASYNC, S_A);
            l->flags = GWT_D2H << GWT_F_SUB_SHIFT;
            l->value = UINT64_MAX;
            l->arg = 0xffffffff;
        }
    }
    struct gwa_steps *s = find(t);
    place(t, s, 1e300);
    for (size_t i = 0; i < gwa_steps_count(s); i++)
        assert_true(gwa_steps_list(s)[i].from <= gwa_steps_list(s)[i].to);
    done(t, s);
}

/* Without a loop the memory for what is not understood is bounded, and so is the work. */
static void memory_is_bounded(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    struct gwa_steps *s = gwa_steps_new(t, NULL, NULL);
    struct gwt_event e = {.kind = GWT_LAUNCH, .thread = MAIN};
    uint64_t x = 1;
    for (unsigned i = 0; i < 3 * GWA_LEARN_MOST; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        e.t0_ns = e.t1_ns = i;
        e.arg = 20 + (uint32_t)((x >> 33) % 40);
        assert_int_equal(gwa_steps_event(s, &e), 0);
        assert_true(s->tokens_count <= GWA_LEARN_MOST);
    }
    assert_int_equal(gwa_steps_find(s, SIZE_MAX), 0);
    assert_int_equal(gwa_steps_count(s), 0);
    done(t, s);
}

/* A loop that another follows: the longer one's steps count, the other's do not. */
static void the_longer_loop_counts(void **state)
{
    (void)state;
    struct gwt_trace *t = program();
    for (unsigned i = 0; i < 700; i++) { /* enough for the first rule to be learnt meanwhile */
        fetch(t);
        for (unsigned k = 0; k < 10; k++)
            run(t, MAIN, K_F + k);
        item(t);
    }
    for (unsigned i = 0; i < 2000; i++) {
        for (unsigned k = 0; k < 9; k++)
            run(t, MAIN, K_B + k);
        item(t);
    }
    struct gwa_steps *s = find(t);
    struct gwa_step_summary out = place(t, s, NAN);
    assert_in_range(out.all, 1999, 2001);
    assert_near(out.launches.median, 9, 0);
    assert_int_equal(gwa_steps_list(s)[0].kind, GWA_STEP_OTHER);
    done(t, s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_begins_with_its_first_submission),
        cmocka_unit_test(without_a_loop_there_are_no_steps),
        cmocka_unit_test(a_single_kernel_is_no_step),
        cmocka_unit_test(micro_batches_belong_to_one_step),
        cmocka_unit_test(collectives_of_micro_batches),
        cmocka_unit_test(layers_are_no_steps),
        cmocka_unit_test(what_failed_or_was_captured_is_not_there),
        cmocka_unit_test(another_thread_does_not_disturb),
        cmocka_unit_test(phases_and_recompute),
        cmocka_unit_test(what_is_alike_by_chance_is_no_recompute),
        cmocka_unit_test(slow_first_steps_are_warm_up),
        cmocka_unit_test(first_uses_are_warm_up),
        cmocka_unit_test(saving_now_and_then_is_unusual),
        cmocka_unit_test(a_slow_step_stays_steady),
        cmocka_unit_test(an_evaluation_is_no_step),
        cmocka_unit_test(replays_after_a_warm_up_are_the_steps),
        cmocka_unit_test(replays_weigh_what_they_hold),
        cmocka_unit_test(graphs_of_layers_are_no_steps),
        cmocka_unit_test(reads_between_backward_passes_are_no_steps),
        cmocka_unit_test(a_long_step_is_waited_for),
        cmocka_unit_test(an_interrupted_loop_goes_on),
        cmocka_unit_test(repeats_do_not_make_another_step),
        cmocka_unit_test(what_varies_is_said),
        cmocka_unit_test(steps_are_the_ranges_asked_for),
        cmocka_unit_test(times_are_of_the_steady_steps),
        cmocka_unit_test(provable_idle_is_of_the_window),
        cmocka_unit_test(ids_and_times_are_not_believed),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(the_longer_loop_counts),
        cmocka_unit_test(layers_that_fetch_are_no_steps),
        cmocka_unit_test(looking_now_and_then_makes_no_step),
        cmocka_unit_test(turns_that_hold_a_loop_are_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
