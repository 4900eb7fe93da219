/* SPDX-License-Identifier: MIT
 *
 * A mapping copies from the MDL chain what it needs; the chain may go afterwards.
 */
#include "ndk/ndk.h"
#include "os/prim/fault.h"

NTSTATUS ndk_mdl_span(const MDL *mdl, SIZE_T len, const uint8_t **va) {
    const uint8_t *next = NULL;
    SIZE_T left = len;
    if (!mdl || len == 0) return STATUS_INVALID_PARAMETER;
    *va = MmGetMdlVirtualAddress(mdl);
    for (const MDL *m = mdl; left != 0; m = m->Next) {
        if (!m) return STATUS_INVALID_PARAMETER; /* the chain is shorter */
        const uint8_t *at = MmGetMdlVirtualAddress(m);
        if (next && at != next) return STATUS_INVALID_PARAMETER;
        SIZE_T n = SN_MIN(left, (SIZE_T)m->ByteCount);
        next = at + m->ByteCount;
        left -= n;
    }
    return STATUS_SUCCESS;
}

struct ndk_lam *ndk_lam_find_locked(struct ndk_adapter *ad, uint64_t logical) {
    SN_LIST_FOR(it, &ad->lams) {
        struct ndk_lam *lam = SN_CONTAINER(it, struct ndk_lam, link);
        uint64_t first = rd_io_page(lam->io, 0),
                 last = rd_io_page(lam->io, rd_io_pages(lam->io) - 1);
        uint64_t low = SN_MIN(first, last), high = SN_MAX(first, last) + RD_IO_PAGE;
        if (logical >= low && logical < high) return lam;
    }
    return NULL;
}

void ndk_lam_use(struct ndk_lam *lam) {
    os_ref_get(&lam->refs);
    os_u32_fetch_add_acq_rel(&lam->users, 1);
}

void ndk_lam_unuse(struct ndk_lam *lam) {
    os_u32_fetch_sub_acq_rel(&lam->users, 1);
    if (os_ref_put(&lam->refs)) os_free(lam);
}

/* BuildLAM has no object of its own to hold; the adapter stands in through a token object. While
 * the request is pending nothing is told: a consumer that does not wait finds nothing. */
struct build {
    struct ndk_object o;
    struct ndk_lam *lam;
    NDK_LOGICAL_ADDRESS_MAPPING *out;
    ULONG *size, *fbo;
};

static void tell(struct ndk_lam *lam, NDK_LOGICAL_ADDRESS_MAPPING *out, ULONG *size, ULONG *fbo) {
    ULONG pages = (ULONG)rd_io_pages(lam->io);
    out->AdapterContext = lam;
    out->AdapterPageCount = pages;
    for (ULONG i = 0; i < pages; i++)
        (&out->AdapterPageArray[0])[i].QuadPart = (LONGLONG)rd_io_page(lam->io, i);
    *size = (ULONG)(offsetof(NDK_LOGICAL_ADDRESS_MAPPING, AdapterPageArray) +
                    pages * sizeof(NDK_LOGICAL_ADDRESS));
    *fbo = lam->fbo;
}

static void tell_first(struct ndk_request *r, sn_status st) {
    struct build *b = (struct build *)r->o;
    (void)st;
    tell(b->lam, b->out, b->size, b->fbo);
}

static NTSTATUS answer(struct ndk_adapter *ad, struct ndk_lam *lam,
                       NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx,
                       NDK_LOGICAL_ADDRESS_MAPPING *out, ULONG *size, ULONG *fbo) {
    enum ndk_how how = on_done ? ndk_choose() : NDK_NOW;
    struct build *b = NULL;
    if (how != NDK_NOW) b = ndk_object_new(ad, sizeof *b, NdkObjectTypeUndefined, NULL, NULL, 0);
    if (!b) {
        tell(lam, out, size, fbo);
        return STATUS_SUCCESS;
    }
    b->o.forced = true;
    os_u32_store_release(&b->o.closing, 1);
    b->lam = lam;
    b->out = out;
    b->size = size;
    b->fbo = fbo;
    NTSTATUS status =
        ndk_answer_as(&b->o, "NdkBuildLAM", on_done, ctx, STATUS_SUCCESS, how, tell_first);
    if (status != STATUS_PENDING) tell(lam, out, size, fbo);
    ndk_object_put(&b->o);
    return status;
}

