/* A recording made by hand, for tests of lib/analysis: trace.h's functions over arrays.
 * Times are microseconds; events are put into order of return, as the reader does. */
#ifndef TEST_ANALYSIS_FAKE_H
#define TEST_ANALYSIS_FAKE_H

/* clang-format off: cmocka.h needs these first */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "analysis/analysis.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US         1000
#define FAKE_MAX   80000
#define FAKE_NAMES 64

struct gwt_trace {
    struct gwt_event events[FAKE_MAX];
    size_t count, next;
    bool sorted;
    struct gwt_coverage coverage;
    struct gwt_file_header header;
    uint64_t counters[GWT_COUNTER_SLOTS];
    const char *apis[FAKE_NAMES];
    uint8_t api_kind[FAKE_NAMES], api_level[FAKE_NAMES];
    const char *strings[FAKE_NAMES];
    struct gwt_signature_info signatures[FAKE_NAMES];
    struct gwt_def_stream streams[FAKE_NAMES];
    struct gwt_graph_info graphs[FAKE_NAMES];
    struct gwt_def_graph graph_defs[FAKE_NAMES];
    struct gwt_stack_frame stacks[FAKE_NAMES][3]; /* file 0: no more frames */
    struct gwt_def_device devices[4];
    const char *device_names[4];
    struct gwt_thread_info threads[8];
    size_t threads_count;
    const char *facts[16][2];
};

/* ---- trace.h ------------------------------------------------------------------ */

