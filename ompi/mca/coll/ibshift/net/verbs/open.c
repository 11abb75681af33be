/* The inside of an endpoint is made and taken down: its memory, divided, and its queues. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "net/verbs/inside.h"

enum { SENDS_MOST = 8192 };

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static size_t slot_size(const struct ibshift_net_verbs_options *o)
{
    return round_up(sizeof(struct ibshift_wire) + o->max_eager, 64);
}

size_t ibshift_net_verbs_memory_min(const struct ibshift_net_verbs_options *options)
{
    size_t need = IBSHIFT_SLOTS_MIN * slot_size(options) + IBSHIFT_UD_BYTES;
    return need + need / 4; /* rings take an eighth, words much less */
}

/* What every device can take; half of a completion queue is for sends. */
static uint32_t most_receives(const struct ibshift_net_verbs *nv)
{
    uint32_t most = UINT32_MAX;

    for (int i = 0; i < nv->lane_count; i++) {
        const struct ibv_device_attr *attr = &nv->lanes[i].device->attr;
        uint32_t completed = (uint32_t)attr->max_cqe / 2;
        if (attr->max_srq > 0 && (uint32_t)attr->max_srq_wr < most) {
            most = (uint32_t)attr->max_srq_wr;
        }
        most = completed < most ? completed : most;
    }
    return most;
}

/* Divides the arena: words, datagrams, rings (at most an eighth), and slots in what is left. */
static int divide(struct ibshift_net_verbs *nv)
{
    if (nv->options.memory < ibshift_net_verbs_memory_min(&nv->options)) {
        return -EINVAL;
    }
    nv->arena_size = nv->options.memory;
    if (nv->options.rings > nv->arena_size / 8 / IBSHIFT_RING_BYTES) {
        nv->options.rings = (uint32_t)(nv->arena_size / 8 / IBSHIFT_RING_BYTES);
    }
    nv->word_count = (uint32_t)(nv->arena_size / 512);
    nv->slot_size = (uint32_t)slot_size(&nv->options);
    size_t fixed = round_up(nv->word_count * sizeof(struct ibshift_word), 64) +
                   round_up(IBSHIFT_UD_BYTES, 64) + nv->options.rings * (size_t)IBSHIFT_RING_BYTES;
    size_t slots = (nv->arena_size - fixed) / nv->slot_size;
    nv->slot_count = slots < 1 << 20 ? (uint32_t)slots : 1 << 20;
    nv->receives = nv->slot_count / 8 * 5;
    if (nv->receives > most_receives(nv)) {
        nv->receives = most_receives(nv);
    }
    nv->slot_stock = nv->receives - 2 * IBSHIFT_REFILL;
    nv->quota_stock = nv->slot_count / 8 * 2;
    nv->copy_count = nv->copy_stock = nv->slot_count - nv->receives - nv->quota_stock;
    return 0;
}

static void carve(struct ibshift_net_verbs *nv)
{
    uint8_t *at = nv->arena;

    nv->words = (struct ibshift_word *)(void *)at;
    at += round_up(nv->word_count * sizeof(struct ibshift_word), 64);
    nv->ud_memory = at;
    at += round_up(IBSHIFT_UD_BYTES, 64);
    for (uint32_t i = 0; i < nv->options.rings; i++) {
        nv->rings[i].data = at;
        at += IBSHIFT_RING_BYTES;
    }
    for (uint32_t i = nv->slot_count; i-- > 0;) {
        nv->slots[i].data = at + (size_t)i * nv->slot_size;
        ibshift_nv_slot_free(nv, &nv->slots[i]);
    }
}

/*
 * Rings are polled without a completion, so they need memory that keeps the order. Where a device
 * has only relaxed keys nobody gets a ring; words stay, since there is one at a time.
 */
