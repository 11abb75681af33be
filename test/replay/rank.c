/*
 * One rank: a program of MPI, as the seed wrote it, over the component. Everything here is a copy of
 * this rank's own.
 */
#include "call.h"

#include <errno.h>

#include "causes.h"
#include "left.h"
#include "scheduler.h"
#include "story.h"

enum { OUTSTANDING = 4, VARIANTS = 2 };
enum { LAST_LOOKS = 3, MOST_LOOKS = 1000, LAST_PAUSE = 20000000 /* ns */, LAST_POLLS = 40 };

struct slot {
    struct ompi_communicator_t *comm; /* NULL: this rank is not in it, or it is not there */
    bool is_spoiled; /* calls that did not match were made on it: the next ones may fail */
    int members[PROGRAM_RANKS], size;
};

static struct slot slots[PROGRAM_COMMS];
static struct pending {
    int item; /* -1: free */
    struct call call;
    bool is_spoiled;
} pending[OUTSTANDING];

static void progress(void *context)
{
    (void)context;
    ompi_progress_once();
}

static const struct program_item *item_at(int item)
{
    return &replay_program()->item[item];
}

static uint64_t draw(int item, uint64_t what, uint64_t a)
{
    uint64_t state = item_at(item)->seed ^ (what << 32 | a) * 0xd1342543de82ef95u;

    return program_random(&state);
}

/* The same on all ranks of the communicator. */
static void expect_alike(int item, uint64_t repeat, const struct ompi_communicator_t *comm,
                         const char *what, uint64_t value)
{
    uint64_t key = (uint64_t)(item + 1) << 32 | repeat << 24 | comm->c_contextid << 8;

    key |= (uint64_t)ompi_group_get_proc_name(comm->c_local_group, 0).vpid;
    if (!causes_is_alike(key, value)) {
        replay_fail("item %d: %s: not as on another rank, on rank %d", item, what, replay_self());
    }
}

/* What the component has not told of itself. */
static void has_failed(const struct call *call, int error)
{
    if (call->comm != NULL && !ompi_has_failed(call->comm)) {
        ompi_failed(call->comm, error == OMPI_ERR_OUT_OF_RESOURCE ? -ENOMEM : -EIO, replay_self());
    }
}

static void look_at(struct call *call, int item, int error, bool is_spoiled)
{
    if (error != OMPI_SUCCESS) {
        has_failed(call, error);
    } else if (!is_spoiled && !call_is_right(call) && !causes_taint(call->members)) {
        replay_fail("item %d: wrong result on rank %d: %s", item, replay_self(),
                    program_collective_name(call->collective));
    }
}

static int wait_for(struct call *call)
{
    int error;

    while (!REQUEST_COMPLETE(call->request)) {
        opal_progress();
    }
    error = call->request->req_status.MPI_ERROR;
    if (call->request->req_persistent) {
        call->request->req_state = OMPI_REQUEST_INACTIVE; /* as MPI_Wait leaves it */
    }
    if (error != OMPI_SUCCESS) {
        has_failed(call, error);
    }
    if (call->request == &ompi_request_empty || call->request->req_persistent) {
        return error;
    }
    if (call->request->req_free(&call->request) != OMPI_SUCCESS) {
        replay_fail("a request that is complete cannot be freed");
    }
    call->request = NULL;
    call->comm = NULL; /* may be gone */
    return error;
}

/* Begins a call; false: it has not got a request that runs. */
static bool begin(struct call *call, int item, uint64_t repeat, bool is_spoiled)
{
    uint64_t before = ompi_fallbacks();
    int error;

    story_count(COUNT_CALLS, 1);
    call->request = NULL;
    error = call_begin(call);
    if (error == OMPI_SUCCESS && !is_spoiled) {
        expect_alike(item, repeat, call->comm, "what is left to other components",
                     ompi_fallbacks() - before);
    }
    if (error != OMPI_SUCCESS) {
        has_failed(call, error);
    }
    replay_did();
    return error == OMPI_SUCCESS && ompi_fallbacks() == before;
}

static void end_pending(struct pending *p)
{
    int error = wait_for(&p->call);

    look_at(&p->call, p->item, error, p->is_spoiled);
    if (p->call.form == CALL_PERSISTENT &&
        p->call.request->req_free(&p->call.request) != OMPI_SUCCESS) {
        replay_fail("item %d: a persistent request that is complete cannot be freed", p->item);
    }
    call_free(&p->call);
    p->item = -1;
}

static void end_all_pending(uint64_t order)
{
    for (int i = 0; i < OUTSTANDING; i++) {
        struct pending *p = &pending[(order + (uint64_t)i) % OUTSTANDING];

        if (p->item >= 0) {
            end_pending(p);
        }
    }
}

static struct pending *free_pending(uint64_t order)
{
    for (int i = 0; i < OUTSTANDING; i++) {
        if (pending[i].item < 0) {
            return &pending[i];
        }
    }
    end_all_pending(order);
    return &pending[0];
}

