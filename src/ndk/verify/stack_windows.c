/* SPDX-License-Identifier: MIT
 * Frames are named by module and offset: there are no symbols to look up in.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>
#include "ndk/verify/verify.h"

enum { SKIP = 3 }; /* this function, report, ndk_violation */

void ndk_stack_take(struct ndk_stack *s) {
    s->count = RtlCaptureStackBackTrace(SKIP, NDK_STACK_MAX, s->frame, NULL);
}

size_t ndk_stack_text(const struct ndk_stack *s, char *buf, size_t size) {
    size_t n = 0;
    for (int i = 0; i < s->count; i++) {
        char path[MAX_PATH];
        const char *file = "?";
        HMODULE module = NULL;
        if (GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                                   GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                               s->frame[i], &module) &&
            GetModuleFileNameA(module, path, sizeof path)) {
            const char *slash = strrchr(path, '\\');
            file = slash ? slash + 1 : path;
        }
        int m = snprintf(buf + n, size - n, "  stack:  %s+0x%zx\n", file,
                         (size_t)((char *)s->frame[i] - (char *)module));
        if (m < 0 || (size_t)m >= size - n) break;
        n += (size_t)m;
    }
    return n;
}

bool ndk_on_this_stack(const void *p) {
    ULONG_PTR low, high;
    GetCurrentThreadStackLimits(&low, &high);
    return (uintptr_t)p >= low && (uintptr_t)p < high;
}

bool ndk_is_code(const void *p) {
    MEMORY_BASIC_INFORMATION m;
    if (VirtualQuery(p, &m, sizeof m) == 0 || m.Type != MEM_IMAGE) return false;
    return (m.Protect & (PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE |
                         PAGE_EXECUTE_WRITECOPY)) != 0;
}
