/* What the files of the generator share. */
#ifndef IBSHIFT_FABRIC_READ_SYNTH_SPEC_H
#define IBSHIFT_FABRIC_READ_SYNTH_SPEC_H

#include "fabric/graph/fabric.h"

#define SYNTH_LEVELS_MAX 6
#define SYNTH_DIMS_MAX   6
#define SYNTH_DROPS_MAX  64

typedef struct synth_spec {
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
} synth_spec_t;

/* A node of a tree: level and digits [1 .. h]. */
typedef struct synth_tuple {
    unsigned level;
    unsigned digit[SYNTH_LEVELS_MAX + 2];
} synth_tuple_t;

/* A fabric under construction: place[] says which node of the complete one each node is. */
typedef struct synth {
    synth_spec_t spec;
    ibshift_fabric_t *fabric;
    uint32_t *place;
    uint32_t hosts;                             /* of the complete fabric: nodes 0 .. hosts - 1 */
    uint32_t level_start[SYNTH_LEVELS_MAX + 2]; /* first node of level l, [h + 1] = end */
    synth_tuple_t *tuples;                      /* of trees: by node of the complete fabric */
    uint32_t step[SYNTH_LEVELS_MAX + 2]; /* of trees: between destinations that pass a switch */
    bool complete;
} synth_t;

int synth_parse(const char *text, synth_spec_t *spec, ibshift_error_t *err);

/* The complete graph, without tables. */
int synth_tree_build(synth_t *s, ibshift_error_t *err);
int synth_torus_build(synth_t *s, ibshift_error_t *err);
int64_t synth_add_host(synth_t *s, uint32_t index, ibshift_error_t *err);

/* Port that the closed form sends host number d out of, at a switch of the complete fabric. */
unsigned synth_tree_port(const synth_t *s, uint32_t sw, uint32_t d, uint32_t spread);
unsigned synth_torus_port(const synth_t *s, uint32_t sw, uint32_t d);
/* 1.. for the switches of trees, 1 in tori. */
unsigned synth_level(const synth_t *s, uint32_t node);

/* Forwarding tables: the closed form where its way exists, else a shortest one. */
int synth_route(synth_t *s, ibshift_error_t *err);

#endif
