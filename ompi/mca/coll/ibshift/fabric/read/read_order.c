#include "fabric/read/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct order {
    uint32_t *hosts;
    uint32_t count, room;
    bool has_dummies; /* keeps IBSHIFT_NO_HOST for them */
    bool has_ranks;   /* hosts may come several times, or with a number */
};

#define RANKS_MOST 4096 /* of one line */

static int append(struct order *o, uint32_t host)
{
    if (o->count == o->room) {
        uint32_t room = o->room == 0 ? 256 : 2 * o->room;
        uint32_t *moved = room > 4u << 20 ? NULL : realloc(o->hosts, room * sizeof(*moved));

        if (moved == NULL) {
            return -ENOMEM;
        }
        o->hosts = moved;
        o->room = room;
    }
    o->hosts[o->count++] = host;
    return 0;
}

static char *trim(char *text)
{
    size_t length;

    while (*text == ' ' || *text == '\t') {
        text++;
    }
    length = strlen(text);
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t')) {
        text[--length] = '\0';
    }
    return text;
}

/* "0x0001\tname" of a LID, or a name. */
static int64_t host_of_line(const struct ibshift_fabric *f, char *text)
{
    char *tab = strchr(text, '\t');
    uint64_t lid;

    if (tab != NULL && ibshift_scan_hex(text, &lid) == tab) {
        uint32_t host =
            lid <= IBSHIFT_LID_MAX ? ibshift_fabric_host_of_lid(f, (unsigned)lid) : IBSHIFT_NO_HOST;

        return host != IBSHIFT_NO_HOST ? (int64_t)host : ibshift_fabric_find_host(f, trim(tab));
    }
    return ibshift_fabric_find_host(f, text);
}

/* "NAME N", "NAME:N", "NAME slots=N": cuts the number off. 0: there is none. */
static uint32_t cut_ranks(char *text)
{
    char *digits = text + strlen(text), *end;
    uint64_t ranks;

    while (digits > text && digits[-1] >= '0' && digits[-1] <= '9') {
        digits--;
    }
    if (ibshift_scan_decimal(digits, &ranks) == NULL || ranks < 1 || ranks > RANKS_MOST) {
        return 0;
    }
    end = digits;
    if (end - text > 6 && strncmp(end - 6, "slots=", 6) == 0) {
        end -= 6;
    } else if (end > text && end[-1] == ':') {
        *--end = ' ';
    }
    if (end == text || (end[-1] != ' ' && end[-1] != '\t' && *end != ' ')) {
        return 0;
    }
    *end = '\0';
    trim(text);
    return (uint32_t)ranks;
}

static int add_ranks(struct ibshift_lines *lines, struct order *o, uint32_t host, uint32_t ranks,
                     struct ibshift_error *err)
{
    for (uint32_t i = 0; i < ranks; i++) {
        if (append(o, host) != 0) {
            return ibshift_lines_fail(lines, err, -ENOMEM, "too many hosts");
        }
    }
    return 0;
}

static int read_line(struct ibshift_lines *lines, const struct ibshift_fabric *f, struct order *o,
                     bool *taken, struct ibshift_error *err)
{
    char *text = trim(lines->text);
    uint32_t ranks = 1;
    int64_t host;

    if (text[0] == '\0' || text[0] == '#') {
        return 0;
    }
    if (strncmp(text, "0xFFFF", 6) == 0 && strstr(text, "DUMMY") != NULL) {
        return o->has_dummies && append(o, IBSHIFT_NO_HOST) != 0
                   ? ibshift_lines_fail(lines, err, -ENOMEM, "too many entries")
                   : 0;
    }
    host = host_of_line(f, text);
    if (host == -ENOENT && o->has_ranks) {
        ranks = cut_ranks(text);
        host = ranks > 0 ? host_of_line(f, text) : host;
    }
    if (host < 0) {
        return ibshift_lines_fail(
            lines, err, (int)host,
            host == -EEXIST ? "'%.60s': several ports have this name; give NAME/PORT or 0xPORTGUID"
                            : "'%.60s': no host of the fabric",
            text);
    }
    if (taken[host] && !o->has_ranks) {
        return ibshift_lines_fail(lines, err, -EEXIST, "host '%s' appears twice",
                                  ibshift_host_name(f, (uint32_t)host));
    }
    taken[host] = true;
    return add_ranks(lines, o, (uint32_t)host, ranks, err);
}

static int read_hosts(struct ibshift_lines *lines, const struct ibshift_fabric *f, struct order o,
                      uint32_t **order, uint32_t *count, struct ibshift_error *err)
{
    bool *taken = calloc((size_t)f->host_count + 1, sizeof(*taken));
    int rc = taken == NULL ? ibshift_fail(err, -ENOMEM, "no memory") : 1;

    while (rc > 0 && (rc = ibshift_lines_next(lines, err)) > 0) {
        rc = read_line(lines, f, &o, taken, err);
        rc = rc == 0 ? 1 : rc;
    }
    free(taken);
    if (rc == 0 && o.count == 0) {
        rc = ibshift_lines_fail(lines, err, -ENODATA, "no host in the file");
    }
    if (rc != 0) {
        free(o.hosts);
        return rc;
    }
    *order = o.hosts;
    *count = o.count;
    return 0;
}

int ibshift_read_order(struct ibshift_lines *lines, const struct ibshift_fabric *f, bool dummies,
                       uint32_t **order, uint32_t *count, struct ibshift_error *err)
{
    return read_hosts(lines, f, (struct order){.has_dummies = dummies}, order, count, err);
}

static int load(const char *path, const struct ibshift_fabric *f, struct order o, uint32_t **order,
                uint32_t *count, struct ibshift_error *err)
{
    struct ibshift_lines *lines = malloc(sizeof(*lines));
    int rc = lines == NULL ? ibshift_fail(err, -ENOMEM, "no memory")
                           : ibshift_lines_open(lines, path, err);

    if (rc == 0) {
        rc = read_hosts(lines, f, o, order, count, err);
        ibshift_lines_close(lines);
    }
    free(lines);
    return rc;
}

int ibshift_order_load(const char *path, const struct ibshift_fabric *f, bool dummies,
                       uint32_t **order, uint32_t *count, struct ibshift_error *err)
{
    return load(path, f, (struct order){.has_dummies = dummies}, order, count, err);
}

int ibshift_ranks_load(const char *path, const struct ibshift_fabric *f, uint32_t **host_of,
                       uint32_t *ranks, struct ibshift_error *err)
{
    return load(path, f, (struct order){.has_ranks = true}, host_of, ranks, err);
}
