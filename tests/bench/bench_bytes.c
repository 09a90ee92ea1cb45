/* What an event takes in a dump of a real PyTorch job, its definitions included, beside the 32
 * bytes of its record and the same events as Chrome JSON, gzipped; and what encoding costs, best of
 * some turns, since other work on the machine only adds. Recordings of fewer events than LEAST are
 * left out: there the names of their kernels are most of it, which a job has once. */
#include "bench.h"
#include "stretch.h"

#include <gpuwait/trace.h>

#include <glob.h>
#include <time.h>

#define LEAST 20000u
#define TURNS 7

static const char *const shown[] = {"lora_mlp", "llama_b16", "generate_tokens", "qlora", "r01-c",
                                    "r07",      "r19",       "r24-fixed"};

struct size {
    uint64_t events, launches, bytes;
    double json; /* bytes of gzipped JSON */
};

static void fail(const char *path)
{
    fprintf(stderr, "bench_bytes: %s cannot be read\n", path);
    exit(1);
}

static void as_json(const struct gwt_trace *t, const struct gwt_event *e, FILE *out)
{
    struct gwt_signature_info kernel;
    const char *api = gwt_api_name(t, e->api);
    const char *name =
        e->kind == GWT_LAUNCH && gwt_signature(t, e->arg, &kernel) ? kernel.name : NULL;

    if (e->kind == GWT_ALLOCATOR) {
        fprintf(out,
                "{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":1,\"tid\":%u,\"ts\":%.3f,\"args\":{"
                "\"Addr\":%llu,\"Bytes\":%lld,\"Total Allocated\":%llu,\"Total Reserved\":%llu,"
                "\"Device Id\":%u}},\n",
                e->thread, (double)e->t0_ns / 1e3, (unsigned long long)e->arg * 512,
                (long long)e->size, (unsigned long long)e->allocated,
                (unsigned long long)e->reserved, e->device);
        return;
    }
    fprintf(out,
            "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"%s\",\"pid\":1,\"tid\":%u,"
            "\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"stream\":%u,\"arg\":%u,\"value\":%llu,"
            "\"status\":%u,\"flags\":%u%s%s%s}},\n",
            api ? api : gwt_kind_name(e->kind), e->thread, (double)e->t0_ns / 1e3,
            (double)(e->t1_ns - e->t0_ns) / 1e3, e->stream, e->arg, (unsigned long long)e->value,
            e->status, e->flags, name ? ",\"kernel\":\"" : "", name ? name : "", name ? "\"" : "");
}

/* json: a file name; NULL: no JSON is made. */
static struct size size_of(const char *path, const char *json)
{
    char command[512];
    struct gwt_trace *t;
    struct gwt_event e;
    struct size s = {0};
    FILE *out = NULL;
    struct stat st;

    if (gwt_open(path, &t, NULL))
        fail(path);
    snprintf(command, sizeof(command), "gzip -6 >'%s'", json ? json : "");
    if (json && !(out = popen(command, "w")))
        fail("gzip");
    while (gwt_next(t, &e)) {
        s.events++;
        s.launches += e.kind == GWT_LAUNCH || e.kind == GWT_GRAPH_LAUNCH;
        if (out)
            as_json(t, &e, out);
    }
    s.bytes = gwt_coverage(t)->dump_bytes;
    gwt_close(t);
    if (!out)
        return s;
    if (pclose(out) || stat(json, &st))
        fail("gzip");
    s.json = (double)st.st_size;
    unlink(json);
    return s;
}

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ns per event; the records were just copied out of a ring, as in the drain thread. */
static double encoding(const struct stretched *s)
{
    size_t size = (gwt_encoder_size() + 63) & ~(size_t)63;
    size_t room = gwt_encode_bound(GWT_FRAME_RECORDS_MAX * sizeof(struct gwt_record));
    void *memory = aligned_alloc(64, size), *out = malloc(room);
    struct gwt_record *copy = malloc(GWT_FRAME_RECORDS_MAX * sizeof(*copy));
    struct gwt_encoder *encoder = memory ? gwt_encoder_init(memory, size) : NULL;
    double least = 0;

    if (!encoder || !out || !copy)
        fail("memory");
    for (unsigned turn = 0; turn < TURNS; turn++) {
        double sum = 0;

        for (size_t i = 0; i < s->count; i++) {
            const struct stretch_part *p = &s->parts[i];
            double from;

            memcpy(copy, p->records, p->count * sizeof(*copy));
            from = now_ns();
            if (gwt_encode_records(encoder, copy, p->count, out, room) < 0)
                fail("a record");
            sum += now_ns() - from;
        }
        least = turn && least < sum ? least : sum;
    }
    free(memory);
    free(out);
    free(copy);
    return least / (double)s->events;
}

static void rows(const char *name, const char *path, const char *json)
{
    struct size s = size_of(path, json);
    double each = (double)s.bytes / (double)s.events, chrome = s.json / (double)s.events;
    struct stretched records;
    char text[64];

    if (stretch_load(&records, path))
        fail(path);
    snprintf(text, sizeof(text), "%s, an event", name);
    bench_row(text, each, "bytes", each / sizeof(struct gwt_record), "its record");
    snprintf(text, sizeof(text), "%s, a launch with all around it", name);
    bench_row(text, (double)s.bytes / (double)s.launches, "bytes", 0, NULL);
    snprintf(text, sizeof(text), "%s, an event as gzipped Chrome JSON", name);
    bench_row(text, chrome, "bytes", chrome / each, "the dump's");
    snprintf(text, sizeof(text), "%s, encoding", name);
    bench_row(text, encoding(&records), "ns/event", 0, NULL);
    stretch_free(&records);
}

/* The name without directory and ending. */
static const char *named(const char *path, char *name, size_t size)
{
    const char *slash = strrchr(path, '/');

    snprintf(name, size, "%s", slash ? slash + 1 : path);
    name[strcspn(name, ".")] = 0;
    return name;
}

static bool is_shown(const char *name)
{
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
        if (!strcmp(name, shown[i]))
            return true;
    return false;
}

int main(void)
{
    const char *dir = getenv("TMPDIR");
    char json[256], name[64], worst[64] = "", text[128];
    double most = 0;
    unsigned count = 0;
    glob_t list;

    snprintf(json, sizeof(json), "%s/gpuwait-bench-%d.json.gz", dir ? dir : "/tmp", (int)getpid());
    if (glob("tests/fixtures/*.gwt", 0, NULL, &list) ||
        glob("tests/fixtures/scenarios/*.gwt", GLOB_APPEND, NULL, &list))
        fail("tests/fixtures");
    for (size_t i = 0; i < list.gl_pathc; i++) {
        struct size s = size_of(list.gl_pathv[i], NULL);
        double each = (double)s.bytes / (double)s.events;

        named(list.gl_pathv[i], name, sizeof(name));
        if (s.events < LEAST)
            continue;
        count++;
        if (each > most)
            snprintf(worst, sizeof(worst), "%s", name);
        most = each > most ? each : most;
        if (is_shown(name))
            rows(name, list.gl_pathv[i], json);
    }
    globfree(&list);
    if (!count)
        fail("tests/fixtures");
    snprintf(text, sizeof(text), "most of %u recordings: %s", count, worst);
    bench_row(text, most, "bytes", most / 4, "4 bytes");
    return 0;
}
