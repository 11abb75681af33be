/* What each rank has for each other, where that is not the same: an alltoallv. */
#ifndef IBSHIFT_SIM_SIZES_H
#define IBSHIFT_SIM_SIZES_H

#include <stdint.h>
#include <stdio.h>

#include "fabric/graph/fabric.h"

enum { SIM_SIZES_RANKS_MAX = 4096 };

struct sim_sizes {
    uint32_t ranks;
    int *sent;     /* [from * ranks + to], bytes; 0 to itself */
    int *received; /* [to * ranks + from], the same */
    int *places;   /* [rank]: 0, for nobody looks at the bytes */
};

/* All sizes 0; of at most SIM_SIZES_RANKS_MAX ranks. */
struct sim_sizes *sim_sizes_create(uint32_t ranks);
void sim_sizes_free(struct sim_sizes *sizes);

/* Sizes from `most` down to most / ratio, evenly spread by their logarithm. Of an event builder,
 * the first half of the ranks has them for the second half, and there is nothing else. */
void sim_sizes_draw(struct sim_sizes *sizes, uint32_t most, double ratio, uint64_t seed,
                    bool is_builder);

/* Lines "FROM TO BYTES"; '#' begins a comment. 0, or -EINVAL with file and line. */
int sim_sizes_read(struct sim_sizes *sizes, FILE *file, const char *name,
                   struct ibshift_error *err);

/* The largest. */
uint32_t sim_sizes_most(const struct sim_sizes *sizes);

#endif
