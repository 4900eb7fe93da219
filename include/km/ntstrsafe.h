/* SPDX-License-Identifier: MIT
 * ntstrsafe.h - bounded string functions of kernel-mode programs.
 * Owns:    the prototypes; sizes are in bytes (Cb) or characters (Cch), with the terminator.
 * Threads: any.   Errors: STATUS_BUFFER_OVERFLOW, with what fits terminated;
 *          STATUS_INVALID_PARAMETER for a size of 0 or above 2 GiB.
 */
#ifndef SOFTND_NTSTRSAFE_H
#define SOFTND_NTSTRSAFE_H

#include "softnd_km.h"

#define NTSTRSAFE_MAX_CCH 2147483647

#ifdef __cplusplus
extern "C" {
#endif

SOFTND_API NTSTATUS RtlStringCbPrintfA(PSTR Destination, SIZE_T Size, PCSTR Format, ...)
    __attribute__((format(printf, 3, 4)));
SOFTND_API NTSTATUS RtlStringCbVPrintfA(PSTR Destination, SIZE_T Size, PCSTR Format, va_list Args)
    __attribute__((format(printf, 3, 0)));
#define RtlStringCchPrintfA RtlStringCbPrintfA
#define RtlStringCchVPrintfA RtlStringCbVPrintfA
SOFTND_API NTSTATUS RtlStringCbCopyA(PSTR Destination, SIZE_T Size, PCSTR Source);
SOFTND_API NTSTATUS RtlStringCbCatA(PSTR Destination, SIZE_T Size, PCSTR Source);
SOFTND_API NTSTATUS RtlStringCbLengthA(PCSTR String, SIZE_T Max, PSIZE_T Length);
#define RtlStringCchCopyA RtlStringCbCopyA
#define RtlStringCchCatA RtlStringCbCatA
#define RtlStringCchLengthA RtlStringCbLengthA
SOFTND_API NTSTATUS RtlStringCbCopyUnicodeString(PWSTR Destination, SIZE_T Size,
                                                 PCUNICODE_STRING Source);
SOFTND_API NTSTATUS RtlStringCchCopyW(PWSTR Destination, SIZE_T Count, PCWSTR Source);

#ifdef __cplusplus
}
#endif

#endif
