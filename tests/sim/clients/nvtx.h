/* The client side of NVTX 3, as its header-only library has it: at the first use the library
 * that NVTX_INJECTION64_PATH names is loaded and given tables of slots to fill. */
#ifndef CLIENT_NVTX_H
#define CLIENT_NVTX_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef void (*nvtx_callback)(void);

enum { NVTX_CORE_SLOTS = 16, NVTX_MARK_A = 2, NVTX_PUSH_A = 9, NVTX_POP = 11 };

static nvtx_callback nvtx_core[NVTX_CORE_SLOTS];
static nvtx_callback *nvtx_core_table[NVTX_CORE_SLOTS + 1];

static int nvtx_module_table(uint32_t module, nvtx_callback ***table, uint32_t *size)
{
    if (module != 1)
        return 0;
    for (unsigned i = 0; i < NVTX_CORE_SLOTS; i++)
        nvtx_core_table[i] = &nvtx_core[i];
    *table = nvtx_core_table;
    *size = NVTX_CORE_SLOTS;
    return 1;
}

static const void *nvtx_export_table(uint32_t id)
{
    static const struct {
        size_t struct_size;
        int (*get)(uint32_t, nvtx_callback ***, uint32_t *);
    } callbacks = {sizeof callbacks, nvtx_module_table};
    return id == 1 ? &callbacks : NULL;
}

static void nvtx_start(void)
{
    static int tried;
    const char *path = getenv("NVTX_INJECTION64_PATH");
    if (tried++ || !path)
        return;
    void *library = dlopen(path, RTLD_LAZY);
    int (*initialise)(const void *(*)(uint32_t)) =
        library ? (int (*)(const void *(*)(uint32_t)))dlsym(library, "InitializeInjectionNvtx2")
                : NULL;
    if (initialise)
        initialise(nvtx_export_table);
}

__attribute__((unused)) static void nvtx_push(const char *text)
{
    nvtx_start();
    if (nvtx_core[NVTX_PUSH_A])
        ((int (*)(const char *))nvtx_core[NVTX_PUSH_A])(text);
}

__attribute__((unused)) static void nvtx_pop(void)
{
    nvtx_start();
    if (nvtx_core[NVTX_POP])
        ((int (*)(void))nvtx_core[NVTX_POP])();
}

__attribute__((unused)) static void nvtx_mark(const char *text)
{
    nvtx_start();
    if (nvtx_core[NVTX_MARK_A])
        ((void (*)(const char *))nvtx_core[NVTX_MARK_A])(text);
}

#endif
