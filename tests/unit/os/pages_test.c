/* SPDX-License-Identifier: MIT */
#include "os/prim/pages.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "os/common/guard_copy.h"
#include "os/linux/pages_probe.h"
#include "os/prim/atomic.h"
#include "os/prim/clock.h"
#include "os/prim/thread.h"
#include "support/testing.h"

static size_t page;

/* Never mapped; not NULL, which sanitizers report before the processor does. */
#define BAD ((uint8_t *)16)

/* Fresh pages; the test ends if the machine has none. */
static uint8_t *map_pages(size_t count) {
    page = os_page_size();
    uint8_t *p = os_pages_alloc(count * page);
    CHECK(p != NULL);
    return p;
}

static void fill_pattern(uint8_t *p, size_t n, unsigned seed) {
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

/* ---- alloc ---- */

static void alloc_pages_gives_zeroes_that_can_be_written(void) {
    uint8_t *p = map_pages(3);
    CHECK_EQ((uintptr_t)p % page, 0);
    for (size_t i = 0; i < 3 * page; i++)
        CHECK_EQ(p[i], 0);
    memset(p, 0xab, 3 * page);
    os_pages_free(p, 3 * page);
    CHECK(os_pages_alloc(0) == NULL);
    CHECK(os_pages_alloc(SIZE_MAX / 2) == NULL);
}

/* ---- probe: the same cases for each way that exists here ---- */

static void probe_cases(enum os_probe_how how) {
    uint8_t *p = map_pages(6);
    sn_status st = os_pages_probe_how(p, 1, false, how);
    if (st == SN_E_UNSUPPORTED) SKIP("this kernel has no such way to look mappings up");
    CHECK_EQ(st, SN_OK);
    /* 0: rw, 1: r, 2: none, 3: rw, 4: gone, 5: rw */
    CHECK_EQ(mprotect(p + page, page, PROT_READ), 0);
    CHECK_EQ(mprotect(p + 2 * page, page, PROT_NONE), 0);
    CHECK_EQ(munmap(p + 4 * page, page), 0);

    CHECK_EQ(os_pages_probe_how(p, page, true, how), SN_OK);
    CHECK_EQ(os_pages_probe_how(p + 5, page - 5, true, how), SN_OK);
    CHECK_EQ(os_pages_probe_how(p + page - 1, 1, true, how), SN_OK);
    CHECK_EQ(os_pages_probe_how(p, page + 1, true, how), SN_E_FAULT);
    CHECK_EQ(os_pages_probe_how(p, 2 * page, false, how), SN_OK);
    CHECK_EQ(os_pages_probe_how(p + page, page, true, how), SN_E_FAULT);
    CHECK_EQ(os_pages_probe_how(p, 2 * page + 1, false, how), SN_E_FAULT);
    CHECK_EQ(os_pages_probe_how(p + 2 * page, 1, false, how), SN_E_FAULT);
    CHECK_EQ(os_pages_probe_how(p + 3 * page, page, true, how), SN_OK);
    CHECK_EQ(os_pages_probe_how(p + 3 * page, page + 1, true, how), SN_E_FAULT);
    CHECK_EQ(os_pages_probe_how(p + 4 * page, page, false, how), SN_E_FAULT);
    CHECK_EQ(os_pages_probe_how(p + 4 * page + 9, page, false, how), SN_E_FAULT);
    CHECK_EQ(os_pages_probe_how(p + 3 * page, 3 * page, false, how), SN_E_FAULT);
    CHECK_EQ(os_pages_probe_how(p + 5 * page, page, true, how), SN_OK);

    CHECK_EQ(os_pages_probe_how(NULL, 1, false, how), SN_E_FAULT);
    CHECK_EQ(os_pages_probe_how(NULL, 8 * page, true, how), SN_E_FAULT);
    CHECK_EQ(os_pages_probe_how((void *)UINTPTR_MAX, 1, false, how), SN_E_FAULT);
    CHECK_EQ(os_pages_probe_how((void *)UINTPTR_MAX, 2, false, how), SN_E_FAULT);
    CHECK_EQ(os_pages_probe_how(p, SIZE_MAX, false, how), SN_E_FAULT);
    CHECK_EQ(os_pages_probe_how(p, 0, false, how), SN_E_FAULT);

    /* The stack, static data, code and the heap. */
    int on_stack = 1;
    static int in_data = 1;
    char *on_heap = malloc(1000);
    CHECK_EQ(os_pages_probe_how(&on_stack, sizeof on_stack, true, how), SN_OK);
    CHECK_EQ(os_pages_probe_how(&in_data, sizeof in_data, true, how), SN_OK);
    CHECK_EQ(os_pages_probe_how(on_heap, 1000, true, how), SN_OK);
    CHECK_EQ(os_pages_probe_how((void *)(uintptr_t)probe_cases, 16, false, how), SN_OK);
    CHECK_EQ(os_pages_probe_how((void *)(uintptr_t)probe_cases, 16, true, how), SN_E_FAULT);
    free(on_heap);
    os_pages_free(p, 4 * page);
    os_pages_free(p + 5 * page, page);
}

static void probe_as_built_tells_mapping_and_rights(void) {
    probe_cases(OS_PROBE_BEST);
}
static void probe_by_query_tells_mapping_and_rights(void) {
    probe_cases(OS_PROBE_QUERY);
}
static void probe_by_text_tells_mapping_and_rights(void) {
    probe_cases(OS_PROBE_TEXT);
}
static void probe_by_touch_tells_mapping_and_rights(void) {
    probe_cases(OS_PROBE_TOUCH);
}

static void probe_big_range_commits_nothing(void) {
    page = os_page_size();
    size_t bytes = (size_t)1 << 30;
    uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(p != MAP_FAILED);
    CHECK_EQ(os_pages_probe(p, bytes, true), SN_OK);
    size_t pages = bytes / page;
    unsigned char *in_core = malloc(pages);
    CHECK_EQ(mincore(p, bytes, in_core), 0);
    size_t present = 0;
    for (size_t i = 0; i < pages; i++)
        present += in_core[i] & 1;
    free(in_core);
    CHECK_EQ(present, 0);
    munmap(p, bytes);
}

struct probes {
    uint8_t *p;
    sn_status good, read_only, bad;
};

static void probe_some(void *arg) {
    struct probes *s = arg;
    s->good = os_pages_probe(s->p, page, true);
    s->read_only = os_pages_probe(s->p, 2 * page, false);
    s->bad = os_pages_probe(s->p, 2 * page, true);
}

/* Without a descriptor for the file of mappings the answer is the same. On a thread, because the
 * address sanitizer needs a descriptor for a jump on the first one. */
static void probe_out_of_descriptors_still_answers(void) {
    struct probes s = { .p = map_pages(2) };
    CHECK_EQ(mprotect(s.p + page, page, PROT_READ), 0);
    struct rlimit before, none;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    os_thread t;
    sn_status st = os_thread_start(&t, "prober", probe_some, &s);
    if (st == SN_OK) os_thread_join(t);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK_EQ(st, SN_OK);
    CHECK_EQ(s.good, SN_OK);
    CHECK_EQ(s.read_only, SN_OK);
    CHECK_EQ(s.bad, SN_E_FAULT);
    CHECK_EQ(s.p[0], 0);
    os_pages_free(s.p, 2 * page);
}

/* ---- guarded copy ---- */

static void copy_all_sizes_and_alignments_equals_memcpy(void) {
    enum { ROOM = 9000 };
    static uint8_t src[ROOM + 64], dst[ROOM + 64], want[ROOM + 64];
    static const size_t sizes[] = { 2047, 2048, 2049, 2111, 2112, 2120, 4095, 4096, 4097,
                                    4159, 4160, 4161, 4225, 8191, 8192, 8256, 8263, 8999 };
    fill_pattern(src, sizeof src, 3);
    for (size_t d = 0; d < 17; d++)
        for (size_t s = 0; s < 17; s++)
            for (size_t i = 0; i < 300 + sizeof sizes / sizeof sizes[0]; i++) {
                if (i >= 300 && (d * 17 + s) % 5 != 0) break;
                size_t len = i < 300 ? i : sizes[i - 300];
                size_t span = len + d + 32;
                memset(dst, 0x5a, span);
                memset(want, 0x5a, span);
                memcpy(want + d, src + s, len);
                CHECK(os_guarded_copy(dst + d, src + s, len));
                if (memcmp(dst, want, span) != 0) FAIL("size %zu to +%zu from +%zu", len, d, s);
            }
}

static void copy_nothing_from_nowhere_succeeds(void) {
    CHECK(os_guarded_copy(NULL, NULL, 0));
}

static void check_copy_fails(uint8_t *bad, uint8_t *good, size_t len) {
    CHECK(!os_guarded_copy(bad, good, len));
    CHECK(!os_guarded_copy(good, bad, len));
}

static const size_t some_sizes[] = { 1, 2, 3, 7, 8, 9, 31, 64, 65, 100, 1000, 2048, 3000, 4096 };
#define SOME_SIZES (sizeof some_sizes / sizeof some_sizes[0])

static void copy_unmapped_or_forbidden_memory_reports_failure(void) {
    uint8_t *p = map_pages(4);
    uint8_t *good = map_pages(2);
    CHECK_EQ(munmap(p + page, page), 0);
    CHECK_EQ(mprotect(p + 2 * page, page, PROT_NONE), 0);
    for (size_t i = 0; i < SOME_SIZES; i++) {
        check_copy_fails(p + page, good, some_sizes[i]);
        check_copy_fails(p + 2 * page, good, some_sizes[i]);
        check_copy_fails(NULL, good, some_sizes[i]);
        check_copy_fails((uint8_t *)UINTPTR_MAX - 8192, good, some_sizes[i]);
        /* Not a canonical address: a general protection fault, no page fault. */
        check_copy_fails((uint8_t *)0x4141414141414141u, good, some_sizes[i]);
    }
    CHECK_EQ(mprotect(p + 2 * page, page, PROT_READ), 0);
    CHECK(!os_guarded_copy(p + 2 * page, good, 8));
    CHECK(os_guarded_copy(good, p + 2 * page, 8));
    os_pages_free(p, page);
    os_pages_free(p + 2 * page, 2 * page);
    os_pages_free(good, 2 * page);
}

static void copy_half_mapped_range_copies_up_to_the_hole(void) {
    uint8_t *p = map_pages(4), *good = map_pages(4);
    fill_pattern(good, 4 * page, 11);
    CHECK_EQ(munmap(p + 2 * page, page), 0);
    static const size_t before[] = { 1, 5, 8, 40, 64, 333, 2048, 4096, 5000 };
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
        for (size_t over = 1; over < 3000; over = over * 3 + 1) {
            size_t n = before[i];
            memset(p, 0, 2 * page);
            CHECK(!os_guarded_copy(p + 2 * page - n, good, n + over));
            /* The pieces before the hole are there, but for the last vector block. */
            size_t sure = n > 64 ? n - 64 : 0;
            CHECK_BYTES(p + 2 * page - n, good, sure);
            memset(p, 0, 2 * page);
            CHECK(!os_guarded_copy(p, p + 2 * page - n, n + over));
            CHECK(!os_guarded_copy(good, p + 2 * page - n, n + over));
            fill_pattern(good, 4 * page, 11);
        }
    os_pages_free(p, 2 * page);
    os_pages_free(p + 3 * page, page);
    os_pages_free(good, 4 * page);
}

static void copy_truncated_file_reports_failure(void) {
    page = os_page_size();
    int fd = memfd_create("pages_test", MFD_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, (off_t)(4 * page)), 0);
    uint8_t *p = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED);
    uint8_t *good = map_pages(4);
    CHECK(os_guarded_copy(p, good, 4 * page));
    CHECK_EQ(ftruncate(fd, (off_t)page), 0);
    /* Still mapped, with all rights: the probe cannot know, the copy can. */
    CHECK_EQ(os_pages_probe(p, 4 * page, true), SN_OK);
    CHECK(os_guarded_copy(p, good, page));
    for (size_t i = 0; i < SOME_SIZES; i++)
        check_copy_fails(p + page, good, some_sizes[i]);
    check_copy_fails(p, good, 4 * page);
    munmap(p, 4 * page);
    close(fd);
    os_pages_free(good, 4 * page);
}

