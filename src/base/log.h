/* SPDX-License-Identifier: MIT
 * log.h - messages for people: rare events only, never per operation.
 * Owns:    the level and the destination, from SOFTND_LOG (error, warn, info, debug; default warn)
 *          and SOFTND_LOG_FILE (default stderr), read once.
 * Threads: any; one line is written with one call.   Errors: none, a message may be lost.
 * A text names the call, the object, the numbers and what to do.
 */
#ifndef SN_BASE_LOG_H
#define SN_BASE_LOG_H

#include "base/status.h"

enum sn_log_level { SN_LOG_ERROR, SN_LOG_WARN, SN_LOG_INFO, SN_LOG_DEBUG };

/* True if a message of this level would be written; cheap. */
int sn_log_enabled(enum sn_log_level level);
void sn_log_write(enum sn_log_level level, const char *fmt, ...) SN_PRINTF(2, 3);

#define SN_LOG(level, ...)                                                                         \
    do {                                                                                           \
        if (sn_log_enabled(level)) sn_log_write(level, __VA_ARGS__);                               \
    } while (0)

#endif
