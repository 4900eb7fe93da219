/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "ndk/kenv/system.h"

int ke_cpu_count(void) {
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

void *ke_memory_new(size_t bytes, size_t alignment) {
    if (alignment <= _Alignof(max_align_t)) return malloc(bytes);
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void ke_memory_free(void *p) {
    free(p);
}

void *ke_module_open(const char *path, char *text, size_t size) {
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) snprintf(text, size, "%s", dlerror());
    return module;
}

void *ke_module_symbol(void *module, const char *name) {
    return dlsym(module, name);
}

void ke_module_close(void *module) {
    dlclose(module);
}
