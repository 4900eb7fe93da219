/* SPDX-License-Identifier: MIT
 * Adapters, versions, object headers, the life and the end of objects, and everything about making
 * connections: the documented statuses, each provoked.
 */
#include "kit.h"
#include "ndisndk.h"

/* ---- adapters ---- */

static void versions_are_negotiated(void) {
    static const struct {
        USHORT major, minor;
        NTSTATUS status;
        USHORT reported;
    } rows[] = {
        { 1, 0, STATUS_SUCCESS, 2 },          { 1, 1, STATUS_SUCCESS, 2 },
        { 1, 2, STATUS_SUCCESS, 2 },          { 1, 3, NDIS_STATUS_BAD_VERSION, 0 },
        { 2, 0, STATUS_SUCCESS, 1 },          { 2, 1, STATUS_SUCCESS, 1 },
        { 2, 2, NDIS_STATUS_BAD_VERSION, 0 }, { 0, 0, NDIS_STATUS_BAD_VERSION, 0 },
        { 3, 0, NDIS_STATUS_BAD_VERSION, 0 },
    };
    for (size_t i = 0; i < RTL_NUMBER_OF(rows); i++) {
        struct kit k;
        CHECK_NT(kit_open_version(&k, rows[i].major, rows[i].minor), rows[i].status);
        if (k.ad) {
            CHECK_EQ(k.info.Version.Major, rows[i].major);
            CHECK_EQ(k.info.Version.Minor, rows[i].reported);
            CHECK_EQ(k.ad->Header.Version.Minor, rows[i].reported);
            CHECK_EQ(k.info.RdmaTechnology, rows[i].major == 2 ? NdkiWarp : NdkUndefined);
        }
        kit_shut(&k);
    }
}

static void disabled_or_missing_adapter_cannot_be_opened(void) {
    struct kit k;
    NDK_VERSION version = { 1, 0 };
    NDK_ADAPTER *ad;
    softndk_set("adapter", "disabled");
    CHECK_NT(kit_open_version(&k, 1, 0), NDIS_STATUS_ADAPTER_NOT_READY);
    softndk_set("adapter", "enabled");
    CHECK_NT(k.ndk.WskOpenNdkAdapter(k.npi.Client, version, 0x7FFFFFFF, &ad), STATUS_NOT_FOUND);
    kit_shut(&k);
}

static void ndis_handlers_open_and_close(void) {
    const NDIS_NDK_PROVIDER_CHARACTERISTICS *c = SoftNdkGetProviderCharacteristics();
    NDIS_OPEN_NDK_ADAPTER_PARAMETERS parameters = { { 2, 0 }, 0, 0 };
    NDIS_HANDLE context = (NDIS_HANDLE)(ULONG_PTR)KIT_LOOPBACK;
    NDK_ADAPTER *ad = NULL;
    CHECK_EQ(c->Header.Type, NDIS_OBJECT_TYPE_NDK_PROVIDER_CHARACTERISTICS);
    CHECK_EQ(c->Header.Size, 0x18);
    CHECK_EQ(c->OpenNDKAdapterHandler(context, &parameters, &ad), NDIS_STATUS_SUCCESS);
    CHECK(ad != NULL);
    c->CloseNDKAdapterHandler(context, ad);
    parameters.Version.Major = 9;
    CHECK_EQ(c->OpenNDKAdapterHandler(context, &parameters, &ad), NDIS_STATUS_BAD_VERSION);
}

static void adapter_info_says_how_much_room_it_needs(void) {
    struct kit k;
    NDK_ADAPTER_INFO info;
    ULONG size = 0;
    CHECK_NT(kit_open_version(&k, 2, 0), STATUS_SUCCESS);
    CHECK_NT(k.ad->Dispatch->NdkQueryAdapterInfo(k.ad, NULL, &size), STATUS_BUFFER_TOO_SMALL);
    CHECK_EQ(size, sizeof info);
    size--;
    CHECK_NT(k.ad->Dispatch->NdkQueryAdapterInfo(k.ad, &info, &size), STATUS_BUFFER_TOO_SMALL);
    CHECK_EQ(size, sizeof info);
    CHECK_NT(k.ad->Dispatch->NdkQueryAdapterInfo(k.ad, &info, &size), STATUS_SUCCESS);
    CHECK(info.FRMRPageCount >= 16);
    CHECK(info.AdapterFlags & NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED);
    kit_shut(&k);
    CHECK_NT(kit_open_version(&k, 1, 0), STATUS_SUCCESS);
    size = 0x60; /* a consumer of version 1 */
    CHECK_NT(k.ad->Dispatch->NdkQueryAdapterInfo(k.ad, &info, &size), STATUS_SUCCESS);
    CHECK_EQ(size, 0x60);
    kit_shut(&k);
}

