#include "choose/rules.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choose/digest.h"
#include "choose/rules_names.h"
#include "choose/size.h"
#include "choose/text.h"

enum { FILE_LIMIT = 1 << 22, RULES_MOST = 1 << 16, WORD = 64, DEPTH_MOST = 32 };

struct parser {
    const char *name, *at, *end;
    int line;
    struct ibshift_rules *rules;
    char *error;
};

__attribute__((format(printf, 2, 3))) static int fail(const struct parser *p, const char *format,
                                                      ...)
{
    int used = snprintf(p->error, IBSHIFT_RULES_ERROR_SIZE,
                        p->line > 0 ? "%.100s:%d: " : "%.100s: ", p->name, p->line);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(p->error + used, IBSHIFT_RULES_ERROR_SIZE - (size_t)used, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

static int unknown_algorithm(const struct parser *p, int which, const char *word)
{
    struct ibshift_nearest nearest = {.word = word};

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        if (ibshift_alg_table[i]->collective == ibshift_rules_collectives[which].collective) {
            ibshift_nearest_compare(&nearest, ibshift_alg_table[i]->name);
        }
    }
    for (const struct ibshift_theirs *t = ibshift_rules_algorithms[which]; t->name != NULL; t++) {
        ibshift_nearest_compare(&nearest, t->name);
    }
    return nearest.alike > 0 ? fail(p, "%s has no algorithm '%.40s'; the nearest is '%s'",
                                    ibshift_rules_collectives[which].name, word, nearest.name)
                             : fail(p, "%s has no algorithm '%.40s'; ibshift plan list shows ours",
                                    ibshift_rules_collectives[which].name, word);
}

static int add_rule(struct parser *p, int which, const struct ibshift_rule *rule)
{
    struct ibshift_rules *rules = p->rules;
    struct ibshift_rule *grown = rules->all;

    if (ibshift_rules_collectives[which].collective == IBSHIFT_COLLECTIVES) {
        return 0;
    }
    if (rules->count == RULES_MOST) {
        return fail(p, "more than %d rules", RULES_MOST);
    }
    if ((rules->count & (rules->count - 1)) == 0) { /* room for as many again */
        grown = realloc(rules->all, (rules->count > 0 ? 2 * rules->count : 1) * sizeof(*grown));
        if (grown == NULL) {
            fail(p, "out of memory");
            return -ENOMEM;
        }
    }
    rules->all = grown;
    rules->all[rules->count] = *rule;
    rules->all[rules->count].collective = ibshift_rules_collectives[which].collective;
    rules->all[rules->count].is_vector = ibshift_rules_collectives[which].is_vector;
    rules->count++;
    return 0;
}

/* theirs: of the table; faninout and segment are in the wish already. */
static void take_theirs(struct parser *p, int which, const struct ibshift_theirs *theirs,
                        struct ibshift_wish *wish)
{
    uint32_t fanout = wish->radix;

    wish->alg = theirs->ours[0] != '\0'
                    ? ibshift_alg_find(ibshift_rules_collectives[which].collective, theirs->ours)
                    : NULL;
    wish->radix = theirs->radix > 0 ? theirs->radix
                  : fanout > 1      ? fanout - 1
                                    : 0; /* a base is one more */
    p->rules->foreign += wish->alg == NULL;
}

static int take_number(struct parser *p, int which, uint64_t number, struct ibshift_wish *wish)
{
    const struct ibshift_theirs *t = ibshift_rules_algorithms[which];

    if (number == 0) { /* decided as without a rule */
        *wish = (struct ibshift_wish){.alg = NULL};
        return 0;
    }
    for (uint64_t i = 1; i < number && t->name != NULL; i++) {
        t++;
    }
    if (t->name == NULL) {
        return fail(p, "%s has no algorithm %llu; tuned's last is %td",
                    ibshift_rules_collectives[which].name, (unsigned long long)number,
                    t - ibshift_rules_algorithms[which]);
    }
    take_theirs(p, which, t, wish);
    return 0;
}

static int take_name(struct parser *p, int which, const char *word, struct ibshift_wish *wish)
{
    if (strcmp(word, "ignore") == 0) {
        return take_number(p, which, 0, wish);
    }
    if (ibshift_rules_collectives[which].collective != IBSHIFT_COLLECTIVES) {
        wish->alg = ibshift_alg_find(ibshift_rules_collectives[which].collective, word);
    }
    if (wish->alg != NULL) {
        return 0;
    }
    for (const struct ibshift_theirs *t = ibshift_rules_algorithms[which]; t->name != NULL; t++) {
        if (strcmp(t->name, word) == 0) {
            take_theirs(p, which, t, wish);
            return 0;
        }
    }
    return unknown_algorithm(p, which, word);
}

/* Text: numbers between spaces and comments. */

/* To the next token; false: only the end of the line, where that is asked for, or of the file. */
static bool skip(struct parser *p, bool is_line, char comment)
{
    for (; p->at < p->end; p->at++) {
        if (*p->at == comment && comment != '\0') {
            while (p->at + 1 < p->end && p->at[1] != '\n') {
                p->at++;
            }
        } else if (*p->at == '\n') {
            if (is_line) {
                return false;
            }
            p->line++;
        } else if (!isspace((unsigned char)*p->at)) {
            return true;
        }
    }
    return false;
}

static int read_number(struct parser *p, uint64_t most, const char *what, uint64_t *number)
{
    uint64_t value = 0;

    if (p->at == p->end || *p->at < '0' || *p->at > '9') {
        return fail(p, p->at == p->end ? "ends where %s should be" : "%s must be a whole number",
                    what);
    }
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++) {
        unsigned digit = (unsigned)(*p->at - '0');

        if (digit > most || value > (most - digit) / 10) {
            return fail(p, "%s must be at most %llu", what, (unsigned long long)most);
        }
        value = value * 10 + digit;
    }
    *number = value;
    return 0;
}

