#include "tune/tune.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/svg.h"
#include "options.h"

enum { ROWS = 6, PATH = 4096, LABEL = 48, CURVE = 64, TITLE = 2 * TUNE_TEXT };

/* The rows of as many messages, by their bytes. */
struct row {
    uint32_t messages;
    int count;
    double bytes[TUNE_PROBES], measured[TUNE_PROBES];
    int curve; /* points of the fitted one */
    double at[CURVE], modelled[CURVE];
    char label[LABEL];
};

static struct row *row_of(struct row *rows, int *count, uint32_t messages)
{
    for (int i = 0; i < *count; i++) {
        if (rows[i].messages == messages) {
            return &rows[i];
        }
    }
    if (*count == ROWS) {
        return NULL;
    }
    rows[*count] = (struct row){.messages = messages};
    snprintf(rows[*count].label, LABEL, "%u in a row", messages);
    return &rows[(*count)++];
}

/* Between the first and the last of the row. */
static void price_curve(struct row *row, const struct ibshift_model *model)
{
    double low = row->bytes[0], high = low;

    for (int i = 1; i < row->count; i++) {
        low = fmin(low, row->bytes[i]);
        high = fmax(high, row->bytes[i]);
    }
    for (int i = 0; i < CURVE; i++) {
        uint64_t bytes = (uint64_t)(low * pow(high / low, (double)i / (CURVE - 1)) + 0.5);
        struct tune_probe probe = {TUNE_STREAM, row->messages, bytes};

        row->at[i] = (double)bytes;
        row->modelled[i] = tune_price(&probe, model);
    }
    row->curve = CURVE;
}

static int gather(const struct tune_level_found *level, struct row *rows)
{
    double weight, spread;
    int count = 0;

    for (int i = 0; i < level->points.count; i++) {
        const struct tune_probe *probe = &level->points.probes[i];
        struct row *row = probe->kind == TUNE_STREAM ? row_of(rows, &count, probe->count) : NULL;

        if (row != NULL) {
            row->bytes[row->count] = (double)probe->bytes;
            row->measured[row->count++] = tune_least(&level->points, i, &weight, &spread);
        }
    }
    for (int i = 0; i < count; i++) {
        price_curve(&rows[i], &level->model);
    }
    return count;
}

static void draw(FILE *out, const char *name, const struct tune_level_found *level)
{
    static const enum svg_color colors[ROWS] = {SVG_BLUE,   SVG_VERMILION, SVG_GREEN,
                                                SVG_ORANGE, SVG_PURPLE,    SVG_SKY};
    struct row rows[ROWS];
    struct chart_series series[2 * ROWS];
    char subtitle[TITLE];
    int count = gather(level, rows);
    struct chart chart = {.title = "Messages in a row and an answer",
                          .subtitle = subtitle,
                          .x_title = "bytes of each",
                          .y_title = "us",
                          .is_log = 1,
                          .series = series,
                          .series_count = 2 * count};

    snprintf(subtitle, sizeof(subtitle),
             "%s, %s: dots measured, lines as the parameters price it, off by %.1f %%", name,
             level->how, level->error * 100);
    for (int i = 0; i < count; i++) {
        const struct row *row = &rows[i];

        series[2 * i] = (struct chart_series){.label = row->label,
                                              .color = colors[i],
                                              .count = row->curve,
                                              .x = row->at,
                                              .y = row->modelled};
        series[2 * i + 1] = (struct chart_series){.color = colors[i],
                                                  .count = row->count,
                                                  .x = row->bytes,
                                                  .y = row->measured,
                                                  .has_dots = 1};
    }
    chart_write(out, &chart);
}

static int draw_into(const char *path, const char *name, const struct tune_level_found *level)
{
    struct output out;
    int rc = cli_output_open("tune", path, &out);

    if (rc == CLI_OK) {
        draw(out.file, name, level);
        rc = cli_output_close("tune", path, &out, rc);
    }
    return rc;
}

int tune_plot(const char *path, const struct tune_found *found)
{
    const char *dot = strrchr(path, '.');
    size_t stem = dot != NULL && strchr(dot, '/') == NULL ? (size_t)(dot - path) : strlen(path);
    char other[PATH];
    int drawn = 0, rc = CLI_OK;

    for (int level = 0; level < TUNE_LEVELS && rc == CLI_OK; level++) {
        if (!found->level[level].is_there) {
            continue;
        }
        if ((size_t)snprintf(other, sizeof(other), "%.*s-%s%s", (int)stem, path,
                             tune_level_names[level], path + stem) >= sizeof(other)) {
            return cli_error("tune", "%s: %s", path, strerror(ENAMETOOLONG));
        }
        rc = draw_into(drawn++ == 0 ? path : other, tune_level_names[level], &found->level[level]);
    }
    return rc;
}
