/* SPDX-License-Identifier: MIT
 * settings.c - a consumer that has its settings in the registry, and its results there and in a
 * file. With the argument "forget" it leaves its key open; with "raise" it lets an exception go.
 */
#include <ntddk.h>
#include <string.h>
#include "softndk.h"

static NTSTATUS write_log(const char *text) {
    UNICODE_STRING name;
    OBJECT_ATTRIBUTES oa;
    IO_STATUS_BLOCK io;
    HANDLE file;
    RtlInitUnicodeString(&name, L"\\??\\C:\\logs\\settings.txt");
    InitializeObjectAttributes(&oa, &name, OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE, NULL, NULL);
    NTSTATUS st = ZwCreateFile(&file, FILE_WRITE_DATA, &oa, &io, NULL, FILE_ATTRIBUTE_NORMAL, 0,
                               FILE_OVERWRITE_IF, FILE_SYNCHRONOUS_IO_NONALERT, NULL, 0);
    if (!NT_SUCCESS(st)) return st;
    st = ZwWriteFile(file, NULL, NULL, NULL, &io, (PVOID)text, (ULONG)strlen(text), NULL, NULL);
    ZwClose(file);
    return st;
}

static NTSTATUS double_port(HANDLE key) {
    union {
        KEY_VALUE_PARTIAL_INFORMATION info;
        UCHAR bytes[32];
    } v;
    UNICODE_STRING name;
    ULONG len, port;
    RtlInitUnicodeString(&name, L"Port");
    NTSTATUS st = ZwQueryValueKey(key, &name, KeyValuePartialInformation, &v, sizeof v, &len);
    if (!NT_SUCCESS(st)) return st;
    memcpy(&port, v.info.Data, sizeof port);
    port *= 2;
    RtlInitUnicodeString(&name, L"Twice");
    st = ZwSetValueKey(key, &name, 0, REG_DWORD, &port, sizeof port);
    RtlInitUnicodeString(&name, L"Said");
    if (NT_SUCCESS(st)) st = ZwSetValueKey(key, &name, 0, REG_SZ, L"a \"word\"", 18);
    return st;
}

SOFTND_API DRIVER_INITIALIZE DriverEntry;
NTSTATUS DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING path) {
    OBJECT_ATTRIBUTES oa;
    HANDLE key;
    char **argv;
    int argc = softndk_args(&argv);
    (void)driver;
    if (argc && strcmp(argv[0], "raise") == 0) ExRaiseStatus(STATUS_NO_MEMORY);
    InitializeObjectAttributes(&oa, path, OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE, NULL, NULL);
    NTSTATUS st = ZwOpenKey(&key, KEY_ALL_ACCESS, &oa);
    if (!NT_SUCCESS(st)) return st;
    st = double_port(key);
    if (NT_SUCCESS(st)) st = write_log("done\n");
    if (!argc) ZwClose(key);
    softndk_finish(0);
    return st;
}
