#include "plan/compose_parts.h"

#include "plan/composition.h"
#include "plan/teams.h"

static uint32_t leader_of(const struct compose_view *view, uint32_t node, uint32_t leader)
{
    const struct ibshift_plan *plan = view->plan;
    uint32_t size = ibshift_nodes_size(plan, node);

    if (view->composition->is_rooted && node == ibshift_nodes_of(plan, plan->root)) {
        return plan->root;
    }
    if (view->composition->is_prefix) {
        return ibshift_nodes_rank(plan, node, size - 1);
    }
    return ibshift_nodes_rank(plan, node,
                              view->composition->is_blocks
                                  ? ibshift_team_start(size, view->leaders, leader)
                                  : leader % size);
}

/* The first place of a team on the rank's node. */
static uint32_t team_start(const struct compose_view *view, uint32_t team)
{
    return ibshift_team_start(ibshift_nodes_size(view->plan, view->node), view->leaders, team);
}

/* The plan that a phase's ranks run among themselves. */
static void make_plan(const struct compose_view *view, const struct ibshift_phase *phase,
                      uint32_t leader, struct ibshift_plan *inner)
{
    const struct ibshift_plan *plan = view->plan;
    uint32_t radix = phase->radix > 0 ? phase->radix : plan->radix;

    *inner = (struct ibshift_plan){.ranks = plan->ranks,
                                   .root = plan->root,
                                   .radix = radix < phase->alg->radix_max ? radix
                                                                          : phase->alg->radix_max,
                                   .segments = 1,
                                   .commutative = plan->commutative};
    switch (phase->among) {
    case AMONG_ALL:
        break;
    case AMONG_LEADERS:
        inner->ranks = ibshift_nodes_count(plan);
        inner->root = view->composition->is_rooted ? ibshift_nodes_of(plan, plan->root) : 0;
        break;
    case AMONG_TEAM:
        inner->ranks = ibshift_team_size(plan, view->leaders, view->node, leader);
        inner->root = ibshift_nodes_place(plan, leader_of(view, view->node, leader)) -
                      team_start(view, leader);
        break;
    case AMONG_NODE:
        inner->ranks = ibshift_nodes_size(plan, view->node);
        inner->root = ibshift_nodes_place(plan, leader_of(view, view->node, leader));
    }
}

static bool takes_part(const struct compose_view *view, const struct ibshift_phase *phase,
                       uint32_t leader)
{
    if (phase->send == AT_BEFORE && view->node == 0) {
        return false;
    }
    return phase->among == AMONG_LEADERS ? leader_of(view, view->node, leader) == view->rank
                                         : phase->among != AMONG_TEAM || view->team == leader;
}

static uint32_t inner_rank(const struct compose_view *view, enum among among)
{
    return among == AMONG_ALL       ? view->rank
           : among == AMONG_LEADERS ? view->node
           : among == AMONG_TEAM    ? view->place - team_start(view, view->team)
                                    : view->place;
}

void compose_inner(const struct compose_view *view, uint32_t phase, uint32_t leader,
                   struct compose_inner *inner)
{
    const struct ibshift_alg *alg = view->composition->phase[phase].alg;

    inner->phase = &view->composition->phase[phase];
    inner->leader = leader;
    inner->tmp = COMPOSE_UNKNOWN;
    inner->takes_part = alg != NULL && takes_part(view, inner->phase, leader);
    if (!inner->takes_part) {
        return;
    }
    make_plan(view, inner->phase, leader, &inner->plan);
    inner->rank = inner_rank(view, inner->phase->among);
    inner->scale = 1;
    if (view->pieces > 1 && ibshift_collective_has_vector(alg->collective)) {
        inner->scale = view->pieces / ibshift_alg_pieces(alg, &inner->plan);
    }
}

/* Of blocks: the rank's team, and the one piece that a block is. */
static void find_team(struct compose_view *view)
{
    view->leaders = view->composition->is_rooted ? 1 : ibshift_teams_count(view->plan);
    view->team =
        ibshift_team_of(view->place, ibshift_nodes_size(view->plan, view->node), view->leaders);
    view->leads = leader_of(view, view->node, view->team) == view->rank;
}

