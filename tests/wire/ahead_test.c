/* SPDX-License-Identifier: MIT
 *
 * Long messages whose sender says what follows, so that several FPDUs are read into their places at
 * once. Each stream is played twice: as it is, and with nothing foretold. What we say, what our
 * side is told and the memory must be the same; only where a false word let bytes be read to, in
 * what the message may fill anyway, they may differ.
 */
#include "rig.h"
#include "support/portable.h"

enum kind { SEND, WRITE, RESPONSE, KINDS };

enum {
    FIRST = 100, /* the odd FPDU */
    EACH = 8192, /* the others */
    FPDUS = 7,   /* with the first */
    WHOLE = FIRST + (FPDUS - 1) * EACH,
    PLACE = 0x8000, /* of the long message in the region */
    OTHER = 0x4000, /* of what follows it */
    BENT = 3,       /* the FPDU that is not as foretold */
    OUT_MAX = 4096
};

static struct rig rig;
static uint8_t pattern[2 * WHOLE];

/* ---- a core that knows how many accesses are held ---- */

static struct {
    os_atomic_u32 now, most;
    uint32_t revoke_at; /* with so many held the remote token goes */
    size_t piece;       /* no access gives more in one run */
    uint8_t *elsewhere; /* where the memory of the long message is instead */
} watched;

static sn_status watched_access(void *ctx, uint32_t token, uint64_t addr, size_t len,
                                enum tp_right right, struct tp_access *out) {
    sn_status st = fake_access(ctx, token, addr, len, right, out);
    if (st != SN_OK) return st;
    uint64_t at = addr - RIG_BASE - PLACE;
    if (watched.elsewhere && at < WHOLE) out->ptr = watched.elsewhere + at;
    if (watched.piece && out->len > watched.piece) out->len = watched.piece;
    uint32_t now = os_u32_fetch_add_seqcst(&watched.now, 1) + 1;
    if (now > os_u32_load_seqcst(&watched.most)) os_u32_store_seqcst(&watched.most, now);
    if (now == watched.revoke_at) os_u32_store_relaxed(&((struct fake_qp *)ctx)->revoked, 1);
    return SN_OK;
}

static void watched_access_end(struct tp_access *acc) {
    (void)acc;
    SN_ASSERT(os_u32_fetch_sub_seqcst(&watched.now, 1) != 0);
}

static void nothing_held(void) {
    SN_ASSERT(os_u32_load_seqcst(&watched.now) == 0);
}

static void watched_receive_done(void *ctx, struct tp_receive *recv, sn_status st, uint32_t bytes,
                                 uint32_t flags, uint32_t invalidated) {
    nothing_held();
    fake_receive_done(ctx, recv, st, bytes, flags, invalidated);
}

static void watched_request_done(void *ctx, struct tp_request *req, sn_status st) {
    nothing_held();
    fake_request_done(ctx, req, st);
}

static sn_status watched_invalidate(void *ctx, uint32_t token) {
    nothing_held(); /* it would wait for ever */
    return fake_remote_invalidate(ctx, token);
}

static struct tp_upcalls watched_up;

/* ---- streams ---- */

struct tale {
    enum kind kind;
    struct raw_bytes out;
    size_t at[16]; /* where each FPDU begins */
    uint32_t count;
    uint32_t msn, off;
    uint32_t extent; /* from PLACE on: what the long message may fill */
    uint32_t sure;   /* octets of that which must be as without a word */
    uint32_t sges;   /* pieces of the receive or the sink; 0: one */
    bool no_second;  /* only one receive is there at first */
    bool foreign;    /* the peer is another implementation */
};

static void begin_fpdu(struct tale *t) {
    t->at[t->count++] = t->out.len;
}

/* The word of the FPDU added last. */
static void foretell(struct tale *t, uint32_t size, uint32_t count) {
    uint8_t *field = t->out.data + t->out.len - 4;
    mpa_foretold_pack(field,
                      (struct mpa_foretold){ .size = (uint16_t)size, .count = (uint16_t)count });
}

