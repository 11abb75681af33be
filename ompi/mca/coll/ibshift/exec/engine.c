#include "exec/engine.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "exec/op_impl.h"

enum {
    EVENTS_AT_ONCE = 32,  /* the steps that they free start before more are fetched */
    CALLS_PER_LOOK = 256, /* reading the clock costs more than an idle poll */
    FIRST_SLOTS = 16,
};

/* lock covers all of it. */
struct ibshift_engine {
    pthread_mutex_t lock;
    struct ibshift_exec exec;
    struct ibshift_pages *own_pages; /* NULL: they are another's */
    struct ibshift_engine_options options;
    struct ibshift_op **table; /* by slot; a free slot is NULL */
    uint32_t slots;
    struct ibshift_op *active;
    struct ibshift_op *queue_first; /* ops that may have something to start */
    struct ibshift_op *queue_last;
    struct ibshift_op *ended_first; /* to be told once the lock is free */
    uint32_t calls;                 /* until the clock is read again */
    uint64_t looked;                /* when the clock was read last */
};

/* Whether it has been taken: the answer is for leave(), for threads may come to be in between. */
static bool enter(struct ibshift_engine *engine)
{
    bool has_threads = engine->options.has_threads == NULL || *engine->options.has_threads;

    if (has_threads) {
        pthread_mutex_lock(&engine->lock);
    }
    return has_threads;
}

static void leave(struct ibshift_engine *engine, bool is_taken)
{
    if (is_taken) {
        pthread_mutex_unlock(&engine->lock);
    }
}

struct ibshift_engine *ibshift_engine_create(struct ibshift_net *net,
                                             const struct ibshift_engine_options *options)
{
    struct ibshift_engine *engine = calloc(1, sizeof(*engine));

    if (engine == NULL) {
        return NULL;
    }
    engine->exec.pages = options->pages;
    if (engine->exec.pages == NULL) {
        engine->exec.pages = engine->own_pages = calloc(1, sizeof(*engine->exec.pages));
    }
    if (engine->exec.pages == NULL) {
        free(engine);
        return NULL;
    }
    engine->exec.net = net;
    engine->exec.trace = options->trace;
    engine->exec.trace_context = options->trace_context;
    engine->options = *options;
    engine->calls = engine->options.calls = options->calls != 0 ? options->calls : CALLS_PER_LOOK;
    pthread_mutex_init(&engine->lock, NULL);
    return engine;
}

void ibshift_engine_free(struct ibshift_engine *engine)
{
    pthread_mutex_destroy(&engine->lock);
    free(engine->table);
    free(engine->own_pages);
    free(engine);
}

static int grow(struct ibshift_engine *engine)
{
    uint32_t slots = engine->slots == 0 ? FIRST_SLOTS : engine->slots * 2;
    struct ibshift_op **table = realloc(engine->table, slots * sizeof(struct ibshift_op *));

    if (table == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = engine->slots; i < slots; i++) {
        table[i] = NULL;
    }
    engine->table = table;
    engine->slots = slots;
    return 0;
}

int ibshift_engine_attach(struct ibshift_engine *engine, struct ibshift_op *op)
{
    uint32_t slot = 0;
    int rc = 0;

    pthread_mutex_lock(&engine->lock);
    while (slot < engine->slots && engine->table[slot] != NULL) {
        slot++;
    }
    if (slot == engine->slots) {
        rc = grow(engine);
    }
    if (rc == 0) {
        engine->table[slot] = op;
        op->slot = slot;
    }
    pthread_mutex_unlock(&engine->lock);
    return rc;
}

void ibshift_engine_detach(struct ibshift_engine *engine, struct ibshift_op *op)
{
    pthread_mutex_lock(&engine->lock);
    if (op->slot < engine->slots) { /* it has been attached */
        engine->table[op->slot] = NULL;
    }
    pthread_mutex_unlock(&engine->lock);
}

