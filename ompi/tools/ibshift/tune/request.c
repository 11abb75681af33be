#include "tune/request.h"

#include "options.h"

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
        {"--plot", 'p', CLI_OUTPUT, "FILE.svg",
         "draw the measured and the modelled times; a second level goes to FILE-node.svg",
         .where = &request->target.plot, .words = cli_svg_only},
        {"--force", 'f', CLI_FLAG, NULL, "write the file even if the machine is too noisy",
         .where = &request->target.is_forced},
        {"--fabric", 0, CLI_TEXT, "FILE",
         "check instead that stages take as long as this file's routes say, with one rank per host",
         .where = &request->fabric},
        {"--bytes", 0, CLI_WHOLE, "BYTES", "with --fabric: bytes of a message (default: 1048576)",
         .where = &request->bytes, .low = 4096, .high = 1 << 28},
        {"--quiet", 'q', CLI_FLAG, NULL, "no line for each pass", .where = &request->is_quiet},
        {.name = NULL},
    };
    struct cli_args args = {
        .command = "tune",
        .usage = "",
        .summary =
            "Measures what messages cost here, for the model that chooses algorithms. Started "
            "alone: two processes of this machine. On a cluster: mpirun --map-by node -np 2 "
            "ibshift tune, or with two ranks on each of two nodes. With --fabric: mpirun --map-by "
            "ppr:1:node ibshift tune --fabric FILE.",
        .options = options};
    int rc;

    for (struct cli_option *o = options; !is_writer && o->name != NULL; o++) {
        o->kind = o->kind == CLI_OUTPUT ? CLI_TEXT : o->kind;
    }
    *request = (struct tune_request){.seconds = 20, .bytes = 1 << 20};
    rc = cli_parse(&args, argc, argv);

    *helped = args.helped;
    return rc;
}
