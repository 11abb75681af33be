/*
 * One rank: the nets, the engine and the program's collectives, as the component puts them together
 * without Open MPI. Everything here is a copy of this rank's own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/world.h"
#include "causes.h"
#include "choose.h"
#include "exec/engine.h"
#include "exec/standing.h"
#include "net/by_peer.h"
#include "left.h"
#include "net/ledger.h"
#include "net/node/node.h"
#include "net/verbs/verbs.h"
#include "scheduler.h"
#include "story.h"

enum { GROUP = 4, DEADLINE = 40 };

static const uint64_t second = 1000000000;

static struct {
    int self;
    const struct program *program;
    struct ibshift_verbs *verbs;
    struct ibshift_net *net;
    struct ibshift_engine *engine, *engines[PROGRAM_RANKS]; /* the same one */
    struct comm {
        bool is_open, has_failed;
        uint32_t seq;
        struct ibshift_ledger ledger;
        struct ibshift_standing *standing;
        struct ibshift_clock clock;
    } comm[PROGRAM_COMMS];
    bool has_failed; /* anything: then peers may still write by what stood */
} own;

/* What work.c asks of the loop that it usually runs on. */
struct ibshift_net *ibshift_loop_net(struct ibshift_loop *loop, uint32_t peer)
{
    (void)loop, (void)peer;
    return own.net;
}

static int copy_card(void *context, uint32_t peer, void *card, size_t size)
{
    const struct replay_card *theirs = replay_card((int)peer);

    (void)context;
    memcpy(card, theirs->address, theirs->address_size < size ? theirs->address_size : size);
    return (int)theirs->address_size;
}

static int host_of(int rank)
{
    return program_host_of(own.program, rank);
}

static bool is_near(void *context, uint32_t peer)
{
    (void)context;
    return (int)peer != own.self && host_of((int)peer) == host_of(own.self);
}

static int node_card(void *context, uint32_t peer, struct ibshift_node_card *card)
{
    const struct replay_card *theirs = replay_card((int)peer);

    (void)context;
    return theirs->node_size == 0 ? -ENOENT
                                  : ibshift_node_card_decode(theirs->node, theirs->node_size, card);
}

static void say(void *context, const char *line)
{
    (void)context;
    replay_say("%s", line);
}

static unsigned path_of(void *context, uint32_t peer)
{
    (void)context;
    return peer % 4;
}

static const char *has_ended(void *context, uint32_t peer)
{
    (void)context;
    return own.program->knows_ends && replay_is_dead((int)peer) ? "the launcher says so" : NULL;
}

static struct comm *comm_of(uint32_t id)
{
    uint32_t comm = id - 1;

    return comm < PROGRAM_COMMS && own.comm[comm].is_open ? &own.comm[comm] : NULL;
}

static bool is_member(uint32_t comm, uint32_t peer)
{
    return (int)peer < program_comm_ranks(own.program, comm);
}

static bool is_here(void *context, uint32_t id, uint32_t member)
{
    (void)context;
    return comm_of(id) != NULL && (member == IBSHIFT_ANY_MEMBER || is_member(id - 1, member));
}

static struct ibshift_ledger *ledger_of(void *context, uint32_t id)
{
    struct comm *comm = comm_of(id);

    (void)context;
    return comm != NULL ? &comm->ledger : NULL;
}

static const struct ibshift_net_comms comms = {.is_here = is_here, .ledger = ledger_of};

static struct ibshift_net *open_adapter(char *error, size_t size)
{
    struct ibshift_verbs_options ports = {
        .max_ports = own.program->ports, .gid_index = -1, .fork = 0};
    struct ibshift_net_verbs_options options = ibshift_net_verbs_defaults;
    struct ibshift_net *net = NULL;
    struct replay_card *card = replay_card(own.self);
    const void *address;

