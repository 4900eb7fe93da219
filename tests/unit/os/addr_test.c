/* SPDX-License-Identifier: MIT */
#include "os/io/addr.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include "support/testing.h"

static struct os_addr v4(const char *ip, uint16_t port) {
    struct os_addr a = { .family = 4, .port = port };
    if (inet_pton(AF_INET, ip, a.ip) != 1) FAIL("bad literal %s", ip);
    return a;
}

static struct os_addr v6(const char *ip, uint16_t port, uint32_t scope) {
    struct os_addr a = { .family = 6, .port = port, .scope_id = scope };
    if (inet_pton(AF_INET6, ip, a.ip) != 1) FAIL("bad literal %s", ip);
    return a;
}

static void sockaddr_v4_round_trip_keeps_all(void) {
    struct os_addr a = v4("192.0.2.7", 4711), b;
    struct sockaddr_in in;
    CHECK_EQ(os_addr_to_sockaddr(&a, &in), 16);
    CHECK_EQ(os_addr_sockaddr_size(&a), 16);
    CHECK_EQ(in.sin_family, AF_INET);
    CHECK_EQ(ntohs(in.sin_port), 4711);
    CHECK_EQ(ntohl(in.sin_addr.s_addr), 0xc0000207);
    memset(&b, 0xff, sizeof b);
    CHECK_EQ(os_addr_from_sockaddr(&b, &in, sizeof in), SN_OK);
    CHECK_BYTES(&b, &a, sizeof a);
}

static void sockaddr_v6_round_trip_keeps_scope_of_link_local_only(void) {
    struct os_addr a = v6("fe80::1:2", 80, 3), b;
    uint8_t raw[OS_SOCKADDR_MAX + 8];
    CHECK_EQ(os_addr_to_sockaddr(&a, raw + 1), 28); /* any alignment */
    CHECK_EQ(os_addr_from_sockaddr(&b, raw + 1, 28), SN_OK);
    CHECK_BYTES(&b, &a, sizeof a);
    a = v6("2001:db8::1", 80, 3);
    os_addr_to_sockaddr(&a, raw);
    CHECK_EQ(os_addr_from_sockaddr(&b, raw, sizeof raw), SN_OK);
    CHECK_EQ(b.scope_id, 0);
    CHECK_EQ(b.port, 80);
}

static void sockaddr_short_or_foreign_is_refused_and_output_kept(void) {
    struct os_addr out = v4("1.2.3.4", 5), keep = out;
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
    struct sockaddr_in in = { .sin_family = AF_INET };
    struct sockaddr un = { .sa_family = AF_UNIX };
    CHECK_EQ(os_addr_from_sockaddr(&out, &in6, 27), SN_E_ADDR_INVALID);
    CHECK_EQ(os_addr_from_sockaddr(&out, &in6, 16), SN_E_ADDR_INVALID);
    CHECK_EQ(os_addr_from_sockaddr(&out, &in, 15), SN_E_ADDR_INVALID);
    CHECK_EQ(os_addr_from_sockaddr(&out, &in, 1), SN_E_ADDR_INVALID);
    CHECK_EQ(os_addr_from_sockaddr(&out, &in, 0), SN_E_ADDR_INVALID);
    CHECK_EQ(os_addr_from_sockaddr(&out, &un, sizeof un), SN_E_ADDR_INVALID);
    CHECK_EQ(os_addr_from_sockaddr(&out, NULL, 28), SN_E_ADDR_INVALID);
    CHECK_BYTES(&out, &keep, sizeof keep);
}

static void sockaddr_of_none_has_no_size(void) {
    struct os_addr none = { 0 };
    uint8_t raw[OS_SOCKADDR_MAX];
    memset(raw, 1, sizeof raw);
    CHECK_EQ(os_addr_to_sockaddr(&none, raw), 0);
    CHECK_EQ(os_addr_sockaddr_size(&none), 0);
    CHECK_EQ(raw[0], 0);
}

static void same_ip_ignores_port_and_minds_scope(void) {
    struct os_addr a = v4("10.0.0.1", 1), b = v4("10.0.0.1", 2), c = v4("10.0.0.2", 1);
    CHECK(os_addr_same_ip(&a, &b));
    CHECK(!os_addr_same_ip(&a, &c));
    struct os_addr l1 = v6("fe80::1", 1, 1), l2 = v6("fe80::1", 1, 2);
    CHECK(!os_addr_same_ip(&l1, &l2));
    l2.scope_id = 1;
    CHECK(os_addr_same_ip(&l1, &l2));
    struct os_addr g1 = v6("2001:db8::1", 1, 1), g2 = v6("2001:db8::1", 1, 2);
    CHECK(os_addr_same_ip(&g1, &g2));
    CHECK(!os_addr_same_ip(&g1, &l1));
    CHECK(!os_addr_same_ip(&a, &g1));
}

