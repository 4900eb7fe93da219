/* SPDX-License-Identifier: MIT */
#include "local/config.h"
#include <stdlib.h>
#include <string.h>
#include "local/local.h"

struct lo_config lo_config_get(void) {
    const char *use = getenv("SOFTND_TRANSPORT"), *copy = getenv("SOFTND_LOCAL_COPY");
    const char *capture = getenv("SOFTND_CAPTURE");
    struct lo_config cfg = { .use = LO_USE_AUTO,
                             .direct_copy = !copy || strcmp(copy, "shared") != 0 };
    if (capture && *capture) cfg.use = LO_USE_NEVER;
    if (use && strcmp(use, "iwarp") == 0) cfg.use = LO_USE_NEVER;
    if (use && strcmp(use, "local") == 0) cfg.use = LO_USE_FORCED;
    return cfg;
}

bool lo_in_use(void) {
    return lo_config_get().use != LO_USE_NEVER;
}
