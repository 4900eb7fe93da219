/* SPDX-License-Identifier: MIT
 * rd.h - the verbs core, as the front ends (ndspi, ndk) see it.
 * Owns:    adapters, regions and windows, completion queues, shared receive queues, queue pairs
 *          and their work queues, connectors, listeners, limits and counters.
 *
 * Lifetime. Every object is counted. X_create gives the front end's one reference and
 * X_destroy drops it; the object stays in memory while other objects need it, but does nothing
 * visible after X_destroy returns: pending requests have been completed (SN_E_CANCELED), no
 * callback of that object runs or will run. Objects may be destroyed in any order. A child keeps
 * what it needs (a queue pair its completion queues, everything its adapter).
 *
 * Asynchronous calls take a struct rd_async that the caller owns until it is completed. They
 * return SN_PENDING when accepted, then async->done(async, status) comes exactly once, possibly
 * before the call returns and from any thread. No lock of the core is held then, but locks of the
 * transport may be: done records the outcome and wakes whoever waits, on another thread if that one
 * is to call the core. Any other return value: not accepted, done is not called.
 *
 * Threads: every function from any thread at once, unless said otherwise. No function blocks
 *          but for the destroys, rd_region_deregister and rd_qp_flush, which wait briefly (never
 *          for the peer or the application).
 * Errors:  each function lists its own; SN_E_NOMEM and SN_E_RESOURCES may come from every create.
 */
#ifndef SN_RDMA_RD_H
#define SN_RDMA_RD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/base.h"
#include "base/status.h"
#include "os/io/addr.h"
#include "transport/transport.h"

struct rd_adapter;
struct rd_region;
struct rd_window;
struct rd_cq;
struct rd_srq;
struct rd_qp;
struct rd_connector;
struct rd_listener;
struct rd_pd;
struct rd_io;

struct rd_async {
    struct sn_list link; /* the core's while pending */
    void (*done)(struct rd_async *a, sn_status st);
    uint64_t core; /* the core's while pending */
};

/* ---- adapters (adapter.c) ---- */

struct rd_limits {
    uint64_t max_registration_bytes;
    uint64_t max_window_bytes;
    uint32_t max_initiator_sge, max_receive_sge, max_read_sge;
    uint32_t max_transfer_bytes;
    uint32_t max_inline_bytes;
    uint32_t max_ird, max_ord;
    uint32_t max_receive_depth, max_initiator_depth, max_srq_depth, max_cq_depth;
    uint32_t inline_threshold_bytes, large_threshold_bytes;
    uint32_t max_caller_data_bytes, max_callee_data_bytes;
};
const struct rd_limits *rd_limits_get(void);

/* The interfaces that can be opened now, each with a non-zero id that is the same in every process
 * and after a reboot. *out is freed with os_netif_free / free_ids by rd_adapter_list_free. */
struct rd_adapter_entry {
    uint64_t id;
    struct os_netif netif;
};
SN_MUST_CHECK sn_status rd_adapter_list(struct rd_adapter_entry **out, size_t *count);
void rd_adapter_list_free(struct rd_adapter_entry *list);
/* The adapter that has this address (port ignored): SN_E_ADDR_INVALID if none. */
SN_MUST_CHECK sn_status rd_adapter_resolve(const struct os_addr *addr, uint64_t *id);
/* SN_E_PARAM: no such id. Each open is an instance of its own: tokens and objects are not shared.
 */
SN_MUST_CHECK sn_status rd_adapter_open(uint64_t id, struct rd_adapter **out);
void rd_adapter_close(struct rd_adapter *ad);
uint64_t rd_adapter_id(const struct rd_adapter *ad);

/* A thread that waits for the outcome of requests does the work of the adapter's engine meanwhile;
 * transport/engine.h has what each means. No lock held. The adapter is not closed before _end. */
