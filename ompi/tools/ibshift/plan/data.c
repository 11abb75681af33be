#include "plan/data.h"

#include <errno.h>
#include <stdlib.h>

struct plan_receive {
    uint32_t rank, peer, key, flight;
    struct ibshift_step step;
};

static void fill_send(struct plan_data *data, uint32_t rank)
{
    struct plan_buffer *buffer = &data->buffers[rank][IBSHIFT_SEND];

    for (uint32_t i = 0; i < buffer->count; i++) {
        bool is_own =
            data->alg->collective == IBSHIFT_GATHER || data->alg->collective == IBSHIFT_ALLGATHER;

        buffer->cells[i] = (struct plan_cell){
            .from = UINT64_C(1) << rank,
            .block = is_own ? rank : i,
        };
    }
}

static void fill_bcast(struct plan_data *data)
{
    struct plan_buffer *buffer = &data->buffers[data->plan->root][IBSHIFT_RECV];

    for (uint32_t i = 0; i < buffer->count && data->alg->collective == IBSHIFT_BCAST; i++) {
        buffer->cells[i] = (struct plan_cell){UINT64_C(1) << data->plan->root, i, 0};
    }
}

int plan_data_begin(struct plan_data *data, const struct ibshift_alg *alg,
                    const struct ibshift_plan *plan)
{
    *data = (struct plan_data){.alg = alg, .plan = plan};
    data->buffers = calloc(plan->ranks, sizeof(*data->buffers));
    data->walks = calloc(plan->ranks, sizeof(*data->walks));
    data->posted = calloc((size_t)plan->ranks * IBSHIFT_WINDOW_MAX, sizeof(*data->posted));
    if (data->buffers == NULL || data->walks == NULL || data->posted == NULL) {
        return -ENOMEM;
    }
    for (uint32_t rank = 0; rank < plan->ranks; rank++) {
        for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
            struct plan_buffer *buffer = &data->buffers[rank][b];

            buffer->count = ibshift_alg_blocks(alg, plan, rank, (enum ibshift_buffer)b);
            buffer->cells = calloc(buffer->count + 1, sizeof(*buffer->cells));
            if (buffer->cells == NULL) {
                return -ENOMEM;
            }
        }
        fill_send(data, rank);
        ibshift_walk_begin(&data->walks[rank], &data->pages, alg, plan, rank, IBSHIFT_WINDOW_MAX);
    }
    fill_bcast(data);
    return 0;
}

void plan_data_end(struct plan_data *data)
{
    for (uint32_t rank = 0; data->buffers != NULL && rank < data->plan->ranks; rank++) {
        for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
            free(data->buffers[rank][b].cells);
        }
    }
    free(data->buffers);
    free(data->posted);
    free(data->walks);
}

static uint32_t block_at(const struct ibshift_step *step, uint32_t first, bool is_strided,
                         uint32_t i)
{
    return is_strided ? ibshift_step_strided_block(step, first, i) : first + i;
}

static void run_copy(struct plan_data *data, uint32_t rank, const struct ibshift_step *step)
{
    struct plan_cell *to = data->buffers[rank][step->buf].cells;
    const struct plan_cell *from = data->buffers[rank][step->src].cells;

    for (uint32_t i = 0; i < step->count; i++) {
        uint32_t target = block_at(step, step->first, step->strided == IBSHIFT_STRIDED_TARGET, i);
        uint32_t source = block_at(step, step->from, step->strided == IBSHIFT_STRIDED_SOURCE, i);

        to[target] = from[source];
        to[target].stage = data->stage;
    }
}

static void run_reduction(struct plan_data *data, uint32_t rank, const struct ibshift_step *step)
{
    struct plan_cell *to = &data->buffers[rank][step->buf].cells[step->first];
    const struct plan_cell *from = &data->buffers[rank][step->src].cells[step->from];
    const struct plan_cell *with = &data->buffers[rank][step->with].cells[step->beside];

    for (uint32_t i = 0; i < step->count; i++) {
        uint64_t operands = from[i].from | with[i].from;

        to[i] = with[i];
        to[i].from = operands;
        to[i].stage = data->stage;
    }
}

