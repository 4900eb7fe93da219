/* SPDX-License-Identifier: MIT
 * ndutil_test.c - the helper API against provider libraries that do as they are told. The catalog
 * and the system underneath are this program's: it defines the WSC functions and the platform.
 */
#include <initguid.h>
#include <limits.h>
#include <winsock2.h>
#include <ws2spi.h>

#include "ndutil/platform.h"
#include "softnd.h"
#include "support/fake_provider.h"
#include "support/testing.h"

/* ---- the catalog ---- */

#define ENTRIES_MAX 4

struct fake_control fake_controls[FAKE_COUNT];

static struct {
    WSAPROTOCOL_INFOW info;
    WCHAR path[260];
} entries[ENTRIES_MAX];
static int entry_count, enum_calls, path_calls;
static bool enum_fails;

INT WSCEnumProtocols(LPINT protocols, LPWSAPROTOCOL_INFOW buffer, LPDWORD bytes, LPINT error) {
    DWORD need = (DWORD)((size_t)(entry_count ? entry_count : 1) * sizeof *buffer);

    enum_calls++;
    if (enum_fails || !buffer || *bytes < need) {
        *bytes = need;
        *error = enum_fails ? WSASYSCALLFAILURE : WSAENOBUFS;
        return SOCKET_ERROR;
    }
    for (int i = 0; i < entry_count; i++)
        buffer[i] = entries[i].info;
    return entry_count;
}

INT WSCGetProviderPath(LPGUID id, WCHAR *path, LPINT units, LPINT error) {
    path_calls++;
    for (int i = 0; i < entry_count; i++) {
        if (!IsEqualGUID(&entries[i].info.ProviderId, id) || !entries[i].path[0]) continue;
        memcpy(path, entries[i].path, sizeof entries[i].path);
        return 0;
    }
    *error = WSAEINVAL;
    return SOCKET_ERROR;
}

static void wide(WCHAR *out, const char *text) {
    size_t i = 0;

    for (; text[i]; i++)
        out[i] = (unsigned char)text[i];
    out[i] = 0;
}

static WSAPROTOCOL_INFOW *add_entry(const GUID *id, const char *path) {
    WSAPROTOCOL_INFOW *e = &entries[entry_count].info;

    *e = (WSAPROTOCOL_INFOW){ .dwServiceFlags1 = 0x8E,
                              .dwProviderFlags = 0x14,
                              .ProviderId = *id,
                              .iVersion = 0x20000,
                              .iAddressFamily = AF_INET6,
                              .iSocketType = -1 };
    wide(entries[entry_count++].path, path);
    return e;
}

static const char *const libraries[FAKE_COUNT] = { FAKE_0, FAKE_1, FAKE_2 };

static WSAPROTOCOL_INFOW *add_fake(int i) {
    return add_entry(&fake_controls[i].id, libraries[i]);
}

/* ---- the system ---- */

static bool changed, have_override;
static int starts, stops;
static HRESULT start_status, route_status;
static SOCKADDR_INET route_answer;
static WCHAR override_path[260];

void ndutil_platform_lock(void) {
}
void ndutil_platform_unlock(void) {
}
HRESULT ndutil_platform_start(void) {
    starts++;
    return start_status;
}
void ndutil_platform_stop(void) {
    stops++;
}
bool ndutil_platform_addresses_changed(void) {
    bool was = changed;

    changed = false;
    return was;
}
HRESULT ndutil_platform_route(const struct sockaddr *remote, size_t remote_bytes,
                              struct sockaddr *local, size_t *bytes) {
    *bytes = route_answer.si_family == AF_INET6 ? sizeof(SOCKADDR_IN6) : sizeof(SOCKADDR_IN);
    if (route_status == ND_SUCCESS) memcpy(local, &route_answer, *bytes);
    return route_status;
}
bool ndutil_platform_expand(const WCHAR *path, WCHAR *out, size_t units) {
    memcpy(out, path, units * sizeof *out);
    return path[0] != u'?';
}
bool ndutil_platform_provider_override(WCHAR *path, size_t units) {
    if (have_override) memcpy(path, override_path, units * sizeof *path);
    return have_override;
}

