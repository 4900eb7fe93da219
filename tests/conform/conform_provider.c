/* SPDX-License-Identifier: MIT
 * conform_provider.c - the library's entry points and IND2Provider: class objects, unloading,
 * address lists, adapters by address and by id.
 */
#include "fixture.h"

static const GUID other_id = {
    0x8D1B2C3A, 0x77E1, 0x4F0B, { 0x91, 0x22, 0x10, 0x20, 0x30, 0x40, 0x50, 0x61 }
};

/* ---- DllGetClassObject, DllCanUnloadNow ---- */

static void get_class_object_of_provider_iid_gives_a_provider(void) {
    const struct fx_library *lib = fx_library();
    void *object = NULL;
    CHECK_HR(lib->get_class_object(&lib->class_id, &IID_IND2Provider, &object), S_OK);
    IND2Provider *provider = object;
    ULONG cb = 0;
    CHECK_HR(CALL(provider, QueryAddressList, NULL, &cb), ND_BUFFER_OVERFLOW);
    CHECK_EQ(CALL(provider, Release), 0);
}

static void get_class_object_of_iunknown_gives_a_provider(void) {
    const struct fx_library *lib = fx_library();
    void *object = NULL, *provider = NULL;
    CHECK_HR(lib->get_class_object(&lib->class_id, &IID_IUnknown, &object), S_OK);
    CHECK_HR(CALL(UNKNOWN(object), QueryInterface, &IID_IND2Provider, &provider), S_OK);
    CHECK_EQ(CALL(UNKNOWN(provider), Release), 1);
    CHECK_EQ(CALL(UNKNOWN(object), Release), 0);
}

static void get_class_object_of_factory_iid_gives_a_factory(void) {
    const struct fx_library *lib = fx_library();
    void *object = NULL, *provider = NULL;
    CHECK_HR(lib->get_class_object(&lib->class_id, &IID_IClassFactory, &object), S_OK);
    IClassFactory *factory = object;
    CHECK_HR(CALL(factory, CreateInstance, NULL, &IID_IND2Provider, &provider), S_OK);
    CHECK_EQ(CALL(factory, Release), 0);
    ULONG cb = 0;
    CHECK_HR(CALL((IND2Provider *)provider, QueryAddressList, NULL, &cb), ND_BUFFER_OVERFLOW);
    CHECK_EQ(CALL(UNKNOWN(provider), Release), 0);
}

static void get_class_object_of_another_class_is_not_available(void) {
    void *object = (void *)1;
    CHECK_HR(fx_library()->get_class_object(&other_id, &IID_IND2Provider, &object),
             CLASS_E_CLASSNOTAVAILABLE);
    CHECK_PTR(object, NULL);
}

static void get_class_object_of_unknown_iid_has_no_interface(void) {
    const struct fx_library *lib = fx_library();
    void *object = (void *)1;
    CHECK_HR(lib->get_class_object(&lib->class_id, &other_id, &object), E_NOINTERFACE);
    CHECK_PTR(object, NULL);
}

static void get_class_object_without_result_pointer_is_e_pointer(void) {
    const struct fx_library *lib = fx_library();
    CHECK_HR(lib->get_class_object(&lib->class_id, &IID_IND2Provider, NULL), E_POINTER);
}

static void factory_with_outer_object_refuses_aggregation(void) {
    const struct fx_library *lib = fx_library();
    void *factory = NULL, *object = (void *)1;
    CHECK_HR(lib->get_class_object(&lib->class_id, &IID_IClassFactory, &factory), S_OK);
    CHECK_HR(
        CALL((IClassFactory *)factory, CreateInstance, UNKNOWN(factory), &IID_IUnknown, &object),
        CLASS_E_NOAGGREGATION);
    CHECK_PTR(object, NULL);
    CHECK_EQ(CALL(UNKNOWN(factory), Release), 0);
}

static void factory_of_unknown_iid_has_no_interface(void) {
    const struct fx_library *lib = fx_library();
    void *factory = NULL, *object = (void *)1;
    CHECK_HR(lib->get_class_object(&lib->class_id, &IID_IClassFactory, &factory), S_OK);
    CHECK_HR(CALL((IClassFactory *)factory, CreateInstance, NULL, &other_id, &object),
             E_NOINTERFACE);
    CHECK_PTR(object, NULL);
    CHECK_EQ(CALL(UNKNOWN(factory), Release), 0);
}

