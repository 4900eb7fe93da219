/* SPDX-License-Identifier: MIT
 * thread.h - threads, one-time initialisation, and the wait word.
 * Threads: any.   Errors: SN_E_RESOURCES when the system gives no thread.
 */
#ifndef SN_OS_THREAD_H
#define SN_OS_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/status.h"
#include "os/prim/atomic.h"

typedef struct {
    uint64_t native;
} os_thread;

/* Starts fn(arg) on a thread of its own, with all signals blocked. Join it exactly once. */
SN_MUST_CHECK sn_status os_thread_start(os_thread *t, const char *name, void (*fn)(void *arg),
                                        void *arg);
void os_thread_join(os_thread t);
/* Lets a thread go that is never joined. */
void os_thread_detach(os_thread t);
/* A number that is unique among living threads and never 0. */
uint64_t os_thread_self(void);
void os_thread_yield(void);
/* The calling thread does little at a time: asks the system to run it soon after it wakes, even if
 * others compute on its processor, and to prefer it to them where the process may ask for that.
 * Without a way does nothing. On Windows: the system's timer ticks each millisecond from then on.
 * Before it ends the thread calls it with false. */
void os_thread_set_prompt(bool on);

/* Runs fn once per `once`, other callers wait for it. Initialise with OS_ONCE_INIT. */
typedef struct {
    os_atomic_u32 state;
} os_once;
#define OS_ONCE_INIT                                                                               \
    {                                                                                              \
        { 0 }                                                                                      \
    }
enum { OS_ONCE_DONE = 2 };
void os_once_run_slow(os_once *once, void (*fn)(void)); /* os_once_run's */
static inline void os_once_run(os_once *once, void (*fn)(void)) {
    if (os_u32_load_acquire(&once->state) != OS_ONCE_DONE) os_once_run_slow(once, fn);
}

/* Sleeps while *word == expected, until os_wake_* on the same word or the deadline (monotonic ns,
 * UINT64_MAX: for ever). Spurious returns happen; false on time-out. */
bool os_wait_on(os_atomic_u32 *word, uint32_t expected, uint64_t deadline_ns);
void os_wake_one(os_atomic_u32 *word);
void os_wake_all(os_atomic_u32 *word);

/* Keeps the module that contains this code loaded until the process ends. Idempotent. */
void os_pin_module(void);
/* The absolute path of the module that contains this code, UTF-8; false if it does not fit. */
bool os_module_path(char *buf, uint32_t size);
/* This process's id. */
uint32_t os_process_id(void);

#endif
