/* SPDX-License-Identifier: MIT
 *
 * What a miniport shows of its NDK adapter: attributes and OIDs, per interface. Counters outlive
 * the adapters that were open; connections and endpoints are those of this process.
 */
#include "ndisndk.h"
#include "ndk/ndk.h"
#include "os/prim/fault.h"
#include "os/prim/lock.h"
#include "rdma/counters.h"

/* Connections that ended by an error are not told from those that the peer ended; bytes and frames
 * are not counted per adapter. Bits are indices of NDIS_NDK_PERFORMANCE_COUNTERS. */
#define MISSING_COUNTERS (1ull << 3 | 0xFull << 26)

/* The core's counters by their place in its list. */
#define AT(field, unit, help) AT_##field,
enum { RD_ADAPTER_COUNTERS(AT) COUNTERS };
#undef AT

/* Of an interface that an adapter was open on, or whose state was set. */
struct port {
    struct sn_list link;
    NET_IFINDEX if_index;
    bool disabled;
    uint64_t ended[COUNTERS]; /* of core adapters that are closed */
};

static os_lock lock; /* rank LEAF */
static struct sn_list ports;
static os_once once = OS_ONCE_INIT;

static void init(void) {
    os_lock_init(&lock, OS_RANK_LEAF);
    sn_list_init(&ports);
}

/* NULL: there is none, or no memory for it. */
static struct port *port_of_locked(NET_IFINDEX if_index, bool make) {
    SN_LIST_FOR(it, &ports) {
        struct port *p = SN_CONTAINER(it, struct port, link);
        if (p->if_index == if_index) return p;
    }
    struct port *p = make ? os_zalloc(sizeof *p) : NULL;
    if (!p) return NULL;
    p->if_index = if_index;
    sn_list_push_back(&ports, &p->link);
    return p;
}

static void enter(void) {
    os_once_run(&once, init);
    os_lock_enter(&lock);
}

bool ndk_port_disabled(NET_IFINDEX if_index) {
    enter();
    struct port *p = port_of_locked(if_index, false);
    bool disabled = p && p->disabled;
    os_lock_leave(&lock);
    return disabled;
}

void ndk_port_core_ends(NET_IFINDEX if_index, const struct rd_adapter *rd) {
    struct rd_counter c[RD_COUNTERS_MAX];
    uint32_t n = rd_adapter_counters_get(rd, c);
    enter();
    struct port *p = port_of_locked(if_index, true);
    for (uint32_t i = 0; p && i < SN_MIN(n, (uint32_t)COUNTERS); i++)
        p->ended[i] += c[i].value;
    os_lock_leave(&lock);
}

/* ---- walks ---- */

struct walk {
    NET_IFINDEX if_index;
    bool open; /* an adapter of the interface is */
    uint64_t live[COUNTERS];
    void *entries;
    ULONG room, count; /* entries */
};

static void to_inet(const struct os_addr *a, SOCKADDR_INET *out) {
    uint8_t buf[sizeof *out] = { 0 };
    ULONG len = sizeof buf;
    memset(out, 0, sizeof *out);
    if (ndk_addr_out(a, (SOCKADDR *)(void *)buf, &len) == STATUS_SUCCESS)
        memcpy(out, buf, sizeof buf);
}

/* Two entries for one thing: its address as NetworkDirect's, and the TCP one behind it. */
enum { PAIR = 2 };

static void add_connection(struct walk *w, struct ndk_connector *c) {
    struct os_addr here, there;
    NDIS_NDK_CONNECTION_ENTRY *e = w->entries;
    if (!ndk_connector_is_up(c, &here, &there)) return;
    for (int i = 0; i < PAIR; i++, w->count++) {
        if (w->count >= w->room) continue;
        to_inet(&here, &e[w->count].Local);
        to_inet(&there, &e[w->count].Remote);
        e[w->count].UserModeOwner = FALSE;
        e[w->count].OwnerPid = 0;
    }
}

