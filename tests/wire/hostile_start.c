/* SPDX-License-Identifier: MIT
 * Streams that strike during start-up: before the request, behind it, and in place of the reply.
 */
#include "hostile.h"

/* ---- instead of a request ---- */

static void text(struct stage *s) {
    static const char *const lines[] = { "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                         "SSH-2.0-OpenSSH_9.2\r\n",
                                         "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello TLS",
                                         "\xffSMB and a little more of it",
                                         "mpa id req frame\x50\x02",
                                         "\nMPA ID Req Frame\x50\x02",
                                         "MPA ID Req Frbme\x50\x02",
                                         "NPA ID Req Frame\x50\x02",
                                         "MPA ID ReQ Frame\x50\x02" };
    raw_put(&s->out, lines[s->a], strlen(lines[s->a]));
    raw_fill(&s->out, 0, 32);
}

static void octets(struct stage *s) {
    raw_fill(&s->out, (uint8_t)s->b, s->a);
}

static void noise(struct stage *s) {
    uint32_t x = (uint32_t)s->b;
    for (uint32_t i = 0; i < s->a; i++) {
        x = x * 1664525u + 1013904223u;
        raw_be(&s->out, x >> 24, 1);
    }
}

/* A header with these flags (a >> 8) and revision (a), private data as announced in b, up to the
 * most that may be. */
static void request(struct stage *s) {
    uint16_t pd = (uint16_t)s->b;
    raw_start(&s->out, false, (uint8_t)(s->a >> 8), (uint8_t)s->a, pd);
    raw_fill(&s->out, 0x11, pd);
}

static void reply_key(struct stage *s) {
    raw_start2(&s->out, true, 0, RAW_A | 8, RAW_RTR_WRITE | 8, "x", 1);
}

/* The first `a` octets of a good frame of 28. */
static void cut_request(struct stage *s) {
    raw_start2(&s->out, false, 0, RAW_A | 8, RAW_RTR_WRITE | 8, "abcd", 4);
    s->out.len = s->a;
}

/* ---- behind a good request ---- */

static void early_fpdu(struct stage *s) {
    raw_write(&s->out, true, 1, 0, NULL, 0);
}

static void early_request(struct stage *s) {
    raw_start2(&s->out, false, 0, RAW_A | 8, RAW_RTR_WRITE | 8, NULL, 0);
}

/* ---- instead of a reply ---- */

/* As request(), with the reply's key. */
static void reply(struct stage *s) {
    uint16_t pd = (uint16_t)s->b;
    raw_start(&s->out, true, (uint8_t)(s->a >> 8), (uint8_t)s->a, pd);
    raw_fill(&s->out, 0x11, pd);
}

/* A reply of revision 2 with these enhanced words. */
static void enhanced_reply(struct stage *s) {
    raw_start2(&s->out, true, (uint8_t)s->b, (uint16_t)(s->a >> 16), (uint16_t)s->a, NULL, 0);
    s->about = 0;
}

static void rejecting(struct stage *s) {
    raw_start2(&s->out, true, RAW_R, 8, 8, hostile_payload(), (uint16_t)s->a);
}

static void request_key(struct stage *s) {
    raw_start2(&s->out, false, 0, RAW_A | 8, RAW_RTR_WRITE | 8, "x", 1);
}

static void cut_reply(struct stage *s) {
    raw_start2(&s->out, true, 0, RAW_A | 8, RAW_RTR_WRITE | 8, "abcd", 4);
    s->out.len = s->a;
}

/* A good reply, and garbage where the first FPDU may be. */
static void good_reply_then_noise(struct stage *s) {
    raw_start2(&s->out, true, 0, RAW_A | 8, RAW_RTR_READ | 8, NULL, 0);
}

#define RAW(n, p, a, b, ...) ROW(n, W_RAW, p, a, b, SILENT(SN_OK), __VA_ARGS__)
#define REQ(n, p, a, b, ...) ROW(n, W_REQUESTED, p, a, b, SILENT(SN_OK), __VA_ARGS__)
#define REPLY(n, p, a, b, ...) ROW(n, W_REPLY, p, a, b, __VA_ARGS__)
#define REFUSED SILENT(SN_E_REFUSED)
#define MPA(k)                                                                                     \
    .ending = E_TERM, .layer = 2, .type = 0, .code = (k), .quote = 0, .status = SN_E_REFUSED
#define WORDS(w1, w2) ((uint32_t)(w1) << 16 | (w2))

