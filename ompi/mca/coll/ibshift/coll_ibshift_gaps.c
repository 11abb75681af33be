/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
/*
 * Long blocks with gaps: packed one by one as their messages start, and unpacked as they come (exec/gaps.h). It is this rank's own
 * affair: messages are the same as those of a rank that packs all before.
 */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_call.h"

static struct ibshift_side *side_of(ibshift_call_t *call, enum ibshift_buffer buf)
{
    return IBSHIFT_SEND == buf ? &call->send : &call->recv;
}

static void move(void *context, enum ibshift_buffer buf, uint32_t block, char *packed, bool pack)
{
    ibshift_call_t *call = context;

    if (NULL != call->map) { /* an allgather's: its blocks lie by rank */
        block = call->map->order.rank_at[block];
    }
    ibshift_side_move_block(side_of(call, buf), block, packed, pack);
}

static size_t largest_block(const struct ibshift_side *side)
{
    size_t largest = 0;

    for (uint32_t i = 0; i < side->blocks; i++) {
        size_t bytes = ibshift_side_block_bytes(side, i);

        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

/* Short ones are packed together in less time. A device is asked once, and outside of the engine's lock. */
static struct ibshift_gaps_side find_side(const ibshift_call_t *call,
                                          const struct ibshift_side *side, bool is_kept)
{
    const struct ibshift_op_params *params = &call->op.params;
    struct ibshift_gaps_side found = {.is_late = false};
    size_t place;

    if (!side->is_staged || side->is_apart || side->is_device || side->blocks < 2) {
        return found;
    }
    place = largest_block(side);
    found.is_late = place > ibshift_endpoint.net->max_eager;
    found.places = (params->window < side->blocks ? params->window : side->blocks) +
                   (side == &call->send ? 1 : 0);
    place = ibshift_memory_align(place);
    if (found.is_late && !is_kept && place < side->bytes / found.places) {
        found.place = place;
    }
    return found;
}

void ibshift_call_find_gaps(ibshift_call_t *call, const struct ibshift_wanted *wanted)
{
    struct ibshift_op_params *params = &call->op.params;
    bool is_read = IBSHIFT_ALLGATHER == params->alg->collective;
    /* What is granted once is at one place. */
    bool is_kept = is_read || ibshift_repeat_is_wanted(&call->module->group, wanted, params);

    call->gaps = (struct ibshift_gaps){.move = move, .context = call};
    if (call->tells_counts || !(is_read || ibshift_gaps_go_once(params->alg))) {
        return;
    }
    for (int buf = IBSHIFT_SEND; buf <= IBSHIFT_RECV; buf++) {
        struct ibshift_side *side = side_of(call, buf);

        call->gaps.sides[buf] = find_side(call, side, is_kept);
        side->is_late = call->gaps.sides[buf].is_late;
        if (side->is_late) {
            params->gaps = &call->gaps;
        }
    }
}

size_t ibshift_call_scratch(ibshift_call_t *call, enum ibshift_buffer buf)
{
    const struct ibshift_side *side = side_of(call, buf);
    const struct ibshift_gaps_side *gaps = &call->gaps.sides[buf];
    size_t bytes = gaps->place > 0 ? gaps->places * gaps->place : side->bytes;

    return side->is_staged ? ibshift_memory_align(bytes) : 0;
}

void ibshift_call_set_scratch(ibshift_call_t *call, char *scratch)
{
    for (int buf = IBSHIFT_SEND; buf <= IBSHIFT_RECV; buf++) {
        call->gaps.sides[buf].at = side_of(call, buf)->scratch = scratch;
        scratch = NULL == scratch ? NULL : scratch + ibshift_call_scratch(call, buf);
    }
}
