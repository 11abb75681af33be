/* Messages on their way and the receives that wait for them. */
#include "choose/price_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES_MAX (1 << 24)

int ibshift_messages_take(struct ibshift_simulation *sim, int32_t *index)
{
    if (sim->message_free != IBSHIFT_NO_MESSAGE) {
        *index = sim->message_free;
        sim->message_free = sim->messages[*index].next;
        return 0;
    }
    if (sim->message_count == sim->message_capacity) {
        int32_t capacity = sim->message_capacity > 0 ? 2 * sim->message_capacity : 1024;
        struct ibshift_price_message *messages =
            capacity <= MESSAGES_MAX ? realloc(sim->messages, (size_t)capacity * sizeof(*messages))
                                     : NULL;

        if (messages == NULL) {
            return -ENOMEM;
        }
        sim->messages = messages;
        sim->message_capacity = capacity;
    }
    *index = sim->message_count++;
    return 0;
}

void ibshift_messages_give(struct ibshift_simulation *sim, int32_t index)
{
    sim->messages[index].next = sim->message_free;
    sim->message_free = index;
}

static void insert_by_ready(struct ibshift_simulation *sim, int32_t *list, int32_t index)
{
    struct ibshift_price_message *messages = sim->messages;

    while (*list != IBSHIFT_NO_MESSAGE && messages[*list].ready <= messages[index].ready) {
        list = &messages[*list].next;
    }
    messages[index].next = *list;
    *list = index;
}

static int32_t take_early(struct ibshift_simulation *sim, struct ibshift_node *node, uint32_t from,
                          uint32_t key)
{
    for (int32_t *list = &node->early; *list != IBSHIFT_NO_MESSAGE;
         list = &sim->messages[*list].next) {
        int32_t index = *list;

        if (sim->messages[index].from == from && sim->messages[index].key == key) {
            *list = sim->messages[index].next;
            return index;
        }
    }
    return IBSHIFT_NO_MESSAGE;
}

static void post_one(struct ibshift_simulation *sim, uint32_t rank, const struct ibshift_step *step,
                     uint32_t round, uint32_t at, uint32_t flight)
{
    struct ibshift_node *node = &sim->nodes[rank];
    int32_t index = take_early(sim, node, step->peer, ibshift_step_key(step));

    if (index == IBSHIFT_NO_MESSAGE) {
        sim->posted[(size_t)rank * sim->slots + node->posted_count++] =
            (struct ibshift_posted){step->peer, ibshift_step_key(step), round, at, flight};
        return;
    }
    if (sim->messages[index].ready < node->clock) {
        sim->messages[index].ready = node->clock;
    }
    sim->messages[index].round = round;
    sim->messages[index].index = at;
    sim->messages[index].flight = flight;
    insert_by_ready(sim, &node->arrived, index);
}

void ibshift_node_post(struct ibshift_simulation *sim, uint32_t rank)
{
    struct ibshift_walk *walk = &sim->walk;
    const struct ibshift_step *step;

    while ((step = ibshift_walk_next(walk, IBSHIFT_CLASS_RECV)) != NULL) {
        struct ibshift_step copy = *step;
        uint64_t bytes = ibshift_sizes_step(&sim->sizes, rank, &copy);
        uint32_t index = walk->cursor[IBSHIFT_CLASS_RECV].index;
        uint32_t round = walk->cursor[IBSHIFT_CLASS_RECV].round;
        uint32_t flight = ibshift_walk_start(walk, IBSHIFT_CLASS_RECV);

        if (copy.count > 0 && bytes == 0) {
            ibshift_walk_complete(walk, IBSHIFT_CLASS_RECV, flight);
        } else {
            if (ibshift_needs_grant(sim, bytes)) {
                ibshift_grant_send(sim, rank, &copy);
            }
            post_one(sim, rank, &copy, round, index, flight);
        }
    }
}

bool ibshift_node_arrive(struct ibshift_simulation *sim, uint32_t rank, double now, int32_t index)
{
    struct ibshift_node *node = &sim->nodes[rank];
    struct ibshift_posted *posted = &sim->posted[(size_t)rank * sim->slots];
    struct ibshift_price_message *message = &sim->messages[index];
    int32_t *list = &node->early;

    ibshift_port_take(sim, &node->in, now, message->bytes, &message->ready);
    if (ibshift_needs_grant(sim, message->bytes)) {
        ibshift_node_acknowledged(sim, message->from, message->round,
                                  message->ready + sim->model.latency);
    }
    for (uint32_t i = 0; i < node->posted_count; i++) {
        if (posted[i].from == message->from && posted[i].key == message->key) {
            message->round = posted[i].round;
            message->index = posted[i].index;
            message->flight = posted[i].flight;
            memmove(&posted[i], &posted[i + 1], (--node->posted_count - i) * sizeof(*posted));
            insert_by_ready(sim, &node->arrived, index);
            return true;
        }
    }
    while (*list != IBSHIFT_NO_MESSAGE) {
        list = &sim->messages[*list].next;
    }
    message->next = IBSHIFT_NO_MESSAGE;
    *list = index;
    return false;
}
