#ifndef IBSHIFT_COLL_PARAMS_H
#define IBSHIFT_COLL_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "choose/choose.h"

/* The values of the MCA parameters coll_ibshift_<name>; the table is in coll_ibshift_params.c. */
struct ibshift_params {
    int priority;
    bool native;
    const char *device;
    int ports;
    int gid_index;
    int service_level;
    bool adaptive_data;
    int traffic_class;
    int pkey;
    size_t memory;
    bool node;
    size_t node_memory;
    int connections;
    size_t eager_limit;
    int timeout, retry;
    int deadline; /* seconds */
    int window;
    bool tapes;
    int correct;
    const char *model;
    const char *rules;
    const char *fabric;
    const char *site;
    const char *order;
    bool order_reductions;
    const char *pace;
    size_t burst;
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

/*
 * What all ranks must have alike, as text: "name=value;" of each such row that has not its default,
 * as far as there is room. Returns a digest of all such rows, and of the algorithms that there are.
 */
uint64_t ibshift_params_agreed(char *text, size_t size);

/* The first row that differs between two such texts, in words; false: none that they tell. */
bool ibshift_params_differ(const char *theirs, const char *ours, char *words, size_t size);

/* What the parameters of a collective ask for. */
struct ibshift_wish ibshift_params_wish(enum ibshift_collective collective);

/* Says what does not go together or has no effect, once a job. */
void ibshift_params_check(void);

/* The path of that file in the administrator's folder; false: it is not there. */
bool ibshift_params_site_file(const char *name, char *path, size_t size);

/*
 * The file that a parameter names may be opened: opening a pipe waits for its writer, and that in
 * MPI_Init. Where there is nothing, the reader says so. False: why is set.
 */
bool ibshift_params_may_open(const char *path, char *why, size_t size);

#endif
