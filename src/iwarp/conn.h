/* SPDX-License-Identifier: MIT
 * conn.h - one iWARP connection, shared by the files of the I/O half.
 * Owns:    struct iw_conn and its rules of locking.
 *
 * Locks: rx_lock for what arrives, tx_lock for what leaves, taken in that order; `state` changes
 * with both held and may be read under either. events.lock is taken before both.
 * Lifetime: counted by watch.refs; held by the core until release, by the poller while watched, by
 * each armed timer.
 */
#ifndef SN_IWARP_CONN_H
#define SN_IWARP_CONN_H

#include "iwarp/capture.h"
#include "iwarp/config.h"
#include "iwarp/iwarp.h"
#include "iwarp/mpa.h"
#include "iwarp/rdmap.h"
#include "iwarp/terminate.h"
#include "os/prim/clock.h"
#include "os/prim/lock.h"
#include "os/io/poller.h"
#include "transport/engine.h"
#include "transport/events.h"

/* A SoftND peer is known by, and reports progress with, a zero-length RDMA Write, whose STag and
 * TO nobody may check: STag is the mark, TO is version, kind and a count (docs/wire.md). */
#define IW_MARK_STAG 0x534F4654u /* "SOFT" */
#define IW_MARK_VERSION 0x5344000100000000ull
#define IW_MARK_VERSION_MASK 0xFFFFFFFF00000000ull

enum {
    IW_TXQ = 16,          /* requests taken from the core and not wholly sent */
    IW_REPORT_EVERY = 16, /* messages after which a report goes out by itself */
    IW_DEFER_MAX = 16,    /* small messages that wait to leave together */
    IW_BURST_MIN = 4,     /* posts between two arrivals that are many */
    IW_DEPTH_CAP = 128,   /* Reads in flight, each direction */
    IW_HELD_MAX = 65536,  /* bytes read ahead while nothing can be done with them */
    IW_LOOKS = 4,         /* reads that find nothing in one poll of a tight loop */
};
#define IW_CONNECT_NS (20000 * OS_NS_PER_MS) /* TCP connect */
#define IW_REPORT_NS (1 * OS_NS_PER_MS)      /* a report that found nothing to ride with */
#define IW_UNKNOWN_NS (100 * OS_NS_PER_MS)   /* until a silent peer counts as foreign */

enum iw_state {
    IW_CONNECTING,   /* active: TCP */
    IW_WAIT_REPLY,   /* active: our request is out */
    IW_ANSWERED,     /* active: accepted, waits for complete() */
    IW_WAIT_REQUEST, /* passive: the request is arriving */
    IW_REQUESTED,    /* passive: waits for accept() or reject() */
    IW_WAIT_FPDU,    /* passive: accepted; nothing may leave before the first FPDU came */
    IW_OPEN,
    IW_LINGER, /* nothing of the application is used any more; flushing, then waiting for FIN */
    IW_DEAD    /* no socket */
};

/* Who the peer is decides when a Send or Write is complete. */
enum iw_peer {
    IW_PEER_UNKNOWN, /* nothing is completed yet */
    IW_PEER_SOFTND,  /* when the peer reports it */
    IW_PEER_FOREIGN  /* when TCP has the bytes */
};

struct iw_read_in { /* an inbound Read Request */
    struct rdmap_read_request rr;
    uint32_t msn;
    uint32_t sent; /* bytes of the response in whole FPDUs */
};

/* FIFO of requests, linked through tp_u64. */
struct iw_fifo {
    struct tp_request *head, *tail;
    uint32_t count;
};

enum iw_tx_source { IW_TX_NONE, IW_TX_REQUEST, IW_TX_RESPONSE };

