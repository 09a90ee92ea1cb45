/* Function handles -> names -> signatures.
 *
 * A name is asked for once, after a handle's first launch, and copied whole: the
 * driver's pointer lives only as long as the module. While a stream captures nothing is
 * asked; the signature then refers to a string id whose text follows. An unload makes
 * every handle suspect (a later module may get the same address), so it starts a new
 * epoch, in which each handle is asked again at its next launch. */
#include "gw.h"
#include "sampler.h"

#include <string.h>

#define FUNCTIONS  (1u << 15) /* tables are open-addressed and never more than 3/4 full */
#define SIGNATURES (1u << 16)
#define NAME_MAX_  8192u

struct function {
    const void *handle;
    uint64_t hash; /* of the name */
    uint32_t name; /* string id; 0: unknown for good */
    uint32_t epoch;
    uint16_t pending; /* the name is still to be asked */
    uint16_t comm;    /* NCCL's: never timed, since it mostly waits for others */
};

struct signature {
    uint32_t id; /* 0: empty */
    struct gwt_def_signature def;
};

static struct function functions[FUNCTIONS];
static struct signature signatures[SIGNATURES];
static uint8_t comm[SIGNATURES / 8]; /* signatures of NCCL's kernels */
static uint32_t functions_used, signatures_used, functions_pending;

/* What passes by in cuModuleGetFunction and cuLibraryGetKernel: which handles are CUkernels, and
 * the names of all for drivers without cuFuncGetName. */
#define HINTS (1u << 14)
struct hint {
    const void *handle;
    uint32_t name;
    bool kernel;
};
static struct hint hints[HINTS];
static uint32_t hints_used;

static uint32_t hash_pointer(const void *p)
{
    uint64_t h = (uint64_t)(uintptr_t)p * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 40);
}

static uint64_t hash_bytes(const void *p, size_t n)
{
    const uint8_t *b = p;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}

/* ---- names ------------------------------------------------------------------------ */

static struct hint *hint(const void *handle, bool add)
{
    for (uint32_t i = hash_pointer(handle);; i++) {
        struct hint *h = &hints[i & (HINTS - 1)];
        if (h->handle == handle)
            return h;
        if (!h->handle) {
            if (!add || hints_used >= HINTS / 4 * 3)
                return NULL;
            hints_used++;
            h->handle = handle;
            return h;
        }
    }
}

void gw_names_hint(const void *handle, const char *name, bool kernel)
{
    if (!handle || !name || gw_load_acquire(&gw_state) != GW_ACTIVE)
        return;
    bool nameless = !gw_driver.cuFuncGetName;
    gw_lock();
    struct hint *h = hint(handle, nameless || kernel);
    if (h) {
        h->kernel = kernel; /* a handle of an unloaded module may come again as the other kind */
        if (nameless)
            h->name = gw_string(name, strnlen(name, NAME_MAX_));
    }
    gw_unlock();
}

void gw_names_alias(const void *func, const void *kernel)
{
    gw_lock();
    struct hint *from = hint(kernel, false), *to = from ? hint(func, true) : NULL;
    if (to) {
        to->name = from->name;
        to->kernel = false;
    }
    gw_unlock();
}

/* A launch takes a CUfunction or a CUkernel cast to one. The driver says no to the wrong
 * question, which compute-sanitizer reports as an error of the program: what is known to be a
 * kernel is asked as one. */
static const char *ask(const void *handle)
{
    const struct hint *h = hint(handle, false);
    const char *name = NULL;
    if (!(h && h->kernel) && gw_driver.cuFuncGetName &&
        gw_driver.cuFuncGetName(&name, (CUfunction)handle) == 0 && name)
        return name;
    name = NULL;
    if (gw_driver.cuKernelGetName && gw_driver.cuKernelGetName(&name, (CUkernel)handle) == 0 &&
        name)
        return name;
    return NULL;
}

/* pre: no capture is active. */
static void learn(struct function *fn)
{
    const char *name = ask(fn->handle);
    fn->epoch = gw_names_epoch;
    if (fn->pending)
        functions_pending--;
    if (!name) {
        struct hint *h = hint(fn->handle, false);
        if (h && h->name)
            fn->name = h->name;
        else
            gw_count(GWT_C_UNNAMED, 1);
        fn->pending = 0;
        return;
    }
    size_t size = strnlen(name, NAME_MAX_);
    uint64_t hash = hash_bytes(name, size);
    fn->comm = strstr(name, "ncclDevKernel") || strstr(name, "ncclKernel");
    if (!fn->pending && fn->name && fn->hash == hash)
        return; /* a new epoch, the same function */
    uint32_t id = fn->pending ? fn->name : gw_string_reserve();
    fn->pending = 0;
    fn->hash = hash;
    fn->name = gw_string_set(id, name, size) ? id : 0;
}

