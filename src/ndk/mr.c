/* SPDX-License-Identifier: MIT */
#include "ndk/ndk.h"

enum {
    MR_FLAGS = NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ |
               NDK_MR_FLAG_ALLOW_REMOTE_WRITE | NDK_MR_FLAG_RDMA_READ_SINK
};

/* ---- regions ---- */

static void mr_teardown(struct ndk_object *o) {
    struct ndk_mr *mr = (struct ndk_mr *)o;
    if (o->ad->verify) ndk_verify_mr_ended(mr);
    rd_region_destroy(mr->rd);
}

/* The next window that still counts as bound to mr, but that the peer has invalidated. */
static bool forget_window_locked(struct ndk_object *o, struct ndk_mr *mr) {
    if (o->header.ObjectType != NdkObjectTypeMw) return false;
    struct ndk_mw *mw = (struct ndk_mw *)o;
    os_lock_enter(&mw->lock);
    bool over = mw->mr == mr && rd_window_token(mw->rd) == 0;
    if (over) mw->mr = NULL;
    os_lock_leave(&mw->lock);
    return over;
}

static void mr_begin_close(struct ndk_object *o) {
    uint32_t over = 0;
    struct ndk_mr *mr = (struct ndk_mr *)o;
    os_lock_enter(&mr->lock);
    bool registered = mr->state == NDK_MR_REGISTERED || mr->state == NDK_MR_FAST_REGISTERED;
    os_lock_leave(&mr->lock);
    if (o->ad->verify && registered)
        ndk_token_ended(o, "region", rd_region_remote_token(mr->rd), "its close");
    os_lock_enter(&o->ad->lock);
    SN_LIST_FOR(it, &o->ad->objects)
    over += forget_window_locked(SN_CONTAINER(it, struct ndk_object, all), (struct ndk_mr *)o);
    os_lock_leave(&o->ad->lock);
    for (; over != 0; over--)
        ndk_object_put(o); /* never the last: the caller has one */
}

static uint32_t region_flags(ULONG flags) {
    uint32_t out = 0;
    if (flags & NDK_MR_FLAG_ALLOW_LOCAL_WRITE) out |= RD_LOCAL_WRITE;
    if (flags & NDK_MR_FLAG_ALLOW_REMOTE_READ) out |= RD_REMOTE_READ;
    if ((flags & NDK_MR_FLAG_ALLOW_REMOTE_WRITE) == NDK_MR_FLAG_ALLOW_REMOTE_WRITE)
        out |= RD_REMOTE_WRITE;
    if (flags & NDK_MR_FLAG_RDMA_READ_SINK) out |= RD_READ_SINK;
    return out;
}

static NTSTATUS register_mr(NDK_MR *object, MDL *mdl, SIZE_T length, ULONG flags,
                            NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    struct ndk_mr *mr = (struct ndk_mr *)object;
    const uint8_t *va = NULL;
    NDK_ENTER(object, NdkObjectTypeMr, "NdkRegisterMr", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_done, "NdkRegisterMr", "RequestCompletion");
    if (mr->fast) {
        ndk_violation(NDK_RULE_mr_kind, "NdkRegisterMr", mr,
                      "the region was created for fast registration");
        return STATUS_INVALID_DEVICE_REQUEST;
    }
    if (flags & ~(ULONG)MR_FLAGS) {
        ndk_violation(NDK_RULE_flags, "NdkRegisterMr", mr, "flags 0x%x", flags);
        return STATUS_INVALID_PARAMETER;
    }
    if ((flags & 4) && !(flags & 1)) { /* half of ALLOW_REMOTE_WRITE */
        ndk_violation(NDK_RULE_flags, "NdkRegisterMr", mr, "flags 0x%x: 4 without 1", flags);
        return STATUS_INVALID_PARAMETER;
    }
    NTSTATUS status = ndk_mdl_span(mdl, length, &va);
    if (status != STATUS_SUCCESS) return status;
    if (ndk_verifying() && (flags & 9) && (mdl->MdlFlags & MDL_PAGES_LOCKED) &&
        !(mdl->MdlFlags & MDL_WRITE_OPERATION))
        ndk_violation(NDK_RULE_mdl_access, "NdkRegisterMr", mr,
                      "the MDL is locked for reading, the region may be written");
    sn_status st = rd_region_register(mr->rd, va, length, region_flags(flags));
    if (st == SN_E_REQUEST)
        ndk_violation(NDK_RULE_mr_state, "NdkRegisterMr", mr, "the region is registered already");
    if (st != SN_OK) return ndk_status(st);
    os_lock_enter(&mr->lock);
    mr->state = NDK_MR_REGISTERED;
    mr->mdl = mdl;
    mr->base = (uint64_t)(uintptr_t)va;
    mr->len = length;
    mr->flags = flags;
    os_lock_leave(&mr->lock);
    return ndk_answer(&mr->o, "NdkRegisterMr", on_done, ctx, STATUS_SUCCESS);
}

