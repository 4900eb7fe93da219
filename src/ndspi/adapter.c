/* SPDX-License-Identifier: MIT
 * adapter.c - IND2Adapter: limits, addresses, and the making of everything else.
 */
#include <string.h>
#include "ndspi/adapter.h"
#include "ndspi/addresses.h"
#include "ndspi/overlapped.h"
#include "ndspi/status.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"
#include "os/prim/thread.h"

/* Not assigned by anybody; programs only print them. */
#define VENDOR_ID 0x534E
#define DEVICE_ID 0x0002

#define ADAPTER_FLAGS                                                                              \
    (ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED | ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED |                \
     ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED)

static struct ndspi_adapter *adapter_of(IND2Adapter *This) {
    return (struct ndspi_adapter *)This;
}

static void close_adapter(struct ndspi_object *o) {
    struct ndspi_adapter *ad = (struct ndspi_adapter *)o;
    ndspi_lead_forget(ad->rd);
    rd_adapter_close(ad->rd);
    (void)ndspi_object_release(ad->provider);
}

static const struct ndspi_class adapter_class = {
    .name = "adapter",
    .iid = &IID_IND2Adapter,
    .close = close_adapter,
};

NDSPI_IUNKNOWN(IND2Adapter)

static HRESULT STDMETHODCALLTYPE create_overlapped_file(IND2Adapter *This, HANDLE *out) {
    (void)This;
    if (!out) return E_POINTER;
    *out = NULL;
    return ndspi_file_create(out);
}

static ND2_ADAPTER_INFO describe(const struct rd_adapter *rd, ULONG version) {
    const struct rd_limits *l = rd_limits_get();
    return (ND2_ADAPTER_INFO){
        .InfoVersion = version,
        .VendorId = VENDOR_ID,
        .DeviceId = DEVICE_ID,
        .AdapterId = rd_adapter_id(rd),
        .MaxRegistrationSize = (SIZE_T)SN_MIN(l->max_registration_bytes, (uint64_t)SIZE_MAX),
        .MaxWindowSize = (SIZE_T)SN_MIN(l->max_window_bytes, (uint64_t)SIZE_MAX),
        .MaxInitiatorSge = l->max_initiator_sge,
        .MaxReceiveSge = l->max_receive_sge,
        .MaxReadSge = l->max_read_sge,
        .MaxTransferLength = l->max_transfer_bytes,
        .MaxInlineDataSize = l->max_inline_bytes,
        .MaxInboundReadLimit = l->max_ird,
        .MaxOutboundReadLimit = l->max_ord,
        .MaxReceiveQueueDepth = l->max_receive_depth,
        .MaxInitiatorQueueDepth = l->max_initiator_depth,
        .MaxSharedReceiveQueueDepth = l->max_srq_depth,
        .MaxCompletionQueueDepth = l->max_cq_depth,
        .InlineRequestThreshold = l->inline_threshold_bytes,
        .LargeRequestThreshold = l->large_threshold_bytes,
        .MaxCallerData = l->max_caller_data_bytes,
        .MaxCalleeData = l->max_callee_data_bytes,
        .AdapterFlags = ADAPTER_FLAGS,
    };
}

static HRESULT STDMETHODCALLTYPE query(IND2Adapter *This, ND2_ADAPTER_INFO *info, ULONG *pcb) {
    if (!pcb) return ndspi_bad_param(2);
    ULONG version = ND_VERSION_2;
    if (info && *pcb >= sizeof *info) {
        if (!os_guarded_copy(&version, &info->InfoVersion, sizeof version))
            return ND_ACCESS_VIOLATION;
        if (version != ND_VERSION_1 && version != ND_VERSION_2) return ND_INVALID_PARAMETER;
    }
    ND2_ADAPTER_INFO answer = describe(adapter_of(This)->rd, version);
    return ndspi_answer(&answer, sizeof answer, info, pcb);
}

static HRESULT STDMETHODCALLTYPE query_address_list(IND2Adapter *This, SOCKET_ADDRESS_LIST *buf,
                                                    ULONG *pcb) {
    if (!pcb) return ndspi_bad_param(2);
    struct os_addr few[8];
    struct os_addr *addrs = few, *more = NULL;
    size_t room = SN_ARRAY_LEN(few), count = room;
    HRESULT hr = ND_SUCCESS;
    for (;;) { /* addresses may come while we look */
        sn_status st = rd_adapter_addrs(adapter_of(This)->rd, addrs, &count);
        if (st != SN_OK && st != SN_E_BUFFER_SMALL) hr = ndspi_status(st);
        if (hr != ND_SUCCESS || count <= room) break;
        os_free(more);
        room = count;
        addrs = more = os_zalloc(room * sizeof *more);
        if (!more) hr = ND_NO_MEMORY;
        if (!more) break;
    }
    if (hr == ND_SUCCESS) hr = ndspi_addr_list_answer(addrs, count, buf, pcb);
    os_free(more);
    return hr;
}

/* ---- Create*: the affinity wishes are hints that this provider has no use for ---- */

