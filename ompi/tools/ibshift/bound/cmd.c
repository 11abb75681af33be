/* `ibshift fabric bound`: what no plan and no routes can beat, with a proof that others can check. */
#include "fabric/cmd_job.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "bound/least.h"
#include "fabric/graph/random.h"
#include "fabric/names.h"
#include "fabric/paths/contend.h"

struct bound {
    struct cli_args args;
    struct fabric_job job;
    enum ibshift_collective collective;
    const char *certificate, *output;
    bool is_json;
    uint32_t
        each; /* ranks of a host, beside those of the placement: all hosts have as many times more */
    struct fabric_net net;
    double time;      /* with any routes */
    bool *is_inside;  /* [node]: of allgather and reduce_scatter */
    double *lengths;  /* [edge]: of an all-to-all, */
    double routed;    /* and its time on the tables' routes, */
    uint32_t busiest; /* by this link, as in a contention */
    const char *plan; /* what comes near, in words, */
    double cost;      /* and takes so long on the tables */
    uint32_t *along;  /* the ring's members */
};

/*
 * A ring through the hosts of a job: all of a leaf one after the other, so that one message leaves each leaf and one comes in. Which
 * leaf comes next, and at which of its hosts, is searched until no link of the routes carries two messages at once, as on damaged
 * trees it would. Deterministic.
 */

#define EFFORT 3e7 /* links that are looked at: a tenth of a second */

struct ring {
    const struct ibshift_paths *paths;
    uint32_t *first, *hosts; /* [leaf]: along[first .. first + hosts) */
    const uint32_t *along;
    uint32_t *leaf_at; /* [place] */
    uint32_t *entry;   /* [leaf]: the host, of its own, that is the first */
    double *load;      /* [shared link] */
};

static const uint32_t *links_between(const struct ring *r, uint32_t place)
{
    uint32_t from = r->leaf_at[place], to = r->leaf_at[(place + 1) % r->paths->leaves];

    return ibshift_paths_links(r->paths, r->along[r->first[from]],
                               r->along[r->first[to] + r->entry[to]], 0);
}

/* By how much links are busier than a host's cable, in all. */
static double excess_of(struct ring *r)
{
    const struct ibshift_paths *p = r->paths;
    double excess = 0;

    for (uint32_t place = 0; place < p->leaves; place++) {
        const uint32_t *link = links_between(r, place);

        for (uint32_t i = 0; i < p->width && link[i] != IBSHIFT_NO_LINK; i++) {
            double before = r->load[link[i]], after = before + p->cost[link[i]];

            r->load[link[i]] = after;
            excess += (after > 1.0001 ? after - 1 : 0) - (before > 1.0001 ? before - 1 : 0);
        }
    }
    for (uint32_t place = 0; place < p->leaves; place++) {
        const uint32_t *link = links_between(r, place);

        for (uint32_t i = 0; i < p->width && link[i] != IBSHIFT_NO_LINK; i++) {
            r->load[link[i]] = 0;
        }
    }
    return excess;
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t kept = *a;

    *a = *b;
    *b = kept;
}

/* Another host to come in by, or two leaves that change places; kept where it costs no more. */
static void search(struct ring *r)
{
    const struct ibshift_paths *p = r->paths;
    double excess = excess_of(r), tries = EFFORT / ((double)p->leaves * (p->width + 1));
    uint64_t seed = 1;

    while (excess > 0 && tries-- > 0) {
        uint32_t a = (uint32_t)ibshift_random_below(&seed, p->leaves);
        uint32_t b = (uint32_t)ibshift_random_below(&seed, p->leaves), before = r->entry[a];
        bool is_swap = ibshift_random_below(&seed, 2) == 0;
        double after;

        if (is_swap) {
            swap(&r->leaf_at[a], &r->leaf_at[b]);
        } else {
            r->entry[a] = (uint32_t)ibshift_random_below(&seed, r->hosts[a]);
        }
        after = excess_of(r);
        if (after <= excess) {
            excess = after;
        } else if (is_swap) {
            swap(&r->leaf_at[a], &r->leaf_at[b]);
        } else {
            r->entry[a] = before;
        }
    }
}