static NTSTATUS deregister_mr(NDK_MR *object, NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    struct ndk_mr *mr = (struct ndk_mr *)object;
    NDK_ENTER(object, NdkObjectTypeMr, "NdkDeregisterMr", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_done, "NdkDeregisterMr", "RequestCompletion");
    if (mr->fast) {
        ndk_violation(NDK_RULE_mr_kind, "NdkDeregisterMr", mr,
                      "a fast-registered region is invalidated, not deregistered");
        return STATUS_INVALID_DEVICE_REQUEST;
    }
    uint32_t token = rd_region_remote_token(mr->rd);
    sn_status st = rd_region_deregister(mr->rd);
    if (st == SN_E_REQUEST)
        ndk_violation(NDK_RULE_mr_state, "NdkDeregisterMr", mr, "the region is not registered");
    if (st != SN_OK) return ndk_status(st);
    ndk_token_ended(mr, "region", token, "NdkDeregisterMr");
    os_lock_enter(&mr->lock);
    mr->state = NDK_MR_NEW;
    mr->mdl = NULL;
    os_lock_leave(&mr->lock);
    return ndk_answer(&mr->o, "NdkDeregisterMr", on_done, ctx, STATUS_SUCCESS);
}

static NTSTATUS init_fast(NDK_MR *object, ULONG pages, BOOLEAN remote,
                          NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    struct ndk_mr *mr = (struct ndk_mr *)object;
    NDK_ENTER(object, NdkObjectTypeMr, "NdkInitializeFastRegisterMr", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_done, "NdkInitializeFastRegisterMr",
                       "RequestCompletion");
    if (!mr->fast) {
        ndk_violation(NDK_RULE_mr_kind, "NdkInitializeFastRegisterMr", mr,
                      "the region was not created for fast registration");
        return STATUS_INVALID_DEVICE_REQUEST;
    }
    sn_status st = rd_region_init_fast(mr->rd, pages, remote,
                                       os_u32_load_relaxed(&ndk_options.fixed_tokens) != 0);
    if (st == SN_E_STATE)
        ndk_violation(NDK_RULE_mr_state, "NdkInitializeFastRegisterMr", mr,
                      "the region is registered; it must be invalidated first");
    if (st == SN_E_RESOURCES) return STATUS_IMPLEMENTATION_LIMIT;
    if (st != SN_OK) return ndk_post_status(st);
    os_lock_enter(&mr->lock);
    if (mr->state == NDK_MR_NEW) mr->state = NDK_MR_FAST_READY;
    mr->max_pages = pages;
    mr->remote = remote != 0;
    os_lock_leave(&mr->lock);
    return ndk_answer(&mr->o, "NdkInitializeFastRegisterMr", on_done, ctx, STATUS_SUCCESS);
}

static UINT32 remote_token(NDK_MR *object) {
    NDK_ENTER(object, NdkObjectTypeMr, "NdkGetRemoteTokenFromMr", 0);
    return rd_region_remote_token(((struct ndk_mr *)object)->rd);
}

static UINT32 local_token(NDK_MR *object) {
    NDK_ENTER(object, NdkObjectTypeMr, "NdkGetLocalTokenFromMr", 0);
    return rd_region_local_token(((struct ndk_mr *)object)->rd);
}

