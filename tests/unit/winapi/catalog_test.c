/* SPDX-License-Identifier: MIT
 * catalog_test.c - the WSC* calls over real directories: one writer, many writers, killed writers,
 * full disks, missing permission. Each case has a directory of its own. The linker sends some calls
 * of the code under test to the functions below.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "threads.h"
#include "winapi/catalog.h"

/* ---- failures on demand ---- */

static int alloc_countdown; /* the n-th allocation from now fails; 0: none does */
static int write_errno, fsync_file_errno, fsync_dir_errno, rename_errno;
static bool die_before_rename;

void *__real_malloc(size_t n);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
ssize_t __real_write(int fd, const void *data, size_t n);
int __real_fsync(int fd);
int __real_renameat(int old_dir, const char *old, int new_dir, const char *new);
FILE *__real_open_memstream(char **text, size_t *len);
void *__wrap_malloc(size_t n);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);
int __wrap_asprintf(char **out, const char *fmt, ...);
ssize_t __wrap_write(int fd, const void *data, size_t n);
int __wrap_fsync(int fd);
int __wrap_renameat(int old_dir, const char *old, int new_dir, const char *new);
FILE *__wrap_open_memstream(char **text, size_t *len);

static bool alloc_fails(void) {
    return alloc_countdown > 0 && --alloc_countdown == 0;
}
void *__wrap_malloc(size_t n) {
    return alloc_fails() ? NULL : __real_malloc(n);
}
void *__wrap_realloc(void *p, size_t n) {
    return alloc_fails() ? NULL : __real_realloc(p, n);
}
char *__wrap_strdup(const char *s) {
    return alloc_fails() ? NULL : __real_strdup(s);
}
FILE *__wrap_open_memstream(char **text, size_t *len) {
    return alloc_fails() ? NULL : __real_open_memstream(text, len);
}
int __wrap_asprintf(char **out, const char *fmt, ...) {
    if (alloc_fails()) return -1;
    va_list args;
    va_start(args, fmt);
    int n = vasprintf(out, fmt, args);
    va_end(args);
    return n;
}
ssize_t __wrap_write(int fd, const void *data, size_t n) {
    static bool half_done;
    if (!write_errno) return __real_write(fd, data, n);
    if ((half_done = !half_done)) return __real_write(fd, data, n / 2); /* as a filling disk does */
    errno = write_errno;
    return -1;
}
int __wrap_fsync(int fd) {
    struct stat st;
    int err = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? fsync_dir_errno : fsync_file_errno;
    if (!err) return __real_fsync(fd);
    errno = err;
    return -1;
}
int __wrap_renameat(int old_dir, const char *old, int new_dir, const char *new) {
    if (die_before_rename) raise(SIGKILL);
    if (!rename_errno) return __real_renameat(old_dir, old, new_dir, new);
    errno = rename_errno;
    return -1;
}

/* ---- a directory per case ---- */

static char base[64];

static void remove_tree(const char *path) {
    DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d)) != NULL) {
        char child[512];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(child, sizeof child, "%s/%s", path, e->d_name);
        if (unlink(child) != 0) remove_tree(child);
    }
    if (d) closedir(d);
    rmdir(path);
}

static void at_exit(void) {
    if (base[0]) remove_tree(base);
}

/* Path of a file in this case's directory; valid until four more calls. */
static const char *in_base(const char *name) {
    static char paths[4][512];
    static unsigned next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof paths[0], "%s/%s", base, name);
    return p;
}

static void fresh_base(void) {
    if (base[0])
        remove_tree(base);
    else
        atexit(at_exit);
    strcpy(base, "/tmp/softnd-catalog-XXXXXX");
    CHECK(mkdtemp(base) != NULL);
    CHECK(chmod(base, 0755) == 0);
    alloc_countdown = write_errno = fsync_file_errno = fsync_dir_errno = rename_errno = 0;
    die_before_rename = false;
    CHECK(SoftNdCatalogSetScope(SOFTND_CATALOG_AUTO));
}

/* The private catalog in a directory that does not exist yet. */
static void use_private(void) {
    fresh_base();
    setenv("SOFTND_CATALOG", in_base("private/catalog.d"), 1);
}

static void use_system_and_user(void) {
    static char system_dir[128];
    fresh_base();
    unsetenv("SOFTND_CATALOG");
    snprintf(system_dir, sizeof system_dir, "%s/etc/softnd/catalog.d", base);
    wa_catalog_system_dir = system_dir;
    setenv("XDG_CONFIG_HOME", in_base("config"), 1);
}

static void put_file(const char *path, const char *text, size_t len) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0);
    CHECK_EQ(__real_write(fd, text, len), len);
    close(fd);
}

/* Number of names in a directory that are neither "." nor ".."; -1 if there is no directory. */
static int names_in(const char *path) {
    DIR *d = opendir(path);
    int count = -2;
    if (!d) return -1;
    while (readdir(d))
        count++;
    closedir(d);
    return count;
}

/* ---- shorthands ---- */