/* ---- helpers ---- */

static SOCKADDR_INET v4(const char *ip, uint16_t port) {
    SOCKADDR_INET sa = { .Ipv4 = { .sin_family = AF_INET, .sin_port = htons(port) } };

    inet_pton(AF_INET, ip, &sa.Ipv4.sin_addr);
    return sa;
}

static SOCKADDR_INET v6(const char *ip, uint32_t scope) {
    SOCKADDR_INET sa = { .Ipv6 = { .sin6_family = AF_INET6, .sin6_scope_id = scope } };

    inet_pton(AF_INET6, ip, &sa.Ipv6.sin6_addr);
    return sa;
}

static void give_addr(int fake, SOCKADDR_INET sa) {
    struct fake_control *c = &fake_controls[fake];

    c->addrs[c->addr_count] = sa;
    c->addr_bytes[c->addr_count++] = sa.si_family == AF_INET ? 16 : 28;
}

static HRESULT check(SOCKADDR_INET sa) {
    return NdCheckAddress((struct sockaddr *)&sa, sa.si_family == AF_INET ? 16 : 28);
}

static HRESULT open_at(SOCKADDR_INET sa, IUnknown **out) {
    return NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&sa, sizeof sa, (void **)out);
}

/* A fresh world: nothing installed, nothing started. */
static void reset(void) {
    while (NdCleanup() == S_OK)
        ;
    entry_count = enum_calls = path_calls = starts = stops = 0;
    memset(entries, 0, sizeof entries);
    enum_fails = changed = have_override = false;
    start_status = route_status = ND_SUCCESS;
    memset(fake_controls, 0, sizeof fake_controls);
    for (int i = 0; i < FAKE_COUNT; i++)
        fake_controls[i].id = (GUID){ .Data1 = 0xFA4E0000u + (uint32_t)i };
}

/* Two providers: 0 has 10.0.0.1 and fd00::1, 1 has 10.0.0.2. */
static void reset_with_two(void) {
    reset();
    add_fake(0);
    add_fake(1);
    give_addr(0, v4("10.0.0.1", 0));
    give_addr(0, v6("fd00::1", 0));
    give_addr(1, v4("10.0.0.2", 0));
    CHECK_EQ(NdStartup(), S_OK);
}

/* ---- start and end ---- */

static void calls_before_start_are_not_ready(void) {
    SOCKADDR_INET sa = v4("10.0.0.1", 0);
    SIZE_T cb = 0;
    void *p = &sa;

    reset();
    CHECK_EQ(NdCleanup(), ND_DEVICE_NOT_READY);
    CHECK_EQ(NdQueryAddressList(0, NULL, &cb), ND_DEVICE_NOT_READY);
    CHECK_EQ(check(sa), ND_DEVICE_NOT_READY);
    cb = sizeof sa;
    CHECK_EQ(NdResolveAddress((struct sockaddr *)&sa, 16, (struct sockaddr *)&sa, &cb),
             ND_DEVICE_NOT_READY);
    CHECK_EQ(NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&sa, 16, &p), ND_DEVICE_NOT_READY);
    CHECK_PTR(p, NULL);
    NdFlushProviders();
}

static void start_is_counted(void) {
    reset();
    CHECK_EQ(NdStartup(), S_OK);
    CHECK_EQ(NdStartup(), S_OK);
    CHECK_EQ(starts, 1);
    CHECK_EQ(NdCleanup(), S_OK);
    CHECK_EQ(stops, 0);
    CHECK_EQ(NdCleanup(), S_OK);
    CHECK_EQ(stops, 1);
    CHECK_EQ(NdCleanup(), ND_DEVICE_NOT_READY);
}