static const NDK_MR_DISPATCH mr_dispatch = {
    .NdkCloseMr = ndk_close_object,
    .NdkQueryExtension = ndk_query_extension,
    .NdkRegisterMr = register_mr,
    .NdkDeregisterMr = deregister_mr,
    .NdkInitializeFastRegisterMr = init_fast,
    .NdkGetRemoteTokenFromMr = remote_token,
    .NdkGetLocalTokenFromMr = local_token,
};

NTSTATUS ndk_create_mr(NDK_PD *object, BOOLEAN fast, NDK_FN_CREATE_COMPLETION *on_created,
                       PVOID ctx, NDK_MR **out) {
    struct ndk_pd *pd = (struct ndk_pd *)object;
    NDK_ENTER(object, NdkObjectTypePd, "NdkCreateMr", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_created, "NdkCreateMr", "CreateCompletion");
    if (!out) return STATUS_INVALID_PARAMETER;
    struct ndk_object *uses[] = { &pd->o };
    struct ndk_mr *mr =
        ndk_object_new(pd->o.ad, sizeof *mr, NdkObjectTypeMr, &mr_dispatch, uses, 1);
    if (!mr) return STATUS_INSUFFICIENT_RESOURCES;
    sn_status st = rd_region_create(pd->o.ad->rd, &mr->rd);
    if (st != SN_OK) {
        ndk_object_discard(&mr->o);
        return ndk_status(st);
    }
    rd_region_set_pd(mr->rd, pd->rd);
    os_lock_init(&mr->lock, OS_RANK_REQUEST);
    mr->fast = fast != 0;
    mr->pd = pd;
    mr->o.begin_close = mr_begin_close;
    mr->o.teardown = mr_teardown;
    return ndk_answer_create(&mr->o, "NdkCreateMr", on_created, ctx, out);
}

/* ---- windows ---- */

static void mw_begin_close(struct ndk_object *o) {
    if (o->ad->verify)
        ndk_token_ended(o, "window", rd_window_token(((struct ndk_mw *)o)->rd), "its close");
}

static void mw_teardown(struct ndk_object *o) {
    struct ndk_mw *mw = (struct ndk_mw *)o;
    rd_window_destroy(mw->rd);
    if (mw->mr) ndk_object_put(&mw->mr->o);
    os_lock_fini(&mw->lock);
}

static UINT32 mw_token(NDK_MW *object) {
    NDK_ENTER(object, NdkObjectTypeMw, "NdkGetRemoteTokenFromMw", 0);
    return rd_window_token(((struct ndk_mw *)object)->rd);
}

static const NDK_MW_DISPATCH mw_dispatch = {
    .NdkCloseMw = ndk_close_object,
    .NdkQueryExtension = ndk_query_extension,
    .NdkGetRemoteTokenFromMw = mw_token,
};

NTSTATUS ndk_create_mw(NDK_PD *object, NDK_FN_CREATE_COMPLETION *on_created, PVOID ctx,
                       NDK_MW **out) {
    struct ndk_pd *pd = (struct ndk_pd *)object;
    NDK_ENTER(object, NdkObjectTypePd, "NdkCreateMw", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_created, "NdkCreateMw", "CreateCompletion");
    if (!out) return STATUS_INVALID_PARAMETER;
    struct ndk_object *uses[] = { &pd->o };
    struct ndk_mw *mw =
        ndk_object_new(pd->o.ad, sizeof *mw, NdkObjectTypeMw, &mw_dispatch, uses, 1);
    if (!mw) return STATUS_INSUFFICIENT_RESOURCES;
    sn_status st = rd_window_create(pd->o.ad->rd, &mw->rd);
    if (st != SN_OK) {
        ndk_object_discard(&mw->o);
        return ndk_status(st);
    }
    os_lock_init(&mw->lock, OS_RANK_REQUEST);
    mw->o.begin_close = mw_begin_close;
    mw->o.teardown = mw_teardown;
    return ndk_answer_create(&mw->o, "NdkCreateMw", on_created, ctx, out);
}
