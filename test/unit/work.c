#include <stdlib.h>
#include <string.h>

#include "work_impl.h"
#include "unit.h"

static void reduce(void *context, const void *in, void *with, void *out, size_t elements)
{
    const struct work *work = context;
    const struct affine *left = in, *right = with;
    struct affine *target = out;

    for (size_t i = 0; i < elements; i++) {
        target[i] =
            work->options.plan.commutative ? add(left[i], right[i]) : compose(left[i], right[i]);
    }
}

static bool is_vector(const struct work *work)
{
    switch (work->options.alg->collective) {
    case IBSHIFT_BCAST:
    case IBSHIFT_REDUCE:
    case IBSHIFT_ALLREDUCE:
    case IBSHIFT_SCAN:
    case IBSHIFT_EXSCAN:
        return true;
    default:
        return false;
    }
}

static bool is_reduction(const struct work *work)
{
    return work->options.alg->collective == IBSHIFT_REDUCE_SCATTER ||
           (is_vector(work) && work->options.alg->collective != IBSHIFT_BCAST);
}

/* Bytes of what comes in that place. */
static size_t place_size(const struct work *work, uint32_t rank, uint32_t place)
{
    uint32_t from, block;

    if (!graph_source(&work->options.plan, rank, place, &from, &block)) {
        return work->options.is_variant ? 5 : work->options.size;
    }
    return size_of(work, from, gathers_neighbors(work) ? 0 : block);
}

static size_t random_size(const struct work *work, uint64_t *random)
{
    size_t most = work->options.size;

    if (!work->options.is_variant) {
        return most;
    }
    return world_random_below(random, 4) == 0 ? 0 : world_random(random) % (most + 1);
}

/* Who gets a block of what size, per collective: by sender, by receiver, or by both. */
static void choose_sizes(struct work *work, uint64_t *random)
{
    enum ibshift_collective collective = work->options.alg->collective;
    uint32_t ranks = work->ranks;

    for (uint32_t i = 0; i < ranks; i++) {
        for (uint32_t j = 0; j < work->width; j++) {
            size_t *size = &work->sizes[i * work->width + j];

            if (collective == IBSHIFT_GATHER || collective == IBSHIFT_ALLGATHER) {
                *size = j == 0 ? random_size(work, random) : work->sizes[i * work->width];
            } else if (collective == IBSHIFT_SCATTER || collective == IBSHIFT_REDUCE_SCATTER) {
                *size = i == 0 ? random_size(work, random) : work->sizes[j];
            } else {
                *size = random_size(work, random);
            }
            if (collective == IBSHIFT_REDUCE_SCATTER) {
                *size = *size / ELEMENT * ELEMENT;
            }
        }
    }
    for (uint32_t i = 0; i < ranks; i++) {
        uint32_t places = is_of_neighbors(work) ? blocks_of(work, i, IBSHIFT_RECV) : ranks;

        for (uint32_t j = 0; j < work->width; j++) {
            row_of(work, i)[j + 1] = row_of(work, i)[j] + size_of(work, i, j);
        }
        for (uint32_t j = 0; j < places; j++) {
            size_t size = is_of_neighbors(work) ? place_size(work, i, j) : size_of(work, j, i);

            column_of(work, i)[j + 1] = column_of(work, i)[j] + size;
        }
    }
}

static struct ibshift_blocks one_block(size_t size)
{
    return (struct ibshift_blocks){.layout = IBSHIFT_UNIFORM, .unit = size};
}

static struct ibshift_blocks many_blocks(const struct work *work, const size_t *offsets)
{
    if (!work->options.is_variant) {
        return one_block(offsets[1]);
    }
    return (struct ibshift_blocks){.layout = IBSHIFT_OFFSETS, .unit = 1, .offsets = offsets};
}

static struct ibshift_blocks vector(const struct work *work)
{
    return (struct ibshift_blocks){.layout = IBSHIFT_PIECES,
                                   .unit = ELEMENT,
                                   .pieces =
                                       ibshift_alg_pieces(work->options.alg, &work->options.plan),
                                   .elements = work->options.size};
}

/* Layouts and bytes of SEND and RECV; returns what TMP's blocks are sized by. */
static struct ibshift_blocks lay_out(const struct work *work, uint32_t rank,
                                     struct ibshift_blocks *blocks, size_t *length)
{
    struct ibshift_blocks *send = &blocks[IBSHIFT_SEND], *recv = &blocks[IBSHIFT_RECV];
    uint32_t root = work->options.plan.root;

