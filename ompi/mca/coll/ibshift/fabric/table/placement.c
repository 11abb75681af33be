#include "fabric/table/placement.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/shape/order.h"

static int set_ranks(struct ibshift_placement *p, const uint32_t *host_of,
                     struct ibshift_error *err)
{
    const struct ibshift_fabric *f = p->fabric;

    memset(p->member_at, 0xff, f->host_count * sizeof(*p->member_at));
    for (uint32_t r = 0; r < p->ranks; r++) {
        uint32_t h = host_of[r];

        if (h >= f->host_count) {
            return ibshift_fail(err, -EINVAL, "rank %u: host %u of %u", r, h, f->host_count);
        }
        if (p->member_at[h] == IBSHIFT_NO_HOST) {
            p->host[p->hosts] = h;
            p->member_at[h] = p->hosts++;
        }
        p->member_of[r] = p->member_at[h];
        p->start[p->member_of[r] + 1]++;
    }
    return 0;
}

/* start[m + 1] holds how many ranks m has. */
static void list_ranks(struct ibshift_placement *p)
{
    uint32_t members = p->hosts;

    for (uint32_t m = 0; m < members; m++) {
        p->slots = p->start[m + 1] > p->slots ? p->start[m + 1] : p->slots;
        p->start[m + 1] += p->start[m];
    }
    for (uint32_t r = p->ranks; r-- > 0;) {
        p->rank_on[--p->start[p->member_of[r] + 1]] = r;
    }
    for (uint32_t m = 0; m < members; m++) {
        p->start[m] = p->start[m + 1];
    }
    p->start[members] = p->ranks;
}

int ibshift_placement_open(const struct ibshift_fabric *f, const uint32_t *host_of, uint32_t ranks,
                           struct ibshift_placement **placement, struct ibshift_error *err)
{
    struct ibshift_placement *p = calloc(1, sizeof(*p));
    int status = -ENOMEM;

    if (p != NULL) {
        p->fabric = f;
        p->host = malloc(((size_t)ranks + 1) * sizeof(*p->host));
        p->ranks = ranks;
        p->member_of = malloc(((size_t)ranks + 1) * sizeof(*p->member_of));
        p->member_at = malloc(((size_t)f->host_count + 1) * sizeof(*p->member_at));
        p->start = calloc((size_t)ranks + 2, sizeof(*p->start));
        p->rank_on = malloc(((size_t)ranks + 1) * sizeof(*p->rank_on));
        if (p->host && p->member_of && p->member_at && p->start && p->rank_on) {
            status = set_ranks(p, host_of, err);
        }
        if (status == 0) {
            list_ranks(p);
        }
    }
    if (status != 0) {
        ibshift_placement_close(p);
        return status == -ENOMEM ? ibshift_fail(err, status, "no memory to place %u ranks", ranks)
                                 : status;
    }
    *placement = p;
    return 0;
}

int ibshift_placement_routes(struct ibshift_placement *p, bool all_lids, struct ibshift_error *err)
{
    return (all_lids ? ibshift_paths_build : ibshift_paths_build_base)(p->fabric, p->host, p->hosts,
                                                                       &p->paths, err);
}

void ibshift_placement_close(struct ibshift_placement *p)
{
    if (p != NULL) {
        free(p->host);
        ibshift_paths_free(p->paths);
        free(p->member_of);
        free(p->member_at);
        free(p->start);
        free(p->rank_on);
        free(p);
    }
}

static int open_order(struct ibshift_order *shift, uint32_t places, uint32_t slots, uint32_t ranks,
                      struct ibshift_error *err)
{
    return ibshift_order_open(shift, places, slots, ranks) == 0
               ? 0
               : ibshift_fail(err, -ENOMEM, "no memory for %u places", places);
}

static uint32_t member_of_host(const struct ibshift_placement *p, uint32_t host)
{
    return host == IBSHIFT_NO_HOST ? IBSHIFT_NO_HOST : p->member_at[host];
}

static void place_member(const struct ibshift_placement *p, uint32_t member, uint32_t place,
                         struct ibshift_order *shift)
{
    for (uint32_t i = p->start[member]; i < p->start[member + 1]; i++) {
        uint32_t slot = place * p->slots + i - p->start[member];

        shift->rank_at[slot] = p->rank_on[i];
        shift->slot_of[p->rank_on[i]] = slot;
    }
}

int ibshift_placement_along(const struct ibshift_placement *p, const uint32_t *hosts,
                            uint32_t count, bool keepers, struct ibshift_order *shift,
                            struct ibshift_error *err)
{
    uint32_t places = keepers ? count : p->hosts, place = 0, placed = 0;
    int status = open_order(shift, places, p->slots, p->ranks, err);

    for (uint32_t i = 0; status == 0 && i < count; i++) {
        uint32_t member = member_of_host(p, hosts[i]);

        if (member != IBSHIFT_NO_HOST && place < places) {
            place_member(p, member, place, shift);
            placed += p->start[member + 1] - p->start[member];
        }
        place += keepers || member != IBSHIFT_NO_HOST;
    }
    for (uint32_t r = 0; status == 0 && placed < p->ranks && r < p->ranks; r++) {
        if (shift->slot_of[r] == IBSHIFT_NO_RANK) {
            uint32_t host = p->host[p->member_of[r]];

            ibshift_order_free(shift);
            return ibshift_fail(err, -ENOENT, "the order lacks host '%s'",
                                ibshift_host_name(p->fabric, host));
        }
    }
    return status;
}

int ibshift_placement_by_rank(const struct ibshift_placement *p, struct ibshift_order *shift,
                              struct ibshift_error *err)
{
    int status = open_order(shift, p->ranks, 1, p->ranks, err);

    for (uint32_t r = 0; status == 0 && r < p->ranks; r++) {
        shift->rank_at[r] = shift->slot_of[r] = r;
    }
    return status;
}

int ibshift_placement_order(const struct ibshift_fabric *f, uint32_t **order, uint32_t *count,
                            struct ibshift_error *err)
{
    struct ibshift_shape shape;
    int status;

    if (f->order != NULL) {
        *order = malloc(((size_t)f->order_count + 1) * sizeof(**order));
        if (*order == NULL) {
            return ibshift_fail(err, -ENOMEM, "no memory for an order of %u", f->order_count);
        }
        memcpy(*order, f->order, f->order_count * sizeof(**order));
        *count = f->order_count;
        return 0;
    }
    status = ibshift_shape_find(f, &shape, err);
    if (status == 0) {
        status = ibshift_order_keepers(f, &shape, order, count, err);
        ibshift_shape_free(&shape);
    }
    return status;
}
