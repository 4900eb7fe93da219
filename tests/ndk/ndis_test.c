/* SPDX-License-Identifier: MIT
 * The NDIS side of the provider: attributes and OIDs.
 */
#include "kit.h"
#include <ndisndk.h>

#define IF_INDEX KIT_LOOPBACK

static NDIS_NDK_STATISTICS_INFO statistics(void) {
    NDIS_NDK_STATISTICS_INFO s;
    ULONG written = 0;
    memset(&s, 0xEE, sizeof s);
    s.Header = (NDIS_OBJECT_HEADER){ NDIS_OBJECT_TYPE_DEFAULT, 1, sizeof s };
    CHECK_NT(SoftNdkQueryOid(IF_INDEX, OID_NDK_STATISTICS, &s, sizeof s, &written, NULL),
             NDIS_STATUS_SUCCESS);
    CHECK_EQ(written, sizeof s);
    return s;
}

union lists {
    NDIS_OBJECT_HEADER header;
    NDIS_NDK_CONNECTIONS connections;
    NDIS_NDK_LOCAL_ENDPOINTS endpoints;
    UCHAR bytes[2048];
};

static void *query(ULONG oid, ULONG want_entries, size_t entry, union lists *l) {
    ULONG written = 0, needed = 0, exact = (ULONG)(16 + want_entries * entry);
    memset(l, 0xEE, sizeof *l);
    l->header = (NDIS_OBJECT_HEADER){ NDIS_OBJECT_TYPE_DEFAULT, 1, sizeof *l };
    if (want_entries) {
        CHECK_NT(SoftNdkQueryOid(IF_INDEX, oid, l, exact - 1, &written, &needed),
                 NDIS_STATUS_BUFFER_TOO_SHORT);
        CHECK_EQ(needed, exact);
        CHECK_EQ(l->bytes[exact - 1], 0xEE);
    }
    CHECK_NT(SoftNdkQueryOid(IF_INDEX, oid, l, exact, &written, &needed), NDIS_STATUS_SUCCESS);
    CHECK_EQ(written, exact);
    CHECK_EQ(l->header.Size, exact);
    CHECK_EQ(l->bytes[exact], 0xEE);
    CHECK_EQ(l->connections.Count, want_entries);
    return l->bytes + 16;
}

static void verifier_is_on(void) {
    CHECK_EQ(softndk_set("verifier", "report"), 0);
}

static void attributes_describe_the_adapter(void) {
    NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES a;
    NDIS_NDK_CAPABILITIES c;
    NDK_ADAPTER_INFO info;
    SoftNdkGetAttributes(IF_INDEX, &a, &c, &info);
    CHECK_EQ(a.Header.Type, NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_NDK_ATTRIBUTES);
    CHECK_EQ(a.Header.Size, sizeof a);
    CHECK_EQ(a.Enabled, TRUE);
    CHECK(a.NdkCapabilities == &c && c.NdkInfo == &info);
    CHECK_EQ(c.Header.Type, NDIS_OBJECT_TYPE_DEFAULT);
    CHECK_EQ(c.Header.Size, sizeof c);
    CHECK_EQ(info.Version.Major, 2);
    CHECK(info.FRMRPageCount >= 16);
    CHECK_EQ(c.MissingCounterMask, 0x3C000008);
}

static void oids_say_what_is_wrong(void) {
    union lists l;
    ULONG n = 99, needed = 0;
    BOOLEAN on = TRUE;
    CHECK_NT(SoftNdkQueryOid(IF_INDEX, OID_NDK_SET_STATE, &l, sizeof l, &n, &needed),
             NDIS_STATUS_NOT_SUPPORTED);
    CHECK_EQ(n, 0);
    CHECK_NT(SoftNdkQueryOid(IF_INDEX, OID_NDK_STATISTICS, &l, 0xF7, &n, &needed),
             NDIS_STATUS_BUFFER_TOO_SHORT);
    CHECK_EQ(needed, 0xF8);
    CHECK_NT(SoftNdkQueryOid(IF_INDEX, OID_NDK_CONNECTIONS, NULL, 0, &n, &needed),
             NDIS_STATUS_BUFFER_TOO_SHORT);
    CHECK_EQ(needed, 16);
    memset(&l, 0, sizeof l);
    CHECK_NT(SoftNdkQueryOid(IF_INDEX, OID_NDK_CONNECTIONS, &l, sizeof l, &n, &needed),
             STATUS_INVALID_DEVICE_REQUEST);
    CHECK_NT(SoftNdkSetOid(IF_INDEX, OID_NDK_STATISTICS, &on, 1, &n, &needed),
             NDIS_STATUS_NOT_SUPPORTED);
    CHECK_NT(SoftNdkSetOid(IF_INDEX, OID_NDK_SET_STATE, &on, 0, &n, &needed),
             NDIS_STATUS_BUFFER_TOO_SHORT);
    CHECK_EQ(needed, 1);
}

