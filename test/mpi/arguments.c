/*
 * What a nonblocking or persistent collective was called with goes away while it is under way: the
 * arrays of counts and displacements (libraries that live with Open MPI's own collectives free
 * them), types and operators (MPI allows it). One rank starts last, so that no other has ended.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { MOST = 16, STRIDE = 4, VALUES = MOST * STRIDE * 2 };

static int rank, size;

struct arrays {
    int counts[MOST], displs[MOST];
    MPI_Datatype types[MOST];
};

/* One collective as all its forms and types of data see it. */
struct scene {
    enum form form;
    int late;       /* the rank that starts last */
    bool is_gapped; /* every other integer of a buffer is nobody's */
    MPI_Comm comm;
    MPI_Datatype type;
    bool has_types; /* one for each block, in the arrays */
    MPI_Op op;
    int send[VALUES], recv[VALUES];
    struct arrays to, from;
    MPI_Request request;
};

static int count_of(int from, int to)
{
    return (from + 2 * to) % (STRIDE - 1) + 1;
}

static int value_of(int from, int to, int i)
{
    return 1000 * from + 10 * to + i;
}

static int *at(struct scene *s, int *buffer, int block, int i)
{
    return &buffer[(block * STRIDE + i) * (s->is_gapped ? 2 : 1)];
}

static void set_up(struct scene *s)
{
    s->type = MPI_INT;
    s->op = MPI_OP_NULL;
    s->has_types = false;
    if (s->is_gapped) {
        MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &s->type);
        MPI_Type_commit(&s->type);
    }
    memset(s->send, 0, sizeof(s->send));
    memset(s->recv, 0xff, sizeof(s->recv));
    for (int i = 0; i < size; i++) {
        s->to.counts[i] = count_of(rank, i);
        s->from.counts[i] = count_of(i, rank);
        s->to.displs[i] = s->from.displs[i] = STRIDE * i;
        s->to.types[i] = s->from.types[i] = s->type;
        for (int k = 0; k < STRIDE; k++) {
            *at(s, s->send, i, k) = value_of(rank, i, k);
        }
    }
}

