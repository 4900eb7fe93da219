/* SPDX-License-Identifier: MIT
 * ndspi.h - the NetworkDirect SPI version 2: its ten interfaces, for C and C++.
 * Owns:    IIDs, method order and signatures. What SoftND promises is written at each method.
 * Threads: every method may be called from any thread, at any time, several at once, as long as
 *          the caller holds a reference to the object for the time of the call.
 * Errors:  each method lists its statuses. Adapter gone: any method may return ND_DEVICE_REMOVED;
 *          nothing left: ND_NO_MEMORY or ND_INSUFFICIENT_RESOURCES.
 *
 * In C++ the interfaces are abstract classes. In C, p->lpVtbl->Method(p, ...) or the macros at the
 * end, IND2Adapter_Query(p, ...). GUIDs: include <initguid.h> first in one source file (or more).
 * SoftND's objects are written in C: build C++ callers without the vptr check of UBSan. Statuses
 * named SOFTND_* are in softnd.h.
 *
 * Rules that hold throughout
 *
 * Objects. A method that gives an interface out gives a reference with it; Release it. Objects may
 * be released in any order: each keeps what it needs alive. A parameter that is an object of
 * another adapter, or not SoftND's at all, is ND_INVALID_PARAMETER_n.
 * Pointers. Memory passed in belongs to the call unless said otherwise: sge arrays, addresses and
 * private data are copied before the method returns. What the sge entries point to belongs to the
 * request until its result is taken. Results are written to caller's memory. On failure an object
 * out pointer is set to NULL; a NULL out pointer is E_POINTER.
 * Overlapped methods (those with pOverlapped). ND_PENDING: accepted, it completes exactly once,
 * through the OVERLAPPED's event, the port bound to the object's overlapped file, or both; the
 * OVERLAPPED must stay in place until then. ND_SUCCESS: done, no completion follows (SoftND never
 * does this). A failure: not accepted, no completion. The final status is what
 * GetOverlappedResult says; "later:" below lists statuses that appear there only. pOverlapped is
 * not NULL, else ND_INVALID_PARAMETER_n.
 * Requests (Send, Receive, Bind, Invalidate, Read, Write). ND_SUCCESS: accepted, the outcome is an
 * ND2_RESULT in the completion queue. A failure: not accepted, no result, queue pair unharmed.
 * Size queries. *pcb is the buffer's size on entry. Too small, or no buffer:
 * ND_BUFFER_OVERFLOW, *pcb is the size needed, the buffer is not touched (GetPrivateData: filled
 * as far as it goes). Else ND_SUCCESS and *pcb is the size used.
 * Blocking. Only GetOverlappedResult with wait blocks. But Disconnect, Flush, Deregister and the
 * last Release wait for accesses to the memory that are under way: as long as a copy takes, or, if
 * the peer's process is stopped in the middle of one within this host, until it goes on or ends.
 * Addresses. struct sockaddr_in or sockaddr_in6 of this system, port in network order; a length
 * larger than the family needs is accepted.
 */
#ifndef NDSPI_H
#define NDSPI_H

#ifdef _WIN32
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <unknwn.h>
#else
#include "win32/winsock2.h"
#endif

#include "nddef.h"
#include "ndstatus.h"

/* clang-format off */

DEFINE_GUID(IID_IND2Provider,
    0x49EAE6C1, 0x76C4, 0x46D0, 0x80, 0x03, 0x5C, 0x2E, 0xAA, 0x2C, 0x9A, 0x8E);
DEFINE_GUID(IID_IND2Adapter,
    0xD89C798C, 0x4823, 0x4D69, 0x84, 0x6C, 0xDF, 0xDC, 0xCF, 0xF9, 0xE5, 0xF3);
DEFINE_GUID(IID_IND2Overlapped,
    0xABF72719, 0xB016, 0x4A40, 0xA6, 0xF7, 0x62, 0x27, 0x91, 0xA7, 0x04, 0x4C);
DEFINE_GUID(IID_IND2CompletionQueue,
    0x20CC445E, 0x64A0, 0x4CBB, 0xAA, 0x75, 0xF6, 0xA7, 0x25, 0x1F, 0xDA, 0x9E);
DEFINE_GUID(IID_IND2SharedReceiveQueue,
    0xAABD67DC, 0x459A, 0x4DB1, 0x82, 0x6B, 0x56, 0xCF, 0xCC, 0x27, 0x88, 0x83);
DEFINE_GUID(IID_IND2MemoryRegion,
    0x55DFEA2F, 0xBC56, 0x4982, 0x8A, 0x45, 0x03, 0x01, 0xBE, 0x46, 0xC4, 0x13);
DEFINE_GUID(IID_IND2MemoryWindow,
    0x070FE1F5, 0x0AB5, 0x4361, 0x88, 0xDB, 0x97, 0x4B, 0xA7, 0x04, 0xD4, 0xB9);
DEFINE_GUID(IID_IND2QueuePair,
    0xEEF2F332, 0xB75D, 0x4063, 0xBC, 0xE3, 0x3A, 0x0B, 0xAD, 0x2D, 0x02, 0xCE);
DEFINE_GUID(IID_IND2Connector,
    0x7DD615C4, 0x6B4C, 0x4866, 0x95, 0x0C, 0xF3, 0xB1, 0xD2, 0x5A, 0x53, 0x02);
DEFINE_GUID(IID_IND2Listener,
    0x65D23D83, 0x3A57, 0x4E02, 0x86, 0xA4, 0x35, 0x01, 0x65, 0xC2, 0xD1, 0x30);

/* ---- how an interface is written down once for both languages ----
 * ND_INTERFACE opens an abstract class in C++ and a table of functions in C. A C table starts with
 * the methods of the bases; a C++ class has them by inheritance. */

#if defined(__cplusplus) && !defined(CINTERFACE)
#define ND_INTERFACE(iface, base) struct iface : public base
#define ND_IUNKNOWN_METHODS
#define ND_OVERLAPPED_METHODS
#else
#define ND_INTERFACE(iface, base)                                                                  \
    typedef struct iface##Vtbl iface##Vtbl;                                                        \
    struct iface {                                                                                 \
        const iface##Vtbl *lpVtbl;                                                                 \
    };                                                                                             \
    struct iface##Vtbl
