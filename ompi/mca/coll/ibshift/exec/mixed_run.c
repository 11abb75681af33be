#include "exec/mixed.h"

#include <errno.h>
#include <string.h>

#include "exec/mixed_impl.h"

static void *list(char **memory, size_t count, size_t size)
{
    char *at = *memory;

    *memory += (count * size + 7) / 8 * 8;
    return at;
}

static bool reserve_lists(struct ibshift_mixed *mixed)
{
    uint32_t ranks = mixed_plan_of(mixed)->ranks, nodes = ibshift_nodes_count(mixed_plan_of(mixed));
    size_t most = mixed->size > nodes ? mixed->size : nodes;
    size_t blocks = (size_t)mixed->sides[0].blocks + mixed->sides[1].blocks + ranks;
    char *memory = mixed->reserve(mixed->owner, IBSHIFT_MIXED_LISTS,
                                  (3 * (most + 1) + 2 * blocks) * sizeof(size_t) +
                                      (2 * (most + 1) + ranks) * sizeof(uint32_t) + 64);

    if (memory == NULL) {
        return false;
    }
    mixed->rows = list(&memory, most + 1, sizeof(size_t));
    mixed->sent = list(&memory, most + 1, sizeof(size_t));
    mixed->got = list(&memory, most + 1, sizeof(size_t));
    mixed->peers = list(&memory, most, sizeof(uint32_t));
    mixed->names = list(&memory, most, sizeof(uint32_t));
    mixed->source_of = list(&memory, ranks, sizeof(uint32_t));
    mixed->heard = list(&memory, ranks, sizeof(size_t));
    for (int i = 0; i < 2; i++) {
        mixed->lengths[i] = list(&memory, mixed->sides[i].blocks, sizeof(size_t));
        mixed->packed[i] = list(&memory, mixed->sides[i].blocks, sizeof(ptrdiff_t));
    }
    return true;
}

/* Where a rank of a team of our number is among those of all nodes: once, for most blocks ask for it. */
static void number_sources(struct ibshift_mixed *mixed)
{
    const struct ibshift_plan *plan = mixed_plan_of(mixed);

    mixed->sources = 0;
    for (uint32_t node = 0; node < ibshift_nodes_count(plan); node++) {
        uint32_t size = ibshift_nodes_size(plan, node);
        uint32_t place = ibshift_team_start(size, mixed->leaders, mixed->team);
        uint32_t end = ibshift_team_start(size, mixed->leaders, mixed->team + 1);

        for (; place < end; place++) {
            mixed->source_of[ibshift_nodes_rank(plan, node, place)] = mixed->sources++;
        }
    }
}

bool ibshift_mixed_begin(struct ibshift_mixed *mixed)
{
    const struct ibshift_plan *plan = mixed_plan_of(mixed);
    uint32_t rank = mixed->by_node.rank;

    if (mixed->has_told) {
        mixed->stage = IBSHIFT_MIXED_CHECK;
        return true;
    }
    mixed->stage = -1;
    mixed->leaders = mixed_is_alltoall(mixed) ? ibshift_teams_count(plan) : 1;
    mixed->node = ibshift_nodes_of(plan, rank);
    mixed->place = ibshift_nodes_place(plan, rank);
    mixed->size = ibshift_nodes_size(plan, mixed->node);
    mixed->team = mixed_team_of(mixed, mixed->size, mixed->place);
    mixed->leads = mixed_leader_of(mixed, mixed->node, mixed->team) == rank;
    mixed->start = ibshift_team_start(mixed->size, mixed->leaders, mixed->team);
    mixed->end = ibshift_team_start(mixed->size, mixed->leaders, mixed->team + 1);
    mixed->is_packed[0] = mixed->is_packed[1] = false;
    if (!reserve_lists(mixed)) {
        return false;
    }
    number_sources(mixed);
    return ibshift_mixed_reserve_words(mixed);
}

static bool is_short(const struct ibshift_mixed *mixed, size_t length)
{
    return length <= mixed->most;
}

/* The stage's blocks; others are as if they had no bytes. Whether there are any with bytes. */
static bool find_lengths(struct ibshift_mixed *mixed, bool wants_short)
{
    bool has_any = false;

    for (int i = 0; i < 2; i++) {
        const struct ibshift_mixed_side *side = &mixed->sides[i];

        for (uint32_t block = 0; block < side->blocks; block++) {
            size_t length = side->lengths[block];

            mixed->lengths[i][block] = is_short(mixed, length) == wants_short ? length : 0;
            has_any |= mixed->lengths[i][block] > 0;
        }
    }
    return has_any;
}