static void objects_have_their_headers_and_no_extension(void) {
    struct kit_pair p;
    GUID id;
    NDK_VERSION version = { 1, 0 };
    NDK_EXTENSION_INTERFACE ext;
    memset(&id, 7, sizeof id);
    kit_objects(&p);
    kit_listen(&p);
    p.a.connector = kit_connector(&p.k);
    struct {
        NDK_OBJECT_HEADER *header;
        NDK_OBJECT_TYPE type;
        NDK_FN_QUERY_EXTENSION_INTERFACE *query;
    } rows[] = {
        { &p.k.ad->Header, NdkObjectTypeAdapter, p.k.ad->Dispatch->NdkQueryExtension },
        { &p.k.pd->Header, NdkObjectTypePd, p.k.pd->Dispatch->NdkQueryExtension },
        { &p.a.cq.cq->Header, NdkObjectTypeCq, p.a.cq.cq->Dispatch->NdkQueryExtension },
        { &p.a.qp->Header, NdkObjectTypeQp, p.a.qp->Dispatch->NdkQueryExtension },
        { &p.mem.mr->Header, NdkObjectTypeMr, p.mem.mr->Dispatch->NdkQueryExtension },
        { &p.listener->Header, NdkObjectTypeListener, p.listener->Dispatch->NdkQueryExtension },
        { &p.a.connector->Header, NdkObjectTypeConnector,
          p.a.connector->Dispatch->NdkQueryExtension },
    };
    NDK_OBJECT_HEADER_RESERVED_BLOCK zero;
    memset(&zero, 0, sizeof zero);
    for (size_t i = 0; i < RTL_NUMBER_OF(rows); i++) {
        CHECK_EQ(rows[i].header->ObjectType, rows[i].type);
        CHECK_EQ(rows[i].header->Version.Major, 2);
        CHECK_EQ(rows[i].header->Version.Minor, 1);
        CHECK_BYTES(&rows[i].header->NdkReserved, &zero, sizeof zero);
        CHECK_NT(rows[i].query(rows[i].header, &id, version, &ext), STATUS_NOT_SUPPORTED);
    }
    kit_down(&p);
}

static void limits_are_checked_at_creation(void) {
    struct kit_pair p;
    struct kit_wait w;
    NDK_CQ *cq;
    NDK_QP *qp;
    NDK_SRQ *srq;
    kit_objects(&p);
    kit_wait_init(&w);
    NDK_ADAPTER_INFO *i = &p.k.info;
#define CQ(depth)                                                                                  \
    p.k.ad->Dispatch->NdkCreateCq(p.k.ad, depth, kit_notified, &p.a.cq, NULL, kit_created, &w, &cq)
#define QP(rd, id, rs, is, in)                                                                     \
    p.k.pd->Dispatch->NdkCreateQp(p.k.pd, p.a.cq.cq, p.a.cq.cq, NULL, rd, id, rs, is, in,          \
                                  kit_created, &w, &qp)
    CHECK_NT(CQ(i->MaxCqDepth + 1), STATUS_INVALID_PARAMETER);
    CHECK_NT(CQ(0), STATUS_INVALID_PARAMETER);
    CHECK_NT(QP(i->MaxReceiveQueueDepth + 1, 1, 1, 1, 0), STATUS_INVALID_PARAMETER);
    CHECK_NT(QP(1, i->MaxInitiatorQueueDepth + 1, 1, 1, 0), STATUS_INVALID_PARAMETER);
    CHECK_NT(QP(1, 1, i->MaxReceiveRequestSge + 1, 1, 0), STATUS_INVALID_PARAMETER);
    CHECK_NT(QP(1, 1, 1, i->MaxInitiatorRequestSge + 1, 0), STATUS_INVALID_PARAMETER);
    CHECK_NT(QP(1, 1, 1, 1, i->MaxInlineDataSize + 1), STATUS_INVALID_PARAMETER);
    CHECK_NT(p.k.pd->Dispatch->NdkCreateSrq(p.k.pd, i->MaxSrqDepth + 1, 1, 0, NULL, NULL, NULL,
                                            kit_created, &w, &srq),
             STATUS_INVALID_PARAMETER);
    CHECK_NT(p.k.pd->Dispatch->NdkCreateSrq(p.k.pd, 1, i->MaxReceiveRequestSge + 1, 0, NULL, NULL,
                                            NULL, kit_created, &w, &srq),
             STATUS_INVALID_PARAMETER);
    CHECK_EQ(COUNT(w.calls), 0);
    kit_down(&p);
}

