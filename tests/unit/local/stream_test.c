/* SPDX-License-Identifier: MIT
 *
 * Two same-host connections in one process, each with a fake core. Every case runs twice: with
 * copies straight between the two ends' memory, and with copies through shared memory.
 */
#include "rig.h"

static void send_small_arrives_and_completes(void) {
    struct pair p;
    open_pair(&p, 4);
    fake_send_small(&p.a, p.mem_a, &p.b, p.mem_b);
    close_pair(&p);
}

static void operations_of_all_sizes_place_every_byte(void) {
    struct pair p;
    open_pair(&p, 4);
    fake_move_all_sizes(&p.a, p.mem_a, &p.b, p.mem_b);
    close_pair(&p);
}

static void many_requests_both_ways_complete_once(void) {
    struct pair p;
    open_pair(&p, 2);
    fake_exchange_many(&p.a, p.mem_a, &p.b, p.mem_b, 20);
    close_pair(&p);
}

static struct lo_conn *local_of(struct fake_qp *qp) {
    return (struct lo_conn *)qp->conn;
}

/* Shortly before all that counts slots and bytes begins anew. */
static void age(struct lo_conn *c) {
    enum { BEFORE = 70 };
    const uint32_t pos = 0u - BEFORE, bytes = 0u - 4096;
    os_lock_enter(&c->rx_lock);
    os_lock_enter(&c->tx_lock);
    for (uint32_t i = 0; i < LO_SLOTS; i++)
        os_u32_store_relaxed(&c->mine->slots[(pos + i) % LO_SLOTS].seq, pos + i + 1 - LO_SLOTS);
    os_u32_store_relaxed(&c->tx.pos, pos);
    os_u32_store_relaxed(&c->tx.acked, pos);
    os_u32_store_relaxed(&c->tx.wanted, pos);
    os_u32_store_relaxed(&c->rx.heard, pos);
    os_u32_store_relaxed(&c->tx.published, pos);
    c->tx.data.head = c->tx.data_tail = bytes;
    os_u32_store_relaxed(&c->rx.pos, pos);
    c->rx.data.head = bytes;
    os_lock_leave(&c->tx_lock);
    os_lock_leave(&c->rx_lock);
}

static bool is_quiet(struct lo_conn *c) {
    return os_u32_load_acquire(&c->tx.pos) == os_u32_load_acquire(&c->tx.acked) &&
           os_u32_load_acquire(&c->rx.pos) == os_u32_load_acquire(&c->tx.published) &&
           !os_u32_load_acquire(&c->ack_armed);
}

static void numbers_begin_anew_after_the_last(void) {
    struct pair p;
    open_pair(&p, 3);
    struct lo_conn *a = local_of(&p.a), *b = local_of(&p.b);
    fake_exchange_many(&p.a, p.mem_a, &p.b, p.mem_b, 1);
    WAIT_FOR(is_quiet(a) && is_quiet(b));
    /* Of two numbers that are far apart the smaller is the newer, which nobody may see. */
    os_u32_store_release(&a->mine->consumed, 0u - 70);
    os_u32_store_release(&b->mine->consumed, 0u - 70);
    age(a);
    age(b);
    fake_exchange_many(&p.a, p.mem_a, &p.b, p.mem_b, 2);
    CHECK(os_u32_load_relaxed(&a->tx.pos) < 10000 && os_u32_load_relaxed(&b->tx.pos) < 10000);
    close_pair(&p);
}

/* The peer has written no slot for long: what it said last is not mistaken for news. */
static void acknowledgement_on_a_slot_of_long_ago_is_forgotten(void) {
    struct pair p;
    open_pair(&p, 2);
    struct lo_conn *a = local_of(&p.a);
    os_lock_enter(&a->rx_lock);
    os_u32_store_relaxed(&a->rx.heard, 0u - (1u << 30));
    os_lock_leave(&a->rx_lock);
    for (uint32_t i = 1; i <= 20; i++) {
        fake_post_receive(&p.b, p.mem_b, 64);
        fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 64, 0, 0);
        WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == i);
    }
    CHECK(os_u32_load_relaxed(&a->rx.heard) <= os_u32_load_relaxed(&a->tx.acked));
    close_pair(&p);
}

