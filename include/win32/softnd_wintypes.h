/* SPDX-License-Identifier: MIT
 * softnd_wintypes.h - Win32 types with their Windows widths, for Linux: integers, handles,
 * OVERLAPPED, socket addresses, the catalog entry, and the COM basics.
 * Owns:    the layouts; tests/abi checks each against the Windows x64 layout.
 * Threads: types only.   Errors: none.
 *
 * What differs from Windows, because it must: LONG and ULONG are int32_t and uint32_t, never
 * (unsigned) long; WCHAR is char16_t, so wide literals are u"..." (or TEXT("...") with UNICODE);
 * AF_INET6 is the system's number; sockaddr types are the system's; a SOCKET is a descriptor.
 * On Windows too they are for the kernel environment (include/km), whose programs include no header
 * of the system that has these types.
 */
#ifndef SOFTND_WINTYPES_H
#define SOFTND_WINTYPES_H

#if defined(_WIN32) && !defined(SOFTND_KERNEL_TYPES)
#error "on Windows include the system headers"
#endif

#include <stddef.h>
#include <stdint.h>
#ifdef _WIN32
#include "softnd_winsockaddr.h"
#else
#include <netinet/in.h>
#include <sys/socket.h>
#ifndef __cplusplus
#include <uchar.h>
#endif
#endif

#include "softnd_guiddef.h"

/* ---- calling conventions and linkage ---- */

#define WINAPI
#define APIENTRY
#define CALLBACK
#define STDMETHODCALLTYPE
#define STDAPICALLTYPE
#define WSAAPI
#define WSPAPI
#ifndef __cdecl
#define __cdecl
#endif
#ifndef __stdcall
#define __stdcall
#endif
#define STDAPI EXTERN_C __attribute__((visibility("default"))) HRESULT STDAPICALLTYPE
#define STDAPI_(type) EXTERN_C __attribute__((visibility("default"))) type STDAPICALLTYPE

/* ---- integers ---- */

#define VOID void
#define CONST const
#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

typedef int32_t BOOL, INT, LONG, HRESULT, NTSTATUS, INT32, LONG32;
typedef uint32_t ULONG, DWORD, UINT, UINT32, ULONG32, DWORD32;
typedef int64_t INT64, LONGLONG, LONG64;
typedef uint64_t UINT64, ULONGLONG, ULONG64, DWORD64, DWORDLONG;
typedef int16_t SHORT, INT16;
typedef uint16_t USHORT, WORD, UINT16;
typedef int8_t INT8;
typedef uint8_t UCHAR, BYTE, BOOLEAN, UINT8;
typedef char CHAR;
#ifdef _WIN32
typedef wchar_t WCHAR;
#else
typedef char16_t WCHAR;
#endif
typedef size_t SIZE_T;
typedef ptrdiff_t SSIZE_T;
typedef intptr_t INT_PTR, LONG_PTR;
typedef uintptr_t UINT_PTR, ULONG_PTR, DWORD_PTR, KAFFINITY;

typedef void *PVOID, *LPVOID, *HANDLE, **PHANDLE, **LPHANDLE, *HMODULE, *HINSTANCE;
typedef const void *LPCVOID;
typedef BOOL *PBOOL, *LPBOOL;
typedef INT *PINT, *LPINT;
typedef LONG *PLONG, *LPLONG;
typedef ULONG *PULONG;
typedef DWORD *PDWORD, *LPDWORD;
typedef USHORT *PUSHORT;
typedef BYTE *PBYTE, *LPBYTE;
typedef UINT64 *PUINT64;
typedef SIZE_T *PSIZE_T;
typedef ULONG_PTR *PULONG_PTR;
typedef KAFFINITY *PKAFFINITY;
typedef CHAR *PSTR, *LPSTR;
typedef const CHAR *PCSTR, *LPCSTR;
typedef WCHAR *PWSTR, *LPWSTR;
typedef const WCHAR *PCWSTR, *LPCWSTR;
typedef INT_PTR(WINAPI *FARPROC)(void);

