/* Which rank is where in the plans of `ibshift plan`: --order, --split, and the hosts of --per-host, --dealt and --nodes. */
#include "plan/cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proof/split.h"

/* Numbers with commas, '-' for IBSHIFT_NO_RANK; returns how many, or -EINVAL. */
static int parse_list(const char *text, uint32_t *numbers, uint32_t most)
{
    char *end;

    for (uint32_t count = 0; count < most; text = end + 1) {
        unsigned long number = IBSHIFT_NO_RANK;

        end = (char *)text + 1;
        if (*text >= '0' && *text <= '9') {
            number = strtoul(text, &end, 10);
        } else if (*text != '-') {
            return -EINVAL;
        }
        numbers[count++] = number < IBSHIFT_NO_RANK ? (uint32_t)number : IBSHIFT_NO_RANK;
        if (*end != ',') {
            return *end == '\0' ? (int)count : -EINVAL;
        }
    }
    return -EINVAL;
}

int plan_args_order(struct plan_args *args)
{
    uint32_t most = (uint32_t)strlen(args->order_text) + 1, ranks = args->plan.ranks;
    uint32_t slots = args->order.slots, *slot_of = calloc((size_t)most + ranks, sizeof(uint32_t));
    uint32_t *rank_at;
    char why[120];
    int count;

    args->order_memory = slot_of;
    if (slot_of == NULL) {
        return cli_error(args->command, "out of memory");
    }
    rank_at = slot_of + ranks;
    count = parse_list(args->order_text, rank_at, most);
    if (count < 0 || (uint32_t)count % slots != 0) {
        return cli_error(args->command,
                         "--order '%.40s': must be a list like 4,1,0,-,2,3 with %u a node",
                         args->order_text, slots);
    }
    memset(slot_of, 0xff, ranks * sizeof(*slot_of)); /* IBSHIFT_NO_RANK */
    for (int slot = 0; slot < count; slot++) {
        if (rank_at[slot] < ranks) {
            slot_of[rank_at[slot]] = (uint32_t)slot;
        }
    }
    args->order =
        (struct ibshift_order){(uint32_t)count / slots, slots, args->order.step, rank_at, slot_of};
    if (ibshift_order_check(&args->order, ranks, why, sizeof(why)) != 0) {
        return cli_error(args->command,
                         "--order '%.40s': each of the %u ranks must be there once: %s",
                         args->order_text, ranks, why);
    }
    args->plan.order = &args->order;
    return CLI_OK;
}

int plan_args_split(struct plan_args *args)
{
    args->split_memory = plan_split(&args->model, args->sizes[0], args->plan.ranks);
    args->plan.split = args->split_memory;
    return args->split_memory != NULL ? CLI_OK : cli_error(args->command, "out of memory");
}

uint32_t *plan_split(const struct ibshift_model *model, uint64_t bytes, uint32_t ranks)
{
    struct ibshift_model loggp = ibshift_model_loggp(model);
    uint32_t *split = calloc((size_t)ranks + 1, sizeof(*split));

    if (split != NULL && ibshift_model_split(&loggp, bytes, ranks, split) != 0) {
        free(split);
        split = NULL;
    }
    return split;
}

/* With one port each. host_of: of each rank. 0, -ENOMEM, or -EINVAL for a host that is no number below the ranks. */
static int make_hosts(const struct plan_args *args, const uint32_t *host_of, uint32_t ranks,
                      struct plan_hosts *hosts)
{
    int rc = ibshift_nodes_make(host_of, ranks, &hosts->nodes);

    if (rc != 0) {
        return rc;
    }
    hosts->processors = malloc(hosts->nodes.nodes * sizeof(*hosts->processors));
    for (uint32_t i = 0; hosts->processors != NULL && i < hosts->nodes.nodes; i++) {
        hosts->processors[i] = args->processors;
    }
    hosts->crowd = (struct ibshift_crowd){.hosts = hosts->nodes.nodes,
                                          .ports = hosts->nodes.nodes,
                                          .host_of = hosts->nodes.node_of,
                                          .port_of = hosts->nodes.node_of,
                                          .processors = hosts->processors};
    return hosts->processors != NULL ? 0 : -ENOMEM;
}

int plan_hosts_make(const struct plan_args *args, uint32_t ranks, struct plan_hosts *hosts)
{
    uint32_t *host_of = malloc((size_t)ranks * sizeof(*host_of));
    uint32_t per_host = args->per_host > 0 ? args->per_host : 1;
    uint32_t count = ranks / per_host + (ranks % per_host != 0);
    int rc = host_of == NULL ? -ENOMEM : 0;

    *hosts = (struct plan_hosts){.processors = NULL};
    for (uint32_t rank = 0; rc == 0 && rank < ranks && args->nodes_text == NULL; rank++) {
        host_of[rank] = args->is_dealt ? rank % count : rank / per_host;
    }
    if (rc == 0 && args->nodes_text != NULL) {
        rc = parse_list(args->nodes_text, host_of, ranks) == (int)ranks ? 0 : -EINVAL;
    }
    rc = rc == 0 ? make_hosts(args, host_of, ranks, hosts) : rc;
    free(host_of);
    if (rc == -EINVAL) {
        return cli_error(args->command, "--nodes '%.40s': must be %u numbers from 0 to %u",
                         args->nodes_text, ranks, ranks - 1);
    }
    if (rc != 0) {
        cli_error(args->command, "out of memory");
        return CLI_FAILED;
    }
    return CLI_OK;
}

void plan_hosts_free(struct plan_hosts *hosts)
{
    ibshift_nodes_free(&hosts->nodes);
    free(hosts->processors);
}

int plan_args_hosts(struct plan_args *args)
{
    int rc;

    if (args->nodes_text != NULL && (args->per_host > 0 || args->is_dealt)) {
        return cli_error(args->command, "--nodes says where all ranks are: no --per-host");
    }
    if (args->nodes_text == NULL && args->per_host == 0) {
        return !args->is_dealt
                   ? CLI_OK
                   : cli_error(args->command, "--dealt: --per-host says to how many hosts");
    }
    rc = plan_hosts_make(args, args->plan.ranks, &args->hosts);
    args->plan.nodes = rc == CLI_OK ? &args->hosts.nodes : NULL;
    return rc;
}

struct ibshift_price_request plan_request(const struct plan_args *args,
                                          const struct plan_hosts *hosts)
{
    return (struct ibshift_price_request){.alg = args->alg,
                                          .plan = &args->plan,
                                          .model = &args->model,
                                          .near = hosts != NULL && !args->is_one_level ? &args->near
                                                                                       : NULL,
                                          .crowd = hosts != NULL ? &hosts->crowd : NULL,
                                          .bytes = args->sizes[0],
                                          .element = args->element,
                                          .window = args->window,
                                          .piece = args->piece};
}

const struct plan_hosts *plan_hosts_of(const struct plan_args *args)
{
    return args->plan.nodes != NULL ? &args->hosts : NULL;
}
