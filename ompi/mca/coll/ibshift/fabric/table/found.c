#include "fabric/table/found.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Orders, and places, whose processes have no communicator any more: routes are long. */
enum { KEPT = 8, KEPT_PLACES = 2 };

/* What rank 0 tells the others. */
enum {
    TOLD_RC,
    TOLD_KNOWN,
    TOLD_KIND,
    TOLD_STEP,
    TOLD_STAGES,
    TOLD_PARTS,
    TOLD_SHARE,
    TOLD_CIRCLE,
    TOLD_LID_OFFSET,
    TOLD_SIZE
};
/* What a rank has of a set of processes; the least of all counts. */
enum { NO_MEMORY, NEW, KNOWN };
/* Parts of a rank's row of a table. */
enum { PART_TO, PART_FROM, PART_LID_OFFSETS };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers known, places and users */
static struct ibshift_found_order *known;                /* the latest first, */
static struct ibshift_found_place *places;               /* likewise */

static int open_placement(const struct ibshift_members *m, struct ibshift_placement **placement,
                          struct ibshift_error *err)
{
    *placement = NULL;
    return ibshift_placement_open(m->fabric, m->host_of, m->size, placement, err);
}

int ibshift_found_shift(const struct ibshift_members *m, enum ibshift_arrange_kind kind,
                        struct ibshift_order *shift, struct ibshift_error *err)
{
    struct ibshift_placement *placement;
    int rc = open_placement(m, &placement, err);

    if (rc == 0) {
        rc = kind == IBSHIFT_ARRANGE_RANK
                 ? ibshift_placement_by_rank(placement, shift, err)
                 : ibshift_placement_along(placement, m->order, m->order_count,
                                           kind == IBSHIFT_ARRANGE_KEEPERS, shift, err);
    }
    ibshift_placement_close(placement);
    return rc;
}

static void drop_place(struct ibshift_found_place *place)
{
    ibshift_order_free(&place->shift);
    ibshift_placement_close(place->placement);
    free(place);
}

/* Under the lock. */
static void drop_old_places(unsigned kept)
{
    for (struct ibshift_found_place **at = &places; *at != NULL;) {
        struct ibshift_found_place *place = *at;

        if (place->users == 0 && kept == 0) {
            *at = place->next;
            drop_place(place);
        } else {
            kept -= place->users == 0;
            at = &place->next;
        }
    }
}

static bool is_at(const struct ibshift_placement *p, const struct ibshift_members *m)
{
    bool is_same = p->fabric == m->fabric && p->ranks == m->size;

    for (uint32_t rank = 0; is_same && rank < m->size; rank++) {
        is_same = p->host[p->member_of[rank]] == m->host_of[rank];
    }
    return is_same;
}

static struct ibshift_found_place *find_place(const struct ibshift_members *m)
{
    struct ibshift_found_place *at;

    pthread_mutex_lock(&lock);
    for (at = places; at != NULL && !is_at(at->placement, m); at = at->next) {
    }
    if (at != NULL) {
        at->users++;
    }
    pthread_mutex_unlock(&lock);
    return at;
}

static int make_place(const struct ibshift_members *m, bool is_auto, bool with_routes,
                      struct ibshift_found_place *place, struct ibshift_error *err)
{
    int rc = open_placement(m, &place->placement, err);
    struct ibshift_placement *p = place->placement;

    place->users = 1;
    place->kind = IBSHIFT_ARRANGE_ROUTING;
    if (rc == 0) {
        rc = is_auto
                 ? ibshift_arrange_first(p, m->order, m->order_count, &place->shift, &place->kind,
                                         err)
                 : ibshift_placement_along(p, m->order, m->order_count, false, &place->shift, err);
    }
    if (rc == 0 && with_routes && p->paths == NULL && p->hosts <= IBSHIFT_FIRST_HOSTS &&
        p->ranks <= IBSHIFT_FIRST_RANKS && ibshift_placement_routes(p, false, err) == -ENOMEM) {
        rc = -ENOMEM;
    }
    return rc;
}

