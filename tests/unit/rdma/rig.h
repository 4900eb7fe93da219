/* SPDX-License-Identifier: MIT
 * rig.h - what most cases of the core need: an adapter, asyncs that remember, connected pairs.
 * Owns:    nothing; inline helpers. Helpers that check use the frame's FAIL, so only from the
 *          thread that runs the case.
 */
#ifndef SN_TESTS_RIG_H
#define SN_TESTS_RIG_H

#include "fake_transport.h"
#include "os/prim/clock.h"
#include "rdma/rd.h"
#include "support/status_name.h"
#include "support/testing.h"

/* ---- asyncs ---- */

static os_atomic_u32 rig_sequence;

struct rig_async {
    struct rd_async a; /* first */
    os_atomic_u32 done;
    sn_status st;
    uint32_t seq; /* order of completion among all */
};

static inline void rig_on_done(struct rd_async *a, sn_status st) {
    struct rig_async *r = (struct rig_async *)a;
    r->st = st;
    r->seq = os_u32_fetch_add_acq_rel(&rig_sequence, 1) + 1;
    os_u32_fetch_add_acq_rel(&r->done, 1);
}

static inline struct rd_async *rig_arm(struct rig_async *r) {
    memset(r, 0, sizeof *r);
    r->a.done = rig_on_done;
    return &r->a;
}

static inline uint32_t rig_done(struct rig_async *r) {
    return os_u32_load_acquire(&r->done);
}

#define CHECK_DONE(r, status)                                                                      \
    do {                                                                                           \
        CHECK_EQ(rig_done(r), 1);                                                                  \
        CHECK_STR(sn_status_name((r)->st), sn_status_name(status));                                \
    } while (0)
#define CHECK_NOT_DONE(r) CHECK_EQ(rig_done(r), 0)
#define CHECK_ST(actual, expected) CHECK_STR(sn_status_name(actual), sn_status_name(expected))

/* ---- adapter and addresses ---- */

static inline struct os_addr rig_addr(uint16_t port) {
    struct os_addr a = { .family = 4, .port = port, .ip = { 127, 0, 0, 1 } };
    return a;
}

static inline struct rd_adapter *rig_adapter(void) {
    struct os_addr lo = rig_addr(0);
    uint64_t id = 0;
    struct rd_adapter *ad = NULL;
    if (rd_adapter_resolve(&lo, &id) != SN_OK) SKIP("no loopback interface");
    CHECK_ST(rd_adapter_open(id, &ad), SN_OK);
    return ad;
}

/* ---- a connected pair ---- */

struct rig_end {
    struct rd_cq *cq;
    struct rd_qp *qp;
    struct rd_connector *c;
};

struct rig {
    struct rd_adapter *ad;
    struct rd_listener *l;
    struct rig_end a, b; /* active, passive */
    struct rd_region *mem;
    uint8_t *buf;
    struct fake_conn *ca, *cb;
    uint32_t adapters_before;
};

enum { RIG_BUF = 1 << 16, RIG_DEPTH = 16, RIG_CQ_DEPTH = 64 };

static inline struct rd_qp_attr rig_attr(struct rd_cq *cq) {
    struct rd_qp_attr at = { .receive_cq = cq,
                             .initiator_cq = cq,
                             .receive_depth = RIG_DEPTH,
                             .initiator_depth = RIG_DEPTH,
                             .max_receive_sge = 1,
                             .max_initiator_sge = 1,
                             .inline_bytes = 64 };
    return at;
}

static inline struct rd_qp *rig_qp(struct rd_adapter *ad, struct rd_cq *cq) {
    struct rd_qp_attr at = rig_attr(cq);
    enum rd_qp_attr_fault fault;
    struct rd_qp *qp = NULL;
    CHECK_ST(rd_qp_create(ad, &at, &fault, &qp), SN_OK);
    return qp;
}

