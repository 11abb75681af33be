/* The time that no order beats. */
#include "sim/cmd.h"

#include <stdlib.h>

/* Messages over the cables that they may share, of which each takes some a second. */
struct cut {
    double messages, rate;
    uint32_t link; /* the first of its cables */
};

static void keep_longest(struct sim_command *c, const struct cut *cut)
{
    uint64_t time = cut->messages > 0 ? (uint64_t)(c->calls * cut->messages / cut->rate) : 0;

    if (time > c->ideal) {
        c->ideal = time;
        c->busiest = cut->link;
    }
}

/* Of a leaf switch, whose hosts have so many ranks: what they send to the others, over all cables that lead on. */
static void cut_leaf(struct sim_command *c, const struct ibshift_node *leaf, double ranks)
{
    const struct ibshift_fabric *g = c->job.fabric;
    struct cut cut = {.messages = ranks * (c->job.placement->ranks - ranks)};

    for (uint32_t port = leaf->first_port + leaf->port_count; port-- > leaf->first_port;) {
        uint32_t next = ibshift_port_neighbour(g, port);

        if (next != IBSHIFT_NO_NODE && ibshift_node_is_switch(g, next)) {
            cut.rate += 1 / (double)sim_message_time(g, &c->fabric, port, (uint64_t)c->size);
            cut.link = port;
        }
    }
    keep_longest(c, &cut);
}

/* Whatever routes switches choose, all goes over the hosts' own cables, and what leaves a leaf over those of the leaf. */
static void bound_cuts(struct sim_command *c)
{
    const struct ibshift_placement *p = c->job.placement;
    const struct ibshift_fabric *g = c->job.fabric;
    double *on_leaf = sim_zeroed(g->node_count, sizeof(*on_leaf));

    c->ideal = 0;
    for (uint32_t m = 0; m < p->hosts; m++) {
        uint32_t port = g->hosts[p->host[m]], ranks = p->start[m + 1] - p->start[m];
        struct cut cut = {.messages = (double)ranks * (p->ranks - ranks),
                          .rate =
                              1 / (double)sim_message_time(g, &c->fabric, port, (uint64_t)c->size),
                          .link = port};

        keep_longest(c, &cut);
        on_leaf[ibshift_port_neighbour(g, port)] += ranks;
    }
    for (uint32_t s = 0; s < g->switch_count; s++) {
        if (on_leaf[g->switches[s]] > 0) {
            cut_leaf(c, &g->nodes[g->switches[s]], on_leaf[g->switches[s]]);
        }
    }
    free(on_leaf);
}

/* The least time that any order needs: the busiest link's. Of an all-to-all it is known before, of
 * a plan or unequal messages it shows. */
int sim_ideal_find(struct sim_command *c)
{
    const struct ibshift_placement *p = c->job.placement;
    double bound;
    uint32_t link;

    c->ideal = sim_run_bound(&c->run, &c->busiest);
    if (c->plan != NULL || c->unequal != NULL || c->job.rails > 0) {
        return CLI_OK;
    }
    if (c->fabric.is_adaptive) {
        bound_cuts(c);
        return CLI_OK;
    }
    if (ibshift_alltoall_bound(p->paths, p->ranks, p->member_of, &bound, &link) != 0) {
        return cli_error(c->args.command, "no memory");
    }
    c->ideal = (uint64_t)(bound * (double)c->unit * c->calls);
    return CLI_OK;
}
