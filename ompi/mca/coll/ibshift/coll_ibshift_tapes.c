/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_tapes.h"
#include "coll_ibshift_call.h"

#include "ompi/op/op.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEPT = 4,         /* calls of a collective: a root or a count that alternates */
    MOST_COUNTS = 64, /* ranks, where each has its count */
    ARRAYS = 4,
};

/* What a tape depends on of a datatype: freed ones come back as others at the same address. */
struct type_numbers {
    uint64_t flags, size;
    ptrdiff_t lb, ub, true_lb, true_ub;
};

struct ibshift_kept_tape {
    uint32_t calls; /* with these arguments and this plan, as far as 2; 0: free */
    bool is_left;   /* its messages are too long by now */
    bool is_tried;  /* no tape is possible, or there is one */
    struct ibshift_tape *tape;
    char *tmp;

    struct ibshift_again again; /* what the call had, and the run once there is a tape */
    const struct ibshift_alg *alg;
    uint32_t radix, segments, leaders;
    bool commutes;
    struct type_numbers stype, rtype;
    size_t counts;                  /* of the longest array */
    size_t length[ARRAYS];          /* of each */
    size_t width[ARRAYS];           /* of an element */
    uint64_t *arrays;               /* counts and displacements of both sides, as wide or less */
    struct ompi_datatype_t **types; /* of both sides, for each block; NULL: none is for a block */
    struct ibshift_operator reducer;

    struct ibshift_spare spare; /* outlives the rest: calls in flight know its address */
};

struct ibshift_tapes {
    struct ibshift_kept_tape kept[KEPT];
    uint32_t oldest;
};

/* Each second one has displacements. */
static size_t width_of(const struct ibshift_raw *raw, ibshift_array_t array, size_t i)
{
    return ibshift_displs_width(array, 1 == i % 2 && 0 != (raw->form & IBSHIFT_RAW_PLACES));
}

static bool has_arrays(const struct ibshift_kept_tape *kept, const struct ibshift_raw *raw)
{
    const ibshift_array_t now[ARRAYS] = {raw->scounts, raw->sdispls, raw->rcounts, raw->rdispls};

    for (size_t i = 0; i < (0 == kept->counts ? 0 : ARRAYS); i++) {
        size_t width = width_of(raw, now[i], i);

        if (IBSHIFT_NO_ARRAY != now[i] &&
            (width != kept->width[i] ||
             0 != memcmp(ibshift_array_elements(now[i]), kept->arrays + i * kept->counts,
                         kept->length[i] * width))) {
            return false;
        }
    }
    return true;
}

static bool has_types(const struct ibshift_kept_tape *kept, const struct ibshift_raw *raw)
{
    size_t sends = kept->length[0] * sizeof(*raw->stypes);
    size_t recvs = kept->length[2] * sizeof(*raw->rtypes);

    return NULL == kept->types ||
           ((NULL == raw->stypes || 0 == memcmp(raw->stypes, kept->types, sends)) &&
            (NULL == raw->rtypes || 0 == memcmp(raw->rtypes, kept->types + kept->counts, recvs)));
}

static void empty(struct ibshift_kept_tape *kept)
{
    free(kept->types);
    free(kept->arrays);
    free(kept->again.arrays);
    free(kept->tape);
    free(kept->tmp);
    memset(kept, 0, offsetof(struct ibshift_kept_tape, spare));
    kept->spare.id++;
    (void)ibshift_call_take_spare(&kept->spare); /* it is another's */
}

/* How long they are. */
static void measure(const mca_coll_ibshift_module_t *module, enum ibshift_collective collective,
                    struct ibshift_kept_tape *kept)
{
    bool is_of_neighbors = ibshift_collective_is_of_neighbors(collective);
    size_t sends = is_of_neighbors ? module->group.neighborhood.destinations : module->group.size;
    size_t recvs = is_of_neighbors ? module->group.neighborhood.sources : module->group.size;

    kept->length[0] = kept->length[1] = sends;
    kept->length[2] = kept->length[3] = recvs;
    kept->counts = sends > recvs ? sends : recvs;
}

static bool copy_arrays(struct ibshift_kept_tape *kept, const struct ibshift_raw *raw)
{
    const ibshift_array_t now[ARRAYS] = {raw->scounts, raw->sdispls, raw->rcounts, raw->rdispls};

    if (IBSHIFT_NO_ARRAY == raw->scounts && IBSHIFT_NO_ARRAY == raw->rcounts) {
        kept->counts = 0;
        return true;
    }
    kept->arrays = calloc(ARRAYS * kept->counts + 1, sizeof(*kept->arrays));
    for (size_t i = 0; NULL != kept->arrays && i < ARRAYS; i++) {
        kept->width[i] = width_of(raw, now[i], i);
        if (IBSHIFT_NO_ARRAY != now[i]) {
            memcpy(kept->arrays + i * kept->counts, ibshift_array_elements(now[i]),
                   kept->length[i] * kept->width[i]);
        }
    }
    return NULL != kept->arrays;
}

