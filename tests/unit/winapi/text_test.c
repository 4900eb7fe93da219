/* SPDX-License-Identifier: MIT
 * text_test.c - the pure parts: UTF conversion, error numbers, GUIDs and the catalog's file text.
 */
#include "support/testing.h"
#include "winapi/catalog.h"
#include "winapi/object.h"

/* ---- UTF ---- */

static void utf_round_trip_keeps_every_length(void) {
    static const WCHAR text[] = { 'a',    0x7F,   0x80,   0x7FF,  0x800, 0xFFFF,
                                  0xD800, 0xDC00, 0xDBFF, 0xDFFF, 0 };
    char utf8[64];
    WCHAR back[64];
    int len = wa_utf8_from_utf16(utf8, sizeof utf8, text);
    CHECK_EQ(len, 1 + 1 + 2 + 2 + 3 + 3 + 4 + 4);
    CHECK_EQ(utf8[len], 0);
    CHECK_EQ(wa_utf16_from_utf8(back, 64, utf8), SN_ARRAY_LEN(text) - 1);
    CHECK_BYTES(back, text, sizeof text);
}

static void utf_room_is_respected_to_the_unit(void) {
    char utf8[8];
    WCHAR back[8];
    memset(utf8, 'x', sizeof utf8);
    CHECK_EQ(wa_utf8_from_utf16(utf8, 4, u"\u20ac"), 3);
    CHECK_EQ(wa_utf8_from_utf16(utf8, 3, u"\u20ac"), -1);
    CHECK_EQ(utf8[4], 'x');
    CHECK_EQ(wa_utf8_from_utf16(utf8, 0, u""), -1);
    CHECK_EQ(wa_utf16_from_utf8(back, 3, "\xf0\x90\x80\x80"), 2);
    CHECK_EQ(wa_utf16_from_utf8(back, 2, "\xf0\x90\x80\x80"), -1);
    CHECK_EQ(wa_utf16_from_utf8(back, 1, ""), 0);
}

static void utf_malformed_input_is_refused(void) {
    static const WCHAR wide[][4] = { { 0xD800, 0 },
                                     { 0xD800, 'x', 0 },
                                     { 0xDC00, 0 },
                                     { 0xDFFF, 0xD800, 0 },
                                     { 0xD800, 0xD800, 0xDC00, 0 } };
    static const char *const narrow[] = {
        "\x80",         "\xc0\x80",         "\xc1\xbf",         "\xc3", "\xc3\x28", "\xe0\x80\x80",
        "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5", "\xff",     "\xe2\x82"
    };
    char utf8[16];
    WCHAR back[16];
    for (size_t i = 0; i < SN_ARRAY_LEN(wide); i++)
        CHECK_EQ(wa_utf8_from_utf16(utf8, sizeof utf8, wide[i]), -1);
    for (size_t i = 0; i < SN_ARRAY_LEN(narrow); i++)
        CHECK_EQ(wa_utf16_from_utf8(back, 16, narrow[i]), -1);
}

/* ---- error numbers ---- */

static void ntstatus_maps_to_the_win32_number(void) {
    static const struct {
        DWORD status, error;
    } rows[] = {
        { 0, 0 },
        { 0x102, WAIT_TIMEOUT },
        { 0x103, ERROR_IO_PENDING },
        { 0x80000005, ERROR_MORE_DATA },
        { 0x80000011, ERROR_BUSY },
        { 0xC0000005, ERROR_NOACCESS },
        { 0xC00000EF, ERROR_INVALID_PARAMETER }, /* INVALID_PARAMETER_1 */
        { 0xC00000F8, ERROR_INVALID_PARAMETER }, /* INVALID_PARAMETER_10 */
        { 0xC00000FA, ERROR_INVALID_PARAMETER }, /* INVALID_PARAMETER_12 */
        { 0xC000013D, 51 },
        { 0xC0000238, ERROR_ADDRESS_ALREADY_ASSOCIATED },
        { 0xC0000241, ERROR_CONNECTION_ABORTED },
        { 0xC00002B6, ERROR_DEVICE_REMOVED },
        { 0x8007000E, ERROR_OUTOFMEMORY }, /* a Win32 number in an HRESULT */
        { 0xC00000FB, 317 },
        { 0xDEADBEEF, 317 },
    };
    for (size_t i = 0; i < SN_ARRAY_LEN(rows); i++)
        CHECK_EQ(wa_error_from_ntstatus((NTSTATUS)rows[i].status), rows[i].error);
}

/* ---- GUIDs ---- */

