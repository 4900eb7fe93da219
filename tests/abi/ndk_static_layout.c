/* SPDX-License-Identifier: MIT
 * ndk_static_layout.c - the NDK part of ndk_layouts.h at compile time, for MinGW's own kernel
 * headers (see ndk_mingw_headers.sh). Nothing runs.
 */
#ifdef __cplusplus /* MinGW's ntddk.h does not compile as C++ */
#include <winsock2.h>
#include <windows.h>
#include <ntdef.h>
#else
#include <ntddk.h>
#endif
#include <stddef.h>
#include "ndkpi.h"
#include "ndk_layouts.h"

#ifdef __cplusplus
#define _Static_assert static_assert
#endif
#define ASSERT_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type);
#define ASSERT_AT(type, field, offset)                                                             \
    _Static_assert(offsetof(type, field) == (offset), #type "." #field);
#define ASSERT_VALUE(name, number)                                                                 \
    _Static_assert((unsigned)(name) == (unsigned)(number), #name " is not " #number);
#define ASSERT_OBJECT(type)                                                                        \
    _Static_assert(sizeof(type) == 0x30 && offsetof(type, Dispatch) == 0x28, #type);
#define ASSERT_TABLE(type, slots) _Static_assert(sizeof(type) == 8 * (slots), #type);
#define ASSERT_SLOT(type, index, member) ASSERT_AT(type, member, 8 * (index))

NDK_STRUCTS(ASSERT_SIZE, ASSERT_AT)
NDK_OBJECTS(ASSERT_OBJECT)
NDK_TABLES(ASSERT_TABLE, ASSERT_SLOT)
NDK_VALUES(ASSERT_VALUE)
