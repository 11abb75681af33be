/* Forwarding tables: dump_fts, opensm-lfts.dump and opensm.fdbs differ in headers and punctuation only. */
#include "fabric/read/read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct tables {
    struct ibshift_lines *lines;
    struct ibshift_fabric *fabric;
    struct ibshift_warnings *warnings;
    uint64_t *owner;    /* [LID]: port GUID that the rows name, 0 = none said */
    bool *seen;         /* [switch]: has a table */
    uint32_t sw;        /* of the table being read, or IBSHIFT_NO_SWITCH */
    unsigned top, rows; /* of it, as its header says; rows read */
    unsigned last;      /* LID of the last row */
    unsigned cut_off;   /* tables whose last LID, a multiple of 64, is missing */
    unsigned cut_lid;
    uint32_t owners; /* LIDs whose port is said */
    uint32_t errors; /* a tool's messages of tables that it could not read */
    struct doubt {
        uint32_t count;
        char one[160];     /* the first */
    } gone, moved, argued; /* LIDs of ports that are not there, or have another LID; rows that
                              name another port than the tables before */
    bool has_ends;         /* tables end with a count: the last must, too */
};

/* dump_fts of infiniband-diags to 44.0 leaves the last LID out where it is a multiple of 64. */
static void end_table(struct tables *t)
{
    if (t->sw != IBSHIFT_NO_SWITCH && t->top != 0 && t->top % 64 == 0 && t->last + 1 == t->top) {
        t->cut_off++;
        t->cut_lid = t->top;
    }
    t->sw = IBSHIFT_NO_SWITCH;
}

static int begin_table(struct tables *t, uint32_t node)
{
    uint32_t sw;

    end_table(t);
    if (node == IBSHIFT_NO_NODE || !ibshift_node_is_switch(t->fabric, node)) {
        return ibshift_lines_fail(t->lines, -ENOENT,
                                  "this switch is not in the fabric: tables of another fabric?");
    }
    sw = t->fabric->nodes[node].switch_index;
    if (t->seen[sw]) {
        return ibshift_lines_fail(t->lines, -EEXIST, "a second table for switch '%s'",
                                  ibshift_node_name(t->fabric, node));
    }
    t->seen[sw] = true;
    t->sw = sw;
    t->rows = 0;
    t->last = 0;
    return 0;
}

static uint32_t switch_by_lid(const struct ibshift_fabric *f, uint64_t lid)
{
    for (uint32_t s = 0; lid != 0 && s < f->switch_count; s++) {
        if (f->nodes[f->switches[s]].lid == lid) {
            return f->switches[s];
        }
    }
    return IBSHIFT_NO_NODE;
}

/* "Unicast lids [0x0-0x70] of switch DR path ... guid 0x.. (name):", "... [0-112] of switch Lid 2 guid
 * 0x..", "dump_ucast_routes: Switch 0x..". */
static int read_header(struct tables *t, const char *line)
{
    uint64_t guid = 0, lid = 0, first, top = 0;

    if (ibshift_scan(line, "%*[0x%x-0x%x]", &first, &top) == NULL &&
        ibshift_scan(line, "%*[%u-%u]", &first, &top) == NULL) {
        top = 0;
    }
    if (ibshift_scan(line, "%*guid %x", &guid) == NULL &&
        ibshift_scan(line, "%*Switch %x", &guid) == NULL &&
        ibshift_scan(line, "%*Lid %u", &lid) == NULL) {
        return ibshift_lines_fail(t->lines, -EINVAL, "no switch GUID in this header");
    }
    t->top = top <= IBSHIFT_LID_MAX ? (unsigned)top : 0;
    return begin_table(t, guid != 0 ? ibshift_fabric_find_guid(t->fabric, guid)
                                    : switch_by_lid(t->fabric, lid));
}

