#include "truth.h"

#include "core.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct row {
    int64_t start, end;
    uint64_t bytes;
    const void *stream;
    uint32_t name;
    uint8_t type, device, direction;
    bool pageable;
};

struct name {
    char *text;
    uint64_t hash;
    uint64_t executed;
    uint64_t ns;
};

static struct row *rows;
static size_t nrows, row_room;
static struct name *names; /* id 0 is no name */
static uint32_t nnames, name_room;
static uint32_t *name_table; /* open addressing, ids */
static uint32_t name_slots;
static struct sim_api *apis;
static struct {
    uint64_t calls, bytes;
} copies[DIR_COUNT][2], memsets;
static struct {
    char op[32];
    uint64_t calls, bytes;
} nccl[32];
static uint64_t peak_allocated, peak_reserved;
static unsigned in_range;
static bool ranged;

static const char *const kind_names[SIM_K_COUNT] = {
#define X(name, pre, post) [SIM_K_##name] = #name,
    SIM_KINDS(X)
#undef X
};
static const char *const direction_names[DIR_COUNT] = {"H2D", "D2H", "D2D", "P2P", "H2H"};

bool sim_truth_active(void)
{
    return !__atomic_load_n(&ranged, __ATOMIC_RELAXED) ||
           __atomic_load_n(&in_range, __ATOMIC_RELAXED);
}

/* ---- names --------------------------------------------------------------------------- */

static void table_put(uint32_t id)
{
    uint32_t i = (uint32_t)names[id].hash & (name_slots - 1);
    while (name_table[i])
        i = (i + 1) & (name_slots - 1);
    name_table[i] = id;
}

uint32_t sim_truth_name(const char *text)
{
    uint64_t hash = sim_hash_text(text);
    if (name_slots) {
        for (uint32_t i = (uint32_t)hash & (name_slots - 1); name_table[i];
             i = (i + 1) & (name_slots - 1))
            if (names[name_table[i]].hash == hash && !strcmp(names[name_table[i]].text, text))
                return name_table[i];
    }
    if (!nnames)
        nnames = 1;
    if (nnames >= name_room) {
        name_room = name_room ? name_room * 2 : 256;
        names = sim_grow(names, name_room * sizeof *names);
        name_slots = name_room * 2;
        free(name_table);
        name_table = calloc(name_slots, sizeof *name_table);
        if (!name_table)
            abort();
        for (uint32_t id = 1; id < nnames; id++)
            table_put(id);
    }
    names[nnames] = (struct name){.text = strdup(text), .hash = hash};
    table_put(nnames);
    return nnames++;
}

const char *sim_truth_name_text(uint32_t id)
{
    return id && id < nnames ? names[id].text : "";
}

bool sim_truth_ignores(const char *name)
{
    return *sim_cfg.ignore && !strncmp(name, sim_cfg.ignore, strlen(sim_cfg.ignore));
}

/* ---- counting ------------------------------------------------------------------------- */

void sim_truth_list(struct sim_api *api)
{
    api->next = apis;
    apis = api;
}

void sim_truth_kernel(uint32_t name)
{
    if (sim_truth_active())
        names[name].executed++;
}

void sim_truth_copy(enum sim_direction direction, bool pageable, uint64_t bytes)
{
    if (!sim_truth_active())
        return;
    copies[direction][pageable].calls++;
    copies[direction][pageable].bytes += bytes;
}

void sim_truth_memset(uint64_t bytes)
{
    if (!sim_truth_active())
        return;
    memsets.calls++;
    memsets.bytes += bytes;
}

void sim_truth_op(const struct sim_op *op)
{
    if (op->own || !op->counted)
        return;
    if (op->type != OP_KERNEL && op->type != OP_COPY && op->type != OP_MEMSET)
        return;
    if (nrows == row_room) {
        row_room = row_room ? row_room * 2 : 4096;
        rows = sim_grow(rows, row_room * sizeof *rows);
    }
    rows[nrows++] = (struct row){.start = op->start,
                                 .end = op->end,
                                 .bytes = op->bytes,
                                 .stream = op->stream,
                                 .name = op->name,
                                 .type = op->type,
                                 .device = op->device,
                                 .direction = op->direction,
                                 .pageable = op->pageable};
    if (op->name)
        names[op->name].ns += (uint64_t)(op->end - op->start);
    sim_truth_meetings(op);
}