struct iw_tx { /* [tx_lock] */
    struct tp_request *q[IW_TXQ];
    uint32_t q_head, q_count;
    uint32_t q_sent;               /* payload bytes of q[q_head] in whole FPDUs */
    enum iw_tx_source in_progress; /* a message is cut between two FPDUs */
    enum iw_tx_source last;        /* for taking turns */
    struct {                       /* an FPDU cut by a full socket */
        enum iw_tx_source source;
        uint32_t sent, payload;
        uint8_t head_len, trail_len;
        bool active, last;
        bool bounced; /* its payload is at bounce + bounce_at */
        uint32_t bounce_at;
        uint8_t head[RDMAP_HEAD_MAX];
        uint8_t trail[MPA_TRAILER_MAX];
    } part;
    uint8_t *bounce; /* payload on its way with a CRC, see stream_tx.c; NULL until first needed */
    uint8_t *raw;    /* bytes of our own that go before anything else */
    size_t raw_cap, raw_off, raw_len;
    uint32_t send_msn, read_msn; /* the next to use */
    uint32_t reads_out;          /* Reads taken from the core and not answered */
    uint32_t deferred;           /* posts left in the core's queue ... */
    uint32_t burst;              /* ... and how busily it posts, see iw_tx_defer */
    struct iw_fifo unconfirmed;  /* Sends and Writes sent, not completed */
    uint32_t confirm_base;       /* number of the first of them */
    uint32_t confirm_last;       /* count in the peer's last report */
    struct iw_fifo reads;        /* Read Requests sent */
    struct iw_read_in *irq;      /* inbound Reads, a ring of irq_cap */
    uint32_t irq_cap, irq_head, irq_count;
    uint32_t mulpdu;
    os_atomic_u32 blocked; /* [tx_lock for writes] the socket was full */
    uint64_t busy_ns;      /* spent in sending much, not yet told to the engine */
    bool shut;             /* FIN sent */
    struct mpa_markers markers;
    bool failed; /* to be carried out by iw_settle */
    bool fail_fault_set;
    sn_status fail_status;
    struct rdmap_fault fail_fault;
    uint8_t fail_about[RDMAP_HEAD_READ_REQUEST]; /* ULPDU_Length and ULPDU of the offender */
    size_t fail_about_len;
};

struct iw_place { /* in a scatter list */
    uint32_t idx, off;
};

enum iw_rx_phase { IW_RX_HEAD, IW_RX_PAYLOAD, IW_RX_TRAILER };

struct iw_rx { /* [rx_lock] */
    enum iw_rx_phase phase;
    uint8_t head[RDMAP_HEAD_MAX];
    uint32_t head_have;
    uint8_t trail[MPA_TRAILER_MAX];
    uint32_t trail_have;
    uint16_t ulpdu_len;
    struct rdmap_segment seg;
    uint32_t seg_off; /* payload of this segment placed */
    uint32_t crc;
    uint32_t send_msn, read_msn, response_msn; /* the next expected */
    struct tp_receive *recv;                   /* of the Send that is arriving */
    uint32_t recv_len;                         /* payload of it in whole segments */
    struct tp_request *read;                   /* the Read whose response is arriving */
    struct iw_place recv_at, read_at;          /* where the next byte of each goes */
    os_atomic_u32 stalled;                     /* a Send waits for a receive */
    bool fault_set;                            /* this FPDU is refused, once its CRC is known */
    struct rdmap_fault fault;
    sn_status fault_status;    /* what the connection ends with */
    bool eof;                  /* the peer's FIN was read */
    bool much;                 /* the last turn brought more than a few small messages */
    bool streams;              /* it was part of a long stream */
    bool misled;               /* what was foretold of this message was not so */
    struct mpa_foretold ahead; /* what follows the last FPDU, if its sender said so */
    uint8_t *held; /* bytes read but not looked at: before complete(), or while stalled */
    size_t held_len;
    uint8_t *bounce; /* payload on its way into place, see stream_rx.c; NULL until first needed */
    uint8_t mark[RDMAP_HEAD_TAGGED - 4]; /* how a report of a SoftND peer begins, up to its count */
};

struct iw_conn {
    struct tp_conn base;
    struct tp_watch watch;
    struct tp_engine *eng;
    struct tp_events events;
    os_lock rx_lock, tx_lock;
    os_atomic_u32 state;        /* enum iw_state */
    bool active;                /* [const] */
    struct iw_capture *capture; /* [const] NULL: none */
    bool established;           /* [rx_lock] on_established was or will be called */

