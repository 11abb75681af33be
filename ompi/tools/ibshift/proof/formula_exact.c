/* What the definitions of choose/price.h come to, by hand, where the ranks' paths are few enough. */
#include "proof/formula.h"

#include <math.h>

#define LEVELS_MAX 64

static double message_gap(const struct ibshift_model *m, const struct ibshift_formula_case *c,
                          double blocks)
{
    double bytes = blocks * c->bytes;

    return bytes > 1 ? (bytes - 1) * m->gap_byte : 0;
}

static double hop(const struct ibshift_model *m)
{
    return m->send_max + m->latency + m->recv_max;
}

/* When the last of n equal messages passes a port that the first passes at 0. */
static double last_turn(const struct ibshift_model *m, int n, double bytes_gap)
{
    return fmax((n - 1) * (m->gap + bytes_gap) - (m->free_messages - 1) * m->gap,
                (n - 1) * bytes_gap);
}

double ibshift_exact_linear_scatter(const struct ibshift_model *m,
                                    const struct ibshift_formula_case *c)
{
    int n = c->ranks - 1;
    double gap = message_gap(m, c, 1), o = ibshift_model_send_overhead(m, n > 0 ? n : 1);

    return n == 0 ? 0
                  : fmax((n - 1) * o, last_turn(m, n, gap)) + o + gap + m->latency + m->recv_max;
}

double ibshift_exact_linear_gather(const struct ibshift_model *m,
                                   const struct ibshift_formula_case *c)
{
    int n = c->ranks - 1;
    double gap = message_gap(m, c, 1), o = ibshift_model_recv_overhead(m, n > 0 ? n : 1);

    return n == 0 ? 0
                  : m->send_max + m->latency + gap + fmax((n - 1) * o, last_turn(m, n, gap)) + o;
}

/* The rounds of a full tree, P = (k + 1)^i, or -1. */
static int full_rounds(const struct ibshift_formula_case *c)
{
    int n = c->ranks, i = 0;

    for (; n > 1 && n % (c->radix + 1) == 0; i++) {
        n /= c->radix + 1;
    }
    return n == 1 && i < LEVELS_MAX ? i : -1;
}

/* A tree of i rounds is done when the last child of its slowest round is: the root's round j has k
 * messages of (k + 1)^(i - 1 - j) blocks to trees of i - 1 - j rounds. */
double ibshift_exact_tree_scatter(const struct ibshift_model *m,
                                  const struct ibshift_formula_case *c)
{
    double times[LEVELS_MAX] = {0}, o = ibshift_model_send_overhead(m, c->radix);
    int rounds = full_rounds(c);

    for (int i = 1; i <= rounds; i++) {
        double turn = 0, wire = 0, begin = -o;

        for (int q = 0; q < i * c->radix; q++) {
            int below = i - 1 - q / c->radix;
            double gap = message_gap(m, c, pow(c->radix + 1, below));

            begin = fmax(begin + o, turn - (m->free_messages - 1) * m->gap);
            turn = fmax(turn, begin) + m->gap + gap;
            wire = fmax(begin + o, wire) + gap;
            times[i] = fmax(times[i], wire + m->latency + m->recv_max + times[below]);
        }
    }
    return rounds < 0 ? -1 : times[rounds];
}

/* The mirror: k subtrees of each order send when they are done, the smallest first. */
double ibshift_exact_tree_gather(const struct ibshift_model *m,
                                 const struct ibshift_formula_case *c)
{
    double times[LEVELS_MAX] = {0}, o = ibshift_model_recv_overhead(m, c->radix);
    int rounds = full_rounds(c);

    for (int i = 1; i <= rounds; i++) {
        double turn = 0, wire = 0;

        for (int q = 0; q < i * c->radix; q++) {
            int order = q / c->radix;
            double gap = message_gap(m, c, pow(c->radix + 1, order));
            double begin = fmax(times[order] + m->send_max + m->latency,
                                turn - (m->free_messages - 1) * m->gap);

            turn = fmax(turn, begin) + m->gap + gap;
            wire = fmax(begin, wire) + gap;
            times[i] = fmax(times[i], wire) + o;
        }
    }
    return rounds < 0 ? -1 : times[rounds];
}

/* Halving a power of two makes the same tree. */
double ibshift_exact_halves_scatter(const struct ibshift_model *m,
                                    const struct ibshift_formula_case *c)
{
    return ibshift_exact_tree_scatter(m, &(struct ibshift_formula_case){c->ranks, 1, c->bytes});
}

double ibshift_exact_halves_gather(const struct ibshift_model *m,
                                   const struct ibshift_formula_case *c)
{
    return ibshift_exact_tree_gather(m, &(struct ibshift_formula_case){c->ranks, 1, c->bytes});
}

double ibshift_exact_ring(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    return (c->ranks - 1) * (hop(m) + message_gap(m, c, 1));
}

double ibshift_exact_neighbor(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    if (c->ranks % 2 != 0) {
        return c->ranks == 1 ? 0 : -1;
    }
    return c->ranks / 2 * hop(m) + message_gap(m, c, 1) + (c->ranks / 2 - 1) * message_gap(m, c, 2);
}

double ibshift_exact_doubling(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    double time = 0;
    int blocks = 1;

    for (; blocks < c->ranks; blocks *= 2) {
        time += hop(m) + message_gap(m, c, blocks);
    }
    return blocks == c->ranks ? time : -1;
}
