#include "choose/choose.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>

#include "choose/digest.h"
#include "choose/glance.h"
#include "choose/size.h"
#include "plan/nodes.h"

enum {
    FIRST_SEGMENT = 4096,
    LAST_SEGMENT = 1 << 20,
    GATHERED_MOST = 1 << 25,
    NEAR_MOST = 64,
    KNOWN = 512
};

/* Found among 96 to 1,728 ranks: what is taken costs 1.03 of the cheapest in the mean. */
enum {
    FEW_RANKS = 64,    /* each candidate is priced as it is */
    MANY_HOSTS = 16,   /* of several ranks: among fewer it is, too */
    GLANCE = 64,       /* messages that are looked at for a first price, */
    LOOK = 256,        /* and for that of */
    LOOKS = 4,         /* so many of the cheapest candidates, */
    LOOK_HOSTS = 4096, /* where ranks share hosts: of these four at least are looked at */
    LOOKS_HOSTS = 6,
    GLANCE_ERROR = 2, /* if they cost at most so many times the cheapest */
    GLANCES_MOST = 128,
};

static int add_segments(const struct ibshift_alg *alg, uint64_t bytes,
                        const struct ibshift_wish *wish, uint32_t radix,
                        struct ibshift_candidate *found)
{
    int count = 0;

    if ((alg->flags & IBSHIFT_ALG_SEGMENTS) != 0 && wish->segment > 0) {
        uint64_t segments = bytes / wish->segment + (bytes % wish->segment != 0);

        segments = segments < 1 ? 1 : segments;
        segments = segments > IBSHIFT_SEGMENTS_MAX ? IBSHIFT_SEGMENTS_MAX : segments;
        found[count++] = (struct ibshift_candidate){radix, (uint32_t)segments, 1};
        return count;
    }
    found[count++] = (struct ibshift_candidate){radix, 1, 1};
    if ((alg->flags & IBSHIFT_ALG_SEGMENTS) == 0) {
        return count;
    }
    for (uint64_t size = FIRST_SEGMENT; size <= LAST_SEGMENT && size < bytes; size *= 4) {
        if (bytes / size <= IBSHIFT_CHOOSE_LIMIT) {
            found[count++] = (struct ibshift_candidate){radix, (uint32_t)(bytes / size), 1};
        }
    }
    return count;
}

/* The last: as many as there are on the emptiest node. */
static int add_leaders(uint32_t ranks, struct ibshift_candidate *found)
{
    static const uint32_t leaders[] = {1, 4, 8, 16, IBSHIFT_LEADERS_MAX};
    int count = 0;

    for (size_t i = 0; i < sizeof(leaders) / sizeof(leaders[0]); i++) {
        if (leaders[i] == 1 || leaders[i] < ranks || leaders[i] == IBSHIFT_LEADERS_MAX) {
            found[count++] = (struct ibshift_candidate){0, 1, leaders[i]};
        }
    }
    return count;
}