SN_MUST_CHECK bool rd_adapter_lead_begin(struct rd_adapter *ad);
void rd_adapter_lead_sleep(struct rd_adapter *ad, uint64_t deadline_ns);
SN_MUST_CHECK bool rd_adapter_lead_work(struct rd_adapter *ad);
void rd_adapter_lead_wake(struct rd_adapter *ad);
void rd_adapter_lead_end(struct rd_adapter *ad, bool others_wait);
/* The adapter's addresses now (they may come and go). *count in: room, out: number there are. */
SN_MUST_CHECK sn_status rd_adapter_addrs(struct rd_adapter *ad, struct os_addr *out, size_t *count);
/* Adapter objects alive in this process (for DllCanUnloadNow). */
uint32_t rd_live_adapters(void);

/* ---- memory (region.c, window.c) ---- */

enum { /* region flags */
       RD_LOCAL_WRITE = 1,
       RD_REMOTE_READ = 2,
       RD_REMOTE_WRITE = 4, /* implies RD_LOCAL_WRITE */
       RD_READ_SINK = 8     /* target of Read even without RD_LOCAL_WRITE */
};

SN_MUST_CHECK sn_status rd_region_create(struct rd_adapter *ad, struct rd_region **out);
/* Deregisters if need be (also with windows bound: they become invalid). */
void rd_region_destroy(struct rd_region *r);
/* Synchronous. (NULL,0): SN_E_PARAM; (p,0): SN_E_BUFFER_SIZE; above the limit: SN_E_PARAM;
 * not mapped with the access asked for: SN_E_FAULT; already registered: SN_E_REQUEST. Fresh tokens
 * each time. */
SN_MUST_CHECK sn_status rd_region_register(struct rd_region *r, const void *buf, size_t len,
                                           uint32_t flags);
/* SN_E_BUSY while windows are bound; SN_E_REQUEST if not registered. Waits until accesses in
 * flight are over; afterwards no byte of the buffer is read or written. */
SN_MUST_CHECK sn_status rd_region_deregister(struct rd_region *r);
/* 0 while not registered. Wire order is the value itself: what is given to the peer is a number. */
uint32_t rd_region_local_token(const struct rd_region *r);
uint32_t rd_region_remote_token(const struct rd_region *r);

/* Before the first registration: only queue pairs of this domain may use the region. */
void rd_region_set_pd(struct rd_region *r, const struct rd_pd *pd);

/* Protection domains (domain.c). A queue pair and a region with the same one belong together;
 * those without (the default) form a domain of their own. The privileged token gives queue pairs
 * of the domain local access to all that is mapped (below), by logical address; never remote
 * access. */
SN_MUST_CHECK sn_status rd_pd_create(struct rd_adapter *ad, struct rd_pd **out);
/* Nothing uses it any more. */
void rd_pd_destroy(struct rd_pd *pd);
uint32_t rd_pd_id(const struct rd_pd *pd); /* never 0 */
uint32_t rd_pd_token(const struct rd_pd *pd);

/* Logical addresses (iomap.c): the adapter's own names for pages of RD_IO_PAGE bytes. */
#define RD_IO_PAGE 4096ull
/* Maps the pages that [va, va+len) touches; scattered: neighbours do not follow each other. The
 * memory is not looked at. SN_E_PARAM (empty, wraps), SN_E_RESOURCES (4 GiB, or a million). */
SN_MUST_CHECK sn_status rd_io_map(struct rd_adapter *ad, const void *va, size_t len, bool scattered,
                                  struct rd_io **out);
uint64_t rd_io_pages(const struct rd_io *io);
uint64_t rd_io_page(const struct rd_io *io, uint64_t i); /* the logical address of page i */
/* Waits until accesses in flight are over; afterwards its addresses lead nowhere. */
void rd_io_unmap(struct rd_adapter *ad, struct rd_io *io);
bool rd_io_mapped(struct rd_adapter *ad, uint64_t logical);

/* Makes a region one for fast registration (fastreg.c), of up to max_pages; again: changes the
 * numbers. remote: remote rights may be asked for later. fixed: all its registrations have the
 * same remote token, else each has a fresh one. Both tokens are readable afterwards.
 * SN_E_RESOURCES above RD_FAST_PAGES_MAX; SN_E_STATE: registered. */
