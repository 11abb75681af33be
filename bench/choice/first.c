/*
 * What a communicator's first call of a collective has to find out: the best plan of one class of sizes. For bench/choice/run,
 * which counts what ask() executes, once for each question in the order that is printed.
 *   first RANKS PER_HOST BYTES...
 */
#include <stdio.h>
#include <stdlib.h>

#include "choose/choose.h"
#include "choose/tuned.h"
#include "plan/nodes.h"

static struct ibshift_answer answer; /* keeps the work from being left out */

__attribute__((noinline)) static void ask(const struct ibshift_question *question)
{
    answer = ibshift_choose_best(question);
    __asm__ volatile("" ::: "memory");
}

static void ask_all(struct ibshift_question *question, uint64_t bytes)
{
    for (int i = 0; i < IBSHIFT_COLLECTIVES; i++) {
        question->collective = (enum ibshift_collective)i;
        question->bytes = IBSHIFT_BARRIER == i ? 0 : bytes;
        ask(question);
        printf("%s,%llu,%d,%s,%u,%u\n", ibshift_collective_name(question->collective),
               (unsigned long long)question->bytes, answer.candidates,
               answer.best.alg != NULL ? answer.best.alg->name : "none", answer.best.radix,
               answer.best.segments);
    }
}

/* Hosts of four processors and one port, filled one after the other. */
static int make(uint32_t ranks, uint32_t per_host, struct ibshift_crowd *crowd,
                struct ibshift_nodes *nodes)
{
    struct ibshift_place *places = calloc(ranks, sizeof(*places));
    int rc = -1;

    for (uint32_t rank = 0; places != NULL && rank < ranks; rank++) {
        places[rank] = (struct ibshift_place){rank / per_host + 1, rank / per_host + 1, 4, false};
    }
    if (places != NULL && ibshift_crowd_make(places, ranks, crowd) == 0) {
        rc = ibshift_nodes_make(crowd->host_of, ranks, nodes);
    }
    free(places);
    return rc;
}

int main(int argc, char **argv)
{
    uint32_t ranks = argc > 3 ? (uint32_t)atoi(argv[1]) : 0;
    uint32_t per_host = argc > 3 ? (uint32_t)atoi(argv[2]) : 0;
    struct ibshift_crowd crowd;
    struct ibshift_nodes nodes;

    if (ranks < 1 || per_host < 1 || make(ranks, per_host, &crowd, &nodes) != 0) {
        fprintf(stderr, "usage: first RANKS PER_HOST BYTES...\n");
        return 2;
    }
    for (int i = 3; i < argc; i++) {
        struct ibshift_plan plan = {.ranks = ranks, .commutative = true, .nodes = &nodes};
        struct ibshift_question question = {.plan = &plan,
                                            .is_brief = true,
                                            .window = 32,
                                            .model = &ibshift_model_typical,
                                            .near = &ibshift_model_node,
                                            .crowd = &crowd};

        ask_all(&question, strtoull(argv[i], NULL, 0));
    }
    ibshift_nodes_free(&nodes);
    ibshift_crowd_free(&crowd);
    return 0;
}
