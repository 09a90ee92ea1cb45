/* Findings on what the host did while the device was idle: sections outside CUDA, loading,
 * capturing, saving. */
#include "findings_internal.h"
#include "small.h"

#include <math.h>

static const struct gwa_claim *worth(const struct gwa_view *v, enum gwa_finding_id id)
{
    const struct gwa_claim *c = &v->claims[id];
    return c->top && c->pct >= GWA_MENTION_PCT ? c : NULL;
}

static double each_ms(const struct gwa_claim *c)
{
    return c->count > 0 ? c->host_ms / c->count : NAN;
}

static double cpu_share(const struct gwa_claim *c)
{
    return c->cpu_of_ms > 0 ? c->cpu_ms / c->cpu_of_ms : NAN;
}

static double other_cores(const struct gwa_claim *c)
{
    return c->core_of_ms > 0 ? c->core_ms / c->core_of_ms : NAN;
}

static const char *const words_launch[] = {"LaunchKernel", NULL};
static const char *const words_capture[] = {"Capture", "Instantiate", NULL};

/* Which of the launch calls it is depends on the library, and tells nobody anything. */
static const char *call_text(const char *api)
{
    return gwa_named(api, words_launch) ? "a kernel launch" : api;
}

static void place(struct gwa_draft *f, const struct gwa_site *s)
{
    const char *phase = gwa_phase_text(s->phase);
    if (f->where.s) /* the rule knows better */
        return;
    if (s->python) {
        WHERE("%s", s->python);
        return;
    }
    if (phase)
        WHERE("%s", phase);
    if (s->api)
        WHERE("%sinside %s", phase ? ", " : "", s->api);
    else if (gwa_named(s->after, words_launch) && gwa_named(s->before, words_launch))
        WHERE("%sbetween two kernel launches", phase ? ", " : "");
    else if (s->after && s->before)
        WHERE("%sbetween %s and %s", phase ? ", " : "", call_text(s->after), call_text(s->before));
    else if (s->before)
        WHERE("%sbefore %s", phase ? ", " : "", call_text(s->before));
}

void gwa_cite_claim(struct gwa_draft *f, const struct gwa_view *v, const struct gwa_claim *c)
{
    const struct gwa_site *s = c->top;
    f->f.share_pct = f->f.bound_pct = c->pct;
    f->f.confidence = !isnan(cpu_share(c)) || s->python ? GWA_HIGH : GWA_MEDIUM;
    gwa_evidence(f, "idle_pct", c->pct);
    gwa_evidence(f, "idle_ms", c->idle_ms);
    gwa_evidence(f, "occurrences", c->count);
    gwa_evidence(f, "per_step", v->stepped ? c->per_step : NAN);
    gwa_evidence(f, "ms_each", each_ms(c));
    gwa_evidence(f, "cpu_share", cpu_share(c));
    gwa_evidence(f, "other_cores", other_cores(c));
    if (gwa_rhythm(s) > 1)
        gwa_evidence(f, "period_steps", gwa_rhythm(s));
    place(f, s);
}

/* "in each step", "every 4 steps", "12 times" */
static void say_how_often(struct gwa_draft *f, const struct gwa_view *v, const struct gwa_claim *c)
{
    if (v->stepped && c->top->period > 1)
        WHAT(" every %u steps", c->top->period);
    else if (v->stepped && c->per_step >= 1.5)
        WHAT(", %s in each step", TIMES(c->per_step));
    else if (v->stepped && c->per_step >= GWA_EVERY_STEP)
        WHAT(" in each step");
    else
        WHAT(", %s", TIMES(c->count));
}

/* ---- input ----------------------------------------------------------------------------- */

bool gwa_rule_INPUT_CPU(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = worth(v, GWA_FIND_INPUT_CPU);
    if (!c)
        return false;
    WHAT("The GPU waited %s of the time while the thread that feeds it prepared input: %s",
         PCT(c->pct), MS(each_ms(c)));
    say_how_often(f, v, c);
    if (gwa_starved(c->top))
        WHAT(", %s of it on the CPU: it was taken off it %s each time, for want of cores",
             PCT(100 * cpu_share(c)), TIMES(c->top->involuntary));
    else if (!(cpu_share(c) >= 0.5) && other_cores(c) > GWA_BUSY_CORES)
        WHAT(", with %s cores busy in other threads of the process", COUNT(other_cores(c)));
    else if (!isnan(cpu_share(c)))
        WHAT(", %s of it on the CPU", PCT(100 * cpu_share(c)));
    if (cpu_share(c) >= 0.5 && other_cores(c) > GWA_BUSY_CORES)
        WHAT(" (and %s more cores busy in other threads)", COUNT(other_cores(c)));
    WHAT(".");
    gwa_cite_claim(f, v, c);
    gwa_evidence(f, "involuntary_switches_each", c->top->involuntary);
    return true;
}

