/* `ibshift sim --sizes`: messages that differ in length. */
#include "sim/cmd.h"

#include <errno.h>
#include <string.h>

enum { RATIO_MAX = 1000000 };

static int read_sizes(struct sim_command *c)
{
    FILE *file = fopen(c->sizes, "r");
    struct ibshift_error err;
    int rc;

    if (file == NULL) {
        return cli_error(c->args.command,
                         "--sizes %.200s: %s (or spread:RATIO:SEED, "
                         "builder:RATIO:SEED)",
                         c->sizes, strerror(errno));
    }
    rc = sim_sizes_read(c->unequal, file, c->sizes, &err);
    fclose(file);
    return rc == 0 ? CLI_OK : fabric_args_fail(&c->args, &err);
}

static int draw_sizes(struct sim_command *c, const uint64_t *numbers, bool is_builder)
{
    if (numbers[0] < 1 || numbers[0] > RATIO_MAX) {
        return cli_error(c->args.command, "--sizes %.40s: wants a ratio from 1 to %d", c->sizes,
                         RATIO_MAX);
    }
    sim_sizes_draw(c->unequal, (uint32_t)c->number.size, (double)numbers[0], numbers[1],
                   is_builder);
    return CLI_OK;
}

static int fill(struct sim_command *c)
{
    uint64_t numbers[2];
    int status;

    if (fabric_job_numbers(&c->args, c->sizes, "spread", 2, numbers, &status)) {
        return status != CLI_OK ? status : draw_sizes(c, numbers, false);
    }
    if (fabric_job_numbers(&c->args, c->sizes, "builder", 2, numbers, &status)) {
        return status != CLI_OK ? status : draw_sizes(c, numbers, true);
    }
    return read_sizes(c);
}

int sim_sizes_take(struct sim_command *c)
{
    int rc, status;

    if (c->sizes == NULL) {
        return CLI_OK;
    }
    if (c->plan != NULL || c->verify) {
        return cli_error(c->args.command, "--sizes takes neither --plan nor --verify");
    }
    rc = sim_sizes_create(c->job.placement->ranks, &c->unequal);
    if (rc != 0) {
        return rc == -E2BIG ? cli_error(c->args.command, "--sizes: at most %d ranks, there are %u",
                                        SIM_SIZES_RANKS_MAX, c->job.placement->ranks)
                            : cli_error(c->args.command, "no memory");
    }
    status = fill(c);
    if (status == CLI_OK && sim_sizes_most(c->unequal) == 0) {
        status = cli_error(c->args.command, "--sizes %.200s: nobody has anything for another rank",
                           c->sizes);
    }
    if (status == CLI_OK) {
        c->number.size = sim_sizes_most(c->unequal);
    }
    return status;
}
