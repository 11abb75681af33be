#include "coll_ibshift_tapes.h"
#include "coll_ibshift_alltoall_order.h"
#include "coll_ibshift_call.h"
#include "coll_ibshift_fabric_file.h"
#include "coll_ibshift_params.h"
#include "coll_ibshift_transport.h"

#include "ompi/op/op.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEPT = 4,         /* calls of a collective: a root or a count that alternates */
    MOST_COUNTS = 64, /* ranks, where each has its count */
    KEY_WORDS = 13,
    ARRAYS = 4,
};

/* What a tape depends on, beside the communicator. */
struct key {
    uint64_t words[KEY_WORDS];
    uint32_t counts; /* of each array, in `arrays` of the kept one */
};

/* What a tape depends on of a datatype: freed ones come back as others at the same address. */
struct type_numbers {
    uint64_t flags, size;
    ptrdiff_t lb, ub, true_lb, true_ub;
};

struct ibshift_kept_tape {
    struct key key;
    int *arrays;                    /* counts and displacements of both sides */
    struct ompi_datatype_t **types; /* of both sides, for each block; NULL: none is for a block */
    uint32_t calls;                 /* that had the key, as far as 2; 0: free */
    bool is_refused;                /* no tape is possible, or there is one */
    bool is_left;                   /* its messages are too long by now */
    struct ibshift_tape *tape;
    char *tmp;

    /* Of the arguments of the last call that had the key; only once there is a tape. */
    bool has_raw;
    bool commutes;
    struct type_numbers stype, rtype;
    struct ibshift_operator reducer;
    struct ibshift_again again;

    struct ibshift_spare spare; /* outlives the rest: calls in flight know its address */
};

struct ibshift_tapes {
    struct ibshift_kept_tape kept[KEPT];
    uint32_t oldest;
};

static size_t unit_of(const struct ibshift_side *side)
{
    return NULL == side->type ? 0
           : side->is_operand ? (size_t)ibshift_type_extent(side->type)
                              : ibshift_type_size(side->type);
}

static void side_words(const struct ibshift_side *side, uint64_t *words)
{
    words[0] = (uint64_t)side->blocks << 8 | (uint64_t)side->is_operand << 7 | side->shape;
    words[1] = side->count;
    words[2] = unit_of(side);
}

static void list_arrays(const struct ibshift_job *job, const int *arrays[ARRAYS])
{
    arrays[0] = job->send.counts;
    arrays[1] = job->send.displs;
    arrays[2] = job->recv.counts;
    arrays[3] = job->recv.displs;
}

static void make_key(const mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                     const struct ibshift_op_params *params, struct key *key)
{
    const struct ibshift_plan *plan = &params->plan;
    bool renames =
        0 != module->order.map.order.places && ibshift_comm_order_renames(module, job, params->alg);

    key->words[0] = (uintptr_t)params->alg;
    key->words[1] = (uint64_t)plan->radix << 32 | plan->segments;
    key->words[2] = (uint64_t)job->root << 4 | plan->in_sequence << 3 | plan->commutative << 2 |
                    job->in_place << 1 | renames;
    key->words[3] = (uintptr_t)plan->order;
    key->words[4] = (uintptr_t)plan->stages;
    key->words[5] = (uintptr_t)plan->nodes;
    key->words[6] = plan->leaders;
    side_words(&job->send, &key->words[7]);
    side_words(&job->recv, &key->words[10]);
    key->counts = NULL != job->send.counts || NULL != job->recv.counts ? module->size : 0;
}

static bool has_arrays(const struct ibshift_kept_tape *kept, const int *const arrays[ARRAYS])
{
    size_t count = kept->key.counts;

    for (size_t i = 0; i < (0 == count ? 0 : ARRAYS); i++) {
        if (NULL != arrays[i] &&
            0 != memcmp(arrays[i], kept->arrays + i * count, count * sizeof(int))) {
            return false;
        }
    }
    return true;
}

static bool has_types(const struct ibshift_kept_tape *kept, struct ompi_datatype_t *const *stypes,
                      struct ompi_datatype_t *const *rtypes)
{
    size_t count = kept->key.counts, size = count * sizeof(struct ompi_datatype_t *);

    return NULL == kept->types ||
           ((NULL == stypes || 0 == memcmp(stypes, kept->types, size)) &&
            (NULL == rtypes || 0 == memcmp(rtypes, kept->types + count, size)));
}

