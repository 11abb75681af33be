/*
 * Other processes of the host: found by their cards, met with the first message, lost in one way;
 * the notes about messages with them, and the news that goes to them.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "net/node/private.h"

enum { PASSES = 5, MANY = 64 * 1024 }; /* of the kernel's copy that is measured */

static void unlink_note(struct ibshift_node_note *note)
{
    struct ibshift_node_list *list = note->list;

    if (list == NULL) {
        return;
    }
    *(note->previous != NULL ? &note->previous->next : &list->first) = note->next;
    *(note->next != NULL ? &note->next->previous : &list->last) = note->previous;
    note->list = NULL;
}

void ibshift_nn_note_move(struct ibshift_node_list *list, struct ibshift_node_note *note)
{
    unlink_note(note);
    note->list = list;
    note->next = NULL;
    note->previous = list->last;
    *(list->last != NULL ? &list->last->next : &list->first) = note;
    list->last = note;
}

static struct ibshift_node_note *note_new(struct ibshift_node_peer *peer,
                                          enum ibshift_node_note_kind kind,
                                          const struct ibshift_net_key *key)
{
    struct ibshift_node_note *note = peer->net->free_notes;

    if (note != NULL) {
        peer->net->free_notes = note->next;
    } else if ((note = malloc(sizeof(*note))) == NULL) {
        return NULL;
    }
    *note = (struct ibshift_node_note){
        .match = {.peer = peer->number, .key = *key}, .peer = peer, .kind = (uint8_t)kind};
    return note;
}

struct ibshift_node_note *ibshift_nn_note_post(struct ibshift_node_peer *peer,
                                               enum ibshift_node_note_kind kind,
                                               const struct ibshift_net_message *m)
{
    struct ibshift_node_note *note = note_new(peer, kind, &m->key);

    if (note != NULL) {
        note->buffer = m->buffer;
        note->length = m->length;
        note->cookie = m->cookie;
    }
    return note;
}

struct ibshift_node_note *ibshift_nn_remember(struct ibshift_node_peer *peer,
                                              enum ibshift_node_note_kind kind,
                                              const struct ibshift_net_key *key, uint64_t length)
{
    struct ibshift_node_note *note = note_new(peer, kind, key);

    if (note == NULL) {
        ibshift_nn_break(peer, -ENOMEM, "out of memory");
        return NULL;
    }
    note->length = length;
    ibshift_nn_note_move(&peer->resting, note);
    if (kind != IBSHIFT_NODE_NEWS) {
        ibshift_nn_enter(note);
    }
    return note;
}

void ibshift_nn_enter(struct ibshift_node_note *note)
{
    struct ibshift_net_node *nn = note->peer->net;

    ibshift_match_add(note->kind <= IBSHIFT_NODE_OFFERED ? &nn->rx : &nn->tx, &note->match);
}

void ibshift_nn_note_free(struct ibshift_node_note *note)
{
    struct ibshift_net_node *nn = note->peer->net;

    ibshift_match_remove(&note->match);
    unlink_note(note);
    if (note->kind == IBSHIFT_NODE_HELD) {
        ibshift_nn_drop_buffer(note);
    }
    note->next = nn->free_notes;
    nn->free_notes = note;
}

bool ibshift_nn_close_share(struct ibshift_node_note *recv)
{
    static const uint64_t all = (UINT64_C(1) << IBSHIFT_NODE_SHARE_BITS) - 1;
    uint64_t was, turn = ibshift_nn_turn(recv);

    if (recv->share == 0) {
        return false;
    }
    was = atomic_exchange(ibshift_nn_taken(recv), turn | all) - turn;
    recv->peer->shares &= ~(1u << recv->share % IBSHIFT_NODE_SHARES);
    recv->share = 0;
    return was != recv->done;
}

/* Its event follows with the next poll. */
void ibshift_nn_note_end(struct ibshift_node_note *note, int status)
{
    struct ibshift_net_node *nn = note->peer->net;

    ibshift_match_remove(&note->match);
    if (note->kind == IBSHIFT_NODE_RECV) {
        (void)ibshift_nn_close_share(note);
    }
    if (note->is_counted) {
        nn->longs--;
        note->peer->longs--;
    }
    note->status = status;
    ibshift_nn_note_move(&nn->ended, note);
}

