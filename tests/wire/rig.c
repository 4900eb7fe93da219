/* SPDX-License-Identifier: MIT */
#include "rig.h"

jmp_buf test_escape;

#define P2P_WORD1 (RAW_A | 8)
const struct profile foreign_passive = { .flags = RAW_C | RAW_S,
                                         .word1 = P2P_WORD1,
                                         .word2 = RAW_RTR_WRITE | RAW_RTR_READ | 8,
                                         .rtr = RTR_WRITE,
                                         .ird = 4,
                                         .ord = 4 };
const struct profile softnd_passive = { .flags = RAW_C | RAW_S,
                                        .word1 = P2P_WORD1,
                                        .word2 = RAW_RTR_WRITE | RAW_RTR_READ | 8,
                                        .rtr = RTR_MARK,
                                        .ird = 4,
                                        .ord = 4 };
const struct profile foreign_active = { .active = true,
                                        .flags = RAW_C | RAW_S,
                                        .word1 = P2P_WORD1,
                                        .word2 = RAW_RTR_READ | 8,
                                        .ird = 4,
                                        .ord = 4 };
const struct profile softnd_active = { .active = true,
                                       .flags = RAW_C | RAW_S,
                                       .word1 = P2P_WORD1,
                                       .word2 = RAW_RTR_WRITE | 8,
                                       .rtr = RTR_MARK,
                                       .ird = 4,
                                       .ord = 4 };

static void on_request(void *ctx, struct tp_conn *conn) {
    struct rig *r = ctx;
    os_ptr_store_release(&r->request, conn);
    os_u32_fetch_add_seqcst(&r->requests, 1);
}
static const struct tp_listener_upcalls listener_up = { on_request };

static struct tp_conn *take_request(struct rig *r) {
    WAIT_FOR(os_ptr_load_acquire(&r->request));
    struct tp_conn *c = os_ptr_load_acquire(&r->request);
    os_ptr_store_release(&r->request, NULL);
    return c;
}

/* ---- bystanders ---- */

static void open_bystanders(struct rig *r) {
    fake_qp_init(&r->by.a, r->by.mem, 2048);
    fake_qp_init(&r->by.b, r->by.mem + 2048, 2048);
    struct tp_setup setup = {
        .ird = 1, .ord = 1, .up = &fake_up, .owner = &r->by.a, .qp = &r->by.a
    };
    CHECK_EQ(iw_ops.connect(r->eng, NULL, &r->port->addr, &setup, &r->by.a.conn), SN_OK);
    struct tp_conn *c = take_request(r);
    tp_conn_set_owner(c, &fake_up, &r->by.b);
    r->by.b.conn = c;
    setup.owner = setup.qp = &r->by.b;
    CHECK_EQ(iw_ops.accept(c, &setup), SN_OK);
    WAIT_FOR(os_u32_load_seqcst(&r->by.a.replied));
    CHECK_EQ(iw_ops.complete(r->by.a.conn, 1, 1), SN_OK);
    WAIT_FOR(os_u32_load_seqcst(&r->by.b.established));
}

static void bystanders_talk(struct rig *r) {
    uint32_t n = ++r->by.count;
    memset(r->by.mem, (int)n, 64);
    struct fake_receive *in = fake_post_receive(&r->by.b, r->by.mem + 2048, 64);
    fake_post(&r->by.a, TP_OP_SEND, 0, r->by.mem, 64, 0, 0);
    WAIT_FOR(os_u32_load_seqcst(&r->by.b.recv_count) == n);
    CHECK_EQ(in->status, SN_OK);
    CHECK_BYTES(r->by.mem + 2048, r->by.mem, 64);
    WAIT_FOR(os_u32_load_seqcst(&r->by.a.done_count) == n);
}

static void end_qp(struct fake_qp *qp) {
    if (!qp->conn) return;
    qp->conn->ops->close(qp->conn);
    qp->conn->ops->release(qp->conn);
    qp->conn = NULL;
}

/* ---- the whole ---- */

static void fill_pattern(struct rig *r) {
    static uint8_t pattern[RIG_MEM + 2 * RIG_GUARD];
    if (pattern[0] == 0)
        for (size_t i = 0; i < sizeof pattern; i++)
            pattern[i] = (uint8_t)(i * 37 + (i >> 8) * 11 + 5);
    memcpy(r->model, pattern, sizeof pattern);
    memcpy(r->all, r->model, RIG_MEM + 2 * RIG_GUARD);
}