static int next_number(struct parser *p, uint64_t most, const char *what, uint64_t *number)
{
    (void)skip(p, false, '#');
    return read_number(p, most, what, number);
}

/* A rule holds up to the next one of its collective, ranks or bytes. */
static int read_message_rules(struct parser *p, int which, uint64_t ranks, uint64_t messages)
{
    uint64_t bytes, algorithm, fanout, segment, requests, least = 0;
    size_t first = p->rules->count;
    int rc = 0;

    for (uint64_t i = 0; rc == 0 && i < messages; i++) {
        struct ibshift_rule rule = {
            .ranks_min = ranks, .ranks_max = UINT64_MAX, .bytes_max = UINT64_MAX};

        rc = next_number(p, UINT64_MAX, "a message size", &bytes);
        rc = rc == 0 ? next_number(p, INT32_MAX, "an algorithm", &algorithm) : rc;
        rc = rc == 0 ? next_number(p, IBSHIFT_RADIX_MAX + 1, "a fan-out", &fanout) : rc;
        rc = rc == 0 ? next_number(p, UINT32_MAX, "a segment size", &segment) : rc;
        if (rc == 0 && skip(p, true, '#')) { /* a window, of version 2; ours is a parameter */
            rc = read_number(p, INT32_MAX, "a number of requests", &requests);
        }
        if (rc == 0 && i > 0 && bytes <= least) {
            rc = fail(p, "message sizes must ascend: %llu after %llu", (unsigned long long)bytes,
                      (unsigned long long)least);
        }
        if (rc != 0) {
            return rc;
        }
        if (p->rules->count > first) {
            p->rules->all[p->rules->count - 1].bytes_max = bytes - 1;
        }
        least = rule.bytes_min = bytes;
        rule.wish = (struct ibshift_wish){.radix = (uint32_t)fanout, .segment = segment};
        rc = take_number(p, which, algorithm, &rule.wish);
        rc = rc == 0 ? add_rule(p, which, &rule) : rc;
    }
    return rc;
}

static int read_text_collective(struct parser *p)
{
    uint64_t which, sizes, ranks, messages, least = 0;
    size_t before = p->rules->count;
    int rc = next_number(p, IBSHIFT_RULES_COLLECTIVES - 1, "the number of a collective", &which);

    rc = rc == 0 ? next_number(p, RULES_MOST, "a number of communicator sizes", &sizes) : rc;
    for (uint64_t i = 0; rc == 0 && i < sizes; i++) {
        size_t first = p->rules->count;

        rc = next_number(p, UINT32_MAX, "a communicator size", &ranks);
        rc = rc == 0 ? next_number(p, RULES_MOST, "a number of message sizes", &messages) : rc;
        if (rc == 0 && i > 0 && ranks <= least) {
            rc = fail(p, "communicator sizes must ascend: %llu after %llu",
                      (unsigned long long)ranks, (unsigned long long)least);
        }
        least = ranks;
        for (size_t rule = before; rc == 0 && rule < first; rule++) {
            if (p->rules->all[rule].ranks_max == UINT64_MAX) {
                p->rules->all[rule].ranks_max = ranks - 1;
            }
        }
        rc = rc == 0 ? read_message_rules(p, (int)which, ranks, messages) : rc;
    }
    return rc;
}

