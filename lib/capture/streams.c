/* Streams, contexts and devices: small ids for handles, and which device a call is for.
 *
 * Which device is current is followed through cudaSetDevice and the context calls rather
 * than asked for; only a context that was made out of our sight is asked about, once. */
#include "gw.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STREAMS  (1u << 13)
#define CONTEXTS 64u
#define DEVICES  64u
#define UNSEEN   0xff

struct stream {
    const void *handle;
    uint32_t thread; /* per-thread default stream: whose */
    uint8_t type;    /* enum gwt_stream_type; 0: empty */
    uint8_t device;
    uint8_t gone;
    uint16_t id;
};

static struct stream streams[STREAMS];
static uint32_t streams_used;
static uint32_t last_id;

static struct {
    const void *ctx;
    int device;
} contexts[CONTEXTS];
static uint32_t contexts_used;
static uint8_t device_known[DEVICES];

/* ---- devices ---------------------------------------------------------------------- */

static int attribute(CUdevice_attribute what, int device)
{
    int v = 0;
    return gw_driver.cuDeviceGetAttribute && gw_driver.cuDeviceGetAttribute(&v, what, device) == 0
               ? v
               : 0;
}

static unsigned long sysfs(const struct gwt_def_device *d, const char *file)
{
    char path[128], text[64] = "";
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%04x:%02x:%02x.0/%s", d->pci_domain,
             d->pci_bus, d->pci_device, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 ? strtoul(text, NULL, 10) : 0;
}

/* Per lane and direction, by generation: 2.5, 5, 8, 16, 32, 64 GT/s. */
static uint16_t generation(unsigned long gigatransfers)
{
    static const uint8_t rate[] = {0, 2, 5, 8, 16, 32, 64};
    for (uint16_t g = 6; g; g--)
        if (gigatransfers >= rate[g])
            return g;
    return 0;
}

/* pre:  locked. */
static void define_device(unsigned device)
{
    if (device >= DEVICES || device_known[device] || gw_capturing() || !gw_driver.cuDeviceGetName)
        return;
    char name[256] = "";
    size_t bytes = 0;
    device_known[device] = 1;
    if (gw_driver.cuDeviceGetName(name, sizeof name - 1, (CUdevice)device) != 0)
        return;
    if (gw_driver.cuDeviceTotalMem_v2)
        gw_driver.cuDeviceTotalMem_v2(&bytes, (CUdevice)device);
    struct gwt_def_device d = {
        .memory_bytes = bytes,
        .sms = (uint32_t)attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, (int)device),
        .pci_domain = (uint16_t)attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, (int)device),
        .pci_bus = (uint8_t)attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, (int)device),
        .pci_device = (uint8_t)attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, (int)device),
        .cc_major = (uint16_t)attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, (int)device),
        .cc_minor = (uint16_t)attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, (int)device),
    };
    d.pcie_gen = generation(sysfs(&d, "current_link_speed"));
    d.pcie_width = (uint16_t)sysfs(&d, "current_link_width");
    gw_define(GWT_DEF_DEVICE, device + 1, &d, sizeof d, name, strlen(name));
}

/* ---- contexts ------------------------------------------------------------------------ */

void gw_ctx_known(const void *ctx, int device)
{
    gw_lock();
    for (uint32_t i = 0; i < contexts_used; i++)
        if (contexts[i].ctx == ctx) {
            contexts[i].device = device;
            goto out;
        }
    if (contexts_used < CONTEXTS) {
        contexts[contexts_used].ctx = ctx;
        contexts[contexts_used].device = device;
        contexts_used++;
    }
out:
    gw_unlock();
}

/* A created context is current at once. */
void gw_ctx_created(const void *ctx, int device)
{
    gw_ctx_known(ctx, device);
    gw_set_device(device);
}

void gw_ctx_current(const void *ctx)
{
    if (!ctx)
        return;
    for (uint32_t i = 0; i < gw_load_relaxed(&contexts_used); i++)
        if (contexts[i].ctx == ctx) {
            gw_set_device(contexts[i].device);
            return;
        }
    CUdevice device;
    if (!gw_capturing() && gw_driver.cuCtxGetDevice && gw_driver.cuCtxGetDevice(&device) == 0) {
        gw_set_device(device);
        gw_ctx_known(ctx, device);
    }
}

void gw_ctx_popped(void)
{
    CUcontext ctx = NULL;
    if (!gw_capturing() && gw_driver.cuCtxGetCurrent && gw_driver.cuCtxGetCurrent(&ctx) == 0)
        gw_ctx_current(ctx);
}

/* ---- streams ---------------------------------------------------------------------------- */

