/* Questions for tests of the choice. */
#ifndef IBSHIFT_TEST_ASK_H
#define IBSHIFT_TEST_ASK_H

#include "choose/choose.h"

static inline struct ibshift_question ask(enum ibshift_collective collective,
                                          const struct ibshift_plan *plan, uint64_t bytes)
{
    return (struct ibshift_question){.collective = collective,
                                     .plan = plan,
                                     .bytes = bytes,
                                     .window = 32,
                                     .model = &ibshift_model_typical};
}

static inline bool is_same(const struct ibshift_choice *a, const struct ibshift_choice *b)
{
    return a->alg == b->alg && a->radix == b->radix && a->segments == b->segments &&
           a->leaders == b->leaders && a->price.last == b->price.last;
}

#endif
