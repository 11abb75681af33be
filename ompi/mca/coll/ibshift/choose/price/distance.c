/*
 * What the links of a fabric add to a price (choose/price.h). Messages of one stage are under way together: it lasts as long as its
 * dearest link is busy, where the model has only the dearest cable of a host. Rows whose steps wait for none are one stage.
 * A datagram to all is once on each link that any of its copies takes: as if it were routed from its sender as messages are.
 */
#include <errno.h>
#include <stdlib.h>

#include "choose/price/run.h"
#include "fabric/paths/paths.h"

enum {
    SEEN = 1 << 14,     /* rounds of all ranks; of more, some of each rank's, */
    LEAST = 4,          /* at least so many */
    SEEN_ALL = 1 << 16, /* of all plans of a search: each gets at most a quarter of what is left */
    STAGES = 1 << 12    /* that are told apart: tags beyond meet others */
};

struct message {
    uint32_t from, to, stage;
    uint32_t datagram; /* to all: of this rank, and one; else 0 */
    double bytes;
};

/* Bytes of one stage: on each shared link, then out of each member and into it. */
struct loads {
    const struct ibshift_paths *paths;
    double *bytes;
    uint32_t *touched, count;
    uint32_t *datagram; /* the last one there */
};

static void load(struct loads *loads, uint32_t place, const struct message *message)
{
    if (loads->bytes[place] == 0) {
        loads->touched[loads->count++] = place;
    } else if (message->datagram != 0 && loads->datagram[place] == message->datagram) {
        return;
    }
    loads->datagram[place] = message->datagram;
    loads->bytes[place] += message->bytes;
}

static void load_message(struct loads *loads, const struct message *message)
{
    const struct ibshift_paths *p = loads->paths;
    const uint32_t *links = ibshift_paths_links(p, message->from, message->to, 0);

    for (uint32_t i = 0; i < p->width && links[i] != IBSHIFT_NO_LINK; i++) {
        load(loads, links[i], message);
    }
    load(loads, p->links + message->from, message);
    load(loads, p->links + p->hosts + message->to, message);
}

/* Bytes of the fastest host's cable by which the dearest link takes longer than the dearest host's; the loads are empty again. */
static double take_excess(struct loads *loads)
{
    const struct ibshift_paths *p = loads->paths;
    double link = 0, host = 0;

    while (loads->count > 0) {
        uint32_t place = loads->touched[--loads->count];
        bool is_link = place < p->links;
        double time = loads->bytes[place] *
                      (is_link ? p->cost[place] : p->host_cost[(place - p->links) % p->hosts]);

        link = is_link && time > link ? time : link;
        host = !is_link && time > host ? time : host;
        loads->bytes[place] = 0;
    }
    return link > host ? link - host : 0;
}

struct list {
    struct message *all;
    uint32_t count, room;
};

static int add(struct list *list, const struct message *message)
{
    if (list->count == list->room) {
        uint32_t room = list->room > 0 ? 2 * list->room : 1024;
        struct message *all = realloc(list->all, room * sizeof(*all));

        if (all == NULL) {
            return -ENOMEM;
        }
        list->all = all;
        list->room = room;
    }
    list->all[list->count++] = *message;
    return 0;
}

static int add_round(const struct ibshift_price_request *request, const struct ibshift_sizes *sizes,
                     const uint32_t *member_of, uint32_t rank, uint32_t round, struct list *list)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint32_t count = request->alg->emit(request->plan, rank, round, steps);
    bool is_free = (request->alg->flags & IBSHIFT_ALG_FREE) != 0;
    int rc = 0;

    for (uint32_t i = 0; i < count && rc == 0; i++) {
        if (steps[i].kind == IBSHIFT_STEP_SEND && member_of[rank] != member_of[steps[i].peer]) {
            uint64_t bytes = ibshift_sizes_step(sizes, rank, &steps[i]);
            bool is_datagram = steps[i].is_cast && bytes <= request->plan->multicast;
            const struct message message = {member_of[rank], member_of[steps[i].peer],
                                            is_free ? 0 : steps[i].tag % STAGES,
                                            is_datagram ? rank + 1 : 0, (double)bytes};

            rc = message.bytes > 0 ? add(list, &message) : 0;
        }
    }
    return rc;
}