/* As MPI_T sets it on all ranks: the collective's algorithm, radix and segment. */
static void set_parameters(int item)
{
    enum ibshift_collective collective = program_collective_kind(item_at(item)->collective);
    uint64_t drawn = draw(item, 1, 0);

    ibshift_params.algorithm[collective] = drawn % 2 == 0 ? 0 : (int)(item_at(item)->alg);
    ibshift_params.radix[collective] = drawn / 2 % 2 == 0 ? 0 : 1 + (int)(drawn / 4 % 4);
    ibshift_params.segment[collective] = drawn / 16 % 2 == 0 ? 0 : (size_t)64 << drawn / 32 % 8;
    ibshift_params.tapes = drawn / 256 % 16 != 0;
}

/* Blocking, and again: with one set of arguments, or two in turn. */
static void call_again(int item, struct slot *slot)
{
    struct call calls[VARIANTS];
    int variants = 1 + (int)(draw(item, 2, 0) % VARIANTS);

    for (int i = 0; i < variants; i++) {
        call_make(&calls[i], slot->comm, item_at(item)->collective, CALL_BLOCKING,
                  draw(item, 3, (uint64_t)i));
    }
    for (uint32_t i = 0; i < item_at(item)->repeats; i++) {
        struct call *call = &calls[i % (uint32_t)variants];

        call_fill(call, i);
        if (begin(call, item, i, slot->is_spoiled)) {
            look_at(call, item, OMPI_SUCCESS, slot->is_spoiled);
        }
    }
    for (int i = 0; i < variants; i++) {
        call_free(&calls[i]);
    }
}

static void begin_one(int item, struct slot *slot)
{
    struct pending *p = free_pending(draw(item, 4, 0));

    call_make(&p->call, slot->comm, item_at(item)->collective, CALL_NONBLOCKING, draw(item, 3, 0));
    call_fill(&p->call, 0);
    if (!begin(&p->call, item, 0, slot->is_spoiled)) {
        call_free(&p->call);
        return;
    }
    p->item = item;
    p->is_spoiled = slot->is_spoiled;
    if (p->call.is_taken_back) {
        call_take_back(&p->call);
    }
}

/* Started again and again; the last time it is waited for later. */
static void begin_persistent(int item, struct slot *slot)
{
    struct pending *p = free_pending(draw(item, 4, 0));
    struct call *call = &p->call;

    call_make(call, slot->comm, item_at(item)->collective, CALL_PERSISTENT, draw(item, 3, 0));
    if (!begin(call, item, 0, slot->is_spoiled)) {
        call_free(call);
        return;
    }
    if (call->is_taken_back) {
        call_take_back(call);
    }
    p->item = item;
    p->is_spoiled = slot->is_spoiled;
    for (uint32_t i = 0; i < item_at(item)->repeats; i++) {
        if (i > 0) {
            look_at(call, item, wait_for(call), slot->is_spoiled);
        }
        call_fill(call, i);
        call->request->req_start(1, &call->request);
    }
}

/* One rank calls something else, or nothing. All calls end; nobody knows how. */
static void call_unlike(int item, struct slot *slot)
{
    int victim = slot->members[draw(item, 5, 0) % (uint64_t)slot->size];
    enum program_collective collective = item_at(item)->collective;
    uint64_t seed = draw(item, 3, 0), how = draw(item, 6, 0) % 3;
    struct call call;

    slot->is_spoiled = true;
    /* Nor is it seen that one has nothing to send: counts are its own. */
    causes_unlike(how != 0);
    ompi_expect_failures();
    if (victim == replay_self()) {
        story_count(COUNT_UNLIKE, 1);
        collective = how == 0 ? (enum program_collective)(seed % PROGRAM_COLLECTIVES) : collective;
        seed += how == 1;
    }
    if (victim != replay_self() || how != 2) {
        call_make(&call, slot->comm, collective,
                  draw(item, 7, 0) % 2 == 0 ? CALL_BLOCKING : CALL_NONBLOCKING, seed);
        call_fill(&call, 0);
        if (begin(&call, item, 0, true) && call.form == CALL_NONBLOCKING) {
            look_at(&call, item, wait_for(&call), true);
        }
        call_free(&call);
    }
    replay_barrier(progress, NULL); /* who waited for a late one in vain is late itself */
}

/* As Open MPI agrees on a number: by a reduction on the parent, whose outcome it does not look at. */
static bool agree_on_number(struct ompi_communicator_t *parent)
{
    bool has_failed = false;
    int mine = 1, all = 0;
    ompi_request_t *request = &ompi_request_empty;

    if (OMPI_SUCCESS == parent->c_coll->coll_iallreduce(&mine, &all, 1, &ompi_mpi_int.dt,
                                                        &ompi_mpi_op_max.op, parent, &request,
                                                        parent->c_coll->coll_iallreduce_module)) {
        while (!REQUEST_COMPLETE(request)) {
            opal_progress();
        }
        if (request != &ompi_request_empty) {
            has_failed = request->req_status.MPI_ERROR != OMPI_SUCCESS;
            (void)request->req_free(&request);
        }
    }
    return !has_failed;
}

