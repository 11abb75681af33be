/*
 * In Slurm's tree each node stands once. Its leaf switches are those of the fabric; a switch above
 * them stands for a whole group of switches, since a host of a fat tree reaches several.
 */
#include "fabric/slurm.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/nodes.h"
#include "fabric/shape/shape.h"

struct slurm_node {
    char name[FABRIC_NODE_NAME];
    uint32_t leaf; /* index of its switch */
};

/* A switch of Slurm: a leaf switch, or all leaf switches of a group. */
struct slurm_switch {
    unsigned level;
    uint32_t leaf; /* the first of its leaf switches */
    uint32_t number;
};

struct slurm {
    const struct ibshift_fabric *f;
    struct ibshift_shape shape;
    bool is_yaml;
    FILE *out;
    struct slurm_node *nodes;
    struct slurm_switch *lower, *upper; /* of two levels */
    uint32_t count, lowers, uppers, unnamed;
};

/* Shorter names first, so that n9 comes before n10. */
static int by_leaf(const void *a, const void *b)
{
    const struct slurm_node *x = a, *y = b;
    size_t p = strlen(x->name), q = strlen(y->name);

    if (x->leaf != y->leaf) {
        return x->leaf < y->leaf ? -1 : 1;
    }
    return p != q ? (p < q ? -1 : 1) : strcmp(x->name, y->name);
}

static int list_nodes(struct slurm *s, struct ibshift_error *err)
{
    struct fabric_nodes known;
    int rc = fabric_nodes_open(s->f, &known, err);

    if (rc != 0) {
        return rc;
    }
    for (uint32_t i = 0; i < known.count; i++) {
        uint32_t leaf = ibshift_port_neighbour(s->f, s->f->hosts[known.at[i].host]);

        if (leaf != IBSHIFT_NO_NODE && ibshift_node_is_switch(s->f, leaf)) {
            struct slurm_node *node = &s->nodes[s->count++];

            memcpy(node->name, known.at[i].name, sizeof(node->name));
            node->leaf = s->f->nodes[leaf].switch_index;
        }
    }
    s->unnamed = known.unnamed;
    fabric_nodes_close(&known);
    qsort(s->nodes, s->count, sizeof(*s->nodes), by_leaf);
    return 0;
}

/* The place of the last digits of the name, as many as Slurm counts in. */
static size_t number_at(const char *name)
{
    size_t size = strlen(name), at = size;

    while (at > 0 && size - at < 9 && isdigit((unsigned char)name[at - 1])) {
        at--;
    }
    return at;
}

static bool follows(const char *a, const char *b)
{
    size_t at = number_at(a);

    return a[at] != '\0' && strlen(a) == strlen(b) && number_at(b) == at &&
           strncmp(a, b, at) == 0 && strtoul(a + at, NULL, 10) + 1 == strtoul(b + at, NULL, 10);
}

/* "n[001-018],login": runs of numbers that have as many digits. */
static void print_nodes(const struct slurm *s, uint32_t leaf)
{
    const struct slurm_node *nodes = s->nodes;
    bool is_first = true;

    for (uint32_t i = 0, end; i < s->count; i = end) {
        size_t at = number_at(nodes[i].name);

        end = i + 1;
        if (nodes[i].leaf != leaf) {
            continue;
        }
        while (end < s->count && nodes[end].leaf == leaf &&
               follows(nodes[end - 1].name, nodes[end].name)) {
            end++;
        }
        fprintf(s->out, "%s%.*s", is_first ? "" : ",", (int)at, nodes[i].name);
        if (end - i > 1) {
            fprintf(s->out, "[%s-%s]", nodes[i].name + at, nodes[end - 1].name + at);
        } else {
            fputs(nodes[i].name + at, s->out);
        }
        is_first = false;
    }
}

/* By GUID, since descriptions may be alike and have any characters. */
static void print_name(const struct slurm *s, const struct slurm_switch *w)
{
    if (w->level == 1) {
        fprintf(s->out, "leaf-%016" PRIx64, s->f->nodes[s->f->switches[w->leaf]].guid);
    } else {
        fprintf(s->out, "level%u-%u", w->level, w->number);
    }
}