/* ---- the end of objects ---- */

static void close_waits_for_successors_and_comes_once(void) {
    struct kit_pair p;
    struct kit_wait qp, cq;
    kit_up(&p);
    kit_wait_init(&qp);
    kit_wait_init(&cq);
    NDK_CQ *queue = p.a.cq.cq;
    NDK_QP *pair = p.a.qp;
    pair->Dispatch->NdkFlush(pair);
    CHECK_NT(pair->Dispatch->NdkCloseQp(&pair->Header, kit_closed, &qp), STATUS_PENDING);
    CHECK_NT(queue->Dispatch->NdkCloseCq(&queue->Header, kit_closed, &cq), STATUS_PENDING);
    p.a.qp = NULL;
    p.a.cq.cq = NULL;
    CHECK_EQ(COUNT(qp.calls), 0);
    CHECK_EQ(COUNT(cq.calls), 0);
    KIT_CLOSE(p.a.connector, NdkCloseConnector);
    CHECK(kit_wait_event(&qp.event));
    CHECK(kit_wait_event(&cq.event));
    CHECK_EQ(qp.irql, DISPATCH_LEVEL);
    kit_down(&p);
    CHECK_EQ(COUNT(qp.calls), 1);
    CHECK_EQ(COUNT(cq.calls), 1);
}

struct closer {
    NDK_CONNECTOR *connector;
    struct kit_wait closed;
    KEVENT done;
    NTSTATUS status;
};
static void close_in_callback(PVOID ctx, NTSTATUS status) {
    struct closer *c = (struct closer *)ctx;
    c->status = status;
    NTSTATUS st =
        c->connector->Dispatch->NdkCloseConnector(&c->connector->Header, kit_closed, &c->closed);
    if (st == STATUS_SUCCESS) kit_closed(&c->closed);
    KeSetEvent(&c->done, 0, FALSE);
}

static void object_may_be_closed_inside_its_own_callback(void) {
    struct kit_pair p;
    struct closer c;
    SOCKADDR_IN from = kit_address(0), nobody = kit_address(1);
    memset(&c, 0, sizeof c);
    kit_objects(&p);
    KeInitializeEvent(&c.done, NotificationEvent, FALSE);
    kit_wait_init(&c.closed);
    c.connector = kit_connector(&p.k);
    CHECK_NT(c.connector->Dispatch->NdkConnect(c.connector, p.a.qp, (SOCKADDR *)&from, sizeof from,
                                               (SOCKADDR *)&nobody, sizeof nobody, 1, 1, NULL, 0,
                                               close_in_callback, &c),
             STATUS_PENDING);
    CHECK(kit_wait_event(&c.done));
    CHECK(kit_wait_event(&c.closed.event));
    CHECK_NT(c.status, STATUS_CONNECTION_REFUSED);
    kit_down(&p);
}

/* ---- connect ---- */

static NTSTATUS connect_to(struct kit_pair *p, SOCKADDR_IN *from, SOCKADDR_IN *to, const void *pd,
                           ULONG pd_len, struct kit_wait *w) {
    kit_wait_init(w);
    return p->a.connector->Dispatch->NdkConnect(p->a.connector, p->a.qp, (SOCKADDR *)from,
                                                sizeof *from, (SOCKADDR *)to, sizeof *to, 3, 9, pd,
                                                pd_len, kit_request_done, w);
}

