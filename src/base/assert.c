/* SPDX-License-Identifier: MIT */
#include "base/base.h"
#include <stdio.h>
#include <stdlib.h>

void sn_assert_failed(const char *cond, const char *file, int line) {
    fprintf(stderr, "softnd: internal error: %s (%s:%d)\n", cond, file, line);
    abort();
}
