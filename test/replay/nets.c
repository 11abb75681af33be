/*
 * Between the component and its library (--wrap): hosts of their own, limits of the nets that nobody can set, what has
 * moved, what has failed, and what the adapter refuses.
 */
#include "ompi.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "causes.h"
#include "group/report.h"
#include "left.h"
#include "scheduler.h"

extern __typeof__(ibshift_net_node_create) __real_ibshift_net_node_create,
    __wrap_ibshift_net_node_create;
extern __typeof__(ibshift_net_verbs_create) __real_ibshift_net_verbs_create,
    __wrap_ibshift_net_verbs_create;
extern __typeof__(ibshift_engine_create) __real_ibshift_engine_create, __wrap_ibshift_engine_create;
extern __typeof__(ibshift_engine_progress) __real_ibshift_engine_progress,
    __wrap_ibshift_engine_progress;
extern __typeof__(ibshift_engine_free) __real_ibshift_engine_free, __wrap_ibshift_engine_free;
extern __typeof__(ibshift_report) __real_ibshift_report, __wrap_ibshift_report;
extern __typeof__(ibshift_report_counts) __real_ibshift_report_counts, __wrap_ibshift_report_counts;

int __wrap_ibshift_net_node_create(const struct ibshift_node_options *options,
                                   struct ibshift_net **net, char *error, size_t size)
{
    struct ibshift_node_options ours = *options;
    struct ibshift_node_card *card;
    int rc;

    ours.folder = orte_process_info.nodename; /* in the run's folder, where the process stands */
    ours.job = 7000;
    rc = __real_ibshift_net_node_create(&ours, net, error, size);
    if (rc == 0) { /* the real one is made of an inode's number, and hosts are sorted by it */
        card = (struct ibshift_node_card *)(uintptr_t)ibshift_net_node_card(*net);
        card->host = (uint64_t)program_host_of(replay_program(), replay_self()) + 1;
        left_watch(NULL, *net);
    }
    return rc;
}

static unsigned path_of(void *context, uint32_t peer)
{
    (void)context;
    return peer % 4;
}

int __wrap_ibshift_net_verbs_create(struct ibshift_verbs *verbs,
                                    const struct ibshift_net_verbs_options *options,
                                    struct ibshift_net **net, char *error, size_t size)
{
    struct ibshift_net_verbs_options ours = *options;
    struct replay_card *card = replay_card(replay_self());
    const void *address = ibshift_verbs_card(verbs, &card->address_size);
    int rc;

    memcpy(card->address, address, card->address_size);
    ours.rings = replay_program()->rings;
    ours.queue = replay_program()->queue;
    ours.path = replay_program()->has_paths ? path_of : options->path;
    if (ours.memory < ibshift_net_verbs_memory_min(&ours)) {
        ours.memory = ibshift_net_verbs_memory_min(&ours);
    }
    rc = __real_ibshift_net_verbs_create(verbs, &ours, net, error, size);
    left_watch(rc == 0 ? *net : NULL, NULL);
    return rc;
}

/* Polls that find nothing cost the test most: fewer stand for those that a process makes meanwhile. */
struct ibshift_engine *__wrap_ibshift_engine_create(struct ibshift_net *net,
                                                    const struct ibshift_engine_options *options)
{
    struct ibshift_engine_options ours = *options;

    ours.calls = replay_program()->calls;
    return __real_ibshift_engine_create(net, &ours);
}

int __wrap_ibshift_engine_progress(struct ibshift_engine *engine)
{
    int events = __real_ibshift_engine_progress(engine);

    if (events > 0) {
        replay_progressed();
    } else {
        replay_idle();
    }
    return events;
}

bool left_is_excused(void)
{
    return ompi_has_any_failed() || causes_has(replay_self(), CAUSE_MEMORY) ||
           causes_taint(1u << replay_self());
}

void __wrap_ibshift_engine_free(struct ibshift_engine *engine)
{
    left_check(left_is_excused());
    __real_ibshift_engine_free(engine);
}

