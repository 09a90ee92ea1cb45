/* Tables with libsmartcols, indented, and with kernel names shortened to what is left. */
#include "render.h"
#include "text.h"
#include "tool.h"

#include <libsmartcols/libsmartcols.h>

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define INDENT     2
#define BETWEEN    2
#define COLUMNS    12
#define LAST_LEAST 20

struct row {
    char *cells[COLUMNS];
    size_t used;
    bool kernel; /* the last cell is a kernel's name as it came */
};

struct table {
    const struct page *page;
    const struct column *columns;
    size_t count;
    struct row *rows;
    size_t used, room;
};

struct table *table_new(const struct page *page, const struct column *columns, size_t count)
{
    struct table *t = xalloc(sizeof(*t));
    t->page = page;
    t->columns = columns;
    t->count = count < COLUMNS ? count : COLUMNS;
    return t;
}

void table_row(struct table *t)
{
    if (t->used == t->room) {
        size_t room = t->room ? 2 * t->room : 16;
        struct row *grown = xalloc(room * sizeof(*grown));
        if (t->used)
            memcpy(grown, t->rows, t->used * sizeof(*grown));
        free(t->rows);
        t->rows = grown;
        t->room = room;
    }
    t->rows[t->used++] = (struct row){.used = 0};
}

void table_cell(struct table *t, const char *format, ...)
{
    struct row *r = &t->rows[t->used - 1];
    char few[256], *raw = few;
    va_list args, again;
    if (r->used == t->count)
        return;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(few, sizeof(few), format, args);
    if (n >= (int)sizeof(few)) { /* a name */
        raw = xalloc((size_t)n + 1);
        vsnprintf(raw, (size_t)n + 1, format, again);
    }
    va_end(again);
    va_end(args);
    r->cells[r->used++] = text_clean(raw);
    if (raw != few)
        free(raw);
}

void table_kernel(struct table *t, const char *name)
{
    struct row *r = &t->rows[t->used - 1];
    if (r->used == t->count)
        return;
    r->cells[r->used++] = xstrdup(name);
    r->kernel = true;
}

static size_t columns_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* What the other columns leave of the width for the last one. */
static unsigned left_for_last(const struct table *t)
{
    size_t used = INDENT;
    for (size_t c = 0; c + 1 < t->count; c++) {
        size_t widest = columns_of(t->columns[c].title);
        for (size_t i = 0; i < t->used; i++) {
            const char *cell = t->rows[i].cells[c];
            if (cell && columns_of(cell) > widest)
                widest = columns_of(cell);
        }
        used += widest + BETWEEN;
    }
    return used + LAST_LEAST < t->page->width ? t->page->width - (unsigned)used : LAST_LEAST;
}

static void fit(struct table *t)
{
    unsigned left = left_for_last(t);
    for (size_t i = 0; i < t->used; i++) {
        struct row *r = &t->rows[i];
        if (!r->used)
            continue;
        char **last = &r->cells[r->used - 1];
        if (r->kernel) {
            char *name = text_kernel(*last, t->page->all ? 0 : left);
            free(*last);
            *last = name;
        } else if (t->columns[t->count - 1].text && !t->page->all && r->used == t->count) {
            text_cut(*last, left);
        }
    }
}

static char *draw(const struct table *t)
{
    struct libscols_table *tb = scols_new_table();
    char *text = NULL;
    if (!tb)
        goto out;
    scols_table_set_termforce(tb, SCOLS_TERMFORCE_ALWAYS);
    scols_table_set_termwidth(tb, t->page->all ? 1000000 : t->page->width - INDENT);
    scols_table_set_column_separator(tb, "  ");
    for (size_t c = 0; c < t->count; c++) {
        int flags = t->columns[c].align == RIGHT ? SCOLS_FL_RIGHT : 0;
        if (t->columns[c].text)
            flags |= SCOLS_FL_TRUNC;
        if (!scols_table_new_column(tb, t->columns[c].title, 0, flags))
            goto out;
    }
    for (size_t i = 0; i < t->used; i++) {
        struct libscols_line *line = scols_table_new_line(tb, NULL);
        for (size_t c = 0; line && c < t->rows[i].used; c++)
            scols_line_set_data(line, c, t->rows[i].cells[c]);
    }
    if (scols_print_table_to_string(tb, &text))
        text = NULL;
out:
    scols_unref_table(tb);
    return text;
}

void table_print(struct table *t)
{
    fit(t);
    char *text = t->used ? draw(t) : NULL;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        size_t n = next ? (size_t)(next - line) : strlen(line);
        next = next ? next + 1 : line + n;
        while (n && line[n - 1] == ' ') /* no blanks at line ends */
            n--;
        fprintf(t->page->out, "%*s%.*s\n", INDENT, "", (int)n, line);
    }
    free(text);
    for (size_t i = 0; i < t->used; i++)
        for (size_t c = 0; c < t->rows[i].used; c++)
            free(t->rows[i].cells[c]);
    free(t->rows);
    free(t);
}