#define ND_IUNKNOWN_METHODS                                                                        \
    STDMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID *ppvObj) PURE;                             \
    STDMETHOD_(ULONG, AddRef)(THIS) PURE;                                                          \
    STDMETHOD_(ULONG, Release)(THIS) PURE;
#define ND_OVERLAPPED_METHODS                                                                      \
    ND_IUNKNOWN_METHODS                                                                            \
    STDMETHOD(CancelOverlappedRequests)(THIS) PURE;                                                \
    STDMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, BOOL wait) PURE;
#endif

typedef struct IND2Overlapped IND2Overlapped;
typedef struct IND2CompletionQueue IND2CompletionQueue;
typedef struct IND2SharedReceiveQueue IND2SharedReceiveQueue;
typedef struct IND2MemoryWindow IND2MemoryWindow;
typedef struct IND2MemoryRegion IND2MemoryRegion;
typedef struct IND2QueuePair IND2QueuePair;
typedef struct IND2Connector IND2Connector;
typedef struct IND2Listener IND2Listener;
typedef struct IND2Adapter IND2Adapter;
typedef struct IND2Provider IND2Provider;

/* ---- IND2Overlapped: base of every object with overlapped methods ---- */

#undef INTERFACE
#define INTERFACE IND2Overlapped
ND_INTERFACE(IND2Overlapped, IUnknown) {
    ND_IUNKNOWN_METHODS

    /* Completes every pending overlapped request of this object with ND_CANCELED. Data requests
     * are not touched (that is Flush).
     * ND_SUCCESS: all are completed, though perhaps not yet dequeued by the client.
     * ND_UNSUCCESSFUL: some could not be cancelled; they complete in their own way. */
    STDMETHOD(CancelOverlappedRequests)(THIS) PURE;

    /* The outcome of an overlapped request. Must be asked even if Win32 has reported it. With wait,
     * blocks until the request is complete; needs no event. Asking again gives the same answer
     * while the OVERLAPPED is not used for another request.
     * ND_PENDING: not complete (only without wait). ND_INVALID_PARAMETER_1: NULL, or, with wait, one
     * that is marked as pending by somebody else. Anything else is the request's final status. */
    STDMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, BOOL wait) PURE;
};

/* ---- IND2CompletionQueue ---- */

#undef INTERFACE
#define INTERFACE IND2CompletionQueue
ND_INTERFACE(IND2CompletionQueue, IND2Overlapped) {
    ND_OVERLAPPED_METHODS

    /* The processors that this queue's notifications run on: group number and bit mask.
     * ND_SUCCESS; ND_INVALID_PARAMETER (a NULL pointer); ND_NOT_SUPPORTED. */
    STDMETHOD(GetNotifyAffinity)(THIS_ USHORT *pGroup, KAFFINITY *pAffinity) PURE;

    /* Changes the number of entries, under traffic if need be; no completion is lost.
     * ND_SUCCESS; ND_INVALID_PARAMETER (0 or above the adapter's limit); ND_BUFFER_OVERFLOW (fewer
     * than the results queued; unchanged); ND_INSUFFICIENT_RESOURCES. */
    STDMETHOD(Resize)(THIS_ ULONG queueDepth) PURE;

    /* Overlapped. Asks once to be told of a completion: ND_CQ_NOTIFY_ANY, _SOLICITED or _ERRORS.
     * Several may be outstanding; one event completes all that it satisfies, and ANY arms them
     * all. A result written after a GetResults that returned less than asked satisfies the next
     * Notify even if it came before it; a result that satisfied one does not satisfy another. So:
     * Notify, then after completion GetResults until it returns less than asked, then Notify again.
     * ND_PENDING; ND_INVALID_PARAMETER_1 (type); ND_INSUFFICIENT_RESOURCES; ND_BUFFER_OVERFLOW
     * (the queue overran: more results than entries; it and its QPs are unusable);
     * ND_INTERNAL_ERROR (the queue failed). later: ND_CANCELED (cancelled, or the queue's last
     * Release), ND_BUFFER_OVERFLOW, ND_INTERNAL_ERROR. */
    STDMETHOD(Notify)(THIS_ ULONG type, OVERLAPPED *pOverlapped) PURE;

    /* Takes up to nResults results, oldest first, and drives the connections of this queue. Returns
     * how many; fewer than asked means that the queue is empty. Never fails. Results of one QP's
     * initiator requests come in posting order, and so do those of its Receives. */
    STDMETHOD_(ULONG, GetResults)(THIS_ ND2_RESULT results[], ULONG nResults) PURE;
};

/* ---- IND2SharedReceiveQueue: Receives shared by several queue pairs ---- */

#undef INTERFACE
#define INTERFACE IND2SharedReceiveQueue
ND_INTERFACE(IND2SharedReceiveQueue, IND2Overlapped) {
    ND_OVERLAPPED_METHODS

    /* As IND2CompletionQueue::GetNotifyAffinity. */
    STDMETHOD(GetNotifyAffinity)(THIS_ USHORT *pGroup, KAFFINITY *pAffinity) PURE;

    /* New depth and threshold; 0 leaves that one as it is.
     * ND_SUCCESS; ND_INVALID_PARAMETER (above the limit); ND_BUFFER_OVERFLOW (depth below the
     * number of outstanding Receives; unchanged); ND_INSUFFICIENT_RESOURCES. */
    STDMETHOD(Modify)(THIS_ ULONG queueDepth, ULONG notifyThreshold) PURE;

    /* Overlapped. Completes when fewer than notifyThreshold Receives are outstanding, or the queue
     * fails. Several complete together. ND_PENDING; ND_INSUFFICIENT_RESOURCES; ND_INTERNAL_ERROR
     * (the queue failed). later: ND_CANCELED, ND_INTERNAL_ERROR. */
    STDMETHOD(Notify)(THIS_ OVERLAPPED *pOverlapped) PURE;

    /* Posts a Receive for whichever queue pair needs one first; its result appears in that one's
     * receive queue. Allowed before any connection. ND_SUCCESS; ND_NO_MORE_ENTRIES (depth);
     * ND_DATA_OVERRUN (nSge above maxRequestSge); ND_BUFFER_OVERFLOW (bytes above the limit);
     * ND_INVALID_PARAMETER_2 (no sge, but nSge). */
    STDMETHOD(Receive)(THIS_ VOID *requestContext, const ND2_SGE sge[], ULONG nSge) PURE;
};