/* 0: not in it. Groups of one split have the same number. */
static uint64_t color_of(int item, int rank)
{
    switch (draw(item, 8, 0) % 4) {
    case 0:
        return 1;
    case 1:
        return 1 + draw(item, 9, (uint64_t)rank) % 2;
    default:
        return draw(item, 9, (uint64_t)rank) % 4 != 0;
    }
}

static void leave(struct slot *slot)
{
    if (slot->comm != NULL && slot->comm != ompi_world()) {
        ompi_comm_let_go(slot->comm);
    }
    slot->comm = NULL;
}

/* The lowest that no rank uses; not 0, which is the world's. */
static uint32_t free_number(int item)
{
    uint64_t used = 1;
    uint32_t number = 0;

    for (int i = 0; i < replay_program()->ranks; i++) {
        used |= replay_card(i)->numbers;
    }
    while (used >> number & 1) {
        number++;
    }
    return (uint32_t)causes_first((uint64_t)item, number);
}

static void make_comm(int item, const struct slot *parent, struct slot *slot)
{
    uint64_t color = parent->comm == NULL ? 0 : color_of(item, replay_self());
    bool is_reversed = draw(item, 10, 0) % 3 == 0;
    uint32_t number;
    bool is_well;

    leave(slot);
    replay_barrier(progress, NULL);
    number = free_number(item);
    if (parent->comm == NULL) {
        return;
    }
    is_well = agree_on_number(parent->comm);
    slot->size = 0;
    slot->is_spoiled = parent->is_spoiled;
    for (int i = 0; i < parent->size; i++) {
        int rank = parent->members[is_reversed ? parent->size - 1 - i : i];

        if (color_of(item, rank) == color) {
            slot->members[slot->size++] = rank;
        }
    }
    if (color != 0) {
        slot->comm = ompi_comm_create_of(number, slot->members, slot->size);
        if (!is_well) {
            ompi_failed_before(slot->comm);
        }
        expect_alike(item, 0, slot->comm, "whether a communicator is native",
                     ompi_comm_is_native(slot->comm));
    }
}

static void do_item(int item)
{
    const struct program_item *what = item_at(item);
    struct slot *slot = &slots[what->comm];
    uint64_t pause = draw(item, 11, (uint64_t)replay_self());

    if (pause % 4 == 0) {
        replay_sleep(pause / 4 % (1ull << pause / 1024 % 24));
    }
    if (what->kind <= PROGRAM_PERSIST && draw(item, 12, 0) % 2 == 0) {
        set_parameters(item); /* also who takes no part: they hold for all communicators */
    }
    if (what->kind == PROGRAM_MAKE) {
        make_comm(item, &slots[what->parent], slot);
        return;
    }
    if (what->kind == PROGRAM_FREE) {
        leave(slot);
    } else if (what->kind == PROGRAM_WAIT) {
        end_all_pending(draw(item, 4, (uint64_t)replay_self()));
    } else if (what->kind == PROGRAM_UNMAP) {
        call_unmap();
    } else if (what->kind == PROGRAM_UNLIKE) {
        if (slot->comm != NULL && slot->size > 1) {
            call_unlike(item, slot);
        } else {
            replay_barrier(progress, NULL);
        }
    } else if (slot->comm != NULL && slot->size > 1) {
        (what->kind == PROGRAM_CALL    ? call_again
         : what->kind == PROGRAM_BEGIN ? begin_one
                                       : begin_persistent)(item, slot);
    }
}

/* What is on the way is not left over: hundreds of requests for messages by name may be, two for each slot. */
static void let_arrive(void)
{
    for (int i = 0; i < LAST_LOOKS || (i < MOST_LOOKS && !left_is_excused() && left_is_any());
         i++) {
        replay_sleep(LAST_PAUSE);
        replay_moved(); /* each time from the clock's shortest steps on */
        for (int j = 0; j < LAST_POLLS; j++) {
            ompi_progress_once();
        }
    }
}

__attribute__((visibility("default"))) replay_rank_main replay_rank;

void replay_rank(int self)
{
    (void)self;
    ompi_begin();
    slots[0].comm = ompi_world();
    slots[0].size = replay_program()->ranks;
    for (int i = 0; i < slots[0].size; i++) {
        slots[0].members[i] = i;
    }
    for (int i = 0; i < OUTSTANDING; i++) {
        pending[i].item = -1;
    }
    for (int i = 0; i < replay_program()->items; i++) {
        ompi_item = i;
        if (!item_at(i)->is_dropped) {
            do_item(i);
        }
    }
    end_all_pending(0);
    for (int i = 0; i < PROGRAM_COMMS; i++) {
        leave(&slots[i]);
    }
    replay_barrier(progress, NULL);
    let_arrive();
    replay_barrier(progress, NULL);
    if (!causes_has_any()) {
        left_compare();
    }
    replay_barrier(NULL, NULL);
    call_end();
    ompi_end();
}
