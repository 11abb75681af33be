#include "fabric/weighted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 64 /* stages of a word */ };

struct pair {
    double time;
    uint32_t from, to;
};

struct search {
    const struct ibshift_weighted_job *job;
    uint32_t loads;     /* of a stage: shared links, cables out of members, into them */
    uint32_t stages;    /* opened so far */
    uint64_t *busy[2];  /* [stage / 64][rank]: sends, receives */
    uint32_t *first[2]; /* of a rank: all words before are full */
    float *load;        /* [stage][link] */
    double *time;       /* of a stage */
    struct pair *pairs;
    uint32_t *stage_of; /* [from * ranks + to] */
    double left;        /* of the memory */
};

static bool share_member(const struct ibshift_weighted_job *job, uint32_t from, uint32_t to)
{
    return job->member_of[from] == job->member_of[to];
}

static uint64_t bytes_of(const struct ibshift_weighted_job *job, uint32_t from, uint32_t to)
{
    return job->bytes[(size_t)from * job->ranks + to];
}

static uint32_t loads_of(const struct ibshift_paths *paths)
{
    return paths->links + 2 * paths->hosts;
}

static double cost_of(const struct ibshift_paths *paths, uint32_t link)
{
    return link < paths->links ? paths->cost[link]
                               : paths->host_cost[(link - paths->links) % paths->hosts];
}

/* All links of a pair's route, the cables of both hosts too; returns how many. */
static uint32_t links_of(const struct ibshift_weighted_job *job, uint32_t from, uint32_t to,
                         uint32_t links[IBSHIFT_PATH_LINKS + 2])
{
    const struct ibshift_paths *paths = job->paths;
    uint32_t a = job->member_of[from], b = job->member_of[to], count = 0;
    const uint32_t *shared = ibshift_paths_links(paths, a, b, 0);

    while (count < paths->width && shared[count] != IBSHIFT_NO_LINK) {
        links[count] = shared[count];
        count++;
    }
    links[count++] = paths->links + a;
    links[count++] = paths->links + paths->hosts + b;
    return count;
}

static double time_of(const struct ibshift_weighted_job *job, uint32_t from, uint32_t to)
{
    uint32_t links[IBSHIFT_PATH_LINKS + 2], count = links_of(job, from, to, links);
    double most = 0;

    for (uint32_t i = 0; i < count; i++) {
        double cost = cost_of(job->paths, links[i]);

        most = cost > most ? cost : most;
    }
    return most * (double)bytes_of(job, from, to);
}

bool ibshift_weighted_takes(const struct ibshift_weighted_job *job, uint32_t from, uint32_t to,
                            uint32_t link)
{
    uint32_t links[IBSHIFT_PATH_LINKS + 2], count;

    if (share_member(job, from, to)) {
        return false;
    }
    count = links_of(job, from, to, links);
    while (count > 0 && links[count - 1] != link) {
        count--;
    }
    return count > 0;
}

/* What a pair's block adds to each of its links. */
static void add(const struct ibshift_weighted_job *job, uint32_t from, uint32_t to, double *load)
{
    uint32_t links[IBSHIFT_PATH_LINKS + 2], count;

    if (share_member(job, from, to)) {
        return;
    }
    count = links_of(job, from, to, links);
    for (uint32_t i = 0; i < count; i++) {
        load[links[i]] += (double)bytes_of(job, from, to) * cost_of(job->paths, links[i]);
    }
}

static struct ibshift_weighted_bound busiest(const double *load, uint32_t loads)
{
    struct ibshift_weighted_bound bound = {.link = 0};

    for (uint32_t i = 0; i < loads; i++) {
        if (load[i] > bound.time) {
            bound = (struct ibshift_weighted_bound){load[i], i};
        }
    }
    return bound;
}

int ibshift_weighted_bound(const struct ibshift_weighted_job *job,
                           struct ibshift_weighted_bound *bound)
{
    double *load = calloc(loads_of(job->paths), sizeof(*load));

    if (load == NULL) {
        return -ENOMEM;
    }
    for (uint32_t from = 0; from < job->ranks; from++) {
        for (uint32_t to = 0; to < job->ranks; to++) {
            add(job, from, to, load);
        }
    }
    *bound = busiest(load, loads_of(job->paths));
    free(load);
    return 0;
}

