/* SPDX-License-Identifier: MIT
 *
 * A peer that writes anything into the memory it shares: slots, payload, what it tells of itself,
 * offers and answers to offers, bells. Whatever it is, the connection lives on or ends, each
 * request and receive is completed at most once (the fake core asserts it), no octet outside the
 * region changes, and another connection of the same two adapters still works. Left out is what
 * docs/local.md says such a peer can do: to name a token in its cell for ever, and to silence
 * bells.
 */
#include <stdio.h>
#include "rig.h"

#ifdef _WIN32
enum { ROUNDS = 60 }; /* setting up takes long under Wine */
#else
enum { ROUNDS = 400 };
#endif
enum { STEPS = 40, GUARD = 4096, REGION = 1 << 20, BYSTANDER_EVERY = 32 };

/* ---- numbers ---- */

static uint64_t seed = 0x5EED0F1E5ull;

static uint32_t any(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 16);
}
static uint32_t below(uint32_t n) {
    return any() % n;
}
static bool one_in(uint32_t n) {
    return below(n) == 0;
}
/* Around a value, or at the ends of what there is, or anything. */
static uint32_t around(uint32_t v) {
    switch (below(6)) {
    case 0:
        return v - 1;
    case 1:
        return v + 1;
    case 2:
        return UINT32_MAX - below(3);
    case 3:
        return any();
    default:
        return v;
    }
}

/* ---- the stage: both adapters, once ---- */

static struct pair p; /* p.a is the bad one */
static struct fake_qp by_a, by_b;
static uint8_t *guarded_a, *guarded_b;

/* A thread that holds the bad one's locks, so that it does nothing of itself. */
static struct {
    os_thread thread;
    os_atomic_ptr conn;
    os_atomic_u32 held, stop;
} keeper;

static void keep(void *arg) {
    (void)arg;
    while (!os_u32_load_acquire(&keeper.stop)) {
        struct lo_conn *c = os_ptr_load_acquire(&keeper.conn);
        if (!c) {
            os_thread_yield();
            continue;
        }
        os_lock_enter(&c->rx_lock);
        os_lock_enter(&c->tx_lock);
        os_u32_store_release(&keeper.held, 1);
        while (os_ptr_load_acquire(&keeper.conn))
            os_thread_yield();
        os_lock_leave(&c->tx_lock);
        os_lock_leave(&c->rx_lock);
        os_u32_store_release(&keeper.held, 0);
    }
}

static void hold(struct lo_conn *c) {
    os_ptr_store_release(&keeper.conn, c);
    WAIT_FOR(os_u32_load_acquire(&keeper.held) == (c != NULL));
}

static struct lo_conn *local_of(struct fake_qp *qp) {
    return (struct lo_conn *)qp->conn;
}

static void open_between(struct fake_qp *a, struct fake_qp *b) {
    fake_qp_init(a, p.mem_a, REGION);
    fake_qp_init(b, p.mem_b, REGION);
    os_ptr_store_release(&p.request, NULL);
    struct tp_setup setup = make_setup(a, &p.share_a, 3, "hello");
    CHECK_EQ(lo_ops.connect(p.eng_a, NULL, &p.port->addr, &setup, &a->conn), SN_OK);
    WAIT_FOR(os_ptr_load_acquire(&p.request));
    b->conn = os_ptr_load_acquire(&p.request);
    setup = make_setup(b, &p.share_b, 3, "yes");
    CHECK_EQ(b->conn->ops->accept(b->conn, &setup), SN_OK);
    WAIT_FOR(os_u32_load_seqcst(&a->replied));
    CHECK_EQ(a->conn->ops->complete(a->conn, 3, 3), SN_OK);
    WAIT_FOR(os_u32_load_seqcst(&b->established));
}

static void close_between(struct fake_qp *a, struct fake_qp *b) {
    b->conn->ops->close(b->conn);
    a->conn->ops->close(a->conn);
    a->conn->ops->release(a->conn);
    b->conn->ops->release(b->conn);
}

static uint8_t *guard(uint8_t *mem) {
    memset(mem, 0x5A, GUARD);
    memset(mem + GUARD + REGION, 0x5A, GUARD);
    return mem + GUARD;
}

static void check_guard(const uint8_t *mem) {
    for (size_t i = 0; i < GUARD; i++)
        if (mem[i] != 0x5A || mem[GUARD + REGION + i] != 0x5A) FAIL("an octet outside changed");
}

