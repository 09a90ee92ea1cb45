/* The codec. The first byte chooses what the rest is: a stored frame; columns, which are put
 * into a sound zstd frame first, since a fuzzer does not guess checksums; or records, which
 * must survive the round trip. */
#include "replay.h"

#include "trace/codec.h"

#include <errno.h>
#include <string.h>
#include <zstd.h>

#define COUNT_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gwt_encoder *encoder;
    static struct gwt_decoder *decoder;
    static struct gwt_record in[COUNT_MAX], out[COUNT_MAX];
    static uint8_t *stored;
    static size_t room;
    uint32_t count;
    int mode, rc;
    long n;

    if (!encoder) {
        size_t e = (gwt_encoder_size() + 63) & ~(size_t)63;
        size_t d = (gwt_decoder_size(COUNT_MAX) + 63) & ~(size_t)63;

        encoder = gwt_encoder_init(aligned_alloc(64, e), e);
        decoder = gwt_decoder_init(aligned_alloc(64, d), d, COUNT_MAX);
        room = gwt_encode_bound(sizeof(in)) + (1 << 20);
        stored = malloc(room);
        MUST(encoder && decoder && stored);
    }
    if (size < 3)
        return 0;
    mode = data[0] % 3;
    count = data[1] | (uint32_t)data[2] << 8;
    data += 3;
    size -= 3;

    if (mode == 2) {
        count = size / sizeof(*in) < COUNT_MAX ? (uint32_t)(size / sizeof(*in)) : COUNT_MAX;
        if (!count)
            return 0;
        memcpy(in, data, count * sizeof(*in));
        n = gwt_encode_records(encoder, in, count, stored, room);
        MUST(n > 0 && (size_t)n <= gwt_encode_bound(count * sizeof(*in)));
        MUST(!gwt_decode_records(decoder, stored, (size_t)n, out, count));
        MUST(!memcmp(in, out, count * sizeof(*in)));
        return 0;
    }
    if (mode == 1) {
        size_t z = ZSTD_compress(stored, room, data, size, 1);

        MUST(!ZSTD_isError(z));
        rc = gwt_decode_records(decoder, stored, z, out, count);
        MUST(rc == 0 || rc == -EBADMSG);
        if (rc) /* more records than the frame holds or than the decoder takes */
            return 0;
        /* what was accepted is a set of records like any other */
        n = gwt_encode_records(encoder, out, count, stored, room);
        MUST(n > 0);
        MUST(!gwt_decode_records(decoder, stored, (size_t)n, in, count));
        MUST(!memcmp(in, out, count * sizeof(*in)));
        return 0;
    }
    rc = gwt_decode_records(decoder, data, size, out, count);
    MUST(rc == 0 || rc == -EBADMSG);
    rc = gwt_decode_bytes(data, size, out, count);
    MUST(rc == 0 || rc == -EBADMSG);
    return 0;
}