bool gwa_rule_INPUT_WAIT(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = worth(v, GWA_FIND_INPUT_WAIT);
    if (!c)
        return false;
    WHAT("The GPU waited %s of the time while the thread that feeds it waited for input, off "
         "the CPU: %s",
         PCT(c->pct), MS(each_ms(c)));
    say_how_often(f, v, c);
    WHAT(".");
    gwa_cite_claim(f, v, c);
    return true;
}

bool gwa_rule_INPUT_PERIODIC(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = worth(v, GWA_FIND_INPUT_PERIODIC);
    if (!c)
        return false;
    double each = each_ms(c);
    if (c->top->wave && v->stepped) /* one or several waits in each round */
        each = c->host_ms * c->top->wave / (double)v->p->steps.count;
    WHAT("Every %u steps the loop stops for input, %s each time; the GPU waited %s of the time "
         "for it.",
         gwa_rhythm(c->top), MS(each), PCT(c->pct));
    gwa_cite_claim(f, v, c);
    return true;
}

bool gwa_rule_EPOCH_GAP(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = worth(v, GWA_FIND_EPOCH_GAP);
    if (!c)
        return false;
    WHAT("Between runs of the loop (epochs) the GPU waited %s of the time, %s each.", PCT(c->pct),
         MS(each_ms(c)));
    gwa_cite_claim(f, v, c);
    return true;
}

/* ---- loading and capturing --------------------------------------------------------------- */

bool gwa_rule_COMPILE_STALL(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = worth(v, GWA_FIND_COMPILE_STALL);
    if (!c)
        return false;
    WHAT("The loop stopped %s, %s on average, for code that was then loaded as new kernels: %s of "
         "the time.",
         TIMES(c->count), MS(each_ms(c)), PCT(c->pct));
    gwa_cite_claim(f, v, c);
    gwa_evidence(f, "module_loads", (double)v->p->other.module_loads);
    return true;
}

/* The captures themselves, rather than what was longest beside them. */
static void place_of_captures(struct gwa_draft *f, const struct gwa_device *d)
{
    const struct gwa_site *most = NULL;
    for (size_t i = 0; i < d->sites_count; i++) {
        const struct gwa_site *s = &d->sites[i];
        if (s->class == GWA_IDLE_LOAD && gwa_named(s->api, words_capture) &&
            (!most || (s->python && !most->python)))
            most = s;
    }
    if (most)
        place(f, most);
}

bool gwa_rule_GRAPH_RERECORD(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = &v->claims[GWA_FIND_GRAPH_RERECORD];
    const struct gwa_other *o = &v->p->other;
    if (!v->recording)
        return false;
    WHAT("%llu graphs were captured for %llu replays", (unsigned long long)o->captures,
         (unsigned long long)v->p->launches.graph_launches);
    if (c->top) {
        place_of_captures(f, v->d);
        WHAT("; capturing and what belongs to it left the GPU idle %s of the time", PCT(c->pct));
        gwa_cite_claim(f, v, c);
    }
    WHAT(".");
    gwa_evidence(f, "captures", (double)o->captures);
    gwa_evidence(f, "graph_launches", (double)v->p->launches.graph_launches);
    gwa_evidence(f, "instantiations", (double)o->instantiations);
    gwa_evidence(f, "captures_per_step", v->stepped ? v->p->steps.captures.median : NAN);
    return true;
}

bool gwa_rule_AUTOTUNE(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = &v->claims[GWA_FIND_AUTOTUNE];
    const struct gwa_reads *r = &v->reads[GWA_FIND_AUTOTUNE];
    if (!(c->pct + r->pct >= GWA_MENTION_PCT) || (!c->top && r->count < 3))
        return false;
    WHAT("Kernels were timed and waited for within the loop %s: the GPU was idle %s of "
         "the time between such trials.",
         TIMES(r->count + c->count), PCT(c->pct + r->pct));
    if (c->top)
        gwa_cite_claim(f, v, c);
    else
        gwa_cite_reads(f, v, r);
    f->f.share_pct = f->f.bound_pct = c->pct + r->pct;
    f->f.confidence = c->top ? GWA_MEDIUM : GWA_LOW;
    return true;
}

bool gwa_rule_MODULE_LOAD(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = worth(v, GWA_FIND_MODULE_LOAD);
    if (!c)
        return false;
    WHAT("Loading kernels left the GPU idle %s of the time: %s, %s each.", PCT(c->pct),
         TIMES(c->count), MS(each_ms(c)));
    gwa_cite_claim(f, v, c);
    gwa_evidence(f, "module_loads", (double)v->p->other.module_loads);
    return true;
}

