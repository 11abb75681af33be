#include "choose/best.h"

#include <errno.h>
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "choose/glance.h"
#include "choose/size.h"
#include "plan/nodes.h"

enum {
    GATHERED_MOST = 1 << 25, /* where nobody says how much */
    PLANS_MOST = 192         /* that a collective may have */
};

/* Found among 96 to 1,728 ranks: what is taken costs 1.03 of the cheapest in the mean. */
enum {
    FEWEST = 4,      /* a price costs no more than a bound */
    FEW_RANKS = 64,  /* each candidate is priced as it is, unless a bound says that it is dearer */
    MANY_HOSTS = 16, /* of several ranks: among fewer it is, too */
    GLANCE = 64,     /* messages that are looked at for a first price, */
    LOOK = 256,      /* and for that of */
    LOOKS = 4,       /* so many of the cheapest candidates, */
    LOOK_HOSTS = 4096, /* where ranks share hosts: of these four at least are looked at */
    LOOKS_HOSTS = 6,
    LOOKS_DISTANCE = 6, /* and so many more where links count, which no glance sees, */
    GLANCE_ERROR = 2,   /* if they cost at most so many times the cheapest */
};

/* Times the cheapest, that fewer segments may cost. */
#define UNATTENDED 1.15

struct ibshift_sending ibshift_choose_sending(const struct ibshift_question *question,
                                              const struct ibshift_alg *alg)
{
    bool is_free = (alg->flags & IBSHIFT_ALG_FREE) != 0 && question->free.window > 0;

    return is_free ? question->free : (struct ibshift_sending){question->window, 0};
}

/* Ranks tell leaders sizes before it runs. */
static bool tells_counts(const struct ibshift_question *question, const struct ibshift_alg *alg)
{
    return (alg->flags & question->needs) == IBSHIFT_ALG_SIZES_NODE;
}

/* In a plan that is its caller's. Of a table of stages a rank has its own row only: the shift in its place has as many messages. */
static struct ibshift_price_request request_of(const struct ibshift_question *question,
                                               const struct ibshift_choice *choice,
                                               struct ibshift_plan *plan)
{
    struct ibshift_sending sending = ibshift_choose_sending(question, choice->alg);

    *plan = *question->plan;
    ibshift_choice_take(choice, plan);
    plan->stages = NULL;
    return (struct ibshift_price_request){.alg = choice->alg,
                                          .plan = plan,
                                          .model = question->model,
                                          .near = question->near,
                                          .crowd = question->crowd,
                                          .bytes = question->bytes,
                                          .element = 1,
                                          .window = sending.window,
                                          .piece = sending.piece,
                                          .grants_anew = question->grants_anew,
                                          .space = question->space};
}

/* By so many messages of few of its ranks, where it has more. A row that nobody can price here costs nothing that is known: it
 * stays behind all others. */
static void price(const struct ibshift_question *question, uint64_t messages, double most,
                  struct ibshift_choice *choice)
{
    struct ibshift_plan plan;
    struct ibshift_price_request request = request_of(question, choice, &plan);
    int rc;

    request.limit = messages;
    request.most = most;
    if (plan.neighbors != NULL ||
        plan.listed != NULL) { /* a rank knows its own part only; it cannot be among fewer ranks */
        choice->price = (struct ibshift_price){.last = -1};
        return;
    }
    rc = ibshift_glance(&request, &choice->price);
    if (rc == 0 && tells_counts(question, choice->alg)) {
        rc = ibshift_price_telling(&request, &choice->price);
    }
    if (rc == 0 && most > 0 && choice->price.last > most) { /* links only add to it */
        rc = -ERANGE;
    }
    if (rc == 0 && question->distance.paths != NULL && messages > GLANCE) {
        const struct ibshift_distance *distance = &question->distance;
        bool is_renamed = distance->renamed != NULL && ibshift_alg_may_rename(choice->alg);

        rc = ibshift_price_distance(&request, distance->paths,
                                    is_renamed ? distance->renamed : distance->member_of,
                                    &choice->price);
    }
    if (rc != 0) {
        choice->price = (struct ibshift_price){.last = -1};
    }
    if (rc == -ENOMEM && question->lacks_memory != NULL) {
        *question->lacks_memory = true;
    }
}

/* us that it takes at least: an estimate (glance.h). */
static double bound(const struct ibshift_question *question, const struct ibshift_choice *choice)
{
    struct ibshift_plan plan;
    struct ibshift_price_request request = request_of(question, choice, &plan);

    return plan.ranks > FEWEST && plan.neighbors == NULL && plan.listed == NULL
               ? ibshift_bound(&request)
               : 0;
}

