/* What kind of memory an address lies in. Right values: the ranges that were added. */
#include "capture/memory.c"

#include <setjmp.h>
#include <stdarg.h>
#include <pthread.h>
#include <cmocka.h>

/* The lock and the counters of the preload, enough of them. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct gwt_ring_header header;
struct gwt_ring_header *gw_header = &header;
void gw_lock(void)
{
    pthread_mutex_lock(&mutex);
}
void gw_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

static const void *at(uintptr_t p)
{
    return (const void *)p;
}

static void test_edges(void **state)
{
    (void)state;
    unsigned device = 9;
    gw_memory_reset();
    gw_memory_add(at(0x1000), 0x100, GW_MEM_DEVICE, 3);
    gw_memory_add(at(0x2000), 0x100, GW_MEM_PINNED, 0);
    assert_int_equal(gw_memory_kind(at(0xfff), &device), GW_MEM_PAGEABLE);
    assert_int_equal(gw_memory_kind(at(0x1000), &device), GW_MEM_DEVICE);
    assert_int_equal(device, 3);
    assert_int_equal(gw_memory_kind(at(0x10ff), NULL), GW_MEM_DEVICE);
    assert_int_equal(gw_memory_kind(at(0x1100), NULL), GW_MEM_PAGEABLE);
    assert_int_equal(gw_memory_kind(at(0x2080), NULL), GW_MEM_PINNED);
    gw_memory_remove(at(0x1000));
    assert_int_equal(gw_memory_kind(at(0x1000), NULL), GW_MEM_PAGEABLE);
    gw_memory_remove(at(0x1000)); /* freed twice, or never ours: nothing happens */
    gw_memory_remove(NULL);
    assert_int_equal(gw_memory_kind(at(0x2000), NULL), GW_MEM_PINNED);
}

static void test_reuse_replaces(void **state)
{
    (void)state;
    gw_memory_reset();
    gw_memory_add(at(0x1000), 0x100, GW_MEM_DEVICE, 0);
    gw_memory_add(at(0x1000), 0x1000, GW_MEM_PINNED, 0); /* the free was not seen */
    assert_int_equal(gw_memory_kind(at(0x1f00), NULL), GW_MEM_PINNED);
    assert_int_equal(used, 1);
}

/* Against a plain model: 4,096 pages, each in at most one range of one page. */
static void test_against_model(void **state)
{
    (void)state;
    static uint8_t model[4096];
    uint32_t x = 12345;
    gw_memory_reset();
    memset(model, 0, sizeof model);
    for (int i = 0; i < 200000; i++) {
        x = x * 1664525u + 1013904223u;
        unsigned page = x >> 20;
        const void *p = at(((uintptr_t)page + 1) << 12);
        if (x & 1) {
            gw_memory_add(p, 4096, GW_MEM_DEVICE, 0);
            model[page] = 1;
        } else {
            gw_memory_remove(p);
            model[page] = 0;
        }
        unsigned probe = (x >> 8) & 4095;
        assert_int_equal(gw_memory_kind((const char *)at(((uintptr_t)probe + 1) << 12) + 7, NULL),
                         model[probe] ? GW_MEM_DEVICE : GW_MEM_PAGEABLE);
    }
}

static uint32_t stop;

static void *churn(void *arg)
{
    (void)arg;
    for (uintptr_t i = 0; !gw_load_relaxed(&stop); i++) {
        gw_memory_add(at(0x10000 + (i % 64) * 0x1000), 0x1000, GW_MEM_PINNED, 0);
        gw_memory_remove(at(0x10000 + ((i + 32) % 64) * 0x1000));
    }
    return NULL;
}

/* A reader beside a writer: a range that never changes is always found. */
static void test_readers_beside_writer(void **state)
{
    (void)state;
    pthread_t thread;
    gw_memory_reset();
    gw_memory_add(at(0x900000), 0x1000, GW_MEM_DEVICE, 1);
    stop = 0;
    assert_int_equal(pthread_create(&thread, NULL, churn, NULL), 0);
    unsigned wrong = 0;
    for (int i = 0; i < 300000; i++)
        wrong += gw_memory_kind(at(0x900800), NULL) != GW_MEM_DEVICE;
    gw_store_relaxed(&stop, 1);
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
}

static void test_full_table_counts(void **state)
{
    (void)state;
    gw_memory_reset();
    header.counters[GWT_C_UNDECODED] = 0;
    for (uintptr_t i = 0; i < RANGES + 10; i++)
        gw_memory_add(at((i + 1) << 12), 4096, GW_MEM_DEVICE, 0);
    assert_int_equal(used, RANGES);
    assert_int_equal(header.counters[GWT_C_UNDECODED], 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_reuse_replaces),
        cmocka_unit_test(test_against_model),
        cmocka_unit_test(test_readers_beside_writer),
        cmocka_unit_test(test_full_table_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
