/* Events as columns.
 *
 * A frame's records are divided into groups of one api each, because what repeats
 * within an api (flags, stream, the upper bytes of durations) differs between apis.
 * Within a group each of a record's 32 bytes is a plane: kept once if it is the same
 * in the whole group, else one byte per record. What remains is mostly the low bytes
 * of gaps and durations, which are noise. Before compression:
 *
 *   struct columns_header
 *   struct columns_group   x groups
 *   constant bytes         32 - popcount(varies) for each group, ascending
 *   order                  count bytes, the group of each record; absent if groups = 1
 *   planes                 by group, ascending, `records` bytes for each bit of `varies`
 *
 * Two fields are predicted, and the zigzag of what differs is stored: a record's entry
 * from the previous record's return (records are in order of return, so it is negative
 * for the outer of two nested calls), and an allocator report's totals from the one
 * before. All arithmetic wraps, so any 32 bytes survive the round trip.
 */
#define ZSTD_STATIC_LINKING_ONLY
#include "codec.h"

#include <errno.h>
#include <string.h>
#include <zstd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little-endian");

#define LEVEL      1 /* higher levels measured larger or no smaller: the rest is noise */
#define PLANES     32
#define GROUPS_MAX 256
#define TILE       256 /* records transposed at a time: 8 KiB stay in the first cache */
#define ALIGN      64
#define ALIGNED(n) (((n) + (ALIGN - 1)) & ~(size_t)(ALIGN - 1))
#define ALLOCATOR  (GWT_API_PSEUDO + GWT_ALLOCATOR)
#define COLUMNS_MAX(count)                                                                         \
    (sizeof(struct columns_header) + GROUPS_MAX * (sizeof(struct columns_group) + PLANES) +        \
     (size_t)(count) * (PLANES + 1))

struct columns_header {
    uint32_t groups; /* 1 .. GROUPS_MAX */
    uint32_t reserved_512;
    uint64_t t0; /* what the first record is predicted from */
    uint64_t allocated;
};

struct columns_group {
    uint32_t records;
    uint32_t varies; /* bit n: byte n of the record */
};

/* What the next record is predicted from. */
struct predictor {
    uint64_t end;
    uint64_t allocated;
    uint32_t reserved_512;
};

struct words { /* a record */
    uint64_t w[4];
};

struct group {
    uint64_t varies[4]; /* bits in which its records differ from its first */
    uint32_t start;     /* its records in the encoder's `grouped` */
    uint32_t records;
    uint32_t first; /* of them in the input */
    uint16_t api;
};

struct gwt_encoder {
    ZSTD_CCtx *zstd;
    struct group groups[GROUPS_MAX];
    uint8_t *group_of; /* by api: 1 + group; 0: none yet, and always so between frames */
    uint8_t *order;
    struct words *grouped;
    uint8_t *columns;
};

static uint64_t zigzag64(uint64_t v)
{
    return v << 1 ^ (0 - (v >> 63));
}

static uint64_t unzigzag64(uint64_t v)
{
    return v >> 1 ^ (0 - (v & 1));
}

static uint32_t zigzag32(uint32_t v)
{
    return v << 1 ^ (0 - (v >> 31));
}

static uint32_t unzigzag32(uint32_t v)
{
    return v >> 1 ^ (0 - (v & 1));
}

static inline struct words load_words(const void *record)
{
    struct words r;

    memcpy(&r.w[0], (const char *)record, 8);
    memcpy(&r.w[1], (const char *)record + 8, 8);
    memcpy(&r.w[2], (const char *)record + 16, 8);
    memcpy(&r.w[3], (const char *)record + 24, 8);
    return r;
}

static inline void store_words(void *record, struct words r)
{
    memcpy((char *)record, &r.w[0], 8);
    memcpy((char *)record + 8, &r.w[1], 8);
    memcpy((char *)record + 16, &r.w[2], 8);
    memcpy((char *)record + 24, &r.w[3], 8);
}

/* Sizes are signed: sign-extend before scaling. */
static uint64_t bytes_of_512(uint32_t size_512)
{
    return (uint64_t)(int64_t)(int32_t)size_512 << 9;
}

