/* The job's findings: communication over all ranks, and else those of a rank like most. */
#include "findings_internal.h"
#include "job_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- findings of ranks, kept ------------------------------------------------------------ */

static void free_finding(struct gwa_finding *f)
{
    for (size_t k = 0; k < f->evidence_count; k++)
        free(f->evidence[k].text);
    free(f->evidence);
    free(f->what);
    free(f->where);
    free(f->remedy);
}

void gwa_job_findings_free(struct job_findings *f)
{
    for (size_t i = 0; i < f->count; i++)
        free_finding(&f->list[i]);
    free(f->list);
    *f = (struct job_findings){0};
}

static char *copy_text(const char *text, bool *failed)
{
    char *made = text ? strdup(text) : NULL;
    *failed |= text && !made;
    return made;
}

static int copy_finding(const struct gwa_finding *from, struct gwa_finding *to)
{
    bool failed = false;
    *to = *from;
    to->what = copy_text(from->what, &failed);
    to->where = copy_text(from->where, &failed);
    to->remedy = copy_text(from->remedy, &failed);
    to->evidence_count = 0;
    to->evidence = calloc(from->evidence_count + 1, sizeof(*to->evidence));
    for (size_t i = 0; to->evidence && i < from->evidence_count; i++) {
        to->evidence[i] = from->evidence[i];
        to->evidence[i].text = copy_text(from->evidence[i].text, &failed);
        to->evidence_count++;
    }
    return failed || !to->evidence ? -ENOMEM : 0;
}

int gwa_job_keep_findings(const struct gwa_process *p, struct job_findings *out)
{
    int rc = 0;
    out->list = calloc(p->findings_count + 1, sizeof(*out->list));
    if (!out->list)
        return -ENOMEM;
    for (size_t i = 0; i < p->findings_count && !rc; i++)
        rc = copy_finding(&p->findings[i], &out->list[out->count++]);
    return rc;
}

/* ---- what is late ----------------------------------------------------------------------- */

#define NAME 64
static const char *name_of(const struct gwa_job *job, size_t rank, char buffer[NAME])
{
    const struct gwa_job_rank *r = &job->ranks[rank].out;
    if (r->rank >= 0)
        snprintf(buffer, NAME, "Rank %d", r->rank);
    else
        snprintf(buffer, NAME, "Process %u", r->pid);
    return buffer;
}
#define RANK(index) name_of(job, (index), (char[NAME]){0})

static void say_place(struct gwa_draft *f, const struct gwa_job_late *l)
{
    if (l->python)
        WHERE("%s", l->python);
    else if (l->api)
        WHERE("inside %s", l->api);
    else if (l->after && l->before)
        WHERE("between %s and %s", l->after, l->before);
    else if (l->before)
        WHERE("before %s", l->before);
}

static const char *const does[GWA_IDLE_CLASS_COUNT] = {
    [GWA_IDLE_LAUNCH] = "spends more time in launches",
    [GWA_IDLE_DISPATCH] = "spends more time between launches",
    [GWA_IDLE_HOST_CPU] = "computes outside CUDA",
    [GWA_IDLE_HOST_BLOCKED] = "waits outside CUDA",
    [GWA_IDLE_SYNC] = "is in blocking calls after their work is done",
    [GWA_IDLE_ALLOC] = "allocates or frees memory",
    [GWA_IDLE_COPY] = "is in copies that block",
    [GWA_IDLE_LOAD] = "loads modules or captures graphs",
    [GWA_IDLE_COMM] = "is inside NCCL's calls",
    [GWA_IDLE_UNKNOWN] = "does something that the calls do not show",
};

static void say_cause(struct gwa_draft *f, const struct gwa_job_late *l)
{
    switch (l->cause) {
    case GWA_LATE_HOST:
        if (l->looked)
            WHAT(": its host %s", does[l->class]);
        else
            WHAT(": its host submits later");
        say_place(f, l);
        break;
    case GWA_LATE_GPU:
        WHAT(": its kernels last longer");
        if (l->slower > 1.02)
            WHAT(", %.2f times as long as the same kernels elsewhere", l->slower);
        break;
    case GWA_LATE_WORK:
        WHAT(": it runs more kernels than the others");
        break;
    case GWA_LATE_LINK:
        WHAT(": its copies take longer, at %.1f GB/s where others have %.1f, and a slow link slows "
             "every collective",
             l->copy_gb_per_s, l->usual_gb_per_s);
        break;
    default:
        WHAT(": it copies more than the others");
        break;
    }
}

