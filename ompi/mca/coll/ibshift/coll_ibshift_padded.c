/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
/*
 * Blocking all-to-alls with counts whose blocks are known to be short, as far as that pays (choose/padded.h): a plain all-to-all of
 * blocks of one size, with its plan, its order and its tape, whatever the counts; then the blocks that are longer, on the ranks
 * that have any.
 *
 * What is short is a number that ranks agree on now and then: after the second call, the fourth, the eighth, by one allreduce of
 * a few words. Blocking calls alone are counted, for all ranks make the same ones in the same order.
 */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_APART = 1024 /* calls: a program that changes is followed soon */ };

static size_t slot_bytes(const struct ibshift_padded *padded)
{
    return padded->most + IBSHIFT_PADDED_WORD;
}

/* Room for both sides' slots, and for a long block's counts of both. */
static int make_slots(struct ibshift_padded *padded, uint32_t ranks)
{
    size_t bytes = 2 * ranks * (slot_bytes(padded) + sizeof(size_t)), line = 64;

    free(padded->slots);
    padded->slots = aligned_alloc(line, (bytes + line - 1) / line * line);
    if (NULL == padded->slots) {
        padded->most = 0; /* no later call looks for them */
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    return OMPI_SUCCESS;
}

/* Of a size that is too long to be told. */
static uint32_t word_of(size_t bytes)
{
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

/* A side as the loops below see it: how a block is moved is known once for all where that is simple. */
struct mover {
    const struct ibshift_side *side;
    struct ibshift_side_units units;
    bool is_simple;
};

static struct mover mover_of(const struct ibshift_side *side)
{
    struct mover mover = {.side = side};

    mover.is_simple = ibshift_side_is_simple(side, &mover.units);
    return mover;
}

static inline size_t bytes_of(const struct mover *mover, uint32_t block)
{
    return mover->is_simple
               ? (size_t)ibshift_array_at(mover->side->counts, block) * mover->units.size
               : ibshift_side_block_bytes(mover->side, block);
}

static inline void move(const struct mover *mover, uint32_t block, char *slot, size_t bytes,
                        bool pack)
{
    char *user;

    if (!mover->is_simple) {
        ibshift_side_move_block(mover->side, block, slot, pack);
        return;
    }
    user = mover->units.base + ibshift_array_at(mover->side->displs, block) * mover->units.extent;
    memcpy(pack ? slot : user, pack ? user : slot, bytes);
}

/* True: there are blocks that do not go padded. */
static bool fill_slots(const struct ibshift_padded *padded, const struct ibshift_side *side)
{
    const struct mover mover = mover_of(side);
    char *slot = padded->slots;
    bool has_long = false;

    for (uint32_t i = 0; i < side->blocks; i++, slot += slot_bytes(padded)) {
        size_t bytes = bytes_of(&mover, i);
        uint32_t word = word_of(bytes);

        if (bytes > padded->most) {
            has_long = true;
        } else if (bytes > 0) {
            move(&mover, i, slot, bytes, true);
        }
        memcpy(slot + padded->most, &word, sizeof(word));
    }
    return has_long;
}

/* Blocks that have come; false: unlike says whose size is not the awaited one. */
static bool empty_slots(const struct ibshift_padded *padded, const struct ibshift_side *side,
                        struct ibshift_mixed_unlike *unlike, bool *has_long)
{
    const struct mover mover = mover_of(side);
    char *slot = padded->slots + side->blocks * slot_bytes(padded);

    for (uint32_t i = 0; i < side->blocks; i++, slot += slot_bytes(padded)) {
        size_t bytes = bytes_of(&mover, i);
        uint32_t word;

        memcpy(&word, slot + padded->most, sizeof(word));
        if (word != word_of(bytes)) {
            unlike->from = i;
            unlike->sent = word;
            unlike->awaited = word_of(bytes);
            return false;
        }
        if (bytes > padded->most) {
            *has_long = true;
        } else if (bytes > 0) {
            move(&mover, i, slot, bytes, false);
        }
    }
    return true;
}

/* 0 in the place of what went padded. */
static ibshift_array_t long_counts(const struct ibshift_padded *padded,
                                   const struct ibshift_side *side, char *memory)
{
    size_t width = ibshift_array_width(side->counts);

    memcpy(memory, ibshift_array_elements(side->counts), side->blocks * width);
    for (uint32_t i = 0; i < side->blocks; i++) {
        if (ibshift_side_block_bytes(side, i) <= padded->most) {
            memset(memory + i * width, 0, width);
        }
    }
    return ibshift_array_of(memory, width);
}

static int send_long(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                     const struct ibshift_called *called, const struct ibshift_job *job)
{
    const struct ibshift_padded *padded = &module->padded;
    char *memory = padded->slots + 2 * module->group.size * slot_bytes(padded);
    struct ibshift_called rest = *called;

    memory += -(uintptr_t)memory % sizeof(size_t);
    rest.raw.form |= IBSHIFT_RAW_LONG;
    rest.raw.rcounts = long_counts(padded, &job->recv, memory);
    if (!job->in_place) {
        rest.raw.scounts =
            long_counts(padded, &job->send, memory + module->group.size * sizeof(size_t));
    }
    return ibshift_call(module, comm, &rest, NULL, NULL);
}

static int send_slots(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                      const struct ibshift_called *called)
{
    const struct ibshift_padded *padded = &module->padded;
    size_t bytes = slot_bytes(padded);
    struct ibshift_called slots = *called;

    slots.raw = (struct ibshift_raw){.sbuf = padded->slots,
                                     .rbuf = padded->slots + module->group.size * bytes,
                                     .stype = &ompi_mpi_byte.dt,
                                     .rtype = &ompi_mpi_byte.dt,
                                     .scount = (ibshift_count_t)bytes,
                                     .rcount = (ibshift_count_t)bytes,
                                     .form = IBSHIFT_RAW_PADDED};
    return ibshift_call(module, comm, &slots, NULL, NULL);
}

static uint32_t number_of_last(const mca_coll_ibshift_module_t *module)
{
    uint64_t next = atomic_load_explicit(&module->seq, memory_order_relaxed) / 2;

    return (uint32_t)(next >> 32) - 1;
}

static int run_padded(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                      const struct ibshift_called *called)
{
    const struct ibshift_padded *padded = &module->padded;
    struct ibshift_mixed_unlike unlike = {.to = module->group.rank};
    struct ibshift_job job;
    bool has_long;
    int rc = ibshift_job_describe(module, called, &job);

    if (OMPI_SUCCESS != rc) {
        return ibshift_call_fail(module, rc);
    }
    if (NULL != ibshift_device) { /* else they are ready */
        job.send.is_host = job.recv.is_host = ibshift_comm_is_host_only(comm);
        ibshift_side_prepare(&job.send);
        ibshift_side_prepare(&job.recv);
    }
    has_long = fill_slots(padded, &job.send);
    rc = send_slots(module, comm, called);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (!empty_slots(padded, &job.recv, &unlike, &has_long)) {
        ibshift_report_counts(&module->group, number_of_last(module), &unlike, called->name);
        return ibshift_call_fail(module, ibshift_code(-EMSGSIZE));
    }
    if (has_long) {
        return send_long(module, comm, called, &job);
    }
    ibshift_call_skip(module); /* of those who have */
    return OMPI_SUCCESS;
}

static void explain(const mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm)
{
    const struct ibshift_padded *padded = &module->padded;

    fprintf(stderr,
            "ibshift: %s, %u ranks: blocking alltoallv and alltoallw: longest block %llu B; up to "
            "%zu B go padded, as an alltoall\n",
            comm->c_name, module->group.size, (unsigned long long)padded->counts.longest,
            padded->most);
}

/* The same on all ranks: the counts that they agree on. */
static int decide(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                  const struct ibshift_question *question)
{
    struct ibshift_padded *padded = &module->padded;
    size_t before = padded->most;

    padded->most = ibshift_padded_most(question, &padded->counts);
    if (before == padded->most) {
        return OMPI_SUCCESS;
    }
    module->latest[IBSHIFT_BLOCKING][IBSHIFT_ALLTOALL] = NULL;
    if (ibshift_params.explain && 0 == module->group.rank) {
        explain(module, comm);
    }
    return make_slots(padded, module->group.size);
}

static int ask(mca_coll_ibshift_module_t *module, const struct ibshift_plan *plan,
               bool *lacks_memory, struct ibshift_question *question)
{
    const struct ibshift_wanted plain = {
        .collective = IBSHIFT_ALLTOALL, .bytes = 1, .is_blocking = true};
    int rc =
        ibshift_code(ibshift_choose_question(&module->group, &plain, plan, lacks_memory, question));

    question->is_brief = true;
    return rc;
}

/* How long blocks are now. */
static int compare_counts(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                          const struct ibshift_called *called)
{
    struct ibshift_plan plan = {.ranks = module->group.size,
                                .order = module->group.order.order,
                                .stages = module->group.order.stages,
                                .nodes = &module->group.choices.nodes};
    struct ibshift_padded_counts counts = {.longest = 0};
    struct ibshift_question question;
    struct ibshift_job job;
    bool lacks_memory = false;
    int rc = ask(module, &plan, &lacks_memory, &question);

    if (OMPI_SUCCESS != rc || !ibshift_padded_may_pay(&question)) {
        return lacks_memory ? OMPI_ERR_OUT_OF_RESOURCE : rc;
    }
    rc = ibshift_job_describe(module, called, &job);
    if (OMPI_SUCCESS != rc) { /* here alone: the others wait for this rank's counts */
        return rc;
    }
    for (uint32_t i = 0; i < module->group.size; i++) {
        ibshift_padded_add(&counts, ibshift_side_block_bytes(&job.send, i));
    }
    rc = comm->c_coll->coll_allreduce(MPI_IN_PLACE, &counts, sizeof(counts) / sizeof(uint64_t),
                                      MPI_UINT64_T, MPI_MAX, comm,
                                      comm->c_coll->coll_allreduce_module);
    if (OMPI_SUCCESS == rc && 0 != memcmp(&counts, &module->padded.counts, sizeof(counts))) {
        module->padded.counts = counts;
        rc = decide(module, comm, &question);
    }
    return lacks_memory ? OMPI_ERR_OUT_OF_RESOURCE : rc;
}

int ibshift_padded_call(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                        const struct ibshift_called *called, struct ibshift_tape_run *run)
{
    struct ibshift_padded *padded = &module->padded;
    int rc = 0 == padded->most || NULL != run ? ibshift_call(module, comm, called, run, NULL)
                                              : run_padded(module, comm, called);

    if (OMPI_ERR_NOT_SUPPORTED == rc && padded->most > 0) { /* as a plain one, on all ranks */
        rc = ibshift_call(module, comm, called, NULL, NULL);
    }
    if (0 != padded->left) {
        return rc;
    }
    padded->apart = padded->apart < MOST_APART / 2 ? 2 * padded->apart : MOST_APART;
    padded->left = padded->apart;
    return OMPI_SUCCESS == rc ? ibshift_call_fail(module, compare_counts(module, comm, called))
                              : rc;
}