static void connect_failures_have_their_statuses(void) {
    struct kit_pair p;
    struct kit_wait w;
    SOCKADDR_IN from = kit_address(0), to = kit_address(1), foreign = kit_address(0);
    UCHAR data[1024] = { 0 };
    kit_objects(&p);
    p.a.connector = kit_connector(&p.k);
    CHECK_NT(kit_finish(&w, connect_to(&p, &from, &to, NULL, 0, &w)), STATUS_CONNECTION_REFUSED);
    KIT_CLOSE(p.a.connector, NdkCloseConnector);
    p.a.connector = kit_connector(&p.k);
    foreign.sin_addr.s_addr = RtlUlongByteSwap(0xC0000201); /* 192.0.2.1 */
    CHECK_NT(kit_finish(&w, connect_to(&p, &foreign, &to, NULL, 0, &w)), STATUS_INVALID_ADDRESS);
    CHECK_NT(connect_to(&p, &from, &to, data, p.k.info.MaxCallerData + 1, &w),
             STATUS_INVALID_PARAMETER);
    kit_wait_init(&w);
    CHECK_NT(p.a.connector->Dispatch->NdkCompleteConnect(p.a.connector, NULL, NULL,
                                                         kit_request_done, &w),
             STATUS_CONNECTION_INVALID);
    CHECK_NT(p.a.connector->Dispatch->NdkAccept(p.a.connector, p.a.qp, 1, 1, NULL, 0, NULL, NULL,
                                                kit_request_done, &w),
             STATUS_CONNECTION_INVALID);
    CHECK_NT(p.a.connector->Dispatch->NdkDisconnect(p.a.connector, kit_request_done, &w),
             STATUS_CONNECTION_INVALID);
    kit_down(&p);
}

static void data_and_limits_reach_both_sides(void) {
    struct kit_pair p;
    struct kit_wait con, acc, com;
    SOCKADDR_IN from = kit_address(0), a, b;
    ULONG in, out, len, alen = sizeof a, blen = sizeof b;
    char buf[300];
    kit_objects(&p);
    kit_listen(&p);
    p.a.connector = kit_connector(&p.k);
    NTSTATUS cs = connect_to(&p, &from, &p.address, "caller", 7, &con);
    CHECK(kit_wait_event(&p.incoming));
    NDK_CONNECTOR *b_c = p.b.connector, *a_c = p.a.connector;
    len = 0;
    CHECK_NT(b_c->Dispatch->NdkGetConnectionData(b_c, &in, &out, NULL, &len), STATUS_SUCCESS);
    CHECK(len >= 7); /* what to ask with */
    CHECK_EQ(in, 9);
    CHECK_EQ(out, 3);
    ULONG need = len;
    len = 3;
    CHECK_NT(b_c->Dispatch->NdkGetConnectionData(b_c, NULL, NULL, buf, &len),
             STATUS_BUFFER_TOO_SMALL);
    CHECK_EQ(len, need);
    CHECK_BYTES(buf, "cal", 3);
    len = sizeof buf;
    CHECK_NT(b_c->Dispatch->NdkGetConnectionData(b_c, NULL, NULL, buf, &len), STATUS_SUCCESS);
    CHECK_BYTES(buf, "caller", 7);
    kit_wait_init(&acc);
    NTSTATUS as = b_c->Dispatch->NdkAcceptEx(b_c, p.b.qp, 5, 2, "callee", 7, NULL, NULL,
                                             kit_request_done, &acc);
    CHECK_NT(kit_finish(&con, cs), STATUS_SUCCESS);
    CHECK_NT(a_c->Dispatch->NdkGetLocalAddress(a_c, NULL, &alen), STATUS_BUFFER_TOO_SMALL);
    CHECK_EQ(alen, sizeof a);
    len = sizeof buf;
    CHECK_NT(a_c->Dispatch->NdkGetConnectionData(a_c, &in, &out, buf, &len), STATUS_SUCCESS);
    CHECK_BYTES(buf, "callee", 7);
    CHECK_EQ(in, 2);
    CHECK_EQ(out, 5);
    kit_wait_init(&com);
    CHECK_NT(kit_finish(&com, a_c->Dispatch->NdkCompleteConnectEx(a_c, NULL, NULL, kit_request_done,
                                                                  &com)),
             STATUS_SUCCESS);
    CHECK_NT(kit_finish(&acc, as), STATUS_SUCCESS);
    CHECK_NT(a_c->Dispatch->NdkGetLocalAddress(a_c, (SOCKADDR *)&a, &alen), STATUS_SUCCESS);
    CHECK_NT(b_c->Dispatch->NdkGetPeerAddress(b_c, (SOCKADDR *)&b, &blen), STATUS_SUCCESS);
    CHECK_EQ(a.sin_port, b.sin_port);
    blen = sizeof b;
    CHECK_NT(a_c->Dispatch->NdkGetPeerAddress(a_c, (SOCKADDR *)&b, &blen), STATUS_SUCCESS);
    CHECK_EQ(b.sin_port, p.address.sin_port);
    kit_down(&p);
}

