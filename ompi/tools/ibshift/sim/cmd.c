/* `ibshift sim`: a collective on a fabric at work, packet by packet, run by the executor. */
#include "sim/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/pace/pace.h"
#include "fabric/shape/shape.h"

/* What `ibshift sim` says. */

static double ratio(const struct sim_command *c)
{
    return c->ideal > 0 ? (double)c->run.time / (double)c->ideal : 0;
}

static bool has_ended(const struct sim_command *c)
{
    return c->run.status == 0;
}

static void sim_print_text(const struct sim_command *c)
{
    struct sim_fabric_stats fabric = c->run.fabric->stats;
    struct sim_net_stats net = c->run.net->stats;
    struct sim_job_pacing pacing = sim_job_pacing(&c->run);
    char link[200];

    ibshift_link_name(c->job.fabric, c->busiest, link, sizeof(link));
    fabric_job_print(&c->job);
    printf(": %s; %s of %.0f bytes\n", c->title, c->title == c->plan_text ? "a vector" : "messages",
           c->size);
    printf("pace       %s\n", c->pace_text);
    if (has_ended(c)) {
        printf("time       %.3f us\n", (double)c->run.time / 1e6);
    }
    printf("ideal      %.3f us  (busiest link: %s)\n", (double)c->ideal / 1e6, link);
    if (has_ended(c)) {
        printf("time/ideal %.3f\n", ratio(c));
    }
    printf("messages   %" PRIu64 ", packets %" PRIu64 ", hops %" PRIu64
           ", at most %u packets at once\n",
           net.messages, fabric.packets, fabric.hops, fabric.most);
    if (pacing.left + pacing.jumps > 0) {
        printf("left       %" PRIu64 " messages missed their slots, %" PRIu64
               " ranks gave the clock up\n",
               pacing.left, pacing.jumps);
    }
    if (c->compare) {
        printf("clocks     off by %" PRIu64 " ns at most at the end; within %" PRIu64
               " ns of rank 0's by their comparison\n",
               pacing.clock_error, pacing.clock_told);
    }
    if (net.pauses > 0) {
        printf("pauses     %" PRIu64 "\n", net.pauses);
    }
}

static const char *word_of(int status)
{
    switch (status) {
    case 0:
        return "ended";
    case -EDEADLK:
        return "deadlock";
    case -EDOM:
        return "ranks wait for each other";
    case -ETIMEDOUT:
        return "limit";
    case -EBADMSG:
        return "wrong bytes";
    default:
        return strerror(-status);
    }
}

static void print_circle(const struct sim_command *c, struct json *j)
{
    char link[200];

    json_open(j, "circle", '[');
    for (int i = 0; i < c->run.circle_length; i++) {
        ibshift_link_name(c->job.fabric, c->run.circle[i], link, sizeof(link));
        json_text(j, NULL, link);
    }
    json_close(j, ']');
}