static void open_stage(void) {
    memset(&p, 0, sizeof p);
    open_listener(&p);
    tp_share_destroy(&p.share_a);
    tp_share_destroy(&p.share_b);
    guarded_a = p.mem_a;
    guarded_b = p.mem_b;
    p.mem_a = guard(guarded_a);
    p.mem_b = guard(guarded_b);
    share_init(&p.share_a, p.mem_a, REGION);
    share_init(&p.share_b, p.mem_b, REGION);
    open_between(&by_a, &by_b);
    memset(&keeper, 0, sizeof keeper);
    CHECK_EQ(os_thread_start(&keeper.thread, "keeper", keep, NULL), SN_OK);
}

static void close_stage(void) {
    os_u32_store_release(&keeper.stop, 1);
    os_thread_join(keeper.thread);
    close_between(&by_a, &by_b);
    p.mem_a = guarded_a;
    p.mem_b = guarded_b;
    close_rest(&p);
}

/* Both ways, and without any polling. */
static void check_bystander(void) {
    static uint32_t said;
    if (by_a.rq_posted == 0) said = 0;
    said++;
    fake_post_receive(&by_a, p.mem_a, 64);
    fake_post_receive(&by_b, p.mem_b, 64);
    fake_post(&by_a, TP_OP_SEND, 0, p.mem_a, 64, 0, 0);
    fake_post(&by_b, TP_OP_SEND, 0, p.mem_b, 64, 0, 0);
    WAIT_FOR(os_u32_load_seqcst(&by_a.recv_count) == said);
    WAIT_FOR(os_u32_load_seqcst(&by_b.recv_count) == said);
    WAIT_FOR(os_u32_load_seqcst(&by_a.done_count) == said);
    WAIT_FOR(os_u32_load_seqcst(&by_b.done_count) == said);
}

/* ---- what the bad one writes ---- */

static uint32_t some_token(void) {
    static const uint32_t tokens[] = { FAKE_LOCAL,    FAKE_REMOTE, FAKE_REMOTE, FAKE_OTHER_PD,
                                       FAKE_NO_RIGHT, 0,           UINT32_MAX };
    return one_in(8) ? any() : tokens[below(SN_ARRAY_LEN(tokens))];
}

static uint64_t some_addr(void) {
    switch (below(6)) {
    case 0:
        return (uint64_t)(uintptr_t)p.mem_b + REGION - below(70);
    case 1:
        return UINT64_MAX - below(70);
    case 2:
        return (uint64_t)any() << 32 | any();
    case 3:
        return (uint64_t)(uintptr_t)p.mem_a + below(REGION);
    default:
        return (uint64_t)(uintptr_t)p.mem_b + below(REGION);
    }
}

static uint32_t some_len(void) {
    static const uint32_t lens[] = { 0,    1,     8,     64,    LO_INLINE,   LO_INLINE + 1,
                                     4096, 16383, 16384, 16385, LO_DATA - 1, 300000 };
    return one_in(8) ? around(0) : lens[below(SN_ARRAY_LEN(lens))];
}

/* The pieces of a described Send: often of the size that the slot says. */
static void write_pieces(struct lo_side *side, struct lo_slot *s) {
    struct lo_piece pieces[LO_PIECES_MAX];
    uint32_t n = below(LO_PIECES_MAX + 1), sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        pieces[i].addr = one_in(4) ? some_addr() : (uint64_t)(uintptr_t)p.mem_a + below(REGION / 2);
        pieces[i].len = one_in(6) ? some_len() : below(20000);
        pieces[i].token = one_in(6) ? some_token() : FAKE_LOCAL;
        sum += pieces[i].len;
    }
    s->count = (uint16_t)(one_in(10) ? any() : n);
    s->len = one_in(10) ? some_len() : n * (uint32_t)sizeof pieces[0];
    s->size = one_in(6) ? some_len() : sum;
    if (s->len <= LO_INLINE)
        memcpy(s->data, pieces, SN_MIN(sizeof s->data, n * sizeof pieces[0]));
    else
        memcpy(side->data, pieces, n * sizeof pieces[0]);
}

/* Overwrites a slot; its number is right, but rarely. */
static void write_slot(struct lo_conn *a, uint32_t pos) {
    struct lo_slot *s = &a->mine->slots[pos % LO_SLOTS];
    s->ack = one_in(3) ? around(os_u32_load_relaxed(&local_of(&p.b)->tx.pos))
                       : os_u32_load_relaxed(&local_of(&p.b)->tx.acked);
    s->kind = (uint8_t)(one_in(12) ? any() : LO_READY + below(LO_FIN));
    s->flags = (uint8_t)(one_in(4) ? any() : below(2) * LO_F_MORE);
    s->count = (uint16_t)below(20);
    s->len = some_len();
    s->addr = some_addr();
    s->token = some_token();
    s->size = one_in(2) ? s->len : some_len();
    for (uint32_t i = 0; i < LO_INLINE; i++)
        s->data[i] = (uint8_t)any();
    if (s->kind == LO_SEND_AT) write_pieces(a->mine, s);
    os_u32_store_release(&s->seq, one_in(20) ? around(pos + 1) : pos + 1);
}

