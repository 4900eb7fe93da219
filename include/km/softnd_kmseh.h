/* SPDX-License-Identifier: MIT
 * softnd_kmseh.h - exceptions that a routine raises, for consumers that guard calls with
 * __try / __except.
 * Owns:    ExRaiseStatus and its relatives, and (in C only) __try, __except, GetExceptionCode.
 * Threads: a frame belongs to its thread.
 * Errors:  an exception that nobody catches is a bug check, which ends the process.
 *
 * GCC and Clang have no structured exceptions on this system; these are macros over setjmp:
 *   - they catch what routines raise (MmProbeAndLockPages, ProbeForRead, ExRaiseStatus, ...), never
 *     a fault of the processor: a wild pointer ends the process, as it ends a kernel;
 *   - the filter runs after the stack was unwound, with GetExceptionCode only, and
 *     EXCEPTION_CONTINUE_EXECUTION is a bug check;
 *   - return and goto may leave the guarded block, break and continue leave that block only;
 *   - variables that the block changes and the handler reads have to be volatile;
 *   - there is neither __finally nor __leave: a source that has them does not compile.
 */
#ifndef SOFTND_KMSEH_H
#define SOFTND_KMSEH_H

#include <setjmp.h>
#include "softnd_kmtypes.h"

#ifndef SOFTND_API
#ifdef _WIN32
#define SOFTND_API __declspec(dllexport)
#else
#define SOFTND_API __attribute__((visibility("default")))
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define EXCEPTION_EXECUTE_HANDLER 1
#define EXCEPTION_CONTINUE_SEARCH 0
#define EXCEPTION_CONTINUE_EXECUTION (-1)

SOFTND_API DECLSPEC_NORETURN VOID ExRaiseStatus(NTSTATUS Status);
SOFTND_API DECLSPEC_NORETURN VOID ExRaiseAccessViolation(VOID);
SOFTND_API DECLSPEC_NORETURN VOID ExRaiseDatatypeMisalignment(VOID);
/* Raise STATUS_ACCESS_VIOLATION if the memory is not there (for writing: not writable), and
 * STATUS_DATATYPE_MISALIGNMENT. Alignment is 1, 2, 4, 8 or 16. */
SOFTND_API VOID ProbeForRead(const volatile VOID *Address, SIZE_T Length, ULONG Alignment);
SOFTND_API VOID ProbeForWrite(volatile VOID *Address, SIZE_T Length, ULONG Alignment);

/* What the macros are made of. */
struct softndk_try {
    struct softndk_try *outer;
    jmp_buf env;
    NTSTATUS code;
    BOOLEAN active; /* on the thread's chain */
    BOOLEAN once;
};
SOFTND_API VOID softndk_try_enter(struct softndk_try *frame);
SOFTND_API VOID softndk_try_leave(struct softndk_try *frame);
/* TRUE: run the handler. Raises again for EXCEPTION_CONTINUE_SEARCH. */
SOFTND_API BOOLEAN softndk_try_filter(struct softndk_try *frame, int disposition);

#ifndef __cplusplus
/* clang-format off */
#define __try                                                                                      \
    for (struct softndk_try softndk_frame __attribute__((cleanup(softndk_try_leave))) =            \
             { .once = TRUE };                                                                     \
         softndk_frame.once; softndk_frame.once = FALSE)                                           \
        if (softndk_try_enter(&softndk_frame), setjmp(softndk_frame.env) == 0)
#define __except(...) else if (softndk_try_filter(&softndk_frame, (__VA_ARGS__)))
#define GetExceptionCode() (softndk_frame.code)
/* clang-format on */
#endif

#ifdef __cplusplus
}
#endif

#endif
