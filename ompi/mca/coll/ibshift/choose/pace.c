/* A pace in words, and the choice of one. */
#include "choose/pace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/nodes.h"
#include "plan/walk.h"

static const char *const names[IBSHIFT_PACES] = {"none", "window"};

void ibshift_pace_default(struct ibshift_pace *pace, enum ibshift_pace_kind kind)
{
    *pace = (struct ibshift_pace){.kind = kind, .window = 32};
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

static int take_numbers(const char *text, struct ibshift_pace *pace)
{
    int rc = pace->kind == IBSHIFT_PACE_WINDOW
                 ? take_number(&text, 1, IBSHIFT_WINDOW_MAX, &pace->window)
                 : -EINVAL;

    if (rc == 0 && *text == '/') {
        text++;
        rc = take_number(&text, IBSHIFT_PIECE_MIN, IBSHIFT_PIECE_MAX, &pace->piece);
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
    snprintf(why, size, "\"%s\" is not a pace: auto, none or window[:1-%d[/%d-%d]]", text,
             IBSHIFT_WINDOW_MAX, IBSHIFT_PIECE_MIN, IBSHIFT_PIECE_MAX);
    return -EINVAL;
}

void ibshift_pace_format(const struct ibshift_pace *pace, char *text, size_t size)
{
    const char *name = names[pace->kind];

    if (pace->kind != IBSHIFT_PACE_WINDOW) {
        snprintf(text, size, "%s", name);
    } else if (pace->piece > 0) {
        snprintf(text, size, "%s:%u/%u", name, pace->window, pace->piece);
    } else {
        snprintf(text, size, "%s:%u", name, pace->window);
    }
}

enum {
    IN_ORDER = 16,      /* messages of a host in flight where the fabric's order is kept: fewer are
                      neither mixed nor in step, */
    IN_ORDER_MOST = 48, /* and more lose the order again */
    WHOLE_IN_ORDER = 8, /* whole ones: the adapter's turns may be long */
    RANK_LEAST = 4,
    UNORDERED_MOST = 256,
    PIECE = IBSHIFT_PACE_BYTES / IN_ORDER,
    SMALL_PIECE = 2048, /* a packet: bursts make no difference */
    LARGE_PIECE = 16384,
    POSTED = 300,    /* ns between a rank's pieces, or its work for one if that is more */
    ROUND_TRIPS = 3, /* of a piece, that the bytes in flight cover at the link's rate */
    RING_LOOSE = 4,  /* longer rings of a torus take larger pieces badly, */
    IN_RINGS = 24,   /* and take more messages if the hosts' own cables are their limit, */
    WHOLE = 950,     /* which is so from this share on, in thousandths */
};

/* As many messages of a host as keep its link busy, at a piece a time, while a completion is seen.
 */
static uint32_t needed(const struct ibshift_pace_facts *facts, double time)
{
    double messages = time > 0 ? ROUND_TRIPS * (2 * facts->latency + time) / time : 0;

    return messages < UNORDERED_MOST ? (uint32_t)messages + 1 : UNORDERED_MOST;
}

/*
 * With messages to all ranks in flight, few of a host, a piece is as large as lets the pieces of the
 * others cover round trips without it; 0, whole messages, where that is all of one.
 */
static uint32_t busy_piece(const struct ibshift_pace_facts *facts, uint32_t window, uint32_t piece)
{
    uint32_t others = window * (facts->on_host > 0 ? facts->on_host : 1) - 1;

    while (piece > 0 && facts->kib > 0 &&
           others * facts->kib * piece / 1024 < ROUND_TRIPS * 2 * facts->latency) {
        piece *= 2;
        if (piece > IBSHIFT_PIECE_MAX || (facts->bytes != 0 && piece >= facts->bytes)) {
            return 0;
        }
    }
    return piece;
}

/* Of a KiB, in ns: where the routes leave hosts a part of their rate, there is as much more time. */
static double kib_time(const struct ibshift_pace_facts *facts)
{
    return facts->share > 0 ? facts->kib * 1000 / facts->share : facts->kib;
}

/* No smaller than the processors of a host can post at its rate; 0, whole messages: none is large enough. */
static uint32_t posted_piece(const struct ibshift_pace_facts *facts, uint32_t piece)
{
    double posts = facts->on_host > 0 ? facts->on_host : 1;

    while (facts->kib > 0 && facts->post > posts * kib_time(facts) * piece / 1024) {
        piece *= 2;
        if (piece > LARGE_PIECE) {
            return 0;
        }
    }
    return piece;
}

/* Who posts a piece as soon as the one before is gone. */
static bool can_post(const struct ibshift_pace_facts *facts)
{
    return facts->is_attended && posted_piece(facts, PIECE) > 0;
}

/* Whole messages of adapters that may take long turns: half as many as elsewhere, unless the link
 * sends more in three round trips. */
static uint32_t whole_window(const struct ibshift_pace_facts *facts)
{
    uint32_t bytes = facts->bytes < UINT32_MAX ? (uint32_t)facts->bytes : UINT32_MAX;
    uint32_t window = needed(facts, facts->kib * bytes / 1024);

    window = window < IN_ORDER ? window : IN_ORDER;
    return window > WHOLE_IN_ORDER ? window : WHOLE_IN_ORDER;
}

/*
 * What of a host may be in flight. More than its link needs stands in buffers: along routes without a
 * circle that keeps links busy, in a circle each queue slows down the cables that feed it. There it is
 * a packet's piece of each message that the order lets be under way, at the rate that the routes leave.
 */
static uint32_t flying_bytes(const struct ibshift_pace_facts *facts)
{
    uint32_t share = facts->share > 0 && facts->share < 1000 ? facts->share : 1000;

    return facts->has_circle ? IN_ORDER * SMALL_PIECE * share / 1000 : IBSHIFT_PACE_BYTES;
}

/* The smallest piece that ranks have time to post, and of which no more than keep an order fill the
 * round trip. */
static void choose_piece(const struct ibshift_pace_facts *facts, uint32_t on_host,
                         struct ibshift_pace *pace)
{
    double time = kib_time(facts) * SMALL_PIECE / 1024;
    double posted = facts->post > POSTED ? facts->post : POSTED;

    pace->piece = facts->kib > 0 ? SMALL_PIECE : PIECE;
    while (facts->kib > 0 && pace->piece < LARGE_PIECE &&
           (time * on_host < posted || needed(facts, time) > IN_ORDER_MOST)) {
        pace->piece *= 2;
        time *= 2;
    }
    pace->window = needed(facts, time);
    if (pace->window < flying_bytes(facts) / pace->piece) {
        pace->window = flying_bytes(facts) / pace->piece;
    }
    if (!facts->has_circle && pace->window < IN_ORDER) {
        pace->window = IN_ORDER;
    }
}

static void choose_in_order(const struct ibshift_pace_facts *facts, struct ibshift_pace *pace,
                            const char **reason)
{
    uint32_t window = IN_ORDER, on_host = facts->on_host > 0 ? facts->on_host : 1;

    if (!can_post(facts)) {
        window = facts->ring > RING_LOOSE ? RANK_LEAST : whole_window(facts);
        *reason = facts->is_attended
                      ? "routes are known, and the link is faster than pieces can be posted: few "
                        "whole messages in their order"
                      : "routes are known, and completions are not polled all the time: few whole "
                        "messages in their order";
    } else if (facts->ring > RING_LOOSE) {
        pace->piece = posted_piece(facts, SMALL_PIECE);
        window =
            facts->share > 0 && facts->share < WHOLE ? IN_ORDER * facts->share / 1000 : IN_RINGS;
        *reason =
            "a torus of long rings: as many messages as the rings carry, in order, each in small "
            "pieces, one at a time";
    } else {
        choose_piece(facts, on_host, pace);
        window = pace->window;
        *reason = "routes are known: some messages in their order, each in pieces, one at a time, "
                  "so that no adapter sends more than a piece of one in a row";
    }
    window = window > IN_ORDER_MOST ? IN_ORDER_MOST : window;
    window = (window + on_host - 1) / on_host;
    pace->window = window > RANK_LEAST ? window : RANK_LEAST;
}

/* Where switches choose the routes, a window of pieces takes less than all at once in any order. */
static bool has_window(const struct ibshift_pace_facts *facts)
{
    return facts->all_hosts != 0 || facts->is_adaptive;
}

/* Nobody grants a short message: as many bytes as the pieces of long ones, where there is an order. */
static void choose_short(const struct ibshift_pace_facts *facts, struct ibshift_pace *pace,
                         const char **reason)
{
    uint32_t on_host = facts->on_host > 0 ? facts->on_host : 1;
    uint64_t bytes = facts->bytes * on_host, window = (IBSHIFT_PACE_BYTES + bytes - 1) / bytes;
    uint32_t least = needed(facts, facts->kib * (double)bytes / 1024);

    window = window > least ? window : least;
    window = window > RANK_LEAST ? window : RANK_LEAST;
    *reason = "short messages";
    if (!has_window(facts) || window >= facts->window) {
        return;
    }
    ibshift_pace_default(pace, IBSHIFT_PACE_WINDOW);
    pace->window = window < facts->ranks - 1 ? (uint32_t)window : facts->ranks - 1;
    *reason = facts->is_adaptive
                  ? "switches choose the routes, and messages are short: few of them at a time"
                  : "routes are known, and messages are short: few of them in their order";
}

/*
 * Many messages in flight, taking turns, forget a late rank by themselves: without a clock, a
 * barrier, or a question about the noise. How many packets of one message an adapter sends before
 * it turns to the next is not known, and decides what that is worth; with one piece of each
 * message in the adapter it is known, and nothing is better under any noise or switch that was
 * simulated (docs/pacing.md). The window belongs to a host, whose ranks share it. Where no order
 * is known that suits the routes, a window would keep an order that is none.
 */
void ibshift_pace_choose(const struct ibshift_pace_facts *facts, struct ibshift_pace *pace,
                         const char **reason)
{
    ibshift_pace_default(pace, IBSHIFT_PACE_NONE);
    if (!facts->has_free_steps) {
        *reason = "steps wait for one another";
        return;
    }
    if (facts->ranks <= 2) {
        *reason = "two ranks do not disturb each other";
        return;
    }
    if (facts->bytes != 0 && facts->bytes <= facts->eager) {
        choose_short(facts, pace, reason);
        return;
    }
    ibshift_pace_default(pace, IBSHIFT_PACE_WINDOW);
    if (facts->bytes != 0 && has_window(facts)) {
        choose_in_order(facts, pace, reason);
        if (facts->is_adaptive) {
            *reason = pace->piece > 0 ? "switches choose the routes: some messages at a time, each "
                                        "in pieces, one at a time, so that no adapter sends more "
                                        "than a piece of one in a row"
                                      : "switches choose the routes: few whole messages at a time";
        }
    } else if (facts->bytes == 0) {
        pace->window = facts->window;
        pace->piece = can_post(facts) ? posted_piece(facts, PIECE) : 0;
        *reason = pace->piece > 0 ? "messages differ in length: each in pieces, one at a time"
                                  : "messages differ in length";
    } else {
        pace->window = UNORDERED_MOST;
        pace->piece = can_post(facts) ? posted_piece(facts, SMALL_PIECE) : 0;
        *reason = pace->piece > 0 ? "no routes are known, so no order helps: all at once, each in "
                                    "small pieces, one at a time"
                                  : "no routes are known, so no order helps: all at once";
    }
    if (pace->window >= facts->ranks - 1) {
        pace->window = facts->ranks - 1;
        if (pace->piece > 0 && (pace->piece = busy_piece(facts, pace->window, pace->piece)) == 0) {
            *reason = "few ranks: whole messages, because pieces would leave the link idle";
        }
    }
}

void ibshift_pacing_add(struct ibshift_pace_facts *facts, const struct ibshift_model *model,
                        const struct ibshift_pacing_fabric *fabric)
{
    bool is_agreed = fabric->hosts != 0;

    facts->all_hosts = fabric->hosts;
    facts->ring = is_agreed ? fabric->ring : 0;
    facts->kib = is_agreed && fabric->kib != 0 ? (double)fabric->kib : 1024e3 * model->gap_byte;
    facts->latency = 1e3 * model->latency; /* us to ns */
    facts->post = 1e3 * model->send_min;
}

struct ibshift_sending ibshift_pacing_sending(const struct ibshift_pace *pace)
{
    return pace->kind == IBSHIFT_PACE_WINDOW
               ? (struct ibshift_sending){.window = pace->window, .piece = pace->piece}
               : (struct ibshift_sending){.window = 0};
}

unsigned long long ibshift_pacing_posts(const struct ibshift_question *question, uint32_t piece)
{
    const struct ibshift_plan *plan = question->plan;
    uint32_t near =
        question->near != NULL ? ibshift_nodes_size(plan, ibshift_nodes_of(plan, 0)) : 1;

    return near - 1 + (plan->ranks - near) * ((question->bytes + piece - 1) / piece);
}
