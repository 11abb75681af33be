/* What commands about a fabric begin with, and what they say. */
#include "fabric/cmd_job.h"

#include <stdlib.h>
#include <string.h>

#include "fabric/graph/lines.h"
#include "fabric/read/read.h"

int fabric_args_fail(const struct cli_args *args, const struct ibshift_error *err)
{
    return cli_error(args->command, "%s", err->text);
}

void fabric_must(const struct cli_args *args, int rc, const struct ibshift_error *err)
{
    if (rc != 0) {
        exit(fabric_args_fail(args, err));
    }
}

void fabric_args_warn(const struct cli_args *args, const struct ibshift_warnings *warnings)
{
    for (unsigned i = 0; i < ibshift_warnings_kept(warnings); i++) {
        fprintf(stderr, "ibshift %s: warning: %s\n", args->command, warnings->text[i]);
    }
}

void fabric_must_have_tables(const struct cli_args *args, const struct ibshift_fabric *f)
{
    if (f->lft == NULL) {
        exit(
            cli_error(args->command, "%s has no tables: name a file of them", args->positional[0]));
    }
}

/* Positional 0 (fabric) and 1 (tables, if given). */
struct ibshift_fabric *fabric_args_load(const struct cli_args *args)
{
    struct ibshift_warnings warnings = {.count = 0};
    struct ibshift_error err = {""};
    struct ibshift_fabric *f = NULL;
    const char *name = args->positional[0];
    int rc = ibshift_fabric_load(strcmp(name, "-") == 0 ? "/dev/stdin" : name, args->positional[1],
                                 &f, &warnings, &err);

    fabric_args_warn(args, &warnings);
    fabric_must(args, rc, &err);
    return f;
}

void fabric_args_tell_adaptive(const struct cli_args *args, const struct ibshift_fabric *f,
                               const char *meaning)
{
    if (f->is_adaptive) {
        fprintf(stderr, "ibshift %s: the file says that switches choose the routes: %s\n",
                args->command, meaning);
    }
}

int fabric_with(const struct cli_args *args, fabric_run_t *run)
{
    struct ibshift_fabric *f = fabric_args_load(args);
    int status = run(args, f);

    ibshift_fabric_free(f);
    return status;
}

int fabric_command(struct cli_args *args, int argc, char **argv, fabric_run_t *run)
{
    int status = cli_parse(args, argc, argv);

    return status != CLI_OK || args->helped ? status : fabric_with(args, run);
}

bool fabric_job_numbers(const struct cli_args *args, const char *text, const char *word,
                        unsigned count, uint64_t *numbers, int *status)
{
    size_t length = strlen(word);
    const char *at;

    if (strncmp(text, word, length) != 0 || text[length] != ':') {
        return false;
    }
    at = text + length;
    *status = CLI_OK;
    for (unsigned i = 0; i < count && at != NULL; i++) {
        at = *at == ':' ? ibshift_scan_decimal(at + 1, &numbers[i]) : NULL;
    }
    if (at == NULL || *at != '\0') {
        *status = cli_error(args->command, "'%.60s': wants %u number%s after '%s:'", text, count,
                            count == 1 ? "" : "s", word);
    }
    return true;
}
