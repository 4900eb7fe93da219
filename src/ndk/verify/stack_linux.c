/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "ndk/verify/verify.h"

enum { SKIP = 3 }; /* this function, report, ndk_violation */

void ndk_stack_take(struct ndk_stack *s) {
    void *all[NDK_STACK_MAX + SKIP];
    int n = backtrace(all, NDK_STACK_MAX + SKIP);
    s->count = n > SKIP ? n - SKIP : 0;
    if (s->count) memcpy(s->frame, all + SKIP, (size_t)s->count * sizeof all[0]);
}

size_t ndk_stack_text(const struct ndk_stack *s, char *buf, size_t size) {
    size_t n = 0;
    for (int i = 0; i < s->count; i++) {
        Dl_info info;
        const char *file = "?", *name = NULL;
        size_t off = 0;
        if (dladdr(s->frame[i], &info) && info.dli_fname) {
            const char *slash = strrchr(info.dli_fname, '/');
            file = slash ? slash + 1 : info.dli_fname;
            name = info.dli_sname;
            off = (size_t)((char *)s->frame[i] - (char *)(name ? info.dli_saddr : info.dli_fbase));
        }
        int m = snprintf(buf + n, size - n, "  stack:  %s%s%s+0x%zx\n", file, name ? " " : "",
                         name ? name : "", off);
        if (m < 0 || (size_t)m >= size - n) break;
        n += (size_t)m;
    }
    return n;
}

bool ndk_on_this_stack(const void *p) {
    static _Thread_local const char *low, *high;
    if (!high) {
        pthread_attr_t attr;
        void *base;
        size_t size;
        if (pthread_getattr_np(pthread_self(), &attr) != 0) return false;
        if (pthread_attr_getstack(&attr, &base, &size) == 0) {
            low = base;
            high = low + size;
        }
        pthread_attr_destroy(&attr);
    }
    return (const char *)p >= low && (const char *)p < high;
}

static int has_code(struct dl_phdr_info *module, size_t size, void *arg) {
    uintptr_t p = *(const uintptr_t *)arg;
    (void)size;
    for (size_t i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &module->dlpi_phdr[i];
        uintptr_t first = (uintptr_t)module->dlpi_addr + h->p_vaddr;
        if (h->p_type == PT_LOAD && (h->p_flags & PF_X) && p - first < h->p_memsz) return 1;
    }
    return 0;
}

bool ndk_is_code(const void *p) {
    uintptr_t at = (uintptr_t)p;
    return dl_iterate_phdr(has_code, &at) != 0;
}
