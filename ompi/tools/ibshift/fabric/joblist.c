#include "fabric/joblist.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/lines.h"
#include "fabric/names.h"

enum { NAME_SIZE = 256, WHERE_SIZE = 300, ID_SHOWN = 32, DIGITS_MAX = 9 };

static const char LONG_NUMBER[] = " (a number has 9 digits at most)",
                  BACKWARDS[] = " (a range goes from the lower number to the higher)";

struct reader {
    const struct fabric_joblist *to;
    struct pool pool;
    struct fabric_nodes known;
    struct fabric_listed job; /* of this line */
    uint32_t *hosts, nodes;   /* its */
    uint32_t *seen, line;     /* [host]: the last line that has it; this one, from 1 */
    char stranger[FABRIC_NODE_NAME];
    const char *why; /* the list is wrong, or "" */
    struct ibshift_error *err;
};

static int give(struct reader *r, const char *name)
{
    uint32_t host = fabric_nodes_host(&r->known, name);

    if (r->nodes++ == FABRIC_JOBLIST_NODES) {
        return -E2BIG;
    }
    if (host == IBSHIFT_NO_HOST) {
        if (r->job.stranger == NULL) {
            snprintf(r->stranger, sizeof(r->stranger), "%.79s", name);
            r->job.stranger = r->stranger;
        }
        return 0;
    }
    if (r->seen[host] == r->line) {
        return ibshift_fail(r->err, -EEXIST, "%s: '%.60s' is there twice", r->job.where, name);
    }
    r->seen[host] = r->line;
    r->hosts[r->job.count++] = host;
    return 0;
}

/* "[003-018,020]suffix" behind the prefix, and further brackets within the suffix. */
static int expand(struct reader *r, const char *prefix, size_t length, const char *rest)
{
    const char *open = memchr(rest, '[', length), *close;
    char name[NAME_SIZE];
    int rc = 0;

    if (open == NULL) {
        return snprintf(name, sizeof(name), "%s%.*s", prefix, (int)length, rest) >= NAME_SIZE
                   ? -EINVAL
                   : give(r, name);
    }
    close = memchr(open, ']', length - (size_t)(open - rest));
    if (close == NULL || close == open + 1) {
        return -EINVAL;
    }
    for (const char *at = open + 1; rc == 0 && at < close;) {
        size_t digits = strspn(at, "0123456789"), more;
        unsigned long from = strtoul(at, NULL, 10), to = from;

        r->why = digits > DIGITS_MAX ? LONG_NUMBER : "";
        if (digits == 0 || digits > DIGITS_MAX) {
            return -EINVAL;
        }
        at += digits;
        if (*at == '-') {
            more = strspn(++at, "0123456789");
            to = strtoul(at, NULL, 10);
            r->why = more > DIGITS_MAX ? LONG_NUMBER : more > 0 && to < from ? BACKWARDS : "";
            if (more == 0 || more > DIGITS_MAX || to < from) {
                return -EINVAL;
            }
            at += more;
        }
        if (at != close && *at++ != ',') {
            return -EINVAL;
        }
        for (unsigned long number = from; rc == 0 && number <= to; number++) {
            if (snprintf(name, sizeof(name), "%s%.*s%0*lu", prefix, (int)(open - rest), rest,
                         (int)digits, number) >= NAME_SIZE) {
                return -EINVAL;
            }
            rc = expand(r, name, length - (size_t)(close + 1 - rest), close + 1);
        }
    }
    return rc;
}

/* Commas outside of brackets, and blanks, stand between the nodes. */
static int expand_all(struct reader *r, const char *list)
{
    int rc = 0;

    while (rc == 0) {
        bool is_inside = false;
        size_t length = 0;

        list += strspn(list, ", \t");
        if (*list == '\0') {
            return 0;
        }
        while (list[length] != '\0' &&
               (is_inside || (list[length] != ',' && !isspace((unsigned char)list[length])))) {
            is_inside = list[length] == '[' || (is_inside && list[length] != ']');
            length++;
        }
        rc = expand(r, "", length, list);
        list += length;
    }
    return rc;
}

static int read_nodes(struct reader *r, const char *list)
{
    int rc;

    r->job.hosts = r->hosts;
    r->job.count = r->nodes = 0;
    r->job.stranger = NULL;
    r->line++;
    rc = expand_all(r, list);
    rc = rc == 0 && r->nodes == 0 ? -EINVAL : rc;
    return rc == 0 ? r->to->job(r->to->context, &r->job) : rc;
}

