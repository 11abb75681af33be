#include "fabric/sl2vl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/lines.h"

void fabric_sl2vl_new(const struct ibshift_fabric *f, struct fabric_sl2vl *t)
{
    uint64_t size = 0;

    t->from = pool_new(&t->pool, f->switch_count, sizeof(*t->from));
    for (uint32_t s = 0; s < f->switch_count; s++) {
        uint64_t ports = f->nodes[f->switches[s]].port_count + 1u;

        t->from[s] = size;
        size += ports * ports * FABRIC_SLS;
    }
    t->vl = pool_new(&t->pool, size, 1);
}

void fabric_sl2vl_free(struct fabric_sl2vl *t)
{
    pool_free(&t->pool);
    *t = (struct fabric_sl2vl){.vl = NULL};
}

unsigned fabric_sls_used(const struct ibshift_fabric *f)
{
    size_t size = (size_t)f->sl_rows * f->lft_stride;
    unsigned used = f->sl == NULL;

    for (size_t i = 0; f->sl != NULL && i < size; i++) {
        used |= 1u << f->sl[i];
    }
    return used;
}

/* ---- reading ---- */

struct reader {
    struct ibshift_lines *lines;
    const struct ibshift_fabric *f;
    struct fabric_sl2vl *t; /* of VL + 1; 0: not said */
    uint32_t sw;            /* whose rows follow, or IBSHIFT_NO_SWITCH */
};

/* Switch 0xGUID, base LID N, "DESCRIPTION" */
static int read_head(struct reader *r, const char *at)
{
    uint64_t guid;
    uint32_t node;

    if (ibshift_scan_hex(at, &guid) == NULL) {
        return ibshift_lines_fail(r->lines, -EINVAL, "wants 'Switch 0x.., base LID ..'");
    }
    node = ibshift_fabric_find_guid(r->f, guid);
    r->sw = node == IBSHIFT_NO_NODE ? IBSHIFT_NO_SWITCH : r->f->nodes[node].switch_index;
    return r->sw != IBSHIFT_NO_SWITCH
               ? 0
               : ibshift_lines_fail(r->lines, -EINVAL,
                                    "this switch is not in the fabric: tables of another fabric");
}

/* "IN OUT : VL VL .." for SL 0 to 15. */
static int read_row(struct reader *r)
{
    uint64_t in = 0, out = 0, vl = 0;
    const char *at = ibshift_scan(r->lines->text, "%u%u :", &in, &out);
    unsigned ports = r->f->nodes[r->f->switches[r->sw]].port_count;

    if (at == NULL || in > ports || out > ports) {
        return ibshift_lines_fail(r->lines, -EINVAL,
                                  "wants two ports of a switch that has %u, and 'IN OUT : VL ..'",
                                  ports);
    }
    for (unsigned sl = 0; sl < FABRIC_SLS; sl++) {
        at = ibshift_scan_decimal(at, &vl);
        if (at == NULL || vl > FABRIC_NO_VL) {
            return ibshift_lines_fail(r->lines, -EINVAL,
                                      "wants %d virtual lanes of 0 to %d after the ports",
                                      FABRIC_SLS, FABRIC_NO_VL);
        }
        r->t->vl[fabric_sl2vl_at(r->f, r->t, r->sw, (unsigned)in, (unsigned)out, sl)] =
            (uint8_t)(vl + 1);
    }
    return 0;
}

static int read_line(void *context)
{
    struct reader *r = context;
    const char *text = ibshift_scan_blanks(r->lines->text);

    if (*text == '\0' || *text == '#') {
        return 0;
    }
    if (strncmp(text, "Switch ", 7) == 0) {
        return read_head(r, text + 7);
    }
    if (*text < '0' || *text > '9') { /* an adapter or a router, its rows are of no use here */
        r->sw = IBSHIFT_NO_SWITCH;
        return strncmp(text, "Channel Adapter ", 16) == 0 || strncmp(text, "Router ", 7) == 0
                   ? 0
                   : ibshift_lines_fail(r->lines, -EINVAL, "not a line of opensm-sl2vl.dump");
    }
    return r->sw == IBSHIFT_NO_SWITCH ? 0 : read_row(r);
}

