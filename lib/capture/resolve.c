/* Symbols: the real functions behind the wrappers, and the two doors through which
 * programs reach CUDA past the PLT, dlsym() and cuGetProcAddress().
 *
 * A pointer is replaced by a wrapper only when it is exactly the real address that the
 * wrapper forwards to: names map to different ABIs by version and flags, addresses do not.
 * Nothing is ever loaded that the job did not load: libraries are looked up among the
 * mapped ones. */
#include "gw.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

typedef void *(*dlsym_fn)(void *, const char *);
/* Named in assembly too (dlsym_x86_64.S). */
dlsym_fn gw_real_dlsym;
void gw_real_dlsym_find(void);
void *gw_dlsym_handle(void *handle, const char *name);
int gw_dlsym_default_hidden(const char *name, void *caller);

static const char *const node_version[GW_NODES] = {"libcudart.so.11.0", "libcudart.so.12",
                                                   "libcudart.so.13", "libcudart.so.14"};

/* ---- the real dlsym --------------------------------------------------------------- */

/* dlvsym finds it past our own definition. glibc 2.34 moved it and gave it a new version;
 * both name the same code. */
void gw_real_dlsym_find(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    if (!dlvsym) {
        gw_real_dlsym = (dlsym_fn)gw_musl_dlsym();
        return;
    }
    for (size_t i = 0; !gw_real_dlsym && i < sizeof versions / sizeof versions[0]; i++)
        gw_real_dlsym = (dlsym_fn)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
}

static void *real_dlsym(void *handle, const char *name)
{
    if (gw_unlikely(!gw_real_dlsym))
        gw_real_dlsym_find();
    return gw_real_dlsym ? gw_real_dlsym(handle, name) : NULL;
}

/* ---- real address -> wrapper --------------------------------------------------------- */

#define ADDRESSES (1u << 13)
static struct {
    void *real;
    void *wrapper;
} addresses[ADDRESSES];

static uint32_t hash(const void *p)
{
    return (uint32_t)(((uint64_t)(uintptr_t)p * 0x9e3779b97f4a7c15u) >> 40);
}

static uint32_t inserting; /* held for one insertion */

void gw_resolve_reset(void)
{
    inserting = 0;
}

/* Two exports may share an address; the first keeps it. */
static void map_address(void *real, void *wrapper)
{
    uint32_t i = hash(real), zero = 0, busy = gw_local.busy++;
    gw_fence_signal();
    while (!gw_cas(&inserting, &zero, 1)) { /* partner: the release below */
        if (busy)                           /* a signal handler's thread may hold it */
            goto out;
        zero = 0;
        gw_pause();
    }
    for (uint32_t n = 0; n < ADDRESSES / 4 * 3; n++, i++) {
        void *seen = gw_load_relaxed(&addresses[i & (ADDRESSES - 1)].real);
        if (seen == real)
            break;
        if (!seen) {
            addresses[i & (ADDRESSES - 1)].wrapper = wrapper;
            /* Partner: the acquire load in wrapper_of(). */
            gw_store_release(&addresses[i & (ADDRESSES - 1)].real, real);
            break;
        }
    }
    gw_store_release(&inserting, 0);
out:
    gw_fence_signal();
    gw_local.busy--;
}

static void *wrapper_of(const void *real)
{
    void *seen;
    for (uint32_t i = hash(real); (seen = gw_load_acquire(&addresses[i & (ADDRESSES - 1)].real));
         i++)
        if (seen == real)
            return addresses[i & (ADDRESSES - 1)].wrapper;
    return NULL;
}

/* ---- mapped libraries ------------------------------------------------------------------ */

static void *mapped(const char *soname)
{
    return dlopen(soname, RTLD_NOLOAD | RTLD_LAZY);
}

bool gw_library_mapped(const char *soname)
{
    return mapped(soname) != NULL;
}

void *gw_resolve_symbol(const char *soname, const char *name)
{
    void *h = mapped(soname);
    return h ? real_dlsym(h, name) : NULL;
}

void *gw_resolve_next(const char *name)
{
    return real_dlsym(RTLD_NEXT, name);
}

void *gw_resolve_default(const char *name)
{
    return real_dlsym(RTLD_DEFAULT, name);
}

static uint32_t driver_is_ready;

