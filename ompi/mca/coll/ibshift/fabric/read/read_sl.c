/* Service levels of pairs: opensm-path-records.dump (written by OpenSM's plug-in for them), or what
 * "saquery PathRecord" prints, of which several may stand in one file. */
#include "fabric/read/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_MAX (1ull << 30) /* bytes: a pair has one */

struct pairs {
    struct ibshift_fabric *f;
    uint32_t *host_at; /* by LID; IBSHIFT_NO_HOST */
    uint8_t *table;    /* [host][lft_stride]: level + 1; 0: not said */
    uint32_t from;     /* host whose lines follow, or IBSHIFT_NO_HOST */
    uint64_t slid, dlid;
};

static int open_pairs(struct pairs *p, struct ibshift_fabric *f, struct ibshift_error *err)
{
    *p = (struct pairs){.f = f, .from = IBSHIFT_NO_HOST};
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
    memset(p->host_at, 0xff, (size_t)f->lft_stride * sizeof(*p->host_at));
    for (uint32_t h = 0; h < f->host_count; h++) {
        for (unsigned i = 0; i < ibshift_host_lid_count(f, h); i++) {
            p->host_at[ibshift_host_lid(f, h) + i] = h;
        }
    }
    return 0;
}

static void close_pairs(struct pairs *p)
{
    free(p->host_at);
    free(p->table);
}

static int set_level(struct ibshift_lines *lines, struct pairs *p, uint64_t dlid, uint64_t level,
                     struct ibshift_error *err)
{
    if (dlid == 0 || dlid >= p->f->lft_stride) {
        return ibshift_lines_fail(lines, err, -EINVAL,
                                  "LID %u is not in the fabric: path records of another one",
                                  (unsigned)dlid);
    }
    if (level > IBSHIFT_SL_MAX) {
        return ibshift_lines_fail(lines, err, -EINVAL, "service level %u: there are 0 to %d",
                                  (unsigned)level, IBSHIFT_SL_MAX);
    }
    if (p->from != IBSHIFT_NO_HOST) {
        p->table[(size_t)p->from * p->f->lft_stride + dlid] = (uint8_t)(level + 1);
    }
    return 0;
}

/* Channel Adapter 0xGUID, base LID N, "DESCRIPTION", port N */
static int read_source(struct ibshift_lines *lines, struct pairs *p, const char *at,
                       struct ibshift_error *err)
{
    static const char word[] = ", base LID ";
    uint64_t guid, lid, known;

    at = ibshift_scan_hex(at, &guid);
    if (at == NULL || strncmp(at, word, strlen(word)) != 0 ||
        ibshift_scan_decimal(at + strlen(word), &lid) == NULL) {
        return ibshift_lines_fail(lines, err, -EINVAL, "wants 'Channel Adapter 0x.., base LID ..'");
    }
    p->from = lid < p->f->lft_stride ? p->host_at[lid] : IBSHIFT_NO_HOST;
    if (p->from == IBSHIFT_NO_HOST) {
        return ibshift_lines_fail(lines, err, -EINVAL,
                                  "no host of the fabric has LID %u: path records of another one",
                                  (unsigned)lid);
    }
    known = p->f->ports[p->f->hosts[p->from]].guid;
    return known == 0 || known == guid
               ? 0
               : ibshift_lines_fail(lines, err, -EINVAL,
                                    "LID %u is of another port in the fabric, '%s': path records "
                                    "of another one",
                                    (unsigned)lid, ibshift_host_name(p->f, p->from));
}

/* 0xLID : SL : MTU : RATE */
static int read_pair(struct ibshift_lines *lines, struct pairs *p, struct ibshift_error *err)
{
    uint64_t lid, level = 0;
    const char *at = ibshift_scan_hex(lines->text, &lid);

    at = at == NULL ? NULL : ibshift_scan_blanks(at);
    if (at == NULL || *at != ':') {
        return ibshift_lines_fail(lines, err, -EINVAL, "wants '0xLID : SL : MTU : RATE'");
    }
    at = ibshift_scan_blanks(at + 1);
    if (strncmp(at, "UNREACHABLE", 11) != 0 && ibshift_scan_decimal(at, &level) == NULL) {
        return ibshift_lines_fail(lines, err, -EINVAL, "wants a service level after the LID");
    }
    return set_level(lines, p, lid, level, err);
}

