#include "text.h"
#include "tool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- harmless ---------------------------------------------------------------- */

/* Length of the valid UTF-8 sequence at s, and what it stands for; 0: not valid. */
static size_t decode(const unsigned char *s, uint32_t *code)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    if (!n)
        return 0;
    uint32_t c = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (s[i] >> 6 != 2) /* stops at the terminating NUL too */
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < smallest[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *code = c;
    return n;
}

static bool harmless(uint32_t c)
{
    if (c < 0x20 || (c >= 0x7f && c < 0xa0))
        return false;
    /* line and paragraph separators, direction overrides and isolates */
    return !(c >= 0x2028 && c <= 0x202e) && !(c >= 0x2066 && c <= 0x2069) && c != 0x200e &&
           c != 0x200f && c != 0xfeff;
}

char *text_clean(const char *raw)
{
    char *out = xalloc(strlen(raw) * 10 + 1), *o = out;
    for (const unsigned char *s = (const unsigned char *)raw; *s;) {
        uint32_t c = 0;
        size_t n = decode(s, &c);
        if (n && harmless(c)) {
            memcpy(o, s, n);
            o += n;
        } else if (!n || c < 0x100) {
            for (size_t i = 0; i < (n ? n : 1); i++)
                o += sprintf(o, "\\x%02x", s[i]);
        } else {
            o += sprintf(o, "\\u{%x}", c);
        }
        s += n ? n : 1;
    }
    *o = 0;
    return out;
}

char *text_utf8(const char *raw)
{
    char *out = xalloc(strlen(raw) * 3 + 1), *o = out;
    for (const unsigned char *s = (const unsigned char *)raw; *s;) {
        uint32_t c;
        size_t n = decode(s, &c);
        memcpy(o, n ? (const char *)s : "\xef\xbf\xbd", n ? n : 3);
        o += n ? n : 3;
        s += n ? n : 1;
    }
    *o = 0;
    return out;
}

static bool starts_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

void text_cut(char *text, unsigned width)
{
    unsigned columns = 0;
    char *keep = text; /* where the cut would be: room is left for the dots */
    for (char *s = text; *s; s++) {
        if (!starts_character(*s))
            continue;
        if (columns + 3 == width)
            keep = s;
        if (columns == width) {
            if (width > 3)
                strcpy(keep, "...");
            else
                *s = 0;
            return;
        }
        columns++;
    }
}

/* ---- kernel names ---------------------------------------------------------------- */

static void erase_all(char *text, const char *word)
{
    size_t n = strlen(word);
    for (char *s = text; (s = strstr(s, word));)
        memmove(s, s + n, strlen(s + n) + 1);
}

/* The parameter list: the last parenthesis group outside template arguments, unless it is
 * "(anonymous namespace)" or "operator()". */
static void drop_parameters(char *text)
{
    int angle = 0, round = 0;
    for (char *s = text; *s; s++) {
        if (*s == '<')
            angle++;
        else if (*s == '>' && s > text && s[-1] != '-')
            angle--;
        else if (*s == '(' && !angle && !round++ && s > text && strncmp(s, "(anonymous", 10) &&
                 (s < text + 8 || strncmp(s - 8, "operator", 8))) {
            *s = 0;
            return;
        } else if (*s == ')' && round)
            round--;
    }
}

/* The return type of a template: what stands before the last space outside brackets. */
static void drop_return_type(char *text)
{
    int depth = 0;
    char *name = text;
    for (char *s = text; *s; s++) {
        if (*s == '<' || *s == '(')
            depth++;
        else if ((*s == '>' || *s == ')') && depth)
            depth--;
        else if (*s == ' ' && !depth && strncmp(s + 1, "operator", 8) &&
                 (s < text + 8 || strncmp(s - 8, "operator", 8)))
            name = s + 1;
    }
    if (name > text && *name)
        memmove(text, name, strlen(name) + 1);
}

static bool fits(const char *text, unsigned width)
{
    unsigned columns = 0;
    for (const char *s = text; *s; s++)
        columns += starts_character(*s);
    return columns <= width;
}

char *text_kernel(const char *name, unsigned width)
{
    static const char *const namespaces[] = {"(anonymous namespace)::",
                                             "at::native::",
                                             "at::cuda::",
                                             "cutlass::",
                                             "at::",
                                             "c10::",
                                             "std::"};
    char *text = text_clean(name);
    if (!width || fits(text, width))
        return text;
    drop_parameters(text);
    if (!fits(text, width))
        drop_return_type(text);
    for (size_t i = 0; i < sizeof(namespaces) / sizeof(*namespaces) && !fits(text, width); i++)
        erase_all(text, namespaces[i]);
    if (!fits(text, width))
        text_cut(text, width);
    return text;
}

/* ---- numbers ------------------------------------------------------------------------ */

char *text_count(char *out, uint64_t n)
{
    char digits[24], *o = out;
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            *o++ = ',';
        *o++ = digits[i];
    }
    *o = 0;
    return out;
}

char *text_bytes(char *out, uint64_t n)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)n;
    size_t u = 0;
    /* 1023.96 would be printed as 1024.0 */
    while (v >= (u ? 1023.95 : 1024) && u + 1 < sizeof(units) / sizeof(*units))
        v /= 1024, u++;
    snprintf(out, TEXT_NUMBER, u ? "%.1f %s" : "%.0f %s", v, units[u]);
    return out;
}

char *text_fixed(char *out, double v, int decimals)
{
    if (!isfinite(v))
        return strcpy(out, "n/a");
    snprintf(out, TEXT_NUMBER, "%.*f", decimals, v);
    if (*out == '-' && !out[strspn(out, "-0.")]) /* what rounding leaves of a sum is no debt */
        memmove(out, out + 1, strlen(out));
    return out;
}

char *text_short(char *out, double v)
{
    if (!isfinite(v))
        return strcpy(out, "n/a");
    if (v >= 999.95 && v < 1e18)
        return text_count(out, (uint64_t)(v + 0.5));
    snprintf(out, TEXT_NUMBER, "%.*f", v >= 99.995 ? 1 : 2, v);
    return out;
}

char *text_us(char *out, double us)
{
    if (!isfinite(us))
        return strcpy(out, "n/a");
    const char *unit = "us";
    if (us >= 999500)
        us /= 1e6, unit = "s";
    else if (us >= 999.5)
        us /= 1e3, unit = "ms";
    snprintf(out, TEXT_NUMBER, "%.*f %s", us >= 99.95 ? 0 : us >= 9.995 ? 1 : 2, us, unit);
    return out;
}

/* ---- the terminal ----------------------------------------------------------------------- */

unsigned text_width(int fd)
{
    const char *columns = getenv("COLUMNS");
    long n = columns ? strtol(columns, NULL, 10) : 0;
    struct winsize size;
    if (n <= 0 && isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0)
        n = size.ws_col;
    if (n <= 0)
        n = 80;
    return n < 60 ? 60 : n > 1000 ? 1000 : (unsigned)n;
}

bool text_bold(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fd) && !(no && *no) && term && *term && strcmp(term, "dumb");
}
