/* SPDX-License-Identifier: MIT
 * wait_test.c - WaitForSingleObject and WaitForMultipleObjects with several threads.
 */
#include "threads.h"
#include <sys/eventfd.h>
#include <unistd.h>
#include "win32/softnd_file.h"

struct waiting {
    HANDLE handles[MAXIMUM_WAIT_OBJECTS];
    DWORD count;
    BOOL all;
    DWORD timeout_ms;
    DWORD result;
    DWORD error;
    atomic_uint *satisfied; /* counts, if not NULL */
};

static void *wait_for(void *arg) {
    struct waiting *w = arg;
    w->result = w->count == 1 ? WaitForSingleObject(w->handles[0], w->timeout_ms)
                              : WaitForMultipleObjects(w->count, w->handles, w->all, w->timeout_ms);
    w->error = GetLastError();
    if (w->satisfied && w->result < w->count) atomic_fetch_add(w->satisfied, 1);
    return NULL;
}

static void single_wait_sleeping_is_woken_by_set(void) {
    for (BOOL manual = FALSE; manual <= TRUE; manual++) {
        HANDLE e = CreateEventW(NULL, manual, FALSE, NULL);
        struct waiting w = { .handles = { e }, .count = 1, .timeout_ms = INFINITE };
        pthread_t t = start_thread(wait_for, &w);
        await_waiters(e, 1);
        CHECK(SetEvent(e));
        pthread_join(t, NULL);
        CHECK_EQ(w.result, WAIT_OBJECT_0);
        CHECK_EQ(WaitForSingleObject(e, 0), manual ? WAIT_OBJECT_0 : WAIT_TIMEOUT);
        CHECK(CloseHandle(e));
    }
}

static void timed_wait_without_signal_takes_its_time(void) {
    HANDLE e = CreateEventW(NULL, FALSE, FALSE, NULL);
    int64_t begin = wa_now_ns();
    CHECK_EQ(WaitForSingleObject(e, 30), WAIT_TIMEOUT);
    CHECK(wa_now_ns() - begin >= 30 * 1000000);
    HANDLE two[] = { e, e };
    begin = wa_now_ns();
    CHECK_EQ(WaitForMultipleObjects(2, two, FALSE, 30), WAIT_TIMEOUT);
    CHECK(wa_now_ns() - begin >= 30 * 1000000);
    begin = wa_now_ns();
    Sleep(20);
    CHECK(wa_now_ns() - begin >= 20 * 1000000);
    Sleep(0);
    CHECK(CloseHandle(e));
}

struct count_wanted {
    atomic_uint *count;
    unsigned wanted;
};

static bool count_reached(void *arg) {
    const struct count_wanted *c = arg;
    return atomic_load(c->count) >= c->wanted;
}

static void auto_event_set_wakes_exactly_one_of_many(void) {
    enum { N = 5 };
    HANDLE e = CreateEventW(NULL, FALSE, FALSE, NULL);
    atomic_uint satisfied = 0;
    struct waiting w[N];
    pthread_t t[N];
    for (int i = 0; i < N; i++) {
        w[i] = (struct waiting){
            .handles = { e }, .count = 1, .timeout_ms = INFINITE, .satisfied = &satisfied
        };
        t[i] = start_thread(wait_for, &w[i]);
    }
    for (unsigned left = N; left > 0; left--) {
        await_waiters(e, left);
        CHECK_EQ(atomic_load(&satisfied), N - left);
        CHECK(SetEvent(e));
        struct count_wanted one_more = { &satisfied, N - left + 1 };
        await(count_reached, &one_more, "woken thread");
    }
    for (int i = 0; i < N; i++)
        pthread_join(t[i], NULL);
    CHECK_EQ(atomic_load(&satisfied), N);
    CHECK_EQ(WaitForSingleObject(e, 0), WAIT_TIMEOUT);
    CHECK(CloseHandle(e));
}

static void manual_event_set_wakes_all(void) {
    enum { N = 5 };
    HANDLE e = CreateEventW(NULL, TRUE, FALSE, NULL);
    struct waiting w[N];
    pthread_t t[N];
    for (int i = 0; i < N; i++) {
        w[i] = (struct waiting){ .handles = { e }, .count = 1, .timeout_ms = INFINITE };
        t[i] = start_thread(wait_for, &w[i]);
    }
    await_waiters(e, N);
    CHECK(SetEvent(e));
    for (int i = 0; i < N; i++) {
        pthread_join(t[i], NULL);
        CHECK_EQ(w[i].result, WAIT_OBJECT_0);
    }
    CHECK(CloseHandle(e));
}

