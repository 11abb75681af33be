/* How algorithms write steps: each function fills one and returns the place of the next. */
#ifndef IBSHIFT_ALG_ALG_EMIT_H
#define IBSHIFT_ALG_ALG_EMIT_H

#include "alg/alg.h"

struct emit_range {
    enum ibshift_buffer buf;
    uint32_t first;
    uint32_t count;
};

static inline struct emit_range emit_blocks(enum ibshift_buffer buf, uint32_t first, uint32_t count)
{
    return (struct emit_range){buf, first, count};
}

static inline struct ibshift_step *emit_recv(struct ibshift_step *out, uint32_t peer,
                                             struct emit_range to, uint32_t tag, uint32_t need,
                                             uint32_t drain)
{
    *out = (struct ibshift_step){.kind = IBSHIFT_STEP_RECV,
                                 .buf = (uint8_t)to.buf,
                                 .first = to.first,
                                 .count = to.count,
                                 .peer = peer,
                                 .tag = tag,
                                 .need = need,
                                 .drain = drain};
    return out + 1;
}

static inline struct ibshift_step *emit_send(struct ibshift_step *out, uint32_t peer,
                                             struct emit_range from, uint32_t tag, uint32_t need)
{
    *out = (struct ibshift_step){.kind = IBSHIFT_STEP_SEND,
                                 .buf = (uint8_t)from.buf,
                                 .first = from.first,
                                 .count = from.count,
                                 .peer = peer,
                                 .tag = tag,
                                 .need = need};
    return out + 1;
}

/* kind is IBSHIFT_STEP_COPY, IBSHIFT_STEP_REDUCE or IBSHIFT_STEP_REDUCE_AFTER; `from` begins at
 * block `first` of buffer src. */
static inline struct ibshift_step *emit_local(struct ibshift_step *out, enum ibshift_kind kind,
                                              struct emit_range to, enum ibshift_buffer src,
                                              uint32_t from, uint32_t need, uint32_t drain)
{
    *out = (struct ibshift_step){.kind = (uint8_t)kind,
                                 .buf = (uint8_t)to.buf,
                                 .src = (uint8_t)src,
                                 .first = to.first,
                                 .count = to.count,
                                 .from = from,
                                 .run = to.count,
                                 .need = need,
                                 .drain = drain};
    return out + 1;
}

static inline struct ibshift_step *emit_copy(struct ibshift_step *out, struct emit_range to,
                                             enum ibshift_buffer src, uint32_t from, uint32_t need,
                                             uint32_t drain)
{
    return emit_local(out, IBSHIFT_STEP_COPY, to, src, from, need, drain);
}

/* Names the step just written as a further message of its pair and tag. */
static inline struct ibshift_step *emit_part(struct ibshift_step *next, uint8_t part)
{
    next[-1].part = part;
    return next;
}

/* (a + b) % ranks and (a - b) % ranks for a, b < ranks: no division. */
static inline uint32_t emit_add(uint32_t a, uint32_t b, uint32_t ranks)
{
    return a + b >= ranks ? a + b - ranks : a + b;
}

static inline uint32_t emit_sub(uint32_t a, uint32_t b, uint32_t ranks)
{
    return a >= b ? a - b : a + ranks - b;
}

/* The largest power of two <= n. */
static inline uint32_t emit_power_below(uint32_t n)
{
    return UINT32_C(1) << (31 - __builtin_clz(n));
}

static inline uint32_t emit_log2(uint32_t power)
{
    return (uint32_t)__builtin_ctz(power);
}

/* base^exponent; powers of two, the most frequent, by a shift. */
static inline uint32_t emit_power(uint32_t base, uint32_t exponent)
{
    uint32_t power = 1;

    if (base == 2) {
        return UINT32_C(1) << exponent;
    }
    while (exponent-- > 0) {
        power *= base;
    }
    return power;
}

/* The least i with base^i >= n. */
static inline uint32_t emit_digits(uint32_t n, uint32_t base)
{
    uint32_t count = 0;

    if (base == 2) {
        return n > 1 ? 32 - (uint32_t)__builtin_clz(n - 1) : 0;
    }
    for (uint32_t power = 1; power < n; power *= base) {
        count++;
    }
    return count;
}

#endif
