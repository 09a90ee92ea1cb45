/* Arrays indexed by small ids, some for each device. Ids come from a file: beyond GWA_ID_MAX they
 * are not believed. */
#ifndef GWA_GROW_H
#define GWA_GROW_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GWA_ID_MAX   (1u << 20)
#define GWA_ID_SMALL 64u

/* post: (*array)[id] exists, new elements are zero. 0, -ENOMEM, or -ERANGE for an id that
 *       is not believed. */
static inline int gwa_grow(void **array, size_t *count, size_t id, size_t size)
{
    if (id < *count)
        return 0;
    if (id >= GWA_ID_MAX)
        return -ERANGE;
    size_t want = *count ? *count : GWA_ID_SMALL;
    while (want <= id)
        want *= 2;
    void *grown = realloc(*array, want * size);
    if (!grown)
        return -ENOMEM;
    memset((char *)grown + *count * size, 0, (want - *count) * size);
    *array = grown;
    *count = want;
    return 0;
}

/* The same out of `room` bytes that several arrays share, or of as many arrays as there are
 * devices: a small file may name any ids. Ids below GWA_ID_SMALL always find a place. */
static inline int gwa_grow_within(size_t *room, void **array, size_t *count, size_t id, size_t size)
{
    if (id < *count)
        return 0;
    size_t had = *count, want = had ? had : GWA_ID_SMALL;
    while (want <= id && want < GWA_ID_MAX)
        want *= 2;
    size_t bytes = (want - had) * size;
    if (want > GWA_ID_SMALL && bytes > *room)
        return -ERANGE;
    int rc = gwa_grow(array, count, id, size);
    if (!rc)
        *room -= bytes < *room ? bytes : *room;
    return rc;
}

/* Appending: post: room for one more element at index `used`. */
static inline int gwa_reserve(void **array, size_t *room, size_t used, size_t size)
{
    if (used < *room)
        return 0;
    size_t want = *room ? *room * 2 : 16;
    void *grown = reallocarray(*array, want, size);
    if (!grown)
        return -ENOMEM;
    *array = grown;
    *room = want;
    return 0;
}

#endif