static GUID id_of(unsigned n) {
    GUID id = { n, 0x1111, 0x2222, { 1, 2, 3, 4, 5, 6, 7, 8 } };
    return id;
}

/* The entry that the SPI asks for. */
static WSAPROTOCOL_INFOW nd_entry(void) {
    WSAPROTOCOL_INFOW e;
    memset(&e, 0, sizeof e);
    e.dwServiceFlags1 =
        XP1_GUARANTEED_DELIVERY | XP1_GUARANTEED_ORDER | XP1_MESSAGE_ORIENTED | XP1_CONNECT_DATA;
    e.dwProviderFlags = PFL_HIDDEN | PFL_NETWORKDIRECT_PROVIDER;
    e.ProtocolChain.ChainLen = BASE_PROTOCOL;
    e.iVersion = 0x20000;
    e.iAddressFamily = AF_INET6;
    e.iMaxSockAddr = 28;
    e.iMinSockAddr = 16;
    e.iSocketType = -1;
    e.dwMessageSize = 0xFFFFFFFF;
    memcpy(e.szProtocol, u"SoftND", sizeof u"SoftND");
    return e;
}

/* 0 or the WSA code. */
static int install(unsigned n, const WCHAR *path) {
    GUID id = id_of(n);
    WSAPROTOCOL_INFOW e = nd_entry();
    INT error = 0;
    INT result = WSCInstallProvider(&id, path, &e, 1, &error);
    CHECK(result == 0 ? error == 0 : result == SOCKET_ERROR && error != 0);
    return error;
}

static int deinstall(unsigned n) {
    GUID id = id_of(n);
    INT error = 0;
    INT result = WSCDeinstallProvider(&id, &error);
    CHECK(result == 0 ? error == 0 : result == SOCKET_ERROR && error != 0);
    return error;
}

static WSAPROTOCOL_INFOW listed[300];

/* Fills `listed`; the number of entries. */
static int list(void) {
    DWORD bytes = sizeof listed;
    INT error = 0;
    int count = WSCEnumProtocols(NULL, listed, &bytes, &error);
    CHECK(count >= 0);
    CHECK_EQ(bytes, (unsigned)count * sizeof listed[0]);
    return count;
}

static void check_path(unsigned n, const WCHAR *expected) {
    GUID id = id_of(n);
    WCHAR path[MAX_PATH];
    INT units = MAX_PATH, error = 0;
    CHECK_EQ(WSCGetProviderPath(&id, path, &units, &error), 0);
    int len = 0;
    while (expected[len])
        len++;
    CHECK_EQ(units, len + 1);
    CHECK_BYTES(path, expected, ((size_t)len + 1) * sizeof *path);
}

/* ---- one writer ---- */

static void install_then_enumerate_shows_exactly_the_entry(void) {
    use_private();
    CHECK_EQ(install(1, u"/usr/lib/libsoftnd.so"), 0);
    CHECK_EQ(list(), 1);
    WSAPROTOCOL_INFOW expected = nd_entry();
    expected.ProviderId = id_of(1);
    expected.dwCatalogEntryId = 1001;
    CHECK_BYTES(&listed[0], &expected, sizeof expected);
    check_path(1, u"/usr/lib/libsoftnd.so");
    CHECK_EQ(deinstall(1), 0);
    CHECK_EQ(list(), 0);
    CHECK_EQ(names_in(in_base("private/catalog.d")), 1); /* the lock file */
}

static void install_of_several_entries_keeps_order_and_numbers_them(void) {
    use_private();
    GUID id = id_of(5);
    WSAPROTOCOL_INFOW e[2] = { nd_entry(), nd_entry() };
    e[0].iAddressFamily = AF_INET;
    INT error = 0;
    CHECK_EQ(install(9, u"/first"), 0);
    CHECK_EQ(WSCInstallProvider(&id, u"/x", e, 2, &error), 0);
    CHECK_EQ(list(), 3);
    CHECK_EQ(listed[0].iAddressFamily, AF_INET); /* files are read in the order of their names */
    CHECK_EQ(listed[0].dwCatalogEntryId, 1002);
    CHECK_EQ(listed[1].iAddressFamily, AF_INET6);
    CHECK_EQ(listed[1].dwCatalogEntryId, 1003);
    CHECK_EQ(listed[2].dwCatalogEntryId, 1001);
    CHECK_BYTES(&listed[1].ProviderId, &id, sizeof id);
}

static void install_of_the_same_guid_is_refused_and_keeps_the_first(void) {
    use_private();
    CHECK_EQ(install(1, u"/first"), 0);
    CHECK_EQ(install(1, u"/second"), WSAEINVAL);
    CHECK_EQ(GetLastError(), WSAEINVAL);
    CHECK_EQ(list(), 1);
    check_path(1, u"/first");
    CHECK_EQ(deinstall(1), 0);
    CHECK_EQ(install(1, u"/second"), 0);
    check_path(1, u"/second");
}

