/* SPDX-License-Identifier: MIT
 *
 * Who makes progress. The thread sleeps in the poller. An application that polls hard (a queue
 * whose polls came back empty HOT_STREAK times within HOT_NS) makes the thread park on a wait word
 * with a tick instead, and the application's polls do what the thread would have done. It comes
 * back after a tick with few polls (an application that computes and looks now and then must not
 * hold up its peers), or when the last hot queue cooled down.
 *
 * An application that waits for events again and again sleeps in the poller itself, as the leader,
 * and the thread rests. `sleeper` says who is in the poller: never both, since a source beside the
 * sockets knows one sleeper only. When the leader leaves, nobody is in the poller until it comes
 * back: soon, or the thread's tick notices. A leader that stays for more than a tick lets the
 * thread sleep without ticks, and wakes it when it leaves.
 */
#include "transport/engine.h"
#include <string.h>
#include "base/log.h"
#include "os/io/poller.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/lock.h"
#include "os/prim/thread.h"

enum {
    HOT_STREAK = 64,          /* polls: empty ones to become hot, any in a tick to stay so */
    WORK_COUNTS = 16,         /* a poll that made progress takes as long as so many others */
    FULL_STREAK = 16,         /* results to become hot ... */
    FULL_SHARE = 4,           /* ... each as good as so many polls' time */
    EVENTS_PER_WAIT = 64,     /* of the thread */
    EVENTS_PER_PROGRESS = 16, /* of a caller: short, so that its own queue is looked at again */
    SLOTS_FIRST = 16,
};
/* Leads in a tick for the thread to go on resting, and waits in a row, each within LEAD_GAP_NS of
 * the one before, to begin with: what is between them is time without progress. */
#define LEADS_PER_TICK 8
#define LEAD_GAP_NS (PARK_TICK_NS / LEADS_PER_TICK)
#define LEAD_YIELD_NS (200 * 1000ull) /* for the thread to leave the poller */
/* An application that sleeps between its polls is slower: a wake-up takes some 10 us. */
#define HOT_NS (64 * 8000ull)
/* Who takes results without ever arming, even slowly, does so because the engine's thread is in the
 * way. */
#define FULL_NS (1 * OS_NS_PER_MS)
#define PARK_TICK_NS (1 * OS_NS_PER_MS)
#define WORK_NS (8 * 1000ull)               /* of sending are as good as a poll */
#define QUIET_NS (500 * 1000ull)            /* between two looks at sockets that are all quiet */
#define STREAM_NS (100 * 1000ull)           /* the thread looks for what follows before it sleeps */
#define CLOSE_WAIT_NS (2000 * OS_NS_PER_MS) /* for background closes at destroy */

struct slot {
    struct tp_watch *watch; /* NULL: free */
    uint32_t generation;
    uint32_t next_free;
};

struct tp_engine {
    struct os_poller *poller;
    os_lock lock;                /* rank ENGINE */
    os_cond idle;                /* a watch went away */
    struct slot *slots;          /* [lock] */
    uint32_t slot_count;         /* [lock] */
    uint32_t free_head;          /* [lock] index + 1; 0: none */
    os_atomic_u32 watches;       /* [lock for writes] */
    os_atomic_u32 loud;          /* [lock for writes] of them, those that are not quiet */
    os_atomic_u64 quiet_look_ns; /* the last */
    os_atomic_u64 stream_until_ns;
    os_atomic_ptr source;    /* struct tp_source, set once */
    struct sn_list timers;   /* [lock] armed, unsorted */
    uint64_t next_deadline;  /* [lock] no timer is due before it */
    uint64_t sleeping_until; /* [lock] 0: the thread is awake or parked */
    bool started;            /* [lock] */
    os_thread thread;
    os_atomic_u32 stop;
    os_atomic_u32 park;      /* bumped to end a park */
    os_atomic_u32 hot_count; /* [lock for writes] hot queues */
    os_atomic_u32 epoch;     /* [lock for writes] hot queues of an older epoch are cold */
    os_atomic_u32 polls;     /* bumped by hot polls and by work, looked at by the tick */
    os_atomic_u32 worked;    /* polls that sending was as good as */
    os_atomic_u32 sleeper;   /* enum sleeper: who is in the poller */
    os_atomic_u32 lead_mode; /* the thread leaves the poller to leaders */
    os_atomic_u32 resting;   /* it sleeps without ticks: a leader that ends wakes it */
    os_atomic_u32 leads;     /* [leader for writes] counts them */
    uint32_t leads_seen;     /* [thread] at its last tick */
    uint32_t lead_streak;    /* [leader] waits in a row */
    uint64_t lead_last_ns;   /* [leader] begin or end of the last wait known */
    size_t lead_count;       /* [leader] of lead_events */
    struct os_poll_event lead_events[EVENTS_PER_PROGRESS];
};