void rig_init(struct rig *r) {
    struct os_addr any = { .family = 4, .ip = { 127, 0, 0, 1 } };
    memset(r, 0, sizeof *r);
    r->peer.s = OS_SOCK_NONE;
    r->all = malloc(RIG_MEM + 2 * RIG_GUARD);
    r->model = malloc(RIG_MEM + 2 * RIG_GUARD);
    CHECK(r->all && r->model);
    r->mem = r->all + RIG_GUARD;
    fill_pattern(r);
    CHECK_EQ(tp_engine_create(&r->eng), SN_OK);
    CHECK_EQ(tp_port_bind(&any, TP_PORT_LISTEN, &r->port), SN_OK);
    CHECK_EQ(iw_ops.listen(r->eng, r->port, 0, &listener_up, r, &r->listener), SN_OK);
    CHECK(raw_listen(&r->raw_listener, &r->raw_addr));
    open_bystanders(r);
    r->base_watches = tp_engine_watch_count(r->eng);
    CHECK_EQ(r->base_watches, 3);
    rig_reset(r);
}

void rig_fini(struct rig *r) {
    end_qp(&r->by.a);
    WAIT_FOR(os_u32_load_seqcst(&r->by.b.disconnected));
    end_qp(&r->by.b);
    iw_ops.listener_close(r->listener);
    tp_port_free(r->port);
    tp_engine_destroy(r->eng);
    os_sock_close(r->raw_listener, false);
    os_lock_fini(&r->by.a.lock);
    os_lock_fini(&r->by.b.lock);
    os_lock_fini(&r->qp.lock);
    free(r->all);
    free(r->model);
}

void rig_reset(struct rig *r) {
    fake_qp_init(&r->qp, r->mem, RIG_MEM);
    r->qp.base = RIG_BASE;
}

/* Returns when the connection was accepted: one that was not could hand up its request after
 * rig_done, to the next. */
void rig_connect_raw(struct rig *r, size_t chunk) {
    uint32_t before = tp_engine_watch_count(r->eng);
    enum raw_result res = raw_connect(&r->peer, &r->port->addr);
    if (res != RAW_OK) FAIL("the raw peer cannot connect: %s", raw_result_text(res));
    WAIT_FOR(tp_engine_watch_count(r->eng) > before);
    r->peer.chunk = chunk;
}

void rig_await_request(struct rig *r) {
    r->qp.conn = take_request(r);
    tp_conn_set_owner(r->qp.conn, &fake_up, &r->qp);
}

sn_status rig_accept(struct rig *r, uint32_t ird, uint32_t ord, bool patient) {
    struct tp_setup setup = { .ird = ird,
                              .ord = ord,
                              .up = &fake_up,
                              .owner = &r->qp,
                              .qp = &r->qp,
                              .shared_receives = patient };
    return iw_ops.accept(r->qp.conn, &setup);
}

void rig_start_connect(struct rig *r, uint32_t ird, uint32_t ord, bool patient) {
    struct tp_setup setup = { .ird = ird,
                              .ord = ord,
                              .pd = "active",
                              .pd_len = 6,
                              .up = &fake_up,
                              .owner = &r->qp,
                              .qp = &r->qp,
                              .shared_receives = patient };
    CHECK_EQ(iw_ops.connect(r->eng, NULL, &r->raw_addr, &setup, &r->qp.conn), SN_OK);
    enum raw_result res = raw_accept(r->raw_listener, &r->peer);
    if (res != RAW_OK) FAIL("nobody connected to the raw peer: %s", raw_result_text(res));
}

void rig_read_start(struct rig *r) {
    enum raw_result res = raw_read_start(&r->peer, r->start, &r->start_len);
    if (res != RAW_OK) FAIL("no start-up frame from us: %s", raw_result_text(res));
}

void rig_put(struct rig *r, const struct raw_bytes *b) {
    enum raw_result res = raw_transmit(&r->peer, b->data, b->len, NULL);
    if (res != RAW_OK) FAIL("cannot send to us: %s", raw_result_text(res));
}

static void put_frame(struct rig *r, const struct profile *p) {
    struct raw_bytes b = { 0 };
    uint16_t enh = p->flags & RAW_S ? 4 : 0;
    raw_start(&b, p->active, p->flags, p->rev ? p->rev : 2, (uint16_t)(p->pd_len + enh));
    if (enh) {
        raw_be(&b, p->word1, 2);
        raw_be(&b, p->word2, 2);
    }
    raw_put(&b, p->pd, p->pd_len);
    rig_put(r, &b);
    raw_free(&b);
}