static struct ompi_communicator_t *comm_of(const struct ibshift_group *group)
{
    return opal_pointer_array_get_item(&ompi_mpi_communicators, (int)group->id);
}

void __wrap_ibshift_report(struct ibshift_group *group, struct ibshift_net *net,
                           const struct ibshift_op *op, const char *name)
{
    ompi_failed(comm_of(group), op->status, (int)op->failed_peer);
    __real_ibshift_report(group, net, op, name);
}

void __wrap_ibshift_report_counts(const struct ibshift_group *group, uint32_t seq,
                                  const struct ibshift_mixed_unlike *unlike, const char *name)
{
    ompi_failed(comm_of(group), -EPROTO, (int)group->peers[unlike->from]);
    __real_ibshift_report_counts(group, seq, unlike, name);
}

extern __typeof__(ibv_open_device) __real_ibv_open_device, __wrap_ibv_open_device;
extern __typeof__(ibv_alloc_pd) __real_ibv_alloc_pd, __wrap_ibv_alloc_pd;
extern __typeof__(ibv_create_cq) __real_ibv_create_cq, __wrap_ibv_create_cq;
extern __typeof__(ibv_create_qp) __real_ibv_create_qp, __wrap_ibv_create_qp;
extern __typeof__(ibv_create_srq) __real_ibv_create_srq, __wrap_ibv_create_srq;
extern __typeof__(ibv_create_ah) __real_ibv_create_ah, __wrap_ibv_create_ah;
extern __typeof__(ibv_modify_qp) __real_ibv_modify_qp, __wrap_ibv_modify_qp;
extern __typeof__(ibv_query_device) __real_ibv_query_device, __wrap_ibv_query_device;
extern __typeof__(ibv_query_gid) __real_ibv_query_gid, __wrap_ibv_query_gid;
extern __typeof__(ibv_query_pkey) __real_ibv_query_pkey, __wrap_ibv_query_pkey;
extern __typeof__(ibv_attach_mcast) __real_ibv_attach_mcast, __wrap_ibv_attach_mcast;
extern __typeof__(ibv_get_device_list) __real_ibv_get_device_list, __wrap_ibv_get_device_list;

static bool fails(int error)
{
    bool strikes = replay_strikes(FAULT_NO_VERB);

    errno = strikes ? error : errno;
    return strikes;
}

struct ibv_device **__wrap_ibv_get_device_list(int *count)
{
    return fails(ENOSYS) ? NULL : __real_ibv_get_device_list(count);
}

struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device)
{
    return fails(EIO) ? NULL : __real_ibv_open_device(device);
}

struct ibv_pd *__wrap_ibv_alloc_pd(struct ibv_context *context)
{
    return fails(ENOMEM) ? NULL : __real_ibv_alloc_pd(context);
}

struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                    struct ibv_comp_channel *channel, int vector)
{
    return fails(ENOMEM) ? NULL : __real_ibv_create_cq(context, cqe, cq_context, channel, vector);
}

struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    return fails(ENOMEM) ? NULL : __real_ibv_create_qp(pd, attr);
}

struct ibv_srq *__wrap_ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    return fails(ENOMEM) ? NULL : __real_ibv_create_srq(pd, attr);
}

struct ibv_ah *__wrap_ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    return fails(EINVAL) ? NULL : __real_ibv_create_ah(pd, attr);
}

int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    return fails(EIO) ? EIO : __real_ibv_modify_qp(qp, attr, mask);
}

int __wrap_ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    return fails(EIO) ? EIO : __real_ibv_query_device(context, attr);
}

int __wrap_ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    return fails(EIO) ? -1 : __real_ibv_query_gid(context, port, index, gid);
}

int __wrap_ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    return fails(EIO) ? -1 : __real_ibv_query_pkey(context, port, index, pkey);
}

int __wrap_ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    return fails(ENOMEM) ? ENOMEM : __real_ibv_attach_mcast(qp, gid, lid);
}
