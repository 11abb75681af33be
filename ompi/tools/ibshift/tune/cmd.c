#include "tune/cmd.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

enum { BEFORE = 4, WORDS = 64 };

int tune_parse(int argc, char **argv, bool is_writer, struct tune_request *request, bool *helped)
{
    static const char *const places[] = {"no", "user", "system", NULL};
    struct cli_option options[] = {
        {"--time", 't', CLI_REAL, "SECONDS", "how long each level is measured (default: 20)",
         .where = &request->seconds, .low = 1, .high = 600},
        {"--install", 'i', CLI_CHOICE, "WHO",
         "where jobs find the file by themselves: user, in ~/.ibshift; system, in /etc/ibshift",
         .where = &request->target.install, .words = places},
        cli_output_option(&request->target.output,
                          "the parameter file to write (default: standard output)"),
        {"--force", 'f', CLI_FLAG, NULL, "write the file even if the machine is too noisy",
         .where = &request->target.is_forced},
        {"--quiet", 'q', CLI_FLAG, NULL, "no line for each pass", .where = &request->is_quiet},
        {.name = NULL},
    };
    struct cli_args args = {
        .command = "tune",
        .usage = "",
        .summary =
            "Measures what messages cost here, for the model that chooses algorithms. Started "
            "alone: two processes of this machine. On a cluster: mpirun --map-by node -np 2 "
            "ibshift tune, or with two ranks on each of two nodes.",
        .options = options};
    int rc;

    for (struct cli_option *o = options; !is_writer && o->name != NULL; o++) {
        o->kind = o->kind == CLI_OUTPUT ? CLI_TEXT : o->kind;
    }
    *request = (struct tune_request){.seconds = 20};
    rc = cli_parse(&args, argc, argv);

    *helped = args.helped;
    return rc;
}

/* The program of that name beside this one. */
static int beside(const char *name, char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    char *slash;

    if (length < 0) {
        return -errno;
    }
    path[length] = '\0';
    slash = strrchr(path, '/');
    return (size_t)snprintf(slash + 1, size - (size_t)(slash + 1 - path), "%s", name) <
                   size - (size_t)(slash + 1 - path)
               ? 0
               : -ENAMETOOLONG;
}

/* Without a launcher: two processes of this machine. */
int cmd_tune(int argc, char **argv)
{
    char program[PATH_MAX], launcher[PATH_MAX], np[] = "-np", two[] = "2";
    char *words[BEFORE + WORDS] = {launcher, np, two, program};
    bool is_alone = getenv("OMPI_COMM_WORLD_SIZE") == NULL, helped = false;
    struct tune_request request;
    int standard = dup(STDOUT_FILENO);
    int rc = is_alone ? tune_parse(argc, argv, true, &request, &helped) : CLI_OK;

    if (rc != CLI_OK || helped) {
        return rc;
    }
    if (argc > WORDS) {
        return cli_error("tune", "too many arguments");
    }
    if (beside("ibshift-tune", program, sizeof(program)) != 0 ||
        beside("ibshift-run", launcher, sizeof(launcher)) != 0 || access(program, X_OK) != 0) {
        cli_error("tune",
                  "%s is not there: package openmpi-ibshift is not installed, or ibshift was "
                  "built without Open MPI",
                  program);
        return CLI_UNFIT;
    }
    for (int i = 1; i < argc; i++) {
        words[BEFORE + i - 1] = argv[i];
    }
    if (is_alone) {
        fputs(
            "ibshift tune: two processes of this machine; on a cluster: mpirun -np 2 --map-by node "
            "ibshift tune\n",
            stderr);
    }
    (void)dup2(standard, STDOUT_FILENO); /* which "-" took: it is the first rank's */
    (void)close(standard);
    execv(is_alone ? launcher : program, is_alone ? words : words + BEFORE - 1);
    return cli_error("tune", "cannot run %s: %s", program, strerror(errno));
}