/* ---- IND2MemoryWindow: temporary remote access to a part of a region ---- */

#undef INTERFACE
#define INTERFACE IND2MemoryWindow
ND_INTERFACE(IND2MemoryWindow, IUnknown) {
    ND_IUNKNOWN_METHODS

    /* The token that a peer passes to Read and Write. Valid from the return of
     * IND2QueuePair::Bind until Invalidate; each Bind makes a new one. To be passed on as it is. */
    STDMETHOD_(UINT32, GetRemoteToken)(THIS) PURE;
};

/* ---- IND2MemoryRegion: one registered buffer, usable with every queue pair of the adapter ---- */

#undef INTERFACE
#define INTERFACE IND2MemoryRegion
ND_INTERFACE(IND2MemoryRegion, IND2Overlapped) {
    ND_OVERLAPPED_METHODS

    /* Overlapped. Registers cbBuffer bytes at pBuffer; flags are ND_MR_FLAG_*. A region holds one
     * buffer at a time; a buffer may be in many regions. The buffer must stay mapped while
     * registered; if it does not, requests that touch it fail with ND_ACCESS_VIOLATION.
     * ND_PENDING; ND_INVALID_PARAMETER (NULL, or above MaxRegistrationSize);
     * ND_INVALID_BUFFER_SIZE (0 bytes); ND_INVALID_PARAMETER_3 (flags);
     * ND_INVALID_DEVICE_REQUEST (registered already); ND_INSUFFICIENT_RESOURCES.
     * later: ND_ACCESS_VIOLATION (not mapped with the access asked for), ND_CANCELED. */
    STDMETHOD(Register)(THIS_ const VOID *pBuffer, SIZE_T cbBuffer, ULONG flags,
                        OVERLAPPED *pOverlapped) PURE;

    /* Overlapped. Ends the registration; afterwards no byte of the buffer is touched.
     * ND_PENDING; ND_DEVICE_BUSY (a window is bound); ND_INVALID_DEVICE_REQUEST (not
     * registered). */
    STDMETHOD(Deregister)(THIS_ OVERLAPPED *pOverlapped) PURE;

    /* The tokens for ND2_SGE and for the peer's Read and Write. Valid while registered; opaque. */
    STDMETHOD_(UINT32, GetLocalToken)(THIS) PURE;
    STDMETHOD_(UINT32, GetRemoteToken)(THIS) PURE;
};

/* ---- IND2QueuePair: one end of a connection. Also the requests' general rules, above. ---- */

#undef INTERFACE
#define INTERFACE IND2QueuePair
ND_INTERFACE(IND2QueuePair, IUnknown) {
    ND_IUNKNOWN_METHODS

    /* Every outstanding request of this queue pair gets a result with ND_CANCELED. A connection
     * does not survive it. ND_SUCCESS; results may still be on their way. */
    STDMETHOD(Flush)(THIS) PURE;

    /* Sends a message into the peer's next Receive, which must be large enough and, but for a short
     * grace time, posted. nSge 0 sends an empty one. flags: SILENT_SUCCESS, READ_FENCE,
     * SEND_AND_SOLICIT_EVENT, INLINE (buffers need no region and are free on return; at most
     * inlineDataSize bytes, any number of SGEs).
     * ND_SUCCESS; ND_CONNECTION_INVALID (not connected); ND_NO_MORE_ENTRIES (queue full);
     * ND_DATA_OVERRUN (too many SGEs); ND_BUFFER_OVERFLOW (above MaxTransferLength, or above the
     * inline size); ND_ACCESS_VIOLATION (inline data that cannot be read); ND_INVALID_PARAMETER_2
     * (no sge, but nSge), _4 (flags). */
    STDMETHOD(Send)(THIS_ VOID *requestContext, const ND2_SGE sge[], ULONG nSge, ULONG flags) PURE;

    /* Posts room for one message; connected or not. ND_SUCCESS; ND_NO_MORE_ENTRIES;
     * ND_DATA_OVERRUN (too many SGEs); ND_BUFFER_OVERFLOW (bytes); ND_INVALID_PARAMETER_2 (no sge,
     * but nSge); ND_INVALID_DEVICE_REQUEST (this queue pair takes its Receives from a shared queue). */
    STDMETHOD(Receive)(THIS_ VOID *requestContext, const ND2_SGE sge[], ULONG nSge) PURE;

    /* Opens part of a region to this queue pair's peer, through a window. flags: SILENT_SUCCESS,
     * READ_FENCE, ALLOW_READ, ALLOW_WRITE (the region needs ALLOW_LOCAL_WRITE; its remote flags do
     * not matter). The window's token is valid when this returns.
     * ND_SUCCESS; ND_CONNECTION_INVALID; ND_NO_MORE_ENTRIES; ND_INVALID_PARAMETER_2, _3 (not a
     * region, not a window of this adapter), _6 (flags); ND_ACCESS_VIOLATION (range not inside the
     * region, region not registered, or right missing); ND_INVALID_DEVICE_REQUEST (window bound
     * already). */
    STDMETHOD(Bind)(THIS_ VOID *requestContext, IUnknown *pMemoryRegion, IUnknown *pMemoryWindow,
                    const VOID *pBuffer, SIZE_T cbBuffer, ULONG flags) PURE;

    /* Ends a window's binding; a peer that uses its token afterwards loses the connection. flags:
     * SILENT_SUCCESS, READ_FENCE. ND_SUCCESS; ND_CONNECTION_INVALID; ND_NO_MORE_ENTRIES;
     * ND_INVALID_PARAMETER_2 (window), _3 (flags). An unbound window: result
     * ND_INVALID_DEVICE_REQUEST. */
    STDMETHOD(Invalidate)(THIS_ VOID *requestContext, IUnknown *pMemoryWindow, ULONG flags) PURE;

    /* Fetches as many bytes as the SGEs hold from the peer's memory. remoteAddress is the address
     * in the peer, in host order; remoteToken what the peer gave. The SGEs' regions need
     * ALLOW_LOCAL_WRITE. flags: SILENT_SUCCESS, READ_FENCE; INLINE is ignored.
     * As Send, with ND_INVALID_PARAMETER_6 (flags); ND_INVALID_DEVICE_REQUEST (the connection's
     * outbound read limit is 0). */
    STDMETHOD(Read)(THIS_ VOID *requestContext, const ND2_SGE sge[], ULONG nSge,
                    UINT64 remoteAddress, UINT32 remoteToken, ULONG flags) PURE;

    /* Stores the SGEs' bytes in the peer's memory, without a word to the peer's program. flags:
     * SILENT_SUCCESS, READ_FENCE, INLINE. As Send, with ND_INVALID_PARAMETER_6 (flags). */
    STDMETHOD(Write)(THIS_ VOID *requestContext, const ND2_SGE sge[], ULONG nSge,
                     UINT64 remoteAddress, UINT32 remoteToken, ULONG flags) PURE;
};

