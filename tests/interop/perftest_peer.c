/* SPDX-License-Identifier: MIT
 * perftest_peer.c - the other end of perftest's ib_{send,write,read}_{lat,bw} -R, as a
 * NetworkDirect program, so that either end may be verbs over siw:
 *
 *   perftest_peer TEST client HOST PORT SIZE ITERATIONS QPS
 *   perftest_peer TEST server SIZE ITERATIONS QPS      writes "listening on PORT"
 *
 * TEST is send_lat and so on. Both ends must be given the same numbers. CONFORM_WAIT is how we
 * wait.
 *
 * With -R perftest (6.x) uses one connection for its exchange and, behind it at the same port, one
 * for each queue pair. An exchange is a message of either side, the client's first, into the one
 * receive that each has posted: version text, buffer size, cache line, MTU, then again and again
 * the 56 octets of a queue pair's data (struct dest), as a barrier as well. What else is agreed:
 * send_bw's receiver Writes the number of messages it has taken to the sender (credit); write_lat's
 * ends watch the last octet of their buffer, the server begins.
 */
#include "conform/fixture.h"

#include <string.h>

enum { DEST = 56, MESSAGE = 64, BUFFER_LEAST = 4096, QPS_MAX = 8, TX = 128, RX = 512, GUARD = 64 };

enum verb { V_SEND, V_WRITE, V_READ };

static struct {
    enum verb verb;
    bool bw, client;
    size_t size;
    ULONG iters, qps;
} o;

static struct fx *f;
static struct fx_side ctl;
static struct fx_memory *ctl_mem; /* 0: what we send, MESSAGE: what we get */
static struct fx_side data[QPS_MAX];
static IND2CompletionQueue *receive_cq, *initiator_cq;
static IND2Listener *listener;
static struct sockaddr_storage peer_at;

struct dest {
    UINT32 rkey;
    UINT64 vaddr;
};
static struct dest remote[QPS_MAX];

/* For each queue pair a buffer to send from and one to receive into, with a guard on both sides of
 * all of it; the credits. */
static struct fx_memory *mem, *credit_mem;
static size_t stride;
static uint8_t *whole;

static size_t local_at(ULONG q) {
    return GUARD + q * stride;
}
static size_t target_at(ULONG q) {
    return GUARD + (o.qps + q) * stride;
}

/* ---- the exchange ---- */

static void put_be(uint8_t *p, UINT64 v, int octets) {
    while (octets-- > 0) {
        p[octets] = (uint8_t)v;
        v >>= 8;
    }
}
static UINT64 get_be(const uint8_t *p, int octets) {
    UINT64 v = 0;
    while (octets-- > 0)
        v = v << 8 | *p++;
    return v;
}

static void ctl_send(const void *out, size_t len) {
    memcpy(ctl_mem->bytes, out, len);
    SEND(&ctl, CTX(1), ctl_mem, 0, len, 0);
    EXPECT_OK(f, &ctl, Send, CTX(1), len);
}

static void ctl_receive(void *in, size_t len) {
    EXPECT_OK(f, &ctl, Receive, CTX(2), len);
    memcpy(in, ctl_mem->bytes + MESSAGE, len);
    RECEIVE(&ctl, CTX(2), ctl_mem, MESSAGE, DEST);
}

static void exchange(const void *out, void *in, size_t len) {
    uint8_t copy[MESSAGE];
    memcpy(copy, out, len);
    if (o.client) ctl_send(copy, len);
    ctl_receive(in, len);
    if (!o.client) ctl_send(copy, len);
}

/* What the peer may access of queue pair q: the credit word of a sender, else the target. */
static void shake(ULONG q, struct dest *theirs) {
    uint8_t out[DEST] = { 0 }, in[DEST];
    bool credit = o.verb == V_SEND && o.bw;
    put_be(out + 4, 16, 4);
    put_be(out + 8, q + 1, 4);
    put_be(out + 16, credit ? credit_mem->remote : mem->remote, 4);
    put_be(out + 24, credit ? fx_remote(credit_mem, q * 4) : fx_remote(mem, target_at(q)), 8);
    exchange(out, in, DEST);
    if (theirs)
        *theirs = (struct dest){ .rkey = (UINT32)get_be(in + 16, 4), .vaddr = get_be(in + 24, 8) };
}

