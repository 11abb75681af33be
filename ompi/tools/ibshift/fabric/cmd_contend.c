/* `ibshift fabric contend` and `schedule`: what the stages of a job cost on a fabric. */
#include "fabric/traffic.h"

#include <inttypes.h>
#include <string.h>

#include "fabric/matrix.h"
#include "fabric/names.h"
#include "fabric/paths/contend.h"

enum { GUILTY = 5 }; /* links that are named: the busiest */

struct contend {
    struct cli_args args;
    struct fabric_job job;
    struct fabric_matrix matrix;
    const char *order, *plan; /* as given, or NULL */
    bool schedule, json;
    const char *title; /* of what is counted */
    struct ibshift_arrangement table;
    struct ibshift_order shift;
    struct ibshift_plan_flows flows;
    uint32_t *renamed;             /* plan's rank -> member */
    struct fabric_traffic traffic; /* of a plan */
    struct ibshift_contention result;
};

/* The plan's ranks are those of the job in the order asked for. */
static struct ibshift_stage_source plan_source(struct contend *c)
{
    const struct ibshift_alg *alg;
    struct ibshift_plan plan;

    c->title = c->plan;
    c->renamed = fabric_job_members(&c->job, &c->shift);
    alg = fabric_job_plan(&c->args, &c->job, c->plan, c->renamed, &plan);
    if (ibshift_plan_flows_open(alg, &plan, c->renamed, &c->flows) != 0) {
        exit(cli_error(c->args.command, "--plan %.60s: more than %u messages", c->plan,
                       IBSHIFT_PLAN_FLOWS));
    }
    fabric_traffic_count(&c->job, fabric_tiers(&c->job), c->renamed, alg, &plan, &c->traffic);
    return c->flows.source;
}

static struct ibshift_stage_source table_source(struct contend *c)
{
    struct ibshift_error err;

    fabric_must(&c->args,
                ibshift_arrange(c->job.placement, c->job.order, c->job.order_count,
                                1u << IBSHIFT_ARRANGE_TABLE, &c->table, &err),
                &err);
    c->title = ibshift_arrange_name(c->table.kind);
    return ibshift_arrangement_source(c->job.placement, &c->table);
}

static void count_flows(struct contend *c)
{
    const struct ibshift_placement *p = c->job.placement;
    struct ibshift_stage_source source;

    if (c->schedule) {
        source = table_source(c);
    } else {
        fabric_job_shift(&c->args, &c->job, c->order, &c->shift, &c->title);
        source = c->plan != NULL ? plan_source(c)
                                 : ibshift_source_shift(&c->shift, p->ranks, p->member_of);
    }
    source.lid_offset = c->job.lid_offset;
    fabric_must(&c->args, ibshift_contend(p->paths, &source, 1, 0, &c->result),
                &(struct ibshift_error){"no memory"});
}

/* What its flows cost at worst. */
static double cost_of(const struct contend *c, uint32_t link)
{
    return c->result.worst_flows[link] * ibshift_contention_cost(c->job.placement->paths, link);
}

static bool is_busier(const struct contend *c, uint32_t link, uint32_t other)
{
    double own = cost_of(c, link), its = cost_of(c, other);

    return own > its || (own == its && c->result.total[link] > c->result.total[other]);
}

/* The busiest first; how many carry more than one flow. */
static unsigned find_guilty(const struct contend *c, uint32_t guilty[GUILTY])
{
    unsigned count = 0;

    for (uint32_t i = 0; i < c->result.links; i++) {
        unsigned at = cost_of(c, i) > 1.0001 ? count : GUILTY;

        while (at > 0 && at <= count && is_busier(c, i, guilty[at - 1])) {
            at--;
        }
        if (at < GUILTY) {
            count += count < GUILTY;
            memmove(guilty + at + 1, guilty + at, (count - at - 1) * sizeof(*guilty));
            guilty[at] = i;
        }
    }
    return count;
}

static double average_of(const struct ibshift_contention *r)
{
    return r->stages > 0 ? r->sum / r->stages : 0;
}

