/* SPDX-License-Identifier: MIT
 * conform_peer.c - two processes: the same conversations as inside one, and the death of a peer at
 * any moment. The program starts itself again with a role; the parent is the passive side unless
 * the role says otherwise.
 *
 *   conform_peer --role NAME ADDRESS PORT SEED
 */
#include "fixture.h"

/* MESSAGES: the two processes may run on different systems. */
enum { DEPTH = 32, SLOT = 20000, MESSAGES = 120 };

/* What one side tells the other about its memory. */
struct hello {
    UINT64 address;
    UINT32 token;
    UINT32 bytes;
};

static uint64_t role_seed;
static struct sockaddr_storage parent_at;
static ULONG parent_at_len;

/* ---- the child's half of a connection ---- */

static struct fx_side *child_connect(struct fx *f, bool complete) {
    struct fx_pair_options o = { .depth = DEPTH };
    struct fx_pair *p = PAIR_CREATE(f, &o);
    CHECK_HR(RUN(f, p->a.connector, Connect, UNKNOWN(p->a.qp), ADDR(parent_at), parent_at_len, 8, 8,
                 "child", 5, fx_run_ov),
             ND_SUCCESS);
    if (complete) CHECK_HR(RUN(f, p->a.connector, CompleteConnect, fx_run_ov), ND_SUCCESS);
    return &p->a;
}

static void wait_to_be_killed(void) {
    for (;;)
        Sleep(1000);
}

