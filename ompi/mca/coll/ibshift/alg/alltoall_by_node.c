/*
 * By node, with l leaders each (hierarchical: l = 1; multi-leader; node-aware: every rank leads). A
 * node's ranks are cut into l teams, each led by its first. Leaders gather what their teams send,
 * the leaders of one number exchange it between the nodes, those of one node among themselves, and
 * deal it out. Cost for N nodes of p ranks: N - 1 messages of p^2 m / l bytes between nodes, l - 1 of
 * N p^2 m / l^2 within, and 2 (p / l - 1) of P m for the team. Any P; the ranks of each node must be
 * evenly spaced.
 *
 * What a leader of a team of t keeps in TMP, in blocks, one after the other:
 *   GATHERED  [member but itself][rank]          what the team sends
 *   OUT       [node][member][place there]        by destination
 *   IN        [node][member there][place here]   by source
 *   ACROSS    [leader][source][place of its team]
 *   OWN       [leader][source][place of its team]
 *   DEALT     [member][leader][source]
 * With one leader IN is OWN; with a team of one OWN is DEALT.
 */
#include "plan/alg_emit.h"
#include "plan/teams.h"

enum { UNITS = IBSHIFT_ROUND_STEPS / 2 }; /* copies, or pairs of a receive and a send, a round */

enum stage { GATHER, PACK, EXCHANGE, SPLIT, SWAP, DEAL, DELIVER, UNPACK, STAGES };

enum tag { TAG_GATHER, TAG_EXCHANGE, TAG_SWAP, TAG_DELIVER };

struct seat {
    const struct ibshift_plan *plan;
    uint32_t nodes, leaders;
    uint32_t rank, node, size; /* of its node */
    uint32_t team;             /* its leader's number */
    uint32_t start, members;   /* of its team: the leader's place, and how many */
    bool leads;
    uint32_t sources; /* ranks of that team in all nodes */
    uint32_t out, in, across, own, dealt, end;
};

static uint32_t team_size(const struct seat *seat, uint32_t node, uint32_t team)
{
    return ibshift_team_size(seat->plan, seat->leaders, node, team);
}

static uint32_t sources_before(const struct seat *seat, uint32_t team)
{
    return ibshift_teams_before(seat->plan, seat->leaders, team);
}

static uint32_t team_before(const struct seat *seat, uint32_t node, uint32_t team)
{
    return ibshift_team_before(seat->plan, seat->leaders, node, team);
}

static uint32_t leader_rank(const struct seat *seat, uint32_t node, uint32_t team)
{
    uint32_t size = ibshift_nodes_size(seat->plan, node);

    return ibshift_nodes_rank(seat->plan, node, ibshift_team_start(size, seat->leaders, team));
}

static struct seat seat_of(const struct ibshift_plan *plan, uint32_t rank)
{
    uint32_t place = ibshift_nodes_place(plan, rank), ranks = plan->ranks, gathered;
    struct seat seat = {.plan = plan, .rank = rank, .nodes = ibshift_nodes_count(plan)};

    seat.leaders = ibshift_teams_count(plan);
    seat.node = ibshift_nodes_of(plan, rank);
    seat.size = ibshift_nodes_size(plan, seat.node);
    seat.team = ibshift_team_of(place, seat.size, seat.leaders);
    seat.start = ibshift_team_start(seat.size, seat.leaders, seat.team);
    seat.members = team_size(&seat, seat.node, seat.team);
    seat.leads = place == seat.start;
    seat.sources = sources_before(&seat, seat.team + 1) - sources_before(&seat, seat.team);
    if (!seat.leads) {
        seat.end = ranks;
        return seat;
    }
    gathered = (seat.members - 1) * ranks;
    seat.out = gathered;
    seat.in = seat.out + seat.members * ranks;
    seat.across = seat.in + seat.sources * seat.size;
    seat.own = seat.leaders > 1 ? seat.across + seat.sources * seat.size : seat.in;
    seat.dealt = seat.leaders > 1 ? seat.own + seat.members * ranks : seat.across;
    seat.end = seat.members > 1 ? seat.dealt + seat.members * ranks : seat.dealt;
    seat.dealt = seat.members > 1 ? seat.dealt : seat.own;
    return seat;
}

