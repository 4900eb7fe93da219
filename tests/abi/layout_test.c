/* SPDX-License-Identifier: MIT
 * layout_test.c - sizes, offsets, constants, IIDs and vtable slots of the public headers against
 * the numbers in layouts.h and methods.h. Built as C, and as C++ by layout_cpp_test.cpp.
 */
#include <stddef.h>

#include "initguid.h"
#include "softnd.h"
#include "ndsupport.h"
#include "layouts.h"
#include "methods.h"
#include "support/testing.h"

/* ---- layouts ---- */

#define CHECK_SIZE(type, bytes) CHECK_EQ(sizeof(type), bytes);
#define CHECK_AT(type, field, offset) CHECK_EQ(offsetof(type, field), offset);
#define CHECK_ALIGN(type, bytes)                                                                   \
    {                                                                                              \
        struct probe {                                                                             \
            char first;                                                                            \
            type second;                                                                           \
        };                                                                                         \
        CHECK_EQ(offsetof(struct probe, second), bytes);                                           \
    }

static void scalar_types_have_windows_widths(void) {
    WIDTHS(CHECK_SIZE, CHECK_ALIGN)
    CHECK((ULONG)-1 > 0 && (DWORD)-1 > 0 && (UINT32)-1 > 0 && (USHORT)-1 > 0 && (SIZE_T)-1 > 0);
    CHECK((HRESULT)-1 < 0 && (LONG)-1 < 0 && (INT)-1 < 0 && (BOOL)-1 < 0);
}

static void structures_have_windows_x64_layout(void) {
    STRUCTS(CHECK_SIZE, CHECK_AT)
}

/* ---- numbers ---- */

#define CHECK_VALUE(name, number) CHECK_EQ((uint32_t)(name), (uint32_t)(number));
#define CHECK_STATUS(name, number)                                                                 \
    CHECK_EQ(sizeof(name), 4);                                                                     \
    CHECK_EQ((uint32_t)(name), (uint32_t)(number));                                                \
    CHECK_EQ((name) < 0, (uint32_t)(number) >> 31);                                                \
    CHECK_EQ(FAILED(name), (uint32_t)(number) >> 31);                                              \
    CHECK_EQ(SUCCEEDED(name), !((uint32_t)(number) >> 31));

static void flags_and_enumerators_have_their_values(void) {
    ND_CONSTANTS(CHECK_VALUE)
}

static void statuses_have_their_values_and_signs(void) {
    ND_STATUSES(CHECK_STATUS)
}

static void win32_numbers_are_those_of_windows(void) {
    WIN32_CONSTANTS(CHECK_VALUE)
    NT_CONSTANTS(CHECK_VALUE)
}

static void hresult_from_win32_keeps_hresults_and_zero(void) {
    CHECK_EQ(HRESULT_FROM_WIN32(0), 0);
    CHECK_EQ((uint32_t)HRESULT_FROM_WIN32(122), 0x8007007A);
    CHECK_EQ((uint32_t)HRESULT_FROM_WIN32(0x80004002), 0x80004002);
    CHECK_EQ((uint32_t)MAKE_HRESULT(1, FACILITY_WIN32, 6), 0x80070006);
}

/* ---- GUIDs ---- */

static void check_guid_text(const GUID *guid, const char *expected) {
    char text[40];
    const uint8_t *b = guid->Data4;
    snprintf(text, sizeof text, "%08X-%04X-%04X-%02X%02X-%02X%02X%02X%02X%02X%02X",
             (unsigned)guid->Data1, guid->Data2, guid->Data3, b[0], b[1], b[2], b[3], b[4], b[5],
             b[6], b[7]);
    CHECK_STR(text, expected);
}

static void interface_ids_have_their_values(void) {
    check_guid_text(&IID_IUnknown, "00000000-0000-0000-C000-000000000046");
    check_guid_text(&IID_IClassFactory, "00000001-0000-0000-C000-000000000046");
    check_guid_text(&IID_IND2Overlapped, "ABF72719-B016-4A40-A6F7-622791A7044C");
    check_guid_text(&IID_IND2CompletionQueue, "20CC445E-64A0-4CBB-AA75-F6A7251FDA9E");
    check_guid_text(&IID_IND2SharedReceiveQueue, "AABD67DC-459A-4DB1-826B-56CFCC278883");
    check_guid_text(&IID_IND2MemoryWindow, "070FE1F5-0AB5-4361-88DB-974BA704D4B9");
    check_guid_text(&IID_IND2MemoryRegion, "55DFEA2F-BC56-4982-8A45-0301BE46C413");
    check_guid_text(&IID_IND2QueuePair, "EEF2F332-B75D-4063-BCE3-3A0BAD2D02CE");
    check_guid_text(&IID_IND2Connector, "7DD615C4-6B4C-4866-950C-F3B1D25A5302");
    check_guid_text(&IID_IND2Listener, "65D23D83-3A57-4E02-86A4-350165C2D130");
    check_guid_text(&IID_IND2Adapter, "D89C798C-4823-4D69-846C-DFDCCFF9E5F3");
    check_guid_text(&IID_IND2Provider, "49EAE6C1-76C4-46D0-8003-5C2EAA2C9A8E");
    check_guid_text(&CLSID_SoftNdProvider, "0344F8A6-2003-438B-954B-7B4BF70419EC");
}

