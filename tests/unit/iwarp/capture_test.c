/* SPDX-License-Identifier: MIT
 *
 * The capture: however the octets of a stream arrive, one packet holds one start-up frame or FPDU,
 * with running sequence numbers, in a file that is whole after every packet.
 */
#include "iwarp/capture.h"
#include "iwarp/mpa.h"
#include "os/prim/pages.h"
#include "os/prim/thread.h"
#include "support/portable.h"
#include "support/testing.h"
#include "vectors.h"

#define V(id) (wire_vector(id)->bytes)
#define LEN(id) (wire_vector(id)->len)

static char path[512];

struct packet {
    uint32_t seq, ack;
    uint16_t from, to;
    uint8_t flags;
    size_t len;
    const uint8_t *data;
};
static uint8_t *file;
static size_t file_len;
static struct packet packets[512];
static size_t packet_count;

static uint32_t le32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}
static uint32_t be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
static uint16_t be16(const uint8_t *p) {
    return (uint16_t)(p[0] << 8 | p[1]);
}

static uint16_t ones_sum(const uint8_t *p, size_t n, uint32_t sum) {
    for (size_t i = 0; i < n; i++)
        sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xFFFF) + (sum >> 16);
    return (uint16_t)sum;
}

/* Reads what came since `from` packets. The capture stays open: the file must be whole now. */
static void read_packets(void) {
    FILE *f = fopen(path, "rb");
    CHECK(f != NULL);
    free(file);
    fseek(f, 0, SEEK_END);
    file_len = (size_t)ftell(f);
    rewind(f);
    file = malloc(file_len + 1);
    CHECK_EQ(fread(file, 1, file_len, f), file_len);
    fclose(f);
    packet_count = 0;
    CHECK_EQ(le32(file), 0x0A0D0D0A);
    for (size_t at = 0; at < file_len;) {
        CHECK(file_len - at >= 12);
        uint32_t type = le32(file + at), len = le32(file + at + 4);
        CHECK(len >= 12 && len % 4 == 0 && len <= file_len - at);
        CHECK_EQ(le32(file + at + len - 4), len);
        if (type == 6) {
            const uint8_t *frame = file + at + 28;
            size_t n = le32(file + at + 20);
            CHECK_EQ(le32(file + at + 24), n);
            bool six = be16(frame + 12) == 0x86DD;
            const uint8_t *ip = frame + 14, *tcp = ip + (six ? 40 : 20);
            size_t ip_bytes = six ? 40u + be16(ip + 4) : be16(ip + 2);
            CHECK_EQ(ip_bytes, n - 14);
            size_t tcp_bytes = (size_t)(frame + n - tcp), head = (size_t)(tcp[12] >> 4) * 4;
            if (!six) CHECK_EQ(ones_sum(ip, 20, 0), 0xFFFF);
            uint32_t pseudo =
                ones_sum(six ? ip + 8 : ip + 12, six ? 32 : 8, 6) + (uint32_t)tcp_bytes;
            CHECK_EQ(ones_sum(tcp, tcp_bytes, pseudo), 0xFFFF);
            CHECK(packet_count < 512);
            packets[packet_count++] = (struct packet){ .seq = be32(tcp + 4),
                                                       .ack = be32(tcp + 8),
                                                       .from = be16(tcp),
                                                       .to = be16(tcp + 2),
                                                       .flags = tcp[13],
                                                       .len = tcp_bytes - head,
                                                       .data = tcp + head };
        }
        at += len;
    }
}

static void begin(void) {
    if (path[0]) return;
    CHECK(test_temp_name(path, sizeof path - 32, "capture-test"));
    char *end = path + strlen(path);
    strcpy(end, "-%p.pcapng");
    test_setenv("SOFTND_CAPTURE", path);
    snprintf(end, 32, "-%u.pcapng", (unsigned)os_process_id());
}

static const struct os_addr here = { .family = 4, .port = 1000, .ip = { 127, 0, 0, 1 } };
static const struct os_addr there = { .family = 4, .port = 2000, .ip = { 10, 1, 2, 3 } };

/* A connection with a number of its own as our port. */
static struct iw_capture *start(bool active, uint16_t port) {
    struct os_addr local = here;
    begin();
    struct iw_capture *cap = iw_capture_create(active);
    CHECK(cap != NULL);
    local.port = port;
    iw_capture_start(cap, &local, &there);
    return cap;
}

static void feed(struct iw_capture *cap, bool outgoing, const uint8_t *p, size_t n, size_t step) {
    for (size_t off = 0; off < n; off += step) {
        size_t m = n - off < step ? n - off : step;
        struct os_iov iov = { (void *)(uintptr_t)(p + off), m };
        iw_capture_bytes(cap, outgoing, &iov, m);
    }
}

