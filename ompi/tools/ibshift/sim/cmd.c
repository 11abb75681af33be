/* `ibshift sim`: a collective on a fabric at work, packet by packet, run by the executor. */
#include "sim/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What `ibshift sim` says. */

static double ratio(const struct sim_command *c)
{
    return c->ideal > 0 ? (double)c->run.job[0].time / (double)c->ideal : 0;
}

static bool has_ended(const struct sim_command *c)
{
    return c->run.status == 0;
}

static void sim_print_text(const struct sim_command *c)
{
    struct sim_fabric_stats fabric = c->run.fabric->stats;
    struct sim_net_stats net = c->run.net->stats;
    char link[200];

    ibshift_link_name(c->job.fabric, c->busiest, link, sizeof(link));
    fabric_job_print(&c->job);
    printf(": %s; %s of %.0f bytes\n", c->title, c->title == c->plan_text ? "a vector" : "messages",
           c->size);
    printf("pace       %s\n", c->pace_text);
    if (has_ended(c)) {
        printf("time       %.3f us\n", (double)c->run.job[0].time / 1e6);
    }
    printf("ideal      %.3f us  (busiest link: %s)\n", (double)c->ideal / 1e6, link);
    if (has_ended(c)) {
        printf("time/ideal %.3f\n", ratio(c));
    }
    printf("messages   %" PRIu64 ", packets %" PRIu64 ", hops %" PRIu64
           ", at most %u packets at once\n",
           net.messages, fabric.packets, fabric.hops, fabric.most);
    if (net.pauses > 0) {
        printf("pauses     %" PRIu64 "\n", net.pauses);
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
    json_value(&j, "piece", "%zu", c->task.piece);
    json_value(&j, "unit", "%.6g", (double)c->unit / 1e12);
    json_value(&j, "ideal", "%.9g", (double)c->ideal / 1e12);
    if (has_ended(c)) {
        json_value(&j, "time", "%.9g", (double)c->run.job[0].time / 1e12);
        json_value(&j, "time_over_bound", "%.4f", ratio(c));
    } else {
        json_value(&j, "time", "null");
        json_value(&j, "time_over_bound", "null");
    }
    json_bool(&j, "deadlock", c->run.status == -EDEADLK);
    json_text(&j, "end", sim_word_of(c->run.status));
    json_value(&j, "messages", "%" PRIu64, net.messages);
    json_value(&j, "packets", "%" PRIu64, fabric.packets);
    json_value(&j, "hops", "%" PRIu64, fabric.hops);
    json_value(&j, "most_packets", "%u", fabric.most);
    json_value(&j, "pauses", "%" PRIu64, net.pauses);
    json_text(&j, "busiest", link);
    print_circle(c, &j);
    json_end(&j);
}

static int run(struct sim_command *c)
{
    struct ibshift_error err;
    int status = sim_prepare(c);

    if (status != CLI_OK) {
        return status;
    }
    if (sim_run_open(&c->run, &c->world, &c->task, 1, &err) != 0) {
        status = fabric_args_fail(&c->args, &err);
    }
    if (status == CLI_OK) {
        sim_run_go(&c->run);
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
        sim_failure_print(c);
    }
    sim_run_close(&c->run);
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
    if (!c.fabric.is_adaptive) {
        fabric_args_tell_adaptive(&c.args, c.job.fabric,
                                  "--adaptive simulates them; here packets follow the tables");
    }
    status = sim_lanes_take(&c);
    if (status == CLI_OK && c.pattern >= 0) {
        status = sim_traffic_curve(&c);
    } else if (status == CLI_OK && c.jobs_text != NULL) {
        status = sim_crowd(&c);
    } else {
        status = status == CLI_OK ? sim_take_sizes(&c) : status;
        status = status == CLI_OK ? sim_choose(&c) : status;
        status = status == CLI_OK ? run(&c) : status;
    }
    sim_choice_free(&c);
    free(c.lane_table);
    fabric_sl2vl_free(&c.sl2vl_tables);
    fabric_job_close(&c.job);
    return status;
}
