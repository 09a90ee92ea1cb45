/* A baseline from its text. Nothing in it is believed before it was looked at. */
#include "baseline.h"
#include "grow.h"

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    const char *text, *name;
    size_t size;
    struct gwa_baseline *out;
    struct gwt_error *error;
};

/* ---- errors ------------------------------------------------------------------------------ */

/* Where `"key"` stands, at or behind `from`; NULL: nowhere, as when it is written with escapes. */
static const char *find_key(const struct parser *p, const char *from, const char *key)
{
    size_t n = strlen(key), left = p->size - (size_t)(from - p->text);
    for (const char *at = from; (at = memmem(at, left, key, n));) {
        const char *end = at + n;
        if (at > p->text && at[-1] == '"' && end < p->text + p->size && *end == '"')
            return at;
        at++;
        left = p->size - (size_t)(at - p->text);
    }
    return NULL;
}

/* Line of `key` inside `section`; 0: not found. */
static unsigned line_of(const struct parser *p, const char *section, const char *key)
{
    unsigned line = 1;
    const char *at = section ? find_key(p, p->text, section) : p->text;
    if (at && key)
        at = find_key(p, at, key);
    if (!at)
        return 0;
    for (const char *c = p->text; c < at; c++)
        line += *c == '\n';
    return line;
}

/* NAME:LINE: SECTION.KEY: what */
static int bad(const struct parser *p, const char *section, const char *key, const char *what)
{
    unsigned line = line_of(p, section, key);
    char at[16] = "";
    if (line)
        snprintf(at, sizeof(at), ":%u", line);
    snprintf(p->error->text, sizeof(p->error->text), "%.200s%s: %s%s%.80s: %s", p->name, at,
             section ? section : "", section && key ? "." : "", key ? key : "", what);
    return -EBADMSG;
}

/* ---- values ------------------------------------------------------------------------------------
 */

#define NUMBER_MOST 1e18

static bool number(const json_t *j, double *out)
{
    if (!json_is_number(j))
        return false;
    *out = json_number_value(j) + 0.0; /* -0 is 0 */
    return *out >= 0 && *out <= NUMBER_MOST;
}

static bool number_or_null(const json_t *j, double *out)
{
    if (!json_is_null(j))
        return number(j, out);
    *out = NAN;
    return true;
}

static int keys(struct parser *p, json_t *section)
{
    const char *key;
    json_t *v;
    json_object_foreach(section, key, v)
    {
        unsigned k = gwa_key_find(key);
        if (k == GWA_KEY_COUNT)
            return bad(p, "keys", key, "there is no such key");
        if (json_is_null(v))
            continue;
        if (!json_is_string(v))
            return bad(p, "keys", key, "not a text");
        if (!(p->out->keys[k] = strdup(json_string_value(v))))
            return -ENOMEM;
    }
    return 0;
}

static int margin(struct parser *p, const char *metric, const char *name, json_t *v,
                  struct gwa_margins *m, bool *below_abs, bool *below_rel)
{
    double *to = !strcmp(name, "abs")         ? &m->abs
                 : !strcmp(name, "rel")       ? &m->rel
                 : !strcmp(name, "below_abs") ? &m->below_abs
                 : !strcmp(name, "below_rel") ? &m->below_rel
                                              : NULL;
    if (!to)
        return bad(p, "metrics", metric, "takes value, abs, rel, below_abs and below_rel only");
    if (!number(v, to))
        return bad(p, "metrics", metric, "a margin is a number, 0 or more");
    *below_abs |= to == &m->below_abs;
    *below_rel |= to == &m->below_rel;
    return 0;
}

