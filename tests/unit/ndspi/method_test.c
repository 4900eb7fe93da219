/* SPDX-License-Identifier: MIT
 * method_test.c - each method's parameters: what is refused, and what reaches the core.
 */
#include <initguid.h>
#include "os/prim/pages.h"
#include "rig.h"
#include "support/portable.h"

static struct sockaddr_in v4(uint32_t ip, uint16_t port) {
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(ip) };
}

/* ---- address lists ---- */

static HRESULT provider_list(struct rig *r, void *buf, ULONG *pcb) {
    return IND2Provider_QueryAddressList(r->provider, buf, pcb);
}
static HRESULT adapter_list(struct rig *r, void *buf, ULONG *pcb) {
    return IND2Adapter_QueryAddressList(r->adapter, buf, pcb);
}
typedef HRESULT list_fn(struct rig *r, void *buf, ULONG *pcb);
static list_fn *const lists[] = { provider_list, adapter_list };

static void address_list_follows_the_size_query(void) {
    struct rig r = rig_open();
    ULONG need = 8 + 2 * 16 + 16 + 28;
    union {
        SOCKET_ADDRESS_LIST list;
        uint8_t raw[256];
    } u;
    for (size_t i = 0; i < SN_ARRAY_LEN(lists); i++) {
        ULONG sizes[] = { 0, 1, 24, need - 1 };
        for (size_t k = 0; k < SN_ARRAY_LEN(sizes); k++) {
            ULONG cb = sizes[k];
            memset(&u, 0xEE, sizeof u);
            CHECK_EQ(lists[i](&r, &u, &cb), ND_BUFFER_OVERFLOW);
            CHECK_EQ(cb, need);
            for (size_t b = 0; b < sizeof u; b++)
                CHECK_EQ(u.raw[b], 0xEE);
        }
        ULONG cb = 1000;
        CHECK_EQ(lists[i](&r, NULL, &cb), ND_BUFFER_OVERFLOW); /* no buffer is too small */
        CHECK_EQ(cb, need);
        CHECK_EQ(lists[i](&r, &u, NULL), ND_INVALID_PARAMETER_2);
        CHECK_EQ(lists[i](&r, nowhere(), &cb), ND_ACCESS_VIOLATION);
        ULONG good[] = { need, need + 1, sizeof u };
        for (size_t k = 0; k < SN_ARRAY_LEN(good); k++) {
            cb = good[k];
            memset(&u, 0xEE, sizeof u);
            CHECK_EQ(lists[i](&r, &u, &cb), ND_SUCCESS);
            CHECK_EQ(cb, need);
            CHECK_EQ(u.list.iAddressCount, 2);
            const SOCKET_ADDRESS *a = u.list.Address;
            CHECK_EQ(a[0].iSockaddrLength, 16);
            CHECK_EQ(a[1].iSockaddrLength, 28);
            CHECK_EQ(a[0].lpSockaddr->sa_family, AF_INET);
            CHECK_EQ(a[1].lpSockaddr->sa_family, AF_INET6);
            CHECK((uint8_t *)a[1].lpSockaddr + 28 == u.raw + need);
            CHECK_EQ(u.raw[need], 0xEE);
        }
    }
    rig_close(&r);
}

static void empty_address_list_asks_for_one_empty_list(void) {
    struct rig r = rig_open();
    fake.address_count = 0;
    for (size_t i = 0; i < SN_ARRAY_LEN(lists); i++) {
        SOCKET_ADDRESS_LIST list;
        memset(&list, 0xEE, sizeof list);
        ULONG cb = 0;
        CHECK_EQ(lists[i](&r, NULL, &cb), ND_BUFFER_OVERFLOW);
        CHECK_EQ(cb, sizeof list);
        CHECK_EQ(lists[i](&r, &list, &cb), ND_SUCCESS);
        CHECK_EQ(list.iAddressCount, 0);
        CHECK_EQ(cb, sizeof list);
    }
    rig_close(&r);
}

static void long_address_list_is_complete(void) {
    struct rig r = rig_open();
    fake.address_count = OS_NETIF_ADDRS_MAX;
    for (uint32_t i = 0; i < fake.address_count; i++)
        fake.addresses[i] = (struct os_addr){ .family = 4, .ip = { 192, 0, 2, (uint8_t)i } };
    static uint8_t raw[8 + OS_NETIF_ADDRS_MAX * 32];
    for (size_t i = 0; i < SN_ARRAY_LEN(lists); i++) {
        SOCKET_ADDRESS_LIST *list = (SOCKET_ADDRESS_LIST *)(void *)raw;
        ULONG cb = sizeof raw;
        CHECK_EQ(lists[i](&r, list, &cb), ND_SUCCESS);
        CHECK_EQ(cb, sizeof raw);
        CHECK_EQ(list->iAddressCount, OS_NETIF_ADDRS_MAX);
        for (int k = 0; k < OS_NETIF_ADDRS_MAX; k++) {
            struct sockaddr_in *sa = (struct sockaddr_in *)(void *)list->Address[k].lpSockaddr;
            CHECK_EQ(ntohl(sa->sin_addr.s_addr), 0xC0000200u + (unsigned)k);
        }
    }
    rig_close(&r);
}

static void loopback_addresses_come_last(void) {
    struct rig r = rig_open();
    fake.loopback = true;
    union {
        SOCKET_ADDRESS_LIST list;
        uint8_t raw[256];
    } u;
    ULONG cb = sizeof u;
    CHECK_EQ(provider_list(&r, &u, &cb), ND_SUCCESS);
    CHECK_EQ(u.list.iAddressCount, 3);
    const SOCKET_ADDRESS *entries = u.list.Address; /* more of them than the type says */
    struct sockaddr_in *last = (struct sockaddr_in *)(void *)entries[2].lpSockaddr;
    CHECK_EQ(ntohl(last->sin_addr.s_addr), INADDR_LOOPBACK);
    rig_close(&r);
}

static void address_list_failures_pass_through(void) {
    struct rig r = rig_open();
    for (size_t i = 0; i < SN_ARRAY_LEN(lists); i++) {
        ULONG cb = 0;
        fake.next = SN_E_NOMEM;
        CHECK_EQ(lists[i](&r, NULL, &cb), ND_NO_MEMORY);
        CHECK_EQ(cb, 0);
    }
    rig_close(&r);
}

/* ---- addresses as parameters ---- */

