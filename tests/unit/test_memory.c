/* Device memory over steps: what is held, what a pass needs, what leaks, what room is left. */
/* clang-format off: cmocka.h needs these first */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "analysis/memory.h"
#include "analysis/memory_internal.h"

#include <stdlib.h>
#include <string.h>

#define MIB    (INT64_C(1) << 20)
#define GIB    (INT64_C(1) << 30)
#define STEPS  60
#define WARM   10 /* of them; not steady */
#define DEVICE (INT64_C(80) * GIB)

/* Steps as somebody else found them. */
struct gwa_steps {
    struct gwa_step list[STEPS];
    size_t count;
};

size_t gwa_steps_count(const struct gwa_steps *s)
{
    return s->count;
}

const struct gwa_step *gwa_steps_list(const struct gwa_steps *s)
{
    return s->list;
}

struct run {
    struct gwa_memory_use *use;
    struct gwa_steps steps;
    struct gwa_device device;
    struct gwa_place place;
    int64_t now, allocated, reserved;
};

static void begin(struct run *r)
{
    memset(r, 0, sizeof(*r));
    r->use = gwa_memory_new(NULL);
    assert_non_null(r->use);
    r->steps.count = STEPS;
    for (unsigned i = 0; i < STEPS; i++)
        r->steps.list[i].kind = i < WARM ? GWA_STEP_WARMUP : GWA_STEP_STEADY;
    r->device = (struct gwa_device){.index = 0, .memory_bytes = DEVICE};
    r->device.memory.peak_allocated_bytes = r->device.memory.peak_reserved_bytes = -1;
    r->place = (struct gwa_place){.step = UINT32_MAX};
}

static void event(struct run *r, struct gwt_event e)
{
    e.t0_ns = r->now;
    e.t1_ns = r->now += 1000000; /* each lasts a millisecond */
    assert_int_equal(gwa_memory_event(r->use, &e, &r->place), 0);
}

/* PyTorch's allocator takes (or gives back) so much. */
static void tensor(struct run *r, int64_t bytes)
{
    r->allocated += bytes;
    if (r->allocated > r->reserved)
        r->reserved = r->allocated;
    event(r, (struct gwt_event){.kind = GWT_ALLOCATOR,
                                .size = bytes,
                                .allocated = (uint64_t)r->allocated,
                                .reserved = (uint64_t)r->reserved});
}

static void call(struct run *r, unsigned kind, uint32_t address, uint64_t bytes, unsigned status)
{
    event(r, (struct gwt_event){.kind = (uint8_t)kind,
                                .level = GWT_LEVEL_RUNTIME,
                                .thread = 1,
                                .device = 0xff,
                                .status = (uint16_t)status,
                                .arg = address,
                                .value = bytes});
}

static void phase(struct run *r, unsigned step, unsigned phase)
{
    r->place = (struct gwa_place){.step = step, .phase = (uint8_t)phase};
}

static const struct gwa_device_memory *finish(struct run *r)
{
    assert_int_equal(gwa_memory_finish(r->use, &r->steps, &r->device), 0);
    return &r->device.memory;
}

static void end(struct run *r)
{
    gwa_memory_free(r->use);
}

static bool near(double a, double b, double by)
{
    if (fabs(a - b) <= by)
        return true;
    print_error("%.9g, not %.9g\n", a, b);
    return false;
}

/* Weights and optimizer 10 GiB; each pass takes 4 GiB of activations, gives them back; the
 * optimizer has 6 GiB of its own for a moment, which no batch makes larger. `kept`: per step. */
static void train(struct run *r, int64_t kept)
{
    tensor(r, 10 * GIB);
    for (unsigned i = 0; i < STEPS; i++) {
        phase(r, i, GWA_PHASE_FORWARD);
        tensor(r, 3 * GIB);
        tensor(r, GIB);
        phase(r, i, GWA_PHASE_BACKWARD);
        tensor(r, -4 * GIB + (i % 2 ? 512 : 0)); /* half a KiB that comes and goes */
        phase(r, i, GWA_PHASE_OPTIMIZER);
        tensor(r, 6 * GIB);
        tensor(r, -6 * GIB - (i % 2 ? 512 : 0));
        tensor(r, kept);
    }
}

/* A pool that holds a quarter more than its tensors at most does so at a larger batch, too: of
 * 79.5 GiB 63.6 are for tensors, and 14 of them are taken in the forward pass. */
static void a_pool_with_holes(void **state)
{
    struct run r;
    (void)state;
    begin(&r);
    r.reserved = 20 * GIB;
    train(&r, 0);
    const struct gwa_device_memory *m = finish(&r);
    assert_true(near(m->batch_multiplier, 1 + 0.9 * (79.5 * 16 / 20 - 14) / 4, 1e-6));
    end(&r);
}

