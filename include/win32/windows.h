/* SPDX-License-Identifier: MIT
 * windows.h - so that programs written for Windows find it. See softnd_win32.h.
 */
#ifndef SOFTND_WINDOWS_H
#define SOFTND_WINDOWS_H
#include "softnd_win32.h"
#endif
