/* What kind of process this is: facts into the definition log, as key and value.
 *
 * The environment is read from an allow list, and secrets are taken out of the command
 * line, since dumps get attached to bug reports. */
#include "gw.h"

#include <ctype.h>
#include <fcntl.h>
#include <link.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void fact(const char *key, const char *value)
{
    gw_lock();
    gw_define(GWT_DEF_FACT, 0, key, strlen(key) + 1, value, strlen(value));
    gw_unlock();
}

static ssize_t read_file(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, out, size - 1);
    close(fd);
    out[n > 0 ? n : 0] = 0;
    return n;
}

/* Field 22 of /proc/self/stat; the second field is a name that may hold anything, so count
 * from its closing parenthesis. */
int gw_process_start(uint64_t *ticks)
{
    char text[1024];
    *ticks = 0;
    if (read_file("/proc/self/stat", text, sizeof text) <= 0)
        return -1;
    char *p = strrchr(text, ')');
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    if (p)
        *ticks = strtoull(p, NULL, 10);
    return p ? 0 : -1;
}

void gw_boot_id(uint8_t out[16])
{
    char text[64];
    memset(out, 0, 16);
    if (read_file("/proc/sys/kernel/random/boot_id", text, sizeof text) <= 0)
        return;
    unsigned n = 0;
    for (const char *c = text; *c && n < 32; c++) {
        if (!isxdigit((unsigned char)*c))
            continue;
        unsigned v = *c <= '9' ? (unsigned)(*c - '0') : (unsigned)(tolower(*c) - 'a' + 10);
        out[n / 2] = (uint8_t)(out[n / 2] << 4 | v);
        n++;
    }
}

/* ---- the command line ------------------------------------------------------------------- */

static bool names_a_secret(const char *arg)
{
    static const char *const words[] = {"token",       "secret",     "passw",      "apikey",
                                        "api-key",     "api_key",    "credential", "auth",
                                        "private-key", "access-key", "access_key"};
    char lower[128];
    size_t n = 0;
    for (; arg[n] && arg[n] != '=' && n < sizeof lower - 1; n++)
        lower[n] = (char)tolower((unsigned char)arg[n]);
    lower[n] = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(lower, words[i]))
            return true;
    return false;
}

/* Tokens known by their shape: hf_..., sk-..., ghp_..., and user:password@ in addresses. */
static bool looks_secret(const char *arg)
{
    static const char *const prefixes[] = {"hf_",         "sk-",    "ghp_", "gho_",
                                           "github_pat_", "glpat-", "AKIA", "xoxb-"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        const char *p = strstr(arg, prefixes[i]);
        if (p && strlen(p) >= 20 && (p == arg || !isalnum((unsigned char)p[-1])))
            return true;
    }
    const char *scheme = strstr(arg, "://"), *at = scheme ? strchr(scheme, '@') : NULL;
    return at && memchr(scheme + 3, ':', (size_t)(at - scheme - 3));
}

static void command_line(void)
{
    static char raw[16384];
    static char text[16384];
    if (!gw_options.cmdline) {
        fact("command", "(left out)");
        return;
    }
    ssize_t n = read_file("/proc/self/cmdline", raw, sizeof raw);
    size_t used = 0;
    bool hide_next = false;
    for (ssize_t i = 0; i < n; i += (ssize_t)strlen(raw + i) + 1) {
        const char *arg = raw + i, *value = strchr(arg, '=');
        bool names = arg[0] == '-' || value ? names_a_secret(arg) : false;
        int w;
        if (hide_next || (looks_secret(arg) && !value))
            w = snprintf(text + used, sizeof text - used, "%s***", used ? " " : "");
        else if (value && (names || looks_secret(value + 1)))
            w = snprintf(text + used, sizeof text - used, "%s%.*s=***", used ? " " : "",
                         (int)(value - arg), arg);
        else
            w = snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "", arg);
        hide_next = names && !value && arg[0] == '-';
        used += (size_t)w;
        if (used >= sizeof text)
            break;
    }
    fact("command", text);
}

/* ---- libraries ------------------------------------------------------------------------------- */

static const char *const libraries[] = {"libcuda.so",       "libcudart",   "libcublas.so",
                                        "libcublasLt.so",   "libcudnn.so", "libnccl.so",
                                        "libtorch_cuda.so", "libcufft.so", "libcusparse.so"};
#define LIBRARIES (sizeof libraries / sizeof libraries[0])

/* Not on the stack: the thread that makes the first call may have little of it. */
struct mapped {
    struct {
        char path[512];
        const char *kind;
    } list[2 * LIBRARIES];
    unsigned count;
    char path[PATH_MAX];
    char text[2048];
};

