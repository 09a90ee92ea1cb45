/* The short path of launches: wrappers as the call table makes them, around functions of the
 * test's. What it records must be what the long path records, and whatever is unusual must
 * take the long path. */
#include "capture/record.c"
#include "capture/wrap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "test_capture_fake.h"

static struct gwt_ring_header header;
struct gwt_ring_header *gw_header = &header;
static uint32_t alive = 1;
uint32_t *gw_alive = &alive;
uint32_t gw_state = GW_ACTIVE, gw_recording = 1;
uint32_t gw_clock = GWT_CLOCK_TSC;
struct gw_options gw_options;
pid_t gw_pid; /* another process */
uint64_t (*gw_clock_test)(void);
void *gw_real[GW_API_COUNT];
void *gw_real_runtime[GW_NODES][GW_API_COUNT];

static struct gwt_slot slot;
static struct gwt_record ring[16];
static struct gw_thread thread;
static unsigned signatures_asked, sections, samples;

bool gw_start(void)
{
    return true;
}
bool gw_driver_ready(void)
{
    return true;
}
void gw_after_fork(void)
{
    gw_self = gw_local.idle = NULL;
    gw_state = GW_INERT;
}
void gw_drain_kick(void)
{
}
struct gw_thread *gw_thread_get(void)
{
    return gw_self;
}
uint32_t gw_signature_slow(struct gw_thread *t, const struct gw_frame *f)
{
    (void)t, (void)f;
    return 100 + ++signatures_asked;
}
uint16_t gw_stream_slow(struct gw_thread *t, const struct gw_frame *f)
{
    (void)t;
    return (uint16_t)(7 + (uintptr_t)f->stream);
}
uint32_t gw_graph_id(const void *exec, uint16_t *flags)
{
    (void)flags;
    return exec ? 42 : 0;
}
bool gw_stream_captures(const void *stream, bool per_thread)
{
    (void)per_thread;
    return stream == (const void *)3;
}

uint32_t gw_timing;
uint64_t gw_awaited;
const void *gw_busy_stream;
int gw_sample_begin(struct gw_frame *f)
{
    (void)f;
    samples++;
    gw_self->countdown = 3;
    return -1;
}
void gw_sample_end(int index, int status)
{
    (void)index, (void)status;
    fail();
}
void gw_sample_foreign(const void *stream)
{
    (void)stream;
}
struct gw_ahead gw_ahead;
void gw_stream_given(uint16_t stream, const struct gw_frame *f, uint32_t arg, uint64_t t1)
{
    (void)stream, (void)f, (void)arg, (void)t1;
    fail(); /* a launch is told by gw_kernel_given() */
}
void gw_section_ends(struct gw_thread *t, struct gw_frame *f)
{
    (void)t, (void)f;
    sections++;
}
void gw_section_ended(struct gw_thread *t, uint64_t t0)
{
    (void)t, (void)t0;
}
void gw_section_begins(struct gw_thread *t, uint64_t t1)
{
    (void)t, (void)t1;
}

/* ---- the wrappers ------------------------------------------------------------------- */

#define LAUNCH_PARAMS                                                                              \
    (CUfunction func, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,             \
     unsigned bz, unsigned smem, CUstream stream, void **args, void **extra)
#define LAUNCH_ARGS (func, gx, gy, gz, bx, by, bz, smem, stream, args, extra)
GW_WRAP(driver_launch, CUresult, cuLaunchKernel, LAUNCH_PARAMS, LAUNCH_ARGS, LAUNCH,
        D_LAUNCH(func, gx, gy, gz, bx, by, bz, smem, stream), NOTHING, GWT_LEVEL_DRIVER, 0, 0,
        gw_real[GW_API_cuLaunchKernel], NULL, 100)
GW_WRAP(driver_coop, CUresult, cuLaunchCooperativeKernel, LAUNCH_PARAMS, LAUNCH_ARGS, LAUNCH,
        D_COOP(func, gx, gy, gz, bx, by, bz, smem, stream), NOTHING, GWT_LEVEL_DRIVER, 1, 0,
        gw_real[GW_API_cuLaunchCooperativeKernel], NULL, 100)
