#include "config.h"

#include <stdlib.h>
#include <string.h>

struct sim_config sim_cfg;

static double env_double(const char *name, double fallback)
{
    const char *text = getenv(name);
    if (!text || !*text)
        return fallback;
    return strtod(text, NULL);
}

static double env_speed(const char *name)
{
    double v = env_double(name, 1.0);
    return v > 0 ? v : 1.0;
}

static uint64_t env_u64(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    char *end;
    if (!text || !*text)
        return fallback;
    uint64_t v = strtoull(text, &end, 0);
    if (*end == 'G')
        v <<= 30;
    else if (*end == 'M')
        v <<= 20;
    return v;
}

static const char *env_text(const char *name, const char *fallback)
{
    const char *text = getenv(name);
    text = text && *text ? text : fallback;
    /* the program may change its environment later */
    return text ? strdup(text) : NULL;
}

void sim_config_read(void)
{
    struct sim_config *c = &sim_cfg;
    const char *clock = getenv("SIM_CLOCK");
    c->is_virtual = clock && !strcmp(clock, "virtual");
    c->speed = env_speed("SIM_SPEED");
    c->device_speed = env_speed("SIM_DEVICE_SPEED");
    c->heat = env_double("SIM_HEAT", 0);
    c->link = env_speed("SIM_LINK_SPEED");
    c->offset_ns = (int64_t)env_u64("SIM_CLOCK_OFFSET_NS", 0);
    c->patience_ns = (int64_t)(env_double("SIM_PATIENCE", 60) * 1e9);
    c->latency = env_double("SIM_LATENCY", 1.0);
    c->gap = env_double("SIM_GAP", 1.0);
    c->variance = env_double("SIM_VARIANCE", 1.0);
    c->late = env_double("SIM_LATE", 1.0);
    c->seed = env_u64("SIM_SEED", 1);
    c->devices = (unsigned)env_u64("SIM_DEVICES", 1);
    if (c->devices > 8)
        c->devices = 8;
    c->queues = (unsigned)env_u64("SIM_QUEUES", 0);
    c->depth = (unsigned)env_u64("SIM_DEPTH", 1024);
    c->memory = env_u64("SIM_MEMORY", (uint64_t)24 << 30);
    c->ballast = env_u64("SIM_BALLAST", 0);
    if (c->ballast > c->memory)
        c->ballast = c->memory;
    c->driver_version = (int)env_u64("SIM_DRIVER_VERSION", 13000);
    c->data_max = env_u64("SIM_DATA_MAX", 64 << 10);
    c->blocking = env_u64("CUDA_LAUNCH_BLOCKING", 0) != 0;
    c->truth = env_text("SIM_TRUTH", NULL);
    c->timeline = env_text("SIM_TIMELINE", NULL);
    c->fail = env_text("SIM_FAIL", NULL);
    c->ignore = env_text("SIM_IGNORE", "gpuwait_");
    c->quiet = env_text("SIM_QUIET", "gpuwait");
    c->pace = env_double("SIM_PACE", 0);
}

uint64_t sim_hash(uint64_t a, uint64_t b)
{
    uint64_t z = a + 0x9e3779b97f4a7c15u * (b + 1);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t sim_hash_text(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return sim_hash(h, 0);
}

void sim_rng_seed(struct sim_rng *rng, uint64_t seed)
{
    rng->s = sim_hash(seed, sim_cfg.seed) | 1;
}

static uint64_t rng_next(struct sim_rng *rng)
{
    uint64_t x = rng->s;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    rng->s = x;
    return x * 0x2545f4914f6cdd1du;
}

double sim_uniform(struct sim_rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

double sim_gauss(struct sim_rng *rng)
{
    /* a sum of uniforms, scaled: no libm, cheap, and no tails */
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += sim_uniform(rng);
    return (sum - 2.0) * 1.7320508;
}

double sim_jitter(struct sim_rng *rng, double value, double spread)
{
    double v = value * (1.0 + spread * sim_cfg.variance * sim_gauss(rng));
    return v < value / 4 ? value / 4 : v;
}
