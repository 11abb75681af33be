/* The program `ibshift`: one row a subcommand. */
#include "cli.h"
#include "cmd_fabric.h"
#include "cmd_info.h"
#include "cmd_plan.h"
#include "cmd_route.h"
#include "cmd_sim.h"

#include <string.h>

static const struct cli_command commands[] = {
    {"fabric", cmd_fabric, "read, check and draw a fabric and what its routing costs"},
    {"info", cmd_info, "what is installed, and what a process started here would use"},
    {"plan", cmd_plan, "print, draw, prove and price the collective algorithms"},
    {"route", cmd_route, "forwarding tables that OpenSM loads, by engine, with their proof"},
    {"sim", cmd_sim, "run a collective on a simulated fabric, packet by packet"},
    {NULL, NULL, NULL},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]) - 1)

static void usage(FILE *out)
{
    fputs("usage: ibshift COMMAND [ARGUMENT...]\n\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].summary);
    }
    fputs("\n  --help   this text; ibshift COMMAND --help for that of a command\n"
          "  --version\n",
          out);
}

static int unknown_command(const char *name)
{
    const char *names[COMMAND_COUNT + 1];
    const char *nearest;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        names[i] = commands[i].name;
    }
    nearest = cli_nearest(name, names, COMMAND_COUNT);
    fprintf(stderr, "ibshift: unknown command '%s'%s%s%s; ibshift --help lists them\n", name,
            nearest != NULL ? ": did you mean '" : "", nearest != NULL ? nearest : "",
            nearest != NULL ? "'?" : "");
    return CLI_USAGE;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(stdout);
        return CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("ibshift " IBSHIFT_VERSION);
        return CLI_OK;
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    return unknown_command(argv[1]);
}