/* A freed block is the application's mistake; the copy reads it without tripping a sanitizer. */
static void copy_from_freed_heap_is_not_reported_by_sanitizers(void) {
    char *volatile p = malloc(100);
    CHECK(p != NULL);
    memset(p, 1, 100);
    uintptr_t where = (uintptr_t)p;
    free(p);
    char out[100];
    bool done = os_guarded_copy(out, (void *)where, sizeof out);
    CHECK(done || !done); /* either is right; what counts is that the process is alive */
}

/* One thread writes a whole block again and again with a new number; another polls its last byte
 * and, having seen it change, must find the rest of the block changed. Aligned words are never
 * seen in halves. */
struct order {
    uint8_t *block;
    size_t len;
    os_atomic_u32 stop, turn;
};

static void write_rounds(void *arg) {
    struct order *o = arg;
    uint8_t *src = malloc(o->len);
    for (uint32_t round = 1; !os_u32_load_acquire(&o->stop); round++) {
        memset(src, (int)(round & 0xff), o->len);
        if (!os_guarded_copy(o->block, src, o->len)) break;
        while (os_u32_load_acquire(&o->turn) != round && !os_u32_load_acquire(&o->stop))
            os_cpu_relax();
    }
    free(src);
}

static void copy_order_last_byte_is_seen_last(void) {
    static const size_t sizes[] = { 9, 24, 64, 100, 256, 1000, 2048, 5000, 20000 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct order o = { .len = sizes[i] };
        o.block = map_pages(6);
        os_thread t;
        CHECK_EQ(os_thread_start(&t, "writer", write_rounds, &o), SN_OK);
        const volatile uint8_t *last = o.block + o.len - 1;
        size_t torn = 0;
        uint64_t deadline = os_now_ns() + 20 * 1000 * OS_NS_PER_MS;
        uint32_t round = 1;
        for (; round <= 500 && os_now_ns() < deadline; round++) {
            while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != (round & 0xff) &&
                   os_now_ns() < deadline)
                os_cpu_relax();
            for (size_t b = 0; b < o.len; b++)
                torn += __atomic_load_n(&o.block[b], __ATOMIC_RELAXED) != (round & 0xff);
            os_u32_store_release(&o.turn, round);
        }
        os_u32_store_release(&o.stop, 1);
        os_thread_join(t);
        os_pages_free(o.block, 6 * page);
        if (torn) FAIL("size %zu: %zu bytes came after the last one", sizes[i], torn);
        CHECK(round > 1);
    }
}

