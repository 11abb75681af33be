/*
 * Reports with a row per port.
 *
 * ibdiagnet2.net_dump: each switch with the state of its ports; adapters are known from these rows
 * alone. Releases differ in the columns, so they are found by name; the description is the last and
 * may have colons.
 *
 *   "NAME", VENDOR, 0xGUID, LID 7
 *   # : IB# : Sta : PhysSta : MTU : LWA : LSA : ... : Neighbor Guid : N# : NLID : Neighbor Description
 *   1 : 1 : ACT : LINK UP : 5 : 4x : 100 : ... : 0x... : 1 : 12 : "host1 mlx5_0"
 *
 * ibnetdiscover --ports: each port, what it is joined with, and the descriptions of both.
 *
 *   SW     7  1 0x... 4x EDR - CA    12  1 0x... ( 'leaf1' - 'host1 mlx5_0' )
 *   SW     7  2 0x... 4x ???                       'leaf1'
 */
#include "fabric/graph/rate.h"
#include "fabric/read/draft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum column { PORT, STATE, WIDTH, SPEED, GUID, REMOTE, LID, NAME, COLUMNS };

struct rows {
    struct ibshift_draft draft;
    struct ibshift_lines *lines;
    uint64_t current;    /* the switch whose rows these are; 0 before the first */
    int column[COLUMNS]; /* where they stand; -1: no heading yet */
};

static int read_switch(struct rows *r, const char *line)
{
    struct ibshift_draft_node *n;
    char name[512];
    uint64_t lid;

    if (ibshift_scan(line, "%q%*0x%x%*LID %u", name, sizeof(name), &r->current, &lid) == NULL ||
        r->current == 0 || lid > IBSHIFT_LID_MAX) {
        return ibshift_lines_fail(r->lines, -EINVAL,
                                  "wants a switch: \"NAME\", VENDOR, 0xGUID, LID NUMBER");
    }
    n = ibshift_draft_node(&r->draft, r->current, IBSHIFT_NODE_SWITCH, name, strlen(name), 0);
    if (n == NULL) {
        return -ENOMEM;
    }
    if (n->is_described) {
        return ibshift_lines_fail(r->lines, -EEXIST, "'%s' appears twice", name);
    }
    n->is_described = true;
    n->lid = (unsigned)lid;
    return 0;
}

static bool is_named(const char *cell, size_t length, const char *name)
{
    while (length > 0 && cell[length - 1] == ' ') {
        length--;
    }
    return strlen(name) == length && strncmp(cell, name, length) == 0;
}

static int read_columns(struct rows *r, const char *line)
{
    static const char *const names[COLUMNS] = {
        "IB#", "Sta", "LWA", "LSA", "Neighbor Guid", "N#", "NLID", "Neighbor Description"};

    memset(r->column, 0xff, sizeof(r->column));
    for (int at = 0; line != NULL; at++) {
        size_t length;

        line = ibshift_scan_blanks(line);
        length = strcspn(line, ":");
        for (int c = 0; c < COLUMNS; c++) {
            r->column[c] = is_named(line, length, names[c]) ? at : r->column[c];
        }
        line = line[length] == '\0' ? NULL : line + length + 1;
    }
    for (int c = 0; c < COLUMNS; c++) {
        if (r->column[c] < 0) {
            return ibshift_lines_fail(r->lines, -EINVAL, "no column '%s'", names[c]);
        }
    }
    return 0;
}

/* What begins at the column, after blanks; NULL: the row ends before. */
static const char *cell(const char *line, int column)
{
    for (int i = 0; i < column && line != NULL; i++) {
        line = ibshift_scan(line, "%*:");
    }
    return column < 0 || line == NULL ? NULL : ibshift_scan_blanks(line);
}

