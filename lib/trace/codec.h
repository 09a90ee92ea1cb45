/* Columns of event records, compressed with zstd. The drain thread encodes, so no
 * encoding function allocates, locks or prints: memory comes from the caller. */
#ifndef GW_TRACE_CODEC_H
#define GW_TRACE_CODEC_H

#include <gpuwait/format.h>

/* Pseudo records that keep something else where a call has its duration and status. */
static inline int gwt_has_no_dur(uint16_t api)
{
    return api >= GWT_API_PSEUDO &&
           (api == GWT_API_PSEUDO + GWT_ALLOCATOR || api == GWT_API_PSEUDO + GWT_SAMPLE ||
            api == GWT_API_PSEUDO + GWT_CONSTANT);
}

/* Ticks from entry to return. */
static inline uint64_t gwt_record_ticks(const struct gwt_record *r)
{
    if (gwt_has_no_dur(r->api))
        return 0;
    return r->flags & GWT_F_LONG ? (uint64_t)r->dur << 10 : r->dur;
}

/* Bytes of memory that an encoder needs (zstd's static context included). */
size_t gwt_encoder_size(void);

struct gwt_encoder;

/* pre:  memory has gwt_encoder_size() bytes, 64-aligned, and stays the encoder's.
 * post: the encoder, or NULL if the memory is too small. */
struct gwt_encoder *gwt_encoder_init(void *memory, size_t size);

/* Worst-case stored size of a frame of `raw` bytes. */
size_t gwt_encode_bound(size_t raw);

/* pre:  1 <= count <= GWT_FRAME_RECORDS_MAX; out holds gwt_encode_bound(32 * count).
 * post: bytes written (codec COLUMNS_ZSTD), or -errno. Pseudo records included. */
long gwt_encode_records(struct gwt_encoder *e, const struct gwt_record *records, uint32_t count,
                        void *out, size_t out_size);

/* post: bytes written (codec ZSTD), or -errno. raw <= GWT_FRAME_RAW_MAX. */
long gwt_encode_bytes(struct gwt_encoder *e, const void *raw, size_t raw_size, void *out,
                      size_t out_size);

/* ---- decoding: untrusted input ------------------------------------------------------------ */

struct gwt_decoder;

/* Memory for frames of up to `count` records, as gwt_encoder_size() and gwt_encoder_init(). */
size_t gwt_decoder_size(uint32_t count);
struct gwt_decoder *gwt_decoder_init(void *memory, size_t size, uint32_t count);

/* post: 0 and exactly `count` records, or -EBADMSG. */
int gwt_decode_records(struct gwt_decoder *d, const void *stored, size_t stored_size,
                       struct gwt_record *records, uint32_t count);
/* Allocates.
 * post: 0 and exactly `raw_size` bytes, -EBADMSG or -ENOMEM. */
int gwt_decode_bytes(const void *stored, size_t stored_size, void *raw, size_t raw_size);

uint32_t gwt_crc32c(const void *bytes, size_t size);

#endif
