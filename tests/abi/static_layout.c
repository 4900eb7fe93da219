/* SPDX-License-Identifier: MIT
 * static_layout.c - the numbers of layouts.h and methods.h as compile-time checks. Nothing runs:
 * this is for compilers whose programs this machine cannot start (see mingw_headers.sh). On
 * Windows it also checks the tables themselves against the system's headers.
 */
#ifdef _WIN32
#define WIN32_NO_STATUS
#include <winsock2.h>
#include <ws2tcpip.h>
#include <ws2spi.h>
#include <windows.h>
#undef WIN32_NO_STATUS
#include <ntstatus.h>
#endif
#include <stddef.h>

#include "softnd.h"
#include "ndsupport.h"
#include "layouts.h"
#include "methods.h"

#define ASSERT_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type);
#define ASSERT_ALIGN(type, bytes) _Static_assert(_Alignof(type) == (bytes), #type);
#define ASSERT_AT(type, field, offset)                                                             \
    _Static_assert(offsetof(type, field) == (offset), #type "." #field);
#define ASSERT_VALUE(name, number)                                                                 \
    _Static_assert((unsigned)(name) == (unsigned)(number), #name " is not " #number);

WIDTHS(ASSERT_SIZE, ASSERT_ALIGN)
STRUCTS(ASSERT_SIZE, ASSERT_AT)
ND_CONSTANTS(ASSERT_VALUE)
ND_STATUSES(ASSERT_VALUE)
WIN32_CONSTANTS(ASSERT_VALUE)
NT_CONSTANTS(ASSERT_VALUE)

#define SLOT0(I, ret, method) I##_slot_of_##method,
#define SLOT(I, ret, method, ...) I##_slot_of_##method,
#define ASSERT_SLOT0(I, ret, method)                                                               \
    _Static_assert(offsetof(I##Vtbl, method) == 8 * I##_slot_of_##method, #I "::" #method);
#define ASSERT_SLOT(I, ret, method, ...) ASSERT_SLOT0(I, ret, method)
#define ASSERT_TABLE(I, slots)                                                                     \
    enum { LIST_##I(SLOT0, SLOT, I) };                                                             \
    LIST_##I(ASSERT_SLOT0, ASSERT_SLOT, I) _Static_assert(sizeof(I##Vtbl) == 8 * (slots), #I);
ALL_INTERFACES(ASSERT_TABLE)
