/* Which GID of a port to use: a table in, a choice out. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "net/verbs/gid.h"

static const uint8_t ipv4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static int is_empty(const uint8_t raw[16])
{
    static const uint8_t zero[8];
    return memcmp(raw + 8, zero, 8) == 0;
}

int ibshift_gid_is_ipv4(const uint8_t raw[16])
{
    return memcmp(raw, ipv4_prefix, sizeof(ipv4_prefix)) == 0;
}

static int is_link_local(const uint8_t raw[16])
{
    return raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
}

static int score_ethernet(const struct ibshift_gid *g)
{
    int address = ibshift_gid_is_ipv4(g->raw) ? 2 : !is_link_local(g->raw);
    return (g->type == IBSHIFT_GID_ROCE_V2 ? 4 : 0) + address;
}

static int is_better(const struct ibshift_gid *a, const struct ibshift_gid *b, int is_ethernet)
{
    int sa = is_ethernet ? score_ethernet(a) : 0;
    int sb = is_ethernet ? score_ethernet(b) : 0;
    return sa != sb ? sa > sb : a->index < b->index;
}

int ibshift_gid_choose(const struct ibshift_gid *table, int n, int is_ethernet, int forced)
{
    int best = -ENOENT;
    for (int i = 0; i < n; i++) {
        if (is_empty(table[i].raw)) {
            continue;
        }
        if (forced >= 0) {
            if (table[i].index == (uint32_t)forced) {
                return i;
            }
        } else if (best < 0 || is_better(&table[i], &table[best], is_ethernet)) {
            best = i;
        }
    }
    return best;
}

const char *ibshift_gid_text(const uint8_t raw[16], char *out)
{
    if (inet_ntop(AF_INET6, raw, out, INET6_ADDRSTRLEN) == NULL) {
        strcpy(out, "?");
    }
    return out;
}
