#include "fabric/read/synth.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/random.h"
#include "fabric/read/synth_spec.h"

static int parse_number(const char **at, unsigned long high, unsigned *value)
{
    char *end;
    unsigned long number;

    if (!isdigit((unsigned char)**at)) {
        return -EINVAL;
    }
    errno = 0;
    number = strtoul(*at, &end, 10);
    if (errno != 0 || number > high) {
        return -ERANGE;
    }
    *value = (unsigned)number;
    *at = end;
    return 0;
}

/* A list of count numbers of 1..4096 into list[1..], then the separator or the end. */
static int parse_list(const char **at, unsigned count, unsigned *list)
{
    for (unsigned i = 1; i <= count; i++) {
        if ((i > 1 && *(*at)++ != ',') || parse_number(at, 4096, &list[i]) != 0 || list[i] == 0) {
            return -EINVAL;
        }
    }
    return 0;
}

static int parse_tree(const char *at, struct synth_spec *spec, struct ibshift_error *err)
{
    if (parse_number(&at, SYNTH_LEVELS_MAX, &spec->h) != 0 || spec->h == 0 || *at++ != ';' ||
        parse_list(&at, spec->h, spec->m) != 0 || *at++ != ';' ||
        parse_list(&at, spec->h, spec->w) != 0 || *at++ != ';' ||
        parse_list(&at, spec->h, spec->p) != 0 || *at != '\0') {
        return ibshift_fail(err, -EINVAL,
                            "'%s': wants LEVELS;m,..;w,..;p,.. with 1 to %d levels and as many m, "
                            "w and p, as in pgft:3;18,9,36;1,9,18;1,2,1",
                            spec->text, SYNTH_LEVELS_MAX);
    }
    if (spec->w[1] != 1 || spec->p[1] != 1) {
        return ibshift_fail(err, -EINVAL, "'%s': hosts have one cable here: w1 = p1 = 1",
                            spec->text);
    }
    return 0;
}

static int parse_kary(const char *at, struct synth_spec *spec, struct ibshift_error *err)
{
    unsigned k;

    if (parse_number(&at, 127, &k) != 0 || k < 1 || *at++ != ',' ||
        parse_number(&at, SYNTH_LEVELS_MAX, &spec->h) != 0 || spec->h == 0 || *at != '\0') {
        return ibshift_fail(err, -EINVAL, "'%s': wants K,N: K to 127, N to %d, as in kary:4,3",
                            spec->text, SYNTH_LEVELS_MAX);
    }
    for (unsigned l = 1; l <= spec->h; l++) {
        spec->m[l] = k;
        spec->w[l] = l == 1 ? 1 : k;
        spec->p[l] = 1;
    }
    return 0;
}

static int parse_torus(const char *at, struct synth_spec *spec, struct ibshift_error *err)
{
    spec->torus = true;
    do {
        if (spec->dims == SYNTH_DIMS_MAX || parse_number(&at, 4096, &spec->dim[spec->dims]) != 0 ||
            spec->dim[spec->dims] == 0) {
            return ibshift_fail(err, -EINVAL, "'%s': wants AxB[xC...],HOSTS as in torus:8x8,4",
                                spec->text);
        }
        spec->dims++;
    } while (*at == 'x' && at++);
    spec->hosts_per_switch = 1;
    if (*at == ',') {
        at++;
        if (parse_number(&at, 200, &spec->hosts_per_switch) != 0) {
            return ibshift_fail(err, -EINVAL, "'%s': 0 to 200 hosts per switch", spec->text);
        }
    }
    return *at == '\0' ? 0 : ibshift_fail(err, -EINVAL, "'%s': what is '%s'?", spec->text, at);
}

