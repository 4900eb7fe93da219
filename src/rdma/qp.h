/* SPDX-License-Identifier: MIT
 * qp.h - queue pairs, inside the core.
 * Owns:    struct rd_qp, its initiator queue (sendq.c), receive queue (recvq.c) and state
 *          (qp_state.c).
 *
 * The stream's view. The transport's side of both queues (peek, advance, take, done) runs under the
 * stream's own locks and shares only indexes with the posters; once the transport's close has
 * returned, or on_disconnected came, that side is silent and the queues can be flushed.
 *
 * The connection pointer. Posts to the initiator queue load it under that queue's lock and count
 * there that they call it, and after the call that they are back (sq.calls, sq.returned); others
 * count themselves in conn_users before they load `conn`; polls use it under the completion queue's
 * POLL lock. Whoever ends the connection clears `conn`, passes once through all these locks, waits
 * until all are back, then releases it.
 *
 * Threads: any.   Errors: see rd.h.
 */
#ifndef SN_RDMA_QP_H
#define SN_RDMA_QP_H

#include "rdma/adapter.h"
#include "rdma/async.h"
#include "rdma/cq.h"
#include "rdma/region.h"
#include "rdma/srq.h"

struct rd_connector;

enum {
    RD_SGE_MIN = 4,              /* segments that every queue takes, whatever was asked for */
    RD_TRANSFER_MAX = 0x40000000 /* bytes of a request: the adapter's limit */
};

enum rd_qp_state {
    RD_QP_IDLE,       /* never connected, or the attempt failed */
    RD_QP_CONNECTING, /* a connector has it; nothing flows */
    RD_QP_OPENING,    /* from accept() or complete() on: data may arrive before it is established */
    RD_QP_ESTABLISHED,
    RD_QP_ERROR, /* ended by the peer, an error or a flush: posts are flushed */
    RD_QP_CLOSED /* ended from here: initiator posts are refused, receives flushed */
};

struct rd_sendq_slot {
    struct tp_request req; /* first: transports know slots by it */
    void *context;
    /* NULL but in a slot that holds such a request. */
    struct rd_window *window; /* bind, invalidate: a reference */
    struct rd_region *region; /* fast register and its invalidate: a reference */
    struct rd_fastreg *fast;  /* fast register until its turn */
    uint64_t bind_id;
    uint8_t invalidate_sink; /* Read: end the fast registration of its first segment */
    uint8_t type;            /* enum rd_request_type */
    uint8_t silent;
    uint8_t done;
    uint8_t status; /* sn_status, once done */
};

enum rd_sendq_mode { RD_SQ_UNCONNECTED, RD_SQ_OPEN, RD_SQ_FLUSHED, RD_SQ_CLOSED };

/* Indexes run freely, slot = index & mask. head <= taken <= visible <= tail. */
struct rd_sendq {
    os_lock lock; /* rank SQ: posters, completion, mode */
    struct rd_sendq_slot *ring;
    struct tp_sge *sges;                         /* max_sge per slot */
    uint8_t *inline_data;                        /* inline_bytes per slot; NULL if there is none */
    uint32_t depth, mask, max_sge, inline_bytes; /* [const] */
    uint32_t tail;                               /* [lock] next to post */
    uint32_t head;                               /* [lock] oldest not completed */
    os_atomic_u32 visible;   /* [lock for writes; pairs with peek] what the stream may start */
    os_atomic_u32 taken;     /* [stream's send lock] next for the stream */
    os_atomic_u32 stopped;   /* [lock for writes] an error was completed: nothing starts any more */
    enum rd_sendq_mode mode; /* [lock] */
    bool may_open;           /* [lock] the first message that arrives allows posting */
    os_atomic_u32 opened;    /* [lock for writes] mode was OPEN once */
    uint32_t ord;            /* [lock] Reads this side may issue at a time */
    uint32_t calls;          /* [lock] times that a post called the connection */
    os_atomic_u32 returned;  /* [atomic: pairs with conn] and came back */
    struct rd_lookup source; /* [stream's send lock] */
};

struct rd_recvq_slot {
    struct tp_receive recv; /* first: transports know slots by it */
    void *context;
};

struct rd_recvq {
    os_lock lock;               /* rank RQ: posters, mode */
    struct rd_recvq_slot *ring; /* own queue; NULL with a shared one */
    struct tp_sge *sges;
    uint32_t depth, mask, max_sge; /* [const] */
    os_atomic_u32 tail;            /* [lock for writes; pairs with take] */
    os_atomic_u32 taken;           /* [stream's receive lock] */
    os_atomic_u32 head;            /* [stream's receive lock; pairs with posters] */
    os_atomic_u32 starved;         /* [lock for writes] take found nothing since the last success */
    bool flushed;                  /* [lock] posts are completed at once */
    struct rd_lookup target;       /* [stream's receive lock] */
    /* with a shared queue */
    struct sn_list srq_taken; /* [srq lock] */
    struct sn_list srq_wait;  /* [srq lock] */
};

struct rd_qp {
    struct os_ref refs; /* the front end's, the connector's, jobs' */
    struct rd_adapter *ad;
    struct rd_cq *receive_cq, *initiator_cq; /* [const] references */
    struct rd_srq *srq;                      /* [const] reference or NULL */
    void *context;                           /* [const] the front end's */
    uint64_t id;                             /* [const] unique in the adapter */
    uint32_t pd;                             /* [const] protection domain, 0: none */
    bool hold_on_disconnect;                 /* [const] see rd_qp_attr */

    os_atomic_ptr conn;       /* [lock for writes; pairs with conn_users] struct tp_conn */
    os_atomic_u32 conn_users; /* [atomic: pairs with conn] */