static void write_words(struct lo_conn *a, struct lo_conn *b) {
    struct lo_side *s = a->mine;
    switch (below(8)) {
    case 0:
        os_u32_store_release(&s->consumed, around(os_u32_load_relaxed(&b->tx.pos)));
        break;
    case 1:
        os_u32_store_relaxed(&s->err_status, one_in(2) ? any() : below(64) | below(2) << 16);
        os_u32_store_release(&s->status, one_in(2) ? LO_ST_ERROR : around(LO_ST_OPEN));
        break;
    case 2: /* an offer */
        os_u32_store_relaxed(&s->help_slot, around(os_u32_load_relaxed(&b->tx.pos)));
        os_u32_store_relaxed(&s->help_off, around(0));
        os_u32_store_relaxed(&s->help_len, some_len());
        os_u32_store_relaxed(&s->help_token, some_token());
        os_u64_store_relaxed(&s->help_addr, some_addr());
        os_u32_store_release(&s->help, below(64) * LO_HELP_STATES + LO_HELP_OFFERED);
        break;
    case 3: /* an answer to one */
        os_u32_store_release(&b->mine->help,
                             one_in(2) ? any() : os_u32_load_relaxed(&b->rx.help) + 1);
        break;
    case 4:
        os_u32_store_release(&s->hurry, any());
        os_u32_store_release(&s->polled, any());
        break;
    case 5:
        os_u32_store_release(&s->help, any());
        break;
    case 6:
        for (uint32_t i = 0; i < 64; i++)
            s->data[below(LO_DATA)] = (uint8_t)any();
        break;
    case 7:
        os_u64_fetch_or_seqcst(&a->peer->board->bells[below(LO_WORDS)], any());
        os_u64_fetch_or_seqcst(&a->peer->board->summary, any());
        break;
    }
}

/* What the good one has under way meanwhile. */
static void post_some(struct fake_qp *b) {
    for (uint32_t n = below(4); n != 0; n--)
        fake_post_receive(b, p.mem_b + below(REGION / 2), one_in(3) ? 300000 : below(REGION / 4));
    for (uint32_t n = below(4); n != 0; n--) {
        static const enum tp_op ops[] = { TP_OP_SEND, TP_OP_SEND, TP_OP_WRITE, TP_OP_READ };
        fake_post(b, ops[below(4)], one_in(4) ? TP_F_FENCE : 0, p.mem_b + below(REGION / 2),
                  one_in(3) ? 262144 : below(20000), (uint64_t)(uintptr_t)p.mem_a, FAKE_REMOTE);
    }
}

static void attack(struct lo_conn *a, struct lo_conn *b) {
    uint32_t pos = os_u32_load_relaxed(&a->tx.pos);
    for (uint32_t n = STEPS; n != 0 && !os_u32_load_seqcst(&p.b.disconnected); n--) {
        if (one_in(3))
            write_words(a, b);
        else
            write_slot(a, one_in(10) ? pos - 1 - below(3) : pos++);
        if (one_in(2)) lo_peer_ring(a->peer, a->peer_index);
        if (one_in(2)) p.b.conn->ops->poll(p.b.conn);
    }
    lo_peer_ring(a->peer, a->peer_index);
    for (uint32_t n = 0; n < 3; n++)
        p.b.conn->ops->poll(p.b.conn);
    lo_hub_again(b->hub, b->index);
}

static void anything_in_shared_memory_harms_nobody_else(void) {
#ifdef __SANITIZE_THREAD__
    SKIP("races are what the peer has to offer");
#endif
    const char *text = getenv("SOFTND_TEST_SEED");
    uint32_t ended = 0;
    if (text && strtoull(text, NULL, 0)) seed = strtoull(text, NULL, 0);
    printf("  seed 0x%llx\n", (unsigned long long)seed);
    test_setenv("SOFTND_LOG", "error"); /* each broken peer is worth a warning */
    open_stage();
    for (uint32_t i = 0; i < ROUNDS; i++) {
        open_between(&p.a, &p.b);
        struct lo_conn *a = local_of(&p.a), *b = local_of(&p.b);
        hold(a);
        post_some(&p.b);
        attack(a, b);
        ended += os_u32_load_seqcst(&p.b.disconnected) != 0;
        hold(NULL);
        close_between(&p.a, &p.b);
        check_guard(guarded_a);
        check_guard(guarded_b);
        if (i % BYSTANDER_EVERY == 0) check_bystander();
    }
    CHECK(ended > ROUNDS / 10 && ended < ROUNDS);
    check_bystander();
    close_stage();
}

TEST_MAIN(TEST(anything_in_shared_memory_harms_nobody_else))
