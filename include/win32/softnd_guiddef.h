/* SPDX-License-Identifier: MIT
 * softnd_guiddef.h - GUID and the DEFINE_GUID mechanism, as Win32 programs know them. Linux only.
 * Owns:    GUID, IID, CLSID, their by-reference forms, IsEqualGUID, DEFINE_GUID.
 * Threads: constants only.   Errors: none.
 *
 * DEFINE_GUID declares a GUID. When INITGUID is defined before the header that uses it (most
 * simply by including <initguid.h> first) it also defines it. Any number of source files may do
 * so: the definitions are weak, so the linker keeps one. GUIDs are compared by value, never by
 * address, so every library may have its own copy.
 */
#ifndef SOFTND_GUIDDEF_H
#define SOFTND_GUIDDEF_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
#define EXTERN_C extern "C"
#else
#define EXTERN_C extern
#endif

typedef struct _GUID {
    uint32_t Data1;
    uint16_t Data2;
    uint16_t Data3;
    uint8_t Data4[8];
} GUID;

typedef GUID *LPGUID;
typedef const GUID *LPCGUID;
typedef GUID IID;
typedef IID *LPIID;
typedef GUID CLSID;
typedef CLSID *LPCLSID;

/* By reference: a pointer in C, a reference in C++; the same machine word either way. */
#ifdef __cplusplus
#define REFGUID const GUID &
#define REFIID const IID &
#define REFCLSID const CLSID &

inline int IsEqualGUID(REFGUID a, REFGUID b) {
    return memcmp(&a, &b, sizeof(GUID)) == 0;
}
inline bool operator==(REFGUID a, REFGUID b) {
    return IsEqualGUID(a, b) != 0;
}
inline bool operator!=(REFGUID a, REFGUID b) {
    return IsEqualGUID(a, b) == 0;
}
#else
#define REFGUID const GUID *
#define REFIID const IID *
#define REFCLSID const CLSID *

#define IsEqualGUID(a, b) (memcmp((a), (b), sizeof(GUID)) == 0)
#endif

#define IsEqualIID(a, b) IsEqualGUID(a, b)
#define IsEqualCLSID(a, b) IsEqualGUID(a, b)

/* Defines a GUID in every file that has this line; the linker keeps one. */
#define SOFTND_GUID(name, d1, d2, d3, b0, b1, b2, b3, b4, b5, b6, b7)                              \
    EXTERN_C const GUID name __attribute__((weak));                                                \
    const GUID name = { d1, d2, d3, { b0, b1, b2, b3, b4, b5, b6, b7 } }

#endif

/* Outside the guard on purpose: <initguid.h> switches the meaning for what follows it. */
#undef DEFINE_GUID
#ifdef INITGUID
#define DEFINE_GUID(name, d1, d2, d3, b0, b1, b2, b3, b4, b5, b6, b7)                              \
    SOFTND_GUID(name, d1, d2, d3, b0, b1, b2, b3, b4, b5, b6, b7)
#else
#define DEFINE_GUID(name, d1, d2, d3, b0, b1, b2, b3, b4, b5, b6, b7) EXTERN_C const GUID name
#endif
