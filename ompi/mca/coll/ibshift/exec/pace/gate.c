#include "exec/pace/gate.h"

#include <errno.h>
#include <string.h>

#include "exec/op.h"

enum { SEND_INDEX, RECV_INDEX };

void ibshift_gate_reset(struct ibshift_gate *gate)
{
    gate->number = 0;
    gate->pending = 0;
    gate->is_open = true;
}

void ibshift_gate_close(struct ibshift_gate *gate)
{
    gate->number++;
    gate->round = 0;
    gate->must_send = gate->must_recv = true;
    gate->is_open = false;
}

static uint32_t partner(const struct ibshift_op *op, uint32_t round, bool back)
{
    uint32_t ranks = op->params.plan.ranks, distance = 1u << round;

    return (op->params.rank + (back ? ranks - distance : distance)) % ranks;
}

static int post(struct ibshift_gate *gate, struct ibshift_op *op, struct ibshift_net *net,
                bool is_recv)
{
    struct ibshift_net_message message = {
        .peer = ibshift_op_peer(op, partner(op, gate->round, is_recv)),
        .key = {.comm = op->params.comm,
                .seq = op->seq,
                .tag = IBSHIFT_GATE_TAG | gate->number << 5 | gate->round},
        .buffer = is_recv ? gate->in : gate->out,
        .length = sizeof(gate->out),
        .cookie = ibshift_op_cookie(op, IBSHIFT_CLASS_LOCAL, is_recv ? RECV_INDEX : SEND_INDEX)};
    int rc = is_recv ? ibshift_net_recv(net, &message) : ibshift_net_send(net, &message);

    if (rc >= 0) {
        *(is_recv ? &gate->must_recv : &gate->must_send) = false;
        gate->pending += rc == IBSHIFT_NET_PENDING;
        op->moves++;
    }
    return rc < 0 ? rc : 0;
}

static int turn_round(struct ibshift_gate *gate, struct ibshift_op *op, struct ibshift_net *net)
{
    int rc = 0;

    if (gate->must_send) {
        memcpy(gate->out, gate->most, sizeof(gate->out));
        rc = post(gate, op, net, false);
    }
    if ((rc == 0 || rc == -EAGAIN) && gate->must_recv) {
        int received = post(gate, op, net, true);

        rc = rc != 0 && (received == 0 || received == -EAGAIN) ? rc : received;
    }
    return rc;
}

int ibshift_gate_turn(struct ibshift_gate *gate, struct ibshift_op *op, struct ibshift_net *net)
{
    int rc = 0;

    while (!gate->is_open && rc == 0) {
        if (1u << gate->round >= op->params.plan.ranks) {
            gate->is_open = true;
            return 0;
        }
        rc = turn_round(gate, op, net);
        if (rc != 0 || gate->pending > 0) {
            break;
        }
        for (int i = 0; i < IBSHIFT_GATE_WORDS; i++) {
            gate->most[i] = gate->in[i] > gate->most[i] ? gate->in[i] : gate->most[i];
        }
        gate->round++;
        gate->must_send = gate->must_recv = true;
    }
    return rc == -EAGAIN ? 0 : rc;
}

void ibshift_gate_event(struct ibshift_gate *gate)
{
    gate->pending--;
}

uint32_t ibshift_gate_awaited(const struct ibshift_gate *gate, const struct ibshift_op *op)
{
    return gate->is_open ? op->params.rank : partner(op, gate->round, true);
}

void ibshift_gate_abort(const struct ibshift_op *op, struct ibshift_net *net)
{
    for (uint32_t round = 0; 1u << round < op->params.plan.ranks; round++) {
        ibshift_net_abort(net, ibshift_op_peer(op, partner(op, round, false)), op->params.comm,
                          op->seq);
        ibshift_net_abort(net, ibshift_op_peer(op, partner(op, round, true)), op->params.comm,
                          op->seq);
    }
}
