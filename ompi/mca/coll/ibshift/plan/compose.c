#include "plan/composition.h"

#include "plan/alg_emit.h"
#include "plan/compose_parts.h"
#include "plan/teams.h"

/* Of a phase without an algorithm. */
static uint32_t last_rounds(const struct compose_view *view, uint32_t leader)
{
    if (view->composition->is_prefix) {
        return view->composition->is_exclusive ? 2 : 1;
    }
    return leader == 0 ? (compose_sort_copies(view) + IBSHIFT_ROUND_STEPS - 1) / IBSHIFT_ROUND_STEPS
                       : 0;
}

static uint32_t rounds_of(const struct compose_view *view, const struct compose_inner *inner)
{
    const struct ibshift_alg *alg = inner->phase->alg;

    return alg == NULL         ? last_rounds(view, inner->leader)
           : inner->takes_part ? alg->rounds(&inner->plan, inner->rank)
                               : 0;
}

/* Of each phase, for one segment. Returns their sum. */
static uint32_t count_rounds(const struct compose_view *view, uint32_t rounds[IBSHIFT_PHASES_MAX])
{
    uint32_t sum = 0;

    for (uint32_t p = 0; p < view->composition->count; p++) {
        rounds[p] = 0;
        for (uint32_t leader = 0; leader < view->leaders; leader++) {
            struct compose_inner inner;

            compose_inner(view, p, leader, &inner);
            rounds[p] += rounds_of(view, &inner);
        }
        sum += rounds[p];
    }
    return sum;
}

