#include "tune/tune.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "choose/tuned.h"
#include "options.h"

static const double believed = 2e-3; /* nothing is measured better than that */
static const double nothing = 1e-7;  /* us, us per byte */

enum { FIELDS = offsetof(struct ibshift_model, free_messages) / sizeof(double) };

int tune_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The least of all passes. spread: how far the median of the passes is above it, in proportion;
 * weight: the more, the closer another pass came to it. */
static double least_of(const double *us, double *weight, double *spread)
{
    double sorted[TUNE_PASSES];

    memcpy(sorted, us, sizeof(sorted));
    qsort(sorted, TUNE_PASSES, sizeof(sorted[0]), tune_by_value);
    *weight = 1 / (believed + sorted[1] / sorted[0] - 1);
    *spread = sorted[TUNE_PASSES / 2] / sorted[0] - 1;
    return sorted[0];
}

static double least_in_passes(const struct tune_points *points, int probe, double *weight,
                              double *spread)
{
    double us[TUNE_PASSES];

    for (int pass = 0; pass < TUNE_PASSES; pass++) {
        us[pass] = points->us[pass][probe];
    }
    return least_of(us, weight, spread);
}

/* Four digits: more would be noise. What the search has left of nothing is nothing. */
static void tidy(struct ibshift_model *model)
{
    double *field = &model->latency;
    char text[32];

    for (int i = 0; i < FIELDS; i++) {
        snprintf(text, sizeof(text), "%.4g", field[i]);
        field[i] = field[i] < nothing ? 0 : strtod(text, NULL);
    }
}

/* The model keeps its w where none was measured. */
static void take_turn(const struct tune_level_found *level, double us, struct ibshift_model *model)
{
    if (level->points.is_shared) {
        model->wake = tune_turn(model, us);
    }
}

bool tune_found(struct tune_level_found *level, const struct ibshift_model *model)
{
    struct tune_point points[TUNE_PROBES];
    int count = level->points.count;
    double least = INFINITY, weight, spread, streams = 0;

    level->noise = 0;
    for (int i = 0; i < count; i++) {
        points[i].probe = level->points.probes[i];
        points[i].us = least_in_passes(&level->points, i, &points[i].weight, &spread);
        if (points[i].probe.kind == TUNE_STREAM) {
            level->noise += spread;
            streams++;
        }
    }
    if (level->points.is_shared) {
        least = least_of(level->points.shared, &weight, &spread);
        level->noise += spread;
        streams++;
    }
    level->noise /= fmax(streams, 1);
    level->model = *model;
    level->error = least > 0 ? tune_fit(points, count, level->is_moved, &level->model) : -1;
    if (level->error < 0) {
        return false;
    }
    take_turn(level, least, &level->model);
    tidy(&level->model);
    return true;
}

static void say_turn(FILE *out, const struct tune_level_found *level)
{
    double weight, spread, least;

    if (!level->points.is_shared) {
        fputs("# w is the typical one: the ranks could not share a processor.\n", out);
        return;
    }
    least = least_of(level->points.shared, &weight, &spread);
    fprintf(out,
            "# w: a message and its answer take %.4g us where both ranks share a processor, "
            "spread %.1f %%.\n",
            least, spread * 100);
}

static void say_points(FILE *out, const struct tune_level_found *level)
{
    static const char *const kinds[] = {
        [TUNE_POST] = "post", [TUNE_TAKE] = "take", [TUNE_STREAM] = "stream"};

    fprintf(out,
            "# Measured and modelled us of messages in a row; the fit is off by %.1f %% in the "
            "mean square, the noise is %.1f %%.\n",
            level->error * 100, level->noise * 100);
    for (int i = 0; i < level->points.count; i++) {
        const struct tune_probe *probe = &level->points.probes[i];
        double weight, spread, us = least_in_passes(&level->points, i, &weight, &spread);
        double price = tune_price(probe, &level->model);

        fprintf(out, "#   %-6s %3u x %6llu B %10.3f %10.3f  ratio %.3f  spread %.1f %%\n",
                kinds[probe->kind], probe->count, (unsigned long long)probe->bytes, us, price,
                us / price, spread * 100);
    }
}

static void say_level(FILE *out, const char *heading, const struct tune_level_found *level)
{
    char text[1024];

    if (!level->is_there) {
        fprintf(out, "\n# %s was not measured: %s.\n", heading, level->how);
        return;
    }
    (void)ibshift_model_format(&level->model, text, sizeof(text));
    fprintf(out, "\n%s # %s\n%s", heading, level->how, text);
    say_turn(out, level);
    say_points(out, level);
}

