/* SPDX-License-Identifier: MIT
 * ndis.h - what NDK consumers and the provider need of NDIS: headers, handles, interface names.
 * Owns:    NDIS_OBJECT_HEADER and the NDK object type numbers; the rest is in ndisndk.h.
 * Threads: types only.   Errors: NDIS_STATUS_*.
 */
#ifndef SOFTND_KM_NDIS_H
#define SOFTND_KM_NDIS_H

#include "softnd_km.h"
#include "netioapi.h"

typedef struct _NDIS_OBJECT_HEADER {
    UCHAR Type;
    UCHAR Revision;
    USHORT Size;
} NDIS_OBJECT_HEADER, *PNDIS_OBJECT_HEADER;

#define NDIS_OBJECT_TYPE_DEFAULT 0x80
#define NDIS_OBJECT_TYPE_NDK_PROVIDER_CHARACTERISTICS 0xB2
#define NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_NDK_ATTRIBUTES 0xB3

#endif
