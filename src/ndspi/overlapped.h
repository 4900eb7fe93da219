/* SPDX-License-Identifier: MIT
 * overlapped.h - overlapped requests: from the method that accepts one to its single completion.
 * Owns:    the provider's record of every pending request, found by the address of its OVERLAPPED;
 *          nothing of ours lives inside the OVERLAPPED but Internal and InternalHigh.
 * Threads: any. Completion may come from any thread of the core.
 * Errors:  named at each call.
 *
 * A method that takes an OVERLAPPED calls ndspi_request_begin, starts the operation in the core
 * with r->async, and reports with ndspi_request_started what the core said. From then on the
 * request belongs to the core until it calls async.done.
 *
 * The system's part (what stands behind the HANDLE) is the ndspi_file below, one implementation
 * per system; the rest is in requests.c.
 */
#ifndef SN_NDSPI_OVERLAPPED_H
#define SN_NDSPI_OVERLAPPED_H

#include "ndspi/object.h"
#include "os/prim/lock.h"
#include "rdma/rd.h"

/* ---- the system's part: overlapped_linux.c, overlapped_windows.c ---- */

struct ndspi_file;

/* A new overlapped file for the application, whose CloseHandle ends the handle. ND_NO_MEMORY. */
HRESULT ndspi_file_create(HANDLE *out);
/* The file of a handle, counted; it outlives the handle. NULL: not an overlapped file. */
struct ndspi_file *ndspi_file_open(HANDLE handle);
void ndspi_file_close(struct ndspi_file *f);
/* A request starts: marks the OVERLAPPED as pending, resets its event, and takes all that the
 * completion will need. *slot is the system's own, kept with the request. False: no memory or
 * no handles left, the OVERLAPPED is unchanged. */
SN_MUST_CHECK bool ndspi_file_begin(struct ndspi_file *f, OVERLAPPED *ov, void **slot);
/* Takes begin back: hr is stored in the OVERLAPPED, nobody is told. */
void ndspi_file_refuse(struct ndspi_file *f, OVERLAPPED *ov, void *slot, HRESULT hr);
/* Completes: status, event, packet, in this order. The OVERLAPPED may be gone afterwards. Neither
 * blocks nor calls back; called with a lock of rank REQUEST held, as are begin and refuse. The
 * result goes to ndspi_file_wake, once no lock is held that the thread woken by it would run into;
 * the file may be gone by then. */
SN_MUST_CHECK void *ndspi_file_complete(struct ndspi_file *f, OVERLAPPED *ov, void *slot,
                                        HRESULT hr);
void ndspi_file_wake(void *held);
/* A sleep of the calling thread that ndspi_file_wake of the sleeper ends (others may, too), and in
 * which it may lead (below). Acquire gives NULL where there is no such thing, or no memory. */
void *ndspi_sleeper_acquire(void);
void ndspi_sleeper_sleep(void *sleeper);
void ndspi_sleeper_release(void *sleeper);
/* Threads that wait may do the work of this adapter meanwhile, where the system's waits are ours;
 * before it is closed, _forget. With several adapters none is led. */
void ndspi_lead_offer(struct rd_adapter *rd);
void ndspi_lead_forget(struct rd_adapter *rd);
/* The status that an OVERLAPPED which is not pending carries. */
HRESULT ndspi_file_result(const OVERLAPPED *ov);
/* The processors that this process may run on; false if the system does not say. */
bool ndspi_file_affinity(KAFFINITY *out);

/* ---- requests ---- */

struct ndspi_overlapped; /* an object with overlapped methods */

struct ndspi_request {
    struct rd_async async;          /* lent to the core; its link is ours before and after */
    struct sn_list link;            /* [shard lock] in the table of pending requests */
    struct ndspi_overlapped *owner; /* [const] counted internally */
    OVERLAPPED *ov;                 /* [const] the application's, until completed */
    void *slot;                     /* [const] the file's */
    uint64_t seq;                   /* [const] order of issue over all objects */
    bool chosen;                    /* [shard lock] CancelIoEx asked for this one */
    struct ndspi_waiter *waiter;    /* [shard lock] who sleeps for this one; NULL: nobody so far */
    /* Starts the operation in the core, again after it was cancelled for another's sake. NULL: it
     * cannot be started again. */
    sn_status (*start)(struct ndspi_request *r);
    struct ndspi_object *object; /* [const] for start; counted internally, may be NULL */
    uint32_t type;               /* [const] for start */
};