static bool copy_types(struct ibshift_kept_tape *kept, const struct ibshift_raw *raw)
{
    struct ompi_datatype_t *const *stypes = NULL == raw->stypes ? raw->rtypes : raw->stypes;

    if (0 == (raw->form & IBSHIFT_RAW_TYPES)) {
        return true;
    }
    kept->types = calloc(2 * kept->counts + 1, sizeof(*kept->types));
    for (size_t i = 0; NULL != kept->types && i < kept->length[0]; i++) {
        kept->types[i] = stypes[i];
    }
    for (size_t i = 0; NULL != kept->types && i < kept->length[2]; i++) {
        kept->types[kept->counts + i] = raw->rtypes[i];
    }
    return NULL != kept->types;
}

/* Along a fabric, all-to-alls count what they move, and the first call of others looks for the
 * order. */
static bool has_order(const mca_coll_ibshift_module_t *module, const struct ibshift_job *job)
{
    return 0 == ibshift_fabric_file.identity ||
           ((IBSHIFT_ALLTOALL != job->collective || ibshift_fabric_is_adaptive()) &&
            IBSHIFT_ORDER_UNKNOWN != module->group.order.state);
}

static bool has_few_counts(const struct ibshift_side *side)
{
    return IBSHIFT_NO_ARRAY == side->counts || side->blocks <= MOST_COUNTS;
}