static void add_as(struct tale *t, uint8_t opcode, uint32_t len, bool last) {
    const uint8_t *p = pattern + t->off;
    begin_fpdu(t);
    if (t->kind == SEND)
        raw_send(&t->out, opcode, last, 0, t->msn, t->off, p, len);
    else if (t->kind == WRITE)
        raw_write(&t->out, last, FAKE_REMOTE, RIG_BASE + PLACE + t->off, p, len);
    else
        raw_response(&t->out, last, FAKE_LOCAL, RIG_BASE + PLACE + t->off, p, len);
    foretell(t, 0, 0);
    t->off += len;
}

static void add(struct tale *t, uint32_t len, bool last) {
    add_as(t, RDMAP_SEND, len, last);
}

/* FPDUs up to the one before `end`, each with a true word of what follows it; the message has
 * `fpdus`. */
static void add_true(struct tale *t, uint32_t fpdus, uint32_t end) {
    for (uint32_t i = t->count; i < end; i++) {
        add(t, i == 0 ? FIRST : EACH, i == fpdus - 1);
        if (i != fpdus - 1) foretell(t, EACH, fpdus - 1 - i);
    }
}

static void add_small_send(struct tale *t, uint8_t opcode) {
    uint32_t msn = t->kind == SEND ? t->msn + 1 : 1;
    begin_fpdu(t);
    raw_send(&t->out, opcode, true, opcode == RDMAP_SEND_INV ? FAKE_REMOTE : 0, msn, 0, "small", 5);
    foretell(t, 0, 0);
}

/* ---- playing one ---- */

struct outcome {
    uint32_t disconnected, recv_count, done_count;
    sn_status recv_status[2], req_status;
    uint32_t recv_bytes[2], recv_flags[2];
    uint8_t out[OUT_MAX];
    size_t out_len;
    uint8_t all[RIG_MEM + 2 * RIG_GUARD];
    uint32_t held; /* accesses at once */
};

static void in_pieces(struct tp_sge *sge, uint8_t *count, uint32_t pieces) {
    if (pieces < 2) return;
    uint32_t len = sge[0].len, part = len / pieces;
    uint8_t *p = sge[0].addr;
    for (uint32_t i = 0; i < pieces; i++) {
        uint32_t n = i + 1 == pieces ? len - part * i : part;
        sge[i] = (struct tp_sge){ p + part * i, n, FAKE_LOCAL };
    }
    *count = (uint8_t)pieces;
}

static void expect(const struct tale *t) {
    struct fake_qp *qp = &rig.qp;
    if (t->kind == SEND) {
        struct fake_receive *r = fake_post_receive(qp, rig_at(PLACE), t->extent);
        uint8_t n = 1;
        in_pieces(r->sge, &n, t->sges);
        r->recv.sge_count = n;
    }
    if (t->kind == RESPONSE) {
        struct fake_request *r =
            fake_add(qp, TP_OP_READ, 0, rig_at(PLACE), WHOLE, RIG_BASE, FAKE_REMOTE);
        uint8_t n = 1;
        in_pieces(r->sge, &n, t->sges);
        r->req.sge_count = n;
        qp->conn->ops->post_send(qp->conn);
    }
    if (!t->no_second) fake_post_receive(qp, rig_at(OTHER), 64);
}

/* The octets up to each of the cuts are there as a whole before we look at them. */
static void deliver(struct iw_conn *c, const struct tale *t, const size_t *cuts, size_t step) {
    size_t at = 0;
    os_lock_enter(&c->rx_lock);
    while (at < t->out.len && iw_state(c) == IW_OPEN) {
        size_t to = step ? SN_MIN(at + step, t->out.len) : t->out.len;
        if (!step)
            for (const size_t *cut = cuts; cut && *cut; cut++)
                if (*cut > at && *cut < to) to = *cut;
        if (raw_transmit(&rig.peer, t->out.data + at, to - at, NULL) != RAW_OK) break;
        at = to;
        for (uint64_t end = os_now_ns() + OS_NS_PER_MS; iw_rx_progress(c) && os_now_ns() < end;)
            ;
    }
    os_lock_leave(&c->rx_lock);
    if (at < t->out.len) (void)raw_transmit(&rig.peer, t->out.data + at, t->out.len - at, NULL);
}

