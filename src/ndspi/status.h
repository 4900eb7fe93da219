/* SPDX-License-Identifier: MIT
 * status.h - from the internal status to the codes that the SPI promises.
 * Owns:    every HRESULT that a method returns or a result carries, and the positions of the
 *          ND_INVALID_PARAMETER_n family.
 * Threads: pure functions.   Errors: these are them.
 */
#ifndef SN_NDSPI_STATUS_H
#define SN_NDSPI_STATUS_H

#include "base/status.h"
#include "softnd.h"

/* What a method returns, or an overlapped request ends with. */
HRESULT ndspi_status(sn_status st);

/* The same for requests on a queue (Send .. Write, Bind, Invalidate), where a busy window is a
 * request that makes no sense, and where out of memory is a lack of resources. */
HRESULT ndspi_status_post(sn_status st);

/* ND2_RESULT::Status: only codes of the SPI's table for completions, and SOFTND_DATA_ERROR for the
 * sender of a message that its peer had no room for. */
HRESULT ndspi_status_completion(sn_status st);

/* ND_INVALID_PARAMETER_n; n is the position in the C++ parameter list, 1 to 10. */
static inline HRESULT ndspi_bad_param(unsigned n) {
    return (HRESULT)((ULONG)ND_INVALID_PARAMETER_1 + n - 1);
}

#endif
