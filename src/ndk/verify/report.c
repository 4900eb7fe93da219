/* SPDX-License-Identifier: MIT */
#include "ndk/verify/verify.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ndk/softndk.h"
#include "base/base.h"
#include "ndk/kenv/kenv.h"

os_atomic_u32 ndk_verify_mode;
static os_atomic_u32 counts[NDK_RULE_COUNT];
static os_atomic_u32 errors;

static const struct {
    const char *name, *text;
} rules[] = {
#define ROW(name, text) { #name, text },
    NDK_RULES(ROW)
#undef ROW
};

static void report(enum ndk_rule rule, const char *kind, const char *call, const void *object,
                   const char *fmt, va_list ap) {
    char buf[4096];
    size_t n = (size_t)snprintf(buf, sizeof buf, "softndk: %s: %s: %s\n", kind, rules[rule].name,
                                rules[rule].text);
    n += (size_t)snprintf(buf + n, sizeof buf - n, "  call:   %s\n",
                          call             ? call
                          : ke_call_name() ? ke_call_name()
                                           : "(none)");
    if (object) n += (size_t)snprintf(buf + n, sizeof buf - n, "  object: %p\n", object);
    n += (size_t)snprintf(buf + n, sizeof buf - n, "  what:   ");
    int m = vsnprintf(buf + n, sizeof buf - n, fmt, ap);
    n += m < 0 ? 0 : (size_t)m;
    if (n > sizeof buf / 2) n = sizeof buf / 2;
    n += (size_t)snprintf(buf + n, sizeof buf - n, "\n");
    struct ndk_stack s;
    ndk_stack_take(&s);
    n += ndk_stack_text(&s, buf + n, sizeof buf - n);
    fwrite(buf, 1, n, stderr);
    fflush(stderr);
}

void ndk_violation(enum ndk_rule rule, const char *call, const void *object, const char *fmt, ...) {
    uint32_t mode = os_u32_load_relaxed(&ndk_verify_mode);
    if (mode == SOFTNDK_VERIFIER_OFF) return;
    os_u32_fetch_add_relaxed(&counts[rule], 1);
    os_u32_fetch_add_relaxed(&errors, 1);
    va_list ap;
    va_start(ap, fmt);
    report(rule, "rule broken", call, object, fmt, ap);
    va_end(ap);
    if (mode == SOFTNDK_VERIFIER_ABORT) abort();
}

void ndk_warning(enum ndk_rule rule, const char *call, const void *object, const char *fmt, ...) {
    if (!ndk_verifying()) return;
    os_u32_fetch_add_relaxed(&counts[rule], 1);
    va_list ap;
    va_start(ap, fmt);
    report(rule, "warning", call, object, fmt, ap);
    va_end(ap);
}

int softndk_violations(const char *rule) {
    if (!rule) return (int)os_u32_load_relaxed(&errors);
    for (size_t i = 0; i < SN_ARRAY_LEN(rules); i++)
        if (strcmp(rules[i].name, rule) == 0) return (int)os_u32_load_relaxed(&counts[i]);
    return -1;
}

void softndk_violations_reset(void) {
    for (size_t i = 0; i < SN_ARRAY_LEN(counts); i++)
        os_u32_store_relaxed(&counts[i], 0);
    os_u32_store_relaxed(&errors, 0);
}

const char *softndk_rule(unsigned i, const char **text) {
    if (i >= SN_ARRAY_LEN(rules)) return NULL;
    if (text) *text = rules[i].text;
    return rules[i].name;
}
