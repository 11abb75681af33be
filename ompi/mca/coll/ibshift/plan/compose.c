#include "plan/compose.h"

#include "plan/alg_emit.h"
#include "plan/compose_blocks.h"
#include "plan/teams.h"

/* Which phase of which part a round belongs to. */
struct stretch {
    uint32_t phase, segment, leader;
    uint32_t before; /* rounds of the waves before its wave */
    uint32_t start;  /* its first round */
    uint32_t tags;   /* its first tag */
};

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

static uint32_t pieces_of(const struct ibshift_alg *alg, const struct ibshift_plan *plan)
{
    return alg->pieces != NULL ? alg->pieces(plan) : 1;
}

/* The first place of a team on the rank's node. */
static uint32_t team_start(const struct compose_view *view, uint32_t team)
{
    return ibshift_team_start(ibshift_nodes_size(view->plan, view->node), view->leaders, team);
}

/* The plan that a phase's ranks run among themselves. */
static struct ibshift_plan inner_plan(const struct compose_view *view,
                                      const struct ibshift_phase *phase, uint32_t leader)
{
    const struct ibshift_plan *plan = view->plan;
    struct ibshift_plan inner = {
        .radix = plan->radix < phase->alg->radix_max ? plan->radix : phase->alg->radix_max,
        .segments = 1,
        .commutative = plan->commutative};

    if (phase->among == IBSHIFT_AMONG_LEADERS) {
        inner.ranks = ibshift_nodes_count(plan);
        inner.root = view->composition->is_rooted ? ibshift_nodes_of(plan, plan->root) : 0;
    } else if (phase->among == IBSHIFT_AMONG_TEAM) {
        inner.ranks = ibshift_team_size(plan, view->leaders, view->node, leader);
        inner.root = ibshift_nodes_place(plan, leader_of(view, view->node, leader)) -
                     team_start(view, leader);
    } else {
        inner.ranks = ibshift_nodes_size(plan, view->node);
        inner.root = ibshift_nodes_place(plan, leader_of(view, view->node, leader));
    }
    return inner;
}

static bool takes_part(const struct compose_view *view, const struct ibshift_phase *phase,
                       uint32_t leader)
{
    enum ibshift_among among = phase->among;

    if (phase->send == IBSHIFT_AT_BEFORE && view->node == 0) {
        return false;
    }
    return among == IBSHIFT_AMONG_NODE ||
           (among == IBSHIFT_AMONG_LEADERS ? leader_of(view, view->node, leader) == view->rank
                                           : view->team == leader);
}

static uint32_t inner_rank(const struct compose_view *view, enum ibshift_among among)
{
    uint32_t place = ibshift_nodes_place(view->plan, view->rank);

    return among == IBSHIFT_AMONG_LEADERS ? view->node
           : among == IBSHIFT_AMONG_TEAM  ? place - team_start(view, view->team)
                                          : place;
}

/* Of the phase without an algorithm. */
static uint32_t last_rounds(const struct compose_view *view, uint32_t leader)
{
    if (view->composition->is_prefix) {
        return view->composition->is_exclusive ? 2 : 1;
    }
    return leader == 0 ? compose_blocks_sort_rounds(view) : 0;
}

static struct compose_inner inner_of(const struct compose_view *view, uint32_t phase,
                                     uint32_t leader)
{
    struct compose_inner inner = {.phase = &view->composition->phase[phase], .leader = leader};
    enum ibshift_among among = inner.phase->among;

    if (inner.phase->alg == NULL) {
        inner.rounds = last_rounds(view, leader);
        return inner;
    }
    inner.plan = inner_plan(view, inner.phase, leader);
    inner.rank = inner_rank(view, among);
    inner.rounds = takes_part(view, inner.phase, leader)
                       ? inner.phase->alg->rounds(&inner.plan, inner.rank)
                       : 0;
    inner.scale = view->pieces / pieces_of(inner.phase->alg, &inner.plan);
    return inner;
}

