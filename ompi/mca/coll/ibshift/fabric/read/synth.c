#include "fabric/read/synth.h"
#include "fabric/graph/random.h"
#include "fabric/read/synth_spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ibshift_synth_is(const char *text)
{
    return strncmp(text, "kary:", 5) == 0 || strncmp(text, "pgft:", 5) == 0 ||
           strncmp(text, "qft:", 4) == 0 || strncmp(text, "torus:", 6) == 0;
}

int64_t synth_add_host(struct synth *s, uint32_t index, struct ibshift_error *err)
{
    uint64_t guid = 0x0002c90300000000ull + 16ull * (index + 1);
    char name[32];
    int64_t node;

    snprintf(name, sizeof(name), "h%05u HCA-1", index);
    node = ibshift_fabric_add_node(s->fabric, IBSHIFT_NODE_HCA, guid, name, 1, err);
    if (node >= 0) {
        int rc = ibshift_fabric_set_port_guid(
            s->fabric, ibshift_node_port(s->fabric, (uint32_t)node, 1), guid + 1);

        return rc == 0 ? node : ibshift_fail(err, rc, "no memory for %u hosts", index + 1);
    }
    return node;
}

static void unlink_port(struct ibshift_fabric *f, uint32_t port)
{
    uint32_t peer = f->ports[port].peer;

    if (peer != IBSHIFT_NO_PORT) {
        f->ports[peer].peer = IBSHIFT_NO_PORT;
        f->ports[port].peer = IBSHIFT_NO_PORT;
    }
}

/* Takes count (or percent) of the cables between switches away. */
static int cut_links(struct synth *s, struct ibshift_error *err)
{
    struct ibshift_fabric *f = s->fabric;
    uint64_t state = s->spec.cut_seed;
    uint32_t *cables = calloc((size_t)f->port_count + 1, sizeof(*cables)), count = 0, cut;

    if (cables == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for %u ports", f->port_count);
    }
    for (uint32_t p = 0; p < f->port_count; p++) {
        uint32_t peer = f->ports[p].peer;

        if (peer != IBSHIFT_NO_PORT && p < peer && ibshift_node_is_switch(f, f->ports[p].node) &&
            ibshift_node_is_switch(f, f->ports[peer].node)) {
            cables[count++] = p;
        }
    }
    cut = s->spec.cut_percent != 0 ? (uint32_t)(((uint64_t)count * s->spec.cut_percent + 50) / 100)
                                   : s->spec.cut;
    cut = cut < count ? cut : count;
    ibshift_random_shuffle(&state, cables, count);
    for (uint32_t i = 0; i < cut; i++) {
        unlink_port(f, cables[i]);
    }
    s->complete = s->complete && cut == 0;
    free(cables);
    return 0;
}

static bool is_named(const char *node, const char *name)
{
    size_t length = strlen(name);

    return strncmp(node, name, length) == 0 && (node[length] == '\0' || node[length] == ' ');
}

static int mark_dropped(struct synth *s, bool *gone, struct ibshift_error *err)
{
    for (unsigned i = 0; i < s->spec.drops; i++) {
        bool found = false;

        for (uint32_t n = 0; n < s->fabric->node_count; n++) {
            if (is_named(ibshift_node_name(s->fabric, n), s->spec.drop[i])) {
                gone[n] = found = true;
                s->complete = s->complete && n < s->hosts;
            }
        }
        if (!found) {
            return ibshift_fail(err, -ENOENT, "'/drop=%s': no node has this name", s->spec.drop[i]);
        }
    }
    return 0;
}

static int mark_unkept(struct synth *s, bool *gone, struct ibshift_error *err)
{
    uint64_t state = s->spec.keep_seed;
    uint32_t *hosts;

    if (s->spec.keep_hosts == 0) {
        return 0;
    }
    if (s->spec.keep_hosts > s->hosts) {
        return ibshift_fail(err, -ERANGE, "'/hosts=%u': the fabric has %u", s->spec.keep_hosts,
                            s->hosts);
    }
    hosts = malloc(s->hosts * sizeof(*hosts));
    if (hosts == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for %u hosts", s->hosts);
    }
    for (uint32_t h = 0; h < s->hosts; h++) {
        hosts[h] = h;
    }
    ibshift_random_shuffle(&state, hosts, s->hosts);
    for (uint32_t i = s->spec.keep_hosts; i < s->hosts; i++) {
        gone[hosts[i]] = true;
    }
    free(hosts);
    return 0;
}