static int read_port(struct rows *r, const char *line)
{
    const char *at[COLUMNS];
    struct ibshift_draft_end near = {.key = r->current}, far = {.lmc = 0};
    char name[512];

    for (int c = 0; c < COLUMNS; c++) {
        at[c] = cell(line, r->column[c]);
        if (at[c] == NULL) {
            return ibshift_lines_fail(r->lines, -EINVAL,
                                      "fewer columns than the heading above has, or no heading");
        }
    }
    if (ibshift_scan_decimal(at[PORT], &near.port) == NULL || near.port < 1 ||
        near.port > IBSHIFT_PORT_MAX) {
        return ibshift_lines_fail(r->lines, -EINVAL, "wants a port from 1 to %d", IBSHIFT_PORT_MAX);
    }
    ibshift_draft_node(&r->draft, near.key, IBSHIFT_NODE_SWITCH, "", 0, near.port);
    if (strncmp(at[GUID], "0x", 2) != 0 || strncmp(at[STATE], "DOWN", 4) == 0) {
        return 0; /* nothing is at the port */
    }
    if (ibshift_scan_hex(at[GUID], &far.key) == NULL || far.key == 0 ||
        ibshift_scan_decimal(at[REMOTE], &far.port) == NULL || far.port < 1 ||
        far.port > IBSHIFT_PORT_MAX || ibshift_scan_decimal(at[LID], &far.lid) == NULL ||
        far.lid > IBSHIFT_LID_MAX || ibshift_scan(at[NAME], "%q", name, sizeof(name)) == NULL) {
        return ibshift_lines_fail(r->lines, -EINVAL,
                                  "wants the neighbor's GUID, port, LID and description");
    }
    return ibshift_draft_node(&r->draft, far.key, IBSHIFT_NODE_HCA, name, strlen(name), far.port) ==
                   NULL
               ? -ENOMEM
               : ibshift_draft_join(&r->draft, &near, &far,
                                    ibshift_rate_of_texts(at[WIDTH], at[SPEED]));
}

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

static int bad_row(const struct rows *r)
{
    return ibshift_lines_fail(r->lines, -EINVAL,
                              "wants a row: SW|CA LID PORT 0xGUID WIDTH SPEED [- SW|CA LID PORT "
                              "0xGUID ( 'NAME' - 'NAME' )]");
}

static int read_pair(struct rows *r, struct ibshift_draft_row *near, const char *at,
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
        return bad_row(r);
    }
    middle = far.name - strlen("' - '");
    near->length = (size_t)(middle - near->name);
    far.length = (size_t)(end - strlen("' )") - far.name);
    snprintf(rate, sizeof(rate), "%s%s", width, speed);
    return ibshift_draft_join_rows(&r->draft, near, &far, ibshift_rate_parse(rate));
}

static int read_report(struct rows *r, const char *line)
{
    struct ibshift_draft_row near;
    const char *at = scan_end(line, &near), *joined = at == NULL ? NULL : strstr(at, " - ");
    const char *name = at == NULL ? NULL : strchr(at, '\''), *end;

    if (name == NULL) {
        return bad_row(r);
    }
    r->draft.counts_guids = false;
    if (joined != NULL && joined < name) {
        return read_pair(r, &near, at, joined + 3);
    }
    end = strrchr(name + 1, '\'');
    near.name = name + 1;
    near.length = end != NULL ? (size_t)(end - near.name) : strlen(near.name);
    return ibshift_draft_add_row(&r->draft, &near);
}

static int read_line(void *context)
{
    struct rows *r = context;
    const char *line = r->lines->text;

    if (is_end(line)) {
        return read_report(r, line);
    }
    if (ibshift_scan_word(line, "DR path ") || ibshift_scan_word(line, "ibwarn:")) {
        return 0; /* --show */
    }
    if (line[0] == '"') {
        return read_switch(r, line);
    }
    if (line[0] == '#') {
        return strstr(line, "Neighbor Guid") == NULL ? 0 : read_columns(r, line);
    }
    return line[0] == '\0' || line[0] == '-' || r->draft.node_count == 0 ? 0 : read_port(r, line);
}

int ibshift_read_rows(struct ibshift_lines *lines, struct ibshift_fabric *f,
                      struct ibshift_warnings *warnings)
{
    struct rows r = {.draft = {.lines = lines, .fabric = f, .counts_guids = true}, .lines = lines};

    (void)warnings;
    memset(r.column, 0xff, sizeof(r.column));
    return ibshift_draft_read(&r.draft, read_line, &r, "port");
}