static void guid_text_round_trip_is_exact(void) {
    const GUID id = {
        0x49EAE6C1, 0x76C4, 0x46D0, { 0x80, 0x03, 0x5C, 0x2E, 0xAA, 0x2C, 0x9A, 0x8E }
    };
    char text[WA_GUID_TEXT_BYTES];
    GUID back;
    wa_guid_format(text, &id);
    CHECK_STR(text, "{49eae6c1-76c4-46d0-8003-5c2eaa2c9a8e}");
    CHECK(wa_guid_parse(&back, text));
    CHECK_BYTES(&back, &id, sizeof id);
    CHECK(wa_guid_parse(&back, "{49EAE6C1-76C4-46D0-8003-5C2EAA2C9A8E}"));
    CHECK_BYTES(&back, &id, sizeof id);
}

static void guid_text_malformed_is_refused(void) {
    static const char *const bad[] = { "",
                                       "{}",
                                       "49eae6c1-76c4-46d0-8003-5c2eaa2c9a8e",
                                       "{49eae6c1-76c4-46d0-8003-5c2eaa2c9a8e",
                                       "{49eae6c1-76c4-46d0-8003-5c2eaa2c9a8e}x",
                                       "{49eae6c1-76c4-46d0-8003-5c2eaa2c9a8}",
                                       "{49eae6c1-76c4-46d0-80035-c2eaa2c9a8e}",
                                       "{g9eae6c1-76c4-46d0-8003-5c2eaa2c9a8e}",
                                       "{@9eae6c1-76c4-46d0-8003-5c2eaa2c9a8e}",
                                       "{ 9eae6c1-76c4-46d0-8003-5c2eaa2c9a8e}" };
    GUID id;
    for (size_t i = 0; i < SN_ARRAY_LEN(bad); i++)
        CHECK(!wa_guid_parse(&id, bad[i]));
}

/* ---- the text of a provider ---- */

/* Every 32-bit word of the entry different, with the sign bit set in every second. */
static WSAPROTOCOL_INFOW numbered_entry(uint32_t base, const GUID *id) {
    WSAPROTOCOL_INFOW e;
    memset(&e, 0, sizeof e);
    for (uint32_t i = 0; i < offsetof(WSAPROTOCOL_INFOW, szProtocol) / 4; i++) {
        uint32_t v = base + i + (i & 1) * 0x80000000u;
        memcpy((char *)&e + 4 * i, &v, sizeof v);
    }
    e.ProviderId = *id;
    memcpy(e.szProtocol, u"SoftND \u00fc\u20ac", sizeof u"SoftND \u00fc\u20ac");
    return e;
}

static const GUID some_id = { 1, 2, 3, { 4, 5, 6, 7, 8, 9, 10, 11 } };

static char *some_text(WSAPROTOCOL_INFOW entries[2]) {
    entries[0] = numbered_entry(100, &some_id);
    entries[1] = numbered_entry(90000, &some_id);
    for (int i = 0; i < WSAPROTOCOL_LEN; i++)
        entries[1].szProtocol[i] = u'\u20ac'; /* the longest name */
    struct wa_provider p = {
        .id = some_id, .path = (char *)"/opt/x y=z#[1]/lib.so", .count = 2, .entries = entries
    };
    char *text = wa_provider_format(&p);
    CHECK(text != NULL);
    return text;
}

static void provider_text_round_trip_keeps_every_field(void) {
    WSAPROTOCOL_INFOW entries[2];
    char *text = some_text(entries);
    struct wa_provider back;
    unsigned line;
    CHECK(wa_provider_parse(&back, text, &line) == NULL);
    CHECK_BYTES(&back.id, &some_id, sizeof some_id);
    CHECK_STR(back.path, "/opt/x y=z#[1]/lib.so");
    CHECK_EQ(back.count, 2);
    CHECK_BYTES(back.entries, entries, sizeof entries);
    wa_provider_fini(&back);
    free(text);
}

static void provider_text_cut_anywhere_is_refused(void) {
    WSAPROTOCOL_INFOW entries[2];
    char *text = some_text(entries);
    struct wa_provider back;
    unsigned line;
    for (size_t len = strlen(text); len-- > 0;) {
        text[len] = 0;
        if (wa_provider_parse(&back, text, &line) == NULL) FAIL("accepted cut at %zu", len);
        CHECK(back.path == NULL && back.entries == NULL);
    }
    free(text);
}

