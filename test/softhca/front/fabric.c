#include "front/fabric.h"

#include <string.h>

#include "shm/shm.h"

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
