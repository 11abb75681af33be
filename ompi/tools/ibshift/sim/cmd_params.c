/* What is run: a job's collective with its pace, and the fabric around it. */
#include "sim/cmd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/shape/shape.h"

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
        .has_circle = c->found.has_circle,
        .window = SIM_WINDOW,
        .has_free_steps = (c->alg->flags & IBSHIFT_ALG_FREE) != 0,
        .is_attended = !c->unattended};
    const char *reason;

    ibshift_pace_choose(&facts, &c->paced, &reason);
}

static int take_pace(struct sim_command *c)
{
    /* A job's own, unless the window is what is tried. */
    const char *usual = c->window > 0 ? "none" : "auto";
    const char *pace = c->pace != NULL ? c->pace : usual;
    char why[160];

    c->task.window = c->window > 0 ? c->window : SIM_WINDOW;
    c->task.eager = (size_t)c->eager;
    if (strcmp(pace, "auto") == 0) {
        choose_pace(c);
    } else if (ibshift_pace_parse(pace, &c->paced, why, sizeof(why)) != 0) {
        return cli_error(c->args.command, "--pace: %s", why);
    }
    ibshift_pace_format(&c->paced, c->pace_text, sizeof(c->pace_text));
    c->what.in_sequence =
        ibshift_pace_is_single(&c->paced) && c->found.kind != IBSHIFT_ARRANGE_STEPS;
    if (c->paced.kind == IBSHIFT_PACE_WINDOW) {
        c->task.window = c->paced.window;
        c->task.piece = c->paced.piece;
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
static void set_units(struct sim_command *c)
{
    struct sim_net_options *net = &c->world.net;
    double unit = (double)c->unit;

    *net = c->net;
    net->control = (uint64_t)(c->control * unit);
    net->jitter = (uint64_t)(c->jitter * unit);
    net->skew = (uint64_t)(c->skew * unit);
    net->node_of = c->job.node_of;
    net->pause_share = c->rare;
    net->pause = (uint64_t)(c->rare_length * unit);
}

int sim_prepare(struct sim_command *c)
{
    uint64_t rounds = c->alg->rounds(&c->what, 0), slots = c->job.placement->slots, latest;
    bool is_searched = c->order == NULL && c->plan == NULL && c->as == NULL;

    c->unit = find_unit(c);
    c->task =
        (struct sim_job_params){.host_of = c->host_of,
                                .ranks = c->job.placement->ranks,
                                .alg = c->alg,
                                .plan = &c->what,
                                .bytes = (size_t)c->size,
                                .sizes = c->unequal,
                                .verify = c->verify,
                                .lid_offsets = c->lid_offsets,
                                .lid_offset = is_searched ? c->found.lid_offset : c->job.lid_offset,
                                .start = (uint64_t)(c->start * 1e6),
                                .calls = c->calls};
    c->world = (struct sim_run_params){.graph = c->job.fabric, .fabric = c->fabric};
    set_units(c);
    c->world.fabric.bins = c->svg != NULL ? 256 : 0;
    /* A leader's messages are those of all ranks of its host. */
    c->world.limit = times(times(rounds + c->task.ranks, slots), times(c->unit, 100));
    c->world.limit = times(c->world.limit, c->calls);
    latest = c->world.net.skew + c->task.start;
    c->world.limit += c->world.limit < UINT64_MAX - latest ? latest : 0;
    if (!c->quiet && isatty(STDERR_FILENO)) {
        c->world.progress = sim_progress_show;
        c->world.progress_context = c;
    }
    return take_pace(c);
}