#define RD_FAST_PAGES_MAX 65536
SN_MUST_CHECK sn_status rd_region_init_fast(struct rd_region *r, uint32_t max_pages, bool remote,
                                            bool fixed);

SN_MUST_CHECK sn_status rd_window_create(struct rd_adapter *ad, struct rd_window **out);
void rd_window_destroy(struct rd_window *w);
uint32_t rd_window_token(const struct rd_window *w); /* 0 while unbound */

/* ---- completion queues (cq.c) ---- */

enum rd_request_type { /* values equal ND2_REQUEST_TYPE */
                       RD_RECEIVE,
                       RD_SEND,
                       RD_BIND,
                       RD_INVALIDATE,
                       RD_READ,
                       RD_WRITE,
                       RD_FAST_REGISTER
};

struct rd_completion {
    sn_status status;
    uint32_t bytes;
    void *qp_context;
    void *request_context;
    uint32_t type;              /* enum rd_request_type */
    uint32_t invalidated_token; /* 0: none; Receive only */
};

/* depth 1..max_cq_depth, else SN_E_PARAM. Memory is committed as it is used. */
SN_MUST_CHECK sn_status rd_cq_create(struct rd_adapter *ad, uint32_t depth, struct rd_cq **out);
void rd_cq_destroy(struct rd_cq *cq);
/* SN_E_PARAM above the limit or 0; SN_E_OVERRUN-free: SN_E_BUFFER_SMALL when below the number of
 * queued results (unchanged). Nothing is lost while traffic runs. */
SN_MUST_CHECK sn_status rd_cq_resize(struct rd_cq *cq, uint32_t depth);
/* Takes up to max results, making progress on the queue pairs bound to it when fewer are there. */
uint32_t rd_cq_poll(struct rd_cq *cq, struct rd_completion *out, uint32_t max);
enum rd_notify {
    RD_NOTIFY_ERRORS, /* an entry of a failed request, or the queue's own failure */
    RD_NOTIFY_ANY,
    RD_NOTIFY_SOLICITED,
    RD_NOTIFY_QUEUE, /* only the queue's own failure */
    RD_NOTIFY_KINDS
};
/* Arms once; many may be outstanding. done: SN_OK, SN_E_CANCELED, SN_E_OVERRUN, SN_E_INTERNAL.
 * Also returned at once: SN_E_PARAM (type). */
SN_MUST_CHECK sn_status rd_cq_notify(struct rd_cq *cq, enum rd_notify type, struct rd_async *a);
/* The other way to be notified: fn is called once per arm, as done is; an arm before that merges
 * into the stronger type (ANY, SOLICITED, ERRORS). Nothing is called for a cancelled arm. Set the
 * callback before the queue is used. */
void rd_cq_set_callback(struct rd_cq *cq, void (*fn)(void *ctx, sn_status st), void *ctx);
/* SN_E_PARAM: type, or no callback. */
SN_MUST_CHECK sn_status rd_cq_arm(struct rd_cq *cq, enum rd_notify type);
/* How many results are queued now. */
uint32_t rd_cq_queued(struct rd_cq *cq);
/* Completes all pending notifications with SN_E_CANCELED in issue order before it returns. */
void rd_cq_cancel(struct rd_cq *cq);

/* ---- shared receive queues (srq.c) ---- */

SN_MUST_CHECK sn_status rd_srq_create(struct rd_adapter *ad, uint32_t depth, uint32_t max_sge,
                                      uint32_t notify_threshold, struct rd_srq **out);
void rd_srq_destroy(struct rd_srq *srq);
SN_MUST_CHECK sn_status rd_srq_modify(struct rd_srq *srq, uint32_t depth,
                                      uint32_t notify_threshold);
