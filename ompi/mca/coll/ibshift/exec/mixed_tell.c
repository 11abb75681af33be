/* Sizes are told: the words of a v-variant's ranks, leaders and root (exec/mixed.h). */
#include <errno.h>

#include "exec/mixed_impl.h"

enum { WORD = sizeof(uint32_t) };

/* A leader gets from its team what each sends to all and awaits from all, from others what they await from the teams of its number. */
static size_t words_for(const struct ibshift_mixed *mixed, uint32_t place)
{
    if (!mixed_is_alltoall(mixed)) {
        return 1;
    }
    return mixed_is_of_team(mixed, place) ? 2 * (size_t)mixed_plan_of(mixed)->ranks
                                          : mixed->sources;
}

static uint32_t word_of(size_t length)
{
    return length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
}

/* Words that it gets from the node's ranks, that it tells them, and that leaders tell each other. */
bool ibshift_mixed_reserve_words(struct ibshift_mixed *mixed)
{
    size_t ranks = mixed_plan_of(mixed)->ranks, out = mixed_is_alltoall(mixed) ? 3 * ranks : 1,
           in = 0, check;
    size_t team = mixed->end - mixed->start;
    uint32_t *memory;

    for (uint32_t place = 0; place < mixed->size && mixed->leads; place++) {
        in += words_for(mixed, place);
    }
    check = !mixed->leads              ? 0
            : mixed_is_alltoall(mixed) ? ranks * team + (size_t)mixed->sources * mixed->size
                                       : mixed->size + ranks;
    memory = mixed->reserve(mixed->owner, IBSHIFT_MIXED_WORDS, (out + in + check) * WORD);
    if (memory == NULL) {
        return false;
    }
    mixed->told = memory;
    mixed->out = memory + in;
    mixed->checked = mixed->out + out;
    return true;
}

/* What this rank tells the leader of a team. */
static uint32_t *write_words(const struct ibshift_mixed *mixed, uint32_t team, uint32_t *word)
{
    const struct ibshift_plan *plan = mixed_plan_of(mixed);
    const size_t *sends = mixed->sides[IBSHIFT_SEND].lengths;
    const size_t *recvs = mixed->sides[IBSHIFT_RECV].lengths;

    if (!mixed_is_alltoall(mixed)) {
        *word++ = word_of(mixed_all_of(mixed) == IBSHIFT_RECV ? sends[0] : recvs[0]);
        return word;
    }
    if (team == mixed->team) {
        for (uint32_t rank = 0; rank < plan->ranks; rank++) {
            word[rank] = word_of(sends[rank]);
            word[plan->ranks + rank] = word_of(recvs[rank]);
        }
        return word + 2 * (size_t)plan->ranks;
    }
    for (uint32_t node = 0; node < ibshift_nodes_count(plan); node++) {
        uint32_t size = ibshift_nodes_size(plan, node);
        uint32_t place = ibshift_team_start(size, mixed->leaders, team);
        uint32_t end = ibshift_team_start(size, mixed->leaders, team + 1);

        for (; place < end; place++) {
            *word++ = word_of(recvs[ibshift_nodes_rank(plan, node, place)]);
        }
    }
    return word;
}

/* An all-to-all of words among so many of our ranks, whose numbers are in names. */
static void tell_words(struct ibshift_mixed *mixed, uint32_t ranks, uint32_t rank, uint32_t *in,
                       struct ibshift_op_params *params)
{
    const struct ibshift_op_params *main = &mixed->by_node;

    *params = *main;
    for (uint32_t i = 0; i < ranks; i++) {
        mixed->peers[i] = main->peers != NULL ? main->peers[mixed->names[i]] : mixed->names[i];
    }
    params->alg = ibshift_alg_find(IBSHIFT_ALLTOALL, "linear");
    params->plan = (struct ibshift_plan){.ranks = ranks};
    params->rank = rank;
    params->peers = mixed->peers;
    params->names = mixed->names;
    params->piece = 0;
    params->blocks[IBSHIFT_SEND] = (struct ibshift_blocks){.base = (char *)mixed->out,
                                                           .unit = WORD,
                                                           .layout = IBSHIFT_OFFSETS,
                                                           .offsets = mixed->sent};
    params->blocks[IBSHIFT_RECV] = (struct ibshift_blocks){
        .base = (char *)in, .unit = WORD, .layout = IBSHIFT_OFFSETS, .offsets = mixed->got};
}

void ibshift_mixed_enter_tell(struct ibshift_mixed *mixed, struct ibshift_op_params *params)
{
    uint32_t *word = mixed->out;

    mixed->sent[0] = mixed->got[0] = 0;
    for (uint32_t place = 0; place < mixed->size; place++) {
        uint32_t rank = ibshift_nodes_rank(mixed_plan_of(mixed), mixed->node, place);
        uint32_t team = mixed_team_of(mixed, mixed->size, place);

        if (mixed_leader_of(mixed, mixed->node, team) == rank) {
            word = write_words(mixed, team, word);
        }
        mixed->sent[place + 1] = (size_t)(word - mixed->out);
        mixed->got[place + 1] = mixed->got[place] + (mixed->leads ? words_for(mixed, place) : 0);
        mixed->rows[place] = mixed->got[place];
        mixed->names[place] = rank;
    }
    tell_words(mixed, mixed->size, mixed->place, mixed->told, params);
}

