/* SPDX-License-Identifier: MIT
 *
 * Events, semaphores, timers and threads as objects to wait for. One lock guards the state of all
 * of them, as in the kernel: waits are rare. A waiting thread has its wait block on its own stack;
 * all blocks are on one list, so that nothing in a consumer's object has to be believed.
 */
#include "ndk/kenv/kenv.h"
#include "ndk/kenv/objects.h"
#include "ndk/verify/verify.h"
#include "os/prim/clock.h"
#include "os/prim/lock.h"
#include "os/prim/thread.h"

#define NS_PER_TICK 100ull
#define EPOCH_1601_SECONDS 11644473600ull

struct waiter {
    os_atomic_u32 done;
    PKTHREAD thread;
    bool all;             /* wants all its objects at once */
    bool blocked;         /* counted by ke_blocked_begin_locked */
    uint32_t index;       /* of the object that ended the wait */
    uint32_t count;       /* of blocks */
    struct wait_block *b; /* [count] */
};

struct wait_block {
    struct sn_list link;
    DISPATCHER_HEADER *object;
    struct waiter *waiter;
};

static os_lock dispatcher_lock;
static struct sn_list waiters;
static os_once once = OS_ONCE_INIT;

static void init(void) {
    os_lock_init(&dispatcher_lock, OS_RANK_LEAF);
    sn_list_init(&waiters);
}

void ke_dispatcher_enter(void) {
    os_once_run(&once, init);
    os_lock_enter(&dispatcher_lock);
}

void ke_dispatcher_leave(void) {
    os_lock_leave(&dispatcher_lock);
}

static bool signalled_for(const DISPATCHER_HEADER *h, const PKTHREAD thread) {
    if (h->SignalState > 0) return true;
    return h->Type == KE_MUTANT && ((const KMUTANT *)h)->OwnerThread == thread;
}

/* Takes the object for one wait of a thread; false if it is not signalled. */
static bool take_locked(DISPATCHER_HEADER *h, PKTHREAD thread) {
    if (!signalled_for(h, thread)) return false;
    if (h->Type == KE_EVENT_SYNC || h->Type == KE_TIMER_SYNC) h->SignalState = 0;
    if (h->Type == KE_SEMAPHORE || h->Type == KE_MUTANT) h->SignalState--;
    if (h->Type == KE_MUTANT) ((KMUTANT *)h)->OwnerThread = thread;
    return true;
}

/* Takes what the waiter wants; false if that is not there. */
static bool satisfy_locked(struct waiter *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        bool there = signalled_for(w->b[i].object, w->thread);
        if (w->all && !there) return false;
        if (w->all || !there) continue;
        w->index = i;
        return take_locked(w->b[i].object, w->thread);
    }
    if (!w->all) return false;
    for (uint32_t i = 0; i < w->count; i++)
        take_locked(w->b[i].object, w->thread);
    return true;
}

static void remove_blocks_locked(struct waiter *w) {
    for (uint32_t i = 0; i < w->count; i++)
        sn_list_remove(&w->b[i].link);
}

/* The oldest waiter for h that can be satisfied. */
static struct waiter *next_satisfied_locked(const DISPATCHER_HEADER *h) {
    SN_LIST_FOR(it, &waiters) {
        struct wait_block *b = SN_CONTAINER(it, struct wait_block, link);
        if (b->object == h && satisfy_locked(b->waiter)) return b->waiter;
    }
    return NULL;
}

void ke_signal_locked(DISPATCHER_HEADER *h, LONG state) {
    h->SignalState = state;
    for (struct waiter *w; (w = next_satisfied_locked(h)) != NULL;) {
        remove_blocks_locked(w);
        if (w->blocked) ke_blocked_end_locked();
        os_u32_store_release(&w->done, 1);
        os_wake_all(&w->done);
    }
}

static void header_init(DISPATCHER_HEADER *h, UCHAR type, LONG state) {
    h->Type = type;
    h->Signalling = 0;
    h->Size = 0;
    h->Reserved1 = 0;
    h->SignalState = state;
    InitializeListHead(&h->WaitListHead);
}

