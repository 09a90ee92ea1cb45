/* The reader: dump, ring and tail segments split from one input.
 *
 *   byte 0      bit 0: fix checksums of frame headers and raw payloads, which no fuzzer guesses
 *               bit 1: the dump's frames are built from items (below) rather than taken as bytes
 *               bit 2: make dump, ring and segments those of one process
 *   bytes 1-3   lengths of ring, tail0, tail1 in 256ths of the rest; what remains is the dump
 *
 * An item is type, codec, thread, generation, first (2), count (2), length (2), bytes: a frame
 * with that payload, compressed if its codec says so.
 */
#include "replay.h"

#include "trace/codec.h"

#include <gpuwait/trace.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define EVENTS_MAX 100000u /* a frame of 100 bytes may hold 65536: not all are worth the time */
#define ROOM       (1u << 20)

static char directory[64], dump[96], ring[96], tails[2][96];

static void start(void)
{
    snprintf(directory, sizeof(directory), "/dev/shm/gpuwait-fuzz.XXXXXX");
    MUST(mkdtemp(directory));
    snprintf(dump, sizeof(dump), "%s/f.gwt", directory);
    snprintf(ring, sizeof(ring), "%s/f.ring", directory);
    for (int i = 0; i < 2; i++)
        snprintf(tails[i], sizeof(tails[i]), "%s/f.gwt.tail%d", directory, i);
}

static void finish(void)
{
    unlink(dump);
    unlink(ring);
    unlink(tails[0]);
    unlink(tails[1]);
    rmdir(directory);
}

static void put(const char *path, const uint8_t *bytes, size_t size)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

    MUST(fd >= 0);
    MUST(write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

static void fix_checksums(uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at + sizeof(struct gwt_frame) <= size; at++) {
        struct gwt_frame f;

        memcpy(&f, bytes + at, sizeof(f));
        if (f.magic != GWT_FRAME_MAGIC)
            continue;
        if (f.codec == GWT_CODEC_RAW && f.stored_size <= size - at - sizeof(f))
            f.payload_check = gwt_crc32c(bytes + at + sizeof(f), f.stored_size);
        f.check = 0;
        f.check = gwt_crc32c(&f, sizeof(f));
        memcpy(bytes + at, &f, sizeof(f));
    }
}

/* post: bytes written to `out`, of at most ROOM. */
static size_t build(uint8_t *out, const uint8_t *in, size_t size)
{
    size_t n = 0;

    while (size >= 10) {
        size_t length = in[8] | (size_t)in[9] << 8, payload;
        struct gwt_frame f = {
            .magic = GWT_FRAME_MAGIC,
            .type = in[0] % 8,
            .codec = in[1] % 4,
            .thread = in[2],
            .generation = in[3],
            .first = in[4] | (uint64_t)in[5] << 8,
            .count = in[6] | (uint32_t)in[7] << 8,
        };

        in += 10;
        size -= 10;
        if (length > size)
            length = size;
        if (n + sizeof(f) + ZSTD_compressBound(length) > ROOM)
            break;
        f.raw_size = (uint32_t)length;
        if (f.type == GWT_FRAME_EVENTS)
            f.raw_size = f.count * (uint32_t)sizeof(struct gwt_record);
        payload = length;
        if (f.codec == GWT_CODEC_RAW)
            memcpy(out + n + sizeof(f), in, length);
        else
            payload = ZSTD_compress(out + n + sizeof(f), ROOM - n - sizeof(f), in, length, 1);
        f.stored_size = (uint32_t)payload;
        memcpy(out + n, &f, sizeof(f));
        n += sizeof(f) + payload;
        in += length;
        size -= length;
    }
    fix_checksums(out, n);
    return n;
}

static volatile size_t sink;

