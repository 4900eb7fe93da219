/* SPDX-License-Identifier: MIT
 * ndkpi.h - NDKPI, the kernel interface of NetworkDirect, versions 1.1 to 2.1.
 * Owns:    the ten object types, their dispatch tables, the function types, flags and results.
 *
 * Objects are reached through their Dispatch table only; the first argument is the object.
 *
 * How a function completes is said at each type by a letter:
 *   A  asynchronous request: STATUS_PENDING means that RequestCompletion follows exactly once,
 *      possibly before the call returns; any other value is final and nothing follows.
 *   C  create: STATUS_SUCCESS gives the object in the last argument; STATUS_PENDING means that
 *      CreateCompletion follows with the object and the last argument is not written.
 *   W  work request: STATUS_SUCCESS means posted, one result follows in the completion queue
 *      (none for a success with SILENT_SUCCESS); a failure means that nothing was posted.
 *   S  synchronous.
 * Threads: functions can be called, and callbacks come, at IRQL <= DISPATCH_LEVEL, except
 *          NdkQueryAdapterInfo: PASSIVE_LEVEL. Posting to one queue, and taking results from or
 *          arming one completion queue, is the caller's to serialise.
 * Errors:  NTSTATUS; docs/ndk.md lists them by function.
 *
 * On Windows include ntddk.h or wdm.h first (or windows.h and ntdef.h, for the types alone).
 */
#ifndef SOFTND_NDKPI_H
#define SOFTND_NDKPI_H

#ifdef _WIN32
typedef struct sockaddr SOCKADDR; /* <ws2def.h> or <winsock2.h> completes it */
typedef struct _MDL MDL;          /* <ntddk.h> or <wdm.h> does */
#else
#include "../km/softnd_kmtypes.h"
#endif
#include "ndkinfo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- objects ---- */

typedef enum _NDK_OBJECT_TYPE {
    NdkObjectTypeUndefined = 0,
    NdkObjectTypeAdapter = 1,
    NdkObjectTypeQp = 2,
    NdkObjectTypeCq = 3,
    NdkObjectTypeMr = 4,
    NdkObjectTypeMw = 5,
    NdkObjectTypePd = 6,
    NdkObjectTypeSharedEndpoint = 7,
    NdkObjectTypeConnector = 8,
    NdkObjectTypeListener = 9,
    NdkObjectTypeSrq = 10,
    NdkObjectTypeMax = 11
} NDK_OBJECT_TYPE;

/* Zero when the provider makes the object, the system's afterwards. */
typedef struct _NDK_OBJECT_HEADER_RESERVED_BLOCK {
    PVOID rf[4];
} NDK_OBJECT_HEADER_RESERVED_BLOCK;

typedef struct _NDK_OBJECT_HEADER {
    NDK_VERSION Version;
    NDK_OBJECT_TYPE ObjectType;
    NDK_OBJECT_HEADER_RESERVED_BLOCK NdkReserved;
} NDK_OBJECT_HEADER;

typedef struct _NDK_EXTENSION_INTERFACE {
    CONST VOID *Dispatch;
} NDK_EXTENSION_INTERFACE;

/* An object is its header and its table; a provider keeps more behind it. */
#define SOFTND_NDK_OBJECT(name)                                                                    \
    typedef struct _##name##_DISPATCH name##_DISPATCH;                                             \
    typedef struct _##name {                                                                       \
        NDK_OBJECT_HEADER Header;                                                                  \
        CONST name##_DISPATCH *Dispatch;                                                           \
    } name;
SOFTND_NDK_OBJECT(NDK_ADAPTER)
SOFTND_NDK_OBJECT(NDK_CQ)
SOFTND_NDK_OBJECT(NDK_PD)
SOFTND_NDK_OBJECT(NDK_MR)
SOFTND_NDK_OBJECT(NDK_MW)
SOFTND_NDK_OBJECT(NDK_SRQ)
SOFTND_NDK_OBJECT(NDK_QP)
SOFTND_NDK_OBJECT(NDK_CONNECTOR)
SOFTND_NDK_OBJECT(NDK_LISTENER)
SOFTND_NDK_OBJECT(NDK_SHARED_ENDPOINT)
#undef SOFTND_NDK_OBJECT

/* ---- memory ---- */

/* What the adapter calls a piece of memory; never a virtual and never a physical address. */
typedef PHYSICAL_ADDRESS NDK_LOGICAL_ADDRESS;