static void print_flows(const struct contend *c, const uint32_t *guilty, unsigned count)
{
    const struct ibshift_contention *r = &c->result;
    char link[200];

    fabric_job_print(&c->job);
    printf(": %s\n", c->title);
    printf("stages   %u\nworst    %.4g\naverage  %.4g\nsum      %.6g\nbound    %.6g", r->stages,
           r->worst, average_of(r), r->sum, r->bound);
    printf(r->bound > 0 ? "  (sum is %.3f of it)\n" : "\n", r->sum / r->bound);
    for (int cables = 1; cables < FABRIC_WAYS; cables++) {
        if (c->traffic.by_length[cables] > 0) {
            printf("%-8s %.6g over %d cable%s\n", c->traffic.unit, c->traffic.by_length[cables],
                   cables, cli_plural((unsigned)cables));
        }
    }
    for (unsigned tier = 1; tier < c->traffic.tiers; tier++) {
        printf("tier %-3u %.6g %s\n", tier, c->traffic.by_tier[tier], c->traffic.unit);
    }
    puts("\nflows on the busiest link  stages");
    for (int b = 0; b < IBSHIFT_CONTEND_BINS; b++) {
        if (r->histogram[b] > 0) {
            printf("%s%*d  %u\n", b == IBSHIFT_CONTEND_BINS - 1 ? ">=" : "  ", 23, b,
                   r->histogram[b]);
        }
    }
    puts(count == 0 ? "\nno link carries two flows at once" : "\nat worst  in all  link");
    for (unsigned i = 0; i < count; i++) {
        ibshift_contention_name(c->job.placement->paths, guilty[i], link, sizeof(link));
        printf("%8u  %6" PRIu64 "  %s\n", r->worst_flows[guilty[i]], r->total[guilty[i]], link);
    }
}

