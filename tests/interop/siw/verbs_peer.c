/* SPDX-License-Identifier: MIT
 * verbs_peer.c - the other end of the interoperation tests: a program that plays verbs (libibverbs
 * and librdmacm) on command, in a machine with siw. The test program decides everything.
 *
 *   verbs_peer PORT     each TCP connection to PORT is served by a process of its own
 *
 * One line is one command, and has one line for an answer: "ok ..." or "err REASON". Numbers are
 * decimal or 0x; N is a connection slot, I a memory slot, DATA hex digits or "-".
 *   mr I BYTES RIGHTS               memory; rights are IBV_ACCESS_*: ok ADDR RKEY LKEY
 *   fill I OFF LEN SEED MSG FROM    the pattern of tests/conform/fixture.c; check I ...: ok
 *   listen PORT                     ok
 *   request N MS                    the next connection request: ok RESP INIT DATA
 *   dial N ADDR PORT                address and route: ok
 *   qp N SENDS RECVS SSGE RSGE      ok
 *   connect N RESP INIT DATA        starts; accept N RESP INIT DATA; reject N DATA: ok
 *   event N MS                      the next event: ok NAME STATUS RESP INIT DATA
 *   recv N WR I OFF LEN [I OFF LEN ...]                     one receive: ok
 *   post N OP WR FLAGS RADDR RKEY [I OFF LEN ...]           OP send write read inv; for inv RKEY is
 *                                   what to invalidate. FLAGS: of s(ignalled) e(solicited) f(ence)
 *                                   l(inline) or "-": ok
 *   recvs N COUNT I OFF LEN         COUNT receives, LEN apart, numbered from 0
 *   sends N OP COUNT FLAGS RADDR RKEY I OFF LEN             likewise; each signalled
 *   poll N s|r COUNT MS             ok GOT [WR/STATUS/OPCODE/BYTES ...] (at most 64 are listed),
 *                                   all of one queue pair's completions of that side
 *   set NAME VALUE                  a parameter of siw: ok
 *   disconnect N, destroy N, state N, die
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

enum { SLOTS = 128, MEMORIES = 16, SGES = 16, WORDS = 64, LINE = 4096 };

struct conn {
    struct rdma_cm_id *id;
    struct rdma_event_channel *channel;
    struct ibv_cq *send_cq, *recv_cq;
    bool has_qp;
};
struct memory {
    uint8_t *bytes;
    size_t len;
    struct ibv_mr *mr;
};

static struct conn conns[SLOTS];
static struct conn listener;
static struct memory memories[MEMORIES];
static struct ibv_pd *pd;
static FILE *out;
static char *words[WORDS];
static int word_count;

static void answer(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
    fputc('\n', out);
    fflush(out);
}

static void oops(const char *what) {
    answer("err %s: %s (%d)", what, strerror(errno), errno);
}

static uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static uint64_t number(int i) {
    return i < word_count ? strtoull(words[i], NULL, 0) : 0;
}

static struct conn *conn_at(int i) {
    uint64_t n = number(i);
    return n < SLOTS ? &conns[n] : &conns[0];
}

static struct memory *memory_at(int i) {
    uint64_t n = number(i);
    return n < MEMORIES ? &memories[n] : &memories[0];
}

/* ---- data ---- */

static size_t parse_data(int i, uint8_t *data, size_t room) {
    size_t n = 0;
    const char *hex = i < word_count ? words[i] : "-";
    if (*hex == '-') return 0;
    for (; hex[0] && hex[1] && n < room; hex += 2) {
        unsigned byte;
        if (sscanf(hex, "%2x", &byte) != 1) break;
        data[n++] = (uint8_t)byte;
    }
    return n;
}

static const char *data_text(const void *data, size_t len) {
    static char text[2 * 256 + 2];
    const uint8_t *p = data;
    if (len == 0 || !p) return "-";
    for (size_t i = 0; i < len && i < 256; i++)
        sprintf(text + 2 * i, "%02x", p[i]);
    return text;
}

