/* Bytes and nanoseconds per event of the codec, by how many events a frame holds. As in the
 * drain thread, records were just copied out of a ring when they are encoded. Best of several
 * passes, since other work on the machine only adds. */
#include "stream.h"

#define EVENTS (1u << 20)
#define PASSES 7

struct bench {
    struct gwt_encoder *encoder;
    struct gwt_decoder *decoder;
    struct gwt_record *records, *frame, *back;
    void *out;
    size_t room;
};

/* post: false if what came back is not what went in. */
static bool measure(struct bench *b, uint32_t count)
{
    uint64_t bytes = 0, encode = UINT64_MAX, decode = UINT64_MAX;

    for (int pass = 0; pass < PASSES; pass++) {
        uint64_t encoding = 0, decoding = 0;

        bytes = 0;
        for (uint32_t at = 0; at < EVENTS; at += count) {
            uint64_t t0, t1, t2;
            long n;

            memcpy(b->frame, b->records + at, count * sizeof(*b->frame));
            t0 = now_ns();
            n = gwt_encode_records(b->encoder, b->frame, count, b->out, b->room);
            t1 = now_ns();
            if (n < 0 || gwt_decode_records(b->decoder, b->out, (size_t)n, b->back, count))
                return false;
            t2 = now_ns();
            if (memcmp(b->back, b->frame, count * sizeof(*b->back)))
                return false;
            bytes += (uint64_t)n + sizeof(struct gwt_frame);
            encoding += t1 - t0;
            decoding += t2 - t1;
        }
        encode = encoding < encode ? encoding : encode;
        decode = decoding < decode ? decoding : decode;
    }
    printf("%8u %12.2f %12.1f %12.1f\n", count, (double)bytes / EVENTS, (double)encode / EVENTS,
           (double)decode / EVENTS);
    return true;
}

int main(void)
{
    size_t encoder = (gwt_encoder_size() + 63) & ~(size_t)63;
    size_t decoder = (gwt_decoder_size(GWT_FRAME_RECORDS_MAX) + 63) & ~(size_t)63;
    struct bench b = {.room = gwt_encode_bound(GWT_FRAME_RECORDS_MAX * sizeof(struct gwt_record))};
    void *memory = aligned_alloc(64, encoder), *more = aligned_alloc(64, decoder);
    uint32_t calls = 0;

    b.records = calloc(EVENTS, sizeof(*b.records));
    b.frame = calloc(GWT_FRAME_RECORDS_MAX, sizeof(*b.frame));
    b.back = calloc(GWT_FRAME_RECORDS_MAX, sizeof(*b.back));
    b.out = malloc(b.room);
    if (!memory || !more || !b.records || !b.frame || !b.back || !b.out)
        return 1;
    b.encoder = gwt_encoder_init(memory, encoder);
    b.decoder = gwt_decoder_init(more, decoder, GWT_FRAME_RECORDS_MAX);
    if (!b.encoder || !b.decoder)
        return 1;
    fill(b.records, EVENTS);
    for (int half = 0; half < 2; half++) {
        printf("%s\n%8s %12s %12s %12s\n", half ? "calls alone" : "calls and allocator reports",
               "frame", "bytes/event", "encode ns", "decode ns");
        for (uint32_t count = 64; count <= GWT_FRAME_RECORDS_MAX; count *= 4)
            if (!measure(&b, count))
                return 1;
        for (uint32_t i = 0; !half && i < EVENTS; i++)
            if (b.records[i].api != GWT_API_PSEUDO + GWT_ALLOCATOR)
                b.records[calls++] = b.records[i];
        for (uint32_t i = calls; !half && i < EVENTS; i++) { /* and once more from the start */
            b.records[i] = b.records[i - calls];
            b.records[i].t0 += b.records[calls - 1].t0 - b.records[0].t0;
        }
    }
    free(memory);
    free(more);
    free(b.records);
    free(b.frame);
    free(b.back);
    free(b.out);
    return 0;
}
