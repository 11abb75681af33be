#include "choose/words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "choose/pace.h"
#include "plan/nodes.h"

void ibshift_line_add(struct ibshift_line *line, const char *format, ...)
{
    size_t room = sizeof(line->text) - line->length;
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(line->text + line->length, room, format, arguments);
    va_end(arguments);
    line->length += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

static void add_plan(struct ibshift_line *line, const struct ibshift_choice *choice,
                     const struct ibshift_nodes *nodes)
{
    ibshift_line_add(line, "%s", choice->alg->name);
    if (choice->alg->radix_max > 0) {
        ibshift_line_add(line, ", radix %u", choice->radix);
    }
    if ((choice->alg->flags & IBSHIFT_ALG_SEGMENTS) != 0) {
        ibshift_line_add(line, ", %u segment%s", choice->segments,
                         choice->segments == 1 ? "" : "s");
    }
    if ((choice->alg->flags & IBSHIFT_ALG_NODES) != 0) {
        ibshift_line_add(line, ", %u node%s", nodes->nodes, nodes->nodes == 1 ? "" : "s");
        if (choice->leaders > 1) {
            ibshift_line_add(line, ", up to %u leaders", choice->leaders);
        }
    }
}

static void add_what(struct ibshift_line *line, const struct ibshift_decision *decision)
{
    enum ibshift_collective collective = decision->question->collective;

    ibshift_line_add(line, "%s", decision->call);
    if (decision->is_any_size) {
        bool is_part = (decision->question->needs & IBSHIFT_ALG_SIZES_NODE) == 0;

        ibshift_line_add(line, is_part ? ", long blocks" : ", any size");
    } else if (collective != IBSHIFT_BARRIER) {
        ibshift_line_add(line, " up to %llu B %s", (unsigned long long)decision->question->bytes,
                         ibshift_collective_has_vector(collective) ? "of vector" : "a block");
    }
}

static void add_choice(struct ibshift_line *line, const struct ibshift_decision *decision)
{
    static const char *const shared[] = {[IBSHIFT_PRICE_PATH] = "",
                                         [IBSHIFT_PRICE_PROCESSORS] = " of shared processors",
                                         [IBSHIFT_PRICE_PORT] = " of a shared port",
                                         [IBSHIFT_PRICE_LINKS] = " with links that are shared"};
    const struct ibshift_choice *best = &decision->answer->best;
    struct ibshift_sending sending = ibshift_choose_sending(decision->question, best->alg);

    ibshift_line_add(line, ": ");
    add_plan(line, best, decision->question->plan->nodes);
    if (best->most > 0) {
        ibshift_line_add(line, ", blocks up to %llu B, longer ones flat",
                         (unsigned long long)best->most);
    }
    if (decision->order != NULL) {
        ibshift_line_add(line, ", %s", decision->order);
    }
    ibshift_line_add(line, ", window %u", sending.window);
    if (sending.piece > 0) {
        ibshift_line_add(line, ", in pieces of %u B, %llu posts by rank 0", sending.piece,
                         ibshift_pacing_posts(decision->question, sending.piece));
    }
    if (decision->is_pace_asked_for && (best->alg->flags & IBSHIFT_ALG_FREE) == 0) {
        ibshift_line_add(line, ", without a pace, because steps wait for one another");
    }
    if (best->price.last >= 0) {
        ibshift_line_add(line, "; modelled %.2f us%s", best->price.last, shared[best->price.of]);
    }
}

static void add_others(struct ibshift_line *line, const struct ibshift_decision *decision)
{
    const struct ibshift_choice *best = &decision->answer->best;
    const struct ibshift_choice *second = &decision->answer->second;
    const struct ibshift_choice *other = &decision->answer->other;

    if (second->alg != NULL && second->price.last >= 0) {
        ibshift_line_add(line, ", best of %d plans; next: ", decision->answer->candidates);
        add_plan(line, second, decision->question->plan->nodes);
        ibshift_line_add(line, " with %.2f us%s", second->price.last,
                         second->price.last >= best->price.last          ? ""
                         : second->price.messages > best->price.messages ? ", but more messages"
                                                                         : ", but more in a row");
    }
    if (other->alg != NULL && other->alg != second->alg && other->price.last >= 0) {
        ibshift_line_add(line, (other->alg->flags & IBSHIFT_ALG_NODES) != 0 ? "; by nodes: "
                                                                            : "; flat: ");
        add_plan(line, other, decision->question->plan->nodes);
        ibshift_line_add(line, " with %.2f us", other->price.last);
    }
}

void ibshift_words_decision(struct ibshift_line *line, const struct ibshift_decision *decision)
{
    const struct ibshift_alg *wished = decision->answer->wish.alg;
    const struct ibshift_alg *alg = decision->answer->best.alg;

    add_what(line, decision);
    if (alg == NULL) {
        ibshift_line_add(line, ": %s, runs in the component beneath",
                         decision->beneath != NULL ? decision->beneath : "no algorithm fits");
        return;
    }
    add_choice(line, decision);
    if (wished == alg) {
        ibshift_line_add(line, "; asked for by coll_ibshift_%s%s",
                         decision->is_named
                             ? ibshift_collective_name(decision->question->collective)
                         : decision->question->plan->listed != NULL ? "plan"
                                                                    : "rules",
                         decision->is_named ? "_algorithm" : "");
        return;
    }
    if (wished != NULL) {
        ibshift_line_add(line, "; %s, asked for, cannot do it", wished->name);
    }
    add_others(line, decision);
}

void ibshift_words_unfit(const struct ibshift_question *question, const struct ibshift_alg *wished,
                         struct ibshift_line *why, struct ibshift_line *able)
{
    struct ibshift_plan plan = *question->plan;
    char text[128] = "the ranks do not know each other's counts";

    plan.segments = 1;
    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];
        uint32_t pieces = ibshift_cast_pieces(alg);
        char reason[128];

        if (!ibshift_alg_serves(alg, question->collective, question->needs)) {
            continue;
        }
        plan.radix = alg->radix_max > 0 ? 1 : 0;
        if ((alg->flags & IBSHIFT_ALG_MULTICAST) != 0 && alg == wished) {
            strcpy(text, "it needs a multicast group (coll_ibshift_multicast) of a communicator of "
                         "three ranks or more, made in a blocking call");
            if (plan.multicast > 0 && question->bytes > (uint64_t)pieces * plan.multicast) {
                snprintf(text, sizeof(text),
                         "messages of its class of sizes, up to %" PRIu64
                         " B, are longer than %u datagram%s of %u B",
                         question->bytes, pieces, pieces == 1 ? "" : "s", plan.multicast);
            } else if (plan.multicast > 0) {
                snprintf(text, sizeof(text), "more than %d ranks would send at once",
                         IBSHIFT_CAST_SENDERS);
            }
        } else if (ibshift_alg_check(alg, &plan, reason, sizeof(reason)) == 0) {
            ibshift_line_add(able, "%s%s", able->length > 0 ? ", " : "", alg->name);
        } else if (alg == wished) {
            strcpy(text, reason);
        }
    }
    ibshift_line_add(why, "%.*s", (int)strcspn(text, ";"), text);
    if (able->length == 0) {
        ibshift_line_add(able, "none of ibshift's");
    }
}
