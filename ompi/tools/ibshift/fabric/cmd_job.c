/* What commands begin and end with: a fabric, and a job on it, with its hosts, its order and its plan
 * as options say. */
#include "fabric/cmd_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/cmd.h"
#include "fabric/graph/random.h"
#include "fabric/joblist.h"
#include "fabric/names.h"
#include "fabric/read/read.h"

/* What the commands that look at a fabric begin and end with. */

int fabric_args_fail(const struct cli_args *args, const struct ibshift_error *err)
{
    return cli_error(args->command, "%s", err->text);
}

void fabric_must(const struct cli_args *args, int rc, const struct ibshift_error *err)
{
    if (rc != 0) {
        exit(fabric_args_fail(args, err));
    }
}

void fabric_args_warn(const struct cli_args *args, const struct ibshift_warnings *warnings)
{
    for (unsigned i = 0; i < ibshift_warnings_kept(warnings); i++) {
        fprintf(stderr, "ibshift %s: warning: %s\n", args->command, warnings->text[i]);
    }
}

void fabric_must_have_tables(const struct cli_args *args, const struct ibshift_fabric *f)
{
    if (f->lft == NULL) {
        exit(
            cli_error(args->command, "%s has no tables: name a file of them", args->positional[0]));
    }
}

/* Positional 0 (fabric) and 1 (tables, if given). */
static struct ibshift_fabric *load(const struct cli_args *args)
{
    struct ibshift_warnings warnings = {.count = 0};
    struct ibshift_error err = {""};
    struct ibshift_fabric *f = NULL;
    const char *name = args->positional[0];
    int rc = ibshift_fabric_load(strcmp(name, "-") == 0 ? "/dev/stdin" : name, args->positional[1],
                                 &f, &warnings, &err);

    fabric_args_warn(args, &warnings);
    fabric_must(args, rc, &err);
    return f;
}

