/* SPDX-License-Identifier: MIT
 * call_cpp_from_c_test.c - a C program calls every method of objects implemented in C++, through
 * lpVtbl and through the call macros: the method named is reached, with the object and all
 * arguments intact, and its result comes back.
 */
#include "record.h"
#include "support/testing.h"

static uint32_t next_result = 0x80000001;

static void begin(void) {
    memset(&record, 0, sizeof record);
    record.result = next_result += 0x01010101;
}

#define ARGUMENT(i, t)                                                                             \
    _Generic((t)0,                                                                                 \
        const IID *: (t)(uintptr_t)&argument_iids[i],                                              \
        default: (t)(uintptr_t)argument_bits(i))
#define EXPECT_CALL(I, method, got)                                                                \
    CHECK_EQ(record.calls, 1);                                                                     \
    CHECK_STR(record.called, #I "::" #method);                                                     \
    CHECK_PTR(record.self, object);                                                                \
    CHECK_EQ((uint32_t)got, record.result)

/* Calls a macro with arguments that are themselves made by a macro. */
#define EXPAND(macro, ...) macro(__VA_ARGS__)

#define CALL0(I, ret, method)                                                                      \
    {                                                                                              \
        begin();                                                                                   \
        ret direct = object->lpVtbl->method(object);                                               \
        EXPECT_CALL(I, method, direct);                                                            \
        begin();                                                                                   \
        ret macro = I##_##method(object);                                                          \
        EXPECT_CALL(I, method, macro);                                                             \
    }
#define CALL(I, ret, method, ...)                                                                  \
    {                                                                                              \
        begin();                                                                                   \
        ret direct = object->lpVtbl->method(object, EACH(ARGUMENT, __VA_ARGS__));                  \
        EXPECT_CALL(I, method, direct);                                                            \
        CHECK_ARGUMENTS(__VA_ARGS__);                                                              \
        begin();                                                                                   \
        ret macro = EXPAND(I##_##method, object, EACH(ARGUMENT, __VA_ARGS__));                     \
        EXPECT_CALL(I, method, macro);                                                             \
        CHECK_ARGUMENTS(__VA_ARGS__);                                                              \
    }

/* The expected bits of all arguments, as designated initializers, then one loop. */
#define EXPECTED(i, t) [i] = (uint64_t)(uintptr_t)(ARGUMENT(i, t))
#define CHECK_ARGUMENTS(...)                                                                       \
    do {                                                                                           \
        const uint64_t expected[RECORD_ARGS] = { EACH(EXPECTED, __VA_ARGS__) };                    \
        for (int i = 1; i < RECORD_ARGS; i++)                                                      \
            if (record.args[i] != expected[i])                                                     \
                FAIL("%s: argument %d from the end is 0x%llx, expected 0x%llx", record.called, i,  \
                     (unsigned long long)record.args[i], (unsigned long long)expected[i]);         \
    } while (0)

#define CASE(I, slots)                                                                             \
    static void I##_in_cpp_called_from_c_gets_every_argument(void) {                               \
        I *object = cpp_##I();                                                                     \
        LIST_##I(CALL0, CALL, I)                                                                   \
    }
ALL_INTERFACES(CASE)

#define ROW(I, slots) TEST(I##_in_cpp_called_from_c_gets_every_argument),
TEST_MAIN(ALL_INTERFACES(ROW))
