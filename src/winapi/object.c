/* SPDX-License-Identifier: MIT
 * object.c - the handle table, the parkers and the descriptor that mirrors an object's state.
 * Objects live in chunks that are never freed. A lookup takes a reference before it compares the
 * handle's value, so it needs no lock: the worst that a stale handle does is to hold a reference
 * on the slot's next owner for a moment.
 */
#include "winapi/object.h"
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WA_INDEX_BITS 22
#define WA_CHUNK 64u /* objects per allocation */
#define WA_CHUNKS ((1u << WA_INDEX_BITS) / WA_CHUNK)
#define WA_TAG_BITS 2

static _Atomic(struct wa_object *) chunks[WA_CHUNKS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wa_object *free_objects; /* [table_lock] */
static uint32_t chunk_count;           /* [table_lock] */
static atomic_uint live_count;

/* ---- parkers ---- */

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wa_parker *free_parkers; /* [pool_lock] */

int64_t wa_now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t wa_deadline(DWORD timeout_ms) {
    if (timeout_ms == INFINITE) return WA_NEVER;
    return wa_now_ns() + (int64_t)timeout_ms * 1000000;
}

struct wa_parker *wa_parker_acquire(void) {
    pthread_mutex_lock(&pool_lock);
    struct wa_parker *p = free_parkers;
    if (p) free_parkers = p->next_free;
    pthread_mutex_unlock(&pool_lock);
    if (p) return p;
    return calloc(1, sizeof *p);
}

void wa_parker_release(struct wa_parker *p) {
    pthread_mutex_lock(&pool_lock);
    p->next_free = free_parkers;
    free_parkers = p;
    pthread_mutex_unlock(&pool_lock);
}

/* The owner goes from AWAKE to ASLEEP or LEADING and takes POKED back to AWAKE; others only set
 * POKED. */
enum { AWAKE, ASLEEP, POKED, LEADING };

static long futex(struct wa_parker *p, int op, uint32_t value, const struct timespec *until) {
    return syscall(SYS_futex, &p->state, op | FUTEX_PRIVATE_FLAG, value, until, NULL,
                   FUTEX_BITSET_MATCH_ANY);
}

/* ---- a thread that sleeps in the provider's place ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t left;                    /* [lock] leader became NULL */
    _Atomic(const SOFTND_WAIT_HOOK *) hook; /* [lock for writes] */
    void *context;                          /* [lock] */
    struct wa_parker *leader;               /* [lock] */
    const SOFTND_WAIT_HOOK *leading;        /* [lock] the leader's */
} lead = { .lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER };
static atomic_uint sleepers; /* threads in the futex call below */

/* A leader sleeps by the millisecond: the last two of a deadline are left to the futex. */
#define LEAD_SPARE_NS 2000000

void SoftNdSetWaitHook(const SOFTND_WAIT_HOOK *hook, void *context) {
    pthread_mutex_lock(&lead.lock);
    atomic_store(&lead.hook, NULL); /* the leader looks at it after each sleep */
    while (lead.leader) {
        lead.leading->wake(lead.context);
        pthread_cond_wait(&lead.left, &lead.lock);
    }
    lead.context = context;
    atomic_store(&lead.hook, hook);
    pthread_mutex_unlock(&lead.lock);
}

static const SOFTND_WAIT_HOOK *take_lead(struct wa_parker *p, void **context) {
    pthread_mutex_lock(&lead.lock);
    const SOFTND_WAIT_HOOK *hook = atomic_load(&lead.hook);
    if (lead.leader || atomic_load(&sleepers) != 0) hook = NULL;
    if (hook) {
        lead.leader = p;
        lead.leading = hook;
        *context = lead.context;
    }
    pthread_mutex_unlock(&lead.lock);
    return hook;
}

static void drop_lead(void) {
    pthread_mutex_lock(&lead.lock);
    lead.leader = NULL;
    pthread_cond_broadcast(&lead.left);
    pthread_mutex_unlock(&lead.lock);
}

static bool near(int64_t deadline_ns) {
    return deadline_ns != WA_NEVER && deadline_ns - wa_now_ns() < LEAD_SPARE_NS;
}

