/* Dumps as an input of those targets that analyse them.
 *
 * Their frames are sound and their content need not be: checksums are put right before a dump is
 * read, which no fuzzer guesses, and mutations keep frames whole: they rewrite fields of records
 * and definitions, with the extremes of their types among the values. Frames are raw in what the
 * mutator writes, so that a byte of an input is a byte of a record. process_start of the header
 * chooses the options. */
#ifndef FUZZ_DUMP_H
#define FUZZ_DUMP_H

#include "replay.h"

#include "analysis/analysis.h"
#include "trace/codec.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define ROOM        (1u << 20)
#define SMALL       (40u << 10) /* of what the mutator cuts a recording down to */
#define RECORDS_MAX 300u        /* of a frame, there */

static void put(const char *path, const uint8_t *bytes, size_t size)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

    MUST(fd >= 0);
    MUST(write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

/* post: whether a whole frame lies at `at`. */
static bool frame_at(const uint8_t *bytes, size_t size, size_t at, struct gwt_frame *f)
{
    if (at + sizeof(*f) > size)
        return false;
    memcpy(f, bytes + at, sizeof(*f));
    return f->magic == GWT_FRAME_MAGIC && f->stored_size <= size - at - sizeof(*f);
}

static void seal(uint8_t *bytes, size_t size)
{
    struct gwt_frame f;

    for (size_t at = sizeof(struct gwt_file_header); frame_at(bytes, size, at, &f);
         at += sizeof(f) + f.stored_size) {
        if (f.codec == GWT_CODEC_RAW)
            f.payload_check = gwt_crc32c(bytes + at + sizeof(f), f.stored_size);
        f.check = 0;
        f.check = gwt_crc32c(&f, sizeof(f));
        memcpy(bytes + at, &f, sizeof(f));
    }
}

/* pre: a dump's header
 * post: its bytes at `to`, ready to be read. */
static void put_right(uint8_t *to, const uint8_t *from, size_t size)
{
    memcpy(to, from, size);
    /* else it could name any file there is */
    memset(to + offsetof(struct gwt_file_header, ring_path), 0,
           sizeof(((struct gwt_file_header *)0)->ring_path));
    seal(to, size);
}

static struct gwa_options options_of(const struct gwt_trace *t)
{
    unsigned choice = (unsigned)gwt_header(t)->process_start;
    struct gwa_options options = {
        .range = (choice & 3) == 1 ? gwt_string(t, choice >> 8 & 0xff) : NULL,
        .step_range = (choice & 12) == 4 ? gwt_string(t, choice >> 8 & 0xff) : NULL,
        .step_kernel = (choice & 12) == 8 ? "a" : NULL,
        .whole = (choice & 48) == 16,
        .counts_only = (choice & 192) == 64,
    };
    if ((choice & 48) == 32) {
        options.step_from = choice >> 16 & 0xf;
        options.step_to = options.step_from + 1 + (choice >> 20 & 0xf);
    }
    return options;
}

/* ---- what must hold -------------------------------------------------------------------- */

static bool percent(double x)
{
    return isnan(x) || (x >= -1e-6 && x <= 100 + 1e-6);
}

static void look_at(const struct gwa_process *p)
{
    for (size_t i = 0; i < p->findings_count; i++) {
        MUST(p->findings[i].id && p->findings[i].what);
        MUST(percent(p->findings[i].share_pct));
        MUST(percent(p->findings[i].bound_pct));
    }
    for (size_t i = 0; i < p->what_if_count; i++)
        MUST(percent(p->what_if[i].bound_pct));
    for (size_t i = 0; i < p->devices_count; i++)
        for (int c = 0; c < GWA_IDLE_CLASS_COUNT; c++)
            MUST(percent(p->devices[i].time.idle[c]));
    MUST(p->steps.steady <= p->steps.count);
}

/* An analysis makes many allocations, large ones too, and frees them all: where each was made would
 * take longer to note than it takes to make. ASAN_OPTIONS has the last word. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "malloc_context_size=1:quarantine_size_mb=64";
}

/* ---- mutations ------------------------------------------------------------------------- */

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) __attribute__((weak));