/* torch/lib/libtorch_cuda.so has its version in torch/version.py. */
static void torch_version(const char *library, const char *base, struct mapped *m)
{
    char version[64];
    int lib = (int)(base - library) - 1; /* without the slash */
    while (lib > 0 && library[lib - 1] != '/')
        lib--;
    snprintf(m->path, sizeof m->path, "%.*sversion.py", lib, library);
    const char *p = read_file(m->path, m->text, sizeof m->text) > 0 ? m->text : NULL;
    for (; p && (p = strstr(p, "__version__")); p++) /* it is in __all__, too */
        if (sscanf(p, "__version__%*[ =]%*['\"]%63[^'\"]", version) == 1) {
            fact("version.torch", version);
            return;
        }
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Only notes paths: the loader's lock is held. */
static int note(struct dl_phdr_info *info, size_t size, void *data)
{
    struct mapped *m = data;
    (void)size;
    if (!info->dlpi_name || strlen(info->dlpi_name) >= sizeof m->list[0].path)
        return 0;
    for (size_t i = 0; i < LIBRARIES && m->count < 2 * LIBRARIES; i++) {
        if (strncmp(base_of(info->dlpi_name), libraries[i], strlen(libraries[i])) != 0)
            continue;
        strcpy(m->list[m->count].path, info->dlpi_name);
        m->list[m->count++].kind = libraries[i];
    }
    return 0;
}

static void library(const char *path, const char *kind, struct mapped *m)
{
    char key[128];
    snprintf(key, sizeof key, "library.%.100s", kind);
    fact(key, base_of(realpath(path, m->path) ? m->path : path));
    if (strcmp(kind, "libtorch_cuda.so") == 0)
        torch_version(path, base_of(path), m);
}

/* By the watch, seconds after the start, when the frameworks have loaded what they
 * use; and at exit, when no library may be called any more: perhaps both at once. */
void gw_facts_libraries(bool at_exit)
{
    struct mapped *m =
        mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m != MAP_FAILED) {
        dl_iterate_phdr(note, m);
        for (unsigned i = 0; i < m->count; i++)
            library(m->list[i].path, m->list[i].kind, m);
        munmap(m, sizeof *m);
    }
    int (*nccl_version)(int *) =
        at_exit ? NULL : (int (*)(int *))gw_resolve_symbol("libnccl.so.2", "ncclGetVersion");
    int v = 0;
    char text[32];
    if (nccl_version && nccl_version(&v) == 0) {
        snprintf(text, sizeof text, "%d", v);
        fact("version.nccl", text);
    }
}

/* ---- all ----------------------------------------------------------------------------------------
 */

void gw_facts(void)
{
    static const char *const environment[] = {"RANK",
                                              "LOCAL_RANK",
                                              "WORLD_SIZE",
                                              "LOCAL_WORLD_SIZE",
                                              "SLURM_PROCID",
                                              "SLURM_LOCALID",
                                              "SLURM_JOB_ID",
                                              "SLURM_NTASKS",
                                              "OMPI_COMM_WORLD_RANK",
                                              "OMPI_COMM_WORLD_SIZE",
                                              "PMI_RANK",
                                              "CUDA_VISIBLE_DEVICES",
                                              "CUDA_LAUNCH_BLOCKING",
                                              "CUDA_DEVICE_MAX_CONNECTIONS",
                                              "CUDA_MODULE_LOADING",
                                              "CUDA_DEVICE_ORDER",
                                              "CUBLAS_WORKSPACE_CONFIG",
                                              "PYTORCH_CUDA_ALLOC_CONF",
                                              "PYTORCH_ALLOC_CONF",
                                              "PYTORCH_NO_CUDA_MEMORY_CACHING",
                                              "TORCH_NCCL_ENABLE_TIMING",
                                              "TORCH_NCCL_BLOCKING_WAIT",
                                              "NCCL_LAUNCH_MODE",
                                              "OMP_NUM_THREADS",
                                              "TOKENIZERS_PARALLELISM"};
    static char text[4096];
    char key[64];
    fact("gpuwait", GPUWAIT_VERSION);
    if (gethostname(text, sizeof text - 1) == 0)
        fact("host", text);
    command_line();
    ssize_t n = readlink("/proc/self/exe", text, sizeof text - 1);
    if (n > 0) {
        text[n] = 0;
        fact("executable", text);
    }
    for (size_t i = 0; i < sizeof environment / sizeof environment[0]; i++) {
        const char *v = getenv(environment[i]);
        if (!v)
            continue;
        snprintf(key, sizeof key, "env.%s", environment[i]);
        fact(key, v);
    }
    snprintf(text, sizeof text, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    fact("cpus", text);
    int version = 0;
    if (gw_driver.cuDriverGetVersion && gw_driver.cuDriverGetVersion(&version) == 0) {
        snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
        fact("version.driver_cuda", text);
    }
    char driver[256];
    if (read_file("/sys/module/nvidia/version", driver, sizeof driver) > 0) {
        driver[strcspn(driver, "\n")] = 0;
        fact("version.driver", driver);
    }
    gw_facts_libraries(false);
}
