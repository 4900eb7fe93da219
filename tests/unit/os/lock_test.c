/* SPDX-License-Identifier: MIT */
#include "os/prim/lock.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "os/prim/clock.h"
#include "os/prim/thread.h"
#include "support/testing.h"

#define SECOND (1000 * OS_NS_PER_MS)

struct shared {
    os_lock lock;
    os_cond cond;
    uint64_t count; /* [lock] */
    bool flag;      /* [lock] */
    os_atomic_u32 tried;
};

static void init_shared(struct shared *s) {
    memset(s, 0, sizeof *s);
    os_lock_init(&s->lock, OS_RANK_QP);
    os_cond_init(&s->cond);
}

static void fini_shared(struct shared *s) {
    os_cond_fini(&s->cond);
    os_lock_fini(&s->lock);
}

static void add_many(void *arg) {
    struct shared *s = arg;
    for (int i = 0; i < 20000; i++) {
        os_lock_enter(&s->lock);
        s->count++;
        os_lock_leave(&s->lock);
    }
}

static void lock_taken_by_four_threads_excludes(void) {
    struct shared s;
    init_shared(&s);
    os_thread t[4];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(os_thread_start(&t[i], "adder", add_many, &s), SN_OK);
    for (int i = 0; i < 4; i++)
        os_thread_join(t[i]);
    CHECK_EQ(s.count, 80000);
    fini_shared(&s);
}

static void try_once(void *arg) {
    struct shared *s = arg;
    bool got = os_lock_try(&s->lock);
    if (got) os_lock_leave(&s->lock);
    os_u32_store_release(&s->tried, got ? 1 : 2);
}

static void try_of_held_lock_fails_of_free_lock_succeeds(void) {
    struct shared s;
    init_shared(&s);
    os_thread t;
    os_lock_enter(&s.lock);
    CHECK_EQ(os_thread_start(&t, "trier", try_once, &s), SN_OK);
    os_thread_join(t);
    os_lock_leave(&s.lock);
    CHECK_EQ(os_u32_load_acquire(&s.tried), 2);
    CHECK_EQ(os_thread_start(&t, "trier", try_once, &s), SN_OK);
    os_thread_join(t);
    CHECK_EQ(os_u32_load_acquire(&s.tried), 1);
    fini_shared(&s);
}

static void take_and_leave(void *arg) {
    struct shared *s = arg;
    os_lock_enter(&s->lock);
    os_lock_leave(&s->lock);
}

/* As when the owner looked for a mark, lost its processor and then stored: nobody wakes. */
static void lock_left_without_seeing_the_mark_is_taken_soon(void) {
    struct shared s;
    init_shared(&s);
    os_thread t;
    os_u32_store_release(&s.lock.word, 1);
    CHECK_EQ(os_thread_start(&t, "sleeper", take_and_leave, &s), SN_OK);
    while (os_u32_load_acquire(&s.lock.word) != 2)
        os_thread_yield();
    os_u32_store_release(&s.lock.word, 0);
    os_thread_join(t);
    CHECK_EQ(os_u32_load_acquire(&s.lock.word), 0);
    fini_shared(&s);
}

static void raise_flag(void *arg) {
    struct shared *s = arg;
    os_lock_enter(&s->lock);
    s->flag = true;
    os_cond_signal(&s->cond);
    os_lock_leave(&s->lock);
}

static void cond_signalled_wakes_the_waiter(void) {
    struct shared s;
    init_shared(&s);
    os_thread t;
    uint64_t deadline = os_now_ns() + 20 * SECOND;
    os_lock_enter(&s.lock);
    CHECK_EQ(os_thread_start(&t, "signaller", raise_flag, &s), SN_OK);
    bool in_time = true;
    while (!s.flag && in_time)
        in_time = os_cond_wait(&s.cond, &s.lock, deadline);
    os_lock_assert_held(&s.lock);
    os_lock_leave(&s.lock);
    os_thread_join(t);
    CHECK(in_time);
    /* For ever, too. */
    s.flag = false;
    os_lock_enter(&s.lock);
    CHECK_EQ(os_thread_start(&t, "signaller", raise_flag, &s), SN_OK);
    while (!s.flag)
        CHECK(os_cond_wait(&s.cond, &s.lock, OS_FOREVER));
    os_lock_leave(&s.lock);
    os_thread_join(t);
    fini_shared(&s);
}

static void wait_flag(void *arg) {
    struct shared *s = arg;
    os_lock_enter(&s->lock);
    s->count++;
    os_cond_broadcast(&s->cond);
    while (!s->flag)
        os_cond_wait(&s->cond, &s->lock, OS_FOREVER);
    os_lock_leave(&s->lock);
}

static void cond_broadcast_wakes_all_waiters(void) {
    struct shared s;
    init_shared(&s);
    os_thread t[3];
    for (int i = 0; i < 3; i++)
        CHECK_EQ(os_thread_start(&t[i], "waiter", wait_flag, &s), SN_OK);
    os_lock_enter(&s.lock);
    while (s.count < 3)
        CHECK(os_cond_wait(&s.cond, &s.lock, os_now_ns() + 20 * SECOND));
    s.flag = true;
    os_cond_broadcast(&s.cond);
    os_lock_leave(&s.lock);
    for (int i = 0; i < 3; i++)
        os_thread_join(t[i]);
    fini_shared(&s);
}

