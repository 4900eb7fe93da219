/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include "ndk/kenv/kenv.h"
#include "ndk/softndk.h"
#include "ndk/verify/verify.h"

static ULONG print(const char *format, va_list ap) {
    char buf[1024];
    int n = vsnprintf(buf, sizeof buf, format, ap);
    if (n < 0) return (ULONG)STATUS_INVALID_PARAMETER;
    fwrite(buf, 1, SN_MIN((size_t)n, sizeof buf - 1), stderr);
    fflush(stderr); /* Windows keeps it when it goes to a file */
    return STATUS_SUCCESS;
}

ULONG DbgPrint(const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    ULONG st = print(format, ap);
    va_end(ap);
    return st;
}

ULONG DbgPrintEx(ULONG component, ULONG level, const char *format, ...) {
    (void)component;
    if (level > DPFLTR_WARNING_LEVEL && level < 32 && !getenv("SOFTNDK_DEBUG_OUTPUT"))
        return STATUS_SUCCESS;
    va_list ap;
    va_start(ap, format);
    ULONG st = print(format, ap);
    va_end(ap);
    return st;
}

/* Without the verifier a failed assertion ends the process, as a checked kernel would stop. */
VOID softndk_assert_failed(const char *text, const char *file, int line) {
    if (ndk_verifying()) {
        ndk_violation(NDK_RULE_assertion, "NT_ASSERT", NULL, "%s:%d: %s", file, line, text);
        return;
    }
    fprintf(stderr, "softndk: assertion failed: %s:%d: %s\n", file, line, text);
    abort();
}

VOID KeBugCheckEx(ULONG code, ULONG_PTR p1, ULONG_PTR p2, ULONG_PTR p3, ULONG_PTR p4) {
    fprintf(stderr, "softndk: bug check 0x%x (0x%zx, 0x%zx, 0x%zx, 0x%zx)\n", code, (size_t)p1,
            (size_t)p2, (size_t)p3, (size_t)p4);
    abort();
}
