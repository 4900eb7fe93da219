/* SPDX-License-Identifier: MIT
 * perftest_peer.c - SoftND as the other end of the perftest programs run with -R:
 *
 *   perftest_peer server TEST SIZE              prints "port N", serves one client
 *   perftest_peer client TEST SIZE COUNT PORT   connects to PORT of this host, like the client
 *
 * TEST is send_lat, send_bw, write_lat, write_bw, read_lat or read_bw; SIZE bytes a message. What
 * perftest says about its run goes over a TCP connection to the same port number as the RDMA one;
 * there the client writes first and the server answers with as much. Messages: its version (16
 * bytes), two integers, an MTU ("N" and a zero), then some number of keys, and for the bandwidth of
 * Writes and Reads five numbers of 8 bytes. Keys are text: lid:reads:qpn:psn:rkey:address:, 16
 * octets of GID or not, srqn.
 */
#include "conform/fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { VERSION_BYTES = 16, KEY = 59, KEY_GID = 108, RECEIVES = 512, CALM_MS = 30000 };

struct peer {
    struct fx *f;
    struct fx_side s;
    struct fx_memory
        *m; /* RECEIVES messages to receive, then one to be written or read, then one */
    const char *test;
    size_t size;
    int tcp;
    uint64_t received, sent, started;
    unsigned keys;
    UINT64 remote_addr;
    UINT32 remote_key;
    bool over;
};

static bool is(const struct peer *p, const char *test) {
    return strcmp(p->test, test) == 0;
}
static size_t target_at(const struct peer *p) {
    return RECEIVES * p->size;
}
static size_t source_at(const struct peer *p) {
    return (RECEIVES + 1) * p->size;
}

static void make_side(struct peer *p) {
    struct fx *f = p->f;
    p->s.context = &p->s;
    p->s.receive_cq = fx_cq(f, 0, RECEIVES);
    p->s.initiator_cq = fx_cq(f, 0, RECEIVES);
    p->s.qp = fx_qp(f, 0, p->s.receive_cq, p->s.initiator_cq, p->s.context, RECEIVES, 1, 0);
    p->s.connector = fx_connector(f, 0);
    p->m = fx_memory(f, 0, (RECEIVES + 2) * p->size, FX_MR_ALL | ND_MR_FLAG_RDMA_READ_SINK);
    for (size_t i = 0; i < RECEIVES; i++)
        RECEIVE(&p->s, CTX(i), p->m, i * p->size, p->size);
}

/* ---- keys ---- */

static bool is_key(const char *msg, size_t len) {
    return (len == KEY || len == KEY_GID) && msg[4] == ':' && msg[9] == ':' && msg[16] == ':';
}

/* Our key in the form of the peer's. */
static void make_key(const struct peer *p, char *msg, size_t len) {
    char head[64];
    int n = snprintf(head, sizeof head, "%04x:%04x:%06x:%06x:%08x:%016llx:", 0, 16, 1, 1,
                     p->m ? p->m->remote : 0,
                     p->m ? (unsigned long long)fx_remote(p->m, target_at(p)) : 0);
    memset(msg, 0, len);
    memcpy(msg, head, (size_t)n);
    if (len == KEY)
        strcpy(msg + n, "00000000");
    else
        strcpy(msg + n, "00:00:00:00:00:00:00:00:00:00:ff:ff:7f:00:00:01:00000000:");
}

static void take_key(struct peer *p, const char *msg) {
    unsigned key;
    unsigned long long addr;
    if (sscanf(msg, "%*x:%*x:%*x:%*x:%x:%llx:", &key, &addr) != 2) FAIL("bad key %s", msg);
    p->remote_key = key;
    p->remote_addr = addr;
    p->keys++;
}

/* ---- TCP ---- */

static size_t read_some(int fd, char *buf, size_t room) {
    ssize_t n = read(fd, buf, room);
    return n > 0 ? (size_t)n : 0;
}

static void write_all(int fd, const char *buf, size_t n) {
    if (write(fd, buf, n) != (ssize_t)n) FAIL("perftest hung up");
}

static bool readable(int fd, int ms) {
    struct pollfd pfd = { .fd = fd, .events = POLLIN };
    return poll(&pfd, 1, ms) == 1;
}

/* ---- the test's own traffic ---- */

static void send_one(struct peer *p) {
    p->sent++;
    SEND(&p->s, CTX(1), p->m, source_at(p), p->size, 0);
}

/* The last byte of a Write's target is the number of the message. */
static void write_one(struct peer *p) {
    ND2_SGE sge = fx_sge(p->m, source_at(p), p->size);
    p->sent++;
    p->m->bytes[source_at(p) + p->size - 1] = (uint8_t)p->sent;
    CHECK_HR(CALL(p->s.qp, Write, CTX(2), &sge, 1, p->remote_addr, p->remote_key, 0), ND_SUCCESS);
}

