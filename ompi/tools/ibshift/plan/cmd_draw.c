/* `ibshift plan draw`: the choice of the picture, and that of time. */
#include "plan/cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "choose/price.h"
#include "draw/svg.h"
#include "plan/nodes.h"

/* The picture of time: what each rank's processor does when, and the messages between, under a
 * model. */

static const double LEFT = 76, RIGHT = 30, TOP = 104, BOTTOM = 56, CHART_WIDTH = 1000,
                    NODE_NAME = 70;

struct bar {
    enum ibshift_kind kind;
    uint32_t rank, peer, key, tag;
    double begin, end, leaves, ready;
};

struct bars {
    struct bar *bars;
    size_t count, capacity;
    bool is_out_of_memory;
};

static void collect(void *context, const struct ibshift_price_event *event)
{
    struct bars *all = context;
    const struct ibshift_step *step = event->step;

    if (all->count == all->capacity) {
        size_t capacity = all->capacity > 0 ? 2 * all->capacity : 256;
        struct bar *bars = realloc(all->bars, capacity * sizeof(*bars));

        if (bars == NULL) {
            all->is_out_of_memory = true;
            return;
        }
        all->bars = bars;
        all->capacity = capacity;
    }
    all->bars[all->count++] = (struct bar){
        .kind = (enum ibshift_kind)step->kind,
        .rank = event->rank,
        .peer = ibshift_step_is_local(step) ? 0 : step->peer,
        .key = ibshift_step_is_local(step) ? 0 : ibshift_step_key(step),
        .tag = ibshift_step_is_local(step) ? 0 : step->tag,
        .begin = event->begin,
        .end = event->end,
        .leaves = event->leaves,
        .ready = event->ready,
    };
}

struct view {
    FILE *out;
    const struct ibshift_plan *plan;
    double row_height, per_us;
};

static double x_at(const struct view *view, double time)
{
    return LEFT + time * view->per_us;
}

/* Ranks of a node are one below the other. */
static double y_at(const struct view *view, uint32_t rank)
{
    const struct ibshift_nodes *nodes = view->plan->nodes;
    uint32_t row =
        nodes != NULL ? nodes->first[nodes->node_of[rank]] + nodes->place_of[rank] : rank;

    return TOP + (row + 0.5) * view->row_height;
}

/* Each node is a band, every second one pale, with its name at the right. */
static void draw_bands(const struct view *view)
{
    const struct ibshift_nodes *nodes = view->plan->nodes;

    for (uint32_t node = 0; nodes != NULL && node < nodes->nodes; node++) {
        double top = TOP + nodes->first[node] * view->row_height;
        double height = ibshift_nodes_size(view->plan, node) * view->row_height;

        if (node % 2 == 0) {
            svg_rect(view->out, 0, top, LEFT + CHART_WIDTH + NODE_NAME, height, SVG_PALE);
        }
        svg_text(view->out, (struct svg_point){LEFT + CHART_WIDTH + 12, top + height / 2 + 4}, 12,
                 SVG_START, "node %u", node);
    }
}

static enum svg_color bar_color(enum ibshift_kind kind)
{
    return kind == IBSHIFT_STEP_SEND   ? SVG_BLUE
           : kind == IBSHIFT_STEP_RECV ? SVG_ORANGE
                                       : SVG_GREEN;
}

static void draw_bars(const struct view *view, const struct bars *all)
{
    double height = view->row_height * 0.42 < 16 ? view->row_height * 0.42 : 16;

    for (size_t i = 0; i < all->count; i++) {
        const struct bar *bar = &all->bars[i];
        double x = x_at(view, bar->begin), width = x_at(view, bar->end) - x;

        if (width > 0) {
            svg_rect(view->out, x, y_at(view, bar->rank) - height / 2, width < 1 ? 1 : width,
                     height, bar_color(bar->kind));
        }
        if (width > 4) {
            svg_line(view->out, (struct svg_point){x + width, y_at(view, bar->rank) - height / 2},
                     (struct svg_point){x + width, y_at(view, bar->rank) + height / 2}, SVG_WHITE,
                     1, SVG_SOLID);
        }
        if (bar->kind == IBSHIFT_STEP_SEND && width > 15 && height > 11) {
            svg_label_on(view->out, (struct svg_point){x + width / 2, y_at(view, bar->rank) + 4},
                         11, SVG_BLUE, "%u", bar->tag);
        }
    }
}

static const struct bar *receive_of(const struct bars *all, const struct bar *send)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct bar *bar = &all->bars[i];

        if (bar->kind == IBSHIFT_STEP_RECV && bar->rank == send->peer && bar->peer == send->rank &&
            bar->key == send->key) {
            return bar;
        }
    }
    return NULL;
}

static void draw_messages(const struct view *view, const struct bars *all)
{
    double out = view->row_height * 0.42 < 16 ? view->row_height * 0.21 : 8, half;

    for (size_t i = 0; i < all->count; i++) {
        const struct bar *send = &all->bars[i], *recv;

        if (send->kind != IBSHIFT_STEP_SEND || (recv = receive_of(all, send)) == NULL) {
            continue;
        }
        half = y_at(view, recv->rank) > y_at(view, send->rank) ? out : -out;
        svg_arrow(
            view->out, (struct svg_point){x_at(view, send->end), y_at(view, send->rank) + half},
            (struct svg_point){x_at(view, recv->begin), y_at(view, recv->rank) - half}, SVG_GREY);
    }
}

