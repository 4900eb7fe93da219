/* SPDX-License-Identifier: MIT
 *
 * Threads that run code of the consumer, and how many of them wait without end. Kept while the
 * verifier is on. The runner knows all of them; in another program a thread that never came here
 * may set any event, so there nothing is ever found.
 */
#include "ndk/kenv/kenv.h"
#include "ndk/kenv/objects.h"
#include "ndk/verify/verify.h"

os_atomic_u32 ke_deadlock_ms = { 10000 };
static os_atomic_u32 running, blocked, changes, entered;
static _Thread_local uint32_t depth;

void ke_running_begin(void) {
    if (depth++ != 0) return;
    os_u32_fetch_add_acq_rel(&changes, 1);
    os_u32_fetch_add_acq_rel(&running, 1);
}

void ke_running_end(void) {
    if (depth == 0 || --depth != 0) return;
    os_u32_fetch_add_acq_rel(&changes, 1);
    os_u32_fetch_sub_acq_rel(&running, 1);
}

void ke_running_thread_made(void) {
    os_u32_fetch_add_acq_rel(&running, 1);
}

void ke_running_thread_unmade(void) {
    os_u32_fetch_sub_acq_rel(&running, 1);
}

void ke_running_thread_begins(void) {
    depth = 1;
}

void ke_running_thread_ends(void) {
    depth = 1;
    ke_running_end();
}

void ke_entry_begin(void) {
    os_u32_store_release(&entered, 1);
    ke_running_begin();
}

void ke_entry_end(void) {
    ke_running_end();
    os_u32_store_release(&entered, 0);
}

bool ke_blocked_begin_locked(void) {
    if (depth == 0) return false;
    os_u32_fetch_add_acq_rel(&changes, 1);
    os_u32_fetch_add_acq_rel(&blocked, 1);
    return true;
}

void ke_blocked_end_locked(void) {
    os_u32_fetch_add_acq_rel(&changes, 1);
    os_u32_fetch_sub_acq_rel(&blocked, 1);
}

static bool all_blocked(void) {
    ke_dispatcher_enter();
    bool all = os_u32_load_acquire(&running) == os_u32_load_acquire(&blocked);
    ke_dispatcher_leave();
    return all;
}

/* If nothing ran between two looks at what could start something, then nothing was missed. */
uint32_t ke_deadlock(void) {
    const struct ke_hooks *h = ke_hooks_get();
    if (!h || !os_u32_load_acquire(&entered)) return 0;
    uint32_t before = os_u32_load_acquire(&changes);
    if (h->source() || ke_work_waits() || !all_blocked()) return 0;
    if (h->source() || ke_work_waits()) return 0;
    uint32_t n = os_u32_load_acquire(&blocked);
    return os_u32_load_acquire(&changes) == before ? n : 0;
}
