/* `ibshift fabric place`: which free hosts a job should get. */
#include "fabric/cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/joblist.h"
#include "fabric/names.h"
#include "fabric/place.h"

enum { FREE = 1, BUSY = 2 };

struct place {
    struct pool pool;
    const struct cli_args *args;
    const char *free, *jobs; /* files */
    bool is_list, is_json;
    long wanted;
    const struct ibshift_fabric *fabric;
    struct fabric_nodes nodes;
    uint8_t mark;         /* what the file that is read says of a host */
    uint8_t *marks;       /* [host] */
    const char **name_of; /* [host] */
    bool *is_free;
    uint32_t free_count;
    struct fabric_place found;
    struct ibshift_error err;
};

/* Marks the switches at the other ends of a switch's cables, and adds the hosts of those not marked yet. */
static uint32_t mark_around(const struct ibshift_fabric *f, uint32_t sw, uint32_t mark,
                            uint32_t *marks)
{
    uint32_t hosts = 0;

    for (unsigned p = 1; p <= f->nodes[sw].port_count; p++) {
        uint32_t next = ibshift_port_neighbour(f, ibshift_node_port(f, sw, p));

        if (next != IBSHIFT_NO_NODE && ibshift_node_is_switch(f, next) && marks[next] != mark) {
            marks[next] = mark;
            hosts += ibshift_node_hosts(f, next);
        }
    }
    return hosts;
}

void fabric_hosts_near(const struct ibshift_fabric *f, uint32_t *least, uint32_t *most)
{
    struct pool pool = {.last = NULL};
    uint32_t *marks = pool_new(&pool, f->node_count, sizeof(*marks));

    *least = UINT32_MAX, *most = 0;
    for (uint32_t i = 0; i < f->switch_count; i++) {
        uint32_t leaf = f->switches[i], near = ibshift_node_hosts(f, leaf);

        if (near == 0) {
            continue;
        }
        marks[leaf] = i + 1;
        near += mark_around(f, leaf, i + 1, marks);
        for (unsigned p = 1; p <= f->nodes[leaf].port_count; p++) {
            uint32_t next = ibshift_port_neighbour(f, ibshift_node_port(f, leaf, p));

            near += next != IBSHIFT_NO_NODE && ibshift_node_is_switch(f, next)
                        ? mark_around(f, next, i + 1, marks)
                        : 0;
        }
        *least = near < *least ? near : *least;
        *most = near > *most ? near : *most;
    }
    *least = *least < *most ? *least : *most;
    pool_free(&pool);
}

static int mark_hosts(void *context, const struct fabric_listed *job)
{
    struct place *p = context;

    if (job->stranger != NULL) {
        return ibshift_fail(&p->err, -ENOENT, "%s: '%.60s' is no host of the fabric", job->where,
                            job->stranger);
    }
    for (uint32_t i = 0; i < job->count; i++) {
        uint8_t *mark = &p->marks[job->hosts[i]];

        if (*mark == FREE) { /* jobs may share nodes */
            return ibshift_fail(&p->err, -EEXIST, "%s: '%.60s' is %s", job->where,
                                p->name_of[job->hosts[i]],
                                *mark == p->mark ? "there twice" : "free, and this job has it");
        }
        *mark = p->mark;
    }
    return 0;
}

static void read_marks(struct place *p, const char *path, uint8_t mark)
{
    const struct fabric_joblist to = {p->fabric, mark_hosts, p};

    if (path != NULL) {
        p->mark = mark;
        fabric_must(p->args, fabric_joblist_load(path, &to, &p->err), &p->err);
    }
}

/* Without a list of those that are free, they are all that no job has. */
static void find_free(struct place *p)
{
    p->marks = pool_new(&p->pool, p->fabric->host_count, sizeof(*p->marks));
    p->is_free = pool_new(&p->pool, p->fabric->host_count, sizeof(*p->is_free));
    p->name_of = pool_new(&p->pool, p->fabric->host_count, sizeof(*p->name_of));
    fabric_must(p->args, fabric_nodes_find(p->fabric, &p->pool, &p->nodes, &p->err), &p->err);
    for (uint32_t i = 0; i < p->nodes.count; i++) {
        p->name_of[p->nodes.at[i].host] = p->nodes.at[i].name;
    }
    read_marks(p, p->free, FREE);
    read_marks(p, p->jobs, BUSY);
    for (uint32_t i = 0; i < p->nodes.count; i++) {
        uint32_t host = p->nodes.at[i].host;

        p->is_free[host] = p->marks[host] == (p->free != NULL ? FREE : 0);
        p->free_count += p->is_free[host];
    }
    if (p->wanted > p->free_count) {
        exit(cli_error(p->args->command, "%ld hosts are wanted, %u are free", p->wanted,
                       p->free_count));
    }
}

