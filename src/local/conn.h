/* SPDX-License-Identifier: MIT
 * conn.h - one same-host connection, shared by the files of this transport.
 * Owns:    struct lo_conn and its rules of locking.
 *
 * Locks: rx_lock for what arrives, tx_lock for what leaves (lo_tx_enter), taken in that order;
 * `state` changes with both held and may be read under either. events.lock is taken before both.
 * Lifetime: counted by watch.refs; held by the core until release, by the engine while the socket
 * is watched, by the hub while the connection has a number, by each armed timer.
 */
#ifndef SN_LOCAL_CONN_H
#define SN_LOCAL_CONN_H

#include "local/hub.h"
#include "local/local.h"
#include "local/shared.h"
#include "os/io/poller.h"
#include "os/prim/clock.h"
#include "transport/engine.h"
#include "transport/events.h"
#include "transport/port.h"

enum {
    LO_ACK_EVERY = 16,    /* slots after which the peer is told without being asked */
    LO_DEPTH_CAP = 128,   /* Reads in flight, each direction */
    LO_IDLE_LOOK = 16384, /* empty polls between two looks at the socket */
    LO_TELL_BATCH = 16,   /* messages that are told the core together */
    LO_REAP_EVERY = 16,   /* slots heard of after which silent requests are completed */
};
#define LO_REQUEST_NS (5000 * OS_NS_PER_MS)  /* from accept to the request */
#define LO_ANSWER_NS (600000 * OS_NS_PER_MS) /* an application is in between */
#define LO_RNR_NS (3000 * OS_NS_PER_MS)      /* a Send may wait for a receive this long */
#define LO_ACK_NS (1 * OS_NS_PER_MS)         /* an acknowledgement that found nothing to ride on */

enum lo_state {
    LO_WAIT_REPLY,   /* active: our request is out */
    LO_ANSWERED,     /* active: accepted, waits for complete() */
    LO_WAIT_REQUEST, /* passive: connected, the request is not here yet */
    LO_REQUESTED,    /* passive: waits for accept() or reject() */
    LO_WAIT_READY,   /* passive: accepted */
    LO_OPEN,
    LO_ENDED /* nothing of the application is used any more */
};

/* FIFO of requests, linked through tp_u64. */
struct lo_fifo {
    struct tp_request *head, *tail;
};

struct lo_read_in { /* a Read that the peer asked us to answer */
    uint64_t addr;
    uint32_t token, size;
    uint32_t sent;
};

struct lo_place { /* in a scatter list */
    uint32_t idx, off;
};

/* A side's payload ring, the same arithmetic for who writes and who reads. */
struct lo_ring {
    uint32_t head; /* bytes ever used, skipped ones included */
};

struct lo_tx {           /* [tx_lock] */
    os_atomic_u32 pos;   /* [tx_lock for writes] slots written */
    os_atomic_u32 acked; /* [tx_lock for writes] slots the peer is through with */
    struct lo_ring data;
    uint32_t data_tail;
    uint32_t data_end[LO_SLOTS]; /* data.head after each slot */
    struct tp_request *cur;      /* taken from the core, not wholly written or copied */
    uint32_t cur_off;
    bool doomed; /* cur fails with doom_status when its turn to complete comes */
    sn_status doom_status;
    struct lo_fifo unacked; /* wholly written; tp_u32[0] is the number of the last slot + 1 */
    uint32_t loud;          /* of them, or of what is done behind them, give a result */
    bool asks;              /* one more of them than before does */
    os_atomic_u32 wanted;   /* [tx_lock for writes] from this count of slots on an acknowledgement
                             * completes something that gives a result, as far as is known */
    struct lo_fifo reads;   /* asked through the ring, not answered */
    uint32_t reads_out;
    struct lo_read_in *irq;                /* inbound Reads, a ring of irq_cap */
    uint32_t irq_cap, irq_head, irq_count; /* head: below cap */

    bool bell;               /* something was written since the peer was told */
    uint32_t helps;          /* parts of Sends that we copied for the peer */
    os_atomic_u32 more;      /* [tx_lock for writes] work is left that waits for nobody */
    os_atomic_u32 busy;      /* [tx_lock for writes] 0: nothing to do before the next post */
    os_atomic_u32 published; /* [tx_lock for writes] slots of the peer's that it knows are done */
    bool failed;             /* to be carried out by lo_settle_locked */
    sn_status fail_status;
};

