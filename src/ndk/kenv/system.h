/* SPDX-License-Identifier: MIT
 * system.h - what the kernel environment needs from the system beyond the OS layer
 *            (system_linux.c, system_windows.c).
 * Owns:    nothing. Plain C types: the systems' headers and the environment's do not mix.
 * Threads: any.   Errors: NULL, with a text.
 */
#ifndef SN_NDK_KENV_SYSTEM_H
#define SN_NDK_KENV_SYSTEM_H

#include <stddef.h>

/* Processors of this machine. */
int ke_cpu_count(void);

/* Memory of the C library, where a sanitizer sees it. alignment: a power of two. */
void *ke_memory_new(size_t bytes, size_t alignment);
void ke_memory_free(void *p);

/* A consumer's shared object; text: why it cannot be loaded. */
void *ke_module_open(const char *path, char *text, size_t size);
void *ke_module_symbol(void *module, const char *name);
void ke_module_close(void *module);

#endif
