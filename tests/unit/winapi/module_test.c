/* SPDX-License-Identifier: MIT
 * module_test.c - LoadLibrary, GetProcAddress, FreeLibrary.
 */
#include <dlfcn.h>
#include "threads.h"

#define WIDE_PATH_UNITS 4096

static const WCHAR *wide(const char *s) {
    static WCHAR buf[WIDE_PATH_UNITS];
    CHECK(wa_utf16_from_utf8(buf, WIDE_PATH_UNITS, s) > 0);
    return buf;
}

static bool is_loaded(void) {
    void *dl = dlopen(PLUGIN_PATH, RTLD_NOW | RTLD_NOLOAD);
    if (dl) dlclose(dl);
    return dl != NULL;
}

static void load_find_call_free_works(void) {
    HMODULE m = LoadLibraryW(wide(PLUGIN_PATH));
    CHECK(m != NULL);
    CHECK_EQ((uintptr_t)m & 3, 0);
    int (*answer)(int) = (int (*)(int))(void (*)(void))GetProcAddress(m, "plugin_answer");
    CHECK(answer != NULL);
    CHECK_EQ(answer(1), 43);
    CHECK(FreeLibrary(m));
    CHECK(!is_loaded());
}

static void library_loaded_twice_has_one_handle_and_two_counts(void) {
    unsigned before = wa_object_count();
    HMODULE a = LoadLibraryA(PLUGIN_PATH);
    HMODULE b = LoadLibraryExW(wide(PLUGIN_PATH), NULL, 0);
    CHECK(a != NULL);
    CHECK_PTR(a, b);
    CHECK(FreeLibrary(a));
    CHECK(GetProcAddress(b, "plugin_answer") != NULL);
    CHECK(is_loaded());
    CHECK(FreeLibrary(b));
    CHECK(!is_loaded());
    CHECK(!FreeLibrary(b) && GetLastError() == ERROR_INVALID_HANDLE);
    CHECK(!GetProcAddress(b, "plugin_answer") && GetLastError() == ERROR_INVALID_HANDLE);
    CHECK_EQ(wa_object_count(), before);
}

static void two_libraries_have_two_handles(void) {
    HMODULE a = LoadLibraryA(PLUGIN_PATH), b = LoadLibraryA("libm.so.6");
    CHECK(a && b && a != b);
    CHECK(GetProcAddress(b, "cos") != NULL);
    CHECK(FreeLibrary(a) && FreeLibrary(b));
}

static void load_failures_say_why(void) {
    CHECK(!LoadLibraryA("/nonexistent/lib.so") && GetLastError() == ERROR_MOD_NOT_FOUND);
    CHECK(!LoadLibraryA("libnonexistent-softnd.so") && GetLastError() == ERROR_MOD_NOT_FOUND);
    CHECK(!LoadLibraryA(TEXT_FILE_PATH) && GetLastError() == ERROR_BAD_EXE_FORMAT);
    CHECK(!LoadLibraryW(u"%SystemRoot%/lib.so") && GetLastError() == ERROR_MOD_NOT_FOUND);
    const WCHAR lone_surrogate[] = { '/', 0xD800, 'x', 0 };
    CHECK(!LoadLibraryW(lone_surrogate) && GetLastError() == ERROR_INVALID_PARAMETER);
    CHECK(!LoadLibraryW(NULL) && GetLastError() == ERROR_INVALID_PARAMETER);
    CHECK(!LoadLibraryA(NULL) && GetLastError() == ERROR_INVALID_PARAMETER);
    CHECK(!LoadLibraryA("") && GetLastError() == ERROR_INVALID_PARAMETER);
    CHECK(!LoadLibraryExW(wide(PLUGIN_PATH), NULL, 2) && GetLastError() == ERROR_INVALID_PARAMETER);
    CHECK(!LoadLibraryExW(wide(PLUGIN_PATH), (HANDLE)4, 0));
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
}

static void unknown_function_is_not_found(void) {
    HMODULE m = LoadLibraryA(PLUGIN_PATH);
    CHECK(!GetProcAddress(m, "plugin_question") && GetLastError() == ERROR_PROC_NOT_FOUND);
    CHECK(!GetProcAddress(m, NULL) && GetLastError() == ERROR_PROC_NOT_FOUND);
    CHECK(!GetProcAddress(m, (LPCSTR)(uintptr_t)7) && GetLastError() == ERROR_PROC_NOT_FOUND);
    CHECK(!CloseHandle(m) && GetLastError() == ERROR_INVALID_HANDLE);
    CHECK(FreeLibrary(m));
}

static void *load_and_free(void *arg) {
    for (int i = 0; i < 200; i++) {
        HMODULE m = LoadLibraryA(PLUGIN_PATH);
        if (!m || !GetProcAddress(m, "plugin_answer") || !FreeLibrary(m)) return NULL;
    }
    return arg;
}

static void loading_and_freeing_from_threads_is_counted_right(void) {
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        t[i] = start_thread(load_and_free, t);
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(t[i], &result);
        CHECK(result != NULL);
    }
    CHECK(!is_loaded());
}

TEST_MAIN(TEST(load_find_call_free_works), TEST(library_loaded_twice_has_one_handle_and_two_counts),
          TEST(two_libraries_have_two_handles), TEST(load_failures_say_why),
          TEST(unknown_function_is_not_found),
          TEST(loading_and_freeing_from_threads_is_counted_right))