/* Under the lock of the list of adapters, so that none of them ends. */
static const char *walk_adapter(struct ndk_adapter *ad, const void *p, size_t len, const MDL *mdl) {
    struct walk *w = (struct walk *)(uintptr_t)p;
    (void)len;
    (void)mdl;
    if (ad->if_index != w->if_index) return NULL;
    if (!w->open) { /* all adapters of an interface are one of the core */
        struct rd_counter c[RD_COUNTERS_MAX];
        uint32_t n = rd_adapter_counters_get(ad->rd, c);
        for (uint32_t i = 0; i < SN_MIN(n, (uint32_t)COUNTERS); i++)
            w->live[i] = c[i].value;
        w->open = true;
    }
    os_lock_enter(&ad->lock);
    SN_LIST_FOR(it, &ad->objects) {
        struct ndk_object *o = SN_CONTAINER(it, struct ndk_object, all);
        if (o->header.ObjectType == NdkObjectTypeConnector)
            add_connection(w, (struct ndk_connector *)o);
    }
    os_lock_leave(&ad->lock);
    return NULL;
}

static void walk_connections(struct walk *w) {
    ndk_each_adapter(walk_adapter, w, 0, NULL);
}

static void add_endpoint(void *ctx, enum ndk_endpoint_kind kind, const struct os_addr *addr) {
    struct walk *w = ctx;
    NDIS_NDK_LOCAL_ENDPOINT_ENTRY *e = w->entries;
    if (kind == NDK_ENDPOINT_CONNECTOR) return;
    for (int i = 0; i < PAIR; i++, w->count++) {
        if (w->count >= w->room) continue;
        to_inet(addr, &e[w->count].Local);
        e[w->count].UserModeOwner = FALSE;
        e[w->count].Listener = kind == NDK_ENDPOINT_LISTENER;
        e[w->count].OwnerPid = 0;
    }
}

static void walk_endpoints(struct walk *w) {
    ndk_endpoint_each(w->if_index, add_endpoint, w);
}

/* ---- OIDs ---- */

static NDIS_STATUS too_short(ULONG need, PULONG needed) {
    if (needed) *needed = need;
    return NDIS_STATUS_BUFFER_TOO_SHORT;
}

static bool good_header(const NDIS_OBJECT_HEADER *h) {
    return h->Type == NDIS_OBJECT_TYPE_DEFAULT && h->Revision == 1;
}

static NDIS_STATUS statistics(NET_IFINDEX if_index, NDIS_NDK_STATISTICS_INFO *out) {
    struct walk w = { .if_index = if_index };
    walk_connections(&w);
    enter();
    struct port *p = port_of_locked(if_index, false);
    for (int i = 0; p && i < COUNTERS; i++)
        w.live[i] += p->ended[i];
    os_lock_leave(&lock);
    NDIS_NDK_PERFORMANCE_COUNTERS *c = &out->CounterSet;
    memset(c, 0, sizeof *c);
    c->Connect = w.live[AT_connects];
    c->Accept = w.live[AT_accepts];
    c->ConnectFailure =
        w.live[AT_connects_failed] + w.live[AT_requests_refused] + w.live[AT_requests_abandoned];
    c->ActiveConnection = w.count / PAIR;
    c->CQError = w.live[AT_cq_overruns];
    out->Flags = 0;
    out->Header.Size = sizeof *out;
    return NDIS_STATUS_SUCCESS;
}

/* The two lists differ in their entries only: the heads have one layout. */
static NDIS_STATUS list(NET_IFINDEX if_index, void (*walk)(struct walk *w), size_t entry,
                        NDIS_NDK_CONNECTIONS *out, ULONG length, PULONG written, PULONG needed) {
    const ULONG head = FIELD_OFFSET(NDIS_NDK_CONNECTIONS, Connections);
    struct walk w = { .if_index = if_index,
                      .entries = out->Connections,
                      .room = (ULONG)((length - head) / entry) };
    walk(&w);
    size_t need = head + w.count * entry;
    if (w.count > w.room) return too_short((ULONG)need, needed);
    out->Header.Size = (USHORT)SN_MIN(need, (size_t)MAXUSHORT);
    out->Flags = 0;
    out->Count = w.count;
    out->NDConnectionsMappedtoTCPConnections = TRUE;
    if (written) *written = (ULONG)need;
    return NDIS_STATUS_SUCCESS;
}

