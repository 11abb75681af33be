/* Is the channel dependency graph acyclic? A depth-first search without recursion. */
#include "route/verify.h"

#include <errno.h>
#include <stdlib.h>

enum colour { WHITE, OPEN, DONE };

struct search {
    const struct route *r;
    const struct route_deps *deps;
    struct route_proof *proof;
    uint8_t *colour; /* [channel] */
    uint64_t *stack; /* channels */
    uint32_t *at;    /* [depth]: next (vl, port) to look at */
    uint64_t depth;
};

static uint64_t channel_of(const struct search *s, uint32_t link, unsigned vl)
{
    return (uint64_t)link * s->deps->vls + vl;
}

/* The next dependency of the channel at or after *at = vl * 256 + port, or -1. */
static int64_t next_dependency(const struct search *s, uint64_t channel, uint32_t *at)
{
    const struct ibshift_fabric *f = s->r->fabric;
    uint32_t peer = f->ports[channel / s->deps->vls].peer;
    uint32_t node = f->ports[peer].node;

    for (; *at < s->deps->vls * 256; (*at)++) {
        const uint64_t *row = s->deps->bits + (channel * s->deps->vls + (*at >> 8)) * 4;
        unsigned port = *at & 255;
        uint64_t word = row[port >> 6] >> (port & 63);

        if (word == 0) {
            *at |= 63;
            continue;
        }
        *at += (unsigned)__builtin_ctzll(word);
        port = *at & 255;
        s->proof->dependencies++;
        (*at)++;
        return (int64_t)channel_of(s, ibshift_node_port(f, node, port), (*at - 1) >> 8);
    }
    return -1;
}

static void tell_cycle(struct search *s, uint64_t closing)
{
    uint64_t start = s->depth;

    while (start > 0 && s->stack[start - 1] != closing) {
        start--;
    }
    start = start > 0 ? start - 1 : 0;
    s->proof->cycle_length = (unsigned)(s->depth - start);
    for (uint64_t i = start; i < s->depth && i - start < ROUTE_CYCLE_MOST; i++) {
        s->proof->cycle[i - start] = (struct route_channel){(uint32_t)(s->stack[i] / s->deps->vls),
                                                            (unsigned)(s->stack[i] % s->deps->vls)};
    }
}

/* True: a cycle was found. */
static bool search_from(struct search *s, uint64_t channel)
{
    s->depth = 1;
    s->stack[0] = channel;
    s->at[0] = 0;
    s->colour[channel] = OPEN;
    while (s->depth > 0) {
        int64_t next = next_dependency(s, s->stack[s->depth - 1], &s->at[s->depth - 1]);

        if (next < 0) {
            s->colour[s->stack[--s->depth]] = DONE;
        } else if (s->colour[next] == OPEN) {
            tell_cycle(s, (uint64_t)next);
            return true;
        } else if (s->colour[next] == WHITE) {
            s->colour[next] = OPEN;
            s->stack[s->depth] = (uint64_t)next;
            s->at[s->depth++] = 0;
        }
    }
    return false;
}

int route_verify_cycles(const struct route *r, const struct route_deps *deps,
                        struct route_proof *proof, struct ibshift_error *err)
{
    const struct ibshift_fabric *f = r->fabric;
    uint64_t channels = (uint64_t)f->port_count * deps->vls;
    struct search s = {.r = r,
                       .deps = deps,
                       .proof = proof,
                       .colour = calloc(channels + 1, sizeof(*s.colour)),
                       .stack = malloc((channels + 1) * sizeof(*s.stack)),
                       .at = malloc((channels + 1) * sizeof(*s.at))};
    bool ok = s.colour != NULL && s.stack != NULL && s.at != NULL, found = false;

    for (uint64_t c = 0; ok && !found && c < channels; c++) {
        if (s.colour[c] == WHITE && f->ports[c / deps->vls].peer != IBSHIFT_NO_PORT) {
            found = search_from(&s, c);
        }
    }
    free(s.colour);
    free(s.stack);
    free(s.at);
    return ok ? 0 : ibshift_fail(err, -ENOMEM, "no memory for %u links", f->port_count);
}
