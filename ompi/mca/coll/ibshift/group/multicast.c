#include "group/multicast.h"

#include <errno.h>
#include <string.h>

#include "choose/choose.h"
#include "group/endpoint.h"
#include "group/order.h"
#include "job/cards.h"
#include "job/params.h"
#include "job/say.h"
#include "net/cast/cast.h"

enum { LINE = 256, WORDS = 7 }; /* words: whether there is one, its GID, its secret */

/* What one rank comes to. */
struct forming {
    struct ibshift_join join;
    struct ibshift_cast_place place;
    char why[LINE]; /* not */
};

/* The least of all ranks' words, on all of them. */
static int agree(const struct ibshift_together *together, int mine, int *all)
{
    int rc = together->least(together->comm, mine, all);

    return rc == 0 ? together->tell(together->comm, all, 1) : rc;
}

/* The longest message; 0: it cannot. */
static int prepare(const struct ibshift_group *group, struct forming *f)
{
    size_t most;

    f->join.device = -1;
    if (ibshift_endpoint.adapter == NULL) {
        snprintf(f->why, sizeof(f->why), "there is no adapter");
        return 0;
    }
    ibshift_engine_lock(ibshift_endpoint.engine);
    most = ibshift_cast_most(ibshift_endpoint.adapter, group->peers, group->size);
    ibshift_engine_unlock(ibshift_endpoint.engine);
    if (most == 0) {
        snprintf(f->why, sizeof(f->why), "datagrams are too short");
        return 0;
    }
    return ibshift_join_open(ibshift_endpoint.verbs, &f->join, f->why, sizeof(f->why)) == 0
               ? (int)most
               : 0;
}

/* Rank 0 makes the group, or not; all hear of it. */
static int make(const struct ibshift_group *group, const struct ibshift_together *together,
                struct forming *f, bool *is_made)
{
    int words[WORDS] = {0};
    int rc;

    if (group->rank == 0) {
        words[0] = ibshift_join_group(&f->join, &f->place, f->why, sizeof(f->why)) == 0;
        memcpy(&words[1], f->place.gid, sizeof(f->place.gid));
        memcpy(&words[5], &f->place.secret, sizeof(f->place.secret));
    }
    rc = together->tell(together->comm, words, WORDS);
    *is_made = words[0] != 0;
    memcpy(f->place.gid, &words[1], sizeof(f->place.gid));
    memcpy(&f->place.secret, &words[5], sizeof(f->place.secret));
    return rc;
}

/* ns that a datagram is on its way by the prices of this group, which the first call that agrees here has made. */
static uint64_t way_of(const struct ibshift_group *group, int bytes)
{
    const struct ibshift_model *model = group->choices.model;

    return model == NULL ? 0
                         : (uint64_t)(1000 * (model->send_max + model->latency +
                                              bytes * model->gap_byte + model->recv_max));
}

static bool enter(struct ibshift_group *group, struct forming *f, int most)
{
    const struct ibshift_cast_members members = {
        .peers = group->peers,
        .count = group->size,
        .rank = group->rank,
        .most = (size_t)most,
        .way = way_of(group, most),
        .is_near = ibshift_endpoint.node == NULL ? NULL : ibshift_card_is_near};
    int rc = group->rank == 0 ? 0 : ibshift_join_group(&f->join, &f->place, f->why, sizeof(f->why));

    if (rc == 0) {
        ibshift_engine_lock(ibshift_endpoint.engine);
        rc = ibshift_cast_open(ibshift_endpoint.adapter, &members, &f->place, &f->join,
                               &group->cast.cast, f->why, sizeof(f->why));
        ibshift_engine_unlock(ibshift_endpoint.engine);
    }
    return rc == 0;
}

/* Each step only where all ranks have come through the one before. */
static int form(struct ibshift_group *group, const struct ibshift_together *together,
                struct forming *f)
{
    bool is_made = false;
    int most = 0, all = 0;
    int rc = agree(together, prepare(group, f), &most);

    if (rc == 0 && most > 0) {
        rc = make(group, together, f, &is_made);
    }
    if (rc == 0 && is_made) {
        rc = agree(together, enter(group, f, most), &all);
    }
    if (rc != 0 || !is_made || !all) {
        ibshift_group_cast_free(group);
    }
    group->cast.most = group->cast.cast != NULL ? (size_t)most : 0;
    return rc;
}

/* Each rank that has a reason tells it. */
static void explain(const struct ibshift_group *group, const struct forming *f)
{
    if (!ibshift_params.explain) {
        return;
    }
    if (group->cast.cast != NULL && group->rank == 0) {
        ibshift_say("ibshift: %s, %u ranks: multicast: messages up to %zu B in a datagram\n",
                    group->name, group->size, group->cast.most);
    } else if (group->cast.cast == NULL && f->why[0] != '\0') {
        ibshift_say("ibshift: %s: no multicast: rank %u on %s: %s\n", group->name, group->rank,
                    ibshift_teller_host(), f->why);
    }
}

static bool casts(enum ibshift_collective collective)
{
    return collective == IBSHIFT_BCAST || collective == IBSHIFT_ALLGATHER ||
           collective == IBSHIFT_ALLREDUCE;
}

bool ibshift_group_cast_is_due(const struct ibshift_group *group,
                               const struct ibshift_wanted *wanted)
{
    return ibshift_params.multicast && !group->cast.is_known && wanted->is_blocking &&
           casts(wanted->collective) && group->size > 2;
}

int ibshift_group_find(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                       const struct ibshift_together *together)
{
    struct forming f = {.why = ""};
    int rc = ibshift_group_order_find(group, wanted, together);

    if (rc != 0 || !ibshift_group_cast_is_due(group, wanted)) {
        return rc;
    }
    group->cast.is_known = group->cast.is_forming =
        true; /* what it is agreed by is a broadcast, too */
    rc = form(group, together, &f);
    group->cast.is_forming = false;
    if (f.join.device >= 0) {
        ibshift_join_close(&f.join);
    }
    for (int collective = 0; collective < IBSHIFT_COLLECTIVES; collective++) {
        if (casts((enum ibshift_collective)collective)) {
            ibshift_choices_reconsider(&group->choices, (enum ibshift_collective)collective);
        }
    }
    explain(group, &f);
    return rc;
}

void ibshift_group_cast_free(struct ibshift_group *group)
{
    if (group->cast.cast != NULL && ibshift_endpoint.adapter != NULL) {
        ibshift_engine_lock(ibshift_endpoint.engine);
        ibshift_cast_close(group->cast.cast);
        ibshift_engine_unlock(ibshift_endpoint.engine);
    }
    group->cast.cast = NULL;
    group->cast.most = 0;
}
