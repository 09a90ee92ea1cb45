/* report --json and --summaries of a job: names as in gpuwait-report(1). */
#include "render_job.h"
#include "render_json.h"
#include "tool.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static json_t *rank_number(const struct gwa_job_rank *r)
{
    return render_count_or_null(r->rank);
}

static json_t *rank_summary(const struct gwa_job_rank *r)
{
    json_t *o = json_object(), *idle = json_object();
    render_set(o, "rank", rank_number(r));
    render_set(o, "pid", render_count(r->pid));
    render_set(o, "host", render_string(r->host));
    render_set(o, "wall_s", render_number(r->wall_s));
    render_set(o, "compute_pct", render_number(r->compute_pct));
    render_set(o, "exposed_comm_pct", render_number(r->exposed_comm_pct));
    render_set(o, "comm_wait_pct", render_number(r->comm_wait_pct));
    render_set(o, "exposed_copy_pct", render_number(r->exposed_copy_pct));
    render_set(o, "idle_pct", render_number(r->idle_pct));
    for (unsigned c = 0; c < GWA_IDLE_CLASS_COUNT; c++) {
        char *key = xprintf("%s_pct", word_class_key(c));
        render_set(idle, key, render_number(r->idle[c]));
        free(key);
    }
    render_set(o, "idle", idle);
    render_set(o, "steps", render_count(r->steps));
    render_set(o, "step_ms", render_number(r->step_ms));
    render_set(o, "launches", render_count(r->launches));
    render_set(o, "kernels", render_count(r->kernels));
    render_set(o, "collectives", render_count(r->collectives));
    render_set(o, "matched", render_count(r->matched));
    render_set(o, "caused_pct", render_number(r->caused_pct));
    render_set(o, "late", json_boolean(r->outlier));
    render_set(o, "verdict", render_string(r->verdict));
    return o;
}

static json_t *op(const struct gwa_job_op *p)
{
    json_t *o = json_object();
    render_set(o, "op", render_string(p->op));
    render_set(o, "ranks", render_count(p->ranks));
    render_set(o, "calls", render_count(p->calls));
    render_set(o, "bytes", render_number(p->bytes));
    render_set(o, "transfer_ms", render_number(p->transfer_ms));
    render_set(o, "wait_ms", render_number(p->wait_ms));
    render_set(o, "busy_ms", render_number(p->busy_ms));
    render_set(o, "exposed_ms", render_number(p->exposed_ms));
    render_set(o, "exposed_wait_ms", render_number(p->exposed_wait_ms));
    render_set(o, "hidden_pct", render_number(p->hidden_pct));
    render_set(o, "bus_gb_per_s", render_number(p->bus_gb_per_s));
    render_set(o, "latency_us", render_number(p->latency_us));
    render_set(o, "shown", render_count(p->measured));
    return o;
}

static json_t *late(const struct gwa_job_result *job, const struct gwa_job_late *l)
{
    const struct gwa_job_rank *r = &job->ranks[l->rank];
    bool looked = l->looked && l->cause == GWA_LATE_HOST;
    json_t *o = json_object(), *causes = json_object();
    render_set(o, "rank", rank_number(r));
    render_set(o, "pid", render_count(r->pid));
    render_set(o, "host", render_string(r->host));
    render_set(o, "caused_pct", render_number(l->caused_pct));
    render_set(o, "share_pct", render_number(l->share_pct));
    render_set(o, "times_last", render_count(l->times));
    render_set(o, "cause", render_string(gwa_late_cause_key(l->cause)));
    for (unsigned i = 0; i < GWA_LATE_CAUSE_COUNT; i++) {
        char *key = xprintf("%s_pct", gwa_late_cause_key(i));
        render_set(causes, key, render_number(l->by_cause[i]));
        free(key);
    }
    render_set(o, "by_cause", causes);
    render_set(o, "class", looked ? render_string(word_class_key(l->class)) : json_null());
    render_set(o, "class_pct", looked ? render_number(l->class_pct) : json_null());
    render_set(o, "python", looked ? render_string(l->python) : json_null());
    render_set(o, "api", looked ? render_string(l->api) : json_null());
    render_set(o, "after", looked ? render_string(l->after) : json_null());
    render_set(o, "before", looked ? render_string(l->before) : json_null());
    render_set(o, "slower", render_number(l->slower));
    render_set(o, "kernel", render_string(l->kernel));
    render_set(o, "copy_gb_per_s", render_number(l->copy_gb_per_s));
    render_set(o, "usual_gb_per_s", render_number(l->usual_gb_per_s));
    render_set(o, "link_us", render_number(l->link_us));
    return o;
}

