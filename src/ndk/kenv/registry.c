/* SPDX-License-Identifier: MIT
 *
 * The registry: keys in one list, by their whole names below \Registry in UTF-8. It is read from
 * and written to a text file in the format that the Windows registry editor exports (UTF-8).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ndk/kenv/handle.h"
#include "ndk/verify/verify.h"
#include "ndk/kenv/registry.h"
#include "os/prim/fault.h"
#include "os/prim/lock.h"
#include "os/prim/thread.h"

enum { NAME_MAX_BYTES = 1024, DATA_MAX_BYTES = 1 << 20, FILE_MAX_BYTES = 1 << 28 };

struct value {
    struct sn_list link;
    char *name;
    ULONG type, len;
    uint8_t *data;
};

struct key {
    struct sn_list link;
    struct sn_list values;
    char *path;
};

static os_once once = OS_ONCE_INIT;
static os_lock lock; /* rank LEAF */
static struct sn_list keys;
static bool changed; /* [lock] since it was loaded or saved */

static const struct root {
    const char *file, *path;
} roots[] = { { "HKEY_LOCAL_MACHINE", "Machine" }, { "HKEY_USERS", "User" } };

static struct key *make_key_locked(const char *path);

static void init(void) {
    os_lock_init(&lock, OS_RANK_LEAF);
    sn_list_init(&keys);
    make_key_locked("Machine\\Software");
    make_key_locked("Machine\\System\\CurrentControlSet\\Services\\softndk");
    make_key_locked("User");
}

static void enter(const char *call) {
    os_once_run(&once, init);
    if (call && ndk_verifying()) ke_call_enter(call, PASSIVE_LEVEL);
    os_lock_enter(&lock);
}

/* ---- names ---- */

static bool same_name(const char *a, const char *b) {
    for (;; a++, b++) {
        int x = *a >= 'A' && *a <= 'Z' ? *a + 32 : *a, y = *b >= 'A' && *b <= 'Z' ? *b + 32 : *b;
        if (x != y) return false;
        if (!x) return true;
    }
}

static char *copy_text(const char *s, size_t n) {
    char *p = os_zalloc(n + 1);
    if (p) memcpy(p, s, n);
    return p;
}

/* UTF-16 to UTF-8; false if it does not fit or is not text. */
static bool narrow(const WCHAR *s, size_t units, char *out, size_t room) {
    size_t at = 0;
    for (size_t i = 0; i < units; i++) {
        uint32_t c = s[i];
        if (c == 0 || (c >= 0xDC00 && c < 0xE000)) return false;
        if (c >= 0xD800 && c < 0xDC00) {
            if (i + 1 == units || s[i + 1] < 0xDC00 || s[i + 1] >= 0xE000) return false;
            c = 0x10000 + ((c - 0xD800) << 10) + (s[++i] - 0xDC00u);
        }
        uint8_t b[4];
        size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        for (size_t k = n; k-- > 1; c >>= 6)
            b[k] = (uint8_t)(0x80 | (c & 0x3F));
        b[0] = (uint8_t)(n == 1 ? c : n == 2 ? 0xC0 | c : n == 3 ? 0xE0 | c : 0xF0 | c);
        if (n >= room - at) return false;
        memcpy(out + at, b, n);
        at += n;
    }
    out[at] = 0;
    return true;
}

/* UTF-8 of a file to UTF-16, with a terminator; returns units, 0 if it is not valid. */
static size_t widen(const char *s, size_t len, WCHAR *out) {
    size_t units = 0;
    for (size_t i = 0; i < len;) {
        uint8_t b = (uint8_t)s[i];
        size_t n = b < 0x80 ? 1 : b >= 0xC2 && b < 0xE0 ? 2 : (b & 0xF0) == 0xE0 ? 3 : 4;
        if ((b >= 0x80 && b < 0xC2) || b > 0xF4 || n > len - i) return 0;
        uint32_t c = n == 1 ? b : b & (0xFFu >> (n + 1));
        for (size_t k = 1; k < n; k++) {
            if (((uint8_t)s[i + k] & 0xC0) != 0x80) return 0;
            c = c << 6 | ((uint8_t)s[i + k] & 0x3F);
        }
        i += n;
        if (c >= 0x10000) {
            if (c > 0x10FFFF) return 0;
            out[units++] = (WCHAR)(0xD800 + ((c - 0x10000) >> 10));
            c = 0xDC00 + ((c - 0x10000) & 0x3FF);
        }
        out[units++] = (WCHAR)c;
    }
    out[units++] = 0;
    return units;
}

