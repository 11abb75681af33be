/* What ranks share takes as long as all that they want of it. */
#include "choose/price_node.h"

#include <errno.h>
#include <stdlib.h>

static void raise_price(struct ibshift_price *price, double time, enum ibshift_price_of of)
{
    if (time > price->last) {
        price->last = time;
        price->of = of;
    }
}

/*
 * Who never leaves one of c processors idle while a rank could run needs at most
 *     work / c + path (1 - 1 / c)
 * (Graham 1966, Brent 1974), the path being what a processor for each rank takes. A host that has
 * one for each has nothing to share out.
 */
static void share_processors(const struct ibshift_simulation *sim, double *worked, double *ranks,
                             struct ibshift_price *price)
{
    const struct ibshift_crowd *crowd = sim->request->crowd;
    double path = price->last;

    for (uint32_t rank = 0; rank < sim->request->plan->ranks; rank++) {
        worked[crowd->host_of[rank]] += sim->nodes[rank].worked;
        ranks[crowd->host_of[rank]] += 1;
    }
    for (uint32_t host = 0; host < crowd->hosts; host++) {
        double processors = crowd->processors[host];

        if (ranks[host] > processors) {
            raise_price(price, worked[host] / processors + path * (1 - 1 / processors),
                        IBSHIFT_PRICE_PROCESSORS);
        }
    }
}

/* f messages go without a gap. */
static void share_ports(const struct ibshift_simulation *sim, bool is_in, double *gaps,
                        double *bytes, struct ibshift_price *price)
{
    const struct ibshift_crowd *crowd = sim->request->crowd;
    double free_gaps = sim->model.free_messages * sim->model.gap;

    for (uint32_t rank = 0; rank < sim->request->plan->ranks; rank++) {
        const struct ibshift_port *port = is_in ? &sim->nodes[rank].in : &sim->nodes[rank].out;

        gaps[crowd->port_of[rank]] += port->gaps;
        bytes[crowd->port_of[rank]] += port->bytes;
    }
    for (uint32_t port = 0; port < crowd->ports; port++) {
        double gap = gaps[port] > free_gaps ? gaps[port] - free_gaps : 0;

        raise_price(price, gap + bytes[port], IBSHIFT_PRICE_PORT);
    }
}

int ibshift_price_share(const struct ibshift_simulation *sim, struct ibshift_price *price)
{
    const struct ibshift_crowd *crowd = sim->request->crowd;
    double *sums = calloc(2 * (size_t)crowd->hosts + 4 * (size_t)crowd->ports, sizeof(*sums));
    double *ports;

    if (sums == NULL) {
        return -ENOMEM;
    }
    share_processors(sim, sums, sums + crowd->hosts, price);
    ports = sums + 2 * (size_t)crowd->hosts;
    for (int is_in = 0; is_in < 2; is_in++, ports += 2 * (size_t)crowd->ports) {
        share_ports(sim, is_in, ports, ports + crowd->ports, price);
    }
    free(sums);
    return 0;
}
