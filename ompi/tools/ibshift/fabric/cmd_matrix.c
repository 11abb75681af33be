#include "fabric/cmd_job.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "fabric/matrix.h"
#include "fabric/paths/contend.h"
#include "fabric/weighted.h"

enum { BLOCK = 65536 };
enum { BY_RANK, BY_ROUTING, CONTROLS };

static const char *const control_names[CONTROLS] = {"shift in rank order",
                                                    "shift in routing order"};

struct schedule {
    const struct cli_args *args;
    struct fabric_job *job;
    const struct fabric_matrix *matrix;
    struct ibshift_weighted_job weighted;
    struct ibshift_weighted found;
    struct ibshift_weighted_bound bound;
    double control[CONTROLS]; /* whole blocks, stage after stage */
};

/* The ranks one behind the other, each to the one so many behind. */
static double price_shift(const struct schedule *s, const uint32_t *sequence)
{
    uint32_t ranks = s->weighted.ranks, stages = ranks > 1 ? ranks - 1 : 0;
    uint32_t *to = pool_new(&s->job->pool, (size_t)ranks * stages + 1, sizeof(*to));
    struct ibshift_stages table = {.stages = stages, .rows = ranks, .to = to, .from = to};
    double cost;

    for (uint32_t i = 0; i < ranks; i++) {
        for (uint32_t stage = 0; stage < stages; stage++) {
            to[(size_t)sequence[i] * stages + stage] = sequence[(i + stage + 1) % ranks];
        }
    }
    fabric_must(s->args, ibshift_weighted_cost(&s->weighted, &table, &cost),
                &(struct ibshift_error){"no memory"});
    return cost;
}

static void price_controls(struct schedule *s)
{
    uint32_t *sequence = pool_new(&s->job->pool, s->weighted.ranks, sizeof(*sequence));
    const struct ibshift_placement *p = s->job->placement;
    struct ibshift_order along;
    struct ibshift_error err;
    uint32_t count = 0;

    for (uint32_t i = 0; i < s->weighted.ranks; i++) {
        sequence[i] = i;
    }
    s->control[BY_RANK] = price_shift(s, sequence);
    fabric_must(s->args,
                ibshift_placement_along(p, s->job->order, s->job->order_count, false, &along, &err),
                &err);
    for (uint32_t i = 0; i < along.places * along.slots; i++) {
        if (along.rank_at[i] != IBSHIFT_NO_RANK) {
            sequence[count++] = along.rank_at[i];
        }
    }
    ibshift_order_free(&along);
    s->control[BY_ROUTING] = price_shift(s, sequence);
}

static void find(struct schedule *s)
{
    int rc = ibshift_weighted_bound(&s->weighted, &s->bound);

    rc = rc == 0 ? ibshift_weighted_make(&s->weighted, &s->found) : rc;
    if (rc == -E2BIG) {
        exit(cli_error(s->args->command, "a table of %u ranks takes more than %zu MiB",
                       s->weighted.ranks, s->weighted.memory >> 20));
    }
    fabric_must(s->args, rc, &(struct ibshift_error){"no memory"});
    price_controls(s);
}

static double share_of(const struct schedule *s, double cost)
{
    return s->bound.time > 0 ? cost / s->bound.time : 1;
}

static void print(const struct schedule *s)
{
    char link[200];

    fabric_job_print(s->job);
    printf(": %s\n", s->matrix->text);
    ibshift_contention_name(s->weighted.paths, s->bound.link, link, sizeof(link));
    printf("bound    %.9g bytes' time: %s\n", s->bound.time, link);
    printf("stages   %u\n%8.3f of the bound: longest blocks first\n", s->found.table.stages,
           share_of(s, s->found.cost));
    for (int i = 0; i < CONTROLS; i++) {
        printf("%8.3f of the bound: %s\n", share_of(s, s->control[i]), control_names[i]);
    }
}

