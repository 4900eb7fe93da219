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

/* SoftND's provider as a miniport would register it. The adapter context of its handlers is the
 * interface index, cast to a handle. Never fails; the pointer stays valid. */
SOFTND_API const NDIS_NDK_PROVIDER_CHARACTERISTICS *SoftNdkGetProviderCharacteristics(VOID);

#ifdef __cplusplus
}
#endif

#endif
