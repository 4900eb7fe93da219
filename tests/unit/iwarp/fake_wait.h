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

#endif