GW_WRAP(runtime_launch, cudaError_t, cudaLaunchKernel,
        (const void *func, dim3 grid, dim3 block, void **args, size_t smem, cudaStream_t stream),
        (func, grid, block, args, smem, stream), LAUNCH,
        D_LAUNCH_RT(func, grid, block, smem, stream), NOTHING, GWT_LEVEL_RUNTIME, 0, GW_NODE_13,
        gw_real_runtime[GW_NODE_13][GW_API_cudaLaunchKernel], NULL, 35)

static void *const handle = (void *)0x5000, *const other = (void *)0x6000;
static unsigned runs; /* of the real function */
static jmp_buf out;
static enum { RETURN, FAIL, LEAVE, TWICE, NOT_AT_ALL } behaviour;

static CUresult real_driver LAUNCH_PARAMS
{
    (void)gz, (void)bx, (void)by, (void)stream, (void)extra;
    runs++;
    /* What the program passed must arrive. */
    assert_true(func == (CUfunction)handle || func == (CUfunction)other);
    assert_int_equal(gx, 1);
    assert_int_equal(gy, 2);
    assert_int_equal(bz, 6);
    assert_int_equal(smem, 7);
    assert_ptr_equal(args, (void *)0x8);
    if (behaviour == LEAVE)
        longjmp(out, 1);
    return behaviour == FAIL ? 1 : 0;
}

static CUresult call_driver(void *func, CUstream stream)
{
    return driver_launch((CUfunction)func, 1, 2, 3, 4, 5, 6, 7, stream, (void **)0x8, NULL);
}

static cudaError_t real_runtime(const void *func, dim3 grid, dim3 block, void **args, size_t smem,
                                cudaStream_t stream)
{
    assert_int_equal(grid.z, 3);
    assert_int_equal(block.y, 5);
    assert_int_equal(smem, 7);
    assert_ptr_equal(args, (void *)0x8);
    if (behaviour == NOT_AT_ALL)
        return 0;
    if (behaviour == TWICE)
        call_driver((void *)func, (CUstream)stream);
    return (cudaError_t)call_driver((void *)func, (CUstream)stream);
}

static cudaError_t call_runtime(void *func, void *stream)
{
    return runtime_launch(func, (dim3){1, 2, 3}, (dim3){4, 5, 6}, (void **)0x8, 7,
                          (cudaStream_t)stream);
}

/* As one that returned a moment ago; and not at a t0 of which the driver's share is timed. */
static void ready(void)
{
    slot.returned = gw_counter();
    while ((gw_counter() >> 4 & 63) > 32 || (gw_counter() >> 4 & 63) == 0)
        ;
}

static int reset(void **state)
{
    (void)state;
    memset(&slot, 0, sizeof slot);
    memset(&thread, 0, sizeof thread);
    memset(&header, 0, sizeof header);
    memset(ring, 0, sizeof ring);
    thread.id = 1;
    thread.slot = &slot;
    thread.ring = ring;
    thread.mask = 15;
    thread.room = 16;
    gw_self = &thread;
    gw_local.idle = NULL;
    gw_top = NULL;
    gw_odd = gw_timing = 0;
    gw_real[GW_API_cuLaunchKernel] = gw_real[GW_API_cuLaunchCooperativeKernel] = real_driver;
    gw_real_runtime[GW_NODE_13][GW_API_cudaLaunchKernel] = real_runtime;
    signatures_asked = sections = samples = runs = 0;
    behaviour = RETURN;
    call_driver(handle, NULL); /* the long path, which learns signature and stream */
    assert_int_equal(slot.head, 1);
    assert_int_equal(signatures_asked, 1);
    assert_ptr_equal(gw_local.idle, &thread);
    sections = 0;
    return 0;
}

static bool asked_once(void)
{
    return signatures_asked == 1 && runs == 2 && slot.head == 2;
}

/* ---- tests ---------------------------------------------------------------------------- */

