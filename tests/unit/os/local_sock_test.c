/* SPDX-License-Identifier: MIT */
#include "os/io/local_sock.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "os/io/poller.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "support/testing.h"

#define SECOND (1000 * OS_NS_PER_MS)

/* A name that nobody else has. */
static const char *fresh_name(void) {
    static char name[64];
    uint64_t random;
    os_random_bytes(&random, sizeof random);
    snprintf(name, sizeof name, "softnd-test-%d-%016llx", (int)getpid(),
             (unsigned long long)random);
    return name;
}

static void make_pair(os_sock s[2]) {
    os_sock listener;
    const char *name = fresh_name();
    CHECK_EQ(os_local_listen(name, 0, &listener), SN_OK);
    CHECK_EQ(os_local_connect(name, &s[0]), SN_OK);
    CHECK_EQ(os_local_accept(listener, &s[1]), SN_OK);
    os_sock_close(listener, false);
}

static void close_pair(os_sock s[2]) {
    os_sock_close(s[0], false);
    os_sock_close(s[1], false);
}

static int free_descriptor(void) {
    int fd = dup(0);
    close(fd);
    return fd;
}

/* ---- names ---- */

static void name_taken_is_in_use_until_closed(void) {
    os_sock a, b;
    const char *name = fresh_name();
    CHECK_EQ(os_local_listen(name, 0, &a), SN_OK);
    CHECK_EQ(os_local_listen(name, 0, &b), SN_E_ADDR_IN_USE);
    CHECK_EQ(b, OS_SOCK_NONE);
    os_sock_close(a, false);
    CHECK_EQ(os_local_listen(name, 0, &b), SN_OK);
    os_sock_close(b, false);
}

static void name_of_bad_length_is_refused(void) {
    char name[OS_LOCAL_NAME_MAX + 2];
    os_sock s;
    memset(name, 'n', sizeof name);
    name[OS_LOCAL_NAME_MAX + 1] = 0;
    CHECK_EQ(os_local_listen(name, 0, &s), SN_E_PARAM);
    CHECK_EQ(os_local_connect(name, &s), SN_E_PARAM);
    CHECK_EQ(os_local_listen("", 0, &s), SN_E_PARAM);
    snprintf(name, sizeof name, "%s", fresh_name());
    memset(name + strlen(name), 'n', OS_LOCAL_NAME_MAX - strlen(name));
    name[OS_LOCAL_NAME_MAX] = 0;
    os_sock t;
    CHECK_EQ(os_local_listen(name, 0, &s), SN_OK);
    CHECK_EQ(os_local_connect(name, &t), SN_OK);
    /* One byte less is another name. */
    os_sock other;
    name[OS_LOCAL_NAME_MAX - 1] = 0;
    CHECK_EQ(os_local_connect(name, &other), SN_E_REFUSED);
    CHECK_EQ(other, OS_SOCK_NONE);
    os_sock_close(s, false);
    os_sock_close(t, false);
}

static void connect_to_full_queue_is_again(void) {
    os_sock listener, s[64];
    const char *name = fresh_name();
    CHECK_EQ(os_local_listen(name, 1, &listener), SN_OK);
    int n = 0;
    sn_status st = SN_OK;
    while (n < 64 && (st = os_local_connect(name, &s[n])) == SN_OK)
        n++;
    CHECK_EQ(st, SN_E_AGAIN);
    CHECK(n >= 1);
    while (n-- > 0)
        os_sock_close(s[n], false);
    os_sock_close(listener, false);
}

static void accept_with_nobody_waiting_is_again(void) {
    os_sock listener, out;
    CHECK_EQ(os_local_listen(fresh_name(), 0, &listener), SN_OK);
    CHECK_EQ(os_local_accept(listener, &out), SN_E_AGAIN);
    CHECK_EQ(out, OS_SOCK_NONE);
    os_sock_close(listener, false);
    os_sock s[2];
    make_pair(s);
    CHECK_EQ(os_local_accept(s[0], &out), SN_E_STATE);
    close_pair(s);
}

/* ---- who ---- */

