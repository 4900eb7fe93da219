/* SPDX-License-Identifier: MIT
 * text_test.c - sizes, times, addresses, GUIDs and encodings.
 */
#include <winsock2.h>

#include "text.h"

#include "support/testing.h"

static uint64_t size_of(const char *text) {
    uint64_t v = 0xBAD;

    CHECK(text_parse_size(text, &v));
    return v;
}

static void size_with_units_is_parsed(void) {
    CHECK_EQ(size_of("0"), 0);
    CHECK_EQ(size_of("64"), 64);
    CHECK_EQ(size_of("64K"), 65536);
    CHECK_EQ(size_of("64k"), 65536);
    CHECK_EQ(size_of("1M"), 1 << 20);
    CHECK_EQ(size_of("1MiB"), 1 << 20);
    CHECK_EQ(size_of("2G"), 2ll << 30);
    CHECK_EQ(size_of("5B"), 5);
}

static void size_that_is_none_is_refused(void) {
    static const char *const bad[] = { "",    "K",   "-1",   "1X",
                                       "1MM", "1 M", "0x10", "18446744073709551615K" };
    uint64_t v;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (text_parse_size(bad[i], &v)) FAIL("%s was taken", bad[i]);
}

static void number_outside_its_bounds_is_refused(void) {
    uint32_t v;

    CHECK(text_parse_u32("65535", 0, 65535, &v));
    CHECK_EQ(v, 65535);
    CHECK(!text_parse_u32("65536", 0, 65535, &v));
    CHECK(!text_parse_u32("0", 1, 5, &v));
    CHECK(!text_parse_u32("", 0, 5, &v));
    CHECK(!text_parse_u32("4x", 0, 5, &v));
    CHECK(!text_parse_u32("99999999999999999999", 0, UINT32_MAX, &v));
}

static void seconds_with_units_are_parsed(void) {
    double v;

    CHECK(text_parse_seconds("2", &v) && v == 2.0);
    CHECK(text_parse_seconds("0.5", &v) && v == 0.5);
    CHECK(text_parse_seconds(".25s", &v) && v == 0.25);
    CHECK(text_parse_seconds("250ms", &v) && v == 0.25);
    CHECK(text_parse_seconds("20us", &v) && v > 19e-6 && v < 21e-6);
    CHECK(!text_parse_seconds("-1", &v));
    CHECK(!text_parse_seconds("1h", &v));
    CHECK(!text_parse_seconds("nan", &v));
    CHECK(!text_parse_seconds("", &v));
    CHECK(!text_parse_seconds("1e99", &v));
}

