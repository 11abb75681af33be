/* What is said of a run while it goes on, and when it does not end as it should. */
#include "sim/cmd.h"

#include <errno.h>
#include <string.h>

const char *sim_word_of(int status)
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

void sim_failure_print(const struct sim_command *c)
{
    char link[200];

    if (c->run.status == 0) {
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
        fprintf(stderr, "ibshift %s: given up after %.3f us with ranks under way in %u job%s: %s\n",
                c->args.command, (double)c->run.queue.now / 1e6, c->run.running,
                cli_plural(c->run.running), sim_word_of(c->run.status));
    } else {
        fprintf(stderr, "ibshift %s: job %u, rank %u: %s\n", c->args.command, c->run.failed_job + 1,
                c->run.failed_rank, sim_word_of(c->run.status));
    }
}

/* For sim_run_params. */
void sim_progress_show(void *context, double share)
{
    static const char full[] = "########################################";
    int width = (int)(sizeof(full) - 1), filled = (int)(share * width);

    (void)context;
    fprintf(stderr, "\r[%-*.*s] %3.0f %%", width, filled, full, share * 100);
}

void sim_progress_clear(const struct sim_command *c)
{
    if (c->world.progress != NULL) {
        fprintf(stderr, "\r%50s\r", "");
    }
}
