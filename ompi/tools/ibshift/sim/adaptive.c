/* Switches that choose among the shortest ways, by what waits for their outputs: for each packet anew,
 * or once for a message. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fabric_private.h"

/* 1 GiB: 11,585 switches of at most 64 ports. */
enum { MASKS_MOST = 1 << 27 };

/* The switch behind a port of a switch, or SIM_NO_SWITCH. */
static uint32_t switch_behind(const struct ibshift_fabric *g, uint32_t port)
{
    uint32_t node = ibshift_port_neighbour(g, port);

    return node != IBSHIFT_NO_NODE && ibshift_node_is_switch(g, node) ? g->nodes[node].switch_index
                                                                      : SIM_NO_SWITCH;
}

static void keep_steps(struct sim_fabric *f, uint32_t to, const uint32_t *steps)
{
    size_t switches = f->graph->switch_count;

    for (uint32_t s = 0; f->steps != NULL && s < switches; s++) {
        f->steps[s * switches + to] = (uint16_t)steps[s];
        if (steps[s] != UINT32_MAX && steps[s] >= f->way_length) {
            f->way_length = steps[s] + 1;
        }
    }
}

/* Steps of each switch to `to`; breadth first. */
static void measure(const struct ibshift_fabric *g, uint32_t to, uint32_t *steps, uint32_t *row)
{
    uint32_t count = 1;

    memset(steps, 0xff, g->switch_count * sizeof(*steps));
    steps[to] = 0;
    row[0] = to;
    for (uint32_t at = 0; at < count; at++) {
        const struct ibshift_node *node = &g->nodes[g->switches[row[at]]];

        for (uint32_t i = 0; i < node->port_count; i++) {
            uint32_t next = switch_behind(g, node->first_port + i);

            if (next != SIM_NO_SWITCH && steps[next] == UINT32_MAX) {
                steps[next] = steps[row[at]] + 1;
                row[count++] = next;
            }
        }
    }
}

int sim_adaptive_open(struct sim_fabric *f)
{
    const struct ibshift_fabric *g = f->graph;
    size_t switches = g->switch_count;
    uint32_t *steps = malloc((switches + 1) * sizeof(*steps));
    uint32_t *row = malloc((switches + 1) * sizeof(*row));

    if (switches * switches * f->words > MASKS_MOST) {
        free(steps);
        free(row);
        return -E2BIG;
    }
    f->nearer = calloc(switches * switches * f->words + 1, sizeof(*f->nearer));
    if (f->options.keeps_ways) {
        f->steps = calloc(switches * switches + 1, sizeof(*f->steps));
    }
    for (uint32_t to = 0; f->nearer != NULL && steps != NULL && row != NULL && to < switches;
         to++) {
        measure(g, to, steps, row);
        keep_steps(f, to, steps);
        for (uint32_t s = 0; s < switches; s++) {
            const struct ibshift_node *node = &g->nodes[g->switches[s]];
            uint64_t *mask = &f->nearer[(s * switches + to) * f->words];

            for (uint32_t i = 0; i < node->port_count; i++) {
                uint32_t next = switch_behind(g, node->first_port + i);

                if (next != SIM_NO_SWITCH && steps[next] < steps[s]) {
                    mask[i / 64] |= 1ull << i % 64;
                }
            }
        }
    }
    bool has_memory = f->nearer != NULL && steps != NULL && row != NULL &&
                      (f->steps != NULL || !f->options.keeps_ways);
    free(steps);
    free(row);
    return has_memory ? 0 : -ENOMEM;
}

/* Ties go round, so that packets that come at once do not all take the same way. */
static unsigned least_waiting(const struct sim_fabric *f, const struct sim_port *in,
                              const uint64_t *mask, unsigned fixed)
{
    unsigned best = fixed;
    uint32_t least = UINT32_MAX;

    for (unsigned i = 0; i < in->ports; i++) {
        unsigned number = (unsigned)((f->stats.hops + i) % in->ports);
        const struct sim_port *out = &f->ports[in->first + number];

        if ((mask[number / 64] >> number % 64 & 1) != 0 && out->waiting + out->is_busy < least) {
            least = out->waiting + out->is_busy;
            best = number;
        }
    }
    return best;
}

/* Each step brings it nearer, so a message passes at most one switch at each distance. */
unsigned sim_adaptive_out(const struct sim_fabric *f, const struct sim_port *in,
                          const struct sim_packet *p, unsigned fixed)
{
    uint32_t host = f->graph->lid_port[p->lid];
    uint32_t to = f->ports[f->graph->ports[host].peer].sw;
    uint8_t *kept = NULL;
    unsigned out;
    size_t at;

    if (to == in->sw || to == SIM_NO_SWITCH) {
        return fixed;
    }
    at = (size_t)in->sw * f->graph->switch_count + to;
    if (f->steps != NULL) {
        kept = &f->way[(size_t)p->flow * f->way_length + f->steps[at]];
        if (*kept != SIM_NO_WAY) {
            return *kept;
        }
    }
    out = least_waiting(f, in, &f->nearer[at * f->words], fixed);
    if (kept != NULL) {
        *kept = (uint8_t)out;
    }
    return out;
}
