/* SPDX-License-Identifier: MIT
 *
 * Notifications follow the numbering of entries: P the newest, S the newest that is solicited or
 * failed, C the last one taken, L what P was when a notification last fired. A new request fires
 * at once if the entry it waits for is newer than both C and L; otherwise it is queued. An entry
 * fires what is queued for its kind. A batch (rd_cq_enter .. rd_cq_leave) fires once, at its end,
 * so that a flush is one event.
 *
 * When the ring runs empty its positions start over at 0: a queue that is drained as it fills stays
 * in a few cache lines, and a deep one costs only the pages that were really needed.
 */
#include "rdma/cq.h"
#include <string.h>
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"
#include "rdma/qp.h"

static uint32_t capacity_of(uint32_t depth) {
    return 2 * depth + RD_CQ_SLACK;
}
static size_t ring_bytes(uint32_t capacity) {
    return (size_t)capacity * sizeof(struct rd_cq_entry);
}
static bool depth_legal(uint32_t depth) {
    return depth >= 1 && depth <= rd_limits_get()->max_cq_depth;
}

/* ---- the end after an overrun ---- */

static struct rd_qp *first_member(struct rd_cq *cq) {
    struct rd_qp *qp = NULL;
    os_lock_enter(&cq->lock);
    if (!sn_list_empty(&cq->members)) {
        qp = SN_CONTAINER(cq->members.next, struct rd_cq_member, link)->qp;
        rd_qp_get(qp);
    }
    os_lock_leave(&cq->lock);
    return qp;
}

static void run_overrun(struct rd_job *job) {
    struct rd_cq *cq = SN_CONTAINER(job, struct rd_cq, overrun_job);
    for (struct rd_qp *qp; (qp = first_member(cq)) != NULL;) {
        rd_qp_break(qp); /* takes it off the list */
        rd_qp_put(qp);
    }
    rd_cq_put(cq);
}

static void fire_one_locked(struct rd_cq *cq, struct rd_async *a, sn_status st, struct rd_fire *f) {
    if (a == &cq->arm) cq->arm_state = RD_ARM_FIRING;
    rd_fire_add(f, &cq->busy, a, st);
}

void rd_cq_overrun_locked(struct rd_cq *cq, struct rd_fire *f) {
    if (os_u32_load_relaxed(&cq->failed)) return;
    os_u32_store_release(&cq->failed, 1);
    rd_count_any(&cq->ad->counters.cq_overruns, 1);
    SN_LIST_FOR_SAFE(it, tmp, &cq->pending)
    fire_one_locked(cq, SN_CONTAINER(it, struct rd_async, link), SN_E_OVERRUN, f);
    memset(cq->armed, 0, sizeof cq->armed);
    os_ref_get(&cq->refs); /* the job's */
    rd_job_post(cq->ad, &cq->overrun_job);
}

static void arm_fired(struct rd_async *a, sn_status st);

/* ---- create, destroy, resize ---- */

sn_status rd_cq_create(struct rd_adapter *ad, uint32_t depth, struct rd_cq **out) {
    if (!depth_legal(depth)) return SN_E_PARAM;
    struct rd_cq *cq = os_zalloc(sizeof *cq);
    if (!cq) return SN_E_NOMEM;
    cq->depth = depth;
    cq->capacity = capacity_of(depth);
    cq->ring = os_pages_alloc(ring_bytes(cq->capacity));
    if (!cq->ring) {
        os_free(cq);
        return SN_E_NOMEM;
    }
    os_ref_init(&cq->refs);
    os_lock_init(&cq->poll_lock, OS_RANK_POLL);
    os_lock_init(&cq->lock, OS_RANK_CQ);
    sn_list_init(&cq->pending);
    sn_list_init(&cq->members);
    sn_list_init(&cq->due);
    rd_job_init(&cq->overrun_job, run_overrun);
    sn_list_init(&cq->arm.link);
    cq->arm.done = arm_fired;
    cq->arm_again = -1;
    rd_adapter_get(ad);
    cq->ad = ad;
    *out = cq;
    return SN_OK;
}

void rd_cq_get(struct rd_cq *cq) {
    os_ref_get(&cq->refs);
}