struct compose_view compose_view(const struct ibshift_composition *composition,
                                 const struct ibshift_plan *plan, uint32_t rank)
{
    struct compose_view view = {
        .composition = composition,
        .plan = plan,
        .rank = rank,
        .node = ibshift_nodes_of(plan, rank),
        .place = ibshift_nodes_place(plan, rank),
        .segments = composition->is_cut ? plan->segments : 1,
        .leaders =
            composition->is_cut && !composition->is_prefix && plan->leaders > 0 ? plan->leaders : 1,
        .pieces = compose_is_among_all(composition) ? plan->ranks : 1};

    if (composition->is_blocks) {
        find_team(&view);
        return view;
    }
    for (uint32_t p = 0; p < composition->count && !compose_is_among_all(composition); p++) {
        const struct ibshift_phase *phase = &composition->phase[p];

        if (phase->alg != NULL && phase->alg->pieces != NULL) {
            struct ibshift_plan inner;
            uint32_t pieces;

            make_plan(&view, phase, 0, &inner);
            pieces = phase->alg->pieces(&inner);
            view.pieces = pieces > view.pieces ? pieces : view.pieces;
        }
    }
    return view;
}

uint32_t compose_rank(const struct compose_view *view, const struct compose_inner *inner,
                      uint32_t rank)
{
    enum among among = inner->phase->among;

    if (among == AMONG_LEADERS) {
        return leader_of(view, rank, inner->leader);
    }
    rank += among == AMONG_TEAM ? team_start(view, inner->leader) : 0;
    return ibshift_nodes_rank(view->plan, view->node, rank);
}

static uint32_t part_start(const struct compose_view *view, uint32_t leader)
{
    return ibshift_teams_before(view->plan, view->leaders, leader);
}

uint32_t compose_node_start(const struct compose_view *view, uint32_t node, uint32_t leader)
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

uint32_t compose_sort_copies(const struct compose_view *view)
{
    if (is_in_place(view) || !has_all(view)) {
        return 0;
    }
    return view->plan->nodes->is_spaced ? view->leaders * ibshift_nodes_count(view->plan)
                                        : view->plan->ranks;
}

static bool uses(const struct compose_view *view, enum where where)
{
    for (uint32_t p = 0; p < view->composition->count; p++) {
        if (view->composition->phase[p].send == where ||
            view->composition->phase[p].recv == where) {
            return true;
        }
    }
    return false;
}

/* Of blocks: TMP begins with all of them in the order of teams, a leader's part, and its team's on the
 * node. */
struct stores {
    uint32_t part, node, end; /* where they begin */
};

static struct stores stores_of(const struct compose_view *view)
{
    struct stores stores = {.part = has_all(view) && !is_in_place(view) ? view->plan->ranks : 0};

    stores.node = stores.end = stores.part;
    if (view->leads && uses(view, AT_PART)) {
        stores.node += part_start(view, view->team + 1) - part_start(view, view->team);
    }
    stores.end = stores.node;
    if (view->leads && uses(view, AT_TEAM) && !(view->composition->is_rooted && has_all(view))) {
        stores.end += ibshift_team_size(view->plan, view->leaders, view->node, view->team);
    }
    return stores;
}

static bool leads_any(const struct compose_view *view)
{
    for (uint32_t leader = 0; leader < view->leaders; leader++) {
        if (leader_of(view, view->node, leader) == view->rank) {
            return true;
        }
    }
    return false;
}

uint32_t compose_held(const struct compose_view *view)
{
    const struct ibshift_composition *composition = view->composition;
    bool is_root = view->rank == view->plan->root;

    if (composition->is_blocks) {
        return stores_of(view).end;
    }
    if (composition->is_prefix) {
        return (composition->is_exclusive ? 2 : 1) * view->segments * view->pieces;
    }
    switch (composition->phase[0].recv) {
    case AT_ROOT:
        return is_root ? view->plan->ranks : 0;
    case AT_KEPT:
        return !is_root;
    case AT_RESULT:
        return !is_root && leads_any(view) ? view->segments * view->leaders * view->pieces : 0;
    default:
        return 0;
    }
}

