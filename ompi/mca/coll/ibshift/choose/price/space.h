/* What pricing needs memory for (choose/price.h). */
#ifndef IBSHIFT_CHOOSE_PRICE_SPACE_H
#define IBSHIFT_CHOOSE_PRICE_SPACE_H

#include "plan/emitted.h"
#include "choose/price/message.h"
#include "plan/walk.h"

struct ibshift_price_space {
    struct ibshift_emitted emitted;
    struct ibshift_heap heap;
    struct ibshift_price_messages messages;
    struct ibshift_walk walk; /* of the rank that acts */
    void *ranks;              /* what is kept of each rank */
    size_t ranks_size;
    struct ibshift_pages pages; /* the last: only its heads are zeros at first */
};

/* Room of that size for what is kept of each rank; NULL: there is no memory. */
void *ibshift_price_space_ranks(struct ibshift_price_space *space, size_t size);

#endif
