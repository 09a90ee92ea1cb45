/* A small profiler for programs without PyTorch, loaded only when its figures are
 * wanted (see range.h).  It knows nothing of gpuwait. */
#include "cupti_referee.h"

#include <cupti.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
typedef CUpti_ActivityMemcpy6 memcpy_record;
#define COPY_COUNT(record) ((record)->copyCount ? (record)->copyCount : 1)
#else
typedef CUpti_ActivityKernel9 kernel_record;
typedef CUpti_ActivityMemcpy5 memcpy_record;
#define COPY_COUNT(record) ((uint64_t)1)
#endif
typedef CUpti_ActivityMemcpyPtoP4 peer_record;
typedef CUpti_ActivityMemset4 memset_record;

enum { BUFFER_BYTES = 1 << 20, BUFFER_ALIGN = 8 };

static const CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

struct row {
    const char *cat;
    char *name;
    uint64_t start, end; /* ns */
    uint64_t bytes, copies;
    uint32_t device, stream;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct row *rows;
static size_t row_count, row_room;
static bool failed;

static int check(CUptiResult result, const char *what)
{
    const char *text = "unknown error";

    if (result == CUPTI_SUCCESS)
        return 0;
    cuptiGetResultString(result, &text);
    fprintf(stderr, "cupti_referee: %s: %s\n", what, text);
    failed = true;
    return -1;
}

static const char *copy_name(uint8_t kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
        return "Memcpy HtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
        return "Memcpy DtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
        return "Memcpy HtoA";
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
        return "Memcpy AtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
        return "Memcpy AtoA";
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
        return "Memcpy AtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA:
        return "Memcpy DtoA";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
        return "Memcpy DtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
        return "Memcpy HtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
        return "Memcpy PtoP";
    default:
        return "Memcpy unknown";
    }
}

static void add(struct row row, const char *name)
{
    if (row_count == row_room) {
        size_t room = row_room ? 2 * row_room : 1024;
        struct row *larger = realloc(rows, room * sizeof *rows);

        if (!larger) {
            failed = true;
            return;
        }
        rows = larger;
        row_room = room;
    }
    row.name = strdup(name ? name : "(unnamed)");
    if (!row.name) {
        failed = true;
        return;
    }
    rows[row_count++] = row;
}

static void add_record(const CUpti_Activity *record)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const kernel_record *k = (const kernel_record *)record;

        add((struct row){.cat = "kernel",
                         .start = k->start,
                         .end = k->end,
                         .device = k->deviceId,
                         .stream = k->streamId},
            k->name);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const memcpy_record *c = (const memcpy_record *)record;

        add((struct row){.cat = "gpu_memcpy",
                         .start = c->start,
                         .end = c->end,
                         .bytes = c->bytes,
                         .copies = COPY_COUNT(c),
                         .device = c->deviceId,
                         .stream = c->streamId},
            copy_name(c->copyKind));
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const peer_record *c = (const peer_record *)record;

        add((struct row){.cat = "gpu_memcpy",
                         .start = c->start,
                         .end = c->end,
                         .bytes = c->bytes,
                         .copies = 1,
                         .device = c->deviceId,
                         .stream = c->streamId},
            copy_name(c->copyKind));
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        const memset_record *m = (const memset_record *)record;

        add((struct row){.cat = "gpu_memset",
                         .start = m->start,
                         .end = m->end,
                         .bytes = m->bytes,
                         .device = m->deviceId,
                         .stream = m->streamId},
            "Memset");
        break;
    }
    default:
        break;
    }
}

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = aligned_alloc(BUFFER_ALIGN, BUFFER_BYTES);
    *size = *buffer ? BUFFER_BYTES : 0;
    *max_records = 0;
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer,
                                      size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    CUptiResult result;
    size_t dropped = 0;

    (void)size;
    pthread_mutex_lock(&lock);
    while ((result = cuptiActivityGetNextRecord(buffer, valid, &record)) == CUPTI_SUCCESS)
        add_record(record);
    if (result != CUPTI_ERROR_MAX_LIMIT_REACHED)
        check(result, "cuptiActivityGetNextRecord");
    check(cuptiActivityGetNumDroppedRecords(context, stream, &dropped),
          "cuptiActivityGetNumDroppedRecords");
    if (dropped) {
        fprintf(stderr, "cupti_referee: %zu records dropped\n", dropped);
        failed = true;
    }
    pthread_mutex_unlock(&lock);
    free(buffer);
}

int cupti_referee_start(void)
{
    if (check(cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed),
              "cuptiActivityRegisterCallbacks"))
        return -1;
    for (int i = 0; i < KINDS; i++)
        if (check(cuptiActivityEnable(kinds[i]), "cuptiActivityEnable"))
            return -1;
    return 0;
}

static void write_string(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', out);
        if ((unsigned char)*text >= 0x20)
            putc(*text, out);
    }
    putc('"', out);
}

static int write_trace(const char *path)
{
    uint64_t origin = row_count ? rows[0].start : 0;
    uint32_t version = 0;
    FILE *out = fopen(path, "w");

    if (!out) {
        perror(path);
        return -1;
    }
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].start < origin)
            origin = rows[i].start;
    cuptiGetVersion(&version);
    fprintf(out, "{\"how\": {\"referee\": \"CUPTI activity API %u\"},\n \"traceEvents\": [",
            version);
    for (size_t i = 0; i < row_count; i++) {
        const struct row *row = &rows[i];

        fprintf(out, "%s\n  {\"ph\": \"X\", \"cat\": \"%s\", \"name\": ", i ? "," : "", row->cat);
        write_string(out, row->name);
        fprintf(out,
                ", \"ts\": %.3f, \"dur\": %.3f, \"args\": {\"device\": %u, \"stream\": %u, "
                "\"bytes\": %llu, \"copy_count\": %llu}}",
                (double)(row->start - origin) / 1e3, (double)(row->end - row->start) / 1e3,
                row->device, row->stream, (unsigned long long)row->bytes,
                (unsigned long long)row->copies);
    }
    fprintf(out, "\n]}\n");
    if (fclose(out)) {
        perror(path);
        return -1;
    }
    return 0;
}

int cupti_referee_stop(const char *path)
{
    int result;

    check(cuptiActivityFlushAll(0), "cuptiActivityFlushAll");
    check(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
    for (int i = 0; i < KINDS; i++)
        check(cuptiActivityDisable(kinds[i]), "cuptiActivityDisable");
    pthread_mutex_lock(&lock);
    result = failed ? -1 : write_trace(path);
    pthread_mutex_unlock(&lock);
    return result;
}
