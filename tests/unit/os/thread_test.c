/* SPDX-License-Identifier: MIT */
#include "os/prim/thread.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "support/testing.h"

#define SECOND (1000 * OS_NS_PER_MS)

struct note {
    uint64_t self;
    char name[32];
    sigset_t mask;
    os_atomic_u32 done;
};

static void take_notes(void *arg) {
    struct note *n = arg;
    n->self = os_thread_self();
    pthread_getname_np(pthread_self(), n->name, sizeof n->name);
    pthread_sigmask(SIG_BLOCK, NULL, &n->mask);
    os_u32_store_release(&n->done, 1);
    os_wake_all(&n->done);
}

static bool wait_done(os_atomic_u32 *word) {
    uint64_t deadline = os_now_ns() + 20 * SECOND;
    while (os_u32_load_acquire(word) == 0)
        if (!os_wait_on(word, 0, deadline)) return false;
    return true;
}

static void start_runs_with_name_and_signals_blocked(void) {
    struct note n = { 0 };
    os_thread t;
    CHECK_EQ(os_thread_start(&t, "a name that is far too long", take_notes, &n), SN_OK);
    os_thread_join(t);
    CHECK_STR(n.name, "a name that is ");
    CHECK(n.self != 0);
    CHECK(n.self != os_thread_self());
    CHECK_EQ(os_thread_self(), os_thread_self());
    CHECK(sigismember(&n.mask, SIGINT) && sigismember(&n.mask, SIGUSR1));
    CHECK(sigismember(&n.mask, SIGALRM) && sigismember(&n.mask, SIGCHLD));
    CHECK(!sigismember(&n.mask, SIGSEGV) && !sigismember(&n.mask, SIGBUS));
    sigset_t own;
    pthread_sigmask(SIG_BLOCK, NULL, &own);
    CHECK(!sigismember(&own, SIGINT)); /* the starter's mask is as before */
}

static void detached_thread_runs(void) {
    static struct note n;
    os_thread t;
    CHECK_EQ(os_thread_start(&t, NULL, take_notes, &n), SN_OK);
    os_thread_detach(t);
    CHECK(wait_done(&n.done));
    CHECK_STR(n.name, "softnd");
}

static void start_without_resources_says_so(void) {
    if (!os_fault_available()) SKIP("built without fault injection");
    struct note n = { 0 };
    os_thread t;
    os_fault_arm(OS_FAULT_SYSCALL, 0);
    CHECK_EQ(os_thread_start(&t, "x", take_notes, &n), SN_E_RESOURCES);
    CHECK(os_fault_fired(OS_FAULT_SYSCALL));
    os_fault_arm(OS_FAULT_ALLOC, 0);
    CHECK_EQ(os_thread_start(&t, "x", take_notes, &n), SN_E_RESOURCES);
    os_fault_arm(OS_FAULT_ALLOC, -1);
    os_fault_arm(OS_FAULT_SYSCALL, -1);
}

/* ---- once ---- */

static os_once once = OS_ONCE_INIT;
static uint32_t once_runs; /* plain: once must order it for everybody */
static os_atomic_u32 once_wrong, once_entered;

static void run_slowly(void) {
    uint64_t deadline = os_now_ns() + 20 * SECOND;
    while (os_u32_load_acquire(&once_entered) < 4 && os_now_ns() < deadline)
        os_thread_yield();
    once_runs++;
}

static void enter_once(void *arg) {
    (void)arg;
    os_u32_fetch_add_acq_rel(&once_entered, 1);
    os_once_run(&once, run_slowly);
    if (once_runs != 1) os_u32_fetch_add_relaxed(&once_wrong, 1);
}

static void once_by_four_threads_runs_once_and_all_see_it(void) {
    os_thread t[4];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(os_thread_start(&t[i], "once", enter_once, NULL), SN_OK);
    for (int i = 0; i < 4; i++)
        os_thread_join(t[i]);
    CHECK_EQ(once_runs, 1);
    CHECK_EQ(os_u32_load_acquire(&once_wrong), 0);
}

/* ---- the wait word ---- */

struct pair {
    os_atomic_u32 ping, pong;
    uint32_t rounds;
};

static void answer(void *arg) {
    struct pair *p = arg;
    for (uint32_t i = 1; i <= p->rounds; i++) {
        while (os_u32_load_acquire(&p->ping) != i)
            os_wait_on(&p->ping, i - 1, OS_FOREVER);
        os_u32_store_release(&p->pong, i);
        os_wake_one(&p->pong);
    }
}

