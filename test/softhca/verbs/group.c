/* Multicast groups: queue pairs attach to them, and ports join them at the subnet administrator. */
#include <string.h>

#include "verbs/hca.h"

enum { FIRST_LID = 0xc001 }; /* 0xc000 is the broadcast group's */

static struct shm_group *find_group(const union ibv_gid *gid, uint16_t lid)
{
    for (uint32_t i = 0; i < shm.head->groups_used; i++) {
        struct shm_group *g = &shm.groups[i];

        if (g->members + g->joins > 0 &&
            (gid ? memcmp(&g->gid, gid, sizeof(*gid)) == 0 : g->lid == lid)) {
            return g;
        }
    }
    return NULL;
}

static struct shm_group *empty_group(void)
{
    for (uint32_t i = 0; i < SHM_GROUPS; i++) {
        if (i == shm.head->groups_used) {
            shm.head->groups_used++;
        }
        if (shm.groups[i].members + shm.groups[i].joins == 0) {
            return &shm.groups[i];
        }
    }
    return NULL;
}

/* Its place, or joins. proc SHM_NONE: whichever process joined with the port. */
static uint32_t find_join(const struct shm_group *g, uint32_t port, uint32_t proc)
{
    uint32_t i = 0;

    while (i < g->joins &&
           (g->join[i].port != port || (proc != SHM_NONE && g->join[i].proc != proc))) {
        i++;
    }
    return i;
}

/* Switches forward between ports that have joined, by the group's LID. */
static bool is_heard(const struct shm_group *g, uint32_t port)
{
    return g->joins == 0 || find_join(g, port, SHM_NONE) < g->joins;
}

uint32_t mcast_members(uint32_t from, const struct shm_av *av, uint32_t *members)
{
    const struct shm_group *g;
    uint32_t n = 0;

    lock_take(&shm.head->group_lock);
    g = find_group(av->is_global ? &av->dgid : NULL, av->dlid);
    if (g && is_heard(g, from) && (g->joins == 0 || av->dlid == 0 || av->dlid == g->lid)) {
        for (uint32_t i = 0; i < g->members; i++) {
            if (is_heard(g, shm.qps[g->qp[i]].port)) {
                members[n++] = g->qp[i];
            }
        }
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
    for (uint32_t i = 0; i < shm.head->groups_used; i++) {
        was_there |= is_in_group(&shm.groups[i], qp, leaves);
    }
    lock_drop(&shm.head->group_lock);
    return was_there;
}

static struct shm_group *make_group(const union ibv_gid *gid, uint16_t lid)
{
    struct shm_group *g = empty_group();

    if (g) {
        g->gid = *gid;
        g->lid = lid ? lid : (uint16_t)(FIRST_LID + (g - shm.groups));
    }
    return g;
}

static int attach(const union ibv_gid *gid, uint16_t lid, uint32_t qp)
{
    struct shm_group *g = find_group(gid, lid);

    if (!g) {
        g = make_group(gid, lid);
    }
    if (!g) {
        return ENOMEM;
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
    err = attach(gid, lid, container_of(ibqp, struct hca_qp, qp)->index);
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

/* As a subnet manager names them: its signature, the subnet, a number. */
static void name_group(union ibv_gid *gid)
{
    static const uint8_t start[] = {0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80};

    uint32_t number;

    memset(gid, 0, sizeof(*gid));
    memcpy(gid->raw, start, sizeof(start));
    do {
        shm.head->groups_named++;
        number = htobe32(shm.head->groups_named);
        memcpy(gid->raw + 12, &number, sizeof(number));
    } while (find_group(gid, 0));
}

static uint32_t groups_made(void)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < shm.head->groups_used; i++) {
        n += shm.groups[i].joins > 0;
    }
    return n;
}

static int enter(struct group_record *r)
{
    static const union ibv_gid none;
    bool is_new = memcmp(&r->gid, &none, sizeof(none)) == 0;
    struct shm_group *g = is_new ? NULL : find_group(&r->gid, 0);

    if (!is_new && !gid_is_multicast(&r->gid)) {
        return EINVAL;
    }
    if (!g || g->joins == 0) {
        if (groups_made() >= shm.head->conf.max_groups) {
            return EINVAL; /* what the kernel makes of any answer but a good one */
        }
        if (is_new) {
            name_group(&r->gid);
        }
        g = g ? g : make_group(&r->gid, 0);
        if (!g) {
            return EINVAL;
        }
        g->qkey = r->qkey;
    }
    if (g->qkey != r->qkey || g->joins == SHM_MEMBERS) {
        return EINVAL;
    }
    r->lid = g->lid;
    g->join[g->joins] = (struct shm_join){proc_self, r->port};
    g->joins++;
    return 0;
}

int group_enter(struct group_record *r)
{
    int err;

    lock_take(&shm.head->group_lock);
    err = enter(r);
    lock_drop(&shm.head->group_lock);
    return err;
}

void group_leave(const struct group_record *r)
{
    struct shm_group *g;
    uint32_t i;

    lock_take(&shm.head->group_lock);
    g = find_group(&r->gid, r->lid);
    i = g ? find_join(g, r->port, proc_self) : 0;
    if (g && i < g->joins) {
        g->join[i] = g->join[--g->joins];
    }
    lock_drop(&shm.head->group_lock);
}

void group_forget(uint32_t proc)
{
    lock_take(&shm.head->group_lock);
    for (uint32_t i = 0; i < shm.head->groups_used; i++) {
        struct shm_group *g = &shm.groups[i];

        for (uint32_t j = g->joins; j-- > 0;) {
            if (g->join[j].proc == proc) {
                g->join[j] = g->join[--g->joins];
            }
        }
    }
    lock_drop(&shm.head->group_lock);
}
