/* `ibshift plan`: the algorithms as they run, listed, printed, proved and priced, and
 * what these commands share with the pictures and the comparison. */
#include "plan/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "plan/listed.h"
#include "plan/print.h"
#include "proof/check.h"

/* Checks args->plan for args->alg: CLI_OK, or a message and CLI_USAGE. */
static int plan_check_fit(const struct plan_args *args)
{
    char why[256] = "";

    return ibshift_alg_check(args->alg, &args->plan, why, sizeof(why)) == 0
               ? CLI_OK
               : cli_error(args->command, "%s", why);
}

struct ibshift_model plan_model_of(const struct plan_args *args, enum plan_model which)
{
    return which == PLAN_LOGGP   ? ibshift_model_loggp(&args->model)
           : which == PLAN_LOGFP ? ibshift_model_logfp(&args->model)
                                 : args->model;
}

const char *plan_model_name(enum plan_model which)
{
    return which == PLAN_LOGGP ? "LogGP" : which == PLAN_LOGFP ? "LogfP" : "LogGP with f";
}

void plan_size_text(uint64_t bytes, char *text)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    int unit = 0;

    while (bytes >= 1024 && bytes % 1024 == 0 && unit < 3) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 24, "%llu %s", (unsigned long long)bytes, units[unit]);
}

void plan_title(const struct plan_args *args, char *text, size_t size)
{
    const struct ibshift_plan *plan = &args->plan;
    enum ibshift_collective collective = args->alg->collective;
    int used = snprintf(text, size, "%s %s, %u rank%s", ibshift_collective_name(collective),
                        args->alg->name, plan->ranks, plan->ranks == 1 ? "" : "s");

    if (collective == IBSHIFT_BCAST || collective == IBSHIFT_SCATTER ||
        collective == IBSHIFT_GATHER || collective == IBSHIFT_REDUCE) {
        used += snprintf(text + used, size - (size_t)used, ", root %u", plan->root);
    }
    if (args->alg->radix_max > 0) {
        used += snprintf(text + used, size - (size_t)used, ", radix %u", plan->radix);
    }
    if (plan->multicast > 0 && !args->has_segments) {
        used += snprintf(text + used, size - (size_t)used, ", datagrams of %u B", plan->multicast);
    } else if ((args->alg->flags & IBSHIFT_ALG_SEGMENTS) != 0) {
        used += snprintf(text + used, size - (size_t)used, ", %u segment%s", plan->segments,
                         plan->segments == 1 ? "" : "s");
    }
    if ((args->alg->flags & IBSHIFT_ALG_NODES) != 0) {
        uint32_t nodes = ibshift_nodes_count(plan);

        used +=
            snprintf(text + used, size - (size_t)used, ", %u node%s", nodes, nodes == 1 ? "" : "s");
    }
    if ((args->alg->flags & IBSHIFT_ALG_LEADERS) != 0) {
        snprintf(text + used, size - (size_t)used, ", %u leader%s", plan->leaders,
                 plan->leaders == 1 ? "" : "s");
    }
}

FILE *plan_open(struct plan_args *args)
{
    if (args->output == NULL) {
        return stdout;
    }
    return cli_output_open(args->command, args->output, &args->out) == CLI_OK ? args->out.file
                                                                              : NULL;
}

int plan_close(struct plan_args *args, int status)
{
    return args->output == NULL ? status
                                : cli_output_close(args->command, args->output, &args->out, status);
}

void plan_json_begin(struct json *j, FILE *out, const char *list)
{
    json_begin(j, out);
    json_open(j, list, '[');
}

void plan_json_end(struct json *j)
{
    json_close(j, ']');
    json_end(j);
}

/* `ibshift plan list` and `print`: the table and the steps. */

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

static int plan_list(struct plan_args *args)
{
    FILE *out = plan_open(args);
    struct json j;

    if (out == NULL) {
        return CLI_USAGE;
    }
    if (args->is_json) {
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
        if (args->is_json) {
            list_json(&j, alg);
        } else {
            list_text(out, alg);
        }
    }
    if (args->is_json) {
        plan_json_end(&j);
    }
    return plan_close(args, CLI_OK);
}

static void print_rank(const struct plan_args *args, FILE *out, uint32_t rank)
{
    uint32_t rounds = args->alg->rounds(&args->plan, rank);
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    char line[IBSHIFT_STEP_TEXT];

    for (uint32_t round = 0; round < rounds && !ferror(out); round++) {
        int count = args->alg->emit(&args->plan, rank, round, steps);

        for (int i = 0; i < count; i++) {
            ibshift_step_format(&steps[i], rank, round, line, sizeof(line));
            fprintf(out, "%s\n", line);
        }
    }
}

static int plan_print(struct plan_args *args)
{
    uint32_t first = args->rank >= 0 ? (uint32_t)args->rank : 0;
    uint32_t end = args->rank >= 0 ? first + 1 : args->plan.ranks;
    FILE *out;

    if (args->is_goal && args->rank >= 0) {
        return cli_error(args->command, "--goal takes no --rank");
    }
    if (args->is_msccl && (args->rank >= 0 || args->is_goal || !args->plan.commutative)) {
        return cli_error(args->command, "--msccl takes no --rank, --goal or --non-commutative");
    }
    if (args->is_msccl && ibshift_listed_row(args->alg->collective) == NULL) {
        return cli_error(args->command, "--msccl: can be allgather, allreduce, alltoall or "
                                        "reduce_scatter");
    }
    out = plan_open(args);
    if (out == NULL) {
        return CLI_USAGE;
    }
    if (args->is_msccl) {
        return plan_close(args, plan_msccl(args, out));
    }
    if (args->is_goal) {
        plan_goal(args, out);
        return plan_close(args, CLI_OK);
    }
    for (uint32_t rank = first; rank < end && !ferror(out); rank++) {
        print_rank(args, out, rank);
    }
    return plan_close(args, CLI_OK);
}

