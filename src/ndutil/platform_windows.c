/* SPDX-License-Identifier: MIT
 * platform_windows.c - Addresses are watched through SIO_ADDRESS_LIST_CHANGE, one socket for each
 * family; the route is asked by connecting a datagram socket, which sends nothing.
 */
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>

#include "platform.h"

#include <string.h>

static SRWLOCK lock = SRWLOCK_INIT;

/* The change request stays with the system until addresses change or the socket is closed. */
static struct watch {
    SOCKET sock;
    HANDLE changed; /* manual reset; NULL when not watching */
    WSAOVERLAPPED ov;
} watches[2];

static const int families[2] = { AF_INET, AF_INET6 };

void ndutil_platform_lock(void) {
    AcquireSRWLockExclusive(&lock);
}

void ndutil_platform_unlock(void) {
    ReleaseSRWLockExclusive(&lock);
}

/* False when the system refuses: then nothing is watched. */
static bool ask_for_change(struct watch *w) {
    DWORD got = 0;

    ResetEvent(w->changed);
    w->ov = (WSAOVERLAPPED){ .hEvent = w->changed };
    return WSAIoctl(w->sock, SIO_ADDRESS_LIST_CHANGE, NULL, 0, NULL, 0, &got, &w->ov, NULL) == 0 ||
           WSAGetLastError() == WSA_IO_PENDING;
}

static void end_watch(struct watch *w) {
    if (w->sock != INVALID_SOCKET && w->changed) {
        DWORD got, flags;
        /* Closing ends the request; what it writes must be written before the event goes. */
        CancelIoEx((HANDLE)w->sock, &w->ov);
        (void)WSAGetOverlappedResult(w->sock, &w->ov, &got, TRUE, &flags);
    }
    if (w->sock != INVALID_SOCKET) closesocket(w->sock);
    if (w->changed) CloseHandle(w->changed);
    *w = (struct watch){ .sock = INVALID_SOCKET };
}

static void begin_watch(struct watch *w, int family) {
    *w = (struct watch){ .sock = INVALID_SOCKET };
    w->changed = CreateEventW(NULL, TRUE, FALSE, NULL);
    if (!w->changed) return;
    w->sock = WSASocketW(family, SOCK_DGRAM, IPPROTO_UDP, NULL, 0,
                         WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
    if (w->sock != INVALID_SOCKET && ask_for_change(w)) return;
    if (w->sock != INVALID_SOCKET) closesocket(w->sock);
    CloseHandle(w->changed);
    *w = (struct watch){ .sock = INVALID_SOCKET };
}

HRESULT ndutil_platform_start(void) {
    WSADATA data;
    int e = WSAStartup(MAKEWORD(2, 2), &data);

    if (e != 0) return HRESULT_FROM_WIN32(e);
    for (int i = 0; i < 2; i++)
        begin_watch(&watches[i], families[i]);
    return S_OK;
}

void ndutil_platform_stop(void) {
    for (int i = 0; i < 2; i++)
        end_watch(&watches[i]);
    WSACleanup();
}

/* A machine without one of the families has nothing to watch there; without both, or when the
 * system ended a request by itself, addresses count as changed. */
bool ndutil_platform_addresses_changed(void) {
    bool changed = false, watching = false;

    for (int i = 0; i < 2; i++) {
        struct watch *w = &watches[i];
        if (!w->changed) continue;
        watching = true;
        if (WaitForSingleObject(w->changed, 0) != WAIT_OBJECT_0) continue;
        changed = true;
        if (!ask_for_change(w)) {
            closesocket(w->sock);
            CloseHandle(w->changed);
            *w = (struct watch){ .sock = INVALID_SOCKET };
        }
    }
    return changed || !watching;
}

static HRESULT status_from_error(int error) {
    switch (error) {
    case WSAEINVAL:
    case WSAEACCES: /* a broadcast address */
    case WSAEADDRNOTAVAIL:
        return ND_INVALID_ADDRESS;
    case WSAENETUNREACH:
    case WSAEHOSTUNREACH:
    case WSAENETDOWN:
        return ND_NETWORK_UNREACHABLE;
    default:
        return ND_UNSUCCESSFUL;
    }
}

static bool is_wildcard(const struct sockaddr *sa) {
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (sa->sa_family == AF_INET) {
        memcpy(&v4, sa, sizeof v4);
        return v4.sin_addr.s_addr == htonl(INADDR_ANY);
    }
    memcpy(&v6, sa, sizeof v6);
    return IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr);
}

static void set_port(struct sockaddr_storage *sa, u_short port) {
    if (sa->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)sa)->sin6_port = port;
    else
        ((struct sockaddr_in *)sa)->sin_port = port;
}

HRESULT ndutil_platform_route(const struct sockaddr *remote, size_t remote_bytes,
                              struct sockaddr *local, size_t *bytes) {
    struct sockaddr_storage sa = { 0 };
    int cb = remote->sa_family == AF_INET6 ? (int)sizeof(struct sockaddr_in6)
                                           : (int)sizeof(struct sockaddr_in);
    HRESULT hr = ND_SUCCESS;
    SOCKET s;

    if (remote_bytes < (size_t)cb || is_wildcard(remote)) return ND_INVALID_ADDRESS;
    memcpy(&sa, remote, (size_t)cb);
    set_port(&sa, htons(9)); /* any: nothing is sent */
    s = WSASocketW(remote->sa_family, SOCK_DGRAM, IPPROTO_UDP, NULL, 0, WSA_FLAG_NO_HANDLE_INHERIT);
    if (s == INVALID_SOCKET)
        return WSAGetLastError() == WSAEAFNOSUPPORT ? ND_NETWORK_UNREACHABLE : ND_UNSUCCESSFUL;
    if (connect(s, (struct sockaddr *)&sa, cb) != 0 ||
        getsockname(s, (struct sockaddr *)&sa, &cb) != 0)
        hr = status_from_error(WSAGetLastError());
    closesocket(s);
    if (hr != ND_SUCCESS) return hr;

    set_port(&sa, 0);
    if (!local || *bytes < (size_t)cb) {
        *bytes = (size_t)cb;
        return ND_BUFFER_OVERFLOW;
    }
    memcpy(local, &sa, (size_t)cb);
    *bytes = (size_t)cb;
    return ND_SUCCESS;
}

bool ndutil_platform_expand(const WCHAR *path, WCHAR *out, size_t units) {
    DWORD n = ExpandEnvironmentStringsW(path, out, (DWORD)units);

    return n != 0 && n <= units;
}

bool ndutil_platform_provider_override(WCHAR *path, size_t units) {
    DWORD n = GetEnvironmentVariableW(L"SOFTND_PROVIDER", path, (DWORD)units);

    return n != 0 && n < units;
}
