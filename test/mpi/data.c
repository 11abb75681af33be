#include "data.h"

enum { PRIME = 251 };

static MPI_Datatype make_type(const struct layout *layout, int lower_bound)
{
    MPI_Aint at[2] = {layout->offset[0] * (MPI_Aint)sizeof(int),
                      layout->offset[1] * (MPI_Aint)sizeof(int)};
    MPI_Datatype inner, type;

    MPI_Type_create_hindexed_block(layout->words, 1, at, MPI_INT, &inner);
    MPI_Type_create_resized(inner, lower_bound * (MPI_Aint)sizeof(int),
                            layout->stride * (MPI_Aint)sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&inner);
    return type;
}

struct layout layout_create(enum layout_kind kind)
{
    static const struct layout kinds[LAYOUT_COUNT] = {
        [LAYOUT_INT] = {.name = "int", .words = 1, .stride = 1},
        [LAYOUT_GAPS] = {.name = "gaps", .words = 2, .offset = {0, 3}, .stride = 5},
        [LAYOUT_NEGATIVE] = {.name = "negative lower bound",
                             .words = 2,
                             .offset = {-2, 1},
                             .stride = 4},
    };
    struct layout layout = kinds[kind];

    layout.type = kind == LAYOUT_INT ? MPI_INT : make_type(&layout, layout.offset[0]);
    return layout;
}

void layout_free(struct layout *layout)
{
    if (layout->type != MPI_INT) {
        MPI_Type_free(&layout->type);
    }
}

int value_of(int rank, size_t index, unsigned salt)
{
    unsigned x = (unsigned)rank * 2654435761u + (unsigned)index * 40503u + salt * 2246822519u;

    x ^= x >> 15;
    x *= 2654435769u;
    x ^= x >> 13;
    return (int)((1 + x % (PRIME - 1)) << 8 | (x >> 8) % PRIME);
}

static int compose(int first, int second)
{
    int a1 = first >> 8, b1 = first & 255, a2 = second >> 8, b2 = second & 255;

    return (a1 * a2 % PRIME) << 8 | (a2 * b1 + b2) % PRIME;
}

static void compose_int(void *first, void *second, int *count, MPI_Datatype *type)
{
    for (int i = 0; i < *count; i++) {
        ((int *)second)[i] = compose(((int *)first)[i], ((int *)second)[i]);
    }
}

static void compose_gaps(void *first, void *second, int *count, MPI_Datatype *type)
{
    for (int i = 0; i < *count; i++) {
        for (int word = 0; word <= 3; word += 3) {
            int at = i * 5 + word;
            ((int *)second)[at] = compose(((int *)first)[at], ((int *)second)[at]);
        }
    }
}

static void compose_negative(void *first, void *second, int *count, MPI_Datatype *type)
{
    for (int i = 0; i < *count; i++) {
        for (int word = -2; word <= 1; word += 3) {
            int at = i * 4 + word;
            ((int *)second)[at] = compose(((int *)first)[at], ((int *)second)[at]);
        }
    }
}

MPI_Op compose_op(const struct layout *layout)
{
    MPI_Op op;

    MPI_Op_create(layout->words == 1    ? compose_int
                  : layout->stride == 5 ? compose_gaps
                                        : compose_negative,
                  0, &op);
    return op;
}