static void start_when_the_system_fails_reports_it(void) {
    reset();
    start_status = HRESULT_FROM_WIN32(ERROR_TOO_MANY_OPEN_FILES);
    CHECK_EQ(NdStartup(), HRESULT_FROM_WIN32(ERROR_TOO_MANY_OPEN_FILES));
    CHECK_EQ(NdCleanup(), ND_DEVICE_NOT_READY);
}

static void start_loads_nothing(void) {
    reset_with_two();
    CHECK_EQ(enum_calls, 0);
    CHECK_EQ(fake_controls[0].loads, 0);
}

/* ---- the catalog ---- */

static void catalog_entry_with_a_wrong_field_is_skipped(void) {
    for (int field = 0; field < 9; field++) {
        WSAPROTOCOL_INFOW *e;
        reset();
        e = add_fake(0);
        give_addr(0, v4("10.0.0.1", 0));
        switch (field) {
        case 0:
            e->dwServiceFlags1 = 0x0E;
            break;
        case 1:
            e->dwProviderFlags = 0x04;
            break;
        case 2:
            e->dwProviderFlags = 0x10;
            break;
        case 3:
            e->iVersion = 2;
            break;
        case 4:
            e->iVersion = 1;
            break;
        case 5:
            e->iAddressFamily = AF_UNIX;
            break;
        case 6:
            e->iSocketType = 1;
            break;
        case 7:
            e->iProtocol = 6;
            break;
        case 8:
            e->iProtocolMaxOffset = 1;
            break;
        }
        CHECK_EQ(NdStartup(), S_OK);
        CHECK_EQ(check(v4("10.0.0.1", 0)), ND_INVALID_ADDRESS);
        CHECK_EQ(fake_controls[0].loads, 0);
    }
}

static void catalog_entry_with_more_flags_is_taken(void) {
    WSAPROTOCOL_INFOW *e;

    reset();
    e = add_fake(0);
    e->dwServiceFlags1 |= 0x100;
    e->dwProviderFlags |= 0x8;
    e->iAddressFamily = AF_INET;
    give_addr(0, v4("10.0.0.1", 0));
    CHECK_EQ(NdStartup(), S_OK);
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_SUCCESS);
}

static void catalog_with_a_guid_twice_uses_the_first(void) {
    reset();
    add_fake(0);
    add_entry(&fake_controls[0].id, FAKE_1);
    give_addr(0, v4("10.0.0.1", 0));
    CHECK_EQ(NdStartup(), S_OK);
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_SUCCESS);
    CHECK_EQ(fake_controls[1].loads, 0);
    CHECK_EQ(path_calls, 1);
}

static void catalog_entry_without_a_usable_path_is_dropped(void) {
    reset();
    add_entry(&fake_controls[0].id, "");
    add_entry(&fake_controls[1].id, "?cannot be expanded");
    add_entry(&fake_controls[2].id, "/nonexistent/libnothing.so");
    CHECK_EQ(NdStartup(), S_OK);
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_INVALID_ADDRESS);
}

static void catalog_that_cannot_be_read_keeps_what_is_known(void) {
    reset_with_two();
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_SUCCESS);
    enum_fails = true;
    changed = true;
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_SUCCESS);
}

static void catalog_change_is_seen_at_the_next_call(void) {
    reset_with_two();
    CHECK_EQ(check(v4("10.0.0.2", 0)), ND_SUCCESS);
    CHECK_EQ(check(v4("10.0.0.3", 0)), ND_INVALID_ADDRESS);
    entry_count = 1; /* provider 1 leaves */
    CHECK_EQ(check(v4("10.0.0.2", 0)), ND_INVALID_ADDRESS);
    add_fake(2);
    give_addr(2, v4("10.0.0.3", 0));
    CHECK_EQ(check(v4("10.0.0.3", 0)), ND_SUCCESS);
}

static void catalog_entry_that_moves_keeps_its_path_in_a_running_program(void) {
    reset_with_two();
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_SUCCESS);
    wide(entries[0].path, "/nonexistent/libnothing.so");
    entries[0].info.dwServiceFlags1 |= 0x100;
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_SUCCESS);
}