/* One without a price is better than nothing only. */
static bool is_cheaper(const struct ibshift_choice *now, const struct ibshift_choice *best)
{
    return best == NULL ||
           (now->price.last >= 0 && (best->price.last < 0 || now->price.last < best->price.last));
}

static bool is_near(const struct ibshift_choice *choice, const struct ibshift_choice *cheapest)
{
    return choice->price.last >= 0 &&
           choice->price.last <= cheapest->price.last * IBSHIFT_PRICE_EQUAL;
}

/*
 * Candidates in the order of the table. Each has a bound or a glance for a price first, by which
 * those that are priced are taken.
 */
struct search {
    const struct ibshift_question *question;
    bool has_many; /* ranks: first a glance at all candidates, then a closer look at the best */
    struct candidate {
        struct ibshift_choice choice;
        bool is_priced;
    } seen[PLANS_MOST];
    int seen_count;
    const struct ibshift_choice *cheapest; /* of those that are priced; NULL: there is none yet */
};

static bool has_hosts(const struct ibshift_question *question)
{
    return question->plan->nodes != NULL && question->plan->nodes->most > 1;
}

/* Few of them stand for all where each rank has a host and a port, and where there are many hosts, which are the nodes. */
static bool has_many(const struct ibshift_question *question)
{
    const struct ibshift_plan *plan = question->plan;
    const struct ibshift_crowd *crowd = question->crowd;

    if (plan->ranks <= FEW_RANKS) {
        return false;
    }
    if (has_hosts(question)) {
        return crowd != NULL && crowd->hosts == plan->nodes->nodes && crowd->hosts >= MANY_HOSTS;
    }
    return crowd == NULL || (crowd->hosts == plan->ranks && crowd->ports == plan->ranks);
}

/* The long array is left as it is: its count says what is in it. */
static void begin_search(struct search *search, const struct ibshift_question *question)
{
    search->question = question;
    search->seen_count = 0;
    search->cheapest = NULL;
    search->has_many = has_many(question);
}

static bool is_by_node(const struct ibshift_choice *choice)
{
    return (choice->alg->flags & IBSHIFT_ALG_NODES) != 0;
}

/* By so many messages. */
static void price_seen(struct search *search, struct candidate *one, uint64_t messages, double most)
{
    price(search->question, messages, most, &one->choice);
    one->is_priced = true;
    if (is_cheaper(&one->choice, search->cheapest)) {
        search->cheapest = &one->choice;
    }
}

/* Of those but one, by node or flat (which: true, false), or of both (-1): alg NULL: there is none. */
static struct ibshift_choice cheapest_but(const struct search *search,
                                          const struct ibshift_choice *one, int which)
{
    const struct ibshift_choice *found = NULL;

    for (int i = 0; i < search->seen_count; i++) {
        const struct ibshift_choice *now = &search->seen[i].choice;

        if (search->seen[i].is_priced && now != one && (which < 0 || is_by_node(now) == which) &&
            is_cheaper(now, found)) {
            found = now;
        }
    }
    return found != NULL ? *found : (struct ibshift_choice){.alg = NULL};
}

/* Of those that are as good as the cheapest, which there is: the first of the table where several are alike. */
static const struct ibshift_choice *simplest(const struct search *search)
{
    const struct ibshift_choice *found = NULL;

    for (int i = 0; i < search->seen_count; i++) {
        const struct ibshift_choice *now = &search->seen[i].choice;

        if (search->seen[i].is_priced && is_near(now, search->cheapest) &&
            (found == NULL || ibshift_price_is_simpler(&now->price, &found->price))) {
            found = now;
        }
    }
    return found != NULL ? found : search->cheapest;
}

/* Messages of a closer look. */
static uint64_t messages_of(const struct search *search)
{
    if (!search->has_many) {
        return IBSHIFT_CHOOSE_LIMIT;
    }
    return has_hosts(search->question) ? LOOK_HOSTS : LOOK;
}

/*
 * The same plan in fewer, longer segments, for who looks on now and then at most: each look does all that it can, but a segment takes
 * processor time of each rank that it passes, and room at the next one until that looks.
 */