/* Result of NdkBuildLAM; AdapterPageCount elements follow each other in AdapterPageArray. */
typedef struct _NDK_LOGICAL_ADDRESS_MAPPING {
    PVOID AdapterContext; /* the provider's */
    ULONG AdapterPageCount;
    NDK_LOGICAL_ADDRESS AdapterPageArray[1];
} NDK_LOGICAL_ADDRESS_MAPPING;

/* VirtualAddress with a region's local token, LogicalAddress with the privileged token. */
typedef struct _NDK_SGE {
#ifdef __GNUC__
    __extension__
#endif
        union {
        PVOID VirtualAddress;
        NDK_LOGICAL_ADDRESS LogicalAddress;
    };
    ULONG Length;
    UINT32 MemoryRegionToken;
} NDK_SGE;

/* NdkRegisterMr; local read is always allowed. ALLOW_REMOTE_WRITE has two bits. */
#define NDK_MR_FLAG_ALLOW_LOCAL_READ 0x00000000
#define NDK_MR_FLAG_ALLOW_LOCAL_WRITE 0x00000001
#define NDK_MR_FLAG_ALLOW_REMOTE_READ 0x00000002
#define NDK_MR_FLAG_ALLOW_REMOTE_WRITE 0x00000005
#define NDK_MR_FLAG_RDMA_READ_SINK 0x00000008

/* ---- work requests ---- */

#define NDK_OP_FLAG_SILENT_SUCCESS 0x00000001
#define NDK_OP_FLAG_READ_FENCE 0x00000002
#define NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT 0x00000004
#define NDK_OP_FLAG_ALLOW_REMOTE_READ 0x00000008
#define NDK_OP_FLAG_ALLOW_LOCAL_WRITE 0x00000010
#define NDK_OP_FLAG_ALLOW_REMOTE_WRITE 0x00000030 /* two bits: it includes ALLOW_LOCAL_WRITE */
#define NDK_OP_FLAG_INLINE 0x00000040
#define NDK_OP_FLAG_RDMA_READ_SINK 0x00000080
#define NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE 0x00000100 /* 1.2 */
#define NDK_OP_FLAG_DEFER 0x00000200                      /* 1.2 */

/* ---- completion queues ---- */

#define NDK_CQ_NOTIFY_ERRORS 0
#define NDK_CQ_NOTIFY_ANY 1
#define NDK_CQ_NOTIFY_SOLICITED 2

/* NDK_RESULT_EX.Type, since 1.2. One bit each, so that Type & NdkOperationTypeReceive holds for
 * both kinds of receive. A SendAndInvalidate completes as a Send. */
typedef enum _NDK_OPERATION_TYPE {
    NdkOperationTypeReceive = 1,
    NdkOperationTypeReceiveAndInvalidate = 32769,
    NdkOperationTypeSend = 2,
    NdkOperationTypeFastRegister = 4,
    NdkOperationTypeBind = 8,
    NdkOperationTypeInvalidate = 16,
    NdkOperationTypeRead = 32,
    NdkOperationTypeWrite = 64
} NDK_OPERATION_TYPE;

/* BytesTransferred is defined for successful receives only. */
typedef struct _NDK_RESULT {
    NTSTATUS Status;
    ULONG BytesTransferred;
    PVOID QPContext;
    PVOID RequestContext;
} NDK_RESULT;

/* Since 1.2. ProviderErrorCode (2.1) is 0 with success. TypeSpecificCompletionOutput: the token
 * that was invalidated, for NdkOperationTypeReceiveAndInvalidate only. */
typedef struct _NDK_RESULT_EX {
    NTSTATUS Status;
    ULONG BytesTransferred;
    PVOID QPContext;
    PVOID RequestContext;
    NDK_OPERATION_TYPE Type;
    ULONG ProviderErrorCode;
    ULONG_PTR TypeSpecificCompletionOutput;
} NDK_RESULT_EX;

/* ---- callbacks of the consumer, called at IRQL <= DISPATCH_LEVEL ---- */

typedef VOID NDK_FN_CLOSE_COMPLETION(PVOID Context);
typedef VOID NDK_FN_REQUEST_COMPLETION(PVOID Context, NTSTATUS Status);
/* pNdkObject is NULL unless Status is a success. */
typedef VOID NDK_FN_CREATE_COMPLETION(PVOID Context, NTSTATUS Status,
                                      NDK_OBJECT_HEADER *pNdkObject);
/* One call per arm at most. STATUS_SUCCESS; STATUS_BUFFER_OVERFLOW (overrun) and
 * STATUS_INTERNAL_ERROR: the queue and its queue pairs are unusable. */
