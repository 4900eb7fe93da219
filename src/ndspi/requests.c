/* SPDX-License-Identifier: MIT
 * requests.c - the record of pending overlapped requests.
 *
 * The table is split into shards by the address of the OVERLAPPED; a shard's lock makes "is it
 * pending" and "what does it say" one question: a request leaves the table and its status appears
 * in the OVERLAPPED inside one critical section. Two requests may be pending on one OVERLAPPED;
 * both are in the table, and it is pending until both are done.
 *
 * Cancelling one request. The core cancels all requests of an object, not one. So the others are
 * taken back when they come out cancelled and are started again, in their order, which has no
 * visible effect: nothing that they wait for is consumed by a cancellation.
 */
#include "ndspi/overlapped.h"
#include "ndspi/status.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/thread.h"

#define SHARD_COUNT 128u
/* Requests kept for use again per object; more come and go with the allocator. */
#define SPARE_MAX 4u
/* Requests pending per object. A client that asks again and again without looking (some do) must
 * meet a limit before memory ends. */
#define PENDING_MAX 65536u

struct shard {
    os_lock lock;        /* rank REQUEST */
    os_cond done;        /* [lock] a request left */
    struct sn_list list; /* [lock] pending requests, oldest first */
    uint32_t waiters;    /* [lock] threads that wait on done */
};

/* A thread in GetOverlappedResult, on its stack. */
struct ndspi_waiter {
    void *sleeper;
    bool ended; /* [shard lock] the request left */
};

static struct shard shards[SHARD_COUNT];
static os_once shards_once = OS_ONCE_INIT;
static os_atomic_u64 next_seq; /* [atomic] */

static void init_shards(void) {
    for (unsigned i = 0; i < SHARD_COUNT; i++) {
        os_lock_init(&shards[i].lock, OS_RANK_REQUEST);
        os_cond_init(&shards[i].done);
        sn_list_init(&shards[i].list);
    }
}

static struct shard *shard_of(const OVERLAPPED *ov) {
    uint64_t key = (uint64_t)(uintptr_t)ov * 0x9E3779B97F4A7C15ull;
    return &shards[key >> 57];
}
_Static_assert(SHARD_COUNT == 1u << (64 - 57), "shard_of takes the upper 7 bits");

static struct ndspi_request *request_at(struct sn_list *link) {
    return SN_CONTAINER(link, struct ndspi_request, link);
}

static struct ndspi_request *request_of(struct sn_list *async_link) {
    return SN_CONTAINER(async_link, struct ndspi_request, async.link);
}

/* ---- objects ---- */

void *ndspi_overlapped_create(size_t size, const struct ndspi_class *cls, const void *vtbl,
                              struct ndspi_adapter *adapter, HANDLE handle, HRESULT *hr) {
    os_once_run(&shards_once, init_shards);
    struct ndspi_file *file = ndspi_file_open(handle);
    if (!file) {
        *hr = ND_INVALID_HANDLE;
        return NULL;
    }
    struct ndspi_overlapped *o = ndspi_object_create(size, cls, vtbl, adapter);
    if (!o) {
        ndspi_file_close(file);
        *hr = ND_NO_MEMORY;
        return NULL;
    }
    o->file = file;
    os_lock_init(&o->cancel_lock, OS_RANK_MODULE);
    os_lock_init(&o->lock, OS_RANK_REQUEST);
    sn_list_init(&o->spare);
    sn_list_init(&o->restart);
    *hr = ND_SUCCESS;
    return o;
}

void ndspi_overlapped_fini(struct ndspi_overlapped *o) {
    struct sn_list *n;
    while ((n = sn_list_pop(&o->spare)) != NULL)
        os_free(request_of(n));
    os_lock_fini(&o->lock);
    os_lock_fini(&o->cancel_lock);
    ndspi_file_close(o->file);
}

/* ---- memory of requests ---- */

static struct ndspi_request *take_request(struct ndspi_overlapped *o) {
    struct ndspi_request *r = NULL;
    os_lock_enter(&o->lock);
    bool room = o->pending_count < PENDING_MAX;
    if (room) {
        struct sn_list *n = sn_list_pop(&o->spare);
        if (n) {
            o->spare_count--;
            r = request_of(n);
        }
        o->pending_count++;
    }
    os_lock_leave(&o->lock);
    if (!room) return NULL;
    if (r) {
        *r = (struct ndspi_request){ 0 };
        return r;
    }
    r = os_zalloc(sizeof *r);
    if (!r) {
        os_lock_enter(&o->lock);
        o->pending_count--;
        os_lock_leave(&o->lock);
    }
    return r;
}

/* The request is not pending (any more) and in no list. Drops its references last, which may free
 * the owner. */
static void give_request_back(struct ndspi_request *r) {
    struct ndspi_overlapped *o = r->owner;
    struct ndspi_object *object = r->object;
    os_lock_enter(&o->lock);
    o->pending_count--;
    bool keep = o->spare_count < SPARE_MAX;
    if (keep) {
        o->spare_count++;
        sn_list_push_back(&o->spare, &r->async.link);
    }
    os_lock_leave(&o->lock);
    if (!keep) os_free(r);
    if (object) ndspi_object_put(object);
    ndspi_object_put(&o->obj);
}