static int fake_order(const void *a, const void *b)
{
    const struct gwt_event *x = a, *y = b;
    if (x->t1_ns != y->t1_ns)
        return x->t1_ns < y->t1_ns ? -1 : 1;
    if (x->t0_ns != y->t0_ns) /* what is nested comes first */
        return x->t0_ns > y->t0_ns ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

int gwt_next(struct gwt_trace *t, struct gwt_event *e)
{
    if (!t->sorted)
        qsort(t->events, t->count, sizeof(*t->events), fake_order);
    t->sorted = true;
    if (t->next == t->count)
        return 0;
    *e = t->events[t->next++];
    return 1;
}

size_t gwt_read(struct gwt_trace *t, struct gwt_event *events, size_t room)
{
    size_t n = 0;

    while (n < room && gwt_next(t, &events[n]))
        n++;
    return n;
}

void gwt_rewind(struct gwt_trace *t)
{
    t->next = 0;
}

const struct gwt_coverage *gwt_coverage(const struct gwt_trace *t)
{
    return &t->coverage;
}

const struct gwt_file_header *gwt_header(const struct gwt_trace *t)
{
    return &t->header;
}

uint64_t gwt_counter(const struct gwt_trace *t, enum gwt_counter c)
{
    return t->counters[c];
}

bool gwt_fact_at(const struct gwt_trace *t, size_t i, const char **key, const char **value)
{
    if (i >= 16 || !t->facts[i][0])
        return false;
    *key = t->facts[i][0];
    *value = t->facts[i][1];
    return true;
}

const char *gwt_fact(const struct gwt_trace *t, const char *key)
{
    const char *k, *v;
    for (size_t i = 0; gwt_fact_at(t, i, &k, &v); i++)
        if (!strcmp(k, key))
            return v;
    return NULL;
}

const char *gwt_string(const struct gwt_trace *t, uint32_t id)
{
    return id < FAKE_NAMES ? t->strings[id] : NULL;
}

const char *gwt_api_name(const struct gwt_trace *t, uint16_t api)
{
    return api < FAKE_NAMES ? t->apis[api] : NULL;
}

bool gwt_signature(const struct gwt_trace *t, uint32_t id, struct gwt_signature_info *out)
{
    if (!id || id >= FAKE_NAMES || !t->signatures[id].name_id)
        return false;
    *out = t->signatures[id];
    out->name = gwt_string(t, out->name_id);
    return true;
}

const struct gwt_def_stream *gwt_stream(const struct gwt_trace *t, uint16_t id)
{
    return id && id < FAKE_NAMES && t->streams[id].type ? &t->streams[id] : NULL;
}

bool gwt_graph(const struct gwt_trace *t, uint32_t id, struct gwt_graph_info *out)
{
    if (id >= FAKE_NAMES || !t->graphs[id].graph)
        return false;
    *out = t->graphs[id];
    return true;
}

bool gwt_stack(const struct gwt_trace *t, uint32_t id, struct gwt_stack_info *out)
{
    if (!id || id >= FAKE_NAMES || !t->stacks[id][0].file)
        return false;
    *out = (struct gwt_stack_info){.frames = t->stacks[id]};
    while (out->count < 3 && t->stacks[id][out->count].file)
        out->count++;
    return true;
}

const struct gwt_def_device *gwt_device(const struct gwt_trace *t, unsigned i, const char **name)
{
    if (i >= 4 || !t->device_names[i])
        return NULL;
    *name = t->device_names[i];
    return &t->devices[i];
}

bool gwt_thread_at(const struct gwt_trace *t, size_t i, struct gwt_thread_info *out)
{
    if (i >= t->threads_count)
        return false;
    *out = t->threads[i];
    return true;
}

bool gwt_thread(const struct gwt_trace *t, uint32_t id, struct gwt_thread_info *out)
{
    for (size_t i = 0; gwt_thread_at(t, i, out); i++)
        if (out->id == id)
            return true;
    return false;
}

const struct gwt_aggregate *gwt_aggregate_at(const struct gwt_trace *t, size_t i)
{
    (void)t, (void)i;
    return NULL;
}

/* ---- making one ------------------------------------------------------------------- */

/* Ids that every fake has. */
enum {
    API_LAUNCH = 1,
    API_CULAUNCH,
    API_GRAPH,
    API_COPY,
    API_COPY_ASYNC,
    API_MEMSET,
    API_SYNC_DEVICE,
    API_SYNC_STREAM,
    API_SYNC_EVENT,
    API_RECORD,
    API_WAIT,
    API_MALLOC,
    API_FREE,
    API_HOST_ALLOC,
    API_ALL_REDUCE,
    API_GROUP_END,
    API_CAPTURE_BEGIN,
    API_CAPTURE_END,
    API_MODULE
};
enum { S_LEGACY = 1, S_A, S_B, S_NONBLOCKING, S_UNSEEN, S_PER_THREAD, S_NONE, S_OTHER_DEVICE };
enum { K_ADD = 1, K_GEMM, K_TINY, K_FALLBACK }; /* signatures */
enum { R_STEP = 10, R_OTHER };                  /* range names */

static void fake_api(struct gwt_trace *t, unsigned id, const char *name, unsigned kind,
                     unsigned level)
{
    t->apis[id] = name;
    t->api_kind[id] = (uint8_t)kind;
    t->api_level[id] = (uint8_t)level;
}

static struct gwt_trace *fake_new(void)
{
    struct gwt_trace *t = calloc(1, sizeof(*t));
    enum { RT = GWT_LEVEL_RUNTIME, DR = GWT_LEVEL_DRIVER, NC = GWT_LEVEL_NCCL };
    fake_api(t, API_LAUNCH, "cudaLaunchKernel", GWT_LAUNCH, RT);
    fake_api(t, API_CULAUNCH, "cuLaunchKernelEx", GWT_LAUNCH, DR);
    fake_api(t, API_GRAPH, "cudaGraphLaunch", GWT_GRAPH_LAUNCH, RT);
    fake_api(t, API_COPY, "cudaMemcpy", GWT_COPY, RT);
    fake_api(t, API_COPY_ASYNC, "cudaMemcpyAsync", GWT_COPY, RT);
    fake_api(t, API_MEMSET, "cudaMemsetAsync", GWT_MEMSET, RT);
    fake_api(t, API_SYNC_DEVICE, "cudaDeviceSynchronize", GWT_SYNC, RT);
    fake_api(t, API_SYNC_STREAM, "cudaStreamSynchronize", GWT_SYNC, RT);
    fake_api(t, API_SYNC_EVENT, "cudaEventSynchronize", GWT_SYNC, RT);
    fake_api(t, API_RECORD, "cudaEventRecord", GWT_EVENT_RECORD, RT);
    fake_api(t, API_WAIT, "cudaStreamWaitEvent", GWT_STREAM_WAIT, RT);
    fake_api(t, API_MALLOC, "cudaMalloc", GWT_ALLOC, RT);
    fake_api(t, API_FREE, "cudaFree", GWT_FREE, RT);
    fake_api(t, API_HOST_ALLOC, "cudaHostAlloc", GWT_HOST_ALLOC, RT);
    fake_api(t, API_ALL_REDUCE, "ncclAllReduce", GWT_NCCL, NC);
    fake_api(t, API_GROUP_END, "ncclGroupEnd", GWT_NCCL_GROUP, NC);
    fake_api(t, API_CAPTURE_BEGIN, "cudaStreamBeginCapture", GWT_CAPTURE, RT);
    fake_api(t, API_CAPTURE_END, "cudaStreamEndCapture", GWT_CAPTURE, RT);
    fake_api(t, API_MODULE, "cuModuleLoadData", GWT_MODULE_LOAD, DR);

    t->streams[S_LEGACY] = (struct gwt_def_stream){.type = GWT_STREAM_LEGACY};
    t->streams[S_A] = (struct gwt_def_stream){.type = GWT_STREAM_USER, .handle = 0xa};
    t->streams[S_B] = (struct gwt_def_stream){.type = GWT_STREAM_USER, .handle = 0xb};
    t->streams[S_NONBLOCKING] =
        (struct gwt_def_stream){.type = GWT_STREAM_USER, .handle = 0xc, .nonblocking = 1};
    t->streams[S_UNSEEN] =
        (struct gwt_def_stream){.type = GWT_STREAM_USER, .handle = 0xd, .nonblocking = 0xff};
    t->streams[S_PER_THREAD] = (struct gwt_def_stream){.type = GWT_STREAM_PER_THREAD, .thread = 1};
    t->streams[S_NONE] = (struct gwt_def_stream){.type = GWT_STREAM_NONE};
    t->streams[S_OTHER_DEVICE] = (struct gwt_def_stream){.type = GWT_STREAM_LEGACY, .device = 1};

    t->strings[1] = "_ZN4ours3addEPfi"; /* ours::add(float*, int) */
    t->strings[2] = "gemm_128x128";
    t->strings[3] = "_Z4tinyv";
    t->strings[R_STEP] = "step";
    t->strings[R_OTHER] = "other";
    t->signatures[K_ADD] =
        (struct gwt_signature_info){.name_id = 1, .grid = {200, 1, 1}, .block = {256, 1, 1}};
    t->signatures[K_GEMM] =
        (struct gwt_signature_info){.name_id = 2, .grid = {16, 16, 1}, .block = {128, 1, 1}};
    t->signatures[K_TINY] =
        (struct gwt_signature_info){.name_id = 1, .grid = {1, 1, 1}, .block = {32, 1, 1}};
    t->signatures[K_FALLBACK] = (struct gwt_signature_info){.name_id = 3};
    t->devices[0] = (struct gwt_def_device){.sms = 132, .memory_bytes = 150000000000};
    t->device_names[0] = "Test GPU";
    t->threads[0] = (struct gwt_thread_info){.id = 1, .tid = 101, .name = "python"};
    t->threads[1] = (struct gwt_thread_info){.id = 2, .tid = 102, .name = "pt_autograd_0"};
    t->threads_count = 2;
    t->header.pid = 42;
    t->header.clock = GWT_CLOCK_MONOTONIC;
    t->coverage.ended = true;
    t->facts[0][0] = "host", t->facts[0][1] = "node7";
    return t;
}

/* One event; what is not said is 0. Returns it for amending. */
static struct gwt_event *fake_add(struct gwt_trace *t, unsigned thread, int64_t t0, int64_t t1,
                                  unsigned kind)
{
    assert_true(t->count < FAKE_MAX);
    struct gwt_event *e = &t->events[t->count];
    *e = (struct gwt_event){.t0_ns = t0 * US,
                            .t1_ns = t1 * US,
                            .thread = thread,
                            .kind = (uint8_t)kind,
                            .device = 0xff,
                            .seq = t->count++};
    t->sorted = false;
    t->coverage.events = t->count;
    return e;
}

static struct gwt_event *fake_call(struct gwt_trace *t, unsigned thread, int64_t t0, int64_t t1,
                                   unsigned api, unsigned stream)
{
    struct gwt_event *e = fake_add(t, thread, t0, t1, t->api_kind[api]);
    e->api = (uint16_t)api;
    e->level = t->api_level[api];
    e->stream = (uint16_t)stream;
    e->device = stream ? t->streams[stream].device : 0xff;
    return e;
}

/* Calls that last 1 us unless they wait. */
static struct gwt_event *launch(struct gwt_trace *t, int64_t t0, unsigned stream,
                                unsigned signature)
{
    struct gwt_event *e = fake_call(t, 1, t0, t0 + 1, API_LAUNCH, stream);
    e->arg = signature;
    return e;
}

static struct gwt_event *sync_stream(struct gwt_trace *t, int64_t t0, int64_t t1, unsigned stream)
{
    struct gwt_event *e = fake_call(t, 1, t0, t1, API_SYNC_STREAM, stream);
    e->flags = GWT_SCOPE_STREAM << GWT_F_SUB_SHIFT;
    return e;
}

static struct gwt_event *sync_device(struct gwt_trace *t, int64_t t0, int64_t t1)
{
    struct gwt_event *e = fake_call(t, 1, t0, t1, API_SYNC_DEVICE, S_NONE);
    e->flags = GWT_SCOPE_DEVICE << GWT_F_SUB_SHIFT;
    return e;
}

static struct gwt_event *record_event(struct gwt_trace *t, int64_t t0, unsigned stream,
                                      uint64_t event)
{
    struct gwt_event *e = fake_call(t, 1, t0, t0 + 1, API_RECORD, stream);
    e->value = event;
    return e;
}

static struct gwt_event *wait_event(struct gwt_trace *t, int64_t t0, unsigned stream,
                                    uint64_t event)
{
    struct gwt_event *e = fake_call(t, 1, t0, t0 + 1, API_WAIT, stream);
    e->value = event;
    return e;
}

static struct gwt_event *sync_event(struct gwt_trace *t, int64_t t0, int64_t t1, uint64_t event)
{
    struct gwt_event *e = fake_call(t, 1, t0, t1, API_SYNC_EVENT, S_NONE);
    e->flags = GWT_SCOPE_EVENT << GWT_F_SUB_SHIFT;
    e->value = event;
    return e;
}

static struct gwt_event *copy(struct gwt_trace *t, int64_t t0, int64_t t1, unsigned stream,
                              unsigned direction, uint64_t bytes, unsigned flags)
{
    struct gwt_event *e =
        fake_call(t, 1, t0, t1, flags & GWT_F_BLOCKING ? API_COPY : API_COPY_ASYNC, stream);
    e->flags = (uint16_t)(flags | direction << GWT_F_SUB_SHIFT);
    e->arg = 1;
    e->value = bytes;
    return e;
}

static struct gwt_event *range_push(struct gwt_trace *t, unsigned thread, int64_t at, unsigned name)
{
    struct gwt_event *e = fake_add(t, thread, at, at, GWT_RANGE_PUSH);
    e->arg = name;
    return e;
}

static struct gwt_event *range_pop(struct gwt_trace *t, unsigned thread, int64_t at)
{
    return fake_add(t, thread, at, at, GWT_RANGE_POP);
}

static struct gwt_event *allocator(struct gwt_trace *t, int64_t at, uint64_t allocated,
                                   uint64_t reserved)
{
    struct gwt_event *e = fake_add(t, 1, at, at, GWT_ALLOCATOR);
    e->device = 0;
    e->allocated = allocated;
    e->reserved = reserved;
    return e;
}

static struct gwa_process *analyse(struct gwt_trace *t, const char *range)
{
    struct gwa_options options = {.range = range};
    struct gwa_process *p = NULL;
    struct gwt_error error = {""};
    int rc = gwa_analyse(t, &options, &p, &error);
    if (rc)
        print_error("%s\n", error.text);
    assert_int_equal(rc, 0);
    assert_non_null(p);
    return p;
}

static const struct gwa_api *find_api(const struct gwa_process *p, const char *name)
{
    for (size_t i = 0; i < p->apis_count; i++)
        if (!strcmp(p->apis[i].name, name))
            return &p->apis[i];
    return NULL;
}

static const struct gwa_kernel *find_kernel(const struct gwa_device *d, const char *name)
{
    for (size_t i = 0; i < d->kernels_count; i++)
        if (d->kernels[i].name && !strcmp(d->kernels[i].name, name))
            return &d->kernels[i];
    return NULL;
}

/* Within `by` of `b`, said in full when not. */
#define assert_near(a, b, by)                                                                      \
    do {                                                                                           \
        double a_ = (a), b_ = (b);                                                                 \
        if (!(fabs(a_ - b_) <= (by)))                                                              \
            fail_msg("%s is %.9g, not %.9g", #a, a_, b_);                                          \
    } while (0)

/* Not every test uses every helper. */
__attribute__((unused)) static void *const fake_used[] = {
    (void *)launch,      (void *)sync_stream, (void *)sync_device, (void *)record_event,
    (void *)wait_event,  (void *)sync_event,  (void *)copy,        (void *)range_push,
    (void *)range_pop,   (void *)allocator,   (void *)analyse,     (void *)find_api,
    (void *)find_kernel, (void *)fake_new};

#endif