typedef VOID NDK_FN_CQ_NOTIFICATION_CALLBACK(PVOID CqNotificationContext, NTSTATUS CqStatus);
typedef VOID NDK_FN_SRQ_NOTIFICATION_CALLBACK(PVOID SrqNotificationContext, NTSTATUS SrqStatus);
/* The connector is the consumer's from here: to be accepted, rejected or closed. */
typedef VOID NDK_FN_CONNECT_EVENT_CALLBACK(PVOID ConnectEventContext, NDK_CONNECTOR *pNdkConnector);
/* Once, when the peer disconnects or the connection is lost. */
typedef VOID NDK_FN_DISCONNECT_EVENT_CALLBACK(PVOID DisconnectEventContext);
typedef VOID NDK_FN_DISCONNECT_EVENT_CALLBACK_EX(PVOID DisconnectEventContext,
                                                 ULONG ProviderDisconnectReason);

/* ---- every object ---- */

/* STATUS_SUCCESS: closed. STATUS_PENDING: CloseCompletion follows, the last callback of the
 * object. Waits for pending requests, running callbacks and dependent objects. */
typedef NTSTATUS NDK_FN_CLOSE_OBJECT(NDK_OBJECT_HEADER *pNdkObject,
                                     NDK_FN_CLOSE_COMPLETION *CloseCompletion,
                                     PVOID RequestContext);
/* S. No extension is known: STATUS_NOT_SUPPORTED. */
typedef NTSTATUS NDK_FN_QUERY_EXTENSION_INTERFACE(NDK_OBJECT_HEADER *pNdkObject,
                                                  GUID *ExtensionInterfaceID,
                                                  NDK_VERSION ExtensionInterfaceVersion,
                                                  NDK_EXTENSION_INTERFACE *pExtensionInterface);

/* ---- NDK_ADAPTER ---- */

/* S, PASSIVE_LEVEL. *pBufferSize in: bytes at pInfo; out: bytes written, or needed with
 * STATUS_BUFFER_TOO_SMALL. */
typedef NTSTATUS NDK_FN_QUERY_ADAPTER_INFO(NDK_ADAPTER *pNdkAdapter, NDK_ADAPTER_INFO *pInfo,
                                           ULONG *pBufferSize);
/* No table has a place for this one. */
typedef NTSTATUS NDK_FN_QUERY_ADAPTER_INFO_EX(NDK_ADAPTER *pNdkAdapter, NDK_VERSION Version,
                                              NDK_ADAPTER_INFO *pInfo, ULONG *pBufferSize);
/* C. Affinity is a hint. */
typedef NTSTATUS NDK_FN_CREATE_CQ(NDK_ADAPTER *pNdkAdapter, ULONG CqDepth,
                                  NDK_FN_CQ_NOTIFICATION_CALLBACK *CqNotification,
                                  PVOID CqNotificationContext, GROUP_AFFINITY *Affinity,
                                  NDK_FN_CREATE_COMPLETION *CreateCompletion, PVOID RequestContext,
                                  NDK_CQ **ppNdkCq);
/* C */
typedef NTSTATUS NDK_FN_CREATE_PD(NDK_ADAPTER *pNdkAdapter,
                                  NDK_FN_CREATE_COMPLETION *CreateCompletion, PVOID RequestContext,
                                  NDK_PD **ppNdkPd);
/* C. Listens on, or connects from, nothing yet. */
typedef NTSTATUS NDK_FN_CREATE_CONNECTOR(NDK_ADAPTER *pNdkAdapter,
                                         NDK_FN_CREATE_COMPLETION *CreateCompletion,
                                         PVOID RequestContext, NDK_CONNECTOR **ppNdkConnector);
/* C */
typedef NTSTATUS NDK_FN_CREATE_LISTENER(NDK_ADAPTER *pNdkAdapter,
                                        NDK_FN_CONNECT_EVENT_CALLBACK *ConnectEvent,
                                        PVOID ConnectEventContext,
                                        NDK_FN_CREATE_COMPLETION *CreateCompletion,
                                        PVOID RequestContext, NDK_LISTENER **ppNdkListener);
/* C. A local address for many outgoing connections. */
typedef NTSTATUS NDK_FN_CREATE_SHARED_ENDPOINT(NDK_ADAPTER *pNdkAdapter, CONST SOCKADDR *pAddress,
                                               ULONG AddressLength,
                                               NDK_FN_CREATE_COMPLETION *CreateCompletion,
                                               PVOID RequestContext,
                                               NDK_SHARED_ENDPOINT **ppNdkSharedEndpoint);