/* `ibshift plan check`: proves one plan on all its ranks. */

static int report(const struct plan_args *args, int rc, const struct ibshift_check_result *result)
{
    char title[160];

    plan_title(args, title, sizeof(title));
    if (rc != 0 && args->listed != NULL) {
        printf("%s:%u: ", args->file, ibshift_listed_line(args->listed, result->why));
    }
    if (rc == 0) {
        printf("right: %s, window %u%s: %llu steps, %llu messages, %llu blocks sent\n", title,
               args->window, args->in_place ? ", in place" : "", (unsigned long long)result->steps,
               (unsigned long long)result->messages, (unsigned long long)result->blocks);
    } else {
        printf("WRONG: %s, window %u: %s\n", title, args->window, result->why);
    }
    return rc == 0 ? CLI_OK : CLI_FAILED;
}

/* 24 bytes for each block of each rank's buffers, up to twice the ranks squared. */
#define RANKS_MAX 2048

static int prove(const struct plan_args *args, struct ibshift_check_result *result)
{
    const struct ibshift_check check = {
        .window = args->window,
        .in_place = args->in_place,
        .sizes = args->alg->collective == IBSHIFT_BCAST ||
                 args->alg->collective >= IBSHIFT_REDUCE ||
                 (args->alg->flags & (IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_ALL)) != 0,
    };

    return ibshift_check_plan(args->alg, &args->plan, &check, result);
}

static int plan_check(struct plan_args *args)
{
    struct ibshift_check_result result = {.steps = 0};
    int rc;

    if (args->in_place && (args->alg->flags & IBSHIFT_ALG_IN_PLACE) == 0) {
        cli_error(args->command, "%s %s is not right in place: its input is copied first",
                  ibshift_collective_name(args->alg->collective), args->alg->name);
        return CLI_UNFIT;
    }
    if (args->plan.ranks > RANKS_MAX) {
        return cli_error(args->command, "%u ranks are too many to prove at once: at most %d",
                         args->plan.ranks, RANKS_MAX);
    }
    rc = prove(args, &result);
    if (rc != 0 && rc != -EBADMSG) {
        cli_error(args->command, "%s", rc == -ENOMEM ? "out of memory" : result.why);
        return rc == -ENOMEM ? CLI_FAILED : CLI_USAGE;
    }
    return report(args, rc, &result);
}

/* What a file has is neither printed nor priced where it is wrong. */
static int check_file(const struct plan_args *args)
{
    struct ibshift_check_result result = {.why = "out of memory"};

    if (args->listed == NULL || args->row->run == plan_check || prove(args, &result) == 0) {
        return CLI_OK;
    }
    cli_error(args->command, "%s:%u: WRONG: %s", args->file,
              ibshift_listed_line(args->listed, result.why), result.why);
    return CLI_FAILED;
}

static const struct plan_command plan_commands[] = {
    {"list", "c", "jo", "all algorithms, or those of one collective", plan_list},
    {"print", "CA", "PrRkScOlbTxHDNLmegpoXF",
     "the steps, one line each, as the executor traces them", plan_print},
    {"check", "CA", "PRkScOlbTxHDNLmpwisF", "prove it right: all ranks, all blocks, no deadlock",
     plan_check},
    {"price", "CA", "PRkScOlbTxHDNLGCnmewzpMjofAF", "the modelled time", plan_price},
    {"compare", "C", "PRkScOlbTHDLGCnmewzpMjofA",
     "the modelled times of all algorithms, and who wins where", plan_compare},
    {"rules", "c", "PHDCnwpo", "the component's choices, as a file of rules for it", plan_rules},
};

enum { COMMANDS = sizeof(plan_commands) / sizeof(plan_commands[0]) };

static void print_rest(FILE *out)
{
    fputs("Arguments are [COLLECTIVE [ALGORITHM]] and options: ibshift plan COMMAND --help\n", out);
}

/* argv[0]: its name. */
static int run_command(int argc, char **argv)
{
    const struct plan_command *command = plan_commands;
    struct plan_args args;
    bool is_helped = false;
    int rc;

    while (strcmp(command->name, argv[0]) != 0) {
        command++;
    }
    rc = plan_args_parse(&args, command, argc, argv, &is_helped);
    if (rc == CLI_OK && args.alg != NULL) {
        rc = plan_check_fit(&args);
    }
    if (rc == CLI_OK && !is_helped) {
        rc = check_file(&args);
    }
    if (rc == CLI_OK && !is_helped) {
        rc = command->run(&args);
    }
    plan_args_end(&args);
    return rc;
}

int cmd_plan(int argc, char **argv)
{
    struct cli_command rows[COMMANDS];
    const struct cli_commands commands = {
        .command = "plan", .rows = rows, .count = COMMANDS, .print_rest = print_rest};

    for (int i = 0; i < COMMANDS; i++) {
        rows[i] =
            (struct cli_command){plan_commands[i].name, run_command, plan_commands[i].summary};
    }
    return cli_run(&commands, argc, argv);
}
