/* SPDX-License-Identifier: MIT
 * local.h - the transport between two SoftND adapters of one host and one user.
 * Owns:    the operation table.   Threads: see transport.h.   Errors: see transport.h.
 */
#ifndef SN_LOCAL_LOCAL_H
#define SN_LOCAL_LOCAL_H

#include "transport/transport.h"

extern const struct tp_ops lo_ops;

/* False where the user forbids it (config.h). */
bool lo_in_use(void);

#endif
