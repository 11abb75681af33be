/* The words of `ibshift plan` that are no options, and what must fit together once all are read. */
#include "plan/cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proof/split.h"

static int take_collective(struct plan_args *args, const char *text)
{
    const char *names[IBSHIFT_COLLECTIVES];

    args->collective = ibshift_collective_find(text);
    if (args->collective >= 0) {
        return CLI_OK;
    }
    for (int i = 0; i < IBSHIFT_COLLECTIVES; i++) {
        names[i] = ibshift_collective_name((enum ibshift_collective)i);
    }
    return cli_unknown(args->command, "unknown collective", text, names, IBSHIFT_COLLECTIVES,
                       "ibshift plan list shows them");
}

static int take_algorithm(struct plan_args *args, const char *text)
{
    enum ibshift_collective collective = (enum ibshift_collective)args->collective;
    const char *names[128];
    char list[64];
    size_t count = 0;

    args->alg = ibshift_alg_find(collective, text);
    if (args->alg != NULL) {
        return CLI_OK;
    }
    for (size_t i = 0; i < ibshift_alg_count && count < 128; i++) {
        if (ibshift_alg_table[i]->collective == collective) {
            names[count++] = ibshift_alg_table[i]->name;
        }
    }
    snprintf(list, sizeof(list), "ibshift plan list %s shows them",
             ibshift_collective_name(collective));
    return cli_unknown(args->command, "unknown algorithm", text, names, count, list);
}

int plan_args_operand(void *context, const char *text)
{
    struct plan_args *args = context;
    const struct plan_command *command = args->row;

    if (args->collective < 0 && command->operands[0] != '\0') {
        return take_collective(args, text);
    }
    if (args->collective >= 0 && args->alg == NULL && strlen(command->operands) == 2) {
        return take_algorithm(args, text);
    }
    return cli_error(args->command, "unexpected word '%.40s'; ibshift %s --help", text,
                     args->command);
}

/* The ranks of --order in their places; -EINVAL when it is no list of as many as fit. */
static int parse_order(struct plan_args *args, uint32_t *rank_at, uint32_t *count)
{
    const char *at = args->order_text;
    char *end;

    for (*count = 0; *count <= strlen(args->order_text); at = end + 1) {
        unsigned long rank = IBSHIFT_NO_RANK;

        end = (char *)at + 1;
        if (*at >= '0' && *at <= '9') {
            rank = strtoul(at, &end, 10);
        } else if (*at != '-') {
            return -EINVAL;
        }
        rank_at[(*count)++] = rank < IBSHIFT_NO_RANK ? (uint32_t)rank : IBSHIFT_NO_RANK;
        if (*end == '\0') {
            return 0;
        }
        if (*end != ',') {
            return -EINVAL;
        }
    }
    return -EINVAL;
}

/* The seat of each rank that has one. */
static void fill_seats(uint32_t ranks, const uint32_t *rank_at, uint32_t *seat_of, uint32_t count)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        seat_of[rank] = IBSHIFT_NO_RANK;
    }
    for (uint32_t seat = 0; seat < count; seat++) {
        if (rank_at[seat] < ranks) {
            seat_of[rank_at[seat]] = seat;
        }
    }
}

static int take_order(struct plan_args *args)
{
    uint32_t *rank_at, *seat_of, count = 0, slots = args->order.slots;
    size_t size = strlen(args->order_text) + 1 + args->plan.ranks;
    char why[120];

    args->order_memory = calloc(size, sizeof(uint32_t));
    if (args->order_memory == NULL) {
        return cli_error(args->command, "out of memory");
    }
    seat_of = args->order_memory;
    rank_at = seat_of + args->plan.ranks;
    if (parse_order(args, rank_at, &count) != 0 || count % slots != 0) {
        return cli_error(args->command,
                         "--order '%.40s': must be a list like 4,1,0,-,2,3 with %u a node",
                         args->order_text, slots);
    }
    fill_seats(args->plan.ranks, rank_at, seat_of, count);
    args->order = (struct ibshift_order){count / slots, slots, rank_at, seat_of};
    if (ibshift_order_check(&args->order, args->plan.ranks, why, sizeof(why)) != 0) {
        return cli_error(args->command,
                         "--order '%.40s': each of the %u ranks must be there once: %s",
                         args->order_text, args->plan.ranks, why);
    }
    args->plan.order = &args->order;
    return CLI_OK;
}

static int take_split(struct plan_args *args)
{
    struct ibshift_model model = ibshift_model_loggp(&args->model);

    args->split_memory = calloc((size_t)args->plan.ranks + 1, sizeof(uint32_t));
    if (args->split_memory == NULL ||
        ibshift_model_split(&model, args->sizes[0], args->plan.ranks, args->split_memory) != 0) {
        return cli_error(args->command, "out of memory");
    }
    args->plan.split = args->split_memory;
    return CLI_OK;
}

