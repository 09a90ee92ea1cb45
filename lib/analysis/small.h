#ifndef GWA_SMALL_H
#define GWA_SMALL_H

#include "analysis.h"

/* Whether `name` holds one of the words (NULL-terminated), in any case; NULL holds none. */
bool gwa_named(const char *name, const char *const *words);
extern const char *const gwa_gemm_names[];

/* pre: d->kernels is final. post: d->small. */
void gwa_small_work(struct gwa_device *d);

#endif
