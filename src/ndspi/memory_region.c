/* SPDX-License-Identifier: MIT
 * memory_region.c - IND2MemoryRegion. The core registers at once; the outcome is reported the
 * overlapped way all the same, except for refusals.
 */
#include "ndspi/adapter.h"
#include "ndspi/overlapped.h"
#include "ndspi/status.h"

#define REGISTER_FLAGS                                                                             \
    (ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE | \
     ND_MR_FLAG_RDMA_READ_SINK | ND_MR_FLAG_DO_NOT_SECURE_VM)

struct ndspi_region {
    struct ndspi_overlapped ov;
    struct rd_region *rd; /* [const] */
};

static struct ndspi_region *region_of(void *object) {
    return object;
}

static void close_region(struct ndspi_object *o) {
    rd_region_destroy(region_of(o)->rd);
}

/* No cancel: nothing is ever pending in the core. */
static const struct ndspi_class region_class = {
    .name = "memory region",
    .iid = &IID_IND2MemoryRegion,
    .overlapped = true,
    .close = close_region,
};

NDSPI_IOVERLAPPED(IND2MemoryRegion)

_Static_assert((int)RD_LOCAL_WRITE == ND_MR_FLAG_ALLOW_LOCAL_WRITE &&
                   (int)RD_REMOTE_READ == ND_MR_FLAG_ALLOW_REMOTE_READ &&
                   (int)(RD_REMOTE_WRITE | RD_LOCAL_WRITE) == ND_MR_FLAG_ALLOW_REMOTE_WRITE &&
                   (int)RD_READ_SINK == ND_MR_FLAG_RDMA_READ_SINK,
               "region flags are passed through");

/* Refusals go through the request too: some clients ask for the result whatever we return. */
static HRESULT STDMETHODCALLTYPE register_buffer(IND2MemoryRegion *This, const VOID *buf, SIZE_T cb,
                                                 ULONG flags, OVERLAPPED *ov) {
    struct ndspi_region *region = region_of(This);
    if (!ov) return ndspi_bad_param(4);
    struct ndspi_request *r;
    HRESULT hr = ndspi_request_begin(&region->ov, ov, &r);
    if (hr != ND_PENDING) return hr;
    if (flags & ~REGISTER_FLAGS) return ndspi_request_refuse(r, ndspi_bad_param(3));
    sn_status st = rd_region_register(region->rd, buf, cb, flags & ~ND_MR_FLAG_DO_NOT_SECURE_VM);
    if (st == SN_E_FAULT) return ndspi_request_finish(r, ND_ACCESS_VIOLATION);
    return ndspi_request_started(&region->ov, r, st);
}

static HRESULT STDMETHODCALLTYPE deregister(IND2MemoryRegion *This, OVERLAPPED *ov) {
    struct ndspi_region *region = region_of(This);
    if (!ov) return ndspi_bad_param(1);
    struct ndspi_request *r;
    HRESULT hr = ndspi_request_begin(&region->ov, ov, &r);
    if (hr != ND_PENDING) return hr;
    return ndspi_request_started(&region->ov, r, rd_region_deregister(region->rd));
}

static UINT32 STDMETHODCALLTYPE get_local_token(IND2MemoryRegion *This) {
    return rd_region_local_token(region_of(This)->rd);
}

static UINT32 STDMETHODCALLTYPE get_remote_token(IND2MemoryRegion *This) {
    return rd_region_remote_token(region_of(This)->rd);
}

static const IND2MemoryRegionVtbl vtbl = {
    NDSPI_IOVERLAPPED_SLOTS,          .Register = register_buffer,        .Deregister = deregister,
    .GetLocalToken = get_local_token, .GetRemoteToken = get_remote_token,
};

HRESULT ndspi_region_create(struct ndspi_adapter *ad, REFIID iid, HANDLE file, void **out) {
    HRESULT hr = ndspi_class_check(&region_class, iid, out);
    if (hr != ND_SUCCESS) return hr;
    struct ndspi_region *region =
        ndspi_overlapped_create(sizeof *region, &region_class, &vtbl, ad, file, &hr);
    if (!region) return hr;
    sn_status st = rd_region_create(ad->rd, &region->rd);
    if (st != SN_OK) {
        ndspi_object_abandon(&region->ov.obj);
        return ndspi_status(st);
    }
    *out = region;
    return ND_SUCCESS;
}

struct rd_region *ndspi_region_of(const IUnknown *p, const struct ndspi_adapter *ad) {
    struct ndspi_object *o = ndspi_object_of(p, &vtbl, ad);
    return o ? region_of(o)->rd : NULL;
}