/* Takes the 1 off again. */
static int check_row(const struct reader *r, uint32_t sw, unsigned in, unsigned out, unsigned used,
                     unsigned *vls, struct ibshift_error *err)
{
    for (unsigned sl = 0; sl < FABRIC_SLS; sl++) {
        uint8_t *vl = &r->t->vl[fabric_sl2vl_at(r->f, r->t, sw, in, out, sl)];

        if (used >> sl & 1 && (*vl == 0 || *vl == FABRIC_NO_VL + 1)) {
            return ibshift_fail(err, -EINVAL,
                                "%s: service level %u has no virtual lane at switch '%.60s' from "
                                "port %u to port %u, and pairs of hosts use it",
                                r->lines->name, sl, ibshift_node_name(r->f, r->f->switches[sw]), in,
                                out);
        }
        *vls = used >> sl & 1 && *vl > *vls ? *vl : *vls;
        *vl -= *vl > 0;
    }
    return 0;
}

static int check_switch(const struct reader *r, uint32_t sw, unsigned used, unsigned *vls,
                        struct ibshift_error *err)
{
    const struct ibshift_fabric *f = r->f;
    uint32_t node = f->switches[sw];
    int rc = 0;

    for (unsigned in = 1; in <= f->nodes[node].port_count; in++) {
        for (unsigned out = 1; rc == 0 && out <= f->nodes[node].port_count; out++) {
            bool is_cabled = in != out &&
                             f->ports[ibshift_node_port(f, node, in)].peer != IBSHIFT_NO_PORT &&
                             f->ports[ibshift_node_port(f, node, out)].peer != IBSHIFT_NO_PORT;

            rc = check_row(r, sw, in, out, is_cabled ? used : 0, vls, err);
        }
    }
    return rc;
}

static int read_all(struct reader *r, unsigned *vls, struct ibshift_error *err)
{
    unsigned used = fabric_sls_used(r->f);
    int rc = ibshift_lines_each(r->lines, read_line, r);

    *vls = 1;
    for (uint32_t sw = 0; rc == 0 && sw < r->f->switch_count; sw++) {
        rc = check_switch(r, sw, used, vls, err);
    }
    return rc;
}

int fabric_sl2vl_load(const char *path, const struct ibshift_fabric *f, struct fabric_sl2vl *t,
                      unsigned *vls, struct ibshift_error *err)
{
    struct reader r = {
        .lines = ibshift_lines_open(path, err), .f = f, .t = t, .sw = IBSHIFT_NO_SWITCH};
    int rc = -EIO;

    *t = (struct fabric_sl2vl){.vl = NULL};
    if (r.lines != NULL) {
        fabric_sl2vl_new(f, t);
        rc = read_all(&r, vls, err);
        ibshift_lines_close(r.lines);
    }
    if (rc != 0) {
        fabric_sl2vl_free(t);
    }
    return rc;
}

void fabric_sl2vl_write(const struct ibshift_fabric *f, const struct fabric_sl2vl *t, FILE *out)
{
    for (uint32_t s = 0; s < f->switch_count; s++) {
        const struct ibshift_node *node = &f->nodes[f->switches[s]];

        fprintf(out, "Switch 0x%016" PRIx64 ", base LID %u, \"%s\"\n#in out : SL 0 to 15\n",
                node->guid, node->lid, ibshift_node_name(f, f->switches[s]));
        for (unsigned to = 1; to <= node->port_count; to++) {
            for (unsigned in = 0; in <= node->port_count; in++) {
                fprintf(out, "%-3u %-3u :", in, to);
                for (unsigned sl = 0; sl < FABRIC_SLS; sl++) {
                    fprintf(out, " %-2u",
                            t->vl == NULL ? 0 : t->vl[fabric_sl2vl_at(f, t, s, in, to, sl)]);
                }
                fputc('\n', out);
            }
        }
        fputc('\n', out);
    }
}
