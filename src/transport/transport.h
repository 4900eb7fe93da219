/* SPDX-License-Identifier: MIT
 * transport.h - the seam between the verbs core (above) and a transport (below).
 * Owns:    the request, receive and access types that cross it, and both tables of functions.
 *
 * The core owns queues, regions, completions and every object a user sees. A transport owns one
 * reliable stream per connection: it takes requests from the core's initiator queue in order,
 * moves bytes, and says what became of each. It never knows which front end posted them.
 *
 * Threads: operations may be called from any thread, with no lock of the core held (post_send,
 *          post_receive and poll: no lock of rank EVENT or above).
 *          Data upcalls come with the stream's locks held and may take locks of rank SQ and above.
 *          Event upcalls come with only the connection's EVENT lock held, from the engine thread
 *          or from a thread inside poll or tp_engine_progress.
 * Errors:  sn_status; an operation that a transport does not offer is SN_E_UNSUPPORTED.
 */
#ifndef SN_TRANSPORT_H
#define SN_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/base.h"
#include "base/status.h"
#include "os/io/addr.h"

struct tp_engine;
struct tp_port;
struct tp_conn;
struct tp_listener;
struct tp_share;

#define TP_PRIVATE_DATA_MAX 512 /* bytes a peer may send; what we send is bound by the limits */

/* ---- requests and receives: memory of the core, lent to the transport ---- */

enum tp_op {
    TP_OP_SEND,
    TP_OP_WRITE,
    TP_OP_READ,
    TP_OP_LOCAL /* bind, invalidate, fast register: done by the core when its turn comes */
};

enum {
    TP_F_FENCE = 1,      /* starts only when all earlier Reads of the connection are complete */
    TP_F_SOLICIT = 2,    /* Send: the peer's receive completion is a solicited event */
    TP_F_INVALIDATE = 4, /* Send: the peer invalidates invalidate_token */
    TP_F_INLINE = 8,     /* Send, Write: the payload is in inline_data, sge is unused */
    TP_F_SILENT = 16     /* success is told to nobody: request_done may wait, see tp_ops.reap */
};

struct tp_sge {
    void *addr;
    uint32_t len;   /* bytes */
    uint32_t token; /* local token, see tp_upcalls.access */
};

struct tp_request {
    uint8_t op;    /* enum tp_op */
    uint8_t flags; /* TP_F_* */
    uint16_t sge_count;
    uint32_t length; /* bytes over all segments, or of inline_data */
    uint64_t remote_addr;
    uint32_t remote_token;
    uint32_t invalidate_token;
    struct tp_sge *sge;
    uint8_t *inline_data;
    uint64_t tp_u64; /* the transport's, from sq_peek to request_done */
    uint32_t tp_u32[2];
};

struct tp_receive {
    uint32_t length; /* bytes over all segments */
    uint16_t sge_count;
    struct tp_sge *sge;
};

/* ---- access to registered memory ---- */

enum tp_right {
    TP_LOCAL_READ,  /* source of Send and Write; token is a local one */
    TP_LOCAL_WRITE, /* target of Receive; local token */
    TP_READ_SINK,   /* target of Read; local token */
    TP_REMOTE_READ, /* peer's Read; remote token */
    TP_REMOTE_WRITE /* peer's Write; remote token */
};

/* A piece of memory that stays registered until access_end. */
struct tp_access {
    uint8_t *ptr;         /* where the first byte is */
    size_t len;           /* bytes at ptr; less than asked for where the region is scattered */
    void *hold, *hold_io; /* the core's */
};

/* ---- upcalls: transport to core ---- */

enum { TP_DONE_BATCH = 32 }; /* a good number for requests_done and receives_done */

/* The outcome of a receive that got its message; see receive_done. */
struct tp_received {
    struct tp_receive *recv;
    uint32_t bytes, flags;
};

enum { TP_RECV_SOLICITED = 1, TP_RECV_INVALIDATED = 2 };

struct tp_upcalls {
    /* The next request that was posted and not yet advanced past, or NULL. Called with the send
     * lock held or in try_send, so it never races with itself. The pointer is valid until
     * request_done for it (or until close returns). */
    struct tp_request *(*sq_peek)(void *qp);
    /* Takes the request just peeked: it is now the transport's to finish with request_done. For
     * TP_OP_LOCAL the core performs and completes it inside this call and the transport must not
     * touch it afterwards. */
    void (*sq_advance)(void *qp);
    /* Called with the send lock held, right after it was taken: waits for the try_send that is
     * under way, if there is one. For a transport whose try_send only looks whether it is free. */
    void (*sq_pass)(void *qp);
    /* The outcome of one advanced request, exactly once, in any order: the core completes them to
     * the user in posting order. A status other than SN_OK: the transport must also be about to
     * end the connection (on_disconnected follows). */
    void (*request_done)(void *qp, struct tp_request *req, sn_status st);
    /* request_done with SN_OK for n of them, in this order: one round of locks. */
    void (*requests_done)(void *qp, struct tp_request *const *req, uint32_t n);
    /* Requests wait in the queue, to leave together with what follows: flush_reports is wanted when
     * the application looks for results and finds none, or is about to sleep. */
    void (*held_back)(void *qp);