static int metric(struct parser *p, const char *key, json_t *row)
{
    unsigned m = gwa_metric_find(key);
    bool below_abs = false, below_rel = false, any = false;
    const char *name;
    json_t *v;
    int rc;
    if (m == GWA_METRIC_COUNT || gwa_metrics[m].gated == GWA_GATED_NO)
        return bad(p, "metrics", key, "there is no such metric");
    if (!json_is_object(row))
        return bad(p, "metrics", key, "not an object");
    struct gwa_margins *margins = &p->out->margins[m];
    json_object_foreach(row, name, v)
    {
        if (!strcmp(name, "value")) {
            if (!number_or_null(v, &p->out->values[m]))
                return bad(p, "metrics", key, "its value is no number of 0 or more, nor null");
            any = true;
        } else if ((rc = margin(p, key, name, v, margins, &below_abs, &below_rel))) {
            return rc;
        }
    }
    if (!any)
        return bad(p, "metrics", key, "has no value");
    if (!below_abs)
        margins->below_abs = margins->abs;
    if (!below_rel)
        margins->below_rel = margins->rel;
    p->out->has[m] = true;
    p->out->lines[m] = line_of(p, "metrics", key);
    return 0;
}

static int metrics(struct parser *p, json_t *section)
{
    const char *key;
    json_t *row;
    json_object_foreach(section, key, row)
    {
        int rc = metric(p, key, row);
        if (rc)
            return rc;
    }
    return 0;
}

