#include "exec/op_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exec/gaps.h"
#include "exec/opening.h"
#include "exec/standing.h"
#include "plan/print.h"

/* In one turn of an op: others, and threads that wait for the lock, come in between. */
enum { STEPS_AT_ONCE = 256 };

void ibshift_op_init(struct ibshift_op *op)
{
    atomic_init(&op->state, IBSHIFT_OP_IDLE);
    op->is_queued = false;
    op->ended = NULL;
    op->owner = NULL;
    op->status = 0;
}

/* Brings a walk that has just begun to where the run of a tape is. */
static void skip_taped(const struct ibshift_tape_run *run, struct ibshift_walk *walk)
{
    for (uint32_t i = 0; i < run->next; i++) {
        const struct ibshift_tape_step *step = &run->tape->steps[i];

        if (step->is_last && step->which == IBSHIFT_CLASS_LOCAL) {
            (void)ibshift_walk_start(walk, IBSHIFT_CLASS_LOCAL);
        } else if (step->is_last) {
            ibshift_walk_skip(walk, step->which);
        }
    }
}

void ibshift_op_begin(struct ibshift_op *op, struct ibshift_exec *exec, uint32_t seq,
                      const struct ibshift_tape_run *run)
{
    const struct ibshift_op_params *params = &op->params;

    op->seq = seq;
    op->status = 0;
    op->moves = 1;
    op->moves_seen = 0;
    if (params->gaps != NULL) {
        ibshift_gaps_begin(params->gaps);
    }
    ibshift_walk_begin(&op->walk, exec->pages, params->alg, &params->plan, params->rank,
                       params->window);
    if (run != NULL) {
        skip_taped(run, &op->walk);
    }
    if (params->opening != NULL) {
        ibshift_op_init(&params->opening->child);
        params->opening->child.slot = op->slot;
        ibshift_op_begin(&params->opening->child, exec, seq, NULL);
    }
    ibshift_op_set_state(op, IBSHIFT_OP_RUNNING);
    (void)ibshift_op_fail_if_given_up(op, exec);
}

static void count_message(struct ibshift_exec *exec, enum ibshift_class which, size_t length)
{
    if (which == IBSHIFT_CLASS_SEND) {
        exec->stats.sends++;
        exec->stats.send_bytes += length;
    } else {
        exec->stats.recvs++;
    }
}

/* Whether there is more to do than this: for a receiver a step of its own, for a sender another message. */
static bool is_busy(const struct ibshift_op *op, enum ibshift_class which)
{
    const struct ibshift_walk *walk = &op->walk;

    return which == IBSHIFT_CLASS_RECV ? ibshift_walk_next(walk, IBSHIFT_CLASS_LOCAL) != NULL
                                       : walk->cursor[IBSHIFT_CLASS_SEND].later != 0 ||
                                             walk->in_flight[IBSHIFT_CLASS_RECV] > 0 ||
                                             ibshift_walk_next(walk, IBSHIFT_CLASS_RECV) != NULL;
}

/* Gives a send or receive to the net; the result is the net's. */
static int hand_over(struct ibshift_op *op, struct ibshift_exec *exec, enum ibshift_class which,
                     const struct ibshift_step *step, uint32_t index)
{
    const struct ibshift_op_params *params = &op->params;
    struct ibshift_net_message message = {0};
    char *address;
    int rc = ibshift_blocks_range(&params->blocks[step->buf], step->first, step->count, &address,
                                  &message.length);

    if (rc != 0) {
        return rc;
    }
    if (message.length == 0 && step->count != 0) {
        return IBSHIFT_NET_DONE; /* nobody sends it */
    }
    if (params->gaps != NULL) {
        address = ibshift_gaps_place(params->gaps, step, index, address);
    }
    message.peer = ibshift_op_peer(op, step->peer);
    message.key.comm = ibshift_op_word(op);
    message.key.seq = op->seq;
    message.key.tag = params->tags | ibshift_step_key(step);
    message.buffer = address;
    message.mem = params->mem[step->buf];
    message.cookie = ibshift_op_cookie(op, which, index);
    message.piece = params->piece;
    message.beside = params->window < params->plan.ranks ? params->window : params->plan.ranks - 1;
    message.is_attended = params->is_attended;
    message.cast = step->is_cast && message.length <= params->cast_most ? params->cast : NULL;
    if (which == IBSHIFT_CLASS_SEND ||
        (params->is_tmp_standing && ibshift_step_can_stand(step, IBSHIFT_TMP))) {
        message.standing = params->standing;
    }
    if (params->opening != NULL) {
        ibshift_opening_annotate(op, step, &message);
    }
    message.is_busy = message.length > exec->net->max_tried && is_busy(op, which);
    rc = which == IBSHIFT_CLASS_SEND ? ibshift_net_send(exec->net, &message)
                                     : ibshift_net_recv(exec->net, &message);
    if (rc >= 0 && !ibshift_op_is_child(op)) {
        count_message(exec, which, message.length);
    }
    return rc;
}

