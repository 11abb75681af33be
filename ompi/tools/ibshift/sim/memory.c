#include "sim/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

static struct ibshift_blocks uniform(size_t bytes)
{
    return (struct ibshift_blocks){.layout = IBSHIFT_UNIFORM, .unit = bytes};
}

static struct ibshift_blocks vector(const struct ibshift_op_params *p, size_t bytes)
{
    return (struct ibshift_blocks){.layout = IBSHIFT_PIECES,
                                   .unit = 1,
                                   .pieces = ibshift_alg_pieces(p->alg, &p->plan),
                                   .elements = bytes};
}

/* Layouts of SEND and RECV (plan/step.h) and their bytes; returns what sizes TMP's blocks. */
static struct ibshift_blocks lay_out(struct ibshift_op_params *p, size_t bytes, size_t *length)
{
    struct ibshift_blocks *send = &p->blocks[IBSHIFT_SEND], *recv = &p->blocks[IBSHIFT_RECV];

    switch (p->alg->collective) {
    case IBSHIFT_BCAST:
    case IBSHIFT_REDUCE:
    case IBSHIFT_ALLREDUCE:
    case IBSHIFT_SCAN:
    case IBSHIFT_EXSCAN:
        *send = *recv = vector(p, bytes);
        length[IBSHIFT_SEND] = length[IBSHIFT_RECV] = bytes;
        break;
    case IBSHIFT_BARRIER:
        *send = *recv = uniform(0);
        break;
    default:
        *send = *recv = uniform(bytes);
        length[IBSHIFT_SEND] = bytes * ibshift_alg_blocks(p->alg, &p->plan, p->rank, IBSHIFT_SEND);
        length[IBSHIFT_RECV] = bytes * ibshift_alg_blocks(p->alg, &p->plan, p->rank, IBSHIFT_RECV);
    }
    return *send;
}

static int lay_out_rank(struct sim_job_memory *memory, struct ibshift_op_params *p, size_t bytes)
{
    size_t length[IBSHIFT_BUFFERS] = {0}, offsets;
    struct ibshift_blocks sizes = lay_out(p, bytes, length);

    offsets = ibshift_tmp_offsets(p->alg, &p->plan, p->rank, &sizes);
    if (offsets > 0) {
        memory->offsets[p->rank] = calloc(offsets, sizeof(size_t));
        if (memory->offsets[p->rank] == NULL) {
            return -ENOMEM;
        }
    }
    length[IBSHIFT_TMP] = ibshift_tmp_layout(p->alg, &p->plan, p->rank, &sizes,
                                             memory->offsets[p->rank], &p->blocks[IBSHIFT_TMP]);
    for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
        memory->length[b] = length[b] > memory->length[b] ? length[b] : memory->length[b];
    }
    return 0;
}

static struct ibshift_blocks row(const struct sim_sizes *sizes, const int *all, uint32_t rank)
{
    return (struct ibshift_blocks){.layout = IBSHIFT_INT_COUNTS,
                                   .unit = 1,
                                   .counts = all + (size_t)rank * sizes->ranks,
                                   .displs = sizes->places};
}

/* All messages of an alltoallv come from the same place and go there. */
static void lay_out_sizes(struct sim_job_memory *memory, struct ibshift_op_params *p,
                          const struct sim_sizes *sizes)
{
    p->blocks[IBSHIFT_SEND] = row(sizes, sizes->sent, p->rank);
    p->blocks[IBSHIFT_RECV] = row(sizes, sizes->received, p->rank);
    memory->length[IBSHIFT_SEND] = memory->length[IBSHIFT_RECV] = sim_sizes_most(sizes);
}

static int map_shared(struct sim_job_memory *memory, const struct ibshift_alg *alg)
{
    for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
        /* A plan that copies nothing but each rank's own block: that onto itself is no copy. */
        if (b == IBSHIFT_RECV && alg->collective == IBSHIFT_ALLTOALL && alg->tmp == NULL) {
            memory->shared[b] = memory->shared[IBSHIFT_SEND];
            continue;
        }
        memory->shared[b] = mmap(NULL, memory->length[b] + 1, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory->shared[b] == MAP_FAILED) {
            memory->shared[b] = NULL;
            return -ENOMEM;
        }
    }
    return 0;
}

