/*
 * Fabrics from a string, with tables: for tests, plans of purchase and the simulator.
 *
 *   kary:K,N              K-ary-N-tree
 *   pgft:h;m..;w..;p..    parallel-ports generalized fat tree; d-mod-k
 *   qft:h;m..;w..;p..     quasi fat tree; its closed form
 *   torus:AxB[xC...],H    H hosts a switch; dimension order
 *   hyperx:AxB[xC...],H   the same, all switches of a line cabled to each other
 *   dragonfly:P,A,H[,G]   P hosts and H global cables a switch, A switches a group, G groups
 *   dragonfly+:P,L,S,H[,G]  P hosts a leaf, L leaves and S spines a group, H global cables a spine
 *   slimfly:Q[,P]         2 Q^2 switches with P hosts each, Q a prime
 *                         all with minimal routes, and service levels without credit loops
 *
 * then any of, each after a slash:
 *   cut=N%[:SEED]  or cut=N[:SEED]     links between switches that are gone
 *   drop=NAME[,NAME...]                nodes that are gone
 *   hosts=N[:SEED]                     keep N hosts at random
 *   lmc=N                              2^N LIDs a host, each with routes of its own
 *   rails=R                            nodes of R adapters, each on a leaf of its own
 *   minhop                             shortest paths, least loaded port first, instead of the
 * closed form
 */
#ifndef IBSHIFT_FABRIC_READ_SYNTH_H
#define IBSHIFT_FABRIC_READ_SYNTH_H

#include "fabric/graph/fabric.h"

/* Does the text start as a synthetic fabric does? */
bool ibshift_synth_is(const char *text);
int ibshift_synth_fabric(const char *text, struct ibshift_fabric **fabric,
                         struct ibshift_error *err);

#endif
