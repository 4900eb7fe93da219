/* SPDX-License-Identifier: MIT
 * The peer is a child of this process, so addresses of before the fork mean the same in it. */
#include "os/io/peer_copy.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"
#include "support/testing.h"

static size_t page;
static uint8_t *area; /* 6 pages, different content in parent and child; see start_peer */

struct child {
    pid_t pid;
    int go, answer; /* write a byte to go, read one from answer */
    struct os_peer peer;
};

static void fill_pattern(uint8_t *p, size_t n, unsigned seed) {
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(seed + i * 5 + (i >> 8));
}

/* In the child: page 3 is gone, page 4 can only be read, the rest has pattern 100. At each byte
 * it answers with whether pages 0 to 2 have the pattern of that number. */
static void serve(int go, int answer) {
    fill_pattern(area, 6 * page, 100);
    munmap(area + 3 * page, page);
    mprotect(area + 4 * page, page, PROT_READ);
    char byte = 1;
    if (write(answer, &byte, 1) != 1) _exit(1);
    while (read(go, &byte, 1) == 1) {
        uint8_t *want = malloc(3 * page);
        fill_pattern(want, 3 * page, (unsigned char)byte);
        byte = memcmp(want, area, 3 * page) == 0;
        free(want);
        if (write(answer, &byte, 1) != 1) _exit(1);
    }
    _exit(0);
}

static int read_answer(struct child *c) {
    struct pollfd p = { .fd = c->answer, .events = POLLIN };
    char byte;
    CHECK_EQ(poll(&p, 1, 20000), 1);
    CHECK_EQ(read(c->answer, &byte, 1), 1);
    return byte;
}

static void start_peer(struct child *c) {
    page = os_page_size();
    area = os_pages_alloc(6 * page);
    CHECK(area != NULL);
    int go[2], answer[2];
    CHECK_EQ(pipe2(go, O_CLOEXEC), 0);
    CHECK_EQ(pipe2(answer, O_CLOEXEC), 0);
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) {
        close(go[1]);
        close(answer[0]);
        if (os_peer_allow() != SN_OK) _exit(2);
        serve(go[0], answer[1]);
    }
    CHECK(c->pid > 0);
    close(go[0]);
    close(answer[1]);
    c->go = go[1];
    c->answer = answer[0];
    CHECK_EQ(read_answer(c), 1);
    CHECK_EQ(os_peer_open((uint32_t)c->pid, &c->peer), SN_OK);
    /* Some containers forbid it altogether. */
    uint8_t probe;
    struct os_iov l = { &probe, 1 };
    struct os_peer_iov r = { (uintptr_t)area, 1 };
    size_t done;
    sn_status st = os_peer_readv(&c->peer, &l, 1, &r, 1, &done);
    if (st == SN_E_PERM || st == SN_E_UNSUPPORTED) {
        kill(c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
        SKIP("this system does not let a process copy from another");
    }
    CHECK_EQ(st, SN_OK);
}

static void stop_peer(struct child *c) {
    os_peer_close(&c->peer);
    close(c->go);
    close(c->answer);
    int status;
    while (waitpid(c->pid, &status, 0) < 0)
        CHECK_EQ(errno, EINTR);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    os_pages_free(area, 6 * page);
}

static void read_and_write_whole_ranges_copy_all(void) {
    struct child c;
    start_peer(&c);
    uint8_t *buf = malloc(3 * page), *want = malloc(3 * page);
    struct os_iov l = { buf, 3 * page };
    struct os_peer_iov r = { (uintptr_t)area, 3 * page };
    size_t done;
    CHECK_EQ(os_peer_readv(&c.peer, &l, 1, &r, 1, &done), SN_OK);
    CHECK_EQ(done, 3 * page);
    fill_pattern(want, 3 * page, 100);
    CHECK_BYTES(buf, want, 3 * page);
    CHECK_EQ(area[0], 0); /* ours is another */
    fill_pattern(buf, 3 * page, 77);
    CHECK_EQ(os_peer_writev(&c.peer, &l, 1, &r, 1, &done), SN_OK);
    CHECK_EQ(done, 3 * page);
    char seed = 77;
    CHECK_EQ(write(c.go, &seed, 1), 1);
    CHECK_EQ(read_answer(&c), 1);
    free(buf);
    free(want);
    stop_peer(&c);
}

