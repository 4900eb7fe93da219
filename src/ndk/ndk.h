/* SPDX-License-Identifier: MIT
 * ndk.h - the NDK provider, inside libsoftndk.
 * Owns:    the object model: what a close waits for, in what order callbacks come, and on which
 *          threads. Every object starts with the public NDK_X (header and dispatch pointer).
 *
 * An object's `refs` counts: its being open, each pending request and running callback, and each
 * open successor. Close drops the first; when the last goes, the object is torn down, its close
 * completion is called, and only then its own references to its antecedents are dropped.
 *
 * Callbacks run on the adapter's worker threads at DISPATCH_LEVEL, those of one object in order and
 * one at a time (its strand).
 *
 * Threads: any.   Errors: NTSTATUS at the edge, sn_status below.
 */
#ifndef SN_NDK_NDK_H
#define SN_NDK_NDK_H

#include "ndk/kenv/kenv.h"
#include "ndk/verify/verify.h"
#include "ndkpi.h"
#include "os/prim/lock.h"
#include "os/prim/thread.h"
#include "rdma/rd.h"

/* ---- jobs ---- */

struct ndk_strand {
    struct sn_list link; /* [work lock] on the adapter's ready list */
    struct sn_list jobs; /* [work lock] */
    bool scheduled;      /* [work lock] on the ready list or being run */
};

struct ndk_job {
    struct sn_list link;
    struct ndk_strand *strand;
    uint64_t due_ns;                  /* [work lock] while delayed */
    bool (*run)(struct ndk_job *job); /* false: the strand is gone with its object */
};

/* ---- objects ---- */

struct ndk_object {
    NDK_OBJECT_HEADER header; /* first two members: the public object */
    const void *dispatch;
    struct ndk_adapter *ad;
    struct sn_list all; /* [adapter lock] */
    os_atomic_u32 refs;
    os_atomic_u32 closing;
    NDK_FN_CLOSE_COMPLETION *on_closed; /* set by the close */
    PVOID close_ctx;
    bool close_counted; /* by ndk_pending_add */
    bool forced;        /* closed by the provider because the consumer leaked it */
    struct ndk_strand strand;
    struct ndk_job final;
    /* Antecedents, each with a reference; dropped after the close completion. */
    struct ndk_object *uses[5];
    /* The close begins: stops what would otherwise go on for ever. May be NULL. */
    void (*begin_close)(struct ndk_object *o);
    /* No reference is left: destroys what the core has. */
    void (*teardown)(struct ndk_object *o);
    struct ndk_stack origin;
};

struct ndk_adapter {
    NDK_OBJECT_HEADER header;
    const void *dispatch;
    struct ndk_core *core; /* adapter.c */
    struct rd_adapter *rd; /* its */
    NDK_VERSION version;
    NET_IFINDEX if_index;
    bool verify;  /* [const] the verifier was on when it was opened */
    os_lock lock; /* rank ADAPTER */
    os_cond changed;
    struct sn_list objects; /* [lock] struct ndk_object.all */
    struct sn_list lams;    /* [lock] struct ndk_lam */
    struct sn_list shadows; /* [lock] struct ndk_shadow, freed with the adapter */
    uint32_t object_count;  /* [lock] */
    os_lock work_lock;      /* rank ENGINE */
    os_cond work_ready;
    struct sn_list ready;   /* [work lock] strands */
    struct sn_list delayed; /* [work lock] jobs */
    bool stop;              /* [work lock] */
    os_thread workers[2];
    uint32_t worker_count;
    struct sn_list link; /* [module lock] of all open adapters */
    PVOID wsk_client;
    struct ndk_stack origin;
};

struct ndk_lam {
    struct sn_list link; /* [adapter lock] */
    struct rd_io *io;
    const uint8_t *va; /* of the first byte */
    size_t len;
    uint32_t fbo;
    struct os_ref refs;  /* its being built, and each of its users */
    os_atomic_u32 users; /* verifier: requests and registrations that name it */
};

struct ndk_cq {
    struct ndk_object o;
    struct rd_cq *rd;
    NDK_FN_CQ_NOTIFICATION_CALLBACK *notify;
    PVOID notify_ctx;
    ULONG depth;
    struct ndk_job job;
    os_lock lock;          /* rank REQUEST */
    uint32_t due;          /* [lock] callbacks to be made */
    sn_status due_status;  /* [lock] */
    bool job_posted;       /* [lock] */
    uint64_t fired_ns;     /* [lock] */
    ULONG interval, count; /* [lock] moderation as set; 0: none */
    os_atomic_u32 ever_armed, in_call;
    os_atomic_u32 armed;              /* verifier: a callback may come */
    os_atomic_u32 polled, unanswered; /* verifier: a callback was made, neither drained nor armed */
    uint32_t
        attached_depth; /* verifier [adapter lock]: what its queue pairs can have outstanding */
};