/* ---- begin and end ---- */

/* Takes the request off the table. Who is to be woken by it, or NULL. */
static void *leave_locked(struct ndspi_request *r) {
    struct ndspi_waiter *w = r->waiter;
    sn_list_remove(&r->link);
    r->waiter = NULL;
    if (w) w->ended = true;
    return w ? w->sleeper : NULL;
}

/* Leaves the table and tells the application, in one step for those who ask. */
static void complete(struct ndspi_request *r, HRESULT hr) {
    struct shard *s = shard_of(r->ov);
    os_lock_enter(&s->lock);
    void *sleeper = leave_locked(r);
    void *held = ndspi_file_complete(r->owner->file, r->ov, r->slot, hr);
    bool waited_for = s->waiters > 0;
    os_lock_leave(&s->lock);
    if (waited_for) os_cond_broadcast(&s->done);
    give_request_back(r);
    ndspi_file_wake(held); /* last: it takes the same locks as soon as it runs */
    ndspi_file_wake(sleeper);
}

/* The core is done with the request. */
static void on_done(struct rd_async *a, sn_status st) {
    struct ndspi_request *r = SN_CONTAINER(a, struct ndspi_request, async);
    struct ndspi_overlapped *o = r->owner;
    if (st == SN_E_CANCELED && r->start && os_u32_load_acquire(&o->choosing)) {
        struct shard *s = shard_of(r->ov);
        os_lock_enter(&s->lock);
        bool chosen = r->chosen;
        os_lock_leave(&s->lock);
        if (!chosen) {
            os_lock_enter(&o->lock);
            sn_list_push_back(&o->restart, &r->async.link);
            os_lock_leave(&o->lock);
            return;
        }
    }
    complete(r, ndspi_status(st));
}

HRESULT ndspi_request_begin(struct ndspi_overlapped *o, OVERLAPPED *ov,
                            struct ndspi_request **out) {
    if (!ndspi_object_enter(&o->obj)) return ND_INVALID_DEVICE_STATE;
    struct ndspi_request *r = take_request(o);
    if (!r) {
        ndspi_object_leave(&o->obj);
        return ND_INSUFFICIENT_RESOURCES;
    }
    ndspi_object_get(&o->obj);
    r->owner = o;
    r->ov = ov;
    r->async.done = on_done;
    sn_list_init(&r->async.link);
    sn_list_init(&r->link);

    struct shard *s = shard_of(ov);
    os_lock_enter(&s->lock);
    bool begun = ndspi_file_begin(o->file, ov, &r->slot);
    if (begun) {
        r->seq = os_u64_fetch_add_relaxed(&next_seq, 1);
        sn_list_push_back(&s->list, &r->link);
    }
    os_lock_leave(&s->lock);
    if (begun) {
        *out = r;
        return ND_PENDING;
    }
    give_request_back(r);
    ndspi_object_leave(&o->obj);
    return ND_INSUFFICIENT_RESOURCES;
}

HRESULT ndspi_request_refuse(struct ndspi_request *r, HRESULT hr) {
    struct ndspi_overlapped *o = r->owner;
    struct shard *s = shard_of(r->ov);
    os_lock_enter(&s->lock);
    void *sleeper = leave_locked(r);
    ndspi_file_refuse(o->file, r->ov, r->slot, hr);
    if (s->waiters > 0) os_cond_broadcast(&s->done);
    os_lock_leave(&s->lock);
    ndspi_file_wake(sleeper);
    give_request_back(r);
    ndspi_object_leave(&o->obj);
    return hr;
}

HRESULT ndspi_request_finish(struct ndspi_request *r, HRESULT hr) {
    struct ndspi_overlapped *o = r->owner;
    complete(r, hr);
    ndspi_object_leave(&o->obj);
    return ND_PENDING;
}

HRESULT ndspi_request_started(struct ndspi_overlapped *owner, struct ndspi_request *r,
                              sn_status st) {
    if (st == SN_OK) return ndspi_request_finish(r, ND_SUCCESS);
    if (st != SN_PENDING) return ndspi_request_refuse(r, ndspi_status(st));
    ndspi_object_leave(&owner->obj); /* r may be gone already */
    return ND_PENDING;
}

/* ---- cancellation ---- */

HRESULT ndspi_overlapped_cancel(struct ndspi_overlapped *o) {
    if (!o->obj.cls->cancel || !ndspi_object_enter(&o->obj)) return ND_SUCCESS;
    os_lock_enter(&o->cancel_lock);
    o->obj.cls->cancel(&o->obj);
    os_lock_leave(&o->cancel_lock);
    ndspi_object_leave(&o->obj);
    return ND_SUCCESS;
}

static struct ndspi_request *pop_restart(struct ndspi_overlapped *o) {
    os_lock_enter(&o->lock);
    struct sn_list *n = sn_list_pop(&o->restart);
    os_lock_leave(&o->lock);
    return n ? request_of(n) : NULL;
}

