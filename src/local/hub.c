/* SPDX-License-Identifier: MIT
 *
 * Numbers of connections are reused late (the oldest free one, and only when many are free), so
 * that a peer that has not noticed yet that its connection ended does not disturb another.
 */
#include "local/hub.h"
#include <string.h>
#include "base/log.h"
#include "local/config.h"
#include "local/conn.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/thread.h"

enum { FREE_MIN = 64, SPINS = 200, YIELDS = 50 };

static inline struct lo_hub *hub_of(struct tp_source *s) {
    return SN_CONTAINER(s, struct lo_hub, source);
}

/* ---- numbers ---- */

sn_status lo_hub_join(struct lo_hub *h, struct lo_conn *c, uint32_t *index) {
    sn_status st = SN_OK;
    os_lock_enter(&h->lock);
    if (h->fresh < LO_CONNS && h->free_count < FREE_MIN) {
        *index = h->fresh++;
    } else if (h->free_count != 0) {
        *index = h->free_head - 1;
        h->free_head = h->next_free[*index];
        if (--h->free_count == 0) h->free_tail = 0;
    } else {
        st = SN_E_RESOURCES;
    }
    if (st == SN_OK) {
        lo_conn_get(c);
        h->conns[*index] = c;
    }
    os_lock_leave(&h->lock);
    return st;
}

static void leave_direct_locked(struct lo_hub *h, uint32_t place) {
    struct lo_conn *c = h->direct[place];
    h->direct[place] = NULL;
    lo_conn_set_polled(c, false);
}

void lo_hub_part(struct lo_hub *h, struct lo_conn *c, uint32_t index) {
    uint32_t refs = 0;
    os_lock_enter(&h->lock);
    for (uint32_t i = 0; i < h->direct_end; i++) {
        if (h->direct[i] != c) continue;
        leave_direct_locked(h, i);
        refs++;
    }
    if (h->conns[index] == c) {
        h->conns[index] = NULL;
        refs++;
        h->next_free[index] = 0;
        if (h->free_tail == 0)
            h->free_head = index + 1;
        else
            h->next_free[h->free_tail - 1] = (uint16_t)(index + 1);
        h->free_tail = index + 1;
        h->free_count++;
    }
    os_lock_leave(&h->lock);
    while (refs-- != 0)
        lo_conn_put(c);
}

bool lo_hub_any(struct lo_hub *h, bool (*fn)(struct lo_conn *c, const void *arg), const void *arg) {
    bool any = false;
    os_lock_enter(&h->lock);
    for (uint32_t i = 0; i < h->fresh && !any; i++)
        any = h->conns[i] && fn(h->conns[i], arg);
    os_lock_leave(&h->lock);
    return any;
}

/* ---- bells ---- */

/* Sets the bell. Not 0: the number of the sleep from which the caller must wake the board's owner.
 */
static uint32_t ring(struct lo_board *b, uint32_t index) {
    os_atomic_u64 *word = &b->bells[index / 64];
    uint64_t bit = 1ull << (index % 64);
    if (!(os_u64_load_seqcst(word) & bit)) {
        os_u64_fetch_or_seqcst(word, bit);
        os_u64_fetch_or_seqcst(&b->summary, 1ull << (index / 64 / LO_WORDS_PER_BIT));
    }
    return os_u32_load_seqcst(&b->sleeping);
}

/* Others need not wake it any more, unless it sleeps again. */
static void woken(struct lo_board *b, uint32_t sleep) {
    (void)os_u32_cas_acq_rel(&b->sleeping, &sleep, 0);
}

/* Somebody is wanted to wake us. */
static uint32_t next_sleep_locked(struct lo_hub *h) {
    if (++h->sleeps == 0) h->sleeps = 1;
    return h->sleeps;
}

uint32_t lo_peer_ring(struct lo_peer *p, uint32_t index) {
    return ring(p->board, index);
}

void lo_peer_woken(struct lo_peer *p, uint32_t sleep) {
    woken(p->board, sleep);
}

void lo_hub_again(struct lo_hub *h, uint32_t index) {
    uint32_t sleep = ring(h->board, index);
    if (sleep == 0) return;
    tp_timer_arm(&h->kick, 0);
    woken(h->board, sleep);
}

static void kicked(struct tp_timer *t) {
    (void)t; /* the thread is awake, that is all */
}

static struct lo_conn *get_conn(struct lo_hub *h, uint32_t index) {
    os_lock_enter(&h->lock);
    struct lo_conn *c = h->conns[index];
    if (c) lo_conn_get(c);
    os_lock_leave(&h->lock);
    return c;
}

static bool answer_word(struct lo_hub *h, uint32_t word) {
    if (os_u64_load_relaxed(&h->board->bells[word]) == 0) return false;
    uint64_t bits = os_u64_exchange_acq_rel(&h->board->bells[word], 0);
    for (; bits != 0; bits &= bits - 1) {
        struct lo_conn *c = get_conn(h, word * 64 + (uint32_t)__builtin_ctzll(bits));
        if (!c) continue;
        lo_conn_work(c);
        lo_conn_put(c);
    }
    return true;
}

