/* SPDX-License-Identifier: MIT
 * capture.h - the stream of every connection as packets in a pcapng file, for Wireshark.
 * Owns:    the file (SOFTND_CAPTURE, read once; "%p" in it becomes the process id) and its size
 *          limit (SOFTND_CAPTURE_MAX, bytes, default 1 GiB: what comes later is not recorded).
 * Threads: any; one lock of rank LEAF guards the file and all connections' state, and is held over
 *          the system call of a write, so that the file has answers behind what they answer.
 * Errors:  none reach the connection; the log says why there is no capture.
 *
 * Packets are made from the bytes themselves, not from the network: Ethernet, IP and TCP headers
 * are invented (a handshake, true addresses and ports, running sequence numbers), and each packet
 * holds one start-up frame or one FPDU, whole (in two parts if IP cannot hold it): what Wireshark
 * needs to decode MPA. Every packet is written with one call when it is whole, so the file can be
 * read at any time and after any end of the process. An FPDU that the stream ends in the middle of
 * is written as far as it came. Of a connection with both ends in this process each end records
 * what it sends, so that nothing is there twice.
 */
#ifndef SN_IWARP_CAPTURE_H
#define SN_IWARP_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include "os/io/sock.h"

struct iw_capture; /* one connection's */

/* NULL if nothing is to be captured (or there is no memory for it): the common case, in which no
 * other function of this header may be called. active: this side is the MPA initiator. */
struct iw_capture *iw_capture_create(bool active);
/* Writes what is left. NULL is ignored. */
void iw_capture_destroy(struct iw_capture *cap);
/* A TCP connection is up, the first or (after MPA revision 2 failed) another. */
void iw_capture_start(struct iw_capture *cap, const struct os_addr *local,
                      const struct os_addr *remote);

/* As os_sock_writev and os_sock_readv. */
SN_MUST_CHECK sn_status iw_capture_writev(struct iw_capture *cap, os_sock s,
                                          const struct os_iov *iov, size_t count, size_t *put);
SN_MUST_CHECK sn_status iw_capture_readv(struct iw_capture *cap, os_sock s,
                                         const struct os_iov *iov, size_t count, size_t *got);
/* Our side sent its FIN. */
void iw_capture_shut(struct iw_capture *cap);

/* The first `bytes` octets in the pieces passed in one direction. Memory that is gone counts as
 * zeros. */
void iw_capture_bytes(struct iw_capture *cap, bool outgoing, const struct os_iov *iov,
                      size_t bytes);

#endif
