/* SPDX-License-Identifier: MIT
 * initguid.h - include it before other headers in the files that shall define the GUIDs, not only
 * declare them. See softnd_guiddef.h.
 */
#ifndef INITGUID
#define INITGUID
#endif
#include "softnd_guiddef.h"
