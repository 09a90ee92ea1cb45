/* Kernel launches of one recording, by name. Build with
 *     cc example.c -lgpuwait-trace -lzstd
 */
#include <gpuwait/trace.h>

#include <stdio.h>

#define NAMES 65536

int main(int argc, char **argv)
{
    static unsigned long launches[NAMES]; /* by name; 0: the name is unknown */
    struct gwt_error error = {""};
    struct gwt_trace *trace;
    struct gwt_event event;

    if (argc != 2 || gwt_open(argv[1], &trace, &error)) {
        fprintf(stderr, "example: %s\n", argc == 2 ? error.text : "usage: example FILE.gwt");
        return 2;
    }
    while (gwt_next(trace, &event)) {
        struct gwt_signature_info kernel;

        if (event.kind != GWT_LAUNCH || event.status || (event.flags & GWT_F_CAPTURED))
            continue; /* failed, or recorded into a graph rather than run */
        if (gwt_signature(trace, event.arg, &kernel) && kernel.name_id < NAMES)
            launches[kernel.name_id]++;
        else
            launches[0]++;
    }
    for (unsigned id = 0; id < NAMES; id++)
        if (launches[id])
            printf("%8lu %s\n", launches[id], id ? gwt_string(trace, id) : "(unknown)");
    if (gwt_coverage(trace)->missing)
        fprintf(stderr, "example: %s is incomplete\n", argv[1]);
    gwt_close(trace);
    return 0;
}