static void deinstall_of_an_unknown_guid_is_refused(void) {
    use_private();
    CHECK_EQ(deinstall(1), WSAEINVAL);
    CHECK_EQ(install(2, u"/x"), 0);
    CHECK_EQ(deinstall(1), WSAEINVAL);
    CHECK_EQ(list(), 1);
}

static void path_and_name_are_stored_as_given(void) {
    use_private();
    WCHAR longest[MAX_PATH];
    for (int i = 0; i < MAX_PATH - 1; i++)
        longest[i] = u'\u20ac';
    longest[MAX_PATH - 1] = 0;
    CHECK_EQ(install(1, longest), 0);
    check_path(1, longest);
    CHECK_EQ(install(2, u"%ProgramFiles%\\a = b # [end] \U0001F680.dll"), 0);
    check_path(2, u"%ProgramFiles%\\a = b # [end] \U0001F680.dll");
}

static void install_with_bad_arguments_is_refused_and_writes_nothing(void) {
    use_private();
    GUID id = id_of(1);
    WSAPROTOCOL_INFOW e = nd_entry();
    INT error = 0;
    WCHAR too_long[MAX_PATH + 1];
    for (int i = 0; i < MAX_PATH; i++)
        too_long[i] = 'x';
    too_long[MAX_PATH] = 0;
    const WCHAR lone[] = { 'x', 0xD800, 0 };
#define REFUSED(call, code)                                                                        \
    do {                                                                                           \
        error = 0;                                                                                 \
        CHECK_EQ(call, SOCKET_ERROR);                                                              \
        CHECK_EQ(error, code);                                                                     \
        CHECK_EQ(GetLastError(), code);                                                            \
    } while (0)
    REFUSED(WSCInstallProvider(NULL, u"/x", &e, 1, &error), WSAEFAULT);
    REFUSED(WSCInstallProvider(&id, NULL, &e, 1, &error), WSAEFAULT);
    REFUSED(WSCInstallProvider(&id, u"/x", NULL, 1, &error), WSAEFAULT);
    CHECK_EQ(WSCInstallProvider(&id, u"/x", &e, 1, NULL), SOCKET_ERROR);
    CHECK_EQ(GetLastError(), WSAEFAULT);
    REFUSED(WSCInstallProvider(&id, u"/x", &e, 0, &error), WSAEINVAL);
    REFUSED(WSCInstallProvider(&id, u"/x", &e, WA_PROVIDER_ENTRIES_MAX + 1, &error), WSAEINVAL);
    REFUSED(WSCInstallProvider(&id, u"", &e, 1, &error), WSAEINVAL);
    REFUSED(WSCInstallProvider(&id, too_long, &e, 1, &error), WSAEINVAL);
    REFUSED(WSCInstallProvider(&id, lone, &e, 1, &error), WSAEINVAL);
    REFUSED(WSCInstallProvider(&id, u"/x\n[end]", &e, 1, &error), WSAEINVAL);
    REFUSED(WSCInstallProvider(&id, u" /x", &e, 1, &error), WSAEINVAL);
    REFUSED(WSCInstallProvider(&id, u"/x ", &e, 1, &error), WSAEINVAL);
    for (int i = 0; i <= WSAPROTOCOL_LEN; i++)
        e.szProtocol[i] = 'n'; /* without its end */
    REFUSED(WSCInstallProvider(&id, u"/x", &e, 1, &error), WSAEINVAL);
    REFUSED(WSCDeinstallProvider(NULL, &error), WSAEFAULT);
    CHECK_EQ(WSCDeinstallProvider(&id, NULL), SOCKET_ERROR);
    CHECK_EQ(names_in(in_base("private")), -1);
}

static void enumerate_follows_the_size_protocol(void) {
    use_private();
    CHECK_EQ(install(1, u"/x"), 0);
    CHECK_EQ(install(2, u"/y"), 0);
    const DWORD need = 2 * sizeof(WSAPROTOCOL_INFOW);
    DWORD bytes = 0;
    INT error = 0;
    CHECK_EQ(WSCEnumProtocols(NULL, NULL, &bytes, &error), SOCKET_ERROR);
    CHECK_EQ(error, WSAENOBUFS);
    CHECK_EQ(bytes, need);
    memset(listed, 0x5A, sizeof listed);
    bytes = need - 1;
    CHECK_EQ(WSCEnumProtocols(NULL, listed, &bytes, &error), SOCKET_ERROR);
    CHECK_EQ(error, WSAENOBUFS);
    CHECK_EQ(bytes, need);
    CHECK_EQ(listed[0].dwServiceFlags1, 0x5A5A5A5A);
    CHECK_EQ(WSCEnumProtocols(NULL, listed, &bytes, &error), 2);
    CHECK_EQ(bytes, need);
    bytes = 1u << 30; /* as said by a client that never allocated it: NULL is too small anyway */
    CHECK_EQ(WSCEnumProtocols(NULL, NULL, &bytes, &error), SOCKET_ERROR);
    CHECK_EQ(bytes, need);
    CHECK_EQ(WSCEnumProtocols(NULL, listed, NULL, &error), SOCKET_ERROR);
    CHECK_EQ(error, WSAEFAULT);
    CHECK_EQ(WSCEnumProtocols(NULL, listed, &bytes, NULL), SOCKET_ERROR);
}

