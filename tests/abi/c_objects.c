/* SPDX-License-Identifier: MIT
 * c_objects.c - one object per interface, implemented in C: a table of functions that note how
 * they were called.
 */
#define CONST_VTABLE /* Windows: tables of IUnknown and IClassFactory may be const too */
#include "record.h"

struct record record;
const IID argument_iids[RECORD_ARGS];

#define PARAMETER(i, t) t a##i
#define NOTE(i, t) record.args[i] = (uint64_t)(uintptr_t)a##i
#define BODY(I, ret, method)                                                                       \
    record.called = #I "::" #method;                                                               \
    record.self = This;                                                                            \
    record.calls++;                                                                                \
    return (ret)record.result;

#define FUNCTION0(I, ret, method)                                                                  \
    static ret STDMETHODCALLTYPE I##_##method##_in_c(I *This) {                                    \
        BODY(I, ret, method)                                                                       \
    }
#define FUNCTION(I, ret, method, ...)                                                              \
    static ret STDMETHODCALLTYPE I##_##method##_in_c(I *This, EACH(PARAMETER, __VA_ARGS__)) {      \
        EACH(NOTE, __VA_ARGS__);                                                                   \
        BODY(I, ret, method)                                                                       \
    }
#define MEMBER0(I, ret, method) .method = I##_##method##_in_c,
#define MEMBER(I, ret, method, ...) .method = I##_##method##_in_c,

#define OBJECT(I, slots)                                                                           \
    LIST_##I(FUNCTION0, FUNCTION,                                                                  \
             I) static const I##Vtbl I##_table = { LIST_##I(MEMBER0, MEMBER, I) };                 \
    I *c_##I(void) {                                                                               \
        static I object = { &I##_table };                                                          \
        return &object;                                                                            \
    }
ALL_INTERFACES(OBJECT)
