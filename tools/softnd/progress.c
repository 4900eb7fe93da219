/* SPDX-License-Identifier: MIT
 * progress.c - see progress.h.
 */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include "sys.h"
#include "text.h"

#define INTERVAL_NS 100000000u
#define BAR_CHARS 32

void progress_begin(struct progress *p, uint64_t total_bytes) {
    *p = (struct progress){ .on = sys_stderr_is_terminal(),
                            .total_bytes = total_bytes,
                            .start_ns = sys_now_ns() };
}

static void draw(struct progress *p, uint64_t done, uint64_t now) {
    double seconds = (double)(now - p->start_ns) / 1e9;
    char bar[BAR_CHARS + 1], bytes[32], rate[32];

    text_from_bytes((double)done, bytes, sizeof bytes);
    text_from_bytes(seconds > 0 ? (double)done / seconds : 0, rate, sizeof rate);
    if (p->total_bytes == UINT64_MAX) {
        fprintf(stderr, "\r%10s  %10s/s  %.1f s ", bytes, rate, seconds);
    } else {
        double part = p->total_bytes ? (double)done / (double)p->total_bytes : 1;
        int full;
        if (part > 1) part = 1;
        full = (int)(part * BAR_CHARS);
        memset(bar, '.', BAR_CHARS);
        memset(bar, '#', (size_t)full);
        bar[BAR_CHARS] = 0;
        fprintf(stderr, "\r[%s] %3d%%  %10s  %10s/s ", bar, (int)(part * 100), bytes, rate);
    }
    fflush(stderr);
    p->shown = true;
    p->last_ns = now;
}

void progress_update(struct progress *p, uint64_t done_bytes) {
    uint64_t now;

    if (!p->on) return;
    now = sys_now_ns();
    if (now - p->last_ns >= INTERVAL_NS) draw(p, done_bytes, now);
}

void progress_end(struct progress *p, uint64_t done_bytes) {
    if (!p->on) return;
    if (p->start_ns) draw(p, done_bytes, sys_now_ns());
    if (p->shown) fputc('\n', stderr);
    p->on = false;
}
