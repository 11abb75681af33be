/* The program `ibshift`: one row a subcommand. */
#include "cli.h"
#include "doctor/doctor.h"
#include "fabric/cmd.h"
#include "info/cmd.h"
#include "plan/cmd.h"
#include "route/cmd.h"
#include "sim/cmd.h"
#include "tune/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct cli_command commands[] = {
    {"doctor", cmd_doctor, "test what this machine's adapters do, alone or with another node"},
    {"fabric", cmd_fabric, "read, check and draw a fabric and what its routing costs"},
    {"info", cmd_info, "what is installed, and what a process started here would use"},
    {"plan", cmd_plan, "print, draw, prove and price the collective algorithms"},
    {"route", cmd_route, "forwarding tables that OpenSM loads, by engine, with their proof"},
    {"sim", cmd_sim, "run a collective on a simulated fabric, packet by packet"},
    {"tune", cmd_tune, "measure what messages cost here, for the choice of algorithms"},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void usage(FILE *out)
{
    fputs("usage: ibshift COMMAND [ARGUMENT...]\n\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].summary);
    }
    fputc('\n', out);
    cli_print_help(out, "  -h, --help", 18,
                   "this text; ibshift COMMAND --help, or ibshift help COMMAND, for a command's");
    fputs("  -V, --version\n\n", out);
    fputs("See also: ibshift-run(1), coll_ibshift(7), softhca-run(1), ibshift-admin(8)\n", out);
}

/* What a disk had no room for must not end well. */
static int run_command(int argc, char **argv)
{
    int rc = cli_run(NULL, commands, COMMAND_COUNT, argc, argv);

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

/* `ibshift help sim` is `ibshift sim --help`. */
static int help_on(int argc, char **argv)
{
    static char option[] = "--help";
    char *words[4] = {argv[2], argc > 3 ? argv[3] : option, argc > 3 ? option : NULL, NULL};

    return run_command(argc > 3 ? 3 : 2, words);
}

static bool is_any(const char *text, const char *one, const char *other)
{
    return strcmp(text, one) == 0 || strcmp(text, other) == 0;
}

int main(int argc, char **argv)
{
    open_standard_streams();
    if (argc < 2) {
        usage(stderr);
        return CLI_USAGE;
    }
    if (is_any(argv[1], "--help", "-h") || (argc == 2 && strcmp(argv[1], "help") == 0)) {
        usage(stdout);
        return CLI_OK;
    }
    for (int i = 1; i < argc; i++) {
        if (is_any(argv[i], "--version", "-V")) {
            puts("ibshift " IBSHIFT_VERSION);
            return CLI_OK;
        }
    }
    return strcmp(argv[1], "help") == 0 ? help_on(argc, argv) : run_command(argc - 1, argv + 1);
}
