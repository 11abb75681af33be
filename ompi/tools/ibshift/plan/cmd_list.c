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

static void list_text(FILE *out, const struct ibshift_alg *alg)
{
    char limits[64], radix[16] = "-";

    list_limits(alg, limits, sizeof(limits));
    if (alg->radix_max > 0) {
        snprintf(radix, sizeof(radix), "1-%u", alg->radix_max);
    }
    fprintf(out, "%-15s %-24s %-5s%-14s %s\n%-46s %s\n", ibshift_collective_name(alg->collective),
            alg->name, radix, limits, alg->doc, "", alg->cost);
}

static void list_json(FILE *out, const struct ibshift_alg *alg, const char *comma)
{
    fprintf(out,
            "%s\n  {\"collective\": \"%s\", \"algorithm\": \"%s\", \"radix_max\": %u, "
            "\"power_of_two\": %s, \"even\": %s, \"commutative_only\": %s, \"in_place\": %s, "
            "\"doc\": \"%s\", \"cost\": \"%s\"}",
            comma, ibshift_collective_name(alg->collective), alg->name, alg->radix_max,
            (alg->flags & IBSHIFT_ALG_POWER_OF_TWO) != 0 ? "true" : "false",
            (alg->flags & IBSHIFT_ALG_EVEN) != 0 ? "true" : "false",
            (alg->flags & IBSHIFT_ALG_COMMUTATIVE_ONLY) != 0 ? "true" : "false",
            (alg->flags & IBSHIFT_ALG_IN_PLACE) != 0 ? "true" : "false", alg->doc, alg->cost);
}

int plan_list(struct plan_args *args)
{
    FILE *out = plan_open(args);
    const char *comma = "";

    if (out == NULL) {
        return CLI_FAILED;
    }
    if (args->format == PLAN_JSON) {
        fputc('[', out);
    } else {
        fprintf(out, "%-15s %-24s %-5s%-14s %s\n", "collective", "algorithm", "radix", " limits",
                "what it does; what it costs (P ranks, k radix, m block, n vector)");
    }
    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];

        if (args->collective >= 0 && (int)alg->collective != args->collective) {
            continue;
        }
        if (args->format == PLAN_JSON) {
            list_json(out, alg, comma);
            comma = ",";
        } else {
            list_text(out, alg);
        }
    }
    fputs(args->format == PLAN_JSON ? "\n]\n" : "", out);
    return plan_close(args, out);
}

static void print_json(FILE *out, const struct ibshift_step *step, uint32_t rank, uint32_t round)
{
    fprintf(out,
            "{\"rank\": %u, \"round\": %u, \"kind\": \"%s\", \"buffer\": \"%s\", \"first\": %u, "
            "\"count\": %u, ",
            rank, round,
            step->kind == IBSHIFT_STEP_REDUCE_AFTER ? "reduce_after"
                                                    : ibshift_kind_name(step->kind),
            ibshift_buffer_name(step->buf), step->first, step->count);
    if (!ibshift_step_is_local(step)) {
        fprintf(out, "\"peer\": %u, \"tag\": %u, \"part\": %u, ", step->peer, step->tag,
                step->part);
    } else {
        fprintf(out, "\"source\": \"%s\", \"from\": %u, ", ibshift_buffer_name(step->src),
                step->from);
        if (step->strided != IBSHIFT_CONTIGUOUS) {
            fprintf(out, "\"strided\": \"%s\", \"run\": %u, \"stride\": %d, ",
                    step->strided == IBSHIFT_STRIDED_SOURCE ? "source" : "target", step->run,
                    step->stride);
        }
    }
    fprintf(out, "\"need\": %u, \"drain\": %u}\n", step->need, step->drain);
}

static void print_rank(const struct plan_args *args, FILE *out, uint32_t rank)
{
    uint32_t rounds = args->alg->rounds(&args->plan, rank);
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    char line[IBSHIFT_STEP_TEXT];

    for (uint32_t round = 0; round < rounds && !ferror(out); round++) {
        int count = args->alg->emit(&args->plan, rank, round, steps);

        for (int i = 0; i < count; i++) {
            if (args->format == PLAN_JSON) {
                print_json(out, &steps[i], rank, round);
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
    FILE *out = plan_open(args);

    if (out == NULL) {
        return CLI_FAILED;
    }
    for (uint32_t rank = first; rank < end && !ferror(out); rank++) {
        print_rank(args, out, rank);
    }
    return plan_close(args, out);
}
