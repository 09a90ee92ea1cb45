/* Many processes in one report: dumps, one behind the other, each as fuzz_analysis has one, and
 * what is done over them as the ranks of a job. */
#include "dump.h"

#include "analysis/job.h"

#define RANKS 4

static char dumps[RANKS][64];

static void finish(void)
{
    for (int i = 0; i < RANKS; i++)
        unlink(dumps[i]);
}

/* post: the number of dumps in `data`; at[i]: where the i-th begins, at[number] == size. */
static size_t split(const uint8_t *data, size_t size, size_t at[RANKS + 1])
{
    size_t n = 1;

    at[0] = 0;
    while (n < RANKS && size - at[n - 1] >= 2 * sizeof(struct gwt_file_header)) {
        const uint8_t *from = data + at[n - 1] + sizeof(struct gwt_file_header);
        const uint8_t *next =
            memmem(from, (size_t)(data + size - from), GWT_MAGIC, sizeof(GWT_MAGIC));
        if (!next || (size_t)(data + size - next) < sizeof(struct gwt_file_header))
            break;
        at[n++] = (size_t)(next - data);
    }
    at[n] = size;
    return n;
}

static void look_at_job(const struct gwa_job_result *job, size_t ranks)
{
    MUST(job->ranks_count == ranks);
    for (size_t i = 0; i < job->ops_count; i++) /* a process may have several of the ranks */
        MUST(job->ops[i].op && job->ops[i].ranks);
    for (size_t i = 0; i < job->late_count; i++)
        MUST(job->late[i].rank < ranks && job->late[i].cause < GWA_LATE_CAUSE_COUNT);
    for (size_t i = 0; i < job->worst_count; i++)
        MUST(job->worst[i].op && job->worst[i].late < ranks);
    for (size_t i = 0; i < job->findings_count; i++) {
        MUST(job->findings[i].id && job->findings[i].what);
        MUST(percent(job->findings[i].share_pct));
    }
}

enum phase { SCAN, ANALYSE, LOOK };

/* post: 0 or what the phase says of the rank, or of the look. */
static int one(struct gwa_job *job, enum phase phase, size_t number, size_t rank)
{
    struct gwt_error error = {""};
    struct gwa_process *p;
    struct gwt_trace *t;
    int rc = gwt_open(dumps[rank], &t, &error);

    if (rc)
        return rc;
    struct gwa_options options = options_of(t);
    if (phase == SCAN) {
        rc = gwa_job_scan(job, number, t, &options, &error);
    } else if (phase == LOOK) {
        rc = gwa_job_look(job, number, t, &options, &error);
    } else if (!(rc = gwa_job_analyse(job, number, t, &options, &p, &error))) {
        look_at(p);
        gwa_free(p);
    }
    gwt_close(t);
    return rc;
}

static void analyse(size_t ranks)
{
    const struct gwa_job_result *result;
    struct gwa_job *job = gwa_job_new(ranks);
    bool bad[RANKS] = {false};
    int rc;

    MUST(job);
    for (size_t i = 0; i < ranks; i++)
        bad[i] = one(job, SCAN, i, i) != 0;
    rc = gwa_job_join(job);
    for (size_t i = 0; !rc && i < ranks; i++)
        if (!bad[i])
            bad[i] = one(job, ANALYSE, i, i) != 0;
    for (size_t i = 0, looks = rc ? 0 : gwa_job_looks(job); i < looks; i++) {
        size_t rank = gwa_job_look_at(job, i);
        MUST(rank < ranks);
        if (!bad[rank])
            one(job, LOOK, i, rank);
    }
    if (!rc && !gwa_job_finish(job, &result))
        look_at_job(result, ranks);
    gwa_job_free(job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[ROOM];
    size_t at[RANKS + 1], n;

    if (!dumps[0][0]) {
        for (int i = 0; i < RANKS; i++)
            snprintf(dumps[i], sizeof(dumps[i]), "/dev/shm/gpuwait-fuzz.%d.%d.gwt", (int)getpid(),
                     i);
        atexit(finish);
    }
    if (size < sizeof(struct gwt_file_header) || size > ROOM)
        return 0;
    n = split(data, size, at);
    for (size_t i = 0; i < n; i++) {
        put_right(bytes, data + at[i], at[i + 1] - at[i]);
        put(dumps[i], bytes, at[i + 1] - at[i]);
    }
    analyse(n);
    return 0;
}

/* One of the dumps changes, or is given again as a further rank. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static uint8_t part[ROOM], rest[ROOM];
    size_t at[RANKS + 1], n, i, length, behind;

    if (size < sizeof(struct gwt_file_header) || size > ROOM)
        return mutate_dump(data, size, max_size, seed);
    n = split(data, size, at);
    i = seed / 7 % n;
    length = at[i + 1] - at[i];
    behind = size - at[i + 1];
    memcpy(part, data + at[i], length);
    if (seed % 29 == 0 && n < RANKS && size + length <= max_size) {
        memcpy(data + size, part, length);
        return size + length;
    }
    memcpy(rest, data + at[i + 1], behind);
    length = mutate_dump(part, length, sizeof(part), seed);
    if (length > max_size - at[i])
        length = max_size - at[i];
    if (behind > max_size - at[i] - length)
        behind = max_size - at[i] - length;
    memcpy(data + at[i], part, length);
    memcpy(data + at[i] + length, rest, behind);
    return at[i] + length + behind;
}
