/* The verbs net as net.h sees it: made, taken down, collectives given up, a peer in words. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "net/verbs/choice.h"
#include "net/verbs/inside.h"

const struct ibshift_net_verbs_options ibshift_net_verbs_defaults = {
    .memory = 8 << 20,
    .max_eager = 16384,
    .queue = 64,
    .inlined = 128,
    .rings = 16,
    .timeout = 14,
    .retry = 6, /* 7 is without end on Soft-RoCE */
};

static int net_send(struct ibshift_net *net, const struct ibshift_net_message *m)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    struct ibshift_connection *c = ibshift_nv_peer(nv, m->peer);

    if (c == NULL) {
        return -EHOSTUNREACH;
    }
    if (c->status != 0) {
        return c->status;
    }
    if (ibshift_given_up_by(nv->net.given_up, m->peer, &m->key)) {
        return -ECONNABORTED;
    }
    if (m->cast != NULL) {
        return ibshift_nv_cast_send(nv, m);
    }
    return m->length <= net->max_eager ? ibshift_nv_send_short(c, m) : ibshift_nv_send_long(c, m);
}

static int net_recv(struct ibshift_net *net, const struct ibshift_net_message *m)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    struct ibshift_connection *c = ibshift_nv_peer(nv, m->peer);

    if (c == NULL) {
        return -EHOSTUNREACH;
    }
    if (ibshift_given_up_by(nv->net.given_up, m->peer, &m->key)) {
        return -ECONNABORTED;
    }
    if (c->status != 0) {
        return c->status;
    }
    return m->cast != NULL ? ibshift_nv_cast_recv(c, m) : ibshift_nv_recv(c, m);
}

/* Visits notes that may end; the sender is told of those that were held. */
static void visit_all(struct ibshift_connection *c,
                      void (*visit)(struct ibshift_note *note, void *context), void *context)
{
    uint32_t held = c->in.held + c->in.ring_held;

    ibshift_nv_each(c, visit, context);
    if (c->in.held + c->in.ring_held != held) {
        ibshift_nv_held_ended(c); /* may find the connection broken, and end all notes */
    }
}

struct cancelled {
    uint32_t comm, seq;
    bool must_break; /* a buffer is granted or half written */
};

/* Ends what can end now, marks the rest. */
static void cancel_note(struct ibshift_note *n, void *context)
{
    struct cancelled *cancelled = context;

    if (n->kind == IBSHIFT_NOTE_CONTROL ||
        !ibshift_net_is_of(&n->match.key, cancelled->comm, cancelled->seq)) {
        return;
    }
    if (!ibshift_note_is_with_device(n)) {
        ibshift_nv_note_end(n, -ECANCELED);
    } else if (n->kind != IBSHIFT_NOTE_LONG || n->done < n->length) {
        n->is_cancelled = true;
        cancelled->must_break = true;
    }
}

static void net_cancel(struct ibshift_net *net, uint32_t comm, uint32_t seq)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    const struct ibshift_given_up_comm *known = ibshift_given_up_comm(net->given_up, comm);

    ibshift_given_up_add_here(net->given_up, comm, seq);
    for (uint32_t i = 0; i < nv->connection_count; i++) {
        struct ibshift_connection *c = nv->connections[i];
        struct cancelled cancelled = {.comm = comm, .seq = seq};

        visit_all(c, cancel_note, &cancelled);
        if (cancelled.must_break) {
            c->root = known != NULL ? known->root : c->root;
            ibshift_nv_break(c, -ECONNRESET,
                             "collective %u on communicator %u was given up "
                             "while the peer could write into its buffer",
                             seq, comm);
        }
    }
}

/* What a peer gave up because of another one began with that one. */
static struct ibshift_net_cause root_of(const struct ibshift_net_verbs *nv,
                                        const struct ibshift_net_cause *why)
{
    const struct ibshift_connection *c = ibshift_nv_peer_known(nv, why->peer);

    if (why->status != -ECONNABORTED || c == NULL || c->cause == 0) {
        return *why;
    }
    return (struct ibshift_net_cause){.peer = (uint32_t)(c->cause >> 32),
                                      .status = -(int32_t)(c->cause & 0xffff)};
}