static uint64_t state;

static uint32_t any(uint32_t below) /* xorshift */
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % below;
}

/* post: the bytes of the frame's payload, raw and cut to RECORDS_MAX, or 0. */
static size_t raw_payload(const uint8_t *stored, struct gwt_frame *f, uint8_t *out, size_t room)
{
    bool records = f->type == GWT_FRAME_EVENTS;
    size_t size = f->raw_size;
    uint8_t *whole;
    int rc = -1;

    if (size > GWT_FRAME_RAW_MAX || (records && size != f->count * sizeof(struct gwt_record)))
        return 0;
    whole = malloc(size ? size : 1);
    MUST(whole);
    if (f->codec == GWT_CODEC_RAW && f->stored_size == size) {
        memcpy(whole, stored, size);
        rc = 0;
    } else if (f->codec == GWT_CODEC_ZSTD && !records) {
        rc = gwt_decode_bytes(stored, f->stored_size, whole, size);
    } else if (f->codec == GWT_CODEC_COLUMNS_ZSTD && records && f->count) {
        size_t need = gwt_decoder_size(f->count);
        void *memory = aligned_alloc(64, (need + 63) & ~(size_t)63);
        MUST(memory);
        struct gwt_decoder *d = gwt_decoder_init(memory, need, f->count);
        if (d)
            rc =
                gwt_decode_records(d, stored, f->stored_size, (struct gwt_record *)whole, f->count);
        free(memory);
    }
    if (!rc && records && f->count > RECORDS_MAX) {
        f->count = RECORDS_MAX;
        size = RECORDS_MAX * sizeof(struct gwt_record);
    }
    if (rc || size > room)
        size = 0;
    memcpy(out, whole, size);
    free(whole);
    f->codec = GWT_CODEC_RAW;
    f->raw_size = f->stored_size = (uint32_t)size;
    return size;
}

/* post: the dump with its frames raw, at most `room` bytes of it. */
static size_t raw_frames(uint8_t *bytes, size_t size, size_t room)
{
    static uint8_t out[ROOM];
    size_t n = sizeof(struct gwt_file_header);
    struct gwt_frame f;

    if (size < n || room < n)
        return 0;
    if (room > SMALL)
        room = SMALL;
    memcpy(out, bytes, n);
    for (size_t at = n; frame_at(bytes, size, at, &f); at += sizeof(f)) {
        size_t stored = f.stored_size, got = 0;

        if (room - n > sizeof(f))
            got =
                raw_payload(bytes + at + sizeof(f), &f, out + n + sizeof(f), room - n - sizeof(f));
        if (got) {
            memcpy(out + n, &f, sizeof(f));
            n += sizeof(f) + got;
        }
        at += stored;
    }
    memcpy(bytes, out, n);
    return n;
}

static void poke(uint8_t *at, size_t width)
{
    static const uint64_t extremes[] = {
        0,          1,         2,          UINT64_MAX,     INT64_MAX,
        1ull << 63, INT32_MAX, UINT32_MAX, UINT32_MAX - 1, 0xff00,
        0xffff,     1000000,   1ull << 40, 1ull << 53};
    uint64_t value = 0;

    memcpy(&value, at, width);
    switch (any(4)) {
    case 0:
        value = extremes[any(sizeof(extremes) / sizeof(*extremes))];
        break;
    case 1:
        value += (uint64_t)any(2000) - 1000;
        break;
    case 2:
        value ^= 1ull << any((uint32_t)width * 8);
        break;
    default:
        value = any(300);
    }
    memcpy(at, &value, width);
}