struct ndk_pd {
    struct ndk_object o;
    struct rd_pd *rd;
};

enum ndk_mr_state { NDK_MR_NEW, NDK_MR_REGISTERED, NDK_MR_FAST_READY, NDK_MR_FAST_REGISTERED };
struct ndk_mr {
    struct ndk_object o;
    struct rd_region *rd;
    bool fast;
    struct ndk_pd *pd;
    os_lock lock;            /* rank REQUEST */
    enum ndk_mr_state state; /* [lock] as of the last post; fast ones: only for the verifier */
    const MDL *mdl;          /* [lock] while registered */
    uint64_t base;           /* [lock] virtual addresses of the region */
    uint64_t len;            /* [lock] */
    ULONG flags;             /* [lock] NDK_MR_FLAG_* or NDK_OP_FLAG_* */
    ULONG max_pages;         /* [lock] */
    bool remote;             /* [lock] */
    struct ndk_lam *lam[16]; /* [lock] verifier: mappings the registration uses */
};

struct ndk_mw {
    struct ndk_object o;
    struct rd_window *rd;
    os_lock lock;      /* rank REQUEST */
    struct ndk_mr *mr; /* [lock] a reference while bound */
};

struct ndk_shadow; /* verify/datapath.c */

struct ndk_srq {
    struct ndk_object o;
    struct rd_srq *rd;
    NDK_FN_SRQ_NOTIFICATION_CALLBACK *notify;
    PVOID notify_ctx;
    ULONG max_sge, depth;
    struct rd_async async;
    struct ndk_job job;
    os_lock lock;     /* rank REQUEST */
    bool armed;       /* [lock] async is the core's */
    bool job_posted;  /* [lock] */
    sn_status result; /* [lock] */
    os_atomic_u32 in_call;
    struct ndk_shadow *shadow; /* verifier */
};

struct ndk_qp {
    struct ndk_object o;
    struct rd_qp *rd;
    struct ndk_pd *pd;
    struct ndk_cq *receive_cq, *initiator_cq;
    struct ndk_srq *srq;
    PVOID context;
    ULONG receive_depth, initiator_depth, receive_sge, initiator_sge, read_sge, inline_bytes;
    os_atomic_ptr connector; /* struct ndk_connector, while it is associated; not counted */
    os_lock lock;            /* rank REQUEST: the connector pointer against its close */
    struct ndk_shadow *shadow;
    os_atomic_u32 initiator_call, receive_call;
    os_atomic_u32 flushed;
    os_atomic_u32 up, receives; /* verifier: was connected, had a receive */
    os_atomic_u32 refusal_told; /* verifier */
};

struct ndk_endpoint; /* an address in use */

struct ndk_connector {
    struct ndk_object o;
    struct rd_connector *rd; /* NULL once closed */
    struct ndk_endpoint *endpoint;
    os_lock lock;               /* rank LEAF */
    bool local_end;             /* [lock] disconnected, flushed or closed from here: no event */
    bool event_given;           /* [lock] */
    bool up;                    /* [lock] connected */
    struct os_addr here, there; /* [lock] of the connection */
    os_atomic_u32 answered;     /* verifier: CompleteConnect or Accept was called */
    ULONG ird, ord;             /* as asked for, capped */
    bool asked;
    struct ndk_qp *qp;
    NDK_FN_DISCONNECT_EVENT_CALLBACK *on_disconnect;
    NDK_FN_DISCONNECT_EVENT_CALLBACK_EX *on_disconnect_ex;
    PVOID disconnect_ctx;
    struct rd_async disconnect_async;
    struct ndk_job disconnect_job;
    struct ndk_job close_job;
};

struct ndk_listener {
    struct ndk_object o;
    struct rd_listener *rd;
    struct ndk_endpoint *endpoint;
    NDK_FN_CONNECT_EVENT_CALLBACK *on_connect;
    PVOID connect_ctx;
    os_atomic_u32 paused, stopped;
    bool listening;
    struct ndk_connector *next; /* waits for a request; not the consumer's yet */
    struct rd_async async;
    struct ndk_job job;
    struct ndk_job close_job;
    sn_status result;
};

struct ndk_shared_endpoint {
    struct ndk_object o;
    struct ndk_endpoint *endpoint;
    struct rd_connector *holder; /* bound, never connected */
    struct os_addr addr;
};