/* A. Maps the first Length bytes of the chain, which must be virtually contiguous and locked.
 * *pLAMSize in: bytes at pNdkLAM; out: bytes needed. *pFBO: offset of the first byte in the first
 * page. RequestCompletion may be NULL; the call is then synchronous. */
typedef NTSTATUS NDK_FN_BUILD_LAM(NDK_ADAPTER *pNdkAdapter, MDL *Mdl, SIZE_T Length,
                                  NDK_FN_REQUEST_COMPLETION *RequestCompletion,
                                  PVOID RequestContext, NDK_LOGICAL_ADDRESS_MAPPING *pNdkLAM,
                                  ULONG *pLAMSize, ULONG *pFBO);
/* After all work requests that use the mapping completed. */
typedef VOID NDK_FN_RELEASE_LAM(NDK_ADAPTER *pNdkAdapter, NDK_LOGICAL_ADDRESS_MAPPING *pNdkLAM);

struct _NDK_ADAPTER_DISPATCH {
    NDK_FN_QUERY_EXTENSION_INTERFACE *NdkQueryExtension;
    NDK_FN_QUERY_ADAPTER_INFO *NdkQueryAdapterInfo;
    NDK_FN_CREATE_CQ *NdkCreateCq;
    NDK_FN_CREATE_PD *NdkCreatePd;
    NDK_FN_CREATE_SHARED_ENDPOINT *NdkCreateSharedEndpoint;
    NDK_FN_CREATE_CONNECTOR *NdkCreateConnector;
    NDK_FN_CREATE_LISTENER *NdkCreateListener;
    NDK_FN_BUILD_LAM *NdkBuildLAM;
    NDK_FN_RELEASE_LAM *NdkReleaseLAM;
};

/* ---- NDK_CQ ---- */

/* A */
typedef NTSTATUS NDK_FN_RESIZE_CQ(NDK_CQ *pNdkCq, ULONG CqDepth,
                                  NDK_FN_REQUEST_COMPLETION *RequestCompletion,
                                  PVOID RequestContext);
/* One callback when the next completion of this kind comes; a second arm before that merges. */
typedef VOID NDK_FN_ARM_CQ(NDK_CQ *pNdkCq, ULONG Type);
/* Both return the number of results taken; 0: the queue is empty. */
typedef ULONG NDK_FN_GET_CQ_RESULTS(NDK_CQ *pNdkCq, NDK_RESULT Results[], ULONG nResults);
typedef ULONG NDK_FN_GET_CQ_RESULTS_EX(NDK_CQ *pNdkCq, NDK_RESULT_EX Results[], ULONG nResults);
/* S. Interval in microseconds. */
typedef NTSTATUS NDK_FN_CONTROL_CQ_INTERRUPT_MODERATION(NDK_CQ *pNdkCq, ULONG ModerationInterval,
                                                        ULONG ModerationCount);

struct _NDK_CQ_DISPATCH {
    NDK_FN_CLOSE_OBJECT *NdkCloseCq;
    NDK_FN_QUERY_EXTENSION_INTERFACE *NdkQueryExtension;
    NDK_FN_RESIZE_CQ *NdkResizeCq;
    NDK_FN_ARM_CQ *NdkArmCq;
    NDK_FN_GET_CQ_RESULTS *NdkGetCqResults;
    NDK_FN_CONTROL_CQ_INTERRUPT_MODERATION *NdkControlCqInterruptModeration;
    NDK_FN_GET_CQ_RESULTS_EX *NdkGetCqResultsEx; /* 1.2 */
};

/* ---- NDK_PD ---- */

/* C. FastRegister TRUE: for NdkInitializeFastRegisterMr and NdkFastRegister only; FALSE: for
 * NdkRegisterMr only. */
typedef NTSTATUS NDK_FN_CREATE_MR(NDK_PD *pNdkPd, BOOLEAN FastRegister,
                                  NDK_FN_CREATE_COMPLETION *CreateCompletion, PVOID RequestContext,
                                  NDK_MR **ppNdkMr);
/* C */
typedef NTSTATUS NDK_FN_CREATE_MW(NDK_PD *pNdkPd, NDK_FN_CREATE_COMPLETION *CreateCompletion,
                                  PVOID RequestContext, NDK_MW **ppNdkMw);
