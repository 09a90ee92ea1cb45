/* Text for people: harmless, short enough, in units that read. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whatever a recording says is printed through this: control characters (C0, DEL, C1),
 * direction overrides and bytes that are not UTF-8 become \xNN or \u{...}. Malloc'ed. */
char *text_clean(const char *raw);

/* Valid UTF-8 for JSON, bytes that are not become U+FFFD. Malloc'ed. */
char *text_utf8(const char *raw);

/* A demangled kernel name for `width` columns: return type, parameters and the usual
 * namespaces go first, then template arguments from the right. width 0: whole. Clean,
 * malloc'ed. */
char *text_kernel(const char *name, unsigned width);

/* At most `width` columns, the end replaced by "..."; in place, for clean ASCII or UTF-8. */
void text_cut(char *text, unsigned width);

/* Numbers, into a buffer of TEXT_NUMBER bytes that is returned. NaN and infinity are "n/a". */
#define TEXT_NUMBER 40
char *text_count(char *out, uint64_t n);             /* 1,234,567 */
char *text_bytes(char *out, uint64_t n);             /* 113.3 MiB */
char *text_fixed(char *out, double v, int decimals); /* 12.34 */
char *text_us(char *out, double us);                 /* 8.13 us, 1.2 ms, 41.2 s */
char *text_short(char *out, double v);               /* about four digits: 0.12, 12.3, 1,234 */

/* Columns to fill: COLUMNS, else the terminal's, else 80. */
unsigned text_width(int fd);
/* Bold is welcome on fd: a terminal, no NO_COLOR, not TERM=dumb. */
bool text_bold(int fd);

#endif
