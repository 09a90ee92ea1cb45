/* Host sections: which stretches of a thread's time become one, and where their clocks come from.
 * Ticks, CPU clocks and context switches are the test's own, so right values are what it set. */
#include <sys/resource.h>
#include <time.h>

static int fake_clock(clockid_t id, struct timespec *out);
static int fake_usage(int who, struct rusage *out);
#define clock_gettime fake_clock
#define getrusage     fake_usage
#include "capture/section.c"
#include "capture/record.c"
#undef clock_gettime
#undef getrusage

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define MS 1000000ull

static struct gwt_ring_header header;
struct gwt_ring_header *gw_header = &header;
static uint32_t alive = 1;
uint32_t *gw_alive = &alive;
uint32_t gw_state = GW_ACTIVE, gw_recording = 1;
uint32_t gw_clock = GWT_CLOCK_MONOTONIC;
struct gw_options gw_options;
static uint64_t now, cpu, process;
static long voluntary, involuntary;
static unsigned readings;

static uint64_t tick(void)
{
    return now += 10;
}
uint64_t (*gw_clock_test)(void) = tick;
uint64_t (*gw_cpu_test)(int tid);
void gw_clock_triple(struct gwt_triple *out)
{
    *out = (struct gwt_triple){0};
    fail(); /* ticks are ns */
}

static int fake_clock(clockid_t id, struct timespec *out)
{
    clockid_t own = (clockid_t)(~(uint32_t)gettid() << 3 | 6);
    *out = (struct timespec){0};
    if (id != CLOCK_THREAD_CPUTIME_ID && id != CLOCK_PROCESS_CPUTIME_ID && id != own)
        return -1; /* a thread that is gone */
    uint64_t ns = id == CLOCK_PROCESS_CPUTIME_ID ? process : cpu;
    *out =
        (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    errno = EDOM; /* whatever happens to it must not be seen */
    return 0;
}

static int fake_usage(int who, struct rusage *out)
{
    assert_int_equal(who, RUSAGE_THREAD);
    memset(out, 0, sizeof *out);
    out->ru_nvcsw = voluntary;
    out->ru_nivcsw = involuntary;
    readings++;
    return 0;
}

static struct gwt_slot slots[42];
static unsigned slots_used = 2;
static struct gwt_record ring[64];
static struct gw_thread thread;

struct gwt_slot *gw_ring_slot(unsigned index)
{
    return &slots[index];
}
unsigned gw_ring_index(const struct gwt_slot *slot)
{
    return (unsigned)(slot - slots);
}
unsigned gw_ring_slots_used(void)
{
    return slots_used;
}
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
    return 1;
}
uint16_t gw_stream_slow(struct gw_thread *t, const struct gw_frame *f)
{
    (void)t, (void)f;
    return 7;
}
uint32_t gw_graph_id(const void *exec, uint16_t *flags)
{
    (void)flags;
    return exec ? 42 : 0;
}
uint32_t gw_timing;
uint64_t gw_awaited;
struct gw_ahead gw_ahead;
void gw_stream_given(uint16_t stream, const struct gw_frame *f, uint32_t arg, uint64_t t1)
{
    (void)stream, (void)f, (void)arg, (void)t1;
}
void gw_stream_awaited(uint16_t stream, unsigned scope, uint64_t t1)
{
    (void)stream, (void)scope, (void)t1;
}
void gw_stream_carries_collectives(uint16_t stream)
{
    (void)stream;
}
bool gw_event_recorded(const void *event, uint16_t stream, uint64_t now_)
{
    (void)event, (void)stream, (void)now_;
    return false;
}

static int reset(void **state)
{
    (void)state;
    memset(slots, 0, sizeof slots);
    memset(&thread, 0, sizeof thread);
    memset(ring, 0, sizeof ring);
    gw_sections_reset();
    thread.slot = &slots[1];
    thread.id = 1;
    thread.ring = ring;
    thread.mask = 63;
    thread.room = 64;
    slots[1].state = GWT_SLOT_USED;
    slots[1].tid = (uint32_t)gettid();
    gw_self = &thread;
    gw_top = NULL;
    gw_recording = 1;
    now = 1000 * MS;
    cpu = 300 * MS;
    process = 900 * MS;
    voluntary = 40;
    involuntary = 50;
    readings = 0;
    errno = 0;
    return 0;
}

