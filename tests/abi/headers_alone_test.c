/* SPDX-License-Identifier: MIT
 * headers_alone_test.c - every public header compiles alone, in C and C++, with and without
 * INITGUID. The build generates four source files per header (see CMakeLists.txt); each includes
 * its header twice and nothing before it. That they compile without a warning and link together
 * is the test; running only shows that all are there, and that a GUID that many of them define
 * has one value.
 */
#include <string.h>

#include "ndspi.h"
#include "softnd.h"
#include "support/testing.h"

#define SYMBOL(name)                                                                               \
    int included_##name##_c(void);                                                                 \
    int included_##name##_c_initguid(void);                                                        \
    int included_##name##_cpp(void);                                                               \
    int included_##name##_cpp_initguid(void);
#include "header_list.inc"
#undef SYMBOL

static void each_header_compiles_alone_in_c_and_cpp(void) {
    int files = 0;
#define SYMBOL(name)                                                                               \
    files += included_##name##_c() + included_##name##_c_initguid();                               \
    files += included_##name##_cpp() + included_##name##_cpp_initguid();
#include "header_list.inc"
#undef SYMBOL
    CHECK_EQ(files, 4 * HEADER_COUNT);
}

/* This file only declares the GUIDs. */
static void guids_defined_in_many_files_link_to_one_value(void) {
    static const GUID adapter = {
        0xD89C798C, 0x4823, 0x4D69, { 0x84, 0x6C, 0xDF, 0xDC, 0xCF, 0xF9, 0xE5, 0xF3 }
    };
    CHECK_BYTES(&IID_IND2Adapter, &adapter, sizeof adapter);
    CHECK(!IsEqualGUID(&CLSID_SoftNdProvider, &IID_IND2Provider));
}

TEST_MAIN(TEST(each_header_compiles_alone_in_c_and_cpp),
          TEST(guids_defined_in_many_files_link_to_one_value))
