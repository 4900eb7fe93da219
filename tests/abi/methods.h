/* SPDX-License-Identifier: MIT
 * methods.h - the vtables of the SPI as lists, in slot order, written down independently of the
 * headers under test. LIST_<interface>(M0, M, I) expands M0(I, return type, method) for methods
 * without parameters and M(I, return type, method, parameter types...) for the others; the lists
 * of the bases come first.
 */
#ifndef TESTS_ABI_METHODS_H
#define TESTS_ABI_METHODS_H

/* clang-format off */

#define LIST_IUnknown(M0, M, I)                                                                    \
    M(I, HRESULT, QueryInterface, REFIID, void **)                                                 \
    M0(I, ULONG, AddRef)                                                                           \
    M0(I, ULONG, Release)

#define LIST_IClassFactory(M0, M, I)                                                               \
    LIST_IUnknown(M0, M, I)                                                                        \
    M(I, HRESULT, CreateInstance, IUnknown *, REFIID, void **)                                     \
    M(I, HRESULT, LockServer, BOOL)

#define LIST_IND2Overlapped(M0, M, I)                                                              \
    LIST_IUnknown(M0, M, I)                                                                        \
    M0(I, HRESULT, CancelOverlappedRequests)                                                       \
    M(I, HRESULT, GetOverlappedResult, OVERLAPPED *, BOOL)

#define LIST_IND2CompletionQueue(M0, M, I)                                                         \
    LIST_IND2Overlapped(M0, M, I)                                                                  \
    M(I, HRESULT, GetNotifyAffinity, USHORT *, KAFFINITY *)                                        \
    M(I, HRESULT, Resize, ULONG)                                                                   \
    M(I, HRESULT, Notify, ULONG, OVERLAPPED *)                                                     \
    M(I, ULONG, GetResults, ND2_RESULT *, ULONG)

#define LIST_IND2SharedReceiveQueue(M0, M, I)                                                      \
    LIST_IND2Overlapped(M0, M, I)                                                                  \
    M(I, HRESULT, GetNotifyAffinity, USHORT *, KAFFINITY *)                                        \
    M(I, HRESULT, Modify, ULONG, ULONG)                                                            \
    M(I, HRESULT, Notify, OVERLAPPED *)                                                            \
    M(I, HRESULT, Receive, VOID *, const ND2_SGE *, ULONG)

#define LIST_IND2MemoryWindow(M0, M, I)                                                            \
    LIST_IUnknown(M0, M, I)                                                                        \
    M0(I, UINT32, GetRemoteToken)

#define LIST_IND2MemoryRegion(M0, M, I)                                                            \
    LIST_IND2Overlapped(M0, M, I)                                                                  \
    M(I, HRESULT, Register, const VOID *, SIZE_T, ULONG, OVERLAPPED *)                             \
    M(I, HRESULT, Deregister, OVERLAPPED *)                                                        \
    M0(I, UINT32, GetLocalToken)                                                                   \
    M0(I, UINT32, GetRemoteToken)

#define LIST_IND2QueuePair(M0, M, I)                                                               \
    LIST_IUnknown(M0, M, I)                                                                        \
    M0(I, HRESULT, Flush)                                                                          \
    M(I, HRESULT, Send, VOID *, const ND2_SGE *, ULONG, ULONG)                                     \
    M(I, HRESULT, Receive, VOID *, const ND2_SGE *, ULONG)                                         \
    M(I, HRESULT, Bind, VOID *, IUnknown *, IUnknown *, const VOID *, SIZE_T, ULONG)               \
    M(I, HRESULT, Invalidate, VOID *, IUnknown *, ULONG)                                           \
    M(I, HRESULT, Read, VOID *, const ND2_SGE *, ULONG, UINT64, UINT32, ULONG)                     \
    M(I, HRESULT, Write, VOID *, const ND2_SGE *, ULONG, UINT64, UINT32, ULONG)

#define LIST_IND2Connector(M0, M, I)                                                               \
    LIST_IND2Overlapped(M0, M, I)                                                                  \
    M(I, HRESULT, Bind, const struct sockaddr *, ULONG)                                            \
    M(I, HRESULT, Connect, IUnknown *, const struct sockaddr *, ULONG, ULONG, ULONG,               \
      const VOID *, ULONG, OVERLAPPED *)                                                           \
    M(I, HRESULT, CompleteConnect, OVERLAPPED *)                                                   \
    M(I, HRESULT, Accept, IUnknown *, ULONG, ULONG, const VOID *, ULONG, OVERLAPPED *)             \
    M(I, HRESULT, Reject, const VOID *, ULONG)                                                     \
    M(I, HRESULT, GetReadLimits, ULONG *, ULONG *)                                                 \
    M(I, HRESULT, GetPrivateData, VOID *, ULONG *)                                                 \
    M(I, HRESULT, GetLocalAddress, struct sockaddr *, ULONG *)                                     \
    M(I, HRESULT, GetPeerAddress, struct sockaddr *, ULONG *)                                      \
    M(I, HRESULT, NotifyDisconnect, OVERLAPPED *)                                                  \
    M(I, HRESULT, Disconnect, OVERLAPPED *)

