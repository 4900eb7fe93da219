/* SPDX-License-Identifier: MIT
 *
 * The two ends in two processes: every size both ways, the order in which bytes appear, tokens that
 * end under a peer's copies, and peers that are killed.
 */
#include <stdio.h>
#include "os/io/poller.h"
#include "rig.h"
#include "support/child.h"

#ifndef _WIN32
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#endif

/* What the two processes know of each other beside the connection. */
struct control {
    os_atomic_u32 port;
    os_atomic_u64 mem;  /* where the passive side's memory is */
    os_atomic_u32 recv; /* receives it has completed */
    os_atomic_u32 want; /* size of the next receive, + 1 */
    os_atomic_u32 step, stop;
};

struct end {
    struct tp_engine *eng;
    struct tp_port *port;
    struct tp_listener *listener;
    os_atomic_ptr request;
    struct fake_qp qp;
    uint8_t *mem;
    struct tp_share share;
};

static void end_request(void *ctx, struct tp_conn *conn) {
    struct end *e = ctx;
    tp_conn_set_owner(conn, &fake_up, &e->qp);
    os_ptr_store_release(&e->request, conn);
}
static const struct tp_listener_upcalls end_listener_up = { end_request };

static struct control *new_control(void) {
    return child_share(sizeof(struct control));
}

static void init_end(struct end *e) {
    test_setenv("SOFTND_TRANSPORT", "local");
    memset(e, 0, sizeof *e);
    e->mem = calloc(1, MEM);
    fake_qp_init(&e->qp, e->mem, MEM);
    share_init(&e->share, e->mem, MEM);
    CHECK_EQ(tp_engine_create(&e->eng), SN_OK);
}

static void fini_end(struct end *e) {
    if (e->listener) lo_ops.listener_close(e->listener);
    tp_port_free(e->port);
    tp_engine_destroy(e->eng);
    tp_share_destroy(&e->share);
    free(e->mem);
}

static void start_listening(struct end *e, struct control *ctl) {
    struct os_addr any = { .family = 4, .ip = { 127, 0, 0, 1 } };
    init_end(e);
    CHECK_EQ(tp_port_bind(&any, TP_PORT_LISTEN, &e->port), SN_OK);
    CHECK_EQ(lo_ops.listen(e->eng, e->port, 16, &end_listener_up, e, &e->listener), SN_OK);
    os_u64_store_release(&ctl->mem, (uint64_t)(uintptr_t)e->mem);
    os_u32_store_release(&ctl->port, e->port->addr.port);
}

static void accept_one(struct end *e) {
    WAIT_FOR(os_ptr_load_acquire(&e->request));
    e->qp.conn = os_ptr_load_acquire(&e->request);
    struct tp_setup setup = make_setup(&e->qp, &e->share, 4, "yes");
    CHECK_EQ(e->qp.conn->ops->accept(e->qp.conn, &setup), SN_OK);
    WAIT_FOR(os_u32_load_seqcst(&e->qp.established));
    CHECK_EQ(os_u32_load_seqcst(&e->qp.established), 1 + SN_OK);
}

static void connect_to(struct end *e, struct control *ctl) {
    struct os_addr addr = { .family = 4, .ip = { 127, 0, 0, 1 } };
    init_end(e);
    WAIT_FOR(os_u32_load_acquire(&ctl->port));
    addr.port = (uint16_t)os_u32_load_acquire(&ctl->port);
    struct tp_setup setup = make_setup(&e->qp, &e->share, 4, "hello");
    CHECK_EQ(lo_ops.connect(e->eng, NULL, &addr, &setup, &e->qp.conn), SN_OK);
    WAIT_FOR(os_u32_load_seqcst(&e->qp.replied));
    CHECK_EQ(os_u32_load_seqcst(&e->qp.replied), 1 + SN_OK);
    CHECK_EQ(e->qp.conn->ops->complete(e->qp.conn, 4, 4), SN_OK);
}

