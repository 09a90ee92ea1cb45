/* Timing events of the program's own: between two of them nothing of ours may run on the device.
 *
 * Which handles measure, and where what they measure ends, is learnt from what the program reads:
 * until then an event holds samples off for a while, afterwards from an interval's first event to
 * its last. PyTorch's DDP times one iteration in a hundred so; where that was held for a second a
 * time, some jobs were never sampled. */
#include "sampler.h"

#define EVENTS    8192u
#define UNREAD    8u /* recorded so often and never read: created with the default flags, no more */
#define READ      0xffu
#define ELSEWHERE UINT32_MAX /* it measures to an event of another stream */

/* Where two handles share a slot, the later one is known. */
static struct {
    uint64_t handle;
    uint32_t records; /* or READ */
    uint32_t at;      /* its newest record, counted in its stream's timing events; 0: none */
    uint32_t reach;   /* so many of them later comes the last end of what begins here; 0: nothing */
    uint16_t stream;
} events[EVENTS];

static struct {
    uint32_t count;  /* timing events recorded */
    uint32_t last;   /* the count at which the intervals that were begun are over */
    uint64_t begun;  /* when the newest of them was; 0: none is open */
    uint64_t unsure; /* when an event was recorded of which nothing is known; 0: none */
} streams[UINT16_MAX + 1];

static unsigned slot_of(const void *event)
{
    return (unsigned)(((uint64_t)(uintptr_t)event * 0x9e3779b97f4a7c15u) >> 51);
}

static bool in_slot(unsigned i, const void *event)
{
    return event && gw_load_relaxed(&events[i].handle) == (uint64_t)(uintptr_t)event;
}

void gw_event_created(const void *event, unsigned flags)
{
    unsigned i = slot_of(event);
    if (flags & 2) { /* CU_EVENT_DISABLE_TIMING */
        if (in_slot(i, event))
            gw_store_relaxed(&events[i].handle, 0);
        return;
    }
    gw_store_relaxed(&events[i].records, 0);
    gw_store_relaxed(&events[i].at, 0);
    gw_store_relaxed(&events[i].reach, 0);
    gw_store_relaxed(&events[i].handle, (uint64_t)(uintptr_t)event);
}

static bool note_read(unsigned i, const void *event)
{
    if (!in_slot(i, event))
        return false;
    gw_store_relaxed(&events[i].records, READ);
    return true;
}

/* Races of two threads that use one event cost one interval's length. */
void gw_events_read(const void *start, const void *end)
{
    unsigned i = slot_of(start), j = slot_of(end);
    bool first = note_read(i, start), last = note_read(j, end);
    if (!first || i == j)
        return;
    /* The interval in which timing began: nothing was seen of its first event. */
    if (!gw_load_relaxed(&events[i].at) || (last && !gw_load_relaxed(&events[j].at)))
        return;
    uint32_t reach = ELSEWHERE, known = gw_load_relaxed(&events[i].reach);
    if (last && gw_load_relaxed(&events[i].stream) == gw_load_relaxed(&events[j].stream)) {
        int32_t between =
            (int32_t)(gw_load_relaxed(&events[j].at) - gw_load_relaxed(&events[i].at));
        reach = between > 0 ? (uint32_t)between : 1; /* else begun anew before it was read */
    }
    if (reach > known)
        gw_store_relaxed(&events[i].reach, reach);
}

bool gw_event_recorded(const void *event, uint16_t stream, uint64_t now)
{
    unsigned i = slot_of(event);
    if (!in_slot(i, event))
        return false;
    uint32_t records = gw_load_relaxed(&events[i].records);
    if (records == UNREAD)
        return true;
    if (records < UNREAD)
        gw_store_relaxed(&events[i].records, records + 1);
    uint32_t count = gw_load_relaxed(&streams[stream].count) + 1;
    uint32_t reach = gw_load_relaxed(&events[i].reach);
    uint32_t last = gw_load_relaxed(&streams[stream].last);
    bool open = gw_load_relaxed(&streams[stream].begun) != 0;
    gw_store_relaxed(&streams[stream].count, count);
    gw_store_relaxed(&events[i].at, count);
    gw_store_relaxed(&events[i].stream, stream);
    if (records == READ && reach && reach != ELSEWHERE) {
        if (!open || (int32_t)(count + reach - last) > 0)
            gw_store_relaxed(&streams[stream].last, count + reach);
        gw_store_relaxed(&streams[stream].begun, now);
    } else if (records == READ && !reach && open) {
        if ((int32_t)(count - last) >= 0)
            gw_store_relaxed(&streams[stream].begun, 0);
    } else
        gw_store_relaxed(&streams[stream].unsure, now);
    return true;
}

bool gw_user_times(uint16_t stream, uint64_t now, uint64_t hold)
{
    uint64_t begun = gw_load_relaxed(&streams[stream].begun);
    uint64_t unsure = gw_load_relaxed(&streams[stream].unsure);
    return (begun && now - begun < hold) || (unsure && now - unsure < hold);
}

void gw_user_timing_reset(void)
{
    memset(events, 0, sizeof events);
    for (unsigned i = 0; i <= UINT16_MAX; i++)
        if (streams[i].count) /* the pages of the others stay untouched */
            memset(&streams[i], 0, sizeof streams[i]);
}