int ibshift_weighted_cost(const struct ibshift_weighted_job *job,
                          const struct ibshift_stages *table, double *cost)
{
    uint32_t loads = loads_of(job->paths);
    double *load = malloc(loads * sizeof(*load));

    if (load == NULL) {
        return -ENOMEM;
    }
    *cost = 0;
    for (uint32_t stage = 0; stage < table->stages; stage++) {
        memset(load, 0, loads * sizeof(*load));
        for (uint32_t row = 0; row < table->rows; row++) {
            uint32_t to = table->to[(size_t)row * table->stages + stage];

            if (to != IBSHIFT_NO_RANK) {
                add(job, table->first + row, to, load);
            }
        }
        *cost += busiest(load, loads).time;
    }
    free(load);
    return 0;
}

/* False: the memory has no room. */
static bool grow(struct search *s, void *memory, size_t count, size_t more, size_t size)
{
    void **at = memory, *new = NULL;

    s->left -= (double)more * (double)size;
    new = s->left < 0 ? NULL : realloc(*at, (count + more) * size);
    if (new == NULL) {
        return false;
    }
    memset((char *)new + count *size, 0, more * size);
    *at = new;
    return true;
}

/* A stage more; memory for 64 at a time. */
static int open_stage(struct search *s, double time)
{
    uint32_t word = s->stages / AT_ONCE, ranks = s->job->ranks;

    if (s->stages % AT_ONCE == 0 &&
        !(grow(s, &s->busy[0], (size_t)word * ranks, ranks, sizeof(uint64_t)) &&
          grow(s, &s->busy[1], (size_t)word * ranks, ranks, sizeof(uint64_t)) &&
          grow(s, &s->load, (size_t)s->stages * s->loads, (size_t)AT_ONCE * s->loads,
               sizeof(float)) &&
          grow(s, &s->time, s->stages, AT_ONCE, sizeof(double)))) {
        return s->left < 0 ? -E2BIG : -ENOMEM;
    }
    s->time[s->stages++] = time;
    return 0;
}

/* Room on all links of the route; sums of floats are not exact. */
static bool fits(const struct search *s, uint32_t stage, const uint32_t *links, uint32_t count,
                 double bytes)
{
    const float *load = s->load + (size_t)stage * s->loads;
    double most = s->time[stage] * 1.000001;

    for (uint32_t i = 0; i < count; i++) {
        if (load[links[i]] + bytes * cost_of(s->job->paths, links[i]) > most) {
            return false;
        }
    }
    return true;
}

static uint64_t *busy_at(const struct search *s, int way, uint32_t word, uint32_t rank)
{
    return &s->busy[way][(size_t)word * s->job->ranks + rank];
}

static void take(struct search *s, const struct pair *pair, uint32_t stage, const uint32_t *links,
                 uint32_t count)
{
    double bytes = (double)bytes_of(s->job, pair->from, pair->to);
    const uint32_t ranks[2] = {pair->from, pair->to};

    for (uint32_t i = 0; i < count; i++) {
        s->load[(size_t)stage * s->loads + links[i]] +=
            (float)(bytes * cost_of(s->job->paths, links[i]));
    }
    for (int way = 0; way < 2; way++) {
        *busy_at(s, way, stage / AT_ONCE, ranks[way]) |= UINT64_C(1) << stage % AT_ONCE;
        while (s->first[way][ranks[way]] < s->stages / AT_ONCE &&
               *busy_at(s, way, s->first[way][ranks[way]], ranks[way]) == UINT64_MAX) {
            s->first[way][ranks[way]]++;
        }
    }
    s->stage_of[(size_t)pair->from * s->job->ranks + pair->to] = stage;
}

/* From that stage on; the first that fits, or a new one. */
static int place(struct search *s, const struct pair *pair, uint32_t least)
{
    uint32_t links[IBSHIFT_PATH_LINKS + 2], count = 0, word;
    double bytes = (double)bytes_of(s->job, pair->from, pair->to);
    uint32_t a = s->first[0][pair->from], b = s->first[1][pair->to];
    int rc;

    if (!share_member(s->job, pair->from, pair->to)) {
        count = links_of(s->job, pair->from, pair->to, links);
    }
    word = a > b ? a : b;
    for (word = word > least / AT_ONCE ? word : least / AT_ONCE; word * AT_ONCE < s->stages;
         word++) {
        uint64_t free = ~(*busy_at(s, 0, word, pair->from) | *busy_at(s, 1, word, pair->to));

        for (; free != 0; free &= free - 1) {
            uint32_t stage = word * AT_ONCE + (uint32_t)__builtin_ctzll(free);

            if (stage >= s->stages) {
                break;
            }
            if (stage >= least && fits(s, stage, links, count, bytes)) {
                take(s, pair, stage, links, count);
                return 0;
            }
        }
    }
    rc = open_stage(s, pair->time);
    if (rc == 0) {
        take(s, pair, s->stages - 1, links, count);
    }
    return rc;
}