static void net_give_up(struct ibshift_net *net, uint32_t comm, const struct ibshift_net_cause *why)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    struct ibshift_net_cause root = root_of(nv, why);

    ibshift_given_up_add_comm(nv->net.given_up, comm, why, &root);
}

static void net_abort(struct ibshift_net *net, uint32_t peer, const struct ibshift_net_key *key,
                      const struct ibshift_net_cause *why)
{
    const struct ibshift_wire_grant body = {.id = why->peer, .pieces = (uint32_t)-why->status};
    struct ibshift_connection *c = ibshift_nv_peer(ibshift_nv(net), peer);

    if (c == NULL || c->status != 0) {
        return; /* a broken connection tells the peer by itself */
    }
    ibshift_nv_connect(c);
    if (c->status == 0) {
        ibshift_nv_control(c, key, IBSHIFT_WIRE_ABORT, &body);
    }
}

/* It may have come before this side knew what it calls itself, and its sender may have forgotten. */
static bool has_sent_unlike(struct ibshift_connection *c, uint32_t comm, uint32_t seq)
{
    for (const struct ibshift_note *n = c->resting.first; n != NULL; n = n->next) {
        if (ibshift_net_is_of(&n->match.key, comm, seq) && n->match.key.comm != comm) {
            return ibshift_given_up_unlike(&c->net->net, c->peer, &n->match.key);
        }
    }
    return false;
}

static bool net_ask_after(struct ibshift_net *net, uint32_t peer, uint32_t comm, uint32_t seq)
{
    struct ibshift_connection *c = ibshift_nv_peer_known(ibshift_nv(net), peer);
    struct ibshift_net_key key = {.comm = comm, .seq = seq};

    if (c == NULL || c->state != IBSHIFT_CONNECTION_READY || has_sent_unlike(c, comm, seq) ||
        c->ready.first != NULL) {
        return false;
    }
    ibshift_nv_control(c, &key, IBSHIFT_WIRE_ASK, NULL);
    return true;
}

/* Early messages, and early requests for messages, of a communicator that is gone. */
static void drop_early(struct ibshift_note *n, void *comm)
{
    if (ibshift_net_comm(n->match.key.comm) == *(const uint32_t *)comm &&
        (n->kind == IBSHIFT_NOTE_HELD ||
         (n->kind == IBSHIFT_NOTE_GRANT &&
          (n->is_pulled || (n->to.pieces & IBSHIFT_GRANT_PIECES) != 0)))) {
        ibshift_nv_note_end(n, 0);
    }
}

static void net_forget(struct ibshift_net *net, uint32_t comm)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);

    ibshift_nv_standing_forget(nv, comm);
    if (!ibshift_given_up_forget(nv->net.given_up, comm)) {
        return; /* nothing ever failed: all messages have met */
    }
    for (uint32_t i = 0; i < nv->connection_count; i++) {
        visit_all(nv->connections[i], drop_early, &comm);
    }
}

/* A peer in words. */

static void address_text(const struct ibshift_verbs_address *a, unsigned path, char *out,
                         size_t size)
{
    char gid[46];

    if (a->is_ethernet) {
        snprintf(out, size, "%s", ibshift_gid_text(a->gid, gid));
    } else {
        snprintf(out, size, "lid %u gid %s", a->lid + path, ibshift_gid_text(a->gid, gid));
    }
}

static const char *state_text(const struct ibshift_connection *c)
{
    switch (c->state) {
    case IBSHIFT_CONNECTION_IDLE:
        return "not connected";
    case IBSHIFT_CONNECTION_SHAKING:
        return c->shake.has_theirs
                   ? "connecting: it has not confirmed yet"
                   : "connecting: no answer yet (it has not entered a collective, has died, or the "
                     "network does not carry datagrams to it: ibping, ping, GID index)";
    default:
        return "connected, no error so far";
    }
}