void rd_cq_put(struct rd_cq *cq) {
    if (!os_ref_put(&cq->refs)) return;
    struct rd_adapter *ad = cq->ad;
    os_pages_free(cq->ring, ring_bytes(cq->capacity));
    os_lock_fini(&cq->lock);
    os_lock_fini(&cq->poll_lock);
    os_free(cq);
    rd_adapter_put(ad);
}

void rd_cq_destroy(struct rd_cq *cq) {
    os_lock_enter(&cq->lock);
    cq->dead = true;
    os_lock_leave(&cq->lock);
    rd_cq_cancel(cq);
    rd_busy_wait(&cq->busy);
    os_lock_enter(&cq->poll_lock);
    tp_engine_cool(cq->ad->eng, &cq->hot);
    os_lock_leave(&cq->poll_lock);
    rd_cq_put(cq);
}

/* Copies the queued entries, oldest first, to the start of a new ring. */
static void move_entries_locked(struct rd_cq *cq, struct rd_cq_entry *ring, uint32_t capacity) {
    uint32_t n = os_u32_load_relaxed(&cq->queued);
    uint32_t to_end = SN_MIN(n, cq->capacity - cq->head);
    memcpy(ring, cq->ring + cq->head, to_end * sizeof *ring);
    memcpy(ring + to_end, cq->ring, (n - to_end) * sizeof *ring);
    cq->ring = ring;
    cq->capacity = capacity;
    cq->head = 0;
    cq->tail = n; /* n <= depth < capacity */
}

sn_status rd_cq_resize(struct rd_cq *cq, uint32_t depth) {
    if (!depth_legal(depth)) return SN_E_PARAM;
    uint32_t capacity = capacity_of(depth);
    struct rd_cq_entry *ring = os_pages_alloc(ring_bytes(capacity));
    if (!ring) return SN_E_NOMEM;
    sn_status st = SN_OK;
    os_lock_enter(&cq->lock);
    struct rd_cq_entry *old = cq->ring;
    uint32_t old_capacity = cq->capacity;
    if (depth < os_u32_load_relaxed(&cq->queued)) {
        st = SN_E_BUFFER_SMALL;
        old = ring;
        old_capacity = capacity;
    } else {
        move_entries_locked(cq, ring, capacity);
        cq->depth = depth;
    }
    os_lock_leave(&cq->lock);
    os_pages_free(old, ring_bytes(old_capacity));
    return st;
}

/* ---- producers ---- */

void rd_cq_note_due(struct rd_cq *cq, struct rd_cq_member *m) {
    os_lock_enter(&cq->lock);
    rd_cq_note_due_locked(cq, m);
    os_lock_leave(&cq->lock);
}

/* Fires what waits for successes too, or only those that wait for anything but errors. */
static void fire_locked(struct rd_cq *cq, bool errors_too, struct rd_fire *f) {
    SN_LIST_FOR_SAFE(it, tmp, &cq->pending) {
        struct rd_async *a = SN_CONTAINER(it, struct rd_async, link);
        uint64_t type = a->core;
        if (type == RD_NOTIFY_QUEUE || (type == RD_NOTIFY_ERRORS && !errors_too)) continue;
        cq->armed[type]--;
        fire_one_locked(cq, a, SN_OK, f);
        rd_count(&cq->counters.notified, 1);
    }
    cq->reported = cq->newest;
}

void rd_cq_fire_locked(struct rd_cq *cq, struct rd_fire *f) {
    if (cq->newest_failed > cq->seen)
        fire_locked(cq, true, f);
    else if ((cq->armed[RD_NOTIFY_ANY] && cq->newest > cq->seen) ||
             (cq->armed[RD_NOTIFY_SOLICITED] && cq->newest_solicited > cq->seen))
        fire_locked(cq, false, f);
}

/* ---- membership ---- */

void rd_cq_join(struct rd_cq *cq, struct rd_cq_member *m) {
    os_lock_enter(&cq->lock);
    if (sn_list_empty(&m->link)) {
        sn_list_push_back(&cq->members, &m->link);
        os_u32_store_release(&cq->member_count, os_u32_load_relaxed(&cq->member_count) + 1);
        os_ptr_store_release(&cq->recent, m->qp);
    }
    os_lock_leave(&cq->lock);
}

static void forget_due_locked(struct rd_cq *cq, struct rd_cq_member *m) {
    if (sn_list_empty(&m->due_link)) return;
    sn_list_remove(&m->due_link);
    os_u32_store_release(&cq->due_count, os_u32_load_relaxed(&cq->due_count) - 1);
}