    if (is_vector(work)) {
        *send = *recv = vector(work);
        length[IBSHIFT_SEND] = length[IBSHIFT_RECV] = vector_bytes(work);
        return *send;
    }
    switch (work->options.alg->collective) {
    case IBSHIFT_BARRIER:
        return one_block(0);
    case IBSHIFT_SCATTER:
        *send = many_blocks(work, row_of(work, root));
        *recv = one_block(size_of(work, root, rank));
        length[IBSHIFT_SEND] = rank == root ? row_of(work, root)[work->ranks] : 0;
        length[IBSHIFT_RECV] = size_of(work, root, rank);
        return *send;
    case IBSHIFT_GATHER:
    case IBSHIFT_ALLGATHER:
        *send = one_block(size_of(work, rank, 0));
        *recv = many_blocks(work, column_of(work, 0));
        length[IBSHIFT_SEND] = size_of(work, rank, 0);
        length[IBSHIFT_RECV] = work->options.alg->collective == IBSHIFT_ALLGATHER || rank == root
                                   ? column_of(work, 0)[work->ranks]
                                   : 0;
        return *recv;
    case IBSHIFT_NEIGHBOR_ALLGATHER:
    case IBSHIFT_NEIGHBOR_ALLTOALL:
        *send = many_blocks(work, row_of(work, rank));
        *recv = many_blocks(work, column_of(work, rank));
        length[IBSHIFT_SEND] = row_of(work, rank)[blocks_of(work, rank, IBSHIFT_SEND)];
        length[IBSHIFT_RECV] = column_of(work, rank)[blocks_of(work, rank, IBSHIFT_RECV)];
        return *send;
    case IBSHIFT_REDUCE_SCATTER:
        *send = many_blocks(work, row_of(work, 0));
        *recv = one_block(size_of(work, 0, rank));
        length[IBSHIFT_SEND] = row_of(work, 0)[work->ranks];
        length[IBSHIFT_RECV] = size_of(work, 0, rank);
        return *send;
    default:
        *send = many_blocks(work, row_of(work, rank));
        *recv = many_blocks(work, column_of(work, rank));
        length[IBSHIFT_SEND] = row_of(work, rank)[work->ranks];
        length[IBSHIFT_RECV] = column_of(work, rank)[work->ranks];
        return one_block(work->options.size);
    }
}

/* The overlaps of MPI_IN_PLACE: which buffer lies inside the other, and where. */
static enum ibshift_buffer inner_buffer(const struct work *work, uint32_t rank, size_t *offset)
{
    enum ibshift_collective collective = work->options.alg->collective;
    bool is_root = rank == work->options.plan.root;

    *offset = 0;
    if (!work->options.is_in_place || collective == IBSHIFT_BCAST ||
        collective == IBSHIFT_BARRIER) {
        return IBSHIFT_BUFFERS;
    }
    if (collective == IBSHIFT_ALLGATHER || (collective == IBSHIFT_GATHER && is_root)) {
        *offset = column_of(work, 0)[rank];
        return IBSHIFT_SEND;
    }
    if (collective == IBSHIFT_SCATTER && is_root) {
        *offset = row_of(work, rank)[rank];
        return IBSHIFT_RECV;
    }
    if (collective == IBSHIFT_REDUCE_SCATTER) {
        return IBSHIFT_RECV;
    }
    if (collective == IBSHIFT_GATHER || collective == IBSHIFT_SCATTER ||
        (collective == IBSHIFT_REDUCE && !is_root) ||
        (collective == IBSHIFT_ALLTOALL && work->options.is_variant)) {
        return IBSHIFT_BUFFERS;
    }
    return IBSHIFT_SEND;
}

static void bring_memory(struct work *work, uint32_t rank, const size_t *length)
{
    struct rank_memory *memory = &work->rank[rank];
    struct ibshift_op_params *params = &work->ops[rank].params;
    struct ibshift_net *net = work->world->nets[ibshift_op_peer(&work->ops[rank], rank)];
    size_t offset;
    enum ibshift_buffer inner = inner_buffer(work, rank, &offset);

    for (int i = 0; i < IBSHIFT_BUFFERS; i++) {
        memory->length[i] = length[i];
        if (i != (int)inner) {
            memory->memory[i] = malloc(length[i] > 0 ? length[i] : 1);
            assert_non_null(memory->memory[i]);
            params->blocks[i].base = memory->memory[i];
            params->mem[i] = ibshift_net_mem_register(net, memory->memory[i], length[i]);
            memory->mem[i] = params->mem[i];
        }
    }
    if (inner != IBSHIFT_BUFFERS) {
        enum ibshift_buffer outer = inner == IBSHIFT_SEND ? IBSHIFT_RECV : IBSHIFT_SEND;

        params->blocks[inner].base = params->blocks[outer].base + offset;
        params->mem[inner] = params->mem[outer];
    }
}

