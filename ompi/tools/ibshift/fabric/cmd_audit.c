/* `ibshift fabric audit`: what an order for the routes would have gained the jobs that have run here, or
 * what those that run now lose by their places and to each other. */
#include "fabric/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/graph/rate.h"
#include "fabric/joblist.h"
#include "fabric/paths/route.h"
#include "pool.h"
#include "fabric/table/arrange.h"

enum {
    HOSTS_LEAST = 3, /* of a job: with fewer there is one order */
    TABLE_HOSTS =
        1024, /* up to so many a table of stages is looked for, in 3 s each: beyond it takes long */
    ID_SIZE = 32,
};

struct row {
    char id[ID_SIZE];
    double seconds;
    uint32_t hosts;
    uint64_t where;    /* of the hosts, in their order: jobs on the same ones cost the same */
    double rank, best; /* of the bound: a shift in rank order, and the cheapest way */
    /* --now, in messages, of an all-to-all of each job: */
    double cables, alone, beside; /* on its hosts' own cables; on its fullest link, alone and not */
    uint32_t *load, loads;        /* the links that it uses */
    bool is_shared;               /* with another job it shares a node */
};

struct audit {
    struct pool pool;
    const struct cli_args *args;
    const char *jobs;
    bool is_json, is_now, has_progress;
    double *own, *all; /* [port]: messages of the job that is read, and of all jobs */
    const struct ibshift_fabric *fabric;
    uint32_t *order, order_count;
    struct row *rows;
    uint32_t count, room;
    uint32_t small, unknown, unrouted; /* jobs left out, and why */
    uint32_t untabled;                 /* jobs on more than TABLE_HOSTS */
    const uint32_t *hosts;             /* of the line that is being read */
    uint32_t *owner;                   /* [host]: 1 + the first job that has it */
    char stranger[64];                 /* the first node that the fabric lacks */
    struct ibshift_error err;
};

/* ---- a job ---- */

static int price_by_rank(const struct ibshift_placement *placement, struct row *row)
{
    struct ibshift_contention result;
    int rc = ibshift_arrange_price(placement, NULL, 1, 1, &result);

    row->rank = rc == 0 && result.bound > 0 ? result.sum / result.bound : 1;
    return rc;
}

static uint64_t where_of(const struct audit *a, uint32_t hosts)
{
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

    for (uint32_t i = 0; i < hosts; i++) {
        for (unsigned shift = 0; shift < 32; shift += 8) {
            hash = (hash ^ ((a->hosts[i] >> shift) & 0xff)) * 0x100000001b3;
        }
    }
    return hash;
}

static bool was_priced(const struct audit *a, struct row *row)
{
    for (uint32_t i = a->count; i-- > 0;) {
        if (a->rows[i].hosts == row->hosts && a->rows[i].where == row->where) {
            row->rank = a->rows[i].rank;
            row->best = a->rows[i].best;
            return true;
        }
    }
    return false;
}

/* Its messages on all links; 0, or what the walk says of a route that does not arrive. */
static int add_routes(struct audit *a, uint32_t hosts)
{
    const struct ibshift_fabric *f = a->fabric;
    uint32_t links[IBSHIFT_ROUTE_MAX], fastest = ibshift_rate_of_hosts(f, a->hosts, hosts);

    memset(a->own, 0, f->port_count * sizeof(*a->own));
    for (uint64_t pair = 0; pair < (uint64_t)hosts * hosts; pair++) {
        uint32_t from = a->hosts[pair / hosts], to = a->hosts[pair % hosts];
        int walked, count = ibshift_route_walk(f, from, ibshift_host_lid(f, to), links,
                                               IBSHIFT_ROUTE_MAX, &walked);

        if (count < 0) {
            return count;
        }
        for (int i = 0; i < count; i++) {
            a->own[links[i]] += ibshift_link_cost(f, links[i], fastest);
        }
    }
    return 0;
}

