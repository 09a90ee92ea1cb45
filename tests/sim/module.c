/* Modules, libraries and functions: names, handles that are reused, and how long a kernel takes.
 *
 * An image is text ("SIMIMAGE", below), PTX, of which only the entries are read, or anything
 * else: then every function asked for is found.
 *
 *   SIMIMAGE
 *   kernel NAME us=12.5 [block_ns=40] [cv=0.03] [modes=1,1,2.3] [params=8,8,4]
 *   global NAME BYTES
 *
 * us: duration; block_ns: more for every block beyond one wave; cv: spread from launch to
 * launch; modes: factors by which the duration varies with the position of the launch.
 */
#include "driver.h"

#include "truth.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMS           132u
#define BLOCKS_PER_SM 8u
#define KERNEL_OVERHEAD                                                                            \
    600.0 /* of a kernel's time, what lies outside its own first and last stamp */
#define FATBIN_WRAPPER 0x466243b1u

struct sim_behaviour {
    const char *name;
    int spin, done, value, stamp, from, to;
};

static const struct sim_behaviour behaviours[] = {
#define KERNEL(name, spin, done, value, stamp, from, to)                                           \
    {#name, spin, done, value, stamp, from, to},
#include "kernels.def"
#undef KERNEL
};

struct global {
    struct global *next;
    char *name;
    size_t bytes;
    uintptr_t at;
};

struct sim_module {
    uint32_t magic;
    bool library;
    bool opaque;               /* not text: any name is found */
    struct sim_module *loaded; /* of a library: the module in the context */
    struct global *globals;
    unsigned nfuncs, room;
    struct sim_func **funcs;
};

static struct sim_pool module_pool = {.size = sizeof(struct sim_module)};
static struct sim_pool func_pool = {.size = sizeof(struct sim_func)};

/* ---- images -------------------------------------------------------------------------- */

static struct sim_func *func_new(struct sim_module *m, const char *name, size_t length)
{
    struct sim_func *f = sim_pool_get(&func_pool);
    f->magic = MAGIC_FUNC;
    f->kernel = m->library;
    f->module = m;
    f->text = strndup(name, length);
    f->name = sim_truth_name(f->text);
    f->own = sim_truth_ignores(f->text);
    uint64_t h = sim_hash_text(f->text);
    f->us = 1.2 + (double)(h % 97) / 12.0;
    f->block_ns = 30;
    f->cv = 0.02;
    for (size_t i = 0; i < sizeof behaviours / sizeof *behaviours; i++)
        if (!strcmp(behaviours[i].name, f->text)) {
            f->behaviour = &behaviours[i];
            f->stamps = behaviours[i].stamp >= 0;
        }
    if (m->nfuncs == m->room) {
        m->room = m->room ? m->room * 2 : 16;
        m->funcs = sim_grow(m->funcs, m->room * sizeof *m->funcs);
    }
    return m->funcs[m->nfuncs++] = f;
}

static void global_new(struct sim_module *m, const char *name, size_t length, size_t bytes)
{
    struct global *g = calloc(1, sizeof *g);
    if (!g)
        abort();
    g->name = strndup(name, length);
    g->bytes = bytes;
    struct sim_ctx *ctx = sim_ctx_current();
    sim_memory_alloc(ctx ? ctx->device : 0, bytes ? bytes : 1, 0, false, &g->at);
    g->next = m->globals;
    m->globals = g;
}

static void attribute(struct sim_func *f, const char *word, const char *end)
{
    char *next;
    const char *v = memchr(word, '=', (size_t)(end - word));
    if (!v++)
        return;
    if (!strncmp(word, "us=", 3)) {
        f->us = strtod(v, NULL);
        f->block_ns = 0;
    } else if (!strncmp(word, "block_ns=", 9)) {
        f->block_ns = strtod(v, NULL);
    } else if (!strncmp(word, "cv=", 3)) {
        f->cv = strtod(v, NULL);
    } else if (!strncmp(word, "modes=", 6)) {
        for (; f->nmodes < 16 && v < end; v = next + (*next == ',')) {
            f->modes[f->nmodes++] = strtod(v, &next);
            if (*next != ',')
                break;
        }
    } else if (!strncmp(word, "params=", 7)) {
        for (; f->nparams < 64 && v < end; v = next + (*next == ',')) {
            f->params[f->nparams++] = (unsigned)strtoul(v, &next, 10);
            if (*next != ',')
                break;
        }
    }
}

static void parse_text(struct sim_module *m, const char *p)
{
    while (*p) {
        const char *eol = strchr(p, '\n');
        const char *end = eol ? eol : p + strlen(p);
        bool kernel = !strncmp(p, "kernel ", 7), global = !strncmp(p, "global ", 7);
        if (kernel || global) {
            const char *name = p + 7, *q = name;
            while (q < end && *q != ' ')
                q++;
            if (global) {
                global_new(m, name, (size_t)(q - name), strtoul(q, NULL, 10));
            } else {
                struct sim_func *f = func_new(m, name, (size_t)(q - name));
                while (q < end) {
                    while (q < end && *q == ' ')
                        q++;
                    const char *word = q;
                    while (q < end && *q != ' ')
                        q++;
                    if (q > word)
                        attribute(f, word, q);
                }
            }
        }
        p = eol ? eol + 1 : end;
    }
}

/* The sizes of an entry's parameters, so that their values can be copied at a launch. */
static void parse_ptx_params(struct sim_func *f, const char *p)
{
    const char *end = strchr(p, ')');
    for (; end && (p = strstr(p, ".param")) && p < end && f->nparams < 64; p++) {
        unsigned bits = 0;
        for (const char *q = p + 6; q < end && *q != ','; q++)
            if (*q == '.' && strchr("subf", q[1]) && isdigit((unsigned char)q[2]))
                bits = (unsigned)strtoul(q + 2, NULL, 10);
        f->params[f->nparams++] = bits / 8;
    }
}

static void parse_ptx(struct sim_module *m, const char *p)
{
    while ((p = strstr(p, ".entry"))) {
        p += 6;
        while (isspace((unsigned char)*p))
            p++;
        const char *name = p;
        while (*p && !isspace((unsigned char)*p) && *p != '(')
            p++;
        struct sim_func *f = func_new(m, name, (size_t)(p - name));
        f->params[0] = 0;
        parse_ptx_params(f, p);
    }
}

static bool is_text(const char *image)
{
    for (unsigned i = 0; i < 16; i++) {
        if (!image[i])
            return i > 0;
        if (!isprint((unsigned char)image[i]) && !isspace((unsigned char)image[i]))
            return false;
    }
    return true;
}

static struct sim_module *module_new(const void *image, bool library)
{
    struct sim_module *m = sim_pool_get(&module_pool);
    m->magic = MAGIC_MODULE;
    m->library = library;
    uint32_t magic;
    memcpy(&magic, image, sizeof magic);
    if (magic == FATBIN_WRAPPER)
        memcpy(&image, (const char *)image + 8, sizeof image);
    const char *text = image;
    if (!strncmp(text, "SIMIMAGE", 8))
        parse_text(m, text);
    else if (is_text(text))
        parse_ptx(m, text);
    else
        m->opaque = true;
    return m;
}

static void module_free(struct sim_module *m)
{
    for (unsigned i = m->nfuncs; i-- > 0;) {
        struct sim_func *f = m->funcs[i];
        if (f->twin) {
            free(f->twin->text);
            sim_pool_put(&func_pool, f->twin);
        }
        free(f->text);
        sim_pool_put(&func_pool, f);
    }
    while (m->globals) {
        struct global *g = m->globals;
        m->globals = g->next;
        if (g->at)
            sim_memory_free(g->at);
        free(g->name);
        free(g);
    }
    free(m->funcs);
    sim_pool_put(&module_pool, m);
}

static struct sim_func *func_find(struct sim_module *m, const char *name)
{
    for (unsigned i = 0; i < m->nfuncs; i++)
        if (!strcmp(m->funcs[i]->text, name))
            return m->funcs[i];
    return m->opaque ? func_new(m, name, strlen(name)) : NULL;
}

struct sim_func *sim_func_of(const void *handle)
{
    struct sim_func *f = (struct sim_func *)handle;
    return f && f->magic == MAGIC_FUNC ? f : NULL;
}

static struct sim_module *module_of(const void *handle)
{
    struct sim_module *m = (struct sim_module *)handle;
    return m && m->magic == MAGIC_MODULE ? m : NULL;
}

/* ---- duration and effect ---------------------------------------------------------------- */

double sim_func_ns(struct sim_func *f, const unsigned grid[3], const unsigned block[3],
                   double *demand)
{
    double blocks = (double)grid[0] * grid[1] * grid[2];
    double threads = (double)block[0] * block[1] * block[2];
    double wave = SMS * (threads > 256 ? 2048.0 / threads : BLOCKS_PER_SM);
    /* the shape decides, then the position, then chance: not what else was launched */
    uint64_t n = f->launches++;
    struct sim_rng rng;
    sim_rng_seed(&rng, sim_hash(f->name * 0x9e3779b9u, n));
    double ns = f->us * 1000.0;
    if (blocks > wave)
        ns += f->block_ns * (blocks - wave) / SMS;
    if (f->nmodes)
        ns *= f->modes[n % f->nmodes];
    if (!f->behaviour)
        ns = sim_jitter(&rng, ns, f->cv);
    *demand = blocks / wave;
    if (*demand > 1.0)
        *demand = 1.0;
    return (KERNEL_OVERHEAD + ns) / sim_cfg.speed / (f->own ? 1.0 : sim_cfg.device_speed);
}

struct effect {
    uintptr_t done, stamp, from, to;
    uint32_t value;
};

static void run_effect(struct sim_op *op)
{
    struct effect *e = op->data;
    if (e->stamp) {
        uint64_t t[2] = {(uint64_t)op->start + (uint64_t)(KERNEL_OVERHEAD / 2),
                         (uint64_t)op->end - (uint64_t)(KERNEL_OVERHEAD / 2)};
        memcpy((void *)e->stamp, t, sizeof t);
    }
    if (e->from && e->to)
        memcpy((void *)e->to, (const void *)e->from, 16);
    if (e->done)
        __atomic_store_n((uint32_t *)e->done, e->value, __ATOMIC_RELEASE);
}

static uint64_t argument(const struct sim_func *f, int index, void **args)
{
    uint64_t v = 0;
    if (index < 0 || !args || (unsigned)index >= f->nparams)
        return 0;
    memcpy(&v, args[index], f->params[index] < 8 ? f->params[index] : 8);
    return v;
}

void sim_func_prepare(struct sim_func *f, struct sim_op *op, void **args, void **extra)
{
    const struct sim_behaviour *b = f->behaviour;
    (void)extra;
    if (!b)
        return;
    if (b->spin >= 0)
        op->work = KERNEL_OVERHEAD + (double)argument(f, b->spin, args);
    struct effect *e = calloc(1, sizeof *e);
    if (!e)
        abort();
    e->done = argument(f, b->done, args);
    e->stamp = argument(f, b->stamp, args);
    e->from = argument(f, b->from, args);
    e->to = argument(f, b->to, args);
    e->value = b->value >= 0 ? (uint32_t)argument(f, b->value, args) : 1;
    op->data = e;
    op->release = free;
    op->effect = run_effect;
}

/* ---- calls: modules ------------------------------------------------------------------------ */

static int load(void **out, const void *image, bool library)
{
    if (!out || !image)
        return E_VALUE;
    sim_lock();
    int status = sim_ready();
    if (!status && !library && !sim_ctx_current())
        status = E_CONTEXT;
    if (!status)
        *out = module_new(image, library);
    bool jit = !status && is_text(image) && strncmp(image, "SIMIMAGE", 8);
    sim_unlock();
    if (jit) /* PTX is compiled */
        sim_spend((uint64_t)(20e6 / sim_cfg.speed));
    return status;
}

static int load_file(void **out, const char *path, bool library)
{
    FILE *f = fopen(path, "rbe");
    char *image = NULL;
    size_t size = 0;
    if (!f)
        return E_FOUND;
    for (size_t n = 1; n;) {
        image = sim_grow(image, size + 65536 + 1);
        n = fread(image + size, 1, 65536, f);
        size += n;
    }
    fclose(f);
    image[size] = 0;
    int status = load(out, image, library);
    free(image);
    return status;
}

static int unload(const void *handle)
{
    sim_lock();
    struct sim_module *m = module_of(handle);
    int status = sim_ready();
    if (!status && !m)
        status = E_HANDLE;
    if (!status) {
        struct sim_ctx *ctx = sim_ctx_current();
        if (ctx)
            sim_sync_ctx(ctx);
        module_free(m);
    }
    sim_unlock();
    return status;
}

CUresult sim_cuModuleLoadData(CUmodule *mod, const void *image)
{
    return load((void **)mod, image, false);
}

CUresult sim_cuModuleLoadDataEx(CUmodule *mod, const void *image, unsigned int n, CUjit_option *opt,
                                void **values)
{
    (void)n;
    (void)opt;
    (void)values;
    return load((void **)mod, image, false);
}

CUresult sim_cuModuleLoadFatBinary(CUmodule *mod, const void *image)
{
    return load((void **)mod, image, false);
}

CUresult sim_cuModuleLoad(CUmodule *mod, const char *path)
{
    return load_file((void **)mod, path, false);
}

CUresult sim_cuModuleUnload(CUmodule mod)
{
    return unload(mod);
}

CUresult sim_cuLibraryLoadData(CUlibrary *lib, const void *image, CUjit_option *jit,
                               void **jit_values, unsigned int jit_count, CUlibraryOption *opt,
                               void **opt_values, unsigned int opt_count)
{
    (void)jit, (void)jit_values, (void)jit_count, (void)opt, (void)opt_values, (void)opt_count;
    return load((void **)lib, image, true);
}

CUresult sim_cuLibraryLoadFromFile(CUlibrary *lib, const char *path, CUjit_option *jit,
                                   void **jit_values, unsigned int jit_count, CUlibraryOption *opt,
                                   void **opt_values, unsigned int opt_count)
{
    (void)jit, (void)jit_values, (void)jit_count, (void)opt, (void)opt_values, (void)opt_count;
    return load_file((void **)lib, path, true);
}

CUresult sim_cuLibraryUnload(CUlibrary lib)
{
    return unload(lib);
}

CUresult sim_cuLibraryGetModule(CUmodule *mod, CUlibrary lib)
{
    *mod = (CUmodule)(void *)lib; /* one object plays both */
    return module_of(lib) ? E_OK : E_HANDLE;
}

CUresult sim_cuModuleGetLoadingMode(int *mode)
{
    *mode = 2; /* lazy */
    return E_OK;
}

static int find(void **out, const void *handle, const char *name, bool kernel)
{
    sim_lock();
    struct sim_module *m = module_of(handle);
    struct sim_func *f = m && name ? func_find(m, name) : NULL;
    int status = !m ? E_HANDLE : !f ? E_FOUND : E_OK;
    if (f && f->kernel && !kernel) {
        if (!f->twin) {
            f->twin = sim_pool_get(&func_pool);
            *f->twin = *f;
            f->twin->text = strdup(f->text);
            f->twin->kernel = false;
            f->twin->twin = NULL;
        }
        f = f->twin;
    }
    if (!status)
        *out = f;
    sim_unlock();
    return status;
}

CUresult sim_cuModuleGetFunction(CUfunction *func, CUmodule mod, const char *name)
{
    return find((void **)func, mod, name, false);
}

CUresult sim_cuLibraryGetKernel(CUkernel *kernel, CUlibrary lib, const char *name)
{
    return find((void **)kernel, lib, name, true);
}

CUresult sim_cuKernelGetFunction(CUfunction *func, CUkernel kernel)
{
    struct sim_func *f = sim_func_of(kernel);
    if (!f || !f->kernel)
        return E_HANDLE;
    return find((void **)func, f->module, f->text, false);
}

CUresult sim_cuKernelGetLibrary(CUlibrary *lib, CUkernel kernel)
{
    struct sim_func *f = sim_func_of(kernel);
    if (!f || !f->kernel)
        return E_HANDLE;
    *lib = (CUlibrary)(void *)f->module;
    return E_OK;
}

CUresult sim_cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
    struct sim_module *m = module_of(lib);
    if (m)
        *count = m->nfuncs;
    return m ? E_OK : E_HANDLE;
}

