/* SPDX-License-Identifier: MIT
 * perf.h - what the two ends of `softnd perf` agree on: the test's parameters and their messages.
 * Owns:    the greeting (private data of Connect) and every message of the control connection.
 * Threads: pure functions.   Errors: false for bytes that are none of ours or break a limit.
 *
 * A client opens a control connection (greeting role CONTROL), sends PERF_HELLO with all parameters
 * and gets PERF_READY with the server's memory. It opens the data connections (role DATA), then for
 * each message size: PERF_RUN, answered by PERF_GO; each end sends PERF_DONE when it has sent all
 * it has to, the other answers PERF_RESULT when that has arrived, and the server PERF_REPORT.
 *
 * Each thread of a test has all of this for itself. The first one's control connection is greeted
 * with session and index 0, and PERF_READY tells its session; those of the others, one after the
 * other, with that session and the thread's number. A thread's connections are all there before the
 * next thread's first.
 *
 * Greeting, 16 bytes: 0 magic "SNPF"  4 version u8  5 role u8  6 zero u16  8 session u32
 * 12 index u32. A message is 176 bytes: 0 magic  4 version u16  6 type u16  8 21 values u64. All in
 * network order.
 */
#ifndef TOOL_PERF_H
#define TOOL_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_GREETING_BYTES 16
#define PERF_VALUES 21
#define PERF_MESSAGE_BYTES (8 + 8 * PERF_VALUES)
#define PERF_QPS_MAX 1024u
#define PERF_THREADS_MAX 64u
#define PERF_IDLE_MAX 16384u
#define PERF_DEPTH_MAX 8192u
#define PERF_SGES_MAX 64u
#define PERF_SIZE_MAX (1ull << 30)
#define PERF_BUFFER_MAX (4ull << 30) /* of all threads of one end */
/* Receives beyond the window, for the messages that give credit. */
#define PERF_CREDIT_SLOTS 8u

enum perf_role { PERF_ROLE_CONTROL, PERF_ROLE_DATA };
enum perf_verb { PERF_SEND, PERF_WRITE, PERF_READ, PERF_CONNECT, PERF_REGISTER, PERF_VERBS };
enum perf_kind { PERF_LATENCY, PERF_BANDWIDTH, PERF_RATE };
/* What the application of the target does during Reads and Writes. */
enum perf_target { PERF_TARGET_POLL, PERF_TARGET_SLEEP, PERF_TARGET_BUSY };

struct perf_params {
    uint64_t verb, kind, target;
    uint64_t size; /* largest message, bytes */
    uint64_t tx_depth, rx_depth;
    uint64_t sges, inline_bytes, post_batch, cq_moderation;
    uint64_t qps, idle_qps, reads;
    uint64_t threads; /* at each end; queue pairs, depths and memory are those of one */
    uint64_t bidirectional, events, verify; /* 0 or 1 */
    uint64_t cold_bytes;                    /* memory that messages cycle through; 0: warm */
};

enum perf_type {
    PERF_HELLO,  /* the parameters */
    PERF_READY,  /* status, address, token, session */
    PERF_RUN,    /* struct perf_run_request */
    PERF_GO,     /* status */
    PERF_DONE,   /* messages sent, least of one queue pair */
    PERF_RESULT, /* messages received, wrong ones */
    PERF_REPORT, /* struct perf_report_values */
    PERF_BYE,
    PERF_TYPES
};

struct perf_message {
    uint16_t type;
    uint64_t v[PERF_VALUES];
};

/* Until the user, or the other end, has enough. */
#define PERF_ENDLESS UINT64_MAX

struct perf_run_request {
    uint64_t size;
    uint64_t iterations;  /* of each queue pair; 0 with a duration */
    uint64_t duration_ns; /* 0 with iterations; or PERF_ENDLESS */
    uint64_t warmup;      /* messages before the measurement */
};

/* What one end measured. */
struct perf_report_values {
    uint64_t messages, elapsed_ns; /* of its own sending */
    uint64_t received, wrong;
    uint64_t cpu_ns, wall_ns;
    uint64_t memory_bytes; /* that the process holds, 0 unknown */
};

void perf_pack_greeting(enum perf_role role, uint32_t session, uint32_t index,
                        uint8_t out[PERF_GREETING_BYTES]);
bool perf_unpack_greeting(const uint8_t *in, size_t len, enum perf_role *role, uint32_t *session,
                          uint32_t *index);
void perf_pack_message(const struct perf_message *m, uint8_t out[PERF_MESSAGE_BYTES]);
bool perf_unpack_message(const uint8_t *in, size_t len, struct perf_message *m);

void perf_params_to_message(const struct perf_params *p, struct perf_message *m);
/* NULL, or what is wrong with the parameters (static). */
const char *perf_params_check(const struct perf_params *p);
bool perf_params_from_message(const struct perf_message *m, struct perf_params *p);

/* "send_lat" and so on; NULL or false for what is no test. */
const char *perf_test_name(const struct perf_params *p);
bool perf_test_from_name(const char *name, struct perf_params *p);

/* ---- the memory of one end ---- */

#define PERF_HEAD_BYTES 4096u /* before the first area: target of the closing Read */

struct perf_layout {
    uint64_t stride; /* from one message's place to the next */
    uint64_t tx_slots, rx_slots, target_slots;
    uint64_t tx, rx, target; /* offsets */
    uint64_t bytes;
};
/* Both ends compute the same from the same parameters. */
void perf_layout_of(const struct perf_params *p, struct perf_layout *out);
/* Receives per queue pair, and received messages per credit. */
uint64_t perf_receives(const struct perf_params *p);
/* Entries that the completion queue of one thread needs. */
uint64_t perf_queue_depth(const struct perf_params *p);
uint64_t perf_credit_batch(const struct perf_params *p);

#endif
