/* A pace in words, and the choice of one. */
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
                                  .catch_up = 2,
                                  .part = 16};
}

/* A number from least to most at *text, which goes on behind it. */
static int take_number(const char **text, uint32_t least, uint32_t most, uint32_t *number)
{
    char *end;
    unsigned long value;

    if (**text < '0' || **text > '9') {
        return -EINVAL;
    }
    value = strtoul(*text, &end, 10);
    if (value < least || value > most) {
        return -EINVAL;
    }
    *text = end;
    *number = (uint32_t)value;
    return 0;
}

/* What may follow: a slash and a number. */
static int take_second(const char **text, uint32_t least, uint32_t most, uint32_t *number)
{
    if (**text != '/') {
        return 0;
    }
    ++*text;
    return take_number(text, least, most, number);
}

static int take_numbers(const char *text, struct ibshift_pace *pace)
{
    int rc = 0;

    switch (pace->kind) {
    case IBSHIFT_PACE_WINDOW:
        rc = take_number(&text, 1, IBSHIFT_WINDOW_MAX, &pace->window);
        rc = rc == 0 ? take_second(&text, IBSHIFT_PIECE_MIN, IBSHIFT_PIECE_MAX, &pace->piece) : rc;
        break;
    case IBSHIFT_PACE_GRANTS:
        rc = take_number(&text, 1, IBSHIFT_PACE_GRANTS_MAX, &pace->grants);
        pace->window = pace->grants;
        break;
    case IBSHIFT_PACE_RATE:
        rc = take_number(&text, 1, IBSHIFT_PACE_GRANTS_MAX, &pace->grants);
        pace->window = pace->part = pace->grants;
        rc = rc == 0 ? take_second(&text, 1, PART_MAX, &pace->part) : rc;
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
             "\"%s\" is no pace: none, window[:1-%d[/%d-%d]], grants[:1-%d], clk, or "
             "rate[:1-%d[/1-%d]]",
             text, IBSHIFT_WINDOW_MAX, IBSHIFT_PIECE_MIN, IBSHIFT_PIECE_MAX,
             IBSHIFT_PACE_GRANTS_MAX, IBSHIFT_PACE_GRANTS_MAX, PART_MAX);
    return -EINVAL;
}

void ibshift_pace_format(const struct ibshift_pace *pace, char *text, size_t size)
{
    const char *name = names[pace->kind];
    int used;

    switch (pace->kind) {
    case IBSHIFT_PACE_WINDOW:
        used = snprintf(text, size, "%s:%u", name, pace->window);
        if (pace->piece > 0 && (size_t)used < size) {
            snprintf(text + used, size - (size_t)used, "/%u", pace->piece);
        }
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

/* Fewer other ranks than ALL_AT_ONCE: a message to each of them goes on its way at once. */
enum { SHORT_LATENCIES = 8, ALL_AT_ONCE = 64, WIDE = 48, WIDEST = 256 };

/*
 * Many messages in flight each way, taking turns packet by packet, forget a late rank by
 * themselves: in simulations they keep the bound as well as any pace, or better, under every noise
 * and on both models of a switch, without a clock, a barrier or a processor's attention
 * (docs/pacing.md). So the noise is not asked: it would change nothing. Where no order is known
 * that suits the routes, a window of some messages is the worst: it keeps an order that is none.
 */
void ibshift_pace_choose(const struct ibshift_pace_facts *facts, struct ibshift_pace *pace,
                         const char **reason)
{
    ibshift_pace_default(pace, IBSHIFT_PACE_NONE);
    if (!facts->has_free_steps) {
        *reason = "steps wait for one another";
    } else if (facts->bytes <= facts->eager || facts->time < SHORT_LATENCIES * facts->latency) {
        *reason = "short messages";
    } else if (facts->ranks <= 2) {
        *reason = "nobody is in the way of two";
    } else if (facts->all_hosts == 0) {
        ibshift_pace_default(pace, IBSHIFT_PACE_WINDOW);
        pace->window = facts->ranks <= WIDEST ? facts->ranks - 1 : WIDEST;
        *reason = "no routes are known, so no order helps: all at once";
    } else if (facts->ranks <= ALL_AT_ONCE) {
        ibshift_pace_default(pace, IBSHIFT_PACE_WINDOW);
        pace->window = facts->ranks - 1;
        *reason = "long messages, few ranks: all at once";
    } else {
        ibshift_pace_default(pace, IBSHIFT_PACE_WINDOW);
        pace->window = WIDE;
        *reason = "long messages, many at once forget who was late";
    }
}
