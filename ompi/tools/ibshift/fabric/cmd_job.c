/* What commands begin and end with: a fabric, and a job on it, with its hosts, its order and its plan
 * as options say. */
#include "fabric/cmd_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/cmd.h"
#include "fabric/graph/random.h"
#include "fabric/names.h"
#include "fabric/read/read.h"

#define RANKS_MAX 1000000

static void place_ranks(const struct cli_args *args, struct fabric_job *job, const uint32_t *hosts,
                        uint32_t count)
{
    struct ibshift_error err;
    uint32_t ranks, *host_of;

    job->node_of = fabric_nodes_of(job->fabric, &job->pool);
    hosts = job->has_rails ? fabric_job_rails(args, job, hosts, &count) : hosts;
    if ((uint64_t)count * job->per_host > RANKS_MAX) {
        exit(cli_error(args->command, "%u hosts with %u ranks each: at most %d ranks", count,
                       job->per_host, RANKS_MAX));
    }
    ranks = count * job->per_host;
    host_of = pool_new(&job->pool, ranks, sizeof(*host_of));
    for (uint32_t r = 0; r < ranks; r++) {
        host_of[r] = hosts[r / job->per_host];
    }
    fabric_must(args, ibshift_placement_open(job->fabric, host_of, ranks, &job->placement, &err),
                &err);
    fabric_must(args, ibshift_placement_routes(job->placement, true, &err), &err);
}

void fabric_job_beside(const struct cli_args *args, struct fabric_job *job,
                       const struct fabric_job *first, const uint32_t *hosts, uint32_t count)
{
    job->is_beside = true;
    job->fabric = first->fabric;
    job->order = first->order;
    job->order_count = first->order_count;
    job->per_host = job->ranks_per_host > 0 ? job->ranks_per_host : 1;
    hosts = hosts != NULL ? hosts : fabric_job_hosts(args, job, &count);
    place_ranks(args, job, hosts, count);
}

void fabric_job_open(const struct cli_args *args, struct fabric_job *job)
{
    uint32_t count, *hosts;
    struct ibshift_error err;

    job->per_host = job->ranks_per_host > 0 ? job->ranks_per_host : 1;
    job->fabric = fabric_args_load(args);
    fabric_must_have_tables(args, job->fabric);
    fabric_must(args, ibshift_placement_order(job->fabric, &job->order, &job->order_count, &err),
                &err);
    hosts = fabric_job_hosts(args, job, &count);
    place_ranks(args, job, hosts, count);
}

void fabric_job_close(struct fabric_job *job)
{
    ibshift_placement_close(job->placement);
    ibshift_nodes_free(&job->nodes);
    if (!job->is_beside) {
        free(job->order);
        ibshift_fabric_free(job->fabric);
    }
    pool_free(&job->pool);
}

void fabric_job_print(const struct fabric_job *job)
{
    const struct ibshift_placement *p = job->placement;

    printf("%u rank%s on %u host%s", p->ranks, cli_plural(p->ranks), p->hosts,
           cli_plural(p->hosts));
}

/* Options that say what a job does: in which order, by which plan. */

static void shuffle(struct ibshift_order *shift, uint32_t ranks, uint64_t seed)
{
    ibshift_random_shuffle(&seed, shift->rank_at, ranks);
    for (uint32_t place = 0; place < ranks; place++) {
        shift->slot_of[shift->rank_at[place]] = place;
    }
}

static void shift_from_file(const struct cli_args *args, const struct fabric_job *job,
                            const char *path, struct ibshift_order *shift)
{
    uint32_t *hosts = NULL, count;
    struct ibshift_error err;
    int rc;

    fabric_must(args, ibshift_order_load(path, job->fabric, true, &hosts, &count, &err), &err);
    rc = ibshift_placement_along(job->placement, hosts, count, false, shift, &err);
    free(hosts);
    if (rc == -ENOENT) {
        exit(cli_error(args->command, "%s: %s", path, err.text));
    }
    fabric_must(args, rc, &err);
}

void fabric_job_shift(const struct cli_args *args, const struct fabric_job *job, const char *order,
                      struct ibshift_order *shift, const char **title)
{
    static const struct {
        const char *word;
        enum ibshift_arrange_kind kind;
    } words[] = {{"rank", IBSHIFT_ARRANGE_RANK},
                 {"routing", IBSHIFT_ARRANGE_ROUTING},
                 {"keepers", IBSHIFT_ARRANGE_KEEPERS}};
    enum ibshift_arrange_kind kind = IBSHIFT_ARRANGE_KINDS;
    struct ibshift_error err;
    uint64_t seed;
    int status = CLI_OK;
    bool is_random;

    order = order == NULL ? "rank" : order;
    is_random = fabric_job_numbers(args, order, "random", 1, &seed, &status);
    cli_must(status);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        kind = strcmp(order, words[i].word) == 0 ? words[i].kind : kind;
    }
    *title = is_random                       ? "shift in random order"
             : kind == IBSHIFT_ARRANGE_KINDS ? order
                                             : ibshift_arrange_name(kind);
    if (kind == IBSHIFT_ARRANGE_KINDS && !is_random) {
        shift_from_file(args, job, order, shift);
    } else if (kind == IBSHIFT_ARRANGE_ROUTING || kind == IBSHIFT_ARRANGE_KEEPERS) {
        fabric_must(args,
                    ibshift_placement_along(job->placement, job->order, job->order_count,
                                            kind == IBSHIFT_ARRANGE_KEEPERS, shift, &err),
                    &err);
    } else {
        fabric_must(args, ibshift_placement_by_rank(job->placement, shift, &err), &err);
    }
    if (is_random) {
        shuffle(shift, job->placement->ranks, seed);
    }
}

