/* SPDX-License-Identifier: MIT
 * ndisndk.h - the NDIS side of an NDK provider: open and close, capabilities, statistics.
 * Owns:    the structures by which a miniport shows its NDK adapter.
 * Threads: PASSIVE_LEVEL.   Errors: NDIS_STATUS_*.
 */
#ifndef SOFTND_KM_NDISNDK_H
#define SOFTND_KM_NDISNDK_H

#include "ndis.h"
#include "../ndk/ndkpi.h"

#define NETWORK_DIRECT_GLOBAL_FLAGS_ALLOW_REMOTE_IP_SUBNET 0x00000001
#define NDIS_NDK_PROVIDER_CHARACTERISTICS_REVISION_1 1
#define NDIS_NDK_CAPABILITIES_REVISION_1 1
#define NDIS_NDK_STATISTICS_INFO_REVISION_1 1
#define NDIS_NDK_CONNECTIONS_REVISION_1 1
#define NDIS_NDK_LOCAL_ENDPOINTS_REVISION_1 1
#define NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES_REVISION_1 1
#define OID_NDK_SET_STATE 0xFC040201
#define OID_NDK_STATISTICS 0xFC040202
#define OID_NDK_CONNECTIONS 0xFC040203
#define OID_NDK_LOCAL_ENDPOINTS 0xFC040204

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _NDIS_OPEN_NDK_ADAPTER_PARAMETERS {
    NDK_VERSION Version;
    ULONG SwitchId;
    ULONG VPortId;
} NDIS_OPEN_NDK_ADAPTER_PARAMETERS, *PNDIS_OPEN_NDK_ADAPTER_PARAMETERS;

typedef NDIS_STATUS(OPEN_NDK_ADAPTER_HANDLER)(NDIS_HANDLE MiniportAdapterContext,
                                              PNDIS_OPEN_NDK_ADAPTER_PARAMETERS Parameters,
                                              NDK_ADAPTER **ppNdkAdapter);
typedef VOID(CLOSE_NDK_ADAPTER_HANDLER)(NDIS_HANDLE MiniportAdapterContext,
                                        NDK_ADAPTER *pNdkAdapter);

typedef struct _NDIS_NDK_PROVIDER_CHARACTERISTICS {
    NDIS_OBJECT_HEADER Header;
    ULONG Flags;
    OPEN_NDK_ADAPTER_HANDLER *OpenNDKAdapterHandler;
    CLOSE_NDK_ADAPTER_HANDLER *CloseNDKAdapterHandler;
} NDIS_NDK_PROVIDER_CHARACTERISTICS, *PNDIS_NDK_PROVIDER_CHARACTERISTICS;

typedef struct _NDIS_NDK_CAPABILITIES {
    NDIS_OBJECT_HEADER Header;
    ULONG Flags;
    ULONG MaxQpCount;
    ULONG MaxCqCount;
    ULONG MaxMrCount;
    ULONG MaxPdCount;
    ULONG MaxInboundReadLimit;
    ULONG MaxOutboundReadLimit;
    ULONG MaxMwCount;
    ULONG MaxSrqCount;
    ULONG64 MissingCounterMask;
    NDK_ADAPTER_INFO *NdkInfo;
} NDIS_NDK_CAPABILITIES, *PNDIS_NDK_CAPABILITIES;

typedef struct _NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES {
    NDIS_OBJECT_HEADER Header;
    BOOLEAN Enabled;
    PNDIS_NDK_CAPABILITIES NdkCapabilities;
} NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES, *PNDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES;

typedef struct _NDIS_NDK_PERFORMANCE_COUNTERS {
    ULONG64 Connect;
    ULONG64 Accept;
    ULONG64 ConnectFailure;
    ULONG64 ConnectionError;
    ULONG64 ActiveConnection;
    ULONG64 Reserved[20];
    ULONG64 CQError;
    ULONG64 RDMAInOctets;
    ULONG64 RDMAOutOctets;
    ULONG64 RDMAInFrames;
    ULONG64 RDMAOutFrames;
} NDIS_NDK_PERFORMANCE_COUNTERS, *PNDIS_NDK_PERFORMANCE_COUNTERS;

typedef struct _NDIS_NDK_STATISTICS_INFO {
    NDIS_OBJECT_HEADER Header;
    ULONG Flags;
    NDIS_NDK_PERFORMANCE_COUNTERS CounterSet;
} NDIS_NDK_STATISTICS_INFO, *PNDIS_NDK_STATISTICS_INFO;