static void resolve_address_checks_its_parameters(void) {
    struct rig r = rig_open();
    struct sockaddr_in a4 = v4(0xC0000201, 9999);
    struct sockaddr_in6 a6 = { .sin6_family = AF_INET6 };
    struct sockaddr_in other = a4;
    other.sin_family = AF_UNIX;
    UINT64 id = 1;
    IND2Provider *p = r.provider;
    CHECK_EQ(IND2Provider_ResolveAddress(p, NULL, 16, &id), ND_INVALID_PARAMETER_1);
    CHECK_EQ(IND2Provider_ResolveAddress(p, (struct sockaddr *)&a4, 15, &id),
             ND_INVALID_PARAMETER_2);
    CHECK_EQ(IND2Provider_ResolveAddress(p, (struct sockaddr *)&a6, 27, &id),
             ND_INVALID_PARAMETER_2);
    CHECK_EQ(IND2Provider_ResolveAddress(p, (struct sockaddr *)&a4, 16, NULL),
             ND_INVALID_PARAMETER_3);
    CHECK_EQ(IND2Provider_ResolveAddress(p, (struct sockaddr *)&other, 16, &id),
             ND_INVALID_ADDRESS);
    CHECK_EQ(IND2Provider_ResolveAddress(p, nowhere(), 16, &id), ND_ACCESS_VIOLATION);
    fake.next = SN_E_ADDR_INVALID;
    CHECK_EQ(IND2Provider_ResolveAddress(p, (struct sockaddr *)&a4, 16, &id), ND_INVALID_ADDRESS);
    CHECK_EQ(id, 1);
    CHECK_EQ(IND2Provider_ResolveAddress(p, (struct sockaddr *)&a4, 0xFFFFFFFFu, &id), ND_SUCCESS);
    CHECK_EQ(id, FAKE_ADAPTER_ID);
    CHECK_EQ(fake.addr.family, 4);
    CHECK_EQ(fake.addr.port, 9999);
    CHECK_EQ(IND2Provider_ResolveAddress(p, (struct sockaddr *)&a6, 128, &id), ND_SUCCESS);
    CHECK_EQ(fake.addr.family, 6);
    rig_close(&r);
}

/* An IPv4 address at the very end of mapped memory: not a byte more may be read. */
static void address_is_not_read_beyond_its_family(void) {
    struct rig r = rig_open();
    size_t page = os_page_size();
    uint8_t *two = test_pages(2 * page);
    CHECK(two != NULL);
    CHECK(test_pages_hole(two + page, page));
    struct sockaddr_in a = v4(0xC0000201, 1);
    memcpy(two + page - sizeof a, &a, sizeof a);
    UINT64 id;
    CHECK_EQ(IND2Provider_ResolveAddress(
                 r.provider, (struct sockaddr *)(void *)(two + page - sizeof a), 128, &id),
             ND_SUCCESS);
    a.sin_family = AF_INET6; /* now it is too short for its family */
    memcpy(two + page - sizeof a, &a, sizeof a);
    CHECK_EQ(IND2Provider_ResolveAddress(
                 r.provider, (struct sockaddr *)(void *)(two + page - sizeof a), 128, &id),
             ND_ACCESS_VIOLATION);
    test_pages_free(two, 2 * page);
    rig_close(&r);
}

static void bind_and_listen_map_the_core_status(void) {
    static const struct {
        sn_status st;
        HRESULT hr;
    } rows[] = {
        { SN_OK, ND_SUCCESS },
        { SN_E_ADDR_INVALID, ND_INVALID_ADDRESS },
        { SN_E_ADDR_IN_USE, ND_SHARING_VIOLATION },
        { SN_E_ADDR_BOUND, SOFTND_ADDRESS_ALREADY_ASSOCIATED },
        { SN_E_NO_PORTS, ND_TOO_MANY_ADDRESSES },
        { SN_E_RESOURCES, ND_INSUFFICIENT_RESOURCES },
    };
    struct rig r = rig_open();
    IND2Connector *c = rig_connector(&r);
    IND2Listener *l = rig_listener(&r);
    struct sockaddr_in a = v4(0xC0000201, 4791);
    for (size_t i = 0; i < SN_ARRAY_LEN(rows); i++) {
        fake.next = rows[i].st;
        CHECK_EQ(IND2Connector_Bind(c, (struct sockaddr *)&a, sizeof a), rows[i].hr);
        CHECK_STR(fake.call, "connector_bind");
        fake.next = rows[i].st;
        CHECK_EQ(IND2Listener_Bind(l, (struct sockaddr *)&a, sizeof a), rows[i].hr);
        CHECK_STR(fake.call, "listener_bind");
        CHECK_EQ(fake.addr.port, 4791);
    }
    CHECK_EQ(IND2Connector_Bind(c, NULL, sizeof a), ND_INVALID_PARAMETER_1);
    CHECK_EQ(IND2Connector_Bind(c, (struct sockaddr *)&a, 2), ND_INVALID_PARAMETER_2);
    CHECK_EQ(IND2Listener_Bind(l, NULL, sizeof a), ND_INVALID_PARAMETER_1);
    CHECK_EQ(IND2Listener_Bind(l, (struct sockaddr *)&a, 0), ND_INVALID_PARAMETER_2);
    CHECK_EQ(IND2Listener_Listen(l, 9), ND_SUCCESS);
    CHECK_EQ(fake.count, 9);
    fake.next = SN_E_STATE;
    CHECK_EQ(IND2Listener_Listen(l, 0), ND_INVALID_DEVICE_STATE);
    OVERLAPPED ov = { 0 };
    IND2Connector *fresh = rig_connector(&r);
    CHECK_EQ(IND2Listener_GetConnectionRequest(l, (IUnknown *)fresh, NULL), ND_INVALID_PARAMETER_2);
    fake.next = SN_E_STATE;
    CHECK_EQ(IND2Listener_GetConnectionRequest(l, (IUnknown *)fresh, &ov), ND_INVALID_DEVICE_STATE);
    fake.next = SN_E_PARAM;
    CHECK_EQ(IND2Listener_GetConnectionRequest(l, (IUnknown *)fresh, &ov), ND_INVALID_PARAMETER_1);
    CHECK_EQ(IND2Connector_Release(fresh), 0);
    CHECK_EQ(IND2Connector_Release(c), 0);
    CHECK_EQ(IND2Listener_Release(l), 0);
    rig_close(&r);
}