/* More than one turn may copy, all posted before the first turn: the rest goes on by itself. */
static void writes_beyond_one_turn_go_on(void) {
    enum { COUNT = 100, BYTES = 65536 };
    struct pair p;
    open_pair(&p, 2);
    for (uint32_t round = 1; round <= 10; round++) {
        for (uint32_t i = 0; i < COUNT; i++)
            fake_add(&p.a, TP_OP_WRITE, 0, p.mem_a, BYTES, (uint64_t)(uintptr_t)p.mem_b,
                     FAKE_REMOTE);
        p.a.conn->ops->post_send(p.a.conn);
        WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == round * COUNT);
    }
    close_pair(&p);
}

static void write_outside_the_region_fails_and_ends_the_connection(void) {
    struct pair p;
    open_pair(&p, 2);
    struct fake_request *w = fake_post(&p.a, TP_OP_WRITE, 0, p.mem_a, 1000,
                                       (uint64_t)(uintptr_t)(p.mem_b + MEM - 999), FAKE_REMOTE);
    WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == 1);
    CHECK_EQ(w->status, SN_E_RIGHTS);
    WAIT_FOR(os_u32_load_seqcst(&p.a.disconnected));
    WAIT_FOR(os_u32_load_seqcst(&p.b.disconnected));
    close_pair(&p);
}

static void read_with_a_bad_token_fails_and_ends_the_connection(void) {
    struct pair p;
    open_pair(&p, 2);
    struct fake_request *w =
        fake_post(&p.a, TP_OP_READ, 0, p.mem_a, 1000, (uint64_t)(uintptr_t)p.mem_b, 12345);
    WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == 1);
    CHECK_EQ(w->status, SN_E_RIGHTS);
    WAIT_FOR(os_u32_load_seqcst(&p.b.disconnected));
    close_pair(&p);
}

static void send_longer_than_the_receive_fails_on_both_sides(void) {
    struct pair p;
    open_pair(&p, 2);
    struct fake_receive *r = fake_post_receive(&p.b, p.mem_b, 1023);
    struct fake_request *s = fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 1024, 0, 0);
    WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == 1);
    CHECK_EQ(s->status, SN_E_PEER_MSG_TOO_LONG);
    WAIT_FOR(os_u32_load_seqcst(&p.b.recv_count) == 1);
    CHECK_EQ(r->status, SN_E_MSG_TOO_LONG);
    close_pair(&p);
}

static void send_without_receive_waits_for_one(void) {
    struct pair p;
    open_pair(&p, 2);
    struct fake_request *s = fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 100000, 0, 0);
    struct fake_request *t = fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 10, 0, 0);
    uint64_t until = os_now_ns() + 50 * OS_NS_PER_MS;
    while (os_now_ns() < until)
        CHECK(!s->done);
    fake_post_receive(&p.b, p.mem_b, 100000);
    WAIT_FOR(os_u32_load_seqcst(&p.b.recv_count) == 1);
    fake_post_receive(&p.b, p.mem_b, 10);
    WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == 2);
    CHECK_EQ(s->status, SN_OK);
    CHECK_EQ(t->status, SN_OK);
    close_pair(&p);
}

static void send_without_any_receive_times_out(void) {
    struct pair p;
    open_pair(&p, 2);
    struct fake_request *s = fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 100000, 0, 0);
    WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == 1);
    CHECK_EQ(s->status, SN_E_TIMEOUT);
    CHECK_EQ(os_u32_load_seqcst(&p.b.recv_count), 0);
    close_pair(&p);
}

static void send_that_waits_is_delivered_after_the_peer_closed(void) {
    struct pair p;
    open_pair(&p, 2);
    fill(p.mem_a, 3000, 5);
    fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 3000, 0, 0);
    p.a.conn->ops->close(p.a.conn);
    struct fake_receive *r = fake_post_receive(&p.b, p.mem_b, 3000);
    WAIT_FOR(os_u32_load_seqcst(&p.b.recv_count) == 1);
    CHECK_EQ(r->status, SN_OK);
    CHECK_BYTES(p.mem_b, p.mem_a, 3000);
    close_pair(&p);
}

static void peer_that_closes_while_its_send_waits_is_noticed(void) {
    struct pair p;
    rig_shared_receives = true;
    open_pair(&p, 2);
    rig_shared_receives = false;
    fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 3000, 0, 0);
    p.a.conn->ops->close(p.a.conn);
    WAIT_FOR(os_u32_load_seqcst(&p.b.disconnected));
    CHECK_EQ(os_u32_load_seqcst(&p.b.recv_count), 0);
    close_pair(&p);
}

