/* `ibshift plan rules`: what the component would choose, in the form that choose/rules.h reads. */
#include "plan/cmd.h"

#include <inttypes.h>

#include "choose/rules.h"
#include "choose/size.h"

static const uint64_t most_bytes = UINT64_C(1) << 24;

/* A rule that has not ended yet. */
struct run {
    struct ibshift_choice choice;
    uint64_t segment, from;
    bool is_open;
};

struct writer {
    struct plan_args *args;
    FILE *out;
    const struct ibshift_rules_collective *row;
    uint32_t ranks;
    struct plan_hosts hosts;
    bool has_rule;
};

static void end_run(struct writer *w, const struct run *run, uint64_t last)
{
    const struct ibshift_alg *alg = run->choice.alg;

    if (!run->is_open || alg == NULL) {
        return;
    }
    fprintf(w->out, "%s\n        {\"msg_size_min\": %" PRIu64 ", ", w->has_rule ? "," : "",
            run->from);
    if (last < UINT64_MAX) {
        fprintf(w->out, "\"msg_size_max\": %" PRIu64 ", ", last);
    }
    fprintf(w->out, "\"alg\": \"%s\"", alg->name);
    if (alg->radix_max > 0) {
        fprintf(w->out, ", \"faninout\": %u", run->choice.radix);
    }
    if ((alg->flags & IBSHIFT_ALG_SEGMENTS) != 0 && run->choice.segments > 1) {
        fprintf(w->out, ", \"seg_size\": %" PRIu64, run->segment);
    }
    fputc('}', w->out);
    w->has_rule = true;
}

static struct ibshift_choice choose(const struct writer *w, uint32_t needs, uint64_t bytes)
{
    bool has_hosts = w->args->per_host > 0;
    const struct ibshift_plan plan = {
        .ranks = w->ranks, .commutative = true, .nodes = has_hosts ? &w->hosts.nodes : NULL};
    const struct ibshift_question question = {
        .collective = w->row->collective,
        .needs = needs,
        .plan = &plan,
        .bytes = needs == IBSHIFT_ALG_SIZES ? IBSHIFT_SIZE_UNKNOWN : bytes,
        .window = w->args->window,
        .model = &w->args->model,
        .near = has_hosts && !w->args->is_one_level ? &w->args->near : NULL,
        .crowd = has_hosts ? &w->hosts.crowd : NULL};

    return ibshift_choose_best(&question).best;
}

static bool is_same(const struct run *run, const struct ibshift_choice *choice, uint64_t segment)
{
    return run->is_open && run->choice.alg == choice->alg && run->choice.radix == choice->radix &&
           run->segment == segment;
}

/* Only some vector forms tell all ranks the counts; coll_ibshift_entry.c. */
static uint32_t needs_of(const struct ibshift_rules_collective *row)
{
    bool knows_all =
        row->collective == IBSHIFT_ALLGATHER || row->collective == IBSHIFT_REDUCE_SCATTER;

    return !row->is_vector ? 0
           : knows_all     ? IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_ALL
                           : IBSHIFT_ALG_SIZES;
}

static void write_sizes(struct writer *w)
{
    uint64_t scale = ibshift_collective_has_vector(w->row->collective) ? 1 : w->ranks, last = 0;
    struct run run = {.is_open = false};

    w->has_rule = false;
    for (int class = 0; ibshift_class_size(class) <= most_bytes; class ++) {
        uint64_t bytes = ibshift_class_size(class), segment;
        struct ibshift_choice choice = choose(w, needs_of(w->row), bytes);

        segment = choice.segments > 1 ? bytes / choice.segments : 0;
        if (!is_same(&run, &choice, segment)) {
            end_run(w, &run, last);
            run = (struct run){choice, segment, run.is_open ? last + 1 : 0, true};
        }
        last = bytes * scale + scale - 1; /* blocks of unlike sizes are counted by their sum */
    }
    end_run(w, &run, UINT64_MAX);
}

static int write_ranks(struct writer *w, uint32_t ranks, uint64_t last, bool is_first)
{
    w->ranks = ranks;
    if (plan_hosts_make(w->args, ranks, &w->hosts) != CLI_OK) {
        return CLI_FAILED;
    }
    fprintf(w->out, "%s\n      {\"comm_size_min\": %u, ", is_first ? "" : ",", ranks);
    if (last < UINT64_MAX) {
        fprintf(w->out, "\"comm_size_max\": %" PRIu64 ", ", last);
    }
    fputs("\"rules\": [", w->out);
    write_sizes(w);
    fputs("]}", w->out);
    plan_hosts_free(&w->hosts);
    return CLI_OK;
}

/* Those that were asked for; else enough for what is between them to be alike. */
static int write_collective(struct writer *w)
{
    static const uint32_t usual[] = {2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64};
    const struct plan_args *args = w->args;
    int rc = CLI_OK;

    if (args->has_ranks) {
        for (uint32_t ranks = args->plan.ranks; rc == CLI_OK && ranks <= args->ranks_last;
             ranks++) {
            rc = write_ranks(w, ranks, ranks, ranks == args->plan.ranks);
        }
        return rc;
    }
    for (size_t i = 0; rc == CLI_OK && i < sizeof(usual) / sizeof(usual[0]); i++) {
        bool is_last = i + 1 == sizeof(usual) / sizeof(usual[0]);

        rc = write_ranks(w, usual[i], is_last ? UINT64_MAX : usual[i + 1] - 1, i == 0);
    }
    return rc;
}

/* Those that tuned has algorithms for, or the others. */
static int write_collectives(struct writer *w, bool theirs)
{
    const struct plan_args *args = w->args;
    bool is_first = true;
    int rc = CLI_OK;

    fprintf(w->out, ",\n  \"%s\": {", theirs ? IBSHIFT_RULES_THEIRS : IBSHIFT_RULES_OURS);
    for (int i = 0; rc == CLI_OK && i < IBSHIFT_RULES_COLLECTIVES; i++) {
        w->row = &ibshift_rules_collectives[i];
        if (w->row->collective == IBSHIFT_COLLECTIVES ||
            (w->row->algorithms[0].name != NULL) != theirs ||
            (args->collective >= 0 && args->collective != (int)w->row->collective)) {
            continue;
        }
        fprintf(w->out, "%s\n    \"%s\": [", is_first ? "" : ",", w->row->name);
        is_first = false;
        rc = write_collective(w);
        fputc(']', w->out);
    }
    fputs("\n  }", w->out);
    return rc;
}

int plan_rules(struct plan_args *args)
{
    struct writer w = {.args = args, .out = plan_open(args)};
    int rc;

    if (w.out == NULL) {
        return CLI_USAGE;
    }
    fputs("{\n  \"rule_file_version\": 3,\n  ", w.out);
    json_text(&(struct json){.out = w.out}, "parameters", args->model_source);
    rc = write_collectives(&w, true);
    if (rc == CLI_OK) {
        rc = write_collectives(&w, false);
    }
    fputs("\n}\n", w.out);
    return plan_close(args, rc);
}
