/* Connections: made at first use by the handshake of hello.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/verbs/inside.h"

enum { QUOTA_MOST = IBSHIFT_CREDIT_MOST / 2, ASKING_RESERVE = 32 };
enum { NEIGHBOURS = 2 }; /* on each side: whoever is asked has a place among the connections */

static const uint64_t tick_pause = 1000 * 1000;             /* ns */
static const uint64_t patience = 1000 * 1000 * 1000;        /* ns, before others are asked */
static const uint64_t report_pause = 3000 * 1000 * 1000ull; /* ns */

/* 0; -EPROTO, -EINVAL: not of this version; else why there is none. */
static int get_card(struct ibshift_net_verbs *nv, uint32_t peer, struct ibshift_verbs_blob *card)
{
    uint8_t wire[sizeof(*card)];
    int rc = nv->options.card(nv->options.context, peer, wire, sizeof(wire));

    return rc < 0 ? rc : ibshift_verbs_blob_decode(wire, (size_t)rc, card);
}

static void read_card(struct ibshift_connection *c)
{
    struct ibshift_net_verbs *nv = c->net;
    int rc = get_card(nv, c->peer, &c->card);

    if (rc < 0 && rc != -EPROTO && rc != -EINVAL) {
        ibshift_nv_break(
            c, -EHOSTUNREACH,
            "it has published no address: no usable port there, or another version of ibshift (%s)",
            strerror(-rc));
        return;
    }
    if (rc != 0) {
        ibshift_nv_break(c, -EHOSTUNREACH, "its address card is not of this version of ibshift");
    } else if (c->number >= nv->word_count) {
        ibshift_nv_break(c, -ENOMEM, "%u connections are all that fit into the memory granted",
                         nv->word_count);
    }
}

static int remember(struct ibshift_connection *c)
{
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_connection ***chunk = &nv->chunks[c->peer / IBSHIFT_PEER_CHUNK];

    if (nv->connection_count == nv->connection_room) {
        uint32_t room = nv->connection_room * 2 + 16;
        void *bigger = realloc(nv->connections, room * sizeof(*nv->connections));
        if (bigger == NULL) {
            return -ENOMEM;
        }
        nv->connections = bigger;
        nv->connection_room = room;
    }
    if (*chunk == NULL) {
        struct ibshift_connection **fresh = calloc(IBSHIFT_PEER_CHUNK, sizeof(*fresh));
        if (fresh == NULL) {
            return -ENOMEM;
        }
        __atomic_store_n(chunk, fresh, __ATOMIC_RELEASE);
    }
    return 0;
}

/* The connection of a peer, made when it is not known yet; NULL: no memory, or no such peer. */
struct ibshift_connection *ibshift_nv_peer(struct ibshift_net_verbs *nv, uint32_t peer)
{
    struct ibshift_connection *c = ibshift_nv_peer_known(nv, peer);

    if (c != NULL || peer == nv->options.self || peer / IBSHIFT_PEER_CHUNK >= IBSHIFT_PEER_CHUNK) {
        return c;
    }
    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return NULL;
    }
    c->net = nv;
    c->peer = peer;
    if (remember(c) != 0) {
        free(c);
        return NULL;
    }
    c->number = nv->connection_count;
    nv->connections[nv->connection_count++] = c;
    read_card(c);
    __atomic_store_n(&nv->chunks[peer / IBSHIFT_PEER_CHUNK][peer % IBSHIFT_PEER_CHUNK], c,
                     __ATOMIC_RELEASE);
    return c;
}

static uint8_t choose_path(const struct ibshift_connection *c)
{
    const struct ibshift_net_verbs *nv = c->net;
    const struct ibshift_verbs_address *to = &c->card.address[0];
    unsigned path = nv->options.path != NULL && !to->is_ethernet
                        ? nv->options.path(nv->options.context, c->peer)
                        : 0;

    return path >> to->lmc == 0 && path <= IBSHIFT_PATH_MAX ? (uint8_t)path : 0;
}