/* "sl......0x1": NULL, or what stands behind the dots. */
static const char *field(const char *text, const char *name)
{
    size_t length = strlen(name);

    if (strncmp(text, name, length) != 0 || text[length] != '.') {
        return NULL;
    }
    return text + length + strspn(text + length, ".");
}

/* A record of saquery: the LIDs come before the level. */
static int read_field(struct ibshift_lines *lines, struct pairs *p, const char *text,
                      struct ibshift_error *err)
{
    const char *slid = field(text, "slid"), *dlid = field(text, "dlid"), *sl = field(text, "sl");
    uint64_t level;

    if (slid != NULL || dlid != NULL) {
        return ibshift_scan_decimal(slid != NULL ? slid : dlid,
                                    slid != NULL ? &p->slid : &p->dlid) != NULL
                   ? 0
                   : ibshift_lines_fail(lines, err, -EINVAL, "wants a LID");
    }
    if (sl == NULL) {
        return 0;
    }
    if (ibshift_scan_hex(sl, &level) == NULL || p->slid == 0 || p->slid >= p->f->lft_stride) {
        return ibshift_lines_fail(lines, err, -EINVAL,
                                  "wants a service level after the LIDs of a pair of the fabric");
    }
    p->from = p->host_at[p->slid];
    return set_level(lines, p, p->dlid, level, err);
}

static int read_line(struct ibshift_lines *lines, struct pairs *p, struct ibshift_error *err)
{
    static const char host[] = "Channel Adapter ", record[] = "PathRecord dump:";
    const char *text = ibshift_scan_blanks(lines->text);

    if (text[0] == '\0' || text[0] == '#') {
        return 0;
    }
    if (strncmp(text, host, strlen(host)) == 0) {
        return read_source(lines, p, text + strlen(host), err);
    }
    if (strncmp(text, "Switch ", 7) == 0 || strncmp(text, "Router ", 7) == 0) {
        p->from = IBSHIFT_NO_HOST;
        return 0;
    }
    if (strncmp(text, record, strlen(record)) == 0) {
        p->slid = p->dlid = 0;
        return 0;
    }
    return text[0] == '0' ? read_pair(lines, p, err) : read_field(lines, p, text, err);
}

/* Known are the levels when those of all pairs are. */
static int check_whole(const struct pairs *p, const char *name, struct ibshift_error *err)
{
    const struct ibshift_fabric *f = p->f;

    for (uint32_t a = 0; a < f->host_count; a++) {
        for (uint32_t lid = 1; lid < f->lft_stride; lid++) {
            if (p->host_at[lid] != IBSHIFT_NO_HOST && p->host_at[lid] != a &&
                p->table[(size_t)a * f->lft_stride + lid] == 0) {
                return ibshift_fail(err, -ENODATA,
                                    "%s: no service level from '%.60s' to '%.60s', LID %u: wants "
                                    "the path records of all pairs of hosts",
                                    name, ibshift_host_name(f, a),
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
static int keep_rows(struct pairs *p, struct ibshift_error *err)
{
    struct ibshift_fabric *f = p->f;
    uint32_t *row_of = calloc((size_t)f->host_count + 1, sizeof(*row_of)), rows = 0, stride;

    if (row_of == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory");
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

int ibshift_read_sl(struct ibshift_lines *lines, struct ibshift_fabric *f,
                    struct ibshift_error *err)
{
    struct pairs p;
    int rc = open_pairs(&p, f, err);

    rc = rc == 0 ? 1 : rc;
    while (rc > 0 && (rc = ibshift_lines_next(lines, err)) > 0) {
        rc = read_line(lines, &p, err);
        rc = rc == 0 ? 1 : rc;
    }
    rc = rc == 0 ? check_whole(&p, lines->name, err) : rc;
    if (rc == 0) {
        free(f->sl);
        free(f->sl_row);
        rc = keep_rows(&p, err);
    }
    close_pairs(&p);
    return rc;
}

int ibshift_sl_load(const char *path, struct ibshift_fabric *f, struct ibshift_error *err)
{
    struct ibshift_lines *lines = malloc(sizeof(*lines));
    int rc = lines == NULL ? ibshift_fail(err, -ENOMEM, "no memory")
                           : ibshift_lines_open(lines, path, err);

    if (rc == 0) {
        rc = ibshift_read_sl(lines, f, err);
        ibshift_lines_close(lines);
    }
    free(lines);
    return rc;
}