static void peer_info_names_process_and_user(void) {
    os_sock s[2];
    make_pair(s);
    for (int i = 0; i < 2; i++) {
        struct os_local_peer p;
        CHECK_EQ(os_local_peer_info(s[i], &p), SN_OK);
        CHECK_EQ(p.pid, getpid());
        CHECK_EQ(p.uid, geteuid());
        CHECK(p.same_user);
        CHECK(fcntl((int)s[i], F_GETFL) & O_NONBLOCK);
        CHECK(fcntl((int)s[i], F_GETFD) & FD_CLOEXEC);
    }
    close_pair(s);
}

static void peer_info_of_another_user_is_not_the_same(void) {
    if (geteuid() != 0) SKIP("only root can become somebody else");
    os_sock listener, s;
    const char *name = fresh_name();
    CHECK_EQ(os_local_listen(name, 0, &listener), SN_OK);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        os_sock c;
        char byte;
        size_t got;
        if (setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
        if (os_local_connect(name, &c) != SN_OK) _exit(2);
        struct os_local_peer p;
        if (os_local_peer_info(c, &p) != SN_OK || p.same_user || p.uid != 0) _exit(3);
        struct pollfd end = { .fd = (int)c, .events = POLLIN };
        if (poll(&end, 1, 20000) != 1) _exit(4);
        if (os_local_recv(c, &byte, 1, &got, NULL, NULL) != SN_E_EOF) _exit(5);
        _exit(0);
    }
    CHECK(pid > 0);
    struct os_poller *poller;
    struct os_poll_event ev;
    CHECK_EQ(os_poller_create(&poller), SN_OK);
    CHECK_EQ(os_poller_add(poller, listener, 1, OS_POLL_IN), SN_OK);
    CHECK_EQ(os_poller_wait(poller, &ev, 1, 20 * SECOND), 1);
    CHECK_EQ(os_local_accept(listener, &s), SN_OK);
    struct os_local_peer p;
    CHECK_EQ(os_local_peer_info(s, &p), SN_OK);
    CHECK_EQ(p.pid, pid);
    CHECK_EQ(p.uid, 65534);
    CHECK(!p.same_user);
    os_poller_destroy(poller);
    os_sock_close(s, false);
    os_sock_close(listener, false);
    int status;
    while (waitpid(pid, &status, 0) < 0)
        CHECK_EQ(errno, EINTR);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

/* ---- messages ---- */

static void messages_keep_their_bounds(void) {
    os_sock s[2];
    make_pair(s);
    char in[16];
    size_t got;
    CHECK_EQ(os_local_recv(s[1], in, sizeof in, &got, NULL, NULL), SN_E_AGAIN);
    CHECK_EQ(os_local_send(s[0], "one", 3, NULL, 0), SN_OK);
    CHECK_EQ(os_local_send(s[0], "three", 5, NULL, 0), SN_OK);
    CHECK_EQ(os_local_recv(s[1], in, sizeof in, &got, NULL, NULL), SN_OK);
    CHECK_EQ(got, 3);
    CHECK_BYTES(in, "one", 3);
    CHECK_EQ(os_local_recv(s[1], in, 5, &got, NULL, NULL), SN_OK);
    CHECK_EQ(got, 5);
    CHECK_BYTES(in, "three", 5);
    static char big[OS_LOCAL_MSG_MAX + 1], big_in[OS_LOCAL_MSG_MAX];
    memset(big, 'b', sizeof big);
    CHECK_EQ(os_local_send(s[1], big, OS_LOCAL_MSG_MAX, NULL, 0), SN_OK);
    CHECK_EQ(os_local_recv(s[0], big_in, sizeof big_in, &got, NULL, NULL), SN_OK);
    CHECK_EQ(got, OS_LOCAL_MSG_MAX);
    CHECK_BYTES(big_in, big, got);
    CHECK_EQ(os_local_send(s[1], big, OS_LOCAL_MSG_MAX + 1, NULL, 0), SN_E_TOO_LONG);
    CHECK_EQ(os_local_send(s[1], big, 0, NULL, 0), SN_E_PARAM);
    CHECK_EQ(os_local_recv(s[1], big, 0, &got, NULL, NULL), SN_E_PARAM);
    CHECK_EQ(os_local_send(s[1], (void *)16, 4, NULL, 0), SN_E_FAULT);
    close_pair(s);
}

static void message_longer_than_the_room_is_dropped_whole(void) {
    os_sock s[2];
    make_pair(s);
    char in[4];
    size_t got;
    CHECK_EQ(os_local_send(s[0], "12345", 5, NULL, 0), SN_OK);
    CHECK_EQ(os_local_send(s[0], "next", 4, NULL, 0), SN_OK);
    CHECK_EQ(os_local_recv(s[1], in, 4, &got, NULL, NULL), SN_E_WIRE);
    CHECK_EQ(got, 0);
    CHECK_EQ(os_local_recv(s[1], in, 4, &got, NULL, NULL), SN_OK);
    CHECK_BYTES(in, "next", 4);
    close_pair(s);
}

static void send_to_a_full_queue_is_again_and_nothing_is_lost(void) {
    os_sock s[2];
    make_pair(s);
    static char msg[OS_LOCAL_MSG_MAX];
    uint32_t sent = 0, seen = 0;
    sn_status st;
    memcpy(msg, &sent, 4);
    while (sent < 100000 && (st = os_local_send(s[0], msg, sizeof msg, NULL, 0)) == SN_OK) {
        sent++;
        memcpy(msg, &sent, 4);
    }
    CHECK_EQ(st, SN_E_AGAIN);
    size_t got;
    while (os_local_recv(s[1], msg, sizeof msg, &got, NULL, NULL) == SN_OK) {
        CHECK(memcmp(msg, &seen, 4) == 0);
        seen++;
    }
    CHECK_EQ(seen, sent);
    CHECK_EQ(os_local_send(s[0], msg, 1, NULL, 0), SN_OK);
    close_pair(s);
}

/* ---- ends ---- */

static void peer_close_gives_the_rest_then_eof(void) {
    os_sock s[2];
    make_pair(s);
    char in[8];
    size_t got;
    signal(SIGPIPE, SIG_DFL); /* a signal would end the test */
    CHECK_EQ(os_local_send(s[0], "last", 4, NULL, 0), SN_OK);
    os_sock_close(s[0], false);
    CHECK_EQ(os_local_recv(s[1], in, sizeof in, &got, NULL, NULL), SN_OK);
    CHECK_EQ(got, 4);
    CHECK_EQ(os_local_recv(s[1], in, sizeof in, &got, NULL, NULL), SN_E_EOF);
    CHECK_EQ(os_local_send(s[1], "x", 1, NULL, 0), SN_E_PEER_GONE);
    struct os_poller *p;
    struct os_poll_event ev;
    CHECK_EQ(os_poller_create(&p), SN_OK);
    CHECK_EQ(os_poller_add(p, s[1], 1, 0), SN_OK);
    CHECK_EQ(os_poller_wait(p, &ev, 1, 20 * SECOND), 1);
    CHECK_EQ(ev.events, OS_POLL_HUP);
    os_poller_destroy(p);
    os_sock_close(s[1], false);
}

static void peer_process_killed_is_seen(void) {
    os_sock listener, s;
    const char *name = fresh_name();
    CHECK_EQ(os_local_listen(name, 0, &listener), SN_OK);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        os_sock c;
        if (os_local_connect(name, &c) != SN_OK) _exit(1);
        for (;;)
            pause();
    }
    CHECK(pid > 0);
    struct os_poller *p;
    struct os_poll_event ev;
    CHECK_EQ(os_poller_create(&p), SN_OK);
    CHECK_EQ(os_poller_add(p, listener, 1, OS_POLL_IN), SN_OK);
    CHECK_EQ(os_poller_wait(p, &ev, 1, 20 * SECOND), 1);
    CHECK_EQ(os_local_accept(listener, &s), SN_OK);
    os_poller_remove(p, listener);
    CHECK_EQ(os_poller_add(p, s, 2, OS_POLL_IN), SN_OK);
    CHECK_EQ(os_poller_wait(p, &ev, 1, 0), 0);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(os_poller_wait(p, &ev, 1, 20 * SECOND), 1);
    CHECK(ev.events & OS_POLL_HUP);
    while (waitpid(pid, NULL, 0) < 0)
        CHECK_EQ(errno, EINTR);
    os_poller_destroy(p);
    os_sock_close(s, false);
    os_sock_close(listener, false);
}

