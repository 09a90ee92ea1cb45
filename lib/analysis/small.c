/* Kernels too small to fill the device, and helper kernels by what their names say. */
#include "small.h"

#include <math.h>
#include <string.h>

bool gwa_named(const char *name, const char *const *words)
{
    for (; name && *words; words++)
        if (strcasestr(name, *words))
            return true;
    return false;
}

/* bitsandbytes, GPTQ, AWQ and their like name it so; 4-bit products unpack as they multiply. */
static const char *const dequantise[] = {"dequant", "gemm_4bit", "gemv_4bit", NULL};

const char *const gwa_gemm_names[] = {"gemm", "gemv",         "nvjet", "cutlass",
                                      "xmma", "splitkreduce", NULL};

struct sum {
    double launches, ms;
};

static void add(struct sum *s, const struct gwa_kernel *k, double share)
{
    s->launches += share * (double)k->calls;
    s->ms += share * k->total_ms;
}

static struct gwa_share share_of(const struct sum *part, const struct sum *all)
{
    return (struct gwa_share){
        .launches_pct = all->launches > 0 ? 100 * part->launches / all->launches : NAN,
        .busy_pct = all->ms > 0 ? 100 * part->ms / all->ms : NAN,
    };
}

void gwa_small_work(struct gwa_device *d)
{
    struct sum all = {0}, known = {0}, brief = {0}, below = {0}, unpack = {0}, gemm = {0};
    for (size_t i = 0; i < d->kernels_count; i++) {
        const struct gwa_kernel *k = &d->kernels[i];
        double share = k->below_sms_pct / 100;
        add(&all, k, 1);
        if (k->mean_us < 10)
            add(&brief, k, 1);
        if (gwa_named(k->name, dequantise))
            add(&unpack, k, 1);
        if (isnan(share))
            continue;
        add(&known, k, 1);
        add(&below, k, share);
        if (gwa_named(k->name, gwa_gemm_names))
            add(&gemm, k, share);
    }
    bool timed = all.ms > 0; /* false for NaN */
    d->small = (struct gwa_small_work){
        .under_10us = timed ? share_of(&brief, &all) : (struct gwa_share){NAN, NAN},
        .below_sms = share_of(&below, &known),
        .dequantise = share_of(&unpack, &all),
        .tiny_gemm = share_of(&gemm, &known),
    };
}
