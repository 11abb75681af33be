/* Which hosts there are: those of a fabric, or modelled ones; and their ports. */
#include "front/front.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/shape/order.h"
#include "fabric/graph/random.h"
#include "fabric/read/read.h"

static int load(const struct options *o, struct ibshift_fabric **f)
{
    struct ibshift_warnings warnings = {0};
    struct ibshift_error err;
    int status = ibshift_fabric_load(o->fabric, o->lfts, f, &warnings, &err);

    if (status) {
        return front_refuse(status, "%s", err.text);
    }
    if (!(*f)->lft) {
        return front_refuse(-EINVAL, "%s has no forwarding tables: name a dump of them with --lfts",
                            o->fabric);
    }
    if ((*f)->host_count == 0) {
        return front_refuse(-EINVAL, "%s has no hosts", o->fabric);
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

    return status ? front_refuse(status, "%s", err.text) : 0;
}

/* The hosts in use have LIDs, as many each. */
static int check_lids(const struct place *p, struct options *o)
{
    o->conf.lmc = p->fabric->ports[p->fabric->hosts[p->host[0]]].lmc;
    for (uint32_t i = 0; i < o->conf.hosts; i++) {
        const struct ibshift_port *port = &p->fabric->ports[p->fabric->hosts[p->host[i]]];
        const char *name = ibshift_host_name(p->fabric, p->host[i]);

        if (port->lid == 0) {
            return front_refuse(-EINVAL, "'%s' has no LID: neither %s nor the tables name one",
                                name, o->fabric);
        }
        if (port->lmc != o->conf.lmc) {
            return front_refuse(-EINVAL, "'%s' has LMC %u, others have %u: one for all is modelled",
                                name, port->lmc, o->conf.lmc);
        }
    }
    return 0;
}

static int check_together(const struct options *o)
{
    if (!o->fabric) {
        return o->lfts || o->place ? front_refuse(-EINVAL, "--lfts and --place want --fabric") : 0;
    }
    if (o->conf.link == IBV_LINK_LAYER_ETHERNET || o->conf.hcas * o->conf.ports != 1 ||
        o->conf.lmc) {
        return front_refuse(-EINVAL,
                            "--fabric gives each host one InfiniBand port with the fabric's "
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
    int status = check_together(o);

    memset(p, 0, sizeof(*p));
    if (status || !o->fabric) {
        o->conf.hosts = o->conf.hosts ? o->conf.hosts : 1;
        return status;
    }
    status = load(o, &p->fabric);
    status = status ? status : choose(p, o->place);
    if (status == 0 && o->conf.hosts > p->hosts) {
        status = front_refuse(-EINVAL, "--hosts %u: the fabric, or the order, has %u",
                              o->conf.hosts, p->hosts);
    }
    if (status == 0) {
        o->conf.hosts = o->conf.hosts ? o->conf.hosts : p->hosts;
        o->conf.per_host = o->conf.per_host ? o->conf.per_host : 1;
        status = check_lids(p, o);
    }
    if (status) {
        forget(p);
    }
    return status;
}

uint32_t place_links(const struct place *place)
{
    return place->fabric ? place->fabric->port_count : 2 * shm.head->port_count;
}

#define GUID_BASE 0x0250f0fffe000000ull

static void add_gid(struct shm_port *p, uint64_t prefix, uint64_t id, uint8_t type)
{
    union ibv_gid *g = &p->gid[p->gids];

    g->global.subnet_prefix = htobe64(prefix);
    g->global.interface_id = htobe64(id);
    p->gid_type[p->gids] = type;
    p->gids++;
}

/* As the kernel fills it for an Ethernet port with a link-local IPv6 and an IPv4 address. */
static void add_roce_gids(struct shm_port *p, uint32_t index)
{
    const uint64_t link_local = 0xfe80ull << 48, mapped = 0xffffull << 32;
    uint32_t ipv4 = 10u << 24 | (index + 1);

    add_gid(p, link_local, p->guid ^ 0x0200000000000000ull, IBV_GID_TYPE_ROCE_V1);
    add_gid(p, link_local, p->guid ^ 0x0200000000000000ull, IBV_GID_TYPE_ROCE_V2);
    add_gid(p, 0, mapped | ipv4, IBV_GID_TYPE_ROCE_V1);
    add_gid(p, 0, mapped | ipv4, IBV_GID_TYPE_ROCE_V2);
}

static void give_lids(struct shm_port *p, uint32_t index, uint32_t lid)
{
    p->lid = (uint16_t)lid;
    for (uint32_t i = 0; i < 1u << shm.head->conf.lmc; i++) {
        shm.head->lid_port[lid + i] = index;
    }
    add_gid(p, 0xfe80ull << 48, p->guid, IBV_GID_TYPE_IB);
}

/* A port of the fabric that was given. */
static void take_port(struct shm_port *p, uint32_t index, const struct ibshift_port *port)
{
    p->num = 1;
    p->host = index;
    p->guid = port->guid ? port->guid : GUID_BASE + 4ull * (index + 1) + p->num;
    atomic_store(&p->state, IBV_PORT_ACTIVE);
    give_lids(p, index, port->lid);
}

static void make_port(struct shm_port *p, uint32_t index)
{
    const struct shm_conf *conf = &shm.head->conf;
    uint32_t first;

    p->num = index % conf->ports + 1;
    p->hca = index / conf->ports % conf->hcas;
    p->host = index / conf->ports / conf->hcas;
    /* A multiple of 4 per HCA: its node has it, its ports the next ones. */
    p->guid = GUID_BASE + 4ull * (index / conf->ports + 1) + p->num;
    atomic_store(&p->state, IBV_PORT_ACTIVE);
    if (conf->link == IBV_LINK_LAYER_ETHERNET) {
        add_roce_gids(p, index);
        return;
    }
    first = ((SHM_FIRST_LID - 1) >> conf->lmc << conf->lmc) + (1u << conf->lmc);
    give_lids(p, index, first + (index << conf->lmc));
}

static bool needs_grh(const struct shm_port *p)
{
    const struct shm_conf *conf = &shm.head->conf;

    return conf->link == IBV_LINK_LAYER_ETHERNET || conf->grh == PORTS_ALL ||
           (conf->grh == PORTS_ODD && p->host % 2 == 1);
}

static void give_keys(struct shm_port *p)
{
    const struct shm_conf *conf = &shm.head->conf;

    if (conf->link == IBV_LINK_LAYER_ETHERNET) {
        p->pkey[0] = 0xffff; /* there are no partitions, and every port says so */
        return;
    }
    memcpy(p->pkey, conf->pkeys[p->host % 2], sizeof(p->pkey));
}

void fabric_make_ports(const struct place *place)
{
    const struct shm_conf *conf = &shm.head->conf;

    shm.head->port_count = conf->hosts * conf->hcas * conf->ports;
    for (uint32_t i = 0; i < SHM_LIDS; i++) {
        shm.head->lid_port[i] = SHM_NONE;
    }
    for (uint32_t i = 0; i < shm.head->port_count; i++) {
        if (place->fabric) {
            take_port(&shm.ports[i], i,
                      &place->fabric->ports[place->fabric->hosts[place->host[i]]]);
        } else {
            make_port(&shm.ports[i], i);
        }
        shm.ports[i].needs_grh = needs_grh(&shm.ports[i]);
        give_keys(&shm.ports[i]);
    }
}
