#include "plan/compose.h"

/* A rank's view of its plan: what does not depend on the round. */
struct view {
    const struct ibshift_composition *composition;
    const struct ibshift_plan *plan;
    uint32_t rank, node;
    uint32_t segments, leaders;
    uint32_t pieces; /* of a part */
};

/* A phase of one leader's part, as the rank takes part in it. */
struct inner {
    const struct ibshift_phase *phase;
    struct ibshift_plan plan;
    uint32_t rank;
    uint32_t rounds; /* 0: it does not */
    uint32_t scale;  /* blocks of ours that one of its blocks is */
};

static uint32_t leader_of(const struct view *view, uint32_t node, uint32_t leader)
{
    const struct ibshift_plan *plan = view->plan;

    if (view->composition->is_rooted && node == ibshift_nodes_of(plan, plan->root)) {
        return plan->root;
    }
    return ibshift_nodes_rank(plan, node, leader % ibshift_nodes_size(plan, node));
}

static uint32_t pieces_of(const struct ibshift_alg *alg, const struct ibshift_plan *plan)
{
    return alg->pieces != NULL ? alg->pieces(plan) : 1;
}

/* The plan that a phase's ranks run among themselves. */
static struct ibshift_plan inner_plan(const struct view *view, const struct ibshift_phase *phase,
                                      uint32_t leader)
{
    const struct ibshift_plan *plan = view->plan;
    struct ibshift_plan inner = {
        .radix = plan->radix < phase->alg->radix_max ? plan->radix : phase->alg->radix_max,
        .segments = 1,
        .commutative = plan->commutative};

    if (phase->among == IBSHIFT_AMONG_LEADERS) {
        inner.ranks = ibshift_nodes_count(plan);
        inner.root = view->composition->is_rooted ? ibshift_nodes_of(plan, plan->root) : 0;
    } else {
        inner.ranks = ibshift_nodes_size(plan, view->node);
        inner.root = ibshift_nodes_place(plan, leader_of(view, view->node, leader));
    }
    return inner;
}

static struct inner inner_of(const struct view *view, uint32_t phase, uint32_t leader)
{
    struct inner inner = {.phase = &view->composition->phase[phase]};
    bool is_out = inner.phase->among == IBSHIFT_AMONG_LEADERS &&
                  leader_of(view, view->node, leader) != view->rank;

    inner.plan = inner_plan(view, inner.phase, leader);
    inner.rank = inner.phase->among == IBSHIFT_AMONG_LEADERS
                     ? view->node
                     : ibshift_nodes_place(view->plan, view->rank);
    inner.rounds = is_out ? 0 : inner.phase->alg->rounds(&inner.plan, inner.rank);
    inner.scale = view->pieces / pieces_of(inner.phase->alg, &inner.plan);
    return inner;
}

static struct view view_of(const struct ibshift_composition *composition,
                           const struct ibshift_plan *plan, uint32_t rank)
{
    struct view view = {.composition = composition,
                        .plan = plan,
                        .rank = rank,
                        .node = ibshift_nodes_of(plan, rank),
                        .segments = composition->is_cut ? plan->segments : 1,
                        .leaders = composition->is_cut && plan->leaders > 0 ? plan->leaders : 1,
                        .pieces = 1};

    for (uint32_t p = 0; p < composition->count; p++) {
        const struct ibshift_phase *phase = &composition->phase[p];
        struct ibshift_plan inner = inner_plan(&view, phase, 0);
        uint32_t pieces = pieces_of(phase->alg, &inner);

        view.pieces = pieces > view.pieces ? pieces : view.pieces;
    }
    return view;
}

/* Of each phase, for one segment. Returns their sum. */
static uint32_t count_rounds(const struct view *view, uint32_t rounds[IBSHIFT_PHASES_MAX])
{
    uint32_t sum = 0;

    for (uint32_t p = 0; p < view->composition->count; p++) {
        rounds[p] = 0;
        for (uint32_t leader = 0; leader < view->leaders; leader++) {
            rounds[p] += inner_of(view, p, leader).rounds;
        }
        sum += rounds[p];
    }
    return sum;
}

uint32_t ibshift_compose_rounds(const struct ibshift_composition *composition,
                                const struct ibshift_plan *plan, uint32_t rank)
{
    struct view view = view_of(composition, plan, rank);
    uint32_t rounds[IBSHIFT_PHASES_MAX];

    return view.segments * count_rounds(&view, rounds);
}

/* No inner plan has more tags: rounds of a ring are its ranks, of a reduction twice as many. */
static uint32_t tags_of_phase(const struct ibshift_plan *plan)
{
    uint32_t nodes = ibshift_nodes_count(plan), most = plan->nodes != NULL ? plan->nodes->most : 1;

    return 2 * (nodes > most ? nodes : most) + 2;
}

uint64_t ibshift_compose_tags(const struct ibshift_plan *plan)
{
    uint64_t waves = (uint64_t)plan->segments + IBSHIFT_PHASES_MAX;

    return waves * IBSHIFT_PHASES_MAX * (plan->leaders > 0 ? plan->leaders : 1) *
           tags_of_phase(plan);
}

uint32_t ibshift_compose_pieces(const struct ibshift_composition *composition,
                                const struct ibshift_plan *plan)
{
    struct view view = view_of(composition, plan, 0);

    return view.segments * view.leaders * view.pieces;
}