void ibshift_nn_drop_held(struct ibshift_node_note *note)
{
    ibshift_nn_give_back(note->peer, note->length);
    ibshift_nn_note_free(note);
}

static uint32_t slot_of(const struct ibshift_net_node *nn, uint32_t number)
{
    uint32_t slot = number * 0x9e3779b1u & nn->place_mask;

    while (nn->places[slot].peer != 0 && nn->places[slot].peer != number + 1) {
        slot = (slot + 1) & nn->place_mask;
    }
    return slot;
}

static struct ibshift_node_peer *add(struct ibshift_net_node *nn, uint32_t number, uint32_t slot)
{
    struct ibshift_node_card card;
    struct ibshift_node_peer *peer;

    if (nn->options.card(nn->options.context, number, &card) != 0 ||
        !ibshift_node_is_near(&nn->card, &card) || nn->peers[card.place] != NULL ||
        (peer = calloc(1, sizeof(*peer))) == NULL) {
        return NULL;
    }
    peer->net = nn;
    peer->number = number;
    peer->card = card;
    peer->at_once = peer->gauge.last_limit = ibshift_node_short(nn->card.ring);
    peer->in = ibshift_node_box(nn->own.base, card.place, nn->card.ring);
    nn->peers[card.place] = peer;
    nn->met[nn->met_count++] = card.place;
    nn->places[slot].peer = number + 1;
    nn->places[slot].place = card.place;
    return peer;
}

/* NULL: it is not on this host, or there is no memory. */
struct ibshift_node_peer *ibshift_nn_peer(struct ibshift_net_node *nn, uint32_t number)
{
    uint32_t slot;

    if (nn->last != NULL && nn->last->number == number) {
        return nn->last;
    }
    slot = slot_of(nn, number);
    nn->last =
        nn->places[slot].peer != 0 ? nn->peers[nn->places[slot].place] : add(nn, number, slot);
    return nn->last;
}

static void say_copies(struct ibshift_net_node *nn, int error)
{
    char line[320];

    if (nn->has_said_copy || nn->options.say == NULL) {
        return;
    }
    nn->has_said_copy = true;
    snprintf(line, sizeof(line),
             "the kernel does not copy between processes of this host (process_vm_readv: %s): long "
             "messages go through shared memory, which is slower. A container's seccomp profile or "
             "kernel.yama.ptrace_scope may forbid it",
             strerror(error));
    nn->options.say(nn->options.context, line);
}

/* Read its secret where its card says that it is: so the pid means that process, and we may. */
bool ibshift_nn_can_copy(struct ibshift_node_peer *peer)
{
    struct ibshift_net_node *nn = peer->net;
    uint64_t found = 0;
    struct iovec here = {.iov_base = &found, .iov_len = sizeof(found)};
    struct iovec there = {.iov_base = (void *)(uintptr_t)peer->card.secret_at,
                          .iov_len = sizeof(found)};

    if (peer->reach == IBSHIFT_NODE_UNTRIED) {
        bool can = nn->options.may_copy &&
                   process_vm_readv((pid_t)peer->card.pid, &here, 1, &there, 1, 0) ==
                       (ssize_t)sizeof(found) &&
                   found == peer->card.secret;

        if (!can && nn->options.may_copy) {
            say_copies(nn, found != 0 ? ESRCH : errno);
        }
        peer->reach = can ? IBSHIFT_NODE_CAN : IBSHIFT_NODE_CANNOT;
    }
    return peer->reach == IBSHIFT_NODE_CAN;
}

/* ns that the kernel takes to copy so many bytes within this process, the least of some; INFINITY: it
 * does not. */
static double kernel_takes(struct ibshift_net_node *nn, uint8_t *from, uint8_t *to, size_t n)
{
    struct iovec there = {.iov_base = from, .iov_len = n}, here = {.iov_base = to, .iov_len = n};
    double least = INFINITY;

    for (int i = 0; i < PASSES; i++) {
        uint64_t begin = ibshift_net_now(&nn->net);

        if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != (ssize_t)n) {
            return INFINITY;
        }
        least = fmin(least, (double)(ibshift_net_now(&nn->net) - begin));
    }
    return least;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* INFINITY where it does not copy, or there is no memory to try it with. */