static void enumerate_of_an_empty_catalog_asks_for_one_then_gives_none(void) {
    use_private();
    DWORD bytes = 0;
    INT error = 0;
    CHECK_EQ(WSCEnumProtocols(NULL, NULL, &bytes, &error), SOCKET_ERROR);
    CHECK_EQ(error, WSAENOBUFS);
    CHECK_EQ(bytes, sizeof(WSAPROTOCOL_INFOW));
    CHECK_EQ(WSCEnumProtocols(NULL, listed, &bytes, &error), 0);
    CHECK_EQ(bytes, 0);
    CHECK_EQ(names_in(in_base("private")), -1); /* looking makes no directories */
}

static void enumerate_filters_by_protocol(void) {
    use_private();
    GUID id = id_of(1);
    WSAPROTOCOL_INFOW e[3] = { nd_entry(), nd_entry(), nd_entry() };
    INT error = 0;
    e[1].iProtocol = 6;
    e[2].iProtocol = 100;
    e[2].iProtocolMaxOffset = 10;
    CHECK_EQ(WSCInstallProvider(&id, u"/x", e, 3, &error), 0);
    static const struct {
        INT protocols[3];
        int expected;
    } rows[] = { { { 6, 0 }, 1 },   { { 6, 17, 0 }, 1 },  { { 17, 0 }, 0 },
                 { { 99, 0 }, 0 },  { { 100, 0 }, 1 },    { { 110, 0 }, 1 },
                 { { 111, 0 }, 0 }, { { 105, 6, 0 }, 2 }, { { 0 }, 0 } };
    for (size_t i = 0; i < SN_ARRAY_LEN(rows); i++) {
        INT protocols[3];
        memcpy(protocols, rows[i].protocols, sizeof protocols);
        DWORD bytes = sizeof listed;
        CHECK_EQ(WSCEnumProtocols(protocols, listed, &bytes, &error), rows[i].expected);
    }
    CHECK_EQ(list(), 3);
}

static void provider_path_too_small_says_how_much(void) {
    use_private();
    CHECK_EQ(install(1, u"/abc"), 0);
    GUID id = id_of(1);
    WCHAR path[8] = { 'q' };
    INT error = 0, units = 4;
    CHECK_EQ(WSCGetProviderPath(&id, path, &units, &error), SOCKET_ERROR);
    CHECK_EQ(error, WSAEFAULT);
    CHECK_EQ(units, 5);
    CHECK_EQ(path[0], 'q');
    CHECK_EQ(WSCGetProviderPath(&id, path, &units, &error), 0);
    units = 8;
    CHECK_EQ(WSCGetProviderPath(&id, NULL, &units, &error), SOCKET_ERROR);
    CHECK_EQ(error, WSAEFAULT);
    units = -1;
    CHECK_EQ(WSCGetProviderPath(&id, path, &units, &error), SOCKET_ERROR);
    CHECK_EQ(error, WSAEFAULT);
    CHECK_EQ(WSCGetProviderPath(NULL, path, &units, &error), SOCKET_ERROR);
    CHECK_EQ(WSCGetProviderPath(&id, path, NULL, &error), SOCKET_ERROR);
    CHECK_EQ(WSCGetProviderPath(&id, path, &units, NULL), SOCKET_ERROR);
    id = id_of(2);
    units = 8;
    CHECK_EQ(WSCGetProviderPath(&id, path, &units, &error), SOCKET_ERROR);
    CHECK_EQ(error, WSAEINVAL);
}

/* ---- what may lie in the directory ---- */

static void unusable_files_are_skipped_and_the_rest_is_listed(void) {
    use_private();
    CHECK_EQ(install(1, u"/good"), 0);
    const char *good = in_base("private/catalog.d/00000001-1111-2222-0102-030405060708.conf");
    static char text[8192];
    int fd = open(good, O_RDONLY);
    CHECK(fd >= 0);
    ssize_t len = read(fd, text, sizeof text);
    close(fd);
    CHECK(len > 500);
    put_file(in_base("private/catalog.d/0-half.conf"), text, (size_t)len / 2);
    put_file(in_base("private/catalog.d/1-empty.conf"), "", 0);
    put_file(in_base("private/catalog.d/2-garbage.conf"), "\xff\xfe\x00rubbish\n", 11);
    put_file(in_base("private/catalog.d/README"), "read me", 7);
    put_file(in_base("private/catalog.d/.hidden.conf"), text, (size_t)len);
    CHECK(mkdir(in_base("private/catalog.d/3-dir.conf"), 0755) == 0);
    CHECK(mkfifo(in_base("private/catalog.d/4-fifo.conf"), 0644) == 0);
    CHECK(symlink("/nonexistent", in_base("private/catalog.d/5-link.conf")) == 0);
    static char big[WA_CATALOG_FILE_BYTES_MAX + 1];
    memset(big, '\n', sizeof big);
    put_file(in_base("private/catalog.d/6-big.conf"), big, sizeof big);
    CHECK_EQ(list(), 1);
    check_path(1, u"/good");
    CHECK_EQ(install(2, u"/also"), 0);
    CHECK_EQ(list(), 2);
    CHECK_EQ(deinstall(1), 0);
    CHECK_EQ(list(), 1);
}