/* The net may know more than that the peer went. */
static void fail(struct ibshift_op *op, struct ibshift_exec *exec, uint32_t rank, int status)
{
    if ((status != -ECONNABORTED && status != -ECONNRESET) ||
        !ibshift_op_fail_if_given_up(op, exec)) {
        ibshift_op_fail(op, exec, ibshift_op_peer(op, rank), status);
    }
}

/* A send or receive: into flight, or over at once. -EAGAIN: nothing happened. */
static int post(struct ibshift_op *op, struct ibshift_exec *exec, enum ibshift_class which,
                const struct ibshift_step *step)
{
    uint32_t index = ibshift_walk_next_flight(&op->walk, which); /* the cookie has to name it */
    int rc = hand_over(op, exec, which, step, index);

    if (rc < 0) {
        if (rc != -EAGAIN) {
            fail(op, exec, step->peer, rc);
        }
        return rc;
    }
    if (rc == IBSHIFT_NET_DONE) {
        if (op->params.gaps != NULL) {
            ibshift_gaps_received(op, step, index);
        }
        ibshift_walk_skip(&op->walk, which);
        return 0;
    }
    ibshift_walk_start(&op->walk, which);
    return 0;
}

/* The step of this class to start now, or NULL. */
static const struct ibshift_step *next_step(struct ibshift_op *op, struct ibshift_exec *exec,
                                            enum ibshift_class which)
{
    const struct ibshift_step *step = ibshift_walk_next(&op->walk, which);

    if (op->params.opening != NULL && which == IBSHIFT_CLASS_SEND && step != NULL &&
        !ibshift_opening_admits(op, exec->net, step)) {
        return NULL;
    }
    return step;
}

static int start_step(struct ibshift_op *op, struct ibshift_exec *exec, enum ibshift_class which,
                      const struct ibshift_step *step)
{
    return which == IBSHIFT_CLASS_LOCAL ? ibshift_op_run_local(op, exec, step)
                                        : post(op, exec, which, step);
}

static void trace(const struct ibshift_exec *exec, const struct ibshift_op *op,
                  const struct ibshift_step *step, uint32_t round)
{
    char line[IBSHIFT_STEP_TEXT];

    ibshift_step_format(step, op->params.rank, round, line, sizeof(line));
    exec->trace(exec->trace_context, op, line);
}

static int start_traced(struct ibshift_op *op, struct ibshift_exec *exec, enum ibshift_class which,
                        const struct ibshift_step *step)
{
    struct ibshift_step copy = *step;
    uint32_t round = op->walk.cursor[which].round;
    int rc = start_step(op, exec, which, step);

    if (rc == 0) {
        trace(exec, op, &copy, round);
    }
    return rc;
}

/* What is packed as it starts goes one by one: the adapter has the one while the next is packed, as long as somebody turns the op. */
static int most_at_once(const struct ibshift_op *op, enum ibshift_class which)
{
    return which == IBSHIFT_CLASS_SEND && op->params.gaps != NULL && op->params.is_attended
               ? 1
               : STEPS_AT_ONCE;
}

/* Starts steps of one class; returns how many, or a negative errno for the step that did not. */
static int start_class(struct ibshift_op *op, struct ibshift_exec *exec, enum ibshift_class which)
{
    const struct ibshift_step *step;
    int started = 0, most = most_at_once(op, which);

    while (started < most && (step = next_step(op, exec, which)) != NULL) {
        int rc = exec->trace == NULL || ibshift_op_is_child(op)
                     ? start_step(op, exec, which, step)
                     : start_traced(op, exec, which, step);

        if (rc != 0) {
            return rc;
        }
        op->moves++;
        started++;
    }
    return started;
}

