/* `ibshift fabric schedule`: the cheapest way through an all-to-all, and why. */
#include "fabric/cmd_job.h"
#include "fabric/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct schedule {
    struct cli_args args;
    struct fabric_job job;
    const char *output;
    bool json;
    struct ibshift_arrangement found;
};

static void print_text(const struct schedule *s)
{
    const struct ibshift_arrangement *a = &s->found;

    printf("%u ranks on %u hosts: %s\n%s\n\n", s->job.placement->ranks,
           s->job.placement->paths->hosts, ibshift_way_name(a->way), a->reason);
    printf("stages %u, worst %.4g, sum %.6g, bound %.6g\n", a->stages, a->worst, a->cost, a->bound);
    for (int way = 0; way < IBSHIFT_WAYS; way++) {
        if (a->tried[way] > 0 && a->bound > 0) {
            printf("%8.3f of the bound: %s\n", a->tried[way] / a->bound,
                   ibshift_way_name((enum ibshift_way)way));
        }
    }
}

static void print_json(const struct schedule *s)
{
    static const char *const keys[IBSHIFT_WAYS] = {"rank", "routing", "keepers", "table"};
    const struct ibshift_arrangement *a = &s->found;
    struct json j;

    json_begin(&j, stdout);
    json_value(&j, "hosts", "%u", s->job.placement->paths->hosts);
    json_value(&j, "ranks", "%u", s->job.placement->ranks);
    json_text(&j, "way", keys[a->way]);
    json_value(&j, "stages", "%u", a->stages);
    json_value(&j, "worst", "%.6g", a->worst);
    json_value(&j, "sum", "%.9g", a->cost);
    json_value(&j, "bound", "%.9g", a->bound);
    json_value(&j, "share", "%.6g", a->share);
    json_open(&j, "tried", '{');
    for (int way = 0; way < IBSHIFT_WAYS; way++) {
        if (a->tried[way] > 0) {
            json_value(&j, keys[way], "%.9g", a->tried[way]);
        }
    }
    json_close(&j, '}');
    json_text(&j, "reason", a->reason);
    json_end(&j);
}

static void write_rank(FILE *out, uint32_t rank)
{
    if (rank == IBSHIFT_NO_RANK) {
        fputs(" -", out);
    } else {
        fprintf(out, " %u", rank);
    }
}

/* A table: a line a rank, the ranks that it sends to in stages 0, 1, ... A shift: the hosts in
 * their order, as `ibshift fabric order` prints them. */
static void write_found(const struct schedule *s, const struct fabric_names *names, FILE *out)
{
    const struct ibshift_placement *p = s->job.placement;
    const struct ibshift_fabric *f = s->job.fabric;
    const struct ibshift_order *o = &s->found.seats.order;
    const struct ibshift_stages *t = &s->found.schedule.table;
    char name[FABRIC_NAME_SIZE];

    for (uint32_t r = 0; s->found.way == IBSHIFT_WAY_TABLE && r < t->rows; r++) {
        fprintf(out, "%u:", r);
        for (uint32_t stage = 0; stage < t->stages; stage++) {
            write_rank(out, t->to[(size_t)r * t->stages + stage]);
        }
        fputc('\n', out);
    }
    for (uint32_t place = 0; s->found.way != IBSHIFT_WAY_TABLE && place < o->places; place++) {
        uint32_t rank = o->rank_at[(size_t)place * o->slots], host;

        if (rank == IBSHIFT_NO_RANK) {
            fputs("0xFFFF\tDUMMY\n", out);
            continue;
        }
        host = p->paths->host[p->member_of[rank]];
        if (place == 0 || s->found.way != IBSHIFT_WAY_RANK ||
            p->member_of[rank] != p->member_of[o->rank_at[place - 1]]) {
            fprintf(out, "0x%04x\t%s\n", ibshift_host_lid(f, host),
                    fabric_names_get(names, host, name, sizeof(name)));
        }
    }
}

static int write_file(const struct schedule *s)
{
    FILE *out = fopen(s->output, "w");
    struct fabric_names names;
    int rc;

    if (out == NULL) {
        return cli_error(s->args.command, "%s: %s", s->output, strerror(errno));
    }
    if (fabric_names_open(s->job.fabric, &names) != 0) {
        fclose(out);
        return cli_error(s->args.command, "no memory for the names of the hosts");
    }
    write_found(s, &names, out);
    fabric_names_close(&names);
    rc = ferror(out) != 0;
    rc |= fclose(out) != 0;
    return rc == 0 ? CLI_OK : cli_error(s->args.command, "%s: %s", s->output, strerror(errno));
}

static int run(struct schedule *s)
{
    struct ibshift_error err;
    int status = fabric_job_open(&s->args, &s->job);

    if (status == CLI_OK && ibshift_arrange(s->job.placement, s->job.order, s->job.order_count,
                                            IBSHIFT_WAYS_ALL, &s->found, &err) != 0) {
        status = fabric_args_fail(&s->args, &err);
    }
    if (status == CLI_OK && s->output != NULL) {
        status = write_file(s);
    }
    if (status == CLI_OK) {
        (s->json ? print_json : print_text)(s);
        if (!s->json) {
            fabric_job_next(&s->args, &s->job, "sim", " --svg use.svg",
                            "runs it packet by packet, and draws the use of the links");
        }
    }
    ibshift_arrangement_free(&s->found);
    fabric_job_close(&s->job);
    return status;
}

int cmd_fabric_schedule(int argc, char **argv)
{
    struct schedule s = {.output = NULL};
    const struct cli_option options[] = {
        FABRIC_JOB_OPTIONS(s.job),
        cli_output_option(&s.output, "write the table (a line a rank) or the order of hosts"),
        cli_json_option(&s.json),
        {.name = NULL},
    };
    int status;

    s.args = fabric_args("fabric schedule", options, NULL);
    status = cli_parse(&s.args, argc, argv);
    return status != CLI_OK || s.args.helped ? status : run(&s);
}
