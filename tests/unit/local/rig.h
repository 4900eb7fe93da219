/* SPDX-License-Identifier: MIT
 * rig.h - a pair of same-host connections in one process, each with a fake core and a token table.
 */
#ifndef SN_TESTS_LOCAL_RIG_H
#define SN_TESTS_LOCAL_RIG_H

#include <stdlib.h>
#include "local/conn.h"
#include "os/prim/thread.h"
#include "support/portable.h"
#include "support/testing.h"
#include "unit/iwarp/fake_wait.h"

enum { MEM = FAKE_MEM_BYTES };

struct pair {
    struct tp_engine *eng_a, *eng_b;
    struct tp_port *port;
    struct tp_listener *listener;
    os_atomic_ptr request;
    struct fake_qp a, b; /* active, passive */
    uint8_t *mem_a, *mem_b;
    struct tp_share share_a, share_b;
};

static inline void on_request(void *ctx, struct tp_conn *conn) {
    struct pair *p = ctx;
    tp_conn_set_owner(conn, &fake_up, &p->b);
    os_ptr_store_release(&p->request, conn);
}
static const struct tp_listener_upcalls listener_up = { on_request };

static inline struct tp_shared_slot *share_slot(struct tp_share *s, uint32_t token) {
    struct tp_share_head *head = s->base;
    return (struct tp_shared_slot *)(void *)((uint8_t *)s->base + TP_SHARE_HEAD_BYTES +
                                             (size_t)tp_token_index(&head->key, token) *
                                                 TP_SHARE_SLOT_BYTES);
}

static inline void share_enter(struct tp_share *s, uint32_t token, uint32_t kind, uint32_t rights,
                               const void *base, size_t len) {
    struct tp_shared_slot *slot = share_slot(s, token);
    slot->base = (uint64_t)(uintptr_t)base;
    slot->len = len;
    slot->kind = kind;
    slot->rights = rights;
    os_u32_store_seqcst(&slot->token, token);
}

/* A table that has what fake_access allows. */
static inline void share_init(struct tp_share *s, const void *base, size_t len) {
    size_t bytes = TP_SHARE_HEAD_BYTES + ((size_t)TP_SHARE_SLOT_BYTES << TP_SHARE_INDEX_BITS);
    CHECK_EQ(tp_share_create(bytes, s), SN_OK);
    struct tp_share_head *head = s->base;
    for (uint32_t i = 0; i < TP_TOKEN_ROUNDS; i++) {
        head->key.mul[i] = 2 * i + 77777;
        head->key.add[i] = 12345 * (i + 1);
    }
    head->slot_bytes = TP_SHARE_SLOT_BYTES;
    head->magic = TP_SHARE_MAGIC;
    os_u32_store_release(&head->slot_count, 1u << TP_SHARE_INDEX_BITS);
    share_enter(s, FAKE_LOCAL, TP_SLOT_LOCAL,
                1u << TP_LOCAL_READ | 1u << TP_LOCAL_WRITE | 1u << TP_READ_SINK, base, len);
    share_enter(s, FAKE_REMOTE, TP_SLOT_REMOTE, 1u << TP_REMOTE_READ | 1u << TP_REMOTE_WRITE, base,
                len);
}

static inline struct tp_setup make_setup(struct fake_qp *qp, struct tp_share *share, uint32_t depth,
                                         const char *pd) {
    return (struct tp_setup){ .ird = depth,
                              .ord = depth,
                              .pd = pd,
                              .pd_len = (uint32_t)strlen(pd),
                              .up = &fake_up,
                              .owner = qp,
                              .qp = qp,
                              .share = share,
                              .qp_id = 1 };
}