static uint32_t port_by_guid(const struct ibshift_fabric *f, uint64_t guid)
{
    uint32_t node = ibshift_fabric_find_guid(f, guid);

    for (uint32_t i = 0; node != IBSHIFT_NO_NODE && i < f->nodes[node].port_count; i++) {
        if (f->ports[f->nodes[node].first_port + i].guid == guid) {
            return f->nodes[node].first_port + i;
        }
    }
    return IBSHIFT_NO_PORT;
}

/* Is the LID the port's, as the fabric says? */
static bool has_lid(const struct ibshift_fabric *f, uint64_t guid, unsigned lid)
{
    uint32_t node = ibshift_fabric_find_guid(f, guid), port = port_by_guid(f, guid);

    if (node != IBSHIFT_NO_NODE && ibshift_node_is_switch(f, node)) {
        return lid - f->nodes[node].lid < 1u << f->nodes[node].lmc;
    }
    return port != IBSHIFT_NO_PORT && lid - f->ports[port].lid < 1u << f->ports[port].lmc;
}

/* The row says who has the LID: "portguid 0x..". Of tables that do not agree, because they were
 * read one after the other while a LID changed hands, the one that the fabric bears out is right.
 */
static void note_owner(struct tables *t, unsigned lid, const char *at)
{
    uint64_t guid;

    if (ibshift_scan(at, "%*portguid %x", &guid) == NULL || guid == 0) {
        return;
    }
    if (t->owner[lid] != 0 && t->owner[lid] != guid && t->argued.count++ == 0) {
        snprintf(t->argued.one, sizeof(t->argued.one),
                 "line %u: LID %u is port 0x%016" PRIx64 " here, 0x%016" PRIx64 " before",
                 t->lines->number, lid, guid, t->owner[lid]);
    }
    t->owners += t->owner[lid] == 0;
    if (t->owner[lid] == 0 || has_lid(t->fabric, guid, lid)) {
        t->owner[lid] = guid;
    }
}

static int read_row(struct tables *t, const char *line)
{
    uint32_t node = t->fabric->switches[t->sw];
    uint64_t lid, port = 0;
    const char *at = ibshift_scan_hex(line, &lid), *rest;

    at = at == NULL ? NULL : at + strspn(at, " \t:");
    rest = ibshift_scan_decimal(at, &port);
    if (at != NULL && rest == NULL && ibshift_scan_word(at, "UNREACHABLE") != NULL) {
        return 0;
    }
    if (rest == NULL || lid > IBSHIFT_LID_MAX) {
        return ibshift_lines_fail(t->lines, -EINVAL, "wants a row: 0xLID PORT, LIDs to 0x%x",
                                  IBSHIFT_LID_MAX);
    }
    if (t->rows != 0 && lid == t->last) { /* some versions of ibroute print all LIDs from 64 so */
        return ibshift_lines_fail(t->lines, -EEXIST,
                                  "LID %" PRIu64 " a second time: which LIDs these rows are of is "
                                  "not known",
                                  lid);
    }
    t->rows++;
    t->last = (unsigned)lid;
    if (port == 255) {
        return 0;
    }
    if (port > t->fabric->nodes[node].port_count) {
        return ibshift_lines_fail(t->lines, -ERANGE, "port %" PRIu64 ", but switch '%s' has %u",
                                  port, ibshift_node_name(t->fabric, node),
                                  t->fabric->nodes[node].port_count);
    }
    ibshift_lft_set(t->fabric, t->sw, (unsigned)lid, (unsigned)port);
    note_owner(t, (unsigned)lid, rest);
    return 0;
}

/* "6 valid lids dumped": the number of rows; OpenSM's "6 lids dumped" counts LIDs without a row as
 * well. */
static int read_count(struct tables *t, const char *line)
{
    uint64_t count = t->rows;

    ibshift_scan_decimal(line, &count);
    if (t->sw != IBSHIFT_NO_SWITCH &&
        (strstr(line, "valid") != NULL ? t->rows != count : t->rows > count)) {
        return ibshift_lines_fail(t->lines, -EINVAL,
                                  "%u rows, but %" PRIu64 " were dumped: lines are missing",
                                  t->rows, count);
    }
    end_table(t);
    t->has_ends = true;
    return 0;
}

