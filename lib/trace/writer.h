/* The dump writer: frames into a file descriptor, within a bound of disk space.
 *
 * Used by the drain thread inside somebody else's process: no allocation after
 * gwt_writer_open(), no locks, no output, no signals (a write that would raise
 * SIGXFSZ is the caller's to mask). One thread at a time.
 * Every function returns 0 or -errno. After a failed write the writer is `stopped`:
 * it stays usable, writes nothing more, and the first errno is kept; a partly
 * written frame is cut off again with ftruncate().
 */
#ifndef GW_TRACE_WRITER_H
#define GW_TRACE_WRITER_H

#include "codec.h"

struct gwt_writer; /* opaque; lives in caller's memory of gwt_writer_size() bytes */

struct gwt_writer_options {
    const char *path;      /* of the .gwt file; must not exist: O_EXCL|O_NOFOLLOW|O_CLOEXEC, 0600 */
    uint64_t max_bytes;    /* GPUWAIT_MAX: bound of all files together, tail segments included */
    unsigned min_free_pct; /* floor of free space on the file system; 0: none */
};

size_t gwt_writer_size(void);

/* pre:  memory has gwt_writer_size() bytes, 64-aligned (most are touched only past the bound);
 *       header is complete but for magic, versions and header_size; max_bytes >= 64 KiB.
 * post: 0 and *out inside `memory`, or -errno and *out = NULL (nothing left behind). */
int gwt_writer_open(struct gwt_writer **out, void *memory, size_t size,
                    const struct gwt_writer_options *options, const struct gwt_file_header *header);

/* pre:  records are of one thread, consecutive from sequence number `first`. */
int gwt_write_events(struct gwt_writer *w, uint32_t thread, uint64_t first,
                     const struct gwt_record *records, uint32_t count);

/* pre:  bytes are [first, first + size) of the definition log, whole entries. Those that the
 *       next events refer to come before them.
 * post: 0; events make room for definitions, never the reverse. -EFBIG, and stopped, where
 *       definitions alone fill the bound: without them events mean nothing. */
int gwt_write_definitions(struct gwt_writer *w, uint64_t first, const void *bytes, size_t size);
/* Past the bound these two are thinned: the last of each is written on close in any case. */
int gwt_write_counters(struct gwt_writer *w, const uint64_t counters[GWT_COUNTER_SLOTS]);
int gwt_write_clock(struct gwt_writer *w, const struct gwt_triple *triples, uint32_t count);

/* pre:  every thread's ring is drained.
 * post: END is written, the files are closed. A stopped writer tries once more to write the last
 *       counters (with GWT_C_WRITE_ERRNO) and END, so that the dump says why it is short; the
 *       first error is returned all the same. */
int gwt_writer_close(struct gwt_writer *w);
/* Forget the file without writing to it (in a forked child). */
void gwt_writer_abandon(struct gwt_writer *w);

struct gwt_writer_stats {
    uint64_t frames, bytes; /* ever written, evicted ones included */
    uint64_t aggregated;    /* events kept as sums only */
    int error;              /* first errno, positive; 0: none */
    int stopped;            /* 1: nothing more is written */
};
void gwt_writer_stats(const struct gwt_writer *w, struct gwt_writer_stats *out);

#endif
