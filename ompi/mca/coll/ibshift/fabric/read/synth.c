#include "fabric/read/synth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/lines.h"
#include "fabric/graph/random.h"
#include "fabric/graph/rate.h"
#include "fabric/read/synth_spec.h"

static bool scan_number(const char **at, uint64_t high, unsigned *value)
{
    uint64_t number;
    const char *end = **at >= '0' && **at <= '9' ? ibshift_scan_decimal(*at, &number) : NULL;

    if (end == NULL || number > high) {
        return false;
    }
    *value = (unsigned)number;
    *at = end;
    return true;
}

/* A list of count numbers of 1..4096 into list[1..], then the separator or the end. */
static bool scan_list(const char **at, unsigned count, char end, unsigned *list)
{
    for (unsigned i = 1; i <= count; i++) {
        if ((i > 1 && *(*at)++ != ',') || !scan_number(at, 4096, &list[i]) || list[i] == 0) {
            return false;
        }
    }
    return *(*at)++ == end;
}

static int parse_tree(const char *at, struct synth_spec *spec, struct ibshift_error *err)
{
    if (!scan_number(&at, SYNTH_LEVELS_MAX, &spec->h) || spec->h == 0 || *at++ != ';' ||
        !scan_list(&at, spec->h, ';', spec->m) || !scan_list(&at, spec->h, ';', spec->w) ||
        !scan_list(&at, spec->h, '\0', spec->p)) {
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

    if (!scan_number(&at, 127, &k) || k < 1 || *at++ != ',' ||
        !scan_number(&at, SYNTH_LEVELS_MAX, &spec->h) || spec->h == 0 || *at != '\0') {
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
    spec->h = 1;
    do {
        if (spec->dims == SYNTH_DIMS_MAX || !scan_number(&at, 4096, &spec->dim[spec->dims]) ||
            spec->dim[spec->dims] == 0) {
            return ibshift_fail(err, -EINVAL, "'%s': wants AxB[xC...],HOSTS as in torus:8x8,4",
                                spec->text);
        }
        spec->dims++;
    } while (*at == 'x' && at++);
    spec->hosts_per_switch = 1;
    if (*at == ',') {
        at++;
        if (!scan_number(&at, 200, &spec->hosts_per_switch)) {
            return ibshift_fail(err, -EINVAL, "'%s': 0 to 200 hosts per switch", spec->text);
        }
    }
    return *at == '\0' ? 0 : ibshift_fail(err, -EINVAL, "'%s': what is '%s'?", spec->text, at);
}

/* "2,4,2" or "2,4,2,9": numbers of 1..4096, of which those behind the first `least` may be missing. */
static int parse_numbers(const char *at, const struct synth_spec *spec, unsigned *const *numbers,
                         unsigned least, unsigned most, const char *wanted,
                         struct ibshift_error *err)
{
    for (unsigned i = 0; i < most; i++) {
        if (i >= least && *at == '\0') {
            return 0;
        }
        if ((i > 0 && *at++ != ',') || !scan_number(&at, 4096, numbers[i]) || *numbers[i] == 0) {
            return ibshift_fail(err, -EINVAL, "'%s': wants %s", spec->text, wanted);
        }
    }
    return *at == '\0' ? 0 : ibshift_fail(err, -EINVAL, "'%s': what is '%s'?", spec->text, at);
}

/* As many groups as there are cables for, if no number is given. */
static int parse_dragonfly(const char *at, struct synth_spec *t, struct ibshift_error *err)
{
    unsigned *const numbers[] = {&t->hosts_per_switch, &t->leaves, &t->globals, &t->groups};
    int rc = parse_numbers(at, t, numbers, 3, 4,
                           "hosts and global cables of a switch, and switches of a group: P,A,H or "
                           "P,A,H,GROUPS, as in dragonfly:2,4,2",
                           err);

    t->groups = t->groups > 0 ? t->groups : t->leaves * t->globals + 1;
    return rc;
}

static int parse_dragonfly_plus(const char *at, struct synth_spec *t, struct ibshift_error *err)
{
    unsigned *const numbers[] = {&t->hosts_per_switch, &t->leaves, &t->spines, &t->globals,
                                 &t->groups};
    int rc =
        parse_numbers(at, t, numbers, 4, 5,
                      "hosts of a leaf, leaves and spines of a group, global cables of a spine: "
                      "P,L,S,H or P,L,S,H,GROUPS, as in dragonfly+:4,4,4,4",
                      err);

    t->groups = t->groups > 0 ? t->groups : t->spines * t->globals + 1;
    return rc;
}

static int parse_slimfly(const char *at, struct synth_spec *t, struct ibshift_error *err)
{
    unsigned *const numbers[] = {&t->q, &t->hosts_per_switch};

    return parse_numbers(at, t, numbers, 1, 2,
                         "a prime, and hosts of a switch: Q or Q,HOSTS, as in slimfly:5,3", err);
}

static const struct synth_shape shapes[] = {
    {"kary:", parse_kary, synth_tree_build, synth_tree_ports, synth_tree_port, NULL, true},
    {"torus:", parse_torus, synth_torus_build, synth_torus_ports, synth_torus_port, NULL, false},
    {"pgft:", parse_tree, synth_tree_build, synth_tree_ports, synth_tree_port, NULL, true},
    {"qft:", parse_tree, synth_tree_build, synth_tree_ports, synth_tree_port, NULL, true},
    {"dragonfly:", parse_dragonfly, synth_group_build, synth_group_ports, synth_group_port,
     synth_group_level, false},
    {"dragonfly+:", parse_dragonfly_plus, synth_group_build, synth_group_ports, synth_group_port,
     synth_group_level, false},
    {"hyperx:", parse_torus, synth_hyperx_build, synth_hyperx_ports, synth_hyperx_port, NULL,
     false},
    {"slimfly:", parse_slimfly, synth_slimfly_build, synth_slimfly_ports, synth_slimfly_port,
     synth_slimfly_level, false},
};

static const struct synth_shape *shape_of(const char *text)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (ibshift_scan_word(text, shapes[i].word) != NULL) {
            return &shapes[i];
        }
    }
    return NULL;
}

