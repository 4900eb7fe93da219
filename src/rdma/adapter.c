/* SPDX-License-Identifier: MIT
 *
 * An adapter id is a hash of the interface's name and hardware address, so that it is the same in
 * every process and after a reboot. Freeing an adapter joins its engine thread; when the last
 * reference goes on that very thread, a short-lived thread does it.
 */
#include "rdma/adapter.h"
#include <string.h>
#include "base/log.h"
#include "os/prim/fault.h"
#include "os/prim/thread.h"

static os_atomic_u32 live_adapters;

uint32_t rd_live_adapters(void) {
    return os_u32_load_acquire(&live_adapters);
}

/* ---- the interfaces ---- */

/* FNV-1a, 64 bits. */
static uint64_t hash_bytes(uint64_t h, const void *data, size_t len) {
    const uint8_t *p = data;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3ull;
    return h;
}

static uint64_t netif_id(const struct os_netif *nif) {
    uint64_t h = hash_bytes(0xcbf29ce484222325ull, nif->name, strlen(nif->name));
    uint32_t mac_len = SN_MIN(nif->mac_len, (uint32_t)sizeof nif->mac);
    h = hash_bytes(h, nif->mac, mac_len);
    return h ? h : 1;
}

sn_status rd_adapter_list(struct rd_adapter_entry **out, size_t *count) {
    struct os_netif *netifs = NULL;
    size_t n = 0;
    sn_status st = os_netif_list(&netifs, &n);
    if (st != SN_OK) return st;
    struct rd_adapter_entry *list = os_zalloc((n ? n : 1) * sizeof *list);
    if (list) {
        for (size_t i = 0; i < n; i++) {
            list[i].id = netif_id(&netifs[i]);
            list[i].netif = netifs[i];
        }
        *out = list;
        *count = n;
    }
    os_netif_free(netifs);
    return list ? SN_OK : SN_E_NOMEM;
}

void rd_adapter_list_free(struct rd_adapter_entry *list) {
    os_free(list);
}

static bool netif_has(const struct os_netif *nif, const struct os_addr *addr) {
    for (uint32_t i = 0; i < nif->addr_count; i++)
        if (os_addr_same_ip(&nif->addrs[i], addr)) return true;
    /* The whole of 127/8 is the loopback interface's, not only the address it shows. */
    return nif->loopback && os_addr_is_loopback(addr) && addr->family == 4;
}

sn_status rd_adapter_resolve(const struct os_addr *addr, uint64_t *id) {
    struct os_netif *netifs;
    size_t n;
    sn_status st = os_netif_list(&netifs, &n);
    if (st != SN_OK) return st;
    st = SN_E_ADDR_INVALID;
    for (size_t i = 0; i < n && st != SN_OK; i++) {
        if (!netif_has(&netifs[i], addr)) continue;
        *id = netif_id(&netifs[i]);
        st = SN_OK;
    }
    os_netif_free(netifs);
    return st;
}

/* The interface of an adapter as it is now; SN_E_REMOVED if it is gone. */
static sn_status find_netif(uint64_t id, struct os_netif *out) {
    struct os_netif *netifs;
    size_t n;
    sn_status st = os_netif_list(&netifs, &n);
    if (st != SN_OK) return st;
    st = SN_E_REMOVED;
    for (size_t i = 0; i < n && st != SN_OK; i++) {
        if (netif_id(&netifs[i]) != id) continue;
        *out = netifs[i];
        st = SN_OK;
    }
    os_netif_free(netifs);
    return st;
}

/* struct os_netif is too large for a caller's stack. */
static sn_status find_netif_alloc(uint64_t id, struct os_netif **out) {
    struct os_netif *nif = os_zalloc(sizeof *nif);
    if (!nif) return SN_E_NOMEM;
    sn_status st = find_netif(id, nif);
    if (st == SN_OK)
        *out = nif;
    else
        os_free(nif);
    return st;
}

sn_status rd_adapter_addrs(struct rd_adapter *ad, struct os_addr *out, size_t *count) {
    struct os_netif *nif;
    sn_status st = find_netif_alloc(ad->id, &nif);
    if (st == SN_E_REMOVED) { /* all its addresses went away */
        *count = 0;
        return SN_OK;
    }
    if (st != SN_OK) return st;
    size_t room = *count;
    *count = nif->addr_count;
    if (room < nif->addr_count)
        st = SN_E_BUFFER_SMALL;
    else
        memcpy(out, nif->addrs, nif->addr_count * sizeof *out);
    os_free(nif);
    return st;
}

sn_status rd_adapter_check_addr(struct rd_adapter *ad, const struct os_addr *addr) {
    struct os_netif *nif;
    sn_status st = find_netif_alloc(ad->id, &nif);
    if (st == SN_E_NOMEM || st == SN_E_RESOURCES) return st;
    if (st != SN_OK) return SN_E_ADDR_INVALID; /* the interface is gone, and its addresses */
    st = netif_has(nif, addr) ? SN_OK : SN_E_ADDR_INVALID;
    os_free(nif);
    return st;
}

