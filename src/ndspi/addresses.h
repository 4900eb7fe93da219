/* SPDX-License-Identifier: MIT
 * addresses.h - socket addresses and caller's buffers that cross the interface.
 * Owns:    the size-query protocol and the layout of SOCKET_ADDRESS_LIST.
 * Threads: pure but for the caller's memory.
 * Errors:  SPI codes; memory of the caller that is not there is ND_ACCESS_VIOLATION.
 */
#ifndef SN_NDSPI_ADDRESSES_H
#define SN_NDSPI_ADDRESSES_H

#include "os/io/addr.h"
#include "softnd.h"

/* Reads a caller's address. `position` is that of the pointer in the parameter list, the length
 * follows it: NULL and too short are ND_INVALID_PARAMETER_n. Neither IPv4 nor IPv6: other_family.
 */
HRESULT ndspi_addr_read(const struct sockaddr *sa, ULONG cb, unsigned position,
                        HRESULT other_family, struct os_addr *out);

/* Answers a size query with a fixed answer: ND_SUCCESS, ND_BUFFER_OVERFLOW with *pcb set. buf NULL
 * is too small whatever *pcb says (unless there is nothing to write). */
HRESULT ndspi_answer(const void *answer, ULONG bytes, void *buf, ULONG *pcb);
HRESULT ndspi_addr_answer(const struct os_addr *a, struct sockaddr *buf, ULONG *pcb);
HRESULT ndspi_addr_list_answer(const struct os_addr *addrs, size_t count, SOCKET_ADDRESS_LIST *buf,
                               ULONG *pcb);

#endif