/* The n-th packet with payload that names this port, by sender. */
static const struct packet *payload(uint16_t port, bool outgoing, size_t n) {
    for (size_t i = 0; i < packet_count; i++) {
        const struct packet *p = &packets[i];
        if (p->len != 0 && (outgoing ? p->from : p->to) == port && n-- == 0) return p;
    }
    return NULL;
}

static void check_packet(uint16_t port, bool outgoing, size_t n, const uint8_t *data, size_t len) {
    const struct packet *p = payload(port, outgoing, n);
    CHECK(p != NULL);
    CHECK_EQ(p->len, len);
    CHECK_BYTES(p->data, data, len);
}

static void stream_cut_anywhere_gives_whole_units(void) {
    static const size_t steps[] = { 1, 2, 3, 7, 13, 4096 };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        uint16_t port = (uint16_t)(3000 + i);
        uint8_t out[1024], in[1024];
        size_t n = 0, m = 0;
        struct iw_capture *cap = start(true, port);
        memcpy(out, V("V1"), LEN("V1")), n = LEN("V1");
        memcpy(in, V("V2"), LEN("V2")), m = LEN("V2");
        feed(cap, true, out, n, steps[i]);
        feed(cap, false, in, m, steps[i]);
        n = m = 0;
        memcpy(out + n, V("V3"), LEN("V3")), n += LEN("V3");
        memcpy(out + n, V("V6"), LEN("V6")), n += LEN("V6");
        memcpy(out + n, V("V11a"), LEN("V11a")), n += LEN("V11a");
        memcpy(in + m, V("V4"), LEN("V4")), m += LEN("V4");
        memcpy(in + m, V("V7"), LEN("V7")), m += LEN("V7");
        feed(cap, true, out, n, steps[i]);
        feed(cap, false, in, m, steps[i]);
        read_packets();
        check_packet(port, true, 0, V("V1"), LEN("V1"));
        check_packet(port, false, 0, V("V2"), LEN("V2"));
        check_packet(port, true, 1, V("V3"), LEN("V3"));
        check_packet(port, true, 2, V("V6"), LEN("V6"));
        check_packet(port, true, 3, V("V11a"), LEN("V11a"));
        check_packet(port, false, 1, V("V4"), LEN("V4"));
        check_packet(port, false, 2, V("V7"), LEN("V7"));
        CHECK(payload(port, true, 4) == NULL);
        CHECK_EQ(payload(port, true, 1)->seq, payload(port, true, 0)->seq + LEN("V1"));
        CHECK_EQ(payload(port, true, 2)->seq, payload(port, true, 1)->seq + LEN("V3"));
        CHECK_EQ(payload(port, false, 1)->ack, payload(port, true, 3)->seq + LEN("V11a"));
        iw_capture_destroy(cap);
    }
}

/* M in the reply: the initiator's FPDUs carry markers, one of them between two FPDUs. */
static void markers_are_part_of_their_unit(void) {
    uint8_t reply[24], stream[8192], payloads[3][700], head[3][20];
    struct mpa_markers m = { 0 };
    size_t lens[3] = { 488, 480, 700 }, at[4] = { 0 };
    struct iw_capture *cap = start(true, 3100);
    memcpy(reply, V("V2"), LEN("V2"));
    reply[16] |= 0x80;
    feed(cap, true, V("V1"), LEN("V1"), 5);
    feed(cap, false, reply, sizeof reply, 5);
    for (int i = 0; i < 3; i++) {
        size_t n;
        memset(payloads[i], i + 1, sizeof payloads[i]);
        memset(head[i], 0, sizeof head[i]);
        head[i][0] = (uint8_t)((lens[i] + 18) >> 8);
        head[i][1] = (uint8_t)(lens[i] + 18);
        struct mpa_piece pieces[2] = { { head[i], 20 }, { payloads[i], lens[i] } };
        CHECK_EQ(mpa_fpdu_mark(&m, pieces, 2, true, stream + at[i], sizeof stream - at[i], &n),
                 SN_OK);
        at[i + 1] = at[i] + n;
    }
    feed(cap, true, stream, at[3], 11);
    read_packets();
    for (int i = 0; i < 3; i++)
        check_packet(3100, true, 1 + (size_t)i, stream + at[i], at[i + 1] - at[i]);
    iw_capture_destroy(cap);
}

static void unfinished_unit_is_written_at_the_end(void) {
    struct iw_capture *cap = start(false, 3200);
    feed(cap, false, V("V1"), LEN("V1"), 100);
    feed(cap, true, V("V2"), LEN("V2"), 100);
    feed(cap, false, V("V6"), 13, 100);
    read_packets();
    CHECK(payload(3200, false, 1) == NULL);
    iw_capture_destroy(cap);
    read_packets();
    check_packet(3200, false, 1, V("V6"), 13);
}

