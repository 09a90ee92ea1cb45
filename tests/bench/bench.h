/* What every benchmark prints: rows of one shape, as a table for people and, where BENCH_ROWS
 * names a file, as one JSON object a line for tests/bench/run.sh to gather.
 *
 * A figure means little alone, so a row has a ratio to another figure of the same run. */
#ifndef BENCH_H
#define BENCH_H

#include <stdio.h>
#include <stdlib.h>

/* of: what `ratio` is to, e.g. "two clock reads"; NULL: it stands beside nothing.
 * Names are plain text without quotes or backslashes. */
static inline void bench_row(const char *name, double value, const char *unit, double ratio,
                             const char *of)
{
    const char *rows = getenv("BENCH_ROWS");

    printf("%-46s %12.2f %-14s", name, value, unit);
    if (of)
        printf(" %8.2f x %s", ratio, of);
    putchar('\n');
    fflush(stdout);
    if (rows) {
        FILE *f = fopen(rows, "a");

        if (!f) {
            perror(rows);
            exit(1);
        }
        fprintf(f, "{\"name\":\"%s\",\"value\":%.6g,\"unit\":\"%s\"", name, value, unit);
        if (of)
            fprintf(f, ",\"ratio\":%.6g,\"of\":\"%s\"", ratio, of);
        fprintf(f, "}\n");
        if (fclose(f)) {
            perror(rows);
            exit(1);
        }
    }
}

#endif
