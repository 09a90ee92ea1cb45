#include "run_target.h"
#include "tool.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#define OUR_MACHINE EM_NONE
#endif

#define SCRIPTS 4 /* interpreters that are scripts themselves */

static bool executable(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As execvp() looks. Malloc'ed; NULL: not found. */
static char *search(const char *command)
{
    const char *dirs = getenv("PATH");
    if (strchr(command, '/'))
        return access(command, F_OK) == 0 ? xstrdup(command) : NULL;
    if (!*command)
        return NULL;
    if (!dirs)
        dirs = "/bin:/usr/bin";
    for (const char *d = dirs;; d++) {
        size_t n = strcspn(d, ":");
        char *path = n ? xprintf("%.*s/%s", (int)n, d, command) : xprintf("./%s", command);
        if (executable(path))
            return path;
        free(path);
        d += n;
        if (!*d)
            return NULL;
    }
}

/* The program that a script's first line names, through env if need be. NULL: none. */
static char *interpreter(const char *line)
{
    char *copy = xstrdup(line + 2), *state = NULL, *found = NULL;
    copy[strcspn(copy, "\n")] = 0;
    char *word = strtok_r(copy, " \t", &state);
    const char *base = word && strrchr(word, '/') ? strrchr(word, '/') + 1 : word;
    if (base && !strcmp(base, "env"))
        do
            word = strtok_r(NULL, " \t", &state);
        while (word && (*word == '-' || strchr(word, '=')));
    if (word)
        found = search(word);
    free(copy);
    return found;
}

/* ---- ELF ------------------------------------------------------------------------ */

static char *elf_trouble(int fd, const Elf64_Ehdr *h, const char *path)
{
    if (h->e_ident[EI_CLASS] != ELFCLASS64)
        return xprintf("%s is a 32-bit program, the preload is 64-bit", path);
    if (OUR_MACHINE != EM_NONE && h->e_machine != OUR_MACHINE)
        return xprintf("%s is built for another processor", path);
    for (unsigned i = 0; i < h->e_phnum && i < 256; i++) {
        Elf64_Phdr ph;
        char loader[256] = "";
        if (pread(fd, &ph, sizeof(ph), (off_t)(h->e_phoff + i * sizeof(ph))) != sizeof(ph))
            return NULL;
        if (ph.p_type != PT_INTERP)
            continue;
        size_t n = ph.p_filesz < sizeof(loader) ? ph.p_filesz : sizeof(loader) - 1;
        if (pread(fd, loader, n, (off_t)ph.p_offset) < 0)
            return NULL;
        loader[n] = 0;
        if (strstr(loader, "ld-musl"))
            return xprintf("%s uses musl, the preload needs glibc", path);
        return NULL;
    }
    return xprintf("%s is statically linked: nothing can be preloaded into it", path);
}

/* The loader drops LD_PRELOAD where a program gains rights by being executed. */
static char *rights_trouble(int fd, const char *path)
{
    struct stat st;
    if (fstat(fd, &st))
        return NULL;
    if ((st.st_mode & S_ISUID && st.st_uid != getuid()) ||
        (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getgid()))
        return xprintf("%s is set-user-ID or set-group-ID: the loader ignores LD_PRELOAD; run "
                       "gpuwait inside it",
                       path);
    if (getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0)
        return xprintf("%s has file capabilities: the loader ignores LD_PRELOAD", path);
    return NULL;
}

void target_inspect(const char *command, struct target *out)
{
    *out = (struct target){.path = search(command)};
    char *at = out->path ? xstrdup(out->path) : NULL;
    for (int depth = 0; at && depth < SCRIPTS; depth++) {
        union {
            Elf64_Ehdr elf;
            char text[512];
        } head = {.text = ""};
        int fd = open(at, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        ssize_t n = fd < 0 ? -1 : pread(fd, &head, sizeof(head) - 1, 0);
        char *next = NULL;
        if (n > 2 && !memcmp(head.text, "#!", 2))
            next = interpreter(head.text);
        else if (n >= (ssize_t)sizeof(head.elf) && !memcmp(head.text, ELFMAG, SELFMAG)) {
            out->program = xstrdup(at);
            out->why_not = rights_trouble(fd, at);
            if (!out->why_not)
                out->why_not = elf_trouble(fd, &head.elf, at);
        }
        if (fd >= 0)
            close(fd);
        free(at);
        at = next;
    }
    free(at);
}

void target_free(struct target *t)
{
    free(t->path);
    free(t->program);
    free(t->why_not);
}

const char *target_elsewhere(const char *command)
{
    static const struct {
        const char *name, *hint;
    } rows[] = {
        {"docker", "in a container"},      {"podman", "in a container"},
        {"nerdctl", "in a container"},     {"apptainer", "in a container"},
        {"singularity", "in a container"}, {"enroot", "in a container"},
        {"kubectl", "on another machine"}, {"ssh", "on another machine"},
        {"sbatch", "as a later job"},      {"sudo", "with a fresh environment"},
    };
    const char *base = strrchr(command, '/') ? strrchr(command, '/') + 1 : command;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (!strcmp(base, rows[i].name))
            return rows[i].hint;
    return NULL;
}
