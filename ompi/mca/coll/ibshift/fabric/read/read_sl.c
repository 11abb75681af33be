/* Service levels of pairs: opensm-path-records.dump (written by OpenSM's plug-in for them), or what
 * "saquery PathRecord" prints, of which several may stand in one file. */
#include "fabric/read/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_MAX (1ull << 30) /* bytes: a pair has one */

struct pairs {
    struct ibshift_lines *lines;
    struct ibshift_fabric *f;
    uint32_t *host_at; /* by LID; IBSHIFT_NO_HOST */
    uint8_t *table;    /* [host][lft_stride]: level + 1; 0: not said */
    uint32_t from;     /* host whose lines follow, or IBSHIFT_NO_HOST */
    uint64_t slid, dlid;
};

static int open_pairs(struct pairs *p)
{
    struct ibshift_fabric *f = p->f;
    struct ibshift_error *err = p->lines->err;

    if (f->lft == NULL) {
        return ibshift_fail(err, -EINVAL, "service levels are of no use without tables");
    }
    if ((uint64_t)f->host_count * f->lft_stride > TABLE_MAX) {
        return ibshift_fail(err, -E2BIG, "%u hosts are too many for a level of each pair",
                            f->host_count);
    }
    p->host_at = malloc((size_t)f->lft_stride * sizeof(*p->host_at));
    p->table = calloc((size_t)f->host_count + 1, f->lft_stride);
    if (p->host_at == NULL || p->table == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for the levels of %u hosts", f->host_count);
    }
    for (unsigned lid = 0; lid < f->lft_stride; lid++) {
        p->host_at[lid] = ibshift_fabric_host_of_lid(f, lid);
    }
    return 0;
}

static int set_level(struct pairs *p, uint64_t dlid, uint64_t level)
{
    if (dlid == 0 || dlid >= p->f->lft_stride) {
        return ibshift_lines_fail(p->lines, -EINVAL,
                                  "LID %u is not in the fabric: path records of another one",
                                  (unsigned)dlid);
    }
    if (level > IBSHIFT_SL_MAX) {
        return ibshift_lines_fail(p->lines, -EINVAL, "service level %u: there are 0 to %d",
                                  (unsigned)level, IBSHIFT_SL_MAX);
    }
    if (p->from != IBSHIFT_NO_HOST) {
        p->table[(size_t)p->from * p->f->lft_stride + dlid] = (uint8_t)(level + 1);
    }
    return 0;
}

/* Channel Adapter 0xGUID, base LID N, "DESCRIPTION", port N */
static int read_source(struct pairs *p, const char *at)
{
    uint64_t guid, lid, known;

    if (ibshift_scan(at, "%x, base LID %u", &guid, &lid) == NULL) {
        return ibshift_lines_fail(p->lines, -EINVAL, "wants 'Channel Adapter 0x.., base LID ..'");
    }
    p->from = lid < p->f->lft_stride ? p->host_at[lid] : IBSHIFT_NO_HOST;
    if (p->from == IBSHIFT_NO_HOST) {
        return ibshift_lines_fail(p->lines, -EINVAL,
                                  "no host of the fabric has LID %u: path records of another one",
                                  (unsigned)lid);
    }
    known = p->f->ports[p->f->hosts[p->from]].guid;
    return known == 0 || known == guid
               ? 0
               : ibshift_lines_fail(p->lines, -EINVAL,
                                    "LID %u is of another port in the fabric, '%s': path records "
                                    "of another one",
                                    (unsigned)lid, ibshift_host_name(p->f, p->from));
}

/* 0xLID : SL : MTU : RATE */
static int read_pair(struct pairs *p, const char *text)
{
    uint64_t lid, level = 0;
    const char *at = ibshift_scan(text, "%x : ", &lid);

    if (at == NULL) {
        return ibshift_lines_fail(p->lines, -EINVAL, "wants '0xLID : SL : MTU : RATE'");
    }
    if (ibshift_scan_word(at, "UNREACHABLE") == NULL && ibshift_scan_decimal(at, &level) == NULL) {
        return ibshift_lines_fail(p->lines, -EINVAL, "wants a service level after the LID");
    }
    return set_level(p, lid, level);
}

/* "sl......0x1": NULL, or what stands behind the dots. */
static const char *field(const char *text, const char *name)
{
    const char *at = ibshift_scan_word(text, name);

    return at != NULL && *at == '.' ? at + strspn(at, ".") : NULL;
}

