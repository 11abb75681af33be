/* How large a plan is, and how many bytes a step moves, from the symbolic blocks of the plan.
 *
 * "bytes" is what MPI calls count times extent: for scatter, gather, allgather, alltoall and
 * reduce_scatter it is one block (what one rank gives to or gets from one other); for bcast,
 * reduce, allreduce, scan and exscan it is the whole vector, cut into the plan's pieces at whole
 * elements. A barrier has none. */
#ifndef IBSHIFT_CHOOSE_SIZE_H
#define IBSHIFT_CHOOSE_SIZE_H

#include "plan/alg.h"

struct ibshift_sizes {
    const struct ibshift_alg *alg;
    const struct ibshift_plan *plan;
    uint64_t elements; /* of the vector, or of a block */
    uint32_t element;  /* bytes */
    uint32_t pieces;   /* of the vector; 0: blocks are all alike */
};

/* element must be at least 1; bytes that make no whole element count as one. */
void ibshift_sizes_begin(struct ibshift_sizes *sizes, const struct ibshift_alg *alg,
                         const struct ibshift_plan *plan, uint64_t bytes, uint32_t element);

/* What the step puts into (a receive, a local step) or takes from (a send) its buffer. */
uint64_t ibshift_sizes_step(const struct ibshift_sizes *sizes, uint32_t rank,
                            const struct ibshift_step *step);

/* Has the call scratch for which grants stand? */
bool ibshift_sizes_may_stand(const struct ibshift_sizes *sizes);

/* Of a receive: nothing of the call comes before, and it is into scratch for which grants stand. */
bool ibshift_sizes_stand(const struct ibshift_sizes *sizes, const struct ibshift_step *step);

/* Would the plans of all ranks send more messages than that, within a factor of the radix? 0: 2^32. */
bool ibshift_plan_exceeds(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                          uint64_t limit);

/* The most receives, or sends, of any rank, as far as the window lets them be in flight; the window where that takes
   little memory. */
uint32_t ibshift_plan_slots(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                            uint32_t window);

enum {
    IBSHIFT_SIZE_CLASSES = 192, /* four for each doubling of the bytes */
    IBSHIFT_SIZE_UNKNOWN = 8192 /* what is priced when no rank knows all sizes */
};

/* The class of that size; the largest size of a class: 1, 2, 3, ... 8, 10, 12, 14, 16, 20, ... */
int ibshift_size_class(uint64_t bytes);
uint64_t ibshift_class_size(int class);

#endif