/* Queue pairs, and this peer's share of our memory. */
static int prepare(struct ibshift_connection *c)
{
    struct ibshift_net_verbs *nv = c->net;

    if (c->state != IBSHIFT_CONNECTION_IDLE) {
        return 0;
    }
    c->path = choose_path(c);
    c->in.slots_window = ibshift_stock_share(nv->slot_stock, ASKING_RESERVE, IBSHIFT_CREDIT_MOST);
    int rc = ibshift_nv_rails_create(c);
    if (rc != 0) {
        ibshift_nv_break(c, rc == -ENOMEM ? rc : -EHOSTUNREACH, "%s",
                         rc == -EHOSTUNREACH
                             ? "its ports and ours are on different networks (link layer, subnet "
                               "prefix or GID type); choose ports or GIDs that reach each other"
                             : "no queue pair could be made for it (its device's limit, or locked "
                               "memory: ulimit -l)");
        return c->status;
    }
    while (c->in.slots != c->in.slots_window && c->status == 0) {
        ibshift_nv_slot_give(c);
    }
    if (c->status != 0) {
        return c->status;
    }
    c->in.slots_told = c->in.slots;
    c->in.quota = c->in.quota_told = c->in.quota_window =
        ibshift_stock_share(nv->quota_stock, 0, QUOTA_MOST);
    nv->quota_stock -= c->in.quota_window;
    memset(&nv->words[c->number], 0, sizeof(nv->words[c->number]));
    c->my_qpn = c->rail[0].qp->qp_num;
    c->state = IBSHIFT_CONNECTION_SHAKING;
    c->began = ibshift_net_now(&nv->net);
    nv->shaking++;
    nv->stats.connections++;
    return 0;
}

static void become_ready(struct ibshift_connection *c)
{
    if (c->state == IBSHIFT_CONNECTION_SHAKING) {
        c->state = IBSHIFT_CONNECTION_READY;
        c->alive = ibshift_net_now(&c->net->net);
        c->net->shaking--;
        ibshift_nv_flush(c);
    }
}

/* Their HELLO has what our queue pairs need. Returns c->status. */
static int bring_up(struct ibshift_connection *c, const struct ibshift_hello *hello)
{
    int rc = ibshift_nv_rails_connect(c, hello);

    if (rc != 0) {
        ibshift_nv_break(c, -EHOSTUNREACH, "the queue pair did not come up: %s", strerror(-rc));
        return c->status;
    }
    c->their_qpn = hello->rail[0].qpn;
    c->out.slots = hello->credits;
    c->out.quota = hello->quota;
    c->out.word_address = hello->word_address;
    c->out.word_key = hello->word_key;
    return 0;
}

static void act(struct ibshift_connection *c, unsigned todo)
{
    if (todo & IBSHIFT_SHAKE_SEND) {
        ibshift_nv_hello(c, IBSHIFT_HELLO_CONNECT);
    }
    if (todo & IBSHIFT_SHAKE_READY) {
        become_ready(c);
    }
}

void ibshift_nv_connect(struct ibshift_connection *c)
{
    if (c->state == IBSHIFT_CONNECTION_IDLE && c->status == 0 && prepare(c) == 0) {
        act(c, ibshift_handshake_begin(&c->shake, ibshift_net_now(&c->net->net)));
    }
}

/* Data came: so they have our HELLO, even if their word on it was lost. */
void ibshift_nv_heard(struct ibshift_connection *c)
{
    if (c->state == IBSHIFT_CONNECTION_SHAKING && c->shake.has_theirs) {
        c->shake.they_have_mine = 1;
        become_ready(c);
    }
}

/* Gives single slots to peers that have none of their own, in the order of their asking. */
void ibshift_nv_serve(struct ibshift_net_verbs *nv)
{
    while (nv->asking != NULL && nv->slot_stock > 0) {
        struct ibshift_connection *c = nv->asking;
        nv->asking = c->next_asking;
        if (nv->asking == NULL) {
            nv->asking_end = &nv->asking;
        }
        c->is_asking = false;
        if (c->status == 0) {
            ibshift_nv_slot_give(c);
            ibshift_nv_tell(c);
        }
    }
}

/*
 * An ask from before the last slot was given is old news: a slot for it would stay with a peer that
 * has nothing to send, and others would wait for it.
 */
static void hear_ask(struct ibshift_connection *c, uint16_t known)
{
    struct ibshift_net_verbs *nv = c->net;

    if (c->state != IBSHIFT_CONNECTION_READY || c->in.slots_window > 0 || c->is_asking) {
        return;
    }
    if (c->in.slots != c->in.slots_arrived || known != (uint16_t)c->in.slots) {
        ibshift_nv_tell(c);
        return;
    }
    c->is_asking = true;
    c->next_asking = NULL;
    *nv->asking_end = c;
    nv->asking_end = &c->next_asking;
    ibshift_nv_serve(nv);
}