void ke_header_init(DISPATCHER_HEADER *h, UCHAR type, LONG state) {
    ke_dispatcher_enter();
    header_init(h, type, state);
    ke_dispatcher_leave();
}

/* ---- events ---- */

VOID KeInitializeEvent(PRKEVENT ev, EVENT_TYPE type, BOOLEAN state) {
    bool waited = false;
    ke_dispatcher_enter();
    SN_LIST_FOR(it, &waiters)
    waited |= SN_CONTAINER(it, struct wait_block, link)->object == &ev->Header;
    header_init(&ev->Header, type == SynchronizationEvent ? KE_EVENT_SYNC : KE_EVENT, state != 0);
    ke_dispatcher_leave();
    const struct ke_hooks *hooks = ndk_verifying() ? ke_hooks_get() : NULL;
    if (hooks) hooks->on_event_init(ev);
    if (waited)
        ndk_violation(NDK_RULE_event_reinit, "KeInitializeEvent", ev,
                      "a thread is waiting for this event");
}

LONG KeSetEvent(PRKEVENT ev, KPRIORITY increment, BOOLEAN wait) {
    (void)increment;
    if (ndk_verifying()) {
        ke_call_enter("KeSetEvent", wait ? APC_LEVEL : DISPATCH_LEVEL);
        const struct ke_hooks *hooks = ke_hooks_get();
        if (hooks) hooks->on_event_set(ev);
    }
    ke_dispatcher_enter();
    LONG old = ev->Header.SignalState;
    ke_signal_locked(&ev->Header, 1);
    ke_dispatcher_leave();
    return old;
}

LONG KeResetEvent(PRKEVENT ev) {
    ke_dispatcher_enter();
    LONG old = ev->Header.SignalState;
    ev->Header.SignalState = 0;
    ke_dispatcher_leave();
    return old;
}

VOID KeClearEvent(PRKEVENT ev) {
    KeResetEvent(ev);
}

LONG KeReadStateEvent(PRKEVENT ev) {
    ke_dispatcher_enter();
    LONG state = ev->Header.SignalState;
    ke_dispatcher_leave();
    return state;
}

/* ---- semaphores ---- */

VOID KeInitializeSemaphore(PRKSEMAPHORE s, LONG count, LONG limit) {
    s->Limit = limit;
    ke_header_init(&s->Header, KE_SEMAPHORE, count);
}

LONG KeReleaseSemaphore(PRKSEMAPHORE s, KPRIORITY increment, LONG adjustment, BOOLEAN wait) {
    (void)increment;
    (void)wait;
    ke_dispatcher_enter();
    LONG old = s->Header.SignalState;
    LONG room = s->Limit - old;
    ke_signal_locked(&s->Header, adjustment > room ? s->Limit : old + adjustment);
    ke_dispatcher_leave();
    return old;
}

/* ---- time ---- */

static uint64_t system_time(void) {
    return EPOCH_1601_SECONDS * 10000000ull + os_wall_ns() / NS_PER_TICK;
}

VOID KeQuerySystemTime(PLARGE_INTEGER now) {
    now->QuadPart = (LONGLONG)system_time();
}

ULONGLONG KeQueryInterruptTime(VOID) {
    return os_now_ns() / NS_PER_TICK;
}

LARGE_INTEGER KeQueryPerformanceCounter(PLARGE_INTEGER frequency) {
    LARGE_INTEGER now;
    if (frequency) frequency->QuadPart = 1000000000;
    now.QuadPart = (LONGLONG)os_now_ns();
    return now;
}

VOID KeStallExecutionProcessor(ULONG microseconds) {
    uint64_t end = os_now_ns() + microseconds * OS_NS_PER_US;
    while (os_now_ns() < end)
        os_cpu_relax();
}