static int add_job(struct audit *a, struct row *row)
{
    const struct ibshift_fabric *f = a->fabric;
    int rc = add_routes(a, row->hosts);

    for (uint32_t i = 0; rc == 0 && i < f->port_count; i++) {
        row->loads += a->own[i] > 0;
    }
    row->load = pool_new(&a->pool, row->loads, sizeof(*row->load));
    for (uint32_t i = 0, at = 0; at < row->loads; i++) {
        if (a->own[i] > 0) {
            row->load[at++] = i;
            row->alone = fmax(row->alone, a->own[i]);
            a->all[i] += a->own[i];
        }
    }
    for (uint32_t h = 0; rc == 0 && h < row->hosts; h++) {
        row->cables = fmax(row->cables, a->own[f->hosts[a->hosts[h]]]);
    }
    return rc;
}

static int price(struct audit *a, struct row *row)
{
    struct ibshift_placement *placement = NULL;
    struct ibshift_arrangement found = {.cost = 0};
    /* Stage after stage, as rank order is priced beside it. */
    unsigned kinds = IBSHIFT_ARRANGE_ALL & ~(1u << IBSHIFT_ARRANGE_STEPS);
    int rc = ibshift_placement_open(a->fabric, a->hosts, row->hosts, &placement, &a->err);

    if (row->hosts > TABLE_HOSTS) {
        kinds &= ~(1u << IBSHIFT_ARRANGE_TABLE);
    }
    rc = rc == 0 ? ibshift_placement_routes(placement, true, &a->err) : rc;
    rc = rc == 0 ? price_by_rank(placement, row) : rc;
    if (rc == 0) {
        rc = ibshift_arrange(placement, a->order, a->order_count, kinds, &found, &a->err);
    }
    if (rc == 0) {
        row->best = found.bound > 0 ? found.cost / found.bound : 1;
        row->best = row->best < row->rank ? row->best : row->rank;
        ibshift_arrangement_free(&found);
    }
    ibshift_placement_close(placement);
    return rc;
}

/* Slurm lets jobs share nodes: then they share the cables of these hosts, too. */
static void mark_shared(struct audit *a, struct row *row)
{
    for (uint32_t i = 0; i < row->hosts; i++) {
        uint32_t *owner = &a->owner[a->hosts[i]];

        if (*owner != 0) {
            a->rows[*owner - 1].is_shared = row->is_shared = true;
        } else {
            *owner = a->count + 1;
        }
    }
}

static int job_read(void *context, const struct fabric_listed *job)
{
    struct audit *a = context;
    struct row row = {.seconds = job->seconds, .hosts = job->count};
    int rc;

    a->hosts = job->hosts;
    if (job->stranger != NULL || row.hosts < HOSTS_LEAST) {
        *(job->stranger != NULL ? &a->unknown : &a->small) += 1;
        if (job->stranger != NULL && a->stranger[0] == '\0') {
            snprintf(a->stranger, sizeof(a->stranger), "%.63s", job->stranger);
        }
        return 0;
    }
    if (a->count == a->room) {
        uint32_t room = 2 * a->room + 64;
        struct row *rows = realloc(a->rows, room * sizeof(*rows));

        if (rows == NULL) {
            return -ENOMEM;
        }
        a->rows = rows;
        a->room = room;
    }
    snprintf(row.id, sizeof(row.id), "%s", job->name);
    row.where = where_of(a, row.hosts);
    rc = a->is_now ? add_job(a, &row) : was_priced(a, &row) ? 0 : price(a, &row);
    if (a->has_progress) {
        fprintf(stderr, "\r%u jobs ", a->count + 1);
    }
    if (rc == 0) {
        mark_shared(a, &row);
        a->rows[a->count++] = row;
        a->untabled += row.hosts > TABLE_HOSTS;
    } else if (rc != -ENOMEM) {
        a->unrouted++;
        rc = 0;
    }
    return rc;
}

/* ---- all jobs ---- */

static double gain_of(const struct row *row)
{
    return row->rank / row->best;
}

static double weight_of(const struct row *row)
{
    return row->seconds * row->hosts;
}

static int by_gain(const void *a, const void *b)
{
    double x = gain_of(a), y = gain_of(b);

    return x != y ? (x > y ? -1 : 1)
                  : strcmp(((const struct row *)a)->id, ((const struct row *)b)->id);
}