int ibshift_found_first(const struct ibshift_members *m, bool is_auto, bool with_routes,
                        struct ibshift_found_place **out, struct ibshift_error *err)
{
    struct ibshift_found_place *place = find_place(m);
    int rc = 0;

    *out = place;
    if (place == NULL) {
        place = calloc(1, sizeof(*place));
        rc = place == NULL ? -ENOMEM : make_place(m, is_auto, with_routes, place, err);
        if (rc == 0) {
            pthread_mutex_lock(&lock);
            place->next = places;
            places = place;
            pthread_mutex_unlock(&lock);
            *out = place;
        } else if (place != NULL) {
            drop_place(place);
        }
    }
    return rc;
}

void ibshift_found_leave(struct ibshift_found_place *place)
{
    if (place != NULL) {
        pthread_mutex_lock(&lock);
        place->users--;
        drop_old_places(KEPT_PLACES);
        pthread_mutex_unlock(&lock);
    }
}

void ibshift_rank_map_free(struct ibshift_rank_map *map)
{
    ibshift_order_free(&map->order);
    free(map->peers);
    free(map->ones);
    *map = (struct ibshift_rank_map){.peers = NULL};
}

int ibshift_rank_map_make(const struct ibshift_members *members, struct ibshift_rank_map *map,
                          struct ibshift_error *err)
{
    uint32_t size = members->size, place = 0;
    struct ibshift_order shift;
    int rc = ibshift_found_shift(members, IBSHIFT_ARRANGE_ROUTING, &shift, err);

    if (rc != 0) {
        return rc;
    }
    *map = (struct ibshift_rank_map){.peers = malloc(size * sizeof(*map->peers)),
                                     .ones = malloc(size * sizeof(*map->ones))};
    rc = ibshift_order_open(&map->order, size, 1, size);
    if (rc != 0 || map->peers == NULL || map->ones == NULL) {
        ibshift_rank_map_free(map);
        ibshift_order_free(&shift);
        return -ENOMEM;
    }
    for (uint32_t slot = 0; slot < shift.places * shift.slots; slot++) {
        uint32_t rank = shift.rank_at[slot];

        if (rank != IBSHIFT_NO_RANK) {
            map->order.rank_at[place] = rank;
            map->order.slot_of[rank] = place;
            map->peers[place] = members->peers[rank];
            map->ones[place++] = 1;
        }
    }
    ibshift_order_free(&shift);
    return 0;
}

static uint32_t *copy_peers(const struct ibshift_members *m)
{
    uint32_t *peers = malloc(m->size * sizeof(*peers));

    return peers == NULL ? NULL : memcpy(peers, m->peers, m->size * sizeof(*peers));
}

/* Rank 0: the kind of order, and the arrangement if it is a table. After an error the routing order
 * stays. */
static void arrange(const struct ibshift_members *m, unsigned kinds,
                    struct ibshift_found_words *words, struct ibshift_arrangement *a, int *told)
{
    struct ibshift_error err = {""};
    struct ibshift_placement *placement;
    int rc = open_placement(m, &placement, &err);

    rc = rc == 0 ? ibshift_placement_routes(placement, true, &err) : rc;
    rc = rc == 0 ? ibshift_arrange(placement, m->order, m->order_count, kinds, a, &err) : rc;
    if (rc != 0) {
        snprintf(words->text, sizeof(words->text), "%s, goes by a shift in routing order",
                 err.text);
    } else {
        snprintf(words->text, sizeof(words->text),
                 "%s; %u stages, at worst %.3g flows per link, %.3g on average, bound %.6g",
                 a->reason, a->stages, a->worst, a->stages > 0 ? a->cost / a->stages : 0, a->bound);
        told[TOLD_KIND] = (int)a->kind;
        told[TOLD_STEP] = (int)a->shift.step;
        told[TOLD_STAGES] = (int)a->schedule.table.stages;
        told[TOLD_SHARE] = (int)(1000 * a->share);
        told[TOLD_CIRCLE] = a->has_circle;
        told[TOLD_LID_OFFSET] = (int)a->lid_offset;
        told[TOLD_PARTS] = PART_LID_OFFSETS + (a->schedule.lid_offsets != NULL);
    }
    words->hosts = placement == NULL ? 0 : placement->hosts;
    ibshift_placement_close(placement);
}

