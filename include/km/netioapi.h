/* SPDX-License-Identifier: MIT
 * netioapi.h - interface numbers and names.
 * Owns:    the prototypes. A LUID here is the interface index in NetLuidIndex.
 * Threads: PASSIVE_LEVEL.   Errors: STATUS_NOT_FOUND, STATUS_INVALID_PARAMETER,
 *          STATUS_BUFFER_TOO_SMALL.
 */
#ifndef SOFTND_KM_NETIOAPI_H
#define SOFTND_KM_NETIOAPI_H

#include "softnd_km.h"

#define NDIS_IF_MAX_STRING_SIZE 256
typedef NTSTATUS NETIO_STATUS;
#define NETIOAPI_API NETIO_STATUS
#define NETIOAPI_API_

#ifdef __cplusplus
extern "C" {
#endif

SOFTND_API NETIO_STATUS ConvertInterfaceIndexToLuid(NET_IFINDEX InterfaceIndex,
                                                    PNET_LUID InterfaceLuid);
SOFTND_API NETIO_STATUS ConvertInterfaceLuidToIndex(const NET_LUID *InterfaceLuid,
                                                    PNET_IFINDEX InterfaceIndex);
/* Length in characters, with the terminator. */
SOFTND_API NETIO_STATUS ConvertInterfaceLuidToAlias(const NET_LUID *InterfaceLuid,
                                                    PWSTR InterfaceAlias, SIZE_T Length);

#ifdef __cplusplus
}
#endif

#endif
