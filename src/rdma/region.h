/* SPDX-License-Identifier: MIT
 * region.h - memory regions and windows, inside the core.
 * Owns:    struct rd_region and struct rd_window; their state is guarded by the table lock.
 * Threads: any.   Errors: see rd.h.
 */
#ifndef SN_RDMA_REGION_H
#define SN_RDMA_REGION_H

#include "rdma/adapter.h"

struct rd_fastreg;

struct rd_region {
    struct os_ref refs; /* the front end's, one per bound window */
    struct rd_adapter *ad;
    os_atomic_u32 local_token, remote_token; /* [table lock for writes] 0: not registered */
    struct rd_slot *local, *remote;          /* [table lock] NULL: not registered */
    uint8_t *base;                           /* [table lock] */
    size_t len;                              /* [table lock] bytes */
    uint32_t flags;                          /* [table lock] RD_LOCAL_WRITE ... */
    struct sn_list windows;                  /* [table lock] bound ones */
    uint32_t pd;                             /* [const] protection domain, 0: none */
    /* fast registration (fastreg.c), all [table lock] */
    struct rd_slot *fast_local;  /* the local token, for life; NULL: not initialised for it */
    struct rd_slot *next_remote; /* the remote token of the next registration, if chosen */
    struct rd_fastreg *current;  /* registered now, or ending */
    uint32_t max_pages;
    bool remote_access, fixed_token;
    bool ending; /* waiting for accesses in flight */
    bool dead;   /* destroyed by the front end */
};

struct rd_window {
    struct os_ref refs; /* the front end's, one per posted bind or invalidate */
    struct rd_adapter *ad;
    os_atomic_u32 token;      /* [table lock for writes] 0: unbound */
    struct rd_region *region; /* [table lock] NULL: unbound */
    struct rd_slot *slot;     /* [table lock] */
    uint64_t qp_id;           /* [table lock] */
    uint64_t bind_id; /* [table lock] counts binds, so that a late step of an old one fails */
    bool dead;        /* [table lock] destroyed: cannot be bound again */
    struct sn_list region_link, qp_link; /* [table lock] */
};

void rd_region_put(struct rd_region *r);
void rd_window_put(struct rd_window *w);

/* The checks of rd_qp_bind, and a token that is not valid yet. qp_windows: the queue pair's list of
 * windows. *bind_id names this bind for the two calls below. Locks up to SQ held. */
SN_MUST_CHECK sn_status rd_window_bind(struct rd_window *w, struct rd_region *r, uint64_t qp_id,
                                       struct sn_list *qp_windows, const void *buf, size_t len,
                                       uint32_t rights, uint64_t *bind_id);
/* The bind's turn in the queue: access through the token becomes valid. SN_E_REQUEST if the window
 * was unbound in the meantime. */
SN_MUST_CHECK sn_status rd_window_bind_run(struct rd_window *w, uint64_t bind_id);
/* The bind was flushed: the window is unbound again. */
void rd_window_bind_undo(struct rd_window *w, uint64_t bind_id);
/* The invalidate's turn. SN_E_REQUEST: unbound, or bound to another queue pair. Waits until
 * accesses in flight are over. */
SN_MUST_CHECK sn_status rd_window_invalidate(struct rd_window *w, uint64_t qp_id);
/* A peer's Send with Invalidate: SN_E_TOKEN, SN_E_PD. */
SN_MUST_CHECK sn_status rd_window_invalidate_token(struct rd_adapter *ad, uint64_t qp_id,
                                                   uint32_t token);
/* ---- fast registration ---- */

/* Post: checks and copies the arguments, chooses the remote token. SN_E_STATE, SN_E_PARAM,
 * SN_E_RIGHTS, SN_E_NOMEM, SN_E_RESOURCES. Locks up to SQ held, as for all of these. */
SN_MUST_CHECK sn_status rd_fastreg_prepare(struct rd_region *r, const uint64_t *pages,
                                           uint32_t count, uint32_t fbo, size_t len, uint64_t base,
                                           uint32_t rights, struct rd_fastreg **out);
/* Its turn, takes fr: SN_E_REQUEST if the region is registered, or is gone. */
SN_MUST_CHECK sn_status rd_fastreg_run(struct rd_region *r, struct rd_fastreg *fr);
/* It was flushed: frees fr. */
void rd_fastreg_abandon(struct rd_region *r, struct rd_fastreg *fr);
/* SN_E_REQUEST: not registered. */
SN_MUST_CHECK sn_status rd_fastreg_invalidate(struct rd_region *r);
/* By token: SN_E_TOKEN (not one of a fast-registered region), SN_E_PD. */
SN_MUST_CHECK sn_status rd_fastreg_invalidate_remote(struct rd_adapter *ad, uint32_t pd,
                                                     uint32_t token);
void rd_fastreg_invalidate_local(struct rd_adapter *ad, uint32_t pd, uint32_t token);
const struct rd_pages *rd_fastreg_pages(const void *fastreg);
void rd_fastreg_destroy(struct rd_region *r);
void rd_fastreg_fini(struct rd_region *r);

/* Unbind every window of a region, or on a queue pair's list. */
void rd_windows_unbind_region(struct rd_region *r);
void rd_windows_unbind_qp(struct rd_adapter *ad, struct sn_list *qp_windows);

#endif