static void address_getters_follow_the_size_query(void) {
    struct rig r = rig_open();
    IND2Connector *c = rig_connector(&r);
    IND2Listener *l = rig_listener(&r);
    struct sockaddr_in6 sa;
    for (int i = 0; i < 3; i++) {
        ULONG size = i == 1 ? 28 : 16;
        for (ULONG room = 0; room <= sizeof sa; room++)
            for (int buffer = 0; buffer < 2; buffer++) {
                ULONG cb = room;
                struct sockaddr *p = buffer ? (struct sockaddr *)&sa : NULL;
                memset(&sa, 0xEE, sizeof sa);
                HRESULT hr = i == 0   ? IND2Connector_GetLocalAddress(c, p, &cb)
                             : i == 1 ? IND2Connector_GetPeerAddress(c, p, &cb)
                                      : IND2Listener_GetLocalAddress(l, p, &cb);
                bool fits = buffer && room >= size;
                CHECK_EQ(hr, fits ? ND_SUCCESS : ND_BUFFER_OVERFLOW);
                CHECK_EQ(cb, size);
                CHECK_EQ((USHORT)sa.sin6_family, fits ? (i == 1 ? AF_INET6 : AF_INET) : 0xEEEE);
                if (size < sizeof sa) CHECK_EQ(((uint8_t *)&sa)[size], 0xEE);
            }
    }
    ULONG cb = sizeof sa;
    CHECK_EQ(IND2Connector_GetLocalAddress(c, nowhere(), &cb), ND_ACCESS_VIOLATION);
    CHECK_EQ(IND2Connector_GetLocalAddress(c, NULL, NULL), ND_INVALID_PARAMETER_2);
    CHECK_EQ(IND2Connector_GetPeerAddress(c, NULL, NULL), ND_INVALID_PARAMETER_2);
    CHECK_EQ(IND2Listener_GetLocalAddress(l, NULL, NULL), ND_INVALID_PARAMETER_2);
    fake.next = SN_E_NOT_CONNECTED;
    CHECK_EQ(IND2Connector_GetLocalAddress(c, (struct sockaddr *)&sa, &cb), ND_CONNECTION_INVALID);
    fake.next = SN_E_NOT_CONNECTED;
    CHECK_EQ(IND2Connector_GetPeerAddress(c, (struct sockaddr *)&sa, &cb), ND_CONNECTION_INVALID);
    fake.next = SN_E_STATE;
    CHECK_EQ(IND2Listener_GetLocalAddress(l, (struct sockaddr *)&sa, &cb), ND_INVALID_DEVICE_STATE);
    CHECK_EQ(IND2Connector_Release(c), 0);
    CHECK_EQ(IND2Listener_Release(l), 0);
    rig_close(&r);
}

/* ---- adapter ---- */

static void query_fills_every_field(void) {
    struct rig r = rig_open();
    ULONG versions[] = { ND_VERSION_1, ND_VERSION_2 };
    for (size_t i = 0; i < SN_ARRAY_LEN(versions); i++) {
        ND2_ADAPTER_INFO info;
        memset(&info, 0xEE, sizeof info);
        info.InfoVersion = versions[i];
        ULONG cb = sizeof info;
        CHECK_EQ(IND2Adapter_Query(r.adapter, &info, &cb), ND_SUCCESS);
        CHECK_EQ(cb, 96);
        CHECK_EQ(info.InfoVersion, versions[i]);
        CHECK(info.VendorId != 0xEEEE && info.DeviceId != 0xEEEE);
        CHECK_EQ(info.AdapterId, FAKE_ADAPTER_ID);
        CHECK_EQ(info.MaxRegistrationSize, 1ll << 40);
        CHECK_EQ(info.MaxWindowSize, 1ll << 41);
        CHECK_EQ(info.MaxInitiatorSge, 16);
        CHECK_EQ(info.MaxReceiveSge, 15);
        CHECK_EQ(info.MaxReadSge, 14);
        CHECK_EQ(info.MaxTransferLength, 1u << 30);
        CHECK_EQ(info.MaxInlineDataSize, 256);
        CHECK_EQ(info.MaxInboundReadLimit, 100);
        CHECK_EQ(info.MaxOutboundReadLimit, 101);
        CHECK_EQ(info.MaxReceiveQueueDepth, 4096);
        CHECK_EQ(info.MaxInitiatorQueueDepth, 4095);
        CHECK_EQ(info.MaxSharedReceiveQueueDepth, 1024);
        CHECK_EQ(info.MaxCompletionQueueDepth, 65536);
        CHECK_EQ(info.InlineRequestThreshold, 200);
        CHECK_EQ(info.LargeRequestThreshold, 9000);
        CHECK_EQ(info.MaxCallerData, 56);
        CHECK_EQ(info.MaxCalleeData, 148);
        CHECK_EQ(info.AdapterFlags, 0x10101);
    }
    rig_close(&r);
}

static void query_checks_version_and_size(void) {
    struct rig r = rig_open();
    union {
        ND2_ADAPTER_INFO info;
        uint8_t raw[sizeof(ND2_ADAPTER_INFO) + 4];
    } u;
    memset(&u, 0xEE, sizeof u);
    ULONG cb = 0;
    CHECK_EQ(IND2Adapter_Query(r.adapter, NULL, &cb), ND_BUFFER_OVERFLOW);
    CHECK_EQ(cb, 96);
    cb = 1000;
    CHECK_EQ(IND2Adapter_Query(r.adapter, NULL, &cb), ND_BUFFER_OVERFLOW);
    cb = 95;
    CHECK_EQ(IND2Adapter_Query(r.adapter, &u.info, &cb), ND_BUFFER_OVERFLOW);
    CHECK_EQ(cb, 96);
    ULONG wrong[] = { 0, 2, 0x10000, 0x20001, 0xEEEEEEEE };
    for (size_t i = 0; i < SN_ARRAY_LEN(wrong); i++) {
        u.info.InfoVersion = wrong[i];
        CHECK_EQ(IND2Adapter_Query(r.adapter, &u.info, &cb), ND_INVALID_PARAMETER);
        CHECK_EQ(cb, 96);
        CHECK_EQ(u.info.AdapterFlags, 0xEEEEEEEE);
    }
    u.info.InfoVersion = ND_VERSION_2;
    struct {
        ULONG cb, above;
    } wide = { sizeof u, 0xEEEEEEEE }; /* some clients pass a 64-bit length */
    CHECK_EQ(IND2Adapter_Query(r.adapter, &u.info, &wide.cb), ND_SUCCESS);
    CHECK_EQ(wide.cb, 96);
    CHECK_EQ(wide.above, 0xEEEEEEEE);
    CHECK_EQ(u.raw[96], 0xEE);
    CHECK_EQ(IND2Adapter_Query(r.adapter, &u.info, NULL), ND_INVALID_PARAMETER_2);
    CHECK_EQ(IND2Adapter_Query(r.adapter, nowhere(), &cb), ND_ACCESS_VIOLATION);
    CHECK_EQ(IND2Adapter_CreateOverlappedFile(r.adapter, NULL), E_POINTER);
    rig_close(&r);
}

