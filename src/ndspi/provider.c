/* SPDX-License-Identifier: MIT
 * provider.c - IND2Provider: addresses and adapters.
 */
#include "ndspi/adapter.h"
#include "ndspi/addresses.h"
#include "ndspi/status.h"
#include "os/prim/fault.h"

/* Nothing of its own: what it says is asked from the core each time, as interfaces come and go. */
static void close_provider(struct ndspi_object *o) {
    (void)o;
}

static const struct ndspi_class provider_class = {
    .name = "provider",
    .iid = &IID_IND2Provider,
    .close = close_provider,
};

NDSPI_IUNKNOWN(IND2Provider)

/* All addresses, those that others can reach first: some programs take the first one. */
static size_t gather(const struct rd_adapter_entry *list, size_t count, struct os_addr *out) {
    size_t n = 0;
    for (int loopback = 0; loopback < 2; loopback++)
        for (size_t i = 0; i < count; i++)
            for (uint32_t a = 0; list[i].netif.loopback == loopback && a < list[i].netif.addr_count;
                 a++) {
                if (out) out[n] = list[i].netif.addrs[a];
                n++;
            }
    return n;
}

static HRESULT STDMETHODCALLTYPE query_address_list(IND2Provider *This, SOCKET_ADDRESS_LIST *buf,
                                                    ULONG *pcb) {
    (void)This;
    if (!pcb) return ndspi_bad_param(2);
    struct rd_adapter_entry *list = NULL;
    size_t count = 0;
    sn_status st = rd_adapter_list(&list, &count);
    if (st != SN_OK) return ndspi_status(st);
    size_t total = gather(list, count, NULL);
    struct os_addr *addrs = os_zalloc((total + 1) * sizeof *addrs);
    HRESULT hr = ND_NO_MEMORY;
    if (addrs) {
        (void)gather(list, count, addrs);
        hr = ndspi_addr_list_answer(addrs, total, buf, pcb);
    }
    os_free(addrs);
    rd_adapter_list_free(list);
    return hr;
}

static HRESULT STDMETHODCALLTYPE resolve_address(IND2Provider *This, const struct sockaddr *sa,
                                                 ULONG cb, UINT64 *adapter_id) {
    (void)This;
    if (!adapter_id) return ndspi_bad_param(3);
    struct os_addr addr;
    HRESULT hr = ndspi_addr_read(sa, cb, 1, ND_INVALID_ADDRESS, &addr);
    if (hr != ND_SUCCESS) return hr;
    uint64_t id = 0;
    sn_status st = rd_adapter_resolve(&addr, &id);
    if (st != SN_OK) return ndspi_status(st);
    *adapter_id = id;
    return ND_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE open_adapter(IND2Provider *This, REFIID iid, UINT64 id,
                                              VOID **out) {
    return ndspi_adapter_create((struct ndspi_object *)This, iid, id, out);
}

static const IND2ProviderVtbl vtbl = {
    NDSPI_IUNKNOWN_SLOTS,
    .QueryAddressList = query_address_list,
    .ResolveAddress = resolve_address,
    .OpenAdapter = open_adapter,
};

HRESULT ndspi_provider_create(REFIID iid, void **out) {
    HRESULT hr = ndspi_class_check(&provider_class, iid, out);
    if (hr != ND_SUCCESS) return hr;
    *out = ndspi_object_create(sizeof(struct ndspi_object), &provider_class, &vtbl, NULL);
    return *out ? S_OK : E_OUTOFMEMORY;
}