static void close_end(struct end *e) {
    if (e->qp.conn) {
        e->qp.conn->ops->close(e->qp.conn);
        e->qp.conn->ops->release(e->qp.conn);
    }
    fini_end(e);
}

static uint32_t done_count(struct end *e) {
    return os_u32_load_seqcst(&e->qp.done_count);
}

/* ---- all sizes ---- */

/* Posts a receive whenever one is wanted, until told to stop; the data lands at mem + 3. */
static void serve_receives(void *shared) {
    struct control *ctl = shared;
    struct end e;
    start_listening(&e, ctl);
    accept_one(&e);
    uint32_t posted = 0;
    while (!os_u32_load_acquire(&ctl->stop)) {
        uint32_t want = os_u32_exchange_acq_rel(&ctl->want, 0);
        if (want != 0) {
            fake_post_receive(&e.qp, e.mem + 3, want - 1);
            posted++;
            WAIT_FOR(os_u32_load_seqcst(&e.qp.recv_count) == posted);
            os_u32_store_seqcst(&ctl->recv, posted);
        }
        os_thread_yield();
    }
    WAIT_FOR(os_u32_load_seqcst(&e.qp.disconnected));
    close_end(&e);
}

static void operations_of_all_sizes_cross_processes(void) {
    static const uint32_t sizes[] = {
        0,    1,    7,    8,    9,     63,    64,     96,      97,
        1000, 8191, 8192, 8193, 16384, 16385, 100001, 1 << 20, 3000001
    };
    struct control *ctl = new_control();
    test_child child = child_start(serve_receives, ctl);
    struct end e;
    connect_to(&e, ctl);
    uint64_t there = os_u64_load_acquire(&ctl->mem);
    uint32_t done = 0;
    uint8_t *back = e.mem + MEM / 2;
    for (size_t i = 0; i < SN_ARRAY_LEN(sizes); i++) {
        uint32_t n = sizes[i];
        fill(e.mem + i, n, n + 5);
        os_u32_store_seqcst(&ctl->want, n + 1);
        struct fake_request *s = fake_post(&e.qp, TP_OP_SEND, 0, e.mem + i, n, 0, 0);
        WAIT_FOR(done_count(&e) == done + 1);
        CHECK_EQ(s->status, SN_OK);
        WAIT_FOR(os_u32_load_seqcst(&ctl->recv) == i + 1);
        struct fake_request *r = fake_post(&e.qp, TP_OP_READ, 0, back, n, there + 3, FAKE_REMOTE);
        WAIT_FOR(done_count(&e) == done + 2);
        CHECK_EQ(r->status, SN_OK);
        CHECK_BYTES(back, e.mem + i, n);
        fill(e.mem + i, n, n + 77);
        fake_post(&e.qp, TP_OP_WRITE, 0, e.mem + i, n, there + 11 + i, FAKE_REMOTE);
        fake_post(&e.qp, TP_OP_READ, 0, back, n, there + 11 + i, FAKE_REMOTE);
        WAIT_FOR(done_count(&e) == done + 4);
        CHECK_BYTES(back, e.mem + i, n);
        done += 4;
    }
    os_u32_store_seqcst(&ctl->stop, 1);
    close_end(&e);
    CHECK(child_ended(child));
}

/* ---- the order of bytes ---- */

static void write_words(void *shared) {
    struct control *ctl = shared;
    struct end e;
    connect_to(&e, ctl);
    uint64_t there = os_u64_load_acquire(&ctl->mem);
    uint32_t done = 0;
    while (!os_u32_load_acquire(&ctl->stop)) {
        memset(e.mem, done % 2 ? 0xFF : 0, 8);
        fake_post(&e.qp, TP_OP_WRITE, 0, e.mem, 8, there + 4096 - 8, FAKE_REMOTE);
        done++;
        WAIT_FOR(done_count(&e) == done);
    }
    os_u32_store_seqcst(&ctl->step, done);
    close_end(&e);
}

