/*
 * The kernel's side of librdmacm, which itself is not exchanged: addresses of the modelled hosts, and
 * multicast groups. There are no connections: their commands have the kernel's answer to one that it
 * does not know.
 *
 * Each port has an address as by IPoIB: 10.0.0.1 and up, in the order of all ports of the run. RoCE ports
 * have it in their GIDs too.
 */
#include <rdma/rdma_user_cm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/cm.h"

enum { UDP_QKEY = 0x01234567, IPOIB_QKEY = 0x0b1b, ROCE_LID = 0xc000, MANY_QPN = 0xffffff };
enum { ADDR_RESOLVED = 0, ADDR_ERROR, MULTICAST_JOIN = 12, MULTICAST_ERROR, ADDR_CHANGE };
enum { FAMILY_IB = 27, NET = 10 << 24 };

/* The port of this process's host that has the address; the first one when any is good. */
static uint32_t port_of(const union cm_address *a)
{
    const struct shm_conf *conf = &shm.head->conf;
    uint32_t each = conf->hcas * conf->ports, first = shm.procs[proc_self].host * each;
    uint32_t port = a->family == AF_INET ? ntohl(a->in.sin_addr.s_addr) - NET - 1 : SHM_NONE;

    if ((a->family == AF_INET && a->in.sin_addr.s_addr == INADDR_ANY) || a->family == 0) {
        return first;
    }
    return port >= first && port < first + each ? port : SHM_NONE;
}

uint32_t cm_address_of(const char *interface)
{
    const struct shm_conf *conf = &shm.head->conf;
    unsigned hca, port;
    char name[32];

    if (proc_self == SHM_NONE || sscanf(interface, CM_INTERFACE, &hca, &port) != 2 ||
        hca >= conf->hcas || port < 1 || port > conf->ports) {
        return 0;
    }
    snprintf(name, sizeof(name), CM_INTERFACE, hca, port);
    return strcmp(name, interface) != 0
               ? 0
               : htonl(NET + 1 + (shm.procs[proc_self].host * conf->hcas + hca) * conf->ports +
                       port - 1);
}

static int bind_to(struct cm_object *id, const union cm_address *a)
{
    bool is_any = a->family == AF_INET && a->in.sin_addr.s_addr == INADDR_ANY;

    if (id->from.family != 0) {
        return -EINVAL;
    }
    if (a->family == FAMILY_IB) { /* asked whether the kernel knows it; leads nowhere */
        return memcmp(&a->ib.gid, &(union ibv_gid){{0}}, sizeof(a->ib.gid)) ? -ENODEV : 0;
    }
    if (!is_any) {
        id->port = port_of(a);
        if (id->port == SHM_NONE) {
            return a->family == AF_INET ? -EADDRNOTAVAIL : -EAFNOSUPPORT;
        }
    }
    id->from = *a;
    return 0;
}

static int bind_address(int fd, const struct rdma_ucm_bind *c)
{
    struct cm_object *id = cm_find(fd, c->id, false);
    union cm_address a = {.any = c->addr};

    return id ? bind_to(id, &a) : -ENOENT;
}

static bool is_reachable(const union cm_address *to)
{
    uint32_t host;

    if (to->family == AF_INET6) {
        return to->in6.sin6_addr.s6_addr[0] == 0xff;
    }
    host = ntohl(to->in.sin_addr.s_addr);
    return to->family == AF_INET && (host >> 28 == 0xe || host - NET - 1 < shm.head->port_count);
}

