/* What the sampler believes of a stream: busy or idle, and what proves it wrong. */
#include "capture/ahead.c"
#include "capture/sampler.c"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct gwt_ring_header header;
struct gwt_ring_header *gw_header = &header;
uint32_t gw_odd, gw_recording = 1, gw_clock = GWT_CLOCK_MONOTONIC;
struct gw_options gw_options = {.timing_pct = 100};
void *gw_real[GW_API_COUNT];
struct gw_helpers gw_driver;
__thread struct gw_local gw_local __attribute__((tls_model("initial-exec")));

static uint64_t now_ns;
static uint64_t clock_now(void)
{
    return now_ns;
}
uint64_t (*gw_clock_test)(void) = clock_now;

uint16_t gw_stream_of(struct gw_thread *t, const struct gw_frame *f)
{
    (void)t;
    return (uint16_t)(uintptr_t)f->stream;
}
uint32_t gw_signature_cached(struct gw_thread *t, const struct gw_shape *s)
{
    (void)t, (void)s;
    return 7;
}
uint32_t gw_signature_slow(struct gw_thread *t, const struct gw_frame *f)
{
    (void)t, (void)f;
    return 7;
}
bool gw_signature_is_comm(uint32_t id)
{
    (void)id;
    return false;
}
bool gw_function_is_known(const void *handle)
{
    (void)handle;
    return true;
}
uint32_t gw_graph_id(const void *exec, uint16_t *flags)
{
    (void)exec, (void)flags;
    return 1;
}
bool gw_user_times(uint16_t stream, uint64_t now, uint64_t hold)
{
    (void)stream, (void)now, (void)hold;
    return false;
}
void gw_user_timing_reset(void)
{
}

/* ---- a device ------------------------------------------------------------------------- */

static CUresult answer; /* to whether the first event is done */
static unsigned spacers, selftimes;

static CUresult get_current(CUcontext *out)
{
    *out = gw_pool.ctx;
    return 0;
}
static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
    (void)mode;
    return 0;
}
static CUresult query(CUevent e)
{
    (void)e;
    return answer;
}
static CUresult record(CUevent e, CUstream s)
{
    (void)e, (void)s;
    return 0;
}
static CUresult launch_kernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                              unsigned by, unsigned bz, unsigned shared, CUstream s, void **args,
                              void **extra)
{
    (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)s;
    (void)args, (void)extra;
    if (f == gw_pool.selftime)
        selftimes++;
    else
        spacers++;
    return 0;
}

#define STREAM 3

static int fresh(void **state)
{
    static struct gw_thread thread = {.id = 1};
    static uint32_t word;
    (void)state;
    gw_sampler_reset();
    gw_self = &thread;
    now_ns = 1000000000;
    spacers = selftimes = 0;
    gw_pool.selftime = (CUfunction)&selftimes;
    gw_driver.cuCtxGetCurrent = get_current;
    gw_driver.cuThreadExchangeStreamCaptureMode = exchange_mode;
    gw_real[GW_API_cuEventQuery] = (void *)query;
    gw_real[GW_API_cuEventRecord] = (void *)record;
    gw_real[GW_API_cuLaunchKernel] = (void *)launch_kernel;
    gw_pool.word = &word;
    gw_pool.ctx = (CUcontext)&thread;
    return 0;
}

static struct gw_frame copy_of(uint64_t bytes)
{
    return (struct gw_frame){.kind = GWT_COPY,
                             .flags = GWT_D2D << GWT_F_SUB_SHIFT,
                             .stream = (const void *)(uintptr_t)STREAM,
                             .value = bytes,
                             .arg = 1};
}

/* So many copies, 1 us apart: far more than what of each is believed before any was timed. */
static void give(unsigned copies)
{
    for (unsigned i = 0; i < copies; i++) {
        struct gw_frame f = copy_of(1 << 20);
        now_ns += 1000;
        gw_stream_given(STREAM, &f, 1, now_ns);
    }
}

/* A copy that is timed. post: why that is void */
static unsigned timed_copy(void)
{
    struct gw_frame f = copy_of(1 << 20);
    now_ns += APART_NS + APART_MORE_NS;
    int index = gw_sample_begin(&f);
    assert_true(index >= 0);
    gw_sample_end(index, 0);
    gw_stream_given(STREAM, &f, 1, now_ns);
    unsigned reason = gw_pool.pairs[index].reason;
    gw_pool.pairs[index].state = GW_PAIR_FREE;
    return reason;
}

/* Nothing was ever learnt of copies, which end sooner than they are believed to: late once, and
 * from then on the stream is known to be idle. */
static void late_is_idle(void **state)
{
    (void)state;
    answer = 0;
    give(800);
    assert_int_equal(timed_copy(), GWT_VOID_LATE);
    assert_int_equal(spacers, 0);
    assert_int_equal(timed_copy(), GWT_VOID_NONE);
    assert_int_equal(spacers, 1);
}

