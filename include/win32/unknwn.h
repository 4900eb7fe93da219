/* SPDX-License-Identifier: MIT
 * unknwn.h - so that programs written for Windows find it. See softnd_wintypes.h.
 */
#ifndef SOFTND_UNKNWN_H
#define SOFTND_UNKNWN_H
#include "softnd_win32.h"
#endif
