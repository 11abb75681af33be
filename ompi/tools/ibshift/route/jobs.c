/* `ibshift route --jobs`: which hosts have which job. */
#include "route/jobs.h"

#include <errno.h>
#include <string.h>

#include "fabric/joblist.h"
#include "fabric/names.h"

enum { ID_SIZE = 32 };

struct reader {
    struct route *r;
    struct pool pool;
    const char *path;
    struct fabric_nodes nodes;
    char name[ID_SIZE];
    struct ibshift_error *err;
};

static int job_begins(void *context, const char *name, double seconds)
{
    struct reader *reader = context;

    (void)seconds;
    reader->r->jobs++;
    snprintf(reader->name, sizeof(reader->name), "%s", name);
    return 0;
}

static int node_comes(void *context, const char *name)
{
    struct reader *reader = context;
    struct route *r = reader->r;
    uint32_t host = fabric_nodes_host(&reader->nodes, name);

    if (host == IBSHIFT_NO_HOST) {
        return ibshift_fail(reader->err, -ENOENT,
                            "%.100s: job %s: '%.60s' is no host of the fabric", reader->path,
                            reader->name, name);
    }
    if (r->job_of[host] != 0) {
        return ibshift_fail(
            reader->err, -EEXIST, "%.100s: job %s: '%.60s' is %s: a host has one job", reader->path,
            reader->name, name,
            r->job_of[host] == r->jobs ? "there twice" : "that of another job, too");
    }
    r->job_of[host] = r->jobs;
    return 0;
}

int route_read_jobs(struct route *r, const char *path, struct ibshift_error *err)
{
    struct reader reader = {.r = r, .path = path, .err = err};
    const struct fabric_joblist to = {&reader, job_begins, node_comes, NULL};
    uint32_t *first;
    int rc;

    r->job_of = pool_new(&r->pool, r->fabric->host_count, sizeof(*r->job_of));
    rc = fabric_nodes_find(r->fabric, &reader.pool, &reader.nodes, err);
    rc = rc == 0 ? fabric_joblist_load(path, &to, err) : rc;
    if (rc == 0 && r->jobs == 0) {
        rc = ibshift_fail(err, -EINVAL, "--jobs %.200s: no line with a job", path);
    }
    first = fabric_nodes_of(r->fabric, &reader.pool);
    for (uint32_t h = 0; h < r->fabric->host_count; h++) {
        r->job_of[h] = r->job_of[first[h]]; /* all adapters of a node */
    }
    pool_free(&reader.pool);
    return rc;
}