    struct rd_sendq sq;
    struct rd_recvq rq;
    struct rd_cq_member receive_member, initiator_member;
    struct rd_cq_member *initiator_as; /* [const] the receive member when both queues are one */

    os_lock lock;                   /* rank QP */
    enum rd_qp_state state;         /* [lock] */
    struct rd_connector *connector; /* [lock] a reference while not IDLE, until it lets go */
    bool dead;                      /* [lock] destroyed by the front end */
    struct sn_list windows;         /* [table lock] bound on this queue pair */
    struct rd_job break_job;
    os_atomic_u32 refused; /* 0, 1 being written, 2 refusal is there to be read */
    struct rd_refusal refusal;
    struct rd_qp_counters counters;

    void *memory; /* both rings */
    size_t memory_bytes;
};

void rd_qp_get(struct rd_qp *qp);
void rd_qp_put(struct rd_qp *qp);

/* ---- the connection pointer ---- */

/* The connection, counted; NULL if there is none. Give it back with rd_qp_conn_unpin. */
static inline struct tp_conn *rd_qp_conn_pin(struct rd_qp *qp) {
    os_u32_fetch_add_seqcst(&qp->conn_users, 1);
    struct tp_conn *conn = os_ptr_load_seqcst(&qp->conn);
    if (!conn) os_u32_fetch_sub_seqcst(&qp->conn_users, 1);
    return conn;
}
static inline void rd_qp_conn_unpin(struct rd_qp *qp) {
    os_u32_fetch_sub_seqcst(&qp->conn_users, 1);
}

/* ---- state (qp_state.c) ---- */

/* A connector takes the queue pair. SN_E_CONNECTED: it is or was in use. Takes references both
 * ways. */
SN_MUST_CHECK sn_status rd_qp_attach(struct rd_qp *qp, struct rd_connector *c);
/* Accept or complete is about to be called: the connection is polled and data may arrive from now
 * on. False if the queue pair was ended meanwhile. */
bool rd_qp_opening(struct rd_qp *qp, struct tp_conn *conn, uint32_t ord);
/* The attempt of connector c failed: idle again, free for another. Nothing if it has left c. */
void rd_qp_detach(struct rd_qp *qp, struct rd_connector *c);
/* Posting is allowed from now on. False if the queue pair was ended meanwhile. */
bool rd_qp_establish(struct rd_qp *qp, uint32_t ord);
/* A message arrived, so the peer is there, although the transport has not said so yet. */
void rd_sendq_open_early(struct rd_qp *qp);
/* The connection is over, the transport holds nothing any more: to ERROR or CLOSED, both queues
 * are flushed. Only with the connection's EVENT lock or none held. */
void rd_qp_end(struct rd_qp *qp, enum rd_qp_state to);
/* The peer closed in order and the queue pair holds its requests: to ERROR, nothing is flushed. */
void rd_qp_hold(struct rd_qp *qp);
/* Takes the connection's pointer away and waits until nobody uses it. No lock held. */
void rd_qp_drop_conn(struct rd_qp *qp, struct tp_conn *conn);
/* Ends the connection from this side, as after an error, and flushes. No lock held. */
void rd_qp_break(struct rd_qp *qp);
/* The same from an upcall: later, on the engine thread. */
void rd_qp_break_later(struct rd_qp *qp);
void rd_qp_job_init(struct rd_qp *qp);

/* ---- queues ---- */

/* Bytes of memory that a queue needs, from its const members; with a base, places it there. */
size_t rd_sendq_layout(struct rd_sendq *sq, uint8_t *base);
size_t rd_recvq_layout(struct rd_recvq *rq, uint8_t *base);

/* [sq lock, cq lock] and [rq lock, cq lock]: everything outstanding is put with SN_E_CANCELED. */
void rd_sendq_flush_locked(struct rd_qp *qp, struct rd_fire *f);
void rd_recvq_flush_locked(struct rd_qp *qp, struct rd_fire *f);

/* The end of a flush, after those locks are released: what it held of a shared queue is free. */
void rd_recvq_flush_end(struct rd_qp *qp);

/* The upcalls of the data path. */
struct tp_request *rd_sendq_peek(void *qp);
void rd_sendq_advance(void *qp);
void rd_sendq_pass(void *qp);
void rd_sendq_done(void *qp, struct tp_request *req, sn_status st);
void rd_sendq_done_many(void *qp, struct tp_request *const *req, uint32_t n);
void rd_sendq_held_back(void *qp);
struct tp_receive *rd_recvq_take(void *qp);
void rd_recvq_done(void *qp, struct tp_receive *recv, sn_status st, uint32_t bytes, uint32_t flags,
                   uint32_t invalidated_token);
void rd_recvq_done_many(void *qp, const struct tp_received *r, uint32_t n);

/* Nothing arrives any more: what a stream took and did not complete is posted again. */
void rd_recvq_rewind(struct rd_qp *qp);
/* The total of a list of segments. SN_E_TOO_LONG above the adapter's limit, SN_E_PARAM: no list. */
SN_MUST_CHECK static inline sn_status rd_sge_total(const struct tp_sge *sge, uint32_t count,
                                                   uint32_t *total) {
    uint64_t sum = 0;
    if (SN_UNLIKELY(count != 0 && !sge)) return SN_E_PARAM;
    for (uint32_t i = 0; i < count; i++)
        sum += sge[i].len;
    if (SN_UNLIKELY(sum > RD_TRANSFER_MAX)) return SN_E_TOO_LONG;
    *total = (uint32_t)sum;
    return SN_OK;
}
/* Segments a request may really have where `asked` were asked for: clients are known to use a few
 * more than they asked for. */
static inline uint32_t rd_sge_room(uint32_t asked, uint32_t limit) {
    return SN_MIN(SN_MAX(asked, RD_SGE_MIN), limit);
}

#endif