void ibshift_engine_enter(struct ibshift_engine *engine, uint32_t comm)
{
    pthread_mutex_lock(&engine->lock);
    ibshift_net_enter(engine->exec.net, comm);
    pthread_mutex_unlock(&engine->lock);
}

void ibshift_engine_give_up(struct ibshift_engine *engine, uint32_t comm, uint32_t peer, int status)
{
    pthread_mutex_lock(&engine->lock);
    ibshift_net_give_up(engine->exec.net, comm,
                        &(struct ibshift_net_cause){.peer = peer, .status = status});
    engine->exec.is_given_up = true;
    pthread_mutex_unlock(&engine->lock);
}

bool ibshift_engine_forget(struct ibshift_engine *engine, uint32_t comm)
{
    bool has_failed;

    pthread_mutex_lock(&engine->lock);
    ibshift_net_forget(engine->exec.net, comm);
    has_failed = ibshift_net_has_failed(engine->exec.net);
    pthread_mutex_unlock(&engine->lock);
    return has_failed;
}

static void enqueue(struct ibshift_engine *engine, struct ibshift_op *op)
{
    if (op->is_queued) {
        return;
    }
    op->is_queued = true;
    op->next_queued = NULL;
    if (engine->queue_first == NULL) {
        engine->queue_first = op;
    } else {
        engine->queue_last->next_queued = op;
    }
    engine->queue_last = op;
}

static void link_active(struct ibshift_engine *engine, struct ibshift_op *op)
{
    op->previous_active = NULL;
    op->next_active = engine->active;
    if (engine->active != NULL) {
        engine->active->previous_active = op;
    }
    engine->active = op;
}

static void unlink_active(struct ibshift_engine *engine, struct ibshift_op *op)
{
    if (op->previous_active != NULL) {
        op->previous_active->next_active = op->next_active;
    } else {
        engine->active = op->next_active;
    }
    if (op->next_active != NULL) {
        op->next_active->previous_active = op->previous_active;
    }
}

static void count(struct ibshift_engine_stats *stats, int status)
{
    stats->ops++;
    stats->failed_ops += status != 0;
}

static void finish(struct ibshift_engine *engine, struct ibshift_op *op)
{
    unlink_active(engine, op);
    if (!op->params.is_stage) {
        count(&engine->exec.stats, op->status);
    }
    if (op->ended != NULL) {
        op->next_queued = engine->ended_first;
        engine->ended_first = op;
    } else {
        atomic_store_explicit(&op->state, IBSHIFT_OP_IDLE, memory_order_release);
    }
}

/* Whether something was started. An op for which the net has no room does not count, so that its
 * caller knows itself idle. The op may be its owner's again when this returns. */
static bool turn(struct ibshift_engine *engine, struct ibshift_op *op)
{
    uint32_t before = op->moves;
    bool again = false, has_moved;

    if (ibshift_op_state(op) == IBSHIFT_OP_RUNNING) {
        again = ibshift_op_advance(op, &engine->exec);
    }
    has_moved = op->moves != before;
    if (ibshift_op_is_over(op)) {
        finish(engine, op);
    } else if (again) {
        enqueue(engine, op);
    }
    return has_moved;
}

static struct ibshift_op *take_ended(struct ibshift_engine *engine)
{
    struct ibshift_op *op = engine->ended_first;

    engine->ended_first = NULL;
    return op;
}

/* Without the lock; an op may be gone after its call. */
static void tell(struct ibshift_op *op)
{
    while (op != NULL) {
        struct ibshift_op *next = op->next_queued;

        atomic_store_explicit(&op->state, IBSHIFT_OP_IDLE, memory_order_release);
        op->ended(op);
        op = next;
    }
}

static void start(struct ibshift_engine *engine, struct ibshift_op *op, uint32_t seq,
                  const struct ibshift_tape_run *run)
{
    bool is_locked = enter(engine);
    struct ibshift_op *ended;

    if (run != NULL) {
        ibshift_tape_count(run->tape, run->next, &engine->exec.stats);
    }
    ibshift_op_begin(op, &engine->exec, seq, run);
    link_active(engine, op);
    (void)turn(engine, op);
    ended = take_ended(engine);
    leave(engine, is_locked);
    tell(ended);
}