static void guids_compare_by_value(void) {
    GUID copy = IID_IND2Adapter;
#ifdef __cplusplus
    CHECK(IsEqualGUID(copy, IID_IND2Adapter) && copy == IID_IND2Adapter);
    copy.Data4[7] ^= 1;
    CHECK(!IsEqualIID(copy, IID_IND2Adapter) && copy != IID_IND2Adapter);
#else
    CHECK(IsEqualGUID(&copy, &IID_IND2Adapter));
    copy.Data4[7] ^= 1;
    CHECK(!IsEqualIID(&copy, &IID_IND2Adapter));
#endif
}

/* ---- the rest ---- */

static void wide_literals_are_two_byte_units(void) {
    const WCHAR name[] = u"SoftND \u00e9";
    LPCWSTR pointer = u"ab";
    CHECK_EQ(sizeof name, 9 * sizeof(WCHAR));
    CHECK_EQ(name[0], 'S');
    CHECK_EQ(name[7], 0xE9);
    CHECK_EQ(name[8], 0);
    CHECK_EQ(pointer[1], 'b');
    WSAPROTOCOL_INFOW entry;
    memset(&entry, 0, sizeof entry);
    memcpy(entry.szProtocol, name, sizeof name);
    CHECK_BYTES((const char *)&entry + 116, name, sizeof name);
}

static void overlapped_completion_macro_reads_the_status(void) {
    OVERLAPPED ov;
    memset(&ov, 0, sizeof ov);
    ov.Internal = STATUS_PENDING;
    CHECK(!HasOverlappedIoCompleted(&ov));
    ov.Internal = (ULONG)ND_CANCELED;
    CHECK(HasOverlappedIoCompleted(&ov));
    CHECK_EQ((NTSTATUS)ov.Internal, STATUS_CANCELLED);
    ov.Internal = 0;
    CHECK(HasOverlappedIoCompleted(&ov));
}

#ifndef __cplusplus
/* The n-th method of each list must be at byte 8 n of its table, and the table must end there. */
#define CHECK_SLOT0(I, ret, method) CHECK_EQ(offsetof(I##Vtbl, method), 8 * slot++);
#define CHECK_SLOT(I, ret, method, ...) CHECK_EQ(offsetof(I##Vtbl, method), 8 * slot++);
#define CHECK_TABLE(I, slots)                                                                      \
    slot = 0;                                                                                      \
    LIST_##I(CHECK_SLOT0, CHECK_SLOT, I) CHECK_EQ(slot, slots);                                    \
    CHECK_EQ(sizeof(I##Vtbl), 8 * slots);                                                          \
    CHECK_EQ(offsetof(I, lpVtbl), 0);                                                              \
    CHECK_EQ(sizeof(I), 8);

static void interface_tables_have_methods_in_their_slots(void) {
    int slot;
    ALL_INTERFACES(CHECK_TABLE)
}
#else
/* In C++ the slots are checked by calling C objects, in call_c_from_cpp_test.cpp. Here: the first
 * and only word of an interface is the table pointer. */
#define CHECK_CLASS(I, slots) CHECK_EQ(sizeof(I), 8);
static void interface_tables_have_methods_in_their_slots(void){ ALL_INTERFACES(CHECK_CLASS) }
#endif

TEST_MAIN(TEST(scalar_types_have_windows_widths), TEST(structures_have_windows_x64_layout),
          TEST(flags_and_enumerators_have_their_values), TEST(statuses_have_their_values_and_signs),
          TEST(win32_numbers_are_those_of_windows),
          TEST(hresult_from_win32_keeps_hresults_and_zero), TEST(interface_ids_have_their_values),
          TEST(guids_compare_by_value), TEST(wide_literals_are_two_byte_units),
          TEST(overlapped_completion_macro_reads_the_status),
          TEST(interface_tables_have_methods_in_their_slots))
