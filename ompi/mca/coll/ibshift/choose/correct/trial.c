#include "choose/correct/trial.h"

enum ibshift_trial_turn ibshift_trial_next(struct ibshift_trial *trial, uint32_t period)
{
    uint32_t place = ++trial->calls % period;

    if (place == 0) {
        return IBSHIFT_TRIAL_RIVAL;
    }
    return place == period - 1 ? IBSHIFT_TRIAL_OWN : IBSHIFT_TRIAL_IDLE;
}

void ibshift_trial_take(struct ibshift_trial *trial, enum ibshift_trial_turn turn, uint64_t ns)
{
    uint32_t at = trial->count[turn];

    if (at == IBSHIFT_TRIAL_CALLS) {
        return;
    }
    for (trial->count[turn]++; at > 0 && trial->ns[turn][at - 1] > ns; at--) {
        trial->ns[turn][at] = trial->ns[turn][at - 1];
    }
    trial->ns[turn][at] = ns;
}

bool ibshift_trial_is_full(const struct ibshift_trial *trial)
{
    return trial->count[IBSHIFT_TRIAL_OWN] == IBSHIFT_TRIAL_CALLS &&
           trial->count[IBSHIFT_TRIAL_RIVAL] == IBSHIFT_TRIAL_CALLS;
}

uint64_t ibshift_trial_quartile(const struct ibshift_trial *trial, enum ibshift_trial_turn turn)
{
    return trial->ns[turn][IBSHIFT_TRIAL_CALLS / 4];
}
