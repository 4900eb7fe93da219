/* SPDX-License-Identifier: MIT
 * config.h - what an administrator may set for iWARP, from the environment, read for each
 *            connection.
 * Owns:    SOFTND_CRC (on, off; default on), SOFTND_MPA_REV (1, 2; default 2),
 *          SOFTND_MPA_REQUEST_MS (1 to 600000; default 5000): how long a start-up frame may take
 *          from its first octet, a request from TCP's accept,
 *          SOFTND_MPA_ANSWER_MS (1 to 600000; default 600000): how long a peer may take to answer
 *          a request, or to begin after the answer,
 *          SOFTND_IWARP_RNR_MS (1 to 600000; default 3000): how long a peer's Send may wait for a
 *          receive,
 *          SOFTND_IWARP_LINGER_MS (1 to 600000; default 10000): how long the peer may take from our
 *          FIN to its own.
 * Threads: any.   Errors: an unknown value counts as the default.
 */
#ifndef SN_IWARP_CONFIG_H
#define SN_IWARP_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

struct iw_config {
    bool crc;    /* ask for CRC; a peer that asks gets it all the same */
    uint8_t rev; /* MPA revision that an initiator starts with */
    uint64_t request_ns, answer_ns, rnr_ns, linger_ns;
};
struct iw_config iw_config_get(void);

#endif
