/* SPDX-License-Identifier: MIT
 * cmd_ndk_run_windows.c - `softnd ndk-run` where there is no libsoftndk.
 */
#include "cmd.h"

int cmd_ndk_run(int argc, char **argv) {
    (void)argc;
    (void)argv;
    return cmd_fail("ndk-run", "the kernel environment is for Linux only so far");
}