static void notify_affinity_is_group_zero_and_the_process(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    IND2SharedReceiveQueue *srq = rig_srq(&r);
    USHORT group = 7;
    KAFFINITY mask = 0;
    CHECK_EQ(IND2CompletionQueue_GetNotifyAffinity(cq, &group, &mask), ND_SUCCESS);
    CHECK_EQ(group, 0);
    CHECK(mask != 0);
    KAFFINITY again = 0;
    CHECK_EQ(IND2SharedReceiveQueue_GetNotifyAffinity(srq, &group, &again), ND_SUCCESS);
    CHECK(again == mask);
    CHECK_EQ(IND2CompletionQueue_GetNotifyAffinity(cq, NULL, &mask), ND_INVALID_PARAMETER);
    CHECK_EQ(IND2CompletionQueue_GetNotifyAffinity(cq, &group, NULL), ND_INVALID_PARAMETER);
    CHECK_EQ(IND2SharedReceiveQueue_GetNotifyAffinity(srq, NULL, NULL), ND_INVALID_PARAMETER);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    CHECK_EQ(IND2SharedReceiveQueue_Release(srq), 0);
    rig_close(&r);
}

/* ---- queues ---- */

static void resize_and_modify_map_the_core_status(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    IND2SharedReceiveQueue *srq = rig_srq(&r);
    CHECK_EQ(IND2CompletionQueue_Resize(cq, 99), ND_SUCCESS);
    CHECK_EQ(fake.count, 99);
    CHECK_EQ(IND2SharedReceiveQueue_Modify(srq, 98, 97), ND_SUCCESS);
    CHECK_EQ(fake.count, 98);
    CHECK_EQ(fake.type, 97);
    fake.next = SN_E_PARAM;
    CHECK_EQ(IND2CompletionQueue_Resize(cq, 0), ND_INVALID_PARAMETER);
    fake.next = SN_E_BUFFER_SMALL;
    CHECK_EQ(IND2CompletionQueue_Resize(cq, 1), ND_BUFFER_OVERFLOW);
    fake.next = SN_E_PARAM;
    CHECK_EQ(IND2SharedReceiveQueue_Modify(srq, 99999, 0), ND_INVALID_PARAMETER);
    fake.next = SN_E_BUFFER_SMALL;
    CHECK_EQ(IND2SharedReceiveQueue_Modify(srq, 1, 0), ND_BUFFER_OVERFLOW);
    CHECK_EQ(IND2SharedReceiveQueue_Notify(srq, NULL), ND_INVALID_PARAMETER_1);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    CHECK_EQ(IND2SharedReceiveQueue_Release(srq), 0);
    rig_close(&r);
}

static void notify_type_reaches_the_core(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    for (ULONG type = ND_CQ_NOTIFY_ERRORS; type <= ND_CQ_NOTIFY_SOLICITED; type++) {
        OVERLAPPED ov = { 0 };
        CHECK_EQ(IND2CompletionQueue_Notify(cq, type, &ov), ND_PENDING);
        CHECK_EQ(fake.type, type);
        CHECK(fake_complete_oldest(SN_OK));
    }
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    rig_close(&r);
}

static void get_results_translates_in_batches(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    int tag[64];
    ND2_RESULT out[65];
    for (ULONG want = 0; want <= 65; want++)
        for (uint32_t have = 0; have <= 64; have += 8) {
            for (uint32_t i = 0; i < have; i++)
                fake.completions[i] = (struct rd_completion){
                    .status = i % 2 ? SN_E_CANCELED : SN_OK,
                    .bytes = 100 + i,
                    .qp_context = &tag[0],
                    .request_context = &tag[i],
                    .type = i % 6,
                };
            fake.completion_count = have;
            fake.polls = 0;
            memset(out, 0xEE, sizeof out);
            ULONG got = IND2CompletionQueue_GetResults(cq, out, want);
            CHECK_EQ(got, SN_MIN(want, have));
            for (ULONG i = 0; i < got; i++) {
                CHECK_EQ(out[i].Status, i % 2 ? ND_CANCELED : ND_SUCCESS);
                CHECK_EQ(out[i].BytesTransferred, 100 + i);
                CHECK_PTR(out[i].QueuePairContext, &tag[0]);
                CHECK_PTR(out[i].RequestContext, &tag[i]);
                CHECK_EQ(out[i].RequestType, i % 6);
            }
            if (want < 65) CHECK_EQ(((uint8_t *)&out[got])[0], 0xEE);
            if (want == 1) CHECK_EQ(fake.polls, 1);
        }
    fake.completion_count = 0;
    CHECK_EQ(IND2CompletionQueue_GetResults(cq, NULL, 1), 0);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    rig_close(&r);
}

/* ---- posts ---- */

/* Which of the 32 flag bits each request takes, and as what they arrive. */
static const struct {
    ULONG nd;
    uint32_t rd;
} bits[] = {
    { ND_OP_FLAG_SILENT_SUCCESS, RD_POST_SILENT },
    { ND_OP_FLAG_READ_FENCE, RD_POST_FENCE },
    { ND_OP_FLAG_SEND_AND_SOLICIT_EVENT, RD_POST_SOLICIT },
    { ND_OP_FLAG_INLINE, RD_POST_INLINE },
};
static uint32_t arrive(ULONG nd) {
    uint32_t rd = 0;
    for (size_t i = 0; i < SN_ARRAY_LEN(bits); i++)
        if (nd & bits[i].nd) rd |= bits[i].rd;
    return rd;
}

