/* SPDX-License-Identifier: MIT
 * fake_rd.c - see fake_rd.h.
 */
#include <pthread.h>
#include <string.h>
#include "fake_rd.h"
#include "os/prim/fault.h"
#include "os/prim/thread.h"
#include "rdma/counters.h"

struct fake fake;

/* One lock for everything; done is called without it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sn_list pending = { &pending, &pending }; /* [lock] all requests, oldest first */

struct rd_adapter {
    uint64_t id;
};
/* Every other object. */
struct object {
    uint64_t key; /* of its requests: async.core */
};
struct rd_region {
    struct object o;
};
struct rd_window {
    struct object o;
};
struct rd_cq {
    struct object o;
};
struct rd_srq {
    struct object o;
};
struct rd_qp {
    struct object o;
};
struct rd_connector {
    struct object o;
};
struct rd_listener {
    struct object o;
};

static struct os_addr v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
    return (struct os_addr){ .family = 4, .ip = { a, b, c, d } };
}

void fake_reset(void) {
    SN_ASSERT(fake.adapters == 0 && fake.objects == 0 && sn_list_empty(&pending));
    fake = (struct fake){
        .limits = {
            .max_registration_bytes = 1ull << 40,
            .max_window_bytes = 1ull << 41,
            .max_initiator_sge = 16,
            .max_receive_sge = 15,
            .max_read_sge = 14,
            .max_transfer_bytes = 1u << 30,
            .max_inline_bytes = 256,
            .max_ird = 100,
            .max_ord = 101,
            .max_receive_depth = 4096,
            .max_initiator_depth = 4095,
            .max_srq_depth = 1024,
            .max_cq_depth = 65536,
            .inline_threshold_bytes = 200,
            .large_threshold_bytes = 9000,
            .max_caller_data_bytes = 56,
            .max_callee_data_bytes = 148,
        },
        .address_count = 2,
    };
    fake.addresses[0] = v4(192, 0, 2, 1);
    fake.addresses[1] = (struct os_addr){ .family = 6, .ip = { 0x20, 1, 0xd, 0xb8, [15] = 1 } };
}

static sn_status answer(const char *call) {
    fake.call = call;
    sn_status st = fake.next;
    fake.next = SN_OK;
    return st;
}

/* ---- requests ---- */

static sn_status submit(const char *call, struct object *o, struct rd_async *a) {
    pthread_mutex_lock(&lock);
    sn_status st = answer(call);
    if (st == SN_OK) {
        a->core = o->key;
        sn_list_push_back(&pending, &a->link);
    }
    pthread_mutex_unlock(&lock);
    return st == SN_OK ? SN_PENDING : st;
}

static void cancel(struct object *o) {
    struct sn_list mine;
    sn_list_init(&mine);
    pthread_mutex_lock(&lock);
    SN_LIST_FOR_SAFE(n, tmp, &pending) {
        if (SN_CONTAINER(n, struct rd_async, link)->core != o->key) continue;
        sn_list_remove(n);
        sn_list_push_back(&mine, n);
    }
    pthread_mutex_unlock(&lock);
    struct sn_list *n;
    while ((n = sn_list_pop(&mine)) != NULL) {
        struct rd_async *a = SN_CONTAINER(n, struct rd_async, link);
        a->done(a, SN_E_CANCELED);
    }
}

uint32_t fake_objects(void) {
    pthread_mutex_lock(&lock);
    uint32_t n = fake.objects;
    pthread_mutex_unlock(&lock);
    return n;
}

size_t fake_pending(void) {
    size_t n = 0;
    pthread_mutex_lock(&lock);
    SN_LIST_FOR(it, &pending)
    n++;
    pthread_mutex_unlock(&lock);
    return n;
}

bool fake_complete_oldest(sn_status st) {
    pthread_mutex_lock(&lock);
    struct sn_list *n = sn_list_pop(&pending);
    pthread_mutex_unlock(&lock);
    if (!n) return false;
    struct rd_async *a = SN_CONTAINER(n, struct rd_async, link);
    a->done(a, st);
    return true;
}

/* ---- objects ---- */

static sn_status create(const char *call, size_t size, void *out) {
    static uint64_t next_key;
    pthread_mutex_lock(&lock);
    sn_status st = answer(call);
    struct object *o = st == SN_OK ? os_zalloc(size) : NULL;
    if (o) {
        o->key = ++next_key;
        fake.objects++;
        memcpy(out, &o, sizeof o);
    } else if (st == SN_OK) {
        st = SN_E_NOMEM;
    }
    pthread_mutex_unlock(&lock);
    return st;
}

static void destroy(struct object *o) {
    cancel(o);
    pthread_mutex_lock(&lock);
    fake.objects--;
    pthread_mutex_unlock(&lock);
    os_free(o);
}