/* ---- IND2Connector: makes one connection ----
 * Active side: [Bind], Connect, CompleteConnect. Passive side: IND2Listener::GetConnectionRequest
 * with a fresh connector, Accept. Either may Reject at its turn. The active side sends first. */

#undef INTERFACE
#define INTERFACE IND2Connector
ND_INTERFACE(IND2Connector, IND2Overlapped) {
    ND_OVERLAPPED_METHODS

    /* The local address to connect from; port 0 lets the provider choose. Not needed: Connect
     * chooses by itself. ND_SUCCESS; ND_INVALID_ADDRESS (not of this adapter);
     * ND_SHARING_VIOLATION (in use); ND_ADDRESS_ALREADY_EXISTS; ND_TOO_MANY_ADDRESSES (no port
     * free); SOFTND_ADDRESS_ALREADY_ASSOCIATED (bound already); 0xC0000022 (access denied: a port
     * for which one needs rights); ND_INVALID_PARAMETER_1, _2. */
    STDMETHOD(Bind)(THIS_ const struct sockaddr *pAddress, ULONG cbAddress) PURE;

    /* Overlapped. Asks a listener for a connection of pQueuePair. The read limits say how many
     * Reads the peer may have in progress (inbound) and how many this side will (outbound); they
     * are lowered silently to what both ends can do. Completes when the peer accepted or refused.
     * ND_PENDING; ND_INVALID_BUFFER_SIZE (above MaxCallerData); ND_CONNECTION_ACTIVE;
     * ND_ACCESS_VIOLATION (private data); ND_INVALID_PARAMETER_1 to _3.
     * later: ND_CONNECTION_REFUSED, ND_NETWORK_UNREACHABLE, ND_HOST_UNREACHABLE, ND_IO_TIMEOUT
     * (after these the connector may try again), ND_ADDRESS_ALREADY_EXISTS, ND_CANCELED,
     * SOFTND_BAD_NETWORK_NAME (an address nobody can connect to). */
    STDMETHOD(Connect)(THIS_ IUnknown *pQueuePair, const struct sockaddr *pDestAddress,
                       ULONG cbDestAddress, ULONG inboundReadLimit, ULONG outboundReadLimit,
                       const VOID *pPrivateData, ULONG cbPrivateData,
                       OVERLAPPED *pOverlapped) PURE;

    /* Overlapped. Active side, after Connect succeeded: establishes the connection.
     * ND_PENDING; ND_CONNECTION_INVALID. later: ND_CONNECTION_ABORTED (the peer gave up),
     * ND_IO_TIMEOUT, ND_CANCELED. After a failure the connector is of no further use. */
    STDMETHOD(CompleteConnect)(THIS_ OVERLAPPED *pOverlapped) PURE;

    /* Overlapped. Passive side: accepts with pQueuePair; completes when the peer called
     * CompleteConnect. ND_PENDING; ND_CONNECTION_INVALID (no request); ND_CONNECTION_ACTIVE;
     * ND_INVALID_BUFFER_SIZE (above MaxCalleeData); ND_ACCESS_VIOLATION; ND_INVALID_PARAMETER_1.
     * later: ND_CONNECTION_ABORTED (the peer vanished), ND_CONNECTION_REFUSED (the peer rejected),
     * ND_IO_TIMEOUT, ND_CANCELED. After a failure the connector is of no further use. */
    STDMETHOD(Accept)(THIS_ IUnknown *pQueuePair, ULONG inboundReadLimit, ULONG outboundReadLimit,
                      const VOID *pPrivateData, ULONG cbPrivateData,
                      OVERLAPPED *pOverlapped) PURE;

    /* Refuses: the passive side instead of Accept, the active side instead of CompleteConnect. The
     * peer's pending request ends with ND_CONNECTION_REFUSED. ND_SUCCESS; ND_CONNECTION_INVALID;
     * ND_CONNECTION_ABORTED; ND_INVALID_BUFFER_SIZE (above MaxCalleeData); ND_ACCESS_VIOLATION. */
    STDMETHOD(Reject)(THIS_ const VOID *pPrivateData, ULONG cbPrivateData) PURE;

    /* The limits as this side may use them: inbound, what the peer wants to issue; outbound, what
     * it will serve. From the peer's request or answer on. Either pointer may be NULL.
     * ND_SUCCESS; ND_CONNECTION_INVALID. */
    STDMETHOD(GetReadLimits)(THIS_ ULONG *pInboundReadLimit, ULONG *pOutboundReadLimit) PURE;

    /* What the peer sent with Connect, Accept or Reject; exact length. Size query.
     * ND_SUCCESS; ND_BUFFER_OVERFLOW (partly copied); ND_CONNECTION_INVALID (nothing came yet). */
    STDMETHOD(GetPrivateData)(THIS_ VOID *pPrivateData, ULONG *pcbPrivateData) PURE;

    /* This end's address, from Bind on; the other end's, from Connect or the request on. Size
     * queries. ND_SUCCESS; ND_BUFFER_OVERFLOW; ND_CONNECTION_INVALID. */
    STDMETHOD(GetLocalAddress)(THIS_ struct sockaddr *pAddress, ULONG *pcbAddress) PURE;
    STDMETHOD(GetPeerAddress)(THIS_ struct sockaddr *pAddress, ULONG *pcbAddress) PURE;

    /* Overlapped. Completes with ND_SUCCESS when the connection ends, by whichever side and cause;
     * at once if it has ended. Several may be outstanding.
     * ND_PENDING; ND_CONNECTION_INVALID (never connected). later: ND_CANCELED. */
    STDMETHOD(NotifyDisconnect)(THIS_ OVERLAPPED *pOverlapped) PURE;

    /* Overlapped. Ends the connection and flushes the queue pair, which cannot connect again. Does
     * not wait for the peer's program. ND_PENDING; ND_CONNECTION_INVALID (not connected).
     * later: ND_CANCELED. */
    STDMETHOD(Disconnect)(THIS_ OVERLAPPED *pOverlapped) PURE;
};

