#include "exec/standing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "plan/walk.h"

/*
 * Which calls have their scratch at the same place each time, so that the grants for it may stand
 * (long.c of net/verbs): blocking ones of collectives that end on no rank before they have begun on all.
 * They take the halves of a communicator's memory in turn. A rank that writes into a half has ended
 * the call before, so that has begun everywhere, and the one before it, which had the half, has
 * ended.
 */

/* Numbers of net.h: one for each kind of call and half, from 1. */
enum { KINDS = 32, HALVES = 2, WORDS = 4 };

/* What says where messages come to in TMP, and their lengths: the same on all ranks. */
struct kind {
    uint64_t words[WORDS];
};

struct ibshift_standing {
    struct kind kinds[KINDS]; /* in the order in which they came, until there is no room */
    enum { UNKNOWN, WANTED, UNWANTED } area_is[KINDS];
    uint32_t count, calls;
    char *area;                    /* NULL: no call has needed it yet */
    struct ibshift_standing *next; /* of those of communicators that failed */
};

static pthread_mutex_t failed_lock = PTHREAD_MUTEX_INITIALIZER; /* covers failed */
/* Of a rank that had no memory when others began to count calls: peers ask it, and ask again. */
static struct ibshift_standing none;
/* Peers may still write there, until the endpoint is closed. */
static struct ibshift_standing *failed;

/* Its place, or KINDS. */
static uint32_t place_of(struct ibshift_standing *standing, const struct kind *kind)
{
    uint32_t place = 0;

    while (place < standing->count && memcmp(&standing->kinds[place], kind, sizeof(*kind)) != 0) {
        place++;
    }
    if (place == standing->count && place < KINDS) {
        standing->kinds[standing->count++] = *kind;
    }
    return place;
}

uint32_t ibshift_standing_number(struct ibshift_standing **standing,
                                 const struct ibshift_op_params *params, uint64_t elements,
                                 bool renames)
{
    const struct ibshift_plan *plan = &params->plan;
    struct kind kind = {
        {(uint64_t)params->alg->collective << 32 | (uint32_t)ibshift_alg_place(params->alg),
         (uint64_t)plan->radix << 32 | plan->segments, elements,
         (uint64_t)plan->leaders << 33 | (uint64_t)params->element << 2 |
             (uint64_t)plan->commutative << 1 | renames}};
    uint32_t place;

    if (*standing == NULL) {
        *standing = calloc(1, sizeof(**standing));
    }
    if (*standing == NULL) {
        *standing = &none;
    }
    if (*standing == &none) {
        return 0;
    }
    place = place_of(*standing, &kind);
    return place < KINDS ? 1 + place * HALVES + (*standing)->calls++ % HALVES : 0;
}

static bool is_far(const struct ibshift_op_params *params, const struct ibshift_channels *over,
                   uint32_t rank)
{
    return !over->is_near(over->context, params->peers == NULL ? rank : params->peers[rank]);
}

uint32_t ibshift_standing_count(const struct ibshift_op_params *params, enum ibshift_buffer buf,
                                const struct ibshift_channels *over)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint32_t rounds = params->alg->rounds(&params->plan, params->rank), count = 0;

    for (uint32_t round = 0; round < rounds; round++) {
        int emitted = params->alg->emit(&params->plan, params->rank, round, steps);

        for (int i = 0; i < emitted; i++) {
            const struct ibshift_step *step = &steps[i];
            char *at;
            size_t length;

            count += step->kind == IBSHIFT_STEP_RECV && ibshift_step_can_stand(step, buf) &&
                     ibshift_blocks_range(&params->blocks[buf], step->first, step->count, &at,
                                          &length) == 0 &&
                     length > over->max_eager && is_far(params, over, step->peer);
        }
    }
    return count;
}

char *ibshift_standing_tmp(struct ibshift_standing *standing,
                           const struct ibshift_op_params *params, size_t bytes,
                           const struct ibshift_channels *over)
{
    uint32_t kind = (params->standing - 1) / HALVES;
    char *area;

    if (params->standing == 0 || bytes == 0 || bytes > IBSHIFT_STANDING_MOST ||
        standing->area_is[kind] == UNWANTED) {
        return NULL;
    }
    area = standing->area != NULL ? standing->area
                                  : aligned_alloc(4096, (size_t)HALVES * IBSHIFT_STANDING_MOST);
    if (area != NULL && standing->area_is[kind] == UNKNOWN) {
        standing->area_is[kind] =
            ibshift_standing_count(params, IBSHIFT_TMP, over) > 0 ? WANTED : UNWANTED;
    }
    if (area != NULL && standing->area_is[kind] == UNWANTED) {
        free(standing->area == NULL ? area : NULL);
        return NULL;
    }
    standing->area = area;
    return area == NULL ? NULL
                        : area + (size_t)((params->standing - 1) % HALVES) * IBSHIFT_STANDING_MOST;
}

void ibshift_standing_free(struct ibshift_standing *standing, bool may_be_written)
{
    if (standing == NULL || standing == &none) {
        return;
    }
    if (may_be_written) {
        pthread_mutex_lock(&failed_lock);
        standing->next = failed;
        failed = standing;
        pthread_mutex_unlock(&failed_lock);
        return;
    }
    free(standing->area);
    free(standing);
}

void ibshift_standing_end(void)
{
    while (failed != NULL) {
        struct ibshift_standing *standing = failed;

        failed = standing->next;
        free(standing->area);
        free(standing);
    }
}
