/* `ibshift sim --traffic`: latency over throughput of messages by a pattern. */
#include "sim/cmd.h"

#include <math.h>
#include <stdlib.h>

#include "draw/svg.h"
#include "fabric/graph/random.h"

enum { LOADS_MAX = CHART_POINTS_MAX };

struct point {
    double load;
    struct sim_traffic_figures figures;
    double seconds; /* measured */
    bool is_stuck;  /* a deadlock */
};

struct curve {
    struct sim_command *c;
    uint32_t *member, *group;
    uint32_t count;
    struct point point[LOADS_MAX];
    int points;
    struct sim_fabric *fabric; /* of the load that runs */
    struct sim_traffic *traffic;
    struct sim_queue queue;
};

/* One rank a host, in the order asked for. */
static int list_members(struct curve *v)
{
    struct sim_command *c = v->c;
    const struct ibshift_placement *p = c->job.placement;

    fabric_job_shift(&c->args, &c->job, c->order != NULL ? c->order : "routing", &c->shift,
                     &c->title);
    if (p->ranks != p->hosts) {
        return cli_error(c->args.command, "--traffic takes one rank a host, not %u on %u", p->ranks,
                         p->hosts);
    }
    v->member = sim_zeroed(p->hosts, sizeof(*v->member));
    v->group = sim_zeroed(p->hosts, sizeof(*v->group));
    for (uint32_t slot = 0; slot < c->shift.places * c->shift.slots; slot++) {
        uint32_t rank = c->shift.rank_at[slot];

        if (rank != IBSHIFT_NO_RANK) {
            v->member[v->count++] = p->host[p->member_of[rank]];
        }
    }
    return CLI_OK;
}

/* About normal: the sum of twelve even ones has variance 1. */
static uint32_t draw_length(uint64_t *random, double mean, double deviation)
{
    double sum = -6;

    for (int i = 0; i < 12; i++) {
        sum += (double)ibshift_random_below(random, 1u << 30) / (1u << 30);
    }
    sum = mean + deviation * sum;
    return sum < 1 ? 1 : (uint32_t)(sum + 0.5);
}

/* Jobs of equal size on runs of hosts: the order is cut into pieces, the pieces are mixed, and the
 * jobs take them one after the other. Hosts that no job wants are idle. */
static void deal_jobs(struct curve *v)
{
    const struct sim_command *c = v->c;
    uint32_t pieces = 0, at = 0, busy = c->job_hosts > 0 ? c->jobs * c->job_hosts : v->count;
    uint64_t random = (uint64_t)c->seed;
    uint32_t *start = sim_zeroed(v->count + 1, sizeof(*start));
    uint32_t *turn = sim_zeroed(v->count + 1, sizeof(*turn));
    uint32_t *mixed = sim_zeroed(v->count, sizeof(*mixed));

    for (uint32_t first = 0; first < v->count; pieces++) {
        turn[pieces] = pieces;
        start[pieces] = first;
        first += draw_length(&random, c->fragment, c->fragment_deviation);
    }
    start[pieces] = v->count;
    ibshift_random_shuffle(&random, turn, pieces);
    for (uint32_t i = 0; i < pieces; i++) {
        for (uint32_t k = start[turn[i]]; k < start[turn[i] + 1]; k++) {
            v->group[at] = (uint32_t)((uint64_t)at * c->jobs / busy);
            mixed[at++] = v->member[k];
        }
    }
    free(start);
    free(turn);
    free(v->member);
    v->member = mixed;
    v->count = busy;
}

/* "0.1,0.5,0.9" */
static int take_loads(struct curve *v)
{
    const char *text = v->c->load != NULL ? v->c->load : "0.1,0.3,0.5,0.7,0.8,0.9,1";
    char *end;

    do {
        double load = strtod(text, &end);

        if (end == text || !(load > 0 && load <= 4) || (*end != ',' && *end != '\0') ||
            v->points == LOADS_MAX) {
            return cli_error(
                v->c->args.command,
                "--load %.60s: wants up to %d numbers above 0 and up to 4, with commas", v->c->load,
                LOADS_MAX);
        }
        v->point[v->points++].load = load;
        text = end + 1;
    } while (*end == ',');
    return CLI_OK;
}

static void arrived(void *context, uint32_t user, enum sim_arrival arrival)
{
    struct curve *v = context;

    (void)arrival;
    sim_traffic_arrived(v->traffic, user);
}

static void left(void *context, uint32_t user)
{
    struct curve *v = context;

    sim_traffic_left(v->traffic, user);
}

static void run_until(struct curve *v, uint64_t time)
{
    struct sim_event event;
    int kind;

    while (v->queue.now < time && sim_queue_pop(&v->queue, &event, &kind)) {
        if (kind < SIM_KINDS_FABRIC) {
            sim_fabric_event(v->fabric, kind, &event);
        } else {
            sim_traffic_event(v->traffic, &event);
        }
    }
}

/* What is still under way when the time that counts is over is of no interest. */
static void run_traffic(struct curve *v, struct point *point, const struct sim_traffic_options *o)
{
    uint32_t link;

    sim_traffic_begin(v->traffic);
    run_until(v, o->warm);
    sim_traffic_count(v->traffic);
    run_until(v, o->end);
    point->is_stuck = sim_fabric_deadlock(v->fabric, &link, 1) > 0;
    point->figures = sim_traffic_figures(v->traffic);
}

