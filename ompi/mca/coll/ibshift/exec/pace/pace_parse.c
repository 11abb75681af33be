/* A pace in words. */
#include "exec/pace/pace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[IBSHIFT_PACES] = {"none", "window", "grants", "clk", "rate"};

enum { PART_MAX = 1000 };

void ibshift_pace_default(struct ibshift_pace *pace, enum ibshift_pace_kind kind)
{
    static const uint32_t windows[IBSHIFT_PACES] = {[IBSHIFT_PACE_NONE] = 1,
                                                    [IBSHIFT_PACE_WINDOW] = 32,
                                                    [IBSHIFT_PACE_GRANTS] = 1,
                                                    [IBSHIFT_PACE_CLK] = 1,
                                                    [IBSHIFT_PACE_RATE] = 16};

    *pace = (struct ibshift_pace){.kind = kind,
                                  .grants = kind == IBSHIFT_PACE_RATE ? 16 : 1,
                                  .window = windows[kind],
                                  .is_gated = true,
                                  .stretch = 110,
                                  .lead = 20,
                                  .limit = 40,
                                  .make_up = 2,
                                  .part = 16};
}

/* A number up to most at *text, which goes on behind it. */
static int take_number(const char **text, uint32_t most, uint32_t *number)
{
    char *end;
    unsigned long value;

    if (**text < '0' || **text > '9') {
        return -EINVAL;
    }
    value = strtoul(*text, &end, 10);
    if (value < 1 || value > most) {
        return -EINVAL;
    }
    *text = end;
    *number = (uint32_t)value;
    return 0;
}

static int take_numbers(const char *text, struct ibshift_pace *pace)
{
    int rc = 0;

    switch (pace->kind) {
    case IBSHIFT_PACE_WINDOW:
        rc = take_number(&text, IBSHIFT_WINDOW_MAX, &pace->window);
        break;
    case IBSHIFT_PACE_GRANTS:
        rc = take_number(&text, IBSHIFT_PACE_GRANTS_MAX, &pace->grants);
        pace->window = pace->grants;
        break;
    case IBSHIFT_PACE_RATE:
        rc = take_number(&text, IBSHIFT_PACE_GRANTS_MAX, &pace->grants);
        pace->window = pace->part = pace->grants;
        if (rc == 0 && *text == '/') {
            text++;
            rc = take_number(&text, PART_MAX, &pace->part);
        }
        break;
    default:
        rc = -EINVAL;
    }
    return rc == 0 && *text == '\0' ? 0 : -EINVAL;
}

int ibshift_pace_parse(const char *text, struct ibshift_pace *pace, char *why, size_t size)
{
    size_t length = strcspn(text, ":");

    for (int kind = 0; kind < IBSHIFT_PACES; kind++) {
        if (strlen(names[kind]) != length || strncmp(names[kind], text, length) != 0) {
            continue;
        }
        ibshift_pace_default(pace, (enum ibshift_pace_kind)kind);
        if (text[length] == '\0' || take_numbers(text + length + 1, pace) == 0) {
            return 0;
        }
    }
    snprintf(why, size,
             "\"%s\" is no pace: none, window[:1-%d], grants[:1-%d], clk, or "
             "rate[:1-%d[/1-%d]]",
             text, IBSHIFT_WINDOW_MAX, IBSHIFT_PACE_GRANTS_MAX, IBSHIFT_PACE_GRANTS_MAX, PART_MAX);
    return -EINVAL;
}

void ibshift_pace_format(const struct ibshift_pace *pace, char *text, size_t size)
{
    const char *name = names[pace->kind];

    switch (pace->kind) {
    case IBSHIFT_PACE_WINDOW:
        snprintf(text, size, "%s:%u", name, pace->window);
        break;
    case IBSHIFT_PACE_GRANTS:
        snprintf(text, size, "%s:%u", name, pace->grants);
        break;
    case IBSHIFT_PACE_RATE:
        snprintf(text, size, "%s:%u/%u", name, pace->grants, pace->part);
        break;
    default:
        snprintf(text, size, "%s", name);
    }
}
