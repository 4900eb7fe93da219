/* SPDX-License-Identifier: MIT
 * ndstatus.h - the status codes of NetworkDirect.
 * Owns:    the ND_* statuses. A status is an HRESULT with the value of the NTSTATUS of the same
 *          meaning, so SUCCEEDED() holds for ND_SUCCESS, ND_TIMEOUT and ND_PENDING only.
 * Threads: constants only.   Errors: these are them.
 *
 * The method comments in ndspi.h say which call returns what. "CQE" below is ND2_RESULT::Status.
 */
#ifndef NDSTATUS_H
#define NDSTATUS_H

#ifdef _WIN32
#include <winsock2.h>
#include <windows.h>
#else
#include "win32/softnd_win32.h"
#endif

/* clang-format off */

/* ---- not failures ---- */

#define ND_SUCCESS                ((HRESULT)0x00000000)
#define ND_TIMEOUT                ((HRESULT)0x00000102) /* never returned by SoftND */
#define ND_PENDING                ((HRESULT)0x00000103) /* accepted, completes later, once */

/* ---- warnings: negative, so FAILED() ---- */

#define ND_BUFFER_OVERFLOW        ((HRESULT)0x80000005) /* too small, too long, or CQ overrun */
#define ND_DEVICE_BUSY            ((HRESULT)0x80000011) /* region with windows still bound */
#define ND_NO_MORE_ENTRIES        ((HRESULT)0x8000001A) /* the queue is full */

/* ---- errors ---- */

#define ND_UNSUCCESSFUL           ((HRESULT)0xC0000001)
#define ND_ACCESS_VIOLATION       ((HRESULT)0xC0000005) /* memory, or its rights */
#define ND_INVALID_HANDLE         ((HRESULT)0xC0000008)
#define ND_INVALID_PARAMETER      ((HRESULT)0xC000000D)
#define ND_INVALID_DEVICE_REQUEST ((HRESULT)0xC0000010) /* makes no sense in this state */
#define ND_NO_MEMORY              ((HRESULT)0xC0000017)
#define ND_INVALID_PARAMETER_MIX  ((HRESULT)0xC0000030)
#define ND_DATA_OVERRUN           ((HRESULT)0xC000003C) /* too many SGEs; CQE: too much data */
#define ND_SHARING_VIOLATION      ((HRESULT)0xC0000043) /* address in use */
#define ND_INSUFFICIENT_RESOURCES ((HRESULT)0xC000009A)
#define ND_DEVICE_NOT_READY       ((HRESULT)0xC00000A3) /* helper functions: not started */
#define ND_IO_TIMEOUT             ((HRESULT)0xC00000B5)
#define ND_NOT_SUPPORTED          ((HRESULT)0xC00000BB)
#define ND_INTERNAL_ERROR         ((HRESULT)0xC00000E5)
/* _n: the n-th parameter of the method is bad; the object itself is not counted. */
#define ND_INVALID_PARAMETER_1    ((HRESULT)0xC00000EF)
#define ND_INVALID_PARAMETER_2    ((HRESULT)0xC00000F0)
#define ND_INVALID_PARAMETER_3    ((HRESULT)0xC00000F1)
#define ND_INVALID_PARAMETER_4    ((HRESULT)0xC00000F2)
#define ND_INVALID_PARAMETER_5    ((HRESULT)0xC00000F3)
#define ND_INVALID_PARAMETER_6    ((HRESULT)0xC00000F4)
#define ND_INVALID_PARAMETER_7    ((HRESULT)0xC00000F5)
#define ND_INVALID_PARAMETER_8    ((HRESULT)0xC00000F6)
#define ND_INVALID_PARAMETER_9    ((HRESULT)0xC00000F7)
#define ND_INVALID_PARAMETER_10   ((HRESULT)0xC00000F8)
#define ND_CANCELED               ((HRESULT)0xC0000120) /* cancelled; CQE: flushed */
#define ND_REMOTE_ERROR           ((HRESULT)0xC000013D) /* CQE: the remote queue pair failed */
#define ND_INVALID_ADDRESS        ((HRESULT)0xC0000141) /* not an address of this adapter */
#define ND_INVALID_DEVICE_STATE   ((HRESULT)0xC0000184)
#define ND_INVALID_BUFFER_SIZE    ((HRESULT)0xC0000206)
#define ND_TOO_MANY_ADDRESSES     ((HRESULT)0xC0000209) /* no free port left */
#define ND_ADDRESS_ALREADY_EXISTS ((HRESULT)0xC000020A) /* this connection exists already */
#define ND_CONNECTION_REFUSED     ((HRESULT)0xC0000236)
#define ND_CONNECTION_INVALID     ((HRESULT)0xC000023A) /* not connected, or not connecting */
#define ND_CONNECTION_ACTIVE      ((HRESULT)0xC000023B) /* already connected */
#define ND_NETWORK_UNREACHABLE    ((HRESULT)0xC000023C)
#define ND_HOST_UNREACHABLE       ((HRESULT)0xC000023D)
#define ND_CONNECTION_ABORTED     ((HRESULT)0xC0000241) /* the peer gave up */
#define ND_DEVICE_REMOVED         ((HRESULT)0xC00002B6) /* the adapter is gone */

/* ---- names used by version 1 sources ---- */

#define ND_LOCAL_LENGTH           ND_DATA_OVERRUN
#define ND_INVALIDATION_ERROR     ND_INVALID_DEVICE_REQUEST

/* ---- severity: the two highest bits ---- */

#ifndef STATUS_SEVERITY_SUCCESS
#define STATUS_SEVERITY_SUCCESS       0x0
#define STATUS_SEVERITY_INFORMATIONAL 0x1
#define STATUS_SEVERITY_WARNING       0x2
#define STATUS_SEVERITY_ERROR         0x3
#endif

/* clang-format on */

#endif
