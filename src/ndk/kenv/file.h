/* SPDX-License-Identifier: MIT
 * file.h - where the files of ZwCreateFile are.
 * Owns:    the directory's name.   Threads: before the consumer starts.   Errors: false: too long.
 */
#ifndef SN_NDK_KENV_FILE_H
#define SN_NDK_KENV_FILE_H

#include <stdbool.h>

bool ke_files_in(const char *directory);

#endif