/* ---- IND2Listener ---- */

#undef INTERFACE
#define INTERFACE IND2Listener
ND_INTERFACE(IND2Listener, IND2Overlapped) {
    ND_OVERLAPPED_METHODS

    /* Local address; the any-address stands for all addresses of this adapter, port 0 for a port
     * chosen by the provider. ND_SUCCESS; ND_SHARING_VIOLATION (in use); ND_INVALID_ADDRESS;
     * ND_TOO_MANY_ADDRESSES (no port free); ND_INSUFFICIENT_RESOURCES;
     * SOFTND_ADDRESS_ALREADY_ASSOCIATED (bound already); 0xC0000022 (access denied);
     * ND_INVALID_PARAMETER_1, _2. */
    STDMETHOD(Bind)(THIS_ const struct sockaddr *pAddress, ULONG cbAddress) PURE;

    /* Starts listening. backlog: requests that may wait; 0 for as many as possible; more are
     * refused. ND_SUCCESS; ND_INVALID_DEVICE_STATE (not bound, or listening already);
     * ND_INSUFFICIENT_RESOURCES. */
    STDMETHOD(Listen)(THIS_ ULONG backlog) PURE;

    /* The bound address. Size query. ND_SUCCESS; ND_BUFFER_OVERFLOW; ND_INVALID_DEVICE_STATE. */
    STDMETHOD(GetLocalAddress)(THIS_ struct sockaddr *pAddress, ULONG *pcbAddress) PURE;

    /* Overlapped. Takes the next connection request into a fresh connector of the same adapter.
     * Several may be outstanding; each request completes one.
     * ND_PENDING; ND_INVALID_DEVICE_STATE (not listening); ND_INVALID_PARAMETER_1 (the connector is
     * not fresh). later: ND_CANCELED (cancelled, or the listener's last Release). */
    STDMETHOD(GetConnectionRequest)(THIS_ IUnknown *pConnector, OVERLAPPED *pOverlapped) PURE;
};

/* ---- IND2Adapter: one network interface ----
 * Create*: iid must be that of the interface named, of IUnknown or of a base, else E_NOINTERFACE.
 * hOverlappedFile is from CreateOverlappedFile, else ND_INVALID_HANDLE; it may be shared, and may
 * be closed while the object lives. All may return ND_NO_MEMORY or ND_INSUFFICIENT_RESOURCES.
 * group and affinity wish for processors; 0 for no wish. */

#undef INTERFACE
#define INTERFACE IND2Adapter
ND_INTERFACE(IND2Adapter, IUnknown) {
    ND_IUNKNOWN_METHODS

    /* A handle for overlapped completion; bind it to a completion port or not. The caller ends it
     * with CloseHandle. ND_SUCCESS; ND_NO_MEMORY. */
    STDMETHOD(CreateOverlappedFile)(THIS_ HANDLE *phOverlappedFile) PURE;

    /* Limits. pInfo->InfoVersion in: 1 or ND_VERSION_2. Size query. ND_SUCCESS;
     * ND_BUFFER_OVERFLOW; ND_INVALID_PARAMETER (other version). */
    STDMETHOD(Query)(THIS_ ND2_ADAPTER_INFO *pInfo, ULONG *pcbInfo) PURE;

    /* This adapter's addresses; lpSockaddr points into the buffer. Size query. */
    STDMETHOD(QueryAddressList)(THIS_ SOCKET_ADDRESS_LIST *pAddressList,
                                ULONG *pcbAddressList) PURE;

    /* ND_SUCCESS; ND_INVALID_PARAMETER_3 (depth 0 or above the limit). */
    STDMETHOD(CreateCompletionQueue)(THIS_ REFIID iid, HANDLE hOverlappedFile, ULONG queueDepth,
                                     USHORT group, KAFFINITY affinity,
                                     VOID **ppCompletionQueue) PURE;

    STDMETHOD(CreateMemoryRegion)(THIS_ REFIID iid, HANDLE hOverlappedFile,
                                  VOID **ppMemoryRegion) PURE;

    STDMETHOD(CreateMemoryWindow)(THIS_ REFIID iid, VOID **ppMemoryWindow) PURE;

    /* notifyThreshold: below so many Receives Notify completes; 0 for never.
     * ND_SUCCESS; ND_INVALID_PARAMETER_3 (depth), _4 (SGEs). */
    STDMETHOD(CreateSharedReceiveQueue)(THIS_ REFIID iid, HANDLE hOverlappedFile,
                                        ULONG queueDepth, ULONG maxRequestSge,
                                        ULONG notifyThreshold, USHORT group, KAFFINITY affinity,
                                        VOID **ppSharedReceiveQueue) PURE;

    /* The two completion queues may be the same. context is returned with each result. Depths and
     * SGE counts may be 0. ND_SUCCESS; ND_INVALID_PARAMETER_2, _3 (completion queues), _5, _6
     * (depths), _7, _8 (SGEs), _9 (inline bytes). */
    STDMETHOD(CreateQueuePair)(THIS_ REFIID iid, IUnknown *pReceiveCompletionQueue,
                               IUnknown *pInitiatorCompletionQueue, VOID *context,
                               ULONG receiveQueueDepth, ULONG initiatorQueueDepth,
                               ULONG maxReceiveRequestSge, ULONG maxInitiatorRequestSge,
                               ULONG inlineDataSize, VOID **ppQueuePair) PURE;

    /* The same with Receives from a shared queue. ND_SUCCESS; ND_INVALID_PARAMETER_2, _3
     * (completion queues), _4 (shared queue), _6 (depth), _7 (SGEs), _8 (inline bytes). */
    STDMETHOD(CreateQueuePairWithSrq)(THIS_ REFIID iid, IUnknown *pReceiveCompletionQueue,
                                      IUnknown *pInitiatorCompletionQueue,
                                      IUnknown *pSharedReceiveQueue, VOID *context,
                                      ULONG initiatorQueueDepth, ULONG maxInitiatorRequestSge,
                                      ULONG inlineDataSize, VOID **ppQueuePair) PURE;

    STDMETHOD(CreateConnector)(THIS_ REFIID iid, HANDLE hOverlappedFile,
                               VOID **ppConnector) PURE;

    STDMETHOD(CreateListener)(THIS_ REFIID iid, HANDLE hOverlappedFile, VOID **ppListener) PURE;
};

