/* NCCL communicators: small ids for handles. */
#include "gw.h"

#include <string.h>

#define COMMS 1024u

static struct {
    const void *handle;
    uint32_t id;
} comms[COMMS];
static uint32_t used;

static uint32_t define(const void *comm, int ranks, int rank, bool renew)
{
    uint32_t id = 0;
    if (!comm || gw_load_acquire(&gw_state) != GW_ACTIVE)
        return 0;
    gw_lock();
    uint32_t i = 0;
    while (i < used && comms[i].handle != comm)
        i++;
    if (i < used && !renew) {
        id = comms[i].id;
    } else if (i < COMMS) {
        struct gwt_def_comm d = {.handle = (uint64_t)(uintptr_t)comm, .ranks = ranks, .rank = rank};
        static uint32_t last;
        if (i == used && !used)
            last = 0; /* a forked child numbers afresh */
        if (gw_define(GWT_DEF_COMM, last + 1, &d, sizeof d, NULL, 0)) {
            comms[i].handle = comm;
            id = comms[i].id = ++last;
            if (i == used)
                gw_store_release(&used, used + 1); /* partner: gw_comm_id() */
        }
    }
    gw_unlock();
    return id;
}

void gw_comm_created(const void *comm, int ranks, int rank)
{
    define(comm, ranks, rank, true);
}

uint32_t gw_comm_id(const void *comm)
{
    uint32_t n = gw_load_acquire(&used);
    for (uint32_t i = 0; i < n; i++)
        if (comms[i].handle == comm)
            return comms[i].id;
    return define(comm, -1, -1, false);
}

void gw_comms_reset(void)
{
    used = 0;
}
