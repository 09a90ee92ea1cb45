/* The environment of the simulation, read once, and its source of randomness. */
#ifndef SIM_CONFIG_H
#define SIM_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

struct sim_config {
    bool is_virtual;      /* SIM_CLOCK=virtual */
    double speed;         /* SIM_SPEED: host costs and device work are divided by it */
    double device_speed;  /* SIM_DEVICE_SPEED: kernels' work is divided by it, too */
    double heat;          /* SIM_HEAT: by this share kernels last longer now and then */
    double link;          /* SIM_LINK_SPEED: factor on the rates of copies and of collectives */
    int64_t offset_ns;    /* SIM_CLOCK_OFFSET_NS: what a recorder's clock is ahead of the truth's */
    int64_t patience_ns;  /* SIM_PATIENCE: seconds of real time that a rank waits for others */
    double latency;       /* SIM_LATENCY: factor on submit-to-start latency */
    double gap;           /* SIM_GAP: factor on the gaps between operations */
    double variance;      /* SIM_VARIANCE: factor on every spread */
    double late;          /* SIM_LATE: factor on the chance of a late wake-up */
    uint64_t seed;        /* SIM_SEED */
    unsigned devices;     /* SIM_DEVICES */
    unsigned queues;      /* SIM_QUEUES: hardware queues; 0: as many as streams */
    unsigned depth;       /* SIM_DEPTH: operations waiting in one stream before a call blocks */
    uint64_t memory;      /* SIM_MEMORY: bytes of device memory */
    uint64_t ballast;     /* SIM_BALLAST: of these, held by another process */
    int driver_version;   /* SIM_DRIVER_VERSION */
    uint64_t data_max;    /* SIM_DATA_MAX: larger copies take their time but move no bytes */
    bool blocking;        /* CUDA_LAUNCH_BLOCKING */
    const char *truth;    /* SIM_TRUTH: path; %p is the process id */
    const char *timeline; /* SIM_TIMELINE: likewise */
    const char *fail;     /* SIM_FAIL: "api:n[+][=status],..." */
    const char *ignore;   /* SIM_IGNORE: kernels with this prefix are left out of the truth */
    const char *quiet;    /* SIM_QUIET: threads with this name prefix spend no virtual time */
    double pace;          /* SIM_PACE: virtual time runs at most so many times as fast as real */
};

extern struct sim_config sim_cfg;

void sim_config_read(void);

/* xorshift64*, seeded through splitmix64. Good enough for jitter, and reproducible. */
struct sim_rng {
    uint64_t s;
};

uint64_t sim_hash(uint64_t a, uint64_t b);
uint64_t sim_hash_text(const char *text);
void sim_rng_seed(struct sim_rng *rng, uint64_t seed);
double sim_uniform(struct sim_rng *rng); /* [0, 1) */
double sim_gauss(struct sim_rng *rng);   /* about N(0, 1), bounded by 3.5 */

/* value x (1 + spread x variance x gauss), never below a quarter of value */
double sim_jitter(struct sim_rng *rng, double value, double spread);

#endif