static const struct ibshift_choice *in_longer_segments(struct search *search,
                                                       const struct ibshift_choice *found)
{
    const struct ibshift_choice *longest = found;

    for (int i = 0; i < search->seen_count; i++) {
        struct candidate *one = &search->seen[i];
        const struct ibshift_choice *now = &one->choice;

        if (now->alg != found->alg || now->radix != found->radix ||
            now->leaders != found->leaders || now->segments >= longest->segments) {
            continue;
        }
        if (!one->is_priced) {
            price_seen(search, one, messages_of(search), 0);
        }
        if (now->price.last >= 0 && now->price.last <= UNATTENDED * search->cheapest->price.last) {
            longest = now;
        }
    }
    return longest;
}

/* A leader has what its team sends to all, several times over: the one of the fullest node most. */
static bool gathers_too_much(const struct ibshift_question *question, const struct ibshift_alg *alg,
                             const struct ibshift_plan *plan)
{
    uint64_t most = question->leader_memory > 0 ? question->leader_memory : GATHERED_MOST;
    uint32_t leader;

    if (!tells_counts(question, alg) &&
        (alg->collective != IBSHIFT_ALLTOALL || (alg->flags & IBSHIFT_ALG_LEADERS) == 0)) {
        return false;
    }
    leader = ibshift_nodes_rank(plan, ibshift_nodes_fullest(plan), 0);
    return question->bytes > most / ((uint64_t)alg->tmp(plan, leader) + 1);
}

/* us that a plan may take to be of interest, which must not change what is chosen; 0: any. */
static double most_of(const struct search *search)
{
    const struct ibshift_question *question = search->question;
    const struct ibshift_choice *best = search->cheapest;

    return question->is_brief && best != NULL && best->price.last > 0
               ? best->price.last * (question->is_unattended ? UNATTENDED : IBSHIFT_PRICE_EQUAL)
               : 0;
}

static void consider(struct search *search, struct ibshift_choice now)
{
    const struct ibshift_question *question = search->question;
    struct ibshift_plan plan = *question->plan;
    char why[128];

    ibshift_choice_take(&now, &plan);
    if (ibshift_alg_check(now.alg, &plan, why, sizeof(why)) != 0 ||
        ((now.alg != question->wish.alg || tells_counts(question, now.alg)) &&
         gathers_too_much(question, now.alg, &plan))) {
        return;
    }
    assert(search->seen_count < PLANS_MOST);
    now.price.last = bound(question, &now);
    search->seen[search->seen_count++] = (struct candidate){now, false};
}

/* That of the least bound, or glance, of those that are not priced; NULL: none costs at most so much by that. */
static struct candidate *next_of(struct search *search, double most)
{
    struct candidate *next = NULL;

    for (int i = 0; i < search->seen_count; i++) {
        struct candidate *one = &search->seen[i];

        if (!one->is_priced && one->choice.price.last >= 0 && one->choice.price.last <= most &&
            (next == NULL || one->choice.price.last < next->choice.price.last)) {
            next = one;
        }
    }
    return next;
}

/* At all that may be the cheapest, or as good as that. */
static void look(struct search *search)
{
    uint64_t messages = search->has_many ? GLANCE : IBSHIFT_CHOOSE_LIMIT;
    struct candidate *next;
    double most = INFINITY;

    while ((next = next_of(search, most)) != NULL) {
        price_seen(search, next, messages, search->has_many ? 0 : most_of(search));
        if (search->cheapest->price.last > 0) {
            most = search->cheapest->price.last * IBSHIFT_PRICE_EQUAL;
        }
    }
}

/* At those that were the cheapest at a glance. */
static void look_closer(struct search *search)
{
    int looks = (has_hosts(search->question) ? LOOKS_HOSTS : LOOKS) +
                (search->question->distance.paths != NULL ? LOOKS_DISTANCE : 0);
    struct candidate *next;
    double most = GLANCE_ERROR * search->cheapest->price.last;

    for (int i = 0; i < search->seen_count; i++) {
        struct candidate *one = &search->seen[i];

        one->choice.price.last = one->is_priced ? one->choice.price.last : -1;
        one->is_priced = false;
    }
    search->cheapest = NULL;
    for (int i = 0; i < looks && (next = next_of(search, most)) != NULL; i++) {
        price_seen(search, next, messages_of(search), most_of(search));
    }
}

/* At the others, for who wants to know them. */
static void look_at_rest(struct search *search)
{
    for (int i = 0; i < search->seen_count; i++) {
        if (!search->seen[i].is_priced) {
            price_seen(search, &search->seen[i], IBSHIFT_CHOOSE_LIMIT, 0);
        }
    }
}

