/* `ibshift plan list` and `print`: the table and the steps. */
#include "plan/cmd.h"

#include "plan/print.h"

static void list_limits(const struct ibshift_alg *alg, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s%s", (alg->flags & IBSHIFT_ALG_POWER_OF_TWO) != 0 ? " P=2^i" : "",
             (alg->flags & IBSHIFT_ALG_EVEN) != 0 ? " P-even" : "",
             (alg->flags & IBSHIFT_ALG_COMMUTATIVE_ONLY) != 0 ? " commutative" : "",
             (alg->flags & IBSHIFT_ALG_SIZES) != 0       ? " v"
             : (alg->flags & IBSHIFT_ALG_SIZES_ALL) != 0 ? " v-known"
                                                         : "");
}

enum { TEXT_COLUMN = 16 };

static void list_text(FILE *out, const struct ibshift_alg *alg)
{
    char limits[64], radix[16] = "-";

    list_limits(alg, limits, sizeof(limits));
    if (alg->radix_max > 0) {
        snprintf(radix, sizeof(radix), "1-%u", alg->radix_max);
    }
    fprintf(out, "%-15s %-24s %s%s\n", ibshift_collective_name(alg->collective), alg->name, radix,
            limits);
    cli_print_help(out, "", TEXT_COLUMN, alg->doc);
    cli_print_help(out, "", TEXT_COLUMN, alg->cost);
}

static void list_json(struct json *j, const struct ibshift_alg *alg)
{
    json_open(j, NULL, '{');
    json_text(j, "collective", ibshift_collective_name(alg->collective));
    json_text(j, "algorithm", alg->name);
    json_value(j, "radix_max", "%u", alg->radix_max);
    json_bool(j, "power_of_two", (alg->flags & IBSHIFT_ALG_POWER_OF_TWO) != 0);
    json_bool(j, "even", (alg->flags & IBSHIFT_ALG_EVEN) != 0);
    json_bool(j, "commutative_only", (alg->flags & IBSHIFT_ALG_COMMUTATIVE_ONLY) != 0);
    json_bool(j, "in_place", (alg->flags & IBSHIFT_ALG_IN_PLACE) != 0);
    json_text(j, "doc", alg->doc);
    json_text(j, "cost", alg->cost);
    json_close(j, '}');
}

int plan_list(struct plan_args *args)
{
    FILE *out = plan_open(args);
    struct json j;

    if (out == NULL) {
        return CLI_FAILED;
    }
    if (args->format == PLAN_JSON) {
        plan_json_begin(&j, out, "algorithms");
    } else {
        fprintf(out, "%-15s %-24s %s\n", "collective", "algorithm", "radix limits");
        cli_print_help(out, "", TEXT_COLUMN, "what it does");
        cli_print_help(out, "", TEXT_COLUMN, "what it costs (P ranks, k radix, m block, n vector)");
    }
    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];

        if (args->collective >= 0 && (int)alg->collective != args->collective) {
            continue;
        }
        if (args->format == PLAN_JSON) {
            list_json(&j, alg);
        } else {
            list_text(out, alg);
        }
    }
    if (args->format == PLAN_JSON) {
        plan_json_end(&j);
    }
    return plan_close(args, out);
}

static void step_json(struct json *j, const struct ibshift_step *step, uint32_t rank,
                      uint32_t round)
{
    json_open(j, NULL, '{');
    json_value(j, "rank", "%u", rank);
    json_value(j, "round", "%u", round);
    json_text(j, "kind",
              step->kind == IBSHIFT_STEP_REDUCE_AFTER ? "reduce_after"
                                                      : ibshift_kind_name(step->kind));
    json_text(j, "buffer", ibshift_buffer_name(step->buf));
    json_value(j, "first", "%u", step->first);
    json_value(j, "count", "%u", step->count);
    if (!ibshift_step_is_local(step)) {
        json_value(j, "peer", "%u", step->peer);
        json_value(j, "tag", "%u", step->tag);
        json_value(j, "part", "%u", step->part);
    } else {
        json_text(j, "source", ibshift_buffer_name(step->src));
        json_value(j, "from", "%u", step->from);
    }
    if (ibshift_step_is_local(step) && step->strided != IBSHIFT_CONTIGUOUS) {
        json_text(j, "strided", step->strided == IBSHIFT_STRIDED_SOURCE ? "source" : "target");
        json_value(j, "run", "%u", step->run);
        json_value(j, "stride", "%d", step->stride);
    }
    json_value(j, "need", "%u", step->need);
    json_value(j, "drain", "%u", step->drain);
    json_close(j, '}');
}

/* j: NULL: as text. */
static void print_rank(const struct plan_args *args, FILE *out, struct json *j, uint32_t rank)
{
    uint32_t rounds = args->alg->rounds(&args->plan, rank);
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    char line[IBSHIFT_STEP_TEXT];

    for (uint32_t round = 0; round < rounds && !ferror(out); round++) {
        int count = args->alg->emit(&args->plan, rank, round, steps);

        for (int i = 0; i < count; i++) {
            if (j != NULL) {
                step_json(j, &steps[i], rank, round);
            } else {
                ibshift_step_format(&steps[i], rank, round, line, sizeof(line));
                fprintf(out, "%s\n", line);
            }
        }
    }
}

int plan_print(struct plan_args *args)
{
    uint32_t first = args->rank >= 0 ? (uint32_t)args->rank : 0;
    uint32_t end = args->rank >= 0 ? first + 1 : args->plan.ranks;
    bool is_json = args->format == PLAN_JSON;
    FILE *out = plan_open(args);
    struct json j;

    if (out == NULL) {
        return CLI_FAILED;
    }
    if (is_json) {
        plan_json_begin(&j, out, "steps");
    }
    for (uint32_t rank = first; rank < end && !ferror(out); rank++) {
        print_rank(args, out, is_json ? &j : NULL, rank);
    }
    if (is_json) {
        plan_json_end(&j);
    }
    return plan_close(args, out);
}
