#include "exec/gaps.h"

#include <string.h>

enum { NONE = UINT32_MAX };

bool ibshift_gaps_go_once(const struct ibshift_alg *alg)
{
    return (alg->flags & IBSHIFT_ALG_SIZES) != 0 &&
           (alg->collective == IBSHIFT_ALLTOALL || alg->collective == IBSHIFT_GATHER ||
            alg->collective == IBSHIFT_SCATTER ||
            ibshift_collective_is_of_neighbors(alg->collective));
}

void ibshift_gaps_begin(struct ibshift_gaps *gaps)
{
    gaps->packed = NONE;
}

static char *place_of(const struct ibshift_gaps_side *side, uint32_t index, char *otherwise)
{
    return side->place > 0 ? side->at + index * side->place : otherwise;
}

static void pack(struct ibshift_gaps *gaps, uint32_t block, char *place)
{
    gaps->move(gaps->context, IBSHIFT_SEND, block, place, true);
}

char *ibshift_gaps_place(struct ibshift_gaps *gaps, const struct ibshift_step *step,
                         uint32_t flight, char *otherwise)
{
    const struct ibshift_gaps_side *side = &gaps->sides[step->buf];
    char *place = side->is_late ? place_of(side, flight, otherwise) : otherwise;

    if (side->is_late && step->buf == IBSHIFT_SEND &&
        (gaps->packed != step->first || gaps->packed_flight != flight)) {
        pack(gaps, step->first, place);
        gaps->packed = step->first;
        gaps->packed_flight = flight;
    }
    return place;
}

/* To the caller what is in places, or, without, where the op's blocks say. */
static void unpack(const struct ibshift_op *op, uint32_t first, uint32_t count, char *place)
{
    const struct ibshift_gaps *gaps = op->params.gaps;
    size_t length;

    for (uint32_t i = first; i < first + count; i++) {
        if (place == NULL || i > first) {
            (void)ibshift_blocks_range(&op->params.blocks[IBSHIFT_RECV], i, 1, &place, &length);
        }
        gaps->move(gaps->context, IBSHIFT_RECV, i, place, false);
    }
}

void ibshift_gaps_received(const struct ibshift_op *op, const struct ibshift_step *step,
                           uint32_t flight)
{
    const struct ibshift_gaps_side *side = &op->params.gaps->sides[step->buf];

    if (side->is_late && step->kind == IBSHIFT_STEP_RECV) {
        unpack(op, step->first, step->count, place_of(side, flight, NULL));
    }
}

void ibshift_gaps_copy(const struct ibshift_op *op, const struct ibshift_step *step, uint32_t i,
                       uint32_t count, const struct ibshift_piece *piece)
{
    struct ibshift_gaps *gaps = op->params.gaps;
    const struct ibshift_gaps_side *from = &gaps->sides[step->src], *to = &gaps->sides[step->buf];
    bool is_direct = to->is_late && to->place > 0; /* no step reads it, so it needs no place */
    char *source = piece->from;
    uint32_t first, block;

    (void)ibshift_step_run(step, i, &first, &block);
    if (from->is_late && step->src == IBSHIFT_SEND) {
        source = is_direct ? place_of(from, from->places - 1, piece->from) : piece->to;
        pack(gaps, block, source);
    } else if (!is_direct && piece->to != source) {
        memmove(piece->to, source, piece->length);
    }
    if (to->is_late) {
        unpack(op, first, count, is_direct ? source : NULL);
    }
}