/* That the short path was taken shows in the thread's stream entry: what it says is believed. */
static void test_short_says_what_long_says(void **state)
{
    (void)state;
    ready();
    uint64_t before = slot.returned;
    thread.stream.id = 9;
    assert_int_equal(call_runtime(handle, NULL), 0);
    assert_true(asked_once());
    assert_int_equal(ring[1].stream, 9);
    assert_int_equal(ring[1].api, GW_API_cudaLaunchKernel);
    assert_int_equal(ring[1].flags, GWT_F_DRIVER);
    assert_int_equal(ring[1].arg, 101);
    assert_int_equal(ring[1].status, 0);
    if (ring[1].t0 >> 4 & 63) /* else, for all ready() did, the driver's share was timed */
        assert_int_equal(ring[1].value, 0);
    assert_int_equal(slot.returned, ring[1].t0 + ring[1].dur);
    assert_int_equal(slot.open_api, GW_API_cudaLaunchKernel);
    assert_int_equal(slot.open_t0, ring[1].t0);
    assert_null(gw_top);
    assert_ptr_equal(gw_local.idle, &thread);

    call_driver(handle, NULL);
    assert_int_equal(ring[2].stream, 9);
    assert_int_equal(ring[2].api, GW_API_cuLaunchKernel);
    assert_int_equal(ring[2].flags, 0);
    assert_int_equal(ring[2].arg, 101);
    assert_true(ring[2].t0 >= ring[1].t0 + ring[1].dur);
    assert_int_equal(signatures_asked, 1);
    /* on a machine that took that long between them, each began after a section */
    assert_int_equal(sections, (ring[1].t0 - before >= GW_SECTION_LEAST) +
                                   (ring[2].t0 - ring[1].t0 - ring[1].dur >= GW_SECTION_LEAST));
}

static void test_status_of_a_failed_launch(void **state)
{
    (void)state;
    behaviour = FAIL;
    ready();
    assert_int_equal(call_runtime(handle, NULL), 1);
    assert_true(asked_once());
    assert_int_equal(ring[1].status, 1);
    assert_int_equal(ring[1].arg, 101);
}

static void test_flags_of_the_driver_call(void **state)
{
    (void)state;
    driver_coop((CUfunction)handle, 1, 2, 3, 4, 5, 6, 7, NULL, (void **)0x8, NULL); /* learns */
    ready();
    driver_coop((CUfunction)handle, 1, 2, 3, 4, 5, 6, 7, NULL, (void **)0x8, NULL);
    assert_int_equal(signatures_asked, 1);
    assert_int_equal(ring[2].flags, GWT_F_COOP);
    assert_int_equal(ring[2].api, GW_API_cuLaunchCooperativeKernel);
}

static void test_what_is_new_is_learnt(void **state)
{
    (void)state;
    ready();
    call_runtime(other, NULL); /* a function */
    assert_int_equal(ring[1].arg, 102);
    assert_int_equal(ring[1].flags, GWT_F_DRIVER);
    call_runtime(handle, (void *)5); /* a stream */
    assert_int_equal(ring[2].stream, 12);
    assert_int_equal(ring[2].arg, 101);
    call_runtime(handle, NULL); /* the stream before it again */
    assert_int_equal(ring[3].stream, 7);
    gw_set_device(1); /* where the null stream is another */
    thread.streams[0].id = 1;
    call_runtime(handle, NULL);
    assert_int_equal(ring[4].stream, 7);
    assert_int_equal(thread.stream.device, 1);
    gw_set_device(0);
    gw_add_relaxed(&gw_names_epoch, 1);
    call_runtime(handle, NULL); /* the handle may be another function's */
    assert_int_equal(ring[5].arg, 103);
}

static void test_unusual_takes_the_long_path(void **state)
{
    (void)state;
    ready();
    thread.stream.id = 9;
    slot.returned = 1; /* long ago: a section ends */
    call_runtime(handle, NULL);
    assert_int_equal(sections, 1);
    assert_int_equal(slot.head, 2);

    gw_odd = GW_ODD_PAUSED;
    gw_recording = 0;
    call_runtime(handle, NULL);
    assert_int_equal(slot.head, 2);
    gw_recording = 1;

    gw_odd = GW_ODD_CAPTURE;
    thread.stream.which = UINT16_MAX;
    call_runtime(handle, (void *)3);
    assert_int_equal(slot.head, 3);
    assert_int_equal(ring[2].flags, GWT_F_DRIVER | GWT_F_CAPTURED);
    gw_odd = 0;

    behaviour = NOT_AT_ALL;
    ready();
    call_runtime(handle, (void *)3);
    assert_int_equal(ring[3].flags, GWT_F_HOLE);
    assert_int_equal(ring[3].arg, 0);
    assert_int_equal(ring[3].value, 0);
    assert_int_equal(ring[3].stream, 10);
    assert_int_equal(header.counters[GWT_C_HOLES], 1);

    behaviour = TWICE;
    ready();
    call_runtime(handle, (void *)3);
    assert_int_equal(slot.head, 6);
    assert_int_equal(ring[4].api, GW_API_cuLaunchKernel);
    assert_int_equal(ring[4].flags, GWT_F_NESTED);
    assert_int_equal(ring[5].flags, GWT_F_DRIVER);
}