static void half_file_under_the_right_name_is_replaced_by_install(void) {
    use_private();
    CHECK_EQ(install(1, u"/first"), 0);
    put_file(in_base("private/catalog.d/00000001-1111-2222-0102-030405060708.conf"), "format = 1\n",
             11);
    CHECK_EQ(list(), 0);
    CHECK_EQ(install(1, u"/second"), 0);
    check_path(1, u"/second");
}

static void hand_made_second_file_of_a_guid_is_ignored_and_removed_with_it(void) {
    use_private();
    CHECK_EQ(install(1, u"/first"), 0);
    static char text[8192];
    int fd = open(in_base("private/catalog.d/00000001-1111-2222-0102-030405060708.conf"), O_RDONLY);
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    CHECK(len > 0);
    char *path = strstr(text, "/first");
    CHECK(path != NULL);
    memcpy(path, "/other", 6);
    put_file(in_base("private/catalog.d/zzz.conf"), text, (size_t)len);
    CHECK_EQ(list(), 1);
    check_path(1, u"/first");
    put_file(in_base("private/catalog.d/000.conf"), text, (size_t)len);
    CHECK_EQ(list(), 1);
    check_path(1, u"/other");
    CHECK_EQ(deinstall(1), 0);
    CHECK_EQ(list(), 0);
}

/* ---- system and user ---- */

static void check_file_of(unsigned n, DWORD scope, const char *prefix) {
    GUID id = id_of(n);
    DWORD actual = 99;
    char file[256];
    CHECK(SoftNdCatalogFindProvider(&id, &actual, file, sizeof file));
    CHECK_EQ(actual, scope);
    CHECK(strncmp(file, prefix, strlen(prefix)) == 0);
    CHECK(access(file, R_OK) == 0);
}

static void system_entries_come_before_user_entries_and_win(void) {
    use_system_and_user();
    CHECK(SoftNdCatalogSetScope(SOFTND_CATALOG_USER));
    CHECK_EQ(install(1, u"/user/one"), 0);
    CHECK_EQ(install(2, u"/user/two"), 0);
    CHECK(SoftNdCatalogSetScope(SOFTND_CATALOG_SYSTEM));
    CHECK_EQ(install(3, u"/system/three"), 0);
    CHECK_EQ(install(1, u"/system/one"), WSAEINVAL); /* the user has it */
    /* Another user, who does not see it, installs it for the system. */
    setenv("XDG_CONFIG_HOME", in_base("elsewhere"), 1);
    CHECK_EQ(install(1, u"/system/one"), 0);
    setenv("XDG_CONFIG_HOME", in_base("config"), 1);
    CHECK_EQ(list(), 3);
    CHECK_EQ(listed[0].ProviderId.Data1, 1);
    CHECK_EQ(listed[1].ProviderId.Data1, 3);
    CHECK_EQ(listed[2].ProviderId.Data1, 2);
    check_path(1, u"/system/one");
    check_file_of(1, SOFTND_CATALOG_SYSTEM, in_base("etc/softnd/catalog.d/"));
    check_file_of(2, SOFTND_CATALOG_USER, in_base("config/softnd/catalog.d/"));
    /* AUTO removes what is in effect, then the user's shows. */
    CHECK(SoftNdCatalogSetScope(SOFTND_CATALOG_AUTO));
    CHECK_EQ(deinstall(1), 0);
    check_path(1, u"/user/one");
    CHECK_EQ(deinstall(1), 0);
    CHECK_EQ(list(), 2);
    /* A scope removes only its own. */
    CHECK(SoftNdCatalogSetScope(SOFTND_CATALOG_USER));
    CHECK_EQ(deinstall(3), WSAEINVAL);
    CHECK_EQ(list(), 2);
}

