/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#ifndef IBSHIFT_COLL_TAPES_H
#define IBSHIFT_COLL_TAPES_H

/*
 * The tapes (exec/tape.h) of a communicator's last calls, blocking and nonblocking ones apart. What
 * a tape depends on is kept beside it and compared at each call: the arguments but for the buffers,
 * the parameters that choose the plan, and of the program's types what their numbers are now, for
 * their addresses may come back as others. Callers serialize the collectives of a communicator, as
 * MPI wants it.
 */

#include "coll_ibshift.h"
#include "coll_ibshift_call.h"
#include "coll_ibshift_job.h"

#include <string.h>

struct ibshift_kept_tape;

/* An earlier call that has a tape, and how the tape is run for a call like it. */
struct ibshift_again {
    struct ibshift_raw raw;
    bool is_plain;        /* no arrays; types and operator are not the program's */
    int algorithm, radix; /* the parameters, which MPI_T may change */
    size_t segment;
    enum ibshift_order_state order; /* which a first call finds */
    size_t cast;          /* of the group, which one finds, too: then no call is the latest */
    ptrdiff_t send, recv; /* the sides' bases behind their buffers */
    const struct ibshift_choice *choice;
    struct ibshift_tape_run run;
    /* A word of each of the four, and so on, where nothing else keeps it from being plain; else NULL. */
    uint64_t (*arrays)[4];
    uint32_t length; /* of each array, in bytes */
    bool is_marked;  /* each: IBSHIFT_ARRAY_MARK, which tells the width of an element */
};

/* What is the same in all calls from one place of the code need not be compared: those from others
 * that share the collective have another form. */
#define IBSHIFT_HAS_SAME(again, now, field)                                                        \
    (__builtin_constant_p((now)->field) || (again)->raw.field == (now)->field)

/* Whether it has the same arguments, but for their contents. */
__attribute__((always_inline)) static inline bool
ibshift_again_is_like(const struct ibshift_again *again, const mca_coll_ibshift_module_t *module,
                      enum ibshift_collective collective, const struct ibshift_raw *raw)
{
    return again->raw.form == raw->form && IBSHIFT_HAS_SAME(again, raw, rcount) &&
           IBSHIFT_HAS_SAME(again, raw, rtype) && IBSHIFT_HAS_SAME(again, raw, scount) &&
           IBSHIFT_HAS_SAME(again, raw, stype) && IBSHIFT_HAS_SAME(again, raw, op) &&
           IBSHIFT_HAS_SAME(again, raw, root) &&
           again->algorithm == ibshift_params.algorithm[collective] &&
           again->radix == ibshift_params.radix[collective] &&
           again->segment == ibshift_params.segment[collective] &&
           again->order == module->group.order.state;
}

/* Its run, for a call that is like it; seq is missing. */
__attribute__((always_inline)) static inline struct ibshift_tape_run *
ibshift_again_run(struct ibshift_again *again, mca_coll_ibshift_module_t *module,
                  enum ibshift_collective collective, const struct ibshift_raw *raw)
{
    const void *from = 0 != (raw->form & IBSHIFT_RAW_IN_PLACE) ? raw->rbuf : raw->sbuf;

    atomic_store_explicit(&module->group.choices.last[collective], again->choice,
                          memory_order_relaxed);
    again->run.base[IBSHIFT_SEND] = (char *)((uintptr_t)from + (uintptr_t)again->send);
    again->run.base[IBSHIFT_RECV] = (char *)((uintptr_t)raw->rbuf + (uintptr_t)again->recv);
    again->run.next = 0;
    return &again->run;
}

__attribute__((always_inline)) static inline bool
ibshift_tapes_serve(mca_coll_ibshift_module_t *module)
{
    return ibshift_params.tapes &&
           NULL == ibshift_device && /* found since: tapes know no staging */
           OMPI_SUCCESS == atomic_load_explicit(&module->failed, memory_order_relaxed);
}

/* What an earlier call that is like this one but not plain has besides. */
bool ibshift_again_has_details(const struct ibshift_again *again, const struct ibshift_raw *raw);

static inline uint64_t ibshift_array_word(ibshift_array_t array, ptrdiff_t at)
{
    uint64_t word;

    memcpy(&word, (const char *)array + at, sizeof(word));
    return word;
}

/* In line: to call libc for each array of few counts takes more instructions than all else before the first step. */
__attribute__((always_inline)) static inline bool
ibshift_again_has_words(const struct ibshift_again *again, const struct ibshift_raw *raw,
                        const ptrdiff_t mark)
{
    uint64_t unlike = 0;

    for (size_t at = 0; 0 == unlike && at < again->length; at += sizeof(uint64_t)) {
        const uint64_t *kept = (const void *)((const char *)again->arrays + 4 * at);

        unlike = (ibshift_array_word(raw->scounts, (ptrdiff_t)at - mark) ^ kept[0]) |
                 (ibshift_array_word(raw->sdispls, (ptrdiff_t)at - mark) ^ kept[1]) |
                 (ibshift_array_word(raw->rcounts, (ptrdiff_t)at - mark) ^ kept[2]) |
                 (ibshift_array_word(raw->rdispls, (ptrdiff_t)at - mark) ^ kept[3]);
    }
    return 0 == unlike;
}

