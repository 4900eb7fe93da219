/* SPDX-License-Identifier: MIT
 * catalog.c - WSCInstallProvider, WSCDeinstallProvider, WSCEnumProtocols, WSCGetProviderPath over
 * the catalog's files, and the calls that say which directory is meant.
 */
#include "winapi/catalog.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "winapi/object.h"

#define PATH_BYTES (3 * MAX_PATH) /* UTF-8 of the longest path */

static _Atomic DWORD chosen_scope = SOFTND_CATALOG_AUTO;

static DWORD error_from_errno(int err) {
    switch (err) {
    case 0:
        return 0;
    case EACCES:
    case EPERM:
    case EROFS:
        return WSAEACCES;
    case ENOMEM:
        return WSA_NOT_ENOUGH_MEMORY;
    case EEXIST:
    case ENOENT:
        return WSAEINVAL;
    default:
        return WSASYSCALLFAILURE;
    }
}

/* SOCKET_ERROR, with the code where the caller wants it. */
static INT fail(LPINT error_number, DWORD error) {
    SetLastError(error);
    if (error_number) *error_number = (INT)error;
    return SOCKET_ERROR;
}

/* ---- install ---- */

/* Text that fits in one line of a file. */
static bool is_one_line(const char *s) {
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7F) return false;
    return true;
}

/* Neither blank at an end, which the file format would drop, nor control characters. */
static bool is_storable(const WCHAR *text, size_t units_max, char *utf8, size_t room) {
    size_t len = 0;
    while (len <= units_max && text[len])
        len++;
    if (len > units_max || wa_utf8_from_utf16(utf8, room, text) < 0) return false;
    size_t bytes = strlen(utf8);
    return is_one_line(utf8) && (bytes == 0 || (utf8[0] != ' ' && utf8[bytes - 1] != ' '));
}

/* Fills in a provider from the caller's arguments; 0 or a WSA code. */
static DWORD make_provider(struct wa_provider *p, const GUID *id, const WCHAR *dll_path,
                           const WSAPROTOCOL_INFOW *entries, DWORD count) {
    char path[PATH_BYTES], name[3 * (WSAPROTOCOL_LEN + 1)];
    memset(p, 0, sizeof *p);
    if (count == 0 || count > WA_PROVIDER_ENTRIES_MAX) return WSAEINVAL;
    if (!is_storable(dll_path, MAX_PATH - 1, path, sizeof path) || !path[0]) return WSAEINVAL;
    for (DWORD i = 0; i < count; i++)
        if (!is_storable(entries[i].szProtocol, WSAPROTOCOL_LEN, name, sizeof name))
            return WSAEINVAL;
    p->id = *id;
    p->count = count;
    p->path = strdup(path);
    p->entries = malloc(count * sizeof *entries);
    if (!p->path || !p->entries) {
        wa_provider_fini(p);
        return WSA_NOT_ENOUGH_MEMORY;
    }
    memcpy(p->entries, entries, count * sizeof *entries);
    return 0;
}

INT WSCInstallProvider(LPGUID provider_id, const WCHAR *dll_path, const LPWSAPROTOCOL_INFOW entries,
                       DWORD count, LPINT error_number) {
    if (!provider_id || !dll_path || !entries || !error_number)
        return fail(error_number, WSAEFAULT);
    struct wa_provider p;
    DWORD error = make_provider(&p, provider_id, dll_path, entries, count);
    if (error) return fail(error_number, error);
    DWORD scope = atomic_load(&chosen_scope);
    int err;
    char *dir = wa_catalog_dir(&scope, &err);
    if (dir)
        error = error_from_errno(wa_catalog_add(dir, scope, &p));
    else
        error = err == ENOENT ? WSASYSCALLFAILURE : error_from_errno(err);
    free(dir);
    wa_provider_fini(&p);
    return error ? fail(error_number, error) : 0;
}

/* ---- remove ---- */

/* The directory to remove from: the chosen one, else that of the entry that is in effect. */
static char *removal_dir(const GUID *id, int *err) {
    DWORD scope = atomic_load(&chosen_scope);
    if (scope == SOFTND_CATALOG_AUTO) {
        struct wa_catalog c;
        *err = wa_catalog_read(&c);
        if (*err) return NULL;
        const struct wa_provider *p = wa_catalog_find(&c, id);
        if (p) scope = p->scope;
        wa_catalog_fini(&c);
        *err = ENOENT;
        if (!p) return NULL;
    }
    return wa_catalog_dir(&scope, err);
}

INT WSCDeinstallProvider(LPGUID provider_id, LPINT error_number) {
    if (!provider_id || !error_number) return fail(error_number, WSAEFAULT);
    int err = 0;
    char *dir = removal_dir(provider_id, &err);
    if (dir) err = wa_catalog_remove(dir, provider_id);
    free(dir);
    return err ? fail(error_number, error_from_errno(err)) : 0;
}

