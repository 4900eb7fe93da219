/* SPDX-License-Identifier: MIT
 * registry.h - the registry's file.
 * Owns:    reading and writing it; the keys are in registry.c.
 * Threads: any.   Errors: false, said on standard error.
 */
#ifndef SN_NDK_KENV_REGISTRY_H
#define SN_NDK_KENV_REGISTRY_H

#include <stdbool.h>

/* Reads the file; one that is not there is empty. */
bool ke_registry_in(const char *file);
/* Writes it back, if something was changed and ke_registry_in named one. */
bool ke_registry_save(void);

#endif