/* The name below \Registry of what the attributes say. */
static NTSTATUS full_name(const OBJECT_ATTRIBUTES *oa, char out[NAME_MAX_BYTES]) {
    static const char top[] = "\\Registry\\";
    char name[NAME_MAX_BYTES];
    if (!oa || !oa->ObjectName || (oa->ObjectName->Length & 1)) return STATUS_INVALID_PARAMETER;
    if (!narrow(oa->ObjectName->Buffer, oa->ObjectName->Length / 2, name, sizeof name))
        return STATUS_OBJECT_NAME_INVALID;
    size_t n = strlen(name);
    while (n && name[n - 1] == '\\')
        name[--n] = 0;
    if (oa->RootDirectory) {
        struct key *root = ke_handle_body(oa->RootDirectory, KE_HANDLE_KEY);
        if (!root) return STATUS_INVALID_HANDLE;
        int len = snprintf(out, NAME_MAX_BYTES, n ? "%s\\%s" : "%s%s", root->path, name);
        return len < NAME_MAX_BYTES ? STATUS_SUCCESS : STATUS_OBJECT_NAME_INVALID;
    }
    char head[sizeof top];
    memcpy(head, name, sizeof head - 1);
    head[sizeof head - 1] = 0;
    if (n < sizeof top || !same_name(head, top)) return STATUS_OBJECT_PATH_SYNTAX_BAD;
    memcpy(out, name + sizeof top - 1, n - sizeof top + 2);
    return STATUS_SUCCESS;
}

/* ---- keys and values ---- */

static struct key *find_key_locked(const char *path) {
    SN_LIST_FOR(it, &keys) {
        struct key *k = SN_CONTAINER(it, struct key, link);
        if (same_name(k->path, path)) return k;
    }
    return NULL;
}

static struct key *add_key_locked(const char *path, size_t len) {
    struct key *k = os_zalloc(sizeof *k);
    if (!k) return NULL;
    k->path = copy_text(path, len);
    if (!k->path) {
        os_free(k);
        return NULL;
    }
    sn_list_init(&k->values);
    sn_list_push_back(&keys, &k->link);
    return k;
}

/* With its parents. NULL: no memory. */
static struct key *make_key_locked(const char *path) {
    char part[NAME_MAX_BYTES];
    struct key *k = NULL;
    for (size_t i = 1; i <= strlen(path); i++) {
        if (path[i] != '\\' && path[i] != 0) continue;
        memcpy(part, path, i);
        part[i] = 0;
        k = find_key_locked(part);
        if (!k) k = add_key_locked(path, i);
        if (!k) return NULL;
    }
    return k;
}

static struct value *find_value_locked(struct key *k, const char *name) {
    SN_LIST_FOR(it, &k->values) {
        struct value *v = SN_CONTAINER(it, struct value, link);
        if (same_name(v->name, name)) return v;
    }
    return NULL;
}

static NTSTATUS set_value_locked(struct key *k, const char *name, ULONG type, const void *data,
                                 ULONG len) {
    uint8_t *copy = os_zalloc(len ? len : 1);
    if (!copy) return STATUS_INSUFFICIENT_RESOURCES;
    if (len) memcpy(copy, data, len);
    struct value *v = find_value_locked(k, name);
    if (!v) {
        v = os_zalloc(sizeof *v);
        if (v) v->name = copy_text(name, strlen(name));
        if (!v || !v->name) {
            os_free(v);
            os_free(copy);
            return STATUS_INSUFFICIENT_RESOURCES;
        }
        sn_list_push_back(&k->values, &v->link);
    }
    os_free(v->data);
    v->data = copy;
    v->type = type;
    v->len = len;
    return STATUS_SUCCESS;
}

static void free_value(struct value *v) {
    sn_list_remove(&v->link);
    os_free(v->name);
    os_free(v->data);
    os_free(v);
}

/* ---- the routines ---- */

static void close_key(void *body) {
    (void)body; /* keys stay */
}

