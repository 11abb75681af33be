/* The buffers of a collective, and what is in them: patterns that no two pairs of ranks share, so that a block in the
 * wrong place is seen. */
#include "nbcbench.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sizes.h"

/* Bytes of a piece of a derived type: about a cache line, so that gaps cost what they cost in programs. */
enum { PIECE = 64 };

const char *const element_names[] = {"byte", "int", "int64", "float", "double", NULL};
static const size_t element_sizes[ELEMENTS] = {1, sizeof(int), 8, sizeof(float), sizeof(double)};

static enum element element_of(const struct options *o, const struct collective *c)
{
    return o->element >= 0 ? (enum element)o->element : c->reduces ? ELEMENT_INT : ELEMENT_BYTE;
}

/* MPI has no sum of MPI_BYTE. */
static MPI_Datatype handle_of(enum element element, bool reduces)
{
    const MPI_Datatype handles[ELEMENTS] = {reduces ? MPI_UINT8_T : MPI_BYTE, MPI_INT, MPI_INT64_T,
                                            MPI_FLOAT, MPI_DOUBLE};

    return handles[element];
}

size_t block_size(const struct options *o, const struct collective *c, size_t size)
{
    size_t unit = element_sizes[element_of(o, c)];

    if (o->derived != DERIVED_NONE && size > PIECE) {
        unit = PIECE;
    }
    return c->sized ? (size + unit - 1) / unit * unit : 0;
}

/* Pieces at growing distances, none of which is that of another two. */
static int make_indexed(int pieces, int length, MPI_Datatype element, MPI_Datatype *type)
{
    int *places = malloc((size_t)pieces * sizeof(*places));

    if (places == NULL) {
        return -ENOMEM;
    }
    for (int i = 0; i < pieces; i++) {
        places[i] = i * 2 * length + (i % 2) * (length / 2);
    }
    MPI_Type_create_indexed_block(pieces, length, places, element, type);
    free(places);
    return 0;
}

/* One element of the type is one block. */
static int make_derived(struct bench *b, int kind, MPI_Datatype element)
{
    int per_piece = (int)(PIECE / element_sizes[b->element]);
    int length = b->count < per_piece ? b->count : per_piece, pieces = b->count / length;
    MPI_Datatype made;

    b->block_space = 3 * b->size;
    if (kind == DERIVED_CONTIGUOUS) {
        MPI_Type_contiguous(b->count, element, &made);
        b->block_space = b->size;
    } else if (kind == DERIVED_VECTOR) {
        MPI_Type_vector(pieces, length, 2 * length, element, &made);
    } else if (make_indexed(pieces, length, element, &made) != 0) {
        return -ENOMEM;
    }
    MPI_Type_create_resized(made, 0, (MPI_Aint)b->block_space, &b->type);
    MPI_Type_commit(&b->type);
    MPI_Type_free(&made);
    b->count = 1;
    return 0;
}

/* Of a block sent, or behind those of one received. */
static int count_of(const struct bench *b, size_t i)
{
    return b->lengths == NULL ? b->count
                              : (int)(block_size(b->options, b->what, (size_t)b->lengths[i]) /
                                      element_sizes[b->element]);
}

static int open_vectors(struct bench *b)
{
    size_t partners = (size_t)b->partners;

    b->types = malloc(partners * sizeof(*b->types));
    b->counts = malloc(4 * partners * sizeof(int));
    if (b->types == NULL || b->counts == NULL) {
        return -ENOMEM;
    }
    b->places = b->counts + partners;
    b->byte_places = b->places + partners;
    b->given_counts = b->byte_places + partners;
    for (int i = 0; i < b->partners; i++) {
        b->types[i] = b->type;
        b->counts[i] = count_of(b, (size_t)i);
        b->given_counts[i] = count_of(b, partners + (size_t)i);
        b->places[i] = i * b->count;
        b->byte_places[i] = i * (int)b->block_space;
    }
    return 0;
}

static int open_persistent(struct bench *b)
{
    b->persistent = malloc((size_t)b->options->buffers * sizeof(MPI_Request));
    if (b->persistent == NULL) {
        return -ENOMEM;
    }
    for (int i = 0; i < b->options->buffers; i++) {
        b->turn = i - 1;
        bench_next(b);
        b->what->init(b, &b->persistent[i]);
    }
    return 0;
}

static int open_buffers(struct bench *b)
{
    size_t partners = (size_t)b->partners, pairs = (size_t)b->options->buffers;
    bool is_input_in_recv = b->options->in_place && b->what->in_place != PLACE_RECV_AT_ROOT;

    b->send_space = b->block_space * (b->what->sends_all ? partners : 1);
    b->recv_space =
        b->block_space *
        (b->what->receives_all || (is_input_in_recv && b->what->sends_all) ? partners : 1);
    b->send = malloc(pairs * b->send_space + 1);
    b->recv = malloc(pairs * b->recv_space + 1);
    b->scratch = malloc(b->size + 1);
    if (b->send == NULL || b->recv == NULL || b->scratch == NULL || open_vectors(b) != 0) {
        return -ENOMEM;
    }
    b->turn = -1;
    bench_next(b);
    return b->options->persistent ? open_persistent(b) : 0;
}

bool collective_is_of_neighbors(const struct collective *c)
{
    return strncmp(c->name, "MPI_Neighbor_", strlen("MPI_Neighbor_")) == 0;
}

