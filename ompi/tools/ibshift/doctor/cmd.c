/* `ibshift doctor`: what this machine's adapters really do, for a plain user, in two minutes. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli.h"
#include "doctor/doctor.h"
#include "fabric/read/compiled.h"
#include "options.h"
#include "pool.h"

enum { CONNECT_TRIES = 15, CONNECT_PAUSE = 200000 }; /* us */

/*
 * The other process of a pair: a child here, or a doctor on another node. Each returns a descriptor,
 * or a negative value after a message.
 */

/* The child's end is its standard input: so it knows which of the two it is. */
static int fork_peer(void)
{
    int ends[2];
    pid_t pid = -1;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0) {
        pid = fork();
    }
    if (pid < 0) {
        cli_error("doctor", "no second process: %s", strerror(errno));
        return -1;
    }
    if (pid > 0) {
        close(ends[1]);
        return ends[0];
    }
    close(ends[0]);
    if (dup2(ends[1], STDIN_FILENO) < 0) {
        _exit(CLI_FAILED);
    }
    return STDIN_FILENO;
}

/* host NULL: listens there. */
static int open_socket(const struct addrinfo *a, const char *host)
{
    int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol), on = 1;

    if (fd >= 0 &&
        (host != NULL ? connect(fd, a->ai_addr, a->ai_addrlen) != 0
                      : setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
                            bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, 1) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* At one of the addresses of the host, or of this one. */
static int open_at(const char *host, const char *service, int most_tries)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = host == NULL ? AI_PASSIVE : 0};
    struct addrinfo *found;
    int fd = -1, rc = getaddrinfo(host, service, &hints, &found);

    if (rc != 0) {
        exit(cli_error("doctor", "--peer '%s': %s", host != NULL ? host : "", gai_strerror(rc)));
    }
    for (int tries = 0; tries < most_tries && fd < 0; tries++) {
        (void)usleep(tries > 0 ? CONNECT_PAUSE : 0); /* it may come in a moment */
        for (const struct addrinfo *a = found; a != NULL && fd < 0; a = a->ai_next) {
            fd = open_socket(a, host);
        }
    }
    freeaddrinfo(found);
    return fd;
}

static int listen_for_peer(const char *service)
{
    int fd = open_at(NULL, service, 1), peer;

    if (fd < 0) {
        cli_error("doctor", "cannot listen on port %s: %s", service, strerror(errno));
        return -1;
    }
    fprintf(stderr,
            "ibshift doctor: waiting on port %s for ibshift doctor --peer on the other node\n",
            service);
    peer = accept(fd, NULL, NULL);
    close(fd);
    return peer;
}

static int connect_to_peer(const char *host, const char *service)
{
    int fd = open_at(host, service, CONNECT_TRIES);

    if (fd < 0) {
        cli_error("doctor", "no doctor listens on %s, port %s: start ibshift doctor --listen there",
                  host, service);
    }
    return fd;
}

struct request {
    const char *peer, *service, *fabric;
    bool listens, is_json;
};

/* One that the command line names must be one, before a peer is kept waiting. */
static bool is_compiled(const char *file)
{
    struct ibshift_fabric *f = NULL;
    struct ibshift_error err;

    if (ibshift_compiled_read(file, &f, &err) != 0) {
        cli_error("doctor", "--fabric: %s", err.text);
        return false;
    }
    ibshift_fabric_free(f);
    return true;
}

/* fd: the other process. Returns an enum cli_exit. */
static int examine(struct doctor *d, const struct request *request, int fd)
{
    char host[256] = "";

    (void)gethostname(host, sizeof(host) - 1);
    info_say(&d->info, INFO_FACT, "host", "%s, user %u, ibshift %s", host, (unsigned)geteuid(),
             IBSHIFT_VERSION);
    info_machine(&d->info);
    info_say_component(&d->info);
    doctor_machine(d);
    d->info.fabric = request->fabric != NULL ? request->fabric : d->info.fabric;
    info_say_ports(&d->info, false);
    (void)info_say_fabric(&d->info);
    doctor_tries(d);
    doctor_counters(d, true);
    if (request->peer != NULL) {
        info_say(&d->info, INFO_FACT, "peer", "%s", request->peer);
    }
    if (!info_has_bad(&d->info)) {
        (void)doctor_pair(d, fd, 0);
    }
    doctor_counters(d, false);
    doctor_port_close(d);
    info_print(&d->info, request->is_json);
    return info_has_bad(&d->info) ? CLI_FAILED : CLI_OK;
}

/* The process at the other end: it does its part of the pair, and tells only what keeps it from it. */
static int serve(struct doctor *d, int fd)
{
    info_machine(&d->info);
    doctor_machine(d);
    d->info.line_count = 0; /* they are this node's, and the other one prints the page */
    int rc = doctor_pair(d, fd, 1);

    doctor_port_close(d);
    for (int i = 0; i < d->info.line_count && rc != 0; i++) {
        fprintf(stderr, "ibshift doctor: %s\n", d->info.lines[i].text);
    }
    return rc == 0 ? CLI_OK : CLI_FAILED;
}

int cmd_doctor(int argc, char **argv)
{
    struct request request = {.service = "19875"};
    const struct cli_option options[] = {
        {"--listen", 0, CLI_FLAG, NULL, "wait for the doctor of another node, and be its peer",
         .where = &request.listens},
        {"--peer", 0, CLI_TEXT, "HOST",
         "the node where a doctor listens (default: a second process here)",
         .where = &request.peer},
        {"--port", 0, CLI_TEXT, "N", "TCP port of both (default: 19875)",
         .where = &request.service},
        {"--fabric", 0, CLI_TEXT, "FILE",
         "the compiled fabric (default: that of coll_ibshift_fabric)", .where = &request.fabric},
        cli_json_option(&request.is_json),
        {.name = NULL},
    };
    struct cli_args args = {.command = "doctor", .usage = "", .options = options};
    long port;
    int rc = cli_parse(&args, argc, argv);

    if (rc != CLI_OK || args.helped) {
        return rc;
    }
    if (request.listens && request.peer != NULL) {
        return cli_error("doctor", "--listen and --peer: one node listens, the other names it");
    }
    if (cli_parse_long(request.service, 1, 65535, &port) != 0) {
        return cli_bad_value("doctor", "--port", request.service, "1 to 65535");
    }
    if (request.fabric != NULL && !is_compiled(request.fabric)) {
        return CLI_USAGE;
    }
    struct pool pool = {NULL};
    struct doctor *d = pool_new(&pool, 1, sizeof(*d));
    int fd = request.listens        ? listen_for_peer(request.service)
             : request.peer != NULL ? connect_to_peer(request.peer, request.service)
                                    : fork_peer();
    if (fd < 0) {
        pool_free(&pool);
        return CLI_USAGE;
    }
    rc = request.listens || fd == STDIN_FILENO ? serve(d, fd) : examine(d, &request, fd);
    info_free(&d->info);
    close(fd);
    pool_free(&pool);
    return rc;
}
