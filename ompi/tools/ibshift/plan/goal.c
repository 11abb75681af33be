/*
 * A plan as GOAL, which LogGOPSim and ATLAHS read: each rank's messages and local steps, and what each requires. What a step needs
 * and drains are the ends of rounds: "nK" when the receives and local steps of rounds below K are complete, "dK" their sends.
 */
#include "plan/cmd.h"

#include <inttypes.h>
#include <math.h>

struct rank {
    const struct plan_args *args;
    FILE *out;
    uint32_t rank, label; /* the next one */
};

/* Of a step's range of one buffer. */
static uint64_t bytes_of(const struct rank *r, const struct ibshift_step *step)
{
    const struct plan_args *args = r->args;
    uint32_t pieces = ibshift_alg_pieces(args->alg, &args->plan);
    uint64_t elements = args->sizes[0] / args->element, bytes = 0;

    if (!ibshift_collective_has_vector(args->alg->collective)) {
        return step->count * args->sizes[0];
    }
    for (uint32_t i = step->first; i < step->first + step->count; i++) {
        uint64_t offset, length;

        ibshift_piece(elements, pieces,
                      step->buf == IBSHIFT_TMP
                          ? ibshift_alg_tmp_block(args->alg, &args->plan, r->rank, i)
                          : i,
                      &offset, &length);
        bytes += length * args->element;
    }
    return bytes;
}

/* A line and its requirements; false: empty, and left out as in a job. */
static bool print_step(struct rank *r, const struct ibshift_step *step)
{
    const struct ibshift_model *model = &r->args->model;
    uint64_t bytes = bytes_of(r, step);
    bool is_local = ibshift_step_is_local(step);
    double cost = step->kind == IBSHIFT_STEP_COPY ? model->copy_byte : model->reduce_byte;

    if (bytes == 0 && step->count > 0) {
        return false;
    }
    if (is_local) {
        fprintf(r->out, "l%u: calc %.0f\n", r->label, ceil((double)bytes * cost * 1000));
    } else {
        fprintf(r->out, "l%u: %s %" PRIu64 "b %s %u tag %u\n", r->label,
                step->kind == IBSHIFT_STEP_SEND ? "send" : "recv", bytes,
                step->kind == IBSHIFT_STEP_SEND ? "to" : "from", step->peer,
                ibshift_step_key(step));
    }
    if (step->need > 0) {
        fprintf(r->out, "l%u requires n%u\n", r->label, step->need);
    }
    if (step->drain > 0) {
        fprintf(r->out, "l%u requires d%u\n", r->label, step->drain);
    }
    r->label++;
    return true;
}

static void print_round(struct rank *r, uint32_t round)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint32_t count = r->args->alg->emit(&r->args->plan, r->rank, round, steps);

    fprintf(r->out, "n%u: calc 0\nd%u: calc 0\n", round + 1, round + 1);
    if (round > 0) {
        fprintf(r->out, "n%u requires n%u\nd%u requires d%u\n", round + 1, round, round + 1, round);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (print_step(r, &steps[i])) {
            fprintf(r->out, "%c%u requires l%u\n", steps[i].kind == IBSHIFT_STEP_SEND ? 'd' : 'n',
                    round + 1, r->label - 1);
        }
    }
}

void plan_goal(const struct plan_args *args, FILE *out)
{
    fprintf(out, "num_ranks %u\n", args->plan.ranks);
    for (uint32_t rank = 0; rank < args->plan.ranks && !ferror(out); rank++) {
        struct rank r = {.args = args, .out = out, .rank = rank};
        uint32_t rounds = args->alg->rounds(&args->plan, rank);

        fprintf(out, "\nrank %u {\n", rank);
        for (uint32_t round = 0; round < rounds; round++) {
            print_round(&r, round);
        }
        fputs("}\n", out);
    }
}