static int process(struct parser *p, const char *name, json_t *row)
{
    struct gwa_baseline *b = p->out;
    const char *key;
    json_t *v;
    if (!json_is_object(row))
        return bad(p, "processes", name, "not an object");
    struct gwa_baseline_process *grown =
        realloc(b->processes, (b->processes_count + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    b->processes = grown;
    struct gwa_baseline_process *out = &grown[b->processes_count];
    if (!(out->name = strdup(name)))
        return -ENOMEM;
    b->processes_count++;
    for (unsigned m = 0; m < GWA_METRIC_COUNT; m++)
        out->values[m] = NAN;
    json_object_foreach(row, key, v)
    {
        unsigned m = gwa_metric_find(key);
        if (m == GWA_METRIC_COUNT || gwa_metrics[m].gated == GWA_GATED_NO)
            return bad(p, "processes", key, "there is no such metric");
        if (!number_or_null(v, &out->values[m]))
            return bad(p, "processes", key, "no number of 0 or more, nor null");
    }
    return 0;
}

static int processes(struct parser *p, json_t *section)
{
    const char *name;
    json_t *row;
    json_object_foreach(section, name, row)
    {
        int rc = p->out->processes_count < 4096
                     ? process(p, name, row)
                     : bad(p, "processes", NULL, "more than 4096 of them");
        if (rc)
            return rc;
    }
    return 0;
}

static int names(struct parser *p, const char *section, json_t *rows, struct gwa_names *out)
{
    const char *name;
    json_t *v;
    json_object_foreach(rows, name, v)
    {
        double calls;
        if (!number(v, &calls))
            return bad(p, section, name, "its calls are no number of 0 or more");
        if (gwa_names_add(out, name, calls, NAN, NULL))
            return -ENOMEM;
    }
    gwa_names_sort(out);
    return 0;
}

static int patterns(struct parser *p, const char *section, json_t *rows, char ***list,
                    size_t *count)
{
    size_t i;
    json_t *v;
    if (!json_is_array(rows))
        return bad(p, section, NULL, "not an array");
    json_array_foreach(rows, i, v)
    {
        if (!json_is_string(v) || !*json_string_value(v))
            return bad(p, section, NULL, "a pattern is a text that is not empty");
        if (i >= 1000)
            return bad(p, section, NULL, "more than 1000 patterns");
        if (gwa_baseline_pattern(list, count, json_string_value(v)))
            return -ENOMEM;
    }
    return 0;
}

static int section(struct parser *p, const char *name, json_t *v)
{
    struct gwa_baseline *b = p->out;
    if (!strcmp(name, "schema")) {
        if (!json_is_integer(v) || json_integer_value(v) != GWA_BASELINE_SCHEMA)
            return bad(p, NULL, name, "this version reads schema 1 only");
        return 0;
    }
    if (!strcmp(name, "require"))
        return patterns(p, name, v, &b->require, &b->require_count);
    if (!strcmp(name, "forbid"))
        return patterns(p, name, v, &b->forbid, &b->forbid_count);
    if (!json_is_object(v))
        return bad(p, NULL, name,
                   "not an object of a baseline: calls, forbid, kernels, keys, metrics, "
                   "processes, require, schema");
    if (!strcmp(name, "keys"))
        return keys(p, v);
    if (!strcmp(name, "metrics"))
        return metrics(p, v);
    if (!strcmp(name, "processes"))
        return processes(p, v);
    if (!strcmp(name, "kernels"))
        return names(p, name, v, &b->kernels);
    if (!strcmp(name, "calls"))
        return names(p, name, v, &b->calls);
    return bad(p, NULL, name,
               "there is no such part: calls, forbid, kernels, keys, metrics, processes, require, "
               "schema");
}

static int sections(struct parser *p, json_t *root)
{
    static const char *const needed[] = {"schema", "keys", "metrics"};
    const char *name;
    json_t *v;
    if (!json_is_object(root))
        return bad(p, NULL, NULL, "not a JSON object");
    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
        if (!json_object_get(root, needed[i]))
            return bad(p, NULL, needed[i], "is missing");
    json_object_foreach(root, name, v)
    {
        int rc = section(p, name, v);
        if (rc)
            return rc;
    }
    return 0;
}

void gwa_baseline_begin(struct gwa_baseline *b)
{
    *b = (struct gwa_baseline){0};
    for (unsigned m = 0; m < GWA_METRIC_COUNT; m++) {
        b->values[m] = NAN;
        b->margins[m] = gwa_margins_of(m);
    }
}

int gwa_baseline_parse(const char *text, size_t size, const char *name, struct gwa_baseline *out,
                       struct gwt_error *error)
{
    struct parser p = {text, name, size, out, error};
    json_error_t where;
    gwa_baseline_begin(out);
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
    if (!root) {
        snprintf(error->text, sizeof(error->text), "%.200s:%d:%d: not a baseline: %s", name,
                 where.line, where.column, where.text);
        return -EBADMSG;
    }
    int rc = sections(&p, root);
    json_decref(root);
    if (rc == -ENOMEM)
        snprintf(error->text, sizeof(error->text), "%.200s: out of memory", name);
    if (rc)
        gwa_baseline_free(out);
    return rc;
}

int gwa_baseline_read(const char *path, struct gwa_baseline *out, struct gwt_error *error)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0, room = 0;
    int rc = file ? 0 : -errno;
    while (!rc && !feof(file)) {
        size_t want = room ? 2 * room : 65536;
        char *grown = size == room ? realloc(text, want) : text;
        if (!grown) {
            rc = -ENOMEM;
            break;
        }
        text = grown;
        room = size == room ? want : room;
        size += fread(text + size, 1, room - size, file);
        if (ferror(file))
            rc = -(errno ? errno : EIO);
        else if (size > GWA_BASELINE_BYTES)
            rc = -EFBIG;
    }
    if (file)
        fclose(file);
    if (rc)
        snprintf(error->text, sizeof(error->text), "%.200s: %s", path, strerror(-rc));
    else
        rc = gwa_baseline_parse(text, size, path, out, error);
    free(text);
    return rc;
}

/* ---- the rest
 * ------------------------------------------------------------------------------------ */

int gwa_baseline_pattern(char ***list, size_t *count, const char *pattern)
{
    for (size_t i = 0; i < *count; i++)
        if (!strcmp((*list)[i], pattern))
            return 0;
    char **grown = realloc(*list, (*count + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    *list = grown;
    if (!(grown[*count] = strdup(pattern)))
        return -ENOMEM;
    ++*count;
    return 0;
}

/* The pieces between the stars, one behind the other. */
bool gwa_pattern_matches(const char *pattern, const char *name)
{
    while (*pattern) {
        size_t n = strcspn(pattern, "*");
        const char *at = n ? memmem(name, strlen(name), pattern, n) : name;
        if (!at)
            return false;
        name = at + n;
        pattern += n;
        pattern += strspn(pattern, "*");
    }
    return true;
}

static void free_list(char **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

void gwa_baseline_free(struct gwa_baseline *b)
{
    for (unsigned k = 0; k < GWA_KEY_COUNT; k++)
        free(b->keys[k]);
    for (size_t i = 0; i < b->processes_count; i++)
        free(b->processes[i].name);
    free(b->processes);
    gwa_names_free(&b->kernels);
    gwa_names_free(&b->calls);
    free_list(b->require, b->require_count);
    free_list(b->forbid, b->forbid_count);
    *b = (struct gwa_baseline){0};
}
