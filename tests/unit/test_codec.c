/* The codec: what goes in comes out, and nothing else is believed. */
#include "trace_help.h"

#include <zstd.h>

struct fixture {
    struct gwt_encoder *encoder;
    struct gwt_decoder *decoder;
    uint8_t *out;
    size_t room;
    struct gwt_record *in, *back;
    uint64_t seed;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    size_t size = (gwt_encoder_size() + 63) & ~(size_t)63;
    void *memory = aligned_alloc(64, size);

    /* garbage, since the contract asks for no particular contents */
    memset(memory, 0xa5, size);
    f->encoder = gwt_encoder_init(memory, gwt_encoder_size());
    assert_non_null(f->encoder);
    assert_ptr_equal(f->encoder, memory);
    size = (gwt_decoder_size(GWT_FRAME_RECORDS_MAX) + 63) & ~(size_t)63;
    memory = aligned_alloc(64, size);
    memset(memory, 0xa5, size);
    f->decoder = gwt_decoder_init(memory, size, GWT_FRAME_RECORDS_MAX);
    assert_non_null(f->decoder);
    assert_ptr_equal(f->decoder, memory);
    f->room = gwt_encode_bound(GWT_FRAME_RECORDS_MAX * sizeof(struct gwt_record));
    f->out = malloc(f->room);
    f->in = calloc(GWT_FRAME_RECORDS_MAX, sizeof(*f->in));
    f->back = calloc(GWT_FRAME_RECORDS_MAX, sizeof(*f->back));
    f->seed = 1;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    free(f->encoder);
    free(f->decoder);
    free(f->out);
    free(f->in);
    free(f->back);
    free(f);
    return 0;
}

static uint64_t random64(struct fixture *f)
{
    f->seed ^= f->seed << 13;
    f->seed ^= f->seed >> 7;
    f->seed ^= f->seed << 17;
    return f->seed * 0x2545f4914f6cdd1du;
}

/* post: bytes that it took. */
static size_t round_trip(struct fixture *f, uint32_t count)
{
    long n = gwt_encode_records(f->encoder, f->in, count, f->out, f->room);

    assert_true(n > 0);
    memset(f->back, 0xee, count * sizeof(*f->back));
    assert_int_equal(gwt_decode_records(f->decoder, f->out, (size_t)n, f->back, count), 0);
    assert_memory_equal(f->in, f->back, count * sizeof(*f->in));
    return (size_t)n;
}

static void random_bytes_survive(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 300; i++) {
        uint32_t count = 1 + (uint32_t)(random64(f) % (i % 10 ? 300 : 5000));
        uint64_t mask = random64(f) & random64(f);
        unsigned apis = 1u << random64(f) % 12; /* up to 2048: more than there are groups */

        for (uint32_t r = 0; r < count; r++) {
            uint64_t words[4];

            for (int w = 0; w < 4; w++)
                words[w] = i % 3 ? random64(f) & mask : random64(f);
            memcpy(&f->in[r], words, sizeof(words));
            f->in[r].api = (uint16_t)(random64(f) % apis);
            if (random64(f) % 3 == 0)
                f->in[r].api = GWT_API_PSEUDO + GWT_ALLOCATOR;
        }
        round_trip(f, count);
    }
}

static void extremes_survive(void **state)
{
    static const uint64_t edge[] = {0, 1, UINT64_MAX, UINT64_MAX - 1, 1ull << 63, 1ull << 32};
    struct fixture *f = *state;
    uint32_t n = 0;

    for (size_t a = 0; a < 6; a++) {
        for (size_t b = 0; b < 6; b++) {
            for (int allocator = 0; allocator < 2; allocator++) {
                struct gwt_record *r = &f->in[n++];

                memset(r, b % 2 ? 0xff : 0, sizeof(*r));
                r->t0 = edge[a];
                r->value = edge[b];
                r->dur = (uint32_t)edge[b];
                r->arg = (uint32_t)(edge[b] >> 7);
                if (allocator)
                    r->api = GWT_API_PSEUDO + GWT_ALLOCATOR;
            }
        }
    }
    round_trip(f, n);
    for (uint32_t i = 0; i < n; i++) { /* and alone: the first record is predicted from itself */
        f->in[0] = f->in[i];
        round_trip(f, 1);
    }
}

static void every_api_is_kept(void **state)
{
    struct fixture *f = *state;

    for (uint32_t i = 0; i < GWT_FRAME_RECORDS_MAX; i++) {
        f->in[i] = record_of(1, i);
        f->in[i].api = (uint16_t)i;
    }
    round_trip(f, GWT_FRAME_RECORDS_MAX);
}

static void counts_are_bounded(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(gwt_encode_records(f->encoder, f->in, 0, f->out, f->room), -EINVAL);
    assert_int_equal(
        gwt_encode_records(f->encoder, f->in, GWT_FRAME_RECORDS_MAX + 1, f->out, f->room), -EINVAL);
    assert_int_equal(gwt_encode_bytes(f->encoder, f->in, GWT_FRAME_RAW_MAX + 1, f->out, f->room),
                     -EFBIG);
    assert_int_equal(gwt_decode_records(f->decoder, f->out, 10, f->back, 0), -EBADMSG);
    assert_null(gwt_encoder_init(f->encoder, gwt_encoder_size() - 1));
    assert_null(gwt_encoder_init((char *)f->encoder + 8, gwt_encoder_size()));
}

/* A regular loop: the least that columns must gain over the 32 bytes of a record. What real
 * streams take is bench_codec's to say. */