#define MAKE(noun)                                                                                 \
    sn_status rd_##noun##_create(struct rd_adapter *ad, struct rd_##noun **out) {                  \
        (void)ad;                                                                                  \
        return create(#noun, sizeof(struct rd_##noun), out);                                       \
    }                                                                                              \
    DESTROY(noun)
#define DESTROY(noun)                                                                              \
    void rd_##noun##_destroy(struct rd_##noun *x) {                                                \
        destroy(&x->o);                                                                            \
    }
MAKE(region)
MAKE(window)
MAKE(connector)
MAKE(listener)
DESTROY(cq)
DESTROY(srq)
DESTROY(qp)

/* ---- adapters ---- */

const struct rd_limits *rd_limits_get(void) {
    return &fake.limits;
}

sn_status rd_adapter_list(struct rd_adapter_entry **out, size_t *count) {
    sn_status st = answer("adapter_list");
    if (st != SN_OK) return st;
    *out = os_zalloc(2 * sizeof **out);
    if (!*out) return SN_E_NOMEM;
    /* A loopback interface first, which a provider should list last. */
    (*out)[0].id = 1;
    (*out)[0].netif.loopback = true;
    (*out)[0].netif.addr_count = fake.loopback ? 1 : 0;
    (*out)[0].netif.addrs[0] = v4(127, 0, 0, 1);
    (*out)[1].id = FAKE_ADAPTER_ID;
    (*out)[1].netif.addr_count = fake.address_count;
    memcpy((*out)[1].netif.addrs, fake.addresses, sizeof fake.addresses);
    *count = 2;
    return SN_OK;
}

void rd_adapter_list_free(struct rd_adapter_entry *list) {
    os_free(list);
}

sn_status rd_adapter_resolve(const struct os_addr *addr, uint64_t *id) {
    sn_status st = answer("adapter_resolve");
    fake.addr = *addr;
    if (st == SN_OK) *id = FAKE_ADAPTER_ID;
    return st;
}

sn_status rd_adapter_open(uint64_t id, struct rd_adapter **out) {
    sn_status st = answer("adapter_open");
    if (st == SN_OK && id != FAKE_ADAPTER_ID) st = SN_E_PARAM;
    if (st != SN_OK) return st;
    *out = os_zalloc(sizeof **out);
    if (!*out) return SN_E_NOMEM;
    (*out)->id = id;
    fake.adapters++;
    return SN_OK;
}

void rd_adapter_close(struct rd_adapter *ad) {
    fake.adapters--;
    os_free(ad);
}

bool rd_adapter_lead_begin(struct rd_adapter *ad) {
    (void)ad;
    return false;
}
void rd_adapter_lead_sleep(struct rd_adapter *ad, uint64_t deadline_ns) {
    (void)ad;
    (void)deadline_ns;
}
bool rd_adapter_lead_work(struct rd_adapter *ad) {
    (void)ad;
    return false;
}
void rd_adapter_lead_wake(struct rd_adapter *ad) {
    (void)ad;
}
void rd_adapter_lead_end(struct rd_adapter *ad, bool others_wait) {
    (void)ad;
    (void)others_wait;
}

uint64_t rd_adapter_id(const struct rd_adapter *ad) {
    return ad->id;
}

sn_status rd_adapter_addrs(struct rd_adapter *ad, struct os_addr *out, size_t *count) {
    (void)ad;
    sn_status st = answer("adapter_addrs");
    if (st != SN_OK) return st;
    size_t room = *count;
    *count = fake.address_count;
    memcpy(out, fake.addresses, SN_MIN(room, *count) * sizeof *out);
    return SN_OK;
}

uint32_t rd_live_adapters(void) {
    return fake.adapters;
}

/* ---- memory ---- */

sn_status rd_region_register(struct rd_region *r, const void *buf, size_t len, uint32_t flags) {
    (void)r;
    fake.buf = buf;
    fake.len = len;
    fake.flags = flags;
    return answer("region_register");
}

sn_status rd_region_deregister(struct rd_region *r) {
    (void)r;
    return answer("region_deregister");
}

uint32_t rd_region_local_token(const struct rd_region *r) {
    return r ? 0x11223344u : 0;
}

uint32_t rd_region_remote_token(const struct rd_region *r) {
    return r ? 0x55667788u : 0;
}

uint32_t rd_window_token(const struct rd_window *w) {
    return w ? 0x99AABBCCu : 0;
}

/* ---- queues ---- */

sn_status rd_cq_create(struct rd_adapter *ad, uint32_t depth, struct rd_cq **out) {
    (void)ad;
    if (depth == 0 || depth > fake.limits.max_cq_depth) return SN_E_PARAM;
    fake.count = depth;
    return create("cq", sizeof(struct rd_cq), out);
}