static void library_without_a_needed_export_is_not_used(void) {
    reset();
    add_entry(&fake_controls[0].id, FAKE_BROKEN);
    give_addr(0, v4("10.0.0.1", 0));
    CHECK_EQ(NdStartup(), S_OK);
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_INVALID_ADDRESS);
    CHECK_EQ(fake_controls[0].loads, 1);
    CHECK_EQ(fake_controls[0].unloads, 1);
}

static void override_counts_only_without_a_provider(void) {
    reset();
    fake_controls[2].id = CLSID_SoftNdProvider;
    give_addr(2, v4("10.0.0.3", 0));
    wide(override_path, FAKE_2);
    CHECK_EQ(NdStartup(), S_OK);
    CHECK_EQ(check(v4("10.0.0.3", 0)), ND_INVALID_ADDRESS);
    have_override = true;
    CHECK_EQ(check(v4("10.0.0.3", 0)), ND_SUCCESS);
    add_fake(0);
    give_addr(0, v4("10.0.0.1", 0));
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_SUCCESS);
    CHECK_EQ(check(v4("10.0.0.3", 0)), ND_INVALID_ADDRESS);
    entry_count = 0;
    CHECK_EQ(check(v4("10.0.0.3", 0)), ND_SUCCESS);
}

/* ---- address lists ---- */

static void query_gives_all_addresses_in_catalog_order(void) {
    union {
        SOCKET_ADDRESS_LIST list;
        char room[512];
    } u;
    SIZE_T cb = 0, need = 8 + 3 * 16 + 16 + 28 + 16;
    SOCKADDR_IN6 six;

    reset_with_two();
    CHECK_EQ(NdQueryAddressList(0, NULL, &cb), ND_BUFFER_OVERFLOW);
    CHECK_EQ(cb, need);
    cb = need - 1;
    CHECK_EQ(NdQueryAddressList(0, &u.list, &cb), ND_BUFFER_OVERFLOW);
    CHECK_EQ(cb, need);
    cb = need + 10;
    CHECK_EQ(NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES, &u.list, &cb), ND_SUCCESS);
    CHECK_EQ(cb, need + 10); /* unchanged on success */
    CHECK_EQ(u.list.iAddressCount, 3);
    CHECK_EQ(u.list.Address[0].iSockaddrLength, 16);
    const SOCKET_ADDRESS *at = u.list.Address; /* more of them than the type says */
    CHECK_EQ(at[1].iSockaddrLength, 28);
    memcpy(&six, at[1].lpSockaddr, sizeof six);
    CHECK_EQ(six.sin6_addr.s6_addr[15], 1);
    CHECK(!memcmp(at[2].lpSockaddr, &fake_controls[1].addrs[0], 16));
    CHECK((char *)at[2].lpSockaddr + 16 == (char *)&u + need);
    CHECK_EQ(NdQueryAddressList(0, NULL, NULL), ND_INVALID_PARAMETER_3);
}

static void query_without_addresses_is_a_success_of_size_0(void) {
    SIZE_T cb = 77;

    reset();
    CHECK_EQ(NdStartup(), S_OK);
    CHECK_EQ(NdQueryAddressList(0, NULL, &cb), ND_SUCCESS);
    CHECK_EQ(cb, 0);
    reset_with_two();
    cb = 77;
    CHECK_EQ(NdQueryAddressList(ND_QUERY_EXCLUDE_NDv2_ADDRESSES, NULL, &cb), ND_SUCCESS);
    CHECK_EQ(cb, 0);
}

static void list_that_succeeds_without_a_buffer_counts_as_empty(void) {
    reset();
    add_fake(0);
    add_fake(1);
    fake_controls[0].null_query_succeeds = true;
    give_addr(0, v4("10.0.0.1", 0));
    give_addr(1, v4("10.0.0.2", 0));
    CHECK_EQ(NdStartup(), S_OK);
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_INVALID_ADDRESS);
    CHECK_EQ(check(v4("10.0.0.2", 0)), ND_SUCCESS);
}

