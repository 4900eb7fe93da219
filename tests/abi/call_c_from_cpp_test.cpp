/* SPDX-License-Identifier: MIT
 * call_c_from_cpp_test.cpp - a C++ program calls every method of objects implemented in C, through
 * the abstract class: the function of that slot is reached, with the object and all arguments
 * intact, and its result comes back.
 */
#include "record.h"
#include "support/testing.h"

static uint32_t next_result = 0x80000001;

static void begin() {
    memset(&record, 0, sizeof record);
    record.result = next_result += 0x01010101;
}

template <class T> struct argument {
    static T value(int i) {
        return (T)(uintptr_t)argument_bits(i);
    }
    static uint64_t bits(int i) {
        return (uint64_t)(uintptr_t)value(i);
    }
};
template <> struct argument<const IID &> {
    static const IID &value(int i) {
        return argument_iids[i];
    }
    static uint64_t bits(int i) {
        return (uint64_t)(uintptr_t)&argument_iids[i];
    }
};

static void check_arguments(const uint64_t *expected, int count) {
    for (int i = 0; i < RECORD_ARGS; i++) {
        /* EACH counts down: the first type listed has the highest index */
        uint64_t want = i >= 1 && i <= count ? expected[count - i] : 0;
        if (record.args[i] != want)
            FAIL("%s: argument %d from the end is 0x%llx, expected 0x%llx", record.called, i,
                 (unsigned long long)record.args[i], (unsigned long long)want);
    }
}

#define EXPECT_CALL(I, method)                                                                     \
    CHECK_EQ(record.calls, 1);                                                                     \
    CHECK_STR(record.called, #I "::" #method);                                                     \
    CHECK_PTR(record.self, object);                                                                \
    CHECK_EQ((uint32_t)result, record.result)

#define VALUE(i, t) argument<t>::value(i)
#define BITS(i, t) argument<t>::bits(i)
#define CALL0(I, ret, method)                                                                      \
    {                                                                                              \
        begin();                                                                                   \
        ret result = object->method();                                                             \
        EXPECT_CALL(I, method);                                                                    \
    }
#define CALL(I, ret, method, ...)                                                                  \
    {                                                                                              \
        begin();                                                                                   \
        ret result = object->method(EACH(VALUE, __VA_ARGS__));                                     \
        EXPECT_CALL(I, method);                                                                    \
        const uint64_t expected[] = { EACH(BITS, __VA_ARGS__) };                                   \
        check_arguments(expected, (int)(sizeof expected / sizeof expected[0]));                    \
    }

#define CASE(I, slots)                                                                             \
    static void I##_in_c_called_from_cpp_gets_every_argument() {                                   \
        I *object = c_##I();                                                                       \
        LIST_##I(CALL0, CALL, I)                                                                   \
    }
ALL_INTERFACES(CASE)

/* A derived interface is usable as each of its bases, in the slots of the base. */
static void derived_in_c_called_through_base_class_reaches_its_methods() {
    IND2Overlapped *as_overlapped = c_IND2Connector();
    IUnknown *as_unknown = as_overlapped;
    CHECK_PTR(as_unknown, c_IND2Connector());
    begin();
    CHECK_EQ((uint32_t)as_overlapped->CancelOverlappedRequests(), record.result);
    CHECK_STR(record.called, "IND2Connector::CancelOverlappedRequests");
    begin();
    CHECK_EQ((uint32_t)as_unknown->Release(), record.result);
    CHECK_STR(record.called, "IND2Connector::Release");
}

#define ROW(I, slots) TEST(I##_in_c_called_from_cpp_gets_every_argument),
TEST_MAIN(ALL_INTERFACES(ROW) TEST(derived_in_c_called_through_base_class_reaches_its_methods))
