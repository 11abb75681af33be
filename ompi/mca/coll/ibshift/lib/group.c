#include "lib/private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "group/choose.h"

_Thread_local char *ibshift_lib_why;

struct ibs_group *ibshift_lib_group(struct ibs_job *job, uint32_t id)
{
    struct ibs_group *group = job->groups;

    while (group != NULL && group->group.id != id) {
        group = group->next;
    }
    return group;
}

/* 0, or -EINVAL: one is not in the job, twice in the group, or this process is not in it. */
static int set_peers(struct ibshift_group *group, const struct ibs_job *job, const uint32_t *ranks)
{
    bool *has = calloc(job->setup.ranks, sizeof(*has));
    int rc = has == NULL ? -ENOMEM : 0;

    group->rank = group->size;
    for (uint32_t i = 0; rc == 0 && i < group->size; i++) {
        uint32_t peer = ranks == NULL ? i : ranks[i];

        if (peer >= job->setup.ranks || has[peer]) {
            rc = -EINVAL;
        } else {
            has[peer] = true;
            group->peers[i] = peer;
            group->rank = peer == job->setup.rank ? i : group->rank;
        }
    }
    free(has);
    return rc == 0 && group->rank == group->size ? -EINVAL : rc;
}

/* Two threads may want the same number. */
static int enlist(struct ibs_job *job, struct ibs_group *group)
{
    int rc = 0;

    pthread_mutex_lock(&job->lock);
    if (ibshift_lib_group(job, group->group.id) != NULL) {
        rc = -EEXIST;
    } else {
        group->next = job->groups;
        job->groups = group;
    }
    pthread_mutex_unlock(&job->lock);
    return rc;
}

static void drop(struct ibs_group *group)
{
    ibshift_group_cast_free(&group->group);
    ibshift_group_free(&group->group);
    free(group->group.peers);
    free(group);
}

int ibs_group_create(struct ibs_job *job, uint32_t id, const uint32_t *ranks, uint32_t count,
                     struct ibs_group **out)
{
    struct ibs_group *group;
    int rc;

    if (job == NULL || out == NULL || id >= IBS_GROUPS || (ranks != NULL && count == 0)) {
        return -EINVAL;
    }
    group = calloc(1, sizeof(*group));
    if (group == NULL) {
        return -ENOMEM;
    }
    group->job = job;
    group->group.id = id;
    group->group.size = ranks == NULL ? job->setup.ranks : count;
    group->group.name = group->name;
    group->group.peers = calloc(group->group.size, sizeof(*group->group.peers));
    snprintf(group->name, sizeof(group->name), "group %u", id);
    ibshift_ledger_init(&group->group.ledger);
    rc = group->group.peers == NULL ? -ENOMEM : set_peers(&group->group, job, ranks);
    rc = rc == 0 ? enlist(job, group) : rc;
    if (rc != 0) {
        drop(group);
        return rc;
    }
    if (ibshift_endpoint.engine != NULL) {
        ibshift_engine_enter(ibshift_endpoint.engine, id);
    }
    *out = group;
    return 0;
}

int ibs_group_free(struct ibs_group *group)
{
    struct ibs_job *job = group == NULL ? NULL : group->job;
    struct ibs_group **at;

    if (job == NULL) {
        return -EINVAL;
    }
    if (atomic_load(&group->running) > 0) {
        return -EBUSY;
    }
    pthread_mutex_lock(&job->lock);
    for (at = &job->groups; *at != group; at = &(*at)->next) {
    }
    *at = group->next;
    pthread_mutex_unlock(&job->lock);
    if (ibshift_endpoint.engine != NULL) {
        (void)ibshift_engine_forget(ibshift_endpoint.engine, group->group.id);
    }
    drop(group);
    return 0;
}

const char *ibs_group_error(const struct ibs_group *group)
{
    return group == NULL ? "" : group->why;
}
