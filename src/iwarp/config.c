/* SPDX-License-Identifier: MIT */
#include "iwarp/config.h"
#include <stdlib.h>
#include <string.h>
#include "os/prim/clock.h"

enum { MILLISECONDS_MAX = 600000 };

static uint64_t milliseconds(const char *name, uint64_t unset) {
    const char *text = getenv(name);
    char *end;
    if (!text) return unset;
    unsigned long v = strtoul(text, &end, 10);
    return *end == 0 && v >= 1 && v <= MILLISECONDS_MAX ? v : unset;
}

struct iw_config iw_config_get(void) {
    const char *crc = getenv("SOFTND_CRC"), *rev = getenv("SOFTND_MPA_REV");
    return (struct iw_config){ .crc = !crc || strcmp(crc, "off") != 0,
                               .rev = rev && strcmp(rev, "1") == 0 ? 1 : 2,
                               .request_ns =
                                   milliseconds("SOFTND_MPA_REQUEST_MS", 5000) * OS_NS_PER_MS,
                               .answer_ns =
                                   milliseconds("SOFTND_MPA_ANSWER_MS", 600000) * OS_NS_PER_MS };
}
