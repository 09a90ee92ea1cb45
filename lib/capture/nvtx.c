/* NVTX: ranges and marks of the program.
 *
 * NVTX loads the library that NVTX_INJECTION64_PATH names at its first use and asks it for
 * its callbacks through InitializeInjectionNvtx2. The tables' layout is that of NVTX 3
 * (nvtxDetail/nvtxTypes.h): stable since 2017. */
#include "gw.h"
#include "sampler.h"

#include <stdlib.h>
#include <string.h>

/* ---- NVTX's ABI ------------------------------------------------------------------------- */

typedef void (*callback)(void);
typedef callback **callback_table; /* entry i points to the slot of callback i */

struct callbacks_export {
    size_t struct_size;
    int (*get_module_table)(int module, callback_table *table, unsigned *size);
};

enum { EXPORT_CALLBACKS = 1, MODULE_CORE = 1, MODULE_CORE2 = 5 };
enum {
    CORE_MARK_EX = 1,
    CORE_MARK_A = 2,
    CORE_START_EX = 4,
    CORE_START_A = 5,
    CORE_END = 7,
    CORE_PUSH_EX = 8,
    CORE_PUSH_A = 9,
    CORE_POP = 11,
    CORE2_MARK_EX = 1,
    CORE2_START_EX = 2,
    CORE2_END = 3,
    CORE2_PUSH_EX = 4,
    CORE2_POP = 5,
    CORE2_REGISTER_A = 10,
    CORE2_CREATE_A = 12,
};

struct attributes { /* nvtxEventAttributes_v2 */
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type; /* 1: ASCII, 2: wide, 3: registered */
    const char *message;
};
_Static_assert(offsetof(struct attributes, message) == 40, "nvtxEventAttributes_v2");

/* ---- range names ---------------------------------------------------------------------------- */

#define NAMES (1u << 14)
static struct {
    uint64_t hash; /* 0: empty */
    uint32_t id;
} names[NAMES];
static uint32_t names_used;

static uint64_t hash(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;
    while (*s)
        h = (h ^ (uint8_t)*s++) * 0x100000001b3u;
    return h | 1;
}

/* Two names of one 63-bit hash would be taken for each other: not in this universe. */
static uint32_t intern(const char *text)
{
    uint64_t h = hash(text);
    uint32_t i = (uint32_t)h, id = 0;
    uint64_t seen;
    /* Partner: the release store below. */
    for (; (seen = gw_load_acquire(&names[i & (NAMES - 1)].hash)); i++)
        if (seen == h)
            return names[i & (NAMES - 1)].id;
    gw_lock();
    for (i = (uint32_t)h; (seen = names[i & (NAMES - 1)].hash) && seen != h; i++)
        ;
    if (seen) {
        id = names[i & (NAMES - 1)].id;
    } else if (names_used < NAMES / 4 * 3 && (id = gw_string(text, strnlen(text, 1024)))) {
        names_used++;
        names[i & (NAMES - 1)].id = id;
        gw_store_release(&names[i & (NAMES - 1)].hash, h);
    }
    gw_unlock();
    return id;
}

/* ---- before the first CUDA call ----------------------------------------------------------------
 */

/* A range that wraps a whole program opens before anything is recorded: kept here, and put
 * into the ring at the start. */
#define EARLY 64
static struct {
    uint64_t ns;
    uint32_t kind;
    uint64_t value;
    char text[128];
} early[EARLY];
static uint32_t early_used;

static void keep(enum gwt_kind kind, const char *text, uint64_t value)
{
    gw_lock();
    if (early_used < EARLY) {
        early[early_used].ns = gw_clock_ns(CLOCK_MONOTONIC);
        early[early_used].kind = kind;
        early[early_used].value = value;
        strncpy(early[early_used].text, text ? text : "", sizeof early[0].text - 1);
        early_used++;
    }
    gw_unlock();
}

/* Ticks of the past cannot be read: early marks carry the time of the start. */
void gw_nvtx_replay(struct gw_thread *t)
{
    (void)t;
    for (uint32_t i = 0; i < early_used; i++)
        gw_push_mark((enum gwt_kind)early[i].kind, early[i].text[0] ? intern(early[i].text) : 0,
                     early[i].value);
    early_used = 0;
}

void gw_nvtx_reset(void)
{
    early_used = 0;
    if (!names_used)
        return;
    memset(names, 0, sizeof names);
    names_used = 0;
}

/* ---- what NVTX calls ----------------------------------------------------------------------------
 */

static void note(enum gwt_kind kind, const char *text, uint64_t value)
{
    uint32_t state = gw_load_acquire(&gw_state);
    if (state == GW_OFF || gw_local.busy)
        return;
    if (state != GW_ACTIVE || !gw_is_alive()) {
        keep(kind, text, value);
        return;
    }
    if (gw_load_relaxed(&gw_recording))
        gw_push_mark(kind, text ? intern(text) : 0, value);
}

/* Marks with which a program switches recording; anything else is a mark like others. */
static void mark(const char *text)
{
    bool on = text && strcmp(text, "gpuwait.recording=1") == 0;
    if (on || (text && strcmp(text, "gpuwait.recording=0") == 0)) {
        gw_store_relaxed(&gw_recording, 1);
        gw_push_mark(GWT_RECORDING, 0, on);
        gw_store_relaxed(&gw_recording, on);
        gw_odd_set(GW_ODD_PAUSED, !on);
        gw_store_relaxed(&gw_recording_switched, gw_ticks());
        return;
    }
    on = text && strcmp(text, "gpuwait.timing=1") == 0;
    if (on || (text && strcmp(text, "gpuwait.timing=0") == 0))
        gw_timer_switch(on);
    note(GWT_MARK, text ? text : "", 0);
}