static void waiting_is_busy(void **state)
{
    (void)state;
    answer = 600;
    give(800);
    assert_int_equal(timed_copy(), GWT_VOID_NONE);
    assert_int_equal(timed_copy(), GWT_VOID_NONE);
    assert_int_equal(spacers, 0);
}

/* A kernel begins when its stream is free, lasts as its samples did, and is over once the program
 * waited for the device, whatever stream that call named. */
static void kernels_in_a_stream(void **state)
{
    const uint64_t t = 5000000;
    (void)state;
    gw_kernel_given(STREAM, 7, t);
    assert_int_equal(gw_ahead.streams[STREAM].until, t + BEGINS_NS + UNKNOWN_NS);
    gw_kernel_lasts(7, 90000);
    gw_kernel_given(STREAM, 7, t);
    assert_int_equal(gw_ahead.streams[STREAM].until, t + BEGINS_NS + UNKNOWN_NS + 90000);
    gw_kernel_lasts(GW_KERNELS, 1); /* no such signature */
    gw_kernel_given(STREAM + 1, GW_KERNELS, t);
    assert_int_equal(gw_ahead.streams[STREAM + 1].until, t + BEGINS_NS + UNKNOWN_NS);
    assert_int_equal(gw_ahead.all, gw_ahead.streams[STREAM].until);
    gw_stream_awaited(0, GWT_SCOPE_DEVICE, t + 10000);
    gw_kernel_given(STREAM, 7, t + 11000);
    assert_int_equal(gw_ahead.streams[STREAM].until, t + 11000 + BEGINS_NS + 90000);
}

/* What was lent at the start is paid back by one part in five of what comes in; what was spent by
 * other threads, and the host's time beyond the device's, is taken off. */
static void budget(void **state)
{
    const uint64_t second = 1000000000;
    uint64_t now = 7 * second;
    (void)state;
    gw_sampler_budget(); /* 100 % of a second */
    gw_spending = 5000000;
    assert_true(afford(now, TOKENS_NS));
    assert_false(afford(now, 1));
    now += second;
    assert_false(afford(now, 4000001));
    assert_true(afford(now, 4000000));
    gw_sampler_spent(3000000);
    now += second;
    assert_false(afford(now, 1000001));
    assert_true(afford(now, 1000000));
    now += 100 * second; /* all is paid back; no more is saved up than at the start */
    assert_true(afford(now, TOKENS_NS));
    now += second;
    assert_false(afford(now, 5000001));
    assert_true(afford(now, 5000000));
}

/* A kernel that is timed, or before which ours is. post: whether ours was; *reason: why it is void
 */
static bool timed_kernel(unsigned *reason)
{
    struct gw_frame f = {.kind = GWT_LAUNCH, .stream = (const void *)(uintptr_t)STREAM};
    unsigned before = selftimes;
    int index = -1;
    for (int i = 0; i < 10000 && index < 0; i++) { /* the price decides */
        now_ns += APART_NS + APART_MORE_NS;
        index = gw_sample_begin(&f);
    }
    assert_true(index >= 0);
    assert_int_equal(gw_pool.pairs[index].calibrates, selftimes != before);
    gw_sample_end(index, 0);
    *reason = gw_pool.pairs[index].reason;
    gw_pool.pairs[index].state = GW_PAIR_FREE;
    return selftimes != before;
}

/* Of pairs around kernels one in three is around ours instead until there are some, then one in
 * twelve; they cost more, and count for no signature. */
static void some_pairs_calibrate(void **state)
{
    unsigned first = 0, later = 0, reason;
    (void)state;
    answer = 600;
    for (unsigned i = 0; i < 30; i++)
        first += timed_kernel(&reason);
    while (selftimes < AT_FIRST)
        timed_kernel(&reason);
    for (unsigned i = 0; i < 600; i++)
        later += timed_kernel(&reason);
    assert_in_range(first, 4, 16);
    assert_in_range(later, 25, 80);
    assert_int_equal(gw_seen_of(GWT_SAMPLE_KERNEL, 7, 0)->taken > 500, 1);
    struct gw_pair pair = {.calibrates = true};
    assert_int_equal(cost_of(&pair, 0), PAIR_COST_NS + GW_SELFTIME_NS + SELFTIME_COST_NS);
}

/* A stream that had nothing to do says nothing of a busy one, before our kernel or the program's.
 */
