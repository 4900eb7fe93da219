/* SPDX-License-Identifier: MIT
 * addresses.c - see addresses.h.
 */
#include <string.h>
#include "base/base.h"
#include "ndspi/addresses.h"
#include "ndspi/status.h"
#include "os/prim/pages.h"

HRESULT ndspi_addr_read(const struct sockaddr *sa, ULONG cb, unsigned position,
                        HRESULT other_family, struct os_addr *out) {
    if (!sa) return ndspi_bad_param(position);
    if (cb < sizeof(struct sockaddr_in)) return ndspi_bad_param(position + 1);
    uint8_t copy[OS_SOCKADDR_MAX];
    ULONG have = SN_MIN(cb, (ULONG)sizeof(struct sockaddr_in));
    if (!os_guarded_copy(copy, sa, have)) return ND_ACCESS_VIOLATION;
    struct sockaddr head;
    memcpy(&head, copy, sizeof head);
    if (head.sa_family == AF_INET6) {
        have = (ULONG)sizeof(struct sockaddr_in6);
        if (cb < have) return ndspi_bad_param(position + 1);
        if (!os_guarded_copy(copy, sa, have)) return ND_ACCESS_VIOLATION;
    } else if (head.sa_family != AF_INET) {
        return other_family;
    }
    return os_addr_from_sockaddr(out, copy, have) == SN_OK ? ND_SUCCESS : other_family;
}

HRESULT ndspi_answer(const void *answer, ULONG bytes, void *buf, ULONG *pcb) {
    ULONG room = buf ? *pcb : 0;
    *pcb = bytes;
    if (room < bytes) return ND_BUFFER_OVERFLOW;
    if (bytes > 0 && !os_guarded_copy(buf, answer, bytes)) return ND_ACCESS_VIOLATION;
    return ND_SUCCESS;
}

HRESULT ndspi_addr_answer(const struct os_addr *a, struct sockaddr *buf, ULONG *pcb) {
    uint8_t sa[OS_SOCKADDR_MAX];
    size_t bytes = os_addr_to_sockaddr(a, sa);
    return ndspi_answer(sa, (ULONG)bytes, buf, pcb);
}

/* Bytes of the array part: at least the whole structure, so that there is always a count to read
 * and never an answer of nothing. */
static size_t list_head_bytes(size_t count) {
    size_t bytes = offsetof(SOCKET_ADDRESS_LIST, Address) + count * sizeof(SOCKET_ADDRESS);
    return SN_MAX(bytes, sizeof(SOCKET_ADDRESS_LIST));
}

struct fill {
    const struct os_addr *addrs;
    size_t count;
    SOCKET_ADDRESS_LIST *list;
};

/* Runs guarded: the buffer is the caller's. */
static void fill_list(void *arg) {
    const struct fill *f = arg;
    char *next = (char *)f->list + list_head_bytes(f->count);
    f->list->iAddressCount = (INT)f->count;
    for (size_t i = 0; i < f->count; i++) {
        uint8_t sa[OS_SOCKADDR_MAX];
        size_t bytes = os_addr_to_sockaddr(&f->addrs[i], sa);
        memcpy(next, sa, bytes);
        f->list->Address[i].lpSockaddr = (struct sockaddr *)next;
        f->list->Address[i].iSockaddrLength = (INT)bytes;
        next += bytes;
    }
}

HRESULT ndspi_addr_list_answer(const struct os_addr *addrs, size_t count, SOCKET_ADDRESS_LIST *buf,
                               ULONG *pcb) {
    size_t bytes = list_head_bytes(count);
    for (size_t i = 0; i < count; i++)
        bytes += os_addr_sockaddr_size(&addrs[i]);
    if (bytes > UINT32_MAX) return ND_INSUFFICIENT_RESOURCES;
    ULONG room = buf ? *pcb : 0;
    *pcb = (ULONG)bytes;
    if (room < bytes) return ND_BUFFER_OVERFLOW;
    struct fill f = { addrs, count, buf };
    return os_guarded_call(fill_list, &f) ? ND_SUCCESS : ND_ACCESS_VIOLATION;
}