static void empty(struct ibshift_kept_tape *kept)
{
    free(kept->types);
    free(kept->arrays);
    free(kept->tape);
    free(kept->tmp);
    memset(kept, 0, offsetof(struct ibshift_kept_tape, spare));
    kept->spare.id++;
    (void)ibshift_call_take_spare(&kept->spare); /* it is another's */
}

/* The key is the caller's. */
static bool copy_arrays(struct ibshift_kept_tape *kept, const struct ibshift_job *job)
{
    const int *arrays[ARRAYS];
    size_t count = kept->key.counts;

    if (0 == count) {
        return true;
    }
    list_arrays(job, arrays);
    kept->arrays = calloc(ARRAYS * count, sizeof(int));
    for (size_t i = 0; NULL != kept->arrays && i < ARRAYS; i++) {
        if (NULL != arrays[i]) {
            memcpy(kept->arrays + i * count, arrays[i], count * sizeof(int));
        }
    }
    return NULL != kept->arrays;
}

static bool copy_types(struct ibshift_kept_tape *kept, const struct ibshift_job *job)
{
    size_t count = kept->key.counts, size = count * sizeof(struct ompi_datatype_t *);

    if (NULL == job->recv.types) {
        return true;
    }
    kept->types = malloc(2 * size);
    if (NULL != kept->types) {
        memcpy(kept->types, job->send.types, size);
        memcpy(kept->types + count, job->recv.types, size);
    }
    return NULL != kept->types;
}

/* Along a fabric, all-to-alls count what they move, and the first call of others looks for the
 * order. */
static bool has_order(const mca_coll_ibshift_module_t *module, const struct ibshift_job *job)
{
    return 0 == ibshift_fabric_file.identity ||
           (IBSHIFT_ALLTOALL != job->collective && IBSHIFT_ORDER_UNKNOWN != module->order.state);
}

static bool has_few_counts(const struct ibshift_side *side)
{
    return NULL == side->counts || side->blocks <= MOST_COUNTS;
}

bool ibshift_tape_may(const mca_coll_ibshift_module_t *module, const struct ibshift_job *job)
{
    return ibshift_params.tapes && NULL == ibshift_device && /* tapes know no staging */
           job->bytes <= ibshift_engine_tape_limit(ibshift_endpoint.engine) &&
           has_order(module, job) && has_few_counts(&job->send) && has_few_counts(&job->recv) &&
           ibshift_side_is_whole(&job->send) && ibshift_side_is_whole(&job->recv);
}

struct ibshift_kept_tape *ibshift_tape_find(mca_coll_ibshift_module_t *module,
                                            enum ibshift_form form, const struct ibshift_job *job,
                                            const struct ibshift_op_params *params)
{
    struct ibshift_tapes **place = &module->tapes[form][job->collective], *tapes = *place;
    struct ibshift_kept_tape *kept;
    const int *arrays[ARRAYS];
    struct key key;

    if (NULL == tapes && NULL == (tapes = *place = calloc(1, sizeof(*tapes)))) {
        return NULL;
    }
    make_key(module, job, params, &key);
    list_arrays(job, arrays);
    for (int i = 0; i < KEPT; i++) {
        kept = &tapes->kept[i];
        if (kept->calls > 0 && 0 == memcmp(kept->key.words, key.words, sizeof(key.words)) &&
            kept->key.counts == key.counts && has_arrays(kept, arrays) &&
            has_types(kept, job->send.types, job->recv.types)) {
            kept->calls = 2;
            return kept;
        }
    }
    kept = &tapes->kept[tapes->oldest++ % KEPT];
    if (module->latest[form][job->collective] == &kept->again) {
        module->latest[form][job->collective] = NULL;
    }
    empty(kept);
    kept->key = key;
    if (!copy_arrays(kept, job) || !copy_types(kept, job)) {
        return NULL;
    }
    kept->calls = 1;
    return kept;
}

const struct ibshift_tape *ibshift_tape_of(const struct ibshift_kept_tape *kept)
{
    return NULL == kept || kept->is_left ? NULL : kept->tape;
}

static struct type_numbers numbers_of(const struct ompi_datatype_t *type)
{
    const opal_datatype_t *t = NULL == type ? NULL : &type->super;