static void remedy_of(struct gwa_draft *f, const struct gwa_job *job, const struct gwa_job_late *l)
{
    const struct gwa_job_rank *r = &job->ranks[l->rank].out;
    switch (l->cause) {
    case GWA_LATE_GPU:
        REMEDY("Look at that GPU: clocks, temperature, power limit, other processes on it "
               "(nvidia-smi -q -d PERFORMANCE,CLOCK); if all is well there, see whether its "
               "batches are larger (sequence lengths): balance them between ranks.");
        return;
    case GWA_LATE_WORK:
        REMEDY("Give the ranks the same work: batches of equal size and length, experts and "
               "layers spread evenly, logging and evaluation not on one rank alone. ");
        return;
    case GWA_LATE_COPIES:
        REMEDY("See what only that rank copies: checkpoints, metrics, logging. ");
        return;
    case GWA_LATE_LINK:
        REMEDY("Look at that GPU's link (nvidia-smi -q -d PCIE: generation and width), at which "
               "socket its process runs (bind it to the GPU's NUMA node), and at how much it "
               "copies.");
        return;
    }
    if (l->looked && l->class == GWA_IDLE_HOST_CPU)
        REMEDY("That rank's Python holds up all: garbage collection (gc.disable() and "
               "gc.collect() at the same step on all ranks), preparing batches, logging or "
               "evaluation on one rank. ");
    else if (l->looked && l->class == GWA_IDLE_HOST_BLOCKED)
        REMEDY("That rank waits for something: its loader (workers, prefetch_factor, its disk), a "
               "lock, another process. ");
    REMEDY("\"gpuwait report --process %d\" says what that rank waits for.",
           r->rank >= 0 ? r->rank : (int)r->pid);
}

static void cite_late(struct gwa_draft *f, const struct gwa_job *job, const struct gwa_job_late *l)
{
    const struct gwa_job_rank *r = &job->ranks[l->rank].out;
    gwa_evidence(f, "late_rank", r->rank >= 0 ? r->rank : NAN);
    gwa_evidence(f, "late_pid", r->pid);
    gwa_evidence_text(f, "late_host", r->host);
    gwa_evidence(f, "caused_pct", l->caused_pct);
    gwa_evidence(f, "times_last", (double)l->times);
    gwa_evidence_text(f, "cause", gwa_late_cause_key(l->cause));
    if (l->looked && l->cause == GWA_LATE_HOST) {
        gwa_evidence(f, "cause_class_pct", l->class_pct);
        gwa_evidence_text(f, "python", l->python);
    }
    gwa_evidence_text(f, "late_verdict", r->verdict);
}

/* ---- communication -------------------------------------------------------------------------- */

static void say_late(struct gwa_draft *f, const struct gwa_job *job)
{
    const struct gwa_job_result *r = &job->result;
    const struct gwa_job_late *l = &r->late[0];
    const char *host = job->ranks[l->rank].out.host;
    if (r->hosts_count > 1 && host)
        WHAT("%s on %s", RANK(l->rank), host);
    else
        WHAT("%s", RANK(l->rank));
    WHAT(" holds up the others for %s of the time, being ready last %s", PCT(l->caused_pct),
         TIMES((double)l->times));
    say_cause(f, l);
    WHAT(".");
    for (size_t i = 1; i < r->late_count; i++)
        WHAT("%s %s (%s)%s", i == 1 ? " Late too:" : "", RANK(r->late[i].rank),
             gwa_late_cause_text(r->late[i].cause), i + 1 < r->late_count ? "," : ".");
    remedy_of(f, job, l);
    cite_late(f, job, l);
}

static void say_turns(struct gwa_draft *f, double held)
{
    WHAT("Ranks wait %s of the time for each other, now for one, now for another: none stands "
         "out.",
         PCT(held));
    REMEDY("They are late in turn: data of uneven length, garbage collection at different times "
           "(gc.disable() and gc.collect() at the same step on all), other load on the hosts. "
           "Fewer, larger collectives give them more time to even out.");
}

static void say_transfers(struct gwa_draft *f, const struct gwa_job *job, double pct)
{
    const struct gwa_job_result *r = &job->result;
    WHAT("Data moves between GPUs for %s of the time while nothing computes", PCT(pct));
    if (r->ops_count && isfinite(r->ops[0].bus_gb_per_s))
        WHAT(", most of it in %s, at %.3g GB/s over each link", r->ops[0].op,
             r->ops[0].bus_gb_per_s);
    WHAT(".");
    REMEDY("Hide it behind computing or send less: larger buckets (bucket_cap_mb) and "
           "gradient_as_bucket_view in DDP, prefetch in FSDP, no_sync() while gradients "
           "accumulate, gradients in bf16; keep what talks most within one host.");
}

/* What each rank waits for others, whoever is late: mean, of wall time. */
static double held_up_pct(const struct gwa_job_result *r)
{
    double sum = 0;
    for (size_t i = 0; i < r->ranks_count; i++)
        sum += gwa_at_least_0(r->ranks[i].caused_pct);
    return sum < r->exposed_comm_pct ? sum : r->exposed_comm_pct;
}