static void print_flows_json(const struct contend *c, const uint32_t *guilty, unsigned count)
{
    const struct ibshift_contention *r = &c->result;
    char text[200];
    struct json j;

    json_begin(&j, stdout);
    json_value(&j, "hosts", "%u", c->job.placement->paths->hosts);
    json_value(&j, "ranks", "%u", c->job.placement->ranks);
    json_text(&j, "what", c->title);
    json_value(&j, "stages", "%u", r->stages);
    json_value(&j, "worst", "%.6g", r->worst);
    json_value(&j, "average", "%.6g", average_of(r));
    json_value(&j, "sum", "%.9g", r->sum);
    json_value(&j, "bound", "%.9g", r->bound);
    if (c->traffic.unit != NULL) {
        json_open(&j, c->traffic.unit, '{');
        for (int cables = 1; cables < FABRIC_WAYS; cables++) {
            snprintf(text, sizeof(text), "%d", cables);
            if (c->traffic.by_length[cables] > 0) {
                json_value(&j, text, "%.9g", c->traffic.by_length[cables]);
            }
        }
        json_close(&j, '}');
        json_open(&j, "tiers", '{');
        for (unsigned tier = 1; tier < c->traffic.tiers; tier++) {
            snprintf(text, sizeof(text), "%u", tier);
            json_value(&j, text, "%.9g", c->traffic.by_tier[tier]);
        }
        json_close(&j, '}');
    }
    json_open(&j, "histogram", '{');
    for (int b = 0; b < IBSHIFT_CONTEND_BINS; b++) {
        snprintf(text, sizeof(text), "%d", b);
        if (r->histogram[b] > 0) {
            json_value(&j, text, "%u", r->histogram[b]);
        }
    }
    json_close(&j, '}');
    json_open(&j, "guilty", '[');
    for (unsigned i = 0; i < count; i++) {
        ibshift_contention_name(c->job.placement->paths, guilty[i], text, sizeof(text));
        json_open(&j, NULL, '{');
        json_text(&j, "link", text);
        json_value(&j, "worst", "%u", r->worst_flows[guilty[i]]);
        json_value(&j, "total", "%" PRIu64, r->total[guilty[i]]);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_end(&j);
}

int cmd_fabric_contend(int argc, char **argv)
{
    struct contend c = {.order = NULL};
    const struct cli_option options[] = {
        FABRIC_JOB_OPTIONS(c.job),
        FABRIC_JOB_ORDER_OPTION(c.order),
        {"--schedule", 0, CLI_FLAG, NULL, "a table of stages instead of a shift",
         .where = &c.schedule},
        {"--plan", 0, CLI_TEXT, "NAME", "the messages of COLLECTIVE/ALGORITHM[:RADIX]",
         .where = &c.plan},
        FABRIC_JOB_LEADERS_OPTION(c.job),
        FABRIC_JOB_SEGMENTS_OPTION(c.job, "1"),
        FABRIC_JOB_LID_OPTION(c.job),
        FABRIC_MATRIX_OPTIONS(c.matrix),
        cli_json_option(&c.json),
        {.name = NULL},
    };
    uint32_t guilty[GUILTY];
    unsigned count;

    c.args = fabric_args("fabric contend", options, NULL);
    cli_must(cli_parse(&c.args, argc, argv));
    if (c.args.helped) {
        return CLI_OK;
    }
    if (c.matrix.text == NULL && (c.matrix.bytes > 0 || c.matrix.certificate != NULL)) {
        return cli_error(c.args.command, "--bytes and --certificate go with --matrix");
    }
    if (c.matrix.text != NULL &&
        (c.order != NULL || c.schedule || c.plan != NULL || c.job.lid_offset > 0)) {
        return cli_error(c.args.command, "--matrix counts blocks, in any order: it takes no "
                                         "--order, --schedule, --plan or --lid-offset");
    }
    fabric_job_open(&c.args, &c.job);
    fabric_args_tell_adaptive(&c.args, c.job.fabric, FABRIC_COUNTS_TABLES);
    fabric_job_check(&c.args, &c.job, c.plan);
    fabric_job_check_lid(&c.args, &c.job);
    if (c.matrix.text != NULL) {
        int status = fabric_contend_matrix(&c.args, &c.job, &c.matrix, c.json);

        fabric_job_close(&c.job);
        return status;
    }
    if (c.job.lid_offset > 0 && (c.schedule || c.plan != NULL)) {
        return cli_error(c.args.command, "--lid-offset takes neither --schedule nor --plan");
    }
    if (c.schedule && (c.order != NULL || c.plan != NULL)) {
        return cli_error(c.args.command, "--schedule takes neither --order nor --plan");
    }
    count_flows(&c);
    count = find_guilty(&c, guilty);
    (c.json ? print_flows_json : print_flows)(&c, guilty, count);
    ibshift_contention_free(&c.result);
    ibshift_plan_flows_close(&c.flows);
    ibshift_order_free(&c.shift);
    ibshift_arrangement_free(&c.table);
    fabric_job_close(&c.job);
    return CLI_OK;
}

/* The cheapest stages of an all-to-all, and why. */

struct schedule {
    struct cli_args args;
    struct fabric_job job;
    const char *output;
    bool json;
    struct ibshift_arrangement found;
    double control; /* where steps were tried: rank order, with as many stages at once */
};

/* With several stages at once every order is cheaper: steps have a control of their own. */
static void price_control(struct schedule *s)
{
    struct ibshift_contention c;

    fabric_must(&s->args, ibshift_arrange_price(s->job.placement, NULL, s->found.together, 0, &c),
                &(struct ibshift_error){"no memory"});
    s->control = c.sum;
}

static void print_found(const struct schedule *s)
{
    const struct ibshift_arrangement *a = &s->found;
    char at_once[40];

    snprintf(at_once, sizeof(at_once), ", %u stages at once", a->together);
    fabric_job_print(&s->job);
    printf(": %s\n%s\n\n", ibshift_arrange_name(a->kind), a->reason);
    printf("stages %u, worst %.4g, sum %.6g, bound %.6g\n", a->stages, a->worst, a->cost, a->bound);
    for (int kind = 0; kind < IBSHIFT_ARRANGE_KINDS; kind++) {
        if (a->tried[kind] > 0 && a->bound > 0) {
            printf("%8.3f of the bound: %s%s\n", a->tried[kind] / a->bound,
                   ibshift_arrange_name((enum ibshift_arrange_kind)kind),
                   kind == IBSHIFT_ARRANGE_STEPS ? at_once : "");
        }
    }
    if (a->together > 0 && a->bound > 0) {
        printf("%8.3f of the bound: %s%s\n", s->control / a->bound,
               ibshift_arrange_name(IBSHIFT_ARRANGE_RANK), at_once);
    }
}

static void print_found_json(const struct schedule *s)
{
    static const char *const keys[IBSHIFT_ARRANGE_KINDS] = {"rank", "routing", "keepers", "steps",
                                                            "table"};
    const struct ibshift_arrangement *a = &s->found;
    struct json j;

    json_begin(&j, stdout);
    json_value(&j, "hosts", "%u", s->job.placement->paths->hosts);
    json_value(&j, "ranks", "%u", s->job.placement->ranks);
    json_text(&j, "kind", keys[a->kind]);
    json_value(&j, "stages", "%u", a->stages);
    json_value(&j, "worst", "%.6g", a->worst);
    json_value(&j, "sum", "%.9g", a->cost);
    json_value(&j, "bound", "%.9g", a->bound);
    json_value(&j, "lid_offset", "%u", a->lid_offset);
    json_value(&j, "share", "%.6g", a->share);
    json_open(&j, "tried", '{');
    for (int kind = 0; kind < IBSHIFT_ARRANGE_KINDS; kind++) {
        if (a->tried[kind] > 0) {
            json_value(&j, keys[kind], "%.9g", a->tried[kind]);
        }
    }
    json_close(&j, '}');
    if (a->together > 0) {
        json_value(&j, "together", "%u", a->together);
        json_value(&j, "rank_together", "%.9g", s->control);
    }
    json_text(&j, "reason", a->reason);
    json_end(&j);
}

static void write_rank(FILE *out, uint32_t rank)
{
    if (rank == IBSHIFT_NO_RANK) {
        fputs(" -", out);
    } else {
        fprintf(out, " %u", rank);
    }
}

/* A line a rank: the ranks that it sends to in stages 0, 1, ... */
static void write_table(const struct ibshift_stages *t, FILE *out)
{
    for (uint32_t r = 0; r < t->rows; r++) {
        fprintf(out, "%u:", r);
        for (uint32_t stage = 0; stage < t->stages; stage++) {
            write_rank(out, t->to[(size_t)r * t->stages + stage]);
        }
        fputc('\n', out);
    }
}

/* The hosts in their order, each once, as `ibshift fabric order` prints them. */
static void write_shift(const struct schedule *s, FILE *out)
{
    const struct ibshift_placement *p = s->job.placement;
    const struct ibshift_order *o = &s->found.shift;
    struct pool pool = {NULL};
    uint32_t *hosts = pool_new(&pool, o->places, sizeof(*hosts)), count = 0;

    for (uint32_t place = 0; place < o->places; place++) {
        uint32_t rank = o->rank_at[(size_t)place * o->slots];
        uint32_t host =
            rank == IBSHIFT_NO_RANK ? IBSHIFT_NO_HOST : p->paths->host[p->member_of[rank]];

        if (host == IBSHIFT_NO_HOST || count == 0 || host != hosts[count - 1]) {
            hosts[count++] = host;
        }
    }
    fabric_order_write(s->job.fabric, hosts, count, out);
    pool_free(&pool);
}

static int write_file(const struct schedule *s)
{
    struct output out;
    int rc = cli_output_open(s->args.command, s->output, &out);

    if (rc == CLI_OK && s->found.kind == IBSHIFT_ARRANGE_TABLE) {
        write_table(&s->found.schedule.table, out.file);
    } else if (rc == CLI_OK) {
        write_shift(s, out.file);
    }
    return rc == CLI_OK ? cli_output_close(s->args.command, s->output, &out, rc) : rc;
}

int cmd_fabric_schedule(int argc, char **argv)
{
    struct schedule s = {.output = NULL};
    const struct cli_option options[] = {
        FABRIC_JOB_OPTIONS(s.job),
        cli_output_option(&s.output, "write the table (one line per rank) or the order of hosts"),
        cli_json_option(&s.json),
        {.name = NULL},
    };
    struct ibshift_error err;
    int status = CLI_OK;

    s.args = fabric_args("fabric schedule", options, NULL);
    cli_must(cli_parse(&s.args, argc, argv));
    if (s.args.helped) {
        return CLI_OK;
    }
    fabric_job_open(&s.args, &s.job);
    fabric_args_tell_adaptive(&s.args, s.job.fabric, FABRIC_COUNTS_TABLES);
    fabric_must(&s.args,
                ibshift_arrange(s.job.placement, s.job.order, s.job.order_count,
                                IBSHIFT_ARRANGE_ALL, &s.found, &err),
                &err);
    if (s.found.together != 0) {
        price_control(&s);
    }
    status = s.output != NULL ? write_file(&s) : CLI_OK;
    if (status == CLI_OK) {
        (s.json ? print_found_json : print_found)(&s);
    }
    ibshift_arrangement_free(&s.found);
    fabric_job_close(&s.job);
    return status;
}
