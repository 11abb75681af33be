/* The parameters of the cost models and the text they are read from.
 *
 * One number a line, with its unit; '#' starts a comment:
 *
 *     L       = 5.0 us      # latency of the wire
 *     o_s_max = 2.0 us      # send overhead of a single message ...
 *     o_s_min = 0.5 us      # ... and of each of very many in a row ("o_s" sets both)
 *     o_r_max = 1.5 us      # the same for receiving ("o_r" sets both)
 *     o_r_min = 0.5 us
 *     g       = 3.0 us      # gap between messages, once f of them are under way
 *     G       = 1.0 GB/s    # gap per byte: a time per byte or a rate
 *     f       = 2           # messages that go out before g is felt
 *     S       = 4096 B      # longer messages wait for their receiver
 *     R       = 1.0 us      # what such a message costs the sender's processor besides
 *     O       = 0.2 ns/B    # the sender's processor moves the bytes: its time per byte
 *     E       = 0.1 ns/B    # both sides copy a message up to S: the time per byte of each
 *     w       = 2.0 us      # a turn of a processor that ranks share, for each that waits for it
 *     copy    = 0.1 ns/B    # local copy and reduction, per byte
 *     reduce  = 0.2 ns/B
 *
 * L, o_s, o_r and g must be there; G, O, E, R, w, copy and reduce are 0 and f is 1 when they are
 * not, and without S no message waits, or is copied.
 *
 * Such lines are those of messages over the adapter, under [fabric] or without a heading; under
 * [node] those of messages between ranks that share memory. What a measured file was made on stands
 * under [made], as `key = text`: device, speed, ompi, firmware, ibshift, host and date (`ibshift tune`). */
#ifndef IBSHIFT_CHOOSE_PARAM_H
#define IBSHIFT_CHOOSE_PARAM_H

#include <stdbool.h>
#include <stddef.h>

#include "choose/text.h"

/* Times in microseconds, per-byte costs in microseconds per byte. */
struct ibshift_model {
    double latency;
    double send_max, send_min;
    double recv_max, recv_min;
    double gap;
    double gap_byte;
    double copy_byte;
    double reduce_byte;
    double send_byte;  /* O */
    double eager_byte; /* E */
    double wake;       /* w */
    double at_once;    /* S, in bytes; 0: messages of any length */
    double granted;    /* R */
    int free_messages; /* f */
};

/* The example that is used when no file is given: the parameters of the LogfP comparison of scatter
 * algorithms (Viertel 2007, figure 5.7), with the data rate of a 4x SDR link as G. Not measured. */
extern const struct ibshift_model ibshift_model_example;

/* What a fast network of today may look like, nothing of it measured: the component's, when no file
 * is given. */
extern const struct ibshift_model ibshift_model_typical;

/* The same where the device is a driver's software, and its wire processor time: o in place of L, O
 * in place of G, and nothing goes for free. docs/models.md says what it was fitted to. */
extern const struct ibshift_model ibshift_model_software;

/* The memory that the ranks of a host share: all of a message's way is processor time. Fitted to
 * bench/nodes/cells.csv (docs/models.md). */
extern const struct ibshift_model ibshift_model_node;

/* What a file was measured on; empty texts: it does not say. */
enum { IBSHIFT_MADE_TEXT = 64 };
struct ibshift_made {
    char device[IBSHIFT_MADE_TEXT], speed[IBSHIFT_MADE_TEXT], ompi[IBSHIFT_MADE_TEXT];
    char firmware[IBSHIFT_MADE_TEXT], ibshift[IBSHIFT_MADE_TEXT];
    char host[IBSHIFT_MADE_TEXT], date[IBSHIFT_MADE_TEXT];
};

/* A whole file, which has at least one of the two. */
struct ibshift_costs {
    struct ibshift_model far, near;
    bool has_far, has_near;
    struct ibshift_made made;
};

/* Both return 0 or -EINVAL (-errno when the file cannot be read) with one line in error, which has
 * IBSHIFT_TEXT_ERROR bytes and says "name:line: what is wrong". *costs is set on success
 * only. */
int ibshift_costs_parse(const char *text, size_t length, const char *name,
                        struct ibshift_costs *costs, char *error);
int ibshift_costs_read(const char *path, struct ibshift_costs *costs, char *error);
/* A file's far model, or the near one when it has no other. */
int ibshift_model_read(const char *path, struct ibshift_model *model, char *error);

/* Text that parses to the same costs; the length as snprintf counts it. */
int ibshift_costs_format(const struct ibshift_costs *costs, char *text, size_t size);

/* Writes the model, each of its fields, as text that parses to the same model; the length as
 * snprintf counts it. */
int ibshift_model_format(const struct ibshift_model *model, char *text, size_t size);

/* What one of n equal messages in a row costs the sender (receiver): the whole series costs the
 * maximum once and the minimum for each further message. */
static inline double ibshift_model_send_overhead(const struct ibshift_model *model, int n)
{
    return model->send_min + (model->send_max - model->send_min) / n;
}

static inline double ibshift_model_recv_overhead(const struct ibshift_model *model, int n)
{
    return model->recv_min + (model->recv_max - model->recv_min) / n;
}

/* The two published models as special cases: LogGP knows neither f nor a falling overhead, LogfP
 * ignores the message size. */
static inline struct ibshift_model ibshift_model_loggp(const struct ibshift_model *model)
{
    struct ibshift_model out = *model;

    out.send_min = out.send_max;
    out.recv_min = out.recv_max;
    out.free_messages = 1;
    return out;
}

static inline struct ibshift_model ibshift_model_logfp(const struct ibshift_model *model)
{
    struct ibshift_model out = *model;

    out.gap_byte = out.copy_byte = out.reduce_byte = out.send_byte = out.eager_byte = 0;
    return out;
}

#endif