struct sums {
    double weight, rank, best; /* the last two: weighted */
    uint32_t above;            /* jobs that an order gains more than a tenth */
};

static struct sums add_up(const struct audit *a)
{
    struct sums s = {.weight = 0};

    for (uint32_t i = 0; i < a->count; i++) {
        s.weight += weight_of(&a->rows[i]);
        s.rank += weight_of(&a->rows[i]) * a->rows[i].rank;
        s.best += weight_of(&a->rows[i]) * a->rows[i].best;
        s.above += gain_of(&a->rows[i]) > 1.1;
    }
    if (s.weight > 0) {
        s.rank /= s.weight;
        s.best /= s.weight;
    }
    return s;
}

static void print_jobs(const struct audit *a)
{
    printf("%u job%s on %d hosts or more; left out: %u smaller, %u on nodes that are not in the "
           "fabric, %u without routes\n",
           a->count, cli_plural(a->count), HOSTS_LEAST, a->small, a->unknown, a->unrouted);
}

static void report(const struct audit *a)
{
    struct sums s = add_up(a);

    print_jobs(a);
    printf("a long all-to-all in rank order takes %.3f of the bound, in ibshift's order %.3f "
           "(mean over node hours)\n",
           s.rank, s.best);
    if (a->untabled != 0) {
        printf("%u job%s on more than %d hosts may gain more: no table of stages was looked for\n",
               a->untabled, a->untabled == 1 ? "" : "s", TABLE_HOSTS);
    }
    printf("a gain above 10 %%: %u job%s; the most: %s, %u hosts, %.2f times\n", s.above,
           s.above == 1 ? "" : "s", a->rows[0].id, a->rows[0].hosts, gain_of(&a->rows[0]));
}

static void json_jobs(const struct audit *a, struct json *j)
{
    json_value(j, "jobs", "%u", a->count);
    json_value(j, "small", "%u", a->small);
    json_value(j, "unknown", "%u", a->unknown);
    json_value(j, "unrouted", "%u", a->unrouted);
}

static void report_json(const struct audit *a)
{
    struct sums s = add_up(a);
    struct json j;

    json_begin(&j, stdout);
    json_jobs(a, &j);
    json_value(&j, "untabled", "%u", a->untabled);
    json_value(&j, "rank", "%.6g", s.rank);
    json_value(&j, "best", "%.6g", s.best);
    json_value(&j, "above", "%u", s.above);
    json_open(&j, "job", '[');
    for (uint32_t i = 0; i < a->count; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "id", a->rows[i].id);
        json_value(&j, "hosts", "%u", a->rows[i].hosts);
        json_value(&j, "seconds", "%.6g", a->rows[i].seconds);
        json_value(&j, "rank", "%.6g", a->rows[i].rank);
        json_value(&j, "best", "%.6g", a->rows[i].best);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_end(&j);
}

/* ---- the jobs that run now ---- */

static double place_of(const struct row *row)
{
    return row->alone / row->cables;
}

static double beside_of(const struct row *row)
{
    return row->beside / row->alone;
}

static int by_beside(const void *a, const void *b)
{
    double x = beside_of(a), y = beside_of(b);

    return x != y ? (x > y ? -1 : 1)
                  : strcmp(((const struct row *)a)->id, ((const struct row *)b)->id);
}

static void find_beside(struct audit *a)
{
    for (uint32_t i = 0; i < a->count; i++) {
        for (uint32_t k = 0; k < a->rows[i].loads; k++) {
            a->rows[i].beside = fmax(a->rows[i].beside, a->all[a->rows[i].load[k]]);
        }
    }
    qsort(a->rows, a->count, sizeof(*a->rows), by_beside);
}