static void aligned_words_are_never_seen_half_written(void) {
    struct control *ctl = new_control();
    struct end e;
    test_child child = child_start(write_words, ctl);
    start_listening(&e, ctl);
    accept_one(&e);
    const os_atomic_u64 *word = (const void *)(e.mem + 4096 - 8);
    uint64_t until = os_now_ns() + 300 * OS_NS_PER_MS;
    uint32_t changes = 0;
    for (uint64_t last = 0; changes <= 10 || os_now_ns() < until;) {
        if (os_now_ns() > until + 20000 * OS_NS_PER_MS) FAIL("saw only %u changes", changes);
        uint64_t v = os_u64_load_acquire(word);
        changes += v != last;
        last = v;
        if (v != 0 && v != UINT64_MAX) FAIL("saw 0x%llx", (unsigned long long)v);
    }
    os_u32_store_seqcst(&ctl->stop, 1);
    CHECK(child_ended(child));
    close_end(&e);
}

static const uint32_t order_sizes[] = { 1, 2, 8, 9, 15, 64, 65, 1000, 4096, 5001, 100000 };
enum { ORDER_ROUNDS = 40 };

static void write_in_turn(void *shared) {
    struct control *ctl = shared;
    struct end e;
    connect_to(&e, ctl);
    uint64_t there = os_u64_load_acquire(&ctl->mem);
    uint32_t turn = 0;
    for (size_t i = 0; i < SN_ARRAY_LEN(order_sizes); i++) {
        for (uint32_t k = 0; k < ORDER_ROUNDS; k++, turn++) {
            WAIT_FOR(os_u32_load_acquire(&ctl->step) == turn);
            memset(e.mem, (int)(k % 255) + 1, order_sizes[i]);
            fake_post(&e.qp, TP_OP_WRITE, 0, e.mem, order_sizes[i], there + 8 + i, FAKE_REMOTE);
            WAIT_FOR(done_count(&e) == turn + 1);
        }
    }
    WAIT_FOR(os_u32_load_acquire(&ctl->stop));
    close_end(&e);
}

static void last_byte_of_a_write_is_seen_last(void) {
    struct control *ctl = new_control();
    struct end e;
    test_child child = child_start(write_in_turn, ctl);
    start_listening(&e, ctl);
    accept_one(&e);
    uint32_t turn = 0;
    for (size_t i = 0; i < SN_ARRAY_LEN(order_sizes); i++) {
        const uint32_t n = order_sizes[i];
        const volatile uint8_t *at = e.mem + 8 + i;
        for (uint32_t k = 0; k < ORDER_ROUNDS; k++, turn++) {
            const uint8_t value = (uint8_t)((k % 255) + 1);
            os_u32_store_release(&ctl->step, turn);
            WAIT_FOR(at[n - 1] == value);
            for (uint32_t b = 0; b < n; b++)
                if (at[b] != value) FAIL("byte %u of %u came after the last", b, n);
        }
    }
    os_u32_store_seqcst(&ctl->stop, 1);
    CHECK(child_ended(child));
    close_end(&e);
}

/* ---- tokens that end ---- */

/* A process's start takes long under Wine. */
#ifdef _WIN32
enum { KILLS = 4, ENDS = 2 };
#else
enum { KILLS = 12, ENDS = 12 };
#endif

/* Writes for ever, a different byte each time, until the connection ends. */
static void write_for_ever(void *shared) {
    struct control *ctl = shared;
    struct end e;
    connect_to(&e, ctl);
    uint64_t there = os_u64_load_acquire(&ctl->mem);
    uint32_t n = os_u32_load_acquire(&ctl->want);
    struct fake_request *w = NULL;
    for (uint32_t done = 1;; done++) {
        memset(e.mem, (int)done, n);
        w = fake_post(&e.qp, TP_OP_WRITE, 0, e.mem, n, there, FAKE_REMOTE);
        WAIT_FOR(done_count(&e) == done || os_u32_load_seqcst(&e.qp.disconnected));
        if (w->status != SN_OK || os_u32_load_seqcst(&e.qp.disconnected)) break;
        os_u32_store_release(&ctl->step, done);
    }
    CHECK_EQ(w->status, SN_E_RIGHTS);
    WAIT_FOR(os_u32_load_seqcst(&e.qp.disconnected));
    close_end(&e);
}