uint64_t ke_deadline(LONGLONG due) {
    uint64_t now = os_now_ns();
    if (due < 0) {
        uint64_t ticks = 0 - (uint64_t)due;
        return ticks > (OS_FOREVER - 1 - now) / NS_PER_TICK ? OS_FOREVER - 1
                                                            : now + ticks * NS_PER_TICK;
    }
    uint64_t wall = system_time();
    if ((uint64_t)due <= wall) return now;
    uint64_t ticks = (uint64_t)due - wall;
    return ticks > (OS_FOREVER - 1 - now) / NS_PER_TICK ? OS_FOREVER - 1
                                                        : now + ticks * NS_PER_TICK;
}

/* ---- mutexes ---- */

VOID KeInitializeMutex(PRKMUTEX m, ULONG level) {
    (void)level;
    memset(m, 0, sizeof *m);
    ke_header_init(&m->Header, KE_MUTANT, 1);
}

LONG KeReleaseMutex(PRKMUTEX m, BOOLEAN wait) {
    if (ndk_verifying()) ke_call_enter("KeReleaseMutex", wait ? APC_LEVEL : DISPATCH_LEVEL);
    ke_dispatcher_enter();
    bool mine = m->OwnerThread == KeGetCurrentThread();
    LONG old = m->Header.SignalState;
    if (mine) {
        if (old == 0) m->OwnerThread = NULL;
        ke_signal_locked(&m->Header, old + 1);
    }
    ke_dispatcher_leave();
    if (!mine) {
        ndk_violation(NDK_RULE_spin_lock, "KeReleaseMutex", m,
                      "this thread does not own the mutex");
        ExRaiseStatus(STATUS_MUTANT_NOT_OWNED);
    }
    return old;
}

LONG KeReadStateMutex(PRKMUTEX m) {
    ke_dispatcher_enter();
    LONG state = m->Header.SignalState;
    ke_dispatcher_leave();
    return state;
}

/* ---- waits ---- */

static void check_wait(const char *call, const void *object, bool poll) {
    ke_call_enter(call, poll ? DISPATCH_LEVEL : APC_LEVEL);
    if (!poll && ke_in_callback())
        ndk_violation(NDK_RULE_callback_context, call, object,
                      "a wait inside a callback of the provider");
}

static void report_deadlock(const struct waiter *w, uint32_t threads, uint32_t ms) {
    const void *object = w->b[0].object;
    NTSTATUS status = STATUS_SUCCESS;
    const char *call = ke_hooks_get()->inline_for(object, &status);
    if (call)
        ndk_violation(NDK_RULE_dead_wait, "KeWaitForSingleObject", object,
                      "waited %u.%03u s, and nobody is left who could end it: no request is "
                      "pending, no callback can come, %u threads of the consumer wait. The %s with "
                      "a context near this object returned 0x%08X, and calls nothing back",
                      ms / 1000, ms % 1000, threads, call, (unsigned)status);
    else
        ndk_violation(NDK_RULE_dead_wait, "KeWaitForSingleObject", object,
                      "waited %u.%03u s, and nobody is left who could end it: no request is "
                      "pending, no callback can come, %u threads of the consumer wait",
                      ms / 1000, ms % 1000, threads);
}

/* A wait without end: after a while, is there anybody who could end it? */
static void wait_without_end(struct waiter *w) {
    bool reported = false;
    while (os_u32_load_acquire(&w->done) == 0) {
        uint32_t ms = os_u32_load_relaxed(&ke_deadlock_ms);
        if (!w->blocked || reported || ms == 0) {
            os_wait_on(&w->done, 0, OS_FOREVER);
            continue;
        }
        if (os_wait_on(&w->done, 0, os_now_ns() + ms * OS_NS_PER_MS)) continue;
        uint32_t threads = os_u32_load_acquire(&w->done) ? 0 : ke_deadlock();
        if (threads) report_deadlock(w, threads, ms);
        reported = threads != 0;
    }
}

