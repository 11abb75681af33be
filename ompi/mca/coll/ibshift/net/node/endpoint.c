/* The node's net as net.h sees it: made, polled, taken down, collectives given up. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "net/node/private.h"

/* A grant that waits for room is taken back. */
static bool untell_grant(struct ibshift_node_peer *peer, const struct ibshift_net_key *key)
{
    for (struct ibshift_node_note *note = peer->ready.first; note != NULL; note = note->next) {
        if (note->kind == IBSHIFT_NODE_NEWS &&
            (note->news == IBSHIFT_NODE_GRANT || note->news == IBSHIFT_NODE_FETCH) &&
            memcmp(&note->match.key, key, sizeof(*key)) == 0) {
            ibshift_nn_note_free(note);
            return true;
        }
    }
    return false;
}

static void cancel_recv(struct ibshift_node_note *note)
{
    struct ibshift_node_peer *peer = note->peer;

    if (ibshift_nn_close_share(note)) {
        note->is_direct = note->is_granted = true;
    }
    if (note->is_granted && !untell_grant(peer, &note->match.key)) {
        ibshift_nn_tell(peer, note->is_direct ? IBSHIFT_NODE_REVOKE : IBSHIFT_NODE_UNGRANT,
                        &note->match.key, 0, 0);
        if (peer->status != 0) {
            return; /* it could not be told, and is broken: so the note has ended */
        }
        if (note->is_direct) {
            note->is_revoking = true; /* the sender may be writing: its word ends it */
            ibshift_nn_note_move(&peer->resting, note);
            return;
        }
    }
    ibshift_nn_note_end(note, -ECANCELED);
}

/* One that was offered ends when the peer has been told: it may be fetching it. */
static void cancel_send(struct ibshift_node_note *note)
{
    if (!note->is_direct) {
        ibshift_nn_note_end(note, -ECANCELED);
    } else if (!note->is_revoking) {
        note->is_revoking = true;
        ibshift_nn_note_move(&note->peer->ready, note);
    }
}

/* Of notes that nobody has posted. */
static void drop(struct ibshift_node_note *note)
{
    if (note->kind == IBSHIFT_NODE_HELD) {
        ibshift_nn_drop_held(note);
    } else if (note->kind == IBSHIFT_NODE_EARLY || note->kind == IBSHIFT_NODE_OFFERED) {
        ibshift_nn_note_free(note);
    } /* news goes on */
}

static void cancel_note(struct ibshift_node_note *note, const void *context)
{
    const struct ibshift_net_key *key = context;

    if (!ibshift_net_is_of(&note->match.key, key->comm, key->seq)) {
        return;
    }
    if (note->kind == IBSHIFT_NODE_SEND) {
        cancel_send(note);
    } else if (note->kind == IBSHIFT_NODE_RECV) {
        cancel_recv(note);
    } else {
        drop(note);
    }
}

static void cancel(struct ibshift_net *net, uint32_t comm, uint32_t seq)
{
    struct ibshift_net_node *nn = ibshift_node(net);
    const struct ibshift_net_key key = {.comm = comm, .seq = seq};

    ibshift_given_up_add_here(net->given_up, comm, seq);
    for (uint32_t i = 0; i < nn->met_count; i++) {
        ibshift_nn_each(nn->peers[nn->met[i]], cancel_note, &key);
    }
}

/* What a peer gave up because of another one began with that one. */
static void give_up(struct ibshift_net *net, uint32_t comm, const struct ibshift_net_cause *why)
{
    struct ibshift_net_node *nn = ibshift_node(net);
    const struct ibshift_node_peer *peer =
        why->status == -ECONNABORTED ? ibshift_nn_peer(nn, why->peer) : NULL;

    ibshift_given_up_add_comm(nn->net.given_up, comm, why,
                              peer != NULL && peer->cause.status != 0 ? &peer->cause : why);
}

static void tell_abort(struct ibshift_net *net, uint32_t peer, const struct ibshift_net_key *key,
                       const struct ibshift_net_cause *why)
{
    struct ibshift_node_peer *to = ibshift_nn_peer(ibshift_node(net), peer);

    if (to != NULL) {
        ibshift_nn_tell(to, IBSHIFT_NODE_ABORT, key, (uint64_t)(int64_t)why->status, why->peer);
    }
}

/* It may have come before this side knew what it calls itself, and its sender may have forgotten. */
static bool has_sent_unlike(struct ibshift_node_peer *peer, uint32_t comm, uint32_t seq)
{
    for (const struct ibshift_node_note *note = peer->resting.first; note != NULL;
         note = note->next) {
        if (ibshift_net_is_of(&note->match.key, comm, seq) && note->match.key.comm != comm) {
            return ibshift_given_up_unlike(&peer->net->net, peer->number, &note->match.key);
        }
    }
    return false;
}

