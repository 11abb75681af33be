/*
 * Place keepers, which order.h tells of. Level by level, the fullest part is the template of the others: a host takes the
 * place whose host turns at the same switch; places that nobody takes are kept.
 */
#include "fabric/shape/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TEMPLATE_MAX 65536 /* places: a subnet has fewer LIDs */

struct keeper {
    const struct ibshift_fabric *f;
    const struct ibshift_shape *t;
    uint32_t *places; /* the result of the levels done so far */
    uint32_t *next;   /* that of the level at hand */
    uint32_t count, written, room;
    uint32_t part_size,
        made_size; /* places of a part of the last level done; of the level at hand */
};

static uint32_t turn_of(const struct keeper *k, uint32_t from, uint32_t to)
{
    uint32_t out;

    return ibshift_order_turn(k->f, k->t, from, to, &out);
}

/* The places of one component; size counts hosts. */
struct part {
    uint32_t start, end, size;
};

static uint32_t any_host(const struct keeper *k, const struct part *part)
{
    for (uint32_t i = part->start; i < part->end; i++) {
        if (k->places[i] != IBSHIFT_NO_HOST) {
            return k->places[i];
        }
    }
    return IBSHIFT_NO_HOST;
}

/* The places of the parts of one component; all have the shape of the fullest, which is their
 * template. */
struct template
{
    uint32_t turns[TEMPLATE_MAX]; /* by place of a part: IBSHIFT_NO_SWITCH until a host says it */
    uint32_t size, block;         /* places of a part; of a part of that part */
    uint32_t from;                /* a host of the fullest part */
    uint32_t block_of[TEMPLATE_MAX], offset_of[TEMPLATE_MAX]; /* where the part at hand went */
};

static int emit(struct keeper *k, uint32_t host)
{
    if (k->written == k->room) {
        return -E2BIG;
    }
    k->next[k->written++] = host;
    return 0;
}

/* First free place whose turn is as wanted; template->size if there is none. */
static uint32_t free_place(const struct keeper *k, const struct template *template, uint32_t at,
                           uint32_t turn)
{
    for (uint32_t i = 0; i < template->size; i++) {
        if (template->turns[i] == turn && k->next[at + i] == IBSHIFT_NO_HOST) {
            return i;
        }
    }
    return template->size;
}

static void take(struct keeper *k, struct template *template, uint32_t at, uint32_t place,
                 uint32_t i, uint32_t turn)
{
    k->next[at + place] = k->places[i];
    k->places[i] = IBSHIFT_NO_HOST;
    if (template->turns[place] == IBSHIFT_NO_SWITCH) {
        template->turns[place] = turn;
    }
}

/* Hosts whose turn is known take its place; they teach where their neighbours' blocks and offsets
 * went. */
static void fill_by_turn(struct keeper *k, struct template *template, uint32_t at,
                         const struct part *part)
{
    memset(template->block_of, 0xff, sizeof(template->block_of));
    memset(template->offset_of, 0xff, sizeof(template->offset_of));
    for (uint32_t i = 0; i < part->end - part->start && i < TEMPLATE_MAX; i++) {
        uint32_t host = k->places[part->start + i], place, turn;

        if (host == IBSHIFT_NO_HOST) {
            continue;
        }
        turn = turn_of(k, template->from, host);
        place = turn == IBSHIFT_NO_SWITCH ? template->size : free_place(k, template, at, turn);
        if (place < template->size) {
            template->block_of[i / template->block] = place / template->block;
            template->offset_of[i % template->block] = place % template->block;
            take(k, template, at, place, part->start + i, turn);
        }
    }
}

/* The place that the lesson gives to the host at i of its part, or template->size. */
static uint32_t taught_place(const struct keeper *k, const struct template *template, uint32_t at,
                             uint32_t i)
{
    uint32_t block = template->block_of[i / template->block],
             offset = template->offset_of[i % template->block];
    uint32_t place = block == UINT32_MAX || offset == UINT32_MAX ? template->size
                                                                 : block * template->block + offset;

    return place < template->size && k->next[at + place] == IBSHIFT_NO_HOST &&
                   template->turns[place] == IBSHIFT_NO_SWITCH
               ? place
               : template->size;
}