static int register_arena(struct ibshift_net_verbs *nv)
{
    for (int i = 0; i < nv->lane_count; i++) {
        struct ibshift_lane *lane = &nv->lanes[i];
        lane->mr = ibv_reg_mr(lane->device->pd, nv->arena, nv->arena_size,
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        if (lane->mr == NULL && errno != ENOMEM) {
            lane->mr = ibshift_nv_register_relaxed(lane->device->pd, nv->arena, nv->arena_size);
            nv->options.rings = lane->mr != NULL ? 0 : nv->options.rings;
        }
        if (lane->mr == NULL) {
            return -errno;
        }
    }
    nv->stats.registered = nv->arena_size;
    return 0;
}

static int memory_open(struct ibshift_net_verbs *nv)
{
    int rc = divide(nv);
    if (rc != 0) {
        return rc;
    }
    nv->slots = calloc(nv->slot_count, sizeof(*nv->slots));
    nv->rings = calloc(nv->options.rings + 1, sizeof(*nv->rings));
    nv->events = calloc(256, sizeof(*nv->events));
    nv->event_mask = 255;
    nv->grants = calloc(IBSHIFT_GRANTS, sizeof(*nv->grants));
    nv->grant_ages = calloc(IBSHIFT_GRANTS, sizeof(*nv->grant_ages));
    nv->free_grants = calloc(IBSHIFT_GRANTS, sizeof(*nv->free_grants));
    if (nv->slots == NULL || nv->rings == NULL || nv->events == NULL || nv->grants == NULL ||
        nv->grant_ages == NULL || nv->free_grants == NULL || ibshift_match_init(&nv->rx) != 0 ||
        ibshift_match_init(&nv->tx) != 0 || ibshift_match_init(&nv->standing) != 0) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < IBSHIFT_GRANTS; i++) {
        nv->free_grants[i] = IBSHIFT_GRANTS - 1 - i;
    }
    nv->free_grant_count = IBSHIFT_GRANTS;
    nv->arena =
        mmap(NULL, nv->arena_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (nv->arena == MAP_FAILED) {
        nv->arena = NULL;
        return -ENOMEM;
    }
    carve(nv);
    return register_arena(nv);
}

static void memory_close(struct ibshift_net_verbs *nv)
{
    struct ibshift_note *note;

    for (int i = 0; i < nv->lane_count; i++) {
        if (nv->lanes[i].mr != NULL) {
            (void)ibv_dereg_mr(nv->lanes[i].mr);
        }
    }
    if (nv->arena != NULL) {
        (void)munmap(nv->arena, nv->arena_size);
    }
    while ((note = nv->free_notes) != NULL) {
        nv->free_notes = note->next;
        free(note);
    }
    ibshift_match_free(&nv->rx);
    ibshift_match_free(&nv->tx);
    ibshift_match_free(&nv->standing);
    free(nv->free_grants);
    free(nv->grant_ages);
    free(nv->grants);
    free(nv->events);
    free(nv->rings);
    free(nv->slots);
}

static void drop(struct ibshift_note *note, void *context)
{
    (void)context;
    ibshift_nv_note_end(note, -ECANCELED);
}

static void close_connections(struct ibshift_net_verbs *nv)
{
    for (uint32_t i = 0; i < nv->connection_count; i++) {
        struct ibshift_connection *c = nv->connections[i];
        ibshift_nv_rails_destroy(c);
        ibshift_nv_each(c, drop, NULL);
        while (c->standing.first != NULL) {
            ibshift_nv_note_end(c->standing.first, 0);
        }
        if (c->ah != NULL) {
            (void)ibv_destroy_ah(c->ah);
        }
        free(c->text);
        free(c);
    }
    free(nv->connections);
    ibshift_given_up_free(&nv->given_up);
    for (int i = 0; i < IBSHIFT_PEER_CHUNK; i++) {
        free(nv->chunks[i]);
    }
}

static void close_lanes(struct ibshift_net_verbs *nv)
{
    for (int i = 0; i < nv->lane_count; i++) {
        struct ibshift_lane *lane = &nv->lanes[i];
        if (lane->srq != NULL) {
            (void)ibv_destroy_srq(lane->srq);
        }
        if (lane->cq != NULL) {
            (void)ibv_destroy_cq(lane->cq);
        }
        ibshift_match_free(&lane->rails);
    }
}

static int open_lane(struct ibshift_net_verbs *nv, struct ibshift_lane *lane)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = nv->receives, .max_sge = 1}};
    uint32_t room = (uint32_t)lane->device->attr.max_cqe - nv->receives;

    room = room < SENDS_MOST ? room : SENDS_MOST;
    nv->cq_room = room < nv->cq_room ? room : nv->cq_room;
    if (ibshift_match_init(&lane->rails) != 0) {
        return -ENOMEM;
    }
    lane->cq = ibv_create_cq(lane->device->context, (int)(nv->receives + room), NULL, NULL, 0);
    if (lane->cq == NULL) {
        return -errno;
    }
    if (lane->device->attr.max_srq == 0) {
        return 0;
    }
    lane->srq = ibv_create_srq(lane->device->pd, &attr);
    if (lane->srq == NULL) {
        return -errno;
    }
    lane->missing = nv->receives;
    ibshift_nv_receives_post(nv, lane);
    return lane->missing < IBSHIFT_REFILL ? 0 : -EIO;
}

int ibshift_nv_open(struct ibshift_net_verbs *nv, const char **what)
{
    int rc;

    *what = "registering memory";
    nv->cq_room = SENDS_MOST;
    nv->lane_count = nv->verbs->device_count;
    for (int i = 0; i < nv->lane_count; i++) {
        nv->lanes[i].device = &nv->verbs->devices[i];
    }
    rc = memory_open(nv);
    for (int i = 0; i < nv->lane_count && rc == 0; i++) {
        *what = "creating its queues";
        rc = open_lane(nv, &nv->lanes[i]);
    }
    if (rc == 0) {
        *what = "starting its datagram queue pair";
        rc = ibshift_nv_ud_open(nv);
    }
    rc = rc != 0 ? rc : ibshift_nv_async_open(nv);
    return rc;
}

void ibshift_nv_shut(struct ibshift_net_verbs *nv)
{
    ibshift_nv_let_sends_leave(nv);
    ibshift_nv_casts_shut(nv);
    ibshift_nv_ud_close(nv);
    close_connections(nv);
    close_lanes(nv);
    memory_close(nv);
}
