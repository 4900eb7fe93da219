/* SPDX-License-Identifier: MIT
 * Plays one hostile stream, with several cuts of its octets and in both roles, and judges what came
 * of it.
 */
#include "hostile.h"
#include "support/portable.h"

void hostile_settings(void) {
    static const struct {
        const char *name;
        int ms;
    } settings[] = { { "SOFTND_MPA_REQUEST_MS", HOSTILE_REQUEST_MS },
                     { "SOFTND_IWARP_RNR_MS", HOSTILE_RNR_MS },
                     { "SOFTND_IWARP_LINGER_MS", HOSTILE_LINGER_MS } };
    for (size_t i = 0; i < SN_ARRAY_LEN(settings); i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", settings[i].ms);
        test_setenv(settings[i].name, text);
    }
}

/* ---- what plays use ---- */

const uint8_t *hostile_payload(void) {
    static uint8_t octets[70000];
    if (octets[1] == 0)
        for (size_t i = 0; i < sizeof octets; i++)
            octets[i] = (uint8_t)(i * 7 + (i >> 8) + 1);
    return octets;
}

struct fake_receive *hostile_receive(struct stage *s, size_t off, uint32_t len) {
    return fake_post_receive(&s->r->qp, rig_at(off), len);
}

void hostile_placed(struct stage *s, size_t off, const void *data, size_t len) {
    if (len) memcpy(rig_model(s->r) + off, data, len);
}

static struct { size_t off, len; } touched[8];
static size_t touched_count;

void hostile_touched(struct stage *s, size_t off, size_t len) {
    CHECK(touched_count < SN_ARRAY_LEN(touched));
    touched[touched_count].off = off;
    touched[touched_count++].len = len;
}

void hostile_fresh(void) {
    touched_count = 0;
}

static void check_memory(struct rig *r) {
    for (size_t i = 0; i < touched_count; i++)
        memcpy(rig_model(r) + touched[i].off, r->mem + touched[i].off, touched[i].len);
    rig_check_memory(r);
}

/* ---- outcomes ---- */

static const uint8_t *offender(const struct stage *s) {
    return s->out.data + (s->about == SIZE_MAX ? s->out.fpdu_at : s->about);
}

/* Everything that still comes from us, down to the Terminate that must be the last, and the FIN. */
static void expect_terminate(struct stage *s) {
    struct rig *r = s->r;
    const struct stream *d = s->def;
    enum raw_result res;
    do
        res = rig_read_fpdu(r);
    while (res == RAW_OK && (r->fpdu[3] & 15) != RDMAP_TERMINATE);
    if (res != RAW_OK) FAIL("no Terminate: %s", raw_result_text(res));
    struct raw_bytes want = { 0 };
    raw_terminate_about(&want, d->layer, d->type, d->code, d->quote, offender(s));
    if (!r->peer.crc) memset(want.data + want.len - 4, 0, 4);
    CHECK_EQ(r->fpdu[20], want.data[20]);
    CHECK_EQ(r->fpdu[21], want.data[21]);
    CHECK_EQ(r->fpdu_len, want.len);
    CHECK_BYTES(r->fpdu, want.data, want.len);
    raw_free(&want);
    CHECK_STR(raw_result_text(raw_read_end(&r->peer)), "end of stream");
}

/* No Terminate, no other FPDU that the stream did not ask for: Read Responses may come. */
static void expect_close(struct stage *s) {
    struct rig *r = s->r;
    enum raw_result res;
    do
        res = rig_read_fpdu(r);
    while (res == RAW_OK && r->fpdu[3] == 0x42);
    if (res != RAW_EOF && res != RAW_RESET)
        FAIL("expected a close without a word: %s, octets %02x %02x", raw_result_text(res),
             r->fpdu[2], r->fpdu[3]);
}

