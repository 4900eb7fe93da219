/* SPDX-License-Identifier: MIT
 * softnd_kmzw.h - registry keys and files, as far as NDK consumers use them for their settings and
 * logs.
 * Owns:    the Zw routines. docs/ndk.md says where the registry and the files really are.
 * Threads: PASSIVE_LEVEL.   Errors: NTSTATUS.
 */
#ifndef SOFTND_KMZW_H
#define SOFTND_KMZW_H

#include "softnd_kmtypes.h"

#ifndef SOFTND_API
#define SOFTND_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define OBJ_INHERIT 0x00000002
#define OBJ_CASE_INSENSITIVE 0x00000040
#define OBJ_KERNEL_HANDLE 0x00000200
#define InitializeObjectAttributes(p, name, attributes, root, security)                            \
    ((p)->Length = sizeof(OBJECT_ATTRIBUTES), (p)->RootDirectory = (root),                         \
     (p)->Attributes = (attributes), (p)->ObjectName = (name),                                     \
     (p)->SecurityDescriptor = (security), (p)->SecurityQualityOfService = NULL)

#define DELETE 0x00010000
#define SYNCHRONIZE 0x00100000
#define GENERIC_READ 0x80000000
#define GENERIC_WRITE 0x40000000
#define GENERIC_ALL 0x10000000

/* ---- registry ---- */

#define KEY_QUERY_VALUE 0x0001
#define KEY_SET_VALUE 0x0002
#define KEY_CREATE_SUB_KEY 0x0004
#define KEY_ENUMERATE_SUB_KEYS 0x0008
#define KEY_READ 0x20019
#define KEY_WRITE 0x20006
#define KEY_ALL_ACCESS 0xF003F
#define REG_NONE 0
#define REG_SZ 1
#define REG_EXPAND_SZ 2
#define REG_BINARY 3
#define REG_DWORD 4
#define REG_MULTI_SZ 7
#define REG_QWORD 11
#define REG_OPTION_NON_VOLATILE 0
#define REG_OPTION_VOLATILE 1
#define REG_CREATED_NEW_KEY 1
#define REG_OPENED_EXISTING_KEY 2

typedef enum _KEY_VALUE_INFORMATION_CLASS {
    KeyValueBasicInformation,
    KeyValueFullInformation,
    KeyValuePartialInformation
} KEY_VALUE_INFORMATION_CLASS;
typedef struct _KEY_VALUE_PARTIAL_INFORMATION {
    ULONG TitleIndex;
    ULONG Type;
    ULONG DataLength;
    UCHAR Data[1];
} KEY_VALUE_PARTIAL_INFORMATION, *PKEY_VALUE_PARTIAL_INFORMATION;

/* Names below \Registry, absolute or relative to RootDirectory, without regard to the case of
 * ASCII letters. A key that is created makes its parents. */
SOFTND_API NTSTATUS ZwCreateKey(PHANDLE KeyHandle, ACCESS_MASK DesiredAccess,
                                POBJECT_ATTRIBUTES ObjectAttributes, ULONG TitleIndex,
                                PUNICODE_STRING Class, ULONG CreateOptions, PULONG Disposition);
/* STATUS_OBJECT_NAME_NOT_FOUND. */
SOFTND_API NTSTATUS ZwOpenKey(PHANDLE KeyHandle, ACCESS_MASK DesiredAccess,
                              POBJECT_ATTRIBUTES ObjectAttributes);
/* Only KeyValuePartialInformation, else STATUS_NOT_SUPPORTED. STATUS_OBJECT_NAME_NOT_FOUND;
 * STATUS_BUFFER_TOO_SMALL: not even the fixed part; STATUS_BUFFER_OVERFLOW: as much data as fits.
 */
SOFTND_API NTSTATUS ZwQueryValueKey(HANDLE KeyHandle, PUNICODE_STRING ValueName,
                                    KEY_VALUE_INFORMATION_CLASS InformationClass, PVOID Information,
                                    ULONG Length, PULONG ResultLength);
SOFTND_API NTSTATUS ZwSetValueKey(HANDLE KeyHandle, PUNICODE_STRING ValueName, ULONG TitleIndex,
                                  ULONG Type, PVOID Data, ULONG DataSize);
SOFTND_API NTSTATUS ZwDeleteValueKey(HANDLE KeyHandle, PUNICODE_STRING ValueName);

/* ---- files ---- */

#define FILE_READ_DATA 0x0001
#define FILE_WRITE_DATA 0x0002
#define FILE_APPEND_DATA 0x0004
#define FILE_GENERIC_READ 0x120089
#define FILE_GENERIC_WRITE 0x120116
#define FILE_ATTRIBUTE_NORMAL 0x80
#define FILE_SHARE_READ 1
#define FILE_SHARE_WRITE 2
#define FILE_SHARE_DELETE 4
#define FILE_SUPERSEDE 0
#define FILE_OPEN 1
#define FILE_CREATE 2
#define FILE_OPEN_IF 3
#define FILE_OVERWRITE 4
#define FILE_OVERWRITE_IF 5
#define FILE_OPENED 1
#define FILE_CREATED 2
#define FILE_OVERWRITTEN 3
#define FILE_WRITE_THROUGH 0x02
#define FILE_SYNCHRONOUS_IO_ALERT 0x10
#define FILE_SYNCHRONOUS_IO_NONALERT 0x20
#define FILE_NON_DIRECTORY_FILE 0x40
#define FILE_WRITE_TO_END_OF_FILE 0xffffffff
#define FILE_USE_FILE_POINTER_POSITION 0xfffffffe

typedef VOID (*PIO_APC_ROUTINE)(PVOID ApcContext, PIO_STATUS_BLOCK IoStatusBlock, ULONG Reserved);

/* A file in the one directory that the runner's option names: only the last part of the path
 * counts. STATUS_OBJECT_PATH_NOT_FOUND without the option; STATUS_OBJECT_NAME_NOT_FOUND,
 * STATUS_OBJECT_NAME_COLLISION by the disposition; STATUS_OBJECT_NAME_INVALID. */
SOFTND_API NTSTATUS ZwCreateFile(PHANDLE FileHandle, ACCESS_MASK DesiredAccess,
                                 POBJECT_ATTRIBUTES ObjectAttributes,
                                 PIO_STATUS_BLOCK IoStatusBlock, PLARGE_INTEGER AllocationSize,
                                 ULONG FileAttributes, ULONG ShareAccess, ULONG CreateDisposition,
                                 ULONG CreateOptions, PVOID EaBuffer, ULONG EaLength);
/* Synchronous. No offset (or FILE_USE_FILE_POINTER_POSITION): where the last one ended. */
SOFTND_API NTSTATUS ZwWriteFile(HANDLE FileHandle, HANDLE Event, PIO_APC_ROUTINE ApcRoutine,
                                PVOID ApcContext, PIO_STATUS_BLOCK IoStatusBlock, PVOID Buffer,
                                ULONG Length, PLARGE_INTEGER ByteOffset, PULONG Key);
/* STATUS_END_OF_FILE when there is nothing to read. */
SOFTND_API NTSTATUS ZwReadFile(HANDLE FileHandle, HANDLE Event, PIO_APC_ROUTINE ApcRoutine,
                               PVOID ApcContext, PIO_STATUS_BLOCK IoStatusBlock, PVOID Buffer,
                               ULONG Length, PLARGE_INTEGER ByteOffset, PULONG Key);
SOFTND_API NTSTATUS ZwFlushBuffersFile(HANDLE FileHandle, PIO_STATUS_BLOCK IoStatusBlock);

#ifdef __cplusplus
}
#endif

#endif
