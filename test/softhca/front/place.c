#include "front/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/shape/order.h"
#include "fabric/graph/random.h"
#include "fabric/read/read.h"

static int complain(int err, const char *text)
{
    fprintf(stderr, "softhca-run: %s\n", text);
    return err;
}

static int load(const struct options *o, struct ibshift_fabric **f)
{
    struct ibshift_warnings warnings = {0};
    struct ibshift_error err;
    int status = ibshift_fabric_load(o->fabric, o->lfts, f, &warnings, &err);

    if (status) {
        return complain(status, err.text);
    }
    if (!(*f)->lft) {
        ibshift_fail(&err, 0, "%s has no forwarding tables: name a dump of them with --lfts",
                     o->fabric);
        return complain(-EINVAL, err.text);
    }
    if ((*f)->host_count == 0) {
        ibshift_fail(&err, 0, "%s has no hosts", o->fabric);
        return complain(-EINVAL, err.text);
    }
    return 0;
}

static int in_routing_order(struct place *p, struct ibshift_error *err)
{
    struct ibshift_shape shape;
    int status = ibshift_shape_find(p->fabric, &shape, err);

    if (status == 0) {
        status = ibshift_order_routing(p->fabric, &shape, &p->host, err);
        ibshift_shape_free(&shape);
    }
    p->hosts = p->fabric->host_count;
    return status;
}

static int at_random(struct place *p, const char *seed, struct ibshift_error *err)
{
    char *end;
    uint64_t state;
    int status;

    errno = 0;
    state = strtoull(seed, &end, 10);
    if (*seed < '0' || *seed > '9' || *end || errno) {
        return ibshift_fail(err, -EINVAL, "--place random:SEED wants a number, not '%s'", seed);
    }
    status = in_routing_order(p, err); /* the seed says all, whatever the source's order */
    if (status == 0) {
        ibshift_random_shuffle(&state, p->host, p->hosts);
    }
    return status;
}

static int by_file(struct place *p, const char *path, struct ibshift_error *err)
{
    int status = ibshift_order_load(path, p->fabric, false, &p->host, &p->hosts, err);
    uint8_t *seen;

    if (status) {
        return status;
    }
    seen = calloc(p->fabric->host_count, 1);
    for (uint32_t i = 0; seen && i < p->hosts && status == 0; i++) {
        if (seen[p->host[i]]++) {
            status = ibshift_fail(err, -EINVAL, "%s: '%s' is there twice", path,
                                  ibshift_host_name(p->fabric, p->host[i]));
        }
    }
    free(seen);
    return !seen                ? ibshift_fail(err, -ENOMEM, "no memory for %u hosts", p->hosts)
           : p->hosts || status ? status
                                : ibshift_fail(err, -EINVAL, "%s names no host", path);
}

static int choose(struct place *p, const char *how)
{
    struct ibshift_error err;
    int status = !how || strcmp(how, "order") == 0 ? in_routing_order(p, &err)
                 : strncmp(how, "random:", 7) == 0 ? at_random(p, how + 7, &err)
                                                   : by_file(p, how, &err);

    return status ? complain(status, err.text) : 0;
}

/* The hosts in use have LIDs, as many each. */
static int check_lids(const struct place *p, struct options *o)
{
    struct ibshift_error err;

    o->conf.lmc = p->fabric->ports[p->fabric->hosts[p->host[0]]].lmc;
    for (uint32_t i = 0; i < o->conf.hosts; i++) {
        const struct ibshift_port *port = &p->fabric->ports[p->fabric->hosts[p->host[i]]];
        const char *name = ibshift_host_name(p->fabric, p->host[i]);

        if (port->lid == 0) {
            ibshift_fail(&err, 0, "'%s' has no LID: neither %s nor the tables name one", name,
                         o->fabric);
            return complain(-EINVAL, err.text);
        }
        if (port->lmc != o->conf.lmc) {
            ibshift_fail(&err, 0, "'%s' has LMC %u, others have %u: one for all is modelled", name,
                         port->lmc, o->conf.lmc);
            return complain(-EINVAL, err.text);
        }
    }
    return 0;
}

static int check_together(const struct options *o)
{
    if (!o->fabric) {
        return o->lfts || o->place ? complain(-EINVAL, "--lfts and --place want --fabric") : 0;
    }
    if (o->conf.link == IBV_LINK_LAYER_ETHERNET || o->conf.hcas * o->conf.ports != 1 ||
        o->conf.lmc) {
        return complain(-EINVAL, "--fabric gives each host one InfiniBand port with the fabric's "
                                 "LIDs: leave --link, --hcas, --ports and --lmc out");
    }
    return 0;
}

static void forget(struct place *p)
{
    free(p->host);
    ibshift_fabric_free(p->fabric);
    memset(p, 0, sizeof(*p));
}

int place_load(struct options *o, struct place *p)
{
    char text[160];
    int status;

    memset(p, 0, sizeof(*p));
    status = check_together(o);
    if (status || !o->fabric) {
        o->conf.hosts = o->conf.hosts ? o->conf.hosts : 1;
        return status;
    }
    status = load(o, &p->fabric);
    status = status ? status : choose(p, o->place);
    if (status) {
        forget(p);
        return status;
    }
    if (o->conf.hosts > p->hosts) {
        snprintf(text, sizeof(text), "--hosts %u: the fabric, or the order, has %u", o->conf.hosts,
                 p->hosts);
        forget(p);
        return complain(-EINVAL, text);
    }
    o->conf.hosts = o->conf.hosts ? o->conf.hosts : p->hosts;
    o->conf.per_host = o->conf.per_host ? o->conf.per_host : 1;
    status = check_lids(p, o);
    if (status) {
        forget(p);
    }
    return status;
}

uint32_t place_links(const struct place *place)
{
    return place->fabric ? place->fabric->port_count : 2 * shm.head->port_count;
}