NTSTATUS ndk_build_lam(NDK_ADAPTER *adapter, MDL *mdl, SIZE_T length,
                       NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx,
                       NDK_LOGICAL_ADDRESS_MAPPING *out, ULONG *size, ULONG *fbo) {
    struct ndk_adapter *ad = (struct ndk_adapter *)adapter;
    const uint8_t *va;
    NDK_ENTER(adapter, NdkObjectTypeAdapter, "NdkBuildLAM", STATUS_INVALID_PARAMETER);
    if (ndk_verifying() && !on_done)
        ndk_warning(NDK_RULE_null_callback, "NdkBuildLAM", adapter,
                    "RequestCompletion is NULL; a provider that pends would call it");
    if (!size || !fbo) return STATUS_INVALID_PARAMETER;
    NTSTATUS status = ndk_mdl_span(mdl, length, &va);
    if (status != STATUS_SUCCESS) return status;
    ULONG pages = ADDRESS_AND_SIZE_TO_SPAN_PAGES(va, length);
    uint64_t need = offsetof(NDK_LOGICAL_ADDRESS_MAPPING, AdapterPageArray) +
                    (uint64_t)pages * sizeof(NDK_LOGICAL_ADDRESS);
    if (need > MAXULONG) return STATUS_INSUFFICIENT_RESOURCES;
    if (!out || *size < need) {
        *size = (ULONG)need;
        return STATUS_BUFFER_TOO_SMALL;
    }
    struct ndk_lam *lam = os_zalloc(sizeof *lam);
    if (!lam) return STATUS_INSUFFICIENT_RESOURCES;
    sn_status st =
        rd_io_map(ad->rd, va, length, os_u32_load_relaxed(&ndk_options.scattered), &lam->io);
    if (st != SN_OK) {
        os_free(lam);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    os_ref_init(&lam->refs);
    lam->va = va;
    lam->len = length;
    lam->fbo = BYTE_OFFSET(va);
    os_lock_enter(&ad->lock);
    sn_list_push_back(&ad->lams, &lam->link);
    os_lock_leave(&ad->lock);
    return answer(ad, lam, on_done, ctx, out, size, fbo);
}

VOID ndk_release_lam(NDK_ADAPTER *adapter, NDK_LOGICAL_ADDRESS_MAPPING *mapping) {
    struct ndk_adapter *ad = (struct ndk_adapter *)adapter;
    struct ndk_lam *lam = NULL;
    NDK_ENTER(adapter, NdkObjectTypeAdapter, "NdkReleaseLAM", );
    if (mapping) {
        os_lock_enter(&ad->lock);
        SN_LIST_FOR_SAFE(it, tmp, &ad->lams) {
            if (SN_CONTAINER(it, struct ndk_lam, link) != mapping->AdapterContext) continue;
            lam = SN_CONTAINER(it, struct ndk_lam, link);
            sn_list_remove(it);
            break;
        }
        os_lock_leave(&ad->lock);
    }
    if (!lam) {
        ndk_violation(NDK_RULE_bad_lam, "NdkReleaseLAM", mapping,
                      "not a mapping of this adapter, or released before");
        return;
    }
    uint32_t users = os_u32_load_acquire(&lam->users);
    if (users)
        ndk_violation(NDK_RULE_lam_in_use, "NdkReleaseLAM", mapping,
                      "%u requests or registrations still use this mapping of %zu bytes at %p",
                      users, lam->len, (const void *)lam->va);
    rd_io_unmap(ad->rd, lam->io);
    mapping->AdapterContext = NULL;
    if (os_ref_put(&lam->refs)) os_free(lam);
}
