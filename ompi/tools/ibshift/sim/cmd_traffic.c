/* `ibshift sim --traffic`: latency over throughput of messages by a pattern. */
#include "sim/cmd.h"

#include <math.h>
#include <stdlib.h>

enum { LOADS_MAX = 32 };

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

static void arrived(void *context, uint32_t user)
{
    struct curve *v = context;

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

static int run_curve(struct curve *v)
{
    const struct sim_command *c = v->c;
    int status = take_loads(v);

    status = status == CLI_OK ? sim_deal(v->c, &v->member, &v->count) : status;
    v->group = sim_zeroed(v->count, sizeof(*v->group));
    for (uint32_t i = 0; i < v->count; i++) {
        v->group[i] = (uint32_t)((uint64_t)i * c->jobs / v->count);
    }
    for (int i = 0; i < v->points && status == CLI_OK; i++) {
        status = run_load(v, &v->point[i]);
    }
    if (status == CLI_OK) {
        (c->json ? print_curve_json : print_curve_text)(v);
    }
    return status;
}

int sim_traffic_curve(struct sim_command *c)
{
    struct curve v = {.c = c};
    int status;

    if (c->job.ranks_per_host > 0 || c->plan != NULL || c->pace != NULL || c->schedule ||
        c->verify || c->svg != NULL || c->jobs_file != NULL) {
        return cli_error(
            c->args.command,
            "--traffic takes no --ranks-per-host, --plan, --schedule, --pace, --verify, --svg "
            "or --jobs FILE");
    }
    status = run_curve(&v);
    free(v.member);
    free(v.group);
    return status;
}
