/* SPDX-License-Identifier: MIT
 * catalog_text.c - the text of a catalog file: "key = value" lines, a head, then one [entry]
 * section per WSAPROTOCOL_INFOW, then a last line that shows that nothing is missing.
 */
#include "winapi/catalog.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "winapi/object.h"

#define FORMAT_VERSION 1

/* Every number of a WSAPROTOCOL_INFOW but ProviderId, which is the provider's own. */
enum radix { DEC, HEX };
static const struct field {
    const char *key;
    size_t offset;
    enum radix radix; /* DEC: signed */
} fields[] = {
#define FIELD(key, member, radix)                                                                  \
    { key, offsetof(WSAPROTOCOL_INFOW, member), radix }
    FIELD("service_flags1", dwServiceFlags1, HEX),
    FIELD("service_flags2", dwServiceFlags2, HEX),
    FIELD("service_flags3", dwServiceFlags3, HEX),
    FIELD("service_flags4", dwServiceFlags4, HEX),
    FIELD("provider_flags", dwProviderFlags, HEX),
    FIELD("catalog_entry_id", dwCatalogEntryId, HEX),
    FIELD("chain_length", ProtocolChain.ChainLen, DEC),
    FIELD("chain_entry1", ProtocolChain.ChainEntries[0], HEX),
    FIELD("chain_entry2", ProtocolChain.ChainEntries[1], HEX),
    FIELD("chain_entry3", ProtocolChain.ChainEntries[2], HEX),
    FIELD("chain_entry4", ProtocolChain.ChainEntries[3], HEX),
    FIELD("chain_entry5", ProtocolChain.ChainEntries[4], HEX),
    FIELD("chain_entry6", ProtocolChain.ChainEntries[5], HEX),
    FIELD("chain_entry7", ProtocolChain.ChainEntries[6], HEX),
    FIELD("version", iVersion, HEX),
    FIELD("address_family", iAddressFamily, DEC),
    FIELD("max_sockaddr", iMaxSockAddr, DEC),
    FIELD("min_sockaddr", iMinSockAddr, DEC),
    FIELD("socket_type", iSocketType, DEC),
    FIELD("protocol", iProtocol, DEC),
    FIELD("protocol_max_offset", iProtocolMaxOffset, DEC),
    FIELD("network_byte_order", iNetworkByteOrder, DEC),
    FIELD("security_scheme", iSecurityScheme, DEC),
    FIELD("message_size", dwMessageSize, HEX),
    FIELD("provider_reserved", dwProviderReserved, HEX),
#undef FIELD
};
#define NAME_BIT (1u << SN_ARRAY_LEN(fields))
#define ALL_BITS (NAME_BIT | (NAME_BIT - 1))
#define NAME_BYTES (3 * WSAPROTOCOL_LEN + 1) /* UTF-8 of the longest szProtocol */

const char wa_no_memory[] = "out of memory";

void wa_provider_fini(struct wa_provider *p) {
    free(p->path);
    free(p->entries);
    free(p->file);
    memset(p, 0, sizeof *p);
}

/* ---- GUIDs ---- */

void wa_guid_format(char text[WA_GUID_TEXT_BYTES], const GUID *id) {
    const uint8_t *d = id->Data4;
    snprintf(text, WA_GUID_TEXT_BYTES, "{%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x}",
             (unsigned)id->Data1, id->Data2, id->Data3, d[0], d[1], d[2], d[3], d[4], d[5], d[6],
             d[7]);
}

bool wa_guid_parse(GUID *id, const char *text) {
    static const char shape[] = "{xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx}";
    uint8_t nibbles[32];
    size_t n = 0;
    for (size_t i = 0; i < sizeof shape; i++) { /* with the terminator */
        char c = text[i];
        if (shape[i] != 'x') {
            if (c != shape[i]) return false;
            continue;
        }
        if (!isxdigit((unsigned char)c)) return false;
        nibbles[n++] = (uint8_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    uint8_t b[16];
    for (size_t i = 0; i < 16; i++)
        b[i] = (uint8_t)(nibbles[2 * i] << 4 | nibbles[2 * i + 1]);
    id->Data1 = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    id->Data2 = (uint16_t)(b[4] << 8 | b[5]);
    id->Data3 = (uint16_t)(b[6] << 8 | b[7]);
    memcpy(id->Data4, b + 8, 8);
    return true;
}

/* ---- writing ---- */

static uint32_t get_field(const WSAPROTOCOL_INFOW *e, const struct field *f) {
    uint32_t v;
    memcpy(&v, (const char *)e + f->offset, sizeof v);
    return v;
}

static void print_entry(FILE *out, const WSAPROTOCOL_INFOW *e) {
    char name[NAME_BYTES];
    fputs("\n[entry]\n", out);
    if (wa_utf8_from_utf16(name, sizeof name, e->szProtocol) < 0) name[0] = 0;
    fprintf(out, "name = %s\n", name);
    for (size_t i = 0; i < SN_ARRAY_LEN(fields); i++) {
        uint32_t v = get_field(e, &fields[i]);
        if (fields[i].radix == HEX)
            fprintf(out, "%s = 0x%08x\n", fields[i].key, v);
        else
            fprintf(out, "%s = %d\n", fields[i].key, (int32_t)v);
    }
}

char *wa_provider_format(const struct wa_provider *p) {
    char *text = NULL, guid[WA_GUID_TEXT_BYTES];
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out) return NULL;
    wa_guid_format(guid, &p->id);
    fprintf(out, "# A NetworkDirect provider. Written by WSCInstallProvider.\n");
    fprintf(out, "format = %d\nprovider = %s\npath = %s\n", FORMAT_VERSION, guid, p->path);
    for (DWORD i = 0; i < p->count; i++)
        print_entry(out, &p->entries[i]);
    fprintf(out, "\n[end]\nentries = %u\n", (unsigned)p->count);
    bool bad = ferror(out) != 0;
    if (fclose(out) == 0 && !bad) return text;
    free(text);
    return NULL;
}

/* ---- reading ---- */

enum section { IN_HEAD, IN_ENTRY, IN_END };

struct parser {
    struct wa_provider *p;
    enum section section;
    bool has_format, has_id, complete;
    uint32_t seen; /* fields of the present entry, a bit each */
};

static bool parse_number(uint32_t *out, const char *text, enum radix radix) {
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 0);
    if (end == text || *end || errno) return false;
    if (radix == HEX ? v < 0 || v > UINT32_MAX : v < INT32_MIN || v > INT32_MAX) return false;
    *out = (uint32_t)v;
    return true;
}

