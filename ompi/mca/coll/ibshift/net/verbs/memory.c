/* What the net owns: registered memory in slots, notes, events. Nothing grows with the peers but
   notes and events, with the messages that the owner has posted. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "net/verbs/inside.h"

/* Registration of the user's memory, through the owner's cache when it has one. */

/*
 * Relaxed ordering on the bus lets a long message's data pass other writes, which some processors
 * need for the full rate; its completion does not pass it. Drivers that do not know the flag drop
 * it; if one refuses it, or a first try (a device's small table of translations), there is another.
 */
struct ibv_mr *ibshift_nv_register_relaxed(struct ibv_pd *pd, void *base, size_t length)
{
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    struct ibv_mr *mr = ibv_reg_mr(pd, base, length, access | IBV_ACCESS_RELAXED_ORDERING);

    return mr != NULL || errno == ENOMEM ? mr : ibv_reg_mr(pd, base, length, access);
}

int ibshift_region_register(struct ibshift_verbs *verbs, void *base, size_t length,
                            struct ibshift_region *region)
{
    if (verbs->regions_most != 0 && length > verbs->regions_most - verbs->regions) {
        return -ENOMEM;
    }
    memset(region->mr, 0, sizeof(region->mr));
    region->verbs = verbs;
    region->number = ++verbs->registered;
    region->base = base;
    region->length = length;
    verbs->regions += length;
    for (int i = 0; i < verbs->device_count; i++) {
        region->mr[i] = ibshift_nv_register_relaxed(verbs->devices[i].pd, base, length);
        if (region->mr[i] == NULL) {
            int rc = errno != 0 ? -errno : -ENOMEM;
            (void)ibshift_region_deregister(region);
            return rc;
        }
    }
    return 0;
}

int ibshift_region_deregister(struct ibshift_region *region)
{
    int rc = 0;

    region->verbs->regions -= region->length;
    region->length = 0; /* a cache may try again what has failed */
    for (int i = 0; i < IBSHIFT_PORTS_MAX; i++) {
        if (region->mr[i] != NULL) {
            int failed = ibv_dereg_mr(region->mr[i]);
            rc = failed != 0 ? -failed : rc;
            region->mr[i] = NULL;
        }
    }
    return rc;
}

int ibshift_nv_region_get(struct ibshift_net_verbs *nv, void *base, size_t length,
                          struct ibshift_region **region)
{
    const struct ibshift_region_cache *cache = nv->options.cache;

    if (cache != NULL) {
        return cache->get(cache->context, base, length, region);
    }
    struct ibshift_region *r = malloc(sizeof(*r));
    if (r == NULL) {
        return -ENOMEM;
    }
    int rc = ibshift_region_register(nv->verbs, base, length, r);
    if (rc != 0) {
        free(r);
        return rc;
    }
    *region = r;
    return 0;
}

void ibshift_nv_region_put(struct ibshift_net_verbs *nv, struct ibshift_region *region)
{
    const struct ibshift_region_cache *cache = nv->options.cache;

    if (cache != NULL) {
        cache->put(cache->context, region);
        return;
    }
    (void)ibshift_region_deregister(region);
    free(region);
}

static void say_copied(struct ibshift_net_verbs *nv, size_t length, int rc)
{
    char line[256];

    nv->stats.copied++;
    if (nv->has_said_copy || nv->options.say == NULL) {
        return;
    }
    nv->has_said_copy = true;
    snprintf(line, sizeof(line),
             "%zu bytes could not be registered with the device (%s): long messages are copied, "
             "which is slower. Limits: locked memory (ulimit -l), vm.max_map_count, and the "
             "device's own",
             length, strerror(-rc));
    nv->options.say(nv->options.context, line);
}

int ibshift_nv_cover(struct ibshift_note *note, struct ibshift_net_mem *mem,
                     struct ibshift_region **region)
{
    struct ibshift_net_verbs *nv = note->connection->net;

    if (mem != NULL) {
        *region = (struct ibshift_region *)mem;
        return 0;
    }
    int rc = ibshift_nv_region_get(nv, note->buffer, note->length, region);
    if (rc == 0) {
        note->region = *region;
    } else {
        say_copied(nv, note->length, rc);
    }
    return rc;
}

struct ibshift_slot *ibshift_nv_slot_take(struct ibshift_net_verbs *nv)
{
    struct ibshift_slot *slot = nv->free_slots;
    if (slot != NULL) {
        nv->free_slots = slot->next;
    }
    return slot;
}

