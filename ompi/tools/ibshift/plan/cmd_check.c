/* `ibshift plan check`: proves one plan on all its ranks. */
#include "plan/cmd.h"

#include <errno.h>
#include <inttypes.h>

#include "proof/check.h"

static int report(const struct plan_args *args, int rc, const struct ibshift_check_result *result)
{
    char title[160];
    struct json j;

    plan_title(args, title, sizeof(title));
    if (args->format == PLAN_JSON) {
        json_begin(&j, stdout);
        json_text(&j, "plan", title);
        json_bool(&j, "right", rc == 0);
        json_value(&j, "steps", "%" PRIu64, result->steps);
        json_value(&j, "messages", "%" PRIu64, result->messages);
        json_value(&j, "blocks", "%" PRIu64, result->blocks);
        json_text(&j, "why", rc == 0 ? "" : result->why);
        json_end(&j);
    } else if (rc == 0) {
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

int plan_check(struct plan_args *args)
{
    struct ibshift_check check = {
        .window = args->window,
        .in_place = args->in_place,
        .sizes = args->alg->collective == IBSHIFT_BCAST ||
                 args->alg->collective >= IBSHIFT_REDUCE ||
                 (args->alg->flags & (IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_ALL)) != 0,
        .seed = args->seed,
    };
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
    rc = ibshift_check_plan(args->alg, &args->plan, &check, &result);
    if (rc != 0 && rc != -EBADMSG) {
        cli_error(args->command, "%s", rc == -ENOMEM ? "out of memory" : result.why);
        return rc == -ENOMEM ? CLI_FAILED : CLI_USAGE;
    }
    return report(args, rc, &result);
}
