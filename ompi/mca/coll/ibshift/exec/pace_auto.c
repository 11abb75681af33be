#include "exec/pace_auto.h"

enum { SHORT_LATENCIES = 8, SPARSE = 6 };

static const double jitter_max = 0.3; /* of a message's time */

void ibshift_pace_choose(const struct ibshift_pace_facts *facts, struct ibshift_pace *pace,
                         const char **reason)
{
    ibshift_pace_default(pace, IBSHIFT_PACE_NONE);
    if (!facts->has_free_steps) {
        *reason = "steps wait for one another";
    } else if (facts->bytes <= facts->eager || facts->time < SHORT_LATENCIES * facts->latency) {
        *reason = "short messages";
    } else if (facts->all_hosts == 0) {
        *reason = "routes are not known";
    } else if (facts->hosts <= 2) {
        *reason = "two hosts have nobody in their way";
    } else if (facts->hosts <= facts->all_hosts / SPARSE) {
        ibshift_pace_default(pace, IBSHIFT_PACE_RATE);
        *reason = "few of the fabric's hosts";
    } else if (facts->is_even && facts->is_attended && facts->has_clock &&
               facts->jitter <= jitter_max) {
        ibshift_pace_default(pace, IBSHIFT_PACE_CLK);
        *reason = "many of the fabric's hosts, one clock";
    } else {
        ibshift_pace_default(pace, IBSHIFT_PACE_GRANTS);
        pace->grants = pace->window = 2;
        *reason = "many of the fabric's hosts, no clock to go by";
    }
}