static void prepare(struct work *work, uint32_t rank)
{
    struct ibshift_op *op = &work->ops[rank];
    struct ibshift_op_params *params = &op->params;
    const struct work_options *options = &work->options;
    size_t length[IBSHIFT_BUFFERS] = {0};
    struct ibshift_blocks sizes;

    params->alg = options->alg;
    params->plan = options->plan;
    params->rank = rank;
    params->window = options->window;
    params->peers = work->peers;
    params->comm = options->comm;
    params->element = ELEMENT;
    params->reduce = reduce;
    params->reduce_context = work;
    sizes = lay_out(work, rank, params->blocks, length);
    work->rank[rank].tmp_offsets =
        calloc(ibshift_tmp_offsets(options->alg, &options->plan, rank, &sizes) + 1, sizeof(size_t));
    assert_non_null(work->rank[rank].tmp_offsets);
    length[IBSHIFT_TMP] =
        ibshift_tmp_layout(options->alg, &options->plan, rank, &sizes, work->rank[rank].tmp_offsets,
                           &params->blocks[IBSHIFT_TMP]);
    bring_memory(work, rank, length);
    ibshift_op_init(op);
    assert_int_equal(ibshift_engine_attach(work->world->engines[ibshift_op_peer(op, rank)], op), 0);
}

struct work *work_create(struct world *world, const struct work_options *options, uint64_t *random)
{
    struct work *work = calloc(1, sizeof(*work));
    uint32_t ranks = world->ranks;

    assert_non_null(work);
    work->options = *options;
    work->world = world;
    work->ranks = ranks;
    work->width = ranks + 1;
    work->sizes = calloc((size_t)ranks * work->width, sizeof(size_t));
    work->offsets = calloc((size_t)2 * ranks * (work->width + 1), sizeof(size_t));
    work->peers = calloc(ranks, sizeof(uint32_t));
    work->ops = calloc(ranks, sizeof(struct ibshift_op));
    work->rank = calloc(ranks, sizeof(struct rank_memory));
    assert_true(work->sizes && work->offsets && work->peers && work->ops && work->rank);
    for (uint32_t i = 0; i < ranks; i++) {
        uint32_t other = options->is_shuffled ? world_random_below(random, i + 1) : i;

        work->peers[i] = work->peers[other];
        work->peers[other] = i;
    }
    choose_sizes(work, random);
    for (uint32_t i = 0; i < ranks; i++) {
        prepare(work, i);
    }
    return work;
}

void work_free(struct work *work)
{
    for (uint32_t i = 0; i < work->ranks; i++) {
        struct ibshift_net *net = work->world->nets[work->peers[i]];

        ibshift_engine_detach(work->world->engines[work->peers[i]], &work->ops[i]);
        for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
            ibshift_net_mem_release(net, work->rank[i].mem[b]);
            free(work->rank[i].memory[b]);
        }
        free(work->rank[i].tmp_offsets);
    }
    free(work->sizes);
    free(work->offsets);
    free(work->peers);
    free(work->ops);
    free(work->rank);
    free(work);
}

static void fill(char *base, uint32_t seq, uint32_t i, uint32_t j, size_t length)
{
    for (size_t k = 0; k < length; k += ELEMENT) {
        uint64_t word = pattern(seq, i, j, k / ELEMENT);

        memcpy(base + k, &word, length - k < ELEMENT ? length - k : ELEMENT);
    }
}

void work_fill(struct work *work, uint32_t rank, uint32_t seq)
{
    struct ibshift_op *op = &work->ops[rank];
    enum ibshift_collective collective = work->options.alg->collective;
    struct rank_memory *memory = &work->rank[rank];
    char *send = op->params.blocks[IBSHIFT_SEND].base;

    for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
        if (memory->memory[b] != NULL) {
            memset(memory->memory[b], UNTOUCHED, memory->length[b]);
        }
    }
    if (collective == IBSHIFT_BCAST) {
        if (rank == work->options.plan.root) {
            fill(op->params.blocks[IBSHIFT_RECV].base, seq, rank, 0, vector_bytes(work));
        }
    } else if (is_reduction(work) || collective == IBSHIFT_GATHER ||
               collective == IBSHIFT_ALLGATHER) {
        fill(send, seq, rank, 0, memory->length[IBSHIFT_SEND]);
    } else if (collective == IBSHIFT_ALLTOALL || is_of_neighbors(work) ||
               (collective == IBSHIFT_SCATTER && rank == work->options.plan.root)) {
        for (uint32_t j = 0; j < blocks_of(work, rank, IBSHIFT_SEND); j++) {
            fill(send + row_of(work, rank)[j], seq, rank, j, size_of(work, rank, j));
        }
    }
    op->seq = seq;
}

void work_start(struct work *work, uint32_t rank, uint32_t seq)
{
    work_fill(work, rank, seq);
    ibshift_engine_start(work->world->engines[work->peers[rank]], &work->ops[rank], seq);
}

bool work_is_done(struct work *work)
{
    for (uint32_t i = 0; i < work->ranks; i++) {
        if (!ibshift_op_is_done(&work->ops[i])) {
            return false;
        }
    }
    return true;
}
