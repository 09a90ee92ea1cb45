/* From the tally to the figures of each device: kernels, copies, window, provable idle. */
#include "tally.h"
#include "grow.h"
#include "kinds.h"
#include "memory.h"

#include <math.h>

/* One name's launches, while signatures are folded into names. */
struct name_sum {
    uint64_t calls, in_graphs;
    uint64_t shaped, below; /* launches whose grid is known; of those, below the SM count */
    uint64_t timed;         /* launches in the timeline, graphs' included */
    uint64_t guessed;       /* of these, whose function was never timed */
    double ns;              /* theirs */
};

struct names {
    struct name_sum *sums; /* by string id; 0: no name */
    size_t count;
};

static int sum_of(const struct gwa_tally *t, struct names *names, uint32_t signature,
                  struct gwt_signature_info *info, struct name_sum **out)
{
    uint32_t id = gwt_signature(t->trace, signature, info) && info->name ? info->name_id : 0;
    int rc = gwa_grow((void **)&names->sums, &names->count, id, sizeof(*names->sums));
    if (rc == -ERANGE)
        rc = gwa_grow((void **)&names->sums, &names->count, id = 0, sizeof(*names->sums));
    if (!rc)
        *out = &names->sums[id];
    return rc;
}

static int add_kernel(const struct gwa_tally *t, struct names *names, uint32_t signature,
                      uint64_t launches, bool in_graph, uint32_t sms)
{
    struct gwt_signature_info info = {0};
    struct name_sum *s;
    int rc = sum_of(t, names, signature, &info, &s);
    if (rc)
        return rc;
    s->calls += launches;
    if (in_graph)
        s->in_graphs += launches;
    uint64_t blocks = (uint64_t)info.grid[0] * info.grid[1] * info.grid[2];
    if (blocks && sms) {
        s->shaped += launches;
        if (blocks < sms)
            s->below += launches;
    }
    return 0;
}

/* Time on the device, by name. */
static int add_times(const struct gwa_tally *t, struct names *names,
                     const struct gwa_timeline_device *timed)
{
    int rc = 0;
    for (size_t i = 0; timed && i < timed->signatures_count && !rc; i++) {
        const struct gwa_ran *ran = &timed->signatures[i];
        struct gwt_signature_info info = {0};
        struct name_sum *s;
        if (!ran->count && !ran->graph_count)
            continue;
        rc = sum_of(t, names, (uint32_t)i, &info, &s);
        if (rc)
            break;
        s->timed += ran->count + ran->graph_count;
        s->ns += ran->ns + ran->graph_ns;
        if (gwa_durations_signature(t->durations, (uint32_t)i).guessed)
            s->guessed += ran->count + ran->graph_count;
    }
    return rc;
}

/* Kernels are added by name, copies and memsets to the device's. */
static int add_graph(struct gwa_tally *t, struct names *names, struct gwa_device *out,
                     struct gwa_copies in_graphs[GWT_DIR_COUNT], uint32_t id,
                     const struct gwa_graph_tally *g)
{
    struct gwt_graph_info info;
    if (!gwt_graph(t->trace, id, &info)) {
        t->approximate += g->launches;
        return 0;
    }
    t->approximate += info.graph->exact ? g->approximate : g->launches;
    for (uint32_t i = 0; i < info.graph->items; i++) {
        const struct gwt_graph_item *item = &info.items[i];
        uint64_t n = g->launches * item->count;
        int rc;
        switch (item->kind) {
        case GWT_LAUNCH:
            if ((rc = add_kernel(t, names, item->signature, n, true, out->sms)))
                return rc;
            break;
        case GWT_COPY: {
            unsigned direction =
                item->direction < GWT_DIR_COUNT ? item->direction : (unsigned)GWT_DIR_UNKNOWN;
            in_graphs[direction].calls += n;
            in_graphs[direction].bytes += g->launches * item->bytes;
            break;
        }
        case GWT_MEMSET:
            out->memsets.calls += n;
            out->memsets.bytes += g->launches * item->bytes;
            break;
        }
    }
    return 0;
}

