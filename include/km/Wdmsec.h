/* SPDX-License-Identifier: MIT
 * Wdmsec.h - so that kernel-mode sources find it; nothing of it is needed here.
 */
#include "softnd_km.h"