static void call_for(unsigned kind, uint64_t ns)
{
    errno = 0;
    struct gw_frame own, *f = gw_enter(&own, GW_FRAME_WORD(2, kind, GWT_LEVEL_DRIVER));
    assert_non_null(f);
    f->shape = (struct gw_shape){.func = (const void *)0x5000};
    now += ns;
    gw_leave(&own, f, gw_returned(&own), 0, kind);
    assert_int_equal(errno, 0);
}

static void launch(void)
{
    call_for(GWT_LAUNCH, 5000);
}

/* Time outside of calls: of the thread on CPU, of others. */
static void outside(uint64_t ns, uint64_t own, uint64_t others, long switches_)
{
    now += ns;
    cpu += own;
    process += own + others;
    voluntary += switches_;
    involuntary += 2 * switches_;
}

static struct gwt_record_section section_at(unsigned i)
{
    struct gwt_record_section s;
    memcpy(&s, &ring[i], sizeof s);
    assert_int_equal(s.api, GWT_API_PSEUDO + GWT_SECTION);
    return s;
}

static void test_measured_whole_after_a_blocking_call(void **state)
{
    (void)state;
    call_for(GWT_SYNC, 3000);
    uint64_t returned = ring[0].t0 + ring[0].dur;
    assert_int_equal(slots[1].returned, returned);
    outside(20 * MS, 15 * MS, 7 * MS, 3);
    launch();
    assert_int_equal(slots[1].head, 3);
    struct gwt_record_section s = section_at(1);
    assert_int_equal(s.t0, returned);
    /* one tick() by each of the two clock readings and the entry */
    assert_in_range(s.dur, 20 * MS, 20 * MS + 50);
    assert_int_equal(s.measured_us, 20000);
    assert_int_equal(s.cpu_us, 15000);
    assert_int_equal(s.process_cpu_us, 22000);
    assert_int_equal(s.voluntary, 3);
    assert_int_equal(s.involuntary, 6);
    assert_int_equal(s.flags, 0);
    /* then the call's own record; what measuring took is neither's */
    assert_int_equal(ring[2].api, 2);
    assert_true(ring[2].t0 > s.t0 + s.dur);
    assert_in_range(ring[2].dur, 5000, 5020);
}

static void test_under_a_millisecond_is_none(void **state)
{
    (void)state;
    call_for(GWT_SYNC, 3000);
    outside(MS - 100, MS / 2, 0, 0);
    launch();
    assert_int_equal(slots[1].head, 2);
    outside(MS, MS / 2, 0, 0);
    launch();
    assert_int_equal(slots[1].head, 4);
    section_at(2);
}

static void test_first_call_has_none(void **state)
{
    (void)state;
    outside(500 * MS, 0, 0, 0);
    launch();
    assert_int_equal(slots[1].head, 1);
}

/* The reading at one section's end serves as the start of another that follows soon. */
static void test_sections_between_launches(void **state)
{
    (void)state;
    launch();
    outside(20 * MS, 20 * MS, 0, 0);
    launch();
    assert_int_equal(section_at(1).measured_us, 0); /* nobody looked at its start */
    assert_int_equal(section_at(1).cpu_us, 0);
    outside(30 * MS, 10 * MS, 0, 1);
    launch();
    assert_int_equal(section_at(3).measured_us, 30000);
    assert_int_equal(section_at(3).cpu_us, 10000);
    for (unsigned i = 0; i < 50; i++) /* a quarter of a millisecond of calls: too long ago */
        launch();
    outside(30 * MS, 10 * MS, 0, 1);
    launch();
    assert_int_equal(section_at(55).measured_us, 0);
}

/* Readings cost: not after each of many blocking calls. */
static void test_a_storm_of_syncs_is_not_slowed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 50; i++)
        call_for(GWT_SYNC, 20000);
    assert_in_range(readings, 2, 6); /* one in 0.2 ms of 1 ms */
}