    /* Takes the oldest posted receive (of the queue pair or its shared queue); NULL if none.
     * Called with the receive lock held. Valid until receive_done (or until close returns). */
    struct tp_receive *(*take_receive)(void *qp);
    /* Exactly once per taken receive, in the order taken. bytes: payload placed. flags TP_RECV_*;
     * invalidated_token is meaningful with TP_RECV_INVALIDATED. */
    void (*receive_done)(void *qp, struct tp_receive *recv, sn_status st, uint32_t bytes,
                         uint32_t flags, uint32_t invalidated_token);
    /* receive_done with SN_OK for n of them, in this order, none invalidated: one round of locks.
     */
    void (*receives_done)(void *qp, const struct tp_received *r, uint32_t n);

    /* Checks token, right and range and pins the memory against deregistration: SN_OK with *out
     * filled (len > 0 unless 0 was asked), to be given back soon with access_end, never held
     * while waiting. SN_E_TOKEN, SN_E_RIGHTS, SN_E_RANGE (also when addr+len wraps), SN_E_PD. */
    sn_status (*access)(void *qp, uint32_t token, uint64_t addr, size_t len, enum tp_right right,
                        struct tp_access *out);
    void (*access_end)(struct tp_access *acc);
    /* Copies len bytes of registered memory, the source of a Send or Write, to dst: access with
     * TP_LOCAL_READ, for short payload. Called as sq_peek is. The statuses of access,
     * SN_E_FAULT; dst is spoilt then. */
    sn_status (*copy_from)(void *qp, uint32_t token, uint64_t addr, size_t len, void *dst);
    /* Copies len bytes to registered memory, the target of a Receive: access with TP_LOCAL_WRITE,
     * for short payload. Called with the receive lock held. False: try with access, which says what
     * is wrong; it may be nothing. */
    bool (*copy_to)(void *qp, uint32_t token, uint64_t addr, size_t len, const void *src);
    /* Send with Invalidate arrived: SN_OK, SN_E_TOKEN (unknown or not to be invalidated by a
     * peer), SN_E_PD (belongs to another queue pair). */
    sn_status (*remote_invalidate)(void *qp, uint32_t token);

    /* ---- events; owner is the ctx of connect or accept ---- */

    /* Active side: the peer's answer. SN_OK: accepted, info is complete. SN_E_REFUSED: nobody
     * listens or rejected (info has the private data of a reject); SN_E_TIMEOUT,
     * SN_E_NET_UNREACHABLE, SN_E_HOST_UNREACHABLE, SN_E_ADDR_EXISTS, SN_E_NO_PORTS,
     * SN_E_PEER_GONE ...: failed, the connection is of no further use but for close/release. */
    void (*on_reply)(void *owner, sn_status st);
    /* Passive side, after accept: SN_OK established; SN_E_REFUSED: the active side rejected or
     * went away after our answer; SN_E_TIMEOUT. */
    void (*on_established)(void *owner, sn_status st);
    /* Passive side, before accept or reject: the peer went away. */
    void (*on_abandoned)(void *owner);
    /* An established connection ended without close: SN_OK the peer closed in order, else why.
     * The transport holds no request and no receive any more; the core flushes its queues. */
    void (*on_disconnected)(void *owner, sn_status st);
};

struct tp_listener_upcalls {
    /* A complete connection request arrived. The connection now belongs to the listener's owner,
     * who accepts, rejects or closes it and then releases it. owner of its events until accept:
     * the value set with tp_conn_set_owner, none before. No lock held. */
    void (*on_request)(void *ctx, struct tp_conn *conn);
};

/* ---- operations: core to transport ---- */

struct tp_conn_info {
    struct os_addr local, peer;
    uint32_t peer_ird; /* Reads the peer serves at a time, as it said */
    uint32_t peer_ord; /* Reads the peer wants to issue at a time, as it said */
    uint32_t pd_len;   /* the peer's private data, exact */
    uint8_t pd[TP_PRIVATE_DATA_MAX];
};