static void rejected_connect_is_refused_with_data(void) {
    struct kit_pair p;
    struct kit_wait con;
    SOCKADDR_IN from = kit_address(0);
    char buf[64];
    ULONG len = sizeof buf;
    kit_objects(&p);
    kit_listen(&p);
    p.a.connector = kit_connector(&p.k);
    NTSTATUS cs = connect_to(&p, &from, &p.address, NULL, 0, &con);
    CHECK(kit_wait_event(&p.incoming));
    CHECK_NT(p.b.connector->Dispatch->NdkReject(p.b.connector, "no", 3), STATUS_SUCCESS);
    CHECK_NT(kit_finish(&con, cs), STATUS_CONNECTION_REFUSED);
    CHECK_NT(p.a.connector->Dispatch->NdkGetConnectionData(p.a.connector, NULL, NULL, buf, &len),
             STATUS_SUCCESS);
    CHECK_BYTES(buf, "no", 3);
    kit_down(&p);
}

static void closing_an_unanswered_request_rejects_it(void) {
    struct kit_pair p;
    struct kit_wait con;
    SOCKADDR_IN from = kit_address(0);
    kit_objects(&p);
    kit_listen(&p);
    p.a.connector = kit_connector(&p.k);
    NTSTATUS cs = connect_to(&p, &from, &p.address, NULL, 0, &con);
    CHECK(kit_wait_event(&p.incoming));
    KIT_CLOSE(p.b.connector, NdkCloseConnector);
    CHECK_NT(kit_finish(&con, cs), STATUS_CONNECTION_REFUSED);
    kit_down(&p);
}

static void reject_after_the_answer_aborts_the_accept(void) {
    struct kit_pair p;
    struct kit_wait con, acc;
    SOCKADDR_IN from = kit_address(0);
    kit_objects(&p);
    kit_listen(&p);
    p.a.connector = kit_connector(&p.k);
    NTSTATUS cs = connect_to(&p, &from, &p.address, NULL, 0, &con);
    CHECK(kit_wait_event(&p.incoming));
    kit_wait_init(&acc);
    NTSTATUS as = p.b.connector->Dispatch->NdkAccept(p.b.connector, p.b.qp, 1, 1, NULL, 0, NULL,
                                                     NULL, kit_request_done, &acc);
    CHECK_NT(kit_finish(&con, cs), STATUS_SUCCESS);
    CHECK_NT(p.a.connector->Dispatch->NdkReject(p.a.connector, NULL, 0), STATUS_SUCCESS);
    CHECK_NT(kit_finish(&acc, as), STATUS_CONNECTION_ABORTED);
    kit_down(&p);
}

static void paused_listener_refuses_and_resumes(void) {
    struct kit_pair p;
    struct kit_wait con;
    SOCKADDR_IN from = kit_address(0);
    kit_objects(&p);
    kit_listen(&p);
    p.listener->Dispatch->NdkControlConnectEvents(p.listener, TRUE);
    p.a.connector = kit_connector(&p.k);
    CHECK_NT(kit_finish(&con, connect_to(&p, &from, &p.address, NULL, 0, &con)),
             STATUS_CONNECTION_REFUSED);
    KIT_CLOSE(p.a.connector, NdkCloseConnector);
    p.listener->Dispatch->NdkControlConnectEvents(p.listener, FALSE);
    kit_connect(&p);
    kit_down(&p);
}

