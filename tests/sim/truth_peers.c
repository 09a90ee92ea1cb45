/* The truth of what is done together with other processes. */
#include "core.h"
#include "peers.h"
#include "truth.h"

#include <inttypes.h>

struct row {
    const char *op;
    uint64_t communicator, index, bytes;
    int64_t start, latest, end;
    int peer;
};

static struct row *rows;
static size_t nrows, row_room;

void sim_truth_meetings(const struct sim_op *op)
{
    for (const struct sim_meeting *m = op->meetings; m; m = m->next) {
        if (nrows == row_room) {
            row_room = row_room ? row_room * 2 : 256;
            rows = sim_grow(rows, row_room * sizeof *rows);
        }
        rows[nrows++] = (struct row){.op = m->op,
                                     .communicator = sim_peers_number(m->peers),
                                     .index = m->index,
                                     .bytes = m->bytes,
                                     .start = op->start,
                                     .latest = m->latest,
                                     .end = op->end,
                                     .peer = m->peer};
    }
}

void sim_truth_forget_meetings(void)
{
    nrows = 0;
}

void sim_truth_put_meetings(FILE *f)
{
    fputs("\"collectives\": [", f);
    for (size_t i = 0; i < nrows; i++) {
        const struct row *r = &rows[i];
        fprintf(f,
                "%s\n  {\"communicator\": %" PRIu64 ", \"index\": %" PRIu64
                ", \"op\": \"%s\", \"peer\": %d, \"bytes\": %" PRIu64 ", \"start_ns\": %" PRId64
                ", \"latest_ns\": %" PRId64 ", \"end_ns\": %" PRId64 "}",
                i ? "," : "", r->communicator, r->index, r->op, r->peer, r->bytes, r->start,
                r->latest, r->end);
    }
    fputs("]", f);
}
