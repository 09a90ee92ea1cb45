/* Between the files that write the report as text. */
#ifndef RENDER_PARTS_H
#define RENDER_PARTS_H

#include "render.h"

#define COLUMNS_IN(columns) (sizeof(columns) / sizeof(*(columns)))

void page_heading(const struct page *page, const char *title);
/* "  what               figure" and, behind it, what it means. */
void page_line(const struct page *page, const char *what, const char *figure, const char *note);
/* How many of `count` rows are shown, and what is said of the others. */
size_t page_limit(const struct page *page, size_t count, size_t shown);
void page_more(const struct page *page, size_t shown, size_t count, const char *what);

/* Whether the device's time was measured, so that part_time() has something to tell. */
bool part_time_known(const struct gwa_device *d);

/* Each prints nothing where there is nothing to tell. */
void part_time(const struct page *page, const struct gwa_device *d, bool several);
void part_copies(const struct page *page, const struct gwa_device *d, bool several);
void part_waits(const struct page *page, const struct gwa_process *p);
void part_memory(const struct page *page, const struct gwa_process *p);
void part_collectives(const struct page *page, const struct gwa_process *p);
void part_threads(const struct page *page, const struct gwa_process *p);
void part_streams(const struct page *page, const struct gwa_process *p);
void part_other(const struct page *page, const struct gwa_process *p);

#endif
