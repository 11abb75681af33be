#include "proof/compare.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/graph/rate.h"

struct pair {
    const struct ibshift_fabric *file, *now;
    uint32_t *same; /* the node of now that has the GUID of the file's, or IBSHIFT_NO_NODE */
    bool is_whole;
    struct ibshift_error *err;
};

enum { TEXT = 160 };

static const char *kind_name(unsigned kind)
{
    return kind == IBSHIFT_NODE_SWITCH ? "switch" : kind == IBSHIFT_NODE_HCA ? "host" : "node";
}

static uint32_t find_node(const struct ibshift_fabric *f, uint64_t guid)
{
    uint32_t node = ibshift_fabric_find_guid(f, guid);

    return node != IBSHIFT_NO_NODE && f->nodes[node].guid == guid ? node : IBSHIFT_NO_NODE;
}

/* A node of `of` with a cable that the other one lacks: sources differ in whether they list what nothing leads to. */
static int find_lacking(const struct pair *p, const struct ibshift_fabric *of,
                        const struct ibshift_fabric *other, const char *how)
{
    for (uint32_t n = 0; n < of->node_count; n++) {
        if (ibshift_node_has_cable(of, n) &&
            find_node(other, of->nodes[n].guid) == IBSHIFT_NO_NODE) {
            return ibshift_fail(p->err, -ESTALE, "%s '%s' (GUID 0x%016" PRIx64 ") is %s",
                                kind_name(of->nodes[n].kind), ibshift_node_name(of, n),
                                of->nodes[n].guid, how);
        }
    }
    return 0;
}

static int compare_nodes(const struct pair *p)
{
    int rc = find_lacking(p, p->file, p->now, "gone");

    rc = rc == 0 ? find_lacking(p, p->now, p->file, "new") : rc;
    for (uint32_t n = 0; rc == 0 && n < p->file->node_count; n++) {
        const struct ibshift_node *node = &p->file->nodes[n];

        p->same[n] = find_node(p->now, node->guid);
        if (p->same[n] != IBSHIFT_NO_NODE && p->now->nodes[p->same[n]].kind != node->kind) {
            rc = ibshift_fail(p->err, -ESTALE, "%s '%s'; in the file: a %s",
                              kind_name(p->now->nodes[p->same[n]].kind),
                              ibshift_node_name(p->now, p->same[n]), kind_name(node->kind));
        }
    }
    return rc;
}

/* IBSHIFT_NO_PORT where the node has no such port: sources differ in how many they list. */
static uint32_t port_of(const struct ibshift_fabric *f, uint32_t node, unsigned number)
{
    return number <= f->nodes[node].port_count ? ibshift_node_port(f, node, number)
                                               : IBSHIFT_NO_PORT;
}

/* The other end of a port's cable, or IBSHIFT_NO_PORT. */
static uint32_t peer_of(const struct ibshift_fabric *f, uint32_t port)
{
    return port == IBSHIFT_NO_PORT ? IBSHIFT_NO_PORT : f->ports[port].peer;
}

static const char *cable_text(const struct ibshift_fabric *f, uint32_t port, char text[TEXT])
{
    uint32_t peer = peer_of(f, port);

    if (peer == IBSHIFT_NO_PORT) {
        return "no cable";
    }
    snprintf(text, TEXT, "cable to '%.100s' port %u", ibshift_node_name(f, f->ports[peer].node),
             f->ports[peer].number);
    return text;
}

static bool is_same_end(const struct pair *p, uint32_t a, uint32_t b)
{
    if (a == IBSHIFT_NO_PORT || b == IBSHIFT_NO_PORT) {
        return a == b;
    }
    return p->same[p->file->ports[a].node] == p->now->ports[b].node &&
           p->file->ports[a].number == p->now->ports[b].number;
}

static int compare_cable(const struct pair *p, uint32_t n, unsigned number)
{
    uint32_t m = p->same[n], a = port_of(p->file, n, number), b = port_of(p->now, m, number);
    char was[TEXT], is[TEXT];

    return is_same_end(p, peer_of(p->file, a), peer_of(p->now, b))
               ? 0
               : ibshift_fail(p->err, -ESTALE, "%s '%s' port %u: %s; in the file: %s",
                              kind_name(p->now->nodes[m].kind), ibshift_node_name(p->now, m),
                              number, cable_text(p->now, b, is), cable_text(p->file, a, was));
}

