/* Grants of long messages and the sends that wait for them. */
#include "choose/price_node.h"

/* Takes the first of the list between this rank and that one, with that key. */
static int32_t take(struct ibshift_simulation *sim, int32_t *list, uint32_t from, uint32_t to,
                    uint32_t key)
{
    for (; *list != IBSHIFT_NO_MESSAGE; list = &sim->messages[*list].next) {
        const struct ibshift_price_message *m = &sim->messages[*list];
        int32_t index = *list;

        if (m->from == from && m->to == to && m->key == key) {
            *list = m->next;
            return index;
        }
    }
    return IBSHIFT_NO_MESSAGE;
}

static void put(struct ibshift_simulation *sim, int32_t *list, int32_t index)
{
    sim->messages[index].next = *list;
    *list = index;
}

void ibshift_grant_send(struct ibshift_simulation *sim, uint32_t rank,
                        const struct ibshift_step *step)
{
    struct ibshift_node *node = &sim->nodes[rank];
    int32_t at;

    if ((sim->error = ibshift_messages_take(sim, &at)) != 0) {
        return;
    }
    node->clock += sim->model.send_min;
    node->worked += sim->model.send_min;
    sim->messages[at] = (struct ibshift_price_message){
        .from = rank, .to = step->peer, .key = ibshift_step_key(step), .is_grant = true};
    sim->error = ibshift_heap_push(
        &sim->heap, (struct ibshift_event){node->clock + sim->model.latency, 0, step->peer, at});
}

void ibshift_grant_arrive(struct ibshift_simulation *sim, uint32_t rank, double now, int32_t index)
{
    struct ibshift_node *node = &sim->nodes[rank];
    const struct ibshift_price_message *grant = &sim->messages[index];
    int32_t at = take(sim, &node->asked, rank, grant->from, grant->key);

    if (at == IBSHIFT_NO_MESSAGE) {
        put(sim, &node->grants, index);
        return;
    }
    ibshift_messages_give(sim, index);
    now = (now > node->clock ? now : node->clock) + sim->model.recv_min;
    node->clock = now;
    node->worked += sim->model.recv_min;
    ibshift_node_leave(sim, at, now, now);
}

bool ibshift_grant_ask(struct ibshift_simulation *sim, uint32_t rank, int32_t index)
{
    struct ibshift_node *node = &sim->nodes[rank];
    const struct ibshift_price_message *message = &sim->messages[index];
    int32_t grant = take(sim, &node->grants, message->to, rank, message->key);

    if (grant == IBSHIFT_NO_MESSAGE) {
        put(sim, &node->asked, index);
        return false;
    }
    ibshift_messages_give(sim, grant);
    return true;
}
