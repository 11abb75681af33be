/*
 * Random messages between all ranks, checked byte by byte.
 *   traffic [-n RANKS] [-m MESSAGES] [-s SEED] [-w WINDOW] [-e MAX_EAGER] [-b MEMORY] [-r RINGS]
 *           [-l LONGEST] [-p PORTS] [-a 0|1]
 * Two thirds of the messages go in pieces, if they are long.
 * All ranks draw the same list of messages and post their own in its order, up to WINDOW at once
 * and shuffled within the window, so that messages come early, late and crosswise.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ranks.h"

enum { DEADLINE = 60 };

static uint32_t messages = 2000, window = 16;
static size_t longest = 100000;
static uint64_t seed = 1;

struct entry {
    uint32_t from, to;
    size_t length;
    struct ibshift_net_key key;
    uint8_t *buffer;
    uint8_t is_posted, is_done;
};

static size_t draw_length(uint64_t *state, size_t eager)
{
    switch (ranks_random(state) % 8) {
    case 0:
        return 0;
    case 1:
        return 8;
    case 2:
    case 3:
        return ranks_random(state) % 600;
    case 4:
        return ranks_random(state) % (eager + 1);
    case 5:
        return eager + ranks_random(state) % 3 - (eager > 0);
    default:
        return ranks_random(state) % (longest + 1);
    }
}

static struct entry *draw_all(struct ranks *r)
{
    struct entry *all = calloc(messages, sizeof(*all));
    uint64_t state = seed;

    for (uint32_t i = 0; all != NULL && i < messages; i++) {
        all[i].from = (uint32_t)(ranks_random(&state) % (uint64_t)r->count);
        all[i].to =
            (all[i].from + 1 + (uint32_t)(ranks_random(&state) % (uint64_t)(r->count - 1))) %
            (uint32_t)r->count;
        all[i].length = draw_length(&state, r->options.max_eager);
        all[i].key = (struct ibshift_net_key){.comm = i % 3, .seq = i / 100, .tag = i};
    }
    return all;
}

static int is_mine(const struct ranks *r, const struct entry *e)
{
    return e->from == (uint32_t)r->self || e->to == (uint32_t)r->self;
}

static void finish(struct ranks *r, struct entry *e, int status)
{
    char text[512];

    if (status != 0) {
        ibshift_net_describe(r->net, e->from == (uint32_t)r->self ? e->to : e->from, text,
                             sizeof(text));
        ranks_fail(r, "message %u (%u -> %u, %zu bytes): %s: %s", e->key.tag, e->from, e->to,
                   e->length, strerror(-status), text);
    }
    if (e->to == (uint32_t)r->self) {
        long at = ranks_differs(e->buffer, e->length, e->key.tag);
        if (at >= 0) {
            ranks_fail(r, "message %u (%u -> %u, %zu bytes) differs at byte %ld", e->key.tag,
                       e->from, e->to, e->length, at);
        }
    }
    free(e->buffer);
    e->buffer = NULL;
    e->is_done = 1;
}

/* Such that the last piece is shorter, as long as the others, or the only one. */
static size_t piece_of(uint32_t tag)
{
    static const size_t pieces[] = {4096, 1000, 2048, 8193, 50000, 4097};

    return pieces[tag / 3 % (sizeof(pieces) / sizeof(pieces[0]))];
}

/* Posts one of mine; returns whether it went. */
static int post(struct ranks *r, struct entry *e)
{
    int is_send = e->from == (uint32_t)r->self;
    struct ibshift_net_message m = {.peer = is_send ? e->to : e->from,
                                    .key = e->key,
                                    .length = e->length,
                                    .cookie = e->key.tag};

    if (e->buffer == NULL) {
        e->buffer = malloc(e->length + 1);
        if (e->buffer == NULL) {
            ranks_fail(r, "out of memory");
        }
    }
    m.buffer = e->buffer;
    m.piece = is_send && e->key.tag % 3 < 2 ? piece_of(e->key.tag) : 0;
    if (is_send) {
        ranks_fill(e->buffer, e->length, e->key.tag);
    } else {
        memset(e->buffer, 0xaa, e->length);
    }
    int rc = is_send ? ibshift_net_send(r->net, &m) : ibshift_net_recv(r->net, &m);
    if (rc == -EAGAIN) {
        return 0;
    }
    e->is_posted = 1;
    if (rc != IBSHIFT_NET_PENDING) {
        finish(r, e, rc == IBSHIFT_NET_DONE ? 0 : rc);
    }
    return 1;
}

