/* SPDX-License-Identifier: MIT
 * provider.h - a provider's library, loaded as a NetworkDirect client loads it.
 * Owns:    the module and the class object, from nd_load to nd_unload.
 * Threads: one.   Errors: NULL, or why not, as the end of a sentence that starts with the path.
 */
#ifndef TOOL_PROVIDER_H
#define TOOL_PROVIDER_H

#include <stdbool.h>
#include "ndspi.h"

struct provider {
    HMODULE module;
    FARPROC can_unload;
    IND2Provider *nd; /* the class object of the GUID */
};

const char *nd_load(struct provider *p, const WCHAR *path, const GUID *guid);
/* Also after a failed load. */
void nd_unload(struct provider *p);
/* The transports of an adapter of this provider, as SoftNdQueryTransport; false: it does not say.
 */
bool nd_transports(const struct provider *p, IND2Adapter *adapter, char *out, ULONG room);
/* All its addresses; NULL: it does not say. free() it. */
SOCKET_ADDRESS_LIST *nd_addresses(IND2Provider *nd);

#endif