/* along: the members in an order to begin with, then in that of the ring. */
static void find_ring(const struct ibshift_paths *paths, uint32_t *along, struct pool *pool)
{
    uint32_t *kept = pool_new(pool, paths->hosts, sizeof(*kept)), leaves = 0, at = 0;
    struct ring r = {.paths = paths,
                     .first = pool_new(pool, paths->leaves, sizeof(*r.first)),
                     .hosts = pool_new(pool, paths->leaves, sizeof(*r.hosts)),
                     .along = kept,
                     .leaf_at = pool_new(pool, paths->leaves, sizeof(*r.leaf_at)),
                     .entry = pool_new(pool, paths->leaves, sizeof(*r.entry)),
                     .load = pool_new(pool, paths->links + 1, sizeof(*r.load))};

    for (uint32_t i = 0; i < paths->hosts; i++) {
        uint32_t leaf = paths->leaf[along[i]];

        if (r.hosts[leaf] == 0) {
            r.first[leaf] =
                leaves > 0 ? r.first[r.leaf_at[leaves - 1]] + paths->on_leaf[r.leaf_at[leaves - 1]]
                           : 0;
            r.leaf_at[leaves++] = leaf;
        }
        kept[r.first[leaf] + r.hosts[leaf]++] = along[i];
    }
    search(&r);
    for (uint32_t place = 0; place < leaves; place++) {
        uint32_t leaf = r.leaf_at[place];

        for (uint32_t i = 0; i < r.hosts[leaf]; i++) {
            along[at++] = kept[r.first[leaf] + (r.entry[leaf] + i) % r.hosts[leaf]];
        }
    }
}

/* The members in routing order, each once. */
static uint32_t *find_members(struct bound *b)
{
    const struct ibshift_placement *p = b->job.placement;
    uint32_t *along = pool_new(&b->job.pool, p->hosts, sizeof(*along)), count = 0;

    for (uint32_t i = 0; i < b->job.order_count; i++) {
        uint32_t host = b->job.order[i];
        uint32_t member = host == IBSHIFT_NO_HOST ? IBSHIFT_NO_HOST : p->member_at[host];

        if (member != IBSHIFT_NO_HOST) {
            along[count++] = member;
        }
    }
    return along;
}

/* Whole stages, one after the other. */
static void price_ring(struct bound *b)
{
    const struct ibshift_placement *p = b->job.placement;
    uint32_t *members = pool_new(&b->job.pool, p->ranks, sizeof(*members)), at = 0;
    char name[32];
    struct ibshift_plan_flows flows;
    struct ibshift_contention c;
    struct ibshift_plan plan;
    const struct ibshift_alg *alg;
    int rc;

    b->along = find_members(b);
    find_ring(p->paths, b->along, &b->job.pool);
    for (uint32_t i = 0; i < p->hosts; i++) {
        for (uint32_t r = p->start[b->along[i]]; r < p->start[b->along[i] + 1]; r++) {
            members[at++] = b->along[i];
        }
    }
    snprintf(name, sizeof(name), "%s/ring", ibshift_collective_name(b->collective));
    alg = fabric_job_plan(&b->args, &b->job, name, members, &plan);
    rc = ibshift_plan_flows_open(alg, &plan, members, &flows);
    if (rc != 0) {
        exit(cli_error(b->args.command, "%s", rc == -E2BIG ? "too many ranks" : "no memory"));
    }
    fabric_must(&b->args, ibshift_contend(p->paths, &flows.source, 1, 0, &c),
                &(struct ibshift_error){"no memory"});
    b->plan = "a ring, leaf by leaf";
    b->cost = c.sum;
    ibshift_contention_free(&c);
    ibshift_plan_flows_close(&flows);
}

