/* The way from a call to a plan, and the plans that are kept. */
#include "choose/choose.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "choose/digest.h"
#include "choose/rules.h"

enum {
    KEPT = 512,
    SHORT_FIRST = 16, /* bytes of a block, for which plans by node are looked at, */
    SHORT_SIZES = 9   /* and four times as many, up to 1 MiB */
};

/* Up to its last field, behind which the struct may have a gap. */
static uint64_t digest_model(uint64_t sum, const struct ibshift_model *model)
{
    return model == NULL ? ibshift_digest(sum, &model, sizeof(model))
                         : ibshift_digest(sum, model,
                                          offsetof(struct ibshift_model, free_messages) +
                                              sizeof(model->free_messages));
}

/* Who shares what, and what that costs. */
static uint64_t shape_of(const struct ibshift_question *question)
{
    const struct ibshift_plan *plan = question->plan;
    const struct ibshift_crowd *crowd = question->crowd;
    uint64_t sum = ibshift_digest(IBSHIFT_DIGEST, &plan->ranks, sizeof(plan->ranks));

    sum = digest_model(digest_model(sum, question->model), question->near);
    if (plan->nodes != NULL) {
        sum = ibshift_digest(sum, plan->nodes->node_of, plan->ranks * sizeof(uint32_t));
    }
    if (crowd != NULL) {
        sum = ibshift_digest(sum, &crowd->hosts, sizeof(crowd->hosts));
        sum = ibshift_digest(sum, crowd->host_of, plan->ranks * sizeof(uint32_t));
        sum = ibshift_digest(sum, crowd->port_of, plan->ranks * sizeof(uint32_t));
        sum = ibshift_digest(sum, crowd->processors, crowd->hosts * sizeof(uint32_t));
    }
    if (question->distance.paths != NULL) {
        bool is_renamed = question->distance.renamed != NULL;

        sum = ibshift_digest(sum, &question->distance.digest, sizeof(uint64_t));
        sum = ibshift_digest(sum, &is_renamed, sizeof(is_renamed));
    }
    return sum;
}

static uint64_t key_of(const struct ibshift_question *question)
{
    const struct { /* without a gap */
        uint64_t shape, bytes, segment;
        const struct ibshift_alg *alg;
        uint32_t collective, needs, window, radix, root, flags;
        struct ibshift_sending free;
    } key = {shape_of(question),
             question->bytes,
             question->wish.segment,
             question->wish.alg,
             question->collective,
             question->needs,
             question->window,
             question->wish.radix,
             question->plan->root,
             question->plan->commutative | (uint32_t)question->grants_anew << 1 |
                 (uint32_t)question->is_unattended << 2 | question->plan->multicast << 3,
             question->free};

    return ibshift_digest(IBSHIFT_DIGEST, &key, sizeof(key));
}

/* Who comes to a taken place takes it: what is lost is priced again. */
static struct {
    pthread_mutex_t lock;
    struct kept {
        uint64_t key;
        struct ibshift_choice choice; /* alg NULL: free */
    } place[KEPT];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool find_kept(uint64_t key, struct ibshift_choice *choice)
{
    const struct kept *place = &kept.place[key % KEPT];
    bool is_there;

    pthread_mutex_lock(&kept.lock);
    is_there = place->choice.alg != NULL && place->key == key;
    *choice = place->choice;
    pthread_mutex_unlock(&kept.lock);
    return is_there;
}

static void keep(uint64_t key, const struct ibshift_choice *choice)
{
    pthread_mutex_lock(&kept.lock);
    kept.place[key % KEPT] = (struct kept){key, *choice};
    pthread_mutex_unlock(&kept.lock);
}

/* An order, a table of stages and a split are not in the key. */
static bool may_be_kept(const struct ibshift_question *question)
{
    const struct ibshift_plan *plan = question->plan;

    return question->is_brief && plan->order == NULL && plan->stages == NULL && plan->split == NULL;
}

static struct ibshift_answer choose(const struct ibshift_question *question)
{
    struct ibshift_answer answer = {.candidates = 0};
    uint64_t key = key_of(question);

    if (!may_be_kept(question)) {
        answer = ibshift_choose_best(question);
    } else if (!find_kept(key, &answer.best)) {
        answer.best = ibshift_choose_best(question).best;
        if (question->lacks_memory == NULL || !*question->lacks_memory) {
            keep(key, &answer.best);
        }
    }
    return answer;
}

/*
 * A v-variant of which no rank knows all sizes: up to which size blocks are better by node, if any are. All ranks know that; which
 * blocks are so short only the two know that have it. The plan is that of the longest of them, which has most to gain.
 */
static struct ibshift_answer choose_mixed(const struct ibshift_question *question)
{
    struct ibshift_question at = *question;
    struct ibshift_answer answer, now;
    int below = -1, above = SHORT_SIZES; /* of them, by node and not */

    at.needs &= ~(uint32_t)IBSHIFT_ALG_SIZES_NODE;
    answer = choose(&at);
    at.needs = question->needs;
    while (above - below > 1) {
        int middle = (below + above) / 2;

        at.bytes = (uint64_t)SHORT_FIRST << 2 * middle;
        now = choose(&at);
        if (now.best.alg == NULL || (now.best.alg->flags & at.needs) != IBSHIFT_ALG_SIZES_NODE) {
            above = middle;
        } else {
            below = middle;
            answer = now;
            answer.best.most = at.bytes;
        }
    }
    return answer;
}

struct ibshift_answer ibshift_choose(const struct ibshift_question *asked)
{
    struct ibshift_question question = *asked;
    struct ibshift_answer answer;

    if (question.wish.alg == NULL && question.rules != NULL) { /* not named by the user */
        question.wish = ibshift_rules_wish(&question);
    }
    answer = (question.needs & IBSHIFT_ALG_SIZES_NODE) != 0 ? choose_mixed(&question)
                                                            : choose(&question);
    answer.wish = question.wish;
    return answer;
}

struct ibshift_kept_choice *ibshift_choices_at(struct ibshift_choices *choices,
                                               enum ibshift_collective collective, int kind,
                                               uint64_t bytes)
{
    struct ibshift_kept_choice **table = &choices->table[collective][kind];

    if (*table == NULL) {
        *table = calloc(IBSHIFT_SIZE_CLASSES, sizeof(**table));
    }
    return *table == NULL ? NULL : &(*table)[ibshift_size_class(bytes)];
}

void ibshift_choices_reconsider(struct ibshift_choices *choices, enum ibshift_collective collective)
{
    for (int kind = 0; kind < IBSHIFT_CHOICE_KINDS; kind++) {
        struct ibshift_kept_choice *table = choices->table[collective][kind];

        for (int i = 0; table != NULL && i < IBSHIFT_SIZE_CLASSES; i++) {
            table[i].is_known = false;
        }
    }
}

void ibshift_choices_forget(struct ibshift_choices *choices, enum ibshift_collective collective)
{
    atomic_store_explicit(&choices->last[collective], NULL, memory_order_relaxed);
    for (int kind = 0; kind < IBSHIFT_CHOICE_KINDS; kind++) {
        free(choices->table[collective][kind]);
        choices->table[collective][kind] = NULL;
    }
}
