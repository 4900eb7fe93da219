/* SPDX-License-Identifier: MIT
 * catalog_dir.c - the catalog's directories. A writer holds the directory's lock file, writes a
 * hidden temporary file, syncs it and renames it into place; whatever happens in between, readers
 * see the file whole or not at all, and the next writer removes what was left behind.
 */
#include "winapi/catalog.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/log.h"

#ifndef SOFTND_SYSCONFDIR
#define SOFTND_SYSCONFDIR "/etc"
#endif
#define SUFFIX ".conf"
#define TEMP_PREFIX ".new."
#define LOCK_NAME ".lock" /* mode 0600: only the owner can block writers with it */
#define FIRST_ENTRY_ID 1001

const char *wa_catalog_system_dir = SOFTND_SYSCONFDIR "/softnd/catalog.d";

/* ---- where ---- */

static char *join(const char *a, const char *b) {
    char *s;
    return asprintf(&s, "%s/%s", a, b) < 0 ? NULL : s;
}

/* The user's directory, malloc'd; NULL and ENOENT if it cannot be told. */
static char *user_dir(int *error) {
    const char *xdg = secure_getenv("XDG_CONFIG_HOME"), *home = secure_getenv("HOME");
    *error = ENOMEM;
    if (xdg && *xdg == '/') return join(xdg, "softnd/catalog.d");
    if (home && *home == '/') return join(home, ".config/softnd/catalog.d");
    struct passwd entry, *pw = NULL;
    char text[4096];
    if (getpwuid_r(geteuid(), &entry, text, sizeof text, &pw) == 0 && pw && *pw->pw_dir == '/')
        return join(pw->pw_dir, ".config/softnd/catalog.d");
    *error = ENOENT;
    return NULL;
}

/* Could this process make files there, after making the directory if needed? Changes nothing: asks
 * the directory or the nearest one above it that exists. */
static bool can_write(const char *dir) {
    char path[PATH_MAX];
    bool ok = false;
    if (strlen(dir) >= sizeof path) return false;
    strcpy(path, dir);
    while (!ok) {
        ok = faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0;
        char *slash = strrchr(path, '/');
        if (ok || errno != ENOENT || !slash || path[1] == 0) break;
        slash[slash == path] = 0; /* the slash itself stays if it is the root */
    }
    return ok;
}

char *wa_catalog_dir(DWORD *scope, int *error) {
    const char *private_dir = secure_getenv("SOFTND_CATALOG");
    *error = ENOMEM;
    if (private_dir && *private_dir) {
        *scope = SOFTND_CATALOG_PRIVATE;
        return strdup(private_dir);
    }
    if (*scope == SOFTND_CATALOG_AUTO) {
        *scope = SOFTND_CATALOG_USER;
        char *dir = can_write(wa_catalog_system_dir) ? NULL : user_dir(error);
        if (dir) return dir;
        *scope = SOFTND_CATALOG_SYSTEM;
    }
    if (*scope == SOFTND_CATALOG_USER) return user_dir(error);
    *error = ENOMEM;
    return strdup(wa_catalog_system_dir);
}

/* ---- reading ---- */

static int read_all(int fd, char **text, const char **wrong) {
    struct stat st;
    if (fstat(fd, &st) != 0) return errno;
    if (!S_ISREG(st.st_mode) || st.st_size > (off_t)WA_CATALOG_FILE_BYTES_MAX) {
        *wrong = "not a regular file of reasonable size";
        return EINVAL;
    }
    char *buf = malloc((size_t)st.st_size + 1);
    if (!buf) return ENOMEM;
    size_t used = 0;
    ssize_t n;
    while (used < (size_t)st.st_size &&
           ((n = read(fd, buf + used, (size_t)st.st_size - used)) > 0 || (n < 0 && errno == EINTR)))
        used += n > 0 ? (size_t)n : 0;
    buf[used] = 0;
    if (strlen(buf) != used) *wrong = "holds a zero byte";
    if (used < (size_t)st.st_size) *wrong = "cannot be read to its end";
    if (!*wrong) {
        *text = buf;
        return 0;
    }
    free(buf);
    return EINVAL;
}

/* Reads one file; 0, ENOENT if it is gone, ENOMEM, or EINVAL with a log line. */
static int read_file(int dir_fd, const char *dir, const char *name, struct wa_provider *p) {
    char *text = NULL;
    const char *wrong = NULL;
    unsigned line = 0;
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int err = fd < 0 ? errno : read_all(fd, &text, &wrong);
    if (fd >= 0) close(fd);
    if (err == ENOENT || err == ENOMEM) return err;
    if (err == 0) wrong = wa_provider_parse(p, text, &line);
    free(text);
    if (err == 0 && !wrong) return 0;
    if (wrong == wa_no_memory) return ENOMEM;
    if (!wrong) wrong = strerror(err);
    SN_LOG(SN_LOG_WARN, "provider catalog: %s/%s skipped: line %u: %s", dir, name, line, wrong);
    return EINVAL;
}

