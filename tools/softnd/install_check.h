/* SPDX-License-Identifier: MIT
 * install_check.h - `softnd install --check`.
 * Owns:    nothing.   Threads: one.   Errors: an exit code, after one line on stderr.
 */
#ifndef TOOL_INSTALL_CHECK_H
#define TOOL_INSTALL_CHECK_H

#include "ndspi.h"

/* Goes the way of a NetworkDirect client, from the catalog to an open adapter and back, and prints
 * a line for each step. */
int install_check(const GUID *guid);

#endif