static void polled_ping_pong_completes(void) {
    struct pair p;
    open_pair(&p, 2);
    for (uint32_t i = 0; i < 2000; i++) {
        fake_post_receive(&p.b, p.mem_b, 64);
        fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 64, 0, 0);
        WAIT_FOR((p.b.conn->ops->poll(p.b.conn), os_u32_load_seqcst(&p.b.recv_count) == i + 1));
        fake_post_receive(&p.a, p.mem_a + 64, 64);
        fake_post(&p.b, TP_OP_SEND, 0, p.mem_b, 64, 0, 0);
        WAIT_FOR((p.a.conn->ops->poll(p.a.conn), os_u32_load_seqcst(&p.a.recv_count) == i + 1));
        CHECK_EQ(os_u32_load_seqcst(&p.a.done_count), i + 1); /* confirmed before the answer */
    }
    close_pair(&p);
}

static void silent_sends_are_told_of_at_the_next_post_when_asked_or_at_the_end(void) {
    struct pair p;
    open_pair(&p, 2);
    for (uint32_t i = 0; i < 1000; i++) {
        bool asked = i % 2;
        fake_post_receive(&p.b, p.mem_b, 64);
        fake_post(&p.a, TP_OP_SEND, TP_F_SILENT, p.mem_a, 64, 0, 0);
        CHECK(os_u32_load_seqcst(&p.a.done_count) >= i); /* those before */
        WAIT_FOR((p.b.conn->ops->poll(p.b.conn), os_u32_load_seqcst(&p.b.recv_count) == i + 1));
        fake_post_receive(&p.a, p.mem_a + 64, 64);
        fake_post(&p.b, TP_OP_SEND, TP_F_SILENT, p.mem_b, 64, 0, 0);
        WAIT_FOR((p.a.conn->ops->poll(p.a.conn), os_u32_load_seqcst(&p.a.recv_count) == i + 1));
        if (!asked) continue;
        p.a.conn->ops->reap(p.a.conn);
        CHECK_EQ(os_u32_load_seqcst(&p.a.done_count), i + 1);
    }
    fake_post_receive(&p.b, p.mem_b, 64);
    fake_post_receive(&p.a, p.mem_a, 64);
    struct fake_request *last = fake_post(&p.a, TP_OP_SEND, TP_F_SILENT, p.mem_a, 64, 0, 0);
    WAIT_FOR(os_u32_load_seqcst(&p.b.recv_count) == 1001);
    fake_post(&p.b, TP_OP_SEND, TP_F_SILENT, p.mem_b, 64, 0, 0);
    WAIT_FOR(os_u32_load_seqcst(&p.a.recv_count) == 1001);
    p.a.conn->ops->close(p.a.conn);
    CHECK_EQ(os_u32_load_seqcst(&p.a.done_count), 1001);
    CHECK_EQ(last->status, SN_OK);
    close_pair(&p);
}

struct answerer {
    struct pair *p;
    os_atomic_u32 stop;
};

static void answer(void *arg) {
    struct answerer *w = arg;
    struct pair *p = w->p;
    for (uint32_t i = 0; !os_u32_load_acquire(&w->stop);) {
        if (os_u32_load_seqcst(&p->b.recv_count) == i) {
            os_thread_yield();
            continue;
        }
        i++;
        fake_post(&p->b, TP_OP_SEND, TP_F_SILENT, p->mem_b, 64, 0, 0);
    }
}

/* Whatever gives a result behind a silent Send is not held up by the Send's acknowledgement, which
 * arrives while it is posted. */
static void result_behind_a_silent_send_is_given(void) {
    struct pair p;
    open_pair(&p, 2);
    struct answerer w = { .p = &p };
    os_thread t;
    CHECK_EQ(os_thread_start(&t, "answerer", answer, &w), SN_OK);
    for (uint32_t i = 0; i < 500; i++) {
        fake_post_receive(&p.a, p.mem_a + 64, 64);
        fake_post_receive(&p.b, p.mem_b, 64);
        fake_post(&p.a, TP_OP_SEND, TP_F_SILENT, p.mem_a, 64, 0, 0);
        for (uint32_t spin = 0; spin < i; spin++)
            os_cpu_relax();
        if (i % 2)
            fake_post(&p.a, TP_OP_LOCAL, 0, NULL, 0, 0, 0);
        else
            fake_post(&p.a, TP_OP_WRITE, 0, p.mem_a, 64, (uint64_t)(uintptr_t)(p.mem_b + 64),
                      FAKE_REMOTE);
        WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == 2 * i + 2);
        WAIT_FOR(os_u32_load_seqcst(&p.a.recv_count) == i + 1);
    }
    os_u32_store_release(&w.stop, 1);
    os_thread_join(t);
    close_pair(&p);
}