/* May run beside any other call: reads what is written once, and status before text. */
static void net_describe(struct ibshift_net *net, uint32_t peer, char *text, size_t size)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    struct ibshift_connection *c = ibshift_nv_peer_known(nv, peer);
    char mine[80], theirs[80], ports[160], strangers[96] = "", given_up[128] = "";

    if (c == NULL) {
        snprintf(text, size, "peer %u: nothing was sent to it or received from it", peer);
        return;
    }
    const char *what = state_text(c);
    uint64_t cause = __atomic_load_n(&c->cause, __ATOMIC_RELAXED);
    if (cause != 0) {
        snprintf(given_up, sizeof(given_up), "; it failed with peer %u: %s",
                 (uint32_t)(cause >> 32),
                 (cause & 0xffff) == EBADMSG ? "another collective is called there"
                                             : strerror((int)(cause & 0xffff)));
    }
    if (__atomic_load_n(&c->status, __ATOMIC_ACQUIRE) != 0) {
        what = c->text != NULL ? c->text : "out of memory";
    }
    if (c->card.ports == 0) {
        snprintf(text, size, "peer %u: %s", peer, what);
        return;
    }
    if (c->state == IBSHIFT_CONNECTION_SHAKING && nv->strangers > 0) {
        snprintf(strangers, sizeof(strangers),
                 "; %u datagrams here did not come from the address of their sender",
                 nv->strangers);
    }
    ibshift_verbs_describe(nv->verbs, ports, sizeof(ports));
    address_text(&nv->verbs->blob.address[0], 0, mine, sizeof(mine));
    address_text(&c->card.address[0], c->path, theirs, sizeof(theirs));
    snprintf(text, size,
             "peer %u on %s (%s, queue pair 0x%x) from %s (%s, queue pair 0x%x): %s%s%s", peer,
             c->card.hostname, theirs, c->their_qpn, ports, mine, c->my_qpn, what, given_up,
             strangers);
}

static void net_destroy(struct ibshift_net *net)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);

    ibshift_nv_shut(nv);
    free(nv);
}

/* A struct ibshift_net_mem is a struct ibshift_region of ours. */
static int net_mem_register(struct ibshift_net *net, void *base, size_t length,
                            struct ibshift_net_mem **mem)
{
    return ibshift_nv_region_get(ibshift_nv(net), base, length, (struct ibshift_region **)mem);
}

static void net_mem_release(struct ibshift_net *net, struct ibshift_net_mem *mem)
{
    ibshift_nv_region_put(ibshift_nv(net), (struct ibshift_region *)mem);
}

static struct ibshift_net_channel *channel(struct ibshift_net *net, uint32_t peer)
{
    struct ibshift_connection *c = ibshift_nv_peer(ibshift_nv(net), peer);

    if (c == NULL) {
        return NULL;
    }
    c->channel = (struct ibshift_net_channel){.try_send = ibshift_nv_try_send,
                                              .try_recv = ibshift_nv_try_recv};
    return &c->channel;
}

static const struct ibshift_net_ops ops = {
    .send = net_send,
    .recv = net_recv,
    .channel = channel,
    .poll = ibshift_nv_poll,
    .cancel = net_cancel,
    .abort = net_abort,
    .give_up = net_give_up,
    .has_given_up = ibshift_given_up_why,
    .enter = ibshift_given_up_enter,
    .ask = net_ask_after,
    .forget = net_forget,
    .revoke = ibshift_nv_standing_revoke,
    .mem_register = net_mem_register,
    .mem_release = net_mem_release,
    .describe = net_describe,
    .destroy = net_destroy,
};

static const struct ibshift_nv_senders senders = {
    .send_note = ibshift_nv_send_note, .write = ibshift_nv_write, .repair = ibshift_nv_cast_repair};

static int create(struct ibshift_verbs *verbs, const struct ibshift_net_verbs_options *options,
                  struct ibshift_net **net, char *error, size_t error_size)
{
    const char *what = "";
    struct ibshift_net_verbs *nv = calloc(1, sizeof(*nv));

