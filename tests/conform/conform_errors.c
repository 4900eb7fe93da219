/* SPDX-License-Identifier: MIT
 * conform_errors.c - requests that fail: messages too long or unexpected, remote accesses that are
 * not allowed, local memory that is not there. Who learns what, and what becomes of the rest.
 */
#include "fixture.h"

static const size_t REGION_BYTES = 65536;

struct stage {
    struct fx *f;
    struct fx_pair *p;
    struct fx_memory *a, *b;
};

static struct stage open_stage(void) {
    struct stage s = { .f = fx_begin() };
    s.p = PAIR(s.f, NULL);
    s.a = fx_memory(s.f, 0, REGION_BYTES, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    s.b = fx_memory(s.f, 1, REGION_BYTES, FX_MR_ALL);
    return s;
}

/* After an error both ends are told, further requests are flushed, and Disconnect is in order. */
static void check_broken(struct stage *s) {
    CHECK_HR(RUN(s->f, s->p->a.connector, NotifyDisconnect, fx_run_ov), ND_SUCCESS);
    CHECK_HR(RUN(s->f, s->p->b.connector, NotifyDisconnect, fx_run_ov), ND_SUCCESS);
    SEND(&s->p->a, CTX(0xDEAD), NULL, 0, 0, 0);
    EXPECT_ERROR(s->f, &s->p->a, Send, ND_CANCELED, CTX(0xDEAD));
    SEND(&s->p->b, CTX(0xDEAD), NULL, 0, 0, 0);
    EXPECT_ERROR(s->f, &s->p->b, Send, ND_CANCELED, CTX(0xDEAD));
    fx_disconnect(s->f, &s->p->a);
    fx_disconnect(s->f, &s->p->b);
    EXPECT_EMPTY(s->p->a.receive_cq);
    EXPECT_EMPTY(s->p->a.initiator_cq);
    EXPECT_EMPTY(s->p->b.receive_cq);
    EXPECT_EMPTY(s->p->b.initiator_cq);
}

/* ---- messages and receives ---- */

static void message_longer_than_the_receive_fails_on_both_sides(void) {
    static const struct {
        size_t message, room;
    } cases[] = {
        { 1, 0 }, { 2, 1 }, { 1024, 1023 }, { 65536, 65535 }, { 65536, 1 }, { 9000, 100 }
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct stage s = open_stage();
        memset(s.b->bytes, 0x5D, REGION_BYTES);
        RECEIVE(&s.p->a, CTX(9), NULL, 0, 0);
        RECEIVE(&s.p->b, CTX(1), s.b, 0, cases[i].room);
        RECEIVE(&s.p->b, CTX(2), s.b, 0, REGION_BYTES);
        SEND(&s.p->a, CTX(1), s.a, 0, cases[i].message, 0);
        SEND(&s.p->a, CTX(2), s.a, 0, 1, 0);
        EXPECT_ERROR(s.f, &s.p->b, Receive, ND_DATA_OVERRUN, CTX(1));
        EXPECT_ERROR(s.f, &s.p->b, Receive, ND_CANCELED, CTX(2));
        EXPECT_ERROR(s.f, &s.p->a, Send, ST_DATA_ERROR, CTX(1));
        EXPECT_ERROR(s.f, &s.p->a, Send, ND_CANCELED, CTX(2));
        EXPECT_ERROR(s.f, &s.p->a, Receive, ND_CANCELED, CTX(9));
        for (size_t n = cases[i].room; n < REGION_BYTES; n++)
            CHECK_EQ(s.b->bytes[n], 0x5D); /* nothing behind the room */
        check_broken(&s);
        fx_end(s.f);
    }
}

static void messages_before_the_long_one_are_delivered(void) {
    struct stage s = open_stage();
    for (int i = 0; i < 5; i++)
        RECEIVE(&s.p->b, CTX(i), s.b, 0, 100);
    for (int i = 0; i < 5; i++)
        SEND(&s.p->a, CTX(i), s.a, 0, i == 3 ? 101 : 100, 0);
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(s.f, &s.p->b, Receive, CTX(i), 100);
        EXPECT_OK(s.f, &s.p->a, Send, CTX(i), 100);
    }
    EXPECT_ERROR(s.f, &s.p->b, Receive, ND_DATA_OVERRUN, CTX(3));
    EXPECT_ERROR(s.f, &s.p->b, Receive, ND_CANCELED, CTX(4));
    EXPECT_ERROR(s.f, &s.p->a, Send, ST_DATA_ERROR, CTX(3));
    EXPECT_ERROR(s.f, &s.p->a, Send, ND_CANCELED, CTX(4));
    check_broken(&s);
    fx_end(s.f);
}