void ibshift_engine_start(struct ibshift_engine *engine, struct ibshift_op *op, uint32_t seq)
{
    start(engine, op, seq, NULL);
}

void ibshift_engine_take_over(struct ibshift_engine *engine, struct ibshift_op *op,
                              const struct ibshift_tape_run *run)
{
    start(engine, op, run->seq, run);
}

size_t ibshift_engine_tape_limit(const struct ibshift_engine *engine)
{
    return engine->exec.net->max_tried;
}

struct ibshift_tape *ibshift_engine_tape(struct ibshift_engine *engine,
                                         const struct ibshift_op_params *params, size_t tmp)
{
    bool is_locked = enter(engine);
    struct ibshift_tape *tape = ibshift_tape_make(params, engine->exec.net, tmp);

    leave(engine, is_locked);
    return tape;
}

/* Not while ops are in flight, nor on a communicator that was given up. */
static bool may_begin(struct ibshift_engine *engine, const struct ibshift_tape_run *run)
{
    struct ibshift_net *net = engine->exec.net;
    struct ibshift_net_cause why;

    return engine->active == NULL &&
           (*net->given_up_count == 0 ||
            !ibshift_net_has_given_up(net, ibshift_net_comm(run->comm), &why));
}

bool ibshift_engine_sprint(struct ibshift_engine *engine, struct ibshift_tape_run *run)
{
    bool is_locked = enter(engine), is_over;

    is_over = (run->next > 0 || may_begin(engine, run)) && ibshift_tape_play(run);
    if (is_over) {
        engine->exec.stats.taped++;
        engine->exec.stats.sends += run->tape->sends;
        engine->exec.stats.send_bytes += run->tape->send_bytes;
        engine->exec.stats.recvs += run->tape->recvs;
    }
    leave(engine, is_locked);
    return is_over;
}

uint64_t ibshift_engine_held_up(struct ibshift_engine *engine, const struct ibshift_op *op)
{
    const struct ibshift_net *net = engine->exec.net;
    const struct ibshift_op *child;
    uint64_t held_up = 0;
    bool is_locked = enter(engine);

    if (ibshift_op_state(op) == IBSHIFT_OP_RUNNING) {
        child = ibshift_op_running_child(op);
        held_up = net->ungranted != NULL ? *net->ungranted : 0;
        held_up += child != NULL ? UINT32_MAX - child->walk.progress.received : 0;
    }
    leave(engine, is_locked);
    return held_up;
}

bool ibshift_engine_runs(const struct ibshift_engine *engine, uint32_t comm,
                         bool (*is_meant)(uint32_t number, uint32_t seq), uint32_t seq)
{
    const struct ibshift_op *op = engine->active;

    while (op != NULL &&
           (ibshift_net_comm(op->params.comm ^ comm) != 0 || !is_meant(op->seq, seq))) {
        op = op->next_active;
    }
    return op != NULL;
}

/* Those that are queued now: one that asks for another turn waits for the next poll, which may bring
 * the room that it lacks. */
static int run_queue(struct ibshift_engine *engine)
{
    struct ibshift_op *op = engine->queue_first;
    int count = 0;

    engine->queue_first = NULL;
    while (op != NULL) {
        struct ibshift_op *next = op->next_queued;

        op->is_queued = false;
        count += turn(engine, op);
        op = next;
    }
    return count;
}

/*
 * Time without progress counts only while someone polls, and at most an eighth of a limit at once:
 * a rank that was away computing must not find its collectives timed out when it comes back.
 */