/* C */
typedef NTSTATUS NDK_FN_CREATE_SRQ(NDK_PD *pNdkPd, ULONG SrqDepth, ULONG MaxReceiveRequestSge,
                                   ULONG NotifyThreshold,
                                   NDK_FN_SRQ_NOTIFICATION_CALLBACK *SrqNotification,
                                   PVOID SrqNotificationContext, GROUP_AFFINITY *Affinity,
                                   NDK_FN_CREATE_COMPLETION *CreateCompletion, PVOID RequestContext,
                                   NDK_SRQ **ppNdkSrq);
/* C. Both completion queues may be the same. */
typedef NTSTATUS NDK_FN_CREATE_QP(NDK_PD *pNdkPd, NDK_CQ *pReceiveCq, NDK_CQ *pInitiatorCq,
                                  PVOID QPContext, ULONG ReceiveQueueDepth,
                                  ULONG InitiatorQueueDepth, ULONG MaxReceiveRequestSge,
                                  ULONG MaxInitiatorRequestSge, ULONG InlineDataSize,
                                  NDK_FN_CREATE_COMPLETION *CreateCompletion, PVOID RequestContext,
                                  NDK_QP **ppNdkQp);
/* C */
typedef NTSTATUS NDK_FN_CREATE_QP_WITH_SRQ(NDK_PD *pNdkPd, NDK_CQ *pReceiveCq, NDK_CQ *pInitiatorCq,
                                           NDK_SRQ *pSrq, PVOID QPContext,
                                           ULONG InitiatorQueueDepth, ULONG MaxInitiatorRequestSge,
                                           ULONG InlineDataSize,
                                           NDK_FN_CREATE_COMPLETION *CreateCompletion,
                                           PVOID RequestContext, NDK_QP **ppNdkQp);
/* Grants local access to logical addresses; never to be given to a peer. */
typedef VOID NDK_FN_GET_PRIVILEGED_MEMORY_REGION_TOKEN(NDK_PD *pNdkPd, UINT32 *pToken);

struct _NDK_PD_DISPATCH {
    NDK_FN_CLOSE_OBJECT *NdkClosePd;
    NDK_FN_QUERY_EXTENSION_INTERFACE *NdkQueryExtension;
    NDK_FN_CREATE_MR *NdkCreateMr;
    NDK_FN_CREATE_MW *NdkCreateMw;
    NDK_FN_CREATE_SRQ *NdkCreateSrq;
    NDK_FN_CREATE_QP *NdkCreateQp;
    NDK_FN_CREATE_QP_WITH_SRQ *NdkCreateQpWithSrq;
    NDK_FN_GET_PRIVILEGED_MEMORY_REGION_TOKEN *NdkGetPrivilegedMemoryRegionToken;
};

/* ---- NDK_MR and NDK_MW ---- */

/* A. Flags: NDK_MR_FLAG_*. The region is addressed by the first MDL's virtual address. */
typedef NTSTATUS NDK_FN_REGISTER_MR(NDK_MR *pNdkMr, MDL *Mdl, SIZE_T Length, ULONG Flags,
                                    NDK_FN_REQUEST_COMPLETION *RequestCompletion,
                                    PVOID RequestContext);
/* A */
typedef NTSTATUS NDK_FN_DEREGISTER_MR(NDK_MR *pNdkMr, NDK_FN_REQUEST_COMPLETION *RequestCompletion,
                                      PVOID RequestContext);
/* A. AdapterPageCount: the most pages of any later registration. */
typedef NTSTATUS NDK_FN_INITIALIZE_FAST_REGISTER_MR(NDK_MR *pNdkMr, ULONG AdapterPageCount,
                                                    BOOLEAN RemoteAccess,
                                                    NDK_FN_REQUEST_COMPLETION *RequestCompletion,
                                                    PVOID RequestContext);
typedef UINT32 NDK_FN_GET_REMOTE_TOKEN_FROM_MR(NDK_MR *pNdkMr);
typedef UINT32 NDK_FN_GET_LOCAL_TOKEN_FROM_MR(NDK_MR *pNdkMr);
typedef UINT32 NDK_FN_GET_REMOTE_TOKEN_FROM_MW(NDK_MW *pNdkMw);

