/* Addresses: handles for datagrams, and the paths of connections. */
#include "verbs/hca.h"

#include <stdlib.h>
#include <string.h>

enum { MULTICAST_LID = 0xc000 };

int av_make(const struct hca_ctx *ctx, const struct ibv_ah_attr *attr, struct shm_av *av)
{
    bool is_ib = shm.head->conf.link == IBV_LINK_LAYER_INFINIBAND;
    const struct shm_port *port = ctx_port(ctx, attr->port_num);

    memset(av, 0, sizeof(*av));
    if (!port || attr->sl > 15 || (port->needs_grh && !attr->is_global) ||
        (is_ib && attr->dlid == 0) || (attr->src_path_bits >> shm.head->conf.lmc && is_ib)) {
        return EINVAL;
    }
    if (attr->is_global && attr->grh.sgid_index >= port->gids) {
        return EINVAL;
    }
    av->port = attr->port_num;
    av->dlid = is_ib ? attr->dlid : 0;
    av->sl = attr->sl;
    av->path_bits = attr->src_path_bits;
    av->static_rate = attr->static_rate;
    av->is_global = attr->is_global != 0;
    if (av->is_global) {
        av->dgid = attr->grh.dgid;
        av->sgid_index = attr->grh.sgid_index;
        av->flow_label = attr->grh.flow_label;
        av->hop_limit = attr->grh.hop_limit;
        av->traffic_class = attr->grh.traffic_class;
    }
    return 0;
}

/* An IPv6 group, or an IPv4 one as RoCE writes it. */
static bool gid_is_multicast(const union ibv_gid *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    return gid->raw[0] == 0xff ||
           (memcmp(gid->raw, mapped, sizeof(mapped)) == 0 && (gid->raw[12] & 0xf0) == 0xe0);
}

bool av_is_multicast(const struct shm_av *av)
{
    return av->dlid >= MULTICAST_LID || (av->is_global && gid_is_multicast(&av->dgid));
}

static int gid_index_of(const struct shm_port *p, const union ibv_gid *gid)
{
    for (uint32_t i = 0; i < p->gids; i++) {
        if (memcmp(&p->gid[i], gid, sizeof(*gid)) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* A port drops what has no global header when it wants one, and what has another's GID there. */
static uint32_t port_of_lid(const struct shm_av *av)
{
    uint32_t i = av->dlid < SHM_LIDS ? shm.head->lid_port[av->dlid] : SHM_NONE;
    const struct shm_port *p;
    bool fits;

    if (i == SHM_NONE) {
        return SHM_NONE;
    }
    p = &shm.ports[i];
    fits = av->is_global ? gid_index_of(p, &av->dgid) >= 0 : !p->needs_grh;
    return fits ? i : SHM_NONE;
}

uint32_t av_port(const struct shm_av *av)
{
    if (shm.head->conf.link == IBV_LINK_LAYER_INFINIBAND) {
        return port_of_lid(av);
    }
    for (uint32_t i = 0; i < shm.head->port_count; i++) {
        if (gid_index_of(&shm.ports[i], &av->dgid) >= 0) {
            return i;
        }
    }
    return SHM_NONE;
}

HCA_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct shm_av av;
    int err = shm.head->conf.no_ah ? EOPNOTSUPP : av_make(to_ctx(pd->context), attr, &av);
    struct hca_ah *ah = err ? NULL : calloc(1, sizeof(*ah));

    if (!ah) {
        return FAIL_WITH(err ? err : ENOMEM);
    }
    ah->ah.context = pd->context;
    ah->ah.pd = pd;
    ah->av = av;
    pd_use(pd, 1);
    return &ah->ah;
}

HCA_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
    pd_use(ah->pd, -1);
    free(container_of(ah, struct hca_ah, ah));
    return 0;
}

static struct shm_group *find_group(const union ibv_gid *gid, uint16_t lid)
{
    for (uint32_t i = 0; i < SHM_GROUPS; i++) {
        struct shm_group *g = &shm.groups[i];

        if (g->members && (gid ? memcmp(&g->gid, gid, sizeof(*gid)) == 0 : g->lid == lid)) {
            return g;
        }
    }
    return NULL;
}

static struct shm_group *empty_group(void)
{
    for (uint32_t i = 0; i < SHM_GROUPS; i++) {
        if (shm.groups[i].members == 0) {
            return &shm.groups[i];
        }
    }
    return NULL;
}

uint32_t mcast_members(const struct shm_av *av, uint32_t *members)
{
    const struct shm_group *g;
    uint32_t n;

    lock_take(&shm.head->group_lock);
    g = find_group(av->is_global ? &av->dgid : NULL, av->dlid);
    n = g ? g->members : 0;
    if (g) {
        memcpy(members, g->qp, n * sizeof(g->qp[0]));
    }
    lock_drop(&shm.head->group_lock);
    return n;
}

static bool is_in_group(struct shm_group *g, uint32_t qp, bool leaves)
{
    for (uint32_t i = 0; i < g->members; i++) {
        if (g->qp[i] == qp) {
            if (leaves) {
                g->qp[i] = g->qp[--g->members];
            }
            return true;
        }
    }
    return false;
}

bool mcast_is_member(uint32_t qp, bool leaves)
{
    bool was_there = false;

    lock_take(&shm.head->group_lock);
    for (uint32_t i = 0; i < SHM_GROUPS; i++) {
        was_there |= is_in_group(&shm.groups[i], qp, leaves);
    }
    lock_drop(&shm.head->group_lock);
    return was_there;
}

static int join_group(const union ibv_gid *gid, uint16_t lid, uint32_t qp)
{
    struct shm_group *g = find_group(gid, lid);

    if (!g) {
        g = empty_group();
        if (!g) {
            return ENOMEM;
        }
        g->gid = *gid;
        g->lid = lid;
    }
    if (is_in_group(g, qp, false)) {
        return 0;
    }
    if (g->members == SHM_MEMBERS) {
        return ENOMEM;
    }
    g->qp[g->members] = qp;
    g->members++;
    return 0;
}

HCA_EXPORT int ibv_attach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
    int err;

    if (ibqp->qp_type != IBV_QPT_UD || !gid_is_multicast(gid) || proc_is_forked()) {
        return EINVAL;
    }
    lock_take(&shm.head->group_lock);
    err = join_group(gid, lid, container_of(ibqp, struct hca_qp, qp)->index);
    lock_drop(&shm.head->group_lock);
    return err;
}

HCA_EXPORT int ibv_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
    struct shm_group *g;
    bool was_there;

    if (proc_is_forked()) {
        return EPERM;
    }
    lock_take(&shm.head->group_lock);
    g = find_group(gid, lid);
    was_there = g && is_in_group(g, container_of(ibqp, struct hca_qp, qp)->index, true);
    lock_drop(&shm.head->group_lock);
    return was_there ? 0 : EINVAL;
}