/* ---- kernels ------------------------------------------------------------------ */

struct named {
    char *name; /* demangled; NULL: none */
    struct name_sum sum;
};

static int compare_names(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) : !!b - !!a;
}

static int by_name(const void *a, const void *b)
{
    return compare_names(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static int by_time(const void *a, const void *b)
{
    const struct gwa_kernel *x = a, *y = b;
    double left = isnan(x->total_ms) ? 0 : x->total_ms,
           right = isnan(y->total_ms) ? 0 : y->total_ms;
    if (left > right || left < right)
        return left > right ? -1 : 1;
    if (x->calls != y->calls)
        return x->calls > y->calls ? -1 : 1;
    return compare_names(x->name, y->name);
}

/* Different mangled names may read the same (local symbols of several modules): one row. */
static size_t unite(struct named *list, size_t count)
{
    size_t n = 0;
    qsort(list, count, sizeof(*list), by_name);
    for (size_t i = 0; i < count; i++) {
        if (!n || by_name(&list[n - 1], &list[i])) {
            list[n++] = list[i];
            continue;
        }
        list[n - 1].sum.calls += list[i].sum.calls;
        list[n - 1].sum.in_graphs += list[i].sum.in_graphs;
        list[n - 1].sum.shaped += list[i].sum.shaped;
        list[n - 1].sum.below += list[i].sum.below;
        list[n - 1].sum.timed += list[i].sum.timed;
        list[n - 1].sum.guessed += list[i].sum.guessed;
        list[n - 1].sum.ns += list[i].sum.ns;
        free(list[i].name);
    }
    return n;
}

static int name_kernels(const struct gwa_tally *t, const struct names *names, double busy_ns,
                        struct gwa_device *out)
{
    size_t n = 0, used = 0;
    int rc = -ENOMEM;
    for (size_t i = 0; i < names->count; i++)
        n += names->sums[i].calls > 0;
    struct named *list = calloc(n ? n : 1, sizeof(*list));
    out->kernels = calloc(n ? n : 1, sizeof(*out->kernels));
    if (!list || !out->kernels)
        goto out;
    for (size_t i = 0; i < names->count; i++) {
        if (!names->sums[i].calls)
            continue;
        const char *mangled = i ? gwt_string(t->trace, (uint32_t)i) : NULL;
        char *name = mangled ? gwa_demangle(mangled) : NULL;
        if (mangled && !name)
            goto out;
        list[used++] = (struct named){.name = name, .sum = names->sums[i]};
    }
    used = unite(list, used);
    for (size_t i = 0; i < used; i++) {
        const struct name_sum *s = &list[i].sum;
        bool known = s->timed && 2 * s->guessed < s->timed;
        double mean_ns = known ? s->ns / (double)s->timed : NAN;
        out->kernels[i] = (struct gwa_kernel){
            .name = list[i].name,
            .calls = s->calls,
            .in_graphs = s->in_graphs,
            .mean_us = mean_ns / 1e3,
            .total_ms = mean_ns * (double)s->calls / 1e6,
            .busy_pct = 100.0 * mean_ns * (double)s->calls / busy_ns,
            .below_sms_pct = s->shaped ? 100.0 * (double)s->below / (double)s->shaped : NAN,
        };
        out->kernels_executed += s->calls;
        list[i].name = NULL; /* now the kernel's */
    }
    out->kernels_count = used;
    qsort(out->kernels, used, sizeof(*out->kernels), by_time);
    rc = 0;
out:
    for (size_t i = 0; list && i < used; i++)
        free(list[i].name);
    free(list);
    return rc;
}

static int finish_graphs(const struct gwa_tally *t, const struct gwa_timeline_device *timed,
                         struct gwa_device *out)
{
    size_t n = 0;
    for (size_t i = 0; timed && i < timed->graphs_count; i++)
        n += timed->graphs[i].count > 0;
    if (!n)
        return 0;
    out->graphs = calloc(n, sizeof(*out->graphs));
    if (!out->graphs)
        return -ENOMEM;
    for (size_t i = 0; i < timed->graphs_count; i++) {
        const struct gwa_ran *ran = &timed->graphs[i];
        struct gwt_graph_info info;
        if (!ran->count)
            continue;
        struct gwa_graph *g = &out->graphs[out->graphs_count++];
        bool own = gwa_durations_graph(t->durations, (uint32_t)i).own;
        *g = (struct gwa_graph){.id = (uint32_t)i,
                                .launches = ran->count,
                                .mean_us = own ? ran->ns / (double)ran->count / 1e3 : NAN};
        if (!gwt_graph(t->trace, (uint32_t)i, &info))
            continue;
        for (uint32_t k = 0; k < info.graph->items; k++)
            if (info.items[k].kind == GWT_LAUNCH)
                g->kernels += info.items[k].count;
    }
    return 0;
}

static int finish_kernels(struct gwa_tally *t, const struct gwa_device_tally *d,
                          const struct gwa_timeline_device *timed,
                          struct gwa_copies in_graphs[GWT_DIR_COUNT], struct gwa_device *out)
{
    struct names names = {0};
    int rc = 0;
    for (size_t i = 0; i < d->signatures_count && !rc; i++)
        if (d->signatures[i])
            rc = add_kernel(t, &names, (uint32_t)i, d->signatures[i], false, out->sms);
    if (!rc && d->unnamed)
        rc = add_kernel(t, &names, 0, d->unnamed, false, out->sms);
    for (size_t i = 0; i < d->graphs_count && !rc; i++)
        if (d->graphs[i].launches)
            rc = add_graph(t, &names, out, in_graphs, (uint32_t)i, &d->graphs[i]);
    t->approximate += d->lost_graphs.launches;
    if (!rc)
        rc = add_times(t, &names, timed);
    if (!rc)
        rc = name_kernels(t, &names, timed ? gwa_timeline_busy(timed) : NAN, out);
    free(names.sums);
    return rc;
}

/* ---- transfers ------------------------------------------------------------------ */

static int add_transfer(struct gwa_device *out, size_t *room, struct gwa_transfer row)
{
    int rc =
        gwa_reserve((void **)&out->transfers, room, out->transfers_count, sizeof(*out->transfers));
    if (rc)
        return rc;
    out->copies[row.direction].calls += row.calls;
    out->copies[row.direction].bytes += row.bytes;
    out->transfers[out->transfers_count++] = row;
    return 0;
}

static int by_direction(const void *a, const void *b)
{
    const struct gwa_transfer *x = a, *y = b;
    if (x->direction != y->direction)
        return x->direction < y->direction ? -1 : 1;
    if (x->memory != y->memory)
        return x->memory < y->memory ? -1 : 1;
    return (int)x->stream - (int)y->stream;
}

static void time_transfer(const struct gwa_tally *t, struct gwa_transfer *row)
{
    const struct gwa_moved *moved =
        t->timeline ? gwa_timeline_moved(t->timeline, row->stream, row->direction, row->memory)
                    : NULL;
    if (!moved || !(moved->busy_ns > 0))
        return;
    row->busy_ms = moved->busy_ns / 1e6;
    row->gb_per_s = (double)row->bytes / moved->busy_ns;
    row->exposed_pct = 100.0 * moved->exposed_ns / moved->busy_ns;
}

static int finish_transfers(const struct gwa_tally *t, unsigned device,
                            const struct gwa_copies in_graphs[GWT_DIR_COUNT],
                            struct gwa_device *out)
{
    size_t room = 0;
    int rc = 0;
    for (size_t id = 0; id < t->streams_count; id++) {
        const struct gwa_stream_tally *s = &t->streams[id];
        if (!s->transfers || s->device != device)
            continue;
        for (unsigned i = 0; i < GWT_DIR_COUNT * GWA_MEM_COUNT && !rc; i++) {
            unsigned direction = i / GWA_MEM_COUNT, memory = i % GWA_MEM_COUNT;
            const struct gwa_copy_tally *c = &s->transfers[direction][memory];
            if (!c->calls)
                continue;
            struct gwa_transfer row = {
                .direction = (uint8_t)direction,
                .memory = (uint8_t)memory,
                .stream = (uint16_t)id,
                .calls = c->calls,
                .bytes = c->bytes,
                .blocking = c->blocking,
                .blocking_ms = (double)c->blocking_ns / 1e6,
                .gb_per_s =
                    c->blocking_ns ? (double)c->blocking_bytes / (double)c->blocking_ns : NAN,
                .busy_ms = NAN,
                .exposed_pct = NAN,
            };
            time_transfer(t, &row);
            rc = add_transfer(out, &room, row);
        }
    }
    for (unsigned i = 0; i < GWT_DIR_COUNT && !rc; i++)
        if (in_graphs[i].calls)
            rc = add_transfer(out, &room,
                              (struct gwa_transfer){.direction = (uint8_t)i,
                                                    .memory = GWA_MEM_GRAPH,
                                                    .calls = in_graphs[i].calls,
                                                    .bytes = in_graphs[i].bytes,
                                                    .gb_per_s = NAN,
                                                    .busy_ms = NAN,
                                                    .exposed_pct = NAN});
    if (!rc && out->transfers_count)
        qsort(out->transfers, out->transfers_count, sizeof(*out->transfers), by_direction);
    return rc;
}

/* ---- time --------------------------------------------------------------------------- */

/* Lost events may have been submissions. */
static bool idle_is_provable(const struct gwa_tally *t)
{
    const struct gwt_coverage *c = gwt_coverage(t->trace);
    return !c->torn && !c->ring_missing && !c->missing && !c->bad_frames && !c->aggregated &&
           !gwt_counter(t->trace, GWT_C_NO_RING) && !gwt_counter(t->trace, GWT_C_WRITE_ERRNO);
}

static void finish_idle_bound(struct gwa_tally *t, unsigned device,
                              const struct gwa_device_tally *d, int64_t wall,
                              struct gwa_device *out)
{
    if (wall <= 0 || device == GWA_NO_DEVICE || !idle_is_provable(t))
        return;
    int64_t idle = gwa_idle_proven(t->idle, device, d->first, d->last);
    if (idle > wall)
        idle = wall;
    out->time.method = "bounds";
    out->time.provable_idle_s = (double)idle / 1e9;
    out->time.provable_idle_pct = 100.0 * (double)idle / (double)wall;
}

/* Launches of kernels whose function was never timed are so many that no guess bounds their time.
 * post: *ns: as guessed */
static bool is_guesswork(const struct gwa_tally *t, const struct gwa_timeline_device *timed,
                         double *ns)
{
    uint64_t all = 0, guessed = 0;
    *ns = 0;
    for (size_t i = 0; i < timed->signatures_count; i++) {
        const struct gwa_ran *ran = &timed->signatures[i];
        if (gwa_durations_is_comm(t->durations, (uint32_t)i))
            continue;
        all += ran->count + ran->graph_count; /* a graph that was not timed has its own doubt */
        if (!gwa_durations_signature(t->durations, (uint32_t)i).guessed)
            continue;
        guessed += ran->count;
        *ns += ran->ns;
    }
    return (double)guessed > GWA_GUESSED_MOST * (double)all;
}

/* By so much of the time blocking calls move what is right on the average: 13 % at most in 200
 * programs of the simulator, 9 in PyTorch's. More shows a model that lost its way. */
#define MOVED_MOST 0.15

/* Where busy time lies, most likely: statistical error of the durations, what all kernels may
 * be off together, and what blocking calls showed that the model does not explain. */
static void busy_interval(const struct gwa_tally *t, const struct gwa_timeline_device *timed,
                          struct gwa_time *time)
{
    double wall = timed->sweep.sums.wall, busy = gwa_timeline_busy(timed);
    double share = timed->ns > busy ? busy / timed->ns : 1; /* of operations that overlap */
    double below, above, spread = 2 * sqrt(timed->error2) * share;
    gwa_durations_doubt(t->durations, &below, &above);
    double other = timed->excess_ns + timed->sweep.late_ns + timed->graphs_doubt_ns * share;
    other += fmax(timed->residual_ns - MOVED_MOST * wall, 0);
    double low = busy - spread - below * timed->kernels * share - other;
    double high = busy + spread + above * timed->kernels * share + other;
    double guessed;
    time->guesswork = is_guesswork(t, timed, &guessed);
    if (time->guesswork) { /* then only what proves that it idled bounds it from above */
        low -= guessed * share;
        high = time->provable_idle_pct > 0 ? wall * (1 - time->provable_idle_pct / 100) : wall;
    }
    time->busy_low_pct = low > 0 ? 100 * low / wall : 0;
    time->busy_high_pct = high < wall ? 100 * high / wall : 100;
}

static int finish_gaps(const struct gwa_tally *t, const struct gwa_sums *sums,
                       struct gwa_device *out)
{
    double wall = sums->wall;
    int64_t began = (int64_t)gwt_header(t->trace)->start.monotonic_ns;
    out->gaps_by_length =
        (struct gwa_gap_bands){.over_100us_pct = 100 * sums->band[GWA_OVER_100US] / wall,
                               .mid_pct = 100 * sums->band[GWA_10_TO_100US] / wall,
                               .under_10us_pct = 100 * sums->band[GWA_UNDER_10US] / wall};
    out->gaps = calloc(GWA_GAPS, sizeof(*out->gaps));
    if (!out->gaps)
        return -ENOMEM;
    for (size_t i = 0; i < sums->gaps_count; i++)
        out->gaps[out->gaps_count++] =
            (struct gwa_idle_gap){.start_s = (double)(sums->gaps[i].start - began) / 1e9,
                                  .ms = (double)sums->gaps[i].ns / 1e6};
    return 0;
}

static int finish_sampled(const struct gwa_tally *t, unsigned device,
                          const struct gwa_timeline_device *timed, struct gwa_device *out)
{
    const struct gwa_sums *sums = &timed->sweep.sums;
    const struct gwa_sweep *sweep = &timed->sweep;
    struct gwa_time *time = &out->time;
    double wall = sums->wall;
    out->window.wall_s = wall / 1e9;
    time->method = "sampled";
    time->compute_pct = 100 * sums->time[GWA_COMPUTE] / wall;
    time->exposed_comm_pct = 100 * sums->time[GWA_COMM] / wall;
    time->exposed_copy_pct = 100 * sums->time[GWA_COPY] / wall;
    time->idle_pct = 100 * sums->idle / wall;
    time->provable_idle_pct = 100 * time->provable_idle_s * 1e9 / wall;
    if (time->provable_idle_pct > 100)
        time->provable_idle_pct = 100;
    busy_interval(t, timed, time);
    time->nvidia_smi_pct =
        sweep->cells.count ? 100.0 * (double)sweep->kernel_cells.count / (double)sweep->cells.count
                           : NAN;
    for (unsigned i = 0; i < GWA_COMM_OPS; i++)
        out->comm[i] = (struct gwa_comm_use){.busy_ms = timed->comm[i].busy_ns / 1e6,
                                             .exposed_ms = timed->comm[i].exposed_ns / 1e6,
                                             .exposed_wait_ms = timed->comm[i].waited_ns / 1e6};
    time->sampled_share_pct = timed->ns > 0 ? 100 * timed->own_ns / timed->ns : NAN;
    time->anchor_residual_pct = timed->anchors > 0 ? 100 * timed->residual_ns / wall : NAN;
    if (timed->launches) {
        out->queue_us = gwa_times_us(&timed->queue);
        out->met_idle_pct = 100.0 * (double)timed->met_idle / (double)timed->launches;
    }
    int rc = finish_gaps(t, sums, out);
    return rc ? rc : gwa_attribution_finish(t->attribution, out, device, sums);
}

/* What counts are of and times are not: warm-up, most of it. */
static double left_out(const struct gwa_tally *t, int64_t first, int64_t last, double wall_s)
{
    if (!t->windowed || first >= last)
        return NAN;
    double all = (double)gwa_ranges_overlap(&t->ranges, first, last) / 1e9;
    return all > wall_s ? all - wall_s : 0;
}

static int finish_time(struct gwa_tally *t, unsigned device, const struct gwa_device_tally *d,
                       const struct gwa_timeline_device *timed, struct gwa_device *out)
{
    out->window = (struct gwa_window){.wall_s = NAN, .excluded_s = NAN};
    out->time = (struct gwa_time){.compute_pct = NAN,
                                  .exposed_comm_pct = NAN,
                                  .exposed_copy_pct = NAN,
                                  .idle_pct = NAN,
                                  .drained_pct = NAN,
                                  .busy_low_pct = NAN,
                                  .busy_high_pct = NAN,
                                  .provable_idle_pct = NAN,
                                  .provable_idle_s = NAN,
                                  .nvidia_smi_pct = NAN,
                                  .sampled_share_pct = NAN,
                                  .anchor_residual_pct = NAN};
    for (unsigned i = 0; i < GWA_IDLE_CLASS_COUNT; i++)
        out->time.idle[i] = NAN;
    for (unsigned i = 0; i < GWA_PHASE_COUNT; i++)
        out->by_phase[i] = (struct gwa_by_phase){NAN, NAN};
    out->queue_us = (struct gwa_times){NAN, NAN, NAN, NAN};
    out->met_idle_pct = NAN;
    out->gaps_by_length = (struct gwa_gap_bands){NAN, NAN, NAN};
    if (!d->operated)
        return 0;
    int64_t wall = gwa_ranges_overlap(&t->window, d->first, d->last);
    out->window.wall_s = (double)wall / 1e9;
    finish_idle_bound(t, device, d, wall, out);
    int rc = timed && timed->sweep.sums.wall > 0 ? finish_sampled(t, device, timed, out) : 0;
    out->window.excluded_s = left_out(t, d->first, d->last, out->window.wall_s);
    return rc;
}

static bool worth_a_row(const struct gwa_device_tally *d)
{
    return d && (d->operated || d->reported);
}

int gwa_finish_devices(struct gwa_tally *t, struct gwa_process *p)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    int rc = 0;
    p->devices = calloc(GWA_DEVICES, sizeof(*p->devices));
    if (!p->devices)
        return -ENOMEM;
    for (unsigned i = 0; i < GWA_DEVICES && !rc; i++) {
        struct gwa_device_tally *d = t->devices[i];
        if (!worth_a_row(d))
            continue;
        struct gwa_device *out = &p->devices[p->devices_count++];
        struct gwa_copies in_graphs[GWT_DIR_COUNT] = {0};
        out->index = i == GWA_NO_DEVICE ? -1 : (int)i;
        const struct gwt_def_device *def = gwt_device(t->trace, i, &out->name);
        if (def) {
            out->sms = def->sms;
            out->memory_bytes = def->memory_bytes;
            out->pcie_gen = def->pcie_gen;
            out->pcie_width = def->pcie_width;
        } else {
            out->name = NULL;
        }
        out->memsets = d->memsets;
        out->prefetches = d->prefetches;
        gwa_tally_held(t, d, t->end);
        gwa_memory_unknown(&out->memory);
        out->memory.peak_allocated_bytes = d->peak_allocated;
        out->memory.peak_reserved_bytes = d->peak_reserved;
        const struct gwa_timeline_device *timed =
            t->timeline ? gwa_timeline_of(t->timeline, i) : NULL;
        if ((rc = finish_graphs(t, timed, out)) ||
            (rc = finish_kernels(t, d, timed, in_graphs, out)) ||
            (rc = finish_transfers(t, i, in_graphs, out)) ||
            (rc = finish_time(t, i, d, timed, out)))
            break;
        if (d->operated && d->first < first)
            first = d->first;
        if (d->operated && d->last > last)
            last = d->last;
    }
    p->window.wall_s =
        first < last ? (double)gwa_ranges_overlap(&t->window, first, last) / 1e9 : NAN;
    p->window.excluded_s = left_out(t, first, last, p->window.wall_s);
    return rc;
}