static int open_reader(struct reader *r, const struct fabric_joblist *to, struct ibshift_error *err)
{
    const struct ibshift_fabric *f = to->fabric;

    *r = (struct reader){.to = to, .why = "", .err = err, .job = {.seconds = 1}};
    r->hosts = pool_new(&r->pool, f->host_count, sizeof(*r->hosts));
    r->seen = pool_new(&r->pool, f->host_count, sizeof(*r->seen));
    return fabric_nodes_find(f, &r->pool, &r->known, err);
}

int fabric_joblist_nodes(const char *list, const char *where, const struct fabric_joblist *to,
                         struct ibshift_error *err)
{
    struct reader r;
    int rc = open_reader(&r, to, err);

    r.job.where = r.job.name = where;
    rc = rc == 0 ? read_nodes(&r, list) : rc;
    if (rc == -E2BIG) {
        ibshift_fail(err, rc, "'%.60s': more than %d nodes", list, FABRIC_JOBLIST_NODES);
    } else if (rc == -EINVAL) {
        ibshift_fail(err, rc, "'%.60s': wants nodes, as node[001-016],login1%s", list, r.why);
    }
    pool_free(&r.pool);
    return rc;
}

/* "ID|SECONDS|NODES", "ID|NODES" or "NODES". */
static int read_line(struct reader *r, char *line, const char *file, unsigned number)
{
    char *bar = strchr(line, '|'), *second = bar != NULL ? strchr(bar + 1, '|') : NULL;
    char name[NAME_SIZE], where[WHERE_SIZE];

    r->job.where = where;
    r->job.name = name;
    r->job.seconds = 1;
    snprintf(where, sizeof(where), "%.200s:%u", file, number);
    snprintf(name, sizeof(name), "line %u", number);
    if (bar != NULL) {
        *bar = '\0';
        snprintf(name, sizeof(name), "%s", line);
        snprintf(where, sizeof(where), "%.200s:%u: job %.*s", file, number, ID_SHOWN, line);
        line = bar + 1;
    }
    if (second != NULL) {
        char *end;

        r->job.seconds = strtod(line, &end);
        line = second + 1;
        if (end != second || !(r->job.seconds >= 0 && r->job.seconds < 1e12)) {
            return -EINVAL;
        }
    }
    if (strstr(line, "assigned") != NULL) { /* Slurm's "None assigned": it never ran */
        return 0;
    }
    return read_nodes(r, line);
}

static int read_lines(struct reader *r, FILE *file, const char *name)
{
    struct ibshift_error *err = r->err;
    char *line = NULL;
    size_t room = 0;
    unsigned number = 0;
    int rc = 0;

    while (rc == 0 && getline(&line, &room, file) >= 0) {
        number++;
        line[strcspn(line, "\r\n")] = '\0';
        if (line[strspn(line, " \t")] != '\0' && line[0] != '#') {
            rc = read_line(r, line, name, number);
        }
    }
    free(line);
    if (rc == -EINVAL) {
        return ibshift_fail(err, rc,
                            "%s:%u: wants ID|SECONDS|NODES, ID|NODES or NODES, as "
                            "node[001-016],login1%s",
                            name, number, r->why);
    }
    if (rc == -E2BIG) {
        return ibshift_fail(err, rc, "%s:%u: more than %d nodes", name, number,
                            FABRIC_JOBLIST_NODES);
    }
    if (rc == 0 && ferror(file)) {
        return ibshift_fail(err, -EIO, "%s: cannot be read", name);
    }
    return rc == -ENOMEM ? ibshift_fail(err, rc, "no memory") : rc;
}

int fabric_joblist_load(const char *path, const struct fabric_joblist *to,
                        struct ibshift_error *err)
{
    bool is_standard = strcmp(path, "-") == 0;
    struct reader r;
    int rc = open_reader(&r, to, err);
    FILE *file = rc != 0 ? NULL : is_standard ? stdin : ibshift_lines_file(path, err);

    if (file != NULL) {
        rc = read_lines(&r, file, is_standard ? "standard input" : path);
    } else if (rc == 0) {
        rc = -EINVAL;
    }
    if (file != NULL && !is_standard) {
        fclose(file);
    }
    pool_free(&r.pool);
    return rc;
}