static const char *parse_head(struct parser *s, const char *key, const char *value) {
    uint32_t version;
    if (strcmp(key, "format") == 0) {
        if (!parse_number(&version, value, DEC) || version != FORMAT_VERSION)
            return "not a format that this version reads";
        s->has_format = true;
    } else if (strcmp(key, "provider") == 0) {
        if (s->has_id || !wa_guid_parse(&s->p->id, value)) return "not one provider GUID";
        s->has_id = true;
    } else if (strcmp(key, "path") == 0) {
        if (s->p->path || !*value) return "not one path";
        s->p->path = strdup(value);
        if (!s->p->path) return wa_no_memory;
    }
    return NULL;
}

static const char *parse_field(struct parser *s, const char *key, const char *value) {
    WSAPROTOCOL_INFOW *e = &s->p->entries[s->p->count - 1];
    if (strcmp(key, "name") == 0) {
        if (wa_utf16_from_utf8(e->szProtocol, WSAPROTOCOL_LEN + 1, value) < 0)
            return "the name is too long or not UTF-8";
        s->seen |= NAME_BIT;
        return NULL;
    }
    for (uint32_t i = 0; i < SN_ARRAY_LEN(fields); i++) {
        if (strcmp(key, fields[i].key) != 0) continue;
        uint32_t v;
        if (!parse_number(&v, value, fields[i].radix)) return "not a 32-bit number";
        memcpy((char *)e + fields[i].offset, &v, sizeof v);
        s->seen |= 1u << i;
        break;
    }
    return NULL;
}

static const char *parse_end(struct parser *s, const char *key, const char *value) {
    uint32_t count;
    if (strcmp(key, "entries") != 0) return NULL;
    if (!parse_number(&count, value, DEC) || count != s->p->count) return "entries are missing";
    s->complete = true;
    return NULL;
}

/* A section ends: is it whole? */
static const char *leave_section(struct parser *s) {
    if (s->section == IN_HEAD && !(s->has_format && s->has_id && s->p->path))
        return "format, provider or path is missing";
    if (s->section == IN_ENTRY && s->seen != ALL_BITS) return "a field of the entry is missing";
    return NULL;
}

static const char *enter_section(struct parser *s, const char *line) {
    const char *wrong = s->section == IN_END ? "text after the end" : leave_section(s);
    if (wrong) return wrong;
    if (strcmp(line, "[end]") == 0) {
        s->section = IN_END;
        return s->p->count == 0 ? "no entry" : NULL;
    }
    if (strcmp(line, "[entry]") != 0) return "unknown section";
    if (s->p->count == WA_PROVIDER_ENTRIES_MAX) return "too many entries";
    s->section = IN_ENTRY;
    s->seen = 0;
    WSAPROTOCOL_INFOW *e = &s->p->entries[s->p->count++];
    memset(e, 0, sizeof *e);
    e->ProviderId = s->p->id;
    return NULL;
}

/* One line, in place: blanks at its ends and around the first '=' do not count. */
static const char *parse_line(struct parser *s, char *line) {
    static const char *(*const handlers[])(struct parser *, const char *, const char *) = {
        [IN_HEAD] = parse_head, [IN_ENTRY] = parse_field, [IN_END] = parse_end
    };
    line += strspn(line, " \t");
    size_t len = strlen(line);
    while (len > 0 && strchr(" \t\r", line[len - 1]))
        line[--len] = 0;
    if (*line == 0 || *line == '#') return NULL;
    if (*line == '[') return enter_section(s, line);
    char *eq = strchr(line, '=');
    if (!eq || eq == line) return "neither a section nor key = value";
    char *key_end = eq;
    while (key_end > line && strchr(" \t", key_end[-1]))
        key_end--;
    *key_end = 0;
    return handlers[s->section](s, line, eq + 1 + strspn(eq + 1, " \t"));
}

const char *wa_provider_parse(struct wa_provider *p, const char *text, unsigned *line) {
    struct parser s = { .p = p };
    const char *wrong = NULL;
    memset(p, 0, sizeof *p);
    *line = 0;
    p->entries = malloc(WA_PROVIDER_ENTRIES_MAX * sizeof *p->entries);
    char *copy = strdup(text);
    if (!copy || !p->entries) wrong = wa_no_memory;
    for (char *next = copy; !wrong && next && *next;) {
        char *this_line = next, *nl = strchr(next, '\n');
        next = nl ? nl + 1 : NULL;
        ++*line;
        if (nl)
            *nl = 0;
        else
            wrong = "the last line is cut off";
        if (!wrong) wrong = parse_line(&s, this_line);
    }
    if (!wrong && !s.complete) wrong = "the end is missing";
    free(copy);
    if (wrong) wa_provider_fini(p);
    return wrong;
}