/* Copies, or pairs of messages, of a stage. */
static uint32_t units_of(const struct seat *seat, enum stage stage)
{
    if (!seat->leads && stage != GATHER && stage != UNPACK) {
        return 0;
    }
    switch (stage) {
    case GATHER:
        return seat->leads ? seat->members - 1 : 1;
    case PACK:
        return seat->members * seat->nodes;
    case EXCHANGE:
        return seat->nodes - 1;
    case SPLIT:
        return seat->leaders > 1 ? seat->leaders : 0;
    case SWAP:
        return seat->leaders - 1;
    case DEAL:
        return seat->members > 1 ? seat->members * seat->leaders : 0;
    case DELIVER:
        return seat->members - 1;
    default:
        return seat->leaders * seat->nodes;
    }
}

static uint32_t rounds_of(const struct seat *seat, enum stage stage)
{
    return (units_of(seat, stage) + UNITS - 1) / UNITS;
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    struct seat seat = seat_of(plan, rank);
    uint32_t sum = 0;

    for (int stage = 0; stage < STAGES; stage++) {
        sum += rounds_of(&seat, (enum stage)stage);
    }
    return sum;
}

/* The step just written takes runs so far apart from its source (puts them so into its target). */
static struct ibshift_step *spaced(struct ibshift_step *next, enum ibshift_stride_side side,
                                   uint32_t run, int32_t stride)
{
    if (stride != (int32_t)run && next[-1].count > run) {
        next[-1].strided = (uint8_t)side;
        next[-1].run = run;
        next[-1].stride = stride;
    }
    return next;
}

static struct emit_range tmp_blocks(uint32_t first, uint32_t count)
{
    return emit_blocks(IBSHIFT_TMP, first, count);
}

static struct ibshift_step *emit_gather(const struct seat *seat, struct ibshift_step *step,
                                        uint32_t unit)
{
    uint32_t ranks = seat->plan->ranks;

    if (seat->leads) {
        uint32_t member = ibshift_nodes_rank(seat->plan, seat->node, seat->start + 1 + unit);

        return emit_recv(step, member, tmp_blocks(unit * ranks, ranks), TAG_GATHER, 0, 0);
    }
    step = emit_recv(step, leader_rank(seat, seat->node, seat->team), tmp_blocks(0, ranks),
                     TAG_DELIVER, 0, 0);
    return emit_send(step, leader_rank(seat, seat->node, seat->team),
                     emit_blocks(IBSHIFT_SEND, 0, ranks), TAG_GATHER, 0);
}

static struct ibshift_step *emit_pack(const struct seat *seat, struct ibshift_step *step,
                                      uint32_t unit, uint32_t need)
{
    uint32_t node = unit / seat->members, member = unit % seat->members, ranks = seat->plan->ranks;
    uint32_t size = ibshift_nodes_size(seat->plan, node);
    uint32_t first = seat->plan->nodes != NULL ? seat->plan->nodes->first[node] : node;
    uint32_t to = node == seat->node
                      ? seat->in + (team_before(seat, node, seat->team) + member) * size
                      : seat->out + first * seat->members + member * size;
    uint32_t from = ibshift_nodes_rank(seat->plan, node, 0);

    step = emit_copy(step, tmp_blocks(to, size), member == 0 ? IBSHIFT_SEND : IBSHIFT_TMP,
                     member == 0 ? from : (member - 1) * ranks + from, need, 0);
    return spaced(step, IBSHIFT_STRIDED_SOURCE, 1, ibshift_nodes_spacing(seat->plan, node));
}

/* In stage d the node sends to the one d further on. */
static struct ibshift_step *emit_exchange(const struct seat *seat, struct ibshift_step *step,
                                          uint32_t unit, uint32_t need)
{
    uint32_t to = emit_add(seat->node, unit + 1, seat->nodes);
    uint32_t from = emit_sub(seat->node, unit + 1, seat->nodes);
    uint32_t first = seat->plan->nodes != NULL ? seat->plan->nodes->first[to] : to;

    step = emit_recv(step, leader_rank(seat, from, seat->team),
                     tmp_blocks(seat->in + team_before(seat, from, seat->team) * seat->size,
                                team_size(seat, from, seat->team) * seat->size),
                     TAG_EXCHANGE, 0, 0);
    return emit_send(step, leader_rank(seat, to, seat->team),
                     tmp_blocks(seat->out + first * seat->members,
                                ibshift_nodes_size(seat->plan, to) * seat->members),
                     TAG_EXCHANGE, need);
}