static uint64_t mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Writes (check false) or compares; the index of the first wrong byte, or len. */
static size_t pattern(uint8_t *bytes, size_t len, uint64_t seed, uint64_t msg, size_t from,
                      bool check) {
    uint64_t key = mix(seed * 0x2545F4914F6CDD1Du + mix(msg));
    for (size_t i = 0; i < len;) {
        size_t at = from + i, skip = at & 7, n = 8 - skip;
        uint64_t word = mix(key ^ ((uint64_t)(at - skip) << 1));
        const uint8_t *w = (const uint8_t *)&word + skip;
        if (n > len - i) n = len - i;
        if (!check) {
            memcpy(bytes + i, w, n);
        } else if (memcmp(bytes + i, w, n) != 0) {
            for (size_t k = 0; k < n; k++)
                if (bytes[i + k] != w[k]) return i + k;
        }
        i += n;
    }
    return len;
}

static void cmd_mr(void) {
    struct memory *m = memory_at(1);
    m->len = (size_t)number(2);
    m->bytes = mmap(NULL, m->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m->bytes == MAP_FAILED) {
        oops("mmap");
        return;
    }
    m->mr = ibv_reg_mr(pd, m->bytes, m->len, (int)number(3));
    if (!m->mr)
        oops("ibv_reg_mr");
    else
        answer("ok %llu %u %u", (unsigned long long)(uintptr_t)m->bytes, m->mr->rkey, m->mr->lkey);
}

static void cmd_pattern(bool check) {
    struct memory *m = memory_at(1);
    size_t off = (size_t)number(2), len = (size_t)number(3);
    if (!m->bytes || off > m->len || len > m->len - off) {
        answer("err no such memory");
        return;
    }
    size_t wrong = pattern(m->bytes + off, len, number(4), number(5), (size_t)number(6), check);
    if (wrong == len)
        answer("ok");
    else
        answer("err byte %zu of %zu is wrong (0x%02x)", wrong, len, m->bytes[off + wrong]);
}

/* ---- connections ---- */

static struct rdma_cm_event *wait_event(struct conn *c, uint64_t timeout_ms) {
    struct rdma_cm_event *event;
    struct pollfd p = { .events = POLLIN };
    if (!c->channel) {
        errno = ENOTCONN;
        return NULL;
    }
    p.fd = c->channel->fd;
    int n = poll(&p, 1, (int)timeout_ms);
    if (n == 0) errno = ETIMEDOUT;
    if (n <= 0) return NULL;
    return rdma_get_cm_event(c->channel, &event) == 0 ? event : NULL;
}

static bool expect_event(struct conn *c, enum rdma_cm_event_type want) {
    struct rdma_cm_event *event = wait_event(c, 10000);
    if (!event) {
        oops(rdma_event_str(want));
        return false;
    }
    bool good = event->event == want;
    if (!good)
        answer("err %s %d instead of %s", rdma_event_str(event->event), event->status,
               rdma_event_str(want));
    rdma_ack_cm_event(event);
    return good;
}

static void cmd_listen(void) {
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)number(1)) };
    if (listener.id) {
        rdma_destroy_id(listener.id);
        rdma_destroy_event_channel(listener.channel);
    }
    memset(&listener, 0, sizeof listener);
    listener.channel = rdma_create_event_channel();
    bool bad =
        !listener.channel || rdma_create_id(listener.channel, &listener.id, NULL, RDMA_PS_TCP);
    /* The process before this one may not have let go of the port yet. */
    for (uint64_t deadline = now_ms() + 5000; !bad && rdma_bind_addr(listener.id, (void *)&a);) {
        bad = errno != EADDRINUSE || now_ms() > deadline;
        if (!bad) usleep(10000);
    }
    if (bad || rdma_listen(listener.id, 128))
        oops("listen");
    else
        answer("ok");
}

static void cmd_request(void) {
    struct conn *c = conn_at(1);
    struct rdma_cm_event *event = wait_event(&listener, number(2));
    if (!event) {
        oops("request");
        return;
    }
    memset(c, 0, sizeof *c);
    c->id = event->id;
    char text[600];
    snprintf(text, sizeof text, "%u %u %s", event->param.conn.responder_resources,
             event->param.conn.initiator_depth,
             data_text(event->param.conn.private_data, event->param.conn.private_data_len));
    bool good = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    if (!good) answer("err %s", rdma_event_str(event->event));
    rdma_ack_cm_event(event); /* its identifier stays */
    if (!good) return;
    c->channel = rdma_create_event_channel();
    if (!c->channel || rdma_migrate_id(c->id, c->channel))
        oops("migrate");
    else
        answer("ok %s", text);
}

