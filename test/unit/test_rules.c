/* Selection files of others, read as wishes; each wrong line with its number. */
#include <stdio.h>
#include <string.h>

#include "choose/digest.h"
#include "choose/rules.h"
#include "unit.h"

static int parse(const char *text, struct ibshift_rules *rules, char *error)
{
    return ibshift_rules_parse(text, strlen(text), "rules", rules, error);
}

static const char *found(const struct ibshift_rules *rules, enum ibshift_collective collective,
                         uint32_t needs, uint32_t ranks, uint64_t bytes)
{
    const struct ibshift_rule *rule =
        ibshift_rules_find(rules, collective, needs, ranks, ranks, bytes);

    return rule == NULL ? "no rule" : rule->wish.alg == NULL ? "chosen" : rule->wish.alg->name;
}

static void text_is_read(void **state)
{
    static const char text[] = "rule-file-version-2 # as in Open MPI 5\n"
                               "2 # collectives\n"
                               "3 # alltoall\n"
                               "2 # communicator sizes\n"
                               "4 3\n"
                               "0 3 0 0\n"
                               "1024 2 0 0 64 # five numbers\n"
                               "4096 0 0 0\n"
                               "16 1\n"
                               "0 1 0 0\n"
                               "7 1 8 2\n"
                               "0 6 0 0\n"
                               "65536 3 0 8192\n";
    struct ibshift_rules rules;
    char error[IBSHIFT_TEXT_ERROR];
    const struct ibshift_rule *rule;

    assert_int_equal(parse(text, &rules, error), 0);
    assert_int_equal(rules.count, 6);
    assert_string_equal(found(&rules, IBSHIFT_ALLTOALL, 0, 3, 8), "no rule");
    assert_string_equal(found(&rules, IBSHIFT_ALLTOALL, 0, 4, 8), "bruck");
    assert_string_equal(found(&rules, IBSHIFT_ALLTOALL, 0, 4, 255), "bruck"); /* 1020 in all */
    assert_string_equal(found(&rules, IBSHIFT_ALLTOALL, 0, 4, 256), "pairwise");
    assert_string_equal(found(&rules, IBSHIFT_ALLTOALL, 0, 15, 1024), "chosen");
    assert_string_equal(found(&rules, IBSHIFT_ALLTOALL, 0, 16, 1024), "linear");
    assert_string_equal(found(&rules, IBSHIFT_ALLTOALL, IBSHIFT_ALG_SIZES, 16, 8), "no rule");
    assert_string_equal(found(&rules, IBSHIFT_BCAST, 0, 8, 65535), "knomial");
    rule = ibshift_rules_find(&rules, IBSHIFT_BCAST, 0, 8, 8, 65536);
    assert_string_equal(rule->wish.alg->name, "chain");
    assert_int_equal(rule->wish.segment, 8192);
    ibshift_rules_free(&rules);
}

static const char json[] =
    "{ \"rule_file_version\": 3, \"module\": \"tuned\",\n"
    "  \"collectives\": {\n"
    "    \"allgatherv\": [ { \"rules\": [ { \"alg\": \"neighbor\" } ], \"comm_size_max\": 8 } ],\n"
    "    \"bcast\": [ { \"comm_size_min\": 4, \"comm_size_max\": \"inf\", \"remark\": [1, {\"a\": "
    "\"b\"}],\n"
    "      \"rules\": [ { \"msg_size_max\": 99, \"alg\": \"binomial\" },\n"
    "                 { \"faninout\": 4, \"alg\": \"knomial\", \"msg_size_min\": 100, "
    "\"msg_size_max\": 999 },\n"
    "                 { \"alg\": \"scatter_exchange\" } ] } ] } }\n";

static void json_is_read(void **state)
{
    struct ibshift_rules rules;
    char error[IBSHIFT_TEXT_ERROR];

    assert_int_equal(parse(json, &rules, error), 0);
    assert_string_equal(found(&rules, IBSHIFT_ALLGATHER, IBSHIFT_ALG_SIZES, 8, 1),
                        "neighbor_exchange");
    assert_string_equal(found(&rules, IBSHIFT_ALLGATHER, IBSHIFT_ALG_SIZES, 9, 1), "no rule");
    assert_string_equal(found(&rules, IBSHIFT_BCAST, 0, 3, 1), "no rule");
    assert_int_equal(ibshift_rules_find(&rules, IBSHIFT_BCAST, 0, 4, 4, 99)->wish.radix, 1);
    assert_int_equal(ibshift_rules_find(&rules, IBSHIFT_BCAST, 0, 4, 4, 100)->wish.radix, 4);
    assert_string_equal(found(&rules, IBSHIFT_BCAST, 0, 1000, 1000), "scatter_exchange");
    ibshift_rules_free(&rules);
}

