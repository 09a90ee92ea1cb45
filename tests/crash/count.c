/* What a recording holds of the program `victim`: launches of each of its threads (which it
 * numbers by their grids), what was dropped or is missing, and whether any event is there twice.
 *
 *     count FILE.gwt     "dropped N missing N aggregated N summed N repeated N bad N launches
 *                        N N ...": aggregated are events of every kind, summed launches among them
 */
#include <gpuwait/trace.h>

#include <stdio.h>
#include <stdlib.h>

#define THREADS (1u << 20) /* ids of one recording */
#define GRIDS   64

int main(int argc, char **argv)
{
    static uint64_t next[THREADS], launches[GRIDS];
    static bool launch[UINT16_MAX + 1]; /* apis that launch */
    const struct gwt_aggregate *row;
    uint64_t summed = 0;
    uint64_t repeated = 0, events = 0;
    unsigned last = 0;
    struct gwt_error error = {""};
    struct gwt_trace *trace;
    struct gwt_event e;

    if (argc != 2 || gwt_open(argv[1], &trace, &error)) {
        fprintf(stderr, "count: %s\n", argc == 2 ? error.text : "usage: count FILE.gwt");
        return 2;
    }
    for (; gwt_next(trace, &e); events++) {
        struct gwt_signature_info kernel;

        if (e.thread >= THREADS)
            return 3;
        repeated += e.seq < next[e.thread];
        next[e.thread] = e.seq + 1;
        if (e.kind != GWT_LAUNCH)
            continue;
        launch[e.api] = true;
        if (!gwt_signature(trace, e.arg, &kernel) || kernel.grid[0] < 1 || kernel.grid[0] > GRIDS)
            return 3; /* its name is lost */
        launches[kernel.grid[0] - 1]++;
        if (kernel.grid[0] > last)
            last = kernel.grid[0];
    }
    for (size_t i = 0; (row = gwt_aggregate_at(trace, i)); i++)
        summed += launch[row->api] ? row->calls : 0;
    const struct gwt_coverage *c = gwt_coverage(trace);
    printf("dropped %ju missing %ju aggregated %ju summed %ju repeated %ju bad %ju launches",
           (uintmax_t)c->dropped, (uintmax_t)c->missing, (uintmax_t)c->aggregated,
           (uintmax_t)summed, (uintmax_t)repeated, (uintmax_t)(c->bad_frames + c->bad_bytes));
    for (unsigned i = 0; i < last; i++)
        printf(" %ju", (uintmax_t)launches[i]);
    printf("\n");
    gwt_close(trace);
    return 0;
}
