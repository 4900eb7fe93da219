/* SPDX-License-Identifier: MIT
 * wsc_catalog.c - see wsc_catalog.h.
 */
#define WINSOCK_API_LINKAGE /* these are definitions, not imports */
#include "wsc_catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX 64
#define PATH_UNITS 260

struct entry {
    WSAPROTOCOL_INFOW info;
    WCHAR path[PATH_UNITS];
};

static struct entry entries[ENTRIES_MAX];
static size_t count;

static bool variable(const WCHAR *name, WCHAR *out, DWORD units) {
    DWORD n = GetEnvironmentVariableW(name, out, units);
    return n != 0 && n < units;
}

/* No file is an empty catalog. */
static void read_file(void) {
    WCHAR name[PATH_UNITS];
    count = 0;
    FILE *f = variable(WSC_CATALOG_FILE, name, PATH_UNITS) ? _wfopen(name, L"rb") : NULL;
    if (!f) return;
    count = fread(entries, sizeof entries[0], ENTRIES_MAX, f);
    fclose(f);
}

static bool write_file(void) {
    WCHAR name[PATH_UNITS];
    FILE *f = variable(WSC_CATALOG_FILE, name, PATH_UNITS) ? _wfopen(name, L"wb") : NULL;
    if (!f) return false;
    bool ok = fwrite(entries, sizeof entries[0], count, f) == count;
    return fclose(f) == 0 && ok;
}

static size_t find(const GUID *id) {
    size_t i = 0;
    while (i < count && memcmp(&entries[i].info.ProviderId, id, sizeof *id) != 0)
        i++;
    return i;
}

static int fail(INT *error, INT value) {
    if (error) *error = value;
    return SOCKET_ERROR;
}

static bool is_elevated(void) {
    WCHAR value[8];
    return !variable(WSC_CATALOG_NOT_ELEVATED, value, 8);
}

int WSPAPI WSCEnumProtocols(LPINT protocols, LPWSAPROTOCOL_INFOW buffer, LPDWORD bytes,
                            LPINT error) {
    (void)protocols; /* nobody asks for fewer than all */
    read_file();
    DWORD need = (DWORD)(count * sizeof *buffer);
    if (!buffer || *bytes < need) {
        *bytes = need;
        return fail(error, WSAENOBUFS);
    }
    for (size_t i = 0; i < count; i++)
        buffer[i] = entries[i].info;
    *bytes = need;
    return (int)count;
}

int WSPAPI WSCGetProviderPath(LPGUID id, WCHAR *path, LPINT units, LPINT error) {
    read_file();
    size_t i = find(id);
    if (i == count) return fail(error, WSAEINVAL);
    INT need = (INT)wcslen(entries[i].path) + 1;
    if (*units < need) {
        *units = need;
        return fail(error, WSAEFAULT);
    }
    memcpy(path, entries[i].path, (size_t)need * sizeof *path);
    *units = need;
    return 0;
}

int WSPAPI WSCInstallProvider(LPGUID id, const WCHAR *path, const LPWSAPROTOCOL_INFOW list, DWORD n,
                              LPINT error) {
    if (!is_elevated()) return fail(error, WSANO_RECOVERY);
    if (wcslen(path) >= PATH_UNITS) return fail(error, WSAEINVAL);
    read_file();
    if (n == 0 || n > ENTRIES_MAX - count) return fail(error, WSANO_RECOVERY);
    if (find(id) != count) return fail(error, WSANO_RECOVERY);
    for (DWORD i = 0; i < n; i++) {
        struct entry *e = &entries[count++];
        *e = (struct entry){ .info = list[i] };
        e->info.ProviderId = *id;
        e->info.dwCatalogEntryId = 1000 + (DWORD)count;
        wcscpy(e->path, path);
    }
    return write_file() ? 0 : fail(error, WSASYSCALLFAILURE);
}

int WSPAPI WSCDeinstallProvider(LPGUID id, LPINT error) {
    if (!is_elevated()) return fail(error, WSANO_RECOVERY);
    read_file();
    size_t i = find(id);
    if (i == count) return fail(error, WSAEINVAL);
    while ((i = find(id)) != count) {
        memmove(&entries[i], &entries[i + 1], (count - i - 1) * sizeof entries[0]);
        count--;
    }
    return write_file() ? 0 : fail(error, WSASYSCALLFAILURE);
}

/* The first call gives a handle that a completion port takes; the later ones wait for a change,
 * which never comes. */
int WSAAPI WSAProviderConfigChange(LPHANDLE handle, LPWSAOVERLAPPED overlapped,
                                   LPWSAOVERLAPPED_COMPLETION_ROUTINE routine) {
    (void)routine;
    if (overlapped) {
        WSASetLastError(WSA_IO_PENDING);
        return SOCKET_ERROR;
    }
    HANDLE h = CreateFileW(L"\\\\.\\NUL", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
                           OPEN_EXISTING, FILE_FLAG_OVERLAPPED, NULL);
    if (h == INVALID_HANDLE_VALUE) {
        WSASetLastError(WSANO_RECOVERY);
        return SOCKET_ERROR;
    }
    *handle = h;
    return 0;
}
