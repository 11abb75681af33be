/* Options that say what a job does: in which order, by which plan. */
#include "fabric/cmd_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/random.h"

static int shuffled_seats(const struct cli_args *args, const struct fabric_job *job, uint64_t seed,
                          struct ibshift_seats *seats)
{
    struct ibshift_error err;
    uint32_t ranks = job->placement->ranks;

    if (ibshift_seats_by_rank(job->placement, seats, &err) != 0) {
        return fabric_args_fail(args, &err);
    }
    ibshift_random_shuffle(&seed, seats->rank_at, ranks);
    for (uint32_t place = 0; place < ranks; place++) {
        seats->seat_of[seats->rank_at[place]] = place;
    }
    return CLI_OK;
}

static int seats_from_file(const struct cli_args *args, const struct fabric_job *job,
                           const char *path, struct ibshift_seats *seats)
{
    uint32_t *hosts = NULL, count;
    struct ibshift_error err;
    int rc = ibshift_order_load(path, job->fabric, true, &hosts, &count, &err);

    if (rc == 0) {
        rc = ibshift_seats_along(job->placement, hosts, count, false, seats, &err);
        if (rc == -ENOENT) {
            free(hosts);
            return cli_error(args->command, "%s: %s", path, err.text);
        }
    }
    free(hosts);
    return rc == 0 ? CLI_OK : fabric_args_fail(args, &err);
}

int fabric_job_seats(const struct cli_args *args, const struct fabric_job *job, const char *order,
                     struct ibshift_seats *seats, const char **title)
{
    struct ibshift_error err;
    uint64_t seed;
    int status, rc;

    order = order == NULL ? "rank" : order;

    if (fabric_job_numbers(args, order, "random", 1, &seed, &status)) {
        *title = "shift in random order";
        return status != CLI_OK ? status : shuffled_seats(args, job, seed, seats);
    }
    if (strcmp(order, "rank") == 0) {
        rc = ibshift_seats_by_rank(job->placement, seats, &err);
    } else if (strcmp(order, "routing") == 0 || strcmp(order, "keepers") == 0) {
        rc = ibshift_seats_along(job->placement, job->order, job->order_count, order[0] == 'k',
                                 seats, &err);
    } else {
        *title = order;
        return seats_from_file(args, job, order, seats);
    }
    *title = ibshift_way_name(order[0] == 'k'   ? IBSHIFT_WAY_KEEPERS
                              : order[1] == 'o' ? IBSHIFT_WAY_ROUTING
                                                : IBSHIFT_WAY_RANK);
    return rc == 0 ? CLI_OK : fabric_args_fail(args, &err);
}

int fabric_job_plan(const struct cli_args *args, const char *text, uint32_t ranks,
                    const struct ibshift_alg **alg, struct ibshift_plan *plan)
{
    char name[64], why[160];
    char *slash, *colon;
    long radix = 1;
    int collective;

    snprintf(name, sizeof(name), "%s", text);
    slash = strchr(name, '/');
    colon = slash != NULL ? strchr(slash, ':') : NULL;
    if (slash == NULL ||
        (colon != NULL && cli_parse_long(colon + 1, 1, IBSHIFT_RADIX_MAX, &radix) != 0)) {
        return cli_error(args->command,
                         "--plan %.60s: wants COLLECTIVE/ALGORITHM[:RADIX], such as "
                         "allgather/ring",
                         text);
    }
    *slash = '\0';
    if (colon != NULL) {
        *colon = '\0';
    }
    collective = ibshift_collective_find(name);
    *alg = collective < 0 ? NULL : ibshift_alg_find((enum ibshift_collective)collective, slash + 1);
    if (*alg == NULL) {
        return cli_error(args->command, "--plan %.60s: no such %s; ibshift plan list shows them",
                         text, collective < 0 ? "collective" : "algorithm");
    }
    *plan = (struct ibshift_plan){
        .ranks = ranks, .radix = (uint32_t)radix, .segments = 1, .commutative = true};
    return ibshift_alg_check(*alg, plan, why, sizeof(why)) == 0
               ? CLI_OK
               : cli_error(args->command, "--plan %.60s: %s", text, why);
}
