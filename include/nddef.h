/* SPDX-License-Identifier: MIT
 * nddef.h - constants and structures of the NetworkDirect SPI version 2.
 * Owns:    every flag, enumerator and layout that crosses the interface; sizes are checked at the
 *          end for 64 and 32 bit builds.
 * Threads: types only.   Errors: see ndstatus.h.
 */
#ifndef NDDEF_H
#define NDDEF_H

#ifdef _WIN32
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#else
#include "win32/softnd_win32.h"
#endif

/* clang-format off */

/* ---- versions: WSAPROTOCOL_INFOW::iVersion and ND2_ADAPTER_INFO::InfoVersion ---- */

#define ND_VERSION_1 0x1
#define ND_VERSION_2 0x20000

/* The version a program is written for. */
#ifndef NDVER
#define NDVER ND_VERSION_2
#endif

/* WSAPROTOCOL_INFOW::dwProviderFlags of a NetworkDirect provider. */
#ifndef PFL_NETWORKDIRECT_PROVIDER
#define PFL_NETWORKDIRECT_PROVIDER 0x00000010
#endif

/* ---- ND2_ADAPTER_INFO::AdapterFlags ---- */

#define ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED            0x00000001 /* last byte arrives last */
#define ND_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED 0x00000004
#define ND_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED            0x00000008 /* CQs advance in parallel */
#define ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED               0x00000100 /* CQ Resize works */
#define ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED    0x00010000 /* may connect to itself */

/* ---- type of IND2CompletionQueue::Notify ---- */

#define ND_CQ_NOTIFY_ERRORS    0 /* only errors of the queue itself */
#define ND_CQ_NOTIFY_ANY       1 /* the next completion */
#define ND_CQ_NOTIFY_SOLICITED 2 /* the next solicited or failed completion */

/* ---- flags of IND2MemoryRegion::Register. Test multi-bit flags for equality. ---- */

#define ND_MR_FLAG_ALLOW_LOCAL_WRITE  0x00000001 /* Receive and Read may write here */
#define ND_MR_FLAG_ALLOW_REMOTE_READ  0x00000002
#define ND_MR_FLAG_ALLOW_REMOTE_WRITE 0x00000005 /* includes ALLOW_LOCAL_WRITE */
#define ND_MR_FLAG_RDMA_READ_SINK     0x00000008 /* may be the target of a Read */
#define ND_MR_FLAG_DO_NOT_SECURE_VM   0x80000000 /* do not guard the range against unmapping */

/* ---- flags of requests ---- */

#define ND_OP_FLAG_SILENT_SUCCESS         0x00000001 /* no result if it succeeds */
#define ND_OP_FLAG_READ_FENCE             0x00000002 /* starts after all earlier Reads */
#define ND_OP_FLAG_SEND_AND_SOLICIT_EVENT 0x00000004 /* Send */
#define ND_OP_FLAG_ALLOW_READ             0x00000008 /* Bind */
#define ND_OP_FLAG_ALLOW_WRITE            0x00000010 /* Bind */
#if NDVER >= ND_VERSION_2
#define ND_OP_FLAG_INLINE                 0x00000020 /* Send, Write: copied during the call */
#endif

/* clang-format on */

/* What an adapter can do. Limits are maxima, not promises: creation may still fail. */
typedef struct _ND2_ADAPTER_INFO {
    ULONG InfoVersion; /* in: version wanted; 1 and ND_VERSION_2 mean this one */
    UINT16 VendorId;
    UINT16 DeviceId;
    UINT64 AdapterId;             /* the id that OpenAdapter takes */
    SIZE_T MaxRegistrationSize;   /* bytes of one memory region */
    SIZE_T MaxWindowSize;         /* not used */
    ULONG MaxInitiatorSge;        /* SGEs of one Send or Write */
    ULONG MaxReceiveSge;          /* SGEs of one Receive */
    ULONG MaxReadSge;             /* SGEs of one Read */
    ULONG MaxTransferLength;      /* bytes of one request */
    ULONG MaxInlineDataSize;      /* bytes of one inline Send or Write */
    ULONG MaxInboundReadLimit;    /* Reads that the peer may have in progress */
    ULONG MaxOutboundReadLimit;   /* Reads of our own in progress */
    ULONG MaxReceiveQueueDepth;   /* outstanding Receives of one QP */
    ULONG MaxInitiatorQueueDepth; /* outstanding other requests of one QP */
    ULONG MaxSharedReceiveQueueDepth;
    ULONG MaxCompletionQueueDepth;
    ULONG InlineRequestThreshold; /* bytes below which inline pays */
    ULONG LargeRequestThreshold;  /* bytes above which Read/Write beat Send */
    ULONG MaxCallerData;          /* private data bytes of Connect */
    ULONG MaxCalleeData;          /* private data bytes of Accept and Reject */
    ULONG AdapterFlags;           /* ND_ADAPTER_FLAG_* */
} ND2_ADAPTER_INFO;