/* Sends MESSAGES with random lengths, takes as many answers, verifies them, and leaves. */
static void role_talk(void) {
    struct fx *f = fx_begin();
    struct fx_side *s = child_connect(f, true);
    struct fx_memory *out = fx_memory(f, 0, SLOT, 0);
    struct fx_memory *in = fx_memory(f, 0, SLOT, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    uint64_t seed = role_seed;
    for (uint64_t i = 0; i < MESSAGES; i++) {
        size_t len = fx_random_below(&seed, i % 5 ? 300 : SLOT);
        fx_fill(out->bytes, len, role_seed, i, 0);
        RECEIVE(s, CTX(i), in, 0, SLOT);
        SEND(s, CTX(i), out, 0, len, 0);
        EXPECT_OK(f, s, Send, CTX(i), len);
        EXPECT_OK(f, s, Receive, CTX(i), len);
        CHECK_DATA(in->bytes, len, role_seed + 1, i, 0);
    }
    fx_disconnect(f, s);
    fx_end(f);
}

/* Reads and writes the parent's memory, which the parent described in a message. */
static void role_access(void) {
    struct fx *f = fx_begin();
    struct fx_pair_options o = { .depth = DEPTH };
    struct fx_pair *p = PAIR_CREATE(f, &o);
    struct fx_side *s = &p->a;
    struct fx_memory *m = fx_memory(f, 0, MIB(2), ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    struct hello h;
    RECEIVE(s, CTX(1), m, 0, sizeof h);
    CHECK_HR(RUN(f, s->connector, Connect, UNKNOWN(s->qp), ADDR(parent_at), parent_at_len, 8, 8,
                 NULL, 0, fx_run_ov),
             ND_SUCCESS);
    CHECK_HR(RUN(f, s->connector, CompleteConnect, fx_run_ov), ND_SUCCESS);
    EXPECT_OK(f, s, Receive, CTX(1), sizeof h); /* the passive side sends first */
    memcpy(&h, m->bytes, sizeof h);
    CHECK_EQ(h.bytes, MIB(2));
    ND2_SGE first = fx_sge(m, 0, MIB(1)), second = fx_sge(m, MIB(1), MIB(1));
    CHECK_HR(CALL(s->qp, Read, CTX(2), &first, 1, h.address, h.token, 0), ND_SUCCESS);
    EXPECT_OK(f, s, Read, CTX(2), MIB(1));
    CHECK_DATA(m->bytes, MIB(1), role_seed, 1, 0);
    fx_fill(m->bytes + MIB(1), MIB(1), role_seed, 2, 0);
    CHECK_HR(CALL(s->qp, Write, CTX(3), &second, 1, h.address + MIB(1), h.token, 0), ND_SUCCESS);
    EXPECT_OK(f, s, Write, CTX(3), MIB(1));
    SEND(s, CTX(4), NULL, 0, 0, 0);
    EXPECT_OK(f, s, Send, CTX(4), 0);
    /* And one byte too far. */
    ND2_SGE byte = fx_sge(m, 0, 1);
    CHECK_HR(CALL(s->qp, Write, CTX(5), &byte, 1, h.address + MIB(2), h.token, 0), ND_SUCCESS);
    EXPECT_ERROR(f, s, Write, ND_ACCESS_VIOLATION, CTX(5));
    fx_end(f);
}

static void role_too_long(void) {
    struct fx *f = fx_begin();
    struct fx_side *s = child_connect(f, true);
    struct fx_memory *m = fx_memory(f, 0, 1024, 0);
    SEND(s, CTX(1), m, 0, 1024, 0);
    EXPECT_ERROR(f, s, Send, ST_DATA_ERROR, CTX(1));
    fx_end(f);
}

static void role_unreceived(void) {
    struct fx *f = fx_begin();
    struct fx_side *s = child_connect(f, true);
    struct fx_memory *m = fx_memory(f, 0, MIB(4), 0);
    SEND(s, CTX(1), m, 0, MIB(4), 0);
    EXPECT_ERROR(f, s, Send, ND_IO_TIMEOUT, CTX(1));
    fx_end(f);
}

static void role_reject(void) {
    struct fx *f = fx_begin();
    struct fx_side *s = child_connect(f, false);
    CHECK_HR(CALL(s->connector, Reject, NULL, 0), ND_SUCCESS);
    fx_end(f);
}

static void role_release_answered(void) {
    struct fx *f = fx_begin();
    struct fx_side *s = child_connect(f, false);
    CHECK_EQ(fx_release(f, s->connector), 0);
    fx_end(f);
}

static void role_leave_at_once(void) {
    struct fx *f = fx_begin();
    struct fx_side *s = child_connect(f, true);
    fx_disconnect(f, s);
    fx_end(f);
}

/* Ends with everything open and work in progress. */
static void role_exit_alive(void) {
    struct fx *f = fx_begin();
    struct fx_side *s = child_connect(f, true);
    struct fx_memory *m = fx_memory(f, 0, MIB(1), FX_MR_ALL);
    for (int i = 0; i < 8; i++) {
        RECEIVE(s, CTX(i), m, 0, 64);
        SEND(s, CTX(i), m, 0, MIB(1), 0);
    }
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(s->receive_cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
    exit(0);
}

/* Gives the library back while requests are pending, which the client of a module must not do: what
 * is open goes on working, and so does the end of the process with a request pending. */
static void role_unload(void) {
    struct fx *f = fx_begin();
    IND2Listener *listener = fx_listener(f, 0);
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    OVERLAPPED *request = fx_overlapped(f), *notify = fx_overlapped(f);
    CHECK_HR(CALL(listener, Bind, ADDR(f->local), f->local_len), ND_SUCCESS);
    CHECK_HR(CALL(listener, Listen, 0), ND_SUCCESS);
    CHECK_HR(CALL(listener, GetConnectionRequest, UNKNOWN(fx_connector(f, 0)), request),
             ND_PENDING);
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, notify), ND_PENDING);
    CHECK(FreeLibrary(fx_library()->module));
    CHECK_HR(fx_library()->can_unload_now(), S_FALSE);
    CHECK_HR(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_HR(fx_finish(f, OVERLAPPED_OF(cq), notify, ND_PENDING), ND_CANCELED);
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, notify), ND_PENDING);
    exit(0);
}

/* Connects to the parent and dies before it completes the connection. */
static void role_die_answered(void) {
    struct fx *f = fx_begin();
    child_connect(f, false);
    _Exit(3);
}

static void role_die_connected(void) {
    struct fx *f = fx_begin();
    child_connect(f, true);
    _Exit(3);
}

