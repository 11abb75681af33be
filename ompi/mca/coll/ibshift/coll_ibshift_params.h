#ifndef IBSHIFT_COLL_PARAMS_H
#define IBSHIFT_COLL_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "alg/alg.h"

/* The values of the MCA parameters coll_ibshift_<name>; the table is in coll_ibshift_params.c. */
struct ibshift_params {
    int priority;
    bool native;
    const char *device;
    int ports;
    int gid_index;
    int service_level;
    int traffic_class;
    size_t memory;
    size_t eager_limit;
    int timeout, retry;
    int deadline; /* seconds */
    int window;
    const char *model;
    const char *fabric;
    const char *order;
    bool explain;
    const char *trace;
    /* By collective; 0: chosen. algorithm: 1 + place among the collective's rows. */
    int algorithm[IBSHIFT_COLLECTIVES];
    int radix[IBSHIFT_COLLECTIVES];
    size_t segment[IBSHIFT_COLLECTIVES]; /* bytes */
};

extern struct ibshift_params ibshift_params;

/* Values of an enumeration: 0 is `nothing`, and 1 + place the collective's rows. Until the next
 * call. */
const struct mca_base_var_enum_value_t *ibshift_param_choices(enum ibshift_collective collective,
                                                              const char *nothing);

/* Registers all parameters. A value out of bounds is reported and replaced by the default. */
void ibshift_params_register(void);

#endif