/* ---- handles ---- */

static void handle_of_shared_memory_arrives_usable(void) {
    os_sock s[2];
    make_pair(s);
    struct os_shm a, b;
    CHECK_EQ(os_shm_create(5000, &a), SN_OK);
    CHECK_EQ(os_local_send(s[0], "map", 3, &a.handle, 1), SN_OK);
    char in[8];
    size_t got, count = 2;
    os_handle h[2];
    CHECK_EQ(os_local_recv(s[1], in, sizeof in, &got, h, &count), SN_OK);
    CHECK_EQ(got, 3);
    CHECK_EQ(count, 1);
    CHECK(h[0] != a.handle);
    CHECK(fcntl((int)h[0], F_GETFD) & FD_CLOEXEC);
    CHECK_EQ(os_shm_open(h[0], 5000, &b), SN_OK);
    memcpy(a.base, "hello", 5);
    CHECK_BYTES(b.base, "hello", 5);
    os_shm_close(&a);
    os_shm_close(&b);
    close_pair(s);
}

static void handles_up_to_the_limit_arrive_in_order(void) {
    os_sock s[2];
    make_pair(s);
    int lowest = free_descriptor();
    os_handle out[OS_LOCAL_HANDLES_MAX + 1], in[OS_LOCAL_HANDLES_MAX];
    for (int i = 0; i <= OS_LOCAL_HANDLES_MAX; i++) {
        int fd = memfd_create("local_sock_test", MFD_CLOEXEC);
        CHECK(fd >= 0);
        char c = (char)('0' + i);
        CHECK_EQ(write(fd, &c, 1), 1);
        out[i] = fd;
    }
    CHECK_EQ(os_local_send(s[0], "x", 1, out, OS_LOCAL_HANDLES_MAX + 1), SN_E_PARAM);
    CHECK_EQ(os_local_send(s[0], "x", 1, out, OS_LOCAL_HANDLES_MAX), SN_OK);
    char c;
    size_t got, count = OS_LOCAL_HANDLES_MAX;
    CHECK_EQ(os_local_recv(s[1], &c, 1, &got, in, &count), SN_OK);
    CHECK_EQ(count, OS_LOCAL_HANDLES_MAX);
    for (int i = 0; i < OS_LOCAL_HANDLES_MAX; i++) {
        CHECK_EQ(pread((int)in[i], &c, 1, 0), 1);
        CHECK_EQ(c, '0' + i);
        os_handle_close(in[i]);
    }
    os_handle bad = 100000;
    CHECK_EQ(os_local_send(s[0], "x", 1, &bad, 1), SN_E_HANDLE);
    for (int i = 0; i <= OS_LOCAL_HANDLES_MAX; i++)
        os_handle_close(out[i]);
    CHECK_EQ(free_descriptor(), lowest);
    close_pair(s);
}