enum sleeper { NOBODY, THREAD, LEADER };

static uint64_t key_of(uint32_t slot, uint32_t generation) {
    return ((uint64_t)generation << 32) | slot;
}

/* A reference to the watch of a poller key, or NULL if it was removed meanwhile. */
static struct tp_watch *lookup(struct tp_engine *eng, uint64_t key) {
    uint32_t idx = (uint32_t)key;
    struct tp_watch *w = NULL;
    os_lock_enter(&eng->lock);
    if (idx < eng->slot_count && eng->slots[idx].generation == (uint32_t)(key >> 32))
        w = eng->slots[idx].watch;
    if (w) os_ref_get(&w->refs);
    os_lock_leave(&eng->lock);
    return w;
}

static size_t dispatch(struct tp_engine *eng, const struct os_poll_event *events, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct tp_watch *w = lookup(eng, events[i].key);
        if (!w) continue;
        w->on_ready(w, events[i].events);
        tp_watch_put(w);
    }
    return count;
}

bool tp_engine_progress(struct tp_engine *eng) {
    struct os_poll_event events[EVENTS_PER_PROGRESS];
    struct tp_source *source = os_ptr_load_acquire(&eng->source);
    bool did = source && source->poll(source);
    if (source && os_u32_load_relaxed(&eng->loud) == 0) {
        uint64_t now = os_now_ns();
        if (now - os_u64_load_relaxed(&eng->quiet_look_ns) < QUIET_NS) return did;
        os_u64_store_relaxed(&eng->quiet_look_ns, now);
    }
    size_t n = os_poller_wait(eng->poller, events, EVENTS_PER_PROGRESS, 0);
    return dispatch(eng, events, n) != 0 || did;
}

/* ---- a source beside the sockets ---- */

struct tp_source *tp_engine_source(struct tp_engine *eng) {
    return os_ptr_load_acquire(&eng->source);
}

struct tp_source *tp_engine_add_source(struct tp_engine *eng, struct tp_source *s) {
    void *none = NULL;
    if (!os_ptr_cas_acq_rel(&eng->source, &none, s)) return none;
    os_poller_wake(eng->poller); /* a thread that sleeps has not told the source so */
    return s;
}

/* One round of sleeping in the poller. */
static size_t sleep_once(struct tp_engine *eng, struct os_poll_event *events, size_t max,
                         uint64_t length) {
    struct tp_source *source = os_ptr_load_acquire(&eng->source);
    if (source) {
        uint64_t most = source->before_sleep(source);
        length = SN_MIN(length, most);
    }
    size_t n = os_poller_wait(eng->poller, events, max, length);
    if (source) source->after_sleep(source);
    os_lock_enter(&eng->lock);
    eng->sleeping_until = 0;
    os_lock_leave(&eng->lock);
    return n;
}

/* ---- timers ---- */

static void run_timers(struct tp_engine *eng, uint64_t now) {
    struct sn_list due;
    sn_list_init(&due);
    os_lock_enter(&eng->lock);
    if (now >= eng->next_deadline) {
        uint64_t next = OS_FOREVER;
        SN_LIST_FOR_SAFE(it, tmp, &eng->timers) {
            struct tp_timer *t = SN_CONTAINER(it, struct tp_timer, link);
            if (t->deadline_ns <= now) {
                sn_list_remove(it);
                sn_list_push_back(&due, it);
            } else if (t->deadline_ns < next) {
                next = t->deadline_ns;
            }
        }
        eng->next_deadline = next;
    }
    /* One at a time: a timer still in `due` can be cancelled or re-armed by anybody. */
    for (struct sn_list *it; (it = sn_list_pop(&due)) != NULL;) {
        struct tp_timer *t = SN_CONTAINER(it, struct tp_timer, link);
        t->deadline_ns = 0;
        os_lock_leave(&eng->lock);
        t->on_expired(t);
        os_lock_enter(&eng->lock);
    }
    os_lock_leave(&eng->lock);
}