int ibshift_candidates(const struct ibshift_alg *alg, uint32_t ranks, uint64_t bytes,
                       const struct ibshift_wish *wish, struct ibshift_candidate *found)
{
    static const uint32_t radices[] = {1, 2, 3, 4, 5, 6, 7, 8, 15};
    int count = 0;

    if (alg->collective == IBSHIFT_ALLTOALL && (alg->flags & IBSHIFT_ALG_LEADERS) != 0) {
        return add_leaders(ranks, found);
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

struct ibshift_sending ibshift_choose_sending(const struct ibshift_question *question,
                                              const struct ibshift_alg *alg)
{
    bool is_free = (alg->flags & IBSHIFT_ALG_FREE) != 0 && question->free.window > 0;

    return is_free ? question->free : (struct ibshift_sending){question->window, 0};
}

/* Of a table a rank has its own row only: the shift in its place has as many messages. */
static struct ibshift_price_request request_of(const struct ibshift_question *question,
                                               const struct ibshift_alg *alg,
                                               const struct ibshift_plan *plan, uint64_t messages,
                                               double most)
{
    struct ibshift_sending sending = ibshift_choose_sending(question, alg);

    return (struct ibshift_price_request){.alg = alg,
                                          .plan = plan,
                                          .model = question->model,
                                          .near = question->near,
                                          .crowd = question->crowd,
                                          .bytes = question->bytes,
                                          .element = 1,
                                          .window = sending.window,
                                          .piece = sending.piece,
                                          .grants_anew = question->grants_anew,
                                          .limit = messages,
                                          .space = question->space,
                                          .most = most};
}

/* Its price among fewer ranks, with as much for each piece of a vector. */
static int price_fewer(const struct ibshift_question *question, const struct ibshift_alg *alg,
                       const struct ibshift_plan *plan, uint32_t ranks, struct ibshift_price *found)
{
    struct ibshift_price_request request = request_of(question, alg, plan, IBSHIFT_CHOOSE_LIMIT, 0);
    struct ibshift_plan fewer = *plan;
    char why[128];
    double share;

    fewer.ranks = ranks;
    fewer.root = plan->root % ranks;
    fewer.order = NULL;
    if (ibshift_alg_check(alg, &fewer, why, sizeof(why)) != 0) {
        return -ENOTSUP;
    }
    share = (double)ibshift_alg_pieces(alg, &fewer) / ibshift_alg_pieces(alg, plan);
    request.plan = &fewer;
    request.bytes = (uint64_t)ceil(share * (double)question->bytes);
    return ibshift_price(&request, found);
}

/* Of more messages than are looked at: what a doubling of the ranks adds grows on as it did over the
 * last two, from not at all (logarithmic) to twofold (linear). */
static int estimate(const struct ibshift_question *question, const struct ibshift_alg *alg,
                    const struct ibshift_plan *plan, struct ibshift_price *found)
{
    struct ibshift_price fewer[3]; /* of a quarter, half and all of `ranks` */
    uint32_t ranks = plan->ranks / 2, doublings = 1;
    struct ibshift_plan half = *plan;
    double growth, added;

    for (half.ranks = ranks; ibshift_plan_exceeds(alg, &half, IBSHIFT_CHOOSE_LIMIT);
         half.ranks = ranks) {
        ranks /= 2;
        doublings++;
    }
    if (ranks < 4 || (alg->flags & (IBSHIFT_ALG_NODES | IBSHIFT_ALG_SPLIT)) != 0) {
        return -E2BIG;
    }
    for (uint32_t i = 0; i < 3; i++) {
        int rc = price_fewer(question, alg, plan, ranks >> (2 - i), &fewer[i]);

        if (rc != 0) {
            return rc;
        }
    }
    *found = fewer[2];
    added = fewer[2].last - fewer[1].last;
    growth = added / (fewer[1].last - fewer[0].last);
    growth = growth >= 1 ? growth < 2 ? growth : 2 : 1;
    for (uint32_t i = 0; i < doublings; i++) {
        added *= growth;
        found->last += added;
        found->messages *= 2;
        found->hops += fewer[2].hops - fewer[1].hops;
    }
    return 0;
}

/* Ranks tell each other sizes within their node before it runs. */
static bool tells_counts(const struct ibshift_question *question, const struct ibshift_alg *alg)
{
    return (alg->flags & question->needs) == IBSHIFT_ALG_SIZES_NODE;
}

/* A size each to the leader; of an all-to-all one of each node to each. */
static void add_counts(const struct ibshift_question *question, struct ibshift_choice *choice)
{
    bool is_alltoall = question->collective == IBSHIFT_ALLTOALL;
    struct ibshift_plan plan = {.ranks = question->plan->nodes != NULL ? question->plan->nodes->most
                                                                       : 1};
    struct ibshift_price_request request = {
        .alg = ibshift_alg_find(is_alltoall ? IBSHIFT_ALLTOALL : IBSHIFT_GATHER, "linear"),
        .plan = &plan,
        .model = question->near != NULL ? question->near : question->model,
        .bytes = sizeof(uint64_t) * (is_alltoall ? ibshift_nodes_count(question->plan) : 1),
        .element = 1,
        .window = question->window,
        .limit = IBSHIFT_CHOOSE_LIMIT,
        .space = question->space};
    struct ibshift_price counts;

    if (!tells_counts(question, choice->alg) || choice->price.last < 0 ||
        ibshift_price(&request, &counts) != 0) {
        return;
    }
    choice->price.last += counts.last;
    choice->price.messages += counts.messages;
    choice->price.hops += counts.hops;
}

static struct ibshift_plan plan_of(const struct ibshift_question *question,
                                   const struct ibshift_choice *choice)
{
    struct ibshift_plan plan = *question->plan;

    plan.radix = choice->radix;
    plan.segments = choice->segments;
    plan.leaders = choice->leaders;
    plan.stages = NULL;
    return plan;
}

/* By so many messages of few of its ranks, where it has more. A row that nobody can price here costs
 * nothing that is known: it stays behind all others. */
static void price(const struct ibshift_question *question, uint64_t messages, double most,
                  struct ibshift_choice *choice)
{
    struct ibshift_plan plan = plan_of(question, choice);
    struct ibshift_price_request request = request_of(question, choice->alg, &plan, messages, most);
    bool is_glance = messages < IBSHIFT_CHOOSE_LIMIT || plan.segments > 1;
    int rc = is_glance ? ibshift_glance(&request, &choice->price)
                       : ibshift_price(&request, &choice->price);

    if (rc == -E2BIG && !is_glance) {
        rc = estimate(question, choice->alg, &plan, &choice->price);
    } else if (rc != 0 && rc != -ERANGE && messages < IBSHIFT_CHOOSE_LIMIT) {
        price(question, IBSHIFT_CHOOSE_LIMIT, most, choice);
        return;
    }
    if (rc != 0) {
        choice->price = (struct ibshift_price){.last = -1};
    }
    add_counts(question, choice);
}

/* One without a price is better than nothing only. */
static bool is_cheaper(const struct ibshift_choice *now, const struct ibshift_choice *best)
{
    return best->alg == NULL ||
           (now->price.last >= 0 && (best->price.last < 0 || now->price.last < best->price.last));
}

static bool is_near(const struct ibshift_choice *choice, const struct ibshift_choice *cheapest)
{
    return choice->price.last >= 0 &&
           choice->price.last <= cheapest->price.last * IBSHIFT_PRICE_EQUAL;
}

/* The cheapest two so far are in the answer. */
struct search {
    const struct ibshift_question *question;
    struct ibshift_answer answer;
    struct ibshift_choice cheapest[2];     /* flat, by node */
    struct ibshift_choice near[NEAR_MOST]; /* were near the cheapest when they were found */
    int near_count;
    bool has_many; /* ranks: first a glance at all candidates, then a closer look at the best */
    struct ibshift_choice seen[GLANCES_MOST];
    int seen_count;
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

/* The two long arrays are left as they are: their counts say what is in them. */
static void begin_search(struct search *search, const struct ibshift_question *question)
{
    search->question = question;
    search->answer = (struct ibshift_answer){.candidates = 0};
    search->cheapest[0] = search->cheapest[1] = (struct ibshift_choice){.alg = NULL};
    search->near_count = search->seen_count = 0;
    search->has_many = has_many(question);
}

static bool is_by_node(const struct ibshift_choice *choice)
{
    return (choice->alg->flags & IBSHIFT_ALG_NODES) != 0;
}

static void weigh(struct search *search, const struct ibshift_choice *now)
{
    struct ibshift_answer *answer = &search->answer;
    struct ibshift_choice *alike = &search->cheapest[is_by_node(now)];

    answer->candidates++;
    if (is_cheaper(now, alike)) {
        *alike = *now;
    }
    if (is_cheaper(now, &answer->best)) {
        answer->second = answer->best;
        answer->best = *now;
    } else if (is_cheaper(now, &answer->second)) {
        answer->second = *now;
    }
    if (search->near_count < NEAR_MOST && is_near(now, &answer->best)) {
        search->near[search->near_count++] = *now;
    }
}

static struct ibshift_answer decide(const struct search *search)
{
    const struct ibshift_choice *cheapest = &search->answer.best, *simplest = cheapest;
    struct ibshift_answer answer = search->answer;

    for (int i = 0; i < search->near_count; i++) {
        const struct ibshift_choice *near = &search->near[i];

        if (is_near(near, cheapest) && ibshift_price_is_simpler(&near->price, &simplest->price)) {
            simplest = near;
        }
    }
    if (simplest != cheapest) {
        answer.second = *cheapest;
        answer.best = *simplest;
    }
    if (answer.best.alg != NULL) {
        answer.other = search->cheapest[!is_by_node(&answer.best)];
    }
    return answer;
}

/* A leader has what its team sends to all, several times over: the one of the fullest node most. */
static bool gathers_too_much(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                             uint64_t bytes)
{
    uint32_t leader;

    if (alg->collective != IBSHIFT_ALLTOALL || (alg->flags & IBSHIFT_ALG_LEADERS) == 0) {
        return false;
    }
    leader = ibshift_nodes_rank(plan, ibshift_nodes_fullest(plan), 0);
    return bytes > GATHERED_MOST / ((uint64_t)alg->tmp(plan, leader) + 1);
}

/* us that a plan may take to be of interest; 0: any. */
static double most_of(const struct search *search)
{
    const struct ibshift_choice *best = &search->answer.best;

    return search->question->is_brief && best->alg != NULL && best->price.last > 0
               ? best->price.last * IBSHIFT_PRICE_EQUAL
               : 0;
}

/* Only on a wish: nobody knows how many bytes of others a rank would have to hold. Alltoallv goes by node only
 * where all ranks of like nodes lead. */
static bool may_tell_counts(const struct ibshift_question *question, const struct ibshift_alg *alg,
                            const struct ibshift_plan *plan)
{
    const struct ibshift_nodes *nodes = plan->nodes;

    return alg == question->wish.alg && nodes != NULL &&
           (alg->collective != IBSHIFT_ALLTOALL ||
            (nodes->most == nodes->least && nodes->most > 1 && plan->leaders >= nodes->most));
}

static void consider(struct search *search, const struct ibshift_choice *asked)
{
    const struct ibshift_question *question = search->question;
    struct ibshift_plan plan = *question->plan;
    struct ibshift_choice now = *asked;
    char why[128];

    plan.radix = now.radix;
    plan.segments = now.segments;
    plan.leaders = now.leaders;
    if (ibshift_alg_check(now.alg, &plan, why, sizeof(why)) != 0 ||
        (tells_counts(question, now.alg) && !may_tell_counts(question, now.alg, &plan)) ||
        (now.alg != question->wish.alg && gathers_too_much(now.alg, &plan, question->bytes))) {
        return;
    }
    if (search->has_many && search->seen_count < GLANCES_MOST) {
        price(question, GLANCE, 0, &now);
        search->seen[search->seen_count++] = now;
    } else {
        price(question, IBSHIFT_CHOOSE_LIMIT, most_of(search), &now);
        weigh(search, &now);
    }
}

/* The cheapest at a glance of those that are left; NULL: none is worth a look. */
static struct ibshift_choice *take_cheapest(struct search *search, double *most)
{
    struct ibshift_choice *cheapest = NULL;

    for (int i = 0; i < search->seen_count; i++) {
        struct ibshift_choice *one = &search->seen[i];

        if (one->alg != NULL && one->price.last >= 0 && one->price.last <= *most &&
            (cheapest == NULL || one->price.last < cheapest->price.last)) {
            cheapest = one;
        }
    }
    *most = cheapest == NULL ? *most : fmin(*most, GLANCE_ERROR * cheapest->price.last);
    return cheapest;
}

/* Those without a price come last, if nothing has any. */
static struct ibshift_answer settle(struct search *search)
{
    int looks = has_hosts(search->question) ? LOOKS_HOSTS : LOOKS;
    uint64_t look = has_hosts(search->question) ? LOOK_HOSTS : LOOK;
    struct ibshift_choice *next;
    double most = INFINITY;

    for (int i = 0; i < looks && (next = take_cheapest(search, &most)) != NULL; i++) {
        price(search->question, look, most_of(search), next);
        weigh(search, next);
        next->alg = NULL;
    }
    for (int i = 0; i < search->seen_count && search->answer.best.alg == NULL; i++) {
        weigh(search, &search->seen[i]);
    }
    search->answer.candidates =
        search->seen_count > 0 ? search->seen_count : search->answer.candidates;
    return decide(search);
}

/* Of a row by node each tree is one of nodes or of the ranks of a node: radices above are the same again. */
static uint32_t ranks_of_trees(const struct ibshift_alg *alg, const struct ibshift_plan *plan)
{
    uint32_t nodes = ibshift_nodes_count(plan);

    if ((alg->flags & IBSHIFT_ALG_NODES) == 0 || alg->radix_max == 0 || plan->nodes == NULL) {
        return plan->ranks;
    }
    return nodes > plan->nodes->most ? nodes : plan->nodes->most;
}

static void consider_row(struct search *search, const struct ibshift_alg *alg)
{
    const struct ibshift_question *question = search->question;
    struct ibshift_candidate found[IBSHIFT_CANDIDATES_MAX];
    int count = ibshift_candidates(alg, ranks_of_trees(alg, question->plan), question->bytes,
                                   &question->wish, found);

    for (int i = 0; i < count; i++) {
        consider(search, &(struct ibshift_choice){.alg = alg,
                                                  .radix = found[i].radix,
                                                  .segments = found[i].segments,
                                                  .leaders = found[i].leaders});
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
           takes_order(alg, question->plan) && has_nodes(alg, question->plan);
}

/* The question has the space. */
static struct ibshift_answer choose_best(const struct ibshift_question *question)
{
    const struct ibshift_alg *wished = question->wish.alg;
    struct search search;
    struct ibshift_answer answer;

    begin_search(&search, question);
    if (wished != NULL && ibshift_alg_serves(wished, question->collective, question->needs)) {
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

/* What is to be freed. Without memory for a space each price asks for its own. */
static struct ibshift_price_space *give_space(struct ibshift_question *question)
{
    struct ibshift_price_space *made = NULL;

    if (question->space == NULL) {
        made = question->space = ibshift_price_space_new();
    }
    return made;
}

struct ibshift_answer ibshift_choose_best(const struct ibshift_question *question)
{
    struct ibshift_question with_space = *question;
    struct ibshift_price_space *made = give_space(&with_space);
    struct ibshift_answer answer = choose_best(&with_space);

    ibshift_price_space_free(made);
    return answer;
}

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
    return sum;
}

static uint64_t key_of(const struct ibshift_question *question)
{
    const struct { /* without a gap */
        uint64_t shape, bytes, segment;
        const struct ibshift_alg *alg;
        uint32_t collective, needs, window, radix, root, flags;
        struct ibshift_sending free;
    } key = {
        shape_of(question),     question->bytes,
        question->wish.segment, question->wish.alg,
        question->collective,   question->needs,
        question->window,       question->wish.radix,
        question->plan->root,   question->plan->commutative | (uint32_t)question->grants_anew << 1,
        question->free};

    return ibshift_digest(IBSHIFT_DIGEST, &key, sizeof(key));
}

/* Who comes to a taken place takes it: what is lost is priced again. */
static struct {
    pthread_mutex_t lock;
    struct known {
        uint64_t key;
        struct ibshift_choice choice; /* alg NULL: free */
    } place[KNOWN];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct ibshift_answer ibshift_choose_known(const struct ibshift_question *question)
{
    uint64_t key = key_of(question);
    struct known *place = &known.place[key % KNOWN], found;
    const struct ibshift_plan *plan = question->plan;

    if (plan->order != NULL || plan->stages != NULL || plan->split != NULL) {
        return ibshift_choose_best(question);
    }
    pthread_mutex_lock(&known.lock);
    found = *place;
    pthread_mutex_unlock(&known.lock);
    if (found.choice.alg != NULL && found.key == key) {
        return (struct ibshift_answer){.best = found.choice};
    }
    found = (struct known){key, ibshift_choose_best(question).best};
    pthread_mutex_lock(&known.lock);
    *place = found;
    pthread_mutex_unlock(&known.lock);
    return (struct ibshift_answer){.best = found.choice};
}

/* The question has the space. */
static int find_rivals(const struct ibshift_question *question, const struct ibshift_choice *own,
                       double times, struct ibshift_choice *found, int most)
{
    int count = 0;

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];
        struct search search;
        struct ibshift_choice best;
        int at;

        if (alg == own->alg || !is_fit(question, alg)) {
            continue;
        }
        begin_search(&search, question);
        consider_row(&search, alg);
        best = settle(&search).best;
        if (best.alg == NULL || best.price.last < 0 || best.price.last > times * own->price.last) {
            continue;
        }
        for (at = count; at > 0 && found[at - 1].price.last > best.price.last; at--) {
            if (at < most) {
                found[at] = found[at - 1];
            }
        }
        if (at < most) {
            found[at] = best;
            count += count < most;
        }
    }
    return count;
}

int ibshift_choose_rivals(const struct ibshift_question *question, const struct ibshift_choice *own,
                          double times, struct ibshift_choice *found, int most)
{
    struct ibshift_question with_space = *question;
    struct ibshift_price_space *made = give_space(&with_space);
    int count = find_rivals(&with_space, own, times, found, most);

    ibshift_price_space_free(made);
    return count;
}
