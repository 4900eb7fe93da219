/* SPDX-License-Identifier: MIT
 *
 * The registrar keeps its own record of each registration, so that a consumer's block is only
 * compared, never believed.
 */
#include "wsk.h"
#include "ndk/ndk.h"
#include "ndk/registrar.h"
#include "os/prim/fault.h"
#include "wskndk.h"

struct client {
    struct sn_list link;
    PWSK_REGISTRATION block;
    uint32_t captured;
    uint32_t adapters;
};

static os_lock lock; /* rank LEAF */
static os_cond changed;
static struct sn_list clients;
static os_once once = OS_ONCE_INIT;

static void init(void) {
    os_lock_init(&lock, OS_RANK_LEAF);
    os_cond_init(&changed);
    sn_list_init(&clients);
}

static struct client *find_locked(const void *client_or_block) {
    SN_LIST_FOR(it, &clients) {
        struct client *c = SN_CONTAINER(it, struct client, link);
        if (c == client_or_block || c->block == client_or_block) return c;
    }
    return NULL;
}

static void enter(const char *call) {
    os_once_run(&once, init);
    ndk_options_load();
    if (ndk_verifying()) ke_call_enter(call, PASSIVE_LEVEL);
    os_lock_enter(&lock);
}

/* ---- adapters ---- */

static NTSTATUS open_adapter(PWSK_CLIENT client, NDK_VERSION version, NET_IFINDEX index,
                             NDK_ADAPTER **out) {
    enter("WskOpenNdkAdapter");
    struct client *c = find_locked(client);
    if (c) c->adapters++;
    os_lock_leave(&lock);
    if (!c || !out) {
        ndk_violation(NDK_RULE_wsk, "WskOpenNdkAdapter", client, "not a client");
        return STATUS_INVALID_PARAMETER;
    }
    NDIS_STATUS status = ndk_open(index, version, out);
    if (status == NDIS_STATUS_SUCCESS) {
        ((struct ndk_adapter *)*out)->wsk_client = client;
        return STATUS_SUCCESS;
    }
    os_lock_enter(&lock);
    c->adapters--;
    os_cond_broadcast(&changed);
    os_lock_leave(&lock);
    return status;
}

static VOID close_adapter(PWSK_CLIENT client, NDK_ADAPTER *adapter) {
    ndk_close_adapter(adapter);
    os_lock_enter(&lock);
    struct client *c = find_locked(client);
    if (c && c->adapters) c->adapters--;
    os_cond_broadcast(&changed);
    os_lock_leave(&lock);
}

/* ---- the provider's table ---- */

static NTSTATUS not_supported(PWSK_CLIENT client) {
    (void)client;
    return STATUS_NOT_SUPPORTED;
}

static NTSTATUS control_client(PWSK_CLIENT client, ULONG code, SIZE_T in_size, PVOID in,
                               SIZE_T out_size, PVOID out, SIZE_T *returned, PIRP irp) {
    static const WSK_PROVIDER_NDK_DISPATCH ndk = { open_adapter, close_adapter };
    (void)in_size;
    (void)in;
    enter("WskControlClient");
    bool known = find_locked(client) != NULL;
    os_lock_leave(&lock);
    if (!known) {
        ndk_violation(NDK_RULE_wsk, "WskControlClient", client, "not a client");
        return STATUS_INVALID_PARAMETER;
    }
    if (code != WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH) return STATUS_NOT_SUPPORTED;
    if (!out || out_size != sizeof ndk) {
        ndk_violation(NDK_RULE_wsk, "WskControlClient", client,
                      "the output buffer has %zu bytes, a WSK_PROVIDER_NDK_DISPATCH %zu", out_size,
                      sizeof ndk);
        return STATUS_INVALID_PARAMETER;
    }
    memcpy(out, &ndk, sizeof ndk);
    if (returned) *returned = sizeof ndk;
    if (irp) irp->IoStatus.Status = STATUS_SUCCESS;
    return STATUS_SUCCESS;
}

/* ---- the registrar ---- */