const struct stream start_streams[] = {
    RAW(raw_http, text, 0, 0, .after = AFTER_WAIT),
    RAW(raw_ssh, text, 1, 0, .after = AFTER_WAIT),
    RAW(raw_tls, text, 2, 0, .after = AFTER_WAIT),
    RAW(raw_smb, text, 3, 0, .after = AFTER_WAIT),
    RAW(raw_key_in_lower_case, text, 4, 0, .after = AFTER_WAIT),
    RAW(raw_newline_before_the_key, text, 5, 0, .after = AFTER_WAIT),
    RAW(raw_key_wrong_in_octet_14, text, 6, 0, .after = AFTER_WAIT),
    RAW(raw_key_wrong_in_octet_0, text, 7, 0, .after = AFTER_WAIT),
    RAW(raw_key_wrong_in_octet_9, text, 8, 0, .after = AFTER_WAIT),
    RAW(raw_zeros, octets, 20, 0, .after = AFTER_WAIT),
    RAW(raw_ones, octets, 532, 0xFF, .after = AFTER_WAIT),
    RAW(raw_noise_64, noise, 64, 1, .after = AFTER_WAIT),
    RAW(raw_noise_1m, noise, 1 << 20, 2, .after = AFTER_WAIT),
    RAW(raw_reply_key_at_a_listener, reply_key, 0, 0, .after = AFTER_WAIT),
    RAW(raw_revision_0, request, 0xC000, 0, .after = AFTER_WAIT),
    RAW(raw_revision_3, request, 0x4003, 0, .after = AFTER_WAIT),
    RAW(raw_revision_127, request, 0x507F, 8, .after = AFTER_WAIT),
    RAW(raw_revision_255, request, 0x50FF, 8, .after = AFTER_WAIT),
    RAW(raw_pd_513, request, 0x4001, 513, .after = AFTER_WAIT),
    RAW(raw_pd_513_enhanced, request, 0x5002, 513, .after = AFTER_WAIT),
    RAW(raw_pd_4096, request, 0x4002, 4096, .after = AFTER_WAIT),
    RAW(raw_pd_65535, request, 0x5002, 65535, .after = AFTER_WAIT),
    RAW(raw_enhanced_with_pd_0, request, 0x5002, 0, .after = AFTER_WAIT),
    RAW(raw_enhanced_with_pd_1, request, 0x5002, 1, .after = AFTER_WAIT),
    RAW(raw_enhanced_with_pd_2, request, 0x5002, 2, .after = AFTER_WAIT),
    RAW(raw_enhanced_with_pd_3, request, 0x5002, 3, .after = AFTER_WAIT),
    RAW(raw_fin_at_once, cut_request, 0, 0, .after = AFTER_FIN),
    RAW(raw_fin_after_1, cut_request, 1, 0, .after = AFTER_FIN),
    RAW(raw_fin_after_the_key, cut_request, 16, 0, .after = AFTER_FIN),
    RAW(raw_fin_in_the_header, cut_request, 19, 0, .after = AFTER_FIN),
    RAW(raw_fin_in_the_enhanced_words, cut_request, 22, 0, .after = AFTER_FIN),
    RAW(raw_fin_in_the_private_data, cut_request, 27, 0, .after = AFTER_FIN),
    RAW(raw_rst_at_once, cut_request, 0, 0, .after = AFTER_RST),
    RAW(raw_rst_in_the_key, cut_request, 7, 0, .after = AFTER_RST),
    RAW(raw_rst_in_the_header, cut_request, 19, 0, .after = AFTER_RST),
    RAW(raw_rst_in_the_private_data, cut_request, 27, 0, .after = AFTER_RST),

    REQ(requested_one_octet_early, octets, 1, 0, .after = AFTER_WAIT),
    REQ(requested_fpdu_early, early_fpdu, 0, 0, .after = AFTER_WAIT),
    REQ(requested_second_request, early_request, 0, 0, .after = AFTER_WAIT),
    REQ(requested_reply_key, reply_key, 0, 0, .after = AFTER_WAIT),
    REQ(requested_noise, noise, 100000, 3, .after = AFTER_WAIT),
    REQ(requested_fin, octets, 0, 0, .after = AFTER_FIN),
    REQ(requested_octet_and_fin, octets, 1, 7, .after = AFTER_FIN),
    REQ(requested_rst, octets, 0, 0, .after = AFTER_RST),
    REQ(requested_octet_and_rst, octets, 1, 7, .after = AFTER_RST),

    REPLY(reply_http, text, 0, 0, REFUSED),
    REPLY(reply_zeros, octets, 20, 0, REFUSED),
    REPLY(reply_noise_1m, noise, 1 << 20, 4, REFUSED),
    REPLY(reply_with_request_key, request_key, 0, 0, REFUSED),
    REPLY(reply_revision_0, reply, 0xC000, 0, REFUSED),
    REPLY(reply_revision_3, reply, 0x5003, 4, REFUSED),
    REPLY(reply_revision_255, reply, 0x50FF, 4, REFUSED),
    REPLY(reply_pd_513, reply, 0x4002, 513, REFUSED),
    REPLY(reply_pd_65535, reply, 0x5002, 65535, REFUSED),
    REPLY(reply_enhanced_with_pd_0, reply, 0x5002, 0, REFUSED),
    REPLY(reply_enhanced_with_pd_1, reply, 0x5002, 1, REFUSED),
    REPLY(reply_enhanced_with_pd_3, reply, 0x5002, 3, REFUSED),
    REPLY(reply_reject_enhanced_with_pd_2, reply, 0x7002, 2, REFUSED),
    REPLY(reply_reject_with_pd_0, rejecting, 0, 0, REFUSED, .after = AFTER_FIN),
    REPLY(reply_reject_with_pd_508, rejecting, 508, 0, REFUSED, .after = AFTER_FIN),
    REPLY(reply_reject_of_revision_1, reply, 0x6001, 512, REFUSED, .after = AFTER_FIN),
    REPLY(reply_revision_1_to_2, reply, 0x4001, 0, REFUSED, .retry = true),
    REPLY(reply_not_enhanced, reply, 0x4002, 0, REFUSED, .retry = true),
    REPLY(reply_not_enhanced_with_pd_512, reply, 0x4002, 512, REFUSED, .retry = true),
    REPLY(reply_fin_at_once, cut_reply, 0, 0, REFUSED, .after = AFTER_FIN, .retry = true),
    REPLY(reply_rst_at_once, cut_reply, 0, 0, REFUSED, .after = AFTER_RST, .retry = true),
    REPLY(reply_fin_after_1, cut_reply, 1, 0, REFUSED, .after = AFTER_FIN),
    REPLY(reply_fin_in_the_header, cut_reply, 19, 0, REFUSED, .after = AFTER_FIN),
    REPLY(reply_fin_in_the_private_data, cut_reply, 27, 0, REFUSED, .after = AFTER_FIN),
    REPLY(reply_rst_in_the_header, cut_reply, 19, 0, REFUSED, .after = AFTER_RST),
    REPLY(reply_rst_in_the_private_data, cut_reply, 27, 0, REFUSED, .after = AFTER_RST),
    REPLY(reply_without_peer_to_peer, enhanced_reply, WORDS(8, 8), 0, MPA(7)),
    REPLY(reply_without_peer_to_peer_but_flags, enhanced_reply,
          WORDS(8 | RAW_B, 8 | RAW_RTR_WRITE | RAW_RTR_READ), 0, MPA(7)),
    REPLY(reply_without_rtr, enhanced_reply, WORDS(RAW_A | 8, 8), 0, MPA(7)),
    REPLY(reply_with_rtr_by_send_only, enhanced_reply, WORDS(RAW_A | RAW_B | 8, 8), 0, MPA(7)),
    REPLY(reply_ord_129, enhanced_reply, WORDS(RAW_A | 8, RAW_RTR_WRITE | 129), 0, MPA(6)),
    REPLY(reply_ord_3ffe, enhanced_reply, WORDS(RAW_A | 8, RAW_RTR_READ | 0x3FFE), 0, MPA(6)),
    REPLY(reply_ord_any, enhanced_reply, WORDS(RAW_A | 0x3FFF, RAW_RTR_WRITE | 0x3FFF), 0, ALIVE),
    REPLY(reply_ird_0, enhanced_reply, WORDS(RAW_A, RAW_RTR_WRITE | 1), 0, ALIVE),
    REPLY(reply_reserved_flags, enhanced_reply, WORDS(RAW_A | 8, RAW_RTR_WRITE | 8), 0x0F, ALIVE),
    REPLY(reply_all_rtr_flags, enhanced_reply,
          WORDS(RAW_A | RAW_B | 8, RAW_RTR_WRITE | RAW_RTR_READ | 8), 0, ALIVE),
    REPLY(reply_rtr_by_read, good_reply_then_noise, 0, 0, ALIVE),
};
const size_t start_stream_count = SN_ARRAY_LEN(start_streams);
