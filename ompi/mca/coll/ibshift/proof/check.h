/*
 * Proves a plan on all its ranks at once, with symbols instead of data.
 *
 * 1. Each rank's steps in plan order: shape and bounds; every pair of steps that touches the same
 * block is ordered by need and drain, whatever completes first. This makes the outcome independent
 * of timing.
 * 2. One run of all ranks with no buffering at all and the given window: sends meet receives by
 * name, size and order, everybody ends, every block is at last where MPI says, came once, and holds
 * what it should: for reductions all contributions in rank order, or all of them in any order when
 * the operator commutes. By ready.h a deadlock shows here or never.
 */
#ifndef IBSHIFT_PROOF_CHECK_H
#define IBSHIFT_PROOF_CHECK_H

#include "plan/alg.h"

struct ibshift_check {
    uint32_t window; /* 1..IBSHIFT_WINDOW_MAX */
    bool in_place;   /* SEND and RECV overlap as alg.h says */
    bool sizes; /* blocks of different sizes: what is stored must fit exactly where it is stored */
};

struct ibshift_check_result {
    uint64_t steps;
    uint64_t messages;
    uint64_t blocks; /* sent */
    char why[200];   /* one line that names rank, round and step; empty when all is well */
};

/*
 * 0; -EBADMSG when the plan is wrong; what ibshift_alg_check() says when it cannot be; -ENOMEM.
 * Needs 24 bytes a block of all buffers (32 of an all-to-all that says whose they are), and about 4 KiB and 48 bytes a message of the window a rank.
 */
int ibshift_check_plan(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                       const struct ibshift_check *check, struct ibshift_check_result *result);

#endif