static void late_calibrations_are_void(void **state)
{
    unsigned ours = 0, reason;
    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        answer = 0;
        gw_kernel_lasts(7, 10000000);
        gw_kernel_given(STREAM, 7, now_ns + APART_NS + APART_MORE_NS); /* believed to be busy */
        unsigned spaced = spacers;
        if (timed_kernel(&reason) && spacers == spaced) {
            assert_int_equal(reason, GWT_VOID_LATE);
            ours++;
        }
    }
    assert_in_range(ours, 5, 200);
}

/* Three samples that agree are no proof: samples of the function's other shapes scatter by 20 %.
 * Where few of those are known, or it has no function, a signature's own say what there is. */
static void few_that_agree_prove_nothing(void **state)
{
    struct gw_seen s = {.n = 3, .mean_ns = 10000, .m2 = 0};
    struct gw_seen function = {.n = 20, .mean_ns = 40000, .m2 = 1e12f};
    (void)state;
    assert_float_equal(variance_of(&s, NULL), 250 * 250, 1);
    function.freedom = 3, function.within = 3 * 0.04f;
    assert_float_equal(variance_of(&s, &function), 250 * 250, 1);
    function.freedom = 8, function.within = 8 * 0.04f;
    assert_float_equal(variance_of(&s, &function), 4 * 0.04 * 1e8 / 6, 100);
    s.n = 101, s.m2 = 100 * 300 * 300;
    assert_float_equal(variance_of(&s, &function), (100 * 9e4 + 4 * 0.04 * 1e8) / 104, 100);
}

/* Of a function that is well known a shape that has no sample is taken four times as often as one
 * that has; which in a short run was never timed, else. */
static void a_first_sample_is_worth_more(void **state)
{
    struct gw_seen s = {0};
    struct gw_seen function = {.n = 101, .mean_ns = 10000, .m2 = 100 * 500.0f * 500.0f};
    unsigned taken[2] = {0};
    (void)state;
    price_ns = 10000;
    for (s.taken = 0; s.taken < 2; s.taken++)
        for (unsigned i = 0; i < 20000; i++)
            taken[s.taken] += worth(gw_self, &s, &function);
    assert_in_range(taken[0], 3700, 4300); /* 4 x 500 of 10,000 */
    assert_in_range(taken[1], 850, 1150);
}

/* Launches 20 us apart, whose duration scatters: samples in each of so many tenths of a second. */
static void launch_for(unsigned tenths, unsigned *samples)
{
    struct gw_frame f = {.kind = GWT_LAUNCH, .stream = (const void *)(uintptr_t)STREAM};
    struct gw_seen *s = gw_seen_of(GWT_SAMPLE_KERNEL, 7, 0);
    float m2 = 99 * 400.0f * 400.0f;
    gw_store_relaxed(&s->n, 100);
    memcpy(&s->m2, &m2, sizeof(m2));
    for (unsigned i = 0; i < tenths; i++) {
        samples[i] = 0;
        for (uint64_t end = now_ns + 100000000; now_ns < end; now_ns += 20000) {
            if (gw_self->countdown-- > 0)
                continue;
            int index = gw_sample_begin(&f);
            if (index < 0)
                continue;
            gw_sample_end(index, 0);
            gw_pool.pairs[index].state = GW_PAIR_FREE;
            samples[i]++;
        }
        gw_sampler_price(now_ns);
    }
}

/* However many there are at first, the budget is spent evenly then: by what was left of it alone,
 * half a second had 21 to 258. */
static void samples_are_spread(void **state)
{
    unsigned samples[200], least = UINT_MAX, most = 0, all = 0;
    (void)state;
    answer = 600;
    gw_spending = 5000000;
    gw_sample_every = 18;
    launch_for(200, samples);
    for (unsigned i = 50; i < 200; i += 5) {
        unsigned n = 0;
        for (unsigned k = i; k < i + 5; k++)
            n += samples[k];
        all += n;
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    assert_in_range(all, 3300, 3600);
    assert_in_range(most, least, 2 * least);
}

/* A driver that cannot say proves nothing. */
static void error_is_nothing(void **state)
{
    (void)state;
    answer = 719;
    give(800);
    assert_int_equal(timed_copy(), GWT_VOID_LATE);
    assert_int_equal(timed_copy(), GWT_VOID_LATE);
    assert_int_equal(spacers, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(late_is_idle, fresh),
        cmocka_unit_test_setup(waiting_is_busy, fresh),
        cmocka_unit_test_setup(error_is_nothing, fresh),
        cmocka_unit_test_setup(kernels_in_a_stream, fresh),
        cmocka_unit_test_setup(budget, fresh),
        cmocka_unit_test_setup(some_pairs_calibrate, fresh),
        cmocka_unit_test_setup(late_calibrations_are_void, fresh),
        cmocka_unit_test_setup(samples_are_spread, fresh),
        cmocka_unit_test_setup(few_that_agree_prove_nothing, fresh),
        cmocka_unit_test_setup(a_first_sample_is_worth_more, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
