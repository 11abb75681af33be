/* The program `ibshift`: one row a subcommand. */
#include "cli.h"
#include "doctor/doctor.h"
#include "fabric/cmd.h"
#include "info/cmd.h"
#include "plan/cmd.h"
#include "route/route.h"
#include "sim/cmd.h"
#include "tune/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct cli_command rows[] = {
    {"doctor", cmd_doctor, "test what this machine's adapters do, alone or with another node"},
    {"fabric", cmd_fabric, "read and check a fabric, and count what its routing costs"},
    {"info", cmd_info, "what is installed, and what a process started here would use"},
    {"plan", cmd_plan, "print, prove and price the collective algorithms"},
    {"route", cmd_route, "forwarding tables that OpenSM loads, by engine, with their proof"},
    {"sim", cmd_sim, "run a collective on a simulated fabric, packet by packet"},
    {"tune", cmd_tune, "measure what messages cost here, for the choice of algorithms"},
};

static void print_rest(FILE *out)
{
    cli_print_help(out, "  -h, --help", 18,
                   "this text; ibshift COMMAND --help, or ibshift help COMMAND, for a command's");
    fputs("  -V, --version\n\n", out);
    fputs("See also: ibshift-run(1), coll_ibshift(7), softhca-run(1), ibshift-admin(8)\n", out);
}

/* What a disk had no room for must not end well. */
static int run(int argc, char **argv)
{
    const struct cli_commands commands = {
        .rows = rows, .count = sizeof(rows) / sizeof(rows[0]), .print_rest = print_rest};
    int rc = cli_run(&commands, argc, argv);

    if (fflush(stdout) != 0 || ferror(stdout)) {
        return cli_error(NULL, "the output could not be written: %s", strerror(errno));
    }
    return rc;
}

/* A file or socket that takes the place of a closed standard stream would be taken for it. */
static void open_standard_streams(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    close(fd);
}

/* `ibshift help fabric show` is `ibshift fabric show --help`. */
static int help_on(int argc, char **argv)
{
    static char option[] = "--help";
    char *words[5] = {argv[0]};
    int count = 1;

    for (int i = 2; i < argc && i < 4; i++) {
        words[count++] = argv[i];
    }
    words[count++] = option;
    return run(count, words);
}

int main(int argc, char **argv)
{
    open_standard_streams();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-V") == 0) {
            puts("ibshift " IBSHIFT_VERSION);
            return CLI_OK;
        }
    }
    return argc > 1 && strcmp(argv[1], "help") == 0 ? help_on(argc, argv) : run(argc, argv);
}