struct _NDK_MR_DISPATCH {
    NDK_FN_CLOSE_OBJECT *NdkCloseMr;
    NDK_FN_QUERY_EXTENSION_INTERFACE *NdkQueryExtension;
    NDK_FN_REGISTER_MR *NdkRegisterMr;
    NDK_FN_DEREGISTER_MR *NdkDeregisterMr;
    NDK_FN_INITIALIZE_FAST_REGISTER_MR *NdkInitializeFastRegisterMr;
    NDK_FN_GET_REMOTE_TOKEN_FROM_MR *NdkGetRemoteTokenFromMr;
    NDK_FN_GET_LOCAL_TOKEN_FROM_MR *NdkGetLocalTokenFromMr;
};

struct _NDK_MW_DISPATCH {
    NDK_FN_CLOSE_OBJECT *NdkCloseMw;
    NDK_FN_QUERY_EXTENSION_INTERFACE *NdkQueryExtension;
    NDK_FN_GET_REMOTE_TOKEN_FROM_MW *NdkGetRemoteTokenFromMw;
};

/* ---- NDK_SRQ ---- */

/* A. 0 keeps the depth; 0 keeps the threshold and its arm state. */
typedef NTSTATUS NDK_FN_MODIFY_SRQ(NDK_SRQ *pNdkSrq, ULONG SrqDepth, ULONG NotifyThreshold,
                                   NDK_FN_REQUEST_COMPLETION *RequestCompletion,
                                   PVOID RequestContext);
/* W, the result goes to the receive queue of the queue pair that used it. */
typedef NTSTATUS NDK_FN_SRQ_RECEIVE(NDK_SRQ *pNdkSrq, PVOID RequestContext, CONST NDK_SGE *pSgl,
                                    ULONG nSge);

struct _NDK_SRQ_DISPATCH {
    NDK_FN_CLOSE_OBJECT *NdkCloseSrq;
    NDK_FN_QUERY_EXTENSION_INTERFACE *NdkQueryExtension;
    NDK_FN_MODIFY_SRQ *NdkModifySrq;
    NDK_FN_SRQ_RECEIVE *NdkSrqReceive;
};

/* ---- NDK_QP ---- */

/* Everything outstanding on both queues completes with STATUS_CANCELLED. */
typedef VOID NDK_FN_FLUSH(NDK_QP *pNdkQp);
/* W, all that follow. Flags: NDK_OP_FLAG_*. The SGE array is used during the call only. */
typedef NTSTATUS NDK_FN_SEND(NDK_QP *pNdkQp, PVOID RequestContext, CONST NDK_SGE *pSgl, ULONG nSge,
                             ULONG Flags);
typedef NTSTATUS NDK_FN_RECEIVE(NDK_QP *pNdkQp, PVOID RequestContext, CONST NDK_SGE *pSgl,
                                ULONG nSge);
typedef NTSTATUS NDK_FN_BIND(NDK_QP *pNdkQp, PVOID RequestContext, NDK_MR *pMr, NDK_MW *pMw,
                             PVOID VirtualAddress, SIZE_T Length, ULONG Flags);
/* The pages form one region that starts FBO bytes into the first, is Length bytes long, and is
 * addressed from BaseVirtualAddress on. The remote token is readable when this returns. */
typedef NTSTATUS NDK_FN_FAST_REGISTER(NDK_QP *pNdkQp, PVOID RequestContext, NDK_MR *pMr,
                                      ULONG AdapterPageCount,
                                      CONST NDK_LOGICAL_ADDRESS *AdapterPageArray, ULONG FBO,
                                      SIZE_T Length, PVOID BaseVirtualAddress, ULONG Flags);
/* A window, or a region that NdkFastRegister registered. */
typedef NTSTATUS NDK_FN_INVALIDATE(NDK_QP *pNdkQp, PVOID RequestContext,
                                   NDK_OBJECT_HEADER *pNdkMrOrMw, ULONG Flags);
typedef NTSTATUS NDK_FN_READ(NDK_QP *pNdkQp, PVOID RequestContext, CONST NDK_SGE *pSgl, ULONG nSge,
                             UINT64 RemoteAddress, UINT32 RemoteToken, ULONG Flags);
typedef NTSTATUS NDK_FN_WRITE(NDK_QP *pNdkQp, PVOID RequestContext, CONST NDK_SGE *pSgl, ULONG nSge,
                              UINT64 RemoteAddress, UINT32 RemoteToken, ULONG Flags);
/* 1.2. The peer's token is invalid before its receive completes. */
typedef NTSTATUS NDK_FN_SEND_AND_INVALIDATE(NDK_QP *pNdkQp, PVOID RequestContext,
                                            CONST NDK_SGE *pSgl, ULONG nSge, ULONG Flags,
                                            UINT32 RemoteToken);

