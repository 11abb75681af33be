#include "choose/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choose/digest.h"
#include "choose/size.h"
#include "choose/text.h"
#include "plan/nodes.h"

enum { FILE_LIMIT = 1 << 22, RULES_MOST = 1 << 16 };

struct parser {
    struct ibshift_text text;
    struct ibshift_rules *rules;
    const struct ibshift_rules_collective *row; /* whose rules are read */
    struct ibshift_rule rule;                   /* that is read */
    const struct ibshift_theirs *theirs;        /* that it names, or NULL */
    bool has_algorithm, has_collectives;
    uint64_t ranks_min, ranks_max; /* of its communicators */
    enum ibshift_rule_spread spread;
};

static void unknown_algorithm(struct parser *p, const char *word)
{
    struct ibshift_nearest nearest = {.word = word};

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        if (ibshift_alg_table[i]->collective == p->row->collective) {
            ibshift_nearest_compare(&nearest, ibshift_alg_table[i]->name);
        }
    }
    for (const struct ibshift_theirs *t = p->row->algorithms; t->name != NULL; t++) {
        ibshift_nearest_compare(&nearest, t->name);
    }
    if (nearest.alike > 0) {
        ibshift_text_fail(&p->text, "%s has no algorithm '%.40s'; the nearest is '%s'",
                          p->row->name, word, nearest.name);
    } else {
        ibshift_text_fail(&p->text, "%s has no algorithm '%.40s'; ibshift plan list shows ours",
                          p->row->name, word);
    }
}

/* What it names of ours, with its fan-out as the radix: a base is one more. */
static void translate(struct parser *p)
{
    struct ibshift_wish *wish = &p->rule.wish;
    const struct ibshift_theirs *theirs = p->theirs;

    if (theirs != NULL) {
        wish->alg =
            theirs->ours[0] != '\0' ? ibshift_alg_find(p->row->collective, theirs->ours) : NULL;
        wish->radix = theirs->radix > 0 ? theirs->radix : wish->radix > 1 ? wish->radix - 1 : 0;
    } else if (wish->alg == NULL) { /* decided as without a rule */
        *wish = (struct ibshift_wish){.alg = NULL};
    }
}

/* All of the rule is known. */
static void add_rule(struct parser *p)
{
    struct ibshift_rules *rules = p->rules;

    if (p->text.rc != 0) {
        return;
    }
    translate(p);
    if (p->row->collective == IBSHIFT_COLLECTIVES) {
        return;
    }
    if (rules->count == RULES_MOST) {
        ibshift_text_fail(&p->text, "more than %d rules", RULES_MOST);
        return;
    }
    if ((rules->count & (rules->count - 1)) == 0) { /* room for as many again */
        size_t room = rules->count > 0 ? 2 * rules->count : 1;
        struct ibshift_rule *grown = realloc(rules->all, room * sizeof(*grown));

        if (grown == NULL) {
            ibshift_text_fail(&p->text, "out of memory");
            p->text.rc = -ENOMEM;
            return;
        }
        rules->all = grown;
    }
    p->rule.collective = p->row->collective;
    p->rule.is_vector = p->row->is_vector;
    rules->all[rules->count++] = p->rule;
}

/* 0: decided as without a rule. */
static void take_number(struct parser *p, uint64_t number)
{
    const struct ibshift_theirs *t = p->row->algorithms;

    for (uint64_t i = 1; i < number && t->name != NULL; i++) {
        t++;
    }
    if (number > 0 && t == p->row->algorithms && t->name == NULL) {
        ibshift_text_fail(&p->text, "tuned has no algorithms of %s; JSON may name one of ibshift",
                          p->row->name);
    } else if (number > 0 && t->name == NULL) {
        ibshift_text_fail(&p->text, "%s has no algorithm %llu; tuned's last is %td", p->row->name,
                          (unsigned long long)number, t - p->row->algorithms);
    }
    p->theirs = number > 0 ? t : NULL;
}

static void take_name(struct parser *p, const char *word)
{
    const struct ibshift_theirs *t = p->row->algorithms;

    if (p->row->collective != IBSHIFT_COLLECTIVES) {
        p->rule.wish.alg = ibshift_alg_find(p->row->collective, word);
    }
    if (strcmp(word, "ignore") == 0 || p->rule.wish.alg != NULL) {
        return;
    }
    while (t->name != NULL && strcmp(t->name, word) != 0) {
        t++;
    }
    if (t->name == NULL) {
        unknown_algorithm(p, word);
    }
    p->theirs = t;
}

