/* Link rates: "4xQDR" and what else the tools write; what a flow costs on a link of that rate. */
#ifndef IBSHIFT_FABRIC_GRAPH_RATE_H
#define IBSHIFT_FABRIC_GRAPH_RATE_H

#include <stddef.h>

#include "fabric/graph/fabric.h"

/* Of "<width>x<generation>"; none if the text is not one. */
struct ibshift_rate ibshift_rate_parse(const char *text);
/* Of so many lanes of Mb/s on the wire each: 4 lanes of 25781 are 4xEDR. None if that cannot be. */
struct ibshift_rate ibshift_rate_of_lanes(unsigned lanes, double signalling);
/* The same of texts that begin with the lanes and with Gb/s. */
struct ibshift_rate ibshift_rate_of_texts(const char *lanes, const char *signalling);
/* 4xQDR: of synthetic cables, and of cables whose rate is not known where one is needed. */
struct ibshift_rate ibshift_rate_usual(void);
/* "4xQDR"; "12.5 Gb/s" of a rate without a name. */
void ibshift_rate_name(struct ibshift_rate rate, char *text, size_t size);

/* The data rate of the fastest cable among these hosts (NULL: the first `count` of the fabric), 0
 * if none is known. */
uint32_t ibshift_rate_of_hosts(const struct ibshift_fabric *f, const uint32_t *hosts,
                               uint32_t count);
/* Time of one flow on a directed link; 1 = on a cable of the data rate `fastest`, or where a rate
 * is not known. All that is counted of an order or a routing is counted in this. */
double ibshift_link_cost(const struct ibshift_fabric *f, uint32_t link, uint32_t fastest);

#endif
