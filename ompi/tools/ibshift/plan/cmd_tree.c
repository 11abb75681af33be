/* The picture of a tree: who gets from (or gives to) whom, and in which round. */
#include "plan/cmd.h"

#include <stdlib.h>

#include "draw/svg.h"

enum { RANKS_MAX = 256 };

static const double STEP_X = 44, STEP_Y = 84, LEFT = 40, TOP = 100, RADIUS = 15;

struct node {
    uint32_t parent; /* itself at the root */
    uint32_t round, blocks;
    int children;
    double x;
    int depth;
};

struct tree {
    uint32_t ranks, root;
    bool is_up; /* messages go to the root */
    double width;
    int depth;
    struct node nodes[RANKS_MAX];
};

/* The only message that a rank which is not the root gets (gives, when they go up); 0 when there is
 * not one. */
static int find_edge(const struct plan_args *args, const struct tree *tree, uint32_t rank,
                     struct node *node)
{
    enum ibshift_kind kind = tree->is_up ? IBSHIFT_STEP_SEND : IBSHIFT_STEP_RECV;
    uint32_t rounds = args->alg->rounds(&args->plan, rank);
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    int found = 0;

    for (uint32_t round = 0; round < rounds; round++) {
        int count = args->alg->emit(&args->plan, rank, round, steps);

        for (int i = 0; i < count; i++) {
            if (steps[i].kind == kind) {
                *node = (struct node){
                    .parent = steps[i].peer, .round = steps[i].tag, .blocks = steps[i].count};
                found++;
            }
        }
    }
    return found;
}

static int depth_of(const struct tree *tree, uint32_t rank)
{
    int depth = 0;

    while (rank != tree->root && depth <= RANKS_MAX) {
        rank = tree->nodes[rank].parent;
        depth++;
    }
    return depth;
}

static bool build(const struct plan_args *args, struct tree *tree)
{
    enum ibshift_collective collective = args->alg->collective;

    tree->ranks = args->plan.ranks;
    tree->root = args->plan.root;
    tree->is_up = collective == IBSHIFT_GATHER || collective == IBSHIFT_REDUCE;
    for (uint32_t rank = 0; rank < tree->ranks; rank++) {
        if (rank == tree->root) {
            tree->nodes[rank] = (struct node){.parent = rank};
        } else if (find_edge(args, tree, rank, &tree->nodes[rank]) != 1) {
            return false;
        }
    }
    for (uint32_t rank = 0; rank < tree->ranks; rank++) {
        int depth = depth_of(tree, rank);

        if (depth > RANKS_MAX) {
            return false;
        }
        tree->nodes[rank].depth = depth;
        tree->depth = depth > tree->depth ? depth : tree->depth;
        tree->nodes[tree->nodes[rank].parent].children += rank != tree->root;
    }
    return true;
}

/* Leaves side by side, each parent over the middle of its children; children in order of their
 * rounds. */
static void layout(struct tree *tree, uint32_t rank, double *next)
{
    double first = -1, last = 0;
    uint32_t rounds_end = 0;

    for (uint32_t child = 0; child < tree->ranks; child++) {
        if (child != rank && tree->nodes[child].parent == rank &&
            tree->nodes[child].round >= rounds_end) {
            rounds_end = tree->nodes[child].round + 1;
        }
    }
    for (uint32_t round = 0; round < rounds_end; round++) {
        for (uint32_t child = 0; child < tree->ranks; child++) {
            if (child != rank && child != tree->root && tree->nodes[child].parent == rank &&
                tree->nodes[child].round == round) {
                layout(tree, child, next);
                first = first < 0 ? tree->nodes[child].x : first;
                last = tree->nodes[child].x;
            }
        }
    }
    if (first < 0) {
        first = last = *next;
        *next += STEP_X;
    }
    tree->nodes[rank].x = (first + last) / 2;
}

static enum svg_color round_color(uint32_t round)
{
    return (enum svg_color)(SVG_BLUE + round % SVG_SKY);
}

static struct svg_point place(const struct tree *tree, uint32_t rank)
{
    return (struct svg_point){tree->nodes[rank].x, TOP + tree->nodes[rank].depth * STEP_Y};
}

static void draw_svg(const struct plan_args *args, struct tree *tree, FILE *out)
{
    double next = LEFT + RADIUS;
    char title[160];

    layout(tree, tree->root, &next);
    plan_title(args, title, sizeof(title));
    svg_begin(out, next + LEFT < 560 ? 560 : next + LEFT, TOP + tree->depth * STEP_Y + 40, title);
    svg_bold(out, (struct svg_point){LEFT - 15, 32}, 18, SVG_START, "%s", title);
    svg_text(out, (struct svg_point){LEFT - 15, 54}, 12, SVG_START,
             "a number on an edge: the round (and colour) of the message");
    for (uint32_t rank = 0; rank < tree->ranks; rank++) {
        const struct node *node = &tree->nodes[rank];
        struct svg_point parent = place(tree, node->parent), own = place(tree, rank);

        if (rank != tree->root) {
            svg_arrow(out, tree->is_up ? own : parent, tree->is_up ? parent : own,
                      round_color(node->round), RADIUS + 1);
        }
    }
    for (uint32_t rank = 0; rank < tree->ranks; rank++) {
        const struct node *node = &tree->nodes[rank];
        struct svg_point own = place(tree, rank), parent = place(tree, node->parent), middle;

        middle = (struct svg_point){own.x + (parent.x - own.x) * 0.36,
                                    own.y + (parent.y - own.y) * 0.36};
        svg_circle(out, own, RADIUS, SVG_BLACK);
        svg_label_on(out, (struct svg_point){own.x, own.y + 4.5}, 13, SVG_BLACK, "%u", rank);
        if (rank != tree->root) {
            svg_rect(out, middle.x - 7, middle.y - 8, 14, 15, SVG_WHITE);
            svg_text(out, (struct svg_point){middle.x, middle.y + 4}, 12, SVG_MIDDLE, "%u",
                     node->round);
        }
    }
    svg_end(out);
}

static void write_dot(const struct plan_args *args, const struct tree *tree, FILE *out)
{
    char title[160];

    plan_title(args, title, sizeof(title));
    fprintf(out, "digraph plan {\n  label = \"%s\";\n  node [shape = circle];\n  %u;\n", title,
            tree->root);
    for (uint32_t rank = 0; rank < tree->ranks; rank++) {
        const struct node *node = &tree->nodes[rank];

        if (rank != tree->root) {
            fprintf(out, "  %u -> %u [label = \"%u\"];\n", tree->is_up ? rank : node->parent,
                    tree->is_up ? node->parent : rank, node->round);
        }
    }
    fputs("}\n", out);
}

int plan_draw_tree(const struct plan_args *args, FILE *out)
{
    struct tree *tree = calloc(1, sizeof(*tree));
    bool is_tree = tree != NULL && build(args, tree);

    if (is_tree && args->format == PLAN_DOT) {
        write_dot(args, tree, out);
    } else if (is_tree) {
        draw_svg(args, tree, out);
    } else {
        cli_error(args->command,
                  tree == NULL ? "out of memory"
                               : "this plan is no tree: one message for each rank but the root");
    }
    free(tree);
    return is_tree ? CLI_OK : CLI_UNFIT;
}