/* Records are handled as four words, loaded and stored one by one: a store of fields, then
 * a load of the whole, stalls for longer than everything else here takes. */
#define W1_DUR(w)   ((uint32_t)(w))
#define W1_API(w)   ((uint16_t)((w) >> 32))
#define W1_FLAGS(w) ((uint16_t)((w) >> 48))
#define W2_SIZE(w)  ((uint32_t)((w) >> 32))
#define LOW         0xffffffffu

_Static_assert(offsetof(struct gwt_record, dur) == 8 && offsetof(struct gwt_record, flags) == 14 &&
                   offsetof(struct gwt_record_allocator, reserved_512) == 8 &&
                   offsetof(struct gwt_record_allocator, size_512) == 20,
               "the W macros");

/* What predictions rest on is part of the format, so kinds that are added later are treated
 * like any call here, whatever they keep in `dur`. */
static uint64_t ticks_of(uint64_t w1)
{
    return W1_FLAGS(w1) & GWT_F_LONG ? (uint64_t)W1_DUR(w1) << 10 : W1_DUR(w1);
}

static inline struct words predict_encode(struct words r, struct predictor *p)
{
    uint64_t t0 = r.w[0];

    r.w[0] = zigzag64(t0 - p->end);
    if (W1_API(r.w[1]) == ALLOCATOR) {
        uint32_t reserved = W1_DUR(r.w[1]), size = W2_SIZE(r.w[2]);
        uint64_t allocated = r.w[3];

        r.w[1] = (r.w[1] & ~(uint64_t)LOW) | zigzag32(reserved - p->reserved_512);
        r.w[2] = (r.w[2] & LOW) | (uint64_t)zigzag32(size) << 32;
        r.w[3] = zigzag64(allocated - p->allocated - bytes_of_512(size));
        *p = (struct predictor){t0, allocated, reserved};
    } else {
        p->end = t0 + ticks_of(r.w[1]);
    }
    return r;
}

static inline struct words predict_decode(struct words r, struct predictor *p)
{
    r.w[0] = p->end + unzigzag64(r.w[0]);
    if (W1_API(r.w[1]) == ALLOCATOR) {
        uint32_t reserved = p->reserved_512 + unzigzag32(W1_DUR(r.w[1]));
        uint32_t size = unzigzag32(W2_SIZE(r.w[2]));
        uint64_t allocated = p->allocated + bytes_of_512(size) + unzigzag64(r.w[3]);

        r.w[1] = (r.w[1] & ~(uint64_t)LOW) | reserved;
        r.w[2] = (r.w[2] & LOW) | (uint64_t)size << 32;
        r.w[3] = allocated;
        *p = (struct predictor){r.w[0], allocated, reserved};
    } else {
        p->end = r.w[0] + ticks_of(r.w[1]);
    }
    return r;
}

/* ---- encoding ----------------------------------------------------------------------------- */

static size_t zstd_size(void)
{
    return ALIGNED((size_t)ZSTD_estimateCCtxSize(LEVEL));
}

size_t gwt_encoder_size(void)
{
    return ALIGNED(sizeof(struct gwt_encoder)) + zstd_size() + ALIGNED(UINT16_MAX + 1) +
           ALIGNED(GWT_FRAME_RECORDS_MAX) +
           ALIGNED(GWT_FRAME_RECORDS_MAX * sizeof(struct gwt_record)) +
           ALIGNED(COLUMNS_MAX(GWT_FRAME_RECORDS_MAX));
}

struct gwt_encoder *gwt_encoder_init(void *memory, size_t size)
{
    struct gwt_encoder *e = memory;
    uint8_t *at = memory;

    if (size < gwt_encoder_size() || (uintptr_t)memory % ALIGN)
        return NULL;
    at += ALIGNED(sizeof(*e));
    e->zstd = ZSTD_initStaticCCtx(at, zstd_size());
    /* a static context starts with every flag 0, content size too, unlike a created one */
    if (!e->zstd || ZSTD_isError(ZSTD_CCtx_reset(e->zstd, ZSTD_reset_session_and_parameters)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_checksumFlag, 1)))
        return NULL;
    at += zstd_size();
    e->group_of = at;
    memset(e->group_of, 0, UINT16_MAX + 1);
    at += ALIGNED(UINT16_MAX + 1);
    e->order = at;
    at += ALIGNED(GWT_FRAME_RECORDS_MAX);
    e->grouped = (struct words *)at;
    at += ALIGNED(GWT_FRAME_RECORDS_MAX * sizeof(struct gwt_record));
    e->columns = at;
    return e;
}

