/* SPDX-License-Identifier: MIT
 * handle.h - handles of threads, keys and files.
 * Owns:    the table of open handles, which makes a wrong one an error and a forgotten one a
 * report. Threads: any.   Errors: NULL when there is no memory, or no such handle.
 */
#ifndef SN_NDK_KENV_HANDLE_H
#define SN_NDK_KENV_HANDLE_H

#include "ndk/kenv/kenv.h"

enum ke_handle_kind { KE_HANDLE_THREAD, KE_HANDLE_KEY, KE_HANDLE_FILE };

/* close(body) runs when the handle is closed. */
HANDLE ke_handle_open(enum ke_handle_kind kind, void *body, void (*close)(void *body));
void *ke_handle_body(HANDLE h, enum ke_handle_kind kind);

#endif