struct _NDK_QP_DISPATCH {
    NDK_FN_CLOSE_OBJECT *NdkCloseQp;
    NDK_FN_QUERY_EXTENSION_INTERFACE *NdkQueryExtension;
    NDK_FN_FLUSH *NdkFlush;
    NDK_FN_SEND *NdkSend;
    NDK_FN_RECEIVE *NdkReceive;
    NDK_FN_BIND *NdkBind;
    NDK_FN_FAST_REGISTER *NdkFastRegister;
    NDK_FN_INVALIDATE *NdkInvalidate;
    NDK_FN_READ *NdkRead;
    NDK_FN_WRITE *NdkWrite;
    NDK_FN_SEND_AND_INVALIDATE *NdkSendAndInvalidate; /* 1.2 */
};

/* ---- NDK_CONNECTOR ---- */

/* A. Success: the peer accepted; NdkCompleteConnect makes the connection usable. */
typedef NTSTATUS NDK_FN_CONNECT(NDK_CONNECTOR *pNdkConnector, NDK_QP *pNdkQp,
                                CONST SOCKADDR *pSrcAddress, ULONG SrcAddressLength,
                                CONST SOCKADDR *pDestAddress, ULONG DestAddressLength,
                                ULONG InboundReadLimit, ULONG OutboundReadLimit,
                                CONST VOID *pPrivateData, ULONG PrivateDataLength,
                                NDK_FN_REQUEST_COMPLETION *RequestCompletion, PVOID RequestContext);
/* A */
typedef NTSTATUS NDK_FN_CONNECT_WITH_SHARED_ENDPOINT(
    NDK_CONNECTOR *pNdkConnector, NDK_QP *pNdkQp, NDK_SHARED_ENDPOINT *pNdkSharedEndpoint,
    CONST SOCKADDR *pDestAddress, ULONG DestAddressLength, ULONG InboundReadLimit,
    ULONG OutboundReadLimit, CONST VOID *pPrivateData, ULONG PrivateDataLength,
    NDK_FN_REQUEST_COMPLETION *RequestCompletion, PVOID RequestContext);
/* A. DisconnectEvent may be NULL. */
typedef NTSTATUS NDK_FN_COMPLETE_CONNECT(NDK_CONNECTOR *pNdkConnector,
                                         NDK_FN_DISCONNECT_EVENT_CALLBACK *DisconnectEvent,
                                         PVOID DisconnectEventContext,
                                         NDK_FN_REQUEST_COMPLETION *RequestCompletion,
                                         PVOID RequestContext);
/* A, 2.1 */
typedef NTSTATUS NDK_FN_COMPLETE_CONNECT_EX(NDK_CONNECTOR *pNdkConnector,
                                            NDK_FN_DISCONNECT_EVENT_CALLBACK_EX *DisconnectEvent,
                                            PVOID DisconnectEventContext,
                                            NDK_FN_REQUEST_COMPLETION *RequestCompletion,
                                            PVOID RequestContext);
/* A */
typedef NTSTATUS NDK_FN_ACCEPT(NDK_CONNECTOR *pNdkConnector, NDK_QP *pNdkQp, ULONG InboundReadLimit,
                               ULONG OutboundReadLimit, CONST VOID *pPrivateData,
                               ULONG PrivateDataLength,
                               NDK_FN_DISCONNECT_EVENT_CALLBACK *DisconnectEvent,
                               PVOID DisconnectEventContext,
                               NDK_FN_REQUEST_COMPLETION *RequestCompletion, PVOID RequestContext);
/* A, 2.1 */
typedef NTSTATUS
NDK_FN_ACCEPT_EX(NDK_CONNECTOR *pNdkConnector, NDK_QP *pNdkQp, ULONG InboundReadLimit,
                 ULONG OutboundReadLimit, CONST VOID *pPrivateData, ULONG PrivateDataLength,
                 NDK_FN_DISCONNECT_EVENT_CALLBACK_EX *DisconnectEvent, PVOID DisconnectEventContext,
                 NDK_FN_REQUEST_COMPLETION *RequestCompletion, PVOID RequestContext);
/* S */
typedef NTSTATUS NDK_FN_REJECT(NDK_CONNECTOR *pNdkConnector, CONST VOID *pPrivateData,
                               ULONG PrivateDataLength);
/* S. *pPrivateDataLength in: bytes at pPrivateData; out: the size to ask with, which may be more
 * than the peer sent. */
