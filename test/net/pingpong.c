/*
 * One message there and back between two ranks over net.h:
 *   pingpong SIZE [ROUNDS] [stream|latency [PORTS [PIECE]]]: so many ports, or these, as coll_ibshift_device names them
 * Prints the median half round trip in microseconds; with "stream" the bandwidth in MB/s of
 * messages that follow each other, 16 at a time. With PIECE they go in pieces. Compare with ib_write_lat and ib_write_bw.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

enum { DEPTH = 16 };

static size_t size = 8, piece;
static uint32_t rounds = 1000;
static int is_stream;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void wait_for(struct ranks *r, uint32_t count)
{
    struct ibshift_net_event events[DEPTH];

    while (count > 0) {
        int n = ibshift_net_poll(r->net, events, DEPTH);
        for (int i = 0; i < n; i++) {
            if (events[i].status != 0) {
                char text[512];
                ibshift_net_describe(r->net, events[i].peer, text, sizeof(text));
                ranks_fail(r, "%s", text);
            }
        }
        count -= (uint32_t)n;
    }
}

static uint32_t begin(struct ranks *r, int is_send, uint32_t round, uint8_t *buffer,
                      struct ibshift_net_mem *mem)
{
    struct ibshift_net_message m = {.peer = !r->self,
                                    .key = {.comm = 1, .seq = round},
                                    .buffer = buffer,
                                    .length = size,
                                    .piece = is_send ? piece : 0,
                                    .mem = mem};
    int rc;

    m.key.tag = (uint32_t)(is_send ? r->self : !r->self);
    while ((rc = is_send ? ibshift_net_send(r->net, &m) : ibshift_net_recv(r->net, &m)) < 0) {
        if (rc != -EAGAIN) {
            ranks_fail(r, "status %d", rc);
        }
        struct ibshift_net_event none;
        (void)ibshift_net_poll(r->net, &none, 0);
    }
    return rc == IBSHIFT_NET_PENDING;
}

static void latency(struct ranks *r, uint8_t *buffer, struct ibshift_net_mem *mem)
{
    double *sample = calloc(rounds, sizeof(*sample));
    uint32_t warm = rounds / 10;

    for (uint32_t i = 0; sample != NULL && i < rounds + warm; i++) {
        uint64_t before = ibshift_net_now(r->net);
        uint32_t left = begin(r, 0, i, buffer + size, mem);
        if (r->self == 0) {
            left += begin(r, 1, i, buffer, mem);
            wait_for(r, left);
        } else {
            wait_for(r, left);
            wait_for(r, begin(r, 1, i, buffer, mem));
        }
        if (i >= warm) {
            sample[i - warm] = (double)(ibshift_net_now(r->net) - before) / 2000;
        }
    }
    if (sample != NULL && r->self == 0) {
        qsort(sample, rounds, sizeof(*sample), compare);
        printf("%zu bytes: median %.2f us, best %.2f us one way\n", size, sample[rounds / 2],
               sample[0]);
    }
    free(sample);
}

static void stream(struct ranks *r, uint8_t *buffer, struct ibshift_net_mem *mem)
{
    uint64_t before = 0;

    for (uint32_t i = 0; i < rounds + DEPTH; i += DEPTH) {
        uint32_t left = 0;
        if (i == DEPTH) {
            before = ibshift_net_now(r->net);
        }
        for (uint32_t k = 0; k < DEPTH; k++) {
            left += begin(r, r->self == 0, i + k, buffer, mem);
        }
        wait_for(r, left);
    }
    if (r->self == 0) {
        double seconds = (double)(ibshift_net_now(r->net) - before) / 1e9;
        uint32_t count = (rounds + DEPTH - 1) / DEPTH * DEPTH;
        printf("%zu bytes: %.0f MB/s\n", size, (double)size * count / seconds / 1e6);
    }
}

/* Each rank on a processor of its own, or two that share one measure the scheduler. */
static void bind_rank(const struct ranks *r)
{
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    CPU_SET(r->self, &cpus);
    (void)sched_setaffinity(0, sizeof(cpus), &cpus);
}

static int run(struct ranks *r)
{
    bind_rank(r);
    uint8_t *buffer = calloc(2, size + 1);
    struct ibshift_net_mem *mem =
        buffer != NULL ? ibshift_net_mem_register(r->net, buffer, 2 * size + 2) : NULL;

    if (buffer == NULL) {
        return 1;
    }
    (is_stream ? stream : latency)(r, buffer, mem);
    ranks_barrier(r, 0);
    ibshift_net_mem_release(r->net, mem);
    free(buffer);
    return 0;
}

int main(int argc, char **argv)
{
    struct ranks r = {.count = 2, .max_ports = 1, .options = ibshift_net_verbs_defaults};

    size = argc > 1 ? strtoul(argv[1], NULL, 0) : size;
    rounds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : rounds;
    is_stream = argc > 3 && strcmp(argv[3], "stream") == 0;
    r.ports = argc > 4 && strchr(argv[4], ':') != NULL ? argv[4] : NULL;
    r.max_ports = r.ports != NULL ? 2 : argc > 4 ? atoi(argv[4]) : 1;
    piece = argc > 5 ? strtoul(argv[5], NULL, 0) : 0;
    return ranks_run(&r, run, 0);
}
