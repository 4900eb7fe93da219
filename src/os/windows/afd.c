/* SPDX-License-Identifier: MIT */
#include "os/windows/afd.h"
#include <mswsock.h>
#include <stddef.h>
#include <stdint.h>

#define AFD_IOCTL_POLL 0x00012024u

#ifndef SIO_BASE_HANDLE
#define SIO_BASE_HANDLE 0x48000022u
#endif

_Static_assert(sizeof(void *) != 8 ||
                   (sizeof(struct afd_poll) == 32 && offsetof(struct afd_poll, socket) == 16 &&
                    offsetof(struct afd_poll, events) == 24),
               "the driver's layout");

NTSTATUS NTAPI NtCancelIoFileEx(HANDLE file, IO_STATUS_BLOCK *which, IO_STATUS_BLOCK *iosb);

HANDLE afd_open(void) {
    /* What follows the device is free text; it shows in tools that list handles. */
    static const WCHAR path[] = L"\\Device\\Afd\\SoftND";
    UNICODE_STRING name = { .Length = sizeof path - sizeof(WCHAR),
                            .MaximumLength = sizeof path,
                            .Buffer = (WCHAR *)(uintptr_t)path };
    OBJECT_ATTRIBUTES attributes = { .Length = sizeof attributes, .ObjectName = &name };
    IO_STATUS_BLOCK iosb;
    HANDLE h;
    NTSTATUS st = NtCreateFile(&h, SYNCHRONIZE, &attributes, &iosb, NULL, 0,
                               FILE_SHARE_READ | FILE_SHARE_WRITE, FILE_OPEN, 0, NULL, 0);
    return st < 0 ? INVALID_HANDLE_VALUE : h;
}

NTSTATUS afd_poll_start(HANDLE afd, HANDLE event, void *context, IO_STATUS_BLOCK *iosb,
                        struct afd_poll *poll) {
    poll->count = 1;
    poll->exclusive = 0;
    poll->status = 0;
    iosb->Status = STATUS_PENDING;
    return NtDeviceIoControlFile(afd, event, NULL, context, iosb, AFD_IOCTL_POLL, poll,
                                 sizeof *poll, poll, sizeof *poll);
}

void afd_poll_malformed(HANDLE afd) {
    IO_STATUS_BLOCK iosb;
    ULONG none = 0;
    (void)NtDeviceIoControlFile(afd, NULL, NULL, NULL, &iosb, AFD_IOCTL_POLL, &none, sizeof none,
                                NULL, 0);
}

void afd_poll_cancel(HANDLE afd, IO_STATUS_BLOCK *iosb) {
    IO_STATUS_BLOCK done;
    (void)NtCancelIoFileEx(afd, iosb, &done);
}

SOCKET afd_base_socket(SOCKET s) {
    SOCKET base = INVALID_SOCKET;
    DWORD got = 0;
    if (WSAIoctl(s, SIO_BASE_HANDLE, NULL, 0, &base, sizeof base, &got, NULL, NULL) != 0) return s;
    return base;
}
