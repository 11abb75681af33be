/* What commands begin and end with: a fabric, and a job on it, with its hosts, its order and its plan
 * as options say. */
#include "fabric/cmd_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/cmd.h"
#include "fabric/graph/random.h"
#include "fabric/graph/rate.h"
#include "fabric/read/read.h"

/* What the commands that look at a fabric begin and end with. */

int fabric_args_fail(const struct cli_args *args, const struct ibshift_error *err)
{
    return cli_error(args->command, "%s", err->text);
}

/* Loads positional 0 (fabric) and 1 (tables, if given); prints warnings and errors; CLI_OK or
 * CLI_USAGE. */
static int fabric_args_load(const struct cli_args *args, struct ibshift_fabric **fabric)
{
    struct ibshift_warnings warnings = {.count = 0};
    struct ibshift_error err = {""};
    const char *name = args->positional[0];
    int rc = ibshift_fabric_load(strcmp(name, "-") == 0 ? "/dev/stdin" : name, args->positional[1],
                                 fabric, &warnings, &err);

    for (unsigned i = 0; i < warnings.count && i < sizeof(warnings.text) / sizeof(warnings.text[0]);
         i++) {
        fprintf(stderr, "ibshift %s: warning: %s\n", args->command, warnings.text[i]);
    }
    return rc == 0 ? CLI_OK : fabric_args_fail(args, &err);
}

int fabric_with(const struct cli_args *args, fabric_run_t *run)
{
    struct ibshift_fabric *f;
    int status = fabric_args_load(args, &f);

    if (status == CLI_OK) {
        status = run(args, f);
        ibshift_fabric_free(f);
    }
    return status;
}

int fabric_command(struct cli_args *args, int argc, char **argv, fabric_run_t *run)
{
    int status = cli_parse(args, argc, argv);

    return status != CLI_OK || args->helped ? status : fabric_with(args, run);
}

#define RANKS_MAX 1000000

bool fabric_job_numbers(const struct cli_args *args, const char *text, const char *word,
                        unsigned count, uint64_t *numbers, int *status)
{
    size_t length = strlen(word);
    const char *at;

    if (strncmp(text, word, length) != 0 || text[length] != ':') {
        return false;
    }
    at = text + length;
    *status = CLI_OK;
    for (unsigned i = 0; i < count && at != NULL; i++) {
        at = *at == ':' ? ibshift_scan_decimal(at + 1, &numbers[i]) : NULL;
    }
    if (at == NULL || *at != '\0') {
        *status = cli_error(args->command, "'%.60s': wants %u number%s after '%s:'", text, count,
                            count == 1 ? "" : "s", word);
    }
    return true;
}

static uint32_t real_hosts(const struct fabric_job *job, uint32_t *hosts)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < job->order_count; i++) {
        if (job->order[i] != IBSHIFT_NO_HOST) {
            hosts[count++] = job->order[i];
        }
    }
    return count;
}

/* Runs of `length` hosts in routing order, at random places, in random order. Returns how many
 * hosts that are. */
static uint32_t draw_fragments(const struct fabric_job *job, uint64_t wanted, uint64_t length,
                               uint64_t seed, uint32_t *hosts)
{
    uint32_t all = job->fabric->host_count, runs, count = 0;
    uint32_t *along = malloc(((size_t)all + 1) * sizeof(*along));
    uint32_t *run = malloc(((size_t)all + 1) * sizeof(*run));

    if (along != NULL && run != NULL) {
        real_hosts(job, along);
        runs = (uint32_t)((all + length - 1) / length);
        for (uint32_t i = 0; i < runs; i++) {
            run[i] = i;
        }
        ibshift_random_shuffle(&seed, run, runs);
        for (uint32_t i = 0; i < runs; i++) {
            uint64_t first = run[i] * length;

            for (uint64_t h = first; h < first + length && h < all && count < wanted; h++) {
                hosts[count++] = along[h];
            }
        }
    }
    free(along);
    free(run);
    return count;
}

static int draw_hosts(const struct cli_args *args, const struct fabric_job *job,
                      const uint64_t *numbers, bool fragments, uint32_t *hosts, uint32_t *count)
{
    uint64_t seed = numbers[fragments ? 2 : 1];

    if (numbers[0] < 1 || numbers[0] > job->fabric->host_count || (fragments && numbers[1] < 1)) {
        return cli_error(args->command, "--hosts %s: the fabric has %u hosts", job->hosts,
                         job->fabric->host_count);
    }
    *count = (uint32_t)numbers[0];
    if (fragments) {
        return draw_fragments(job, numbers[0], numbers[1], seed, hosts) == *count
                   ? CLI_OK
                   : cli_error(args->command, "no memory");
    }
    ibshift_random_shuffle(&seed, hosts, job->fabric->host_count);
    return CLI_OK;
}

