/* The histogram's promise: quantiles within 1 %, sums exact. */
#include "test_analysis_fake.h"

#include "analysis/hist.h"

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void quantiles_against_sorting(void **state)
{
    static struct gwa_hist h;
    static uint64_t values[20000];
    const size_t n = sizeof(values) / sizeof(*values);
    (void)state;
    uint64_t x = 88172645463325252u, sum = 0;
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        values[i] = x >> (20 + x % 40); /* from a few ns to hours */
        sum += values[i];
        gwa_hist_add(&h, values[i]);
    }
    qsort(values, n, sizeof(*values), by_value);
    assert_int_equal(h.count, n);
    assert_int_equal(h.sum, sum);
    assert_int_equal(h.min, values[0]);
    assert_int_equal(h.max, values[n - 1]);
    const double qs[] = {0.001, 0.1, 0.5, 0.9, 0.99, 1};
    for (size_t i = 0; i < sizeof(qs) / sizeof(*qs); i++) {
        double exact = (double)values[(size_t)ceil(qs[i] * (double)n) - 1];
        assert_near(gwa_hist_quantile(&h, qs[i]), exact, exact * 0.01);
    }
}

static void small_values_are_exact(void **state)
{
    static struct gwa_hist h;
    (void)state;
    assert_true(isnan(gwa_hist_quantile(&h, 0.5)));
    assert_true(isnan(gwa_hist_mean(&h)));
    for (uint64_t v = 1; v <= 50; v++)
        gwa_hist_add(&h, v);
    assert_near(gwa_hist_quantile(&h, 0.5), 25, 0);
    assert_near(gwa_hist_quantile(&h, 0.99), 50, 0);
    assert_near(gwa_hist_mean(&h), 25.5, 0);
}

static void a_single_value_is_every_quantile(void **state)
{
    static struct gwa_hist h;
    (void)state;
    gwa_hist_add(&h, 123457); /* lies between bucket middles; min and max bound it */
    assert_near(gwa_hist_quantile(&h, 0.5), 123457, 0);
    assert_near(gwa_hist_quantile(&h, 0.99), 123457, 0);
}

static void huge_values_are_clamped_not_lost(void **state)
{
    static struct gwa_hist h;
    (void)state;
    gwa_hist_add(&h, UINT64_MAX / 2);
    assert_int_equal(h.count, 1);
    assert_int_equal(h.bucket[GWA_HIST_BUCKETS - 1], 1);
    for (unsigned e = 0; e < 64; e++) /* every power of two lands in range, in order */
        assert_in_range(gwa_hist_index(UINT64_C(1) << e), 0, GWA_HIST_BUCKETS - 1);
    assert_true(gwa_hist_index(63) < gwa_hist_index(64));
    assert_true(gwa_hist_index(127) < gwa_hist_index(128));
}

static void merged_equals_added(void **state)
{
    static struct gwa_hist a, b, both;
    (void)state;
    for (uint64_t v = 0; v < 1000; v++) {
        gwa_hist_add(v % 3 ? &a : &b, v * v);
        gwa_hist_add(&both, v * v);
    }
    gwa_hist_merge(&a, &b);
    assert_memory_equal(&a, &both, sizeof(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_against_sorting),
        cmocka_unit_test(small_values_are_exact),
        cmocka_unit_test(a_single_value_is_every_quantile),
        cmocka_unit_test(huge_values_are_clamped_not_lost),
        cmocka_unit_test(merged_equals_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