static void expect_life(struct stage *s) {
    struct rig *r = s->r;
    struct raw_bytes b = { 0 };
    uint32_t before = s->takes;
    enum raw_result res;
    struct fake_receive *in = fake_post_receive(&r->qp, rig_at(0x3000), 64);
    raw_send(&b, RDMAP_SEND, true, 0, s->msn, 0, "alive!", 6);
    rig_put(r, &b);
    raw_free(&b);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.recv_count) == before + 1 ||
             os_u32_load_seqcst(&r->qp.disconnected));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected), 0);
    CHECK_EQ(in->status, SN_OK);
    CHECK_EQ(in->bytes, 6);
    hostile_placed(s, 0x3000, "alive!", 6);
    uint32_t done = os_u32_load_seqcst(&r->qp.done_count);
    fake_post(&r->qp, TP_OP_SEND, 0, rig_at(0x3000), 6, 0, 0);
    do
        res = rig_read_fpdu(r);
    while (res == RAW_OK && r->fpdu[3] != 0x43);
    if (res != RAW_OK) FAIL("our Send does not come: %s", raw_result_text(res));
    CHECK_EQ(r->fpdu_len, 32);
    CHECK_BYTES(r->fpdu + 20, "alive!", 6);
    /* A foreign peer's TCP is enough; one that is SoftND would have to report. */
    if (iw_peer(iw_conn_of(r->qp.conn)) != IW_PEER_SOFTND)
        WAIT_FOR(os_u32_load_seqcst(&r->qp.done_count) > done);
    check_memory(r);
    raw_fin(&r->peer);
}

static void expect_counts(const struct stage *s) {
    const struct stream *d = s->def;
    const struct fake_qp *qp = &s->r->qp;
    if (d->ending == E_ALIVE) return;
    CHECK_EQ(os_u32_load_seqcst((os_atomic_u32 *)&qp->recv_count), d->recv_done);
    if (d->recv_done) CHECK_EQ(qp->rq[d->recv_done - 1].status, d->recv_status);
    CHECK_EQ(os_u32_load_seqcst((os_atomic_u32 *)&qp->done_count), d->req_done);
    if (d->req_done) CHECK_EQ(qp->sq[d->req_done - 1].status, d->req_status);
}

/* ---- strikes ---- */

static void strike(struct stage *s, size_t chunk) {
    struct rig *r = s->r;
    if (s->def->after == AFTER_RST && s->out.len == 0 && test_is_wine())
        SKIP("Wine shuts a connection down before it resets it");
    r->peer.chunk = chunk && s->out.len / chunk > 4000 ? s->out.len / 4000 : chunk;
    /* A peer that is refused early may meet a reset: what it could send is all that counts. */
    (void)raw_transmit(&r->peer, s->out.data, s->out.len, NULL);
    r->peer.chunk = 0;
    if (s->def->after == AFTER_FIN) raw_fin(&r->peer);
    if (s->def->after == AFTER_RST) raw_reset(&r->peer);
}

static void await_end(struct stage *s) {
    if (s->def->after != AFTER_RST) {
        if (s->def->ending == E_TERM) expect_terminate(s);
        if (s->def->ending == E_CLOSE) expect_close(s);
        if (s->def->ending == E_ALIVE) expect_life(s);
    }
}

static void run_raw(struct stage *s, size_t chunk) {
    struct rig *r = s->r;
    uint32_t before = os_u32_load_seqcst(&r->requests);
    s->def->play(s);
    rig_connect_raw(r, 0);
    strike(s, chunk);
    await_end(s);
    rig_done(r);
    CHECK_EQ(os_u32_load_seqcst(&r->requests), before);
}

static void run_requested(struct stage *s, size_t chunk) {
    struct rig *r = s->r;
    struct raw_bytes request = { 0 };
    raw_start2(&request, false, 0, RAW_A | 8, RAW_RTR_WRITE | RAW_RTR_READ | 8, NULL, 0);
    s->def->play(s);
    rig_connect_raw(r, 0);
    if (chunk == 0) { /* in one write */
        raw_put(&request, s->out.data, s->out.len);
        rig_put(r, &request);
        s->out.len = 0;
        strike(s, 0);
        rig_await_request(r);
    } else {
        rig_put(r, &request);
        rig_await_request(r);
        strike(s, chunk);
    }
    raw_free(&request);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.abandoned));
    CHECK_EQ(rig_accept(r, 4, 4, false), SN_E_ABORTED);
    if (s->def->after != AFTER_RST) expect_close(s);
    CHECK_EQ(os_u32_load_seqcst(&r->qp.established), 0);
    check_memory(r);
    rig_done(r);
}

/* Revision 1 comes on a second connection, where nobody answers. */
static void refuse_retry(struct rig *r) {
    raw_close(&r->peer);
    enum raw_result res = raw_accept(r->raw_listener, &r->peer);
    if (res != RAW_OK) FAIL("no second attempt: %s", raw_result_text(res));
    rig_read_start(r);
    CHECK_EQ(r->start[16], RAW_C);
    CHECK_EQ(r->start[17], 1);
    CHECK_EQ(r->start_len, 26);
    raw_fin(&r->peer);
}