bool ibshift_synth_is(const char *text)
{
    return shape_of(text) != NULL;
}

/* NUMBER[%][:SEED] */
static bool scan_seeded(const char *at, unsigned *count, unsigned *percent, uint64_t *seed)
{
    unsigned number, seed_number = 1;

    if (!scan_number(&at, 1000000, &number)) {
        return false;
    }
    if (*at == '%' && percent != NULL && number <= 100) {
        at++;
        *percent = number;
    } else {
        *count = number;
    }
    if (*at == ':') {
        at++;
        if (!scan_number(&at, UINT32_MAX, &seed_number)) {
            return false;
        }
    }
    *seed = seed_number;
    return *at == '\0';
}

static bool scan_drop(char *names, struct synth_spec *spec)
{
    char *rest = NULL;

    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        if (spec->drops == SYNTH_DROPS_MAX) {
            return false;
        }
        spec->drop[spec->drops++] = name;
    }
    return true;
}

static int parse_option(char *option, struct synth_spec *spec, struct ibshift_error *err)
{
    char *value = option + strcspn(option, "=");
    const char *lmc = value + 1; /* or how many rails */
    bool is_good = false;

    if (strcmp(option, "minhop") == 0) {
        spec->minhop = is_good = true;
    } else if (ibshift_scan_word(option, "cut=")) {
        is_good = scan_seeded(value + 1, &spec->cut, &spec->cut_percent, &spec->cut_seed);
    } else if (ibshift_scan_word(option, "hosts=")) {
        is_good = scan_seeded(value + 1, &spec->keep_hosts, NULL, &spec->keep_seed) &&
                  spec->keep_hosts != 0;
    } else if (ibshift_scan_word(option, "lmc=")) {
        is_good = scan_number(&lmc, IBSHIFT_LMC_MAX, &spec->lmc) && *lmc == '\0';
    } else if (ibshift_scan_word(option, "rails=")) {
        is_good =
            scan_number(&lmc, SYNTH_RAILS_MOST, &spec->rails) && *lmc == '\0' && spec->rails > 0;
    } else if (ibshift_scan_word(option, "drop=")) {
        is_good = scan_drop(value + 1, spec);
    }
    return is_good ? 0
                   : ibshift_fail(err, -EINVAL,
                                  "'/%s': wants /cut=N[%%][:SEED], /drop=NAME,.., "
                                  "/hosts=N[:SEED], /lmc=0..7, /rails=1..16 or /minhop",
                                  option);
}

