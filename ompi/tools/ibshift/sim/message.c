/* What becomes of a message of the simulated net, from its post to the notices of both its ends. */
#include "sim/net.h"

#include "fabric/graph/random.h"

/* Messages by sender, receiver and key: chains in a table that grows with their number. */

static uint32_t bucket_of(const struct sim_net *n, uint32_t from, uint32_t to,
                          const struct ibshift_net_key *key)
{
    uint64_t h = ((uint64_t)from << 32 | to) * 0x9e3779b97f4a7c15ull;

    h ^= ((uint64_t)key->seq << 32 | key->tag) * 0xc2b2ae3d27d4eb4full;
    h ^= h >> 29;
    h = (h + key->comm) * 0x165667b19e3779f9ull;
    return (uint32_t)(h >> 32) & (n->room - 1);
}

uint32_t sim_message_find(const struct sim_net *n, uint32_t from, uint32_t to,
                          const struct ibshift_net_key *key)
{
    uint32_t i;

    if (n->room == 0) {
        return SIM_NO_MESSAGE;
    }
    i = n->heads[bucket_of(n, from, to, key)];
    while (i != SIM_NO_MESSAGE) {
        const struct sim_message *m = &n->messages[i];

        if (m->from == from && m->to == to && memcmp(&m->key, key, sizeof(*key)) == 0) {
            break;
        }
        i = m->next;
    }
    return i;
}

static void put(struct sim_net *n, uint32_t message)
{
    struct sim_message *m = &n->messages[message];
    uint32_t *head = &n->heads[bucket_of(n, m->from, m->to, &m->key)];

    m->next = *head;
    *head = message;
}

/* Twice the room, for messages and buckets alike. */
static void grow(struct sim_net *n)
{
    n->messages = sim_grown(n->messages, &n->room, sizeof(*n->messages));
    free(n->heads);
    n->heads = sim_zeroed(n->room, sizeof(*n->heads));
    memset(n->heads, 0xff, n->room * sizeof(*n->heads)); /* SIM_NO_MESSAGE */
    for (uint32_t i = 0; i < n->used; i++) {
        if (n->messages[i].flags != 0 || n->messages[i].pending > 0) {
            put(n, i);
        }
    }
}

uint32_t sim_message_make(struct sim_net *n, uint32_t from, uint32_t to,
                          const struct ibshift_net_key *key)
{
    uint32_t i = sim_message_find(n, from, to, key);

    if (i != SIM_NO_MESSAGE) {
        return i;
    }
    i = n->unused;
    if (i != SIM_NO_MESSAGE) {
        n->unused = n->messages[i].next;
    } else {
        if (n->used == n->room) {
            grow(n);
        }
        i = n->used++;
    }
    n->messages[i] = (struct sim_message){.from = from, .to = to, .key = *key};
    put(n, i);
    if (++n->known > n->stats.most) {
        n->stats.most = n->known;
    }
    return i;
}

static void message_drop(struct sim_net *n, uint32_t message)
{
    struct sim_message *m = &n->messages[message];
    uint32_t *link = &n->heads[bucket_of(n, m->from, m->to, &m->key)];

    while (*link != message) {
        link = &n->messages[*link].next;
    }
    *link = m->next;
    m->flags = 0;
    m->next = n->unused;
    n->unused = message;
    n->known--;
}

enum { SEEN_SOONEST = 500000, SEEN_SPREAD = 1000000 }; /* ps until a completion is seen */

/* The rank's next turn is at that time, or when its processor and host are free again. */
void sim_end_wake(struct sim_net *n, uint32_t rank, uint64_t time)
{
    struct sim_end *end = &n->ends[rank];

    time = time > end->at ? time : end->at;
    time = time > n->paused[end->node] ? time : n->paused[end->node];
    if (time < end->wake) {
        end->wake = time;
        sim_queue_at(n->queue, time, SIM_TURN, rank, 0);
    }
}

static void notify(struct sim_net *n, uint32_t rank, const struct sim_notice *notice)
{
    struct sim_end *end = &n->ends[rank];

    if (end->count == end->room) {
        end->notices = sim_ring_grown(end->notices, &end->room, end->oldest, sizeof(*end->notices));
    }
    end->notices[(end->oldest + end->count++) % end->room] = *notice;
    sim_end_wake(n, rank, n->queue->now);
}

static void notify_side(struct sim_net *n, const struct sim_message *m, int side)
{
    uint32_t own = side == SIM_SENDER ? m->from : m->to, other = m->from + m->to - own;

    notify(n, own,
           &(struct sim_notice){.cookie = m->cookie[side],
                                .peer = other - n->ends[own].job.first,
                                .granted = SIM_NO_MESSAGE});
}

void sim_message_forget(struct sim_net *n, uint32_t message)
{
    struct sim_message *m = &n->messages[message];
    bool is_held = (m->flags & SIM_ARRIVED) && !(m->flags & SIM_POSTED << SIM_RECEIVER);

    if (!is_held && !sim_is_open(m, SIM_SENDER) && !sim_is_open(m, SIM_RECEIVER) &&
        m->pending == 0) {
        free(m->held);
        message_drop(n, message);
    }
}