static void connections_and_endpoints_are_listed(void) {
    NDIS_NDK_STATISTICS_INFO before = statistics(), after;
    union lists l;
    struct kit_pair p;
    NDK_SHARED_ENDPOINT *shared = NULL;
    query(OID_NDK_CONNECTIONS, 0, sizeof(NDIS_NDK_CONNECTION_ENTRY), &l);
    query(OID_NDK_LOCAL_ENDPOINTS, 0, sizeof(NDIS_NDK_LOCAL_ENDPOINT_ENTRY), &l);
    kit_up(&p);
    after = statistics();
    CHECK_EQ(after.CounterSet.Connect, before.CounterSet.Connect + 1);
    CHECK_EQ(after.CounterSet.Accept, before.CounterSet.Accept + 1);
    CHECK_EQ(after.CounterSet.ActiveConnection, 2);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(after.CounterSet.Reserved[i], 0);
    NDIS_NDK_CONNECTION_ENTRY *c =
        query(OID_NDK_CONNECTIONS, 4, sizeof(NDIS_NDK_CONNECTION_ENTRY), &l);
    CHECK_EQ(l.connections.NDConnectionsMappedtoTCPConnections, TRUE);
    CHECK(memcmp(&c[0], &c[1], 56) == 0 && memcmp(&c[2], &c[3], 56) == 0);
    CHECK(memcmp(&c[0].Local, &c[2].Remote, 28) == 0);
    CHECK(memcmp(&c[0].Remote, &c[2].Local, 28) == 0);
    CHECK_EQ(c[0].Local.Ipv4.sin_family, AF_INET);
    CHECK_EQ(c[0].Local.Ipv4.sin_addr.s_addr, RtlUlongByteSwap(0x7F000001));
    CHECK_EQ(c[0].UserModeOwner, FALSE);
    SOCKADDR_IN any = kit_address(0);
    KIT_CREATE(NDK_SHARED_ENDPOINT, shared,
               p.k.ad->Dispatch->NdkCreateSharedEndpoint(p.k.ad, (SOCKADDR *)&any, sizeof any,
                                                         kit_created, &kit_w, &kit_o));
    NDIS_NDK_LOCAL_ENDPOINT_ENTRY *e =
        query(OID_NDK_LOCAL_ENDPOINTS, 4, sizeof(NDIS_NDK_LOCAL_ENDPOINT_ENTRY), &l);
    CHECK_EQ(e[0].Listener, TRUE);
    CHECK_EQ(e[1].Listener, TRUE);
    CHECK_EQ(e[2].Listener, FALSE);
    CHECK(memcmp(&e[0].Local, &e[1].Local, 28) == 0);
    CHECK(e[2].Local.Ipv4.sin_port != 0);
    KIT_CLOSE(shared, NdkCloseSharedEndpoint);
    kit_down(&p);
    query(OID_NDK_CONNECTIONS, 0, sizeof(NDIS_NDK_CONNECTION_ENTRY), &l);
    query(OID_NDK_LOCAL_ENDPOINTS, 0, sizeof(NDIS_NDK_LOCAL_ENDPOINT_ENTRY), &l);
    after = statistics(); /* no adapter is open: what was counted stays */
    CHECK_EQ(after.CounterSet.Connect, before.CounterSet.Connect + 1);
    CHECK_EQ(after.CounterSet.ActiveConnection, 0);
}

static void state_decides_whether_adapters_open(void) {
    struct kit k;
    NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES a;
    NDIS_NDK_CAPABILITIES c;
    NDK_ADAPTER_INFO info;
    BOOLEAN state = FALSE;
    ULONG n = 0;
    CHECK_NT(SoftNdkSetOid(IF_INDEX, OID_NDK_SET_STATE, &state, 1, &n, NULL), NDIS_STATUS_SUCCESS);
    CHECK_EQ(n, 1);
    SoftNdkGetAttributes(IF_INDEX, &a, &c, &info);
    CHECK_EQ(a.Enabled, FALSE);
    CHECK_NT(kit_open_version(&k, 2, 0), NDIS_STATUS_ADAPTER_NOT_READY);
    kit_shut(&k);
    state = TRUE;
    CHECK_EQ(softndk_set("adapter", "disabled"), 0);
    CHECK_NT(SoftNdkSetOid(IF_INDEX, OID_NDK_SET_STATE, &state, 1, &n, NULL), NDIS_STATUS_FAILURE);
    CHECK_EQ(softndk_set("adapter", "enabled"), 0);
    CHECK_NT(SoftNdkSetOid(IF_INDEX, OID_NDK_SET_STATE, &state, 1, &n, NULL), NDIS_STATUS_SUCCESS);
    CHECK_NT(kit_open_version(&k, 2, 0), STATUS_SUCCESS);
    kit_shut(&k);
}

static void nothing_is_left(void) {
    CHECK_EQ(softndk_report_leaks(), 0);
    CHECK_EQ(softndk_violations(NULL), 0);
}

TEST_MAIN(TEST(verifier_is_on), TEST(attributes_describe_the_adapter), TEST(oids_say_what_is_wrong),
          TEST(connections_and_endpoints_are_listed), TEST(state_decides_whether_adapters_open),
          TEST(nothing_is_left))