static void wait_word_ping_pong_loses_no_wake(void) {
    struct pair p = { .rounds = 5000 };
    os_thread t;
    CHECK_EQ(os_thread_start(&t, "answer", answer, &p), SN_OK);
    for (uint32_t i = 1; i <= p.rounds; i++) {
        os_u32_store_release(&p.ping, i);
        os_wake_one(&p.ping);
        uint64_t deadline = os_now_ns() + 20 * SECOND;
        while (os_u32_load_acquire(&p.pong) != i)
            if (!os_wait_on(&p.pong, i - 1, deadline)) FAIL("round %u was lost", i);
    }
    os_thread_join(t);
}

static void wait_word_other_value_returns_at_once(void) {
    os_atomic_u32 word = { 7 };
    CHECK(os_wait_on(&word, 6, OS_FOREVER));
    CHECK(os_wait_on(&word, 6, 1));
}

static void wait_word_deadline_passes_returns_false_and_not_early(void) {
    os_atomic_u32 word = { 7 };
    uint64_t deadline = os_now_ns() + 20 * OS_NS_PER_MS;
    while (os_wait_on(&word, 7, deadline))
        continue;
    CHECK(os_now_ns() >= deadline);
    CHECK(!os_wait_on(&word, 7, 1));
}

static os_atomic_u32 gate, passed;
static void pass_gate(void *arg) {
    (void)arg;
    while (os_u32_load_acquire(&gate) == 0)
        os_wait_on(&gate, 0, OS_FOREVER);
    os_u32_fetch_add_acq_rel(&passed, 1);
}

static void wake_all_lets_every_waiter_go(void) {
    os_thread t[3];
    for (int i = 0; i < 3; i++)
        CHECK_EQ(os_thread_start(&t[i], "gate", pass_gate, NULL), SN_OK);
    os_u32_store_release(&gate, 1);
    os_wake_all(&gate);
    for (int i = 0; i < 3; i++)
        os_thread_join(t[i]);
    CHECK_EQ(os_u32_load_acquire(&passed), 3);
}

/* ---- the module ---- */

static void module_path_names_this_file(void) {
    char path[4096], link[4096];
    CHECK(os_module_path(path, sizeof path));
    CHECK_EQ(path[0], '/');
    ssize_t n = readlink("/proc/self/exe", link, sizeof link - 1);
    CHECK(n > 0);
    link[n] = 0;
    CHECK_STR(path, link);
    CHECK(!os_module_path(path, (uint32_t)strlen(path)));
    os_pin_module();
    os_pin_module();
}

static os_atomic_u32 prompt_policy, prompt_nice, prompt_allowed;
static void become_prompt(void *arg) {
    (void)arg;
    os_thread_set_prompt(true);
    os_u32_store_relaxed(&prompt_policy, (uint32_t)sched_getscheduler(0));
    os_u32_store_relaxed(&prompt_nice, (uint32_t)getpriority(PRIO_PROCESS, 0));
    os_u32_store_relaxed(&prompt_allowed, setpriority(PRIO_PROCESS, 0, -10) == 0);
}

static void prompt_thread_keeps_policy_and_is_preferred_where_allowed(void) {
    os_thread t;
    CHECK_EQ(os_thread_start(&t, "prompt", become_prompt, NULL), SN_OK);
    os_thread_join(t);
    CHECK_EQ(os_u32_load_relaxed(&prompt_policy), (uint32_t)sched_getscheduler(0));
    int own = getpriority(PRIO_PROCESS, 0);
    bool preferred = os_u32_load_relaxed(&prompt_allowed) && own > -10;
    CHECK_EQ(os_u32_load_relaxed(&prompt_nice), (uint32_t)(preferred ? -10 : own));
}

static void process_id_is_the_systems(void) {
    CHECK_EQ(os_process_id(), getpid());
}

TEST_MAIN(TEST(start_runs_with_name_and_signals_blocked), TEST(detached_thread_runs),
          TEST(start_without_resources_says_so),
          TEST(once_by_four_threads_runs_once_and_all_see_it),
          TEST(wait_word_ping_pong_loses_no_wake), TEST(wait_word_other_value_returns_at_once),
          TEST(wait_word_deadline_passes_returns_false_and_not_early),
          TEST(wake_all_lets_every_waiter_go), TEST(module_path_names_this_file),
          TEST(prompt_thread_keeps_policy_and_is_preferred_where_allowed),
          TEST(process_id_is_the_systems))