void rd_cq_part(struct rd_cq *cq, struct rd_cq_member *m) {
    os_lock_enter(&cq->lock);
    if (!sn_list_empty(&m->link)) {
        sn_list_remove(&m->link);
        forget_due_locked(cq, m);
        os_u32_store_release(&cq->member_count, os_u32_load_relaxed(&cq->member_count) - 1);
        struct rd_qp *next = NULL;
        if (!sn_list_empty(&cq->members))
            next = SN_CONTAINER(cq->members.next, struct rd_cq_member, link)->qp;
        if (os_ptr_load_relaxed(&cq->recent) == m->qp) os_ptr_store_release(&cq->recent, next);
    }
    os_lock_leave(&cq->lock);
}

void rd_cq_quiesce(struct rd_cq *cq) {
    os_lock_enter(&cq->poll_lock);
    os_lock_leave(&cq->poll_lock);
}

/* ---- consumers ---- */

static void export_entry(const struct rd_cq_entry *e, struct rd_completion *out) {
    out->status = (sn_status)e->status;
    out->bytes = e->bytes;
    out->qp_context = e->qp_context;
    out->request_context = e->request_context;
    out->type = e->type;
    out->invalidated_token = e->invalidated_token;
}

SN_HOT static uint32_t take(struct rd_cq *cq, struct rd_completion *out, uint32_t max) {
    if (os_u32_load_acquire(&cq->queued) == 0) return 0;
    os_lock_enter(&cq->lock);
    uint32_t queued = os_u32_load_relaxed(&cq->queued);
    uint32_t n = SN_MIN(queued, max);
    for (uint32_t i = 0; i < n; i++) {
        export_entry(&cq->ring[cq->head], &out[i]);
        cq->head = cq->head + 1 == cq->capacity ? 0 : cq->head + 1;
    }
    if (n == queued) cq->head = cq->tail = 0;
    os_u32_store_release(&cq->queued, queued - n);
    rd_count(&cq->counters.taken, n);
    os_lock_leave(&cq->lock);
    return n;
}

/* Behind the n that out has already. out may be NULL if nothing is asked for. */
SN_HOT static uint32_t take_more(struct rd_cq *cq, struct rd_completion *out, uint32_t n,
                                 uint32_t max) {
    return n < max ? n + take(cq, out + n, max - n) : n;
}

/* Lets a transport send what it held back, for every connection that gave completions since. */
SN_HOT static void flush_reports(struct rd_cq *cq) {
    while (os_u32_load_acquire(&cq->due_count) != 0) {
        struct tp_conn *conn = NULL;
        struct rd_qp *qp = NULL;
        os_lock_enter(&cq->lock);
        if (!sn_list_empty(&cq->due)) {
            struct rd_cq_member *m = SN_CONTAINER(cq->due.next, struct rd_cq_member, due_link);
            forget_due_locked(cq, m);
            qp = m->qp;
            rd_qp_get(qp);
        }
        os_lock_leave(&cq->lock);
        if (!qp) return;
        conn = rd_qp_conn_pin(qp);
        if (conn) {
            conn->ops->flush_reports(conn);
            rd_qp_conn_unpin(qp);
        }
        rd_qp_put(qp);
    }
}

/* Who polls in a tight loop has nothing else to do: the way to it and back is spared a few times,
 * so that what arrives is seen earlier. */
SN_HOT static uint32_t looks_of(const struct rd_cq *cq, const struct tp_conn *conn) {
    bool tight = os_ticks() - cq->left_ticks < RD_CQ_TIGHT;
    return tight && os_u32_load_relaxed(&cq->due_count) == 0 ? SN_MAX(conn->ops->looks, 1u) : 1;
}

/* poll_lock held: the queue pair and its connection stay until it is released, since both are
 * taken away first and rd_cq_quiesce waits before they are freed. */