    if (ibshift_verbs_open(&ports, &own.verbs, error, size) != 0) {
        return NULL;
    }
    address = ibshift_verbs_card(own.verbs, &card->address_size);
    memcpy(card->address, address, card->address_size);
    options.self = (uint32_t)own.self;
    options.peers = (uint32_t)own.program->ranks;
    options.card = copy_card;
    options.say = say;
    options.comms = comms;
    options.has_ended = has_ended;
    options.memory = own.program->memory;
    options.max_eager = own.program->eager;
    options.rings = own.program->rings;
    options.connections = own.program->connections;
    options.adaptive = own.program->is_adaptive;
    options.queue = own.program->queue;
    options.path = own.program->has_paths ? path_of : NULL;
    options.retry = 6;
    if (options.memory < ibshift_net_verbs_memory_min(&options)) {
        options.memory = ibshift_net_verbs_memory_min(&options);
    }
    if (ibshift_net_verbs_create(own.verbs, &options, &net, error, size) != 0) {
        ibshift_verbs_close(own.verbs);
        own.verbs = NULL;
    }
    return net;
}

static struct ibshift_net *open_node(char *error, size_t size)
{
    struct ibshift_node_options options = {.folder = getenv("SOFTHCA_DIR"),
                                           .job = 7000 + (uint32_t)host_of(own.self),
                                           .self = (uint32_t)own.self,
                                           .memory = 1 << 20,
                                           .may_copy = true,
                                           .looks = 2,
                                           .card = node_card,
                                           .comms = comms,
                                           .say = say};
    struct ibshift_net *net = NULL;

    for (int i = 0; i < own.program->ranks; i++) {
        options.place += i < own.self && host_of(i) == host_of(own.self);
        options.processes += host_of(i) == host_of(own.self);
    }
    if (!own.program->has_node || options.processes < 2) {
        return NULL;
    }
    if (ibshift_net_node_create(&options, &net, error, size) != 0) {
        replay_say("no node: %s", error);
    } else {
        struct replay_card *card = replay_card(own.self);

        card->node_size = sizeof(struct ibshift_node_card);
        memcpy(card->node, ibshift_net_node_card(net), card->node_size);
    }
    return net;
}

/* Whether the job runs is agreed on before it begins, as the component does it. */
static bool open_nets(void)
{
    char error[256] = "", no_memory[256] = "";
    struct ibshift_net *adapter = open_adapter(error, sizeof(error));
    struct ibshift_net *node = adapter == NULL ? NULL : open_node(no_memory, sizeof(no_memory));
    struct ibshift_engine_options options = {.patience = second / 2, .deadline = DEADLINE * second};
    bool is_job = true, is_near_job = true;

    if (adapter == NULL) {
        replay_say("no adapter: %s", error);
        replay_card(own.self)->address_size = 0;
    }
    own.net = adapter;
    replay_barrier(NULL, NULL);
    for (int i = 0; i < own.program->ranks; i++) {
        is_job &= replay_card(i)->address_size != 0;
        is_near_job &= !is_near(NULL, (uint32_t)i) || replay_card(i)->node_size != 0;
    }
    if (node != NULL && is_near_job) {
        own.net =
            ibshift_net_by_peer_create(node, adapter, (uint32_t)own.program->ranks, is_near, NULL);
        own.net = own.net != NULL ? own.net : adapter;
    }
    left_watch(adapter, own.net != adapter ? node : NULL);
    if (node != NULL && own.net == adapter) {
        ibshift_net_destroy(node);
    }
    own.engine = own.net == NULL ? NULL : ibshift_engine_create(own.net, &options);
    if (own.engine == NULL) {
        replay_card(own.self)->address_size = 0;
    }
    for (int i = 0; i < own.program->ranks; i++) {
        own.engines[i] = own.engine;
    }
    replay_barrier(NULL, NULL);
    for (int i = 0; i < own.program->ranks; i++) {
        is_job &= replay_card(i)->address_size != 0;
    }
    return is_job;
}

