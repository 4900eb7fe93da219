/* SPDX-License-Identifier: MIT
 * wdm.h - so that kernel-mode sources find it. See softnd_km.h.
 */
#ifndef SOFTND_KM_WDM_H
#define SOFTND_KM_WDM_H
#include "softnd_km.h"
#endif
