#ifndef IBSHIFT_NET_LEDGER_H
#define IBSHIFT_NET_LEDGER_H

/*
 * Which call had which number on a communicator, on this side: the last ones. With it a net tells a
 * peer that is late from one that calls another collective. Written when a call gets its number, by
 * one thread at a time; read by the nets.
 *
 * The numbers. Blocking and nonblocking collectives count upwards: all ranks start them in the same
 * order. Persistent ones are created in the same order but may be started in any: each has an id and
 * counts its runs.
 *
 *     bit 31  0: number, 31 bits        1: id, 19 bits    run, 12 bits
 *
 * Only neighbouring runs can be on the way at a time, so the run may wrap; an id may not.
 */

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "net/net.h"

enum { IBSHIFT_RUN_BITS = 12, IBSHIFT_RUN_MASK = (1 << IBSHIFT_RUN_BITS) - 1 };
enum { IBSHIFT_PERSISTENT_MAX = 1 << 19, IBSHIFT_LEDGER_CALLS = 64 };
#define IBSHIFT_PERSISTENT_SEQ UINT32_C(0x80000000)

/* Two ranks call different collectives under one number: the first words of their keys. */
struct ibshift_unlike {
    uint32_t peer, seq;
    uint32_t ours, theirs; /* the same: nobody does */
};

struct ibshift_ledger {
    _Atomic uint64_t calls[2][IBSHIFT_LEDGER_CALLS]; /* comm_seq of net.h; persistent ones apart */
    struct ibshift_unlike unlike;                    /* the first that was noticed */
};

static inline void ibshift_ledger_init(struct ibshift_ledger *ledger)
{
    memset(ledger, 0xff, sizeof(*ledger));
    ledger->unlike = (struct ibshift_unlike){0};
}

static inline void ibshift_ledger_write(struct ibshift_ledger *ledger, uint64_t comm_seq)
{
    atomic_store_explicit(&ledger->calls[0][comm_seq >> 32 & (IBSHIFT_LEDGER_CALLS - 1)], comm_seq,
                          memory_order_relaxed);
}

static inline uint32_t ibshift_ledger_place(uint32_t seq)
{
    return ((seq & IBSHIFT_PERSISTENT_SEQ) != 0 ? seq >> IBSHIFT_RUN_BITS : seq) &
           (IBSHIFT_LEDGER_CALLS - 1);
}

/* A persistent call, and the last of its runs that has begun. */
static inline void ibshift_ledger_write_persistent(struct ibshift_ledger *ledger, uint64_t comm_seq)
{
    atomic_store_explicit(&ledger->calls[1][ibshift_ledger_place((uint32_t)(comm_seq >> 32))],
                          comm_seq, memory_order_relaxed);
}

/* False: it has not begun here, or too many came after it. word: the first of its keys. */
static inline bool ibshift_ledger_find(const struct ibshift_ledger *ledger, uint32_t seq,
                                       uint32_t *word)
{
    bool is_persistent = (seq & IBSHIFT_PERSISTENT_SEQ) != 0;
    uint64_t call = atomic_load_explicit(&ledger->calls[is_persistent][ibshift_ledger_place(seq)],
                                         memory_order_relaxed);

    *word = (uint32_t)call;
    return (((uint32_t)(call >> 32) ^ seq) >> (is_persistent ? IBSHIFT_RUN_BITS : 0)) == 0;
}

/* Of two numbers, or of two runs of one persistent call, which are less than half of all apart. */
static inline bool ibshift_number_is_until(uint32_t number, uint32_t last)
{
    uint32_t bits = (number & IBSHIFT_PERSISTENT_SEQ) != 0 ? IBSHIFT_RUN_BITS : 31;

    return (number ^ last) >> bits == 0 && (last - number) << (32 - bits) >> 31 == 0;
}

/* Whether it had begun before what this thread does now: a later call has, or the last run of a persistent one, which is written
 * after its start. */
static inline bool ibshift_ledger_is_past(const struct ibshift_ledger *ledger, uint32_t seq)
{
    uint32_t word, i = 1;

    if (!ibshift_ledger_find(ledger, seq, &word)) {
        return false;
    }
    if ((seq & IBSHIFT_PERSISTENT_SEQ) != 0) {
        return ibshift_number_is_until(
            seq, (uint32_t)(atomic_load(&ledger->calls[1][ibshift_ledger_place(seq)]) >> 32));
    }
    while (i < IBSHIFT_LEDGER_CALLS &&
           !ibshift_ledger_find(ledger, (seq + i) & ~IBSHIFT_PERSISTENT_SEQ, &word)) {
        i++;
    }
    return i < IBSHIFT_LEDGER_CALLS;
}

/* In words, the same on all ranks: communicator.number, or communicator.pID.RUN of a persistent one. */
enum { IBSHIFT_CALL_NUMBER = 40 };
static inline void ibshift_call_number(uint32_t comm, uint32_t seq, char *text, size_t size)
{
    uint32_t number = seq & ~IBSHIFT_PERSISTENT_SEQ;

    if ((seq & IBSHIFT_PERSISTENT_SEQ) == 0) {
        snprintf(text, size, "%u.%u", comm, number);
    } else {
        snprintf(text, size, "%u.p%u.%u", comm, number >> IBSHIFT_RUN_BITS,
                 number & ((1u << IBSHIFT_RUN_BITS) - 1));
    }
}

#endif