char *tune_report(const struct tune_found *found)
{
    struct ibshift_costs costs = {.made = found->made};
    char *text = NULL, made[8 * IBSHIFT_MADE_TEXT];
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL) {
        return NULL;
    }
    (void)ibshift_costs_format(&costs, made, sizeof(made));
    fprintf(out, "# Costs of messages, measured by ibshift tune %s.\n%s", IBSHIFT_VERSION, made);
    say_level(out, "[fabric]", &found->level[TUNE_FABRIC]);
    say_level(out, "[node]", &found->level[TUNE_NODE]);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- where it goes ---- */

enum { PATH = 4096 };

static const double too_noisy = 0.15;

const char *const tune_level_names[] = {[TUNE_FABRIC] = "fabric", [TUNE_NODE] = "node"};

/* The file that jobs find; false: a line says why there is no such place. */
static bool installed(const struct tune_target *to, const struct ibshift_made *made, char *path,
                      size_t size)
{
    const char *site = getenv("OMPI_MCA_coll_ibshift_site");
    char folder[PATH], name[4 * IBSHIFT_MADE_TEXT];

    snprintf(folder, sizeof(folder), "%s", site != NULL && site[0] != '\0' ? site : "/etc/ibshift");
    if (to->install == TUNE_INSTALL_USER && !ibshift_tuned_folder(folder, sizeof(folder))) {
        cli_error("tune", "--install user: HOME is not set, so there is no folder ~/.ibshift");
        return false;
    }
    if (mkdir(folder, 0755) != 0 && errno != EEXIST) {
        cli_error("tune", "--install: cannot make %s: %s", folder, strerror(errno));
        return false;
    }
    ibshift_tuned_name(made, name, sizeof(name));
    return (size_t)snprintf(path, size, "%s/%s", folder, name) < size;
}

static int put(const char *path, const char *text)
{
    struct output out;
    int rc = cli_output_open("tune", path, &out);

    if (rc == CLI_OK) {
        (void)fputs(text, out.file);
        rc = cli_output_close("tune", path, &out, rc);
    }
    if (rc == CLI_OK && strcmp(path, "-") != 0) {
        fprintf(stderr, "ibshift tune: written: %s\n", path);
    }
    return rc;
}

/* What was measured in a minute goes to one place though the other takes no file. */
static int deliver(const struct tune_target *to, const struct tune_found *found)
{
    char *text = tune_report(found), path[2 * PATH];
    int rc = CLI_OK;

    if (text == NULL) {
        cli_error("tune", "out of memory");
        return CLI_FAILED;
    }
    if (to->output != NULL || to->install == TUNE_INSTALL_NOT) {
        rc = put(to->output != NULL ? to->output : "-", text);
    }
    if (to->install != TUNE_INSTALL_NOT &&
        (!installed(to, &found->made, path, sizeof(path)) || put(path, text) != CLI_OK)) {
        rc = CLI_USAGE;
    }
    free(text);
    return rc;
}

int tune_check_place(const struct tune_target *to, const struct ibshift_made *made)
{
    char path[2 * PATH];

    if (to->install == TUNE_INSTALL_NOT) {
        return CLI_OK;
    }
    return installed(to, made, path, sizeof(path)) ? cli_check_output("tune", path) : CLI_USAGE;
}

int tune_judge(const struct tune_target *to, struct tune_found *found, struct ibshift_model *local)
{
    bool is_noisy = false, is_any = false;

    for (int level = 0; level < TUNE_LEVELS; level++) {
        struct tune_level_found *one = &found->level[level];

        if (!one->is_there) {
            fprintf(stderr, "ibshift tune: %s is not measured: %s\n", tune_level_names[level],
                    one->how);
            continue;
        }
        is_any = true;
        local->at_once = (double)one->eager;
        local->wake = level == TUNE_NODE ? ibshift_model_node.wake
                      : one->is_moved    ? ibshift_model_software.wake
                                         : ibshift_model_typical.wake;
        if (!tune_found(one, local)) {
            cli_error("tune", "%s: the times make no sense; is the machine busy?",
                      tune_level_names[level]);
            return CLI_FAILED;
        }
        if (one->noise > too_noisy) {
            is_noisy = true;
            fprintf(stderr,
                    "ibshift tune: %s: too noisy: the passes differ by %.0f %%. Leave the machine "
                    "alone, or measure longer (--time)%s\n",
                    tune_level_names[level], one->noise * 100,
                    to->is_forced ? "" : "; nothing is written (--force writes all the same)");
        }
    }
    if (!is_any) {
        cli_error("tune", "no level could be measured: start at least two ranks, on one host or on "
                          "hosts with an adapter; ranks that have a partner said above what is "
                          "missing");
        return CLI_UNFIT;
    }
    return is_noisy && !to->is_forced ? CLI_FAILED : deliver(to, found);
}