/* A receive that comes a little late is in time. */
static void send_waits_for_a_late_receive(void) {
    struct stage s = open_stage();
    for (int i = 0; i < 20; i++) {
        size_t len = i % 2 ? REGION_BYTES : 10;
        fx_fill(s.a->bytes, len, 1, (uint64_t)i, 0);
        SEND(&s.p->a, CTX(i), s.a, 0, len, 0);
        EXPECT_EMPTY(s.p->b.receive_cq);
        EXPECT_EMPTY(s.p->a.initiator_cq);
        RECEIVE(&s.p->b, CTX(i), s.b, 0, REGION_BYTES);
        EXPECT_OK(s.f, &s.p->b, Receive, CTX(i), len);
        EXPECT_OK(s.f, &s.p->a, Send, CTX(i), len);
        CHECK_DATA(s.b->bytes, len, 1, (uint64_t)i, 0);
    }
    fx_end(s.f);
}

/* SoftND's grace time for a Send without a receive, over TCP; another provider has its own. */
static void wait_briefly(bool on) {
    host_setenv("SOFTND_IWARP_RNR_MS", on ? "500" : "3000");
}

static void send_that_nobody_receives_times_out_at_the_sender_only(void) {
    wait_briefly(true);
    struct stage s = open_stage();
    struct stage large = open_stage(); /* at the same time, since it may take seconds */
    wait_briefly(false);
    SEND(&s.p->a, CTX(1), s.a, 0, 100, 0);
    SEND(&s.p->a, CTX(2), s.a, 0, 100, 0);
    WRITE(&s.p->a, CTX(3), s.a, 0, 100, s.b, 0, 0);
    SEND(&large.p->a, CTX(1), large.a, 0, REGION_BYTES, 0);
    EXPECT_ERROR(s.f, &s.p->a, Send, ND_IO_TIMEOUT, CTX(1));
    EXPECT_ERROR(s.f, &s.p->a, Send, ND_CANCELED, CTX(2));
    EXPECT_ERROR(s.f, &s.p->a, Write, ND_CANCELED, CTX(3));
    EXPECT_EMPTY(s.p->b.receive_cq);
    EXPECT_EMPTY(s.p->b.initiator_cq);
    check_broken(&s);
    EXPECT_ERROR(large.f, &large.p->a, Send, ND_IO_TIMEOUT, CTX(1));
    EXPECT_EMPTY(large.p->b.receive_cq);
    check_broken(&large);
    fx_end(large.f);
    fx_end(s.f);
}

/* What was sent before, and Writes before it, are not affected. */
static void requests_before_the_unreceived_send_succeed(void) {
    wait_briefly(true);
    struct stage s = open_stage();
    wait_briefly(false);
    fx_fill(s.a->bytes, 200, 2, 1, 0);
    RECEIVE(&s.p->b, CTX(1), s.b, 0, 100);
    SEND(&s.p->a, CTX(1), s.a, 0, 100, 0);
    WRITE(&s.p->a, CTX(2), s.a, 100, 100, s.b, 100, 0);
    SEND(&s.p->a, CTX(3), s.a, 0, 100, 0);
    EXPECT_OK(s.f, &s.p->a, Send, CTX(1), 100);
    EXPECT_OK(s.f, &s.p->a, Write, CTX(2), 100);
    EXPECT_ERROR(s.f, &s.p->a, Send, ND_IO_TIMEOUT, CTX(3));
    EXPECT_OK(s.f, &s.p->b, Receive, CTX(1), 100);
    CHECK_DATA(s.b->bytes, 200, 2, 1, 0);
    check_broken(&s);
    fx_end(s.f);
}

/* ---- remote memory ---- */

enum remote_fault {
    ONE_TOO_MANY,
    ONE_BEFORE,
    BEHIND,
    FAR_AWAY,
    NO_TOKEN,
    WRONG_TOKEN,
    LOCAL_TOKEN,
    NO_RIGHT,
    DEREGISTERED_TOKEN,
    FAULTS
};

static const char *const fault_names[FAULTS] = {
    "one byte too many",     "one byte before", "behind the end", "far away",     "token 0",
    "token never given out", "local token",     "right missing",  "deregistered",
};

