/*
 * What relays could gain: an all-to-all whose blocks may go to their host by way of one other host of
 * the job, on the routes of a fabric's tables. Lengths grow on the cables that carry most (a descent on
 * the smooth maximum of the loads); all blocks by their shortest ways prove a time that no shares get
 * below, the shares found so far have one that they reach.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/random.h"
#include "fabric/paths/paths.h"
#include "fabric/read/read.h"

enum { TURNS = 600, TRIES = 40 };

struct job {
    struct ibshift_paths *paths;
    uint32_t hosts, links; /* with those out of each host, then into it */
    double *cost, *load, *next, *length, *distance;
};

static void *need(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (memory == NULL) {
        fprintf(stderr, "relay: no memory\n");
        exit(2);
    }
    return memory;
}

/* The links between two hosts, behind one another; their number. */
static uint32_t way(const struct job *j, uint32_t from, uint32_t to, uint32_t *links)
{
    const uint32_t *shared = ibshift_paths_links(j->paths, from, to, 0);
    uint32_t n = 0;

    while (n < j->paths->width && shared[n] != IBSHIFT_NO_LINK) {
        links[n] = shared[n];
        n++;
    }
    links[n++] = j->paths->links + from;
    links[n++] = j->paths->links + j->hosts + to;
    return n;
}

static void put(const struct job *j, uint32_t from, uint32_t to, double *load)
{
    uint32_t links[IBSHIFT_PATH_LINKS + 2], n = way(j, from, to, links);

    for (uint32_t i = 0; i < n; i++) {
        load[links[i]] += j->cost[links[i]];
    }
}

static double most(const struct job *j, const double *load)
{
    double top = 0;

    for (uint32_t l = 0; l < j->links; l++) {
        top = fmax(top, load[l]);
    }
    return top;
}

static void measure(const struct job *j, double sharpness)
{
    uint32_t links[IBSHIFT_PATH_LINKS + 2];
    double top = most(j, j->load), sum = 0;

    for (uint32_t l = 0; l < j->links; l++) {
        j->length[l] = exp(sharpness * (j->load[l] / top - 1));
        sum += j->length[l];
    }
    for (uint32_t from = 0; from < j->hosts; from++) {
        for (uint32_t to = 0; to < j->hosts; to++) {
            double *d = &j->distance[(size_t)from * j->hosts + to];

            *d = 0;
            for (uint32_t n = from == to ? 0 : way(j, from, to, links); n > 0; n--) {
                *d += j->cost[links[n - 1]] * j->length[links[n - 1]] / sum;
            }
        }
    }
}

/* Sends each block the shortest way, into next; the sum of the ways is a bound. */
static double send_shortest(const struct job *j)
{
    double sum = 0;

    memset(j->next, 0, j->links * sizeof(*j->next));
    for (uint32_t from = 0; from < j->hosts; from++) {
        const double *first = &j->distance[(size_t)from * j->hosts];

        for (uint32_t to = 0; to < j->hosts; to++) {
            double shortest = first[to];
            uint32_t by = to;

            for (uint32_t relay = 0; relay < j->hosts; relay++) {
                double both = first[relay] + j->distance[(size_t)relay * j->hosts + to];

                if (relay != from && relay != to && both < shortest) {
                    shortest = both;
                    by = relay;
                }
            }
            sum += shortest;
            if (from != to) {
                put(j, from, by, j->next);
            }
            if (by != to) {
                put(j, by, to, j->next);
            }
        }
    }
    return sum;
}

/* The logarithm of the smooth maximum if `share` of all blocks go the new ways. */
static double smooth(const struct job *j, double share, double sharpness, double unit)
{
    double sum = DBL_MIN;

    for (uint32_t l = 0; l < j->links; l++) {
        sum += exp(sharpness * ((j->load[l] + (j->next[l] - j->load[l]) * share) / unit - 1));
    }
    return log(sum);
}

/* A job on hosts at random, with all its blocks on their direct ways. */
static void start(struct job *j, const struct ibshift_fabric *fabric, uint32_t hosts)
{
    struct ibshift_error err = {0};
    uint32_t *host = need(fabric->host_count, sizeof(*host));
    uint64_t seed = 1;

    j->hosts = hosts == 0 || hosts > fabric->host_count ? fabric->host_count : hosts;
    for (uint32_t i = 0; i < fabric->host_count; i++) {
        host[i] = i;
    }
    ibshift_random_shuffle(&seed, host, fabric->host_count);
    if (ibshift_paths_build_base(fabric, host, j->hosts, &j->paths, &err) != 0) {
        fprintf(stderr, "relay: %s\n", err.text);
        exit(2);
    }
    free(host);
    j->links = j->paths->links + 2 * j->hosts;
    j->cost = need(j->links, sizeof(double));
    j->load = need(j->links, sizeof(double));
    j->next = need(j->links, sizeof(double));
    j->length = need(j->links, sizeof(double));
    j->distance = need((size_t)j->hosts * j->hosts, sizeof(double));
    for (uint32_t l = 0; l < j->links; l++) {
        uint32_t own = l - j->paths->links;

        j->cost[l] = l < j->paths->links ? j->paths->cost[l] : j->paths->host_cost[own % j->hosts];
    }
    for (uint32_t i = 0; i < j->hosts * j->hosts; i++) {
        if (i / j->hosts != i % j->hosts) {
            put(j, i / j->hosts, i % j->hosts, j->load);
        }
    }
}

/* Moves so many blocks to the shortest ways as makes the smooth maximum least; by how much it fell. */
static double move(const struct job *j, double sharpness)
{
    double unit = most(j, j->load), before = smooth(j, 0, sharpness, unit), least = before;
    double best = 0, share = 1;

    for (int t = 0; t < TRIES; t++) {
        double after = smooth(j, share, sharpness, unit);

        best = after < least ? share : best;
        least = fmin(least, after);
        share *= 0.7;
    }
    for (uint32_t l = 0; l < j->links; l++) {
        j->load[l] += (j->next[l] - j->load[l]) * best;
    }
    return before - least;
}

int main(int argc, char **argv)
{
    struct ibshift_fabric *fabric;
    struct ibshift_warnings warnings = {0};
    struct ibshift_error err = {0};
    struct job j = {0};
    double bound = 0, sharpness = 20, direct, found;

    if (argc != 3 || ibshift_fabric_load(argv[1], NULL, &fabric, &warnings, &err) != 0) {
        fprintf(stderr, "usage: relay FABRIC HOSTS (0: all)\n%s\n", err.text);
        return 2;
    }
    start(&j, fabric, (uint32_t)strtoul(argv[2], NULL, 10));
    direct = found = most(&j, j.load);
    for (int turn = 0; turn < TURNS && found > 1.01 * bound; turn++) {
        measure(&j, sharpness);
        bound = fmax(bound, send_shortest(&j));
        sharpness *= move(&j, sharpness) < 0.002 ? 1.1 : 1;
        found = fmin(found, most(&j, j.load));
    }
    printf("%u %.3f %.3f %.3f\n", j.hosts, direct / (j.hosts - 1), found / (j.hosts - 1),
           bound / (j.hosts - 1));
    return 0;
}
