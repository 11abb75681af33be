#include "sim/job.h"

#include <errno.h>
#include <math.h>

#include "fabric/graph/random.h"

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

static void set(struct sim_sizes *s, uint32_t from, uint32_t to, int bytes)
{
    s->sent[(size_t)from * s->ranks + to] = bytes;
    s->received[(size_t)to * s->ranks + from] = bytes;
}

void sim_sizes_draw(struct sim_sizes *s, uint32_t most, double ratio, uint64_t seed,
                    bool is_builder)
{
    uint32_t half = s->ranks / 2;

    for (uint32_t from = 0; from < s->ranks; from++) {
        for (uint32_t to = 0; to < s->ranks; to++) {
            double share = ibshift_random_share(&seed);
            int bytes = (int)(most * pow(ratio, -share));

            if (from != to && (!is_builder || (from < half && to >= half))) {
                set(s, from, to, bytes > 0 ? bytes : 1);
            }
        }
    }
}

int sim_sizes_read(struct sim_sizes *s, FILE *file, const char *name, struct ibshift_error *err)
{
    char text[256];

    for (unsigned line = 1; fgets(text, sizeof(text), file) != NULL; line++) {
        long long from, to, bytes;
        char rest;
        int count;

        text[strcspn(text, "#")] = '\0';
        count = sscanf(text, " %lld %lld %lld %c", &from, &to, &bytes, &rest);
        if (strspn(text, " \t\r\n") == strlen(text)) {
            continue;
        }
        if (count != 3) {
            return ibshift_fail(err, -EINVAL, "%s:%u: wants FROM TO BYTES", name, line);
        }
        if (from < 0 || to < 0 || from >= s->ranks || to >= s->ranks || from == to) {
            return ibshift_fail(err, -EINVAL, "%s:%u: from %lld to %lld: wants two of %u ranks",
                                name, line, from, to, s->ranks);
        }
        if (bytes < 0 || bytes > 1000000000) {
            return ibshift_fail(err, -EINVAL, "%s:%u: %lld bytes: wants 0 to 1000000000", name,
                                line, bytes);
        }
        set(s, (uint32_t)from, (uint32_t)to, (int)bytes);
    }
    return ferror(file) ? ibshift_fail(err, -EINVAL, "%s: cannot be read", name) : 0;
}

uint32_t sim_sizes_most(const struct sim_sizes *s)
{
    int most = 0;

    for (size_t i = 0; i < (size_t)s->ranks * s->ranks; i++) {
        most = s->sent[i] > most ? s->sent[i] : most;
    }
    return (uint32_t)most;
}
