/* SPDX-License-Identifier: MIT
 * verify.h - reports of broken rules.
 * Owns:    the switch, the counters and the text of a report: the rule in words, the call, the
 *          object, what is wrong, and the stack.
 * Threads: any; a report is written in one piece.   Errors: none.
 */
#ifndef SN_NDK_VERIFY_H
#define SN_NDK_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include "base/status.h"
#include "os/prim/atomic.h"
#include "ndk/verify/rules.h"

extern os_atomic_u32 ndk_verify_mode; /* enum softndk_verifier */

static inline bool ndk_verifying(void) {
    return SN_UNLIKELY(os_u32_load_relaxed(&ndk_verify_mode) != 0);
}

/* Do nothing while the verifier is off. call may be NULL: the routine that the consumer entered
 * last (ndk_call_enter). A violation in abort mode ends the process. */
void ndk_violation(enum ndk_rule rule, const char *call, const void *object, const char *fmt, ...)
    SN_PRINTF(4, 5);
/* Suspicious but legal: reported and counted by rule, never an error of the run. */
void ndk_warning(enum ndk_rule rule, const char *call, const void *object, const char *fmt, ...)
    SN_PRINTF(4, 5);

enum { NDK_STACK_MAX = 12 };
struct ndk_stack {
    void *frame[NDK_STACK_MAX];
    int count;
};
/* These four: stack_linux.c, stack_windows.c. The stack of the caller. */
void ndk_stack_take(struct ndk_stack *s);
/* Appends one line per frame to buf. */
size_t ndk_stack_text(const struct ndk_stack *s, char *buf, size_t size);
/* The address lies on the calling thread's stack. */
bool ndk_on_this_stack(const void *p);
/* The address lies in code of a loaded module. */
bool ndk_is_code(const void *p);

#endif
