/* SPDX-License-Identifier: MIT
 * ndk_layout_test.c - sizes, offsets, values and table order of the NDK headers against
 * ndk_layouts.h. Includes them in the order that public consumers use. Built as C and as C++.
 */
#include "ndis.h"
#include "wsk.h"
#include "ndkpi.h"
#include "wskndk.h"
#include "ndisndk.h"
#include "ndk_layouts.h"
#undef min
#undef max
#include "support/testing.h"

#define CHECK_SIZE(type, bytes) CHECK_EQ(sizeof(type), bytes);
#define CHECK_AT(type, field, offset) CHECK_EQ(offsetof(type, field), offset);
#define CHECK_VALUE(name, number) CHECK_EQ((uint32_t)(name), (uint32_t)(number));

static void structures_have_their_x64_layout(void) {
    NDK_STRUCTS(CHECK_SIZE, CHECK_AT)
    KM_STRUCTS(CHECK_SIZE, CHECK_AT)
}

#define CHECK_OBJECT(type)                                                                         \
    CHECK_EQ(sizeof(type), 0x30);                                                                  \
    CHECK_EQ(offsetof(type, Header), 0);                                                           \
    CHECK_EQ(offsetof(type, Dispatch), 0x28);

static void objects_are_a_header_and_a_table(void) {
    NDK_OBJECTS(CHECK_OBJECT)
}

#define CHECK_TABLE(type, slots)                                                                   \
    CHECK_EQ(sizeof(type), 8 * (slots));                                                           \
    count += slots;
#define CHECK_SLOT(type, index, member) CHECK_EQ(offsetof(type, member), 8 * (index));

static void dispatch_tables_have_their_order(void) {
    int count = 0;
    NDK_TABLES(CHECK_TABLE, CHECK_SLOT)
    CHECK_EQ(count, 70);
}

static void constants_have_their_values(void) {
    NDK_VALUES(CHECK_VALUE)
    KM_VALUES(CHECK_VALUE)
}

static void status_macros_judge_by_severity(void) {
    CHECK(NT_SUCCESS(STATUS_SUCCESS) && NT_SUCCESS(STATUS_PENDING) && NT_SUCCESS(STATUS_TIMEOUT));
    CHECK(!NT_SUCCESS(STATUS_BUFFER_OVERFLOW) && !NT_ERROR(STATUS_BUFFER_OVERFLOW));
    CHECK(NT_WARNING(STATUS_BUFFER_OVERFLOW) && NT_ERROR(STATUS_CANCELLED));
    CHECK(!NT_ERROR(STATUS_PENDING) && NT_ERROR(NDIS_STATUS_BAD_VERSION));
}

TEST_MAIN(TEST(structures_have_their_x64_layout), TEST(objects_are_a_header_and_a_table),
          TEST(dispatch_tables_have_their_order), TEST(constants_have_their_values),
          TEST(status_macros_judge_by_severity))