static void resolve_driver(void *h)
{
    for (unsigned api = 1; api < GW_API_COUNT; api++) {
        const struct gw_call *c = &gw_calls[api];
        if (c->level != GWT_LEVEL_DRIVER)
            continue;
        void *real = real_dlsym(h, c->name);
        if (!real || real == c->wrapper[0])
            continue;
        gw_store_release(&gw_real[api], real);
        map_address(real, c->wrapper[0]);
    }
#define HELPER(ret, name, params) gw_driver.name = (ret(*) params)real_dlsym(h, #name);
#include "helpers.def"
}

bool gw_driver_ready(void)
{
    if (gw_likely(gw_load_acquire(&driver_is_ready)))
        return true;
    void *h = mapped("libcuda.so.1");
    if (!h)
        return false;
    /* Two threads may both do it: they find the same. Waiting for each other here could
     * deadlock with the loader's own lock, which either may hold. */
    resolve_driver(h);
    gw_store_release(&driver_is_ready, 1); /* partner: the acquire load above */
    return true;
}

/* ---- real functions, on a wrapper's first call ------------------------------------------- */

void *gw_resolve(unsigned api)
{
    const struct gw_call *c = &gw_calls[api];
    void *real = NULL;
    if (c->level == GWT_LEVEL_DRIVER) {
        if (gw_driver_ready() && (real = gw_load_acquire(&gw_real[api])))
            return real;
    } else {
        /* Profiling interface of NCCL: each ncclX is a weak alias of a strong pncclX. */
        char strong[64] = "p";
        strncat(strong, c->name, sizeof strong - 2);
        void *h = mapped("libnccl.so.2");
        if (h && !(real = real_dlsym(h, strong)))
            real = real_dlsym(h, c->name);
        if (!real)
            real = real_dlsym(RTLD_NEXT, strong);
    }
    if (!real)
        real = real_dlsym(RTLD_NEXT, c->name);
    if (real == c->wrapper[0])
        real = NULL;
    if (real)
        gw_store_release(&gw_real[api], real);
    return real;
}

#define RUNTIMES 8
struct runtimes {
    unsigned n;
    char path[RUNTIMES][512];
};

/* Wheels rename it (libcudart-d0da41ae.so.11.0), so the version node is what tells. Paths are
 * only noted here: the loader holds one lock during the walk and takes another for a look-up,
 * and a dlopen() on another thread takes them the other way round. */
static int note_runtime(struct dl_phdr_info *info, size_t size, void *data)
{
    struct runtimes *r = data;
    (void)size;
    const char *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    base = base ? base + 1 : info->dlpi_name;
    if (base && strncmp(base, "libcudart", 9) == 0 && strlen(info->dlpi_name) < 512)
        strcpy(r->path[r->n++], info->dlpi_name);
    return r->n == RUNTIMES;
}

static void *find_runtime(const char *name, const char *version, void **any)
{
    struct runtimes r = {0};
    void *found = NULL;
    dl_iterate_phdr(note_runtime, &r);
    for (unsigned i = 0; i < r.n && !found; i++) {
        void *h = mapped(r.path[i]);
        if (!h)
            continue;
        if (!*any)
            *any = real_dlsym(h, name);
        found = dlvsym(h, name, version);
    }
    return found;
}

void *gw_resolve_runtime(unsigned node, unsigned api)
{
    const struct gw_call *c = &gw_calls[api];
    void *any = NULL, *real = find_runtime(c->name, node_version[node], &any);
    if (!real)
        real = dlvsym(RTLD_NEXT, c->name, node_version[node]);
    /* A caller without versions, or a runtime without: whichever is there. */
    if (!real)
        real = any ? any : real_dlsym(RTLD_NEXT, c->name);
    for (unsigned n = 0; n < GW_NODES; n++)
        if (real == c->wrapper[n])
            real = NULL;
    if (real) {
        gw_store_release(&gw_real_runtime[node][api], real);
        map_address(real, c->wrapper[node]);
    }
    return real;
}

/* ---- names --------------------------------------------------------------------------------- */

/* cuX but not cublasX; cudaX, __cudaX, ncclX. Matching "cu" alone would catch cuDNN's and
 * cuBLAS's own names. */