static struct function *function(const void *handle)
{
    struct function *fn;
    uint32_t i = hash_pointer(handle);
    while ((fn = &functions[i & (FUNCTIONS - 1)])->handle && fn->handle != handle)
        i++;
    if (!fn->handle) {
        if (functions_used >= FUNCTIONS / 4 * 3) {
            gw_count(GWT_C_SIGNATURES_CAPPED, 1);
            return NULL;
        }
        functions_used++;
        fn->handle = handle;
        fn->epoch = 0;
    }
    if (fn->epoch == gw_names_epoch)
        return fn;
    if (!gw_capturing()) {
        learn(fn);
    } else {
        if (!fn->pending)
            functions_pending++;
        fn->pending = 1;
        fn->epoch = gw_names_epoch;
        fn->name = gw_string_reserve();
    }
    return fn;
}

/* No lock: an entry's handle never changes. A name of this epoch was learnt at a launch. */
bool gw_function_is_known(const void *handle)
{
    for (uint32_t i = hash_pointer(handle);; i++) {
        const struct function *fn = &functions[i & (FUNCTIONS - 1)];
        if (!fn->handle)
            return false;
        if (fn->handle == handle)
            return fn->epoch == gw_load_relaxed(&gw_names_epoch);
    }
}

void gw_names_pending(void)
{
    if (!gw_load_relaxed(&functions_pending) || gw_capturing())
        return;
    gw_lock();
    for (uint32_t i = 0; functions_pending && i < FUNCTIONS; i++)
        if (functions[i].pending)
            learn(&functions[i]);
    gw_unlock();
}

void gw_names_invalidate(void)
{
    gw_names_pending(); /* before the names go with their module */
    gw_lock();
    for (uint32_t i = 0; functions_pending && i < FUNCTIONS; i++)
        if (functions[i].pending) { /* a capture is active: too late to ask, the handle may die */
            functions[i].pending = 0;
            functions_pending--;
            gw_count(GWT_C_UNNAMED, 1);
        }
    gw_unlock();
    gw_add_relaxed(&gw_names_epoch, 1);
    /* Hints of old drivers are replaced by the look-ups that a reused handle needs anyway. */
}

/* ---- signatures ---------------------------------------------------------------------- */

static uint32_t intern(const struct gwt_def_signature *def)
{
    uint32_t i = (uint32_t)hash_bytes(def, sizeof *def);
    struct signature *s;
    while ((s = &signatures[i & (SIGNATURES - 1)])->id) {
        if (memcmp(&s->def, def, sizeof *def) == 0)
            return s->id;
        i++;
    }
    static const uint32_t any[3];
    bool fallback = memcmp(def->grid, any, sizeof any) == 0;
    if (signatures_used >= SIGNATURES / 4 * 3 - (fallback ? 0 : FUNCTIONS / 4)) {
        if (fallback)
            return 0;
        gw_count(GWT_C_SIGNATURES_CAPPED, 1);
        return intern(&(struct gwt_def_signature){.name = def->name});
    }
    if (!gw_define(GWT_DEF_SIGNATURE, signatures_used + 1, def, sizeof *def, NULL, 0))
        return 0;
    s->id = ++signatures_used;
    s->def = *def;
    return s->id;
}

uint32_t gw_signature_of(const void *func, const uint32_t grid[3], const uint32_t block[3],
                         uint32_t shared)
{
    struct function *fn = func ? function(func) : NULL;
    struct gwt_def_signature def = {.name = fn ? fn->name : 0, .shared = shared};
    memcpy(def.grid, grid, sizeof def.grid);
    memcpy(def.block, block, sizeof def.block);
    uint32_t id = intern(&def);
    if (fn && fn->comm)
        comm[id / 8] |= (uint8_t)(1u << id % 8);
    return id;
}

uint32_t gw_signature_slow(struct gw_thread *t, const struct gw_frame *f)
{
    (void)t;
    uint64_t t0 = gw_clock_ns(CLOCK_MONOTONIC);
    gw_names_pending();
    gw_pool_offer();
    gw_lock();
    uint32_t id = gw_signature_of(f->shape.func, f->shape.grid, f->shape.block, f->shape.shared);
    gw_unlock();
    gw_count(GWT_C_SETUP_NS, gw_clock_ns(CLOCK_MONOTONIC) - t0);
    return id;
}

bool gw_signature_is_comm(uint32_t id)
{
    return comm[id / 8] >> id % 8 & 1;
}

void gw_names_reset(void)
{
    memset(comm, 0, sizeof comm);
    memset(functions, 0, sizeof functions);
    memset(signatures, 0, sizeof signatures);
    memset(hints, 0, sizeof hints);
    functions_used = signatures_used = functions_pending = hints_used = 0;
}
