#include "unit/formula.h"

#include <math.h>
#include <string.h>

/* What the definitions of choose/price.h come to, by hand, where the ranks' paths are few enough. */

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

static double exact_linear_scatter(const struct ibshift_model *m,
                                   const struct ibshift_formula_case *c)
{
    int n = c->ranks - 1;
    double gap = message_gap(m, c, 1), o = ibshift_model_send_overhead(m, n > 0 ? n : 1);

    return n == 0 ? 0
                  : fmax((n - 1) * o, last_turn(m, n, gap)) + o + gap + m->latency + m->recv_max;
}

/* A gather is a scatter whose sides have changed their overheads. */
static struct ibshift_model mirrored(const struct ibshift_model *m)
{
    struct ibshift_model mirror = *m;

    mirror.send_max = m->recv_max;
    mirror.send_min = m->recv_min;
    mirror.recv_max = m->send_max;
    mirror.recv_min = m->send_min;
    return mirror;
}

static double exact_linear_gather(const struct ibshift_model *m,
                                  const struct ibshift_formula_case *c)
{
    struct ibshift_model mirror = mirrored(m);

    return exact_linear_scatter(&mirror, c);
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
static double exact_tree_scatter(const struct ibshift_model *m,
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
static double exact_tree_gather(const struct ibshift_model *m, const struct ibshift_formula_case *c)
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
static double exact_halves_scatter(const struct ibshift_model *m,
                                   const struct ibshift_formula_case *c)
{
    return exact_tree_scatter(m, &(struct ibshift_formula_case){c->ranks, 1, c->bytes});
}

static double exact_halves_gather(const struct ibshift_model *m,
                                  const struct ibshift_formula_case *c)
{
    return exact_tree_gather(m, &(struct ibshift_formula_case){c->ranks, 1, c->bytes});
}

static double exact_ring(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    return (c->ranks - 1) * (hop(m) + message_gap(m, c, 1));
}

static double exact_neighbor(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    if (c->ranks % 2 != 0) {
        return c->ranks == 1 ? 0 : -1;
    }
    return c->ranks / 2 * hop(m) + message_gap(m, c, 1) + (c->ranks / 2 - 1) * message_gap(m, c, 2);
}

static double exact_doubling(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    double time = 0;
    int blocks = 1;

    for (; blocks < c->ranks; blocks *= 2) {
        time += hop(m) + message_gap(m, c, blocks);
    }
    return blocks == c->ranks ? time : -1;
}

/* The least i with base^i >= n, in whole numbers. */
static int log_up(int n, int base)
{
    long long power = 1;
    int i = 0;

    while (power < n) {
        power *= base;
        i++;
    }
    return i;
}

static double bytes_gap(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    return (c->bytes - 1) * m->gap_byte;
}

/* Scatter: the last of n messages that one rank sends. */
static double linear_loggp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    int n = c->ranks - 1;

    return n == 0 ? 0 : n * (fmax(m->send_max, m->gap) + bytes_gap(m, c)) + hop(m);
}

static double linear_gather_loggp(const struct ibshift_model *m,
                                  const struct ibshift_formula_case *c)
{
    struct ibshift_model mirror = mirrored(m);

    return linear_loggp(&mirror, c);
}

static double series(double first, double each, int n, const struct ibshift_model *m)
{
    int f = m->free_messages;

    return first + (n <= f ? (n - 1) * each : fmax((n - 1) * each, (n - f) * m->gap));
}

static double linear_logfp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    int n = c->ranks - 1;
    double o = ibshift_model_send_overhead(m, n > 0 ? n : 1);

    return n == 0 ? 0 : series(o, o, n, m) + m->latency + m->recv_max;
}

static double linear_gather_logfp(const struct ibshift_model *m,
                                  const struct ibshift_formula_case *c)
{
    struct ibshift_model mirror = mirrored(m);

    return linear_logfp(&mirror, c);
}

static double tree_loggp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    return log_up(c->ranks, c->radix + 1) * (hop(m) + (c->radix - 1) * m->gap) +
           (c->ranks - 1) * bytes_gap(m, c);
}