/* The ends of blocks, one after the other. */
struct ends {
    const struct ibshift_mixed *mixed;
    size_t *next;
};

static void add_pair(void *who, uint32_t from, uint32_t to)
{
    struct ends *ends = who;
    const struct ibshift_mixed *mixed = ends->mixed;
    const struct ibshift_plan *plan = mixed_plan_of(mixed);
    size_t length;

    if (from == mixed->by_node.rank) {
        length = mixed->lengths[IBSHIFT_SEND][to];
    } else if (to == mixed->by_node.rank) {
        length = mixed->lengths[IBSHIFT_RECV][from];
    } else {
        uint32_t place = ibshift_nodes_place(plan, from);

        length = ibshift_nodes_of(plan, from) == mixed->node && mixed_is_of_team(mixed, place)
                     ? mixed->told[mixed->rows[place] + to]
                     : mixed_awaited_by(mixed, ibshift_nodes_place(plan, to), from);
        length = is_short(mixed, length) ? length : 0;
    }
    ends->next[1] = ends->next[0] + length;
    ends->next++;
}

/* Of an all-to-all the size of a block depends on both its ranks. */
static bool lay_out_pairs(struct ibshift_mixed *mixed)
{
    const struct ibshift_op_params *main = &mixed->by_node;
    uint32_t slots = ibshift_alg_blocks(main->alg, &main->plan, main->rank, IBSHIFT_TMP);
    size_t *offsets =
        mixed->reserve(mixed->owner, IBSHIFT_MIXED_OFFSETS, ((size_t)slots + 1) * sizeof(size_t));
    struct ends ends = {mixed, offsets};

    if (offsets == NULL) {
        return false;
    }
    offsets[0] = 0;
    main->alg->tmp_pairs(&main->plan, main->rank, add_pair, &ends);
    mixed->tmp = (struct ibshift_blocks){.unit = 1, .layout = IBSHIFT_OFFSETS, .offsets = offsets};
    mixed->tmp_bytes = offsets[slots];
    return true;
}

/* The root knows all sizes, a leader those of its node, others need none. */
static bool lay_out_rooted(struct ibshift_mixed *mixed)
{
    const struct ibshift_op_params *main = &mixed->by_node;
    const struct ibshift_plan *plan = mixed_plan_of(mixed);
    const size_t *sizes = mixed_is_root(mixed) ? mixed->lengths[mixed_all_of(mixed)] : mixed->heard;
    const struct ibshift_blocks heard = {.unit = 1,
                                         .layout = IBSHIFT_SIZE_COUNTS,
                                         .size_counts = sizes,
                                         .size_displs = (const ptrdiff_t *)sizes};
    size_t count, *offsets;

    memset(mixed->heard, 0, plan->ranks * sizeof(size_t));
    for (uint32_t place = 0; place < mixed->size && mixed->leads; place++) {
        uint32_t word = mixed->told[mixed->rows[place]];

        mixed->heard[ibshift_nodes_rank(plan, mixed->node, place)] =
            is_short(mixed, word) ? word : 0;
    }
    count = ibshift_tmp_offsets(main->alg, plan, main->rank, &heard);
    offsets = mixed->reserve(mixed->owner, IBSHIFT_MIXED_OFFSETS, (count + 1) * sizeof(size_t));
    if (offsets == NULL) {
        return false;
    }
    mixed->tmp_bytes =
        ibshift_tmp_layout(main->alg, plan, main->rank, &heard, offsets, &mixed->tmp);
    return true;
}

/* In one piece, where they are. */
static bool is_dense(const struct ibshift_mixed_side *side, const size_t *lengths)
{
    ptrdiff_t next = 0;
    bool is_first = true;

    for (uint32_t i = 0; i < side->blocks; i++) {
        if (lengths[i] == 0) {
            continue;
        }
        if (!is_first && side->places[i] != next) {
            return false;
        }
        is_first = false;
        next = side->places[i] + (ptrdiff_t)lengths[i];
    }
    return true;
}

/* Whether the plan copies a root's blocks one by one, wherever they are, for ranks are not in the order of nodes. */
static bool sorts(const struct ibshift_mixed *mixed)
{
    const struct ibshift_nodes *nodes = mixed_plan_of(mixed)->nodes;

    return nodes != NULL && !nodes->is_ordered;
}