/* ---- IND2Provider: where a client starts. From DllGetClassObject, see softnd.h. ---- */

#undef INTERFACE
#define INTERFACE IND2Provider
ND_INTERFACE(IND2Provider, IUnknown) {
    ND_IUNKNOWN_METHODS

    /* The addresses of all adapters. Size query; without any, asks for one empty list. */
    STDMETHOD(QueryAddressList)(THIS_ SOCKET_ADDRESS_LIST *pAddressList,
                                ULONG *pcbAddressList) PURE;

    /* The adapter of a local address; the port does not matter. Adapter ids stay the same while
     * the interface exists. ND_SUCCESS; ND_INVALID_ADDRESS (not local); ND_NO_MEMORY. */
    STDMETHOD(ResolveAddress)(THIS_ const struct sockaddr *pAddress, ULONG cbAddress,
                              UINT64 *pAdapterId) PURE;

    /* ND_SUCCESS; ND_INVALID_PARAMETER (no such id); ND_NO_MEMORY; E_NOINTERFACE. */
    STDMETHOD(OpenAdapter)(THIS_ REFIID iid, UINT64 adapterId, VOID **ppAdapter) PURE;
};

#undef INTERFACE
#undef ND_INTERFACE
#undef ND_IUNKNOWN_METHODS
#undef ND_OVERLAPPED_METHODS

/* ---- calls in C ---- */

#if !defined(__cplusplus) || defined(CINTERFACE)

/* IND2Overlapped */
#define IND2Overlapped_QueryInterface(This, riid, ppvObj)                                          \
    ((This)->lpVtbl->QueryInterface(This, riid, ppvObj))
#define IND2Overlapped_AddRef(This) ((This)->lpVtbl->AddRef(This))
#define IND2Overlapped_Release(This) ((This)->lpVtbl->Release(This))
#define IND2Overlapped_CancelOverlappedRequests(This)                                              \
    ((This)->lpVtbl->CancelOverlappedRequests(This))
#define IND2Overlapped_GetOverlappedResult(This, pOverlapped, wait)                                \
    ((This)->lpVtbl->GetOverlappedResult(This, pOverlapped, wait))

/* IND2CompletionQueue */
#define IND2CompletionQueue_QueryInterface(This, riid, ppvObj)                                     \
    ((This)->lpVtbl->QueryInterface(This, riid, ppvObj))
#define IND2CompletionQueue_AddRef(This) ((This)->lpVtbl->AddRef(This))
#define IND2CompletionQueue_Release(This) ((This)->lpVtbl->Release(This))
#define IND2CompletionQueue_CancelOverlappedRequests(This)                                         \
    ((This)->lpVtbl->CancelOverlappedRequests(This))
#define IND2CompletionQueue_GetOverlappedResult(This, pOverlapped, wait)                           \
    ((This)->lpVtbl->GetOverlappedResult(This, pOverlapped, wait))
#define IND2CompletionQueue_GetNotifyAffinity(This, pGroup, pAffinity)                             \
    ((This)->lpVtbl->GetNotifyAffinity(This, pGroup, pAffinity))
#define IND2CompletionQueue_Resize(This, queueDepth) ((This)->lpVtbl->Resize(This, queueDepth))
#define IND2CompletionQueue_Notify(This, type, pOverlapped)                                        \
    ((This)->lpVtbl->Notify(This, type, pOverlapped))
#define IND2CompletionQueue_GetResults(This, results, nResults)                                    \
    ((This)->lpVtbl->GetResults(This, results, nResults))

/* IND2SharedReceiveQueue */
#define IND2SharedReceiveQueue_QueryInterface(This, riid, ppvObj)                                  \
    ((This)->lpVtbl->QueryInterface(This, riid, ppvObj))
#define IND2SharedReceiveQueue_AddRef(This) ((This)->lpVtbl->AddRef(This))
#define IND2SharedReceiveQueue_Release(This) ((This)->lpVtbl->Release(This))
#define IND2SharedReceiveQueue_CancelOverlappedRequests(This)                                      \
    ((This)->lpVtbl->CancelOverlappedRequests(This))
#define IND2SharedReceiveQueue_GetOverlappedResult(This, pOverlapped, wait)                        \
    ((This)->lpVtbl->GetOverlappedResult(This, pOverlapped, wait))
#define IND2SharedReceiveQueue_GetNotifyAffinity(This, pGroup, pAffinity)                          \
    ((This)->lpVtbl->GetNotifyAffinity(This, pGroup, pAffinity))
#define IND2SharedReceiveQueue_Modify(This, queueDepth, notifyThreshold)                           \
    ((This)->lpVtbl->Modify(This, queueDepth, notifyThreshold))
#define IND2SharedReceiveQueue_Notify(This, pOverlapped) ((This)->lpVtbl->Notify(This, pOverlapped))
#define IND2SharedReceiveQueue_Receive(This, requestContext, sge, nSge)                            \
    ((This)->lpVtbl->Receive(This, requestContext, sge, nSge))

/* IND2MemoryWindow */
#define IND2MemoryWindow_QueryInterface(This, riid, ppvObj)                                        \
    ((This)->lpVtbl->QueryInterface(This, riid, ppvObj))
#define IND2MemoryWindow_AddRef(This) ((This)->lpVtbl->AddRef(This))
#define IND2MemoryWindow_Release(This) ((This)->lpVtbl->Release(This))
#define IND2MemoryWindow_GetRemoteToken(This) ((This)->lpVtbl->GetRemoteToken(This))