static int resolve(int fd, const struct rdma_ucm_resolve_addr *c)
{
    struct cm_object *id = cm_find(fd, c->id, false);
    union cm_address from = {.any = c->src_addr};
    struct cm_event *e;
    int err = 0;

    if (!id || !(e = cm_event_new())) {
        return id ? -ENOMEM : -ENOENT;
    }
    if (id->from.family == 0 && c->src_size) {
        err = bind_to(id, &from);
    }
    if (err) {
        free(e);
        return err;
    }
    id->to = (union cm_address){.any = c->dst_addr};
    if (id->port == SHM_NONE && is_reachable(&id->to)) {
        id->port = port_of(&(union cm_address){0});
        id->from.in = (struct sockaddr_in){.sin_family = AF_INET,
                                           .sin_addr.s_addr = htonl(NET + 1 + id->port)};
    }
    cm_tell(id, e, is_reachable(&id->to) ? ADDR_RESOLVED : ADDR_ERROR,
            is_reachable(&id->to) ? 0 : -ENETUNREACH, NULL);
    return 0;
}

static bool is_ethernet(void)
{
    return shm.head->conf.link == IBV_LINK_LAYER_ETHERNET;
}

/* Of the partition that the address belongs to: the port's first key. */
static uint16_t pkey_of(uint32_t port)
{
    return shm.ports[port].pkey[0] | 0x8000;
}

static int query(int fd, const struct rdma_ucm_query *c, void *answer, size_t room)
{
    struct cm_object *id = cm_find(fd, c->id, false);
    struct rdma_ucm_query_addr_resp *r = answer;
    bool is_gid = c->option == RDMA_USER_CM_QUERY_GID;
    const struct shm_port *p;

    if (!id || room < sizeof(*r) || (c->option != RDMA_USER_CM_QUERY_ADDR && !is_gid)) {
        return !id ? -ENOENT : room < sizeof(*r) ? -ENOSPC : -ENOSYS;
    }
    memset(r, 0, sizeof(*r));
    r->src_addr = id->from.any;
    r->dst_addr = id->to.any;
    r->src_size = r->dst_size = sizeof(struct sockaddr_in6);
    if (id->port == SHM_NONE) {
        return 0;
    }
    p = &shm.ports[id->port];
    r->node_guid = htobe64(shm.ports[id->port - (p->num - 1)].guid - 1);
    r->port_num = (uint8_t)p->num;
    r->pkey = htobe16(pkey_of(id->port));
    r->ibdev_index = p->hca;
    if (is_gid) {
        union cm_address gid = {.ib = {.family = FAMILY_IB, .gid = p->gid[p->gids - 1]}};

        r->src_addr = gid.any;
        memset(&r->dst_addr, 0, sizeof(r->dst_addr));
    }
    return 0;
}

static uint32_t qkey_of(const struct cm_object *id)
{
    return id->space == RDMA_PS_IPOIB ? IPOIB_QKEY : UDP_QKEY;
}

static int init_queue_pair(int fd, const struct rdma_ucm_init_qp_attr *c, void *answer, size_t room)
{
    struct cm_object *id = cm_find(fd, c->id, false);
    struct ib_uverbs_qp_attr *a = answer;

    if (!id || room < sizeof(*a)) {
        return id ? -ENOSPC : -ENOENT;
    }
    if (id->port == SHM_NONE || (id->type != IBV_QPT_UD && c->qp_state != IBV_QPS_INIT)) {
        return -EINVAL;
    }
    memset(a, 0, sizeof(*a));
    a->qp_state = c->qp_state;
    a->port_num = (uint8_t)shm.ports[id->port].num;
    a->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    if (id->type == IBV_QPT_UD) {
        a->qkey = qkey_of(id);
        a->qp_attr_mask |= IBV_QP_QKEY;
    } else {
        a->qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
    }
    return 0;
}