/* Keeps every queue busy, until killed: Sends, Reads and Writes into the parent's memory. */
static void role_storm(void) {
    struct fx *f = fx_begin();
    struct fx_pair_options o = { .depth = DEPTH };
    struct fx_pair *p = PAIR_CREATE(f, &o);
    struct fx_side *s = &p->a;
    struct fx_memory *m = fx_memory(f, 0, MIB(2), FX_MR_ALL);
    struct hello h;
    uint64_t seed = role_seed;
    RECEIVE(s, CTX(1), m, 0, sizeof h);
    CHECK_HR(RUN(f, s->connector, Connect, UNKNOWN(s->qp), ADDR(parent_at), parent_at_len, 8, 8,
                 NULL, 0, fx_run_ov),
             ND_SUCCESS);
    CHECK_HR(RUN(f, s->connector, CompleteConnect, fx_run_ov), ND_SUCCESS);
    EXPECT_OK(f, s, Receive, CTX(1), sizeof h);
    memcpy(&h, m->bytes, sizeof h);
    for (int open = 0;;) {
        ND2_RESULT r;
        if (open < DEPTH) {
            size_t len = fx_random_below(&seed, MIB(1)) + 1;
            ND2_SGE sge = fx_sge(m, 0, len);
            HRESULT hr;
            switch (fx_random_below(&seed, 3)) {
            case 0:
                sge.BufferLength %= SLOT;
                hr = CALL(s->qp, Send, NULL, &sge, 1, 0);
                break;
            case 1:
                hr = CALL(s->qp, Read, NULL, &sge, 1, h.address, h.token, 0);
                break;
            default:
                hr = CALL(s->qp, Write, NULL, &sge, 1, h.address + MIB(1), h.token, 0);
                break;
            }
            CHECK_HR(hr, ND_SUCCESS);
            open++;
        }
        while (CALL(s->initiator_cq, GetResults, &r, 1) == 1) {
            CHECK_HR(r.Status, ND_SUCCESS);
            open--;
        }
    }
}

/* Offers memory to the parent and answers nothing, until killed. */
static void role_target(void) {
    struct fx *f = fx_begin();
    struct fx_memory *m = fx_memory(f, 0, MIB(2), FX_MR_ALL);
    struct fx_memory *word = fx_memory(f, 0, sizeof(struct hello), 0);
    struct fx_side *s = child_connect(f, true);
    struct hello h = { fx_remote(m, 0), m->remote, (UINT32)m->len };
    memcpy(word->bytes, &h, sizeof h);
    for (int i = 0; i < DEPTH; i++)
        RECEIVE(s, CTX(i), m, 0, SLOT);
    SEND(s, CTX(1), word, 0, sizeof h, 0);
    wait_to_be_killed();
}

/* Listens, tells the parent where, and never takes a request. */
static void role_silent_listener(void) {
    struct fx *f = fx_begin();
    struct fx_pair listener = { .b.host = 1 };
    fx_listen(f, &listener);
    struct fx_memory *word = fx_memory(f, 0, sizeof listener.at, 0);
    struct fx_side *s = child_connect(f, true);
    memcpy(word->bytes, &listener.at, sizeof listener.at);
    SEND(s, CTX(1), word, 0, sizeof listener.at, 0);
    EXPECT_OK(f, s, Send, CTX(1), sizeof listener.at);
    wait_to_be_killed();
}

static const struct {
    const char *name;
    void (*run)(void);
} roles[] = {
    { "talk", role_talk },
    { "access", role_access },
    { "too-long", role_too_long },
    { "unreceived", role_unreceived },
    { "reject", role_reject },
    { "release-answered", role_release_answered },
    { "leave-at-once", role_leave_at_once },
    { "exit-alive", role_exit_alive },
    { "unload", role_unload },
    { "die-answered", role_die_answered },
    { "die-connected", role_die_connected },
    { "storm", role_storm },
    { "target", role_target },
    { "silent-listener", role_silent_listener },
};

/* ---- the parent ---- */

struct meeting {
    struct fx *f;
    struct fx_pair *p; /* side b is ours */
    struct host_process *child;
    OVERLAPPED *request;
};

static struct host_process *start_child(const char *role, USHORT port, uint64_t seed) {
    char port_text[16], seed_text[32];
    snprintf(port_text, sizeof port_text, "%u", (unsigned)port);
    snprintf(seed_text, sizeof seed_text, "%llu", (unsigned long long)seed);
    const char *text = getenv("CONFORM_ADDR");
    const char *args[] = { "--role",  role,      text && *text ? text : "127.0.0.1",
                           port_text, seed_text, NULL };
    struct host_process *child = host_process_start(args);
    CHECK(child != NULL);
    return child;
}