static void end_token(struct end *e, uint32_t token) {
    os_u32_store_seqcst(&share_slot(&e->share, token)->token, 0);
    tp_share_drain(&e->share, token);
}

static void check_unchanged(const struct end *e, uint32_t n) {
    uint8_t *copy = malloc(n);
    memcpy(copy, e->mem, n);
    uint64_t until = os_now_ns() + 3 * OS_NS_PER_MS;
    do
        CHECK_BYTES(e->mem, copy, n);
    while (os_now_ns() < until);
    free(copy);
}

static bool copies_are_direct(const struct end *e) {
    return ((struct lo_conn *)e->qp.conn)->can_copy;
}

static void token_ends_under_a_stream_of_writes(void) {
    for (uint32_t i = 0; i < ENDS; i++) {
        struct control *ctl = new_control();
        struct end e;
        uint32_t n = i % 2 ? 3000000 : 5000;
        os_u32_store_seqcst(&ctl->want, n);
        test_child child = child_start(write_for_ever, ctl);
        start_listening(&e, ctl);
        accept_one(&e);
        WAIT_FOR(os_u32_load_acquire(&ctl->step) >= 3);
        if (!copies_are_direct(&e)) {
            child_kill(child);
            (void)child_ended(child);
            close_end(&e);
            SKIP("copies are not direct here: the table is not looked at by the peer");
        }
        end_token(&e, FAKE_REMOTE);
        check_unchanged(&e, n);
        WAIT_FOR(os_u32_load_seqcst(&e.qp.disconnected));
        CHECK(child_ended(child));
        close_end(&e);
    }
}

/* ---- killed peers ---- */

/* Of shared memory; 0 where the system does not list them. */
static uint32_t count_mappings(void) {
    char line[512];
    uint32_t n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    if (!f) return 0;
    while (fgets(line, sizeof line, f))
        n += strstr(line, "memfd:softnd") != NULL;
    fclose(f);
    return n;
}

static void killed_writer_blocks_nobody_and_leaves_nothing(void) {
    uint32_t maps = 0, handles = 0;
    for (uint32_t i = 0; i < KILLS; i++) {
        struct control *ctl = new_control();
        struct end e;
        uint32_t n = i % 2 ? 4000000 : 64;
        os_u32_store_seqcst(&ctl->want, n);
        test_child child = child_start(write_for_ever, ctl);
        start_listening(&e, ctl);
        accept_one(&e);
        WAIT_FOR(os_u32_load_acquire(&ctl->step) >= 2 + i);
        child_kill(child);
        end_token(&e, FAKE_REMOTE); /* must not wait for the dead */
        CHECK(!child_ended(child));
        /* What it put into the ring is ours to place, and may be placed only now. */
        if (copies_are_direct(&e)) check_unchanged(&e, n);
        WAIT_FOR(os_u32_load_seqcst(&e.qp.disconnected));
        CHECK(os_u32_load_seqcst(&e.qp.disconnected) != 1 + SN_OK);
        close_end(&e);
        child_unshare(ctl, sizeof *ctl);
        if (i == 0) { /* it may leave what is made once */
            maps = count_mappings();
            handles = child_open_handles();
        }
    }
    CHECK_EQ(count_mappings(), maps);
    CHECK_EQ(child_open_handles(), handles);
}

static void accept_and_wait(struct control *ctl, struct end *e) {
    start_listening(e, ctl);
    accept_one(e);
    os_u32_store_seqcst(&ctl->step, 1);
    WAIT_FOR(os_u32_load_acquire(&ctl->stop));
}