static struct ibshift_step *emit_split(const struct seat *seat, struct ibshift_step *step,
                                       uint32_t team, uint32_t need)
{
    uint32_t start = ibshift_team_start(seat->size, seat->leaders, team);
    uint32_t size = team_size(seat, seat->node, team);
    uint32_t to = team == seat->team ? seat->own + sources_before(seat, team) * seat->members
                                     : seat->across + seat->sources * start;

    step = emit_copy(step, tmp_blocks(to, seat->sources * size), IBSHIFT_TMP, seat->in + start,
                     need, 0);
    return spaced(step, IBSHIFT_STRIDED_SOURCE, size, (int32_t)seat->size);
}

static struct ibshift_step *emit_swap(const struct seat *seat, struct ibshift_step *step,
                                      uint32_t unit, uint32_t need)
{
    uint32_t to = emit_add(seat->team, unit + 1, seat->leaders);
    uint32_t from = emit_sub(seat->team, unit + 1, seat->leaders);
    uint32_t before = sources_before(seat, from);

    step = emit_recv(step, leader_rank(seat, seat->node, from),
                     tmp_blocks(seat->own + before * seat->members,
                                (sources_before(seat, from + 1) - before) * seat->members),
                     TAG_SWAP, 0, 0);
    return emit_send(
        step, leader_rank(seat, seat->node, to),
        tmp_blocks(seat->across + seat->sources * ibshift_team_start(seat->size, seat->leaders, to),
                   seat->sources * team_size(seat, seat->node, to)),
        TAG_SWAP, need);
}

static struct ibshift_step *emit_deal(const struct seat *seat, struct ibshift_step *step,
                                      uint32_t unit, uint32_t need)
{
    uint32_t member = unit / seat->leaders, team = unit % seat->leaders;
    uint32_t before = sources_before(seat, team), count = sources_before(seat, team + 1) - before;

    step = emit_copy(step, tmp_blocks(seat->dealt + member * seat->plan->ranks + before, count),
                     IBSHIFT_TMP, seat->own + before * seat->members + member, need, 0);
    return spaced(step, IBSHIFT_STRIDED_SOURCE, 1, (int32_t)seat->members);
}

static struct ibshift_step *emit_deliver(const struct seat *seat, struct ibshift_step *step,
                                         uint32_t unit, uint32_t need)
{
    uint32_t ranks = seat->plan->ranks;

    return emit_send(step, ibshift_nodes_rank(seat->plan, seat->node, seat->start + 1 + unit),
                     tmp_blocks(seat->dealt + (unit + 1) * ranks, ranks), TAG_DELIVER, need);
}

/* Of each team of each node. A rank that leads none has nothing else in TMP. */
static struct ibshift_step *emit_unpack(const struct seat *seat, struct ibshift_step *step,
                                        uint32_t unit, uint32_t need)
{
    uint32_t team = unit / seat->nodes, node = unit % seat->nodes;
    uint32_t start = ibshift_team_start(ibshift_nodes_size(seat->plan, node), seat->leaders, team);
    uint32_t from = seat->dealt + sources_before(seat, team) + team_before(seat, node, team);

    step = emit_copy(step,
                     emit_blocks(IBSHIFT_RECV, ibshift_nodes_rank(seat->plan, node, start),
                                 team_size(seat, node, team)),
                     IBSHIFT_TMP, from, need, seat->leads ? 0 : need);
    return spaced(step, IBSHIFT_STRIDED_TARGET, 1, ibshift_nodes_spacing(seat->plan, node));
}

static struct ibshift_step *emit_unit(const struct seat *seat, enum stage stage,
                                      struct ibshift_step *step, uint32_t unit, uint32_t need)
{
    switch (stage) {
    case GATHER:
        return emit_gather(seat, step, unit);
    case PACK:
        return emit_pack(seat, step, unit, need);
    case EXCHANGE:
        return emit_exchange(seat, step, unit, need);
    case SPLIT:
        return emit_split(seat, step, unit, need);
    case SWAP:
        return emit_swap(seat, step, unit, need);
    case DEAL:
        return emit_deal(seat, step, unit, need);
    case DELIVER:
        return emit_deliver(seat, step, unit, need);
    default:
        return emit_unpack(seat, step, unit, need);
    }
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct seat seat = seat_of(plan, rank);
    struct ibshift_step *step = out;
    uint32_t start = 0, unit, units;
    int stage = 0;