static void request_flags_are_checked_and_translated(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    IND2QueuePair *qp = rig_qp(&r, cq);
    IND2MemoryRegion *mr = rig_region(&r);
    IND2MemoryWindow *mw = rig_window(&r);
    ND2_SGE sge[2] = { { &r, 8, 1 }, { &r, 8, 1 } };
    for (ULONG flags = 0; flags < 64; flags++) {
        bool send = !(flags & ~0x27u), write = !(flags & ~0x23u), bind = !(flags & ~0x1Bu),
             inv = !(flags & ~0x3u);
        CHECK_EQ(IND2QueuePair_Send(qp, &sge, sge, 2, flags),
                 send ? ND_SUCCESS : ND_INVALID_PARAMETER_4);
        if (send) {
            CHECK_STR(fake.call, "qp_send");
            CHECK_EQ(fake.flags, arrive(flags));
            CHECK_PTR(fake.sge, sge);
            CHECK_PTR(fake.context, &sge);
            CHECK_EQ(fake.count, 2);
            CHECK_EQ(fake.remote_token, 0);
        }
        CHECK_EQ(IND2QueuePair_Write(qp, &sge, sge, 1, 0x123456789ull, 42, flags),
                 write ? ND_SUCCESS : ND_INVALID_PARAMETER_6);
        if (write) {
            CHECK_STR(fake.call, "qp_write");
            CHECK_EQ(fake.flags, arrive(flags));
            CHECK_EQ(fake.remote_addr, 0x123456789ll);
            CHECK_EQ(fake.remote_token, 42);
        }
        CHECK_EQ(IND2QueuePair_Read(qp, &sge, sge, 1, 0x123456780ull, 43, flags),
                 write ? ND_SUCCESS : ND_INVALID_PARAMETER_6);
        if (write) {
            CHECK_STR(fake.call, "qp_read");
            CHECK_EQ(fake.flags, arrive(flags & ~(ULONG)ND_OP_FLAG_INLINE));
            CHECK_EQ(fake.remote_addr, 0x123456780ll);
            CHECK_EQ(fake.remote_token, 43);
        }
        CHECK_EQ(IND2QueuePair_Bind(qp, &sge, (IUnknown *)mr, (IUnknown *)mw, sge, 16, flags),
                 bind ? ND_SUCCESS : ND_INVALID_PARAMETER_6);
        if (bind) {
            CHECK_STR(fake.call, "qp_bind");
            CHECK_EQ(fake.flags, flags & 3);
            CHECK_EQ(fake.rights,
                     (flags & 8 ? RD_REMOTE_READ : 0) | (flags & 16 ? RD_REMOTE_WRITE : 0));
            CHECK_PTR(fake.buf, sge);
            CHECK_EQ(fake.len, 16);
        }
        CHECK_EQ(IND2QueuePair_Invalidate(qp, &sge, (IUnknown *)mw, flags),
                 inv ? ND_SUCCESS : ND_INVALID_PARAMETER_3);
        if (inv) CHECK_EQ(fake.flags, flags);
    }
    for (unsigned bit = 6; bit < 32; bit++) {
        ULONG f = 1u << bit;
        CHECK_EQ(IND2QueuePair_Send(qp, NULL, sge, 1, f), ND_INVALID_PARAMETER_4);
        CHECK_EQ(IND2QueuePair_Write(qp, NULL, sge, 1, 0, 0, f), ND_INVALID_PARAMETER_6);
        CHECK_EQ(IND2QueuePair_Read(qp, NULL, sge, 1, 0, 0, f), ND_INVALID_PARAMETER_6);
        CHECK_EQ(IND2QueuePair_Bind(qp, NULL, (IUnknown *)mr, (IUnknown *)mw, sge, 1, f),
                 ND_INVALID_PARAMETER_6);
        CHECK_EQ(IND2QueuePair_Invalidate(qp, NULL, (IUnknown *)mw, f), ND_INVALID_PARAMETER_3);
    }
    CHECK_EQ(IND2MemoryWindow_Release(mw), 0);
    CHECK_EQ(IND2MemoryRegion_Release(mr), 0);
    CHECK_EQ(IND2QueuePair_Release(qp), 0);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    rig_close(&r);
}

static void missing_sge_array_is_refused_unless_empty(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    IND2QueuePair *qp = rig_qp(&r, cq);
    IND2SharedReceiveQueue *srq = rig_srq(&r);
    CHECK_EQ(IND2QueuePair_Send(qp, NULL, NULL, 1, 0), ND_INVALID_PARAMETER_2);
    CHECK_EQ(IND2QueuePair_Receive(qp, NULL, NULL, 1), ND_INVALID_PARAMETER_2);
    CHECK_EQ(IND2QueuePair_Read(qp, NULL, NULL, 1, 0, 0, 0), ND_INVALID_PARAMETER_2);
    CHECK_EQ(IND2QueuePair_Write(qp, NULL, NULL, 1, 0, 0, 0), ND_INVALID_PARAMETER_2);
    CHECK_EQ(IND2SharedReceiveQueue_Receive(srq, NULL, NULL, 1), ND_INVALID_PARAMETER_2);
    CHECK_EQ(IND2QueuePair_Send(qp, NULL, NULL, 0, 0), ND_SUCCESS);
    CHECK_EQ(IND2QueuePair_Receive(qp, NULL, NULL, 0), ND_SUCCESS);
    CHECK_EQ(IND2QueuePair_Read(qp, NULL, NULL, 0, 0, 0, 0), ND_SUCCESS);
    CHECK_EQ(IND2QueuePair_Write(qp, NULL, NULL, 0, 0, 0, 0), ND_SUCCESS);
    CHECK_EQ(IND2SharedReceiveQueue_Receive(srq, NULL, NULL, 0), ND_SUCCESS);
    CHECK_EQ(IND2SharedReceiveQueue_Release(srq), 0);
    CHECK_EQ(IND2QueuePair_Release(qp), 0);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    rig_close(&r);
}

static void post_refusals_have_the_codes_of_posts(void) {
    static const struct {
        sn_status st;
        HRESULT hr;
    } rows[] = {
        { SN_E_NOT_CONNECTED, ND_CONNECTION_INVALID },
        { SN_E_TOO_LONG, ND_BUFFER_OVERFLOW },
        { SN_E_FULL, ND_NO_MORE_ENTRIES },
        { SN_E_TOO_MANY_SGE, ND_DATA_OVERRUN },
        { SN_E_REQUEST, ND_INVALID_DEVICE_REQUEST },
        { SN_E_RANGE, ND_ACCESS_VIOLATION },
        { SN_E_TOKEN, ND_ACCESS_VIOLATION },
        { SN_E_RIGHTS, ND_ACCESS_VIOLATION },
        { SN_E_BUSY, ND_INVALID_DEVICE_REQUEST },
    };
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    IND2QueuePair *qp = rig_qp(&r, cq);
    IND2MemoryRegion *mr = rig_region(&r);
    IND2MemoryWindow *mw = rig_window(&r);
    IND2SharedReceiveQueue *srq = rig_srq(&r);
    for (size_t i = 0; i < SN_ARRAY_LEN(rows); i++) {
        fake.next = rows[i].st;
        CHECK_EQ(IND2QueuePair_Send(qp, NULL, NULL, 0, 0), rows[i].hr);
        fake.next = rows[i].st;
        CHECK_EQ(IND2QueuePair_Receive(qp, NULL, NULL, 0), rows[i].hr);
        fake.next = rows[i].st;
        CHECK_EQ(IND2QueuePair_Read(qp, NULL, NULL, 0, 0, 0, 0), rows[i].hr);
        fake.next = rows[i].st;
        CHECK_EQ(IND2QueuePair_Write(qp, NULL, NULL, 0, 0, 0, 0), rows[i].hr);
        fake.next = rows[i].st;
        CHECK_EQ(IND2QueuePair_Bind(qp, NULL, (IUnknown *)mr, (IUnknown *)mw, &r, 1, 0),
                 rows[i].hr);
        fake.next = rows[i].st;
        CHECK_EQ(IND2QueuePair_Invalidate(qp, NULL, (IUnknown *)mw, 0), rows[i].hr);
        fake.next = rows[i].st;
        CHECK_EQ(IND2SharedReceiveQueue_Receive(srq, NULL, NULL, 0), rows[i].hr);
    }
    CHECK_EQ(IND2QueuePair_Flush(qp), ND_SUCCESS);
    CHECK_STR(fake.call, "qp_flush");
    CHECK_EQ(IND2SharedReceiveQueue_Release(srq), 0);
    CHECK_EQ(IND2MemoryWindow_Release(mw), 0);
    CHECK_EQ(IND2MemoryRegion_Release(mr), 0);
    CHECK_EQ(IND2QueuePair_Release(qp), 0);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    rig_close(&r);
}

