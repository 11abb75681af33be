/* What the ranks run and in which order: an all-to-all, a plan, or what another library does. */
#include "sim/cmd.h"

#include <stdlib.h>
#include <string.h>

#include "choose/choose.h"
#include "plan/alg_emit.h"
#include "plan/walk.h"

/*
 * `ibshift sim --as`: what other libraries do for an all-to-all of this size among so many ranks.
 * Their rules, as they stand in their sources: Open MPI 4.1.4 and 5.0.9 (coll/tuned, the fixed
 * decision), MPICH (its defaults), UCC (tl/ucp, from 2026 on).
 */

enum {
    THROTTLE = 32, /* MPICH: requests before it waits for all of them */
    KIB = 1024,
    MIB = 1024 * 1024,
};

struct choice {
    const char *method;
    const struct ibshift_alg *alg;
    uint32_t batch;  /* messages posted together, before all are waited for; 0: no such wait */
    uint32_t window; /* at once each way */
};

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    (void)rank;
    return plan->ranks;
}

/* To the left, from the right, nearest first, in batches of plan->segments: each waits for the end
 * of all messages of the one before. */
static uint32_t emit_batches(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                             struct ibshift_step *out)
{
    uint32_t to = emit_sub(rank, round, plan->ranks), from = emit_add(rank, round, plan->ranks);
    uint32_t before;

    if (round == 0) {
        emit_copy(out, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, rank, 0, 0);
        return 1;
    }
    before = (round - 1) / plan->segments * plan->segments;
    before = before > 0 ? before + 1 : 0;
    emit_recv(out, from, emit_blocks(IBSHIFT_RECV, from, 1), round, before, before);
    emit_send(out + 1, to, emit_blocks(IBSHIFT_SEND, to, 1), round, before);
    out[1].drain = before;
    return 2;
}

/* MPI_Sendrecv with the next one to the right and to the left, one after the other. */
static uint32_t emit_sendrecv(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                              struct ibshift_step *out)
{
    uint32_t to = emit_add(rank, round, plan->ranks), from = emit_sub(rank, round, plan->ranks);

    if (round == 0) {
        emit_copy(out, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, rank, 0, 0);
        return 1;
    }
    emit_recv(out, from, emit_blocks(IBSHIFT_RECV, from, 1), round, round, round);
    emit_send(out + 1, to, emit_blocks(IBSHIFT_SEND, to, 1), round, round);
    out[1].drain = round;
    return 2;
}

static const struct ibshift_alg batches = {
    .collective = IBSHIFT_ALLTOALL, .name = "batches", .rounds = rounds, .emit = emit_batches};
static const struct ibshift_alg sendrecv = {
    .collective = IBSHIFT_ALLTOALL, .name = "sendrecv", .rounds = rounds, .emit = emit_sendrecv};

static struct choice linear(uint32_t ranks)
{
    return (struct choice){.method = "linear", .alg = &batches, .window = ranks - 1};
}

static struct choice pairwise(void)
{
    return (struct choice){.method = "pairwise", .alg = &sendrecv, .window = 1};
}

static struct choice scattered(uint32_t ranks, uint32_t batch)
{
    return (struct choice){.method = "scattered",
                           .alg = &batches,
                           .batch = batch < ranks ? batch : 0,
                           .window = batch};
}

static struct choice bruck(void)
{
    return (struct choice){.method = "bruck",
                           .alg = ibshift_alg_find(IBSHIFT_ALLTOALL, "bruck"),
                           .batch = 1,
                           .window = 1};
}

/* Linear with synchronisation has no limit by default: linear again. */
static struct choice as_open_mpi(uint32_t ranks, double bytes)
{
    static const struct {
        uint32_t ranks;  /* below */
        double bruck;    /* below */
        double from, to; /* pairwise */
    } rules[] = {
        {8, 0, 512 * KIB, MIB},
        {16, 0, 0, 0},
        {64, 512, 0, 0},
        {256, KIB, 256 * KIB, 1e18},
        {512, KIB, 32 * KIB, 1e18},
        {1024, 512, 256 * KIB, 1e18},
        {2048, 512, 0, 0},
        {4096, KIB, 0, 0},
        {UINT32_MAX, 2 * KIB, 0, 0},
    };
    size_t row = 0;

    while (ranks >= rules[row].ranks) {
        row++;
    }
    return bytes < rules[row].bruck                            ? bruck()
           : bytes >= rules[row].from && bytes < rules[row].to ? pairwise()
                                                               : linear(ranks);
}