CUresult sim_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int count, CUlibrary lib)
{
    struct sim_module *m = module_of(lib);
    for (unsigned i = 0; m && i < count && i < m->nfuncs; i++)
        kernels[i] = (CUkernel)(void *)m->funcs[i];
    return m ? E_OK : E_HANDLE;
}

static int find_global(CUdeviceptr *ptr, size_t *bytes, const void *handle, const char *name)
{
    sim_lock();
    struct sim_module *m = module_of(handle);
    struct global *g = m ? m->globals : NULL;
    while (g && strcmp(g->name, name))
        g = g->next;
    if (!g && m && m->opaque) {
        global_new(m, name, strlen(name), 4096);
        g = m->globals;
    }
    if (g && ptr)
        *ptr = g->at;
    if (g && bytes)
        *bytes = g->bytes;
    sim_unlock();
    return !m ? E_HANDLE : g ? E_OK : E_FOUND;
}

CUresult sim_cuModuleGetGlobal_v2(CUdeviceptr *ptr, size_t *bytes, CUmodule mod, const char *name)
{
    return find_global(ptr, bytes, mod, name);
}

CUresult sim_cuLibraryGetGlobal(CUdeviceptr *ptr, size_t *bytes, CUlibrary lib, const char *name)
{
    return find_global(ptr, bytes, lib, name);
}

