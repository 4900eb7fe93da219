/* SPDX-License-Identifier: MIT
 * ndk_layout_cpp_test.cpp - the same checks as a C++ program.
 */
#include "ndk_layout_test.c"