int bench_open(struct bench *b, const struct collective *c, const struct options *o, MPI_Comm comm,
               size_t size)
{
    int status = 0;

    *b = (struct bench){.what = c,
                        .options = o,
                        .comm = comm,
                        .size = block_size(o, c, size),
                        .element = element_of(o, c),
                        .root = o->root == ROOT_ROTATES ? 0 : o->root};
    MPI_Comm_rank(comm, &b->rank);
    MPI_Comm_size(comm, &b->ranks);
    b->partners = collective_is_of_neighbors(c) ? 2 * o->grid : b->ranks;
    if (sizes_vary(o, c)) {
        b->lengths = sizes_take(o->matrix, comm, size, &b->size);
        b->size = block_size(o, c, b->size);
    }
    b->count = (int)(b->size / element_sizes[b->element]);
    b->block_space = b->size;
    b->type = handle_of(b->element, c->reduces);
    if (o->derived != DERIVED_NONE && c->sized) {
        status = make_derived(b, o->derived, b->type);
    }
    return status == 0 ? open_buffers(b) : status;
}

void bench_next(struct bench *b)
{
    bool in_place = b->options->in_place, is_root;
    size_t turn;

    b->turn = (b->turn + 1) % b->options->buffers;
    turn = (size_t)b->turn;
    if (b->options->root == ROOT_ROTATES) {
        b->root = (b->root + 1) % b->ranks;
    }
    is_root = b->rank == b->root;
    b->from = b->send + turn * b->send_space;
    b->to = b->recv + turn * b->recv_space;
    if (in_place &&
        (b->what->in_place == PLACE_SEND || (b->what->in_place == PLACE_SEND_AT_ROOT && is_root))) {
        b->from = MPI_IN_PLACE;
    }
    if (in_place && b->what->in_place == PLACE_RECV_AT_ROOT && is_root) {
        b->to = MPI_IN_PLACE;
    }
}

/* Byte i of the block that rank `from` has for rank `to`, or for its neighbour `to`; bcast and the like use to = 0. */
static char pattern(int from, int to, size_t i)
{
    return (char)(unsigned char)(31 * from + 7 * to + (int)(i % 251) + 1);
}

static void store_value(enum element element, char *at, long value)
{
    const int whole = (int)value;
    const int64_t longer = value;
    const float single = (float)value;
    const double twice = (double)value;
    const unsigned char byte = (unsigned char)value;
    const void *const all[ELEMENTS] = {&byte, &whole, &longer, &single, &twice};

    memcpy(at, all[element], element_sizes[element]);
}

/* The elements of a reduction: those of a rank differ by its number, and no sum of 10,000 of them is beyond a float.
 * Bytes stay small: some of Open MPI's sums of them saturate, others wrap. */
static long value_of(enum element element, int rank, size_t index)
{
    return element == ELEMENT_BYTE ? (long)(index % 2) : rank + (long)(index % 1000);
}

static long sum_of(enum element element, int low, int high, size_t index)
{
    long ranks = (long)high * (high - 1) / 2 - (long)low * (low - 1) / 2;

    return (element == ELEMENT_BYTE ? 0 : ranks) + (high - low) * value_of(element, 0, index);
}

static void fill_block(struct bench *b, char *buffer, int to)
{
    size_t width = element_sizes[b->element], elements = b->size / width;
    int position = 0;

    for (size_t i = 0; b->what->reduces && i < elements; i++) {
        store_value(b->element, b->scratch + i * width,
                    value_of(b->element, b->rank, (size_t)to * elements + i));
    }
    for (size_t i = 0; !b->what->reduces && i < b->size; i++) {
        b->scratch[i] = pattern(b->rank, to, i);
    }
    MPI_Unpack(b->scratch, (int)b->size, &position, buffer, b->count, b->type, b->comm);
}

void bench_fill(struct bench *b)
{
    int blocks = b->what->sends_all ? b->partners : 1;

    if (!b->what->sized) {
        return;
    }
    for (int pair = 0; pair < b->options->buffers; pair++) {
        size_t turn = (size_t)pair;
        char *input = b->send + turn * b->send_space, *output = b->recv + turn * b->recv_space;

        memset(output, 0, b->recv_space);
        for (int to = 0; to < blocks; to++) {
            fill_block(b, input + (size_t)to * b->block_space, to);
        }
        if (b->options->in_place && b->what->in_place != PLACE_RECV_AT_ROOT &&
            b->what->in_place != PLACE_NONE) {
            bool is_one_of_all = b->what->receives_all && !b->what->sends_all;

            memcpy(output + (is_one_of_all ? (size_t)b->rank * b->block_space : 0), input,
                   b->send_space);
        }
    }
}

static const char *packed(struct bench *b, const char *buffer)
{
    int position = 0;

    MPI_Pack(buffer, b->count, b->type, b->scratch, (int)b->size, &position, b->comm);
    return b->scratch;
}

bool block_is(struct bench *b, const char *buffer, int from, int to)
{
    const char *block = packed(b, buffer);

    for (size_t i = 0; i < b->size; i++) {
        if (block[i] != pattern(from, to, i)) {
            return false;
        }
    }
    return true;
}

bool sums_are(struct bench *b, const char *buffer, int low, int high, size_t first)
{
    size_t width = element_sizes[b->element];
    const char *block = packed(b, buffer);
    char wanted[8];

    for (size_t i = 0; i < b->size / width; i++) {
        store_value(b->element, wanted, sum_of(b->element, low, high, first + i));
        if (memcmp(block + i * width, wanted, width) != 0) {
            return false;
        }
    }
    return true;
}

void bench_close(struct bench *b)
{
    for (int i = 0; b->persistent != NULL && i < b->options->buffers; i++) {
        MPI_Request_free(&b->persistent[i]);
    }
    if (b->options->derived != DERIVED_NONE && b->what->sized) {
        MPI_Type_free(&b->type);
    }
    free(b->persistent);
    free(b->send);
    free(b->recv);
    free(b->scratch);
    free(b->types);
    free(b->counts);
    free(b->lengths);
}