void ibshift_nv_slot_free(struct ibshift_net_verbs *nv, struct ibshift_slot *slot)
{
    slot->next = nv->free_slots;
    nv->free_slots = slot;
}

/* Posts up to IBSHIFT_REFILL receives; returns how many. */
static uint32_t post_batch(struct ibshift_net_verbs *nv, struct ibshift_lane *lane)
{
    struct ibv_recv_wr wr[IBSHIFT_REFILL], *bad;
    struct ibv_sge sge[IBSHIFT_REFILL];
    uint32_t n = 0;

    while (n < IBSHIFT_REFILL && n < lane->missing) {
        struct ibshift_slot *slot = lane == &nv->lanes[0] ? ibshift_nv_slot_take(nv) : NULL;
        if (lane == &nv->lanes[0] && slot == NULL) {
            break;
        }
        wr[n] = (struct ibv_recv_wr){.next = &wr[n + 1], .sg_list = &sge[n]};
        wr[n].wr_id = ibshift_wr_id(slot, slot != NULL ? IBSHIFT_WR_RECV : IBSHIFT_WR_EMPTY);
        if (slot != NULL) {
            wr[n].num_sge = 1;
            sge[n] = (struct ibv_sge){
                .addr = (uintptr_t)slot->data, .length = nv->slot_size, .lkey = lane->mr->lkey};
        }
        n++;
    }
    if (n == 0) {
        return 0;
    }
    wr[n - 1].next = NULL;
    if (ibv_post_srq_recv(lane->srq, wr, &bad) != 0) {
        uint32_t posted = (uint32_t)(bad - wr);
        for (uint32_t i = posted; i < n && lane == &nv->lanes[0]; i++) {
            ibshift_nv_slot_free(
                nv, (struct ibshift_slot *)(uintptr_t)(wr[i].wr_id &
                                                       ~(uint64_t)(IBSHIFT_WR_KINDS - 1)));
        }
        n = posted;
    }
    lane->missing -= n;
    return n;
}

void ibshift_nv_receives_post(struct ibshift_net_verbs *nv, struct ibshift_lane *lane)
{
    while (lane->missing >= IBSHIFT_REFILL && post_batch(nv, lane) != 0) {
    }
}

struct ibshift_note *ibshift_nv_note_new(struct ibshift_connection *c, uint8_t kind,
                                         const struct ibshift_net_key *key)
{
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_note *note = nv->free_notes;

    if (note != NULL) {
        nv->free_notes = note->next;
    } else if ((note = malloc(sizeof(*note))) == NULL) {
        return NULL;
    }
    memset(note, 0, sizeof(*note));
    note->kind = kind;
    nv->queued += kind == IBSHIFT_NOTE_LONG;
    note->connection = c;
    note->match.peer = c->peer;
    note->match.key = *key;
    return note;
}

struct ibshift_note *ibshift_nv_note_post(struct ibshift_connection *c, uint8_t kind,
                                          const struct ibshift_net_message *m)
{
    struct ibshift_note *note = ibshift_nv_note_new(c, kind, &m->key);

    if (note != NULL) {
        note->buffer = m->buffer;
        note->length = m->length;
        note->cookie = m->cookie;
        c->net->ungranted += kind == IBSHIFT_NOTE_LONG ? m->length : 0;
    }
    return note;
}

static struct ibshift_match_table *table_of(const struct ibshift_note *note)
{
    struct ibshift_net_verbs *nv = note->connection->net;
    bool is_rx = note->kind == IBSHIFT_NOTE_RECV || note->kind == IBSHIFT_NOTE_HELD;

    return is_rx ? &nv->rx : &nv->tx;
}

void ibshift_note_append(struct ibshift_notes *list, struct ibshift_note *note)
{
    note->list = list;
    note->next = NULL;
    note->previous = list->last;
    *(list->last != NULL ? &list->last->next : &list->first) = note;
    list->last = note;
}

static void note_remove(struct ibshift_note *note)
{
    struct ibshift_notes *list = note->list;

    *(note->previous != NULL ? &note->previous->next : &list->first) = note->next;
    *(note->next != NULL ? &note->next->previous : &list->last) = note->previous;
    note->list = NULL;
}

void ibshift_note_move(struct ibshift_notes *list, struct ibshift_note *note)
{
    note_remove(note);
    ibshift_note_append(list, note);
}

