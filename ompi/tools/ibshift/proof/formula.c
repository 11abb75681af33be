#include "proof/formula.h"

#include <math.h>
#include <string.h>

static double larger(double a, double b)
{
    return a > b ? a : b;
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

static double hop(const struct ibshift_model *m)
{
    return m->send_max + m->latency + m->recv_max;
}

/* Scatter: the last of n messages that one rank sends; gather is its mirror with the overheads
 * exchanged. */
static double linear_loggp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    int n = c->ranks - 1;

    return n == 0 ? 0 : n * (larger(m->send_max, m->gap) + bytes_gap(m, c)) + hop(m);
}

static double linear_gather_loggp(const struct ibshift_model *m,
                                  const struct ibshift_formula_case *c)
{
    int n = c->ranks - 1;

    return n == 0 ? 0 : n * (larger(m->recv_max, m->gap) + bytes_gap(m, c)) + hop(m);
}

static double series(double first, double each, int n, const struct ibshift_model *m)
{
    int f = m->free_messages;

    return first + (n <= f ? (n - 1) * each : larger((n - 1) * each, (n - f) * m->gap));
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
    int n = c->ranks - 1;
    double o = ibshift_model_recv_overhead(m, n > 0 ? n : 1);

    return n == 0 ? 0 : series(o, o, n, m) + m->latency + m->send_max;
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
    return log_up(c->ranks, c->radix + 1) *
           (c->radix * ibshift_model_recv_overhead(m, c->radix) + m->latency + m->send_max);
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

    return n == 0 ? 0
                  : o + n * bytes_gap(m, c) + larger((n - 1) * m->gap + m->latency, (n - 1) * o);
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
    return o + larger(m->latency +
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
           (o + bytes_gap(m, c) + larger((k - 1) * m->gap + m->latency, (k - 1) * o));
}

static double bruck_logfp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    int k = c->radix;
    double s = ibshift_model_send_overhead(m, k);
    double o = s + ibshift_model_recv_overhead(m, k);

    return log_up(c->ranks, k + 1) * (o + larger((k - 1) * s + m->latency, (k - 1) * o));
}

/* Recursive splitting. */
static double halves_loggp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    return log_up(c->ranks, 2) * hop(m) + (c->ranks - 1) * bytes_gap(m, c);
}

static double halves_logfp(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    return log_up(c->ranks, 2) * hop(m);
}

static double unknown(const struct ibshift_model *m, const struct ibshift_formula_case *c)
{
    return -1;
}

const struct ibshift_formula ibshift_formulas[] = {
    {"scatter", "linear", linear_loggp, linear_logfp, ibshift_exact_linear_scatter},
    {"scatter", "nway", tree_loggp, tree_logfp, ibshift_exact_tree_scatter},
    {"scatter", "split", halves_loggp, halves_logfp, ibshift_exact_halves_scatter},
    {"gather", "linear", linear_gather_loggp, linear_gather_logfp, ibshift_exact_linear_gather},
    {"gather", "nway", tree_loggp, tree_gather_logfp, ibshift_exact_tree_gather},
    {"gather", "split", halves_loggp, halves_logfp, ibshift_exact_halves_gather},
    {"allgather", "ring", ring_loggp, ring_logfp, ibshift_exact_ring},
    {"allgather", "modified_ring", modified_ring_loggp, modified_ring_logfp, unknown},
    {"allgather", "neighbor_exchange", neighbor_loggp, neighbor_logfp, ibshift_exact_neighbor},
    {"allgather", "recursive_doubling", doubling_loggp, doubling_logfp, ibshift_exact_doubling},
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
