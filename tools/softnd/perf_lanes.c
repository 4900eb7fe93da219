/* SPDX-License-Identifier: MIT
 * perf_lanes.c - the threads of a test; see perf_roles.h.
 */
#include "perf_roles.h"
#include "sys.h"

HRESULT perf_run_lanes(struct perf_lane *lanes, uint64_t count, void (*run)(void *lane)) {
    uint64_t started = 1;
    HRESULT hr = ND_SUCCESS;

    while (started < count && sys_thread_start(&lanes[started].thread, run, &lanes[started]))
        started++;
    if (started == count) run(&lanes[0]);
    if (started < count) hr = ND_INSUFFICIENT_RESOURCES;
    for (uint64_t i = 0; i < started; i++) {
        if (i) sys_thread_join(&lanes[i].thread);
        if (SUCCEEDED(hr)) hr = lanes[i].status;
    }
    return hr;
}