static int read_hosts(const struct cli_args *args, const struct fabric_job *job, uint32_t **hosts,
                      uint32_t *count)
{
    uint32_t *read = NULL;
    struct ibshift_error err;

    if (ibshift_ranks_load(job->hosts, job->fabric, &read, count, &err) != 0) {
        return fabric_args_fail(args, &err);
    }
    free(*hosts);
    *hosts = read;
    return CLI_OK;
}

/* The job's hosts in the order of its ranks, several times where a file says so. */
static int choose_hosts(const struct cli_args *args, const struct fabric_job *job, uint32_t **hosts,
                        uint32_t *count)
{
    const struct ibshift_fabric *f = job->fabric;
    uint64_t numbers[3];
    int status;

    *count = f->host_count;
    *hosts = malloc(((size_t)f->host_count + 1) * sizeof(**hosts));
    if (*hosts == NULL) {
        return cli_error(args->command, "no memory");
    }
    for (uint32_t h = 0; h < f->host_count; h++) {
        (*hosts)[h] = h;
    }
    if (job->hosts == NULL) {
        return CLI_OK;
    }
    if (fabric_job_numbers(args, job->hosts, "random", 2, numbers, &status)) {
        return status != CLI_OK ? status : draw_hosts(args, job, numbers, false, *hosts, count);
    }
    if (fabric_job_numbers(args, job->hosts, "fragments", 3, numbers, &status)) {
        return status != CLI_OK ? status : draw_hosts(args, job, numbers, true, *hosts, count);
    }
    return read_hosts(args, job, hosts, count);
}

static int place_ranks(const struct cli_args *args, struct fabric_job *job)
{
    uint32_t *hosts = NULL, *host_of = NULL, count = 0;
    struct ibshift_error err;
    int status = choose_hosts(args, job, &hosts, &count);

    if (status == CLI_OK && (uint64_t)count * job->per_host > RANKS_MAX) {
        status = cli_error(args->command, "%u hosts with %u ranks each: at most %d ranks", count,
                           job->per_host, RANKS_MAX);
    }
    if (status == CLI_OK) {
        host_of = malloc(((size_t)count * job->per_host + 1) * sizeof(*host_of));
        status = host_of == NULL ? cli_error(args->command, "no memory") : CLI_OK;
    }
    if (status == CLI_OK) {
        for (uint32_t r = 0; r < count * job->per_host; r++) {
            host_of[r] = hosts[r / job->per_host];
        }
        if (ibshift_placement_open(job->fabric, host_of, count * job->per_host, &job->placement,
                                   &err) != 0 ||
            ibshift_placement_routes(job->placement, true, &err) != 0) {
            status = fabric_args_fail(args, &err);
        }
    }
    free(hosts);
    free(host_of);
    return status;
}

int fabric_job_open(const struct cli_args *args, struct fabric_job *job)
{
    struct ibshift_error err;
    int status;

    job->per_host = job->ranks_per_host > 0 ? job->ranks_per_host : 1;
    status = fabric_args_load(args, &job->fabric);
    if (status == CLI_OK && job->fabric->lft == NULL) {
        status =
            cli_error(args->command, "%s has no tables: name a file of them", args->positional[0]);
    }
    if (status == CLI_OK &&
        ibshift_placement_order(job->fabric, &job->order, &job->order_count, &err) != 0) {
        status = fabric_args_fail(args, &err);
    }
    return status == CLI_OK ? place_ranks(args, job) : status;
}

void fabric_job_close(struct fabric_job *job)
{
    ibshift_placement_close(job->placement);
    free(job->order);
    ibshift_nodes_free(&job->nodes);
    ibshift_fabric_free(job->fabric);
}

void fabric_job_print(const struct fabric_job *job)
{
    const struct ibshift_placement *p = job->placement;

    printf("%u rank%s on %u host%s", p->ranks, cli_plural(p->ranks), p->hosts,
           cli_plural(p->hosts));
}

/* As a shell takes it: names of synthetic fabrics have semicolons. */
static void print_word(const char *text)
{
    printf(strpbrk(text, " ;&|<>()$*?") != NULL ? " '%s'" : " %s", text);
}

void fabric_job_next(const struct cli_args *args, const struct fabric_job *job, const char *command,
                     const char *options, const char *why)
{
    if (!isatty(STDOUT_FILENO)) {
        return;
    }
    printf("\nnext: ibshift %s", command);
    for (unsigned i = 0; i < args->count; i++) {
        print_word(args->positional[i]);
    }
    if (job->hosts != NULL) {
        printf(" --hosts");
        print_word(job->hosts);
    }
    if (job->ranks_per_host > 1) {
        printf(" --ranks-per-host %u", job->ranks_per_host);
    }
    printf("%s\n      %s\n", options, why);
}

