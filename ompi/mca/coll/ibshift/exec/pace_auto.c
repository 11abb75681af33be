#include "exec/pace_auto.h"

enum { SHORT_LATENCIES = 8 };

/*
 * Slow messages, many at once, keep the bound best in simulations (docs/pacing.md), whatever the
 * jitter, and need no clock; but somebody must turn the crank meanwhile. The clock comes second
 * there, and is for those who ask for it.
 */
void ibshift_pace_choose(const struct ibshift_pace_facts *facts, struct ibshift_pace *pace,
                         const char **reason)
{
    ibshift_pace_default(pace, IBSHIFT_PACE_NONE);
    if (!facts->has_free_steps) {
        *reason = "steps wait for one another";
    } else if (facts->bytes <= facts->eager || facts->time < SHORT_LATENCIES * facts->latency) {
        *reason = "short messages";
    } else if (facts->all_hosts == 0) {
        *reason = "no routes are known";
    } else if (facts->hosts <= 2) {
        *reason = "nobody is in the way of two";
    } else if (facts->is_attended && facts->kib > 0) {
        ibshift_pace_default(pace, IBSHIFT_PACE_RATE);
        *reason = "long messages, ranks attend to them";
    } else {
        ibshift_pace_default(pace, IBSHIFT_PACE_GRANTS);
        pace->grants = pace->window = 2;
        *reason = facts->kib > 0 ? "long messages, ranks do not always attend to them"
                                 : "long messages, the link's rate is not known";
    }
}
