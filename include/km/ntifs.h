/* SPDX-License-Identifier: MIT
 * ntifs.h - so that kernel-mode sources find it. See softnd_km.h.
 */
#ifndef SOFTND_KM_NTIFS_H
#define SOFTND_KM_NTIFS_H
#include "softnd_km.h"
#endif