static NTSTATUS open_key(const char *call, PHANDLE out, POBJECT_ATTRIBUTES oa, bool create,
                         PULONG disposition) {
    char path[NAME_MAX_BYTES];
    if (!out) return STATUS_INVALID_PARAMETER;
    NTSTATUS status = full_name(oa, path);
    if (status != STATUS_SUCCESS) return status;
    enter(call);
    struct key *k = find_key_locked(path);
    ULONG how = k ? REG_OPENED_EXISTING_KEY : REG_CREATED_NEW_KEY;
    if (!k && create) k = make_key_locked(path);
    os_lock_leave(&lock);
    if (!k) return create ? STATUS_INSUFFICIENT_RESOURCES : STATUS_OBJECT_NAME_NOT_FOUND;
    *out = ke_handle_open(KE_HANDLE_KEY, k, close_key);
    if (!*out) return STATUS_INSUFFICIENT_RESOURCES;
    if (disposition) *disposition = how;
    return STATUS_SUCCESS;
}

NTSTATUS ZwCreateKey(PHANDLE out, ACCESS_MASK access, POBJECT_ATTRIBUTES oa, ULONG title,
                     PUNICODE_STRING class_name, ULONG options, PULONG disposition) {
    (void)access;
    (void)title;
    (void)class_name;
    (void)options;
    return open_key("ZwCreateKey", out, oa, true, disposition);
}

NTSTATUS ZwOpenKey(PHANDLE out, ACCESS_MASK access, POBJECT_ATTRIBUTES oa) {
    (void)access;
    return open_key("ZwOpenKey", out, oa, false, NULL);
}

/* The key of a handle and the name of a value. */
static NTSTATUS named(HANDLE handle, PUNICODE_STRING name, struct key **k,
                      char text[NAME_MAX_BYTES]) {
    *k = ke_handle_body(handle, KE_HANDLE_KEY);
    if (!*k) return STATUS_INVALID_HANDLE;
    if (!name || (name->Length & 1)) return STATUS_INVALID_PARAMETER;
    return narrow(name->Buffer, name->Length / 2, text, NAME_MAX_BYTES)
               ? STATUS_SUCCESS
               : STATUS_OBJECT_NAME_INVALID;
}

NTSTATUS ZwQueryValueKey(HANDLE handle, PUNICODE_STRING name, KEY_VALUE_INFORMATION_CLASS what,
                         PVOID out, ULONG len, PULONG result) {
    const ULONG head = FIELD_OFFSET(KEY_VALUE_PARTIAL_INFORMATION, Data);
    char text[NAME_MAX_BYTES];
    struct key *k;
    NTSTATUS status = named(handle, name, &k, text);
    if (status != STATUS_SUCCESS) return status;
    if (what != KeyValuePartialInformation) return STATUS_NOT_SUPPORTED;
    if (!result || (len && !out)) return STATUS_INVALID_PARAMETER;
    enter("ZwQueryValueKey");
    struct value *v = find_value_locked(k, text);
    if (!v) {
        status = STATUS_OBJECT_NAME_NOT_FOUND;
    } else {
        *result = head + v->len;
        status = len < head            ? STATUS_BUFFER_TOO_SMALL
                 : len - head < v->len ? STATUS_BUFFER_OVERFLOW
                                       : STATUS_SUCCESS;
        if (status != STATUS_BUFFER_TOO_SMALL) {
            KEY_VALUE_PARTIAL_INFORMATION *p = out;
            p->TitleIndex = 0;
            p->Type = v->type;
            p->DataLength = v->len;
            memcpy(p->Data, v->data, SN_MIN(v->len, len - head));
        }
    }
    os_lock_leave(&lock);
    return status;
}

NTSTATUS ZwSetValueKey(HANDLE handle, PUNICODE_STRING name, ULONG title, ULONG type, PVOID data,
                       ULONG len) {
    char text[NAME_MAX_BYTES];
    struct key *k;
    (void)title;
    NTSTATUS status = named(handle, name, &k, text);
    if (status != STATUS_SUCCESS) return status;
    if ((len && !data) || len > DATA_MAX_BYTES) return STATUS_INVALID_PARAMETER;
    enter("ZwSetValueKey");
    status = set_value_locked(k, text, type, data, len);
    changed |= status == STATUS_SUCCESS;
    os_lock_leave(&lock);
    return status;
}