static void footprint_and_room(void **state)
{
    struct run r;
    (void)state;
    begin(&r);
    train(&r, 0);
    const struct gwa_device_memory *m = finish(&r);
    assert_true(m->pytorch);
    assert_int_equal(m->baseline_bytes, 10 * GIB);
    assert_int_equal(m->activation_bytes, 4 * GIB);
    /* reserved at most: the optimizer's moment, with that half KiB */
    assert_int_equal(m->used_bytes, 16 * GIB + 512);
    /* 80 GiB less what is in use in the forward pass, less half a GiB that a context takes */
    assert_int_equal(m->headroom_bytes, 66 * GIB - GIB / 2);
    assert_true(m->from_reserved);
    assert_true(near(m->batch_multiplier, 1 + 0.9 * 65.5 / 4, 1e-6));
    assert_true(near(m->growth_bytes_per_step, 0, 0));
    assert_true(isnan(m->steps_to_full));
    end(&r);
}

/* What the driver answers, when it is asked. */
static void is_free(struct run *r, int64_t bytes)
{
    event(r, (struct gwt_event){.kind = GWT_FREE_MEMORY, .value = (uint64_t)bytes});
}

static void others_leave_less(void **state)
{
    struct run r;
    (void)state;
    begin(&r);
    is_free(&r, 30 * GIB); /* nothing is reserved yet */
    train(&r, 0);
    is_free(&r, 12 * GIB); /* with the 16 GiB and half a KiB of the pool: a bit less */
    tensor(&r, 0);
    const struct gwa_device_memory *m = finish(&r);
    assert_false(m->from_reserved);
    assert_int_equal(m->capacity_bytes, 28 * GIB + 512);
    /* 14 GiB are allocated in the forward pass at most */
    assert_int_equal(m->headroom_bytes, 14 * GIB + 512);
    assert_true(near(m->batch_multiplier, 1 + 0.9 * 14 / 4, 1e-6));
    end(&r);
}

static void free_while_the_pool_grows(void **state)
{
    struct run r;
    (void)state;
    begin(&r);
    tensor(&r, 4 * GIB);
    is_free(&r, 20 * GIB); /* the driver knows of the next 6 GiB already */
    tensor(&r, 6 * GIB);
    is_free(&r, 21 * GIB);
    const struct gwa_device_memory *m = finish(&r);
    assert_int_equal(m->capacity_bytes, 30 * GIB);
    end(&r);
}

static void absurd_free_memory(void **state)
{
    struct run r;
    (void)state;
    begin(&r);
    is_free(&r, -1);
    event(&r, (struct gwt_event){.kind = GWT_FREE_MEMORY, .arg = 0xff, .value = 1});
    event(&r, (struct gwt_event){.kind = GWT_FREE_MEMORY, .arg = UINT32_MAX, .value = 1});
    train(&r, 0);
    assert_true(finish(&r)->from_reserved);
    end(&r);
}

static void reserved_but_unused_is_room(void **state)
{
    struct run r;
    (void)state;
    begin(&r);
    phase(&r, 0, GWA_PHASE_FORWARD); /* once, in the warm-up: its blocks stay reserved */
    tensor(&r, 40 * GIB);
    tensor(&r, -40 * GIB);
    train(&r, 0);
    const struct gwa_device_memory *m = finish(&r);
    assert_int_equal(m->used_bytes, 40 * GIB);
    /* 26 of the 40 GiB are not in use when the forward pass needs most */
    assert_int_equal(m->headroom_bytes, 66 * GIB - GIB / 2);
    end(&r);
}

static void growth_is_found(void **state)
{
    struct run r;
    (void)state;
    begin(&r);
    train(&r, 7 * MIB);
    const struct gwa_device_memory *m = finish(&r);
    assert_true(near(m->growth_bytes_per_step, 7.0 * MIB, 0.01 * MIB));
    /* until what the optimizer's moment leaves is gone: 80 - 0.5 - 16 GiB and what was kept */
    assert_true(near(m->steps_to_full, (63.5 * 1024 - 7 * (STEPS - 1)) / 7, 1));
    end(&r);
}

