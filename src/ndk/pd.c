/* SPDX-License-Identifier: MIT */
#include "ndk/ndk.h"

static void teardown(struct ndk_object *o) {
    rd_pd_destroy(((struct ndk_pd *)o)->rd);
}

static VOID privileged_token(NDK_PD *object, UINT32 *token) {
    NDK_ENTER(object, NdkObjectTypePd, "NdkGetPrivilegedMemoryRegionToken", );
    if (token) *token = rd_pd_token(((struct ndk_pd *)object)->rd);
}

static const NDK_PD_DISPATCH dispatch = {
    .NdkClosePd = ndk_close_object,
    .NdkQueryExtension = ndk_query_extension,
    .NdkCreateMr = ndk_create_mr,
    .NdkCreateMw = ndk_create_mw,
    .NdkCreateSrq = ndk_create_srq,
    .NdkCreateQp = ndk_create_qp,
    .NdkCreateQpWithSrq = ndk_create_qp_with_srq,
    .NdkGetPrivilegedMemoryRegionToken = privileged_token,
};

NTSTATUS ndk_create_pd(NDK_ADAPTER *adapter, NDK_FN_CREATE_COMPLETION *on_created, PVOID ctx,
                       NDK_PD **out) {
    struct ndk_adapter *ad = (struct ndk_adapter *)adapter;
    NDK_ENTER(adapter, NdkObjectTypeAdapter, "NdkCreatePd", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_created, "NdkCreatePd", "CreateCompletion");
    if (!out) return STATUS_INVALID_PARAMETER;
    struct ndk_pd *pd = ndk_object_new(ad, sizeof *pd, NdkObjectTypePd, &dispatch, NULL, 0);
    if (!pd) return STATUS_INSUFFICIENT_RESOURCES;
    sn_status st = rd_pd_create(ad->rd, &pd->rd);
    if (st != SN_OK) {
        ndk_object_discard(&pd->o);
        return ndk_status(st);
    }
    pd->o.teardown = teardown;
    return ndk_answer_create(&pd->o, "NdkCreatePd", on_created, ctx, out);
}