/* Numbers 17 to 21, and where ibshift plan rules writes them. */
static void neighborhoods_are_read(void **state)
{
    static const char text[] = "2\n17 1\n4 2\n0 0 0 0\n64 0 0 0\n21 1\n2 1\n0 0 0 0\n";
    static const char ours[] =
        "{\"collectives\": {}, \"ibshift_collectives\": {\n"
        "\"gatherv\": [{\"rules\": [{\"alg\": \"linear\"}]}],\n"
        "\"neighbor_alltoall\": [{\"rules\": [{\"msg_size_max\": 64, \"alg\": \"linear\"}]}],\n"
        "\"neighbor_alltoallw\": [{\"rules\": [{\"alg\": \"ignore\"}]}]}}";
    struct ibshift_rules rules;
    char error[IBSHIFT_TEXT_ERROR];

    assert_int_equal(parse(text, &rules, error), 0);
    assert_int_equal(rules.count, 2);
    assert_string_equal(found(&rules, IBSHIFT_NEIGHBOR_ALLGATHER, 0, 4, 8), "chosen");
    ibshift_rules_free(&rules);
    assert_int_equal(parse(ours, &rules, error), 0);
    assert_string_equal(found(&rules, IBSHIFT_GATHER, IBSHIFT_ALG_SIZES, 4, 8), "linear");
    assert_string_equal(found(&rules, IBSHIFT_NEIGHBOR_ALLTOALL, 0, 4, 16), "linear");
    assert_string_equal(found(&rules, IBSHIFT_NEIGHBOR_ALLTOALL, 0, 4, 17), "no rule");
    ibshift_rules_free(&rules);
}

static void ranks_are_spread(void **state)
{
    static const char text[] =
        "{\"collectives\": {\"scan\": [\n"
        "{\"rules\": [{\"alg\": 1}], \"comm_rank_distribution\": \"single-node\"},\n"
        "{\"comm_rank_distribution\": \"one-per-node\", \"rules\": [{\"alg\": 2}]}]}}";
    struct ibshift_rules rules;
    char error[IBSHIFT_TEXT_ERROR];

    assert_int_equal(parse(text, &rules, error), 0);
    assert_string_equal(ibshift_rules_find(&rules, IBSHIFT_SCAN, 0, 4, 1, 8)->wish.alg->name,
                        "linear");
    assert_string_equal(ibshift_rules_find(&rules, IBSHIFT_SCAN, 0, 4, 4, 8)->wish.alg->name,
                        "recursive_doubling");
    assert_null(ibshift_rules_find(&rules, IBSHIFT_SCAN, 0, 4, 2, 8));
    ibshift_rules_free(&rules);
}

/* What is not read may be any text: "parameters" of ibshift plan rules is a path. */
static void what_is_ignored_may_be_any_text(void **state)
{
    char text[600], path[201], error[IBSHIFT_TEXT_ERROR];
    struct ibshift_rules rules;

    memset(path, 'p', sizeof(path));
    path[sizeof(path) - 1] = '\0';
    snprintf(text, sizeof(text),
             "{\"parameters\": \"%s\\\"\\u00e4\\\\\", \"collectives\":\n"
             "{\"scan\": [{\"rules\": [{\"remark\": \"%s\", \"alg\": \"linear\"}]}]}}",
             path, path);
    assert_int_equal(parse(text, &rules, error), 0);
    assert_string_equal(found(&rules, IBSHIFT_SCAN, 0, 4, 8), "linear");
    ibshift_rules_free(&rules);
}