uint32_t ibshift_compose_rounds(const struct ibshift_composition *composition,
                                const struct ibshift_plan *plan, uint32_t rank)
{
    struct compose_view view = compose_view(composition, plan, rank);
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
static uint32_t tags_among(uint32_t ranks)
{
    return 2 * ranks + 2;
}

static uint32_t tags_of_phase(const struct ibshift_plan *plan)
{
    uint32_t nodes = ibshift_nodes_count(plan), most = plan->nodes != NULL ? plan->nodes->most : 1;

    return tags_among(nodes > most ? nodes : most);
}

uint64_t ibshift_compose_tags(const struct ibshift_plan *plan)
{
    uint64_t waves = (uint64_t)plan->segments + IBSHIFT_PHASES_MAX;

    return waves * IBSHIFT_PHASES_MAX * (plan->leaders > 0 ? plan->leaders : 1) *
           tags_of_phase(plan);
}

static uint32_t first_tag(const struct compose_view *view, uint32_t wave, uint32_t phase,
                          uint32_t leader)
{
    uint32_t phases = view->composition->count;

    return compose_is_among_all(view->composition)
               ? phase * tags_among(view->plan->ranks)
               : ((wave * phases + phases - 1 - phase) * view->leaders + leader) *
                     tags_of_phase(view->plan);
}

/* What the rank does in a round. With one segment each wave is a phase: nothing is to be counted before. */
static void find(const struct compose_view *view, uint32_t round, struct compose_inner *inner)
{
    bool is_cut = view->segments > 1;
    uint32_t before = 0, wave = is_cut ? find_wave(view, round, &before) : 0, start;
    uint32_t tmp = is_cut ? 0 : compose_held(view);

    for (;; wave++, before = start) {
        uint32_t phases = view->composition->count, phase = wave < phases ? wave + 1 : phases;

        for (start = before; phase-- > 0 && is_at_work(view, wave, phase);) {
            for (uint32_t leader = 0; leader < view->leaders; leader++) {
                uint32_t rounds;

                compose_inner(view, phase, leader, inner);
                rounds = rounds_of(view, inner);
                if (round - start < rounds) {
                    inner->segment = wave - phase;
                    inner->before = before;
                    inner->start = start;
                    inner->tags = first_tag(view, wave, phase, leader);
                    inner->tmp = is_cut ? COMPOSE_UNKNOWN : tmp;
                    return;
                }
                start += rounds;
                tmp += is_cut ? 0 : compose_tmp(view, inner);
            }
        }
    }
}

/* Where blocks of the inner plan's buffers lie in ours. */
static struct compose_place place_of(const struct compose_view *view, struct compose_inner *inner,
                                     uint8_t buf, uint32_t first, uint32_t count)
{
    enum where where = buf == IBSHIFT_SEND ? inner->phase->send : inner->phase->recv;
    struct compose_place place = {where == AT_SEND ? IBSHIFT_SEND : IBSHIFT_RECV,
                                  first * inner->scale, count * inner->scale};
    bool is_root = view->rank == view->plan->root;

    if (view->composition->is_blocks) {
        return compose_place(view, inner, (enum ibshift_buffer)buf, first, count);
    }
    if (buf == IBSHIFT_TMP) {
        place.buf = IBSHIFT_TMP;
        place.first += inner->tmp != COMPOSE_UNKNOWN ? inner->tmp : compose_first_tmp(view, inner);
        return place;
    }
    place.first += compose_first_block(view, inner->segment, inner->leader);
    switch (where) {
    case AT_OWN:
        place.first += view->segments * view->pieces;
        place.buf = IBSHIFT_TMP; /* what is held comes first there */
        break;
    case AT_BEFORE:
    case AT_ROOT:
        place.buf = IBSHIFT_TMP;
        break;
    case AT_RESULT:
        place.buf = is_root ? IBSHIFT_RECV : IBSHIFT_TMP;
        break;
    case AT_KEPT:
        place.buf = is_root ? IBSHIFT_RECV : IBSHIFT_TMP;
        place.first += is_root ? view->rank : 0;
        break;
    case AT_PIECE:
        place.first += view->rank;
        break;
    default:
        break;
    }
    return place;
}

static void translate_message(const struct compose_view *view, const struct compose_inner *inner,
                              struct ibshift_step *step)
{
    if (inner->phase->among != AMONG_ALL) {
        step->peer = compose_rank(view, inner, step->peer);
    }
    step->tag += inner->tags;
    if (inner->phase->send == AT_NOTHING) {
        step->buf = step->kind == IBSHIFT_STEP_SEND ? IBSHIFT_SEND : IBSHIFT_RECV;
        step->first = step->count = 0;
    }
}

static void translate_source(const struct compose_view *view, struct compose_inner *inner,
                             struct ibshift_step *step)
{
    struct compose_place source = place_of(view, inner, step->src, step->from, step->count);

    step->src = (uint8_t)source.buf;
    step->from = source.first;
    if (step->kind != IBSHIFT_STEP_COPY) {
        source = place_of(view, inner, step->with, step->beside, step->count);
        step->with = (uint8_t)source.buf;
        step->beside = source.first;
        return;
    }
    step->run = step->strided != IBSHIFT_CONTIGUOUS ? step->run * inner->scale : source.count;
    step->stride *= (int32_t)inner->scale;
}

/* The root has it already. */
static bool is_left_out(const struct compose_view *view, const struct compose_inner *inner,
                        const struct ibshift_step *step)
{
    const struct ibshift_composition *composition = view->composition;
    uint32_t root = inner->plan.root;

    if (!composition->root_has_all || inner->phase == composition->phase) {
        return false;
    }
    if (step->kind == IBSHIFT_STEP_SEND) {
        return composition->is_direct && step->peer == root;
    }
    return view->rank == root && (step->buf == IBSHIFT_RECV ||
                                  (composition->is_direct && step->kind == IBSHIFT_STEP_RECV));
}

/* False for a step that there is nothing left of. */
static bool translate(const struct compose_view *view, struct compose_inner *inner,
                      struct ibshift_step *step)
{
    bool is_local = ibshift_step_is_local(step);
    struct compose_place target;

    if ((is_local && inner->phase->send == AT_NOTHING) || is_left_out(view, inner, step)) {
        return false;
    }
    target = place_of(view, inner, step->buf, step->first, step->count);
    if (is_local) {
        translate_source(view, inner, step);
    }
    step->buf = (uint8_t)target.buf;
    step->first = target.first;
    step->count = target.count;
    if (!is_local) {
        translate_message(view, inner, step);
    }
    step->need = step->need > 0 ? step->need + inner->start : inner->before;
    if (step->drain > 0) {
        step->drain += inner->start;
    } else if (step->kind != IBSHIFT_STEP_SEND) {
        step->drain = inner->before;
    }
    return step->kind != IBSHIFT_STEP_COPY || step->strided != IBSHIFT_CONTIGUOUS ||
           step->buf != step->src || step->first != step->from;
}

/* What a rank has scanned within its node goes to the next one there: only what is before counts. */
static uint32_t emit_shift(const struct compose_view *view, const struct compose_inner *inner,
                           struct ibshift_step *out)
{
    const struct ibshift_plan *plan = view->plan;
    uint32_t place = view->place, first = compose_first_block(view, inner->segment, 0);
    struct ibshift_step *step = out;

    if (place > 0) {
        step = emit_recv(step, ibshift_nodes_rank(plan, view->node, place - 1),
                         emit_blocks(IBSHIFT_RECV, first, view->pieces), inner->tags, inner->before,
                         inner->before);
    }
    if (place + 1 < ibshift_nodes_size(plan, view->node)) {
        step =
            emit_send(step, ibshift_nodes_rank(plan, view->node, place + 1),
                      emit_blocks(IBSHIFT_TMP, view->segments * view->pieces + first, view->pieces),
                      inner->tags, inner->before);
    }
    return (uint32_t)(step - out);
}

/* The last phase of a scan. */
static uint32_t emit_join(const struct compose_view *view, const struct compose_inner *inner,
                          uint32_t round, struct ibshift_step *out)
{
    uint32_t first = compose_first_block(view, inner->segment, 0), before = inner->before;
    struct emit_range result = emit_blocks(IBSHIFT_RECV, first, view->pieces);
    bool is_exclusive = view->composition->is_exclusive;

    if (is_exclusive && round == inner->start) {
        return emit_shift(view, inner, out);
    }
    if (view->node == 0) {
        return 0;
    }
    if (is_exclusive && view->place == 0) {
        emit_copy(out, result, IBSHIFT_TMP, first, before, before);
    } else {
        emit_reduce(out, IBSHIFT_STEP_REDUCE, result, IBSHIFT_TMP, first,
                    is_exclusive ? round : before, before);
    }
    return 1;
}

/* count ranks from a position in the order of teams on, the first of them `rank`, so far apart. */
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

/* Of blocks, the phase without an algorithm: between the order of ranks and that of teams. */
static uint32_t emit_sort(const struct compose_view *view, uint32_t round, uint32_t before,
                          struct ibshift_step *out)
{
    const struct ibshift_plan *plan = view->plan;
    uint32_t copies = compose_sort_copies(view), nodes = ibshift_nodes_count(plan);
    uint32_t copy = round * IBSHIFT_ROUND_STEPS;
    struct ibshift_step *step = out;

    for (uint32_t end = copy + IBSHIFT_ROUND_STEPS; copy < end && copy < copies; copy++) {
        uint32_t team = copy / nodes, node = copy % nodes;
        const uint32_t *ranks;

        if (!plan->nodes->is_spaced) {
            step = sort_copy(view, step, ibshift_teams_position(plan, view->leaders, copy), copy, 1,
                             1, before);
            continue;
        }
        ranks = plan->nodes->rank_at + plan->nodes->first[node] +
                ibshift_team_start(ibshift_nodes_size(plan, node), view->leaders, team);
        step = sort_copy(view, step, compose_node_start(view, node, team), ranks[0],
                         ibshift_team_size(plan, view->leaders, node, team),
                         ibshift_nodes_spacing(plan, node), before);
    }
    return (uint32_t)(step - out);
}

uint32_t ibshift_compose_emit(const struct ibshift_composition *composition,
                              const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                              struct ibshift_step *out)
{
    struct compose_view view = compose_view(composition, plan, rank);
    struct compose_inner inner;
    const struct ibshift_alg *alg;
    uint32_t kept = 0, count;

    find(&view, round, &inner);
    alg = inner.phase->alg;
    if (alg == NULL) {
        return composition->is_prefix ? emit_join(&view, &inner, round, out)
                                      : emit_sort(&view, round - inner.start, inner.before, out);
    }
    count = alg->emit(&inner.plan, inner.rank, round - inner.start, out);
    for (uint32_t i = 0; i < count; i++) {
        struct ibshift_step step = out[i];

        if (translate(&view, &inner, &step)) {
            out[kept++] = step;
        }
    }
    return kept;
}