static void largest_fpdu_is_cut_in_two(void) {
    static uint8_t big[MPA_FPDU_MAX];
    struct iw_capture *cap = start(true, 3300);
    feed(cap, true, V("V1"), LEN("V1"), 100);
    feed(cap, false, V("V2"), LEN("V2"), 100);
    memset(big, 0xFF, sizeof big); /* ULPDU_Length 65535 */
    feed(cap, true, big, sizeof big, 10000);
    feed(cap, true, V("V6"), LEN("V6"), 100);
    read_packets();
    CHECK_EQ(payload(3300, true, 1)->len + payload(3300, true, 2)->len, sizeof big);
    CHECK(payload(3300, true, 1)->len >= 8);
    check_packet(3300, true, 3, V("V6"), LEN("V6"));
    iw_capture_destroy(cap);
}

static void stream_that_is_not_mpa_is_written_as_it_comes(void) {
    static const uint8_t http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct iw_capture *cap = start(false, 3400);
    feed(cap, false, http, sizeof http, 1000);
    feed(cap, false, http, sizeof http, 1000);
    read_packets();
    size_t seen = 0;
    for (size_t n = 0; payload(3400, false, n); n++)
        seen += payload(3400, false, n)->len;
    CHECK_EQ(seen, 2 * sizeof http);
    iw_capture_destroy(cap);
}

static void both_ends_here_are_recorded_once(void) {
    struct os_addr a = here, b = here;
    a.port = 3500;
    b.port = 3501;
    begin();
    struct iw_capture *one = iw_capture_create(true), *two = iw_capture_create(false);
    iw_capture_start(one, &a, &b);
    feed(one, true, V("V1"), LEN("V1"), 9);
    iw_capture_start(two, &b, &a);
    feed(two, false, V("V1"), LEN("V1"), 9);
    feed(two, true, V("V2"), LEN("V2"), 9);
    feed(one, false, V("V2"), LEN("V2"), 9);
    feed(one, true, V("V3"), LEN("V3"), 9);
    feed(two, false, V("V3"), LEN("V3"), 9);
    iw_capture_shut(one);
    iw_capture_destroy(one);
    feed(two, true, V("V4"), LEN("V4"), 9);
    iw_capture_destroy(two);
    read_packets();
    check_packet(3500, true, 0, V("V1"), LEN("V1"));
    check_packet(3500, true, 1, V("V3"), LEN("V3"));
    CHECK(payload(3500, true, 2) == NULL);
    check_packet(3500, false, 0, V("V2"), LEN("V2"));
    check_packet(3500, false, 1, V("V4"), LEN("V4"));
    CHECK(payload(3500, false, 2) == NULL);
    CHECK_EQ(payload(3500, true, 1)->ack, payload(3500, false, 0)->seq + LEN("V2"));
}

static void memory_that_is_gone_counts_as_zeros(void) {
    uint8_t zeros[32] = { 0 };
    size_t page = os_page_size();
    uint8_t *gone = os_pages_alloc(page);
    struct iw_capture *cap = start(true, 3600);
    feed(cap, true, V("V1"), LEN("V1"), 100);
    feed(cap, false, V("V2"), LEN("V2"), 100);
    os_pages_free(gone, page);
    feed(cap, true, V("V6"), 20, 100);
    feed(cap, true, gone, LEN("V6") - 20, 100);
    read_packets();
    memcpy(zeros, V("V6"), 20);
    check_packet(3600, true, 1, zeros, 32);
    iw_capture_destroy(cap);
}

static void ipv6_packets_are_well_formed(void) {
    struct os_addr a = { .family = 6, .port = 3700, .ip = { [15] = 1 } }, b = a;
    b.port = 3701;
    begin();
    struct iw_capture *cap = iw_capture_create(true);
    iw_capture_start(cap, &a, &b);
    feed(cap, true, V("V1"), LEN("V1"), 3);
    read_packets();
    check_packet(3700, true, 0, V("V1"), LEN("V1"));
    iw_capture_destroy(cap);
    unlink(path); /* the last case */
}

TEST_MAIN(TEST(stream_cut_anywhere_gives_whole_units), TEST(markers_are_part_of_their_unit),
          TEST(unfinished_unit_is_written_at_the_end), TEST(largest_fpdu_is_cut_in_two),
          TEST(stream_that_is_not_mpa_is_written_as_it_comes),
          TEST(both_ends_here_are_recorded_once), TEST(memory_that_is_gone_counts_as_zeros),
          TEST(ipv6_packets_are_well_formed))