static void test_watch_supplies_a_start(void **state)
{
    (void)state;
    launch();
    uint64_t returned = now;
    outside(4 * MS, 4 * MS, 0, 0);
    gw_section_watch();
    assert_int_equal(watches[1].seq, 0); /* not 5 ms yet */
    outside(2 * MS, 2 * MS, 0, 0);
    gw_section_watch();
    assert_int_equal(watches[1].seq, 2);
    assert_int_equal(watches[1].returned, returned);
    outside(4 * MS, 1 * MS, 0, 0);
    gw_section_watch();
    assert_int_equal(watches[1].seq, 2); /* once */
    launch();
    struct gwt_record_section s = section_at(1);
    assert_in_range(s.dur, 10 * MS, 10 * MS + 100);
    assert_int_equal(s.measured_us, 4000);
    assert_int_equal(s.cpu_us, 1000);
    /* what it saw of one section is not another's */
    for (unsigned i = 0; i < 50; i++)
        launch();
    outside(4 * MS, 4 * MS, 0, 0);
    launch();
    assert_int_equal(section_at(53).measured_us, 0);
}

static void test_watch_leaves_the_measured_and_those_inside_alone(void **state)
{
    (void)state;
    call_for(GWT_SYNC, 3000);
    outside(20 * MS, 0, 0, 0);
    gw_section_watch();
    assert_int_equal(watches[1].seq, 0);
    for (unsigned i = 0; i < 50; i++)
        launch();
    struct gw_frame own, *f = gw_enter(&own, GW_FRAME_WORD(2, GWT_SYNC, GWT_LEVEL_DRIVER));
    now += 50 * MS;
    gw_section_watch();
    assert_int_equal(watches[1].seq, 0);
    gw_leave(&own, f, gw_returned(&own), 0, GWT_SYNC);
}

static unsigned watched_slots(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < slots_used; i++)
        n += watches[i].seq != 0;
    return n;
}

/* The watch's round is bounded, and everybody's turn comes. */
static void test_watch_of_many_threads(void **state)
{
    (void)state;
    slots_used = 42;
    for (unsigned i = 2; i < 42; i++)
        slots[i] = (struct gwt_slot){.state = GWT_SLOT_USED, .tid = slots[1].tid, .returned = now};
    outside(20 * MS, 0, 0, 0);
    const unsigned after[] = {16, 32, 40, 40};
    for (unsigned i = 0; i < 4; i++) {
        gw_section_watch();
        assert_int_equal(watched_slots(), after[i]);
    }
    slots_used = 2;
}

static void test_watch_of_a_thread_that_is_gone(void **state)
{
    (void)state;
    launch();
    slots[1].tid = 0x3ffffff; /* no thread has this id */
    outside(20 * MS, 0, 0, 0);
    gw_section_watch();
    launch();
    assert_int_equal(section_at(1).measured_us, 0);
}

static void test_a_start_being_written_is_not_read(void **state)
{
    (void)state;
    launch();
    outside(20 * MS, 0, 0, 0);
    gw_section_watch();
    watches[1].seq++;
    launch();
    assert_int_equal(section_at(1).measured_us, 0);
}

static void test_polls_and_context_switches_do_not_delimit(void **state)
{
    (void)state;
    call_for(GWT_SYNC, 3000);
    for (unsigned i = 0; i < 10; i++) {
        outside(2 * MS, 2 * MS, 0, 0);
        call_for(i % 2 ? GWT_POLL : GWT_CONTEXT, 1000);
    }
    launch();
    assert_int_equal(slots[1].head, 3);
    assert_int_equal(section_at(1).cpu_us, 20000);
    assert_in_range(section_at(1).measured_us, 20010, 20011); /* with the ten calls in it */
    /* a long one leaves a record and delimits; at its entry nothing was measured */
    outside(2 * MS, 2 * MS, 0, 0);
    call_for(GWT_CONTEXT, 3 * MS);
    assert_int_equal(slots[1].head, 5);
    assert_int_equal(section_at(3).measured_us, 0);
    assert_in_range(section_at(3).dur, 2 * MS, 2 * MS + 50);
}

