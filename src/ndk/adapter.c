/* SPDX-License-Identifier: MIT */
#include "ndk/ndk.h"
#include "ndisndk.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"

enum {
    VENDOR_ID = 0x534F46, /* "SOF"; no OUI is registered */
    FRMR_PAGES = 256,     /* 1 MiB per registration */
    HIGHEST_MINOR_1 = 2,
    HIGHEST_MINOR_2 = 1,
    INFO_SIZE_1 = 0x60 /* before RdmaTechnology */
};

/* All open adapters of one interface are one adapter of the core: a connector of one may be
 * accepted with a queue pair of another, as consumers do that open an adapter per socket. */
struct ndk_core {
    struct sn_list link; /* [module lock] */
    uint64_t id;
    struct rd_adapter *rd;
    uint32_t users; /* [module lock] */
};

static os_lock module_lock; /* rank MODULE */
static struct sn_list cores;
static struct sn_list adapters;
static os_once once = OS_ONCE_INIT;

sn_status ndk_workers_start(struct ndk_adapter *ad);
void ndk_workers_stop(struct ndk_adapter *ad);

static void init(void) {
    os_lock_init(&module_lock, OS_RANK_MODULE);
    sn_list_init(&adapters);
    sn_list_init(&cores);
    ndk_verify_init();
}

/* ---- what it can do ---- */

const NDK_ADAPTER_INFO *ndk_fill_info(NDK_VERSION version, NDK_ADAPTER_INFO *out) {
    const struct rd_limits *lim = rd_limits_get();
    memset(out, 0, sizeof *out);
    out->Version = version;
    out->VendorId = VENDOR_ID;
    out->DeviceId = 1;
    out->MaxRegistrationSize = (SIZE_T)1 << 31;
    out->MaxWindowSize = (SIZE_T)1 << 31;
    out->FRMRPageCount = FRMR_PAGES;
    out->MaxInitiatorRequestSge = lim->max_initiator_sge;
    out->MaxReceiveRequestSge = lim->max_receive_sge;
    out->MaxReadRequestSge = lim->max_read_sge;
    out->MaxTransferLength = lim->max_transfer_bytes;
    out->MaxInlineDataSize = lim->max_inline_bytes;
    out->MaxInboundReadLimit = lim->max_ird;
    out->MaxOutboundReadLimit = lim->max_ord;
    out->MaxReceiveQueueDepth = lim->max_receive_depth;
    out->MaxInitiatorQueueDepth = lim->max_initiator_depth;
    out->MaxSrqDepth = lim->max_srq_depth;
    out->MaxCqDepth = lim->max_cq_depth;
    out->LargeRequestThreshold = lim->large_threshold_bytes;
    out->MaxCallerData = lim->max_caller_data_bytes;
    out->MaxCalleeData = lim->max_callee_data_bytes;
    out->AdapterFlags =
        NDK_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED | NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED |
        NDK_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED |
        NDK_ADAPTER_FLAG_RDMA_READ_LOCAL_INVALIDATE_SUPPORTED |
        NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED | NDK_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED;
    if (os_u32_load_relaxed(&ndk_options.no_moderation))
        out->AdapterFlags &= ~(ULONG)NDK_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED;
    if (version.Major >= 2) out->RdmaTechnology = NdkiWarp;
    return out;
}

static NTSTATUS query_adapter_info(NDK_ADAPTER *adapter, NDK_ADAPTER_INFO *out, ULONG *size) {
    struct ndk_adapter *ad = (struct ndk_adapter *)adapter;
    NDK_ADAPTER_INFO info;
    __attribute__((cleanup(ndk_leave))) struct ndk_call *in = NULL;
    if (ndk_verifying() &&
        !ndk_enter_object(adapter, NdkObjectTypeAdapter, "NdkQueryAdapterInfo", PASSIVE_LEVEL, &in))
        return STATUS_INVALID_PARAMETER;
    if (!size) return STATUS_INVALID_PARAMETER;
    ULONG least = ad->version.Major == 1 ? INFO_SIZE_1 : sizeof info;
    if (!out || *size < least) {
        *size = sizeof info;
        return STATUS_BUFFER_TOO_SMALL;
    }
    ndk_fill_info(ad->version, &info);
    *size = SN_MIN(*size, (ULONG)sizeof info);
    memcpy(out, &info, *size);
    return STATUS_SUCCESS;
}