static void try_remote_fault(bool write, enum remote_fault fault, size_t len) {
    struct stage s = open_stage();
    size_t room = REGION_BYTES / 2;
    struct fx_memory *to = fx_memory_over(
        s.f, 1, s.b->bytes + 4096, room,
        fault == NO_RIGHT ? (write ? ND_MR_FLAG_ALLOW_REMOTE_READ : ND_MR_FLAG_ALLOW_REMOTE_WRITE)
                          : FX_MR_ALL);
    UINT64 at = fx_remote(to, 0);
    UINT32 token = to->remote;
    ND2_SGE sge = fx_sge(s.a, 0, len);
    switch (fault) {
    case ONE_TOO_MANY:
        at += room - len + 1;
        break;
    case ONE_BEFORE:
        at -= 1;
        break;
    case BEHIND:
        at += room;
        break;
    case FAR_AWAY:
        at = (UINT64)1 << 60;
        break;
    case NO_TOKEN:
        token = 0;
        break;
    case WRONG_TOKEN:
        token ^= 0x13572468;
        break;
    case LOCAL_TOKEN:
        token = to->local;
        break;
    case DEREGISTERED_TOKEN:
        fx_deregister(s.f, to);
        break;
    default:
        break;
    }
    if (fault == LOCAL_TOKEN && to->local == to->remote) { /* one token for both: nothing wrong */
        fx_end(s.f);
        return;
    }
    memset(s.a->bytes, 0x3C, REGION_BYTES);
    memset(s.b->bytes, 0xC3, REGION_BYTES);
    RECEIVE(&s.p->a, CTX(1), NULL, 0, 0);
    RECEIVE(&s.p->b, CTX(1), NULL, 0, 0);
    RECEIVE(&s.p->b, CTX(2), NULL, 0, 0);
    if (write)
        CHECK_HR(CALL(s.p->a.qp, Write, CTX(7), &sge, 1, at, token, 0), ND_SUCCESS);
    else
        CHECK_HR(CALL(s.p->a.qp, Read, CTX(7), &sge, 1, at, token, 0), ND_SUCCESS);
    SEND(&s.p->a, CTX(8), NULL, 0, 0, 0);
    if (write)
        EXPECT_ERROR(s.f, &s.p->a, Write, ND_ACCESS_VIOLATION, CTX(7));
    else
        EXPECT_ERROR(s.f, &s.p->a, Read, ND_ACCESS_VIOLATION, CTX(7));
    ND2_RESULT r;
    NEXT(s.f, s.p->a.initiator_cq, &r); /* a Send behind a Read may have got through */
    CHECK_PTR(r.RequestContext, CTX(8));
    CHECK_HR(r.Status, ND_CANCELED);
    EXPECT_ERROR(s.f, &s.p->a, Receive, ND_CANCELED, CTX(1));
    NEXT(s.f, s.p->b.receive_cq, &r);
    CHECK_PTR(r.RequestContext, CTX(1));
    CHECK(r.Status == ND_CANCELED || (!write && r.Status == ND_SUCCESS));
    EXPECT_ERROR(s.f, &s.p->b, Receive, ND_CANCELED, CTX(2));
    for (size_t i = 0; i < REGION_BYTES; i++) {
        CHECK_EQ(s.b->bytes[i], 0xC3);
        CHECK_EQ(s.a->bytes[i], 0x3C);
    }
    check_broken(&s);
    fx_end(s.f);
}

static void forbidden_write_fails_at_the_initiator_and_changes_nothing(void) {
    static const size_t lens[] = { 1, 100, 20000 };
    for (int fault = 0; fault < FAULTS; fault++) {
        printf("  %s\n", fault_names[fault]);
        for (size_t i = 0; i < COUNT_OF(lens); i++)
            try_remote_fault(true, (enum remote_fault)fault, lens[i]);
    }
}

static void forbidden_read_fails_at_the_initiator_and_changes_nothing(void) {
    static const size_t lens[] = { 1, 100, 20000 };
    for (int fault = 0; fault < FAULTS; fault++) {
        printf("  %s\n", fault_names[fault]);
        for (size_t i = 0; i < COUNT_OF(lens); i++)
            try_remote_fault(false, (enum remote_fault)fault, lens[i]);
    }
}

