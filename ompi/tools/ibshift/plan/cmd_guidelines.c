/* `ibshift plan guidelines`: what MPI's users may expect of collectives among each other (Traeff, Gropp and Thakur, "Self-
 * Consistent MPI Performance Guidelines", IEEE TPDS 2010), held against the plans that the component would choose. A
 * collective must not take longer than what does the same by others, than one of more data, or than its halves. */
#include "plan/cmd.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choose/choose.h"

enum { KNOWN_MOST = 4096, SIDES = 2, TEXT = 96 };

/* How the size follows from that of the guideline: a block, or a vector of a block for each rank. */
enum scale { ONE, ALL_BLOCKS, NOTHING };

struct side {
    enum ibshift_collective collective;
    uint32_t needs; /* of a vector form */
    enum scale scale;
};

struct guideline {
    const char *text;
    struct side left, right[SIDES];
    int sides;
};

#define V       IBSHIFT_ALG_SIZES
#define V_KNOWN (IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_ALL)

/* The sizes are those of a block. */
static const struct guideline guidelines[] = {
    {"barrier <= allreduce of a byte",
     {IBSHIFT_BARRIER, 0, NOTHING},
     {{IBSHIFT_ALLREDUCE, 0, NOTHING}},
     1},
    {"bcast <= scatter + allgather",
     {IBSHIFT_BCAST, 0, ALL_BLOCKS},
     {{IBSHIFT_SCATTER, 0, ONE}, {IBSHIFT_ALLGATHER, 0, ONE}},
     2},
    {"scatter <= bcast", {IBSHIFT_SCATTER, 0, ONE}, {{IBSHIFT_BCAST, 0, ALL_BLOCKS}}, 1},
    {"scatter <= alltoall", {IBSHIFT_SCATTER, 0, ONE}, {{IBSHIFT_ALLTOALL, 0, ONE}}, 1},
    {"scatter <= scatterv", {IBSHIFT_SCATTER, 0, ONE}, {{IBSHIFT_SCATTER, V, ONE}}, 1},
    {"gather <= allgather", {IBSHIFT_GATHER, 0, ONE}, {{IBSHIFT_ALLGATHER, 0, ONE}}, 1},
    {"gather <= alltoall", {IBSHIFT_GATHER, 0, ONE}, {{IBSHIFT_ALLTOALL, 0, ONE}}, 1},
    {"gather <= reduce", {IBSHIFT_GATHER, 0, ONE}, {{IBSHIFT_REDUCE, 0, ALL_BLOCKS}}, 1},
    {"gather <= gatherv", {IBSHIFT_GATHER, 0, ONE}, {{IBSHIFT_GATHER, V, ONE}}, 1},
    {"allgather <= gather + bcast",
     {IBSHIFT_ALLGATHER, 0, ONE},
     {{IBSHIFT_GATHER, 0, ONE}, {IBSHIFT_BCAST, 0, ALL_BLOCKS}},
     2},
    {"allgather <= alltoall", {IBSHIFT_ALLGATHER, 0, ONE}, {{IBSHIFT_ALLTOALL, 0, ONE}}, 1},
    {"allgather <= allreduce",
     {IBSHIFT_ALLGATHER, 0, ONE},
     {{IBSHIFT_ALLREDUCE, 0, ALL_BLOCKS}},
     1},
    {"allgather <= allgatherv",
     {IBSHIFT_ALLGATHER, 0, ONE},
     {{IBSHIFT_ALLGATHER, V_KNOWN, ONE}},
     1},
    {"alltoall <= alltoallv", {IBSHIFT_ALLTOALL, 0, ONE}, {{IBSHIFT_ALLTOALL, V, ONE}}, 1},
    {"reduce <= allreduce",
     {IBSHIFT_REDUCE, 0, ALL_BLOCKS},
     {{IBSHIFT_ALLREDUCE, 0, ALL_BLOCKS}},
     1},
    {"reduce <= reduce_scatter_block + gather",
     {IBSHIFT_REDUCE, 0, ALL_BLOCKS},
     {{IBSHIFT_REDUCE_SCATTER, 0, ONE}, {IBSHIFT_GATHER, 0, ONE}},
     2},
    {"allreduce <= reduce + bcast",
     {IBSHIFT_ALLREDUCE, 0, ALL_BLOCKS},
     {{IBSHIFT_REDUCE, 0, ALL_BLOCKS}, {IBSHIFT_BCAST, 0, ALL_BLOCKS}},
     2},
    {"allreduce <= reduce_scatter_block + allgather",
     {IBSHIFT_ALLREDUCE, 0, ALL_BLOCKS},
     {{IBSHIFT_REDUCE_SCATTER, 0, ONE}, {IBSHIFT_ALLGATHER, 0, ONE}},
     2},
    {"reduce_scatter_block <= reduce + scatter",
     {IBSHIFT_REDUCE_SCATTER, 0, ONE},
     {{IBSHIFT_REDUCE, 0, ALL_BLOCKS}, {IBSHIFT_SCATTER, 0, ONE}},
     2},
    {"reduce_scatter_block <= allreduce",
     {IBSHIFT_REDUCE_SCATTER, 0, ONE},
     {{IBSHIFT_ALLREDUCE, 0, ALL_BLOCKS}},
     1},
    {"reduce_scatter_block <= reduce_scatter",
     {IBSHIFT_REDUCE_SCATTER, 0, ONE},
     {{IBSHIFT_REDUCE_SCATTER, V_KNOWN, ONE}},
     1},
};
enum { GUIDELINES = sizeof(guidelines) / sizeof(guidelines[0]) };