/* Text: numbers between spaces and comments. */

static uint64_t next_number(struct parser *p, uint64_t most, const char *what)
{
    (void)ibshift_text_skip(&p->text, false, '#');
    return ibshift_text_number(&p->text, most, what);
}

/* A rule holds up to the next one of its collective, ranks or bytes. */
static void read_message_rules(struct parser *p, uint64_t ranks, uint64_t messages)
{
    size_t first = p->rules->count;
    uint64_t least = 0;

    for (uint64_t i = 0; p->text.rc == 0 && i < messages; i++) {
        uint64_t bytes = next_number(p, UINT64_MAX, "a message size");
        uint64_t algorithm = next_number(p, INT32_MAX, "an algorithm");
        uint64_t fanout = next_number(p, IBSHIFT_RADIX_MAX + 1, "a fan-out");
        uint64_t segment = next_number(p, UINT32_MAX, "a segment size");

        if (p->text.rc == 0 &&
            ibshift_text_skip(&p->text, true,
                              '#')) { /* a window, of version 2; ours is a parameter */
            (void)ibshift_text_number(&p->text, INT32_MAX, "a number of requests");
        }
        if (i > 0 && bytes <= least) {
            ibshift_text_fail(&p->text, "message sizes must ascend: %llu after %llu",
                              (unsigned long long)bytes, (unsigned long long)least);
        }
        if (p->rules->count > first) {
            p->rules->all[p->rules->count - 1].bytes_max = bytes - 1;
        }
        least = bytes;
        p->rule = (struct ibshift_rule){.ranks_min = ranks,
                                        .ranks_max = UINT64_MAX,
                                        .bytes_min = bytes,
                                        .bytes_max = UINT64_MAX,
                                        .wish = {.radix = (uint32_t)fanout, .segment = segment}};
        take_number(p, algorithm);
        add_rule(p);
    }
}

static void read_text_collective(struct parser *p)
{
    size_t before = p->rules->count;
    uint64_t sizes, least = 0;

    p->row = &ibshift_rules_collectives[next_number(p, IBSHIFT_RULES_COLLECTIVES - 1,
                                                    "the number of a collective")];
    sizes = next_number(p, RULES_MOST, "a number of communicator sizes");
    for (uint64_t i = 0; p->text.rc == 0 && i < sizes; i++) {
        size_t first = p->rules->count;
        uint64_t ranks = next_number(p, UINT32_MAX, "a communicator size");
        uint64_t messages = next_number(p, RULES_MOST, "a number of message sizes");

        if (i > 0 && ranks <= least) {
            ibshift_text_fail(&p->text, "communicator sizes must ascend: %llu after %llu",
                              (unsigned long long)ranks, (unsigned long long)least);
        }
        least = ranks;
        for (size_t rule = before; rule < first; rule++) {
            if (p->rules->all[rule].ranks_max == UINT64_MAX) {
                p->rules->all[rule].ranks_max = ranks - 1;
            }
        }
        read_message_rules(p, ranks, messages);
    }
}

static void read_text(struct parser *p)
{
    static const char version[] = "rule-file-version-";
    uint64_t count;

    (void)ibshift_text_skip(&p->text, false, '#');
    if ((size_t)(p->text.end - p->text.at) > strlen(version) &&
        strncmp(p->text.at, version, strlen(version)) == 0) {
        p->text.at += strlen(version);
        (void)ibshift_text_number(&p->text, 2, "the version");
    }
    count = next_number(p, IBSHIFT_RULES_COLLECTIVES, "the number of collectives");
    for (uint64_t i = 0; p->text.rc == 0 && i < count; i++) {
        read_text_collective(p);
    }
    if (ibshift_text_skip(&p->text, false, '#')) {
        ibshift_text_fail(&p->text, "more than the %llu collectives it announces",
                          (unsigned long long)count);
    }
}

/* JSON. */