/* Writes one aligned word among others, alternating two values that share no byte. */
struct words {
    uint64_t *at;
    os_atomic_u32 stop;
};

static void write_words(void *arg) {
    struct words *w = arg;
    uint8_t ones[72], twos[72];
    memset(ones, 0x11, sizeof ones);
    memset(twos, 0x22, sizeof twos);
    uint8_t *dst = (uint8_t *)w->at - 3; /* starts unaligned, covers at[0] to at[7] */
    while (!os_u32_load_acquire(&w->stop))
        if (!os_guarded_copy(dst, ones + 1, 69) || !os_guarded_copy(dst, twos, 69)) break;
}

static void copy_aligned_word_is_never_seen_in_halves(void) {
    uint64_t *p = (uint64_t *)(void *)map_pages(1);
    struct words w = { .at = p + 8 };
    memset((uint8_t *)p, 0x11, page);
    os_thread t;
    CHECK_EQ(os_thread_start(&t, "writer", write_words, &w), SN_OK);
    size_t bad = 0, changes = 0;
    uint64_t before = 0, deadline = os_now_ns() + 200 * OS_NS_PER_MS;
    while (os_now_ns() < deadline)
        for (int i = 0; i < 8; i++) {
            uint64_t v = __atomic_load_n(&w.at[i], __ATOMIC_RELAXED);
            bad += v != 0x1111111111111111u && v != 0x2222222222222222u;
            changes += v != before;
            before = v;
        }
    os_u32_store_release(&w.stop, 1);
    os_thread_join(t);
    os_pages_free(p, page);
    CHECK_EQ(bad, 0);
    CHECK(changes > 0);
}

