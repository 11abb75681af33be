#include "exec/pace/clock.h"

#include <stdlib.h>

static const double drift_max = 500e-6; /* quartz is ten times better; above it, a clock jumped */

/* So far apart, two offsets with the errors of a wire tell a drift. */
static const uint64_t drift_time = 500 * 1000 * 1000;

static int compare(const void *a, const void *b)
{
    const struct ibshift_trip *x = a, *y = b;

    return x->time < y->time ? -1 : x->time > y->time;
}

void ibshift_clock_fit(struct ibshift_trip *trips, uint32_t count, struct ibshift_trip *fit)
{
    uint32_t kept = count - count * IBSHIFT_CLOCK_DROPPED / 100;
    double offset = 0;

    qsort(trips, count, sizeof(*trips), compare);
    for (uint32_t i = 0; i < kept; i++) {
        offset += (double)(trips[i].offset - trips[0].offset) / kept;
    }
    fit->offset = trips[0].offset + (int64_t)offset;
    fit->time = trips[kept - 1].time;
}

bool ibshift_clock_set(struct ibshift_clock *clock, uint64_t own, int64_t offset, uint64_t error)
{
    uint64_t passed = own - clock->since;
    bool is_smooth = true;

    if (clock->is_known && passed >= drift_time) {
        double drift = (double)(offset - clock->offset) / (double)passed;

        is_smooth = drift < drift_max && drift > -drift_max;
        clock->drift = is_smooth ? drift : 0;
    }
    clock->offset = offset;
    clock->since = own;
    clock->error = error;
    clock->is_known = true;
    return is_smooth;
}
