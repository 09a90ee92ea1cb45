#include "run_option.h"

#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_BYTES (1u << 20)

/* As the preload reads it: digits, and perhaps K, M, G or T, with B or iB. */
static bool is_size(const char *value)
{
    static const char units[] = "KMGT";
    char *end;
    if (!isdigit((unsigned char)*value))
        return false;
    errno = 0;
    unsigned long long n = strtoull(value, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (errno || (*end && (!unit || (end[1] && strcmp(end + 1, "B") && strcmp(end + 1, "iB")))))
        return false;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    return n >= LEAST_BYTES >> (shift < 20 ? shift : 20) && n <= UINT64_MAX >> shift && n > 0;
}

static bool is_between(const char *range, const char *value)
{
    char *end;
    double low = strtod(range, NULL), high = strtod(strstr(range, "..") + 2, NULL);
    if (!isdigit((unsigned char)*value) && *value != '.')
        return false;
    double v = strtod(value, &end);
    return end != value && (!*end || !strcmp(end, "%")) && v >= low && v <= high;
}

static bool takes_item(const char *item, const char *value)
{
    if (!strcmp(item, "*"))
        return true;
    if (!strcmp(item, "SIZE"))
        return is_size(value);
    if (!strcmp(item, "/"))
        return *value == '/';
    if (strstr(item, ".."))
        return is_between(item, value);
    return !strcmp(item, value);
}

bool run_option_takes(const char *takes, const char *value)
{
    char *list = xstrdup(takes), *rest = list, *item;
    bool any = false;
    while ((item = strsep(&rest, "|")))
        any |= takes_item(item, value);
    free(list);
    return any;
}

static char *item_text(const char *item)
{
    const char *to = strstr(item, "..");
    if (!strcmp(item, "SIZE"))
        return xstrdup("a size of at least 1M (K, M, G, T)");
    if (!strcmp(item, "/"))
        return xstrdup("an absolute path");
    if (to)
        return xprintf("%.*s to %s percent", (int)(to - item), item, to + 2);
    return xstrdup(item);
}

char *run_option_text(const char *takes)
{
    char *list = xstrdup(takes), *rest = list, *item, *text = NULL;
    while ((item = strsep(&rest, "|"))) {
        char *one = item_text(item);
        char *more = text ? xprintf("%s%s%s", text, rest ? ", " : " or ", one) : xstrdup(one);
        free(one);
        free(text);
        text = more;
    }
    free(list);
    return text;
}