/*
 * What others wait for comes first: sends; or receives, where sends have yet to be packed. Starting one makes
 * no step of another class ready, so there is a second turn only when something has become complete.
 */
static bool advance(struct ibshift_op *op, struct ibshift_exec *exec)
{
    static const enum ibshift_class order[][IBSHIFT_CLASSES] = {
        {IBSHIFT_CLASS_SEND, IBSHIFT_CLASS_RECV, IBSHIFT_CLASS_LOCAL},
        {IBSHIFT_CLASS_RECV, IBSHIFT_CLASS_SEND, IBSHIFT_CLASS_LOCAL}};
    struct ibshift_progress before;
    int budget = STEPS_AT_ONCE;
    bool is_full = false;

    do {
        before = op->walk.progress;
        for (int i = 0; i < IBSHIFT_CLASSES; i++) {
            enum ibshift_class which = order[op->params.gaps != NULL][i];
            int rc = start_class(op, exec, which);

            if (rc == -EAGAIN) {
                exec->stats.again++;
                is_full = true;
            } else if (rc < 0) {
                return false;
            } else {
                budget -= rc;
                is_full |= rc == 1 && most_at_once(op, which) == 1;
            }
        }
    } while (budget > 0 && (before.received != op->walk.progress.received ||
                            before.sent != op->walk.progress.sent));
    return is_full || budget <= 0;
}

/* A child's error is the op's: the net has given their common key up. */
static void fail_with_child(struct ibshift_op *op, struct ibshift_exec *exec)
{
    const struct ibshift_op *child = ibshift_op_running_child(op);

    if (child != NULL && ibshift_op_state(child) == IBSHIFT_OP_DRAINING &&
        ibshift_op_state(op) == IBSHIFT_OP_RUNNING) {
        ibshift_op_fail(op, exec, child->failed_peer, child->status);
    }
}

/* Whether it has come to its end; again: call again after the next poll. */
static bool advance_child(struct ibshift_op *op, struct ibshift_exec *exec,
                          struct ibshift_op *child, bool *again)
{
    if (ibshift_op_state(child) == IBSHIFT_OP_RUNNING) {
        *again = advance(child, exec);
    }
    op->moves += child->moves; /* so that the op's deadline sees its progress */
    child->moves = 0;
    fail_with_child(op, exec);
    if (ibshift_op_state(child) == IBSHIFT_OP_DRAINING || !ibshift_walk_is_done(&child->walk)) {
        return false;
    }
    ibshift_op_set_state(child, IBSHIFT_OP_IDLE);
    return true;
}

/* Beside the op's own messages: each waits for as much of it as it needs. */
static bool advance_opened(struct ibshift_op *op, struct ibshift_exec *exec)
{
    struct ibshift_op *child = ibshift_op_running_child(op);
    bool again = false;

    if (child != NULL) {
        (void)advance_child(op, exec, child, &again);
    }
    return ibshift_op_state(op) == IBSHIFT_OP_RUNNING && (advance(op, exec) || again);
}

bool ibshift_op_advance(struct ibshift_op *op, struct ibshift_exec *exec)
{
    return op->params.opening != NULL ? advance_opened(op, exec) : advance(op, exec);
}

static void end_flight(struct ibshift_op *op, struct ibshift_exec *exec, enum ibshift_class which,
                       uint32_t index, int status)
{
    uint32_t rank = op->params.rank;

    if (status != 0) {
        rank = ibshift_walk_flight_step(&op->walk, which, index).peer;
    } else if (op->params.gaps != NULL && which == IBSHIFT_CLASS_RECV) {
        const struct ibshift_step step = ibshift_walk_flight_step(&op->walk, which, index);

        ibshift_gaps_received(op, &step, index);
    }
    ibshift_op_land(op, which, index);
    if (status != 0 && ibshift_op_state(op) == IBSHIFT_OP_RUNNING) {
        fail(op, exec, rank, status);
    }
}

void ibshift_op_event(struct ibshift_op *op, struct ibshift_exec *exec, uint32_t which,
                      uint32_t index, int status)
{
    if (which & IBSHIFT_CHILD_CLASS) {
        end_flight(ibshift_op_child(op), exec, which & ~(uint32_t)IBSHIFT_CHILD_CLASS, index,
                   status);
        op->moves++;
        fail_with_child(op, exec);
    } else {
        end_flight(op, exec, which, index, status);
    }
}
