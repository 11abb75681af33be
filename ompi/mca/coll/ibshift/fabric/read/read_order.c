#include "fabric/read/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MOST   4096       /* of one line */
#define ENTRIES_MOST (4u << 20) /* of an order */

struct order {
    struct ibshift_lines *lines;
    const struct ibshift_fabric *f;
    uint32_t *hosts;
    uint32_t count;
    bool has_dummies; /* keeps IBSHIFT_NO_HOST for them */
    bool has_ranks;   /* hosts may come several times, or with a number */
    bool *taken;      /* [host] */
};

static int append(struct order *o, uint32_t host, uint32_t times)
{
    uint32_t *at = o->count + times > ENTRIES_MOST
                       ? NULL
                       : ibshift_room(&o->hosts, o->count, times, sizeof(*at));

    if (at == NULL) {
        return ibshift_lines_fail(o->lines, -ENOMEM, "too many hosts");
    }
    for (uint32_t i = 0; i < times; i++) {
        at[i] = host;
    }
    o->count += times;
    return 0;
}

static char *trim(char *text)
{
    size_t length;

    text += strspn(text, " \t");
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

static int read_line(void *context)
{
    struct order *o = context;
    char *text = trim(o->lines->text);
    uint32_t ranks = 1;
    int64_t host;

    if (text[0] == '\0' || text[0] == '#') {
        return 0;
    }
    if (ibshift_scan_word(text, "0xFFFF") != NULL && strstr(text, "DUMMY") != NULL) {
        return o->has_dummies ? append(o, IBSHIFT_NO_HOST, 1) : 0;
    }
    host = host_of_line(o->f, text);
    if (host == -ENOENT && o->has_ranks) {
        ranks = cut_ranks(text);
        host = ranks > 0 ? host_of_line(o->f, text) : host;
    }
    if (host < 0) {
        return ibshift_lines_fail(
            o->lines, (int)host,
            host == -EEXIST ? "'%.60s': several ports have this name; give NAME/PORT or 0xPORTGUID"
                            : "'%.60s': no host of the fabric",
            text);
    }
    if (o->taken[host] && !o->has_ranks) {
        return ibshift_lines_fail(o->lines, -EEXIST, "host '%s' appears twice",
                                  ibshift_host_name(o->f, (uint32_t)host));
    }
    o->taken[host] = true;
    return append(o, (uint32_t)host, ranks);
}

static int read_hosts(struct order o, uint32_t **order, uint32_t *count)
{
    int rc;

    o.taken = calloc((size_t)o.f->host_count + 1, sizeof(*o.taken));
    rc = o.taken == NULL ? ibshift_fail(o.lines->err, -ENOMEM, "no memory")
                         : ibshift_lines_each(o.lines, read_line, &o);
    free(o.taken);
    if (rc == 0 && o.count == 0) {
        rc = ibshift_lines_fail(o.lines, -ENODATA, "no host in the file");
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
                       uint32_t **order, uint32_t *count)
{
    return read_hosts((struct order){.lines = lines, .f = f, .has_dummies = dummies}, order, count);
}

static int load(const char *path, struct order o, uint32_t **order, uint32_t *count,
                struct ibshift_error *err)
{
    int rc;

    o.lines = ibshift_lines_open(path, err);
    if (o.lines == NULL) {
        return -EIO;
    }
    rc = read_hosts(o, order, count);
    ibshift_lines_close(o.lines);
    return rc;
}

int ibshift_order_load(const char *path, const struct ibshift_fabric *f, bool dummies,
                       uint32_t **order, uint32_t *count, struct ibshift_error *err)
{
    return load(path, (struct order){.f = f, .has_dummies = dummies}, order, count, err);
}

int ibshift_ranks_load(const char *path, const struct ibshift_fabric *f, uint32_t **host_of,
                       uint32_t *ranks, struct ibshift_error *err)
{
    return load(path, (struct order){.f = f, .has_ranks = true}, host_of, ranks, err);
}