/* ---- objects (object.c) ---- */

/* A zeroed object of `size` bytes, with one reference, not yet known to anybody; uses[] are
 * referenced. NULL: no memory. */
void *ndk_object_new(struct ndk_adapter *ad, size_t size, NDK_OBJECT_TYPE type,
                     const void *dispatch, struct ndk_object *const uses[], size_t use_count);
/* An object that never was handed out. */
void ndk_object_discard(struct ndk_object *o);
void ndk_object_get(struct ndk_object *o);
/* No lock held. The last one ends the object, on a worker thread. */
void ndk_object_put(struct ndk_object *o);
/* Adds an antecedent later on. */
void ndk_object_use(struct ndk_object *o, struct ndk_object *antecedent);
NDK_FN_CLOSE_OBJECT ndk_close_object;
NDK_FN_QUERY_EXTENSION_INTERFACE ndk_query_extension;
const char *ndk_type_name(uint32_t type);

/* Nothing of the strand runs or waits. */
bool ndk_strand_idle(struct ndk_adapter *ad, struct ndk_strand *strand);
void ndk_job_post(struct ndk_adapter *ad, struct ndk_strand *strand, struct ndk_job *job);
void ndk_job_post_at(struct ndk_adapter *ad, struct ndk_strand *strand, struct ndk_job *job,
                     uint64_t due_ns);

/* ---- answering (request.c) ---- */

/* A pending request; holds its object. */
struct ndk_request {
    struct rd_async async; /* first */
    struct ndk_job job;
    struct ndk_object *o;
    NDK_FN_REQUEST_COMPLETION *on_done;
    NDK_FN_CREATE_COMPLETION *on_created;
    PVOID ctx;
    NTSTATUS status;
    NDK_OBJECT_HEADER *created;
    const char *name;
    uint64_t call; /* verifier: that it was made in */
    bool counted;  /* by ndk_pending_add */
    /* Runs before the callback, on the worker; may change the status. May be NULL. */
    void (*before)(struct ndk_request *r, sn_status st);
    sn_status st;
    NTSTATUS (*map)(sn_status st);
};
/* NULL: no memory. async.done is set: the core's completion leads to the callback. */
struct ndk_request *ndk_request_new(struct ndk_object *o, const char *name,
                                    NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx);
void ndk_request_free(struct ndk_request *r);
/* The outcome of a call to the core that takes r->async: SN_PENDING or a failure at once. */
NTSTATUS ndk_request_started(struct ndk_request *r, sn_status st);
/* A result that is known: inline or through the callback, as softndk_set says. */
NTSTATUS ndk_answer(struct ndk_object *o, const char *name, NDK_FN_REQUEST_COMPLETION *on_done,
                    PVOID ctx, NTSTATUS st);
/* The same for a create; the object is the consumer's from here. *out is a NDK_X **. */
NTSTATUS ndk_answer_create(struct ndk_object *o, const char *name,
                           NDK_FN_CREATE_COMPLETION *on_created, PVOID ctx, void *out);

/* ---- statuses (status.c) ---- */

NTSTATUS ndk_status(sn_status st);            /* of calls */
NTSTATUS ndk_completion_status(sn_status st); /* of results in a completion queue */
NTSTATUS ndk_post_status(sn_status st);
NTSTATUS ndk_connect_status(sn_status st);
NTSTATUS ndk_accept_status(sn_status st);

/* ---- switches (options.c) ---- */

struct ndk_options {
    os_atomic_u32 completions; /* enum softndk_completions */
    os_atomic_u32 fixed_tokens, scattered, disabled, no_moderation;
    os_atomic_u32 fail_posts, posts;
};
extern struct ndk_options ndk_options;
void ndk_options_load(void);
enum ndk_how { NDK_NOW, NDK_LATER, NDK_EARLY };
enum ndk_how ndk_choose(void);
/* ndk_answer in a chosen way; `before` runs ahead of the callback, and not for NDK_NOW. */
NTSTATUS ndk_answer_as(struct ndk_object *o, const char *name, NDK_FN_REQUEST_COMPLETION *on_done,
                       PVOID ctx, NTSTATUS st, enum ndk_how how,
                       void (*before)(struct ndk_request *r, sn_status st));
/* True if this post has to fail. */
bool ndk_fail_post(void);

/* ---- adapters and memory (adapter.c, lam.c) ---- */