    return NULL == t ? (struct type_numbers){0}
                     : (struct type_numbers){.flags = t->flags,
                                             .size = t->size,
                                             .lb = t->lb,
                                             .ub = t->ub,
                                             .true_lb = t->true_lb,
                                             .true_ub = t->true_ub};
}

static bool has_numbers(const struct ompi_datatype_t *type, const struct type_numbers *numbers)
{
    struct type_numbers now = numbers_of(type);

    return 0 == memcmp(&now, numbers, sizeof(now));
}

static bool commutes(struct ompi_op_t *op)
{
    return NULL != op && ompi_op_is_commute(op);
}

static bool is_of_the_program(struct ompi_datatype_t *type)
{
    return NULL != type && !ompi_datatype_is_predefined(type);
}

bool ibshift_again_has_details(const struct ibshift_again *again, const struct ibshift_raw *raw)
{
    const struct ibshift_kept_tape *kept =
        (const struct ibshift_kept_tape *)((const char *)again -
                                           offsetof(struct ibshift_kept_tape, again));
    const int *const arrays[ARRAYS] = {raw->scounts, raw->sdispls, raw->rcounts, raw->rdispls};

    return has_numbers(raw->stype, &kept->stype) && has_numbers(raw->rtype, &kept->rtype) &&
           commutes(raw->op) == kept->commutes && has_arrays(kept, arrays) &&
           has_types(kept, raw->stypes, raw->rtypes);
}

struct ibshift_tape_run *ibshift_tape_again(mca_coll_ibshift_module_t *module,
                                            enum ibshift_form form,
                                            enum ibshift_collective collective,
                                            const struct ibshift_raw *raw)
{
    struct ibshift_tapes *tapes = module->tapes[form][collective];

    for (int i = 0; NULL != tapes && ibshift_tapes_serve(module) && i < KEPT; i++) {
        struct ibshift_kept_tape *kept = &tapes->kept[i];

        if (kept->has_raw && ibshift_again_is_like(&kept->again, module, collective, raw) &&
            (kept->again.is_plain || ibshift_again_has_details(&kept->again, raw))) {
            module->latest[form][collective] = &kept->again;
            return ibshift_again_run(&kept->again, module, collective, raw);
        }
    }
    return NULL;
}

static char *base_of(const struct ibshift_side *side)
{
    return NULL == side->type ? side->user : side->user + ibshift_type_lower_bound(side->type);
}

static void remember(mca_coll_ibshift_module_t *module, enum ibshift_form form,
                     struct ibshift_kept_tape *kept, const struct ibshift_job *job,
                     const struct ibshift_raw *raw)
{
    const void *from = 0 != (raw->form & IBSHIFT_RAW_IN_PLACE) ? raw->rbuf : raw->sbuf;
    struct ibshift_again *again = &kept->again;

    /* Then a buffer is found by another argument, or is none that this rank uses. */
    kept->has_raw = MPI_IN_PLACE != raw->rbuf &&
                    (IBSHIFT_BLOCKING != form || 0 == ibshift_params.correct); /* else counted */
    again->is_plain = 0 == kept->key.counts && !is_of_the_program(raw->stype) &&
                      !is_of_the_program(raw->rtype) &&
                      (NULL == raw->op || ompi_op_is_intrinsic(raw->op));
    kept->commutes = commutes(raw->op);
    kept->stype = numbers_of(raw->stype);
    kept->rtype = numbers_of(raw->rtype);
    again->raw = *raw;
    again->algorithm = ibshift_params.algorithm[job->collective];
    again->radix = ibshift_params.radix[job->collective];
    again->segment = ibshift_params.segment[job->collective];
    again->order = module->order.state;
    again->send = (intptr_t)base_of(&job->send) - (intptr_t)from;
    again->recv = (intptr_t)base_of(&job->recv) - (intptr_t)raw->rbuf;
    again->choice =
        atomic_load_explicit(&module->choices.last[job->collective], memory_order_relaxed);
    module->latest[form][job->collective] = kept->has_raw ? again : NULL;
}