static HRESULT STDMETHODCALLTYPE create_completion_queue(IND2Adapter *This, REFIID iid, HANDLE file,
                                                         ULONG depth, USHORT group,
                                                         KAFFINITY affinity, VOID **out) {
    (void)group;
    (void)affinity;
    return ndspi_cq_create(adapter_of(This), iid, file, depth, out);
}

static HRESULT STDMETHODCALLTYPE create_memory_region(IND2Adapter *This, REFIID iid, HANDLE file,
                                                      VOID **out) {
    return ndspi_region_create(adapter_of(This), iid, file, out);
}

static HRESULT STDMETHODCALLTYPE create_memory_window(IND2Adapter *This, REFIID iid, VOID **out) {
    return ndspi_window_create(adapter_of(This), iid, out);
}

static HRESULT STDMETHODCALLTYPE create_shared_receive_queue(IND2Adapter *This, REFIID iid,
                                                             HANDLE file, ULONG depth,
                                                             ULONG max_sge, ULONG threshold,
                                                             USHORT group, KAFFINITY affinity,
                                                             VOID **out) {
    (void)group;
    (void)affinity;
    return ndspi_srq_create(adapter_of(This), iid, file, depth, max_sge, threshold, out);
}

static HRESULT STDMETHODCALLTYPE create_queue_pair(IND2Adapter *This, REFIID iid,
                                                   IUnknown *receive_cq, IUnknown *initiator_cq,
                                                   VOID *context, ULONG receive_depth,
                                                   ULONG initiator_depth, ULONG receive_sge,
                                                   ULONG initiator_sge, ULONG inline_bytes,
                                                   VOID **out) {
    struct rd_qp_attr attr = {
        .context = context,
        .receive_depth = receive_depth,
        .initiator_depth = initiator_depth,
        .max_receive_sge = receive_sge,
        .max_initiator_sge = initiator_sge,
        .inline_bytes = inline_bytes,
    };
    return ndspi_qp_create(adapter_of(This), iid, receive_cq, initiator_cq, false, NULL, &attr,
                           out);
}

static HRESULT STDMETHODCALLTYPE create_queue_pair_with_srq(
    IND2Adapter *This, REFIID iid, IUnknown *receive_cq, IUnknown *initiator_cq, IUnknown *srq,
    VOID *context, ULONG initiator_depth, ULONG initiator_sge, ULONG inline_bytes, VOID **out) {
    struct rd_qp_attr attr = {
        .context = context,
        .initiator_depth = initiator_depth,
        .max_initiator_sge = initiator_sge,
        .inline_bytes = inline_bytes,
    };
    return ndspi_qp_create(adapter_of(This), iid, receive_cq, initiator_cq, true, srq, &attr, out);
}

static HRESULT STDMETHODCALLTYPE create_connector(IND2Adapter *This, REFIID iid, HANDLE file,
                                                  VOID **out) {
    return ndspi_connector_create(adapter_of(This), iid, file, out);
}

static HRESULT STDMETHODCALLTYPE create_listener(IND2Adapter *This, REFIID iid, HANDLE file,
                                                 VOID **out) {
    return ndspi_listener_create(adapter_of(This), iid, file, out);
}

static const IND2AdapterVtbl vtbl = {
    NDSPI_IUNKNOWN_SLOTS,
    .CreateOverlappedFile = create_overlapped_file,
    .Query = query,
    .QueryAddressList = query_address_list,
    .CreateCompletionQueue = create_completion_queue,
    .CreateMemoryRegion = create_memory_region,
    .CreateMemoryWindow = create_memory_window,
    .CreateSharedReceiveQueue = create_shared_receive_queue,
    .CreateQueuePair = create_queue_pair,
    .CreateQueuePairWithSrq = create_queue_pair_with_srq,
    .CreateConnector = create_connector,
    .CreateListener = create_listener,
};

HRESULT ndspi_adapter_create(struct ndspi_object *provider, REFIID iid, UINT64 id, void **out) {
    HRESULT hr = ndspi_class_check(&adapter_class, iid, out);
    if (hr != ND_SUCCESS) return hr;
    struct ndspi_adapter *ad = ndspi_object_create(sizeof *ad, &adapter_class, &vtbl, NULL);
    if (!ad) return ND_NO_MEMORY;
    sn_status st = rd_adapter_open(id, &ad->rd);
    if (st != SN_OK) {
        ndspi_object_abandon(&ad->obj);
        return ndspi_status(st);
    }
    os_pin_module(); /* from here on there are threads, and clients that unload regardless */
    ad->provider = provider;
    ndspi_lead_offer(ad->rd);
    (void)ndspi_object_add_ref(provider);
    *out = ad;
    return ND_SUCCESS;
}

struct rd_adapter *ndspi_adapter_of(const IUnknown *p) {
    struct ndspi_object *o = ndspi_object_of(p, &vtbl, NULL);
    return o ? ((struct ndspi_adapter *)o)->rd : NULL;
}

HRESULT ndspi_notify_affinity(USHORT *group, KAFFINITY *affinity) {
    if (!group || !affinity) return ND_INVALID_PARAMETER;
    KAFFINITY mask;
    if (!ndspi_file_affinity(&mask)) return ND_NOT_SUPPORTED;
    *group = 0;
    *affinity = mask;
    return ND_SUCCESS;
}
