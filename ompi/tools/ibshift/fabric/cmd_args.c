/* What the commands that look at a fabric begin and end with. */
#include "fabric/cmd.h"

#include <string.h>

int fabric_args_fail(const struct cli_args *args, const struct ibshift_error *err)
{
    return cli_error(args->command, "%s", err->text);
}

int fabric_args_load(const struct cli_args *args, struct ibshift_fabric **fabric)
{
    struct ibshift_notes notes = {.count = 0};
    struct ibshift_error err = {""};
    const char *name = args->positional[0];
    int rc = ibshift_fabric_load(strcmp(name, "-") == 0 ? "/dev/stdin" : name, args->positional[1],
                                 fabric, &notes, &err);

    for (unsigned i = 0; i < notes.count && i < sizeof(notes.text) / sizeof(notes.text[0]); i++) {
        fprintf(stderr, "ibshift %s: note: %s\n", args->command, notes.text[i]);
    }
    return rc == 0 ? CLI_OK : fabric_args_fail(args, &err);
}

int fabric_with(const struct cli_args *args, fabric_run_t *run)
{
    struct ibshift_fabric *f;
    int status = fabric_args_load(args, &f);

    if (status == CLI_OK) {
        status = run(args, f);
        ibshift_fabric_free(f);
    }
    return status;
}

int fabric_command(struct cli_args *args, int argc, char **argv, fabric_run_t *run)
{
    int status = cli_parse(args, argc, argv);

    return status != CLI_OK || args->helped ? status : fabric_with(args, run);
}