static int run_load(struct curve *v, struct point *point)
{
    const struct sim_command *c = v->c;
    struct sim_fabric_user user = {v, arrived, left};
    struct sim_traffic_options traffic = {.pattern = (enum sim_pattern)c->pattern,
                                          .load = point->load,
                                          .bytes = (uint64_t)c->size,
                                          .warm = (uint64_t)(c->warm * 1e6),
                                          .end = (uint64_t)((c->warm + c->span) * 1e6),
                                          .seed = (uint64_t)c->seed,
                                          .is_steady = c->is_steady,
                                          .takes_all_lanes = true};
    struct ibshift_error err;

    point->seconds = c->span / 1e6;
    sim_queue_init(&v->queue);
    if (sim_fabric_create(c->job.fabric, &c->fabric, &user, &v->queue, &v->fabric, &err) != 0) {
        sim_queue_free(&v->queue);
        return fabric_args_fail(&c->args, &err);
    }
    v->traffic = sim_traffic_create(c->job.fabric, &traffic, v->member, v->group, v->count,
                                    v->fabric, &v->queue);
    run_traffic(v, point, &traffic);
    sim_traffic_free(v->traffic);
    sim_fabric_free(v->fabric);
    sim_queue_free(&v->queue);
    return CLI_OK;
}

/* MB/s a host */
static double rate_of(const struct point *p, double bytes)
{
    return bytes / p->seconds / 1e6;
}

static void print_curve_text(const struct curve *v)
{
    printf("%u hosts in %u job%s: %s; messages of %.0f bytes\n", v->count, v->c->jobs,
           cli_plural(v->c->jobs), sim_pattern_names[v->c->pattern], v->c->size);
    puts("load   MB/s a host  least MB/s  latency us     longest    messages");
    for (int i = 0; i < v->points; i++) {
        const struct point *p = &v->point[i];

        printf("%-5.3g  %11.1f %11.1f %11.3f %11.3f  %10llu%s\n", p->load,
               rate_of(p, p->figures.bytes_per_host), rate_of(p, p->figures.bytes_least),
               p->figures.latency_mean / 1e6, p->figures.latency_max / 1e6,
               (unsigned long long)p->figures.messages, p->is_stuck ? "  deadlock" : "");
    }
}

static void print_curve_json(const struct curve *v)
{
    struct json j;

    json_begin(&j, stdout);
    json_value(&j, "hosts", "%u", v->count);
    json_value(&j, "jobs", "%u", v->c->jobs);
    json_text(&j, "traffic", sim_pattern_names[v->c->pattern]);
    json_value(&j, "bytes", "%.0f", v->c->size);
    json_open(&j, "points", '[');
    for (int i = 0; i < v->points; i++) {
        const struct point *p = &v->point[i];

        json_open(&j, NULL, '{');
        json_value(&j, "load", "%.6g", p->load);
        json_value(&j, "throughput", "%.6g", rate_of(p, p->figures.bytes_per_host));
        json_value(&j, "least", "%.6g", rate_of(p, p->figures.bytes_least));
        json_value(&j, "latency", "%.6g", p->figures.latency_mean / 1e6);
        json_value(&j, "longest", "%.6g", p->figures.latency_max / 1e6);
        json_value(&j, "messages", "%llu", (unsigned long long)p->figures.messages);
        json_bool(&j, "deadlock", p->is_stuck);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_end(&j);
}

static int draw_curve(const struct curve *v)
{
    double x[LOADS_MAX], y[LOADS_MAX];
    struct chart_series series = {.label = sim_pattern_names[v->c->pattern],
                                  .color = SVG_BLUE,
                                  .count = v->points,
                                  .x = x,
                                  .y = y};
    struct chart chart = {.title = "Latency over throughput (modelled)",
                          .subtitle = v->c->args.positional[0],
                          .x_title = "MB/s a host",
                          .y_title = "mean latency, us",
                          .series = &series,
                          .series_count = 1};
    struct output out;
    int status = cli_output_open(v->c->args.command, v->c->svg, &out);

    if (status != CLI_OK) {
        return status;
    }
    for (int i = 0; i < v->points; i++) {
        x[i] = rate_of(&v->point[i], v->point[i].figures.bytes_per_host);
        y[i] = v->point[i].figures.latency_mean / 1e6;
    }
    chart_write(out.file, &chart);
    return cli_output_close(v->c->args.command, v->c->svg, &out, status);
}

static int run_curve(struct curve *v)
{
    const struct sim_command *c = v->c;
    uint32_t wanted = c->job_hosts > 0 ? c->job_hosts : 2;
    int status = take_loads(v);

    status = status == CLI_OK ? list_members(v) : status;
    if (status == CLI_OK && (v->count < 2 || (uint64_t)c->jobs * wanted > v->count)) {
        status = cli_error(c->args.command, "%u jobs on %u hosts: each wants %u%s", c->jobs,
                           v->count, wanted, c->job_hosts > 0 ? "" : " at least");
    }
    if (status == CLI_OK && (c->jobs > 1 || c->job_hosts > 0)) {
        deal_jobs(v);
    }
    for (int i = 0; i < v->points && status == CLI_OK; i++) {
        status = run_load(v, &v->point[i]);
    }
    if (status == CLI_OK) {
        (c->json ? print_curve_json : print_curve_text)(v);
    }
    return status == CLI_OK && c->svg != NULL ? draw_curve(v) : status;
}

int sim_traffic_curve(struct sim_command *c)
{
    struct curve v = {.c = c};
    int status;

    if (c->job.ranks_per_host > 0 || c->plan != NULL || c->pace != NULL || c->schedule ||
        c->verify || c->background_load > 0) {
        return cli_error(
            c->args.command,
            "--traffic takes no --ranks-per-host, --plan, --schedule, --pace, --verify "
            "or --background");
    }
    status = run_curve(&v);
    free(v.member);
    free(v.group);
    return status;
}
