/* Switches that choose among the shortest ways, for each packet anew or less often: what they look at, how
 * late they see it, and for how long they keep to a way. */
#include "sim/fabric.h"

#include <errno.h>

#include "fabric/graph/random.h"

/* 1 GiB: 11,585 switches of at most 64 ports. */
enum { MASKS_MOST = 1 << 27, RECENT_BITS = 20 };

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

/* The outputs of a switch that are on a shortest way to `to`. */
static void mark_nearer(const struct sim_fabric *f, size_t s, uint32_t to, const uint32_t *steps)
{
    const struct ibshift_node *node = &f->graph->nodes[f->graph->switches[s]];
    uint64_t *mask = &f->nearer[(s * f->graph->switch_count + to) * (size_t)f->words];

    for (uint32_t i = 0; i < node->port_count; i++) {
        uint32_t next = switch_behind(f->graph, node->first_port + i);

        if (next != SIM_NO_SWITCH && steps[next] < steps[s]) {
            sim_bit_set(mask, i);
        }
    }
}

int sim_adaptive_open(struct sim_fabric *f)
{
    size_t switches = f->graph->switch_count;
    uint32_t *steps, *row;

    if (switches * switches * (size_t)f->words > MASKS_MOST) {
        return -E2BIG;
    }
    steps = sim_zeroed(switches, sizeof(*steps));
    row = sim_zeroed(switches, sizeof(*row));
    f->nearer = sim_zeroed(switches * switches * (size_t)f->words, sizeof(*f->nearer));
    f->steps = f->options.keeps_ways ? sim_zeroed(switches * switches, sizeof(*f->steps)) : NULL;
    for (uint32_t to = 0; to < switches; to++) {
        measure(f->graph, to, steps, row);
        keep_steps(f, to, steps);
        for (size_t s = 0; s < switches; s++) {
            mark_nearer(f, s, to, steps);
        }
    }
    free(steps);
    free(row);
    f->recent =
        f->options.gap > 0 ? sim_zeroed((size_t)1 << RECENT_BITS, sizeof(*f->recent)) : NULL;
    f->random = f->options.seed;
    return 0;
}

/* What speaks against the output now: packets that wait for it in the switch, or bytes that wait behind its cable. */
static uint32_t load_now(const struct sim_fabric *f, const struct sim_port *out)
{
    uint32_t lanes = f->options.lanes, free_bytes = 0;

    if (f->options.chooser != SIM_BY_CREDITS) {
        return f->options.chooser == SIM_BY_QUEUES ? out->waiting + out->is_busy : 0;
    }
    for (unsigned lane = 0; lane < lanes; lane++) {
        free_bytes += (uint32_t)f->credit[(size_t)(out - f->ports) * lanes + lane];
    }
    return f->options.buffer / lanes * lanes - free_bytes + out->is_busy;
}

/* The same as the switch last heard, which is at most a lag ago. */
static uint32_t load_of(const struct sim_fabric *f, struct sim_port *out)
{
    if (f->queue->now >= out->heard_until) {
        out->heard = load_now(f, out);
        out->heard_until = f->queue->now + f->options.lag;
    }
    return out->heard;
}

/* By chance: all are alike. Ties by chance too: turns over all ports, of which some lead elsewhere, would favour the one behind those. */
static unsigned least_loaded(struct sim_fabric *f, const struct sim_port *in, const uint64_t *mask,
                             unsigned fixed)
{
    unsigned best = fixed, ties = 0;
    uint32_t least = UINT32_MAX;

    for (int word = 0; word < f->words; word++) {
        for (uint64_t left = mask[word]; left != 0; left &= left - 1) {
            unsigned number = (unsigned)word * 64 + (unsigned)__builtin_ctzll(left);
            uint32_t load = load_of(f, &f->ports[in->first + number]);

            ties = load < least ? 0 : ties;
            if (load <= least && ibshift_random_below(&f->random, ++ties) == 0) {
                best = number;
            }
            least = load < least ? load : least;
        }
    }
    return best;
}

/* The entry of the packet's pair of hosts in the table of a switch; as in a real one, pairs may meet there. */
static struct sim_recent *recent_of(const struct sim_fabric *f, uint32_t sw,
                                    const struct sim_packet *p)
{
    uint64_t key = (uint64_t)f->flows[p->flow].from << 40 ^ (uint64_t)p->lid << 24 ^ sw;

    return &f->recent[ibshift_random_next(&key) >> (64 - RECENT_BITS)];
}

static unsigned recent_out(struct sim_fabric *f, const struct sim_port *in,
                           const struct sim_packet *p, const uint64_t *mask, unsigned fixed)
{
    struct sim_recent *recent = recent_of(f, in->sw, p);
    bool is_kept = f->queue->now < recent->until && sim_bit_is_set(mask, recent->out);

    recent->out = (uint8_t)(is_kept ? recent->out : least_loaded(f, in, mask, fixed));
    recent->until = f->queue->now + f->options.gap;
    return recent->out;
}

/* Each step brings it nearer, so a message passes at most one switch at each distance. */
unsigned sim_adaptive_out(struct sim_fabric *f, const struct sim_port *in,
                          const struct sim_packet *p, unsigned fixed)
{
    uint32_t host = f->graph->lid_port[p->lid];
    uint32_t to = f->ports[f->graph->ports[host].peer].sw;
    const uint64_t *mask;
    uint8_t *kept;
    size_t at;

    if (to == in->sw || to == SIM_NO_SWITCH || (f->options.is_above_leaves && !in->to_switch)) {
        return fixed;
    }
    at = (size_t)in->sw * f->graph->switch_count + to;
    mask = &f->nearer[at * (size_t)f->words];
    if (f->steps == NULL) {
        return f->recent != NULL ? recent_out(f, in, p, mask, fixed)
                                 : least_loaded(f, in, mask, fixed);
    }
    kept = &f->way[(size_t)p->flow * f->way_length + f->steps[at]];
    if (*kept == SIM_NO_WAY) {
        *kept = (uint8_t)least_loaded(f, in, mask, fixed);
    }
    return *kept;
}