static void any_wait_returns_the_lowest_signaled_and_takes_only_that(void) {
    HANDLE e[3];
    for (int i = 0; i < 3; i++)
        e[i] = CreateEventW(NULL, FALSE, i > 0, NULL);
    CHECK_EQ(WaitForMultipleObjects(3, e, FALSE, INFINITE), WAIT_OBJECT_0 + 1);
    CHECK_EQ(WaitForMultipleObjectsEx(3, e, FALSE, 0, TRUE), WAIT_OBJECT_0 + 2);
    CHECK_EQ(WaitForMultipleObjects(3, e, FALSE, 0), WAIT_TIMEOUT);
    for (int i = 0; i < 3; i++)
        CHECK(CloseHandle(e[i]));
}

static void any_wait_sleeping_returns_the_one_that_is_set(void) {
    HANDLE e[3];
    for (int i = 0; i < 3; i++)
        e[i] = CreateEventW(NULL, FALSE, FALSE, NULL);
    for (DWORD k = 0; k < 3; k++) {
        struct waiting w = { .handles = { e[0], e[1], e[2] }, .count = 3, .timeout_ms = INFINITE };
        pthread_t t = start_thread(wait_for, &w);
        await_waiters(e[2], 1); /* the last to be queued */
        CHECK(SetEvent(e[k]));
        pthread_join(t, NULL);
        CHECK_EQ(w.result, WAIT_OBJECT_0 + k);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(waiters_of(e[i]), 0);
    }
    for (int i = 0; i < 3; i++)
        CHECK(CloseHandle(e[i]));
}

static void all_wait_takes_nothing_until_all_are_signaled(void) {
    HANDLE e[3] = { CreateEventW(NULL, FALSE, FALSE, NULL), CreateEventW(NULL, TRUE, FALSE, NULL),
                    CreateEventW(NULL, FALSE, FALSE, NULL) };
    struct waiting w = {
        .handles = { e[0], e[1], e[2] }, .count = 3, .all = TRUE, .timeout_ms = INFINITE
    };
    pthread_t t = start_thread(wait_for, &w);
    await_waiters(e[2], 1);
    CHECK(SetEvent(e[0]));
    CHECK(SetEvent(e[1]));
    CHECK_EQ(WaitForSingleObject(e[0], 0), WAIT_OBJECT_0); /* still there for others */
    CHECK(SetEvent(e[2]));
    CHECK_EQ(waiters_of(e[0]), 1); /* not satisfied: e[0] was taken */
    CHECK(SetEvent(e[0]));
    pthread_join(t, NULL);
    CHECK_EQ(w.result, WAIT_OBJECT_0);
    CHECK_EQ(WaitForSingleObject(e[0], 0), WAIT_TIMEOUT);
    CHECK_EQ(WaitForSingleObject(e[1], 0), WAIT_OBJECT_0);
    CHECK_EQ(WaitForSingleObject(e[2], 0), WAIT_TIMEOUT);
    for (int i = 0; i < 3; i++)
        CHECK(CloseHandle(e[i]));
}

static void all_wait_timing_out_takes_nothing(void) {
    HANDLE e[2] = { CreateEventW(NULL, FALSE, TRUE, NULL), CreateEventW(NULL, FALSE, FALSE, NULL) };
    CHECK_EQ(WaitForMultipleObjects(2, e, TRUE, 0), WAIT_TIMEOUT);
    CHECK_EQ(WaitForMultipleObjects(2, e, TRUE, 20), WAIT_TIMEOUT);
    CHECK_EQ(WaitForSingleObject(e[0], 0), WAIT_OBJECT_0);
    CHECK(CloseHandle(e[0]) && CloseHandle(e[1]));
}