static void close_nets(void)
{
    left_check(own.has_failed);
    if (own.engine != NULL) {
        ibshift_engine_free(own.engine);
    }
    if (own.net != NULL) {
        ibshift_net_destroy(own.net);
    }
    ibshift_standing_end();
    if (own.verbs != NULL) {
        ibshift_verbs_close(own.verbs);
    }
}

/* One call of the program on this rank. */
struct call {
    int item;
    struct comm *comm;
    struct world world; /* as work.c knows it: the communicator */
    struct work *work;
    uint32_t rank;  /* of this one in the communicator */
    bool may_stand; /* it is a blocking one: grants for its scratch may stand */
    struct ibshift_pace paces[PROGRAM_RANKS];
    struct ibshift_pace_memory memory;
};

/* The same on all ranks: a pace with a clock of its own, or messages in pieces. */
static void choose_pace(struct call *call, struct work_options *options, uint64_t *random)
{
    if (world_random_below(random, 2) != 0 || !(options->alg->flags & IBSHIFT_ALG_FREE)) {
        return;
    }
    ibshift_pace_default(&call->paces[0], IBSHIFT_PACE_CLK);
    call->paces[0].unit = world_random_below(random, 2) * 2000;
    call->paces[0].sync = 1 + world_random_below(random, 1 << 20);
    call->paces[0].stretch = 100 + world_random_below(random, 100);
    call->paces[0].limit = world_random_below(random, 100);
    call->paces[0].catch_up = 1 + world_random_below(random, 4);
    call->paces[0].delay = world_random_below(random, 5000);
    call->paces[0].clock = &call->comm->clock;
    call->paces[0].memory = &call->memory;
    for (uint32_t i = 1; i < options->plan.ranks; i++) {
        call->paces[i] = call->paces[0];
    }
    options->paces = call->paces;
}

/* What the component does with scratch for which grants can stand. */
static void let_stand(struct call *call)
{
    struct ibshift_op_params *params = &call->work->ops[call->rank].params;
    const struct ibshift_channels over = {own.program->eager, is_near, NULL};
    const struct work_options *options = &call->work->options;
    enum ibshift_collective collective = options->alg->collective;
    bool is_uniform = collective == IBSHIFT_REDUCE_SCATTER && !options->is_variant;
    uint64_t bytes = options->size * (is_uniform ? options->plan.ranks : params->element);
    char *tmp;

    if ((collective != IBSHIFT_ALLREDUCE && !is_uniform) || bytes <= own.program->eager ||
        bytes > IBSHIFT_STANDING_MOST || params->pace != NULL) {
        return;
    }
    params->standing =
        ibshift_standing_number(&call->comm->standing, params, bytes / params->element, false);
    if (params->standing != 0) {
        tmp = ibshift_standing_tmp(call->comm->standing, params,
                                   call->work->rank[call->rank].length[IBSHIFT_TMP], &over);
        params->is_tmp_standing = tmp != NULL;
        params->blocks[IBSHIFT_TMP].base = tmp != NULL ? tmp : params->blocks[IBSHIFT_TMP].base;
        params->mem[IBSHIFT_TMP] = tmp != NULL ? NULL : params->mem[IBSHIFT_TMP];
    }
}