/* ---- the end of an adapter ---- */

static void free_adapter(void *arg) {
    struct rd_adapter *ad = arg;
    if (ad->eng) {
        tp_timer_cancel(&ad->job_timer);
        tp_engine_destroy(ad->eng);
    }
    rd_table_fini(&ad->table);
    rd_iomap_fini(&ad->io);
    os_lock_fini(&ad->job_lock);
    os_free(ad);
    os_u32_fetch_sub_acq_rel(&live_adapters, 1);
}

/* For the engine thread, which cannot join itself. */
static void free_elsewhere(struct rd_adapter *ad) {
    os_thread t;
    sn_status st = os_thread_start(&t, "softnd-close", free_adapter, ad);
    if (st == SN_OK)
        os_thread_detach(t);
    else
        SN_LOG(SN_LOG_ERROR, "adapter %s: not freed, no thread: %s", ad->name, sn_status_text(st));
}

/* ---- deferred jobs ---- */

void rd_job_init(struct rd_job *job, void (*run)(struct rd_job *job)) {
    sn_list_init(&job->link);
    job->run = run;
}

bool rd_job_post(struct rd_adapter *ad, struct rd_job *job) {
    os_lock_enter(&ad->job_lock);
    bool fresh = sn_list_empty(&job->link);
    if (fresh) sn_list_push_back(&ad->jobs, &job->link);
    os_lock_leave(&ad->job_lock);
    if (fresh) tp_timer_arm(&ad->job_timer, 0);
    return fresh;
}

static struct rd_job *pop_job(struct rd_adapter *ad) {
    os_lock_enter(&ad->job_lock);
    struct sn_list *it = sn_list_pop(&ad->jobs);
    os_lock_leave(&ad->job_lock);
    return it ? SN_CONTAINER(it, struct rd_job, link) : NULL;
}

static void run_jobs(struct tp_timer *timer) {
    struct rd_adapter *ad = SN_CONTAINER(timer, struct rd_adapter, job_timer);
    rd_adapter_get(ad);
    for (struct rd_job *job; (job = pop_job(ad)) != NULL;)
        job->run(job);
    if (os_ref_put(&ad->refs)) free_elsewhere(ad);
}

/* ---- open and close ---- */

void rd_adapter_get(struct rd_adapter *ad) {
    os_ref_get(&ad->refs);
}

void rd_adapter_put(struct rd_adapter *ad) {
    if (os_ref_put(&ad->refs)) free_adapter(ad);
}

sn_status rd_adapter_open(uint64_t id, struct rd_adapter **out) {
    struct os_netif *nif;
    sn_status st = find_netif_alloc(id, &nif);
    if (st != SN_OK) return st == SN_E_REMOVED ? SN_E_PARAM : st;
    struct rd_adapter *ad = os_zalloc(sizeof *ad);
    if (!ad) {
        os_free(nif);
        return SN_E_NOMEM;
    }
    os_ref_init(&ad->refs);
    ad->id = id;
    memcpy(ad->name, nif->name, sizeof ad->name);
    os_free(nif);
    os_lock_init(&ad->job_lock, OS_RANK_LEAF);
    sn_list_init(&ad->jobs);
    os_u32_fetch_add_acq_rel(&live_adapters, 1);
    rd_iomap_init(&ad->io);
    st = rd_table_init(&ad->table, &ad->counters);
    ad->table.io = &ad->io;
    if (st == SN_OK) st = tp_engine_create(&ad->eng);
    if (st != SN_OK) {
        free_adapter(ad);
        return st;
    }
    tp_timer_init(&ad->job_timer, ad->eng, run_jobs);
    *out = ad;
    return SN_OK;
}

void rd_adapter_close(struct rd_adapter *ad) {
    rd_adapter_put(ad);
}

bool rd_adapter_lead_begin(struct rd_adapter *ad) {
    return tp_engine_lead_begin(ad->eng);
}
void rd_adapter_lead_sleep(struct rd_adapter *ad, uint64_t deadline_ns) {
    tp_engine_lead_sleep(ad->eng, deadline_ns);
}
bool rd_adapter_lead_work(struct rd_adapter *ad) {
    return tp_engine_lead_work(ad->eng);
}
void rd_adapter_lead_wake(struct rd_adapter *ad) {
    tp_engine_lead_wake(ad->eng);
}
void rd_adapter_lead_end(struct rd_adapter *ad, bool others_wait) {
    tp_engine_lead_end(ad->eng, others_wait);
}

uint64_t rd_adapter_id(const struct rd_adapter *ad) {
    return ad->id;
}

/* ---- counters ---- */

uint32_t rd_adapter_counters_get(const struct rd_adapter *ad, struct rd_counter *out) {
    uint32_t n = 0;
#define FILL(field, unit_text, help_text)                                                          \
    out[n++] = (struct rd_counter){ #field, unit_text, help_text,                                  \
                                    os_u64_load_relaxed(&ad->counters.field) };
    RD_ADAPTER_COUNTERS(FILL)
#undef FILL
    return n;
}
