/* The gate for machines that show it to people: JUnit's XML, GitHub's workflow commands. */
#include "render_check.h"
#include "text.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHANGES_SHOWN 10

/* ---- JUnit ------------------------------------------------------------------------------------
 */

static void xml(FILE *out, const char *raw)
{
    char *text = text_clean(raw); /* no character that XML forbids is left */
    for (const char *c = text; *c; c++)
        switch (*c) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*c, out);
        }
    free(text);
}

static void attribute(FILE *out, const char *name, const char *value)
{
    fprintf(out, " %s=\"", name);
    xml(out, value);
    fputc('"', out);
}

static const char *script_of(const struct check_report *r)
{
    return r->run->keys[GWA_KEY_SCRIPT] ? r->run->keys[GWA_KEY_SCRIPT] : "unknown";
}

/* what: "failure", "error", "skipped"; NULL: it passed. */
static void testcase(FILE *out, const struct check_report *r, const char *name, const char *what,
                     const char *type, const char *message)
{
    char *class = xprintf("gpuwait.%s", script_of(r));
    fputs("    <testcase", out);
    attribute(out, "classname", class);
    attribute(out, "name", name);
    fputs(" time=\"0\"", out);
    free(class);
    if (!what) {
        fputs("/>\n", out);
        return;
    }
    fprintf(out, ">\n      <%s", what);
    if (type)
        attribute(out, "type", type);
    attribute(out, "message", message);
    fputs("/>\n    </testcase>\n", out);
}

static const char *junit_of(const struct gwa_gate_row *row)
{
    return row->fails                                 ? "failure"
           : row->verdict == GWA_VERDICT_UNKNOWN      ? "error"
           : row->verdict == GWA_VERDICT_NOT_MEASURED ? "skipped"
           : row->verdict == GWA_VERDICT_SKIPPED      ? "skipped"
                                                      : NULL;
}

static void row_case(FILE *out, const struct check_report *r, const struct gwa_gate_row *row)
{
    const char *what = junit_of(row);
    char *name = words_metric(row), *text = words_row(row);
    testcase(out, r, name, what,
             !what || !strcmp(what, "skipped") ? NULL
             : row->verdict == GWA_VERDICT_WON ? "win"
             : row->fails                      ? "regression"
                                               : "unknown",
             text);
    free(text);
    free(name);
}

static void reasons_case(FILE *out, const struct check_report *r)
{
    const struct gwa_gate *g = r->gate;
    char *text = xstrdup("");
    for (size_t i = 0; i < g->reasons_count; i++) {
        char *more = xprintf("%s%s%s", text, i ? "; " : "", g->reasons[i]);
        free(text);
        text = more;
    }
    testcase(out, r, "recording", g->reasons_count ? "error" : NULL, words_outcome_key(g), text);
    free(text);
}

static void changes_text(FILE *out, const struct gwa_change *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *text = words_change(&list[i]);
        xml(out, text);
        fputc('\n', out);
        free(text);
    }
}

void render_check_junit(FILE *out, const struct check_report *r, int64_t now_s)
{
    const struct gwa_gate *g = r->gate;
    size_t errors = g->reasons_count > 0, skipped = 0;
    char stamp[32] = "";
    struct tm tm;
    time_t now = (time_t)now_s;
    for (size_t i = 0; i < g->rows_count; i++) {
        const char *what = junit_of(&g->rows[i]);
        errors += what && !strcmp(what, "error");
        skipped += what && !strcmp(what, "skipped");
    }
    if (gmtime_r(&now, &tm))
        strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite", out);
    attribute(out, "name", "gpuwait check");
    attribute(out, "package", "gpuwait");
    attribute(out, "id", "0");
    attribute(out, "timestamp", stamp);
    attribute(out, "hostname", "localhost");
    fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"0\">\n",
            1 + g->rows_count + g->patterns_count, g->failed, errors, skipped);
    fputs("    <properties>\n", out);
    for (unsigned k = 0; k < GWA_KEY_COUNT; k++) {
        if (!r->run->keys[k])
            continue;
        fputs("      <property", out);
        attribute(out, "name", gwa_keys[k].key);
        attribute(out, "value", r->run->keys[k]);
        fputs("/>\n", out);
    }
    fputs("    </properties>\n", out);
    reasons_case(out, r);
    for (size_t i = 0; i < g->rows_count; i++)
        row_case(out, r, &g->rows[i]);
    for (size_t i = 0; i < g->patterns_count; i++) {
        const struct gwa_gate_pattern *p = &g->patterns[i];
        char *name = xprintf("%s %s", p->required ? "require" : "forbid", p->pattern);
        char *text = words_pattern(p);
        testcase(out, r, name, p->fails ? "failure" : NULL, "regression", text);
        free(text);
        free(name);
    }
    fputs("    <system-out>", out);
    if (g->failed) {
        changes_text(out, g->kernels, g->kernels_count);
        changes_text(out, g->calls, g->calls_count);
    }
    fputs("</system-out>\n    <system-err></system-err>\n  </testsuite>\n</testsuites>\n", out);
}

/* ---- GitHub's workflow commands ------------------------------------------------------------- */