static void what_is_wrong_has_its_line(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "rules:1: ends where the number of collectives should be"},
        {"1\n# none\n", "rules:3: ends where the number of a collective should be"},
        {"1\n22 1\n", "rules:2: the number of a collective must be at most 21"},
        {"1\n19 1\n4 1\n0 1 0 0\n", "rules:4: tuned has no algorithms of neighbor_alltoall"},
        {"{\"collectives\": {\"neighbor_alltoall\": [{\"rules\":\n[{\"alg\": \"pairwise\"}]}]}}",
         "rules:2: neighbor_alltoall has no algorithm 'pairwise'"},
        {"{\"collectives\": {},\n\"ibshift_collectives\": {\"neighbor_all\": []}}",
         "rules:2: no collective is called 'neighbor_all'"},
        {"{\"ibshift_collectives\": {}}", "rules:1: has no \"collectives\""},
        {"1\n3 1\n4 1\n0 x\n", "rules:4: an algorithm must be a whole number"},
        {"1\n3 1\n4 1\n0 9 0 0\n", "rules:4: alltoall has no algorithm 9; tuned's last is 5"},
        {"1\n3 1\n4 2\n8 1 0 0\n8 1 0 0\n", "rules:5: message sizes must ascend: 8 after 8"},
        {"1\n3 2\n4 1\n0 1 0 0\n4 1\n0 1 0 0\n", "communicator sizes must ascend: 4 after 4"},
        {"1\n3 1\n4 1\n0 1 99 0\n", "rules:4: a fan-out must be at most 17"},
        {"0\n5\n", "rules:2: more than the 0 collectives it announces"},
        {"rule-file-version-7\n", "rules:1: the version must be at most 2"},
        {"{}", "rules:1: has no \"collectives\": this is not a file of rules"},
        {"{\"collectives\": {\"bcst\": []}}", "no collective is called 'bcst'"},
        {"{\"collectives\":\n{\"bcast\": [{\"rules\": [\n{\"alg\":\n\"scater_exchange\"\n}]}]}}",
         "rules:4: bcast has no algorithm 'scater_exchange'; the nearest is 'scatter_allgather'"},
        {"{\"collectives\": {\"scan\": [{\"rules\": [{\"alg\": \"qqq\"}]}]}}",
         "scan has no algorithm 'qqq'; ibshift plan list shows ours"},
        {"{\"collectives\": {\"scan\": [{\"rules\": [{}]}]}}", "a rule of scan has no \"alg\""},
        {"{\"collectives\": {\"scan\": [{\"rules\": [{\"alg\": 1,}]}]}}", "a '\"' is missing"},
        {"{\"collectives\": {\"scan\": [{\"rules\": [{\"msg_size_max\": \"much\"}]}]}}",
         "msg_size_max must be a whole number or \"inf\", not 'much'"},
        {"{\"collectives\": {\"scan\": [{\"comm_rank_distribution\": \"packed\"}]}}",
         "must be any, one-per-node or single-node, not 'packed'"},
        {"{\"collectives\": {\"scan\": [", "a '{' is missing here"},
        {"{\"other\": [[[", "ends within a value"},
        {"{\"other\": [\n\"text\\", "rules:2: a text that does not end"},
        {"{\"other\":\n\"text\n\"}", "rules:2: a text that does not end"},
        {"{\"other\": }", "a value is missing here"},
        {"{\"collectives\": {}} more", "something follows the end of the object"},
    };
    struct ibshift_rules rules;
    char error[IBSHIFT_TEXT_ERROR];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(parse(cases[i].text, &rules, error) < 0);
        if (strstr(error, cases[i].error) == NULL) {
            fail_msg("'%s': said '%s', wanted '%s'", cases[i].text, error, cases[i].error);
        }
        assert_int_equal(rules.count, 0);
    }
    assert_true(ibshift_rules_read("/nonexistent", &rules, error) < 0);
    assert_non_null(strstr(error, "/nonexistent: cannot open"));
}

/* Whatever is cut off, nothing is read behind it. */
static void any_part_is_refused_or_read(void **state)
{
    struct ibshift_rules rules;
    char error[IBSHIFT_TEXT_ERROR], part[sizeof(json)];

    for (size_t length = 0; length < sizeof(json) - 3; length++) {
        memcpy(part, json, length);
        assert_true(ibshift_rules_parse(part, length, "part", &rules, error) < 0);
    }
}

static void every_field_counts(void **state)
{
    struct ibshift_rules a, b;
    char error[IBSHIFT_TEXT_ERROR];

    assert_int_equal(parse("1 3 1 4 1 0 1 0 0", &a, error), 0);
    assert_int_equal(parse("1 3 1 4 1 0 1 0 1", &b, error), 0);
    assert_true(ibshift_rules_digest(&a, IBSHIFT_DIGEST) !=
                ibshift_rules_digest(&b, IBSHIFT_DIGEST));
    ibshift_rules_free(&a);
    ibshift_rules_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_read),
        cmocka_unit_test(json_is_read),
        cmocka_unit_test(neighborhoods_are_read),
        cmocka_unit_test(ranks_are_spread),
        cmocka_unit_test(what_is_ignored_may_be_any_text),
        cmocka_unit_test(what_is_wrong_has_its_line),
        cmocka_unit_test(any_part_is_refused_or_read),
        cmocka_unit_test(every_field_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