/* ---- guarded call ---- */

struct sum {
    const volatile uint8_t *p;
    size_t len;
    uint64_t total;
};

static void add_up(void *arg) {
    struct sum *s = arg;
    for (size_t i = 0; i < s->len; i++)
        s->total += s->p[i];
}

static void call_over_good_memory_returns_true(void) {
    uint8_t *p = map_pages(1);
    memset(p, 2, page);
    struct sum s = { p, page, 0 };
    CHECK(os_guarded_call(add_up, &s));
    CHECK_EQ(s.total, 2 * page);
    os_pages_free(p, page);
}

static void call_over_missing_memory_returns_false_each_time(void) {
    uint8_t *p = map_pages(2);
    CHECK_EQ(munmap(p + page, page), 0);
    for (int i = 0; i < 1000; i++) {
        struct sum s = { p, page + 1, 0 };
        CHECK(!os_guarded_call(add_up, &s));
    }
    os_pages_free(p, page);
}

static bool inner_result;
static void call_inner(void *arg) {
    struct sum bad = { BAD, 1, 0 };
    inner_result = os_guarded_call(add_up, &bad);
    add_up(arg);
}

static void call_nested_only_the_inner_one_fails(void) {
    uint8_t *p = map_pages(1);
    struct sum good = { p, 10, 0 }, bad = { BAD, 1, 0 };
    inner_result = true;
    CHECK(os_guarded_call(call_inner, &good));
    CHECK(!inner_result);
    CHECK(!os_guarded_call(call_inner, &bad));
    os_pages_free(p, page);
}