static void price_stages(struct bound *b)
{
    const struct ibshift_placement *p = b->job.placement;
    struct ibshift_arrangement found;
    struct ibshift_error err;

    fabric_must(
        &b->args,
        ibshift_arrange(p, b->job.order, b->job.order_count, IBSHIFT_ARRANGE_ALL, &found, &err),
        &err);
    b->plan = ibshift_arrange_name(found.kind);
    b->cost = found.cost;
    ibshift_arrangement_free(&found);
    fabric_must(&b->args,
                ibshift_alltoall_bound(p->paths, p->ranks, p->member_of, &b->routed, &b->busiest),
                &(struct ibshift_error){"no memory"});
}

/* Of one rank a host to `each`: all blocks between two hosts go the same way, so times grow as these do. A ring's stages are as
 * many as ranks, each as long. */
static void scale(struct bound *b)
{
    uint32_t ranks = b->job.placement->ranks;
    double more = b->collective == IBSHIFT_ALLTOALL ? (double)b->each * b->each : b->each;

    b->time *= more;
    b->routed *= more;
    b->cost *= b->collective == IBSHIFT_ALLTOALL || ranks < 2
                   ? more
                   : ((double)ranks * b->each - 1) / (ranks - 1);
}

static double share_of(const struct bound *b, double cost)
{
    return b->time > 0 ? cost / b->time : 1;
}

static void print(const struct bound *b)
{
    char link[200];
    uint32_t inside = 0, ranks = b->job.placement->ranks * b->each;

    printf("%u rank%s on %u host%s", ranks, cli_plural(ranks), b->job.placement->hosts,
           cli_plural(b->job.placement->hosts));
    printf(": %s, in times of a block on the fastest host's cable\n",
           ibshift_collective_name(b->collective));
    printf("bound    %.6g  on any routes, proved by ", b->time);
    if (b->is_inside == NULL) {
        printf("lengths of cables\n");
        ibshift_contention_name(b->job.placement->paths, b->busiest, link, sizeof(link));
        printf("%8.3f of it: the tables' busiest link, %s\n", share_of(b, b->routed), link);
    } else {
        for (uint32_t m = 0; m < b->job.placement->hosts; m++) {
            inside += b->is_inside[m];
        }
        printf("a cut around %u host%s\n", inside, cli_plural(inside));
    }
    printf("%8.3f of it: %s\n", share_of(b, b->cost), b->plan);
}

static void print_json(const struct bound *b)
{
    struct json j;

    json_begin(&j, stdout);
    json_value(&j, "hosts", "%u", b->job.placement->hosts);
    json_value(&j, "ranks", "%u", b->job.placement->ranks * b->each);
    json_text(&j, "collective", ibshift_collective_name(b->collective));
    json_value(&j, "bound", "%.9g", b->time);
    if (b->is_inside == NULL) {
        json_value(&j, "routed", "%.9g", b->routed);
    }
    json_text(&j, "plan", b->plan);
    json_value(&j, "cost", "%.9g", b->cost);
    json_end(&j);
}

/* Nodes by GUIDs, cables by the port that they leave by; the job, the bound, and what proves it. */
static void write_certificate(const struct bound *b, FILE *out)
{
    const struct ibshift_fabric *f = b->job.fabric;
    const struct ibshift_placement *p = b->job.placement;

    fprintf(out, "collective %s\nbound %.9g\n", ibshift_collective_name(b->collective), b->time);
    for (uint32_t m = 0; m < p->hosts; m++) {
        uint32_t port = f->hosts[p->host[m]];

        fprintf(out, "host 0x%016" PRIx64 " %u %u\n", f->nodes[f->ports[port].node].guid,
                f->ports[port].number, (p->start[m + 1] - p->start[m]) * b->each);
    }
    for (uint32_t n = 0; b->is_inside != NULL && n < b->net.nodes; n++) {
        uint64_t guid = f->nodes[fabric_net_node(&b->net, n)].guid;

        if (n < p->hosts && b->is_inside[n]) {
            fprintf(out, "inside 0x%016" PRIx64 " %u\n", guid,
                    f->ports[f->hosts[p->host[n]]].number);
        } else if (b->is_inside[n]) {
            fprintf(out, "inside 0x%016" PRIx64 "\n", guid);
        }
    }
    for (uint32_t e = 0; b->lengths != NULL && e < b->net.edges; e++) {
        const struct ibshift_port *port = &f->ports[b->net.edge[e].link];

        if (b->lengths[e] > 0) {
            fprintf(out, "length 0x%016" PRIx64 " %u %.9g\n", f->nodes[port->node].guid,
                    port->number, b->lengths[e]);
        }
    }
}