static void put_rtr(struct rig *r, const struct profile *p) {
    struct raw_bytes b = { 0 };
    if (p->rtr == RTR_WRITE) raw_write(&b, true, 1, 0, NULL, 0);
    if (p->rtr == RTR_MARK) raw_write(&b, true, IW_MARK_STAG, IW_MARK_VERSION, NULL, 0);
    if (p->rtr == RTR_READ) raw_read_request(&b, 1, 1, 0, 0, 1, 0);
    rig_put(r, &b);
    raw_free(&b);
}

static void open_passive(struct rig *r, const struct profile *p) {
    rig_connect_raw(r, p->chunk);
    put_frame(r, p);
    rig_await_request(r);
    CHECK_EQ(rig_accept(r, p->ird, p->ord, p->patient), SN_OK);
    rig_read_start(r);
    r->peer.crc = (p->flags | r->start[16]) & RAW_C;
    r->peer.marked = p->flags & RAW_M;
    if (p->rtr == RTR_NONE) return;
    put_rtr(r, p);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.established));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.established), 1 + SN_OK);
    if (p->rtr == RTR_READ) { /* its response */
        CHECK_EQ(rig_read_fpdu(r), RAW_OK);
        CHECK_EQ(r->fpdu_len, 20);
    }
    if (p->rtr == RTR_MARK) { /* our hello */
        CHECK_EQ(raw_read_fpdu(&r->peer, r->fpdu, &r->fpdu_len), RAW_OK);
        CHECK_EQ(r->fpdu_len, 20);
    }
}

static void open_active(struct rig *r, const struct profile *p) {
    rig_start_connect(r, p->ird, p->ord, p->patient);
    r->peer.chunk = p->chunk;
    rig_read_start(r);
    put_frame(r, p);
    r->peer.crc = (p->flags | r->start[16]) & RAW_C;
    r->peer.marked = p->flags & RAW_M;
    WAIT_FOR(os_u32_load_seqcst(&r->qp.replied));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.replied), 1 + SN_OK);
    CHECK_EQ(iw_ops.complete(r->qp.conn, p->ird, p->ord), SN_OK);
    if (!(p->flags & RAW_S)) return;
    /* Our ready-to-receive message, and what answers it. */
    CHECK_EQ(raw_read_fpdu(&r->peer, r->fpdu, &r->fpdu_len), RAW_OK);
    struct raw_bytes b = { 0 };
    if (r->fpdu[3] == 0x41) raw_response(&b, true, 1, 0, NULL, 0);
    if (p->rtr == RTR_MARK) raw_write(&b, true, IW_MARK_STAG, IW_MARK_VERSION, NULL, 0);
    rig_put(r, &b);
    raw_free(&b);
}

void rig_open(struct rig *r, const struct profile *p) {
    if (p->active)
        open_active(r, p);
    else
        open_passive(r, p);
}

static bool is_report(const uint8_t *f, size_t len) {
    static const uint8_t mark[] = { 0, 14, 0xC1, 0x40, 0x53, 0x4F, 0x46, 0x54, 0x53, 0x44, 0, 1 };
    return len == 20 && memcmp(f, mark, sizeof mark) == 0;
}

enum raw_result rig_read_fpdu(struct rig *r) {
    enum raw_result res;
    do
        res = raw_read_fpdu(&r->peer, r->fpdu, &r->fpdu_len);
    while (res == RAW_OK && is_report(r->fpdu, r->fpdu_len));
    return res;
}

void rig_check_memory(struct rig *r) {
    if (memcmp(r->all, r->model, RIG_MEM + 2 * RIG_GUARD) == 0) return;
    for (size_t i = 0; i < RIG_MEM + 2 * RIG_GUARD; i++)
        if (r->all[i] != r->model[i])
            FAIL("octet %lld of the region is 0x%02x, expected 0x%02x", (long long)i - RIG_GUARD,
                 r->all[i], r->model[i]);
}

/* A request that nobody waited for. */
static void drop_request(struct rig *r) {
    struct tp_conn *left = os_ptr_load_acquire(&r->request);
    if (!left) return;
    os_ptr_store_release(&r->request, NULL);
    left->ops->close(left);
    left->ops->release(left);
}

void rig_done(struct rig *r) {
    end_qp(&r->qp);
    raw_close(&r->peer);
    WAIT_FOR((drop_request(r), tp_engine_watch_count(r->eng) == r->base_watches));
    drop_request(r); /* handed up before its watch went */
    bystanders_talk(r);
    os_lock_fini(&r->qp.lock);
    fill_pattern(r);
    rig_reset(r);
}
