/* --fabric: ranks on the hosts of a fabric, whose links they share. */
#include "plan/cmd.h"

#include <stdlib.h>

struct plan_fabric {
    struct fabric_job job;
    struct cli_args cli;
    uint32_t *along; /* members by place in the routing order, which some rows go along */
    uint8_t *tier;
};

/* The component's limits (group/order.c). */
static void tell_large(const struct plan_args *args)
{
    const struct ibshift_placement *placement = args->fabric->job.placement;

    if (placement->hosts > IBSHIFT_FIRST_HOSTS || placement->ranks > IBSHIFT_FIRST_RANKS) {
        fprintf(stderr,
                "ibshift %s: a job of more than %d hosts or %d ranks prices without what links "
                "share\n",
                args->command, IBSHIFT_FIRST_HOSTS, IBSHIFT_FIRST_RANKS);
    }
}

void plan_fabric_title(const struct plan_args *args, FILE *out)
{
    if (args->fabric != NULL) {
        uint32_t hosts = args->fabric->job.placement->hosts;

        fprintf(out, "with links that are shared, on %u host%s%s%s%s of %s\n", hosts,
                cli_plural(hosts), args->hosts_text != NULL ? " (" : "",
                args->hosts_text != NULL ? args->hosts_text : "",
                args->hosts_text != NULL ? ")" : "", args->fabric_text);
    }
}

int plan_fabric_open(struct plan_args *args)
{
    struct plan_fabric *fabric;
    struct ibshift_order shift;
    const char *title;

    if (args->fabric_text == NULL) {
        return args->hosts_text == NULL ? CLI_OK
                                        : cli_error(args->command, "--hosts goes with --fabric");
    }
    if (args->has_ranks || args->is_dealt || args->nodes_text != NULL || args->order_text != NULL) {
        return cli_error(args->command, "--fabric says where ranks are, and --hosts how many: it "
                                        "takes no --ranks, --dealt, --nodes or --order");
    }
    fabric = calloc(1, sizeof(*fabric));
    if (fabric == NULL) {
        return cli_error(args->command, "no memory");
    }
    args->fabric = fabric;
    fabric->job.hosts = args->hosts_text;
    fabric->job.ranks_per_host = args->per_host;
    fabric->cli =
        (struct cli_args){.command = args->command, .positional = {args->fabric_text}, .count = 1};
    fabric_job_open(&fabric->cli, &fabric->job);
    fabric_args_tell_adaptive(&fabric->cli, fabric->job.fabric, FABRIC_COUNTS_TABLES);
    tell_large(args);
    args->plan.ranks = args->ranks_last = fabric->job.placement->ranks;
    fabric_job_shift(&fabric->cli, &fabric->job, "routing", &shift, &title);
    fabric->along = fabric_job_members(&fabric->job, &shift);
    ibshift_order_free(&shift);
    fabric->tier = fabric_tiers(&fabric->job);
    return CLI_OK;
}

void plan_fabric_close(struct plan_fabric *fabric)
{
    if (fabric != NULL) {
        fabric_job_close(&fabric->job);
        free(fabric);
    }
}

/* As a job has them that says nothing of reductions (group/order.c). */
static const uint32_t *members_of(const struct plan_args *args, const struct ibshift_alg *alg)
{
    bool may_rename = alg->collective == IBSHIFT_BCAST || alg->collective == IBSHIFT_ALLGATHER;

    return may_rename && ibshift_alg_may_rename(alg) ? args->fabric->along
                                                     : args->fabric->job.placement->member_of;
}

int plan_fabric_add(const struct plan_args *args, const struct ibshift_price_request *request,
                    struct ibshift_price *price)
{
    return args->fabric == NULL
               ? 0
               : ibshift_price_distance(request, args->fabric->job.placement->paths,
                                        members_of(args, request->alg), price);
}

struct fabric_traffic plan_fabric_traffic(const struct plan_args *args,
                                          const struct ibshift_alg *alg,
                                          const struct ibshift_plan *plan)
{
    struct fabric_traffic traffic;

    fabric_traffic_count(&args->fabric->job, args->fabric->tier, members_of(args, alg), alg, plan,
                         &traffic);
    return traffic;
}