static void address_stays_taken_until_listener_and_connectors_are_closed(void) {
    struct kit_pair p;
    struct kit_wait w, closed;
    NDK_LISTENER *second;
    kit_up(&p);
    KIT_CREATE(
        NDK_LISTENER, second,
        p.k.ad->Dispatch->NdkCreateListener(p.k.ad, kit_incoming, &p, kit_created, &kit_w, &kit_o));
    kit_wait_init(&w);
#define LISTEN()                                                                                   \
    kit_finish(&w, second->Dispatch->NdkListen(second, (SOCKADDR *)&p.address, sizeof p.address,   \
                                               kit_request_done, &w))
    CHECK_NT(LISTEN(), STATUS_SHARING_VIOLATION);
    kit_wait_init(&closed);
    CHECK_NT(p.listener->Dispatch->NdkCloseListener(&p.listener->Header, kit_closed, &closed),
             STATUS_PENDING);
    p.listener = NULL;
    CHECK_NT(LISTEN(), STATUS_SHARING_VIOLATION);
    KIT_CLOSE(p.b.connector, NdkCloseConnector);
    CHECK(kit_wait_event(&closed.event));
    KIT_CLOSE(second, NdkCloseListener);
    kit_down(&p);
}

static void listen_failures_have_their_statuses(void) {
    struct kit_pair p;
    struct kit_wait w;
    SOCKADDR_IN any = kit_address(0), foreign = kit_address(0);
    ULONG len = 4;
    kit_objects(&p);
    KIT_CREATE(
        NDK_LISTENER, p.listener,
        p.k.ad->Dispatch->NdkCreateListener(p.k.ad, kit_incoming, &p, kit_created, &kit_w, &kit_o));
    kit_wait_init(&w);
    foreign.sin_addr.s_addr = RtlUlongByteSwap(0xC0000201);
    CHECK_NT(p.listener->Dispatch->NdkGetLocalAddress(p.listener, NULL, &len),
             STATUS_INVALID_DEVICE_STATE);
    CHECK_NT(p.listener->Dispatch->NdkListen(p.listener, (SOCKADDR *)&foreign, sizeof foreign,
                                             kit_request_done, &w),
             STATUS_INVALID_ADDRESS);
    CHECK_NT(kit_finish(&w, p.listener->Dispatch->NdkListen(p.listener, (SOCKADDR *)&any,
                                                            sizeof any, kit_request_done, &w)),
             STATUS_SUCCESS);
    CHECK_NT(p.listener->Dispatch->NdkListen(p.listener, (SOCKADDR *)&any, sizeof any,
                                             kit_request_done, &w),
             STATUS_INVALID_DEVICE_STATE);
    CHECK_NT(p.listener->Dispatch->NdkGetLocalAddress(p.listener, NULL, &len),
             STATUS_BUFFER_TOO_SMALL);
    CHECK_EQ(len, sizeof any);
    kit_down(&p);
}

static void shared_endpoint_is_the_source_of_several_connections(void) {
    struct kit_pair p;
    struct kit_wait con, acc;
    SOCKADDR_IN any = kit_address(0), ours, seen;
    ULONG len = sizeof ours;
    NDK_SHARED_ENDPOINT *e;
    kit_objects(&p);
    KIT_CREATE(NDK_SHARED_ENDPOINT, e,
               p.k.ad->Dispatch->NdkCreateSharedEndpoint(p.k.ad, (SOCKADDR *)&any, sizeof any,
                                                         kit_created, &kit_w, &kit_o));
    CHECK_NT(e->Dispatch->NdkGetLocalAddress(e, (SOCKADDR *)&ours, &len), STATUS_SUCCESS);
    CHECK(ours.sin_port != 0);
    kit_wait_init(&con);
    NDK_SHARED_ENDPOINT *again;
    CHECK_NT(p.k.ad->Dispatch->NdkCreateSharedEndpoint(p.k.ad, (SOCKADDR *)&ours, sizeof ours,
                                                       kit_created, &con, &again),
             STATUS_SHARING_VIOLATION);
    for (int i = 0; i < 2; i++) { /* two destinations, one after the other */
        kit_listen(&p);
        p.a.connector = kit_connector(&p.k);
        kit_wait_init(&con);
        NTSTATUS cs = p.a.connector->Dispatch->NdkConnectWithSharedEndpoint(
            p.a.connector, p.a.qp, e, (SOCKADDR *)&p.address, sizeof p.address, 1, 1, NULL, 0,
            kit_request_done, &con);
        CHECK(kit_wait_event(&p.incoming));
        len = sizeof seen;
        CHECK_NT(p.b.connector->Dispatch->NdkGetPeerAddress(p.b.connector, (SOCKADDR *)&seen, &len),
                 STATUS_SUCCESS);
        CHECK_EQ(seen.sin_port, ours.sin_port);
        kit_wait_init(&acc);
        CHECK_NT(p.b.connector->Dispatch->NdkReject(p.b.connector, NULL, 0), STATUS_SUCCESS);
        CHECK_NT(kit_finish(&con, cs), STATUS_CONNECTION_REFUSED);
        KIT_CLOSE(p.a.connector, NdkCloseConnector);
        KIT_CLOSE(p.b.connector, NdkCloseConnector);
        KIT_CLOSE(p.listener, NdkCloseListener);
    }
    KIT_CLOSE(e, NdkCloseSharedEndpoint);
    kit_down(&p);
}