static void print_list(const struct place *p)
{
    for (uint32_t i = 0; i < p->found.wanted; i++) {
        printf("%s%s", i > 0 ? "," : "", p->name_of[p->found.hosts[i]]);
    }
    putchar('\n');
}

static void print_text(const struct place *p)
{
    const struct fabric_place *f = &p->found;

    printf("%u of %u free host%s, on %u lea%s", f->wanted, p->free_count, cli_plural(p->free_count),
           f->leaves, f->leaves == 1 ? "f" : "ves");
    printf(f->broken > 0 ? ", of which %u %s wholly free\n" : "\n", f->broken,
           f->broken == 1 ? "was" : "were");
    printf("bound    %.3f of the hosts' own cables'\n", f->bound);
    printf("shift    %.3f%s\n", f->cost,
           fabric_place_is_clean(f) ? ", clean: no cable carries two messages in a stage" : "");
    print_list(p);
}

static void print_json(const struct place *p)
{
    struct json j;

    json_begin(&j, stdout);
    json_value(&j, "free", "%u", p->free_count);
    json_value(&j, "leaves", "%u", p->found.leaves);
    json_value(&j, "broken", "%u", p->found.broken);
    json_bool(&j, "clean", fabric_place_is_clean(&p->found));
    json_value(&j, "bound", "%.4f", p->found.bound);
    json_value(&j, "shift", "%.4f", p->found.cost);
    json_open(&j, "hosts", '[');
    for (uint32_t i = 0; i < p->found.wanted; i++) {
        json_text(&j, NULL, p->name_of[p->found.hosts[i]]);
    }
    json_close(&j, ']');
    json_end(&j);
}

static int place(const struct cli_args *args, struct ibshift_fabric *f)
{
    struct place *p = args->context;

    p->args = args;
    p->fabric = f;
    fabric_must_have_tables(args, f);
    fabric_args_tell_adaptive(args, f, FABRIC_COUNTS_TABLES);
    find_free(p);
    p->found =
        (struct fabric_place){.fabric = f, .is_free = p->is_free, .wanted = (uint32_t)p->wanted};
    fabric_must(args, fabric_place_find(&p->found, &p->pool, &p->err), &p->err);
    (p->is_json ? print_json : p->is_list ? print_list : print_text)(p);
    pool_free(&p->pool);
    return CLI_OK;
}

int cmd_fabric_place(int argc, char **argv)
{
    struct place p = {.free = NULL};
    const struct cli_option options[] = {
        {"--free", 0, CLI_TEXT, "FILE",
         "lines of NODES that are free, as sinfo -h -t idle -o %N prints them ('-': stdin) "
         "(default: all that no job has)",
         .where = &p.free},
        {"--jobs", 0, CLI_TEXT, "FILE",
         "lines of ID|SECONDS|NODES, or of NODES, that jobs have now", .where = &p.jobs},
        {"--list", 0, CLI_FLAG, NULL, "the hosts alone, as sbatch takes them", .where = &p.is_list},
        cli_json_option(&p.is_json),
        {.name = NULL},
    };
    struct cli_args args = {.command = "fabric place",
                            .usage = "N FABRIC [LFTS]",
                            .options = options,
                            .least = 2,
                            .most = 3,
                            .context = &p};
    int status = cli_parse(&args, argc, argv);

    if (status != CLI_OK || args.helped) {
        return status;
    }
    if (cli_parse_long(args.positional[0], 1, 1000000, &p.wanted) != 0) {
        return cli_error(args.command, "'%.40s': wants a number of hosts first",
                         args.positional[0]);
    }
    args.count--; /* what follows is as in the other commands */
    memmove(args.positional, args.positional + 1, args.count * sizeof(*args.positional));
    args.positional[args.count] = NULL;
    return fabric_with(&args, place);
}
