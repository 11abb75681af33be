/* The steps of an op that need no message. */
#include "exec/gaps.h"
#include "exec/op_impl.h"

/* Bytes: the processor's own cache has them still when they are taken over. */
enum { REDUCED_AT_ONCE = 64 * 1024 };

static void reduce_some(const struct ibshift_op_params *params, const struct ibshift_step *step,
                        const struct ibshift_piece *piece)
{
    size_t elements = piece->length / params->element;

    if (step->kind == IBSHIFT_STEP_REDUCE || params->plan.commutative) {
        params->reduce(params->reduce_context, piece->from, piece->with, piece->to, elements);
        return;
    }
    ibshift_reduce_onto(params->reduce, params->reduce_context, piece->with, piece->from, piece->to,
                        elements, piece->length);
}

/* What a peer has written to scratch, and writes again: where no adapter does, its processor does. */
static void take_over(const struct ibshift_step *step, const struct ibshift_piece *piece)
{
    if (step->src == IBSHIFT_TMP && piece->from != piece->to) {
        ibshift_net_take_over(piece->from, piece->length);
    }
    if (step->with == IBSHIFT_TMP && piece->with != piece->to) {
        ibshift_net_take_over(piece->with, piece->length);
    }
}

static void reduce(const struct ibshift_op_params *params, size_t copied,
                   const struct ibshift_step *step, const struct ibshift_piece *piece)
{
    size_t most = (REDUCED_AT_ONCE + params->element - 1) / params->element * params->element;
    struct ibshift_piece some;

    if (piece->length <= copied) {
        reduce_some(params, step, piece);
        return;
    }
    for (size_t at = 0; at < piece->length; at += some.length) {
        size_t left = piece->length - at;

        some = (struct ibshift_piece){.to = piece->to + at,
                                      .from = piece->from + at,
                                      .with = piece->with + at,
                                      .length = left < most ? left : most};
        reduce_some(params, step, &some);
        take_over(step, &some);
    }
}

int ibshift_op_run_local(struct ibshift_op *op, struct ibshift_exec *exec,
                         const struct ibshift_step *step)
{
    const struct ibshift_op_params *params = &op->params;
    struct ibshift_piece piece;

    for (uint32_t i = 0; i < step->count;) {
        uint32_t first = i;
        int rc = ibshift_blocks_piece(params->blocks, step, &i, &piece);

        if (rc != 0) {
            ibshift_op_fail(op, exec, ibshift_op_peer(op, params->rank), rc);
            return rc;
        }
        if (step->kind != IBSHIFT_STEP_COPY && piece.length > 0) {
            reduce(params, exec->net->max_eager, step, &piece);
        } else if (params->gaps != NULL) {
            ibshift_gaps_copy(op, step, first, i - first, &piece);
        } else if (piece.to != piece.from && piece.length > 0) {
            memmove(piece.to, piece.from, piece.length);
        }
    }
    ibshift_walk_start(&op->walk, IBSHIFT_CLASS_LOCAL);
    return 0;
}