static int parse_seeded(const char *at, unsigned *count, unsigned *percent, uint64_t *seed)
{
    unsigned number, seed_number = 1;

    if (parse_number(&at, 1000000, &number) != 0) {
        return -EINVAL;
    }
    if (*at == '%' && percent != NULL && number <= 100) {
        at++;
        *percent = number;
    } else {
        *count = number;
    }
    if (*at == ':') {
        at++;
        if (parse_number(&at, UINT32_MAX, &seed_number) != 0) {
            return -EINVAL;
        }
    }
    *seed = seed_number;
    return *at == '\0' ? 0 : -EINVAL;
}

static int parse_drop(char *names, struct synth_spec *spec)
{
    char *rest = NULL;

    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        if (spec->drops == SYNTH_DROPS_MAX) {
            return -E2BIG;
        }
        spec->drop[spec->drops++] = name;
    }
    return 0;
}

static int parse_option(char *option, struct synth_spec *spec, struct ibshift_error *err)
{
    const char *lmc = option + 4;
    int rc = -EINVAL;

    if (strcmp(option, "minhop") == 0) {
        spec->minhop = true;
        rc = 0;
    } else if (strncmp(option, "cut=", 4) == 0) {
        rc = parse_seeded(option + 4, &spec->cut, &spec->cut_percent, &spec->cut_seed);
    } else if (strncmp(option, "hosts=", 6) == 0) {
        rc = parse_seeded(option + 6, &spec->keep_hosts, NULL, &spec->keep_seed);
        rc = rc == 0 && spec->keep_hosts == 0 ? -EINVAL : rc;
    } else if (strncmp(option, "lmc=", 4) == 0) {
        rc = parse_number(&lmc, IBSHIFT_LMC_MAX, &spec->lmc) == 0 && *lmc == '\0' ? 0 : -EINVAL;
    } else if (strncmp(option, "drop=", 5) == 0) {
        rc = parse_drop(option + 5, spec);
    }
    return rc == 0 ? 0
                   : ibshift_fail(err, -EINVAL,
                                  "'/%s': wants /cut=N[%%][:SEED], /drop=NAME,.., "
                                  "/hosts=N[:SEED], /lmc=0..7 or /minhop",
                                  option);
}

static int parse_kind(char *kind, struct synth_spec *spec, struct ibshift_error *err)
{
    if (strncmp(kind, "kary:", 5) == 0) {
        return parse_kary(kind + 5, spec, err);
    }
    if (strncmp(kind, "torus:", 6) == 0) {
        return parse_torus(kind + 6, spec, err);
    }
    spec->qft = strncmp(kind, "qft:", 4) == 0;
    if (spec->qft || strncmp(kind, "pgft:", 5) == 0) {
        return parse_tree(strchr(kind, ':') + 1, spec, err);
    }
    return ibshift_fail(err, -EINVAL, "'%s': not kary:, pgft:, qft: or torus:", kind);
}

static int parse(const char *text, struct synth_spec *spec, struct ibshift_error *err)
{
    char *option;
    int rc;

    memset(spec, 0, sizeof(*spec));
    if (strlen(text) >= sizeof(spec->text)) {
        return ibshift_fail(err, -E2BIG, "a synthetic fabric of more than %zu characters",
                            sizeof(spec->text) - 1);
    }
    strcpy(spec->text, text);
    option = strchr(spec->text, '/');
    if (option != NULL) {
        *option++ = '\0';
    }
    rc = parse_kind(spec->text, spec, err);
    while (rc == 0 && option != NULL) {
        char *next = strchr(option, '/');

        if (next != NULL) {
            *next++ = '\0';
        }
        rc = parse_option(option, spec, err);
        option = next;
    }
    return rc;
}

bool ibshift_synth_is(const char *text)
{
    return strncmp(text, "kary:", 5) == 0 || strncmp(text, "pgft:", 5) == 0 ||
           strncmp(text, "qft:", 4) == 0 || strncmp(text, "torus:", 6) == 0;
}

/* ---- forwarding tables: the closed form where its way exists, else a shortest one ---- */

#define FAR UINT16_MAX