static void take_events(struct ranks *r, struct entry *all)
{
    struct ibshift_net_event events[16];
    int n = ibshift_net_poll(r->net, events, 16);

    for (int i = 0; i < n; i++) {
        struct entry *e = &all[events[i].cookie];
        if (events[i].cookie >= messages || !e->is_posted || e->is_done) {
            ranks_fail(r, "an event that belongs to no message: %lu",
                       (unsigned long)events[i].cookie);
        }
        finish(r, e, events[i].status);
    }
}

static int run(struct ranks *r)
{
    struct entry *all = draw_all(r);
    uint64_t state = seed * 1000 + (uint64_t)r->self;
    time_t until = time(NULL) + DEADLINE;
    uint32_t first = 0;

    while (all != NULL && first < messages) {
        uint32_t mine = 0;
        for (uint32_t i = first; i < messages && mine < window; i++) {
            struct entry *e = &all[i];
            if (!is_mine(r, e)) {
                continue;
            }
            mine++;
            if (!e->is_posted && (i == first || ranks_random(&state) % 4 == 0)) {
                (void)post(r, e);
            }
        }
        take_events(r, all);
        while (first < messages && (!is_mine(r, &all[first]) || all[first].is_done)) {
            first++;
        }
        if (time(NULL) > until) {
            ranks_fail(r, "hangs at message %u of %u (%u -> %u, %zu bytes, %s)", first, messages,
                       all[first].from, all[first].to, all[first].length,
                       all[first].is_posted ? "posted" : "not posted");
        }
    }
    ranks_barrier(r, 0);
    struct ibshift_net_verbs_stats s;
    ibshift_net_verbs_stats(r->net, &s);
    if ((s.empty > 0) != (r->options.adaptive && s.rendezvous > 0)) {
        ranks_fail(r, "%lu writes of immediate data alone", s.empty);
    }
    if (r->self == 0) {
        printf("rank 0: %lu connections, %lu through slots, %lu through rings, %lu long, %lu held, "
               "%lu pulled, %lu copied, %lu probes, %lu bytes registered\n",
               s.connections, s.eager, s.ring, s.rendezvous, s.held, s.pulled, s.copied, s.probes,
               s.registered);
    }
    free(all);
    return 0;
}

int main(int argc, char **argv)
{
    struct ranks r = {.count = 4, .max_ports = 4, .options = ibshift_net_verbs_defaults};
    const struct ranks_option options[] = {
        {'n', &r.count, sizeof(r.count), 2, RANKS_MAX},
        {'m', &messages, sizeof(messages), 1, UINT32_MAX},
        {'s', &seed, sizeof(seed), 0, UINT64_MAX},
        {'w', &window, sizeof(window), 1, UINT32_MAX},
        {'e', &r.options.max_eager, sizeof(r.options.max_eager), 0, SIZE_MAX},
        {'b', &r.options.memory, sizeof(r.options.memory), 0, SIZE_MAX},
        {'r', &r.options.rings, sizeof(r.options.rings), 0, UINT32_MAX},
        {'l', &longest, sizeof(longest), 0, SIZE_MAX},
        {'a', &r.options.adaptive, sizeof(r.options.adaptive), 0, 1},
        {'p', &r.ports, 0, 0, 0},
        {0, NULL, 0, 0, 0},
    };

    ranks_options(argc, argv, options);
    printf("seed %lu\n", (unsigned long)seed);
    return ranks_run(&r, run, 0);
}
