#include "exec/pace/pace_auto.h"

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