struct ndspi_overlapped {
    struct ndspi_object obj;
    struct ndspi_file *file; /* [const] counted */
    os_lock cancel_lock;     /* rank MODULE: one cancellation at a time, outside of the core */
    os_lock lock;            /* rank REQUEST */
    struct sn_list spare;    /* [lock] requests to use again, linked by async.link */
    struct sn_list restart;  /* [lock] cancelled for another's sake, linked by async.link */
    uint32_t spare_count;    /* [lock] */
    uint32_t pending_count;  /* [lock] */
    os_atomic_u32 choosing;  /* [atomic: set around a cancellation of chosen requests only] */
};

/* As ndspi_object_create, for a class with overlapped methods; the handle is the application's
 * overlapped file. NULL with *hr: ND_INVALID_HANDLE, ND_NO_MEMORY. */
void *ndspi_overlapped_create(size_t size, const struct ndspi_class *cls, const void *vtbl,
                              struct ndspi_adapter *adapter, HANDLE handle, HRESULT *hr);
/* Called by ndspi_object_put. */
void ndspi_overlapped_fini(struct ndspi_overlapped *o);

/* Records a request and marks ov (not NULL) pending. ND_PENDING: *out is to be given to exactly one
 * of the two below, by the same thread, soon. Else refused: ND_INSUFFICIENT_RESOURCES,
 * ND_INVALID_DEVICE_STATE (the object is closed). */
HRESULT ndspi_request_begin(struct ndspi_overlapped *o, OVERLAPPED *ov, struct ndspi_request **out);
/* The request will not be started: records hr in the OVERLAPPED, forgets it, returns hr. */
HRESULT ndspi_request_refuse(struct ndspi_request *r, HRESULT hr);
/* The operation has an outcome (hr) already: completes the request; returns ND_PENDING. */
HRESULT ndspi_request_finish(struct ndspi_request *r, HRESULT hr);
/* What the core answered when it got r->async, which may have been completed meanwhile: SN_PENDING:
 * returns ND_PENDING; SN_OK: as finish; else as refuse with the general code. owner is that of r.
 */
HRESULT ndspi_request_started(struct ndspi_overlapped *owner, struct ndspi_request *r,
                              sn_status st);

/* The two methods of IND2Overlapped. */
HRESULT ndspi_overlapped_cancel(struct ndspi_overlapped *o);
/* Needs no object: works from the address of the OVERLAPPED. */
HRESULT ndspi_overlapped_result(OVERLAPPED *ov, BOOL wait);

/* Cancels the pending requests of a file that were issued with ov (NULL: all), in order of issue,
 * before it returns. True if there was one. No lock held. */
bool ndspi_file_cancel(struct ndspi_file *f, OVERLAPPED *ov);

#define NDSPI_IOVERLAPPED(iface)                                                                   \
    NDSPI_IUNKNOWN(iface)                                                                          \
    static HRESULT STDMETHODCALLTYPE cancel_overlapped_requests(iface *This) {                     \
        return ndspi_overlapped_cancel((struct ndspi_overlapped *)This);                           \
    }                                                                                              \
    static HRESULT STDMETHODCALLTYPE get_overlapped_result(iface *This, OVERLAPPED *ov,            \
                                                           BOOL wait) {                            \
        (void)This;                                                                                \
        return ndspi_overlapped_result(ov, wait);                                                  \
    }
#define NDSPI_IOVERLAPPED_SLOTS                                                                    \
    NDSPI_IUNKNOWN_SLOTS, .CancelOverlappedRequests = cancel_overlapped_requests,                  \
                          .GetOverlappedResult = get_overlapped_result

#endif
