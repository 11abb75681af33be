/* The fabric that --fabric names, and which of its hosts each modelled host is. */
#ifndef SOFTHCA_PLACE_H
#define SOFTHCA_PLACE_H

#include "fabric/graph/fabric.h"
#include "front/options.h"

struct place {
    struct ibshift_fabric *fabric; /* NULL: none was asked for */
    uint32_t *host;                /* modelled host -> host of the fabric */
    uint32_t hosts;
};

/* Reads what the options name and settles conf.hosts, conf.lmc and conf.per_host. 0, or a negative
   errno after a message. */
int place_load(struct options *o, struct place *place);

/* Directed links: the fabric's, or a cable each way for every port at one crossbar switch. */
uint32_t place_links(const struct place *place);

#endif