static void two_all_waits_share_signals_without_deadlock(void) {
    HANDLE a = CreateEventW(NULL, FALSE, FALSE, NULL), b = CreateEventW(NULL, FALSE, FALSE, NULL);
    atomic_uint satisfied = 0;
    struct waiting w[2] = {
        { .handles = { a, b }, .count = 2, .all = TRUE, .timeout_ms = INFINITE },
        { .handles = { b, a }, .count = 2, .all = TRUE, .timeout_ms = INFINITE },
    };
    pthread_t t[2];
    for (int i = 0; i < 2; i++) {
        w[i].satisfied = &satisfied;
        t[i] = start_thread(wait_for, &w[i]);
    }
    await_waiters(a, 2);
    await_waiters(b, 2);
    CHECK(SetEvent(a) && SetEvent(b));
    await_waiters(a, 1);
    CHECK(SetEvent(b) && SetEvent(a));
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    CHECK_EQ(atomic_load(&satisfied), 2);
    CHECK(CloseHandle(a) && CloseHandle(b));
}

static void wait_with_bad_arguments_fails(void) {
    HANDLE e = CreateEventW(NULL, TRUE, TRUE, NULL);
    HANDLE many[MAXIMUM_WAIT_OBJECTS + 1];
    for (size_t i = 0; i < SN_ARRAY_LEN(many); i++)
        many[i] = e;
    CHECK_EQ(WaitForMultipleObjects(0, many, FALSE, 0), WAIT_FAILED);
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    CHECK_EQ(WaitForMultipleObjects(MAXIMUM_WAIT_OBJECTS + 1, many, FALSE, 0), WAIT_FAILED);
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    CHECK_EQ(WaitForMultipleObjects(1, NULL, FALSE, 0), WAIT_FAILED);
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    CHECK_EQ(WaitForMultipleObjects(2, many, TRUE, 0), WAIT_FAILED); /* the same one twice */
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    CHECK_EQ(WaitForMultipleObjects(2, many, FALSE, 0), WAIT_OBJECT_0);
    many[1] = NULL;
    CHECK_EQ(WaitForMultipleObjects(2, many, FALSE, 0), WAIT_FAILED);
    CHECK_EQ(GetLastError(), ERROR_INVALID_HANDLE);
    CHECK(CloseHandle(e));
}

static void wait_for_full_set_of_64_works(void) {
    struct waiting w = { .count = MAXIMUM_WAIT_OBJECTS, .timeout_ms = INFINITE };
    for (int i = 0; i < MAXIMUM_WAIT_OBJECTS; i++)
        w.handles[i] = CreateEventW(NULL, FALSE, FALSE, NULL);
    for (BOOL all = FALSE; all <= TRUE; all++) {
        w.all = all;
        pthread_t t = start_thread(wait_for, &w);
        await_waiters(w.handles[MAXIMUM_WAIT_OBJECTS - 1], 1);
        for (int i = all ? 0 : MAXIMUM_WAIT_OBJECTS - 1; i < MAXIMUM_WAIT_OBJECTS; i++)
            CHECK(SetEvent(w.handles[i]));
        pthread_join(t, NULL);
        CHECK_EQ(w.result, all ? WAIT_OBJECT_0 : WAIT_OBJECT_0 + MAXIMUM_WAIT_OBJECTS - 1);
    }
    for (int i = 0; i < MAXIMUM_WAIT_OBJECTS; i++)
        CHECK(CloseHandle(w.handles[i]));
}

static void event_closed_during_wait_keeps_the_waiter_safe(void) {
    HANDLE e = CreateEventW(NULL, FALSE, FALSE, NULL);
    unsigned before = wa_object_count();
    struct waiting w = { .handles = { e }, .count = 1, .timeout_ms = 50 };
    pthread_t t = start_thread(wait_for, &w);
    CHECK(CloseHandle(e));
    pthread_join(t, NULL);
    /* Closed before it began: bad handle; during the wait: the wait runs its time. */
    CHECK(w.result == WAIT_TIMEOUT || (w.result == WAIT_FAILED && w.error == ERROR_INVALID_HANDLE));
    CHECK_EQ(wa_object_count(), before - 1);
}

/* Tokens: each SetEvent on an auto-reset event while it is unsignaled must satisfy one wait, in
 * whatever mixture of single waits, waits for any and short timeouts. */
static atomic_uint taken;
static atomic_bool finished;

struct contender {
    HANDLE own, other;
};

static void *contend(void *arg) {
    struct contender *c = arg;
    HANDLE both[] = { c->other, c->own };
    for (unsigned i = 0; !atomic_load(&finished); i++) {
        DWORD r = i % 3 == 0   ? WaitForSingleObject(c->own, 1)
                  : i % 3 == 1 ? WaitForMultipleObjects(2, both, FALSE, 1)
                               : WaitForSingleObject(c->own, 0);
        if (r != WAIT_TIMEOUT) atomic_fetch_add(&taken, 1);
    }
    return NULL;
}

