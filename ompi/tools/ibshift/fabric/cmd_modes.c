/* `ibshift fabric modes`: what each LID offset gives the hosts of a job. */
#include "fabric/cmd_job.h"

#include "fabric/paths/contend.h"

enum { MODES_MAX = 1 << IBSHIFT_LMC_MAX };

struct modes {
    struct cli_args args;
    struct fabric_job job;
    const char *order, *title;
    bool is_json;
    uint32_t count, best;
    double bound; /* of any mixture of LIDs */
    struct ibshift_contention mode[MODES_MAX];
};

static void count_modes(struct modes *m)
{
    const struct ibshift_placement *p = m->job.placement;
    struct ibshift_order shift = {.rank_at = NULL};
    struct ibshift_stage_source source;
    uint32_t link;

    fabric_job_shift(&m->args, &m->job, m->order != NULL ? m->order : "routing", &shift, &m->title);
    source = ibshift_source_shift(&shift, p->ranks, p->member_of);
    m->count = ibshift_paths_modes(p->paths);
    for (; source.lid_offset < m->count; source.lid_offset++) {
        struct ibshift_contention *mode = &m->mode[source.lid_offset];

        fabric_must(&m->args, ibshift_contend(p->paths, &source, 1, 0, mode),
                    &(struct ibshift_error){"no memory"});
        ibshift_contention_free(mode);
        m->best = mode->sum < m->mode[m->best].sum ? source.lid_offset : m->best;
    }
    fabric_must(&m->args,
                ibshift_alltoall_bound(p->paths, p->ranks, p->member_of, &m->bound, &link),
                &(struct ibshift_error){"no memory"});
    ibshift_order_free(&shift);
}

static double average_of(const struct ibshift_contention *mode)
{
    return mode->stages > 0 ? mode->sum / mode->stages : 0;
}

static void print_text(const struct modes *m)
{
    fabric_job_print(&m->job);
    printf(": %s\n%u LID%s per host; bound of all together %.6g\n\n", m->title, m->count,
           cli_plural(m->count), m->bound);
    puts("LID offset  worst  average        sum      bound");
    for (uint32_t i = 0; i < m->count; i++) {
        const struct ibshift_contention *mode = &m->mode[i];

        printf("%10u %6.4g %8.4g %10.6g %10.6g%s\n", i, mode->worst, average_of(mode), mode->sum,
               mode->bound, i == m->best && m->count > 1 ? "  least" : "");
    }
}

static void print_json(const struct modes *m)
{
    struct json j;

    json_begin(&j, stdout);
    json_value(&j, "hosts", "%u", m->job.placement->hosts);
    json_value(&j, "ranks", "%u", m->job.placement->ranks);
    json_text(&j, "what", m->title);
    json_value(&j, "bound", "%.9g", m->bound);
    json_value(&j, "least", "%u", m->best);
    json_open(&j, "modes", '[');
    for (uint32_t i = 0; i < m->count; i++) {
        const struct ibshift_contention *mode = &m->mode[i];

        json_open(&j, NULL, '{');
        json_value(&j, "lid_offset", "%u", i);
        json_value(&j, "worst", "%.6g", mode->worst);
        json_value(&j, "average", "%.6g", average_of(mode));
        json_value(&j, "sum", "%.9g", mode->sum);
        json_value(&j, "bound", "%.9g", mode->bound);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_end(&j);
}

int cmd_fabric_modes(int argc, char **argv)
{
    struct modes m = {.order = NULL};
    const struct cli_option options[] = {
        FABRIC_JOB_OPTIONS(m.job),
        {"--order", 0, CLI_TEXT, "ORDER",
         "rank, routing, keepers, random:SEED or a FILE of hosts (default: routing)",
         .where = &m.order},
        cli_json_option(&m.is_json),
        {.name = NULL},
    };

    m.args = fabric_args("fabric modes", options, NULL);
    cli_must(cli_parse(&m.args, argc, argv));
    if (m.args.helped) {
        return CLI_OK;
    }
    fabric_job_open(&m.args, &m.job);
    fabric_args_tell_adaptive(&m.args, m.job.fabric, FABRIC_COUNTS_TABLES);
    count_modes(&m);
    (m.is_json ? print_json : print_text)(&m);
    fabric_job_close(&m.job);
    return CLI_OK;
}