NTSTATUS ZwDeleteValueKey(HANDLE handle, PUNICODE_STRING name) {
    char text[NAME_MAX_BYTES];
    struct key *k;
    NTSTATUS status = named(handle, name, &k, text);
    if (status != STATUS_SUCCESS) return status;
    enter("ZwDeleteValueKey");
    struct value *v = find_value_locked(k, text);
    if (v) free_value(v);
    changed |= v != NULL;
    os_lock_leave(&lock);
    return v ? STATUS_SUCCESS : STATUS_OBJECT_NAME_NOT_FOUND;
}

/* ---- the file: reading ---- */

struct reader {
    struct key *key;
    int line;
    const char *fault;
};

/* "text" with \" and \\; returns what follows it, NULL if it does not end. */
static const char *quoted(const char *p, char *out, size_t *len) {
    size_t n = 0;
    for (p++; *p && *p != '"'; p++) {
        if (*p == '\\' && p[1]) p++;
        out[n++] = *p;
    }
    out[n] = 0;
    *len = n;
    return *p ? p + 1 : NULL;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Bytes of one or two digits, with commas between them. */
static const char *set_hex(struct reader *r, const char *name, const char *p, ULONG type,
                           uint8_t *room) {
    ULONG n = 0;
    while (*p) {
        int b = hex_digit(*p++);
        if (b < 0) return "not a byte in hex";
        if (hex_digit(*p) >= 0) b = 16 * b + hex_digit(*p++);
        room[n++] = (uint8_t)b;
        if (*p == ',') p++;
    }
    return set_value_locked(r->key, name, type, room, n) == STATUS_SUCCESS ? NULL : "no memory";
}

/* room: as large as the line in UTF-16. */
static const char *read_value(struct reader *r, const char *p, char *text, uint8_t *room) {
    char name[NAME_MAX_BYTES] = "";
    size_t len;
    unsigned number;
    if (*p == '"') {
        p = quoted(p, text, &len);
        if (!p || len >= sizeof name) return "a name without end, or too long";
        memcpy(name, text, len + 1);
    } else {
        p++; /* @ */
    }
    if (*p++ != '=') return "no =";
    if (*p == '"') {
        if (!quoted(p, text, &len)) return "a text without end";
        size_t units = widen(text, len, (WCHAR *)(void *)room);
        if (units == 0) return "not UTF-8";
        return set_value_locked(r->key, name, REG_SZ, room, (ULONG)(units * 2)) == STATUS_SUCCESS
                   ? NULL
                   : "no memory";
    }
    if (sscanf(p, "dword:%8x", &number) == 1)
        return set_value_locked(r->key, name, REG_DWORD, &number, 4) == STATUS_SUCCESS
                   ? NULL
                   : "no memory";
    if (strncmp(p, "hex:", 4) == 0) return set_hex(r, name, p + 4, REG_BINARY, room);
    const char *bytes = strstr(p, "):");
    if (bytes && sscanf(p, "hex(%x", &number) == 1)
        return set_hex(r, name, bytes + 2, number, room);
    return "neither text nor dword: nor hex:";
}

static const char *read_key(struct reader *r, const char *p) {
    char path[NAME_MAX_BYTES];
    const char *end = strrchr(p, ']');
    if (!end) return "no ]";
    for (size_t i = 0; i < SN_ARRAY_LEN(roots); i++) {
        size_t n = strlen(roots[i].file);
        if (strncmp(p + 1, roots[i].file, n) != 0) continue;
        int len = snprintf(path, sizeof path, "%s%.*s", roots[i].path, (int)(end - p - 1 - (int)n),
                           p + 1 + n);
        if (len < 0 || (size_t)len >= sizeof path) return "a name too long";
        r->key = make_key_locked(path);
        return r->key ? NULL : "no memory";
    }
    return "neither HKEY_LOCAL_MACHINE nor HKEY_USERS";
}

static const char *read_line(struct reader *r, char *p, size_t len) {
    if (len && p[len - 1] == '\r') p[--len] = 0;
    if (r->line == 1 && strncmp(p, "\xEF\xBB\xBF", 3) == 0) p += 3;
    if (*p == 0 || *p == ';' || strncmp(p, "Windows Registry Editor", 23) == 0) return NULL;
    if (*p == '[') return read_key(r, p);
    if (*p != '"' && *p != '@') return "neither a key nor a value";
    if (!r->key) return "a value before the first key";
    char *text = os_zalloc(len + 1);
    uint8_t *room = os_zalloc(2 * len + 4);
    const char *fault = text && room ? read_value(r, p, text, room) : "no memory";
    os_free(text);
    os_free(room);
    return fault;
}

static char path[4096]; /* of the file */

/* The whole file, ended by a zero. NULL: *missing, or it cannot be read or has a zero inside, as
 * UTF-16 has. */
static char *read_file(const char *file, bool *missing) {
    FILE *f = fopen(file, "rb");
    *missing = f == NULL;
    if (!f) return NULL;
    long size = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    char *text = size >= 0 && size <= FILE_MAX_BYTES ? os_zalloc((size_t)size + 1) : NULL;
    bool good =
        text && fseek(f, 0, SEEK_SET) == 0 && fread(text, 1, (size_t)size, f) == (size_t)size;
    fclose(f);
    if (good && strlen(text) == (size_t)size) return text;
    os_free(text);
    return NULL;
}

bool ke_registry_in(const char *file) {
    struct reader r = { 0 };
    bool missing;
    if (strlen(file) >= sizeof path) return false;
    strcpy(path, file);
    char *text = read_file(file, &missing);
    if (missing) return true; /* it will be made */
    if (!text) r.fault = "cannot be read as UTF-8 text";
    enter(NULL);
    for (char *line = text, *next; !r.fault && line && *line; line = next) {
        size_t len = strcspn(line, "\n");
        next = line + len + (line[len] != 0);
        line[len] = 0;
        r.line++;
        r.fault = read_line(&r, line, len);
    }
    changed = false;
    os_lock_leave(&lock);
    os_free(text);
    if (r.fault) fprintf(stderr, "softndk: %s:%d: %s\n", file, r.line, r.fault);
    return r.fault == NULL;
}

/* ---- the file: writing ---- */

static void put_quoted(FILE *f, const char *s) {
    fputc('"', f);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') fputc('\\', f);
        fputc(*s, f);
    }
    fputc('"', f);
}

