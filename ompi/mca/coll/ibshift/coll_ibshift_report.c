/* What people are told of a collective that has failed. */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 40, PEER_TEXT = 768 };

void ibshift_call_number(uint32_t comm, uint32_t seq, char *key, size_t size)
{
    uint32_t number = seq & ~IBSHIFT_PERSISTENT_SEQ;

    if (0 == (seq & IBSHIFT_PERSISTENT_SEQ)) {
        snprintf(key, size, "%u.%u", comm, number);
    } else {
        snprintf(key, size, "%u.p%u.%u", comm, number >> IBSHIFT_RUN_BITS,
                 number & ((1u << IBSHIFT_RUN_BITS) - 1));
    }
}

static uint32_t name_of(const struct ibshift_op *op, uint32_t rank)
{
    return NULL == op->params.names ? rank : op->params.names[rank];
}

static int code_of(int status)
{
    switch (status) {
    case -ENOMEM:
        return OMPI_ERR_OUT_OF_RESOURCE;
    case -EMSGSIZE:
        return MPI_ERR_TRUNCATE;
    default:
        return MPI_ERR_OTHER;
    }
}

/* Each communicator has it once: after that it has failed. */
static void report_unlike(const struct ompi_communicator_t *comm, const struct ibshift_op *op,
                          const struct ibshift_unlike *unlike, const char *text)
{
    char key[IBSHIFT_CALL_NUMBER], here[NAME], there[NAME];

    ibshift_call_number(op->params.comm, unlike->seq, key, sizeof(key));
    ibshift_help("collective-unlike", comm->c_name, key,
                 ibshift_badge_name(unlike->ours, here, sizeof(here)), name_of(op, op->params.rank),
                 ompi_process_info.nodename,
                 ibshift_badge_name(unlike->theirs, there, sizeof(there)),
                 ibshift_badge_is_same_collective(unlike->ours, unlike->theirs)
                     ? " with another root, operator, type or count"
                     : "",
                 name_of(op, op->failed_rank), text);
}

int ibshift_report(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                   const struct ibshift_op *op, const char *name)
{
    struct ibshift_unlike *unlike = &module->ledger.unlike;
    uint32_t peer = ibshift_op_peer(op, op->failed_rank);
    char text[PEER_TEXT] = "(this rank itself)", key[IBSHIFT_CALL_NUMBER];

    if (op->failed_rank != op->params.rank) {
        ibshift_net_describe(ibshift_endpoint.net, peer, text, sizeof(text));
    }
    if (-EBADMSG == op->status && unlike->ours != unlike->theirs) {
        report_unlike(comm, op, unlike, text);
        unlike->theirs = unlike->ours;
        return code_of(op->status);
    }
    /* Two calls that do not match are said once: what else fails by them has no other cause. */
    if ((-EBADMSG == op->status && 0 != unlike->ours) || !ibshift_is_news(peer, op->status)) {
        return code_of(op->status);
    }
    if (-EMSGSIZE == op->status) {
        ibshift_call_number(op->params.comm, op->seq, key, sizeof(key));
        ibshift_help("collective-mismatch", name, comm->c_name, key, ompi_process_info.nodename,
                     name_of(op, op->params.rank), name_of(op, op->failed_rank), text);
    } else if (-ECONNABORTED == op->status) {
        ibshift_help("collective-given-up", name, comm->c_name, ompi_process_info.nodename,
                     name_of(op, op->params.rank), name_of(op, op->failed_rank),
                     ibshift_cause_text(op->status), text);
    } else {
        ibshift_help("collective-failed", name, comm->c_name, ompi_process_info.nodename,
                     name_of(op, op->params.rank), name_of(op, op->failed_rank),
                     ibshift_cause_text(op->status), text);
    }
    return code_of(op->status);
}