static int read_text(struct parser *p)
{
    static const char version[] = "rule-file-version-";
    uint64_t count, number;
    int rc = 0;

    (void)skip(p, false, '#');
    if ((size_t)(p->end - p->at) > strlen(version) &&
        strncmp(p->at, version, strlen(version)) == 0) {
        p->at += strlen(version);
        rc = read_number(p, 2, "the version", &number);
    }
    rc = rc == 0 ? next_number(p, IBSHIFT_RULES_COLLECTIVES, "the number of collectives", &count)
                 : rc;
    for (uint64_t i = 0; rc == 0 && i < count; i++) {
        rc = read_text_collective(p);
    }
    return rc == 0 && skip(p, false, '#')
               ? fail(p, "more than the %llu collectives it announces", (unsigned long long)count)
               : rc;
}

/* JSON, as much of it as rules need. */

static int expect(struct parser *p, char wanted)
{
    if (!skip(p, false, '\0') || *p->at != wanted) {
        return fail(p, "a '%c' is missing here", wanted);
    }
    p->at++;
    return 0;
}

/* After one member: 1 for another one, 0 at the end. */
static int next_member(struct parser *p, char end)
{
    if (!skip(p, false, '\0') || (*p->at != ',' && *p->at != end)) {
        return fail(p, "a ',' or '%c' is missing here", end);
    }
    return *p->at++ == ',';
}

static bool is_empty(struct parser *p, char end)
{
    if (skip(p, false, '\0') && *p->at == end) {
        p->at++;
        return true;
    }
    return false;
}

/* Without escapes: no name here has any. */
static int read_word(struct parser *p, char word[WORD])
{
    size_t length = 0;
    int rc = expect(p, '"');

    while (rc == 0 && p->at < p->end && *p->at != '"') {
        if (*p->at == '\\' || *p->at == '\n' || length == WORD - 1) {
            return fail(p, "a text with an escape, or longer than %d letters", WORD - 1);
        }
        word[length++] = *p->at++;
    }
    word[length] = '\0';
    return rc == 0 ? expect(p, '"') : rc;
}

/* Of any length, with escapes: nobody reads it. */
static int skip_text(struct parser *p)
{
    for (p->at++; p->at < p->end && *p->at != '"' && *p->at != '\n'; p->at++) {
        p->at += *p->at == '\\' && p->at + 1 < p->end && p->at[1] != '\n';
    }
    if (p->at == p->end || *p->at != '"') {
        return fail(p, "a text that does not end in its line");
    }
    p->at++;
    return 0;
}

static int skip_value(struct parser *p)
{
    int depth = 0;

    do {
        if (!skip(p, false, '\0')) {
            return fail(p, "ends within a value");
        }
        if (*p->at == '"') {
            int rc = skip_text(p);

            if (rc != 0) {
                return rc;
            }
            continue;
        }
        depth += *p->at == '{' || *p->at == '[';
        depth -= *p->at == '}' || *p->at == ']';
        if (depth < 0 || depth > DEPTH_MOST) {
            return fail(p, depth < 0 ? "a value is missing here" : "nested more than %d times",
                        DEPTH_MOST);
        }
        if (*p->at == ',' && depth == 0) {
            return fail(p, "a value is missing here");
        }
        if (strchr("{}[],:", *p->at) != NULL) {
            p->at++;
            continue;
        }
        while (p->at < p->end && strchr("{}[],: \t\r\n", *p->at) == NULL) {
            p->at++;
        }
    } while (depth > 0);
    return 0;
}