static bool ask_after(struct ibshift_net *net, uint32_t peer, uint32_t comm, uint32_t seq)
{
    struct ibshift_node_peer *to = ibshift_nn_peer(ibshift_node(net), peer);
    struct ibshift_net_key key = {.comm = comm, .seq = seq};

    if (to == NULL || to->status != 0 || has_sent_unlike(to, comm, seq) ||
        to->ready.first != NULL) {
        return false;
    }
    ibshift_nn_tell(to, IBSHIFT_NODE_ASK_AFTER, &key, 0, 0);
    return true;
}

static void forget_note(struct ibshift_node_note *note, const void *comm)
{
    if (ibshift_net_comm(note->match.key.comm) == *(const uint32_t *)comm) {
        drop(note);
    }
}

static void forget(struct ibshift_net *net, uint32_t comm)
{
    struct ibshift_net_node *nn = ibshift_node(net);

    if (!ibshift_given_up_forget(nn->net.given_up, comm)) {
        return; /* nothing ever failed: all messages have met */
    }
    for (uint32_t i = 0; i < nn->met_count; i++) {
        ibshift_nn_each(nn->peers[nn->met[i]], forget_note, &comm);
    }
}

static const char default_folder[] = "/dev/shm";

/* Processes that have written into their boxes but were not met here yet. */
static void look_for_strangers(struct ibshift_net_node *nn)
{
    for (uint32_t place = 0; place < nn->card.boxes; place++) {
        struct ibshift_node_box box;

        if (nn->peers[place] != NULL || place == nn->card.place) {
            continue;
        }
        box = ibshift_node_box(nn->own.base, place, nn->card.ring);
        if (atomic_load_explicit(&box.cells[0].turn, memory_order_acquire) != 0) {
            struct ibshift_node_peer *peer =
                ibshift_nn_peer(nn, (uint32_t)box.cells[0].value); /* its card has its place */

            (void)peer; /* NULL: no process of ours; its box is not read */
        }
    }
}

static int deliver(struct ibshift_net_node *nn, struct ibshift_net_event *events, int max)
{
    int count = 0;

    while (count < max && nn->ended.first != NULL) {
        struct ibshift_node_note *note = nn->ended.first;

        events[count++] = (struct ibshift_net_event){
            .cookie = note->cookie, .peer = note->match.peer, .status = note->status};
        ibshift_nn_note_free(note);
    }
    return count;
}

static int poll_net(struct ibshift_net *net, struct ibshift_net_event *events, int max)
{
    struct ibshift_net_node *nn = ibshift_node(net);
    struct ibshift_node_peer *helped = NULL;
    bool is_idle = true;

    if (nn->met_count + 1 < nn->card.boxes) {
        look_for_strangers(nn);
    }
    for (uint32_t i = 0; i < nn->met_count; i++) {
        struct ibshift_node_peer *peer = nn->peers[nn->met[i]];

        ibshift_nn_take(peer);
        if (peer->status == 0 && (peer->ready.first != NULL || peer->waiting.first != NULL)) {
            is_idle &= peer->ready.first == NULL;
            ibshift_nn_flush(peer);
        }
        helped = peer->helping.first != NULL ? peer : helped;
    }
    if (is_idle && helped != NULL) {
        ibshift_nn_help(helped);
    }
    return deliver(nn, events, max);
}

/* Asks after a grant that is late: so lengths that differ are found. */
static void ask_after_grant(struct ibshift_node_note *note, const void *context)
{
    (void)context;
    if (note->kind == IBSHIFT_NODE_SEND && note->list == &note->peer->resting &&
        note->peer->ready.first == NULL) {
        ibshift_nn_tell(note->peer, IBSHIFT_NODE_ASK, &note->match.key, note->length, 0);
    }
}

static void probe(struct ibshift_net *net, uint32_t number)
{
    struct ibshift_net_node *nn = ibshift_node(net);
    struct ibshift_node_peer *peer = ibshift_nn_peer(nn, number);

    if (peer != NULL && peer->status == 0 && ibshift_nn_check_alive(peer)) {
        ibshift_nn_each(peer, ask_after_grant, NULL);
    }
}

/* Reads only what is written once, before the peer's status is set. */
static void describe(struct ibshift_net *net, uint32_t number, char *text, size_t size)
{
    const struct ibshift_net_node *nn = ibshift_node(net);
    const struct ibshift_node_peer *peer = NULL;

    for (uint32_t i = 0; i < nn->met_count && peer == NULL; i++) {
        const struct ibshift_node_peer *p = nn->peers[nn->met[i]];
        peer = p->number == number ? p : NULL;
    }
    if (peer == NULL) {
        snprintf(text, size, "rank %u of this host, nothing sent yet", number);
    } else {
        snprintf(text, size, "rank %u of this host, process %u, shared memory%s%s", number,
                 peer->card.pid, peer->status != 0 ? ": " : "",
                 peer->status != 0 ? peer->text : "");
    }
}