/* ---- many threads ---- */

struct crowd {
    uint8_t *good, *bad;
    os_atomic_u32 wrong;
};

static void fault_often(void *arg) {
    struct crowd *c = arg;
    uint8_t local[256];
    for (int i = 0; i < 500; i++) {
        struct sum s = { i & 1 ? c->bad : c->good, 100, 0 };
        if (os_guarded_call(add_up, &s) != !(i & 1)) os_u32_fetch_add_relaxed(&c->wrong, 1);
        if (os_guarded_copy(local, c->bad, sizeof local)) os_u32_fetch_add_relaxed(&c->wrong, 1);
        if (!os_guarded_copy(local, c->good, sizeof local)) os_u32_fetch_add_relaxed(&c->wrong, 1);
    }
}

static void many_threads_faulting_at_once_all_recover(void) {
    struct crowd c = { .good = map_pages(1), .bad = map_pages(1) };
    CHECK_EQ(mprotect(c.bad, page, PROT_NONE), 0);
    os_thread t[8];
    for (int i = 0; i < 8; i++)
        CHECK_EQ(os_thread_start(&t[i], "crowd", fault_often, &c), SN_OK);
    for (int i = 0; i < 8; i++)
        os_thread_join(t[i]);
    CHECK_EQ(os_u32_load_acquire(&c.wrong), 0);
    os_pages_free(c.good, page);
    os_pages_free(c.bad, page);
}

/* ---- faults that are not ours, each in a process of its own that starts before the guard ---- */

static sigjmp_buf foreign_exit;
static volatile sig_atomic_t foreign_calls, foreign_signal, foreign_blocked, foreign_other_blocked;
static void *volatile foreign_addr;

static void foreign_handler(int sig, siginfo_t *info, void *context) {
    sigset_t now;
    (void)context;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    foreign_blocked = sigismember(&now, sig);
    foreign_other_blocked = sigismember(&now, SIGUSR1);
    foreign_calls++;
    foreign_signal = sig;
    foreign_addr = info->si_addr;
    siglongjmp(foreign_exit, 1);
}

static void plain_handler(int sig) {
    foreign_calls++;
    foreign_signal = sig;
    siglongjmp(foreign_exit, 1);
}

/* Runs body in a child; its wait status. The child's cases return 0 for what they expect. */
static int run_child(int (*body)(void)) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit none = { 0, 0 };
        setrlimit(RLIMIT_CORE, &none);
        _exit(body());
    }
    CHECK(pid > 0);
    int status;
    while (waitpid(pid, &status, 0) < 0)
        CHECK_EQ(errno, EINTR);
    return status;
}

/* One guarded failure, so that our handler is in. */
static int use_guard(void) {
    char c;
    struct sum s = { BAD, 1, 0 };
    return os_guarded_copy(&c, NULL, 1) || os_guarded_call(add_up, &s);
}

static int read_null(void) {
    volatile uintptr_t at = 16;
    return *(volatile int *)at;
}

static int child_foreign(void) {
    struct sigaction sa = { .sa_sigaction = foreign_handler, .sa_flags = SA_SIGINFO };
    sigemptyset(&sa.sa_mask);
    sigaddset(&sa.sa_mask, SIGUSR1);
    sigaction(SIGSEGV, &sa, NULL);
    if (use_guard()) return 1;
    if (foreign_calls != 0) return 2;
    for (int i = 1; i <= 3; i++) {
        if (sigsetjmp(foreign_exit, 1) == 0) read_null();
        if (foreign_calls != i || foreign_signal != SIGSEGV) return 3;
        if (foreign_addr != (void *)16 || !foreign_blocked || !foreign_other_blocked) return 4;
        if (use_guard() || foreign_calls != i) return 5;
    }
    return 0;
}

