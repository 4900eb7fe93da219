/* SPDX-License-Identifier: MIT */
#include <unistd.h>
#include "ndk/kenv/kenv.h"

int ke_cpu_count(void) {
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}