static void time_kernel(struct ibshift_net_node *nn)
{
    uint8_t *memory = malloc(2 * MANY);
    double few = INFINITY, many = INFINITY;

    if (memory != NULL) {
        memset(memory, 1, 2 * MANY);
        few = kernel_takes(nn, memory, memory + MANY, IBSHIFT_NODE_LIMIT_LEAST);
        many = kernel_takes(nn, memory, memory + MANY, MANY);
    }
    free(memory);
    nn->kernel.byte =
        many < INFINITY ? fmax(0, many - few) / (MANY - IBSHIFT_NODE_LIMIT_LEAST) : INFINITY;
    nn->kernel.call = fmax(0, few - nn->kernel.byte * IBSHIFT_NODE_LIMIT_LEAST);
}

/*
 * From how many bytes on does the kernel take less time for all of its copy than a copy into a ring
 * takes, whose every line the reader's processor has to give up? The kernel has a call and then the
 * bytes, and what is told before and after takes about as long as the call. ring: ns for a byte.
 */
static uint64_t crossing(struct ibshift_net_node *nn, double ring)
{
    double most = (double)ibshift_node_short(nn->card.ring);

    if (nn->kernel.byte == 0) {
        time_kernel(nn);
    }
    if (ring > nn->kernel.byte) {
        most = fmin(most,
                    fmax(IBSHIFT_NODE_LIMIT_LEAST, 2 * nn->kernel.call / (ring - nn->kernel.byte)));
    }
    return (uint64_t)most;
}

/* Nothing longer goes to it at once from now on; what is tried may be for any peer. */
void ibshift_nn_limit(struct ibshift_node_peer *peer, uint64_t most)
{
    struct ibshift_net *net = &peer->net->net;

    peer->at_once = most < peer->at_once ? most : peer->at_once;
    net->max_tried = peer->at_once < net->max_tried ? peer->at_once : net->max_tried;
}

/* One median may be that of a moment in which others had the processor: two of them must agree. */
void ibshift_nn_gauge_add(struct ibshift_node_peer *peer, double took)
{
    struct ibshift_node_gauge *gauge = &peer->gauge;
    uint64_t limit;

    gauge->took[gauge->count++] = took;
    if (gauge->count < IBSHIFT_NODE_SAMPLES) {
        return;
    }
    qsort(gauge->took, IBSHIFT_NODE_SAMPLES, sizeof(gauge->took[0]), compare);
    limit = crossing(peer->net, gauge->took[IBSHIFT_NODE_SAMPLES / 2]);
    ibshift_nn_limit(peer, limit > gauge->last_limit ? limit : gauge->last_limit);
    gauge->last_limit = limit;
    gauge->count = 0;
    gauge->rounds = ibshift_nn_is_ring_dear(peer) ? IBSHIFT_NODE_ROUNDS : gauge->rounds + 1;
}

/* Of the peer's lists: those that are ready last, for taking a grant back changes them. */
void ibshift_nn_each(struct ibshift_node_peer *peer,
                     void (*visit)(struct ibshift_node_note *note, const void *context),
                     const void *context)
{
    struct ibshift_node_list *lists[] = {&peer->resting, &peer->helping, &peer->waiting,
                                         &peer->ready};
    struct ibshift_node_note *next;
    int status = peer->status;

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        for (struct ibshift_node_note *note = lists[i]->first; note != NULL; note = next) {
            next = note->next;
            visit(note, context);
            if (peer->status != status) {
                return; /* the visit has broken the peer, which has ended all its notes */
            }
        }
    }
}

static void end_or_free(struct ibshift_node_note *note, const void *status)
{
    if (ibshift_nn_is_posted(note)) {
        ibshift_nn_note_end(note, *(const int *)status);
    } else {
        ibshift_nn_note_free(note);
    }
}

void ibshift_nn_fill(struct ibshift_node_peer *peer, struct ibshift_node_cell *cell,
                     enum ibshift_node_kind kind, const struct ibshift_net_key *key,
                     uint64_t length, uint64_t address)
{
    cell->grant.length = length;
    cell->grant.address = address;
    ibshift_node_publish(peer, cell, kind, 0, 0, key);
}

/* 0, or -EAGAIN: there is no room now. */
int ibshift_nn_put_news(struct ibshift_node_peer *peer, enum ibshift_node_kind kind,
                        const struct ibshift_net_key *key, uint64_t length, uint64_t address)
{
    struct ibshift_node_cell *cell = ibshift_node_next_cell(peer);

    if (cell == NULL) {
        return -EAGAIN;
    }
    ibshift_nn_fill(peer, cell, kind, key, length, address);
    return 0;
}

