/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Read without a lock: every reader computes the same value from the environment. */
static int level_plus_one;

static int read_level(void) {
    static const char *const names[] = { "error", "warn", "info", "debug" };
    const char *want = getenv("SOFTND_LOG");
    int level = SN_LOG_WARN;
    for (int i = 0; want && i < 4; i++)
        if (strcmp(want, names[i]) == 0) level = i;
    __atomic_store_n(&level_plus_one, level + 1, __ATOMIC_RELAXED);
    return level;
}

int sn_log_enabled(enum sn_log_level level) {
    int known = __atomic_load_n(&level_plus_one, __ATOMIC_RELAXED);
    return (int)level <= (known ? known - 1 : read_level());
}

void sn_log_write(enum sn_log_level level, const char *fmt, ...) {
    static const char *const tags[] = { "error", "warning", "info", "debug" };
    char line[1024];
    int n = snprintf(line, sizeof line, "softnd %s: ", tags[level]);
    va_list args;
    va_start(args, fmt);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, args);
    va_end(args);
    if (m < 0) return;
    size_t len = strlen(line);
    line[len++] = '\n';
    const char *file = getenv("SOFTND_LOG_FILE");
    FILE *f = file && *file ? fopen(file, "a") : stderr;
    if (!f) f = stderr;
    fwrite(line, 1, len, f);
    if (f != stderr) fclose(f);
}