#ifdef UNICODE
typedef WCHAR TCHAR;
#define TEXT(quote) u##quote
#else
typedef CHAR TCHAR;
#define TEXT(quote) quote
#endif
typedef TCHAR *LPTSTR;
typedef const TCHAR *LPCTSTR;

#define INVALID_HANDLE_VALUE ((HANDLE)(LONG_PTR)-1)
#define MAX_PATH 260
#define MAKEWORD(low, high) ((WORD)(((WORD)(low)&0xFF) | (((WORD)(high)&0xFF) << 8)))
#define ZeroMemory(destination, length) memset((destination), 0, (length))
#define UNREFERENCED_PARAMETER(p) ((void)(p))

/* ---- overlapped requests ---- */

/* One asynchronous request. The caller owns it and keeps it in place until the request completed.
 * Internal: NTSTATUS of the request, STATUS_PENDING while it runs. InternalHigh: byte count.
 * hEvent: event to signal, or NULL; with its lowest bit set no completion packet is queued. */
typedef struct _OVERLAPPED {
    ULONG_PTR Internal;
    ULONG_PTR InternalHigh;
    __extension__ union {
        __extension__ struct {
            DWORD Offset;
            DWORD OffsetHigh;
        };
        PVOID Pointer;
    };
    HANDLE hEvent;
} OVERLAPPED, *LPOVERLAPPED;

typedef struct _OVERLAPPED_ENTRY {
    ULONG_PTR lpCompletionKey;
    LPOVERLAPPED lpOverlapped;
    ULONG_PTR Internal; /* NTSTATUS of the packet, zero-extended */
    DWORD dwNumberOfBytesTransferred;
} OVERLAPPED_ENTRY, *LPOVERLAPPED_ENTRY;

typedef struct _SECURITY_ATTRIBUTES {
    DWORD nLength;
    LPVOID lpSecurityDescriptor;
    BOOL bInheritHandle;
} SECURITY_ATTRIBUTES, *PSECURITY_ATTRIBUTES, *LPSECURITY_ATTRIBUTES;

typedef struct _GROUP_AFFINITY {
    KAFFINITY Mask;
    WORD Group;
    WORD Reserved[3];
} GROUP_AFFINITY, *PGROUP_AFFINITY;

/* ---- socket addresses ---- */

typedef int SOCKET;
#define INVALID_SOCKET ((SOCKET)-1)

typedef USHORT ADDRESS_FAMILY;
typedef struct sockaddr SOCKADDR, *PSOCKADDR, *LPSOCKADDR;
#ifdef SOFTND_KERNEL_TYPES /* IPv4 addresses with the member names of Windows beside the system's  \
                            */
typedef struct softnd_in_addr {
    __extension__ union {
        ULONG s_addr;
        union {
            struct {
                UCHAR s_b1, s_b2, s_b3, s_b4;
            } S_un_b;
            struct {
                USHORT s_w1, s_w2;
            } S_un_w;
            ULONG S_addr;
        } S_un;
    };
} IN_ADDR, *PIN_ADDR;
typedef struct softnd_sockaddr_in {
    ADDRESS_FAMILY sin_family;
    USHORT sin_port;
    IN_ADDR sin_addr;
    CHAR sin_zero[8];
} SOCKADDR_IN, *PSOCKADDR_IN;
#else
typedef struct sockaddr_in SOCKADDR_IN, *PSOCKADDR_IN;
typedef struct in_addr IN_ADDR;
#endif
typedef struct sockaddr_in6 SOCKADDR_IN6, *PSOCKADDR_IN6;
typedef struct sockaddr_storage SOCKADDR_STORAGE, *PSOCKADDR_STORAGE;
typedef struct in6_addr IN6_ADDR;

typedef union _SOCKADDR_INET {
    SOCKADDR_IN Ipv4;
    SOCKADDR_IN6 Ipv6;
    ADDRESS_FAMILY si_family;
} SOCKADDR_INET, *PSOCKADDR_INET;

