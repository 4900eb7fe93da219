/* SPDX-License-Identifier: MIT
 * catalog.h - the provider catalog inside: one readable file per provider in a directory.
 * Owns:    the file format (catalog_text.c), the directories and how files appear and disappear in
 *          them (catalog_dir.c). The WSC* calls over both are in catalog.c.
 * Threads: any; writers of all processes exclude each other by a lock file per directory, readers
 *          need no lock because a file appears complete or not at all.
 * Errors:  errno values, 0 on success. Files that cannot be used are skipped with a log line.
 */
#ifndef SN_WINAPI_CATALOG_H
#define SN_WINAPI_CATALOG_H

#include "softnd_win32.h"
#include "base/base.h"

#define WA_PROVIDER_ENTRIES_MAX 64u             /* WSAPROTOCOL_INFOW per provider */
#define WA_CATALOG_FILE_BYTES_MAX (256u * 1024) /* a larger file is not one of ours */

/* One provider: what one file holds. */
struct wa_provider {
    GUID id;
    char *path; /* UTF-8, as given by the installer; malloc'd */
    DWORD count;
    WSAPROTOCOL_INFOW *entries; /* malloc'd */
    char *file;                 /* the file it was read from, malloc'd; NULL if from none */
    DWORD scope;                /* SOFTND_CATALOG_* of that file */
};

struct wa_catalog {
    struct wa_provider *providers; /* in catalog order, one per id */
    size_t count;
};

/* Frees what the provider owns and zeroes it. */
void wa_provider_fini(struct wa_provider *p);

/* ---- text ---- */

/* The text of a provider's file, zero-terminated, for free(); NULL if there is no memory. */
char *wa_provider_format(const struct wa_provider *p);

/* Reads such a text. NULL on success; else what is wrong, with *line (from 1), and nothing owned.
 * Keys it does not know are skipped; a file that ends early is wrong. Lack of memory, which says
 * nothing about the text, is the pointer wa_no_memory. */
extern const char wa_no_memory[];
const char *wa_provider_parse(struct wa_provider *p, const char *text, unsigned *line);

/* A GUID as {xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx}. */
#define WA_GUID_TEXT_BYTES 39
void wa_guid_format(char text[WA_GUID_TEXT_BYTES], const GUID *id);
bool wa_guid_parse(GUID *id, const char *text);

/* ---- directories ---- */

/* The system directory; a variable so that tests can have their own. */
extern const char *wa_catalog_system_dir;

/* The directory of a scope, malloc'd: the private one if SOFTND_CATALOG is set, whatever the
 * scope. With SOFTND_CATALOG_AUTO the one a new provider would go to. *scope becomes the scope that
 * it really is. NULL: no memory, or there is no user directory (ENOENT in *error). */
char *wa_catalog_dir(DWORD *scope, int *error);

/* Reads all directories, in order; later files of a known id are skipped. 0 or ENOMEM. */
int wa_catalog_read(struct wa_catalog *c);
void wa_catalog_fini(struct wa_catalog *c);
const struct wa_provider *wa_catalog_find(const struct wa_catalog *c, const GUID *id);

/* Adds the provider's file to the directory, making it if needed; gives the entries their catalog
 * numbers. EEXIST if any directory has the id already. */
int wa_catalog_add(const char *dir, DWORD scope, struct wa_provider *p);
/* Removes the provider's file (or files) from the directory. ENOENT if there is none. */
int wa_catalog_remove(const char *dir, const GUID *id);

#endif
