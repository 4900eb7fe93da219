/* SPDX-License-Identifier: MIT
 * status_name.h - the name of an internal status, for what a failed check says.
 */
#ifndef SN_TESTS_STATUS_NAME_H
#define SN_TESTS_STATUS_NAME_H

#include "base/status.h"

/* clang-format off */
static inline const char *sn_status_name(sn_status st) {
    switch (st) {
#define NAME(name, text) case name: return #name;
        SN_STATUS_LIST(NAME)
#undef NAME
    case SN_STATUS_COUNT: break;
    }
    return "SN_?";
}
/* clang-format on */

#endif