static void auto_scope_prefers_the_system_if_it_can_be_written(void) {
    use_system_and_user();
    char dir[256];
    DWORD scope;
    CHECK(SoftNdCatalogGetDirectory(SOFTND_CATALOG_AUTO, &scope, dir, sizeof dir));
    CHECK_EQ(scope, SOFTND_CATALOG_SYSTEM);
    CHECK_STR(dir, in_base("etc/softnd/catalog.d"));
    CHECK_EQ(names_in(in_base("etc")), -1); /* asking makes nothing */
    CHECK_EQ(install(1, u"/x"), 0);
    check_file_of(1, SOFTND_CATALOG_SYSTEM, in_base("etc/"));
    struct stat st;
    CHECK(stat(in_base("etc/softnd/catalog.d"), &st) == 0 && (st.st_mode & 0777) == 0755);
    /* A file where a directory should be stops even the superuser. */
    put_file(in_base("file"), "", 0);
    static char no_dir[128];
    snprintf(no_dir, sizeof no_dir, "%s/file/softnd/catalog.d", base);
    wa_catalog_system_dir = no_dir;
    CHECK(SoftNdCatalogGetDirectory(SOFTND_CATALOG_AUTO, &scope, dir, sizeof dir));
    CHECK_EQ(scope, SOFTND_CATALOG_USER);
    CHECK_EQ(install(2, u"/y"), 0);
    check_file_of(2, SOFTND_CATALOG_USER, in_base("config/"));
    CHECK(SoftNdCatalogSetScope(SOFTND_CATALOG_SYSTEM));
    CHECK_EQ(install(3, u"/z"), WSASYSCALLFAILURE);
}

static void directory_queries_with_bad_arguments_fail(void) {
    use_system_and_user();
    char small[4], big[256];
    DWORD scope;
    GUID id = id_of(1);
    CHECK(!SoftNdCatalogSetScope(SOFTND_CATALOG_PRIVATE));
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    CHECK(!SoftNdCatalogGetDirectory(3, NULL, big, sizeof big));
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    CHECK(!SoftNdCatalogGetDirectory(0, NULL, NULL, 0));
    CHECK(!SoftNdCatalogGetDirectory(SOFTND_CATALOG_SYSTEM, NULL, small, sizeof small));
    CHECK_EQ(GetLastError(), ERROR_INSUFFICIENT_BUFFER);
    CHECK(!SoftNdCatalogFindProvider(&id, &scope, big, sizeof big));
    CHECK_EQ(GetLastError(), ERROR_NOT_FOUND);
    CHECK(!SoftNdCatalogFindProvider(NULL, &scope, big, sizeof big));
    CHECK_EQ(install(1, u"/x"), 0);
    CHECK(!SoftNdCatalogFindProvider(&id, &scope, small, sizeof small));
    CHECK_EQ(GetLastError(), ERROR_INSUFFICIENT_BUFFER);
    setenv("SOFTND_CATALOG", base, 1);
    CHECK(SoftNdCatalogGetDirectory(SOFTND_CATALOG_USER, &scope, big, sizeof big));
    CHECK_EQ(scope, SOFTND_CATALOG_PRIVATE);
    CHECK_STR(big, base);
    CHECK_EQ(list(), 0); /* the private directory replaces both */
}

static void user_directory_falls_back_to_home(void) {
    use_system_and_user();
    char dir[256];
    setenv("XDG_CONFIG_HOME", "relative/is/ignored", 1);
    setenv("HOME", base, 1);
    CHECK(SoftNdCatalogGetDirectory(SOFTND_CATALOG_USER, NULL, dir, sizeof dir));
    CHECK_STR(dir, in_base(".config/softnd/catalog.d"));
    unsetenv("HOME");
    /* Then the user database; a user without a home has no directory. */
    if (!SoftNdCatalogGetDirectory(SOFTND_CATALOG_USER, NULL, dir, sizeof dir))
        CHECK_EQ(GetLastError(), ERROR_PATH_NOT_FOUND);
    else
        CHECK(strstr(dir, "/.config/softnd/catalog.d") != NULL);
}

/* ---- children ---- */

/* Runs fn in a child; its exit code, or -signal if it was killed. */
static int in_child(int (*fn)(int), int arg) {
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) _exit(fn(arg));
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int install_without_rights(int arg) {
    (void)arg;
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 77;
    INT error = 0;
    GUID id = id_of(1);
    WSAPROTOCOL_INFOW e = nd_entry();
    WSCInstallProvider(&id, u"/x", &e, 1, &error);
    if (error != WSAEACCES) return 1;
    id = id_of(2);
    WSCDeinstallProvider(&id, &error);
    return error == WSAEACCES ? 0 : 2;
}

static void missing_permission_is_reported_and_changes_nothing(void) {
    use_private();
    CHECK_EQ(install(2, u"/there"), 0);
    CHECK(chmod(in_base("private"), 0755) == 0);
    CHECK(chmod(in_base("private/catalog.d"), 0555) == 0);
    int result = in_child(install_without_rights, 0);
    CHECK(chmod(in_base("private/catalog.d"), 0755) == 0);
    if (result == 77) SKIP("cannot become another user");
    CHECK_EQ(result, 0);
    CHECK_EQ(list(), 1);
    check_path(2, u"/there");
}

enum { WRITERS = 5, EACH = 6, SHARED = 999 };

/* Installs its own providers and tries the shared one; 10 more if it got that. */
static int write_many(int writer) {
    INT error;
    WSAPROTOCOL_INFOW e = nd_entry();
    int exit_code = 0;
    for (unsigned i = 0; i < EACH; i++) {
        GUID id = id_of((unsigned)writer * 100 + i);
        if (WSCInstallProvider(&id, u"/x", &e, 1, &error) != 0) return 1;
        if (i == EACH / 2) {
            id = id_of(SHARED);
            if (WSCInstallProvider(&id, u"/shared", &e, 1, &error) == 0)
                exit_code = 10;
            else if (error != WSAEINVAL)
                return 2;
        }
    }
    GUID id = id_of((unsigned)writer * 100);
    return WSCDeinstallProvider(&id, &error) == 0 ? exit_code : 3;
}

