/* Stages from an order, from a table; the bound that needs no stages. */
#include <errno.h>
#include <stdlib.h>

#include "fabric/paths/contend.h"

static uint32_t shift_flows(const struct ibshift_stage_source *source, uint32_t stage,
                            struct ibshift_flow *flows)
{
    const struct ibshift_order *o = source->order;
    uint32_t distance = stage / o->slots, turn = stage % o->slots, count = 0;

    for (uint32_t place = 0; place < o->places; place++) {
        uint32_t to_place = (place + distance) % o->places;

        for (uint32_t slot = 0; slot < o->slots; slot++) {
            uint32_t from = o->rank_at[place * o->slots + slot];
            uint32_t to = o->rank_at[to_place * o->slots + (slot + turn) % o->slots];

            if (from != IBSHIFT_NO_RANK && to != IBSHIFT_NO_RANK) {
                flows[count++] =
                    (struct ibshift_flow){source->member_of[from], source->member_of[to], 0};
            }
        }
    }
    return count;
}

static uint32_t table_flows(const struct ibshift_stage_source *source, uint32_t stage,
                            struct ibshift_flow *flows)
{
    const struct ibshift_stages *t = source->table;
    uint32_t count = 0;

    for (uint32_t rank = 0; rank < t->rows; rank++) {
        size_t at = (size_t)rank * t->stages + stage;

        if (t->to[at] != IBSHIFT_NO_RANK) {
            flows[count++] = (struct ibshift_flow){source->member_of[t->first + rank],
                                                   source->member_of[t->to[at]],
                                                   source->lanes != NULL ? source->lanes[at] : 0};
        }
    }
    return count;
}

struct ibshift_stage_source ibshift_source_shift(const struct ibshift_order *order, uint32_t ranks,
                                                 const uint32_t *member_of)
{
    return (struct ibshift_stage_source){.stages = order->places * order->slots,
                                         .most = ranks,
                                         .flows = shift_flows,
                                         .order = order,
                                         .member_of = member_of,
                                         .ranks = ranks};
}

struct ibshift_stage_source ibshift_source_table(const struct ibshift_stages *table, uint32_t ranks,
                                                 const uint8_t *lanes, const uint32_t *member_of)
{
    return (struct ibshift_stage_source){.stages = table->stages,
                                         .most = ranks,
                                         .flows = table_flows,
                                         .table = table,
                                         .lanes = lanes,
                                         .member_of = member_of,
                                         .ranks = ranks};
}

/* Whatever LID of the destination is taken, the route goes over this link. */
static bool on_all_lanes(const struct ibshift_paths *p, uint32_t from, uint32_t to, uint32_t link)
{
    for (uint32_t lane = 1; lane < ibshift_paths_lanes(p, to); lane++) {
        const uint32_t *links = ibshift_paths_links(p, from, to, lane);
        uint32_t i = 0;

        while (i < p->width && links[i] != link && links[i] != IBSHIFT_NO_LINK) {
            i++;
        }
        if (i == p->width || links[i] != link) {
            return false;
        }
    }
    return true;
}

/* Flows between two members are the product of their ranks: counted per (leaf, destination). */
static void add_loads(const struct ibshift_paths *p, const uint32_t *on_member,
                      const uint32_t *on_leaf, const uint32_t *a_member, double *loads)
{
    for (uint32_t leaf = 0; leaf < p->leaves; leaf++) {
        for (uint32_t to = 0; to < p->hosts && on_leaf[leaf] > 0; to++) {
            const uint32_t *links = ibshift_paths_links(p, a_member[leaf], to, 0);
            uint32_t senders = on_leaf[leaf] - (p->leaf[to] == leaf ? on_member[to] : 0);

            for (uint32_t i = 0; i < p->width && links[i] != IBSHIFT_NO_LINK; i++) {
                loads[links[i]] += on_all_lanes(p, a_member[leaf], to, links[i])
                                       ? (double)senders * on_member[to]
                                       : 0;
            }
        }
    }
}

int ibshift_alltoall_loads(const struct ibshift_paths *p, uint32_t ranks, const uint32_t *member_of,
                           double **loads)
{
    uint32_t *on_member = calloc(p->hosts + 1, sizeof(*on_member));
    uint32_t *on_leaf = calloc(p->leaves + 1, sizeof(*on_leaf));
    uint32_t *a_member = calloc(p->leaves + 1, sizeof(*a_member));
    int status = -ENOMEM;

    *loads = calloc(p->links + 2 * (size_t)p->hosts + 1, sizeof(**loads));
    if (*loads && on_member && on_leaf && a_member) {
        for (uint32_t r = 0; r < ranks; r++) {
            on_member[member_of[r]]++;
            on_leaf[p->leaf[member_of[r]]]++;
            a_member[p->leaf[member_of[r]]] = member_of[r];
        }
        add_loads(p, on_member, on_leaf, a_member, *loads);
        for (uint32_t m = 0; m < p->hosts; m++) {
            (*loads)[p->links + m] = (*loads)[p->links + p->hosts + m] =
                (double)on_member[m] * (ranks - on_member[m]);
        }
        status = 0;
    }
    free(on_member);
    free(on_leaf);
    free(a_member);
    if (status != 0) {
        free(*loads);
    }
    return status;
}

int ibshift_alltoall_bound(const struct ibshift_paths *p, uint32_t ranks, const uint32_t *member_of,
                           double *bound, uint32_t *link)
{
    double *loads;
    int status = ibshift_alltoall_loads(p, ranks, member_of, &loads);

    *bound = 0;
    *link = 0;
    if (status != 0) {
        return status;
    }
    for (uint32_t i = 0; i < p->links + p->hosts; i++) {
        double time = loads[i] * ibshift_contention_cost(p, i);

        if (time > *bound) {
            *bound = time;
            *link = i;
        }
    }
    free(loads);
    return 0;
}