/* As `ibshift fabric order` prints them, so that --order and --hosts take them. */
static void write_ring(const struct bound *b, FILE *out)
{
    const struct ibshift_placement *p = b->job.placement;
    struct pool pool = {NULL};
    uint32_t *hosts = pool_new(&pool, p->hosts, sizeof(*hosts));

    for (uint32_t i = 0; i < p->hosts; i++) {
        hosts[i] = p->host[b->along[i]];
    }
    fabric_order_write(b->job.fabric, hosts, p->hosts, out);
    pool_free(&pool);
}

static int save(const struct bound *b, const char *path,
                void (*write)(const struct bound *b, FILE *out))
{
    struct output out;
    int rc = path == NULL ? CLI_OK : cli_output_open(b->args.command, path, &out);

    if (rc == CLI_OK && path != NULL) {
        write(b, out.file);
        rc = cli_output_close(b->args.command, path, &out, rc);
    }
    return rc;
}

/* The first word is the collective; what follows is as in the other commands. */
static void take_collective(struct bound *b)
{
    const char *name = b->args.positional[0];
    int collective = ibshift_collective_find(name);

    if (collective != IBSHIFT_ALLGATHER && collective != IBSHIFT_REDUCE_SCATTER &&
        collective != IBSHIFT_ALLTOALL) {
        exit(cli_error(b->args.command,
                       "'%.40s': wants allgather, reduce_scatter or alltoall first", name));
    }
    b->collective = (enum ibshift_collective)collective;
    b->args.count--;
    memmove(b->args.positional, b->args.positional + 1,
            b->args.count * sizeof(*b->args.positional));
    b->args.positional[b->args.count] = NULL;
}

static void find(struct bound *b)
{
    fabric_net_make(&b->net, b->job.placement, &b->job.pool);
    if (b->collective == IBSHIFT_ALLTOALL) {
        b->time = fabric_bound_lengths(&b->net, &b->lengths);
        price_stages(b);
    } else {
        b->time = fabric_bound_cut(&b->net, &b->is_inside);
        price_ring(b);
    }
    scale(b);
}

int cmd_fabric_bound(int argc, char **argv)
{
    struct bound b = {.certificate = NULL};
    const struct cli_option options[] = {
        FABRIC_HOSTS_OPTIONS(b.job),
        {"--certificate", 0, CLI_OUTPUT, "FILE", "write what proves the bound",
         .where = &b.certificate},
        cli_output_option(&b.output, "write the hosts in the order of the ring"),
        cli_json_option(&b.is_json),
        {.name = NULL},
    };
    int rc = CLI_OK;

    b.args = (struct cli_args){.command = "fabric bound",
                               .usage = "COLLECTIVE FABRIC [LFTS]",
                               .options = options,
                               .least = 2,
                               .most = 3};
    cli_must(cli_parse(&b.args, argc, argv));
    if (b.args.helped) {
        return CLI_OK;
    }
    take_collective(&b);
    if (b.output != NULL && b.collective == IBSHIFT_ALLTOALL) {
        return cli_error(b.args.command, "-o: an all-to-all has no ring; ibshift fabric schedule "
                                         "writes its order");
    }
    b.each = b.job.ranks_per_host > 0 ? b.job.ranks_per_host : 1;
    b.job.ranks_per_host = 1;
    fabric_job_open(&b.args, &b.job);
    fabric_args_tell_adaptive(&b.args, b.job.fabric,
                              "the bound is of any routes; the plan is counted on the tables");
    find(&b);
    rc = save(&b, b.certificate, write_certificate);
    rc = rc == CLI_OK ? save(&b, b.output, write_ring) : rc;
    if (rc == CLI_OK) {
        (b.is_json ? print_json : print)(&b);
    }
    fabric_job_close(&b.job);
    return rc;
}