/* A number, or "inf". */
static int read_limit(struct parser *p, const char *what, uint64_t *number)
{
    char word[WORD];
    int rc;

    (void)skip(p, false, '\0');
    if (p->at == p->end || *p->at != '"') {
        return read_number(p, UINT64_MAX, what, number);
    }
    rc = read_word(p, word);
    if (rc == 0 && strncmp(word, "inf", 3) != 0 && strncmp(word, "Inf", 3) != 0 &&
        strncmp(word, "INF", 3) != 0) {
        return fail(p, "%s must be a whole number or \"inf\", not '%s'", what, word);
    }
    *number = UINT64_MAX;
    return rc;
}

/* The algorithm is looked up when all members are known. */
struct json_rule {
    struct ibshift_rule rule;
    bool has_alg, is_named;
    uint64_t number;
    char name[WORD];
    int line;
};

static int read_rule_member(struct parser *p, const char *key, struct json_rule *r)
{
    uint64_t number = 0;
    int rc;

    if (strcmp(key, "msg_size_min") == 0) {
        return read_limit(p, key, &r->rule.bytes_min);
    }
    if (strcmp(key, "msg_size_max") == 0) {
        return read_limit(p, key, &r->rule.bytes_max);
    }
    if (strcmp(key, "seg_size") == 0) {
        (void)skip(p, false, '\0');
        return read_number(p, UINT32_MAX, key, &r->rule.wish.segment);
    }
    if (strcmp(key, "faninout") == 0) {
        (void)skip(p, false, '\0');
        rc = read_number(p, IBSHIFT_RADIX_MAX + 1, key, &number);
        r->rule.wish.radix = (uint32_t)number;
        return rc;
    }
    if (strcmp(key, "alg") == 0) {
        (void)skip(p, false, '\0');
        r->has_alg = true;
        r->line = p->line;
        r->is_named = p->at < p->end && *p->at == '"';
        return r->is_named ? read_word(p, r->name) : read_number(p, INT32_MAX, "alg", &r->number);
    }
    return skip_value(p);
}

static int read_json_rule(struct parser *p, int which, const struct ibshift_rule *outer)
{
    struct json_rule r = {.rule = *outer};
    char key[WORD];
    int rc = expect(p, '{'), more = rc == 0 && !is_empty(p, '}');

    while (rc == 0 && more > 0) {
        rc = read_word(p, key);
        rc = rc == 0 ? expect(p, ':') : rc;
        rc = rc == 0 ? read_rule_member(p, key, &r) : rc;
        more = rc == 0 ? next_member(p, '}') : 0;
        rc = more < 0 ? more : rc;
    }
    if (rc == 0 && !r.has_alg) {
        rc = fail(p, "a rule of %s has no \"alg\"", ibshift_rules_collectives[which].name);
    }
    if (rc == 0) {
        int line = p->line;

        p->line = r.line;
        rc = r.is_named ? take_name(p, which, r.name, &r.rule.wish)
                        : take_number(p, which, r.number, &r.rule.wish);
        p->line = line;
    }
    return rc == 0 ? add_rule(p, which, &r.rule) : rc;
}

/* Members of a communicator's entry in any order: the bounds are set when all are known. */
static int read_comm_rule(struct parser *p, int which)
{
    struct ibshift_rule outer = {.ranks_max = UINT64_MAX, .bytes_max = UINT64_MAX};
    size_t first = p->rules->count;
    char key[WORD];
    int rc = expect(p, '{'), more = rc == 0 && !is_empty(p, '}');

    while (rc == 0 && more > 0) {
        rc = read_word(p, key);
        rc = rc == 0 ? expect(p, ':') : rc;
        if (rc == 0 && strcmp(key, "comm_size_min") == 0) {
            rc = read_limit(p, key, &outer.ranks_min);
        } else if (rc == 0 && strcmp(key, "comm_size_max") == 0) {
            rc = read_limit(p, key, &outer.ranks_max);
        } else if (rc == 0 && strcmp(key, "rules") == 0) {
            int inner;

            rc = expect(p, '[');
            inner = rc == 0 && !is_empty(p, ']');
            while (rc == 0 && inner > 0) {
                rc = read_json_rule(p, which, &outer);
                inner = rc == 0 ? next_member(p, ']') : 0;
                rc = inner < 0 ? inner : rc;
            }
        } else if (rc == 0) {
            rc = skip_value(p);
        }
        more = rc == 0 ? next_member(p, '}') : 0;
        rc = more < 0 ? more : rc;
    }
    for (size_t i = first; i < p->rules->count; i++) {
        p->rules->all[i].ranks_min = outer.ranks_min;
        p->rules->all[i].ranks_max = outer.ranks_max;
    }
    return rc;
}