/* One of the two does not tell, or both the same. */
static bool may_be_same(const struct pair *p, bool is_told, bool is_told_now, bool is_same)
{
    return is_same || (!p->is_whole && !(is_told && is_told_now));
}

/* No source says that an LMC is 0 in a way that differs from saying none. */
static int compare_lid(const struct pair *p, uint32_t n, unsigned number)
{
    uint32_t m = p->same[n], a = port_of(p->file, n, number), b = port_of(p->now, m, number);
    const struct ibshift_port *was, *is;

    if (peer_of(p->file, a) == IBSHIFT_NO_PORT) {
        return 0;
    }
    was = &p->file->ports[a];
    is = &p->now->ports[b];
    if (was->lid == is->lid && may_be_same(p, was->lmc != 0, is->lmc != 0, was->lmc == is->lmc)) {
        return 0;
    }
    return ibshift_fail(p->err, -ESTALE, "%s '%s' port %u: LID %u, LMC %u; in the file: %u, %u",
                        kind_name(p->now->nodes[m].kind), ibshift_node_name(p->now, m), number,
                        is->lid, is->lmc, was->lid, was->lmc);
}

static int compare_rate(const struct pair *p, uint32_t n, unsigned number)
{
    uint32_t m = p->same[n], a = port_of(p->file, n, number), b = port_of(p->now, m, number);
    struct ibshift_rate was, is;
    char text[2][32];

    if (peer_of(p->file, a) == IBSHIFT_NO_PORT) {
        return 0;
    }
    was = p->file->ports[a].rate;
    is = p->now->ports[b].rate;
    if (may_be_same(p, was.mbps != 0, is.mbps != 0, was.mbps == is.mbps)) {
        return 0;
    }
    ibshift_rate_name(is, text[0], sizeof(text[0]));
    ibshift_rate_name(was, text[1], sizeof(text[1]));
    return ibshift_fail(p->err, -ESTALE, "%s '%s' port %u: cable of rate %s; in the file: %s",
                        kind_name(p->now->nodes[m].kind), ibshift_node_name(p->now, m), number,
                        text[0], text[1]);
}

/* A source that knows no names gives GUIDs. */
static bool has_name(const struct ibshift_fabric *f, uint32_t node)
{
    const char *name = ibshift_node_name(f, node);

    return name[0] != '\0' && strncmp(name, "0x", 2) != 0;
}

/* number 0. */
static int compare_node(const struct pair *p, uint32_t n, unsigned number)
{
    const struct ibshift_node *was = &p->file->nodes[n], *is = &p->now->nodes[p->same[n]];
    const char *old_name = ibshift_node_name(p->file, n);
    const char *name = ibshift_node_name(p->now, p->same[n]);

    if (!may_be_same(p, has_name(p->file, n), has_name(p->now, p->same[n]),
                     strcmp(old_name, name) == 0)) {
        return ibshift_fail(p->err, -ESTALE,
                            "the %s of GUID 0x%016" PRIx64 " is named '%s'; in the file: '%s'",
                            kind_name(is->kind), is->guid, name, old_name);
    }
    return may_be_same(p, was->lid != 0, is->lid != 0, was->lid == is->lid)
               ? 0
               : ibshift_fail(p->err, -ESTALE, "%s '%s': LID %u; in the file: %u",
                              kind_name(is->kind), name, is->lid, was->lid);
}

/* Of hosts' LIDs that both know: without an LMC a source knows the first one of each port. */
static int compare_row(const struct pair *p, uint32_t n, unsigned number)
{
    const struct ibshift_fabric *file = p->file, *now = p->now;
    uint32_t s = file->nodes[n].switch_index, t = now->nodes[p->same[n]].switch_index;
    unsigned lids = file->lft_stride < now->lft_stride ? file->lft_stride : now->lft_stride;

    for (unsigned lid = 1; s != IBSHIFT_NO_SWITCH && lid < lids; lid++) {
        uint32_t port = now->lid_port[lid];
        unsigned was = ibshift_lft_get(file, s, lid), is = ibshift_lft_get(now, t, lid);

        if (port != IBSHIFT_NO_PORT && file->lid_port[lid] != IBSHIFT_NO_PORT && is != was) {
            return ibshift_fail(p->err, -ESTALE,
                                "switch '%s': LID %u ('%s') out of port %u; in the file: %u",
                                ibshift_node_name(now, p->same[n]), lid,
                                ibshift_node_name(now, now->ports[port].node), is, was);
        }
    }
    return 0;
}