/* IND2MemoryRegion */
#define IND2MemoryRegion_QueryInterface(This, riid, ppvObj)                                        \
    ((This)->lpVtbl->QueryInterface(This, riid, ppvObj))
#define IND2MemoryRegion_AddRef(This) ((This)->lpVtbl->AddRef(This))
#define IND2MemoryRegion_Release(This) ((This)->lpVtbl->Release(This))
#define IND2MemoryRegion_CancelOverlappedRequests(This)                                            \
    ((This)->lpVtbl->CancelOverlappedRequests(This))
#define IND2MemoryRegion_GetOverlappedResult(This, pOverlapped, wait)                              \
    ((This)->lpVtbl->GetOverlappedResult(This, pOverlapped, wait))
#define IND2MemoryRegion_Register(This, pBuffer, cbBuffer, flags, pOverlapped)                     \
    ((This)->lpVtbl->Register(This, pBuffer, cbBuffer, flags, pOverlapped))
#define IND2MemoryRegion_Deregister(This, pOverlapped)                                             \
    ((This)->lpVtbl->Deregister(This, pOverlapped))
#define IND2MemoryRegion_GetLocalToken(This) ((This)->lpVtbl->GetLocalToken(This))
#define IND2MemoryRegion_GetRemoteToken(This) ((This)->lpVtbl->GetRemoteToken(This))

/* IND2QueuePair */
#define IND2QueuePair_QueryInterface(This, riid, ppvObj)                                           \
    ((This)->lpVtbl->QueryInterface(This, riid, ppvObj))
#define IND2QueuePair_AddRef(This) ((This)->lpVtbl->AddRef(This))
#define IND2QueuePair_Release(This) ((This)->lpVtbl->Release(This))
#define IND2QueuePair_Flush(This) ((This)->lpVtbl->Flush(This))
#define IND2QueuePair_Send(This, requestContext, sge, nSge, flags)                                 \
    ((This)->lpVtbl->Send(This, requestContext, sge, nSge, flags))
#define IND2QueuePair_Receive(This, requestContext, sge, nSge)                                     \
    ((This)->lpVtbl->Receive(This, requestContext, sge, nSge))
#define IND2QueuePair_Bind(This, requestContext, pMemoryRegion, pMemoryWindow, pBuffer, cbBuffer,  \
                           flags)                                                                  \
    ((This)->lpVtbl->Bind(This, requestContext, pMemoryRegion, pMemoryWindow, pBuffer, cbBuffer,   \
                          flags))
#define IND2QueuePair_Invalidate(This, requestContext, pMemoryWindow, flags)                       \
    ((This)->lpVtbl->Invalidate(This, requestContext, pMemoryWindow, flags))
#define IND2QueuePair_Read(This, requestContext, sge, nSge, remoteAddress, remoteToken, flags)     \
    ((This)->lpVtbl->Read(This, requestContext, sge, nSge, remoteAddress, remoteToken, flags))
#define IND2QueuePair_Write(This, requestContext, sge, nSge, remoteAddress, remoteToken, flags)    \
    ((This)->lpVtbl->Write(This, requestContext, sge, nSge, remoteAddress, remoteToken, flags))

/* IND2Connector */
#define IND2Connector_QueryInterface(This, riid, ppvObj)                                           \
    ((This)->lpVtbl->QueryInterface(This, riid, ppvObj))
#define IND2Connector_AddRef(This) ((This)->lpVtbl->AddRef(This))
#define IND2Connector_Release(This) ((This)->lpVtbl->Release(This))
#define IND2Connector_CancelOverlappedRequests(This)                                               \
    ((This)->lpVtbl->CancelOverlappedRequests(This))
#define IND2Connector_GetOverlappedResult(This, pOverlapped, wait)                                 \
    ((This)->lpVtbl->GetOverlappedResult(This, pOverlapped, wait))
#define IND2Connector_Bind(This, pAddress, cbAddress)                                              \
    ((This)->lpVtbl->Bind(This, pAddress, cbAddress))
#define IND2Connector_Connect(This, pQueuePair, pDestAddress, cbDestAddress, inboundReadLimit,     \
                              outboundReadLimit, pPrivateData, cbPrivateData, pOverlapped)         \
    ((This)->lpVtbl->Connect(This, pQueuePair, pDestAddress, cbDestAddress, inboundReadLimit,      \
                             outboundReadLimit, pPrivateData, cbPrivateData, pOverlapped))
#define IND2Connector_CompleteConnect(This, pOverlapped)                                           \
    ((This)->lpVtbl->CompleteConnect(This, pOverlapped))
#define IND2Connector_Accept(This, pQueuePair, inboundReadLimit, outboundReadLimit, pPrivateData,  \
                             cbPrivateData, pOverlapped)                                           \
    ((This)->lpVtbl->Accept(This, pQueuePair, inboundReadLimit, outboundReadLimit, pPrivateData,   \
                            cbPrivateData, pOverlapped))
#define IND2Connector_Reject(This, pPrivateData, cbPrivateData)                                    \
    ((This)->lpVtbl->Reject(This, pPrivateData, cbPrivateData))
#define IND2Connector_GetReadLimits(This, pInboundReadLimit, pOutboundReadLimit)                   \
    ((This)->lpVtbl->GetReadLimits(This, pInboundReadLimit, pOutboundReadLimit))
#define IND2Connector_GetPrivateData(This, pPrivateData, pcbPrivateData)                           \
    ((This)->lpVtbl->GetPrivateData(This, pPrivateData, pcbPrivateData))
#define IND2Connector_GetLocalAddress(This, pAddress, pcbAddress)                                  \
    ((This)->lpVtbl->GetLocalAddress(This, pAddress, pcbAddress))
#define IND2Connector_GetPeerAddress(This, pAddress, pcbAddress)                                   \
    ((This)->lpVtbl->GetPeerAddress(This, pAddress, pcbAddress))
#define IND2Connector_NotifyDisconnect(This, pOverlapped)                                          \
    ((This)->lpVtbl->NotifyDisconnect(This, pOverlapped))
