/* SPDX-License-Identifier: MIT */
#include "base/base.h"
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "support/testing.h"

struct item {
    int number;
    struct sn_list link;
};

static struct sn_list head;
static struct item items[6];

static void fill_list(int count) {
    sn_list_init(&head);
    for (int i = 0; i < count; i++) {
        items[i].number = i;
        sn_list_init(&items[i].link);
        sn_list_push_back(&head, &items[i].link);
    }
}

/* The list as decimal digits, walked forward; checks the backward links on the way. */
static int digits(struct sn_list *h) {
    int n = 0;
    SN_LIST_FOR(it, h) {
        CHECK_PTR(it->next->prev, it);
        CHECK_PTR(it->prev->next, it);
        n = n * 10 + SN_CONTAINER(it, struct item, link)->number;
    }
    return n;
}

static void list_push_back_keeps_order(void) {
    fill_list(0);
    CHECK(sn_list_empty(&head));
    CHECK(sn_list_pop(&head) == NULL);
    fill_list(6);
    CHECK(!sn_list_empty(&head));
    CHECK_EQ(digits(&head), 12345);
}

static void list_remove_twice_is_harmless(void) {
    fill_list(5);
    sn_list_remove(&items[2].link);
    CHECK_EQ(digits(&head), 134);
    sn_list_remove(&items[2].link);
    CHECK_EQ(digits(&head), 134);
    CHECK(sn_list_empty(&items[2].link));
    sn_list_remove(&items[0].link);
    sn_list_remove(&items[4].link);
    CHECK_EQ(digits(&head), 13);
}

static void list_pop_takes_the_first_until_empty(void) {
    fill_list(3);
    for (int i = 0; i < 3; i++)
        CHECK_PTR(sn_list_pop(&head), &items[i].link);
    CHECK(sn_list_pop(&head) == NULL);
    CHECK(sn_list_empty(&head));
    CHECK(sn_list_empty(&items[0].link));
}

static void list_splice_appends_and_empties_the_source(void) {
    struct sn_list other;
    fill_list(5);
    sn_list_init(&other);
    sn_list_splice(&head, &other);
    CHECK_EQ(digits(&head), 1234);
    sn_list_splice(&other, &head);
    CHECK(sn_list_empty(&head));
    CHECK_EQ(digits(&other), 1234);
    items[5].number = 5;
    sn_list_init(&items[5].link);
    sn_list_push_back(&head, &items[5].link);
    sn_list_splice(&head, &other);
    CHECK_EQ(digits(&head), 501234);
    CHECK(sn_list_empty(&other));
}

static void list_for_safe_survives_removal_of_each(void) {
    fill_list(6);
    int seen = 0;
    SN_LIST_FOR_SAFE(it, next, &head) {
        seen++;
        if (SN_CONTAINER(it, struct item, link)->number % 2) sn_list_remove(it);
    }
    CHECK_EQ(seen, 6);
    CHECK_EQ(digits(&head), 24);
}

static void pow2_ceil_rounds_up(void) {
    CHECK_EQ(sn_pow2_ceil(0), 1);
    CHECK_EQ(sn_pow2_ceil(1), 1);
    CHECK_EQ(sn_pow2_ceil(2), 2);
    CHECK_EQ(sn_pow2_ceil(3), 4);
    CHECK_EQ(sn_pow2_ceil(4), 4);
    CHECK_EQ(sn_pow2_ceil(1025), 2048);
    CHECK_EQ(sn_pow2_ceil((1u << 31) - 1), 1u << 31);
    CHECK_EQ(sn_pow2_ceil(1u << 31), 1u << 31);
}

static void assert_false_aborts_and_true_does_not(void) {
    SN_ASSERT(1 + 1 == 2);
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit none = { 0, 0 };
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], 2);
        SN_ASSERT(1 + 1 == 3);
        _exit(0);
    }
    CHECK(pid > 0);
    close(ends[1]);
    char text[300];
    size_t have = 0;
    ssize_t n;
    while ((n = read(ends[0], text + have, sizeof text - 1 - have)) > 0)
        have += (size_t)n;
    text[have] = 0;
    close(ends[0]);
    int status;
    while (waitpid(pid, &status, 0) < 0)
        CHECK_EQ(errno, EINTR);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGABRT);
    CHECK(strstr(text, "1 + 1 == 3") != NULL);
    CHECK(strstr(text, "base_test.c:") != NULL);
}

TEST_MAIN(TEST(list_push_back_keeps_order), TEST(list_remove_twice_is_harmless),
          TEST(list_pop_takes_the_first_until_empty),
          TEST(list_splice_appends_and_empties_the_source),
          TEST(list_for_safe_survives_removal_of_each), TEST(pow2_ceil_rounds_up),
          TEST(assert_false_aborts_and_true_does_not))