    const struct tp_upcalls *up; /* [set before the state that uses it] */
    void *qp;

    struct tp_timer timer; /* the deadline of the present state, or of a stalled Send */
    struct tp_timer report_timer;
    uint64_t unknown_until_ns;
    os_atomic_u32 report_armed;

    struct os_addr local, remote;
    uint8_t *start; /* start-up frame under construction; freed when open */
    uint32_t start_len;
    uint8_t *pd;
    uint32_t pd_len;
    uint8_t rev;
    bool enhanced, p2p, rtr_write, rtr_read; /* as agreed */
    bool retried;                            /* revision 1 after revision 2 failed */
    bool crc, crc_asked;
    bool tx_markers;
    uint32_t ird, ord;           /* in force */
    uint32_t want_ird, want_ord; /* ours, as asked for */
    bool patient;                /* a Send may wait for a receive for ever */
    struct iw_config cfg;        /* [const] of the listener or the connect */
    uint32_t peer_ird, peer_ord;

    os_atomic_u32 peer;      /* [tx_lock for writes] enum iw_peer */
    os_atomic_u32 reported;  /* [tx_lock for writes] count in the last report sent */
    os_atomic_u32 processed; /* [written under rx_lock] Sends and Writes of the peer done */
    os_atomic_u32 hello_due; /* [tx_lock for writes] the first report is owed */
    bool report_now;         /* [tx_lock] a report that is due leaves even alone */

    bool last_was_write; /* [rx_lock] the last message that counts was a Write */

    struct iw_rx rx;
    struct iw_tx tx;
    struct tp_request rtr_read_request; /* stands in tx.reads for a Read that is our RTR */
    uint8_t *out_pd;                    /* our private data, until the reply is here */
    uint32_t out_pd_len;
    struct iw_listener *listener; /* [its lock] until the request was handed up */
    bool request_settled;         /* [rx_lock] tell the listener: the request is whole, or dead */
    struct sn_list listener_link; /* [listener's lock] */
};

static inline enum iw_state iw_state(const struct iw_conn *c) {
    return (enum iw_state)os_u32_load_acquire(&c->state);
}
static inline enum iw_peer iw_peer(const struct iw_conn *c) {
    return (enum iw_peer)os_u32_load_relaxed(&c->peer);
}
static inline struct iw_conn *iw_conn_of(struct tp_conn *c) {
    return SN_CONTAINER(c, struct iw_conn, base);
}

/* True if what follows an FPDU is told with it, see mpa_foretold. */
static inline bool iw_foretells(const struct iw_conn *c) {
    return iw_peer(c) == IW_PEER_SOFTND && !c->crc && !c->tx_markers;
}

/* The socket, with the capture looking on if there is one. */
static inline sn_status iw_conn_writev(struct iw_conn *c, const struct os_iov *iov, size_t count,
                                       size_t *put) {
    if (SN_LIKELY(!c->capture)) return os_sock_writev(c->watch.sock, iov, count, put);
    return iw_capture_writev(c->capture, c->watch.sock, iov, count, put);
}
static inline sn_status iw_conn_readv(struct iw_conn *c, const struct os_iov *iov, size_t count,
                                      size_t *got) {
    if (SN_LIKELY(!c->capture)) return os_sock_readv(c->watch.sock, iov, count, got);
    return iw_capture_readv(c->capture, c->watch.sock, iov, count, got);
}

/* conn.c */
struct iw_conn *iw_conn_create(struct tp_engine *eng, bool active);
/* Both locks held. The only place that changes a state; checks that the step is legal. */
void iw_set_state(struct iw_conn *c, enum iw_state to);
/* Sets what the poller watches for, from the state. tx_lock held. */
void iw_set_interest(struct iw_conn *c);
void iw_arm(struct iw_conn *c, struct tp_timer *t, uint64_t delay_ns);
void iw_disarm(struct iw_conn *c, struct tp_timer *t);
/* Ends the use of the application's memory and starts the farewell: the rest of a cut FPDU, a
 * report, a Terminate for `fault` if not NULL, FIN. Both locks held. */
