/* Multicast groups. A group exists while it has members; no subnet manager is asked. */
#include "verbs/mcast.h"

#include <stdlib.h>
#include <string.h>

#include "verbs/ah.h"
#include "verbs/hca.h"

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
    lock_take(&shm.head->group_lock);
    const struct shm_group *g = find_group(av->is_global ? &av->dgid : NULL, av->dlid);
    uint32_t n = g ? g->members : 0;
    if (g) {
        memcpy(members, g->qp, n * sizeof(g->qp[0]));
    }
    lock_drop(&shm.head->group_lock);
    return n;
}

static bool leave_group(struct shm_group *g, uint32_t qp)
{
    for (uint32_t i = 0; i < g->members; i++) {
        if (g->qp[i] == qp) {
            g->qp[i] = g->qp[g->members - 1];
            g->members--;
            return true;
        }
    }
    return false;
}

void mcast_forget(uint32_t qp)
{
    lock_take(&shm.head->group_lock);
    for (uint32_t i = 0; i < SHM_GROUPS; i++) {
        leave_group(&shm.groups[i], qp);
    }
    lock_drop(&shm.head->group_lock);
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
    for (uint32_t i = 0; i < g->members; i++) {
        if (g->qp[i] == qp) {
            return 0;
        }
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
    struct hca_qp *qp = container_of(ibqp, struct hca_qp, qp);
    if (ibqp->qp_type != IBV_QPT_UD || !gid_is_multicast(gid) || proc_is_forked()) {
        return EINVAL;
    }
    struct hca_group_ref *ref = calloc(1, sizeof(*ref));
    if (!ref) {
        return ENOMEM;
    }
    lock_take(&shm.head->group_lock);
    int err = join_group(gid, lid, qp->index);
    lock_drop(&shm.head->group_lock);
    if (err) {
        free(ref);
        return err;
    }
    ref->gid = *gid;
    ref->next = qp->groups;
    qp->groups = ref;
    return 0;
}

HCA_EXPORT int ibv_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
    struct hca_qp *qp = container_of(ibqp, struct hca_qp, qp);
    struct hca_group_ref **at = &qp->groups;
    while (*at && memcmp(&(*at)->gid, gid, sizeof(*gid)) != 0) {
        at = &(*at)->next;
    }
    if (!*at) {
        return EINVAL;
    }
    struct hca_group_ref *ref = *at;
    *at = ref->next;
    free(ref);
    if (!proc_is_forked()) {
        lock_take(&shm.head->group_lock);
        struct shm_group *g = find_group(gid, lid);
        if (g) {
            leave_group(g, qp->index);
        }
        lock_drop(&shm.head->group_lock);
    }
    return 0;
}