NDIS_STATUS ndk_open(NET_IFINDEX if_index, NDK_VERSION version, NDK_ADAPTER **out);
/* Closes what is left, reported, then waits for everything. */
void ndk_close_adapter(NDK_ADAPTER *adapter);
int ndk_adapter_leaks(void);
/* Asks each open adapter until one answers. */
const char *ndk_each_adapter(const char *(*fn)(struct ndk_adapter *ad, const void *p, size_t len,
                                               const MDL *mdl),
                             const void *p, size_t len, const MDL *mdl);
const NDK_ADAPTER_INFO *ndk_fill_info(NDK_VERSION version, NDK_ADAPTER_INFO *out);
/* The first len bytes of the chain, if they are virtually contiguous: STATUS_SUCCESS. */
NTSTATUS ndk_mdl_span(const MDL *mdl, SIZE_T len, const uint8_t **va);
void ndk_lam_use(struct ndk_lam *lam);
void ndk_lam_unuse(struct ndk_lam *lam);
NDK_FN_BUILD_LAM ndk_build_lam;
NDK_FN_RELEASE_LAM ndk_release_lam;
/* The live mapping with this logical address; lock held. NULL: none. */
struct ndk_lam *ndk_lam_find_locked(struct ndk_adapter *ad, uint64_t logical);

NDK_FN_CREATE_CQ ndk_create_cq;
NDK_FN_CREATE_PD ndk_create_pd;
NDK_FN_CREATE_SHARED_ENDPOINT ndk_create_shared_endpoint;
NDK_FN_CREATE_CONNECTOR ndk_create_connector;
NDK_FN_CREATE_LISTENER ndk_create_listener;
NDK_FN_CREATE_MR ndk_create_mr;
NDK_FN_CREATE_MW ndk_create_mw;
NDK_FN_CREATE_SRQ ndk_create_srq;
NDK_FN_CREATE_QP ndk_create_qp;
NDK_FN_CREATE_QP_WITH_SRQ ndk_create_qp_with_srq;

/* A notification may come. */
bool ndk_srq_armed(struct ndk_srq *srq);
extern const NDK_CQ_DISPATCH ndk_cq_dispatch;
extern const NDK_QP_DISPATCH ndk_qp_dispatch;
extern const NDK_SRQ_DISPATCH ndk_srq_dispatch;

/* A connector for a request; its listener is an antecedent. */
struct ndk_connector *ndk_connector_new(struct ndk_adapter *ad, struct ndk_listener *l);
/* One that was never handed out. */
void ndk_connector_discard(struct ndk_connector *c);
/* True while it is connected: the addresses of both ends. */
bool ndk_connector_is_up(struct ndk_connector *c, struct os_addr *here, struct os_addr *there);
/* No disconnect event from now on. */
void ndk_connector_local_end(struct ndk_connector *c);

/* ---- the NDIS side (ndis.c) ---- */

/* OID_NDK_SET_STATE switched it off. */
bool ndk_port_disabled(NET_IFINDEX if_index);
/* A core adapter of the interface ends; what it counted stays. */
void ndk_port_core_ends(NET_IFINDEX if_index, const struct rd_adapter *rd);

/* ---- addresses (endpoint.c) ---- */

enum ndk_endpoint_kind { NDK_ENDPOINT_CONNECTOR, NDK_ENDPOINT_LISTENER, NDK_ENDPOINT_SHARED };
/* Reserves an address and port in this process: SN_E_ADDR_IN_USE. port 0 is not reserved. */
SN_MUST_CHECK sn_status ndk_endpoint_take(const struct ndk_adapter *ad, enum ndk_endpoint_kind kind,
                                          const struct os_addr *addr, struct ndk_endpoint **out);
/* Those of an interface, under a lock: fn calls nothing back. */
void ndk_endpoint_each(NET_IFINDEX if_index,
                       void (*fn)(void *ctx, enum ndk_endpoint_kind kind,
                                  const struct os_addr *addr),
                       void *ctx);
void ndk_endpoint_give(struct ndk_endpoint *e);
/* sockaddr of the caller; STATUS_INVALID_ADDRESS, STATUS_INVALID_PARAMETER. */
NTSTATUS ndk_addr_in(const SOCKADDR *sa, ULONG len, bool local, struct os_addr *out);
NTSTATUS ndk_addr_out(const struct os_addr *a, SOCKADDR *sa, ULONG *len);

/* ---- the verifier's view (verify/) ---- */

/* True if o may be used as an object of this type by this call; reports why not. */
bool ndk_check_object_at(const void *o, NDK_OBJECT_TYPE type, const char *call, KIRQL max,
                         const void *frame);
#define ndk_check_object(o, type, call, max)                                                       \
    ndk_check_object_at(o, type, call, max, __builtin_frame_address(0))