static inline void open_listener(struct pair *p) {
    struct os_addr any = { .family = 4, .ip = { 127, 0, 0, 1 } };
    test_setenv("SOFTND_TRANSPORT", "local");
    memset(p, 0, sizeof *p);
    p->mem_a = calloc(1, MEM);
    p->mem_b = calloc(1, MEM);
    fake_qp_init(&p->a, p->mem_a, MEM);
    fake_qp_init(&p->b, p->mem_b, MEM);
    share_init(&p->share_a, p->mem_a, MEM);
    share_init(&p->share_b, p->mem_b, MEM);
    CHECK_EQ(tp_engine_create(&p->eng_a), SN_OK);
    CHECK_EQ(tp_engine_create(&p->eng_b), SN_OK);
    CHECK_EQ(tp_port_bind(&any, TP_PORT_LISTEN, &p->port), SN_OK);
    CHECK_EQ(lo_ops.listen(p->eng_b, p->port, 16, &listener_up, p, &p->listener), SN_OK);
}

static bool rig_shared_receives; /* the passive side's receives come from a shared queue */

static inline void accept_request(struct pair *p, uint32_t depth) {
    WAIT_FOR(os_ptr_load_acquire(&p->request));
    p->b.conn = os_ptr_load_acquire(&p->request);
    struct tp_conn_info info;
    p->b.conn->ops->info(p->b.conn, &info);
    CHECK_EQ(info.pd_len, 5);
    CHECK_BYTES(info.pd, "hello", 5);
    CHECK_EQ(info.peer_ord, depth);
    struct tp_setup setup = make_setup(&p->b, &p->share_b, depth, "yes");
    setup.shared_receives = rig_shared_receives;
    CHECK_EQ(p->b.conn->ops->accept(p->b.conn, &setup), SN_OK);
}

static inline void open_pair(struct pair *p, uint32_t depth) {
    open_listener(p);
    struct tp_setup setup = make_setup(&p->a, &p->share_a, depth, "hello");
    CHECK_EQ(lo_ops.connect(p->eng_a, NULL, &p->port->addr, &setup, &p->a.conn), SN_OK);
    accept_request(p, depth);
    WAIT_FOR(os_u32_load_seqcst(&p->a.replied));
    CHECK_EQ(os_u32_load_seqcst(&p->a.replied), 1 + SN_OK);
    CHECK_EQ(p->a.conn->ops->complete(p->a.conn, depth, depth), SN_OK);
    WAIT_FOR(os_u32_load_seqcst(&p->b.established));
    CHECK_EQ(os_u32_load_seqcst(&p->b.established), 1 + SN_OK);
}

/* Sends a message to the other end of a connection, whose end of it is c, as a sender does that
 * looks whether it is polled before its slot can be seen: it is told that it is. */
static inline void send_unseen(struct fake_qp *from, uint8_t *mem, struct lo_conn *c) {
    lo_conn_set_polled(c, true);
    fake_add(from, TP_OP_SEND, 0, mem, 64, 0, 0);
    CHECK(fake_try_send(from)); /* nobody has to be told */
    lo_conn_set_polled(c, false);
}

/* As an application that polls hard. The engine's thread notices when it wakes. */
static inline void poll_hard_awhile(struct lo_conn *c, struct tp_hot *hot) {
    for (int i = 0; i < 64 && !lo_conn_is_polled(c); i++) {
        c->base.ops->poll(&c->base);
        tp_engine_polled(c->eng, hot, false);
    }
    if (os_u32_load_seqcst(&c->hub->board->sleeping)) lo_hub_again(c->hub, c->index);
}

static inline void set_linger(struct lo_hub *h, uint64_t ns) {
    os_lock_enter(&h->lock);
    h->linger_ns = ns;
    os_lock_leave(&h->lock);
}

static inline void close_rest(struct pair *p) {
    lo_ops.listener_close(p->listener);
    tp_port_free(p->port);
    tp_engine_destroy(p->eng_a);
    tp_engine_destroy(p->eng_b);
    tp_share_destroy(&p->share_a);
    tp_share_destroy(&p->share_b);
    free(p->mem_a);
    free(p->mem_b);
}

static inline void close_pair(struct pair *p) {
    p->a.conn->ops->close(p->a.conn);
    WAIT_FOR(os_u32_load_seqcst(&p->b.disconnected));
    p->b.conn->ops->close(p->b.conn);
    p->a.conn->ops->release(p->a.conn);
    p->b.conn->ops->release(p->b.conn);
    close_rest(p);
}

#endif
