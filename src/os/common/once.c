/* SPDX-License-Identifier: MIT */
#include "os/prim/thread.h"
#include "os/prim/clock.h"

enum { ONCE_NEW, ONCE_RUNNING, ONCE_DONE = OS_ONCE_DONE };

void os_once_run_slow(os_once *once, void (*fn)(void)) {
    uint32_t seen = ONCE_NEW;
    if (os_u32_cas_acq_rel(&once->state, &seen, ONCE_RUNNING)) {
        fn();
        os_u32_store_release(&once->state, ONCE_DONE);
        os_wake_all(&once->state);
        return;
    }
    while (os_u32_load_acquire(&once->state) != ONCE_DONE)
        os_wait_on(&once->state, ONCE_RUNNING, OS_FOREVER);
}