static void listen_and_wait(void *shared) {
    struct end e;
    accept_and_wait(shared, &e);
}

/* A cell whose peer died with a token in it, as if killed in the middle of a copy. */
static void peer_killed_in_a_copy_is_not_waited_for(void) {
    struct control *ctl = new_control();
    struct end e;
    test_child child = child_start(listen_and_wait, ctl);
    connect_to(&e, ctl);
    WAIT_FOR(os_u32_load_acquire(&ctl->step));
    struct lo_conn *c = (struct lo_conn *)e.qp.conn;
    os_u32_store_seqcst(&c->theirs->busy[0], FAKE_REMOTE);
    child_kill(child);
    end_token(&e, FAKE_REMOTE);
    CHECK(!child_ended(child));
    WAIT_FOR(os_u32_load_seqcst(&e.qp.disconnected));
    close_end(&e);
}

#ifdef _WIN32

static void peer_that_becomes_another_program_is_not_waited_for(void) {
    SKIP("no process becomes another program here");
}

static void peer_whose_end_does_not_show_is_not_waited_for(void) {
    SKIP("the end of every process shows here");
}

#else

static void listen_and_become_another_program(void *shared) {
    struct end e;
    accept_and_wait(shared, &e);
    execlp("sleep", "sleep", "60", (char *)NULL);
}

/* The same in a process that lives on, as one that knows nothing of the copy. */
static void peer_that_becomes_another_program_is_not_waited_for(void) {
    struct control *ctl = new_control();
    struct end e;
    test_child child = child_start(listen_and_become_another_program, ctl);
    connect_to(&e, ctl);
    WAIT_FOR(os_u32_load_acquire(&ctl->step));
    struct lo_conn *c = (struct lo_conn *)e.qp.conn;
    bool direct = copies_are_direct(&e);
    if (direct) os_u32_store_seqcst(&c->theirs->busy[0], FAKE_REMOTE);
    os_u32_store_seqcst(&ctl->stop, 1);
    end_token(&e, FAKE_REMOTE);
    WAIT_FOR(os_u32_load_seqcst(&e.qp.disconnected));
    close_end(&e);
    child_kill(child);
    CHECK(!child_ended(child));
    if (!direct) SKIP("copies are not direct here: a peer's life is not asked for");
}

