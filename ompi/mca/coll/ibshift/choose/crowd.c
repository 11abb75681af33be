#include "choose/crowd.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct entry {
    uint64_t identity;
    uint32_t rank;
};

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->identity != y->identity) {
        return x->identity < y->identity ? -1 : 1;
    }
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Each rank takes the number of the first rank with its identity, which has been numbered before. */
static uint32_t number(struct entry *entries, uint32_t ranks, uint32_t *number_of)
{
    uint32_t count = 0;

    qsort(entries, ranks, sizeof(*entries), compare);
    for (uint32_t i = 0, first = 0; i < ranks; i++) {
        first = entries[i].identity == entries[first].identity ? first : i;
        number_of[entries[i].rank] = entries[first].rank;
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t first = number_of[rank];

        number_of[rank] = first == rank ? count++ : number_of[first];
    }
    return count;
}

/* Ranks that a place does not count are those of another job. on_host: zeros, one for each host. */
static void count_on_hosts(struct ibshift_crowd *crowd, const struct ibshift_place *places,
                           uint32_t ranks, uint32_t *on_host)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t host = crowd->host_of[rank], count = ++on_host[host];

        crowd->most = count > crowd->most ? count : crowd->most;
        crowd->is_crowded |= count > crowd->processors[host] || places[rank].is_crowded;
    }
}

int ibshift_crowd_make(const struct ibshift_place *places, uint32_t ranks,
                       struct ibshift_crowd *crowd)
{
    struct entry *entries = malloc(ranks * sizeof(*entries));
    uint32_t *host_of = calloc(3 * (size_t)ranks, sizeof(*host_of));
    uint32_t *port_of, *processors;

    if (entries == NULL || host_of == NULL) {
        free(entries);
        free(host_of);
        return -ENOMEM;
    }
    port_of = host_of + ranks;
    processors = port_of + ranks;
    *crowd =
        (struct ibshift_crowd){.host_of = host_of, .port_of = port_of, .processors = processors};
    for (uint32_t rank = 0; rank < ranks; rank++) {
        entries[rank] = (struct entry){places[rank].host, rank};
    }
    crowd->hosts = number(entries, ranks, host_of);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t *most = &processors[host_of[rank]];

        *most = places[rank].processors > *most ? places[rank].processors : *most;
        entries[rank] = (struct entry){places[rank].port, rank};
    }
    count_on_hosts(crowd, places, ranks, port_of);
    crowd->ports = number(entries, ranks, port_of);
    free(entries);
    return 0;
}

/* The three arrays are one piece of memory. */
void ibshift_crowd_free(struct ibshift_crowd *crowd)
{
    free((void *)(uintptr_t)crowd->host_of);
    *crowd = (struct ibshift_crowd){.hosts = 0};
}

uint32_t ibshift_crowd_most(const uint32_t *number_of, uint32_t ranks, uint32_t count,
                            uint32_t *which)
{
    uint32_t *sums = calloc(count, sizeof(*sums)), most = 0;

    *which = 0;
    for (uint32_t rank = 0; sums != NULL && rank < ranks; rank++) {
        if (++sums[number_of[rank]] > most) {
            most = sums[number_of[rank]];
            *which = number_of[rank];
        }
    }
    free(sums);
    return most;
}

/* fmax() is a call, and this runs for each message. */
static double later(double a, double b)
{
    return a > b ? a : b;
}

double ibshift_port_take(const struct ibshift_model *model, struct ibshift_port_load *port,
                         double now, uint64_t bytes, double *end)
{
    double drain = bytes > 1 ? (double)(bytes - 1) * model->gap_byte : 0;
    double begin = later(now, port->turn - (model->free_messages - 1) * model->gap);
    double leaves = later(begin, port->wire);

    port->turn = later(port->turn, begin) + model->gap + drain;
    port->gaps += model->gap;
    port->bytes += drain;
    port->wire = leaves + drain;
    *end = port->wire;
    return leaves;
}

/*
 * Who never leaves one of c processors idle while a rank could run needs at most
 *     work / c + path (1 - 1 / c)
 * (Graham 1966, Brent 1974), the path being what a processor for each rank takes. But a rank that a
 * message has come for does not run: it waits for its turn after those that poll in vain, n / c - 1
 * of them, at each message of the longest chain. A host that has a processor for each rank has
 * nothing to share out.
 */
static double share_processors(const struct ibshift_crowd *crowd, const struct ibshift_run *run,
                               double wake, double *sums)
{
    double *worked = sums, *on_host = sums + crowd->hosts, most = 0;

    for (uint32_t rank = 0; rank < run->ranks; rank++) {
        worked[crowd->host_of[rank]] += run->loads[rank].worked;
        on_host[crowd->host_of[rank]] += 1;
    }
    for (uint32_t host = 0; host < crowd->hosts; host++) {
        double c = crowd->processors[host];

        if (on_host[host] > c) {
            most = fmax(most, worked[host] / c + run->path * (1 - 1 / c) +
                                  run->hops * wake * (on_host[host] / c - 1));
        }
    }
    return most;
}

/* free_gaps: us of gaps that a port does not feel. */
static double share_ports(const struct ibshift_crowd *crowd, const struct ibshift_run *run,
                          bool is_in, double free_gaps, double *sums)
{
    double *gaps = sums, *bytes = sums + crowd->ports, most = 0;

    for (uint32_t rank = 0; rank < run->ranks; rank++) {
        const struct ibshift_load *load = &run->loads[rank];
        const struct ibshift_port_load *port = is_in ? &load->in : &load->out;

        gaps[crowd->port_of[rank]] += port->gaps;
        bytes[crowd->port_of[rank]] += port->bytes;
    }
    for (uint32_t port = 0; port < crowd->ports; port++) {
        most = fmax(most, fmax(gaps[port] - free_gaps, 0) + bytes[port]);
    }
    return most;
}

int ibshift_crowd_share(const struct ibshift_crowd *crowd, const struct ibshift_run *run,
                        const struct ibshift_model *model, double *time, enum ibshift_price_of *of)
{
    double *sums = calloc(2 * (size_t)crowd->hosts + 4 * (size_t)crowd->ports, sizeof(*sums));
    double free_gaps = model->free_messages * model->gap, processors, ports;
    double *in, *out;

    if (sums == NULL) {
        return -ENOMEM;
    }
    out = sums + 2 * (size_t)crowd->hosts;
    in = out + 2 * (size_t)crowd->ports;
    processors = share_processors(crowd, run, model->wake, sums);
    ports = fmax(share_ports(crowd, run, false, free_gaps, out),
                 share_ports(crowd, run, true, free_gaps, in));
    free(sums);
    *time = fmax(run->path, fmax(processors, ports));
    *of = *time == run->path   ? IBSHIFT_PRICE_PATH
          : ports > processors ? IBSHIFT_PRICE_PORT
                               : IBSHIFT_PRICE_PROCESSORS;
    return 0;
}