static void hear_connect(struct ibshift_connection *c, const struct ibshift_hello *hello)
{
    struct ibshift_net_verbs *nv = c->net;

    if (c->status == 0 && hello->max_eager != nv->options.max_eager) {
        ibshift_nv_break(c, -EHOSTUNREACH,
                         "its eager limit is %u, ours %zu: they must be the same on all ranks",
                         hello->max_eager, nv->options.max_eager);
    }
    if (c->status != 0) {
        ibshift_nv_bye(c);
        return;
    }
    if (prepare(c) == 0) {
        uint64_t now = ibshift_net_now(&nv->net);
        unsigned todo =
            ibshift_handshake_receive(&c->shake, hello->flags, ibshift_nv_is_second(c, hello), now);
        if (!(todo & IBSHIFT_SHAKE_CONNECT) || bring_up(c, hello) == 0) {
            act(c, todo);
        }
    }
}

/*
 * Whose datagram it is, or NULL. Those of another job, or of an earlier process at our or their
 * address, carry the wrong incarnations; other processes of the job know these, but not how to send
 * from the address on the card. Nothing is made for any of them.
 */
static struct ibshift_connection *sender_of(struct ibshift_net_verbs *nv,
                                            const struct ibshift_hello *hello,
                                            const struct ibshift_verbs_source *source)
{
    struct ibshift_connection *c = ibshift_nv_peer_known(nv, hello->from_peer);
    struct ibshift_verbs_blob card;

    if (hello->to_peer != nv->options.self ||
        hello->to_incarnation != nv->verbs->blob.incarnation ||
        hello->from_peer >= nv->options.peers) {
        return NULL;
    }
    if (c != NULL) {
        card = c->card;
    } else if (get_card(nv, hello->from_peer, &card) != 0) {
        return NULL;
    }
    if (hello->from_incarnation != card.incarnation) {
        return NULL;
    }
    if (!ibshift_verbs_is_from(&card, source)) {
        nv->strangers++;
        return NULL;
    }
    return c != NULL ? c : ibshift_nv_peer(nv, hello->from_peer);
}

/* The peer does not answer the reporter, with whom it is connected: it will hardly answer us. */
void ibshift_nv_reported(struct ibshift_net *net, uint32_t peer, uint32_t reporter)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    struct ibshift_connection *c = peer < nv->options.peers ? ibshift_nv_peer(nv, peer) : NULL;

    if (c != NULL && c->reported == 0 && c->status == 0) {
        c->reported = ibshift_net_now(&nv->net);
        c->reporter = reporter;
    }
}

/* The peer has given a collective up: why, what began it. */
void ibshift_nv_cause_came(struct ibshift_connection *c, const struct ibshift_net_cause *why)
{
    ibshift_given_up_heard(c->net->net.given_up, c->peer, why);
    if (why->status < 0) {
        __atomic_store_n(&c->cause, (uint64_t)why->peer << 32 | (uint32_t)-why->status,
                         __ATOMIC_RELAXED); /* describe() looks at it */
    }
}

static void hear_bye(struct ibshift_connection *c, const struct ibshift_hello *hello)
{
    if (c->status == 0 && hello->status == -EMSGSIZE) {
        c->lengths[0] = (uint64_t)hello->max_eager << 32 | hello->word_key;
        c->lengths[1] = hello->word_address;
        ibshift_nv_break(c, -EMSGSIZE,
                         "it gave the connection up: a message has %llu bytes here and %llu there",
                         (unsigned long long)c->lengths[0], (unsigned long long)c->lengths[1]);
    } else if (c->status == 0 && hello->max_eager != 0) {
        struct ibshift_net_cause why = {.peer = hello->word_key,
                                        .status = -(int)(hello->max_eager & 0xffff)};
        ibshift_nv_cause_came(c, &why);
        ibshift_nv_break(c, -ECONNABORTED,
                         "it gave a collective up while this process could write into its buffer");
    } else {
        ibshift_nv_break(c, -ECONNRESET, "it gave the connection up: %s", strerror(-hello->status));
    }
}

/* About a third one. */
static void say_about(struct ibshift_connection *c, uint8_t kind, uint32_t about)
{
    struct ibshift_hello h = {.kind = kind,
                              .from_incarnation = c->net->verbs->blob.incarnation,
                              .to_incarnation = c->card.incarnation,
                              .from_peer = c->net->options.self,
                              .to_peer = c->peer,
                              .word_key = about};

    if (c->card.ports != 0) {
        ibshift_nv_ud_send(c, &h);
    }
}

