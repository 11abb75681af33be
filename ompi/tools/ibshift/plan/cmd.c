/* `ibshift plan`: the algorithms as they run, printed, drawn, proved and priced. */
#include "plan/cmd.h"

#include <errno.h>
#include <string.h>

#include "choose/size.h"

static const struct plan_command plan_commands[] = {
    {"list", "c", "jo", "all algorithms, or those of one collective", plan_list},
    {"print", "CA", "PrRkScOlTxHDNLmpjo", "the steps, one line each, as the executor traces them",
     plan_print},
    {"draw", "CA", "PRkScOlTxHDNLmepMdfo", "a picture of the data, of time or of the tree",
     plan_draw},
    {"check", "CA", "PRkScOlTxHDNLmpwisj", "prove it right: all ranks, all blocks, no deadlock",
     plan_check},
    {"price", "CA", "PRkScOlTxHDNLCnmewpMtjo", "the modelled time", plan_price},
    {"compare", "C", "PRkScOlTHDLCnmewpMtfjo",
     "the modelled times of all algorithms, and who wins where", plan_compare},
    {NULL, NULL, NULL, NULL, NULL},
};

static void plan_usage(FILE *out)
{
    fputs("usage: ibshift plan COMMAND [COLLECTIVE [ALGORITHM]] [OPTION...]\n\n", out);
    for (const struct plan_command *c = plan_commands; c->name != NULL; c++) {
        fprintf(out, "  %-8s %s\n", c->name, c->summary);
    }
    fputs("\n  -h, --help   this text; ibshift plan COMMAND --help for that of a command\n", out);
}

static int run_command(const struct plan_command *command, int argc, char **argv)
{
    struct plan_args args;
    bool is_helped = false;
    int rc = plan_args_parse(&args, command, argc, argv, &is_helped);

    if (rc == CLI_OK && args.alg != NULL) {
        rc = plan_check_fit(&args);
    }
    if (rc == CLI_OK && !is_helped) {
        rc = command->run(&args);
    }
    plan_args_end(&args);
    return rc;
}

int cmd_plan(int argc, char **argv)
{
    const char *names[CLI_COMMANDS];
    size_t count = 0;

    if (argc < 2) {
        plan_usage(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        plan_usage(stdout);
        return CLI_OK;
    }
    for (const struct plan_command *c = plan_commands; c->name != NULL; c++) {
        if (strcmp(c->name, argv[1]) == 0) {
            return run_command(c, argc - 1, argv + 1);
        }
        names[count++] = c->name;
    }
    return cli_unknown("plan", "unknown command", argv[1], names, count,
                       "ibshift plan --help lists them");
}

int plan_check_fit(const struct plan_args *args)
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
    if ((args->alg->flags & IBSHIFT_ALG_SEGMENTS) != 0) {
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

FILE *plan_open(const struct plan_args *args)
{
    FILE *file;

    if (args->output == NULL) {
        return stdout;
    }
    file = fopen(args->output, "w");
    if (file == NULL) {
        cli_error(args->command, "cannot write '%s': %s", args->output, strerror(errno));
    }
    return file;
}

int plan_close(const struct plan_args *args, FILE *file)
{
    int failed = ferror(file);

    failed |= file == stdout ? fflush(file) : fclose(file);
    if (failed) {
        cli_error(args->command, "cannot write %s: %s",
                  args->output != NULL ? args->output : "to the terminal", strerror(errno));
        return CLI_FAILED;
    }
    return CLI_OK;
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
