/* Address ranges and device address spaces. pre: locked, all of it */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include "core.h"

/* Sorted by address, disjoint. */
struct sim_ranges {
    struct sim_range *at;
    size_t n, room;
};

struct sim_arena {
    uintptr_t base;
    size_t size;
    uint64_t used; /* of the device's memory */
};

extern struct sim_arena sim_arenas[8];
extern struct sim_ranges sim_device_ranges;

struct sim_range *sim_range_of(struct sim_ranges *ranges, uintptr_t p);
void sim_range_insert(struct sim_ranges *ranges, struct sim_range range);
void sim_range_erase(struct sim_ranges *ranges, struct sim_range *range);
struct sim_arena *sim_arena(unsigned device);
/* First fit: what was freed is handed out again. post: 0 if nothing fits */
uintptr_t sim_arena_place(struct sim_arena *arena, size_t bytes, size_t align);

#endif