/* *times: how many rounds one that is seen stands for. */
static int list_messages(const struct ibshift_price_request *request, const uint32_t *member_of,
                         struct list *list, double *times)
{
    uint32_t ranks = request->plan->ranks,
             *seen = request->space != NULL ? &request->space->seen : NULL;
    uint32_t room = seen == NULL ? SEEN : *seen < SEEN_ALL ? (SEEN_ALL - *seen) / 4 : 0;
    uint32_t most = room / ranks > LEAST ? room / ranks : LEAST;
    struct ibshift_sizes sizes;
    int rc = 0;

    ibshift_sizes_begin(&sizes, request->alg, request->plan, request->bytes,
                        request->element > 0 ? request->element : 1);
    *times = 1;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t rounds = request->alg->rounds(request->plan, rank);
        uint32_t parts = rounds < most ? rounds : most;

        *times = parts > 0 && (double)rounds / parts > *times ? (double)rounds / parts : *times;
        for (uint32_t i = 0; i < parts && rc == 0; i++) {
            uint32_t first = (uint32_t)((uint64_t)i * rounds / parts);
            uint32_t end = (uint32_t)((uint64_t)(i + 1) * rounds / parts);

            rc = add_round(request, &sizes, member_of, rank,
                           first + i * UINT32_C(7919) % (end - first), list);
        }
        if (seen != NULL) {
            *seen += parts;
        }
    }
    return rc;
}

/* Stage by stage: by_stage has room for all messages, and next for STAGES + 1. */
static double sum_stages(struct loads *loads, const struct list *list, uint32_t *by_stage,
                         uint32_t *next)
{
    double sum = 0;
    uint32_t at = 0;

    for (uint32_t i = 0; i < list->count; i++) {
        next[list->all[i].stage + 1]++;
    }
    for (uint32_t stage = 0; stage < STAGES; stage++) {
        next[stage + 1] += next[stage];
    }
    for (uint32_t i = 0; i < list->count; i++) { /* next becomes where the stage ends */
        by_stage[next[list->all[i].stage]++] = i;
    }
    for (uint32_t stage = 0; stage < STAGES; stage++) {
        for (; at < next[stage]; at++) {
            load_message(loads, &list->all[by_stage[at]]);
        }
        sum += loads->count > 0 ? take_excess(loads) : 0;
    }
    return sum;
}

int ibshift_price_distance(const struct ibshift_price_request *request,
                           const struct ibshift_paths *paths, const uint32_t *member_of,
                           struct ibshift_price *price)
{
    size_t places = paths->links + 2 * (size_t)paths->hosts;
    struct list list = {NULL, 0, 0};
    struct loads loads = {paths, calloc(places + 1, sizeof(*loads.bytes)),
                          malloc((places + 1) * sizeof(*loads.touched)), 0,
                          malloc((places + 1) * sizeof(*loads.datagram))};
    uint32_t *next = calloc(STAGES + 1, sizeof(*next)), *by_stage = NULL;
    double times, us = 0;
    int rc = list_messages(request, member_of, &list, &times);

    by_stage = malloc((list.count + 1) * sizeof(*by_stage));
    if (loads.bytes == NULL || loads.touched == NULL || loads.datagram == NULL || next == NULL ||
        by_stage == NULL) {
        rc = -ENOMEM;
    }
    if (rc == 0) {
        us = sum_stages(&loads, &list, by_stage, next) * times * request->model->gap_byte;
        price->of =
            price->last * IBSHIFT_PRICE_EQUAL < price->last + us ? IBSHIFT_PRICE_LINKS : price->of;
        price->last += us;
    }
    free(loads.bytes);
    free(loads.touched);
    free(loads.datagram);
    free(next);
    free(by_stage);
    free(list.all);
    return rc;
}