/* ---- long Sends from both ends ---- */

static void need_direct_copies(struct pair *p) {
    if (local_of(&p->a)->can_copy) return;
    close_pair(p);
    SKIP("copies are not direct here: long Sends go through the ring");
}

struct meddler {
    struct tp_conn *conn;
    os_atomic_u32 stop;
};

static void meddle(void *arg) {
    struct meddler *m = arg;
    while (!os_u32_load_acquire(&m->stop)) {
        m->conn->ops->post_send(m->conn);
        m->conn->ops->reap(m->conn);
    }
}

/* A short Send is written without the stream's lock, if that is free. */
static void short_sends_beside_others_on_the_stream_arrive_once_in_order(void) {
    enum { COUNT = 20000, AHEAD = FAKE_DEPTH / 2 };
    struct pair p;
    os_thread t;
    uint32_t at_once = 0, got = 0, posted = 0;
    open_pair(&p, 2);
    uint64_t *from = (uint64_t *)(void *)p.mem_a, *to = (uint64_t *)(void *)p.mem_b;
    lo_conn_set_polled(local_of(&p.b), true); /* else each is told of by post_send */
    struct meddler other = { .conn = p.a.conn };
    CHECK_EQ(os_thread_start(&t, "meddler", meddle, &other), SN_OK);
    for (uint32_t i = 0; i < AHEAD; i++)
        fake_post_receive(&p.b, &to[i], 8);
    while (got < COUNT) {
        WAIT_FOR((p.b.conn->ops->poll(p.b.conn), posted < SN_MIN(COUNT, got + AHEAD) ||
                                                     os_u32_load_seqcst(&p.b.recv_count) != got));
        for (; got != os_u32_load_seqcst(&p.b.recv_count); got++) {
            CHECK_EQ(to[got % AHEAD], got);
            fake_post_receive(&p.b, &to[got % AHEAD], 8);
        }
        if (posted == SN_MIN(COUNT, got + AHEAD) ||
            posted - os_u32_load_seqcst(&p.a.done_count) >= FAKE_DEPTH - 1)
            continue;
        from[posted % FAKE_DEPTH] = posted;
        fake_add(&p.a, TP_OP_SEND, 0, &from[posted % FAKE_DEPTH], 8, 0, 0);
        posted++;
        if (fake_try_send(&p.a))
            at_once++;
        else
            p.a.conn->ops->post_send(p.a.conn);
    }
    WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == COUNT);
    os_u32_store_release(&other.stop, 1);
    os_thread_join(t);
    CHECK(at_once != 0);
    close_pair(&p);
}

struct poller {
    struct tp_conn *conn;
    os_atomic_u32 stop;
};

/* A sender spends no fence between a slot and its look whether the peer polls. */
static void slot_that_was_not_seen_before_the_sleep_is_found(void) {
    struct pair p;
    struct tp_hot hot = { 0 };
    bool in_time = false;
    open_pair(&p, 2);
    struct lo_conn *b = local_of(&p.b);
    set_linger(b->hub, 100 * OS_NS_PER_MS); /* for this thread to be in time */
    for (uint32_t received = 0; !in_time; received++) {
        WAIT_FOR((poll_hard_awhile(b, &hot), lo_conn_is_polled(b)));
        tp_engine_progress(p.eng_b); /* answers the bells that there are */
        fake_post_receive(&p.b, p.mem_b, 64);
        tp_engine_cool(p.eng_b, &hot);
        WAIT_FOR(os_u32_load_seqcst(&b->hub->board->sleeping) && !lo_conn_is_polled(b));
        os_lock_enter(&b->hub->lock);
        uint64_t withdrawn = b->hub->withdrawn_ns;
        os_lock_leave(&b->hub->lock);
        send_unseen(&p.a, p.mem_a, b);
        in_time = os_now_ns() - withdrawn < 100 * OS_NS_PER_MS;
        if (!in_time) lo_hub_again(b->hub, b->index);
        WAIT_FOR(os_u32_load_seqcst(&p.b.recv_count) == received + 1);
    }
    close_pair(&p);
}

static void poll_hard(void *arg) {
    struct poller *p = arg;
    while (!os_u32_load_acquire(&p->stop))
        p->conn->ops->poll(p->conn);
}

