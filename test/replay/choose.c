/* What an item of the program calls. */
#include "choose.h"

uint32_t choose_id(uint32_t comm)
{
    return comm + 1;
}

/* The badge says what is called, here by its item alone. */
bool choose_options(struct work_options *options, const struct program_item *item, uint32_t badge,
                    uint32_t ranks, uint64_t *random)
{
    static const uint32_t sizes[] = {1, 16, 128, 2048, 8192};
    const struct ibshift_alg *alg = ibshift_alg_table[item->alg];
    bool has_variant = alg->flags & (IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_ALL);
    char why[200];

    *options = (struct work_options){
        .alg = alg,
        .plan = {.ranks = ranks,
                 .root = world_random_below(random, ranks),
                 .radix =
                     alg->radix_max > 0
                         ? 1 + world_random_below(random, alg->radix_max < 4 ? alg->radix_max : 4)
                         : 1,
                 .segments = 1 + world_random_below(random, 4),
                 .commutative =
                     (alg->flags & IBSHIFT_ALG_COMMUTATIVE_ONLY) || world_random_below(random, 2)},
        .comm = choose_id(item->comm) | badge << IBSHIFT_NET_COMM_BITS,
        .window = 1 + world_random_below(random, 32),
        .size = 8 * (world_random_below(random, 8) == 0
                         ? 0
                         : 1 + world_random_below(random, sizes[world_random_below(random, 5)])),
        .is_variant = has_variant && world_random_below(random, 2),
        .is_in_place = (alg->flags & IBSHIFT_ALG_IN_PLACE) && world_random_below(random, 2),
    };
    return ibshift_alg_check(alg, &options->plan, why, sizeof(why)) == 0;
}