void iw_farewell(struct iw_conn *c, const struct rdmap_fault *fault,
                 const struct terminate_about *about);
/* Both locks held: the connection ended for reason st; farewell and event. */
void iw_fail(struct iw_conn *c, sn_status st, const struct rdmap_fault *fault,
             const struct terminate_about *about);
/* Both locks held: closes the socket at once. */
void iw_drop_socket(struct iw_conn *c, bool reset);

/* Both locks held, IW_LINGER: flushes what is left, then waits for the peer's FIN. */
void iw_linger(struct iw_conn *c);

/* setup.c */
void iw_setup_ready(struct iw_conn *c); /* both locks held */
sn_status iw_connect(struct tp_engine *eng, struct tp_port *port, const struct os_addr *peer,
                     const struct tp_setup *setup, struct tp_conn **out);
sn_status iw_complete(struct tp_conn *c, uint32_t ird, uint32_t ord);
sn_status iw_accept(struct tp_conn *c, const struct tp_setup *setup);
sn_status iw_reject(struct tp_conn *c, const void *pd, uint32_t pd_len);

/* listener.c */
sn_status iw_listen(struct tp_engine *eng, struct tp_port *port, uint32_t backlog,
                    const struct tp_listener_upcalls *up, void *ctx, struct tp_listener **out);
void iw_listener_close(struct tp_listener *l);
/* The request of a connection is whole (its state is IW_REQUESTED) or the connection came to
 * nothing. No lock held. */
void iw_listener_settle(struct iw_conn *c, struct iw_listener *l);
/* The connection's listener with a reference, which settle gives back; NULL if it has none any
 * more. rx_lock held: without it the listener may be closed and gone. */
struct iw_listener *iw_listener_hold(struct iw_conn *c);

/* stream_rx.c; rx_lock held */
bool iw_rx_progress(struct iw_conn *c);
/* One read of bytes to be looked at later, up to IW_HELD_MAX in all. */
sn_status iw_rx_hold_more(struct iw_conn *c);
/* While a Send waits: reads on, so that the end of the stream is noticed. */
void iw_rx_read_ahead(struct iw_conn *c);
/* A receive was posted: a stalled Send goes on. */
void iw_rx_resume(struct iw_conn *c);
/* A stalled Send's grace is over, if there is one: false if not. */
bool iw_rx_stall_over(struct iw_conn *c);

/* stream_tx.c; tx_lock held */
bool iw_tx_progress(struct iw_conn *c);
/* True: what was posted waits, to leave together with what follows. */
bool iw_tx_defer(struct iw_conn *c);
/* Both locks held: ends the connection if sending failed. */
void iw_settle_locked(struct iw_conn *c);
/* True if a report is owed to a SoftND peer. */
bool iw_report_due(struct iw_conn *c);
/* Appends bytes that leave before anything else; false if there is no memory. */
bool iw_tx_raw(struct iw_conn *c, const void *data, size_t len);
/* Appends an FPDU without payload (its head is all of it). */
bool iw_tx_raw_fpdu(struct iw_conn *c, const uint8_t *head, size_t head_len);
bool iw_tx_raw_report(struct iw_conn *c);
/* Appends the unsent rest of a cut FPDU; false if its memory is gone. */
bool iw_tx_raw_part(struct iw_conn *c);
sn_status iw_tx_flush_raw(struct iw_conn *c);
void iw_fifo_push(struct iw_fifo *f, struct tp_request *req);
struct tp_request *iw_fifo_pop(struct iw_fifo *f);
void iw_peer_decided(struct iw_conn *c, enum iw_peer peer);
/* The peer says it has processed `count` messages; false if that cannot be. */
bool iw_confirmed(struct iw_conn *c, uint32_t count);

#endif