static int is_catalog_file(const struct dirent *d) {
    size_t len = strlen(d->d_name);
    return d->d_name[0] != '.' && len > strlen(SUFFIX) &&
           strcmp(d->d_name + len - strlen(SUFFIX), SUFFIX) == 0;
}

/* By bytes, so that the order does not depend on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Calls each(arg, provider) for every readable file in order; the callee takes the provider.
 * Stops at, and returns, the first error that is not about a single file. */
static int for_each_file(const char *dir, DWORD scope, int (*each)(void *, struct wa_provider *),
                         void *arg) {
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0) {
        if (errno != ENOENT)
            SN_LOG(SN_LOG_WARN, "provider catalog: %s skipped: %s", dir, strerror(errno));
        return errno == ENOMEM ? ENOMEM : 0;
    }
    struct dirent **names = NULL;
    int count = scandirat(dir_fd, ".", &names, is_catalog_file, by_name);
    int err = count < 0 ? errno : 0;
    for (int i = 0; i < count; i++) {
        struct wa_provider p;
        int file_err = err ? err : read_file(dir_fd, dir, names[i]->d_name, &p);
        if (file_err == 0) {
            p.scope = scope;
            p.file = join(dir, names[i]->d_name);
            err = p.file ? each(arg, &p) : ENOMEM;
            if (!p.file) wa_provider_fini(&p);
        } else if (file_err == ENOMEM) {
            err = ENOMEM;
        }
        free(names[i]);
    }
    free(names);
    close(dir_fd);
    return err;
}

static int append(void *arg, struct wa_provider *p) {
    struct wa_catalog *c = arg;
    const struct wa_provider *known = wa_catalog_find(c, &p->id);
    struct wa_provider *grown = NULL;
    if (known)
        SN_LOG(SN_LOG_INFO, "provider catalog: %s skipped: same provider as %s", p->file,
               known->file);
    else
        grown = realloc(c->providers, (c->count + 1) * sizeof *grown);
    if (!grown) {
        wa_provider_fini(p);
        return known ? 0 : ENOMEM;
    }
    c->providers = grown;
    c->providers[c->count++] = *p;
    return 0;
}

int wa_catalog_read(struct wa_catalog *c) {
    DWORD scope = SOFTND_CATALOG_SYSTEM;
    int err, ignored;
    memset(c, 0, sizeof *c);
    char *first = wa_catalog_dir(&scope, &err);
    if (!first) return err;
    err = for_each_file(first, scope, append, c);
    free(first);
    if (err == 0 && scope == SOFTND_CATALOG_SYSTEM) {
        scope = SOFTND_CATALOG_USER;
        char *second = wa_catalog_dir(&scope, &ignored);
        if (second) err = for_each_file(second, scope, append, c);
        free(second);
    }
    if (err) wa_catalog_fini(c);
    return err;
}

void wa_catalog_fini(struct wa_catalog *c) {
    for (size_t i = 0; i < c->count; i++)
        wa_provider_fini(&c->providers[i]);
    free(c->providers);
    memset(c, 0, sizeof *c);
}

const struct wa_provider *wa_catalog_find(const struct wa_catalog *c, const GUID *id) {
    for (size_t i = 0; i < c->count; i++)
        if (memcmp(&c->providers[i].id, id, sizeof *id) == 0) return &c->providers[i];
    return NULL;
}

/* ---- writing ---- */

/* Makes the directory and those above it that are missing, with exactly this mode. */
static int make_dirs(const char *dir, mode_t mode) {
    char *path = strdup(dir);
    if (!path) return ENOMEM;
    int err = 0;
    for (char *slash = path + 1; !err && slash;) {
        slash = strchr(slash, '/');
        if (slash) *slash = 0;
        if (mkdir(path, mode) == 0)
            err = chmod(path, mode) == 0 ? 0 : errno; /* whatever the umask says */
        else if (errno != EEXIST)
            err = errno;
        if (slash) *slash++ = '/';
    }
    free(path);
    /* Something above that cannot be written but exists has answered EACCES, EROFS or the like. */
    struct stat st;
    if (err && err != ENOTDIR && stat(dir, &st) == 0 && S_ISDIR(st.st_mode)) return 0;
    return err;
}

struct writer {
    int dir_fd;
    int lock_fd;
};

/* Opens the directory and waits for its lock, which the kernel drops should this process die. */
static int begin_write(struct writer *w, const char *dir) {
    w->lock_fd = -1;
    w->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->dir_fd < 0) return errno;
    w->lock_fd = openat(w->dir_fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int err = w->lock_fd < 0 ? errno : 0;
    while (!err && flock(w->lock_fd, LOCK_EX) != 0)
        if (errno != EINTR) err = errno;
    if (!err) return 0;
    if (w->lock_fd >= 0) close(w->lock_fd);
    close(w->dir_fd);
    return err;
}