static void long_sends_between_pollers_are_copied_by_both(void) {
    static const uint32_t sizes[] = { 262143, 262144, 700001, 2500000 };
    enum { HELPS = 3, ROUNDS_MAX = 20000 };
    struct pair p;
    open_pair(&p, 2);
    need_direct_copies(&p);
    struct lo_conn *a = local_of(&p.a);
    lo_conn_set_polled(a, true); /* the hub says so only while the engine is parked */
    struct poller receiver = { .conn = p.b.conn };
    os_thread t;
    CHECK_EQ(os_thread_start(&t, "receiver", poll_hard, &receiver), SN_OK);
    uint32_t i = 0;
    for (; i < ROUNDS_MAX && (i < SN_ARRAY_LEN(sizes) || a->tx.helps < HELPS); i++) {
        uint32_t n = sizes[i % SN_ARRAY_LEN(sizes)];
        for (uint32_t k = 0; k <= n / 4; k++)
            ((uint32_t *)(void *)p.mem_a)[k] = k * 2654435761u + i;
        memset(p.mem_b, 0, n + 1);
        struct fake_receive *r = fake_post_receive(&p.b, p.mem_b, n);
        fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, n, 0, 0);
        WAIT_FOR((p.a.conn->ops->poll(p.a.conn), os_u32_load_seqcst(&p.a.done_count) == i + 1));
        WAIT_FOR(os_u32_load_seqcst(&p.b.recv_count) == i + 1);
        CHECK_EQ(r->status, SN_OK);
        CHECK_EQ(r->bytes, n);
        CHECK(memcmp(p.mem_a, p.mem_b, n) == 0 && p.mem_b[n] == 0);
    }
    CHECK(i < ROUNDS_MAX);
    os_u32_store_release(&receiver.stop, 1);
    os_thread_join(t);
    close_pair(&p);
}

enum { LONG_SEND = 1 << 20 };

/* a sends to b until b's offer is taken, by nobody yet. The word of the offer. */
static uint32_t take_an_offer(struct pair *p) {
    os_atomic_u32 *help = &local_of(&p->a)->theirs->help;
    lo_conn_set_polled(local_of(&p->a), true);
    for (uint32_t i = 0;; i++) {
        uint32_t received = os_u32_load_seqcst(&p->b.recv_count);
        for (uint32_t k = 0; k < LONG_SEND / 4; k++)
            ((uint32_t *)(void *)p->mem_a)[k] = k * 2654435761u + i;
        memset(p->mem_b, 0, LONG_SEND);
        fake_post_receive(&p->b, p->mem_b, LONG_SEND);
        fake_post(&p->a, TP_OP_SEND, 0, p->mem_a, LONG_SEND, 0, 0);
        while (os_u32_load_seqcst(&p->b.recv_count) == received) {
            uint32_t word = os_u32_load_acquire(help), taken = lo_help_with(word, LO_HELP_TAKEN);
            if (word == lo_help_with(word, LO_HELP_OFFERED) &&
                os_u32_cas_acq_rel(help, &word, taken))
                return taken;
        }
        WAIT_FOR((p->a.conn->ops->poll(p->a.conn),
                  os_u32_load_seqcst(&p->a.done_count) == p->a.sq_posted));
    }
}

static void check_nothing_received(struct pair *p, uint32_t received) {
    uint64_t until = os_now_ns() + 5 * OS_NS_PER_MS;
    while (os_now_ns() < until) {
        p->b.conn->ops->poll(p->b.conn);
        CHECK_EQ(os_u32_load_seqcst(&p->b.recv_count), received);
    }
}

static void part_that_the_sender_took_is_waited_for(void) {
    for (int failed = 0; failed < 2; failed++) {
        struct pair p;
        open_pair(&p, 2);
        need_direct_copies(&p);
        uint32_t word = take_an_offer(&p), received = os_u32_load_seqcst(&p.b.recv_count);
        struct lo_side *side = local_of(&p.a)->theirs;
        check_nothing_received(&p, received);
        uint32_t off = os_u32_load_relaxed(&side->help_off);
        if (!failed)
            memcpy((void *)(uintptr_t)os_u64_load_relaxed(&side->help_addr), p.mem_a + off,
                   os_u32_load_relaxed(&side->help_len));
        os_u32_store_release(&side->help,
                             lo_help_with(word, failed ? LO_HELP_FAILED : LO_HELP_DONE));
        WAIT_FOR(
            (p.b.conn->ops->poll(p.b.conn), os_u32_load_seqcst(&p.b.recv_count) == received + 1));
        CHECK(memcmp(p.mem_a, p.mem_b, LONG_SEND) == 0);
        WAIT_FOR(
            (p.a.conn->ops->poll(p.a.conn), os_u32_load_seqcst(&p.a.done_count) == p.a.sq_posted));
        close_pair(&p);
    }
}

