/* SPDX-License-Identifier: MIT
 * softndk.h - SoftND's own switches for NDK consumers and their tests. Nothing of this exists in a
 * Windows kernel.
 * Owns:    how requests complete, the verifier, the runner.
 * Threads: set switches before adapters are opened; counters from any thread.
 * Errors:  as said at each call.
 */
#ifndef SOFTNDK_H
#define SOFTNDK_H

#include <stdint.h>
#include "../km/softnd_km.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a request that could be answered at once is answered. What takes time always pends. */
enum softndk_completions {
    SOFTNDK_INLINE,  /* by the return value (the default) */
    SOFTNDK_PENDING, /* STATUS_PENDING, the callback on another thread */
    SOFTNDK_EARLY,   /* STATUS_PENDING, the callback before the call returns, where possible */
    SOFTNDK_RANDOM   /* one of these, by chance */
};
enum softndk_verifier { SOFTNDK_VERIFIER_OFF, SOFTNDK_VERIFIER_REPORT, SOFTNDK_VERIFIER_ABORT };

/* Sets a switch by name. 0, or -1 for an unknown name or value. The same names in upper case with
 * SOFTNDK_ before them are environment variables, read when the library is loaded.
 *   completions       inline, pending, early, random
 *   verifier          off, report, abort
 *   tokens            fresh (each registration has a new remote token), constant
 *   logical-pages     contiguous, scattered
 *   freed-pool        poison (at once, with the verifier), keep (for a while, unchanged)
 *   fail-posts        N: every N-th post fails inline with STATUS_INSUFFICIENT_RESOURCES; 0: none
 *   deadlock-after    milliseconds that a wait without end lasts before the verifier asks whether
 *                     anything can end it (softndk_run only; default 10000); 0: never
 *   interrupt-moderation  supported, missing (the adapter's flag is clear, and
 *                     NdkControlCqInterruptModeration answers STATUS_NOT_SUPPORTED)
 *   adapter           enabled, disabled (opening answers NDIS_STATUS_ADAPTER_NOT_READY)
 *   registry          a file to read the registry from, and to which softndk_run writes it back;
 *                     UTF-8, in the format of the Windows registry editor's exports
 *   files             the directory of what ZwCreateFile opens
 */
SOFTND_API int softndk_set(const char *name, const char *value);

/* How often a rule was broken since the start or the last reset, errors and warnings; NULL: errors
 * of all rules. -1: there is no such rule. */
SOFTND_API int softndk_violations(const char *rule);
SOFTND_API void softndk_violations_reset(void);
/* The i-th rule: its name and what it asks; NULL past the last. */
SOFTND_API const char *softndk_rule(unsigned i, const char **text);

/* Reports what the kernel environment still holds (pool, MDLs, work items, adapters, WSK clients)
 * as violations, and forgets it. Returns the number of things found. */
SOFTND_API int softndk_report_leaks(void);

/* Loads a consumer built as a shared object, calls its DriverEntry, waits (seconds; negative: until
 * a signal or until the consumer calls softndk_finish), calls DriverUnload, reports leaks.
 * Returns 0; 1 violations or a failed DriverEntry; 2 could not be loaded. */
struct softndk_run {
    const char *path;
    int argc; /* what the consumer sees through softndk_args */
    char **argv;
    int wait_seconds;
};
SOFTND_API int softndk_run(const struct softndk_run *run);
/* For consumers that know of the runner: their arguments, and the end of the wait. The code is
 * added to what softndk_run returns: 0 good, 1 failed. */
SOFTND_API int softndk_args(char ***argv);
SOFTND_API void softndk_finish(int code);

#ifdef __cplusplus
}
#endif

#endif
