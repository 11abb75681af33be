#include "plan/walks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_LEAST = 256 };

/* memory, moved to where there is room for `count` of that size; NULL: there is none, and it is still where it was. */
static void *make_room(void *memory, size_t *room, size_t count, size_t size)
{
    size_t more = *room > 0 ? *room : ROOM_LEAST;
    void *now;

    if (count <= *room) {
        return memory;
    }
    while (more < count) {
        more *= 2;
    }
    now = realloc(memory, more * size);
    *room = now != NULL ? more : *room;
    return now;
}

int ibshift_walks_begin(struct ibshift_walks *walks, const struct ibshift_alg *alg,
                        const struct ibshift_plan *plan, uint32_t window)
{
    void *memory = make_room(walks->ranks, &walks->ranks_room, plan->ranks, sizeof(*walks->ranks));
    size_t sum = 0;

    if (memory == NULL) {
        return -ENOMEM;
    }
    walks->ranks = memory;
    for (uint32_t rank = 0; rank < plan->ranks; rank++) {
        walks->ranks[rank] = (struct ibshift_walks_rank){.rounds = alg->rounds(plan, rank)};
        sum += walks->ranks[rank].rounds;
    }
    memory = make_room(walks->rounds, &walks->rounds_room, sum + 1, sizeof(*walks->rounds));
    if (memory == NULL) {
        return -ENOMEM;
    }
    walks->rounds = memory;
    memset(walks->rounds, 0, sum * sizeof(*walks->rounds));
    sum = 0;
    for (uint32_t rank = 0; rank < plan->ranks; rank++) {
        walks->ranks[rank].all = walks->rounds + sum;
        sum += walks->ranks[rank].rounds;
    }
    walks->alg = alg;
    walks->plan = plan;
    walks->window = window;
    walks->lacks_memory = false;
    walks->steps_count = 0;
    memset(walks->gone, 0, sizeof(walks->gone));
    return 0;
}

void ibshift_walks_free(struct ibshift_walks *walks)
{
    free(walks->ranks);
    free(walks->rounds);
    free(walks->steps);
}

/* Its steps take the place of as many that are over, if there are any. */
static void emit(struct ibshift_walks *walks, uint32_t rank, uint32_t round)
{
    struct ibshift_walks_round *new = &walks->ranks[rank].all[round];
    struct ibshift_step *steps = make_room(
        walks->steps, &walks->steps_room, walks->steps_count + IBSHIFT_ROUND_STEPS, sizeof(*steps));
    uint32_t *gone;

    if (steps == NULL) {
        walks->lacks_memory = true;
        return;
    }
    walks->steps = steps;
    steps += walks->steps_count;
    new->count = (uint8_t)walks->alg->emit(walks->plan, rank, round, steps);
    new->is_emitted = true;
    for (uint32_t i = 0; i < new->count; i++) {
        new->left[ibshift_step_class(&steps[i])]++;
    }
    gone = &walks->gone[new->count];
    if (*gone == 0) {
        new->at = (uint32_t)walks->steps_count;
        walks->steps_count += new->count;
        return;
    }
    new->at = *gone - 1;
    *gone = walks->steps[new->at].need;
    memcpy(&walks->steps[new->at], steps, new->count * sizeof(*steps));
}

static const struct ibshift_walks_round *round_of(struct ibshift_walks *walks, uint32_t rank,
                                                  uint32_t round)
{
    const struct ibshift_walks_round *one = &walks->ranks[rank].all[round];

    if (!one->is_emitted) {
        emit(walks, rank, round);
    }
    return one;
}

const struct ibshift_step *ibshift_walks_look(struct ibshift_walks *walks, uint32_t rank,
                                              uint32_t round, uint32_t *count)
{
    const struct ibshift_walks_round *one = round_of(walks, rank, round);

    *count = one->count;
    return walks->steps + one->at;
}

static uint64_t of_class(const struct ibshift_walks *walks, const struct ibshift_walks_round *round,
                         enum ibshift_class which)
{
    const struct ibshift_step *steps = walks->steps + round->at;
    uint64_t found = 0;

    for (uint32_t i = 0; round->left[which] > 0 && i < round->count; i++) {
        found |= (uint64_t)(ibshift_step_class(&steps[i]) == which) << i;
    }
    return found;
}

