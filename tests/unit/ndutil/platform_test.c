/* SPDX-License-Identifier: MIT
 * platform_test.c - what the helper library asks of Linux: routes, expansion, the override.
 */
#include "ndutil/platform.h"

#include <stdlib.h>
#include "support/testing.h"

static bool same(const WCHAR *a, const char *b) {
    for (; *b; a++, b++)
        if (*a != (unsigned char)*b) return false;
    return *a == 0;
}

static void expand_replaces_known_variables(void) {
    WCHAR out[64];

    setenv("SN_TEST_DIR", "/opt/x", 1);
    unsetenv("SN_TEST_UNSET");
    CHECK(ndutil_platform_expand(u"%SN_TEST_DIR%/lib.so", out, 64));
    CHECK(same(out, "/opt/x/lib.so"));
    CHECK(ndutil_platform_expand(u"a%SN_TEST_UNSET%b", out, 64));
    CHECK(same(out, "a%SN_TEST_UNSET%b"));
    CHECK(ndutil_platform_expand(u"100%", out, 64));
    CHECK(same(out, "100%"));
    CHECK(ndutil_platform_expand(u"%%x", out, 64));
    CHECK(same(out, "%%x"));
}

static void expand_of_utf8_becomes_utf16(void) {
    WCHAR out[16];

    setenv("SN_TEST_DIR", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", 1);
    CHECK(ndutil_platform_expand(u"%SN_TEST_DIR%", out, 16));
    CHECK_EQ(out[0], 0xE4);
    CHECK_EQ(out[1], 0x20AC);
    CHECK_EQ(out[2], 0xD83D);
    CHECK_EQ(out[3], 0xDE00);
    CHECK_EQ(out[4], 0);
}

static void expand_that_does_not_fit_fails(void) {
    WCHAR out[8];

    setenv("SN_TEST_DIR", "1234567", 1);
    CHECK(ndutil_platform_expand(u"1234567", out, 8));
    CHECK(!ndutil_platform_expand(u"12345678", out, 8));
    CHECK(ndutil_platform_expand(u"%SN_TEST_DIR%", out, 9));
    CHECK(!ndutil_platform_expand(u"%SN_TEST_DIR%x", out, 8));
}

static void override_follows_the_environment(void) {
    WCHAR out[16];

    unsetenv("SOFTND_PROVIDER");
    CHECK(!ndutil_platform_provider_override(out, 16));
    setenv("SOFTND_PROVIDER", "", 1);
    CHECK(!ndutil_platform_provider_override(out, 16));
    setenv("SOFTND_PROVIDER", "/a/b.so", 1);
    CHECK(ndutil_platform_provider_override(out, 16));
    CHECK(same(out, "/a/b.so"));
    setenv("SOFTND_PROVIDER", "/a/very/long/path/to/b.so", 1);
    CHECK(!ndutil_platform_provider_override(out, 16));
}

static void route_to_loopback_is_loopback(void) {
    SOCKADDR_IN to = { .sin_family = AF_INET,
                       .sin_port = htons(5),
                       .sin_addr.s_addr = htonl(0x7F000005) };
    SOCKADDR_IN from;
    size_t cb = sizeof from;

    CHECK_EQ(
        ndutil_platform_route((struct sockaddr *)&to, sizeof to, (struct sockaddr *)&from, &cb),
        ND_SUCCESS);
    CHECK_EQ(cb, 16);
    CHECK_EQ(from.sin_port, 0);
    CHECK_EQ(ntohl(from.sin_addr.s_addr) >> 24, 127);
    cb = 15;
    CHECK_EQ(
        ndutil_platform_route((struct sockaddr *)&to, sizeof to, (struct sockaddr *)&from, &cb),
        ND_BUFFER_OVERFLOW);
    CHECK_EQ(cb, 16);
}

static void route_of_ipv6_loopback_is_ipv6(void) {
    SOCKADDR_IN6 to = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT }, from;
    size_t cb = sizeof from;
    HRESULT hr =
        ndutil_platform_route((struct sockaddr *)&to, sizeof to, (struct sockaddr *)&from, &cb);

    if (hr == ND_NETWORK_UNREACHABLE || hr == ND_UNSUCCESSFUL) SKIP("this machine has no IPv6");
    CHECK_EQ(hr, ND_SUCCESS);
    CHECK_EQ(cb, 28);
    CHECK(IN6_IS_ADDR_LOOPBACK(&from.sin6_addr));
    CHECK_EQ(from.sin6_port, 0);
}

static void route_to_nowhere_says_so(void) {
    SOCKADDR_IN to = { .sin_family = AF_INET }, from;
    SOCKADDR_IN6 six = { .sin6_family = AF_INET6 };
    size_t cb = sizeof from;

    CHECK_EQ(
        ndutil_platform_route((struct sockaddr *)&to, sizeof to, (struct sockaddr *)&from, &cb),
        ND_INVALID_ADDRESS);
    CHECK_EQ(
        ndutil_platform_route((struct sockaddr *)&six, sizeof six, (struct sockaddr *)&from, &cb),
        ND_INVALID_ADDRESS);
    to.sin_addr.s_addr = htonl(0xFFFFFFFF);
    CHECK(FAILED(
        ndutil_platform_route((struct sockaddr *)&to, sizeof to, (struct sockaddr *)&from, &cb)));
}

static void watch_that_has_seen_nothing_reports_no_change(void) {
    CHECK(ndutil_platform_addresses_changed()); /* not started: cannot tell */
    CHECK_EQ(ndutil_platform_start(), S_OK);
    /* Something may be changing at this moment; it must not change for ever. */
    for (int i = 0; ndutil_platform_addresses_changed(); i++)
        CHECK(i < 100000);
    ndutil_platform_stop();
    CHECK(ndutil_platform_addresses_changed());
}

static void lock_can_be_taken_and_given_back(void) {
    ndutil_platform_lock();
    ndutil_platform_unlock();
    ndutil_platform_lock();
    ndutil_platform_unlock();
}

TEST_MAIN(TEST(expand_replaces_known_variables), TEST(expand_of_utf8_becomes_utf16),
          TEST(expand_that_does_not_fit_fails), TEST(override_follows_the_environment),
          TEST(route_to_loopback_is_loopback), TEST(route_of_ipv6_loopback_is_ipv6),
          TEST(route_to_nowhere_says_so), TEST(watch_that_has_seen_nothing_reports_no_change),
          TEST(lock_can_be_taken_and_given_back))