static void play(const struct tale *t, const size_t *cuts, size_t step, struct outcome *o) {
    struct profile p = t->foreign            ? foreign_active
                       : t->kind == RESPONSE ? softnd_active
                                             : softnd_passive;
    struct fake_qp *qp = &rig.qp;
    p.flags &= (uint8_t)~RAW_C;
    memset(o, 0, sizeof *o);
    rig_open(&rig, &p);
    rig.peer.crc = false;
    struct iw_conn *c = iw_conn_of(qp->conn);
    if (!t->foreign) WAIT_FOR(iw_peer(c) == IW_PEER_SOFTND);
    os_lock_enter(&c->rx_lock);
    os_lock_enter(&c->tx_lock);
    c->up = &watched_up;
    os_lock_leave(&c->tx_lock);
    os_lock_leave(&c->rx_lock);
    os_u32_store_seqcst(&watched.now, 0);
    expect(t);
    os_u32_store_seqcst(&watched.most, 0);
    deliver(c, t, cuts, step);
    if (t->no_second) {
        WAIT_FOR(os_u32_load_seqcst(&c->rx.stalled));
        fake_post_receive(qp, rig_at(OTHER), 64);
    }
    raw_fin(&rig.peer);
    WAIT_FOR(os_u32_load_seqcst(&qp->disconnected));
    o->disconnected = os_u32_load_seqcst(&qp->disconnected);
    o->recv_count = os_u32_load_seqcst(&qp->recv_count);
    o->done_count = os_u32_load_seqcst(&qp->done_count);
    for (uint32_t i = 0; i < 2; i++) {
        o->recv_status[i] = qp->rq[i].status;
        o->recv_bytes[i] = qp->rq[i].bytes;
        o->recv_flags[i] = qp->rq[i].flags;
    }
    o->req_status = qp->sq[0].status;
    CHECK(!t->foreign || iw_peer(c) == IW_PEER_FOREIGN);
    o->held = os_u32_load_seqcst(&watched.most);
    while (rig_read_fpdu(&rig) == RAW_OK) {
        CHECK(o->out_len + rig.fpdu_len <= OUT_MAX);
        memcpy(o->out + o->out_len, rig.fpdu, rig.fpdu_len);
        o->out_len += rig.fpdu_len;
    }
    memcpy(o->all, rig.all, sizeof o->all);
    rig_done(&rig);
    CHECK_EQ(os_u32_load_seqcst(&watched.now), 0);
}

static void compare(const struct tale *t, const struct outcome *o, const struct outcome *plain) {
    CHECK_EQ(o->disconnected, plain->disconnected);
    CHECK_EQ(o->recv_count, plain->recv_count);
    CHECK_EQ(o->done_count, plain->done_count);
    CHECK_EQ(o->req_status, plain->req_status);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ(o->recv_status[i], plain->recv_status[i]);
        CHECK_EQ(o->recv_bytes[i], plain->recv_bytes[i]);
        CHECK_EQ(o->recv_flags[i], plain->recv_flags[i]);
    }
    CHECK_EQ(o->out_len, plain->out_len);
    CHECK_BYTES(o->out, plain->out, o->out_len);
    size_t from = RIG_GUARD + PLACE, to = from + t->extent;
    CHECK_BYTES(o->all, plain->all, from + t->sure);
    CHECK_BYTES(o->all + to, plain->all + to, sizeof o->all - to);
}

static struct outcome with_word, without;

static void play_both(struct tale *t, const size_t *cuts, size_t step) {
    struct tale plain = *t;
    plain.out = (struct raw_bytes){ 0 };
    raw_put(&plain.out, t->out.data, t->out.len);
    for (uint32_t i = 1; i <= t->count; i++)
        memset(plain.out.data + (i < t->count ? t->at[i] : plain.out.len) - 4, 0, 4);
    play(&plain, NULL, 0, &without);
    raw_free(&plain.out);
    play(t, cuts, step, &with_word);
    compare(t, &with_word, &without);
}

