/* pack: makes inputs of fuzz_analysis and fuzz_job as small as recordings are, for the corpus.
 *
 *     build/fuzz/pack FOLDER FILE...     the same names in FOLDER, which exists
 *
 * What the mutator wrote has raw frames, a byte of which is a byte of a record. They are compressed
 * where that is lossless and saves something; the rest stays as it is. */
#include "trace/codec.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST (1u << 20) /* bytes of an input; fuzz/dump.h */

static struct gwt_encoder *encoder;
static struct gwt_decoder *decoder;
static uint8_t in[MOST], out[2 * MOST], packed[2 * MOST], back[MOST];

static void *memory_of(size_t size)
{
    void *p = aligned_alloc(64, (size + 63) & ~(size_t)63);
    if (!p)
        abort();
    return p;
}

/* post: the bytes of the payload packed, or -1: it stays raw */
static long pack_payload(struct gwt_frame *f, const uint8_t *raw)
{
    size_t size = f->raw_size;
    bool records = f->type == GWT_FRAME_EVENTS;
    long n = -1;
    if (f->codec != GWT_CODEC_RAW || f->stored_size != size || !size)
        return -1;
    if (!records) {
        n = gwt_encode_bytes(encoder, raw, size, packed, sizeof(packed));
        if (n <= 0 || gwt_decode_bytes(packed, (size_t)n, back, size))
            return -1;
    } else if (f->count && f->count <= GWT_FRAME_RECORDS_MAX &&
               size == f->count * sizeof(struct gwt_record)) {
        const struct gwt_record *r = memcpy(memory_of(size), raw, size);
        n = gwt_encode_records(encoder, r, f->count, packed, sizeof(packed));
        free((void *)r);
        if (n <= 0 ||
            gwt_decode_records(decoder, packed, (size_t)n, (struct gwt_record *)back, f->count))
            return -1;
    }
    if (n < 0 || (size_t)n >= size || memcmp(back, raw, size) != 0)
        return -1;
    f->codec = records ? GWT_CODEC_COLUMNS_ZSTD : GWT_CODEC_ZSTD;
    f->stored_size = (uint32_t)n;
    f->payload_check = gwt_crc32c(packed, (size_t)n);
    return n;
}

static size_t put(size_t at, const void *bytes, size_t size)
{
    memcpy(out + at, bytes, size);
    return at + size;
}

/* post: bytes in `out` */
static size_t pack(size_t size)
{
    struct gwt_frame f;
    size_t to = 0, at = 0;
    while (at < size) {
        if (size - at < sizeof(f) || (memcpy(&f, in + at, sizeof(f)), f.magic != GWT_FRAME_MAGIC) ||
            f.stored_size > size - at - sizeof(f)) {
            to = put(to, in + at++, 1); /* a header, or what is no frame */
            continue;
        }
        const uint8_t *payload = in + at + sizeof(f);
        at += sizeof(f) + f.stored_size;
        long n = pack_payload(&f, payload);
        to = put(to, &f, sizeof(f));
        to = n < 0 ? put(to, payload, f.stored_size) : put(to, packed, (size_t)n);
    }
    return to;
}

static bool one(const char *folder, const char *path)
{
    char name[4096];
    const char *base = strrchr(path, '/');
    FILE *f = fopen(path, "rb");
    snprintf(name, sizeof(name), "%s/%s", folder, base ? base + 1 : path);
    if (!f) {
        perror(path);
        return false;
    }
    size_t size = fread(in, 1, sizeof(in), f);
    fclose(f);
    if (!(f = fopen(name, "wb"))) {
        perror(name);
        return false;
    }
    size_t n = pack(size);
    bool written = fwrite(out, 1, n, f) == n;
    if (fclose(f) || !written) {
        perror(name);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    bool good = argc > 2;
    if (!good)
        fprintf(stderr, "usage: pack FOLDER FILE...\n");
    encoder = gwt_encoder_init(memory_of(gwt_encoder_size()), gwt_encoder_size());
    decoder = gwt_decoder_init(memory_of(gwt_decoder_size(GWT_FRAME_RECORDS_MAX)),
                               gwt_decoder_size(GWT_FRAME_RECORDS_MAX), GWT_FRAME_RECORDS_MAX);
    for (int i = 2; i < argc && good; i++)
        good = one(argv[1], argv[i]);
    return !good;
}
