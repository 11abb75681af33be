#include "coll_ibshift_call.h"
#include "coll_ibshift_trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* All of it is under the engine's lock, but for open and close. */
static FILE *out;
static char last_key[IBSHIFT_CALL_KEY];

static bool reduces(enum ibshift_collective collective)
{
    return IBSHIFT_REDUCE <= collective;
}

static bool has_root(enum ibshift_collective collective)
{
    return IBSHIFT_BCAST == collective || IBSHIFT_SCATTER == collective ||
           IBSHIFT_GATHER == collective || IBSHIFT_REDUCE == collective;
}

static void put_rank(uint32_t rank, const char *before)
{
    if (IBSHIFT_NO_RANK == rank) {
        fprintf(out, "%s-", before);
    } else {
        fprintf(out, "%s%u", before, rank);
    }
}

static void put_order(const struct ibshift_order *order)
{
    fputs(" --order ", out);
    for (uint32_t seat = 0; seat < order->places * order->slots; seat++) {
        put_rank(order->rank_at[seat], 0 == seat ? "" : ",");
    }
    fprintf(out, " --slots %u", order->slots);
}

/* A rank has its own row of the table: the rows of all ranks make the file. */
static void put_stages(const struct ibshift_stages *stages, uint32_t rank)
{
    const uint32_t *row = stages->to + (size_t)(rank - stages->first) * stages->stages;

    fputs(" --stages FILE # its row:", out);
    for (uint32_t stage = 0; stage < stages->stages; stage++) {
        put_rank(row[stage], " ");
    }
}

static void put_command(const struct ibshift_op_params *params)
{
    const struct ibshift_alg *alg = params->alg;
    const struct ibshift_plan *plan = &params->plan;

    fprintf(out, "ibshift plan print %s %s --ranks %u --rank %u",
            ibshift_collective_name(alg->collective), alg->name, plan->ranks, params->rank);
    if (has_root(alg->collective)) {
        fprintf(out, " --root %u", plan->root);
    }
    if (alg->radix_max > 0) {
        fprintf(out, " --radix %u", plan->radix);
    }
    if (0 != (alg->flags & IBSHIFT_ALG_SEGMENTS)) {
        fprintf(out, " --segments %u", plan->segments);
    }
    if (reduces(alg->collective) && !plan->commutative) {
        fputs(" --non-commutative", out);
    }
    if (0 != (alg->flags & IBSHIFT_ALG_ORDER) && NULL != plan->order) {
        put_order(plan->order);
    }
    if (0 != (alg->flags & IBSHIFT_ALG_STAGES) && NULL != plan->stages) {
        put_stages(plan->stages, params->rank);
    }
}

/* A communicator's name is the user's: no line of ours may begin in it. */
static void put_title(const struct ibshift_op *op)
{
    char title[IBSHIFT_CALL_TITLE];

    ibshift_call_title(op, title, sizeof(title));
    ibshift_make_plain(title);
    fputs(title, out);
}

static void trace(void *context, const struct ibshift_op *op, const char *line)
{
    bool is_file = stderr != out;
    char key[IBSHIFT_CALL_KEY];

    ibshift_call_key(op, key, sizeof(key));
    if (0 != strcmp(key, last_key)) {
        strcpy(last_key, key);
        fprintf(out, "%s# %s ", is_file ? "" : "ibshift: ", key);
        put_title(op);
        fputs(": ", out);
        put_command(&op->params);
        fputc('\n', out);
    }
    if (!is_file) {
        fprintf(out, "ibshift: %s ", key);
    }
    fprintf(out, "%s\n", line);
}

/* PATH.RANK; processes that were spawned count their ranks anew, so their job's number is in it. */
static FILE *open_file(void)
{
    const opal_process_name_t *self = OMPI_PROC_MY_NAME;
    unsigned job = IBSHIFT_LOCAL_JOB(self->jobid);
    char path[4096];
    FILE *file;
    int length;

    if (job > 1) {
        length = snprintf(path, sizeof(path), "%s.%u.%u", ibshift_params.trace, job, self->vpid);
    } else {
        length = snprintf(path, sizeof(path), "%s.%u", ibshift_params.trace, self->vpid);
    }
    if (length >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        file = NULL;
    } else {
        file = fopen(path, "we");
    }
    if (NULL == file && 0 == ompi_process_info.my_local_rank) {
        ibshift_help("bad-trace", path, ompi_process_info.nodename, strerror(errno));
    }
    return file;
}

void (*ibshift_trace_open(void))(void *context, const struct ibshift_op *op, const char *line)
{
    if ('\0' == ibshift_params.trace[0]) {
        return NULL;
    }
    if (0 == strcmp(ibshift_params.trace, "stderr")) {
        out = stderr;
    } else {
        out = open_file();
    }
    if (NULL == out) {
        return NULL;
    }
    /* What has started is in the file, whatever becomes of the process. */
    setvbuf(out, NULL, _IOLBF, BUFSIZ);
    last_key[0] = '\0';
    return trace;
}

void ibshift_trace_close(void)
{
    if (NULL != out && stderr != out) {
        fclose(out);
    }
    out = NULL;
}