static void nonsense_for_an_answer_to_an_offer_ends_the_connection(void) {
    struct pair p;
    open_pair(&p, 2);
    need_direct_copies(&p);
    uint32_t word = take_an_offer(&p), received = os_u32_load_seqcst(&p.b.recv_count);
    os_u32_store_release(&local_of(&p.a)->theirs->help, word + LO_HELP_STATES);
    WAIT_FOR((p.b.conn->ops->poll(p.b.conn), os_u32_load_seqcst(&p.b.disconnected)));
    CHECK_EQ(os_u32_load_seqcst(&p.b.disconnected), 1 + SN_E_WIRE);
    CHECK_EQ(os_u32_load_seqcst(&p.b.recv_count), received);
    close_pair(&p);
}

/* The sender says something else while its Send is being fetched. */
static void slot_at_hand_is_not_read_again(void) {
    enum { SHORTER, EMPTY, ANOTHER_KIND, CHANGES };
    for (int change = 0; change < CHANGES; change++) {
        struct pair p;
        open_pair(&p, 2);
        need_direct_copies(&p);
        uint32_t word = take_an_offer(&p), received = os_u32_load_seqcst(&p.b.recv_count);
        struct lo_side *side = local_of(&p.a)->theirs;
        struct lo_slot *slot =
            &local_of(&p.a)->mine->slots[os_u32_load_relaxed(&side->help_slot) % LO_SLOTS];
        check_nothing_received(&p, received); /* so b waits for our part */
        CHECK_EQ(slot->kind, LO_SEND_AT);
        CHECK_EQ(slot->count, 1);
        if (change == SHORTER) {
            slot->size = LONG_SEND / 2 + 4096;
            ((struct lo_piece *)(void *)slot->data)->len = LONG_SEND / 2 + 4096;
        } else if (change == EMPTY) {
            slot->size = slot->count = slot->len = 0;
        } else {
            slot->kind = LO_SEND;
            slot->len = 8;
        }
        memcpy((void *)(uintptr_t)os_u64_load_relaxed(&side->help_addr),
               p.mem_a + os_u32_load_relaxed(&side->help_off),
               os_u32_load_relaxed(&side->help_len));
        os_u32_store_release(&side->help, lo_help_with(word, LO_HELP_DONE));
        WAIT_FOR(
            (p.b.conn->ops->poll(p.b.conn), os_u32_load_seqcst(&p.b.recv_count) == received + 1));
        CHECK_EQ(p.b.rq[received % FAKE_DEPTH].bytes, LONG_SEND);
        CHECK(memcmp(p.mem_a, p.mem_b, LONG_SEND) == 0);
        close_pair(&p);
    }
}

/* A second connection of b's adapter, with the number that b's had. */
static void connect_again(struct pair *p, struct tp_engine *eng, struct fake_qp *a,
                          struct fake_qp *b) {
    enum { PARKED = 64 }; /* so many are free before a number is used again */
    struct lo_conn *old = local_of(&p->b);
    uint32_t spare[PARKED];
    for (uint32_t i = 0; i < PARKED; i++)
        CHECK_EQ(lo_hub_join(old->hub, old, &spare[i]), SN_OK);
    for (uint32_t i = 0; i < PARKED; i++)
        lo_hub_part(old->hub, old, spare[i]);
    fake_qp_init(a, p->mem_a, MEM);
    fake_qp_init(b, p->mem_b, MEM);
    os_ptr_store_release(&p->request, NULL);
    struct tp_setup setup = make_setup(a, &p->share_a, 2, "hello");
    CHECK_EQ(lo_ops.connect(eng, NULL, &p->port->addr, &setup, &a->conn), SN_OK);
    WAIT_FOR(os_ptr_load_acquire(&p->request));
    b->conn = os_ptr_load_acquire(&p->request);
    CHECK_EQ(local_of(b)->index, old->index);
    setup = make_setup(b, &p->share_b, 2, "yes");
    CHECK_EQ(b->conn->ops->accept(b->conn, &setup), SN_OK);
    WAIT_FOR(os_u32_load_seqcst(&a->replied));
    CHECK_EQ(a->conn->ops->complete(a->conn, 2, 2), SN_OK);
    WAIT_FOR(os_u32_load_seqcst(&b->established));
}