/* How the kernel writes an address of IP as a group's GID. */
static int name_group(const struct cm_object *id, const union cm_address *a, union ibv_gid *gid)
{
    const uint8_t *in6 = a->in6.sin6_addr.s6_addr, *in = (const void *)&a->in.sin_addr;
    uint8_t signature = id->space == RDMA_PS_UDP ? 0x01 : 0x1b;
    uint16_t pkey = htobe16(pkey_of(id->port));

    memset(gid, 0, sizeof(*gid));
    if (a->family == FAMILY_IB) {
        *gid = a->ib.gid;
    } else if (a->family == AF_INET6) {
        if (is_ethernet() || ((in6[1] & 0xf0) == 0x10 && in6[2] == 0xa0 && in6[3] == 0x1b) ||
            memcmp(in6, &in6addr_any, 16) == 0) { /* the subnet manager's own name for it */
            memcpy(gid, in6, 16);
        } else {
            memcpy(gid->raw, (const uint8_t[]){0xff, 0x12, 0x60, signature}, 4);
            memcpy(gid->raw + 4, &pkey, sizeof(pkey));
            memcpy(gid->raw + 6, in6 + 6, 10);
        }
    } else if (a->family != AF_INET) {
        return -EINVAL;
    } else if (is_ethernet()) {
        memset(gid->raw + 10, 0xff, 2);
        memcpy(gid->raw + 12, in, 4);
    } else if (a->in.sin_addr.s_addr != INADDR_ANY) {
        memcpy(gid->raw, (const uint8_t[]){0xff, 0x12, 0x40, signature}, 4);
        memcpy(gid->raw + 4, &pkey, sizeof(pkey));
        memcpy(gid->raw + 12, (const uint8_t[]){in[0] & 0x0f, in[1], in[2], in[3]}, 4);
    }
    return is_ethernet() && !gid_is_multicast(gid) ? -EINVAL : 0;
}

static void describe_group(const struct cm_object *m, struct rdma_ucm_ud_param *ud)
{
    const struct shm_port *p = &shm.ports[m->group.port];

    ud->qp_num = MANY_QPN;
    ud->qkey = m->group.qkey;
    memcpy(ud->ah_attr.grh.dgid, &m->group.gid, sizeof(ud->ah_attr.grh.dgid));
    ud->ah_attr.grh.sgid_index = (uint8_t)(p->gids - 1);
    ud->ah_attr.grh.hop_limit = is_ethernet() ? 1 : 0;
    ud->ah_attr.is_global = 1;
    ud->ah_attr.dlid = is_ethernet() ? ROCE_LID : m->group.lid;
    ud->ah_attr.port_num = (uint8_t)p->num;
}

static int join(int fd, const struct rdma_ucm_join_mcast *c, void *answer, size_t room)
{
    struct cm_object *id = cm_find(fd, c->id, false), *m = NULL;
    struct cm_event *e = NULL, *change;
    int err = !id ? -ENOENT : room < sizeof(uint32_t) ? -ENOSPC : 0;
    union cm_address a = {.any = c->addr};
    struct rdma_ucm_ud_param about = {0};

    if (!err && (id->port == SHM_NONE || c->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)) {
        err = -EINVAL;
    }
    if (!err) {
        m = cm_make(fd, c->uid, id);
        e = cm_event_new();
        err = m && e ? name_group(id, &a, &m->group.gid) : -ENOMEM;
    }
    if (err) {
        free(e);
        if (m) {
            cm_drop(m);
        }
        return err;
    }
    m->group.qkey = qkey_of(id);
    m->group.port = id->port;
    err = group_enter(&m->group);
    m->has_joined = err == 0;
    describe_group(m, &about);
    memcpy(answer, &m->number, sizeof(m->number));
    if (shm.head->conf.adversarial && (change = cm_event_new())) {
        cm_tell(id, change, ADDR_CHANGE, 0, NULL);
    }
    cm_tell(m, e, err ? MULTICAST_ERROR : MULTICAST_JOIN, -err, &about);
    return 0;
}

static int create(int fd, const struct rdma_ucm_create_id *c, void *answer, size_t room)
{
    struct cm_object *id = room < sizeof(uint32_t) ? NULL : cm_make(fd, c->uid, NULL);

    if (!id) {
        return room < sizeof(uint32_t) ? -ENOSPC : -ENOMEM;
    }
    id->space = c->ps;
    id->type = c->qp_type;
    memcpy(answer, &id->number, sizeof(id->number));
    return 0;
}