/* ---- calls: functions ------------------------------------------------------------------------ */

/* Handles asked for their name as what they are not: compute-sanitizer reports each. */
uint64_t sim_wrong_kind;

CUresult sim_cuFuncGetName(const char **name, CUfunction func)
{
    struct sim_func *f = sim_func_of(func);
    if (sim_cfg.driver_version < 12030)
        return E_NOT_SUPPORTED;
    if (f && f->kernel)
        __atomic_fetch_add(&sim_wrong_kind, 1, __ATOMIC_RELAXED);
    if (!name || !f || f->kernel)
        return name ? E_HANDLE : E_VALUE;
    *name = f->text;
    return E_OK;
}

CUresult sim_cuKernelGetName(const char **name, CUkernel kernel)
{
    struct sim_func *f = sim_func_of(kernel);
    if (sim_cfg.driver_version < 12030)
        return E_NOT_SUPPORTED;
    if (f && !f->kernel)
        __atomic_fetch_add(&sim_wrong_kind, 1, __ATOMIC_RELAXED);
    if (!name || !f || !f->kernel)
        return name ? E_HANDLE : E_VALUE;
    *name = f->text;
    return E_OK;
}

CUresult sim_cuFuncGetModule(CUmodule *mod, CUfunction func)
{
    struct sim_func *f = sim_func_of(func);
    if (f)
        *mod = (CUmodule)(void *)f->module;
    return f ? E_OK : E_HANDLE;
}

