/* SPDX-License-Identifier: MIT
 * registrar.h - Winsock Kernel registrations, inside libsoftndk.
 * Owns:    the leak report.   Threads: any.   Errors: none.
 */
#ifndef SN_NDK_REGISTRAR_H
#define SN_NDK_REGISTRAR_H

/* Reports clients that were never deregistered, and forgets them. Returns how many. */
int ndk_wsk_leaks(void);

#endif