void tp_timer_init(struct tp_timer *t, struct tp_engine *eng,
                   void (*on_expired)(struct tp_timer *t)) {
    sn_list_init(&t->link);
    t->deadline_ns = 0;
    t->on_expired = on_expired;
    t->eng = eng;
}

bool tp_timer_arm(struct tp_timer *t, uint64_t delay_ns) {
    struct tp_engine *eng = t->eng;
    uint64_t deadline = os_now_ns() + delay_ns;
    os_lock_enter(&eng->lock);
    bool fresh = sn_list_empty(&t->link);
    sn_list_remove(&t->link);
    sn_list_push_back(&eng->timers, &t->link);
    t->deadline_ns = deadline;
    if (deadline < eng->next_deadline) eng->next_deadline = deadline;
    bool wake = deadline < eng->sleeping_until;
    if (wake) eng->sleeping_until = 0;
    os_lock_leave(&eng->lock);
    if (wake) os_poller_wake(eng->poller);
    return fresh;
}

bool tp_timer_cancel(struct tp_timer *t) {
    os_lock_enter(&t->eng->lock);
    bool armed = !sn_list_empty(&t->link);
    sn_list_remove(&t->link);
    t->deadline_ns = 0;
    os_lock_leave(&t->eng->lock);
    return armed;
}

/* ---- hot queues ---- */

/* A count lost between two threads does no harm. */
SN_HOT static bool count_if_hot(struct tp_engine *eng, struct tp_hot *hot, uint32_t calls) {
    if (os_u32_load_relaxed(&hot->epoch) != os_u32_load_relaxed(&eng->epoch)) return false;
    os_u32_store_relaxed(&eng->polls, os_u32_load_relaxed(&eng->polls) + calls);
    return true;
}

static void make_hot(struct tp_engine *eng, struct tp_hot *hot) {
    os_lock_enter(&eng->lock);
    if (os_u32_load_relaxed(&hot->epoch) != os_u32_load_relaxed(&eng->epoch)) {
        os_u32_store_relaxed(&hot->epoch, os_u32_load_relaxed(&eng->epoch));
        os_u32_fetch_add_seqcst(&eng->hot_count, 1);
    }
    os_lock_leave(&eng->lock);
}

void tp_engine_streams(struct tp_engine *eng) {
    os_u64_store_relaxed(&eng->stream_until_ns, os_now_ns() + STREAM_NS);
}

void tp_engine_worked(struct tp_engine *eng, uint64_t ns) {
    uint32_t n = (uint32_t)(ns / WORK_NS);
    os_u32_store_relaxed(&eng->worked, os_u32_load_relaxed(&eng->worked) + n);
    os_u32_store_relaxed(&eng->polls, os_u32_load_relaxed(&eng->polls) + n);
}

SN_HOT void tp_engine_polled_full(struct tp_engine *eng, struct tp_hot *hot, uint32_t results) {
    if (count_if_hot(eng, hot, results)) return;
    uint32_t worked = os_u32_load_relaxed(&eng->worked);
    results += (worked - os_u32_load_relaxed(&hot->worked_seen)) / FULL_SHARE;
    os_u32_store_relaxed(&hot->worked_seen, worked);
    uint32_t streak = os_u32_load_relaxed(&hot->full_streak) + results;
    if (streak == results) os_u64_store_relaxed(&hot->full_since_ns, os_now_ns());
    os_u32_store_relaxed(&hot->full_streak, streak < FULL_STREAK ? streak : 0);
    if (streak >= FULL_STREAK && os_now_ns() - os_u64_load_relaxed(&hot->full_since_ns) <= FULL_NS)
        make_hot(eng, hot);
}

SN_HOT void tp_engine_polled(struct tp_engine *eng, struct tp_hot *hot, uint32_t looks) {
    uint32_t count = looks == 0 ? WORK_COUNTS : looks;
    if (count_if_hot(eng, hot, count)) return;
    if (hot->empty_streak == 0) hot->since_ns = os_now_ns();
    hot->empty_streak += count;
    if (hot->empty_streak < HOT_STREAK) return;
    hot->empty_streak = 0;
    if (os_now_ns() - hot->since_ns <= HOT_NS) make_hot(eng, hot);
}

bool tp_engine_is_hot(struct tp_engine *eng) {
    return os_u32_load_relaxed(&eng->hot_count) != 0;
}

static void unpark(struct tp_engine *eng) {
    os_u32_fetch_add_seqcst(&eng->park, 1);
    os_wake_all(&eng->park);
}