#define IND2Connector_Disconnect(This, pOverlapped) ((This)->lpVtbl->Disconnect(This, pOverlapped))

/* IND2Listener */
#define IND2Listener_QueryInterface(This, riid, ppvObj)                                            \
    ((This)->lpVtbl->QueryInterface(This, riid, ppvObj))
#define IND2Listener_AddRef(This) ((This)->lpVtbl->AddRef(This))
#define IND2Listener_Release(This) ((This)->lpVtbl->Release(This))
#define IND2Listener_CancelOverlappedRequests(This) ((This)->lpVtbl->CancelOverlappedRequests(This))
#define IND2Listener_GetOverlappedResult(This, pOverlapped, wait)                                  \
    ((This)->lpVtbl->GetOverlappedResult(This, pOverlapped, wait))
#define IND2Listener_Bind(This, pAddress, cbAddress)                                               \
    ((This)->lpVtbl->Bind(This, pAddress, cbAddress))
#define IND2Listener_Listen(This, backlog) ((This)->lpVtbl->Listen(This, backlog))
#define IND2Listener_GetLocalAddress(This, pAddress, pcbAddress)                                   \
    ((This)->lpVtbl->GetLocalAddress(This, pAddress, pcbAddress))
#define IND2Listener_GetConnectionRequest(This, pConnector, pOverlapped)                           \
    ((This)->lpVtbl->GetConnectionRequest(This, pConnector, pOverlapped))

/* IND2Adapter */
#define IND2Adapter_QueryInterface(This, riid, ppvObj)                                             \
    ((This)->lpVtbl->QueryInterface(This, riid, ppvObj))
#define IND2Adapter_AddRef(This) ((This)->lpVtbl->AddRef(This))
#define IND2Adapter_Release(This) ((This)->lpVtbl->Release(This))
#define IND2Adapter_CreateOverlappedFile(This, phOverlappedFile)                                   \
    ((This)->lpVtbl->CreateOverlappedFile(This, phOverlappedFile))
#define IND2Adapter_Query(This, pInfo, pcbInfo) ((This)->lpVtbl->Query(This, pInfo, pcbInfo))
#define IND2Adapter_QueryAddressList(This, pAddressList, pcbAddressList)                           \
    ((This)->lpVtbl->QueryAddressList(This, pAddressList, pcbAddressList))
#define IND2Adapter_CreateCompletionQueue(This, iid, hOverlappedFile, queueDepth, group, affinity, \
                                          ppCompletionQueue)                                       \
    ((This)->lpVtbl->CreateCompletionQueue(This, iid, hOverlappedFile, queueDepth, group,          \
                                           affinity, ppCompletionQueue))
#define IND2Adapter_CreateMemoryRegion(This, iid, hOverlappedFile, ppMemoryRegion)                 \
    ((This)->lpVtbl->CreateMemoryRegion(This, iid, hOverlappedFile, ppMemoryRegion))
#define IND2Adapter_CreateMemoryWindow(This, iid, ppMemoryWindow)                                  \
    ((This)->lpVtbl->CreateMemoryWindow(This, iid, ppMemoryWindow))
#define IND2Adapter_CreateSharedReceiveQueue(This, iid, hOverlappedFile, queueDepth,               \
                                             maxRequestSge, notifyThreshold, group, affinity,      \
                                             ppSharedReceiveQueue)                                 \
    ((This)->lpVtbl->CreateSharedReceiveQueue(This, iid, hOverlappedFile, queueDepth,              \
                                              maxRequestSge, notifyThreshold, group, affinity,     \
                                              ppSharedReceiveQueue))
#define IND2Adapter_CreateQueuePair(This, iid, pReceiveCompletionQueue, pInitiatorCompletionQueue, \
                                    context, receiveQueueDepth, initiatorQueueDepth,               \
                                    maxReceiveRequestSge, maxInitiatorRequestSge, inlineDataSize,  \
                                    ppQueuePair)                                                   \
    ((This)->lpVtbl->CreateQueuePair(This, iid, pReceiveCompletionQueue,                           \
                                     pInitiatorCompletionQueue, context, receiveQueueDepth,        \
                                     initiatorQueueDepth, maxReceiveRequestSge,                    \
                                     maxInitiatorRequestSge, inlineDataSize, ppQueuePair))
#define IND2Adapter_CreateQueuePairWithSrq(                                                        \
    This, iid, pReceiveCompletionQueue, pInitiatorCompletionQueue, pSharedReceiveQueue, context,   \
    initiatorQueueDepth, maxInitiatorRequestSge, inlineDataSize, ppQueuePair)                      \
    ((This)->lpVtbl->CreateQueuePairWithSrq(                                                       \
        This, iid, pReceiveCompletionQueue, pInitiatorCompletionQueue, pSharedReceiveQueue,        \
        context, initiatorQueueDepth, maxInitiatorRequestSge, inlineDataSize, ppQueuePair))
#define IND2Adapter_CreateConnector(This, iid, hOverlappedFile, ppConnector)                       \
    ((This)->lpVtbl->CreateConnector(This, iid, hOverlappedFile, ppConnector))
#define IND2Adapter_CreateListener(This, iid, hOverlappedFile, ppListener)                         \
    ((This)->lpVtbl->CreateListener(This, iid, hOverlappedFile, ppListener))

/* IND2Provider */
#define IND2Provider_QueryInterface(This, riid, ppvObj)                                            \
    ((This)->lpVtbl->QueryInterface(This, riid, ppvObj))
#define IND2Provider_AddRef(This) ((This)->lpVtbl->AddRef(This))
#define IND2Provider_Release(This) ((This)->lpVtbl->Release(This))
#define IND2Provider_QueryAddressList(This, pAddressList, pcbAddressList)                          \
    ((This)->lpVtbl->QueryAddressList(This, pAddressList, pcbAddressList))
#define IND2Provider_ResolveAddress(This, pAddress, cbAddress, pAdapterId)                         \
    ((This)->lpVtbl->ResolveAddress(This, pAddress, cbAddress, pAdapterId))
#define IND2Provider_OpenAdapter(This, iid, adapterId, ppAdapter)                                  \
    ((This)->lpVtbl->OpenAdapter(This, iid, adapterId, ppAdapter))

#endif

#endif