/* Leads until unparked, true; false when the futex has to do it. */
static bool park_leading(struct wa_parker *p, int64_t deadline_ns) {
    if (!atomic_load_explicit(&lead.hook, memory_order_relaxed) || near(deadline_ns)) return false;
    void *context;
    const SOFTND_WAIT_HOOK *hook = take_lead(p, &context);
    if (!hook) return false;
    int cancel; /* a wait is no point of cancellation, and a leader must not vanish */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    bool led = hook->begin(context);
    /* A wake during begin may have met whoever slept there before. */
    bool go_on = led && atomic_load(&lead.hook) == hook;
    while (go_on && atomic_load(&p->state) != POKED) {
        uint32_t seen = AWAKE;
        if (!atomic_compare_exchange_strong(&p->state, &seen, LEADING)) break;
        hook->sleep(context, deadline_ns == WA_NEVER ? WA_NEVER : deadline_ns - LEAD_SPARE_NS / 2);
        seen = LEADING;
        atomic_compare_exchange_strong(&p->state, &seen, AWAKE); /* else POKED, and stays so */
        go_on = hook->work(context) && atomic_load(&lead.hook) == hook && !near(deadline_ns);
    }
    if (led) hook->end(context, atomic_load(&sleepers) != 0);
    drop_lead();
    pthread_setcancelstate(cancel, NULL);
    uint32_t seen = POKED;
    return atomic_compare_exchange_strong(&p->state, &seen, AWAKE);
}

static void wake_leader(const struct wa_parker *p) {
    pthread_mutex_lock(&lead.lock);
    if (lead.leader == p) lead.leading->wake(lead.context);
    pthread_mutex_unlock(&lead.lock);
}

bool wa_park(struct wa_parker *p, int64_t deadline_ns) {
    if (park_leading(p, deadline_ns)) return true;
    struct timespec until = { (time_t)(deadline_ns / 1000000000),
                              (long)(deadline_ns % 1000000000) };
    uint32_t seen = AWAKE;
    atomic_fetch_add(&sleepers, 1);
    if (atomic_compare_exchange_strong(&p->state, &seen, ASLEEP)) {
        do {
            /* An absolute time, of the monotonic clock. */
            long err = futex(p, FUTEX_WAIT_BITSET, ASLEEP, deadline_ns == WA_NEVER ? NULL : &until);
            seen = ASLEEP;
            if (err != 0 && errno == ETIMEDOUT &&
                atomic_compare_exchange_strong(&p->state, &seen, AWAKE)) {
                atomic_fetch_sub(&sleepers, 1);
                return false;
            }
        } while (atomic_load(&p->state) == ASLEEP);
    }
    atomic_fetch_sub(&sleepers, 1);
    atomic_store(&p->state, AWAKE);
    return true;
}

void wa_unpark(struct wa_parker *p) {
    uint32_t was = atomic_exchange(&p->state, POKED);
    if (was == ASLEEP) futex(p, FUTEX_WAKE, 1, NULL);
    if (was == LEADING) wake_leader(p);
}

/* ---- the table ---- */

/* Puts the objects of a new chunk on the free list. */
static bool grow_locked(void) {
    if (chunk_count == WA_CHUNKS) return false;
    struct wa_object *chunk = calloc(WA_CHUNK, sizeof *chunk);
    if (!chunk) return false;
    for (uint32_t i = WA_CHUNK; i-- > 0;) {
        struct wa_object *o = &chunk[i];
        o->idx = chunk_count * WA_CHUNK + i;
        pthread_mutex_init(&o->lock, NULL);
        sn_list_init(&o->waiters);
        o->fd = -1;
        o->next_free = free_objects;
        free_objects = o;
    }
    atomic_store_explicit(&chunks[chunk_count], chunk, memory_order_release);
    chunk_count++;
    return true;
}