static char pattern(uint32_t from, uint32_t to, size_t at)
{
    uint64_t h = ((uint64_t)from << 32 | to) * 0x9e3779b97f4a7c15ull + at * 0xc2b2ae3d27d4eb4full;

    return (char)(h >> 56);
}

static char *own_buffer(const struct sim_job_memory *memory, uint32_t rank,
                        enum ibshift_buffer which)
{
    size_t send = memory->length[IBSHIFT_SEND], recv = memory->length[IBSHIFT_RECV];

    return memory->own + rank * (send + recv) + (which == IBSHIFT_RECV ? send : 0);
}

/* What rank `from` has for rank `to`; to all alike in an allgather. */
static int fill_own(struct sim_job_memory *memory, size_t bytes)
{
    size_t each = memory->length[IBSHIFT_SEND] + memory->length[IBSHIFT_RECV];

    memory->own = calloc((size_t)memory->ranks * each + 1, 1);
    if (memory->own == NULL) {
        return -ENOMEM;
    }
    for (uint32_t r = 0; r < memory->ranks; r++) {
        char *send = own_buffer(memory, r, IBSHIFT_SEND);

        for (size_t i = 0; i < memory->length[IBSHIFT_SEND]; i++) {
            send[i] = pattern(r, (uint32_t)(i / bytes), i % bytes);
        }
    }
    return 0;
}

static int bring_memory(struct sim_job_memory *memory, struct ibshift_op_params *const *params,
                        size_t bytes, bool verify)
{
    int rc = map_shared(memory, params[0]->alg);

    rc = rc == 0 && verify ? fill_own(memory, bytes) : rc;
    for (uint32_t r = 0; r < memory->ranks && rc == 0; r++) {
        for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
            params[r]->blocks[b].base = memory->own != NULL && b != IBSHIFT_TMP
                                            ? own_buffer(memory, r, b)
                                            : memory->shared[b];
        }
    }
    return rc;
}

int sim_memory_create(struct ibshift_op_params *const *params, uint32_t ranks, size_t bytes,
                      const struct sim_sizes *sizes, bool verify, struct sim_job_memory **memory)
{
    const struct ibshift_alg *alg = params[0]->alg;
    struct sim_job_memory *m;
    int rc = 0;

    if (verify && ((alg->collective != IBSHIFT_ALLTOALL && alg->collective != IBSHIFT_ALLGATHER) ||
                   alg->tmp != NULL || sizes != NULL)) {
        return -ENOTSUP;
    }
    if (sizes != NULL && (alg->collective != IBSHIFT_ALLTOALL || alg->tmp != NULL)) {
        return -ENOTSUP;
    }
    m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return -ENOMEM;
    }
    m->ranks = ranks;
    m->offsets = calloc(ranks + 1u, sizeof(*m->offsets));
    rc = m->offsets == NULL ? -ENOMEM : 0;
    for (uint32_t r = 0; r < ranks && rc == 0; r++) {
        if (sizes != NULL) {
            lay_out_sizes(m, params[r], sizes);
        } else {
            rc = lay_out_rank(m, params[r], bytes);
        }
    }
    rc = rc == 0 ? bring_memory(m, params, bytes, verify) : rc;
    if (rc != 0) {
        sim_memory_free(m);
        return rc;
    }
    *memory = m;
    return 0;
}

void sim_memory_free(struct sim_job_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
        bool is_double = b == IBSHIFT_RECV && memory->shared[b] == memory->shared[IBSHIFT_SEND];

        if (memory->shared[b] != NULL && !is_double) {
            munmap(memory->shared[b], memory->length[b] + 1);
        }
    }
    for (uint32_t r = 0; memory->offsets != NULL && r < memory->ranks; r++) {
        free(memory->offsets[r]);
    }
    free(memory->offsets);
    free(memory->own);
    free(memory);
}

uint32_t sim_memory_check(const struct sim_job_memory *memory, enum ibshift_collective collective,
                          size_t bytes)
{
    for (uint32_t to = 0; to < memory->ranks; to++) {
        const char *recv = own_buffer(memory, to, IBSHIFT_RECV);

        for (size_t i = 0; i < memory->length[IBSHIFT_RECV]; i++) {
            uint32_t block = collective == IBSHIFT_ALLGATHER ? 0 : to;

            if (recv[i] != pattern((uint32_t)(i / bytes), block, i % bytes)) {
                return to;
            }
        }
    }
    return memory->ranks;
}