/* CU_STREAM_LEGACY is 1 and CU_STREAM_PER_THREAD 2 (cuda.h); null is one of them by the name
 * that was called. */
static void classify(const struct gw_frame *f, uint32_t thread, struct stream *key)
{
    *key = (struct stream){.device = gw_device};
    if (f->no_stream)
        key->type = GWT_STREAM_NONE;
    else if ((uintptr_t)f->stream == 2 || (!f->stream && f->per_thread))
        key->type = GWT_STREAM_PER_THREAD, key->thread = thread;
    else if ((uintptr_t)f->stream <= 1)
        key->type = GWT_STREAM_LEGACY;
    else
        key->type = GWT_STREAM_USER, key->handle = f->stream;
}

static bool same(const struct stream *a, const struct stream *b)
{
    return a->type == b->type && a->handle == b->handle && a->thread == b->thread && !a->gone &&
           (a->device == b->device || a->type == GWT_STREAM_USER);
}

/* A stream belongs to its creator's device, whoever uses it: the handle alone tells. */
static uint32_t hash(const struct stream *key)
{
    uint32_t h = (uint32_t)((uintptr_t)key->handle >> 4) * 0x9e3779b1u;
    h ^= h >> 15;
    return key->type == GWT_STREAM_USER ? h : key->type + key->device * 7u + key->thread * 31u;
}

/* pre:  locked. */
static uint16_t add(const struct stream *key, unsigned nonblocking)
{
    uint32_t i = hash(key);
    while (streams[i & (STREAMS - 1)].type && !streams[i & (STREAMS - 1)].gone)
        i++;
    struct stream *s = &streams[i & (STREAMS - 1)];
    if ((!s->type && streams_used >= STREAMS / 4 * 3) || last_id >= UINT16_MAX)
        return 0;
    struct gwt_def_stream d = {.handle = (uint64_t)(uintptr_t)key->handle,
                               .type = key->type,
                               .device = key->device,
                               .nonblocking = (uint8_t)nonblocking,
                               .thread = key->thread};
    if (!gw_define(GWT_DEF_STREAM, last_id + 1, &d, sizeof d, NULL, 0))
        return 0;
    if (!s->type)
        streams_used++;
    *s = *key;
    s->id = (uint16_t)++last_id;
    define_device(key->device);
    return s->id;
}

/* Entries of streams that are gone stay in their chains until another takes their place. */
static struct stream *find(const struct stream *key)
{
    uint32_t i = hash(key);
    for (uint32_t n = 0; n < STREAMS && streams[i & (STREAMS - 1)].type; n++, i++)
        if (same(&streams[i & (STREAMS - 1)], key))
            return &streams[i & (STREAMS - 1)];
    return NULL;
}

uint16_t gw_stream_slow(struct gw_thread *t, const struct gw_frame *f)
{
    struct stream key;
    classify(f, t->id, &key);
    gw_lock();
    struct stream *s = find(&key);
    uint16_t id = s ? s->id : add(&key, key.type == GWT_STREAM_USER ? UNSEEN : 0);
    if (!device_known[key.device & (DEVICES - 1)])
        define_device(key.device);
    gw_unlock();
    return id;
}

void gw_stream_created(const void *handle, unsigned flags)
{
    struct stream key = {.handle = handle, .type = GWT_STREAM_USER, .device = gw_device};
    if (!handle || gw_load_acquire(&gw_state) != GW_ACTIVE)
        return;
    gw_lock();
    if (!find(&key)) /* both levels report the same creation */
        add(&key, flags & 1);
    gw_unlock();
}

void gw_stream_gone(const void *handle)
{
    struct stream key = {.handle = handle, .type = GWT_STREAM_USER, .device = gw_device};
    if (!handle || gw_load_acquire(&gw_state) != GW_ACTIVE)
        return;
    gw_lock();
    struct stream *s = find(&key);
    if (s) {
        s->gone = 1;
        gw_add_relaxed(&gw_streams_epoch, 1); /* forget cached ids */
    }
    gw_unlock();
}

/* The one question asked while a capture is active: allowed then, and 0.08 us. The null
 * streams are named explicitly, since the twin that was called decides which is meant. */
bool gw_stream_captures(const void *stream, bool per_thread)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!stream)
        stream = (const void *)(uintptr_t)(per_thread ? 2 : 1);
    return gw_driver.cuStreamIsCapturing &&
           gw_driver.cuStreamIsCapturing((CUstream)stream, &status) == 0 &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void gw_streams_reset(void)
{
    memset(streams, 0, sizeof streams);
    memset(device_known, 0, sizeof device_known);
    streams_used = last_id = contexts_used = 0;
    gw_set_device(0);
}
