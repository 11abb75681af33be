/*
 * The shape of a fabric, found in its graph: levels, tuples, port groups; what it would be without
 * its damage.
 *
 * Trees after Algorithm 1 of E. Zahavi et al., "Optimized InfiniBand fat-tree routing for shift
 * all-to-all communication patterns", but without its search: digit i of a switch of level l is,
 * above l, the place of its component among the components of "levels up to i - 1" that one of
 * "levels up to i" is made of, and, up to l, the same for components of "levels from i". Both nest,
 * so digits are found by union-find, in any graph with levels.
 */
#ifndef IBSHIFT_FABRIC_SHAPE_SHAPE_H
#define IBSHIFT_FABRIC_SHAPE_SHAPE_H

#include "fabric/graph/fabric.h"

#define IBSHIFT_LEVELS_MAX 8
#define IBSHIFT_DIMS_MAX   6

enum ibshift_shape_kind {
    IBSHIFT_SHAPE_OTHER,
    IBSHIFT_SHAPE_TREE, /* PGFT: var-ary-n-tree with port groups */
    IBSHIFT_SHAPE_QFT,
    IBSHIFT_SHAPE_TORUS, /* or a mesh row of it */
};

struct ibshift_level {
    uint32_t switches, expected;     /* expected of the complete shape */
    unsigned groups_down, groups_up; /* port groups of the usual switch */
    unsigned ports_down, ports_up;   /* ports of the usual group */
};

struct ibshift_shape {
    enum ibshift_shape_kind kind;
    unsigned levels;                                    /* of switches */
    struct ibshift_level level[IBSHIFT_LEVELS_MAX + 2]; /* [1 .. levels] */
    unsigned m[IBSHIFT_LEVELS_MAX + 2], w[IBSHIFT_LEVELS_MAX + 2], p[IBSHIFT_LEVELS_MAX + 2];
    unsigned dims, dim[IBSHIFT_DIMS_MAX];
    unsigned hosts_per_leaf; /* at the fullest */
    uint32_t leaves, missing_hosts, hosts_elsewhere;
    uint8_t *node_level; /* [node]: 1 .. levels; 0: HCAs, and switches that no host reaches */
    uint16_t
        *digits; /* [switch][IBSHIFT_LEVELS_MAX + 1]: digit i at [i]; tori: coordinates from [0] */
    uint32_t *down[IBSHIFT_LEVELS_MAX + 2]; /* [level][switch]: component of "levels up to level" */
    uint32_t *up[IBSHIFT_LEVELS_MAX + 2];   /* [level][switch]: component of "levels from level" */
    uint32_t parts;                         /* with hosts, that no cable joins */
    uint32_t part_host[2];                  /* a host of each of two of them */
    struct ibshift_warnings findings;       /* places where the symmetry breaks */
};

/* 0, or -ENOMEM. Any fabric has a shape, if only IBSHIFT_SHAPE_OTHER. */
int ibshift_shape_find(const struct ibshift_fabric *f, struct ibshift_shape *shape,
                       struct ibshift_error *err);
void ibshift_shape_free(struct ibshift_shape *shape);

/* "18-ary-3-tree", "PGFT(3; 18,9,36; 1,9,18; 1,2,1)", "QFT(..)", "8x8 torus, 4 hosts per switch",
 * "irregular". */
void ibshift_shape_name(const struct ibshift_shape *shape, char *text, size_t size);
/* "2.0.11": digits from the highest. */
void ibshift_shape_tuple(const struct ibshift_shape *shape, const struct ibshift_fabric *f,
                         uint32_t node, char *text, size_t size);

/* What a fabric with levels and components has at each level, and where it differs; shape_measure.c. */
int ibshift_shape_measure(const struct ibshift_fabric *f, struct ibshift_shape *shape,
                          struct ibshift_error *err);
/* Is it a torus? Fills dims, dim and digits if so; shape_torus.c. */
bool ibshift_shape_torus(const struct ibshift_fabric *f, struct ibshift_shape *shape);
/* The longest ring of a torus; 0: it is none. Of a tree that shows at its first switch. */
unsigned ibshift_shape_ring(const struct ibshift_fabric *f);

#endif