/* Sends what os_local_send would not: n handles, as a hostile peer may. */
static void send_many_handles(os_sock s, size_t n) {
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * 64)];
    } control = { 0 };
    struct iovec iov = { "x", 1 };
    struct msghdr msg = { .msg_iov = &iov,
                          .msg_iovlen = 1,
                          .msg_control = control.room,
                          .msg_controllen = CMSG_SPACE(sizeof(int) * n) };
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * n);
    int fd = 0;
    for (size_t i = 0; i < n; i++)
        memcpy(CMSG_DATA(c) + i * sizeof fd, &fd, sizeof fd);
    CHECK_EQ(sendmsg((int)s, &msg, 0), 1);
}

static void handles_without_room_are_closed_and_refused(void) {
    os_sock s[2];
    make_pair(s);
    int lowest = free_descriptor();
    char c;
    size_t got, count;
    os_handle h[OS_LOCAL_HANDLES_MAX];
    static const size_t sent[] = { 1, 2, 3, 5, 6, 7, 33 };
    for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
        send_many_handles(s[0], sent[i]);
        CHECK_EQ(os_local_recv(s[1], &c, 1, &got, NULL, NULL), SN_E_WIRE);
        CHECK_EQ(free_descriptor(), lowest);
        count = sent[i] < OS_LOCAL_HANDLES_MAX ? sent[i] - 1 : OS_LOCAL_HANDLES_MAX;
        send_many_handles(s[0], sent[i]);
        CHECK_EQ(os_local_recv(s[1], &c, 1, &got, h, &count), SN_E_WIRE);
        CHECK_EQ(count, 0);
        CHECK_EQ(free_descriptor(), lowest);
    }
    CHECK_EQ(os_local_send(s[0], "y", 1, NULL, 0), SN_OK);
    CHECK_EQ(os_local_recv(s[1], &c, 1, &got, NULL, NULL), SN_OK);
    CHECK_EQ(c, 'y');
    close_pair(s);
}