static uint32_t any_place(const struct keeper *k, const struct template *template, uint32_t at,
                          uint32_t low, uint32_t high)
{
    for (uint32_t i = low; i < high && i < template->size; i++) {
        if (k->next[at + i] == IBSHIFT_NO_HOST) {
            return i;
        }
    }
    return template->size;
}

/* Hosts left over: where they are taught to go, then beside their neighbours, then anywhere. */
static int fill_rest(struct keeper *k, struct template *template, uint32_t at,
                     const struct part *part)
{
    for (int pass = 0; pass < 3; pass++) {
        for (uint32_t i = 0; i < part->end - part->start && i < TEMPLATE_MAX; i++) {
            uint32_t host = k->places[part->start + i],
                     block = template->block_of[i / template->block];
            uint32_t place = template->size;

            if (host == IBSHIFT_NO_HOST) {
                continue;
            }
            if (pass == 0) {
                place = taught_place(k, template, at, i);
            } else if (pass == 1 && block != UINT32_MAX) {
                place = any_place(k, template, at, block * template->block,
                                  (block + 1) * template->block);
            } else if (pass == 2) {
                place = any_place(k, template, at, 0, template->size);
            }
            if (place < template->size) {
                take(k, template, at, place, part->start + i, turn_of(k, template->from, host));
            } else if (pass == 2 && emit(k, host) != 0) {
                return -E2BIG;
            }
        }
    }
    return 0;
}

static int fit(struct keeper *k, const struct part *part, struct template *template)
{
    uint32_t at = k->written;

    for (uint32_t i = 0; i < template->size; i++) {
        if (emit(k, IBSHIFT_NO_HOST) != 0) {
            return -E2BIG;
        }
    }
    if (part->end - part->start > TEMPLATE_MAX) {
        return -E2BIG;
    }
    fill_by_turn(k, template, at, part);
    return fill_rest(k, template, at, part);
}

/* The fullest part as it is; its turns are those of routes from another part. */
static int cast(struct keeper *k, const struct part *full, uint32_t other, unsigned l,
                struct template *template)
{
    uint32_t whole = l == 2 ? k->t->hosts_per_leaf : 0, size = full->end - full->start;
    int rc = 0;

    size = size > whole ? size : whole;
    if (size > TEMPLATE_MAX) {
        return -E2BIG;
    }
    template->size = size;
    template->block = l == 2 ? 1 : k->part_size;
    template->from = any_host(k, full);
    for (uint32_t i = 0; rc == 0 && i < size; i++) {
        uint32_t host = full->start + i < full->end ? k->places[full->start + i] : IBSHIFT_NO_HOST;

        template->turns[i] = host == IBSHIFT_NO_HOST ? IBSHIFT_NO_SWITCH : turn_of(k, other, host);
        rc = emit(k, host);
    }
    return rc;
}

/* Parts of one component of level l; the fullest goes first. */
static int keep_component(struct keeper *k, const struct part *parts, uint32_t count, unsigned l,
                          struct template *template)
{
    uint32_t full = 0;
    int rc;

    for (uint32_t i = 1; i < count; i++) {
        full = parts[i].size > parts[full].size ? i : full;
    }
    rc = cast(k, &parts[full], any_host(k, &parts[count == 1 ? 0 : full == 0]), l, template);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        rc = i == full ? 0 : fit(k, &parts[i], template);
    }
    for (uint32_t i = count * template->size;
         rc == 0 && i < k->t->level[l].groups_down * template->size; i++) {
        rc = emit(k, IBSHIFT_NO_HOST); /* parts without any host */
    }
    k->made_size = template->size;
    return rc;
}

