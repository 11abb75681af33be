/* What `ibshift sim` says. */
#include "sim/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static double ratio(const struct sim_command *c)
{
    return c->ideal > 0 ? (double)c->run.time / (double)c->ideal : 0;
}

static bool has_ended(const struct sim_command *c)
{
    return c->run.status == 0;
}

void sim_print_text(const struct sim_command *c)
{
    struct sim_fabric_stats fabric = sim_fabric_stats(c->run.fabric);
    struct sim_net_stats net = sim_net_stats(c->run.net);
    struct sim_job_pacing pacing = sim_job_pacing(&c->run);
    char link[200];

    ibshift_link_name(c->job.fabric, c->busiest, link, sizeof(link));
    printf("%u ranks on %u hosts: %s; messages of %.0f bytes\n", c->job.placement->ranks,
           c->job.placement->hosts, c->title, c->number.size);
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

void sim_print_json(const struct sim_command *c)
{
    struct sim_fabric_stats fabric = sim_fabric_stats(c->run.fabric);
    struct sim_net_stats net = sim_net_stats(c->run.net);
    struct sim_job_pacing pacing = sim_job_pacing(&c->run);
    char link[200];
    struct json j;

    ibshift_link_name(c->job.fabric, c->busiest, link, sizeof(link));
    json_begin(&j, stdout);
    json_value(&j, "hosts", "%u", c->job.placement->hosts);
    json_value(&j, "ranks", "%u", c->job.placement->ranks);
    json_text(&j, "what", c->title);
    json_text(&j, "pace", c->pace_text);
    json_value(&j, "seed", "%.0f", c->number.seed);
    json_value(&j, "bytes", "%.0f", c->number.size);
    json_value(&j, "burst", "%u", c->burst_packets);
    json_value(&j, "piece", "%zu", c->run.params.piece);
    json_text(&j, "arbiter", sim_arbiter_names[c->switches]);
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

void sim_print_csv(const struct sim_command *c)
{
    struct sim_fabric_stats fabric = sim_fabric_stats(c->run.fabric);
    struct sim_net_stats net = sim_net_stats(c->run.net);

    puts("hosts,ranks,what,pace,seed,bytes,ideal_s,time_s,time_over_bound,end,messages,packets,"
         "hops");
    printf("%u,%u,%s,%s,%.0f,%.0f,%.9g,", c->job.placement->hosts, c->job.placement->ranks,
           c->title, c->pace_text, c->number.seed, c->number.size, (double)c->ideal / 1e12);
    if (has_ended(c)) {
        printf("%.9g,%.4f,", (double)c->run.time / 1e12, ratio(c));
    } else {
        printf(",,");
    }
    printf("%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", word_of(c->run.status), net.messages,
           fabric.packets, fabric.hops);
}

void sim_print_failure(const struct sim_command *c)
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

void sim_progress_show(void *context, double share)
{
    static const char full[] = "########################################";
    int width = (int)(sizeof(full) - 1), filled = (int)(share * width);

    (void)context;
    fprintf(stderr, "\r[%-*.*s] %3.0f %%", width, filled, full, share * 100);
}

void sim_progress_clear(const struct sim_command *c)
{
    if (c->run.params.progress != NULL) {
        fprintf(stderr, "\r%50s\r", "");
    }
}