/* ---- memory ---- */

static void register_checks_flags_and_reports_refusals_in_the_overlapped(void) {
    struct rig r = rig_open();
    IND2MemoryRegion *mr = rig_region(&r);
    OVERLAPPED ov;
    CHECK_EQ(IND2MemoryRegion_Register(mr, &r, 8, 0, NULL), ND_INVALID_PARAMETER_4);
    CHECK_EQ(IND2MemoryRegion_Deregister(mr, NULL), ND_INVALID_PARAMETER_1);
    for (unsigned bit = 4; bit < 31; bit++) {
        memset(&ov, 0, sizeof ov);
        CHECK_EQ(IND2MemoryRegion_Register(mr, &r, 8, 1u << bit, &ov), ND_INVALID_PARAMETER_3);
        CHECK_EQ(IND2MemoryRegion_GetOverlappedResult(mr, &ov, TRUE), ND_INVALID_PARAMETER_3);
    }
    static const struct {
        sn_status st;
        HRESULT hr;
    } rows[] = {
        { SN_E_PARAM, ND_INVALID_PARAMETER },
        { SN_E_BUFFER_SIZE, ND_INVALID_BUFFER_SIZE },
        { SN_E_REQUEST, ND_INVALID_DEVICE_REQUEST },
        { SN_E_RESOURCES, ND_INSUFFICIENT_RESOURCES },
    };
    for (size_t i = 0; i < SN_ARRAY_LEN(rows); i++) {
        memset(&ov, 0, sizeof ov);
        fake.next = rows[i].st;
        CHECK_EQ(IND2MemoryRegion_Register(mr, &r, 8, 0, &ov), rows[i].hr);
        CHECK_EQ(IND2MemoryRegion_GetOverlappedResult(mr, &ov, TRUE), rows[i].hr);
    }
    ULONG all = ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ |
                ND_MR_FLAG_ALLOW_REMOTE_WRITE | ND_MR_FLAG_RDMA_READ_SINK |
                ND_MR_FLAG_DO_NOT_SECURE_VM;
    CHECK_EQ(IND2MemoryRegion_Register(mr, &r, 8, all, &ov), ND_PENDING);
    CHECK_EQ(fake.flags, RD_LOCAL_WRITE | RD_REMOTE_READ | RD_REMOTE_WRITE | RD_READ_SINK);
    CHECK_PTR(fake.buf, &r);
    CHECK_EQ(fake.len, 8);
    CHECK_EQ(IND2MemoryRegion_GetOverlappedResult(mr, &ov, TRUE), ND_SUCCESS);
    CHECK_EQ(IND2MemoryRegion_GetLocalToken(mr), 0x11223344);
    CHECK_EQ(IND2MemoryRegion_GetRemoteToken(mr), 0x55667788);
    CHECK_EQ(IND2MemoryRegion_Release(mr), 0);
    IND2MemoryWindow *mw = rig_window(&r);
    CHECK_EQ(IND2MemoryWindow_GetRemoteToken(mw), 0x99AABBCC);
    CHECK_EQ(IND2MemoryWindow_Release(mw), 0);
    rig_close(&r);
}

/* ---- connections ---- */