void tp_engine_cool(struct tp_engine *eng, struct tp_hot *hot) {
    hot->empty_streak = 0;
    os_u32_store_relaxed(&hot->full_streak, 0);
    if (os_u32_load_relaxed(&hot->epoch) == 0) return;
    os_lock_enter(&eng->lock);
    bool last = os_u32_load_relaxed(&hot->epoch) == os_u32_load_relaxed(&eng->epoch) &&
                os_u32_fetch_sub_seqcst(&eng->hot_count, 1) == 1;
    os_u32_store_relaxed(&hot->epoch, 0);
    os_lock_leave(&eng->lock);
    if (last) unpark(eng);
}

/* Waits out one tick while somebody polls hard. Ends the reign of queues that are not polled hard.
 */
static void park(struct tp_engine *eng) {
    uint32_t word = os_u32_load_seqcst(&eng->park);
    uint32_t polls = os_u32_load_relaxed(&eng->polls);
    if (os_u32_load_seqcst(&eng->hot_count) == 0) return;
    uint64_t end = os_now_ns() + PARK_TICK_NS;
    while (os_u32_load_acquire(&eng->park) == word && os_now_ns() < end)
        os_wait_on(&eng->park, word, end);
    if (os_u32_load_relaxed(&eng->polls) - polls >= HOT_STREAK) return;
    os_lock_enter(&eng->lock);
    uint32_t epoch = os_u32_load_relaxed(&eng->epoch) + 1;
    os_u32_store_relaxed(&eng->epoch, epoch ? epoch : 1);
    os_u32_store_seqcst(&eng->hot_count, 0);
    os_lock_leave(&eng->lock);
}

/* ---- the thread ---- */

static uint64_t sleep_length(struct tp_engine *eng) {
    os_lock_enter(&eng->lock);
    uint64_t now = os_now_ns(), deadline = eng->next_deadline;
    uint64_t length = deadline == OS_FOREVER ? OS_FOREVER : deadline > now ? deadline - now : 0;
    if (now < os_u64_load_relaxed(&eng->stream_until_ns)) length = 0;
    eng->sleeping_until = deadline;
    os_lock_leave(&eng->lock);
    return length;
}

/* What a sleep found. False: somebody became hot meanwhile, and those bytes are theirs. */
static bool serve(struct tp_engine *eng, const struct os_poll_event *events, size_t n) {
    if (os_u32_load_seqcst(&eng->hot_count) != 0) return false;
    struct tp_source *source = os_ptr_load_acquire(&eng->source);
    dispatch(eng, events, n);
    if (source) source->poll(source);
    return true;
}

static bool take_poller(struct tp_engine *eng, uint32_t who) {
    uint32_t nobody = NOBODY;
    return os_u32_cas_acq_rel(&eng->sleeper, &nobody, who);
}

static bool is_led(struct tp_engine *eng) {
    return os_u32_load_seqcst(&eng->sleeper) == LEADER;
}

/* The thread, while leaders come and go. */
static void rest(struct tp_engine *eng) {
    uint32_t word = os_u32_load_seqcst(&eng->park);
    uint32_t leads = os_u32_load_acquire(&eng->leads);
    if (is_led(eng) && leads == eng->leads_seen) { /* for a whole tick the same one */
        os_u32_store_seqcst(&eng->resting, 1);
        if (is_led(eng) && !os_u32_load_seqcst(&eng->stop))
            os_wait_on(&eng->park, word, OS_FOREVER);
        os_u32_store_seqcst(&eng->resting, 0);
    } else {
        uint64_t end = os_now_ns() + PARK_TICK_NS;
        while (os_u32_load_acquire(&eng->park) == word && os_now_ns() < end)
            os_wait_on(&eng->park, word, end);
        eng->leads_seen = os_u32_load_acquire(&eng->leads);
        if (os_u32_load_acquire(&eng->park) == word &&
            (is_led(eng) || eng->leads_seen - leads >= LEADS_PER_TICK))
            return;
    }
    if (!is_led(eng)) os_u32_store_seqcst(&eng->lead_mode, 0);
}