static void check_many_written(void) {
    CHECK_EQ(list(), WRITERS * (EACH - 1) + 1);
    for (int i = 0; i < WRITERS * (EACH - 1) + 1; i++)
        for (int k = 0; k < i; k++)
            CHECK(listed[i].dwCatalogEntryId != listed[k].dwCatalogEntryId);
    CHECK_EQ(names_in(in_base("private/catalog.d")), WRITERS * (EACH - 1) + 1 + 1);
}

static void processes_writing_at_once_lose_and_double_nothing(void) {
    use_private();
    pid_t pids[WRITERS];
    int shared = 0;
    fflush(NULL);
    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (pids[i] == 0) _exit(write_many(i + 1));
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status) % 10, 0);
        shared += WEXITSTATUS(status) / 10;
    }
    CHECK_EQ(shared, 1);
    check_many_written();
}

static void *write_many_thread(void *arg) {
    return (void *)(intptr_t)write_many((int)(intptr_t)arg);
}

static void threads_writing_at_once_lose_and_double_nothing(void) {
    use_private();
    pthread_t t[WRITERS];
    intptr_t shared = 0;
    for (int i = 0; i < WRITERS; i++)
        t[i] = start_thread(write_many_thread, (void *)(intptr_t)(i + 1));
    for (int i = 0; i < WRITERS; i++) {
        void *result;
        pthread_join(t[i], &result);
        CHECK_EQ((intptr_t)result % 10, 0);
        shared += (intptr_t)result / 10;
    }
    CHECK_EQ(shared, 1);
    check_many_written();
}

static atomic_bool stop_reading;

/* Every state that a reader sees is whole: the provider that stays is always there. */
static void *read_all_the_time(void *arg) {
    (void)arg;
    GUID id = id_of(1);
    WCHAR path[MAX_PATH];
    while (!atomic_load(&stop_reading)) {
        INT units = MAX_PATH, error;
        if (WSCGetProviderPath(&id, path, &units, &error) != 0) return NULL;
    }
    return &stop_reading;
}

static void reader_during_writes_never_misses_what_stays(void) {
    use_private();
    CHECK_EQ(install(1, u"/stays"), 0);
    atomic_store(&stop_reading, false);
    pthread_t t = start_thread(read_all_the_time, NULL);
    for (int i = 0; i < 60; i++) {
        CHECK_EQ(install(2, u"/comes"), 0);
        CHECK_EQ(deinstall(2), 0);
    }
    atomic_store(&stop_reading, true);
    void *result;
    pthread_join(t, &result);
    CHECK(result != NULL);
}

/* ---- writers that do not come to their end ---- */

static int install_and_die_before_rename(int arg) {
    (void)arg;
    die_before_rename = true;
    return install(7, u"/never") == 0 ? 1 : 2;
}

static int install_and_die_in_write(int arg) {
    const struct rlimit no_core = { 0, 0 }, small_files = { 100, 100 };
    (void)arg;
    if (!freopen("/dev/null", "w", stderr)) return 3;
    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGXFSZ, SIG_DFL);
    setrlimit(RLIMIT_FSIZE, &small_files);
    return install(7, u"/never") == 0 ? 1 : 2;
}

static void check_recovers_after_crash(void) {
    CHECK_EQ(list(), 1);
    CHECK_EQ(names_in(in_base("private/catalog.d")), 3); /* lock, one provider, the leftover */
    CHECK_EQ(deinstall(7), WSAEINVAL);
    CHECK_EQ(install(7, u"/now"), 0); /* and the dead process holds no lock */
    CHECK_EQ(list(), 2);
    check_path(7, u"/now");
    CHECK_EQ(names_in(in_base("private/catalog.d")), 3);
}

static void writer_killed_before_the_rename_leaves_nothing_visible(void) {
    use_private();
    CHECK_EQ(install(1, u"/x"), 0);
    CHECK_EQ(in_child(install_and_die_before_rename, 0), -SIGKILL);
    check_recovers_after_crash();
}

static void writer_killed_in_the_write_leaves_nothing_visible(void) {
    use_private();
    CHECK_EQ(install(1, u"/x"), 0);
    CHECK_EQ(in_child(install_and_die_in_write, 0), -SIGXFSZ);
    check_recovers_after_crash();
}

static void check_failed_install(int expected_error) {
    CHECK_EQ(install(7, u"/never"), expected_error);
    write_errno = fsync_file_errno = fsync_dir_errno = rename_errno = 0;
    CHECK_EQ(list(), 1);
    CHECK_EQ(names_in(in_base("private/catalog.d")), 2); /* nothing is left behind */
    CHECK_EQ(install(7, u"/now"), 0);
    CHECK_EQ(deinstall(7), 0);
}

