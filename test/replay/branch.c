/* What the compiler calls at each branch of a rank's copy: a part of the copy, for it is most of a run's calls. */
#include "scheduler.h"

__attribute__((visibility("default"))) struct replay_branches replay_branches;

__attribute__((visibility("hidden"))) void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    if (replay_branches.taken != NULL) {
        uintptr_t at = (uintptr_t)__builtin_return_address(0) - replay_branches.base;

        if (at < REPLAY_TAKEN) { /* of a jump, not a call, it is the caller's */
            replay_branches.taken[at] = 1;
        }
    }
    if (--replay_branches.budget <= 0) {
        replay_turn_ends();
    }
}