static json_t *host(const struct gwa_job_host *h)
{
    json_t *o = json_object();
    render_set(o, "host", render_string(h->host));
    render_set(o, "ranks", render_count(h->ranks));
    render_set(o, "aligned", json_boolean(h->aligned));
    render_set(o, "offset_s", render_number(h->offset_s));
    render_set(o, "uncertainty_us", render_number(h->uncertainty_us));
    render_set(o, "jitter_us", render_number(h->jitter_us));
    render_set(o, "drift_ppm", render_number(h->drift_ppm));
    render_set(o, "matches", render_count(h->matches));
    return o;
}

static json_t *worst(const struct gwa_job_result *job, const struct gwa_job_worst *w)
{
    json_t *o = json_object();
    char *communicator = xprintf("%016" PRIx64, w->communicator);
    render_set(o, "communicator", json_string(communicator));
    free(communicator);
    render_set(o, "index", render_count(w->index));
    render_set(o, "op", render_string(w->op));
    render_set(o, "bytes", render_number(w->bytes));
    render_set(o, "start_s", render_number(w->start_s));
    render_set(o, "wait_ms", render_number(w->wait_ms));
    render_set(o, "transfer_ms", render_number(w->transfer_ms));
    render_set(o, "last_rank", rank_number(&job->ranks[w->late]));
    render_set(o, "last_pid", render_count(job->ranks[w->late].pid));
    return o;
}

static struct gwa_process findings_of(const struct gwa_job_result *job)
{
    return (struct gwa_process){.findings = job->findings, .findings_count = job->findings_count};
}

static json_t *job_object(const struct gwa_job_result *job)
{
    json_t *o = json_object(), *ranks = json_array(), *ops = json_array();
    json_t *lates = json_array(), *hosts = json_array(), *longest = json_array();
    struct gwa_process p = findings_of(job);
    for (size_t i = 0; i < job->ranks_count; i++)
        if (job->ranks[i].recorded)
            json_array_append_new(ranks, rank_summary(&job->ranks[i]));
    for (size_t i = 0; i < job->ops_count; i++)
        json_array_append_new(ops, op(&job->ops[i]));
    for (size_t i = 0; i < job->late_count; i++)
        json_array_append_new(lates, late(job, &job->late[i]));
    for (size_t i = 0; i < job->hosts_count; i++)
        json_array_append_new(hosts, host(&job->hosts[i]));
    for (size_t i = 0; i < job->worst_count; i++)
        json_array_append_new(longest, worst(job, &job->worst[i]));
    render_findings_json(o, &p);
    json_object_del(o, "what_if");
    render_set(o, "comparable", json_boolean(job->comparable));
    render_set(o, "why_not", render_string(job->why_not));
    render_set(o, "complete", json_boolean(!job->cut));
    render_set(o, "collectives", render_count(job->collectives));
    render_set(o, "unmatched", render_count(job->unmatched));
    render_set(o, "exposed_comm_pct", render_number(job->exposed_comm_pct));
    render_set(o, "wait_pct", render_number(job->wait_pct));
    render_set(o, "ops", ops);
    render_set(o, "late", lates);
    render_set(o, "hosts", hosts);
    render_set(o, "longest_waits", longest);
    render_set(o, "ranks", ranks);
    return o;
}

json_t *render_job_report(json_t *processes, const struct gwa_job_result *job)
{
    static const char *const keys[] = {"verdict", "findings"};
    json_t *root = render_json_root(processes), *o = job_object(job);
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        json_object_set(root, keys[i], json_object_get(o, keys[i]));
    render_set(root, "what_if", json_array());
    render_set(root, "verdict_pid", render_count(job->ranks[job->speaks].pid));
    render_set(root, "job", o);
    return root;
}

int render_job_lines(const struct gwa_job_result *job, FILE *out)
{
    int rc = 0;
    for (size_t i = 0; i < job->ranks_count && !rc; i++) {
        if (!job->ranks[i].recorded)
            continue;
        json_t *line = rank_summary(&job->ranks[i]);
        rc = render_json_write(line, out, true);
        json_decref(line);
    }
    return rc;
}
