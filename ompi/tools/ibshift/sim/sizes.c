#include "sim/job.h"

#include <errno.h>

#include "fabric/matrix.h"

struct sim_sizes *sim_sizes_create(uint32_t ranks)
{
    struct sim_sizes *s = sim_zeroed(1, sizeof(*s));

    s->ranks = ranks;
    s->sent = sim_zeroed((size_t)ranks * ranks, sizeof(*s->sent));
    s->received = sim_zeroed((size_t)ranks * ranks, sizeof(*s->received));
    s->places = sim_zeroed(ranks, sizeof(*s->places));
    return s;
}

void sim_sizes_free(struct sim_sizes *sizes)
{
    if (sizes != NULL) {
        free(sizes->sent);
        free(sizes->received);
        free(sizes->places);
        free(sizes);
    }
}

int sim_sizes_take(struct sim_sizes *s, const uint64_t *bytes)
{
    for (uint32_t from = 0; from < s->ranks; from++) {
        for (uint32_t to = 0; to < s->ranks; to++) {
            uint64_t size = bytes[(size_t)from * s->ranks + to];

            if (size > MATRIX_MOST) {
                return -ERANGE;
            }
            s->sent[(size_t)from * s->ranks + to] = (int)size;
            s->received[(size_t)to * s->ranks + from] = (int)size;
        }
    }
    return 0;
}

uint32_t sim_sizes_most(const struct sim_sizes *s)
{
    int most = 0;

    for (size_t i = 0; i < (size_t)s->ranks * s->ranks; i++) {
        most = s->sent[i] > most ? s->sent[i] : most;
    }
    return (uint32_t)most;
}
