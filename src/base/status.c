/* SPDX-License-Identifier: MIT */
#include "base/status.h"

const char *sn_status_text(sn_status st) {
    switch (st) {
#define TEXT(name, text)                                                                           \
    case name: return text;
        SN_STATUS_LIST(TEXT)
#undef TEXT
    case SN_STATUS_COUNT: break;
    }
    return "unknown status";
}