/* The collectives that monotony and halves are asked of, with their size. */
static const struct side alone[] = {
    {IBSHIFT_BCAST, 0, ONE},
    {IBSHIFT_SCATTER, 0, ONE},
    {IBSHIFT_GATHER, 0, ONE},
    {IBSHIFT_ALLGATHER, 0, ONE},
    {IBSHIFT_ALLTOALL, 0, ONE},
    {IBSHIFT_REDUCE, 0, ONE},
    {IBSHIFT_ALLREDUCE, 0, ONE},
    {IBSHIFT_REDUCE_SCATTER, 0, ONE},
    {IBSHIFT_SCAN, 0, ONE},
    {IBSHIFT_EXSCAN, 0, ONE},
    {IBSHIFT_SCATTER, V, ONE},
    {IBSHIFT_GATHER, V, ONE},
    {IBSHIFT_ALLGATHER, V_KNOWN, ONE},
    {IBSHIFT_ALLTOALL, V, ONE},
    {IBSHIFT_REDUCE_SCATTER, V_KNOWN, ONE},
};
enum { ALONE = sizeof(alone) / sizeof(alone[0]), RULES = GUIDELINES + 2 };

static const char *const own_rules[] = {"more data takes no less time", "the whole <= two halves"};

/* What the component would run, and how long that takes. */
struct cell {
    enum ibshift_collective collective;
    uint32_t needs;
    uint64_t bytes;
    double time; /* NAN: nothing fits */
    char plan[TEXT];
};

struct rule_count {
    uint64_t cells, broken;
    double worst; /* left over right */
    char example[3 * TEXT + 160];
};

struct survey {
    struct plan_args *args;
    struct ibshift_nodes nodes;
    uint32_t ranks;
    struct cell known[KNOWN_MOST]; /* of these ranks */
    int known_count;
    double slack; /* us; see slack_of() */
    struct rule_count rules[RULES];
};

/* Vector forms whose counts a rank does not know are chosen for one size, the others for the largest of their class. */
static uint64_t chosen_for(uint32_t needs, uint64_t bytes)
{
    enum { UNKNOWN_SIZE = 8192 };

    return needs == V   ? UNKNOWN_SIZE
           : bytes == 0 ? 0
                        : ibshift_class_size(ibshift_size_class(bytes));
}

static int price_cell(struct survey *s, struct cell *cell)
{
    struct ibshift_plan plan = {
        .ranks = s->ranks, .commutative = true, .nodes = s->nodes.nodes > 0 ? &s->nodes : NULL};
    struct ibshift_question question = {.collective = cell->collective,
                                        .needs = cell->needs,
                                        .plan = &plan,
                                        .bytes = chosen_for(cell->needs, cell->bytes),
                                        .window = s->args->window,
                                        .model = &s->args->model};
    struct ibshift_price_request request = {.plan = &plan,
                                            .model = &s->args->model,
                                            .bytes = cell->bytes,
                                            .element = 1,
                                            .window = s->args->window};
    struct ibshift_choice best;
    struct ibshift_price price;
    int rc;

    best = plan_choose_shared(s->args, &question).best;
    cell->time = NAN;
    snprintf(cell->plan, sizeof(cell->plan), "none");
    if (best.alg == NULL) {
        return 0;
    }
    plan.radix = best.radix;
    plan.segments = best.segments;
    plan.leaders = best.leaders;
    request.alg = best.alg;
    rc = plan_price_shared(s->args, &request, &price);
    cell->time = price.last;
    snprintf(cell->plan, sizeof(cell->plan), "%s", best.alg->name);
    if (best.alg->radix_max > 0) {
        snprintf(cell->plan, sizeof(cell->plan), "%s k=%u", best.alg->name, best.radix);
    }
    return rc;
}

