#include "plan/compose_blocks.h"

#include "plan/alg_emit.h"
#include "plan/teams.h"

static uint32_t part_start(const struct compose_view *view, uint32_t leader)
{
    return ibshift_teams_before(view->plan, view->leaders, leader);
}

/* Of a team on a node. */
static uint32_t node_start(const struct compose_view *view, uint32_t node, uint32_t leader)
{
    return part_start(view, leader) + ibshift_team_before(view->plan, view->leaders, node, leader);
}

/* The order of teams is that of ranks: the user's buffer serves as it is. */
static bool is_in_place(const struct compose_view *view)
{
    return view->plan->nodes == NULL || view->plan->nodes->nodes == 1 ||
           (view->leaders == 1 && view->plan->nodes->is_ordered);
}

static bool has_all(const struct compose_view *view)
{
    return !view->composition->is_rooted || view->rank == view->plan->root;
}

static bool uses(const struct compose_view *view, enum ibshift_where where)
{
    for (uint32_t p = 0; p < view->composition->count; p++) {
        if (view->composition->phase[p].send == where ||
            view->composition->phase[p].recv == where) {
            return true;
        }
    }
    return false;
}

/* TMP begins with all blocks in the order of teams, a leader's part, and its team's on the node. */
struct stores {
    uint32_t part, node, end; /* where they begin */
};

static struct stores stores_of(const struct compose_view *view)
{
    struct stores stores = {.part = has_all(view) && !is_in_place(view) ? view->plan->ranks : 0};

    stores.node = stores.end = stores.part;
    if (view->leads && uses(view, IBSHIFT_AT_PART)) {
        stores.node += part_start(view, view->team + 1) - part_start(view, view->team);
    }
    stores.end = stores.node;
    if (view->leads && uses(view, IBSHIFT_AT_TEAM) &&
        !(view->composition->is_rooted && has_all(view))) {
        stores.end += ibshift_team_size(view->plan, view->leaders, view->node, view->team);
    }
    return stores;
}

uint32_t compose_blocks_held(const struct compose_view *view)
{
    return stores_of(view).end;
}

uint32_t compose_blocks_held_rank(const struct compose_view *view, uint32_t slot)
{
    struct stores stores = stores_of(view);

    if (slot >= stores.node) {
        slot += node_start(view, view->node, view->team) - stores.node;
    } else if (slot >= stores.part) {
        slot += part_start(view, view->team) - stores.part;
    }
    return ibshift_teams_rank(view->plan, view->leaders, slot);
}

/* Where the block that an inner plan knows by that number begins in the order of teams: it is a
 * rank of the team, the team's ranks on a node, or the whole part. */
static uint32_t position_of(const struct compose_view *view, const struct compose_inner *inner,
                            uint32_t index)
{
    switch (inner->phase->among) {
    case IBSHIFT_AMONG_TEAM:
        return node_start(view, view->node, inner->leader) + index;
    case IBSHIFT_AMONG_LEADERS:
        return node_start(view, index, inner->leader);
    default:
        return part_start(view, inner->leader + index);
    }
}

static bool has_vector(const struct ibshift_alg *alg)
{
    return alg->collective == IBSHIFT_BCAST || alg->collective == IBSHIFT_REDUCE;
}

/* The block whose size a slot of the inner plan's TMP has. */
static uint32_t tmp_index(const struct compose_inner *inner, uint32_t slot)
{
    const struct ibshift_alg *alg = inner->phase->alg;

    if (has_vector(alg)) {
        return 0;
    }
    return alg->tmp_block != NULL ? alg->tmp_block(&inner->plan, inner->rank, slot)
                                  : slot % inner->plan.ranks;
}

static uint32_t size_of(const struct compose_view *view, const struct compose_inner *inner,
                        uint32_t index)
{
    return position_of(view, inner, index + 1) - position_of(view, inner, index);
}

uint32_t compose_blocks_tmp(const struct compose_view *view, const struct compose_inner *inner,
                            uint32_t slots)
{
    uint32_t sum = 0;

    if (has_vector(inner->phase->alg)) {
        return slots * size_of(view, inner, 0);
    }
    if (inner->phase->among == IBSHIFT_AMONG_TEAM || ibshift_teams_are_even(view->plan)) {
        return slots * size_of(view, inner, 0);
    }
    for (uint32_t slot = 0; slot < slots; slot++) {
        sum += size_of(view, inner, tmp_index(inner, slot));
    }
    return sum;
}

uint32_t compose_blocks_tmp_rank(const struct compose_view *view, const struct compose_inner *inner,
                                 uint32_t slot)
{
    uint32_t own = 0, size;

    while ((size = size_of(view, inner, tmp_index(inner, own))) <= slot) {
        slot -= size;
        own++;
    }
    return ibshift_teams_rank(view->plan, view->leaders,
                              position_of(view, inner, tmp_index(inner, own)) + slot);
}

