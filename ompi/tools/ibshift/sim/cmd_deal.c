/* `ibshift sim --jobs`: the hosts of each of several jobs. */
#include "sim/cmd.h"

#include <stdlib.h>

#include "fabric/graph/random.h"

/* One rank a host, in the order asked for. */
static uint32_t *list_members(struct sim_command *c, uint32_t *count)
{
    const struct ibshift_placement *p = c->job.placement;
    uint32_t *member = sim_zeroed(p->hosts, sizeof(*member));

    fabric_job_shift(&c->args, &c->job, c->order != NULL ? c->order : "routing", &c->shift,
                     &c->title);
    for (uint32_t slot = 0; slot < c->shift.places * c->shift.slots; slot++) {
        uint32_t rank = c->shift.rank_at[slot];

        if (rank != IBSHIFT_NO_RANK) {
            member[(*count)++] = p->host[p->member_of[rank]];
        }
    }
    return member;
}

/* About normal: the sum of twelve even ones has variance 1. */
static uint32_t draw_length(uint64_t *random, double mean, double deviation)
{
    double sum = -6;

    for (int i = 0; i < 12; i++) {
        sum += (double)ibshift_random_below(random, 1u << 30) / (1u << 30);
    }
    sum = mean + deviation * sum;
    return sum < 1 ? 1 : (uint32_t)(sum + 0.5);
}

/* Jobs of equal size on runs of hosts: the order is cut into pieces, the pieces are mixed, and the
 * jobs take them one after the other. Hosts that no job wants are idle. */
static uint32_t *mix(const struct sim_command *c, const uint32_t *member, uint32_t count)
{
    uint32_t pieces = 0, at = 0;
    uint64_t random = (uint64_t)c->seed;
    uint32_t *start = sim_zeroed(count + 1, sizeof(*start));
    uint32_t *turn = sim_zeroed(count + 1, sizeof(*turn));
    uint32_t *mixed = sim_zeroed(count, sizeof(*mixed));

    for (uint32_t first = 0; first < count; pieces++) {
        turn[pieces] = pieces;
        start[pieces] = first;
        first += draw_length(&random, c->fragment, c->fragment_deviation);
    }
    start[pieces] = count;
    ibshift_random_shuffle(&random, turn, pieces);
    for (uint32_t i = 0; i < pieces; i++) {
        for (uint32_t k = start[turn[i]]; k < start[turn[i] + 1] && k < count; k++) {
            mixed[at++] = member[k];
        }
    }
    free(start);
    free(turn);
    return mixed;
}

int sim_deal(struct sim_command *c, uint32_t **hosts, uint32_t *count)
{
    uint32_t wanted = c->job_hosts > 0 ? c->job_hosts : 2, *member;
    const struct ibshift_placement *p = c->job.placement;

    if (p->ranks != p->hosts) {
        return cli_error(c->args.command, "--%s takes one rank a host, not %u on %u",
                         c->pattern >= 0 ? "traffic" : "jobs N", p->ranks, p->hosts);
    }
    member = list_members(c, count);
    *hosts = member;
    if (*count < 2 || (uint64_t)c->jobs * wanted > *count) {
        return cli_error(c->args.command, "%u jobs on %u hosts: each wants %u%s", c->jobs, *count,
                         wanted, c->job_hosts > 0 ? "" : " at least");
    }
    if (c->jobs > 1 || c->job_hosts > 0) {
        *hosts = mix(c, member, *count);
        *count = c->job_hosts > 0 ? c->jobs * c->job_hosts : *count;
        free(member);
    }
    return CLI_OK;
}
