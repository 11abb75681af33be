/* Ports with four LIDs (softhca-run --lmc 2): each pair of ranks takes its own, each way. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "net/verbs/blob.h"
#include "ranks.h"

enum { RANKS = 4, LIMIT = 60 };

static unsigned choose_path(void *context, uint32_t peer)
{
    return ((unsigned)((struct ranks *)context)->self + 2 * peer) % 4;
}

static struct ibshift_net_message message(uint32_t peer, uint32_t tag, uint8_t *buffer)
{
    return (struct ibshift_net_message){
        .peer = peer, .key = {.comm = 7, .tag = tag}, .buffer = buffer, .length = sizeof(uint64_t)};
}

static void exchange(struct ranks *r)
{
    static uint8_t sent[RANKS][sizeof(uint64_t)], got[RANKS][sizeof(uint64_t)];
    int left = 0;

    for (uint32_t peer = 0; peer < RANKS; peer++) {
        struct ibshift_net_message to = message(peer, (uint32_t)r->self, sent[peer]);
        struct ibshift_net_message from = message(peer, peer, got[peer]);

        if (peer != (uint32_t)r->self) {
            ranks_fill(sent[peer], sizeof(sent[peer]), (uint64_t)r->self);
            left += ibshift_net_recv(r->net, &from) == IBSHIFT_NET_PENDING;
            left += ibshift_net_send(r->net, &to) == IBSHIFT_NET_PENDING;
        }
    }
    while (left > 0) {
        struct ibshift_net_event event;

        if (ibshift_net_poll(r->net, &event, 1) == 1) {
            left--;
            if (event.status != 0) {
                ranks_fail(r, "peer %u: status %d", event.peer, event.status);
            }
        }
    }
    for (uint32_t peer = 0; peer < RANKS; peer++) {
        if (peer != (uint32_t)r->self && ranks_differs(got[peer], sizeof(got[peer]), peer) >= 0) {
            ranks_fail(r, "what came from %u differs", peer);
        }
    }
}

static int run(struct ranks *r)
{
    exchange(r);
    for (uint32_t peer = 0; peer < RANKS; peer++) {
        struct ibshift_verbs_blob card;
        char text[512], wanted[32];

        if (peer == (uint32_t)r->self) {
            continue;
        }
        ibshift_verbs_blob_decode(r->shared->card[peer], r->shared->card_size[peer], &card);
        snprintf(wanted, sizeof(wanted), "lid %u ", card.address[0].lid + choose_path(r, peer));
        ibshift_net_describe(r->net, peer, text, sizeof(text));
        if (card.address[0].lmc != 2 || strstr(text, wanted) == NULL) {
            ranks_fail(r, "lmc %u, no \"%s\" in: %s", card.address[0].lmc, wanted, text);
        }
    }
    ranks_barrier(r, 1);
    return 0;
}

int main(void)
{
    struct ranks r = {.count = RANKS, .max_ports = 1, .options = ibshift_net_verbs_defaults};

    alarm(LIMIT);
    r.options.path = choose_path;
    return ranks_run(&r, run, 0);
}