    for (; round - start >= rounds_of(&seat, (enum stage)stage); stage++) {
        start += rounds_of(&seat, (enum stage)stage);
    }
    unit = (round - start) * UNITS;
    units = units_of(&seat, (enum stage)stage);
    for (uint32_t end = unit + UNITS; unit < end && unit < units; unit++) {
        step = emit_unit(&seat, (enum stage)stage, step, unit, start);
    }
    return (uint32_t)(step - out);
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return seat_of(plan, rank).end;
}

/* What a team's ranks, of all nodes, send to so many places of ours. */
static void see_team(const struct seat *seat, uint32_t team, uint32_t first, uint32_t count,
                     ibshift_see_pair *see, void *who)
{
    for (uint32_t node = 0; node < seat->nodes; node++) {
        uint32_t size = ibshift_nodes_size(seat->plan, node);
        uint32_t place = ibshift_team_start(size, seat->leaders, team);
        uint32_t end = ibshift_team_start(size, seat->leaders, team + 1);

        for (; place < end; place++) {
            uint32_t from = ibshift_nodes_rank(seat->plan, node, place);

            for (uint32_t to = first; to < first + count; to++) {
                see(who, from, ibshift_nodes_rank(seat->plan, seat->node, to));
            }
        }
    }
}

static void see_all(const struct seat *seat, uint32_t first, uint32_t count, ibshift_see_pair *see,
                    void *who)
{
    for (uint32_t team = 0; team < seat->leaders; team++) {
        see_team(seat, team, first, count, see, who);
    }
}

/* GATHERED and OUT. */
static void see_sent(const struct seat *seat, ibshift_see_pair *see, void *who)
{
    const struct ibshift_plan *plan = seat->plan;
    uint32_t end = seat->start + seat->members;

    for (uint32_t member = seat->start + 1; member < end; member++) {
        for (uint32_t to = 0; to < plan->ranks; to++) {
            see(who, ibshift_nodes_rank(plan, seat->node, member), to);
        }
    }
    for (uint32_t node = 0; node < seat->nodes; node++) {
        uint32_t size = ibshift_nodes_size(plan, node);

        for (uint32_t member = seat->start; member < end; member++) {
            for (uint32_t place = 0; place < size; place++) {
                see(who, ibshift_nodes_rank(plan, seat->node, member),
                    ibshift_nodes_rank(plan, node, place));
            }
        }
    }
}

static void tmp_pairs(const struct ibshift_plan *plan, uint32_t rank, ibshift_see_pair *see,
                      void *who)
{
    struct seat seat = seat_of(plan, rank);

    if (!seat.leads) {
        see_all(&seat, ibshift_nodes_place(plan, rank), 1, see, who);
        return;
    }
    see_sent(&seat, see, who);
    see_team(&seat, seat.team, 0, seat.size, see, who); /* IN */
    for (uint32_t team = 0; team < seat.leaders && seat.leaders > 1; team++) {
        see_team(&seat, seat.team, ibshift_team_start(seat.size, seat.leaders, team),
                 team_size(&seat, seat.node, team), see, who); /* ACROSS */
    }
    if (seat.leaders > 1) {
        see_all(&seat, seat.start, seat.members, see, who); /* OWN */
    }
    for (uint32_t member = 0; member < seat.members && seat.members > 1; member++) {
        see_all(&seat, seat.start + member, 1, see, who); /* DEALT */
    }
}

const struct ibshift_alg ibshift_alg_alltoall_by_node = {
    .collective = IBSHIFT_ALLTOALL,
    .name = "by_node",
    .doc = "leaders of nodes exchange what their teams send, and distribute what arrives",
    .cost = "N-1 messages of p^2 m/l bytes between N nodes of p ranks with l leaders",
    .instead = "linear",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_LEADERS | IBSHIFT_ALG_SIZES_NODE,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
    .tmp_pairs = tmp_pairs,
};
