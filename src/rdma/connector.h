/* SPDX-License-Identifier: MIT
 * connector.h - connectors, inside the core.
 * Owns:    struct rd_connector: the attempt to connect or the request to answer, the connection
 *          that comes of it, and what is pending on it.
 *
 * References: the front end's; the connection's, from its start until it is released; the queue
 * pair's, while it is attached; a listener's, while the connector waits for a request.
 * Threads: any.   Errors: see rd.h.
 */
#ifndef SN_RDMA_CONNECTOR_H
#define SN_RDMA_CONNECTOR_H

#include "rdma/adapter.h"
#include "rdma/async.h"
#include "transport/port.h"

struct rd_qp;

enum rd_connector_state {
    RD_CN_NEW,        /* bound or not */
    RD_CN_CONNECTING, /* connect is pending */
    RD_CN_ANSWERED,   /* the peer accepted; complete or reject */
    RD_CN_COMPLETING, /* in complete() */
    RD_CN_WAITING,    /* given to a listener */
    RD_CN_REQUESTED,  /* has a request; accept or reject */
    RD_CN_ACCEPTING,  /* accept is pending */
    RD_CN_CONNECTED,
    RD_CN_BROKEN,        /* was connected; ended by the peer, an error or a flush */
    RD_CN_DISCONNECTING, /* disconnect is at work */
    RD_CN_ENDED,
    RD_CN_STATES
};

struct rd_connector {
    struct os_ref refs;
    struct rd_adapter *ad;
    os_lock lock;                  /* rank CONN */
    os_cond idle;                  /* `calling` or `closing` changed */
    enum rd_connector_state state; /* [lock] */
    bool dead;                     /* [lock] destroyed by the front end */
    bool was_connected;            /* [lock] */
    bool aborted;                  /* [lock] the peer left before the connection was made */
    bool failed_once;              /* [lock] the last attempt failed: it may be bound anew */
    bool closing;                  /* [lock] a thread is ending the connection */
    uint32_t calling;              /* [lock] threads in an operation of the transport */
    bool starting;                 /* [lock] in connect(): the connection is not known yet */
    bool early_reply;              /* [lock] the answer came while starting */
    sn_status early_status;

    struct tp_port *port; /* [lock] reserved; the next attempt takes it */
    bool bound;           /* [lock] bound_addr holds */
    bool any_port;        /* [lock] bound to port 0 */
    struct os_addr bound_addr;
    bool has_peer; /* [lock] peer_addr holds */
    struct os_addr peer_addr;
    uint32_t ird, ord;        /* [lock] as offered to the peer or asked for */
    bool has_info;            /* [lock] the peer has said something */
    struct tp_conn_info info; /* [lock] */

    struct tp_conn *conn;   /* [lock] */
    struct rd_qp *qp;       /* [lock] a reference, from connect or accept to the destroy */
    struct sn_list pending; /* [lock] asyncs in issue order; core is enum rd_pending */
    struct rd_busy busy;
};

enum rd_pending { RD_PENDING_CONNECT, RD_PENDING_ACCEPT, RD_PENDING_NOTIFY };

void rd_connector_get(struct rd_connector *c);
void rd_connector_put(struct rd_connector *c);

/* The queue pair is flushed or goes away: ends the connection or the attempt. After it returns the
 * transport holds nothing of the queue pair. No lock held. */
void rd_connector_qp_ends(struct rd_connector *c, struct rd_qp *qp);

/* ---- for listeners ---- */

/* The connector waits for a request now. SN_E_PARAM: not a fresh one, or of another adapter. */
SN_MUST_CHECK sn_status rd_connector_wait(struct rd_connector *c);
/* It no longer does. */
void rd_connector_wait_over(struct rd_connector *c);
/* It gets the request; false if it cannot take it any more. No lock of rank EVENT or above held. */
bool rd_connector_take_request(struct rd_connector *c, struct tp_conn *conn);

/* Checks an address to bind to: one of this adapter's, or the wildcard. */
SN_MUST_CHECK sn_status rd_check_local(struct rd_adapter *ad, const struct os_addr *local);

extern const struct tp_upcalls rd_upcalls;

#endif
