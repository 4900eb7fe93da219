/* SPDX-License-Identifier: MIT
 * ntdef.h - so that kernel-mode sources find it. See softnd_km.h.
 */
#ifndef SOFTND_KM_NTDEF_H
#define SOFTND_KM_NTDEF_H
#include "softnd_km.h"
#endif
