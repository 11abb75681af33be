/* What the files of the generator share. */
#ifndef IBSHIFT_FABRIC_READ_SYNTH_SPEC_H
#define IBSHIFT_FABRIC_READ_SYNTH_SPEC_H

#include "fabric/graph/fabric.h"

#define SYNTH_LEVELS_MAX 6
#define SYNTH_DIMS_MAX   6
#define SYNTH_DROPS_MAX  64

struct synth;
struct synth_spec;

/* One word that a synthetic fabric begins with. Nodes are those of the complete fabric. */
struct synth_shape {
    const char *word; /* "torus:" */
    int (*parse)(const char *at, struct synth_spec *spec, struct ibshift_error *err);
    int (*build)(struct synth *s, struct ibshift_error *err); /* nodes and cables */
    unsigned (*ports)(const struct synth *s, uint32_t sw);
    /* That the closed form sends host number d out of. spread: the destination's number for the choice
     * among equal ways, d or, for further LIDs, others. */
    unsigned (*port)(const struct synth *s, uint32_t sw, uint32_t d, uint32_t spread);
    /* Of packets from the hosts of one switch to those of another; NULL: one level is enough. */
    unsigned (*level)(const struct synth *s, uint32_t from, uint32_t to);
    bool is_tree;
};

enum { SYNTH_SLIMFLY_MOST = 60, SYNTH_RAILS_MOST = 16 }; /* the first: above its q */

struct synth_spec {
    const struct synth_shape *shape;
    bool qft, minhop;
    unsigned h; /* levels of switches; m, w, p are counted from 1 */
    unsigned m[SYNTH_LEVELS_MAX + 2], w[SYNTH_LEVELS_MAX + 2], p[SYNTH_LEVELS_MAX + 2];
    unsigned dims, dim[SYNTH_DIMS_MAX], hosts_per_switch;
    unsigned leaves, spines, globals, groups; /* spines 0: a dragonfly */
    unsigned q;                               /* of a Slim Fly */
    unsigned lmc;
    unsigned rails; /* adapters of a node, on as many leaves; 0: one, and nobody asked */
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
    uint8_t *next, *level; /* of a Slim Fly: [switch * switches + another]: port, service level */
    bool complete;
};

/* A cable of the complete fabric. 0 or -ENOMEM. */
int synth_join(struct synth *s, uint32_t a, unsigned port_a, uint32_t b, unsigned port_b);

/* What synth_shape has, of each. */
int synth_tree_build(struct synth *s, struct ibshift_error *err);
unsigned synth_tree_ports(const struct synth *s, uint32_t sw);
unsigned synth_tree_port(const struct synth *s, uint32_t sw, uint32_t d, uint32_t spread);
int synth_torus_build(struct synth *s, struct ibshift_error *err);
unsigned synth_torus_ports(const struct synth *s, uint32_t sw);
unsigned synth_torus_port(const struct synth *s, uint32_t sw, uint32_t d, uint32_t spread);
int synth_group_build(struct synth *s, struct ibshift_error *err);
unsigned synth_group_ports(const struct synth *s, uint32_t sw);
unsigned synth_group_port(const struct synth *s, uint32_t sw, uint32_t d, uint32_t spread);
unsigned synth_group_level(const struct synth *s, uint32_t from, uint32_t to);
int synth_hyperx_build(struct synth *s, struct ibshift_error *err);
unsigned synth_hyperx_ports(const struct synth *s, uint32_t sw);
unsigned synth_hyperx_port(const struct synth *s, uint32_t sw, uint32_t d, uint32_t spread);
int synth_slimfly_build(struct synth *s, struct ibshift_error *err);
unsigned synth_slimfly_ports(const struct synth *s, uint32_t sw);
unsigned synth_slimfly_port(const struct synth *s, uint32_t sw, uint32_t d, uint32_t spread);
unsigned synth_slimfly_level(const struct synth *s, uint32_t from, uint32_t to);

/* 1.. for the switches of trees, 1 elsewhere. */
unsigned synth_level(const struct synth *s, uint32_t node);
/* The tables, when the fabric has all its nodes and cables. */
int synth_route(struct synth *s, struct ibshift_error *err);
/* The service levels, when it has tables and is whole. */
int synth_levels(struct synth *s, struct ibshift_error *err);

#endif
