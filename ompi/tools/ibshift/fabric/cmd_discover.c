/* `ibshift fabric discover`: the fabric that this machine is on, into a compiled file. */
#include "fabric/cmd.h"
#include "fabric/live.h"

#include <stdlib.h>
#include <unistd.h>

#ifdef HAVE_IBNETDISC

static int discover(const struct cli_args *args, const struct fabric_live *live, const char *output)
{
    struct ibshift_fabric *f;
    struct ibshift_error err;
    int rc;

    if (fabric_live_read(live, &f, &err) != 0) {
        fabric_args_fail(args, &err);
        return CLI_UNFIT;
    }
    rc = fabric_compile(args, f, output);
    ibshift_fabric_free(f);
    return rc;
}

#else

static int discover(const struct cli_args *args, const struct fabric_live *live, const char *output)
{
    (void)live;
    (void)output;
    cli_error(args->command, "built without libibnetdisc: give a file to ibshift fabric compile");
    return CLI_UNFIT;
}

#endif

int cmd_fabric_discover(int argc, char **argv)
{
    struct fabric_live live = {.device = NULL};
    uint32_t port = 0, in_flight = 16;
    const char *output = NULL;
    bool is_quiet = false;
    const struct cli_option options[] = {
        {"--output", 'o', CLI_TEXT, "FILE", "the compiled file to write (needed)", .where = &output,
         .is_needed = true},
        {"--device", 0, CLI_TEXT, "NAME",
         "the HCA to ask through (default: the first with an active port)", .where = &live.device},
        {"--port", 0, CLI_WHOLE, "N", "its port (default: the first active one)", .where = &port,
         .low = 0, .high = 254},
        {"--in-flight", 0, CLI_WHOLE, "N", "datagrams under way at once, 1 to 128 (default 16)",
         .where = &in_flight, .low = 1, .high = FABRIC_LIVE_FLIGHT_MAX},
        cli_quiet_option(&is_quiet),
        {.name = NULL},
    };
    struct cli_args args = {
        .command = "fabric discover", .usage = "--output FILE", .options = options};
    int rc = cli_parse(&args, argc, argv);

    if (rc != CLI_OK || args.helped) {
        return rc;
    }
    live.port = (int)port;
    live.in_flight = in_flight;
    live.has_progress = !is_quiet && isatty(STDERR_FILENO);
    return discover(&args, &live, output);
}