uint32_t *fabric_job_members(struct fabric_job *job, const struct ibshift_order *shift)
{
    const struct ibshift_placement *p = job->placement;
    uint32_t *members = pool_new(&job->pool, p->ranks, sizeof(*members)), at = 0;

    for (uint32_t slot = 0; slot < shift->places * shift->slots; slot++) {
        if (shift->rank_at[slot] != IBSHIFT_NO_RANK) {
            members[at++] = p->member_of[shift->rank_at[slot]];
        }
    }
    return members;
}

void fabric_job_check(const struct cli_args *args, const struct fabric_job *job, const char *plan)
{
    const char *unread = job->leaders > 0 ? "leaders" : job->segments > 0 ? "segments" : NULL;

    if (plan == NULL && unread != NULL) {
        exit(cli_error(args->command, "--%s goes with --plan", unread));
    }
}

void fabric_job_check_lid(const struct cli_args *args, const struct fabric_job *job)
{
    uint32_t modes = ibshift_paths_modes(job->placement->paths);

    if (job->lid_offset >= modes) {
        exit(cli_error(args->command, "--lid-offset %u: the job's hosts have %u LID%s each",
                       job->lid_offset, modes, cli_plural(modes)));
    }
}

/* What is given and the algorithm does not read; NULL: nothing. */
static const char *find_unread(const struct fabric_job *job, const struct ibshift_alg *alg,
                               bool has_radix)
{
    return has_radix && alg->radix_max == 0                                ? "radix"
           : job->leaders > 0 && (alg->flags & IBSHIFT_ALG_LEADERS) == 0   ? "--leaders"
           : job->segments > 1 && (alg->flags & IBSHIFT_ALG_SEGMENTS) == 0 ? "--segments"
                                                                           : NULL;
}

/* "alltoall/bruck:3": the collective, and the algorithm with its radix, 0 for none. */
static const struct ibshift_alg *find_alg(const struct cli_args *args, const char *text,
                                          uint32_t *radix)
{
    const struct ibshift_alg *alg;
    char name[64];
    char *slash, *colon;
    long given = 0;
    int collective;

    snprintf(name, sizeof(name), "%s", text);
    slash = strchr(name, '/');
    colon = slash != NULL ? strchr(slash, ':') : NULL;
    if (slash == NULL ||
        (colon != NULL && cli_parse_long(colon + 1, 1, IBSHIFT_RADIX_MAX, &given) != 0)) {
        exit(cli_error(args->command,
                       "--plan %.60s: wants COLLECTIVE/ALGORITHM[:RADIX], such as allgather/ring",
                       text));
    }
    *slash = '\0';
    if (colon != NULL) {
        *colon = '\0';
    }
    collective = ibshift_collective_find(name);
    alg = collective < 0 ? NULL : ibshift_alg_find((enum ibshift_collective)collective, slash + 1);
    if (alg == NULL) {
        exit(cli_error(args->command, "--plan %.60s: no such %s; ibshift plan list shows them",
                       text, collective < 0 ? "collective" : "algorithm"));
    }
    *radix = (uint32_t)given;
    return alg;
}

/* [rank]: the node of the member that it is on, by the first member there. */
static uint32_t *number_nodes(struct fabric_job *job, const uint32_t *members)
{
    const struct ibshift_placement *p = job->placement;
    uint32_t *number = pool_new(&job->pool, job->fabric->host_count, sizeof(*number)); /* + 1 */
    uint32_t *nodes = pool_new(&job->pool, p->ranks, sizeof(*nodes));

    for (uint32_t r = 0; r < p->ranks; r++) {
        uint32_t *known = &number[job->node_of[p->host[members[r]]]];

        *known = *known > 0 ? *known : members[r] + 1;
        nodes[r] = *known - 1;
    }
    return nodes;
}

const struct ibshift_alg *fabric_job_plan(const struct cli_args *args, struct fabric_job *job,
                                          const char *text, const uint32_t *members,
                                          struct ibshift_plan *plan)
{
    char why[160];
    uint32_t radix;
    const struct ibshift_alg *alg = find_alg(args, text, &radix);
    const char *unread = find_unread(job, alg, radix > 0);
    bool has_leaders = (alg->flags & IBSHIFT_ALG_LEADERS) != 0;

    if ((alg->flags & IBSHIFT_ALG_MULTICAST) != 0) {
        exit(cli_error(args->command, "--plan %.60s: multicast is not modelled here", text));
    }
    if (unread != NULL) {
        exit(cli_error(args->command, "--plan %.60s: takes no %s", text, unread));
    }
    if (ibshift_nodes_make(number_nodes(job, members), job->placement->ranks, &job->nodes) != 0) {
        exit(cli_error(args->command, "no memory"));
    }
    *plan = (struct ibshift_plan){.ranks = job->placement->ranks,
                                  .radix = radix > 0 ? radix : 1,
                                  .segments = job->segments > 0 ? job->segments : 1,
                                  .leaders =
                                      job->leaders > 0 || !has_leaders ? job->leaders : job->rails,
                                  .commutative = true,
                                  .nodes = &job->nodes};
    if (ibshift_alg_check(alg, plan, why, sizeof(why)) != 0) {
        exit(cli_error(args->command, "--plan %.60s: %s", text, why));
    }
    return alg;
}
