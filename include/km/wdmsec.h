/* SPDX-License-Identifier: MIT
 * wdmsec.h - so that kernel-mode sources find it; nothing of it is needed here.
 */
#include "softnd_km.h"
