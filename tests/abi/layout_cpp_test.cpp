/* SPDX-License-Identifier: MIT
 * layout_cpp_test.cpp - the same checks, as C++ sees the headers.
 */
#include "layout_test.c"