/* Blocks of which several go in one message: those that a rank without a team gives its leader, and a root's. */
static size_t find_packed(struct ibshift_mixed *mixed)
{
    enum ibshift_buffer which = mixed_is_alltoall(mixed) ? IBSHIFT_SEND : mixed_all_of(mixed);
    size_t sum = 0;

    if ((mixed_is_alltoall(mixed) ? mixed->leads : !mixed_is_root(mixed) || sorts(mixed)) ||
        is_dense(&mixed->sides[which], mixed->lengths[which])) {
        return 0;
    }
    mixed->is_packed[which] = true;
    for (uint32_t i = 0; i < mixed->sides[which].blocks; i++) {
        mixed->packed[which][i] = (ptrdiff_t)sum;
        sum += mixed->lengths[which][i];
    }
    return sum;
}

static void move_packed(const struct ibshift_mixed *mixed, enum ibshift_buffer which, bool pack)
{
    const struct ibshift_mixed_side *side = &mixed->sides[which];

    for (uint32_t i = 0; i < side->blocks && mixed->is_packed[which]; i++) {
        char *at = side->base + side->places[i];
        char *packed = mixed->data + mixed->tmp_bytes + mixed->packed[which][i];

        memmove(pack ? packed : at, pack ? at : packed, mixed->lengths[which][i]);
    }
}

static void set_blocks(const struct ibshift_mixed *mixed, enum ibshift_buffer which, bool is_packed,
                       struct ibshift_op_params *params)
{
    const struct ibshift_mixed_side *side = &mixed->sides[which];

    params->blocks[which] =
        (struct ibshift_blocks){.base = side->base,
                                .unit = 1,
                                .layout = IBSHIFT_SIZE_COUNTS,
                                .size_counts = mixed->lengths[which],
                                .size_displs = is_packed ? mixed->packed[which] : side->places};
    if (side->blocks == 0) {
        params->blocks[which] = (struct ibshift_blocks){.unit = 0};
    } else if (is_packed) {
        params->blocks[which].base = mixed->data + mixed->tmp_bytes;
    }
}

static int enter_short(struct ibshift_mixed *mixed, struct ibshift_op_params *params)
{
    size_t packed;

    (void)find_lengths(mixed, true);
    if (!mixed->has_told) {
        if (!(mixed_is_alltoall(mixed) ? lay_out_pairs(mixed) : lay_out_rooted(mixed))) {
            return -ENOMEM;
        }
        packed = find_packed(mixed);
        mixed->data =
            mixed->reserve(mixed->owner, IBSHIFT_MIXED_DATA, mixed->tmp_bytes + packed + 1);
        if (mixed->data == NULL) {
            return -ENOMEM;
        }
        mixed->tmp.base = mixed->data;
        mixed->has_told = true;
    }
    move_packed(mixed, IBSHIFT_SEND, true);
    *params = mixed->by_node;
    set_blocks(mixed, IBSHIFT_SEND, mixed->is_packed[IBSHIFT_SEND], params);
    set_blocks(mixed, IBSHIFT_RECV, mixed->is_packed[IBSHIFT_RECV], params);
    params->blocks[IBSHIFT_TMP] = mixed->tmp;
    return 1;
}

/* Pairs of ranks do not wait for others. */
static int enter_long(struct ibshift_mixed *mixed, struct ibshift_op_params *params)
{
    if (!find_lengths(mixed, false)) {
        return 0;
    }
    *params = mixed->flat;
    set_blocks(mixed, IBSHIFT_SEND, false, params);
    set_blocks(mixed, IBSHIFT_RECV, false, params);
    params->blocks[IBSHIFT_TMP] = (struct ibshift_blocks){.unit = 0};
    return 1;
}

/* 1: this rank takes part. */
static int enter(struct ibshift_mixed *mixed, struct ibshift_op_params *params)
{
    switch (mixed->stage) {
    case IBSHIFT_MIXED_TELL:
        ibshift_mixed_enter_tell(mixed, params);
        return 1;
    case IBSHIFT_MIXED_CHECK:
        if (mixed->leads) {
            ibshift_mixed_enter_check(mixed, params);
        }
        return mixed->leads;
    case IBSHIFT_MIXED_SHORT:
        return enter_short(mixed, params);
    default:
        return enter_long(mixed, params);
    }
}

int ibshift_mixed_next(struct ibshift_mixed *mixed, struct ibshift_op_params *params)
{
    int rc = 0;

    while (rc == 0 && mixed->stage < IBSHIFT_MIXED_LONG) {
        if (mixed->stage == IBSHIFT_MIXED_CHECK && !mixed->has_told) {
            rc = ibshift_mixed_leave_check(mixed);
        } else if (mixed->stage == IBSHIFT_MIXED_SHORT) {
            move_packed(mixed, IBSHIFT_RECV, false);
        }
        mixed->stage++;
        rc = rc == 0 ? enter(mixed, params) : rc;
    }
    params->is_stage = true;
    return rc;
}