/* A listener, and a child on its way to it. */
static struct meeting meet(const char *role, uint64_t seed) {
    struct meeting m = { .f = fx_begin() };
    struct fx_pair_options o = { .depth = DEPTH };
    m.p = PAIR_CREATE(m.f, &o);
    fx_listen(m.f, m.p);
    m.request = fx_request(m.f, m.p);
    m.child = start_child(role, fx_port(&m.p->at), seed);
    return m;
}

static OVERLAPPED *accept_child(struct meeting *m) {
    CHECK_HR(WAIT(m->f, m->p->listener, m->request), ND_SUCCESS);
    OVERLAPPED *ov = fx_overlapped(m->f);
    CHECK_HR(CALL(m->p->b.connector, Accept, UNKNOWN(m->p->b.qp), 8, 8, NULL, 0, ov), ND_PENDING);
    return ov;
}

static void accept_and_establish(struct meeting *m) {
    CHECK_HR(WAIT(m->f, m->p->b.connector, accept_child(m)), ND_SUCCESS);
}

static void wait_for_child(struct host_process *child, int expected_exit) {
    int code = -99;
    CHECK(host_process_wait(child, fx_deadline(), &code));
    host_process_free(child);
    CHECK_EQ(code, expected_exit);
}

static void part(struct meeting *m, int expected_exit) {
    wait_for_child(m->child, expected_exit);
    fx_end(m->f);
}

/* ---- conversations ---- */

static void two_processes_talk(void) {
    uint64_t tag = fx_seed() & 0xFFFFFFFF, seed = tag;
    struct meeting m = meet("talk", tag);
    struct fx_memory *in = fx_memory(m.f, 1, 2 * SLOT, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    struct fx_memory *out = fx_memory(m.f, 1, SLOT, 0);
    struct fx_side *s = &m.p->b;
    RECEIVE(s, CTX(0), in, 0, SLOT);
    accept_and_establish(&m);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        size_t len = fx_random_below(&seed, i % 5 ? 300 : SLOT);
        EXPECT_OK(m.f, s, Receive, CTX(i), len);
        CHECK_DATA(in->bytes + (i % 2) * SLOT, len, tag, i, 0);
        RECEIVE(s, CTX(i + 1), in, ((i + 1) % 2) * SLOT, SLOT);
        fx_fill(out->bytes, len, tag + 1, i, 0);
        SEND(s, CTX(i), out, 0, len, 0);
        EXPECT_OK(m.f, s, Send, CTX(i), len);
    }
    EXPECT_ERROR(m.f, s, Receive, ND_CANCELED, CTX(MESSAGES));
    CHECK_HR(RUN(m.f, s->connector, NotifyDisconnect, fx_run_ov), ND_SUCCESS);
    part(&m, 0);
}

static void send_hello(struct meeting *m, struct fx_memory *shown) {
    struct fx_memory *word = fx_memory(m->f, 1, sizeof(struct hello), 0);
    struct hello h = { fx_remote(shown, 0), shown->remote, (UINT32)shown->len };
    memcpy(word->bytes, &h, sizeof h);
    SEND(&m->p->b, CTX(0x4E), word, 0, sizeof h, 0);
    EXPECT_OK(m->f, &m->p->b, Send, CTX(0x4E), sizeof h);
}

static void one_process_accesses_the_memory_of_another(void) {
    uint64_t tag = fx_seed() & 0xFFFFFFFF;
    struct meeting m = meet("access", tag);
    struct fx_memory *shown = fx_memory(m.f, 1, MIB(2), FX_MR_ALL);
    fx_fill(shown->bytes, MIB(1), tag, 1, 0);
    RECEIVE(&m.p->b, CTX(1), NULL, 0, 0);
    RECEIVE(&m.p->b, CTX(2), NULL, 0, 0);
    accept_and_establish(&m);
    send_hello(&m, shown);
    EXPECT_OK(m.f, &m.p->b, Receive, CTX(1), 0);
    CHECK_DATA(shown->bytes + MIB(1), MIB(1), tag, 2, 0);
    EXPECT_ERROR(m.f, &m.p->b, Receive, ND_CANCELED, CTX(2));
    part(&m, 0);
}

