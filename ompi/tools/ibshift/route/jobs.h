/* Tables for the jobs that run. */
#ifndef IBSHIFT_ROUTE_JOBS_H
#define IBSHIFT_ROUTE_JOBS_H

#include "route/route.h"

/* Which job each host has, into r->job_of, from lines as `squeue -h -t R -o '%i|%N'` prints them. 0, or
 * a negative errno with the line or the node that is wrong. */
int route_read_jobs(struct route *r, const char *path, struct ibshift_error *err);

#endif