static void sim_print_json(const struct sim_command *c)
{
    struct sim_fabric_stats fabric = c->run.fabric->stats;
    struct sim_net_stats net = c->run.net->stats;
    struct sim_job_pacing pacing = sim_job_pacing(&c->run);
    char link[200];
    struct json j;

    ibshift_link_name(c->job.fabric, c->busiest, link, sizeof(link));
    json_begin(&j, stdout);
    json_value(&j, "hosts", "%u", c->job.placement->hosts);
    json_value(&j, "ranks", "%u", c->job.placement->ranks);
    json_text(&j, "what", c->title);
    json_value(&j, "segments", "%u", c->plan != NULL ? c->what.segments : 1);
    json_text(&j, "pace", c->pace_text);
    json_value(&j, "seed", "%.0f", c->seed);
    json_value(&j, "bytes", "%.0f", c->size);
    json_value(&j, "burst", "%u", c->fabric.burst);
    json_value(&j, "piece", "%zu", c->run.params.piece);
    json_text(&j, "arbiter", sim_arbiter_names[c->fabric.arbiter]);
    json_value(&j, "unit", "%.6g", (double)c->unit / 1e12);
    json_value(&j, "ideal", "%.9g", (double)c->ideal / 1e12);
    if (has_ended(c)) {
        json_value(&j, "time", "%.9g", (double)c->run.time / 1e12);
        json_value(&j, "time_over_bound", "%.4f", ratio(c));
    } else {
        json_value(&j, "time", "null");
        json_value(&j, "time_over_bound", "null");
    }
    json_bool(&j, "deadlock", c->run.status == -EDEADLK);
    json_text(&j, "end", word_of(c->run.status));
    json_value(&j, "messages", "%" PRIu64, net.messages);
    json_value(&j, "packets", "%" PRIu64, fabric.packets);
    json_value(&j, "hops", "%" PRIu64, fabric.hops);
    json_value(&j, "most_packets", "%u", fabric.most);
    json_value(&j, "pauses", "%" PRIu64, net.pauses);
    json_value(&j, "left", "%" PRIu64, pacing.left);
    json_value(&j, "jumps", "%" PRIu64, pacing.jumps);
    json_value(&j, "clock_error", "%" PRIu64, pacing.clock_error);
    json_value(&j, "clock_told", "%" PRIu64, pacing.clock_told);
    json_text(&j, "busiest", link);
    print_circle(c, &j);
    json_end(&j);
}

/* Why the run did not end as it should: one line on stderr. */
static void sim_print_failure(const struct sim_command *c)
{
    char link[200];

    if (has_ended(c)) {
        return;
    }
    if (c->run.status == -EDEADLK) {
        fprintf(stderr,
                "ibshift sim: deadlock after %.3f us: packets wait for each other's places in a "
                "circle of %d links:\n",
                (double)c->run.queue.now / 1e6, c->run.circle_length);
        for (int i = 0; i < c->run.circle_length; i++) {
            ibshift_link_name(c->job.fabric, c->run.circle[i], link, sizeof(link));
            fprintf(stderr, "  %s\n", link);
        }
    } else if (c->run.status == -EDOM || c->run.status == -ETIMEDOUT) {
        fprintf(stderr, "ibshift sim: given up after %.3f us with %u ranks under way: %s\n",
                (double)c->run.queue.now / 1e6, c->run.running, word_of(c->run.status));
    } else {
        fprintf(stderr, "ibshift sim: rank %u: %s\n", c->run.failed_rank, word_of(c->run.status));
    }
}

/* For sim_job_params. */
static void sim_progress_show(void *context, double share)
{
    static const char full[] = "########################################";
    int width = (int)(sizeof(full) - 1), filled = (int)(share * width);

    (void)context;
    fprintf(stderr, "\r[%-*.*s] %3.0f %%", width, filled, full, share * 100);
}

static void sim_progress_clear(const struct sim_command *c)
{
    if (c->run.params.progress != NULL) {
        fprintf(stderr, "\r%50s\r", "");
    }
}

/* Of a vector in segments, one of them. */
static double message_size(const struct sim_command *c)
{
    return c->plan != NULL ? ceil(c->size / c->what.segments) : c->size;
}

/* As the component chooses for a blocking call on this fabric. */
static void choose_pace(struct sim_command *c)
{
    struct ibshift_pace_facts facts = {
        .bytes = c->unequal != NULL ? 0 : (uint64_t)c->size,
        .eager = (uint64_t)c->eager,
        .kib = (double)c->unit / 1000 / message_size(c) * 1024,
        .latency = 4.0 * (c->flight + c->routing),
        .post = 2.0 * c->overhead, /* and the completion of the piece before */
        .ranks = c->job.placement->ranks,
        .on_host = c->job.placement->slots,
        .all_hosts = c->job.fabric->host_count,
        .is_adaptive = c->fabric.is_adaptive,
        .ring = ibshift_shape_ring(c->job.fabric),
        .share = (uint32_t)(1000 * c->found.share),
        .burst = c->knows_burst ? c->fabric.burst * (uint64_t)c->fabric.mtu : 0,
        .window = SIM_WINDOW,
        .has_free_steps = (c->alg->flags & IBSHIFT_ALG_FREE) != 0,
        .is_attended = !c->unattended};
    const char *reason;

    ibshift_pace_choose(&facts, &c->paced, &reason);
}

