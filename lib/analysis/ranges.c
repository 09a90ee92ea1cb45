#include "ranges.h"
#include "grow.h"

#include <stdio.h>

#define DEPTH_MAX   4096 /* deeper pushes are counted, not remembered */
#define NAMES_SHOWN 10

/* One thread's open push/pop ranges. */
struct stack {
    int64_t *open; /* begin of each that has the name, INT64_MIN for others */
    size_t room;
    size_t depth;
};

struct started { /* an open start/end range that has the name */
    uint64_t id;
    int64_t from;
};

struct finder {
    struct gwt_trace *trace;
    const char *name;
    struct gwa_ranges *ranges;
    struct stack *stacks; /* by thread */
    size_t stacks_count;
    struct started *started;
    size_t started_count, started_room;
    uint8_t *names; /* by string id: UNSEEN, OTHER, WANTED */
    size_t names_count;
    uint32_t shown[NAMES_SHOWN];
    size_t shown_count, other_count;
    int64_t end;
};
enum { UNSEEN, OTHER, WANTED };

static void show(struct finder *f, uint32_t id, const char *text)
{
    for (size_t i = 0; i < f->shown_count; i++) {
        const char *known = gwt_string(f->trace, f->shown[i]);
        if (known && !strcmp(known, text))
            return;
    }
    if (f->shown_count < NAMES_SHOWN)
        f->shown[f->shown_count++] = id;
    else
        f->other_count++;
}

/* post: 1 if the string is the name looked for, 0 if not, or -ENOMEM. */
static int wanted(struct finder *f, uint32_t id)
{
    int rc = gwa_grow((void **)&f->names, &f->names_count, id, sizeof(*f->names));
    if (rc)
        return rc == -ERANGE ? 0 : rc;
    if (f->names[id] == UNSEEN) {
        const char *text = gwt_string(f->trace, id);
        f->names[id] = text && !strcmp(text, f->name) ? WANTED : OTHER;
        if (text && f->names[id] == OTHER)
            show(f, id, text);
    }
    return f->names[id] == WANTED;
}

static int add(struct gwa_ranges *r, int64_t from, int64_t to)
{
    int rc = gwa_reserve((void **)&r->list, &r->room, r->count, sizeof(*r->list));
    if (!rc)
        r->list[r->count++] = (struct gwa_interval){.from = from, .to = to};
    return rc;
}

static int push(struct finder *f, const struct gwt_event *e)
{
    int is = wanted(f, e->arg);
    if (is < 0)
        return is;
    int rc = gwa_grow((void **)&f->stacks, &f->stacks_count, e->thread, sizeof(*f->stacks));
    if (rc)
        return rc == -ERANGE ? 0 : rc;
    struct stack *s = &f->stacks[e->thread];
    if (s->depth < DEPTH_MAX) {
        rc = gwa_reserve((void **)&s->open, &s->room, s->depth, sizeof(*s->open));
        if (rc)
            return rc;
        s->open[s->depth] = is ? e->t0_ns : INT64_MIN;
    }
    s->depth++;
    return 0;
}

static int pop(struct finder *f, const struct gwt_event *e)
{
    if (e->thread >= f->stacks_count || !f->stacks[e->thread].depth)
        return 0; /* opened before recording began, or lost */
    struct stack *s = &f->stacks[e->thread];
    s->depth--;
    if (s->depth >= DEPTH_MAX || s->open[s->depth] == INT64_MIN)
        return 0;
    return add(f->ranges, s->open[s->depth], e->t0_ns);
}

static int start(struct finder *f, const struct gwt_event *e)
{
    int rc = wanted(f, e->arg);
    if (rc <= 0)
        return rc;
    rc = gwa_reserve((void **)&f->started, &f->started_room, f->started_count, sizeof(*f->started));
    if (!rc)
        f->started[f->started_count++] = (struct started){.id = e->value, .from = e->t0_ns};
    return rc;
}

static int end(struct finder *f, const struct gwt_event *e)
{
    for (size_t i = 0; i < f->started_count; i++) {
        if (f->started[i].id != e->value)
            continue;
        int rc = add(f->ranges, f->started[i].from, e->t0_ns);
        f->started[i] = f->started[--f->started_count];
        return rc;
    }
    return 0; /* of another name */
}

