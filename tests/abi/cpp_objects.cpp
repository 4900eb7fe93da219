/* SPDX-License-Identifier: MIT
 * cpp_objects.cpp - one object per interface, implemented in C++: a class that overrides every
 * method and notes how it was called.
 */
#include "record.h"

namespace {

template <class T> uint64_t bits_of(T value) {
    return (uint64_t)(uintptr_t)value;
}
uint64_t bits_of_iid(const IID &iid) {
    return (uint64_t)(uintptr_t)&iid;
}
template <class T> struct bits {
    static uint64_t of(T value) {
        return bits_of(value);
    }
};
template <> struct bits<const IID &> {
    static uint64_t of(const IID &iid) {
        return bits_of_iid(iid);
    }
};

} // namespace

#define PARAMETER(i, t) t a##i
#define NOTE(i, t) record.args[i] = bits<t>::of(a##i)
#define BODY(I, ret, method)                                                                       \
    record.called = #I "::" #method;                                                               \
    record.self = static_cast<I *>(this);                                                          \
    record.calls++;                                                                                \
    return (ret)record.result;

#define METHOD0(I, ret, method)                                                                    \
    ret STDMETHODCALLTYPE method() override {                                                      \
        BODY(I, ret, method)                                                                       \
    }
#define METHOD(I, ret, method, ...)                                                                \
    ret STDMETHODCALLTYPE method(EACH(PARAMETER, __VA_ARGS__)) override {                          \
        EACH(NOTE, __VA_ARGS__);                                                                   \
        BODY(I, ret, method)                                                                       \
    }
#define OBJECT(I, slots)                                                                           \
    namespace {                                                                                    \
    struct I##_class final : public I {                                                            \
        LIST_##I(METHOD0, METHOD, I)                                                               \
    };                                                                                             \
    }                                                                                              \
    extern "C" I *cpp_##I(void) {                                                                  \
        static I##_class object;                                                                   \
        return &object;                                                                            \
    }
ALL_INTERFACES(OBJECT)
