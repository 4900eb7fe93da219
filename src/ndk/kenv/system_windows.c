/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <malloc.h>
#include <windows.h>
#include "ndk/kenv/system.h"

int ke_cpu_count(void) {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return (int)info.dwNumberOfProcessors;
}

void *ke_memory_new(size_t bytes, size_t alignment) {
    return _aligned_malloc(bytes, alignment);
}

void ke_memory_free(void *p) {
    _aligned_free(p);
}

void *ke_module_open(const char *path, char *text, size_t size) {
    HMODULE module = LoadLibraryA(path);
    if (!module)
        snprintf(text, size, "%s cannot be loaded: error %lu", path, (unsigned long)GetLastError());
    return module;
}

void *ke_module_symbol(void *module, const char *name) {
    return (void *)(uintptr_t)GetProcAddress(module, name);
}

void ke_module_close(void *module) {
    FreeLibrary(module);
}