SN_MUST_CHECK sn_status rd_srq_notify(struct rd_srq *srq, struct rd_async *a);
/* The same, but only when the number falls below from now on. */
SN_MUST_CHECK sn_status rd_srq_notify_falling(struct rd_srq *srq, struct rd_async *a);
void rd_srq_cancel(struct rd_srq *srq);
/* How many receives wait in it now. */
uint32_t rd_srq_queued(struct rd_srq *srq);
/* SN_E_TOO_LONG, SN_E_FULL, SN_E_TOO_MANY_SGE. */
SN_MUST_CHECK sn_status rd_srq_post(struct rd_srq *srq, void *context, const struct tp_sge *sge,
                                    uint32_t count);

/* ---- queue pairs (qp.c, qp_state.c, sendq.c, recvq.c) ---- */

struct rd_qp_attr {
    struct rd_cq *receive_cq, *initiator_cq;
    struct rd_srq *srq; /* NULL: own receive queue */
    void *context;
    uint32_t receive_depth, initiator_depth;
    uint32_t max_receive_sge, max_initiator_sge;
    uint32_t inline_bytes;
    const struct rd_pd *pd; /* NULL: none */
    /* A peer that disconnects in order leaves the queues as they are; rd_qp_flush empties them.
     * Otherwise the disconnect does. */
    bool hold_on_disconnect;
};
enum rd_qp_attr_fault { /* which member was refused, with SN_E_PARAM */
                        RD_QP_ATTR_OK,
                        RD_QP_ATTR_RECEIVE_CQ,
                        RD_QP_ATTR_INITIATOR_CQ,
                        RD_QP_ATTR_SRQ,
                        RD_QP_ATTR_RECEIVE_DEPTH,
                        RD_QP_ATTR_INITIATOR_DEPTH,
                        RD_QP_ATTR_RECEIVE_SGE,
                        RD_QP_ATTR_INITIATOR_SGE,
                        RD_QP_ATTR_INLINE
};
SN_MUST_CHECK sn_status rd_qp_create(struct rd_adapter *ad, const struct rd_qp_attr *attr,
                                     enum rd_qp_attr_fault *fault, struct rd_qp **out);
/* Implicit disconnect and flush; completions already queued stay in their queues. */
void rd_qp_destroy(struct rd_qp *qp);
/* The first access or invalidation of the peer that was refused, which ends the connection. Not
 * those that the peer finds out about itself, as it may on the same host. False: there was none. */
struct rd_refusal {
    uint32_t token;
    uint64_t addr; /* of accesses */
    uint64_t len;
    enum { RD_REFUSED_READ, RD_REFUSED_WRITE, RD_REFUSED_INVALIDATE } what;
    sn_status why; /* SN_E_TOKEN, SN_E_RIGHTS, SN_E_RANGE, SN_E_PD */
};
bool rd_qp_refusal(const struct rd_qp *qp, struct rd_refusal *out);
/* Completes every outstanding request of both queues with SN_E_CANCELED, all before any
 * notification fires. A connected queue pair is in error afterwards. Always possible. */
void rd_qp_flush(struct rd_qp *qp);

enum { /* post flags */
       RD_POST_SILENT = 1,
       RD_POST_FENCE = 2,
       RD_POST_SOLICIT = 4,
       RD_POST_INLINE = 8,
       RD_POST_INVALIDATE = 16,
       RD_POST_DEFER = 32,          /* do not start before the next post without it */
       RD_POST_READ_INVALIDATE = 64 /* Read: success ends the fast registration of segment 0 */
};
/* Posts: SN_OK accepted, the outcome is a completion. SN_E_NOT_CONNECTED (all but receive),
 * SN_E_TOO_LONG, SN_E_FULL, SN_E_TOO_MANY_SGE, SN_E_REQUEST (Read with outbound limit 0; receive
 * on a queue pair with a shared queue). The sge array is only used during the call. */
SN_MUST_CHECK sn_status rd_qp_send(struct rd_qp *qp, void *context, const struct tp_sge *sge,
                                   uint32_t count, uint32_t flags, uint32_t invalidate_token);
SN_MUST_CHECK sn_status rd_qp_receive(struct rd_qp *qp, void *context, const struct tp_sge *sge,
                                      uint32_t count);
