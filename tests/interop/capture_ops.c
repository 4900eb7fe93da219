/* SPDX-License-Identifier: MIT
 * capture_ops.c - every operation of the iWARP transport, one after another, for wireshark.sh to
 * look at in a capture: capture_ops pair | markers.
 *
 * pair: both ends are SoftND's. markers: the other end is a plain socket that asks for markers,
 * throws away what it gets, and sends a few FPDUs without markers when told. Writes "port N" and
 * then one line for each message that must be seen, in order (reports of progress left out):
 * DIRECTION OPCODE BYTES STAG, the last "-" where there is none.
 */
#include "unit/iwarp/fake_wait.h"
#include "iwarp/conn.h"
#include "os/prim/thread.h"
#include "support/testing.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MEM = 4 << 20 };

static struct fake_qp a, b; /* active, passive */
static struct tp_engine *eng;
static os_atomic_ptr request;
static uint32_t a_done, b_done, a_recv, b_recv;

static void on_request(void *ctx, struct tp_conn *conn) {
    tp_conn_set_owner(conn, &fake_up, &b);
    os_ptr_store_release(&request, conn);
}
static const struct tp_listener_upcalls listener_up = { on_request };

static void expect(char direction, int opcode, uint32_t bytes, uint32_t stag) {
    if (stag)
        printf("%c %d %u %u\n", direction, opcode, bytes, stag);
    else
        printf("%c %d %u -\n", direction, opcode, bytes);
}

/* With markers the sizes stay small: where an FPDU ends just before a marker, which then belongs to
 * the next one, Wireshark (4.0) loses its way, and large FPDUs are cut by what the system happens
 * to use as segment size. The first size_count are used. */
static size_t size_count;
static const uint32_t sizes[] = { 0,    1,    2,    3,     4,     507,   508,
                                  1023, 1500, 4096, 20000, 63488, 63493, 300001 };

/* The operations of one side towards memory at `there`; the other side's bookkeeping in peer, which
 * is NULL if it is not ours. */
static void send_flavours(char direction, struct fake_qp *from, uint32_t *done, struct fake_qp *to,
                          uint32_t *received) {
    static const struct {
        int opcode;
        uint8_t flags;
    } flavours[] = { { RDMAP_SEND, 0 },
                     { RDMAP_SEND_SE, TP_F_SOLICIT },
                     { RDMAP_SEND_INV, TP_F_INVALIDATE },
                     { RDMAP_SEND_SE_INV, TP_F_SOLICIT | TP_F_INVALIDATE } };
    for (size_t k = 0; k < SN_ARRAY_LEN(flavours); k++)
        for (size_t i = 0; i < size_count; i++) {
            if (k != 0 && i % 4 != 0) continue;
            if (to) fake_post_receive(to, to->region, MEM / 2);
            fill(from->region + 64 + i, sizes[i], (uint32_t)(k * 100 + i));
            expect(direction, flavours[k].opcode, sizes[i],
                   flavours[k].flags & TP_F_INVALIDATE ? FAKE_REMOTE : 0);
            fake_post(from, TP_OP_SEND, flavours[k].flags, from->region + 64 + i, sizes[i], 0,
                      FAKE_REMOTE);
            WAIT_FOR(os_u32_load_seqcst(&from->done_count) == *done + 1);
            ++*done;
            if (to) WAIT_FOR(os_u32_load_seqcst(&to->recv_count) == *received + 1);
            if (to) ++*received;
        }
}

static void writes(char direction, struct fake_qp *from, uint32_t *done, uint64_t there) {
    for (size_t i = 0; i < size_count; i++) {
        fill(from->region + i, sizes[i], (uint32_t)i);
        expect(direction, RDMAP_WRITE, sizes[i], FAKE_REMOTE);
        fake_post(from, TP_OP_WRITE, 0, from->region + i, sizes[i], there + i, FAKE_REMOTE);
        WAIT_FOR(os_u32_load_seqcst(&from->done_count) == *done + 1);
        ++*done;
    }
}

static void reads(char direction, char answers, struct fake_qp *from, uint32_t *done,
                  uint64_t there) {
    for (size_t i = 0; i < size_count; i++) {
        expect(direction, RDMAP_READ_REQUEST, 28, 0);
        expect(answers, RDMAP_READ_RESPONSE, sizes[i], sizes[i] ? FAKE_LOCAL : 1);
        fake_post(from, TP_OP_READ, 0, from->region + i, sizes[i], there + i, FAKE_REMOTE);
        WAIT_FOR(os_u32_load_seqcst(&from->done_count) == *done + 1);
        ++*done;
    }
}