/* The rows as the ranks get them, part by part. */
static int *rows_of(const struct ibshift_arrangement *a, uint32_t ranks, size_t parts)
{
    const struct ibshift_schedule *t = &a->schedule;
    size_t stages = t->table.stages;
    int *rows = malloc(parts * stages * ranks * sizeof(*rows) + 1), *at = rows;

    for (uint32_t r = 0; rows != NULL && r < ranks; r++, at += parts * stages) {
        memcpy(at + PART_TO * stages, t->to + stages * r, stages * sizeof(*at));
        memcpy(at + PART_FROM * stages, t->from + stages * r, stages * sizeof(*at));
        for (size_t s = 0; parts > PART_LID_OFFSETS && s < stages; s++) {
            at[PART_LID_OFFSETS * stages + s] = t->lid_offsets[stages * r + s];
        }
    }
    return rows;
}

/* Rank 0. */
static int *prepare(const struct ibshift_members *m, unsigned kinds,
                    struct ibshift_found_words *words, struct ibshift_arrangement *a, int *told)
{
    int *rows = NULL;

    arrange(m, kinds, words, a, told);
    if (told[TOLD_KIND] == IBSHIFT_ARRANGE_TABLE) {
        rows = rows_of(a, m->size, (size_t)told[TOLD_PARTS]);
        told[TOLD_RC] = rows == NULL ? -ENOMEM : 0;
    }
    return rows;
}

static int share_table(const struct ibshift_members *m, const struct ibshift_together *together,
                       const int *rows, const int *told, struct ibshift_found_order *found)
{
    size_t stages = (size_t)told[TOLD_STAGES], cells = stages * (size_t)told[TOLD_PARTS];
    int rc;

    found->row = malloc(cells * sizeof(*found->row) + 1);
    if (found->row == NULL) {
        return -ENOMEM;
    }
    rc = together->deal(together->comm, rows, (int *)found->row, (int)cells);
    if (rc != 0) {
        return rc;
    }
    found->table = (struct ibshift_stages){.stages = (uint32_t)stages,
                                           .first = m->rank,
                                           .rows = 1,
                                           .to = found->row + PART_TO * stages,
                                           .from = found->row + PART_FROM * stages};
    found->stages = &found->table;
    for (size_t s = 0; told[TOLD_PARTS] > PART_LID_OFFSETS && s < stages; s++) {
        if (found->table.to[s] != IBSHIFT_NO_RANK) {
            together->set_path(m->peers[found->table.to[s]],
                               found->row[PART_LID_OFFSETS * stages + s]);
        }
    }
    return 0;
}

static int take_shift(const struct ibshift_members *m, const struct ibshift_together *together,
                      const int *told, struct ibshift_found_order *found)
{
    struct ibshift_error err;
    int rc = ibshift_found_shift(m, found->kind, &found->shift, &err);

    if (rc == 0) {
        found->shift.step =
            told[TOLD_STEP] > 0 ? (uint32_t)told[TOLD_STEP] : found->shift.step; /* or its own */
        found->order = &found->shift;
    }
    for (uint32_t r = 0; rc == 0 && told[TOLD_LID_OFFSET] > 0 && r < m->size; r++) {
        together->set_path(m->peers[r], (uint32_t)told[TOLD_LID_OFFSET]);
    }
    return rc;
}

/*
 * Ranks forget at different times: what one of them has forgotten is found again by all; and what
 * one of them has no memory for fails on all.
 */
