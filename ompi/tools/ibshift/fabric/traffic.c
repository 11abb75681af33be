#include "fabric/traffic.h"

#include <string.h>

#include "fabric/paths/route.h"
#include "fabric/shape/shape.h"

/* [node]: switches up to the nearest host's, itself among them; 0: an adapter, or none is reached. */
static uint8_t *find_levels(struct fabric_job *job)
{
    const struct ibshift_fabric *f = job->fabric;
    uint8_t *level = pool_new(&job->pool, f->node_count, sizeof(*level));
    uint32_t *queue = pool_new(&job->pool, f->node_count, sizeof(*queue)), count = 0;

    for (uint32_t s = 0; s < f->switch_count; s++) {
        if (ibshift_node_hosts(f, f->switches[s]) > 0) {
            level[f->switches[s]] = 1;
            queue[count++] = f->switches[s];
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        for (unsigned p = 1; p <= f->nodes[queue[i]].port_count; p++) {
            uint32_t next = ibshift_port_neighbour(f, ibshift_node_port(f, queue[i], p));

            if (next != IBSHIFT_NO_NODE && ibshift_node_is_switch(f, next) && level[next] == 0) {
                level[next] = level[queue[i]] < FABRIC_TIERS ? level[queue[i]] + 1 : FABRIC_TIERS;
                queue[count++] = next;
            }
        }
    }
    return level;
}

/* Whether a third switch is cabled with both: seen[node] is the first one's number where they are neighbours. */
static bool is_triangle(const struct ibshift_fabric *f, const uint32_t *seen, uint32_t node,
                        uint32_t other)
{
    for (unsigned p = 1; p <= f->nodes[other].port_count; p++) {
        uint32_t next = ibshift_port_neighbour(f, ibshift_node_port(f, other, p));

        if (next != IBSHIFT_NO_NODE && next != node && seen[next] == node + 1) {
            return true;
        }
    }
    return false;
}

/* Cables between equals that close no triangle go a tier up, if others do. */
static void raise_bridges(struct fabric_job *job, const uint8_t *level, uint8_t *tier)
{
    const struct ibshift_fabric *f = job->fabric;
    uint32_t *seen = pool_new(&job->pool, f->node_count, sizeof(*seen));
    bool *is_bridge = pool_new(&job->pool, f->port_count, sizeof(*is_bridge));
    bool has_triangles[FABRIC_TIERS + 1] = {false};

    for (uint32_t s = 0; s < f->switch_count; s++) {
        uint32_t node = f->switches[s];

        for (int pass = 0; pass < 2; pass++) {
            for (unsigned p = 1; p <= f->nodes[node].port_count; p++) {
                uint32_t port = ibshift_node_port(f, node, p);
                uint32_t next = ibshift_port_neighbour(f, port);

                if (next == IBSHIFT_NO_NODE || level[next] != level[node]) {
                    continue;
                }
                if (pass == 0) {
                    seen[next] = node + 1;
                } else {
                    is_bridge[port] = !is_triangle(f, seen, node, next);
                    has_triangles[level[node]] |= !is_bridge[port];
                }
            }
        }
    }
    for (uint32_t port = 0; port < f->port_count; port++) {
        tier[port] += is_bridge[port] && has_triangles[tier[port]];
    }
}

uint8_t *fabric_tiers(struct fabric_job *job)
{
    const struct ibshift_fabric *f = job->fabric;
    uint8_t *tier = pool_new(&job->pool, f->port_count, sizeof(*tier));
    const uint8_t *level = find_levels(job);

    for (uint32_t port = 0; port < f->port_count; port++) {
        uint32_t near = f->ports[port].node, far = ibshift_port_neighbour(f, port);

        tier[port] = far == IBSHIFT_NO_NODE     ? 0
                     : level[near] < level[far] ? level[near]
                                                : level[far];
    }
    if (ibshift_shape_ring(f) == 0) { /* of a ring of three not all are triangles */
        raise_bridges(job, level, tier);
    }
    return tier;
}

/* What a message carries, added to all that pass as many cables, and on each of these. */
static void add_message(const struct fabric_job *job, const uint8_t *tier, uint32_t from,
                        uint32_t to, double blocks, struct fabric_traffic *traffic)
{
    const struct ibshift_placement *p = job->placement;
    uint32_t links[IBSHIFT_ROUTE_MAX];
    int walked, cables = 0;

    if (from != to) {
        cables =
            ibshift_route_walk(p->fabric, p->host[from], ibshift_host_lid(p->fabric, p->host[to]),
                               links, IBSHIFT_ROUTE_MAX, &walked);
    }
    if (cables >= 0) { /* all arrive, or the job would not have been placed */
        traffic->by_length[cables < FABRIC_WAYS ? cables : FABRIC_WAYS - 1] += blocks;
    }
    for (int i = 0; i < cables; i++) {
        unsigned of = tier[links[i]] < FABRIC_TIERS ? tier[links[i]] : FABRIC_TIERS - 1;

        traffic->by_tier[of] += blocks;
    }
}

void fabric_traffic_count(const struct fabric_job *job, const uint8_t *tier,
                          const uint32_t *members, const struct ibshift_alg *alg,
                          const struct ibshift_plan *plan, struct fabric_traffic *traffic)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    bool is_vector = ibshift_collective_has_vector(alg->collective);
    double block = is_vector ? 1.0 / ibshift_alg_pieces(alg, plan) : 1;

    *traffic = (struct fabric_traffic){.unit = is_vector ? "vectors" : "blocks"};
    for (uint32_t port = 0; port < job->fabric->port_count; port++) {
        traffic->tiers = tier[port] >= traffic->tiers ? tier[port] + 1u : traffic->tiers;
    }
    traffic->tiers = traffic->tiers < FABRIC_TIERS ? traffic->tiers : FABRIC_TIERS;
    for (uint32_t rank = 0; rank < plan->ranks; rank++) {
        for (uint32_t round = 0; round < alg->rounds(plan, rank); round++) {
            uint32_t count = alg->emit(plan, rank, round, steps);

            for (uint32_t i = 0; i < count; i++) {
                if (steps[i].kind == IBSHIFT_STEP_SEND) {
                    add_message(job, tier, members[rank], members[steps[i].peer],
                                steps[i].count * block, traffic);
                }
            }
        }
    }
}
