#include "sim/traffic.h"

#include <math.h>

#include "fabric/graph/random.h"

struct source {
    uint32_t host;
    uint32_t place; /* in its group's members */
    uint32_t group;
    uint32_t born; /* messages so far */
    uint32_t under_way;
    bool waits;      /* for one of them to arrive */
    double interval; /* ps, mean, of messages; of packets where they are steady */
    uint64_t before; /* ps that its cable was busy with what came before it counts */
};

struct letter {    /* a message under way */
    uint32_t next; /* among the unused */
    uint32_t from, to;
    uint64_t since; /* ps: its latency counts from here */
};

struct sim_traffic {
    const struct ibshift_fabric *graph;
    struct sim_traffic_options options;
    struct sim_fabric *fabric;
    struct sim_queue *queue;
    struct source *sources;
    uint32_t count;
    uint32_t *members; /* sources, group by group */
    uint32_t *start;   /* [group]: of its members; [groups] */
    struct letter *letters;
    uint32_t letter_room, letter_used, unused;
    uint64_t random;
    uint64_t messages, latency_max;
    double latency_sum;
};

static unsigned bits_of(uint32_t count)
{
    unsigned bits = 0;

    while (1u << (bits + 1) <= count) {
        bits++;
    }
    return bits;
}

static uint32_t reversed(uint32_t value, unsigned bits)
{
    uint32_t result = 0;

    for (unsigned i = 0; i < bits; i++) {
        result |= (value >> i & 1) << (bits - 1 - i);
    }
    return result;
}

/* Halves of the bits exchanged; an odd bit stays in the middle. */
static uint32_t transposed(uint32_t value, unsigned bits)
{
    unsigned half = bits / 2;
    uint32_t mask = (1u << half) - 1, low = value & mask, high = value >> (bits - half) & mask;
    uint32_t middle = bits % 2 ? value & 1u << half : 0;

    return low << (bits - half) | middle | high;
}

/* The shift of a group's k-th message: the same for all its members. */
static uint32_t shift_of(const struct sim_traffic *t, uint32_t group, uint32_t k, uint32_t members)
{
    uint64_t state = t->options.seed ^ (uint64_t)group << 32 ^ (k + 1) * 0x9e3779b97f4a7c15ull;

    return 1 + ibshift_random_below(&state, members - 1);
}

/* Place of the destination in the group; the own place: nowhere. Numbers beyond the last power of
 * two keep to themselves in the patterns of bits. */
static uint32_t destination(struct sim_traffic *t, const struct source *s, uint32_t members)
{
    unsigned bits = bits_of(members);
    uint32_t other;

    switch (t->options.pattern) {
    case SIM_RANDOM:
        other = ibshift_random_below(&t->random, members - 1);
        return other + (other >= s->place);
    case SIM_SHIFT:
        return (s->place + shift_of(t, s->group, s->born, members)) % members;
    default:
        if (s->place >= 1u << bits) {
            return s->place;
        }
        return t->options.pattern == SIM_REVERSAL ? reversed(s->place, bits)
                                                  : transposed(s->place, bits);
    }
}

static uint32_t letter_new(struct sim_traffic *t)
{
    uint32_t i = t->unused;

    if (i != UINT32_MAX) {
        t->unused = t->letters[i].next;
        return i;
    }
    if (t->letter_used == t->letter_room) {
        t->letters = sim_grown(t->letters, &t->letter_room, sizeof(*t->letters));
    }
    return t->letter_used++;
}

static void plan_next(struct sim_traffic *t, uint32_t source)
{
    double share = (double)((ibshift_random_next(&t->random) >> 11) + 1) * 0x1p-53;
    double wait = -log(share) * t->sources[source].interval;

    if (wait < 1e18 && t->queue->now + (uint64_t)wait < t->options.end) {
        sim_queue_at(t->queue, t->queue->now + (uint64_t)wait, SIM_KIND_TRAFFIC, source, 0);
    }
}

static void give_birth(struct sim_traffic *t, uint32_t source)
{
    struct source *s = &t->sources[source];
    uint32_t members = t->start[s->group + 1] - t->start[s->group];
    uint32_t place = destination(t, s, members), letter, to;
    struct sim_flow flow;

    s->born++;
    if (place == s->place) {
        return;
    }
    letter = letter_new(t);
    to = t->members[t->start[s->group] + place];
    t->letters[letter] = (struct letter){.from = source, .to = to, .since = t->queue->now};
    s->under_way++;
    flow = (struct sim_flow){.user = letter,
                             .from = s->host,
                             .bytes = t->options.bytes,
                             .gap = t->options.is_steady ? (uint64_t)s->interval : 0,
                             .is_serial = true,
                             .is_other = true,
                             .lid = (uint16_t)ibshift_host_lid(t->graph, t->sources[to].host)};
    flow.sl = sim_service_level(t->graph, flow.from, flow.lid,
                                t->options.takes_all_lanes ? s->born % SIM_LANES_MAX : 0);
    sim_fabric_send(t->fabric, &flow);
}