static void connector_and_pair_of_two_opens_work_together(void) {
    struct kit_pair p, other;
    struct kit_wait con, acc, com;
    SOCKADDR_IN from = kit_address(0);
    kit_objects(&p);
    kit_objects(&other);
    kit_listen(&p);
    p.a.connector = kit_connector(&p.k);
    NTSTATUS cs = connect_to(&p, &from, &p.address, NULL, 0, &con);
    CHECK(kit_wait_event(&p.incoming));
    kit_wait_init(&acc);
    NTSTATUS as = p.b.connector->Dispatch->NdkAccept(p.b.connector, other.b.qp, 1, 1, NULL, 0, NULL,
                                                     NULL, kit_request_done, &acc);
    CHECK_NT(kit_finish(&con, cs), STATUS_SUCCESS);
    kit_wait_init(&com);
    CHECK_NT(kit_finish(&com, p.a.connector->Dispatch->NdkCompleteConnect(p.a.connector, NULL, NULL,
                                                                          kit_request_done, &com)),
             STATUS_SUCCESS);
    CHECK_NT(kit_finish(&acc, as), STATUS_SUCCESS);
    KIT_CLOSE(p.b.connector, NdkCloseConnector);
    kit_down(&other);
    kit_down(&p);
}

static void every_post_can_be_made_to_fail(void) {
    struct kit_pair p;
    kit_up(&p);
    NDK_SGE s = kit_sge(&p.mem, 0, 8);
    softndk_set("fail-posts", "1");
    CHECK_NT(p.a.qp->Dispatch->NdkSend(p.a.qp, NULL, &s, 1, 0), STATUS_INSUFFICIENT_RESOURCES);
    CHECK_NT(p.a.qp->Dispatch->NdkReceive(p.a.qp, NULL, &s, 1), STATUS_INSUFFICIENT_RESOURCES);
    softndk_set("fail-posts", "0");
    CHECK_EQ(softndk_set("fail-posts", "many"), -1);
    CHECK_EQ(softndk_set("no-such-switch", "1"), -1);
    NDK_RESULT_EX r;
    CHECK_EQ(p.a.cq.cq->Dispatch->NdkGetCqResultsEx(p.a.cq.cq, &r, 1), 0);
    kit_down(&p);
}

/* Rules that the cases above break on purpose, by asking for what is refused. */
static void verifier_reported_nothing_else(void) {
    CHECK_EQ(softndk_report_leaks(), 0);
    int expected = softndk_violations("connect_args");
    CHECK_EQ(softndk_violations(NULL), expected);
}

TEST_MAIN(TEST(versions_are_negotiated), TEST(disabled_or_missing_adapter_cannot_be_opened),
          TEST(ndis_handlers_open_and_close), TEST(adapter_info_says_how_much_room_it_needs),
          TEST(objects_have_their_headers_and_no_extension), TEST(limits_are_checked_at_creation),
          TEST(close_waits_for_successors_and_comes_once),
          TEST(object_may_be_closed_inside_its_own_callback),
          TEST(connect_failures_have_their_statuses), TEST(data_and_limits_reach_both_sides),
          TEST(rejected_connect_is_refused_with_data),
          TEST(closing_an_unanswered_request_rejects_it),
          TEST(reject_after_the_answer_aborts_the_accept),
          TEST(paused_listener_refuses_and_resumes),
          TEST(address_stays_taken_until_listener_and_connectors_are_closed),
          TEST(listen_failures_have_their_statuses),
          TEST(shared_endpoint_is_the_source_of_several_connections),
          TEST(connector_and_pair_of_two_opens_work_together), TEST(every_post_can_be_made_to_fail),
          TEST(verifier_reported_nothing_else))
