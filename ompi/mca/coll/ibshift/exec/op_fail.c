/* What ends an op before its plan does, and what is asked of peers that may be gone. */
#include "exec/op_impl.h"

#include <errno.h>

enum { OTHERS_TRIED = 64 };

/* Everyone with a message of this rank that has not ended, or not begun. */
static void abort_peers(struct ibshift_op *op, struct ibshift_exec *exec)
{
    const struct ibshift_walk *walk = &op->walk;
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint32_t last = op->params.rank;
    uint32_t round = walk->progress.received < walk->progress.sent ? walk->progress.received
                                                                   : walk->progress.sent;

    for (; round < walk->rounds; round++) {
        int count = walk->alg->emit(walk->plan, walk->rank, round, steps);

        for (int i = 0; i < count; i++) {
            if (!ibshift_step_is_local(&steps[i]) && steps[i].peer != last) {
                last = steps[i].peer;
                ibshift_net_abort(exec->net, ibshift_op_peer(op, last), ibshift_op_word(op),
                                  op->seq);
            }
        }
    }
}

void ibshift_op_fail(struct ibshift_op *op, struct ibshift_exec *exec, uint32_t peer, int status)
{
    struct ibshift_net_cause why = {.peer = peer, .status = status};
    struct ibshift_op *child = ibshift_op_running_child(op);

    op->status = status;
    op->failed_peer = peer;
    op->lacked = status == -ETIME ? ibshift_opening_lacks(op, &op->lacked_first) : 0;
    ibshift_op_set_state(op, IBSHIFT_OP_DRAINING);
    exec->is_given_up = true;
    ibshift_net_give_up(exec->net, op->params.comm, &why); /* first: the net may tell the reason */
    op->root = ibshift_net_root(exec->net, op->params.comm, status);
    ibshift_net_cancel(exec->net, op->params.comm, op->seq);
    if (op->params.opening != NULL) {
        ibshift_net_revoke(exec->net, op->params.comm, op->params.standing, &op->seq);
    }
    abort_peers(op, exec);
    if (child != NULL && ibshift_op_state(child) == IBSHIFT_OP_RUNNING) {
        ibshift_op_set_state(child, IBSHIFT_OP_DRAINING);
        abort_peers(child, exec);
    }
}

bool ibshift_op_fail_if_given_up(struct ibshift_op *op, struct ibshift_exec *exec)
{
    struct ibshift_net_cause why;

    if (!ibshift_net_has_given_up(exec->net, op->params.comm, &why)) {
        return false;
    }
    ibshift_op_fail(op, exec, why.peer, why.status);
    return true;
}

static uint32_t in_flight(const struct ibshift_op *op)
{
    return op->walk.in_flight[IBSHIFT_CLASS_RECV] + op->walk.in_flight[IBSHIFT_CLASS_SEND];
}

bool ibshift_op_is_over(const struct ibshift_op *op)
{
    const struct ibshift_op *child = ibshift_op_running_child(op);

    if (ibshift_op_state(op) == IBSHIFT_OP_DRAINING) {
        return in_flight(op) + (child != NULL ? in_flight(child) : 0) == 0;
    }
    return ibshift_walk_is_done(&op->walk) && (op->params.opening == NULL || child == NULL);
}

/* Of a walk's messages in flight, the one of the earliest round. */
static uint32_t awaited_rank(const struct ibshift_op *op)
{
    uint32_t rank = op->params.rank;
    uint32_t round = IBSHIFT_NOT_IN_FLIGHT;

    for (int which = 0; which < IBSHIFT_CLASS_LOCAL; which++) {
        for (uint32_t i = 0; i < op->walk.flights[which].used; i++) {
            if (ibshift_walk_flight_round(&op->walk, which, i) < round) {
                round = ibshift_walk_flight_round(&op->walk, which, i);
                rank = ibshift_walk_flight_step(&op->walk, which, i).peer;
            }
        }
    }
    return rank;
}

uint32_t ibshift_op_awaited_rank(const struct ibshift_op *op)
{
    const struct ibshift_op *child = ibshift_op_running_child(op);

    return awaited_rank(child != NULL ? child : op);
}

static void probe(const struct ibshift_op *op, struct ibshift_net *net, uint32_t rank)
{
    ibshift_net_probe(net, ibshift_op_peer(op, rank));
    ibshift_net_ask(net, ibshift_op_peer(op, rank), ibshift_op_word(op), op->seq);
}

static void probe_flights(const struct ibshift_op *op, struct ibshift_net *net)
{
    for (int which = 0; which < IBSHIFT_CLASS_LOCAL; which++) {
        for (uint32_t i = 0; i < op->walk.flights[which].used; i++) {
            if (ibshift_walk_flight_round(&op->walk, which, i) != IBSHIFT_NOT_IN_FLIGHT) {
                probe(op, net, ibshift_walk_flight_step(&op->walk, which, i).peer);
            }
        }
    }
}

/*
 * A peer that died before it was connected answers nobody, and those that have given the communicator
 * up have told their own peers: another member may know. Each time the next that can be asked.
 */
static void ask_another(struct ibshift_op *op, struct ibshift_net *net)
{
    bool is_asked = false;

    for (int i = 0; i < OTHERS_TRIED && !is_asked; i++) {
        uint32_t rank = (op->params.rank + 1 + op->asked++) % op->params.plan.ranks;

        is_asked = rank != op->params.rank &&
                   ibshift_net_ask(net, ibshift_op_peer(op, rank), ibshift_op_word(op), op->seq);
    }
}

void ibshift_op_probe(struct ibshift_op *op, struct ibshift_net *net)
{
    const struct ibshift_op *child = ibshift_op_running_child(op);

    if (child != NULL) {
        probe_flights(child, net);
    }
    probe_flights(op, net);
    ask_another(op, net);
}