static const char *text_of(const struct attributes *a)
{
    /* A registered string is the copy that on_register() returned. */
    return a && a->size >= sizeof *a && (a->message_type == 1 || a->message_type == 3) && a->message
               ? a->message
               : "";
}

static __thread int depth __attribute__((tls_model("initial-exec")));
static uint64_t last_range;

static int push(const char *text)
{
    note(GWT_RANGE_PUSH, text, 0);
    return depth++;
}

static int on_push(const char *text)
{
    return push(text ? text : "");
}

static int on_push_ex(const struct attributes *a)
{
    return push(text_of(a));
}

static int on_pop(void)
{
    note(GWT_RANGE_POP, NULL, 0);
    return depth > 0 ? --depth : 0;
}

static uint64_t start(const char *text)
{
    uint64_t id = gw_add_relaxed(&last_range, 1) + 1;
    note(GWT_RANGE_START, text, id);
    return id;
}

static uint64_t on_start(const char *text)
{
    return start(text ? text : "");
}

static uint64_t on_start_ex(const struct attributes *a)
{
    return start(text_of(a));
}

static void on_end(uint64_t id)
{
    note(GWT_RANGE_END, NULL, id);
}

static void on_mark(const char *text)
{
    mark(text);
}

static void on_mark_ex(const struct attributes *a)
{
    mark(text_of(a));
}

/* Each domain has its own stack of pushed ranges, which a thread's one stack in the dump
 * cannot show: they become start/end ranges. */
#define DOMAIN_DEPTH 32
static __thread struct {
    const void *domain;
    uint64_t id;
} domain_stack[DOMAIN_DEPTH] __attribute__((tls_model("initial-exec")));
static __thread int domain_depth __attribute__((tls_model("initial-exec")));

static int on_domain_push(const void *domain, const struct attributes *a)
{
    if (domain_depth < DOMAIN_DEPTH) {
        domain_stack[domain_depth].domain = domain;
        domain_stack[domain_depth].id = start(text_of(a));
    }
    return domain_depth++;
}

static int on_domain_pop(const void *domain)
{
    for (int i = (domain_depth < DOMAIN_DEPTH ? domain_depth : DOMAIN_DEPTH) - 1; i >= 0; i--) {
        if (domain_stack[i].domain != domain || !domain_stack[i].id)
            continue;
        on_end(domain_stack[i].id);
        domain_stack[i].id = 0;
        break;
    }
    while (domain_depth > DOMAIN_DEPTH || (domain_depth > 0 && !domain_stack[domain_depth - 1].id))
        domain_depth--;
    return domain_depth;
}

static uint64_t on_domain_start(const void *domain, const struct attributes *a)
{
    (void)domain;
    return start(text_of(a));
}

static void on_domain_end(const void *domain, uint64_t id)
{
    (void)domain;
    on_end(id);
}

static void on_domain_mark(const void *domain, const struct attributes *a)
{
    (void)domain;
    mark(text_of(a));
}

/* Handles are copies of the text; NVTX has no call that frees one. */
static const void *on_register(const void *domain, const char *text)
{
    (void)domain;
    return text ? strdup(text) : NULL;
}

static const void *on_create(const char *name)
{
    return name ? strdup(name) : NULL;
}

static void set(callback_table table, unsigned size, unsigned id, callback f)
{
    if (id < size && table[id])
        *table[id] = f;
}

GW_EXPORT int InitializeInjectionNvtx2(const void *(*get_export)(uint32_t));
GW_EXPORT int InitializeInjectionNvtx2(const void *(*get_export)(uint32_t))
{
    const struct callbacks_export *e = get_export ? get_export(EXPORT_CALLBACKS) : NULL;
    callback_table t;
    unsigned n;
    if (gw_options.off || !e || e->struct_size < sizeof *e)
        return 0;
    if (e->get_module_table(MODULE_CORE, &t, &n)) {
        set(t, n, CORE_MARK_EX, (callback)on_mark_ex);
        set(t, n, CORE_MARK_A, (callback)on_mark);
        set(t, n, CORE_START_EX, (callback)on_start_ex);
        set(t, n, CORE_START_A, (callback)on_start);
        set(t, n, CORE_END, (callback)on_end);
        set(t, n, CORE_PUSH_EX, (callback)on_push_ex);
        set(t, n, CORE_PUSH_A, (callback)on_push);
        set(t, n, CORE_POP, (callback)on_pop);
    }
    if (e->get_module_table(MODULE_CORE2, &t, &n)) {
        set(t, n, CORE2_MARK_EX, (callback)on_domain_mark);
        set(t, n, CORE2_START_EX, (callback)on_domain_start);
        set(t, n, CORE2_END, (callback)on_domain_end);
        set(t, n, CORE2_PUSH_EX, (callback)on_domain_push);
        set(t, n, CORE2_POP, (callback)on_domain_pop);
        set(t, n, CORE2_REGISTER_A, (callback)on_register);
        set(t, n, CORE2_CREATE_A, (callback)on_create);
    }
    return 1;
}