static void cmd_dial(void) {
    struct conn *c = conn_at(1);
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)number(3)) };
    inet_pton(AF_INET, words[2], &a.sin_addr);
    memset(c, 0, sizeof *c);
    c->channel = rdma_create_event_channel();
    if (!c->channel || rdma_create_id(c->channel, &c->id, NULL, RDMA_PS_TCP) ||
        rdma_resolve_addr(c->id, NULL, (struct sockaddr *)&a, 2000)) {
        oops("resolve address");
        return;
    }
    if (!expect_event(c, RDMA_CM_EVENT_ADDR_RESOLVED)) return;
    if (rdma_resolve_route(c->id, 2000)) {
        oops("resolve route");
        return;
    }
    if (expect_event(c, RDMA_CM_EVENT_ROUTE_RESOLVED)) answer("ok");
}

static void cmd_qp(void) {
    struct conn *c = conn_at(1);
    if (!c->id) {
        answer("err no connection");
        return;
    }
    int sends = (int)number(2), recvs = (int)number(3);
    errno = 0;
    c->send_cq = ibv_create_cq(pd->context, sends + 8, NULL, NULL, 0);
    c->recv_cq = ibv_create_cq(pd->context, recvs + 8, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = { .send_cq = c->send_cq,
                                     .recv_cq = c->recv_cq,
                                     .qp_type = IBV_QPT_RC,
                                     .cap = { .max_send_wr = (uint32_t)sends,
                                              .max_recv_wr = (uint32_t)recvs,
                                              .max_send_sge = (uint32_t)number(4),
                                              .max_recv_sge = (uint32_t)number(5),
                                              .max_inline_data = 64 } };
    if (!c->send_cq || !c->recv_cq || rdma_create_qp(c->id, pd, &attr)) {
        oops(c->send_cq && c->recv_cq ? "create queue pair" : "create completion queue");
        return;
    }
    c->has_qp = true;
    answer("ok");
}

static void cmd_connect(bool accept) {
    struct conn *c = conn_at(1);
    uint8_t data[256];
    size_t len = parse_data(4, data, sizeof data);
    struct rdma_conn_param p = { .private_data = len ? data : NULL,
                                 .private_data_len = (uint8_t)len,
                                 .responder_resources = (uint8_t)number(2),
                                 .initiator_depth = (uint8_t)number(3) };
    if (!c->id)
        answer("err no connection");
    else if (accept ? rdma_accept(c->id, &p) : rdma_connect(c->id, &p))
        oops(accept ? "accept" : "connect");
    else
        answer("ok");
}

static void cmd_reject(void) {
    struct conn *c = conn_at(1);
    uint8_t data[256];
    size_t len = parse_data(2, data, sizeof data);
    if (!c->id || rdma_reject(c->id, len ? data : NULL, (uint8_t)len))
        oops("reject");
    else
        answer("ok");
}

static void cmd_event(void) {
    struct rdma_cm_event *event = wait_event(conn_at(1), number(2));
    if (!event) {
        oops("event");
        return;
    }
    answer("ok %s %d %u %u %s", rdma_event_str(event->event) + strlen("RDMA_CM_EVENT_"),
           event->status, event->param.conn.responder_resources, event->param.conn.initiator_depth,
           data_text(event->param.conn.private_data, event->param.conn.private_data_len));
    rdma_ack_cm_event(event);
}

static void cmd_disconnect(void) {
    struct conn *c = conn_at(1);
    if (!c->id || rdma_disconnect(c->id))
        oops("disconnect");
    else
        answer("ok");
}

static void cmd_destroy(void) {
    struct conn *c = conn_at(1);
    if (c->has_qp) rdma_destroy_qp(c->id);
    if (c->send_cq) ibv_destroy_cq(c->send_cq);
    if (c->recv_cq) ibv_destroy_cq(c->recv_cq);
    if (c->id) rdma_destroy_id(c->id);
    if (c->channel) rdma_destroy_event_channel(c->channel);
    memset(c, 0, sizeof *c);
    answer("ok");
}

static void cmd_state(void) {
    struct conn *c = conn_at(1);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    if (!c->has_qp || ibv_query_qp(c->id->qp, &attr, IBV_QP_STATE, &init))
        oops("state");
    else
        answer("ok %d", attr.qp_state);
}

/* ---- requests ---- */

/* Triples I OFF LEN from word `at` on; -1 if they make no sense. */
static int parse_sges(int at, struct ibv_sge *sge) {
    int n = 0;
    for (; at + 2 < word_count && n < SGES; at += 3, n++) {
        struct memory *m = memory_at(at);
        if (!m->mr) return -1;
        sge[n] = (struct ibv_sge){ .addr = (uintptr_t)m->bytes + number(at + 1),
                                   .length = (uint32_t)number(at + 2),
                                   .lkey = m->mr->lkey };
    }
    return n;
}

static int post_recv(struct conn *c, uint64_t wr_id, struct ibv_sge *sge, int n) {
    struct ibv_sge none = { 0 };
    if (n == 0) { /* siw takes no receive without a piece */
        sge = &none;
        n = 1;
    }
    struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = n }, *bad;
    return ibv_post_recv(c->id->qp, &wr, &bad);
}

