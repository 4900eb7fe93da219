/* SPDX-License-Identifier: MIT
 * catalog_windows.c - Windows has one catalog, for the whole machine.
 */
#include "catalog.h"

#include <stdio.h>

bool catalog_set_scope(enum catalog_scope scope) {
    return scope == CATALOG_AUTO || scope == CATALOG_SYSTEM;
}

bool catalog_where(enum catalog_scope scope, enum catalog_scope *actual, char *place, size_t room) {
    if (scope != CATALOG_AUTO && scope != CATALOG_SYSTEM) return false;
    *actual = CATALOG_SYSTEM;
    return snprintf(place, room, "the Winsock catalog") < (int)room;
}

/* WSCGetProviderPath finds an installed provider and no other. */
bool catalog_scope_of(const GUID *provider, enum catalog_scope *scope) {
    GUID id = *provider;
    WCHAR path[CATALOG_PATH_MAX];
    INT units = CATALOG_PATH_MAX, error = 0;

    if (WSCGetProviderPath(&id, path, &units, &error) != 0 && error != WSAEFAULT) return false;
    *scope = CATALOG_SYSTEM;
    return true;
}

const char *catalog_scope_name(enum catalog_scope scope) {
    static const char *const names[] = { [CATALOG_AUTO] = "auto",
                                         [CATALOG_SYSTEM] = "system",
                                         [CATALOG_USER] = "user",
                                         [CATALOG_PRIVATE] = "private" };
    return names[scope];
}