static void cond_deadline_passes_returns_false_and_not_early(void) {
    struct shared s;
    init_shared(&s);
    os_lock_enter(&s.lock);
    uint64_t deadline = os_now_ns() + 20 * OS_NS_PER_MS;
    while (os_cond_wait(&s.cond, &s.lock, deadline))
        continue;
    CHECK(os_now_ns() >= deadline);
    CHECK(!os_cond_wait(&s.cond, &s.lock, 1)); /* long ago */
    os_lock_leave(&s.lock);
    fini_shared(&s);
}

/* ---- the order check, in children that must abort ---- */

static os_lock low, high, high2;

static void nest_upward(void) {
    os_lock_enter(&low);
    os_lock_enter(&high);
    os_lock_leave(&low); /* any order */
    os_lock_leave(&high);
    os_lock_enter(&high);
    os_lock_leave(&high);
    os_lock_enter(&low);
    os_lock_leave(&low);
}
static void nest_downward(void) {
    os_lock_enter(&high);
    os_lock_enter(&low);
}
static void nest_equal(void) {
    os_lock_enter(&high);
    os_lock_enter(&high2);
}
static void nest_same(void) {
    os_lock_enter(&high);
    os_lock_enter(&high);
}
static void try_downward(void) {
    os_lock_enter(&high);
    if (!os_lock_try(&low)) _exit(3);
    os_lock_leave(&low);
    os_lock_leave(&high);
    nest_upward();
}
static void enter_above_tried(void) {
    if (!os_lock_try(&high)) _exit(3);
    os_lock_enter(&low); /* below what the try took */
}
static void leave_not_held(void) {
    os_lock_leave(&low);
}
static void assert_not_held(void) {
    os_lock_assert_held(&low);
}

/* Runs body in a child and returns how it ended: 0, or the signal. Its stderr goes to text. */
static int outcome_of(void (*body)(void), char *text, size_t size) {
    int ends[2];
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit none = { 0, 0 };
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], 2);
        os_lock_init(&low, OS_RANK_QP);
        os_lock_init(&high, OS_RANK_CQ);
        os_lock_init(&high2, OS_RANK_CQ);
        body();
        _exit(0);
    }
    close(ends[1]);
    CHECK(pid > 0);
    size_t have = 0;
    ssize_t n;
    while ((n = read(ends[0], text + have, size - 1 - have)) > 0)
        have += (size_t)n;
    text[have] = 0;
    close(ends[0]);
    int status;
    while (waitpid(pid, &status, 0) < 0)
        CHECK_EQ(errno, EINTR);
    if (WIFEXITED(status)) CHECK_EQ(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void check_allowed(void (*body)(void)) {
    char text[2000];
    if (outcome_of(body, text, sizeof text) != 0) FAIL("the child was ended: %s", text);
}

static void check_aborts(void (*body)(void), const char *first, const char *second) {
#ifndef SN_DEBUG_CHECKS
    (void)body;
    (void)first;
    (void)second;
    SKIP("built without SN_DEBUG_CHECKS");
#else
    char text[2000];
    CHECK_EQ(outcome_of(body, text, sizeof text), SIGABRT);
    if (!strstr(text, first) || !strstr(text, second)) FAIL("unexpected message: %s", text);
#endif
}

static void order_upward_is_allowed(void) {
    check_allowed(nest_upward);
}
static void order_downward_aborts_naming_both_ranks(void) {
    check_aborts(nest_downward, "rank 30", "rank 60");
}
static void order_equal_ranks_abort(void) {
    check_aborts(nest_equal, "of rank 60 while", "of rank 60\n");
}
static void order_same_lock_twice_aborts(void) {
    check_aborts(nest_same, "taking again", "rank 60");
}
static void order_try_downward_is_exempt(void) {
    check_allowed(try_downward);
}
static void order_below_a_tried_lock_aborts(void) {
    check_aborts(enter_above_tried, "rank 30", "rank 60");
}
static void leave_of_a_lock_not_held_aborts(void) {
    check_aborts(leave_not_held, "rank 30", "not held");
}
static void assert_held_of_a_lock_not_held_aborts(void) {
    check_aborts(assert_not_held, "rank 30", "should be held");
}

TEST_MAIN(TEST(order_upward_is_allowed), TEST(order_downward_aborts_naming_both_ranks),
          TEST(order_equal_ranks_abort), TEST(order_same_lock_twice_aborts),
          TEST(order_try_downward_is_exempt), TEST(order_below_a_tried_lock_aborts),
          TEST(leave_of_a_lock_not_held_aborts), TEST(assert_held_of_a_lock_not_held_aborts),
          TEST(lock_taken_by_four_threads_excludes),
          TEST(lock_left_without_seeing_the_mark_is_taken_soon),
          TEST(try_of_held_lock_fails_of_free_lock_succeeds), TEST(cond_signalled_wakes_the_waiter),
          TEST(cond_broadcast_wakes_all_waiters),
          TEST(cond_deadline_passes_returns_false_and_not_early))