static void failing_disk_gives_an_error_and_changes_nothing(void) {
    use_private();
    CHECK_EQ(install(1, u"/x"), 0);
    write_errno = ENOSPC;
    check_failed_install(WSASYSCALLFAILURE);
    write_errno = EDQUOT;
    check_failed_install(WSASYSCALLFAILURE);
    fsync_file_errno = EIO;
    check_failed_install(WSASYSCALLFAILURE);
    fsync_dir_errno = EIO;
    check_failed_install(WSASYSCALLFAILURE);
    rename_errno = EROFS;
    check_failed_install(WSAEACCES);
}

static int install_with_small_files(int arg) {
    const struct rlimit small_files = { 100, 100 };
    INT error = 0;
    GUID id = id_of(7);
    WSAPROTOCOL_INFOW e = nd_entry();
    (void)arg;
    if (!freopen("/dev/null", "w", stderr)) return 3;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small_files);
    WSCInstallProvider(&id, u"/x", &e, 1, &error);
    return error == WSASYSCALLFAILURE ? 0 : 1;
}

static void file_size_limit_is_reported_by_the_real_system(void) {
    use_private();
    CHECK_EQ(install(1, u"/x"), 0);
    CHECK_EQ(in_child(install_with_small_files, 0), 0);
    CHECK_EQ(list(), 1);
    CHECK_EQ(names_in(in_base("private/catalog.d")), 2);
}

static void directory_sync_that_is_not_supported_is_no_error(void) {
    use_private();
    fsync_dir_errno = EINVAL;
    CHECK_EQ(install(1, u"/x"), 0);
    CHECK_EQ(deinstall(1), 0);
}

static void every_allocation_failing_gives_no_memory_and_changes_nothing(void) {
    use_private();
    CHECK_EQ(install(1, u"/x"), 0);
    GUID one = id_of(1), seven = id_of(7);
    WCHAR path[MAX_PATH];
    WSAPROTOCOL_INFOW e = nd_entry();
    int expected = 1;
    for (int call = 0; call < 4; call++) {
        bool done = false;
        for (int n = 1; !done; n++) {
            INT error = 0, units = MAX_PATH, result;
            DWORD bytes = sizeof listed;
            alloc_countdown = n;
            switch (call) {
            case 0:
                result = WSCInstallProvider(&seven, u"/y", &e, 1, &error);
                break;
            case 1:
                result = WSCEnumProtocols(NULL, listed, &bytes, &error);
                break;
            case 2:
                result = WSCGetProviderPath(&one, path, &units, &error);
                break;
            default:
                result = WSCDeinstallProvider(&seven, &error);
                break;
            }
            done = alloc_countdown > 0; /* it needed fewer than n */
            alloc_countdown = 0;
            CHECK_EQ(result == SOCKET_ERROR, !done);
            if (!done) CHECK_EQ(error, WSA_NOT_ENOUGH_MEMORY);
            if (done && call == 0) expected = 2;
            if (done && call == 3) expected = 1;
            CHECK_EQ(list(), expected);
            CHECK(n < 100);
        }
    }
}

TEST_MAIN(TEST(install_then_enumerate_shows_exactly_the_entry),
          TEST(install_of_several_entries_keeps_order_and_numbers_them),
          TEST(install_of_the_same_guid_is_refused_and_keeps_the_first),
          TEST(deinstall_of_an_unknown_guid_is_refused), TEST(path_and_name_are_stored_as_given),
          TEST(install_with_bad_arguments_is_refused_and_writes_nothing),
          TEST(enumerate_follows_the_size_protocol),
          TEST(enumerate_of_an_empty_catalog_asks_for_one_then_gives_none),
          TEST(enumerate_filters_by_protocol), TEST(provider_path_too_small_says_how_much),
          TEST(unusable_files_are_skipped_and_the_rest_is_listed),
          TEST(half_file_under_the_right_name_is_replaced_by_install),
          TEST(hand_made_second_file_of_a_guid_is_ignored_and_removed_with_it),
          TEST(system_entries_come_before_user_entries_and_win),
          TEST(auto_scope_prefers_the_system_if_it_can_be_written),
          TEST(directory_queries_with_bad_arguments_fail), TEST(user_directory_falls_back_to_home),
          TEST(missing_permission_is_reported_and_changes_nothing),
          TEST(processes_writing_at_once_lose_and_double_nothing),
          TEST(threads_writing_at_once_lose_and_double_nothing),
          TEST(reader_during_writes_never_misses_what_stays),
          TEST(writer_killed_before_the_rename_leaves_nothing_visible),
          TEST(writer_killed_in_the_write_leaves_nothing_visible),
          TEST(failing_disk_gives_an_error_and_changes_nothing),
          TEST(file_size_limit_is_reported_by_the_real_system),
          TEST(directory_sync_that_is_not_supported_is_no_error),
          TEST(every_allocation_failing_gives_no_memory_and_changes_nothing))