/* An option that the algorithm does not read would be believed to have worked. */
static int check_unread(const struct plan_args *args)
{
    uint32_t flags = args->alg->flags;
    const char *unread = args->has_radix && args->alg->radix_max == 0 ? "radix"
                         : args->plan.segments > 1 && (flags & IBSHIFT_ALG_SEGMENTS) == 0
                             ? "segments"
                         : args->has_leaders && (flags & IBSHIFT_ALG_LEADERS) == 0 ? "leaders"
                         : args->nodes_text != NULL && (flags & IBSHIFT_ALG_NODES) == 0 &&
                                 strchr(args->row->options, 'C') == NULL
                             ? "nodes"
                         : args->per_host > 0 && (flags & IBSHIFT_ALG_NODES) == 0 &&
                                 strchr(args->row->options, 'C') == NULL
                             ? "per-host"
                         : args->order_text != NULL && (flags & IBSHIFT_ALG_ORDER) == 0   ? "order"
                         : args->stages_path != NULL && (flags & IBSHIFT_ALG_STAGES) == 0 ? "stages"
                         : args->split != 0 && (flags & IBSHIFT_ALG_SPLIT) == 0           ? "split"
                                                                                          : NULL;

    if (unread != NULL) {
        return cli_error(args->command, "%s %s takes no --%s",
                         ibshift_collective_name(args->alg->collective), args->alg->name, unread);
    }
    if (args->ranks_last != args->plan.ranks) {
        return cli_error(args->command, "--ranks %u..%u: only compare takes a range",
                         args->plan.ranks, args->ranks_last);
    }
    return CLI_OK;
}

/* The hosts of --nodes. */
static int parse_nodes(struct plan_args *args, uint32_t *host_of)
{
    const char *at = args->nodes_text;
    uint32_t ranks = args->plan.ranks, rank = 0;
    char *end = (char *)at;

    for (; rank < ranks && *at >= '0' && *at <= '9'; rank++, at = end + 1) {
        unsigned long host = strtoul(at, &end, 10);

        host_of[rank] = host < ranks ? (uint32_t)host : ranks;
        if (*end != (rank + 1 < ranks ? ',' : '\0')) {
            return -EINVAL;
        }
    }
    return rank == ranks ? ibshift_nodes_make(host_of, ranks, &args->nodes) : -EINVAL;
}

static int take_listed_nodes(struct plan_args *args)
{
    uint32_t *host_of = malloc((size_t)args->plan.ranks * sizeof(*host_of));
    int rc = host_of == NULL ? -ENOMEM : parse_nodes(args, host_of);

    free(host_of);
    if (rc == -ENOMEM) {
        return cli_error(args->command, "out of memory");
    }
    if (rc != 0) {
        return cli_error(args->command, "--nodes '%.40s': must be %u numbers from 0 to %u",
                         args->nodes_text, args->plan.ranks, args->plan.ranks - 1);
    }
    args->plan.nodes = &args->nodes;
    return CLI_OK;
}

static int take_nodes(struct plan_args *args)
{
    int rc;

    if (args->nodes_text != NULL) {
        return args->per_host == 0 && !args->is_dealt
                   ? take_listed_nodes(args)
                   : cli_error(args->command, "--nodes says where all ranks are: no --per-host");
    }
    if (args->per_host == 0) {
        return !args->is_dealt
                   ? CLI_OK
                   : cli_error(args->command, "--dealt: --per-host says to how many hosts");
    }
    rc = plan_nodes_make(args, args->plan.ranks, &args->nodes);
    args->plan.nodes = rc == CLI_OK ? &args->nodes : NULL;
    return rc;
}

int plan_args_finish(struct plan_args *args)
{
    const struct plan_command *command = args->row;

    if (command->operands[0] == 'C' && args->collective < 0 && !args->has_table) {
        return cli_error(args->command, "name a collective; ibshift plan list shows them");
    }
    if (command->operands[0] == 'C' && command->operands[1] == 'A' && args->alg == NULL &&
        !args->has_table) {
        return cli_error(args->command, "name an algorithm; ibshift plan list %s shows them",
                         ibshift_collective_name((enum ibshift_collective)args->collective));
    }
    if (args->rank >= (long)args->plan.ranks) {
        return cli_error(args->command, "rank %ld of %u ranks: must be 0 to %u", args->rank,
                         args->plan.ranks, args->plan.ranks - 1);
    }
    if ((args->alg != NULL && check_unread(args) != CLI_OK) || take_nodes(args) != CLI_OK ||
        (args->split != 0 && take_split(args) != CLI_OK) ||
        (args->stages_path != NULL && plan_args_stages(args) != CLI_OK)) {
        return CLI_USAGE;
    }
    return args->order_text != NULL ? take_order(args) : CLI_OK;
}