/* ... until several FPDUs were read at once, which takes that all of them had arrived. */
static void play_ahead(struct tale *t) {
    int tries = 0;
    do {
        play_both(t, NULL, 0);
        if (++tries == 50) FAIL("nothing was read ahead, the %d. time", tries);
    } while (with_word.held < 3);
}

static struct tale tale_of(enum kind kind) {
    return (struct tale){ .kind = kind, .msn = 1, .extent = WHOLE, .sure = WHOLE };
}

/* ---- as foretold ---- */

static void read_as_foretold(enum kind kind) {
    struct tale t = tale_of(kind);
    add_true(&t, FPDUS, FPDUS);
    if (kind != RESPONSE) add_small_send(&t, RDMAP_SEND);
    play_ahead(&t);
    CHECK_BYTES(with_word.all + RIG_GUARD + PLACE, pattern, WHOLE);
    CHECK_EQ(with_word.disconnected, 1 + SN_OK);
    if (kind == RESPONSE) {
        CHECK_EQ(with_word.req_status, SN_OK);
    } else {
        CHECK_EQ(with_word.recv_count, kind == SEND ? 2 : 1);
        CHECK_BYTES(with_word.all + RIG_GUARD + OTHER, "small", 5);
    }
    /* Cut before, in and behind what lies between two payloads, and anywhere. */
    for (size_t i = t.at[2] - 6; i < t.at[2] + 24; i += 5) {
        size_t cuts[] = { i, 0 };
        play_both(&t, cuts, 0);
    }
    play_both(&t, NULL, 4099);
    play_both(&t, NULL, EACH + 24);
    raw_free(&t.out);
}

static void messages_are_placed_as_foretold(void) {
    for (int k = 0; k < KINDS; k++)
        read_as_foretold((enum kind)k);
}

static void scatter_lists_are_filled_as_foretold(void) {
    for (uint32_t sges = 2; sges <= 4; sges++) {
        for (int k = 0; k < KINDS; k++) {
            struct tale t = tale_of((enum kind)k);
            t.sges = sges;
            watched.piece = sges == 4 ? 500 : 5000; /* 500: too many pieces for one read */
            add_true(&t, FPDUS, FPDUS);
            play_both(&t, NULL, 0);
            CHECK_BYTES(with_word.all + RIG_GUARD + PLACE, pattern, WHOLE);
            raw_free(&t.out);
        }
    }
    watched.piece = 0;
}

/* ---- otherwise ---- */

/* Each octet of a head that was foreseen. */
static void any_other_head_is_taken_as_it_is(void) {
    for (int k = 0; k < KINDS; k++) {
        uint32_t head = k == SEND ? 20 : 16;
        for (uint32_t octet = 0; octet < head; octet++) {
            struct tale t = tale_of((enum kind)k);
            t.sure = FIRST + (BENT - 1) * EACH;
            add_true(&t, FPDUS, FPDUS);
            /* Lengths so that no field with a word becomes a head. */
            t.out.data[t.at[BENT] + octet] ^= octet == 1 ? 0x40 : octet == 2 ? 0x01 : 0x04;
            play_ahead(&t);
            raw_free(&t.out);
        }
    }
}

/* Other sizes than foretold; the message is good. */
static void sizes_that_change_place_every_octet(void) {
    static const uint32_t sizes[] = { 1, 1000, EACH - 1, EACH + 1, 2 * EACH };
    for (int k = 0; k < KINDS; k++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            struct tale t = tale_of((enum kind)k);
            add_true(&t, FPDUS, BENT);
            add(&t, sizes[i], false);
            foretell(&t, EACH, 3); /* not so either, and believed no more */
            while (t.off < WHOLE - EACH)
                add(&t, EACH, false);
            add(&t, WHOLE - t.off, true);
            play_ahead(&t);
            CHECK_EQ(with_word.disconnected, 1 + SN_OK);
            CHECK_BYTES(with_word.all + RIG_GUARD + PLACE, pattern, WHOLE);
            raw_free(&t.out);
        }
    }
}

