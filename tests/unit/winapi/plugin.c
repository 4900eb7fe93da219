/* SPDX-License-Identifier: MIT
 * plugin.c - a library for module_test.c to load.
 */
int plugin_answer(int question);

__attribute__((visibility("default"))) int plugin_answer(int question) {
    return question + 42;
}