sn_status rd_cq_resize(struct rd_cq *cq, uint32_t depth) {
    (void)cq;
    fake.count = depth;
    return answer("cq_resize");
}

uint32_t rd_cq_poll(struct rd_cq *cq, struct rd_completion *out, uint32_t max) {
    (void)cq;
    fake.polls++;
    uint32_t n = SN_MIN(max, fake.completion_count);
    memcpy(out, fake.completions, n * sizeof *out);
    memmove(fake.completions, fake.completions + n,
            (fake.completion_count - n) * sizeof *fake.completions);
    fake.completion_count -= n;
    return n;
}

sn_status rd_cq_notify(struct rd_cq *cq, enum rd_notify type, struct rd_async *a) {
    pthread_mutex_lock(&lock);
    fake.type = type;
    pthread_mutex_unlock(&lock);
    if (os_u32_load_acquire(&fake.hold_notify) == 1) {
        a->done(a, SN_OK);
        os_u32_store_release(&fake.hold_notify, 2);
        while (os_u32_load_acquire(&fake.hold_notify) != 0)
            os_thread_yield();
        return SN_PENDING;
    }
    return submit("cq_notify", &cq->o, a);
}

void rd_cq_cancel(struct rd_cq *cq) {
    cancel(&cq->o);
}

sn_status rd_srq_create(struct rd_adapter *ad, uint32_t depth, uint32_t max_sge,
                        uint32_t notify_threshold, struct rd_srq **out) {
    (void)ad;
    fake.count = depth;
    fake.flags = max_sge;
    fake.type = notify_threshold;
    return create("srq", sizeof(struct rd_srq), out);
}

sn_status rd_srq_modify(struct rd_srq *srq, uint32_t depth, uint32_t notify_threshold) {
    (void)srq;
    fake.count = depth;
    fake.type = notify_threshold;
    return answer("srq_modify");
}

sn_status rd_srq_notify(struct rd_srq *srq, struct rd_async *a) {
    return submit("srq_notify", &srq->o, a);
}

void rd_srq_cancel(struct rd_srq *srq) {
    cancel(&srq->o);
}

static sn_status post(const char *call, void *context, const struct tp_sge *sge, uint32_t count,
                      uint32_t flags) {
    fake.context = context;
    fake.sge = sge;
    fake.count = count;
    fake.flags = flags;
    return answer(call);
}

sn_status rd_srq_post(struct rd_srq *srq, void *context, const struct tp_sge *sge, uint32_t count) {
    (void)srq;
    return post("srq_post", context, sge, count, 0);
}

sn_status rd_qp_create(struct rd_adapter *ad, const struct rd_qp_attr *attr,
                       enum rd_qp_attr_fault *fault, struct rd_qp **out) {
    (void)ad;
    fake.attr = *attr;
    *fault = fake.next == SN_E_PARAM ? fake.fault : RD_QP_ATTR_OK;
    return create("qp", sizeof(struct rd_qp), out);
}

void rd_qp_flush(struct rd_qp *qp) {
    (void)qp;
    fake.call = "qp_flush";
}

sn_status rd_qp_send(struct rd_qp *qp, void *context, const struct tp_sge *sge, uint32_t count,
                     uint32_t flags, uint32_t invalidate_token) {
    (void)qp;
    fake.remote_token = invalidate_token;
    return post("qp_send", context, sge, count, flags);
}

sn_status rd_qp_receive(struct rd_qp *qp, void *context, const struct tp_sge *sge, uint32_t count) {
    (void)qp;
    return post("qp_receive", context, sge, count, 0);
}

sn_status rd_qp_write(struct rd_qp *qp, void *context, const struct tp_sge *sge, uint32_t count,
                      uint64_t remote_addr, uint32_t remote_token, uint32_t flags) {
    (void)qp;
    fake.remote_addr = remote_addr;
    fake.remote_token = remote_token;
    return post("qp_write", context, sge, count, flags);
}

sn_status rd_qp_read(struct rd_qp *qp, void *context, const struct tp_sge *sge, uint32_t count,
                     uint64_t remote_addr, uint32_t remote_token, uint32_t flags) {
    (void)qp;
    fake.remote_addr = remote_addr;
    fake.remote_token = remote_token;
    return post("qp_read", context, sge, count, flags);
}

sn_status rd_qp_bind(struct rd_qp *qp, void *context, struct rd_region *r, struct rd_window *w,
                     const void *buf, size_t len, uint32_t rights, uint32_t flags) {
    (void)qp;
    (void)r;
    (void)w;
    fake.buf = buf;
    fake.len = len;
    fake.rights = rights;
    return post("qp_bind", context, NULL, 0, flags);
}

sn_status rd_qp_invalidate(struct rd_qp *qp, void *context, struct rd_window *w, uint32_t flags) {
    (void)qp;
    (void)w;
    return post("qp_invalidate", context, NULL, 0, flags);
}