static void free_note(struct ibshift_node_note *note, const void *context)
{
    (void)context;
    ibshift_nn_note_free(note);
}

static void destroy(struct ibshift_net *net)
{
    struct ibshift_net_node *nn = ibshift_node(net);
    struct ibshift_node_note *note;

    for (uint32_t i = 0; i < nn->met_count; i++) {
        struct ibshift_node_peer *peer = nn->peers[nn->met[i]];

        ibshift_nn_each(peer, free_note, NULL);
        ibshift_node_segment_close(nn->options.folder, &peer->theirs, NULL);
    }
    while (nn->ended.first != NULL) {
        ibshift_nn_note_free(nn->ended.first);
    }
    while ((note = nn->free_notes) != NULL) {
        nn->free_notes = note->next;
        free(note);
    }
    for (uint32_t i = 0; i < nn->met_count; i++) { /* notes know their peers to the end */
        free(nn->peers[nn->met[i]]);
    }
    ibshift_given_up_free(&nn->given_up);
    ibshift_match_free(&nn->rx);
    ibshift_match_free(&nn->tx);
    ibshift_node_segment_close(nn->options.folder, &nn->own, nn->card.name);
    free(nn->peers);
    free(nn->places);
    free(nn->met);
    free(nn);
}

static struct ibshift_net_channel *channel(struct ibshift_net *net, uint32_t number)
{
    struct ibshift_node_peer *peer = ibshift_nn_peer(ibshift_node(net), number);

    if (peer == NULL) {
        return NULL;
    }
    peer->channel = (struct ibshift_net_channel){ibshift_nn_try_send, ibshift_nn_try_recv};
    return &peer->channel;
}

static const struct ibshift_net_ops ops = {
    .send = ibshift_nn_send,
    .recv = ibshift_nn_recv,
    .channel = channel,
    .poll = poll_net,
    .cancel = cancel,
    .abort = tell_abort,
    .give_up = give_up,
    .has_given_up = ibshift_given_up_why,
    .enter = ibshift_given_up_enter,
    .ask = ask_after,
    .forget = forget,
    .probe = probe,
    .describe = describe,
    .destroy = destroy,
};

static int make_tables(struct ibshift_net_node *nn, uint32_t processes)
{
    uint32_t room = 4;

    while (room < 2 * processes) {
        room *= 2;
    }
    nn->place_mask = room - 1;
    nn->places = calloc(room, sizeof(*nn->places));
    nn->peers = calloc(processes, sizeof(*nn->peers));
    nn->met = calloc(processes, sizeof(*nn->met));
    if (ibshift_match_init(&nn->rx) != 0 || ibshift_match_init(&nn->tx) != 0 ||
        nn->places == NULL || nn->peers == NULL || nn->met == NULL) {
        return -ENOMEM;
    }
    return 0;
}

int ibshift_net_node_create(const struct ibshift_node_options *options, struct ibshift_net **net,
                            char *why, size_t size)
{
    struct ibshift_node_wish wish = {
        .boxes = options->processes, .job = options->job, .memory = options->memory};
    struct ibshift_net_node *nn = calloc(1, sizeof(*nn));
    int rc = -ENOMEM;

    snprintf(why, size, "out of memory");
    if (nn == NULL) {
        return rc;
    }
    nn->net.ops = &ops;
    nn->given_up.comms = options->comms;
    ibshift_given_up_open(&nn->net, &nn->given_up);
    nn->take = ibshift_nn_take;
    nn->options = *options;
    if (nn->options.folder == NULL) {
        nn->options.folder = default_folder;
    }
    rc = make_tables(nn, options->processes);
    if (rc == 0) {
        rc = ibshift_node_segment_make(nn->options.folder, &wish, &nn->own, &nn->card, why, size);
    }
    if (rc != 0) {
        destroy(&nn->net);
        return rc;
    }
    nn->card.place = (uint16_t)options->place;
    nn->net.max_eager = nn->net.max_tried = ibshift_node_short(nn->card.ring);
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* under Yama, others may copy */
    *net = &nn->net;
    return 0;
}

const struct ibshift_node_card *ibshift_net_node_card(const struct ibshift_net *net)
{
    return &((const struct ibshift_net_node *)net)->card;
}

void ibshift_net_node_look(struct ibshift_net *net, uint32_t looks)
{
    ((struct ibshift_net_node *)net)->options.looks = looks;
}

void ibshift_net_node_stats(const struct ibshift_net *net, struct ibshift_node_stats *stats)
{
    *stats = ((const struct ibshift_net_node *)net)->stats;
}
