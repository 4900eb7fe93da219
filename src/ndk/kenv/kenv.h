/* SPDX-License-Identifier: MIT
 * kenv.h - the kernel environment, inside libsoftndk.
 * Owns:    per-thread IRQL and call names; pools of memory, MDLs and work items with their
 *          origins; the system worker and DPC threads.
 * Threads: any.   Errors: as the kernel's.
 */
#ifndef SN_NDK_KENV_H
#define SN_NDK_KENV_H

#include <stdbool.h>
#include "base/base.h"
#include "os/prim/atomic.h"
#include "ntddk.h"
#undef min
#undef max

/* ---- IRQL and where a thread is (irql.c) ---- */

/* The provider calls the consumer: raises to DISPATCH_LEVEL until _end with its result. */
struct ke_callback {
    KIRQL irql;
    uint32_t depth;
    bool counted;
};
struct ke_callback ke_callback_begin(void);
/* The callback must have come back at DISPATCH_LEVEL. name is for the report. */
void ke_callback_end(struct ke_callback saved, const char *name);
bool ke_in_callback(void);

/* The consumer entered this routine; max: the highest IRQL that it allows. Cheap; the verifier
 * must be on. frame: of the routine; what lies below it on this stack is dead. */
void ke_call_enter_at(const char *name, KIRQL max, const void *frame);
#define ke_call_enter(name, max) ke_call_enter_at(name, max, __builtin_frame_address(0))
const char *ke_call_name(void);

/* ---- what the provider's verifier adds ---- */

struct ke_hooks {
    /* A routine was entered. */
    void (*on_call)(const void *frame);
    /* A wait timed out; perhaps it was for a pending request. */
    void (*on_wait_timeout)(const void *object);
    /* KeInitializeEvent, KeSetEvent. */
    void (*on_event_init)(const void *event);
    void (*on_event_set)(const void *event);
    /* The call of this thread whose context is near the event and that completed inline. */
    const char *(*inline_for)(const void *event, NTSTATUS *status);
    /* What of the provider can still call the consumer, in words; NULL: nothing. */
    const char *(*source)(void);
    /* Before pool memory or an MDL goes: what still covers it, in words, or NULL. */
    const char *(*memory_in_use)(const void *p, size_t len, const MDL *mdl);
};
/* Once; the hooks stay. */
void ke_hooks_set(const struct ke_hooks *hooks);
const struct ke_hooks *ke_hooks_get(void); /* NULL: none */

/* Freed pool memory: overwritten and given back at once (0), or kept as it was for a while (1), for
 * consumers that read what they have freed and that one wants to see further. */
extern os_atomic_u32 ke_keep_freed;

/* ---- waits that cannot end (activity.c); all while the verifier is on ---- */

/* The calling thread runs the consumer's code; these nest. */
void ke_running_begin(void);
void ke_running_end(void);
/* A system thread: counted from its creation. */
void ke_running_thread_made(void);
void ke_running_thread_unmade(void); /* it could not be started */
void ke_running_thread_begins(void);
void ke_running_thread_ends(void);
/* The runner, around DriverEntry and DriverUnload. */
void ke_entry_begin(void);
void ke_entry_end(void);
/* The calling thread waits without end, dispatcher lock held; false: it is not one of those
 * counted. Whoever satisfies the wait ends that. */
bool ke_blocked_begin_locked(void);
void ke_blocked_end_locked(void);
/* If nothing can ever end the wait of the calling thread: how many threads wait so. 0: it may. */
uint32_t ke_deadlock(void);
/* After how long a wait is looked at, in milliseconds; 0: never. */
extern os_atomic_u32 ke_deadlock_ms;
/* A timer, work item or DPC is to run (work.c). */
bool ke_work_waits(void);

/* ---- leaks: each reports what it holds and forgets it, and returns how many ---- */
int ke_pool_leaks(void);
int ke_mdl_leaks(void);
int ke_work_leaks(void);
int ke_handle_leaks(void);

/* Waits until the worker and DPC queues are empty and their threads idle. */
void ke_work_drain(void);

#endif
