/* SPDX-License-Identifier: MIT
 * ws2tcpip.h - so that programs written for Windows find it. See softnd_win32.h.
 */
#ifndef SOFTND_WS2TCPIP_H
#define SOFTND_WS2TCPIP_H

#include <netdb.h>
#include "winsock2.h"

#endif
