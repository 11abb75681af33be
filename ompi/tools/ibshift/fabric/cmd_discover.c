/* `ibshift fabric discover`: the fabric that this machine is on, into a compiled file. */
#include "fabric/cmd.h"
#include "fabric/live.h"

#include <stdlib.h>
#include <unistd.h>

#ifdef HAVE_IBNETDISC

static int discover(const struct fabric_args *args, const struct fabric_live *live,
                    const char *output)
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

static int discover(const struct fabric_args *args, const struct fabric_live *live,
                    const char *output)
{
    (void)live;
    (void)output;
    cli_error(args->command, "built without libibnetdisc: give a file to ibshift fabric compile");
    return CLI_UNFIT;
}

#endif

int cmd_fabric_discover(int argc, char **argv)
{
    const char *output = NULL, *device = NULL, *port = "0", *in_flight = "16";
    bool quiet = false;
    const struct fabric_option options[] = {
        {"--output", "FILE", "the compiled file to write (needed)", NULL, &output},
        {"--device", "NAME", "the HCA to ask through (default: the first with an active port)",
         NULL, &device},
        {"--port", "N", "its port (default: the first active one)", NULL, &port},
        {"--in-flight", "N", "datagrams under way at once, 1 to 128 (default 16)", NULL,
         &in_flight},
        {"--quiet", NULL, "no progress bar", &quiet, NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    struct fabric_args args = {.command = "fabric discover",
                               .usage = "--output FILE",
                               .options = options,
                               .least = 0,
                               .most = 0};
    struct fabric_live live = {.device = NULL};
    long port_number, flight_number;
    int rc = fabric_args_parse(&args, argc, argv);

    if (rc != CLI_OK || args.helped) {
        return rc;
    }
    if (output == NULL) {
        return cli_error(args.command, "wants --output FILE");
    }
    if (cli_parse_long(port, 0, 254, &port_number) != 0) {
        return cli_error(args.command, "--port %s: wants 0 to 254", port);
    }
    if (cli_parse_long(in_flight, 1, FABRIC_LIVE_FLIGHT_MAX, &flight_number) != 0) {
        return cli_error(args.command, "--in-flight %s: wants 1 to %d", in_flight,
                         FABRIC_LIVE_FLIGHT_MAX);
    }
    live.device = device;
    live.port = (int)port_number;
    live.in_flight = (unsigned)flight_number;
    live.has_progress = !quiet && isatty(STDERR_FILENO);
    return discover(&args, &live, output);
}