/* The first occurrence of `what` replaced; malloc'd. */
static char *with(const char *text, const char *what, const char *replacement) {
    const char *at = strstr(text, what);
    CHECK(at != NULL);
    char *s = malloc(strlen(text) + strlen(replacement) + 1);
    sprintf(s, "%.*s%s%s", (int)(at - text), text, replacement, at + strlen(what));
    return s;
}

static void provider_text_with_foreign_parts_is_accepted(void) {
    WSAPROTOCOL_INFOW entries[2];
    char *text = some_text(entries);
    static const struct {
        const char *what, *replacement;
    } rows[] = { { "format = 1\n", "  format=1  \r\n" },
                 { "format = 1\n", "format = 1\nvendor_note = hello\n\n# comment\n" },
                 { "[entry]\n", "[entry]\nfuture_field = 9\n" },
                 { "[end]\n", "[end]\nchecksum = 9\n" } };
    for (size_t i = 0; i < SN_ARRAY_LEN(rows); i++) {
        struct wa_provider back;
        unsigned line;
        char *changed = with(text, rows[i].what, rows[i].replacement);
        const char *wrong = wa_provider_parse(&back, changed, &line);
        if (wrong) FAIL("row %zu: %s", i, wrong);
        CHECK_BYTES(back.entries, entries, sizeof entries);
        wa_provider_fini(&back);
        free(changed);
    }
    free(text);
}

static void provider_text_with_an_error_is_refused(void) {
    WSAPROTOCOL_INFOW entries[2];
    char *text = some_text(entries);
    static const struct {
        const char *what, *replacement;
    } rows[] = { { "format = 1", "format = 2" },
                 { "format = 1\n", "" },
                 { "format = 1\n", "format\n" },
                 { "format = 1\n", "= 1\n" },
                 { "provider = {", "provider = " },
                 { "provider = {", "owner = {" },
                 { "path = /opt", "paths = /opt" },
                 { "path = /opt/x y=z#[1]/lib.so", "path =" },
                 { "path = /opt", "path = /a\npath = /opt" },
                 { "provider = ",
                   "provider = {00000000-0000-0000-0000-000000000000}\nprovider = " },
                 { "service_flags2 = 0x", "service_flag2 = 0x" },
                 { "service_flags2 = 0x", "service_flags2 = 0x1" },
                 { "service_flags2 = 0x", "service_flags2 = -0x" },
                 { "service_flags2 = 0x", "service_flags2 = y" },
                 { "service_flags2 = 0x", "service_flags2 = 1 0x" },
                 { "chain_length = ", "chain_length = 99999999" },
                 { "name = SoftND", "name = \xff" },
                 { "name = SoftND", "nam = SoftND" },
                 { "[entry]", "[entri]" },
                 { "[entry]\n", "[entry]\n[entry]\n" },
                 { "entries = 2", "entries = 3" },
                 { "entries = 2", "entries = 1" },
                 { "entries = 2\n", "" },
                 { "entries = 2\n", "entries = 2\n[entry]\n" } };
    for (size_t i = 0; i < SN_ARRAY_LEN(rows); i++) {
        struct wa_provider back;
        unsigned line;
        char *changed = with(text, rows[i].what, rows[i].replacement);
        if (wa_provider_parse(&back, changed, &line) == NULL) FAIL("row %zu accepted", i);
        free(changed);
    }
    free(text);
}

static void provider_text_with_too_many_entries_is_refused(void) {
    static WSAPROTOCOL_INFOW entries[WA_PROVIDER_ENTRIES_MAX + 1];
    struct wa_provider p = { .id = some_id, .path = (char *)"/x", .entries = entries }, back;
    unsigned line;
    for (p.count = WA_PROVIDER_ENTRIES_MAX; p.count <= WA_PROVIDER_ENTRIES_MAX + 1; p.count++) {
        char *text = wa_provider_format(&p);
        bool refused = wa_provider_parse(&back, text, &line) != NULL;
        CHECK_EQ(refused, p.count > WA_PROVIDER_ENTRIES_MAX);
        wa_provider_fini(&back);
        free(text);
    }
}

TEST_MAIN(TEST(utf_round_trip_keeps_every_length), TEST(utf_room_is_respected_to_the_unit),
          TEST(utf_malformed_input_is_refused), TEST(ntstatus_maps_to_the_win32_number),
          TEST(guid_text_round_trip_is_exact), TEST(guid_text_malformed_is_refused),
          TEST(provider_text_round_trip_keeps_every_field),
          TEST(provider_text_cut_anywhere_is_refused),
          TEST(provider_text_with_foreign_parts_is_accepted),
          TEST(provider_text_with_an_error_is_refused),
          TEST(provider_text_with_too_many_entries_is_refused))
