/* What commands about a fabric begin with: what they load and say, and the hosts of a job as --hosts and
 * --rails name them. */
#include "fabric/cmd_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/lines.h"
#include "fabric/graph/random.h"
#include "fabric/joblist.h"
#include "fabric/names.h"
#include "fabric/read/read.h"

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
struct ibshift_fabric *fabric_args_load(const struct cli_args *args)
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

void fabric_args_tell_adaptive(const struct cli_args *args, const struct ibshift_fabric *f,
                               const char *meaning)
{
    if (f->is_adaptive) {
        fprintf(stderr, "ibshift %s: the file says that switches choose the routes: %s\n",
                args->command, meaning);
    }
}

int fabric_with(const struct cli_args *args, fabric_run_t *run)
{
    struct ibshift_fabric *f = fabric_args_load(args);
    int status = run(args, f);

    ibshift_fabric_free(f);
    return status;
}

int fabric_command(struct cli_args *args, int argc, char **argv, fabric_run_t *run)
{
    int status = cli_parse(args, argc, argv);

    return status != CLI_OK || args->helped ? status : fabric_with(args, run);
}

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

struct listed {
    struct fabric_job *job;
    uint32_t *hosts, count;
    struct ibshift_error err;
};

static int take_listed(void *context, const struct fabric_listed *listed)
{
    struct listed *l = context;

    if (listed->stranger != NULL) {
        return ibshift_fail(&l->err, -ENOENT, "--hosts: '%.60s' is no host of the fabric",
                            listed->stranger);
    }
    l->hosts = pool_new(&l->job->pool, listed->count, sizeof(*l->hosts));
    l->count = listed->count;
    memcpy(l->hosts, listed->hosts, listed->count * sizeof(*l->hosts));
    return 0;
}

/* "nodes:node[001-016]": as a batch system lists them. */
static uint32_t *list_hosts(const struct cli_args *args, struct fabric_job *job, const char *list,
                            uint32_t *count)
{
    struct listed l = {.job = job};
    const struct fabric_joblist to = {job->fabric, take_listed, &l};

    fabric_must(args, fabric_joblist_nodes(list, "--hosts", &to, &l.err), &l.err);
    *count = l.count;
    return l.hosts;
}

/* The job's hosts in the order of its ranks, several times where a file says so. */
uint32_t *fabric_job_hosts(const struct cli_args *args, struct fabric_job *job, uint32_t *count)
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

/* Adapters of a node: as many as on the first one, all as fast. */
static void check_rails(const struct cli_args *args, const struct fabric_job *job,
                        const uint32_t *first, uint32_t count)
{
    const struct ibshift_fabric *f = job->fabric;

    if (count != job->rails) {
        exit(cli_error(args->command,
                       "--rails: '%s' has %u adapter%s in this fabric, and the job's first node %u",
                       ibshift_host_name(f, first[0]), count, cli_plural(count), job->rails));
    }
    for (uint32_t i = 1; i < count; i++) {
        if (f->ports[f->hosts[first[i]]].rate.mbps != f->ports[f->hosts[first[0]]].rate.mbps) {
            exit(cli_error(args->command, "--rails: '%s' and '%s' differ in speed",
                           ibshift_host_name(f, first[0]), ibshift_host_name(f, first[i])));
        }
    }
}

/* The nodes of these hosts in their order, each with all its adapters by name. */
uint32_t *fabric_job_rails(const struct cli_args *args, struct fabric_job *job,
                           const uint32_t *hosts, uint32_t *count)
{
    uint32_t all = job->fabric->host_count, at = 0, chosen = *count;
    uint32_t *first = pool_new(&job->pool, all + 2, sizeof(*first)); /* of a node, in adapters */
    uint32_t *adapters = pool_new(&job->pool, all, sizeof(*adapters));
    uint32_t *rails = pool_new(&job->pool, all, sizeof(*rails));
    bool *is_taken = pool_new(&job->pool, all, sizeof(*is_taken));

    for (uint32_t h = 0; h < all; h++) {
        first[job->node_of[h] + 1]++;
    }
    for (uint32_t h = 0; h < all; h++) {
        first[h + 1] += first[h];
    }
    for (uint32_t h = all; h-- > 0;) { /* those of a node ascend */
        uint32_t node = job->node_of[h], place = first[node];

        while (place < first[node + 1] && adapters[place] != 0) {
            place++;
        }
        adapters[place] = h + 1;
    }
    for (uint32_t i = 0; i < chosen; i++) {
        uint32_t node = job->node_of[hosts[i]], size = first[node + 1] - first[node];

        if (is_taken[node]) {
            continue;
        }
        is_taken[node] = true;
        for (uint32_t k = 0; k < size; k++) {
            rails[at++] = adapters[first[node + 1] - 1 - k] - 1;
        }
        job->rails = job->rails > 0 ? job->rails : size;
        check_rails(args, job, &rails[at - size], size);
    }
    if (job->rails == 1) {
        exit(cli_error(args->command,
                       "--rails: '%s' has one adapter in this fabric: is it a file of "
                       "one rail only?",
                       ibshift_host_name(job->fabric, rails[0])));
    }
    *count = at;
    return rails;
}