static void can_unload_now_follows_the_objects(void) {
    const struct fx_library *lib = fx_library();
    /* Threads of what other cases used may still be ending. */
    for (uint64_t deadline = fx_deadline(); lib->can_unload_now() != S_OK; Sleep(0))
        CHECK(host_now_ms() < deadline);
    IND2Provider *provider = fx_provider();
    CHECK_HR(lib->can_unload_now(), S_FALSE);
    CALL(provider, Release);

    void *factory = NULL;
    CHECK_HR(lib->get_class_object(&lib->class_id, &IID_IClassFactory, &factory), S_OK);
    CHECK_HR(lib->can_unload_now(), S_FALSE);
    CHECK_HR(CALL((IClassFactory *)factory, LockServer, TRUE), S_OK);
    CALL(UNKNOWN(factory), Release);
    CHECK_HR(lib->can_unload_now(), S_FALSE);
    CHECK_HR(lib->get_class_object(&lib->class_id, &IID_IClassFactory, &factory), S_OK);
    CHECK_HR(CALL((IClassFactory *)factory, LockServer, FALSE), S_OK);
    CALL(UNKNOWN(factory), Release);
    for (uint64_t deadline = fx_deadline(); lib->can_unload_now() != S_OK; Sleep(0))
        CHECK(host_now_ms() < deadline);
}

static void can_unload_now_with_an_adapter_alone_says_no(void) {
    struct fx *f = fx_begin();
    /* Clients drop the provider as soon as they have the adapter, and then ask. An adapter counts
     * as one reference to it: a client that opened one checks for 1 here. */
    CHECK_EQ(CALL(f->host[1].adapter, Release), 0);
    f->host[1].adapter = NULL;
    CHECK_EQ(CALL(f->provider, Release), 1);
    f->provider = NULL;
    CHECK_HR(fx_library()->can_unload_now(), S_FALSE);
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    CHECK_EQ(CALL(f->host[0].adapter, Release), 0);
    f->host[0].adapter = NULL;
    CHECK_HR(fx_library()->can_unload_now(), S_FALSE);
    CHECK_EQ(fx_release(f, cq), 0);
    fx_end(f);
    for (uint64_t deadline = fx_deadline(); fx_library()->can_unload_now() != S_OK; Sleep(0))
        CHECK(host_now_ms() < deadline);
}

/* ---- IUnknown ---- */

static void query_interface_knows_own_and_iunknown(void) {
    IND2Provider *provider = fx_provider();
    void *again = NULL, *unknown = NULL, *none = (void *)1;
    CHECK_HR(CALL(provider, QueryInterface, &IID_IND2Provider, &again), S_OK);
    CHECK_PTR(again, provider);
    CHECK_HR(CALL(provider, QueryInterface, &IID_IUnknown, &unknown), S_OK);
    CHECK_HR(CALL(provider, QueryInterface, &IID_IND2Adapter, &none), E_NOINTERFACE);
    CHECK_PTR(none, NULL);
    CHECK_HR(CALL(provider, QueryInterface, &IID_IUnknown, NULL), E_POINTER);
    CHECK_EQ(CALL(UNKNOWN(unknown), Release), 2);
    CHECK_EQ(CALL(provider, AddRef), 3);
    CHECK_EQ(CALL(provider, Release), 2);
    CHECK_EQ(CALL(provider, Release), 1);
    CHECK_EQ(CALL(provider, Release), 0);
}

static void provider_objects_are_independent(void) {
    IND2Provider *one = fx_provider(), *two = fx_provider();
    CHECK_EQ(CALL(one, Release), 0);
    ULONG cb = 0;
    CHECK_HR(CALL(two, QueryAddressList, NULL, &cb), ND_BUFFER_OVERFLOW);
    CHECK_EQ(CALL(two, Release), 0);
}

/* ---- QueryAddressList ---- */