static void engine_main(void *arg) {
    struct tp_engine *eng = arg;
    struct os_poll_event events[EVENTS_PER_WAIT];
    os_thread_set_prompt(true); /* peers wait for it while the application computes */
    while (!os_u32_load_acquire(&eng->stop)) {
        if (os_u32_load_seqcst(&eng->lead_mode) != 0) {
            rest(eng);
        } else if (os_u32_load_seqcst(&eng->hot_count) != 0) {
            park(eng);
        } else if (take_poller(eng, THREAD)) {
            size_t n = sleep_once(eng, events, EVENTS_PER_WAIT, sleep_length(eng));
            os_u32_store_seqcst(&eng->sleeper, NOBODY);
            if (os_u32_load_seqcst(&eng->lead_mode)) os_wake_all(&eng->sleeper);
            (void)serve(eng, events, n);
        } else {
            os_u32_store_seqcst(&eng->lead_mode, 1); /* a leader was faster */
        }
        run_timers(eng, os_now_ns());
    }
    os_thread_set_prompt(false);
}

/* ---- leaders ---- */

static bool waits_often(struct tp_engine *eng) {
    uint64_t now = os_now_ns(), before = eng->lead_last_ns;
    eng->lead_last_ns = now;
    if (now - before > LEAD_GAP_NS) eng->lead_streak = 0;
    if (eng->lead_streak < LEADS_PER_TICK) eng->lead_streak++;
    return eng->lead_streak == LEADS_PER_TICK;
}

bool tp_engine_lead_begin(struct tp_engine *eng) {
    if (!waits_often(eng) || os_u32_load_seqcst(&eng->hot_count) != 0) return false;
    if (!take_poller(eng, LEADER)) {
        /* The thread is in the poller. It must be out before we can be in. */
        os_u32_store_seqcst(&eng->lead_mode, 1);
        os_poller_wake(eng->poller);
        os_wait_on(&eng->sleeper, THREAD, os_now_ns() + LEAD_YIELD_NS);
        if (!take_poller(eng, LEADER)) {
            os_u32_store_seqcst(&eng->lead_mode, 0);
            return false;
        }
    }
    os_u32_store_seqcst(&eng->lead_mode, 1);
    os_u32_fetch_add_seqcst(&eng->leads, 1);
    return true;
}

void tp_engine_lead_sleep(struct tp_engine *eng, uint64_t deadline_ns) {
    uint64_t length = sleep_length(eng), now = os_now_ns();
    if (deadline_ns != OS_FOREVER)
        length = SN_MIN(length, deadline_ns > now ? deadline_ns - now : 0);
    eng->lead_count = sleep_once(eng, eng->lead_events, EVENTS_PER_PROGRESS, length);
}

bool tp_engine_lead_work(struct tp_engine *eng) {
    bool ours = serve(eng, eng->lead_events, eng->lead_count);
    run_timers(eng, os_now_ns());
    return ours;
}

void tp_engine_lead_wake(struct tp_engine *eng) {
    os_poller_wake(eng->poller);
}

void tp_engine_lead_end(struct tp_engine *eng, bool others_wait) {
    eng->lead_last_ns = os_now_ns();
    os_u32_store_seqcst(&eng->sleeper, NOBODY);
    if (others_wait || os_u32_load_seqcst(&eng->resting)) unpark(eng);
}

/* ---- watches ---- */

static sn_status start_thread_locked(struct tp_engine *eng) {
    if (eng->started) return SN_OK;
    sn_status st = os_thread_start(&eng->thread, "softnd", engine_main, eng);
    if (st == SN_OK) eng->started = true;
    return st;
}

static sn_status grow_slots_locked(struct tp_engine *eng) {
    uint32_t count = eng->slot_count ? eng->slot_count * 2 : SLOTS_FIRST;
    struct slot *slots = os_zalloc(count * sizeof *slots);
    if (!slots) return SN_E_NOMEM;
    if (eng->slot_count) memcpy(slots, eng->slots, eng->slot_count * sizeof *slots);
    for (uint32_t i = count; i-- > eng->slot_count;) {
        slots[i].next_free = eng->free_head;
        eng->free_head = i + 1;
    }
    os_free(eng->slots);
    eng->slots = slots;
    eng->slot_count = count;
    return SN_OK;
}

static void free_slot_locked(struct tp_engine *eng, uint32_t idx) {
    if (!eng->slots[idx].watch->quiet) os_u32_fetch_sub_acq_rel(&eng->loud, 1);
    eng->slots[idx].watch = NULL;
    eng->slots[idx].generation++;
    eng->slots[idx].next_free = eng->free_head;
    eng->free_head = idx + 1;
    os_u32_fetch_sub_acq_rel(&eng->watches, 1);
    os_cond_broadcast(&eng->idle);
}

