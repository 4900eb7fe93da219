/* SPDX-License-Identifier: MIT
 * fake_transport.h - a transport, an engine and a port space in memory, for tests of the core.
 * Owns:    struct fake_conn and what a test can make it do. Connections come in pairs within the
 *          process; bytes are copied from one end's memory to the other's through the core's own
 *          access upcalls, under locks of the ranks that a real transport uses.
 *
 * Events (answers, requests, disconnects) and timers wait until fake_run, a poll or the engine's
 * progress delivers them, so that a test decides when they happen; fake_thread_start lets a thread
 * do it. A connection can be made manual: then requests stay in flight until the test ends them.
 * Threads: any.   Errors: fake_fail_next makes the next operation of a kind fail.
 */
#ifndef SN_TESTS_FAKE_TRANSPORT_H
#define SN_TESTS_FAKE_TRANSPORT_H

#include <pthread.h>
#include "os/prim/lock.h"
#include "rdma/adapter.h"
#include "transport/engine.h"
#include "transport/port.h"
#include "transport/transport.h"

enum { FAKE_INFLIGHT_MAX = 1024 };

struct fake_pair;

struct fake_conn {
    struct tp_conn base;
    struct fake_pair *pair;
    os_lock event_lock, rx_lock, tx_lock;
    pthread_mutex_t pump; /* one thread moves this end's requests at a time */
    os_atomic_u32 pump_again;
    struct fake_conn *peer;
    bool active;
    os_atomic_u32 closed;  /* close or reject was called: no upcalls */
    os_atomic_u32 open;    /* requests flow */
    os_atomic_u32 dead;    /* the stream broke: the event is on its way */
    os_atomic_u32 over;    /* on_disconnected was given */
    os_atomic_u32 waiting; /* a Send of the peer waits for a receive here */
    os_atomic_u32 manual;
    bool keeps; /* what was taken is done when the core asks what became of it */
    bool rejected;
    os_atomic_u32 accepted, completed; /* the other end looks at them when it is closed */
    bool gone_before_answer;
    const struct tp_upcalls *up;
    void *owner, *qp;
    struct tp_setup setup; /* as last given */
    uint8_t pd[TP_PRIVATE_DATA_MAX];
    struct tp_conn_info info;
    struct tp_request *inflight[FAKE_INFLIGHT_MAX]; /* [pump or the manual test] */
    uint32_t inflight_count;
    uint32_t reads_out;
    os_atomic_u32 polls, flushes, post_sends, post_receives;
};

enum fake_op { FAKE_LISTEN, FAKE_CONNECT, FAKE_COMPLETE, FAKE_ACCEPT, FAKE_REJECT, FAKE_OPS };

/* Forgets everything. False, with a message, if a connection, port, engine or listener was left. */
bool fake_reset(void);
uint32_t fake_conns_alive(void);
uint32_t fake_ports_alive(void);
/* Delivers waiting events and due timers until there are none; true if there were any. */
bool fake_run(void);
/* A thread that keeps calling fake_run. */
void fake_thread_start(void);
void fake_thread_stop(void);
/* The next operation of this kind returns st. */
void fake_fail_next(enum fake_op op, sn_status st);
/* Events are delivered inside connect and accept, before they return. */
void fake_set_early(bool early);
/* What tp_engine_watch_count answers. */
void fake_set_watches(uint32_t n);
uint32_t fake_progress_calls(void);
uint32_t fake_cool_calls(void);
uint32_t fake_empty_calls(void);
/* The connection of the most recent connect, and of the most recent request. Borrowed. */
struct fake_conn *fake_last_active(void);
struct fake_conn *fake_last_passive(void);

/* ---- by hand ---- */

/* From now on requests of this end stay in flight. */
void fake_manual(struct fake_conn *c);
/* Takes from the queue what may start; the number in flight now. */
uint32_t fake_take_requests(struct fake_conn *c);
/* Ends the i-th request in flight. */
void fake_finish(struct fake_conn *c, uint32_t i, sn_status st);
/* A message arrives at this end: false if no receive is posted. */
bool fake_arrive(struct fake_conn *c, const void *data, uint32_t len, uint32_t flags,
                 uint32_t token);
/* The oldest receive is taken and stays taken; NULL if there is none. */
struct tp_receive *fake_take_receive(struct fake_conn *c);
void fake_receive_done(struct fake_conn *c, struct tp_receive *r, sn_status st, uint32_t bytes);
/* The stream of this end breaks: both ends learn it. */
void fake_break(struct fake_conn *c, sn_status st);
/* The peer leaves before the request of this passive end was answered. */
void fake_abandon(struct fake_conn *passive);
/* Answers an active connection that nobody listens for: see fake_set_silent. */
void fake_reply(struct fake_conn *active, sn_status st);
/* Connects get no answer by themselves. */
void fake_set_silent(bool silent);

extern const struct tp_ops fake_ops;

#endif