/* The same, and the calling thread is in this function of o until ndk_call_end. */
struct ndk_call;
bool ndk_enter_object_at(const void *o, NDK_OBJECT_TYPE type, const char *call, KIRQL max,
                         const void *frame, struct ndk_call **in);
#define ndk_enter_object(o, type, call, max, in)                                                   \
    ndk_enter_object_at(o, type, call, max, __builtin_frame_address(0), in)
/* At the start of every function of an object, which it is in until it returns: */
#define NDK_ENTER(obj, type, call, failure)                                                        \
    __attribute__((cleanup(ndk_leave))) struct ndk_call *in_call_ = NULL;                          \
    if (ndk_verifying() && !ndk_enter_object(obj, type, call, DISPATCH_LEVEL, &in_call_))          \
    return failure
/* And for each other object that it is given: */
#define NDK_ARGUMENT(obj, type, call, failure)                                                     \
    if (ndk_verifying() && !ndk_check_object(obj, type, call, DISPATCH_LEVEL)) return failure
void ndk_live_add(struct ndk_object *o);
void ndk_live_remove(struct ndk_object *o);
void ndk_live_closing(struct ndk_object *o, const char *call);
/* What can still call the consumer, in words; NULL: nothing. */
const char *ndk_source(void);

/* Calls and requests (verify/requests.c). */
void ndk_requests_init(void);
struct ndk_call *ndk_call_begin(const void *object, const char *name);
void ndk_call_end(struct ndk_call *c);
static inline void ndk_leave(struct ndk_call **c) {
    if (SN_UNLIKELY(*c != NULL)) ndk_call_end(*c);
}
uint64_t ndk_call_id(void); /* of the calling thread's innermost call, 0: none */
/* The completion of what this call started is called now. */
void ndk_call_completes(uint64_t id);
/* The function of this object that another thread is in, or NULL. */
const char *ndk_call_elsewhere(const void *object);
/* True: it is counted until ndk_pending_remove. fn: the completion. */
bool ndk_pending_add(const void *ctx, const void *object, const char *call, const void *fn);
void ndk_pending_remove(const void *ctx, const void *object);
uint32_t ndk_requests_pending(void);
/* The calling thread calls this completion; (NULL, NULL): no more. */
void ndk_completing(const void *fn, const void *ctx);
/* A request of the calling thread ended with its call. */
void ndk_answered_inline(const void *ctx, const char *call, NTSTATUS status);
const char *ndk_requests_inline_for(const void *event, NTSTATUS *status);
void ndk_requests_on_call(const void *frame);
void ndk_requests_on_timeout(const void *event);
void ndk_requests_on_event_init(const void *event);
void ndk_requests_on_event_set(const void *event);

void ndk_check_callback(const void *callback, const char *call, const char *which);
void ndk_verify_init(void);

extern const NDK_CQ_DISPATCH ndk_verify_cq_dispatch;
extern const NDK_QP_DISPATCH ndk_verify_qp_dispatch;
extern const NDK_SRQ_DISPATCH ndk_verify_srq_dispatch;
/* What the core keeps as the context of a queue pair: stands in for the consumer's, and outlives
 * the queue pair. NULL: no memory. */
struct ndk_shadow *ndk_shadow_new(struct ndk_qp *qp);
/* That of a shared receive queue. */
struct ndk_shadow *ndk_shadow_new_shared(struct ndk_adapter *ad);
void ndk_shadow_shared_closed(struct ndk_shadow *s);
void ndk_shadow_free_all(struct ndk_adapter *ad);
void ndk_shadow_qp_closed(struct ndk_qp *qp);
PVOID ndk_shadow_context(const struct ndk_shadow *s);
/* A result was taken from the queue. */
void ndk_shadow_result(struct ndk_shadow *s, const struct rd_completion *c);
void ndk_verify_cq_closed(struct ndk_cq *cq);
/* NdkGetCqResults and NdkGetCqResultsEx of a queue whose adapter is verified (cq.c). */
ULONG ndk_verify_take(NDK_CQ *cq, NDK_RESULT out[], ULONG count);
ULONG ndk_verify_take_ex(NDK_CQ *cq, NDK_RESULT_EX out[], ULONG count);
void ndk_verify_mr_ended(struct ndk_mr *mr);

/* Remote tokens (verify/remote.c). This one is not valid from now on; 0: none. */
void ndk_token_ended(const void *owner, const char *type, uint32_t token, const char *how);
/* If the peer was refused something on this queue pair: says what, once. */
void ndk_report_refused(struct ndk_qp *qp);

#define NDK_OBJ(p) ((struct ndk_object *)(p))

#endif