/* Calls look for each node that both have, with each port of either from `first` on; or once. */
static int each(const struct pair *p, unsigned first,
                int (*look)(const struct pair *p, uint32_t n, unsigned number))
{
    int rc = 0;

    for (uint32_t n = 0; rc == 0 && n < p->file->node_count; n++) {
        uint32_t m = p->same[n];
        unsigned a = p->file->nodes[n].port_count,
                 b = m == IBSHIFT_NO_NODE ? 0 : p->now->nodes[m].port_count;
        unsigned last = first == 0 ? 0 : a > b ? a : b;

        for (unsigned i = first; rc == 0 && m != IBSHIFT_NO_NODE && i <= last; i++) {
            rc = look(p, n, i);
        }
    }
    return rc;
}

/* The same host has the same LID by now; many hosts have one row. */
static int compare_levels(const struct pair *p)
{
    const struct ibshift_fabric *file = p->file, *now = p->now;
    uint32_t *seen;

    if (file->sl == NULL || now->sl == NULL) {
        return may_be_same(p, file->sl != NULL, now->sl != NULL, file->sl == now->sl)
                   ? 0
                   : ibshift_fail(p->err, -ESTALE, "%sservice levels are known; in the file: %s",
                                  now->sl == NULL ? "no " : "",
                                  now->sl == NULL ? "they are" : "none");
    }
    seen = calloc(file->sl_rows + 1, sizeof(*seen));
    if (seen == NULL) {
        return ibshift_fail(p->err, -ENOMEM, "no memory");
    }
    for (uint32_t h = 0; h < file->host_count; h++) {
        uint32_t other = ibshift_fabric_host_of_lid(now, ibshift_host_lid(file, h));
        uint32_t *row = &seen[file->sl_row[h]];

        if (other == IBSHIFT_NO_HOST || *row == now->sl_row[other] + 1) {
            continue;
        }
        *row = now->sl_row[other] + 1;
        for (unsigned lid = 1; lid < now->lft_stride; lid++) {
            unsigned was = ibshift_fabric_sl(file, h, lid), is = ibshift_fabric_sl(now, other, lid);

            if (now->lid_port[lid] != IBSHIFT_NO_PORT && file->lid_port[lid] != IBSHIFT_NO_PORT &&
                was != is) {
                free(seen);
                return ibshift_fail(p->err, -ESTALE,
                                    "host '%s' to LID %u: service level %u; in the file: %u",
                                    ibshift_host_name(now, other), lid, is, was);
            }
        }
    }
    free(seen);
    return 0;
}

int fabric_compare(const struct ibshift_fabric *file, const struct ibshift_fabric *now,
                   bool is_whole, struct ibshift_error *err)
{
    struct pair p = {.file = file, .now = now, .is_whole = is_whole, .err = err};
    int rc;

    p.same = calloc(file->node_count + 1, sizeof(*p.same));
    if (p.same == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory");
    }
    rc = compare_nodes(&p);
    rc = rc == 0 ? each(&p, 1, compare_cable) : rc;
    rc = rc == 0 ? each(&p, 1, compare_lid) : rc;
    rc = rc == 0 ? each(&p, 1, compare_rate) : rc;
    rc = rc == 0 ? each(&p, 0, compare_node) : rc;
    rc = rc == 0 && file->lft != NULL && now->lft != NULL ? each(&p, 0, compare_row) : rc;
    rc = rc == 0 ? compare_levels(&p) : rc;
    if (rc == 0 &&
        !may_be_same(&p, true, now->is_adaptive, file->is_adaptive == now->is_adaptive)) {
        rc = ibshift_fail(err, -ESTALE, "adaptive routing is %s; in the file: %s",
                          now->is_adaptive ? "on" : "off", file->is_adaptive ? "on" : "off");
    }
    free(p.same);
    return rc;
}
