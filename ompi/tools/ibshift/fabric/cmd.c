/* `ibshift fabric`: reading, checking and showing fabrics. */
#include "fabric/cmd.h"

#include <string.h>

static const struct cli_command commands[] = {
    {"discover", cmd_fabric_discover,
     "read the fabric this machine is on, write the compiled file"},
    {"show", cmd_fabric_show, "levels, port groups, ratios and whether the shape is whole"},
    {"order", cmd_fabric_order, "hosts in the order that the tables were made for"},
    {"check", cmd_fabric_check, "does every route arrive; is a compiled file still true"},
    {"contend", cmd_fabric_contend, "flows per link, stage by stage, of an order, table or plan"},
    {"schedule", cmd_fabric_schedule, "the cheapest way through an all-to-all of a job, and why"},
    {"compile", cmd_fabric_compile, "one file for a job's ranks: graph, tables, order"},
    {"draw", cmd_fabric_draw, "an SVG picture, cables coloured by load"},
    {"export", cmd_fabric_export, "netlist or tables of a fabric, for ibsim and OpenSM"},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void usage(FILE *out)
{
    fputs("usage: ibshift fabric COMMAND [ARGUMENT...]\n\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].summary);
    }
    fputc('\n', out);
    cli_print_help(out, "", 0,
                   "FABRIC is a file (ibnetdiscover's output, an ibsim netlist, opensm-subnet.lst, "
                   "a compiled fabric) or a synthetic fabric: kary:4,3  "
                   "pgft:3;18,9,36;1,9,18;1,2,1  qft:..  torus:8x8,4");
    cli_print_help(out, "", 0,
                   "LFTS is a file of forwarding tables (dump_fts' output, opensm-lfts.dump, "
                   "opensm.fdbs); '-' or nothing where FABRIC carries its tables.");
    fputs("\n  --help   this text; ibshift fabric COMMAND --help for that of a command\n", out);
}

int cmd_fabric(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(stdout);
        return CLI_OK;
    }
    return cli_run("fabric", commands, COMMAND_COUNT, argc - 1, argv + 1);
}