SN_MUST_CHECK sn_status rd_qp_write(struct rd_qp *qp, void *context, const struct tp_sge *sge,
                                    uint32_t count, uint64_t remote_addr, uint32_t remote_token,
                                    uint32_t flags);
SN_MUST_CHECK sn_status rd_qp_read(struct rd_qp *qp, void *context, const struct tp_sge *sge,
                                   uint32_t count, uint64_t remote_addr, uint32_t remote_token,
                                   uint32_t flags);
/* rights: RD_REMOTE_READ, RD_REMOTE_WRITE or 0. Also SN_E_RANGE, SN_E_TOKEN (region not
 * registered), SN_E_RIGHTS (write without local write), SN_E_BUSY (window already bound),
 * SN_E_PARAM (another adapter). The token is readable when this returns. */
SN_MUST_CHECK sn_status rd_qp_bind(struct rd_qp *qp, void *context, struct rd_region *r,
                                   struct rd_window *w, const void *buf, size_t len,
                                   uint32_t rights, uint32_t flags);
/* An unbound window completes with SN_E_REQUEST. */
SN_MUST_CHECK sn_status rd_qp_invalidate(struct rd_qp *qp, void *context, struct rd_window *w,
                                         uint32_t flags);
/* r was made with rd_region_init_fast. The pages form one region that starts fbo bytes into the
 * first, is len bytes long and is addressed from base on. rights: RD_LOCAL_WRITE ... At once:
 * SN_E_STATE (not initialised), SN_E_RIGHTS (remote rights, initialised without), SN_E_PD,
 * SN_E_PARAM (page count, alignment, a page that is not mapped, fbo, len, base). The remote token
 * is readable when this returns. Completes with SN_E_REQUEST while it is registered. */
SN_MUST_CHECK sn_status rd_qp_fast_register(struct rd_qp *qp, void *context, struct rd_region *r,
                                            const uint64_t *pages, uint32_t count, uint32_t fbo,
                                            size_t len, uint64_t base, uint32_t rights,
                                            uint32_t flags);
/* Ends a fast registration. SN_E_PD. Completes with SN_E_REQUEST if there is none. */
SN_MUST_CHECK sn_status rd_qp_invalidate_region(struct rd_qp *qp, void *context,
                                                struct rd_region *r, uint32_t flags);
/* Starts what was posted with RD_POST_DEFER. */
void rd_qp_start_deferred(struct rd_qp *qp);
/* "iwarp", "local", or "none" while not connected. */
const char *rd_qp_transport(const struct rd_qp *qp);
/* Those that a new connection may use, in the order in which they are tried: "local iwarp". */
const char *rd_transports_text(void);

/* ---- connections (connector.c, listener.c) ---- */

SN_MUST_CHECK sn_status rd_connector_create(struct rd_adapter *ad, struct rd_connector **out);
/* Abandons an attempt (the peer is told), disconnects a connection. */
void rd_connector_destroy(struct rd_connector *c);
/* SN_E_ADDR_INVALID (not this adapter's), SN_E_ADDR_BOUND (second bind), SN_E_ADDR_IN_USE,
 * SN_E_NO_PORTS. */
SN_MUST_CHECK sn_status rd_connector_bind(struct rd_connector *c, const struct os_addr *local);
/* done: SN_OK (the peer accepted), SN_E_REFUSED, SN_E_TIMEOUT, SN_E_NET_UNREACHABLE,
 * SN_E_HOST_UNREACHABLE, SN_E_NET_NAME, SN_E_ADDR_EXISTS, SN_E_CANCELED. At once: SN_E_BUFFER_SIZE
 * (private data above the limit; the connector stays usable), SN_E_CONNECTED (connector or queue
 * pair in use), SN_E_PARAM (queue pair of another adapter), SN_E_NET_NAME (wildcard or wrong
 * family). */
SN_MUST_CHECK sn_status rd_connector_connect(struct rd_connector *c, struct rd_qp *qp,
                                             const struct os_addr *peer, uint32_t ird, uint32_t ord,
                                             const void *pd, uint32_t pd_len, struct rd_async *a);