static void message_too_long_between_processes(void) {
    struct meeting m = meet("too-long", 1);
    struct fx_memory *in = fx_memory(m.f, 1, 1023, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    RECEIVE(&m.p->b, CTX(1), in, 0, 1023);
    accept_and_establish(&m);
    EXPECT_ERROR(m.f, &m.p->b, Receive, ND_DATA_OVERRUN, CTX(1));
    part(&m, 0);
}

static void message_that_nobody_receives_between_processes(void) {
    struct meeting m = meet("unreceived", 1);
    accept_and_establish(&m);
    CHECK_HR(RUN(m.f, m.p->b.connector, NotifyDisconnect, fx_run_ov), ND_SUCCESS);
    EXPECT_EMPTY(m.p->b.receive_cq);
    part(&m, 0);
}

static void child_turns_the_answer_down(void) {
    static const char *const ways[] = { "reject", "release-answered" };
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        struct meeting m = meet(ways[i], 1);
        CHECK_HR(WAIT(m.f, m.p->b.connector, accept_child(&m)), ND_CONNECTION_REFUSED);
        part(&m, 0);
    }
}

static void child_leaves_at_once(void) {
    struct meeting m = meet("leave-at-once", 1);
    RECEIVE(&m.p->b, CTX(1), NULL, 0, 0);
    accept_and_establish(&m);
    EXPECT_ERROR(m.f, &m.p->b, Receive, ND_CANCELED, CTX(1));
    part(&m, 0);
}

/* ---- deaths ---- */

/* Everything posted has one result, the end is told, and our side can be closed. */
static void check_survivor(struct meeting *m, int receives, int initiators) {
    struct fx_side *s = &m->p->b;
    bool broken = false;
    while (receives > 0) {
        ND2_RESULT r;
        NEXT(m->f, s->receive_cq, &r);
        CHECK_EQ(r.RequestType, Nd2RequestTypeReceive);
        broken |= r.Status != ND_SUCCESS;
        CHECK_HR(r.Status, broken ? ND_CANCELED : ND_SUCCESS);
        receives--;
    }
    broken = false;
    while (initiators > 0) {
        ND2_RESULT r;
        NEXT(m->f, s->initiator_cq, &r);
        broken |= r.Status != ND_SUCCESS;
        CHECK_HR(r.Status, broken ? ND_CANCELED : ND_SUCCESS);
        initiators--;
    }
    CHECK_HR(RUN(m->f, s->connector, NotifyDisconnect, fx_run_ov), ND_SUCCESS);
    SEND(s, CTX(0xE), NULL, 0, 0, 0);
    EXPECT_ERROR(m->f, s, Send, ND_CANCELED, CTX(0xE));
    RECEIVE(s, CTX(0xE), NULL, 0, 0);
    EXPECT_ERROR(m->f, s, Receive, ND_CANCELED, CTX(0xE));
    fx_disconnect(m->f, s);
    EXPECT_EMPTY(s->receive_cq);
    EXPECT_EMPTY(s->initiator_cq);
}

