/* Tables from the definition log, and the accessors that read them. */
#include "reader_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BLOCK (256u * 1024)
#define FACTS_MAX   4096u /* replacing one looks at all of them */
#define ENTRY_MAX   (4u * 1024 * 1024)
#define NO_DEVICE   0xff

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    uint8_t bytes[];
};

static void *arena_take(struct defs *d, size_t size)
{
    struct arena_block *b = d->blocks;
    void *out;

    size = (size + 7) & ~(size_t)7;
    if (!b || b->size - b->used < size) {
        size_t room = size > ARENA_BLOCK ? size : ARENA_BLOCK;

        b = malloc(sizeof(*b) + room);
        if (!b)
            return NULL;
        b->size = room;
        b->used = 0;
        b->next = d->blocks;
        d->blocks = b;
    }
    out = b->bytes + b->used;
    b->used += size;
    return out;
}

/* ---- a hash table by type and id: ids are dense, but the file need not be honest ---------- */

static uint64_t key_of(unsigned type, uint32_t id)
{
    return (uint64_t)type << 32 | id;
}

static size_t slot_of(const struct defs *d, uint64_t key)
{
    size_t i = (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (d->room - 1);

    while (d->table[i] && d->keys[i] != key)
        i = (i + 1) & (d->room - 1);
    return i;
}

static int grow(struct defs *d)
{
    struct defs wider = {.room = d->room ? 2 * d->room : 1024};

    wider.table = calloc(wider.room, sizeof(*wider.table));
    wider.keys = malloc(wider.room * sizeof(*wider.keys));
    if (!wider.table || !wider.keys) {
        free(wider.table);
        free(wider.keys);
        return -ENOMEM;
    }
    for (size_t i = 0; i < d->room; i++) {
        if (d->table[i]) {
            size_t to = slot_of(&wider, d->keys[i]);

            wider.table[to] = d->table[i];
            wider.keys[to] = d->keys[i];
        }
    }
    free(d->table);
    free(d->keys);
    d->table = wider.table;
    d->keys = wider.keys;
    d->room = wider.room;
    return 0;
}

static int put(struct defs *d, unsigned type, struct def *def)
{
    uint64_t key = key_of(type, def->id);
    size_t i;

    if (d->count >= d->room / 2 && grow(d))
        return -ENOMEM;
    i = slot_of(d, key);
    d->count += !d->table[i];
    d->table[i] = def;
    d->keys[i] = key;
    return 0;
}

const struct def *gwt_def(const struct defs *d, enum gwt_def_type type, uint32_t id)
{
    return d->room ? d->table[slot_of(d, key_of(type, id))] : NULL;
}

uint32_t gwt_defs_next(const struct defs *d, enum gwt_def_type type, size_t *cursor)
{
    while (*cursor < d->room) {
        size_t i = (*cursor)++;

        if (d->table[i] && d->keys[i] >> 32 == type)
            return (uint32_t)d->keys[i];
    }
    return 0;
}

/* ---- the log ------------------------------------------------------------------------------ */

/* Whether the payload is what its type says it is: accessors rely on it. */
static bool payload_sound(const struct gwt_def *h, const uint8_t *payload)
{
    static const struct {
        uint32_t size, id_max;
    } least[] = {
        [GWT_DEF_FACT] = {1, 0},
        [GWT_DEF_API] = {sizeof(struct gwt_def_api), GWT_API_PSEUDO - 1},
        [GWT_DEF_STRING] = {0, GWT_ID_MAX},
        [GWT_DEF_SIGNATURE] = {sizeof(struct gwt_def_signature), GWT_ID_MAX},
        [GWT_DEF_STREAM] = {sizeof(struct gwt_def_stream), UINT16_MAX},
        [GWT_DEF_THREAD] = {sizeof(struct gwt_def_thread), GWT_ID_MAX},
        [GWT_DEF_GRAPH] = {sizeof(struct gwt_def_graph), GWT_ID_MAX},
        [GWT_DEF_DEVICE] = {sizeof(struct gwt_def_device), NO_DEVICE},
        [GWT_DEF_COMM] = {offsetof(struct gwt_def_comm, identity), GWT_COMM_MAX},
        [GWT_DEF_STACK] = {sizeof(struct gwt_def_stack), GWT_ID_MAX},
    };

    if (h->size < least[h->type].size || h->id > least[h->type].id_max)
        return false;
    if (h->type != GWT_DEF_FACT && !h->id)
        return false;
    if (h->type == GWT_DEF_GRAPH) {
        struct gwt_def_graph g;

        memcpy(&g, payload, sizeof(g));
        return g.items <= (h->size - sizeof(g)) / sizeof(struct gwt_graph_item);
    }
    if (h->type == GWT_DEF_STACK) {
        struct gwt_def_stack k;

        memcpy(&k, payload, sizeof(k));
        return k.frames <= GWT_STACK_FRAMES_MAX &&
               k.frames <= (h->size - sizeof(k)) / sizeof(struct gwt_stack_frame);
    }
    return true;
}

static int put_fact(struct defs *d, const struct def *def)
{
    const char *key = (const char *)def->bytes;
    size_t length = strnlen(key, def->size);
    /* without a value: the NUL that follows every payload */
    const char *value = key + (length < def->size ? length + 1 : length);
    size_t i = 0;

    while (i < d->facts_count && strcmp(d->facts[i].key, key))
        i++;
    if (i == FACTS_MAX) {
        d->bad++;
        return 0;
    }
    if (!d->facts) {
        d->facts = malloc(FACTS_MAX * sizeof(*d->facts));
        if (!d->facts)
            return -ENOMEM;
    }
    d->facts[i].key = key;
    d->facts[i].value = value;
    d->facts_count += i == d->facts_count;
    return 0;
}

static int put_entry(struct defs *d, const struct gwt_def *h, const uint8_t *payload)
{
    /* What the first dumps did not have of a struct is 0. */
    size_t least = h->type == GWT_DEF_COMM ? sizeof(struct gwt_def_comm) : 0;
    size_t room = h->size > least ? h->size : least;
    struct def *def = arena_take(d, sizeof(*def) + room + 1);

    if (!def)
        return -ENOMEM;
    def->size = h->size;
    def->id = h->id;
    memcpy(def->bytes, payload, h->size);
    memset(def->bytes + h->size, 0, room + 1 - h->size);
    if (h->type == GWT_DEF_FACT)
        return put_fact(d, def);
    if (h->type == GWT_DEF_API) {
        const struct gwt_def_api *api = (const void *)def->bytes;

        d->kind[h->id] = api->kind < GWT_KIND_COUNT ? api->kind : GWT_NONE;
        d->level[h->id] = api->level;
    } else if (h->type == GWT_DEF_STREAM) {
        d->device[h->id] = ((const struct gwt_def_stream *)def->bytes)->device;
    }
    return put(d, h->type, def);
}

long gwt_defs_parse(struct defs *d, const uint8_t *bytes, size_t size)
{
    size_t at = 0;

    while (size - at >= sizeof(struct gwt_def)) {
        struct gwt_def h;
        size_t padded;

        memcpy(&h, bytes + at, sizeof(h));
        if (h.size > ENTRY_MAX) { /* out of step; the next chunk starts with an entry again */
            d->bad++;
            return (long)size;
        }
        padded = ((size_t)h.size + 7) & ~(size_t)7;
        if (padded > size - at - sizeof(h))
            break;
        if (h.type >= GWT_DEF_FACT && h.type <= GWT_DEF_STACK) { /* else of a later version */
            if (!payload_sound(&h, bytes + at + sizeof(h)))
                d->bad++;
            else if (put_entry(d, &h, bytes + at + sizeof(h)))
                return -ENOMEM;
        }
        at += sizeof(h) + padded;
    }
    return (long)at;
}

void gwt_defs_start(struct defs *d)
{
    memset(d->device, NO_DEVICE, sizeof(d->device));
    for (unsigned kind = 0; kind < GWT_KIND_COUNT; kind++)
        d->kind[GWT_API_PSEUDO + kind] = (uint8_t)kind;
}

void gwt_defs_free(struct defs *d)
{
    while (d->blocks) {
        struct arena_block *next = d->blocks->next;

        free(d->blocks);
        d->blocks = next;
    }
    free(d->table);
    free(d->keys);
    free(d->facts);
}

/* ---- accessors ---------------------------------------------------------------------------- */

const char *gwt_fact(const struct gwt_trace *t, const char *key)
{
    for (size_t i = 0; i < t->defs.facts_count; i++)
        if (!strcmp(t->defs.facts[i].key, key))
            return t->defs.facts[i].value;
    return NULL;
}

bool gwt_fact_at(const struct gwt_trace *t, size_t index, const char **key, const char **value)
{
    if (index >= t->defs.facts_count)
        return false;
    *key = t->defs.facts[index].key;
    *value = t->defs.facts[index].value;
    return true;
}

const char *gwt_string(const struct gwt_trace *t, uint32_t id)
{
    const struct def *def = gwt_def(&t->defs, GWT_DEF_STRING, id);

    return def ? (const char *)def->bytes : NULL;
}

const char *gwt_kind_name(enum gwt_kind kind)
{
    static const char *const names[] = {
#define X(name, number) [number] = #name,
        GWT_KINDS(X)
#undef X
    };

    return (unsigned)kind < GWT_KIND_COUNT ? names[kind] : NULL;
}

const char *gwt_api_name(const struct gwt_trace *t, uint16_t api)
{
    const struct def *def;

    if (api >= GWT_API_PSEUDO)
        return gwt_kind_name(api - GWT_API_PSEUDO);
    def = gwt_def(&t->defs, GWT_DEF_API, api);
    return def ? (const char *)def->bytes + sizeof(struct gwt_def_api) : NULL;
}

bool gwt_signature(const struct gwt_trace *t, uint32_t id, struct gwt_signature_info *out)
{
    const struct def *def = gwt_def(&t->defs, GWT_DEF_SIGNATURE, id);
    const struct gwt_def_signature *s;

    if (!def)
        return false;
    s = (const void *)def->bytes;
    *out = (struct gwt_signature_info){
        .name = gwt_string(t, s->name), .name_id = s->name, .shared = s->shared};
    memcpy(out->grid, s->grid, sizeof(out->grid));
    memcpy(out->block, s->block, sizeof(out->block));
    return true;
}

const struct gwt_def_stream *gwt_stream(const struct gwt_trace *t, uint16_t id)
{
    const struct def *def = gwt_def(&t->defs, GWT_DEF_STREAM, id);

    return def ? (const void *)def->bytes : NULL;
}

bool gwt_graph(const struct gwt_trace *t, uint32_t id, struct gwt_graph_info *out)
{
    const struct def *def = gwt_def(&t->defs, GWT_DEF_GRAPH, id);

    if (!def)
        return false;
    out->graph = (const void *)def->bytes;
    out->items = (const void *)(def->bytes + sizeof(*out->graph));
    return true;
}

const struct gwt_def_device *gwt_device(const struct gwt_trace *t, unsigned ordinal,
                                        const char **name)
{
    const struct def *def =
        ordinal < NO_DEVICE ? gwt_def(&t->defs, GWT_DEF_DEVICE, ordinal + 1) : NULL;

    if (!def)
        return NULL;
    if (name)
        *name = (const char *)def->bytes + sizeof(struct gwt_def_device);
    return (const void *)def->bytes;
}

const struct gwt_def_comm *gwt_comm(const struct gwt_trace *t, uint32_t id)
{
    const struct def *def = gwt_def(&t->defs, GWT_DEF_COMM, id);

    return def ? (const void *)def->bytes : NULL;
}

bool gwt_stack(const struct gwt_trace *t, uint32_t id, struct gwt_stack_info *out)
{
    const struct def *def = gwt_def(&t->defs, GWT_DEF_STACK, id);

    if (!def)
        return false;
    out->count = ((const struct gwt_def_stack *)def->bytes)->frames;
    out->frames = (const void *)(def->bytes + sizeof(struct gwt_def_stack));
    return true;
}
