/* `ibshift fabric draw`: the fabric as an SVG picture, cables coloured by what an all-to-all puts
 * on them. */
#include "fabric/cmd.h"
#include "fabric/paths/load.h"
#include "fabric/draw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void describe(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                     const struct ibshift_load *load, char *text, size_t size)
{
    int length = snprintf(text, size, "%u hosts, %u switches", f->host_count, f->switch_count);

    if (load->on != NULL && f->host_count > 1) {
        length += snprintf(text + length, size - (size_t)length,
                           "; an all-to-all takes at least %.3g times what the hosts' cables allow",
                           load->least);
    }
    if (shape->findings != 0 && shape->kind != IBSHIFT_SHAPE_OTHER) {
        snprintf(text + length, size - (size_t)length, "; broken in %u places", shape->findings);
    }
}

static int draw_into(const struct cli_args *args, const struct ibshift_fabric *f, FILE *out)
{
    struct ibshift_shape shape;
    struct ibshift_error err = {"no memory"};
    struct fabric_picture picture = {.f = f, .shape = &shape};
    struct ibshift_load load = {.on = NULL};
    char title[160], subtitle[256];
    int rc = ibshift_shape_find(f, &shape, &err);

    picture.at = calloc((size_t)f->switch_count + 1, sizeof(*picture.at));
    if (rc == 0 && f->lft != NULL) {
        rc = ibshift_load_find(f, &load, &err);
        picture.load = load.on;
    }
    if (rc == 0 && picture.at != NULL) {
        ibshift_shape_name(&shape, title, sizeof(title));
        describe(f, &shape, &load, subtitle, sizeof(subtitle));
        fabric_draw_place(&picture);
        fabric_draw_write(out, &picture, title, subtitle);
    } else {
        rc = fabric_args_fail(args, &err);
    }
    ibshift_shape_free(&shape);
    ibshift_load_free(&load);
    free(picture.at);
    return rc;
}

static int draw(const struct cli_args *args, struct ibshift_fabric *f)
{
    const char *path = *(const char **)args->context;
    FILE *out = path == NULL ? stdout : fopen(path, "w");
    int rc;

    if (out == NULL) {
        return cli_error(args->command, "%s: %s", path, strerror(errno));
    }
    rc = draw_into(args, f, out);
    if (path != NULL && fclose(out) != 0) {
        return cli_error(args->command, "%s: %s", path, strerror(errno));
    }
    return rc;
}

int cmd_fabric_draw(int argc, char **argv)
{
    const char *output = NULL;
    const struct cli_option options[] = {
        cli_output_option(&output, "where to write the SVG (default: standard output)"),
        {.name = NULL},
    };
    struct cli_args args = fabric_args("fabric draw", options, &output);

    return fabric_command(&args, argc, argv, draw);
}