/* Ways to the hosts of one leaf switch. Arrays by node. */
struct ways {
    uint16_t *distance; /* hops to the leaf, FAR: none */
    uint16_t *descent;  /* the same by going down only (trees) */
    uint32_t *queue;
    uint32_t *load; /* by port: destinations routed through it (minhop) */
};

static void spread(const struct synth *s, uint32_t start, bool only_up, uint16_t *hops,
                   uint32_t *queue)
{
    const struct ibshift_fabric *f = s->fabric;
    uint32_t head = 0, tail = 0;

    memset(hops, 0xff, f->node_count * sizeof(*hops));
    hops[start] = 0;
    queue[tail++] = start;
    while (head < tail) {
        uint32_t node = queue[head++];

        for (unsigned p = 1; p <= f->nodes[node].port_count; p++) {
            uint32_t next = ibshift_port_neighbour(f, ibshift_node_port(f, node, p));

            if (next != IBSHIFT_NO_NODE && ibshift_node_is_switch(f, next) && hops[next] == FAR &&
                (!only_up ||
                 synth_level(s, s->place[next]) == synth_level(s, s->place[node]) + 1)) {
                hops[next] = (uint16_t)(hops[node] + 1);
                queue[tail++] = next;
            }
        }
    }
}

/* Up, then down: from the top level (the last nodes) to the bottom. */
static void climb(const struct synth *s, struct ways *w)
{
    const struct ibshift_fabric *f = s->fabric;

    memcpy(w->distance, w->descent, f->node_count * sizeof(*w->distance));
    for (uint32_t i = f->switch_count; i-- > 0;) {
        uint32_t node = f->switches[i];
        unsigned level = synth_level(s, s->place[node]);

        for (unsigned p = 1; w->descent[node] == FAR && p <= f->nodes[node].port_count; p++) {
            uint32_t next = ibshift_port_neighbour(f, ibshift_node_port(f, node, p));

            if (next != IBSHIFT_NO_NODE && ibshift_node_is_switch(f, next) &&
                synth_level(s, s->place[next]) == level + 1 && w->distance[next] != FAR &&
                w->distance[next] + 1 < w->distance[node]) {
                w->distance[node] = (uint16_t)(w->distance[next] + 1);
            }
        }
    }
}

static bool is_way(const struct synth *s, const struct ways *w, uint32_t node, unsigned port)
{
    const struct ibshift_fabric *f = s->fabric;
    uint32_t next = ibshift_port_neighbour(f, ibshift_node_port(f, node, port));

    if (next == IBSHIFT_NO_NODE || !ibshift_node_is_switch(f, next)) {
        return false;
    }
    if (s->spec.torus) {
        return w->distance[next] + 1 == w->distance[node];
    }
    if (w->descent[node] != FAR) {
        return w->descent[next] != FAR && w->descent[next] + 1 == w->descent[node];
    }
    return w->distance[next] != FAR && w->distance[next] + 1 == w->distance[node] &&
           synth_level(s, s->place[next]) > synth_level(s, s->place[node]);
}

static unsigned least_loaded(const struct synth *s, const struct ways *w, uint32_t node)
{
    const struct ibshift_node *n = &s->fabric->nodes[node];
    unsigned best = 0;

    for (unsigned p = 1; p <= n->port_count; p++) {
        if (is_way(s, w, node, p) &&
            (best == 0 || w->load[n->first_port + p - 1] < w->load[n->first_port + best - 1])) {
            best = p;
        }
    }
    return best;
}

static unsigned closed_form(const struct synth *s, uint32_t node, uint32_t d, unsigned offset)
{
    uint32_t sw = s->place[node];

    return s->spec.torus ? synth_torus_port(s, sw, d)
                         : synth_tree_port(s, sw, d, (d + offset) % s->hosts);
}