static NTSTATUS adapter_query_extension(NDK_OBJECT_HEADER *header, GUID *id, NDK_VERSION version,
                                        NDK_EXTENSION_INTERFACE *out) {
    (void)id;
    (void)version;
    NDK_ENTER(header, NdkObjectTypeAdapter, "NdkQueryExtension", STATUS_NOT_SUPPORTED);
    if (out) out->Dispatch = NULL;
    return STATUS_NOT_SUPPORTED;
}

static const NDK_ADAPTER_DISPATCH dispatch = {
    .NdkQueryExtension = adapter_query_extension,
    .NdkQueryAdapterInfo = query_adapter_info,
    .NdkCreateCq = ndk_create_cq,
    .NdkCreatePd = ndk_create_pd,
    .NdkCreateSharedEndpoint = ndk_create_shared_endpoint,
    .NdkCreateConnector = ndk_create_connector,
    .NdkCreateListener = ndk_create_listener,
    .NdkBuildLAM = ndk_build_lam,
    .NdkReleaseLAM = ndk_release_lam,
};

/* ---- open ---- */

static NDIS_STATUS negotiate(NDK_VERSION asked, NDK_VERSION *out) {
    USHORT highest = asked.Major == 1 ? HIGHEST_MINOR_1 : HIGHEST_MINOR_2;
    if (asked.Major < 1 || asked.Major > 2 || asked.Minor > highest) return NDIS_STATUS_BAD_VERSION;
    out->Major = asked.Major;
    out->Minor = highest;
    return NDIS_STATUS_SUCCESS;
}

static sn_status id_of(NET_IFINDEX if_index, uint64_t *id) {
    struct rd_adapter_entry *list;
    size_t count;
    sn_status st = rd_adapter_list(&list, &count);
    if (st != SN_OK) return st;
    st = SN_E_NOT_FOUND;
    for (size_t i = 0; i < count && st != SN_OK; i++) {
        if (list[i].netif.index != if_index) continue;
        *id = list[i].id;
        st = SN_OK;
    }
    rd_adapter_list_free(list);
    return st;
}

static sn_status take_core(uint64_t id, struct ndk_core **out) {
    struct ndk_core *core = NULL;
    sn_status st = SN_OK;
    os_lock_enter(&module_lock);
    SN_LIST_FOR(it, &cores) {
        if (SN_CONTAINER(it, struct ndk_core, link)->id == id)
            core = SN_CONTAINER(it, struct ndk_core, link);
    }
    if (core) {
        core->users++;
    } else {
        core = os_zalloc(sizeof *core);
        st = core ? rd_adapter_open(id, &core->rd) : SN_E_NOMEM;
        if (st == SN_OK) {
            core->id = id;
            core->users = 1;
            sn_list_push_back(&cores, &core->link);
        }
    }
    os_lock_leave(&module_lock);
    if (st == SN_OK)
        *out = core;
    else
        os_free(core);
    return st;
}

static void give_core(struct ndk_core *core, NET_IFINDEX if_index) {
    os_lock_enter(&module_lock);
    bool last = --core->users == 0;
    if (last) sn_list_remove(&core->link);
    os_lock_leave(&module_lock);
    if (!last) return;
    ndk_port_core_ends(if_index, core->rd);
    rd_adapter_close(core->rd);
    os_free(core);
}