static void report_now(const struct audit *a)
{
    uint32_t shared = 0;
    struct json j;

    for (uint32_t i = 0; i < a->count; i++) {
        shared += a->rows[i].is_shared;
    }
    if (!a->is_json) {
        print_jobs(a);
        if (shared > 0) {
            printf("%u of them share nodes with others: what all send counts on these nodes' "
                   "cables\n",
                   shared);
        }
        puts("job                               hosts    place   beside");
        for (uint32_t i = 0; i < a->count; i++) {
            const struct row *row = &a->rows[i];

            printf("%-32s %6u %8.3f %8.3f\n", row->id, row->hosts, place_of(row), beside_of(row));
        }
        return;
    }
    json_begin(&j, stdout);
    json_jobs(a, &j);
    json_value(&j, "shared", "%u", shared);
    json_open(&j, "job", '[');
    for (uint32_t i = 0; i < a->count; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "id", a->rows[i].id);
        json_value(&j, "hosts", "%u", a->rows[i].hosts);
        json_value(&j, "place", "%.6g", place_of(&a->rows[i]));
        json_value(&j, "beside", "%.6g", beside_of(&a->rows[i]));
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_end(&j);
}

/* ---- */

static void read_jobs(struct audit *a)
{
    const struct fabric_joblist to = {a->fabric, job_read, a};
    int rc;

    a->has_progress = isatty(STDERR_FILENO);
    rc = fabric_joblist_load(a->jobs, &to, &a->err);
    if (a->has_progress) {
        fputs("\r", stderr);
    }
    fabric_must(a->args, rc, &a->err);
}

/* Nothing but jobs that are left out is no audit. */
static int refuse(const struct audit *a)
{
    if (a->unknown + a->small + a->unrouted == 0) {
        return cli_error(a->args->command, "%s: no line with a job", a->jobs);
    }
    if (a->small + a->unrouted == 0) {
        return cli_error(a->args->command,
                         "%s: no job of %u ran on nodes of this fabric alone, which has no '%s'",
                         a->jobs, a->unknown, a->stranger);
    }
    return cli_error(a->args->command,
                     "%s: no job on %d hosts or more; left out: %u smaller, %u on nodes that are "
                     "not in the fabric, %u without routes",
                     a->jobs, HOSTS_LEAST, a->small, a->unknown, a->unrouted);
}

static int audit(const struct cli_args *args, struct ibshift_fabric *f)
{
    struct audit *a = args->context;
    int status = CLI_OK;

    a->args = args;
    a->fabric = f;
    fabric_must_have_tables(args, f);
    fabric_args_tell_adaptive(args, f, FABRIC_COUNTS_TABLES);
    fabric_must(args, ibshift_placement_order(f, &a->order, &a->order_count, &a->err), &a->err);
    a->owner = pool_new(&a->pool, f->host_count, sizeof(*a->owner));
    a->own = pool_new(&a->pool, f->port_count, sizeof(*a->own));
    a->all = pool_new(&a->pool, f->port_count, sizeof(*a->all));
    read_jobs(a);
    if (a->count == 0) {
        status = refuse(a);
    } else if (a->is_now) {
        find_beside(a);
        report_now(a);
    } else {
        qsort(a->rows, a->count, sizeof(*a->rows), by_gain);
        (a->is_json ? report_json : report)(a);
    }
    pool_free(&a->pool);
    free(a->order);
    free(a->rows);
    return status;
}

int cmd_fabric_audit(int argc, char **argv)
{
    struct audit a = {.jobs = NULL};
    const struct cli_option options[] = {
        {"--jobs", 0, CLI_TEXT, "FILE",
         "lines of ID|SECONDS|NODES, as sacct -n -P -o JobID,ElapsedRaw,NodeList prints them, "
         "of ID|NODES or NODES (needed)",
         .where = &a.jobs, .is_needed = true},
        {"--now", 0, CLI_FLAG, NULL,
         "these jobs run now: what each loses by its place, and to the others", .where = &a.is_now},
        cli_json_option(&a.is_json),
        {.name = NULL},
    };
    struct cli_args args = {.command = "fabric audit",
                            .usage = "--jobs FILE FABRIC [LFTS]",
                            .options = options,
                            .least = 1,
                            .most = 2,
                            .context = &a};

    return fabric_command(&args, argc, argv, audit);
}
