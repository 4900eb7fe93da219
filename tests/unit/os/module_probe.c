/* SPDX-License-Identifier: MIT
 * A library that module_test loads and unloads, with the OS layer inside. */
#include <stdint.h>
#include "os/prim/pages.h"
#include "os/prim/thread.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT bool probe_path(char *buf, uint32_t size);
EXPORT void probe_pin(void);
EXPORT bool probe_guard(void);

bool probe_path(char *buf, uint32_t size) {
    return os_module_path(buf, size);
}

void probe_pin(void) {
    os_pin_module();
}

static void read_byte(void *arg) {
    (void)*(const volatile char *)arg;
}

/* True if both guards catch a fault and pass good memory. */
bool probe_guard(void) {
    char in = 1, out = 0;
    void *bad = (void *)(uintptr_t)16;
    return !os_guarded_copy(&out, bad, 1) && os_guarded_copy(&out, &in, 1) && out == 1 &&
           !os_guarded_call(read_byte, bad) && os_guarded_call(read_byte, &in);
}