static void barrier(void) {
    shake(0, NULL);
}
static void shake_all(struct dest *theirs) {
    for (ULONG q = 0; q < o.qps; q++)
        shake(q, theirs ? &theirs[q] : NULL);
}

static void introduce(void) {
    char version[16] = "6.06", their_version[16];
    uint8_t out[4], in[4];
    exchange(version, their_version, sizeof version);
    if (their_version[0] < '5' || their_version[0] > '9')
        FAIL("perftest of version %.15s", their_version);
    put_be(out, BUFFER_LEAST, 4);
    exchange(out, in, 4);
    if (get_be(in, 4) > BUFFER_LEAST) FAIL("a buffer of %u", (unsigned)get_be(in, 4));
    put_be(out, 64, 4);
    exchange(out, in, 4);
    exchange("5", in, 2);
}

/* The rates of a one-sided test, which the client has measured; true numbers are the first two. */
static void exchange_reports(void) {
    UINT64 total = (UINT64)o.iters * o.qps, values[5] = { o.size, o.client ? total : 0 };
    for (int i = 0; i < 5; i++) {
        uint8_t out[8], in[8];
        put_be(out, values[i], 8);
        exchange(out, in, 8);
        if (o.client) continue;
        if (i == 0) CHECK_EQ(get_be(in, 8), o.size);
        if (i == 1) CHECK_EQ(get_be(in, 8), total);
    }
}

/* ---- connections ---- */

/* perftest's server listens anew for its queue pairs, and says that it will, not that it does: like
 * its client we try again. */
