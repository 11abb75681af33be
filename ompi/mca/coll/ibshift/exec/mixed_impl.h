/* For mixed_run.c and mixed_tell.c only. */
#ifndef IBSHIFT_EXEC_MIXED_IMPL_H
#define IBSHIFT_EXEC_MIXED_IMPL_H

#include "exec/mixed.h"
#include "plan/teams.h"

static inline const struct ibshift_plan *mixed_plan_of(const struct ibshift_mixed *mixed)
{
    return &mixed->by_node.plan;
}

static inline bool mixed_is_alltoall(const struct ibshift_mixed *mixed)
{
    return mixed->by_node.alg->collective == IBSHIFT_ALLTOALL;
}

static inline bool mixed_is_root(const struct ibshift_mixed *mixed)
{
    return !mixed_is_alltoall(mixed) && mixed->by_node.rank == mixed_plan_of(mixed)->root;
}

/* The side that has a block for each rank, of a root. */
static inline enum ibshift_buffer mixed_all_of(const struct ibshift_mixed *mixed)
{
    return mixed->by_node.alg->collective == IBSHIFT_GATHER ? IBSHIFT_RECV : IBSHIFT_SEND;
}

static inline uint32_t mixed_team_of(const struct ibshift_mixed *mixed, uint32_t size,
                                     uint32_t place)
{
    return mixed_is_alltoall(mixed) ? ibshift_team_of(place, size, mixed->leaders) : 0;
}

/* Whether a place of the node is one of the own team's. */
static inline bool mixed_is_of_team(const struct ibshift_mixed *mixed, uint32_t place)
{
    return place >= mixed->start && place < mixed->end;
}

/* The root leads its node. */
static inline uint32_t mixed_leader_of(const struct ibshift_mixed *mixed, uint32_t node,
                                       uint32_t team)
{
    const struct ibshift_plan *plan = mixed_plan_of(mixed);

    if (!mixed_is_alltoall(mixed)) {
        return node == ibshift_nodes_of(plan, plan->root) ? plan->root
                                                          : ibshift_nodes_rank(plan, node, 0);
    }
    return ibshift_nodes_rank(
        plan, node, ibshift_team_start(ibshift_nodes_size(plan, node), mixed->leaders, team));
}

/* Of a leader of an all-to-all: what a rank of its node awaits from a rank of a team of its number; or from any rank, of its own
 * team. */
static inline uint32_t mixed_awaited_by(const struct ibshift_mixed *mixed, uint32_t place,
                                        uint32_t from)
{
    const uint32_t *row = mixed->told + mixed->rows[place];

    return mixed_is_of_team(mixed, place) ? row[mixed_plan_of(mixed)->ranks + from]
                                          : row[mixed->source_of[from]];
}

/* Memory for what is told. */
bool ibshift_mixed_reserve_words(struct ibshift_mixed *mixed);

/* The ops of the stages that tell; and of the second the result: 0, or -EMSGSIZE and mixed->unlike is set. */
void ibshift_mixed_enter_tell(struct ibshift_mixed *mixed, struct ibshift_op_params *params);
void ibshift_mixed_enter_check(struct ibshift_mixed *mixed, struct ibshift_op_params *params);
int ibshift_mixed_leave_check(struct ibshift_mixed *mixed);

#endif
