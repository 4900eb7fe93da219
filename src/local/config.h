/* SPDX-License-Identifier: MIT
 * config.h - what may be set for the same-host transport, from the environment, read when a
 *            listener opens and for each connection.
 * Owns:    SOFTND_TRANSPORT (iwarp: do not use it; local: do not fall back from it for a peer on
 *          this host; else: use it where it reaches the peer, but not while SOFTND_CAPTURE records
 *          the iWARP streams), SOFTND_LOCAL_COPY (direct, shared; default direct: copies go
 *          straight between the processes where the system allows it).
 * Threads: any.
 * Errors:  an unknown value counts as the default.
 */
#ifndef SN_LOCAL_CONFIG_H
#define SN_LOCAL_CONFIG_H

#include <stdbool.h>

enum lo_use {
    LO_USE_NEVER,
    LO_USE_AUTO, /* falls back to the next transport */
    LO_USE_FORCED
};

struct lo_config {
    enum lo_use use;
    bool direct_copy;
};
struct lo_config lo_config_get(void);

#endif
