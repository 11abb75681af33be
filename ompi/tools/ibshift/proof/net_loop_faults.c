#include "proof/net_loop_store.h"

#include <errno.h>

/* Which messages a fault takes from the wire and out of the table. */
struct sweep {
    enum { DEATH, FAILED_PEER, CANCEL, ABORT } why;
    uint32_t self;
    uint32_t peer;
    uint32_t comm;
    uint32_t seq;
};

static bool is_swept(const struct ibshift_loop *loop, const struct sweep *sweep,
                     const struct message *m)
{
    bool is_own = !m->has_copy && owner_of(m) == sweep->self;

    switch (sweep->why) {
    case DEATH: /* and what others send to the dead */
        return is_own || (!m->is_recv && m->to == sweep->self);
    case FAILED_PEER:
        return is_own && (m->is_recv ? m->from : m->to) == sweep->peer;
    case ABORT:
        return is_own && (m->is_recv ? m->from : m->to) == sweep->peer &&
               m->key.comm == sweep->comm && m->key.seq == sweep->seq;
    case CANCEL:
        return m->key.comm == sweep->comm && m->key.seq == sweep->seq &&
               (is_own || (m->place == PARKED && m->to == sweep->self && is_short(loop, m)));
    }
    return false;
}

static void settle(struct ibshift_loop *loop, const struct sweep *sweep, struct message *m)
{
    static const int own_status[] = {[DEATH] = -EIO,
                                     [FAILED_PEER] = -ECONNRESET,
                                     [CANCEL] = -ECANCELED,
                                     [ABORT] = -ECONNABORTED};
    bool is_own = owner_of(m) == sweep->self;

    if (m->place == ON_THE_WIRE) {
        loop->endpoints[m->from].on_the_wire--;
    }
    if (m->is_held) {
        loop->endpoints[m->to].held--;
    }
    if (is_own) {
        ibshift_loop_message_end(loop, m, own_status[sweep->why], loop->now);
    } else if (sweep->why == DEATH) {
        ibshift_loop_message_end(loop, m, -ETIMEDOUT, loop->now + loop->options.timeout);
    } else {
        ibshift_loop_message_end(loop, m, 0, loop->now);
    }
}

static void sweep_all(struct ibshift_loop *loop, const struct sweep *sweep)
{
    struct list taken;

    ibshift_loop_list_init(&taken);
    for (uint32_t i = 0; i < loop->options.peers; i++) {
        struct list *arriving = &loop->endpoints[i].arriving;

        for (struct message **link = &arriving->first; *link != NULL;) {
            if (is_swept(loop, sweep, *link)) {
                ibshift_loop_list_append(&taken, ibshift_loop_list_take(arriving, link));
            } else {
                link = &(*link)->next;
            }
        }
    }
    for (size_t i = 0; i < loop->table.buckets; i++) {
        for (struct message **link = &loop->table.heads[i]; *link != NULL;) {
            struct message *message = *link;

            if (is_swept(loop, sweep, message)) {
                *link = message->next;
                ibshift_loop_list_append(&taken, message);
            } else {
                link = &message->next;
            }
        }
    }
    while (taken.first != NULL) {
        settle(loop, sweep, ibshift_loop_list_take(&taken, &taken.first));
    }
}

void ibshift_loop_fail_peer(struct endpoint *endpoint, uint32_t peer, int status)
{
    if (endpoint->failed[peer] == 0 && peer != endpoint->self) {
        endpoint->failed[peer] = status;
        sweep_all(endpoint->loop,
                  &(struct sweep){.why = FAILED_PEER, .self = endpoint->self, .peer = peer});
    }
}

void ibshift_loop_die(struct endpoint *endpoint)
{
    endpoint->is_dead = true;
    sweep_all(endpoint->loop, &(struct sweep){.why = DEATH, .self = endpoint->self});
}

bool ibshift_loop_remembers(const struct memory *memory, uint32_t peer, uint32_t comm, uint32_t seq)
{
    for (uint32_t i = 0; i < memory->count && i < REMEMBERED; i++) {
        if (memory->entries[i].peer == peer && memory->entries[i].comm == comm &&
            memory->entries[i].seq == seq) {
            return true;
        }
    }
    return false;
}

static void remember(struct memory *memory, uint32_t peer, uint32_t comm, uint32_t seq)
{
    uint32_t slot = memory->count++ % REMEMBERED;

    memory->entries[slot].peer = peer;
    memory->entries[slot].comm = comm;
    memory->entries[slot].seq = seq;
}

void ibshift_loop_drop(struct endpoint *endpoint, uint32_t comm, uint32_t seq)
{
    remember(&endpoint->dropped, endpoint->self, comm, seq);
    sweep_all(endpoint->loop,
              &(struct sweep){.why = CANCEL, .self = endpoint->self, .comm = comm, .seq = seq});
}

void ibshift_loop_give_up(struct endpoint *endpoint, uint32_t peer, uint32_t comm, uint32_t seq)
{
    struct endpoint *other = &endpoint->loop->endpoints[peer];

    if (endpoint->is_dead || other->is_dead ||
        ibshift_loop_remembers(&other->aborted, endpoint->self, comm, seq)) {
        return;
    }
    remember(&other->aborted, endpoint->self, comm, seq);
    sweep_all(endpoint->loop,
              &(struct sweep){
                  .why = ABORT, .self = peer, .peer = endpoint->self, .comm = comm, .seq = seq});
}