static int parse(const char *text, struct synth_spec *spec, struct ibshift_error *err)
{
    const struct synth_shape *shape = shape_of(text);
    char *rest = spec->text;
    int rc;

    if (strlen(text) >= sizeof(spec->text)) {
        return ibshift_fail(err, -E2BIG, "a synthetic fabric of more than %zu characters",
                            sizeof(spec->text) - 1);
    }
    strcpy(spec->text, text);
    strsep(&rest, "/");
    if (shape == NULL) {
        return ibshift_fail(
            err, -EINVAL,
            "'%s': not kary:, pgft:, qft:, torus:, dragonfly:, dragonfly+:, hyperx: "
            "or slimfly:",
            spec->text);
    }
    spec->shape = shape;
    spec->qft = text[0] == 'q';
    rc = shape->parse(spec->text + strlen(shape->word), spec, err);
    while (rc == 0 && rest != NULL) {
        rc = parse_option(strsep(&rest, "/"), spec, err);
    }
    return rc;
}

/* ---- what is taken away from the complete fabric ---- */

static unsigned hosts_on_leaf(const struct synth *s)
{
    return s->spec.shape->is_tree ? s->spec.m[1] : s->spec.hosts_per_switch;
}

/* Rail-optimised: the adapters of a node are at the same place of as many leaves, one after the other. */
static void name_node(const struct synth *s, uint32_t node, char *text, size_t size)
{
    unsigned level = synth_level(s, node), rails = s->spec.rails > 0 ? s->spec.rails : 1;

    if (node < s->hosts) {
        uint32_t on_leaf = hosts_on_leaf(s), leaf = node / on_leaf;

        snprintf(text, size, "h%05u HCA-%u", leaf / rails * on_leaf + node % on_leaf,
                 leaf % rails + 1);
    } else {
        snprintf(text, size, "s%u-%05u", level, node - s->level_start[level]);
    }
}

static int by_port(const void *x, const void *y)
{
    const struct synth_cable *a = x, *b = y;

    if (a->node[0] != b->node[0]) {
        return a->node[0] < b->node[0] ? -1 : 1;
    }
    return (int)a->port[0] - (int)b->port[0];
}

/* Takes count (or percent) of the cables between switches away. */
static int cut_cables(struct synth *s, struct ibshift_error *err)
{
    uint64_t state = s->spec.cut_seed;
    uint32_t *chosen, count = 0, cut;

    if (s->spec.cut == 0 && s->spec.cut_percent == 0) {
        return 0;
    }
    chosen = malloc((s->cable_count + 1) * sizeof(*chosen));
    if (chosen == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for %u cables", s->cable_count);
    }
    qsort(s->cables, s->cable_count, sizeof(*s->cables), by_port);
    for (uint32_t i = 0; i < s->cable_count; i++) {
        if (s->cables[i].node[0] >= s->hosts) {
            chosen[count++] = i;
        }
    }
    cut = s->spec.cut_percent != 0 ? (uint32_t)(((uint64_t)count * s->spec.cut_percent + 50) / 100)
                                   : s->spec.cut;
    cut = cut < count ? cut : count;
    ibshift_random_shuffle(&state, chosen, count);
    for (uint32_t i = 0; i < cut; i++) {
        s->cables[chosen[i]].is_cut = true;
    }
    s->complete = s->complete && cut == 0;
    free(chosen);
    return 0;
}

