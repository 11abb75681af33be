/* A fabric as Slurm's tree of switches. */
#ifndef IBSHIFT_FABRIC_SLURM_H
#define IBSHIFT_FABRIC_SLURM_H

#include <stdio.h>

#include "fabric/graph/fabric.h"

/* topology.conf, or topology.yaml. unnamed: hosts that are left out, as nobody has named them. 0,
 * or -ENOENT: no host has a name, -ENOMEM. */
int fabric_slurm_print(const struct ibshift_fabric *f, bool is_yaml, FILE *out, uint32_t *unnamed,
                       struct ibshift_error *err);

#endif
