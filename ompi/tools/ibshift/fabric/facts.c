#include "fabric/facts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/fabric.h"

static const char sminfo_word[] = "sminfo: sm lid ";

struct reader {
    FILE *file;
    const char *name;
    unsigned number; /* of the line, from 1 */
    char *line;
    size_t room;
};

/* Columns of a section, by the header line. -1: the section has no such column. */
struct columns {
    int prefix, sm_lid, lid, enabled;
};

static bool next_line(struct reader *r)
{
    if (getline(&r->line, &r->room, r->file) < 0) {
        return false;
    }
    r->number++;
    r->line[strcspn(r->line, "\r\n")] = '\0';
    return true;
}

/* What is known already stays, and must be the same. */
static int learn(const struct reader *r, uint64_t *known, uint64_t value, const char *what,
                 struct ibshift_error *err)
{
    if (*known != 0 && *known != value) {
        return ibshift_fail(err, -EINVAL,
                            "%s:%u: %s 0x%" PRIx64 ", but 0x%" PRIx64
                            " was said before: of another subnet, or of another time",
                            r->name, r->number, what, value, *known);
    }
    *known = value;
    return 0;
}

static int learn_sm_lid(const struct reader *r, struct fabric_facts *facts, uint64_t lid,
                        struct ibshift_error *err)
{
    uint64_t known = facts->sm_lid;
    int rc = lid > IBSHIFT_LID_MAX ? ibshift_fail(err, -EINVAL, "%s:%u: LID %" PRIu64 " cannot be",
                                                  r->name, r->number, lid)
                                   : learn(r, &known, lid, "subnet manager's LID", err);

    facts->sm_lid = rc == 0 ? (uint16_t)known : facts->sm_lid;
    return rc;
}

/* sminfo: sm lid 1 sm guid 0x.., activity count 506 priority 14 state 3 SMINFO_MASTER */
static int read_sminfo(struct reader *r, struct fabric_facts *facts, struct ibshift_error *err)
{
    while (next_line(r)) {
        unsigned long long guid;
        unsigned activity;
        int lid, rc;

        if (strncmp(r->line, sminfo_word, strlen(sminfo_word)) != 0) {
            continue;
        }
        if (sscanf(r->line + strlen(sminfo_word), "%i sm guid %llx, activity count %u", &lid, &guid,
                   &activity) != 3 ||
            lid <= 0 || guid == 0) {
            return ibshift_fail(err, -EINVAL, "%s:%u: not what sminfo prints", r->name, r->number);
        }
        rc = learn_sm_lid(r, facts, (uint64_t)lid, err);
        rc = rc == 0 ? learn(r, &facts->sm_guid, guid, "subnet manager's GUID", err) : rc;
        facts->activity = activity;
        return rc;
    }
    return ibshift_fail(err, -EINVAL, "%s: sminfo found no subnet manager", r->name);
}

static int column(const char *header, const char *name)
{
    size_t length = strlen(name);

    for (int at = 0; *header != '\0'; at++) {
        size_t size = strcspn(header, ",");

        if (size == length && strncmp(header, name, length) == 0) {
            return at;
        }
        header += size + (header[size] == ',');
    }
    return -1;
}

/* The number in a column of the row; 0: there is none. */
static uint64_t field(const char *row, int at)
{
    if (at < 0) {
        return 0;
    }
    for (int i = 0; i < at && *row != '\0'; i++) {
        row += strcspn(row, ",");
        row += *row == ',';
    }
    return strtoull(row, NULL, 0);
}

static int take_port(const struct reader *r, const struct columns *c, struct fabric_facts *facts,
                     struct ibshift_error *err)
{
    uint64_t prefix = field(r->line, c->prefix), sm_lid = field(r->line, c->sm_lid);
    int rc = 0;

    if (field(r->line, c->lid) == 0 || sm_lid == 0) { /* of a port that is down */
        return 0;
    }
    if (prefix != 0) {
        rc = learn(r, &facts->subnet_prefix, prefix, "subnet prefix", err);
    }
    return rc == 0 ? learn_sm_lid(r, facts, sm_lid, err) : rc;
}

/* Sections from START_NAME, with a line of column names, to END_NAME. */
static int read_db_csv(struct reader *r, struct fabric_facts *facts, struct ibshift_error *err)
{
    enum { OUTSIDE, OTHER, PORTS, ADAPTIVE } in = OUTSIDE;
    struct columns c = {-1, -1, -1, -1};
    bool is_header = false;
    int rc = 0;

    while (rc == 0 && next_line(r)) {
        if (in == OUTSIDE) {
            is_header = strncmp(r->line, "START_", 6) == 0;
            in = !is_header                              ? OUTSIDE
                 : strcmp(r->line, "START_PORTS") == 0   ? PORTS
                 : strcmp(r->line, "START_AR_INFO") == 0 ? ADAPTIVE
                                                         : OTHER;
        } else if (strncmp(r->line, "END_", 4) == 0) {
            in = OUTSIDE;
        } else if (is_header) {
            c = (struct columns){column(r->line, "GIDPrfx"), column(r->line, "MSMLID"),
                                 column(r->line, "LID"), column(r->line, "e")};
            is_header = false;
        } else if (in == PORTS) {
            rc = take_port(r, &c, facts, err);
        } else if (in == ADAPTIVE) {
            facts->adaptive_switches += field(r->line, c.enabled) == 1;
        }
    }
    return rc != 0 || in == OUTSIDE
               ? rc
               : ibshift_fail(err, -EINVAL, "%s:%u: the file ends within a section", r->name,
                              r->number);
}

enum fabric_facts_kind fabric_facts_kind(const char *head, size_t size)
{
    static const char start[] = "\nSTART_";
    size_t word = strlen(sminfo_word);

    if (size >= word && memcmp(head, sminfo_word, word) == 0) {
        return FABRIC_FACTS_SMINFO;
    }
    if ((size >= 6 && memcmp(head, start + 1, 6) == 0) ||
        memmem(head, size, start, strlen(start)) != NULL) {
        return FABRIC_FACTS_DB_CSV;
    }
    return FABRIC_FACTS_NONE;
}

int fabric_facts_read(FILE *file, const char *name, enum fabric_facts_kind kind,
                      struct fabric_facts *facts, struct ibshift_error *err)
{
    struct reader r = {.file = file, .name = name};
    int rc =
        kind == FABRIC_FACTS_SMINFO ? read_sminfo(&r, facts, err) : read_db_csv(&r, facts, err);

    free(r.line);
    return rc != 0 || !ferror(file) ? rc : ibshift_fail(err, -EIO, "%s: cannot be read", name);
}