/* As text, if it is text of one line. */
static bool put_string(FILE *f, const struct value *v) {
    if (v->type != REG_SZ || v->len < 2 || v->len % 2) return false;
    size_t units = v->len / 2;
    WCHAR *w = os_zalloc(v->len);
    char *text = os_zalloc(2 * (size_t)v->len + 1);
    bool good = w && text;
    if (good) memcpy(w, v->data, v->len);
    good = good && w[units - 1] == 0 && narrow(w, units - 1, text, 2 * (size_t)v->len + 1) &&
           !strpbrk(text, "\r\n");
    if (good) put_quoted(f, text);
    os_free(w);
    os_free(text);
    return good;
}

static void put_value(FILE *f, const struct value *v) {
    uint32_t number;
    if (v->name[0])
        put_quoted(f, v->name);
    else
        fputc('@', f);
    fputc('=', f);
    if (v->type == REG_DWORD && v->len == 4) {
        memcpy(&number, v->data, 4);
        fprintf(f, "dword:%08x", number);
    } else if (!put_string(f, v)) {
        if (v->type == REG_BINARY)
            fputs("hex:", f);
        else
            fprintf(f, "hex(%x):", v->type);
        for (ULONG i = 0; i < v->len; i++)
            fprintf(f, "%s%02x", i ? "," : "", v->data[i]);
    }
    fputc('\n', f);
}

static void put_key(FILE *f, const struct key *k) {
    for (size_t i = 0; i < SN_ARRAY_LEN(roots); i++) {
        size_t n = strlen(roots[i].path);
        char head[16];
        memcpy(head, k->path, n);
        head[n] = 0;
        if (!same_name(head, roots[i].path)) continue;
        fprintf(f, "\n[%s%s]\n", roots[i].file, k->path + n);
        SN_LIST_FOR(it, &k->values)
        put_value(f, SN_CONTAINER(it, struct value, link));
    }
}

bool ke_registry_save(void) {
    bool good = true;
    enter(NULL);
    if (changed && path[0]) {
        FILE *f = fopen(path, "wb");
        if (f) {
            fputs("Windows Registry Editor Version 5.00\n", f);
            SN_LIST_FOR(it, &keys) {
                struct key *k = SN_CONTAINER(it, struct key, link);
                if (!sn_list_empty(&k->values)) put_key(f, k);
            }
            good = !ferror(f);
            good = fclose(f) == 0 && good;
        }
        good = good && f;
        changed = !good;
    }
    os_lock_leave(&lock);
    if (!good) fprintf(stderr, "softndk: %s: the registry cannot be written\n", path);
    return good;
}
