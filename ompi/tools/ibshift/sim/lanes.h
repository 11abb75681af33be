/* VLs that keep a torus in dimension order free of deadlock. */
#ifndef IBSHIFT_SIM_LANES_H
#define IBSHIFT_SIM_LANES_H

#include "fabric/shape/shape.h"

/*
 * Two VLs by Dally and Seitz (J. C. Sancho et al., "Routing in InfiniBand torus network
 * topologies", section 2): in each dimension VL 1 where the destination's coordinate is above the
 * switch's own, VL 0 elsewhere, so that the VLs of a ring do not close a circle. *table:
 * [switch * lft_stride + LID] for struct sim_fabric_options, the caller's to free. 0, -ENOMEM;
 * -EINVAL: no torus.
 */
int sim_lanes_torus(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                    uint8_t **table);

#endif