/* Moves to the next step of the class in rounds < end, unless the cursor is at one. */
static void seek(struct ibshift_walks *walks, uint32_t rank, enum ibshift_class which, uint32_t end)
{
    struct ibshift_walks_cursor *cursor = &walks->ranks[rank].cursor[which];

    while (!cursor->has_step && cursor->round < end) {
        const struct ibshift_walks_round *round = round_of(walks, rank, cursor->round);

        if (cursor->later == 0) {
            cursor->later = of_class(walks, round, which);
        }
        if (cursor->later == 0) {
            cursor->round++;
            continue;
        }
        cursor->index = (uint32_t)__builtin_ctzll(cursor->later);
        cursor->later &= cursor->later - 1;
        cursor->has_step = true;
    }
}

/* Local steps never run ahead of both others, so that none is emitted for them alone. */
static void seek_local(struct ibshift_walks *walks, uint32_t rank)
{
    const struct ibshift_walks_rank *walk = &walks->ranks[rank];
    uint32_t recv = walk->cursor[IBSHIFT_CLASS_RECV].round,
             send = walk->cursor[IBSHIFT_CLASS_SEND].round;
    uint32_t end = recv > send ? recv : send;

    seek(walks, rank, IBSHIFT_CLASS_LOCAL, end < walk->rounds ? end + 1 : end);
}

static void let_go(struct ibshift_walks *walks, const struct ibshift_walks_round *round)
{
    if (round->count > 0) {
        walks->steps[round->at].need = walks->gone[round->count];
        walks->gone[round->count] = round->at + 1;
    }
}

/* The prefixes grow as far as they can. */
static void refresh(struct ibshift_walks *walks, uint32_t rank)
{
    struct ibshift_walks_rank *walk = &walks->ranks[rank];
    struct ibshift_progress *progress = &walk->progress;
    uint32_t sends = walk->cursor[IBSHIFT_CLASS_SEND].round,
             recvs = walk->cursor[IBSHIFT_CLASS_RECV].round,
             locals = walk->cursor[IBSHIFT_CLASS_LOCAL].round;

    recvs = locals < recvs ? locals : recvs;
    while (progress->sent < sends && walk->all[progress->sent].left[IBSHIFT_CLASS_SEND] == 0) {
        progress->sent++;
    }
    while (progress->received < recvs &&
           walk->all[progress->received].left[IBSHIFT_CLASS_RECV] == 0) {
        progress->received++;
    }
    for (; walk->over < progress->sent && walk->over < progress->received; walk->over++) {
        let_go(walks, &walk->all[walk->over]);
    }
}

void ibshift_walks_begin_rank(struct ibshift_walks *walks, uint32_t rank)
{
    uint32_t rounds = walks->ranks[rank].rounds;

    seek(walks, rank, IBSHIFT_CLASS_RECV, rounds);
    seek(walks, rank, IBSHIFT_CLASS_SEND, rounds);
    seek_local(walks, rank);
    refresh(walks, rank);
}

void ibshift_walks_start(struct ibshift_walks *walks, uint32_t rank, enum ibshift_class which)
{
    struct ibshift_walks_rank *walk = &walks->ranks[rank];
    struct ibshift_walks_cursor *cursor = &walk->cursor[which];
    uint32_t local = walk->cursor[IBSHIFT_CLASS_LOCAL].round, round = cursor->round;

    cursor->has_step = false;
    cursor->round += cursor->later == 0;
    if (which == IBSHIFT_CLASS_LOCAL) {
        walk->all[round].left[which]--;
    } else {
        walk->in_flight[which]++;
        seek(walks, rank, which, walk->rounds);
        if (cursor->round == round) {
            return;
        }
    }
    seek_local(walks, rank);
    if (walk->cursor[IBSHIFT_CLASS_LOCAL].round != local) {
        refresh(walks, rank);
    }
}

void ibshift_walks_complete(struct ibshift_walks *walks, uint32_t rank, enum ibshift_class which,
                            uint32_t round)
{
    struct ibshift_walks_rank *walk = &walks->ranks[rank];
    uint32_t prefix = which == IBSHIFT_CLASS_SEND ? walk->progress.sent : walk->progress.received;

    walk->in_flight[which]--;
    if (--walk->all[round].left[which] == 0 && round == prefix) {
        refresh(walks, rank);
    }
}