static int child_plain(void) {
    signal(SIGBUS, plain_handler);
    if (use_guard()) return 1;
    int fd = memfd_create("pages_test", MFD_CLOEXEC);
    volatile char *p = mmap(NULL, os_page_size(), PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) return 2;
    if (sigsetjmp(foreign_exit, 1) == 0) (void)p[0];
    return foreign_calls == 1 && foreign_signal == SIGBUS ? 0 : 3;
}

static int child_default(void) {
    signal(SIGSEGV, SIG_DFL);
    if (use_guard()) return 1;
    return read_null() ? 2 : 3;
}

static int child_ignore(void) {
    signal(SIGSEGV, SIG_IGN);
    if (use_guard()) return 1;
    raise(SIGSEGV); /* sent, not a fault: ignored */
    if (use_guard()) return 2;
    return read_null() ? 3 : 4;
}

static int child_sent(void) {
    signal(SIGSEGV, SIG_DFL);
    if (use_guard()) return 1;
    raise(SIGSEGV);
    return 2;
}

static int child_ours_blocked_thread(void) {
    /* A thread of ours blocks what can be blocked, but its guard works. */
    struct crowd c = { .good = os_pages_alloc(4096), .bad = os_pages_alloc(4096) };
    if (mprotect(c.bad, 4096, PROT_NONE) != 0) return 1;
    os_thread t;
    if (os_thread_start(&t, "guarded", fault_often, &c) != SN_OK) return 2;
    os_thread_join(t);
    return os_u32_load_acquire(&c.wrong) ? 3 : 0;
}

static void check_exited_ok(int status) {
    if (WIFSIGNALED(status)) FAIL("the child was ended by signal %d", WTERMSIG(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

static void check_ended_by(int status, int sig) {
    if (!WIFSIGNALED(status)) FAIL("the child exited with %d", WEXITSTATUS(status));
    CHECK_EQ(WTERMSIG(status), sig);
}

static void foreign_handler_still_gets_its_own_faults(void) {
    check_exited_ok(run_child(child_foreign));
}
static void foreign_handler_without_info_still_gets_its_own_faults(void) {
    check_exited_ok(run_child(child_plain));
}
static void foreign_fault_with_default_action_ends_the_process(void) {
    check_ended_by(run_child(child_default), SIGSEGV);
}
static void foreign_fault_while_ignored_ends_the_process(void) {
    check_ended_by(run_child(child_ignore), SIGSEGV);
}
static void foreign_sent_signal_with_default_action_ends_the_process(void) {
    check_ended_by(run_child(child_sent), SIGSEGV);
}
static void own_thread_with_blocked_signals_is_guarded(void) {
    check_exited_ok(run_child(child_ours_blocked_thread));
}

/* ---- figures ---- */

TEST_MAIN(
    /* first, in children that have not used the guard yet */
    TEST(foreign_handler_still_gets_its_own_faults),
    TEST(foreign_handler_without_info_still_gets_its_own_faults),
    TEST(foreign_fault_with_default_action_ends_the_process),
    TEST(foreign_fault_while_ignored_ends_the_process),
    TEST(foreign_sent_signal_with_default_action_ends_the_process),
    TEST(own_thread_with_blocked_signals_is_guarded),
    TEST(alloc_pages_gives_zeroes_that_can_be_written),
    TEST(probe_as_built_tells_mapping_and_rights), TEST(probe_by_query_tells_mapping_and_rights),
    TEST(probe_by_text_tells_mapping_and_rights), TEST(probe_by_touch_tells_mapping_and_rights),
    TEST(probe_big_range_commits_nothing), TEST(probe_out_of_descriptors_still_answers),
    TEST(copy_all_sizes_and_alignments_equals_memcpy),
    TEST(copy_nothing_from_nowhere_succeeds),
    TEST(copy_unmapped_or_forbidden_memory_reports_failure),
    TEST(copy_half_mapped_range_copies_up_to_the_hole), TEST(copy_truncated_file_reports_failure),
    TEST(copy_from_freed_heap_is_not_reported_by_sanitizers),
    TEST(copy_order_last_byte_is_seen_last), TEST(copy_aligned_word_is_never_seen_in_halves),
    TEST(call_over_good_memory_returns_true),
    TEST(call_over_missing_memory_returns_false_each_time),
    TEST(call_nested_only_the_inner_one_fails), TEST(many_threads_faulting_at_once_all_recover))