/* All are as wide as those that were kept, which a mark of each says: where it is known, taking it off costs nothing. */
__attribute__((always_inline)) static inline bool
ibshift_again_has_arrays(const struct ibshift_again *again, const struct ibshift_raw *raw)
{
    const uintptr_t s = (uintptr_t)raw->scounts, sd = (uintptr_t)raw->sdispls;
    const uintptr_t r = (uintptr_t)raw->rcounts, rd = (uintptr_t)raw->rdispls;

    if (IBSHIFT_ARRAY_MARK && again->is_marked) {
        return 0 != (s & sd & r & rd & IBSHIFT_ARRAY_MARK) &&
               ibshift_again_has_words(again, raw, IBSHIFT_ARRAY_MARK);
    }
    return 0 == ((s | sd | r | rd) & IBSHIFT_ARRAY_MARK) && ibshift_again_has_words(again, raw, 0);
}

/* As ibshift_tape_again(), of the latest call only. In line, so that raw is in memory only where
 * it has arrays, which the compiler sees. */
__attribute__((always_inline)) static inline struct ibshift_tape_run *
ibshift_tape_latest(mca_coll_ibshift_module_t *module, enum ibshift_form form,
                    enum ibshift_collective collective, const struct ibshift_raw raw)
{
    struct ibshift_again *latest = module->latest[form][collective];

    if (IBSHIFT_BLOCKING == form && IBSHIFT_ALLTOALL == collective &&
        0 != (raw.form & IBSHIFT_RAW_VECTOR) && 0 == --module->padded.left) {
        return NULL; /* this call has more to do */
    }
    if (NULL == latest || !ibshift_again_is_like(latest, module, collective, &raw) ||
        !ibshift_tapes_serve(module)) {
        return NULL;
    }
    if (!latest->is_plain) {
        if (0 == (raw.form & IBSHIFT_RAW_VECTOR)) {
            return NULL; /* types or an operator of the program: the slower way compares them */
        }
        if (NULL != latest->arrays) {
            if (!ibshift_again_has_arrays(latest, &raw)) {
                return NULL;
            }
        } else {
            const struct ibshift_raw copy = raw;

            if (!ibshift_again_has_details(latest, &copy)) {
                return NULL;
            }
        }
    }
    return ibshift_again_run(latest, module, collective, &raw);
}

/*
 * The run of the tape of an earlier call with the same arguments, if the parameters are the same
 * too; seq is missing. NULL: there is none, or it takes more to find it. It is the communicator's,
 * which has one such call at a time.
 */
struct ibshift_tape_run *ibshift_tape_again(mca_coll_ibshift_module_t *module,
                                            enum ibshift_form form,
                                            enum ibshift_collective collective,
                                            const struct ibshift_raw *raw);

/* Its run has been left: a call that waits for the like of it, or NULL. If it was left because
 * the net has come to try shorter messages only, no other call begins with its tape. */
ibshift_call_t *ibshift_tape_leave(mca_coll_ibshift_module_t *module, enum ibshift_form form,
                                   enum ibshift_collective collective,
                                   const struct ibshift_tape_run *run);
/* The call may wait for the like of the run when it is given back. */
void ibshift_tape_adopt(const struct ibshift_tape_run *run, ibshift_call_t *call);

/*
 * The place of this call, with the plan as it would be chosen for an op, among the last ones of its
 * collective; the oldest is given up for it. NULL: it can have no tape (it is long, staged, paced,
 * or counted along an order), or there is no memory for one. OMPI_ERR_OUT_OF_RESOURCE: there is none
 * to choose a plan, and the collective must end on all ranks.
 */
int ibshift_tape_find(mca_coll_ibshift_module_t *module, enum ibshift_form form,
                      const struct ibshift_job *job, const struct ibshift_raw *raw,
                      struct ibshift_kept_tape **kept);

/* The call has run as an op: when it was not the first, it gets a tape. kept may be NULL. */
void ibshift_tape_keep(mca_coll_ibshift_module_t *module, enum ibshift_form form,
                       struct ibshift_kept_tape *kept, const struct ibshift_job *job,
                       const ibshift_call_t *call);

/* Of a persistent call, which has its own; NULL: none yet, or none is possible. */
const struct ibshift_tape *ibshift_tape_of_call(ibshift_call_t *call);

/* Whether grants for a call's runs stand (group/repeat.h), once it is laid out. OMPI codes. */
int ibshift_repeat_of_call(ibshift_call_t *call, const struct ibshift_job *job,
                           enum ibshift_form form);

void ibshift_tapes_free(mca_coll_ibshift_module_t *module);

#endif
