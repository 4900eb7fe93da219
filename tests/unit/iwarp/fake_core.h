/* SPDX-License-Identifier: MIT
 * fake_core.h - the least core that a transport can talk to, for the tests of the I/O half.
 *
 * A fake_qp has an initiator queue and a receive queue as plain arrays and takes every address as
 * registered that lies in its one region. Results are kept for the test to look at.
 */
#ifndef SN_TESTS_FAKE_CORE_H
#define SN_TESTS_FAKE_CORE_H

#include <string.h>
#include "iwarp/iwarp.h"
#include "os/prim/clock.h"
#include "os/prim/lock.h"
#include "os/prim/pages.h"
#include "transport/engine.h"
#include "transport/port.h"

enum { FAKE_DEPTH = 256 };

struct fake_request {
    struct tp_request req;
    struct tp_sge sge[4];
    sn_status status;
    _Atomic(bool) done; /* last: tests look while the stream is at work */
};

struct fake_receive {
    struct tp_receive recv;
    struct tp_sge sge[4];
    sn_status status;
    uint32_t bytes, flags, invalidated;
    _Atomic(bool) done; /* last: tests look while the stream is at work */
};

struct fake_qp {
    os_lock post_lock; /* rank SQ: around try_send */
    os_lock lock;      /* rank RQ */
    struct tp_conn *conn;
    struct fake_request sq[FAKE_DEPTH];
    uint32_t sq_posted, sq_taken;
    struct fake_receive rq[FAKE_DEPTH];
    uint32_t rq_posted, rq_taken;
    uint8_t *region; /* token 7 local, 9 remote */
    size_t region_len;
    uint64_t base;         /* what the region's first octet is called; 0: by its address */
    os_atomic_u32 revoked; /* remote tokens are good for nothing any more */
    os_atomic_u32 done_count, recv_count, held_back;
    os_atomic_u32 replied, established, disconnected, abandoned; /* 1 + status */
};

#define FAKE_LOCAL 7
#define FAKE_REMOTE 9
#define FAKE_OTHER_PD 10 /* a remote token of another protection domain */
#define FAKE_NO_RIGHT 11 /* one whose region allows neither Read nor Write */

static inline struct tp_request *fake_sq_peek(void *ctx) {
    struct fake_qp *qp = ctx;
    os_lock_enter(&qp->lock);
    struct tp_request *r =
        qp->sq_taken < qp->sq_posted ? &qp->sq[qp->sq_taken % FAKE_DEPTH].req : NULL;
    os_lock_leave(&qp->lock);
    return r;
}
static inline void fake_request_done(void *ctx, struct tp_request *req, sn_status st) {
    struct fake_qp *qp = ctx;
    struct fake_request *f = SN_CONTAINER(req, struct fake_request, req);
    SN_ASSERT(!f->done);
    f->status = st;
    f->done = true;
    os_u32_fetch_add_seqcst(&qp->done_count, 1);
}
static inline void fake_requests_done(void *ctx, struct tp_request *const *req, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        fake_request_done(ctx, req[i], SN_OK);
}
static inline void fake_held_back(void *ctx) {
    struct fake_qp *qp = ctx;
    os_u32_fetch_add_seqcst(&qp->held_back, 1);
}
static inline void fake_sq_advance(void *ctx) {
    struct fake_qp *qp = ctx;
    os_lock_enter(&qp->lock);
    struct fake_request *f = &qp->sq[qp->sq_taken++ % FAKE_DEPTH];
    os_lock_leave(&qp->lock);
    if (f->req.op == TP_OP_LOCAL) fake_request_done(qp, &f->req, SN_OK);
}
static inline void fake_sq_pass(void *ctx) {
    os_lock_pass(&((struct fake_qp *)ctx)->post_lock);
}
static inline struct tp_receive *fake_take_receive(void *ctx) {
    struct fake_qp *qp = ctx;
    os_lock_enter(&qp->lock);
    struct tp_receive *r =
        qp->rq_taken < qp->rq_posted ? &qp->rq[qp->rq_taken++ % FAKE_DEPTH].recv : NULL;
    os_lock_leave(&qp->lock);
    return r;
}
static inline void fake_receive_done(void *ctx, struct tp_receive *recv, sn_status st,
                                     uint32_t bytes, uint32_t flags, uint32_t invalidated) {
    struct fake_qp *qp = ctx;
    struct fake_receive *f = SN_CONTAINER(recv, struct fake_receive, recv);
    SN_ASSERT(!f->done);
    f->status = st;
    f->bytes = bytes;
    f->flags = flags;
    f->invalidated = invalidated;
    f->done = true;
    os_u32_fetch_add_seqcst(&qp->recv_count, 1);
}
static inline void fake_receives_done(void *ctx, const struct tp_received *r, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        fake_receive_done(ctx, r[i].recv, SN_OK, r[i].bytes, r[i].flags, 0);
}
static inline sn_status fake_access(void *ctx, uint32_t token, uint64_t addr, size_t len,
                                    enum tp_right right, struct tp_access *out) {
    struct fake_qp *qp = ctx;
    bool remote = right == TP_REMOTE_READ || right == TP_REMOTE_WRITE;
    if (remote && os_u32_load_relaxed(&qp->revoked)) return SN_E_TOKEN;
    if (remote && token == FAKE_OTHER_PD) return SN_E_PD;
    if (remote && token == FAKE_NO_RIGHT) return SN_E_RIGHTS;
    if (token != (remote ? FAKE_REMOTE : FAKE_LOCAL)) return SN_E_TOKEN;
    uint64_t base = qp->base ? qp->base : (uint64_t)(uintptr_t)qp->region;
    if (addr < base || addr - base > qp->region_len || len > qp->region_len - (addr - base))
        return SN_E_RANGE;
    out->ptr = qp->region + (addr - base);
    out->len = len;
    out->hold = NULL;
    return SN_OK;
}
static inline void fake_access_end(struct tp_access *acc) {
    (void)acc;
}
static inline sn_status fake_copy_from(void *ctx, uint32_t token, uint64_t addr, size_t len,
                                       void *dst) {
    struct tp_access acc;
    sn_status st = fake_access(ctx, token, addr, len, TP_LOCAL_READ, &acc);
    if (st != SN_OK) return st;
    if (len) memcpy(dst, acc.ptr, len);
    return SN_OK;
}
static inline bool fake_copy_to(void *ctx, uint32_t token, uint64_t addr, size_t len,
                                const void *src) {
    struct tp_access acc;
    if (fake_access(ctx, token, addr, len, TP_LOCAL_WRITE, &acc) != SN_OK) return false;
    return os_guarded_copy(acc.ptr, src, len); /* many queue pairs of a test share one place */
}
static inline sn_status fake_remote_invalidate(void *ctx, uint32_t token) {
    (void)ctx;
    return token == FAKE_REMOTE ? SN_OK : token == FAKE_OTHER_PD ? SN_E_PD : SN_E_TOKEN;
}
static inline void fake_on_reply(void *ctx, sn_status st) {
    os_u32_store_seqcst(&((struct fake_qp *)ctx)->replied, 1 + st);
}
static inline void fake_on_established(void *ctx, sn_status st) {
    os_u32_store_seqcst(&((struct fake_qp *)ctx)->established, 1 + st);
}
static inline void fake_on_abandoned(void *ctx) {
    os_u32_store_seqcst(&((struct fake_qp *)ctx)->abandoned, 1);
}
static inline void fake_on_disconnected(void *ctx, sn_status st) {
    os_u32_store_seqcst(&((struct fake_qp *)ctx)->disconnected, 1 + st);
}

