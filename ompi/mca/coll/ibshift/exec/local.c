#include "exec/local.h"

#include <errno.h>
#include <string.h>

static int copy_runs(const struct ibshift_op_params *params, const struct ibshift_step *step)
{
    const struct ibshift_blocks *to = &params->blocks[step->buf];
    const struct ibshift_blocks *from = &params->blocks[step->src];
    int rc = 0;

    for (uint32_t i = 0; i < step->count && rc == 0; i += step->run) {
        uint32_t count = step->run < step->count - i ? step->run : step->count - i;
        uint32_t target = step->first + i, source = step->from + i;

        if (step->strided == IBSHIFT_STRIDED_TARGET) {
            target = ibshift_step_strided_block(step, step->first, i);
        } else {
            source = ibshift_step_strided_block(step, step->from, i);
        }
        rc = ibshift_blocks_copy(to, target, from, source, count);
    }
    return rc;
}

static int reduce(const struct ibshift_op_params *params, const struct ibshift_step *step)
{
    char *target, *source;
    size_t length, source_length;
    int rc = ibshift_blocks_range(&params->blocks[step->buf], step->first, step->count, &target,
                                  &length);

    if (rc == 0) {
        rc = ibshift_blocks_range(&params->blocks[step->src], step->from, step->count, &source,
                                  &source_length);
    }
    if (rc != 0 || length == 0) {
        return rc;
    }
    if (length != source_length) {
        return -EMSGSIZE;
    }
    if (step->kind == IBSHIFT_STEP_REDUCE || params->plan.commutative) {
        params->reduce(params->reduce_context, source, target, length / params->element);
    } else { /* the source is scratch: let the result come to be there */
        params->reduce(params->reduce_context, target, source, length / params->element);
        memcpy(target, source, length);
    }
    return 0;
}

int ibshift_local_run(const struct ibshift_op_params *params, const struct ibshift_step *step)
{
    if (step->kind != IBSHIFT_STEP_COPY) {
        return reduce(params, step);
    }
    if (step->strided != IBSHIFT_CONTIGUOUS) {
        return copy_runs(params, step);
    }
    return ibshift_blocks_copy(&params->blocks[step->buf], step->first, &params->blocks[step->src],
                               step->from, step->count);
}
