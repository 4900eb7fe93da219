/* SPDX-License-Identifier: MIT
 * catalog.h - the provider catalog as the subcommands see it.
 * Owns:    the copied entries.
 * Threads: any.   Errors: NULL, or a text for the user.
 */
#ifndef TOOL_CATALOG_H
#define TOOL_CATALOG_H

#include <winsock2.h>
#include <ws2spi.h>

#include <stdbool.h>
#include <stddef.h>
#include "ndspi.h"

#define CATALOG_PATH_MAX 260 /* what WSCGetProviderPath is given by Win32 programs */

struct catalog_entry {
    WSAPROTOCOL_INFOW info;
    WCHAR path[CATALOG_PATH_MAX]; /* empty if the catalog does not say */
    bool is_nd;                   /* a version 2 NetworkDirect provider */
};

struct catalog {
    struct catalog_entry *entries;
    size_t count;
};

const char *catalog_read(struct catalog *c);
void catalog_free(struct catalog *c);

/* The entry that the SPI asks a provider to register. name is what szProtocol says. */
void catalog_make_entry(WSAPROTOCOL_INFOW *out, const GUID *provider, const WCHAR *name);

/* ---- scopes (one file per system) ---- */

enum catalog_scope { CATALOG_AUTO, CATALOG_SYSTEM, CATALOG_USER, CATALOG_PRIVATE };

/* Where registrations are written and removed from now on: CATALOG_AUTO, _SYSTEM or _USER. False
 * where the system has no such scope. */
bool catalog_set_scope(enum catalog_scope scope);
/* The scope that AUTO, SYSTEM or USER really is, and its place (UTF-8); false if there is none. */
bool catalog_where(enum catalog_scope scope, enum catalog_scope *actual, char *place, size_t room);
/* The scope that an installed provider is registered in. */
bool catalog_scope_of(const GUID *provider, enum catalog_scope *scope);
const char *catalog_scope_name(enum catalog_scope scope);

/* What an error number of the WSC functions means, and what to do. Static. */
const char *catalog_text(INT error);

#endif