/* ---- look ---- */

static bool is_wanted(const WSAPROTOCOL_INFOW *e, const INT *protocols) {
    if (!protocols) return true;
    for (; *protocols; protocols++)
        if (*protocols >= e->iProtocol &&
            (int64_t)*protocols <= (int64_t)e->iProtocol + e->iProtocolMaxOffset)
            return true;
    return false;
}

/* Counts the entries wanted; copies them too if `out` is not NULL. */
static DWORD select_entries(const struct wa_catalog *c, const INT *protocols,
                            WSAPROTOCOL_INFOW *out) {
    DWORD count = 0;
    for (size_t i = 0; i < c->count; i++)
        for (DWORD k = 0; k < c->providers[i].count; k++) {
            const WSAPROTOCOL_INFOW *e = &c->providers[i].entries[k];
            if (!is_wanted(e, protocols)) continue;
            if (out) memcpy(&out[count], e, sizeof *e);
            count++;
        }
    return count;
}

INT WSCEnumProtocols(LPINT protocols, LPWSAPROTOCOL_INFOW buffer, LPDWORD buffer_bytes,
                     LPINT error_number) {
    if (!buffer_bytes || !error_number) return fail(error_number, WSAEFAULT);
    struct wa_catalog c;
    int err = wa_catalog_read(&c);
    if (err) return fail(error_number, error_from_errno(err));
    DWORD count = select_entries(&c, protocols, NULL);
    DWORD need = count * (DWORD)sizeof *buffer;
    bool fits = buffer && *buffer_bytes >= need;
    if (fits) select_entries(&c, protocols, buffer);
    wa_catalog_fini(&c);
    /* An empty catalog asks for room too: nobody likes to allocate nothing and call again. */
    *buffer_bytes = fits || need > 0 ? need : (DWORD)sizeof *buffer;
    return fits ? (INT)count : fail(error_number, WSAENOBUFS);
}

/* Copies the path; 0 or a WSA code. */
static DWORD copy_path(const struct wa_provider *p, WCHAR *path, LPINT path_units) {
    WCHAR wide[MAX_PATH];
    int len = wa_utf16_from_utf8(wide, MAX_PATH, p->path);
    if (len < 0) return WSAEINVALIDPROVIDER; /* a file that nobody installed with our calls */
    bool fits = path && *path_units > len;
    *path_units = len + 1;
    if (!fits) return WSAEFAULT;
    memcpy(path, wide, ((size_t)len + 1) * sizeof *wide);
    return 0;
}

INT WSCGetProviderPath(LPGUID provider_id, WCHAR *path, LPINT path_units, LPINT error_number) {
    if (!provider_id || !path_units || !error_number) return fail(error_number, WSAEFAULT);
    struct wa_catalog c;
    int err = wa_catalog_read(&c);
    if (err) return fail(error_number, error_from_errno(err));
    const struct wa_provider *p = wa_catalog_find(&c, provider_id);
    DWORD error = p ? copy_path(p, path, path_units) : WSAEINVAL;
    wa_catalog_fini(&c);
    return error ? fail(error_number, error) : 0;
}

/* ---- which directory ---- */

BOOL SoftNdCatalogSetScope(DWORD scope) {
    if (scope > SOFTND_CATALOG_USER) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    atomic_store(&chosen_scope, scope);
    return TRUE;
}

/* Copies a text to the caller; frees it. */
static BOOL hand_out(char *text, char *out, SIZE_T room) {
    size_t need = text ? strlen(text) + 1 : 0;
    bool fits = text && out && need <= room;
    if (fits) memcpy(out, text, need);
    if (!fits) SetLastError(text ? ERROR_INSUFFICIENT_BUFFER : ERROR_NOT_ENOUGH_MEMORY);
    free(text);
    return fits;
}

BOOL SoftNdCatalogGetDirectory(DWORD scope, LPDWORD actual_scope, char *path, SIZE_T room) {
    int err;
    if (scope > SOFTND_CATALOG_USER || !path) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    char *dir = wa_catalog_dir(&scope, &err);
    if (!dir && err == ENOENT) {
        SetLastError(ERROR_PATH_NOT_FOUND);
        return FALSE;
    }
    if (actual_scope) *actual_scope = scope;
    return hand_out(dir, path, room);
}

BOOL SoftNdCatalogFindProvider(const GUID *provider_id, LPDWORD scope, char *file, SIZE_T room) {
    struct wa_catalog c;
    if (!provider_id || !file) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    if (wa_catalog_read(&c) != 0) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return FALSE;
    }
    const struct wa_provider *p = wa_catalog_find(&c, provider_id);
    BOOL found = FALSE;
    if (!p)
        SetLastError(ERROR_NOT_FOUND);
    else
        found = hand_out(p->file ? strdup(p->file) : NULL, file, room);
    if (found && scope) *scope = p->scope;
    wa_catalog_fini(&c);
    return found;
}