/* A record of saquery: the LIDs come before the level. */
static int read_field(struct pairs *p, const char *text)
{
    const char *slid = field(text, "slid"), *dlid = field(text, "dlid"), *sl = field(text, "sl");
    uint64_t level;

    if (slid != NULL || dlid != NULL) {
        return ibshift_scan_decimal(slid != NULL ? slid : dlid,
                                    slid != NULL ? &p->slid : &p->dlid) != NULL
                   ? 0
                   : ibshift_lines_fail(p->lines, -EINVAL, "wants a LID");
    }
    if (sl == NULL) {
        return 0;
    }
    if (ibshift_scan_hex(sl, &level) == NULL || p->slid == 0 || p->slid >= p->f->lft_stride) {
        return ibshift_lines_fail(p->lines, -EINVAL,
                                  "wants a service level after the LIDs of a pair of the fabric");
    }
    p->from = p->host_at[p->slid];
    return set_level(p, p->dlid, level);
}

static int read_line(void *context)
{
    struct pairs *p = context;
    const char *text = ibshift_scan_blanks(p->lines->text);
    const char *source = ibshift_scan_word(text, "Channel Adapter ");

    if (text[0] == '\0' || text[0] == '#') {
        return 0;
    }
    if (source != NULL) {
        return read_source(p, source);
    }
    if (ibshift_scan_word(text, "Switch ") || ibshift_scan_word(text, "Router ")) {
        p->from = IBSHIFT_NO_HOST;
        return 0;
    }
    if (ibshift_scan_word(text, "PathRecord dump:")) {
        p->slid = p->dlid = 0;
        return 0;
    }
    return text[0] == '0' ? read_pair(p, text) : read_field(p, text);
}

/* Known are the levels when those of all pairs are. */
static int check_whole(const struct pairs *p)
{
    const struct ibshift_fabric *f = p->f;

    for (uint32_t a = 0; a < f->host_count; a++) {
        for (uint32_t lid = 1; lid < f->lft_stride; lid++) {
            if (p->host_at[lid] != IBSHIFT_NO_HOST && p->host_at[lid] != a &&
                p->table[(size_t)a * f->lft_stride + lid] == 0) {
                return ibshift_fail(p->lines->err, -ENODATA,
                                    "%s: no service level from '%.60s' to '%.60s', LID %u: wants "
                                    "the path records of all pairs of hosts",
                                    p->lines->name, ibshift_host_name(f, a),
                                    ibshift_host_name(f, p->host_at[lid]), lid);
            }
        }
    }
    return 0;
}

/* What is said of switches is 0, so that hosts of one switch mostly have the same row. */
static void clean_row(const struct pairs *p, uint32_t host)
{
    uint8_t *row = p->table + (size_t)host * p->f->lft_stride;

    for (uint32_t lid = 0; lid < p->f->lft_stride; lid++) {
        bool is_said = p->host_at[lid] != IBSHIFT_NO_HOST && row[lid] != 0;

        row[lid] = is_said ? (uint8_t)(row[lid] - 1) : 0;
    }
}

/* Each row once; the table shrinks where it lies. */
static int keep_rows(struct pairs *p)
{
    struct ibshift_fabric *f = p->f;
    uint32_t *row_of = calloc((size_t)f->host_count + 1, sizeof(*row_of)), rows = 0, stride;

    if (row_of == NULL) {
        return ibshift_fail(p->lines->err, -ENOMEM, "no memory");
    }
    stride = f->lft_stride;
    for (uint32_t h = 0; h < f->host_count; h++) {
        uint8_t *row = p->table + (size_t)h * stride;
        uint32_t at = rows;

        clean_row(p, h);
        while (at > 0 && memcmp(p->table + (size_t)(at - 1) * stride, row, stride) != 0) {
            at--;
        }
        if (at == 0) {
            memmove(p->table + (size_t)rows * stride, row, stride);
            at = ++rows;
        }
        row_of[h] = at - 1;
    }
    f->sl = p->table;
    f->sl_row = row_of;
    f->sl_rows = rows;
    p->table = NULL;
    return 0;
}

int ibshift_read_sl(struct ibshift_lines *lines, struct ibshift_fabric *f)
{
    struct pairs p = {.lines = lines, .f = f, .from = IBSHIFT_NO_HOST};
    int rc = open_pairs(&p);

    rc = rc == 0 ? ibshift_lines_each(lines, read_line, &p) : rc;
    rc = rc == 0 ? check_whole(&p) : rc;
    if (rc == 0) {
        free(f->sl);
        free(f->sl_row);
        rc = keep_rows(&p);
    }
    free(p.host_at);
    free(p.table);
    return rc;
}

int ibshift_sl_load(const char *path, struct ibshift_fabric *f, struct ibshift_error *err)
{
    struct ibshift_lines *lines = ibshift_lines_open(path, err);
    int rc;

    if (lines == NULL) {
        return -EIO;
    }
    rc = ibshift_read_sl(lines, f);
    ibshift_lines_close(lines);
    return rc;
}