static void connect_side(struct fx_side *s) {
    OVERLAPPED *connect = fx_overlapped(f), *complete = fx_overlapped(f);
    CHECK_HR(CALL(s->connector, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    for (uint64_t deadline = fx_deadline();; Sleep(20)) {
        CHECK_HR(CALL(s->connector, Connect, UNKNOWN(s->qp), ADDR(peer_at), f->local_len, 16, 16,
                      NULL, 0, connect),
                 ND_PENDING);
        HRESULT hr = WAIT(f, s->connector, connect);
        if (hr == ND_CONNECTION_REFUSED && s != &ctl && host_now_ms() < deadline) continue;
        CHECK_HR(hr, ND_SUCCESS);
        break;
    }
    CHECK_HR(CALL(s->connector, CompleteConnect, complete), ND_PENDING);
    CHECK_HR(WAIT(f, s->connector, complete), ND_SUCCESS);
}

static void accept_side(struct fx_side *s) {
    OVERLAPPED *request = fx_overlapped(f), *accept = fx_overlapped(f);
    CHECK_HR(CALL(listener, GetConnectionRequest, UNKNOWN(s->connector), request), ND_PENDING);
    CHECK_HR(WAIT(f, listener, request), ND_SUCCESS);
    CHECK_HR(CALL(s->connector, Accept, UNKNOWN(s->qp), 16, 16, NULL, 0, accept), ND_PENDING);
    CHECK_HR(WAIT(f, s->connector, accept), ND_SUCCESS);
}

static void meet(struct fx_side *s) {
    if (o.client)
        connect_side(s);
    else
        accept_side(s);
}

static void make_control(void) {
    ctl.receive_cq = fx_cq(f, 0, 8);
    ctl.initiator_cq = fx_cq(f, 0, 8);
    ctl.context = &ctl;
    ctl.qp = fx_qp(f, 0, ctl.receive_cq, ctl.initiator_cq, &ctl, 4, 1, 0);
    ctl.connector = fx_connector(f, 0);
    ctl_mem = fx_memory(f, 0, 2 * MESSAGE, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    RECEIVE(&ctl, CTX(2), ctl_mem, MESSAGE, DEST);
}

static void make_data(void) {
    stride = o.size > BUFFER_LEAST ? o.size : BUFFER_LEAST;
    size_t len = 2 * GUARD + 2 * o.qps * stride;
    whole = fx_alloc(f, len);
    mem = fx_memory_over(f, 0, whole, len, FX_MR_ALL | ND_MR_FLAG_RDMA_READ_SINK);
    credit_mem = fx_memory(f, 0, 2 * QPS_MAX * 4, FX_MR_ALL);
    fx_fill(whole, len, fx_seed(), 0, 0);
    /* Queue pairs share their completion queues, as perftest's do. */
    receive_cq = fx_cq(f, 0, o.qps * RX);
    initiator_cq = fx_cq(f, 0, o.qps * TX);
    for (ULONG q = 0; q < o.qps; q++) {
        struct fx_side *s = &data[q];
        s->receive_cq = receive_cq;
        s->initiator_cq = initiator_cq;
        s->context = s;
        s->qp = fx_qp(f, 0, receive_cq, initiator_cq, s, RX, 1, 0);
        s->connector = fx_connector(f, 0);
    }
}

static ULONG next_of(IND2CompletionQueue *cq, ND2_REQUEST_TYPE type) {
    ND2_RESULT r;
    NEXT(f, cq, &r);
    ULONG q = (ULONG)(uintptr_t)r.RequestContext;
    if (r.Status != ND_SUCCESS) FAIL("queue pair %u: %s", (unsigned)q, fx_status_text(r.Status));
    CHECK(q < o.qps);
    CHECK_PTR(r.QueuePairContext, &data[q]);
    CHECK_EQ(r.RequestType, type);
    if (type == Nd2RequestTypeReceive) CHECK_EQ(r.BytesTransferred, o.size);
    return q;
}

/* ---- the tests ---- */

static void post(ULONG q, ULONG n) {
    struct fx_side *s = &data[q];
    ND2_SGE sge = fx_sge(mem, local_at(q), o.size);
    HRESULT hr = o.verb == V_SEND ? CALL(s->qp, Send, CTX(q), &sge, 1, 0)
                 : o.verb == V_WRITE
                     ? CALL(s->qp, Write, CTX(q), &sge, 1, remote[q].vaddr, remote[q].rkey, 0)
                     : CALL(s->qp, Read, CTX(q), &sge, 1, remote[q].vaddr, remote[q].rkey, 0);
    if (hr != ND_SUCCESS) FAIL("request %u: %s", (unsigned)n, fx_status_text(hr));
}

static ND2_REQUEST_TYPE posted_type(void) {
    return o.verb == V_SEND    ? Nd2RequestTypeSend
           : o.verb == V_WRITE ? Nd2RequestTypeWrite
                               : Nd2RequestTypeRead;
}

static UINT32 credit_of(ULONG q) { /* Written by the peer */
    return ((const volatile UINT32 *)(const void *)credit_mem->bytes)[q];
}

static ULONG receive_depth(void) { /* perftest's, which its credits refer to */
    return o.iters < RX ? o.iters + o.iters % 2 : RX;
}

static void run_bw_sender(void) {
    ULONG posted[QPS_MAX] = { 0 }, done[QPS_MAX] = { 0 }, all = 0, flying = 0;
    uint64_t deadline = fx_deadline();
    while (all < o.iters * o.qps) {
        for (ULONG q = 0; q < o.qps; q++)
            while (posted[q] < o.iters && posted[q] - done[q] < TX &&
                   (o.verb != V_SEND || posted[q] + 1 - credit_of(q) < receive_depth())) {
                post(q, ++posted[q]);
                flying++;
            }
        if (flying == 0) { /* until a credit arrives */
            if (host_now_ms() > deadline) FAIL("no credit after %u messages", (unsigned)all);
            Sleep(0);
            continue;
        }
        ULONG q = next_of(initiator_cq, posted_type());
        done[q]++;
        flying--;
        all++;
        deadline = fx_deadline();
    }
}

static void post_receives(void) {
    if (o.verb != V_SEND || (o.bw && o.client)) return;
    for (ULONG q = 0; q < o.qps; q++)
        for (ULONG i = 0; i < o.iters && i < receive_depth(); i++)
            RECEIVE(&data[q], CTX(q), mem, target_at(q), o.size);
}

static void took_one(ULONG q, ULONG n) {
    if (n + receive_depth() <= o.iters) RECEIVE(&data[q], CTX(q), mem, target_at(q), o.size);
}

static void run_bw_receiver(void) {
    ULONG got[QPS_MAX] = { 0 }, every = receive_depth() / 3;
    for (ULONG all = 0; all < o.iters * o.qps; all++) {
        ULONG q = next_of(receive_cq, Nd2RequestTypeReceive);
        took_one(q, ++got[q]);
        if (got[q] % receive_depth() % every != 0) continue;
        memcpy(credit_mem->bytes + (QPS_MAX + q) * 4, &got[q], 4);
        ND2_SGE sge = fx_sge(credit_mem, (QPS_MAX + q) * 4, 4);
        CHECK_HR(CALL(data[q].qp, Write, CTX(q), &sge, 1, remote[q].vaddr, remote[q].rkey, 0),
                 ND_SUCCESS);
        next_of(initiator_cq, Nd2RequestTypeWrite);
    }
}

static void run_send_lat(void) {
    for (ULONG n = 1; n <= o.iters; n++) {
        if (o.client) post(0, n);
        if (o.client) next_of(initiator_cq, Nd2RequestTypeSend);
        next_of(receive_cq, Nd2RequestTypeReceive);
        took_one(0, n);
        if (!o.client) post(0, n);
        if (!o.client) next_of(initiator_cq, Nd2RequestTypeSend);
    }
}

static void run_write_lat(void) {
    volatile uint8_t *arrives = whole + target_at(0) + o.size - 1;
    uint8_t *leaves = whole + local_at(0) + o.size - 1;
    ULONG sent = 0, got = 0;
    while (sent < o.iters || got < o.iters) {
        if (got < o.iters && (o.client || sent > 0)) {
            uint64_t deadline = fx_deadline();
            for (got++; *arrives != (uint8_t)got;) {
                if (host_now_ms() > deadline) FAIL("Write %u does not arrive", (unsigned)got);
                Sleep(0);
            }
        }
        if (sent < o.iters) {
            *leaves = (uint8_t)++sent;
            post(0, sent);
            next_of(initiator_cq, Nd2RequestTypeWrite);
        }
    }
}

/* The peer's buffer lies still: every Read of it brings the same. */
static void run_read_lat(void) {
    uint8_t *first = fx_alloc(f, o.size), *now = whole + local_at(0);
    for (ULONG n = 1; n <= o.iters; n++) {
        memset(now, (int)n, o.size);
        post(0, n);
        next_of(initiator_cq, Nd2RequestTypeRead);
        if (n == 1)
            memcpy(first, now, o.size);
        else
            CHECK_BYTES(now, first, o.size);
    }
}

static void run(void) {
    if (!o.bw && o.verb == V_SEND) run_send_lat();
    if (!o.bw && o.verb == V_WRITE) run_write_lat();
    if (!o.bw && o.verb == V_READ && o.client) run_read_lat();
    if (o.bw && o.client) run_bw_sender();
    if (o.bw && !o.client && o.verb == V_SEND) run_bw_receiver();
}

/* ---- what was touched ---- */

static size_t changed(size_t at, size_t len) {
    uint8_t *was = fx_alloc(f, len);
    size_t n = 0;
    fx_fill(was, len, fx_seed(), 0, at);
    for (size_t i = 0; i < len; i++)
        n += was[i] != whole[at + i];
    return n;
}

static void check_memory(void) {
    bool into = o.verb == V_SEND ? !o.bw || !o.client : o.verb == V_WRITE && (!o.bw || !o.client);
    bool from = o.verb == V_READ && o.client; /* a sink */
    CHECK_EQ(changed(0, GUARD), 0);
    CHECK_EQ(changed(GUARD + 2 * o.qps * stride, GUARD), 0);
    for (ULONG q = 0; q < o.qps; q++) {
        size_t own = changed(local_at(q), stride), target = changed(target_at(q), stride);
        /* write_lat counts in the last octet. */
        CHECK(own <= (from ? o.size : (size_t)(o.verb == V_WRITE && !o.bw)));
        /* Small Writes of write_bw walk through the whole buffer. */
        CHECK(target <= (!into ? 0 : o.verb == V_SEND || !o.bw ? o.size : stride));
        if (o.size < 16) continue; /* what came may be what was there */
        if (from) CHECK(own != 0);
        if (into) CHECK(target != 0);
    }
}

/* The end is perftest's to make: when it comes from here, siw may fail a Send of perftest's that
 * has long arrived. Two of us wait for each other, but not for ever. */
static void part(void) {
    OVERLAPPED *gone = fx_overlapped(f);
    HRESULT hr = CALL(ctl.connector, NotifyDisconnect, gone);
    for (uint64_t end = host_now_ms() + 3000; hr == ND_PENDING && host_now_ms() < end; Sleep(1))
        if (fx_is_done(gone)) return;
    if (hr == ND_PENDING) fx_disconnect(f, &ctl);
}

/* ---- all of it ---- */

static void play(void) {
    f = fx_begin();
    if (!o.client) {
        struct sockaddr_storage at;
        ULONG len = sizeof at;
        listener = fx_listener(f, 0);
        CHECK_HR(CALL(listener, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
        CHECK_HR(CALL(listener, Listen, 0), ND_SUCCESS);
        CHECK_HR(CALL(listener, GetLocalAddress, (struct sockaddr *)&at, &len), ND_SUCCESS);
        printf("listening on %u\n", (unsigned)fx_port(&at));
        fflush(stdout);
    }
    make_control();
    meet(&ctl);
    introduce();
    make_data();
    barrier(); /* both are ready for the queue pairs */
    for (ULONG q = 0; q < o.qps; q++)
        meet(&data[q]);
    barrier();
    if (!o.bw && o.verb != V_SEND) barrier();
    shake_all(remote);
    if (o.verb == V_SEND) barrier();
    shake_all(NULL);
    post_receives();
    barrier();
    run();
    bool one_sided_bw = o.bw && o.verb != V_SEND;
    if (one_sided_bw) barrier();
    if (one_sided_bw) exchange_reports();
    if (o.bw || o.verb != V_WRITE) barrier();
    check_memory();
    part();
    fx_end(f);
}

static bool parse_test(const char *name) {
    static const char *const verbs[] = { "send", "write", "read" };
    for (int v = 0; v < 3; v++) {
        size_t n = strlen(verbs[v]);
        if (strncmp(name, verbs[v], n) != 0) continue;
        o.verb = (enum verb)v;
        o.bw = strcmp(name + n, "_bw") == 0;
        return o.bw || strcmp(name + n, "_lat") == 0;
    }
    return false;
}

int main(int argc, char **argv) {
    o.client = argc == 8 && strcmp(argv[2], "client") == 0;
    bool server = argc == 6 && strcmp(argv[2], "server") == 0;
    if ((!o.client && !server) || !parse_test(argv[1])) {
        fputs("perftest_peer TEST client HOST PORT SIZE ITERATIONS QPS\n"
              "perftest_peer TEST server SIZE ITERATIONS QPS\n",
              stderr);
        return 2;
    }
    char **numbers = argv + argc - 3;
    o.size = (size_t)strtoul(numbers[0], NULL, 0);
    o.iters = (ULONG)strtoul(numbers[1], NULL, 0);
    o.qps = (ULONG)strtoul(numbers[2], NULL, 0);
    if (o.size == 0 || o.iters < 6 || o.qps == 0 || o.qps > QPS_MAX || (!o.bw && o.qps != 1))
        return 2;
    fx_escape = conform_escape;
    int outcome = setjmp(test_escape);
    if (outcome != 0) return outcome == 2 ? 77 : 1;
    if (o.client) {
        ULONG len;
        CHECK(host_parse_address(argv[3], &peer_at, &len));
        peer_at = fx_with_port(&peer_at, (USHORT)atoi(argv[4]));
    }
    play();
    printf("%s: %u times %zu bytes, %u queue pairs\n", argv[1], (unsigned)o.iters, o.size,
           (unsigned)o.qps);
    return 0;
}