/* From memory where it was asked before: most are on several sides. */
static int find_cell(struct survey *s, const struct side *side, uint64_t block,
                     const struct cell **found)
{
    uint64_t bytes = side->scale == NOTHING ? side->collective != IBSHIFT_BARRIER
                     : side->scale == ONE   ? block
                                            : block * s->ranks;
    struct cell *cell;

    for (int i = 0; i < s->known_count; i++) {
        cell = &s->known[i];
        if (cell->collective == side->collective && cell->needs == side->needs &&
            cell->bytes == bytes) {
            *found = cell;
            return 0;
        }
    }
    s->known_count = s->known_count == KNOWN_MOST ? 0 : s->known_count;
    cell = &s->known[s->known_count++];
    *cell = (struct cell){.collective = side->collective, .needs = side->needs, .bytes = bytes};
    *found = cell;
    return price_cell(s, cell);
}

static void write_cell(const struct cell *cell, char *text, size_t size)
{
    char bytes[24];

    plan_size_text(cell->bytes, bytes);
    snprintf(text, size, "%s%s of %s %.2f us (%s)", ibshift_collective_name(cell->collective),
             cell->needs != 0 ? "v" : "", bytes, cell->time, cell->plan);
}

/* right[i] counts so many times. */
static void compare(struct survey *s, struct rule_count *rule, const struct cell *left,
                    const struct cell *const right[], int sides, int times)
{
    double sum = 0, ratio;
    int used = 0;
    char text[TEXT + 64];

    for (int i = 0; i < sides; i++) {
        sum += times * right[i]->time;
    }
    if (isnan(left->time) || isnan(sum)) {
        return;
    }
    rule->cells++;
    ratio = left->time <= sum * IBSHIFT_PRICE_EQUAL + s->slack ? 1 : left->time / sum;
    rule->broken += ratio > 1;
    if (ratio <= rule->worst) {
        return;
    }
    rule->worst = ratio;
    write_cell(left, text, sizeof(text));
    used = snprintf(rule->example, sizeof(rule->example), "%u ranks: %s >", s->ranks, text);
    for (int i = 0; i < sides; i++) {
        write_cell(right[i], text, sizeof(text));
        used += snprintf(rule->example + used, sizeof(rule->example) - (size_t)used, "%s %s%s",
                         i > 0 ? " +" : "", times > 1 ? "twice " : "", text);
    }
}

static int survey_pairs(struct survey *s, uint64_t block)
{
    for (int g = 0; g < GUIDELINES; g++) {
        const struct cell *left, *right[SIDES];
        int rc = find_cell(s, &guidelines[g].left, block, &left);

        for (int i = 0; rc == 0 && i < guidelines[g].sides; i++) {
            rc = find_cell(s, &guidelines[g].right[i], block, &right[i]);
        }
        if (rc != 0) {
            return rc;
        }
        compare(s, &s->rules[g], left, right, guidelines[g].sides, 1);
    }
    return 0;
}

static int survey_alone(struct survey *s, uint64_t block, uint64_t larger)
{
    for (int i = 0; i < ALONE; i++) {
        const struct cell *less, *more, *half;
        int rc = find_cell(s, &alone[i], block, &less);

        rc = rc == 0 ? find_cell(s, &alone[i], larger, &more) : rc;
        rc = rc == 0 ? find_cell(s, &alone[i], (block + 1) / 2, &half) : rc;
        if (rc != 0) {
            return rc;
        }
        compare(s, &s->rules[GUIDELINES], less, (const struct cell *const[]){more}, 1, 1);
        compare(s, &s->rules[GUIDELINES + 1], less, (const struct cell *const[]){half}, 1, 2);
    }
    return 0;
}