struct ibshift_tape_run *ibshift_tape_prepare(mca_coll_ibshift_module_t *module,
                                              enum ibshift_form form,
                                              struct ibshift_kept_tape *kept,
                                              const struct ibshift_job *job,
                                              const struct ibshift_raw *raw)
{
    struct ibshift_tape_run *run = &kept->again.run;
    const struct ibshift_alg *alg = (const struct ibshift_alg *)(uintptr_t)kept->key.words[0];
    uint64_t radix_segments = kept->key.words[1];

    *run = (struct ibshift_tape_run){
        .tape = kept->tape,
        .comm = module->wire_id | ibshift_badge(job, alg, (uint32_t)(radix_segments >> 32),
                                                (uint32_t)radix_segments)};
    run->base[IBSHIFT_SEND] = base_of(&job->send);
    run->base[IBSHIFT_RECV] = base_of(&job->recv);
    run->base[IBSHIFT_TMP] = kept->tmp;
    if (NULL != job->op) {
        kept->reducer = ibshift_call_operator(job);
        run->element = kept->reducer.extent;
        run->reduce = ibshift_call_reducer(&kept->reducer);
        run->reduce_context = &kept->reducer;
    }
    /* A trace has its headlines from an op. */
    if ('\0' == ibshift_params.trace[0]) {
        remember(module, form, kept, job, raw);
    }
    return run;
}

static struct ibshift_kept_tape *kept_of(const struct ibshift_tape_run *run)
{
    return (struct ibshift_kept_tape *)((uintptr_t)run -
                                        offsetof(struct ibshift_kept_tape, again.run));
}

void ibshift_tape_left(mca_coll_ibshift_module_t *module, enum ibshift_form form,
                       enum ibshift_collective collective, const struct ibshift_tape_run *run)
{
    struct ibshift_kept_tape *kept = kept_of(run);

    if (run->next < run->tape->count &&
        ibshift_engine_tape_limit(ibshift_endpoint.engine) < run->tape->steps[run->next].length) {
        kept->is_left = true;
        kept->has_raw = false;
        module->latest[form][collective] = NULL;
    }
}

ibshift_call_t *ibshift_tape_take_call(const struct ibshift_tape_run *run)
{
    struct ibshift_kept_tape *kept = kept_of(run);
    ibshift_call_t *call = kept->again.is_plain ? ibshift_call_take_spare(&kept->spare) : NULL;

    if (NULL != call) { /* the operator is no part of the key */
        call->op.params.badge = run->comm ^ ibshift_net_comm(run->comm);
        if (NULL != call->reducer.op) {
            call->reducer = kept->reducer;
        }
        call->op.params.blocks[IBSHIFT_SEND].base = run->base[IBSHIFT_SEND];
        call->op.params.blocks[IBSHIFT_RECV].base = run->base[IBSHIFT_RECV];
    }
    return call;
}

/* Types and operators of the program would have to be held for as long as it waits. */
void ibshift_tape_adopt(const struct ibshift_tape_run *run, ibshift_call_t *call)
{
    struct ibshift_kept_tape *kept = kept_of(run);

    if (kept->has_raw && kept->again.is_plain) {
        call->home = &kept->spare;
        call->home_id = kept->spare.id;
        call->keeps = false; /* there is nothing that could be freed or changed */
    }
}

/* Making one costs about as much as a call does, so a call that never comes again gets none. */
void ibshift_tape_keep(struct ibshift_kept_tape *kept, const struct ibshift_op_params *params,
                       size_t tmp, bool is_staged)
{
    if (NULL == kept || kept->calls < 2 || NULL != kept->tape || kept->is_refused) {
        return;
    }
    kept->is_refused = true;
    if (is_staged) {
        return;
    }
    kept->tmp = 0 == tmp ? NULL : aligned_alloc(64, (tmp + 63) / 64 * 64);
    if (0 == tmp || NULL != kept->tmp) {
        kept->tape = ibshift_engine_tape(ibshift_endpoint.engine, params, tmp);
    }
}

static void free_tapes(struct ibshift_tapes *tapes)
{
    for (int i = 0; NULL != tapes && i < KEPT; i++) {
        empty(&tapes->kept[i]);
    }
    free(tapes);
}

void ibshift_tapes_free(mca_coll_ibshift_module_t *module)
{
    for (int form = 0; form < IBSHIFT_TAPED_FORMS; form++) {
        for (int i = 0; i < IBSHIFT_COLLECTIVES; i++) {
            free_tapes(module->tapes[form][i]);
            module->tapes[form][i] = NULL;
            module->latest[form][i] = NULL;
        }
    }
}