int fabric_with(const struct cli_args *args, fabric_run_t *run)
{
    struct ibshift_fabric *f = load(args);
    int status = run(args, f);

    ibshift_fabric_free(f);
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

/* Runs of `length` hosts in routing order, at random places, in random order. */
static void draw_fragments(struct fabric_job *job, uint32_t wanted, uint64_t length, uint64_t seed,
                           uint32_t *hosts)
{
    uint32_t all = job->fabric->host_count, count = 0;
    uint32_t runs = (uint32_t)((all + length - 1) / length);
    uint32_t *along = pool_new(&job->pool, all, sizeof(*along));
    uint32_t *run = pool_new(&job->pool, runs, sizeof(*run));

    real_hosts(job, along);
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

static uint32_t *read_hosts(const struct cli_args *args, struct fabric_job *job, uint32_t *count)
{
    uint32_t *read = NULL, *hosts;
    struct ibshift_error err;

    fabric_must(args, ibshift_ranks_load(job->hosts, job->fabric, &read, count, &err), &err);
    hosts = pool_new(&job->pool, *count, sizeof(*hosts));
    memcpy(hosts, read, *count * sizeof(*hosts));
    free(read);
    return hosts;
}

/* "nodes:node[001-016]": as a batch system lists them. */
struct listed {
    struct fabric_nodes nodes;
    uint32_t *hosts, count;
    bool *is_there;
    struct ibshift_error err;
};

static int node_listed(void *context, const char *name)
{
    struct listed *l = context;
    uint32_t host = fabric_nodes_host(&l->nodes, name);

    if (host == IBSHIFT_NO_HOST || l->is_there[host]) {
        return ibshift_fail(
            &l->err, host == IBSHIFT_NO_HOST ? -ENOENT : -EEXIST, "--hosts: '%.60s' %s", name,
            host == IBSHIFT_NO_HOST ? "is no host of the fabric" : "is there twice");
    }
    l->is_there[host] = true;
    l->hosts[l->count++] = host;
    return 0;
}

static uint32_t *list_hosts(const struct cli_args *args, struct fabric_job *job, const char *list,
                            uint32_t *count)
{
    struct listed l = {.count = 0};
    const struct fabric_joblist to = {.context = &l, .node = node_listed};
    uint32_t all = job->fabric->host_count;

    fabric_must(args, fabric_nodes_find(job->fabric, &job->pool, &l.nodes, &l.err), &l.err);
    l.hosts = pool_new(&job->pool, all, sizeof(*l.hosts));
    l.is_there = pool_new(&job->pool, all, sizeof(*l.is_there));
    fabric_must(args, fabric_joblist_nodes(list, &to, &l.err), &l.err);
    *count = l.count;
    return l.hosts;
}

/* The job's hosts in the order of its ranks, several times where a file says so. */
static uint32_t *choose_hosts(const struct cli_args *args, struct fabric_job *job, uint32_t *count)
{
    uint32_t all = job->fabric->host_count;
    uint64_t numbers[3] = {all, 1, 1};
    bool is_random = false, is_runs = false;
    int status = CLI_OK;
    uint32_t *hosts;

    if (job->hosts != NULL && strncmp(job->hosts, "nodes:", 6) == 0) {
        return list_hosts(args, job, job->hosts + 6, count);
    }
    if (job->hosts != NULL) {
        is_random = fabric_job_numbers(args, job->hosts, "random", 2, numbers, &status);
        is_runs = fabric_job_numbers(args, job->hosts, "fragments", 3, numbers, &status);
        cli_must(status);
        if (!is_random && !is_runs) {
            return read_hosts(args, job, count);
        }
        if (numbers[0] < 1 || numbers[0] > all || (is_runs && numbers[1] < 1)) {
            exit(cli_error(args->command, "--hosts %s: the fabric has %u hosts", job->hosts, all));
        }
    }
    *count = (uint32_t)numbers[0];
    hosts = pool_new(&job->pool, all, sizeof(*hosts));
    for (uint32_t h = 0; h < all; h++) {
        hosts[h] = h;
    }
    if (is_random) {
        ibshift_random_shuffle(&numbers[1], hosts, all);
    } else if (is_runs) {
        draw_fragments(job, *count, numbers[1], numbers[2], hosts);
    }
    return hosts;
}

static void place_ranks(const struct cli_args *args, struct fabric_job *job, const uint32_t *hosts,
                        uint32_t count)
{
    struct ibshift_error err;
    uint32_t ranks, *host_of;

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
    hosts = hosts != NULL ? hosts : choose_hosts(args, job, &count);
    place_ranks(args, job, hosts, count);
}

void fabric_job_open(const struct cli_args *args, struct fabric_job *job)
{
    uint32_t count, *hosts;
    struct ibshift_error err;

    job->per_host = job->ranks_per_host > 0 ? job->ranks_per_host : 1;
    job->fabric = load(args);
    fabric_must_have_tables(args, job->fabric);
    fabric_must(args, ibshift_placement_order(job->fabric, &job->order, &job->order_count, &err),
                &err);
    hosts = choose_hosts(args, job, &count);
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

const struct ibshift_alg *fabric_job_plan(const struct cli_args *args, struct fabric_job *job,
                                          const char *text, const uint32_t *members,
                                          struct ibshift_plan *plan)
{
    char why[160];
    uint32_t radix;
    const struct ibshift_alg *alg = find_alg(args, text, &radix);
    const char *unread = find_unread(job, alg, radix > 0);

    if (unread != NULL) {
        exit(cli_error(args->command, "--plan %.60s: takes no %s", text, unread));
    }
    if (ibshift_nodes_make(members, job->placement->ranks, &job->nodes) != 0) {
        exit(cli_error(args->command, "no memory"));
    }
    *plan = (struct ibshift_plan){.ranks = job->placement->ranks,
                                  .radix = radix > 0 ? radix : 1,
                                  .segments = job->segments > 0 ? job->segments : 1,
                                  .leaders = job->leaders,
                                  .commutative = true,
                                  .nodes = &job->nodes};
    if (ibshift_alg_check(alg, plan, why, sizeof(why)) != 0) {
        exit(cli_error(args->command, "--plan %.60s: %s", text, why));
    }
    return alg;
}
