/* SPDX-License-Identifier: MIT
 * perf_proto.c - see perf.h.
 */
#include "perf.h"

#include <string.h>

#define VERSION 2
#define ALIGN_BYTES 64u
static const uint8_t magic[4] = { 'S', 'N', 'P', 'F' };

static const struct {
    const char *name;
    enum perf_verb verb;
    enum perf_kind kind;
} tests[] = {
    { "send_lat", PERF_SEND, PERF_LATENCY },   { "send_bw", PERF_SEND, PERF_BANDWIDTH },
    { "write_lat", PERF_WRITE, PERF_LATENCY }, { "write_bw", PERF_WRITE, PERF_BANDWIDTH },
    { "read_lat", PERF_READ, PERF_LATENCY },   { "read_bw", PERF_READ, PERF_BANDWIDTH },
    { "conn_rate", PERF_CONNECT, PERF_RATE },  { "reg_rate", PERF_REGISTER, PERF_RATE },
};
#define TEST_COUNT (sizeof tests / sizeof tests[0])

static void put(uint8_t *out, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++)
        out[i] = (uint8_t)(v >> (8 * (bytes - 1 - i)));
}

static uint64_t get(const uint8_t *in, int bytes) {
    uint64_t v = 0;

    for (int i = 0; i < bytes; i++)
        v = v << 8 | in[i];
    return v;
}

void perf_pack_greeting(enum perf_role role, uint32_t session, uint32_t index,
                        uint8_t out[PERF_GREETING_BYTES]) {
    memset(out, 0, PERF_GREETING_BYTES);
    memcpy(out, magic, sizeof magic);
    out[4] = VERSION;
    out[5] = (uint8_t)role;
    put(out + 8, session, 4);
    put(out + 12, index, 4);
}

bool perf_unpack_greeting(const uint8_t *in, size_t len, enum perf_role *role, uint32_t *session,
                          uint32_t *index) {
    if (len < PERF_GREETING_BYTES || memcmp(in, magic, sizeof magic) != 0 || in[4] != VERSION)
        return false;
    if (in[5] != PERF_ROLE_CONTROL && in[5] != PERF_ROLE_DATA) return false;
    *role = (enum perf_role)in[5];
    *session = (uint32_t)get(in + 8, 4);
    *index = (uint32_t)get(in + 12, 4);
    return true;
}

void perf_pack_message(const struct perf_message *m, uint8_t out[PERF_MESSAGE_BYTES]) {
    memcpy(out, magic, sizeof magic);
    put(out + 4, VERSION, 2);
    put(out + 6, m->type, 2);
    for (int i = 0; i < PERF_VALUES; i++)
        put(out + 8 + 8 * i, m->v[i], 8);
}

bool perf_unpack_message(const uint8_t *in, size_t len, struct perf_message *m) {
    if (len != PERF_MESSAGE_BYTES || memcmp(in, magic, sizeof magic) != 0) return false;
    if (get(in + 4, 2) != VERSION || get(in + 6, 2) >= PERF_TYPES) return false;
    m->type = (uint16_t)get(in + 6, 2);
    for (int i = 0; i < PERF_VALUES; i++)
        m->v[i] = get(in + 8 + 8 * i, 8);
    return true;
}

void perf_params_to_message(const struct perf_params *p, struct perf_message *m) {
    const uint64_t v[PERF_VALUES] = { p->verb,       p->kind,          p->target, p->size,
                                      p->tx_depth,   p->rx_depth,      p->sges,   p->inline_bytes,
                                      p->post_batch, p->cq_moderation, p->qps,    p->idle_qps,
                                      p->reads,      p->bidirectional, p->events, p->verify,
                                      p->cold_bytes, p->threads };

    m->type = PERF_HELLO;
    memcpy(m->v, v, sizeof v);
}

bool perf_params_from_message(const struct perf_message *m, struct perf_params *p) {
    if (m->type != PERF_HELLO) return false;
    *p = (struct perf_params){ .verb = m->v[0],
                               .kind = m->v[1],
                               .target = m->v[2],
                               .size = m->v[3],
                               .tx_depth = m->v[4],
                               .rx_depth = m->v[5],
                               .sges = m->v[6],
                               .inline_bytes = m->v[7],
                               .post_batch = m->v[8],
                               .cq_moderation = m->v[9],
                               .qps = m->v[10],
                               .idle_qps = m->v[11],
                               .reads = m->v[12],
                               .bidirectional = m->v[13],
                               .events = m->v[14],
                               .verify = m->v[15],
                               .cold_bytes = m->v[16],
                               .threads = m->v[17] };
    return perf_params_check(p) == NULL;
}

static bool within(uint64_t v, uint64_t min, uint64_t max) {
    return v >= min && v <= max;
}

