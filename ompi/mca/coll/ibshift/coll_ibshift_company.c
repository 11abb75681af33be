#include "coll_ibshift.h"
#include "coll_ibshift_card.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/graph/map64.h"

/* The number of an identity: they are counted as they come. */
static int number_of(struct ibshift_map64 *map, uint64_t identity, uint32_t *count,
                     uint32_t *number)
{
    int rc = 0;

    identity += 0 == identity; /* no key of the map */
    *number = ibshift_map64_get(map, identity);
    if (IBSHIFT_MAP_MISS == *number) {
        *number = *count;
        rc = ibshift_map64_add(map, identity, (*count)++);
    }
    return rc;
}

/* memory: a host, a port and, by host, the processors of each rank. */
static int fill(const mca_coll_ibshift_module_t *module, struct ibshift_company *company)
{
    uint32_t *host_of = company->memory, *port_of = host_of + module->size;
    uint32_t *processors = port_of + module->size;
    struct ibshift_crowd *crowd = &company->numbered;
    uint64_t node = 0;
    struct ibshift_map64 hosts = {.size = 0}, ports = {.size = 0};
    int rc = 0;

    *crowd =
        (struct ibshift_crowd){.host_of = host_of, .port_of = port_of, .processors = processors};
    for (uint32_t rank = 0; rank < module->size && 0 == rc; rank++) {
        struct ibshift_card_place place = ibshift_card_place(module->peers[rank]);
        uint32_t *most;

        rc = number_of(&hosts, place.host, &crowd->hosts, &host_of[rank]);
        if (0 == rc) {
            rc = number_of(&ports, place.port, &crowd->ports, &port_of[rank]);
        }
        most = &processors[host_of[rank]]; /* zero at first */
        *most = place.processors > *most ? place.processors : *most;
        company->is_software |= place.is_software;
        node = 0 == rank ? place.node : node;
        company->is_node = 0 != node && place.node == node && (0 == rank || company->is_node);
    }
    ibshift_map64_free(&hosts);
    ibshift_map64_free(&ports);
    return rc;
}

/* How many ranks the fullest has; *which of them it is. */
static uint32_t most_ranks(const uint32_t *number_of_rank, uint32_t ranks, uint32_t count,
                           uint32_t *which)
{
    uint32_t *sums = calloc(count, sizeof(*sums)), most = 0;

    *which = 0;
    for (uint32_t rank = 0; NULL != sums && rank < ranks; rank++) {
        uint32_t number = number_of_rank[rank];

        if (++sums[number] > most) {
            most = sums[number];
            *which = number;
        }
    }
    free(sums);
    return most;
}

static void explain(const mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm)
{
    const struct ibshift_company *company = &module->company;
    const struct ibshift_crowd *crowd = company->crowd;
    uint32_t host, port;
    uint32_t on_host = most_ranks(crowd->host_of, module->size, crowd->hosts, &host);
    uint32_t on_port = most_ranks(crowd->port_of, module->size, crowd->ports, &port);

    fprintf(stderr,
            "ibshift: %s, %u ranks: at most %u share a host (of %u processors) and %u a port; "
            "costs %s\n",
            comm->c_name, module->size, on_host, crowd->processors[host], on_port,
            '\0' != ibshift_params.model[0] ? "as coll_ibshift_model says"
            : company->is_node              ? "typical of shared memory"
            : company->is_software          ? "typical of a device in software"
                                            : "typical of a device in hardware");
}

int ibshift_company_find(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm)
{
    struct ibshift_company *company = &module->company;

    if (NULL != company->crowd) {
        return OMPI_SUCCESS;
    }
    company->memory = calloc(3 * (size_t)module->size, sizeof(*company->memory));
    if (NULL == company->memory || 0 != fill(module, company)) {
        ibshift_company_free(company);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    company->crowd = &company->numbered;
    if (ibshift_params.explain && 0 == module->rank) {
        explain(module, comm);
    }
    return OMPI_SUCCESS;
}

void ibshift_company_free(struct ibshift_company *company)
{
    free(company->memory);
    company->memory = NULL;
    company->crowd = NULL;
}