static void list_with_no_addresses_or_no_size_is_empty(void) {
    reset();
    add_fake(0);
    add_fake(1);
    fake_controls[1].asks_for_nothing = true;
    CHECK_EQ(NdStartup(), S_OK);
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_INVALID_ADDRESS);
    CHECK_EQ(fake_controls[0].queries, 2);
    CHECK_EQ(fake_controls[1].queries, 2);
}

static void list_that_grows_between_calls_is_asked_again(void) {
    reset();
    add_fake(0);
    give_addr(0, v4("10.0.0.1", 0));
    fake_controls[0].grows = 1;
    CHECK_EQ(NdStartup(), S_OK);
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_SUCCESS);
    CHECK_EQ(fake_controls[0].queries, 3);
    fake_controls[0].grows = 1000;
    changed = true;
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_INVALID_ADDRESS);
}

static void list_that_counts_more_than_it_can_hold_is_read_to_its_end(void) {
    reset();
    add_fake(0);
    give_addr(0, v4("10.0.0.1", 0));
    fake_controls[0].counts_too_many = 2; /* the second would lie where the address is */
    CHECK_EQ(NdStartup(), S_OK);
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_SUCCESS);
    fake_controls[0].counts_too_many = INT_MAX;
    changed = true;
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_SUCCESS);
}

static void list_entries_that_make_no_sense_are_skipped(void) {
    SOCKADDR_INET odd = v4("10.0.0.9", 0);

    reset();
    add_fake(0);
    give_addr(0, v4("10.0.0.1", 0));
    give_addr(0, v6("fd00::1", 0));
    give_addr(0, v4("10.0.0.2", 0));
    odd.si_family = AF_UNIX;
    give_addr(0, odd);
    give_addr(0, v4("10.0.0.3", 0));
    fake_controls[0].addr_bytes[0] = 0;  /* no sockaddr at all */
    fake_controls[0].addr_bytes[1] = 16; /* too short for IPv6 */
    fake_controls[0].addr_bytes[2] = 15;
    CHECK_EQ(NdStartup(), S_OK);
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_INVALID_ADDRESS);
    CHECK_EQ(check(v6("fd00::1", 0)), ND_INVALID_ADDRESS);
    CHECK_EQ(check(v4("10.0.0.2", 0)), ND_INVALID_ADDRESS);
    CHECK_EQ(check(v4("10.0.0.3", 0)), ND_SUCCESS);
}

static void provider_that_fails_hides_only_itself(void) {
    for (int how = 0; how < 2; how++) {
        reset_with_two();
        if (how == 0) fake_controls[0].object_status = E_OUTOFMEMORY;
        if (how == 1) fake_controls[0].query_status = ND_INSUFFICIENT_RESOURCES;
        CHECK_EQ(check(v4("10.0.0.1", 0)), ND_INVALID_ADDRESS);
        CHECK_EQ(check(v4("10.0.0.2", 0)), ND_SUCCESS);
        CHECK_EQ(fake_controls[0].unloads, fake_controls[0].loads);
        fake_controls[0].object_status = fake_controls[0].query_status = S_OK;
        changed = true;
        CHECK_EQ(check(v4("10.0.0.1", 0)), ND_SUCCESS);
    }
}

static void addresses_are_read_again_only_when_they_changed(void) {
    int queries;

    reset_with_two();
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_SUCCESS);
    queries = fake_controls[0].queries;
    give_addr(0, v4("10.0.0.7", 0));
    CHECK_EQ(check(v4("10.0.0.7", 0)), ND_INVALID_ADDRESS);
    CHECK_EQ(fake_controls[0].queries, queries);
    changed = true;
    CHECK_EQ(check(v4("10.0.0.7", 0)), ND_SUCCESS);
}

/* ---- checks of addresses ---- */