static void end_write(struct writer *w) {
    close(w->lock_fd);
    close(w->dir_fd);
}

static int is_leftover(const struct dirent *d) {
    return strncmp(d->d_name, TEMP_PREFIX, strlen(TEMP_PREFIX)) == 0;
}

/* With the lock held, any temporary file is one that a killed writer left behind. */
static void remove_leftovers(const struct writer *w) {
    struct dirent **names = NULL;
    int count = scandirat(w->dir_fd, ".", &names, is_leftover, NULL);
    for (int i = 0; i < count; i++) {
        unlinkat(w->dir_fd, names[i]->d_name, 0);
        free(names[i]);
    }
    free(names);
}

static int sync_dir(const struct writer *w) {
    if (fsync(w->dir_fd) == 0 || errno == EINVAL) return 0; /* some systems cannot */
    return errno;
}

static int write_all(int fd, const char *text) {
    size_t left = strlen(text);
    while (left > 0) {
        ssize_t n = write(fd, text, left);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        text += n;
        left -= (size_t)n;
    }
    return 0;
}

/* The file appears under its name with this text, or not at all. */
static int publish(const struct writer *w, const char *name, const char *text) {
    char temp[sizeof TEMP_PREFIX + WA_GUID_TEXT_BYTES + sizeof SUFFIX];
    snprintf(temp, sizeof temp, TEMP_PREFIX "%s", name);
    int fd = openat(w->dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return errno;
    int err = fchmod(fd, 0644) == 0 ? 0 : errno; /* whatever the umask says */
    if (!err) err = write_all(fd, text);
    if (!err && fsync(fd) != 0) err = errno;
    if (close(fd) != 0 && !err) err = errno;
    if (!err && renameat(w->dir_fd, temp, w->dir_fd, name) != 0) err = errno;
    if (err) {
        unlinkat(w->dir_fd, temp, 0);
        return err;
    }
    err = sync_dir(w);
    if (err) unlinkat(w->dir_fd, name, 0);
    return err;
}

static DWORD next_entry_id(const struct wa_catalog *c) {
    DWORD next = FIRST_ENTRY_ID;
    for (size_t i = 0; i < c->count; i++)
        for (DWORD k = 0; k < c->providers[i].count; k++) {
            DWORD id = c->providers[i].entries[k].dwCatalogEntryId;
            if (id >= next && id < UINT32_MAX - WA_PROVIDER_ENTRIES_MAX) next = id + 1;
        }
    return next;
}

static int add_locked(const struct writer *w, struct wa_provider *p) {
    struct wa_catalog c;
    int err = wa_catalog_read(&c);
    if (err) return err;
    DWORD id = next_entry_id(&c);
    bool known = wa_catalog_find(&c, &p->id) != NULL;
    wa_catalog_fini(&c);
    if (known) return EEXIST;
    for (DWORD i = 0; i < p->count; i++) {
        p->entries[i].ProviderId = p->id;
        p->entries[i].dwCatalogEntryId = id + i;
    }
    char guid[WA_GUID_TEXT_BYTES], name[WA_GUID_TEXT_BYTES + sizeof SUFFIX];
    wa_guid_format(guid, &p->id);
    snprintf(name, sizeof name, "%.36s" SUFFIX, guid + 1); /* without the braces */
    char *text = wa_provider_format(p);
    if (!text) return ENOMEM;
    remove_leftovers(w);
    err = publish(w, name, text);
    free(text);
    return err;
}

int wa_catalog_add(const char *dir, DWORD scope, struct wa_provider *p) {
    struct writer w;
    int err = make_dirs(dir, scope == SOFTND_CATALOG_SYSTEM ? 0755 : 0700);
    if (!err) err = begin_write(&w, dir);
    if (!err) {
        err = add_locked(&w, p);
        end_write(&w);
    }
    if (err && err != EEXIST)
        SN_LOG(SN_LOG_WARN, "provider catalog: nothing installed in %s: %s", dir, strerror(err));
    return err;
}

struct removal {
    const struct writer *w;
    const GUID *id;
    int found;
};

static int remove_if_same(void *arg, struct wa_provider *p) {
    struct removal *r = arg;
    int err = 0;
    if (memcmp(&p->id, r->id, sizeof p->id) == 0) {
        r->found++;
        if (unlinkat(r->w->dir_fd, strrchr(p->file, '/') + 1, 0) != 0) err = errno;
    }
    wa_provider_fini(p);
    return err;
}

int wa_catalog_remove(const char *dir, const GUID *id) {
    struct writer w;
    int err = begin_write(&w, dir);
    if (!err) {
        struct removal r = { &w, id, 0 };
        err = for_each_file(dir, 0, remove_if_same, &r);
        if (!err && r.found == 0) err = ENOENT;
        if (!err) err = sync_dir(&w);
        end_write(&w);
    }
    if (err && err != ENOENT)
        SN_LOG(SN_LOG_WARN, "provider catalog: removing from %s: %s", dir, strerror(err));
    return err;
}
