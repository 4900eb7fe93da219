/* SPDX-License-Identifier: MIT
 * The peer is killed in the middle of it: the survivor is told once, each of its requests
 * has one result, and everything can be closed. The peer is this program again, as a process.
 */
#include "kit.h"
#include "host.h"

static unsigned hear(void) {
    unsigned n = 0;
    if (!host_child_says(KIT_SECONDS * 1000, &n)) FAIL("the child says nothing");
    return n;
}

static void kill_child(void) {
    CHECK(host_child_kill());
}

/* ---- the child ---- */

static void child_sends_for_ever(USHORT port) {
    struct kit_pair p;
    struct kit_wait con, com;
    SOCKADDR_IN from = kit_address(0), to = kit_address(port);
    kit_objects(&p);
    p.a.connector = kit_connector(&p.k);
    NDK_CONNECTOR *c = p.a.connector;
    kit_wait_init(&con);
    CHECK_NT(kit_finish(&con, c->Dispatch->NdkConnect(c, p.a.qp, (SOCKADDR *)&from, sizeof from,
                                                      (SOCKADDR *)&to, sizeof to, 1, 1, NULL, 0,
                                                      kit_request_done, &con)),
             STATUS_SUCCESS);
    kit_wait_init(&com);
    CHECK_NT(
        kit_finish(&com, c->Dispatch->NdkCompleteConnect(c, NULL, NULL, kit_request_done, &com)),
        STATUS_SUCCESS);
    NDK_SGE s = kit_sge(&p.mem, 0, 1000);
    for (ULONG i = 0;; i++) {
        CHECK_NT(p.a.qp->Dispatch->NdkSend(p.a.qp, KIT_CTX(i), &s, 1, 0), STATUS_SUCCESS);
        CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, i, STATUS_SUCCESS);
    }
}

static void child_accepts_and_stops(void) {
    struct kit_pair p;
    struct kit_wait acc;
    kit_objects(&p);
    NDK_SGE s = kit_sge(&p.mem, 0, 1000);
    for (int i = 0; i < KIT_DEPTH; i++)
        CHECK_NT(p.b.qp->Dispatch->NdkReceive(p.b.qp, NULL, &s, 1), STATUS_SUCCESS);
    kit_listen(&p);
    printf("%u\n", RtlUshortByteSwap(p.address.sin_port));
    fflush(stdout);
    CHECK(kit_wait_event(&p.incoming));
    kit_wait_init(&acc);
    CHECK_NT(
        kit_finish(&acc, p.b.connector->Dispatch->NdkAccept(p.b.connector, p.b.qp, 1, 1, NULL, 0,
                                                            NULL, NULL, kit_request_done, &acc)),
        STATUS_SUCCESS);
    host_wait_to_be_killed();
}

/* ---- the survivor ---- */

static void need_killed_ends(void) {
    if (!host_killed_ends()) SKIP("connections of a process that was killed may outlive it here");
}

static void sender_that_is_killed_leaves_the_receives(void) {
    need_killed_ends();
    for (ULONG after = 1; after <= 200; after += 66) {
        struct kit_pair p;
        struct kit_wait acc;
        NDK_RESULT_EX r;
        ULONG posted = 0, received = 0;
        kit_objects(&p);
        NDK_SGE to = kit_sge(&p.mem, 0, 1000);
        for (; posted < KIT_DEPTH; posted++)
            CHECK_NT(p.b.qp->Dispatch->NdkReceive(p.b.qp, KIT_CTX(posted), &to, 1), STATUS_SUCCESS);
        kit_listen(&p);
        CHECK(host_child_start("active", RtlUshortByteSwap(p.address.sin_port)));
        CHECK(kit_wait_event(&p.incoming));
        kit_wait_init(&acc);
        CHECK_NT(kit_finish(&acc, p.b.connector->Dispatch->NdkAccept(p.b.connector, p.b.qp, 1, 1,
                                                                     NULL, 0, kit_disconnected,
                                                                     &p.b, kit_request_done, &acc)),
                 STATUS_SUCCESS);
        for (; received < after; received++, posted++) {
            CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, received, STATUS_SUCCESS);
            CHECK_NT(p.b.qp->Dispatch->NdkReceive(p.b.qp, KIT_CTX(posted), &to, 1), STATUS_SUCCESS);
        }
        kill_child();
        CHECK(kit_wait_event(&p.b.disconnected));
        p.b.qp->Dispatch->NdkFlush(p.b.qp);
        for (bool flushed = false; received < posted; received++) {
            CHECK(kit_result(&p.b.cq, &r)); /* those that were sent, then those that were not */
            CHECK_PTR(r.RequestContext, KIT_CTX(received));
            if (r.Status == STATUS_SUCCESS) CHECK(!flushed);
            flushed = flushed || r.Status != STATUS_SUCCESS;
        }
        kit_down(&p);
        CHECK_EQ(COUNT(p.b.disconnects), 1);
    }
}

