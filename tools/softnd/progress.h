/* SPDX-License-Identifier: MIT
 * progress.h - a progress bar on stderr, when that is a terminal; nothing otherwise.
 * Owns:    the last line of the terminal between update and end.
 * Threads: one.   Errors: none.
 */
#ifndef TOOL_PROGRESS_H
#define TOOL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool shown;           /* something was drawn */
    bool on;              /* stderr is a terminal */
    uint64_t total_bytes; /* UINT64_MAX: unknown */
    uint64_t start_ns, last_ns;
};

void progress_begin(struct progress *p, uint64_t total_bytes);
/* Cheap: draws ten times a second at most. */
void progress_update(struct progress *p, uint64_t done_bytes);
/* Draws the final state and ends the line. */
void progress_end(struct progress *p, uint64_t done_bytes);

#endif