size_t gwt_encode_bound(size_t raw)
{
    /* columns of `raw` bytes of records may be larger than the records */
    return ZSTD_compressBound(COLUMNS_MAX(raw / sizeof(struct gwt_record)) + PLANES);
}

long gwt_encode_bytes(struct gwt_encoder *e, const void *raw, size_t raw_size, void *out,
                      size_t out_size)
{
    size_t n;

    if (raw_size > GWT_FRAME_RAW_MAX)
        return -EFBIG;
    n = ZSTD_compress2(e->zstd, out, out_size, raw, raw_size);
    return ZSTD_isError(n) ? -ENOBUFS : (long)n;
}

/* One api, one group, as long as there are enough: the last takes every api beyond.
 * post: groups used; e->order holds the group of each record. */
static uint32_t divide(struct gwt_encoder *e, const struct gwt_record *records, uint32_t count)
{
    uint32_t used = 0, start = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t g = e->group_of[records[i].api];

        if (g) {
            g--;
        } else if (used < GROUPS_MAX) {
            g = used++;
            e->groups[g] = (struct group){.api = records[i].api, .first = i};
            if (g < GROUPS_MAX - 1)
                e->group_of[records[i].api] = (uint8_t)(g + 1);
        } else {
            g = GROUPS_MAX - 1;
        }
        e->order[i] = (uint8_t)g;
        e->groups[g].records++;
    }
    for (uint32_t g = 0; g < used; g++) {
        e->group_of[e->groups[g].api] = 0;
        e->groups[g].start = start;
        start += e->groups[g].records;
        e->groups[g].records = 0; /* gather() counts them again */
    }
    return used;
}

static void gather(struct gwt_encoder *e, const struct gwt_record *records, uint32_t count,
                   struct predictor p)
{
    for (uint32_t i = 0; i < count; i++) {
        struct group *g = &e->groups[e->order[i]];
        struct words *first = &e->grouped[g->start];
        struct words r = predict_encode(load_words(&records[i]), &p);

        store_words(&first[g->records++], r);
        g->varies[0] |= first->w[0] ^ r.w[0];
        g->varies[1] |= first->w[1] ^ r.w[1];
        g->varies[2] |= first->w[2] ^ r.w[2];
        g->varies[3] |= first->w[3] ^ r.w[3];
    }
}

static uint32_t varying_planes(const struct group *g)
{
    uint32_t mask = 0;

    for (unsigned plane = 0; plane < PLANES; plane++)
        mask |= (uint32_t)((g->varies[plane / 8] >> plane % 8 * 8 & 0xff) != 0) << plane;
    return mask;
}

/* post: the end of the planes. */
static uint8_t *transpose(const struct words *from, uint32_t records, uint32_t varies, uint8_t *to)
{
    const uint8_t *bytes = (const uint8_t *)from;

    for (uint32_t tile = 0; tile < records; tile += TILE) {
        uint32_t n = records - tile < TILE ? records - tile : TILE;
        uint8_t *plane = to + tile;

        for (uint32_t left = varies; left; left &= left - 1, plane += records) {
            const uint8_t *in = bytes + (size_t)tile * PLANES + (unsigned)__builtin_ctz(left);

            for (uint32_t i = 0; i < n; i++)
                plane[i] = in[(size_t)i * PLANES];
        }
    }
    return to + (size_t)records * (unsigned)__builtin_popcount(varies);
}

/* The first record of each kind is predicted exactly, or it would be an outlier that
 * makes planes vary which otherwise do not. pre: divided into `groups`. */