static void look_at_everything(struct gwt_trace *t)
{
    const struct gwt_coverage *c = gwt_coverage(t);
    const struct gwt_def_device *device;
    struct gwt_signature_info signature;
    struct gwt_thread_info thread;
    struct gwt_graph_info graph;
    struct gwt_stack_info stack;
    const char *key, *value;
    size_t sum = 0; /* so that strings are read to their end */

    MUST(c->from_ring <= c->events);
    for (size_t i = 0; gwt_fact_at(t, i, &key, &value); i++)
        sum += strlen(key) + strlen(value) + (gwt_fact(t, key) != NULL);
    for (uint32_t id = 0; id < 300; id++) {
        if ((value = gwt_string(t, id)))
            sum += strlen(value);
        if (gwt_signature(t, id, &signature) && signature.name)
            sum += strlen(signature.name);
        if (gwt_graph(t, id, &graph) && graph.graph->items)
            sum += graph.items[graph.graph->items - 1].count;
        if (gwt_stack(t, id, &stack) && stack.count)
            sum += stack.frames[stack.count - 1].line;
        device = gwt_device(t, id, &value);
        if (device)
            sum += device->sms + strlen(value);
        if (gwt_comm(t, id))
            sum += (size_t)gwt_comm(t, id)->ranks;
        if (gwt_stream(t, (uint16_t)id))
            sum += gwt_stream(t, (uint16_t)id)->device;
        if ((value = gwt_api_name(t, (uint16_t)id)))
            sum += strlen(value);
    }
    for (size_t i = 0; gwt_thread_at(t, i, &thread); i++) {
        sum += thread.name ? strlen(thread.name) : 0;
        sum += thread.open_api ? strlen(thread.open_api) : 0;
    }
    for (size_t i = 0; gwt_aggregate_at(t, i); i++)
        sum += gwt_aggregate_at(t, i)->failed;
    for (int i = 0; i < GWT_COUNTER_SLOTS; i++)
        sum += gwt_counter(t, (enum gwt_counter)i);
    sink = sum;
}

static void read_it(void)
{
    struct gwt_error error;
    struct gwt_trace *t;
    uint64_t passes[2] = {0};

    if (gwt_open(dump, &t, &error)) {
        MUST(!t && error.text[0]);
        return;
    }
    look_at_everything(t);
    for (int i = 0; i < 2; i++) {
        struct gwt_event e;
        int more;

        while ((more = gwt_next(t, &e)) && passes[i] < EVENTS_MAX) {
            MUST(more == 1 && e.t1_ns >= e.t0_ns);
            passes[i]++;
        }
        if (!more) /* damage was met in the first pass, so the figures are final */
            MUST(gwt_coverage(t)->events == passes[i]);
        gwt_rewind(t);
    }
    MUST(passes[0] == passes[1]);
    look_at_everything(t);
    gwt_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[3][ROOM], whole[ROOM + sizeof(struct gwt_file_header)];
    struct gwt_file_header h = {
        .magic = GWT_MAGIC,
        .version_major = GWT_VERSION_MAJOR,
        .header_size = sizeof(h),
        .clock = GWT_CLOCK_TSC,
        .pid = 1,
    };
    size_t parts[3], n;
    unsigned flags;

    if (!directory[0]) {
        start();
        atexit(finish);
    }
    if (size < 4 || size > ROOM)
        return 0;
    flags = data[0];
    for (int i = 0; i < 3; i++)
        parts[i] = (size - 4) * data[1 + i] / 256;
    data += 4;
    size -= 4;
    for (int i = 0; i < 3; i++) {
        if (parts[i] > size)
            parts[i] = size;
        memcpy(bytes[i], data, parts[i]);
        data += parts[i];
        size -= parts[i];
    }

    if (flags & 2) {
        memcpy(whole, &h, sizeof(h));
        n = sizeof(h) + build(whole + sizeof(h), data, size);
    } else {
        memcpy(whole, data, size);
        n = size;
        if (n >= sizeof(h)) { /* else the ring's path could name any file there is */
            memset(whole + offsetof(struct gwt_file_header, ring_path), 0, sizeof(h.ring_path));
            memcpy(&h, whole, sizeof(h));
        }
        if (flags & 1)
            fix_checksums(whole, n);
    }
    for (int i = 0; i < 3 && (flags & 1); i++)
        fix_checksums(bytes[i], parts[i]);
    if (flags & 4) {
        struct gwt_ring_header r;

        for (int i = 1; i < 3; i++)
            if (parts[i] >= sizeof(h))
                memcpy(bytes[i], &h, sizeof(h));
        if (parts[0] >= sizeof(r)) {
            memcpy(&r, bytes[0], sizeof(r));
            memcpy(r.magic, GWT_RING_MAGIC, sizeof(r.magic));
            r.version_major = GWT_VERSION_MAJOR;
            r.pid = h.pid;
            r.process_start = h.process_start;
            memcpy(r.boot_id, h.boot_id, sizeof(r.boot_id));
            memcpy(bytes[0], &r, sizeof(r));
        }
    }
    put(dump, whole, n);
    put(ring, bytes[0], parts[0]);
    put(tails[0], bytes[1], parts[1]);
    put(tails[1], bytes[2], parts[2]);
    read_it();
    return 0;
}
