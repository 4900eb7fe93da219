/* SPDX-License-Identifier: MIT
 * nd_peer.c - SoftND, through its public headers, against verbs over siw in a virtual machine (see
 * siw/verbs_peer.c and siw/run-vm.sh). Each case runs in both directions of connecting: _out, we
 * connect to the machine; _in, it connects to us.
 *
 * siw is not SoftND: a Send or Write of ours completes when TCP has it, so a case that wants to
 * know what became of it asks the peer.
 */
#include "conform/fixture.h"
#include "interop/guest.h"

#include <netdb.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GUEST_PORTS = 8 };

static const char *hex_of(const uint8_t *data, size_t len) {
    static char text[1100];
    if (len == 0) return "-";
    for (size_t i = 0; i < len; i++)
        sprintf(text + 2 * i, "%02x", data[i]);
    return text;
}

/* ---- memory on both sides ---- */

struct guest_memory {
    unsigned slot;
    UINT64 addr;
    UINT32 rkey;
    size_t len;
};

enum { GUEST_LOCAL = 1, GUEST_WRITE = 2, GUEST_READ = 4, GUEST_ALL = 7 };

static struct guest_memory guest_memory(unsigned slot, size_t len, unsigned rights) {
    struct guest_memory g = { .slot = slot, .len = len };
    unsigned long long addr;
    unsigned rkey;
    const char *text = ASK("mr %u %zu %u", slot, len, rights);
    if (sscanf(text, "%llu %u", &addr, &rkey) != 2) FAIL("bad answer: %s", text);
    g.addr = addr;
    g.rkey = rkey;
    return g;
}

static void guest_fill(const struct guest_memory *g, size_t off, size_t len, uint64_t msg) {
    ASK("fill %u %zu %zu %llu %llu 0", g->slot, off, len, (unsigned long long)fx_seed(),
        (unsigned long long)msg);
}
#define GUEST_CHECK(g, off, len, msg)                                                              \
    ASK("check %u %zu %zu %llu %llu 0", (g)->slot, (size_t)(off), (size_t)(len),                   \
        (unsigned long long)fx_seed(), (unsigned long long)(msg))

/* ---- a connection ---- */

struct link_options {
    ULONG depth, sge, reads; /* 0: 64, 4, 16 */
    unsigned guest_sge;      /* 0: 4 */
    bool no_kick;            /* nobody sends first */
};

struct link {
    struct fx *f;
    struct fx_side s;
    unsigned slot; /* in the peer */
    bool out;
};

static struct fx *begin(void) {
    peer_call();
    return fx_begin();
}

static struct sockaddr_storage guest_address(unsigned port) {
    struct sockaddr_storage at;
    ULONG len;
    CHECK(host_parse_address("127.0.0.1", &at, &len));
    return fx_with_port(&at, host_port(port));
}

static void make_side(struct link *l, const struct link_options *o) {
    struct fx *f = l->f;
    ULONG depth = o->depth ? o->depth : 64, sge = o->sge ? o->sge : 4;
    l->s.host = 0;
    l->s.context = &l->s;
    l->s.receive_cq = fx_cq(f, 0, depth + 8);
    l->s.initiator_cq = fx_cq(f, 0, depth + 8);
    l->s.qp = fx_qp(f, 0, l->s.receive_cq, l->s.initiator_cq, l->s.context, depth, sge, 64);
    l->s.connector = fx_connector(f, 0);
}

static void guest_qp(struct link *l, const struct link_options *o) {
    ULONG depth = o->depth ? o->depth : 64;
    unsigned sge = o->guest_sge ? o->guest_sge : 4;
    ASK("qp %u %u %u %u %u", l->slot, (unsigned)depth, (unsigned)depth, sge, sge);
}

static void expect_event(struct link *l, const char *name) {
    tell("event %u 10000", l->slot);
    const char *text = read_answer();
    if (strncmp(text, "ok ", 3) != 0 || strncmp(text + 3, name, strlen(name)) != 0)
        FAIL("the peer's event is %s, not %s", text, name);
}

static HRESULT finish(struct link *l, void *object, OVERLAPPED *ov) {
    return fx_finish(l->f, OVERLAPPED_OF(object), ov, ND_PENDING);
}

