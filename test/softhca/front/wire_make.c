#include "front/front.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/rate.h"
#include "fabric/paths/route.h"
#include "fault/faultspec.h"
#include "output.h"
#include "wire/wire.h"

/*
 * Round numbers in the range of data sheets, measured on nothing. A rate is that of the encoding
 * less 1 % for the headers of 4 KiB packets; an HCA moves a little less than its cable could.
 */
static const struct profile profiles[] = {
    /*         GB/s   GB/s  ns   ns   ns */
    {"sdr", 0.99, 0.97, 50, 600, 200, "4x SDR, 10 Gb/s"},
    {"qdr", 3.96, 3.4, 25, 500, 140, "4x QDR, 40 Gb/s"},
    {"fdr", 6.7, 6.2, 10, 350, 170, "4x FDR, 56 Gb/s"},
    {"edr", 12.4, 12.1, 7, 300, 90, "4x EDR, 100 Gb/s"},
    {"hdr", 24.8, 24.2, 5, 270, 130, "4x HDR, 200 Gb/s"},
    {"ndr-like", 49.6, 48.4, 3, 250, 180, "4x NDR, 400 Gb/s"},
};

/* All names, with ", " between them. */
static const char *list_profiles(void)
{
    static char text[128];
    size_t at = 0;

    for (size_t i = 0; i < COUNT_OF(profiles); i++) {
        const char *comma = i ? ", " : "";

        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", comma, profiles[i].name);
    }
    return text;
}

int wire_choose(const struct options *o, const struct profile **profile)
{
    const char *name = o->wire ? o->wire : o->fabric ? "edr" : "none";
    const char *hint;
    int row = name_find(profiles, COUNT_OF(profiles), sizeof(profiles[0]), name, &hint);

    *profile = row < 0 ? NULL : &profiles[row];
    if (*profile) {
        return 0;
    }
    if (strcmp(name, "none") != 0) {
        return front_refuse(-EINVAL, "--wire: there is no profile '%.32s'%s (none, %s)", name, hint,
                            list_profiles());
    }
    if (o->report || o->scale != 1 || o->burst) {
        return front_refuse(-EINVAL,
                            "--scale, --burst and --wire-report want a wire: name one with --wire");
    }
    return 0;
}

static void make_crossbar(double cable)
{
    for (uint32_t i = 0; i < 2 * shm.head->port_count; i++) {
        shm.wire->links[i].rate = cable;
    }
}

/* The fastest of the hosts' cables has the profile's rate, the others theirs in proportion. */
static void rate_links(const struct place *p, double rate)
{
    const struct ibshift_fabric *f = p->fabric;
    uint32_t fastest = ibshift_rate_of_hosts(f, NULL, f->host_count);

    for (uint32_t l = 0; l < f->port_count; l++) {
        shm.wire->links[l].rate = rate / ibshift_link_cost(f, l, fastest);
    }
    for (uint32_t h = 0; h < shm.head->conf.hosts; h++) {
        uint32_t out = f->hosts[p->host[h]], in = f->ports[out].peer;
        double least = fmin(shm.wire->links[out].rate, shm.wire->limit);

        shm.wire->links[out].rate = shm.wire->links[in].rate = least;
    }
}

/* Numbers leaves and columns; two modelled hosts of each leaf in two[]. Returns the leaves. */
static uint32_t number(const struct place *p, uint32_t (*two)[2], uint32_t *leaf_of_node)
{
    const struct ibshift_fabric *f = p->fabric;
    struct shm_wire *w = shm.wire;
    uint32_t leaves = 0;

    for (uint32_t h = 0; h < shm.head->conf.hosts; h++) {
        uint32_t port = f->hosts[p->host[h]], node = ibshift_port_neighbour(f, port);
        uint32_t *leaf = &leaf_of_node[node];

        if (*leaf == 0) {
            *leaf = ++leaves;
            two[leaves - 1][0] = two[leaves - 1][1] = h;
        }
        two[*leaf - 1][1] = h;
        w->leaf[h] = *leaf - 1;
        w->cable[h] = port;
        for (unsigned i = 0; i < 1u << f->ports[port].lmc; i++) {
            w->column[f->ports[port].lid + i] = w->columns++;
        }
    }
    return leaves;
}

/* The route from a leaf to a LID behind the source's cable, as link + 1, into cell[] if it is
   there; at most WIRE_HOPS. Its length, or a negative errno after a message. */
static int route(const struct place *p, uint32_t from, unsigned lid, uint32_t *cell)
{
    uint32_t links[IBSHIFT_ROUTE_MAX];
    struct ibshift_error err;
    int walked,
        n = ibshift_route_walk(p->fabric, p->host[from], lid, links, IBSHIFT_ROUTE_MAX, &walked);

    if (n >= 0 && n <= WIRE_HOPS) {
        for (int i = 1; i < n && cell; i++) {
            cell[i - 1] = links[i] + 1;
        }
        return n ? n - 1 : 0;
    }
    if (n < 0) {
        ibshift_route_explain(p->fabric, p->host[from], lid, n, links, walked, &err);
    } else {
        ibshift_fail(&err, 0, "'%s' to LID %u takes %d links; at most %d are modelled",
                     ibshift_host_name(p->fabric, p->host[from]), lid, n, WIRE_HOPS);
    }
    return front_refuse(n < 0 ? n : -E2BIG, "%s", err.text);
}