/* Options that say what a job does: in which order, by which plan. */

static int shuffled_shift(const struct cli_args *args, const struct fabric_job *job, uint64_t seed,
                          struct ibshift_order *shift)
{
    struct ibshift_error err;
    uint32_t ranks = job->placement->ranks;

    if (ibshift_placement_by_rank(job->placement, shift, &err) != 0) {
        return fabric_args_fail(args, &err);
    }
    ibshift_random_shuffle(&seed, shift->rank_at, ranks);
    for (uint32_t place = 0; place < ranks; place++) {
        shift->slot_of[shift->rank_at[place]] = place;
    }
    return CLI_OK;
}

static int shift_from_file(const struct cli_args *args, const struct fabric_job *job,
                           const char *path, struct ibshift_order *shift)
{
    uint32_t *hosts = NULL, count;
    struct ibshift_error err;
    int rc = ibshift_order_load(path, job->fabric, true, &hosts, &count, &err);

    if (rc == 0) {
        rc = ibshift_placement_along(job->placement, hosts, count, false, shift, &err);
        if (rc == -ENOENT) {
            free(hosts);
            return cli_error(args->command, "%s: %s", path, err.text);
        }
    }
    free(hosts);
    return rc == 0 ? CLI_OK : fabric_args_fail(args, &err);
}

int fabric_job_shift(const struct cli_args *args, const struct fabric_job *job, const char *order,
                     struct ibshift_order *shift, const char **title)
{
    struct ibshift_error err;
    uint64_t seed;
    int status, rc;

    order = order == NULL ? "rank" : order;

    if (fabric_job_numbers(args, order, "random", 1, &seed, &status)) {
        *title = "shift in random order";
        return status != CLI_OK ? status : shuffled_shift(args, job, seed, shift);
    }
    if (strcmp(order, "rank") == 0) {
        rc = ibshift_placement_by_rank(job->placement, shift, &err);
    } else if (strcmp(order, "routing") == 0 || strcmp(order, "keepers") == 0) {
        rc = ibshift_placement_along(job->placement, job->order, job->order_count, order[0] == 'k',
                                     shift, &err);
    } else {
        *title = order;
        return shift_from_file(args, job, order, shift);
    }
    *title = ibshift_arrange_name(order[0] == 'k'   ? IBSHIFT_ARRANGE_KEEPERS
                                  : order[1] == 'o' ? IBSHIFT_ARRANGE_ROUTING
                                                    : IBSHIFT_ARRANGE_RANK);
    return rc == 0 ? CLI_OK : fabric_args_fail(args, &err);
}

uint32_t *fabric_job_members(const struct fabric_job *job, const struct ibshift_order *shift)
{
    const struct ibshift_placement *p = job->placement;
    uint32_t *members = malloc(((size_t)p->ranks + 1) * sizeof(*members)), at = 0;

    for (uint32_t slot = 0; members != NULL && slot < shift->places * shift->slots; slot++) {
        if (shift->rank_at[slot] != IBSHIFT_NO_RANK) {
            members[at++] = p->member_of[shift->rank_at[slot]];
        }
    }
    return members;
}

int fabric_job_check(const struct cli_args *args, const struct fabric_job *job, const char *plan)
{
    const char *unread = job->leaders > 0 ? "leaders" : job->segments > 0 ? "segments" : NULL;

    return plan != NULL || unread == NULL
               ? CLI_OK
               : cli_error(args->command, "--%s goes with --plan", unread);
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

int fabric_job_plan(const struct cli_args *args, struct fabric_job *job, const char *text,
                    const uint32_t *members, const struct ibshift_alg **alg,
                    struct ibshift_plan *plan)
{
    char name[64], why[160];
    const char *unread;
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
    unread = find_unread(job, *alg, colon != NULL);
    if (unread != NULL) {
        return cli_error(args->command, "--plan %.60s: takes no %s", text, unread);
    }
    if (ibshift_nodes_make(members, job->placement->ranks, &job->nodes) != 0) {
        return cli_error(args->command, "no memory");
    }
    *plan = (struct ibshift_plan){.ranks = job->placement->ranks,
                                  .radix = (uint32_t)radix,
                                  .segments = job->segments > 0 ? job->segments : 1,
                                  .leaders = job->leaders,
                                  .commutative = true,
                                  .nodes = &job->nodes};
    return ibshift_alg_check(*alg, plan, why, sizeof(why)) == 0
               ? CLI_OK
               : cli_error(args->command, "--plan %.60s: %s", text, why);
}