SN_HOT static bool make_progress(struct rd_cq *cq, bool empty, uint32_t *looks) {
    struct tp_engine *eng = cq->ad->eng;
    struct rd_qp *qp = os_ptr_load_acquire(&cq->recent);
    struct tp_conn *conn = qp ? os_ptr_load_acquire(&qp->conn) : NULL;
    uint32_t members = os_u32_load_relaxed(&cq->member_count);
    uint32_t most = conn && members == 1 && empty ? looks_of(cq, conn) : 1;
    bool did = false;
    for (*looks = 0; !did && *looks < most; ++*looks)
        did = conn && conn->ops->poll(conn);
    if (members == 1) {
        /* What has come waits for no look at others, which is a system call. */
        cq->since_others += *looks;
        if (cq->since_others < (did ? 2 : 1) * RD_CQ_PROGRESS_EVERY) return did;
        cq->since_others = 0;
        if (tp_engine_watch_count(eng) > 1) tp_engine_progress(eng);
        return did;
    }
    /* While the others are quiet they are looked at less and less often. */
    if (members != 0 && cq->skip != 0) {
        cq->skip--;
        return did;
    }
    bool others = tp_engine_progress(eng);
    cq->skip = cq->skip_next = others ? 0 : SN_MIN(2 * cq->skip_next + 1, RD_CQ_SKIP_MAX);
    return did || others;
}

/* What is there is given at once: looking for more first would cost a system call, and say to the
 * transports that the application has nothing to answer. But who always finds something (another
 * thread posts, or requests complete in the call that posts them) still makes progress now and
 * then, for others too: as the queue is polled hard, the engine's thread leaves it to us. */
SN_HOT uint32_t rd_cq_poll(struct rd_cq *cq, struct rd_completion *out, uint32_t max) {
    uint32_t n = take(cq, out, max);
    if (os_u32_load_relaxed(&cq->failed)) return n;
    if (n != 0) {
        uint32_t full = os_u32_load_relaxed(&cq->full_polls) + 1;
        os_u32_store_relaxed(&cq->full_polls, full);
        tp_engine_polled_full(cq->ad->eng, &cq->hot, n);
        if (full % RD_CQ_PROGRESS_EVERY != 0) return n;
    }
    if (!os_lock_try(&cq->poll_lock)) return take_more(cq, out, n, max);
    uint32_t looks;
    bool did = make_progress(cq, n == 0, &looks);
    n = take_more(cq, out, n, max);
    if (n == 0) flush_reports(cq);
    if (n == 0 || did) tp_engine_polled(cq->ad->eng, &cq->hot, did ? 0 : looks);
    if (n == 0) cq->left_ticks = os_ticks();
    os_lock_leave(&cq->poll_lock);
    return n;
}

/* ---- notifications ---- */

static bool fires_at_once_locked(const struct rd_cq *cq, enum rd_notify type) {
    uint64_t taken = cq->newest - os_u32_load_relaxed(&cq->queued);
    uint64_t known = SN_MAX(taken, cq->reported);
    switch (type) {
    case RD_NOTIFY_ERRORS:
        return cq->newest_failed > known;
    case RD_NOTIFY_ANY:
        return cq->newest > known;
    case RD_NOTIFY_SOLICITED:
        return cq->newest_solicited > known;
    case RD_NOTIFY_QUEUE:
    case RD_NOTIFY_KINDS:
        break;
    }
    return false;
}

/* The application is about to sleep. */
static void before_sleep(struct rd_cq *cq) {
    /* A poll under way in another thread keeps the queue hot; the engine's tick ends that. */
    if (os_lock_try(&cq->poll_lock)) {
        tp_engine_cool(cq->ad->eng, &cq->hot);
        os_lock_leave(&cq->poll_lock);
    }
    flush_reports(cq);
}

static bool type_legal(enum rd_notify type) {
    return (unsigned)type < RD_NOTIFY_KINDS;
}

sn_status rd_cq_notify(struct rd_cq *cq, enum rd_notify type, struct rd_async *a) {
    if (!type_legal(type)) return SN_E_PARAM;
    before_sleep(cq);
    struct rd_fire f;
    rd_fire_init(&f);
    sn_list_init(&a->link);
    a->core = type;
    os_lock_enter(&cq->lock);
    if (os_u32_load_relaxed(&cq->failed)) {
        rd_fire_add(&f, &cq->busy, a, SN_E_OVERRUN);
    } else if (cq->dead) {
        rd_fire_add(&f, &cq->busy, a, SN_E_CANCELED);
    } else {
        sn_list_push_back(&cq->pending, &a->link);
        cq->armed[type]++;
        if (fires_at_once_locked(cq, type)) fire_locked(cq, type == RD_NOTIFY_ERRORS, &f);
    }
    os_lock_leave(&cq->lock);
    rd_fire_run(&f);
    return SN_PENDING;
}