/* The message ends where more was foretold, and another one follows. */
static struct tale ends_early(enum kind kind) {
    struct tale t = tale_of(kind);
    add_true(&t, FPDUS, BENT);
    add(&t, EACH, true);
    t.sure = kind == RESPONSE ? t.off - EACH : t.off; /* one that ends early is refused */
    return t;
}

static void message_that_ends_early_is_delivered(void) {
    static const uint8_t next[] = { RDMAP_SEND, RDMAP_SEND_INV, RDMAP_SEND_SE };
    for (int k = 0; k < KINDS; k++) {
        for (uint32_t i = 0; i < sizeof next; i++) {
            struct tale t = ends_early((enum kind)k);
            add_small_send(&t, next[i]);
            while (t.out.len < WHOLE) /* the rest of what was to be read */
                raw_write(&t.out, true, IW_MARK_STAG, IW_MARK_VERSION, NULL, 0);
            play_ahead(&t);
            if (k != RESPONSE) CHECK_BYTES(with_word.all + RIG_GUARD + OTHER, "small", 5);
            raw_free(&t.out);
        }
    }
}

static void send_that_waits_is_kept_with_all_that_was_read(void) {
    struct tale t = ends_early(SEND);
    t.no_second = true;
    add_small_send(&t, RDMAP_SEND);
    while (t.out.len < WHOLE)
        raw_write(&t.out, true, IW_MARK_STAG, IW_MARK_VERSION, NULL, 0);
    play_ahead(&t);
    CHECK_EQ(with_word.recv_count, 2);
    CHECK_BYTES(with_word.all + RIG_GUARD + OTHER, "small", 5);
    raw_free(&t.out);
}

/* A word that promises too much, of a message that is longer than its receive, or that other octets
 * follow. */
static void nothing_is_read_beyond_what_a_message_may_fill(void) {
    for (int k = 0; k < KINDS; k++) {
        for (uint32_t count = 2; count <= FPDUS; count++) {
            struct tale t = tale_of((enum kind)k);
            if (k == SEND) {
                t.extent = FIRST + count * EACH + EACH / 2;
                t.sure = SN_MIN(FIRST + count * EACH, (uint32_t)WHOLE);
            }
            if (k == WRITE) t.extent += 8 * EACH; /* its sender says so, and has the right */
            for (uint32_t i = 0; i < FPDUS; i++) {
                add(&t, i == 0 ? FIRST : EACH, i == FPDUS - 1);
                if (i < FPDUS - 1) foretell(&t, EACH, 65535);
            }
            size_t cuts[] = { t.at[SN_MIN(count, FPDUS - 2u)] + 20, 0 };
            while (t.out.len < WHOLE + 2 * EACH)
                raw_write(&t.out, true, IW_MARK_STAG, IW_MARK_VERSION, NULL, 0);
            play_both(&t, cuts, 0);
            raw_free(&t.out);
        }
    }
}

static void write_past_the_region_is_refused(void) {
    for (uint32_t inside = 1; inside < FPDUS; inside++) {
        struct tale t = tale_of(WRITE);
        uint64_t to = RIG_MEM - FIRST - inside * EACH;
        for (uint32_t i = 0; i < FPDUS; i++) {
            uint32_t len = i == 0 ? FIRST : EACH;
            begin_fpdu(&t);
            raw_write(&t.out, i == FPDUS - 1, FAKE_REMOTE, RIG_BASE + to + t.off, pattern + t.off,
                      len);
            if (i < FPDUS - 1) foretell(&t, EACH, FPDUS - 1 - i);
            t.off += len;
        }
        t.extent = t.sure = 0;
        play_both(&t, NULL, 0);
        CHECK(with_word.disconnected == 1 + SN_E_WIRE || inside == FPDUS - 1);
        raw_free(&t.out);
    }
}

static void token_that_goes_meanwhile_ends_the_write(void) {
    struct tale t = tale_of(WRITE);
    add_true(&t, FPDUS, FPDUS);
    watched.revoke_at = 3;
    int tries = 0;
    do {
        play(&t, NULL, 0, &with_word);
        CHECK(++tries < 50);
    } while (with_word.held < 3);
    watched.revoke_at = 0;
    CHECK_EQ(with_word.disconnected, 1 + SN_E_WIRE);
    CHECK(with_word.out_len != 0);
    raw_free(&t.out);
}

