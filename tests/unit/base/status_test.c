/* SPDX-License-Identifier: MIT */
#include "base/status.h"
#include <ctype.h>
#include "support/status_name.h"
#include "support/testing.h"

static void every_status_has_its_own_name_and_text(void) {
    for (int i = 0; i < SN_STATUS_COUNT; i++) {
        const char *name = sn_status_name((sn_status)i), *text = sn_status_text((sn_status)i);
        CHECK(strncmp(name, "SN_", 3) == 0);
        for (const char *c = name; *c; c++)
            CHECK(isupper((unsigned char)*c) || *c == '_');
        CHECK(strlen(text) > 3);
        CHECK(text[strlen(text) - 1] != '.');
        for (int k = 0; k < i; k++) {
            CHECK(strcmp(name, sn_status_name((sn_status)k)) != 0);
            CHECK(strcmp(text, sn_status_text((sn_status)k)) != 0);
        }
    }
}

static void success_is_zero_and_named(void) {
    CHECK_EQ(SN_OK, 0);
    CHECK_STR(sn_status_name(SN_OK), "SN_OK");
    CHECK_STR(sn_status_name(SN_E_FAULT), "SN_E_FAULT");
    CHECK_STR(sn_status_text(SN_E_NOMEM), "out of memory");
}

static void value_outside_the_list_is_told_as_unknown(void) {
    CHECK_STR(sn_status_text(SN_STATUS_COUNT), "unknown status");
    CHECK_STR(sn_status_name(SN_STATUS_COUNT), "SN_?");
}

TEST_MAIN(TEST(every_status_has_its_own_name_and_text), TEST(success_is_zero_and_named),
          TEST(value_outside_the_list_is_told_as_unknown))