void ibshift_nv_note_enter(struct ibshift_note *note, struct ibshift_notes *list)
{
    ibshift_match_add(table_of(note), &note->match);
    ibshift_note_append(list, note);
}

void ibshift_nv_each(struct ibshift_connection *c,
                     void (*visit)(struct ibshift_note *note, void *context), void *context)
{
    struct ibshift_notes *lists[] = {&c->ready, &c->waiting, &c->resting};
    struct ibshift_note *next;

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        for (struct ibshift_note *n = lists[i]->first; n != NULL; n = next) {
            next = n->next;
            visit(n, context);
        }
    }
}

static void end_held(struct ibshift_note *note)
{
    struct ibshift_net_verbs *nv = note->connection->net;
    struct ibshift_inbound *in = &note->connection->in;

    if (note->is_apart) {
        free(note->buffer);
        in->ring_held -= ibshift_ring_lines((uint32_t)note->length);
    } else {
        ibshift_nv_slot_free(nv, note->slot);
        in->held--;
        in->quota++;
    }
}

static void release_grant(struct ibshift_note *note)
{
    struct ibshift_net_verbs *nv = note->connection->net;
    uint32_t place = note->grant & (IBSHIFT_GRANTS - 1);

    if ((note->to.pieces & IBSHIFT_GRANT_PIECES) != 0) {
        note->connection->in.forgone += note->length - note->done;
    }
    nv->grants[place] = NULL;
    nv->grant_ages[place]++;
    nv->free_grants[nv->free_grant_count++] = place;
}

/* Whether only a completion tells its end. */
static bool is_queued(const struct ibshift_note *note)
{
    return note->kind == IBSHIFT_NOTE_LONG ||
           (note->kind == IBSHIFT_NOTE_RECV && note->length > IBSHIFT_RING_PAYLOAD);
}

/* The end of a note of any kind: whatever it holds goes back; a message gets its event. */
void ibshift_nv_note_end(struct ibshift_note *note, int status)
{
    struct ibshift_net_verbs *nv = note->connection->net;
    struct ibshift_connection *c = note->connection;
    bool is_message = note->kind == IBSHIFT_NOTE_RECV || note->kind == IBSHIFT_NOTE_SEND ||
                      note->kind == IBSHIFT_NOTE_LONG;

    ibshift_match_remove(&note->match);
    if (note->list != NULL) {
        note_remove(note);
    }
    if (note->kind == IBSHIFT_NOTE_HELD) {
        end_held(note);
    }
    if (note->kind == IBSHIFT_NOTE_GRANT) {
        c->out.grants--;
    }
    nv->queued -= is_queued(note);
    nv->pieced -= note->kind == IBSHIFT_NOTE_LONG && note->piece > 0;
    nv->ungranted -= note->kind == IBSHIFT_NOTE_LONG && !note->is_granted ? note->length : 0;
    if ((note->kind == IBSHIFT_NOTE_RECV || note->kind == IBSHIFT_NOTE_STANDING) &&
        note->is_granted) {
        release_grant(note);
    }
    if (note->region != NULL) {
        ibshift_nv_region_put(nv, note->region);
    }
    if (is_message) {
        ibshift_nv_event(nv, note->cookie, c->peer, note->is_cancelled ? -ECANCELED : status);
    }
    note->next = nv->free_notes;
    nv->free_notes = note;
}

static int grow_events(struct ibshift_net_verbs *nv)
{
    uint32_t size = nv->event_mask + 1;
    struct ibshift_net_event *bigger = malloc(2 * size * sizeof(*bigger));

    if (bigger == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < size; i++) {
        bigger[i] = nv->events[(nv->event_first + i) & nv->event_mask];
    }
    free(nv->events);
    nv->events = bigger;
    nv->event_mask = 2 * size - 1;
    nv->event_first = 0;
    nv->event_last = size;
    return 0;
}

void ibshift_nv_event(struct ibshift_net_verbs *nv, uint64_t cookie, uint32_t peer, int status)
{
    if (nv->event_last - nv->event_first == nv->event_mask + 1 && grow_events(nv) != 0) {
        abort(); /* an event that is lost is a hang; there is no memory to say it in */
    }
    nv->events[nv->event_last++ & nv->event_mask] =
        (struct ibshift_net_event){.cookie = cookie, .peer = peer, .status = status};
}