/* What arrived since; answers in the latency tests. False: nothing. */
static bool serve_traffic(struct peer *p) {
    ND2_RESULT r;
    bool did = false;
    while (CALL(p->s.receive_cq, GetResults, &r, 1) == 1) {
        size_t i = (size_t)(uintptr_t)r.RequestContext;
        did = true;
        if (r.Status == ND_CANCELED) {
            p->over = true;
            continue;
        }
        CHECK_HR(r.Status, ND_SUCCESS);
        CHECK_EQ(r.BytesTransferred, p->size);
        p->received++;
        RECEIVE(&p->s, CTX(i), p->m, i * p->size, p->size);
        if (is(p, "send_lat")) send_one(p);
    }
    while (CALL(p->s.initiator_cq, GetResults, &r, 1) == 1) {
        did = true;
        if (r.Status != ND_SUCCESS && r.Status != ND_CANCELED)
            FAIL("a request ended with %s", fx_status_text(r.Status));
    }
    if (is(p, "write_lat") && p->sent != 0) {
        volatile uint8_t *last = &p->m->bytes[target_at(p) + p->size - 1];
        if (*last == (uint8_t)p->sent) {
            did = true;
            p->received++;
            if (p->received < p->started) write_one(p);
        }
    }
    return did;
}

/* ---- server ---- */

static void accept_one(struct peer *p, IND2Listener *listener, OVERLAPPED *request) {
    OVERLAPPED *ov = fx_overlapped(p->f);
    CHECK_HR(fx_finish(p->f, OVERLAPPED_OF(listener), request, ND_PENDING), ND_SUCCESS);
    CHECK_HR(CALL(p->s.connector, Accept, UNKNOWN(p->s.qp), 16, 16, NULL, 0, ov), ND_PENDING);
    CHECK_HR(fx_finish(p->f, OVERLAPPED_OF(p->s.connector), ov, ND_PENDING), ND_SUCCESS);
}

static void run_server(struct peer *p, uint64_t count) {
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    int on = 1, s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    CHECK(bind(s, (struct sockaddr *)&at, len) == 0 && listen(s, 1) == 0);
    CHECK(getsockname(s, (struct sockaddr *)&at, &len) == 0);
    printf("port %u\n", ntohs(at.sin_port));
    if (!readable(s, CALM_MS)) FAIL("no client comes");
    p->tcp = accept(s, NULL, NULL);
    close(s);
    make_side(p);
    IND2Listener *listener = fx_listener(p->f, 0);
    OVERLAPPED *request = fx_overlapped(p->f);
    struct sockaddr_storage here = fx_with_port(&p->f->local, ntohs(at.sin_port));
    CHECK_HR(CALL(listener, Bind, ADDR(here), p->f->local_len), ND_SUCCESS);
    CHECK_HR(CALL(listener, Listen, 0), ND_SUCCESS);
    CHECK_HR(CALL(listener, GetConnectionRequest, UNKNOWN(p->s.connector), request), ND_PENDING);
    p->started = count;
    uint64_t calm_until = host_now_ms() + CALM_MS;
    while (host_now_ms() < calm_until) {
        char msg[256];
        bool did = p->keys != 0 && serve_traffic(p);
        if (readable(p->tcp, did ? 0 : 1)) {
            size_t n = read_some(p->tcp, msg, sizeof msg);
            if (n == 0 || (n == 5 && memcmp(msg, "done", 5) == 0)) return;
            bool key = is_key(msg, n);
            if (key) {
                take_key(p, msg);
                make_key(p, msg, n);
            }
            if (n > KEY && n != KEY_GID && !key) FAIL("%zu bytes that are no message", n);
            write_all(p->tcp, msg, n);
            if (p->keys == 1 && key) accept_one(p, listener, request);
            /* Keys before the run: two around the connecting, four more. */
            if (is(p, "write_lat") && key && p->keys == 6) write_one(p);
            did = true;
        }
        if (did) calm_until = host_now_ms() + CALM_MS;
    }
    FAIL("nothing happens any more");
}

/* ---- client ---- */

static void exchange(struct peer *p, const void *msg, size_t n) {
    char back[256];
    size_t have = 0;
    write_all(p->tcp, msg, n);
    while (have < n) {
        if (!readable(p->tcp, CALM_MS)) FAIL("perftest does not answer");
        size_t m = read_some(p->tcp, back + have, n - have);
        if (m == 0) FAIL("perftest hung up");
        have += m;
    }
    if (is_key(back, n)) take_key(p, back);
}

static void exchange_key(struct peer *p) {
    char msg[KEY_GID];
    make_key(p, msg, sizeof msg);
    exchange(p, msg, sizeof msg);
}

