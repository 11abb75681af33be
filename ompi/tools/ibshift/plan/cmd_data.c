/* The picture of the data: what each rank's buffers hold before and after each round, as text or as SVG. */
#include "plan/cmd.h"

#include <errno.h>
#include <string.h>

#include "draw/svg.h"
#include "plan/data.h"
#include "plan/print.h"

enum { CELL_TEXT = 16, STAGES_MAX = 256 };

static const double CELL_HEIGHT = 20, LEFT = 24, TOP = 92, ROW_LABEL = 52, PANEL_GAP = 28,
                    SECTION_GAP = 8, SHEET_WIDTH = 1240;

static bool is_reduction(const struct plan_args *args)
{
    return args->alg->collective >= IBSHIFT_REDUCE;
}

/* Bits side by side; there is one at least. */
static bool is_one_run(uint64_t bits)
{
    uint64_t low = bits >> __builtin_ctzll(bits);

    return (low & (low + 1)) == 0;
}

/* The ranks whose contribution it has: 0-3, 1+5, around the end 4-1, or how many. */
static void contributions(uint64_t from, uint32_t ranks, char *text)
{
    uint64_t missing = ~from & UINT64_MAX >> (64 - ranks);
    int first = __builtin_ctzll(from), count = __builtin_popcountll(from);
    int last = 63 - __builtin_clzll(from);

    if (count == 1) {
        snprintf(text, CELL_TEXT, "%d", first);
    } else if (count == last - first + 1) {
        snprintf(text, CELL_TEXT, "%d-%d", first, last);
    } else if (count == 2) {
        snprintf(text, CELL_TEXT, "%d+%d", first, last);
    } else if (is_one_run(missing)) {
        snprintf(text, CELL_TEXT, "%d-%d", 64 - __builtin_clzll(missing),
                 __builtin_ctzll(missing) - 1);
    } else {
        snprintf(text, CELL_TEXT, "(%d)", count);
    }
}

static void cell_text(const struct plan_args *args, const struct plan_cell *cell, char *text)
{
    if (cell->from == 0) {
        text[0] = '\0';
    } else if (is_reduction(args)) {
        contributions(cell->from, args->plan.ranks, text);
    } else if (args->alg->collective == IBSHIFT_ALLTOALL) {
        snprintf(text, CELL_TEXT, "%d>%u", __builtin_ctzll(cell->from), cell->block);
    } else {
        snprintf(text, CELL_TEXT, "%u", cell->block);
    }
}

static uint32_t rows_of(const struct plan_data *data, int buffer)
{
    uint32_t most = 0;

    for (uint32_t rank = 0; rank < data->plan->ranks; rank++) {
        uint32_t count = data->buffers[rank][buffer].count;

        most = count > most ? count : most;
    }
    return most;
}

/* SEND never changes: it is shown once, and always only where it is what is handed out. */
static bool is_shown(const struct plan_data *data, int buffer)
{
    return rows_of(data, buffer) > 0 &&
           (buffer != IBSHIFT_SEND || data->stage == 0 || data->alg->collective == IBSHIFT_SCATTER);
}

/* What is always shown comes first, so that the panels are in line. */
static int nth_buffer(const struct plan_data *data, int n)
{
    return data->alg->collective == IBSHIFT_SCATTER ? n : (n + 1) % IBSHIFT_BUFFERS;
}

static void stage_title(const struct plan_data *data, char *text, size_t size)
{
    if (data->stage == 0) {
        snprintf(text, size, "before");
    } else if (data->messages > 0) {
        snprintf(text, size, "after round %u", data->next_tag);
    } else {
        snprintf(text, size, "after copies");
    }
}

static void text_row(const struct plan_args *args, const struct plan_data *data, FILE *out,
                     int buffer, uint32_t row)
{
    int skipped = 0;

    fprintf(out, "%4s %3u ", ibshift_buffer_name((enum ibshift_buffer)buffer), row);
    for (uint32_t rank = 0; rank < data->plan->ranks; rank++) {
        const struct plan_buffer *b = &data->buffers[rank][buffer];
        char text[CELL_TEXT + 2];

        if (row < b->count) {
            cell_text(args, &b->cells[row], text);
            if (text[0] == '\0') {
                strcpy(text, ".");
            } else if (data->stage > 0 && b->cells[row].stage == data->stage) {
                strcat(text, "*");
            }
        }
        if (row < b->count) {
            fprintf(out, " %*s", 5 + 6 * skipped, text);
            skipped = 0;
        } else {
            skipped++;
        }
    }
    fputc('\n', out);
}

