/*
 * What the compiler calls at each branch of a rank's copy: a part of the copy, for it is most of a run's calls.
 */
#include "scheduler.h"

static struct replay_branches branches; /* hidden: no table says where it is */

__attribute__((visibility("default"))) struct replay_branches *replay_branches(void);
struct replay_branches *replay_branches(void)
{
    return &branches;
}

/* Whoever asks which were taken has a budget of one, and the others apart. */
static __attribute__((noinline)) void look_up(const void *branch)
{
    if (branches.taken != NULL) {
        uintptr_t at = (uintptr_t)branch - branches.base;

        if (at < REPLAY_TAKEN) { /* of a jump, not a call, it is the caller's */
            branches.taken[at] = 1;
        }
        if (branches.apart > 0) {
            branches.budget++;
            branches.apart--;
            return;
        }
    }
    replay_turn_ends();
}

__attribute__((visibility("hidden"))) void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    if (--branches.budget <= 0) {
        look_up(__builtin_return_address(0));
    }
}
