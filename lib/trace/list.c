/* Which recordings a path names. */
#include "reader_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int add(char ***list, size_t *count, char *name)
{
    char **grown = realloc(*list, (*count + 2) * sizeof(**list));

    if (!grown || !name)
        return -ENOMEM;
    *list = grown;
    grown[(*count)++] = name;
    grown[*count] = NULL;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_directory(const char *path, char ***list, size_t *count, struct gwt_error *error)
{
    DIR *dir = opendir(path);
    const char *slash = *path && path[strlen(path) - 1] == '/' ? "" : "/";
    struct dirent *entry;
    int rc = 0;

    if (!dir) {
        rc = -errno;
        return gwt_fail(error, rc, "%s: %s", path, strerror(-rc));
    }
    while (!rc && (entry = readdir(dir))) {
        size_t length = strlen(entry->d_name);
        struct stat st;
        char *name;

        if (length <= 4 || strcmp(entry->d_name + length - 4, ".gwt"))
            continue;
        if (asprintf(&name, "%s%s%s", path, slash, entry->d_name) < 0)
            name = NULL;
        if (name && (stat(name, &st) || !S_ISREG(st.st_mode))) {
            free(name);
            continue;
        }
        rc = add(list, count, name);
        if (rc)
            free(name);
    }
    closedir(dir);
    if (rc)
        return gwt_fail(error, rc, "%s: not enough memory to list it", path);
    if (!*count)
        return gwt_fail(error, -ENODATA, "%s: no recording (.gwt) in this directory", path);
    qsort(*list, *count, sizeof(**list), by_name);
    return 0;
}

int gwt_list(const char *path, char ***out, struct gwt_error *error)
{
    size_t count = 0;
    struct stat st;
    int rc;

    *out = NULL;
    if (stat(path, &st)) {
        rc = -errno;
        return gwt_fail(error, rc, "%s: %s", path, strerror(-rc));
    }
    if (S_ISDIR(st.st_mode)) {
        rc = list_directory(path, out, &count, error);
    } else {
        char *name = strdup(path);

        rc = add(out, &count, name);
        if (rc) {
            free(name);
            gwt_fail(error, rc, "%s: not enough memory to list it", path);
        }
    }
    if (rc) {
        gwt_list_free(*out);
        *out = NULL;
    }
    return rc;
}

void gwt_list_free(char **list)
{
    for (char **name = list; name && *name; name++)
        free(*name);
    free(list);
}