static void connect_and_accept_check_their_parameters(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    IND2QueuePair *qp = rig_qp(&r, cq);
    IUnknown *q = (IUnknown *)qp;
    IND2Connector *c = rig_connector(&r);
    struct sockaddr_in a = v4(0xC0000201, 5);
    struct sockaddr *sa = (struct sockaddr *)&a;
    OVERLAPPED ov = { 0 };
    uint8_t pd[300];
    memset(pd, 0x5A, sizeof pd);
    CHECK_EQ(IND2Connector_Connect(c, q, NULL, 16, 0, 0, NULL, 0, &ov), ND_INVALID_PARAMETER_2);
    CHECK_EQ(IND2Connector_Connect(c, q, sa, 8, 0, 0, NULL, 0, &ov), ND_INVALID_PARAMETER_3);
    CHECK_EQ(IND2Connector_Connect(c, q, sa, 16, 0, 0, NULL, 0, NULL), ND_INVALID_PARAMETER_8);
    CHECK_EQ(IND2Connector_Connect(c, q, sa, 16, 0, 0, pd, 57, &ov), ND_INVALID_BUFFER_SIZE);
    CHECK_EQ(IND2Connector_Connect(c, q, sa, 16, 0, 0, pd, 0xFFFFFFFF, &ov),
             ND_INVALID_BUFFER_SIZE);
    CHECK_EQ(IND2Connector_Connect(c, q, sa, 16, 0, 0, nowhere(), 1, &ov), ND_ACCESS_VIOLATION);
    CHECK_EQ(IND2Connector_Connect(c, q, sa, 16, 0, 0, NULL, 1, &ov), ND_ACCESS_VIOLATION);
    CHECK_EQ(IND2Connector_Accept(c, q, 0, 0, NULL, 0, NULL), ND_INVALID_PARAMETER_6);
    CHECK_EQ(IND2Connector_Accept(c, q, 0, 0, pd, 149, &ov), ND_INVALID_BUFFER_SIZE);
    CHECK_EQ(IND2Connector_Accept(c, q, 0, 0, nowhere(), 1, &ov), ND_ACCESS_VIOLATION);
    CHECK_EQ(IND2Connector_Reject(c, pd, 149), ND_INVALID_BUFFER_SIZE);
    CHECK_EQ(IND2Connector_Reject(c, NULL, 1), ND_ACCESS_VIOLATION);
    CHECK_EQ(IND2Connector_CompleteConnect(c, NULL), ND_INVALID_PARAMETER_1);
    CHECK_EQ(IND2Connector_NotifyDisconnect(c, NULL), ND_INVALID_PARAMETER_1);
    CHECK_EQ(IND2Connector_Disconnect(c, NULL), ND_INVALID_PARAMETER_1);
    CHECK_EQ(fake_pending(), 0);

    CHECK_EQ(IND2Connector_Connect(c, q, sa, 99, 5, 6, pd, 56, &ov), ND_PENDING);
    CHECK_EQ(fake.addr.port, 5);
    CHECK_EQ(fake.ird, 5);
    CHECK_EQ(fake.ord, 6);
    CHECK_EQ(fake.pd_len, 56);
    CHECK_BYTES(fake.pd, pd, 56);
    CHECK(fake_complete_oldest(SN_E_REFUSED));
    CHECK_EQ(IND2Connector_GetOverlappedResult(c, &ov, TRUE), ND_CONNECTION_REFUSED);
    CHECK_EQ(IND2Connector_Accept(c, q, 7, 8, pd, 148, &ov), ND_PENDING);
    CHECK_EQ(fake.ird, 7);
    CHECK_EQ(fake.ord, 8);
    CHECK_EQ(fake.pd_len, 148);
    CHECK(fake_complete_oldest(SN_E_ABORTED));
    CHECK_EQ(IND2Connector_GetOverlappedResult(c, &ov, TRUE), ND_CONNECTION_ABORTED);
    CHECK_EQ(IND2Connector_Reject(c, pd, 3), ND_SUCCESS);
    CHECK_EQ(fake.pd_len, 3);
    CHECK_EQ(IND2Connector_Release(c), 0);
    CHECK_EQ(IND2QueuePair_Release(qp), 0);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    rig_close(&r);
}

static void connect_to_no_address_completes_with_bad_network_name(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    IND2QueuePair *qp = rig_qp(&r, cq);
    IND2Connector *c = rig_connector(&r);
    struct sockaddr_in a = v4(0, 5), other = v4(0xC0000201, 5);
    other.sin_family = AF_UNIX;
    OVERLAPPED ov = { 0 };
    fake.next = SN_E_NET_NAME;
    CHECK_EQ(
        IND2Connector_Connect(c, (IUnknown *)qp, (struct sockaddr *)&a, 16, 0, 0, NULL, 0, &ov),
        ND_PENDING);
    CHECK_EQ(IND2Connector_GetOverlappedResult(c, &ov, FALSE), SOFTND_BAD_NETWORK_NAME);
    CHECK_EQ(
        IND2Connector_Connect(c, (IUnknown *)qp, (struct sockaddr *)&other, 16, 0, 0, NULL, 0, &ov),
        ND_PENDING);
    CHECK_EQ(IND2Connector_GetOverlappedResult(c, &ov, FALSE), SOFTND_BAD_NETWORK_NAME);
    CHECK_EQ(IND2Connector_Release(c), 0);
    CHECK_EQ(IND2QueuePair_Release(qp), 0);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    rig_close(&r);
}

static void connector_refusals_are_synchronous(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    IND2QueuePair *qp = rig_qp(&r, cq);
    IUnknown *q = (IUnknown *)qp;
    IND2Connector *c = rig_connector(&r);
    struct sockaddr_in a = v4(0xC0000201, 5);
    OVERLAPPED ov = { 0 };
    static const struct {
        sn_status st;
        HRESULT hr;
    } rows[] = {
        { SN_E_CONNECTED, ND_CONNECTION_ACTIVE },     { SN_E_PARAM, ND_INVALID_PARAMETER_1 },
        { SN_E_BUFFER_SIZE, ND_INVALID_BUFFER_SIZE }, { SN_E_NOT_CONNECTED, ND_CONNECTION_INVALID },
        { SN_E_REMOVED, ND_DEVICE_REMOVED },
    };
    for (size_t i = 0; i < SN_ARRAY_LEN(rows); i++) {
        fake.next = rows[i].st;
        CHECK_EQ(IND2Connector_Connect(c, q, (struct sockaddr *)&a, 16, 0, 0, NULL, 0, &ov),
                 rows[i].hr);
        fake.next = rows[i].st;
        CHECK_EQ(IND2Connector_Accept(c, q, 0, 0, NULL, 0, &ov), rows[i].hr);
    }
    fake.next = SN_E_NOT_CONNECTED;
    CHECK_EQ(IND2Connector_CompleteConnect(c, &ov), ND_CONNECTION_INVALID);
    fake.next = SN_E_NOT_CONNECTED;
    CHECK_EQ(IND2Connector_NotifyDisconnect(c, &ov), ND_CONNECTION_INVALID);
    fake.next = SN_E_NOT_CONNECTED;
    CHECK_EQ(IND2Connector_Disconnect(c, &ov), ND_CONNECTION_INVALID);
    fake.next = SN_E_NOT_CONNECTED;
    CHECK_EQ(IND2Connector_Reject(c, NULL, 0), ND_CONNECTION_INVALID);
    fake.next = SN_E_ABORTED;
    CHECK_EQ(IND2Connector_Reject(c, NULL, 0), ND_CONNECTION_ABORTED);
    CHECK_EQ(fake_pending(), 0);
    CHECK_EQ(IND2Connector_Release(c), 0);
    CHECK_EQ(IND2QueuePair_Release(qp), 0);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    rig_close(&r);
}

