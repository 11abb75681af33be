#include "plan/teams.h"

uint32_t ibshift_teams_rank(const struct ibshift_plan *plan, uint32_t teams, uint32_t position)
{
    uint32_t team = 0, node = 0, size;

    if (plan->nodes == NULL || teams == 1) {
        return plan->nodes != NULL ? plan->nodes->rank_at[position] : position;
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

uint32_t ibshift_teams_position(const struct ibshift_plan *plan, uint32_t teams, uint32_t rank)
{
    uint32_t node = ibshift_nodes_of(plan, rank), place = ibshift_nodes_place(plan, rank);
    uint32_t size = ibshift_nodes_size(plan, node), team = ibshift_team_of(place, size, teams);

    return ibshift_teams_before(plan, teams, team) + ibshift_team_before(plan, teams, node, team) +
           place - ibshift_team_start(size, teams, team);
}
