#ifndef IBSHIFT_REPLAY_CHOOSE_H
#define IBSHIFT_REPLAY_CHOOSE_H

#include "../unit/world.h"
#include "program.h"

/* Of a communicator, as the nets know it. */
uint32_t choose_id(uint32_t comm);
/* The same on all ranks that have the same item and random; false: the row cannot do it. */
bool choose_options(struct work_options *options, const struct program_item *item, uint32_t badge,
                    uint32_t ranks, uint64_t *random);

#endif
