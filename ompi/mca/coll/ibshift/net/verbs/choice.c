/* Which ports to use, and which GID of a port: a table in, a choice out. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "net/verbs/choice.h"

struct item {
    const char *name;
    size_t length;
    int port; /* 0 = all */
};

/* Takes one "name[:port]" off the front; 1 = taken, 0 = end, -EINVAL with *at on the fault. */
static int next_item(const char **at, struct item *item)
{
    const char *p = *at;
    if (*p == '\0') {
        return 0;
    }
    item->name = p;
    item->port = 0;
    while (isalnum((unsigned char)*p) || (*p != '\0' && strchr("_-.", *p) != NULL)) {
        p++;
    }
    item->length = (size_t)(p - item->name);
    int is_wrong = item->length == 0 || item->length >= IBSHIFT_DEVICE_NAME;
    if (!is_wrong && *p == ':') {
        p++;
        while (isdigit((unsigned char)*p) && item->port < 256) {
            item->port = item->port * 10 + (*p++ - '0');
        }
        is_wrong = item->port < 1 || item->port > 255;
    }
    is_wrong = is_wrong || (*p != '\0' && *p != ',') || (*p == ',' && p[1] == '\0');
    *at = *p == ',' && !is_wrong ? p + 1 : p;
    return is_wrong ? -EINVAL : 1;
}

int ibshift_port_list_check(const char *list, const char **error)
{
    struct item item;
    int taken;
    const char *at = list;
    do {
        taken = next_item(&at, &item);
    } while (taken > 0);
    if (taken < 0) {
        *error = at;
    }
    return taken;
}

/* named: bit i: the port at place i was named with its number. Such a port may come again. */
static int is_chosen(const int *out, int chosen, int place, unsigned named)
{
    for (int i = 0; i < chosen; i++) {
        if (out[i] == place && !(named >> i & 1)) {
            return 1;
        }
    }
    return 0;
}

static int has_name(const struct ibshift_port_candidate *c, const struct item *item)
{
    return strlen(c->device) == item->length && memcmp(c->device, item->name, item->length) == 0 &&
           (item->port == 0 || item->port == c->port);
}

/* A port that is named with its number comes as often as it is named so. */
static int choose_listed(const struct ibshift_port_candidate *c, int n, const char *list, int max,
                         int *out)
{
    struct item item;
    unsigned named = 0;
    int chosen = 0;
    while (next_item(&list, &item) > 0) {
        for (int i = 0; i < n && chosen < max; i++) {
            if (c[i].is_active && has_name(&c[i], &item) &&
                !is_chosen(out, chosen, i, item.port != 0 ? named : 0)) {
                named |= (item.port != 0 ? 1u : 0u) << chosen;
                out[chosen++] = i;
            }
        }
    }
    return chosen;
}

static int is_better(const struct ibshift_port_candidate *a, const struct ibshift_port_candidate *b)
{
    if (a->distance != b->distance) {
        return a->distance < b->distance;
    }
    return a->rate > b->rate;
}

static int is_equal(const struct ibshift_port_candidate *a, const struct ibshift_port_candidate *b)
{
    return a->distance == b->distance && a->rate == b->rate && a->is_ethernet == b->is_ethernet &&
           (a->is_ethernet || a->subnet_prefix == b->subnet_prefix);
}

static int choose_nearest(const struct ibshift_port_candidate *c, int n, int max, int *out)
{
    int best = -1;
    for (int i = 0; i < n; i++) {
        if (c[i].is_active && (best < 0 || is_better(&c[i], &c[best]))) {
            best = i;
        }
    }
    int chosen = 0;
    if (best >= 0 && max > 0) {
        out[chosen++] = best;
    }
    for (int i = 0; i < n && chosen > 0 && chosen < max; i++) {
        if (i != best && c[i].is_active && is_equal(&c[i], &c[best])) {
            out[chosen++] = i;
        }
    }
    return chosen;
}

int ibshift_port_choose(const struct ibshift_port_candidate *c, int n, const char *list, int max,
                        int *out)
{
    if (list != NULL && list[0] != '\0') {
        return choose_listed(c, n, list, max, out);
    }
    return choose_nearest(c, n, max, out);
}

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

static int is_better_gid(const struct ibshift_gid *a, const struct ibshift_gid *b, int is_ethernet)
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
        } else if (best < 0 || is_better_gid(&table[i], &table[best], is_ethernet)) {
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