static void access_that_wraps_around_fails_at_the_initiator(void) {
    for (int write = 0; write < 2; write++) {
        struct stage s = open_stage();
        ND2_SGE sge = fx_sge(s.a, 0, 4096);
        UINT64 at = ~(UINT64)0 - 100;
        if (write) {
            CHECK_HR(CALL(s.p->a.qp, Write, CTX(7), &sge, 1, at, s.b->remote, 0), ND_SUCCESS);
            EXPECT_ERROR(s.f, &s.p->a, Write, ND_ACCESS_VIOLATION, CTX(7));
        } else {
            CHECK_HR(CALL(s.p->a.qp, Read, CTX(7), &sge, 1, at, s.b->remote, 0), ND_SUCCESS);
            EXPECT_ERROR(s.f, &s.p->a, Read, ND_ACCESS_VIOLATION, CTX(7));
        }
        check_broken(&s);
        fx_end(s.f);
    }
}

/* The guilty one is found among many, and those before it count. */
static void guilty_write_among_many_is_the_one_that_fails(void) {
    for (int bad = 0; bad < 10; bad += 3) {
        struct stage s = open_stage();
        fx_fill(s.a->bytes, REGION_BYTES, 3, 1, 0);
        for (int i = 0; i < 10; i++) {
            ND2_SGE sge = fx_sge(s.a, (size_t)i * 1000, 1000);
            UINT32 token = i == bad ? s.b->remote ^ 0x1000 : s.b->remote;
            CHECK_HR(
                CALL(s.p->a.qp, Write, CTX(i), &sge, 1, fx_remote(s.b, (size_t)i * 1000), token, 0),
                ND_SUCCESS);
        }
        for (int i = 0; i < 10; i++) {
            if (i < bad) EXPECT_OK(s.f, &s.p->a, Write, CTX(i), 1000);
            if (i == bad) EXPECT_ERROR(s.f, &s.p->a, Write, ND_ACCESS_VIOLATION, CTX(i));
            if (i > bad) EXPECT_ERROR(s.f, &s.p->a, Write, ND_CANCELED, CTX(i));
        }
        check_broken(&s);
        CHECK_DATA(s.b->bytes, (size_t)bad * 1000, 3, 1, 0);
        for (size_t i = (size_t)bad * 1000; i < REGION_BYTES; i++)
            CHECK_EQ(s.b->bytes[i], 0);
        fx_end(s.f);
    }
}

static void guilty_read_among_many_is_the_one_that_fails(void) {
    for (int bad = 0; bad < 10; bad += 3) {
        struct stage s = open_stage();
        fx_fill(s.b->bytes, REGION_BYTES, 4, 1, 0);
        for (int i = 0; i < 10; i++) {
            ND2_SGE sge = fx_sge(s.a, (size_t)i * 1000, 1000);
            UINT32 token = i == bad ? s.b->remote ^ 0x1000 : s.b->remote;
            CHECK_HR(
                CALL(s.p->a.qp, Read, CTX(i), &sge, 1, fx_remote(s.b, (size_t)i * 1000), token, 0),
                ND_SUCCESS);
        }
        for (int i = 0; i < 10; i++) {
            if (i < bad) EXPECT_OK(s.f, &s.p->a, Read, CTX(i), 1000);
            if (i == bad) EXPECT_ERROR(s.f, &s.p->a, Read, ND_ACCESS_VIOLATION, CTX(i));
            if (i > bad) EXPECT_ERROR(s.f, &s.p->a, Read, ND_CANCELED, CTX(i));
        }
        CHECK_DATA(s.a->bytes, (size_t)bad * 1000, 4, 1, 0);
        check_broken(&s);
        fx_end(s.f);
    }
}

/* The Send's result comes before the flush that the peer's next request causes. */
static void send_delivered_before_the_fault_is_a_success(void) {
    struct stage s = open_stage();
    RECEIVE(&s.p->a, CTX(1), s.a, 0, 24);
    RECEIVE(&s.p->b, CTX(2), NULL, 0, 0);
    SEND(&s.p->b, CTX(3), s.b, 0, 24, 0); /* what a target tells its initiator */
    EXPECT_OK(s.f, &s.p->a, Receive, CTX(1), 24);
    ND2_SGE sge = fx_sge(s.a, 0, 100);
    CHECK_HR(CALL(s.p->a.qp, Write, CTX(4), &sge, 1, fx_remote(s.b, REGION_BYTES), s.b->remote, 0),
             ND_SUCCESS);
    EXPECT_ERROR(s.f, &s.p->a, Write, ND_ACCESS_VIOLATION, CTX(4));
    EXPECT_OK(s.f, &s.p->b, Send, CTX(3), 24);
    EXPECT_ERROR(s.f, &s.p->b, Receive, ND_CANCELED, CTX(2));
    check_broken(&s);
    fx_end(s.f);
}