static void cmd_recv(void) {
    struct conn *c = conn_at(1);
    struct ibv_sge sge[SGES];
    int n = parse_sges(3, sge);
    if (!c->has_qp || n < 0) {
        answer("err no queue pair or memory");
        return;
    }
    errno = post_recv(c, number(2), sge, n);
    if (errno)
        oops("post receive");
    else
        answer("ok");
}

static bool parse_op(const char *text, enum ibv_wr_opcode *op) {
    static const struct {
        const char *name;
        enum ibv_wr_opcode op;
    } ops[] = { { "send", IBV_WR_SEND },
                { "write", IBV_WR_RDMA_WRITE },
                { "read", IBV_WR_RDMA_READ },
                { "inv", IBV_WR_SEND_WITH_INV } };
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(text, ops[i].name) == 0) {
            *op = ops[i].op;
            return true;
        }
    return false;
}

static unsigned parse_flags(const char *text) {
    unsigned flags = 0;
    for (; *text; text++) {
        if (*text == 's') flags |= IBV_SEND_SIGNALED;
        if (*text == 'e') flags |= IBV_SEND_SOLICITED;
        if (*text == 'f') flags |= IBV_SEND_FENCE;
        if (*text == 'l') flags |= IBV_SEND_INLINE;
    }
    return flags;
}

static int post_send(struct conn *c, enum ibv_wr_opcode op, uint64_t wr_id, unsigned flags,
                     uint64_t raddr, uint32_t rkey, struct ibv_sge *sge, int n) {
    struct ibv_send_wr wr = {
        .wr_id = wr_id, .sg_list = sge, .num_sge = n, .opcode = op, .send_flags = flags
    };
    struct ibv_send_wr *bad;
    /* libsiw takes what to invalidate from the place of the remote key. */
    if (op == IBV_WR_SEND_WITH_INV) wr.invalidate_rkey = rkey;
    if (op != IBV_WR_SEND) wr.wr.rdma.remote_addr = raddr, wr.wr.rdma.rkey = rkey;
    return ibv_post_send(c->id->qp, &wr, &bad);
}

static void cmd_post(void) {
    struct conn *c = conn_at(1);
    enum ibv_wr_opcode op;
    struct ibv_sge sge[SGES];
    int n = parse_sges(7, sge);
    if (word_count < 7 || !c->has_qp || n < 0 || !parse_op(words[2], &op)) {
        answer("err no queue pair or memory, or bad command");
        return;
    }
    errno =
        post_send(c, op, number(3), parse_flags(words[4]), number(5), (uint32_t)number(6), sge, n);
    if (errno)
        oops("post");
    else
        answer("ok");
}

static void cmd_recvs(void) {
    struct conn *c = conn_at(1);
    struct ibv_sge sge[SGES];
    uint64_t count = number(2);
    if (!c->has_qp || parse_sges(3, sge) != 1) {
        answer("err no queue pair or memory");
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        errno = post_recv(c, i, sge, 1);
        if (errno) {
            oops("post receive");
            return;
        }
        sge[0].addr += sge[0].length;
    }
    answer("ok");
}

static void cmd_sends(void) {
    struct conn *c = conn_at(1);
    struct ibv_sge sge[SGES];
    enum ibv_wr_opcode op;
    uint64_t count = number(3), raddr = number(5);
    if (word_count < 10 || !c->has_qp || parse_sges(7, sge) != 1 || !parse_op(words[2], &op)) {
        answer("err no queue pair or memory, or bad command");
        return;
    }
    unsigned flags = parse_flags(words[4]) | IBV_SEND_SIGNALED;
    for (uint64_t i = 0; i < count; i++) {
        errno = post_send(c, op, i, flags, raddr, (uint32_t)number(6), sge, 1);
        if (errno) {
            oops("post");
            return;
        }
        sge[0].addr += sge[0].length;
        raddr += sge[0].length;
    }
    answer("ok");
}

