/* SPDX-License-Identifier: MIT
 * iwarp.h - the iWARP transport: MPA, DDP and RDMAP over TCP.
 * Owns:    the operation table.   Threads: see transport.h.   Errors: see transport.h.
 */
#ifndef SN_IWARP_IWARP_H
#define SN_IWARP_IWARP_H

#include "transport/transport.h"

extern const struct tp_ops iw_ops;

#endif
