/* From events to tokens. */
#include "kinds.h"
#include "steps_internal.h"

#include <string.h>

static size_t slot_of(const struct gwa_symset *set, uint32_t sym)
{
    size_t i = (size_t)((sym * 0x9e3779b1u) >> 20) % GWA_SET_SIZE;
    while (set->slots[i] && set->slots[i] != sym)
        i = (i + 1) % GWA_SET_SIZE;
    return i;
}

bool gwa_symset_has(const struct gwa_symset *set, uint32_t sym)
{
    return set->slots[slot_of(set, sym)] == sym;
}

void gwa_symset_add(struct gwa_symset *set, uint32_t sym)
{
    size_t i = slot_of(set, sym);
    if (set->slots[i] || set->count >= GWA_SET_SIZE / 2)
        return;
    set->slots[i] = sym;
    set->count++;
}

int gwa_steps_thread(struct gwa_steps *s, uint32_t id, struct gwa_steps_thread **out)
{
    *out = NULL;
    int rc = gwa_grow((void **)&s->threads, &s->threads_count, id, sizeof(*s->threads));
    if (rc)
        return rc == -ERANGE ? 0 : rc;
    struct gwa_steps_thread *t = *out = &s->threads[id];
    if (t->known)
        return 0;
    struct gwt_thread_info info;
    t->known = true;
    t->step = UINT32_MAX;
    t->autograd = gwt_thread(s->trace, id, &info) && info.name &&
                  !strncmp(info.name, "pt_autograd", strlen("pt_autograd"));
    t->index = UINT16_MAX;
    if (s->thread_indices < sizeof(s->thread_ids) / sizeof(*s->thread_ids)) {
        t->index = (uint16_t)s->thread_indices;
        s->thread_ids[s->thread_indices++] = id;
    }
    return 0;
}

int gwa_steps_launch_sym(struct gwa_steps *s, uint32_t signature, uint32_t *out)
{
    int rc = gwa_grow((void **)&s->syms, &s->syms_count, signature, sizeof(*s->syms));
    *out = GWA_SYM(GWA_SYM_UNNAMED, 0);
    if (rc)
        return rc == -ERANGE ? 0 : rc;
    if (!s->syms[signature]) {
        struct gwt_signature_info info;
        s->syms[signature] =
            gwt_signature(s->trace, signature, &info) && info.name_id && info.name_id < GWA_ID_MAX
                ? GWA_SYM(GWA_SYM_LAUNCH, info.name_id)
                : GWA_SYM(GWA_SYM_UNNAMED, signature);
    }
    *out = s->syms[signature];
    return 0;
}

int gwa_steps_graph_kernels(struct gwa_steps *s, uint32_t id, uint32_t *out)
{
    int rc = gwa_grow((void **)&s->graph_kernels, &s->graph_kernels_count, id,
                      sizeof(*s->graph_kernels));
    *out = 0;
    if (rc)
        return rc == -ERANGE ? 0 : rc;
    if (!s->graph_kernels[id]) {
        struct gwt_graph_info info;
        uint64_t sum = 0;
        if (gwt_graph(s->trace, id, &info))
            for (uint32_t i = 0; i < info.graph->items; i++)
                sum += info.items[i].kind == GWT_LAUNCH ? info.items[i].count : 0;
        s->graph_kernels[id] = (sum < UINT32_MAX - 1 ? (uint32_t)sum : UINT32_MAX - 2) + 1;
    }
    *out = s->graph_kernels[id] - 1;
    return 0;
}

#define NUMBER_BYTES 16u /* a copy of so few is of a number or two */

static uint32_t copy_sym(const struct gwt_event *e)
{
    unsigned direction = GWT_F_SUB(e->flags);
    if ((!e->value && e->arg <= 1) || direction == GWT_H2H)
        return 0;
    unsigned pageable = direction == GWT_H2D && e->flags & GWT_F_PAGEABLE;
    unsigned bytes = e->value <= NUMBER_BYTES ? (unsigned)e->value : 0;
    return GWA_SYM(GWA_SYM_COPY, bytes << 8 | pageable << 7 | direction);
}

int gwa_steps_token(struct gwa_steps *s, const struct gwt_event *e, struct gwa_token *out)
{
    struct gwa_steps_thread *t;
    int rc = 0;
    out->sym = out->shape = 0;
    switch (e->kind) {
    case GWT_LAUNCH:
    case GWT_GRAPH_LAUNCH:
    case GWT_COPY:
    case GWT_MEMSET:
    case GWT_NCCL:
        break;
    default:
        return 0;
    }
    if (!gwa_executed(e))
        return 0;
    if (e->thread < s->threads_count && s->threads[e->thread].known)
        t = &s->threads[e->thread];
    else if ((rc = gwa_steps_thread(s, e->thread, &t)))
        return rc;
    if (t && t->autograd) {
        out->sym = GWA_BACKWARD;
    } else if (e->kind == GWT_LAUNCH) {
        out->shape = e->arg;
        if (e->arg < s->syms_count && s->syms[e->arg])
            out->sym = s->syms[e->arg];
        else if ((rc = gwa_steps_launch_sym(s, e->arg, &out->sym)))
            return rc;
    } else if (e->kind == GWT_GRAPH_LAUNCH) {
        out->sym = GWA_SYM(GWA_SYM_GRAPH, e->arg);
        if ((rc = gwa_steps_graph_kernels(s, e->arg, &out->shape)))
            return rc;
    } else if (e->kind == GWT_COPY) {
        out->sym = copy_sym(e);
    } else if (e->kind == GWT_MEMSET) {
        out->sym = e->value ? GWA_SYM(GWA_SYM_MEMSET, 0) : 0;
    } else {
        out->sym = GWA_SYM(GWA_SYM_NCCL, e->api);
    }
    out->t0 = e->t0_ns;
    out->end = e->t1_ns;
    out->thread = t ? t->index : UINT16_MAX;
    out->waits = gwa_waits_for_copy(e);
    return 0;
}