/* What is neither: a cache that fills in the warm-up or at once, noise, a list that is emptied. */
static void scatter_is_no_growth(void **state)
{
    struct run r;
    unsigned noise = 12345;
    (void)state;
    for (unsigned shape = 0; shape < 4; shape++) {
        int64_t kept = 0;
        begin(&r);
        tensor(&r, 10 * GIB);
        for (unsigned i = 0; i < STEPS; i++) {
            int64_t extra = 0;
            noise = noise * 1664525u + 1013904223u;
            if (shape == 0)
                extra = i == 30 ? GIB : 0;
            else if (shape == 1)
                extra = i < WARM ? 100 * MIB : 0;
            else if (shape == 2) /* two steps up, one in each half */
                extra = i == 22 || i == 47 ? GIB : 0;
            else /* sawtooth of ten steps */
                extra = i % 10 == 9 ? -9 * 50 * MIB : 50 * MIB;
            phase(&r, i, GWA_PHASE_FORWARD);
            tensor(&r, 2 * GIB + (int64_t)(noise >> 12 & 0xffe00));
            tensor(&r,
                   -(r.allocated - 10 * GIB - kept)); /* back to the weights, and what is kept */
            kept += extra;
            tensor(&r, extra);
            if (shape < 3)
                tensor(&r, (int64_t)(noise >> 20) * 512);
        }
        assert_true(near(finish(&r)->growth_bytes_per_step, 0, 0));
        end(&r);
    }
}

/* Growth stands out of noise that is larger than it in any one step. */
static void growth_within_noise(void **state)
{
    struct gwa_trend_point p[200];
    struct gwa_trend t;
    unsigned noise = 7;
    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        noise = noise * 1664525u + 1013904223u;
        p[i] = (struct gwa_trend_point){.x = i, .y = 1e9 + 1e6 * i + 1e7 * (noise >> 24) / 256.0};
    }
    assert_int_equal(gwa_trend(p, 200, &t), 0);
    assert_true(near(t.slope, 1e6, 0.1e6));
}

static void trend_of_few_and_many(void **state)
{
    static struct gwa_trend_point p[5000];
    struct gwa_trend t;
    (void)state;
    assert_int_equal(gwa_trend(p, 0, &t), 0);
    assert_true(isnan(t.slope) && isnan(t.median));
    for (unsigned i = 0; i < 5000; i++)
        p[i] = (struct gwa_trend_point){.x = i, .y = 3.0 * i};
    assert_int_equal(gwa_trend(p, 3, &t), 0);
    assert_true(isnan(t.slope));
    for (unsigned i = 0; i < 5000; i++)
        p[i] = (struct gwa_trend_point){.x = i, .y = 3.0 * i};
    assert_int_equal(gwa_trend(p, 5000, &t), 0); /* thinned */
    assert_true(near(t.slope, 3, 1e-9));
}

static void retries_and_churn(void **state)
{
    struct run r;
    (void)state;
    begin(&r);
    tensor(&r, GIB);
    for (unsigned i = 0; i < STEPS; i++) {
        phase(&r, i, GWA_PHASE_FORWARD);
        call(&r, GWT_ALLOC, 7, 100 * MIB, 0);
        call(&r, GWT_HOST_ALLOC, 9, MIB, 0);
        if (i % 2 == 0) { /* fails, gives back, succeeds */
            call(&r, GWT_ALLOC, 0, 2 * GIB, 2);
            call(&r, GWT_FREE, 7, 0, 0);
            call(&r, GWT_ALLOC, 8, 2 * GIB, 0);
            call(&r, GWT_FREE, 8, 0, 0);
        } else {
            call(&r, GWT_FREE, 7, 0, 0);
        }
        tensor(&r, MIB);
        tensor(&r, -MIB);
    }
    phase(&r, UINT32_MAX, GWA_PHASE_OTHER);
    /* out of memory for good: the program goes on with something smaller */
    call(&r, GWT_ALLOC, 0, 90 * GIB, 2);
    call(&r, GWT_ALLOC, 11, MIB, 0);
    /* another error is no retry */
    call(&r, GWT_ALLOC, 0, GIB, 1);
    call(&r, GWT_ALLOC, 12, GIB, 0);
    const struct gwa_device_memory *m = finish(&r);
    assert_int_equal(m->retries, STEPS / 2);
    assert_true(near(m->retry_ms, 3.0 * STEPS / 2, 1e-6)); /* three calls of 1 ms each */
    assert_true(near(m->allocs_per_step, 1.5, 1e-9));
    assert_true(near(m->frees_per_step, 1.5, 1e-9));
    assert_true(near(m->host_allocs_per_step, 1, 1e-9));
    /* 5 calls of 1 ms that succeeded, and 3 */
    assert_true(near(m->alloc_ms_per_step, 4, 1e-5));
    end(&r);
}