static struct choice as_mpich(uint32_t ranks, double bytes)
{
    struct choice pairs = pairwise();

    if (bytes <= 256 && ranks >= 8) {
        return bruck();
    }
    if (bytes <= 32 * KIB) {
        return scattered(ranks, THROTTLE);
    }
    pairs.alg = ibshift_alg_find(IBSHIFT_ALLTOALL, "pairwise"); /* by xor of a power of two */
    return pairs;
}

/* So many posts at once, a new one as soon as one has ended. */
static struct choice as_ucc(uint32_t ranks, double bytes)
{
    struct choice rolling = linear(ranks);
    uint32_t posts = bytes <= 64 * KIB ? 32 : bytes <= MIB ? 16 : 8;

    rolling.method = "rolling";
    rolling.window = posts < rolling.window ? posts : rolling.window;
    return rolling;
}

/* Whether there is such a peer. */
static bool choose_as(const char *name, uint32_t ranks, double bytes, struct choice *choice)
{
    unsigned batch;
    int end = 0;

    if (strcmp(name, "ompi") == 0) {
        *choice = as_open_mpi(ranks, bytes);
    } else if (strcmp(name, "mpich") == 0) {
        *choice = as_mpich(ranks, bytes);
    } else if (strcmp(name, "ucc") == 0) {
        *choice = as_ucc(ranks, bytes);
    } else if (strcmp(name, "linear") == 0) {
        *choice = linear(ranks);
    } else if (strcmp(name, "pairwise") == 0) {
        *choice = pairwise();
    } else if (sscanf(name, "scattered:%3u%n", &batch, &end) == 1 && name[end] == '\0' &&
               batch >= 1 && batch <= IBSHIFT_WINDOW_MAX) {
        *choice = scattered(ranks, batch);
    } else {
        return false;
    }
    return true;
}

int sim_peer_check(const struct sim_command *c)
{
    struct choice choice;

    if (c->as == NULL) {
        return c->place == NULL ? CLI_OK
                                : cli_error(c->args.command,
                                            "--place goes with --as: else --order says where ranks "
                                            "are in the order");
    }
    if (!choose_as(c->as, 2, 1, &choice)) {
        return cli_error(c->args.command,
                         "--as %.40s: wants ompi, mpich, ucc, linear, pairwise or scattered:W, W "
                         "from 1 to %d",
                         c->as, IBSHIFT_WINDOW_MAX);
    }
    if (c->order != NULL || c->schedule || c->plan != NULL || c->pace != NULL || c->window > 0 ||
        c->pattern >= 0) {
        return cli_error(c->args.command,
                         "--as takes no --order, --schedule, --plan, --pace, --window or "
                         "--traffic: it says what that library does");
    }
    if (c->sizes != NULL && (strcmp(c->as, "ompi") == 0 || strcmp(c->as, "mpich") == 0)) {
        return cli_error(c->args.command,
                         "--as %s is its MPI_Alltoall, whose rules go by one size: with --sizes, "
                         "linear, pairwise, ucc or scattered:W",
                         c->as);
    }
    return CLI_OK;
}

static void take_peer(struct sim_command *c)
{
    uint32_t ranks = c->job.placement->ranks;
    struct choice choice;

    choose_as(c->as, ranks, c->size, &choice);
    c->alg = choice.alg;
    c->what = (struct ibshift_plan){
        .ranks = ranks, .radix = 1, .segments = choice.batch > 0 ? choice.batch : ranks};
    c->window = choice.window > IBSHIFT_WINDOW_MAX ? IBSHIFT_WINDOW_MAX : choice.window;
    c->window = c->window < 1 ? 1 : c->window;
    snprintf(c->peer_text, sizeof(c->peer_text), "as %.16s: %s, %u at once%s", c->as, choice.method,
             c->window, choice.window > IBSHIFT_WINDOW_MAX ? " (the simulator's most)" : "");
    c->title = c->peer_text;
}

static int choose_order(struct sim_command *c)
{
    const struct ibshift_placement *p = c->job.placement;
    unsigned ways = c->schedule ? 1u << IBSHIFT_ARRANGE_TABLE : IBSHIFT_ARRANGE_ALL;
    struct ibshift_error err;

    if (c->order != NULL) {
        fabric_job_shift(&c->args, &c->job, c->order, &c->shift, &c->title);
        return CLI_OK;
    }
    if (ibshift_arrange(p, c->job.order, c->job.order_count, ways, &c->found, &err) != 0) {
        return fabric_args_fail(&c->args, &err);
    }
    c->title = ibshift_arrange_name(c->found.kind);
    return CLI_OK;
}