static void mutate_records(struct gwt_record *r, uint32_t count)
{
    static const uint8_t fields[][2] = {{0, 8},  {8, 4},  {12, 2}, {14, 2},
                                        {16, 2}, {18, 2}, {20, 4}, {24, 8}};
    uint32_t i = any(count), n = 1 + any(any(8) ? 3 : count - i);
    const uint8_t *field = fields[any(8)];

    if (n > count - i)
        n = count - i;
    switch (any(5)) {
    case 0: /* one value in all of them, or another in each */
        for (uint32_t k = i; k < i + n; k++)
            poke((uint8_t *)&r[k] + field[0], field[1]);
        break;
    case 1: { /* a copy of others, later */
        uint32_t from = any(count);
        for (uint32_t k = i; k < i + n && from + k - i < count; k++) {
            uint64_t t0 = r[k].t0;
            r[k] = r[from + k - i];
            r[k].t0 = t0;
        }
        break;
    }
    case 2: { /* another kind */
        uint16_t api =
            (uint16_t)(any(2) ? GWT_API_PSEUDO + any(GWT_KIND_COUNT) : r[any(count)].api);
        for (uint32_t k = i; k < i + n; k++)
            r[k].api = api;
        break;
    }
    case 3: { /* what follows happens later, or earlier */
        int64_t by = (int64_t)(1ull << any(50)) * (any(2) ? 1 : -1);
        for (uint32_t k = i; k < count; k++)
            r[k].t0 += (uint64_t)by;
        break;
    }
    default:
        poke((uint8_t *)&r[i] + field[0], field[1]);
    }
}

static void mutate_definitions(uint8_t *bytes, size_t size)
{
    size_t at = 0, chosen = 0;
    struct gwt_def d;

    for (uint32_t seen = 1; at + sizeof(d) <= size; seen++) {
        memcpy(&d, bytes + at, sizeof(d));
        if (d.size > size - at - sizeof(d))
            break;
        if (!any(seen))
            chosen = at;
        at += sizeof(d) + (((size_t)d.size + 7) & ~(size_t)7);
    }
    if (chosen + sizeof(d) > size)
        return;
    memcpy(&d, bytes + chosen, sizeof(d));
    if (!any(4) || d.size < 8 || chosen + sizeof(d) + d.size > size)
        poke(bytes + chosen + (any(2) ? offsetof(struct gwt_def, id) : 0), any(2) ? 2 : 4);
    else
        poke(bytes + chosen + sizeof(d) + any((d.size - 4) / 2) * 2, any(2) ? 4 : 1);
}

static size_t mutate_dump(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct gwt_frame f;
    size_t n = raw_frames(data, size, max_size);

    state = seed * 0x9e3779b97f4a7c15ull + 1;
    if (n <= sizeof(struct gwt_file_header))
        return LLVMFuzzerMutate(data, size, max_size);
    for (unsigned times = 1 + any(4); times--;) {
        size_t chosen = 0;
        uint32_t seen = 0;

        for (size_t at = sizeof(struct gwt_file_header); frame_at(data, n, at, &f);
             at += sizeof(f) + f.stored_size)
            if (!any(++seen))
                chosen = at;
        if (!any(12)) {
            poke(data + offsetof(struct gwt_file_header, process_start), 4);
            continue;
        }
        if (!chosen || !frame_at(data, n, chosen, &f))
            break;
        uint8_t *payload = data + chosen + sizeof(f);
        if (f.type == GWT_FRAME_EVENTS && f.count && f.stored_size >= f.count * 32ull)
            mutate_records((struct gwt_record *)payload, f.count);
        else if (f.type == GWT_FRAME_DEFINITIONS)
            mutate_definitions(payload, f.stored_size);
        else if (f.stored_size >= 8)
            poke(payload + any(f.stored_size / 8) * 8, 8);
        if (!any(40)) /* frames of more threads */
            poke(data + chosen + offsetof(struct gwt_frame, thread), 1);
    }
    return n;
}

#endif
