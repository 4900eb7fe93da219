/* SPDX-License-Identifier: MIT
 * wsc_catalog.h - Winsock's provider catalog for tests: WSCEnumProtocols, WSCGetProviderPath,
 * WSCInstallProvider, WSCDeinstallProvider and WSAProviderConfigChange over a file.
 * Owns:    the file that the environment variable WSC_CATALOG_FILE names. Linked as a static
 * library before ws2_32, so that nothing of the machine is read or changed, and because Wine's own
 *          functions keep no catalog.
 * Threads: one at a time, as in the programs that call them.
 * Errors:  those of the functions they stand for.
 */
#ifndef SN_TESTS_WSC_CATALOG_H
#define SN_TESTS_WSC_CATALOG_H

#include <stdbool.h>
#include <winsock2.h>
#include <ws2spi.h>
#include <windows.h>

#define WSC_CATALOG_FILE L"WSC_CATALOG_FILE"
/* Set to anything: the caller may not change the catalog (WSANO_RECOVERY, as documented). */
#define WSC_CATALOG_NOT_ELEVATED L"WSC_CATALOG_NOT_ELEVATED"

#endif