    if (nv == NULL) {
        snprintf(error, error_size, "out of memory");
        return -ENOMEM;
    }
    nv->net.ops = &ops;
    nv->given_up.comms = options->comms;
    nv->given_up.owner = &nv->net;
    nv->given_up.heard_dead = ibshift_nv_reported;
    ibshift_given_up_open(&nv->net, &nv->given_up);
    nv->net.ungranted = &nv->ungranted;
    nv->senders = &senders;
    nv->net.max_eager = nv->net.max_tried = options->max_eager;
    nv->verbs = verbs;
    nv->options = *options;
    nv->asking_end = &nv->asking;
    nv->blocked_end = &nv->blocked;
    nv->plain.request.opcode = IBV_WR_RDMA_WRITE;
    nv->plain.request.send_flags = IBV_SEND_INLINE;
    nv->plain.request.sg_list = &nv->plain.sge;
    nv->plain.request.num_sge = 1;
    nv->noise = (uint32_t)verbs->blob.incarnation;
    nv->time = ibshift_net_now(&nv->net);
    int rc = ibshift_nv_open(nv, &what);
    if (rc != 0) {
        snprintf(error, error_size, "%s: %s", what, strerror(-rc));
        net_destroy(&nv->net);
        return rc;
    }
    *net = &nv->net;
    return 0;
}

/* Where the limit of locked memory is the usual reason. */
static void add_advice(size_t memory, char *error, size_t size)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    size_t length = strlen(error);
    char now[32] = "unlimited";

    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur != RLIM_INFINITY) {
        snprintf(now, sizeof(now), "%llu KiB", (unsigned long long)limit.rlim_cur >> 10);
    }
    snprintf(
        error + length, size - length,
        "; %zu KiB and the queues must fit into locked memory (limit here: %s): raise ulimit -l to "
        "unlimited by docker's --ulimit memlock=-1, memlock in PAM's limits.d, or systemd's "
        "LimitMEMLOCK=infinity, of slurmd too",
        memory >> 10, now);
}

/* By registering the arena once more: what counts against a limit, and whether it holds for this
   process, nobody tells. */
static size_t find_left(struct ibshift_net_verbs *nv)
{
    struct ibshift_region region;
    size_t left = nv->arena_size;

    while (left > IBSHIFT_RING_BYTES &&
           ibshift_region_register(nv->verbs, nv->arena, left, &region) != 0) {
        left -= left / 8;
    }
    if (left > IBSHIFT_RING_BYTES) {
        (void)ibshift_region_deregister(&region);
    }
    return left;
}

/* Of what is left the users' buffers get half, since queue pairs that come later need locked memory,
   too, and buffers can do without: they are copied. 0: no limit is near. */
static size_t most_of_users(struct ibshift_net_verbs *nv, size_t asked)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    size_t locked = nv->arena_size * (size_t)nv->lane_count, left;

    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY && nv->arena_size == asked) {
        return 0;
    }
    left = find_left(nv);
    if (left == nv->arena_size) { /* or more: as much as the limit says, if it holds */
        bool holds = limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur > 2 * locked;
        return holds ? (limit.rlim_cur - locked) / 2 / (size_t)nv->lane_count : 0;
    }
    return left / 2;
}

/* A container's limit may be as large as our default, with nothing left for queues: less memory
   costs credits, no memory costs everything. */
int ibshift_net_verbs_create(struct ibshift_verbs *verbs,
                             const struct ibshift_net_verbs_options *options,
                             struct ibshift_net **net, char *error, size_t error_size)
{
    struct ibshift_net_verbs_options less = *options;
    size_t least = ibshift_net_verbs_memory_min(options);
    int rc = create(verbs, &less, net, error, error_size);
    while (rc == -ENOMEM && less.memory > least) {
        less.memory = less.memory / 2 > least ? less.memory / 2 : least;
        rc = create(verbs, &less, net, error, error_size);
    }
    if (rc == 0) {
        error[0] = '\0';
        verbs->regions_most = most_of_users(ibshift_nv(*net), options->memory);
    }
    if (rc == 0 && less.memory < options->memory) {
        snprintf(error, error_size, "only %zu KiB of memory are registered", less.memory >> 10);
        add_advice(options->memory, error, error_size);
    } else if (rc == -ENOMEM) {
        add_advice(less.memory, error, error_size);
    }
    return rc;
}

void ibshift_net_verbs_stats(struct ibshift_net *net, struct ibshift_net_verbs_stats *stats)
{
    *stats = ibshift_nv(net)->stats;
}