struct lo_rx {                      /* [rx_lock] */
    os_atomic_u32 pos;              /* [rx_lock for writes] slots we are through with */
    struct lo_ring data, data_next; /* now, and after the slot at hand */
    bool begun;                     /* the slot at hand was looked at, and is not served yet: */
    struct lo_slot at_hand;         /* its head, as it was then */
    struct lo_piece pieces[LO_PIECES_MAX]; /* what a described Send said then */
    struct tp_receive *recv;               /* of the Send that is arriving */
    uint32_t recv_len;                     /* payload of it that is placed */
    struct lo_place recv_at, read_at;
    struct tp_request *read; /* whose answer is arriving */
    uint32_t read_len;
    uint32_t pull_off; /* of a described Send: bytes fetched */
    uint32_t help_off; /* of the part that the peer may copy; holds while help is not 0 */
    uint32_t help_len;
    uint32_t helps;        /* offers made */
    os_atomic_u32 help;    /* [rx_lock for writes] the word of our offer; 0: there is none */
    os_atomic_u32 stalled; /* a Send waits for a receive */
    os_atomic_u32 heard;   /* [rx_lock for writes] the newest acknowledgement that rode on a slot */
    bool eof;              /* the peer's end of the socket is closed */
    uint32_t untold;       /* [rx_lock, 0 when it is left] messages that arrived: */
    struct tp_received told_next[LO_TELL_BATCH];
};

struct lo_conn {
    struct tp_conn base;
    struct tp_watch watch;
    struct tp_engine *eng;
    struct lo_hub *hub;
    struct tp_events events;
    os_lock rx_lock, tx_lock;
    os_atomic_u32 state;  /* enum lo_state */
    bool active;          /* [const] */
    os_atomic_u32 joined; /* has a number: index holds */
    uint32_t index;       /* [const once joined] on our board */

    const struct tp_upcalls *up; /* [set before the state that uses it] */
    void *qp;
    struct tp_share *share; /* our table */
    bool patient;           /* a Send may wait for a receive for ever */

    struct tp_timer timer; /* the deadline of the present state, or of a stalled Send */
    struct tp_timer ack_timer;
    os_atomic_u32 ack_armed; /* [tx_lock for writes; cleared under rx_lock, too] */

    /* [const once the hello is here] */
    struct os_local_peer who;
    struct os_shm shm;
    struct lo_side *mine, *theirs;
    struct lo_peer *peer;
    uint32_t peer_index;
    uint64_t peer_qp_id;
    bool peer_can_pull; /* [set before OPEN] it fetches long Sends of ours */
    bool can_copy;      /* [set before OPEN] we copy to and from its memory */

    struct os_addr local, remote;
    struct tp_port *port; /* active side: kept for the life of the connection */
    uint32_t ird, ord, peer_ird, peer_ord;
    uint32_t pd_len;
    uint8_t pd[TP_PRIVATE_DATA_MAX];

    uint32_t refuse_read; /* [tx_lock] why the peer's oldest Read cannot be answered; 0: it can */
    uint32_t err_status;  /* [both locks] what the peer is told when we end; 0: nothing */

    uint32_t idle_polls; /* [pollers, a lost count is harmless] */

    struct lo_tx tx;
    struct lo_rx rx;

    struct lo_listener *listener; /* [rx_lock] a reference, until the request is here */
    bool request_settled;         /* [rx_lock] tell the listener */
    struct sn_list listener_link; /* [listener's lock] */
};

static inline enum lo_state lo_state(const struct lo_conn *c) {
    return (enum lo_state)os_u32_load_acquire(&c->state);
}
static inline struct lo_conn *lo_conn_of(struct tp_conn *c) {
    return SN_CONTAINER(c, struct lo_conn, base);
}

/* tx_lock. A short Send is written under the core's queue lock alone, if tx_lock is found free then
 * (try_send): who has begun that is waited for. */
static inline void lo_tx_enter(struct lo_conn *c) {
    os_lock_enter(&c->tx_lock);
    if (SN_LIKELY(lo_state(c) == LO_OPEN)) c->up->sq_pass(c->qp);
}
static inline void lo_tx_leave(struct lo_conn *c) {
    os_lock_leave(&c->tx_lock);
}

/* The word of lo_side.help for another state of the same offer. */
static inline uint32_t lo_help_with(uint32_t word, enum lo_help state) {
    return (word & ~(uint32_t)(LO_HELP_STATES - 1)) | (uint32_t)state;
}
/* The peer offers us a part of a Send of ours. */
static inline bool lo_help_wanted(const struct lo_conn *c) {
    return (os_u32_load_relaxed(&c->theirs->help) & (LO_HELP_STATES - 1)) == LO_HELP_OFFERED;
}