static int copy_nodes(struct synth *s, struct ibshift_fabric *old, const bool *gone, uint32_t *now,
                      struct ibshift_error *err)
{
    for (uint32_t n = 0; n < old->node_count; n++) {
        const struct ibshift_node *node = &old->nodes[n];
        int64_t copy;

        if (gone[n]) {
            continue;
        }
        copy = ibshift_fabric_add_node(s->fabric, node->kind, node->guid, ibshift_node_name(old, n),
                                       node->port_count, err);
        if (copy < 0) {
            return (int)copy;
        }
        now[n] = (uint32_t)copy;
        s->place[copy] = n;
        if (node->kind == IBSHIFT_NODE_HCA) {
            ibshift_fabric_set_port_guid(s->fabric, s->fabric->nodes[copy].first_port,
                                         old->ports[node->first_port].guid);
        }
    }
    return 0;
}

/* s->fabric becomes the fabric without the nodes that are gone. */
static int without(struct synth *s, const bool *gone, struct ibshift_error *err)
{
    struct ibshift_fabric *old = s->fabric, *f = ibshift_fabric_new();
    uint32_t *now = calloc(old->node_count, sizeof(*now));
    int rc = f == NULL || now == NULL ? ibshift_fail(err, -ENOMEM, "no memory") : 0;

    s->fabric = f;
    if (rc == 0) {
        rc = copy_nodes(s, old, gone, now, err);
    }
    for (uint32_t p = 0; rc == 0 && p < old->port_count; p++) {
        const struct ibshift_port *a = &old->ports[p];

        if (a->peer > p && a->peer != IBSHIFT_NO_PORT && !gone[a->node] &&
            !gone[old->ports[a->peer].node]) {
            const struct ibshift_port *b = &old->ports[a->peer];

            rc = ibshift_fabric_add_link(f, ibshift_node_port(f, now[a->node], a->number),
                                         ibshift_node_port(f, now[b->node], b->number), a->rate,
                                         err);
        }
    }
    free(now);
    ibshift_fabric_free(old);
    return rc;
}

/* Hosts first, aligned for the LMC, then switches. */
static int number_lids(struct synth *s, struct ibshift_error *err)
{
    struct ibshift_fabric *f = s->fabric;
    unsigned lid = 1u << s->spec.lmc;
    int rc = 0;

    for (uint32_t n = 0; rc == 0 && n < f->node_count; n++) {
        if (ibshift_node_is_switch(f, n)) {
            rc = ibshift_fabric_set_lid(f, n, 0, lid++, 0, err);
        } else {
            rc = ibshift_fabric_set_lid(f, n, 1, lid, s->spec.lmc, err);
            lid += 1u << s->spec.lmc;
        }
    }
    return rc;
}

static int remove_parts(struct synth *s, struct ibshift_error *err)
{
    bool *gone = calloc(s->fabric->node_count, sizeof(*gone));
    int rc = gone == NULL ? ibshift_fail(err, -ENOMEM, "no memory") : 0;

    for (uint32_t n = 0; n < s->fabric->node_count; n++) {
        s->place[n] = n;
    }
    if (rc == 0 && (s->spec.cut != 0 || s->spec.cut_percent != 0)) {
        rc = cut_links(s, err);
    }
    if (rc == 0) {
        rc = mark_dropped(s, gone, err);
    }
    if (rc == 0) {
        rc = mark_unkept(s, gone, err);
    }
    if (rc == 0 && (s->spec.drops != 0 || s->spec.keep_hosts != 0)) {
        rc = without(s, gone, err);
    }
    free(gone);
    return rc;
}

static int build(struct synth *s, struct ibshift_error *err)
{
    int rc = s->spec.torus ? synth_torus_build(s, err) : synth_tree_build(s, err);

    if (rc != 0) {
        return rc;
    }
    s->complete = true;
    s->place = malloc(((size_t)s->fabric->node_count + 1) * sizeof(*s->place));
    if (s->place == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for %u nodes", s->fabric->node_count);
    }
    rc = remove_parts(s, err);
    if (rc == 0) {
        rc = number_lids(s, err);
    }
    if (rc == 0) {
        rc = ibshift_fabric_finish(s->fabric, err);
    }
    return rc == 0 ? synth_route(s, err) : rc;
}

int ibshift_synth_fabric(const char *text, struct ibshift_fabric **fabric,
                         struct ibshift_error *err)
{
    struct synth s = {.fabric = NULL};
    int rc = synth_parse(text, &s.spec, err);

    if (rc != 0) {
        return rc;
    }
    s.fabric = ibshift_fabric_new();
    rc = s.fabric == NULL ? ibshift_fail(err, -ENOMEM, "no memory") : build(&s, err);
    free(s.place);
    free(s.tuples);
    if (rc != 0) {
        ibshift_fabric_free(s.fabric);
        return rc;
    }
    ibshift_fabric_tables_finish(s.fabric);
    *fabric = s.fabric;
    return 0;
}
