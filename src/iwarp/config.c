/* SPDX-License-Identifier: MIT */
#include "iwarp/config.h"
#include <stdlib.h>
#include <string.h>
#include "os/prim/clock.h"

enum { MILLISECONDS_MAX = 600000 };

static uint64_t ns_of(const char *name, uint64_t unset_ms) {
    const char *text = getenv(name);
    char *end;
    if (!text) return unset_ms * OS_NS_PER_MS;
    unsigned long v = strtoul(text, &end, 10);
    return (*end == 0 && v >= 1 && v <= MILLISECONDS_MAX ? v : unset_ms) * OS_NS_PER_MS;
}

struct iw_config iw_config_get(void) {
    const char *crc = getenv("SOFTND_CRC"), *rev = getenv("SOFTND_MPA_REV");
    return (struct iw_config){ .crc = !crc || strcmp(crc, "off") != 0,
                               .rev = rev && strcmp(rev, "1") == 0 ? 1 : 2,
                               .request_ns = ns_of("SOFTND_MPA_REQUEST_MS", 5000),
                               .answer_ns = ns_of("SOFTND_MPA_ANSWER_MS", 600000),
                               .rnr_ns = ns_of("SOFTND_IWARP_RNR_MS", 3000),
                               .linger_ns = ns_of("SOFTND_IWARP_LINGER_MS", 10000) };
}
