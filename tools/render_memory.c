/* Device memory and the calls that take it, for the report as text. */
#include "render_parts.h"
#include "text.h"
#include "tool.h"

#include <math.h>
#include <stdlib.h>

/* Bytes from a signed or real figure; false: not known. */
static bool bytes(char *out, double v)
{
    if (!(v >= 0 && v < 1e18))
        return false;
    text_bytes(out, (uint64_t)v);
    return true;
}

static void peak(const struct page *page, const struct gwa_device_memory *m)
{
    char a[TEXT_NUMBER], note[80] = "";
    if (bytes(a, (double)m->peak_reserved_bytes))
        snprintf(note, sizeof(note), "allocated; %s reserved", a);
    if (bytes(a, (double)m->peak_allocated_bytes))
        page_line(page, "PyTorch peak", a, note);
    else
        page_line(page, "PyTorch peak", "n/a", "its allocator reported nothing");
}

/* What rests on steps. */
static void by_step(const struct page *page, const struct gwa_device_memory *m)
{
    char n[TEXT_NUMBER], of[TEXT_NUMBER], note[80] = "";
    if (bytes(n, (double)m->baseline_bytes))
        page_line(page, "kept between steps", n, "weights, optimizer, what is held");
    if (bytes(n, (double)m->activation_bytes))
        page_line(page, "activations", n, "highest of a step over what is kept");
    if (bytes(n, (double)m->headroom_bytes)) {
        if (!m->from_reserved && bytes(of, (double)m->capacity_bytes))
            snprintf(note, sizeof(note), "of the %s left to this process", of);
        page_line(page, "headroom", n,
                  m->from_reserved ? "if no other process uses the GPU" : note);
    }
    if (m->batch_multiplier > 1) {
        bool most = m->batch_multiplier > GWA_MULTIPLIER_MOST;
        char *times =
            xprintf(most ? "> x %s" : "x %s",
                    text_fixed(n, most ? GWA_MULTIPLIER_MOST : m->batch_multiplier, most ? 0 : 1));
        page_line(page, "batch might be", times, "as large, to 90 % of the headroom");
        free(times);
    }
    note[0] = 0;
    if (m->steps_to_full >= 0) {
        char *steps = xprintf("full in about %s steps",
                              m->steps_to_full < 1e15 ? text_count(n, (uint64_t)m->steps_to_full)
                                                      : "very many");
        snprintf(note, sizeof(note), "%s", steps);
        free(steps);
    }
    if (m->growth_bytes_per_step > 0 && bytes(n, m->growth_bytes_per_step))
        page_line(page, "growth a step", n, note);
    if (m->allocs_per_step > 0 || m->frees_per_step > 0 || m->host_allocs_per_step > 0) {
        char frees[TEXT_NUMBER], host[TEXT_NUMBER], ms[TEXT_NUMBER];
        char *text = xprintf("frees %s, pinned %s; %s", text_short(frees, m->frees_per_step),
                             text_short(host, m->host_allocs_per_step),
                             text_us(ms, m->alloc_ms_per_step * 1e3));
        page_line(page, "allocations a step", text_short(n, m->allocs_per_step), text);
        free(text);
    }
}

static void device(const struct page *page, const struct gwa_process *p, const struct gwa_device *d)
{
    const struct gwa_device_memory *m = &d->memory;
    char n[TEXT_NUMBER], ms[TEXT_NUMBER];
    if (p->devices_count > 1)
        fprintf(page->out, "  %s\n", WORD_GPU(d->index));
    peak(page, m);
    if (p->steps.count)
        by_step(page, m);
    if (m->retries) {
        char *note = xprintf("that ran out first; %s", text_us(ms, m->retry_ms * 1e3));
        page_line(page, "allocations retried", text_count(n, m->retries), note);
        free(note);
    }
}

static bool known(const struct gwa_process *p)
{
    for (size_t i = 0; i < p->devices_count; i++) {
        const struct gwa_device_memory *m = &p->devices[i].memory;
        if (m->peak_allocated_bytes >= 0 || m->retries ||
            (p->steps.count && m->activation_bytes >= 0))
            return true;
    }
    return false;
}

void part_memory(const struct page *page, const struct gwa_process *p)
{
    static const unsigned kinds[] = {GWT_ALLOC, GWT_FREE, GWT_HOST_ALLOC, GWT_HOST_FREE};
    static const char *const names[] = {"", "", "  (host)", "  (host)"};
    const struct gwa_allocations *a = &p->allocations;
    bool calls = a->calls || a->failed || a->frees;
    if (!calls && !known(p))
        return;
    page_heading(page, "Memory");
    for (size_t i = 0; i < p->devices_count; i++)
        device(page, p, &p->devices[i]);
    if (calls) {
        if (p->devices_count)
            fputc('\n', page->out);
        part_calls(page, p, names, kinds, 4, false);
    }
}