static int mark_dropped(struct synth *s, bool *gone, struct ibshift_error *err)
{
    for (unsigned i = 0; i < s->spec.drops; i++) {
        bool found = false;

        for (uint32_t n = 0; n < s->nodes; n++) {
            char name[32];
            const char *rest;

            name_node(s, n, name, sizeof(name));
            rest = ibshift_scan_word(name, s->spec.drop[i]);
            if (rest != NULL && (*rest == '\0' || *rest == ' ')) {
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

/* ---- the fabric of what is left ---- */

/* LIDs: hosts first, aligned for the LMC, then switches. */
static int add_node(struct synth *s, uint32_t n, unsigned *lid, struct ibshift_error *err)
{
    struct ibshift_fabric *f = s->fabric;
    bool is_host = n < s->hosts;
    uint64_t guid = (is_host ? 0x0002c90300000000ull : 0x0002c90200000000ull) + 16ull * (n + 1);
    unsigned lmc = is_host ? s->spec.lmc : 0;
    char name[32];
    int64_t copy;
    int rc;

    name_node(s, n, name, sizeof(name));
    copy = ibshift_fabric_add_node(f, is_host ? IBSHIFT_NODE_HCA : IBSHIFT_NODE_SWITCH, guid, name,
                                   is_host ? 1 : s->spec.shape->ports(s, n), err);
    if (copy < 0) {
        return (int)copy;
    }
    s->place[copy] = n;
    s->now[n] = (uint32_t)copy;
    rc = is_host ? ibshift_fabric_set_port_guid(f, f->nodes[copy].first_port, guid + 1) : 0;
    if (rc != 0) {
        return ibshift_fail(err, rc, "no memory for %u hosts", n + 1);
    }
    rc = ibshift_fabric_set_lid(f, (uint32_t)copy, is_host, *lid, lmc, err);
    *lid += 1u << lmc;
    return rc;
}

static int add_all(struct synth *s, const bool *gone, struct ibshift_error *err)
{
    struct ibshift_fabric *f = s->fabric;
    unsigned lid = 1u << s->spec.lmc;
    int rc = 0;

    for (uint32_t n = 0; rc == 0 && n < s->nodes; n++) {
        rc = gone[n] ? 0 : add_node(s, n, &lid, err);
    }
    for (uint32_t i = 0; rc == 0 && i < s->cable_count; i++) {
        const struct synth_cable *c = &s->cables[i];

        if (!c->is_cut && !gone[c->node[0]] && !gone[c->node[1]]) {
            rc = ibshift_fabric_add_link(f, ibshift_node_port(f, s->now[c->node[0]], c->port[0]),
                                         ibshift_node_port(f, s->now[c->node[1]], c->port[1]),
                                         ibshift_rate_usual(), err);
        }
    }
    return rc == 0 ? ibshift_fabric_finish(f, err) : rc;
}

static int build(struct synth *s, struct ibshift_error *err)
{
    int rc = s->spec.shape->build(s, err);
    bool *gone = calloc((size_t)s->nodes + 1, sizeof(*gone));

    if (rc == 0 && s->spec.rails > 0 && s->hosts / hosts_on_leaf(s) % s->spec.rails != 0) {
        rc = ibshift_fail(err, -EINVAL, "'/rails=%u': the %u leaves are no multiple of it",
                          s->spec.rails, s->hosts / hosts_on_leaf(s));
    }
    s->complete = true;
    s->place = malloc(((size_t)s->nodes + 1) * sizeof(*s->place));
    s->now = malloc(((size_t)s->nodes + 1) * sizeof(*s->now));
    if (rc == 0 && (gone == NULL || s->place == NULL || s->now == NULL)) {
        rc = ibshift_fail(err, -ENOMEM, "no memory for %u nodes", s->nodes);
    }
    rc = rc == 0 ? cut_cables(s, err) : rc;
    rc = rc == 0 ? mark_dropped(s, gone, err) : rc;
    rc = rc == 0 ? mark_unkept(s, gone, err) : rc;
    rc = rc == 0 ? add_all(s, gone, err) : rc;
    free(gone);
    return rc == 0 ? synth_route(s, err) : rc;
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
    if (rc == 0) {
        ibshift_fabric_tables_finish(s.fabric);
        rc =
            s.spec.shape->level != NULL && s.complete && !s.spec.minhop ? synth_levels(&s, err) : 0;
    }
    free(s.place);
    free(s.now);
    free(s.tuples);
    free(s.cables);
    free(s.next);
    free(s.level);
    if (rc != 0) {
        ibshift_fabric_free(s.fabric);
        return rc;
    }
    *fabric = s.fabric;
    return 0;
}