static void receiver_that_is_killed_ends_the_sends(void) {
    struct kit_pair p;
    struct kit_wait con, com;
    NDK_RESULT_EX r;
    enum { WAITING = 8 };
    need_killed_ends();
    CHECK(host_child_start("passive", 0));
    SOCKADDR_IN from = kit_address(0), to = kit_address((USHORT)hear());
    kit_objects(&p);
    p.a.connector = kit_connector(&p.k);
    NDK_CONNECTOR *c = p.a.connector;
    kit_wait_init(&con);
    CHECK_NT(kit_finish(&con, c->Dispatch->NdkConnect(c, p.a.qp, (SOCKADDR *)&from, sizeof from,
                                                      (SOCKADDR *)&to, sizeof to, 1, 1, NULL, 0,
                                                      kit_request_done, &con)),
             STATUS_SUCCESS);
    kit_wait_init(&com);
    CHECK_NT(kit_finish(&com, c->Dispatch->NdkCompleteConnect(c, kit_disconnected, &p.a,
                                                              kit_request_done, &com)),
             STATUS_SUCCESS);
    NDK_SGE s = kit_sge(&p.mem, 0, 1000);
    for (ULONG i = 0; i < KIT_DEPTH; i++) { /* what it has receives for */
        CHECK_NT(p.a.qp->Dispatch->NdkSend(p.a.qp, KIT_CTX(i), &s, 1, 0), STATUS_SUCCESS);
        CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, i, STATUS_SUCCESS);
    }
    for (ULONG i = 0; i < WAITING; i++) /* and what it has none for */
        CHECK_NT(p.a.qp->Dispatch->NdkSend(p.a.qp, KIT_CTX(100 + i), &s, 1, 0), STATUS_SUCCESS);
    kill_child();
    CHECK(kit_wait_event(&p.a.disconnected));
    /* If it had read all of them, its system ended the stream as an orderly peer does, and that
     * leaves requests where they are. */
    p.a.qp->Dispatch->NdkFlush(p.a.qp);
    for (ULONG i = 0; i < WAITING; i++) {
        CHECK(kit_result(&p.a.cq, &r));
        CHECK_PTR(r.RequestContext, KIT_CTX(100 + i));
        CHECK(!NT_SUCCESS(r.Status));
    }
    CHECK_EQ(p.a.cq.cq->Dispatch->NdkGetCqResultsEx(p.a.cq.cq, &r, 1), 0);
    kit_down(&p);
    CHECK_EQ(COUNT(p.a.disconnects), 1);
}

static void verifier_stayed_silent(void) {
    CHECK_EQ(softndk_report_leaks(), 0);
    CHECK_EQ(softndk_violations(NULL), 0);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = { TEST(sender_that_is_killed_leaves_the_receives),
                                              TEST(receiver_that_is_killed_ends_the_sends),
                                              TEST(verifier_stayed_silent) };
    if (argc == 4 && strcmp(argv[1], "--child") == 0) {
        host_limit_life(60);
        if (setjmp(test_escape) != 0) return 1;
        if (strcmp(argv[2], "active") == 0) child_sends_for_ever((USHORT)atoi(argv[3]));
        child_accepts_and_stops();
        return 1;
    }
    return test_main(argc, argv, cases, RTL_NUMBER_OF(cases));
}