struct ending {
    struct tp_share *share;
    os_atomic_u32 ended;
};

static void end_remote_token(void *arg) {
    struct ending *e = arg;
    os_u32_store_seqcst(&share_slot(e->share, FAKE_REMOTE)->token, 0);
    tp_share_drain(e->share, FAKE_REMOTE);
    os_u32_store_release(&e->ended, 1);
}

struct deaf {
    struct lo_conn *c;
    os_atomic_u32 is, stop;
};

/* Keeps the engine from hearing of the end of a connection. */
static void make_deaf(void *arg) {
    struct deaf *d = arg;
    os_lock_enter(&d->c->rx_lock);
    os_u32_store_release(&d->is, 1);
    WAIT_FOR(os_u32_load_acquire(&d->stop));
    os_lock_leave(&d->c->rx_lock);
}

/* A sender that was stopped before a copy goes on when its connection is closed, and another, in
 * the middle of a copy, has its number. */
static void sender_that_comes_late_does_not_disturb_who_has_its_number(void) {
    struct pair p;
    struct fake_qp a, b;
    struct tp_engine *eng;
    os_thread t, keeper;
    open_pair(&p, 2);
    need_direct_copies(&p);
    CHECK_EQ(tp_engine_create(&eng), SN_OK);
    struct deaf late = { .c = local_of(&p.a) };
    CHECK_EQ(os_thread_start(&keeper, "keeps", make_deaf, &late), SN_OK);
    WAIT_FOR(os_u32_load_acquire(&late.is));
    p.b.conn->ops->close(p.b.conn);
    connect_again(&p, eng, &a, &b);
    os_atomic_u32 *busy = &local_of(&a)->mine->busy[0];
    os_u32_store_seqcst(busy, FAKE_REMOTE); /* the other is at it */
    struct fake_request *w =
        fake_post(&p.a, TP_OP_WRITE, 0, p.mem_a, 4096, (uint64_t)(uintptr_t)p.mem_b, FAKE_REMOTE);
    CHECK(!w->done);
    struct ending ending = { &p.share_b, { 0 } };
    CHECK_EQ(os_thread_start(&t, "ends", end_remote_token, &ending), SN_OK);
    uint64_t until = os_now_ns() + 5 * OS_NS_PER_MS;
    while (os_now_ns() < until)
        CHECK(!os_u32_load_acquire(&ending.ended));
    os_u32_store_release(busy, 0);
    os_thread_join(t);
    os_u32_store_release(&late.stop, 1);
    os_thread_join(keeper);
    a.conn->ops->close(a.conn);
    b.conn->ops->close(b.conn);
    a.conn->ops->release(a.conn);
    b.conn->ops->release(b.conn);
    p.a.conn->ops->close(p.a.conn);
    p.a.conn->ops->release(p.a.conn);
    p.b.conn->ops->release(p.b.conn);
    close_rest(&p);
    tp_engine_destroy(eng);
}

static void close_conn_b(void *arg) {
    struct pair *p = arg;
    p->b.conn->ops->close(p->b.conn);
    os_u32_store_release(&p->b.abandoned, 1);
}

/* The sender is in the middle of its part when the receiver closes. */
static void close_waits_for_the_senders_part(void) {
    struct pair p;
    os_thread t;
    open_pair(&p, 2);
    need_direct_copies(&p);
    uint32_t word = take_an_offer(&p);
    os_atomic_u32 *busy = &local_of(&p.a)->mine->busy[0];
    os_u32_store_seqcst(busy, FAKE_LOCAL);
    CHECK_EQ(os_thread_start(&t, "closes", close_conn_b, &p), SN_OK);
    uint64_t until = os_now_ns() + 5 * OS_NS_PER_MS;
    while (os_now_ns() < until)
        CHECK(!os_u32_load_acquire(&p.b.abandoned));
    os_u32_store_release(busy, 0);
    os_thread_join(t);
    os_u32_store_release(&local_of(&p.a)->theirs->help, lo_help_with(word, LO_HELP_FAILED));
    p.a.conn->ops->close(p.a.conn);
    p.a.conn->ops->release(p.a.conn);
    p.b.conn->ops->release(p.b.conn);
    close_rest(&p);
}