static void escaped(FILE *out, const char *raw, bool property)
{
    char *text = text_clean(raw);
    for (const char *c = text; *c; c++)
        if (*c == '%')
            fputs("%25", out);
        else if (property && *c == ':')
            fputs("%3A", out);
        else if (property && *c == ',')
            fputs("%2C", out);
        else
            fputc(*c, out); /* line ends are none left */
    free(text);
}

/* line: of the baseline; 0: none. */
static void command(FILE *out, const struct check_report *r, const char *level, unsigned line,
                    const char *title, const char *text)
{
    fprintf(out, "::%s file=", level);
    escaped(out, r->path, true);
    if (line)
        fprintf(out, ",line=%u", line);
    fputs(",title=", out);
    escaped(out, title, true);
    fputs("::", out);
    escaped(out, text, false);
    fputc('\n', out);
}

static void change_commands(FILE *out, const struct check_report *r, const char *what,
                            const struct gwa_change *list, size_t count)
{
    for (size_t i = 0; i < count && i < CHANGES_SHOWN; i++) {
        char *text = words_change(&list[i]);
        command(out, r, "notice", 0, what, text);
        free(text);
    }
}

void render_check_github(FILE *out, const struct check_report *r)
{
    const struct gwa_gate *g = r->gate;
    for (size_t i = 0; i < g->reasons_count; i++)
        command(out, r, "error", 0, "gpuwait: no conclusion", g->reasons[i]);
    for (size_t i = 0; i < g->notes_count; i++)
        command(out, r, "notice", 0, "gpuwait", g->notes[i]);
    for (size_t i = 0; i < g->rows_count; i++) {
        const struct gwa_gate_row *row = &g->rows[i];
        bool won = row->verdict == GWA_VERDICT_WON;
        if (!won && row->verdict != GWA_VERDICT_REGRESSED)
            continue;
        char *text = words_row(row);
        command(out, r, row->fails ? "error" : "notice", row->line,
                won ? "gpuwait: win, renew the baseline" : "gpuwait: regression", text);
        free(text);
    }
    for (size_t i = 0; i < g->patterns_count; i++) {
        if (!g->patterns[i].fails)
            continue;
        char *text = words_pattern(&g->patterns[i]);
        command(out, r, "error", 0, "gpuwait: kernels", text);
        free(text);
    }
    if (g->failed) {
        change_commands(out, r, "gpuwait: kernel", g->kernels, g->kernels_count);
        change_commands(out, r, "gpuwait: call", g->calls, g->calls_count);
    }
}

/* ---- and its summary page ------------------------------------------------------------------- */

/* Inside a table's cell or a list, as text only. */
static void markdown(FILE *out, const char *raw)
{
    char *text = text_clean(raw);
    for (const char *c = text; *c; c++)
        switch (*c) {
        case '<':
            fputs("&lt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        default:
            if (strchr("\\`*_|[]#!~@:", *c))
                fprintf(out, "&#%d;", *c);
            else
                fputc(*c, out);
        }
    free(text);
}

static void bullet(FILE *out, char *text)
{
    fputs("- ", out);
    markdown(out, text);
    fputc('\n', out);
    free(text);
}

static void table(FILE *out, const struct gwa_gate *g)
{
    char n[TEXT_NUMBER];
    fputs("\n| metric | baseline | now | delta | margin | verdict |\n|---|--:|--:|--:|--:|---|\n",
          out);
    for (size_t i = 0; i < g->rows_count; i++) {
        const struct gwa_gate_row *row = &g->rows[i];
        unsigned unit = gwa_metrics[row->metric].unit;
        if (row->process && !row->fails)
            continue;
        char *metric = words_metric(row);
        fputs("| ", out);
        markdown(out, metric);
        fprintf(out, " | %s", words_value(n, row->base, unit));
        fprintf(out, " | %s", words_value(n, row->now, unit));
        fprintf(out, " | %s", words_delta(n, row->base, row->now, unit));
        fprintf(out, " | %s", words_value(n, row->margin, unit));
        fprintf(out, row->fails ? " | **%s** |\n" : " | %s |\n", words_verdict(row->verdict));
        free(metric);
    }
}

void render_check_summary(FILE *out, const struct check_report *r)
{
    const struct gwa_gate *g = r->gate;
    char *outcome = words_outcome(g);
    fputs("### gpuwait check: ", out);
    markdown(out, outcome);
    fputs("\n\n", out);
    free(outcome);
    for (size_t i = 0; i < g->reasons_count; i++)
        bullet(out, xstrdup(g->reasons[i]));
    for (size_t i = 0; i < g->notes_count; i++)
        bullet(out, xstrdup(g->notes[i]));
    for (size_t i = 0; i < g->patterns_count; i++) {
        char *text = words_pattern(&g->patterns[i]);
        bullet(out, xprintf("%s%s", g->patterns[i].fails ? "FAILED: " : "", text));
        free(text);
    }
    if (g->rows_count)
        table(out, g);
    if (!g->failed || !(g->kernels_count + g->calls_count))
        return;
    fputs("\nChanged by name:\n\n", out);
    for (size_t i = 0; i < g->kernels_count && i < CHANGES_SHOWN; i++)
        bullet(out, words_change(&g->kernels[i]));
    for (size_t i = 0; i < g->calls_count && i < CHANGES_SHOWN; i++)
        bullet(out, words_change(&g->calls[i]));
}
