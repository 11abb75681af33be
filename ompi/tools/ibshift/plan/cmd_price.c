/* `ibshift plan price`: the modelled time of one plan. */
#include "plan/cmd.h"

#include <errno.h>
#include <inttypes.h>

static int price_one(const struct plan_args *args, enum plan_model which, uint64_t bytes,
                     struct ibshift_price *price)
{
    struct ibshift_model model = plan_model_of(args, which);
    struct ibshift_price_request request = plan_request(args, plan_hosts_of(args));
    struct ibshift_plan plan = args->plan;
    int rc;

    if ((args->alg->flags & IBSHIFT_ALG_MULTICAST) != 0) {
        plan.segments = plan_cast_segments(args, args->alg, bytes);
        request.plan = &plan;
    }
    request.model = &model;
    request.bytes = bytes;
    request.limit = 1 << 26;
    rc = ibshift_price(&request, price);
    rc = rc == 0 ? plan_fabric_add(args, &request, price) : rc;
    if (rc == -E2BIG) {
        cli_error(args->command, "%u ranks have too many messages to simulate: take fewer",
                  args->plan.ranks);
        return CLI_UNFIT;
    }
    if (rc != 0) {
        cli_error(args->command, "%s",
                  rc == -ENOMEM ? "out of memory" : "the plan does not end: ibshift plan check");
        return CLI_FAILED;
    }
    return CLI_OK;
}

static void row_text(const struct plan_args *args, FILE *out, enum plan_model which, uint64_t bytes,
                     const struct ibshift_price *price)
{
    char size[24];

    plan_size_text(bytes, size);
    fprintf(out, "%-10s %-13s %12.3f %12.3f %10" PRIu64 " %14" PRIu64, size, plan_model_name(which),
            price->last, price->first, price->messages, price->bytes);
    if (args->piece > 0) {
        fprintf(out, " %10" PRIu64, price->posts);
    }
    fputc('\n', out);
}

static void row_json(struct json *j, enum plan_model which, uint64_t bytes,
                     const struct ibshift_price *price)
{
    json_open(j, NULL, '{');
    json_value(j, "bytes", "%" PRIu64, bytes);
    json_text(j, "model", plan_model_name(which));
    json_value(j, "last_us", "%.6f", price->last);
    json_value(j, "first_us", "%.6f", price->first);
    json_value(j, "messages", "%" PRIu64, price->messages);
    json_value(j, "bytes_sent", "%" PRIu64, price->bytes);
    json_value(j, "posts", "%" PRIu64, price->posts);
    json_close(j, '}');
}

static void write_head(const struct plan_args *args, FILE *out)
{
    char title[160], pieces[48] = "";

    plan_title(args, title, sizeof(title));
    if (args->piece > 0) {
        snprintf(pieces, sizeof(pieces), ", in pieces of %u B", args->piece);
    }
    fprintf(out, "%s, window %u%s\nmodelled; parameters: %s\n", title, args->window, pieces,
            args->model_source);
    plan_fabric_title(args, out);
    fprintf(out, "\n%-10s %-13s %12s %12s %10s %14s%s\n",
            ibshift_collective_has_vector(args->alg->collective) ? "vector" : "block", "model",
            "last us", "first us", "messages", "bytes sent", args->piece > 0 ? "      posts" : "");
}

/* The head once there is a first row to it: nothing is printed of what cannot be priced. */
static int price_all(struct plan_args *args, FILE *out)
{
    bool is_json = args->is_json, has_head = false;
    struct json j;
    int rc = CLI_OK;

    for (int i = 0; i < args->size_count * PLAN_MODELS && rc == CLI_OK; i++) {
        enum plan_model which = (enum plan_model)(i % PLAN_MODELS);
        uint64_t bytes = args->sizes[i / PLAN_MODELS];
        struct ibshift_price price;

        if (args->which >= 0 && args->which != (int)which) {
            continue;
        }
        rc = price_one(args, which, bytes, &price);
        if (rc != CLI_OK) {
            break;
        }
        if (!has_head && is_json) {
            plan_json_begin(&j, out, "prices");
        } else if (!has_head) {
            write_head(args, out);
        }
        has_head = true;
        if (is_json) {
            row_json(&j, which, bytes, &price);
        } else {
            row_text(args, out, which, bytes, &price);
        }
    }
    if (is_json && has_head) {
        plan_json_end(&j);
    }
    return rc;
}

/* What no job would send by multicast has no price. */
static int refuse_multicast(const struct plan_args *args, uint64_t bytes)
{
    uint32_t pieces = ibshift_cast_pieces(args->alg);
    uint64_t longest = plan_class_bytes(bytes);

    if (args->alg->collective == IBSHIFT_ALLGATHER && args->plan.ranks > IBSHIFT_CAST_SENDERS) {
        return cli_error(args->command, "%u ranks: by multicast at most %d can send at once",
                         args->plan.ranks, IBSHIFT_CAST_SENDERS);
    }
    if (longest > (uint64_t)pieces * args->plan.multicast) {
        return cli_error(args->command,
                         "--bytes %" PRIu64 ": messages of its class of sizes, up to %" PRIu64
                         " B, are longer than %u datagram%s of %u B",
                         bytes, longest, pieces, pieces == 1 ? "" : "s", args->plan.multicast);
    }
    return cli_error(args->command,
                     "--bytes %" PRIu64 " by multicast: wants a segment for each datagram of %u B",
                     bytes, args->plan.multicast);
}

static int check_multicast(const struct plan_args *args)
{
    if ((args->alg->flags & IBSHIFT_ALG_MULTICAST) == 0) {
        return CLI_OK;
    }
    if (args->plan.multicast == 0) {
        return cli_error(args->command, "%s multicast needs --multicast BYTES: of a datagram",
                         ibshift_collective_name(args->alg->collective));
    }
    for (int i = 0; i < args->size_count; i++) {
        if (plan_cast_segments(args, args->alg, args->sizes[i]) == 0) {
            return refuse_multicast(args, args->sizes[i]);
        }
    }
    return CLI_OK;
}

int plan_price(struct plan_args *args)
{
    int rc = check_multicast(args);
    FILE *out = rc == CLI_OK ? plan_open(args) : NULL;

    if (out == NULL) {
        return CLI_USAGE;
    }
    rc = price_all(args, out);
    return plan_close(args, rc);
}
