/* Drawing a job: the choice, the blocks, the memory and what is in it. */

#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOB_NAME(upper, lower) #lower,
const char *const job_names[JOB_COLLECTIVE_COUNT] = {JOB_COLLECTIVES(JOB_NAME)};

enum type { TYPE_INT, TYPE_CHAR, TYPE_DOUBLE, TYPE_PAIR, TYPE_GAPS, TYPE_NEGATIVE, TYPE_COUNT };
enum { MARGIN = 64, LARGEST = 2 << 20 };

struct job_kit {
    struct layout gaps, negative;
    MPI_Datatype types[TYPE_COUNT];
    MPI_Op compose[TYPE_COUNT]; /* MPI_OP_NULL where the type has none */
    bool is_plain;
};

static const char *const type_names[TYPE_COUNT] = {
    "int", "signed char", "double", "pair of int", "gaps", "negative lower bound"};

struct job_kit *job_kit_create(void)
{
    struct job_kit *kit = calloc(1, sizeof(*kit));
    struct layout word = layout_create(LAYOUT_INT);

    CHECK(kit != NULL, "no memory");
    kit->gaps = layout_create(LAYOUT_GAPS);
    kit->negative = layout_create(LAYOUT_NEGATIVE);
    const MPI_Datatype types[TYPE_COUNT] = {MPI_INT,  MPI_SIGNED_CHAR, MPI_DOUBLE,
                                            MPI_2INT, kit->gaps.type,  kit->negative.type};
    memcpy(kit->types, types, sizeof(types));
    for (int i = 0; i < TYPE_COUNT; i++) {
        kit->compose[i] = MPI_OP_NULL;
    }
    kit->compose[TYPE_INT] = compose_op(&word);
    kit->compose[TYPE_GAPS] = compose_op(&kit->gaps);
    kit->compose[TYPE_NEGATIVE] = compose_op(&kit->negative);
    layout_free(&word);
    return kit;
}

void job_kit_plain(struct job_kit *kit)
{
    kit->is_plain = true;
}

void job_kit_free(struct job_kit *kit)
{
    for (int i = 0; i < TYPE_COUNT; i++) {
        if (kit->compose[i] != MPI_OP_NULL) {
            MPI_Op_free(&kit->compose[i]);
        }
    }
    layout_free(&kit->gaps);
    layout_free(&kit->negative);
    free(kit);
}

uint64_t job_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t mix(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t state = a ^ b * 0x9e3779b97f4a7c15u ^ c * 0xc2b2ae3d27d4eb4fu;

    return job_random(&state);
}

/* Around what the transport treats differently: inline, ring record, eager, grants, chunks. */
static size_t draw_bytes(uint64_t *state)
{
    static const size_t edges[] = {0,    4,    8,    64,    128,   256,    1024,
                                   1056, 4096, 8192, 16384, 65536, 262144, 1 << 20};
    uint64_t draw = job_random(state);
    size_t edge = edges[draw % (sizeof(edges) / sizeof(edges[0]))];
    int off = (int)(draw >> 32 & 7) - 3;

    return edge < 4 ? edge : draw >> 40 & 1 ? edge : (size_t)((long)edge + off * 4);
}

static MPI_Op draw_op(const struct job_kit *kit, int type, uint64_t draw)
{
    static const MPI_Op integer[] = {MPI_SUM, MPI_MAX, MPI_BXOR, MPI_MIN, MPI_BAND, MPI_PROD};

    switch (type) {
    case TYPE_PAIR:
        return draw % 2 ? MPI_MAXLOC : MPI_MINLOC;
    case TYPE_DOUBLE: /* of small whole numbers: exact in any order */
        return integer[draw % 2];
    case TYPE_CHAR: /* no sum: where it overflows Open MPI's depends on the count */
        return integer[1 + draw % 4];
    case TYPE_INT:
        return draw % 2 ? kit->compose[type] : integer[draw / 2 % 6];
    default:
        return kit->compose[type];
    }
}

static bool is_reduction(enum job_collective which)
{
    return which >= JOB_ALLREDUCE;
}

static bool has_counts(enum job_collective which)
{
    return (which >= JOB_GATHERV && which <= JOB_ALLTOALLW) || which == JOB_REDUCE_SCATTER;
}

/* Elements that one rank has for another. */
static int count_of(const struct job *job, int from, int to)
{
    int low = from < to ? from : to, high = from < to ? to : from;
    uint64_t draw = job->in_place ? mix(job->seed, (uint64_t)low, (uint64_t)high)
                                  : mix(job->seed, (uint64_t)from, (uint64_t)to);

    if (!has_counts(job->which) || job->is_even) {
        return job->count;
    }
    return draw % 5 == 0 ? 0 : job->count + (job->count > 0 ? (int)(draw >> 8 & 1) : 0);
}

/* What the blocks of a side are, seen by this rank. */
static void set_counts(const struct job *job, struct job_side *side, bool is_send)
{
    bool by_pairs = job->which == JOB_ALLTOALLV || job->which == JOB_ALLTOALLW;

    for (int i = 0; i < job->size; i++) {
        int other = by_pairs ? job->rank : 0;
        side->counts[i] = is_send ? count_of(job, other, i) : count_of(job, i, other);
    }
    if (!by_pairs && has_counts(job->which)) { /* gatherv and friends: one row for all */
        for (int i = 0; i < job->size; i++) {
            side->counts[i] = count_of(job, i, 0);
        }
    }
}