static void a_loop_is_small(void **state)
{
    struct fixture *f = *state;

    for (uint32_t i = 0; i < 8192; i++)
        f->in[i] = record_of(1, i);
    assert_true(round_trip(f, 8192) < 8192 * 16);
}

static void bytes_survive(void **state)
{
    struct fixture *f = *state;
    uint8_t *raw = (uint8_t *)f->in, *back = (uint8_t *)f->back;

    for (size_t size = 0; size < 5000; size += 1 + size / 3) {
        long n;

        for (size_t i = 0; i < size; i++)
            raw[i] = (uint8_t)(random64(f) % 7);
        n = gwt_encode_bytes(f->encoder, raw, size, f->out, f->room);
        assert_true(n > 0);
        assert_int_equal(gwt_decode_bytes(f->out, (size_t)n, back, size), 0);
        assert_memory_equal(raw, back, size);
        /* the size is part of the promise */
        assert_int_equal(gwt_decode_bytes(f->out, (size_t)n, back, size + 1), -EBADMSG);
        if (size)
            assert_int_equal(gwt_decode_bytes(f->out, (size_t)n, back, size - 1), -EBADMSG);
    }
}

static void truncation_is_seen(void **state)
{
    struct fixture *f = *state;
    long n;

    for (uint32_t i = 0; i < 100; i++)
        f->in[i] = record_of(1, i);
    n = gwt_encode_records(f->encoder, f->in, 100, f->out, f->room);
    assert_true(n > 0);
    for (long cut = 0; cut < n; cut++) {
        uint8_t *copy = malloc((size_t)cut + 1); /* so that ASan sees an overrun */

        memcpy(copy, f->out, (size_t)cut);
        assert_int_equal(gwt_decode_records(f->decoder, copy, (size_t)cut, f->back, 100), -EBADMSG);
        free(copy);
    }
    assert_int_equal(gwt_decode_records(f->decoder, f->out, (size_t)n, f->back, 99), -EBADMSG);
    assert_int_equal(gwt_decode_records(f->decoder, f->out, (size_t)n, f->back, 101), -EBADMSG);
    f->out[n] = 0; /* trailing bytes are no part of a frame */
    assert_int_equal(gwt_decode_records(f->decoder, f->out, (size_t)n + 1, f->back, 100), -EBADMSG);
}

/* The content checksum catches whatever flips. */
static void every_flipped_bit_is_seen(void **state)
{
    struct fixture *f = *state;
    long n;

    for (uint32_t i = 0; i < 60; i++)
        f->in[i] = record_of(1, i);
    n = gwt_encode_records(f->encoder, f->in, 60, f->out, f->room);
    for (long bit = 0; bit < 8 * n; bit++) {
        int rc;

        f->out[bit / 8] ^= (uint8_t)(1u << bit % 8);
        rc = gwt_decode_records(f->decoder, f->out, (size_t)n, f->back, 60);
        /* a header bit may mean nothing; what comes out must then be right all the same */
        if (!rc)
            assert_memory_equal(f->in, f->back, 60 * sizeof(*f->in));
        else
            assert_int_equal(rc, -EBADMSG);
        f->out[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

/* Columns that lie, in an intact zstd frame: as a hostile file would have them. */
static void lying_columns_are_refused(void **state)
{
    struct fixture *f = *state;
    static uint8_t columns[1 << 16];
    size_t size;
    long n;

    for (uint32_t i = 0; i < 100; i++)
        f->in[i] = record_of(1, i);
    n = gwt_encode_records(f->encoder, f->in, 100, f->out, f->room);
    size = ZSTD_decompress(columns, sizeof(columns), f->out, (size_t)n);
    assert_false(ZSTD_isError(size));
    for (int i = 0; i < 20000; i++) {
        uint8_t lie[4];
        size_t at = random64(f) % (size < 256 ? size : 256), cut = size - random64(f) % 3;
        size_t stored;
        int rc;

        if (at > size - sizeof(lie))
            at = size - sizeof(lie);
        memcpy(lie, columns + at, sizeof(lie));
        columns[at] = (uint8_t)random64(f);
        if (i % 2)
            memset(columns + at, i % 4 == 1 ? 0xff : 0, sizeof(lie));
        stored = ZSTD_compress(f->out, f->room, columns, cut, 1);
        rc = gwt_decode_records(f->decoder, f->out, stored, f->back, 100);
        assert_true(rc == 0 || rc == -EBADMSG);
        memcpy(columns + at, lie, sizeof(lie));
    }
}

/* RFC 3720, B.4: 32 bytes of zeros, of ones, and 0 to 31. And the check value of the
 * catalogue of CRCs for "123456789". */
static void crc32c_is_the_standard_one(void **state)
{
    uint8_t bytes[32];

    (void)state;
    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(gwt_crc32c(bytes, 32), 0x8a9136aau);
    memset(bytes, 0xff, sizeof(bytes));
    assert_int_equal(gwt_crc32c(bytes, 32), 0x62a8ab43u);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(gwt_crc32c(bytes, 32), 0x46dd794eu);
    assert_int_equal(gwt_crc32c("123456789", 9), 0xe3069283u);
    assert_int_equal(gwt_crc32c("", 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_bytes_survive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(extremes_survive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_api_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(counts_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_loop_is_small, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytes_survive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(truncation_is_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_flipped_bit_is_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lying_columns_are_refused, set_up, tear_down),
        cmocka_unit_test(crc32c_is_the_standard_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
