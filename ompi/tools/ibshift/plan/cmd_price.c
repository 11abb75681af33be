/* `ibshift plan price`: the modelled time of one plan, and the table of formulas beside the
 * simulation. */
#include "plan/cmd.h"

#include <errno.h>
#include <inttypes.h>

#include "proof/formula.h"

static int price_one(const struct plan_args *args, enum plan_model which, uint64_t bytes,
                     struct ibshift_price *price)
{
    struct ibshift_model model = plan_model_of(args, which);
    struct ibshift_price_request request = plan_request(args, plan_hosts_of(args));
    int rc;

    request.model = &model;
    request.bytes = bytes;
    request.limit = 1 << 26;
    rc = ibshift_price(&request, price);
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

static void formula_text(const struct plan_args *args, enum plan_model which, uint64_t bytes,
                         char *published, char *exact)
{
    const char *collective = ibshift_collective_name(args->alg->collective);
    const struct ibshift_formula *formula = ibshift_formula_find(collective, args->alg->name);
    struct ibshift_model model = plan_model_of(args, which);
    struct ibshift_formula_case c = {(int)args->plan.ranks, (int)args->plan.radix, (double)bytes};
    double time = formula != NULL ? formula->exact(&model, &c) : -1;

    snprintf(published, 16, "-");
    snprintf(exact, 16, "-");
    if (formula != NULL && which != PLAN_COMBINED) {
        snprintf(published, 16, "%.3f",
                 which == PLAN_LOGGP ? formula->loggp(&model, &c) : formula->logfp(&model, &c));
    }
    if (time >= 0) {
        snprintf(exact, 16, "%.3f", time);
    }
}

static void row_text(const struct plan_args *args, FILE *out, enum plan_model which, uint64_t bytes,
                     const struct ibshift_price *price)
{
    char published[16], exact[16], size[24];

    formula_text(args, which, bytes, published, exact);
    plan_size_text(bytes, size);
    fprintf(out, "%-10s %-13s %12.3f %12.3f %12s %12s %10" PRIu64 " %14" PRIu64, size,
            plan_model_name(which), price->last, price->first, published, exact, price->messages,
            price->bytes);
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
    fprintf(out,
            "%s, window %u%s\nmodelled; parameters: %s\n\n%-10s %-13s %12s %12s %12s %12s %10s "
            "%14s%s\n",
            title, args->window, pieces, args->model_source,
            ibshift_collective_has_vector(args->alg->collective) ? "vector" : "block", "model",
            "last us", "first us", "published", "exact", "messages", "bytes sent",
            args->piece > 0 ? "      posts" : "");
}

/* The head once there is a first row to it: nothing is printed of what cannot be priced. */
static int price_all(struct plan_args *args, FILE *out)
{
    bool is_json = args->format == PLAN_JSON, has_head = false;
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

static int table_row(struct plan_args *args, FILE *out, enum plan_model which)
{
    char published[16], exact[16], why[256];
    struct ibshift_price price;
    int rc;

    if (ibshift_alg_check(args->alg, &args->plan, why, sizeof(why)) != 0) {
        return CLI_OK;
    }
    rc = price_one(args, which, args->sizes[0], &price);
    if (rc == CLI_OK) {
        formula_text(args, which, args->sizes[0], published, exact);
        fprintf(out, "| %s %s | %u | %u | %s | %s | %s | %.3f |\n",
                ibshift_collective_name(args->alg->collective), args->alg->name, args->plan.ranks,
                args->plan.radix, plan_model_name(which), published, exact, price.last);
    }
    return rc;
}

/* By the model that was named, or by the published two. */
static int table_rows(struct plan_args *args, FILE *out)
{
    int rc;

    if (args->which >= 0) {
        return table_row(args, out, (enum plan_model)args->which);
    }
    rc = table_row(args, out, PLAN_LOGGP);
    return rc == CLI_OK ? table_row(args, out, PLAN_LOGFP) : rc;
}

static int table_algorithm(struct plan_args *args, FILE *out)
{
    static const uint32_t ranks[] = {2, 3, 4, 6, 8, 9, 16, 25, 27, 64, 100, 125};
    const struct ibshift_plan given = args->plan;
    uint32_t radix = args->has_radix ? given.radix : 1;
    int rc = CLI_OK;

    do {
        args->plan.radix = radix;
        if (args->has_ranks) {
            rc = table_rows(args, out);
        }
        for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]) && !args->has_ranks; i++) {
            args->plan.ranks = ranks[i];
            rc = rc == CLI_OK ? table_rows(args, out) : rc;
        }
        radix *= 2;
    } while (rc == CLI_OK && !args->has_radix && args->alg->radix_max > 0 && radix <= 4);
    args->plan = given;
    return rc;
}

/* In Markdown: for the documentation. */
static int write_table(struct plan_args *args, FILE *out)
{
    const struct ibshift_alg *named = args->alg;
    int rc = CLI_OK;

    fputs("| plan | P | k | model | published | exact | simulated |\n"
          "|---|--:|--:|---|--:|--:|--:|\n",
          out);
    for (const struct ibshift_formula *f = ibshift_formulas; f->collective != NULL; f++) {
        int collective = ibshift_collective_find(f->collective);
        const struct ibshift_alg *alg =
            ibshift_alg_find((enum ibshift_collective)collective, f->algorithm);

        if (alg != NULL && (args->collective < 0 || args->collective == collective) &&
            (named == NULL || named == alg) && rc == CLI_OK) {
            args->alg = alg;
            rc = table_algorithm(args, out);
        }
    }
    return rc;
}

int plan_price(struct plan_args *args)
{
    FILE *out = plan_open(args);
    int rc;

    if (out == NULL) {
        return CLI_USAGE;
    }
    rc = args->has_table ? write_table(args, out) : price_all(args, out);
    return plan_close(args, rc);
}