/* A number, or "inf". */
static uint64_t read_limit(struct parser *p, const char *what)
{
    char word[IBSHIFT_TEXT_WORD];

    if (!ibshift_text_skip(&p->text, false, '\0') || *p->text.at != '"') {
        return ibshift_text_number(&p->text, UINT64_MAX, what);
    }
    ibshift_text_word(&p->text, word);
    if (strncasecmp(word, "inf", 3) != 0) {
        ibshift_text_fail(&p->text, "%s must be a whole number or \"inf\", not '%s'", what, word);
    }
    return UINT64_MAX;
}

static void read_rule_member(void *context, const char *key)
{
    struct parser *p = context;
    struct ibshift_rule *rule = &p->rule;
    char word[IBSHIFT_TEXT_WORD];

    (void)ibshift_text_skip(&p->text, false, '\0');
    if (strcmp(key, "msg_size_min") == 0) {
        rule->bytes_min = read_limit(p, key);
    } else if (strcmp(key, "msg_size_max") == 0) {
        rule->bytes_max = read_limit(p, key);
    } else if (strcmp(key, "seg_size") == 0) {
        rule->wish.segment = ibshift_text_number(&p->text, UINT32_MAX, key);
    } else if (strcmp(key, "faninout") == 0) {
        rule->wish.radix = (uint32_t)ibshift_text_number(&p->text, IBSHIFT_RADIX_MAX + 1, key);
    } else if (strcmp(key, "alg") != 0) {
        ibshift_text_skip_value(&p->text);
    } else if (p->text.at < p->text.end && *p->text.at == '"') {
        ibshift_text_word(&p->text, word);
        p->has_algorithm = true;
        if (p->text.rc == 0) {
            take_name(p, word);
        }
    } else {
        p->has_algorithm = true;
        take_number(p, ibshift_text_number(&p->text, INT32_MAX, key));
    }
}

static void read_json_rule(void *context)
{
    struct parser *p = context;
    p->rule = (struct ibshift_rule){.bytes_max = UINT64_MAX};
    p->theirs = NULL;
    p->has_algorithm = false;
    ibshift_text_object(&p->text, read_rule_member, p);
    if (!p->has_algorithm) {
        ibshift_text_fail(&p->text, "a rule of %s has no \"alg\"", p->row->name);
    }
    add_rule(p);
}

static void read_spread(struct parser *p)
{
    static const char *const spreads[] = {"any", "one-per-node", "single-node"};
    char word[IBSHIFT_TEXT_WORD];
    int which = 0;

    ibshift_text_word(&p->text, word);
    while (which < 3 && strcmp(spreads[which], word) != 0) {
        which++;
    }
    if (which == 3) {
        ibshift_text_fail(&p->text,
                          "comm_rank_distribution must be any, one-per-node or single-node, "
                          "not '%.40s'",
                          word);
    }
    p->spread = (enum ibshift_rule_spread)which;
}

static void read_comm_member(void *context, const char *key)
{
    struct parser *p = context;
    if (strcmp(key, "comm_size_min") == 0) {
        p->ranks_min = read_limit(p, key);
    } else if (strcmp(key, "comm_size_max") == 0) {
        p->ranks_max = read_limit(p, key);
    } else if (strcmp(key, "comm_rank_distribution") == 0) {
        read_spread(p);
    } else if (strcmp(key, "rules") == 0) {
        ibshift_text_array(&p->text, read_json_rule, p);
    } else {
        ibshift_text_skip_value(&p->text);
    }
}

/* Members of a communicator's entry in any order: the bounds are set when all are known. */
static void read_comm_rule(void *context)
{
    struct parser *p = context;
    size_t first = p->rules->count;

    p->ranks_min = 0;
    p->ranks_max = UINT64_MAX;
    p->spread = IBSHIFT_SPREAD_ANY;
    ibshift_text_object(&p->text, read_comm_member, p);
    for (size_t i = first; i < p->rules->count; i++) {
        p->rules->all[i].ranks_min = p->ranks_min;
        p->rules->all[i].ranks_max = p->ranks_max;
        p->rules->all[i].spread = p->spread;
    }
}

static void read_collective(void *context, const char *name)
{
    struct parser *p = context;
    int which = 0;

    while (which < IBSHIFT_RULES_COLLECTIVES &&
           strcmp(ibshift_rules_collectives[which].name, name) != 0) {
        which++;
    }
    if (which == IBSHIFT_RULES_COLLECTIVES) {
        ibshift_text_fail(&p->text,
                          "no collective is called '%s'; names as in MPI, in small letters", name);
        return;
    }
    p->row = &ibshift_rules_collectives[which];
    ibshift_text_array(&p->text, read_comm_rule, p);
}