static IND2Listener *listen_here(struct fx *f, uint16_t *port) {
    struct sockaddr_storage at;
    ULONG len = sizeof at;
    IND2Listener *listener = fx_listener(f, 0);
    CHECK_HR(CALL(listener, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    CHECK_HR(CALL(listener, Listen, 0), ND_SUCCESS);
    CHECK_HR(CALL(listener, GetLocalAddress, (struct sockaddr *)&at, &len), ND_SUCCESS);
    *port = fx_port(&at);
    return listener;
}

static void link_out(struct link *l, const struct link_options *o) {
    struct fx *f = l->f;
    struct sockaddr_storage at = guest_address(7001);
    ULONG reads = o->reads ? o->reads : 16;
    OVERLAPPED *connect = fx_overlapped(f), *complete = fx_overlapped(f);
    CHECK_HR(CALL(l->s.connector, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    CHECK_HR(CALL(l->s.connector, Connect, UNKNOWN(l->s.qp), ADDR(at), f->local_len, reads, reads,
                  NULL, 0, connect),
             ND_PENDING);
    ASK("request %u 10000", l->slot);
    guest_qp(l, o);
    ASK("accept %u %u %u -", l->slot, (unsigned)reads, (unsigned)reads);
    CHECK_HR(finish(l, l->s.connector, connect), ND_SUCCESS);
    CHECK_HR(CALL(l->s.connector, CompleteConnect, complete), ND_PENDING);
    CHECK_HR(finish(l, l->s.connector, complete), ND_SUCCESS);
    expect_event(l, "ESTABLISHED");
}

static void link_in(struct link *l, const struct link_options *o) {
    struct fx *f = l->f;
    ULONG reads = o->reads ? o->reads : 16;
    OVERLAPPED *request = fx_overlapped(f), *accept = fx_overlapped(f);
    uint16_t port;
    IND2Listener *listener = listen_here(f, &port);
    CHECK_HR(CALL(listener, GetConnectionRequest, UNKNOWN(l->s.connector), request), ND_PENDING);
    ASK("dial %u 10.0.2.2 %u", l->slot, port);
    guest_qp(l, o);
    ASK("connect %u %u %u -", l->slot, (unsigned)reads, (unsigned)reads);
    CHECK_HR(finish(l, listener, request), ND_SUCCESS);
    CHECK_HR(CALL(l->s.connector, Accept, UNKNOWN(l->s.qp), reads, reads, NULL, 0, accept),
             ND_PENDING);
    CHECK_HR(finish(l, l->s.connector, accept), ND_SUCCESS);
    expect_event(l, "ESTABLISHED");
}

/* The active side must send first: without peer-to-peer a responder waits for that. */
static void kick(struct link *l) {
    if (l->out) {
        ASK("recv %u 999", l->slot);
        SEND(&l->s, CTX(999), NULL, 0, 0, 0);
        EXPECT_OK(l->f, &l->s, Send, CTX(999), 0);
        CHECK_STR(ASK("poll %u r 1 10000", l->slot), "1 999/0/128/0");
    } else {
        RECEIVE(&l->s, CTX(999), NULL, 0, 0);
        ASK("post %u send 999 s 0 0", l->slot);
        EXPECT_OK(l->f, &l->s, Receive, CTX(999), 0);
        CHECK_STR(ASK("poll %u s 1 10000", l->slot), "1 999/0/0/0");
    }
}

static void link_up(struct link *l, struct fx *f, bool out, unsigned slot,
                    const struct link_options *o) {
    static const struct link_options usual;
    if (!o) o = &usual;
    memset(l, 0, sizeof *l);
    l->f = f;
    l->out = out;
    l->slot = slot;
    make_side(l, o);
    if (out)
        link_out(l, o);
    else
        link_in(l, o);
    if (!o->no_kick) kick(l);
}

/* We end it; the peer sees that. */
static void link_down(struct link *l) {
    fx_disconnect(l->f, &l->s);
    expect_event(l, "DISCONNECTED");
    ASK("destroy %u", l->slot);
}

/* Listening in the machine lasts until its process ends. */
static void begin_link(struct fx **f, struct link *l, bool out, const struct link_options *o) {
    *f = begin();
    if (out) ASK("listen 7001");
    link_up(l, *f, out, 0, o);
}

static void guest_polled(struct link *l, char side, const char *expected) {
    const char *text = ASK("poll %u %c 1 20000", l->slot, side);
    if (strcmp(text, expected) != 0) FAIL("the peer's completion is %s, not %s", text, expected);
}

/* ---- sizes ---- */

static const size_t sizes[] = { 0,     1,     2,      3,      4,     5,    7,    8,     31,
                                32,    33,    63,     64,     65,    255,  511,  512,   513,
                                1023,  1024,  1025,   1419,   1420,  1421, 1435, 1436,  1437,
                                1440,  2047,  2048,   4093,   4096,  4099, 8191, 16384, 65533,
                                65536, 65539, 131071, 262144, 262145 };
enum { LARGEST = 262145, ROOM = 4 * 65536 + 4096 };

/* Offsets that are odd in all ways. */
static size_t odd_offset(size_t i) {
    static const size_t offsets[] = { 0, 1, 3, 7, 5, 2, 4095, 4096, 511, 6 };
    return offsets[i % COUNT_OF(offsets)];
}

static void send_sizes(bool out) {
    struct fx *f;
    struct link l;
    begin_link(&f, &l, out, NULL);
    struct fx_memory *m = fx_memory(f, 0, LARGEST + 8192, FX_MR_ALL);
    struct guest_memory g = guest_memory(0, LARGEST + 8192, GUEST_ALL);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t n = sizes[i], ours = odd_offset(i), theirs = odd_offset(i + 3);
        char expected[64];
        fx_fill(m->bytes + ours, n, fx_seed(), i, 0);
        ASK(n ? "recv 0 %zu 0 %zu %zu" : "recv 0 %zu", i, theirs, n);
        SEND(&l.s, CTX(i), m, ours, n, 0);
        EXPECT_OK(f, &l.s, Send, CTX(i), n);
        snprintf(expected, sizeof expected, "1 %zu/0/128/%zu", i, n);
        guest_polled(&l, 'r', expected);
        GUEST_CHECK(&g, theirs, n, i);

        guest_fill(&g, theirs, n, 1000 + i);
        RECEIVE(&l.s, CTX(i), m, ours, n);
        ASK(n ? "post 0 send %zu s 0 0 0 %zu %zu" : "post 0 send %zu s 0 0", i, theirs, n);
        EXPECT_OK(f, &l.s, Receive, CTX(i), n);
        CHECK_DATA(m->bytes + ours, n, fx_seed(), 1000 + i, 0);
        snprintf(expected, sizeof expected, "1 %zu/0/0/", i);
        if (strncmp(ASK("poll 0 s 1 20000"), expected, strlen(expected)) != 0)
            FAIL("the peer's Send of %zu bytes ended with %s", n, last_answer());
    }
    link_down(&l);
    fx_end(f);
}

/* Writes and Reads of the given size from both ends. */
static void one_sided(struct link *l, struct fx_memory *m, const struct guest_memory *g, size_t n,
                      size_t ours, size_t theirs, uint64_t msg) {
    struct fx *f = l->f;
    char text[256], local[64] = "";
    if (n) snprintf(local, sizeof local, " %u %zu %zu", g->slot, theirs, n);

    fx_fill(m->bytes + ours, n, fx_seed(), msg, 0);
    ND2_SGE sge = fx_sge(m, ours, n);
    CHECK_HR(CALL(l->s.qp, Write, CTX(1), &sge, n ? 1 : 0, g->addr + theirs, g->rkey, 0),
             ND_SUCCESS);
    EXPECT_OK(f, &l->s, Write, CTX(1), n);
    ASK("recv %u 7", l->slot); /* a Send behind it says that the Write is there */
    SEND(&l->s, CTX(2), NULL, 0, 0, 0);
    EXPECT_OK(f, &l->s, Send, CTX(2), 0);
    guest_polled(l, 'r', "1 7/0/128/0");
    GUEST_CHECK(g, theirs, n, msg);

    guest_fill(g, theirs, n, msg + 1);
    CHECK_HR(CALL(l->s.qp, Read, CTX(3), &sge, n ? 1 : 0, g->addr + theirs, g->rkey, 0),
             ND_SUCCESS);
    EXPECT_OK(f, &l->s, Read, CTX(3), n);
    CHECK_DATA(m->bytes + ours, n, fx_seed(), msg + 1, 0);

    guest_fill(g, theirs, n, msg + 2);
    snprintf(text, sizeof text, "post %u write 8 s %llu %u%s", l->slot,
             (unsigned long long)fx_remote(m, ours), m->remote, local);
    ASK("%s", text);
    RECEIVE(&l->s, CTX(4), NULL, 0, 0);
    ASK("post %u send 9 s 0 0", l->slot);
    EXPECT_OK(f, &l->s, Receive, CTX(4), 0);
    CHECK_DATA(m->bytes + ours, n, fx_seed(), msg + 2, 0);
    CHECK(strncmp(ASK("poll %u s 1 20000", l->slot), "1 8/0/", 6) == 0);
    CHECK(strncmp(ASK("poll %u s 1 20000", l->slot), "1 9/0/", 6) == 0);

    fx_fill(m->bytes + ours, n, fx_seed(), msg + 3, 0);
    snprintf(text, sizeof text, "post %u read 10 s %llu %u%s", l->slot,
             (unsigned long long)fx_remote(m, ours), m->remote, local);
    ASK("%s", text);
    const char *done = ASK("poll %u s 1 20000", l->slot);
    if (strncmp(done, "1 10/0/", 7) != 0) FAIL("the peer's Read of %zu bytes: %s", n, done);
    GUEST_CHECK(g, theirs, n, msg + 3);
}

static void one_sided_sizes(bool out) {
    struct fx *f;
    struct link l;
    begin_link(&f, &l, out, NULL);
    struct fx_memory *m = fx_memory(f, 0, LARGEST + 8192, FX_MR_ALL | ND_MR_FLAG_RDMA_READ_SINK);
    struct guest_memory g = guest_memory(0, LARGEST + 8192, GUEST_ALL);
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        one_sided(&l, m, &g, sizes[i], odd_offset(i), odd_offset(i + 4), 16 * i);
    link_down(&l);
    fx_end(f);
}

/* 64 MiB, a third of the kinds per direction of connecting for each way of the data. */
static void largest(bool out) {
    struct fx *f;
    struct link l;
    size_t n = MIB(64);
    begin_link(&f, &l, out, NULL);
    struct fx_memory *m = fx_memory(f, 0, n, FX_MR_ALL | ND_MR_FLAG_RDMA_READ_SINK);
    struct guest_memory g = guest_memory(0, n, GUEST_ALL);
    ND2_SGE sge = fx_sge(m, 0, n);
    fx_fill(m->bytes, n, fx_seed(), 1, 0);
    if (out) { /* our Send, the peer's Write, our Read */
        ASK("recv 0 1 0 0 %zu", n);
        SEND(&l.s, CTX(1), m, 0, n, 0);
        EXPECT_OK(f, &l.s, Send, CTX(1), n);
        guest_polled(&l, 'r', "1 1/0/128/67108864");
        GUEST_CHECK(&g, 0, n, 1);
        guest_fill(&g, 0, n, 2);
        RECEIVE(&l.s, CTX(2), NULL, 0, 0);
        ASK("post 0 write 2 - %llu %u 0 0 %zu", (unsigned long long)fx_remote(m, 0), m->remote, n);
        ASK("post 0 send 3 s 0 0");
        EXPECT_OK(f, &l.s, Receive, CTX(2), 0);
        CHECK_DATA(m->bytes, n, fx_seed(), 2, 0);
        memset(m->bytes, 0, n);
        CHECK_HR(CALL(l.s.qp, Read, CTX(3), &sge, 1, g.addr, g.rkey, 0), ND_SUCCESS);
        EXPECT_OK(f, &l.s, Read, CTX(3), n);
        CHECK_DATA(m->bytes, n, fx_seed(), 2, 0);
    } else { /* our Write, the peer's Send, the peer's Read */
        CHECK_HR(CALL(l.s.qp, Write, CTX(1), &sge, 1, g.addr, g.rkey, 0), ND_SUCCESS);
        EXPECT_OK(f, &l.s, Write, CTX(1), n);
        ASK("recv 0 1");
        SEND(&l.s, CTX(2), NULL, 0, 0, 0);
        EXPECT_OK(f, &l.s, Send, CTX(2), 0);
        guest_polled(&l, 'r', "1 1/0/128/0");
        GUEST_CHECK(&g, 0, n, 1);
        memset(m->bytes, 0, n);
        RECEIVE(&l.s, CTX(3), m, 0, n);
        ASK("post 0 send 3 s 0 0 0 0 %zu", n);
        EXPECT_OK(f, &l.s, Receive, CTX(3), n);
        CHECK_DATA(m->bytes, n, fx_seed(), 1, 0);
        CHECK(strncmp(ASK("poll 0 s 1 20000"), "1 3/0/", 6) == 0);
        guest_fill(&g, 0, n, 3);
        ASK("post 0 read 4 s %llu %u 0 0 %zu", (unsigned long long)fx_remote(m, 0), m->remote, n);
        if (strncmp(ASK("poll 0 s 1 50000"), "1 4/0/", 6) != 0)
            FAIL("the peer's Read ended with %s", last_answer());
        GUEST_CHECK(&g, 0, n, 1);
    }
    link_down(&l);
    fx_end(f);
}

/* ---- many pieces, many requests, many connections ---- */

static void many_sges(bool out) {
    static const size_t ours[16] = {
        1, 3, 64, 7, 4096, 2, 511, 1, 1460, 33, 5, 900, 17, 2048, 9, 6
    };
    static const size_t theirs[6] = { 5, 1000, 13, 4001, 700, 3444 };
    struct fx *f;
    struct link l;
    struct link_options o = { .sge = 16, .guest_sge = 6 };
    ND2_SGE sge[16];
    size_t total = 0, at = 3, check = 0;
    char text[256] = "";
    begin_link(&f, &l, out, &o);
    struct fx_memory *m = fx_memory(f, 0, ROOM, FX_MR_ALL | ND_MR_FLAG_RDMA_READ_SINK);
    struct guest_memory g = guest_memory(0, ROOM, GUEST_ALL);
    for (size_t i = 0; i < 16; i++) { /* with holes between them */
        sge[i] = fx_sge(m, at, ours[i]);
        at += ours[i] + 11 + i;
        total += ours[i];
    }
    size_t sum = 0, guest_at = 1;
    for (size_t i = 0; i < 6; i++) {
        sprintf(text + strlen(text), " 0 %zu %zu", guest_at, theirs[i]);
        guest_at += theirs[i] + 9;
        sum += theirs[i];
    }
    CHECK_EQ(sum, total);
    for (int turn = 0; turn < 2; turn++) { /* gathered there, scattered here, and back */
        for (size_t i = 0, from = 0; i < 16; from += ours[i++])
            fx_fill(sge[i].Buffer, ours[i], fx_seed(), 5, from);
        ASK("recv 0 1%s", text);
        CHECK_HR(CALL(l.s.qp, Send, CTX(1), sge, 16, 0), ND_SUCCESS);
        EXPECT_OK(f, &l.s, Send, CTX(1), total);
        CHECK(strncmp(ASK("poll 0 r 1 20000"), "1 1/0/", 6) == 0);
        guest_at = 1;
        check = 0;
        for (size_t i = 0; i < 6; i++) {
            ASK("check 0 %zu %zu %llu 5 %zu", guest_at, theirs[i], (unsigned long long)fx_seed(),
                check);
            check += theirs[i];
            guest_at += theirs[i] + 9;
        }
        memset(m->bytes, 0, ROOM);
        CHECK_HR(CALL(l.s.qp, Receive, CTX(2), sge, 16), ND_SUCCESS);
        ASK("post 0 send 2 s 0 0%s", text);
        EXPECT_OK(f, &l.s, Receive, CTX(2), total);
        for (size_t i = 0, from = 0; i < 16; from += ours[i++])
            CHECK_DATA(sge[i].Buffer, ours[i], fx_seed(), 5, from);
        CHECK(strncmp(ASK("poll 0 s 1 20000"), "1 2/0/", 6) == 0);
    }
    guest_fill(&g, 5000, total, 6); /* a Read into 16 pieces, a Write from 16 */
    CHECK_HR(CALL(l.s.qp, Read, CTX(3), sge, 16, g.addr + 5000, g.rkey, 0), ND_SUCCESS);
    EXPECT_OK(f, &l.s, Read, CTX(3), total);
    for (size_t i = 0, from = 0; i < 16; from += ours[i++])
        CHECK_DATA(sge[i].Buffer, ours[i], fx_seed(), 6, from);
    CHECK_HR(CALL(l.s.qp, Write, CTX(4), sge, 16, g.addr + 20001, g.rkey, 0), ND_SUCCESS);
    EXPECT_OK(f, &l.s, Write, CTX(4), total);
    ASK("recv 0 3");
    SEND(&l.s, CTX(5), NULL, 0, 0, 0);
    EXPECT_OK(f, &l.s, Send, CTX(5), 0);
    guest_polled(&l, 'r', "1 3/0/128/0");
    GUEST_CHECK(&g, 20001, total, 6);
    link_down(&l);
    fx_end(f);
}

static void deep_queues(bool out) {
    enum { COUNT = 1024, SIZE = 96, READ_COUNT = 256 };
    struct fx *f;
    struct link l;
    struct link_options o = { .depth = COUNT };
    char text[160];
    begin_link(&f, &l, out, &o);
    struct fx_memory *m = fx_memory(f, 0, COUNT * SIZE, FX_MR_ALL | ND_MR_FLAG_RDMA_READ_SINK);
    struct guest_memory g = guest_memory(0, COUNT * SIZE, GUEST_ALL);
    fx_fill(m->bytes, COUNT * SIZE, fx_seed(), 1, 0);
    ASK("recvs 0 %d 0 0 %d", COUNT, SIZE);
    for (int i = 0; i < COUNT; i++)
        SEND(&l.s, CTX(i), m, (size_t)i * SIZE, SIZE, 0);
    for (int i = 0; i < COUNT; i++)
        EXPECT_OK(f, &l.s, Send, CTX(i), SIZE);
    CHECK_EQ(atoi(ASK("poll 0 r %d 20000", COUNT)), COUNT);
    GUEST_CHECK(&g, 0, COUNT * SIZE, 1);

    memset(m->bytes, 0, COUNT * SIZE);
    for (int i = 0; i < COUNT; i++)
        RECEIVE(&l.s, CTX(i), m, (size_t)i * SIZE, SIZE);
    ASK("sends 0 send %d - 0 0 0 0 %d", COUNT, SIZE);
    for (int i = 0; i < COUNT; i++)
        EXPECT_OK(f, &l.s, Receive, CTX(i), SIZE);
    CHECK_DATA(m->bytes, COUNT * SIZE, fx_seed(), 1, 0);
    CHECK_EQ(atoi(ASK("poll 0 s %d 20000", COUNT)), COUNT);

    memset(m->bytes, 0, COUNT * SIZE); /* far more Reads than may be in flight, both ways */
    for (int i = 0; i < COUNT; i++) {
        ND2_SGE sge = fx_sge(m, (size_t)i * SIZE, SIZE);
        CHECK_HR(CALL(l.s.qp, Read, CTX(i), &sge, 1, g.addr + (size_t)i * SIZE, g.rkey, 0),
                 ND_SUCCESS);
    }
    for (int i = 0; i < COUNT; i++)
        EXPECT_OK(f, &l.s, Read, CTX(i), SIZE);
    CHECK_DATA(m->bytes, COUNT * SIZE, fx_seed(), 1, 0);
    ASK("fill 0 0 %d 0 0 0", COUNT * SIZE);
    snprintf(text, sizeof text, "sends 0 read %d - %llu %u 0 0 %d", READ_COUNT,
             (unsigned long long)fx_remote(m, 0), m->remote, SIZE);
    ASK("%s", text);
    CHECK_EQ(atoi(ASK("poll 0 s %d 20000", READ_COUNT)), READ_COUNT);
    GUEST_CHECK(&g, 0, READ_COUNT * SIZE, 1);
    link_down(&l);
    fx_end(f);
}

static void many_queue_pairs(bool out) {
    enum { COUNT = 64, SIZE = 3000 };
    static struct link l[COUNT];
    struct link_options o = { .depth = 256 }; /* with 64 libsiw gives up at the 19th */
    struct fx *f = begin();
    if (out) ASK("listen 7001");
    struct fx_memory *m = fx_memory(f, 0, COUNT * SIZE, FX_MR_ALL | ND_MR_FLAG_RDMA_READ_SINK);
    struct guest_memory g = guest_memory(0, COUNT * SIZE, GUEST_ALL);
    for (unsigned i = 0; i < COUNT; i++)
        link_up(&l[i], f, out, i, &o);
    for (unsigned i = 0; i < COUNT; i++) { /* all at once */
        fx_fill(m->bytes + i * SIZE, SIZE, fx_seed(), i, 0);
        ASK("recv %u 1 0 %u %u", i, i * SIZE, SIZE);
        SEND(&l[i].s, CTX(i), m, i * SIZE, SIZE, 0);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        EXPECT_OK(f, &l[i].s, Send, CTX(i), SIZE);
        guest_polled(&l[i], 'r', "1 1/0/128/3000");
        GUEST_CHECK(&g, i * SIZE, SIZE, i);
    }
    for (unsigned i = 0; i < COUNT; i++)
        one_sided(&l[i], m, &g, SIZE, i * SIZE, i * SIZE, 1000 + i);
    for (unsigned i = 0; i < COUNT; i++)
        link_down(&l[i]);
    fx_end(f);
}

/* ---- flavours of Send ---- */

static void solicited(bool out) {
    struct fx *f;
    struct link l;
    begin_link(&f, &l, out, NULL);
    struct fx_memory *m = fx_memory(f, 0, 4096, FX_MR_ALL);
    struct guest_memory g = guest_memory(0, 4096, GUEST_ALL);
    OVERLAPPED *ov = fx_overlapped(f);
    fx_poll_results = true;
    guest_fill(&g, 0, 100, 3);
    RECEIVE(&l.s, CTX(1), m, 0, 100);
    RECEIVE(&l.s, CTX(2), m, 200, 100);
    CHECK_HR(CALL(l.s.receive_cq, Notify, ND_CQ_NOTIFY_SOLICITED, ov), ND_PENDING);
    ASK("post 0 send 1 s 0 0 0 0 100");
    EXPECT_OK(f, &l.s, Receive, CTX(1), 100);
    CHECK(!fx_is_done(ov)); /* an ordinary one does not count */
    ASK("post 0 send 2 se 0 0 0 0 100");
    CHECK_HR(fx_finish(f, OVERLAPPED_OF(l.s.receive_cq), ov, ND_PENDING), ND_SUCCESS);
    EXPECT_OK(f, &l.s, Receive, CTX(2), 100);
    CHECK_DATA(m->bytes + 200, 100, fx_seed(), 3, 0);
    ASK("recv 0 3 0 0 100");
    fx_fill(m->bytes, 100, fx_seed(), 4, 0);
    SEND(&l.s, CTX(3), m, 0, 100, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT);
    EXPECT_OK(f, &l.s, Send, CTX(3), 100);
    guest_polled(&l, 'r', "1 3/0/128/100");
    GUEST_CHECK(&g, 0, 100, 4);
    link_down(&l);
    fx_end(f);
}

/* The end of a connection, seen from here, however it came. */
static void expect_end(struct link *l) {
    OVERLAPPED *ov = fx_overlapped(l->f);
    HRESULT hr = CALL(l->s.connector, NotifyDisconnect, ov);
    CHECK_HR(fx_finish(l->f, OVERLAPPED_OF(l->s.connector), ov, hr), ND_SUCCESS);
}

static void invalidate(bool out) {
    struct fx *f;
    struct link l;
    begin_link(&f, &l, out, NULL);
    struct fx_memory *m = fx_memory(f, 0, 8192, FX_MR_ALL);
    struct guest_memory g = guest_memory(0, 8192, GUEST_ALL);
    IND2MemoryWindow *window = fx_window(f, 0);
    BIND(&l.s, CTX(1), m, window, 0, 4096, ND_OP_FLAG_ALLOW_WRITE);
    EXPECT_OK(f, &l.s, Bind, CTX(1), FX_ANY_BYTES);
    UINT32 token = CALL(window, GetRemoteToken);
    guest_fill(&g, 0, 100, 3);
    RECEIVE(&l.s, CTX(2), m, 4096, 100);
    ASK("post 0 write 1 s %llu %u 0 0 100", (unsigned long long)fx_remote(m, 0), token);
    ASK("post 0 inv 2 %s 0 %u 0 0 100", out ? "se" : "s", token); /* solicited, too */
    EXPECT_OK(f, &l.s, Receive, CTX(2), 100);
    CHECK_DATA(m->bytes, 100, fx_seed(), 3, 0);
    CHECK_DATA(m->bytes + 4096, 100, fx_seed(), 3, 0);
    CHECK(strncmp(ASK("poll 0 s 1 20000"), "1 1/0/", 6) == 0);
    CHECK(strncmp(ASK("poll 0 s 1 20000"), "1 2/0/", 6) == 0);
    /* Bound no more: a new Bind works, and the old token ends the connection. */
    BIND(&l.s, CTX(3), m, window, 0, 4096, ND_OP_FLAG_ALLOW_WRITE);
    EXPECT_OK(f, &l.s, Bind, CTX(3), FX_ANY_BYTES);
    CHECK(CALL(window, GetRemoteToken) != token);
    memset(m->bytes, 0x55, 100);
    ASK("post 0 write 3 s %llu %u 0 0 100", (unsigned long long)fx_remote(m, 0), token);
    expect_end(&l);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(m->bytes[i], 0x55);
    expect_event(&l, "DISCONNECTED");
    fx_end(f);
}

/* Send with Invalidate of something that is no window. */
static void invalidate_wrong_token(bool out) {
    struct fx *f;
    struct link l;
    begin_link(&f, &l, out, NULL);
    struct fx_memory *m = fx_memory(f, 0, 8192, FX_MR_ALL);
    guest_memory(0, 8192, GUEST_ALL);
    RECEIVE(&l.s, CTX(2), m, 4096, 100);
    ASK("post 0 inv 2 s 0 %u 0 0 100", m->remote ^ 0x5A5A00u);
    expect_end(&l);
    EXPECT_ERROR(f, &l.s, Receive, ND_CANCELED, CTX(2));
    expect_event(&l, "DISCONNECTED");
    fx_end(f);
}

static void inline_and_fence(bool out) {
    struct fx *f;
    struct link l;
    begin_link(&f, &l, out, NULL);
    struct fx_memory *m = fx_memory(f, 0, 65536, FX_MR_ALL | ND_MR_FLAG_RDMA_READ_SINK);
    struct guest_memory g = guest_memory(0, 65536, GUEST_ALL);
    guest_fill(&g, 0, 60000, 3);
    ND2_SGE sink = fx_sge(m, 0, 60000);
    /* The fenced Send sends what the Read brought. */
    ASK("recv 0 1 0 0 64");
    CHECK_HR(CALL(l.s.qp, Read, CTX(1), &sink, 1, g.addr, g.rkey, 0), ND_SUCCESS);
    SEND(&l.s, CTX(2), m, 59900, 64, ND_OP_FLAG_READ_FENCE);
    EXPECT_OK(f, &l.s, Read, CTX(1), 60000);
    EXPECT_OK(f, &l.s, Send, CTX(2), 64);
    guest_polled(&l, 'r', "1 1/0/128/64");
    ASK("check 0 0 64 %llu 3 59900", (unsigned long long)fx_seed());
    uint8_t small[64];
    fx_fill(small, sizeof small, fx_seed(), 4, 0);
    ND2_SGE sge = { .Buffer = small, .BufferLength = sizeof small };
    ASK("recv 0 2 0 100 64");
    CHECK_HR(CALL(l.s.qp, Write, CTX(3), &sge, 1, g.addr + 300, g.rkey, ND_OP_FLAG_INLINE),
             ND_SUCCESS);
    CHECK_HR(CALL(l.s.qp, Send, CTX(4), &sge, 1, ND_OP_FLAG_INLINE), ND_SUCCESS);
    memset(small, 0, sizeof small);
    EXPECT_OK(f, &l.s, Write, CTX(3), 64);
    EXPECT_OK(f, &l.s, Send, CTX(4), 64);
    guest_polled(&l, 'r', "1 2/0/128/64");
    GUEST_CHECK(&g, 100, 64, 4);
    GUEST_CHECK(&g, 300, 64, 4);
    /* And the peer's: an inline Send, and a Send fenced behind a Read. */
    fx_fill(m->bytes, 60000, fx_seed(), 5, 0);
    RECEIVE(&l.s, CTX(5), m, 60100, 64);
    RECEIVE(&l.s, CTX(6), m, 60200, 64);
    ASK("post 0 send 3 sl 0 0 0 300 64");
    ASK("post 0 read 4 s %llu %u 0 0 60000", (unsigned long long)fx_remote(m, 0), m->remote);
    ASK("post 0 send 5 sf 0 0 0 1000 64");
    EXPECT_OK(f, &l.s, Receive, CTX(5), 64);
    CHECK_DATA(m->bytes + 60100, 64, fx_seed(), 4, 0);
    EXPECT_OK(f, &l.s, Receive, CTX(6), 64);
    CHECK_DATA(m->bytes + 60200, 64, fx_seed(), 5, 1000);
    link_down(&l);
    fx_end(f);
}

/* ---- a Send and its Receive ---- */

static void late_receive(bool out) {
    struct fx *f;
    struct link l;
    begin_link(&f, &l, out, NULL);
    struct fx_memory *m = fx_memory(f, 0, 65536, FX_MR_ALL);
    struct guest_memory g = guest_memory(0, 65536, GUEST_ALL);
    guest_fill(&g, 0, 50000, 3);
    ASK("post 0 send 1 s 0 0 0 0 50000");
    ASK("post 0 write 2 s %llu %u 0 0 100", (unsigned long long)fx_remote(m, 60000), m->remote);
    fx_fill(m->bytes + 60000, 100, fx_seed(), 9, 0);
    /* Something else that the peer answers: time in which the Send has come. */
    ASK("state 0");
    CHECK_DATA(m->bytes + 60000, 100, fx_seed(), 9, 0); /* the Write waits its turn */
    RECEIVE(&l.s, CTX(1), m, 0, 50000);
    EXPECT_OK(f, &l.s, Receive, CTX(1), 50000);
    CHECK_DATA(m->bytes, 50000, fx_seed(), 3, 0);
    link_down(&l);
    fx_end(f);
}

static void no_receive_ends_in_time_out(bool out) {
    struct fx *f;
    struct link l;
    begin_link(&f, &l, out, NULL);
    guest_memory(0, 4096, GUEST_ALL);
    ASK("post 0 send 1 s 0 0 0 0 100");
    expect_end(&l);
    expect_event(&l, "DISCONNECTED");
    fx_end(f);
}

static void message_too_long_here(bool out) {
    struct fx *f;
    struct link l;
    begin_link(&f, &l, out, NULL);
    struct fx_memory *m = fx_memory(f, 0, 4096, FX_MR_ALL);
    guest_memory(0, 4096, GUEST_ALL);
    memset(m->bytes, 0x55, 4096);
    RECEIVE(&l.s, CTX(1), m, 0, 99);
    ASK("post 0 send 1 s 0 0 0 0 100");
    EXPECT_ERROR(f, &l.s, Receive, ND_DATA_OVERRUN, CTX(1));
    expect_end(&l);
    for (int i = 0; i < 200; i++)
        CHECK_EQ(m->bytes[i], 0x55);
    expect_event(&l, "DISCONNECTED");
    fx_end(f);
}

/* Our Send is complete when TCP has it; then the peer refuses it. */
static void message_too_long_there(bool out) {
    struct fx *f;
    struct link l;
    begin_link(&f, &l, out, NULL);
    struct fx_memory *m = fx_memory(f, 0, 4096, FX_MR_ALL);
    guest_memory(0, 4096, GUEST_ALL);
    RECEIVE(&l.s, CTX(2), m, 0, 100);
    ASK("recv 0 1 0 0 99");
    SEND(&l.s, CTX(1), m, 0, 100, 0);
    EXPECT_OK(f, &l.s, Send, CTX(1), 100);
    expect_end(&l);
    EXPECT_ERROR(f, &l.s, Receive, ND_CANCELED, CTX(2));
    if (strncmp(ASK("poll 0 r 1 20000"), "1 1/1/", 6) != 0) /* IBV_WC_LOC_LEN_ERR */
        FAIL("the peer's Receive ended with %s", last_answer());
    fx_end(f);
}

static void no_receive_there(bool out) {
    struct fx *f;
    struct link l;
    begin_link(&f, &l, out, NULL);
    struct fx_memory *m = fx_memory(f, 0, 4096, FX_MR_ALL);
    RECEIVE(&l.s, CTX(2), m, 0, 100);
    SEND(&l.s, CTX(1), m, 0, 100, 0);
    EXPECT_OK(f, &l.s, Send, CTX(1), 100);
    expect_end(&l);
    EXPECT_ERROR(f, &l.s, Receive, ND_CANCELED, CTX(2));
    fx_end(f);
}

/* ---- memory that may not be touched ---- */

struct wrong {
    const char *what;
    bool ours;      /* our access to the peer's memory, else the peer's to ours */
    bool read;      /* else a Write */
    int token;      /* 0 the right one, 1 another, 2 one without the right */
    size_t at, len; /* of 4096 bytes */
};

static void wrong_access(bool out, const struct wrong *w) {
    struct fx *f;
    struct link l;
    begin_link(&f, &l, out, NULL);
    ULONG right = w->token == 2 ? 0 : ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE;
    struct fx_memory *target = fx_memory(f, 0, 4096, right | ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    struct fx_memory *m = fx_memory(f, 0, 65536, FX_MR_ALL | ND_MR_FLAG_RDMA_READ_SINK);
    guest_memory(0, 65536, GUEST_ALL);
    struct guest_memory g = guest_memory(1, 4096, w->token == 2 ? GUEST_LOCAL : GUEST_ALL);
    struct fx_memory *receive = fx_memory(f, 0, 64, FX_MR_ALL);
    guest_fill(&g, 0, 4096, 1);
    fx_fill(target->bytes, 4096, fx_seed(), 2, 0);
    RECEIVE(&l.s, CTX(7), receive, 0, 64);
    if (w->ours) {
        ND2_SGE sge = fx_sge(m, 0, w->len);
        UINT32 rkey = w->token == 1 ? g.rkey ^ 0x10100u : g.rkey;
        memset(m->bytes, 0x55, 4096);
        if (w->read) {
            CHECK_HR(CALL(l.s.qp, Read, CTX(1), &sge, 1, g.addr + w->at, rkey, 0), ND_SUCCESS);
            EXPECT_ERROR(f, &l.s, Read, ND_ACCESS_VIOLATION, CTX(1));
            for (int i = 0; i < 4096; i++)
                CHECK_EQ(m->bytes[i], 0x55);
        } else {
            CHECK_HR(CALL(l.s.qp, Write, CTX(1), &sge, 1, g.addr + w->at, rkey, 0), ND_SUCCESS);
            EXPECT_OK(f, &l.s, Write, CTX(1), w->len);
        }
    } else {
        ASK("post 0 %s 1 s %llu %u 0 0 %zu", w->read ? "read" : "write",
            (unsigned long long)fx_remote(target, w->at),
            w->token == 1 ? target->remote ^ 0x10100u : target->remote, w->len);
    }
    expect_end(&l);
    EXPECT_ERROR(f, &l.s, Receive, ND_CANCELED, CTX(7));
    CHECK_DATA(target->bytes, 4096, fx_seed(), 2, 0);
    /* Segments in front of the one that is out of bounds may have been placed. */
    if (w->len <= 4096) GUEST_CHECK(&g, 0, 4096, 1);
    expect_event(&l, "DISCONNECTED");
    if (!w->ours && w->read) { /* a Read that was refused ends in an error there too */
        unsigned status = 0;
        const char *text = ASK("poll 0 s 1 20000");
        if (sscanf(text, "1 1/%u/", &status) != 1 || status == 0)
            FAIL("the peer's refused Read ended with %s", text);
    }
    fx_end(f);
}

static void wrong_accesses(bool out) {
    static const struct wrong all[] = {
        { "our Write with another token", true, false, 1, 0, 100 },
        { "our Write past the end", true, false, 0, 4000, 97 },
        { "our Write before the start", true, false, 0, (size_t)-1, 8 },
        { "our Write without the right", true, false, 2, 0, 100 },
        { "our Write of several segments past the end", true, false, 0, 0, 20000 },
        { "our Read with another token", true, true, 1, 0, 100 },
        { "our Read past the end", true, true, 0, 4000, 97 },
        { "our Read before the start", true, true, 0, (size_t)-1, 8 },
        { "the peer's Write with another token", false, false, 1, 0, 100 },
        { "the peer's Write past the end", false, false, 0, 4000, 97 },
        { "the peer's Write before the start", false, false, 0, (size_t)-1, 8 },
        { "the peer's Write without the right", false, false, 2, 0, 100 },
        { "the peer's Read with another token", false, true, 1, 0, 100 },
        { "the peer's Read past the end", false, true, 0, 4000, 97 },
        { "the peer's Read before the start", false, true, 0, (size_t)-1, 8 },
        { "the peer's Read without the right", false, true, 2, 0, 100 },
    };
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        printf("  %s\n", all[i].what);
        wrong_access(out, &all[i]);
    }
}

/* ---- private data, answers ---- */

static void fill_data(uint8_t *data, size_t len, unsigned salt) {
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)(i * 7 + len + salt);
}

/* Every length from us to the peer in the request, and from it to us in the answer; accepted or
 * rejected in turn. */
static void private_data_out(void) {
    struct fx *f = begin();
    uint8_t data[256], back[600], got[600];
    ASK("listen 7001");
    for (ULONG len = 0; len <= f->info.MaxCallerData; len++) {
        bool reject = len % 2;
        struct link l = { .f = f, .out = true };
        struct link_options o = { .depth = 4 };
        struct sockaddr_storage at = guest_address(7001);
        OVERLAPPED *connect = fx_overlapped(f), *complete = fx_overlapped(f);
        fill_data(data, len, 1);
        fill_data(back, 251, 2);
        ULONG back_len = len * 251 / f->info.MaxCallerData;
        make_side(&l, &o);
        CHECK_HR(CALL(l.s.connector, Connect, UNKNOWN(l.s.qp), ADDR(at), f->local_len, 8, 8,
                      len ? data : NULL, len, connect),
                 ND_PENDING);
        const char *text = ASK("request 0 10000");
        const char *hex = strrchr(text, ' ');
        if (!hex || strcmp(hex + 1, hex_of(data, len)) != 0)
            FAIL("%u bytes arrived as %s", (unsigned)len, text);
        if (reject) {
            ASK("reject 0 %s", hex_of(back, back_len));
        } else {
            guest_qp(&l, &o);
            ASK("accept 0 8 8 %s", hex_of(back, back_len));
        }
        HRESULT hr = finish(&l, l.s.connector, connect);
        CHECK_HR(hr, reject ? ND_CONNECTION_REFUSED : ND_SUCCESS);
        ULONG n = sizeof got;
        CHECK_HR(CALL(l.s.connector, GetPrivateData, got, &n), ND_SUCCESS);
        CHECK_EQ(n, back_len);
        CHECK_BYTES(got, back, back_len);
        if (!reject) {
            CHECK_HR(CALL(l.s.connector, CompleteConnect, complete), ND_PENDING);
            CHECK_HR(finish(&l, l.s.connector, complete), ND_SUCCESS);
            expect_event(&l, "ESTABLISHED");
            link_down(&l);
        } else {
            ASK("destroy 0");
        }
        fx_release(f, l.s.connector);
        fx_release(f, l.s.qp);
        fx_release(f, l.s.receive_cq);
        fx_release(f, l.s.initiator_cq);
    }
    fx_end(f);
}

/* rdma_cm takes a port at random and insists on it, even if an earlier connection from there, to
 * the same port, still waits for stray segments. With hundreds of connections that happens. */
static void dial_from_free_port(struct link *l, const struct link_options *o, uint16_t port,
                                const char *data) {
    for (int tries = 1;; tries++) {
        ASK("dial 0 10.0.2.2 %u", port);
        guest_qp(l, o);
        tell("connect 0 8 8 %s", data);
        const char *text = read_answer();
        if (strncmp(text, "ok", 2) == 0) return;
        if (tries == 10 || strcmp(text, "err connect: Cannot assign requested address (99)") != 0)
            FAIL("the verbs peer says: %s", text);
        ASK("destroy 0");
    }
}

static void private_data_in(void) {
    struct fx *f = begin();
    uint8_t data[256], back[256], got[600];
    uint16_t port;
    IND2Listener *listener = listen_here(f, &port);
    for (ULONG len = 0; len <= 251; len++) {
        bool reject = len % 2;
        struct link l = { .f = f };
        struct link_options o = { .depth = 4 };
        OVERLAPPED *request = fx_overlapped(f), *accept = fx_overlapped(f);
        fill_data(data, len, 3);
        fill_data(back, sizeof back, 4);
        ULONG back_len = len * f->info.MaxCalleeData / 251, n = sizeof got;
        make_side(&l, &o);
        CHECK_HR(CALL(listener, GetConnectionRequest, UNKNOWN(l.s.connector), request), ND_PENDING);
        dial_from_free_port(&l, &o, port, hex_of(data, len));
        CHECK_HR(finish(&l, listener, request), ND_SUCCESS);
        CHECK_HR(CALL(l.s.connector, GetPrivateData, got, &n), ND_SUCCESS);
        CHECK_EQ(n, len);
        CHECK_BYTES(got, data, len);
        if (reject) {
            CHECK_HR(CALL(l.s.connector, Reject, back_len ? back : NULL, back_len), ND_SUCCESS);
        } else {
            CHECK_HR(CALL(l.s.connector, Accept, UNKNOWN(l.s.qp), 8, 8, back_len ? back : NULL,
                          back_len, accept),
                     ND_PENDING);
            CHECK_HR(finish(&l, l.s.connector, accept), ND_SUCCESS);
        }
        const char *text = ASK("event 0 10000");
        const char *hex = strrchr(text, ' '), *name = reject ? "REJECTED" : "ESTABLISHED";
        if (strncmp(text, name, strlen(name)) != 0 || strcmp(hex + 1, hex_of(back, back_len)) != 0)
            FAIL("%s with %u bytes arrived as %s", name, (unsigned)back_len, text);
        if (!reject)
            link_down(&l);
        else
            ASK("destroy 0");
        fx_release(f, l.s.connector);
        fx_release(f, l.s.qp);
        fx_release(f, l.s.receive_cq);
        fx_release(f, l.s.initiator_cq);
    }
    fx_end(f);
}

static void nobody_listens_there(void) {
    struct fx *f = begin();
    struct link l = { .f = f, .out = true };
    struct link_options o = { .depth = 4 };
    struct sockaddr_storage at = guest_address(7008);
    OVERLAPPED *connect = fx_overlapped(f);
    make_side(&l, &o);
    CHECK_HR(CALL(l.s.connector, Connect, UNKNOWN(l.s.qp), ADDR(at), f->local_len, 8, 8, NULL, 0,
                  connect),
             ND_PENDING);
    CHECK_HR(finish(&l, l.s.connector, connect), ND_CONNECTION_REFUSED);
    fx_end(f);
}

static void nobody_listens_here(void) {
    struct fx *f = begin();
    struct link l = { .f = f };
    struct link_options o = { .depth = 4 };
    uint16_t port;
    IND2Listener *listener = listen_here(f, &port);
    fx_release(f, listener);
    ASK("dial 0 10.0.2.2 %u", port);
    guest_qp(&l, &o);
    tell("connect 0 8 8 -");
    const char *text = read_answer(); /* the loopback of the host refuses at once */
    if (strcmp(text, "err connect: Connection refused (111)") != 0) {
        CHECK_STR(text, "ok");
        expect_event(&l, "REJECTED");
    }
    fx_end(f);
}

/* Read limits that differ come out as the smaller one, on both sides. */
static void read_limits(bool out) {
    struct fx *f;
    struct link l;
    ULONG in = 0, outbound = 0;
    struct link_options o = { .reads = 5 };
    begin_link(&f, &l, out, &o);
    CHECK_HR(CALL(l.s.connector, GetReadLimits, &in, &outbound), ND_SUCCESS);
    CHECK_EQ(in, 5);
    CHECK_EQ(outbound, 5);
    link_down(&l);
    fx_end(f);
}

/* ---- the end ---- */

/* Posting on after the peer has left is no error, but comes to nothing. */
static void post_to_the_dead(struct link *l) {
    CHECK_HR(fx_send(&l->s, CTX(9), NULL, 0, 0, 0), ND_SUCCESS);
    EXPECT_ERROR(l->f, &l->s, Send, ND_CANCELED, CTX(9));
}

static void peer_closes(bool out) {
    struct fx *f;
    struct link l;
    begin_link(&f, &l, out, NULL);
    struct fx_memory *m = fx_memory(f, 0, 4096, FX_MR_ALL);
    for (int i = 0; i < 8; i++)
        RECEIVE(&l.s, CTX(i), m, 0, 64);
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(l.s.connector, NotifyDisconnect, ov), ND_PENDING);
    ASK("disconnect 0");
    CHECK_HR(finish(&l, l.s.connector, ov), ND_SUCCESS);
    for (int i = 0; i < 8; i++)
        EXPECT_ERROR(f, &l.s, Receive, ND_CANCELED, CTX(i));
    post_to_the_dead(&l);
    fx_end(f);
}

static void both_close(bool out) {
    struct fx *f;
    struct link l;
    for (int i = 0; i < 10; i++) {
        begin_link(&f, &l, out, NULL);
        tell("disconnect 0");
        OVERLAPPED *ov = fx_overlapped(f);
        HRESULT hr = CALL(l.s.connector, Disconnect, ov);
        if (hr != ND_CONNECTION_INVALID) /* the peer was faster */
            CHECK_HR(fx_finish(f, OVERLAPPED_OF(l.s.connector), ov, hr), ND_SUCCESS);
        read_answer(); /* either may have been first */
        fx_end(f);
    }
}

/* What was sent before we close arrives. */
static void close_behind_data(bool out) {
    enum { SIZE = 200000, COUNT = 8 };
    struct fx *f;
    struct link l;
    begin_link(&f, &l, out, NULL);
    struct fx_memory *m = fx_memory(f, 0, SIZE, FX_MR_ALL);
    struct guest_memory g = guest_memory(0, SIZE * COUNT, GUEST_ALL);
    fx_fill(m->bytes, SIZE, fx_seed(), 1, 0);
    ASK("recvs 0 %d 0 0 %d", COUNT, SIZE);
    for (int i = 0; i < COUNT; i++)
        SEND(&l.s, CTX(i), m, 0, SIZE, 0);
    for (int i = 0; i < COUNT; i++)
        EXPECT_OK(f, &l.s, Send, CTX(i), SIZE);
    fx_disconnect(f, &l.s);
    CHECK_EQ(atoi(ASK("poll 0 r %d 20000", COUNT)), COUNT);
    for (int i = 0; i < COUNT; i++)
        GUEST_CHECK(&g, (size_t)i * SIZE, SIZE, 1);
    expect_event(&l, "DISCONNECTED");
    fx_end(f);
}

static void peer_dies(bool out) {
    struct fx *f;
    struct link l;
    begin_link(&f, &l, out, NULL);
    struct fx_memory *m = fx_memory(f, 0, MIB(4), FX_MR_ALL | ND_MR_FLAG_RDMA_READ_SINK);
    struct guest_memory g = guest_memory(0, MIB(4), GUEST_ALL);
    for (int i = 0; i < 4; i++)
        RECEIVE(&l.s, CTX(i), m, 0, 64);
    /* In the middle of much data. */
    ND2_SGE sge = fx_sge(m, 0, MIB(4));
    for (int i = 0; i < 8; i++)
        CHECK_HR(CALL(l.s.qp, Read, CTX(10 + i), &sge, 1, g.addr, g.rkey, 0), ND_SUCCESS);
    tell("die");
    expect_end(&l);
    int good = 0;
    for (int i = 0; i < 8; i++) {
        ND2_RESULT r;
        NEXT(f, l.s.initiator_cq, &r);
        CHECK_PTR(r.RequestContext, CTX(10 + i));
        if (r.Status == ND_SUCCESS)
            good++;
        else if (r.Status != ND_CANCELED && r.Status != ND_IO_TIMEOUT)
            FAIL("a Read under way ended with %s", fx_status_text(r.Status));
        if (r.Status == ND_SUCCESS) CHECK_EQ(good, i + 1);
    }
    for (int i = 0; i < 4; i++)
        EXPECT_ERROR(f, &l.s, Receive, ND_CANCELED, CTX(i));
    post_to_the_dead(&l);
    fx_end(f);
}

/* RTR and data behind the reply at once: siw may not look before something else comes. */
static void early_data_out(void) {
    struct fx *f = begin();
    ASK("listen 7001");
    struct guest_memory g = guest_memory(0, 65536, GUEST_ALL);
    struct fx_memory *m = fx_memory(f, 0, 65536, FX_MR_ALL);
    fx_fill(m->bytes, 1000, fx_seed(), 1, 0);
    for (int i = 0; i < 30; i++) {
        struct link l = { .f = f, .out = true };
        struct link_options o = { .depth = 8 };
        struct sockaddr_storage at = guest_address(7001);
        OVERLAPPED *connect = fx_overlapped(f), *complete = fx_overlapped(f);
        make_side(&l, &o);
        CHECK_HR(CALL(l.s.connector, Connect, UNKNOWN(l.s.qp), ADDR(at), f->local_len, 8, 8, NULL,
                      0, connect),
                 ND_PENDING);
        ASK("request 0 10000");
        guest_qp(&l, &o);
        ASK("recv 0 1 0 0 1000");
        tell("accept 0 8 8 -");
        CHECK_HR(finish(&l, l.s.connector, connect), ND_SUCCESS);
        CHECK_HR(CALL(l.s.connector, CompleteConnect, complete), ND_PENDING);
        CHECK_HR(finish(&l, l.s.connector, complete), ND_SUCCESS);
        SEND(&l.s, CTX(1), m, 0, 1000, 0);
        CHECK_STR(read_answer(), "ok");
        expect_event(&l, "ESTABLISHED");
        EXPECT_OK(f, &l.s, Send, CTX(1), 1000);
        guest_polled(&l, 'r', "1 1/0/128/1000");
        GUEST_CHECK(&g, 0, 1000, 1);
        link_down(&l);
        fx_release(f, l.s.connector);
        fx_release(f, l.s.qp);
        fx_release(f, l.s.receive_cq);
        fx_release(f, l.s.initiator_cq);
    }
    fx_end(f);
}

/* A process of ours that vanishes: the peer gets a disconnect and its requests back. */
static void we_die_out(void) {
    peer_call();
    ASK("listen 7001");
    const char *const args[] = { "--victim", NULL };
    struct host_process *victim = host_process_start(args);
    CHECK(victim != NULL);
    struct link l = { .slot = 0 };
    struct link_options o = { 0 };
    int code;
    ASK("request 0 20000");
    guest_qp(&l, &o);
    guest_memory(0, 65536, GUEST_ALL);
    ASK("recv 0 1 0 0 64");
    ASK("recv 0 2 0 0 64");
    ASK("accept 0 8 8 -");
    expect_event(&l, "ESTABLISHED");
    guest_polled(&l, 'r', "1 1/0/128/0");
    host_process_kill(victim);
    CHECK(host_process_wait(victim, fx_deadline(), &code));
    host_process_free(victim);
    expect_event(&l, "DISCONNECTED");
    guest_polled(&l, 'r', "1 2/5/-1/0"); /* IBV_WC_WR_FLUSH_ERR */
}

/* Likewise as the passive side. The port is one that was free; the peer dials until the process is
 * there. */
static void we_die_in(void) {
    peer_call();
    struct fx *f = fx_begin();
    uint16_t port;
    listen_here(f, &port);
    fx_end(f);
    char text[8];
    snprintf(text, sizeof text, "%u", port);
    const char *const args[] = { "--victim-at", text, NULL };
    struct host_process *victim = host_process_start(args);
    CHECK(victim != NULL);
    struct link l = { .slot = 0 };
    struct link_options o = { 0 };
    uint64_t deadline = fx_deadline();
    int code;
    for (bool up = false; !up;) {
        ASK("dial 0 10.0.2.2 %u", port);
        guest_qp(&l, &o);
        tell("connect 0 8 8 -");
        bool refused = strcmp(read_answer(), "ok") != 0;
        up = !refused && strncmp(ASK("event 0 10000"), "ESTABLISHED", 11) == 0;
        if (!up) ASK("destroy 0");
        if (host_now_ms() > deadline) FAIL("the process does not listen");
    }
    ASK("recv 0 1");
    ASK("recv 0 2");
    ASK("post 0 send 3 s 0 0");
    guest_polled(&l, 'r', "1 1/0/128/0");
    host_process_kill(victim);
    CHECK(host_process_wait(victim, fx_deadline(), &code));
    host_process_free(victim);
    expect_event(&l, "DISCONNECTED");
    guest_polled(&l, 'r', "1 2/5/-1/0"); /* IBV_WC_WR_FLUSH_ERR */
}

static int be_victim_at(uint16_t port) {
    struct fx *f = fx_begin();
    struct link l = { .f = f };
    struct link_options o = { 0 };
    struct sockaddr_storage at = fx_with_port(&f->local, port);
    OVERLAPPED *request = fx_overlapped(f), *accept = fx_overlapped(f);
    IND2Listener *listener = fx_listener(f, 0);
    make_side(&l, &o);
    CHECK_HR(CALL(listener, Bind, ADDR(at), f->local_len), ND_SUCCESS);
    CHECK_HR(CALL(listener, Listen, 0), ND_SUCCESS);
    RECEIVE(&l.s, CTX(1), NULL, 0, 0);
    CALL(listener, GetConnectionRequest, UNKNOWN(l.s.connector), request);
    CHECK_HR(finish(&l, listener, request), ND_SUCCESS);
    CALL(l.s.connector, Accept, UNKNOWN(l.s.qp), 8, 8, NULL, 0, accept);
    CHECK_HR(finish(&l, l.s.connector, accept), ND_SUCCESS);
    EXPECT_OK(f, &l.s, Receive, CTX(1), 0);
    SEND(&l.s, CTX(2), NULL, 0, 0, 0);
    for (;;)
        pause();
}

static int be_victim(void) {
    struct fx *f = fx_begin();
    struct link l = { .f = f, .out = true };
    struct link_options o = { 0 };
    struct sockaddr_storage at = guest_address(7001);
    OVERLAPPED *connect = fx_overlapped(f), *complete = fx_overlapped(f);
    make_side(&l, &o);
    CALL(l.s.connector, Connect, UNKNOWN(l.s.qp), ADDR(at), f->local_len, 8, 8, NULL, 0, connect);
    if (finish(&l, l.s.connector, connect) != ND_SUCCESS) return 1;
    CALL(l.s.connector, CompleteConnect, complete);
    if (finish(&l, l.s.connector, complete) != ND_SUCCESS) return 1;
    CALL(l.s.qp, Send, CTX(1), NULL, 0, 0);
    for (;;)
        pause();
}

/* ---- what is agreed at the start ---- */

static void exchange(struct link *l, struct fx_memory *m, const struct guest_memory *g) {
    one_sided(l, m, g, 70001, 3, 5, 10);
    one_sided(l, m, g, 0, 0, 0, 20);
    fx_fill(m->bytes, 5000, fx_seed(), 30, 0);
    ASK("recv %u 1 %u 0 5000", l->slot, g->slot);
    SEND(&l->s, CTX(1), m, 0, 5000, 0);
    EXPECT_OK(l->f, &l->s, Send, CTX(1), 5000);
    guest_polled(l, 'r', "1 1/0/128/5000");
    GUEST_CHECK(g, 0, 5000, 30);
}

static void agreements(void) {
    static const struct {
        const char *crc, *rev;
    } ours[] = { { "on", "2" }, { "off", "2" }, { "on", "1" }, { "off", "1" } };
    for (size_t i = 0; i < COUNT_OF(ours); i++) {
        host_setenv("SOFTND_CRC", ours[i].crc);
        host_setenv("SOFTND_MPA_REV", ours[i].rev);
        for (int crc = 0; crc < 2; crc++) {
            struct fx *f;
            struct link l;
            printf("  out: CRC %s, revision %s; siw CRC %d\n", ours[i].crc, ours[i].rev, crc);
            peer_call();
            ASK("set mpa_crc_required %d", crc);
            begin_link(&f, &l, true, NULL);
            struct fx_memory *m = fx_memory(f, 0, 131072, FX_MR_ALL | ND_MR_FLAG_RDMA_READ_SINK);
            struct guest_memory g = guest_memory(0, 131072, GUEST_ALL);
            exchange(&l, m, &g);
            link_down(&l);
            fx_end(f);
        }
    }
    host_setenv("SOFTND_MPA_REV", "2");
    for (int i = 0; i < 2 * 2 * 2 * 4; i++) {
        /* rtr_type as it lies in memory: Write 0x80, Read 0x40 in the first octet. */
        static const unsigned rtr[4] = { 0, 0x80, 0x40, 0xC0 };
        int crc = i & 1, rev = (i >> 2 & 1) + 1;
        unsigned kinds = rtr[i >> 3];
        struct fx *f;
        struct link l;
        struct link_options o = { .no_kick = rev == 2 && kinds != 0 };
        if (rev == 1 && kinds != 0) continue; /* peer-to-peer is of revision 2 */
        host_setenv("SOFTND_CRC", i & 2 ? "off" : "on");
        printf("  in: CRC %s; siw CRC %d, revision %d, %s, RTR 0x%02X\n", i & 2 ? "off" : "on", crc,
               rev, kinds ? "peer-to-peer" : "client-server", kinds);
        peer_call();
        ASK("set mpa_crc_required %d", crc);
        ASK("set mpa_version %d", rev);
        ASK("set peer_to_peer %d", kinds != 0);
        if (kinds) ASK("set rtr_type %u", kinds);
        begin_link(&f, &l, false, &o);
        struct fx_memory *m = fx_memory(f, 0, 131072, FX_MR_ALL | ND_MR_FLAG_RDMA_READ_SINK);
        struct guest_memory g = guest_memory(0, 131072, GUEST_ALL);
        exchange(&l, m, &g); /* with peer-to-peer it is we who begin */
        link_down(&l);
        fx_end(f);
    }
    host_setenv("SOFTND_CRC", "on");
}

static void agreements_all_kinds_work(void) {
    agreements();
    ASK("set mpa_crc_required 0");
    ASK("set mpa_version 2");
    ASK("set peer_to_peer 0");
}

/* Without peer-to-peer a responder may not begin: what it posts leaves behind the first message of
 * the initiator. */
static void server_first_waits_for_the_client(void) {
    struct fx *f;
    struct link l;
    struct link_options o = { .no_kick = true };
    begin_link(&f, &l, false, &o);
    struct fx_memory *m = fx_memory(f, 0, 4096, FX_MR_ALL);
    struct guest_memory g = guest_memory(0, 4096, GUEST_ALL);
    fx_fill(m->bytes, 100, fx_seed(), 1, 0);
    ASK("recv 0 1 0 0 100");
    SEND(&l.s, CTX(1), m, 0, 100, 0);
    CHECK_EQ(atoi(ASK("poll 0 r 1 200")), 0);
    EXPECT_EMPTY(l.s.initiator_cq);
    kick(&l);
    guest_polled(&l, 'r', "1 1/0/128/100");
    EXPECT_OK(f, &l.s, Send, CTX(1), 100);
    GUEST_CHECK(&g, 0, 100, 1);
    link_down(&l);
    fx_end(f);
}

/* ---- the list ---- */

#define BOTH(fn)                                                                                   \
    static void fn##_out(void) {                                                                   \
        fn(true);                                                                                  \
    }                                                                                              \
    static void fn##_in(void) {                                                                    \
        fn(false);                                                                                 \
    }