/* False: the rank takes no part, or the row cannot do it. */
static bool prepare(struct call *call, int item)
{
    const struct program_item *what = &own.program->item[item];
    uint32_t ranks = (uint32_t)program_comm_ranks(own.program, what->comm);
    bool is_odd = program_is_odd(own.program, item, own.self);
    struct program_item mine = *what;
    bool is_longer = is_odd && (what->seed >> 40) % 2 == 0; /* it calls the same with more data */
    uint64_t random = what->seed + (is_odd && !is_longer);
    struct work_options options;

    story_count(COUNT_UNLIKE, is_odd);
    *call = (struct call){.item = item, .comm = &own.comm[what->comm]};
    mine.alg = is_odd && !is_longer ? (uint32_t)(what->seed % ibshift_alg_count) : what->alg;
    if ((uint32_t)own.self >= ranks || call->comm->has_failed ||
        !choose_options(&options, &mine, (uint32_t)(2 * item + (is_odd && !is_longer)), ranks,
                        &random)) {
        return false;
    }
    options.size += is_longer ? 8 : 0;
    choose_pace(call, &options, &random);
    call->world = (struct world){.ranks = ranks, .engines = own.engines};
    call->work = work_create(&call->world, &options, &random);
    while (call->work->peers[call->rank] != (uint32_t)own.self) {
        call->rank++;
    }
    call->work->ops[call->rank].params.piece = options.window % 4 == 0 ? 1024 : 0;
    call->work->ops[call->rank].params.is_attended = what->kind == PROGRAM_CALL;
    call->may_stand = what->kind == PROGRAM_CALL && options.window % 2 == 0;
    return true;
}

static void finish(struct call *call)
{
    work_free(call->work);
}

/* How often: the same on all ranks. */
static uint32_t repeats_of(const struct program_item *item)
{
    return item->kind == PROGRAM_UNLIKE ? 1 : item->repeats;
}

static uint32_t next_seq(struct call *call)
{
    uint32_t seq = call->comm->seq++;

    story_count(COUNT_CALLS, 1);
    ibshift_ledger_write(&call->comm->ledger, ibshift_net_comm_seq(call->work->options.comm, seq));
    return seq;
}

static void progress(void *context)
{
    (void)context;
    if (ibshift_engine_progress(own.engine) > 0) {
        replay_did();
    }
}

static void wait_for(struct call *call)
{
    while (!ibshift_op_is_done(&call->work->ops[call->rank])) {
        if (ibshift_engine_progress(own.engine) > 0) {
            replay_did();
        } else {
            replay_idle();
        }
    }
}

static bool is_well(struct call *call)
{
    const struct ibshift_op *op = &call->work->ops[call->rank];
    char why[256] = "";

    if (op->status != 0) {
        call->comm->has_failed = own.has_failed = true;
        ibshift_net_describe(own.net, call->work->peers[op->failed_rank], why, sizeof(why));
        replay_say("%s", why);
        replay_explain(call->item, op->status, (int)call->work->peers[op->failed_rank]);
        return false;
    }
    if (own.program->item[call->item].kind != PROGRAM_UNLIKE &&
        !work_is_right(call->work, call->rank) &&
        !causes_taint(own.program->item[call->item].comm)) {
        replay_fail("item %d: wrong result on rank %d: %s %s", call->item, own.self,
                    ibshift_collective_name(call->work->options.alg->collective),
                    call->work->options.alg->name);
    }
    return true;
}

static void call_again(struct call *call, uint32_t repeats)
{
    for (uint32_t i = 0; i < repeats; i++) {
        if (call->may_stand) {
            let_stand(call);
        }
        work_start(call->work, call->rank, next_seq(call));
        wait_for(call);
        if (!is_well(call)) {
            return;
        }
    }
}

/* As the component does it: down the tape for some turns, then an op takes over. */
static bool run_tape(struct call *call, const struct ibshift_tape *tape, uint32_t patience)
{
    struct ibshift_op *op = &call->work->ops[call->rank];
    struct ibshift_tape_run run = {.tape = tape,
                                   .comm = op->params.comm,
                                   .element = op->params.element,
                                   .reduce = op->params.reduce,
                                   .reduce_context = op->params.reduce_context};

    run.seq = next_seq(call);
    for (int i = 0; i < IBSHIFT_BUFFERS; i++) {
        run.base[i] = op->params.blocks[i].base;
    }
    work_fill(call->work, call->rank, run.seq);
    op->status = 0;
    while (!ibshift_engine_sprint(own.engine, &run)) {
        if (patience-- == 0) {
            ibshift_engine_take_over(own.engine, op, &run);
            wait_for(call);
            break;
        }
        progress(NULL);
        replay_idle();
    }
    replay_did();
    return is_well(call);
}