/* parts[0 .. *count) are the components of level l - 1, and become those of level l. */
static int keep_level(struct keeper *k, unsigned l, struct part *parts, uint32_t *count,
                      struct template *template)
{
    uint32_t made = 0, *done;
    int rc = 0;

    k->written = 0;
    for (uint32_t i = 0, run; rc == 0 && i < *count; i += run) {
        uint32_t component = ibshift_order_component(k->f, k->t, any_host(k, &parts[i]), l);
        struct part whole = {.start = k->written};

        for (run = 0;
             i + run < *count &&
             ibshift_order_component(k->f, k->t, any_host(k, &parts[i + run]), l) == component;
             run++) {
            whole.size += parts[i + run].size;
        }
        rc = keep_component(k, parts + i, run, l, template);
        whole.end = k->written;
        parts[made++] = whole;
    }
    if (rc == 0) {
        done = k->places;
        k->places = k->next;
        k->next = done;
        k->count = k->written;
        k->part_size = k->made_size;
        *count = made;
    }
    return rc;
}

/* The hosts of one leaf switch after the other. */
static uint32_t list_leaves(const struct keeper *k, struct part *parts)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < k->count; i++) {
        uint32_t leaf = ibshift_order_component(k->f, k->t, k->places[i], 1);

        if (count == 0 || ibshift_order_component(k->f, k->t, k->places[i - 1], 1) != leaf) {
            parts[count++] = (struct part){.start = i};
        }
        parts[count - 1].end = i + 1;
        parts[count - 1].size++;
    }
    return count;
}

static int keep_all(struct keeper *k, struct part *parts, struct template *template)
{
    uint32_t count = list_leaves(k, parts);
    int rc = 0;

    for (unsigned l = 2; rc == 0 && l <= k->t->levels; l++) {
        rc = keep_level(k, l, parts, &count, template);
    }
    return rc;
}

/* An order of all hosts with place keepers added, and its parts rearranged for them; where the places would be too many, the order itself. */
static int spread_order(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                        const uint32_t *order, uint32_t **kept, uint32_t *count,
                        struct ibshift_error *err)
{
    uint32_t room = 4 * f->host_count + 64;
    struct keeper k = {.f = f,
                       .t = shape,
                       .count = f->host_count,
                       .room = room,
                       .places = malloc(room * sizeof(*k.places)),
                       .next = malloc(room * sizeof(*k.next))};
    struct part *parts = malloc(room * sizeof(*parts));
    struct template *template = malloc(sizeof(*template));
    bool ok = k.places && k.next && parts && template;
    int rc = 0;

    if (ok) {
        memcpy(k.places, order, f->host_count * sizeof(*order));
        rc = keep_all(&k, parts, template);
        if (rc != 0) {
            memcpy(k.places, order, f->host_count * sizeof(*order));
            k.count = f->host_count;
        }
        *kept = k.places;
        *count = k.count;
        k.places = NULL;
    }
    free(k.places);
    free(k.next);
    free(parts);
    free(template);
    return ok ? 0 : ibshift_fail(err, -ENOMEM, "no memory to order %u hosts", f->host_count);
}

int ibshift_order_keepers(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                          uint32_t **kept, uint32_t *count, struct ibshift_error *err)
{
    bool spread = shape->missing_hosts != 0 && f->lft != NULL && f->host_count > 1;
    uint32_t *order;
    int rc = ibshift_order_hosts(f, shape, !spread, &order, err);

    if (rc != 0 || !spread) {
        *kept = rc == 0 ? order : *kept;
        *count = f->host_count;
        return rc;
    }
    rc = spread_order(f, shape, order, kept, count, err);
    free(order);
    return rc;
}

int ibshift_order_routing(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                          uint32_t **order, struct ibshift_error *err)
{
    uint32_t count, hosts = 0;
    int rc = ibshift_order_keepers(f, shape, order, &count, err);

    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        if ((*order)[i] != IBSHIFT_NO_HOST) {
            (*order)[hosts++] = (*order)[i];
        }
    }
    return rc;
}