static void handles_out_of_descriptors_say_resources(void) {
    os_sock s[2];
    make_pair(s);
    send_many_handles(s[0], 2);
    struct rlimit before, none;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)free_descriptor() + 1; /* room for one of the two */
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    char c;
    size_t got, count = 2;
    os_handle h[2];
    sn_status st = os_local_recv(s[1], &c, 1, &got, h, &count);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK_EQ(st, SN_E_RESOURCES);
    CHECK_EQ(count, 0);
    CHECK_EQ(free_descriptor(), (int)none.rlim_cur - 1);
    close_pair(s);
}

static void injected_failures_come_back_as_statuses(void) {
    if (!os_fault_available()) SKIP("built without fault injection");
    os_sock s[2], listener, out;
    make_pair(s);
    const char *name = fresh_name();
    int lowest = free_descriptor();
    for (int n = 0; n < 3; n++) {
        os_fault_arm(OS_FAULT_SYSCALL, n);
        CHECK_EQ(os_local_listen(name, 0, &out), SN_E_RESOURCES);
        CHECK(os_fault_fired(OS_FAULT_SYSCALL));
    }
    os_fault_arm(OS_FAULT_SYSCALL, -1);
    CHECK_EQ(free_descriptor(), lowest);
    CHECK_EQ(os_local_listen(name, 0, &listener), SN_OK);
    lowest = free_descriptor();
    for (int n = 0; n < 2; n++) {
        os_fault_arm(OS_FAULT_SYSCALL, n);
        CHECK_EQ(os_local_connect(name, &out), SN_E_RESOURCES);
        CHECK(os_fault_fired(OS_FAULT_SYSCALL));
    }
    os_fault_arm(OS_FAULT_SYSCALL, 0);
    CHECK_EQ(os_local_accept(listener, &out), SN_E_RESOURCES);
    char c;
    size_t got;
    os_fault_arm(OS_FAULT_SYSCALL, 0);
    CHECK_EQ(os_local_send(s[0], "x", 1, NULL, 0), SN_E_PEER_GONE);
    os_fault_arm(OS_FAULT_SYSCALL, 0);
    CHECK_EQ(os_local_recv(s[0], &c, 1, &got, NULL, NULL), SN_E_PEER_GONE);
    os_fault_arm(OS_FAULT_SYSCALL, -1);
    CHECK_EQ(free_descriptor(), lowest);
    os_sock_close(listener, false);
    close_pair(s);
}

TEST_MAIN(TEST(name_taken_is_in_use_until_closed), TEST(name_of_bad_length_is_refused),
          TEST(connect_to_full_queue_is_again), TEST(accept_with_nobody_waiting_is_again),
          TEST(peer_info_names_process_and_user), TEST(peer_info_of_another_user_is_not_the_same),
          TEST(messages_keep_their_bounds), TEST(message_longer_than_the_room_is_dropped_whole),
          TEST(send_to_a_full_queue_is_again_and_nothing_is_lost),
          TEST(peer_close_gives_the_rest_then_eof), TEST(peer_process_killed_is_seen),
          TEST(handle_of_shared_memory_arrives_usable),
          TEST(handles_up_to_the_limit_arrive_in_order),
          TEST(handles_without_room_are_closed_and_refused),
          TEST(handles_out_of_descriptors_say_resources),
          TEST(injected_failures_come_back_as_statuses))