static const char *check_combination(const struct perf_params *p) {
    if (p->kind == PERF_LATENCY) {
        if (p->qps != 1) return "a latency test uses one queue pair (see --idle)";
        if (p->bidirectional) return "a latency test goes both ways already";
        if (p->cq_moderation != 1 || p->post_batch != 1)
            return "a latency test has one message under way: no CQ moderation, no post batch";
        if (p->cold_bytes) return "cold buffers are for bandwidth tests";
        if (p->verb == PERF_WRITE && p->events)
            return "write latency polls the target's memory: there is no event to wait for";
    }
    if (p->threads != 1 && p->kind != PERF_BANDWIDTH) return "threads are for bandwidth tests";
    if (p->verify && p->cold_bytes) return "--verify and --cold exclude each other";
    if (p->verify && p->cq_moderation != 1) return "--verify needs every completion";
    if (p->target != PERF_TARGET_POLL && (p->verb == PERF_SEND || p->bidirectional))
        return "with Sends, or both ways, the target's application takes part";
    if (p->target != PERF_TARGET_POLL && p->verb == PERF_WRITE && p->kind == PERF_LATENCY)
        return "write latency needs a target that answers";
    return NULL;
}

const char *perf_params_check(const struct perf_params *p) {
    struct perf_layout layout;
    const char *wrong;

    if (!perf_test_name(p)) return "no such test";
    if (p->target > PERF_TARGET_BUSY) return "no such target";
    if (p->bidirectional > 1 || p->events > 1 || p->verify > 1) return "flags are 0 or 1";
    if (!within(p->size, 1, PERF_SIZE_MAX)) return "the size is 1 to 1G";
    if (!within(p->tx_depth, 1, PERF_DEPTH_MAX) || !within(p->rx_depth, 1, PERF_DEPTH_MAX))
        return "depths are 1 to 8192";
    if (!within(p->sges, 1, PERF_SGES_MAX)) return "SGEs are 1 to 64";
    if (p->inline_bytes > 65536) return "inline data is at most 64K";
    if (!within(p->qps, 1, PERF_QPS_MAX)) return "queue pairs are 1 to 1024";
    if (!within(p->threads, 1, PERF_THREADS_MAX)) return "threads are 1 to 64";
    if (p->idle_qps > PERF_IDLE_MAX) return "idle queue pairs are at most 16384";
    if (!within(p->reads, 1, 1024)) return "Reads in progress are 1 to 1024";
    if (!within(p->post_batch, 1, p->tx_depth)) return "the post batch is at most the depth";
    if (!within(p->cq_moderation, 1, p->tx_depth)) return "CQ moderation is at most the depth";
    if (p->cold_bytes > PERF_BUFFER_MAX) return "cold memory is at most 4G";
    /* Otherwise the room for a batch would depend on a result or credit that comes after it. */
    if (p->cq_moderation - 1 > p->tx_depth - p->post_batch)
        return "post batch and CQ moderation together are more than the depth";
    if (p->verb == PERF_SEND && p->post_batch > p->rx_depth - (perf_credit_batch(p) - 1))
        return "the post batch is too large for so few Receives";
    wrong = check_combination(p);
    if (wrong) return wrong;
    perf_layout_of(p, &layout);
    if (layout.bytes > PERF_BUFFER_MAX / p->threads)
        return "more than 4G of buffers would be needed; lower the size, --cold, the threads, or "
               "with --verify the depth or the QPs";
    return NULL;
}

const char *perf_test_name(const struct perf_params *p) {
    for (size_t i = 0; i < TEST_COUNT; i++)
        if (tests[i].verb == p->verb && tests[i].kind == p->kind) return tests[i].name;
    return NULL;
}

bool perf_test_from_name(const char *name, struct perf_params *p) {
    for (size_t i = 0; i < TEST_COUNT; i++)
        if (!strcmp(tests[i].name, name)) {
            p->verb = tests[i].verb;
            p->kind = tests[i].kind;
            return true;
        }
    return false;
}

uint64_t perf_receives(const struct perf_params *p) {
    return p->rx_depth + PERF_CREDIT_SLOTS;
}

uint64_t perf_queue_depth(const struct perf_params *p) {
    if (p->kind == PERF_RATE) return 1; /* nothing is posted */
    return p->qps * (p->tx_depth + PERF_CREDIT_SLOTS + 1 + perf_receives(p)) + 2 * p->idle_qps;
}

/* A quarter of the window, rounded up: at most four credits are under way, and the sender learns
 * of room long before it has none. A window below four gives credit for every message. */
uint64_t perf_credit_batch(const struct perf_params *p) {
    return (p->rx_depth + 3) / 4;
}

/* Warm messages share one place. Those that are verified each have their own. The largest product
 * is 2^30 * 2^10 * 2^14, so nothing wraps. */
void perf_layout_of(const struct perf_params *p, struct perf_layout *out) {
    uint64_t stride = (p->size + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES, cycle = 1;
    bool one_sided = p->verb == PERF_WRITE || p->verb == PERF_READ;

    if (p->cold_bytes > stride) cycle = p->cold_bytes / stride;
    *out = (struct perf_layout){ .stride = stride, .tx = PERF_HEAD_BYTES };
    if (p->kind == PERF_RATE) {
        out->bytes = PERF_HEAD_BYTES;
        return;
    }
    out->tx_slots = p->verify ? p->qps * p->tx_depth : cycle;
    if (one_sided) out->target_slots = out->tx_slots;
    if (!one_sided) out->rx_slots = p->verify ? p->qps * perf_receives(p) : cycle;
    out->rx = out->tx + out->tx_slots * stride;
    out->target = out->rx + out->rx_slots * stride;
    out->bytes = out->target + out->target_slots * stride;
}