/* STATUS_SUCCESS: satisfied, w->index says by which. */
static NTSTATUS wait_for(struct waiter *w, PLARGE_INTEGER timeout) {
    bool poll = timeout && timeout->QuadPart == 0;
    w->thread = KeGetCurrentThread();
    for (uint32_t i = 0; i < w->count; i++)
        sn_list_init(&w->b[i].link);
    ke_dispatcher_enter();
    bool taken = satisfy_locked(w);
    for (uint32_t i = 0; !taken && !poll && i < w->count; i++)
        sn_list_push_back(&waiters, &w->b[i].link);
    if (!taken && !timeout && ndk_verifying()) w->blocked = ke_blocked_begin_locked();
    ke_dispatcher_leave();
    if (taken) return STATUS_SUCCESS;
    if (poll) return STATUS_TIMEOUT;
    if (!timeout) wait_without_end(w);
    uint64_t deadline = timeout ? ke_deadline(timeout->QuadPart) : OS_FOREVER;
    while (os_u32_load_acquire(&w->done) == 0)
        if (!os_wait_on(&w->done, 0, deadline)) break;
    ke_dispatcher_enter(); /* the waker, if there is one, is through with w */
    taken = os_u32_load_acquire(&w->done) != 0;
    remove_blocks_locked(w);
    ke_dispatcher_leave();
    return taken ? STATUS_SUCCESS : STATUS_TIMEOUT;
}

static void say_timeout(const void *object) {
    const struct ke_hooks *hooks = ndk_verifying() ? ke_hooks_get() : NULL;
    if (hooks) hooks->on_wait_timeout(object);
}

NTSTATUS KeWaitForSingleObject(PVOID object, KWAIT_REASON reason, KPROCESSOR_MODE mode,
                               BOOLEAN alertable, PLARGE_INTEGER timeout) {
    (void)reason;
    (void)mode;
    (void)alertable;
    bool poll = timeout && timeout->QuadPart == 0;
    if (ndk_verifying()) check_wait("KeWaitForSingleObject", object, poll);
    struct wait_block b = { .object = object };
    struct waiter w = { .count = 1, .b = &b };
    b.waiter = &w;
    NTSTATUS status = wait_for(&w, timeout);
    if (status == STATUS_TIMEOUT && !poll) say_timeout(object);
    return status;
}

NTSTATUS KeWaitForMultipleObjects(ULONG count, PVOID objects[], WAIT_TYPE type, KWAIT_REASON reason,
                                  KPROCESSOR_MODE mode, BOOLEAN alertable, PLARGE_INTEGER timeout,
                                  PKWAIT_BLOCK blocks) {
    (void)reason;
    (void)mode;
    (void)alertable;
    struct wait_block b[MAXIMUM_WAIT_OBJECTS];
    bool poll = timeout && timeout->QuadPart == 0;
    if (ndk_verifying()) check_wait("KeWaitForMultipleObjects", objects, poll);
    if (count == 0 || count > MAXIMUM_WAIT_OBJECTS || (count > THREAD_WAIT_OBJECTS && !blocks))
        KeBugCheckEx(0x0C, count, 0, 0, 0); /* MAXIMUM_WAIT_OBJECTS_EXCEEDED */
    struct waiter w = { .count = count, .b = b, .all = type == WaitAll };
    for (ULONG i = 0; i < count; i++)
        b[i] = (struct wait_block){ .object = objects[i], .waiter = &w };
    NTSTATUS status = wait_for(&w, timeout);
    if (status == STATUS_SUCCESS) return w.all ? STATUS_SUCCESS : STATUS_WAIT_0 + (NTSTATUS)w.index;
    for (ULONG i = 0; !poll && i < count; i++)
        say_timeout(objects[i]);
    return status;
}

NTSTATUS KeDelayExecutionThread(KPROCESSOR_MODE mode, BOOLEAN alertable, PLARGE_INTEGER interval) {
    (void)mode;
    (void)alertable;
    if (ndk_verifying()) ke_call_enter("KeDelayExecutionThread", APC_LEVEL);
    uint64_t deadline = ke_deadline(interval->QuadPart);
    os_atomic_u32 never = { 0 };
    while (os_now_ns() < deadline)
        os_wait_on(&never, 0, deadline);
    return STATUS_SUCCESS;
}
