/*
 * Where writes of one queue pair land in any order (softhca-run --swap), the word in a peer's memory
 * is the newest one all the same: words [ROUNDS].
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "messages.h"
#include "net/verbs/inside.h"

enum { EACH = 4, LENGTH = 2000, LIMITS = 3, DEADLINE = 60 };

static uint64_t rounds = 60;

/* Waits until the other rank has got as far. */
static void meet(struct test *t, uint64_t step)
{
    struct ranks *r = t->r;

    __atomic_store_n(&r->shared->number[r->self][0], step, __ATOMIC_RELEASE);
    while (__atomic_load_n(&r->shared->number[!r->self][0], __ATOMIC_ACQUIRE) < step) {
        test_poll_once(t);
    }
}

/* Polls until all that was written to the peer is there. */
static void settle(struct test *t, struct ibshift_net_verbs *nv, struct ibshift_connection *c)
{
    do {
        struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
        wr.wr.rdma.remote_addr = c->out.word_address;
        wr.wr.rdma.rkey = c->out.word_key;
        if (ibshift_rail_post(nv, &c->rail[0], &wr, true) != 0) {
            ranks_fail(t->r, "the last request could not be posted");
        }
        while (c->rail[0].posted != c->rail[0].retired) {
            test_poll_once(t);
        }
    } while (c->must_tell);
}

/* What the sender may know: all that the receiver has told. */
static void compare(struct test *t, const struct ibshift_net_verbs *nv,
                    const struct ibshift_connection *c)
{
    static const char *const names[LIMITS] = {"slots", "quota", "ring"};
    const struct ibshift_word *word = &nv->words[c->number];
    const uint32_t in_word[LIMITS] = {word->slots, word->quota, word->ring};
    const uint32_t known[LIMITS] = {c->out.slots, c->out.quota, c->out.ring};

    for (int i = 0; i < LIMITS; i++) {
        uint32_t told = (uint32_t)t->r->shared->number[1][1 + i];
        if ((int32_t)(told - in_word[i]) > 0 && (int32_t)(told - known[i]) > 0) {
            ranks_fail(t->r, "%s: the peer has told %u, its word says %u and %u is known", names[i],
                       told, in_word[i], known[i]);
        }
    }
}

/* Slots given one right after another, each of which is told. */
static void give(struct ibshift_net_verbs *nv, struct ibshift_connection *c)
{
    for (int i = 0; i < EACH; i++) {
        ibshift_nv_slot_give(c);
        ibshift_nv_tell(c);
    }
}

static int run(struct ranks *r)
{
    static uint8_t data[LENGTH];
    struct ibshift_net_verbs *nv = (struct ibshift_net_verbs *)r->net;
    struct ibshift_net_verbs_stats s;
    struct test t = {.r = r};

    test_begin(&t, r->self == 0, (uint32_t)!r->self, 0, data, LENGTH);
    test_finish(&t);
    struct ibshift_connection *c = ibshift_nv_peer_known(nv, (uint32_t)!r->self);
    for (uint64_t round = 0; round < rounds; round++) {
        if (r->self == 1) {
            give(nv, c);
            settle(&t, nv, c);
            r->shared->number[1][1] = c->in.slots_told;
            r->shared->number[1][2] = c->in.quota_told;
            r->shared->number[1][3] = c->in.ring_told;
        }
        meet(&t, 2 * round + 1);
        if (r->self == 0) {
            compare(&t, nv, c);
        }
        meet(&t, 2 * round + 2);
    }
    ibshift_net_verbs_stats(r->net, &s);
    if (r->self == 1) {
        struct ibv_ece ece = {0};
        (void)ibv_query_ece(c->rail[0].qp, &ece);
        printf("%lu words for %lu slots, data %s, connection options 0x%x\n",
               (unsigned long)s.words, (unsigned long)rounds * EACH,
               c->is_ordered ? "in order" : "in any order", ece.options);
    }
    return r->self == 1 && s.words < rounds;
}

int main(int argc, char **argv)
{
    struct ranks r = {.count = 2, .max_ports = 1, .options = ibshift_net_verbs_defaults};

    alarm(DEADLINE);
    rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : rounds;
    return ranks_run(&r, run, 0);
}
