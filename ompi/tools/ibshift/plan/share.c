/* The hosts of `ibshift plan`: so many ranks each, with one port. */
#include "plan/cmd.h"

#include <errno.h>
#include <stdlib.h>

int plan_nodes_make(const struct plan_args *args, uint32_t ranks, struct ibshift_nodes *nodes)
{
    uint32_t hosts = ranks / args->per_host + (ranks % args->per_host != 0);
    uint32_t *host_of = malloc((size_t)ranks * sizeof(*host_of));
    int rc = host_of == NULL ? -ENOMEM : 0;

    for (uint32_t rank = 0; rc == 0 && rank < ranks; rank++) {
        host_of[rank] = args->is_dealt ? rank % hosts : rank / args->per_host;
    }
    rc = rc == 0 ? ibshift_nodes_make(host_of, ranks, nodes) : rc;
    free(host_of);
    if (rc != 0) {
        cli_error(args->command, "out of memory");
        return CLI_FAILED;
    }
    return CLI_OK;
}

/* A crowd of the hosts; its processors are the caller's to free. NULL: no memory. */
static uint32_t *make_crowd(const struct plan_args *args, const struct ibshift_nodes *nodes,
                            struct ibshift_crowd *crowd)
{
    uint32_t *processors = malloc((size_t)nodes->nodes * sizeof(*processors));

    for (uint32_t node = 0; processors != NULL && node < nodes->nodes; node++) {
        processors[node] = args->processors;
    }
    *crowd = (struct ibshift_crowd){.hosts = nodes->nodes,
                                    .ports = nodes->nodes,
                                    .host_of = nodes->node_of,
                                    .port_of = nodes->node_of,
                                    .processors = processors};
    return processors;
}

int plan_price_shared(const struct plan_args *args, struct ibshift_price_request *request,
                      struct ibshift_price *price)
{
    const struct ibshift_nodes *nodes = request->plan->nodes;
    struct ibshift_crowd crowd;
    uint32_t *processors;
    int rc;

    if (nodes == NULL) {
        return ibshift_price(request, price);
    }
    processors = make_crowd(args, nodes, &crowd);
    if (processors == NULL) {
        return -ENOMEM;
    }
    request->crowd = &crowd;
    request->near = args->is_one_level ? NULL : &args->near;
    rc = ibshift_price(request, price);
    request->crowd = NULL;
    free(processors);
    return rc;
}

struct ibshift_answer plan_choose_shared(const struct plan_args *args,
                                         struct ibshift_question *question)
{
    const struct ibshift_nodes *nodes = question->plan->nodes;
    struct ibshift_answer answer;
    struct ibshift_crowd crowd;
    uint32_t *processors = NULL;

    if (nodes != NULL) {
        processors = make_crowd(args, nodes, &crowd);
        question->crowd = processors != NULL ? &crowd : NULL;
        question->near = args->is_one_level ? NULL : &args->near;
    }
    answer = ibshift_choose_best(question);
    question->crowd = NULL;
    free(processors);
    return answer;
}
