#ifndef IBSHIFT_EXEC_PACE_PACE_AUTO_H
#define IBSHIFT_EXEC_PACE_PACE_AUTO_H

/* Which pace suits: for the component and the simulator alike. */

#include "exec/pace/pace.h"

/* What the choice looks at; the same on all ranks. Times in ns. */
struct ibshift_pace_facts {
    uint64_t bytes;      /* of a message */
    uint64_t eager;      /* shorter ones need no grant */
    double time;         /* that a message takes on its link */
    double latency;      /* of a short message */
    uint32_t ranks;      /* that take part */
    uint32_t all_hosts;  /* of the fabric; 0: no routes are known */
    bool has_free_steps; /* no step of the plan waits for another */
};

/* reason: a few words, for explain. */
void ibshift_pace_choose(const struct ibshift_pace_facts *facts, struct ibshift_pace *pace,
                         const char **reason);

#endif
