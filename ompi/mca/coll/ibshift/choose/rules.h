/*
 * Selection files of others: the dynamic rules of Open MPI's component tuned, as text (version 1 and 2) and as JSON, read as wishes for
 * algorithms. Sizes are what that component counts: the vector of bcast, reductions and scans, elsewhere the blocks of all ranks together.
 * In JSON our own names are taken too, before theirs, with faninout as the radix and seg_size as the segment. Collectives that tuned
 * has no algorithms for stand beside its own ones, as it reads "collectives" alone and ends the program there.
 */
#ifndef IBSHIFT_CHOOSE_RULES_H
#define IBSHIFT_CHOOSE_RULES_H

#include "choose/best.h"
#include "choose/text.h"

/* Communicators whose ranks are any, on a node each, or all on one. */
enum ibshift_rule_spread { IBSHIFT_SPREAD_ANY, IBSHIFT_SPREAD_ONE_EACH, IBSHIFT_SPREAD_ONE_NODE };

struct ibshift_rule {
    enum ibshift_collective collective;
    bool is_vector; /* of the form with counts */
    enum ibshift_rule_spread spread;
    uint64_t ranks_min, ranks_max, bytes_min, bytes_max;
    struct ibshift_wish wish; /* alg NULL: chosen as ever */
};

struct ibshift_rules {
    struct ibshift_rule *all; /* the first that fits is meant */
    size_t count;
};

/* 0, or a negative errno with an error that names file and line (IBSHIFT_TEXT_ERROR bytes). The caller frees what was read. */
int ibshift_rules_read(const char *path, struct ibshift_rules *rules, char *error);
int ibshift_rules_parse(const char *text, size_t length, const char *name,
                        struct ibshift_rules *rules, char *error);
void ibshift_rules_free(struct ibshift_rules *rules);

/* needs, bytes: as in a question. NULL: no rule is for that. */
const struct ibshift_rule *ibshift_rules_find(const struct ibshift_rules *rules,
                                              enum ibshift_collective collective, uint32_t needs,
                                              uint32_t ranks, uint32_t nodes, uint64_t bytes);

/* What they wish for; where there is none, the question's own. */
struct ibshift_wish ibshift_rules_wish(const struct ibshift_question *question);

uint64_t ibshift_rules_digest(const struct ibshift_rules *rules, uint64_t sum);

/* What tuned calls an algorithm, and what does the same here. */
struct ibshift_theirs {
    const char *name, *ours; /* "": none of ours */
    uint32_t radix;          /* that makes ours the same; 0: the fan-out of the rule */
};

enum { IBSHIFT_RULES_COLLECTIVES = 22 };

#define IBSHIFT_RULES_THEIRS "collectives"
#define IBSHIFT_RULES_OURS   "ibshift_collectives"

struct ibshift_rules_collective {
    const char *name;
    enum ibshift_collective collective; /* IBSHIFT_COLLECTIVES: none here */
    bool is_vector;
    struct ibshift_theirs algorithms[10]; /* end with a name of NULL */
};

extern const struct ibshift_rules_collective ibshift_rules_collectives[IBSHIFT_RULES_COLLECTIVES];

#endif