typedef struct _NDIS_NDK_CONNECTION_ENTRY {
    SOCKADDR_INET Local;
    SOCKADDR_INET Remote;
    BOOLEAN UserModeOwner;
    ULONG OwnerPid; /* with UserModeOwner only */
} NDIS_NDK_CONNECTION_ENTRY, *PNDIS_NDK_CONNECTION_ENTRY;

/* Mapped: entries come in pairs, the second being the TCP connection of the first. */
typedef struct _NDIS_NDK_CONNECTIONS {
    NDIS_OBJECT_HEADER Header;
    ULONG Flags;
    ULONG Count;
    BOOLEAN NDConnectionsMappedtoTCPConnections;
    NDIS_NDK_CONNECTION_ENTRY Connections[1];
} NDIS_NDK_CONNECTIONS, *PNDIS_NDK_CONNECTIONS;

typedef struct _NDIS_NDK_LOCAL_ENDPOINT_ENTRY {
    SOCKADDR_INET Local;
    BOOLEAN UserModeOwner;
    BOOLEAN Listener; /* or a shared endpoint */
    ULONG OwnerPid;
} NDIS_NDK_LOCAL_ENDPOINT_ENTRY, *PNDIS_NDK_LOCAL_ENDPOINT_ENTRY;

typedef struct _NDIS_NDK_LOCAL_ENDPOINTS {
    NDIS_OBJECT_HEADER Header;
    ULONG Flags;
    ULONG Count;
    BOOLEAN NDLocalEndpointsMappedtoTCPLocalEndpoints;
    NDIS_NDK_LOCAL_ENDPOINT_ENTRY LocalEndpoints[1];
} NDIS_NDK_LOCAL_ENDPOINTS, *PNDIS_NDK_LOCAL_ENDPOINTS;

#define NDIS_SIZEOF_NDK_CONNECTIONS_REVISION_1(n)                                                  \
    (FIELD_OFFSET(NDIS_NDK_CONNECTIONS, Connections) + (n) * sizeof(NDIS_NDK_CONNECTION_ENTRY))
#define NDIS_SIZEOF_NDK_LOCAL_ENDPOINTS_REVISION_1(n)                                              \
    (FIELD_OFFSET(NDIS_NDK_LOCAL_ENDPOINTS, LocalEndpoints) +                                      \
     (n) * sizeof(NDIS_NDK_LOCAL_ENDPOINT_ENTRY))

/* SoftND's provider as a miniport would register it. The adapter context of its handlers is the
 * interface index, cast to a handle. Never fails; the pointer stays valid. */
SOFTND_API const NDIS_NDK_PROVIDER_CHARACTERISTICS *SoftNdkGetProviderCharacteristics(VOID);

/* What the miniport reports of an interface when it is initialised: fills all three, which point to
 * each other. Counters that are not kept are in MissingCounterMask. */
SOFTND_API VOID SoftNdkGetAttributes(NET_IFINDEX IfIndex,
                                     NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES *Attributes,
                                     NDIS_NDK_CAPABILITIES *Capabilities, NDK_ADAPTER_INFO *Info);

/* The miniport's OID handler: OID_NDK_STATISTICS, OID_NDK_CONNECTIONS, OID_NDK_LOCAL_ENDPOINTS, of
 * this process. The buffer's header has type NDIS_OBJECT_TYPE_DEFAULT and revision 1, else
 * STATUS_INVALID_DEVICE_REQUEST. NDIS_STATUS_BUFFER_TOO_SHORT: *BytesNeeded says how much.
 * NDIS_STATUS_NOT_SUPPORTED: another OID. */
SOFTND_API NDIS_STATUS SoftNdkQueryOid(NET_IFINDEX IfIndex, ULONG Oid, PVOID Buffer, ULONG Length,
                                       PULONG BytesWritten, PULONG BytesNeeded);
/* OID_NDK_SET_STATE, a BOOLEAN: off, opening an adapter answers NDIS_STATUS_ADAPTER_NOT_READY;
 * those that are open stay. NDIS_STATUS_FAILURE: the adapter is disabled by its option. */
SOFTND_API NDIS_STATUS SoftNdkSetOid(NET_IFINDEX IfIndex, ULONG Oid, PVOID Buffer, ULONG Length,
                                     PULONG BytesRead, PULONG BytesNeeded);

#ifdef __cplusplus
}
#endif

#endif