/* ---- saving, evaluating, logging ------------------------------------------------------------ */

bool gwa_rule_SAVE_STALL(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = &v->claims[GWA_FIND_SAVE_STALL];
    double copies = v->dumping ? gwa_exposed_pct(v, GWT_D2H, false) : 0;
    unsigned period = c->top && c->top->period > 1 ? c->top->period : v->p->steps.unusual_period;
    if (!c->top || !(c->pct >= GWA_MENTION_PCT))
        return false;
    WHAT("The loop stopped to copy %s to the host and deal with it",
         BYTES(v->dumping ? (double)v->d->copies[GWT_D2H].bytes : c->bytes_to_host));
    if (v->stepped && period > 1)
        WHAT(", every %u steps", period);
    WHAT(": the GPU did not compute %s of the time.", PCT(c->pct + copies));
    gwa_cite_claim(f, v, c);
    gwa_evidence(f, "d2h_bytes", c->bytes_to_host);
    if (v->stepped && c->top->period <= 1 && period > 1)
        gwa_evidence(f, "period_steps", period);
    f->f.share_pct = f->f.bound_pct = c->pct + copies;
    return true;
}

bool gwa_rule_EVAL_PHASE(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = worth(v, GWA_FIND_EVAL_PHASE);
    if (!c)
        return false;
    WHAT("Outside the training steps, while forward passes ran without backward, the GPU was "
         "idle %s of the time.",
         PCT(c->pct));
    gwa_cite_claim(f, v, c);
    gwa_evidence(f, "d2h_bytes", c->bytes_to_host);
    if (f->f.confidence > GWA_MEDIUM)
        f->f.confidence = GWA_MEDIUM;
    return true;
}

bool gwa_rule_LOG_STALL(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = worth(v, GWA_FIND_LOG_STALL);
    if (!c)
        return false;
    WHAT("After reading values the loop stopped for %s", MS(each_ms(c)));
    say_how_often(f, v, c);
    WHAT("; the GPU waited %s of the time for it.", PCT(c->pct));
    gwa_cite_claim(f, v, c);
    return true;
}

/* ---- the machine, and the rest -----------------------------------------------------------------
 */

bool gwa_rule_GIL(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = worth(v, GWA_FIND_GIL);
    if (!c)
        return false;
    WHAT("The thread that feeds the GPU was off the CPU for %s, while another thread of the "
         "process kept %s of a core busy: the GPU waited %s of the time.",
         MS(each_ms(c)), COUNT(other_cores(c)), PCT(c->pct));
    gwa_cite_claim(f, v, c);
    f->f.confidence = GWA_LOW; /* they coincide; no more is known */
    return true;
}

bool gwa_rule_CPU_STARVED(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = worth(v, GWA_FIND_CPU_STARVED);
    const char *cpus = gwt_fact(v->trace, "cpus"), *omp = gwt_fact(v->trace, "env.OMP_NUM_THREADS");
    if (!c)
        return false;
    WHAT("The thread that feeds the GPU was taken off the CPU %s per section of %s and "
         "got it for %s of them: the GPU waited %s of the time for that.",
         TIMES(c->top->involuntary), MS(each_ms(c)), PCT(100 * cpu_share(c)), PCT(c->pct));
    gwa_cite_claim(f, v, c);
    gwa_evidence(f, "involuntary_switches_each", c->top->involuntary);
    gwa_evidence_text(f, "cpus", cpus);
    gwa_evidence_text(f, "OMP_NUM_THREADS", omp);
    f->f.confidence = GWA_MEDIUM;
    return true;
}

bool gwa_rule_UNKNOWN_HOST_GAP(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = worth(v, GWA_FIND_UNKNOWN_HOST_GAP);
    if (!c)
        return false;
    WHAT("The GPU waited %s of the time for the host, outside CUDA: %s", PCT(c->pct),
         MS(each_ms(c)));
    say_how_often(f, v, c);
    if (cpu_share(c) > 0.5)
        WHAT(", computing");
    else if (cpu_share(c) <= 0.5)
        WHAT(", waiting");
    WHAT(".");
    if (!c->top->python)
        REMEDY(
            "No line of Python was seen there: mark parts of the loop with "
            "torch.cuda.nvtx.range_push() and report on one range at a time. Garbage collection, "
            "Python loops over many objects and file access are usual.");
    if (c->top->before_h2d)
        WHAT(" It ends with a copy to the GPU, as loading input does.");
    gwa_cite_claim(f, v, c);
    f->f.confidence = GWA_LOW;
    return true;
}
