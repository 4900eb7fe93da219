/* SPDX-License-Identifier: MIT
 * fuzz_stream.c - the whole receive path: a live connection fed with any octets.
 *
 * The first octet of an input says where in the life of a connection the rest strikes (low four
 * bits) and how many receives are posted (high four). Most kinds run without CRC, so that what was
 * changed is looked at; one has its CRCs made right, one has them as they are. The start of the
 * corpus is written by wire_hostile_test --dump.
 *
 * Holds for every input: the connection ends once the peer's FIN is there (or waits for a receive),
 * the engine forgets it, each request and receive is completed at most once (the fake core asserts
 * it), no octet outside the region changes, and two bystanders still talk.
 */
#include "fuzz.h"
#include "wire/rig.h"

enum kind {
    RAW,           /* instead of a request */
    REQUESTED,     /* behind a good request */
    REPLY,         /* instead of a reply */
    FIRST,         /* the first FPDU */
    OPEN,          /* passive, CRC off */
    OPEN_CRC,      /* passive, CRC on */
    OPEN_GOOD_CRC, /* passive, CRC on and right */
    OPEN_BUSY,     /* active, CRC off, with a Read and more outstanding */
    OPEN_SOFTND,   /* active, CRC off, a SoftND peer, Sends outstanding */
    OPEN_MARKED,   /* passive, CRC off, the peer wants markers */
    KINDS
};

enum { RECEIVE_LEN = 256 };

static struct rig rig;

static void post_receives(unsigned count) {
    for (unsigned i = 0; i < count; i++)
        fake_post_receive(&rig.qp, rig_at(0x1000 * (i + 1)), RECEIVE_LEN);
}

static void put(const void *data, size_t len) {
    (void)raw_transmit(&rig.peer, data, len, NULL); /* it may be refused half way */
}

/* Makes the CRC of every whole FPDU right. */
static void repair(uint8_t *p, size_t len) {
    while (len >= 2) {
        size_t body = (2 + ((size_t)p[0] << 8 | p[1]) + 3) & ~(size_t)3;
        if (len < body + 4) return;
        mpa_crc_pack(p + body, sn_crc32c(p, body));
        p += body + 4;
        len -= body + 4;
    }
}

static struct profile profile_of(enum kind kind) {
    struct profile p = kind == OPEN_SOFTND ? softnd_active
                       : kind == OPEN_BUSY ? foreign_active
                                           : foreign_passive;
    if (kind != OPEN_CRC && kind != OPEN_GOOD_CRC) p.flags &= (uint8_t)~RAW_C;
    if (kind == OPEN_MARKED) p.flags |= RAW_M;
    if (kind == FIRST) p.rtr = RTR_NONE;
    return p;
}

static void open_stream(enum kind kind) {
    struct profile p = profile_of(kind);
    setenv("SOFTND_CRC", p.flags & RAW_C ? "on" : "off", 1);
    rig_open(&rig, &p);
    if (kind == OPEN_BUSY || kind == OPEN_SOFTND) {
        fake_post(&rig.qp, TP_OP_READ, 0, rig_at(0x8000), 100, 0x4000, 77);
        fake_post(&rig.qp, TP_OP_SEND, TP_F_INVALIDATE, rig_at(0), 10, 0, 9);
        fake_post(&rig.qp, TP_OP_WRITE, 0, rig_at(0), 3000, 0x4000, 77);
        fake_post(&rig.qp, TP_OP_READ, TP_F_FENCE, rig_at(0x9000), 5000, 0x4000, 77);
    }
}

/* The end is near: an event, or a Send that waits for a receive. */
static bool is_over(enum kind kind) {
    struct fake_qp *qp = &rig.qp;
    if (kind == RAW) return true; /* rig_done waits for the engine */
    if (kind == REQUESTED) return os_u32_load_seqcst(&qp->abandoned);
    if (kind == REPLY) return os_u32_load_seqcst(&qp->replied);
    if (os_u32_load_seqcst(&qp->disconnected)) return true;
    if (os_u32_load_seqcst(&qp->established) > 1 + SN_OK) return true;
    return os_u32_load_seqcst(&iw_conn_of(qp->conn)->rx.stalled);
}

static void strike(enum kind kind, unsigned receives, uint8_t *data, size_t len) {
    struct raw_bytes b = { 0 };
    switch (kind) {
    case RAW:
        rig_connect_raw(&rig, 0);
        break;
    case REQUESTED:
        rig_connect_raw(&rig, 0);
        raw_start2(&b, false, 0, RAW_A | 8, RAW_RTR_WRITE | RAW_RTR_READ | 8, NULL, 0);
        rig_put(&rig, &b);
        rig_await_request(&rig);
        raw_free(&b);
        break;
    case REPLY:
        rig_start_connect(&rig, 4, 4, false);
        rig_read_start(&rig);
        break;
    default:
        post_receives(receives);
        open_stream(kind);
        break;
    }
    if (kind == OPEN_GOOD_CRC) repair(data, len);
    put(data, len);
    raw_fin(&rig.peer);
}

/* A reply may have been good, or may have sent us back with revision 1. */
static void after_reply(void) {
    struct raw_peer old = rig.peer;
    uint64_t until = os_now_ns() + RAW_WAIT_MS * OS_NS_PER_MS;
    bool again = false;
    while (!os_u32_load_seqcst(&rig.qp.replied) && !again) {
        os_sock s;
        if (os_sock_accept(rig.raw_listener, &s, NULL) == SN_OK) {
            os_sock_close(s, false);
            again = true;
        }
        FUZZ_CHECK(os_now_ns() < until);
        os_thread_yield();
    }
    WAIT_FOR(os_u32_load_seqcst(&rig.qp.replied));
    rig.peer = old;
    if (os_u32_load_seqcst(&rig.qp.replied) == 1 + SN_OK) (void)!iw_ops.complete(rig.qp.conn, 4, 4);
}

static void check_guards(void) {
    size_t end = RIG_GUARD + RIG_MEM;
    FUZZ_CHECK(memcmp(rig.all, rig.model, RIG_GUARD) == 0);
    FUZZ_CHECK(memcmp(rig.all + end, rig.model + end, RIG_GUARD) == 0);
}

static void finish(void) {
    rig_fini(&rig);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool ready;
    if (setjmp(test_escape) != 0) abort(); /* a FAIL below, which has said why */
    if (!ready) {
        setenv("SOFTND_MPA_REQUEST_MS", "20000", 1);
        rig_init(&rig);
        atexit(finish);
        ready = true;
    }
    if (size == 0) return 0;
    enum kind kind = (enum kind)((data[0] & 15) % KINDS);
    uint8_t *copy = fuzz_copy(data + 1, size - 1);
    strike(kind, data[0] >> 4, copy, size - 1);
    if (kind == REPLY)
        after_reply();
    else
        WAIT_FOR(is_over(kind));
    check_guards();
    rig_done(&rig);
    free(copy);
    return 0;
}