static void wait_for_others(const struct scene *s)
{
    int token = 0;

    if (rank != s->late) {
        MPI_Send(&token, 1, MPI_INT, s->late, 0, MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < size - 1; i++) {
        MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* The arrays of types stay: Open MPI itself reads them again. */
static void types_go(const struct scene *s)
{
    for (int i = 0; i < size; i++) {
        MPI_Datatype to = s->to.types[i], from = s->from.types[i];

        MPI_Type_free(&to);
        MPI_Type_free(&from);
    }
}

static void arguments_go(struct scene *s)
{
    if (s->has_types) {
        types_go(s);
    }
    if (s->op != MPI_OP_NULL) {
        MPI_Op_free(&s->op);
    }
    memset(s->to.counts, 0x55, sizeof(s->to.counts));
    memset(s->to.displs, 0x55, sizeof(s->to.displs));
    memset(s->from.counts, 0x55, sizeof(s->from.counts));
    memset(s->from.displs, 0x55, sizeof(s->from.displs));
    if (s->is_gapped) {
        MPI_Type_free(&s->type);
    } else {
        memset(s->to.types, 0x55, sizeof(s->to.types));
        memset(s->from.types, 0x55, sizeof(s->from.types));
    }
}

static void run(struct scene *s)
{
    int runs = s->form == FORM_PERSISTENT ? 2 : 1;

    for (int i = 0; i < runs; i++) {
        if (s->form == FORM_PERSISTENT) {
            if (rank == s->late) {
                wait_for_others(s);
            }
            memset(s->recv, 0xff, sizeof(s->recv));
            MPI_Start(&s->request);
        }
        if (rank != s->late) {
            wait_for_others(s);
        }
        MPI_Wait(&s->request, MPI_STATUS_IGNORE);
    }
    if (s->form == FORM_PERSISTENT) {
        MPI_Request_free(&s->request);
    }
}

/* The call, then its arguments go, then it may come to its end. */
#define SCENE(s, Name, name, ...)                                                                  \
    do {                                                                                           \
        if ((s)->form == FORM_PERSISTENT) {                                                        \
            PERSISTENT(Name)(__VA_ARGS__, MPI_INFO_NULL, &(s)->request);                           \
        } else {                                                                                   \
            if (rank == (s)->late) {                                                               \
                wait_for_others(s);                                                                \
            }                                                                                      \
            MPI_I##name(__VA_ARGS__, &(s)->request);                                               \
        }                                                                                          \
        arguments_go(s);                                                                           \
        run(s);                                                                                    \
    } while (0)

static void check_block(struct scene *s, const char *name, int block, int from, int to, int count)
{
    for (int k = 0; k < count; k++) {
        int got = *at(s, s->recv, block, k), wanted = value_of(from, to, k);

        CHECK(got == wanted, "%s %s%s, late rank %d, block %d: %d, not %d", form_names[s->form],
              name, s->is_gapped ? " with gaps" : "", s->late, block, got, wanted);
    }
    CHECK(*at(s, s->recv, block, count) == -1, "%s %s: block %d is too long", form_names[s->form],
          name, block);
}

static void check_all(struct scene *s, const char *name, int is_own)
{
    for (int i = 0; i < size; i++) {
        int to = is_own ? i : rank;

        check_block(s, name, i, i, to, count_of(i, to));
    }
}

static void alltoallv(struct scene *s)
{
    set_up(s);
    SCENE(s, Alltoallv, alltoallv, s->send, s->to.counts, s->to.displs, s->type, s->recv,
          s->from.counts, s->from.displs, s->type, s->comm);
    check_all(s, "alltoallv", 0);
}

static void alltoallw(struct scene *s)
{
    set_up(s);
    for (int i = 0; i < size; i++) {
        s->to.displs[i] *= (int)sizeof(int) * (s->is_gapped ? 2 : 1);
        s->from.displs[i] = s->to.displs[i];
        if (s->is_gapped) {
            MPI_Type_dup(s->type, &s->to.types[i]);
            MPI_Type_dup(s->type, &s->from.types[i]);
        }
    }
    s->has_types = s->is_gapped;
    SCENE(s, Alltoallw, alltoallw, s->send, s->to.counts, s->to.displs, s->to.types, s->recv,
          s->from.counts, s->from.displs, s->from.types, s->comm);
    check_all(s, "alltoallw", 0);
}

static void allgatherv(struct scene *s)
{
    set_up(s);
    for (int i = 0; i < size; i++) {
        s->from.counts[i] = count_of(i, i);
    }
    SCENE(s, Allgatherv, allgatherv, at(s, s->send, rank, 0), count_of(rank, rank), s->type,
          s->recv, s->from.counts, s->from.displs, s->type, s->comm);
    check_all(s, "allgatherv", 1);
}

static void gatherv(struct scene *s)
{
    int root = (s->late + 1) % size;

    set_up(s);
    for (int i = 0; i < size; i++) {
        s->from.counts[i] = count_of(i, i);
    }
    SCENE(s, Gatherv, gatherv, at(s, s->send, rank, 0), count_of(rank, rank), s->type, s->recv,
          s->from.counts, s->from.displs, s->type, root, s->comm);
    if (rank == root) {
        check_all(s, "gatherv", 1);
    }
}

static void scatterv(struct scene *s)
{
    int root = (s->late + 1) % size;

    set_up(s);
    SCENE(s, Scatterv, scatterv, s->send, s->to.counts, s->to.displs, s->type, s->recv,
          count_of(root, rank), s->type, root, s->comm);
    check_block(s, "scatterv", 0, root, rank, count_of(root, rank));
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    for (int i = 0; i < *count; i++) {
        ((int *)inout)[i] += ((int *)in)[i];
    }
}

static void reduce_scatter(struct scene *s)
{
    int sum = 0;

    s->is_gapped = false; /* a reduction with gaps is another thing */
    set_up(s);
    for (int i = 0; i < size; i++) {
        s->to.counts[i] = 1;
        s->send[i] = value_of(rank, i, 0);
        sum += value_of(i, rank, 0);
    }
    MPI_Op_create(add, 1, &s->op);
    SCENE(s, Reduce_scatter, reduce_scatter, s->send, s->recv, s->to.counts, s->type, s->op,
          s->comm);
    CHECK(s->recv[0] == sum, "%s reduce_scatter: %d, not %d", form_names[s->form], s->recv[0], sum);
}

static void check_scenes(MPI_Comm comm)
{
    static void (*const scenes[])(struct scene *) = {alltoallv, alltoallw, allgatherv,
                                                     gatherv,   scatterv,  reduce_scatter};
    static struct scene s;

    for (int form = FORM_NONBLOCKING; form < FORM_COUNT; form++) {
        for (int late = 0; late < size; late++) {
            for (size_t i = 0; i < 2 * sizeof(scenes) / sizeof(scenes[0]); i++) {
                s = (struct scene){
                    .form = (enum form)form, .late = late, .is_gapped = i % 2 == 1, .comm = comm};
                scenes[i / 2](&s);
            }
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Comm line;
    int open[1] = {0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size <= MOST, "at most %d ranks", MOST);
    check_scenes(MPI_COMM_WORLD);
    /* Of types, Open MPI itself holds only as many here as there are neighbours. */
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, open, 0, &line);
    check_scenes(line);
    MPI_Comm_free(&line);
    MPI_Finalize();
    return 0;
}
