/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "ndk/ndk.h"
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
