/* The analysis: a dump whose frames are sound, and whose content need not be (dump.h). */
#include "dump.h"

#include "analysis/compare.h"

static char dump[64];

static void finish(void)
{
    unlink(dump);
}

static void analyse(struct gwt_trace *t, const struct gwa_options *options)
{
    struct gwt_error error = {""};
    struct gwa_process *p;
    struct gwa_run run = {0};

    if (gwa_analyse(t, options, &p, &error))
        return;
    look_at(p);
    MUST(gwa_run_add(&run, t, p, 0) == 0);
    gwa_run_finish(&run, NULL);
    gwa_run_free(&run);
    gwa_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[ROOM];
    struct gwt_error error;
    struct gwt_trace *t;

    if (!dump[0]) {
        snprintf(dump, sizeof(dump), "/dev/shm/gpuwait-fuzz.%d.gwt", (int)getpid());
        atexit(finish);
    }
    if (size < sizeof(struct gwt_file_header) || size > ROOM)
        return 0;
    put_right(bytes, data, size);
    put(dump, bytes, size);
    if (gwt_open(dump, &t, &error))
        return 0;
    struct gwa_options options = options_of(t);
    analyse(t, &options);
    gwt_close(t);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_dump(data, size, max_size, seed);
}