static void test_nested_calls_do_not_delimit(void **state)
{
    (void)state;
    launch();
    struct gw_frame own, *f = gw_enter(&own, GW_FRAME_WORD(3, GWT_ALLOC, GWT_LEVEL_RUNTIME));
    now += 5 * MS;
    call_for(GWT_MODULE_LOAD, MS);
    now += 5 * MS;
    launch();
    gw_leave(&own, f, gw_returned(&own), 0, GWT_ALLOC);
    assert_int_equal(slots[1].head, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_true(ring[i].api < GWT_API_PSEUDO);
}

static void test_none_across_a_switch_of_recording(void **state)
{
    (void)state;
    call_for(GWT_SYNC, 3000);
    outside(5 * MS, 0, 0, 0);
    gw_recording = 0;
    gw_recording_switched = now;
    outside(5 * MS, 0, 0, 0);
    launch();
    outside(5 * MS, 0, 0, 0);
    gw_recording = 1;
    gw_recording_switched = now;
    outside(5 * MS, 0, 0, 0);
    launch();
    assert_int_equal(slots[1].head, 2);
    assert_int_equal(ring[1].api, 2);
    outside(5 * MS, 0, 0, 0);
    launch();
    section_at(2);
}

static void test_none_after_a_call_that_never_returned(void **state)
{
    (void)state;
    static struct gw_frame dead;
    gw_enter(&dead, GW_FRAME_WORD(8, GWT_SYNC, GWT_LEVEL_RUNTIME));
    dead.t0 = 0; /* its memory is another's */
    outside(20 * MS, 0, 0, 0);
    launch();
    assert_int_equal(slots[1].head, 2);
    assert_int_equal(ring[0].flags, GWT_F_UNWOUND);
    assert_int_equal(ring[1].api, 2);
}

static void test_saturation(void **state)
{
    (void)state;
    call_for(GWT_SYNC, 3000);
    outside(4000000 * MS, MS, 5000000 * MS, 40000);
    launch();
    struct gwt_record_section s = section_at(1);
    assert_true(s.flags & GWT_F_LONG);
    assert_int_equal(s.dur, (4000000 * MS + 10) >> 10);
    assert_int_equal(s.measured_us, 4000000000u);
    assert_int_equal(s.process_cpu_us, UINT32_MAX);
    assert_int_equal(s.voluntary, 40000);
    assert_int_equal(s.involuntary, 0xffff);
    outside(4300000 * MS, MS, 0, 0); /* more than 32 bits of us */
    launch();
    assert_int_equal(section_at(3).measured_us, 0);
    assert_int_equal(section_at(3).cpu_us, 0);
}

/* The two clocks are not read in one moment. */
static void test_process_time_holds_the_threads(void **state)
{
    (void)state;
    call_for(GWT_SYNC, 3000);
    outside(20 * MS, 21 * MS, 0, 0);
    process -= 2 * MS;
    launch();
    assert_int_equal(section_at(1).cpu_us, 20000);
    assert_int_equal(section_at(1).process_cpu_us, 20000);
}

static void test_none_while_own_cost_is_measured(void **state)
{
    (void)state;
    thread.id = 0;
    launch();
    outside(20 * MS, 0, 0, 0);
    launch();
    assert_int_equal(slots[1].head, 2);
    assert_int_equal(readings, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, reset)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_measured_whole_after_a_blocking_call),
        TEST(test_under_a_millisecond_is_none),
        TEST(test_first_call_has_none),
        TEST(test_sections_between_launches),
        TEST(test_a_storm_of_syncs_is_not_slowed),
        TEST(test_watch_supplies_a_start),
        TEST(test_watch_leaves_the_measured_and_those_inside_alone),
        TEST(test_watch_of_many_threads),
        TEST(test_watch_of_a_thread_that_is_gone),
        TEST(test_a_start_being_written_is_not_read),
        TEST(test_polls_and_context_switches_do_not_delimit),
        TEST(test_nested_calls_do_not_delimit),
        TEST(test_none_across_a_switch_of_recording),
        TEST(test_none_after_a_call_that_never_returned),
        TEST(test_saturation),
        TEST(test_none_while_own_cost_is_measured),
        TEST(test_process_time_holds_the_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
