/* Metrics and what became of them, in words. */
#include "render_check.h"
#include "text.h"
#include "tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *words_verdict(unsigned verdict)
{
    static const char *const words[] = {
#define X(id, word) [GWA_VERDICT_##id] = word,
        GWA_VERDICTS(X)
#undef X
    };
    return verdict < sizeof(words) / sizeof(*words) ? words[verdict] : "unknown";
}

const char *words_outcome_key(const struct gwa_gate *g)
{
    static const char *const keys[] = {[GWA_GATE_PASSED] = "passed",
                                       [GWA_GATE_FAILED] = "failed",
                                       [GWA_GATE_UNUSABLE] = "unusable",
                                       [GWA_GATE_INCONCLUSIVE] = "inconclusive"};
    return keys[g->outcome];
}

char *words_outcome(const struct gwa_gate *g)
{
    switch (g->outcome) {
    case GWA_GATE_PASSED:
        return g->won ? xprintf("PASSED, %zu won", g->won) : xstrdup("PASSED");
    case GWA_GATE_FAILED:
        if (!g->regressed)
            return xprintf("FAILED: %zu won; --update renews the baseline, --accept-wins lets "
                           "them pass",
                           g->won);
        return g->won ? xprintf("FAILED: %zu regressed, %zu won", g->regressed, g->won)
                      : xprintf("FAILED: %zu regressed", g->regressed);
    case GWA_GATE_UNUSABLE:
        return xstrdup("UNUSABLE BASELINE");
    default:
        return xstrdup("INCONCLUSIVE");
    }
}

char *words_metric(const struct gwa_gate_row *row)
{
    const char *key = gwa_metrics[row->metric].key;
    return row->process ? xprintf("%s of %s", key, row->process) : xstrdup(key);
}

char *words_value(char *out, double v, unsigned unit)
{
    char n[TEXT_NUMBER];
    if (!isfinite(v))
        return strcpy(out, "n/a");
    switch (unit) {
    case GWA_UNIT_BYTES:
        return v >= 0 && v < 1e18 ? text_bytes(out, (uint64_t)v) : text_short(out, v);
    case GWA_UNIT_US:
        return text_us(out, v);
    case GWA_UNIT_MS:
        return text_us(out, v * 1e3);
    case GWA_UNIT_PCT:
        snprintf(out, TEXT_NUMBER, "%s %%", text_fixed(n, v, 1));
        return out;
    default:
        return v >= 0 && v < 1e15 && v == floor(v) ? text_count(out, (uint64_t)v)
                                                   : text_short(out, v);
    }
}

char *words_delta(char *out, double base, double now, unsigned unit)
{
    char n[TEXT_NUMBER];
    double by = now - base;
    if (!isfinite(by))
        return strcpy(out, "n/a");
    if (by == 0)
        return strcpy(out, "0");
    words_value(n, fabs(by), unit);
    if (strtod(n, NULL) == 0) /* less than is shown */
        return strcpy(out, "0");
    snprintf(out, TEXT_NUMBER, "%c%.*s", by < 0 ? '-' : '+', TEXT_NUMBER - 2, n);
    return out;
}

char *words_row(const struct gwa_gate_row *row)
{
    unsigned unit = gwa_metrics[row->metric].unit;
    char base[TEXT_NUMBER], now[TEXT_NUMBER], delta[TEXT_NUMBER], margin[TEXT_NUMBER];
    char *metric = words_metric(row);
    char *text =
        xprintf("%s: %s -> %s (%s, margin %s)", metric, words_value(base, row->base, unit),
                words_value(now, row->now, unit), words_delta(delta, row->base, row->now, unit),
                words_value(margin, row->margin, unit));
    free(metric);
    return text;
}

char *words_pattern(const struct gwa_gate_pattern *p)
{
    if (p->required)
        return p->kernel ? xprintf("required kernel \"%s\": %s", p->pattern, p->kernel)
                         : xprintf("required kernel \"%s\": no step runs it", p->pattern);
    return p->kernel ? xprintf("forbidden kernel \"%s\": %s", p->pattern, p->kernel)
                     : xprintf("forbidden kernel \"%s\": no step runs it", p->pattern);
}

char *words_change(const struct gwa_change *c)
{
    char base[TEXT_NUMBER], now[TEXT_NUMBER];
    return xprintf("%s: %s -> %s a step%s%s", c->name, words_value(base, c->base, GWA_UNIT_COUNT),
                   words_value(now, c->now, GWA_UNIT_COUNT), c->where ? ", at " : "",
                   c->where ? c->where : "");
}
