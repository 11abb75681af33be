#include "plan/neighbors.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t place_of(const struct ibshift_order *order, uint32_t rank)
{
    return order != NULL ? order->slot_of[rank] : rank;
}

static uint32_t distance(const struct ibshift_order *order, uint32_t ranks, uint32_t from,
                         uint32_t to)
{
    uint32_t places = order != NULL ? order->places * order->slots : ranks;
    uint32_t start = place_of(order, from), end = place_of(order, to);

    return end >= start ? end - start : end + places - start;
}

static int compare(const void *a, const void *b)
{
    const struct ibshift_edge *x = a, *y = b;

    if (x->distance != y->distance) {
        return x->distance < y->distance ? -1 : 1;
    }
    return x->tag < y->tag ? -1 : x->tag > y->tag;
}

/* Sorts edges, whose tags are places of the senders' lists or of lists as long, and numbers those
 * of a pair. */
static void number(struct ibshift_edge *edges, uint32_t count)
{
    qsort(edges, count, sizeof(*edges), compare);
    for (uint32_t i = 0; i < count; i++) {
        bool is_next = i > 0 && edges[i].rank == edges[i - 1].rank;

        edges[i].tag = is_next ? edges[i - 1].tag + 1 : 0;
    }
}

static uint32_t selves(const struct ibshift_edge *edges, uint32_t count)
{
    uint32_t n = 0;

    while (n < count && edges[n].distance == 0) {
        n++;
    }
    return n;
}

/* What comes in on a grid from one side was sent to the other. */
static uint32_t add(const uint32_t *ranks, uint32_t count, bool turns, struct ibshift_edge *edges)
{
    uint32_t added = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (ranks[i] != IBSHIFT_NO_RANK) {
            edges[added++] =
                (struct ibshift_edge){.rank = ranks[i], .block = i, .tag = turns ? i ^ 1 : i};
        }
    }
    return added;
}

/* 0, or -ENOMEM. */
static int note_gaps(const uint32_t *ranks, uint32_t count, uint32_t edges, bool **there)
{
    if (edges == count) {
        return 0;
    }
    *there = malloc(count * sizeof(**there));
    for (uint32_t i = 0; *there != NULL && i < count; i++) {
        (*there)[i] = ranks[i] != IBSHIFT_NO_RANK;
    }
    return *there == NULL ? -ENOMEM : 0;
}

/* Distances, order and tags; 0, or -EINVAL. */
static int arrange(struct ibshift_neighborhood *own, uint32_t rank, uint32_t ranks,
                   const struct ibshift_order *order)
{
    struct ibshift_edge *edges = own->edges;

    for (uint32_t i = 0; i < own->ins + own->outs; i++) {
        uint32_t other = edges[i].rank;

        if (other >= ranks) {
            return -EINVAL;
        }
        edges[i].distance = i < own->ins ? distance(order, ranks, other, rank)
                                         : distance(order, ranks, rank, other);
    }
    number(edges, own->ins);
    number(edges + own->ins, own->outs);
    own->selves = selves(edges, own->ins);
    return own->selves == selves(edges + own->ins, own->outs) ? 0 : -EINVAL;
}

int ibshift_neighborhood_make(const struct ibshift_neighbor_lists *lists, uint32_t rank,
                              uint32_t ranks, const struct ibshift_order *order,
                              struct ibshift_neighborhood *out)
{
    size_t most = (size_t)lists->source_count + lists->destination_count;
    struct ibshift_edge *edges = calloc(most + 1, sizeof(*edges));
    int rc;

    *out = (struct ibshift_neighborhood){
        .sources = lists->source_count, .destinations = lists->destination_count, .edges = edges};
    if (edges == NULL) {
        return -ENOMEM;
    }
    out->ins = add(lists->sources, lists->source_count, lists->is_grid, edges);
    out->outs = add(lists->destinations, lists->destination_count, false, edges + out->ins);
    rc = note_gaps(lists->sources, lists->source_count, out->ins, &out->has_source);
    rc = rc == 0 ? note_gaps(lists->destinations, lists->destination_count, out->outs,
                             &out->has_destination)
                 : rc;
    rc = rc == 0 ? arrange(out, rank, ranks, order) : rc;
    if (rc != 0) {
        ibshift_neighborhood_free(out);
    }
    return rc;
}

void ibshift_neighborhood_free(struct ibshift_neighborhood *neighborhood)
{
    free(neighborhood->edges);
    free(neighborhood->has_source);
    free(neighborhood->has_destination);
    *neighborhood = (struct ibshift_neighborhood){.edges = NULL};
}

/* Of a rank with that coordinate; neighbours along it are `stride` ranks apart. */
static uint32_t on_grid(uint32_t rank, int at, int size, uint32_t stride, bool is_periodic,
                        bool is_upper)
{
    bool is_border = at == (is_upper ? size - 1 : 0);
    uint32_t around = (uint32_t)(size - 1) * stride;

    if (is_border) {
        return !is_periodic ? IBSHIFT_NO_RANK : is_upper ? rank - around : rank + around;
    }
    return is_upper ? rank + stride : rank - stride;
}

void ibshift_neighbors_on_grid(const int *dims, const int *periods, const int *coords, int count,
                               uint32_t rank, uint32_t *neighbors)
{
    uint32_t stride = 1;

    for (int d = count - 1; d >= 0; d--) {
        for (int upper = 0; upper < 2; upper++) {
            neighbors[2 * d + upper] =
                on_grid(rank, coords[d], dims[d], stride, periods[d], upper != 0);
        }
        stride *= (uint32_t)dims[d];
    }
}

bool ibshift_neighbors_are_mutual(const int *index, const int *edges, uint32_t rank,
                                  const struct ibshift_neighborhood *own)
{
    const struct ibshift_edge *in = own->edges, *end = in + own->ins;

    for (; in < end; in++) {
        bool is_last = in + 1 == end || in[1].rank != in->rank;
        uint32_t times = 0;

        for (int i = in->rank == 0 ? 0 : index[in->rank - 1]; is_last && i < index[in->rank]; i++) {
            times += (uint32_t)edges[i] == rank;
        }
        if (is_last && times != in->tag + 1) {
            return false;
        }
    }
    return true;
}