static void post_receives(struct plan_data *data, uint32_t rank)
{
    struct ibshift_walk *walk = &data->walks[rank];
    const struct ibshift_step *step;

    while ((step = ibshift_walk_next(walk, IBSHIFT_CLASS_RECV)) != NULL) {
        struct plan_receive *receive = &data->posted[data->posted_count++];

        *receive = (struct plan_receive){rank, step->peer, ibshift_step_key(step), 0, *step};
        receive->flight = ibshift_walk_start(walk, IBSHIFT_CLASS_RECV);
    }
}

static struct plan_receive *find_receive(const struct plan_data *data, uint32_t rank, uint32_t peer,
                                         uint32_t key)
{
    for (uint32_t i = 0; i < data->posted_count; i++) {
        struct plan_receive *receive = &data->posted[i];

        if (receive->rank == rank && receive->peer == peer && receive->key == key) {
            return receive;
        }
    }
    return NULL;
}

/* The sends up to this round whose receives are posted: no plan needs more buffers than that (proof/check.h). */
static void run_sends(struct plan_data *data, uint32_t rank)
{
    struct ibshift_walk *walk = &data->walks[rank];
    struct plan_receive *receive;
    const struct ibshift_step *step;

    while ((step = ibshift_walk_next(walk, IBSHIFT_CLASS_SEND)) != NULL &&
           step->tag <= data->next_tag &&
           (receive = find_receive(data, step->peer, rank, ibshift_step_key(step))) != NULL) {
        const struct plan_cell *from = &data->buffers[rank][step->buf].cells[step->first];
        struct plan_cell *to =
            &data->buffers[receive->rank][receive->step.buf].cells[receive->step.first];

        for (uint32_t i = 0; i < receive->step.count && i < step->count; i++) {
            to[i] = from[i];
            to[i].stage = data->stage;
        }
        ibshift_walk_complete(walk, IBSHIFT_CLASS_SEND,
                              ibshift_walk_start(walk, IBSHIFT_CLASS_SEND));
        ibshift_walk_complete(&data->walks[receive->rank], IBSHIFT_CLASS_RECV, receive->flight);
        *receive = data->posted[--data->posted_count];
        data->messages++;
        data->moved++;
    }
}

static bool run_local_steps(struct plan_data *data, bool only_reductions)
{
    bool has_run = false;

    for (uint32_t rank = 0; rank < data->plan->ranks; rank++) {
        struct ibshift_walk *walk = &data->walks[rank];
        const struct ibshift_step *step;

        while ((step = ibshift_walk_next(walk, IBSHIFT_CLASS_LOCAL)) != NULL &&
               !(only_reductions && step->kind == IBSHIFT_STEP_COPY)) {
            if (step->kind == IBSHIFT_STEP_COPY) {
                run_copy(data, rank, step);
            } else {
                run_reduction(data, rank, step);
            }
            ibshift_walk_start(walk, IBSHIFT_CLASS_LOCAL);
            data->moved++;
            has_run = true;
        }
    }
    return has_run;
}

static uint32_t least_tag(const struct plan_data *data)
{
    uint32_t least = UINT32_MAX;

    for (uint32_t rank = 0; rank < data->plan->ranks; rank++) {
        const struct ibshift_walk *walk = &data->walks[rank];

        if (walk->cursor[IBSHIFT_CLASS_SEND].has_step &&
            walk->cursor[IBSHIFT_CLASS_SEND].step.tag < least) {
            least = walk->cursor[IBSHIFT_CLASS_SEND].step.tag;
        }
    }
    return least;
}

int plan_data_step(struct plan_data *data)
{
    uint32_t before, ranks = data->plan->ranks;

    data->moved = 0;
    data->messages = 0;
    data->next_tag = least_tag(data);
    if (data->stage++ == 0 && run_local_steps(data, false)) {
        return 1;
    }
    run_local_steps(data, false);
    do {
        before = data->moved;
        for (uint32_t rank = 0; rank < ranks; rank++) {
            post_receives(data, rank);
        }
        for (uint32_t rank = 0; rank < ranks; rank++) {
            run_sends(data, rank);
        }
        run_local_steps(data, true);
    } while (data->moved > before);
    for (uint32_t rank = 0; rank < ranks && data->moved == 0; rank++) {
        if (!ibshift_walk_is_done(&data->walks[rank])) {
            return -EDEADLK;
        }
    }
    return data->moved > 0;
}
