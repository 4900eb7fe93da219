/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "ndk/kenv/file.h"
#include "ndk/kenv/registry.h"
#include "ndk/ndk.h"
#include "ndk/softndk.h"
#include "os/prim/clock.h"

struct ndk_options ndk_options;
static os_once once = OS_ONCE_INIT;

struct choice {
    const char *value;
    uint32_t number;
};
struct option {
    const char *name, *variable;
    os_atomic_u32 *at;
    struct choice choices[5]; /* none: a number */
};

static const struct option options[] = {
    { "completions",
      "SOFTNDK_COMPLETIONS",
      &ndk_options.completions,
      { { "inline", SOFTNDK_INLINE },
        { "pending", SOFTNDK_PENDING },
        { "early", SOFTNDK_EARLY },
        { "random", SOFTNDK_RANDOM } } },
    { "verifier",
      "SOFTNDK_VERIFIER",
      &ndk_verify_mode,
      { { "off", SOFTNDK_VERIFIER_OFF },
        { "report", SOFTNDK_VERIFIER_REPORT },
        { "abort", SOFTNDK_VERIFIER_ABORT } } },
    { "tokens",
      "SOFTNDK_TOKENS",
      &ndk_options.fixed_tokens,
      { { "fresh", 0 }, { "constant", 1 } } },
    { "logical-pages",
      "SOFTNDK_LOGICAL_PAGES",
      &ndk_options.scattered,
      { { "contiguous", 0 }, { "scattered", 1 } } },
    { "adapter",
      "SOFTNDK_ADAPTER",
      &ndk_options.disabled,
      { { "enabled", 0 }, { "disabled", 1 } } },
    { "interrupt-moderation",
      "SOFTNDK_INTERRUPT_MODERATION",
      &ndk_options.no_moderation,
      { { "supported", 0 }, { "missing", 1 } } },
    { "freed-pool", "SOFTNDK_FREED_POOL", &ke_keep_freed, { { "poison", 0 }, { "keep", 1 } } },
    { "deadlock-after", "SOFTNDK_DEADLOCK_AFTER", &ke_deadlock_ms, { { NULL, 0 } } },
    { "fail-posts", "SOFTNDK_FAIL_POSTS", &ndk_options.fail_posts, { { NULL, 0 } } },
};

/* Those with any text. */
static const struct text_option {
    const char *name, *variable;
    bool (*set)(const char *value);
} text_options[] = {
    { "registry", "SOFTNDK_REGISTRY", ke_registry_in },
    { "files", "SOFTNDK_FILES", ke_files_in },
};

static int set_option(const struct option *o, const char *value) {
    if (!o->choices[0].value) {
        char *end;
        unsigned long n = strtoul(value, &end, 10);
        if (end == value || *end || n > UINT32_MAX) return -1;
        os_u32_store_relaxed(o->at, (uint32_t)n);
        return 0;
    }
    for (const struct choice *c = o->choices; c->value; c++) {
        if (strcmp(c->value, value) != 0) continue;
        os_u32_store_relaxed(o->at, c->number);
        return 0;
    }
    return -1;
}

static void load(void) {
    for (size_t i = 0; i < SN_ARRAY_LEN(options); i++) {
        const char *value = getenv(options[i].variable);
        if (value && set_option(&options[i], value) != 0)
            DbgPrint("softndk: %s: \"%s\" is not a value; ignored\n", options[i].variable, value);
    }
    for (size_t i = 0; i < SN_ARRAY_LEN(text_options); i++) {
        const char *value = getenv(text_options[i].variable);
        if (value && !text_options[i].set(value))
            DbgPrint("softndk: %s: \"%s\" cannot be used\n", text_options[i].variable, value);
    }
}

void ndk_options_load(void) {
    os_once_run(&once, load);
}

int softndk_set(const char *name, const char *value) {
    ndk_options_load();
    for (size_t i = 0; name && value && i < SN_ARRAY_LEN(options); i++)
        if (strcmp(options[i].name, name) == 0) return set_option(&options[i], value);
    for (size_t i = 0; name && value && i < SN_ARRAY_LEN(text_options); i++)
        if (strcmp(text_options[i].name, name) == 0) return text_options[i].set(value) ? 0 : -1;
    return -1;
}

enum ndk_how ndk_choose(void) {
    uint8_t r;
    switch (os_u32_load_relaxed(&ndk_options.completions)) {
    case SOFTNDK_PENDING:
        return NDK_LATER;
    case SOFTNDK_EARLY:
        return NDK_EARLY;
    case SOFTNDK_RANDOM:
        os_random_bytes(&r, 1);
        return r % 3 == 0 ? NDK_NOW : r % 3 == 1 ? NDK_LATER : NDK_EARLY;
    default:
        return NDK_NOW;
    }
}

bool ndk_fail_post(void) {
    uint32_t n = os_u32_load_relaxed(&ndk_options.fail_posts);
    if (SN_LIKELY(n == 0)) return false;
    return os_u32_fetch_add_relaxed(&ndk_options.posts, 1) % n == n - 1;
}