static struct tp_setup setup_of(struct fake_qp *qp) {
    return (struct tp_setup){ .ird = 4, .ord = 4, .up = &fake_up, .owner = qp, .qp = qp };
}

static void run_pair(void) {
    struct os_addr any = { .family = 4, .ip = { 127, 0, 0, 1 } };
    struct tp_port *port;
    struct tp_listener *listener;
    struct tp_setup setup_a = setup_of(&a), setup_b = setup_of(&b);
    uint8_t *mem_a = calloc(1, MEM), *mem_b = calloc(1, MEM);
    fake_qp_init(&a, mem_a, MEM);
    fake_qp_init(&b, mem_b, MEM);
    fill(mem_a, MEM, 1);
    fill(mem_b, MEM, 2);
    CHECK_EQ(tp_engine_create(&eng), SN_OK);
    CHECK_EQ(tp_port_bind(&any, TP_PORT_LISTEN, &port), SN_OK);
    CHECK_EQ(iw_ops.listen(eng, port, 16, &listener_up, NULL, &listener), SN_OK);
    printf("port %u\n", port->addr.port);
    setup_a.pd = "hello";
    setup_a.pd_len = 5;
    CHECK_EQ(iw_ops.connect(eng, NULL, &port->addr, &setup_a, &a.conn), SN_OK);
    WAIT_FOR(os_ptr_load_acquire(&request));
    b.conn = os_ptr_load_acquire(&request);
    CHECK_EQ(b.conn->ops->accept(b.conn, &setup_b), SN_OK);
    WAIT_FOR(os_u32_load_seqcst(&a.replied) == 1 + SN_OK);
    CHECK_EQ(a.conn->ops->complete(a.conn, 4, 4), SN_OK);
    WAIT_FOR(os_u32_load_seqcst(&b.established) == 1 + SN_OK);

    send_flavours('a', &a, &a_done, &b, &b_recv);
    send_flavours('b', &b, &b_done, &a, &a_recv);
    writes('a', &a, &a_done, (uint64_t)(uintptr_t)mem_b);
    writes('b', &b, &b_done, (uint64_t)(uintptr_t)mem_a);
    reads('a', 'b', &a, &a_done, (uint64_t)(uintptr_t)mem_b);
    reads('b', 'a', &b, &b_done, (uint64_t)(uintptr_t)mem_a);
    /* The end: a Write with a token that nobody has, answered with a Terminate. */
    expect('a', RDMAP_WRITE, 100, 0x0BAD0BADu);
    expect('b', RDMAP_TERMINATE, 20, 0);
    fake_post(&a, TP_OP_WRITE, 0, mem_a, 100, (uint64_t)(uintptr_t)mem_b, 0x0BAD0BADu);
    WAIT_FOR(os_u32_load_seqcst(&a.disconnected) && os_u32_load_seqcst(&b.disconnected));
    a.conn->ops->close(a.conn);
    b.conn->ops->close(b.conn);
    a.conn->ops->release(a.conn);
    b.conn->ops->release(b.conn);
    iw_ops.listener_close(listener);
    tp_port_free(port);
    tp_engine_destroy(eng);
    free(mem_a);
    free(mem_b);
}

/* ---- the peer that wants markers ---- */

static int raw_listener, raw_socket = -1;

/* One FPDU of the peer, head and what little payload there is. */
static void raw_say(const uint8_t *head, size_t len) {
    uint8_t fpdu[RDMAP_HEAD_MAX + 4 + MPA_TRAILER_MAX];
    memcpy(fpdu, head, len);
    len += mpa_trailer_pack(fpdu + len, len - MPA_LEN_LEN,
                            sn_crc32c_extend(SN_CRC32C_INIT, head, len), true);
    CHECK(write(raw_socket, fpdu, len) == (ssize_t)len);
}

/* Our answers to so many Reads are all in the socket. */
static bool answered(uint32_t reads) {
    struct iw_conn *c = iw_conn_of(a.conn);
    os_lock_enter(&c->rx_lock);
    os_lock_enter(&c->tx_lock);
    bool all = c->rx.read_msn == reads + 1 && c->tx.irq_count == 0 && c->tx.raw_len == 0;
    os_lock_leave(&c->tx_lock);
    os_lock_leave(&c->rx_lock);
    return all;
}