static void child_exits_with_everything_open(void) {
    const char *lack = host_lacks(HOST_KILLED_ENDS);
    if (lack) SKIP("%s", lack);
    struct meeting m = meet("exit-alive", 1);
    struct fx_memory *in = fx_memory(m.f, 1, MIB(1), ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    for (int i = 0; i < 10; i++)
        RECEIVE(&m.p->b, CTX(i), in, 0, MIB(1));
    accept_and_establish(&m);
    check_survivor(&m, 10, 0);
    part(&m, 0);
}

static void library_given_back_with_requests_pending(void) {
    wait_for_child(start_child("unload", 1, 1), 0);
}

static void child_dies_in_the_middle_of_the_handshake(void) {
    struct meeting m = meet("die-answered", 1);
    HRESULT hr = WAIT(m.f, m.p->b.connector, accept_child(&m));
    CHECK(hr == ND_CONNECTION_REFUSED || hr == ND_CONNECTION_ABORTED);
    part(&m, 3);
}

static void child_dies_when_connected(void) {
    struct meeting m = meet("die-connected", 1);
    for (int i = 0; i < 5; i++)
        RECEIVE(&m.p->b, CTX(i), NULL, 0, 0);
    /* It may be gone before we know that it was there. */
    HRESULT hr = WAIT(m.f, m.p->b.connector, accept_child(&m));
    if (hr == ND_SUCCESS)
        check_survivor(&m, 5, 0);
    else
        CHECK(hr == ND_CONNECTION_REFUSED || hr == ND_CONNECTION_ABORTED);
    part(&m, 3);
}

/* Killed at a random moment while it sends, reads and writes as fast as it can. */
static void initiator_killed_in_full_flight(void) {
    const char *lack = host_lacks(HOST_KILLED_ENDS);
    if (lack) SKIP("%s", lack);
    uint64_t seed = fx_seed();
    for (int round = 0; round < HOST_ROUNDS(12); round++) {
        struct meeting m = meet("storm", fx_random(&seed) & 0xFFFFFFFF);
        struct fx_memory *shown = fx_memory(m.f, 1, MIB(2), FX_MR_ALL);
        struct fx_memory *in = fx_memory(m.f, 1, SLOT, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
        for (int i = 0; i < DEPTH; i++)
            RECEIVE(&m.p->b, CTX(i), in, 0, SLOT);
        accept_and_establish(&m);
        send_hello(&m, shown);
        /* So many of its messages, and then no more. */
        size_t messages = fx_random_below(&seed, round % 3 ? 20 : 300);
        for (size_t i = 0; i < messages; i++) {
            ND2_RESULT r;
            NEXT(m.f, m.p->b.receive_cq, &r);
            CHECK_HR(r.Status, ND_SUCCESS);
            RECEIVE(&m.p->b, CTX(0), in, 0, SLOT);
        }
        host_process_kill(m.child);
        check_survivor(&m, DEPTH, 0);
        part(&m, -1);
    }
}

/* Killed while we send to it, read from it and write to it. */
static void target_killed_in_full_flight(void) {
    const char *lack = host_lacks(HOST_KILLED_ENDS);
    if (lack) SKIP("%s", lack);
    uint64_t seed = fx_seed();
    for (int round = 0; round < HOST_ROUNDS(12); round++) {
        struct meeting m = meet("target", 1);
        struct fx_memory *mine = fx_memory(m.f, 1, MIB(2), FX_MR_ALL);
        struct fx_side *s = &m.p->b;
        struct hello h;
        RECEIVE(s, CTX(1), mine, 0, sizeof h);
        accept_and_establish(&m);
        EXPECT_OK(m.f, s, Receive, CTX(1), sizeof h);
        memcpy(&h, mine->bytes, sizeof h);
        for (int i = 0; i < 5; i++)
            RECEIVE(s, CTX(i), NULL, 0, 0);
        int open = 0, sent = 0;
        size_t results = fx_random_below(&seed, 200);
        for (size_t done = 0; done < results;) {
            ND2_RESULT r;
            while (open < DEPTH) {
                ND2_SGE sge = fx_sge(mine, 0, fx_random_below(&seed, MIB(1)) + 1);
                UINT64 at = h.address;
                int kind = (int)fx_random_below(&seed, 3);
                if (kind == 0 && sent == DEPTH) kind = 1;
                if (kind == 0) sge.BufferLength %= SLOT;
                HRESULT hr = kind == 0   ? CALL(s->qp, Send, NULL, &sge, 1, 0)
                             : kind == 1 ? CALL(s->qp, Read, NULL, &sge, 1, at, h.token, 0)
                                         : CALL(s->qp, Write, NULL, &sge, 1, at, h.token, 0);
                CHECK_HR(hr, ND_SUCCESS);
                sent += kind == 0;
                open++;
            }
            NEXT(m.f, s->initiator_cq, &r);
            CHECK_HR(r.Status, ND_SUCCESS);
            open--;
            done++;
        }
        host_process_kill(m.child);
        check_survivor(&m, 5, open);
        part(&m, -1);
    }
}

static void idle_peer_killed_is_noticed(void) {
    struct meeting m = meet("target", 1);
    struct hello h;
    struct fx_memory *in = fx_memory(m.f, 1, sizeof h, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    OVERLAPPED *ov = fx_overlapped(m.f);
    RECEIVE(&m.p->b, CTX(1), in, 0, sizeof h);
    accept_and_establish(&m);
    EXPECT_OK(m.f, &m.p->b, Receive, CTX(1), sizeof h);
    CHECK_HR(CALL(m.p->b.connector, NotifyDisconnect, ov), ND_PENDING);
    CHECK(!fx_is_done(ov));
    host_process_kill(m.child);
    CHECK_HR(WAIT(m.f, m.p->b.connector, ov), ND_SUCCESS);
    check_survivor(&m, 0, 0);
    part(&m, -1);
}

static void listener_killed_with_a_request_waiting_refuses_it(void) {
    struct meeting m = meet("silent-listener", 1);
    struct sockaddr_storage at;
    struct fx_memory *in = fx_memory(m.f, 1, sizeof at, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    RECEIVE(&m.p->b, CTX(1), in, 0, sizeof at);
    accept_and_establish(&m);
    EXPECT_OK(m.f, &m.p->b, Receive, CTX(1), sizeof at);
    memcpy(&at, in->bytes, sizeof at);
    OVERLAPPED *call = fx_overlapped(m.f);
    CHECK_HR(CALL(m.p->a.connector, Connect, UNKNOWN(m.p->a.qp), ADDR(at), m.f->local_len, 0, 0,
                  NULL, 0, call),
             ND_PENDING);
    CHECK_HR(CALL(m.p->a.connector, GetOverlappedResult, call, FALSE), ND_PENDING);
    host_process_kill(m.child);
    CHECK_HR(WAIT(m.f, m.p->a.connector, call), ND_CONNECTION_REFUSED);
    part(&m, -1);
}

/* Killed at any point of the way from its start to the first message. */
static void child_killed_at_any_moment_of_the_handshake(void) {
    uint64_t seed = fx_seed();
    for (int round = 0; round < HOST_ROUNDS(20); round++) {
        struct meeting m = meet("storm", 1);
        for (size_t turns = fx_random_below(&seed, 3000); turns > 0; turns--)
            Sleep(0); /* not a wait for anything: it spreads the moments */
        if (round % 2) CHECK_HR(WAIT(m.f, m.p->listener, m.request), ND_SUCCESS);
        host_process_kill(m.child);
        if (round % 2) {
            HRESULT hr =
                RUN(m.f, m.p->b.connector, Accept, UNKNOWN(m.p->b.qp), 0, 0, NULL, 0, fx_run_ov);
            CHECK(hr == ND_CONNECTION_ABORTED || hr == ND_CONNECTION_REFUSED || hr == ND_SUCCESS);
        } else {
            /* Its request may have arrived or not; ours can be withdrawn in either case. */
            CHECK_HR(CALL(m.p->listener, CancelOverlappedRequests), ND_SUCCESS);
            HRESULT hr = WAIT(m.f, m.p->listener, m.request);
            CHECK(hr == ND_CANCELED || hr == ND_SUCCESS);
        }
        part(&m, -1);
    }
}

static const struct test_case cases[] = {
    TEST(two_processes_talk),
    TEST(one_process_accesses_the_memory_of_another),
    TEST(message_too_long_between_processes),
    TEST(message_that_nobody_receives_between_processes),
    TEST(child_turns_the_answer_down),
    TEST(child_leaves_at_once),
    TEST(child_exits_with_everything_open),
    TEST(library_given_back_with_requests_pending),
    TEST(child_dies_in_the_middle_of_the_handshake),
    TEST(child_dies_when_connected),
    TEST(initiator_killed_in_full_flight),
    TEST(target_killed_in_full_flight),
    TEST(idle_peer_killed_is_noticed),
    TEST(listener_killed_with_a_request_waiting_refuses_it),
    TEST(child_killed_at_any_moment_of_the_handshake),
};

/* A role's checks leave through here: the child's exit code says that it failed. */
static int run_role(char **argv) {
    if (!host_parse_address(argv[1], &parent_at, &parent_at_len)) return 2;
    parent_at = fx_with_port(&parent_at, (USHORT)strtoul(argv[2], NULL, 10));
    role_seed = strtoull(argv[3], NULL, 10);
    for (size_t i = 0; i < COUNT_OF(roles); i++) {
        if (strcmp(roles[i].name, argv[0]) != 0) continue;
        if (setjmp(test_escape) != 0) {
            fprintf(stderr, "  role %s failed\n", argv[0]);
            return 1;
        }
        roles[i].run();
        return 0;
    }
    return 2;
}

int main(int argc, char **argv) {
    fx_escape = conform_escape;
    if (argc == 6 && strcmp(argv[1], "--role") == 0) return run_role(argv + 2);
    return test_main(argc, argv, cases, COUNT_OF(cases));
}