static void host_and_port_are_split(void) {
    static const struct {
        const char *text, *host;
        int port;
    } cases[] = {
        { "host", "host", 7 },
        { "host:80", "host", 80 },
        { "1.2.3.4:5", "1.2.3.4", 5 },
        { "1.2.3.4", "1.2.3.4", 7 },
        { "fe80::1%eth0", "fe80::1%eth0", 7 },
        { "::1", "::1", 7 },
        { "[::1]:5", "::1", 5 },
        { "[::1]", "::1", 7 },
        { ":9", "", 9 },
        { "host:0", "host", 0 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char host[TEXT_HOST_MAX];
        uint16_t port = 7;
        if (!text_split_host(cases[i].text, host, &port)) FAIL("%s was refused", cases[i].text);
        CHECK_STR(host, cases[i].host);
        CHECK_EQ(port, cases[i].port);
    }
}

static void host_that_is_malformed_is_refused(void) {
    static const char *const bad[] = { "[::1", "[::1]x", "host:", "host:65536", "host:-1", "h:p" };
    char host[TEXT_HOST_MAX], longer[2 * TEXT_HOST_MAX];
    uint16_t port = 7;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (text_split_host(bad[i], host, &port)) FAIL("%s was taken", bad[i]);
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    CHECK(!text_split_host(longer, host, &port));
}

static void addresses_are_written_as_people_write_them(void) {
    SOCKADDR_IN four = { .sin_family = AF_INET, .sin_port = htons(5) };
    SOCKADDR_IN6 six = { .sin6_family = AF_INET6, .sin6_scope_id = 3 };
    struct sockaddr other = { .sa_family = AF_UNIX };
    char out[TEXT_ADDR_MAX];

    inet_pton(AF_INET, "10.0.0.1", &four.sin_addr);
    text_from_sockaddr((struct sockaddr *)&four, out);
    CHECK_STR(out, "10.0.0.1:5");
    four.sin_port = 0;
    text_from_sockaddr((struct sockaddr *)&four, out);
    CHECK_STR(out, "10.0.0.1");
    inet_pton(AF_INET6, "fe80::1", &six.sin6_addr);
    text_from_sockaddr((struct sockaddr *)&six, out);
    CHECK_STR(out, "fe80::1%3");
    six.sin6_port = htons(80);
    six.sin6_scope_id = 0;
    text_from_sockaddr((struct sockaddr *)&six, out);
    CHECK_STR(out, "[fe80::1]:80");
    text_from_sockaddr(&other, out);
    CHECK_STR(out, "address family 1");
}

static void byte_counts_get_a_unit(void) {
    char out[32];

    text_from_bytes(999, out, sizeof out);
    CHECK_STR(out, "999 B");
    text_from_bytes(1500, out, sizeof out);
    CHECK_STR(out, "1.50 kB");
    text_from_bytes(12345678, out, sizeof out);
    CHECK_STR(out, "12.3 MB");
    text_from_bytes(123456789012.0, out, sizeof out);
    CHECK_STR(out, "123 GB");
    text_from_bytes(5e15, out, sizeof out);
    CHECK_STR(out, "5000 TB");
}

static void guid_round_trip_keeps_it(void) {
    GUID g, h;
    char out[TEXT_GUID_MAX];

    CHECK(text_parse_guid("{0344f8a6-2003-438B-954B-7B4BF70419EC}", &g));
    text_from_guid(&g, out);
    CHECK_STR(out, "{0344F8A6-2003-438B-954B-7B4BF70419EC}");
    CHECK(text_parse_guid("0344F8A6-2003-438B-954B-7B4BF70419EC", &h));
    CHECK(IsEqualGUID(&g, &h));
    CHECK(!text_parse_guid("", &g));
    CHECK(!text_parse_guid("{", &g));
    CHECK(!text_parse_guid("{0344F8A6-2003-438B-954B-7B4BF70419EC", &g));
    CHECK(!text_parse_guid("0344F8A6x2003-438B-954B-7B4BF70419EC", &g));
    CHECK(!text_parse_guid("0344F8A6-2003-438B-954B-7B4BF70419EG", &g));
    CHECK(!text_parse_guid("0344F8A6-2003-438B-954B7-B4BF70419EC", &g));
}

static void encodings_round_trip(void) {
    static const char text[] = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80z";
    WCHAR wide[16];
    char back[32];

    CHECK(text_to_wide(text, wide, 16));
    CHECK_EQ(wide[1], 0xE4);
    CHECK_EQ(wide[2], 0x20AC);
    CHECK_EQ(wide[3], 0xD83D);
    CHECK_EQ(wide[4], 0xDE00);
    CHECK(text_from_wide(wide, back, sizeof back));
    CHECK_STR(back, text);
    CHECK(!text_from_wide(wide, back, 5));
    CHECK_STR(back, "");
    CHECK(!text_to_wide(text, wide, 5));
    CHECK_EQ(wide[0], 0);
}

static void json_strings_are_escaped(void) {
    char text[64] = "";
    FILE *f = tmpfile();

    CHECK(f);
    text_print_json(f, "a\"b\\c\n\xC3\xA4");
    rewind(f);
    CHECK(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    CHECK_STR(text, "\"a\\\"b\\\\c\\u000a\xC3\xA4\"");
}

TEST_MAIN(TEST(size_with_units_is_parsed), TEST(size_that_is_none_is_refused),
          TEST(number_outside_its_bounds_is_refused), TEST(seconds_with_units_are_parsed),
          TEST(host_and_port_are_split), TEST(host_that_is_malformed_is_refused),
          TEST(addresses_are_written_as_people_write_them), TEST(byte_counts_get_a_unit),
          TEST(guid_round_trip_keeps_it), TEST(encodings_round_trip),
          TEST(json_strings_are_escaped))
