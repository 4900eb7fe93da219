/* SPDX-License-Identifier: MIT
 * objects.h - dispatcher objects, between the files of the kernel environment.
 * Owns:    the type numbers in DISPATCHER_HEADER.Type and the one lock of all of them.
 * Threads: any; the _locked calls with that lock held.   Errors: none.
 */
#ifndef SN_NDK_KENV_OBJECTS_H
#define SN_NDK_KENV_OBJECTS_H

#include "ndk/kenv/kenv.h"

enum {
    KE_EVENT = 0,
    KE_EVENT_SYNC = 1,
    KE_MUTANT = 2,
    KE_SEMAPHORE = 5,
    KE_THREAD = 6,
    KE_TIMER = 8,
    KE_TIMER_SYNC = 9
};

void ke_dispatcher_enter(void);
void ke_dispatcher_leave(void);
void ke_header_init(DISPATCHER_HEADER *h, UCHAR type, LONG state);
/* Sets the state and satisfies waits, oldest first. */
void ke_signal_locked(DISPATCHER_HEADER *h, LONG state);
/* A due time (negative: relative, positive: since 1601, both in 100 ns) on the monotonic clock. */
uint64_t ke_deadline(LONGLONG due);

#endif
