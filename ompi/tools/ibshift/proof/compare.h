/* Whether a file still says what a fabric is, whatever either was read from. */
#ifndef IBSHIFT_PROOF_COMPARE_H
#define IBSHIFT_PROOF_COMPARE_H

#include "fabric/graph/fabric.h"

/* 0, or -ESTALE and the first difference in err: nodes by GUID, cables, LIDs, names, rates, routes to hosts, service
 * levels, adaptive routing. What only one of them tells is a difference if is_whole. -ENOMEM. */
int fabric_compare(const struct ibshift_fabric *file, const struct ibshift_fabric *now,
                   bool is_whole, struct ibshift_error *err);

#endif
