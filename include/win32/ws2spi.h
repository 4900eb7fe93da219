/* SPDX-License-Identifier: MIT
 * ws2spi.h - so that programs written for Windows find it. See softnd_win32.h.
 */
#ifndef SOFTND_WS2SPI_H
#define SOFTND_WS2SPI_H
#include "winsock2.h"
#endif