static void test_candidates_for_timing_are_offered(void **state)
{
    (void)state;
    const uint64_t lasts = 1u << 31; /* longer than the test */
    gw_timing = 1;
    thread.countdown = 3;
    memset(&gw_ahead, 0, sizeof gw_ahead);
    gw_ahead.kernels[ring[0].arg] = (uint32_t)lasts;
    for (int i = 0; i < 8; i++) {
        ready();
        call_runtime(handle, NULL);
    }
    assert_int_equal(samples, 2); /* one in four */
    assert_int_equal(slot.head, 9);
    /* and of each the stream's prediction is told, from the first one's return */
    assert_int_equal(gw_ahead.streams[ring[1].stream].until - ring[1].t0 - ring[1].dur, 8 * lasts);
    assert_int_equal(gw_ahead.all, gw_ahead.streams[ring[1].stream].until);
}

static void test_full_ring(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        ready();
        call_runtime(handle, NULL);
    }
    assert_int_equal(slot.head, 16);
    assert_int_equal(header.counters[GWT_C_DROPPED], 5);
    slot.tail = 16;
    ready();
    call_runtime(handle, NULL);
    assert_int_equal(slot.head, 18);
    assert_int_equal(ring[0].api, GWT_API_PSEUDO + GWT_LOST);
    assert_int_equal(ring[0].value, 5);
}

/* Deeper in the stack than any call that the test makes afterwards. */
__attribute__((noinline)) static void call_deep(void)
{
    char *room = __builtin_alloca(8192);
    __asm__ volatile("" : : "r"(room) : "memory");
    call_runtime(handle, NULL);
    __asm__ volatile("" : : "r"(room) : "memory");
}

static void test_left_without_a_return(void **state)
{
    (void)state;
    behaviour = LEAVE;
    ready();
    if (!setjmp(out))
        call_deep();
    assert_null(gw_local.idle);
    behaviour = RETURN;
    call_driver(handle, NULL);
    assert_int_equal(slot.head, 3);
    assert_int_equal(ring[1].api, GW_API_cudaLaunchKernel);
    assert_int_equal(ring[1].flags, GWT_F_UNWOUND);
    assert_int_equal(ring[2].api, GW_API_cuLaunchKernel);
    assert_int_equal(ring[2].flags, 0);
    assert_ptr_equal(gw_local.idle, &thread);
}

/* A signal handler's call between the first and the last store of a record. */
static void test_handler_inside_a_record(void **state)
{
    (void)state;
    gw_local.idle = NULL;
    gw_top = (struct gw_frame *)&thread;
    ready();
    assert_int_equal(call_runtime(handle, NULL), 0);
    assert_int_equal(slot.head, 1);
    assert_int_equal(runs, 2);
    assert_true(header.counters[GWT_C_NESTED_SIGNAL] >= 1);
    assert_null(gw_local.idle);
}

/* A child that no handler told of its birth: what the thread had is zeros. */
static void test_after_a_raw_clone(void **state)
{
    (void)state;
    memset(&thread, 0, sizeof thread);
    alive = 0;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(call_driver(handle, NULL), 0);
        assert_int_equal(call_runtime(handle, NULL), 0);
    }
    assert_int_equal(runs, 5);
    assert_int_equal(slot.head, 1);
    alive = 1;
    gw_state = GW_ACTIVE;
}

#define TEST(name) cmocka_unit_test_setup(name, reset)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_short_says_what_long_says),
        TEST(test_status_of_a_failed_launch),
        TEST(test_flags_of_the_driver_call),
        TEST(test_what_is_new_is_learnt),
        TEST(test_unusual_takes_the_long_path),
        TEST(test_candidates_for_timing_are_offered),
        TEST(test_full_ring),
        TEST(test_left_without_a_return),
        TEST(test_handler_inside_a_record),
        TEST(test_after_a_raw_clone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