/* Of blocks: the rank's team, and the one piece that a block is. */
static void find_team(struct compose_view *view)
{
    uint32_t place = ibshift_nodes_place(view->plan, view->rank);

    view->leaders = view->composition->is_rooted ? 1 : ibshift_teams_count(view->plan);
    view->team = ibshift_team_of(place, ibshift_nodes_size(view->plan, view->node), view->leaders);
    view->leads = leader_of(view, view->node, view->team) == view->rank;
}

static struct compose_view view_of(const struct ibshift_composition *composition,
                                   const struct ibshift_plan *plan, uint32_t rank)
{
    struct compose_view view = {
        .composition = composition,
        .plan = plan,
        .rank = rank,
        .node = ibshift_nodes_of(plan, rank),
        .segments = composition->is_cut ? plan->segments : 1,
        .leaders =
            composition->is_cut && !composition->is_prefix && plan->leaders > 0 ? plan->leaders : 1,
        .pieces = 1};

    if (composition->is_blocks) {
        find_team(&view);
        return view;
    }
    for (uint32_t p = 0; p < composition->count; p++) {
        const struct ibshift_phase *phase = &composition->phase[p];
        struct ibshift_plan inner;
        uint32_t pieces;

        if (phase->alg == NULL) {
            continue;
        }
        inner = inner_plan(&view, phase, 0);
        pieces = pieces_of(phase->alg, &inner);
        view.pieces = pieces > view.pieces ? pieces : view.pieces;
    }
    return view;
}

/* Of each phase, for one segment. Returns their sum. */
static uint32_t count_rounds(const struct compose_view *view, uint32_t rounds[IBSHIFT_PHASES_MAX])
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
    struct compose_view view = view_of(composition, plan, rank);
    uint32_t rounds[IBSHIFT_PHASES_MAX];

    return view.segments * count_rounds(&view, rounds);
}

/* Does the phase work on any segment in that wave? */
static bool is_at_work(const struct compose_view *view, uint32_t wave, uint32_t phase)
{
    return wave >= phase && wave - phase < view->segments;
}

/* The wave of a round; `before` gets the rounds of those before it. From the last phase's first
 * wave to the last segment's all phases are at work, so that those waves are alike. */