static int func_attribute(int *value, int attr, const struct sim_func *f)
{
    static const int values[] = {1024, 0, 0, 0, 32, 90, 90, 0, 0};
    if (!f)
        return E_HANDLE;
    *value = attr == 8 ? f->max_shared : attr < 8 ? values[attr] : 0;
    return E_OK;
}

CUresult sim_cuFuncGetAttribute(int *value, int attr, CUfunction func)
{
    return func_attribute(value, attr, sim_func_of(func));
}

CUresult sim_cuFuncSetAttribute(CUfunction func, int attr, int value)
{
    struct sim_func *f = sim_func_of(func);
    if (f && attr == 8)
        f->max_shared = value;
    return f ? E_OK : E_HANDLE;
}

CUresult sim_cuKernelGetAttribute(int *value, int attr, CUkernel kernel, CUdevice dev)
{
    (void)dev;
    return func_attribute(value, attr, sim_func_of(kernel));
}

CUresult sim_cuKernelSetAttribute(int attr, int value, CUkernel kernel, CUdevice dev)
{
    (void)dev;
    return sim_cuFuncSetAttribute((CUfunction)(void *)kernel, attr, value);
}

static int param_info(const struct sim_func *f, size_t index, size_t *offset, size_t *size)
{
    if (!f)
        return E_HANDLE;
    if (index >= f->nparams)
        return E_VALUE;
    *offset = 0;
    for (size_t i = 0; i <= index; i++) {
        size_t align = f->params[i] ? f->params[i] : 1;
        *offset = (*offset + align - 1) / align * align;
        if (i < index)
            *offset += f->params[i];
    }
    if (size)
        *size = f->params[index];
    return E_OK;
}

CUresult sim_cuFuncGetParamInfo(CUfunction func, size_t index, size_t *offset, size_t *size)
{
    return param_info(sim_func_of(func), index, offset, size);
}

CUresult sim_cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
    return param_info(sim_func_of(kernel), index, offset, size);
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction func,
                                                                  int threads, size_t shared,
                                                                  unsigned int flags)
{
    (void)func;
    (void)shared;
    (void)flags;
    *blocks = threads > 0 ? (2048 / threads < 8 ? 2048 / threads : 8) : 8;
    return E_OK;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction func, int threads,
                                                         size_t shared)
{
    return sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, func, threads, shared,
                                                                    0);
}