static void any_and_loopback_are_told(void) {
    struct os_addr a = v4("0.0.0.0", 9), b = v6("::", 9, 0), c = v4("127.8.9.1", 0),
                   d = v6("::1", 0, 0), e = v4("128.0.0.1", 0), f = v6("::ffff:127.0.0.1", 0, 0),
                   g = v6("::2", 0, 0), none = { 0 };
    CHECK(os_addr_is_any(&a) && os_addr_is_any(&b) && !os_addr_is_any(&c) && !os_addr_is_any(&d));
    CHECK(os_addr_is_loopback(&c) && os_addr_is_loopback(&d) && os_addr_is_loopback(&f));
    CHECK(!os_addr_is_loopback(&a) && !os_addr_is_loopback(&b) && !os_addr_is_loopback(&e));
    CHECK(!os_addr_is_loopback(&g));
    CHECK(!os_addr_is_any(&none) && !os_addr_is_loopback(&none));
}

static void check_text(struct os_addr a, const char *want) {
    char text[OS_ADDR_TEXT_MAX];
    memset(text, 'x', sizeof text);
    os_addr_text(&a, text);
    CHECK_STR(text, want);
}

static void text_v4_is_dotted(void) {
    check_text(v4("1.2.3.4", 5), "1.2.3.4:5");
    check_text(v4("255.255.255.255", 65535), "255.255.255.255:65535");
    check_text(v4("0.0.0.0", 0), "0.0.0.0");
}

static void text_v6_is_shortened_as_usual(void) {
    static const char *const ips[] = { "::",
                                       "::1",
                                       "1::",
                                       "fe80::1",
                                       "2001:db8::1",
                                       "1:2:3:4:5:6:7:8",
                                       "1:0:2:3::4:5",
                                       "1::2:0:0:3",
                                       "0:1:2:3:4:5:6:7",
                                       "1:2:3:4:5:6:7:0",
                                       "abcd:ef01:2345:6789:abcd:ef01:2345:6789",
                                       "::ffff:1.2.3.4",
                                       "0:0:1::1" };
    for (size_t i = 0; i < sizeof ips / sizeof ips[0]; i++) {
        struct os_addr a = v6(ips[i], 0, 0);
        char system[INET6_ADDRSTRLEN], want[64];
        inet_ntop(AF_INET6, a.ip, system, sizeof system);
        snprintf(want, sizeof want, "[%s]", system);
        check_text(a, want);
    }
    check_text(v6("::1", 7, 0), "[::1]:7");
}

static void text_scope_is_a_name_or_a_number(void) {
    char name[IF_NAMESIZE], want[80];
    if (!if_indextoname(1, name)) SKIP("there is no interface 1");
    snprintf(want, sizeof want, "[fe80::1%%%s]:5", name);
    check_text(v6("fe80::1", 5, 1), want);
    check_text(v6("fe80::1", 0, 987654321), "[fe80::1%987654321]");
    check_text((struct os_addr){ 0 }, "(none)");
}

static void text_longest_fits(void) {
    check_text(v6("fe80:ef01:2345:6789:abcd:ef01:2345:6789", 65535, UINT32_MAX),
               "[fe80:ef01:2345:6789:abcd:ef01:2345:6789%4294967295]:65535");
}

static void netif_list_has_loopback_sorted_and_bindable(void) {
    struct os_netif *list;
    size_t count;
    CHECK_EQ(os_netif_list(&list, &count), SN_OK);
    bool loopback = false;
    for (size_t i = 0; i < count; i++) {
        struct os_netif *nif = &list[i];
        printf("  %u %s mtu %u mac %u addrs %u\n", nif->index, nif->name, nif->mtu_bytes,
               nif->mac_len, nif->addr_count);
        CHECK(nif->addr_count > 0);
        CHECK(nif->index != 0);
        CHECK(nif->mtu_bytes >= 68);
        CHECK_EQ(if_nametoindex(nif->name), nif->index);
        CHECK(i == 0 || list[i - 1].index < nif->index);
        CHECK(nif->mac_len <= 8);
        for (uint32_t k = 0; k < nif->addr_count; k++) {
            struct os_addr *a = &nif->addrs[k];
            CHECK_EQ(a->port, 0);
            CHECK_EQ(os_addr_is_loopback(a) && !nif->loopback, 0);
            if (a->family == 6 && a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80)
                CHECK_EQ(a->scope_id, nif->index);
            if (nif->loopback && a->family == 4 && a->ip[0] == 127) loopback = true;
            /* Usable means that a socket can have it. */
            uint8_t sa[OS_SOCKADDR_MAX];
            size_t cb = os_addr_to_sockaddr(a, sa);
            int fd = socket(a->family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
            CHECK(fd >= 0);
            int bound = bind(fd, (struct sockaddr *)(void *)sa, (socklen_t)cb);
            close(fd);
            CHECK_EQ(bound, 0);
        }
    }
    CHECK(loopback);
    os_netif_free(list);
    os_netif_free(NULL);
}

TEST_MAIN(TEST(sockaddr_v4_round_trip_keeps_all),
          TEST(sockaddr_v6_round_trip_keeps_scope_of_link_local_only),
          TEST(sockaddr_short_or_foreign_is_refused_and_output_kept),
          TEST(sockaddr_of_none_has_no_size), TEST(same_ip_ignores_port_and_minds_scope),
          TEST(any_and_loopback_are_told), TEST(text_v4_is_dotted),
          TEST(text_v6_is_shortened_as_usual), TEST(text_scope_is_a_name_or_a_number),
          TEST(text_longest_fits), TEST(netif_list_has_loopback_sorted_and_bindable))
