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

bool gid_is_multicast(const union ibv_gid *gid)
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