void sim_traffic_event(struct sim_traffic *t, const struct sim_event *event)
{
    struct source *s = &t->sources[event->a];

    if (s->under_way >= SIM_TRAFFIC_BACKLOG) {
        s->waits = true;
        return;
    }
    give_birth(t, event->a);
    if (!t->options.is_steady) {
        plan_next(t, event->a);
    }
}

void sim_traffic_left(struct sim_traffic *t, uint32_t user)
{
    struct letter *letter = &t->letters[user];
    uint64_t next = t->queue->now + (uint64_t)t->sources[letter->from].interval;

    if (!t->options.is_steady) {
        return;
    }
    letter->since = t->queue->now;
    if (next < t->options.end) {
        sim_queue_at(t->queue, next, SIM_KIND_TRAFFIC, letter->from, 0);
    }
}

void sim_traffic_arrived(struct sim_traffic *t, uint32_t user)
{
    struct letter *letter = &t->letters[user];
    struct source *s = &t->sources[letter->from];
    uint64_t latency = t->queue->now - letter->since;

    if (t->queue->now >= t->options.warm && t->queue->now < t->options.end) {
        t->messages++;
        t->latency_sum += (double)latency;
        t->latency_max = latency > t->latency_max ? latency : t->latency_max;
    }
    letter->next = t->unused;
    t->unused = user;
    s->under_way--;
    if (s->waits) {
        s->waits = false;
        if (t->queue->now < t->options.end) {
            sim_queue_at(t->queue, t->queue->now, SIM_KIND_TRAFFIC, (uint32_t)(s - t->sources), 0);
        }
    }
}

/* Each group's members in the order given. */
static void sort_members(struct sim_traffic *t, const uint32_t *group, uint32_t groups)
{
    uint32_t *next = sim_zeroed(groups, sizeof(*next));

    for (uint32_t i = 0; i < t->count; i++) {
        t->start[group[i] + 1]++;
    }
    for (uint32_t g = 0; g < groups; g++) {
        t->start[g + 1] += t->start[g];
    }
    for (uint32_t i = 0; i < t->count; i++) {
        struct source *s = &t->sources[i];

        s->group = group[i];
        s->place = next[s->group]++;
        t->members[t->start[s->group] + s->place] = i;
    }
    free(next);
}

struct sim_traffic *sim_traffic_create(const struct ibshift_fabric *graph,
                                       const struct sim_traffic_options *options,
                                       const uint32_t *member, const uint32_t *group,
                                       uint32_t count, struct sim_fabric *fabric,
                                       struct sim_queue *queue)
{
    struct sim_traffic *t = sim_zeroed(1, sizeof(*t));
    uint32_t groups = 0;

    for (uint32_t i = 0; i < count; i++) {
        groups = group[i] >= groups ? group[i] + 1 : groups;
    }
    *t = (struct sim_traffic){.graph = graph,
                              .options = *options,
                              .fabric = fabric,
                              .queue = queue,
                              .count = count,
                              .unused = UINT32_MAX,
                              .random = options->seed};
    t->sources = sim_zeroed(count, sizeof(*t->sources));
    t->members = sim_zeroed(count, sizeof(*t->members));
    t->start = sim_zeroed(groups + 1, sizeof(*t->start));
    sort_members(t, group, groups);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t port = graph->hosts[member[i]];
        uint64_t bytes = options->is_steady ? fabric->options.mtu : options->bytes;

        t->sources[i].host = member[i];
        t->sources[i].interval =
            (double)sim_message_time(graph, &fabric->options, port, bytes) / options->load;
    }
    return t;
}

void sim_traffic_free(struct sim_traffic *t)
{
    if (t == NULL) {
        return;
    }
    free(t->sources);
    free(t->members);
    free(t->start);
    free(t->letters);
    free(t);
}

void sim_traffic_begin(struct sim_traffic *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t group = t->sources[i].group;

        if (t->start[group + 1] - t->start[group] < 2) {
            continue;
        }
        if (t->options.is_steady) {
            sim_queue_at(t->queue, 0, SIM_KIND_TRAFFIC, i, 0);
        } else {
            plan_next(t, i);
        }
    }
}

/* ps that the cable to the host was busy, so far. */
static uint64_t busy_with(const struct sim_traffic *t, const struct source *s)
{
    return t->fabric->ports[t->graph->ports[t->graph->hosts[s->host]].peer].busy[true];
}

void sim_traffic_count(struct sim_traffic *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        t->sources[i].before = busy_with(t, &t->sources[i]);
    }
}

struct sim_traffic_figures sim_traffic_figures(const struct sim_traffic *t)
{
    const struct sim_fabric_options *o = &t->fabric->options;
    struct sim_traffic_figures figures = {.messages = t->messages,
                                          .latency_max = (double)t->latency_max,
                                          .bytes_least = t->count > 0 ? INFINITY : 0};

    figures.latency_mean = t->messages > 0 ? t->latency_sum / (double)t->messages : 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct source *s = &t->sources[i];
        uint64_t packet = sim_message_time(t->graph, o, t->graph->hosts[s->host], o->mtu);
        double bytes = (double)(busy_with(t, s) - s->before) / (double)packet * o->mtu;

        figures.bytes_per_host += bytes / t->count;
        figures.bytes_least = bytes < figures.bytes_least ? bytes : figures.bytes_least;
    }
    return figures;
}