static bool answer_bells(struct lo_hub *h) {
    bool did = false;
    if (os_u64_load_relaxed(&h->board->summary) == 0) return false;
    uint64_t sum = os_u64_exchange_acq_rel(&h->board->summary, 0);
    for (; sum != 0; sum &= sum - 1) {
        uint32_t first = (uint32_t)__builtin_ctzll(sum) * LO_WORDS_PER_BIT;
        for (uint32_t i = 0; i < LO_WORDS_PER_BIT; i++)
            did |= answer_word(h, first + i);
    }
    return did;
}

/* ---- direct polling ---- */

static void withdraw_locked(struct lo_hub *h, struct lo_conn *c) {
    lo_conn_set_polled(c, false);
    h->withdrawn_ns = os_now_ns();
}

/* A place for the connection: its own, a free one, or that of one which was asked to leave and has
 * lingered. LO_DIRECT: there is none now. */
static uint32_t find_place_locked(struct lo_hub *h, const struct lo_conn *c) {
    uint32_t place = h->direct_end;
    for (uint32_t i = 0; i < h->direct_end; i++) {
        if (h->direct[i] == c) return i == h->leaving ? LO_DIRECT : i;
        if (!h->direct[i]) place = i;
    }
    if (place < LO_DIRECT) return place;
    if (h->leaving == LO_DIRECT) h->leaving = h->direct_next++ % LO_DIRECT;
    struct lo_conn *other = h->direct[h->leaving];
    if (lo_conn_is_polled(other)) withdraw_locked(h, other);
    return os_now_ns() - h->withdrawn_ns >= h->linger_ns ? h->leaving : LO_DIRECT;
}

/* Returns whose place it has taken, or NULL. */
static struct lo_conn *make_direct_locked(struct lo_hub *h, struct lo_conn *c) {
    uint32_t place = find_place_locked(h, c);
    if (place == LO_DIRECT) return NULL;
    struct lo_conn *other = h->direct[place];
    if (other != c) lo_conn_get(c);
    h->direct[place] = c;
    h->direct_end = SN_MAX(h->direct_end, place + 1);
    if (place == h->leaving) h->leaving = LO_DIRECT;
    lo_conn_set_polled(c, true);
    return other != c ? other : NULL;
}

void lo_hub_polled(struct lo_hub *h, struct lo_conn *c) {
    struct lo_conn *evicted = NULL;
    if (!tp_engine_is_hot(h->eng)) return; /* who waits is not told in this way */
    if (!os_lock_try(&h->lock)) return;    /* the next poll will do */
    if (!h->asleep && !lo_conn_is_polled(c) && lo_conn_in_use(c))
        evicted = make_direct_locked(h, c);
    os_lock_leave(&h->lock);
    if (!evicted) return;
    if (lo_conn_has_input(evicted)) lo_hub_again(h, evicted->index);
    lo_conn_put(evicted);
}

static bool poll_direct(struct lo_hub *h) {
    struct lo_conn *ready[LO_DIRECT];
    uint32_t n = 0;
    if (!os_lock_try(&h->lock)) return false;
    for (uint32_t i = 0; i < h->direct_end; i++) {
        struct lo_conn *c = h->direct[i];
        if (!c || !lo_conn_has_input(c)) continue;
        lo_conn_get(c);
        ready[n++] = c;
    }
    os_lock_leave(&h->lock);
    for (uint32_t i = 0; i < n; i++) {
        lo_conn_work(ready[i]);
        lo_conn_put(ready[i]);
    }
    return n != 0;
}

static bool poll(struct tp_source *s) {
    struct lo_hub *h = hub_of(s);
    bool did = poll_direct(h);
    return answer_bells(h) || did;
}

/* Nobody is polled any more. Gives those who have to be looked at, with a reference each, and how
 * long it may be until they are looked at again. */
static uint32_t withdraw_all_locked(struct lo_hub *h, struct lo_conn **look, uint64_t *most) {
    uint32_t n = 0;
    h->leaving = LO_DIRECT;
    for (uint32_t i = 0; i < h->direct_end; i++) {
        struct lo_conn *c = h->direct[i];
        if (!c) continue;
        if (lo_conn_is_polled(c)) withdraw_locked(h, c);
        look[n++] = c;
    }
    if (n == 0) return 0;
    uint64_t since = os_now_ns() - h->withdrawn_ns;
    if (since >= h->linger_ns) {
        memset(h->direct, 0, sizeof h->direct);
        h->direct_end = 0;
    } else {
        *most = h->linger_ns - since;
        for (uint32_t i = 0; i < n; i++)
            lo_conn_get(look[i]);
    }
    return n;
}