static bool interesting(const char *n)
{
    if (n[0] == '_' && n[1] == '_')
        n += 2;
    if (n[0] == 'c' && n[1] == 'u')
        return (n[2] >= 'A' && n[2] <= 'Z') ||
               (n[2] == 'd' && n[3] == 'a' && n[4] >= 'A' && n[4] <= 'Z');
    return n[0] == 'n' && n[1] == 'c' && n[2] == 'c' && n[3] == 'l' && n[4] >= 'A' && n[4] <= 'Z';
}

static unsigned find_call(const char *name)
{
    /* The table is in its own order; 700 rows and a look-up that is rare need no index. */
    for (unsigned api = 1; api < GW_API_COUNT; api++)
        if (strcmp(gw_calls[api].name, name) == 0)
            return api;
    return GW_API_NONE;
}

static bool is_ours(const void *p)
{
    extern const char __ehdr_start[] __attribute__((visibility("hidden")));
    extern const char _end[] __attribute__((visibility("hidden")));
    return (const char *)p >= __ehdr_start && (const char *)p < _end;
}

/* The resolvers are wrapped by hand, below. */
CUresult cuGetProcAddress(const char *, void **, int, uint64_t);
CUresult cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
CUresult cuGetExportTable(const void **, const void *);
static void *real_resolver(const char *name)
{
    return gw_resolve_symbol("libcuda.so.1", name);
}

static void *by_hand(const char *name, const void *real)
{
    if (strcmp(name, "cuGetProcAddress_v2") == 0 && real == real_resolver(name))
        return (void *)cuGetProcAddress_v2;
    if (strcmp(name, "cuGetProcAddress") == 0 && real == real_resolver(name))
        return (void *)cuGetProcAddress;
    if (strcmp(name, "cuGetExportTable") == 0 && real == real_resolver(name))
        return (void *)cuGetExportTable;
    return NULL;
}

/* ctypes, CuPy and the like take runtime functions by dlsym. Two copies of one version may
 * be mapped; a wrapper forwards to one of them only. */
static void *runtime_wrapper(unsigned api, const char *name, void *real)
{
    Dl_info info;
    if (!dladdr(real, &info) || !info.dli_fname)
        return NULL;
    void *h = mapped(info.dli_fname), *wrapper = NULL;
    for (unsigned n = 0; h && !wrapper && n < GW_NODES; n++) {
        if (dlvsym(h, name, node_version[n]) != real)
            continue;
        void *known = gw_load_acquire(&gw_real_runtime[n][api]);
        if (!known)
            known = gw_resolve_runtime(n, api);
        if (known == real)
            wrapper = gw_calls[api].wrapper[n];
    }
    dlerror(); /* what failed was ours: the caller's look-up succeeded */
    return wrapper;
}

static void *substitute(const char *name, void *real)
{
    void *wrapper = wrapper_of(real);
    unsigned api = GW_API_NONE;
    if (!wrapper)
        wrapper = by_hand(name, real);
    if (!wrapper && (api = find_call(name))) {
        const struct gw_call *c = &gw_calls[api];
        if (c->level == GWT_LEVEL_RUNTIME)
            wrapper = runtime_wrapper(api, name, real);
        else if (c->level == GWT_LEVEL_NCCL && real == gw_resolve_symbol("libnccl.so.2", name))
            wrapper = c->wrapper[0];
    }
    gw_count(wrapper ? GWT_C_LOOKUPS_WRAPPED
             : api   ? GWT_C_LOOKUPS_UNKNOWN
                     : GWT_C_LOOKUPS_PASSED,
             1);
    return wrapper ? wrapper : real;
}

/* ---- dlsym ------------------------------------------------------------------------------------
 */

/* Whether an object other than ours gives `name` to a look-up in the global scope, or in the
 * caller's own scope when it was loaded RTLD_LOCAL. */
static bool defined_elsewhere(const char *name, void *caller)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (real_dlsym(RTLD_NEXT, name))
        return true;
    if (caller && dladdr1 && dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) && map &&
        map->l_name && map->l_name[0]) {
        void *h = mapped(map->l_name), *p = h ? real_dlsym(h, name) : NULL;
        if (h)
            dlclose(h); /* who only asked may be unloaded */
        return p && !is_ours(p);
    }
    return false;
}

