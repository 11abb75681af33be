#include "group/wishes.h"

#include <stdio.h>

#include "choose/digest.h"
#include "choose/size.h"
#include "msccl/msccl.h"
#include "job/params.h"
#include "job/say.h"
#include "job/site.h"
#include "proof/check.h"

static struct ibshift_rules rules;
static struct ibshift_listed listed; /* ranks 0: there is none */

static void read_rules(void)
{
    char error[IBSHIFT_TEXT_ERROR];

    ibshift_rules_free(&rules);
    if (ibshift_params.rules[0] != '\0' &&
        (!ibshift_site_may_open(ibshift_params.rules, error, sizeof(error)) ||
         ibshift_rules_read(ibshift_params.rules, &rules, error) != 0)) {
        ibshift_help_once_a_job("bad-rules", error);
    }
}

/* Nobody runs what the checker does not find right. */
static int prove(const char *path, char *error)
{
    const struct ibshift_plan plan = {
        .ranks = listed.ranks, .radix = 1, .segments = 1, .commutative = true, .listed = &listed};
    const struct ibshift_check check = {.window = (uint32_t)ibshift_params.window,
                                        .sizes = listed.collective >= IBSHIFT_REDUCE};
    struct ibshift_check_result result = {.why = "no memory"};
    int rc = ibshift_check_plan(ibshift_listed_row(listed.collective), &plan, &check, &result);

    if (rc != 0) {
        snprintf(error, IBSHIFT_TEXT_ERROR, "%.80s:%u: %.160s", path,
                 ibshift_listed_line(&listed, result.why), result.why);
    }
    return rc;
}

static void read_plan(const char *path)
{
    char error[IBSHIFT_TEXT_ERROR];

    ibshift_listed_free(&listed);
    if (path[0] != '\0' &&
        (!ibshift_site_may_open(path, error, sizeof(error)) ||
         ibshift_msccl_read(path, &listed, error) != 0 || prove(path, error) != 0)) {
        ibshift_listed_free(&listed);
        ibshift_help_once_a_job("bad-plan", error);
    }
}

void ibshift_wishes_open(void)
{
    read_rules();
    read_plan(ibshift_params.plan);
}

uint64_t ibshift_listed_digest(uint64_t sum, const struct ibshift_listed *l)
{
    const uint32_t scalars[] = {l->collective, l->ranks, l->pieces};
    size_t starts = (l->ranks + (size_t)1) * sizeof(*l->first);

    sum = ibshift_digest(sum, scalars, sizeof(scalars));
    sum = ibshift_digest(sum, l->bytes, sizeof(l->bytes));
    sum = ibshift_digest(sum, l->first, starts);
    sum = ibshift_digest(sum, l->steps, l->first[l->ranks] * sizeof(*l->steps));
    sum = ibshift_digest(sum, l->tmp_first, starts);
    return ibshift_digest(sum, l->tmp_piece, l->tmp_first[l->ranks] * sizeof(*l->tmp_piece));
}

uint64_t ibshift_wishes_digest(uint64_t sum)
{
    sum = ibshift_rules_digest(&rules, sum);
    return listed.ranks == 0 ? sum : ibshift_listed_digest(sum, &listed);
}

const struct ibshift_rules *ibshift_wishes_rules(void)
{
    return &rules;
}

/* Of all sizes of a class alike, as a choice is. */
static bool has_size(const struct ibshift_group *group, const struct ibshift_wanted *wanted)
{
    uint64_t each = wanted->bytes == 0 ? 0 : ibshift_class_size(ibshift_size_class(wanted->bytes));
    uint64_t bytes = ibshift_collective_has_vector(wanted->collective) ? each : each * group->size;

    return bytes >= listed.bytes[0] && (listed.bytes[1] == 0 || bytes <= listed.bytes[1]);
}

const struct ibshift_listed *ibshift_wishes_plan(const struct ibshift_group *group,
                                                 const struct ibshift_wanted *wanted)
{
    bool is_fit = listed.ranks == group->size && listed.collective == wanted->collective &&
                  wanted->needs == 0 && !wanted->is_counted &&
                  (wanted->commutes || wanted->collective < IBSHIFT_REDUCE);

    return is_fit && has_size(group, wanted) && ibshift_params_wish(wanted->collective).alg == NULL
               ? &listed
               : NULL;
}

void ibshift_wishes_explain(const struct ibshift_group *group, const struct ibshift_wanted *wanted,
                            struct ibshift_line *line)
{
    if (listed.ranks == 0 || listed.collective != wanted->collective ||
        ibshift_params_wish(wanted->collective).alg != NULL ||
        ibshift_wishes_plan(group, wanted) != NULL) {
        return;
    }
    if (listed.ranks != group->size) {
        ibshift_line_add(line, "; coll_ibshift_plan is for %u ranks", listed.ranks);
    } else {
        ibshift_line_add(line, "; coll_ibshift_plan is for %s",
                         !has_size(group, wanted) ? "other sizes (minBytes, maxBytes)"
                         : wanted->collective < IBSHIFT_REDUCE
                             ? "blocks of one size"
                             : "operators that commute, without counts");
    }
}
