#include "tune/cmd.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "tune/request.h"

enum { BEFORE = 4, WORDS = 64 };

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
    if (is_alone && request.fabric != NULL) {
        return cli_error("tune", "--fabric needs at least three hosts, with one rank on each: "
                                 "mpirun --map-by ppr:1:node ibshift tune --fabric FILE");
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
