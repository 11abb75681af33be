#include "exec/badge.h"

#include <stdio.h>

#include "net/net.h"

enum { COLLECTIVE_MASK = 15, VARIANT_SHIFT = 4, VARIANT_MASK = 3, CHECK_SHIFT = 6 };
_Static_assert(IBSHIFT_COLLECTIVES <= COLLECTIVE_MASK + 1, "they fit");

static uint64_t mix(uint64_t sum, uint64_t next)
{
    sum = (sum ^ next) * 0x9e3779b97f4a7c15u;
    return sum ^ sum >> 32;
}

uint32_t ibshift_badge(enum ibshift_badge_variant variant, uint64_t operator,
                       const struct ibshift_alg * alg, const struct ibshift_plan *plan,
                       uint32_t root)
{
    uint64_t check = mix(root, operator);

    check = mix(check, (uint64_t)ibshift_alg_place(alg) << 32 | plan->radix);
    check = mix(check, plan->segments);
    return ((uint32_t)alg->collective | (uint32_t)variant << VARIANT_SHIFT |
            (uint32_t)check << CHECK_SHIFT)
           << IBSHIFT_NET_COMM_BITS;
}

const char *ibshift_badge_name(uint32_t word, char *text, size_t size)
{
    uint32_t badge = word >> IBSHIFT_NET_COMM_BITS;
    enum ibshift_collective collective = badge & COLLECTIVE_MASK;
    enum ibshift_badge_variant variant = badge >> VARIANT_SHIFT & VARIANT_MASK;
    const char *suffix = IBSHIFT_REDUCE_SCATTER == collective
                             ? (IBSHIFT_BADGE_EVEN == variant ? "_block" : "")
                         : IBSHIFT_BADGE_EVEN == variant    ? ""
                         : IBSHIFT_BADGE_COUNTED == variant ? "v"
                                                            : "w";

    snprintf(text, size, "%s%s", ibshift_collective_name(collective), suffix);
    return text;
}

bool ibshift_badge_is_like(uint32_t a, uint32_t b)
{
    return 0 == ((a ^ b) >> IBSHIFT_NET_COMM_BITS & ((1u << CHECK_SHIFT) - 1));
}
