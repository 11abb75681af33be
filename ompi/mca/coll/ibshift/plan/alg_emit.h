/* How algorithms write steps: each function fills one and returns the place of the next. */
#ifndef IBSHIFT_PLAN_ALG_EMIT_H
#define IBSHIFT_PLAN_ALG_EMIT_H

#include "plan/alg.h"

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

/* kind is IBSHIFT_STEP_REDUCE or IBSHIFT_STEP_REDUCE_AFTER: of what is there and src[from...]. */
static inline struct ibshift_step *emit_reduce(struct ibshift_step *out, enum ibshift_kind kind,
                                               struct emit_range to, enum ibshift_buffer src,
                                               uint32_t from, uint32_t need, uint32_t drain)
{
    *out = (struct ibshift_step){.kind = (uint8_t)kind,
                                 .buf = (uint8_t)to.buf,
                                 .src = (uint8_t)src,
                                 .with = (uint8_t)to.buf,
                                 .first = to.first,
                                 .count = to.count,
                                 .from = from,
                                 .beside = to.first,
                                 .need = need,
                                 .drain = drain};
    return out + 1;
}

/* The reduction just written is of src and these blocks, not of what is where the result comes. */
static inline struct ibshift_step *emit_with(struct ibshift_step *next, enum ibshift_buffer with,
                                             uint32_t first)
{
    next[-1].with = (uint8_t)with;
    next[-1].beside = first;
    return next;
}

static inline struct ibshift_step *emit_copy(struct ibshift_step *out, struct emit_range to,
                                             enum ibshift_buffer src, uint32_t from, uint32_t need,
                                             uint32_t drain)
{
    *out = (struct ibshift_step){.kind = IBSHIFT_STEP_COPY,
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

/* Names the step just written as a further message of its pair and tag. */
static inline struct ibshift_step *emit_part(struct ibshift_step *next, uint8_t part)
{
    next[-1].part = part;
    return next;
}

/* The messages from `first` on, one to each other rank, are one datagram where there is a multicast group. */
static inline struct ibshift_step *emit_cast(struct ibshift_step *first, struct ibshift_step *end)
{
    for (; first < end; first++) {
        first->is_cast = ibshift_step_is_local(first) ? first->is_cast : 1;
    }
    return end;
}

/* As functions of an algorithm: a vector of a piece a rank, or a segment; TMP of a block a rank. */
static inline uint32_t emit_piece_a_rank(const struct ibshift_plan *plan)
{
    return plan->ranks;
}

static inline uint32_t emit_piece_a_segment(const struct ibshift_plan *plan)
{
    return plan->segments;
}

static inline uint32_t emit_tmp_a_rank(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks > 1 ? plan->ranks : 0;
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

/* The bits in reverse order. */
static inline uint32_t emit_reverse(uint32_t bits)
{
    bits = (bits & 0x55555555u) << 1 | (bits >> 1 & 0x55555555u);
    bits = (bits & 0x33333333u) << 2 | (bits >> 2 & 0x33333333u);
    bits = (bits & 0x0f0f0f0fu) << 4 | (bits >> 4 & 0x0f0f0f0fu);
    return __builtin_bswap32(bits);
}

/* n / divisor for n <= IBSHIFT_RANKS_MAX and divisor <= IBSHIFT_RADIX_MAX + 1, by a product: a
 * third of a division's time. */
static inline uint32_t emit_quotient(uint32_t n, uint32_t divisor)
{
#define INVERSE(d) ((UINT64_C(1) << 36) / (d) + 1)
    static const uint64_t inverse[] = {
        0,           INVERSE(1),  INVERSE(2),  INVERSE(3),  INVERSE(4),  INVERSE(5),
        INVERSE(6),  INVERSE(7),  INVERSE(8),  INVERSE(9),  INVERSE(10), INVERSE(11),
        INVERSE(12), INVERSE(13), INVERSE(14), INVERSE(15), INVERSE(16), INVERSE(17)};
#undef INVERSE

    static_assert(sizeof(inverse) / sizeof(inverse[0]) == IBSHIFT_RADIX_MAX + 2,
                  "one inverse for each base");
    return (uint32_t)(n * inverse[divisor] >> 36);
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
