/* Where the ranks of a simulated job have their bytes. */
#include "sim/job.h"

#include <sys/mman.h>

/*
 * Nobody looks at the bytes of most simulations: then all ranks share one address range for each
 * buffer, of which the system gives only the pages that copies touch. To be verified, each rank has
 * its own.
 */
struct sim_job_memory {
    uint32_t ranks;
    size_t length[IBSHIFT_BUFFERS]; /* the largest of any rank */
    char *shared[IBSHIFT_BUFFERS];  /* mapped */
    char *own;                      /* [rank][SEND, RECV], or NULL */
    size_t **offsets;               /* [rank]: TMP's, or NULL */
};

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

static void lay_out_rank(struct sim_job_memory *memory, struct ibshift_op_params *p, size_t bytes)
{
    size_t length[IBSHIFT_BUFFERS] = {0};
    struct ibshift_blocks sizes = lay_out(p, bytes, length);
    size_t offsets = ibshift_tmp_offsets(p->alg, &p->plan, p->rank, &sizes);

    memory->offsets[p->rank] = offsets > 0 ? sim_zeroed(offsets, sizeof(size_t)) : NULL;
    length[IBSHIFT_TMP] = ibshift_tmp_layout(p->alg, &p->plan, p->rank, &sizes,
                                             memory->offsets[p->rank], &p->blocks[IBSHIFT_TMP]);
    for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
        memory->length[b] = length[b] > memory->length[b] ? length[b] : memory->length[b];
    }
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

static void map_shared(struct sim_job_memory *memory, const struct ibshift_alg *alg)
{
    for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
        /* A plan that copies nothing but each rank's own block: that onto itself is no copy. */
        if (b == IBSHIFT_RECV && alg->collective == IBSHIFT_ALLTOALL && alg->tmp == NULL) {
            memory->shared[b] = memory->shared[IBSHIFT_SEND];
            continue;
        }
        memory->shared[b] = mmap(NULL, memory->length[b] + 1, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        sim_need(memory->shared[b] == MAP_FAILED ? NULL : memory->shared[b]);
    }
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
static void fill_own(struct sim_job_memory *memory, size_t bytes)
{
    size_t each = memory->length[IBSHIFT_SEND] + memory->length[IBSHIFT_RECV];

    memory->own = sim_zeroed((size_t)memory->ranks * each, 1);
    for (uint32_t r = 0; r < memory->ranks; r++) {
        char *send = own_buffer(memory, r, IBSHIFT_SEND);

        for (size_t i = 0; i < memory->length[IBSHIFT_SEND]; i++) {
            send[i] = pattern(r, (uint32_t)(i / bytes), i % bytes);
        }
    }
}

void sim_memory_free(struct sim_job_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
        bool is_double = b == IBSHIFT_RECV && memory->shared[b] == memory->shared[IBSHIFT_SEND];

        if (!is_double) {
            munmap(memory->shared[b], memory->length[b] + 1);
        }
    }
    for (uint32_t r = 0; r < memory->ranks; r++) {
        free(memory->offsets[r]);
    }
    free(memory->offsets);
    free(memory->own);
    free(memory);
}

void sim_memory_create(struct sim_job *job)
{
    const struct sim_job_params *params = &job->params;
    struct sim_job_memory *m = sim_zeroed(1, sizeof(*m));

    job->memory = m;
    m->ranks = params->ranks;
    m->offsets = sim_zeroed(m->ranks, sizeof(*m->offsets));
    for (uint32_t r = 0; r < m->ranks; r++) {
        if (params->sizes != NULL) {
            lay_out_sizes(m, &job->rank[r].op.params, params->sizes);
        } else {
            lay_out_rank(m, &job->rank[r].op.params, params->bytes);
        }
    }
    map_shared(m, params->alg);
    if (params->verify) {
        fill_own(m, params->bytes);
    }
    for (uint32_t r = 0; r < m->ranks; r++) {
        for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
            job->rank[r].op.params.blocks[b].base =
                m->own != NULL && b != IBSHIFT_TMP ? own_buffer(m, r, b) : m->shared[b];
        }
    }
}

uint32_t sim_memory_check(const struct sim_job *job)
{
    const struct sim_job_memory *memory = job->memory;
    bool is_allgather = job->params.alg->collective == IBSHIFT_ALLGATHER;
    size_t bytes = job->params.bytes;

    for (uint32_t to = 0; to < memory->ranks; to++) {
        const char *recv = own_buffer(memory, to, IBSHIFT_RECV);

        for (size_t i = 0; i < memory->length[IBSHIFT_RECV]; i++) {
            uint32_t block = is_allgather ? 0 : to;

            if (recv[i] != pattern((uint32_t)(i / bytes), block, i % bytes)) {
                return to;
            }
        }
    }
    return memory->ranks;
}