static void fault_on_one_connection_leaves_the_others(void) {
    struct stage s = open_stage();
    struct fx_pair *other = PAIR(s.f, NULL);
    ND2_SGE sge = fx_sge(s.a, 0, 100);
    CHECK_HR(CALL(s.p->a.qp, Write, CTX(4), &sge, 1, fx_remote(s.b, REGION_BYTES), s.b->remote, 0),
             ND_SUCCESS);
    EXPECT_ERROR(s.f, &s.p->a, Write, ND_ACCESS_VIOLATION, CTX(4));
    SYNC(s.f, &other->a, &other->b);
    WRITE(&other->a, CTX(5), s.a, 0, 100, s.b, 0, 0);
    EXPECT_OK(s.f, &other->a, Write, CTX(5), 100);
    check_broken(&s);
    fx_end(s.f);
}

/* ---- local memory ---- */

enum local_fault {
    PAST_END,
    BEFORE_START,
    LOCAL_WRAP,
    BAD_LOCAL_TOKEN,
    ZERO_LOCAL_TOKEN,
    FOREIGN_TOKEN,
    LOCAL_FAULTS
};

static ND2_SGE bad_sge(struct stage *s, const struct fx_memory *m, enum local_fault fault) {
    ND2_SGE sge = fx_sge(m, 0, 100);
    switch (fault) {
    case PAST_END:
        sge = fx_sge(m, m->len - 99, 100);
        break;
    case BEFORE_START:
        sge.Buffer = m->bytes - 1;
        break;
    case LOCAL_WRAP:
        sge.Buffer = (void *)(uintptr_t)-50;
        break;
    case BAD_LOCAL_TOKEN:
        sge.MemoryRegionToken ^= 0x24681357;
        break;
    case ZERO_LOCAL_TOKEN:
        sge.MemoryRegionToken = 0;
        break;
    default:
        sge = fx_sge(m == s->a ? s->b : s->a, 0, 100); /* of the other adapter instance */
        break;
    }
    return sge;
}

static void local_fault_of_a_request_is_its_result(void) {
    for (int fault = 0; fault < LOCAL_FAULTS; fault++)
        for (int kind = 0; kind < 3; kind++) {
            struct stage s = open_stage();
            ND2_SGE sge[2] = { fx_sge(s.a, 0, 50), bad_sge(&s, s.a, (enum local_fault)fault) };
            static const ND2_REQUEST_TYPE types[] = { Nd2RequestTypeSend, Nd2RequestTypeWrite,
                                                      Nd2RequestTypeRead };
            IND2QueuePair *qp = s.p->a.qp;
            UINT64 at = fx_remote(s.b, 0);
            RECEIVE(&s.p->b, CTX(1), s.b, 0, 1000);
            RECEIVE(&s.p->b, CTX(2), s.b, 0, 1000);
            SEND(&s.p->a, CTX(1), s.a, 0, 10, 0);
            HRESULT hr = kind == 0   ? CALL(qp, Send, CTX(2), sge, 2, 0)
                         : kind == 1 ? CALL(qp, Write, CTX(2), sge, 2, at, s.b->remote, 0)
                                     : CALL(qp, Read, CTX(2), sge, 2, at, s.b->remote, 0);
            CHECK_HR(hr, ND_SUCCESS);
            SEND(&s.p->a, CTX(3), s.a, 0, 10, 0);
            EXPECT_OK(s.f, &s.p->a, Send, CTX(1), 10);
            AT_HERE();
            fx_expect(s.f, &s.p->a, types[kind], ND_ACCESS_VIOLATION, CTX(2), FX_ANY_BYTES);
            EXPECT_ERROR(s.f, &s.p->a, Send, ND_CANCELED, CTX(3));
            EXPECT_OK(s.f, &s.p->b, Receive, CTX(1), 10);
            EXPECT_ERROR(s.f, &s.p->b, Receive, ND_CANCELED, CTX(2));
            check_broken(&s);
            fx_end(s.f);
        }
}