const char *rd_qp_transport(const struct rd_qp *qp) {
    (void)qp;
    return "none";
}

const char *rd_transports_text(void) {
    return "here there";
}

/* ---- counters: of each object other ones ---- */

uint32_t rd_adapter_counters_get(const struct rd_adapter *ad, struct rd_counter *out) {
    (void)ad;
    out[0] = (struct rd_counter){ "regions", "regions", "registrations made", UINT64_MAX };
    return 1;
}

uint32_t rd_qp_counters_get(const struct rd_qp *qp, struct rd_counter *out) {
    (void)qp;
    out[0] = (struct rd_counter){ "posted", "requests", "initiator requests posted", 5 };
    out[1] = (struct rd_counter){ "failed", "requests", "completed with an error", 0 };
    return 2;
}

uint32_t rd_cq_counters_get(const struct rd_cq *cq, struct rd_counter *out) {
    (void)cq;
    out[0] = (struct rd_counter){ "entries", "entries", "completions queued", 7 };
    return 1;
}

/* ---- connections ---- */

sn_status rd_connector_bind(struct rd_connector *c, const struct os_addr *local) {
    (void)c;
    fake.addr = *local;
    return answer("connector_bind");
}

static void keep_setup(uint32_t ird, uint32_t ord, const void *pd, uint32_t pd_len) {
    fake.ird = ird;
    fake.ord = ord;
    fake.pd_len = pd_len;
    if (pd_len > 0) memcpy(fake.pd, pd, pd_len);
}

sn_status rd_connector_connect(struct rd_connector *c, struct rd_qp *qp, const struct os_addr *peer,
                               uint32_t ird, uint32_t ord, const void *pd, uint32_t pd_len,
                               struct rd_async *a) {
    (void)qp;
    fake.addr = *peer;
    keep_setup(ird, ord, pd, pd_len);
    return submit("connector_connect", &c->o, a);
}

sn_status rd_connector_complete(struct rd_connector *c, struct rd_async *a) {
    return submit("connector_complete", &c->o, a);
}

sn_status rd_connector_accept(struct rd_connector *c, struct rd_qp *qp, uint32_t ird, uint32_t ord,
                              const void *pd, uint32_t pd_len, struct rd_async *a) {
    (void)qp;
    keep_setup(ird, ord, pd, pd_len);
    return submit("connector_accept", &c->o, a);
}

sn_status rd_connector_reject(struct rd_connector *c, const void *pd, uint32_t pd_len) {
    (void)c;
    keep_setup(0, 0, pd, pd_len);
    return answer("connector_reject");
}

sn_status rd_connector_read_limits(struct rd_connector *c, uint32_t *inbound, uint32_t *outbound) {
    (void)c;
    *inbound = 3;
    *outbound = 4;
    return answer("connector_read_limits");
}

sn_status rd_connector_private_data(struct rd_connector *c, void *buf, uint32_t *len) {
    (void)c;
    sn_status st = answer("connector_private_data");
    if (st != SN_OK) return st;
    uint32_t room = *len;
    *len = fake.peer_data_len;
    memcpy(buf, fake.peer_data, SN_MIN(room, *len));
    return room < *len ? SN_E_BUFFER_SMALL : SN_OK;
}

sn_status rd_connector_local_addr(struct rd_connector *c, struct os_addr *out) {
    (void)c;
    *out = fake.addresses[0];
    return answer("connector_local_addr");
}

sn_status rd_connector_peer_addr(struct rd_connector *c, struct os_addr *out) {
    (void)c;
    *out = fake.addresses[1];
    return answer("connector_peer_addr");
}

sn_status rd_connector_notify_disconnect(struct rd_connector *c, struct rd_async *a) {
    return submit("connector_notify_disconnect", &c->o, a);
}

sn_status rd_connector_disconnect(struct rd_connector *c, struct rd_async *a) {
    return submit("connector_disconnect", &c->o, a);
}

void rd_connector_cancel(struct rd_connector *c) {
    cancel(&c->o);
}

sn_status rd_listener_bind(struct rd_listener *l, const struct os_addr *local) {
    (void)l;
    fake.addr = *local;
    return answer("listener_bind");
}

sn_status rd_listener_listen(struct rd_listener *l, uint32_t backlog) {
    (void)l;
    fake.count = backlog;
    return answer("listener_listen");
}

sn_status rd_listener_local_addr(struct rd_listener *l, struct os_addr *out) {
    (void)l;
    *out = fake.addresses[0];
    return answer("listener_local_addr");
}

sn_status rd_listener_get_request(struct rd_listener *l, struct rd_connector *c,
                                  struct rd_async *a) {
    (void)c;
    return submit("listener_get_request", &l->o, a);
}

void rd_listener_cancel(struct rd_listener *l) {
    cancel(&l->o);
}