NTSTATUS WskRegister(PWSK_CLIENT_NPI npi, PWSK_REGISTRATION block) {
    enter("WskRegister");
    bool twice = find_locked(block) != NULL;
    os_lock_leave(&lock);
    if (!npi || !npi->Dispatch || !block) return STATUS_INVALID_PARAMETER;
    if (twice) {
        ndk_violation(NDK_RULE_wsk, "WskRegister", block, "the block is registered already");
        return STATUS_INVALID_PARAMETER;
    }
    if (npi->Dispatch->Version != MAKE_WSK_VERSION(1, 0)) return STATUS_NOT_SUPPORTED;
    struct client *c = os_zalloc(sizeof *c);
    if (!c) return STATUS_INSUFFICIENT_RESOURCES;
    c->block = block;
    memset(block, 0, sizeof *block);
    block->ReservedRegistrationContext = c;
    os_lock_enter(&lock);
    sn_list_push_back(&clients, &c->link);
    os_lock_leave(&lock);
    return STATUS_SUCCESS;
}

NTSTATUS WskCaptureProviderNPI(PWSK_REGISTRATION block, ULONG timeout, PWSK_PROVIDER_NPI out) {
    static const WSK_PROVIDER_DISPATCH dispatch = { .Version = MAKE_WSK_VERSION(1, 0),
                                                    .WskSocket = not_supported,
                                                    .WskSocketConnect = not_supported,
                                                    .WskControlClient = control_client,
                                                    .WskGetAddressInfo = not_supported,
                                                    .WskFreeAddressInfo = not_supported,
                                                    .WskGetNameInfo = not_supported };
    (void)timeout; /* the provider is always there */
    enter("WskCaptureProviderNPI");
    struct client *c = find_locked(block);
    if (c) c->captured++;
    os_lock_leave(&lock);
    if (!c || !out) {
        ndk_violation(NDK_RULE_wsk, "WskCaptureProviderNPI", block, "not registered");
        return STATUS_INVALID_PARAMETER;
    }
    out->Client = c;
    out->Dispatch = &dispatch;
    return STATUS_SUCCESS;
}

NTSTATUS WskQueryProviderCharacteristics(PWSK_REGISTRATION block, PVOID out) {
    (void)block;
    (void)out;
    return STATUS_NOT_SUPPORTED;
}

VOID WskReleaseProviderNPI(PWSK_REGISTRATION block) {
    enter("WskReleaseProviderNPI");
    struct client *c = find_locked(block);
    if (!c || c->captured == 0) {
        os_lock_leave(&lock);
        ndk_violation(NDK_RULE_wsk, "WskReleaseProviderNPI", block,
                      c ? "released more often than captured" : "not registered");
        return;
    }
    bool last = c->captured == 1;
    if (last && c->adapters && ndk_verifying()) {
        uint32_t n = c->adapters;
        os_lock_leave(&lock);
        ndk_violation(NDK_RULE_leak, "WskReleaseProviderNPI", block,
                      "%u adapters of this client are open; a kernel would wait for ever", n);
        os_lock_enter(&lock);
        c->adapters = 0;
    }
    while (last && c->adapters)
        os_cond_wait(&changed, &lock, UINT64_MAX);
    c->captured--;
    os_cond_broadcast(&changed);
    os_lock_leave(&lock);
}

VOID WskDeregister(PWSK_REGISTRATION block) {
    enter("WskDeregister");
    struct client *c = find_locked(block);
    if (!c) {
        os_lock_leave(&lock);
        ndk_violation(NDK_RULE_wsk, "WskDeregister", block,
                      "not registered, or deregistered before");
        return;
    }
    if (c->captured && ndk_verifying()) {
        os_lock_leave(&lock);
        ndk_violation(NDK_RULE_wsk, "WskDeregister", block,
                      "the provider is still captured; a kernel would wait for ever");
        os_lock_enter(&lock);
        c->captured = 0;
    }
    while (c->captured)
        os_cond_wait(&changed, &lock, UINT64_MAX);
    sn_list_remove(&c->link);
    os_lock_leave(&lock);
    os_free(c);
}

int ndk_wsk_leaks(void) {
    int n = 0;
    os_once_run(&once, init);
    for (;; n++) {
        os_lock_enter(&lock);
        struct sn_list *it = sn_list_pop(&clients);
        os_lock_leave(&lock);
        if (!it) return n;
        struct client *c = SN_CONTAINER(it, struct client, link);
        ndk_violation(NDK_RULE_leak, "WskRegister", c->block, "the client was never deregistered");
        os_free(c);
    }
}