static double round_step(double span)
{
    double step = 1e-3;

    while (span / step > 12) {
        step *= span / step > 120 ? 10 : span / step > 24 ? 5 : 2;
    }
    return step;
}

static void draw_frame(const struct view *view, const struct plan_args *args, double last)
{
    double bottom = TOP + args->plan.ranks * view->row_height, step = round_step(last);

    for (int i = 0; i * step <= last * 1.0001; i++) {
        double x = x_at(view, i * step);

        svg_line(view->out, (struct svg_point){x, TOP}, (struct svg_point){x, bottom},
                 args->plan.nodes != NULL ? SVG_WHITE : SVG_PALE, 1, SVG_SOLID);
        svg_text(view->out, (struct svg_point){x, bottom + 18}, 12, SVG_MIDDLE, "%.6g", i * step);
    }
    svg_text(view->out, (struct svg_point){LEFT + CHART_WIDTH / 2, bottom + 42}, 13, SVG_MIDDLE,
             "us (modelled)");
    for (uint32_t rank = 0; rank < args->plan.ranks; rank++) {
        double y = y_at(view, rank);

        svg_line(view->out, (struct svg_point){LEFT, y}, (struct svg_point){x_at(view, last), y},
                 SVG_GREY, 0.8, SVG_SOLID);
        svg_text(view->out, (struct svg_point){LEFT - 10, y + 4.5}, view->row_height < 18 ? 9 : 13,
                 SVG_END, rank == 0 ? "rank %u" : "%u", rank);
    }
}

static void draw_head(FILE *out, const struct plan_args *args, double last)
{
    static const struct {
        enum svg_color fill;
        const char *text;
        double width;
    } keys[] = {{SVG_BLUE, "send overhead (round)", 190},
                {SVG_ORANGE, "receive overhead", 160},
                {SVG_GREEN, "copy or reduction", 160}};
    enum plan_model which = plan_which(args);
    char title[160], size[24];
    double x = LEFT;

    plan_title(args, title, sizeof(title));
    plan_size_text(args->sizes[0], size);
    svg_bold(out, (struct svg_point){LEFT, 32}, 18, SVG_START, "%s", title);
    svg_text(out, (struct svg_point){LEFT, 54}, 12, SVG_START,
             "%s; the last rank is done after %.6g us; modelled (%s); parameters: %s", size, last,
             plan_model_name(which), args->model_source);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        svg_rect(out, x, 68, 18, 14, keys[i].fill);
        svg_text(out, (struct svg_point){x + 25, 80}, 12, SVG_START, "%s", keys[i].text);
        x += keys[i].width;
    }
    svg_arrow(out, (struct svg_point){x, 75}, (struct svg_point){x + 26, 75}, SVG_GREY);
    svg_text(out, (struct svg_point){x + 33, 80}, 12, SVG_START, "message");
}

static void draw(const struct plan_args *args, FILE *out, const struct bars *all, double last)
{
    double row_height = args->plan.ranks <= 16 ? 44 : args->plan.ranks <= 32 ? 26 : 18;
    struct view view = {out, &args->plan, row_height, CHART_WIDTH / (last > 0 ? last : 1)};
    double right = args->plan.nodes != NULL ? NODE_NAME : RIGHT;
    char title[160];

    plan_title(args, title, sizeof(title));
    svg_begin(out, LEFT + CHART_WIDTH + right, TOP + args->plan.ranks * row_height + BOTTOM, title);
    draw_head(out, args, last);
    draw_bands(&view);
    draw_frame(&view, args, last);
    draw_messages(&view, all);
    draw_bars(&view, all);
    svg_end(out);
}

static int draw_time(const struct plan_args *args, FILE *out)
{
    struct bars all = {NULL, 0, 0, false};
    enum plan_model which = plan_which(args);
    struct ibshift_model model = plan_model_of(args, which);
    struct ibshift_price_request request = plan_request(args, plan_hosts_of(args));
    struct ibshift_price price;
    int rc;

    request.model = &model;
    request.crowd = NULL; /* each bar as long as the rank would take alone */
    request.window = request.piece = 0;
    request.limit = 1 << 16;
    request.seen = collect;
    request.context = &all;
    rc = ibshift_price(&request, &price);
    if (rc == 0 && !all.is_out_of_memory) {
        draw(args, out, &all, price.last);
    }
    free(all.bars);
    if (rc == 0 && !all.is_out_of_memory) {
        return CLI_OK;
    }
    cli_error(args->command, "%s",
              rc == -E2BIG     ? "too many messages for a picture"
              : rc == -EDEADLK ? "the plan does not end: ibshift plan check"
                               : "out of memory");
    return CLI_FAILED;
}

enum { RANKS_MOST = 64 };

int plan_draw(struct plan_args *args)
{
    FILE *out;

    if (args->plan.ranks > RANKS_MOST) {
        cli_error(args->command, "%u ranks are too many for a picture: at most %d",
                  args->plan.ranks, RANKS_MOST);
        return CLI_UNFIT;
    }
    out = plan_open(args);
    return out == NULL ? CLI_USAGE
                       : plan_close(args, (args->picture == PLAN_TIME ? draw_time
                                                                      : plan_draw_data)(args, out));
}
