/* Shared by writer.c (frames, and what goes into them) and bound.c (where events go once
 * the disk bound is met, and what is kept of those that go). */
#ifndef GW_TRACE_WRITER_INTERNAL_H
#define GW_TRACE_WRITER_INTERNAL_H

#include "aggregate.h"
#include "file.h"
#include "writer.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define GWT_SECOND_NS   1000000000ull
#define GWT_END_RESERVE 1024u /* last counters, last triple, END */
#define GWT_ROWS        (GWT_TABLE_SLOTS * GWT_TABLE_APIS)

struct segment {
    struct gwt_file file;
    uint64_t generation;
    struct gwt_table *sums; /* of the events in it */
};

struct gwt_writer {
    struct gwt_encoder *encoder;
    struct gwt_file head;
    bool head_full;
    struct segment segments[2];
    unsigned current;        /* the segment written last */
    uint64_t generations;    /* segments begun */
    uint32_t slots;          /* of each table */
    struct gwt_table *carry; /* sums of evicted segments that are not in the dump yet */
    uint64_t carry_generation;
    uint64_t aggregate_bytes, aggregate_events; /* in the dump */

    struct gwt_file dir;
    char name[NAME_MAX + 1];
    uint64_t max_bytes;
    unsigned min_free_pct;
    bool low; /* less space is free than asked for */
    uint64_t low_limit;
    uint64_t check_bytes, check_ns; /* free space: looked at when this much was written, then */

    struct gwt_file_header header;
    struct gwt_triple triple, triple_written;
    uint64_t counters[GWT_COUNTER_SLOTS];
    uint64_t counters_ns;
    bool counters_pending;         /* newer than those in the dump */
    uint8_t kinds[UINT16_MAX + 1]; /* of apis, from their definitions */

    struct gwt_writer_stats stats;
    struct gwt_aggregate *rows;
    struct gwt_frame *frame; /* its payload follows, so that one write() takes both */
    size_t frame_room;       /* for the payload */
};

/* writer.c */
int gwt_writer_stop(struct gwt_writer *w, int error);
int gwt_file_create(struct gwt_writer *w, const char *name, struct gwt_file *out);
int gwt_file_append(struct gwt_writer *w, struct gwt_file *f, const void *bytes, size_t size);
/* pre: w->frame and `payload` bytes behind it are complete but for magic, size and checks. */
int gwt_append_frame(struct gwt_writer *w, struct gwt_file *f, size_t payload);
/* Puts bytes into w->frame, whose header's other fields are zero.
 * post: size of the payload, or -errno. */
long gwt_prepare(struct gwt_writer *w, enum gwt_frame_type type, const void *bytes, size_t size);
/* post: size of the payload in w->frame, or -errno. */
long gwt_prepare_events(struct gwt_writer *w, uint32_t thread, uint64_t first,
                        const struct gwt_record *records, uint32_t count);

/* bound.c */
uint64_t gwt_room(const struct gwt_writer *w);
/* Of that room, what only the last aggregates may use. */
uint64_t gwt_last_carry(const struct gwt_writer *w);
uint64_t gwt_now_ns(void); /* coarse */
void gwt_look_at_free_space(struct gwt_writer *w);
/* Takes from the tail what a frame of the dump needs.
 * post: 1: there is room for `bytes`; 0: there is not; or -errno. */
int gwt_make_room(struct gwt_writer *w, uint64_t bytes);
/* post: events taken, or -errno. */
long gwt_write_tail(struct gwt_writer *w, uint32_t thread, uint64_t first,
                    const struct gwt_record *records, uint32_t count);
void gwt_flush_last_carry(struct gwt_writer *w);

#endif