static bool is_heading(const char *line)
{
    static const char *const words[] = {
        "#", "Lid ", "LID ", "File version:", "Port ", "ibwarn:", "*** WARNING"};

    line = ibshift_scan_blanks(line);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (ibshift_scan_word(line, words[i])) {
            return true;
        }
    }
    return line[0] == '\0';
}

static int read_line(void *context)
{
    struct tables *t = context;
    const char *line = t->lines->text;

    if (ibshift_scan_word(line, "0x") && t->sw != IBSHIFT_NO_SWITCH) {
        return read_row(t, line);
    }
    if (ibshift_scan_word(line, "Unicast lids") || strstr(line, "dump_ucast_routes: Switch")) {
        return read_header(t, line);
    }
    if (strstr(line, "lids dumped") != NULL) {
        return read_count(t, line);
    }
    if (strstr(line, "iberror:") != NULL) { /* in the place of a table, or of the rest of one */
        t->sw = IBSHIFT_NO_SWITCH;
        t->errors++;
        return 0;
    }
    return is_heading(line)
               ? 0
               : ibshift_lines_fail(t->lines, -EINVAL,
                                    "'%.40s' is not a line of a forwarding table", line);
}

/* LIDs first .. last belong to a port GUID: gives them to the port, or compares with what the
 * fabric says. */
static int assign_lids(struct tables *t, unsigned first, unsigned last, uint64_t guid)
{
    struct ibshift_fabric *f = t->fabric;
    uint32_t node = ibshift_fabric_find_guid(f, guid), port = port_by_guid(f, guid);
    bool is_switch = node != IBSHIFT_NO_NODE && ibshift_node_is_switch(f, node);
    unsigned known, lmc = 0;

    if (node == IBSHIFT_NO_NODE || (!is_switch && port == IBSHIFT_NO_PORT)) {
        if (t->gone.count == 0) {
            snprintf(t->gone.one, sizeof(t->gone.one), "LID %u is port 0x%016" PRIx64, first, guid);
        }
        t->gone.count += last - first + 1;
        return 0;
    }
    known = is_switch ? f->nodes[node].lid : f->ports[port].lid;
    while (1u << lmc < last - first + 1) {
        lmc++;
    }
    if (known == 0) {
        return ibshift_fabric_set_lid(f, node, is_switch ? 0 : f->ports[port].number, first, lmc,
                                      t->lines->err);
    }
    if (first < known ||
        last >= known + (1u << (is_switch ? f->nodes[node].lmc : f->ports[port].lmc))) {
        if (first != known || is_switch) {
            if (t->moved.count == 0) {
                snprintf(t->moved.one, sizeof(t->moved.one),
                         "'%.80s' has LID %u here, %u in the fabric", ibshift_node_name(f, node),
                         first, known);
            }
            t->moved.count += last - first + 1;
            return 0;
        }
        f->ports[port].lmc = (uint8_t)lmc; /* a source of the fabric that does not say the LMC */
    }
    return 0;
}

/* Differences of a few are those of a fabric in use: a host that started between two tools. */
static int tell_or_refuse(struct tables *t, const struct doubt *doubt, const char *what)
{
    if (doubt->count > t->owners / 10 + 1) {
        return ibshift_fail(t->lines->err, -ESTALE,
                            "%s: %s, and %u more of %u: tables of another fabric, or of another "
                            "day",
                            t->lines->name, doubt->one, doubt->count - 1, t->owners);
    }
    if (doubt->count != 0) {
        ibshift_warn(t->warnings, "%s: %s: %u (%s)", t->lines->name, what, doubt->count,
                     doubt->one);
    }
    return 0;
}