static void check_of_a_bad_address_says_what_is_bad(void) {
    SOCKADDR_INET sa = v4("10.0.0.1", 0), six = v6("fd00::1", 0);

    reset_with_two();
    CHECK_EQ(NdCheckAddress((struct sockaddr *)&sa, 15), ND_INVALID_PARAMETER_2);
    CHECK_EQ(NdCheckAddress((struct sockaddr *)&sa, 0), ND_INVALID_PARAMETER_2);
    CHECK_EQ(NdCheckAddress((struct sockaddr *)&sa, (SIZE_T)1 << 32), ND_INVALID_PARAMETER_2);
    CHECK_EQ(NdCheckAddress((struct sockaddr *)&six, 27), ND_INVALID_PARAMETER_2);
    CHECK_EQ(NdCheckAddress((struct sockaddr *)&six, 28), ND_SUCCESS);
    CHECK_EQ(NdCheckAddress((struct sockaddr *)&sa, 28), ND_SUCCESS);
    CHECK_EQ(NdCheckAddress(NULL, 16), ND_INVALID_PARAMETER_1);
    sa.si_family = AF_UNIX;
    CHECK_EQ(NdCheckAddress((struct sockaddr *)&sa, 16), ND_INVALID_ADDRESS);
}

static void check_compares_address_bytes_only(void) {
    reset_with_two();
    CHECK_EQ(check(v4("10.0.0.1", 4791)), ND_SUCCESS);
    CHECK_EQ(check(v6("fd00::1", 9)), ND_SUCCESS);
    CHECK_EQ(check(v6("fd00::2", 0)), ND_INVALID_ADDRESS);
    /* The same bytes in the other family are another address. */
    CHECK_EQ(check(v4("0.0.0.0", 0)), ND_INVALID_ADDRESS);
    CHECK_EQ(check(v6("::", 0)), ND_INVALID_ADDRESS);
}

/* ---- routes ---- */

static HRESULT route(SOCKADDR_INET remote, SOCKADDR_INET *local, SIZE_T *cb) {
    return NdResolveAddress((struct sockaddr *)&remote, sizeof remote, (struct sockaddr *)local,
                            cb);
}

static void resolve_gives_the_listed_source_address(void) {
    SOCKADDR_INET local;
    SIZE_T cb = sizeof local;

    reset_with_two();
    route_answer = v4("10.0.0.2", 0);
    CHECK_EQ(route(v4("10.0.0.77", 0), &local, &cb), ND_SUCCESS);
    CHECK_EQ(cb, 16);
    CHECK(!memcmp(&local, &route_answer, 16));
    route_answer = v6("fd00::1", 0);
    cb = sizeof local;
    CHECK_EQ(route(v6("fd00::77", 0), &local, &cb), ND_SUCCESS);
    CHECK_EQ(cb, 28);
}

static void resolve_to_an_unlisted_source_is_invalid(void) {
    SOCKADDR_INET local;
    SIZE_T cb = sizeof local;

    reset_with_two();
    route_answer = v4("10.0.0.3", 0);
    CHECK_EQ(route(v4("10.0.0.77", 0), &local, &cb), ND_INVALID_ADDRESS);
}

static void resolve_without_room_says_how_much(void) {
    SOCKADDR_INET local;
    SIZE_T cb = 15;

    reset_with_two();
    route_answer = v4("10.0.0.1", 0);
    CHECK_EQ(route(v4("10.0.0.77", 0), &local, &cb), ND_BUFFER_OVERFLOW);
    CHECK_EQ(cb, 16);
    CHECK_EQ(route(v4("10.0.0.77", 0), NULL, &cb), ND_BUFFER_OVERFLOW);
    CHECK_EQ(route(v4("10.0.0.77", 0), &local, NULL), ND_INVALID_PARAMETER_4);
}