static int read_json_collectives(struct parser *p)
{
    char name[WORD];
    int rc = expect(p, '{'), more = rc == 0 && !is_empty(p, '}');

    while (rc == 0 && more > 0) {
        int which = 0, inner;

        rc = read_word(p, name);
        while (rc == 0 && which < IBSHIFT_RULES_COLLECTIVES &&
               strcmp(ibshift_rules_collectives[which].name, name) != 0) {
            which++;
        }
        if (rc == 0 && which == IBSHIFT_RULES_COLLECTIVES) {
            return fail(p, "no collective is called '%s'; names as in MPI, in small letters", name);
        }
        rc = rc == 0 ? expect(p, ':') : rc;
        rc = rc == 0 ? expect(p, '[') : rc;
        inner = rc == 0 && !is_empty(p, ']');
        while (rc == 0 && inner > 0) {
            rc = read_comm_rule(p, which);
            inner = rc == 0 ? next_member(p, ']') : 0;
            rc = inner < 0 ? inner : rc;
        }
        more = rc == 0 ? next_member(p, '}') : 0;
        rc = more < 0 ? more : rc;
    }
    return rc;
}

static int read_json(struct parser *p)
{
    bool has_collectives = false;
    char key[WORD];
    int rc = expect(p, '{'), more = rc == 0 && !is_empty(p, '}');

    while (rc == 0 && more > 0) {
        rc = read_word(p, key);
        rc = rc == 0 ? expect(p, ':') : rc;
        if (rc == 0 && strcmp(key, "collectives") == 0) {
            has_collectives = true;
            rc = read_json_collectives(p);
        } else if (rc == 0) {
            rc = skip_value(p);
        }
        more = rc == 0 ? next_member(p, '}') : 0;
        rc = more < 0 ? more : rc;
    }
    if (rc == 0 && skip(p, false, '\0')) {
        rc = fail(p, "something follows the end of the object");
    }
    return rc == 0 && !has_collectives
               ? fail(p, "has no \"collectives\": this is not a file of rules")
               : rc;
}

int ibshift_rules_parse(const char *text, size_t length, const char *name,
                        struct ibshift_rules *rules, char *error)
{
    struct parser p = {
        .name = name, .at = text, .end = text + length, .line = 1, .rules = rules, .error = error};
    int rc;

    *rules = (struct ibshift_rules){.count = 0};
    if (memchr(text, '\0', length) != NULL) {
        rc = fail(&p, "holds a zero byte: this is not a text file");
    } else {
        rc = skip(&p, false, '#') && *p.at == '{' ? read_json(&p) : read_text(&p);
    }
    if (rc != 0) {
        ibshift_rules_free(rules);
    }
    return rc;
}

int ibshift_rules_read(const char *path, struct ibshift_rules *rules, char *error)
{
    char *text;
    size_t length;
    int rc = ibshift_text_read(path, FILE_LIMIT, "file of rules", &text, &length, error,
                               IBSHIFT_RULES_ERROR_SIZE);

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

const struct ibshift_rule *ibshift_rules_find(const struct ibshift_rules *rules,
                                              enum ibshift_collective collective, uint32_t needs,
                                              uint32_t ranks, uint64_t bytes)
{
    uint64_t total = ibshift_collective_has_vector(collective) ? bytes : bytes * ranks;

    for (size_t i = 0; i < rules->count; i++) {
        const struct ibshift_rule *rule = &rules->all[i];

        if (rule->collective == collective && rule->is_vector == (needs != 0) &&
            ranks >= rule->ranks_min && ranks <= rule->ranks_max && total >= rule->bytes_min &&
            total <= rule->bytes_max) {
            return rule;
        }
    }
    return NULL;
}

uint64_t ibshift_rules_digest(const struct ibshift_rules *rules, uint64_t sum)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct ibshift_rule *rule = &rules->all[i];
        const uint64_t all[] = {rule->collective,
                                rule->is_vector,
                                rule->ranks_min,
                                rule->ranks_max,
                                rule->bytes_min,
                                rule->bytes_max,
                                (uint64_t)ibshift_alg_place(rule->wish.alg),
                                rule->wish.radix,
                                rule->wish.segment};

        sum = ibshift_digest(sum, all, sizeof(all));
    }
    return sum;
}
