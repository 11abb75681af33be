/* Which plans of a row are worth a price. */
#include "choose/best.h"

enum { FIRST_SEGMENT = 4096, LAST_SEGMENT = 1 << 20 };

static struct ibshift_choice candidate(const struct ibshift_alg *alg, uint32_t radix,
                                       uint32_t segments, uint32_t leaders)
{
    return (struct ibshift_choice){
        .alg = alg, .radix = radix, .segments = segments, .leaders = leaders};
}

/* In one piece, and in segments of 4 KiB, 16 KiB and so on; or of the bytes that are wished. */
static int add_segments(const struct ibshift_alg *alg, uint64_t bytes,
                        const struct ibshift_wish *wish, uint32_t radix,
                        struct ibshift_choice *found)
{
    bool has_segments = (alg->flags & IBSHIFT_ALG_SEGMENTS) != 0;
    int count = 0;

    if (has_segments && wish->segment > 0) {
        uint64_t segments = bytes / wish->segment + (bytes % wish->segment != 0);

        segments = segments < 1 ? 1 : segments;
        segments = segments > IBSHIFT_SEGMENTS_MAX ? IBSHIFT_SEGMENTS_MAX : segments;
        found[count++] = candidate(alg, radix, (uint32_t)segments, 1);
        return count;
    }
    found[count++] = candidate(alg, radix, 1, 1);
    for (uint64_t size = FIRST_SEGMENT; has_segments && size <= LAST_SEGMENT && size < bytes;
         size *= 4) {
        if (bytes / size <= IBSHIFT_CHOOSE_LIMIT) {
            found[count++] = candidate(alg, radix, (uint32_t)(bytes / size), 1);
        }
    }
    return count;
}

int ibshift_candidates(const struct ibshift_alg *alg, uint32_t ranks, uint64_t bytes,
                       const struct ibshift_wish *wish, struct ibshift_choice *found)
{
    static const uint32_t radices[] = {1, 2, 3, 4, 5, 6, 7, 8, 15};
    static const uint32_t leaders[] = {1, 4, 8, 16, IBSHIFT_LEADERS_MAX};
    int count = 0;

    if (alg->collective == IBSHIFT_ALLTOALL && (alg->flags & IBSHIFT_ALG_LEADERS) != 0) {
        for (size_t i = 0; i < sizeof(leaders) / sizeof(leaders[0]); i++) {
            if (leaders[i] == 1 || leaders[i] < ranks || leaders[i] == IBSHIFT_LEADERS_MAX) {
                found[count++] = candidate(alg, 0, 1, leaders[i]);
            }
        } /* the last: as many as there are on the emptiest node */
        return count;
    }
    if (alg->radix_max == 0 || wish->radix > 0) {
        uint32_t radix = wish->radix < alg->radix_max ? wish->radix : alg->radix_max;

        return add_segments(alg, bytes, wish, radix, found);
    }
    for (size_t i = 0; i < sizeof(radices) / sizeof(radices[0]); i++) {
        if (radices[i] <= alg->radix_max && (radices[i] == 1 || radices[i] < ranks)) {
            count += add_segments(alg, bytes, wish, radices[i], found + count);
        }
    }
    return count;
}
