/* Start-up, devices and contexts: the calls. */
#include "driver.h"

#include <stdio.h>
#include <string.h>

int sim_look_up(const char *base, void **pfn, int version, uint64_t flags, int *status, bool v2);

/* ---- start -------------------------------------------------------------------------- */

CUresult sim_cuInit(unsigned int flags)
{
    if (flags)
        return E_VALUE;
    if (!sim_cfg.devices)
        return E_NO_DEVICE;
    if (!sim_initialised)
        sim_spend((uint64_t)(2e6 / sim_cfg.speed));
    sim_start();
    return sim_ready();
}

CUresult sim_cuDriverGetVersion(int *version)
{
    *version = sim_cfg.driver_version;
    return E_OK;
}

CUresult sim_cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
    return sim_look_up(symbol, pfn, version, flags, NULL, false);
}

CUresult sim_cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                                 int *symbol_status)
{
    return sim_look_up(symbol, pfn, version, flags, symbol_status, true);
}

/* The tables are nobody's documented business: there are none. */
CUresult sim_cuGetExportTable(const void **table, const CUuuid *id)
{
    if (!table || !id)
        return E_VALUE;
    *table = NULL;
    return E_FOUND;
}

static const struct {
    int status;
    const char *name, *text;
} errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
     "the graph update was not performed because it included changes which violated constraints "
     "specific to instantiated graph update"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int error_text(int status, const char **out, bool name)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].status == status) {
            *out = name ? errors[i].name : errors[i].text;
            return E_OK;
        }
    *out = NULL;
    return E_VALUE;
}

CUresult sim_cuGetErrorString(CUresult status, const char **text)
{
    return error_text((int)status, text, false);
}

CUresult sim_cuGetErrorName(CUresult status, const char **text)
{
    return error_text((int)status, text, true);
}

/* ---- devices --------------------------------------------------------------------------- */

static int device_check(CUdevice dev)
{
    int status = sim_ready();
    return status ? status : dev < 0 || dev >= (int)sim_cfg.devices ? E_DEVICE : E_OK;
}

CUresult sim_cuDeviceGetCount(int *count)
{
    *count = (int)sim_cfg.devices;
    return sim_ready();
}

CUresult sim_cuDeviceGet(CUdevice *dev, int ordinal)
{
    int status = device_check(ordinal);
    if (!status)
        *dev = ordinal;
    return status;
}

CUresult sim_cuDeviceGetName(char *name, int size, CUdevice dev)
{
    int status = device_check(dev);
    if (!status)
        snprintf(name, (size_t)size, "Simulated GPU");
    return status;
}

CUresult sim_cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    int status = device_check(dev);
    if (!status)
        *bytes = sim_cfg.memory;
    return status;
}

CUresult sim_cuDeviceGetAttribute(int *value, CUdevice_attribute attr, CUdevice dev)
{
    static const struct {
        int attr, value;
    } values[] = {
        {1, 1024},  {2, 1024},    {3, 1024},     {4, 64},    {5, 2147483647}, {6, 65535},
        {7, 65535}, {8, 49152},   {9, 65536},    {10, 32},   {12, 65536},     {13, 1980000},
        {16, 132},  {34, 0},      {36, 2619000}, {37, 5120}, {38, 60 << 20},  {39, 2048},
        {40, 3},    {41, 1},      {50, 0},       {75, 9},    {76, 0},         {78, 1},
        {79, 1},    {81, 233472}, {82, 65536},   {83, 1},    {88, 0},         {89, 1},
        {95, 1},    {97, 232448}, {101, 1},      {102, 1},   {106, 32},       {110, 0},
        {115, 1},   {132, 0},
    };
    int status = device_check(dev);
    if (status)
        return status;
    *value = attr == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? 0x40 + dev : 0;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i].attr == (int)attr)
            *value = values[i].value;
    return E_OK;
}

CUresult sim_cuDeviceGetPCIBusId(char *id, int size, CUdevice dev)
{
    int status = device_check(dev);
    if (!status)
        snprintf(id, (size_t)size, "0000:%02X:00.0", 0x40 + dev);
    return status;
}

CUresult sim_cuDeviceGetByPCIBusId(CUdevice *dev, const char *id)
{
    unsigned domain, bus;
    if (sscanf(id, "%x:%x:", &domain, &bus) != 2 || bus < 0x40 || bus >= 0x40 + sim_cfg.devices)
        return E_DEVICE;
    *dev = (int)(bus - 0x40);
    return E_OK;
}

CUresult sim_cuDeviceGetUuid(CUuuid *id, CUdevice dev)
{
    int status = device_check(dev);
    if (!status) {
        memset(id, 0x51, sizeof *id);
        id->bytes[15] = (char)dev;
    }
    return status;
}

CUresult sim_cuDeviceGetUuid_v2(CUuuid *id, CUdevice dev)
{
    return sim_cuDeviceGetUuid(id, dev);
}

CUresult sim_cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
    *can = dev != peer;
    return device_check(dev) ? (CUresult)device_check(dev) : (CUresult)device_check(peer);
}

/* ---- contexts ------------------------------------------------------------------------------ */

struct sim_ctx *sim_ctx_of(const void *handle)
{
    struct sim_ctx *c = (struct sim_ctx *)handle;
    return c && c->magic == MAGIC_CTX ? c : NULL;
}

static void set_current(struct sim_ctx *ctx)
{
    struct sim_thread *t = sim_thread();
    if (!t->depth && ctx)
        t->depth = 1;
    if (t->depth)
        t->stack[t->depth - 1] = ctx;
    if (!ctx && t->depth)
        t->depth--;
}