/* RTLD_DEFAULT for a name that only we export: answer NULL, as without us. The failed
 * look-up above has set dlerror() accordingly.
 * post: 1: answer NULL; 0: let the real dlsym answer. */
int gw_dlsym_default_hidden(const char *name, void *caller)
{
    if (!name || !interesting(name))
        return 0;
    unsigned api = find_call(name);
    bool exported = api || strcmp(name, "cuGetProcAddress") == 0 ||
                    strcmp(name, "cuGetProcAddress_v2") == 0 ||
                    strcmp(name, "cuGetExportTable") == 0;
    if (!exported || defined_elsewhere(name, caller))
        return 0;
    real_dlsym(RTLD_NEXT, name);
    return 1;
}

void *gw_dlsym_handle(void *handle, const char *name)
{
    if (gw_options.off || !name || !interesting(name))
        return real_dlsym(handle, name);
    gw_driver_ready();
    void *real = real_dlsym(handle, name);
    if (!real)
        return NULL;
    if (is_ours(real)) { /* a handle of the global scope, dlopen(NULL) */
        Dl_info info;
        struct link_map *map = NULL;
        bool asked_us = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && dladdr(real, &info) &&
                        map->l_name && info.dli_fname && strcmp(map->l_name, info.dli_fname) == 0;
        if (!asked_us && !defined_elsewhere(name, NULL)) {
            real_dlsym(RTLD_NEXT, name); /* leaves the message of a failed look-up */
            return NULL;
        }
        return real;
    }
    return substitute(name, real);
}

/* ---- cuGetProcAddress ---------------------------------------------------------------------------
 */

/* cudart asks for the resolver through the resolver and goes on with what it gets, so it must
 * get ours. Its versions differ in their number of arguments: from 12000 on the one with a
 * status. */
static void *substitute_proc(const char *name, int version, void *real)
{
    if (strcmp(name, "cuGetProcAddress") == 0) {
        gw_count(GWT_C_LOOKUPS_WRAPPED, 1);
        if (real == real_resolver("cuGetProcAddress_v2"))
            return (void *)cuGetProcAddress_v2;
        if (real == real_resolver("cuGetProcAddress"))
            return (void *)cuGetProcAddress;
        return version >= 12000 ? (void *)cuGetProcAddress_v2 : (void *)cuGetProcAddress;
    }
    if (strcmp(name, "cuGetExportTable") == 0)
        return substitute(name, real);
    void *wrapper = wrapper_of(real);
    gw_count(wrapper ? GWT_C_LOOKUPS_WRAPPED : GWT_C_LOOKUPS_PASSED, 1);
    return wrapper ? wrapper : real;
}

GW_EXPORT CUresult cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
    CUresult (*real)(const char *, void **, int, uint64_t) =
        (CUresult(*)(const char *, void **, int, uint64_t))real_resolver("cuGetProcAddress");
    if (!real)
        return (CUresult)100;
    CUresult r = real(name, out, version, flags);
    if (r == 0 && !gw_options.off && name && out && *out && gw_driver_ready())
        *out = substitute_proc(name, version, *out);
    return r;
}

GW_EXPORT CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                                       int *status)
{
    static void *cached;
    CUresult (*real)(const char *, void **, int, uint64_t, int *) =
        (CUresult(*)(const char *, void **, int, uint64_t, int *))gw_load_acquire(&cached);
    if (!real) {
        real = (CUresult(*)(const char *, void **, int, uint64_t, int *))real_resolver(
            "cuGetProcAddress_v2");
        if (!real)
            return (CUresult)100;
        gw_store_release(&cached, (void *)real);
    }
    CUresult r = real(name, out, version, flags, status);
    if (r == 0 && !gw_options.off && name && out && *out && gw_driver_ready())
        *out = substitute_proc(name, version, *out);
    return r;
}

/* Undocumented tables of the driver's: forwarded untouched, and counted, since work launched
 * through one would pass us by. */
GW_EXPORT CUresult cuGetExportTable(const void **table, const void *id)
{
    CUresult (*real)(const void **, const void *) =
        (CUresult(*)(const void **, const void *))real_resolver("cuGetExportTable");
    if (!real)
        return (CUresult)100;
    gw_count(GWT_C_EXPORT_TABLES, 1);
    return real(table, id);
}

void gw_resolve_init(void)
{
    gw_real_dlsym_find();
}