/* What was never closed lasts until the recording's end. */
static int close_open(struct finder *f)
{
    int rc = 0;
    for (size_t t = 0; t < f->stacks_count && !rc; t++) {
        const struct stack *s = &f->stacks[t];
        for (size_t i = 0; i < s->depth && i < DEPTH_MAX && !rc; i++)
            if (s->open[i] != INT64_MIN)
                rc = add(f->ranges, s->open[i], f->end);
    }
    for (size_t i = 0; i < f->started_count && !rc; i++)
        rc = add(f->ranges, f->started[i].from, f->end);
    return rc;
}

static int by_begin(const void *a, const void *b)
{
    const struct gwa_interval *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

static void unite(struct gwa_ranges *r)
{
    if (!r->count)
        return;
    qsort(r->list, r->count, sizeof(*r->list), by_begin);
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (n && r->list[i].from <= r->list[n - 1].to) {
            if (r->list[i].to > r->list[n - 1].to)
                r->list[n - 1].to = r->list[i].to;
        } else {
            r->list[n++] = r->list[i];
        }
    }
    r->count = n;
}

static void none(const struct finder *f, struct gwt_error *error)
{
    char *out = error->text;
    size_t left = sizeof(error->text);
    int n = snprintf(out, left, "no NVTX range named \"%.100s\"; ", f->name);
    if (!f->shown_count) {
        snprintf(out + n, left - (size_t)n, "the recording has no NVTX range at all");
        return;
    }
    n += snprintf(out + n, left - (size_t)n, "there are: ");
    for (size_t i = 0; i < f->shown_count; i++) {
        const char *text = gwt_string(f->trace, f->shown[i]);
        n += snprintf(out + n, left - (size_t)n, "%s\"%.30s\"", i ? ", " : "", text ? text : "");
    }
    if (f->other_count)
        snprintf(out + n, left - (size_t)n, ", and more");
}

int gwa_ranges_find(struct gwa_ranges *ranges, struct gwt_trace *trace, const char *name,
                    int (*tick)(void *arg), void *tick_arg, struct gwt_error *error)
{
    struct finder f = {.trace = trace, .name = name, .ranges = ranges, .end = INT64_MIN};
    struct gwt_event e;
    uint64_t seen = 0;
    int rc = 0;

    *ranges = (struct gwa_ranges){0};
    gwt_rewind(trace);
    while (!rc && gwt_next(trace, &e) > 0) {
        if (e.t1_ns >= f.end)
            f.end = e.t1_ns + 1; /* the last event's own entry lies inside */
        switch (e.kind) {
        case GWT_RANGE_PUSH:
            rc = push(&f, &e);
            break;
        case GWT_RANGE_POP:
            rc = pop(&f, &e);
            break;
        case GWT_RANGE_START:
            rc = start(&f, &e);
            break;
        case GWT_RANGE_END:
            rc = end(&f, &e);
            break;
        }
        if (!rc && tick && (++seen & 0xfffff) == 0)
            rc = tick(tick_arg);
    }
    gwt_rewind(trace);
    if (!rc)
        rc = close_open(&f);
    if (!rc)
        unite(ranges);
    if (!rc && !ranges->count) {
        none(&f, error);
        rc = -ENOENT;
    }

    for (size_t i = 0; i < f.stacks_count; i++)
        free(f.stacks[i].open);
    free(f.stacks);
    free(f.started);
    free(f.names);
    return rc;
}

void gwa_ranges_free(struct gwa_ranges *ranges)
{
    free(ranges->list);
    *ranges = (struct gwa_ranges){0};
}

/* Index of the last interval that begins at or before t, or count where none does. */
static size_t at(const struct gwa_ranges *r, int64_t t)
{
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->list[middle].from <= t)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : r->count;
}

bool gwa_ranges_seek(struct gwa_ranges *r, int64_t t)
{
    size_t i = at(r, t);
    if (i == r->count)
        return false;
    r->hint = i;
    return t < r->list[i].to;
}

/* Of a hostile recording both may be far off, to either side. */
static int64_t length(int64_t from, int64_t to)
{
    int64_t ns;
    return __builtin_sub_overflow(to, from, &ns) ? INT64_MAX : ns;
}

int64_t gwa_ranges_overlap(const struct gwa_ranges *r, int64_t from, int64_t to)
{
    if (from >= to)
        return 0;
    if (r->all)
        return length(from, to);
    int64_t sum = 0;
    size_t i = at(r, from);
    for (i = i == r->count ? 0 : i; i < r->count && r->list[i].from < to; i++) {
        int64_t a = r->list[i].from > from ? r->list[i].from : from;
        int64_t b = r->list[i].to < to ? r->list[i].to : to;
        if (b > a && __builtin_add_overflow(sum, length(a, b), &sum))
            return INT64_MAX;
    }
    return sum;
}
