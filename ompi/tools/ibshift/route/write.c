/* What OpenSM loads: `opensm -R file -U FILE`. */
#include "route/route.h"

#include <errno.h>
#include <inttypes.h>

#include "fabric/names.h"

static const char hex[] = "0123456789abcdef";

static char *put_hex(char *at, uint64_t value, unsigned digits)
{
    for (unsigned i = digits; i-- > 0;) {
        *at++ = hex[value >> (4 * i) & 15];
    }
    return at;
}

static char *put_text(char *at, const char *text)
{
    while (*text != '\0') {
        *at++ = *text++;
    }
    return at;
}

/* "0x0001 005 # portguid 0x..:"; OpenSM wants the colon. By hand: a large fabric has 10^8 rows. */
static int put_row(FILE *out, unsigned lid, unsigned port, uint64_t guid)
{
    char row[64], *at = put_text(row, "0x");

    at = put_hex(at, lid, 4);
    *at++ = ' ';
    *at++ = (char)('0' + port / 100);
    *at++ = (char)('0' + port / 10 % 10);
    *at++ = (char)('0' + port % 10);
    at = put_text(at, " # portguid 0x");
    at = put_hex(at, guid, 16);
    at = put_text(at, ":\n");
    return fwrite(row, 1, (size_t)(at - row), out) == (size_t)(at - row) ? 0 : -EIO;
}

/* By LID: the port GUID of a host's port, the node GUID of a switch, 0. */
static uint64_t guid_of(const struct ibshift_fabric *f, const uint32_t *switch_at, unsigned lid)
{
    if (f->lid_port[lid] != IBSHIFT_NO_PORT) {
        return f->ports[f->lid_port[lid]].guid;
    }
    return switch_at[lid] != 0 ? f->nodes[switch_at[lid] - 1].guid : 0;
}

static int write_table(const struct ibshift_fabric *f, const uint32_t *switch_at, uint32_t sw,
                       FILE *out)
{
    const struct ibshift_node *node = &f->nodes[f->switches[sw]];
    int rc = 0;

    fprintf(out, "Unicast lids [0-%u] of switch Lid %u guid 0x%016" PRIx64 " ('%s'):\n",
            f->lft_stride - 1, node->lid, node->guid, ibshift_node_name(f, f->switches[sw]));
    for (unsigned lid = 1; rc == 0 && lid < f->lft_stride; lid++) {
        unsigned port = ibshift_lft_get(f, sw, lid);

        if (port != 0 || lid == node->lid) {
            rc = put_row(out, lid, port, guid_of(f, switch_at, lid));
        }
    }
    return rc;
}

int route_write_tables(const struct route *r, FILE *out)
{
    static uint32_t switch_at[IBSHIFT_LID_MAX + 1]; /* node + 1 */
    const struct ibshift_fabric *f = r->fabric;
    int rc = 0;

    for (uint32_t s = 0; s < f->switch_count; s++) {
        switch_at[f->nodes[f->switches[s]].lid] = f->switches[s] + 1;
    }
    for (uint32_t s = 0; rc == 0 && s < f->switch_count; s++) {
        rc = write_table(f, switch_at, s, out);
    }
    return rc == 0 && fflush(out) == 0 && !ferror(out) ? 0 : -EIO;
}

int route_write_order(const struct route *r, FILE *out)
{
    const struct ibshift_fabric *f = r->fabric;
    char name[FABRIC_NAME_SIZE];
    struct fabric_names names;

    if (fabric_names_open(f, &names) != 0) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < r->order_count; i++) {
        if (r->order[i] == IBSHIFT_NO_HOST) {
            fprintf(out, "0xFFFF\tDUMMY\n");
        } else {
            fprintf(out, "0x%04x\t%s\n", ibshift_host_lid(f, r->order[i]),
                    fabric_names_get(&names, r->order[i], name, sizeof(name)));
        }
    }
    fabric_names_close(&names);
    return fflush(out) == 0 && !ferror(out) ? 0 : -EIO;
}