static struct predictor predictor_from(const struct gwt_encoder *e,
                                       const struct gwt_record *records, uint32_t groups)
{
    struct predictor p = {.end = records[0].t0};

    for (uint32_t g = 0; g < groups; g++) {
        struct gwt_record_allocator a;

        if (e->groups[g].api != ALLOCATOR)
            continue;
        memcpy(&a, &records[e->groups[g].first], sizeof(a));
        p.reserved_512 = a.reserved_512;
        p.allocated = a.allocated - bytes_of_512((uint32_t)a.size_512);
    }
    return p;
}

long gwt_encode_records(struct gwt_encoder *e, const struct gwt_record *records, uint32_t count,
                        void *out, size_t out_size)
{
    struct columns_header header;
    struct predictor p;
    uint8_t *to = e->columns, *constant;
    size_t n;

    if (!count || count > GWT_FRAME_RECORDS_MAX)
        return -EINVAL;
    header.groups = divide(e, records, count);
    p = predictor_from(e, records, header.groups);
    header.t0 = p.end;
    header.allocated = p.allocated;
    header.reserved_512 = p.reserved_512;
    gather(e, records, count, p);

    memcpy(to, &header, sizeof(header));
    to += sizeof(header);
    constant = to + header.groups * sizeof(struct columns_group);
    for (uint32_t g = 0; g < header.groups; g++) {
        struct columns_group group = {e->groups[g].records, varying_planes(&e->groups[g])};
        const uint8_t *first = (const uint8_t *)&e->grouped[e->groups[g].start];

        memcpy(to, &group, sizeof(group));
        to += sizeof(group);
        for (uint32_t left = ~group.varies; left; left &= left - 1)
            *constant++ = first[__builtin_ctz(left)];
    }
    to = constant;
    if (header.groups > 1) {
        memcpy(to, e->order, count);
        to += count;
    }
    for (uint32_t g = 0; g < header.groups; g++)
        to = transpose(&e->grouped[e->groups[g].start], e->groups[g].records,
                       varying_planes(&e->groups[g]), to);

    n = ZSTD_compress2(e->zstd, out, out_size, e->columns, (size_t)(to - e->columns));
    return ZSTD_isError(n) ? -ENOBUFS : (long)n;
}

/* ---- decoding: nothing in the input is to be believed ------------------------------------- */

struct gwt_decoder {
    ZSTD_DCtx *zstd;
    uint32_t count_max;
    uint8_t *columns;
    struct words *grouped;
};

static size_t dctx_size(void)
{
    return ALIGNED((size_t)ZSTD_estimateDCtxSize());
}

size_t gwt_decoder_size(uint32_t count)
{
    return ALIGNED(sizeof(struct gwt_decoder)) + dctx_size() + ALIGNED(COLUMNS_MAX(count)) +
           ALIGNED((size_t)count * sizeof(struct gwt_record));
}

struct gwt_decoder *gwt_decoder_init(void *memory, size_t size, uint32_t count)
{
    struct gwt_decoder *d = memory;
    uint8_t *at = memory;

    if (size < gwt_decoder_size(count) || (uintptr_t)memory % ALIGN)
        return NULL;
    at += ALIGNED(sizeof(*d));
    d->zstd = ZSTD_initStaticDCtx(at, dctx_size());
    at += dctx_size();
    d->columns = at;
    at += ALIGNED(COLUMNS_MAX(count));
    d->grouped = (struct words *)at;
    d->count_max = count;
    return d->zstd ? d : NULL;
}

/* post: exactly the stored frame was consumed and `to` holds what it says, or -EBADMSG. */
static long unzstd(ZSTD_DCtx *zstd, const void *stored, size_t stored_size, void *to, size_t room)
{
    unsigned long long size = ZSTD_getFrameContentSize(stored, stored_size);
    size_t n;

    if (size > room || ZSTD_findFrameCompressedSize(stored, stored_size) != stored_size)
        return -EBADMSG;
    n = ZSTD_decompressDCtx(zstd, to, (size_t)size, stored, stored_size);
    return ZSTD_isError(n) || n != size ? -EBADMSG : (long)n;
}

#ifdef __SSE2__
#define BLOCK 8u /* records transposed at once: bytes of a word */

