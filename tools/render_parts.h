/* Between the files that write the report as text. */
#ifndef RENDER_PARTS_H
#define RENDER_PARTS_H

#include "render.h"

#define COLUMNS_IN(columns) (sizeof(columns) / sizeof(*(columns)))

void page_heading(const struct page *page, const char *title);
/* "  what               figure" and, behind it, what it means. */
void page_line(const struct page *page, const char *what, const char *figure, const char *note);
/* `raw` behind `lead`, wrapped to the page's width and indented below the end of `lead`. */
void page_text(const struct page *page, const char *lead, const char *raw);
/* How many of `count` rows are shown, and what is said of the others. */
size_t page_limit(const struct page *page, size_t count, size_t shown);
void page_more(const struct page *page, size_t shown, size_t count, const char *what);

/* Where a site is, with --all in full; malloc'ed, "" where nothing is known. */
char *words_site(const struct page *page, const struct gwa_site *s);
/* "train.py:12 function" without its folders, but for --all. */
const char *words_python(const struct page *page, const char *python);

/* The classes of idle time, largest first. post: how many are above 0 (all with `all`). */
size_t idle_order(const double values[GWA_IDLE_CLASS_COUNT], bool all,
                  unsigned order[GWA_IDLE_CLASS_COUNT]);

/* Whether the device's time was measured, so that part_time() has something to tell. */
bool part_time_known(const struct gwa_device *d);

/* Each prints nothing where there is nothing to tell. */
void part_findings(const struct page *page, const struct gwa_process *p);
void part_time(const struct page *page, const struct gwa_device *d, bool several);
void part_gaps(const struct page *page, const struct gwa_device *d, bool several);
void part_sites(const struct page *page, const struct gwa_device *d, bool several);
void part_drains(const struct page *page, const struct gwa_device *d, bool several);
void part_steps(const struct page *page, const struct gwa_process *p);
void part_phases(const struct page *page, const struct gwa_device *d, bool several);
void part_what_if(const struct page *page, const struct gwa_process *p);
void part_findings_all(const struct page *page, const struct gwa_process *p);
void part_copies(const struct page *page, const struct gwa_device *d, bool several);
void part_waits(const struct page *page, const struct gwa_process *p);
void part_memory(const struct page *page, const struct gwa_process *p);
void part_collectives(const struct page *page, const struct gwa_process *p);
void part_threads(const struct page *page, const struct gwa_process *p);
void part_streams(const struct page *page, const struct gwa_process *p);
void part_other(const struct page *page, const struct gwa_process *p);
/* Each kind of call of `kinds`, with `names[kind]` behind the call's; NULL: nothing. */
void part_calls(const struct page *page, const struct gwa_process *p, const char *const *names,
                const unsigned *kinds, size_t kinds_count, bool copies_too);

#endif
