/* SPDX-License-Identifier: MIT
 * rules.h - the verifier's rules: X(name, text). docs/ndk.md has an example report of each.
 */
#ifndef SN_NDK_RULES_H
#define SN_NDK_RULES_H

/* clang-format off */
#define NDK_RULES(X) \
    X(irql, "a routine is called at an IRQL that it allows") \
    X(callback_context, "a callback of the provider does not wait for the provider") \
    X(null_callback, "a callback that the interface requires is not NULL") \
    X(bad_callback, "a callback is a function of a loaded module") \
    X(use_after_close, "an object is not used once its close was started") \
    X(double_close, "an object is closed once") \
    X(close_in_call, "an object is not closed while another thread is inside one of its functions") \
    X(bad_object, "an object pointer names a live object of the right type") \
    X(parent_first, "children are closed before what they depend on") \
    X(leak, "everything is closed, released and freed before the end") \
    X(close_pending, "a consumer waits for its pending closes before it unloads") \
    X(dead_stack, "a request's context outlives the request") \
    X(wait_abandoned, "a wait for a pending request is not given up") \
    X(context_reused, "pending requests do not share a context") \
    X(event_reinit, "an event is not initialised again while it is waited for or will be set") \
    X(dead_wait, "a wait can end") \
    X(queue_overrun, "no more requests are outstanding than the queue is deep") \
    X(cq_too_small, "a completion queue holds what its queue pairs can have outstanding") \
    X(limits, "a request stays within the limits of its queue pair and adapter") \
    X(flags, "only flags that the request defines are given") \
    X(concurrent, "calls that the consumer must serialise do not overlap") \
    X(sge_token, "a segment names a live local token of the protection domain") \
    X(sge_range, "a segment lies inside its region") \
    X(virtual_for_logical, "the privileged token goes with logical addresses of a live mapping") \
    X(remote_token_local, "a remote token is for the peer, not for a local segment") \
    X(stale_token, "a token is not used after its invalidation") \
    X(remote_access, "the peer uses only memory that it was given and that it still has") \
    X(read_sink, "a Read's target may be written") \
    X(lam_in_use, "a mapping is released after everything that uses it completed") \
    X(bad_lam, "a mapping that is released was built and not released before") \
    X(mr_kind, "fast-register and ordinary regions are not mixed up") \
    X(mr_state, "a region is initialised before, and not registered twice without invalidation") \
    X(fast_register, "the arguments of NdkFastRegister describe one region in live mappings") \
    X(memory_freed, "memory and MDLs stay while a region or mapping covers them") \
    X(mdl_access, "an MDL is locked for the access that the adapter needs") \
    X(deferred_tail, "a chain of deferred requests ends with one that is not") \
    X(cq_not_rearmed, "a completion queue with results is drained or armed") \
    X(post_after_flush, "nothing is posted to a queue pair after its flush") \
    X(receive_late, "receives are posted before the connection is up") \
    X(late_connection_data, "limits and private data are asked for while they are defined") \
    X(version, "only functions of the version that the adapter reports are called") \
    X(connect_args, "addresses, lengths and private data of a connection are consistent") \
    X(work_item, "a work item is queued once at a time and not freed while queued") \
    X(spin_lock, "a spin lock is released by its owner and not acquired twice") \
    X(pool, "pool memory is freed once, with its tag") \
    X(wsk, "Winsock Kernel is registered, captured, released and deregistered in pairs") \
    X(assertion, "an assertion of the consumer holds")
/* clang-format on */

#define NDK_RULE_ENUM(name, text) NDK_RULE_##name,
enum ndk_rule { NDK_RULES(NDK_RULE_ENUM) NDK_RULE_COUNT };
#undef NDK_RULE_ENUM

#endif