static const struct tp_upcalls fake_up = {
    .sq_peek = fake_sq_peek,
    .sq_advance = fake_sq_advance,
    .sq_pass = fake_sq_pass,
    .request_done = fake_request_done,
    .requests_done = fake_requests_done,
    .held_back = fake_held_back,
    .take_receive = fake_take_receive,
    .receive_done = fake_receive_done,
    .receives_done = fake_receives_done,
    .access = fake_access,
    .access_end = fake_access_end,
    .copy_from = fake_copy_from,
    .copy_to = fake_copy_to,
    .remote_invalidate = fake_remote_invalidate,
    .on_reply = fake_on_reply,
    .on_established = fake_on_established,
    .on_abandoned = fake_on_abandoned,
    .on_disconnected = fake_on_disconnected,
};

static inline void fake_qp_init(struct fake_qp *qp, void *region, size_t len) {
    memset(qp, 0, sizeof *qp);
    os_lock_init(&qp->post_lock, OS_RANK_SQ);
    os_lock_init(&qp->lock, OS_RANK_RQ);
    qp->region = region;
    qp->region_len = len;
}

/* Adds a request without telling the transport. */
static inline struct fake_request *fake_add(struct fake_qp *qp, enum tp_op op, uint8_t flags,
                                            void *buf, uint32_t len, uint64_t remote,
                                            uint32_t remote_token) {
    os_lock_enter(&qp->lock);
    struct fake_request *f = &qp->sq[qp->sq_posted % FAKE_DEPTH];
    memset(f, 0, sizeof *f);
    f->sge[0] = (struct tp_sge){ buf, len, FAKE_LOCAL };
    f->req = (struct tp_request){ .op = (uint8_t)op,
                                  .flags = flags,
                                  .sge_count = len ? 1 : 0,
                                  .length = len,
                                  .remote_addr = remote,
                                  .remote_token = remote_token,
                                  .invalidate_token = remote_token,
                                  .sge = f->sge };
    qp->sq_posted++;
    os_lock_leave(&qp->lock);
    return f;
}
static inline struct fake_request *fake_post(struct fake_qp *qp, enum tp_op op, uint8_t flags,
                                             void *buf, uint32_t len, uint64_t remote,
                                             uint32_t remote_token) {
    struct fake_request *f = fake_add(qp, op, flags, buf, len, remote, remote_token);
    qp->conn->ops->post_send(qp->conn);
    return f;
}
/* What the core tries first when something is posted. False: post_send is to be called. */
static inline bool fake_try_send(struct fake_qp *qp) {
    os_lock_enter(&qp->post_lock);
    bool sent = qp->conn->ops->try_send(qp->conn);
    os_lock_leave(&qp->post_lock);
    return sent;
}
static inline struct fake_receive *fake_post_receive(struct fake_qp *qp, void *buf, uint32_t len) {
    os_lock_enter(&qp->lock);
    struct fake_receive *f = &qp->rq[qp->rq_posted % FAKE_DEPTH];
    memset(f, 0, sizeof *f);
    f->sge[0] = (struct tp_sge){ buf, len, FAKE_LOCAL };
    f->recv = (struct tp_receive){ .length = len, .sge_count = len ? 1 : 0, .sge = f->sge };
    qp->rq_posted++;
    os_lock_leave(&qp->lock);
    if (qp->conn) qp->conn->ops->post_receive(qp->conn);
    return f;
}

#endif