#define LIST_IND2Listener(M0, M, I)                                                                \
    LIST_IND2Overlapped(M0, M, I)                                                                  \
    M(I, HRESULT, Bind, const struct sockaddr *, ULONG)                                            \
    M(I, HRESULT, Listen, ULONG)                                                                   \
    M(I, HRESULT, GetLocalAddress, struct sockaddr *, ULONG *)                                     \
    M(I, HRESULT, GetConnectionRequest, IUnknown *, OVERLAPPED *)

#define LIST_IND2Adapter(M0, M, I)                                                                 \
    LIST_IUnknown(M0, M, I)                                                                        \
    M(I, HRESULT, CreateOverlappedFile, HANDLE *)                                                  \
    M(I, HRESULT, Query, ND2_ADAPTER_INFO *, ULONG *)                                              \
    M(I, HRESULT, QueryAddressList, SOCKET_ADDRESS_LIST *, ULONG *)                                \
    M(I, HRESULT, CreateCompletionQueue, REFIID, HANDLE, ULONG, USHORT, KAFFINITY, VOID **)        \
    M(I, HRESULT, CreateMemoryRegion, REFIID, HANDLE, VOID **)                                     \
    M(I, HRESULT, CreateMemoryWindow, REFIID, VOID **)                                             \
    M(I, HRESULT, CreateSharedReceiveQueue, REFIID, HANDLE, ULONG, ULONG, ULONG, USHORT,           \
      KAFFINITY, VOID **)                                                                          \
    M(I, HRESULT, CreateQueuePair, REFIID, IUnknown *, IUnknown *, VOID *, ULONG, ULONG, ULONG,    \
      ULONG, ULONG, VOID **)                                                                       \
    M(I, HRESULT, CreateQueuePairWithSrq, REFIID, IUnknown *, IUnknown *, IUnknown *, VOID *,      \
      ULONG, ULONG, ULONG, VOID **)                                                                \
    M(I, HRESULT, CreateConnector, REFIID, HANDLE, VOID **)                                        \
    M(I, HRESULT, CreateListener, REFIID, HANDLE, VOID **)

#define LIST_IND2Provider(M0, M, I)                                                                \
    LIST_IUnknown(M0, M, I)                                                                        \
    M(I, HRESULT, QueryAddressList, SOCKET_ADDRESS_LIST *, ULONG *)                                \
    M(I, HRESULT, ResolveAddress, const struct sockaddr *, ULONG, UINT64 *)                        \
    M(I, HRESULT, OpenAdapter, REFIID, UINT64, VOID **)

/* X(interface, number of slots) */
#define ALL_INTERFACES(X)                                                                          \
    X(IUnknown, 3) X(IClassFactory, 5) X(IND2Overlapped, 5) X(IND2CompletionQueue, 9)              \
    X(IND2SharedReceiveQueue, 9) X(IND2MemoryWindow, 4) X(IND2MemoryRegion, 9)                     \
    X(IND2QueuePair, 10) X(IND2Connector, 16) X(IND2Listener, 9) X(IND2Adapter, 14)                \
    X(IND2Provider, 6)

/* ---- EACH(X, types...): X(n, first), ..., X(1, last) with commas; up to ten types ---- */

#define EACH(X, ...)                                                                               \
    EACH_PICK(__VA_ARGS__, EACH_10, EACH_9, EACH_8, EACH_7, EACH_6, EACH_5, EACH_4, EACH_3,        \
              EACH_2, EACH_1, none)(X, __VA_ARGS__)
#define EACH_PICK(a, b, c, d, e, f, g, h, i, j, chosen, ...) chosen
#define EACH_1(X, t) X(1, t)
#define EACH_2(X, t, ...) X(2, t), EACH_1(X, __VA_ARGS__)
#define EACH_3(X, t, ...) X(3, t), EACH_2(X, __VA_ARGS__)
#define EACH_4(X, t, ...) X(4, t), EACH_3(X, __VA_ARGS__)
#define EACH_5(X, t, ...) X(5, t), EACH_4(X, __VA_ARGS__)
#define EACH_6(X, t, ...) X(6, t), EACH_5(X, __VA_ARGS__)
#define EACH_7(X, t, ...) X(7, t), EACH_6(X, __VA_ARGS__)
#define EACH_8(X, t, ...) X(8, t), EACH_7(X, __VA_ARGS__)
#define EACH_9(X, t, ...) X(9, t), EACH_8(X, __VA_ARGS__)
#define EACH_10(X, t, ...) X(10, t), EACH_9(X, __VA_ARGS__)

/* clang-format on */

#endif