static int push(struct sim_ctx *ctx)
{
    struct sim_thread *t = sim_thread();
    if (!ctx || t->depth == sizeof t->stack / sizeof *t->stack)
        return E_CONTEXT;
    t->stack[t->depth++] = ctx;
    return E_OK;
}

CUresult sim_cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev)
{
    int status = device_check(dev);
    if (status)
        return status;
    sim_lock();
    struct sim_ctx *c = sim_ctx_primary((unsigned)dev);
    bool first = !c->refs++;
    sim_unlock();
    if (first)
        sim_spend((uint64_t)(30e6 / sim_cfg.speed)); /* the context comes to be */
    *ctx = (CUcontext)(void *)c;
    return E_OK;
}

CUresult sim_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    int status = device_check(dev);
    if (status)
        return status;
    sim_lock();
    struct sim_ctx *c = sim_ctx_primary((unsigned)dev);
    if (c->refs > 0)
        c->refs--;
    else
        status = E_CONTEXT;
    sim_unlock();
    return status;
}

CUresult sim_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    int status = device_check(dev);
    if (status)
        return status;
    sim_lock();
    sim_sync_device((unsigned)dev);
    sim_unlock();
    return E_OK;
}

CUresult sim_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    int status = device_check(dev);
    if (status)
        return status;
    sim_lock();
    struct sim_ctx *c = sim_ctx_primary((unsigned)dev);
    *flags = c->flags;
    *active = c->refs > 0;
    sim_unlock();
    return E_OK;
}

CUresult sim_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    int status = device_check(dev);
    if (!status)
        sim_ctx_primary((unsigned)dev)->flags = flags;
    return status;
}

CUresult sim_cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
    int status = device_check(dev);
    if (status)
        return status;
    sim_lock();
    struct sim_ctx *c = sim_ctx_new((unsigned)dev, flags);
    status = push(c);
    sim_unlock();
    sim_spend((uint64_t)(30e6 / sim_cfg.speed));
    *ctx = (CUcontext)(void *)c;
    return status;
}

CUresult sim_cuCtxCreate(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
    return sim_cuCtxCreate_v2(ctx, flags, dev);
}

CUresult sim_cuCtxCreate_v3(CUcontext *ctx, CUexecAffinityParam *list, int n, unsigned int flags,
                            CUdevice dev)
{
    (void)list, (void)n;
    return sim_cuCtxCreate_v2(ctx, flags, dev);
}

CUresult sim_cuCtxCreate_v4(CUcontext *ctx, CUctxCreateParams *parms, unsigned int flags,
                            CUdevice dev)
{
    (void)parms;
    return sim_cuCtxCreate_v2(ctx, flags, dev);
}

CUresult sim_cuCtxDestroy_v2(CUcontext ctx)
{
    sim_lock();
    struct sim_ctx *c = sim_ctx_of(ctx);
    int status = c && !c->primary ? E_OK : E_CONTEXT;
    if (!status) {
        struct sim_thread *t = sim_thread();
        if (t->depth && t->stack[t->depth - 1] == c)
            t->depth--;
        sim_ctx_free(c);
    }
    sim_unlock();
    return status;
}

CUresult sim_cuCtxDestroy(CUcontext ctx)
{
    return sim_cuCtxDestroy_v2(ctx);
}

CUresult sim_cuCtxSetCurrent(CUcontext ctx)
{
    int status = sim_ready();
    if (status || (ctx && !sim_ctx_of(ctx)))
        return status ? status : E_CONTEXT;
    set_current(sim_ctx_of(ctx));
    return E_OK;
}

CUresult sim_cuCtxPushCurrent_v2(CUcontext ctx)
{
    return push(sim_ctx_of(ctx));
}

CUresult sim_cuCtxPushCurrent(CUcontext ctx)
{
    return push(sim_ctx_of(ctx));
}

CUresult sim_cuCtxPopCurrent_v2(CUcontext *ctx)
{
    struct sim_thread *t = sim_thread();
    if (!t->depth)
        return E_CONTEXT;
    struct sim_ctx *c = t->stack[--t->depth];
    if (ctx)
        *ctx = (CUcontext)(void *)c;
    return E_OK;
}

CUresult sim_cuCtxPopCurrent(CUcontext *ctx)
{
    return sim_cuCtxPopCurrent_v2(ctx);
}

CUresult sim_cuCtxGetCurrent(CUcontext *ctx)
{
    *ctx = (CUcontext)(void *)sim_ctx_current();
    return sim_ready();
}

CUresult sim_cuCtxGetDevice(CUdevice *dev)
{
    struct sim_ctx *c = sim_ctx_current();
    if (c)
        *dev = (int)c->device;
    return c ? E_OK : E_CONTEXT;
}

CUresult sim_cuCtxGetDevice_v2(CUdevice *dev, CUcontext ctx)
{
    struct sim_ctx *c = ctx ? sim_ctx_of(ctx) : sim_ctx_current();
    if (c)
        *dev = (int)c->device;
    return c ? E_OK : E_CONTEXT;
}

CUresult sim_cuCtxGetFlags(unsigned int *flags)
{
    struct sim_ctx *c = sim_ctx_current();
    if (c)
        *flags = c->flags;
    return c ? E_OK : E_CONTEXT;
}

CUresult sim_cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    (void)ctx;
    *version = 3020;
    return E_OK;
}

CUresult sim_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return E_OK;
}

CUresult sim_cuCtxGetLimit(size_t *value, CUlimit limit)
{
    *value = limit == 0 ? 1024 : 8u << 20;
    return E_OK;
}

CUresult sim_cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
    struct sim_ctx *c = ctx ? sim_ctx_of(ctx) : sim_ctx_current();
    if (c)
        *id = c->legacy.id;
    return c ? E_OK : E_CONTEXT;
}
