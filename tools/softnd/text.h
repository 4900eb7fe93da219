/* SPDX-License-Identifier: MIT
 * text.h - numbers, addresses and names between the user and the program.
 * Owns:    nothing; all results go to the caller's memory.
 * Threads: any.   Errors: false for text that does not parse.
 */
#ifndef TOOL_TEXT_H
#define TOOL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "ndspi.h"

/* "65536", "64K", "1M", "2G" (powers of 1024; an i and a B may follow). */
bool text_parse_size(const char *text, uint64_t *bytes);
/* A plain decimal number. */
bool text_parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out);
/* Seconds with an optional fraction and an optional unit: "2", "0.5", "100ms", "20us". */
bool text_parse_seconds(const char *text, double *seconds);

#define TEXT_HOST_MAX 256
#define TEXT_ADDR_MAX 80

/* "host", "host:7571", "1.2.3.4:5", "fe80::1%eth0", "[::1]:5", ":5" (host empty). *port is left
 * alone when there is none. */
bool text_split_host(const char *text, char host[TEXT_HOST_MAX], uint16_t *port);

/* "1.2.3.4:5", "[fe80::1%2]:5"; the port is left out when it is 0. */
void text_from_sockaddr(const struct sockaddr *sa, char out[TEXT_ADDR_MAX]);

/* "5.00 GB/s", "12.3 MB" and so on, powers of 1000. */
void text_from_bytes(double bytes, char *out, size_t room);

#define TEXT_GUID_MAX 40
void text_from_guid(const GUID *guid, char out[TEXT_GUID_MAX]); /* {...}, upper case */
bool text_parse_guid(const char *text, GUID *guid);             /* braces may be missing */

/* Between UTF-8 and the catalog's 16-bit units; false if it does not fit, out is then empty. */
bool text_from_wide(const WCHAR *wide, char *out, size_t room);
bool text_to_wide(const char *text, WCHAR *out, size_t units);

/* A JSON string with its quotes. */
void text_print_json(FILE *to, const char *text);

#endif
