/* What all parts of the report as text are made of: headings, lines, wrapped text, words. */
#include "render_parts.h"
#include "text.h"
#include "tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct page page_stdout(bool all)
{
    return (struct page){.out = stdout,
                         .width = text_width(STDOUT_FILENO),
                         .bold = text_bold(STDOUT_FILENO),
                         .all = all};
}

void page_heading(const struct page *page, const char *title)
{
    fprintf(page->out, page->bold ? "\n\033[1m%s\033[0m\n" : "\n%s\n", title);
}

void page_line(const struct page *page, const char *what, const char *figure, const char *note)
{
    fprintf(page->out, "  %-26s %12s%s%s\n", what, figure, note && *note ? "  " : "",
            note ? note : "");
}

void page_more(const struct page *page, size_t shown, size_t count, const char *what)
{
    if (shown < count)
        fprintf(page->out, "  ... and %zu more %s (--all)\n", count - shown, what);
}

size_t page_limit(const struct page *page, size_t count, size_t shown)
{
    return page->all || count <= shown ? count : shown;
}

/* ---- wrapped text ---------------------------------------------------------------- */

/* Bytes of the word at `s` that fill at most `columns`. */
static size_t word_bytes(const char *s, size_t columns, size_t *used)
{
    size_t n = 0;
    *used = 0;
    while (s[n] && s[n] != ' ') {
        bool starts = ((unsigned char)s[n] & 0xc0) != 0x80;
        if (starts && *used == columns)
            break;
        *used += starts;
        n++;
    }
    return n;
}

void page_text(const struct page *page, const char *lead, const char *raw)
{
    char *text = text_clean(raw);
    size_t indent = strlen(lead), width = page->width - indent, at = 0;
    fputs(lead, page->out);
    for (const char *s = text; *(s += strspn(s, " "));) {
        size_t columns, n = word_bytes(s, width, &columns);
        if (at && at + 1 + columns > width) {
            fprintf(page->out, "\n%*s", (int)indent, "");
            at = 0;
        }
        fprintf(page->out, "%s%.*s", at ? " " : "", (int)n, s);
        at += columns + (at ? 1 : 0);
        s += n;
        if (*s && *s != ' ') /* a word longer than the line goes on in the next */
            at = width;
    }
    fputc('\n', page->out);
    free(text);
}

/* ---- order ---------------------------------------------------------------------------- */

size_t idle_order(const double values[GWA_IDLE_CLASS_COUNT], bool all,
                  unsigned order[GWA_IDLE_CLASS_COUNT])
{
    size_t count = 0;
    for (unsigned c = 0; c < GWA_IDLE_CLASS_COUNT; c++) {
        double v = values[c];
        if (!all && !(v > 0))
            continue;
        size_t at = count++;
        /* NaN never moves up */
        for (; at && v > (isnan(values[order[at - 1]]) ? -1 : values[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = c;
    }
    return count;
}
