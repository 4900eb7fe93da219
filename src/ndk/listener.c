/* SPDX-License-Identifier: MIT
 *
 * A listener always has one connector waiting for the next request. It belongs to the provider
 * until the connect event hands it to the consumer.
 */
#include "ndk/ndk.h"
#include "os/prim/clock.h"

enum { BACKLOG = 128, PORT_TRIES = 16 };
#define RETRY_NS (20 * OS_NS_PER_MS) /* there was no memory for the next request */

/* ---- requests ---- */

static void got_request(struct rd_async *a, sn_status st) {
    struct ndk_listener *l = SN_CONTAINER(a, struct ndk_listener, async);
    l->result = st;
    ndk_job_post(l->o.ad, &l->o.strand, &l->job);
}

/* The reference that the pending get holds is the caller's on failure. */
static sn_status wait_for_next(struct ndk_listener *l) {
    struct ndk_connector *c = ndk_connector_new(l->o.ad, l);
    if (!c) return SN_E_NOMEM;
    os_u32_store_release(&c->o.closing, 1); /* nobody may use or miss it yet */
    l->next = c;
    l->async.done = got_request;
    sn_status st = rd_listener_get_request(l->rd, c->rd, &l->async);
    if (st == SN_PENDING) return SN_OK;
    l->next = NULL;
    ndk_connector_discard(c);
    return st;
}

static void give(struct ndk_listener *l, struct ndk_connector *c) {
    os_u32_store_release(&c->o.closing, 0);
    struct ke_callback saved = ke_callback_begin();
    l->on_connect(l->connect_ctx, (NDK_CONNECTOR *)c);
    ke_callback_end(saved, "ConnectEventCallback");
}

static bool run_request(struct ndk_job *job) {
    struct ndk_listener *l = SN_CONTAINER(job, struct ndk_listener, job);
    struct ndk_connector *c = l->next;
    l->next = NULL;
    if (c &&
        (l->result != SN_OK || os_u32_load_acquire(&l->paused) || os_u32_load_acquire(&l->stopped)))
        ndk_connector_discard(c); /* the peer is told as if nobody listened */
    else if (c)
        give(l, c);
    if (l->result != SN_OK || os_u32_load_acquire(&l->stopped))
        ndk_object_put(&l->o);
    else if (wait_for_next(l) != SN_OK) /* requests queue up meanwhile */
        ndk_job_post_at(l->o.ad, &l->o.strand, &l->job, os_now_ns() + RETRY_NS);
    return true;
}

/* ---- create and close ---- */

static bool run_close(struct ndk_job *job) {
    struct ndk_listener *l = SN_CONTAINER(job, struct ndk_listener, close_job);
    rd_listener_destroy(l->rd);
    ndk_object_put(&l->o);
    return true;
}

/* As a connector's: see there. */
static void begin_close(struct ndk_object *o) {
    struct ndk_listener *l = (struct ndk_listener *)o;
    os_u32_store_seqcst(&l->stopped, 1);
    if (ndk_strand_idle(o->ad, &o->strand)) {
        rd_listener_destroy(l->rd);
        return;
    }
    ndk_object_get(o);
    l->close_job.run = run_close;
    ndk_job_post(o->ad, &o->strand, &l->close_job);
}

static void teardown(struct ndk_object *o) {
    ndk_endpoint_give(((struct ndk_listener *)o)->endpoint);
}

static NTSTATUS listen_on(NDK_LISTENER *object, CONST SOCKADDR *address, ULONG len,
                          NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    struct ndk_listener *l = (struct ndk_listener *)object;
    struct os_addr local;
    NDK_ENTER(object, NdkObjectTypeListener, "NdkListen", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_done, "NdkListen", "RequestCompletion");
    if (l->listening) return STATUS_INVALID_DEVICE_STATE;
    NTSTATUS status = ndk_addr_in(address, len, true, &local);
    if (status != STATUS_SUCCESS) return status;
    struct ndk_endpoint *e = NULL;
    sn_status st = ndk_endpoint_take(l->o.ad, NDK_ENDPOINT_LISTENER, &local, &e);
    if (st == SN_OK) st = rd_listener_bind(l->rd, &local);
    if (st == SN_OK) st = rd_listener_local_addr(l->rd, &local);
    if (st == SN_OK && !e) st = ndk_endpoint_take(l->o.ad, NDK_ENDPOINT_LISTENER, &local, &e);
    if (st == SN_OK) st = rd_listener_listen(l->rd, BACKLOG);
    if (st == SN_OK) {
        ndk_object_get(&l->o); /* the pending get's */
        st = wait_for_next(l);
        if (st != SN_OK) ndk_object_put(&l->o);
    }
    if (st != SN_OK) {
        ndk_endpoint_give(e);
        return ndk_status(st);
    }
    l->endpoint = e;
    l->listening = true;
    return ndk_answer(&l->o, "NdkListen", on_done, ctx, STATUS_SUCCESS);
}

static NTSTATUS local_address(NDK_LISTENER *object, SOCKADDR *address, ULONG *len) {
    struct os_addr a;
    NDK_ENTER(object, NdkObjectTypeListener, "NdkGetLocalAddress", STATUS_INVALID_PARAMETER);
    sn_status st = rd_listener_local_addr(((struct ndk_listener *)object)->rd, &a);
    return st == SN_OK ? ndk_addr_out(&a, address, len) : ndk_status(st);
}

static VOID control(NDK_LISTENER *object, BOOLEAN pause) {
    NDK_ENTER(object, NdkObjectTypeListener, "NdkControlConnectEvents", );
    os_u32_store_release(&((struct ndk_listener *)object)->paused, pause != 0);
}