static void pieces_that_do_not_match_are_one_range_each(void) {
    struct child c;
    start_peer(&c);
    enum { LOCALS = 200, REMOTES = 150 };
    uint8_t *buf = malloc(3 * page), *want = malloc(3 * page);
    struct os_iov l[LOCALS];
    struct os_peer_iov r[REMOTES];
    size_t at = 0, total = 5000;
    for (size_t i = 0; i < LOCALS; i++) {
        size_t n = i == LOCALS - 1 ? total - at : i % 7 == 0 ? 0 : i % 40;
        if (n > total - at) n = total - at;
        l[i] = (struct os_iov){ buf + at, n };
        at += n;
    }
    size_t locals = at;
    at = 0;
    for (size_t i = 0; i < REMOTES; i++) {
        size_t n = i == REMOTES - 1 ? total - at : 1 + i % 60;
        if (n > total - at) n = total - at;
        r[i] = (struct os_peer_iov){ (uintptr_t)area + at, n };
        at += n;
    }
    CHECK_EQ(locals, total);
    CHECK_EQ(at, total);
    size_t done;
    memset(buf, 0, 3 * page);
    CHECK_EQ(os_peer_readv(&c.peer, l, LOCALS, r, REMOTES, &done), SN_OK);
    CHECK_EQ(done, total);
    fill_pattern(want, 3 * page, 100);
    CHECK_BYTES(buf, want, total);
    CHECK_EQ(buf[total], 0);
    /* The shorter list decides. */
    struct os_iov few = { buf, 10 };
    CHECK_EQ(os_peer_readv(&c.peer, &few, 1, r, REMOTES, &done), SN_OK);
    CHECK_EQ(done, 10);
    CHECK_EQ(os_peer_readv(&c.peer, l, LOCALS, r, 2, &done), SN_OK);
    CHECK_EQ(done, 3);
    CHECK_EQ(os_peer_readv(&c.peer, l, LOCALS, r, 0, &done), SN_OK);
    CHECK_EQ(done, 0);
    free(buf);
    free(want);
    stop_peer(&c);
}

static void missing_memory_on_either_side_is_a_fault(void) {
    struct child c;
    start_peer(&c);
    uint8_t *buf = os_pages_alloc(4 * page);
    CHECK(buf != NULL);
    CHECK_EQ(munmap(buf + 2 * page, page), 0);
    size_t done;
    struct os_iov l = { buf, page };
    struct os_peer_iov gone = { (uintptr_t)area + 3 * page, 8 };
    CHECK_EQ(os_peer_readv(&c.peer, &l, 1, &gone, 1, &done), SN_E_FAULT);
    CHECK_EQ(done, 0);
    CHECK_EQ(os_peer_writev(&c.peer, &l, 1, &gone, 1, &done), SN_E_FAULT);
    struct os_peer_iov null = { 0, 8 }, wild = { UINT64_MAX - 4, 8 };
    CHECK_EQ(os_peer_readv(&c.peer, &l, 1, &null, 1, &done), SN_E_FAULT);
    CHECK_EQ(os_peer_readv(&c.peer, &l, 1, &wild, 1, &done), SN_E_FAULT);
    struct os_peer_iov read_only = { (uintptr_t)area + 4 * page, 8 };
    CHECK_EQ(os_peer_readv(&c.peer, &l, 1, &read_only, 1, &done), SN_OK);
    CHECK_EQ(os_peer_writev(&c.peer, &l, 1, &read_only, 1, &done), SN_E_FAULT);
    CHECK_EQ(done, 0);
    /* Half there: done never says more than was copied. */
    struct os_peer_iov half = { (uintptr_t)area + 2 * page, 2 * page };
    struct os_iov l2 = { buf, 2 * page };
    memset(buf, 0, 2 * page);
    CHECK_EQ(os_peer_readv(&c.peer, &l2, 1, &half, 1, &done), SN_E_FAULT);
    CHECK(done <= page);
    uint8_t *want = malloc(3 * page);
    fill_pattern(want, 3 * page, 100);
    CHECK_BYTES(buf, want + 2 * page, done);
    free(want);
    /* Here. */
    struct os_iov bad = { buf + 2 * page, 8 };
    struct os_peer_iov good = { (uintptr_t)area, 8 };
    CHECK_EQ(os_peer_readv(&c.peer, &bad, 1, &good, 1, &done), SN_E_FAULT);
    CHECK_EQ(os_peer_writev(&c.peer, &bad, 1, &good, 1, &done), SN_E_FAULT);
    CHECK_EQ(os_pages_probe(bad.base, bad.len, true), SN_E_FAULT);
    os_pages_free(buf, 2 * page);
    os_pages_free(buf + 3 * page, page);
    stop_peer(&c);
}