static bool all_taken(void *arg) {
    return atomic_load(&taken) == *(unsigned *)arg;
}

static void tokens_are_neither_lost_nor_doubled_under_contention(void) {
    enum { TOKENS = 2000, THREADS = 3 };
    HANDLE never = CreateEventW(NULL, FALSE, FALSE, NULL);
    HANDLE e = CreateEventW(NULL, FALSE, FALSE, NULL);
    struct contender c = { e, never };
    pthread_t t[THREADS];
    atomic_store(&taken, 0);
    atomic_store(&finished, false);
    for (int i = 0; i < THREADS; i++)
        t[i] = start_thread(contend, &c);
    for (unsigned given = 1; given <= TOKENS; given++) {
        SetEvent(e);
        int64_t deadline = wa_deadline(PATIENCE_MS);
        while (!all_taken(&given) && wa_now_ns() < deadline)
            Sleep(0);
        if (!all_taken(&given)) break;
    }
    unsigned got = atomic_load(&taken);
    atomic_store(&finished, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    CHECK_EQ(got, TOKENS);
    CHECK_EQ(atomic_load(&taken), TOKENS);
    CHECK(CloseHandle(e) && CloseHandle(never));
}

/* ---- a thread that sleeps in a provider's place ---- */

/* Its work is a descriptor that becomes readable, upon which it sets an event. */
struct fake_provider {
    int bell;
    HANDLE event; /* [const while led] set by work, if not NULL */
    atomic_uint begun, ended, slept, woken;
    atomic_int others;  /* what end was told */
    atomic_bool asleep; /* inside sleep, or about to be */
    bool refuses;
    bool was_asleep; /* somebody else sleeps until begin, and takes the wakes that come then */
};

static BOOL fake_begin(void *context) {
    struct fake_provider *p = context;
    uint64_t n;
    atomic_fetch_add(&p->begun, 1);
    while (p->was_asleep && read(p->bell, &n, sizeof n) != sizeof n)
        sched_yield();
    return !p->refuses;
}

static void fake_sleep(void *context, LONGLONG deadline_ns) {
    struct fake_provider *p = context;
    struct pollfd ready = { .fd = p->bell, .events = POLLIN };
    int64_t left = deadline_ns == WA_NEVER ? -1 : (deadline_ns - wa_now_ns()) / 1000000;
    atomic_fetch_add(&p->slept, 1);
    atomic_store(&p->asleep, true);
    (void)poll(&ready, 1, left < 0 && deadline_ns != WA_NEVER ? 0 : (int)left);
    atomic_store(&p->asleep, false);
}

static BOOL fake_work(void *context) {
    struct fake_provider *p = context;
    uint64_t n;
    if (read(p->bell, &n, sizeof n) == sizeof n && p->event) SetEvent(p->event);
    return TRUE;
}

static void ring(struct fake_provider *p) {
    uint64_t one = 1;
    CHECK_EQ(write(p->bell, &one, sizeof one), (ssize_t)sizeof one);
}

static void fake_wake(void *context) {
    struct fake_provider *p = context;
    atomic_fetch_add(&p->woken, 1);
    ring(p);
}

static void fake_end(void *context, BOOL others_sleep) {
    struct fake_provider *p = context;
    atomic_store(&p->others, others_sleep);
    atomic_fetch_add(&p->ended, 1);
}

static const SOFTND_WAIT_HOOK fake_hook = { fake_begin, fake_sleep, fake_work, fake_wake,
                                            fake_end };

static void provider_up(struct fake_provider *p) {
    memset(p, 0, sizeof *p);
    p->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    CHECK(p->bell >= 0);
    SoftNdSetWaitHook(&fake_hook, p);
}

static void provider_down(struct fake_provider *p) {
    SoftNdSetWaitHook(NULL, NULL);
    CHECK_EQ(atomic_load(&p->begun) - (p->refuses ? atomic_load(&p->begun) : 0),
             atomic_load(&p->ended));
    close(p->bell);
}

static bool provider_asleep(void *arg) {
    return atomic_load(&((struct fake_provider *)arg)->asleep);
}

static void leading_wait_is_ended_by_its_own_work_without_a_wake(void) {
    struct fake_provider p;
    provider_up(&p);
    p.event = CreateEventW(NULL, FALSE, FALSE, NULL);
    ring(&p);
    CHECK_EQ(WaitForSingleObject(p.event, INFINITE), WAIT_OBJECT_0);
    CHECK_EQ(atomic_load(&p.begun), 1);
    CHECK_EQ(atomic_load(&p.woken), 0);
    CHECK_EQ(WaitForSingleObject(p.event, 0), WAIT_TIMEOUT);
    provider_down(&p);
    CHECK(CloseHandle(p.event));
}

static void leading_wait_is_ended_by_another_thread(void) {
    struct fake_provider p;
    provider_up(&p);
    HANDLE e = CreateEventW(NULL, FALSE, FALSE, NULL);
    for (int i = 0; i < 200; i++) {
        struct waiting w = { .handles = { e }, .count = 1, .timeout_ms = INFINITE };
        pthread_t t = start_thread(wait_for, &w);
        if (i % 2 == 0) await(provider_asleep, &p, "leader asleep");
        CHECK(SetEvent(e)); /* else whenever it comes */
        pthread_join(t, NULL);
        CHECK_EQ(w.result, WAIT_OBJECT_0);
    }
    CHECK(atomic_load(&p.woken) >= 100);
    provider_down(&p);
    CHECK(CloseHandle(e));
}

static void leading_wait_without_signal_takes_its_time(void) {
    struct fake_provider p;
    provider_up(&p);
    HANDLE e = CreateEventW(NULL, FALSE, FALSE, NULL);
    int64_t begin = wa_now_ns();
    CHECK_EQ(WaitForSingleObject(e, 30), WAIT_TIMEOUT);
    CHECK(wa_now_ns() - begin >= 30 * 1000000);
    CHECK_EQ(atomic_load(&p.begun), 1);
    CHECK_EQ(WaitForSingleObject(e, 1), WAIT_TIMEOUT); /* too short to lead */
    CHECK_EQ(atomic_load(&p.begun), 1);
    provider_down(&p);
    CHECK(CloseHandle(e));
}

static void wait_beside_a_sleeper_does_not_lead(void) {
    struct fake_provider p;
    HANDLE first = CreateEventW(NULL, FALSE, FALSE, NULL);
    HANDLE second = CreateEventW(NULL, FALSE, FALSE, NULL);
    struct waiting w1 = { .handles = { first }, .count = 1, .timeout_ms = INFINITE };
    struct waiting w2 = { .handles = { second }, .count = 1, .timeout_ms = INFINITE };
    int64_t deadline = wa_deadline(PATIENCE_MS);
    bool told;
    provider_up(&p);
    do { /* until the second one was really asleep when the first one left */
        pthread_t t1 = start_thread(wait_for, &w1);
        await(provider_asleep, &p, "leader asleep");
        pthread_t t2 = start_thread(wait_for, &w2);
        await_waiters(second, 1);
        CHECK(SetEvent(first));
        pthread_join(t1, NULL);
        told = atomic_load(&p.others);
        if (told) {
            unsigned begun = atomic_load(&p.begun);
            t1 = start_thread(wait_for, &w1);
            await_waiters(first, 1);
            CHECK(SetEvent(first));
            pthread_join(t1, NULL);
            CHECK_EQ(atomic_load(&p.begun), begun);
        }
        CHECK(SetEvent(second));
        pthread_join(t2, NULL);
        CHECK_EQ(w2.result, WAIT_OBJECT_0);
    } while (!told && wa_now_ns() < deadline);
    CHECK(told);
    provider_down(&p);
    CHECK(CloseHandle(first));
    CHECK(CloseHandle(second));
}

static void hook_taken_away_leaves_the_wait_asleep(void) {
    struct fake_provider p;
    HANDLE e = CreateEventW(NULL, FALSE, FALSE, NULL);
    for (int i = 0; i < 50; i++) {
        struct waiting w = { .handles = { e }, .count = 1, .timeout_ms = INFINITE };
        provider_up(&p);
        pthread_t t = start_thread(wait_for, &w);
        await(provider_asleep, &p, "leader asleep");
        provider_down(&p); /* returns when it has left */
        CHECK(SetEvent(e));
        pthread_join(t, NULL);
        CHECK_EQ(w.result, WAIT_OBJECT_0);
    }
    CHECK(CloseHandle(e));
}

static bool provider_begun(void *arg) {
    return atomic_load(&((struct fake_provider *)arg)->begun) != 0;
}

static void hook_taken_away_while_the_lead_begins_is_not_slept_in(void) {
    struct fake_provider p;
    HANDLE e = CreateEventW(NULL, FALSE, FALSE, NULL);
    struct waiting w = { .handles = { e }, .count = 1, .timeout_ms = INFINITE };
    provider_up(&p);
    p.was_asleep = true;
    pthread_t t = start_thread(wait_for, &w);
    await(provider_begun, &p, "lead begun");
    provider_down(&p);
    CHECK_EQ(atomic_load(&p.slept), 0);
    CHECK(SetEvent(e));
    pthread_join(t, NULL);
    CHECK_EQ(w.result, WAIT_OBJECT_0);
    CHECK(CloseHandle(e));
}

static void refused_lead_sleeps_as_usual(void) {
    struct fake_provider p;
    HANDLE e = CreateEventW(NULL, FALSE, FALSE, NULL);
    struct waiting w = { .handles = { e }, .count = 1, .timeout_ms = INFINITE };
    provider_up(&p);
    p.refuses = true;
    pthread_t t = start_thread(wait_for, &w);
    await_waiters(e, 1);
    CHECK(SetEvent(e));
    pthread_join(t, NULL);
    CHECK_EQ(w.result, WAIT_OBJECT_0);
    CHECK_EQ(atomic_load(&p.slept), 0);
    provider_down(&p);
    CHECK(CloseHandle(e));
}

#define RELAY_THREADS 4
#define RELAY_ROUNDS 2000
struct relay {
    HANDLE in, out;
    unsigned got;
};

static void *run_relay(void *arg) {
    struct relay *r = arg;
    for (; r->got < RELAY_ROUNDS; r->got++) {
        if (WaitForSingleObject(r->in, PATIENCE_MS) != WAIT_OBJECT_0) return NULL;
        SetEvent(r->out);
    }
    return NULL;
}

/* A ring of threads, each waiting for the one before: any of them may lead, and no signal is lost.
 */
static void many_waiters_with_a_hook_lose_no_signal(void) {
    struct fake_provider p;
    struct relay r[RELAY_THREADS] = { 0 };
    pthread_t t[RELAY_THREADS];
    provider_up(&p);
    for (int i = 0; i < RELAY_THREADS; i++)
        r[i].in = CreateEventW(NULL, FALSE, i == 0, NULL);
    for (int i = 0; i < RELAY_THREADS; i++) {
        r[i].out = r[(i + 1) % RELAY_THREADS].in;
        t[i] = start_thread(run_relay, &r[i]);
    }
    for (int i = 0; i < RELAY_THREADS; i++) {
        pthread_join(t[i], NULL);
        CHECK_EQ(r[i].got, RELAY_ROUNDS);
    }
    provider_down(&p);
    for (int i = 0; i < RELAY_THREADS; i++)
        CHECK(CloseHandle(r[i].in));
}

TEST_MAIN(TEST(single_wait_sleeping_is_woken_by_set),
          TEST(timed_wait_without_signal_takes_its_time),
          TEST(auto_event_set_wakes_exactly_one_of_many), TEST(manual_event_set_wakes_all),
          TEST(any_wait_returns_the_lowest_signaled_and_takes_only_that),
          TEST(any_wait_sleeping_returns_the_one_that_is_set),
          TEST(all_wait_takes_nothing_until_all_are_signaled),
          TEST(all_wait_timing_out_takes_nothing),
          TEST(two_all_waits_share_signals_without_deadlock), TEST(wait_with_bad_arguments_fails),
          TEST(wait_for_full_set_of_64_works), TEST(event_closed_during_wait_keeps_the_waiter_safe),
          TEST(tokens_are_neither_lost_nor_doubled_under_contention),
          TEST(leading_wait_is_ended_by_its_own_work_without_a_wake),
          TEST(leading_wait_is_ended_by_another_thread),
          TEST(leading_wait_without_signal_takes_its_time),
          TEST(wait_beside_a_sleeper_does_not_lead),
          TEST(hook_taken_away_while_the_lead_begins_is_not_slept_in),
          TEST(hook_taken_away_leaves_the_wait_asleep), TEST(refused_lead_sleeps_as_usual),
          TEST(many_waiters_with_a_hook_lose_no_signal))