/* What the pace would measure or be told on a cluster, the simulation knows. */
static int take_pace(struct sim_command *c, struct sim_job_params *params)
{
    /* A job's own, unless the window is what is tried. */
    const char *usual = c->window > 0 ? "none" : "auto";
    const char *pace = c->pace != NULL ? c->pace : usual;
    char why[160];

    params->window = c->window > 0 ? c->window : SIM_WINDOW;
    params->net.max_eager = (size_t)c->eager;
    if (strcmp(pace, "auto") == 0) {
        choose_pace(c);
    } else if (ibshift_pace_parse(pace, &c->paced, why, sizeof(why)) != 0) {
        return cli_error(c->args.command, "--pace: %s", why);
    }
    if (c->compare && c->paced.kind != IBSHIFT_PACE_CLK) {
        return cli_error(c->args.command, "--compare-clocks wants --pace clk");
    }
    ibshift_pace_format(&c->paced, c->pace_text, sizeof(c->pace_text));
    c->what.in_sequence =
        ibshift_pace_is_single(&c->paced) && c->found.kind != IBSHIFT_ARRANGE_STEPS;
    if (c->paced.kind == IBSHIFT_PACE_WINDOW) {
        params->window = c->paced.window;
        params->piece = c->paced.piece;
    } else if (ibshift_pace_is_held(&c->paced)) {
        c->paced.sync = c->compare ? 1 : 0;
        c->paced.unit = c->unit / 1000;
        c->paced.delay = params->net.control / 1000;
        params->pace = &c->paced;
    }
    return CLI_OK;
}

/* The time of a message where nothing else is, on the fastest of the hosts' cables. */
static uint64_t find_unit(const struct sim_command *c)
{
    uint64_t least = SIM_NEVER;

    for (uint32_t i = 0; i < c->job.placement->hosts; i++) {
        uint32_t port = c->job.fabric->hosts[c->job.placement->host[i]];
        uint64_t time =
            sim_message_time(c->job.fabric, &c->fabric, port, (uint64_t)message_size(c));

        least = time < least ? time : least;
    }
    return least;
}

/* Without end where it does not fit. */
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* What was given in times of a message. */
static void set_units(const struct sim_command *c, struct sim_net_options *net)
{
    double unit = (double)c->unit;

    *net = c->net;
    net->control = (uint64_t)(c->control * unit);
    net->jitter = (uint64_t)(c->jitter * unit);
    net->skew = (uint64_t)(c->skew * unit);
    net->pause_share = c->rare;
    net->pause = (uint64_t)(c->rare_length * unit);
}

static int set_params(struct sim_command *c, struct sim_job_params *params)
{
    uint64_t rounds = c->alg->rounds(&c->what, 0), slots = c->job.placement->slots;

    c->unit = find_unit(c);
    *params = (struct sim_job_params){.graph = c->job.fabric,
                                      .host_of = c->host_of,
                                      .ranks = c->job.placement->ranks,
                                      .alg = c->alg,
                                      .plan = &c->what,
                                      .bytes = (size_t)c->size,
                                      .sizes = c->unequal,
                                      .verify = c->verify,
                                      .fabric = c->fabric};
    set_units(c, &params->net);
    params->fabric.bins = c->svg != NULL ? 256 : 0;
    /* A leader's messages are those of all ranks of its host. */
    params->limit = times(times(rounds + params->ranks, slots), times(c->unit, 100));
    params->limit += params->limit < UINT64_MAX - params->net.skew ? params->net.skew : 0;
    if (!c->quiet && isatty(STDERR_FILENO)) {
        params->progress = sim_progress_show;
        params->progress_context = c;
    }
    return take_pace(c, params);
}