/* Words about a node's ranks and the own team: what goes to its leader, and what comes from there. */
static uint32_t *write_check(const struct ibshift_mixed *mixed, uint32_t node, uint32_t *word)
{
    const struct ibshift_plan *plan = mixed_plan_of(mixed);

    if (!mixed_is_alltoall(mixed)) {
        for (uint32_t place = 0; node == ibshift_nodes_of(plan, plan->root) && place < mixed->size;
             place++) {
            *word++ = mixed->told[mixed->rows[place]];
        }
        return word;
    }
    for (uint32_t member = mixed->start; member < mixed->end; member++) {
        for (uint32_t place = 0; place < ibshift_nodes_size(plan, node); place++) {
            *word++ = mixed->told[mixed->rows[member] + ibshift_nodes_rank(plan, node, place)];
        }
    }
    return word;
}

static size_t checked_words(const struct ibshift_mixed *mixed, uint32_t node)
{
    if (!mixed_is_alltoall(mixed)) {
        return mixed_is_root(mixed) ? ibshift_nodes_size(mixed_plan_of(mixed), node) : 0;
    }
    return (size_t)ibshift_team_size(mixed_plan_of(mixed), mixed->leaders, node, mixed->team) *
           mixed->size;
}

void ibshift_mixed_enter_check(struct ibshift_mixed *mixed, struct ibshift_op_params *params)
{
    uint32_t nodes = ibshift_nodes_count(mixed_plan_of(mixed)), *word;
    size_t in = 0;

    for (uint32_t node = 0; node < nodes; node++) {
        in += checked_words(mixed, node);
    }
    mixed->out = word = mixed->checked + in;
    mixed->sent[0] = mixed->got[0] = 0;
    for (uint32_t node = 0; node < nodes; node++) {
        word = write_check(mixed, node, word);
        mixed->sent[node + 1] = (size_t)(word - mixed->out);
        mixed->got[node + 1] = mixed->got[node] + checked_words(mixed, node);
        mixed->names[node] = mixed_leader_of(mixed, node, mixed->team);
    }
    tell_words(mixed, nodes, mixed->node, mixed->checked, params);
}

static int compare(struct ibshift_mixed *mixed, uint32_t from, uint32_t to, uint32_t sent,
                   uint32_t awaited)
{
    if (sent == awaited) {
        return 0;
    }
    mixed->unlike = (struct ibshift_mixed_unlike){from, to, sent, awaited};
    return -EMSGSIZE;
}

static int compare_with_root(struct ibshift_mixed *mixed, uint32_t node)
{
    const struct ibshift_plan *plan = mixed_plan_of(mixed);
    enum ibshift_buffer all = mixed_all_of(mixed);
    int rc = 0;

    for (uint32_t place = 0; place < ibshift_nodes_size(plan, node) && rc == 0; place++) {
        uint32_t rank = ibshift_nodes_rank(plan, node, place);
        uint32_t theirs = mixed->checked[mixed->got[node] + place];
        uint32_t ours = word_of(mixed->sides[all].lengths[rank]);

        rc = all == IBSHIFT_RECV ? compare(mixed, rank, plan->root, theirs, ours)
                                 : compare(mixed, plan->root, rank, ours, theirs);
    }
    return rc;
}

static int compare_with_node(struct ibshift_mixed *mixed, uint32_t node)
{
    const struct ibshift_plan *plan = mixed_plan_of(mixed);
    uint32_t size = ibshift_nodes_size(plan, node);
    uint32_t place = ibshift_team_start(size, mixed->leaders, mixed->team);
    uint32_t end = ibshift_team_start(size, mixed->leaders, mixed->team + 1);
    const uint32_t *word = mixed->checked + mixed->got[node];
    int rc = 0;

    for (; place < end; place++) {
        uint32_t from = ibshift_nodes_rank(plan, node, place);

        for (uint32_t here = 0; here < mixed->size && rc == 0; here++) {
            rc = compare(mixed, from, ibshift_nodes_rank(plan, mixed->node, here), *word++,
                         mixed_awaited_by(mixed, here, from));
        }
    }
    return rc;
}

int ibshift_mixed_leave_check(struct ibshift_mixed *mixed)
{
    uint32_t nodes = ibshift_nodes_count(mixed_plan_of(mixed));
    int rc = 0;

    for (uint32_t node = 0; node < nodes && rc == 0 && mixed->leads; node++) {
        rc = mixed_is_alltoall(mixed) ? compare_with_node(mixed, node)
             : mixed_is_root(mixed)   ? compare_with_root(mixed, node)
                                      : 0;
    }
    return rc;
}