static void resolve_failures_keep_their_code(void) {
    SOCKADDR_INET local, bad = v4("10.0.0.1", 0);
    SIZE_T cb = sizeof local;

    reset_with_two();
    route_status = ND_NETWORK_UNREACHABLE;
    CHECK_EQ(route(v4("10.0.0.77", 0), &local, &cb), ND_NETWORK_UNREACHABLE);
    route_status = ND_UNSUCCESSFUL;
    CHECK_EQ(route(v4("10.0.0.77", 0), &local, &cb), ND_UNSUCCESSFUL);
    CHECK_EQ(NdResolveAddress((struct sockaddr *)&bad, 15, (struct sockaddr *)&local, &cb),
             ND_INVALID_PARAMETER_2);
    bad.si_family = AF_UNIX;
    CHECK_EQ(route(bad, &local, &cb), ND_INVALID_ADDRESS);
}

/* ---- adapters ---- */

static void open_asks_the_provider_with_the_address_as_given(void) {
    IUnknown *adapter;

    reset_with_two();
    CHECK_EQ(open_at(v4("10.0.0.2", 1234), &adapter), ND_SUCCESS);
    CHECK(adapter);
    CHECK_EQ(fake_controls[0].resolves, 0);
    CHECK_EQ(fake_controls[1].resolved_bytes, sizeof(SOCKADDR_INET));
    CHECK_EQ(fake_controls[1].resolved.Ipv4.sin_port, htons(1234));
    CHECK(IsEqualIID(&fake_controls[1].opened_iid, &IID_IND2Adapter));
    IUnknown_Release(adapter);
}

static void open_of_an_unlisted_address_is_invalid(void) {
    IUnknown *adapter = (IUnknown *)&adapter;
    SOCKADDR_INET sa = v4("10.0.0.1", 0);

    reset_with_two();
    CHECK_EQ(open_at(v4("10.0.0.3", 0), &adapter), ND_INVALID_ADDRESS);
    CHECK_PTR(adapter, NULL);
    CHECK_EQ(NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&sa, 15, (void **)&adapter),
             ND_INVALID_PARAMETER_2);
    CHECK_EQ(NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&sa, 16, NULL), E_POINTER);
}

static void open_tries_each_provider_that_has_the_address(void) {
    IUnknown *adapter;

    reset_with_two();
    give_addr(1, v4("10.0.0.1", 0));
    fake_controls[0].open_status = ND_NO_MEMORY;
    CHECK_EQ(open_at(v4("10.0.0.1", 0), &adapter), ND_SUCCESS);
    CHECK_EQ(fake_controls[0].opens, 1);
    CHECK_EQ(fake_controls[1].opens, 1);
    IUnknown_Release(adapter);
    fake_controls[1].open_status = E_NOINTERFACE;
    CHECK_EQ(open_at(v4("10.0.0.1", 0), &adapter), E_NOINTERFACE);
    CHECK_PTR(adapter, NULL);
}

static void open_failures_before_the_adapter_are_an_invalid_address(void) {
    IUnknown *adapter;

    reset_with_two();
    fake_controls[1].resolve_status = ND_NO_MEMORY;
    CHECK_EQ(open_at(v4("10.0.0.2", 0), &adapter), ND_INVALID_ADDRESS);
    fake_controls[1].resolve_status = S_OK;
    fake_controls[1].object_status = E_OUTOFMEMORY;
    CHECK_EQ(open_at(v4("10.0.0.2", 0), &adapter), ND_INVALID_ADDRESS);
}

/* ---- loading and unloading ---- */

static void library_not_in_use_is_unloaded_after_each_question(void) {
    reset_with_two();
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_SUCCESS);
    CHECK_EQ(fake_controls[0].loads, 1);
    CHECK_EQ(fake_controls[0].unloads, 1);
    CHECK_EQ(fake_controls[0].live, 0);
}

static void library_with_an_open_adapter_stays_loaded(void) {
    IUnknown *adapter;

    reset_with_two();
    CHECK_EQ(open_at(v4("10.0.0.1", 0), &adapter), ND_SUCCESS);
    CHECK_EQ(fake_controls[0].loads - fake_controls[0].unloads, 1);
    NdFlushProviders();
    CHECK_EQ(fake_controls[0].loads - fake_controls[0].unloads, 1);
    IUnknown_Release(adapter);
    NdFlushProviders();
    CHECK_EQ(fake_controls[0].loads - fake_controls[0].unloads, 0);
}