static void print_json(const struct schedule *s)
{
    char link[200];
    struct json j;

    ibshift_contention_name(s->weighted.paths, s->bound.link, link, sizeof(link));
    json_begin(&j, stdout);
    json_value(&j, "hosts", "%u", s->weighted.paths->hosts);
    json_value(&j, "ranks", "%u", s->weighted.ranks);
    json_text(&j, "matrix", s->matrix->text);
    json_value(&j, "stages", "%u", s->found.table.stages);
    json_value(&j, "sum", "%.15g", s->found.cost);
    json_value(&j, "bound", "%.15g", s->bound.time);
    json_text(&j, "link", link);
    json_value(&j, "rank", "%.15g", s->control[BY_RANK]);
    json_value(&j, "routing", "%.15g", s->control[BY_ROUTING]);
    json_end(&j);
}

/* As plan and sim read it: a line for each rank, on it the ranks that it sends to. */
static void write_table(const struct schedule *s, FILE *out)
{
    const struct ibshift_stages *t = &s->found.table;

    for (uint32_t rank = 0; rank < t->rows; rank++) {
        for (uint32_t stage = 0; stage < t->stages; stage++) {
            uint32_t to = t->to[(size_t)rank * t->stages + stage];

            fprintf(out, to == IBSHIFT_NO_RANK ? "%s-" : "%s%u", stage > 0 ? " " : "", to);
        }
        fputc('\n', out);
    }
}

/* Who wants to check it needs the routes and the matrix, and nothing of this program. */
static void write_certificate(const struct schedule *s, FILE *out)
{
    const struct ibshift_weighted_job *job = &s->weighted;
    char link[200];

    ibshift_contention_name(job->paths, s->bound.link, link, sizeof(link));
    fprintf(out, "link %s\ncost %.9g\nbound %.15g\n", link,
            ibshift_contention_cost(job->paths, s->bound.link), s->bound.time);
    for (uint32_t from = 0; from < job->ranks; from++) {
        for (uint32_t to = 0; to < job->ranks; to++) {
            uint64_t bytes = job->bytes[(size_t)from * job->ranks + to];

            if (bytes > 0 && ibshift_weighted_takes(job, from, to, s->bound.link)) {
                fprintf(out, "%u %u %" PRIu64 "\n", from, to, bytes);
            }
        }
    }
}

static int write_file(const struct schedule *s, const char *path,
                      void (*write)(const struct schedule *s, FILE *out))
{
    struct output out;
    int rc;

    if (path == NULL) {
        return CLI_OK;
    }
    rc = cli_output_open(s->args->command, path, &out);
    if (rc == CLI_OK) {
        write(s, out.file);
        rc = cli_output_close(s->args->command, path, &out, rc);
    }
    return rc;
}

int fabric_schedule_matrix(const struct cli_args *args, struct fabric_job *job,
                           const struct fabric_matrix *matrix, const char *output, bool is_json)
{
    const struct ibshift_placement *p = job->placement;
    struct schedule s = {.args = args,
                         .job = job,
                         .matrix = matrix,
                         .weighted = {.paths = p->paths,
                                      .ranks = p->ranks,
                                      .member_of = p->member_of,
                                      .memory = IBSHIFT_TABLE_MEMORY}};
    uint64_t block = matrix->bytes > 0 ? matrix->bytes : BLOCK;
    uint64_t *bytes = pool_new(&job->pool, (size_t)p->ranks * p->ranks, sizeof(*bytes));
    struct ibshift_error err;
    int rc;

    fabric_must(args, matrix_fill(bytes, p->ranks, matrix->text, block, &err), &err);
    fabric_must(args, matrix_check(bytes, p->ranks, matrix->text, &err), &err);
    s.weighted.bytes = bytes;
    find(&s);
    rc = write_file(&s, output, write_table);
    rc = rc == CLI_OK ? write_file(&s, matrix->certificate, write_certificate) : rc;
    if (rc == CLI_OK) {
        (is_json ? print_json : print)(&s);
    }
    ibshift_weighted_free(&s.found);
    return rc;
}
