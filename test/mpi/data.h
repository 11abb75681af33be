#ifndef IBSHIFT_TEST_MPI_DATA_H
#define IBSHIFT_TEST_MPI_DATA_H

#include <mpi.h>
#include <stddef.h>

/*
 * Elements of a few words, with or without gaps, and buffers of such elements. Comparing means the
 * whole buffer: what an operation must not touch (gaps, the margins, a send buffer) shows as well.
 */
enum layout_kind { LAYOUT_INT, LAYOUT_GAPS, LAYOUT_NEGATIVE, LAYOUT_COUNT };

struct layout {
    const char *name;
    MPI_Datatype type;
    int words;     /* data words of an element */
    int offset[2]; /* where they are */
    int stride;    /* words from one element to the next */
};

struct buffer {
    int *memory;
    int *start; /* what MPI gets */
    size_t words;
};

struct layout layout_create(enum layout_kind kind);
void layout_free(struct layout *layout);

/* All words hold a value that no element has. */
struct buffer buffer_create(const struct layout *layout, size_t elements);
void buffer_clear(struct buffer *buffer);
void buffer_free(struct buffer *buffer);
void buffer_compare(const struct buffer *got, const struct buffer *expected, const char *what);

/* Word of an element; element counts from the buffer's start. */
int *buffer_at(const struct buffer *buffer, const struct layout *layout, size_t element, int word);

/* The word that a rank contributes at an index; salt tells one call from the next. */
int value_of(int rank, size_t index, unsigned salt);

/* Associative and not commutative; one word is an affine function modulo 251. */
int compose(int first, int second);
/* compose() on every word of every element of the layout in use. */
MPI_Op compose_op(const struct layout *layout);

/* Another one with each call, the same on all ranks that call alike. */
unsigned next_salt(void);
/* From here on the ranks of a communicator go on with the same one. */
void agree_on_salt(MPI_Comm comm);

#endif