void sim_message_end(struct sim_net *n, uint32_t message, int side)
{
    struct sim_message *m = &n->messages[message];

    m->flags |= SIM_ENDED << side;
    notify_side(n, m, side);
    sim_message_forget(n, message);
}

/* In the sender's turn: it leaves after its jitter, or when the pause that it meets is over. */
void sim_message_start(struct sim_net *n, uint32_t message)
{
    struct sim_message *m = &n->messages[message];
    struct sim_end *end = &n->ends[m->from];
    uint64_t time = end->at;

    m->flags |= SIM_STARTED;
    if (n->options.jitter > 0) {
        time += (uint64_t)(ibshift_random_share(&n->random) * 2 * (double)n->options.jitter);
    }
    if (n->options.pause_share > 0 && ibshift_random_share(&n->random) < n->options.pause_share) {
        n->paused[end->node] = end->at + n->options.pause;
        n->stats.pauses++;
    }
    time = time > n->paused[end->node] ? time : n->paused[end->node];
    sim_queue_at(n->queue, time, SIM_START, message, 0);
}

/* Within a host. */
static void copy_message(struct sim_net *n, uint32_t message, size_t length)
{
    struct sim_end *from = &n->ends[n->messages[message].from];
    uint64_t *memory = &n->memory[from->node], now = n->queue->now;
    uint64_t begin = from->copied > now ? from->copied : now, end;

    end = begin + length * 8000000 / n->options.copy_rate;
    if (n->options.memory_rate > 0) {
        *memory = (*memory > begin ? *memory : begin) + length * 8000000 / n->options.memory_rate;
        end = end > *memory ? end : *memory;
    }
    from->copied = end;
    sim_queue_at(n->queue, end + n->options.copy_flight, SIM_LOCAL, message, 0);
}

/* Of the host that rank `to` is on, for what rank `from` sends there. */
static uint16_t lid_of(const struct sim_net *n, uint32_t from, uint32_t to)
{
    const struct sim_net_job *job = &n->ends[from].job;
    size_t cell = (size_t)(from - job->first) * job->ranks + (to - job->first);

    return (uint16_t)(ibshift_host_lid(n->graph, n->ends[to].host) +
                      (job->lid_offsets != NULL ? job->lid_offsets[cell] : job->lid_offset));
}

/* The whole message, or its next piece. */
static void enter_fabric(struct sim_net *n, uint32_t message)
{
    struct sim_message *m = &n->messages[message];
    struct sim_end *from = &n->ends[m->from];
    const struct sim_end *to = &n->ends[m->to];
    size_t length = m->length[SIM_SENDER] > 0 ? m->length[SIM_SENDER] : 1;
    size_t before = m->entered, left = length - before, piece;
    struct sim_flow flow = {.user = message, .from = from->host, .lid = lid_of(n, m->from, m->to)};

    m->pieces = before == 0 ? 1 : ibshift_net_pieces(m->pieces, from->in_pieces, m->beside);
    piece = m->piece > 0 ? m->piece * m->pieces : SIZE_MAX;
    flow.bytes = piece < left ? piece : left;
    flow.sl = sim_service_level(n->graph, flow.from, flow.lid, 0);
    m->entered += flow.bytes;
    if (from->node == to->node) {
        copy_message(n, message, length);
    } else {
        sim_fabric_send(n->fabric, &flow);
    }
}

void sim_message_grant(struct sim_net *n, uint32_t message)
{
    struct sim_message *m = &n->messages[message];
    bool is_beside = n->options.grant_bytes == 0 || n->ends[m->from].node == n->ends[m->to].node;

    m->pending++;
    sim_queue_at(n->queue, n->ends[m->to].at + n->options.control,
                 is_beside ? SIM_GRANT : SIM_GRANT_START, message, 0);
}

static void grant_enters_fabric(struct sim_net *n, uint32_t message)
{
    const struct sim_message *m = &n->messages[message];
    struct sim_flow flow = {.user = message | SIM_USER_GRANT,
                            .from = n->ends[m->to].host,
                            .bytes = n->options.grant_bytes,
                            .is_other = true,
                            .lid = lid_of(n, m->to, m->from)};

    flow.sl = sim_service_level(n->graph, flow.from, flow.lid, 1);
    sim_fabric_send(n->fabric, &flow);
}

/* The sender acts on it in its own turn: a host that pauses sends nothing. */
static void grant_arrives(struct sim_net *n, uint32_t message)
{
    struct sim_message *m = &n->messages[message];

    m->pending--;
    m->flags |= SIM_GRANTED;
    if (sim_message_may_start(n, m)) {
        notify(n, m->from, &(struct sim_notice){.granted = message});
    } else {
        sim_end_wake(n, m->from, n->queue->now); /* a rank that polls sees it come */
        sim_message_forget(n, message);
    }
}