static void print_comment(const struct slurm *s, const struct slurm_switch *w)
{
    const char *text = ibshift_node_name(s->f, s->f->switches[w->leaf]);

    fputs(s->is_yaml ? "      # " : "# ", s->out);
    for (; *text != '\0'; text++) {
        fputc(isprint((unsigned char)*text) ? *text : '?', s->out);
    }
    fputc('\n', s->out);
}

static uint32_t group_of(const struct slurm *s, uint32_t leaf, unsigned level)
{
    if (level == 1) {
        return leaf;
    }
    return level > s->shape.levels || s->shape.down[level] == NULL ? 0 : s->shape.down[level][leaf];
}

static void print_switch(const struct slurm *s, const struct slurm_switch *w)
{
    bool is_first = true;

    if (w->level == 1) {
        print_comment(s, w);
    }
    fputs(s->is_yaml ? "      - switch: " : "SwitchName=", s->out);
    print_name(s, w);
    fputs(!s->is_yaml     ? w->level == 1 ? " Nodes=" : " Switches="
          : w->level == 1 ? "\n        nodes: "
                          : "\n        children: ",
          s->out);
    if (w->level == 1) {
        print_nodes(s, w->leaf);
    }
    for (uint32_t i = 0; w->level > 1 && i < s->lowers; i++) {
        if (group_of(s, s->lower[i].leaf, w->level) == group_of(s, w->leaf, w->level)) {
            fputs(is_first ? "" : ",", s->out);
            print_name(s, &s->lower[i]);
            is_first = false;
        }
    }
    fputc('\n', s->out);
}

static void find_leaves(struct slurm *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (i == 0 || s->nodes[i].leaf != s->nodes[i - 1].leaf) {
            s->lower[s->lowers++] = (struct slurm_switch){.level = 1, .leaf = s->nodes[i].leaf};
        }
    }
}

/* Groups of the level, each by the first of the lower ones that is in it. */
static void find_groups(struct slurm *s, unsigned level)
{
    s->uppers = 0;
    for (uint32_t i = 0; i < s->lowers; i++) {
        uint32_t group = group_of(s, s->lower[i].leaf, level), u = 0;

        while (u < s->uppers && group_of(s, s->upper[u].leaf, level) != group) {
            u++;
        }
        if (u == s->uppers) {
            s->upper[s->uppers++] =
                (struct slurm_switch){.level = level, .leaf = s->lower[i].leaf, .number = u};
        }
    }
}

static void print_tree(struct slurm *s)
{
    unsigned levels =
        s->shape.kind == IBSHIFT_SHAPE_TORUS || s->shape.levels < 2 ? 2 : s->shape.levels;

    fputs(s->is_yaml ? "---\n- topology: ibshift\n  cluster_default: true\n  tree:\n"
                       "    switches:\n"
                     : "",
          s->out);
    find_leaves(s);
    for (uint32_t i = 0; i < s->lowers; i++) {
        print_switch(s, &s->lower[i]);
    }
    for (unsigned level = 2; level <= levels; level++) {
        struct slurm_switch *swap = s->lower;

        find_groups(s, level);
        if (s->uppers == s->lowers) { /* as many: it would join nothing */
            continue;
        }
        for (uint32_t i = 0; i < s->uppers; i++) {
            print_switch(s, &s->upper[i]);
        }
        s->lower = s->upper;
        s->lowers = s->uppers;
        s->upper = swap;
    }
}

int fabric_slurm_print(const struct ibshift_fabric *f, bool is_yaml, FILE *out, uint32_t *unnamed,
                       struct ibshift_error *err)
{
    struct slurm s = {.f = f, .is_yaml = is_yaml, .out = out};
    int rc = ibshift_shape_find(f, &s.shape, err);

    if (rc != 0) {
        return rc;
    }
    s.nodes = calloc((size_t)f->host_count + 1, sizeof(*s.nodes));
    s.lower = calloc((size_t)f->switch_count + 1, sizeof(*s.lower));
    s.upper = calloc((size_t)f->switch_count + 1, sizeof(*s.upper));
    rc = s.nodes == NULL || s.lower == NULL || s.upper == NULL
             ? ibshift_fail(err, -ENOMEM, "no memory")
             : list_nodes(&s, err);
    if (rc == 0) {
        print_tree(&s);
        *unnamed = s.unnamed;
    }
    free(s.nodes);
    free(s.lower);
    free(s.upper);
    ibshift_shape_free(&s.shape);
    return rc;
}
