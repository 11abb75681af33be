/* The buffers of the ranks of a simulated collective. */
#ifndef IBSHIFT_SIM_MEMORY_H
#define IBSHIFT_SIM_MEMORY_H

#include "exec/op.h"
#include "sim/sizes.h"

/*
 * Nobody looks at the bytes of most simulations: then all ranks share one address range for each
 * buffer, of which the system gives only the pages that copies touch. To be verified, each rank has
 * its own.
 */
struct sim_job_memory {
    uint32_t ranks;
    size_t length[IBSHIFT_BUFFERS]; /* the largest of any rank */
    char *shared[IBSHIFT_BUFFERS];  /* mapped */
    char *own;                      /* [rank][SEND, RECV], or NULL */
    size_t **offsets;               /* [rank]: TMP's, or NULL */
};

/* Sets params->blocks of all ranks: params[rank], `bytes` and `sizes` as in sim_job.h. -ENOMEM;
 * -ENOTSUP: cannot be verified, or not with sizes. */
int sim_memory_create(struct ibshift_op_params *const *params, uint32_t ranks, size_t bytes,
                      const struct sim_sizes *sizes, bool verify, struct sim_job_memory **memory);
void sim_memory_free(struct sim_job_memory *memory);

/* The first rank whose received bytes are wrong, or `ranks`. */
uint32_t sim_memory_check(const struct sim_job_memory *memory, enum ibshift_collective collective,
                          size_t bytes);

#endif