static void call_by_tape(struct call *call, uint32_t repeats)
{
    size_t length = call->work->rank[call->rank].length[IBSHIFT_TMP];
    uint64_t random = own.program->item[call->item].seed ^ (uint64_t)own.self;
    struct ibshift_tape *tape =
        ibshift_engine_tape(own.engine, &call->work->ops[call->rank].params, length);
    bool goes_on = true;

    if (tape == NULL) {
        call_again(call, repeats);
        return;
    }
    for (uint32_t i = 0; i < repeats && goes_on; i++) {
        goes_on = run_tape(call, tape, world_random_below(&random, 64));
    }
    free(tape);
}

/* As in MPI all members make it together: who is late with its first call has it already. */
static void enter(uint32_t comm)
{
    if (own.self < program_comm_ranks(own.program, comm)) {
        own.comm[comm].is_open = true;
        own.comm[comm].seq = 0;
        ibshift_ledger_init(&own.comm[comm].ledger);
        ibshift_engine_enter(own.engine, choose_id(comm));
    }
}

static void forget(uint32_t comm)
{
    bool may_be_written;

    if (own.comm[comm].is_open) {
        own.comm[comm].is_open = own.comm[comm].has_failed = false;
        may_be_written = ibshift_engine_forget(own.engine, choose_id(comm));
        ibshift_standing_free(own.comm[comm].standing, may_be_written);
        own.comm[comm].standing = NULL;
    }
}

static void end_group(struct call *group, int *count)
{
    for (int i = 0; i < *count; i++) {
        wait_for(&group[i]);
        (void)is_well(&group[i]);
        finish(&group[i]);
    }
    *count = 0;
}

static void do_item(int i, struct call *group, int *outstanding)
{
    const struct program_item *item = &own.program->item[i];
    uint64_t random = item->seed ^ (uint64_t)(own.self + 1);
    struct call *call;

    if (item->kind != PROGRAM_BEGIN || *outstanding == GROUP) {
        end_group(group, outstanding);
    }
    if (item->kind == PROGRAM_FREE) { /* in MPI collective over the communicator */
        replay_barrier(progress, NULL);
        forget(item->comm);
        replay_barrier(progress, NULL);
        enter(item->comm);
        replay_barrier(progress, NULL);
        return;
    }
    if (world_random_below(&random, 4) == 0) {
        replay_sleep(world_random(&random) % (1ull << world_random_below(&random, 24)));
    }
    call = &group[*outstanding]; /* works know its address */
    if (!prepare(call, i)) {
        return;
    }
    if (item->kind == PROGRAM_BEGIN) {
        work_start(call->work, call->rank, next_seq(call));
        ++*outstanding;
        return;
    }
    if (item->kind == PROGRAM_TAPE) {
        call_by_tape(call, repeats_of(item));
    } else {
        call_again(call, repeats_of(item));
    }
    finish(call);
}

__attribute__((visibility("default"))) replay_rank_main replay_rank;

void replay_rank(int self)
{
    struct call group[GROUP];
    int outstanding = 0;

    own.self = self;
    own.program = replay_program();
    if (open_nets()) {
        for (uint32_t comm = 0; comm < PROGRAM_COMMS; comm++) {
            enter(comm);
        }
        replay_barrier(progress, NULL);
        for (int i = 0; i < own.program->items; i++) {
            if (!own.program->item[i].is_dropped) {
                do_item(i, group, &outstanding);
            }
        }
        end_group(group, &outstanding);
        replay_barrier(progress, NULL);
        for (uint32_t comm = 0; comm < PROGRAM_COMMS; comm++) {
            forget(comm);
        }
    }
    replay_barrier(NULL, NULL);
    close_nets();
}