/* Without PyTorch the program's own allocations stand for what is held. */
static void plain_allocations(void **state)
{
    struct run r;
    (void)state;
    begin(&r);
    call(&r, GWT_ALLOC, 1, 8 * GIB, 0);
    is_free(&r, 20 * GIB);
    for (unsigned i = 0; i < STEPS; i++) {
        phase(&r, i, GWA_PHASE_OTHER);
        call(&r, GWT_ALLOC, 2, 2 * GIB, 0);
        call(&r, GWT_FREE, 2, 0, 0);
        call(&r, GWT_FREE, 99, 0, 0); /* whose allocation was not seen */
        call(&r, GWT_ALLOC, 1000 + i, MIB, 0);
    }
    const struct gwa_device_memory *m = finish(&r);
    assert_false(m->pytorch);
    assert_int_equal(m->activation_bytes, 2 * GIB);
    assert_true(near(m->growth_bytes_per_step, MIB, 1));
    assert_int_equal(m->used_bytes, 10 * GIB + (STEPS - 1) * MIB);
    /* when the driver was asked the program held 8 GiB, or 10: the next call may have been first */
    assert_int_equal(m->capacity_bytes, 30 * GIB);
    assert_int_equal(m->headroom_bytes, 20 * GIB - (STEPS - 1) * MIB);
    end(&r);

    /* physical memory that no address stands for: nothing can be said of what is held */
    begin(&r);
    call(&r, GWT_ALLOC, 0, 8 * GIB, 0);
    m = finish(&r);
    assert_int_equal(m->used_bytes, -1);
    assert_true(isnan(m->batch_multiplier));
    end(&r);
}

static void what_is_not_known(void **state)
{
    struct run r;
    (void)state;
    begin(&r);
    r.steps.count = 0; /* none found */
    tensor(&r, GIB);
    const struct gwa_device_memory *m = finish(&r);
    assert_int_equal(m->baseline_bytes, -1);
    assert_int_equal(m->activation_bytes, -1);
    assert_true(isnan(m->batch_multiplier) && isnan(m->growth_bytes_per_step));
    assert_true(isnan(m->allocs_per_step));
    assert_int_equal(m->used_bytes, GIB);
    end(&r);

    begin(&r); /* nothing at all */
    m = finish(&r);
    assert_int_equal(m->used_bytes, -1);
    assert_int_equal(m->headroom_bytes, -1);
    end(&r);

    begin(&r); /* activations inside graphs are not reported */
    train(&r, 0);
    event(&r, (struct gwt_event){.kind = GWT_GRAPH_LAUNCH, .level = GWT_LEVEL_RUNTIME});
    assert_true(isnan(finish(&r)->batch_multiplier));
    end(&r);
}

/* Ids, sizes and steps from a damaged file. */
static void hostile(void **state)
{
    struct run r;
    (void)state;
    begin(&r);
    event(&r, (struct gwt_event){.kind = GWT_ALLOCATOR, .allocated = UINT64_MAX, .reserved = 1});
    phase(&r, GWA_STEPS_MAX + 5, 200);
    event(&r, (struct gwt_event){.kind = GWT_ALLOCATOR, .device = 0xff, .allocated = INT64_MAX});
    for (uint32_t i = 1; i < 100; i++)
        call(&r, GWT_ALLOC, i, UINT64_MAX - i, 0);
    call(&r, GWT_ALLOC, 5, 4096, 0);
    phase(&r, STEPS + 3, GWA_PHASE_FORWARD); /* beyond the list */
    tensor(&r, 512);
    r.device.memory_bytes = UINT64_MAX;
    finish(&r);
    end(&r);
}

/* The table of live blocks against a plain array. */
static void live_blocks(void **state)
{
    struct gwa_live l = {0};
    static uint64_t size[5000];
    uint64_t sum = 0;
    unsigned x = 1;
    (void)state;
    for (unsigned i = 0; i < 200000; i++) {
        x = x * 1664525u + 1013904223u;
        uint32_t a = 1 + (x >> 8) % 4999;
        if (x & 1 << 30) {
            gwa_live_remove(&l, a * 977);
            sum -= size[a];
            size[a] = 0;
        } else {
            assert_int_equal(gwa_live_add(&l, a * 977, x), 0);
            sum += x - size[a];
            size[a] = x;
        }
        assert_true(l.bytes == sum);
    }
    gwa_live_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(footprint_and_room),
        cmocka_unit_test(a_pool_with_holes),
        cmocka_unit_test(reserved_but_unused_is_room),
        cmocka_unit_test(growth_is_found),
        cmocka_unit_test(scatter_is_no_growth),
        cmocka_unit_test(growth_within_noise),
        cmocka_unit_test(trend_of_few_and_many),
        cmocka_unit_test(retries_and_churn),
        cmocka_unit_test(plain_allocations),
        cmocka_unit_test(what_is_not_known),
        cmocka_unit_test(hostile),
        cmocka_unit_test(live_blocks),
        cmocka_unit_test(others_leave_less),
        cmocka_unit_test(absurd_free_memory),
        cmocka_unit_test(free_while_the_pool_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
