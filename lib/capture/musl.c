/* In a program whose C library is musl. A preload for others gets there by inheritance and has
 * nothing to do, but its dlsym() is in the place of musl's, to which it must lead: there is no
 * dlvsym() that would find it, so it is read from the library's own symbol table. */
#include "gw.h"

#include <elf.h>
#include <link.h>

/* pre: the object is mapped by musl, which has relocated no pointer of its dynamic section. */
static void *defined(const struct dl_phdr_info *object, const ElfW(Dyn) * dynamic, const char *name)
{
    const ElfW(Sym) *symbols = NULL;
    const uint32_t *hash =
        NULL; /* buckets, symbols, ... : musl is linked with the old table, too */
    const char *strings = NULL;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        const void *p = (const void *)(object->dlpi_addr + dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_SYMTAB)
            symbols = p;
        else if (dynamic->d_tag == DT_STRTAB)
            strings = p;
        else if (dynamic->d_tag == DT_HASH)
            hash = p;
    }
    for (uint32_t i = 0; symbols && strings && hash && i < hash[1]; i++)
        if (symbols[i].st_shndx != SHN_UNDEF && strcmp(strings + symbols[i].st_name, name) == 0)
            return (void *)(object->dlpi_addr + symbols[i].st_value);
    return NULL;
}

static int look(struct dl_phdr_info *object, size_t size, void *found)
{
    extern const char __ehdr_start[] __attribute__((visibility("hidden")));
    (void)size;
    if (object->dlpi_addr == (uintptr_t)__ehdr_start)
        return 0; /* ours */
    for (unsigned i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            *(void **)found = defined(
                object, (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr), "dlsym");
    return *(void **)found != NULL;
}

void *gw_musl_dlsym(void)
{
    void *found = NULL;
    dl_iterate_phdr(look, &found);
    return found;
}