/* Connects a's queue pair to b's, ird and ord both ways as given. */
static inline void rig_connect_limits(struct rig *r, uint32_t ird, uint32_t ord) {
    struct rig_async get, con, acc, com;
    struct os_addr at;
    CHECK_ST(rd_listener_create(r->ad, &r->l), SN_OK);
    at = rig_addr(0);
    CHECK_ST(rd_listener_bind(r->l, &at), SN_OK);
    CHECK_ST(rd_listener_listen(r->l, 0), SN_OK);
    CHECK_ST(rd_listener_local_addr(r->l, &at), SN_OK);
    CHECK_ST(rd_connector_create(r->ad, &r->a.c), SN_OK);
    CHECK_ST(rd_connector_create(r->ad, &r->b.c), SN_OK);
    CHECK_ST(rd_listener_get_request(r->l, r->b.c, rig_arm(&get)), SN_PENDING);
    CHECK_ST(rd_connector_connect(r->a.c, r->a.qp, &at, ird, ord, NULL, 0, rig_arm(&con)),
             SN_PENDING);
    fake_run();
    CHECK_DONE(&get, SN_OK);
    CHECK_ST(rd_connector_accept(r->b.c, r->b.qp, ird, ord, NULL, 0, rig_arm(&acc)), SN_PENDING);
    fake_run();
    CHECK_DONE(&con, SN_OK);
    CHECK_NOT_DONE(&acc);
    CHECK_ST(rd_connector_complete(r->a.c, rig_arm(&com)), SN_PENDING);
    CHECK_DONE(&com, SN_OK);
    fake_run();
    CHECK_DONE(&acc, SN_OK);
    r->ca = fake_last_active();
    r->cb = fake_last_passive();
}

static inline void rig_objects(struct rig *r) {
    memset(r, 0, sizeof *r);
    (void)fake_reset(); /* a failed case before this one may have left something */
    r->adapters_before = rd_live_adapters();
    r->ad = rig_adapter();
    CHECK_ST(rd_cq_create(r->ad, RIG_CQ_DEPTH, &r->a.cq), SN_OK);
    CHECK_ST(rd_cq_create(r->ad, RIG_CQ_DEPTH, &r->b.cq), SN_OK);
    r->a.qp = rig_qp(r->ad, r->a.cq);
    r->b.qp = rig_qp(r->ad, r->b.cq);
    r->buf = calloc(1, RIG_BUF);
    CHECK(r->buf != NULL);
    CHECK_ST(rd_region_create(r->ad, &r->mem), SN_OK);
    CHECK_ST(rd_region_register(r->mem, r->buf, RIG_BUF,
                                RD_LOCAL_WRITE | RD_REMOTE_READ | RD_REMOTE_WRITE),
             SN_OK);
}

static inline void rig_up(struct rig *r) {
    rig_objects(r);
    rig_connect_limits(r, 16, 16);
}

/* Destroys what is there, in the usual order, and checks that nothing is left. */
static inline void rig_down(struct rig *r) {
    if (r->a.c) rd_connector_destroy(r->a.c);
    if (r->b.c) rd_connector_destroy(r->b.c);
    if (r->l) rd_listener_destroy(r->l);
    if (r->a.qp) rd_qp_destroy(r->a.qp);
    if (r->b.qp) rd_qp_destroy(r->b.qp);
    if (r->mem) rd_region_destroy(r->mem);
    if (r->a.cq) rd_cq_destroy(r->a.cq);
    if (r->b.cq) rd_cq_destroy(r->b.cq);
    fake_run(); /* deferred jobs hold the adapter */
    if (r->ad) rd_adapter_close(r->ad);
    free(r->buf);
    CHECK(fake_reset());
    CHECK_EQ(rd_live_adapters(), r->adapters_before);
}

static inline struct tp_sge rig_sge(const struct rig *r, size_t off, uint32_t len) {
    struct tp_sge s = { r->buf + off, len, rd_region_local_token(r->mem) };
    return s;
}

#define CTX(n) ((void *)(uintptr_t)(n))

/* Exactly one completion, with these members. */
#define CHECK_CQE(cq_, type_, context_, status_, bytes_)                                           \
    do {                                                                                           \
        struct rd_completion cqe_[2];                                                              \
        CHECK_EQ(rd_cq_poll(cq_, cqe_, 1), 1);                                                     \
        CHECK_ST(cqe_[0].status, status_);                                                         \
        CHECK_EQ(cqe_[0].type, type_);                                                             \
        CHECK_PTR(cqe_[0].request_context, CTX(context_));                                         \
        CHECK_EQ(cqe_[0].bytes, bytes_);                                                           \
    } while (0)
#define CHECK_NO_CQE(cq_)                                                                          \
    do {                                                                                           \
        struct rd_completion cqe_[1];                                                              \
        CHECK_EQ(rd_cq_poll(cq_, cqe_, 1), 0);                                                     \
    } while (0)

#endif