NDIS_STATUS SoftNdkQueryOid(NET_IFINDEX if_index, ULONG oid, PVOID buffer, ULONG length,
                            PULONG written, PULONG needed) {
    const ULONG head = FIELD_OFFSET(NDIS_NDK_CONNECTIONS, Connections);
    bool statistic = oid == OID_NDK_STATISTICS;
    if (written) *written = 0;
    if (!statistic && oid != OID_NDK_CONNECTIONS && oid != OID_NDK_LOCAL_ENDPOINTS)
        return NDIS_STATUS_NOT_SUPPORTED;
    ULONG least = statistic ? (ULONG)sizeof(NDIS_NDK_STATISTICS_INFO) : head;
    if (!buffer || length < least) return too_short(least, needed);
    if (!good_header(buffer)) return STATUS_INVALID_DEVICE_REQUEST;
    if (statistic) {
        if (written) *written = least;
        return statistics(if_index, buffer);
    }
    bool connections = oid == OID_NDK_CONNECTIONS;
    return list(if_index, connections ? walk_connections : walk_endpoints,
                connections ? sizeof(NDIS_NDK_CONNECTION_ENTRY)
                            : sizeof(NDIS_NDK_LOCAL_ENDPOINT_ENTRY),
                buffer, length, written, needed);
}

NDIS_STATUS SoftNdkSetOid(NET_IFINDEX if_index, ULONG oid, PVOID buffer, ULONG length,
                          PULONG bytes_read, PULONG needed) {
    if (bytes_read) *bytes_read = 0;
    if (oid != OID_NDK_SET_STATE) return NDIS_STATUS_NOT_SUPPORTED;
    if (!buffer || length < sizeof(BOOLEAN)) return too_short(sizeof(BOOLEAN), needed);
    bool enable = *(const BOOLEAN *)buffer != FALSE;
    ndk_options_load();
    if (enable && os_u32_load_relaxed(&ndk_options.disabled)) return NDIS_STATUS_FAILURE;
    enter();
    struct port *p = port_of_locked(if_index, true);
    if (p) p->disabled = !enable;
    os_lock_leave(&lock);
    if (!p) return NDIS_STATUS_RESOURCES;
    if (bytes_read) *bytes_read = sizeof(BOOLEAN);
    return NDIS_STATUS_SUCCESS;
}

VOID SoftNdkGetAttributes(NET_IFINDEX if_index, NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES *attributes,
                          NDIS_NDK_CAPABILITIES *capabilities, NDK_ADAPTER_INFO *info) {
    const NDK_VERSION highest = { 2, 1 };
    ndk_options_load();
    memset(attributes, 0, sizeof *attributes);
    attributes->Header =
        (NDIS_OBJECT_HEADER){ NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_NDK_ATTRIBUTES,
                              NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES_REVISION_1, sizeof *attributes };
    attributes->Enabled =
        !os_u32_load_relaxed(&ndk_options.disabled) && !ndk_port_disabled(if_index);
    attributes->NdkCapabilities = capabilities;
    memset(capabilities, 0, sizeof *capabilities);
    capabilities->Header =
        (NDIS_OBJECT_HEADER){ NDIS_OBJECT_TYPE_DEFAULT, NDIS_NDK_CAPABILITIES_REVISION_1,
                              sizeof *capabilities };
    capabilities->MaxQpCount = capabilities->MaxCqCount = capabilities->MaxMrCount =
        capabilities->MaxPdCount = capabilities->MaxMwCount = capabilities->MaxSrqCount = MAXULONG;
    capabilities->MissingCounterMask = MISSING_COUNTERS;
    capabilities->NdkInfo = info;
    ndk_fill_info(highest, info);
}
