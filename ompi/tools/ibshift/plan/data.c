#include "plan/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/walk.h"

/* A receive that is posted, or a message that was sent before there was one. */
struct parcel {
    struct parcel *next;
    uint32_t rank, peer, key, flight;
    struct ibshift_step step;
    struct plan_cell cells[]; /* of a message */
};

struct plan_run {
    struct ibshift_walk *walks;
    struct ibshift_pages pages;
    struct parcel *posted, *sent;
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
    data->run = calloc(1, sizeof(*data->run));
    if (data->run != NULL) {
        data->run->walks = calloc(plan->ranks, sizeof(*data->run->walks));
    }
    if (data->buffers == NULL || data->run == NULL || data->run->walks == NULL) {
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
        ibshift_walk_begin(&data->run->walks[rank], &data->run->pages, alg, plan, rank,
                           IBSHIFT_WINDOW_MAX);
    }
    fill_bcast(data);
    return 0;
}

static void free_parcels(struct parcel *parcel)
{
    while (parcel != NULL) {
        struct parcel *next = parcel->next;

        free(parcel);
        parcel = next;
    }
}

void plan_data_end(struct plan_data *data)
{
    for (uint32_t rank = 0; data->buffers != NULL && rank < data->plan->ranks; rank++) {
        for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
            free(data->buffers[rank][b].cells);
        }
    }
    free(data->buffers);
    if (data->run != NULL) {
        free_parcels(data->run->posted);
        free_parcels(data->run->sent);
        free(data->run->walks);
        free(data->run);
    }
}

static uint32_t block_at(const struct ibshift_step *step, uint32_t first, bool is_strided,
                         uint32_t i)
{
    return is_strided ? ibshift_step_strided_block(step, first, i) : first + i;
}

static void run_local(struct plan_data *data, uint32_t rank, const struct ibshift_step *step)
{
    struct plan_cell *to = data->buffers[rank][step->buf].cells;
    const struct plan_cell *from = data->buffers[rank][step->src].cells;

    for (uint32_t i = 0; i < step->count; i++) {
        uint32_t target = block_at(step, step->first, step->strided == IBSHIFT_STRIDED_TARGET, i);
        uint32_t source = block_at(step, step->from, step->strided == IBSHIFT_STRIDED_SOURCE, i);

        if (step->kind == IBSHIFT_STEP_COPY) {
            to[target] = from[source];
        } else {
            to[target].from |= from[source].from;
        }
        to[target].stage = data->stage;
    }
}

static void deliver(struct plan_data *data, const struct parcel *message,
                    const struct parcel *receive)
{
    struct plan_cell *to = data->buffers[receive->rank][receive->step.buf].cells;

    for (uint32_t i = 0; i < receive->step.count && i < message->step.count; i++) {
        to[receive->step.first + i] = message->cells[i];
        to[receive->step.first + i].stage = data->stage;
    }
    ibshift_walk_complete(&data->run->walks[receive->rank], IBSHIFT_CLASS_RECV, receive->flight);
    data->messages++;
    data->moved++;
}

static struct parcel **find_parcel(struct parcel **list, uint32_t rank, uint32_t peer, uint32_t key)
{
    for (; *list != NULL; list = &(*list)->next) {
        if ((*list)->rank == rank && (*list)->peer == peer && (*list)->key == key) {
            return list;
        }
    }
    return NULL;
}

/* Pairs it with its other half, or puts it into its list; takes the parcel. */
static void meet(struct plan_data *data, struct parcel *parcel, bool is_message)
{
    struct parcel **mine = is_message ? &data->run->sent : &data->run->posted;
    struct parcel **others = is_message ? &data->run->posted : &data->run->sent;
    struct parcel **at = find_parcel(others, parcel->peer, parcel->rank, parcel->key);

    if (at != NULL) {
        struct parcel *other = *at;

        *at = other->next;
        deliver(data, is_message ? parcel : other, is_message ? other : parcel);
        free(other);
        free(parcel);
        return;
    }
    parcel->next = *mine;
    *mine = parcel;
}

static struct parcel *pack(const struct plan_data *data, uint32_t rank,
                           const struct ibshift_step *step)
{
    bool is_message = step->kind == IBSHIFT_STEP_SEND;
    size_t cells = is_message ? step->count : 0;
    struct parcel *parcel = calloc(1, sizeof(*parcel) + cells * sizeof(parcel->cells[0]));

    if (parcel != NULL) {
        parcel->rank = rank;
        parcel->peer = step->peer;
        parcel->key = ibshift_step_key(step);
        parcel->step = *step;
        if (is_message) {
            memcpy(parcel->cells, &data->buffers[rank][step->buf].cells[step->first],
                   cells * sizeof(parcel->cells[0]));
        }
    }
    return parcel;
}

/* Starts all receives, and the sends up to this round. */
static int start_messages(struct plan_data *data, uint32_t rank, enum ibshift_class class)
{
    struct ibshift_walk *walk = &data->run->walks[rank];
    const struct ibshift_step *step;

    while ((step = ibshift_walk_next(walk, class)) != NULL) {
        bool is_message = class == IBSHIFT_CLASS_SEND;
        struct parcel *parcel;

        if (is_message && step->tag > data->next_tag) {
            return 0;
        }
        parcel = pack(data, rank, step);
        if (parcel == NULL) {
            return -ENOMEM;
        }
        parcel->flight = ibshift_walk_start(walk, class);
        if (is_message) {
            ibshift_walk_complete(walk, class, parcel->flight);
        }
        meet(data, parcel, is_message);
    }
    return 0;
}

static bool run_local_steps(struct plan_data *data, bool only_reductions)
{
    bool has_run = false;

    for (uint32_t rank = 0; rank < data->plan->ranks; rank++) {
        struct ibshift_walk *walk = &data->run->walks[rank];
        const struct ibshift_step *step;

        while ((step = ibshift_walk_next(walk, IBSHIFT_CLASS_LOCAL)) != NULL &&
               !(only_reductions && step->kind == IBSHIFT_STEP_COPY)) {
            run_local(data, rank, step);
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
        const struct ibshift_walk *walk = &data->run->walks[rank];

        if (walk->cursor[IBSHIFT_CLASS_SEND].has_step &&
            walk->cursor[IBSHIFT_CLASS_SEND].step.tag < least) {
            least = walk->cursor[IBSHIFT_CLASS_SEND].step.tag;
        }
    }
    return least;
}

int plan_data_step(struct plan_data *data)
{
    uint32_t before;
    int rc = 0;

    data->moved = 0;
    data->messages = 0;
    data->next_tag = least_tag(data);
    if (data->stage++ == 0 && run_local_steps(data, false)) {
        return 1;
    }
    run_local_steps(data, false);
    do {
        before = data->moved;
        for (uint32_t rank = 0; rank < data->plan->ranks && rc == 0; rank++) {
            rc = start_messages(data, rank, IBSHIFT_CLASS_RECV);
            rc = rc == 0 ? start_messages(data, rank, IBSHIFT_CLASS_SEND) : rc;
        }
        run_local_steps(data, true);
    } while (rc == 0 && data->moved > before);
    for (uint32_t rank = 0; rank < data->plan->ranks && rc == 0 && data->moved == 0; rank++) {
        rc = ibshift_walk_is_done(&data->run->walks[rank]) ? 0 : -EDEADLK;
    }
    return rc != 0 ? rc : data->moved > 0;
}