static double compute_pct(const struct gwa_job_result *r)
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < r->ranks_count; i++)
        if (isfinite(r->ranks[i].compute_pct)) {
            sum += r->ranks[i].compute_pct;
            n++;
        }
    return n > 0 ? sum / n : 0;
}

/* Communication that the speaker's own finding promises already. */
static double excess_pct(const struct gwa_job *job)
{
    const struct job_findings *f = &job->ranks[job->result.speaks].findings;
    for (size_t i = 0; i < f->count; i++)
        if (!strcmp(f->list[i].id, "comm-excess"))
            return gwa_at_least_0(f->list[i].share_pct);
    return 0;
}

/* post: false: there is nothing to say. */
static bool communication(const struct gwa_job *job, struct gwa_draft *f)
{
    const struct gwa_job_result *r = &job->result;
    double comm = r->exposed_comm_pct - excess_pct(job), held = held_up_pct(r);
    double transfer = gwa_at_least_0(comm - held);
    if (!r->comparable || !(comm >= GWA_MENTION_PCT))
        return false;
    if (!r->late_count && compute_pct(r) >= GWA_HEALTHY_PCT) /* it takes work, for little */
        return false;
    bool moves_first = transfer > held, late = r->late_count > 0;
    if (moves_first) {
        say_transfers(f, job, transfer);
        if (late || held >= GWA_MENTION_PCT) {
            WHAT(" ");
            REMEDY(" ");
        }
    }
    if (late)
        say_late(f, job);
    else if (!moves_first || held >= GWA_MENTION_PCT)
        say_turns(f, held);
    if (!moves_first && transfer >= GWA_MENTION_PCT)
        WHAT(" Besides, data moves for %s of the time while nothing computes.", PCT(transfer));
    f->f.share_pct = f->f.bound_pct = comm;
    f->f.confidence = late || moves_first ? GWA_HIGH : GWA_MEDIUM;
    gwa_evidence(f, "exposed_comm_pct", r->exposed_comm_pct);
    gwa_evidence(f, "wait_pct", r->wait_pct);
    gwa_evidence(f, "held_up_pct", held);
    f->f.cannot_know = moves_first ? "whether the network between the ranks could be faster" : NULL;
    return true;
}

/* ---- all ------------------------------------------------------------------------------------ */

/* A rank whose verdict most of those share that are not late; of these, with most kernels. */
static void choose_speaker(struct gwa_job *job)
{
    struct gwa_job_result *r = &job->result;
    size_t most = 0, ranks = 0;
    for (size_t i = 0; i < job->count; i++) {
        const char *verdict = job->ranks[i].out.verdict;
        size_t same = 0;
        if (!job->ranks[i].analysed)
            continue;
        ranks++;
        for (size_t k = 0; verdict && k < job->count; k++)
            same += job->ranks[k].analysed && job->ranks[k].out.verdict &&
                    !strcmp(verdict, job->ranks[k].out.verdict);
        if (r->ranks[i].outlier && r->late_count < job->count)
            same = 0;
        uint64_t kernels = job->ranks[i].out.kernels;
        if (ranks == 1 || same > most ||
            (same == most && kernels > job->ranks[r->speaks].out.kernels)) {
            most = same;
            r->speaks = i;
        }
    }
    r->speaks_share_pct = ranks ? 100.0 * (double)most / (double)ranks : NAN;
}

static bool comes_before(const struct gwa_finding *f, double bound)
{
    unsigned rank = gwa_finding_rank(f->id);
    return rank < GWA_RANK_GAIN || (rank == GWA_RANK_GAIN && f->bound_pct > bound);
}

int gwa_job_find(struct gwa_job *job)
{
    struct gwa_job_result *r = &job->result;
    struct gwa_draft f = {.f = {.id = "comm-wait", .share_pct = NAN, .bound_pct = NAN}};
    int rc = 0;
    choose_speaker(job);
    const struct job_findings *of = &job->ranks[r->speaks].findings;
    r->findings = calloc(of->count + 1, sizeof(*r->findings));
    bool any = r->findings && communication(job, &f);
    f.f.what = f.what.s;
    f.f.where = f.where.s;
    f.f.remedy = f.remedy.s;
    if (!r->findings || f.failed || !any) {
        free_finding(&f.f);
        if (!r->findings || f.failed)
            return -ENOMEM;
    }
    for (size_t i = 0; i < of->count && !rc; i++) {
        const struct gwa_finding *one = &of->list[i];
        if (any && !comes_before(one, f.f.bound_pct)) {
            r->findings[r->findings_count++] = f.f;
            any = false;
        }
        if (!r->comparable || strcmp(one->id, "comm-wait"))
            rc = copy_finding(one, &r->findings[r->findings_count++]);
    }
    if (any)
        r->findings[r->findings_count++] = f.f;
    return rc;
}
