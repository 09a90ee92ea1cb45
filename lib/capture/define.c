/* The definition log: names, signatures, streams ... appended once, when first met.
 *
 * Its newest bytes live in a window of the ring file, so that a killed job's last names
 * are not lost; the drain thread moves them into the dump. Entries never straddle what
 * the drain takes at once: it always takes everything up to head. */
#include "gw.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#define LEFT_MAPPED (256u << 10) /* of what was drained, in the window */

static uint32_t lock_word;

/* Held for microseconds and only by first-time work, so it spins, and yields in case the
 * holder was preempted on this core. Who holds it is busy: a signal handler's call that wanted
 * it, too, would wait for the thread that it interrupts. */
void gw_lock(void)
{
    uint32_t spins = 0;
    gw_local.busy++;
    gw_fence_signal();
    for (;;) {
        uint32_t free_word = 0;
        /* Partner: the release in gw_unlock(). */
        if (gw_cas(&lock_word, &free_word, 1))
            return;
        if (++spins < 64)
            gw_pause();
        else
            sched_yield();
    }
}

void gw_unlock(void)
{
    gw_store_release(&lock_word, 0);
    gw_fence_signal();
    gw_local.busy--;
}

void gw_lock_reset(void)
{
    lock_word = 0;
}

/* The window is mapped right after the slots; gw_header tells where. Before the ring file
 * exists there is no window, and nothing to define. */
static uint8_t *window(void)
{
    return gw_header->deflog_size ? (uint8_t *)gw_header + gw_header->deflog_offset : NULL;
}

static void copy_in(uint64_t position, const void *from, size_t size)
{
    uint8_t *w = window();
    size_t at = position & (GWT_DEFLOG_SIZE - 1), first = GWT_DEFLOG_SIZE - at;
    if (!size) /* nor is there anything to copy from */
        return;
    if (first > size)
        first = size;
    memcpy(w + at, from, first);
    memcpy(w, (const uint8_t *)from + first, size - first);
}

bool gw_define(enum gwt_def_type type, uint32_t id, const void *fixed, size_t fixed_size,
               const void *rest, size_t rest_size)
{
    struct gwt_def d = {
        .type = (uint16_t)type, .size = (uint32_t)(fixed_size + rest_size), .id = id};
    uint64_t head = gw_header->deflog_head;
    size_t total = (sizeof d + fixed_size + rest_size + 7) & ~(size_t)7;
    /* Partner: the drain's release store of deflog_tail. */
    uint64_t used = head - gw_load_acquire(&gw_header->deflog_tail);
    if (!window() || total > GWT_DEFLOG_SIZE - used) {
        gw_count(GWT_C_DEFINITIONS_LOST, 1);
        return false;
    }
    static const uint8_t zeros[8];
    copy_in(head, &d, sizeof d);
    copy_in(head + sizeof d, fixed, fixed_size);
    copy_in(head + sizeof d + fixed_size, rest, rest_size);
    copy_in(head + sizeof d + fixed_size + rest_size, zeros,
            total - sizeof d - fixed_size - rest_size);
    /* Publishes the entry; partner: gw_define_pending() and readers of a live ring. */
    gw_store_release(&gw_header->deflog_head, head + total);
    return true;
}

size_t gw_define_pending(uint64_t *first)
{
    *first = gw_header->deflog_tail;
    return (size_t)(gw_load_acquire(&gw_header->deflog_head) - *first);
}

void gw_define_copy(uint64_t first, void *out, size_t size)
{
    const uint8_t *w = window();
    size_t at = first & (GWT_DEFLOG_SIZE - 1), part = GWT_DEFLOG_SIZE - at;
    if (part > size)
        part = size;
    memcpy(out, w + at, part);
    memcpy((uint8_t *)out + part, w, size - part);
}

/* The window goes round through memory of the program's: what is in the dump leaves it again. In
 * the file it stays, and what is stored there meanwhile. */
void gw_define_drained(uint64_t first, size_t size)
{
    uint64_t from = first / LEFT_MAPPED, to = (first + size) / LEFT_MAPPED;
    for (; from < to; from++)
        madvise(window() + from * LEFT_MAPPED % GWT_DEFLOG_SIZE, LEFT_MAPPED, MADV_DONTNEED);
    /* Partner: gw_define()'s acquire load. */
    gw_store_release(&gw_header->deflog_tail, first + size);
}

static uint32_t last_string;

uint32_t gw_string(const char *text, size_t size)
{
    if (!gw_define(GWT_DEF_STRING, last_string + 1, NULL, 0, text, size))
        return 0;
    return ++last_string;
}

/* An id whose text follows later, by gw_string_set(). */
uint32_t gw_string_reserve(void)
{
    return ++last_string;
}

bool gw_string_set(uint32_t id, const char *text, size_t size)
{
    return gw_define(GWT_DEF_STRING, id, NULL, 0, text, size);
}

void gw_define_reset(void)
{
    last_string = 0;
}