static uint64_t elapsed(struct ibshift_engine *engine)
{
    const struct ibshift_engine_options *options = &engine->options;
    uint64_t now = ibshift_net_now(engine->exec.net), delta = now - engine->looked;
    uint64_t limit = options->patience;

    if (limit == 0 || (options->deadline != 0 && options->deadline < limit)) {
        limit = options->deadline;
    }
    engine->looked = now;
    return delta < limit / 8 ? delta : limit / 8;
}

static void look_at_clock(struct ibshift_engine *engine)
{
    const struct ibshift_engine_options *options = &engine->options;
    uint64_t delta = elapsed(engine);

    for (struct ibshift_op *op = engine->active; op != NULL; op = op->next_active) {
        if (op->moves != op->moves_seen) {
            op->moves_seen = op->moves;
            op->idle = 0;
            op->probed = 0;
            continue;
        }
        op->idle += delta;
        if (options->deadline != 0 && op->idle >= options->deadline &&
            ibshift_op_state(op) == IBSHIFT_OP_RUNNING) {
            ibshift_op_fail(op, &engine->exec, ibshift_op_peer(op, ibshift_op_awaited_rank(op)),
                            -ETIME);
            enqueue(engine, op);
        } else if (options->patience != 0 && op->idle - op->probed >= options->patience) {
            op->probed = op->idle; /* also one that has failed may wait for a peer that dies */
            ibshift_op_probe(op, engine->exec.net);
        }
    }
}

/*
 * On a communicator that was given up the net drops what comes, also a peer's word that it has
 * given another of the collectives up: those that run would wait for ever.
 */
static int fail_given_up(struct ibshift_engine *engine)
{
    int count = 0;

    for (struct ibshift_op *op = engine->active; op != NULL; op = op->next_active) {
        if (ibshift_op_state(op) == IBSHIFT_OP_RUNNING &&
            ibshift_op_fail_if_given_up(op, &engine->exec)) {
            enqueue(engine, op);
            count++;
        }
    }
    engine->exec.is_given_up = false; /* only now: each failure has set it */
    return count;
}

int ibshift_engine_progress(struct ibshift_engine *engine)
{
    bool has_threads = engine->options.has_threads == NULL || *engine->options.has_threads;
    struct ibshift_net_event events[EVENTS_AT_ONCE];
    struct ibshift_op *ended;
    int count;

    if (has_threads && pthread_mutex_trylock(&engine->lock) != 0) {
        return 0;
    }
    count = ibshift_net_poll(engine->exec.net, events, EVENTS_AT_ONCE);
    for (int i = 0; i < count; i++) {
        uint64_t cookie = events[i].cookie;
        struct ibshift_op *op = engine->table[cookie >> 16];

        ibshift_op_event(op, &engine->exec, cookie >> 8 & 0xff, cookie & 0xff, events[i].status);
        enqueue(engine, op);
    }
    count += run_queue(engine);
    if (--engine->calls == 0) {
        engine->calls = engine->options.calls;
        look_at_clock(engine);
        engine->exec.is_given_up = true; /* the net may have, by itself, when a peer asked */
    }
    if (engine->exec.is_given_up) {
        count += fail_given_up(engine);
    }
    ended = take_ended(engine);
    leave(engine, has_threads);
    tell(ended);
    return count;
}

void ibshift_engine_lock(struct ibshift_engine *engine)
{
    pthread_mutex_lock(&engine->lock);
}

void ibshift_engine_unlock(struct ibshift_engine *engine)
{
    pthread_mutex_unlock(&engine->lock);
}

void ibshift_engine_count(struct ibshift_engine *engine, int status)
{
    pthread_mutex_lock(&engine->lock);
    count(&engine->exec.stats, status);
    pthread_mutex_unlock(&engine->lock);
}

struct ibshift_engine_stats ibshift_engine_stats(struct ibshift_engine *engine)
{
    struct ibshift_engine_stats stats;

    pthread_mutex_lock(&engine->lock);
    stats = engine->exec.stats;
    stats.ops += stats.taped; /* counted once where it is run */
    pthread_mutex_unlock(&engine->lock);
    return stats;
}