static void text_stage(const struct plan_args *args, const struct plan_data *data, FILE *out)
{
    char title[40];

    stage_title(data, title, sizeof(title));
    fprintf(out, "\n%s", title);
    if (data->messages > 0) {
        fprintf(out, ": %u message%s", data->messages, data->messages == 1 ? "" : "s");
    }
    fputs("\n    rank ", out);
    for (uint32_t rank = 0; rank < data->plan->ranks; rank++) {
        fprintf(out, " %5u", rank);
    }
    fputc('\n', out);
    for (int n = 0; n < IBSHIFT_BUFFERS; n++) {
        int buffer = nth_buffer(data, n);

        for (uint32_t row = 0; is_shown(data, buffer) && row < rows_of(data, buffer); row++) {
            text_row(args, data, out, buffer, row);
        }
    }
}

/* Where the next panel goes. */
struct sheet {
    FILE *out; /* NULL: only measure */
    double x, y, row_height, width, cell_width;
};

static double panel_height(const struct plan_data *data)
{
    double height = 2 * CELL_HEIGHT + 16;

    for (int buffer = 0; buffer < IBSHIFT_BUFFERS; buffer++) {
        if (is_shown(data, buffer)) {
            height += rows_of(data, buffer) * CELL_HEIGHT + SECTION_GAP;
        }
    }
    return height;
}

static void draw_cell(const struct plan_args *args, const struct plan_data *data, FILE *out,
                      const struct plan_cell *cell, struct svg_point at, double width)
{
    bool is_new = data->stage > 0 && cell->stage == data->stage && cell->from != 0;
    enum svg_color fill = cell->from == 0 ? SVG_WHITE : is_new ? SVG_ORANGE : SVG_PALE;
    char text[CELL_TEXT];

    svg_rect(out, at.x, at.y, width, CELL_HEIGHT, fill);
    svg_frame(out, at.x, at.y, width, CELL_HEIGHT, SVG_GREY);
    cell_text(args, cell, text);
    if (text[0] != '\0') {
        svg_label_on(out, (struct svg_point){at.x + width / 2, at.y + 14.5}, 12, fill, "%s", text);
    }
}

static double draw_section(const struct plan_args *args, const struct plan_data *data,
                           const struct sheet *sheet, int buffer, double y)
{
    uint32_t rows = rows_of(data, buffer);

    svg_text(sheet->out, (struct svg_point){sheet->x + ROW_LABEL - 8, y + 14.5}, 12, SVG_END, "%s",
             ibshift_buffer_name((enum ibshift_buffer)buffer));
    for (uint32_t rank = 0; rank < data->plan->ranks; rank++) {
        const struct plan_buffer *b = &data->buffers[rank][buffer];

        for (uint32_t row = 0; row < b->count; row++) {
            struct svg_point at = {sheet->x + ROW_LABEL + rank * sheet->cell_width,
                                   y + row * CELL_HEIGHT};

            draw_cell(args, data, sheet->out, &b->cells[row], at, sheet->cell_width);
        }
    }
    return y + rows * CELL_HEIGHT + SECTION_GAP;
}

static void draw_panel(const struct plan_args *args, const struct plan_data *data,
                       const struct sheet *sheet)
{
    double y = sheet->y + 2 * CELL_HEIGHT;
    char title[40];

    stage_title(data, title, sizeof(title));
    svg_bold(sheet->out, (struct svg_point){sheet->x + ROW_LABEL, sheet->y + 12}, 14, SVG_START,
             "%s", title);
    svg_text(sheet->out, (struct svg_point){sheet->x + ROW_LABEL - 8, y - 6}, 12, SVG_END, "rank");
    for (uint32_t rank = 0; rank < data->plan->ranks; rank++) {
        double x = sheet->x + ROW_LABEL + (rank + 0.5) * sheet->cell_width;

        svg_bold(sheet->out, (struct svg_point){x, y - 6}, 12, SVG_MIDDLE, "%u", rank);
    }
    for (int n = 0; n < IBSHIFT_BUFFERS; n++) {
        int buffer = nth_buffer(data, n);

        if (is_shown(data, buffer)) {
            y = draw_section(args, data, sheet, buffer, y);
        }
    }
}