static const NDK_LISTENER_DISPATCH dispatch = {
    .NdkCloseListener = ndk_close_object,
    .NdkQueryExtension = ndk_query_extension,
    .NdkListen = listen_on,
    .NdkGetLocalAddress = local_address,
    .NdkControlConnectEvents = control,
};

NTSTATUS ndk_create_listener(NDK_ADAPTER *adapter, NDK_FN_CONNECT_EVENT_CALLBACK *on_connect,
                             PVOID connect_ctx, NDK_FN_CREATE_COMPLETION *on_created, PVOID ctx,
                             NDK_LISTENER **out) {
    struct ndk_adapter *ad = (struct ndk_adapter *)adapter;
    NDK_ENTER(adapter, NdkObjectTypeAdapter, "NdkCreateListener", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_connect, "NdkCreateListener", "ConnectEvent");
    ndk_check_callback((const void *)(uintptr_t)on_created, "NdkCreateListener",
                       "CreateCompletion");
    if (!on_connect || !out) return STATUS_INVALID_PARAMETER;
    struct ndk_listener *l =
        ndk_object_new(ad, sizeof *l, NdkObjectTypeListener, &dispatch, NULL, 0);
    if (!l) return STATUS_INSUFFICIENT_RESOURCES;
    sn_status st = rd_listener_create(ad->rd, &l->rd);
    if (st != SN_OK) {
        ndk_object_discard(&l->o);
        return ndk_status(st);
    }
    l->on_connect = on_connect;
    l->connect_ctx = connect_ctx;
    l->job.run = run_request;
    l->o.begin_close = begin_close;
    l->o.teardown = teardown;
    return ndk_answer_create(&l->o, "NdkCreateListener", on_created, ctx, out);
}

/* ---- shared endpoints ---- */

static void endpoint_teardown(struct ndk_object *o) {
    struct ndk_shared_endpoint *e = (struct ndk_shared_endpoint *)o;
    rd_connector_destroy(e->holder);
    ndk_endpoint_give(e->endpoint);
}

static NTSTATUS endpoint_address(NDK_SHARED_ENDPOINT *object, SOCKADDR *address, ULONG *len) {
    NDK_ENTER(object, NdkObjectTypeSharedEndpoint, "NdkGetLocalAddress", STATUS_INVALID_PARAMETER);
    return ndk_addr_out(&((struct ndk_shared_endpoint *)object)->addr, address, len);
}

static const NDK_SHARED_ENDPOINT_DISPATCH endpoint_dispatch = {
    .NdkCloseSharedEndpoint = ndk_close_object,
    .NdkQueryExtension = ndk_query_extension,
    .NdkGetLocalAddress = endpoint_address,
};

static sn_status hold(struct ndk_adapter *ad, const struct os_addr *local,
                      struct ndk_shared_endpoint *e) {
    sn_status st = rd_connector_create(ad->rd, &e->holder);
    if (st != SN_OK) return st;
    st = rd_connector_bind(e->holder, local);
    if (st == SN_OK) st = rd_connector_local_addr(e->holder, &e->addr);
    if (st == SN_OK) return SN_OK;
    rd_connector_destroy(e->holder);
    e->holder = NULL;
    return st;
}

/* A port that the system chose is nobody else's; others can join only one that was asked for. */
static sn_status hold_address(struct ndk_adapter *ad, const struct os_addr *local,
                              struct ndk_shared_endpoint *e) {
    sn_status st = SN_E_ADDR_IN_USE;
    for (int i = 0; i < PORT_TRIES && st == SN_E_ADDR_IN_USE; i++) {
        st = hold(ad, local, e);
        if (st != SN_OK || local->port != 0) return st;
        rd_connector_destroy(e->holder);
        e->holder = NULL;
        struct os_addr chosen = e->addr;
        st = hold(ad, &chosen, e); /* in use: somebody was faster */
    }
    return st;
}

NTSTATUS ndk_create_shared_endpoint(NDK_ADAPTER *adapter, CONST SOCKADDR *address, ULONG len,
                                    NDK_FN_CREATE_COMPLETION *on_created, PVOID ctx,
                                    NDK_SHARED_ENDPOINT **out) {
    struct ndk_adapter *ad = (struct ndk_adapter *)adapter;
    struct os_addr local;
    NDK_ENTER(adapter, NdkObjectTypeAdapter, "NdkCreateSharedEndpoint", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_created, "NdkCreateSharedEndpoint",
                       "CreateCompletion");
    if (!out) return STATUS_INVALID_PARAMETER;
    NTSTATUS status = ndk_addr_in(address, len, true, &local);
    if (status != STATUS_SUCCESS) return status;
    struct ndk_shared_endpoint *e =
        ndk_object_new(ad, sizeof *e, NdkObjectTypeSharedEndpoint, &endpoint_dispatch, NULL, 0);
    if (!e) return STATUS_INSUFFICIENT_RESOURCES;
    sn_status st = ndk_endpoint_take(ad, NDK_ENDPOINT_SHARED, &local, &e->endpoint);
    if (st == SN_OK) st = hold_address(ad, &local, e);
    if (st == SN_OK && !e->endpoint)
        st = ndk_endpoint_take(ad, NDK_ENDPOINT_SHARED, &e->addr, &e->endpoint);
    if (st != SN_OK) {
        if (e->holder) rd_connector_destroy(e->holder);
        ndk_endpoint_give(e->endpoint);
        ndk_object_discard(&e->o);
        return ndk_status(st);
    }
    e->o.teardown = endpoint_teardown;
    return ndk_answer_create(&e->o, "NdkCreateSharedEndpoint", on_created, ctx, out);
}
