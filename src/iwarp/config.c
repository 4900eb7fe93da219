/* SPDX-License-Identifier: MIT */
#include "iwarp/config.h"
#include <stdlib.h>
#include <string.h>

struct iw_config iw_config_get(void) {
    const char *crc = getenv("SOFTND_CRC"), *rev = getenv("SOFTND_MPA_REV");
    return (struct iw_config){ .crc = !crc || strcmp(crc, "off") != 0,
                               .rev = rev && strcmp(rev, "1") == 0 ? 1 : 2 };
}