static bool can_have_tape(const mca_coll_ibshift_module_t *module, const struct ibshift_job *job)
{
    return ibshift_params.tapes && NULL == ibshift_device && /* tapes know no staging */
           '\0' == ibshift_params.trace[0] &&                /* and no headlines of a trace */
           job->bytes <= ibshift_engine_tape_limit(ibshift_endpoint.engine) &&
           has_order(module, job) && has_few_counts(&job->send) && has_few_counts(&job->recv) &&
           ibshift_side_is_whole(&job->send) && ibshift_side_is_whole(&job->recv);
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

static struct ibshift_kept_tape *kept_of(const struct ibshift_again *again)
{
    return (struct ibshift_kept_tape *)((uintptr_t)again -
                                        offsetof(struct ibshift_kept_tape, again));
}

bool ibshift_again_has_details(const struct ibshift_again *again, const struct ibshift_raw *raw)
{
    const struct ibshift_kept_tape *kept = kept_of(again);

    return has_numbers(raw->stype, &kept->stype) && has_numbers(raw->rtype, &kept->rtype) &&
           commutes(raw->op) == kept->commutes && has_arrays(kept, raw) && has_types(kept, raw);
}

static bool has_arguments(const struct ibshift_kept_tape *kept,
                          const mca_coll_ibshift_module_t *module,
                          enum ibshift_collective collective, const struct ibshift_raw *raw)
{
    return kept->calls > 0 && ibshift_again_is_like(&kept->again, module, collective, raw) &&
           kept->again.cast == module->group.cast.most &&
           (kept->again.is_plain || ibshift_again_has_details(&kept->again, raw));
}

struct ibshift_tape_run *ibshift_tape_again(mca_coll_ibshift_module_t *module,
                                            enum ibshift_form form,
                                            enum ibshift_collective collective,
                                            const struct ibshift_raw *raw)
{
    struct ibshift_tapes *tapes = module->tapes[form][collective];

    if (NULL == tapes || !ibshift_tapes_serve(module)) {
        return NULL;
    }
    for (int i = 0; i < KEPT; i++) {
        struct ibshift_kept_tape *kept = &tapes->kept[i];

        if (NULL != kept->tape && !kept->is_left && has_arguments(kept, module, collective, raw)) {
            module->latest[form][collective] = &kept->again;
            return ibshift_again_run(&kept->again, module, collective, raw);
        }
    }
    return NULL;
}

static bool has_plan(const struct ibshift_kept_tape *kept, const struct ibshift_op_params *params)
{
    return kept->alg == params->alg && kept->radix == params->plan.radix &&
           kept->segments == params->plan.segments && kept->leaders == params->plan.leaders;
}

static bool has_known_handles(const struct ibshift_raw *raw)
{
    return !is_of_the_program(raw->stype) && !is_of_the_program(raw->rtype) &&
           (NULL == raw->op || ompi_op_is_intrinsic(raw->op));
}

/* All four arrays, equally wide: alltoallv, not in place, of an even number of ranks. */
static bool has_whole_words(const struct ibshift_kept_tape *kept, const struct ibshift_raw *raw)
{
    const ibshift_array_t now[ARRAYS] = {raw->scounts, raw->sdispls, raw->rcounts, raw->rdispls};

    for (size_t i = 0; i < ARRAYS; i++) {
        if (IBSHIFT_NO_ARRAY == now[i] || kept->width[i] != kept->width[0] ||
            kept->length[i] != kept->counts ||
            0 != kept->counts * kept->width[i] % sizeof(uint64_t)) {
            return false;
        }
    }
    return true;
}

static uint64_t (*interleaved(const struct ibshift_kept_tape *kept))[ARRAYS]
{
    size_t words = kept->counts * kept->width[0] / sizeof(uint64_t);
    uint64_t(*to)[ARRAYS] = malloc(words * sizeof(*to));

    for (size_t i = 0; NULL != to && i < words * ARRAYS; i++) {
        to[i / ARRAYS][i % ARRAYS] = kept->arrays[i % ARRAYS * kept->counts + i / ARRAYS];
    }
    return to;
}

/* false: no memory. */
static bool fill(const mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                 const struct ibshift_raw *raw, const struct ibshift_op_params *params,
                 struct ibshift_kept_tape *kept)
{
    measure(module, job->collective, kept);
    if (!copy_arrays(kept, raw) || !copy_types(kept, raw)) {
        return false;
    }
    kept->calls = 1;
    kept->alg = params->alg;
    kept->radix = params->plan.radix;
    kept->segments = params->plan.segments;
    kept->leaders = params->plan.leaders;
    kept->commutes = commutes(raw->op);
    kept->stype = numbers_of(raw->stype);
    kept->rtype = numbers_of(raw->rtype);
    kept->again.raw = *raw;
    kept->again.is_plain = 0 == kept->counts && has_known_handles(raw);
    kept->again.arrays = NULL == kept->types && has_known_handles(raw) && has_whole_words(kept, raw)
                             ? interleaved(kept)
                             : NULL;
    kept->again.is_marked = 0 != ((uintptr_t)raw->scounts & IBSHIFT_ARRAY_MARK);
    kept->again.length = (uint32_t)(kept->counts * kept->width[0]);
    kept->again.algorithm = ibshift_params.algorithm[job->collective];
    kept->again.radix = ibshift_params.radix[job->collective];
    kept->again.segment = ibshift_params.segment[job->collective];
    kept->again.order = module->group.order.state;
    kept->again.cast = module->group.cast.most;
    return true;
}

static struct ibshift_kept_tape *find(mca_coll_ibshift_module_t *module, enum ibshift_form form,
                                      const struct ibshift_job *job, const struct ibshift_raw *raw,
                                      const struct ibshift_op_params *params)
{
    struct ibshift_tapes **place = &module->tapes[form][job->collective], *tapes = *place;
    struct ibshift_kept_tape *kept;

    if (NULL == tapes && NULL == (tapes = *place = calloc(1, sizeof(*tapes)))) {
        return NULL;
    }
    for (int i = 0; i < KEPT; i++) {
        kept = &tapes->kept[i];
        if (has_arguments(kept, module, job->collective, raw) && has_plan(kept, params)) {
            kept->calls = 2;
            kept->again.raw = *raw; /* its buffers are where the job's are */
            return kept;
        }
    }
    kept = &tapes->kept[tapes->oldest++ % KEPT];
    if (module->latest[form][job->collective] == &kept->again) {
        module->latest[form][job->collective] = NULL;
    }
    empty(kept);
    return fill(module, job, raw, params, kept) ? kept : NULL;
}

int ibshift_tape_find(mca_coll_ibshift_module_t *module, enum ibshift_form form,
                      const struct ibshift_job *job, const struct ibshift_raw *raw,
                      struct ibshift_kept_tape **kept)
{
    const struct ibshift_wanted wanted = ibshift_job_wanted(job, form);
    struct ibshift_op_params params;
    int rc;

    *kept = NULL;
    /* In place of what it gets: then its buffer is found by another argument, or there is none. */
    if (MPI_IN_PLACE == raw->rbuf || !can_have_tape(module, job) ||
        ibshift_group_cast_is_due(&module->group, &wanted) ||
        OMPI_SUCCESS != atomic_load_explicit(&module->failed, memory_order_relaxed)) {
        return OMPI_SUCCESS;
    }
    rc = ibshift_code(ibshift_group_choose(&module->group, &wanted, job->root, &params));
    if (OMPI_SUCCESS == rc && !ibshift_job_tells_counts(job, params.alg)) {
        *kept = find(module, form, job, raw, &params);
    }
    return rc;
}

static char *base_of(const struct ibshift_side *side)
{
    return NULL == side->type ? side->user : side->user + ibshift_type_lower_bound(side->type);
}

/* How the tape is run for calls like this one. */
static void prepare(const mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                    const struct ibshift_op_params *params, struct ibshift_kept_tape *kept)
{
    struct ibshift_again *again = &kept->again;
    const struct ibshift_raw *raw = &again->raw;
    const void *from = 0 != (raw->form & IBSHIFT_RAW_IN_PLACE) ? raw->rbuf : raw->sbuf;

    again->send = (intptr_t)base_of(&job->send) - (intptr_t)from;
    again->recv = (intptr_t)base_of(&job->recv) - (intptr_t)raw->rbuf;
    again->choice =
        atomic_load_explicit(&module->group.choices.last[job->collective], memory_order_relaxed);
    again->run = (struct ibshift_tape_run){
        .tape = kept->tape,
        .comm = module->group.id | ibshift_job_badge(job, params->alg, &params->plan)};
    again->run.base[IBSHIFT_TMP] = kept->tmp;
    if (NULL != job->op) {
        kept->reducer = ibshift_job_operator(job);
        again->run.element = kept->reducer.extent;
        again->run.reduce = ibshift_operator_short(&kept->reducer);
        again->run.reduce_context = &kept->reducer;
    }
}

/* Making one costs about as much as a call does, so a call that never comes again gets none. */
void ibshift_tape_keep(mca_coll_ibshift_module_t *module, enum ibshift_form form,
                       struct ibshift_kept_tape *kept, const struct ibshift_job *job,
                       const ibshift_call_t *call)
{
    if (NULL == kept || kept->calls < 2 || kept->is_tried) {
        return;
    }
    kept->is_tried = true;
    if (call->send.is_staged || call->recv.is_staged) {
        return;
    }
    kept->tmp = 0 == call->tmp ? NULL : aligned_alloc(64, (call->tmp + 63) / 64 * 64);
    if (0 == call->tmp || NULL != kept->tmp) {
        kept->tape = ibshift_engine_tape(ibshift_endpoint.engine, &call->op.params, call->tmp);
    }
    if (NULL != kept->tape) {
        prepare(module, job, &call->op.params, kept);
        module->latest[form][job->collective] = &kept->again;
    }
}

static struct ibshift_kept_tape *kept_by_run(const struct ibshift_tape_run *run)
{
    return kept_of((struct ibshift_again *)((uintptr_t)run - offsetof(struct ibshift_again, run)));
}

ibshift_call_t *ibshift_tape_leave(mca_coll_ibshift_module_t *module, enum ibshift_form form,
                                   enum ibshift_collective collective,
                                   const struct ibshift_tape_run *run)
{
    struct ibshift_kept_tape *kept = kept_by_run(run);
    ibshift_call_t *call = kept->again.is_plain ? ibshift_call_take_spare(&kept->spare) : NULL;

    if (run->next < run->tape->count &&
        ibshift_engine_tape_limit(ibshift_endpoint.engine) < run->tape->steps[run->next].length) {
        kept->is_left = true;
        module->latest[form][collective] = NULL;
    }
    if (NULL != call) { /* the operator is no part of what they have in common */
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
    struct ibshift_kept_tape *kept = kept_by_run(run);

    if (!kept->is_left && kept->again.is_plain) {
        call->home = &kept->spare;
        call->home_id = kept->spare.id;
        call->keeps = false; /* there is nothing that could be freed or changed */
    }
}

/* The second run makes the tape: many requests are started once. */
const struct ibshift_tape *ibshift_tape_of_call(ibshift_call_t *call)
{
    if (!ibshift_params.tapes || '\0' != ibshift_params.trace[0] || call->tells_counts ||
        NULL != call->op.params.gaps) {
        return NULL;
    }
    if (!call->has_tried_tape && call->runs > 1) {
        call->has_tried_tape = true;
        call->tape = ibshift_engine_tape(ibshift_endpoint.engine, &call->op.params, call->tmp);
    }
    return call->tape;
}

int ibshift_repeat_of_call(ibshift_call_t *call, const struct ibshift_job *job,
                           enum ibshift_form form)
{
    const struct ibshift_wanted wanted = ibshift_job_wanted(job, form);
    const struct ibshift_repeated repeated = {
        .op = &call->op,
        .wanted = &wanted,
        .number = atomic_load_explicit(&call->module->persistent, memory_order_relaxed),
        .blocks = {call->send.blocks, call->recv.blocks}};

    return call->tells_counts
               ? OMPI_SUCCESS
               : ibshift_code(ibshift_repeat_make(&call->module->group, &repeated, &call->repeat));
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