/* The rank or piece whose block's size such a block has. */
static uint32_t held_block(const struct compose_view *view, uint32_t slot)
{
    struct stores stores;

    if (compose_is_among_all(view->composition)) {
        return view->composition->phase[0].recv == AT_ROOT ? slot : view->rank;
    }
    if (!view->composition->is_blocks) {
        return slot % (view->segments * view->leaders * view->pieces);
    }
    stores = stores_of(view);
    if (slot >= stores.node) {
        slot += compose_node_start(view, view->node, view->team) - stores.node;
    } else if (slot >= stores.part) {
        slot += part_start(view, view->team) - stores.part;
    }
    return ibshift_teams_rank(view->plan, view->leaders, slot);
}

/* Of blocks: where the block that an inner plan knows by that number begins in the order of teams: it is
 * a rank of the team, the team's ranks on a node, or the whole part. */
static uint32_t position_of(const struct compose_view *view, const struct compose_inner *inner,
                            uint32_t index)
{
    switch (inner->phase->among) {
    case AMONG_TEAM:
        return compose_node_start(view, view->node, inner->leader) + index;
    case AMONG_LEADERS:
        return compose_node_start(view, index, inner->leader);
    default:
        return part_start(view, inner->leader + index);
    }
}

/* The block whose size a slot of the inner plan's TMP has; one of a vector stands for all of ours. */
static uint32_t tmp_index(const struct compose_inner *inner, uint32_t slot)
{
    return ibshift_alg_tmp_block(inner->phase->alg, &inner->plan, inner->rank, slot);
}

static uint32_t size_of(const struct compose_view *view, const struct compose_inner *inner,
                        uint32_t index)
{
    return position_of(view, inner, index + 1) - position_of(view, inner, index);
}

/* Our blocks that so many first ones of an inner plan's TMP are. */
static uint32_t tmp_blocks(const struct compose_view *view, const struct compose_inner *inner,
                           uint32_t slots)
{
    uint32_t sum = 0;

    if (!view->composition->is_blocks) {
        return slots * inner->scale;
    }
    if (ibshift_collective_has_vector(inner->phase->alg->collective) ||
        inner->phase->among == AMONG_TEAM || ibshift_teams_are_even(view->plan)) {
        return slots * size_of(view, inner, 0);
    }
    for (uint32_t slot = 0; slot < slots; slot++) {
        sum += size_of(view, inner, tmp_index(inner, slot));
    }
    return sum;
}

uint32_t compose_tmp(const struct compose_view *view, const struct compose_inner *inner)
{
    const struct ibshift_alg *alg = inner->phase->alg;

    return inner->takes_part && alg->tmp != NULL && inner->phase->send != AT_NOTHING
               ? tmp_blocks(view, inner, alg->tmp(&inner->plan, inner->rank))
               : 0;
}

/*
 * TMP: what is held, then for each phase, segment and leader what the inner plan wants. None shares
 * it with another, so that parts may differ in size and be on their way at once.
 */
static uint32_t phase_tmp(const struct compose_view *view, uint32_t phase, uint32_t leaders)
{
    uint32_t sum = 0;

    for (uint32_t leader = 0; leader < leaders; leader++) {
        struct compose_inner inner;

        compose_inner(view, phase, leader, &inner);
        sum += compose_tmp(view, &inner);
    }
    return sum;
}

static uint32_t phases_tmp(const struct compose_view *view, uint32_t phases)
{
    uint32_t sum = compose_held(view);

    for (uint32_t p = 0; p < phases; p++) {
        sum += view->segments * phase_tmp(view, p, view->leaders);
    }
    return sum;
}

uint32_t compose_first_tmp(const struct compose_view *view, struct compose_inner *inner)
{
    uint32_t phase = (uint32_t)(inner->phase - view->composition->phase);

    if (inner->tmp == COMPOSE_UNKNOWN) {
        inner->tmp = phases_tmp(view, phase) + phase_tmp(view, phase, inner->leader);
        if (inner->segment > 0) {
            inner->tmp += inner->segment * phase_tmp(view, phase, view->leaders);
        }
    }
    return inner->tmp;
}

uint32_t ibshift_compose_tmp(const struct ibshift_composition *composition,
                             const struct ibshift_plan *plan, uint32_t rank)
{
    struct compose_view view = compose_view(composition, plan, rank);

    return phases_tmp(&view, composition->count);
}