static int find(const struct ibshift_members *m, unsigned kinds,
                const struct ibshift_together *together, int mine,
                struct ibshift_found_words *words, struct ibshift_found_order *fresh,
                bool *is_known)
{
    int told[TOLD_SIZE] = {0, NEW, IBSHIFT_ARRANGE_ROUTING, 0, 0, PART_LID_OFFSETS, 0, 0, 0};
    struct ibshift_arrangement a = {.kind = IBSHIFT_ARRANGE_ROUTING};
    int *rows = NULL, least = NO_MEMORY, other;
    int rc = together->least(together->comm, mine, &least);

    if (m->rank == 0) {
        told[TOLD_RC] = rc != 0 ? rc : least == NO_MEMORY ? -ENOMEM : 0;
        told[TOLD_KNOWN] = least;
        if (told[TOLD_RC] == 0 && least == NEW) {
            rows = prepare(m, kinds, words, &a, told);
        }
    }
    other = together->tell(together->comm, told, TOLD_SIZE);
    rc = rc != 0 ? rc : other != 0 ? other : told[TOLD_RC];
    *is_known = told[TOLD_KNOWN] == KNOWN;
    if (rc == 0 && !*is_known) {
        fresh->kind = (enum ibshift_arrange_kind)told[TOLD_KIND];
        fresh->share = (unsigned)told[TOLD_SHARE];
        fresh->has_circle = told[TOLD_CIRCLE] != 0;
        rc = fresh->kind == IBSHIFT_ARRANGE_TABLE ? share_table(m, together, rows, told, fresh)
                                                  : take_shift(m, together, told, fresh);
    }
    free(rows);
    ibshift_arrangement_free(&a);
    return rc;
}

static void drop(struct ibshift_found_order *found)
{
    ibshift_order_free(&found->shift);
    free(found->row);
    free(found->peers);
    free(found);
}

/* Of those that nobody uses, the latest stay. Under the lock. */
static void drop_old(unsigned kept)
{
    for (struct ibshift_found_order **at = &known; *at != NULL;) {
        struct ibshift_found_order *found = *at;

        if (found->users == 0 && kept == 0) {
            *at = found->next;
            drop(found);
        } else {
            kept -= found->users == 0;
            at = &found->next;
        }
    }
}

static struct ibshift_found_order *find_known(const struct ibshift_members *m)
{
    struct ibshift_found_order *at;

    pthread_mutex_lock(&lock);
    for (at = known; at != NULL; at = at->next) {
        if (at->size == m->size && memcmp(at->peers, m->peers, m->size * sizeof(*at->peers)) == 0) {
            at->users++;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return at;
}

static struct ibshift_found_order *make(const struct ibshift_members *m)
{
    struct ibshift_found_order *found = calloc(1, sizeof(*found));

    if (found != NULL) {
        found->users = 1;
        found->size = m->size;
        found->peers = copy_peers(m);
        if (found->peers == NULL) {
            free(found);
            return NULL;
        }
    }
    return found;
}

static void remember(struct ibshift_found_order *found)
{
    pthread_mutex_lock(&lock);
    found->next = known;
    known = found;
    drop_old(KEPT);
    pthread_mutex_unlock(&lock);
}

void ibshift_found_release(struct ibshift_found_order *found)
{
    if (found != NULL) {
        pthread_mutex_lock(&lock);
        found->users--;
        drop_old(KEPT);
        pthread_mutex_unlock(&lock);
    }
}

void ibshift_found_forget(void)
{
    pthread_mutex_lock(&lock);
    drop_old(0);
    drop_old_places(0);
    pthread_mutex_unlock(&lock);
}

int ibshift_found_search(const struct ibshift_members *m, unsigned kinds,
                         const struct ibshift_together *together, struct ibshift_found_words *words,
                         struct ibshift_found_order **out)
{
    struct ibshift_found_order *before = find_known(m), *fresh = make(m);
    int mine = fresh == NULL ? NO_MEMORY : before == NULL ? NEW : KNOWN, rc;
    bool is_known, takes_fresh;

    words->text[0] = '\0';
    rc = find(m, kinds, together, mine, words, fresh, &is_known);
    takes_fresh = rc == 0 && !is_known;
    if (takes_fresh) {
        remember(fresh);
    } else if (fresh != NULL) {
        drop(fresh);
    }
    if (rc != 0 || !is_known) {
        ibshift_found_release(before);
    }
    *out = rc != 0 ? NULL : takes_fresh ? fresh : before;
    return rc;
}