/* A message goes to the LID that its stage names. */
static void take_lids(struct sim_command *c)
{
    const struct ibshift_schedule *s = &c->found.schedule;
    size_t ranks = c->job.placement->ranks, cells = ranks * s->table.stages;

    if (s->lid_offsets == NULL) {
        return;
    }
    c->lid_offsets = sim_zeroed(ranks * ranks, sizeof(*c->lid_offsets));
    for (size_t at = 0; at < cells; at++) {
        if (s->table.to[at] != IBSHIFT_NO_RANK) {
            c->lid_offsets[at / s->table.stages * ranks + s->table.to[at]] = s->lid_offsets[at];
        }
    }
}

static int choose_alltoall(struct sim_command *c)
{
    char why[160];
    int status = choose_order(c);
    bool is_table = c->found.kind == IBSHIFT_ARRANGE_TABLE;

    if (status != CLI_OK) {
        return status;
    }
    c->what = (struct ibshift_plan){.ranks = c->job.placement->ranks, .segments = 1, .radix = 1};
    if (is_table) {
        take_lids(c);
        c->what.stages = &c->found.schedule.table;
    } else {
        c->what.order = c->order != NULL ? &c->shift : &c->found.shift;
    }
    c->alg = ibshift_alg_find(IBSHIFT_ALLTOALL, is_table ? "stages" : "shift");
    return ibshift_alg_check(c->alg, &c->what, why, sizeof(why)) == 0
               ? CLI_OK
               : cli_error(c->args.command, "%s", why);
}

/* Ranks sit on the hosts in the order asked for. */
static void place_ranks(struct sim_command *c, const char *order)
{
    const struct ibshift_placement *p = c->job.placement;

    fabric_job_shift(&c->args, &c->job, order, &c->shift, &c->title);
    c->members = fabric_job_members(&c->job, &c->shift);
    for (uint32_t rank = 0; rank < p->ranks; rank++) {
        c->host_of[rank] = p->host[c->members[rank]];
    }
}

/* As a job without parameters of its own takes them. */
static uint32_t choose_segments(const struct sim_command *c)
{
    const struct ibshift_question question = {.collective = c->alg->collective,
                                              .plan = &c->what,
                                              .bytes = (uint64_t)c->size,
                                              .window = SIM_WINDOW,
                                              .model = &ibshift_model_typical,
                                              .near = &ibshift_model_node,
                                              .is_brief = true,
                                              .wish = {.alg = c->alg, .radix = c->what.radix}};
    struct ibshift_answer answer = ibshift_choose_best(&question);

    return answer.best.alg == c->alg ? answer.best.segments : 1;
}

static void choose_plan(struct sim_command *c)
{
    place_ranks(c, c->order);
    c->alg = fabric_job_plan(&c->args, &c->job, c->plan, c->members, &c->what);
    if (c->job.segments == 0 && (c->alg->flags & IBSHIFT_ALG_SEGMENTS) != 0) {
        c->what.segments = choose_segments(c);
    }
    c->title = c->plan;
    if (c->what.segments > 1) {
        snprintf(c->plan_text, sizeof(c->plan_text), "%s in %u segments", c->plan,
                 c->what.segments);
        c->title = c->plan_text;
    }
}

int sim_choose(struct sim_command *c)
{
    const struct ibshift_placement *p = c->job.placement;

    fabric_job_check_lid(&c->args, &c->job);
    if (c->job.lid_offset > 0 && c->order == NULL && c->plan == NULL && c->as == NULL) {
        return cli_error(c->args.command,
                         "--lid-offset goes with --order, --plan or --as: an order "
                         "that is searched names LIDs itself");
    }
    c->host_of = sim_zeroed(p->ranks, sizeof(*c->host_of));
    for (uint32_t r = 0; r < p->ranks; r++) {
        c->host_of[r] = p->host[p->member_of[r]];
    }
    if (c->as == NULL && c->plan == NULL) {
        return choose_alltoall(c);
    }
    if (c->as != NULL) {
        place_ranks(c, c->place);
        take_peer(c);
    } else {
        choose_plan(c);
    }
    return CLI_OK;
}

void sim_choice_free(struct sim_command *c)
{
    ibshift_order_free(&c->shift);
    ibshift_arrangement_free(&c->found);
    free(c->host_of);
    free(c->lid_offsets);
    sim_sizes_free(c->unequal);
}
