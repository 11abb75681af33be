/* `ibshift plan draw`: chooses the picture. */
#include "plan/cmd.h"

#include <string.h>

/* What the name of the file says, else a good default. */
static int guess_format(const struct plan_args *args)
{
    const char *dot = args->output != NULL ? strrchr(args->output, '.') : NULL;

    if (dot != NULL && strcmp(dot, ".svg") == 0) {
        return PLAN_SVG;
    }
    if (dot != NULL && (strcmp(dot, ".dot") == 0 || strcmp(dot, ".gv") == 0)) {
        return PLAN_DOT;
    }
    return args->picture == PLAN_DATA ? PLAN_TEXT : PLAN_SVG;
}

int plan_draw(struct plan_args *args)
{
    static const struct {
        const char *name;
        uint32_t most;
        unsigned formats;
        int (*draw)(const struct plan_args *args, FILE *out);
    } pictures[] = {
        [PLAN_DATA] = {"data", 64, 1u << PLAN_TEXT | 1u << PLAN_SVG, plan_draw_data},
        [PLAN_TIME] = {"time", 64, 1u << PLAN_SVG, plan_draw_time},
        [PLAN_TREE] = {"tree", 256, 1u << PLAN_SVG | 1u << PLAN_DOT, plan_draw_tree},
    };
    FILE *out;
    int rc, closed;

    if (args->plan.ranks > pictures[args->picture].most) {
        return cli_error(args->command, "%u ranks are too many for the picture '%s': at most %u",
                         args->plan.ranks, pictures[args->picture].name,
                         pictures[args->picture].most);
    }
    args->format = args->format < 0 ? guess_format(args) : args->format;
    if ((pictures[args->picture].formats & 1u << args->format) == 0) {
        return cli_error(args->command, "the picture '%s' is not drawn as %s",
                         pictures[args->picture].name,
                         args->format == PLAN_TEXT  ? "text"
                         : args->format == PLAN_DOT ? "dot"
                                                    : "svg");
    }
    out = plan_open(args);
    if (out == NULL) {
        return CLI_FAILED;
    }
    rc = pictures[args->picture].draw(args, out);
    closed = plan_close(args, out);
    return rc != CLI_OK ? rc : closed;
}