/* Has the collective one block, the rank's own, in that buffer? */
static bool is_single(const struct ibshift_alg *alg, enum ibshift_buffer buf)
{
    return buf == IBSHIFT_SEND
               ? alg->collective == IBSHIFT_GATHER || alg->collective == IBSHIFT_ALLGATHER
               : alg->collective == IBSHIFT_SCATTER || alg->collective == IBSHIFT_REDUCE_SCATTER;
}

struct compose_place compose_blocks_place(const struct compose_view *view,
                                          const struct compose_inner *inner,
                                          enum ibshift_buffer buf, uint32_t first, uint32_t count)
{
    enum ibshift_where where = buf == IBSHIFT_SEND ? inner->phase->send : inner->phase->recv;
    struct stores stores = stores_of(view);
    uint32_t begin, end;

    if (where == IBSHIFT_AT_SEND || where == IBSHIFT_AT_RECV) {
        return (struct compose_place){where == IBSHIFT_AT_SEND ? IBSHIFT_SEND : IBSHIFT_RECV, first,
                                      count};
    }
    first += is_single(inner->phase->alg, buf) ? inner->rank : 0;
    begin = position_of(view, inner, first);
    end = position_of(view, inner, first + count);
    if (where == IBSHIFT_AT_PART) {
        return (struct compose_place){
            IBSHIFT_TMP, stores.part + begin - part_start(view, inner->leader), end - begin};
    }
    if (where == IBSHIFT_AT_TEAM && !(view->composition->is_rooted && has_all(view))) {
        return (struct compose_place){
            IBSHIFT_TMP, stores.node + begin - node_start(view, view->node, inner->leader),
            end - begin};
    }
    return (struct compose_place){is_in_place(view) ? view->composition->all : IBSHIFT_TMP, begin,
                                  end - begin};
}

/* Copies: one for each team of each node where its ranks are evenly spaced, else for each rank. */
static uint32_t sort_copies(const struct compose_view *view)
{
    if (is_in_place(view) || !has_all(view)) {
        return 0;
    }
    return view->plan->nodes->is_spaced ? view->leaders * ibshift_nodes_count(view->plan)
                                        : view->plan->ranks;
}

uint32_t compose_blocks_sort_rounds(const struct compose_view *view)
{
    return (sort_copies(view) + IBSHIFT_ROUND_STEPS - 1) / IBSHIFT_ROUND_STEPS;
}

/* count ranks from a position on, the first of them `rank`, so far apart. */
static struct ibshift_step *sort_copy(const struct compose_view *view, struct ibshift_step *step,
                                      uint32_t position, uint32_t rank, uint32_t count,
                                      int32_t stride, uint32_t before)
{
    bool unpacks = view->composition->all == IBSHIFT_RECV;

    step = unpacks ? emit_copy(step, emit_blocks(IBSHIFT_RECV, rank, count), IBSHIFT_TMP, position,
                               before, before)
                   : emit_copy(step, emit_blocks(IBSHIFT_TMP, position, count), IBSHIFT_SEND, rank,
                               before, before);
    if (count > 1 && stride != 1) {
        step[-1].strided = unpacks ? IBSHIFT_STRIDED_TARGET : IBSHIFT_STRIDED_SOURCE;
        step[-1].run = 1;
        step[-1].stride = stride;
    }
    return step;
}

uint32_t compose_blocks_sort(const struct compose_view *view, uint32_t round, uint32_t before,
                             struct ibshift_step *out)
{
    const struct ibshift_plan *plan = view->plan;
    struct ibshift_step *step = out;
    uint32_t copies = sort_copies(view), nodes = ibshift_nodes_count(plan);

    for (uint32_t i = 0; i < IBSHIFT_ROUND_STEPS; i++) {
        uint32_t copy = round * IBSHIFT_ROUND_STEPS + i, team = copy / nodes, node = copy % nodes;
        const uint32_t *ranks;

        if (copy >= copies) {
            break;
        }
        if (!plan->nodes->is_spaced) {
            step = sort_copy(view, step, ibshift_teams_position(plan, view->leaders, copy), copy, 1,
                             1, before);
            continue;
        }
        ranks = plan->nodes->rank_at + plan->nodes->first[node] +
                ibshift_team_start(ibshift_nodes_size(plan, node), view->leaders, team);
        step = sort_copy(
            view, step, node_start(view, node, team), ranks[0],
            ibshift_team_size(plan, view->leaders, node, team),
            ibshift_nodes_size(plan, node) > 1
                ? (int32_t)(ibshift_nodes_rank(plan, node, 1) - ibshift_nodes_rank(plan, node, 0))
                : 1,
            before);
    }
    return (uint32_t)(step - out);
}