/* Every entry lies inside the buffer and is an address with its full length. */
static void check_list(const SOCKET_ADDRESS_LIST *list, ULONG cb) {
    const uint8_t *begin = (const uint8_t *)list, *end = begin + cb;
    CHECK(list->iAddressCount > 0);
    for (INT i = 0; i < list->iAddressCount; i++) {
        const SOCKET_ADDRESS *entry = &list->Address[i];
        const uint8_t *at = (const uint8_t *)entry->lpSockaddr;
        CHECK((const uint8_t *)(entry + 1) <= end);
        CHECK(at >= begin && at < end && entry->iSockaddrLength <= end - at);
        if (entry->lpSockaddr->sa_family == AF_INET)
            CHECK_EQ(entry->iSockaddrLength, sizeof(struct sockaddr_in));
        else {
            CHECK_EQ(entry->lpSockaddr->sa_family, AF_INET6);
            CHECK_EQ(entry->iSockaddrLength, sizeof(struct sockaddr_in6));
        }
    }
}

static bool list_has(const SOCKET_ADDRESS_LIST *list, const struct sockaddr_storage *wanted) {
    for (INT i = 0; i < list->iAddressCount; i++) {
        const struct sockaddr *one = list->Address[i].lpSockaddr;
        if (one->sa_family != wanted->ss_family) continue;
        if (one->sa_family == AF_INET) {
            if (memcmp(&((const struct sockaddr_in *)one)->sin_addr,
                       &((const struct sockaddr_in *)wanted)->sin_addr, 4) == 0)
                return true;
        } else if (memcmp(&((const struct sockaddr_in6 *)one)->sin6_addr,
                          &((const struct sockaddr_in6 *)wanted)->sin6_addr, 16) == 0) {
            return true;
        }
    }
    return false;
}

/* The list, in memory of exactly its size. */
static SOCKET_ADDRESS_LIST *get_list(struct fx *f, ULONG *cb) {
    HRESULT hr;
    SOCKET_ADDRESS_LIST *list = NULL;
    *cb = 0;
    /* The list may grow between the calls. */
    while ((hr = CALL(f->provider, QueryAddressList, list, cb)) == ND_BUFFER_OVERFLOW)
        list = fx_alloc(f, *cb);
    CHECK_HR(hr, ND_SUCCESS);
    return list;
}

static void query_address_list_without_buffer_tells_the_size(void) {
    IND2Provider *provider = fx_provider();
    ULONG cb = 0;
    CHECK_HR(CALL(provider, QueryAddressList, NULL, &cb), ND_BUFFER_OVERFLOW);
    CHECK(cb >= sizeof(SOCKET_ADDRESS_LIST));
    ULONG lie = 65536; /* no buffer is too small, whatever its size is said to be */
    CHECK_HR(CALL(provider, QueryAddressList, NULL, &lie), ND_BUFFER_OVERFLOW);
    CHECK_EQ(lie, cb);
    CALL(provider, Release);
}

static void query_address_list_gives_every_address(void) {
    struct fx *f = fx_begin();
    ULONG cb;
    SOCKET_ADDRESS_LIST *list = get_list(f, &cb);
    check_list(list, cb);
    CHECK(list_has(list, &f->local));
    fx_end(f);
}

static void query_address_list_into_small_buffer_writes_nothing(void) {
    struct fx *f = fx_begin();
    ULONG cb, room;
    get_list(f, &cb);
    uint8_t *bytes = fx_alloc(f, cb);
    memset(bytes, 0xA5, cb);
    room = cb - 1;
    CHECK_HR(CALL(f->provider, QueryAddressList, (SOCKET_ADDRESS_LIST *)bytes, &room),
             ND_BUFFER_OVERFLOW);
    CHECK_EQ(room, cb);
    for (ULONG i = 0; i < cb; i++)
        CHECK_EQ(bytes[i], 0xA5);
    fx_end(f);
}

static void query_address_list_into_large_buffer_uses_what_it_needs(void) {
    struct fx *f = fx_begin();
    ULONG cb, room = 65536;
    get_list(f, &cb);
    SOCKET_ADDRESS_LIST *list = fx_alloc(f, room);
    CHECK_HR(CALL(f->provider, QueryAddressList, list, &room), ND_SUCCESS);
    CHECK_EQ(room, cb);
    check_list(list, room);
    fx_end(f);
}

