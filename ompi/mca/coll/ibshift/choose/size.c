#include "choose/size.h"

#include "plan/walk.h"

#define LIMIT_DEFAULT ((uint64_t)1 << 32)

enum { SLOTS_FOR_ALL = 1 << 16 }; /* up to that the plan is not asked how many it can use */

void ibshift_sizes_begin(struct ibshift_sizes *sizes, const struct ibshift_alg *alg,
                         const struct ibshift_plan *plan, uint64_t bytes, uint32_t element)
{
    sizes->alg = alg;
    sizes->plan = plan;
    sizes->element = element;
    sizes->elements = bytes / element + (bytes % element != 0);
    sizes->pieces =
        ibshift_collective_has_vector(alg->collective) ? ibshift_alg_pieces(alg, plan) : 0;
}

/* Elements of pieces [first, first + count). */
static uint64_t piece_range(const struct ibshift_sizes *sizes, uint32_t first, uint32_t count)
{
    uint64_t share = sizes->elements / sizes->pieces, larger = sizes->elements % sizes->pieces;
    uint64_t begin = first < larger ? first : larger;
    uint64_t end = (uint64_t)first + count < larger ? (uint64_t)first + count : larger;

    return count * share + (end - begin);
}

static uint64_t tmp_range(const struct ibshift_sizes *sizes, uint32_t rank, uint32_t first,
                          uint32_t count)
{
    uint64_t sum = 0;

    if (sizes->elements % sizes->pieces == 0) {
        return count * (sizes->elements / sizes->pieces);
    }
    for (uint32_t slot = first; slot < first + count; slot++) {
        sum += piece_range(sizes, ibshift_alg_tmp_block(sizes->alg, sizes->plan, rank, slot), 1);
    }
    return sum;
}

uint64_t ibshift_sizes_step(const struct ibshift_sizes *sizes, uint32_t rank,
                            const struct ibshift_step *step)
{
    uint64_t elements;

    if (sizes->pieces == 0) {
        elements = step->count * sizes->elements;
    } else if (step->buf == IBSHIFT_TMP) {
        elements = tmp_range(sizes, rank, step->first, step->count);
    } else {
        elements = piece_range(sizes, step->first, step->count);
    }
    return elements * sizes->element;
}

/* Rounds, hence messages within a factor of the radix: cheap, and enough to refuse. */
bool ibshift_plan_exceeds(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                          uint64_t limit)
{
    uint64_t sum = 0;

    for (uint32_t rank = 0; rank < plan->ranks; rank++) {
        sum += alg->rounds(plan, rank);
        if (sum > (limit > 0 ? limit : LIMIT_DEFAULT)) {
            return true;
        }
    }
    return false;
}

uint32_t ibshift_plan_slots(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                            uint32_t window)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint32_t most = plan->ranks <= SLOTS_FOR_ALL / window ? window : 1;

    for (uint32_t rank = 0; rank < plan->ranks && most < window; rank++) {
        uint32_t rounds = alg->rounds(plan, rank), count[2] = {0, 0};

        for (uint32_t round = 0; round < rounds && most < window; round++) {
            int emitted = alg->emit(plan, rank, round, steps);

            for (int i = 0; i < emitted; i++) {
                count[steps[i].kind == IBSHIFT_STEP_SEND] += !ibshift_step_is_local(&steps[i]);
            }
            most = count[0] > most ? count[0] : most;
            most = count[1] > most ? count[1] : most;
        }
    }
    return most < window ? most : window;
}

bool ibshift_sizes_may_stand(const struct ibshift_sizes *sizes)
{
    bool is_block = sizes->alg->collective == IBSHIFT_REDUCE_SCATTER;

    return (is_block || sizes->alg->collective == IBSHIFT_ALLREDUCE) &&
           sizes->elements * sizes->element * (is_block ? sizes->plan->ranks : 1) <=
               IBSHIFT_STANDING_MOST;
}

bool ibshift_sizes_stand(const struct ibshift_sizes *sizes, const struct ibshift_step *step)
{
    return step->buf == IBSHIFT_TMP && step->need == 0 && step->drain == 0 &&
           ibshift_sizes_may_stand(sizes);
}

int ibshift_size_class(uint64_t bytes)
{
    int octave, class;

    if (bytes <= 4) {
        return bytes == 0 ? 0 : (int)bytes - 1;
    }
    octave = 63 - __builtin_clzll(bytes - 1);
    class = 4 * (octave - 1) + (int)((bytes - 1) >> (octave - 2) & 3);
    return class < IBSHIFT_SIZE_CLASSES ? class : IBSHIFT_SIZE_CLASSES - 1;
}

uint64_t ibshift_class_size(int class)
{
    return class < 4 ? (uint64_t) class + 1 : (5 + (uint64_t) class % 4) << (class / 4 - 1);
}