/* The time that an empty fabric takes back, a bit long. */
static uint64_t way_back(const struct sim_net *n, const struct sim_message *m)
{
    uint32_t port = n->graph->hosts[n->ends[m->to].host];
    unsigned lid = lid_of(n, m->to, m->from), hops = 1;
    uint64_t each = 0;

    if (n->ends[m->to].node == n->ends[m->from].node) {
        return 0;
    }
    each = n->fabric->options.flight + n->fabric->options.routing;
    for (uint32_t node = ibshift_port_neighbour(n->graph, port);
         ibshift_node_is_switch(n->graph, node) && hops < 64; hops++) {
        unsigned out = ibshift_lft_get(n->graph, n->graph->nodes[node].switch_index, lid);

        node = ibshift_port_neighbour(n->graph, ibshift_node_port(n->graph, node, out));
    }
    return hops * each;
}

static bool is_moved(const struct sim_net *n, size_t length)
{
    return length > 0 && (length <= SIM_ALWAYS_MOVED || n->options.moves_data);
}

void sim_message_deliver(struct sim_net *n, struct sim_message *m)
{
    size_t length = m->length[SIM_SENDER];

    assert(length == m->length[SIM_RECEIVER]);
    if (is_moved(n, length)) {
        memcpy(m->buffer[SIM_RECEIVER], m->held != NULL ? m->held : m->buffer[SIM_SENDER], length);
    }
}

/* The sender's buffer is its own again before the receive is there. */
static void hold(struct sim_net *n, struct sim_message *m)
{
    size_t length = m->length[SIM_SENDER];

    if (is_moved(n, length)) {
        m->held = sim_need(malloc(length));
        memcpy(m->held, m->buffer[SIM_SENDER], length);
    }
}

static void arrive(struct sim_net *n, uint32_t message)
{
    struct sim_message *m = &n->messages[message];

    m->flags |= SIM_ARRIVED;
    n->ends[m->from].in_pieces -= m->piece > 0;
    n->stats.messages++;
    n->stats.bytes += m->length[SIM_SENDER];
    sim_queue_at(n->queue, n->queue->now + way_back(n, m), SIM_ACKNOWLEDGED, message, 0);
    if (sim_is_open(m, SIM_RECEIVER)) {
        sim_message_deliver(n, m);
        sim_message_end(n, message, SIM_RECEIVER);
    } else {
        hold(n, m);
    }
}

/* Whether more of the message is to come. */
static bool is_piece(const struct sim_net *n, uint32_t message)
{
    const struct sim_message *m = &n->messages[message];

    return m->entered < m->length[SIM_SENDER] && n->ends[m->from].node != n->ends[m->to].node;
}

static void piece_arrives(struct sim_net *n, uint32_t message)
{
    uint64_t seen = SEEN_SOONEST + (uint64_t)(ibshift_random_share(&n->random) * SEEN_SPREAD);

    sim_queue_at(n->queue, n->queue->now + seen, SIM_PIECE, message, 0);
}

/* A host that pauses, or whose processor is at work, posts nothing. */
static void post_piece(struct sim_net *n, uint32_t message)
{
    struct sim_end *end = &n->ends[n->messages[message].from];
    uint64_t paused = n->paused[end->node], free = end->at > paused ? end->at : paused;

    if (free > n->queue->now) {
        sim_queue_at(n->queue, free, SIM_PIECE, message, 0);
        return;
    }
    end->at = n->queue->now + 2 * n->options.overhead; /* a completion and a post */
    enter_fabric(n, message);
}

void sim_net_arrived(struct sim_net *n, uint32_t user)
{
    if (user & SIM_USER_GRANT) {
        grant_arrives(n, user & ~SIM_USER_GRANT);
    } else if (is_piece(n, user)) {
        piece_arrives(n, user);
    } else {
        arrive(n, user);
    }
}

static void take_turn(struct sim_net *n, const struct sim_event *event)
{
    struct sim_end *end = &n->ends[event->a];

    if (end->wake != event->time) {
        return; /* it was woken earlier */
    }
    end->wake = SIM_NEVER;
    if (n->paused[end->node] > event->time) {
        sim_end_wake(n, event->a, event->time);
        return;
    }
    end->at = end->at > event->time ? end->at : event->time;
    n->turn(n->turn_context, event->a);
}

void sim_net_event(struct sim_net *n, int kind, const struct sim_event *event)
{
    switch (kind) {
    case SIM_TURN:
        take_turn(n, event);
        break;
    case SIM_GRANT:
        grant_arrives(n, event->a);
        break;
    case SIM_START:
        enter_fabric(n, event->a);
        break;
    case SIM_GRANT_START:
        grant_enters_fabric(n, event->a);
        break;
    case SIM_LOCAL:
        arrive(n, event->a);
        break;
    case SIM_PIECE:
        post_piece(n, event->a);
        break;
    default:
        sim_message_end(n, event->a, SIM_SENDER);
    }
}