static void local_fault_of_a_receive_is_its_result(void) {
    for (int fault = 0; fault < LOCAL_FAULTS; fault++) {
        struct stage s = open_stage();
        ND2_SGE sge = bad_sge(&s, s.b, (enum local_fault)fault);
        CHECK_HR(CALL(s.p->b.qp, Receive, CTX(1), &sge, 1), ND_SUCCESS);
        RECEIVE(&s.p->b, CTX(2), s.b, 0, 100);
        SEND(&s.p->a, CTX(1), s.a, 0, 100, 0);
        EXPECT_ERROR(s.f, &s.p->b, Receive, ND_ACCESS_VIOLATION, CTX(1));
        EXPECT_ERROR(s.f, &s.p->b, Receive, ND_CANCELED, CTX(2));
        /* The sender learns that it failed, in whichever words. */
        ND2_RESULT r;
        NEXT(s.f, s.p->a.initiator_cq, &r);
        CHECK_PTR(r.RequestContext, CTX(1));
        CHECK_FAILED(r.Status);
        check_broken(&s);
        fx_end(s.f);
    }
}

static void receive_and_read_need_local_write(void) {
    for (int read = 0; read < 2; read++) {
        struct stage s = open_stage();
        struct fx_memory *ro = fx_memory(s.f, read ? 0 : 1, 100, ND_MR_FLAG_ALLOW_REMOTE_READ);
        memset(ro->bytes, 0x77, 100);
        if (read) {
            READ(&s.p->a, CTX(1), ro, 0, 100, s.b, 0, 0);
            EXPECT_ERROR(s.f, &s.p->a, Read, ND_ACCESS_VIOLATION, CTX(1));
        } else {
            RECEIVE(&s.p->b, CTX(1), ro, 0, 100);
            SEND(&s.p->a, CTX(1), s.a, 0, 100, 0);
            EXPECT_ERROR(s.f, &s.p->b, Receive, ND_ACCESS_VIOLATION, CTX(1));
            ND2_RESULT r;
            NEXT(s.f, s.p->a.initiator_cq, &r);
            CHECK_FAILED(r.Status);
        }
        for (int i = 0; i < 100; i++)
            CHECK_EQ(ro->bytes[i], 0x77);
        check_broken(&s);
        fx_end(s.f);
    }
}

static void local_and_remote_fault_at_once_is_an_access_violation(void) {
    for (int write = 0; write < 2; write++) {
        struct stage s = open_stage();
        IND2MemoryWindow *w = fx_window(s.f, 1);
        BIND(&s.p->b, CTX(1), s.b, w, 0, REGION_BYTES,
             ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE);
        UINT32 token = CALL(w, GetRemoteToken);
        EXPECT_OK(s.f, &s.p->b, Bind, CTX(1), 0);
        CHECK_HR(CALL(s.p->b.qp, Invalidate, CTX(2), UNKNOWN(w), 0), ND_SUCCESS);
        EXPECT_OK(s.f, &s.p->b, Invalidate, CTX(2), 0);
        RECEIVE(&s.p->b, CTX(3), NULL, 0, 0);
        ND2_SGE sge = fx_sge(s.a, 0, REGION_BYTES + 1);
        HRESULT hr = write ? CALL(s.p->a.qp, Write, CTX(4), &sge, 1, fx_remote(s.b, 0), token, 0)
                           : CALL(s.p->a.qp, Read, CTX(4), &sge, 1, fx_remote(s.b, 0), token, 0);
        CHECK_HR(hr, ND_SUCCESS);
        ND2_RESULT r;
        NEXT(s.f, s.p->a.initiator_cq, &r);
        CHECK_HR(r.Status, ND_ACCESS_VIOLATION);
        EXPECT_ERROR(s.f, &s.p->b, Receive, ND_CANCELED, CTX(3));
        check_broken(&s);
        fx_end(s.f);
    }
}

CONFORM_MAIN(TEST(message_longer_than_the_receive_fails_on_both_sides),
             TEST(messages_before_the_long_one_are_delivered), TEST(send_waits_for_a_late_receive),
             TEST(send_that_nobody_receives_times_out_at_the_sender_only),
             TEST(requests_before_the_unreceived_send_succeed),
             TEST(forbidden_write_fails_at_the_initiator_and_changes_nothing),
             TEST(forbidden_read_fails_at_the_initiator_and_changes_nothing),
             TEST(access_that_wraps_around_fails_at_the_initiator),
             TEST(guilty_write_among_many_is_the_one_that_fails),
             TEST(guilty_read_among_many_is_the_one_that_fails),
             TEST(send_delivered_before_the_fault_is_a_success),
             TEST(fault_on_one_connection_leaves_the_others),
             TEST(local_fault_of_a_request_is_its_result),
             TEST(local_fault_of_a_receive_is_its_result), TEST(receive_and_read_need_local_write),
             TEST(local_and_remote_fault_at_once_is_an_access_violation))
