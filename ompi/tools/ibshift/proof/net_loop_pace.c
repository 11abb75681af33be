/* What a loop does for pacing: grants that are seen, early news, messages that are left. */
#include "proof/net_loop_store.h"

/* Nearly all of a long message has come: both its ends hear of it, if its receive is there. */
void ibshift_loop_come_early(struct endpoint *endpoint, struct message *send)
{
    struct ibshift_loop *loop = endpoint->loop;
    struct message **recv =
        ibshift_loop_table_find(&loop->table, POSTED, send->from, send->to, &send->key);

    if (send->early == 0 || send->early_due > loop->now || recv == NULL || is_short(loop, send)) {
        return;
    }
    send->early = 0;
    ibshift_loop_message_news(loop, send, IBSHIFT_NET_EARLY);
    ibshift_loop_message_news(loop, *recv, IBSHIFT_NET_EARLY);
}

bool ibshift_loop_granted(struct ibshift_net *net, uint32_t peer, const struct ibshift_net_key *key,
                          uint64_t *note)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);
    struct ibshift_loop *loop = endpoint->loop;
    struct message **link =
        ibshift_loop_table_find(&loop->table, POSTED, endpoint->self, peer, key);
    bool is_granted = link != NULL && (*link)->due <= loop->now;
    bool is_lost = endpoint->is_dead || endpoint->failed[peer] != 0 ||
                   ibshift_loop_remembers(&endpoint->aborted, peer, key->comm, key->seq);

    *note = is_granted ? (*link)->note : 0;
    return ibshift_loop_unlock(endpoint, is_granted || is_lost);
}

/* With a seed, some of these are lost. */
void ibshift_loop_leave(struct ibshift_net *net, uint32_t peer, const struct ibshift_net_key *key)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);
    struct ibshift_loop *loop = endpoint->loop;
    struct message **link =
        ibshift_loop_table_find(&loop->table, POSTED, endpoint->self, peer, key);

    if (link != NULL && (loop->options.seed == 0 || ibshift_loop_random(loop, 4) != 0)) {
        ibshift_loop_message_news(loop, *link, IBSHIFT_NET_LEFT);
    }
    ibshift_loop_unlock(endpoint, 0);
}

void ibshift_loop_jump(struct ibshift_loop *loop, uint32_t peer, uint64_t ahead)
{
    pthread_mutex_lock(&loop->lock);
    loop->endpoints[peer].ahead += ahead;
    pthread_mutex_unlock(&loop->lock);
}