/* ---- ResolveAddress, OpenAdapter ---- */

static void resolve_address_of_every_listed_address_opens_its_adapter(void) {
    struct fx *f = fx_begin();
    ULONG cb;
    SOCKET_ADDRESS_LIST *list = get_list(f, &cb);
    for (INT i = 0; i < list->iAddressCount; i++) {
        UINT64 id = 0, again = 0;
        void *adapter = NULL;
        const SOCKET_ADDRESS *a = &list->Address[i];
        CHECK_HR(CALL(f->provider, ResolveAddress, a->lpSockaddr, (ULONG)a->iSockaddrLength, &id),
                 ND_SUCCESS);
        CHECK_HR(
            CALL(f->provider, ResolveAddress, a->lpSockaddr, (ULONG)a->iSockaddrLength, &again),
            ND_SUCCESS);
        CHECK_EQ(again, id);
        CHECK_HR(CALL(f->provider, OpenAdapter, &IID_IND2Adapter, id, &adapter), ND_SUCCESS);
        CHECK_EQ(CALL(UNKNOWN(adapter), Release), 0);
    }
    fx_end(f);
}

static void resolve_address_ignores_the_port(void) {
    struct fx *f = fx_begin();
    struct sockaddr_storage with = fx_with_port(&f->local, 4711);
    UINT64 id = 0;
    CHECK_HR(CALL(f->provider, ResolveAddress, ADDR(with), f->local_len, &id), ND_SUCCESS);
    CHECK_EQ(id, f->adapter_id);
    fx_end(f);
}

static void resolve_address_accepts_a_longer_length(void) {
    struct fx *f = fx_begin();
    UINT64 id = 0;
    CHECK_HR(CALL(f->provider, ResolveAddress, ADDR(f->local), sizeof f->local, &id), ND_SUCCESS);
    CHECK_EQ(id, f->adapter_id);
    fx_end(f);
}

static void resolve_address_of_a_foreign_address_is_invalid(void) {
    struct fx *f = fx_begin();
    /* TEST-NET-3 and the documentation prefix: nobody's addresses. */
    static const char *const foreign[] = { "203.0.113.77", "2001:db8::77", "0.0.0.0", "::" };
    for (size_t i = 0; i < COUNT_OF(foreign); i++) {
        struct sockaddr_storage addr;
        ULONG len;
        UINT64 id = 99;
        CHECK(host_parse_address(foreign[i], &addr, &len));
        CHECK_HR(CALL(f->provider, ResolveAddress, ADDR(addr), len, &id), ND_INVALID_ADDRESS);
    }
    fx_end(f);
}

static void resolve_address_of_garbage_fails(void) {
    struct fx *f = fx_begin();
    UINT64 id;
    struct sockaddr_storage odd = f->local;
    odd.ss_family = 199;
    CHECK_FAILED(CALL(f->provider, ResolveAddress, ADDR(odd), f->local_len, &id));
    CHECK_FAILED(CALL(f->provider, ResolveAddress, ADDR(f->local), f->local_len - 1, &id));
    CHECK_FAILED(CALL(f->provider, ResolveAddress, ADDR(f->local), 0, &id));
    CHECK_FAILED(CALL(f->provider, ResolveAddress, NULL, f->local_len, &id));
    CHECK_FAILED(CALL(f->provider, ResolveAddress, ADDR(f->local), f->local_len, NULL));
    fx_end(f);
}

static void open_adapter_of_unknown_id_is_an_invalid_parameter(void) {
    struct fx *f = fx_begin();
    static const UINT64 ids[] = { 0, ~(UINT64)0, 0x123456789ABCDEF0 };
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        void *adapter = (void *)1;
        CHECK_HR(CALL(f->provider, OpenAdapter, &IID_IND2Adapter, ids[i], &adapter),
                 ND_INVALID_PARAMETER);
        CHECK_PTR(adapter, NULL);
    }
    fx_end(f);
}

static void open_adapter_of_unknown_iid_has_no_interface(void) {
    struct fx *f = fx_begin();
    void *adapter = (void *)1;
    CHECK_HR(CALL(f->provider, OpenAdapter, &other_id, f->adapter_id, &adapter), E_NOINTERFACE);
    CHECK_PTR(adapter, NULL);
    CHECK_HR(CALL(f->provider, OpenAdapter, &IID_IND2Adapter, f->adapter_id, NULL), E_POINTER);
    fx_end(f);
}

