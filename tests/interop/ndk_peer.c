/* SPDX-License-Identifier: MIT
 * ndk_peer.c - what only the kernel interface has, against verbs over siw in a virtual machine:
 * Send with Invalidate towards the peer. See nd_peer.c for all the rest.
 */
#include <stdio.h>
#include <string.h>
#include "ndk/kit.h"
#include "interop/guest.h"

static void expect_event(const char *name) {
    tell("event 0 10000");
    const char *text = read_answer();
    if (strncmp(text, "ok ", 3) != 0 || strncmp(text + 3, name, strlen(name)) != 0)
        FAIL("the peer's event is %s, not %s", text, name);
}

/* p->a becomes the active end of a connection to the machine. */
static void connect_out(struct kit_pair *p) {
    struct kit_wait con, com;
    SOCKADDR_IN from = kit_address(0), to = kit_address(host_port(7001));
    NDK_CONNECTOR *c = p->a.connector = kit_connector(&p->k);
    ASK("listen 7001");
    kit_wait_init(&con);
    NTSTATUS st =
        c->Dispatch->NdkConnect(c, p->a.qp, (SOCKADDR *)&from, sizeof from, (SOCKADDR *)&to,
                                sizeof to, 16, 16, NULL, 0, kit_request_done, &con);
    ASK("request 0 10000");
    ASK("qp 0 16 16 4 4");
    ASK("accept 0 16 16 -");
    CHECK_NT(kit_finish(&con, st), STATUS_SUCCESS);
    kit_wait_init(&com);
    CHECK_NT(kit_finish(&com, c->Dispatch->NdkCompleteConnect(c, kit_disconnected, &p->a,
                                                              kit_request_done, &com)),
             STATUS_SUCCESS);
    expect_event("ESTABLISHED");
}

/* flags: solicited is another opcode. */
static void invalidate_towards_siw(ULONG flags) {
    struct kit_pair p;
    unsigned long long addr;
    unsigned rkey;
    peer_call();
    kit_objects(&p);
    connect_out(&p);
    NDK_QP *qp = p.a.qp;
    const char *text = ASK("mr 0 4096 7");
    if (sscanf(text, "%llu %u", &addr, &rkey) != 2) FAIL("bad answer: %s", text);
    ASK("mr 1 4096 7");
    memset(p.mem.p, 0x5A, 4096);
    NDK_SGE s = kit_sge(&p.mem, 0, 100);
    ASK("fill 0 0 4096 1 7 0");
    ASK("recv 0 1 1 0 100");
    /* The token is good until the message that ends it. */
    NDK_SGE sink = kit_sge(&p.mem, 8192, 100);
    CHECK_NT(qp->Dispatch->NdkRead(qp, KIT_CTX(1), &sink, 1, addr, rkey, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeRead, 1, STATUS_SUCCESS);
    CHECK_NT(qp->Dispatch->NdkSendAndInvalidate(qp, KIT_CTX(2), &s, 1, flags, rkey),
             STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 2, STATUS_SUCCESS);
    text = ASK("poll 0 r 1 20000");
    if (strcmp(text, "1 1/0/128/100") != 0) FAIL("the peer's completion is %s", text);
    /* It is good no longer: a Write with it ends the connection and changes nothing. */
    CHECK_NT(qp->Dispatch->NdkWrite(qp, KIT_CTX(3), &s, 1, addr, rkey, 0), STATUS_SUCCESS);
    CHECK(kit_wait_event(&p.a.disconnected));
    expect_event("DISCONNECTED");
    ASK("check 0 0 4096 1 7 0");
    kit_down(&p);
    peer_hang_up();
}

static void send_with_invalidate_ends_a_region_of_siw(void) {
    invalidate_towards_siw(0);
}

static void solicited_send_with_invalidate_ends_a_region_of_siw(void) {
    invalidate_towards_siw(NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT);
}

static void verifier_stayed_silent(void) {
    CHECK_EQ(softndk_report_leaks(), 0);
    CHECK_EQ(softndk_violations(NULL), 0);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        TEST(send_with_invalidate_ends_a_region_of_siw),
        TEST(solicited_send_with_invalidate_ends_a_region_of_siw), TEST(verifier_stayed_silent)
    };
    return test_main(argc, argv, cases, RTL_NUMBER_OF(cases));
}
