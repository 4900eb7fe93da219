/* SPDX-License-Identifier: MIT
 * status_test.c - every internal status on its way to an SPI code.
 */
#include "base/base.h"
#include "ndspi/status.h"
#include "support/status_name.h"
#include "support/testing.h"

static const struct {
    sn_status st;
    uint32_t method, post, completion;
} rows[] = {
    { SN_OK, 0, 0, 0 },
    { SN_PENDING, 0x103, 0x103, 0xC00000E5 },
    { SN_E_MORE, 0xC00000E5, 0xC00000E5, 0xC00000E5 },
    { SN_E_AGAIN, 0xC00000E5, 0xC00000E5, 0xC00000E5 },
    { SN_E_EOF, 0xC0000241, 0xC0000241, 0xC00000B5 },
    { SN_E_WIRE, 0xC0000241, 0xC0000241, 0xC000013D },
    { SN_E_NOMEM, 0xC0000017, 0xC000009A, 0xC00000E5 },
    { SN_E_RESOURCES, 0xC000009A, 0xC000009A, 0xC00000E5 },
    { SN_E_PARAM, 0xC000000D, 0xC000000D, 0xC00000E5 },
    { SN_E_HANDLE, 0xC0000008, 0xC0000008, 0xC00000E5 },
    { SN_E_TOKEN, 0xC0000005, 0xC0000005, 0xC0000005 },
    { SN_E_RANGE, 0xC0000005, 0xC0000005, 0xC0000005 },
    { SN_E_RIGHTS, 0xC0000005, 0xC0000005, 0xC0000005 },
    { SN_E_PD, 0xC0000005, 0xC0000005, 0xC0000005 },
    { SN_E_FAULT, 0xC0000005, 0xC0000005, 0xC0000005 },
    { SN_E_FULL, 0x8000001A, 0x8000001A, 0xC00000E5 },
    { SN_E_TOO_LONG, 0x80000005, 0x80000005, 0xC000003C },
    { SN_E_TOO_MANY_SGE, 0xC000003C, 0xC000003C, 0xC000003C },
    { SN_E_BUFFER_SMALL, 0x80000005, 0x80000005, 0xC00000E5 },
    { SN_E_BUFFER_SIZE, 0xC0000206, 0xC0000206, 0xC00000E5 },
    { SN_E_STATE, 0xC0000184, 0xC0000184, 0xC0000010 },
    { SN_E_REQUEST, 0xC0000010, 0xC0000010, 0xC0000010 },
    { SN_E_BUSY, 0x80000011, 0xC0000010, 0xC0000010 },
    { SN_E_UNSUPPORTED, 0xC00000BB, 0xC00000BB, 0xC00000E5 },
    { SN_E_CANCELED, 0xC0000120, 0xC0000120, 0xC0000120 },
    { SN_E_ABORTED, 0xC0000241, 0xC0000241, 0xC00000E5 },
    { SN_E_REFUSED, 0xC0000236, 0xC0000236, 0xC00000E5 },
    { SN_E_TIMEOUT, 0xC00000B5, 0xC00000B5, 0xC00000B5 },
    { SN_E_PEER_GONE, 0xC0000241, 0xC0000241, 0xC00000B5 },
    { SN_E_NOT_CONNECTED, 0xC000023A, 0xC000023A, 0xC00000E5 },
    { SN_E_CONNECTED, 0xC000023B, 0xC000023B, 0xC00000E5 },
    { SN_E_ADDR_IN_USE, 0xC0000043, 0xC0000043, 0xC00000E5 },
    { SN_E_ADDR_EXISTS, 0xC000020A, 0xC000020A, 0xC00000E5 },
    { SN_E_ADDR_BOUND, 0xC0000238, 0xC0000238, 0xC00000E5 },
    { SN_E_ADDR_INVALID, 0xC0000141, 0xC0000141, 0xC00000E5 },
    { SN_E_NO_PORTS, 0xC0000209, 0xC0000209, 0xC00000E5 },
    { SN_E_NET_NAME, 0xC00000CC, 0xC00000CC, 0xC00000E5 },
    { SN_E_NET_UNREACHABLE, 0xC000023C, 0xC000023C, 0xC00000E5 },
    { SN_E_HOST_UNREACHABLE, 0xC000023D, 0xC000023D, 0xC00000E5 },
    { SN_E_OVERRUN, 0x80000005, 0x80000005, 0xC00000E5 },
    { SN_E_MSG_TOO_LONG, 0xC000003C, 0xC000003C, 0xC000003C },
    { SN_E_PEER_MSG_TOO_LONG, 0xC000003E, 0xC000003E, 0xC000003E },
    { SN_E_REMOTE, 0xC000013D, 0xC000013D, 0xC000013D },
    { SN_E_REMOTE_RANGE, 0xC0000005, 0xC0000005, 0xC0000005 },
    { SN_E_PERM, 0xC0000022, 0xC0000022, 0xC00000E5 },
    { SN_E_NOT_FOUND, 0xC0000001, 0xC0000001, 0xC00000E5 },
    { SN_E_REMOVED, 0xC00002B6, 0xC00002B6, 0xC00000E5 },
    { SN_E_INTERNAL, 0xC00000E5, 0xC00000E5, 0xC00000E5 },
};

static void every_status_has_its_codes(void) {
    bool seen[SN_STATUS_COUNT] = { false };
    for (size_t i = 0; i < SN_ARRAY_LEN(rows); i++) {
        sn_status st = rows[i].st;
        seen[st] = true;
        if ((uint32_t)ndspi_status(st) != rows[i].method ||
            (uint32_t)ndspi_status_post(st) != rows[i].post ||
            (uint32_t)ndspi_status_completion(st) != rows[i].completion)
            FAIL("%s gives %08x, %08x, %08x", sn_status_name(st), (unsigned)ndspi_status(st),
                 (unsigned)ndspi_status_post(st), (unsigned)ndspi_status_completion(st));
    }
    for (int st = 0; st < SN_STATUS_COUNT; st++)
        if (!seen[st]) FAIL("%s has no row here", sn_status_name((sn_status)st));
}

static void every_failure_is_a_failure(void) {
    for (int st = 0; st < SN_STATUS_COUNT; st++) {
        bool good = st == SN_OK || st == SN_PENDING;
        CHECK_EQ(SUCCEEDED(ndspi_status((sn_status)st)), good);
        CHECK_EQ(SUCCEEDED(ndspi_status_post((sn_status)st)), good);
        CHECK_EQ(SUCCEEDED(ndspi_status_completion((sn_status)st)), st == SN_OK);
    }
}

static void value_beyond_the_enum_is_internal_error(void) {
    CHECK_EQ(ndspi_status((sn_status)SN_STATUS_COUNT), ND_INTERNAL_ERROR);
    CHECK_EQ(ndspi_status((sn_status)1000), ND_INTERNAL_ERROR);
    CHECK_EQ(ndspi_status_completion((sn_status)1000), ND_INTERNAL_ERROR);
}

static void parameter_positions_are_consecutive(void) {
    CHECK_EQ(ndspi_bad_param(1), ND_INVALID_PARAMETER_1);
    CHECK_EQ(ndspi_bad_param(4), ND_INVALID_PARAMETER_4);
    CHECK_EQ(ndspi_bad_param(10), ND_INVALID_PARAMETER_10);
}

TEST_MAIN(TEST(every_status_has_its_codes), TEST(every_failure_is_a_failure),
          TEST(value_beyond_the_enum_is_internal_error), TEST(parameter_positions_are_consecutive))