static double tree_logfp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    return log_up(c->ranks, c->radix + 1) *
           (c->radix * ibshift_model_send_overhead(m, c->radix) + m->latency + m->recv_max);
}

static double tree_gather_logfp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    struct ibshift_model mirror = mirrored(m);

    return tree_logfp(&mirror, c);
}

static double ring_loggp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    return (c->ranks - 1) * (hop(m) + bytes_gap(m, c));
}

static double ring_logfp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    return (c->ranks - 1) * hop(m);
}

static double modified_ring_loggp(const struct ibshift_model *m,
                                  const struct ibshift_formula_case *c)
{
    int n = c->ranks - 1;
    double o = m->send_max + m->recv_max;

    return n == 0 ? 0 : o + n * bytes_gap(m, c) + fmax((n - 1) * m->gap + m->latency, (n - 1) * o);
}

static double modified_ring_logfp(const struct ibshift_model *m,
                                  const struct ibshift_formula_case *c)
{
    int n = c->ranks - 1;
    double s, o;

    if (n == 0) {
        return 0;
    }
    s = ibshift_model_send_overhead(m, n);
    o = s + ibshift_model_recv_overhead(m, n);
    return o + fmax(m->latency +
                        (n <= m->free_messages ? (n - 1) * s : (n - m->free_messages) * m->gap),
                    (n - 1) * o);
}

static double neighbor_loggp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    return c->ranks / 2 * hop(m) + (c->ranks - 1) * bytes_gap(m, c);
}

static double neighbor_logfp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    return c->ranks / 2 * hop(m);
}

static double doubling_loggp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    return log_up(c->ranks, 2) * hop(m) + (c->ranks - 1) * bytes_gap(m, c);
}

static double doubling_logfp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    return log_up(c->ranks, 2) * hop(m);
}

static double bruck_loggp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    int k = c->radix;
    double o = m->send_max + m->recv_max;

    return log_up(c->ranks, k + 1) *
           (o + bytes_gap(m, c) + fmax((k - 1) * m->gap + m->latency, (k - 1) * o));
}

static double bruck_logfp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    int k = c->radix;
    double s = ibshift_model_send_overhead(m, k);
    double o = s + ibshift_model_recv_overhead(m, k);

    return log_up(c->ranks, k + 1) * (o + fmax((k - 1) * s + m->latency, (k - 1) * o));
}

static double unknown(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    return -1;
}

const struct ibshift_formula ibshift_formulas[] = {
    {"scatter", "linear", linear_loggp, linear_logfp, exact_linear_scatter},
    {"scatter", "nway", tree_loggp, tree_logfp, exact_tree_scatter},
    {"scatter", "split", doubling_loggp, doubling_logfp, exact_halves_scatter},
    {"gather", "linear", linear_gather_loggp, linear_gather_logfp, exact_linear_gather},
    {"gather", "nway", tree_loggp, tree_gather_logfp, exact_tree_gather},
    {"gather", "split", doubling_loggp, doubling_logfp, exact_halves_gather},
    {"allgather", "ring", ring_loggp, ring_logfp, exact_ring},
    {"allgather", "modified_ring", modified_ring_loggp, modified_ring_logfp, unknown},
    {"allgather", "neighbor_exchange", neighbor_loggp, neighbor_logfp, exact_neighbor},
    {"allgather", "recursive_doubling", doubling_loggp, doubling_logfp, exact_doubling},
    {"allgather", "bruck", bruck_loggp, bruck_logfp, unknown},
    {NULL, NULL, NULL, NULL, NULL},
};

const struct ibshift_formula *ibshift_formula_find(const char *collective, const char *algorithm)
{
    for (const struct ibshift_formula *f = ibshift_formulas; f->collective != NULL; f++) {
        if (strcmp(f->collective, collective) == 0 && strcmp(f->algorithm, algorithm) == 0) {
            return f;
        }
    }
    return NULL;
}