/* Where nothing has a price, it is the first. */
static struct ibshift_answer settle(struct search *search)
{
    struct ibshift_choice best;
    const struct ibshift_choice *found;

    look(search);
    if (search->cheapest == NULL) {
        return (struct ibshift_answer){.candidates = 0};
    }
    if (search->has_many && search->cheapest->price.last >= 0) {
        look_closer(search);
    }
    found = simplest(search);
    if (search->question->is_unattended) {
        found = in_longer_segments(search, found);
    }
    best = *found;
    if (!search->has_many && !search->question->is_brief) {
        look_at_rest(search);
    }
    return (struct ibshift_answer){.best = best,
                                   .second = cheapest_but(search, found, -1),
                                   .other = cheapest_but(search, NULL, !is_by_node(&best)),
                                   .candidates = search->seen_count};
}

/* Of a row by node each tree is one of the ranks of a node, or of nodes: radices above are the same again. */
static uint32_t ranks_of_trees(const struct ibshift_alg *alg, const struct ibshift_plan *plan)
{
    uint32_t nodes = (alg->flags & IBSHIFT_ALG_INNER) != 0 ? 1 : ibshift_nodes_count(plan);

    if ((alg->flags & IBSHIFT_ALG_NODES) == 0 || alg->radix_max == 0 || plan->nodes == NULL) {
        return plan->ranks;
    }
    return nodes > plan->nodes->most ? nodes : plan->nodes->most;
}

static void consider_row(struct search *search, const struct ibshift_alg *alg)
{
    const struct ibshift_question *question = search->question;
    struct ibshift_choice found[IBSHIFT_CANDIDATES_MAX];
    int count = ibshift_candidates(alg, ranks_of_trees(alg, question->plan), question->bytes,
                                   &question->wish, found);

    if ((alg->flags & IBSHIFT_ALG_MULTICAST) != 0) {
        count = alg->radix_max > 0 ? count : 1;
    }
    for (int i = 0; i < count; i++) {
        if ((alg->flags & IBSHIFT_ALG_MULTICAST) != 0) {
            found[i].segments = ibshift_cast_segments(alg, question->plan, question->bytes);
        }
        consider(search, found[i]);
    }
}

/* Where the fabric has given an order, or a table, rows that could take one, but know none, are
 * left out. */
static bool takes_order(const struct ibshift_alg *alg, const struct ibshift_plan *plan)
{
    if (alg->collective != IBSHIFT_ALLTOALL || (alg->flags & IBSHIFT_ALG_SIZES) == 0) {
        return true;
    }
    if (plan->stages != NULL) {
        return (alg->flags & IBSHIFT_ALG_STAGES) != 0;
    }
    return plan->order == NULL || (alg->flags & IBSHIFT_ALG_ORDER) != 0;
}

/* Where no two ranks share a node, or all do, what goes by nodes is a longer way to the same. */
static bool has_nodes(const struct ibshift_alg *alg, const struct ibshift_plan *plan)
{
    return (alg->flags & IBSHIFT_ALG_NODES) == 0 ||
           (plan->nodes != NULL && plan->nodes->nodes > 1 && plan->nodes->most > 1);
}

/* Whether the row is worth a look without a wish. */
static bool is_fit(const struct ibshift_question *question, const struct ibshift_alg *alg)
{
    return ibshift_alg_serves(alg, question->collective, question->needs) &&
           takes_order(alg, question->plan) && has_nodes(alg, question->plan) &&
           ibshift_may_cast(question, alg);
}

/* The question has the space. */
static struct ibshift_answer choose_best(const struct ibshift_question *question)
{
    const struct ibshift_alg *wished = question->wish.alg;
    struct search search;
    struct ibshift_answer answer;

    begin_search(&search, question);
    if (wished != NULL && ibshift_alg_serves(wished, question->collective, question->needs) &&
        ibshift_may_cast(question, wished)) {
        consider_row(&search, wished);
        answer = settle(&search);
        if (answer.best.alg != NULL) {
            return answer;
        }
    }
    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];

        if (is_fit(question, alg)) {
            consider_row(&search, alg);
        }
    }
    return settle(&search);
}

struct ibshift_answer ibshift_choose_best(const struct ibshift_question *question)
{
    struct ibshift_question with_space = *question;
    struct ibshift_answer answer;

    with_space.space = ibshift_price_space_new();
    answer = choose_best(&with_space);
    ibshift_price_space_free(with_space.space);
    return answer;
}
