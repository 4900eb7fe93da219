/* SPDX-License-Identifier: MIT
 * crc32c_impl.h - between crc32c.c and the files for one CPU; nobody else includes it.
 * Owns:    nothing.   Threads: pure functions.   Errors: none.
 */
#ifndef SN_IWARP_CRC32C_IMPL_H
#define SN_IWARP_CRC32C_IMPL_H

#include "iwarp/crc32c.h"

/* The idx-th x86 implementation that this CPU can run, the fastest first; NULL past the last, and
 * always on other CPUs. */
const struct sn_crc32c_impl *sn_crc32c_x86_at(size_t idx);

#endif
