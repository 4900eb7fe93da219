/* SPDX-License-Identifier: MIT
 * Two queue pairs of this process, connected over iWARP on loopback: what the functions of the
 * dispatch tables do, with each way to complete requests.
 */
#include "kit.h"

static void send_arrives_in_a_receive(void) {
    struct kit_pair p;
    kit_up(&p);
    for (int i = 0; i < 100; i++)
        p.mem.p[i] = (UCHAR)(i * 3);
    NDK_SGE to = kit_sge(&p.mem, 4096, 200), from = kit_sge(&p.mem, 0, 100);
    CHECK_NT(p.b.qp->Dispatch->NdkReceive(p.b.qp, KIT_CTX(1), &to, 1), STATUS_SUCCESS);
    CHECK_NT(p.a.qp->Dispatch->NdkSend(p.a.qp, KIT_CTX(2), &from, 1, 0), STATUS_SUCCESS);
    NDK_RESULT_EX r;
    CHECK(kit_result(&p.b.cq, &r));
    CHECK_NT(r.Status, STATUS_SUCCESS);
    CHECK_EQ(r.Type, NdkOperationTypeReceive);
    CHECK_EQ(r.BytesTransferred, 100);
    CHECK_PTR(r.QPContext, &p.b.qp);
    CHECK_PTR(r.RequestContext, KIT_CTX(1));
    CHECK_EQ(r.ProviderErrorCode, 0);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 2, STATUS_SUCCESS);
    CHECK_BYTES(p.mem.p + 4096, p.mem.p, 100);
    kit_down(&p);
}

TEST_MAIN(TEST(send_arrives_in_a_receive))