/* Cancels the chosen requests of an object. Those that wait in the core beside them come out
 * cancelled as well, are caught in on_done and start again here. */
static void cancel_chosen(struct ndspi_overlapped *o) {
    if (!o->obj.cls->cancel || !ndspi_object_enter(&o->obj)) return;
    os_lock_enter(&o->cancel_lock);
    os_u32_store_release(&o->choosing, 1);
    o->obj.cls->cancel(&o->obj);
    os_u32_store_release(&o->choosing, 0);
    struct ndspi_request *r;
    while ((r = pop_restart(o)) != NULL) {
        sn_status st = r->start(r);
        if (st != SN_PENDING) complete(r, ndspi_status(st));
    }
    os_lock_leave(&o->cancel_lock);
    ndspi_object_leave(&o->obj);
}

/* Chooses the oldest request of a shard that matches, was issued before `end` and is older than
 * *best; takes a reference to its owner. */
static void choose_in_shard(struct shard *s, struct ndspi_file *f, const OVERLAPPED *ov,
                            uint64_t end, struct ndspi_request **best, uint64_t *best_seq) {
    SN_LIST_FOR(n, &s->list) {
        struct ndspi_request *r = request_at(n);
        if (r->owner->file != f || (ov && r->ov != ov) || r->chosen) continue;
        if (r->seq >= end || r->seq >= *best_seq) continue;
        *best = r;
        *best_seq = r->seq;
    }
}

/* The owner (with a reference) of the oldest request not yet chosen; NULL when there is none. */
static struct ndspi_overlapped *choose_next(struct ndspi_file *f, OVERLAPPED *ov, uint64_t end) {
    unsigned first = ov ? (unsigned)(shard_of(ov) - shards) : 0;
    unsigned last = ov ? first : SHARD_COUNT - 1;
    for (;;) {
        uint64_t seq = UINT64_MAX;
        unsigned where = 0;
        for (unsigned i = first; i <= last; i++) {
            struct ndspi_request *best = NULL;
            os_lock_enter(&shards[i].lock);
            choose_in_shard(&shards[i], f, ov, end, &best, &seq);
            os_lock_leave(&shards[i].lock);
            if (best) where = i;
        }
        if (seq == UINT64_MAX) return NULL;
        /* It may have completed meanwhile: then look again. */
        struct ndspi_overlapped *owner = NULL;
        struct shard *s = &shards[where];
        os_lock_enter(&s->lock);
        SN_LIST_FOR(n, &s->list) {
            struct ndspi_request *r = request_at(n);
            if (r->seq != seq) continue;
            r->chosen = true;
            owner = r->owner;
            ndspi_object_get(&owner->obj);
        }
        os_lock_leave(&s->lock);
        if (owner) return owner;
    }
}

bool ndspi_file_cancel(struct ndspi_file *f, OVERLAPPED *ov) {
    os_once_run(&shards_once, init_shards);
    uint64_t end = os_u64_load_relaxed(&next_seq);
    bool any = false;
    struct ndspi_overlapped *o;
    while ((o = choose_next(f, ov, end)) != NULL) {
        any = true;
        if (ov)
            cancel_chosen(o);
        else
            (void)ndspi_overlapped_cancel(o); /* all its requests are on this file */
        ndspi_object_put(&o->obj);
    }
    return any;
}

/* ---- results ---- */

static struct ndspi_request *find_pending(const struct shard *s, const OVERLAPPED *ov) {
    SN_LIST_FOR(n, &s->list)
    if (request_at(n)->ov == ov) return request_at(n);
    return NULL;
}

/* Waits until the request leaves, or another one of the shard does. The lock is held before and
 * after. */
static void sleep_for(struct shard *s, struct ndspi_request *r) {
    struct ndspi_waiter w = { NULL, false };
    if (!r->waiter) w.sleeper = ndspi_sleeper_acquire();
    if (!w.sleeper) {
        s->waiters++;
        (void)os_cond_wait(&s->done, &s->lock, OS_FOREVER);
        s->waiters--;
        return;
    }
    r->waiter = &w;
    while (!w.ended) {
        os_lock_leave(&s->lock);
        ndspi_sleeper_sleep(w.sleeper);
        os_lock_enter(&s->lock);
    }
    ndspi_sleeper_release(w.sleeper);
}

HRESULT ndspi_overlapped_result(OVERLAPPED *ov, BOOL wait) {
    if (!ov) return ndspi_bad_param(1);
    os_once_run(&shards_once, init_shards);
    ndspi_module_hold(); /* this thread is in our code, whatever becomes of the object */
    struct shard *s = shard_of(ov);
    os_lock_enter(&s->lock);
    struct ndspi_request *pending;
    while ((pending = find_pending(s, ov)) != NULL && wait)
        sleep_for(s, pending);
    HRESULT hr = pending ? ND_PENDING : ndspi_file_result(ov);
    os_lock_leave(&s->lock);
    ndspi_module_drop();
    /* Marked as pending, but not by us: nobody would ever end this wait. */
    if (wait && hr == ND_PENDING) return ndspi_bad_param(1);
    return hr;
}
