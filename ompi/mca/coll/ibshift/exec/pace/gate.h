#ifndef IBSHIFT_EXEC_PACE_GATE_H
#define IBSHIFT_EXEC_PACE_GATE_H

/*
 * A barrier inside a running op, by dissemination: in round k a rank tells the one 2^k on and hears
 * from the one 2^k back. Nobody passes before all have come. Some numbers go along, of which all
 * get the largest. Its messages have keys of their own (bit 31 of the tag) and cookies of class
 * LOCAL.
 */

#include <stdbool.h>
#include <stdint.h>

struct ibshift_net;
struct ibshift_op;

enum { IBSHIFT_GATE_WORDS = 4, IBSHIFT_GATE_TAG = 1u << 31 };

struct ibshift_gate {
    uint32_t number;  /* of gates passed or begun in this op */
    uint32_t round;   /* 2^round is the distance */
    uint32_t pending; /* messages that the net has: one each way at most */
    bool is_open;     /* nothing under way */
    bool must_send, must_recv;
    uint64_t most[IBSHIFT_GATE_WORDS];
    uint64_t out[IBSHIFT_GATE_WORDS], in[IBSHIFT_GATE_WORDS];
};

void ibshift_gate_reset(struct ibshift_gate *gate);
/* most holds the own numbers. */
void ibshift_gate_close(struct ibshift_gate *gate);
/* Posts what can be; 0 or a negative errno of the net, with the awaited rank. */
int ibshift_gate_turn(struct ibshift_gate *gate, struct ibshift_op *op, struct ibshift_net *net);
/* One of its messages ended. */
void ibshift_gate_event(struct ibshift_gate *gate);

enum { IBSHIFT_GATE_INDICES = 2 }; /* of its cookies */
/* A rank that the gate waits for; this rank itself when it waits for none. */
uint32_t ibshift_gate_awaited(const struct ibshift_gate *gate, const struct ibshift_op *op);
/* Who may wait for this rank at a gate. */
void ibshift_gate_abort(const struct ibshift_op *op, struct ibshift_net *net);

#endif