/* A peer that offers what is not there, or more than there is. */
static void nonsense_for_an_offer_is_refused(void) {
    struct pair p;
    open_pair(&p, 2);
    need_direct_copies(&p);
    struct lo_conn *a = local_of(&p.a), *b = local_of(&p.b);
    struct {
        uint32_t slot, off, len, token;
        uint64_t addr;
    } offers[] = {
        { 77, 0, 64, FAKE_LOCAL, (uint64_t)(uintptr_t)p.mem_b },
        { 0, 1 << 20, 64, FAKE_LOCAL, (uint64_t)(uintptr_t)p.mem_b },
        { 0, 1, UINT32_MAX, FAKE_LOCAL, (uint64_t)(uintptr_t)p.mem_b },
        { 0, 0, 64, FAKE_REMOTE, (uint64_t)(uintptr_t)p.mem_b },
        { 0, 0, 64, FAKE_LOCAL, (uint64_t)(uintptr_t)p.mem_b + MEM - 63 },
        { 0, 0, 64, 12345, (uint64_t)(uintptr_t)p.mem_b },
        { 0, 0, 64, FAKE_LOCAL, (uint64_t)(uintptr_t)p.mem_b },
    };
    os_lock_enter(&b->rx_lock); /* the Send stays where it is */
    offers[0].slot = os_u32_load_relaxed(&a->tx.pos) + 77;
    for (size_t i = 1; i < SN_ARRAY_LEN(offers); i++)
        offers[i].slot = os_u32_load_relaxed(&a->tx.pos);
    fill(p.mem_a, 64, 3);
    fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, LONG_SEND, 0, 0);
    for (uint32_t i = 0; i < SN_ARRAY_LEN(offers); i++) {
        bool good = i == SN_ARRAY_LEN(offers) - 1;
        uint32_t word = (i + 1) * LO_HELP_STATES;
        os_u32_store_relaxed(&b->mine->help_slot, offers[i].slot);
        os_u32_store_relaxed(&b->mine->help_off, offers[i].off);
        os_u32_store_relaxed(&b->mine->help_len, offers[i].len);
        os_u32_store_relaxed(&b->mine->help_token, offers[i].token);
        os_u64_store_relaxed(&b->mine->help_addr, offers[i].addr);
        os_u32_store_release(&b->mine->help, word + LO_HELP_OFFERED);
        WAIT_FOR((p.a.conn->ops->poll(p.a.conn),
                  os_u32_load_acquire(&b->mine->help) >= word + LO_HELP_DONE));
        CHECK_EQ(os_u32_load_acquire(&b->mine->help),
                 word + (uint32_t)(good ? LO_HELP_DONE : LO_HELP_FAILED));
        CHECK_EQ(memcmp(p.mem_b, p.mem_a, 64) == 0, good);
    }
    os_u32_store_release(&b->mine->help, 0);
    os_lock_leave(&b->rx_lock);
    fake_post_receive(&p.b, p.mem_b, LONG_SEND);
    WAIT_FOR((p.a.conn->ops->poll(p.a.conn), os_u32_load_seqcst(&p.a.done_count) == 1));
    close_pair(&p);
}

TEST_MAIN(TEST(send_small_arrives_and_completes), TEST(operations_of_all_sizes_place_every_byte),
          TEST(many_requests_both_ways_complete_once), TEST(numbers_begin_anew_after_the_last),
          TEST(acknowledgement_on_a_slot_of_long_ago_is_forgotten),
          TEST(writes_beyond_one_turn_go_on),
          TEST(write_outside_the_region_fails_and_ends_the_connection),
          TEST(read_with_a_bad_token_fails_and_ends_the_connection),
          TEST(send_longer_than_the_receive_fails_on_both_sides),
          TEST(send_without_receive_waits_for_one), TEST(send_without_any_receive_times_out),
          TEST(send_that_waits_is_delivered_after_the_peer_closed),
          TEST(peer_that_closes_while_its_send_waits_is_noticed), TEST(polled_ping_pong_completes),
          TEST(silent_sends_are_told_of_at_the_next_post_when_asked_or_at_the_end),
          TEST(result_behind_a_silent_send_is_given),
          TEST(slot_that_was_not_seen_before_the_sleep_is_found),
          TEST(short_sends_beside_others_on_the_stream_arrive_once_in_order),
          TEST(long_sends_between_pollers_are_copied_by_both),
          TEST(part_that_the_sender_took_is_waited_for),
          TEST(nonsense_for_an_answer_to_an_offer_ends_the_connection),
          TEST(slot_at_hand_is_not_read_again), TEST(close_waits_for_the_senders_part),
          TEST(sender_that_comes_late_does_not_disturb_who_has_its_number),
          TEST(nonsense_for_an_offer_is_refused))
