/*
 * What `ibshift tune` measures between two ranks: plans of its own, run by the executor over the
 * component's nets and priced by the model that chooses algorithms. So the parameters that are
 * found mean what they mean there.
 */
#ifndef IBSHIFT_TUNE_PROBE_H
#define IBSHIFT_TUNE_PROBE_H

#include "choose/price.h"

enum tune_kind {
    TUNE_POST,   /* rank 0's time to send count messages, which nobody answers */
    TUNE_TAKE,   /* rank 1's time to receive them once all of them have arrived */
    TUNE_STREAM, /* rank 0's time to send count messages and to hear that all have come */
};

struct tune_probe {
    enum tune_kind kind;
    uint32_t count; /* messages in a row, at most TUNE_COUNT_MAX */
    uint64_t bytes; /* of each */
};

struct tune_point {
    struct tune_probe probe;
    double us;
    double weight; /* above 0: how much it is believed */
};

/* One byte: the model adds the time of the others to the gap. */
enum { TUNE_COUNT_MAX = 32, TUNE_SHORT = 1, TUNE_PROBES = 48 };

/* The probes for messages that are sent at once up to `eager` bytes; how many, at most TUNE_PROBES.
 */
int tune_probes(uint64_t eager, struct tune_probe *probes);

/* The plan that runs. A message above the eager limit is only received once an empty one has said
 * that rank 0 has begun: its grant is then part of the time. */
const struct ibshift_alg *tune_alg(const struct tune_probe *probe);
struct ibshift_plan tune_plan(const struct tune_probe *probe, uint64_t eager);

/* The w with which the model prices a short message and its answer on one processor so. */
double tune_turn(const struct ibshift_model *model, double us);

/* What the model says, in us; negative: it has no price. */
double tune_price(const struct tune_probe *probe, const struct ibshift_model *model);

#endif
