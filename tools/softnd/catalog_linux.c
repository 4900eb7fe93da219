/* SPDX-License-Identifier: MIT
 * catalog_linux.c - the catalog's scopes, which Linux has as directories.
 */
#include "catalog.h"

#include "sys.h"

bool catalog_set_scope(enum catalog_scope scope) {
    static const DWORD values[] = { [CATALOG_AUTO] = SOFTND_CATALOG_AUTO,
                                    [CATALOG_SYSTEM] = SOFTND_CATALOG_SYSTEM,
                                    [CATALOG_USER] = SOFTND_CATALOG_USER };

    return scope <= CATALOG_USER && SoftNdCatalogSetScope(values[scope]);
}

static enum catalog_scope scope_from(DWORD value) {
    switch (value) {
    case SOFTND_CATALOG_SYSTEM:
        return CATALOG_SYSTEM;
    case SOFTND_CATALOG_USER:
        return CATALOG_USER;
    default:
        return CATALOG_PRIVATE;
    }
}

bool catalog_where(enum catalog_scope scope, enum catalog_scope *actual, char *place, size_t room) {
    DWORD value = SOFTND_CATALOG_AUTO;

    if (scope == CATALOG_SYSTEM) value = SOFTND_CATALOG_SYSTEM;
    if (scope == CATALOG_USER) value = SOFTND_CATALOG_USER;
    if (!SoftNdCatalogGetDirectory(value, &value, place, room)) return false;
    *actual = scope_from(value);
    return true;
}

bool catalog_scope_of(const GUID *provider, enum catalog_scope *scope) {
    char file[SYS_PATH_MAX];
    DWORD value;

    if (!SoftNdCatalogFindProvider(provider, &value, file, sizeof file)) return false;
    *scope = scope_from(value);
    return true;
}

const char *catalog_scope_name(enum catalog_scope scope) {
    static const char *const names[] = { [CATALOG_AUTO] = "auto",
                                         [CATALOG_SYSTEM] = "system",
                                         [CATALOG_USER] = "user",
                                         [CATALOG_PRIVATE] = "private" };
    return names[scope];
}