NDIS_STATUS ndk_open(NET_IFINDEX if_index, NDK_VERSION asked, NDK_ADAPTER **out) {
    NDK_VERSION version = { 0, 0 };
    uint64_t id = 0;
    os_once_run(&once, init);
    ndk_options_load();
    NDIS_STATUS status = negotiate(asked, &version);
    if (status != NDIS_STATUS_SUCCESS) return status;
    if (os_u32_load_relaxed(&ndk_options.disabled) || ndk_port_disabled(if_index))
        return NDIS_STATUS_ADAPTER_NOT_READY;
    sn_status st = id_of(if_index, &id);
    if (st != SN_OK) return ndk_status(st);
    struct ndk_adapter *ad = os_zalloc(sizeof *ad);
    if (!ad) return NDIS_STATUS_RESOURCES;
    st = take_core(id, &ad->core);
    if (st != SN_OK) {
        os_free(ad);
        return st == SN_E_PARAM ? STATUS_NOT_FOUND : NDIS_STATUS_RESOURCES;
    }
    ad->rd = ad->core->rd;
    ad->header.Version = version;
    ad->header.ObjectType = NdkObjectTypeAdapter;
    ad->dispatch = &dispatch;
    ad->version = version;
    ad->if_index = if_index;
    ad->verify = ndk_verifying();
    os_lock_init(&ad->lock, OS_RANK_ADAPTER);
    os_cond_init(&ad->changed);
    sn_list_init(&ad->objects);
    sn_list_init(&ad->lams);
    sn_list_init(&ad->shadows);
    if (ndk_workers_start(ad) != SN_OK) {
        give_core(ad->core, if_index);
        os_free(ad);
        return NDIS_STATUS_RESOURCES;
    }
    if (ad->verify) ndk_stack_take(&ad->origin);
    os_lock_enter(&module_lock);
    sn_list_push_back(&adapters, &ad->link);
    os_lock_leave(&module_lock);
    ndk_live_add((struct ndk_object *)ad);
    *out = (NDK_ADAPTER *)ad;
    return NDIS_STATUS_SUCCESS;
}

/* ---- close ---- */

/* The order in which a consumer should have closed them. */
static int rank_of(uint32_t type) {
    static const uint8_t ranks[] = { [NdkObjectTypeConnector] = 1,
                                     [NdkObjectTypeListener] = 2,
                                     [NdkObjectTypeSharedEndpoint] = 3,
                                     [NdkObjectTypeQp] = 4,
                                     [NdkObjectTypeMw] = 5,
                                     [NdkObjectTypeMr] = 6,
                                     [NdkObjectTypeSrq] = 7,
                                     [NdkObjectTypeCq] = 8,
                                     [NdkObjectTypePd] = 9 };
    return type < SN_ARRAY_LEN(ranks) ? ranks[type] : 0;
}

/* The next object that the consumer left open, referenced. */
static struct ndk_object *next_leaked(struct ndk_adapter *ad) {
    struct ndk_object *best = NULL;
    os_lock_enter(&ad->lock);
    SN_LIST_FOR(it, &ad->objects) {
        struct ndk_object *o = SN_CONTAINER(it, struct ndk_object, all);
        if (os_u32_load_acquire(&o->closing)) continue;
        if (!best || rank_of(o->header.ObjectType) < rank_of(best->header.ObjectType)) best = o;
    }
    if (best) ndk_object_get(best);
    os_lock_leave(&ad->lock);
    return best;
}

static void report_leak(struct ndk_object *o, const char *call) {
    char at[1024];
    size_t n = ndk_stack_text(&o->origin, at, sizeof at);
    ndk_violation(NDK_RULE_leak, call, o, "this %s was never closed; it was created at\n%.*s",
                  ndk_type_name(o->header.ObjectType), (int)n, n ? at : "");
}

static void close_leaked(struct ndk_adapter *ad) {
    for (struct ndk_object *o; (o = next_leaked(ad)) != NULL;) {
        report_leak(o, "WskCloseNdkAdapter");
        if (os_u32_exchange_acq_rel(&o->closing, 1) == 0) {
            o->forced = true;
            if (o->begin_close) o->begin_close(o);
            ndk_object_put(o);
        }
        ndk_object_put(o);
    }
}

static void release_lams(struct ndk_adapter *ad) {
    for (;;) {
        os_lock_enter(&ad->lock);
        struct sn_list *it = sn_list_pop(&ad->lams);
        os_lock_leave(&ad->lock);
        if (!it) break;
        struct ndk_lam *lam = SN_CONTAINER(it, struct ndk_lam, link);
        ndk_violation(NDK_RULE_leak, "WskCloseNdkAdapter", lam,
                      "a mapping of %zu bytes at %p was never released", lam->len,
                      (const void *)lam->va);
        rd_io_unmap(ad->rd, lam->io);
        if (os_ref_put(&lam->refs)) os_free(lam);
    }
}