/* As where a sandbox forbids what tells the end of a process. False if that cannot be had. */
static bool forbid_pidfd_open(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 434, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { SN_ARRAY_LEN(code), code };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum { IS_BLIND = 1, CANNOT_BE, IS_DEAF, IS_TOLD, IS_THROUGH };

/* Ends a token as an engine does that serves the very connection: its end is not heard meanwhile.
 */
static void drain_without_hearing(void *shared) {
    struct control *ctl = shared;
    struct end e;
    bool blind = forbid_pidfd_open();
    os_u32_store_seqcst(&ctl->want, blind ? IS_BLIND : CANNOT_BE);
    if (!blind) return;
    start_listening(&e, ctl);
    accept_one(&e);
    struct lo_conn *c = (struct lo_conn *)e.qp.conn;
    CHECK(!lo_peer_watched(c->peer));
    fake_post_receive(&e.qp, e.mem, 1 << 20);
    WAIT_FOR(os_u32_load_acquire(&ctl->step));
    CHECK_EQ(os_u32_load_seqcst(&e.qp.recv_count), 1);
    os_lock_enter(&c->rx_lock);
    os_u32_store_seqcst(&ctl->want, IS_DEAF);
    WAIT_FOR(os_u32_load_acquire(&ctl->want) == IS_TOLD);
    end_token(&e, FAKE_REMOTE);
    os_u32_store_seqcst(&ctl->want, IS_THROUGH);
    os_lock_leave(&c->rx_lock);
    WAIT_FOR(os_u32_load_seqcst(&e.qp.disconnected));
    close_end(&e);
}

static void connect_copy_and_hang(void *shared) {
    struct control *ctl = shared;
    struct end e;
    connect_to(&e, ctl);
    struct lo_conn *c = (struct lo_conn *)e.qp.conn;
    CHECK(!c->can_copy); /* as it was told */
    fake_post(&e.qp, TP_OP_SEND, 0, e.mem, 1 << 20, 0, 0);
    fake_post(&e.qp, TP_OP_WRITE, 0, e.mem, 1 << 20, os_u64_load_acquire(&ctl->mem), FAKE_REMOTE);
    fake_post(&e.qp, TP_OP_READ, 0, e.mem, 1 << 20, os_u64_load_acquire(&ctl->mem), FAKE_REMOTE);
    WAIT_FOR(done_count(&e) == 3);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_EQ(e.qp.sq[i].status, SN_OK);
    os_u32_store_seqcst(&c->mine->busy[0], FAKE_REMOTE);
    os_u32_store_seqcst(&c->mine->busy[1], FAKE_REMOTE);
    os_u32_store_seqcst(&ctl->step, 1);
    WAIT_FOR(os_u32_load_acquire(&ctl->stop));
}

static void peer_whose_end_does_not_show_is_not_waited_for(void) {
    struct control *ctl = new_control();
    test_child blind = child_start(drain_without_hearing, ctl);
    WAIT_FOR(os_u32_load_acquire(&ctl->want));
    if (os_u32_load_acquire(&ctl->want) == CANNOT_BE) {
        CHECK(child_ended(blind));
        SKIP("no system call can be forbidden here");
    }
    test_child copier = child_start(connect_copy_and_hang, ctl);
    WAIT_FOR(os_u32_load_acquire(&ctl->want) == IS_DEAF);
    child_kill(copier);
    CHECK(!child_ended(copier));
    os_u32_store_seqcst(&ctl->want, IS_TOLD);
    WAIT_FOR(os_u32_load_acquire(&ctl->want) == IS_THROUGH);
    CHECK(child_ended(blind));
}

#endif

/* Sends, takes the receiver's offer of a part, and says that it copies; for ever. */
static void take_a_part_and_hang(void *shared) {
    struct control *ctl = shared;
    struct end e;
    connect_to(&e, ctl);
    struct lo_conn *c = (struct lo_conn *)e.qp.conn;
    lo_conn_set_polled(c, true);
    for (bool taken = false; !taken;) {
        WAIT_FOR(os_u32_exchange_acq_rel(&ctl->want, 0));
        fake_post(&e.qp, TP_OP_SEND, 0, e.mem, 1 << 20, 0, 0);
        while (!taken && os_u32_load_acquire(&ctl->recv) < e.qp.sq_posted) {
            uint32_t word = os_u32_load_acquire(&c->theirs->help);
            taken = word == lo_help_with(word, LO_HELP_OFFERED) &&
                    os_u32_cas_acq_rel(&c->theirs->help, &word, lo_help_with(word, LO_HELP_TAKEN));
        }
    }
    os_u32_store_seqcst(&c->mine->busy[0], FAKE_LOCAL);
    os_u32_store_seqcst(&ctl->step, 1);
    WAIT_FOR(os_u32_load_acquire(&ctl->stop));
}

static void sender_killed_in_its_part_of_a_send_is_not_waited_for(void) {
    struct control *ctl = new_control();
    struct end e;
    test_child child = child_start(take_a_part_and_hang, ctl);
    start_listening(&e, ctl);
    accept_one(&e);
    bool direct = copies_are_direct(&e);
    while (direct && !os_u32_load_acquire(&ctl->step)) {
        uint32_t received = os_u32_load_seqcst(&e.qp.recv_count);
        fake_post_receive(&e.qp, e.mem, 1 << 20);
        os_u32_store_release(&ctl->want, 1);
        WAIT_FOR(os_u32_load_seqcst(&e.qp.recv_count) != received ||
                 os_u32_load_acquire(&ctl->step));
        os_u32_store_release(&ctl->recv, os_u32_load_seqcst(&e.qp.recv_count));
    }
    uint32_t received = os_u32_load_seqcst(&e.qp.recv_count);
    child_kill(child);
    WAIT_FOR(os_u32_load_seqcst(&e.qp.disconnected));
    CHECK_EQ(os_u32_load_seqcst(&e.qp.recv_count), received);
    CHECK(!child_ended(child));
    close_end(&e);
    if (!direct) SKIP("copies are not direct here: long Sends go through the ring");
}

static void killed_target_ends_what_waits_for_it(void) {
    for (int polled = 0; polled < 2; polled++) {
        struct control *ctl = new_control();
        struct end e;
        test_child child = child_start(listen_and_wait, ctl);
        connect_to(&e, ctl);
        WAIT_FOR(os_u32_load_acquire(&ctl->step));
        struct fake_request *s = fake_post(&e.qp, TP_OP_SEND, 0, e.mem, 100000, 0, 0);
        struct fake_request *w =
            fake_post(&e.qp, TP_OP_WRITE, 0, e.mem, 8, os_u64_load_acquire(&ctl->mem), FAKE_REMOTE);
        child_kill(child);
        WAIT_FOR((polled ? e.qp.conn->ops->poll(e.qp.conn) : false,
                  os_u32_load_seqcst(&e.qp.disconnected)));
        CHECK(!s->done && !w->done); /* left to the core to cancel */
        CHECK(!child_ended(child));
        close_end(&e);
    }
}

static void connect_and_die(void *shared) {
    struct control *ctl = shared;
    struct end e;
    struct os_addr addr = { .family = 4, .ip = { 127, 0, 0, 1 } };
    init_end(&e);
    WAIT_FOR(os_u32_load_acquire(&ctl->port));
    addr.port = (uint16_t)os_u32_load_acquire(&ctl->port);
    struct tp_setup setup = make_setup(&e.qp, &e.share, 4, "hello");
    CHECK_EQ(lo_ops.connect(e.eng, NULL, &addr, &setup, &e.qp.conn), SN_OK);
    os_u32_store_seqcst(&ctl->step, 1);
    WAIT_FOR(os_u32_load_acquire(&ctl->stop));
}

static void caller_killed_before_the_answer_is_abandoned(void) {
    struct control *ctl = new_control();
    struct end e;
    test_child child = child_start(connect_and_die, ctl);
    start_listening(&e, ctl);
    WAIT_FOR(os_ptr_load_acquire(&e.request));
    WAIT_FOR(os_u32_load_acquire(&ctl->step));
    e.qp.conn = os_ptr_load_acquire(&e.request);
    child_kill(child);
    CHECK(!child_ended(child));
    WAIT_FOR(os_u32_load_seqcst(&e.qp.abandoned));
    struct tp_setup setup = make_setup(&e.qp, &e.share, 4, "yes");
    CHECK_EQ(e.qp.conn->ops->accept(e.qp.conn, &setup), SN_E_ABORTED);
    close_end(&e);
}

TEST_MAIN(TEST(operations_of_all_sizes_cross_processes),
          TEST(aligned_words_are_never_seen_half_written), TEST(last_byte_of_a_write_is_seen_last),
          TEST(token_ends_under_a_stream_of_writes),
          TEST(killed_writer_blocks_nobody_and_leaves_nothing),
          TEST(peer_killed_in_a_copy_is_not_waited_for),
          TEST(peer_that_becomes_another_program_is_not_waited_for),
          TEST(peer_whose_end_does_not_show_is_not_waited_for),
          TEST(sender_killed_in_its_part_of_a_send_is_not_waited_for),
          TEST(killed_target_ends_what_waits_for_it),
          TEST(caller_killed_before_the_answer_is_abandoned))