static void provider_that_left_the_catalog_is_kept_while_in_use(void) {
    IUnknown *adapter;

    reset_with_two();
    CHECK_EQ(open_at(v4("10.0.0.2", 0), &adapter), ND_SUCCESS);
    entry_count = 1;
    CHECK_EQ(check(v4("10.0.0.2", 0)), ND_INVALID_ADDRESS);
    CHECK_EQ(fake_controls[1].loads - fake_controls[1].unloads, 1);
    IUnknown_Release(adapter); /* its code must still be there */
    NdFlushProviders();
    CHECK_EQ(fake_controls[1].loads - fake_controls[1].unloads, 0);
}

static void last_cleanup_leaves_a_library_in_use_loaded(void) {
    IUnknown *adapter;

    reset_with_two();
    CHECK_EQ(open_at(v4("10.0.0.1", 0), &adapter), ND_SUCCESS);
    CHECK_EQ(NdCleanup(), S_OK);
    CHECK_EQ(fake_controls[0].loads - fake_controls[0].unloads, 1);
    CHECK_EQ(fake_controls[1].loads - fake_controls[1].unloads, 0);
    IUnknown_Release(adapter);
    /* The next start finds it again, and lets it go. */
    CHECK_EQ(NdStartup(), S_OK);
    CHECK_EQ(check(v4("10.0.0.1", 0)), ND_SUCCESS);
    CHECK_EQ(NdCleanup(), S_OK);
    CHECK_EQ(fake_controls[0].loads - fake_controls[0].unloads, 0);
}

TEST_MAIN(
    TEST(calls_before_start_are_not_ready), TEST(start_is_counted),
    TEST(start_when_the_system_fails_reports_it), TEST(start_loads_nothing),
    TEST(catalog_entry_with_a_wrong_field_is_skipped), TEST(catalog_entry_with_more_flags_is_taken),
    TEST(catalog_with_a_guid_twice_uses_the_first),
    TEST(catalog_entry_without_a_usable_path_is_dropped),
    TEST(catalog_that_cannot_be_read_keeps_what_is_known),
    TEST(catalog_change_is_seen_at_the_next_call),
    TEST(catalog_entry_that_moves_keeps_its_path_in_a_running_program),
    TEST(library_without_a_needed_export_is_not_used),
    TEST(override_counts_only_without_a_provider), TEST(query_gives_all_addresses_in_catalog_order),
    TEST(query_without_addresses_is_a_success_of_size_0),
    TEST(list_that_succeeds_without_a_buffer_counts_as_empty),
    TEST(list_with_no_addresses_or_no_size_is_empty),
    TEST(list_that_grows_between_calls_is_asked_again),
    TEST(list_that_counts_more_than_it_can_hold_is_read_to_its_end),
    TEST(list_entries_that_make_no_sense_are_skipped), TEST(provider_that_fails_hides_only_itself),
    TEST(addresses_are_read_again_only_when_they_changed),
    TEST(check_of_a_bad_address_says_what_is_bad), TEST(check_compares_address_bytes_only),
    TEST(resolve_gives_the_listed_source_address), TEST(resolve_to_an_unlisted_source_is_invalid),
    TEST(resolve_without_room_says_how_much), TEST(resolve_failures_keep_their_code),
    TEST(open_asks_the_provider_with_the_address_as_given),
    TEST(open_of_an_unlisted_address_is_invalid),
    TEST(open_tries_each_provider_that_has_the_address),
    TEST(open_failures_before_the_adapter_are_an_invalid_address),
    TEST(library_not_in_use_is_unloaded_after_each_question),
    TEST(library_with_an_open_adapter_stays_loaded),
    TEST(provider_that_left_the_catalog_is_kept_while_in_use),
    TEST(last_cleanup_leaves_a_library_in_use_loaded))
