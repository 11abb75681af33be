#ifndef IBSHIFT_COLL_PACE_H
#define IBSHIFT_COLL_PACE_H

/*
 * The pace of a communicator's all-to-alls (exec/pace/pace.h), by size: what the parameter asks for, or
 * what suits. Made when a size is met first; it lives as long as the communicator, and so does what
 * its runs learn.
 */

#include <stddef.h>
#include <stdint.h>

#include "choose/choose.h"
#include "exec/pace/pace.h"

struct mca_coll_ibshift_module_t;
struct ibshift_job;
struct ompi_communicator_t;
struct ibshift_op_params;

struct ibshift_paced {
    struct ibshift_pace pace;
    struct ibshift_pace_memory memory;
    const char *reason;
};

struct ibshift_pacing {
    struct ibshift_clock clock;
    struct ibshift_paced *by_class[IBSHIFT_SIZE_CLASSES];
};

/* Reads the parameter; a pace that is none is reported, and auto it is. */
void ibshift_pace_open(void);

/* Sets params->pace, or the window, once the algorithm is chosen. OMPI codes. */
int ibshift_pace_find(struct mca_coll_ibshift_module_t *module,
                      const struct ompi_communicator_t *comm, const struct ibshift_job *job,
                      struct ibshift_op_params *params);

/* After a run: says, once, that this rank's clock had to be given up. */
void ibshift_pace_look(const struct ompi_communicator_t *comm,
                       const struct ibshift_op_params *params);

void ibshift_pacing_free(struct ibshift_pacing *pacing);

#endif