static int end(int fd, const struct rdma_ucm_destroy_id *c, void *answer, size_t room,
               bool is_membership)
{
    struct cm_object *o = cm_find(fd, c->id, is_membership);

    if (!o || room < sizeof(uint32_t)) {
        return o ? -ENOSPC : -ENOENT;
    }
    memcpy(answer, &o->reported, sizeof(o->reported));
    cm_drop(o);
    return 0;
}

static int run(int fd, uint32_t command, const void *c, void *answer, size_t room)
{
    switch (command) {
    case RDMA_USER_CM_CMD_CREATE_ID:
        return create(fd, c, answer, room);
    case RDMA_USER_CM_CMD_DESTROY_ID:
        return end(fd, c, answer, room, false);
    case RDMA_USER_CM_CMD_LEAVE_MCAST:
        return end(fd, c, answer, room, true);
    case RDMA_USER_CM_CMD_BIND:
        return bind_address(fd, c);
    case RDMA_USER_CM_CMD_RESOLVE_ADDR:
        return resolve(fd, c);
    case RDMA_USER_CM_CMD_QUERY:
        return query(fd, c, answer, room);
    case RDMA_USER_CM_CMD_INIT_QP_ATTR:
        return init_queue_pair(fd, c, answer, room);
    default:
        return join(fd, c, answer, room);
    }
}

/* What a command must have at least; 0: it is not modelled. */
static const size_t least[] = {
    [RDMA_USER_CM_CMD_CREATE_ID] = sizeof(struct rdma_ucm_create_id),
    [RDMA_USER_CM_CMD_DESTROY_ID] = sizeof(struct rdma_ucm_destroy_id),
    [RDMA_USER_CM_CMD_LEAVE_MCAST] = sizeof(struct rdma_ucm_destroy_id),
    [RDMA_USER_CM_CMD_BIND] = sizeof(struct rdma_ucm_bind),
    [RDMA_USER_CM_CMD_RESOLVE_ADDR] = sizeof(struct rdma_ucm_resolve_addr),
    [RDMA_USER_CM_CMD_QUERY] = sizeof(struct rdma_ucm_query),
    [RDMA_USER_CM_CMD_INIT_QP_ATTR] = sizeof(struct rdma_ucm_init_qp_attr),
    [RDMA_USER_CM_CMD_GET_EVENT] = sizeof(struct rdma_ucm_get_event),
    [RDMA_USER_CM_CMD_JOIN_MCAST] = sizeof(struct rdma_ucm_join_mcast),
};

static int obey(int fd, const void *command, size_t bytes)
{
    const struct rdma_ucm_cmd_hdr *head = command;
    const uint64_t *body = (const void *)(head + 1);
    void *answer;
    int err;

    if (bytes < sizeof(*head) || head->in + sizeof(*head) > bytes) {
        return -EINVAL;
    }
    if (head->cmd >= sizeof(least) / sizeof(least[0]) || least[head->cmd] == 0) {
        return -ENOSYS;
    }
    if (head->in < least[head->cmd] || proc_is_forked()) {
        return -EINVAL;
    }
    answer =
        (void *)(uintptr_t)body[head->cmd == RDMA_USER_CM_CMD_CREATE_ID]; /* where there is one */
    if (head->cmd == RDMA_USER_CM_CMD_GET_EVENT) {
        return cm_next_event(fd, answer, head->out);
    }
    cm_lock();
    err = run(fd, head->cmd, body, answer, head->out);
    cm_unlock();
    return err;
}

ssize_t cm_write(int fd, const void *command, size_t bytes)
{
    int err = obey(fd, command, bytes);

    if (err) {
        errno = -err;
        return -1;
    }
    return (ssize_t)bytes;
}