void sim_truth_allocator(uint64_t allocated, uint64_t reserved)
{
    sim_lock();
    if (sim_truth_active()) {
        if (allocated > peak_allocated)
            peak_allocated = allocated;
        if (reserved > peak_reserved)
            peak_reserved = reserved;
    }
    sim_unlock();
}

void sim_truth_nccl(const char *op, uint64_t bytes)
{
    sim_lock();
    for (unsigned i = 0; sim_truth_active() && i < 32; i++) {
        if (nccl[i].calls && strcmp(nccl[i].op, op))
            continue;
        snprintf(nccl[i].op, sizeof nccl[i].op, "%s", op);
        nccl[i].calls++;
        nccl[i].bytes += bytes;
        break;
    }
    sim_unlock();
}

enum figure { CALLED, FAILED, CAPTURED };

static uint64_t figure(const struct sim_api *a, enum figure f)
{
    return f == FAILED ? a->failed : f == CAPTURED ? a->captured : a->calls;
}

static uint64_t sum(unsigned kind, enum figure f)
{
    uint64_t n = 0;
    for (struct sim_api *a = apis; a; a = a->next)
        if (a->kind == kind)
            n += figure(a, f);
    return n;
}

static uint64_t get(const char *key)
{
    char op[32], field[32];
    uint64_t n = 0;
    if (!strncmp(key, "kernel:", 7)) {
        for (uint32_t i = 1; i < nnames; i++)
            if (!strcmp(names[i].text, key + 7))
                return names[i].executed;
    } else if (!strncmp(key, "api:", 4)) {
        for (struct sim_api *a = apis; a; a = a->next)
            if (!strcmp(a->name, key + 4))
                n += a->calls;
    } else if (sscanf(key, "copies.%3[^.].%31s", op, field) == 2) {
        for (unsigned d = 0; d < DIR_COUNT; d++)
            if (!strcmp(direction_names[d], op))
                return !strcmp(field, "calls")            ? copies[d][0].calls + copies[d][1].calls
                       : !strcmp(field, "bytes")          ? copies[d][0].bytes + copies[d][1].bytes
                       : !strcmp(field, "pageable_calls") ? copies[d][1].calls
                                                          : copies[d][1].bytes;
    } else if (sscanf(key, "nccl:%31[^.].%31s", op, field) == 2) {
        for (unsigned i = 0; i < 32; i++)
            if (!strcmp(nccl[i].op, op))
                return !strcmp(field, "calls") ? nccl[i].calls : nccl[i].bytes;
    } else if (!strcmp(key, "kernels")) {
        for (uint32_t i = 1; i < nnames; i++)
            n += names[i].executed;
    } else if (!strcmp(key, "launches")) {
        n = sum(SIM_K_LAUNCH, CALLED);
    } else if (!strcmp(key, "failed")) {
        n = sum(SIM_K_LAUNCH, FAILED);
    } else if (!strcmp(key, "graph_launches")) {
        n = sum(SIM_K_GRAPH_LAUNCH, CALLED);
    } else if (!strcmp(key, "syncs")) {
        n = sum(SIM_K_SYNC, CALLED);
    } else if (!strcmp(key, "allocations")) {
        n = sum(SIM_K_ALLOC, CALLED) + sum(SIM_K_HOST_ALLOC, CALLED);
    } else if (!strcmp(key, "frees")) {
        n = sum(SIM_K_FREE, CALLED) + sum(SIM_K_HOST_FREE, CALLED);
    } else if (!strcmp(key, "captured")) {
        n = sum(SIM_K_LAUNCH, CAPTURED);
    } else if (!strcmp(key, "memset_calls")) {
        n = memsets.calls;
    } else if (!strcmp(key, "memset_bytes")) {
        n = memsets.bytes;
    } else if (!strcmp(key, "peak_allocated_bytes")) {
        n = peak_allocated;
    }
    return n;
}

SIM_EXPORT uint64_t sim_truth_get(const char *key)
{
    sim_lock();
    uint64_t n = get(key);
    sim_unlock();
    return n;
}

