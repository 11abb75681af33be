/* What `ibshift sim` says. */
#include "cmd_sim.h"

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

static void print_circle(const struct sim_command *c)
{
    char link[200];

    printf(",\n \"circle\": [");
    for (int i = 0; i < c->run.circle_length; i++) {
        ibshift_link_name(c->job.fabric, c->run.circle[i], link, sizeof(link));
        printf("%s", i > 0 ? ", " : "");
        fabric_json_string(stdout, link);
    }
    printf("]");
}

void sim_print_json(const struct sim_command *c)
{
    struct sim_fabric_stats fabric = sim_fabric_stats(c->run.fabric);
    struct sim_net_stats net = sim_net_stats(c->run.net);
    struct sim_job_pacing pacing = sim_job_pacing(&c->run);
    char link[200];

    ibshift_link_name(c->job.fabric, c->busiest, link, sizeof(link));
    printf("{\"hosts\": %u, \"ranks\": %u, \"what\": ", c->job.placement->hosts,
           c->job.placement->ranks);
    fabric_json_string(stdout, c->title);
    printf(", \"pace\": ");
    fabric_json_string(stdout, c->pace_text);
    printf(", \"seed\": %.0f,\n \"bytes\": %.0f, \"unit\": %.6g, \"ideal\": %.9g, ", c->number.seed,
           c->number.size, (double)c->unit / 1e12, (double)c->ideal / 1e12);
    if (has_ended(c)) {
        printf("\"time\": %.9g, \"time_over_bound\": %.4f", (double)c->run.time / 1e12, ratio(c));
    } else {
        printf("\"time\": null, \"time_over_bound\": null");
    }
    printf(", \"deadlock\": %s,\n \"end\": ", c->run.status == -EDEADLK ? "true" : "false");
    fabric_json_string(stdout, word_of(c->run.status));
    printf(", \"messages\": %" PRIu64 ", \"packets\": %" PRIu64 ", \"hops\": %" PRIu64
           ", \"most_packets\": %u, \"pauses\": %" PRIu64 ", \"left\": %" PRIu64
           ", \"jumps\": %" PRIu64 ",\n \"clock_error\": %" PRIu64 ", \"clock_told\": %" PRIu64
           ", \"busiest\": ",
           net.messages, fabric.packets, fabric.hops, fabric.most, net.pauses, pacing.left,
           pacing.jumps, pacing.clock_error, pacing.clock_told);
    fabric_json_string(stdout, link);
    print_circle(c);
    puts("}");
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