static uint64_t before_sleep(struct tp_source *s) {
    struct lo_hub *h = hub_of(s);
    struct lo_conn *look[LO_DIRECT];
    uint64_t most = OS_FOREVER;
    os_lock_enter(&h->lock);
    h->asleep = true;
    uint32_t n = withdraw_all_locked(h, look, &most);
    os_u32_store_seqcst(&h->board->sleeping, next_sleep_locked(h));
    os_lock_leave(&h->lock);
    os_fence_seqcst(); /* pairs with the peers' between what they write and their look at us */
    for (uint32_t i = 0; i < n; i++) {
        if (lo_conn_has_input(look[i])) {
            lo_hub_again(h, look[i]->index);
            most = 0;
        }
        lo_conn_put(look[i]);
    }
    return os_u64_load_seqcst(&h->board->summary) != 0 ? 0 : most;
}

static void after_sleep(struct tp_source *s) {
    struct lo_hub *h = hub_of(s);
    os_lock_enter(&h->lock);
    h->asleep = false;
    os_u32_store_seqcst(&h->board->sleeping, 0);
    os_lock_leave(&h->lock);
}

void lo_hub_heard(struct lo_hub *h) {
    os_lock_enter(&h->lock);
    bool asleep = h->asleep;
    if (asleep) os_u32_store_seqcst(&h->board->sleeping, next_sleep_locked(h));
    os_lock_leave(&h->lock);
    os_fence_seqcst();
    if (asleep && os_u64_load_seqcst(&h->board->summary) != 0) tp_timer_arm(&h->kick, 0);
}

/* ---- the end of tokens and connections ---- */

/* A step of waiting; they get longer. Nobody wakes. */
static void pause_step(uint32_t i) {
    static os_atomic_u32 never;
    if (i < SPINS)
        os_cpu_relax();
    else if (i < SPINS + YIELDS)
        os_thread_yield();
    else
        os_wait_on(&never, 0, os_now_ns() + OS_NS_PER_MS);
}

/* Waits as long as the peer says that it copies, and lives. */
static void wait_while(const struct lo_conn *c, bool (*copies)(const struct lo_conn *, uint32_t),
                       uint32_t token) {
    for (uint32_t i = 0; copies(c, token); i++) {
        if (i >= SPINS && i % 16 == 0 && (!c->peer || !lo_peer_alive(c->peer))) break;
        pause_step(i);
    }
}

static bool copies_token(const struct lo_conn *c, uint32_t token) {
    return os_u32_load_seqcst(&c->theirs->busy[0]) == token ||
           os_u32_load_seqcst(&c->theirs->busy[1]) == token;
}

static bool copies_any(const struct lo_conn *c, uint32_t token) {
    (void)token;
    return os_u32_load_seqcst(&c->theirs->busy[0]) != 0 ||
           os_u32_load_seqcst(&c->theirs->busy[1]) != 0;
}

static void drain(struct tp_share_guests *g, uint32_t token) {
    struct lo_hub *h = SN_CONTAINER(g, struct lo_hub, guests);
    os_lock_enter(&h->lock);
    for (uint32_t index = 0; index < h->fresh; index++) {
        struct lo_conn *c = h->conns[index];
        if (!c || !copies_token(c, token)) continue;
        lo_conn_get(c);
        os_lock_leave(&h->lock);
        wait_while(c, copies_token, token);
        lo_conn_put(c);
        os_lock_enter(&h->lock);
    }
    os_lock_leave(&h->lock);
}

void lo_hub_settle_cell(const struct lo_conn *c) {
    wait_while(c, copies_any, 0);
}

void lo_hub_watch_share(struct lo_hub *h, struct tp_share *share) {
    if (share && os_ptr_load_relaxed(&share->guests) != &h->guests)
        os_ptr_store_seqcst(&share->guests, &h->guests);
}

/* ---- create ---- */

static void free_hub(struct tp_source *s) {
    struct lo_hub *h = hub_of(s);
    os_lock_fini(&h->lock);
    os_shm_close(&h->board_shm);
    os_free(h);
}

sn_status lo_hub_get(struct tp_engine *eng, struct lo_hub **out) {
    struct tp_source *there = tp_engine_source(eng);
    if (there) {
        *out = hub_of(there);
        return SN_OK;
    }
    struct lo_hub *h = os_zalloc(sizeof *h);
    if (!h) return SN_E_NOMEM;
    sn_status st = os_shm_create(sizeof(struct lo_board), &h->board_shm);
    if (st != SN_OK) {
        os_free(h);
        return st;
    }
    h->source = (struct tp_source){
        .poll = poll, .before_sleep = before_sleep, .after_sleep = after_sleep, .on_gone = free_hub
    };
    h->guests.drain = drain;
    h->eng = eng;
    h->leaving = LO_DIRECT;
    h->linger_ns = LO_LINGER_NS;
    h->board = h->board_shm.base;
    os_random_bytes(h->id, sizeof h->id);
    os_lock_init(&h->lock, OS_RANK_LEAF);
    sn_list_init(&h->peers);
    tp_timer_init(&h->kick, eng, kicked);
    h->direct_copy = lo_config_get().direct_copy;
    if (h->direct_copy && os_peer_allow() != SN_OK)
        SN_LOG(SN_LOG_INFO, "local: the system does not let peers copy from this process");
    there = tp_engine_add_source(eng, &h->source);
    if (there != &h->source) free_hub(&h->source);
    *out = hub_of(there);
    return SN_OK;
}