BOTH(send_sizes)
BOTH(one_sided_sizes)
BOTH(largest)
BOTH(many_sges)
BOTH(deep_queues)
BOTH(many_queue_pairs)
BOTH(solicited)
BOTH(invalidate)
BOTH(invalidate_wrong_token)
BOTH(inline_and_fence)
BOTH(late_receive)
BOTH(no_receive_ends_in_time_out)
BOTH(message_too_long_here)
BOTH(message_too_long_there)
BOTH(no_receive_there)
BOTH(wrong_accesses)
BOTH(read_limits)
BOTH(peer_closes)
BOTH(both_close)
BOTH(close_behind_data)
BOTH(peer_dies)
#define TEST_BOTH(fn) TEST(fn##_out), TEST(fn##_in)

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        TEST_BOTH(send_sizes),
        TEST_BOTH(one_sided_sizes),
        TEST_BOTH(largest),
        TEST_BOTH(many_sges),
        TEST_BOTH(deep_queues),
        TEST_BOTH(many_queue_pairs),
        TEST_BOTH(solicited),
        TEST_BOTH(invalidate),
        TEST_BOTH(invalidate_wrong_token),
        TEST_BOTH(inline_and_fence),
        TEST_BOTH(late_receive),
        TEST_BOTH(no_receive_ends_in_time_out),
        TEST_BOTH(message_too_long_here),
        TEST_BOTH(message_too_long_there),
        TEST_BOTH(no_receive_there),
        TEST_BOTH(wrong_accesses),
        TEST_BOTH(read_limits),
        TEST(private_data_out),
        TEST(private_data_in),
        TEST(nobody_listens_there),
        TEST(nobody_listens_here),
        TEST_BOTH(peer_closes),
        TEST_BOTH(both_close),
        TEST_BOTH(close_behind_data),
        TEST_BOTH(peer_dies),
        TEST(early_data_out),
        TEST(we_die_out),
        TEST(we_die_in),
        TEST(agreements_all_kinds_work),
        TEST(server_first_waits_for_the_client),
    };
    fx_escape = conform_escape;
    if (argc == 2 && strcmp(argv[1], "--victim") == 0) return be_victim();
    if (argc == 3 && strcmp(argv[1], "--victim-at") == 0)
        return setjmp(test_escape) ? 1 : be_victim_at((uint16_t)atoi(argv[2]));
    return test_main(argc, argv, cases, COUNT_OF(cases));
}
