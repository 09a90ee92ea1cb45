/* NCCL communicators: small ids for handles, and identities that all their ranks agree on. */
#include "sampler.h"

#include <string.h>
#include <unistd.h>

#define COMMS 1024u

static struct {
    const void *handle;
    uint64_t identity; /* 0: unknown */
    uint32_t id;
    uint32_t children; /* made from it so far: all its ranks count alike */
} comms[COMMS];
static uint32_t used;

/* ---- identities ------------------------------------------------------------------- */

static uint64_t hash(uint64_t h, const void *bytes, size_t size)
{
    const uint8_t *b = bytes;
    for (size_t i = 0; i < size; i++)
        h = (h ^ b[i]) * 0x100000001b3; /* FNV-1a */
    return h;
}

static uint64_t identity_of(const void *bytes, size_t size)
{
    uint64_t h = hash(0xcbf29ce484222325, bytes, size);
    return h ? h : 1;
}

/* ---- ids ---------------------------------------------------------------------------- */

static uint32_t find(const void *comm, uint32_t n)
{
    uint32_t i = 0;
    while (i < n && comms[i].handle != comm)
        i++;
    return i;
}

/* pre: locked. renew: a handle that is known already is another communicator's now. */
static uint32_t define(const void *comm, int ranks, int rank, uint64_t identity, bool renew)
{
    static uint32_t last;
    uint32_t i = find(comm, used);
    if (i < used && !renew)
        return comms[i].id;
    if (!used)
        last = 0; /* a forked child numbers afresh */
    if (i == COMMS || last == GWT_COMM_MAX)
        return 0;
    struct gwt_def_comm d = {
        .handle = (uint64_t)(uintptr_t)comm, .ranks = ranks, .rank = rank, .identity = identity};
    if (!gw_define(GWT_DEF_COMM, last + 1, &d, sizeof d, NULL, 0))
        return 0;
    comms[i].handle = comm;
    comms[i].identity = identity;
    comms[i].children = 0;
    comms[i].id = ++last;
    if (i == used)
        gw_store_release(&used, used + 1); /* partner: gw_comm_id() */
    return last;
}

static bool active(const void *comm)
{
    return comm && gw_load_acquire(&gw_state) == GW_ACTIVE;
}

void gw_comm_created(const void *comm, int ranks, int rank, const ncclUniqueId *id)
{
    if (!active(comm))
        return;
    gw_lock();
    define(comm, ranks, rank, id ? identity_of(id, sizeof *id) : 0, true);
    gw_unlock();
    gw_sampler_ranks(ranks);
}

void gw_comms_created(const void *const *made, int ranks)
{
    if (ranks < 1 || !active(made[0]))
        return;
    /* All its ranks are here, so that it need be told from this process's others only, and from
     * those of other processes. */
    uint64_t of[] = {(uint64_t)(uintptr_t)made[0], (uint64_t)getpid(), gw_ticks()};
    gw_lock();
    for (int i = 0; i < ranks; i++)
        if (made[i])
            define(made[i], ranks, i, identity_of(of, sizeof of), true);
    gw_unlock();
    gw_sampler_ranks(ranks);
}

void gw_comm_split(const void *parent, int color, const void *made)
{
    if (!active(parent))
        return;
    gw_lock();
    uint32_t i = find(parent, used);
    uint64_t identity = 0;
    if (i < used) {
        uint64_t of[] = {comms[i].identity, comms[i].children++, (uint64_t)(int64_t)color};
        identity = comms[i].identity ? identity_of(of, sizeof of) : 0;
    }
    if (made)
        define(made, 0, -1, identity, true);
    gw_unlock();
}

uint32_t gw_comm_id(const void *comm)
{
    uint32_t n = gw_load_acquire(&used), i = find(comm, n), id = 0;
    if (i < n)
        return comms[i].id;
    if (!active(comm))
        return 0;
    gw_lock();
    id = define(comm, -1, -1, 0, false);
    gw_unlock();
    return id;
}

void gw_comms_reset(void)
{
    used = 0;
}