/* conn.c */
struct lo_conn *lo_conn_create(struct tp_engine *eng, struct lo_hub *hub, bool active);
static inline void lo_conn_get(struct lo_conn *c) {
    tp_watch_get(&c->watch);
}
static inline void lo_conn_put(struct lo_conn *c) {
    tp_watch_put(&c->watch);
}
/* Both locks held. The only place that changes a state; checks that the step is legal. */
void lo_set_state(struct lo_conn *c, enum lo_state to);
void lo_arm(struct lo_conn *c, struct tp_timer *t, uint64_t delay_ns);
void lo_disarm(struct lo_conn *c, struct tp_timer *t);
/* Both locks held: the connection ended for reason st. */
void lo_fail(struct lo_conn *c, sn_status st);
/* Both locks held: ends the use of the application's memory and tells the peer; waits for copies
 * that it has under way. */
void lo_end_use(struct lo_conn *c);
/* Both locks held: carries out a failure noted while sending. */
void lo_settle_locked(struct lo_conn *c);
/* Both locks held: the peer's slot at hand cannot be served; its request gets st. */
void lo_refuse(struct lo_conn *c, sn_status st);
/* Makes all progress there is to make. No lock held. */
void lo_conn_work(struct lo_conn *c);
/* Reads what the socket has: set-up messages, wake-ups, the end. Both locks held. */
void lo_conn_read_socket(struct lo_conn *c);

/* For the hub; any context. */
bool lo_conn_has_input(struct lo_conn *c);
bool lo_conn_in_use(const struct lo_conn *c);
static inline bool lo_conn_is_polled(const struct lo_conn *c) {
    return os_u32_load_relaxed(&c->mine->polled) != 0;
}
static inline void lo_conn_set_polled(struct lo_conn *c, bool polled) {
    os_u32_store_seqcst(&c->mine->polled, polled);
}

/* setup.c */
sn_status lo_connect(struct tp_engine *eng, struct tp_port *port, const struct os_addr *peer,
                     const struct tp_setup *setup, struct tp_conn **out);
sn_status lo_complete(struct tp_conn *c, uint32_t ird, uint32_t ord);
sn_status lo_accept(struct tp_conn *c, const struct tp_setup *setup);
sn_status lo_reject(struct tp_conn *c, const void *pd, uint32_t pd_len);
/* Both locks held: reads a set-up message, if there is one. */
void lo_setup_ready(struct lo_conn *c);
/* The name of the end point of an address. */
#define LO_NAME_MAX 100
void lo_endpoint_name(const struct os_addr *addr, char name[LO_NAME_MAX + 1]);

/* listener.c */
sn_status lo_listen(struct tp_engine *eng, struct tp_port *port, uint32_t backlog,
                    const struct tp_listener_upcalls *up, void *ctx, struct tp_listener **out);
void lo_listener_close(struct tp_listener *l);
/* The request of a connection is here, or the connection came to nothing. Takes the connection's
 * reference to its listener, which the caller took out of it. No lock held. */
void lo_listener_settle(struct lo_listener *l, struct lo_conn *c);

/* rx.c; rx_lock held */
bool lo_rx_progress(struct lo_conn *c);
/* A stalled Send's grace is over. */
void lo_rx_stall_over(struct lo_conn *c);
/* Where the next payload of n bytes lies in a ring; moves its head. */
uint32_t lo_ring_take(struct lo_ring *r, uint32_t n);

/* tx.c; tx_lock held */
bool lo_tx_progress(struct lo_conn *c);
/* Sends the next request if that is a Send that fits a slot, and there is nothing else to do.
 * False: lo_tx_progress is needed, or lo_tx_ring or lo_tx_reap. Instead of tx_lock the core's queue
 * lock is held, see lo_tx_enter. */
bool lo_tx_short(struct lo_conn *c);
/* Writes a slot without payload; false if there is no room. */
bool lo_tx_note(struct lo_conn *c, enum lo_kind kind, uint8_t flags);
/* The peer is through with `count` slots; false if that cannot be. */
bool lo_tx_acked(struct lo_conn *c, uint32_t count);
/* Looks at what the peer tells of our slots; true if it was news. */
bool lo_tx_look(struct lo_conn *c);
/* Completes what it is known to be through with; true if there was anything. */
bool lo_tx_reap(struct lo_conn *c);
/* Asks for the lines of the slot that is written next. Any context. */
void lo_tx_prepare(const struct lo_conn *c);
/* Does the part of a Send that the peer offers; true if there was one. */
bool lo_tx_help(struct lo_conn *c);
/* Tells the peer how far we are, if it does not know. */
void lo_tx_publish(struct lo_conn *c);
/* To be called after anything that `busy` sums up has changed. */
void lo_tx_note_busy(struct lo_conn *c);
/* Rings the peer's bell if anything was written since. */
void lo_tx_ring(struct lo_conn *c);
void lo_fifo_push(struct lo_fifo *f, struct tp_request *req);
struct tp_request *lo_fifo_pop(struct lo_fifo *f);

#endif