/* Who lasts longest first; among equals as a shift has them, or all would go to one rank at first. */
static int is_before(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;

    return a->time != b->time ? (a->time < b->time) - (a->time > b->time)
           : a->to != b->to   ? (a->to > b->to) - (a->to < b->to)
                              : (a->from > b->from) - (a->from < b->from);
}

/* Of hosts that are not the same, or of those that are; `to` is the distance until they are sorted. */
static uint32_t list_pairs(struct search *s, bool local)
{
    uint32_t ranks = s->job->ranks, count = 0;

    for (uint32_t from = 0; from < ranks; from++) {
        for (uint32_t distance = 1; distance < ranks; distance++) {
            uint32_t to = (from + distance) % ranks;

            if (share_member(s->job, from, to) == local) {
                s->pairs[count++] =
                    (struct pair){local ? 0 : time_of(s->job, from, to), from, distance};
            }
        }
    }
    qsort(s->pairs, count, sizeof(*s->pairs), is_before);
    for (uint32_t i = 0; i < count; i++) {
        s->pairs[i].to = (s->pairs[i].from + s->pairs[i].to) % ranks;
    }
    return count;
}

static int fill(struct search *s)
{
    int rc = 0;

    for (int local = 0; local < 2 && rc == 0; local++) {
        uint32_t count = list_pairs(s, local), least = local ? s->stages : 0;

        for (uint32_t i = 0; i < count && rc == 0; i++) {
            rc = place(s, &s->pairs[i], least);
        }
    }
    return rc;
}

static int write_table(const struct search *s, struct ibshift_weighted *weighted)
{
    uint32_t ranks = s->job->ranks;
    size_t entries = (size_t)ranks * s->stages, bytes = entries * sizeof(uint32_t);

    weighted->to = malloc(bytes + 1);
    weighted->from = malloc(bytes + 1);
    if (weighted->to == NULL || weighted->from == NULL) {
        return -ENOMEM;
    }
    memset(weighted->to, 0xff, bytes);
    memset(weighted->from, 0xff, bytes);
    for (uint32_t from = 0; from < ranks; from++) {
        for (uint32_t to = 0; to < ranks; to++) {
            uint32_t stage = s->stage_of[(size_t)from * ranks + to];

            if (from != to) {
                weighted->to[(size_t)from * s->stages + stage] = to;
                weighted->from[(size_t)to * s->stages + stage] = from;
            }
        }
    }
    weighted->table = (struct ibshift_stages){
        .stages = s->stages, .rows = ranks, .to = weighted->to, .from = weighted->from};
    for (uint32_t stage = 0; stage < s->stages; stage++) {
        weighted->cost += s->time[stage];
    }
    return 0;
}

static int open_search(struct search *s, const struct ibshift_weighted_job *job)
{
    size_t pairs = (size_t)job->ranks * job->ranks;
    bool has_room;

    s->job = job;
    s->loads = loads_of(job->paths);
    s->left = (double)job->memory;
    has_room = grow(s, &s->pairs, 0, pairs, sizeof(*s->pairs)) &&
               grow(s, &s->stage_of, 0, pairs, sizeof(*s->stage_of)) &&
               grow(s, &s->first[0], 0, job->ranks, sizeof(uint32_t)) &&
               grow(s, &s->first[1], 0, job->ranks, sizeof(uint32_t));
    return has_room ? 0 : s->left < 0 ? -E2BIG : -ENOMEM;
}

int ibshift_weighted_make(const struct ibshift_weighted_job *job, struct ibshift_weighted *weighted)
{
    struct search s = {.stages = 0};
    int rc = open_search(&s, job);

    *weighted = (struct ibshift_weighted){.to = NULL};
    rc = rc == 0 ? fill(&s) : rc;
    rc = rc == 0 ? write_table(&s, weighted) : rc;
    if (rc != 0) {
        ibshift_weighted_free(weighted);
    }
    free(s.pairs);
    free(s.stage_of);
    free(s.first[0]);
    free(s.first[1]);
    free(s.busy[0]);
    free(s.busy[1]);
    free(s.load);
    free(s.time);
    return rc;
}

void ibshift_weighted_free(struct ibshift_weighted *weighted)
{
    free(weighted->to);
    free(weighted->from);
    *weighted = (struct ibshift_weighted){.to = NULL};
}
