/* What the files of the generator share. */
#ifndef IBSHIFT_FABRIC_READ_SYNTH_SPEC_H
#define IBSHIFT_FABRIC_READ_SYNTH_SPEC_H

#include "fabric/graph/fabric.h"

#define SYNTH_LEVELS_MAX 6
#define SYNTH_DIMS_MAX   6
#define SYNTH_DROPS_MAX  64

struct synth_spec {
    bool torus, qft, minhop;
    unsigned h; /* levels of switches; m, w, p are counted from 1 */
    unsigned m[SYNTH_LEVELS_MAX + 2], w[SYNTH_LEVELS_MAX + 2], p[SYNTH_LEVELS_MAX + 2];
    unsigned dims, dim[SYNTH_DIMS_MAX], hosts_per_switch;
    unsigned lmc;
    unsigned cut, cut_percent, keep_hosts;
    uint64_t cut_seed, keep_seed;
    const char *drop[SYNTH_DROPS_MAX]; /* into text */
    unsigned drops;
    char text[512];
};

/* A node of a tree: level and digits [1 .. h]. */
struct synth_tuple {
    unsigned level;
    unsigned digit[SYNTH_LEVELS_MAX + 2];
};

/* A cable of the complete fabric, its end at the lower node first. */
struct synth_cable {
    uint32_t node[2];
    uint8_t port[2];
    bool is_cut;
};

/* A fabric under construction, out of the complete one. */
struct synth {
    struct synth_spec spec;
    struct ibshift_fabric *fabric;
    uint32_t *place; /* which node of the complete fabric each node is */
    uint32_t *now;   /* the other way round */
    struct synth_cable *cables;
    uint32_t cable_count;
    uint32_t nodes, hosts;                      /* of the complete fabric; nodes 0 .. hosts - 1 */
    uint32_t level_start[SYNTH_LEVELS_MAX + 2]; /* first node of level l, [h + 1] = end */
    struct synth_tuple *tuples;                 /* of trees: by node of the complete fabric */
    uint32_t step[SYNTH_LEVELS_MAX + 2]; /* of trees: between destinations that pass a switch */
    bool complete;
};

/* Nodes and cables of the complete fabric. */
int synth_tree_build(struct synth *s, struct ibshift_error *err);
int synth_torus_build(struct synth *s, struct ibshift_error *err);

/* Port that the closed form sends host number d out of, at a switch of the complete fabric. */
unsigned synth_tree_port(const struct synth *s, uint32_t sw, uint32_t d, uint32_t spread);
unsigned synth_torus_port(const struct synth *s, uint32_t sw, uint32_t d);
/* 1.. for the switches of trees, 1 in tori. */
unsigned synth_level(const struct synth *s, uint32_t node);
/* Of a switch. */
unsigned synth_ports(const struct synth *s, uint32_t node);

/* The tables, when the fabric has all its nodes and cables. */
int synth_route(struct synth *s, struct ibshift_error *err);

#endif
