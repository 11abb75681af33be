#include "graphs.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "world.h"

enum { GRID_MOST = 3 };

struct list {
    uint32_t count, *rank;
};

static void add(struct list *list, uint32_t rank)
{
    list->rank[list->count++] = rank;
}

static void make(struct ibshift_neighbors *graph, uint32_t rank, const struct list *in,
                 const struct list *out, bool is_grid)
{
    const struct ibshift_neighbor_lists lists = {in->rank, out->rank, in->count, out->count,
                                                 is_grid};

    assert_int_equal(ibshift_neighborhood_make(&lists, rank, graph->rows, NULL, &graph->row[rank]),
                     0);
}

static void draw_edges(struct ibshift_neighbors *graph, struct list *ins, struct list *outs,
                       uint64_t *random)
{
    uint32_t ranks = graph->rows, most = ranks + 1;

    for (uint32_t edges = world_random_below(random, 4 * ranks + 1); edges > 0; edges--) {
        uint32_t from = world_random_below(random, ranks), to = world_random_below(random, ranks);

        to = world_random_below(random, 5) == 0 ? from : to;
        if (ins[to].count < most && outs[from].count < most) {
            add(&ins[to], from);
            add(&outs[from], to);
        }
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        for (uint32_t i = ins[rank].count; i > 1; i--) {
            uint32_t j = world_random_below(random, i), other = ins[rank].rank[j];

            ins[rank].rank[j] = ins[rank].rank[i - 1];
            ins[rank].rank[i - 1] = other;
        }
        make(graph, rank, &ins[rank], &outs[rank], false);
    }
}

/* Of as many dimensions as the lists have room for. */
static void draw_grid(struct ibshift_neighbors *graph, struct list *neighbors, uint64_t *random)
{
    uint32_t ranks = graph->rows, sizes[GRID_MOST], left = ranks, dims;
    bool periodic[GRID_MOST];

    dims =
        1 + world_random_below(random, (ranks + 1) / 2 < GRID_MOST ? (ranks + 1) / 2 : GRID_MOST);
    for (uint32_t d = 0; d < dims; d++) {
        uint32_t size = d + 1 < dims ? 1 + world_random_below(random, left) : left;

        sizes[d] = left % size == 0 ? size : 1;
        sizes[d] = d + 1 < dims ? sizes[d] : left;
        left /= sizes[d];
        periodic[d] = world_random_below(random, 2);
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t stride = ranks;

        for (uint32_t d = 0; d < dims; d++) {
            uint32_t at, around;

            stride /= sizes[d];
            at = rank / stride % sizes[d];
            around = (sizes[d] - 1) * stride;
            add(&neighbors[rank], at > 0        ? rank - stride
                                  : periodic[d] ? rank + around
                                                : IBSHIFT_NO_RANK);
            add(&neighbors[rank], at < sizes[d] - 1 ? rank + stride
                                  : periodic[d]     ? rank - around
                                                    : IBSHIFT_NO_RANK);
        }
        make(graph, rank, &neighbors[rank], &neighbors[rank], true);
    }
}

struct ibshift_neighbors graph_draw(uint32_t ranks, uint64_t *random)
{
    struct ibshift_neighbors graph = {.rows = ranks, .row = calloc(ranks, sizeof(*graph.row))};
    struct list *lists = calloc(2 * (size_t)ranks, sizeof(*lists));
    uint32_t *words = calloc(2 * (size_t)ranks * (ranks + 2), sizeof(*words));

    assert_true(graph.row != NULL && lists != NULL && words != NULL);
    for (uint32_t i = 0; i < 2 * ranks; i++) {
        lists[i].rank = words + (size_t)i * (ranks + 2);
    }
    if (world_random_below(random, 3) == 0) {
        draw_grid(&graph, lists, random);
    } else {
        draw_edges(&graph, lists, lists + ranks, random);
    }
    free(words);
    free(lists);
    return graph;
}

void graph_free(struct ibshift_neighbors *graph)
{
    for (uint32_t i = 0; i < graph->rows; i++) {
        ibshift_neighborhood_free(&graph->row[i]);
    }
    free(graph->row);
    memset(graph, 0, sizeof(*graph));
}

bool graph_source(const struct ibshift_plan *plan, uint32_t rank, uint32_t place, uint32_t *from,
                  uint32_t *block)
{
    const struct ibshift_neighborhood *own, *sender;
    const struct ibshift_edge *in, *out;

    if (plan->neighbors == NULL) { /* a ring */
        *from = (rank + (place == 0 ? plan->ranks - 1 : 1)) % plan->ranks;
        *block = 1 - place;
        return true;
    }
    own = ibshift_neighborhood_of(plan->neighbors, rank);
    in = own->edges;
    while (in < own->edges + own->ins && in->block != place) {
        in++;
    }
    if (in == own->edges + own->ins) {
        return false;
    }
    sender = ibshift_neighborhood_of(plan->neighbors, in->rank);
    out = sender->edges + sender->ins;
    while (out->rank != rank || out->tag != in->tag) {
        out++;
    }
    *from = in->rank;
    *block = out->block;
    return true;
}