sn_status tp_watch_add(struct tp_engine *eng, struct tp_watch *w) {
    os_lock_enter(&eng->lock);
    sn_status st = start_thread_locked(eng);
    if (st == SN_OK && eng->free_head == 0) st = grow_slots_locked(eng);
    if (st == SN_OK) {
        uint32_t idx = eng->free_head - 1;
        eng->free_head = eng->slots[idx].next_free;
        eng->slots[idx].watch = w;
        w->eng = eng;
        w->slot = idx;
        w->generation = eng->slots[idx].generation;
        os_ref_get(&w->refs);
        os_u32_fetch_add_acq_rel(&eng->watches, 1);
        if (!w->quiet) os_u32_fetch_add_acq_rel(&eng->loud, 1);
    }
    os_lock_leave(&eng->lock);
    if (st != SN_OK) return st;
    st = os_poller_add(eng->poller, w->sock, key_of(w->slot, w->generation), w->events);
    if (st == SN_OK) return SN_OK;
    os_lock_enter(&eng->lock);
    free_slot_locked(eng, w->slot);
    os_lock_leave(&eng->lock);
    w->eng = NULL;
    tp_watch_put(w);
    return st;
}

void tp_watch_set(struct tp_watch *w, uint32_t events) {
    if (w->events == events || !w->eng) return;
    w->events = events;
    sn_status st =
        os_poller_modify(w->eng->poller, w->sock, key_of(w->slot, w->generation), events);
    if (st != SN_OK) SN_LOG(SN_LOG_ERROR, "poller: cannot change a watch: %s", sn_status_text(st));
}

void tp_watch_remove(struct tp_watch *w) {
    struct tp_engine *eng = w->eng;
    if (!eng) return;
    os_poller_remove(eng->poller, w->sock);
    os_lock_enter(&eng->lock);
    free_slot_locked(eng, w->slot);
    os_lock_leave(&eng->lock);
    w->eng = NULL;
    tp_watch_put(w);
}

void tp_watch_get(struct tp_watch *w) {
    os_ref_get(&w->refs);
}

void tp_watch_put(struct tp_watch *w) {
    if (os_ref_put(&w->refs)) w->on_free(w);
}

SN_HOT uint32_t tp_engine_watch_count(struct tp_engine *eng) {
    return os_u32_load_relaxed(&eng->watches);
}

/* ---- create and destroy ---- */

sn_status tp_engine_create(struct tp_engine **out) {
    struct tp_engine *eng = os_zalloc(sizeof *eng);
    if (!eng) return SN_E_NOMEM;
    sn_status st = os_poller_create(&eng->poller);
    if (st != SN_OK) {
        os_free(eng);
        return st;
    }
    os_lock_init(&eng->lock, OS_RANK_ENGINE);
    os_cond_init(&eng->idle);
    sn_list_init(&eng->timers);
    eng->next_deadline = OS_FOREVER;
    os_u32_store_relaxed(&eng->epoch, 1);
    *out = eng;
    return SN_OK;
}

/* Tells every watch left that its socket is of no use any more. */
static void hang_up_all(struct tp_engine *eng) {
    for (uint32_t i = 0;; i++) {
        os_lock_enter(&eng->lock);
        bool end = i >= eng->slot_count;
        struct tp_watch *w = end ? NULL : eng->slots[i].watch;
        if (w) os_ref_get(&w->refs);
        os_lock_leave(&eng->lock);
        if (end) return;
        if (!w) continue;
        w->on_ready(w, OS_POLL_HUP);
        tp_watch_put(w);
    }
}

void tp_engine_destroy(struct tp_engine *eng) {
    uint64_t deadline = os_now_ns() + CLOSE_WAIT_NS;
    os_lock_enter(&eng->lock);
    while (os_u32_load_relaxed(&eng->watches) != 0 && os_now_ns() < deadline)
        os_cond_wait(&eng->idle, &eng->lock, deadline);
    bool started = eng->started;
    os_lock_leave(&eng->lock);
    os_u32_store_seqcst(&eng->stop, 1);
    unpark(eng);
    os_poller_wake(eng->poller);
    if (started) os_thread_join(eng->thread);
    hang_up_all(eng);
    run_timers(eng, OS_FOREVER); /* releases what armed timers hold */
    struct tp_source *source = os_ptr_load_acquire(&eng->source);
    if (source) source->on_gone(source);
    os_poller_destroy(eng->poller);
    os_cond_fini(&eng->idle);
    os_lock_fini(&eng->lock);
    os_free(eng->slots);
    os_free(eng);
}