void ndk_close_adapter(NDK_ADAPTER *adapter) {
    struct ndk_adapter *ad = (struct ndk_adapter *)adapter;
    if (ndk_verifying()) {
        if (!ndk_check_object(adapter, NdkObjectTypeAdapter, "WskCloseNdkAdapter", PASSIVE_LEVEL))
            return;
        if (ke_in_callback()) {
            ndk_violation(NDK_RULE_callback_context, "WskCloseNdkAdapter", adapter,
                          "the adapter is closed inside one of its callbacks; it would wait for "
                          "itself");
            return;
        }
        const char *inside = ndk_call_elsewhere(ad);
        if (inside)
            ndk_violation(NDK_RULE_close_in_call, "WskCloseNdkAdapter", adapter,
                          "another thread is inside %s of this adapter", inside);
        close_leaked(ad);
    }
    os_lock_enter(&ad->lock);
    while (ad->object_count != 0)
        os_cond_wait(&ad->changed, &ad->lock, OS_FOREVER);
    os_lock_leave(&ad->lock);
    release_lams(ad);
    os_lock_enter(&module_lock);
    sn_list_remove(&ad->link);
    os_lock_leave(&module_lock);
    ndk_live_remove((struct ndk_object *)ad);
    ndk_workers_stop(ad);
    ndk_shadow_free_all(ad);
    give_core(ad->core, ad->if_index);
    os_cond_fini(&ad->changed);
    os_lock_fini(&ad->lock);
    os_free(ad);
}

int ndk_adapter_leaks(void) {
    int n = 0;
    os_once_run(&once, init);
    for (;;) {
        os_lock_enter(&module_lock);
        struct ndk_adapter *ad =
            sn_list_empty(&adapters) ? NULL : SN_CONTAINER(adapters.next, struct ndk_adapter, link);
        os_lock_leave(&module_lock);
        if (!ad) return n;
        n++;
        ndk_violation(NDK_RULE_leak, "WskOpenNdkAdapter", ad, "the adapter was never closed");
        os_lock_enter(&ad->lock);
        SN_LIST_FOR(it, &ad->objects) {
            struct ndk_object *o = SN_CONTAINER(it, struct ndk_object, all);
            if (os_u32_load_acquire(&o->closing) && !o->forced)
                ndk_violation(NDK_RULE_close_pending, "DriverUnload", o,
                              "the close of this %s is still pending",
                              ndk_type_name(o->header.ObjectType));
        }
        os_lock_leave(&ad->lock);
        close_leaked(ad);
        ndk_close_adapter((NDK_ADAPTER *)ad);
    }
}

const char *ndk_each_adapter(const char *(*fn)(struct ndk_adapter *ad, const void *p, size_t len,
                                               const MDL *mdl),
                             const void *p, size_t len, const MDL *mdl) {
    const char *answer = NULL;
    os_once_run(&once, init);
    os_lock_enter(&module_lock);
    SN_LIST_FOR(it, &adapters) {
        if (answer) break;
        answer = fn(SN_CONTAINER(it, struct ndk_adapter, link), p, len, mdl);
    }
    os_lock_leave(&module_lock);
    return answer;
}

/* ---- the NDIS side ---- */

static NDIS_STATUS ndis_open(NDIS_HANDLE context, PNDIS_OPEN_NDK_ADAPTER_PARAMETERS parameters,
                             NDK_ADAPTER **out) {
    if (ndk_verifying()) ke_call_enter("OpenNDKAdapterHandler", PASSIVE_LEVEL);
    if (!parameters || !out) return NDIS_STATUS_INVALID_PARAMETER;
    return ndk_open((NET_IFINDEX)(ULONG_PTR)context, parameters->Version, out);
}

static VOID ndis_close(NDIS_HANDLE context, NDK_ADAPTER *adapter) {
    (void)context;
    ndk_close_adapter(adapter);
}

const NDIS_NDK_PROVIDER_CHARACTERISTICS *SoftNdkGetProviderCharacteristics(VOID) {
    static const NDIS_NDK_PROVIDER_CHARACTERISTICS characteristics = {
        .Header = { NDIS_OBJECT_TYPE_NDK_PROVIDER_CHARACTERISTICS,
                    NDIS_NDK_PROVIDER_CHARACTERISTICS_REVISION_1,
                    sizeof(NDIS_NDK_PROVIDER_CHARACTERISTICS) },
        .OpenNDKAdapterHandler = ndis_open,
        .CloseNDKAdapterHandler = ndis_close,
    };
    return &characteristics;
}
