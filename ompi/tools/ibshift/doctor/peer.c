/* The other process of a pair: a child here, or a doctor on another node. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli.h"
#include "doctor/doctor.h"

/* The child's end is its standard input: so it knows which of the two it is. */
int doctor_fork(void)
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

static int look_up(const char *host, const char *service, struct addrinfo **found)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = host == NULL ? AI_PASSIVE : 0};
    int rc = getaddrinfo(host, service, &hints, found);

    if (rc != 0) {
        cli_error("doctor", "--peer '%s': %s", host != NULL ? host : "", gai_strerror(rc));
    }
    return rc == 0 ? 0 : -1;
}

static int bound(const struct addrinfo *a)
{
    int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol), on = 1;

    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
                    bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, 1) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

int doctor_listen(const char *service)
{
    struct addrinfo *found, *a;
    int fd = -1, peer = -1;

    if (look_up(NULL, service, &found) != 0) {
        return -1;
    }
    for (a = found; a != NULL && fd < 0; a = a->ai_next) {
        fd = bound(a);
    }
    freeaddrinfo(found);
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

int doctor_connect(const char *host, const char *service)
{
    struct addrinfo *found, *a;
    int fd = -1;

    if (look_up(host, service, &found) != 0) {
        return -1;
    }
    for (a = found; a != NULL && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    if (fd < 0) {
        cli_error("doctor", "no doctor listens on %s, port %s: start ibshift doctor --listen there",
                  host, service);
    }
    return fd;
}
