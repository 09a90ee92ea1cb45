/* Asks the resolver for what programs ask and should not ask, and prints what it gets, with
 * addresses as the name of the symbol at them: the same text whatever is preloaded.
 *
 *     resolver
 */
#define CLIENT_NO_RUNTIME
#include "client.h"
#include "driver.h"

static const char *symbol_at(void *p)
{
    Dl_info info;
    if (!p)
        return "(null)";
    return dladdr(p, &info) && info.dli_sname ? info.dli_sname : "(unnamed)";
}

static fn_cuGetProcAddress_v2 *get;

static void ask(const char *name, int version, uint64_t flags, bool with_status)
{
    void *p = (void *)1;
    int symbol_status = -1;
    int status = (int)get(name, &p, version, flags, with_status ? &symbol_status : NULL);
    printf("%s %d %d -> %s status %d", *name ? name : "(empty)", version, (int)flags,
           p == (void *)1 ? "(untouched)" : symbol_at(p), status);
    if (with_status)
        printf(" symbol %d", symbol_status);
    putchar('\n');
}

int main(void)
{
    static const struct {
        const char *name;
        int version, flags;
    } requests[] = {
#define REQUEST(name, version, flags) {#name, version, flags},
#include "requests.def"
#undef REQUEST
    };
    void *p;

    get = (fn_cuGetProcAddress_v2 *)driver_symbol("cuGetProcAddress_v2");
    fn_cuGetProcAddress *old = (fn_cuGetProcAddress *)driver_symbol("cuGetProcAddress");
    printf("dlsym: %s %s\n", symbol_at((void *)get), symbol_at((void *)old));

    ask("", 0, 0, false);
    ask("", 0, 0, true);
    ask("cuNoSuchFunction", 13000, 0, true);
    ask("cuNoSuchFunction", 13000, 0, false);
    ask("cuMemAlloc", 13000, 0, false);
    ask("cuMemAlloc", 2000, 0, true);        /* the ABI before 3.2 */
    ask("cuLaunchKernelEx", 11000, 0, true); /* newer than asked for */
    ask("cuLaunchKernelEx", 11060, 2, true);
    ask("cuLaunchKernel", 13000, 2, true);
    ask("cuLaunchKernel", 13000, 1, true);
    ask("cuLaunchKernel", 13000, 7, true);  /* no such flags */
    ask("cuLaunchKernel", 99000, 0, true);  /* newer than the driver */
    ask("cuMemcpyHtoD_v2", 13000, 0, true); /* not a base name */
    ask("cudaMalloc", 13000, 0, true);
    ask("cuGetProcAddress", 11030, 0, true);
    ask("cuGetProcAddress", 12000, 0, true);
    ask("cuGetProcAddress", 10000, 0, true);
    ask("cuCtxSynchronize", 12000, 0, true);
    ask("cuCtxSynchronize", 13000, 0, true);
    p = (void *)1;
    int status = (int)old("cuMemAlloc", &p, 11030, 0);
    printf("v1: cuMemAlloc -> %s status %d\n", symbol_at(p), status);
    p = (void *)1;
    status = (int)old("cuNoSuchFunction", &p, 11030, 0);
    printf("v1: cuNoSuchFunction -> %s status %d\n", symbol_at(p), status);
    printf("null name: %d, null result: %d\n", (int)get(NULL, &p, 13000, 0, NULL),
           (int)get("cuInit", NULL, 13000, 0, NULL));

    /* the resolver that the resolver gives is as good, and gives itself again */
    get("cuGetProcAddress", &p, 12000, 0, NULL);
    get = (fn_cuGetProcAddress_v2 *)p;
    get("cuGetProcAddress", &p, 12000, 0, NULL);
    printf("itself: %s\n", (void *)get == p ? "same" : "another");
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        ask(requests[i].name, requests[i].version, (uint64_t)requests[i].flags, i % 2);

    /* by dlsym: plain and suffixed names, and one that is not there */
    static const char *const names[] = {"cuMemAlloc", "cuMemAlloc_v2", "cuLaunchKernel_ptsz",
                                        "cuMemcpy_ptds", "cuGetProcAddress_v2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        printf("dlsym %s: %s\n", names[i], symbol_at(dlsym(driver_library, names[i])));
    printf("dlsym cuNoSuchFunction: %s\n", symbol_at(dlsym(driver_library, "cuNoSuchFunction")));
    printf("dlerror: %s\n", dlerror() ? "set" : "none");
    printf("default cuInit: %s\n", symbol_at(dlsym(RTLD_DEFAULT, "cuInit")));
    return 0;
}
