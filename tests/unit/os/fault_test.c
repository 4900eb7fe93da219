/* SPDX-License-Identifier: MIT */
#include "os/prim/fault.h"
#include "os/io/addr.h"
#include "os/io/poller.h"
#include "os/prim/atomic.h"
#include "os/prim/thread.h"
#include "support/testing.h"

static void need_injection(void) {
    if (!os_fault_available()) SKIP("built without fault injection");
}

static bool alloc_works(void) {
    uint8_t *p = os_zalloc(64);
    for (int i = 0; p && i < 64; i++)
        CHECK_EQ(p[i], 0);
    if (p) memset(p, 1, 64);
    os_free(p);
    return p != NULL;
}

static void alloc_armed_fails_once_after_the_given_count(void) {
    need_injection();
    os_fault_arm(OS_FAULT_ALLOC, 2);
    CHECK(alloc_works());
    CHECK(alloc_works());
    CHECK(!os_fault_fired(OS_FAULT_ALLOC));
    CHECK(!alloc_works());
    CHECK(os_fault_fired(OS_FAULT_ALLOC));
    CHECK(alloc_works());
    CHECK(os_fault_fired(OS_FAULT_ALLOC));
    os_fault_arm(OS_FAULT_ALLOC, -1);
    CHECK(!os_fault_fired(OS_FAULT_ALLOC));
}

static void disarmed_nothing_fails(void) {
    os_fault_arm(OS_FAULT_ALLOC, -1);
    os_fault_arm(OS_FAULT_SYSCALL, -1);
    for (int i = 0; i < 100; i++) {
        CHECK(alloc_works());
        CHECK(!os_fault_hit(OS_FAULT_SYSCALL));
    }
}

static void kinds_are_counted_apart(void) {
    need_injection();
    os_fault_arm(OS_FAULT_SYSCALL, 0);
    CHECK(alloc_works());
    CHECK(os_fault_hit(OS_FAULT_SYSCALL));
    CHECK(!os_fault_hit(OS_FAULT_SYSCALL));
    CHECK(!os_fault_fired(OS_FAULT_ALLOC));
    os_fault_arm(OS_FAULT_SYSCALL, -1);
}

static os_atomic_u32 hits;
static void count_hits(void *arg) {
    (void)arg;
    for (int i = 0; i < 10000; i++)
        if (os_fault_hit(OS_FAULT_ALLOC)) os_u32_fetch_add_relaxed(&hits, 1);
}

static void armed_under_four_threads_fails_exactly_one(void) {
    need_injection();
    os_thread t[4];
    os_fault_arm(OS_FAULT_ALLOC, 20000);
    for (int i = 0; i < 4; i++)
        if (os_thread_start(&t[i], "hit", count_hits, NULL) != SN_OK) FAIL("no thread");
    for (int i = 0; i < 4; i++)
        os_thread_join(t[i]);
    CHECK_EQ(os_u32_load_relaxed(&hits), 1);
    CHECK(os_fault_fired(OS_FAULT_ALLOC));
    os_fault_arm(OS_FAULT_ALLOC, -1);
}

static void zalloc_of_zero_bytes_is_not_null(void) {
    void *p = os_zalloc(0);
    CHECK(p != NULL);
    os_free(p);
    os_free(NULL);
}

/* Every step of these create paths fails in turn; the leak check of the sanitizer builds sees what
 * a path forgets. */
static sn_status create_poller(void) {
    struct os_poller *p;
    sn_status st = os_poller_create(&p);
    if (st == SN_OK) os_poller_destroy(p);
    return st;
}

static sn_status list_interfaces(void) {
    struct os_netif *list;
    size_t count;
    sn_status st = os_netif_list(&list, &count);
    if (st == SN_OK) os_netif_free(list);
    return st;
}

static void walk(sn_status (*create)(void), enum os_fault_kind kind, int at_least) {
    for (int n = 0;; n++) {
        CHECK(n < 100);
        os_fault_arm(kind, n);
        sn_status st = create();
        bool fired = os_fault_fired(kind);
        os_fault_arm(kind, -1);
        if (!fired) {
            CHECK_EQ(st, SN_OK);
            CHECK(n >= at_least);
            return;
        }
        CHECK(st == SN_E_NOMEM || st == SN_E_RESOURCES);
    }
}

static void create_paths_with_each_step_failing_return_an_error(void) {
    need_injection();
    walk(create_poller, OS_FAULT_ALLOC, 1);
    walk(create_poller, OS_FAULT_SYSCALL, 3);
    walk(list_interfaces, OS_FAULT_ALLOC, 1);
    walk(list_interfaces, OS_FAULT_SYSCALL, 1);
}

TEST_MAIN(TEST(alloc_armed_fails_once_after_the_given_count), TEST(disarmed_nothing_fails),
          TEST(kinds_are_counted_apart), TEST(armed_under_four_threads_fails_exactly_one),
          TEST(zalloc_of_zero_bytes_is_not_null),
          TEST(create_paths_with_each_step_failing_return_an_error))