static void connect_out(struct peer *p, uint16_t port) {
    struct sockaddr_storage to = fx_with_port(&p->f->local, port);
    HRESULT hr = ND_CONNECTION_REFUSED;
    /* perftest listens a moment after it has said so. */
    for (int i = 0; i < 200 && hr == ND_CONNECTION_REFUSED; i++) {
        OVERLAPPED *ov = fx_overlapped(p->f);
        if (i) usleep(20000);
        hr = CALL(p->s.connector, Connect, UNKNOWN(p->s.qp), ADDR(to), p->f->local_len, 16, 16,
                  NULL, 0, ov);
        hr = fx_finish(p->f, OVERLAPPED_OF(p->s.connector), ov, hr);
    }
    CHECK_HR(hr, ND_SUCCESS);
    OVERLAPPED *ov = fx_overlapped(p->f);
    CHECK_HR(CALL(p->s.connector, CompleteConnect, ov), ND_PENDING);
    CHECK_HR(fx_finish(p->f, OVERLAPPED_OF(p->s.connector), ov, ND_PENDING), ND_SUCCESS);
}

static void run_traffic_out(struct peer *p, uint64_t count) {
    ND2_SGE sge = fx_sge(p->m, source_at(p), p->size);
    if (is(p, "write_lat")) {
        /* The server writes first. */
        uint64_t deadline = fx_deadline();
        volatile uint8_t *last = &p->m->bytes[target_at(p) + p->size - 1];
        for (uint64_t i = 1; i <= count; i++) {
            while (*last != (uint8_t)i)
                if (host_now_ms() > deadline)
                    FAIL("Write %llu does not come", (unsigned long long)i);
            write_one(p);
            EXPECT_OK(p->f, &p->s, Write, CTX(2), p->size);
        }
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (is(p, "send_bw") || is(p, "send_lat")) {
            SEND(&p->s, CTX(1), p->m, source_at(p), p->size, 0);
            EXPECT_OK(p->f, &p->s, Send, CTX(1), p->size);
            if (is(p, "send_lat")) {
                EXPECT_OK(p->f, &p->s, Receive, CTX(i % RECEIVES), p->size);
                RECEIVE(&p->s, CTX(i % RECEIVES), p->m, i % RECEIVES * p->size, p->size);
            }
        } else if (is(p, "write_bw")) {
            CHECK_HR(CALL(p->s.qp, Write, CTX(2), &sge, 1, p->remote_addr, p->remote_key, 0),
                     ND_SUCCESS);
            EXPECT_OK(p->f, &p->s, Write, CTX(2), p->size);
        } else {
            CHECK_HR(CALL(p->s.qp, Read, CTX(3), &sge, 1, p->remote_addr, p->remote_key, 0),
                     ND_SUCCESS);
            EXPECT_OK(p->f, &p->s, Read, CTX(3), p->size);
        }
    }
}

static void run_client(struct peer *p, uint64_t count, uint16_t port) {
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    static const char version[VERSION_BYTES] = "6.10";
    static const uint32_t zero;
    bool send = strncmp(p->test, "send", 4) == 0, bw = strstr(p->test, "bw") != NULL;
    p->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(p->tcp, (struct sockaddr *)&to, sizeof to) == 0);
    make_side(p);
    exchange(p, version, sizeof version);
    exchange(p, &zero, 4); /* buffer size, cache line: the larger one counts */
    exchange(p, &zero, 4);
    exchange(p, "3", 2); /* MTU 1024 */
    exchange_key(p);
    connect_out(p, port);
    exchange_key(p);
    unsigned keys = !send && bw ? 3 : 4;
    for (unsigned i = 0; i < keys; i++)
        exchange_key(p);
    run_traffic_out(p, count);
    if (!send && bw) {
        double number[5] = { 0 };
        exchange_key(p); /* done */
        for (int i = 0; i < 5; i++)
            exchange(p, &number[i], 8);
    }
    exchange_key(p);
    write_all(p->tcp, "done", 5);
}

int main(int argc, char **argv) {
    struct peer p = { 0 };
    setvbuf(stdout, NULL, _IOLBF, 0);
    fx_escape = conform_escape;
    if (argc < 5 || (strcmp(argv[1], "client") == 0 && argc < 6)) {
        fprintf(stderr,
                "usage: perftest_peer server TEST SIZE COUNT | client TEST SIZE COUNT PORT\n");
        return 2;
    }
    if (setjmp(test_escape)) return 1;
    p.test = argv[2];
    p.size = (size_t)atoi(argv[3]);
    p.f = fx_begin();
    if (strcmp(argv[1], "server") == 0)
        run_server(&p, strtoull(argv[4], NULL, 0));
    else
        run_client(&p, strtoull(argv[4], NULL, 0), (uint16_t)atoi(argv[5]));
    printf("done: %llu received, %llu sent\n", (unsigned long long)p.received,
           (unsigned long long)p.sent);
    close(p.tcp);
    fx_end(p.f);
    return 0;
}
