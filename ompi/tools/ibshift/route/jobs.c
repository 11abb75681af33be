/* `ibshift route --jobs`: which hosts have which job. */
#include "route/jobs.h"

#include <errno.h>
#include <string.h>

#include "fabric/joblist.h"
#include "fabric/names.h"

struct reader {
    struct route *r;
    struct pool pool;
    struct fabric_nodes nodes;
    bool is_unknown;             /* the job that is read has a node that the fabric lacks, */
    char where[300], shared[64]; /* its line, and a node that another job has, too */
    char stranger[64];           /* the first node that the fabric lacks */
    struct ibshift_error *err;
};

static int job_begins(void *context, const char *where, const char *name, double seconds)
{
    struct reader *reader = context;

    (void)name;
    (void)seconds;
    reader->r->jobs++;
    snprintf(reader->where, sizeof(reader->where), "%s", where);
    reader->is_unknown = false;
    reader->shared[0] = '\0';
    return 0;
}

static int node_comes(void *context, const char *name)
{
    struct reader *reader = context;
    struct route *r = reader->r;
    uint32_t host = fabric_nodes_host(&reader->nodes, name);

    if (host == IBSHIFT_NO_HOST) {
        reader->is_unknown = true;
        if (reader->stranger[0] == '\0') {
            snprintf(reader->stranger, sizeof(reader->stranger), "%s", name);
        }
    } else if (r->job_of[host] == r->jobs) {
        return ibshift_fail(reader->err, -EEXIST, "%s: '%.60s' is there twice", reader->where,
                            name);
    } else if (r->job_of[host] != 0) {
        snprintf(reader->shared, sizeof(reader->shared), "%s", name);
    } else {
        r->job_of[host] = r->jobs;
    }
    return 0;
}

/* A job on nodes that the fabric lacks is left out. */
static int job_ends(void *context)
{
    struct reader *reader = context;
    struct route *r = reader->r;

    if (!reader->is_unknown) {
        return reader->shared[0] == '\0'
                   ? 0
                   : ibshift_fail(reader->err, -EEXIST,
                                  "%s: '%s' is that of another job, too: a host has one job",
                                  reader->where, reader->shared);
    }
    for (uint32_t h = 0; h < r->fabric->host_count; h++) {
        r->job_of[h] = r->job_of[h] == r->jobs ? 0 : r->job_of[h];
    }
    r->jobs--;
    r->unknown_jobs++;
    return 0;
}

int route_read_jobs(struct route *r, const char *path, struct ibshift_error *err)
{
    struct reader reader = {.r = r, .err = err};
    const struct fabric_joblist to = {&reader, job_begins, node_comes, job_ends};
    uint32_t *first;
    int rc;

    r->job_of = pool_new(&r->pool, r->fabric->host_count, sizeof(*r->job_of));
    rc = fabric_nodes_find(r->fabric, &reader.pool, &reader.nodes, err);
    rc = rc == 0 ? fabric_joblist_load(path, &to, err) : rc;
    if (rc == 0 && r->jobs == 0) {
        rc = r->unknown_jobs == 0
                 ? ibshift_fail(err, -EINVAL, "--jobs %.200s: no line with a job", path)
                 : ibshift_fail(err, -ENOENT,
                                "--jobs %.200s: no job is on this fabric alone, which has no '%s'",
                                path, reader.stranger);
    }
    first = fabric_nodes_of(r->fabric, &reader.pool);
    for (uint32_t h = 0; h < r->fabric->host_count; h++) {
        r->job_of[h] = r->job_of[first[h]]; /* all adapters of a node */
    }
    pool_free(&reader.pool);
    return rc;
}
