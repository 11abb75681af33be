/*
 * Between the component and its library (--wrap): hosts of their own, limits of the nets that nobody can set, what has
 * moved, and what has failed.
 */
#include "ompi.h"

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
        replay_did();
    } else {
        replay_idle();
    }
    return events;
}

void __wrap_ibshift_engine_free(struct ibshift_engine *engine)
{
    left_check(ompi_has_any_failed() || causes_has(replay_self(), CAUSE_MEMORY) ||
               causes_taint(1u << replay_self()));
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