static void clear(void)
{
    nrows = 0;
    sim_truth_forget_meetings();
    for (uint32_t i = 1; i < nnames; i++)
        names[i].executed = names[i].ns = 0;
    for (struct sim_api *a = apis; a; a = a->next)
        a->calls = a->failed = a->captured = a->wait_ns = 0;
    memset(copies, 0, sizeof copies);
    memset(&memsets, 0, sizeof memsets);
    memset(nccl, 0, sizeof nccl);
    peak_allocated = peak_reserved = 0;
}

void sim_truth_forget(void)
{
    clear();
}

SIM_EXPORT void sim_range_begin(void)
{
    sim_lock();
    if (!ranged) {
        clear();
        ranged = true;
    }
    in_range++;
    sim_unlock();
}

SIM_EXPORT void sim_range_end(void)
{
    sim_lock();
    if (in_range)
        in_range--;
    sim_unlock();
}

/* ---- writing -------------------------------------------------------------------------- */

static void put_text(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            fputc('\\', f);
        if ((unsigned char)*s < 0x20)
            fprintf(f, "\\u%04x", *s);
        else
            fputc(*s, f);
    }
    fputc('"', f);
}

static int by_start(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* compute, communication, copies: the first of these that runs owns the moment */
static unsigned class_of(const struct row *r)
{
    if (r->type != OP_KERNEL)
        return 2;
    return strstr(sim_truth_name_text(r->name), "ncclDevKernel") != NULL;
}

struct edge {
    int64_t t;
    int8_t step;
    uint8_t class;
};

static int by_time(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return x->t < y->t ? -1 : x->t > y->t;
}

/* pre: rows sorted by start */
static void put_device(FILE *f, unsigned device)
{
    int64_t first = SIM_NEVER, last = 0, busy_end = 0, busy = 0, gaps[3] = {0};
    uint64_t ngaps[3] = {0};
    size_t n = 0;
    for (size_t i = 0; i < nrows; i++) {
        const struct row *r = &rows[i];
        if (r->device != device)
            continue;
        if (!n++)
            first = busy_end = r->start;
        if (r->start > busy_end) {
            int64_t gap = r->start - busy_end;
            unsigned band = gap > 100000 ? 0 : gap >= 10000 ? 1 : 2;
            gaps[band] += gap;
            ngaps[band]++;
        }
        int64_t from = r->start > busy_end ? r->start : busy_end;
        if (r->end > from)
            busy += r->end - from;
        if (r->end > busy_end)
            busy_end = r->end;
        last = busy_end;
    }
    double span = n ? (double)(last - first) : 0, pct = span > 0 ? 100.0 / span : 0;
    int64_t classes[3] = {0};
    struct edge *edges = n ? malloc(2 * n * sizeof *edges) : NULL;
    if (edges) {
        size_t m = 0;
        for (size_t i = 0; i < nrows; i++) {
            if (rows[i].device != device)
                continue;
            edges[m++] = (struct edge){rows[i].start, 1, (uint8_t)class_of(&rows[i])};
            edges[m++] = (struct edge){rows[i].end, -1, (uint8_t)class_of(&rows[i])};
        }
        qsort(edges, m, sizeof *edges, by_time);
        int on[3] = {0};
        for (size_t i = 0; i < m; i++) {
            on[edges[i].class] += edges[i].step;
            int64_t d = i + 1 < m ? edges[i + 1].t - edges[i].t : 0;
            for (unsigned c = 0; c < 3; c++)
                if (on[c]) {
                    classes[c] += d;
                    break;
                }
        }
        free(edges);
    }
    fprintf(f,
            "\"operations\": %zu, \"span_ms\": %.6f, \"first_ns\": %" PRId64
            ", \"last_ns\": %" PRId64 ", \"busy_pct\": %.6f",
            n, span / 1e6, n ? first : 0, last, (double)busy * pct);
    fprintf(f,
            ", \"gap_bands\": {\"over_100us_pct\": %.6f, \"10_to_100us_pct\": %.6f, "
            "\"under_10us_pct\": %.6f}",
            (double)gaps[0] * pct, (double)gaps[1] * pct, (double)gaps[2] * pct);
    fprintf(f, ", \"gap_counts\": [%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", ngaps[0], ngaps[1],
            ngaps[2]);
    fprintf(f,
            ", \"time\": {\"compute_pct\": %.6f, \"exposed_comm_pct\": %.6f, "
            "\"exposed_copy_pct\": %.6f, \"idle_pct\": %.6f}",
            (double)classes[0] * pct, (double)classes[1] * pct, (double)classes[2] * pct,
            n ? 100.0 - (double)busy * pct : 0);
}

/* "api": n, ... of these kinds; with `ran` only what was neither captured nor failed. */
static void put_apis(FILE *f, const unsigned *kinds, unsigned nkinds, bool ran)
{
    const char *separator = "";
    fputc('{', f);
    for (unsigned k = 0; k < nkinds; k++)
        for (struct sim_api *a = apis; a; a = a->next) {
            uint64_t n = ran ? a->calls - a->failed - a->captured : a->calls;
            if (a->kind != kinds[k] || !n)
                continue;
            fprintf(f, "%s\"%s\": %" PRIu64, separator, a->name, n);
            separator = ", ";
        }
    fputc('}', f);
}

static void put_group(FILE *f, const char *key, const unsigned *kinds, unsigned nkinds)
{
    uint64_t calls = 0, failed = 0;
    for (unsigned k = 0; k < nkinds; k++) {
        calls += sum(kinds[k], CALLED);
        failed += sum(kinds[k], FAILED);
    }
    fprintf(f, " \"%s\": {\"calls\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"by_api\": ", key,
            calls, failed);
    put_apis(f, kinds, nkinds, false);
    fputs("},\n", f);
}

static void put_copies(FILE *f)
{
    const char *separator = "";
    fputs(" \"copies\": {", f);
    for (unsigned d = 0; d < DIR_COUNT; d++) {
        uint64_t calls = copies[d][0].calls + copies[d][1].calls;
        if (!calls)
            continue;
        fprintf(f,
                "%s\"%s\": {\"calls\": %" PRIu64 ", \"bytes\": %" PRIu64
                ", \"pageable_calls\": %" PRIu64 ", \"pageable_bytes\": %" PRIu64 "}",
                separator, direction_names[d], calls, copies[d][0].bytes + copies[d][1].bytes,
                copies[d][1].calls, copies[d][1].bytes);
        separator = ", ";
    }
    fputs("},\n", f);
}

static void put_truth(FILE *f)
{
    static const unsigned launch[] = {SIM_K_LAUNCH, SIM_K_GRAPH_LAUNCH};
    static const unsigned allocation[] = {SIM_K_ALLOC, SIM_K_HOST_ALLOC};
    static const unsigned release[] = {SIM_K_FREE, SIM_K_HOST_FREE};
    static const unsigned sync[] = {SIM_K_SYNC};
    uint64_t executed = 0;
    const char *separator = "";

    fprintf(f, "{\n \"pid\": %d, \"clock\": \"%s\", \"names\": \"mangled\",\n", (int)getpid(),
            sim_cfg.is_virtual ? "virtual" : "real");
    fputs(" \"kernels\": {", f);
    for (uint32_t i = 1; i < nnames; i++) {
        if (!names[i].executed)
            continue;
        fputs(separator, f);
        put_text(f, names[i].text);
        fprintf(f, ": %" PRIu64, names[i].executed);
        executed += names[i].executed;
        separator = ", ";
    }
    fputs("},\n \"kernel_us\": {", f);
    separator = "";
    for (uint32_t i = 1; i < nnames; i++) {
        if (!names[i].executed)
            continue;
        fputs(separator, f);
        put_text(f, names[i].text);
        fprintf(f, ": %.3f", (double)names[i].ns / 1e3);
        separator = ", ";
    }
    fputs("},\n", f);
    put_copies(f);
    fprintf(f, " \"memset_calls\": %" PRIu64 ", \"memset_bytes\": %" PRIu64 ",\n", memsets.calls,
            memsets.bytes);
    /* calls: all that the program made; ran: without those that failed or were captured */
    fprintf(f,
            " \"launches\": {\"calls\": %" PRIu64 ", \"failed\": %" PRIu64
            ", \"captured\": %" PRIu64 ", \"ran\": %" PRIu64 ", \"kernels\": %" PRIu64 ",\n",
            sum(SIM_K_LAUNCH, CALLED), sum(SIM_K_LAUNCH, FAILED), sum(SIM_K_LAUNCH, CAPTURED),
            sum(SIM_K_LAUNCH, CALLED) - sum(SIM_K_LAUNCH, FAILED) - sum(SIM_K_LAUNCH, CAPTURED),
            executed);
    fprintf(f,
            "  \"graph_launches\": %" PRIu64 ", \"graph_launches_captured\": %" PRIu64
            ",\n  \"by_api\": ",
            sum(SIM_K_GRAPH_LAUNCH, CALLED) - sum(SIM_K_GRAPH_LAUNCH, FAILED) -
                sum(SIM_K_GRAPH_LAUNCH, CAPTURED),
            sum(SIM_K_GRAPH_LAUNCH, CAPTURED));
    put_apis(f, launch, 2, true);
    fputs(", \"called_by_api\": ", f);
    put_apis(f, launch, 2, false);
    fputs("},\n", f);
    fprintf(f, " \"wrong_kind\": %" PRIu64 ",\n", sim_wrong_kind);
    put_group(f, "syncs", sync, 1);
    put_group(f, "allocations", allocation, 2);
    put_group(f, "frees", release, 2);
    fputs(" \"calls\": {", f);
    separator = "";
    for (unsigned k = 0; k < SIM_K_COUNT; k++) {
        if (k == SIM_K_NONE || k == SIM_K_GETTER || k == SIM_K_NAME)
            continue;
        fprintf(f, "%s\"%s\": ", separator, kind_names[k]);
        put_apis(f, &k, 1, false);
        separator = ",\n  ";
    }
    fputs("},\n \"nccl\": [", f);
    separator = "";
    for (unsigned i = 0; i < 32 && nccl[i].calls; i++) {
        fprintf(f, "%s{\"op\": \"%s\", \"calls\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", separator,
                nccl[i].op, nccl[i].calls, nccl[i].bytes);
        separator = ", ";
    }
    fprintf(f,
            "],\n \"peak_allocated_bytes\": %" PRIu64 ", \"peak_reserved_bytes\": %" PRIu64 ",\n ",
            peak_allocated, peak_reserved);
    qsort(rows, nrows, sizeof *rows, by_start);
    put_device(f, 0);
    fputs(",\n \"devices\": [", f);
    for (unsigned d = 0; d < (sim_cfg.devices ? sim_cfg.devices : 1); d++) {
        fputs(d ? ", {" : "{", f);
        put_device(f, d);
        fputc('}', f);
    }
    fputs("],\n ", f);
    sim_truth_put_meetings(f);
    fputs("\n}\n", f);
}

/* Opens path with %p replaced by the process id. */
static FILE *create(const char *path)
{
    char expanded[4096];
    const char *p = strstr(path, "%p");
    if (p)
        snprintf(expanded, sizeof expanded, "%.*s%d%s", (int)(p - path), path, (int)getpid(),
                 p + 2);
    else
        snprintf(expanded, sizeof expanded, "%s", path);
    return fopen(expanded, "we");
}

static void put_timeline(FILE *f)
{
    static const char *const types[] = {
        [OP_KERNEL] = "kernel", [OP_COPY] = "copy", [OP_MEMSET] = "memset"};
    fputs("device\tstream\ttype\tstart_ns\tend_ns\tbytes\tname\n", f);
    for (size_t i = 0; i < nrows; i++)
        fprintf(f, "%u\t%p\t%s\t%" PRId64 "\t%" PRId64 "\t%" PRIu64 "\t%s\n", rows[i].device,
                rows[i].stream, types[rows[i].type], rows[i].start, rows[i].end, rows[i].bytes,
                rows[i].type == OP_KERNEL ? sim_truth_name_text(rows[i].name)
                : rows[i].type == OP_COPY ? direction_names[rows[i].direction]
                                          : "");
}

SIM_EXPORT int sim_truth_write(void)
{
    int error = 0;
    if (!sim_cfg.truth && !sim_cfg.timeline)
        return 0;
    sim_lock();
    if (sim_initialised) {
        sim_device_finish();
        FILE *f = sim_cfg.truth ? create(sim_cfg.truth) : NULL;
        if (f) {
            put_truth(f);
            fclose(f);
        } else if (sim_cfg.truth) {
            error = -errno;
        }
        f = sim_cfg.timeline ? create(sim_cfg.timeline) : NULL;
        if (f) {
            put_timeline(f);
            fclose(f);
        }
    }
    sim_unlock();
    return error;
}