/* The same as a 32-bit program sees it. */
typedef struct _ND2_ADAPTER_INFO32 {
    ULONG InfoVersion;
    UINT16 VendorId;
    UINT16 DeviceId;
    UINT64 AdapterId;
    ULONG MaxRegistrationSize;
    ULONG MaxWindowSize;
    ULONG MaxInitiatorSge;
    ULONG MaxReceiveSge;
    ULONG MaxReadSge;
    ULONG MaxTransferLength;
    ULONG MaxInlineDataSize;
    ULONG MaxInboundReadLimit;
    ULONG MaxOutboundReadLimit;
    ULONG MaxReceiveQueueDepth;
    ULONG MaxInitiatorQueueDepth;
    ULONG MaxSharedReceiveQueueDepth;
    ULONG MaxCompletionQueueDepth;
    ULONG InlineRequestThreshold;
    ULONG LargeRequestThreshold;
    ULONG MaxCallerData;
    ULONG MaxCalleeData;
    ULONG AdapterFlags;
} ND2_ADAPTER_INFO32;

typedef enum _ND2_REQUEST_TYPE {
    Nd2RequestTypeReceive = 0,
    Nd2RequestTypeSend = 1,
    Nd2RequestTypeBind = 2,
    Nd2RequestTypeInvalidate = 3,
    Nd2RequestTypeRead = 4,
    Nd2RequestTypeWrite = 5
} ND2_REQUEST_TYPE;

/* One entry of a completion queue. */
typedef struct _ND2_RESULT {
    HRESULT Status;
    ULONG BytesTransferred;       /* payload bytes; the SPI promises it for Receive only */
    VOID *QueuePairContext;       /* as given to CreateQueuePair */
    VOID *RequestContext;         /* as given with the request */
    ND2_REQUEST_TYPE RequestType; /* right for failed requests too */
} ND2_RESULT;

/* A piece of local memory. */
typedef struct _ND2_SGE {
    VOID *Buffer;
    ULONG BufferLength;       /* bytes */
    UINT32 MemoryRegionToken; /* IND2MemoryRegion::GetLocalToken; ignored with INLINE */
} ND2_SGE;

/* ---- layout checks ---- */

#ifdef __cplusplus
#define ND_ASSERT_SIZE(type, size64, size32)                                                       \
    static_assert(sizeof(type) == (sizeof(void *) == 8 ? (size64) : (size32)), #type)
#else
#define ND_ASSERT_SIZE(type, size64, size32)                                                       \
    _Static_assert(sizeof(type) == (sizeof(void *) == 8 ? (size64) : (size32)), #type)
#endif

ND_ASSERT_SIZE(ND2_ADAPTER_INFO, 96, 88);
ND_ASSERT_SIZE(ND2_ADAPTER_INFO32, 88, 88);
ND_ASSERT_SIZE(ND2_REQUEST_TYPE, 4, 4);
ND_ASSERT_SIZE(ND2_RESULT, 32, 20);
ND_ASSERT_SIZE(ND2_SGE, 16, 12);
ND_ASSERT_SIZE(HRESULT, 4, 4);
ND_ASSERT_SIZE(ULONG, 4, 4);
ND_ASSERT_SIZE(SIZE_T, 8, 4);
ND_ASSERT_SIZE(GUID, 16, 16);
ND_ASSERT_SIZE(OVERLAPPED, 32, 20);
ND_ASSERT_SIZE(SOCKET_ADDRESS, 16, 8);
ND_ASSERT_SIZE(SOCKET_ADDRESS_LIST, 24, 12);

#undef ND_ASSERT_SIZE

#endif