typedef struct _SOCKET_ADDRESS {
    LPSOCKADDR lpSockaddr;
    INT iSockaddrLength;
} SOCKET_ADDRESS, *PSOCKET_ADDRESS, *LPSOCKET_ADDRESS;

/* iAddressCount elements follow each other in Address, however long the declared array is. */
typedef struct _SOCKET_ADDRESS_LIST {
    INT iAddressCount;
    SOCKET_ADDRESS Address[1];
} SOCKET_ADDRESS_LIST, *PSOCKET_ADDRESS_LIST, *LPSOCKET_ADDRESS_LIST;

/* ---- the provider catalog ---- */

#define MAX_PROTOCOL_CHAIN 7
#define BASE_PROTOCOL 1
#define LAYERED_PROTOCOL 0
#define WSAPROTOCOL_LEN 255

typedef struct _WSAPROTOCOLCHAIN {
    INT ChainLen;
    DWORD ChainEntries[MAX_PROTOCOL_CHAIN];
} WSAPROTOCOLCHAIN, *LPWSAPROTOCOLCHAIN;

typedef struct _WSAPROTOCOL_INFOW {
    DWORD dwServiceFlags1; /* XP1_* */
    DWORD dwServiceFlags2;
    DWORD dwServiceFlags3;
    DWORD dwServiceFlags4;
    DWORD dwProviderFlags; /* PFL_* */
    GUID ProviderId;
    DWORD dwCatalogEntryId;
    WSAPROTOCOLCHAIN ProtocolChain;
    INT iVersion;
    INT iAddressFamily;
    INT iMaxSockAddr; /* bytes */
    INT iMinSockAddr; /* bytes */
    INT iSocketType;
    INT iProtocol;
    INT iProtocolMaxOffset;
    INT iNetworkByteOrder;
    INT iSecurityScheme;
    DWORD dwMessageSize;
    DWORD dwProviderReserved;
    WCHAR szProtocol[WSAPROTOCOL_LEN + 1]; /* zero-terminated */
} WSAPROTOCOL_INFOW, *LPWSAPROTOCOL_INFOW;

#define XP1_CONNECTIONLESS 0x00000001
#define XP1_GUARANTEED_DELIVERY 0x00000002
#define XP1_GUARANTEED_ORDER 0x00000004
#define XP1_MESSAGE_ORIENTED 0x00000008
#define XP1_PSEUDO_STREAM 0x00000010
#define XP1_GRACEFUL_CLOSE 0x00000020
#define XP1_EXPEDITED_DATA 0x00000040
#define XP1_CONNECT_DATA 0x00000080
#define XP1_DISCONNECT_DATA 0x00000100

#define PFL_MULTIPLE_PROTO_ENTRIES 0x00000001
#define PFL_RECOMMENDED_PROTO_ENTRY 0x00000002
#define PFL_HIDDEN 0x00000004
#define PFL_MATCHES_PROTOCOL_ZERO 0x00000008
#define PFL_NETWORKDIRECT_PROVIDER 0x00000010

#define BIGENDIAN 0x0000
#define LITTLEENDIAN 0x0001
#define SECURITY_PROTOCOL_NONE 0x0000

/* ---- COM: an interface is a pointer to a pointer to a table of functions ---- */

/* One declaration serves both languages. In C++ it is an abstract class, in C a struct with a
 * pointer lpVtbl to a struct of function pointers whose first argument is the object. Before each
 * interface, INTERFACE is defined to its name. A derived interface repeats the methods of its
 * bases; in C++ they stay in the slots they had. */
/* clang-format off */