static int tell_ages(struct tables *t)
{
    int rc = tell_or_refuse(t, &t->gone, "LIDs of ports that are not in the fabric, ignored");

    rc =
        rc == 0 ? tell_or_refuse(t, &t->moved, "LIDs of ports that have another one, ignored") : rc;
    return rc == 0 ? tell_or_refuse(t, &t->argued, "rows that other tables contradict") : rc;
}

static int assign_owners(struct tables *t)
{
    int rc = 0;

    for (unsigned lid = 1; rc == 0 && lid <= IBSHIFT_LID_MAX; lid++) {
        unsigned last = lid;

        if (t->owner[lid] == 0) {
            continue;
        }
        while (last < IBSHIFT_LID_MAX && last - lid < 127 && t->owner[last + 1] == t->owner[lid]) {
            last++;
        }
        rc = assign_lids(t, lid, last, t->owner[lid]);
        lid = last;
    }
    return rc;
}

/* As many tables may be missing as the tool that read them says it could not read. */
static int check_complete(struct tables *t)
{
    const struct ibshift_fabric *f = t->fabric;
    uint32_t missing = 0, first = 0;

    for (uint32_t s = f->switch_count; s-- > 0;) {
        if (!t->seen[s] && ibshift_node_has_cable(f, f->switches[s])) {
            missing++;
            first = f->switches[s];
        }
    }
    if (missing != 0 && missing <= t->errors && missing <= f->switch_count / 10 + 1) {
        ibshift_warn(t->warnings,
                     "%s: the tables of %u of %u switches could not be read, '%s' for one: "
                     "no route goes through it",
                     t->lines->name, missing, f->switch_count, ibshift_node_name(f, first));
    } else if (missing != 0) {
        return ibshift_lines_fail(t->lines, -ENODATA,
                                  "the file ends without the tables of %u of %u switches, '%s' "
                                  "for one",
                                  missing, f->switch_count, ibshift_node_name(f, first));
    }
    return 0;
}

static void tell_rest(const struct tables *t)
{
    if (t->cut_off != 0) {
        ibshift_warn(t->warnings,
                     "%s: LID %u is missing from %u tables: dump_fts of infiniband-diags 44 and "
                     "older omits the last LID when it is a multiple of 64; take OpenSM's "
                     "opensm-lfts.dump or ibshift fabric publish instead",
                     t->lines->name, t->cut_lid, t->cut_off);
    }
}

static int read_all(struct tables *t)
{
    int rc = ibshift_lines_each(t->lines, read_line, t);

    if (rc == 0 && t->has_ends && t->sw != IBSHIFT_NO_SWITCH) {
        rc = ibshift_lines_fail(t->lines, -ENODATA,
                                "the file ends within the table of '%s': truncated",
                                ibshift_node_name(t->fabric, t->fabric->switches[t->sw]));
    }
    if (rc == 0) {
        end_table(t);
        rc = check_complete(t);
    }
    if (rc == 0) {
        tell_rest(t);
        rc = assign_owners(t);
    }
    rc = rc == 0 ? tell_ages(t) : rc;
    return rc == 0 ? ibshift_fabric_finish(t->fabric, t->lines->err) : rc;
}

int ibshift_read_tables(struct ibshift_lines *lines, struct ibshift_fabric *f,
                        struct ibshift_warnings *warnings)
{
    struct tables t = {.lines = lines,
                       .fabric = f,
                       .warnings = warnings,
                       .sw = IBSHIFT_NO_SWITCH,
                       .owner = calloc(IBSHIFT_LID_MAX + 1, sizeof(*t.owner)),
                       .seen = calloc((size_t)f->switch_count + 1, sizeof(*t.seen))};
    int rc = t.owner == NULL || t.seen == NULL ? ibshift_fail(lines->err, -ENOMEM, "no memory")
                                               : ibshift_fabric_tables_new(f, lines->err);

    rc = rc == 0 ? read_all(&t) : rc;
    free(t.owner);
    free(t.seen);
    return rc;
}
