/* SPDX-License-Identifier: MIT
 * packet.h - files whose completion port, if the application binds one, gets packets from us.
 * Owns:    how a user-mode library completes an overlapped request on a handle that belongs to the
 *          application: without knowing the port it cannot queue a packet, but an I/O request on
 *          the handle that ends at once makes the system queue one. packet.c says how.
 * Threads: any.   Errors: false when the system has no room.
 */
#ifndef SN_OS_WINDOWS_PACKET_H
#define SN_OS_WINDOWS_PACKET_H

#include <stdbool.h>
#include <winsock2.h>
#include <windows.h>

/* A new file, open for overlapped I/O, not inherited; the caller closes it. */
bool os_packet_file_create(HANDLE *out);
/* A second handle to the same file; false if it is not a file that os_packet_post works on. */
bool os_packet_file_share(HANDLE file, HANDLE *out);
/* The file itself stops being signalled, as it does when a request starts. */
void os_packet_file_clear(HANDLE file);
/* The system now completes a request: the event, or the file if there is none (NULL), is signalled,
 * and the file's port, if it has one, gets a packet with this context (not NULL), as lpOverlapped:
 * a good one, or a failed one with STATUS_CANCELLED, for which GetQueuedCompletionStatus returns
 * FALSE. The packet is in the port when this returns. Does not touch *context. Does not block.
 * False when nothing of it happened. */
bool os_packet_post(HANDLE file, HANDLE event, void *context, bool good);

#endif