static uint32_t find_wave(const struct compose_view *view, uint32_t round, uint32_t *before)
{
    uint32_t rounds[IBSHIFT_PHASES_MAX], all = count_rounds(view, rounds), wave = 0;
    uint32_t phases = view->composition->count;

    for (*before = 0;; wave++) {
        uint32_t here = 0;

        if (wave + 1 == phases && view->segments > phases) {
            uint32_t skip = (round - *before) / all, most = view->segments - phases;

            skip = skip < most ? skip : most;
            wave += skip;
            *before += skip * all;
        }
        for (uint32_t p = 0; p < phases; p++) {
            here += is_at_work(view, wave, p) ? rounds[p] : 0;
        }
        if (round - *before < here) {
            return wave;
        }
        *before += here;
    }
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

static struct compose_inner find(const struct compose_view *view, uint32_t round,
                                 struct stretch *at)
{
    uint32_t wave = find_wave(view, round, &at->before), phases = view->composition->count;
    struct compose_inner inner;

    at->start = at->before;
    for (at->phase = phases; at->phase-- > 0;) {
        if (!is_at_work(view, wave, at->phase)) {
            continue;
        }
        for (at->leader = 0; at->leader < view->leaders; at->leader++) {
            inner = inner_of(view, at->phase, at->leader);
            if (round - at->start < inner.rounds) {
                at->segment = wave - at->phase;
                at->tags = ((wave * phases + phases - 1 - at->phase) * view->leaders + at->leader) *
                           tags_of_phase(view->plan);
                return inner;
            }
            at->start += inner.rounds;
        }
    }
    __builtin_unreachable(); /* a round of the plan is in one of its waves */
}

static uint32_t inner_tmp(const struct compose_view *view, const struct compose_inner *inner)
{
    uint32_t slots;

    if (inner->rounds == 0 || inner->phase->alg == NULL || inner->phase->alg->tmp == NULL ||
        inner->phase->send == IBSHIFT_NOWHERE) {
        return 0;
    }
    slots = inner->phase->alg->tmp(&inner->plan, inner->rank);
    return view->composition->is_blocks ? compose_blocks_tmp(view, inner, slots)
                                        : slots * inner->scale;
}

/* Blocks of TMP that hold what passes from phase to phase: a result on its way to the root, or of a
 * scan what goes before a rank's own sum, and that sum. */
static uint32_t held(const struct compose_view *view)
{
    bool is_held = false;

    if (view->composition->is_blocks) {
        return compose_blocks_held(view);
    }
    if (view->composition->is_prefix) {
        return (view->composition->is_exclusive ? 2 : 1) * view->segments * view->pieces;
    }
    if (view->rank == view->plan->root) {
        return 0;
    }
    for (uint32_t p = 0; p < view->composition->count; p++) {
        is_held |= view->composition->phase[p].recv == IBSHIFT_AT_RESULT;
    }
    for (uint32_t leader = 0; is_held && leader < view->leaders; leader++) {
        if (leader_of(view, view->node, leader) == view->rank) {
            return view->segments * view->leaders * view->pieces;
        }
    }
    return 0;
}

/*
 * TMP: what is held, then for each phase, segment and leader what the inner plan wants. None shares
 * it with another, so that parts may differ in size and be on their way at once.
 */
static uint32_t phase_tmp(const struct compose_view *view, uint32_t phase)
{
    uint32_t sum = 0;

    for (uint32_t leader = 0; leader < view->leaders; leader++) {
        struct compose_inner inner = inner_of(view, phase, leader);

        sum += inner_tmp(view, &inner);
    }
    return sum;
}

static uint32_t first_tmp(const struct compose_view *view, const struct stretch *at)
{
    uint32_t first = held(view) + at->segment * phase_tmp(view, at->phase);

    for (uint32_t p = 0; p < at->phase; p++) {
        first += view->segments * phase_tmp(view, p);
    }
    for (uint32_t leader = 0; leader < at->leader; leader++) {
        struct compose_inner inner = inner_of(view, at->phase, leader);

        first += inner_tmp(view, &inner);
    }
    return first;
}

uint32_t ibshift_compose_tmp(const struct ibshift_composition *composition,
                             const struct ibshift_plan *plan, uint32_t rank)
{
    struct compose_view view = view_of(composition, plan, rank);
    uint32_t sum = held(&view);

    for (uint32_t p = 0; p < composition->count; p++) {
        sum += view.segments * phase_tmp(&view, p);
    }
    return sum;
}

static uint32_t first_block(const struct compose_view *view, uint32_t segment, uint32_t leader)
{
    return (segment * view->leaders + leader) * view->pieces;
}

/* The piece of the whole vector, or the rank's block, whose size a slot of an inner plan's TMP has. */
static uint32_t inner_tmp_block(const struct compose_view *view, const struct compose_inner *inner,
                                uint32_t segment, uint32_t leader, uint32_t slot)
{
    const struct ibshift_alg *alg = inner->phase->alg;
    uint32_t own = slot / inner->scale, pieces = pieces_of(alg, &inner->plan), block;

    if (view->composition->is_blocks) {
        return compose_blocks_tmp_rank(view, inner, slot);
    }
    block = alg->tmp_block != NULL ? alg->tmp_block(&inner->plan, inner->rank, own) : own % pieces;

    return first_block(view, segment, leader) + block * inner->scale + slot % inner->scale;
}

uint32_t ibshift_compose_tmp_block(const struct ibshift_composition *composition,
                                   const struct ibshift_plan *plan, uint32_t rank, uint32_t slot)
{
    struct compose_view view = view_of(composition, plan, rank);
    uint32_t hold = held(&view);

    if (slot < hold) {
        return composition->is_blocks ? compose_blocks_held_rank(&view, slot)
                                      : slot % (view.segments * view.leaders * view.pieces);
    }
    slot -= hold;
    for (uint32_t p = 0; p < composition->count; p++) {
        uint32_t size = phase_tmp(&view, p), segment = size > 0 ? slot / size : 0;

        if (slot >= view.segments * size) {
            slot -= view.segments * size;
            continue;
        }
        slot %= size;
        for (uint32_t leader = 0; leader < view.leaders; leader++) {
            struct compose_inner inner = inner_of(&view, p, leader);

            if (slot < inner_tmp(&view, &inner)) {
                return inner_tmp_block(&view, &inner, segment, leader, slot);
            }
            slot -= inner_tmp(&view, &inner);
        }
    }
    return 0;
}

uint32_t ibshift_compose_pieces(const struct ibshift_composition *composition,
                                const struct ibshift_plan *plan)
{
    struct compose_view view = view_of(composition, plan, 0);

    return view.segments * view.leaders * view.pieces;
}

/* Where blocks of the inner plan's buffers lie in ours. */
static struct compose_place place_of(const struct compose_view *view,
                                     const struct compose_inner *inner, const struct stretch *at,
                                     uint8_t buf, uint32_t first, uint32_t count)
{
    enum ibshift_where where = buf == IBSHIFT_SEND ? inner->phase->send : inner->phase->recv;
    struct compose_place place = {where == IBSHIFT_AT_SEND ? IBSHIFT_SEND : IBSHIFT_RECV,
                                  first_block(view, at->segment, at->leader) + first * inner->scale,
                                  count * inner->scale};

    if (buf == IBSHIFT_TMP) {
        place.buf = IBSHIFT_TMP;
        place.first = first_tmp(view, at) + first * inner->scale;
        if (view->composition->is_blocks) {
            uint32_t begin = compose_blocks_tmp(view, inner, first);

            place.first = first_tmp(view, at) + begin;
            place.count = compose_blocks_tmp(view, inner, first + count) - begin;
        }
    } else if (view->composition->is_blocks) {
        return compose_blocks_place(view, inner, (enum ibshift_buffer)buf, first, count);
    } else if (where == IBSHIFT_AT_RESULT && view->rank != view->plan->root) {
        place.buf = IBSHIFT_TMP; /* what is held comes first there */
    } else if (where == IBSHIFT_AT_BEFORE || where == IBSHIFT_AT_OWN) {
        place.buf = IBSHIFT_TMP;
        place.first += where == IBSHIFT_AT_OWN ? view->segments * view->pieces : 0;
    }
    return place;
}

/* The inner plan's ranks in ours. */
static uint32_t rank_of(const struct compose_view *view, const struct compose_inner *inner,
                        const struct stretch *at, uint32_t rank)
{
    if (inner->phase->among == IBSHIFT_AMONG_LEADERS) {
        return leader_of(view, rank, at->leader);
    }
    rank += inner->phase->among == IBSHIFT_AMONG_TEAM ? team_start(view, at->leader) : 0;
    return ibshift_nodes_rank(view->plan, view->node, rank);
}

static void translate_message(const struct compose_view *view, const struct compose_inner *inner,
                              const struct stretch *at, struct ibshift_step *step)
{
    step->peer = rank_of(view, inner, at, step->peer);
    step->tag += at->tags;
    if (inner->phase->send == IBSHIFT_NOWHERE) {
        step->buf = step->kind == IBSHIFT_STEP_SEND ? IBSHIFT_SEND : IBSHIFT_RECV;
        step->first = step->count = 0;
    }
}

static void translate_local(const struct compose_place *source, uint32_t scale,
                            struct ibshift_step *step)
{
    bool is_strided = step->strided != IBSHIFT_CONTIGUOUS;

    step->src = (uint8_t)source->buf;
    step->from = source->first;
    step->run = is_strided ? step->run * scale : source->count;
    step->stride *= (int32_t)scale;
}

/* False for a step that there is nothing left of. */
static bool translate(const struct compose_view *view, const struct compose_inner *inner,
                      const struct stretch *at, struct ibshift_step *step)
{
    bool is_local = ibshift_step_is_local(step), is_empty = inner->phase->send == IBSHIFT_NOWHERE;
    struct compose_place source, target;

    if (is_local && is_empty) {
        return false;
    }
    target = place_of(view, inner, at, step->buf, step->first, step->count);
    if (is_local) {
        source = place_of(view, inner, at, step->src, step->from, step->count);
        translate_local(&source, inner->scale, step);
    }
    step->buf = (uint8_t)target.buf;
    step->first = target.first;
    step->count = target.count;
    if (!is_local) {
        translate_message(view, inner, at, step);
    }
    step->need = step->need > 0 ? step->need + at->start : at->before;
    if (step->drain > 0) {
        step->drain += at->start;
    } else if (step->kind != IBSHIFT_STEP_SEND) {
        step->drain = at->before;
    }
    return step->kind != IBSHIFT_STEP_COPY || step->strided != IBSHIFT_CONTIGUOUS ||
           step->buf != step->src || step->first != step->from;
}

/* What a rank has scanned within its node goes to the next one there: only what is before counts. */
static uint32_t emit_shift(const struct compose_view *view, const struct stretch *at,
                           struct ibshift_step *out)
{
    const struct ibshift_plan *plan = view->plan;
    uint32_t place = ibshift_nodes_place(plan, view->rank);
    uint32_t first = first_block(view, at->segment, 0), count = view->pieces;
    struct ibshift_step *step = out;

    if (place > 0) {
        step = emit_recv(step, ibshift_nodes_rank(plan, view->node, place - 1),
                         emit_blocks(IBSHIFT_RECV, first, count), at->tags, at->before, at->before);
    }
    if (place + 1 < ibshift_nodes_size(plan, view->node)) {
        step = emit_send(step, ibshift_nodes_rank(plan, view->node, place + 1),
                         emit_blocks(IBSHIFT_TMP, view->segments * view->pieces + first, count),
                         at->tags, at->before);
    }
    return (uint32_t)(step - out);
}

/* The last phase of a scan. */
static uint32_t emit_join(const struct compose_view *view, uint32_t round, const struct stretch *at,
                          struct ibshift_step *out)
{
    uint32_t first = first_block(view, at->segment, 0);
    struct emit_range result = emit_blocks(IBSHIFT_RECV, first, view->pieces);
    bool is_exclusive = view->composition->is_exclusive;

    if (is_exclusive && round == at->start) {
        return emit_shift(view, at, out);
    }
    if (view->node == 0) {
        return 0;
    }
    if (is_exclusive && ibshift_nodes_place(view->plan, view->rank) == 0) {
        emit_copy(out, result, IBSHIFT_TMP, first, at->before, at->before);
    } else {
        emit_local(out, IBSHIFT_STEP_REDUCE, result, IBSHIFT_TMP, first,
                   is_exclusive ? round : at->before, at->before);
    }
    return 1;
}

uint32_t ibshift_compose_emit(const struct ibshift_composition *composition,
                              const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                              struct ibshift_step *out)
{
    struct compose_view view = view_of(composition, plan, rank);
    struct stretch at;
    struct compose_inner inner = find(&view, round, &at);
    uint32_t kept = 0, count;

    if (inner.phase->alg == NULL && composition->is_prefix) {
        return emit_join(&view, round, &at, out);
    }
    if (inner.phase->alg == NULL) {
        return compose_blocks_sort(&view, round - at.start, at.before, out);
    }
    count = inner.phase->alg->emit(&inner.plan, inner.rank, round - at.start, out);
    for (uint32_t i = 0; i < count; i++) {
        struct ibshift_step step = out[i];

        if (translate(&view, &inner, &at, &step)) {
            out[kept++] = step;
        }
    }
    return kept;
}
