/* SPDX-License-Identifier: MIT
 * ntddk.h - so that kernel-mode sources find it. See softnd_km.h.
 */
#ifndef SOFTND_KM_NTDDK_H
#define SOFTND_KM_NTDDK_H
#include "softnd_km.h"
#endif
