/* sim.h: how tests and clients drive the simulated CUDA, beside the CUDA calls.
 *
 * Every function below is exported by build/sim/libcuda.so.1. Programs reach them by
 * dlsym on that library (clients/client.h does), so that a client stays a program that
 * could also run on real CUDA. The environment variables are listed in README.md.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The clock that everything in the simulation goes by, in nanoseconds: CLOCK_MONOTONIC
 * with SIM_CLOCK=real, a process-wide virtual clock with SIM_CLOCK=virtual. */
uint64_t sim_now_ns(void);
/* the same and SIM_CLOCK_OFFSET_NS more; the name that a recorder under test looks for */
uint64_t sim_clock_ticks(void);
uint64_t sim_tsc(void); /* the same */

/* Spends host time: burning the CPU, or off it. */
void sim_host_ns(uint64_t ns);
void sim_sleep_ns(uint64_t ns);
/* Threads of a recorder's that have slept by this clock so far: it does not wait for one before. */
unsigned sim_nappers(void);
/* CPU time on the simulation's clock of the calling thread (0), of another by its kernel id, or of
 * all (-1): what the system's clocks would say. Blocking CUDA calls count, since they spin. */
uint64_t sim_cpu_ns(int tid);

/* Bracket device work that belongs to a recorder under test and not to the program: it
 * runs and takes its time but is left out of the truth. Nests; per thread. */
void sim_own(int delta);

/* Restricts the truth to what happens between the two (several pairs add up). */
void sim_range_begin(void);
void sim_range_end(void);

/* Writes the truth to SIM_TRUTH now. post: 0 or a negative errno. Lets the device finish
 * everything that was submitted. */
int sim_truth_write(void);

/* One figure of the truth so far. Keys: "kernel:NAME", "api:NAME", "kernels", "launches",
 * "captured", "failed", "graph_launches", "syncs", "allocations", "frees", "memset_calls",
 * "memset_bytes", "copies.DIR.calls", ".bytes", ".pageable_calls", ".pageable_bytes" with DIR
 * H2D, D2H, D2D, P2P or H2H, "nccl:OP.calls", "nccl:OP.bytes", "peak_allocated_bytes". */
uint64_t sim_truth_get(const char *key);

/* ---- for the other simulated libraries: one table, found by dlsym("sim_hooks") ---- */

struct sim_peers; /* of one communicator, in other processes */

enum sim_level { SIM_RUNTIME = 1, SIM_DRIVER = 2, SIM_NCCL = 3 };

/* One intercepted or simulated entry point. */
struct sim_api {
    const char *name;
    uint8_t level;            /* enum sim_level */
    uint8_t kind;             /* enum sim_kind of the library that defines it */
    uint32_t pre_ns, post_ns; /* host cost before and after what the call does */
    /* written by the simulator */
    uint64_t calls; /* made by the program: not nested in a call of the same kind */
    uint64_t failed, captured;
    uint64_t entries; /* every entry, nested or not; SIM_FAIL counts these */
    uint64_t wait_ns; /* host time of the counted calls */
    uint32_t listed;
    int32_t fail_at; /* SIM_FAIL: ordinal of the entry that fails; 0: none, < 0: not looked up */
    int32_t fail_status;
    uint8_t fail_onwards;
    struct sim_api *next;
};

/* A call in flight; on the stack of its thread. */
struct sim_frame {
    struct sim_frame *outer;
    struct sim_api *api;
    uint64_t t0;
    uint8_t per_thread; /* the null stream means the per-thread default stream */
    uint8_t counted;
    uint8_t own;      /* a recorder's call, left out of the truth */
    uint8_t captured; /* its work went into a graph */
    int status;       /* when sim_hooks.enter said that the call fails */
};

struct sim_hooks {
    /* post: 0, or the status with which the call must fail without doing anything */
    int (*enter)(struct sim_frame *frame, struct sim_api *api, int per_thread);
    void (*leave)(struct sim_frame *frame, int status);
    void (*allocator)(uint64_t allocated, uint64_t reserved);
    void (*nccl)(const char *op, uint64_t bytes);
    /* The next launch of this thread is one of `ranks` that belong together: none of them ends
     * before `ns` after the last has started. */
    void (*collective)(uint64_t communicator, uint64_t sequence, unsigned ranks, uint64_t ns);
    /* The same among processes: peers.h. meet() may be called several times for one launch; peer is
     * a rank, or -1 for all of them. */
    int (*join)(const char *id, unsigned ranks, unsigned rank, struct sim_peers **peers);
    int (*split)(struct sim_peers *peers, int color, int key, char id[128], unsigned *ranks,
                 unsigned *rank);
    void (*depart)(struct sim_peers *peers);
    bool (*broken)(const struct sim_peers *peers);
    void (*meet)(struct sim_peers *peers, const char *op, int peer, bool sends, uint64_t bytes,
                 uint64_t ns);
};

#endif