static void cmd_poll(void) {
    struct conn *c = conn_at(1);
    uint64_t want = number(3), got = 0, listed = 0, deadline = now_ms() + number(4);
    char text[64 * 48] = "";
    size_t at = 0;
    if (word_count < 5 || !c->has_qp) {
        answer("err no queue pair");
        return;
    }
    while (got < want) {
        struct ibv_wc wc;
        int n = ibv_poll_cq(*words[2] == 's' ? c->send_cq : c->recv_cq, 1, &wc);
        if (n < 0) {
            oops("poll");
            return;
        }
        if (n == 0) {
            if (now_ms() >= deadline) break;
            usleep(50);
            continue;
        }
        got++;
        if (listed++ < 64)
            at += (size_t)snprintf(text + at, sizeof text - at, " %llu/%d/%d/%u",
                                   (unsigned long long)wc.wr_id, wc.status,
                                   wc.status ? -1 : (int)wc.opcode, wc.byte_len);
        if (wc.status != IBV_WC_SUCCESS && want > 64) break; /* it will not become better */
    }
    answer("ok %llu%s", (unsigned long long)got, text);
}

/* A parameter of siw: see build.sh. */
static void cmd_set(void) {
    char path[128];
    snprintf(path, sizeof path, "/sys/module/siw/parameters/%s", words[1]);
    FILE *f = fopen(path, "w");
    if (!f || fputs(words[2], f) < 0 || fclose(f) != 0)
        oops(path);
    else
        answer("ok");
}

/* ---- main ---- */

static void serve(int fd) {
    static char line[LINE];
    FILE *in = fdopen(fd, "r");
    out = fdopen(dup(fd), "w");
    if (!in || !out) return;
    struct ibv_context **devices = rdma_get_devices(NULL);
    pd = devices && devices[0] ? ibv_alloc_pd(devices[0]) : NULL;
    if (!pd) {
        answer("err no RDMA device");
        return;
    }
    answer("ok ready");
    while (fgets(line, sizeof line, in)) {
        word_count = 0;
        for (char *w = strtok(line, " \r\n"); w && word_count < WORDS; w = strtok(NULL, " \r\n"))
            words[word_count++] = w;
        if (word_count == 0) continue;
        static const struct {
            const char *name;
            int least;
            void (*run)(void);
        } plain[] = {
            { "mr", 4, cmd_mr },           { "listen", 2, cmd_listen },
            { "request", 3, cmd_request }, { "dial", 4, cmd_dial },
            { "qp", 6, cmd_qp },           { "reject", 3, cmd_reject },
            { "event", 3, cmd_event },     { "disconnect", 2, cmd_disconnect },
            { "destroy", 2, cmd_destroy }, { "state", 2, cmd_state },
            { "recv", 3, cmd_recv },       { "post", 7, cmd_post },
            { "recvs", 6, cmd_recvs },     { "sends", 10, cmd_sends },
            { "poll", 5, cmd_poll },       { "set", 3, cmd_set },
        };
        size_t i = 0;
        while (i < sizeof plain / sizeof plain[0] && strcmp(plain[i].name, words[0]) != 0)
            i++;
        if (i < sizeof plain / sizeof plain[0] && word_count >= plain[i].least)
            plain[i].run();
        else if (strcmp(words[0], "fill") == 0 && word_count == 7)
            cmd_pattern(false);
        else if (strcmp(words[0], "check") == 0 && word_count == 7)
            cmd_pattern(true);
        else if (strcmp(words[0], "connect") == 0 && word_count == 5)
            cmd_connect(false);
        else if (strcmp(words[0], "accept") == 0 && word_count == 5)
            cmd_connect(true);
        else if (strcmp(words[0], "die") == 0)
            raise(SIGKILL);
        else
            answer("err bad command %s", words[0]);
    }
}

int main(int argc, char **argv) {
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 7000)) };
    int on = 1, s = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof a) || listen(s, 16)) {
        perror("verbs_peer");
        return 1;
    }
    signal(SIGCHLD, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        int fd = accept(s, NULL, NULL);
        if (fd < 0) continue;
        if (fork() == 0) {
            close(s);
            serve(fd);
            _exit(0);
        }
        close(fd);
    }
}