static void place_panel(const struct plan_args *args, const struct plan_data *data,
                        struct sheet *sheet)
{
    double width = ROW_LABEL + data->plan->ranks * sheet->cell_width, height = panel_height(data);

    if (sheet->x > LEFT && sheet->x + width > SHEET_WIDTH) {
        sheet->x = LEFT;
        sheet->y += sheet->row_height + 14;
        sheet->row_height = 0;
    }
    if (sheet->out != NULL) {
        draw_panel(args, data, sheet);
    }
    sheet->row_height = height > sheet->row_height ? height : sheet->row_height;
    sheet->width = sheet->x + width > sheet->width ? sheet->x + width : sheet->width;
    sheet->x += width + PANEL_GAP;
}

/* All stages, each into the sheet or, without one, as text. */
static int walk_stages(const struct plan_args *args, FILE *text, struct sheet *sheet)
{
    struct plan_data data;
    int rc = plan_data_begin(&data, args->alg, &args->plan), stages = 0;

    while (rc >= 0 && stages++ < STAGES_MAX) {
        if (sheet != NULL) {
            place_panel(args, &data, sheet);
        } else {
            text_stage(args, &data, text);
        }
        rc = plan_data_step(&data);
        if (rc <= 0) {
            break;
        }
    }
    plan_data_end(&data);
    return rc < 0 ? rc : 0;
}

static double cell_width(const struct plan_args *args)
{
    bool is_long = args->alg->collective == IBSHIFT_ALLTOALL || is_reduction(args);

    return is_long ? args->plan.ranks > 10 ? 50 : 36 : 24;
}

static void draw_legend(FILE *out, double y)
{
    static const struct {
        enum svg_color fill;
        const char *text;
        double width;
    } keys[] = {{SVG_ORANGE, "came in this round", 170},
                {SVG_PALE, "was there before", 160},
                {SVG_WHITE, "nothing yet", 120}};
    double x = LEFT + ROW_LABEL;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        svg_rect(out, x, y, 18, 14, keys[i].fill);
        svg_frame(out, x, y, 18, 14, SVG_GREY);
        svg_text(out, (struct svg_point){x + 25, y + 12}, 12, SVG_START, "%s", keys[i].text);
        x += keys[i].width;
    }
}

static const char *cell_meaning(const struct plan_args *args)
{
    return is_reduction(args)
               ? "a cell: the ranks whose contribution it holds, (n) for n scattered ones"
           : args->alg->collective == IBSHIFT_ALLTOALL ? "a cell: source > destination"
                                                       : "a cell: the number of the block";
}

static int draw_svg(const struct plan_args *args, FILE *out)
{
    struct sheet measure = {.x = LEFT, .y = TOP, .cell_width = cell_width(args)}, sheet = measure;
    char title[160];
    int rc = walk_stages(args, NULL, &measure);

    if (rc != 0) {
        return rc;
    }
    plan_title(args, title, sizeof(title));
    svg_begin(out, measure.width + LEFT < 560 ? 560 : measure.width + LEFT,
              measure.y + measure.row_height + 8, title);
    svg_bold(out, (struct svg_point){LEFT + ROW_LABEL, 34}, 18, SVG_START, "%s", title);
    svg_text(out, (struct svg_point){LEFT + ROW_LABEL, 54}, 12, SVG_START, "%s",
             cell_meaning(args));
    draw_legend(out, 62);
    sheet.out = out;
    rc = walk_stages(args, NULL, &sheet);
    svg_end(out);
    return rc;
}

int plan_draw_data(const struct plan_args *args, FILE *out)
{
    char title[160];
    int rc;

    if (args->format == PLAN_SVG) {
        rc = draw_svg(args, out);
    } else {
        plan_title(args, title, sizeof(title));
        fprintf(out, "%s\n%s; * came in this round\n", title, cell_meaning(args));
        rc = walk_stages(args, out, NULL);
    }
    if (rc == 0) {
        return CLI_OK;
    }
    cli_error(args->command, "%s",
              rc == -ENOMEM ? "out of memory" : "the plan does not end: ibshift plan check");
    return CLI_FAILED;
}