struct tp_setup {
    uint32_t ird; /* Reads this side will serve */
    uint32_t ord; /* Reads this side will issue */
    const void *pd;
    uint32_t pd_len;
    const struct tp_upcalls *up;
    void *owner; /* for events */
    void *qp;    /* for data */
    /* Receives come from a shared queue: a Send that finds none waits for ever, where it otherwise
     * ends the connection after a grace time. */
    bool shared_receives;
    /* For a peer on this host: the adapter's token table, and what it calls the queue pair. NULL:
     * there is none to be shared. */
    struct tp_share *share;
    uint64_t qp_id;
};

struct tp_ops {
    const char *name; /* "iwarp", "local" */
    /* A poll is a system call: how often to poll at most before the application, which polls in a
     * tight loop, is asked to again. 0 or 1: once. */
    uint32_t looks;

    /* Starts listening on a port bound with tp_port_bind, which stays the caller's and must outlive
     * the listener. backlog: connections in the handshake plus handed up and not yet answered is
     * the core's business; here it bounds the system's queue. SN_E_ADDR_IN_USE. */
    sn_status (*listen)(struct tp_engine *eng, struct tp_port *port, uint32_t backlog,
                        const struct tp_listener_upcalls *up, void *ctx, struct tp_listener **out);
    /* No on_request runs or starts after this returns; handshakes under way are dropped. Frees. */
    void (*listener_close)(struct tp_listener *l);

    /* Starts a connection attempt to peer from port (NULL: any). SN_OK: on_reply follows exactly
     * once, unless close comes first; else nothing follows. SN_E_UNSUPPORTED: this transport does
     * not reach that peer, the port is still the caller's; with any other outcome it is taken.
     * Never blocks. */
    sn_status (*connect)(struct tp_engine *eng, struct tp_port *port, const struct os_addr *peer,
                         const struct tp_setup *setup, struct tp_conn **out);
    /* Active side, after on_reply(SN_OK): installs the final read limits, tells the peer that we
     * are ready, and lets requests flow. SN_E_ABORTED: the peer is gone. */
    sn_status (*complete)(struct tp_conn *c, uint32_t ird, uint32_t ord);

    /* Passive side: who gets on_abandoned of a connection handed up by on_request; if the peer is
     * already gone the upcall comes before this returns. No lock of rank EVENT or above held. */
    void (*set_owner)(struct tp_conn *c, const struct tp_upcalls *up, void *owner);
    /* Passive side: answers the request. SN_OK: on_established follows exactly once unless close
     * comes first. SN_E_ABORTED: the peer has gone. */
    sn_status (*accept)(struct tp_conn *c, const struct tp_setup *setup);
    /* Either side, before establishment: tells the peer no. Behaves as close afterwards; the
     * answer still reaches the peer. SN_E_ABORTED: the peer has gone. */
    sn_status (*reject)(struct tp_conn *c, const void *pd, uint32_t pd_len);

    /* Copies what is known of the peer. */
    void (*info)(struct tp_conn *c, struct tp_conn_info *out);

    /* New requests are in the queue. Sends what fits now, in the calling thread. */
    void (*post_send)(struct tp_conn *c);
    /* A request is about to be posted, if nothing is wrong with it: asks for memory that sending it
     * needs. Called with the queue's lock held. NULL: nothing to ask for. */
    void (*prepare_send)(struct tp_conn *c);
    /* As post_send, for what takes no waiting and no upcall but sq_peek, sq_advance and copy_from:
     * called with the queue's lock held (rank SQ). False: post_send has to be called, whether or
     * not anything was sent. NULL: always. */
    bool (*try_send)(struct tp_conn *c);
    /* The queue is full: request_done for what is known to be done and was not told yet, since only
     * silent requests were among it. NULL: there is never such a thing. */
    void (*reap)(struct tp_conn *c);
    /* A receive was posted while the stream waited for one. Cheap when it did not. */
    void (*post_receive)(struct tp_conn *c);
    /* Reads and writes what is possible now without blocking. True if anything was done. Returns
     * at once if another thread is at it. */
    bool (*poll)(struct tp_conn *c);
    /* The application is about to sleep or saw an empty queue: sends what was held back to ride
     * with other data (reports of progress, and requests, see held_back). */
    void (*flush_reports)(struct tp_conn *c);

    /* Ends the connection from our side. What was handed to the wire is still delivered; the
     * socket closes in the background. After this returns the transport holds no request, no
     * receive and no memory of the application, and no upcall runs or will run. Idempotent. Call
     * with no lock held, never from an upcall. */
    void (*close)(struct tp_conn *c);
    /* Drops the core's reference after close or reject: c is gone for the caller. */
    void (*release)(struct tp_conn *c);
};

/* Every transport's connection starts with this. */
struct tp_conn {
    const struct tp_ops *ops;
};

static inline void tp_conn_set_owner(struct tp_conn *c, const struct tp_upcalls *up, void *owner) {
    c->ops->set_owner(c, up, owner);
}

#endif