static void ended_process_is_gone_even_before_it_is_collected(void) {
    struct child c;
    start_peer(&c);
    CHECK(os_peer_alive(&c.peer));
    CHECK_EQ(kill(c.pid, SIGKILL), 0);
    struct pollfd p = { .fd = (int)c.peer.handle, .events = POLLIN };
    CHECK_EQ(poll(&p, 1, 20000), 1);
    CHECK(!os_peer_alive(&c.peer));
    uint8_t byte;
    size_t done;
    struct os_iov l = { &byte, 1 };
    struct os_peer_iov r = { (uintptr_t)area, 1 };
    CHECK_EQ(os_peer_readv(&c.peer, &l, 1, &r, 1, &done), SN_E_PEER_GONE);
    CHECK_EQ(os_peer_writev(&c.peer, &l, 1, &r, 1, &done), SN_E_PEER_GONE);
    while (waitpid(c.pid, NULL, 0) < 0)
        CHECK_EQ(errno, EINTR);
    CHECK_EQ(os_peer_readv(&c.peer, &l, 1, &r, 1, &done), SN_E_PEER_GONE);
    CHECK_EQ(done, 0);
    os_peer_close(&c.peer);
    os_peer_close(&c.peer);
    CHECK(!os_peer_alive(&c.peer));
    struct os_peer again;
    CHECK_EQ(os_peer_open((uint32_t)c.pid, &again), SN_E_NOT_FOUND);
    close(c.go);
    close(c.answer);
    os_pages_free(area, 6 * page);
}

/* ---- a process that becomes another program ---- */

enum { IMAGE_BYTES = 320 * 1024 };
#define IMAGE_VARIABLE "SOFTND_TEST_IMAGE"

/* The other program: has memory at the same place, and tells whether it is still as it was. */
__attribute__((constructor)) static void be_another_program(void) {
    const char *text = getenv(IMAGE_VARIABLE);
    void *at;
    int go, answer;
    char byte = 1;
    if (!text || sscanf(text, "%p %d %d", &at, &go, &answer) != 3) return;
    uint8_t *mem = mmap(at, IMAGE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (mem != at || os_peer_allow() != SN_OK) _exit(5);
    memset(mem, 9, IMAGE_BYTES);
    if (write(answer, &byte, 1) != 1 || read(go, &byte, 1) != 1) _exit(6);
    byte = 1;
    for (size_t i = 0; i < IMAGE_BYTES; i++)
        if (mem[i] != 9) byte = 0;
    if (write(answer, &byte, 1) != 1) _exit(7);
    _exit(0);
}

static void become_another_program(uint8_t *mem, int go, int answer) {
    char text[80], byte;
    if (read(go, &byte, 1) != 1) _exit(1);
    snprintf(text, sizeof text, "%p %d %d", (void *)mem, go, answer);
    if (setenv(IMAGE_VARIABLE, text, 1) != 0) _exit(2);
    execl("/proc/self/exe", "another", (char *)NULL);
    _exit(3);
}

static void process_that_executes_another_program_is_gone(void) {
    struct child c;
    start_peer(&c);
    stop_peer(&c); /* this system lets us copy, or that was skipped */
    uint8_t *mem = os_pages_alloc(IMAGE_BYTES);
    struct os_peer_mark *mark =
        mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int go[2], answer[2];
    CHECK(mem && mark != MAP_FAILED);
    CHECK_EQ(pipe(go), 0);
    CHECK_EQ(pipe(answer), 0);
    fflush(NULL);
    c.pid = fork();
    if (c.pid == 0) {
        char byte = 1;
        *mark = os_peer_own_mark();
        if (os_peer_allow() != SN_OK || write(answer[1], &byte, 1) != 1) _exit(4);
        become_another_program(mem, go[0], answer[1]);
    }
    CHECK(c.pid > 0);
    c.answer = answer[0];
    CHECK_EQ(read_answer(&c), 1);
    CHECK_EQ(os_peer_open((uint32_t)c.pid, &c.peer), SN_OK);
    struct os_peer_mark wrong = { mark->addr, mark->value + 1 }, none = { 0, 0 };
    CHECK_EQ(os_peer_recognise(&c.peer, &wrong), SN_E_PEER_GONE);
    CHECK_EQ(os_peer_recognise(&c.peer, &none), SN_E_PEER_GONE);
    CHECK_EQ(os_peer_recognise(&c.peer, mark), SN_OK);

    uint8_t *buf = malloc(IMAGE_BYTES);
    memset(buf, 1, IMAGE_BYTES);
    struct os_iov l = { buf, IMAGE_BYTES }, few = { buf, 10 };
    struct os_peer_iov r = { (uintptr_t)mem, IMAGE_BYTES };
    size_t done;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(os_peer_writev(&c.peer, &l, 1, &r, 1, &done), SN_OK);
        CHECK_EQ(done, IMAGE_BYTES);
        CHECK_EQ(os_peer_writev(&c.peer, &few, 1, &r, 1, &done), SN_OK);
        CHECK_EQ(done, 10);
        CHECK_EQ(os_peer_readv(&c.peer, &l, 1, &r, 1, &done), SN_OK);
        CHECK_EQ(done, IMAGE_BYTES);
        CHECK_EQ(buf[IMAGE_BYTES - 1], 1);
    }
    CHECK(os_peer_alive(&c.peer));

    CHECK_EQ(write(go[1], "x", 1), 1);
    CHECK_EQ(read_answer(&c), 1); /* it is another program, same number, same address */
    /* A long copy asks even if the peer was seen alive this moment, a short one after a while. */
    os_u64_store_relaxed(&c.peer.alive_ns, os_now_ns());
    CHECK_EQ(os_peer_writev(&c.peer, &l, 1, &r, 1, &done), SN_E_PEER_GONE);
    CHECK_EQ(done, 0);
    CHECK_EQ(os_peer_readv(&c.peer, &l, 1, &r, 1, &done), SN_E_PEER_GONE);
    os_u64_store_relaxed(&c.peer.alive_ns, os_now_ns() - OS_MARKED_NS);
    CHECK_EQ(os_peer_writev(&c.peer, &few, 1, &r, 1, &done), SN_E_PEER_GONE);
    CHECK_EQ(os_peer_readv(&c.peer, &few, 1, &r, 1, &done), SN_E_PEER_GONE);
    CHECK(!os_peer_alive(&c.peer));
    CHECK_EQ(write(go[1], "x", 1), 1);
    CHECK_EQ(read_answer(&c), 1); /* nothing was written there */

    int status;
    while (waitpid(c.pid, &status, 0) < 0)
        CHECK_EQ(errno, EINTR);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    os_peer_close(&c.peer);
    for (int i = 0; i < 2; i++) {
        close(go[i]);
        close(answer[i]);
    }
    free(buf);
    os_pages_free(mem, IMAGE_BYTES);
    munmap(mark, page);
}