static unsigned choose(const struct synth *s, struct ways *w, uint32_t node, uint32_t d,
                       unsigned offset)
{
    const struct ibshift_node *n = &s->fabric->nodes[node];
    unsigned wanted, port;

    if (w->distance[node] == FAR) {
        return 0;
    }
    if (s->spec.minhop) {
        port = least_loaded(s, w, node);
        w->load[n->first_port + port - 1]++;
        return port;
    }
    wanted = closed_form(s, node, d, offset);
    for (unsigned i = 0; i < n->port_count; i++) {
        port = (wanted - 1 + i) % n->port_count + 1;
        if (is_way(s, w, node, port)) {
            return port;
        }
    }
    return 0;
}

static void route_host(struct synth *s, struct ways *w, uint32_t leaf, unsigned leaf_port,
                       uint32_t host_port)
{
    struct ibshift_fabric *f = s->fabric;
    const struct ibshift_port *host = &f->ports[host_port];

    for (unsigned offset = 0; offset < 1u << host->lmc; offset++) {
        for (uint32_t i = 0; i < f->switch_count; i++) {
            uint32_t node = f->switches[i];
            unsigned port = leaf_port;

            if (node != leaf) {
                port = choose(s, w, node, s->place[host->node], offset);
            }
            ibshift_lft_set(f, i, host->lid + offset, port);
        }
    }
}

static void route_leaf(struct synth *s, struct ways *w, uint32_t leaf)
{
    const struct ibshift_fabric *f = s->fabric;
    bool found = false;

    for (unsigned p = 1; p <= f->nodes[leaf].port_count; p++) {
        uint32_t port = f->ports[ibshift_node_port(f, leaf, p)].peer;

        if (port == IBSHIFT_NO_PORT || ibshift_node_is_switch(f, f->ports[port].node)) {
            continue;
        }
        if (!found) {
            spread(s, leaf, !s->spec.torus, s->spec.torus ? w->distance : w->descent, w->queue);
            if (!s->spec.torus) {
                climb(s, w);
            }
        }
        found = true;
        route_host(s, w, leaf, p, port);
    }
}

/* Nothing is in the way of the closed form: one table after the other. */
static void route_complete(struct synth *s)
{
    struct ibshift_fabric *f = s->fabric;

    for (uint32_t i = 0; i < f->switch_count; i++) {
        for (uint32_t h = 0; h < f->host_count; h++) {
            const struct ibshift_port *host = &f->ports[f->hosts[h]];

            for (unsigned offset = 0; offset < 1u << host->lmc; offset++) {
                ibshift_lft_set(f, i, host->lid + offset,
                                closed_form(s, f->switches[i], s->place[host->node], offset));
            }
        }
    }
}

static int route(struct synth *s, struct ibshift_error *err)
{
    const struct ibshift_fabric *f = s->fabric;
    struct ways w = {.distance = calloc(f->node_count, sizeof(*w.distance)),
                     .descent = calloc(f->node_count, sizeof(*w.descent)),
                     .queue = calloc(f->node_count, sizeof(*w.queue)),
                     .load = calloc((size_t)f->port_count + 1, sizeof(*w.load))};
    int rc = ibshift_fabric_tables_new(s->fabric, err);

    if (rc == 0 && (!w.distance || !w.descent || !w.queue || !w.load)) {
        rc = ibshift_fail(err, -ENOMEM, "no memory to route %u nodes", f->node_count);
    }
    if (rc == 0 && s->complete && !s->spec.minhop) {
        route_complete(s);
    }
    for (uint32_t i = 0; rc == 0 && (!s->complete || s->spec.minhop) && i < f->switch_count; i++) {
        route_leaf(s, &w, f->switches[i]);
    }
    free(w.distance);
    free(w.descent);
    free(w.queue);
    free(w.load);
    return rc;
}

/* ---- what is taken away from the complete fabric ---- */

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
    return rc == 0 ? route(s, err) : rc;
}

int ibshift_synth_fabric(const char *text, struct ibshift_fabric **fabric,
                         struct ibshift_error *err)
{
    struct synth s = {.fabric = NULL};
    int rc = parse(text, &s.spec, err);

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