static void private_data_is_copied_as_far_as_it_fits(void) {
    struct rig r = rig_open();
    IND2Connector *c = rig_connector(&r);
    uint8_t buf[64];
    for (uint32_t len = 0; len <= 40; len += 8) {
        fake.peer_data_len = len;
        for (uint32_t i = 0; i < len; i++)
            fake.peer_data[i] = (uint8_t)(i + 1);
        for (ULONG room = 0; room <= 41; room++) {
            ULONG cb = room;
            memset(buf, 0xEE, sizeof buf);
            CHECK_EQ(IND2Connector_GetPrivateData(c, buf, &cb),
                     room < len ? ND_BUFFER_OVERFLOW : ND_SUCCESS);
            CHECK_EQ(cb, len);
            uint32_t part = SN_MIN(room, len);
            CHECK_BYTES(buf, fake.peer_data, part);
            CHECK_EQ(buf[part], 0xEE);
        }
        ULONG cb = 0;
        CHECK_EQ(IND2Connector_GetPrivateData(c, NULL, &cb), len ? ND_BUFFER_OVERFLOW : ND_SUCCESS);
        CHECK_EQ(cb, len);
    }
    ULONG cb = 8;
    CHECK_EQ(IND2Connector_GetPrivateData(c, nowhere(), &cb), ND_ACCESS_VIOLATION);
    CHECK_EQ(IND2Connector_GetPrivateData(c, buf, NULL), ND_INVALID_PARAMETER_2);
    fake.next = SN_E_NOT_CONNECTED;
    CHECK_EQ(IND2Connector_GetPrivateData(c, buf, &cb), ND_CONNECTION_INVALID);
    CHECK_EQ(IND2Connector_Release(c), 0);
    rig_close(&r);
}

static void read_limits_are_optional_outputs(void) {
    struct rig r = rig_open();
    IND2Connector *c = rig_connector(&r);
    ULONG in = 9, out = 9;
    CHECK_EQ(IND2Connector_GetReadLimits(c, &in, &out), ND_SUCCESS);
    CHECK_EQ(in, 3);
    CHECK_EQ(out, 4);
    CHECK_EQ(IND2Connector_GetReadLimits(c, NULL, NULL), ND_SUCCESS);
    in = out = 9;
    fake.next = SN_E_NOT_CONNECTED;
    CHECK_EQ(IND2Connector_GetReadLimits(c, &in, &out), ND_CONNECTION_INVALID);
    CHECK_EQ(in, 9);
    CHECK_EQ(out, 9);
    CHECK_EQ(IND2Connector_Release(c), 0);
    rig_close(&r);
}

static void extensions_answer_version_and_transport(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    IND2QueuePair *qp = rig_qp(&r, cq);
    CHECK(strchr(SoftNdVersion(), '.') != NULL);
    char name[8] = "xxxxxxx";
    ULONG cb = 4;
    CHECK_EQ(SoftNdQueryTransport((IUnknown *)qp, name, &cb), ND_BUFFER_OVERFLOW);
    CHECK_EQ(cb, 5);
    CHECK_STR(name, "xxxxxxx");
    CHECK_EQ(SoftNdQueryTransport((IUnknown *)qp, name, &cb), ND_SUCCESS);
    CHECK_STR(name, "none");
    CHECK_EQ(SoftNdQueryTransport((IUnknown *)qp, name, NULL), ND_INVALID_PARAMETER_3);
    char all[32];
    cb = sizeof all;
    CHECK_EQ(SoftNdQueryTransport((IUnknown *)r.adapter, all, &cb), ND_SUCCESS);
    CHECK_STR(all, "here there");
    CHECK_EQ(SoftNdQueryTransport((IUnknown *)cq, all, &cb), ND_INVALID_PARAMETER_1);
    CHECK_EQ(IND2QueuePair_Release(qp), 0);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    rig_close(&r);
}

static void extensions_tell_the_counters_of_each_object(void) {
    struct rig r = rig_open();
    IND2CompletionQueue *cq = rig_cq(&r);
    IND2QueuePair *qp = rig_qp(&r, cq);
    IND2MemoryRegion *mr = rig_region(&r);
    char text[128] = "xxx";
    ULONG cb = 10;

    CHECK_EQ(SoftNdQueryCounters((IUnknown *)cq, text, &cb), ND_BUFFER_OVERFLOW);
    CHECK_STR(text, "xxx");
    CHECK_EQ(cb, sizeof "entries 7 entries completions queued\n");
    CHECK_EQ(SoftNdQueryCounters((IUnknown *)cq, NULL, &cb), ND_BUFFER_OVERFLOW);
    CHECK_EQ(SoftNdQueryCounters((IUnknown *)cq, text, &cb), ND_SUCCESS);
    CHECK_STR(text, "entries 7 entries completions queued\n");
    cb = sizeof text;
    CHECK_EQ(SoftNdQueryCounters((IUnknown *)qp, text, &cb), ND_SUCCESS);
    CHECK_STR(text, "posted 5 requests initiator requests posted\n"
                    "failed 0 requests completed with an error\n");
    cb = sizeof text;
    CHECK_EQ(SoftNdQueryCounters((IUnknown *)r.adapter, text, &cb), ND_SUCCESS);
    CHECK_STR(text, "regions 18446744073709551615 regions registrations made\n");
    CHECK_EQ(SoftNdQueryCounters((IUnknown *)qp, text, NULL), ND_INVALID_PARAMETER_3);
    CHECK_EQ(SoftNdQueryCounters((IUnknown *)mr, text, &cb), ND_INVALID_PARAMETER_1);
    CHECK_EQ(SoftNdQueryCounters(NULL, text, &cb), ND_INVALID_PARAMETER_1);
    CHECK_EQ(IND2MemoryRegion_Release(mr), 0);
    CHECK_EQ(IND2QueuePair_Release(qp), 0);
    CHECK_EQ(IND2CompletionQueue_Release(cq), 0);
    rig_close(&r);
}

TEST_MAIN(TEST(address_list_follows_the_size_query),
          TEST(empty_address_list_asks_for_one_empty_list), TEST(long_address_list_is_complete),
          TEST(loopback_addresses_come_last), TEST(address_list_failures_pass_through),
          TEST(resolve_address_checks_its_parameters), TEST(address_is_not_read_beyond_its_family),
          TEST(bind_and_listen_map_the_core_status), TEST(address_getters_follow_the_size_query),
          TEST(query_fills_every_field), TEST(query_checks_version_and_size),
          TEST(notify_affinity_is_group_zero_and_the_process),
          TEST(resize_and_modify_map_the_core_status), TEST(notify_type_reaches_the_core),
          TEST(get_results_translates_in_batches), TEST(request_flags_are_checked_and_translated),
          TEST(missing_sge_array_is_refused_unless_empty),
          TEST(post_refusals_have_the_codes_of_posts),
          TEST(register_checks_flags_and_reports_refusals_in_the_overlapped),
          TEST(connect_and_accept_check_their_parameters),
          TEST(connect_to_no_address_completes_with_bad_network_name),
          TEST(connector_refusals_are_synchronous), TEST(private_data_is_copied_as_far_as_it_fits),
          TEST(read_limits_are_optional_outputs), TEST(extensions_answer_version_and_transport),
          TEST(extensions_tell_the_counters_of_each_object))
