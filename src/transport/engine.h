/* SPDX-License-Identifier: MIT
 * engine.h - progress: one thread per open adapter that sleeps in the poller.
 * Owns:    the poller, the watches on sockets, timers, and the decision who makes progress: the
 *          engine thread, or the application while it polls hard.
 *
 * Hand-over. A queue that is polled many times in a short time and not armed is "hot"; the engine
 * thread then parks on a 1 ms tick instead of the poller, so that no third thread is runnable, and
 * the pollers serve all sockets through tp_engine_progress. When a tick passes with few hot polls,
 * or when the application arms a notification and no other queue is hot, the engine takes over
 * again. Who looks once or twice each time it was woken, and then sleeps, never becomes hot.
 *
 * Threads: any, but for _destroy.   Errors: SN_E_RESOURCES, SN_E_NOMEM.
 */
#ifndef SN_TRANSPORT_ENGINE_H
#define SN_TRANSPORT_ENGINE_H

#include <stdbool.h>
#include "base/base.h"
#include "os/io/sock.h"
#include "os/prim/atomic.h"

struct tp_engine;

SN_MUST_CHECK sn_status tp_engine_create(struct tp_engine **out);
/* Waits for the thread and for background closes (bounded, 2 s), then frees. No watch or timer of
 * a live connection may be left; no lock held; never from an engine callback. */
void tp_engine_destroy(struct tp_engine *eng);

/* ---- for completion queues ---- */

/* Per-queue state, zero-initialised, owned by the queue. */
struct tp_hot {
    uint32_t empty_streak; /* polls since since_ns, as they count */
    os_atomic_u32 epoch;   /* hot while equal to the engine's epoch */
    uint64_t since_ns;
    os_atomic_u32 full_streak; /* results since full_since_ns */
    os_atomic_u64 full_since_ns;
    os_atomic_u32 worked_seen; /* of the engine's, at the last results */
};
/* The queue was polled and nothing lay in it. looks: its connection was looked at so often, and
 * nothing came; 0: something was read, a message or a part of one. Counts, may make it hot. One
 * thread at a time. */
void tp_engine_polled(struct tp_engine *eng, struct tp_hot *hot, uint32_t looks);
/* It was polled and gave so many results: a hot queue stays hot, and one that gives often, without
 * being armed in between, becomes hot. Any thread. */
void tp_engine_polled_full(struct tp_engine *eng, struct tp_hot *hot, uint32_t results);
/* Calls of the application spent so long sending long messages, in which time it could have polled:
 * counts with the polls of hot queues, and with the results of others. Any thread. */
void tp_engine_worked(struct tp_engine *eng, uint64_t ns);
/* A long stream arrives in the engine's thread, where the application does not look by itself: each
 * sleep between two of its pieces would cost a wake-up, and the computing thread a turn. */
void tp_engine_streams(struct tp_engine *eng);
/* The queue armed a notification or is going away: no longer hot. */
void tp_engine_cool(struct tp_engine *eng, struct tp_hot *hot);
/* Some queue is hot. */
bool tp_engine_is_hot(struct tp_engine *eng);
/* Serves every socket that is ready, without blocking. True if anything was done. */
bool tp_engine_progress(struct tp_engine *eng);
/* Connections the engine watches; 1: polling that one is enough. */
uint32_t tp_engine_watch_count(struct tp_engine *eng);

/* ---- a thread that waits sleeps in the engine's place ---- */

/* The calling thread is about to sleep until a request completes, and may sleep in the poller and
 * do the work itself, which saves the way over the engine's thread. True: it is the leader until
 * _end; the engine's thread rests meanwhile. False: not now: it does not wait often enough,
 * somebody polls hard, or the thread of the engine is in the poller. One thread at a time. */
bool tp_engine_lead_begin(struct tp_engine *eng);
/* The leader: sleeps until something is ready, tp_engine_lead_wake or the deadline. */
void tp_engine_lead_sleep(struct tp_engine *eng, uint64_t deadline_ns);
/* The leader: does what sleep found. False: it must end, others do the work now. */
bool tp_engine_lead_work(struct tp_engine *eng);
/* Ends the leader's sleep, or its next one. Any thread. */
void tp_engine_lead_wake(struct tp_engine *eng);
/* The leader is none any more. If it comes back soon the engine's thread goes on resting, else that
 * takes over after a tick, or at once if others are known to wait. */
void tp_engine_lead_end(struct tp_engine *eng, bool others_wait);

/* ---- for transports ---- */

/* Something that makes progress without sockets: shared memory that peers write to. One per engine;
 * it lives until on_gone, at the end of the engine, when no watch is left. */
struct tp_source {
    /* Does what is there to do; short when there is nothing. True if anything was done. Called like
     * tp_watch.on_ready: by several threads at once, without locks. */
    bool (*poll)(struct tp_source *s);
    /* The engine thread is about to sleep: from now on peers must wake it, through a socket that is
     * watched. How long it may sleep at most, in ns: 0 if something is there, OS_FOREVER. */
    uint64_t (*before_sleep)(struct tp_source *s);
    /* It is awake, or parked: they need not. */
    void (*after_sleep)(struct tp_source *s);
    void (*on_gone)(struct tp_source *s);
};
/* The engine's source, NULL if it has none. */
struct tp_source *tp_engine_source(struct tp_engine *eng);
/* Gives it one. Returns the one it has then: another one if another thread was faster. */
struct tp_source *tp_engine_add_source(struct tp_engine *eng, struct tp_source *s);

struct tp_watch {
    os_sock sock;
    uint32_t events; /* OS_POLL_* wanted now */
    bool quiet;      /* [const] rarely ready: those who poll hard look at it now and then */
    /* Called without locks by the engine thread or by tp_engine_progress, possibly by both at
     * once: the callee serialises. */
    void (*on_ready)(struct tp_watch *w, uint32_t events);
    /* The last reference is gone; the owner may free. */
    void (*on_free)(struct tp_watch *w);
    struct os_ref refs;
    struct tp_engine *eng;
    uint32_t slot, generation;
};

/* Starts watching; the watch holds one reference until removed. Starts the engine thread. */
SN_MUST_CHECK sn_status tp_watch_add(struct tp_engine *eng, struct tp_watch *w);
void tp_watch_set(struct tp_watch *w, uint32_t events);
/* Stops watching and drops the reference; a callback may still be running on another thread. */
void tp_watch_remove(struct tp_watch *w);
void tp_watch_get(struct tp_watch *w);
void tp_watch_put(struct tp_watch *w);

struct tp_timer {
    struct sn_list link;
    uint64_t deadline_ns;
    void (*on_expired)(struct tp_timer *t); /* engine thread, no lock held */
    struct tp_engine *eng;
};
/* A timer in zeroed memory must be initialised once. */
void tp_timer_init(struct tp_timer *t, struct tp_engine *eng,
                   void (*on_expired)(struct tp_timer *t));
/* (Re)arms; true if it was not armed before. Expires at most a few milliseconds late. */
bool tp_timer_arm(struct tp_timer *t, uint64_t delay_ns);
/* After it returns the timer is not armed; on_expired may still be running on the engine thread.
 * True if it was armed: its on_expired will not run for that arming. */
bool tp_timer_cancel(struct tp_timer *t);

#endif