/* post: word by word, the bytes at rows[0..7][at..] are those of `to`, of BLOCK records. */
static inline void transpose_block(struct words *to, unsigned word, const uint8_t *const rows[8],
                                   uint32_t at)
{
#define ROW(k) _mm_loadl_epi64((const __m128i *)(rows[k] + at))
    __m128i a = _mm_unpacklo_epi8(ROW(0), ROW(1)), b = _mm_unpacklo_epi8(ROW(2), ROW(3));
    __m128i c = _mm_unpacklo_epi8(ROW(4), ROW(5)), d = _mm_unpacklo_epi8(ROW(6), ROW(7));
#undef ROW
    __m128i low = _mm_unpacklo_epi16(a, b), high = _mm_unpacklo_epi16(c, d);
    __m128i low4 = _mm_unpackhi_epi16(a, b), high4 = _mm_unpackhi_epi16(c, d);
    __m128i two0 = _mm_unpacklo_epi32(low, high), two2 = _mm_unpackhi_epi32(low, high);
    __m128i two4 = _mm_unpacklo_epi32(low4, high4), two6 = _mm_unpackhi_epi32(low4, high4);

#define STORE(i, two)                                                                              \
    _mm_storel_epi64((__m128i *)&to[i].w[word], two);                                              \
    _mm_storeh_pd((double *)&to[(i) + 1].w[word], _mm_castsi128_pd(two))
    STORE(0, two0);
    STORE(2, two2);
    STORE(4, two4);
    STORE(6, two6);
#undef STORE
}

/* A word of `n` records, a multiple of BLOCK. post: the plane behind this word's. */
static const uint8_t *untranspose_word(struct words *to, unsigned word, uint32_t n, uint64_t like,
                                       uint32_t varies, const uint8_t *plane, size_t stride)
{
    uint8_t same[8][TILE];
    const uint8_t *rows[8];

    if (!varies) {
        for (uint32_t i = 0; i < n; i++)
            to[i].w[word] = like;
        return plane;
    }
    for (unsigned k = 0; k < 8; k++) {
        if (varies >> k & 1) {
            rows[k] = plane;
            plane += stride;
        } else {
            memset(same[k], (int)(like >> 8 * k & 0xff), n);
            rows[k] = same[k];
        }
    }
    for (uint32_t i = 0; i < n; i += BLOCK)
        transpose_block(to + i, word, rows, i);
    return plane;
}

static uint32_t untranspose_blocks(struct words *to, uint32_t n, struct words like, uint32_t varies,
                                   const uint8_t *plane, size_t stride)
{
    n -= n % BLOCK;
    for (unsigned word = 0; word < 4 && n; word++)
        plane =
            untranspose_word(to, word, n, like.w[word], varies >> 8 * word & 0xff, plane, stride);
    return n;
}
#else
static uint32_t untranspose_blocks(struct words *to, uint32_t n, struct words like, uint32_t varies,
                                   const uint8_t *plane, size_t stride)
{
    (void)to, (void)n, (void)like, (void)varies, (void)plane, (void)stride;
    return 0;
}
#endif

/* post: `to` are records like `like` but for the planes. */
static const uint8_t *untranspose(struct words *to, uint32_t records, struct words like,
                                  uint32_t varies, const uint8_t *from)
{
    for (uint32_t tile = 0; tile < records; tile += TILE) {
        uint32_t n = records - tile < TILE ? records - tile : TILE;
        uint32_t done = untranspose_blocks(to + tile, n, like, varies, from + tile, records);
        const uint8_t *plane = from + tile + done;
        uint8_t *bytes = (uint8_t *)(to + tile + done);

        n -= done;
        for (uint32_t i = 0; i < n; i++)
            to[tile + done + i] = like;
        for (uint32_t left = varies; left && n; left &= left - 1, plane += records) {
            uint8_t *out = bytes + (unsigned)__builtin_ctz(left);

            for (uint32_t i = 0; i < n; i++)
                out[(size_t)i * PLANES] = plane[i];
        }
    }
    return from + (size_t)records * (unsigned)__builtin_popcount(varies);
}

