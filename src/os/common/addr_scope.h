/* SPDX-License-Identifier: MIT
 * addr_scope.h - the one thing addr_text.c asks the system.
 * Owns:    nothing.   Threads: any.   Errors: none.
 */
#ifndef SN_OS_COMMON_ADDR_SCOPE_H
#define SN_OS_COMMON_ADDR_SCOPE_H

#include <stdint.h>

#define OS_SCOPE_NAME_MAX 17

/* The name of an interface index, or its decimal number if no interface has it. */
void os_scope_name(uint32_t index, char buf[OS_SCOPE_NAME_MAX]);

#endif