/* At once: SN_E_NOT_CONNECTED when not answered; done: SN_OK, SN_E_ABORTED, SN_E_CANCELED. */
SN_MUST_CHECK sn_status rd_connector_complete(struct rd_connector *c, struct rd_async *a);
/* done: SN_OK established; SN_E_REFUSED; SN_E_ABORTED (gone before); SN_E_TIMEOUT; SN_E_CANCELED.
 * At once: SN_E_BUFFER_SIZE, SN_E_CONNECTED, SN_E_PARAM, SN_E_NOT_CONNECTED (no request). */
SN_MUST_CHECK sn_status rd_connector_accept(struct rd_connector *c, struct rd_qp *qp, uint32_t ird,
                                            uint32_t ord, const void *pd, uint32_t pd_len,
                                            struct rd_async *a);
/* Passive after the request, active after the answer. SN_E_BUFFER_SIZE, SN_E_ABORTED,
 * SN_E_NOT_CONNECTED. */
SN_MUST_CHECK sn_status rd_connector_reject(struct rd_connector *c, const void *pd,
                                            uint32_t pd_len);
/* From the request or the answer on, as long as the connector lives; before: SN_E_NOT_CONNECTED.
 * From the caller's viewpoint, clipped as the SPI says. */
SN_MUST_CHECK sn_status rd_connector_read_limits(struct rd_connector *c, uint32_t *inbound,
                                                 uint32_t *outbound);
/* Copies at most *len bytes, *len becomes the length there is; SN_E_BUFFER_SMALL if it was more. */
SN_MUST_CHECK sn_status rd_connector_private_data(struct rd_connector *c, void *buf, uint32_t *len);
/* local: from bind on; peer: from connect or the request on; else SN_E_NOT_CONNECTED. */
SN_MUST_CHECK sn_status rd_connector_local_addr(struct rd_connector *c, struct os_addr *out);
SN_MUST_CHECK sn_status rd_connector_peer_addr(struct rd_connector *c, struct os_addr *out);
/* done: SN_OK when the connection ends (also at once when it has ended), SN_E_CANCELED only by
 * cancel or destroy. Several may be pending. At once: SN_E_NOT_CONNECTED (never connected). */
SN_MUST_CHECK sn_status rd_connector_notify_disconnect(struct rd_connector *c, struct rd_async *a);
/* Flushes the queue pair, then done(SN_OK). Succeeds too when the peer has already left.
 * At once: SN_E_NOT_CONNECTED. Completes the pending notify_disconnects first. */
SN_MUST_CHECK sn_status rd_connector_disconnect(struct rd_connector *c, struct rd_async *a);
/* Cancels what is pending, in issue order, before it returns. A pending connect, complete or
 * accept is abandoned. */
void rd_connector_cancel(struct rd_connector *c);

SN_MUST_CHECK sn_status rd_listener_create(struct rd_adapter *ad, struct rd_listener **out);
/* Requests not handed out are refused; pending gets complete with SN_E_CANCELED. */
void rd_listener_destroy(struct rd_listener *l);
/* As rd_connector_bind; the wildcard stands for all addresses of this adapter. */
SN_MUST_CHECK sn_status rd_listener_bind(struct rd_listener *l, const struct os_addr *local);
/* backlog 0: no limit. SN_E_STATE before bind or twice. */
SN_MUST_CHECK sn_status rd_listener_listen(struct rd_listener *l, uint32_t backlog);
/* From bind on, else SN_E_STATE. */
SN_MUST_CHECK sn_status rd_listener_local_addr(struct rd_listener *l, struct os_addr *out);
/* The next request goes to the fresh connector c: SN_E_PARAM if c is in use, SN_E_STATE before
 * listen. done: SN_OK, SN_E_CANCELED. Several may be pending; requests arrive in order. */
SN_MUST_CHECK sn_status rd_listener_get_request(struct rd_listener *l, struct rd_connector *c,
                                                struct rd_async *a);
void rd_listener_cancel(struct rd_listener *l);

#endif