/* post: 0 and `grouped` filled, next[] = where each group starts there, *order. */
static int ungroup(const uint8_t *at, size_t size, uint32_t groups, uint32_t count,
                   struct words *grouped, uint32_t next[GROUPS_MAX], const uint8_t **order)
{
    const uint8_t *end = at + size, *constant, *planes;
    size_t constants = 0, varying = 0;
    uint32_t records = 0;

    if (!groups || groups > GROUPS_MAX || size < groups * sizeof(struct columns_group))
        return -EBADMSG;
    for (uint32_t g = 0; g < groups; g++) {
        struct columns_group group;

        memcpy(&group, at + g * sizeof(group), sizeof(group));
        if (!group.records || group.records > count - records)
            return -EBADMSG;
        next[g] = records;
        records += group.records;
        constants += PLANES - (unsigned)__builtin_popcount(group.varies);
        varying += (size_t)group.records * (unsigned)__builtin_popcount(group.varies);
    }
    constant = at + groups * sizeof(struct columns_group);
    *order = groups > 1 ? constant + constants : NULL;
    planes = constant + constants + (groups > 1 ? count : 0);
    if (records != count ||
        (size_t)(end - constant) != constants + (groups > 1 ? count : 0) + varying)
        return -EBADMSG;

    for (uint32_t g = 0; g < groups; g++) {
        struct columns_group group;
        uint8_t first[PLANES] = {0};

        memcpy(&group, at + g * sizeof(group), sizeof(group));
        for (uint32_t left = ~group.varies; left; left &= left - 1)
            first[__builtin_ctz(left)] = *constant++;
        planes =
            untranspose(&grouped[next[g]], group.records, load_words(first), group.varies, planes);
    }
    return 0;
}

int gwt_decode_records(struct gwt_decoder *d, const void *stored, size_t stored_size,
                       struct gwt_record *records, uint32_t count)
{
    const struct words *grouped = d->grouped;
    struct columns_header header;
    struct predictor p;
    uint32_t next[GROUPS_MAX + 1];
    const uint8_t *order;
    long size;

    if (!count || count > d->count_max)
        return -EBADMSG;
    size = unzstd(d->zstd, stored, stored_size, d->columns, COLUMNS_MAX(count));
    if (size < (long)sizeof(header))
        return -EBADMSG;
    memcpy(&header, d->columns, sizeof(header));
    if (ungroup(d->columns + sizeof(header), (size_t)size - sizeof(header), header.groups, count,
                d->grouped, next, &order))
        return -EBADMSG;

    p = (struct predictor){header.t0, header.allocated, header.reserved_512};
    if (order) {
        uint32_t limit[GROUPS_MAX];

        memcpy(limit, next + 1, (header.groups - 1) * sizeof(limit[0]));
        limit[header.groups - 1] = count;
        for (uint32_t g = header.groups; g < GROUPS_MAX; g++)
            next[g] = limit[g] = 0; /* none of those that there are not */
        for (uint32_t i = 0; i < count; i++) {
            uint32_t g = order[i], at = next[g];

            if (at == limit[g])
                return -EBADMSG;
            next[g] = at + 1;
            store_words(&records[i], predict_decode(load_words(&grouped[at]), &p));
        }
    } else {
        for (uint32_t i = 0; i < count; i++)
            store_words(&records[i], predict_decode(load_words(&grouped[i]), &p));
    }
    return 0;
}

int gwt_decode_bytes(const void *stored, size_t stored_size, void *raw, size_t raw_size)
{
    ZSTD_DCtx *zstd = ZSTD_createDCtx();
    long n;

    if (!zstd)
        return -ENOMEM;
    n = unzstd(zstd, stored, stored_size, raw, raw_size);
    ZSTD_freeDCtx(zstd);
    return n >= 0 && (size_t)n == raw_size ? 0 : -EBADMSG;
}

/* ---- CRC-32C: of frame headers and small raw payloads, so the table is small -------------- */

uint32_t gwt_crc32c(const void *bytes, size_t size)
{
    static const uint32_t nibble[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    const uint8_t *at = bytes;
    uint32_t crc = ~0u;

    for (size_t i = 0; i < size; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ nibble[crc & 15];
        crc = crc >> 4 ^ nibble[crc & 15];
    }
    return ~crc;
}