struct wa_object *wa_object_create(enum wa_kind kind) {
    pthread_mutex_lock(&table_lock);
    struct wa_object *o = free_objects || grow_locked() ? free_objects : NULL;
    if (o) free_objects = o->next_free;
    pthread_mutex_unlock(&table_lock);
    if (!o) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return NULL;
    }
    o->kind = kind;
    o->auto_reset = false;
    o->signaled = false;
    memset(&o->u, 0, sizeof o->u);
    atomic_fetch_add_explicit(&live_count, 1, memory_order_relaxed);
    /* Publishes the fields to the lookup that finds the reference. */
    atomic_store_explicit(&o->refs, 1, memory_order_release);
    return o;
}

HANDLE wa_object_open(struct wa_object *o) {
    uint64_t value = ((++o->generation << WA_INDEX_BITS) | o->idx) << WA_TAG_BITS;
    atomic_store_explicit(&o->handle, value, memory_order_release);
    return (HANDLE)(uintptr_t)value;
}

static uint64_t handle_value(HANDLE h) {
    return (uint64_t)(uintptr_t)h & ~(uint64_t)((1u << WA_TAG_BITS) - 1);
}

struct wa_object *wa_lookup(HANDLE h, unsigned kinds) {
    uint64_t value = handle_value(h);
    uint32_t idx = (uint32_t)(value >> WA_TAG_BITS) & ((1u << WA_INDEX_BITS) - 1);
    struct wa_object *chunk = atomic_load_explicit(&chunks[idx / WA_CHUNK], memory_order_acquire);
    if (!chunk || value == 0) return NULL;
    struct wa_object *o = &chunk[idx % WA_CHUNK];
    unsigned refs = atomic_load_explicit(&o->refs, memory_order_relaxed);
    do {
        if (refs == 0) return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&o->refs, &refs, refs + 1, memory_order_acquire,
                                                    memory_order_relaxed));
    if (atomic_load_explicit(&o->handle, memory_order_acquire) == value &&
        ((unsigned)o->kind & kinds) != 0)
        return o;
    wa_object_release(o);
    return NULL;
}

struct wa_object *wa_lookup_or_fail(HANDLE h, unsigned kinds) {
    struct wa_object *o = wa_lookup(h, kinds);
    if (!o) SetLastError(ERROR_INVALID_HANDLE);
    return o;
}

void wa_object_acquire(struct wa_object *o) {
    atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}

static void object_free(struct wa_object *o) {
    switch (o->kind) {
    case WA_PORT:
        wa_port_fini(o);
        break;
    case WA_FILE:
        wa_file_fini(o);
        break;
    case WA_MODULE: /* FreeLibrary closed it */
    case WA_EVENT:
    case WA_FREE:
        break;
    }
    SN_ASSERT(sn_list_empty(&o->waiters));
    if (o->fd >= 0) close(o->fd);
    o->fd = -1;
    o->fd_readable = false;
    atomic_fetch_sub_explicit(&live_count, 1, memory_order_relaxed);
    pthread_mutex_lock(&table_lock);
    o->next_free = free_objects;
    free_objects = o;
    pthread_mutex_unlock(&table_lock);
}

void wa_object_release(struct wa_object *o) {
    if (atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) == 1) object_free(o);
}

bool wa_object_close(struct wa_object *o, HANDLE h) {
    uint64_t value = handle_value(h);
    return atomic_compare_exchange_strong(&o->handle, &value, 0);
}

unsigned wa_object_count(void) {
    return atomic_load(&live_count);
}

/* ---- the descriptor ---- */

void wa_fd_set_locked(struct wa_object *o, bool readable) {
    if (o->fd < 0 || o->fd_readable == readable) return;
    uint64_t count = 1;
    ssize_t done =
        readable ? write(o->fd, &count, sizeof count) : read(o->fd, &count, sizeof count);
    (void)done; /* fails only if somebody else read or wrote our descriptor */
    o->fd_readable = readable;
}

int wa_fd_get_locked(struct wa_object *o, bool readable) {
    if (o->fd < 0) {
        o->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (o->fd < 0) {
            SetLastError(errno == ENOMEM ? ERROR_NOT_ENOUGH_MEMORY : ERROR_TOO_MANY_OPEN_FILES);
            return -1;
        }
        o->fd_readable = false;
        wa_fd_set_locked(o, readable);
    }
    return o->fd;
}
