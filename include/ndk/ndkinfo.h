/* SPDX-License-Identifier: MIT
 * ndkinfo.h - what an NDK adapter can do.
 * Owns:    NDK_VERSION, NDK_ADAPTER_INFO, its flags, NDK_RDMA_TECHNOLOGY.
 * Threads: types only.   Errors: none.
 *
 * Needs the Windows base types. On Linux they come from SoftND's own headers; on Windows a
 * system header (ntddk.h, ndis.h, windows.h) must come first.
 */
#ifndef SOFTND_NDKINFO_H
#define SOFTND_NDKINFO_H
#ifndef _NDKINFO_H_
#define _NDKINFO_H_ /* keeps a header of the same name in the tool chain out */
#endif

#if !defined(_WIN32) || defined(SOFTND_KERNEL_TYPES)
#include "../win32/softnd_wintypes.h"
#endif

/* Version of the interface. The major must match; within a major a higher minor is a superset. */
typedef struct {
    USHORT Major;
    USHORT Minor;
} NDK_VERSION;

/* NDK_ADAPTER_INFO.RdmaTechnology */
typedef enum _NDK_RDMA_TECHNOLOGY {
    NdkUndefined = 0,
    NdkiWarp = 1,
    NdkInfiniBand = 2,
    NdkRoCE = 3,
    NdkRoCEv2 = 4,
    NdkMaxTechnology = 5
} NDK_RDMA_TECHNOLOGY;

/* NDK_ADAPTER_INFO.AdapterFlags */

/* The last byte of a buffer is never written before an earlier one: memory can be polled. */
#define NDK_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED 0x00000001
/* Read sink flags are unnecessary, and logical addresses can be sinks too. */
#define NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED 0x00000002
#define NDK_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED 0x00000004
/* More connections can be faster than one. */
#define NDK_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED 0x00000008
#define NDK_ADAPTER_FLAG_RDMA_READ_LOCAL_INVALIDATE_SUPPORTED 0x00000010
#define NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED 0x00000100
#define NDK_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED 0x00010000

/* Sizes in bytes unless said otherwise. */
typedef struct _NDK_ADAPTER_INFO {
    NDK_VERSION Version;        /* the provider's, highest minor of the negotiated major */
    UINT32 VendorId;            /* an OUI */
    UINT32 DeviceId;            /* the vendor's choice */
    SIZE_T MaxRegistrationSize; /* per registration */
    SIZE_T MaxWindowSize;       /* per memory window; 0: no windows */
    ULONG FRMRPageCount;        /* recommended pages per fast-register region, at least 16 */
    ULONG MaxInitiatorRequestSge;
    ULONG MaxReceiveRequestSge;
    ULONG MaxReadRequestSge;
    ULONG MaxTransferLength; /* all SGEs of a request together */
    ULONG MaxInlineDataSize;
    ULONG MaxInboundReadLimit;
    ULONG MaxOutboundReadLimit;
    ULONG MaxReceiveQueueDepth;
    ULONG MaxInitiatorQueueDepth;
    ULONG MaxSrqDepth; /* 0: no shared receive queues */
    ULONG MaxCqDepth;
    ULONG LargeRequestThreshold;        /* from here on Read and Write beat Send */
    ULONG MaxCallerData;                /* private data with Connect */
    ULONG MaxCalleeData;                /* private data with Accept and Reject */
    ULONG AdapterFlags;                 /* NDK_ADAPTER_FLAG_* */
    NDK_RDMA_TECHNOLOGY RdmaTechnology; /* since 2.0 */
} NDK_ADAPTER_INFO;

#endif