typedef NTSTATUS NDK_FN_GET_CONNECTION_DATA(NDK_CONNECTOR *pNdkConnector, ULONG *pInboundReadLimit,
                                            ULONG *pOutboundReadLimit, PVOID pPrivateData,
                                            ULONG *pPrivateDataLength);
/* S, all address queries: STATUS_BUFFER_TOO_SMALL with the length needed. */
typedef NTSTATUS NDK_FN_GET_LOCAL_ADDRESS(NDK_CONNECTOR *pNdkConnector, SOCKADDR *pAddress,
                                          ULONG *pAddressLength);
typedef NTSTATUS NDK_FN_GET_PEER_ADDRESS(NDK_CONNECTOR *pNdkConnector, SOCKADDR *pAddress,
                                         ULONG *pAddressLength);
/* A. The queue pair is flushed. */
typedef NTSTATUS NDK_FN_DISCONNECT(NDK_CONNECTOR *pNdkConnector,
                                   NDK_FN_REQUEST_COMPLETION *RequestCompletion,
                                   PVOID RequestContext);
/* No table has a place for this one. */
typedef NTSTATUS NDK_FN_DISCONNECT_EX(NDK_CONNECTOR *pNdkConnector, BOOLEAN Abortive,
                                      NDK_FN_REQUEST_COMPLETION *RequestCompletion,
                                      PVOID RequestContext);

struct _NDK_CONNECTOR_DISPATCH {
    NDK_FN_CLOSE_OBJECT *NdkCloseConnector;
    NDK_FN_QUERY_EXTENSION_INTERFACE *NdkQueryExtension;
    NDK_FN_CONNECT *NdkConnect;
    NDK_FN_CONNECT_WITH_SHARED_ENDPOINT *NdkConnectWithSharedEndpoint;
    NDK_FN_COMPLETE_CONNECT *NdkCompleteConnect;
    NDK_FN_ACCEPT *NdkAccept;
    NDK_FN_REJECT *NdkReject;
    NDK_FN_GET_CONNECTION_DATA *NdkGetConnectionData;
    NDK_FN_GET_LOCAL_ADDRESS *NdkGetLocalAddress;
    NDK_FN_GET_PEER_ADDRESS *NdkGetPeerAddress;
    NDK_FN_DISCONNECT *NdkDisconnect;
    NDK_FN_COMPLETE_CONNECT_EX *NdkCompleteConnectEx; /* 2.1 */
    NDK_FN_ACCEPT_EX *NdkAcceptEx;                    /* 2.1 */
};

/* ---- NDK_LISTENER and NDK_SHARED_ENDPOINT ---- */

/* A. Port 0: an ephemeral one. */
typedef NTSTATUS NDK_FN_LISTEN(NDK_LISTENER *pNdkListener, CONST SOCKADDR *pAddress,
                               ULONG AddressLength, NDK_FN_REQUEST_COMPLETION *RequestCompletion,
                               PVOID RequestContext);
typedef NTSTATUS NDK_FN_GET_LISTENER_LOCAL_ADDRESS(NDK_LISTENER *pNdkListener, SOCKADDR *pAddress,
                                                   ULONG *pAddressLength);
/* TRUE: requests are treated as if nobody listened; FALSE: as usual again. */
typedef VOID NDK_FN_CONTROL_CONNECT_EVENTS(NDK_LISTENER *pNdkListener, BOOLEAN Pause);
typedef NTSTATUS NDK_FN_GET_SHARED_ENDPOINT_LOCAL_ADDRESS(NDK_SHARED_ENDPOINT *pNdkSharedEndpoint,
                                                          SOCKADDR *pAddress,
                                                          ULONG *pAddressLength);

struct _NDK_LISTENER_DISPATCH {
    NDK_FN_CLOSE_OBJECT *NdkCloseListener;
    NDK_FN_QUERY_EXTENSION_INTERFACE *NdkQueryExtension;
    NDK_FN_LISTEN *NdkListen;
    NDK_FN_GET_LISTENER_LOCAL_ADDRESS *NdkGetLocalAddress;
    NDK_FN_CONTROL_CONNECT_EVENTS *NdkControlConnectEvents;
};

struct _NDK_SHARED_ENDPOINT_DISPATCH {
    NDK_FN_CLOSE_OBJECT *NdkCloseSharedEndpoint;
    NDK_FN_QUERY_EXTENSION_INTERFACE *NdkQueryExtension;
    NDK_FN_GET_SHARED_ENDPOINT_LOCAL_ADDRESS *NdkGetLocalAddress;
};

#ifdef __cplusplus
}
#endif

#endif