static void read_file_member(void *context, const char *key)
{
    struct parser *p = context;
    bool is_theirs = strcmp(key, IBSHIFT_RULES_THEIRS) == 0;

    if (is_theirs || strcmp(key, IBSHIFT_RULES_OURS) == 0) {
        p->has_collectives |= is_theirs;
        ibshift_text_object(&p->text, read_collective, p);
    } else {
        ibshift_text_skip_value(&p->text);
    }
}

static void read_json(struct parser *p)
{
    ibshift_text_object(&p->text, read_file_member, p);
    if (ibshift_text_skip(&p->text, false, '\0')) {
        ibshift_text_fail(&p->text, "something follows the end of the object");
    }
    if (!p->has_collectives) {
        ibshift_text_fail(&p->text, "has no \"collectives\": this is not a file of rules");
    }
}

int ibshift_rules_parse(const char *text, size_t length, const char *name,
                        struct ibshift_rules *rules, char *error)
{
    struct parser p = {
        .text = {.name = name, .at = text, .end = text + length, .line = 1, .error = error},
        .rules = rules};

    *rules = (struct ibshift_rules){.count = 0};
    if (memchr(text, '\0', length) != NULL) {
        ibshift_text_fail(&p.text, "holds a zero byte: this is not a text file");
    } else if (ibshift_text_skip(&p.text, false, '#') && *p.text.at == '{') {
        read_json(&p);
    } else {
        read_text(&p);
    }
    if (p.text.rc != 0) {
        ibshift_rules_free(rules);
    }
    return p.text.rc;
}

int ibshift_rules_read(const char *path, struct ibshift_rules *rules, char *error)
{
    char *text;
    size_t length;
    int rc = ibshift_text_read(path, FILE_LIMIT, "file of rules", &text, &length, error);

    *rules = (struct ibshift_rules){.count = 0};
    if (rc == 0) {
        rc = ibshift_rules_parse(text, length, path, rules, error);
        free(text);
    }
    return rc;
}

void ibshift_rules_free(struct ibshift_rules *rules)
{
    free(rules->all);
    *rules = (struct ibshift_rules){.count = 0};
}

static bool is_spread(enum ibshift_rule_spread spread, uint32_t ranks, uint32_t nodes)
{
    return spread == IBSHIFT_SPREAD_ANY || nodes == (spread == IBSHIFT_SPREAD_ONE_NODE ? 1 : ranks);
}

const struct ibshift_rule *ibshift_rules_find(const struct ibshift_rules *rules,
                                              enum ibshift_collective collective, uint32_t needs,
                                              uint32_t ranks, uint32_t nodes, uint64_t bytes)
{
    uint64_t total = ibshift_collective_has_vector(collective) ? bytes : bytes * ranks;

    for (size_t i = 0; i < rules->count; i++) {
        const struct ibshift_rule *rule = &rules->all[i];

        if (rule->collective == collective && rule->is_vector == (needs != 0) &&
            ranks >= rule->ranks_min && ranks <= rule->ranks_max && total >= rule->bytes_min &&
            total <= rule->bytes_max && is_spread(rule->spread, ranks, nodes)) {
            return rule;
        }
    }
    return NULL;
}

struct ibshift_wish ibshift_rules_wish(const struct ibshift_question *question)
{
    const struct ibshift_rule *rule = ibshift_rules_find(
        question->rules, question->collective, question->needs, question->plan->ranks,
        ibshift_nodes_count(question->plan), question->bytes);

    return rule != NULL && rule->wish.alg != NULL ? rule->wish : question->wish;
}

uint64_t ibshift_rules_digest(const struct ibshift_rules *rules, uint64_t sum)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct ibshift_rule *rule = &rules->all[i];
        const uint64_t all[] = {rule->collective, rule->is_vector,
                                rule->spread,     rule->ranks_min,
                                rule->ranks_max,  rule->bytes_min,
                                rule->bytes_max,  (uint64_t)ibshift_alg_place(rule->wish.alg),
                                rule->wish.radix, rule->wish.segment};

        sum = ibshift_digest(sum, all, sizeof(all));
    }
    return sum;
}