static void make_side(struct job *job, struct job_side *side, bool is_send)
{
    MPI_Aint lower, extent;
    int elements = 0;
    bool holes = has_counts(job->which) && job->which != JOB_REDUCE_SCATTER;

    side->counts = calloc((size_t)job->size, sizeof(int));
    side->displs = calloc((size_t)job->size, sizeof(int));
    side->bytes = calloc((size_t)job->size, sizeof(int));
    CHECK(side->counts != NULL && side->displs != NULL && side->bytes != NULL, "no memory");
    MPI_Type_get_extent(job->datatype, &lower, &extent);
    set_counts(job, side, is_send);
    for (int i = 0; i < job->size; i++) {
        int block = holes ? job->size - 1 - i : i;
        side->displs[block] = elements;
        side->bytes[block] = elements * (int)extent;
        elements += side->counts[block] + holes;
    }
    side->size = (size_t)elements * (size_t)extent + 2 * MARGIN;
    side->memory = malloc(side->size);
    CHECK(side->memory != NULL, "no memory for %zu bytes", side->size);
    side->start = side->memory + MARGIN;
    side->compared = side->size;
    if (job->in_place &&
        (job->which == JOB_REDUCE_SCATTER || job->which == JOB_REDUCE_SCATTER_BLOCK)) {
        side->compared = MARGIN + (size_t)side->counts[job->rank] * (size_t)extent;
    }
    if (job->which == JOB_EXSCAN && job->rank == 0) {
        side->compared = MARGIN; /* not defined */
    }
}

static void make_sides(struct job *job)
{
    job->types = malloc((size_t)job->size * sizeof(MPI_Datatype));
    CHECK(job->types != NULL, "no memory");
    for (int i = 0; i < job->size; i++) {
        job->types[i] = job->datatype;
    }
    make_side(job, &job->send, true);
    make_side(job, &job->recv, false);
}

static bool may_be_in_place(const struct job *job)
{
    return job->which != JOB_BARRIER && job->which != JOB_BCAST;
}

struct job job_draw(const struct job_kit *kit, MPI_Comm comm, uint64_t seed,
                    enum job_collective which, long bytes)
{
    struct job job = {.seed = seed, .which = which};
    uint64_t state = seed;
    size_t length;
    int type_size;

    MPI_Comm_rank(comm, &job.rank);
    MPI_Comm_size(comm, &job.size);
    if (which == JOB_COLLECTIVE_COUNT) {
        job.which = (enum job_collective)(job_random(&state) % JOB_COLLECTIVE_COUNT);
    }
    job.type = kit->is_plain ? TYPE_INT : (int)(job_random(&state) % TYPE_COUNT);
    if (job.type == TYPE_PAIR && !is_reduction(job.which)) {
        job.type = TYPE_GAPS;
    }
    job.datatype = kit->types[job.type];
    length = draw_bytes(&state);
    if (bytes >= 0) {
        length = (size_t)bytes;
    } else if (length > LARGEST / (size_t)job.size) {
        length = LARGEST / (size_t)job.size;
    }
    MPI_Type_size(job.datatype, &type_size);
    job.count = (int)((length + (size_t)type_size - 1) / (size_t)type_size);
    job.root = (int)(job_random(&state) % (uint64_t)job.size);
    job.op = kit->is_plain ? MPI_SUM : draw_op(kit, job.type, job_random(&state));
    job.in_place = may_be_in_place(&job) && !kit->is_plain && job_random(&state) % 3 == 0;
    make_sides(&job);
    return job;
}

struct job job_of(MPI_Comm comm, enum job_collective which, int count, int root, MPI_Op op,
                  MPI_Datatype type, uint64_t seed)
{
    struct job job = {.seed = seed ? seed * JOB_COLLECTIVE_COUNT + which : which,
                      .which = which,
                      .count = count,
                      .root = root,
                      .is_even = seed == 0,
                      .op = op,
                      .datatype = type};

    MPI_Comm_rank(comm, &job.rank);
    MPI_Comm_size(comm, &job.size);
    make_sides(&job);
    return job;
}

struct job job_as(const struct job *job, int rank)
{
    struct job other = *job;

    other.rank = rank;
    make_sides(&other);
    job_fill(&other);
    return other;
}

static void free_side(struct job_side *side)
{
    free(side->counts);
    free(side->displs);
    free(side->bytes);
    free(side->memory);
}

void job_free(struct job *job)
{
    free_side(&job->send);
    free_side(&job->recv);
    free(job->types);
}

/* Whole words everywhere, also in gaps and margins: what an operation must not touch shows. */
static void fill_side(const struct job *job, struct job_side *side, int salt)
{
    unsigned number = (unsigned)job->seed * 2 + (unsigned)salt;

    memset(side->memory, 0x5e, side->size);
    for (size_t i = 0; (i + 1) * 8 <= side->size; i++) {
        if (job->type == TYPE_DOUBLE) {
            ((double *)(void *)side->memory)[i] = value_of(job->rank, i, number) % 1000;
        } else {
            ((int *)(void *)side->memory)[2 * i] = value_of(job->rank, 2 * i, number);
            ((int *)(void *)side->memory)[2 * i + 1] = value_of(job->rank, 2 * i + 1, number);
        }
    }
    for (size_t i = side->size / 8 * 8; job->type != TYPE_DOUBLE && i + 4 <= side->size; i += 4) {
        *(int *)(void *)(side->memory + i) = value_of(job->rank, i / 4, number);
    }
}

void job_fill(struct job *job)
{
    fill_side(job, &job->send, 0);
    fill_side(job, &job->recv, 1);
}

void job_describe(const struct job *job, char *text, size_t size)
{
    snprintf(text, size, "%s, seed %llu, %d ranks, %d of %s, root %d%s%s", job_names[job->which],
             (unsigned long long)job->seed, job->size, job->count, type_names[job->type], job->root,
             job->in_place ? ", in place" : "",
             is_reduction(job->which) && job->type != TYPE_CHAR ? ", with an operator" : "");
}