/* What it has written before it ended counts: callers take its cells first. */
void ibshift_nn_break(struct ibshift_node_peer *peer, int status, const char *format, ...)
{
    struct ibshift_net_node *nn = peer->net;
    static const struct ibshift_net_key no_key;
    va_list arguments;

    if (peer->status != 0) {
        return;
    }
    nn->net.given_up->has_failed = true;
    va_start(arguments, format);
    vsnprintf(peer->text, sizeof(peer->text), format, arguments);
    va_end(arguments);
    if (status != -EHOSTUNREACH && ibshift_nn_meet(peer) == 0 && /* else it cannot be told */
        ibshift_node_has_cells_of(peer, IBSHIFT_NODE_CELLS, 1)) {
        ibshift_nn_fill(peer, &peer->out.cells[peer->out_cells % IBSHIFT_NODE_CELLS],
                        IBSHIFT_NODE_BREAK, &no_key, (uint64_t)(int64_t)status, 0);
    } else {
        atomic_store_explicit(&peer->in.taken->is_lost, 1, memory_order_relaxed);
    }
    /* Who fetches sees the word before the buffers that end here can change. */
    atomic_thread_fence(memory_order_seq_cst);
    peer->status = status;
    ibshift_nn_each(peer, end_or_free, &status);
}

/* Before anything is sent: opens the peer's segment and says who comes. 0, or why it has failed. */
int ibshift_nn_meet(struct ibshift_node_peer *peer)
{
    struct ibshift_net_node *nn = peer->net;
    char why[160];
    int rc;

    if (peer->status != 0 || peer->theirs.base != NULL) {
        return peer->status;
    }
    rc =
        ibshift_node_segment_open(nn->options.folder, &peer->card, &peer->theirs, why, sizeof(why));
    if (rc != 0) {
        ibshift_nn_break(peer, -EHOSTUNREACH, "%s", why);
        return peer->status;
    }
    peer->out = ibshift_node_box(peer->theirs.base, nn->card.place, peer->card.ring);
    peer->out.cells[0].kind = IBSHIFT_NODE_HELLO;
    peer->out.cells[0].value = nn->options.self;
    atomic_store_explicit(&peer->out.cells[0].turn, ++peer->out_cells, memory_order_release);
    return 0;
}

/* Goes now, or as soon as there is room. */
void ibshift_nn_tell(struct ibshift_node_peer *peer, enum ibshift_node_kind kind,
                     const struct ibshift_net_key *key, uint64_t length, uint64_t address)
{
    struct ibshift_node_note *note;

    if (ibshift_nn_meet(peer) != 0) {
        return;
    }
    peer->net->stats.control++;
    if (peer->ready.first == NULL && ibshift_nn_put_news(peer, kind, key, length, address) == 0) {
        return;
    }
    note = ibshift_nn_remember(peer, IBSHIFT_NODE_NEWS, key, length);
    if (note != NULL) {
        note->news = (uint8_t)kind;
        note->target = address;
        ibshift_nn_note_move(&peer->ready, note);
    }
}

void ibshift_nn_mismatch(struct ibshift_node_peer *peer, const struct ibshift_net_key *key,
                         uint64_t here, uint64_t there)
{
    ibshift_nn_break(peer, -EMSGSIZE,
                     "message %u of collective %u on communicator %u has %llu bytes here and %llu "
                     "there",
                     key->tag, key->seq, ibshift_net_comm(key->comm), (unsigned long long)here,
                     (unsigned long long)there);
}

bool ibshift_nn_check_alive(struct ibshift_node_peer *peer)
{
    if (ibshift_nn_meet(peer) != 0) {
        return false;
    }
    if (!ibshift_node_segment_is_alive(&peer->theirs)) {
        peer->net->take(peer);
        ibshift_nn_break(peer, -ETIMEDOUT, "the process has ended");
    } else if (atomic_load_explicit(&peer->out.taken->is_lost, memory_order_acquire) != 0) {
        peer->net->take(peer);
        ibshift_nn_break(peer, -ECONNRESET, "it cannot use this process's shared memory");
    }
    return peer->status == 0;
}
