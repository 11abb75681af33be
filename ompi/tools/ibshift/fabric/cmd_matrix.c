/* `ibshift fabric contend --matrix`: the link that limits an all-to-all whose blocks differ, whatever its order. */
#include "fabric/cmd_job.h"

#include <inttypes.h>

#include "fabric/matrix.h"
#include "fabric/paths/contend.h"

enum { BLOCK = 65536, RANKS_MOST = 16384 /* 2 GiB */ };

struct matrix {
    const struct cli_args *args;
    struct fabric_job *job;
    const struct fabric_matrix *given;
    const uint64_t *bytes; /* [from * ranks + to] */
    double *load;          /* [link], as in a contention: bytes on the fastest host's cable */
    uint32_t link;         /* that is busy longest: no plan ends sooner */
};

/* All links of a block's route, the cables of both hosts too; none within a host. */
static uint32_t links_of(const struct matrix *m, uint32_t from, uint32_t to,
                         uint32_t links[IBSHIFT_PATH_LINKS + 2])
{
    const struct ibshift_placement *p = m->job->placement;
    const struct ibshift_paths *paths = p->paths;
    uint32_t a = p->member_of[from], b = p->member_of[to], count = 0;
    const uint32_t *shared = ibshift_paths_links(paths, a, b, 0);

    if (a == b) {
        return 0;
    }
    while (count < paths->width && shared[count] != IBSHIFT_NO_LINK) {
        links[count] = shared[count];
        count++;
    }
    links[count++] = paths->links + a;
    links[count++] = paths->links + paths->hosts + b;
    return count;
}

static void find_bound(struct matrix *m)
{
    const struct ibshift_placement *p = m->job->placement;
    uint32_t count = p->paths->links + 2 * p->paths->hosts;

    m->load = pool_new(&m->job->pool, count, sizeof(*m->load));
    for (size_t pair = 0; pair < (size_t)p->ranks * p->ranks; pair++) {
        uint32_t links[IBSHIFT_PATH_LINKS + 2], from = (uint32_t)(pair / p->ranks);
        uint32_t on = links_of(m, from, (uint32_t)(pair % p->ranks), links);

        for (uint32_t i = 0; i < on; i++) {
            m->load[links[i]] +=
                (double)m->bytes[pair] * ibshift_contention_cost(p->paths, links[i]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        m->link = m->load[i] > m->load[m->link] ? i : m->link;
    }
}

/* Who wants to check it needs the routes and the matrix, and nothing of this program. */
static void write_certificate(const struct matrix *m, const char *link, FILE *out)
{
    const struct ibshift_placement *p = m->job->placement;
    const struct ibshift_fabric *f = p->fabric;

    fprintf(out, "link %s\ncost %.9g\nbound %.15g\n", link,
            ibshift_contention_cost(p->paths, m->link), m->load[m->link]);
    for (uint32_t rank = 0; rank < p->ranks; rank++) {
        const struct ibshift_port *port = &f->ports[f->hosts[p->host[p->member_of[rank]]]];

        fprintf(out, "host %u 0x%016" PRIx64 " %u\n", rank, f->nodes[port->node].guid,
                port->number);
    }
    for (uint32_t from = 0; from < p->ranks; from++) {
        for (uint32_t to = 0; to < p->ranks; to++) {
            uint32_t links[IBSHIFT_PATH_LINKS + 2], count = links_of(m, from, to, links);
            uint64_t bytes = m->bytes[(size_t)from * p->ranks + to];

            while (count > 0 && links[count - 1] != m->link) {
                count--;
            }
            if (bytes > 0 && count > 0) {
                fprintf(out, "%u %u %" PRIu64 "\n", from, to, bytes);
            }
        }
    }
}

static void print_json(const struct matrix *m, const char *link)
{
    struct json j;

    json_begin(&j, stdout);
    json_value(&j, "hosts", "%u", m->job->placement->paths->hosts);
    json_value(&j, "ranks", "%u", m->job->placement->ranks);
    json_text(&j, "matrix", m->given->text);
    json_value(&j, "bound", "%.15g", m->load[m->link]);
    json_text(&j, "link", link);
    json_end(&j);
}

int fabric_contend_matrix(const struct cli_args *args, struct fabric_job *job,
                          const struct fabric_matrix *given, bool is_json)
{
    const struct ibshift_placement *p = job->placement;
    uint64_t *bytes;
    struct matrix m = {.args = args, .job = job, .given = given};
    struct ibshift_error err;
    struct output out;
    char link[200];
    int rc = CLI_OK;

    if (given->bytes > 0 && !matrix_is_made(given->text)) {
        return cli_error(args->command, "--bytes: the blocks of the file %.60s are as it says",
                         given->text);
    }
    if (p->ranks > RANKS_MOST) {
        return cli_error(args->command, "--matrix: at most %d ranks, there are %u", RANKS_MOST,
                         p->ranks);
    }
    m.bytes = bytes = pool_new(&job->pool, (size_t)p->ranks * p->ranks, sizeof(*bytes));
    fabric_must(
        args,
        matrix_fill(bytes, p->ranks, given->text, given->bytes > 0 ? given->bytes : BLOCK, &err),
        &err);
    fabric_must(args, matrix_check(bytes, p->ranks, given->text, &err), &err);
    find_bound(&m);
    ibshift_contention_name(p->paths, m.link, link, sizeof(link));
    if (given->certificate != NULL) {
        rc = cli_output_open(args->command, given->certificate, &out);
        if (rc == CLI_OK) {
            write_certificate(&m, link, out.file);
            rc = cli_output_close(args->command, given->certificate, &out, rc);
        }
    }
    if (rc == CLI_OK && is_json) {
        print_json(&m, link);
    } else if (rc == CLI_OK) {
        fabric_job_print(job);
        printf(": %s\nbound    %.9g bytes' time: %s\n", given->text, m.load[m.link], link);
    }
    return rc;
}