static void run_reply(struct stage *s, size_t chunk) {
    struct rig *r = s->r;
    rig_start_connect(r, 4, 4, false);
    rig_read_start(r);
    CHECK_EQ(r->start[17], 2);
    s->def->play(s);
    strike(s, chunk);
    if (s->def->retry) refuse_retry(r);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.replied));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.replied), 1 + s->def->status);
    if (s->def->after != AFTER_RST || s->def->retry) {
        if (s->def->ending == E_TERM) expect_terminate(s);
        if (s->def->ending == E_CLOSE) expect_close(s);
    }
    if (s->def->ending == E_ALIVE) {
        CHECK_EQ(iw_ops.complete(r->qp.conn, 4, 4), SN_OK);
        expect_life(s);
        WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
    } else {
        CHECK_EQ(iw_ops.complete(r->qp.conn, 4, 4), SN_E_ABORTED);
    }
    check_memory(r);
    rig_done(r);
}

static void run_first(struct stage *s, size_t chunk) {
    struct rig *r = s->r;
    struct profile p = s->def->profile ? *s->def->profile : foreign_passive;
    p.rtr = RTR_NONE;
    rig_open(r, &p);
    s->def->play(s);
    strike(s, chunk);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.established));
    CHECK_EQ(
        os_u32_load_seqcst(&r->qp.established),
        1 + (s->def->ending == E_CLOSE && s->def->status != SN_E_REMOTE ? s->def->status : SN_OK));
    await_end(s);
    if (os_u32_load_seqcst(&r->qp.established) == 1 + SN_OK) {
        WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
        CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected),
                 1 + (s->def->ending == E_ALIVE ? SN_OK : s->def->status));
    }
    expect_counts(s);
    check_memory(r);
    rig_done(r);
}

static void run_open(struct stage *s, const struct profile *p, size_t chunk) {
    struct rig *r = s->r;
    rig_open(r, p);
    s->def->play(s);
    strike(s, chunk);
    await_end(s);
    WAIT_FOR(os_u32_load_seqcst(&r->qp.disconnected));
    CHECK_EQ(os_u32_load_seqcst(&r->qp.disconnected),
             1 + (s->def->ending == E_ALIVE ? SN_OK : s->def->status));
    expect_counts(s);
    check_memory(r);
    rig_done(r);
}

/* ---- the runner ---- */

static void run_once(struct rig *r, const struct stream *d, const struct profile *p, size_t chunk) {
    struct stage s = { .r = r, .def = d, .a = d->a, .b = d->b, .about = SIZE_MAX, .msn = 1 };
    hostile_fresh();
    switch (d->where) {
    case W_RAW:
        run_raw(&s, chunk);
        break;
    case W_REQUESTED:
        run_requested(&s, chunk);
        break;
    case W_REPLY:
        run_reply(&s, chunk);
        break;
    case W_FIRST:
        run_first(&s, chunk);
        break;
    case W_OPEN:
        run_open(&s, p, chunk);
        break;
    case W_CUSTOM:
        d->play(&s);
        check_memory(r);
        rig_done(r);
        break;
    }
    raw_free(&s.out);
}

void hostile_run(struct rig *r, const struct stream *d) {
    static const size_t cuts[] = { 0, 1, 7 };
    const size_t count = TEST_SLOW ? 1 : SN_ARRAY_LEN(cuts);
    if (d->where == W_CUSTOM) {
        run_once(r, d, NULL, 0);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct profile *p = d->profile ? d->profile
                                  : i == 2   ? &foreign_active
                                             : &foreign_passive;
        run_once(r, d, p, cuts[i]);
    }
}

const struct stream *hostile_at(size_t idx) {
    const struct {
        const struct stream *rows;
        size_t count;
    } tables[] = { { start_streams, start_stream_count },
                   { stream_streams, stream_stream_count },
                   { custom_streams, custom_stream_count } };
    for (size_t t = 0; t < SN_ARRAY_LEN(tables); t++) {
        if (idx < tables[t].count) return &tables[t].rows[idx];
        idx -= tables[t].count;
    }
    return NULL;
}