#if defined(__cplusplus) && !defined(CINTERFACE)
#define STDMETHOD(method) virtual HRESULT STDMETHODCALLTYPE method
#define STDMETHOD_(type, method) virtual type STDMETHODCALLTYPE method
#define PURE = 0
#define THIS_
#define THIS void
#define DECLARE_INTERFACE(iface) struct iface
#define DECLARE_INTERFACE_(iface, base) struct iface : public base
#else
#define STDMETHOD(method) HRESULT(STDMETHODCALLTYPE *method)
#define STDMETHOD_(type, method) type(STDMETHODCALLTYPE *method)
#define PURE
#define THIS_ INTERFACE *This,
#define THIS INTERFACE *This
#define DECLARE_INTERFACE(iface)                                                                   \
    typedef struct iface##Vtbl iface##Vtbl;                                                        \
    typedef struct iface {                                                                         \
        const iface##Vtbl *lpVtbl;                                                                 \
    } iface;                                                                                       \
    struct iface##Vtbl
#define DECLARE_INTERFACE_(iface, base) DECLARE_INTERFACE(iface)
#endif

typedef struct IUnknown IUnknown;
typedef IUnknown *LPUNKNOWN;
typedef struct IClassFactory IClassFactory;
typedef IClassFactory *LPCLASSFACTORY;

/* Every object. QueryInterface gives another interface of the same object, with a reference that
 * the caller owns: S_OK; E_NOINTERFACE (*ppv is NULL); E_POINTER. AddRef and Release return the
 * new count; the object ends when it reaches 0. All three from any thread; none blocks. */
#undef INTERFACE
#define INTERFACE IUnknown
DECLARE_INTERFACE(IUnknown) {
    STDMETHOD(QueryInterface)(THIS_ REFIID riid, void **ppv) PURE;
    STDMETHOD_(ULONG, AddRef)(THIS) PURE;
    STDMETHOD_(ULONG, Release)(THIS) PURE;
};

/* Makes objects of one class. CreateInstance: pUnkOuter is NULL (else CLASS_E_NOAGGREGATION); the
 * caller owns *ppv. LockServer(TRUE) keeps the library loaded until LockServer(FALSE). */
#undef INTERFACE
#define INTERFACE IClassFactory
DECLARE_INTERFACE_(IClassFactory, IUnknown) {
    STDMETHOD(QueryInterface)(THIS_ REFIID riid, void **ppv) PURE;
    STDMETHOD_(ULONG, AddRef)(THIS) PURE;
    STDMETHOD_(ULONG, Release)(THIS) PURE;
    STDMETHOD(CreateInstance)(THIS_ IUnknown *pUnkOuter, REFIID riid, void **ppv) PURE;
    STDMETHOD(LockServer)(THIS_ BOOL fLock) PURE;
};
#undef INTERFACE

    /* clang-format on */

#if !defined(__cplusplus) || defined(CINTERFACE)
#define IUnknown_QueryInterface(This, riid, ppv) ((This)->lpVtbl->QueryInterface(This, riid, ppv))
#define IUnknown_AddRef(This) ((This)->lpVtbl->AddRef(This))
#define IUnknown_Release(This) ((This)->lpVtbl->Release(This))
#define IClassFactory_QueryInterface(This, riid, ppv)                                              \
    ((This)->lpVtbl->QueryInterface(This, riid, ppv))
#define IClassFactory_AddRef(This) ((This)->lpVtbl->AddRef(This))
#define IClassFactory_Release(This) ((This)->lpVtbl->Release(This))
#define IClassFactory_CreateInstance(This, pUnkOuter, riid, ppv)                                   \
    ((This)->lpVtbl->CreateInstance(This, pUnkOuter, riid, ppv))
#define IClassFactory_LockServer(This, fLock) ((This)->lpVtbl->LockServer(This, fLock))
#endif

/* On Windows these two live in a system library; here every file has a weak copy of its own. */
SOFTND_GUID(IID_IUnknown, 0x00000000, 0x0000, 0x0000, 0xC0, 0, 0, 0, 0, 0, 0, 0x46);
SOFTND_GUID(IID_IClassFactory, 0x00000001, 0x0000, 0x0000, 0xC0, 0, 0, 0, 0, 0, 0, 0x46);

#endif
