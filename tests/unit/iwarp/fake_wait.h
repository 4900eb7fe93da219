/* SPDX-License-Identifier: MIT
 * fake_wait.h - what tests of a transport do with two fake cores and wait for.
 */
#ifndef SN_TESTS_FAKE_WAIT_H
#define SN_TESTS_FAKE_WAIT_H

#include "os/prim/thread.h"
#include "support/testing.h"
#include "unit/iwarp/fake_core.h"

#define WAIT_FOR(cond)                                                                             \
    do {                                                                                           \
        uint64_t wait_end = os_now_ns() + 20000 * OS_NS_PER_MS;                                    \
        while (!(cond)) {                                                                          \
            if (os_now_ns() > wait_end) FAIL("timed out waiting for %s", #cond);                   \
            os_thread_yield();                                                                     \
        }                                                                                          \
    } while (0)

/* What each end has for its memory. */
enum { FAKE_MEM_BYTES = 8 << 20 };

/* In each round 100 Sends each way, and Reads and local requests between them; each memory holds 80
 * KiB at least. */
static inline void fake_exchange_many(struct fake_qp *a, uint8_t *mem_a, struct fake_qp *b,
                                      uint8_t *mem_b, int rounds) {
    for (int round = 0; round < rounds; round++) {
        uint32_t a0 = os_u32_load_seqcst(&a->done_count);
        uint32_t b0 = os_u32_load_seqcst(&b->done_count);
        for (int i = 0; i < 100; i++) {
            fake_post_receive(a, mem_a + 4096, 2048);
            fake_post_receive(b, mem_b + 4096, 2048);
        }
        for (int i = 0; i < 100; i++) {
            fake_post(a, TP_OP_SEND, 0, mem_a, (uint32_t)(i * 17) % 2048, 0, 0);
            fake_post(b, TP_OP_SEND, 0, mem_b, (uint32_t)(i * 13) % 2048, 0, 0);
            if (i % 3 == 0)
                fake_post(a, TP_OP_READ, i % 2 ? TP_F_FENCE : 0, mem_a + 8192, 70000,
                          (uint64_t)(uintptr_t)mem_b, FAKE_REMOTE);
            if (i % 5 == 0) fake_post(b, TP_OP_LOCAL, TP_F_FENCE, NULL, 0, 0, 0);
        }
        WAIT_FOR(os_u32_load_seqcst(&a->done_count) == a0 + 134);
        WAIT_FOR(os_u32_load_seqcst(&b->done_count) == b0 + 120);
    }
}

static inline void fill(uint8_t *p, size_t n, uint32_t seed) {
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (uint8_t)(seed >> 24);
    }
}

/* One solicited Send of 64 bytes from a to b. */
static inline void fake_send_small(struct fake_qp *a, uint8_t *mem_a, struct fake_qp *b,
                                   uint8_t *mem_b) {
    struct fake_receive *r = fake_post_receive(b, mem_b, 100);
    fill(mem_a, 64, 1);
    struct fake_request *s = fake_post(a, TP_OP_SEND, TP_F_SOLICIT, mem_a, 64, 0, 0);
    WAIT_FOR(os_u32_load_seqcst(&b->recv_count) == 1);
    CHECK_EQ(r->status, SN_OK);
    CHECK_EQ(r->bytes, 64);
    CHECK_EQ(r->flags, TP_RECV_SOLICITED);
    CHECK_BYTES(mem_b, mem_a, 64);
    WAIT_FOR(os_u32_load_seqcst(&a->done_count) == 1);
    CHECK_EQ(s->status, SN_OK);
}

/* Sends and Writes from a to b, and Reads by b, of sizes around every limit: each byte comes to its
 * place, and none beside it changes. The first requests of this pair. */
static inline void fake_move_all_sizes(struct fake_qp *a, uint8_t *mem_a, struct fake_qp *b,
                                       uint8_t *mem_b) {
    static const uint32_t sizes[] = { 0,     1,     2,     3,      511,     512,
                                      513,   1023,  1024,  4096,   16383,   16384,
                                      63487, 63488, 63489, 100001, 1000003, 4u << 20 };
    uint32_t a_done = 0, b_recv = 0, b_done = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint32_t n = sizes[i], off = (uint32_t)(i * 7);
        fill(mem_a + off, n, n + 1);
        memset(mem_b, 0xEE, FAKE_MEM_BYTES);
        struct fake_receive *r = fake_post_receive(b, mem_b + 3, n + 5);
        fake_post(a, TP_OP_SEND, 0, mem_a + off, n, 0, 0);
        WAIT_FOR(os_u32_load_seqcst(&b->recv_count) == b_recv + 1);
        b_recv++;
        CHECK_EQ(r->bytes, n);
        CHECK_BYTES(mem_b + 3, mem_a + off, n);
        CHECK_EQ(mem_b[2], 0xEE);
        CHECK_EQ(mem_b[3 + n], 0xEE);
        memset(mem_b, 0xDD, FAKE_MEM_BYTES);
        struct fake_request *w = fake_post(a, TP_OP_WRITE, 0, mem_a + off, n,
                                           (uint64_t)(uintptr_t)(mem_b + 11), FAKE_REMOTE);
        a_done += 2;
        WAIT_FOR(os_u32_load_seqcst(&a->done_count) == a_done);
        CHECK_EQ(w->status, SN_OK);
        CHECK_BYTES(mem_b + 11, mem_a + off, n);
        CHECK_EQ(mem_b[10], 0xDD);
        CHECK_EQ(mem_b[11 + n], 0xDD);
        memset(mem_b, 0xCC, FAKE_MEM_BYTES);
        struct fake_request *rd = fake_post(b, TP_OP_READ, 0, mem_b + 5, n,
                                            (uint64_t)(uintptr_t)(mem_a + off), FAKE_REMOTE);
        WAIT_FOR(os_u32_load_seqcst(&b->done_count) == b_done + 1);
        b_done++;
        CHECK_EQ(rd->status, SN_OK);
        CHECK_BYTES(mem_b + 5, mem_a + off, n);
        CHECK_EQ(mem_b[4], 0xCC);
        CHECK_EQ(mem_b[5 + n], 0xCC);
    }
}

#endif
