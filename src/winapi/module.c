/* SPDX-License-Identifier: MIT
 * module.c - LoadLibrary and friends over dlopen. As on Windows a library that is loaded twice has
 * one handle, and every load needs its FreeLibrary.
 */
#include "winapi/object.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"

static pthread_mutex_t module_lock = PTHREAD_MUTEX_INITIALIZER; /* before table and object locks */
static struct sn_list modules;                                  /* [module_lock] */

static struct wa_object *object_of(struct sn_list *n) {
    struct wa_module *m = SN_CONTAINER(n, struct wa_module, node);
    return SN_CONTAINER(m, struct wa_object, u.module);
}

/* The module of this dlopen result, found or made, with one more load counted. */
static HMODULE module_for(void *dl) {
    HMODULE h = NULL;
    pthread_mutex_lock(&module_lock);
    if (!modules.next) sn_list_init(&modules);
    SN_LIST_FOR(it, &modules)
    if (object_of(it)->u.module.dl == dl) {
        struct wa_object *o = object_of(it);
        o->u.module.loads++;
        h = (HMODULE)(uintptr_t)atomic_load(&o->handle);
        break;
    }
    struct wa_object *o = h ? NULL : wa_object_create(WA_MODULE);
    if (o) {
        o->u.module.dl = dl;
        o->u.module.loads = 1;
        sn_list_push_back(&modules, &o->u.module.node);
        h = wa_object_open(o);
    }
    pthread_mutex_unlock(&module_lock);
    return h;
}

/* What Windows would call a failed dlopen: a file that is no library, or something not found. */
static DWORD load_error(const char *path) {
    char magic[4] = { 0 };
    if (!strchr(path, '/')) return ERROR_MOD_NOT_FOUND;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ERROR_MOD_NOT_FOUND;
    ssize_t n = read(fd, magic, sizeof magic);
    close(fd);
    return n == 4 && memcmp(magic, "\177ELF", 4) == 0 ? ERROR_MOD_NOT_FOUND : ERROR_BAD_EXE_FORMAT;
}

HMODULE LoadLibraryA(LPCSTR path) {
    if (!path || !*path) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    void *dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!dl) {
        SN_LOG(SN_LOG_INFO, "LoadLibrary(%s): %s", path, dlerror());
        SetLastError(load_error(path));
        return NULL;
    }
    HMODULE h = module_for(dl);
    if (!h) dlclose(dl);
    return h;
}

HMODULE LoadLibraryW(LPCWSTR path) {
    return LoadLibraryExW(path, NULL, 0);
}

HMODULE LoadLibraryExW(LPCWSTR path, HANDLE file, DWORD flags) {
    char utf8[PATH_MAX];
    if (!path || file || flags != 0 || wa_utf8_from_utf16(utf8, sizeof utf8, path) < 0) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    return LoadLibraryA(utf8);
}

FARPROC GetProcAddress(HMODULE module, LPCSTR name) {
    struct wa_object *o = wa_lookup_or_fail(module, WA_MODULE);
    if (!o) return NULL;
    union {
        void *object;
        FARPROC function;
    } symbol = { NULL };
    pthread_mutex_lock(&module_lock);
    /* Small numbers are ordinals; loads is 0 if another thread is just freeing the library. */
    if ((uintptr_t)name > 0xFFFF && o->u.module.loads > 0)
        symbol.object = dlsym(o->u.module.dl, name);
    pthread_mutex_unlock(&module_lock);
    wa_object_release(o);
    if (!symbol.object) SetLastError(ERROR_PROC_NOT_FOUND);
    return symbol.function;
}

BOOL FreeLibrary(HMODULE module) {
    struct wa_object *o = wa_lookup_or_fail(module, WA_MODULE);
    if (!o) return FALSE;
    pthread_mutex_lock(&module_lock);
    bool loaded = o->u.module.loads > 0;
    bool last = loaded && --o->u.module.loads == 0;
    void *dl = o->u.module.dl;
    if (last) {
        sn_list_remove(&o->u.module.node);
        wa_object_close(o, module);
    }
    pthread_mutex_unlock(&module_lock);
    if (loaded) dlclose(dl); /* outside the lock: it runs the library's destructors */
    if (last) wa_object_release(o);
    wa_object_release(o);
    if (!loaded) SetLastError(ERROR_INVALID_HANDLE);
    return loaded;
}
