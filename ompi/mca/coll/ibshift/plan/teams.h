/*
 * The ranks of each node cut into as many teams, l, as plan->leaders says, at most one for each rank
 * of the emptiest node. A team's ranks are neighbours among the node's places; its first leads it.
 *
 * In the order of teams a rank's position is that of its team, then its node, then its place: the
 * ranks of one number of team follow each other whatever their node. With one team it is the order
 * of nodes.
 */
#ifndef IBSHIFT_PLAN_TEAMS_H
#define IBSHIFT_PLAN_TEAMS_H

#include "plan/nodes.h"

static inline uint32_t ibshift_teams_count(const struct ibshift_plan *plan)
{
    uint32_t least = plan->nodes != NULL ? plan->nodes->least : 1;

    return plan->leaders < 1 ? 1 : plan->leaders < least ? plan->leaders : least;
}

/* All nodes have as many ranks: sums are products. */
static inline bool ibshift_teams_are_even(const struct ibshift_plan *plan)
{
    return plan->nodes == NULL || plan->nodes->most == plan->nodes->least;
}

/* The first place of a team in a node of that size. */
static inline uint32_t ibshift_team_start(uint32_t size, uint32_t teams, uint32_t team)
{
    return (uint32_t)((uint64_t)team * size / teams);
}

static inline uint32_t ibshift_team_size(const struct ibshift_plan *plan, uint32_t teams,
                                         uint32_t node, uint32_t team)
{
    uint32_t size = ibshift_nodes_size(plan, node);

    return ibshift_team_start(size, teams, team + 1) - ibshift_team_start(size, teams, team);
}

/* The team of a place in a node of that size. */
static inline uint32_t ibshift_team_of(uint32_t place, uint32_t size, uint32_t teams)
{
    uint32_t team = (uint32_t)((uint64_t)place * teams / size);

    return team + 1 < teams && ibshift_team_start(size, teams, team + 1) <= place ? team + 1 : team;
}

/* Ranks of the teams before that one, in all nodes. */
static inline uint32_t ibshift_teams_before(const struct ibshift_plan *plan, uint32_t teams,
                                            uint32_t team)
{
    uint32_t nodes = ibshift_nodes_count(plan), sum = 0;

    if (ibshift_teams_are_even(plan)) {
        return nodes * ibshift_team_start(ibshift_nodes_size(plan, 0), teams, team);
    }
    for (uint32_t node = 0; node < nodes; node++) {
        sum += ibshift_team_start(ibshift_nodes_size(plan, node), teams, team);
    }
    return sum;
}

/* Ranks of the team of that number in the nodes before that one. */
static inline uint32_t ibshift_team_before(const struct ibshift_plan *plan, uint32_t teams,
                                           uint32_t node, uint32_t team)
{
    uint32_t sum = 0;

    if (ibshift_teams_are_even(plan)) {
        return node * ibshift_team_size(plan, teams, 0, team);
    }
    if (teams == 1) {
        return plan->nodes->first[node];
    }
    for (uint32_t before = 0; before < node; before++) {
        sum += ibshift_team_size(plan, teams, before, team);
    }
    return sum;
}

/* The rank at a position, and the position of a rank. */
static inline uint32_t ibshift_teams_rank(const struct ibshift_plan *plan, uint32_t teams,
                                          uint32_t position)
{
    uint32_t team = 0, node = 0, size;

    if (plan->nodes == NULL || teams == 1) {
        return plan->nodes != NULL ? plan->nodes->rank_at[position] : position;
    }
    if (ibshift_teams_are_even(plan)) {
        size = ibshift_nodes_size(plan, 0);
        team = ibshift_team_of(position / plan->nodes->nodes, size, teams);
        position -= ibshift_teams_before(plan, teams, team);
        node = position / ibshift_team_size(plan, teams, 0, team);
        return ibshift_nodes_rank(plan, node,
                                  ibshift_team_start(size, teams, team) +
                                      position % ibshift_team_size(plan, teams, 0, team));
    }
    while (team + 1 < teams && ibshift_teams_before(plan, teams, team + 1) <= position) {
        team++;
    }
    position -= ibshift_teams_before(plan, teams, team);
    for (; (size = ibshift_team_size(plan, teams, node, team)) <= position; node++) {
        position -= size;
    }
    size = ibshift_nodes_size(plan, node);
    return ibshift_nodes_rank(plan, node, ibshift_team_start(size, teams, team) + position);
}

static inline uint32_t ibshift_teams_position(const struct ibshift_plan *plan, uint32_t teams,
                                              uint32_t rank)
{
    uint32_t node = ibshift_nodes_of(plan, rank), place = ibshift_nodes_place(plan, rank);
    uint32_t size = ibshift_nodes_size(plan, node), team = ibshift_team_of(place, size, teams);

    return ibshift_teams_before(plan, teams, team) + ibshift_team_before(plan, teams, node, team) +
           place - ibshift_team_start(size, teams, team);
}

#endif