static const char *how_it_ended(const struct ibshift_net_verbs *nv, uint32_t peer)
{
    return nv->options.has_ended != NULL ? nv->options.has_ended(nv->options.context, peer) : NULL;
}

/* A connection that nobody waits on is not probed; this does it, for whoever asks the next time. */
static void hear_who(struct ibshift_connection *c, uint32_t about)
{
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_connection *known = ibshift_nv_peer_known(nv, about);

    if (about == nv->options.self || about >= nv->options.peers) {
        return;
    }
    if ((known != NULL && known->status == -ETIMEDOUT) || how_it_ended(nv, about) != NULL ||
        ibshift_given_up_is_dead(nv->net.given_up, about)) {
        say_about(c, IBSHIFT_HELLO_GONE, about);
    } else if (known != NULL && known->state == IBSHIFT_CONNECTION_READY) {
        ibshift_nv_tell(known);
    }
}

static void hear_gone(struct ibshift_connection *c, uint32_t about)
{
    const struct ibshift_connection *known = ibshift_nv_peer_known(c->net, about);

    if (known != NULL && known->asked > 0) {
        ibshift_nv_reported(&c->net->net, about, c->peer);
    }
}

/* A datagram came. */
static void hello_came(struct ibshift_net_verbs *nv, const struct ibshift_hello *hello,
                       const struct ibshift_verbs_source *source)
{
    struct ibshift_connection *c = sender_of(nv, hello, source);

    if (c == NULL) {
        return;
    }
    switch (hello->kind) {
    case IBSHIFT_HELLO_CONNECT:
        hear_connect(c, hello);
        break;
    case IBSHIFT_HELLO_ASK:
        hear_ask(c, hello->credits);
        break;
    case IBSHIFT_HELLO_WHO:
        hear_who(c, hello->word_key);
        break;
    case IBSHIFT_HELLO_GONE:
        hear_gone(c, hello->word_key);
        break;
    default:
        hear_bye(c, hello);
    }
}

/*
 * Who may know of a peer that does not answer: its neighbours in rank, which mostly share its host,
 * then whoever is known here. Each is asked twice, since the first time may only begin a probe.
 */
static struct ibshift_connection *next_witness(struct ibshift_connection *c)
{
    struct ibshift_net_verbs *nv = c->net;
    uint32_t i = c->asked++ / 2, step = i / 2 + 1;
    uint32_t neighbour = i % 2 == 0 ? c->peer - step : c->peer + step; /* below 0: no such peer */

    if (i >= 2 * NEIGHBOURS) {
        return nv->connections[(i - 2 * NEIGHBOURS) % nv->connection_count];
    }
    return neighbour < nv->options.peers ? ibshift_nv_peer(nv, neighbour) : NULL;
}

static void ask_around(struct ibshift_connection *c)
{
    struct ibshift_connection *witness;

    if (c->reported != 0 || c->net->time - c->began < patience) {
        return;
    }
    witness = next_witness(c);
    if (witness != NULL && witness != c && witness->status == 0) {
        say_about(witness, IBSHIFT_HELLO_WHO, c->peer);
    }
}

/* Nobody answers: has the process ended, or has another one found that it does not answer? */
static void look_for_death(struct ibshift_connection *c)
{
    struct ibshift_net_verbs *nv = c->net;
    const char *how = how_it_ended(nv, c->peer);

    if (how != NULL) {
        ibshift_nv_break(c, -ETIMEDOUT, "its process has ended before it was connected (%s)", how);
    } else if (c->reported != 0 && nv->time - c->reported > report_pause &&
               nv->time - c->began > report_pause) {
        ibshift_nv_break(c, -ETIMEDOUT,
                         "no answer to the first message, and it does not answer peer %u either",
                         c->reporter);
    }
}

/* Repeats what was not answered. */
void ibshift_nv_wireup_poll(struct ibshift_net_verbs *nv)
{
    ibshift_nv_ud_poll(nv, hello_came);
    if (nv->time < nv->next_tick) {
        return;
    }
    nv->next_tick = nv->time + tick_pause;
    for (uint32_t i = 0; i < nv->connection_count && nv->shaking > 0; i++) {
        struct ibshift_connection *c = nv->connections[i];
        if (c->state == IBSHIFT_CONNECTION_SHAKING) {
            nv->noise = nv->noise * 1664525u + 1013904223u;
            unsigned todo = ibshift_handshake_tick(&c->shake, nv->time, nv->noise >> 24);
            act(c, todo);
            if (todo != 0) {
                look_for_death(c);
                ask_around(c);
            }
        }
    }
}