static void open_adapter_gives_the_id_that_query_reports(void) {
    struct fx *f = fx_begin();
    CHECK_EQ(f->info.AdapterId, f->adapter_id);
    fx_end(f);
}

static void open_adapter_survives_the_provider_object(void) {
    struct fx *f = fx_begin();
    CALL(f->provider, Release);
    f->provider = NULL;
    struct fx_pair *p = PAIR(f, NULL);
    SYNC(f, &p->a, &p->b);
    fx_end(f);
}

struct opener {
    struct fx *f;
    HRESULT worst;
};

static void open_and_close_often(void *arg) {
    struct opener *o = arg;
    const struct fx_library *lib = fx_library();
    for (int i = 0; i < 25 && o->worst == ND_SUCCESS; i++) {
        void *provider = NULL, *adapter = NULL;
        ULONG cb = 0;
        UINT64 id = 0;
        HRESULT hr = lib->get_class_object(&lib->class_id, &IID_IND2Provider, &provider);
        if (SUCCEEDED(hr) &&
            CALL((IND2Provider *)provider, QueryAddressList, NULL, &cb) != ND_BUFFER_OVERFLOW)
            hr = ND_UNSUCCESSFUL;
        if (SUCCEEDED(hr))
            hr = CALL((IND2Provider *)provider, ResolveAddress, ADDR(o->f->local), o->f->local_len,
                      &id);
        if (SUCCEEDED(hr))
            hr = CALL((IND2Provider *)provider, OpenAdapter, &IID_IND2Adapter, id, &adapter);
        if (adapter) CALL(UNKNOWN(adapter), Release);
        if (provider) CALL(UNKNOWN(provider), Release);
        o->worst = hr;
    }
}

static void open_adapter_from_several_threads_works(void) {
    struct fx *f = fx_begin();
    struct opener o[3] = { { f, ND_SUCCESS }, { f, ND_SUCCESS }, { f, ND_SUCCESS } };
    struct host_thread *t[3];
    for (int i = 0; i < 3; i++)
        CHECK((t[i] = host_thread_start(open_and_close_often, &o[i])) != NULL);
    for (int i = 0; i < 3; i++)
        host_thread_join(t[i]);
    for (int i = 0; i < 3; i++)
        CHECK_HR(o[i].worst, ND_SUCCESS);
    fx_end(f);
}

CONFORM_MAIN(
    TEST(can_unload_now_follows_the_objects), TEST(can_unload_now_with_an_adapter_alone_says_no),
    TEST(get_class_object_of_provider_iid_gives_a_provider),
    TEST(get_class_object_of_iunknown_gives_a_provider),
    TEST(get_class_object_of_factory_iid_gives_a_factory),
    TEST(get_class_object_of_another_class_is_not_available),
    TEST(get_class_object_of_unknown_iid_has_no_interface),
    TEST(get_class_object_without_result_pointer_is_e_pointer),
    TEST(factory_with_outer_object_refuses_aggregation),
    TEST(factory_of_unknown_iid_has_no_interface), TEST(query_interface_knows_own_and_iunknown),
    TEST(provider_objects_are_independent), TEST(query_address_list_without_buffer_tells_the_size),
    TEST(query_address_list_gives_every_address),
    TEST(query_address_list_into_small_buffer_writes_nothing),
    TEST(query_address_list_into_large_buffer_uses_what_it_needs),
    TEST(resolve_address_of_every_listed_address_opens_its_adapter),
    TEST(resolve_address_ignores_the_port), TEST(resolve_address_accepts_a_longer_length),
    TEST(resolve_address_of_a_foreign_address_is_invalid), TEST(resolve_address_of_garbage_fails),
    TEST(open_adapter_of_unknown_id_is_an_invalid_parameter),
    TEST(open_adapter_of_unknown_iid_has_no_interface),
    TEST(open_adapter_gives_the_id_that_query_reports),
    TEST(open_adapter_survives_the_provider_object), TEST(open_adapter_from_several_threads_works))