/* The application has freed a part of what the message fills. */
static void memory_that_is_gone_fails_as_without_a_word(void) {
    enum { HOLE = 7 * 4096, AREA = (WHOLE + 4095) / 4096 * 4096 };
    uint8_t *area = test_pages(AREA);
    CHECK(area && test_pages_hole(area + HOLE, 4096));
    watched.elsewhere = area;
    for (int k = 0; k < KINDS; k++) {
        struct tale t = tale_of((enum kind)k);
        add_true(&t, FPDUS, FPDUS);
        play_ahead(&t);
        CHECK_EQ(with_word.disconnected, 1 + SN_E_WIRE);
        if (k == SEND) CHECK_EQ(with_word.recv_status[0], SN_E_FAULT);
        if (k == RESPONSE) CHECK_EQ(with_word.req_status, SN_E_FAULT);
        raw_free(&t.out);
    }
    watched.elsewhere = NULL;
    test_pages_free(area, AREA);
}

/* Words that say nothing of use. */
static void odd_words_do_no_harm(void) {
    static const struct mpa_foretold words[] = { { 0, 65535 },    { 65535, 65535 },  { EACH, 0 },
                                                 { EACH, 1 },     { 1, 65535 },      { EACH, 2 },
                                                 { EACH, 65535 }, { EACH - 1, 300 }, { 65535, 1 } };
    for (int k = 0; k < KINDS; k++) {
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
            struct tale t = tale_of((enum kind)k);
            for (uint32_t j = 0; j < FPDUS; j++) {
                add(&t, j == 0 ? FIRST : EACH, j == FPDUS - 1);
                foretell(&t, words[i].size, words[i].count);
            }
            play_both(&t, NULL, 0);
            CHECK_BYTES(with_word.all + RIG_GUARD + PLACE, pattern, WHOLE);
            raw_free(&t.out);
        }
    }
}

/* Nothing is said; that its FPDUs are as large as each other is tried. */
static void answer_of_another_implementation_is_placed(void) {
    static const uint32_t others[] = { 0, 1, 1000, EACH - 1, EACH + 1 };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct tale t = tale_of(RESPONSE);
        t.foreign = true;
        while (t.off < WHOLE) {
            uint32_t len = t.count == BENT && others[i] ? others[i] : EACH;
            len = SN_MIN(len, WHOLE - t.off);
            add(&t, len, t.off + len == WHOLE);
        }
        int tries = 0;
        do {
            play(&t, NULL, 0, &with_word);
            CHECK_EQ(with_word.disconnected, 1 + SN_OK);
            CHECK_EQ(with_word.req_status, SN_OK);
            CHECK_BYTES(with_word.all + RIG_GUARD + PLACE, pattern, WHOLE);
            CHECK(++tries < 50);
        } while (with_word.held < 3);
        raw_free(&t.out);
    }
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        TEST(messages_are_placed_as_foretold),
        TEST(scatter_lists_are_filled_as_foretold),
        TEST(any_other_head_is_taken_as_it_is),
        TEST(sizes_that_change_place_every_octet),
        TEST(message_that_ends_early_is_delivered),
        TEST(send_that_waits_is_kept_with_all_that_was_read),
        TEST(nothing_is_read_beyond_what_a_message_may_fill),
        TEST(write_past_the_region_is_refused),
        TEST(token_that_goes_meanwhile_ends_the_write),
        TEST(memory_that_is_gone_fails_as_without_a_word),
        TEST(odd_words_do_no_harm),
        TEST(answer_of_another_implementation_is_placed),
    };
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + (i >> 16));
    watched_up = fake_up;
    watched_up.access = watched_access;
    watched_up.access_end = watched_access_end;
    watched_up.receive_done = watched_receive_done;
    watched_up.request_done = watched_request_done;
    watched_up.remote_invalidate = watched_invalidate;
    test_setenv("SOFTND_CRC", "off");
    rig_init(&rig);
    int result = test_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
    rig_fini(&rig);
    return result;
}