static void process_of_another_user_is_forbidden(void) {
    if (geteuid() != 0) SKIP("only root can become somebody else");
    static uint8_t secret = 42;
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
        struct os_peer peer;
        uint8_t byte = 0;
        size_t done;
        struct os_iov l = { &byte, 1 };
        struct os_peer_iov r = { (uintptr_t)&secret, 1 };
        if (os_peer_open((uint32_t)parent, &peer) != SN_OK) _exit(2);
        if (os_peer_readv(&peer, &l, 1, &r, 1, &done) != SN_E_PERM || byte != 0) _exit(3);
        if (os_peer_writev(&peer, &l, 1, &r, 1, &done) != SN_E_PERM) _exit(4);
        _exit(0);
    }
    CHECK(pid > 0);
    int status;
    while (waitpid(pid, &status, 0) < 0)
        CHECK_EQ(errno, EINTR);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    CHECK_EQ(secret, 42);
}

static void open_of_no_process_is_not_found(void) {
    struct os_peer p;
    CHECK_EQ(os_peer_open(0, &p), SN_E_NOT_FOUND);
    CHECK_EQ(os_peer_open(UINT32_MAX, &p), SN_E_NOT_FOUND);
    CHECK_EQ(os_peer_open(INT32_MAX, &p), SN_E_NOT_FOUND);
    os_peer_close(&p);
    struct os_peer zeroed = { 0 };
    os_peer_close(&zeroed);
    if (!os_fault_available()) return;
    os_fault_arm(OS_FAULT_SYSCALL, 0);
    CHECK_EQ(os_peer_open((uint32_t)getpid(), &p), SN_E_RESOURCES);
    os_fault_arm(OS_FAULT_SYSCALL, -1);
}

TEST_MAIN(TEST(read_and_write_whole_ranges_copy_all),
          TEST(pieces_that_do_not_match_are_one_range_each),
          TEST(missing_memory_on_either_side_is_a_fault),
          TEST(ended_process_is_gone_even_before_it_is_collected),
          TEST(process_that_executes_another_program_is_gone),
          TEST(process_of_another_user_is_forbidden), TEST(open_of_no_process_is_not_found))