/* The peer Reads from us: the responses have markers. */
static void raw_reads(void) {
    uint8_t head[RDMAP_HEAD_MAX];
    for (size_t i = 0; i < size_count; i++) {
        struct rdmap_read_request rr = { .sink_stag = 0x1234,
                                         .sink_to = 0x10000,
                                         .size = sizes[i],
                                         .src_stag = FAKE_REMOTE,
                                         .src_to = (uint64_t)(uintptr_t)a.region + i };
        expect('b', RDMAP_READ_REQUEST, RDMAP_READ_REQUEST_LEN, 0);
        expect('a', RDMAP_READ_RESPONSE, sizes[i], 0x1234);
        raw_say(head, rdmap_read_request_pack(head, (uint32_t)i + 1, &rr));
        WAIT_FOR(answered((uint32_t)i + 1));
    }
}

static void *swallow(void *arg) {
    uint8_t buf[65536];
    size_t have = 0;
    /* Reply to any request: M and C, revision 2 with peer-to-peer and a Write as RTR. */
    static const uint8_t reply[24] = { 'M',  'P', 'A', ' ', 'I',  'D', ' ',  'R',
                                       'e',  'p', ' ', 'F', 'r',  'a', 'm',  'e',
                                       0xD0, 2,   0,   4,   0x80, 4,   0x80, 4 };
    int s = raw_socket = accept(raw_listener, NULL, NULL);
    while (s >= 0 && have < 20) {
        ssize_t n = read(s, buf + have, sizeof buf - have);
        if (n <= 0) break;
        have += (size_t)n;
    }
    if (write(s, reply, sizeof reply) != (ssize_t)sizeof reply) perror("reply");
    while (read(s, buf, sizeof buf) > 0)
        ;
    close(s);
    return NULL;
}

static void run_markers(void) {
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    struct os_addr peer;
    struct tp_setup setup = setup_of(&a);
    pthread_t thread;
    uint8_t *mem = calloc(1, MEM);
    fake_qp_init(&a, mem, MEM);
    raw_listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(raw_listener, (struct sockaddr *)&at, len) == 0 && listen(raw_listener, 1) == 0);
    CHECK(getsockname(raw_listener, (struct sockaddr *)&at, &len) == 0);
    CHECK_EQ(os_addr_from_sockaddr(&peer, &at, sizeof at), SN_OK);
    printf("port %u\n", peer.port);
    CHECK(pthread_create(&thread, NULL, swallow, NULL) == 0);
    CHECK_EQ(tp_engine_create(&eng), SN_OK);
    CHECK_EQ(iw_ops.connect(eng, NULL, &peer, &setup, &a.conn), SN_OK);
    WAIT_FOR(os_u32_load_seqcst(&a.replied) == 1 + SN_OK);
    CHECK_EQ(a.conn->ops->complete(a.conn, 4, 4), SN_OK);
    /* A peer that says nothing: after a moment it counts as foreign, gets the RTR frame once more
     * (a report, left out like the others), and completions are local. */
    expect('a', RDMAP_SEND, 0, 0);
    fake_post(&a, TP_OP_SEND, 0, mem, 0, 0, 0);
    WAIT_FOR(os_u32_load_seqcst(&a.done_count) == a_done + 1);
    a_done++;
    send_flavours('a', &a, &a_done, NULL, NULL);
    writes('a', &a, &a_done, 0x10000);
    raw_reads();
    expect('a', RDMAP_READ_REQUEST, 28, 0);
    fake_post(&a, TP_OP_READ, 0, mem, 1000, 0x10000, FAKE_REMOTE);
    /* The end: the peer Writes where it may not, and gets a Terminate. */
    uint8_t head[RDMAP_HEAD_MAX + 4] = { 0 };
    size_t head_len = rdmap_write_pack(head, true, 0x0BAD0BADu, 0x10000, 4);
    expect('b', RDMAP_WRITE, 4, 0x0BAD0BADu);
    expect('a', RDMAP_TERMINATE, 20, 0);
    raw_say(head, head_len + 4);
    WAIT_FOR(os_u32_load_seqcst(&a.disconnected));
    a.conn->ops->close(a.conn);
    a.conn->ops->release(a.conn);
    pthread_join(thread, NULL);
    tp_engine_destroy(eng);
    close(raw_listener);
    free(mem);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "pair";
    if (setjmp(test_escape)) return 1;
    bool markers = strcmp(mode, "markers") == 0;
    size_count = SN_ARRAY_LEN(sizes) - (markers ? 3 : 0);
    if (markers)
        run_markers();
    else
        run_pair();
    return 0;
}
