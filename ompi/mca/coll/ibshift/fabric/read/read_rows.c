/*
 * What ibnetdiscover --ports prints: each port, what it is joined with, and the descriptions of both.
 *
 *   SW     7  1 0x... 4x EDR - CA    12  1 0x... ( 'leaf1' - 'host1 mlx5_0' )
 *   SW     7  2 0x... 4x ???                       'leaf1'
 */
#include "fabric/graph/rate.h"
#include "fabric/read/draft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_end(const char *at)
{
    return ibshift_scan_word(at, "SW ") || ibshift_scan_word(at, "CA ") ||
           ibshift_scan_word(at, "RT ");
}

/* "SW   LID PORT 0xGUID"; NULL: it is not like that. */
static const char *scan_end(const char *at, struct ibshift_draft_row *end)
{
    end->kind = at[0] == 'S'   ? IBSHIFT_NODE_SWITCH
                : at[0] == 'C' ? IBSHIFT_NODE_HCA
                               : IBSHIFT_NODE_OTHER;
    at = is_end(at) ? ibshift_scan(at + 2, "%u%u%x", &end->lid, &end->port, &end->guid) : NULL;
    return at != NULL && end->lid <= IBSHIFT_LID_MAX && end->port >= 1 &&
                   end->port <= IBSHIFT_PORT_MAX && end->guid != 0
               ? at
               : NULL;
}

static int bad_row(const struct ibshift_draft *d)
{
    return ibshift_lines_fail(d->lines, -EINVAL,
                              "wants a row: SW|CA LID PORT 0xGUID WIDTH SPEED [- SW|CA LID PORT "
                              "0xGUID ( 'NAME' - 'NAME' )]");
}

static int read_pair(struct ibshift_draft *d, struct ibshift_draft_row *near, const char *at,
                     const char *far_at)
{
    struct ibshift_draft_row far;
    const char *rest = scan_end(ibshift_scan_blanks(far_at), &far);
    const char *middle, *end;
    char width[8] = "", speed[8] = "", rate[20];

    near->name = ibshift_scan(rest, "%*( '");
    far.name = ibshift_scan(near->name, "%*' - '");
    end = ibshift_scan(far.name, "%*' )");
    if (end == NULL || sscanf(at, " %7[0-9x] %7s", width, speed) != 2) {
        return bad_row(d);
    }
    middle = far.name - strlen("' - '");
    near->length = (size_t)(middle - near->name);
    far.length = (size_t)(end - strlen("' )") - far.name);
    snprintf(rate, sizeof(rate), "%s%s", width, speed);
    return ibshift_draft_join_rows(d, near, &far, ibshift_rate_parse(rate));
}

static int read_report(struct ibshift_draft *d, const char *line)
{
    struct ibshift_draft_row near;
    const char *at = scan_end(line, &near), *joined = at == NULL ? NULL : strstr(at, " - ");
    const char *name = at == NULL ? NULL : strchr(at, '\''), *end;

    if (name == NULL) {
        return bad_row(d);
    }
    if (joined != NULL && joined < name) {
        return read_pair(d, &near, at, joined + 3);
    }
    end = strrchr(name + 1, '\'');
    near.name = name + 1;
    near.length = end != NULL ? (size_t)(end - near.name) : strlen(near.name);
    return ibshift_draft_add_row(d, &near);
}

static int read_line(void *context)
{
    struct ibshift_draft *d = context;
    const char *line = d->lines->text;

    if (is_end(line)) {
        return read_report(d, line);
    }
    return d->node_count == 0 || line[0] == '\0' || line[0] == '#' ||
                   ibshift_scan_word(line, "DR path ") || /* --show */
                   ibshift_scan_word(line, "ibwarn:")
               ? 0
               : bad_row(d);
}

int ibshift_read_rows(struct ibshift_lines *lines, struct ibshift_fabric *f,
                      struct ibshift_warnings *warnings)
{
    struct ibshift_draft d = {.lines = lines, .fabric = f};

    (void)warnings;
    return ibshift_draft_read(&d, read_line, &d, "port");
}