/* The simulated fabric follows the tables without looking, so that every route must exist. */
static int check_others(struct sim_command *c, uint32_t count)
{
    struct ibshift_paths *paths;
    struct ibshift_error err;
    int rc = ibshift_paths_build_base(c->job.fabric, c->others, count, &paths, &err);

    if (rc != 0) {
        return cli_error(c->args.command, "--background: %s", err.text);
    }
    ibshift_paths_free(paths);
    return CLI_OK;
}

/* "0.3:65536": the hosts that are not the job's. */
static int take_background(struct sim_command *c, struct sim_job_params *params)
{
    const struct ibshift_placement *p = c->job.placement;
    uint32_t count = 0;

    if (c->background_load <= 0) {
        return CLI_OK;
    }
    c->others = sim_zeroed(c->job.fabric->host_count, sizeof(*c->others));
    for (uint32_t h = 0; h < c->job.fabric->host_count; h++) {
        if (p->member_at[h] == IBSHIFT_NO_HOST) {
            c->others[count++] = h;
        }
    }
    if (count < 2) {
        return cli_error(c->args.command, "--background: the job has all hosts but %u", count);
    }
    params->background = (struct sim_traffic_options){.pattern = SIM_RANDOM,
                                                      .load = c->background_load,
                                                      .bytes = (uint64_t)c->background_bytes,
                                                      .end = SIM_NEVER,
                                                      .seed = (uint64_t)c->seed};
    params->others = c->others;
    params->other_count = count;
    return check_others(c, count);
}

static void suggest(const struct sim_command *c, int status)
{
    if (status != CLI_OK || c->json || c->plan != NULL || c->as != NULL) {
        return;
    }
    fabric_job_next(&c->args, &c->job, "sim", " --place random:1 --as ompi --svg ompi.svg",
                    "what Open MPI does from ranks at random places; --as mpich and ucc as well");
}

static int run(struct sim_command *c)
{
    struct sim_job_params params;
    struct ibshift_error err;
    int status = set_params(c, &params);

    status = status == CLI_OK ? take_background(c, &params) : status;
    if (status != CLI_OK) {
        return status;
    }
    if (sim_job_open(&c->run, &params, &err) != 0) {
        status = fabric_args_fail(&c->args, &err);
    }
    if (status == CLI_OK) {
        sim_job_run(&c->run);
        sim_progress_clear(c);
        status = sim_ideal_find(c);
    }
    if (status == CLI_OK && c->run.status != 0) {
        status = CLI_FAILED;
    }
    if (status == CLI_OK && c->svg != NULL) {
        status = sim_draw_use(c, c->svg);
    }
    if (status != CLI_USAGE) {
        (c->json ? sim_print_json : sim_print_text)(c);
        sim_print_failure(c);
        suggest(c, status);
    }
    sim_job_close(&c->run);
    return status;
}

int cmd_sim(int argc, char **argv)
{
    struct sim_command c;
    int status = sim_options_parse(&c, argc, argv);

    if (status != CLI_OK || c.args.helped) {
        return status;
    }
    if (c.schedule && (c.order != NULL || c.plan != NULL)) {
        return cli_error(c.args.command, "--schedule takes neither --order nor --plan");
    }
    cli_must(sim_peer_check(&c));
    fabric_job_check(&c.args, &c.job, c.plan);
    fabric_job_open(&c.args, &c.job);
    status = sim_lanes_take(&c);
    if (status == CLI_OK && c.pattern >= 0) {
        status = sim_traffic_curve(&c);
    } else {
        status = status == CLI_OK ? sim_sizes_take(&c) : status;
        status = status == CLI_OK ? sim_choose(&c) : status;
        status = status == CLI_OK ? run(&c) : status;
    }
    ibshift_order_free(&c.shift);
    ibshift_arrangement_free(&c.found);
    free(c.host_of);
    free(c.lane_table);
    fabric_sl2vl_free(&c.sl2vl_tables);
    free(c.others);
    sim_sizes_free(c.unequal);
    fabric_job_close(&c.job);
    return status;
}