/* The piece of the whole vector, or the rank's block, whose size a slot of an inner plan's TMP has. */
static uint32_t inner_tmp_block(const struct compose_view *view, const struct compose_inner *inner,
                                uint32_t segment, uint32_t slot)
{
    uint32_t own = 0, size;

    if (!view->composition->is_blocks) {
        return compose_first_block(view, segment, inner->leader) +
               tmp_index(inner, slot / inner->scale) * inner->scale + slot % inner->scale;
    }
    while ((size = size_of(view, inner, tmp_index(inner, own))) <= slot) {
        slot -= size;
        own++;
    }
    return ibshift_teams_rank(view->plan, view->leaders,
                              position_of(view, inner, tmp_index(inner, own)) + slot);
}

uint32_t ibshift_compose_tmp_block(const struct ibshift_composition *composition,
                                   const struct ibshift_plan *plan, uint32_t rank, uint32_t slot)
{
    struct compose_view view = compose_view(composition, plan, rank);
    uint32_t hold = compose_held(&view);

    if (slot < hold) {
        return held_block(&view, slot);
    }
    slot -= hold;
    for (uint32_t p = 0; p < composition->count; p++) {
        uint32_t size = phase_tmp(&view, p, view.leaders), segment = size > 0 ? slot / size : 0;

        if (slot >= view.segments * size) {
            slot -= view.segments * size;
            continue;
        }
        slot %= size;
        for (uint32_t leader = 0; leader < view.leaders; leader++) {
            struct compose_inner inner;

            compose_inner(&view, p, leader, &inner);
            if (slot < compose_tmp(&view, &inner)) {
                return inner_tmp_block(&view, &inner, segment, slot);
            }
            slot -= compose_tmp(&view, &inner);
        }
    }
    return 0;
}

uint32_t ibshift_compose_pieces(const struct ibshift_composition *composition,
                                const struct ibshift_plan *plan)
{
    struct compose_view view = compose_view(composition, plan, 0);

    return view.segments * view.leaders * view.pieces;
}

/* Has the collective one block, the rank's own, in that buffer? */
static bool is_single(const struct ibshift_alg *alg, enum ibshift_buffer buf)
{
    return buf == IBSHIFT_SEND
               ? alg->collective == IBSHIFT_GATHER || alg->collective == IBSHIFT_ALLGATHER
               : alg->collective == IBSHIFT_SCATTER || alg->collective == IBSHIFT_REDUCE_SCATTER;
}

/* Of blocks, in the order of teams. */
static struct compose_place place_in_order(const struct compose_view *view,
                                           const struct compose_inner *inner,
                                           enum ibshift_buffer buf, uint32_t first, uint32_t count)
{
    enum where where = buf == IBSHIFT_SEND ? inner->phase->send : inner->phase->recv;
    struct stores stores = stores_of(view);
    struct compose_place place = {IBSHIFT_TMP, 0, 0};

    first += is_single(inner->phase->alg, buf) ? inner->rank : 0;
    place.first = position_of(view, inner, first);
    place.count = position_of(view, inner, first + count) - place.first;
    if (where == AT_PART) {
        place.first += stores.part - part_start(view, inner->leader);
    } else if (where == AT_TEAM && !(view->composition->is_rooted && has_all(view))) {
        place.first += stores.node - compose_node_start(view, view->node, inner->leader);
    } else if (is_in_place(view)) {
        place.buf = view->composition->all;
    }
    return place;
}

struct compose_place compose_place(const struct compose_view *view, struct compose_inner *inner,
                                   enum ibshift_buffer buf, uint32_t first, uint32_t count)
{
    enum where where = buf == IBSHIFT_SEND ? inner->phase->send : inner->phase->recv;

    if (buf == IBSHIFT_TMP) {
        uint32_t begin = tmp_blocks(view, inner, first);

        return (struct compose_place){IBSHIFT_TMP, compose_first_tmp(view, inner) + begin,
                                      tmp_blocks(view, inner, first + count) - begin};
    }
    if (where == AT_SEND || where == AT_RECV) {
        return (struct compose_place){where == AT_SEND ? IBSHIFT_SEND : IBSHIFT_RECV, first, count};
    }
    return place_in_order(view, inner, buf, first, count);
}