/* ANY includes SOLICITED, which includes ERRORS, which includes QUEUE. */
static bool type_stronger(enum rd_notify a, enum rd_notify b) {
    static const uint8_t strength[RD_NOTIFY_KINDS] = { [RD_NOTIFY_QUEUE] = 0,
                                                       [RD_NOTIFY_ERRORS] = 1,
                                                       [RD_NOTIFY_SOLICITED] = 2,
                                                       [RD_NOTIFY_ANY] = 3 };
    return strength[a] > strength[b];
}

static void arm_locked(struct rd_cq *cq, enum rd_notify type, struct rd_fire *f) {
    struct rd_async *a = &cq->arm;
    if (cq->arm_state == RD_ARM_FIRING) {
        if (cq->arm_again < 0 || type_stronger(type, (enum rd_notify)cq->arm_again))
            cq->arm_again = (int)type;
        return;
    }
    if (cq->arm_state == RD_ARM_IDLE) {
        if (cq->dead) return;
        if (os_u32_load_relaxed(&cq->failed)) {
            fire_one_locked(cq, a, SN_E_OVERRUN, f);
            return;
        }
        a->core = type;
        cq->armed[type]++;
        cq->arm_state = RD_ARM_PENDING;
        sn_list_push_back(&cq->pending, &a->link);
    } else if (type_stronger(type, (enum rd_notify)a->core)) {
        cq->armed[a->core]--;
        cq->armed[type]++;
        a->core = type;
    }
    if (fires_at_once_locked(cq, (enum rd_notify)a->core))
        fire_locked(cq, a->core == RD_NOTIFY_ERRORS, f);
}

sn_status rd_cq_arm(struct rd_cq *cq, enum rd_notify type) {
    if (!type_legal(type) || !cq->on_notify) return SN_E_PARAM;
    before_sleep(cq);
    struct rd_fire f;
    rd_fire_init(&f);
    os_lock_enter(&cq->lock);
    arm_locked(cq, type, &f);
    os_lock_leave(&cq->lock);
    rd_fire_run(&f);
    return SN_OK;
}

static void arm_fired(struct rd_async *a, sn_status st) {
    struct rd_cq *cq = SN_CONTAINER(a, struct rd_cq, arm);
    os_lock_enter(&cq->lock);
    cq->arm_state = RD_ARM_IDLE;
    int again = cq->arm_again;
    cq->arm_again = -1;
    os_lock_leave(&cq->lock);
    if (st == SN_E_CANCELED) return;
    cq->on_notify(cq->notify_ctx, st);
    if (again < 0) return;
    struct rd_fire f;
    rd_fire_init(&f);
    os_lock_enter(&cq->lock);
    arm_locked(cq, (enum rd_notify)again, &f);
    os_lock_leave(&cq->lock);
    rd_fire_run(&f);
}

void rd_cq_set_callback(struct rd_cq *cq, void (*fn)(void *ctx, sn_status st), void *ctx) {
    cq->on_notify = fn;
    cq->notify_ctx = ctx;
}

uint32_t rd_cq_queued(struct rd_cq *cq) {
    return os_u32_load_acquire(&cq->queued);
}

void rd_cq_cancel(struct rd_cq *cq) {
    struct rd_fire f;
    rd_fire_init(&f);
    os_lock_enter(&cq->lock);
    SN_LIST_FOR_SAFE(it, tmp, &cq->pending)
    fire_one_locked(cq, SN_CONTAINER(it, struct rd_async, link), SN_E_CANCELED, &f);
    memset(cq->armed, 0, sizeof cq->armed);
    os_lock_leave(&cq->lock);
    rd_fire_run(&f);
}

/* ---- counters ---- */

uint32_t rd_cq_counters_get(const struct rd_cq *cq, struct rd_counter *out) {
    uint32_t n = 0;
#define FILL(field, unit_text, help_text)                                                          \
    out[n++] = (struct rd_counter){ #field, unit_text, help_text,                                  \
                                    os_u64_load_relaxed(&cq->counters.field) };
    RD_CQ_COUNTERS(FILL)
#undef FILL
    return n;
}