/* All routes of all leaves; the longest one's length when `cells` is NULL, or 0, or an error. */
static int walk(const struct place *p, uint32_t leaves, const uint32_t (*two)[2], uint32_t *cells)
{
    const struct shm_wire *w = shm.wire;
    int longest = 0;

    for (uint32_t h = 0; h < shm.head->conf.hosts; h++) {
        const struct shm_port *to = &shm.ports[h];

        for (uint32_t leaf = 0; leaf < leaves; leaf++) {
            uint32_t from = two[leaf][0] != h ? two[leaf][0] : two[leaf][1];

            for (unsigned lid = to->lid; lid < to->lid + (1u << shm.head->conf.lmc); lid++) {
                uint64_t at = ((uint64_t)leaf * w->columns + w->column[lid]) * w->width;
                int n = route(p, from, lid, cells ? cells + at : NULL);

                if (n < 0) {
                    return n;
                }
                longest = n > longest ? n : longest;
            }
        }
    }
    return cells ? 0 : longest;
}

static int make_routes(const struct place *p)
{
    struct shm_wire *w = shm.wire;
    uint32_t *leaf_of_node;
    int status;

    uint32_t(*two)[2] = calloc(shm.head->conf.hosts, sizeof(*two));
    leaf_of_node = calloc(p->fabric->node_count, sizeof(*leaf_of_node));
    status = -ENOMEM;
    if (two && leaf_of_node) {
        uint32_t leaves = number(p, two, leaf_of_node);

        status = walk(p, leaves, (const uint32_t(*)[2])two, NULL);
        if (status >= 0) {
            w->width = status ? (uint32_t)status : 1;
            w->clock.buffer = (uint64_t)w->width * WIRE_BUFFER;
            status =
                shm_alloc((uint64_t)leaves * w->columns * w->width * sizeof(uint32_t), &w->cells);
        }
        if (status == 0) {
            uint32_t *cells = (uint32_t *)(void *)(shm.base + w->cells);

            status = walk(p, leaves, (const uint32_t(*)[2])two, cells);
        }
    } else {
        front_refuse(status, "no memory for the fabric's routes");
    }
    free(leaf_of_node);
    free(two);
    return status;
}

int wire_make(const struct profile *profile, const struct options *o, const struct place *place)
{
    struct shm_wire *w = shm.wire;
    uint32_t scale = o->scale;

    if (!profile) {
        return 0;
    }
    w->hca_ns = (uint64_t)(profile->hca_ns * scale);
    w->hop_ns = (uint64_t)(profile->hop_ns * scale);
    w->clock.gap = (uint64_t)(profile->gap_ns * scale);
    w->limit = profile->hca_rate / scale;
    w->clock.burst = (uint64_t)o->burst * WIRE_PACKET;
    w->clock.buffer = WIRE_BUFFER;
    shm.head->wired = shm.head->timed = 1;
    if (!place->fabric) {
        double cable = fmin(profile->link_rate / scale, w->limit);

        w->limit = o->bond ? cable : w->limit; /* a queue pair's requests leave one by one */
        make_crossbar(o->bond ? 2 * cable : cable);
        return 0;
    }
    rate_links(place, profile->link_rate / scale);
    return make_routes(place);
}

/* What the links carried. */
static void name_link(const struct place *place, uint32_t link, char *text, size_t size)
{
    const struct shm_port *p;
    char end[64];

    if (place->fabric) {
        ibshift_link_name(place->fabric, link, text, size);
        return;
    }
    p = &shm.ports[link / 2];
    snprintf(end, sizeof(end), "host %u softhca%u port %u", p->host, p->hca, p->num);
    snprintf(text, size, link % 2 ? "switch -> %s" : "%s -> switch", end);
}

static void print_report(FILE *f, const struct options *o, const struct profile *profile,
                         const struct place *place)
{
    char name[512], burst[64] = "";
    uint32_t links = place_links(place);

    if (o->burst) {
        snprintf(burst, sizeof(burst), "; bursts of %u packets of %d bytes", o->burst, WIRE_PACKET);
    }
    fprintf(f,
            "# modelled wire %s: cable %g GB/s, HCA %g GB/s, gap %g ns, HCA latency %g ns, hop %g "
            "ns; scale %u%s\n"
            "# links that carried nothing are left out\n",
            profile->name, profile->link_rate, profile->hca_rate, profile->gap_ns, profile->hca_ns,
            profile->hop_ns, o->scale, burst);
    if (o->burst) {
        fprintf(f, "# at most %llu bytes of one queue pair in a row while another one's waited\n",
                (unsigned long long)shm.wire->clock.longest);
    }
    fprintf(f, "# %14s %10s %8s  link\n", "bytes", "most flows", "GB/s");
    for (uint32_t l = 0; l < links; l++) {
        const struct wire_link *link = &shm.wire->links[l];

        if (link->most) {
            name_link(place, l, name, sizeof(name));
            fprintf(f, "%16llu %10u %8.2f  %s\n", (unsigned long long)link->bytes, link->most,
                    link->rate * o->scale, name);
        }
    }
    for (unsigned sl = 0; sl < sizeof(shm.wire->by_sl) / sizeof(shm.wire->by_sl[0]); sl++) {
        if (shm.wire->by_sl[sl]) {
            fprintf(f, "# service level %u: %llu bytes\n", sl,
                    (unsigned long long)shm.wire->by_sl[sl]);
        }
    }
}

static int say(const char *path, int err)
{
    return err ? front_refuse(err, "--wire-report: %s: %s", path, strerror(-err)) : 0;
}

/* Standard output is the program's until it has ended. */
int wire_report_check(const struct options *o)
{
    return o->report && strcmp(o->report, "-") != 0 ? say(o->report, output_check(o->report)) : 0;
}

int wire_report(const struct options *o, const struct profile *profile, const struct place *place)
{
    struct output out;
    int err = o->report ? output_open(&out, o->report) : 0;

    if (o->report && !err) {
        print_report(out.file, o, profile, place);
        err = output_close(&out, true);
    }
    return say(o->report, err);
}
