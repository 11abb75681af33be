#include "proof/split.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct cost {
    double hop, gap, block;
    const double *times;
};

static double given(const struct cost *c, uint32_t n)
{
    return c->hop + c->times[n];
}

static double kept(const struct cost *c, uint32_t m, uint32_t n)
{
    return c->gap + c->times[m - n];
}

static double total(const struct cost *c, uint32_t m, uint32_t n)
{
    return n * c->block + fmax(given(c, n), kept(c, m, n));
}

/* given() grows with n and kept() falls by at least a block's cost a step (a range of one more
 * takes that much longer), so the minimum is where they cross. */
static uint32_t best(const struct cost *c, uint32_t m)
{
    uint32_t low = 1, high = m - 1;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (given(c, middle) >= kept(c, m, middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low > 1 && total(c, m, low - 1) <= total(c, m, low) ? low - 1 : low;
}

int ibshift_model_split(const struct ibshift_model *model, uint64_t bytes, uint32_t ranks,
                        uint32_t *split)
{
    double *times = calloc((size_t)ranks + 1, sizeof(*times));
    struct cost cost = {
        .hop = model->send_max + model->latency + model->recv_max,
        .gap = fmax(model->gap, model->send_max),
        .block = (double)bytes * model->gap_byte,
        .times = times,
    };

    if (times == NULL) {
        return -ENOMEM;
    }
    for (uint32_t m = 2; m <= ranks; m++) {
        split[m] = best(&cost, m);
        times[m] = total(&cost, m, split[m]);
    }
    free(times);
    return 0;
}