static int survey_ranks(struct survey *s, uint32_t ranks)
{
    const struct plan_args *args = s->args;
    int rc = 0;

    s->ranks = ranks;
    s->known_count = 0;
    if (args->per_host > 0 && plan_nodes_make(args, ranks, &s->nodes) != CLI_OK) {
        return -ENOMEM;
    }
    for (int i = 0; rc == 0 && i < args->size_count; i++) {
        uint64_t larger = i + 1 < args->size_count ? args->sizes[i + 1] : 2 * args->sizes[i];

        rc = survey_pairs(s, args->sizes[i]);
        rc = rc == 0 ? survey_alone(s, args->sizes[i], larger) : rc;
    }
    ibshift_nodes_free(&s->nodes);
    return rc;
}

/* What a message may cost less only because others go in a row with it: by that alone a longer way may seem shorter. */
static double slack_of(const struct ibshift_model *m)
{
    return m->send_max - m->send_min + m->recv_max - m->recv_min;
}

static const char *rule_text(int rule)
{
    return rule < GUIDELINES ? guidelines[rule].text : own_rules[rule - GUIDELINES];
}

static uint64_t broken_of(const struct survey *s, uint64_t *cells)
{
    uint64_t broken = 0;

    *cells = 0;
    for (int i = 0; i < RULES; i++) {
        broken += s->rules[i].broken;
        *cells += s->rules[i].cells;
    }
    return broken;
}

static void write_text(const struct survey *s, FILE *out)
{
    uint64_t cells, broken = broken_of(s, &cells);

    fprintf(out, "%-46s %7s %7s %7s\n", "modelled times as chosen", "cells", "broken", "worst");
    for (int i = 0; i < RULES; i++) {
        const struct rule_count *rule = &s->rules[i];

        fprintf(out, "%-46s %7llu %7llu %7.3f\n", rule_text(i), (unsigned long long)rule->cells,
                (unsigned long long)rule->broken, rule->worst);
        if (rule->broken > 0) {
            fprintf(out, "    %s\n", rule->example);
        }
    }
    fprintf(out, "%llu of %llu cells break a guideline; parameters: %s\n",
            (unsigned long long)broken, (unsigned long long)cells, s->args->model_source);
}

static void write_json(const struct survey *s, FILE *out)
{
    struct json j;

    plan_json_begin(&j, out, "guidelines");
    for (int i = 0; i < RULES; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "guideline", rule_text(i));
        json_value(&j, "cells", "%llu", (unsigned long long)s->rules[i].cells);
        json_value(&j, "broken", "%llu", (unsigned long long)s->rules[i].broken);
        json_value(&j, "worst", "%.6f", s->rules[i].worst);
        json_text(&j, "example", s->rules[i].broken > 0 ? s->rules[i].example : "");
        json_close(&j, '}');
    }
    plan_json_end(&j);
}

static int survey_all(struct survey *s)
{
    static const uint32_t usual[] = {2,  3,  4,  5,  6,  7,  8,  9,  12,
                                     15, 16, 17, 24, 31, 32, 33, 48, 64};
    const struct plan_args *args = s->args;
    int rc = 0;

    if (args->has_ranks) {
        for (uint32_t ranks = args->plan.ranks; rc == 0 && ranks <= args->ranks_last; ranks++) {
            rc = survey_ranks(s, ranks);
        }
        return rc;
    }
    for (size_t i = 0; rc == 0 && i < sizeof(usual) / sizeof(usual[0]); i++) {
        rc = survey_ranks(s, usual[i]);
    }
    return rc;
}

int plan_guidelines(struct plan_args *args)
{
    struct survey *s = calloc(1, sizeof(*s));
    uint64_t cells;
    FILE *out;
    int rc;

    if (s == NULL) {
        return CLI_FAILED;
    }
    s->args = args;
    s->slack = slack_of(&args->model);
    if (!args->has_sizes) {
        args->size_count = 0;
        for (uint64_t bytes = 1; bytes <= 1 << 20; bytes *= 2) {
            args->sizes[args->size_count++] = bytes;
        }
    }
    rc = survey_all(s);
    if (rc != 0) {
        cli_error(args->command, "%s", rc == -ENOMEM ? "out of memory" : "a plan does not end");
        free(s);
        return CLI_FAILED;
    }
    out = plan_open(args);
    if (out != NULL && args->format == PLAN_JSON) {
        write_json(s, out);
    } else if (out != NULL) {
        write_text(s, out);
    }
    rc = out == NULL ? CLI_USAGE : plan_close(args, CLI_OK);
    rc = rc == CLI_OK && broken_of(s, &cells) > 0 ? CLI_FAILED : rc;
    free(s);
    return rc;
}
