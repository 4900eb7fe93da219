/* SPDX-License-Identifier: MIT
 * wait_test.c - WaitForSingleObject and WaitForMultipleObjects with several threads.
 */
#include "threads.h"

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

TEST_MAIN(TEST(single_wait_sleeping_is_woken_by_set),
          TEST(timed_wait_without_signal_takes_its_time),
          TEST(auto_event_set_wakes_exactly_one_of_many), TEST(manual_event_set_wakes_all),
          TEST(any_wait_returns_the_lowest_signaled_and_takes_only_that),
          TEST(any_wait_sleeping_returns_the_one_that_is_set),
          TEST(all_wait_takes_nothing_until_all_are_signaled),
          TEST(all_wait_timing_out_takes_nothing),
          TEST(two_all_waits_share_signals_without_deadlock), TEST(wait_with_bad_arguments_fails),
          TEST(wait_for_full_set_of_64_works), TEST(event_closed_during_wait_keeps_the_waiter_safe),
          TEST(tokens_are_neither_lost_nor_doubled_under_contention))
